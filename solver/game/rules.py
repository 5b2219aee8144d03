"""The contract between a game and the rest of luckbase: its `Rules`, bound to a board.

A game is one function, board -> `Rules`: the fields of a state, the compiled transition and the
kind of payoff. Search, simulation, evaluation, verification and play need only these. Features that
only some games or boards have are capabilities (`solver.game.capabilities`): `Rules.capabilities`
lists them, and each is made when it is first needed.

A **state** is a row of int64 numbers, one for each column of its fields. It is always canonical:
two positions that cannot differ in value are the same state.

**The transition** is the rules themselves: it writes everything that can happen at a state. Each
game has one compiled function. All have the same signature (`TRANSITION_TYPE`), so every engine is
compiled once and serves every game::

    n = transition(board, state, edges)

    board.ints      int64 (any,), board.reals float64 (any,): the board as numbers (`Game.numbers`)
    state           int64 (fields,), canonical; read only
    edges           the edges to write, one a row; room for `Game.max_edges`
      .children     int64 (room, fields), written: the canonical state that each edge leads to
      .weights      float64 (room,), written: the chance of the edge given its action
      .actions      int64 (room,), written: the action of the edge, 0 or more. Edges of one action
                    are consecutive; in a tie the earliest action is taken
      .rewards      float64 (room, players): the reward of the edge, written if the game `pays`;
                    0 on entry. At a terminal state row 0 is written: the state's payoff
      .about        int64 (3,), written: the kind (`TERMINAL`, `CHANCE`, `DECISION`,
                    `SIMULTANEOUS`), and the player who acts, from 0, or -1. The third number
                    belongs to `lead`: 0 on entry and on return
    n               the number of edges; 0 at a terminal state

An action is a lottery over children: the weights of each action add up to 1. An action followed by
a chance event needs no state in between.

At a `SIMULTANEOUS` state player 0 chooses a row and player 1 a column at the same time. The edge's
action is ``row * JOINT + column``. Rows ascend, columns ascend in each row, and every pair exists.
Such a game is zero-sum: the two payoffs have the same sum in every state.

**In plain Python.** `transition` compiles such a function; the other helpers write its edges::

    @transition
    def coin(board, state, edges):          # a purse, tosses left: stop, or double or nothing
        if state[1] == 0:
            return over(edges, state[0])
        lead(edges, state, STOP, 1.0)[1] = 0
        for purse in (0, 2 * state[0]):
            child = lead(edges, state, TOSS, 0.5)
            child[0], child[1] = purse, state[1] - 1
        return decision(edges, 0)

The function may use everything that numba compiles: numbers, loops, arrays, constants and the
helpers here. It is compiled again when its file changes. A change in another file that it imports
has no effect on code that is already compiled.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import isfinite, prod
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from luckbase.solver.compiled import LazyFunction, Part, compiled, jitable, tuple_type, types
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.result import Result

if TYPE_CHECKING:
    from luckbase.solver.game.fields import Field, Refuse

TERMINAL, CHANCE, DECISION, SIMULTANEOUS = 0, 1, 2, 3
JOINT = 1 << 20
"""At a simultaneous state the action is row * JOINT + column."""
WEIGHT = 1e-12
"""Allowed difference between 1 and the sum of an action's chances."""


class Numbers(NamedTuple):
    """A board as its transition reads it: ints int64 (any,), reals float64 (any,)."""

    ints: Ints
    reals: Floats


class Edges(NamedTuple):
    """The arrays to which a transition writes the edges of one state (module docstring)."""

    children: Ints
    weights: Floats
    actions: Ints
    rewards: Floats
    about: Ints


Transition = Callable[[Numbers, Ints, Edges], int]

NUMBERS_TYPE = tuple_type(Numbers, types.int64[::1], types.float64[::1])
EDGES_TYPE = tuple_type(
    Edges, types.int64[:, ::1], types.float64[::1], types.int64[::1], types.float64[:, ::1],
    types.int64[::1],
)  # fmt: skip
TRANSITION_TYPE = types.int64(NUMBERS_TYPE, types.int64[::1], EDGES_TYPE)
TRANSITION = types.FunctionType(TRANSITION_TYPE)
"""The type of a transition that is passed to an engine."""


def room_for(edges: int, fields: int, players: int) -> Edges:
    """Return empty edges, as a transition expects them, for states with `fields` numbers."""
    return Edges(
        np.zeros((edges, fields), np.int64), np.zeros(edges), np.zeros(edges, np.int64),
        np.zeros((edges, players)), np.zeros(3, np.int64),
    )  # fmt: skip


