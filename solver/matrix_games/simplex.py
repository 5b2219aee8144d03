"""Zero-sum matrix games, one at a time: value, a strategy for each player, and a proof.

The row player picks a row and the column player a column at the same time; the column player pays
A[r, c] to the row player. With x, y over the simplices (von Neumann 1928)::

    v = max_x min_c (x A)_c = min_y max_r (A y)_r

**The proof.** Any pair x, y gives bounds: ``low = min_c (x A)_c <= v <= high = max_r (A y)_r``. The
value is their middle. ``gap = high - low`` is computed afterwards on the given matrix, by whatever
method x and y were found, so a mistake shows as a gap.

**The algorithm** (`solve_game`):

1. A saddle point, an entry least in its row and greatest in its column, ends it with gap 0.
2. Rows and columns that are dominated (weakly, in exact comparison) are removed.
3. The rest is shifted and scaled into 1 <= A' <= 2, so that its value is positive, and ::

       max 1 y'  subject to  A' y' <= 1, y' >= 0          (v' = 1 / optimum, y = v' y')

   is solved by the simplex method (Dantzig 1951) on a condensed tableau: float64 (m + 1, n + 1),
   with the right side last and the reduced costs, which hold x, in the last row. A pivot exchanges
   the variable of a row (basic) with the variable of a column; `labels` names both. The first pivot
   is the largest entry of the column whose largest entry is least; then the largest reduced cost
   decides.
4. If the gap is above the tolerance (1e-13 of the range of the entries plus 16 roundings of an
   entry), the tableau of the last basis is computed again from the matrix, with complete pivoting.
5. While the gap is above it, a pivot of the criss-cross method follows (Terlaky 1985: Bland's rule
   of the least index, from any basis, so that it cannot cycle), and then step 4. The strategies
   with the smallest gap are kept, with this gap.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.compiled import njit, types
from luckbase.solver.matrix_games import MAX_SIDE, SOLVE_GAME, WORK

_f1, _f2, _f3 = types.float64[::1], types.float64[:, ::1], types.float64[:, :, ::1]
_i1, _n, _f, _b = types.int64[::1], types.int64, types.float64, types.boolean
_any = types.float64[:, :]


LARGEST = 1e100
"""The largest entry: leaves room for products."""
ATTEMPTS = 500
"""The most bases that are tried for a game."""
AT_ONCE = 256
"""Games whose ranges are computed together."""
typed = partial(njit, error_model="numpy")
"""The decorator of every function here."""

# Three functions take a matrix, its sign, and then rows and columns. For the other player they get
# a.T and the opposite sign.


@typed(_f(_any, _f, _n, _n, _f1))
def secured(a, sign, rows, columns, x):
    """Return the least payoff of the strategy x of the player of the rows of sign * a."""
    least = np.inf
    for c in range(columns):
        total = 0.0
        for r in range(rows):
            total += x[r] * (sign * a[r, c])
        least = min(least, total)
    return least


@typed(types.Tuple((_n, _f))(_any, _f, _n, _n))
def best_row(a, sign, rows, columns):
    """Return the first row of sign * a whose least entry is greatest, and this entry."""
    row, greatest = -1, -np.inf
    for r in range(rows):
        least = np.inf
        for c in range(columns):
            least = min(least, sign * a[r, c])
        if least > greatest:
            row, greatest = r, least
    return row, greatest


@typed(_n(_any, _f, _n, _n, _i1, _i1))
def drop_dominated(a, sign, m, n, rows, columns):
    """Remove from rows[:m] the rows of sign * a that others dominate; return how many remain."""
    for i in range(m - 1, -1, -1):
        r, top = rows[i], columns[0]
        for k in range(n):
            if sign * a[r, columns[k]] > sign * a[r, top]:
                top = columns[k]
        for j in range(m):
            rival, k = rows[j], 0
            if rival == r or sign * a[rival, top] < sign * a[r, top]:  # nearly always true
                continue
            while k < n and sign * a[r, columns[k]] <= sign * a[rival, columns[k]]:
                k += 1
            if k == n:
                m -= 1
                for k in range(i, m):
                    rows[k] = rows[k + 1]
                break
    return m


@typed(types.UniTuple(_n, 2)(_f2, _n, _n, _i1, _i1))
def undominated(a, rows, columns, keep_rows, keep_columns):
    """Remove dominated rows and columns from 0, 1, …, repeatedly; return how many remain."""
    m, n, before = rows, columns, 0
    while m + n != before:
        before = m + n
        m = drop_dominated(a, 1.0, m, n, keep_rows, keep_columns)
        n = drop_dominated(a.T, -1.0, n, m, keep_columns, keep_rows)
    return m, n


@typed(types.void(_f2, _n, _n, _f2, _n, _n))
def pivot(t, m, n, labels, p, q):
    """Exchange the variables of row p and column q of the tableau (m + 1, n + 1), in place."""
    inverse, unit = 1.0 / t[p, q], np.uint64(1)
    m, n, p, q = np.uint64(m), np.uint64(n), np.uint64(p), np.uint64(q)
    for c in range(n + unit):
        t[p, c] *= inverse
    for r in range(m + unit):
        if r != p:
            f = t[r, q]
            for c in range(n + unit):
                t[r, c] -= f * t[p, c]
            t[r, q] = -f * inverse
    t[p, q] = inverse
    labels[0, p], labels[1, q] = labels[1, q], labels[0, p]


@typed(types.UniTuple(_n, 2)(_f2, _n, _n, _f2, _f2))
def tableau(a, m, n, t, labels):
    """Write the first tableau of a game (m, n) of entries 0 to 1; return the first pivot.

    It is the greatest entry of the column in which that is least.

    labels: labels[0, r] is the variable of row r, labels[1, c] of column c: 0 to n - 1 for the
        columns of the game, n to n + m - 1 for the slacks of its rows.
    """
    p = q = 0
    lowest = np.inf
    for c in range(n):
        lowest_row, best = 0, -np.inf
        for r in range(m):
            t[r, c] = a[r, c] + 1.0
            if t[r, c] > best:
                best, lowest_row = t[r, c], r
        if best < lowest:
            lowest, p, q = best, lowest_row, c
        t[m, c], labels[1, c] = 1.0, c
    for r in range(m):
        t[r, n], labels[0, r] = 1.0, n + r
    t[m, n] = 0.0
    return p, q


@typed(types.void(_n, _n, _f2, _f2))
def simplex(m, n, t, labels):
    """Pivot a tableau by Dantzig's rule. It may give up; the gap will show it."""
    for _ in range(50 + 10 * (m + n)):
        q, cost = -1, 1e-14
        for c in range(n):
            if t[m, c] > cost:
                q, cost = c, t[m, c]
        if q < 0:
            break
        p, ratio = -1, np.inf
        for r in range(m):
            if t[r, q] > 1e-11:
                this = t[r, n] / t[r, q]
                if this < ratio or (this == ratio and t[r, q] > t[p, q]):
                    p, ratio = r, this
        if p < 0:
            break
        pivot(t, m, n, labels, p, q)


