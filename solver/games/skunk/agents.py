"""The agents of Skunk and Pig: when to hold, as a function of the turn.

`hold-at-k`, for any k: hold once the turn has k points or more. `computer`: the opponent in the
seed's Pig, who after each roll sticks with the chance min(1, rolls ** (4 v) / 50), where
v = (turn / rolls) / sides; he always rolls first, and he has to see the rolls of the turn.

An agent is asked ``choose(game, player, state, actions)`` (`solver.game`) with the actions HOLD and
ROLL. Source: the seed, pig-blog.txt.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from solver.errors import OptionError
from solver.game import Agent, Game, Ints

HOLD, ROLL = 0, 1
"""The actions of both games."""


def chance_to_stick(turn: int, rolls: int, sides: int) -> float:
    """The chance with which the seed's computer sticks after `rolls` rolls worth `turn`."""
    v = turn / rolls / sides
    return float(min(1.0, rolls ** (4 * v) / 50))


@dataclass(frozen=True)
class HoldAt:
    """Hold at k points or more."""

    k: int

    def __call__(self, game: Game, player: int, state: Ints, actions: list[int]) -> int:
        turn = state[game.columns.index("turn")]
        return actions.index(HOLD if turn >= self.k else ROLL)


@dataclass(frozen=True)
class Computer:
    """The seed's computer, with dice of this many sides."""

    sides: int

    def __call__(self, game: Game, player: int, state: Ints, actions: list[int]) -> list[float]:
        if "rolls" not in game.columns:
            raise OptionError(
                "agent 'computer' looks at the rolls of the turn; play it with "
                "--set count_rolls=true"
            )
        turn, rolls = (int(state[game.columns.index(name)]) for name in ("turn", "rolls"))
        stick = chance_to_stick(turn, rolls, self.sides) if rolls else 0.0
        return [stick if action == HOLD else 1.0 - stick for action in actions]


class TurnAgents(Mapping[str, Agent]):
    """The agents by name; ``hold-at-k`` is found for any k >= 1 and listed up to `most`."""

    def __init__(self, most: int, sides: int) -> None:
        self.most, self.sides = most, sides

    def __getitem__(self, name: str) -> Agent:
        if name == "computer":
            return Computer(self.sides)
        held = re.fullmatch(r"hold-at-([1-9][0-9]{0,5})", name)
        if held is None:
            raise KeyError(name)
        return HoldAt(int(held[1]))

    def __iter__(self) -> Iterator[str]:
        yield "computer"
        for k in range(1, self.most + 1):
            yield f"hold-at-{k}"

    def __len__(self) -> int:
        return self.most + 1
