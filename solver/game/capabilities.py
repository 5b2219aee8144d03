"""Capabilities: features that only some games or boards have.

`Rules.capabilities` lists them for each board. `Game.need(FullTable)` returns a capability or
raises an error; `Game.get` returns it or None. One more capability is in `solver.game.groups`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.board import registry
from luckbase.solver.errors import GameError, OptionError, StateError
from luckbase.solver.game.arrays import Best, Coded, Floats, Ints, Runs
from luckbase.solver.game.fields import State
from luckbase.solver.game.game import Game
from luckbase.solver.game.rules import Capability
from luckbase.solver.sentences import fields, listed, nearest, on_command_line, option, shorten

if TYPE_CHECKING:
    from luckbase.solver.charts import Chart, ChartRequest, Kind, Lookup, Search
    from luckbase.solver.scene import Group, Scene

T = TypeVar("T")
CERTIFIED_GAP = 1e-6
"""Of the range of payoffs: the certified bounds of a cycle are closer than this."""
EXAMPLES = 3
"""The number of example states in an error."""


class FullTable(Capability, ABC, Generic[T]):
    """The states of a game laid out in tiers, so that a full table of it can be solved.

    The abstract methods define the tiers, their rows and the kernel that fills them. The others
    are correct for any game; override them to solve faster or in parts. `T` is the game's type of
    tier (hashable, ordered). A layout is made from a game and pickled as one.
    """

    missing: ClassVar[str] = (
        "has no tiers, so there is no full table to plan; luckbase solve searches what lies below "
        "its start, or below {start}"
    )

    smaller: ClassVar[str] = "a smaller board"
    """What makes a board need less memory and disk; completes "… would take less"."""

    left_out: ClassVar[Mapping[str, str]] = {}
    """Columns that are 0 in every row -> a sentence on where other values are answered."""

    payoff_type: type[np.floating[Any]] = np.float32
    """The type in which a table stores payoffs: float32 or float64."""
    best_names: ClassVar[Sequence[str]]
    """The names of the actions that `Best` counts from 0, as `action_name` returns them; empty if
    no player decides alone."""

    @abstractmethod
    def tiers(self) -> Sequence[T]:
        """Return every tier of the full table, children first, so that few are needed at once."""

    @abstractmethod
    def children(self, tier: T) -> Sequence[T]:
        """Return the tiers of the table that `tier` reads."""

    @abstractmethod
    def tier_number(self, tier: T) -> int:
        """Return the tier's number, below 2**24 and the same for any frontier; part of the key."""

    @abstractmethod
    def tier_fields(self, tier: T) -> dict[str, int]:
        """Return the columns that are constant in the tier, in order, the same for every tier; they
        name its folder. A game of one tier may have none and needs no folder."""

    @abstractmethod
    def tier_name(self, tier: T) -> str:
        """Return a short name for people."""

    @abstractmethod
    def rows(self, tier: T) -> int:
        """Return the number of states in the tier."""

    def shape(self, tier: T) -> tuple[int, ...]:
        """Return the shape of the kernel's float64 payoffs of the tier; by default one a row."""
        return (self.rows(tier),)

    def block_rows(self, tier: T) -> int:
        """Return after how many rows columns repeat; row groups hold a multiple of it."""
        return 1

    @abstractmethod
    def solve_tier(
        self,
        tier: T,
        out: Floats,
        fetch: Callable[[T], Any],
        stop: Callable[[], bool],
        part: int = 0,
        best: Best | None = None,
    ) -> float:
        """Fill `out` from the child tiers; `fetch(child)` has `shape(child)`.

        out: shape `shape(tier)`; if the tier has several parts, only the part's rows.
        best: filled too if given; ties follow the rules' tolerance, and `out` is unaffected.

        Returns a bound on |out - exact|: the rounding of float64 sums, or the gap of a certified
        fixed point. Raises Stopped soon after `stop()` becomes true.
        """

    def most_error(self, tier: T) -> float:
        """Return the largest bound that `solve_tier` may return for a tier."""
        return most_search_error(self.game)

    def payoff_rows(
        self, tier: T, payoffs: Floats, start: int, stop: int
    ) -> list[NDArray[np.floating[Any]]]:
        """Return rows [start, stop) of the `out` of `solve_tier`, on block bounds and counted from
        the part's first row: one column for each player. By default `out` has those of player 1,
        and two payoffs add up to the least and the greatest one."""
        first = payoffs[start:stop]
        columns = [first, sum(self.game.payoff_range) - first][: self.game.players]
        return [column.astype(self.payoff_type) for column in columns]

    @abstractmethod
    def acting_rows(self, tier: T, start: int, stop: int) -> NDArray[np.int8]:
        """Return who acts in rows [start, stop), on block bounds, read only: the player from 1; 0
        if no player acts or both choose at once."""

    @abstractmethod
    def locate(self, states: Ints) -> tuple[Ints, Ints]:
        """Return (tier number, row) of states (n, fields). The tier is -1 if a state is terminal,
        and -2 if it has no row but its payoff is one step of the rules away."""

    @abstractmethod
    def states_at(self, tier: T, rows: Ints) -> Ints:
        """Return the states, int64 (n, fields), at rows of a tier; the inverse of `locate`."""

    def __init__(self, game: Game) -> None:
        self.game = game
        self.threads = 1

    def __reduce__(self) -> tuple[Any, ...]:
        return Game.need, (self.game, FullTable)

    def tier_of_number(self) -> dict[int, T]:
        """Return the table's tiers by number."""
        return {self.tier_number(tier): tier for tier in self.tiers()}

    def tier_seconds(self, tier: T) -> float:
        """Return the predicted core seconds of `solve_tier`, all parts; by default 18 ns a row."""
        return 18e-9 * self.rows(tier)

    def compile(self) -> None:
        """Compile the functions that `solve_tier` and the tables need, unless they are cached."""

    def parts(self, tier: T) -> Sequence[tuple[int, int]]:
        """Return the rows [start, stop) of each part that one worker solves; by default one part.

        The row is the first axis of `shape` if there are several. Parts begin on block bounds and
        do not depend on the number of workers.
        """
        return ((0, self.rows(tier)),)

    def most_threads(self, tier: T) -> int:
        """Return how many of `threads` threads `solve_tier` can use for the tier at once."""
        return 1

    def kernel_planes(self, tier: T) -> Sequence[int]:
        """Return the players, from 0, whose payoffs `solve_tier` leaves in `out`, one player after
        another; -1 for zeros. The inverse of `payoff_rows` if `payoff_type` is float64."""
        return (0,)

    def state_rows(
        self, tier: T, start: int, stop: int
    ) -> Mapping[str, NDArray[np.integer[Any]] | Coded | Runs]:
        """Return the state columns that vary, of rows [start, stop), as `table_columns` does."""
        columns = self.game.table_columns(self.states_at(tier, np.arange(start, stop)))
        constant = self.tier_fields(tier)
        return {name: column for name, column in columns.items() if name not in constant}

    def swapped(self, states: Ints) -> NDArray[np.bool_]:
        """Return whether each state's row (`locate`) has two players' payoffs swapped: (n,)."""
        return np.zeros(len(states), bool)

    def why_outside(self, state: Ints) -> str | None:
        """Return why the full table lacks a canonical state, to follow "is"; None if it has it."""
        return None

    def opening_questions(self) -> Iterator[tuple[str, dict[str, object]]]:
        """Yield (title, state in words) of a few instructive states of the full table."""
        return iter(())


