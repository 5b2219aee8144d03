"""What whoever calls `simplex.solve_game` has to know of it, without compiling it."""

from __future__ import annotations

from numba import types

MOST = 16
"""The most rows and columns of a matrix game."""
WORK = (3, MOST + 2, MOST + 2)
"""The shape of the scratch of one game: a tableau, its low digits, the labels of the variables."""

SOLVE_GAME = types.Tuple((types.float64, types.float64, types.int64, types.int64))(  # type: ignore[no-untyped-call]
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
