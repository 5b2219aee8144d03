"""What only some games have: each capability is small, named, and asked for where it is needed.

`Game.need(Layout)` gives the one that a game has on its board, or refuses in a sentence; `Game.get`
gives None. Which there are is said in `Rules.capabilities`, by board, not by class. (What people
group decisions by is one too: `solver.game.groups`.)
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
from luckbase.solver.game.arrays import Coded, Decisions, Floats, Ints, Runs
from luckbase.solver.game.fields import State
from luckbase.solver.game.game import Game
from luckbase.solver.game.rules import Capability
from luckbase.solver.sentences import fields, listed, on_command_line, option, shorten

if TYPE_CHECKING:
    from luckbase.solver.charts import Chart, ChartRequest, Kind, Lookup, Search
    from luckbase.solver.scene import Group, Scene

T = TypeVar("T")
EXAMPLES = 3
"""States to copy that a sentence names."""


class Layout(Capability, ABC, Generic[T]):
    """The states of a game laid out in tiers, so that a full table of it can be solved: the tiers,
    their rows, and what fills them. What is not abstract it may give besides, to be solved faster
    or in parts: as it is, it is right for any.

    `T` is the game's type of tier (hashable, ordered). Made of a game; picklable as one.
    """

    missing: ClassVar[str] = (
        "has no tiers, so there is no full table to plan; luckbase solve searches what lies below "
        "its start, or below {start}"
    )

    smaller: ClassVar[str] = "a smaller board"
    """What makes a board take less memory and disk, for people; ends in "would take less"."""

    left_out: ClassVar[Mapping[str, str]] = {}
    """Columns of states that are 0 in every row, and a sentence: where others are answered."""

    payoff_type: type[np.floating[Any]] = np.float32
    """How a table stores payoffs: float32 or float64."""
    best_names: ClassVar[Sequence[str]]
    """The names of the actions that `Decisions.best` counts from 0, as `action_name` gives them;
    none where no row of a tier has anybody who decides alone."""

    @abstractmethod
    def tiers(self) -> Sequence[T]:
        """Every tier of the full table, children first, such that few are needed at once."""

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
    def rows(self, tier: T) -> int:
        """How many states the tier has."""

    def shape(self, tier: T) -> tuple[int, ...]:
        """The shape of the tier's payoffs as the kernel keeps them, float64: here one a row."""
        return (self.rows(tier),)

    def block_rows(self, tier: T) -> int:
        """Rows that a row group of the table should hold a multiple of (columns repeat in it)."""
        return 1

    @abstractmethod
    def solve_tier(
        self,
        tier: T,
        out: Floats,
        fetch: Callable[[T], Any],
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
    def acting_rows(self, tier: T, start: int, stop: int) -> NDArray[np.int8]:
        """Who acts in rows [start, stop), on block bounds: the player from 1, 0 where nobody does
        or both choose at once. Not to be written to."""

    @abstractmethod
    def locate(self, states: Ints) -> tuple[Ints, Ints]:
        """(tier number, row) of states (n, fields); tier -1 where a state is over, -2 where it has
        no row and its payoff is a step of the rules away."""

    @abstractmethod
    def states_at(self, tier: T, rows: Ints) -> Ints:
        """The states, int64 (n, fields), at rows of a tier; the inverse of `locate`."""

    def __init__(self, game: Game) -> None:
        self.game = game
        self.threads = 1

    def __reduce__(self) -> tuple[Any, ...]:
        return Game.need, (self.game, Layout)

    def tier_of_number(self) -> dict[int, T]:
        """The table's tiers by number."""
        return {self.tier_number(tier): tier for tier in self.tiers()}

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

    def most_threads(self, tier: T) -> int:
        """How many threads `solve_tier` can use for the tier at once, of `threads`."""
        return 1

    def solve_whole(
        self, tier: T, out: Floats, fetch: Callable[[T], Floats], stop: Callable[[], bool],
        decisions: Decisions | None = None,
    ) -> float:  # fmt: skip
        """As `solve_tier`, all parts of the tier one after the other."""
        parts, error = self.parts(tier), 0.0
        for part, (start, last) in enumerate(parts):
            rows, part_decisions = out, decisions
            if len(parts) > 1:
                rows, part_decisions = out[start:last], decisions and decisions.between(start, last)
            error = max(error, self.solve_tier(tier, rows, fetch, stop, part, part_decisions))
        return error

    def kernel_planes(self, tier: T) -> Sequence[int]:
        """The players, from 0, whose payoffs `solve_tier` leaves in `out`, those of all rows of a
        part one after the other; -1 for zeros. The inverse of `payoff_rows` where `payoff_type` is
        float64. Here: player 1's alone."""
        return (0,)

    def state_rows(
        self, tier: T, start: int, stop: int
    ) -> Mapping[str, NDArray[np.integer[Any]] | Coded | Runs]:
        """The state columns that are not constant, of rows [start, stop), as `table_columns`."""
        columns = self.game.table_columns(self.states_at(tier, np.arange(start, stop)))
        constant = self.tier_fields(tier)
        return {name: column for name, column in columns.items() if name not in constant}

    def swapped(self, states: Ints) -> NDArray[np.bool_]:
        """(n,) whether the row of a state (`locate`) holds the payoffs of a game of two with the
        players swapped."""
        return np.zeros(len(states), bool)

    def why_outside(self, state: Ints) -> str | None:
        """Why the full table does not hold a canonical state, after "is"; None if it does."""
        return None

    def opening_questions(self) -> Iterator[tuple[str, dict[str, object]]]:
        """(what it shows, the state in words) of a few instructive states of the full table."""
        return iter(())


class DecisionLayout(Capability, ABC, Generic[T]):
    """An order of tiers in which few payoffs are in memory at a time. In this order tiers beyond
    those whose payoffs are stored are solved for their best actions alone.

    One other tier, `below`, reads all payoffs of a tier; others read its *face*, a few of them in a
    flat array.
    """

    missing: ClassVar[str] = "has no order of tiers in which decisions alone can be kept"

    layout: Layout[T]
    """The tiers, to the depth of the decisions."""

    memory_type: type[np.floating[Any]] = np.float64
    """The type of the payoffs in memory during the solve: float32 or float64. With float32,
    `decision_error` bounds each decision."""

    @abstractmethod
    def tiers(self) -> Sequence[T]:
        """Every tier, children first."""

    @abstractmethod
    def is_decided(self, tier: T) -> bool:
        """Whether a table stores the best actions of a tier without its payoffs."""

    @abstractmethod
    def below(self, tier: T) -> T | None:
        """The tier that a tier reads whole; None for none."""

    @abstractmethod
    def faces_read(self, tier: T) -> Sequence[T]:
        """The tiers whose faces a tier reads."""

    @abstractmethod
    def face_size(self, tier: T) -> int:
        """How many payoffs the face of a tier has."""

    @abstractmethod
    def take_face(self, tier: T, payoffs: Floats, out: Floats) -> None:
        """Copy the face of a tier from its payoffs."""

    @abstractmethod
    def solve_tier(
        self, tier: T, out: Floats, below: Floats | None, faces: Mapping[T, Floats],
        stop: Callable[[], bool], decisions: Decisions | None,
    ) -> float:  # fmt: skip
        """As `Layout.solve_tier`, from the payoffs of `below` and the faces of `faces_read`."""

    @abstractmethod
    def compile(self) -> None:
        """Compile what `solve_tier` calls, ahead of its first call."""

    @abstractmethod
    def decision_error(self, tier: T) -> float:
        """Return a bound on what a stored decision loses against the best action; 0 for payoffs of
        float64."""


Fact = tuple[str, str, float]
"""(agent, what the number says, number): one line that ``luckbase evaluate`` prints."""


@dataclass(frozen=True)
class Agents(Capability):
    """Players by name.

    by_name: an `Agent`, or a `solver.policy.agents.Policy`, which decides for many states at once.
        Every game has `optimal`, `best-response` and `random` besides.
    choices: the list from which an agent chooses, given the state (fields,) and its actions, if
        players see one thing twice (two equal dice).
    check: raises OptionError, without solving anything, if this board cannot have the agent of a
        name.
    seconds: about how long an agent works before its first move.
    from_start: the exact payoffs of a profile of agents, by name, from the game's start, if the
        game has a faster way than to follow every state; else None.
    facts: what else that way finds about these agents.
    """

    missing: ClassVar[str] = "has no agents of its own"

    by_name: Mapping[str, Any] = field(default_factory=dict)
    choices: Callable[[Ints, list[int]], list[int]] = lambda state, actions: actions
    check: Callable[[Game, str], None] = lambda game, name: None
    seconds: Callable[[Game, str], float] = lambda game, name: 0.0
    from_start: Callable[[Game, Sequence[str]], tuple[float, ...] | None] = lambda game, names: None
    facts: Callable[[Game, Sequence[str]], list[Fact]] = lambda game, names: []


@dataclass(frozen=True)
class Statistics(Capability):
    """Numbers of a game, beside its payoffs, that ``luckbase evaluate --games`` counts.

    ends: by name, a function of states that are over (n, fields): a number or truth value of the
        game (n,) or of each player (n, players).
    events: by name, a function of steps of a game: the states (m, fields), the actions (m,), -1 if
        nobody acts, and the states that they lead to. It returns which steps are such an event,
        bool (m,); the number of events in a game is counted.
    """

    missing: ClassVar[str] = "counts nothing but payoffs"

    ends: Mapping[str, Callable[[Ints], NDArray[Any]]] = field(default_factory=dict)
    events: Mapping[str, Callable[[Ints, Ints, Ints], NDArray[np.bool_]]] = field(
        default_factory=dict
    )


class Charts(Capability, ABC):
    """What a full table says at a glance. kinds: the charts, the usual one first, each with
    the table that it needs. searches: rows of it that are worth looking for."""

    missing: ClassVar[str] = "has no charts; luckbase query answers by state"
    kinds: Sequence[Kind]
    searches: Sequence[Search] = ()

    @abstractmethod
    def make(self, name: str, lookup: Lookup, request: ChartRequest) -> Chart:
        """The chart of this name, one of `kinds`: a `Heatmap` or `Curves` where its kind is
        a picture, else a `Listing`.

        `lookup` gives the payoffs (n, players) of canonical states (n, fields) that the full table
        holds; of a kind that needs less it raises MissingTableError for what is not held.

        Raises OptionError for what is wanted and this chart does not do, StateError for
        fields that are none of its own.
        """


@dataclass(frozen=True)
class Drawing(Capability):
    """What is drawn of a game; each may be left out.

    scene: a state as the game looks: from values (fields,) in people's units, canonical or not,
    that `Game.parse` takes. outcome_names: what people call what chance brings ("whammy", "a 1: the
    turn is lost"): the names of the states (n, fields) that an action of a state (fields,) leads
    to, all of them; None where the two states do not tell what happened. positions: states (n,
    fields) that a picture of the whole game has though no play may come to them. equally_likely: so
    many equally likely outcomes has every chance event (36 rolls). note: what a person should know
    of the names of outcomes, in sentences. backdrop: what lies below the shapes of every scene.
    """

    missing: ClassVar[str] = "is drawn plainly"

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
    """A position of a game that is told in words.

    names: of the players, in turn order.
    values: int64 (fields,), in people's units, as exact as they were said.
    state: canonical (fields,), in the board's units.
    up: who acts, from 0; -1 if the game is over.
    assumed: what was not said, in words, such as ``Ed's dollars``; it counts as 0.
    """

    names: tuple[str, ...]
    values: Ints
    state: Ints
    up: int
    assumed: tuple[str, ...] = ()


class Event(NamedTuple):
    """What a line says that happened: the action that was taken, and the line in full."""

    action: int
    text: str


class Follow(Capability, ABC):
    """How people tell a game, line by line. Whoever gives it gives `words`, lines with what they
    say, and what stands here without a body; all raise StateError for what can not be, with what
    would be right."""

    missing: ClassVar[str] = "cannot be followed in words; luckbase query answers by state"

    @property
    @abstractmethod
    def words(self) -> Sequence[tuple[str, str]]:
        """Forms of lines to copy, each with what it says."""

    @abstractmethod
    def begin(self, text: str) -> Position | None:
        """The position of a line that says who has what; None of another line."""

    @abstractmethod
    def place(self, names: Sequence[str], state: Ints) -> Position:
        """The position of a canonical state (fields,)."""

    @abstractmethod
    def next(self, at: Position, player: int, text: str) -> tuple[Event, Position]:
        """What happened to a player, from 0, and where that leads; text: without their name."""

    @abstractmethod
    def desk(self, at: Position, player: int) -> str:
        """What a player has, as `begin` takes it after their name and more."""

    @abstractmethod
    def lines(self, at: Position) -> Iterator[str]:
        """All that can happen next, a line each."""

    def note(self, at: Position) -> str:
        """Return what a person should know of a position's state; "" for nothing."""
        return ""

    def neighbors(self, at: Position) -> tuple[Floats, Ints, str]:
        """Return weights (k,) and canonical states (k, fields) between which a position lies, and
        that in words, such as ``Ed between $5,250 and $5,500``. The weights add up to 1."""
        return np.ones(1), at.state.reshape(1, -1), ""

    def say(self, at: Position) -> str:
        """The position as a line that `begin` takes."""
        return "; ".join(f"{name} {self.desk(at, i)}" for i, name in enumerate(at.names))

    def read(self, at: Position, line: str) -> tuple[Event, Position]:
        """What a line says that happened, and where it leads."""
        words = line.split()
        for k in range(len(words), 0, -1):
            whole = [name.lower() for name in at.names]
            if (said := " ".join(words[:k]).lower()) in whole or k == 1:
                player = self.player(at, said if said in whole else words[0])
                return self.next(at, player, " ".join(words[k:]))
        raise StateError("expected a name, and what happened")

    def player(self, at: Position, text: str) -> int:
        """The player, from 0, whom a name or the beginning of one means."""
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


@dataclass(frozen=True)
class View(Capability):
    """What a person at the table sees; each may be left out.

    plain, detailed: the game in two forms with the same payoffs: its states leave out what changes
    no value, as tables do, or say all that a person sees, which agents may look at. simplify: plain
    states (n, fields), from detailed ones; their first columns if not given.

    as_seen_by: where two choose at once, a state (fields,) in the words of a player, from 0, with
    themselves as the first; the way back as well. choice_names: what a person calls the `count`
    actions, ascending, of a player at a state that is given in words: in their own words, not the
    canonical ones; as the rules call them by number if not given (`choice_names`).
    """

    missing: ClassVar[str] = "has one form only"

    plain: Callable[[], Game] | None = None
    detailed: Callable[[], Game] | None = None
    simplify: Callable[[Ints], Ints] | None = None
    as_seen_by: Callable[[int, Ints], Ints] = lambda player, state: state
    choice_names: Callable[[Mapping[str, object], int, int], list[str]] | None = None


def best_array(decisions: Decisions | None) -> NDArray[np.int8]:
    """Return `Decisions.best` for a kernel; an array of size 0 if no decisions are wanted, so that
    the kernel needs one signature."""
    return np.empty(0, np.int8) if decisions is None else decisions.best


def rounding(layout: Layout[Any]) -> float:
    """The most that storing a payoff as the layout's type loses: half a unit in the last place."""
    known = layout.game.known_range
    if known is None and layout.payoff_type is not np.float64:
        raise GameError(
            f"{registry.said(layout.game.board.game)}: a table of payoffs in float32 needs "
            "Rules(payoff_range=(least, most)), which bounds their rounding"
        )
    largest = max(abs(bound) for bound in known or (1.0,))
    return 0.0 if layout.payoff_type is np.float64 else 2.0 ** (np.ceil(np.log2(largest)) - 25)


def agents_of(game: Game) -> Mapping[str, Any]:
    """The game's own agents by name."""
    return game.own(Agents).by_name


def plain(game: Game) -> Game:
    """The game with the same payoffs whose states leave out what changes no value."""
    form = game.own(View).plain
    return game if form is None else form()


def detailed(game: Game) -> Game:
    """The game whose states say all that a person at the table sees."""
    form = game.own(View).detailed
    return game if form is None else form()


def simplify(game: Game, states: Ints) -> Ints:
    """The states (n, fields) of a plain game, from those of its detailed form."""
    plain = game.own(View).simplify
    return np.ascontiguousarray(states[:, : game.field_count]) if plain is None else plain(states)


def choice_names(
    game: Game, words: Mapping[str, object], player: int, numbers: Sequence[int]
) -> list[str]:
    """What a person calls a player's choices, by number, ascending, at a state in words in which
    both choose at once."""
    own, actions = game.own(View).choice_names, game.rules.actions
    if own is not None:
        return own(words, player, len(numbers))
    named = callable(actions) or numbers[-1] < len(actions)
    return [game.action_name(number) if named else str(number) for number in numbers]


def first_state(game: Game) -> Ints:
    """The canonical state (fields,) in which a play begins. Raises OptionError where a person must
    say it, with a few states to copy."""
    start, known = game.start(), states_to_copy(game)
    if start is not None or not known:
        return game.needed_start()
    raise OptionError(f"{game.no_start}; say where to start, as {known}")


def states_to_copy(game: Game) -> str:
    """The option `start` with a few states of a full table, as a sentence has them; "" if the game
    has none to show."""
    layout, examples = game.get(Layout), []
    for title, state in [] if layout is None else islice(layout.opening_questions(), EXAMPLES):
        in_python = str({name: listed(value) for name, value in state.items()})
        examples.append(f"{on_command_line(fields(state), in_python)} ({title})")
    as_typed = f"{option('start')}{on_command_line(' ', '=')}"
    return as_typed + "; or ".join(examples) if examples else ""


def choose_chart(game: Game, name: str | None) -> Kind:
    """The game's chart of that name, the usual one if None. Raises OptionError, which says what
    there is."""
    kinds = game.need(Charts).kinds
    for kind in kinds:
        if name in (None, kind.name):
            return kind
    known = "; ".join(f"{kind.name}, {kind.shows}" for kind in kinds)
    sentence = f"'{name}' is not a chart of {game.board.game}; expected: {known}"
    raise OptionError(on_command_line("--what: ", "chart: ") + sentence)


def scene_of(game: Game, words: State) -> Scene:
    """The state in a person's words, drawn: with the cards that were named, not the canonical ones.

    Raises StateError as `Game.parse` does.
    """
    values = game.fields.read(words)
    game.canonical_states(values)
    return scene_at(game, values)


def scene_at(game: Game, values: Ints) -> Scene:
    """The state of values (fields,) in people's units that are one of the game's, drawn."""
    draw = game.own(Drawing).scene
    if draw is None:
        from luckbase.solver.scene import plain_scene

        return plain_scene(game.fields, values.tolist(), game.board.game)
    return draw(values)


def position_of(game: Game, text: str) -> Position | None:
    """Return the position that a sentence tells, such as ``Ed 5000, 2 spins; Peter 8000; Michael
    3000``; None for fields (``mine=0``), or if the game reads no sentences. Raises StateError.
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
