"""Matrix games against exact fractions; the bounds that strategies prove, worked out again."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from luckbase.solver.matrix_games import simplex as matrix_game
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
