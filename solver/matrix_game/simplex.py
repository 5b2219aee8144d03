"""One zero-sum matrix game at a time, compiled: the steps that `certified` describes.

A tableau is float64 (m + 1, n + 1): m rows and n columns of the game, the last column the right
side, the last row the reduced costs. In the condensed form a pivot exchanges the variable of a row
(basic) with that of a column; the labels say which stands where.
"""

from __future__ import annotations

import numpy as np
from numba import types

from luckbase.solver.linear import eliminate
from luckbase.solver.njit import njit

_f1, _f2, _f3 = types.float64[::1], types.float64[:, ::1], types.float64[:, :, ::1]
_i1, _n, _f, _b = types.int64[::1], types.int64, types.float64, types.boolean
_pair = types.UniTuple(types.float64, 2)


MOST = 16
"""The most rows and columns of a matrix game."""
WORK = (3, MOST + 2, MOST + 2)
"""The shape of the scratch of one game: a tableau, its low digits, the labels of the variables."""

SOLVE_GAME = types.Tuple((types.float64, types.float64, types.int64, types.int64))(
    types.float64[:, ::1],
    types.int64,
    types.int64,
    types.boolean,
    types.float64[::1],
    types.float64[::1],
    types.float64[:, :, ::1],
)
"""The signature of `simplex.solve_game`: engines take it as an argument, for it is long to compile,
and most games have no use for it."""


def typed(signature):
    """How every function here is compiled."""
    return njit(signature, cache=True, nogil=True, error_model="numpy")


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


@typed(_f(_f2, _n, _n))
def tolerance(a, rows, columns):
    """The gap above which a game is solved again: 1e-13 of the range, 16 roundings of an entry."""
    low = high = a[0, 0]
    for r in range(rows):
        for c in range(columns):
            low, high = min(low, a[r, c]), max(high, a[r, c])
    return 1e-13 * (high - low) + 16 * 2.3e-16 * max(abs(low), abs(high))


@typed(types.UniTuple(_n, 2)(_f2, _n, _n))
def saddle_point(a, rows, columns):
    """(row, column) of the first saddle point; (-1, -1) if there is none."""
    row, column, least, most = -1, -1, np.inf, -np.inf
    for r in range(rows):
        worst = np.inf
        for c in range(columns):
            worst = min(worst, a[r, c])
        if worst > most:
            most, row = worst, r
    for c in range(columns):
        best = -np.inf
        for r in range(rows):
            best = max(best, a[r, c])
        if best < least:
            least, column = best, c
    if most == least:
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
            for other in range(m):
                if other == i:
                    continue
                fine = True
                for k in range(n):
                    c = keep_columns[k]
                    fine = fine and a[keep_rows[i], c] <= a[keep_rows[other], c]
                if fine:
                    for k in range(i, m - 1):
                        keep_rows[k] = keep_rows[k + 1]
                    m -= 1
                    changed = True
                    break
        for j in range(n - 1, -1, -1):
            for other in range(n):
                if other == j:
                    continue
                fine = True
                for k in range(m):
                    r = keep_rows[k]
                    fine = fine and a[r, keep_columns[j]] >= a[r, keep_columns[other]]
                if fine:
                    for k in range(j, n - 1):
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


@typed(types.UniTuple(_n, 2)(_f2, _i1, _n, _i1, _n, _f, _f, _f2, _f2))
def tableau(a, keep_rows, m, keep_columns, n, shift, scale, t, labels):  # noqa: PLR0913  # one tableau, its scratch and its scale
    """Write the first tableau; returns the first pivot: the greatest entry of the column in which
    that is least.

    labels[0, r] is the variable of row r, labels[1, c] of column c: 0 to n - 1 the columns of the
    game, n to n + m - 1 the slacks of its rows.
    """
    p = q = 0
    least = np.inf
    for c in range(n):
        at, best = 0, -np.inf
        for r in range(m):
            t[r, c] = (a[keep_rows[r], keep_columns[c]] - shift) * scale + 1.0
            if t[r, c] > best:
                best, at = t[r, c], r
        if best < least:
            least, p, q = best, at, c
        t[m, c], labels[1, c] = 1.0, c
    for r in range(m):
        t[r, n], labels[0, r] = 1.0, n + r
    t[m, n] = 0.0
    return p, q


@typed(_n(_f2, _i1, _n, _i1, _n, _f, _f, _f2, _f2))
def simplex(a, keep_rows, m, keep_columns, n, shift, scale, t, labels):  # noqa: PLR0913  # one tableau, its scratch and its scale
    """Solve the game of the kept rows and columns by Dantzig's rule; returns the pivots.

    t, labels: `tableau`, written. It may give up; the gap will tell.
    """
    p, q = tableau(a, keep_rows, m, keep_columns, n, shift, scale, t, labels)
    pivots = 0
    while pivots < 50 + 10 * (m + n):
        if pivots:
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
        pivots += 1
    return pivots


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
    rest, rest_low = less_product(t, t_low, first, 0.0, u, u_low)
    second = rest / u
    rest, rest_low = less_product(rest, rest_low, second, 0.0, u, u_low)
    low = second + rest / u
    high = first + low
    return high, low - (high - first)


