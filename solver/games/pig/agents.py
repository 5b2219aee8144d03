"""Pig by rounds between any two agents: the exact chances to win, to draw and to lose.

Agents by name: ``hold-at-k`` and ``computer`` (`solver.games.skunk.rules`), ``optimal`` (plays as
in the table, even if the opponent does not) and ``best-response`` (to the other agent). Turn by
turn from the last, each sticks by a policy, or by a guide: the table's values, or these same
chances (`kernel.follow`). As in the table, a lead that reaches the cut counts as won.

>>> win, draw, loss = chances(game, "optimal", "computer")
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from luckbase.solver.game.arrays import Floats
from luckbase.solver.game.capabilities import Agents, Fact, FullTable, agents_of, plain
from luckbase.solver.game.game import Game, under
from luckbase.solver.games.pig.kernel import Rounds, follow
from luckbase.solver.games.pig.rules import PigRoundsBoard
from luckbase.solver.games.skunk.rules import EVENTS, Computer, DiceRules, HoldAt, TurnAgents
from luckbase.solver.policies.agents import BEST_RESPONSE, OPTIMAL

Sticks = Callable[[int, int], float]
"""(points of the turn, its rolls) -> the chance to stick, for an agent who ignores the scores."""


def visits(sticks: Sticks, rules: DiceRules, limit: int) -> tuple[Floats, Floats]:
    """Return the chances that a turn reaches each number of points up to `limit`, and that it holds
    there, (limit + 1,) each. The end of the game does not end the turn."""
    chances = np.zeros((limit + 1, limit + 2))  # turn, rolls: each roll is worth at least a point
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


def stationary(game: Game, name: str) -> HoldAt | Computer:
    """Return a game's agent of this name."""
    agent = agents_of(game)[name]
    assert isinstance(agent, HoldAt | Computer)
    return agent


def payoffs(game: Game, agent_1: str, agent_2: str) -> tuple[float, float]:
    """Return both players' payoffs by the board's objective, for the profile of `chances`."""
    first, second = game.numbers.reals.reshape(2, 3) @ chances(game, agent_1, agent_2)
    return float(first), float(second)


def points_of_turns(game: Game, name: str) -> Floats:
    """Return the chance that a turn of an agent who ignores the scores brings 0, 1, … points.

    A turn lost to a roll brings 0, and so do turns of more points than the cut.
    """
    rounds = _rounds(game)
    points = visits(stationary(game, name).sticks, rounds.options, rounds.cut)[1]
    points[0] = 1.0 - points[1:].sum()
    return points


def chances(game: Game, agent_1: str, agent_2: str) -> Floats:
    """Return the chances, (3,), that `agent_1`, as player 1, wins, draws and loses."""
    names, rounds = (agent_1, agent_2), _rounds(game)
    policies = {name: _policy(rounds, name) for name in names}
    cut, ints, reals = rounds.cut, game.numbers.ints, game.numbers.reals
    leads, by_guide = np.arange(1 - cut, cut), np.empty(0)
    total = reals[0] + reals[3]
    # By the lead of the player who acts next: their chances to win and to draw, and the table's
    # payoff of player 1. After the last turn player 1 would act.
    real, ideal = np.array([leads > 0, leads == 0], float), rounds.turn_starts()
    for player in (2, 1) * rounds.rounds:  # the last turn first
        won, drawn = 1 - real[0] - real[1], real[1]  # by the lead of the next player
        payoffs = reals[:3] if player == 1 else reals[:2:-1]  # of a win, a draw, a loss
        expected = payoffs[0] * won + payoffs[1] * drawn + payoffs[2] * (1 - won - drawn)
        guide = ideal if player == 1 else total - ideal
        name = names[player - 1]
        starts = np.vstack([expected if name == BEST_RESPONSE else guide, won, drawn])
        tolerance = game.tie_tolerance if name == OPTIMAL else 0.0
        real = follow(ints, starts, policies[name], payoffs[0], tolerance)[1:]
        if OPTIMAL in names:
            by_rules = follow(ints, np.vstack([guide, won, drawn]), by_guide, payoffs[0], 0.0)[0]
            ideal = by_rules if player == 1 else total - by_rules
    win, draw = real[:, cut - 1]
    return np.array([win, draw, 1 - win - draw])


def _rounds(game: Game) -> Rounds:
    layout = game.need(FullTable)
    assert isinstance(layout, Rounds)
    return layout


def _policy(rounds: Rounds, name: str) -> Floats:
    """Return the chance to stick by the turn's points, as `follow` expects it."""
    if name in (OPTIMAL, BEST_RESPONSE):
        return np.empty(0)
    reached, holds = visits(
        stationary(rounds.game, name).sticks, rounds.options, 2 * rounds.cut - 1
    )
    return np.divide(holds, reached, out=np.ones(2 * rounds.cut), where=reached > 0)


def rounds_agents(game: Game) -> Agents:
    board = game.board
    assert isinstance(board, PigRoundsBoard)
    return Agents(
        TurnAgents(100, board.rules.sides), from_start=from_start, facts=facts, events=EVENTS,
        plain=partial(under, game, count_rolls=False),
    )  # fmt: skip


def from_start(game: Game, names: Sequence[str]) -> tuple[float, float] | None:
    """Return the payoffs of two agents from the start; None unless this module knows both."""
    named, (agent_1, agent_2) = agents_of(game), names
    if not all(name in (OPTIMAL, BEST_RESPONSE) or name in named for name in names):
        return None
    return payoffs(plain(game), agent_1, agent_2)


def facts(game: Game, names: Sequence[str]) -> list[Fact]:
    """Return how often player 1 wins, draws and loses, and facts about the agents' turns: the mean
    points, and the chance that a turn brings 0."""
    game = plain(game)
    named, (agent_1, agent_2) = agents_of(game), names
    three = chances(game, agent_1, agent_2).tolist()
    results = [
        (agent_1, f"{does} as player 1", number)
        for does, number in zip(("wins", "draws", "loses"), three, strict=True)
    ]
    for name in dict.fromkeys(names):
        if name in named:
            points = points_of_turns(game, name)
            results.append((name, "points a turn", float(points @ np.arange(len(points)))))
            results.append((name, "chance of a turn worth nothing", float(points[0])))
    return results
