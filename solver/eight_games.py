"""Eight zero-sum matrix games of one shape at once, a lane each: a guess that is proved, or not.

Neighbouring games often have the same optimal **support**: rows I and columns J, s of each, such
that the optimal x and y make the other side indifferent between those and lose nothing by the rest.
Given the support, a small system of equations gives both strategies. With the last row and column
of the support as reference, and i, j over the other t = s - 1::

    D[i, j] = A[i, j] - A[i, s] - A[s, j] + A[s, s]
    D u = A[s, s] - A[i, s]        y = u and 1 - sum u on J
    w D = A[s, s] - A[s, j]        x = w and 1 - sum w on I

`try_support` solves it for eight games by one elimination without pivoting (rows and columns come
in an order that suits such games, `read_support`), cuts off what is below 0, makes the sums 1, and
then works out the bounds that x and y prove on the whole matrices: the gap decides, lane by lane,
so a support that is wrong, or an elimination that lost its digits, is refused and never believed.

Games stand in flat float64 arrays, a game a lane, entry (r, c) at (r * columns + c) * 8 + lane. A
support is int64 (33,): s, then I from 1 on, then J from 17 on.
"""

from __future__ import annotations

import numba as nb
import numpy as np
from numba import types

from solver.lanes import gather, greater, lanes, least, less, load, splat, store, where_less
from solver.simplex import MOST, typed

_n, _f, _i1, _f1, _f2 = nb.int64, nb.float64, nb.int64[::1], nb.float64[::1], nb.float64[:, ::1]

ROWS, COLUMNS, SUPPORT = 1, 1 + MOST, 1 + 2 * MOST
"""Where a support has its rows and its columns, and how long it is."""

_D, _G, _H, _INVERSE = 0, 256 * 8, 272 * 8, 288 * 8
SCRATCH = 304
"""Eights that `try_support` needs."""
VALUE, GAP, WORST = 0, 8, 16
"""Where `try_support` writes values and gaps of the eight, and raises the gaps accepted so far."""


@typed(_n(lanes, lanes, _f1, _f))
def judge(low, high, answer, tolerance):
    """Write values and gaps of bounds; returns bits: which gaps are closed (`try_support`)."""
    gap = high - low
    size = greater(gap, splat(0.0) - gap)  # NaN stays; infinities of either sign are refused
    allowed = splat(tolerance)
    store(answer, VALUE, (low + high) * splat(0.5))
    store(answer, GAP, gap)
    worst = load(answer, WORST)
    store(answer, WORST, greater(worst, where_less(size, allowed, size, worst)))
    return less(size, allowed)


@typed(_n(_f1, _n, _n, _i1, _f1, _f1, _f))
def try_support(a, rows, columns, support, w, answer, tolerance):
    """Solve eight games by a support; returns a bit a lane: whether its gap is closed.

    a: the games. w: scratch, `SCRATCH` eights. answer: three eights, written.
    """
    t = support[0] - 1
    zero, one = splat(0.0), splat(1.0)
    row_s, column_s = support[ROWS + t] * columns, support[COLUMNS + t]
    corner = load(a, (row_s + column_s) * 8)
    low, high = splat(np.inf), splat(-np.inf)
    if t == 0:
        for c in range(columns):
            low = least(load(a, (row_s + c) * 8), low)
        for r in range(rows):
            high = greater(load(a, (r * columns + column_s) * 8), high)
    else:
        for j in range(t):
            store(w, _H + j * 8, corner - load(a, (row_s + support[COLUMNS + j]) * 8))
        for i in range(t):
            row_i = support[ROWS + i] * columns
            side = corner - load(a, (row_i + column_s) * 8)
            store(w, _G + i * 8, side)
            for j in range(t):
                entry = load(a, (row_i + support[COLUMNS + j]) * 8) + load(w, _H + j * 8)
                store(w, (i * MOST + j) * 8, entry + side - corner)
        for k in range(t):
            inverse = one / load(w, (k * MOST + k) * 8)
            store(w, _INVERSE + k * 8, inverse)
            g = load(w, _G + k * 8)
            for i in range(k + 1, t):
                f = load(w, (i * MOST + k) * 8) * inverse
                store(w, (i * MOST + k) * 8, f)
                store(w, _G + i * 8, load(w, _G + i * 8) - f * g)
                for j in range(k + 1, t):
                    at = (i * MOST + j) * 8
                    store(w, at, load(w, at) - f * load(w, (k * MOST + j) * 8))
        rest, total = one, zero
        for k in range(t - 1, -1, -1):
            u = load(w, _G + k * 8)
            for j in range(k + 1, t):
                u = u - load(w, (k * MOST + j) * 8) * load(w, _G + j * 8)
            u = u * load(w, _INVERSE + k * 8)
            store(w, _G + k * 8, u)
            rest = rest - u
        store(w, _G + t * 8, rest)
        for k in range(t + 1):
            u = greater(load(w, _G + k * 8), zero)
            store(w, _G + k * 8, u)
            total = total + u
        for r in range(rows):
            v = load(a, (r * columns + support[COLUMNS]) * 8) * load(w, _G)
            for j in range(1, t + 1):
                v = v + load(a, (r * columns + support[COLUMNS + j]) * 8) * load(w, _G + j * 8)
            high = greater(v, high)
        high = high / total
        for k in range(t):
            u = load(w, _H + k * 8)
            for i in range(k):
                u = u - load(w, (i * MOST + k) * 8) * load(w, _H + i * 8)
            store(w, _H + k * 8, u * load(w, _INVERSE + k * 8))
        rest, total = one, zero
        for k in range(t - 1, -1, -1):
            u = load(w, _H + k * 8)
            for i in range(k + 1, t):
                u = u - load(w, (i * MOST + k) * 8) * load(w, _H + i * 8)
            store(w, _H + k * 8, u)
            rest = rest - u
        store(w, _H + t * 8, rest)
        for k in range(t + 1):
            u = greater(load(w, _H + k * 8), zero)
            store(w, _H + k * 8, u)
            total = total + u
        for c in range(columns):
            v = load(a, (support[ROWS] * columns + c) * 8) * load(w, _H)
            for i in range(1, t + 1):
                v = v + load(a, (support[ROWS + i] * columns + c) * 8) * load(w, _H + i * 8)
            low = least(v, low)
        low = low / total
    return judge(low, high, answer, tolerance)


