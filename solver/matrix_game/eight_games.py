"""Eight zero-sum matrix games of one shape at once, a lane each: a guess that is proved, or not.

Neighbouring games often have the same optimal **support**: rows I and columns J, s of each, such
that the optimal x and y make the other side indifferent between those and lose nothing by the rest.
Given the support, a small system of equations gives both strategies. With the last row and column
of the support as reference, and i, j over the other t = s - 1::

    D[i, j] = A[i, j] - A[i, s] - A[s, j] + A[s, s]
    D u = A[s, s] - A[i, s]        y = u and 1 - sum u on J
    w D = A[s, s] - A[s, j]        x = w and 1 - sum w on I

`try_support` solves it for eight games by one elimination without pivoting (rows and columns come
in an order that suits such games, `read_support`), clips what is below 0, makes the sums 1, and
then works out the bounds that x and y prove on the whole matrices: the gap decides, lane by lane,
so a support that is wrong, or an elimination that lost its digits, is refused and never believed.
Its code is emitted once a size of support, without loops over it: what it works with stays in
registers, and nothing waits for a guess how often a loop goes round. Twice as fast as loops.

Games stand in flat float64 arrays, a game a lane, entry (r, c) at (r * columns + c) * 8 + lane. A
support is int64 (33,): s, then I from 1 on, then J from 17 on.
"""

from __future__ import annotations

from functools import partial, reduce

import numba as nb
import numpy as np
from numba import types
from numba.core import cgutils

from luckbase.solver.matrix_game import MAX_SIDE
from luckbase.solver.matrix_game.lanes import (
    Emitter,
    gather,
    greater,
    intrinsic,
    lanes,
    least,
    less,
    load,
    splat,
    store,
    where_less,
)
from luckbase.solver.matrix_game.simplex import typed

_n, _f, _i1, _f1 = nb.int64, nb.float64, nb.int64[::1], nb.float64[::1]

ROWS, COLUMNS, SUPPORT = 1, 1 + MAX_SIDE, 1 + 2 * MAX_SIDE
"""Where a support has its rows and its columns, and how long it is."""
LARGEST_SUPPORT = 10
"""Rows of a support that may be tried: with 13 cards not one game in 5,000 has more than 8."""

# Where things stand in the workspace's numbers f, from each of these on:
GAMES, WAITING = 0, 2048  # two times eight games, 16 x 16
_X, _Y, _F, _P = 4096, 4224, 4352, 4608  # of the simplex: strategies, the pivot's column, row
_T = 6528  # tableaux, 17 x 17
VALUE, GAP, WORST = 8840, 8848, 8856  # answers; WORST is the largest gap accepted so far
_CHOSEN, _OVER, _ORDER = 8864, 8880, 8888
NUMBERS = 9144
"""How many numbers (float64) a workspace has, all flat: arrays in a tuple cost a counted reference
each time they are looked at, a fifth of the time here."""
# and in its indices z:
LABELS, _ROW, _COLUMN = 0, 264, 272
INDICES = 280
"""How many indices (int64) a workspace has at least; its owner may add its own."""


@typed(_n(lanes, lanes, _f1, _f))
def judge(low, high, f, tolerance):
    """Write values and gaps of bounds; returns bits: which gaps are closed (`try_support`)."""
    gap = high - low
    size = greater(gap, splat(0.0) - gap)  # NaN stays; infinities of either sign are refused
    allowed = splat(tolerance)
    store(f, VALUE, (low + high) * splat(0.5))
    store(f, GAP, gap)
    worst = load(f, WORST)
    store(f, WORST, greater(worst, where_less(size, allowed, size, worst)))
    return less(size, allowed)


@typed(lanes(_f1, _n, _n))
def lottery(f, start, count):
    """Clip the eights from `start` on at 0, in place; returns their sum."""
    total = splat(0.0)
    for i in range(count):
        v = greater(load(f, start + i * 8), splat(0.0))
        store(f, start + i * 8, v)
        total = total + v
    return total


