"""Skunk and the Pig that is a race between any two agents: the exact chance to win.

Agents by name: ``hold-at-k``, ``computer`` (`solver.games.skunk.agents`), ``optimal`` (as in the
table, also against somebody who is not) and ``best-response`` (to the other agent).

A policy is a chance h(m, y, t) to hold, or the best of both. With A(m, y) the chance of the first
agent at the start of his turn, m his banked points, and B(y, m) the second's likewise::

    v(t) = h (1 - B(y, m + t)) + (1 - h) (b (1 - B(y, m)) + z (1 - B(y, 0)) + sum c(s) v(t + s)) / N
    A(m, y) = v(0)

and the same for B with A. As in `solver.games.skunk.kernel`, A(m, y) and B(y, m) are solved as a
block, by descending m + y, with Newton's method where one of them picks the best, and sweeps are
repeated until both stand still, which is within 1e-12 of the values.

    >>> chance_to_win(game, "hold-at-20", "hold-at-20")
    0.5346983261...
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numba import types

from luckbase.solver.game.arrays import Floats
from luckbase.solver.game.capabilities import ClosedForms, agents_of
from luckbase.solver.game.game import Game
from luckbase.solver.games.skunk.agents import holds_by_turn, stationary
from luckbase.solver.games.skunk.kernel import roll_value, row_of
from luckbase.solver.games.skunk.rules import GOAL, MOST, TABLES, TOTAL
from luckbase.solver.games.skunk.tiers import Race, race_of
from luckbase.solver.njit import njit

OPTIMAL, BEST_RESPONSE = "optimal", "best-response"
MOST_SWEEPS = 1000
_STILL = 1e-14
_BEST = -1.0  # in the place of a chance to hold: the better of both

_i, _f, _i1, _f1 = types.int64, types.float64, types.int64[::1], types.float64[::1]
_f2 = types.float64[:, ::1]


@njit(types.UniTuple(_f, 2)(_i1, _f2, _f1, _i, _i, _f, _f1, _f1), cache=True, nogil=True)
def _turn(ints, other, holds, m, y, x, v, slope):
    """v(0) and its slope in x = 1 - other[y, m]; v and slope are room for goal + MOST + 1."""
    goal, most, total = ints[GOAL], ints[MOST], ints[TOTAL]
    left, at = goal - m, row_of(goal, m, y, 0)
    z, z_slope = (x, 1.0) if m == 0 else (1.0 - other[y, 0], 0.0)
    v[left : left + most + 1] = 1.0
    slope[left : left + most + 1] = 0.0
    for t in range(left - 1, -1, -1):
        table = TABLES + (most + 3 if t > 0 else 0)
        roll = ints[table] * x + ints[table + 1] * z
        roll_slope = ints[table] + ints[table + 1] * z_slope
        for s in range(1, most + 1):
            roll += ints[table + 2 + s] * v[t + s]
            roll_slope += ints[table + 2 + s] * slope[t + s]
        roll, roll_slope = roll / total, roll_slope / total
        h, hold = 0.0, 0.0
        if t > 0:
            h, hold = holds[at + t], 1.0 - other[y, m + t]
            if h == _BEST:
                h = 1.0 if hold >= roll else 0.0
        v[t], slope[t] = h * hold + (1.0 - h) * roll, (1.0 - h) * roll_slope
    return v[0], slope[0]


@njit(types.float64(_i1, _f2, _f2, _f1, _f1), cache=True, nogil=True)
def _sweep(ints, A, B, holds_a, holds_b):
    """One sweep over the blocks, A and B (goal, goal) in place; returns the largest change."""
    goal, most = ints[GOAL], ints[MOST]
    v, slope = np.empty(goal + most + 1), np.empty(goal + most + 1)
    change = 0.0
    for both in range(2 * goal - 2, -1, -1):
        for m in range(max(0, both - goal + 1), min(both, goal - 1) + 1):
            y = both - m
            old_a, old_b = A[m, y], B[y, m]
            for _ in range(4):
                a, b = A[m, y], B[y, m]
                new_a, alpha = _turn(ints, B, holds_a, m, y, 1.0 - b, v, slope)
                new_b, beta = _turn(ints, A, holds_b, y, m, 1.0 - a, v, slope)
                da = ((new_a - a) - alpha * (new_b - b)) / (1.0 - alpha * beta)
                db = (new_b - b) - beta * da
                A[m, y] = a + da
                B[y, m] = b + db
                if abs(da) + abs(db) <= 1e-7:
                    break
            change = max(change, abs(A[m, y] - old_a), abs(B[y, m] - old_b))
    return change


@njit(types.void(_i1, _f1, _f, _f1), cache=True, nogil=True)
def _best_holds(ints, out, tolerance, holds):
    """Where the table holds: 1, else 0; by player 1's rows. Holding comes first among ties."""
    goal = ints[GOAL]
    for m in range(goal):
        for y in range(goal):
            for t in range(1, goal - m):
                row = row_of(goal, m, y, t)
                hold = 1.0 - out[row_of(goal, y, m + t, 0)]
                roll = roll_value(ints, out, m, y, t)
                holds[row] = 0.0 if roll > hold + tolerance else 1.0


def _holds(race: Race, name: str, payoffs: Floats | None) -> Floats:
    """The chance to hold at each row of player 1's half, or `_BEST`."""
    half = race.rows(0) // 2
    if name == BEST_RESPONSE:
        return np.full(half, _BEST)
    if name == OPTIMAL:
        if payoffs is None:
            payoffs = np.empty(race.shape(0))
            race.solve_tier(0, payoffs, lambda _: np.empty(0), lambda: False)
        holds = np.zeros(half)
        _best_holds(race.ints, payoffs, race.tie_tolerance, holds)
        return holds
    agent = stationary(race.game, name)
    by_turn = holds_by_turn(agent, race.options, race.goal)
    turns = race.states_at(0, np.arange(half))[:, 2]
    return np.ascontiguousarray(by_turn[turns])


def _play(race: Race, one: Floats, two: Floats) -> float:
    A, B = (np.full((race.goal, race.goal), 0.5) for _ in range(2))
    for _ in range(MOST_SWEEPS):
        if _sweep(race.ints, A, B, one, two) <= _STILL:
            break
    return float(A[0, 0])


def chance_to_win(game: Game, one: str, two: str, payoffs: Floats | None = None) -> float:
    """The chance of agent `one`, who begins, against agent `two`, from the start.

    payoffs: float64 (rows,), the table as `solve_tier` leaves it, if at hand; `optimal` needs it.
    Raises OptionError for a name that is none, and for a board whose plays may not end.
    """
    race = race_of(game)
    return _play(race, _holds(race, one, payoffs), _holds(race, two, payoffs))


def knows(game: Game, name: str) -> bool:
    """Whether an agent's name is one of those above."""
    return name in (OPTIMAL, BEST_RESPONSE) or name in agents_of(game)


def matrix(game: Game, names: Sequence[str], payoffs: Floats | None = None) -> Floats:
    """The chance of each agent, beginning (rows), against each (columns)."""
    race = race_of(game)
    holds = [_holds(race, name, payoffs) for name in names]
    return np.array([[_play(race, one, two) for two in holds] for one in holds])


class RaceForms(ClosedForms):
    """The chances to win of any two agents who are known here, by the sweeps above."""

    def __init__(self, game: Game) -> None:
        self.game = game

    def value(self, agents: Sequence[str]) -> tuple[float, ...] | None:
        if not all(knows(self.game, name) for name in agents):
            return None
        one, two = agents
        won = chance_to_win(self.game, one, two)
        return won, 1.0 - won