class DecisionLayout(Capability, ABC, Generic[T]):
    """An order of tiers that keeps few payoffs in memory at a time, for the best actions beyond the
    frontier. At most one tier reads another in full, as its `below`; others read its *boundary*: a
    few of its payoffs in a flat array."""

    missing: ClassVar[str] = "has no order of tiers in which decisions alone can be kept"

    layout: FullTable[T]
    """The tiers, to the depth of the decisions."""

    @abstractmethod
    def tiers(self) -> Sequence[T]:
        """Return every tier, children first."""

    @abstractmethod
    def is_decided(self, tier: T) -> bool:
        """Return whether a table stores the best actions of a tier without its payoffs."""

    @abstractmethod
    def below(self, tier: T) -> T | None:
        """Return the tier that a tier reads in full, or None."""

    @abstractmethod
    def boundaries_read(self, tier: T) -> Sequence[T]:
        """Return the tiers whose boundaries a tier reads."""

    @abstractmethod
    def boundary_size(self, tier: T) -> int:
        """Return the number of payoffs in the boundary of a tier."""

    @abstractmethod
    def take_boundary(self, tier: T, payoffs: Floats, out: Floats) -> None:
        """Copy the boundary of a tier from its payoffs."""

    @abstractmethod
    def solve_tier(
        self, tier: T, out: Floats, below: Floats | None, boundaries: Mapping[T, Floats],
        stop: Callable[[], bool], best: Best | None,
    ) -> float:  # fmt: skip
        """As `FullTable.solve_tier`, from the payoffs of `below` and the boundaries of
        `boundaries_read`."""

    @abstractmethod
    def compile(self) -> None:
        """Compile the functions that `solve_tier` calls, before its first call."""


