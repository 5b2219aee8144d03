"""Zero-sum matrix games, many small ones at a time: value, a strategy a side, and a proof.

The row player picks a row, the column player a column, at once; the row player gets A[r, c] and the
column player pays it. With x, y over the simplices (von Neumann 1928)::

    v = max_x min_c (x A)_c = min_y max_r (A y)_r

**The proof.** Any pair x, y gives bounds: ``low = min_c (x A)_c <= v <= high = max_r (A y)_r``. The
value returned is their middle and ``gap = high - low`` is worked out afterwards on the matrix that
was given, whatever led to x and y. So a wrong turn shows as a gap; nothing is accepted unseen.

**The algorithm**, a game at a time:

1. A saddle point, an entry least in its row and greatest in its column, ends it: gap 0.
2. Rows and columns that another one dominates (weakly, in exact comparison) are left out, until
   none is.
3. The rest is shifted and scaled into 1 <= A' <= 2, so that its value is positive, and ::

       max 1 y'  subject to  A' y' <= 1, y' >= 0          (v' = 1 / optimum, y = v' y')

   is solved by the condensed tableau simplex (Dantzig 1951), whose last row holds x. The first
   pivot is the largest entry of the column in which that is least; then the largest reduced cost.
4. If the gap is over the tolerance (`tolerance`: 1e-13 of the range of the entries, and what
   rounding of the entries alone can do), the equations of the last basis are solved anew from the
   matrix with partial pivoting.
5. If it still is, all is done again under Bland's rule (1977), which can not cycle where games are
   degenerate, with 32 digits (sums of two float64, Dekker 1971), and the better of the two is kept.
   That is a **fallback**, and counted.

The value of a game is unique; its optimal strategies need not be. `ranges` says how much weight
each row can have in an optimal strategy, by Mills (1956): when every entry of row r gains t, the
value gains t times the greatest (for t < 0 the least) weight of r in an optimal strategy.

Sources: von Neumann, Zur Theorie der Gesellschaftsspiele, 1928; Dantzig, A proof of the equivalence
of the programming problem and the game problem, 1951; Bland, New finite pivoting rules for the
simplex method, 1977; Dekker, A floating-point technique for extending the available precision,
1971; Mills, Marginal values of matrix games and linear programs, 1956.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba as nb
import numpy as np
from numpy.typing import NDArray

from luckbase.solver.matrix_game.simplex import MOST, WORK, solve_game
from luckbase.solver.njit import njit

LARGEST = 1e100
"""The largest entry: room for products."""
AT_ONCE = 256
"""Games whose ranges are worked out together."""


@njit(
    nb.void(
        nb.float64[:, :, ::1], nb.float64[::1], nb.float64[:, ::1], nb.float64[:, ::1],
        nb.float64[::1], nb.int64[::1], nb.boolean[::1],
    ),
    cache=True, nogil=True, error_model="numpy",
)  # fmt: skip
def _solve(batch, values, x, y, gaps, pivots, fallbacks):
    work = np.zeros(WORK)
    for i in range(batch.shape[0]):
        values[i], gaps[i], pivots[i], fell = solve_game(
            batch[i], batch.shape[1], batch.shape[2], True, x[i], y[i], work
        )  # fmt: skip
        fallbacks[i] = fell > 0


@dataclass(frozen=True)
class Solutions:
    """The solutions of n games of (rows, columns).

    values: float64 (n,), in the unit of the entries, within gap / 2 of the truth. row_strategies:
    float64 (n, rows), column_strategies: float64 (n, columns), lotteries. gaps: float64 (n,), how
    far the bounds that the two strategies prove lie apart. pivots: int64 (n,). fallbacks: bool
    (n,), whether Bland's rule was called in.
    """

    values: NDArray[np.float64]
    row_strategies: NDArray[np.float64]
    column_strategies: NDArray[np.float64]
    gaps: NDArray[np.float64]
    pivots: NDArray[np.int64]
    fallbacks: NDArray[np.bool_]


def solve(batch: NDArray[np.float64]) -> Solutions:
    """Solve games (n, rows, columns) of 1 x 1 to 16 x 16; the row player gets the entries.

    >>> solve(np.array([[[0.0, -1.0, 1.0], [1.0, 0.0, -1.0], [-1.0, 1.0, 0.0]]])).values
    array([0.])

    Raises ValueError for another shape, or an entry that is not finite or beyond 1e100.
    """
    games = np.ascontiguousarray(batch, np.float64)
    if games.ndim != 3 or not all(1 <= side <= MOST for side in games.shape[1:]):
        raise ValueError(f"games of shape {games.shape}; expected (n, rows, columns), 1 to {MOST}")
    if not np.all(np.abs(games) <= LARGEST):
        raise ValueError(f"an entry is not a number between -{LARGEST:g} and {LARGEST:g}")
    n, rows, columns = games.shape
    values, gaps = np.empty(n), np.empty(n)
    x, y = np.zeros((n, rows)), np.zeros((n, columns))
    pivots, fallbacks = np.zeros(n, np.int64), np.zeros(n, np.bool_)
    _solve(games, values, x, y, gaps, pivots, fallbacks)
    return Solutions(values, x, y, gaps, pivots, fallbacks)


def ranges(game: NDArray[np.float64]) -> NDArray[np.float64]:
    """The least and the greatest weight of each row in an optimal strategy: float64 (rows, 2).

    By finite differences of the value (module docstring) with steps of 1e-6 of the entries' range:
    accurate to about 1e-6, and strategies that cost less than that step count as optimal.
    """
    found: NDArray[np.float64] = all_ranges(np.asarray(game, np.float64)[None])[0]
    return found


def all_ranges(games: NDArray[np.float64]) -> NDArray[np.float64]:
    """`ranges` of n games of one shape (n, rows, columns): float64 (n, rows, 2)."""
    games = np.ascontiguousarray(games, np.float64)
    n, rows, columns = games.shape
    found = np.empty((n, rows, 2))
    for start in range(0, n, AT_ONCE):
        held = games[start : start + AT_ONCE]
        spread, largest = np.ptp(held, axis=(1, 2)), np.abs(held).max(axis=(1, 2))
        step = 1e-6 * np.where(spread > 0, spread, np.maximum(1.0, largest))
        changed = np.repeat(held[:, None], 2 * rows + 1, axis=1)
        for r in range(rows):
            changed[:, r, r] -= step[:, None]
            changed[:, rows + r, r] += step[:, None]
        values = solve(changed.reshape(-1, rows, columns)).values.reshape(len(held), -1)
        least, most = values[:, -1:] - values[:, :rows], values[:, rows:-1] - values[:, -1:]
        here = np.stack([least, most], axis=2) / step[:, None, None]
        found[start : start + AT_ONCE] = np.clip(here, 0.0, 1.0)
    return found