@typed(types.void(_f2, _n, _n, _f2, _f2))
def rebuild(a, m, n, t, labels):
    """Compute the tableau of the basis of `labels` again from the game, with complete pivoting."""
    basic = np.zeros(m + n, np.bool_)  # the variables of the basis
    for r in range(m):
        basic[int(labels[0, r])] = True
    tableau(a, m, n, t, labels)
    while True:
        p, q, greatest = -1, -1, 1e-15
        for r in range(m):
            for c in range(n):
                wanted = basic[int(labels[1, c])] and not basic[int(labels[0, r])]
                if wanted and abs(t[r, c]) > greatest:
                    p, q, greatest = r, c, abs(t[r, c])
        if p < 0:
            break
        pivot(t, m, n, labels, p, q)


@typed(_b(_n, _n, _f2, _f2))
def least_index_pivot(m, n, t, labels):  # noqa: C901  # rows, columns, and the other side of the pivot
    """Make one pivot of the criss-cross method; return False if the tableau has none.

    A variable with a negative right side or a positive cost is exchanged with a variable that
    corrects it; both are chosen by the least label.
    """
    p, q, least = -1, -1, np.inf
    for r in range(m):
        if t[r, n] < -1e-14 and labels[0, r] < least:
            p, least = r, labels[0, r]
    for c in range(n):
        if t[m, c] > 1e-14 and labels[1, c] < least:
            p, q, least = -1, c, labels[1, c]
    least = np.inf
    if p >= 0:
        for c in range(n):
            if t[p, c] < -1e-11 and labels[1, c] < least:
                q, least = c, labels[1, c]
    elif q >= 0:
        for r in range(m):
            if t[r, q] > 1e-11 and labels[0, r] < least:
                p, least = r, labels[0, r]
    if least == np.inf:
        return False
    pivot(t, m, n, labels, p, q)
    return True