@typed(_n(_f1, _n, _n, _f1, _f1, _i1, _f1, _f))
def simplex_eight(a, m, n, t, w, labels, answer, tolerance):
    """Solve eight games (m, n) by the simplex of `simplex`, each lane with pivots of its own.

    Returns bits as `try_support` does: a lane whose gap is not closed is to be solved another way.
    t: scratch, (m + 1) (n + 1) eights: the tableaux. w: scratch, `SCRATCH` eights, left with the
    strategies: eights x of m from 0 on, y of n from 16 on. labels: int64 (33 * 8,), the variables
    of the rows, then from 128 on of the columns, as in `simplex`.

    With f the pivot's column and g its row over the pivot, the exchange is one update without a
    branch, t -= f g, if first f is made less by 1 in the pivot's row, and g greater by 1 / pivot
    in its column. A lane that is done has f = 0.
    """
    width = (n + 1) * 8
    zero, one, tiny = splat(0.0), splat(1.0), splat(1e-11)
    low, high = splat(np.inf), splat(-np.inf)
    for cell in range(m * n):
        v = load(a, cell * 8)
        low, high = least(v, low), greater(v, high)
    scale = one / (high - low)
    for r in range(m):
        for c in range(n):
            v = (load(a, (r * n + c) * 8) - low) * scale + one
            store(t, r * width + c * 8, v)
        store(t, r * width + n * 8, one)
        for lane in range(8):
            labels[r * 8 + lane] = n + r
    for c in range(n + 1):
        store(t, m * width + c * 8, one if c < n else zero)
        for lane in range(8):
            labels[128 + c * 8 + lane] = c
    chosen, inverse = np.zeros(16), np.zeros(8)
    at_row, at_column = np.zeros(8, np.int64), np.zeros(8, np.int64)
    for step in range(4 * (m + n)):
        if step == 0:  # the column whose greatest entry is least
            cost, q = splat(-np.inf), zero
            for c in range(n):
                most = load(t, c * 8)
                for r in range(1, m):
                    most = greater(load(t, r * width + c * 8), most)
                most = zero - most
                q = where_less(cost, most, splat(float(c)), q)
                cost = greater(most, cost)
            cost = one
        else:
            cost, q = load(t, m * width), zero
            for c in range(1, n):
                z = load(t, m * width + c * 8)
                q = where_less(cost, z, splat(float(c)), q)
                cost = greater(z, cost)
        active = less(splat(1e-14), cost)
        if not active:
            break
        store(chosen, 8, q)
        for lane in range(8):
            at_column[lane] = int(chosen[8 + lane]) * 8 + lane
        p, best_f, best_b = zero, zero, one
        for r in range(m + 1):
            f = gather(t, r * width, at_column)
            f = where_less(splat(1e-14), cost, f, zero)
            store(w, r * 8, f)
            if r < m:
                b = load(t, r * width + n * 8)
                f = where_less(tiny, f, f, zero - one)
                this, that = b * best_f, best_b * f
                p = where_less(this, that, splat(float(r)), p)
                best_b = where_less(this, that, b, best_b)
                best_f = where_less(this, that, f, best_f)
        active &= less(zero, best_f)
        if not active:
            break
        best_f = where_less(zero, best_f, best_f, one)
        over = one / best_f
        store(inverse, 0, over)
        store(chosen, 0, p)
        for lane in range(8):
            at_row[lane] = int(chosen[lane]) * width + lane
        for c in range(n + 1):
            store(w, (32 + c) * 8, gather(t, c * 8, at_row) * over)
        for lane in range(8):
            if active >> lane & 1:
                r, c = int(chosen[lane]) * 8 + lane, int(chosen[8 + lane]) * 8 + lane
                w[r] -= 1.0
                w[256 + c] += inverse[lane]
                labels[r], labels[128 + c] = labels[128 + c], labels[r]
            else:
                for r in range(m + 1):
                    w[r * 8 + lane] = 0.0
        for r in range(m + 1):
            f = load(w, r * 8)
            for c in range(n + 1):
                at = r * width + c * 8
                store(t, at, load(t, at) - f * load(w, 256 + c * 8))
    for z in range(32):
        store(w, z * 8, zero)
    for lane in range(8):
        for r in range(m):
            if labels[r * 8 + lane] < n:
                w[128 + labels[r * 8 + lane] * 8 + lane] = t[r * width + n * 8 + lane]
        for c in range(n):
            if labels[128 + c * 8 + lane] >= n:
                w[(labels[128 + c * 8 + lane] - n) * 8 + lane] = -t[m * width + c * 8 + lane]
    low, high = splat(np.inf), splat(-np.inf)
    for side, count in ((0, m), (128, n)):
        total = zero
        for i in range(count):
            v = greater(load(w, side + i * 8), zero)
            store(w, side + i * 8, v)
            total = total + v
        over = one / total
        for i in range(count):
            store(w, side + i * 8, load(w, side + i * 8) * over)
    for c in range(n):
        v = zero
        for r in range(m):
            v = v + load(w, r * 8) * load(a, (r * n + c) * 8)
        low = least(v, low)
    for r in range(m):
        v = zero
        for c in range(n):
            v = v + load(w, 128 + c * 8) * load(a, (r * n + c) * 8)
        high = greater(v, high)
    return judge(low, high, answer, tolerance)


