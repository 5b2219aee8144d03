"""The agents of Skunk and Pig: when to hold, as a function of the turn.

`hold-at-k`, for any k: hold once the turn has k points or more. `computer`: the opponent in Pig
by rounds, who after each roll sticks with the chance min(1, rolls ** (4 v) / 50), where
v = (turn / rolls) / sides; he always rolls first, and he has to see the rolls of the turn.

An agent is asked ``choose(game, player, state, actions)`` (`solver.game.rules`) with the actions
HOLD and ROLL. Neither looks at the scores, so what a turn of theirs brings has one distribution
(`turn_points`). And whoever looks at the rolls too can be replaced, for any value of the game, by
one who looks at the turn alone and holds with the same chance on average over the rolls that took
him there (`holds_by_turn`): the next roll does not depend on how many there were.

Source: docs/sources.md#pig-blog.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from luckbase.solver.errors import OptionError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.capabilities import agents_of
from luckbase.solver.game.game import Agent, Game
from luckbase.solver.games.skunk.board import Rules
from luckbase.solver.sentences import setting

HOLD, ROLL = 0, 1
"""The actions of both games."""
TURN = 2
"""Where the turn's points stand in the states of both; the rolls stand last."""


def chance_to_stick(turn: int, rolls: int, sides: int) -> float:
    """The chance with which the blog's computer sticks after `rolls` rolls worth `turn`."""
    v = turn / rolls / sides
    return float(min(1.0, rolls ** (4 * v) / 50))


@dataclass(frozen=True)
class HoldAt:
    """Hold at k points or more."""

    k: int

    def sticks(self, turn: int, rolls: int) -> float:
        """The chance to hold after so many rolls worth `turn`."""
        return float(turn >= self.k)

    def __call__(self, game: Game, player: int, state: Ints, actions: list[int]) -> int:
        return actions.index(HOLD if state[TURN] >= self.k else ROLL)


@dataclass(frozen=True)
class Computer:
    """The blog's computer, with dice of this many sides."""

    sides: int

    def sticks(self, turn: int, rolls: int) -> float:
        """The chance to hold after so many rolls worth `turn`."""
        return chance_to_stick(turn, rolls, self.sides) if rolls else 0.0

    def __call__(self, game: Game, player: int, state: Ints, actions: list[int]) -> list[float]:
        if "rolls" not in game.columns:
            raise OptionError(
                "agent 'computer' looks at the rolls of the turn; play it with "
                + setting("count_rolls", "true")
            )
        stick = self.sticks(int(state[TURN]), int(state[-1]))
        return [stick if action == HOLD else 1.0 - stick for action in actions]


@dataclass(frozen=True)
class NotBehind:
    """As another agent, but it never holds below so many points."""

    agent: HoldAt | Computer
    behind: int

    def sticks(self, turn: int, rolls: int) -> float:
        """The chance to hold after so many rolls worth `turn`."""
        return self.agent.sticks(turn, rolls) if turn >= self.behind else 0.0


Stationary = HoldAt | Computer | NotBehind
"""An agent whose turn does not depend on the scores."""


def visits(agent: Stationary, rules: Rules, most: int) -> tuple[Floats, Floats]:
    """float64 (most + 1,) each: the chance that a turn without end of the game comes to so many
    points, and to hold there. `most` is as far as it is followed."""
    here = np.zeros((most + 1, most + 2))  # turn, rolls: each roll is worth a point or more
    here[0, 0] = 1.0
    reached, held = np.zeros(most + 1), np.zeros(most + 1)
    tables = rules.rolls(False), rules.rolls(True)
    for turn in range(most + 1):
        counts = np.flatnonzero(here[turn])
        if not len(counts):
            continue
        low, high = int(counts[0]), int(counts[-1]) + 1
        stick = np.array([agent.sticks(turn, count) for count in range(low, high)])
        chance = here[turn, low:high]
        reached[turn], held[turn] = chance.sum(), chance @ stick
        rolls = tables[turn == 0]
        going = chance * (1 - stick) / rolls.total
        for points, ways in enumerate(rolls.points):
            if ways and turn + points <= most:
                here[turn + points, low + 1 : high + 1] += ways * going
    return reached, held


def holds_by_turn(agent: Stationary, rules: Rules, most: int) -> Floats:
    """float64 (most + 1,): the chance to hold at each turn's points, averaged over the rolls; 1
    where he never comes."""
    reached, held = visits(agent, rules, most)
    return np.divide(held, reached, out=np.ones(most + 1), where=reached > 0)


def turn_points(agent: Stationary, rules: Rules, most: int) -> Floats:
    """float64 (most + 1,): the chance that a turn brings so many points, 0 when a roll takes them.

    Turns are followed up to `most` points; what goes on above counts as 0.
    """
    points = visits(agent, rules, most)[1]
    points[0] = 1.0 - points[1:].sum()
    return points


def crossings(agent: Stationary, rules: Rules, most: int) -> tuple[Floats, Floats]:
    """(held, crossed), float64 (most + 1,) each: the chance to hold at so many points, and that a
    turn which is over at once at x points gets there; crossed[0] is 1."""
    reached, held = visits(agent, rules, most)
    going, crossed = reached - held, np.zeros(most + 1)
    later, first = (
        np.cumsum(table.points[::-1])[::-1] / table.total
        for table in (rules.rolls(False), rules.rolls(True))
    )
    for points in range(1, min(len(first), most + 1)):  # or more, rolled when so far below x
        crossed[points] += going[0] * first[points]
        crossed[points + 1 :] += going[1 : most + 1 - points] * later[points]
    crossed[0] = 1.0
    return held, crossed


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


def stationary(game: Game, name: str) -> HoldAt | Computer:
    """A game's agent of this name. Raises OptionError for a name that is none."""
    try:
        agent = agents_of(game)[name]
    except KeyError:
        raise OptionError(
            f"agent '{name[:30]}' is not known here; expected 'optimal', 'best-response', "
            "'computer' or 'hold-at-k' with a number for k"
        ) from None
    assert isinstance(agent, HoldAt | Computer)
    return agent