def _weights(lane, a):
    """Emit the weights (rows', columns') that make both sides indifferent between the entries `a`
    of a support, lists of its rows."""
    t, one = len(a) - 1, lane.splat(1.0)
    corner = a[t][t]
    h = [lane.sub(corner, a[t][j]) for j in range(t)]
    g = [lane.sub(corner, a[i][t]) for i in range(t)]
    d = [
        [lane.sub(lane.add(lane.add(a[i][j], h[j]), g[i]), corner) for j in range(t)]
        for i in range(t)
    ]
    inverse = []
    for k in range(t):
        inverse.append(lane.div(one, d[k][k]))
        for i in range(k + 1, t):
            d[i][k] = lane.mul(d[i][k], inverse[k])
            g[i] = lane.less_product(g[i], d[i][k], g[k])
            for j in range(k + 1, t):
                d[i][j] = lane.less_product(d[i][j], d[i][k], d[k][j])
    for k in range(t):
        for i in range(k):
            h[k] = lane.less_product(h[k], d[i][k], h[i])
        h[k] = lane.mul(h[k], inverse[k])
    remainder = [one, one]
    for k in range(t - 1, -1, -1):
        for i in range(k + 1, t):
            g[k] = lane.less_product(g[k], d[k][i], g[i])
            h[k] = lane.less_product(h[k], d[i][k], h[i])
        g[k] = lane.mul(g[k], inverse[k])
        remainder = [lane.sub(remainder[0], g[k]), lane.sub(remainder[1], h[k])]
    return [*h, remainder[1]], [*g, remainder[0]]


def _prove(lane, size, indices, answer, games, rows, columns, support, wanted_bits):  # noqa: PLR0913  # the arguments of `prove`
    """Emit `prove` for one size of support; its result is stored in `answer`."""
    builder, number = lane.builder, support.type
    row, column = (
        [
            builder.load(builder.gep(indices, [builder.add(support, number(first + i))]))
            for i in range(size)
        ]
        for first in (ROWS, COLUMNS)
    )
    row = [builder.mul(r, columns) for r in row]
    cell = partial(lane.cell, games)
    x, y = _weights(lane, [[cell(r, c) for c in column] for r in row])
    fine = lane.less(lane.splat(-1e-11), reduce(lane.least, x + y))
    fine = builder.and_(fine, wanted_bits)
    with builder.if_then(builder.icmp_unsigned("!=", fine, number(0))):
        for weights, places, count, step, first, better, at in (
            (y, column, rows, columns, -np.inf, lane.greater, GAP),
            (x, row, columns, number(1), np.inf, lane.least, VALUE),
        ):
            clipped = [lane.greater(w, lane.splat(0.0)) for w in weights]
            bound = cgutils.alloca_once_value(builder, lane.splat(first))
            with cgutils.for_range(builder, count) as loop:
                start = builder.mul(loop.index, step)
                terms = [lane.mul(cell(start, p), w) for p, w in zip(places, clipped, strict=True)]
                builder.store(better(reduce(lane.add, terms), builder.load(bound)), bound)
            lane.store(at, lane.div(builder.load(bound), reduce(lane.add, clipped)))
        builder.store(fine, answer)


@intrinsic
def prove(typingctx, f, z, games, rows, columns, support, wanted):
    """The bounds that a support proves, low at VALUE and high at GAP; returns which of the wanted
    games have weights not below 0, but for rounding. Nothing is written if none has."""

    def emit(context, builder, sig, args):
        numbers, indices = (
            context.make_array(of)(context, builder, array).data
            for of, array in zip(sig.args[:2], args[:2], strict=True)
        )
        answer = cgutils.alloca_once_value(builder, context.get_constant(types.int64, 0))
        lane, done = Emitter(builder, numbers), builder.append_basic_block("done")
        sizes = builder.switch(builder.load(builder.gep(indices, [args[5]])), done)
        for size in range(1, LARGEST_SUPPORT + 1):
            sizes.add_case(size, builder.append_basic_block(f"size{size}"))
            builder.position_at_end(sizes.cases[-1][1])
            _prove(lane, size, indices, answer, *args[2:])
            builder.branch(done)
        builder.position_at_end(done)
        return builder.load(answer)

    return types.int64(f, z, games, rows, columns, support, wanted), emit


@typed(_n(_f1, _i1, _n, _n, _n, _n, _n, _f))
def try_support(f, z, games, rows, columns, support, games_left, tolerance):
    """Solve eight games by a support; returns a bit a lane: whether its gap is closed.

    f, z: the workspace. games: where the games begin in f. support: where it begins in z.
    games_left: bits, the games to solve. Writes VALUE and GAP, unless no game has weights not
    below 0.
    """
    games_left = prove(f, z, games, rows, columns, support, games_left)
    if games_left:
        games_left &= judge(load(f, VALUE), load(f, GAP), f, tolerance)
    return games_left


