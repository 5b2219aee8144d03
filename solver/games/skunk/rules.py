"""The rules of Skunk and of the Pig that is a race, once: the transition.

A state is (mine, yours, turn, player): the banked points of the player to act and of the other, the
turn's points, and who acts, 1 or 2; with `count_rolls` the rolls of this turn behind them.

* Hold (not before the first roll of a turn, with `must_roll`): the turn's points are banked, the
  other player acts: (yours, mine + turn, 0, other).
* Roll: points are added to the turn; or the turn is lost: (yours, mine, 0, other); or the score is
  lost too: (yours, 0, 0, other).
* Over as soon as mine + turn >= goal; all such states of a player are one, (goal, 0, 0, player),
  and they have 1, the other 0.

Whoever has rolled has at least a point, so turn = 0 is before the first roll: `first_roll_safe` and
`must_roll` need no field of their own. What the dice do is in the board as whole numbers of rolls.

Ties between actions: holding comes first; rolling must be better by more than the tolerance.

Sources: docs/sources.md#gottahack-1998, docs/sources.md#neller-and-presser-2004.
"""

from __future__ import annotations

import numpy as np

from luckbase.solver.game.rules import CHANCE, DECISION, TERMINAL, TRANSITION_TYPE
from luckbase.solver.games.skunk.board import Rules
from luckbase.solver.njit import njit

MINE, YOURS, TURN, PLAYER, ROLLED = 0, 1, 2, 3, 4
"""Where the fields stand in a state."""

HOLD, ROLL = 0, 1
"""The actions."""

GOAL, MUST_ROLL, TOTAL, MAX_POINTS, TABLES = 0, 1, 2, 3, 4
"""Where the board's whole numbers stand; MAX_POINTS is the most of a roll. From TABLES on, first
for the first roll of a turn and then for the others: how many of the TOTAL rolls lose the turn,
lose the score, and are worth 0, 1, …, MAX_POINTS points."""


@njit(TRANSITION_TYPE, cache=True)
def transition(board, state, edges):
    """The edges of a state, by the contract in `solver.game.rules`."""
    ints = board.ints
    children, weights, actions, rewards, about = edges
    mine, yours, turn, player = state[MINE], state[YOURS], state[TURN], state[PLAYER]
    if mine + turn >= ints[GOAL]:
        about[0], about[1] = TERMINAL, -1
        rewards[0, 0] = 1.0 if player == 1 else 0.0
        rewards[0, 1] = 1.0 - rewards[0, 0]
        return 0
    about[0], about[1] = CHANCE, player - 1
    n = 0
    if turn > 0 or not ints[MUST_ROLL]:
        about[0] = DECISION
        children[0] = 0
        children[0, MINE], children[0, YOURS] = yours, mine + turn
        children[0, PLAYER] = 3 - player
        weights[0], actions[0] = 1.0, HOLD
        n = 1
    most = ints[MAX_POINTS]
    table = TABLES + (most + 3 if turn > 0 else 0)
    for k in range(most + 3):
        ways = ints[table + k]
        if ways == 0:
            continue
        children[n] = 0
        if k < 2:
            children[n, MINE], children[n, YOURS] = yours, 0 if k == 1 else mine
            children[n, PLAYER] = 3 - player
        elif mine + turn + k - 2 >= ints[GOAL]:
            children[n, MINE], children[n, PLAYER] = ints[GOAL], player
        else:
            children[n, MINE], children[n, YOURS], children[n, TURN] = mine, yours, turn + k - 2
            children[n, PLAYER] = player
            if state.size > ROLLED:
                children[n, ROLLED] = state[ROLLED] + 1
        weights[n], actions[n] = ways / ints[TOTAL], ROLL
        n += 1
    for edge in range(n):
        rewards[edge, 0] = rewards[edge, 1] = 0.0
    return n


def numbers(rules: Rules) -> tuple[np.ndarray, np.ndarray]:
    """The board as `transition` reads it: (ints, reals); nothing in the second."""
    first, later = rules.rolls(True), rules.rolls(False)
    ints = [rules.goal, rules.must_roll, first.total, len(first.points) - 1]
    for table in (first, later):
        ints += [table.turn, table.score, *table.points]
    return np.array(ints, np.int64), np.zeros(1)