class Capability:
    """A feature that only some games or boards have.

    missing: why a board without it is refused, after "board NAME: GAME".
    """

    missing: ClassVar[str] = ""


@dataclass(frozen=True)
class Unavailable:
    """Replaces a capability or a start that the game has but this board lacks.

    why: a sentence for the user.
    """

    why: str


Factors = Mapping[str, int]


@dataclass(frozen=True)
class Level(Result):
    """A linear function of a state's fields that no edge raises.

    A level cuts the states below some roots into stages, each closed under every cycle: a state
    cannot lead to a state of a higher level, nor to a lower level and back. The search checks every
    edge against it.

    Functions are factors by field or column. A number counts as factor times the number, a set
    (cards, tiles) as factor times its size; the factor of a field counts for each of its columns.

    falls: the function that no edge raises.
    apart: functions that an edge changes only if it lowers the level. States of one level that
        differ in them never lead to one another.
    inside: functions that no edge raises if it keeps the level and `apart`. They cut large stages
        into boxes.
    strict: every edge lowers the level.
    width: how many values of `falls` make one level.
    """

    falls: Factors
    apart: tuple[Factors, ...] = ()
    inside: tuple[Factors, ...] = ()
    strict: bool = False
    width: int = 1

    def __str__(self) -> str:
        """Return the function as a person would write it."""
        said = ""
        for name, factor in self.falls.items():
            sign = f" {'-' if factor < 0 else '+'} " if said else "-" * (factor < 0)
            said += f"{sign}{'' if abs(factor) == 1 else f'{abs(factor)} '}{name}"
        return said if self.width == 1 else f"{said}, {self.width} values a level"

    def by_column(self, fields: Sequence[Field]) -> Level:
        """Return the level with each field's name replaced by the names of its columns."""
        columns = {field.name: field.columns for field in fields}

        def written_out(function: Factors) -> Factors:
            return {
                column: factor
                for name, factor in function.items()
                for column in columns.get(name, (name,))
            }

        return replace(
            self, falls=written_out(self.falls), apart=tuple(map(written_out, self.apart)),
            inside=tuple(map(written_out, self.inside)),
        )  # fmt: skip


def level_from(form: Mapping[str, Any]) -> Level:
    """Return the level that was written by `as_json`."""
    return Level(**{**form, "apart": tuple(form["apart"]), "inside": tuple(form["inside"])})


Start = Mapping[str, object] | Sequence[tuple[float | Fraction, Mapping[str, object]]]
"""The start of a play: a state in words, or several with their chances."""


