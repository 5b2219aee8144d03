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
4. If the gap is over the tolerance (1e-13 of the range of the entries, and 16 roundings of an
   entry), the equations of the last basis are solved anew from the matrix with partial pivoting.
5. If it still is, all is done again under Bland's rule (1977), which can not cycle where games are
   degenerate, with 32 digits (sums of two float64, Dekker 1971), and the better of the two is kept.
   That is a **fallback**, and counted.

The value of a game is unique; its optimal strategies need not be. `all_ranges` says how much weight
each row can have in an optimal strategy, by Mills (1956): when every entry of row r gains t, the
value gains t times the greatest (for t < 0 the least) weight of r in an optimal strategy.

Sources: von Neumann, Zur Theorie der Gesellschaftsspiele, 1928; Dantzig, A proof of the equivalence
of the programming problem and the game problem, 1951; Bland, New finite pivoting rules for the
simplex method, 1977; Dekker, A floating-point technique for extending the available precision,
1971; Mills, Marginal values of matrix games and linear programs, 1956; for `eliminate`: Golub and
Van Loan, Matrix Computations, 3.4.
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
AT_ONCE = 256
"""Games whose ranges are worked out together."""


def typed(signature):
    """How every function here is compiled."""
    return njit(signature, error_model="numpy")


@typed(types.void(_f2, _n, _n, _n))
def pivot_row(t, n, columns, k):
    """Bring the row with the greatest entry of column k, of rows k on, to row k."""
    pivot = k
    for i in range(k + 1, n):
        if abs(t[i, k]) > abs(t[pivot, k]):
            pivot = i
    if pivot != k:
        for j in range(k, n + columns):
            t[k, j], t[pivot, j] = t[pivot, j], t[k, j]


@typed(_b(_f2, _n, _n, _f, _b))
def eliminate(t, n, columns, min_pivot, reciprocal):
    """Solve n linear equations with so many right sides by Gaussian elimination with partial
    pivoting: t float64 (n, n + columns) or larger, the matrix and then the right sides, which
    become the answers; modified in place. In one order, whatever a linear algebra library does, so
    that the bits depend on the equations alone.

    Returns False, unfinished, at a pivot whose size is below `min_pivot`; 0 lets all pass, and a
    singular matrix leave infinities. reciprocal: whether a row is scaled by the pivot's inverse
    before it is taken from the others (one division a pivot) or divided by the pivot (one a row,
    a rounding less): tables of each kind were solved so, and their bits stay.
    """
    for k in range(n):
        pivot_row(t, n, columns, k)
        if abs(t[k, k]) < min_pivot:
            return False
        inverse = 1.0 / t[k, k]
        for i in range(k + 1, n):
            factor = t[i, k] * inverse if reciprocal else t[i, k] / t[k, k]
            if factor != 0.0:
                for j in range(k + 1, n + columns):
                    t[i, j] -= factor * t[k, j]
    for k in range(n - 1, -1, -1):
        for c in range(n, n + columns):
            total = t[k, c]
            for j in range(k + 1, n):
                total -= t[k, j] * t[j, c]
            t[k, c] = total / t[k, k]
    return True


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


@typed(types.void(_f2, _n, _n, _n, _n))
def pivot(t, m, n, p, q):
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


@typed(types.void(_f2, _n, _n, _f2, _f2))
def simplex(a, m, n, t, labels):
    """Solve a game (m, n) by Dantzig's rule. t, labels: `tableau`, written. It may give up; the gap
    will tell."""
    p, q = tableau(a, m, n, t, labels)
    for step in range(50 + 10 * (m + n)):
        if step:
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
        pivot(t, m, n, p, q)
        labels[0, p], labels[1, q] = labels[1, q], labels[0, p]


@typed(_pair(_f, _f))
def two_product(a, b):
    """(high, low): a b without rounding (Dekker 1971)."""
    u, v = 134217729.0 * a, 134217729.0 * b
    a1, b1 = u - (u - a), v - (v - b)
    a2, b2 = a - a1, b - b1
    high = a * b
    return high, ((a1 * b1 - high) + a1 * b2 + a2 * b1) + a2 * b2


@typed(_pair(_f, _f, _f, _f, _f, _f))
def less_product(t, t_low, u, u_low, v, v_low):
    """(high, low): t - u v, all of them sums of two float64 (Knuth's sum)."""
    high, low = two_product(u, v)
    low += u * v_low + u_low * v
    total = t - high
    back = total - t
    low = (t - (total - back)) + (-high - back) + (t_low - low)
    high = total + low
    return high, low - (high - total)


@typed(_pair(_f, _f, _f, _f))
def quotient(t, t_low, u, u_low):
    """(high, low): t / u, both of them sums of two float64."""
    first = t / u
    remainder, remainder_low = less_product(t, t_low, first, 0.0, u, u_low)
    second = remainder / u
    remainder, remainder_low = less_product(remainder, remainder_low, second, 0.0, u, u_low)
    low = second + remainder / u
    high = first + low
    return high, low - (high - first)


