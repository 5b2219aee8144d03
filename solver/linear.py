"""Linear equations: Gaussian elimination with partial pivoting, the one of the house.

Compiled, in one order whatever the number of threads of a linear algebra library, so that the bits
depend on the equations alone. (A Markov chain's visits need no subtraction at all and are found in
another way: `solver.policy.chain`.)

Source: Golub and Van Loan, Matrix Computations, 3.4.
"""

from __future__ import annotations

import numba as nb
from numba import types

from luckbase.solver.njit import njit


@nb.njit(nogil=True, error_model="numpy", forceinline=True)
def pivot_row(t, n, columns, k):
    """Bring the row with the greatest entry of column k, of rows k on, to row k."""
    pivot = k
    for i in range(k + 1, n):
        if abs(t[i, k]) > abs(t[pivot, k]):
            pivot = i
    if pivot != k:
        for j in range(k, n + columns):
            t[k, j], t[pivot, j] = t[pivot, j], t[k, j]


@njit(
    types.boolean(
        types.float64[:, ::1], types.int64, types.int64, types.float64, types.boolean
    ),
    cache=True, nogil=True, error_model="numpy",
)  # fmt: skip
def eliminate(t, n, columns, least, reciprocal):
    """Solve n equations with so many right sides: t float64 (n, n + columns) or larger, the matrix
    and then the right sides, which become the answers; modified in place.

    Returns False, unfinished, at a pivot whose size is below `least`; 0 lets all pass, and a
    singular matrix leave infinities. reciprocal: whether a row is scaled by the pivot's inverse
    before it is taken from the others (one division a pivot) or divided by the pivot (one a row,
    a rounding less): tables of each kind were solved so, and their bits stay.
    """
    for k in range(n):
        pivot_row(t, n, columns, k)
        if abs(t[k, k]) < least:
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
