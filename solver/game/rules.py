"""What every game gives: its `Rules`, bound to a board.

A game is one function, board -> `Rules`, and no more: what a state is called (its fields), the
compiled transition, the payoff's kind. Search, simulation, evaluation, verification and play work
from these alone. What only some games have, and only on some boards, are capabilities
(`solver.game.capabilities`): named in `Rules.capabilities`, made when something asks for them.

A **state** is a row of int64 numbers, one a column of its fields, always canonical: two positions
with no difference left between them are one state.

What can happen at a state is the compiled transition (`solver.game.transition`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.fields import Field, Refuse
from luckbase.solver.game.transition import Numbers, Transition


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

    fields: of a state, in its order. players: how many. transition: compiled.
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
    transition: Transition
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
