"""The n-round Pig between any two agents: the exact chances to win, to draw and to lose.

Agents by name: ``hold-at-k``, ``computer`` (`solver.games.skunk.agents`), ``optimal`` (as in the
table, also against somebody who is not) and ``best-response`` (to the other agent). Turn by turn
from the last, each sticks by a policy, or where a guide says so: the table's values, or these very
chances (`kernel.follow`). A lead of the cut counts as won, as in the table.

    >>> chances(game, "optimal", "computer").win
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from luckbase.solver.game.arrays import Floats
from luckbase.solver.game.capabilities import Layout, agents_of
from luckbase.solver.game.game import Game
from luckbase.solver.games.pig.kernel import Rounds, follow
from luckbase.solver.games.skunk.agents import (
    BEST_RESPONSE,
    OPTIMAL,
    TurnForms,
    holds_by_turn,
    stationary,
    turn_points,
)

NOT_BEHIND = "not-behind"
"""As player 2 plays, but they never stick while behind."""
MAX_BEHIND = 200


@dataclass(frozen=True)
class Chances:
    """Player 1's; they sum to 1."""

    win: float
    draw: float
    loss: float

    def payoff(self, game: Game) -> tuple[float, float]:
        """Both players' payoffs by the board's objective."""
        three = np.array([self.win, self.draw, self.loss])
        one, two = game.numbers.reals[:3] @ three, game.numbers.reals[3:] @ three
        return float(one), float(two)


@dataclass(frozen=True)
class TurnStatistics:
    """mean: points a turn. nothing: the chance of none. points: the chance of each number."""

    mean: float
    nothing: float
    points: Floats


def turn_statistics(game: Game, name: str) -> TurnStatistics:
    """What a turn of an agent who does not look at the scores brings.

    Raises OptionError for another one.
    """
    layout = _rounds(game)
    points = turn_points(stationary(game, name).sticks, layout.options.race(), layout.cut)
    return TurnStatistics(float(points @ np.arange(len(points))), float(points[0]), points)


@dataclass(frozen=True)
class LastTurn:
    """What the last turn of the game costs player 2. behind: what they lose by sticking while
    behind, and so losing for certain. best: what they lose against the best last turn, which also
    sticks as soon as player 2 is ahead."""

    behind: float
    best: float


def last_turn_cost(game: Game, one: str, two: str) -> LastTurn:
    """The blog's "final round problem" for agent `two`, who is player 2 and does not look at the
    scores, in payoffs. Raises OptionError.

    Where they are more than `MAX_BEHIND` points behind nothing is mended; that they come back from
    there in one turn has a chance of 1e-4, with one die of six sides.
    """
    stationary(game, two)
    whole, behind, best = (
        chances(game, one, two, last).payoff(game)[1] for last in (None, NOT_BEHIND, BEST_RESPONSE)
    )
    return LastTurn(behind - whole, best - whole)


def chances(game: Game, one: str, two: str, last_turn: str | None = None) -> Chances:
    """The chances of agent `one`, who is player 1, against agent `two`, whose last turn `last_turn`
    plays, if given. Raises OptionError."""
    names, rounds = (one, two), _rounds(game)
    policies = {name: _policy(rounds, name, two) for name in (one, two, last_turn or two)}
    cut, ints, reals = rounds.cut, game.numbers.ints, game.numbers.reals
    leads, by_guide = np.arange(1 - cut, cut), np.empty((0, 0))
    total = reals[0] + reals[3]
    # Of who acts next, by their lead: their chances to win and to draw, and the table's payoff of
    # player 1. After the last turn player 1 would act.
    real, ideal = np.array([leads > 0, leads == 0], float), rounds.turn_starts(None)
    for turn, player in enumerate((2, 1) * rounds.rounds):  # the last one first
        own = np.array([1 - real[0] - real[1], real[1]])  # theirs, by the next one's lead
        payoffs = reals[:3] if player == 1 else reals[:2:-1]  # of a win, a draw, a loss
        expected = payoffs[0] * own[0] + payoffs[1] * own[1] + payoffs[2] * (1 - own[0] - own[1])
        guide = ideal if player == 1 else total - ideal
        name = names[player - 1] if turn else last_turn or two
        starts = np.vstack([expected if name == BEST_RESPONSE else guide, own])
        tolerance = game.tie_tolerance if name == OPTIMAL else 0.0
        real = follow(ints, starts, policies[name], payoffs[0], tolerance)[1:]
        if OPTIMAL in names:
            found = follow(ints, np.vstack([guide, own]), by_guide, payoffs[0], 0.0)[0]
            ideal = found if player == 1 else total - found
    win, draw = (float(row[cut - 1]) for row in real)
    return Chances(win, draw, 1 - win - draw)


def _rounds(game: Game) -> Rounds:
    found = game.need(Layout)
    assert isinstance(found, Rounds)
    return found


def _policy(rounds: Rounds, name: str, two: str) -> Floats:
    """The chance to stick, as `follow` takes it; two: player 2."""
    if name in (OPTIMAL, BEST_RESPONSE):
        return np.empty((0, 0))
    rules, most = rounds.options.race(), 2 * rounds.cut - 1
    sticks = stationary(rounds.game, two if name == NOT_BEHIND else name).sticks
    policy = holds_by_turn(sticks, rules, most)[None]
    if name == NOT_BEHIND:

        def mended(behind: int, turn: int, rolls: int) -> float:
            return sticks(turn, rolls) if turn >= behind else 0.0

        policy = np.repeat(policy, most, axis=0)
        for behind in range(1, min(MAX_BEHIND, rounds.cut - 1) + 1):
            policy[rounds.cut - 1 - behind] = holds_by_turn(partial(mended, behind), rules, most)
    return policy


class RoundsForms(TurnForms):
    """Those of the rounds, and what is known of the agents' turns."""

    def payoffs(self, one: str, two: str) -> tuple[float, float]:
        return chances(self.game, one, two).payoff(self.game)

    def facts(self, agents: Sequence[str]) -> list[tuple[str, str, float]]:
        game, found, own = self.game, [], agents_of(self.game)
        one, two = agents
        three = chances(game, one, two)
        for what, number in (("wins", three.win), ("draws", three.draw), ("loses", three.loss)):
            found.append((one, f"{what} as player 1", number))
        for name in dict.fromkeys(agents):
            if name in own:
                turn = turn_statistics(game, name)
                found.append((name, "points a turn", turn.mean))
                found.append((name, "chance of a turn worth nothing", turn.nothing))
        if two in own:
            last = last_turn_cost(game, one, two)
            found.append((two, "loses by sticking while behind in the last turn", last.behind))
            found.append((two, "loses against the best last turn", last.best))
        return found
