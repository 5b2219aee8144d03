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
from math import isfinite
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
    state can be worth to any player, one that is over included, with what is still paid from there
    on: bounds begin with them, and a payoff beyond them is refused.
    payoff_name: what a payoff is, for people; without it "chance to win" where payoffs are from 0
    to 1 and edges pay nothing, else "payoff". pays: whether an edge can pay anything before the
    end. simultaneous: whether there are states in which both players choose at once.
    cut_error: where states are cut off that the game has, how far any payoff may be from the game's
    without the cut; nothing is cut if None. capabilities: capability -> one, or a function that
    makes it of the `Game`, or where either stands, ``module:name``, imported when it is asked for;
    or `Unavailable`.
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
    cut_error: Callable[[], float] | None = None
    capabilities: Mapping[type[Capability], Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raises ValueError for what no game can be."""
        low, high = self.payoff_range
        bits = sum(each.width * each.length for each in self.fields)
        names = [column for each in self.fields for column in each.columns]
        for wrong, why in (
            (self.players < 1, f"players: {self.players}; expected at least 1"),
            (self.max_edges < 1, f"max_edges: {self.max_edges}; expected at least 1"),
            (self.simultaneous and self.players != 2, "simultaneous: expected two players"),
            (not (isfinite(low) and isfinite(high) and low <= high),
             f"payoff_range: {self.payoff_range}; expected the least, then the greatest payoff"),
            (len(set(names)) < len(names), "fields: two columns have one name"),
            (bits > 64, f"fields: a state takes {bits} bits; the most is 64: lower a field's "
             "`high`, or its bits"),
        ):  # fmt: skip
            if wrong:
                raise ValueError(why)
