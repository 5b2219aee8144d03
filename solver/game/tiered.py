"""The contract of a game that lays its states out in tiers: a full table of it can be solved."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.game.coded import Coded
from luckbase.solver.game.decisions import Decisions
from luckbase.solver.game.rules import Floats, Game, Ints

T = TypeVar("T")


class TieredGame(Game, Generic[T]):
    """A game that lays its states out in tiers, so that a full table of it can be solved.

    `T` is the game's type of tier (hashable, ordered).
    """

    payoff_type: ClassVar[type[np.floating[Any]]] = np.float32
    """How a table stores payoffs: float32 or float64."""
    best_names: ClassVar[Sequence[str]]
    """The names of the actions that `Decisions.best` counts from 0, as `action_name` gives them;
    none where no row of a tier has anybody who decides alone."""
    smaller: ClassVar[str] = "a smaller board"
    """What makes a board take less memory and disk, for people; ends in "would take less"."""

    @abstractmethod
    def tiers(self) -> Sequence[T]:
        """Every tier of the full table, children first, such that walking it needs few at once."""

    @abstractmethod
    def children(self, tier: T) -> Sequence[T]:
        """The tiers of the table that `tier` reads."""

    @abstractmethod
    def tier_number(self, tier: T) -> int:
        """The tier as a number below 2**24, the same whatever the frontier; part of the key."""

    @abstractmethod
    def tier_fields(self, tier: T) -> dict[str, int]:
        """The columns that are constant in the tier, in order: they name its folder. Every tier of
        a game has the same ones; none where the game is one tier, which then needs no folder."""

    @abstractmethod
    def tier_name(self, tier: T) -> str:
        """A short name for people."""

    @abstractmethod
    def shape(self, tier: T) -> tuple[int, ...]:
        """The shape of the tier's payoffs as the kernel keeps them: float64."""

    @abstractmethod
    def rows(self, tier: T) -> int:
        """How many states the tier has."""

    @abstractmethod
    def block_rows(self, tier: T) -> int:
        """Rows that a row group of the table should hold a multiple of (columns repeat in it)."""

    def take_tally(self, tier: T, part: int) -> dict[str, float]:
        """What `solve_tier` counted of a part that it has just solved in this process, by name;
        names that begin with "worst" are maxima, the others sums. Taken once."""
        return {}

    def tier_seconds(self, tier: T) -> float:
        """Predicted seconds of one core in `solve_tier` for all parts; 18 ns a row if not known."""
        return 18e-9 * self.rows(tier)

    def compile(self) -> None:
        """Compile what `solve_tier` and the tables need, if this machine has not yet."""

    def parts(self, tier: T) -> Sequence[tuple[int, int]]:
        """The rows [start, stop) of each part of the tier that one worker is handed; all rows.

        A tier of several parts keeps its payoffs with the row as the first axis of `shape`; parts
        begin on block bounds and do not depend on the number of workers.
        """
        return ((0, self.rows(tier)),)

    @abstractmethod
    def solve_tier(
        self,
        tier: T,
        out: Floats,
        fetch: Callable[[T], Floats],
        stop: Callable[[], bool],
        part: int = 0,
        decisions: Decisions | None = None,
    ) -> float:
        """Fill `out` from the child tiers; `fetch(child)` has `shape(child)`.

        `out` has `shape(tier)`, or for one of several parts that part's rows only. Returns a bound
        on |out - exact|: what float64 sums lose, or the gap of a certified fixed point. `decisions`
        are filled too where given, ties decided by the rules' tolerance; `out` is the same.

        Raises Stopped soon after `stop()` turns true.
        """

    @abstractmethod
    def payoff_rows(
        self, tier: T, payoffs: Floats, start: int, stop: int
    ) -> list[NDArray[np.floating[Any]]]:
        """Rows [start, stop) of what `solve_tier` left in `out`, a column of `payoff_type` a
        player; start and stop on block bounds, counted from the part's first row."""

    @abstractmethod
    def state_rows(self, tier: T, start: int, stop: int) -> Mapping[str, NDArray[np.int32] | Coded]:
        """The state columns that are not constant, of rows [start, stop), as `table_columns`."""

    def kernel_payoffs(self, tier: T, columns: Sequence[Floats]) -> Floats:
        """What `solve_tier` left in `out`, from the stored columns of whole parts: the inverse of
        `payoff_rows` where `payoff_type` is float64. Here: the payoffs of player 1."""
        found: Floats = np.ascontiguousarray(columns[0])
        return found

    @abstractmethod
    def acting_rows(self, tier: T, start: int, stop: int) -> NDArray[np.int8]:
        """Who acts in rows [start, stop), on block bounds: the player from 1, 0 where nobody does
        or both choose at once. Not to be written to."""

    @abstractmethod
    def locate(self, states: Ints) -> tuple[Ints, Ints]:
        """(tier number, row) of states (n, fields); tier -1 where a state is over."""

    def swapped(self, states: Ints) -> NDArray[np.bool_]:
        """(n,) whether the row of a state (`locate`) holds the payoffs of a game of two with the
        players swapped."""
        return np.zeros(len(states), bool)

    @abstractmethod
    def states_at(self, tier: T, rows: Ints) -> Ints:
        """The states, int64 (n, fields), at rows of a tier; the inverse of `locate`."""

    @abstractmethod
    def why_outside(self, state: Ints) -> str | None:
        """Why the full table does not hold a canonical state, after "is"; None if it does."""

    def tier_of_number(self) -> dict[int, T]:
        """The table's tiers by number."""
        return {self.tier_number(tier): tier for tier in self.tiers()}
