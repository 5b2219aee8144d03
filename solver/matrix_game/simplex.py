"""Zero-sum matrix games, one at a time or many small ones: value, a strategy a side, and a proof.

The row player picks a row, the column player a column, at once; the row player gets A[r, c] and the
column player pays it. With x, y over the simplices (von Neumann 1928)::

    v = max_x min_c (x A)_c = min_y max_r (A y)_r

**The proof.** Any pair x, y gives bounds: ``low = min_c (x A)_c <= v <= high = max_r (A y)_r``. The
value returned is their middle and ``gap = high - low`` is worked out afterwards on the matrix that
was given, whatever led to x and y. So a wrong turn shows as a gap; nothing is accepted unseen.

**The algorithm** (`solve_game`):

1. A saddle point, an entry least in its row and greatest in its column, ends it: gap 0.
2. Rows and columns that another one dominates (weakly, in exact comparison) are left out, until
   none is.
3. The rest is shifted and scaled into 1 <= A' <= 2, so that its value is positive, and ::

       max 1 y'  subject to  A' y' <= 1, y' >= 0          (v' = 1 / optimum, y = v' y')

   is solved by the condensed tableau simplex (Dantzig 1951): float64 (m + 1, n + 1), m rows and n
   columns of the game, the right side last, the reduced costs, which hold x, in the last row. A
   pivot exchanges the variable of a row (basic) with that of a column; the labels say which stands
   where. The first pivot is the largest entry of the column in which that is least; then the
   largest reduced cost.
4. If the gap is above the tolerance (1e-13 of the range of the entries, and 16 roundings of an
   entry), the tableau of the last basis is computed again from the matrix, with complete pivoting.
5. While the gap is above it, a pivot of the criss-cross method follows (Terlaky 1985: Bland's rule
   of the least index, from any basis, so that it cannot cycle), and step 4 again. The strategies
   with the smallest gap are kept, with this gap.

The value of a game is unique; its optimal strategies need not be. `all_ranges` says how much weight
each row can have in an optimal strategy, by Mills (1956): when every entry of row r gains t, the
value gains t times the greatest (for t < 0 the least) weight of r in an optimal strategy.

Sources: von Neumann, Zur Theorie der Gesellschaftsspiele, 1928; Dantzig, A proof of the equivalence
of the programming problem and the game problem, 1951; Terlaky, A convergent criss-cross method,
1985; Mills, Marginal values of matrix games and linear programs, 1956.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.compiled import njit, types
from luckbase.solver.matrix_game import MAX_SIDE, SOLVE_GAME, WORK

_f1, _f2, _f3 = types.float64[::1], types.float64[:, ::1], types.float64[:, :, ::1]
_i1, _n, _f, _b = types.int64[::1], types.int64, types.float64, types.boolean
_pair = types.UniTuple(types.float64, 2)


LARGEST = 1e100
"""The largest entry: room for products."""
ATTEMPTS = 500
"""Bases of a game that are tried at most, after the simplex."""
AT_ONCE = 256
"""Games whose ranges are worked out together."""


def typed(signature):
    """How every function here is compiled."""
    return njit(signature, error_model="numpy")


@typed(_pair(_f2, _n, _n, _f1, _f1))
def bounds(a, rows, columns, x, y):
    """(low, high): what x secures the row player and what y lets them have."""
    low, high = np.inf, -np.inf
    for c in range(columns):
        total = 0.0
        for r in range(rows):
            total += x[r] * a[r, c]
        low = min(low, total)
    for r in range(rows):
        total = 0.0
        for c in range(columns):
            total += a[r, c] * y[c]
        high = max(high, total)
    return low, high


@typed(types.UniTuple(_n, 2)(_f2, _n, _n))
def saddle_point(a, rows, columns):
    """(row, column) of the first saddle point; (-1, -1) if there is none."""
    row, column, min_max, max_min = -1, -1, np.inf, -np.inf
    for r in range(rows):
        worst = np.inf
        for c in range(columns):
            worst = min(worst, a[r, c])
        if worst > max_min:
            max_min, row = worst, r
    for c in range(columns):
        best = -np.inf
        for r in range(rows):
            best = max(best, a[r, c])
        if best < min_max:
            min_max, column = best, c
    if max_min == min_max:
        return row, column
    return -1, -1


@typed(types.UniTuple(_n, 2)(_f2, _n, _n, _i1, _i1))
def undominated(a, rows, columns, keep_rows, keep_columns):  # noqa: C901  # rows, then columns, until nothing goes
    """Write the rows and columns that no other one dominates, iterated; returns how many."""
    m, n = rows, columns
    for r in range(rows):
        keep_rows[r] = r
    for c in range(columns):
        keep_columns[c] = c
    changed = True
    while changed:
        changed = False
        for i in range(m - 1, -1, -1):
            r, top, greatest = keep_rows[i], 0, -np.inf
            for k in range(n):
                if a[r, keep_columns[k]] > greatest:
                    top, greatest = keep_columns[k], a[r, keep_columns[k]]
            for j in range(m):
                rival, k = keep_rows[j], 0
                if rival == r or a[rival, top] < greatest:  # nearly always, and foreseen
                    continue
                while k < n and a[r, keep_columns[k]] <= a[rival, keep_columns[k]]:
                    k += 1
                if k == n:
                    for k in range(i, m - 1):
                        keep_rows[k] = keep_rows[k + 1]
                    m -= 1
                    changed = True
                    break
        for i in range(n - 1, -1, -1):
            c, low, lowest = keep_columns[i], 0, np.inf
            for k in range(m):
                if a[keep_rows[k], c] < lowest:
                    low, lowest = keep_rows[k], a[keep_rows[k], c]
            for j in range(n):
                rival, k = keep_columns[j], 0
                if rival == c or a[low, rival] > lowest:
                    continue
                while k < m and a[keep_rows[k], c] >= a[keep_rows[k], rival]:
                    k += 1
                if k == m:
                    for k in range(i, n - 1):
                        keep_columns[k] = keep_columns[k + 1]
                    n -= 1
                    changed = True
                    break
    return m, n


@typed(types.void(_f2, _n, _n, _f2, _n, _n))
def pivot(t, m, n, labels, p, q):
    """Exchange the variables of row p and column q of the tableau (m + 1, n + 1), in place."""
    inverse = 1.0 / t[p, q]
    for c in range(n + 1):
        t[p, c] *= inverse
    for r in range(m + 1):
        if r != p:
            f = t[r, q]
            for c in range(n + 1):
                t[r, c] -= f * t[p, c]
            t[r, q] = -f * inverse
    t[p, q] = inverse
    labels[0, p], labels[1, q] = labels[1, q], labels[0, p]


@typed(types.UniTuple(_n, 2)(_f2, _n, _n, _f2, _f2))
def tableau(a, m, n, t, labels):
    """Write the first tableau of a game (m, n) of entries 0 to 1; returns the first pivot: the
    greatest entry of the column in which that is least.

    labels[0, r] is the variable of row r, labels[1, c] of column c: 0 to n - 1 the columns of the
    game, n to n + m - 1 the slacks of its rows.
    """
    p = q = 0
    lowest = np.inf
    for c in range(n):
        at, best = 0, -np.inf
        for r in range(m):
            t[r, c] = a[r, c] + 1.0
            if t[r, c] > best:
                best, at = t[r, c], r
        if best < lowest:
            lowest, p, q = best, at, c
        t[m, c], labels[1, c] = 1.0, c
    for r in range(m):
        t[r, n], labels[0, r] = 1.0, n + r
    t[m, n] = 0.0
    return p, q


@typed(types.void(_n, _n, _f2, _f2))
def simplex(m, n, t, labels):
    """Pivot a tableau by Dantzig's rule. The simplex may give up; the gap will show it."""
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
def rebuild(a, m, n, t, labels):  # noqa: C901  # marks, then pivots
    """Compute the tableau of the basis of `labels` again from the game, with complete pivoting."""
    for c in range(n):
        labels[2, c] = 0.0  # whether this column of the game enters the basis
    for r in range(m):
        labels[3, r] = 0.0  # whether the slack of this row leaves it
        if labels[0, r] < n:
            labels[2, int(labels[0, r])] = 1.0
    for c in range(n):
        if labels[1, c] >= n:
            labels[3, int(labels[1, c]) - n] = 1.0
    tableau(a, m, n, t, labels)
    while True:
        p, q, greatest = -1, -1, 1e-15
        for r in range(m):
            for c in range(n):
                if labels[3, r] * labels[2, c] * abs(t[r, c]) > greatest:
                    p, q, greatest = r, c, abs(t[r, c])
        if p < 0:
            break
        pivot(t, m, n, labels, p, q)
        labels[2, q] = labels[3, p] = 0.0


