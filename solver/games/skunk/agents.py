"""The agents of Skunk and Pig.

`hold-at-k`, for any k: hold once the turn has at least k points. `computer`: the opponent in Pig by
rounds. After each roll they stick with the chance min(1, rolls ** (4 v) / 50), where v = (turn /
rolls) / sides. They always roll first, and need the rolls of the turn. ``optimal`` plays as in the
table, even if the opponent does not; ``best-response`` plays best against the opponent.

Source: docs/numbers.md#pig-blog.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from luckbase.solver.errors import OptionError
from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.capabilities import Agents
from luckbase.solver.game.game import Agent, Game, under
from luckbase.solver.games.skunk.rules import EVENTS, HOLD, ROLL, TURN, race_options
from luckbase.solver.sentences import setting


@dataclass(frozen=True)
class HoldAt:
    """Hold at k points or more."""

    k: int

    def sticks(self, turn: int, rolls: int) -> float:
        """Return the chance to hold after this many rolls worth `turn`."""
        return float(turn >= self.k)

    def __call__(self, game: Game, player: int, state: Ints, actions: list[int]) -> int:
        return actions.index(HOLD if state[TURN] >= self.k else ROLL)


@dataclass(frozen=True)
class Computer:
    """The blog's computer, with dice of this many sides."""

    sides: int

    def sticks(self, turn: int, rolls: int) -> float:
        """Return the chance to hold after this many rolls worth `turn`."""
        v = turn / max(rolls, 1) / self.sides
        return float(min(1.0, rolls ** (4 * v) / 50)) if rolls else 0.0

    def __call__(self, game: Game, player: int, state: Ints, actions: list[int]) -> list[float]:
        stick = self.sticks(int(state[TURN]), int(state[-1]))
        return [stick if action == HOLD else 1.0 - stick for action in actions]


class TurnAgents(Mapping[str, Agent]):
    """The agents by name; ``hold-at-k`` exists for any k >= 1 and is listed up to `most`."""

    def __init__(self, most: int, sides: int) -> None:
        self.most, self.sides = most, sides

    def __getitem__(self, name: str) -> Agent:
        if name == "computer":
            return Computer(self.sides)
        match = re.fullmatch(r"hold-at-([1-9][0-9]{0,5})", name)
        if match is None:
            raise KeyError(name)
        return HoldAt(int(match[1]))

    def __iter__(self) -> Iterator[str]:
        yield "computer"
        for k in range(1, self.most + 1):
            yield f"hold-at-{k}"

    def __len__(self) -> int:
        return self.most + 1


def race_agents(game: Game) -> Agents:
    options = race_options(game)
    return Agents(
        TurnAgents(options.goal, options.sides), check=check_rolls, events=EVENTS,
        plain=partial(under, game, count_rolls=False),
    )  # fmt: skip


def check_rolls(game: Game, name: str) -> None:
    """Raise OptionError if an agent needs the rolls of a turn and the board does not count them."""
    if name == "computer" and "rolls" not in game.columns:
        count_rolls = setting("count_rolls", "true")
        raise OptionError(
            f"agent 'computer' needs the rolls of the turn; play it with {count_rolls}"
        )
