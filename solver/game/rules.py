"""What every game gives: its `Rules`, bound to a board.

A game is one function, board -> `Rules`, and no more: what a state is called (its fields), the
compiled transition, the payoff's kind. Search, simulation, evaluation, verification and play work
from these alone. What only some games have, and only on some boards, are capabilities
(`solver.game.capabilities`): named in `Rules.capabilities`, made when something asks for them.

A **state** is a row of int64 numbers, one a column of its fields, always canonical: two positions
with no difference left between them are one state.

**Transition.** One compiled function a game, all of one signature, so that every engine is compiled
once and serves every game (a first-class function of type `SUCCESSORS_TYPE`)::

    n = successors(ints, reals, state, children, weights, actions, rewards, about)

    ints, reals   the board as numbers (`Rules.numbers`)
    state         int64 (fields,)
    children      int64 (max_edges, fields), written: the canonical state that each edge leads to
    weights       float64 (max_edges,), written: the chance of the edge given its action
    actions       int64 (max_edges,), written: the action that the edge belongs to; edges of one
                  action stand together, and the actions stand in the order in which ties fall
    rewards       float64 (max_edges, players): what the edge pays, written where the game `pays` at
                  all, else 0 on entry; at a terminal state row 0 is written: its payoff
    about         int64 (2,), written: kind (`TERMINAL`, `CHANCE`, `DECISION`, `SIMULTANEOUS`) and
                  who acts (player from 0; -1 where nobody does)
    n             how many edges; 0 at a terminal state

An action is a lottery over children: the weights of each action sum to 1. Actions that have to wait
for chance need no state in between.

At a `SIMULTANEOUS` state two players choose at once: player 0 a row, player 1 a column, and the
edge's action is ``row * JOINT + column``; rows ascend, in each row the columns, and every pair is
there. Such a game is zero-sum: the two payoffs of any state have the same sum everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from numba import types

from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.fields import Field, Refuse

TERMINAL, CHANCE, DECISION, SIMULTANEOUS = 0, 1, 2, 3
JOINT = 1 << 20
"""At a simultaneous state the action is row * JOINT + column."""

SUCCESSORS_TYPE = types.int64(
    types.int64[::1],
    types.float64[::1],
    types.int64[::1],
    types.int64[:, ::1],
    types.float64[::1],
    types.int64[::1],
    types.float64[:, ::1],
    types.int64[::1],
)


@dataclass(frozen=True)
class Numbers:
    """The board as the compiled transition reads it."""

    ints: Ints
    reals: Floats


class Capability:
    """Something that only some games have, or only on some boards.

    missing: why a board without it is refused, after "board NAME: GAME".
    """

    missing: ClassVar[str]


@dataclass(frozen=True)
class Unavailable:
    """In the place of a capability that the game has and this board has not: why, in a sentence."""

    why: str


@dataclass(frozen=True, eq=False)
class Rules:
    """The rules of a game on one board.

    fields: of a state, in its order. players: how many. transition: compiled (module docstring).
    numbers: the board as `transition` reads it; whole numbers alone may be a sequence. max_edges:
    the most that a state can have. actions: what a person calls an action: names by number, or a
    function. start: the state in which a play begins, in words; None if a person must say.
    canonical: numbers (n, columns) that are within their fields' bounds -> canonical states, or a
    refusal where they are none of the board's together. version: raised when the same board gets
    other values or another row order; older tables are stale then. tie_tolerance: actions closer
    than this are tied, and the earlier one is taken. payoff_range: the least and the most that a
    payoff can be. payoff_name: what a payoff is, for people. pays: whether an edge can pay anything
    before the end. simultaneous: whether there are states in which both players choose at once.
    capabilities: capability -> one, or a function that makes it of the `Game`, or `Unavailable`.
    """

    fields: Sequence[Field]
    players: int
    transition: Callable[..., int]
    numbers: Numbers | Sequence[int]
    max_edges: int
    actions: Sequence[str] | Callable[[int], str]
    start: Mapping[str, object] | None = None
    canonical: Callable[[Ints, Refuse], Ints] | None = None
    version: int = 1
    tie_tolerance: float = 1e-12
    payoff_range: tuple[float, float] = (0.0, 1.0)
    payoff_name: str = ""
    pays: bool = False
    simultaneous: bool = False
    capabilities: Mapping[type[Capability], Any] = field(default_factory=dict)
