"""Matrix games against exact fractions; the bounds that strategies prove, worked out again; and
sixteen games at once against the same games one at a time."""

import platform
import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from luckbase.solver.compiled import compiled, types
from luckbase.solver.matrix_games import MAX_SIDE, WORK, sixteen_games
from luckbase.solver.matrix_games import simplex as matrix_game
from luckbase.solver.matrix_games.sixteen_games import (
    COLUMNS,
    LANES,
    LARGEST_SUPPORT,
    NUMBERS,
    ROW,
    ROWS,
    SUPPORT,
    VALUE,
    W,
)
from tests.reference import matrix_game as exact

Games = NDArray[np.float64]


def of_kind(kind, n, rows, columns, seed):
    """Games (n, rows, columns) of one of KINDS."""
    rng = np.random.default_rng(seed)
    games = rng.standard_normal((n, rows, columns))
    if kind == "integer":
        games = np.rint(3 * games)
    if kind == "duplicated":
        games = games[:, rng.integers(0, rows, rows)][:, :, rng.integers(0, columns, columns)]
    if kind == "skew":
        side = min(rows, columns)
        games = games[:, :side, :side] - games[:, :side, :side].transpose(0, 2, 1)
    if kind == "near-degenerate":
        games = np.rint(games) + 1e-9 * rng.standard_normal(games.shape)
    if kind == "few values":
        games = np.sign(games) * (rng.random(games.shape) < 0.5)
    if kind == "far from zero":
        games += 1e3
    return games


KINDS = (
    "random", "integer", "duplicated", "skew", "near-degenerate", "few values", "far from zero"
)  # fmt: skip
SHAPES = [(1, 1), (1, 16), (16, 1), (2, 2), (3, 5), (5, 3), (7, 7), (9, 4), (16, 11), (16, 16)]


def certified(games):
    """The solutions, their bounds worked out here: lotteries, the value inside, the gap as told."""
    result = matrix_game.solve(games)
    x, y = result.row_strategies, result.column_strategies
    for lottery in (x, y):
        assert (lottery >= 0).all()
        np.testing.assert_allclose(lottery.sum(axis=1), 1, rtol=0, atol=1e-14)
    low = np.einsum("nr,nrc->nc", x, games).min(axis=1)
    high = np.einsum("nrc,nc->nr", games, y).max(axis=1)
    size = np.abs(games).max(axis=(1, 2)) + 1e-300
    assert ((high - low - result.gaps) / size < 2e-15).all()
    assert (np.maximum(low - result.values, result.values - high) / size < 2e-15).all()
    return result


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", KINDS)
def test_every_gap_is_closed(kind, shape):
    games = of_kind(kind, 200, *shape, seed=sum(shape))
    result = certified(games)
    assert (result.gaps / (np.abs(games).max(axis=(1, 2)) + 1e-300)).max() < 2e-13


@given(st.data())
def test_values_are_the_exact_ones(data):
    rows, columns = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 6))
    entry = st.one_of(st.integers(-3, 3), st.integers(-1000, 1000))
    numbers = data.draw(st.lists(entry, min_size=rows * columns, max_size=rows * columns))
    game = [[Fraction(z) for z in numbers[i * columns :][:columns]] for i in range(rows)]
    value, x, y = exact.solve(game)
    assert exact.proves(game, value, x, y)
    result = certified(np.array(numbers, float).reshape(1, rows, columns))
    assert abs(result.values[0] - float(value)) <= 1e-12 * max(1, *map(abs, numbers))


def test_near_degenerate_games_that_the_simplex_leaves_open_are_closed():
    """Differences of 1e-9 beside differences of 1 make Dantzig's rule lose its way now and then."""
    games = of_kind("near-degenerate", 3000, 16, 16, seed=1)
    assert certified(games).gaps.max() < 2e-13


def test_rock_paper_scissors_has_one_optimal_strategy_and_a_duplicate_row_more():
    game = np.array([[0.0, -1, 1], [1, 0, -1], [-1, 1, 0]])
    np.testing.assert_allclose(matrix_game.all_ranges(game[None])[0], 1 / 3, atol=1e-6)
    twice = matrix_game.all_ranges(np.vstack([game, game[0]])[None])[0]
    np.testing.assert_allclose(twice[0], [0, 1 / 3], atol=1e-6)
    np.testing.assert_allclose(twice[1], [1 / 3, 1 / 3], atol=1e-6)


@pytest.mark.parametrize("shape", [(3, 3), (1, 17, 2), (1, 0, 2), (2, 2, 2, 2)])
def test_games_of_another_shape_are_refused(shape):
    with pytest.raises(ValueError, match="expected"):
        matrix_game.solve(np.zeros(shape))


@pytest.mark.parametrize("entry", [np.nan, np.inf, 1e101, -1e101, -np.inf])
def test_entries_that_are_no_numbers_are_refused(entry):
    with pytest.raises(ValueError, match="an entry is not"):
        matrix_game.solve(np.array([[[0.0, entry]]]))


def test_no_games_have_no_solutions():
    assert matrix_game.solve(np.zeros((0, 2, 3))).values.shape == (0,)


# --- sixteen games at once ------------------------------------------------------------------------


TOLERANCE = 1e-12
ALL = (1 << LANES) - 1