@typed(types.void(_n, _n, _f2, _f2, _i1, _i1, _f1, _f1))
def read_strategies(m, n, t, labels, keep_rows, keep_columns, x, y):
    """Write the strategies of a tableau to x and y, without negative weights and with sums of 1."""
    x[:], y[:] = 0.0, 0.0
    x_sum = y_sum = 0.0
    for r in range(m):
        if labels[0, r] < n and t[r, n] > 0.0:
            y[keep_columns[int(labels[0, r])]] = t[r, n]
            y_sum += t[r, n]
    for c in range(n):
        if labels[1, c] >= n and t[m, c] < 0.0:
            x[keep_rows[int(labels[1, c]) - n]] = -t[m, c]
            x_sum -= t[m, c]
    for r in range(x.size):
        x[r] /= x_sum
    for c in range(y.size):
        y[c] /= y_sum


@typed(SOLVE_GAME)
def solve_game(a, rows, columns, dominance, x, y, work):  # noqa: C901  # the simplex and then its repairs
    """Solve one game: return (value, gap) and write its strategies to x and y.

    a: float64 (rows, columns) or larger.
    dominance: whether to look for a saddle point and remove dominated rows and columns first.
    x, y: float64, at least as long as the game.
    work: scratch, float64 `WORK`; without a saddle point, work[1] has the labels of the last basis.
    """
    x[:rows], y[:columns] = 0.0, 0.0
    keep_rows, keep_columns = np.arange(rows), np.arange(columns)
    m, n = rows, columns
    if dominance:
        r, low = best_row(a, 1.0, rows, columns)
        c, high = best_row(a.T, -1.0, columns, rows)
        if low == -high:  # a saddle point
            x[r] = y[c] = 1.0
            return a[r, c], 0.0
        m, n = undominated(a, rows, columns, keep_rows, keep_columns)
    low = high = a[0, 0]
    for r in range(rows):
        for c in range(columns):
            low, high = min(low, a[r, c]), max(high, a[r, c])
    spread = high - low
    scale, fine = 1.0 / max(spread, 1e-300), 1e-13 * spread + 16 * 2.3e-16 * max(-low, high)
    t, labels, game = work[0], work[1], work[2]
    for r in range(m):
        for c in range(n):
            game[r, c] = (a[keep_rows[r], keep_columns[c]] - low) * scale
    value, gap = np.nan, np.inf
    own_x, own_y = np.empty(rows), np.empty(columns)
    p, q = tableau(game, m, n, t, labels)
    pivot(t, m, n, labels, p, q)
    simplex(m, n, t, labels)
    for attempt in range(ATTEMPTS):
        if attempt > 1 and not least_index_pivot(m, n, t, labels):
            break
        if attempt > 0:
            rebuild(game, m, n, t, labels)
        read_strategies(m, n, t, labels, keep_rows, keep_columns, own_x, own_y)
        lower = secured(a, 1.0, rows, columns, own_x)
        upper = -secured(a.T, -1.0, columns, rows, own_y)
        if upper - lower < gap:
            value, gap = lower + 0.5 * (upper - lower), upper - lower
            for i in range(rows):  # a loop: copying slices takes two seconds to compile
                x[i] = own_x[i]
            for i in range(columns):
                y[i] = own_y[i]
        if gap <= fine:
            break
    return value, max(gap, 0.0)