@typed(_b(_n, _n, _f2, _f2))
def least_index_pivot(m, n, t, labels):  # noqa: C901  # rows, columns, and the other side of the pivot
    """Make one pivot of the criss-cross method; return False if the tableau has none.

    Of the variables with a negative right side or a positive cost, the one of the least label is
    exchanged with the one of the least label that mends it.
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


@typed(types.void(_n, _n, _f2, _f2, _f1, _f1))
def read_strategies(m, n, t, labels, x, y):
    """Write the strategies of a solved tableau into x and y, whose other entries are 0."""
    for r in range(m):
        k = int(labels[0, r])
        if k < n:
            y[k] = t[r, n]
    for c in range(n):
        k = int(labels[1, c]) - n
        if k >= 0:
            x[k] = -t[m, c]


@typed(types.void(_f1, _n, _i1, _f1))
def lottery(weights, n, places, x):
    """Write weights (n,) to their places in x, which is 0 elsewhere: what is below 0 (or no number)
    as 0, and so that the sum is 1."""
    total = 0.0
    for i in range(n):
        weights[i] = weights[i] if weights[i] > 0.0 else 0.0
        total += weights[i]
    for i in range(n):
        x[places[i]] = weights[i] / total
        weights[i] = 0.0


@typed(SOLVE_GAME)
def solve_game(a, rows, columns, dominance, x, y, work):  # noqa: C901  # the simplex and then its repairs
    """Solve one game: return (value, gap) and write its strategies to x and y.

    a: float64 (rows, columns) or larger.
    dominance: whether to remove dominated rows and columns first.
    x, y: float64, at least as long as the game.
    work: scratch, float64 `WORK`.
    """
    x[:rows] = 0.0
    y[:columns] = 0.0
    r, c = saddle_point(a, rows, columns)
    if r >= 0:
        x[r] = y[c] = 1.0
        return a[r, c], 0.0
    keep_rows, keep_columns = np.arange(rows), np.arange(columns)
    m, n = rows, columns
    if dominance:
        m, n = undominated(a, rows, columns, keep_rows, keep_columns)
    low = high = a[0, 0]
    for r in range(rows):
        for c in range(columns):
            low, high = min(low, a[r, c]), max(high, a[r, c])
    scale, fine = 1.0 / (high - low), 1e-13 * (high - low) + 16 * 2.3e-16 * max(abs(low), abs(high))
    t, labels, game = work[0], work[1], work[2]
    for r in range(m):
        for c in range(n):
            game[r, c] = (a[keep_rows[r], keep_columns[c]] - low) * scale
    value, gap = np.nan, np.inf
    u, v, own_x, own_y = np.zeros(m), np.zeros(n), np.zeros(rows), np.zeros(columns)
    p, q = tableau(game, m, n, t, labels)
    pivot(t, m, n, labels, p, q)
    simplex(m, n, t, labels)
    for attempt in range(ATTEMPTS):
        if attempt > 1 and not least_index_pivot(m, n, t, labels):
            break
        if attempt > 0:
            rebuild(game, m, n, t, labels)
        read_strategies(m, n, t, labels, u, v)
        lottery(u, m, keep_rows, own_x)
        lottery(v, n, keep_columns, own_y)
        lower, upper = bounds(a, rows, columns, own_x, own_y)
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
    """The solutions of n games of (rows, columns).

    values: float64 (n,), in the unit of the entries, within gap / 2 of the truth. row_strategies:
    float64 (n, rows), column_strategies: float64 (n, columns), lotteries. gaps: float64 (n,), how
    far the bounds that the two strategies prove lie apart.
    """

    values: NDArray[np.float64]
    row_strategies: NDArray[np.float64]
    column_strategies: NDArray[np.float64]
    gaps: NDArray[np.float64]


def solve(batch: NDArray[np.float64]) -> Solutions:
    """Solve games (n, rows, columns) of 1 x 1 to 16 x 16; the row player gets the entries.

    >>> solve(np.array([[[0.0, -1.0, 1.0], [1.0, 0.0, -1.0], [-1.0, 1.0, 0.0]]])).values
    array([0.])

    Raises ValueError for another shape, or an entry that is not finite or beyond 1e100.
    """
    games = np.ascontiguousarray(batch, np.float64)
    if games.ndim != 3 or not all(1 <= side <= MAX_SIDE for side in games.shape[1:]):
        said = f"expected (n, rows, columns), 1 to {MAX_SIDE}"
        raise ValueError(f"games of shape {games.shape}; {said}")
    if not np.all(np.abs(games) <= LARGEST):
        raise ValueError(f"an entry is not a number between -{LARGEST:g} and {LARGEST:g}")
    n, rows, columns = games.shape
    values, gaps = np.empty(n), np.empty(n)
    x, y = np.zeros((n, rows)), np.zeros((n, columns))
    _solve(games, values, x, y, gaps)
    return Solutions(values, x, y, gaps)


def all_ranges(games: NDArray[np.float64]) -> NDArray[np.float64]:
    """The least and the greatest weight of each row in an optimal strategy of n games of one shape
    (n, rows, columns): float64 (n, rows, 2).

    By finite differences of the value (module docstring) with steps of 1e-6 of the entries' range:
    accurate to about 1e-6, and strategies that cost less than that step count as optimal.
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
