"""Sixteen zero-sum matrix games of one shape at once: a guess that is proved or refused.

Neighbouring games often have the same optimal **support**: rows I and columns J, s of each, such
that the optimal x and y make the other player indifferent between them, and neither gains by
another row or column. With the last row and the last column of the support as reference, and i, j
over the others::

    D[i, j] = A[i, j] - A[i, s] - A[s, j] + A[s, s]
    D y = A[s, s] - A[i, s]        the last weight of y is 1 - sum
    x D = A[s, s] - A[s, j]        the last weight of x is 1 - sum

`try_support` solves these equations without pivoting, replaces negative weights by 0 and computes
the bounds that both strategies prove on the complete matrix. The gap between the bounds decides,
game by game. `simplex.solve_game` solves games that no known support solves, and `read_support`
reads their supports.

The arrays are flat. A line of an array is sixteen numbers, a lane for each game. LLVM turns each
innermost loop over the lanes into vector instructions if the code keeps these rules:

* The loop is ``range(w & W)``, and w is an argument of type uint64 that is always 16. LLVM unrolls
  a loop of known length before it looks for vectors; the mask makes the length a multiple of 16,
  which avoids the code for a remainder.
* All indices are uint64, because an index that may be negative costs a branch.
* A lane loop contains other loops only if their lengths are constants, such as the size of a
  support in `weights_of`. LLVM unrolls those first.
* A lane loop reads the games at indices known only at run time, or writes the workspace at such an
  index, but not both. The two are different arrays, because LLVM compares each index that is read
  with each index that is written, and gives up if there are too many pairs.
* No number is replaced by the maximum of itself and another number: LLVM writes such a number under
  a mask, which costs 20 cycles. Adding 0 to the maximum prevents this.

There is no fused multiply-add, so the bits are the same on every processor.
"""

from __future__ import annotations

import numpy as np

from luckbase.solver.compiled import jitable, njit
from luckbase.solver.matrix_games import MAX_SIDE, TRY_SUPPORT

LANES = 16
W = np.uint64(LANES)
ROW = np.uint64((MAX_SIDE + 1) * LANES)
"""The distance of two rows of the games. Rows a power of two apart would share cache lines."""
LARGEST_SUPPORT = 8
"""The largest support that is tried: with 13 cards one game in 5,000 has a larger one."""
ROWS, COLUMNS, SUPPORT = (np.uint64(i) for i in (1, 1 + MAX_SIDE, 1 + 2 * MAX_SIDE))
"""A support is 33 numbers: its size, its rows from ROWS on, its columns from COLUMNS on."""

_0, _1, _2, _3, _4, _5, _6, _7 = (np.uint64(i) for i in range(8))
VALUE, WORST, _SUM_X, _SUM_Y, _HIGH, _LOW, _X, _Y, _BLOCK, NUMBERS = (
    np.uint64(LANES * i) for i in (0, 1, 2, 3, 4, 5, 6, 14, 22, 22 + LARGEST_SUPPORT**2)
)
"""The start of each line of the workspace f (float64): the value, the largest accepted gap; the
sums of the weights, the bounds; x with its sign turned, y; scratch. Last, its length."""

typed = jitable(error_model="numpy", boundscheck=False)
"""The decorator of most functions here, which become part of `try_support` or of its caller."""


@typed
def copy_block(a, f, z, support, w):
    """Copy the entries of a support from the games to the workspace."""
    size, to = z[support], _BLOCK
    for i in range(size):
        row = z[support + ROWS + i] * ROW
        for j in range(size):
            entry = row + z[support + COLUMNS + j] * W
            for lane in range(w & W):
                f[to + lane] = a[entry + lane]
            to += W