# --- many games ---------------------------------------------------------------------------------


@typed(types.void(_f3, _f1, _f2, _f2, _f1))
def _solve(batch, values, x, y, gaps):
    (n, rows, columns), work = batch.shape, np.zeros(WORK)
    for i in range(n):
        values[i], gaps[i] = solve_game(batch[i], rows, columns, True, x[i], y[i], work)


@dataclass(frozen=True)
class Solutions:
    """The solutions of n games of (rows, columns)."""

    values: NDArray[np.float64]  # (n,), within gap / 2 of the exact value
    row_strategies: NDArray[np.float64]  # (n, rows), lotteries
    column_strategies: NDArray[np.float64]  # (n, columns), lotteries
    gaps: NDArray[np.float64]  # (n,), between the bounds that the two strategies prove


def solve(batch: NDArray[np.float64]) -> Solutions:
    """Solve games (n, rows, columns) of 1 x 1 to 16 x 16; the row player gets the entries.

    >>> solve(np.array([[[0.0, -1.0, 1.0], [1.0, 0.0, -1.0], [-1.0, 1.0, 0.0]]])).values
    array([0.])

    Raises ValueError for another shape, or an entry that is not finite or beyond 1e100.
    """
    games = np.ascontiguousarray(batch, np.float64)
    if games.ndim != 3 or not all(1 <= side <= MAX_SIDE for side in games.shape[1:]):
        expected = f"expected (n, rows, columns), 1 to {MAX_SIDE}"
        raise ValueError(f"games of shape {games.shape}; {expected}")
    if not np.all(np.abs(games) <= LARGEST):
        raise ValueError(f"an entry is not a number between -{LARGEST:g} and {LARGEST:g}")
    n, rows, columns = games.shape
    values, gaps = np.empty(n), np.empty(n)
    x, y = np.zeros((n, rows)), np.zeros((n, columns))
    _solve(games, values, x, y, gaps)
    return Solutions(values, x, y, gaps)


def all_ranges(games: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the least and the greatest weight of each row in optimal strategies of games (n, rows,
    columns): (n, rows, 2).

    If every entry of row r gains t, the value gains t times the greatest (for t < 0 the least)
    weight of r in an optimal strategy (Mills 1956). The steps t are 1e-6 of the entries' range: the
    weights are accurate to about 1e-6, and strategies that cost less than t count as optimal.
    """
    games = np.ascontiguousarray(games, np.float64)
    n, rows, columns = games.shape
    ranges = np.empty((n, rows, 2))
    for start in range(0, n, AT_ONCE):
        part = games[start : start + AT_ONCE]
        spread, largest = np.ptp(part, axis=(1, 2)), np.abs(part).max(axis=(1, 2))
        step = 1e-6 * np.where(spread > 0, spread, np.maximum(1.0, largest))
        changed = np.repeat(part[:, None], 2 * rows + 1, axis=1)
        for r in range(rows):
            changed[:, r, r] -= step[:, None]
            changed[:, rows + r, r] += step[:, None]
        values = solve(changed.reshape(-1, rows, columns)).values.reshape(len(part), -1)
        down, up = values[:, -1:] - values[:, :rows], values[:, rows:-1] - values[:, -1:]
        slopes = np.stack([down, up], axis=2) / step[:, None, None]
        ranges[start : start + AT_ONCE] = np.clip(slopes, 0.0, 1.0)
    return ranges