@typed(_n(_f1, _i1, _n, _n, _n, _f))
def simplex_eight(f, z, games, m, n, tolerance):  # noqa: C901, PLR0915  # eight lanes in step, in registers
    """Solve eight games (m, n) by the simplex of `simplex`, each lane with pivots of its own.

    Returns bits as `try_support` does: a lane whose gap is not closed is to be solved another way.
    The strategies and the labels (of the rows, then from 128 on of the columns, as in `simplex`)
    are left for `read_support`.

    With u the pivot's column and g its row over the pivot, the exchange is one update without a
    branch, t -= u g, if first u is made less by 1 in the pivot's row, and g greater by 1 / pivot
    in its column. A lane that is done has u = 0.
    """
    width = (n + 1) * 8
    zero, one, tiny = splat(0.0), splat(1.0), splat(1e-11)
    low, high = splat(np.inf), splat(-np.inf)
    for cell in range(m * n):
        v = load(f, games + cell * 8)
        low, high = least(v, low), greater(v, high)
    scale = high - low
    scale = one / where_less(zero, scale, scale, one)  # games of one number are games too
    for r in range(m):
        for c in range(n):
            v = (load(f, games + (r * n + c) * 8) - low) * scale + one
            store(f, _T + r * width + c * 8, v)
        store(f, _T + r * width + n * 8, one)
        for lane in range(8):
            z[LABELS + r * 8 + lane] = n + r
    for c in range(n + 1):
        store(f, _T + m * width + c * 8, one if c < n else zero)
        for lane in range(8):
            z[LABELS + 128 + c * 8 + lane] = c
    for step in range(4 * (m + n)):
        if step == 0:  # the column whose greatest entry is least
            cost, q = splat(-np.inf), zero
            for c in range(n):
                top = load(f, _T + c * 8)
                for r in range(1, m):
                    top = greater(load(f, _T + r * width + c * 8), top)
                top = zero - top
                q = where_less(cost, top, splat(float(c)), q)
                cost = greater(top, cost)
            cost = one
        else:
            cost, q = load(f, _T + m * width), zero
            for c in range(1, n):
                v = load(f, _T + m * width + c * 8)
                q = where_less(cost, v, splat(float(c)), q)
                cost = greater(v, cost)
        active = less(splat(1e-14), cost)
        if not active:
            break
        store(f, _CHOSEN + 8, q)
        for lane in range(8):
            z[_COLUMN + lane] = int(f[_CHOSEN + 8 + lane]) * 8 + lane
        p, best_u, best_b = zero, zero, one
        for r in range(m + 1):
            u = gather(f, _T + r * width, z, _COLUMN)
            u = where_less(splat(1e-14), cost, u, zero)
            store(f, _F + r * 8, u)
            if r < m:
                b = load(f, _T + r * width + n * 8)
                u = where_less(tiny, u, u, zero - one)
                this, that = b * best_u, best_b * u
                p = where_less(this, that, splat(float(r)), p)
                best_b = where_less(this, that, b, best_b)
                best_u = where_less(this, that, u, best_u)
        active &= less(zero, best_u)
        if not active:
            break
        best_u = where_less(zero, best_u, best_u, one)
        over = one / best_u
        store(f, _OVER, over)
        store(f, _CHOSEN, p)
        for lane in range(8):
            z[_ROW + lane] = int(f[_CHOSEN + lane]) * width + lane
        for c in range(n + 1):
            store(f, _P + c * 8, gather(f, _T + c * 8, z, _ROW) * over)
        for lane in range(8):
            if active >> lane & 1:
                r, c = int(f[_CHOSEN + lane]) * 8 + lane, int(f[_CHOSEN + 8 + lane]) * 8 + lane
                f[_F + r] -= 1.0
                f[_P + c] += f[_OVER + lane]
                z[LABELS + r], z[LABELS + 128 + c] = z[LABELS + 128 + c], z[LABELS + r]
            else:
                for r in range(m + 1):
                    f[_F + r * 8 + lane] = 0.0
        for r in range(m + 1):
            u = load(f, _F + r * 8)
            for c in range(n + 1):
                at = _T + r * width + c * 8
                store(f, at, load(f, at) - u * load(f, _P + c * 8))
    for i in range(32):
        store(f, _X + i * 8, zero)
    for lane in range(8):
        for r in range(m):
            if z[LABELS + r * 8 + lane] < n:
                f[_Y + z[LABELS + r * 8 + lane] * 8 + lane] = f[_T + r * width + n * 8 + lane]
        for c in range(n):
            if z[LABELS + 128 + c * 8 + lane] >= n:
                f[_X + (z[LABELS + 128 + c * 8 + lane] - n) * 8 + lane] = -f[
                    _T + m * width + c * 8 + lane
                ]
    low, high = splat(np.inf), splat(-np.inf)
    for side, count in ((_X, m), (_Y, n)):
        over = one / lottery(f, side, count)
        for i in range(count):
            store(f, side + i * 8, load(f, side + i * 8) * over)
    for c in range(n):
        v = zero
        for r in range(m):
            v = v + load(f, _X + r * 8) * load(f, games + (r * n + c) * 8)
        low = least(v, low)
    for r in range(m):
        v = zero
        for c in range(n):
            v = v + load(f, _Y + c * 8) * load(f, games + (r * n + c) * 8)
        high = greater(v, high)
    return judge(low, high, f, tolerance)