Fact = tuple[str, str, float]
"""(agent, description, number): one line that ``luckbase evaluate`` prints."""


@dataclass(frozen=True)
class Agents(Capability):
    """Players by name, how they see the game, and numbers of their games; all parts are optional.

    by_name: an `Agent`, or a `solver.policies.agents.Policy`. Every game also has `optimal`,
        `best-response` and `random`.
    choices: function (state (fields,), its actions) -> the list from which an agent chooses. It may
        list an action twice, as for two equal dice.
    check: raises OptionError, without solving anything, if this board cannot have the named agent.
    seconds: roughly how long an agent works before its first move.
    from_start: function from agents by name to their exact payoffs from the game's start, faster
        than by following every state; it may return None.
    facts: more results of that faster way about these agents.

    ends, events: the numbers, other than payoffs, that ``luckbase evaluate --games`` counts.
        ends: by name, a function of terminal states (n, fields): a number or truth value of the
        game (n,) or of each player (n, players). events: by name, a function of steps of a game:
        the states (m, fields), the actions (m,), -1 if no player acts, and the next states. It
        returns which steps are the event, bool (m,).

    plain, detailed: the game in two forms with the same payoffs. Plain states leave out whatever
        changes no value, as tables do; detailed states contain all that a person sees, for agents.
    simplify: function from detailed states to plain ones (n, fields); by default their first
        columns.
    as_seen_by: if two choose at once: a state (fields,) as a player, from 0, sees it, with
        themselves first. It is its own inverse.
    choice_names: the names of the `count` ascending actions of a player at a state in words, in the
        player's own terms, not the canonical ones; by default as in the rules.
    """

    by_name: Mapping[str, Any] = field(default_factory=dict)
    choices: Callable[[Ints, list[int]], list[int]] = lambda state, actions: actions
    check: Callable[[Game, str], None] = lambda game, name: None
    seconds: Callable[[Game, str], float] = lambda game, name: 0.0
    from_start: Callable[[Game, Sequence[str]], tuple[float, ...] | None] = lambda game, names: None
    facts: Callable[[Game, Sequence[str]], list[Fact]] = lambda game, names: []
    ends: Mapping[str, Callable[[Ints], NDArray[Any]]] = field(default_factory=dict)
    events: Mapping[str, Callable[[Ints, Ints, Ints], NDArray[np.bool_]]] = field(
        default_factory=dict
    )
    plain: Callable[[], Game] | None = None
    detailed: Callable[[], Game] | None = None
    simplify: Callable[[Ints], Ints] | None = None
    as_seen_by: Callable[[int, Ints], Ints] = lambda player, state: state
    choice_names: Callable[[Mapping[str, object], int, int], list[str]] | None = None


class Charts(Capability, ABC):
    """Charts of a full table.

    kinds: the charts, the default first.
    searches: rows of the table that are worth looking for.
    """

    missing: ClassVar[str] = "has no charts; luckbase query answers by state"
    kinds: Sequence[Kind]
    searches: Sequence[Search] = ()

    @abstractmethod
    def make(self, name: str, lookup: Lookup, request: ChartRequest) -> Chart:
        """Return the chart of this name, one of `kinds`.

        lookup: raises MissingTableError for missing states if the kind needs only part of the
            table.

        Raises OptionError for a request that the chart does not support, StateError for unknown
        fields.
        """


@dataclass(frozen=True)
class Drawing(Capability):
    """How a game is drawn; each part may be left out.

    scene: draws a state from values (fields,) in people's units, canonical or not, that
        `Game.parse` accepts.
    outcome_names: the names of chance outcomes ("whammy", "a 1: the turn is lost"), given a state
        (fields,), an action and all states (n, fields) that it leads to; None if the two states do
        not show what happened.
    positions: states (n, fields) that a picture of the full game includes even if no play reaches
        them.
    equally_likely: the number of equally likely outcomes of every chance event (36 rolls).
    note: sentences about the names of outcomes.
    backdrop: the shapes below every scene.
    """

    scene: Callable[[Ints], Scene] | None = None
    outcome_names: Callable[[Ints, int, Ints], list[str | None]] = lambda state, action, children: (
        [None] * len(children)
    )
    positions: Callable[[], Ints] | None = None
    equally_likely: int = 0
    note: str = ""
    backdrop: Callable[[], Group] | None = None


