"""The one tier of a race: every state of Skunk, or of the Pig that is a race.

A score can fall back to 0 and every state can reach every other, so there is one tier. Its rows
stand in the order of (player, mine, yours, turn), and there is a row for every state with
mine + turn < goal, also for those that no play comes to (a turn of 1 point with two dice).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.errors import StateError
from luckbase.solver.game.arrays import Decisions, Floats, Ints, kernel_arrays
from luckbase.solver.game.capabilities import Layout
from luckbase.solver.game.game import Game
from luckbase.solver.games.skunk import kernel
from luckbase.solver.games.skunk.board import Rules

TOLERANCE = 1e-9
"""A table whose bound on the error is larger is refused; goal 200 has 1e-10."""

Question = tuple[str, tuple[float, float, float]]
"""What it shows; mine, yours and turn as shares of the goal."""


class Race(Layout[int]):
    """One tier, number 0. options: the board's rules, in Skunk's words."""

    payoff_type: type[np.floating[Any]] = np.float64
    best_names: ClassVar[tuple[str, ...]] = ("hold", "roll")
    smaller: ClassVar[str] = "a lower goal"

    def __init__(self, game: Game, options: Rules, questions: Sequence[Question] = ()) -> None:
        super().__init__(game)
        self.options, self.goal, self.questions = options, options.goal, questions
        self.ints, self.tie_tolerance = game.numbers.ints, game.tie_tolerance

    def tiers(self) -> Sequence[int]:
        return (0,)

    def children(self, tier: int) -> Sequence[int]:
        return ()

    def tier_number(self, tier: int) -> int:
        return 0

    def tier_fields(self, tier: int) -> dict[str, int]:
        return {}  # no field of a state is constant in the one tier there is

    def tier_name(self, tier: int) -> str:
        return f"goal {self.goal}"

    def shape(self, tier: int) -> tuple[int, ...]:
        return (self.rows(tier),)

    def rows(self, tier: int) -> int:
        return self.goal * self.goal * (self.goal + 1)

    def block_rows(self, tier: int) -> int:
        return 1

    def solve_tier(
        self,
        tier: int,
        out: Floats,
        fetch: Callable[[int], Floats],
        stop: Callable[[], bool],
        part: int = 0,
        decisions: Decisions | None = None,
    ) -> float:
        V = np.full((self.goal, self.goal), 0.5)
        kernel.solve(self.ints, V, stop=stop)
        kernel.fill(self.ints, V, out, self.tie_tolerance, *kernel_arrays(decisions))
        bound = kernel.certify(self.ints, out)
        if not bound <= TOLERANCE:
            raise StateError(
                f"the values at goal {self.goal} are certain to {bound:.2g} only, and "
                f"{TOLERANCE:.2g} is asked for; take a lower goal"
            )
        return bound

    def payoff_rows(
        self, tier: int, payoffs: Floats, start: int, stop: int
    ) -> list[NDArray[np.floating[Any]]]:
        return [payoffs[start:stop], 1.0 - payoffs[start:stop]]

    def acting_rows(self, tier: int, start: int, stop: int) -> NDArray[np.int8]:
        acting = np.full(stop - start, 1, np.int8)
        acting[max(self.rows(tier) // 2 - start, 0) :] = 2
        return acting

    def locate(self, states: Ints) -> tuple[Ints, Ints]:
        mine, yours, turn, player = np.asarray(states, np.int64).reshape(-1, 4).T
        over = mine + turn >= self.goal
        rows = self._starts[np.minimum(mine, self.goal)] + yours * (self.goal - mine) + turn
        rows += (player - 1) * (self.rows(0) // 2)
        return np.where(over, -1, 0), np.where(over, -1, rows)

    def states_at(self, tier: int, rows: Ints) -> Ints:
        player, rest = np.divmod(np.asarray(rows, np.int64), self.rows(0) // 2)
        mine = np.searchsorted(self._starts, rest, side="right") - 1
        yours, turn = np.divmod(rest - self._starts[mine], self.goal - mine)
        return np.column_stack([mine, yours, turn, player + 1])

    @cached_property
    def _starts(self) -> Ints:
        """The first row of each `mine` in a player's half, 0 to the goal."""
        mine = np.arange(self.goal + 1)
        starts: Ints = self.goal * (mine * self.goal - mine * (mine - 1) // 2)
        return starts

    def opening_questions(self) -> Iterator[tuple[str, dict[str, object]]]:
        for title, shares in self.questions:
            numbers = (int(share * self.goal) for share in shares)
            yield title, dict(zip(("mine", "yours", "turn"), numbers, strict=True))


def race_of(game: Game) -> Race:
    """The layout of a game's race. Raises OptionError for a board whose plays may not end."""
    found = game.need(Layout)
    assert isinstance(found, Race)
    return found