@typed(types.void(_f2, _n, _n, _f2, _f2, _f2))
def careful_simplex(a, m, n, t, low, labels):  # noqa: C901  # Bland's rule, in pairs of numbers
    """The same by Bland's rule, which can not cycle, with 32 digits: t + low is the tableau.

    Where entries differ by 1e-9 a pivot can be as small, and 16 digits leave half of them.
    """
    tableau(a, m, n, t, labels)
    low[: m + 1, : n + 1] = 0.0
    for _ in range(5000):
        q = -1
        for c in range(n):
            if t[m, c] > 1e-20 and (q < 0 or labels[1, c] < labels[1, q]):
                q = c
        if q < 0:
            break
        p, ratio, ratio_low = -1, np.inf, 0.0
        for r in range(m):
            if t[r, q] > 1e-18:
                this, this_low = quotient(t[r, n], low[r, n], t[r, q], low[r, q])
                same = this == ratio and this_low == ratio_low
                closer = this < ratio or (this == ratio and this_low < ratio_low)
                if closer or (same and labels[0, r] < labels[0, p]):
                    p, ratio, ratio_low = r, this, this_low
        if p < 0:
            break
        v, v_low = quotient(1.0, 0.0, t[p, q], low[p, q])
        for c in range(n + 1):
            if c != q:
                t[p, c], low[p, c] = quotient(t[p, c], low[p, c], t[p, q], low[p, q])
        for r in range(m + 1):
            if r != p:
                u, u_low = t[r, q], low[r, q]
                for c in range(n + 1):
                    if c != q:
                        t[r, c], low[r, c] = less_product(
                            t[r, c], low[r, c], u, u_low, t[p, c], low[p, c]
                        )
                t[r, q], low[r, q] = less_product(0.0, 0.0, u, u_low, v, v_low)
        t[p, q], low[p, q] = v, v_low
        labels[0, p], labels[1, q] = labels[1, q], labels[0, p]


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


@typed(types.void(_f2, _n, _n, _f2, _f2, _f1, _f1))
def refine(a, m, n, t, labels, x, y):
    """Write the strategies that make the basis of `labels` indifferent, from the matrix anew.

    B y = v, sum of y = 1 and x B = v, sum of x = 1, where B are the rows and columns in the basis.
    """
    s = 0  # labels[2], labels[3]: the rows and the columns of B; as many of each
    for c in range(n):
        if labels[1, c] >= n:
            labels[2, s] = labels[1, c] - n
            s += 1
    s = 0
    for r in range(m):
        if labels[0, r] < n:
            labels[3, s] = labels[0, r]
            s += 1
    for side in range(2):
        for i in range(s):
            for j in range(s):
                r, c = labels[2, j if side else i], labels[3, i if side else j]
                t[i, j] = a[int(r), int(c)]
            t[i, s], t[i, s + 1] = -1.0, 0.0
            t[s, i] = 1.0
        t[s, s], t[s, s + 1] = 0.0, 1.0
        eliminate(t, s + 1, 1, 0.0, True)  # infinities are caught by `lottery` and the gap
        for i in range(s):
            if side:
                x[int(labels[2, i])] = t[i, s + 1]
            else:
                y[int(labels[3, i])] = t[i, s + 1]


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
def solve_game(a, rows, columns, dominance, x, y, work):  # noqa: C901  # three attempts, one after the other
    """One game: (value, gap, fallbacks), its strategies written into x and y.

    a: float64 (rows, columns) or larger. dominance: whether to look for it. x, y: float64, as long
    as the game at least. work: scratch, float64 `WORK`.
    """
    x[:rows] = 0.0
    y[:columns] = 0.0
    r, c = saddle_point(a, rows, columns)
    if r >= 0:
        x[r] = y[c] = 1.0
        return a[r, c], 0.0, 0
    keep_rows, keep_columns = np.arange(rows), np.arange(columns)
    m, n = rows, columns
    if dominance:
        m, n = undominated(a, rows, columns, keep_rows, keep_columns)
    low = high = a[0, 0]
    for r in range(rows):
        for c in range(columns):
            low, high = min(low, a[r, c]), max(high, a[r, c])
    scale, fine = 1.0 / (high - low), 1e-13 * (high - low) + 16 * 2.3e-16 * max(abs(low), abs(high))
    t, digits, labels, game = work[0], work[1], work[2], work[3]
    for r in range(m):
        for c in range(n):
            game[r, c] = (a[keep_rows[r], keep_columns[c]] - low) * scale
    value, gap, fallbacks = np.nan, np.inf, 0
    u, v, own_x, own_y = np.zeros(m), np.zeros(n), np.zeros(rows), np.zeros(columns)
    for attempt in range(3):  # the tableau, its basis solved anew, Bland's rule with 32 digits
        if attempt == 0:
            simplex(game, m, n, t, labels)
        elif attempt == 1:
            refine(game, m, n, digits, labels, u, v)
        else:
            fallbacks = 1
            careful_simplex(game, m, n, t, digits, labels)
        if attempt != 1:
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
    return value, max(gap, 0.0), fallbacks


# --- many games ---------------------------------------------------------------------------------


@typed(types.void(_f3, _f1, _f2, _f2, _f1))
def _solve(batch, values, x, y, gaps):
    (n, rows, columns), work = batch.shape, np.zeros(WORK)
    for i in range(n):
        values[i], gaps[i], _ = solve_game(batch[i], rows, columns, True, x[i], y[i], work)


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