@dataclass(frozen=True)
class Position:
    """A position of a game that was described in words.

    names: of the players, in turn order.
    values: int64 (fields,), in people's units, as exact as given.
    state: canonical (fields,), in the board's units.
    up: the player who acts, from 0; -1 if the game is over.
    assumed: things that were left out, in words, such as ``Ed's dollars``; each counts as 0.
    """

    names: tuple[str, ...]
    values: Ints
    state: Ints
    up: int
    assumed: tuple[str, ...] = ()


class Event(NamedTuple):
    """An event that a line describes: the action taken, and the line in full."""

    action: int
    text: str


class Follow(Capability, ABC):
    """Reads a game that people describe line by line.

    A game implements the abstract members. All raise StateError for impossible input, with a
    correction.
    """

    missing: ClassVar[str] = "cannot be followed in words; luckbase query answers by state"

    @property
    @abstractmethod
    def words(self) -> Sequence[tuple[str, str]]:
        """Examples of lines to copy, each with its meaning."""

    @abstractmethod
    def begin(self, text: str) -> Position | None:
        """Return the position of a line that describes every player; None for another line."""

    @abstractmethod
    def place(self, names: Sequence[str], state: Ints) -> Position:
        """Return the position of a canonical state (fields,)."""

    @abstractmethod
    def next(self, at: Position, player: int, text: str) -> tuple[Event, Position]:
        """Return the event of a player, from 0, and the position after it; text: the rest."""

    @abstractmethod
    def desk(self, at: Position, player: int) -> str:
        """Return a player's holdings, in the form that `begin` accepts after their name."""

    @abstractmethod
    def lines(self, at: Position) -> Iterator[str]:
        """Yield everything that can happen next, one line each."""

    def on_grid(self, at: Position) -> Position:
        """Return a position of another grid of the board with its state on the grid of this one."""
        return at

    def note(self, at: Position) -> str:
        """Return what a person should know about a position's state, or ""."""
        return ""

    def neighbors(self, at: Position) -> tuple[Floats, Ints, str]:
        """Return weights (k,), canonical states (k, fields) around a position, and a description.

        The weights add up to 1. A description is ``Ed between $5,250 and $5,500``.
        """
        return np.ones(1), at.state.reshape(1, -1), ""

    def say(self, at: Position) -> str:
        """Return the position as a line that `begin` accepts."""
        return "; ".join(f"{name} {self.desk(at, i)}" for i, name in enumerate(at.names))

    def read(self, at: Position, line: str) -> tuple[Event, Position]:
        """Return the event that a line describes, and the position after it."""
        words = line.split()
        for k in range(len(words), 0, -1):
            whole = [name.lower() for name in at.names]
            if (said := " ".join(words[:k]).lower()) in whole or k == 1:
                player = self.player(at, said if said in whole else words[0])
                return self.next(at, player, " ".join(words[k:]))
        raise StateError("expected a name, and what happened")

    def player(self, at: Position, text: str) -> int:
        """Return the player, from 0, with this name or beginning of a name."""
        said = text.strip().lower()
        known = [name.lower() for name in at.names]
        meant = [i for i, name in enumerate(known) if name == said]
        meant = meant or [i for i, name in enumerate(known) if name.startswith(said)]
        if len(meant) == 1:
            return meant[0]
        if meant:
            which = " or ".join(at.names[i] for i in meant)
            raise StateError(f"'{shorten(text, 40)}' can be {which}; write more of the name")
        close = get_close_matches(said, known, n=1, cutoff=0.5)
        hint = f"; did you mean '{at.names[known.index(close[0])]}'?" if close else ""
        expected = f"{', '.join(at.names[:-1])} or {at.names[-1]}"
        raise StateError(f"unknown player '{shorten(text, 40)}'; expected {expected}{hint}")


def most_search_error(game: Game) -> float:
    """Return the largest bound on the error of payoffs that a search may leave; infinite if the
    game does not declare its range of payoffs."""
    low, high = game.payoff_range
    return game.cut_error + game.float64_error + CERTIFIED_GAP * (high - low)