@dataclass(frozen=True, eq=False)
class Rules:
    """The rules of a game on one board.

    fields: the fields of a state, in order.
    players: the number of players.
    transition: the compiled transition.
    numbers: the board as `transition` reads it; a plain sequence if all are whole numbers.
    max_edges: the largest number of edges of any state.
    actions: names of actions, by number, or a function from number to name.
    start: the state in which a play begins, in words; or (chance, state in words) for each possible
        start; or a function that returns either. None if the user must give the start;
        `Unavailable` if this board has none.
    canonical: function (numbers (n, columns) within their fields' bounds, refuse) -> canonical
        states. It refuses combinations that are not states of the board.
    version: raise it if the same board gets other values or another row order; older tables are
        then stale.
    tie_tolerance: actions closer than this are tied, and the earlier action is taken.
    payoff_range: the least and greatest worth of any state to any player, terminal states included
        and with later rewards added. A payoff outside it is refused. If None: 0 to 1, or, if the
        game `pays`, whatever the search finds.
    payoff_name: the name of a payoff for people. If empty: "chance to win" if payoffs are from 0 to
        1 and edges pay nothing, and "payoff" otherwise.
    pays: whether an edge can pay before the end.
    simultaneous: whether both players choose at once in some states.
    cut_error: if the board cuts off states of the game: a function that returns a bound on the
        difference between any payoff and the payoff without the cut. None if nothing is cut.
    level: factors by field of a sum that no edge raises, such as {"rolls": 1}, or a `Level`. A
        large search uses it to work in stages on disk; without it the search must fit in memory.
    within_turn: names of fields that are used only within a turn. A state in which all of them have
        their defaults is between turns. A table stores only such states; turns are solved in
        memory, and `level` is not used.
    capabilities: class of the capability -> the capability, a function that makes it from the
        `Game`, or ``module:name`` of either, imported when needed; or `Unavailable`.
    """

    fields: Sequence[Field]
    players: int
    transition: Transition
    numbers: Numbers | Sequence[int]
    max_edges: int
    actions: Sequence[str] | Callable[[int], str]
    start: Start | Callable[[], Start | None] | Unavailable | None = None
    canonical: Callable[[Ints, Refuse], Ints] | None = None
    version: int = 1
    tie_tolerance: float = 1e-12
    payoff_range: tuple[float, float] | None = None
    payoff_name: str = ""
    pays: bool = False
    simultaneous: bool = False
    cut_error: Callable[[], float] | None = None
    level: Level | Factors | None = None
    within_turn: Sequence[str] = ()
    capabilities: Mapping[type[Capability], Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise TypeError or ValueError if the rules are impossible."""
        whole = (self.players, self.max_edges, self.version)
        listed = isinstance(self.actions, Sequence) and not isinstance(self.actions, str)
        words = self.actions if listed or callable(self.actions) else [""]
        for right, why in (
            (all(isinstance(number, int | np.integer) for number in whole),
             "players, max_edges, version: expected whole numbers"),
            (isinstance(self.transition, LazyFunction) or hasattr(self.transition, "py_func"),
             "transition: expected a function that begins with @transition"),
            (self.fields and all(hasattr(each, "bounds") for each in self.fields),
             'fields: expected one or more, as [Field("die", high=6)]'),
            (callable(words) or all(isinstance(name, str) and name.strip() for name in words),
             'actions: expected names, as ("take", "again")'),
            (isinstance(self.capabilities, Mapping)
             and all(isinstance(kind, type) for kind in self.capabilities),
             "capabilities: expected them by their classes, as {Agents: …}"),
            (self.canonical is None or takes(self.canonical, 2),
             "canonical: expected a function (states, refuse)"),
            ((self.cut_error is None or takes(self.cut_error, 0))
             and (not callable(self.start) or takes(self.start, 0)),
             "start, cut_error: a function of them is called without arguments"),
            (isinstance(self.payoff_name, str), "payoff_name: expected text"),
            (self.level is None or isinstance(self.level, Level) or _is_function(self.level),
             f"level: {self.level!r}; expected a factor for each field that it counts, as "
             '{"rolls": 1}'),
            (isinstance(self.within_turn, tuple | list)
             and all(isinstance(name, str) for name in self.within_turn),
             f"within_turn: {self.within_turn!r}; expected names of fields, as "
             '("rolls", "dice")'),
            (self.payoff_range is None
             or (isinstance(self.payoff_range, tuple) and len(self.payoff_range) == 2
             and all(isinstance(number, Real) for number in self.payoff_range)),
             f"payoff_range: {self.payoff_range!r}; expected the least, then the greatest payoff, "
             "as (0, 6)"),
            (isinstance(self.tie_tolerance, Real),
             f"tie_tolerance: {self.tie_tolerance!r}; expected a number"),
        ):  # fmt: skip
            if not right:
                raise TypeError(why)
        parts = self.numbers if isinstance(self.numbers, Numbers) else (self.numbers,)
        for numbers, kinds in zip(map(np.asarray, parts), ("iub", "iubf"), strict=False):
            if numbers.ndim != 1 or (numbers.size and numbers.dtype.kind not in kinds):
                raise TypeError(f"numbers: {self.numbers}; expected a tuple of whole numbers; for "
                                "fractions write Numbers(ints, reals)")  # fmt: skip
        low, high = self.payoff_range or (0, 1)
        room = prod((field.bounds[1] + 1) ** field.length for field in self.fields)
        bits = (room - 1).bit_length()
        names = [column for field in self.fields for column in field.columns]
        has_default = {field.name: field.default is not None for field in self.fields}
        for wrong, why in (
            (self.players < 1, f"players: {self.players}; expected at least 1"),
            (self.max_edges < 1, f"max_edges: {self.max_edges}; expected at least 1"),
            (self.simultaneous and self.players != 2, "simultaneous: expected two players"),
            (not (isfinite(low) and isfinite(high) and low <= high),
             f"payoff_range: {self.payoff_range}; expected the least, then the greatest payoff"),
            (not self.tie_tolerance >= 0, "tie_tolerance: expected 0 or more"),
            (len(set(names)) < len(names),
             f"fields: two columns are called {max(names, key=names.count)!r}"),
            (not all(has_default.get(name) for name in self.within_turn),
             f"within_turn: {', '.join(map(str, self.within_turn))}; expected names of fields that "
             "have a default, which they have between turns"),
            (bits > 64, f"fields: a state takes {bits} bits; expected at most 64: lower a field's "
             "`high`, or its bits"),
        ):  # fmt: skip
            if wrong:
                raise ValueError(why)


def _is_function(level: object) -> bool:
    return isinstance(level, Mapping) and all(
        isinstance(name, str) and isinstance(factor, int | np.integer)
        for name, factor in level.items()
    )


def takes(function: object, count: int) -> bool:
    """Return whether `function` can be called with `count` arguments."""
    if not callable(function):
        return False
    try:
        inspect.signature(function).bind(*range(count))
    except TypeError:
        return False
    except ValueError:  # some functions in C have no signature
        pass
    return True


# --- in plain Python ---------------------------------------------------------------------------


def transition(rules: Callable[[Any, Any, Any], int]) -> Transition:
    """Compile ``rules(board, state, edges)`` (module docstring), cached if it is in a file.

    Raises numba's errors for code that numba cannot compile. A note on the error names functions
    that the author has to declare.
    """
    made: Transition
    is_in_file = os.path.exists(rules.__code__.co_filename)
    try:
        made = compiled(rules, TRANSITION_TYPE, boundscheck=True, cache=is_in_file)
    except ImportError:  # cached by a process that imported the file by another name
        made = compiled(rules, TRANSITION_TYPE, boundscheck=True, cache=False)
    except Exception as error:
        for name in rules.__code__.co_names:
            if inspect.isfunction(rules.__globals__.get(name)):
                error.add_note(f"write @numba.njit(boundscheck=True) above 'def {name}'")
        raise
    return made


@jitable()
def lead(edges: Edges, state: Ints, action: int, weight: float) -> Ints:
    """Add an edge of `action` with the given chance, and return the child's row: a copy of `state`
    to change. The edge's reward is 0 unless `pay` sets it."""
    n = min(edges.about[2], edges.weights.size - 1)  # the count reveals too many edges
    edges.about[2] += 1
    for i in range(state.size):
        edges.children[n, i] = state[i]
    edges.weights[n], edges.actions[n] = weight, action
    for p in range(edges.rewards.shape[1]):
        edges.rewards[n, p] = 0.0
    return edges.children[n]


@jitable()
def joint(row: int, column: int) -> int:
    """Return the action if player 0 chooses `row` and player 1 `column` at the same time."""
    return row * JOINT + column


def _writer(paid: Any, payoffs: Any, at: Any) -> Callable[..., Any]:
    """Return the function that numba compiles for `_write`: it cannot loop over mixed types."""

    def first(paid: Any, payoffs: Any, at: Any) -> None:
        paid[at] = payoffs[0]
        _write(paid, payoffs[1:], at + 1)

    return first if len(payoffs) else lambda paid, payoffs, at: None


def _written(paid: Floats, payoffs: tuple[float, ...], at: int) -> None:
    """Write payoffs to an array, from number `at` on."""
    paid[at : at + len(payoffs)] = payoffs


_write: Any = Part(_written, {}, _writer)


@jitable()
def pay(edges: Edges, *rewards: float) -> None:
    """Set the reward of the last edge for each player, from the first; the others get 0.

    Raises ValueError before any edge, and for more rewards than players.
    """
    if edges.about[2] == 0:
        raise ValueError("pay stands before its edge; write it after `lead`")
    if len(rewards) > edges.rewards.shape[1]:
        raise ValueError("expected a payoff for each player, as many as Rules(players=…) says")
    _write(edges.rewards[min(edges.about[2], edges.weights.size) - 1], rewards, 0)


@jitable()
def _finish(edges: Edges, kind: int, player: int) -> int:
    n: int = 0 if kind == TERMINAL else edges.about[2]
    edges.about[0], edges.about[1], edges.about[2] = kind, player, 0
    return n


@jitable()
def decision(edges: Edges, player: int) -> int:
    """End a state in which `player`, from 0, chooses among the actions of its edges."""
    return _finish(edges, DECISION, player)


@jitable()
def chance(edges: Edges) -> int:
    """End a state in which chance decides: all its edges have the same action."""
    return _finish(edges, CHANCE, -1)


@jitable()
def simultaneous(edges: Edges) -> int:
    """End a state in which both players choose at once; its actions are made by `joint`."""
    return _finish(edges, SIMULTANEOUS, -1)


@jitable()
def over(edges: Edges, *payoffs: float) -> int:
    """End the game with a payoff for each player; write no edges.

    Raises ValueError unless there are as many payoffs as players.
    """
    if len(payoffs) != edges.rewards.shape[1]:
        raise ValueError("expected a payoff for each player, as many as Rules(players=…) says")
    _write(edges.rewards[0], payoffs, 0)
    return _finish(edges, TERMINAL, -1)