def weights_of(size):  # noqa: C901  # the steps of `weights`
    """Return a function that turns the block of a support of this size into weights: -x and y.

    The function returns the bits of the games without negative weights (except by rounding).
    """
    t = size - 1  # the reference

    @typed
    def entry(i, j):
        return _BLOCK + np.uint64((i * size + j) * LANES)

    @typed
    def weights(f, w):  # noqa: C901  # equations, elimination, substitution
        fine = _0
        for lane in range(w & W):
            # The block becomes D, with the right sides of y and x as last column and last row.
            corner = f[entry(t, t) + lane]
            for k in range(t):
                f[entry(k, t) + lane] = corner - f[entry(k, t) + lane]
                f[entry(t, k) + lane] = corner - f[entry(t, k) + lane]
            for i in range(t):
                for j in range(t):
                    f[entry(i, j) + lane] += f[entry(t, j) + lane] + f[entry(i, t) + lane] - corner
            # Elimination leaves 1 / pivot on the diagonal and the factors below it.
            for k in range(t):
                inverse = 1.0 / f[entry(k, k) + lane]
                f[entry(k, k) + lane] = inverse
                for i in range(k + 1, size):
                    factor = f[entry(i, k) + lane] * inverse
                    f[entry(i, k) + lane] = factor
                    for j in range(k + 1, size):
                        f[entry(i, j) + lane] -= factor * f[entry(k, j) + lane]
            # Substitution turns the last row into x and the last column into y.
            x_last = y_last = 1.0
            for back in range(t):
                k = t - 1 - back
                x, y = f[entry(t, k) + lane], f[entry(k, t) + lane]
                for i in range(k + 1, t):
                    x -= f[entry(i, k) + lane] * f[entry(t, i) + lane]
                    y -= f[entry(k, i) + lane] * f[entry(i, t) + lane]
                y *= f[entry(k, k) + lane]
                f[entry(t, k) + lane], f[entry(k, t) + lane] = x, y
                x_last -= x
                y_last -= y
            least, sum_x, sum_y = min(x_last, y_last), max(0.0, x_last), max(0.0, y_last)
            f[_X + np.uint64(t * LANES) + lane] = -sum_x
            f[_Y + np.uint64(t * LANES) + lane] = sum_y
            for k in range(t):
                x, y = f[entry(t, k) + lane], f[entry(k, t) + lane]
                least = min(least, min(x, y))
                x, y = max(0.0, x), max(0.0, y)
                f[_X + np.uint64(k * LANES) + lane] = -x
                f[_Y + np.uint64(k * LANES) + lane] = y
                sum_x += x
                sum_y += y
            f[_SUM_X + lane], f[_SUM_Y + lane] = sum_x, sum_y
            fine |= np.uint64(least > -1e-11) << lane
        return fine

    return weights


@typed
def starts(z, first, step):
    """Return where the eight rows (columns) z[first], … of the games start."""
    return (
        z[first] * step, z[first + _1] * step, z[first + _2] * step, z[first + _3] * step,
        z[first + _4] * step, z[first + _5] * step, z[first + _6] * step, z[first + _7] * step,
    )  # fmt: skip


def best_payoff_of(size, step, weights, best):
    """Return a function that writes the best payoff against a strategy to the line `best`.

    size: the number of its weights.
    step: the distance between rows (columns) that are compared.
    weights: where its weights start.
    """
    y0, y1, y2, y3, y4, y5, y6, y7 = (weights + np.uint64(k * LANES) for k in range(8))

    @typed
    def payoff(a, f, p, start, lane):
        start += lane
        total = a[p[0] + start] * f[y0 + lane] + a[p[1] + start] * f[y1 + lane]
        if size > 2:
            total += a[p[2] + start] * f[y2 + lane] + a[p[3] + start] * f[y3 + lane]
        if size > 4:
            total += a[p[4] + start] * f[y4 + lane] + a[p[5] + start] * f[y5 + lane]
        if size > 6:
            total += a[p[6] + start] * f[y6 + lane] + a[p[7] + start] * f[y7 + lane]
        return total

    @typed
    def best_payoff(a, f, p, count, w):
        for lane in range(w & W):
            f[best + lane] = -np.inf
        for first in range(_0, count, _4):
            start = min(first, count - _4) * step
            for lane in range(w & W):
                p0, p1 = payoff(a, f, p, start, lane), payoff(a, f, p, start + step, lane)
                p2 = payoff(a, f, p, start + step + step, lane)
                p3 = payoff(a, f, p, start + step + step + step, lane)
                top = max(max(p0, p1), max(p2, p3))
                f[best + lane] = 0.0 + max(f[best + lane], top)

    return best_payoff


def bounds_of(size):
    """Return a function that writes the bounds that strategies of up to `size` weights prove."""
    highest, lowest = best_payoff_of(size, ROW, _Y, _HIGH), best_payoff_of(size, W, _X, _LOW)

    @typed
    def bounds(a, f, z, support, m, n, w):
        highest(a, f, starts(z, support + COLUMNS, W), m, w)
        lowest(a, f, starts(z, support + ROWS, ROW), n, w)

    return bounds


_w1, _w2, _w3, _w4, _w5, _w6, _w7, _w8 = (weights_of(1 + i) for i in range(LARGEST_SUPPORT))
_b2, _b4, _b6, _b8 = (bounds_of(size) for size in (2, 4, 6, 8))


