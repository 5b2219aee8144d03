"""The n-round Pig between any two agents: the exact chances to win, to draw and to lose.

Agents by name: ``hold-at-k``, ``computer`` (`solver.games.skunk.agents`), ``optimal`` (as in the
table, also against somebody who is not) and ``best-response`` (to the other agent).

Round by round from the last, with d the lead of who acts and p the chances of their turn's points::

    F(d) = sum over x of p(x) F'(d + x)        for an agent who does not look at the scores,

F being the vector of the three chances. For the other two a loop over the turn's points, which
sticks where the guide says so: the table's values, or these very chances (`kernel.follow`).
A lead of the cut counts as won, as in the table; the bound on what that changes is the table's.

    >>> chances(game, "optimal", "computer").win
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from luckbase.solver.game.arrays import Floats
from luckbase.solver.game.capabilities import ClosedForms, Layout, agents_of, plain
from luckbase.solver.game.game import Game
from luckbase.solver.games.pig import kernel
from luckbase.solver.games.pig.layout import Rounds
from luckbase.solver.games.skunk.agents import (
    NotBehind,
    Stationary,
    crossings,
    stationary,
    turn_points,
)

OPTIMAL, BEST_RESPONSE, NOT_BEHIND = "optimal", "best-response", "not-behind"
MAX_BEHIND = 200

Turn = tuple[Floats, Floats]
"""(held, crossed) of `crossings`: what a turn brings that does not look at the scores."""


@dataclass(frozen=True)
class Chances:
    """Player 1's; they sum to 1. error: what the cut can change of each, and rounding."""

    win: float
    draw: float
    loss: float
    error: float

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
    points = turn_points(stationary(game, name), layout.options.race(), layout.cut)
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
    return LastTurn(*(
        chances(game, one, two, last).payoff(game)[1] - chances(game, one, two).payoff(game)[1]
        for last in (NOT_BEHIND, BEST_RESPONSE)
    ))  # fmt: skip


def chances(game: Game, one: str, two: str, last_turn: str | None = None) -> Chances:
    """The chances of agent `one`, who is player 1, against agent `two`, whose last turn `last_turn`
    plays, if given. Raises OptionError."""
    names, rounds = (one, two), _rounds(game)
    known = {
        name: _crossings(rounds, stationary(game, name))
        for name in names
        if name not in (OPTIMAL, BEST_RESPONSE)
    }
    cut, ints, reals = rounds.cut, game.numbers.ints, game.numbers.reals
    leads = np.arange(1 - cut, cut)
    total = reals[0] + reals[3]
    # Of who acts next, by their lead: their chances to win and to draw, and the table's payoff of
    # player 1. After the last turn player 1 would act.
    real, ideal = np.array([leads > 0, leads == 0], float), rounds.turn_starts(None)
    for turn, player in enumerate((2, 1) * rounds.rounds):  # the last one first
        own = np.array([1 - real[0] - real[1], real[1]])  # theirs, by the next one's lead
        payoffs = reals[:3] if player == 1 else reals[:2:-1]  # of a win, a draw, a loss
        expected = payoffs[0] * own[0] + payoffs[1] * own[1] + payoffs[2] * (1 - own[0] - own[1])
        guide = ideal if player == 1 else total - ideal
        name = names[player - 1] if turn else last_turn or names[1]
        if name in (OPTIMAL, BEST_RESPONSE):
            starts = np.vstack([guide if name == OPTIMAL else expected, own])
            tolerance = game.tie_tolerance if name == OPTIMAL else 0.0
            found = np.empty((3, len(leads)))
            kernel.follow(ints, starts, payoffs[0], tolerance, found)
            real = found[1:]
        elif name == NOT_BEHIND:
            agent, real = stationary(game, names[1]), _turn(known[names[1]], own)
            for lead in range(max(-MAX_BEHIND, 1 - cut), 0):
                mended = _crossings(rounds, NotBehind(agent, -lead))
                real[:, lead + cut - 1] = _turn(mended, own)[:, lead + cut - 1]
        else:
            real = _turn(known[name], own)
        if OPTIMAL in names:
            found = np.empty((3, len(leads)))
            kernel.follow(ints, np.vstack([guide, own]), payoffs[0], 0.0, found)
            ideal = found[0] if player == 1 else total - found[0]
    win, draw = (float(row[cut - 1]) for row in real)
    return Chances(win, draw, 1 - win - draw, kernel.cut_error(ints) + rounds.rounding)


def _rounds(game: Game) -> Rounds:
    found = game.need(Layout)
    assert isinstance(found, Rounds)
    return found


def _crossings(rounds: Rounds, agent: Stationary) -> Turn:
    return crossings(agent, rounds.options.race(), 2 * rounds.cut - 1)


def _turn(turn: Turn, own: Floats) -> Floats:
    """The chances before a turn of this kind, from own (2, 2 cut - 1), those of who acts by the
    lead of the one after them; a lead of the cut is won at once."""
    holds, crossed = turn
    n = own.shape[1]
    left = np.arange(n, 0, -1)  # points to the cut, from each lead
    by_lead, nothing = own[:, ::-1], 1 - np.cumsum(holds)[left - 1] - crossed[left]
    found = np.empty_like(own)
    for row, won in ((0, 1.0), (1, 0.0)):
        padded = np.concatenate([by_lead[row], np.zeros(n)])
        banked = np.correlate(padded, holds[:n], "valid")[:n]
        found[row] = banked + crossed[left] * won + nothing * by_lead[row]
    return found


class RoundsForms(ClosedForms):
    """The chances of any two agents who are known here, and what is known of their turns."""

    def __init__(self, game: Game) -> None:
        self.game = plain(game)

    def value(self, agents: Sequence[str]) -> tuple[float, ...] | None:
        own = agents_of(self.game)
        if not all(name in (OPTIMAL, BEST_RESPONSE) or name in own for name in agents):
            return None
        one, two = agents
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
