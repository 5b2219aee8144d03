"""The agents of Skunk and Pig, and the exact chance to win between any two in a race.

`hold-at-k`, for any k: hold once the turn has k points or more. `computer`: the opponent in Pig
by rounds, who after each roll sticks with the chance min(1, rolls ** (4 v) / 50), where
v = (turn / rolls) / sides; they always roll first, and have to see the rolls of the turn.
``optimal`` plays as in the table, also against somebody who is not; ``best-response`` to the other.

The first two do not look at the scores, so what a turn of theirs brings has one distribution
(`turn_points`). And whoever looks at the rolls too can be replaced, for any value of the game, by
one who looks at the turn alone and holds with the same chance on average over the rolls that took
them there (`holds_by_turn`): the next roll does not depend on how many there were.

So every agent is a policy h(m, y, t), the chance to hold, or takes the better of both, and
`solver.games.skunk.kernel` solves for the chances of two of them as it solves for the best play's::

    >>> chance_to_win(game, "hold-at-20", "hold-at-20")
    0.5346983261...

Source: docs/sources.md#pig-blog.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from luckbase.solver.errors import OptionError
from luckbase.solver.game.arrays import Decisions, Floats, Ints
from luckbase.solver.game.capabilities import Agents, ClosedForms, agents_of, plain
from luckbase.solver.game.game import Agent, Game
from luckbase.solver.games.skunk import kernel
from luckbase.solver.games.skunk.game import HOLD, ROLL, TURN, Options, race_options
from luckbase.solver.games.skunk.kernel import Race, race_of
from luckbase.solver.sentences import setting

OPTIMAL, BEST_RESPONSE = "optimal", "best-response"

Sticks = Callable[[int, int], float]
"""(points of the turn, its rolls) -> the chance to hold: who does not look at the scores."""


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
        v = turn / max(rolls, 1) / self.sides
        return float(min(1.0, rolls ** (4 * v) / 50)) if rolls else 0.0

    def __call__(self, game: Game, player: int, state: Ints, actions: list[int]) -> list[float]:
        if "rolls" not in game.columns:
            raise OptionError(
                "agent 'computer' needs the rolls of the turn; play it with "
                + setting("count_rolls", "true")
            )
        stick = self.sticks(int(state[TURN]), int(state[-1]))
        return [stick if action == HOLD else 1.0 - stick for action in actions]


def visits(sticks: Sticks, rules: Options, limit: int) -> tuple[Floats, Floats]:
    """float64 (limit + 1,) each: the chance that a turn without end of the game comes to so many
    points, and to hold there. `limit` is as far as it is followed."""
    chances = np.zeros((limit + 1, limit + 2))  # turn, rolls: each roll is worth a point or more
    chances[0, 0] = 1.0
    reached, holds = np.zeros(limit + 1), np.zeros(limit + 1)
    tables = rules.rolls(False), rules.rolls(True)
    for turn in range(limit + 1):
        counts = np.flatnonzero(chances[turn])
        if not len(counts):
            continue
        low, high = int(counts[0]), int(counts[-1]) + 1
        stick = np.array([sticks(turn, count) for count in range(low, high)])
        chance = chances[turn, low:high]
        reached[turn], holds[turn] = chance.sum(), chance @ stick
        rolls = tables[turn == 0]
        going = chance * (1 - stick) / rolls.total
        for points, ways in enumerate(rolls.points):
            if ways and turn + points <= limit:
                chances[turn + points, low + 1 : high + 1] += ways * going
    return reached, holds


def holds_by_turn(sticks: Sticks, rules: Options, limit: int) -> Floats:
    """float64 (limit + 1,): the chance to hold at each turn's points, averaged over the rolls; 1
    where they never come."""
    reached, holds = visits(sticks, rules, limit)
    return np.divide(holds, reached, out=np.ones(limit + 1), where=reached > 0)


def turn_points(sticks: Sticks, rules: Options, limit: int) -> Floats:
    """float64 (limit + 1,): the chance that a turn brings so many points, 0 when a roll takes them.

    Turns are followed up to `limit` points; what goes on above counts as 0.
    """
    points = visits(sticks, rules, limit)[1]
    points[0] = 1.0 - points[1:].sum()
    return points


class TurnAgents(Mapping[str, Agent]):
    """The agents by name; ``hold-at-k`` is found for any k >= 1 and listed up to `most`."""

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


def stationary(game: Game, name: str) -> HoldAt | Computer:
    """A game's agent of this name."""
    agent = agents_of(game)[name]
    assert isinstance(agent, HoldAt | Computer)
    return agent


def race_agents(game: Game) -> Agents:
    """The agents of a race."""
    options = race_options(game)
    return Agents(TurnAgents(options.goal, options.sides))


def policy(race: Race, name: str) -> Floats:
    """An agent's chance to hold at each of player 1's rows, as the kernel takes it."""
    if name == BEST_RESPONSE:
        return kernel.BEST
    half = race.rows(0) // 2
    if name == OPTIMAL:
        out, decisions = np.empty(race.shape(0)), Decisions.blank(race.rows(0))
        race.solve_tier(0, out, lambda _: out, lambda: False, decisions=decisions)
        return np.array(decisions.best[:half] == HOLD, np.float64)
    by_turn = holds_by_turn(stationary(race.game, name).sticks, race.options, race.goal)
    return by_turn[race.states_at(0, np.arange(half))[:, TURN]]


def chance_to_win(game: Game, one: str, two: str) -> float:
    """The chance of agent `one`, who begins, against agent `two`, from the start, within 1e-12.

    Raises OptionError for a board whose plays may not end.
    """
    race = race_of(game)
    A, B = (np.full((race.goal, race.goal), 0.5) for _ in range(2))
    kernel.solve(race.ints, A, B, policy(race, one), policy(race, two))
    return float(A[0, 0])


class TurnForms(ClosedForms):
    """The exact payoffs of any two agents who are known here."""

    def __init__(self, game: Game) -> None:
        self.game = plain(game)

    def value(self, agents: Sequence[str]) -> tuple[float, ...] | None:
        named = agents_of(self.game)
        if not all(name in (OPTIMAL, BEST_RESPONSE) or name in named for name in agents):
            return None
        return self.payoffs(*agents)

    @abstractmethod
    def payoffs(self, one: str, two: str) -> tuple[float, float]:
        """Both players' payoffs from the start."""


class RaceForms(TurnForms):
    """Those of a race."""

    def payoffs(self, one: str, two: str) -> tuple[float, float]:
        won = chance_to_win(self.game, one, two)
        return won, 1.0 - won