@njit(TRY_SUPPORT, error_model="numpy", boundscheck=False)
def try_support(a, m, n, f, z, support, wanted, tolerance, w):  # noqa: C901, PLR0913  # a case for each size
    """Solve games by a support; return the bits of the solved games.

    a: the games, with entry (r, c) of lane l at r * ROW + c * 16 + l.
    m, n: the numbers of rows and columns, at least four of each.
    f: the workspace. VALUE is written, unless all wanted games have negative weights.
    z, support: an array of uint64, and where in it the support begins. It may be too large.
    wanted: the bits of the games to solve.
    """
    size, fine, closed = z[support], wanted, _0
    if size > np.uint64(LARGEST_SUPPORT):
        return _0
    copy_block(a, f, z, support, w)
    if size <= _4:
        if size == _1:
            fine &= _w1(f, w)
        elif size == _2:
            fine &= _w2(f, w)
        elif size == _3:
            fine &= _w3(f, w)
        else:
            fine &= _w4(f, w)
    elif size == _5:
        fine &= _w5(f, w)
    elif size == _6:
        fine &= _w6(f, w)
    elif size == _7:
        fine &= _w7(f, w)
    else:
        fine &= _w8(f, w)
    if not fine:
        return _0
    if size & _1:
        for lane in range(w & W):
            f[_X + size * W + lane] = f[_Y + size * W + lane] = 0.0
    if size <= _2:
        _b2(a, f, z, support, m, n, w)
    elif size <= _4:
        _b4(a, f, z, support, m, n, w)
    elif size <= _6:
        _b6(a, f, z, support, m, n, w)
    else:
        _b8(a, f, z, support, m, n, w)
    for lane in range(w & W):
        high, low = f[_HIGH + lane] / f[_SUM_Y + lane], 0.0 - f[_LOW + lane] / f[_SUM_X + lane]
        gap = abs(high - low)
        f[VALUE + lane] = (low + high) * 0.5
        f[WORST + lane] = 0.0 + max(f[WORST + lane], gap if gap < tolerance else 0.0)
        closed |= np.uint64(gap < tolerance) << lane
    return fine & closed


@typed
def collect(z, to, weights, labels, count, low, size):
    """Write the `size` variables from `low` on that are among `count` labels to z[to], ….

    The variable of the greatest weight comes last, followed by zeros. Returns how many there are.
    """
    support, best = _0, _0
    for i in range(np.uint64(MAX_SIDE)):
        z[to + i] = _0
    for i in range(count):
        variable = np.int64(labels[i]) - low
        if 0 <= variable < size:
            z[to + support] = np.uint64(variable)
            if weights[variable] > weights[z[to + best]]:
                best = support
            support += _1
    last = to + support - _1
    z[to + best], z[last] = z[last], z[to + best]
    return support


@typed
def read_support(game, m, n, labels, x, y, z, support):  # noqa: C901  # elimination
    """Write the basis of a game that `simplex.solve_game` solved to z[support].

    game: (m, n).
    labels: of the rows and the columns, as in `simplex.tableau`.
    x, y: the strategies.

    The reference, the row and the column of the greatest weight, is last. The others are in the
    order of complete pivoting on D, which suits neighbouring games.
    """
    rows, columns = support + ROWS, support + COLUMNS
    z[support] = collect(z, rows, x, labels[1], n, n, m)
    collect(z, columns, y, labels[0], m, 0, n)
    t = z[support] - _1
    last_row, last = z[rows + t], z[columns + t]
    d = np.empty((t, t))
    for i in range(t):
        for j in range(t):
            r, c = z[rows + i], z[columns + j]
            d[i, j] = (game[r, c] - game[r, last]) - (game[last_row, c] - game[last_row, last])
    for k in range(t):
        p = q = k
        for i in range(k, t):
            for j in range(k, t):
                if abs(d[i, j]) > abs(d[p, q]):
                    p, q = i, j
        z[rows + k], z[rows + p] = z[rows + p], z[rows + k]
        z[columns + k], z[columns + q] = z[columns + q], z[columns + k]
        for i in range(t):
            d[k, i], d[p, i] = d[p, i], d[k, i]
        for i in range(t):
            d[i, k], d[i, q] = d[i, q], d[i, k]
        for i in range(k + _1, t):
            ratio = d[i, k] / d[k, k]
            for j in range(k, t):
                d[i, j] -= ratio * d[k, j]