@typed(types.void(_f1, _i1, _n, _n, _n, _n, _n))
def read_support(f, z, games, m, n, lane, support):  # noqa: C901  # eight lanes in step, in registers
    """Write the basis of a lane that `simplex_eight` solved, in an order fit for its neighbours.

    Last, the reference, come the row and the column of the greatest weight; the others in the order
    of complete pivoting on D. support: where in z it goes.
    """
    count, best = 0, -1.0
    for c in range(n):
        r = z[LABELS + 128 + c * 8 + lane] - n
        if r >= 0:
            z[support + ROWS + count] = r
            if f[_X + r * 8 + lane] > best:
                best, at = f[_X + r * 8 + lane], ROWS + count
            count += 1
    last = ROWS + count - 1
    z[support + at], z[support + last] = z[support + last], z[support + at]
    z[support], count, best = count, 0, -1.0
    for r in range(m):
        c = z[LABELS + r * 8 + lane]
        if c < n:
            z[support + COLUMNS + count] = c
            if f[_Y + c * 8 + lane] > best:
                best, at = f[_Y + c * 8 + lane], COLUMNS + count
            count += 1
    last = COLUMNS + count - 1
    z[support + at], z[support + last] = z[support + last], z[support + at]
    size = count - 1
    row_s, column_s = z[support + ROWS + size] * n, z[support + COLUMNS + size]
    d, entry_0 = _ORDER, games + lane  # D; entry 0 of the game
    for i in range(size):
        row = z[support + ROWS + i] * n
        for j in range(size):
            column = z[support + COLUMNS + j]
            entry = f[entry_0 + (row + column) * 8] - f[entry_0 + (row + column_s) * 8]
            base = f[entry_0 + (row_s + column) * 8] - f[entry_0 + (row_s + column_s) * 8]
            f[d + i * MAX_SIDE + j] = entry - base
    for k in range(size):
        p, q = k, k
        for i in range(k, size):
            for j in range(k, size):
                if abs(f[d + i * MAX_SIDE + j]) > abs(f[d + p * MAX_SIDE + q]):
                    p, q = i, j
        for j in range(size):
            u, v = d + k * MAX_SIDE + j, d + p * MAX_SIDE + j
            f[u], f[v] = f[v], f[u]
        for i in range(size):
            u, v = d + i * MAX_SIDE + k, d + i * MAX_SIDE + q
            f[u], f[v] = f[v], f[u]
        for u, v in ((ROWS + k, ROWS + p), (COLUMNS + k, COLUMNS + q)):
            z[support + u], z[support + v] = z[support + v], z[support + u]
        for i in range(k + 1, size):
            ratio = f[d + i * MAX_SIDE + k] / f[d + k * MAX_SIDE + k]
            for j in range(k, size):
                f[d + i * MAX_SIDE + j] -= ratio * f[d + k * MAX_SIDE + j]
