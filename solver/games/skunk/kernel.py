"""The single tier of Skunk, or of Pig as a race, and its kernel: certified chances to win.

A score can fall back to 0 and every state can reach every other, so there is one tier. It has a row
for every state with mine + turn < goal, even if no play reaches it (a turn of 1 point with two
dice), in the order (player, mine, yours, turn). Player 2's half is 1 minus player 1's.

Let V(m, y) be the chance of the player who acts at the start of a turn, with m banked and y the
other's score, and v(t) = v(m, y, t) with t points in the turn. N rolls are equally likely: B lose
the turn, C lose the score and c(s) are worth s points::

    v(t) = 1                                                           if m + t >= goal
         = max(1 - V(y, m + t), (B x + C z + sum of c(s) v(t + s)) / N),  V(m, y) = v(0)
    x = 1 - V(y, m),  z = 1 - V(y, 0)

1. **A turn** given V is a loop over t downwards. It also computes the slope dv/dx: v is convex and
   piecewise linear in x.
2. **A block** {(m, y), (y, m)}: V(m, y) and V(y, m) as functions of each other, solved by Newton's
   method with the slopes, which is policy iteration on the block.
3. **A sweep** goes over the blocks by descending m + y. Everything else that a block reads has a
   higher sum, except z. So if no roll loses the score, one sweep solves the game; Skunk takes 14.
   Sweeps stop when V converges.
4. **The certificate** (`certify`) reads only the finished values. s(m, t) bounds the number of
   actions of one player before they win, for any play: s >= 1 + s(m + t, 0) and s >= 1 + (B s(m, 0)
   + C s(0, 0) + sum of c(s') s(m, t + s')) / N. Then w = s(m, t) + s(y, 0) bounds the actions of
   both players from (m, y, t) on, and satisfies w >= 1 + the mean of w after any action. So if |out
   - T out| <= eps everywhere, with T the Bellman operator, then |out - exact| <= eps max(w) (the
   argument of `solver.search.policies`, step 4). eps is the computed residual plus the rounding of
   computing it: sums here are compensated, so 3 u, u = 2 ** -53.

Goal 100 takes 0.32 s on one core, 0.03 s of it for the certificate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.compiled import compile_all, inlined, jitable, njit, types
from luckbase.solver.errors import StateError, Stopped
from luckbase.solver.game.arrays import NO_BEST, Best, Floats, Ints
from luckbase.solver.game.capabilities import FullTable
from luckbase.solver.game.game import Game
from luckbase.solver.games.skunk.rules import (
    GOAL,
    HOLD,
    MAX_POINTS,
    ROLL,
    TABLES,
    TOTAL,
    options_of,
)

MAX_SWEEPS = 1000
_NEWTON_STEPS = 4
_STILL = 1e-15
_NEWTON_STILL = 1e-7  # so small a step changed no policy, or the next sweep corrects it
_ROUNDING = 3 * 2.0**-53
TOLERANCE = 1e-9  # the largest error bound of a table that is accepted; goal 200 has 1e-10

_i, _f, _i1, _f1 = types.int64, types.float64, types.int64[::1], types.float64[::1]
_f2 = types.float64[:, ::1]


@inlined
def row_of(goal, mine, yours, turn):
    """Return the row of a state in a player's half."""
    return goal * (mine * goal - mine * (mine - 1) // 2) + yours * (goal - mine) + turn


@njit(types.UniTuple(_f, 2)(_i1, _f1, _f, _f, _f, _f1, _f1))
def turn(ints, holding, x, z, cost, v, slope):
    """Write v(t), t < goal - m, and dv/dx; return both at t = 0.

    holding: float64 (goal - m,), the value of holding at each t.
    cost: added to v by each roll: 0 for a chance to win, 1 to count rolls.
    v, slope: with MAX_POINTS more places, for the values after the game is won.
    """
    end, max_points, total = holding.size, ints[MAX_POINTS], ints[TOTAL]
    z_slope = 0.0
    if end == ints[GOAL]:  # the lost score was 0
        z, z_slope = x, 1.0
    v[end : end + max_points + 1] = 1.0 - cost
    slope[end : end + max_points + 1] = 0.0
    table = TABLES + max_points + 3
    for t in range(end - 1, -1, -1):
        if t == 0:
            table = TABLES
        roll = ints[table] * x + ints[table + 1] * z
        roll_slope = ints[table] + ints[table + 1] * z_slope
        for s in range(1, max_points + 1):
            ways = ints[table + 2 + s]
            roll += ways * v[t + s]
            roll_slope += ways * slope[t + s]
        v[t], slope[t] = cost + roll / total, roll_slope / total
        if t > 0 and holding[t] >= v[t]:
            v[t], slope[t] = holding[t], 0.0
    return v[0], slope[0]


@njit(_f(_i1, _f2, _i, _i))
def block(ints, V, m, y):
    """Solve the block of V(m, y) and V(y, m) in place; return the larger change."""
    goal = ints[GOAL]
    room = np.empty((2, goal + ints[MAX_POINTS] + 1))
    v, slope = room[0], room[1]
    hold_a, hold_b = 1.0 - V[y, m:], 1.0 - V[m, y:]
    old_a, old_b = V[m, y], V[y, m]
    for _ in range(_NEWTON_STEPS):
        a, b = V[m, y], V[y, m]
        new_a, alpha = turn(ints, hold_a, 1.0 - b, 1.0 - V[y, 0], 0.0, v, slope)
        if m == y:  # a' = new_a - alpha (a' - a)
            da = db = (new_a - a) / (1.0 + alpha)
        else:  # a' = new_a - alpha (b' - b) and b' = new_b - beta (a' - a)
            new_b, beta = turn(ints, hold_b, 1.0 - a, 1.0 - V[m, 0], 0.0, v, slope)
            da = ((new_a - a) - alpha * (new_b - b)) / (1.0 - alpha * beta)
            db = (new_b - b) - beta * da
        V[m, y] = a + da
        V[y, m] = b + db
        if abs(da) + abs(db) <= _NEWTON_STILL:
            break
    return max(abs(V[m, y] - old_a), abs(V[y, m] - old_b))


@njit(_f(_i1, _f2))
def sweep(ints, V):
    """Run one sweep over the blocks; return the largest change."""
    goal, change = ints[GOAL], 0.0
    for both in range(2 * goal - 2, -1, -1):
        for m in range(max(0, both - goal + 1), both // 2 + 1):
            change = max(change, block(ints, V, m, both - m))
    return change


def solve(ints: Ints, V: Floats, stop: Callable[[], bool]) -> None:
    """Sweep V (goal, goal), the chances to win at the starts of turns, in place until it converges.
    Raises Stopped after the sweep during which `stop()` became true."""
    last = np.inf
    for _ in range(MAX_SWEEPS):
        change = sweep(ints, V)
        if change <= _STILL or (change < 1e-14 and change >= last):
            return
        if stop():
            raise Stopped
        last = change


@njit(_f(_i1, _f1, _i, _i, _i))
def roll_value(ints, out, m, y, t):
    """Return the chance to win after rolling at (m, y, t), from the table; off by at most 2.5 u,
    because products are exact and their sum is compensated (Knuth's TwoSum)."""
    goal, max_points = ints[GOAL], ints[MAX_POINTS]
    table = TABLES + (max_points + 3 if t > 0 else 0)
    row = row_of(goal, m, y, t)
    q, lost = 0.0, 0.0
    for k in range(max_points + 3):
        ways = ints[table + k]
        if ways == 0:
            continue
        if k < 2:
            value = 1.0 - out[row_of(goal, y, 0 if k == 1 else m, 0)]
        elif m + t + k - 2 >= goal:
            value = 1.0
        else:
            value = out[row + k - 2]
        split = value * 16385.0
        rounded = split - (split - value)
        term = ways * rounded
        partial = q + term
        back = partial - q
        lost += (q - (partial - back)) + (term - back) + ways * (value - rounded)
        q = partial
    return (q + lost) / ints[TOTAL]


@njit(_f2(_i1, _f1, _i, _i))
def action_values(ints, out, m, y):
    """Return the chances to win after holding and after rolling, by points: (2, goal - m); holding
    before the first roll is minus infinity."""
    goal = ints[GOAL]
    q = np.empty((2, goal - m))
    for t in range(goal - m):
        q[HOLD, t] = 1.0 - out[row_of(goal, y, m + t, 0)] if t > 0 else -np.inf
        q[ROLL, t] = roll_value(ints, out, m, y, t)
    return q


@jitable()
def repeat(column):
    """Copy the first half to the second, in a loop: slices take two seconds to compile."""
    half = column.size // 2
    for i in range(half):
        column[half + i] = column[i]


@njit(types.void(_i1, _f2, _f1, _f, types.int8[::1]))
def fill(ints, V, out, tolerance, best):
    """Write every row of both halves from the turn starts, with compensated sums.

    best: as in `Best`, or of size 0 if not wanted. Holding, the first action, is taken unless
        rolling is better by more than the tolerance.
    """
    goal = ints[GOAL]
    half = out.size // 2
    noted = best.size > 0
    for m in range(goal):
        for y in range(goal):
            out[row_of(goal, m, y, 0)] = V[m, y]
    for m in range(goal):
        for y in range(goal):
            turn_row = row_of(goal, m, y, 0)
            for t in range(goal - m - 1, 0, -1):
                roll, hold = roll_value(ints, out, m, y, t), 1.0 - V[y, m + t]
                out[turn_row + t] = max(roll, hold)
                if noted:
                    best[turn_row + t] = ROLL if roll > hold + tolerance else HOLD
            if noted:
                best[turn_row] = ROLL  # the first roll of a turn is forced
    for row in range(half):
        out[half + row] = 1.0 - out[row]
    repeat(best)


@njit(_f(_i1, _f1))
def residual(ints, out):
    """Return max |out - T out| over player 1's rows, including the rounding of computing it."""
    goal, worst = ints[GOAL], 0.0
    for m in range(goal):
        for y in range(goal):
            q, row = action_values(ints, out, m, y), row_of(goal, m, y, 0)
            for t in range(goal - m):
                off = abs(out[row + t] - max(q[HOLD, t], q[ROLL, t]))
                if not off <= worst:  # true for NaN
                    worst = off
    return worst + _ROUNDING


@njit(_f(_i1))
def most_actions(ints):  # noqa: C901  # one check, step by step
    """Return a checked bound on w over all states, the actions of both players; inf if none was
    found."""
    goal, max_points, total = ints[GOAL], ints[MAX_POINTS], ints[TOTAL]
    w, slope = np.empty(goal + max_points + 1), np.empty(goal + max_points + 1)
    s = np.zeros((goal + 1, goal + 1))
    z, last_z, last_f = 0.0, 0.0, 0.0
    for step in range(200):
        for m in range(goal - 1, -1, -1):
            x, holding = s[m, 0], 1.0 + s[m:goal, 0]
            for _ in range(100):
                longest, rate = turn(ints, holding, x, z, 1.0, w, slope)
                following = x + (longest - x) / (1.0 - rate)  # Newton's next x
                still = abs(following - x) <= 1e-9 * x
                x = following
                if still:
                    break
            turn(ints, holding, x, z, 1.0, w, slope)
            for i in range(goal - m):
                s[m, i] = w[i]
        f = s[0, 0]
        if abs(f - z) <= 1e-6 * f:
            break
        # The secant method solves f(z) = z; the check below tolerates its remaining error.
        following = f
        if step > 0 and abs((f - last_f) - (z - last_z)) > 0:
            rate = (f - last_f) / (z - last_z)
            following = z + (f - z) / (1.0 - rate) if rate < 1.0 else 2.0 * f
        last_z, last_f = z, f
        z = following
    slack, largest = np.inf, 0.0
    for m in range(goal):
        for t in range(goal - m):
            table = TABLES + (max_points + 3 if t > 0 else 0)
            mean = ints[table] * s[m, 0] + ints[table + 1] * s[0, 0]
            for k in range(1, max_points + 1):
                if m + t + k < goal:
                    mean += ints[table + 2 + k] * s[m, t + k]
            mean /= total
            if t > 0:
                mean = max(mean, s[m + t, 0])
            slack = min(slack, s[m, t] - mean * (1.0 + 1e-14))
            largest = max(largest, s[m, t])
    return 2.0 * largest / slack if slack > 0.0 else np.inf


def certify(ints: np.ndarray, out: np.ndarray) -> float:
    """Return a bound on |out - exact| over all rows, from the table alone (step 4).

    ints: the board (`game.numbers`), must_roll true.
    out: float64 (rows,), by any method.
    """
    half = len(out) // 2
    mirrored = float(np.abs((1.0 - out[:half]) - out[half:]).max()) + 2.0**-53
    return float(residual(ints, out)) * float(most_actions(ints)) * (1 + 1e-6) + mirrored


class Race(FullTable[int]):
    """One tier, number 0."""

    payoff_type: type[np.floating[Any]] = np.float64
    best_names: ClassVar[tuple[str, ...]] = ("hold", "roll")
    smaller: ClassVar[str] = "a lower goal"
    questions: ClassVar[Sequence[tuple[str, tuple[float, float, float]]]] = (
        ("the start", (0.0, 0.0, 0.0)),
        ("level, at the usual hold", (0.0, 0.0, 0.21)),
        ("far ahead", (0.67, 0.0, 0.0)),
        ("the other is nearly there", (0.0, 0.87, 0.32)),
        ("a great turn, the other nearly there", (0.0, 0.87, 0.44)),
    )
    """(title, (mine, yours, turn) as shares of the goal)."""

    def __init__(self, game: Game) -> None:
        super().__init__(game)
        self.options, self.ints = options_of(game), game.numbers.ints
        self.goal = self.options.goal

    def tiers(self) -> Sequence[int]:
        return (0,)

    def children(self, tier: int) -> Sequence[int]:
        return ()

    def tier_number(self, tier: int) -> int:
        return 0

    def tier_fields(self, tier: int) -> dict[str, int]:
        return {}  # no field of a state is constant in the only tier

    def tier_name(self, tier: int) -> str:
        return f"goal {self.goal}"

    def rows(self, tier: int) -> int:
        return self.goal * self.goal * (self.goal + 1)

    def compile(self) -> None:
        compile_all(sweep, fill, residual, most_actions)

    def solve_tier(
        self,
        tier: int,
        out: Floats,
        fetch: Callable[[int], Floats],
        stop: Callable[[], bool],
        part: int = 0,
        best: Best | None = None,
    ) -> float:
        V = np.full((self.goal, self.goal), 0.5)
        solve(self.ints, V, stop)
        best = NO_BEST if best is None else best
        fill(self.ints, V, out, self.game.tie_tolerance, best)
        bound = certify(self.ints, out)
        if not bound <= TOLERANCE:
            raise StateError(
                f"the values at goal {self.goal} are certain to {bound:.2g} only; "
                f"expected {TOLERANCE:.2g}; take a lower goal"
            )
        return bound

    def most_error(self, tier: int) -> float:
        return TOLERANCE

    def acting_rows(self, tier: int, start: int, stop: int) -> NDArray[np.int8]:
        acting = np.full(stop - start, 1, np.int8)
        acting[max(self.rows(tier) // 2 - start, 0) :] = 2
        return acting

    def locate(self, states: Ints) -> tuple[Ints, Ints]:
        mine, yours, turn, player = np.asarray(states, np.int64).reshape(-1, 4).T
        over = mine + turn >= self.goal
        rows = self._starts[np.minimum(mine, self.goal)] + yours * (self.goal - mine) + turn
        rows += (player - 1) * (self.rows(0) // 2)
        return np.where(over, -1, 0), np.where(over, -1, rows)

    def states_at(self, tier: int, rows: Ints) -> Ints:
        player, row = np.divmod(np.asarray(rows, np.int64), self.rows(0) // 2)
        mine = np.searchsorted(self._starts, row, side="right") - 1
        yours, turn = np.divmod(row - self._starts[mine], self.goal - mine)
        return np.column_stack([mine, yours, turn, player + 1])

    @cached_property
    def _starts(self) -> Ints:
        """The first row of each `mine` in a player's half, 0 to the goal."""
        mine = np.arange(self.goal + 1)
        return self.goal * (mine * self.goal - mine * (mine - 1) // 2)

    def opening_questions(self) -> Iterator[tuple[str, dict[str, object]]]:
        for title, shares in self.questions:
            numbers = (int(share * self.goal) for share in shares)
            yield title, dict(zip(("mine", "yours", "turn"), numbers, strict=True))


def race_of(game: Game) -> Race:
    """Return the layout of a game's race. Raises OptionError if its plays may not end."""
    layout = game.need(FullTable)
    assert isinstance(layout, Race)
    return layout
