"""The kernel of Skunk and of the Pig that is a race: every state's chance to win, certified.

Let V(m, y) be the chance of the player to act at the start of a turn, m banked and y the other's,
and v(t) = v(m, y, t) with t points in the turn; N rolls are equally likely, B lose the turn, C lose
the score and c(s) are worth s points::

    v(t) = 1                                                           if m + t >= goal
         = max(1 - V(y, m + t), (B x + C z + sum of c(s) v(t + s)) / N),  V(m, y) = v(0)
    x = 1 - V(y, m),  z = 1 - V(y, 0)

1. **A turn** given V is a loop over t downwards. Beside v goes its slope dv/dx: v is convex and
   piecewise linear in x.
2. **A block** {(m, y), (y, m)}: V(m, y) and V(y, m) as functions of each other, solved by Newton's
   method with the slopes, which is policy iteration on the block.
3. **A sweep** goes over the blocks by descending m + y. Everything else that a block reads has a
   higher sum, but for z. So where no roll loses the score one sweep solves the game; Skunk takes
   14. Sweeps stop when V stands still.
4. **The certificate** (`certify`) reads only the finished values. s(m, t) bounds the actions that
   a player alone can make before they win, however they play: s >= 1 + s(m + t, 0) and
   s >= 1 + (B s(m, 0) + C s(0, 0) + sum of c(s') s(m, t + s')) / N. Then w = s(m, t) + s(y, 0)
   bounds the actions of both from (m, y, t) on, and satisfies w >= 1 + the mean of w after any
   action. So if |out - T out| <= eps everywhere, T the Bellman operator, then
   |out - exact| <= eps max(w) (the argument of `solver.search.cycles`, step 3). eps is
   the residual as computed plus the rounding of computing it: sums here are compensated, so 3 u, u
   = 2 ** -53.

Rows: (player, m, y, t) ascending, t < goal - m; player 2's half is 1 minus player 1's.

Goal 100, one core: 0.32 s, of which 0.03 s are the certificate.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import types

from luckbase.solver.game.game import Stopped
from luckbase.solver.games.skunk.rules import GOAL, HOLD, MAX_POINTS, ROLL, TABLES, TOTAL
from luckbase.solver.njit import njit

MAX_SWEEPS = 1000
_NEWTON_STEPS = 4
_STILL = 1e-15
_NEWTON_STILL = 1e-7  # a step this small came to no other policy, or the next sweep finds out
_ROUNDING = 3 * 2.0**-53

_i, _f, _i1, _f1 = types.int64, types.float64, types.int64[::1], types.float64[::1]
_f2 = types.float64[:, ::1]


@njit(types.int64(_i, _i, _i, types.int64), cache=True, inline="always")
def row_of(goal, mine, yours, turn):
    """The row of a state in a player's half."""
    return goal * (mine * goal - mine * (mine - 1) // 2) + yours * (goal - mine) + turn


@njit(
    types.void(_i1, _f2, _i, _i, _f, _f1, _f1),
    cache=True,
    nogil=True,
)
def turn_values(ints, V, m, y, x, v, slope):
    """Write v(t), t < goal - m, and dv/dx for x = 1 - V(y, m), given V (goal, goal). The next
    MAX_POINTS places become the 1s of the games won."""
    goal, most, total = ints[GOAL], ints[MAX_POINTS], ints[TOTAL]
    left = goal - m
    z, z_slope = (x, 1.0) if m == 0 else (1.0 - V[y, 0], 0.0)
    v[left : left + most + 1] = 1.0
    slope[left : left + most + 1] = 0.0
    table = TABLES + most + 3
    for t in range(left - 1, -1, -1):
        if t == 0:
            table = TABLES
        B, C = ints[table], ints[table + 1]
        roll, roll_slope = B * x + C * z, B + C * z_slope
        for s in range(1, most + 1):
            ways = ints[table + 2 + s]
            roll += ways * v[t + s]
            roll_slope += ways * slope[t + s]
        v[t], slope[t] = roll / total, roll_slope / total
        if t > 0 and 1.0 - V[y, m + t] >= v[t]:
            v[t], slope[t] = 1.0 - V[y, m + t], 0.0


@njit(_f(_i1, _f2, types.boolean), cache=True, nogil=True)
def sweep(ints, V, ascending):
    """One sweep over the blocks, V (goal, goal) in place; returns the largest change. `ascending`
    is the wrong order, which costs sweeps and nothing else."""
    goal, most = ints[GOAL], ints[MAX_POINTS]
    v, slope = np.empty(goal + most + 1), np.empty(goal + most + 1)
    change = 0.0
    for i in range(2 * goal - 1):
        both = i if ascending else 2 * goal - 2 - i
        for m in range(max(0, both - goal + 1), both // 2 + 1):
            y = both - m
            old_a, old_b = V[m, y], V[y, m]
            for _ in range(_NEWTON_STEPS):
                a, b = V[m, y], V[y, m]
                turn_values(ints, V, m, y, 1.0 - b, v, slope)
                A, alpha = v[0], slope[0]
                if m == y:  # a' = A - alpha (a' - a)
                    da = db = (A - a) / (1.0 + alpha)
                else:  # a' = A - alpha (b' - b) and b' = B - beta (a' - a)
                    turn_values(ints, V, y, m, 1.0 - a, v, slope)
                    B, beta = v[0], slope[0]
                    da = ((A - a) - alpha * (B - b)) / (1.0 - alpha * beta)
                    db = (B - b) - beta * da
                V[m, y] = a + da
                V[y, m] = b + db
                if abs(da) + abs(db) <= _NEWTON_STILL:
                    break
            change = max(change, abs(V[m, y] - old_a), abs(V[y, m] - old_b))
    return change


@njit(
    _f(_i1, _f1, _i, _i, _i), cache=True, nogil=True
)  # fmt: skip
def roll_value(ints, out, m, y, t):
    """The chance to win after rolling at (m, y, t), by the table; off by at most 2.5 u.

    Products are exact (14 bits of ways, 39 of the value, the rest apart), their sum is compensated
    (Knuth's TwoSum).
    """
    goal, most = ints[GOAL], ints[MAX_POINTS]
    table = TABLES + (most + 3 if t > 0 else 0)
    at = row_of(goal, m, y, t)
    q, lost = 0.0, 0.0
    for k in range(most + 3):
        ways = ints[table + k]
        if ways == 0:
            continue
        if k < 2:
            value = 1.0 - out[row_of(goal, y, 0 if k == 1 else m, 0)]
        elif m + t + k - 2 >= goal:
            value = 1.0
        else:
            value = out[at + k - 2]
        split = value * 16385.0
        high = split - (split - value)
        term = ways * high
        partial = q + term
        back = partial - q
        lost += (q - (partial - back)) + (term - back) + ways * (value - high)
        q = partial
    return (q + lost) / ints[TOTAL]


@njit(_f(_i1, _f1, _i, _i, _i), cache=True, nogil=True)
def hold_value(ints, out, m, y, t):
    """The chance to win after holding at (m, y, t), by the table."""
    return 1.0 - out[row_of(ints[GOAL], y, m + t, 0)]


@njit(_f(_i1, _f1, _i, _i, _i), cache=True, nogil=True)
def back_up(ints, out, m, y, t):
    """(T out)(m, y, t), off by at most 2.5 u."""
    q = roll_value(ints, out, m, y, t)
    return max(q, hold_value(ints, out, m, y, t)) if t > 0 else q


@njit(
    types.void(_i1, _f2, _f1, _f, types.int8[::1], _f1), cache=True, nogil=True
)  # fmt: skip
def fill(ints, V, out, tolerance, best, margin):
    """Write every row of both halves from the turn starts, the sums compensated.

    best, margin: as `Decisions` has them, or of size 0 where not wanted; the first action, to hold,
    is taken unless rolling is better by more than the tolerance.
    """
    goal = ints[GOAL]
    half = out.size // 2
    noted, priced = best.size > 0, margin.size > 0
    for m in range(goal):
        for y in range(goal):
            out[row_of(goal, m, y, 0)] = V[m, y]
    for m in range(goal):
        for y in range(goal):
            at = row_of(goal, m, y, 0)
            for t in range(goal - m - 1, 0, -1):
                roll, hold = roll_value(ints, out, m, y, t), hold_value(ints, out, m, y, t)
                out[at + t] = max(roll, hold)
                if noted:
                    best[at + t] = ROLL if roll > hold + tolerance else HOLD
                if priced:
                    more = roll - hold if roll > hold + tolerance else hold - roll
                    margin[at + t] = max(more, 0.0)
            if noted:
                best[at] = ROLL  # the first roll of a turn is not refused
    for row in range(half):
        out[half + row] = 1.0 - out[row]
    best[best.size // 2 :] = best[: best.size // 2]
    margin[margin.size // 2 :] = margin[: margin.size // 2]


@njit(_f(_i1, _f1), cache=True, nogil=True)
def residual(ints, out):
    """max |out - T out| over the rows of player 1, the rounding of computing it included."""
    goal, worst = ints[GOAL], 0.0
    for m in range(goal):
        for y in range(goal):
            for t in range(goal - m):
                off = abs(out[row_of(goal, m, y, t)] - back_up(ints, out, m, y, t))
                if not off <= worst:  # what is not a number is the worst
                    worst = off
    return worst + _ROUNDING


@njit(_f(_i1, _f2, types.int64, types.float64, types.float64, types.boolean), cache=True)
def _actions_alone(ints, s, m, x, z, write):
    """The longest way to play a turn from (m, 0) where s(m, 0) is x and s(0, 0) is z: Newton's next
    x, or, if asked to write, s[m, 0] after writing s[m]."""
    goal, most, total = ints[GOAL], ints[MAX_POINTS], ints[TOTAL]
    left = goal - m
    w, slope = np.zeros(left + most + 1), np.zeros(left + most + 1)
    for t in range(left - 1, -1, -1):
        table = TABLES + (most + 3 if t > 0 else 0)
        roll = ints[table] * x + ints[table + 1] * (x if m == 0 else z)
        roll_slope = 1.0 * ints[table] + (ints[table + 1] if m == 0 else 0)
        for k in range(1, most + 1):
            roll += ints[table + 2 + k] * w[t + k]
            roll_slope += ints[table + 2 + k] * slope[t + k]
        w[t], slope[t] = 1.0 + roll / total, roll_slope / total
        if t > 0 and 1.0 + s[m + t, 0] > w[t]:
            w[t], slope[t] = 1.0 + s[m + t, 0], 0.0
    if write:
        s[m, :left] = w[:left]
        return w[0]
    return x + (w[0] - x) / (1.0 - slope[0])  # Newton's next x


@njit(_f(_i1), cache=True)
def most_actions(ints):  # noqa: C901  # one check, step by step
    """A checked bound on w over all states: the actions of both players, however they play; inf if
    none was found."""
    goal, most, total = ints[GOAL], ints[MAX_POINTS], ints[TOTAL]
    s = np.zeros((goal + 1, goal + 1))
    z, last_z, last_f = 0.0, 0.0, 0.0
    for step in range(200):
        for m in range(goal - 1, -1, -1):
            x = s[m, 0]
            for _ in range(100):
                following = _actions_alone(ints, s, m, x, z, False)
                still = abs(following - x) <= 1e-9 * x
                x = following
                if still:
                    break
            _actions_alone(ints, s, m, x, z, True)
        f = s[0, 0]
        if abs(f - z) <= 1e-6 * f:
            break
        # The secant; it solves f(z) = z, and the check below forgives what it leaves.
        following = f
        if step > 0 and abs((f - last_f) - (z - last_z)) > 0:
            rate = (f - last_f) / (z - last_z)
            following = z + (f - z) / (1.0 - rate) if rate < 1.0 else 2.0 * f
        last_z, last_f = z, f
        z = following
    slack, largest = np.inf, 0.0
    for m in range(goal):
        for t in range(goal - m):
            table = TABLES + (most + 3 if t > 0 else 0)
            mean = ints[table] * s[m, 0] + ints[table + 1] * s[0, 0]
            for k in range(1, most + 1):
                if m + t + k < goal:
                    mean += ints[table + 2 + k] * s[m, t + k]
            mean /= total
            if t > 0:
                mean = max(mean, s[m + t, 0])
            slack = min(slack, s[m, t] - mean * (1.0 + 1e-14))
            largest = max(largest, s[m, t])
    return 2.0 * largest / slack if slack > 0.0 else np.inf


def certify(ints: np.ndarray, out: np.ndarray) -> float:
    """A bound on |out - exact| over all rows, from the table alone, whatever made it (step 4).

    ints: the board (`rules.numbers`), must_roll true; out: float64 (rows,).
    """
    half = len(out) // 2
    mirrored = float(np.abs((1.0 - out[:half]) - out[half:]).max()) + 2.0**-53
    return float(residual(ints, out)) * float(most_actions(ints)) * (1 + 1e-6) + mirrored


def solve(
    ints: np.ndarray,
    V: np.ndarray,
    most_sweeps: int = MAX_SWEEPS,
    stop: Callable[[], bool] = lambda: False,
) -> int:
    """Sweep V, float64 (goal, goal), until it stands still; in place. Returns the sweeps.

    Raises Stopped after the sweep in which `stop()` turned true.
    """
    last = np.inf
    for sweeps in range(1, most_sweeps + 1):
        change = sweep(ints, V, False)
        if change <= _STILL or (change < 1e-14 and change >= last):
            return sweeps
        if stop():
            raise Stopped
        last = change
    return most_sweeps