@typed(types.void(_f1, _n, _n, _n, _f1, _i1, _f2, _i1))
def read_support(a, m, n, lane, w, labels, t, support):
    """Write the basis of a lane that `simplex_eight` solved, in an order fit for its neighbours.

    Last, the reference, come the row and the column of the greatest weight; the others in the order
    of complete pivoting on D. a, w, labels: as `simplex_eight` left them. t: scratch, (16, 16).
    """
    count, best = 0, -1.0
    for c in range(n):
        r = labels[128 + c * 8 + lane] - n
        if r >= 0:
            support[ROWS + count] = r
            if w[r * 8 + lane] > best:
                best, at = w[r * 8 + lane], ROWS + count
            count += 1
    last = ROWS + count - 1
    support[at], support[last] = support[last], support[at]
    support[0], count, best = count, 0, -1.0
    for r in range(m):
        c = labels[r * 8 + lane]
        if c < n:
            support[COLUMNS + count] = c
            if w[128 + c * 8 + lane] > best:
                best, at = w[128 + c * 8 + lane], COLUMNS + count
            count += 1
    last = COLUMNS + count - 1
    support[at], support[last] = support[last], support[at]
    size = count - 1
    row_s, column_s = support[ROWS + size] * n, support[COLUMNS + size]
    for i in range(size):
        row = support[ROWS + i] * n
        for j in range(size):
            column = support[COLUMNS + j]
            t[i, j] = a[(row + column) * 8 + lane] - a[(row + column_s) * 8 + lane]
            t[i, j] -= a[(row_s + column) * 8 + lane] - a[(row_s + column_s) * 8 + lane]
    for k in range(size):
        p, q = k, k
        for i in range(k, size):
            for j in range(k, size):
                if abs(t[i, j]) > abs(t[p, q]):
                    p, q = i, j
        for j in range(size):
            t[k, j], t[p, j] = t[p, j], t[k, j]
        for i in range(size):
            t[i, k], t[i, q] = t[i, q], t[i, k]
        r, c = ROWS + k, COLUMNS + k
        support[r], support[ROWS + p] = support[ROWS + p], support[r]
        support[c], support[COLUMNS + q] = support[COLUMNS + q], support[c]
        for i in range(k + 1, size):
            f = t[i, k] / t[k, k]
            for j in range(k, size):
                t[i, j] -= f * t[k, j]