@typed(_n(_f2, _i1, _n, _i1, _n, _f, _f, _f2, _f2, _f2))
def careful_simplex(a, keep_rows, m, keep_columns, n, shift, scale, t, low, labels):  # noqa: C901, PLR0913  # Bland's rule, in pairs of numbers
    """The same by Bland's rule, which can not cycle, with 32 digits: t + low is the tableau.

    Where entries differ by 1e-9 a pivot can be as small, and 16 digits leave half of them.
    """
    tableau(a, keep_rows, m, keep_columns, n, shift, scale, t, labels)
    low[: m + 1, : n + 1] = 0.0
    pivots = 0
    while pivots < 5000:
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
        pivots += 1
    return pivots


@typed(types.void(_i1, _n, _i1, _n, _f2, _f2, _f1, _f1))
def read_strategies(keep_rows, m, keep_columns, n, t, labels, x, y):
    """Write the strategies of a solved tableau into x and y, whose other entries are 0."""
    for r in range(m):
        k = int(labels[0, r])
        if k < n:
            y[keep_columns[k]] = t[r, n]
    for c in range(n):
        k = int(labels[1, c]) - n
        if k >= 0:
            x[keep_rows[k]] = -t[m, c]


@typed(types.void(_f1, _n))
def normalise(x, n):
    """Make x (n,) a lottery in place: what is below 0 (or no number) is 0, the sum is 1."""
    total = 0.0
    for i in range(n):
        x[i] = x[i] if x[i] > 0.0 else 0.0
        total += x[i]
    for i in range(n):
        x[i] /= total


@typed(types.void(_f2, _i1, _n, _i1, _n, _f, _f, _f2, _f2, _f1, _f1))
def refine(a, keep_rows, m, keep_columns, n, shift, scale, t, labels, x, y):  # noqa: PLR0913  # one tableau, its scratch and its scale
    """Write the strategies that make the basis of `labels` indifferent, from the matrix anew.

    B y = v, sum of y = 1 and x B = v, sum of x = 1, where B are the rows and columns in the basis.
    """
    s = 0  # labels[2], labels[3]: the rows and the columns of B; as many of each
    for c in range(n):
        if labels[1, c] >= n:
            labels[2, s] = keep_rows[int(labels[1, c]) - n]
            s += 1
    s = 0
    for r in range(m):
        if labels[0, r] < n:
            labels[3, s] = keep_columns[int(labels[0, r])]
            s += 1
    for side in range(2):
        for i in range(s):
            for j in range(s):
                r, c = labels[2, j if side else i], labels[3, i if side else j]
                t[i, j] = (a[int(r), int(c)] - shift) * scale
            t[i, s], t[i, s + 1] = -1.0, 0.0
            t[s, i] = 1.0
        t[s, s], t[s, s + 1] = 0.0, 1.0
        eliminate(t, s + 1, 1, 0.0, True)  # infinities are caught by `normalise` and the gap
        for i in range(s):
            if side:
                x[int(labels[2, i])] = t[i, s + 1]
            else:
                y[int(labels[3, i])] = t[i, s + 1]


@typed(SOLVE_GAME)
def solve_game(a, rows, columns, dominance, x, y, work):  # noqa: C901  # three attempts, one after the other
    """One game: (value, gap, pivots, fallbacks), its strategies written into x and y.

    a: float64 (rows, columns) or larger. dominance: whether to look for it. x, y: float64, as long
    as the game at least. work: scratch, float64 `WORK`.
    """
    x[:rows] = 0.0
    y[:columns] = 0.0
    r, c = saddle_point(a, rows, columns)
    if r >= 0:
        x[r] = y[c] = 1.0
        return a[r, c], 0.0, 0, 0
    keep_rows, keep_columns = np.arange(rows), np.arange(columns)
    m, n = rows, columns
    if dominance:
        m, n = undominated(a, rows, columns, keep_rows, keep_columns)
    low = high = a[0, 0]
    for r in range(rows):
        for c in range(columns):
            low, high = min(low, a[r, c]), max(high, a[r, c])
    scale = 1.0 / (high - low)
    fine = tolerance(a, rows, columns)
    value, gap, pivots, fallbacks = np.nan, np.inf, 0, 0
    other_x, other_y = np.zeros(rows), np.zeros(columns)
    for attempt in range(3):  # the tableau, its basis solved anew, Bland's rule with 32 digits
        other_x[:] = 0.0
        other_y[:] = 0.0
        if attempt == 0:
            pivots = simplex(a, keep_rows, m, keep_columns, n, low, scale, work[0], work[2])
        elif attempt == 1:
            refine(
                a, keep_rows, m, keep_columns, n, low, scale, work[1], work[2], other_x, other_y
            )  # fmt: skip
        else:
            fallbacks = 1
            pivots += careful_simplex(
                a, keep_rows, m, keep_columns, n, low, scale, work[0], work[1], work[2]
            )  # fmt: skip
        if attempt != 1:
            read_strategies(keep_rows, m, keep_columns, n, work[0], work[2], other_x, other_y)
        normalise(other_x, rows)
        normalise(other_y, columns)
        least, most = bounds(a, rows, columns, other_x, other_y)
        if most - least < gap:
            value, gap = least + 0.5 * (most - least), most - least
            x[:rows] = other_x
            y[:columns] = other_y
        if gap <= fine:
            break
    return value, max(gap, 0.0), pivots, fallbacks
