"""Zero-sum matrix games, solved one at a time or sixteen at a time, each with a proof."""

from luckbase.solver.compiled import types

_n, _f, _f1, _f2 = types.int64, types.float64, types.float64[::1], types.float64[:, ::1]

MAX_SIDE = 16
"""The most rows and columns of a matrix game."""
WORK = (3, MAX_SIDE + 2, MAX_SIDE + 2)
"""The shape of the scratch array of one game: a tableau, the labels of the variables, the game
without dominated rows and columns."""
SOLVE_GAME = types.UniTuple(_f, 2)(_f2, _n, _n, types.boolean, _f1, _f1, types.float64[:, :, ::1])
"""The signature of `simplex.solve_game`, which engines take as an argument, because it is slow to
compile and most games do not need it."""

_u = types.uint64
TRY_SUPPORT = _u(_f1, _u, _u, _f1, types.uint64[::1], _u, _u, _f, _u)
"""The signature of `sixteen_games.try_support`, an argument for the same reason."""