def support_of(game):
    """The support that the simplex finds."""
    rows, columns = game.shape
    x, y, work = np.empty(rows), np.empty(columns), np.empty(WORK)
    matrix_game.solve_game(game, rows, columns, False, x, y, work)
    support = np.zeros(int(SUPPORT), np.uint64)
    sixteen_games.read_support(game, rows, columns, work[1], x, y, support, np.uint64(0))
    return support


def solved(games, support, wanted=ALL):
    """Which of sixteen games (16, rows, columns) a support solves, and the values."""
    _, rows, columns = games.shape
    pad = (0, max(0, 4 - rows)), (0, max(0, 4 - columns))
    games = np.pad(games, ((0, 0), *pad), mode="edge")
    a = np.full((MAX_SIDE, int(ROW)), np.nan)
    m, n = games.shape[1:]
    a[:m, : n * LANES] = games.transpose(1, 2, 0).reshape(m, -1)
    f = np.zeros(int(NUMBERS))
    bits = sixteen_games.try_support(
        a.ravel(), np.uint64(m), np.uint64(n), f, support, np.uint64(0), np.uint64(wanted),
        TOLERANCE, W,
    )  # fmt: skip
    fine = np.array([int(bits) >> lane & 1 for lane in range(LANES)], bool)
    return fine, f[int(VALUE) : int(VALUE) + LANES]


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (7, 7), (10, 10), (16, 8)])
def test_a_support_solves_the_games_that_have_it_and_refuses_the_others(shape):
    rng = np.random.default_rng(3)
    for seed in range(20):
        game = of_kind("random", 1, *shape, seed=seed)
        near = game + 1e-7 * rng.standard_normal((LANES, *shape))
        other = of_kind("random", LANES, *shape, seed=seed + 1000)
        games = np.where(np.arange(LANES)[:, None, None] % 2 == 0, near, other)
        support = support_of(near[0])
        assert support[0] <= LARGEST_SUPPORT
        fine, result = solved(games, support)
        assert fine[::2].all()
        values = matrix_game.solve(games).values
        assert np.abs(result - values)[fine].max() < 2 * TOLERANCE
        assert solved(games, support, 0b101)[0].nonzero()[0].tolist() == [0, 2]


def test_a_support_of_another_game_is_refused():
    """Its weights are not negative here; the bounds that they prove are too far apart."""
    game = np.array([[2.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 2.0]])
    support = support_of(game)
    better = np.vstack([game[:2], [[1.0, 1.5, 2.0]]])
    games = np.repeat(np.stack([game, better]), 8, axis=0)
    assert solved(games, support)[0].tolist() == [True] * 8 + [False] * 8


def test_supports_of_every_size_solve_the_identity_and_larger_ones_are_refused():
    for size in range(1, 17):
        games = np.repeat(np.eye(16)[None], LANES, axis=0)[:, :size, :size]
        support = np.zeros(int(SUPPORT), np.uint64)
        support[0] = size
        for first in (int(ROWS), int(COLUMNS)):
            support[first : first + size] = range(size)
        fine, values = solved(games, support)
        assert fine.all() if size <= LARGEST_SUPPORT else not fine.any()
        if size <= LARGEST_SUPPORT:
            assert np.abs(values - 1 / size).max() < 1e-15


def test_a_game_without_numbers_is_never_believed():
    support = np.zeros(int(SUPPORT), np.uint64)
    for first in (int(ROWS), int(COLUMNS)):
        support[first : first + 3] = [0, 1, 2]
    for size in (1, 2, 3):
        support[0] = size
        assert not solved(np.full((LANES, 3, 3), np.nan), support)[0].any()


def complete_pivoting(d):
    """(row, column) of each pivot of a matrix, the greatest entry that is left first."""
    d, rows, columns = d.copy(), list(range(len(d))), list(range(len(d)))
    result = []
    while rows:
        p, q = max(((r, c) for r in rows for c in columns), key=lambda at: abs(d[at]))
        result.append((p, q))
        rows.remove(p)
        columns.remove(q)
        d[rows] -= np.outer(d[rows, q] / d[p, q], d[p])
    return result


def test_a_support_is_written_in_the_order_of_complete_pivoting():
    """Of the differences from the row and the column of the greatest weight, which come last."""
    for seed in range(40):
        game = of_kind("random", 1, 7, 7, seed=seed)[0]
        support = support_of(game).astype(int)
        size, result = support[0], matrix_game.solve(game[None])
        rows, columns = (support[int(k) : int(k) + size] for k in (ROWS, COLUMNS))
        r, c = int(rows[-1]), int(columns[-1])
        assert r == result.row_strategies[0].argmax()
        assert c == result.column_strategies[0].argmax()
        d = game[np.ix_(rows, columns)] - game[rows, c][:, None] - game[r, columns] + game[r, c]
        assert complete_pivoting(d[:-1, :-1]) == [(i, i) for i in range(size - 1)]


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="names of instructions")
def test_lanes_are_solved_by_vector_instructions():
    """A new numba or LLVM that leaves the loops over lanes scalar is four times slower."""
    # numba has no text of code that it kept. These weights take most of a support's time.
    options = {"error_model": "numpy", "boundscheck": False, "cache": False}
    signature = types.uint64(types.float64[::1], types.uint64)
    created = compiled(sixteen_games.weights_of(4).plain, signature, **options)
    code = "".join(created.inspect_asm().values())
    for operation in ("mul", "sub", "div"):
        packed, scalar = (len(re.findall(rf"\bv?{operation}{of}\b", code)) for of in ("pd", "sd"))
        assert packed > 4 * scalar, (operation, packed, scalar)