def rounding(layout: FullTable[Any]) -> float:
    """Return the largest error of storing a payoff: half a unit in the last place of the type."""
    known = layout.game.known_range
    if known is None and layout.payoff_type is not np.float64:
        raise GameError(
            f"{registry.author_name(layout.game.board.game)}: a table of payoffs in float32 needs "
            "Rules(payoff_range=(least, most)), which bounds their rounding"
        )
    largest = max(abs(bound) for bound in known or (1.0,))
    return 0.0 if layout.payoff_type is np.float64 else 2.0 ** (np.ceil(np.log2(largest)) - 25)


def agents_of(game: Game) -> Mapping[str, Any]:
    """Return the game's own agents by name."""
    return game.own(Agents).by_name


def plain(game: Game) -> Game:
    """Return the form of the game whose states leave out whatever changes no value."""
    form = game.own(Agents).plain
    return game if form is None else form()


def detailed(game: Game) -> Game:
    """Return the form of the game whose states contain all that a person at the table sees."""
    form = game.own(Agents).detailed
    return game if form is None else form()


def simplify(game: Game, states: Ints) -> Ints:
    """Return plain states (n, fields) from states of the detailed game."""
    plain = game.own(Agents).simplify
    return np.ascontiguousarray(states[:, : game.field_count]) if plain is None else plain(states)


def choice_names(
    game: Game, words: Mapping[str, object], player: int, numbers: Sequence[int]
) -> list[str]:
    """Return the names of a player's choices, ascending, at a simultaneous state in words."""
    own, actions = game.own(Agents).choice_names, game.rules.actions
    if own is not None:
        return own(words, player, len(numbers))
    named = callable(actions) or numbers[-1] < len(actions)
    return [game.action_name(number) if named else str(number) for number in numbers]


def first_state(game: Game) -> Ints:
    """Return the canonical state (fields,) in which a play begins.

    Raises OptionError, with a few states to copy, if the user must give it.
    """
    start, known = game.start(), states_to_copy(game)
    if start is not None or not known:
        return game.needed_start()
    raise OptionError(f"{game.no_start}; say where to start, as {known}")


def states_to_copy(game: Game) -> str:
    """Return the option `start` with a few states of a full table, for an error, or ""."""
    layout, examples = game.get(FullTable), []
    for title, state in [] if layout is None else islice(layout.opening_questions(), EXAMPLES):
        in_python = str({name: listed(value) for name, value in state.items()})
        examples.append(f"{on_command_line(fields(state), in_python)} ({title})")
    as_typed = f"{option('start')}{on_command_line(' ', '=')}"
    return as_typed + "; or ".join(examples) if examples else ""


def choose_chart(game: Game, name: str | None) -> Kind:
    """Return the game's chart of that name, or the default. Raises OptionError with the list."""
    kinds = game.need(Charts).kinds
    for kind in kinds:
        if name in (None, kind.name):
            return kind
    known = "; ".join(f"{kind.name}, {kind.shows}" for kind in kinds)
    hint = nearest(str(name), [kind.name for kind in kinds], "")
    sentence = f"'{name}' is not a chart of {game.board.game}; {hint or f'expected: {known}'}"
    raise OptionError(on_command_line("--what: ", "chart: ") + sentence)


def scene_of(game: Game, words: State) -> Scene:
    """Draw a state in words, with the cards that were named, not the canonical ones.

    Raises StateError as `Game.parse` does.
    """
    values = game.fields.read(words)
    game.canonical_states(values)
    return scene_at(game, values)


def scene_at(game: Game, values: Ints) -> Scene:
    """Draw the state of values (fields,) in people's units, which must be valid."""
    draw = game.own(Drawing).scene
    if draw is None:
        from luckbase.solver.scene import plain_scene

        return plain_scene(game.fields, values.tolist(), game.board.game)
    return draw(values)


def position_of(game: Game, text: str) -> Position | None:
    """Return the position that a sentence such as ``Ed 5000, 2 spins; Peter 8000`` describes.

    None for fields (``mine=0``), or if the game reads no sentences. Raises StateError.
    """
    if "=" in text or not text.strip() or Follow not in game.rules.capabilities:
        return None
    words = game.need(Follow)
    position = words.begin(text)
    if position is None:
        raise StateError(
            f"'{shorten(text, 40)}' is not FIELD=VALUE, as {game.fields.example}, and does not say "
            f"who has what, as {words.words[0][0]}"
        )
    return position


def state_of(game: Game, state: State) -> Ints:
    """Return the state (fields,) that fields or a sentence (`position_of`) describe. Raises
    StateError."""
    position = position_of(game, state) if isinstance(state, str) else None
    return game.parse(state) if position is None else position.state
