"""Eight games at once against the same games one at a time."""

import numpy as np
import pytest

from luckbase.solver.games.goofspiel.kernel import new_workspace
from luckbase.solver.matrix_game import eight_games
from luckbase.solver.matrix_game import simplex as matrix_game
from tests.solver.matrix_game.test_matrix_game import KINDS, SHAPES, of_kind

TOLERANCE = 1e-12


def in_lanes(games):
    """A workspace that holds the eight games (8, rows, columns) at GAMES."""
    f, z = new_workspace(1, 0)
    flat = np.ascontiguousarray(games.transpose(1, 2, 0)).ravel()
    f[eight_games.GAMES : eight_games.GAMES + flat.size] = flat
    return f, z


def solved(bits):
    return np.array([bits >> lane & 1 for lane in range(8)], bool)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_simplex_in_lanes_finds_the_value_or_says_that_it_did_not(kind, shape):
    games = of_kind(kind, 160, *shape, seed=7)
    values = matrix_game.solve(games).values
    rows, columns = games.shape[1:]
    done = 0
    for first in range(0, len(games), 8):
        f, z = in_lanes(games[first : first + 8])
        fine = solved(eight_games.simplex_eight(f, z, 0, rows, columns, TOLERANCE))
        found = f[eight_games.VALUE : eight_games.VALUE + 8]
        assert np.abs(found - values[first : first + 8])[fine].max(initial=0) < 2 * TOLERANCE
        done += int(fine.sum())
    assert done > (0.5 if kind == "near-degenerate" else 0.97) * len(games)


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (7, 7), (10, 10), (16, 9)])
def test_a_support_is_taken_by_the_games_that_have_it_and_refused_by_the_others(shape):
    rng = np.random.default_rng(3)
    for seed in range(20):
        game = of_kind("random", 1, *shape, seed=seed)
        near = game + 1e-7 * rng.standard_normal((8, *shape))
        other = of_kind("random", 8, *shape, seed=seed + 1000)
        games = np.where(np.arange(8)[:, None, None] % 2 == 0, near, other)
        f, z = in_lanes(near)
        assert eight_games.simplex_eight(f, z, 0, *shape, TOLERANCE) & 1
        at = z.size - eight_games.SUPPORT
        eight_games.read_support(f, z, 0, *shape, 0, at)
        support = z[at:].copy()
        f, z = in_lanes(games)
        z[at:] = support
        fine = solved(eight_games.try_support(f, z, 0, *shape, at, 255, TOLERANCE))
        assert fine[::2].all()
        values = matrix_game.solve(games).values
        found = f[eight_games.VALUE : eight_games.VALUE + 8]
        assert np.abs(found - values)[fine].max() < 2 * TOLERANCE
        masked = eight_games.try_support(f, z, 0, *shape, at, 0b101, TOLERANCE)
        assert masked == 0b101


def test_a_support_of_more_rows_than_are_emitted_is_refused():
    """The other games of each size are solved by it, here the identity: every row alike."""
    for size in range(1, 17):
        f, z = in_lanes(np.repeat(np.eye(16)[None], 8, axis=0)[:, :size, :size])
        at = z.size - eight_games.SUPPORT
        z[at], z[at + 1 : at + 1 + size], z[at + 17 : at + 17 + size] = (
            size,
            range(size),
            range(size),
        )
        fine = eight_games.try_support(f, z, 0, size, size, at, 255, TOLERANCE)
        assert fine == (255 if size <= eight_games.LARGEST_SUPPORT else 0)
        if fine:
            value = f[eight_games.VALUE : eight_games.VALUE + 8]
            assert np.abs(value - 1 / size).max() < 1e-15


def test_a_game_without_numbers_is_never_believed():
    games = np.full((8, 3, 3), np.nan)
    f, z = in_lanes(games)
    assert eight_games.simplex_eight(f, z, 0, 3, 3, TOLERANCE) == 0
    at = z.size - eight_games.SUPPORT
    for size in (1, 2, 3):
        z[at] = size
        z[at + 1 : at + 4] = z[at + 17 : at + 20] = [0, 1, 2]
        assert eight_games.try_support(f, z, 0, 3, 3, at, 255, TOLERANCE) == 0


def complete_pivoting(d):
    """(row, column) of each pivot of a matrix, the greatest entry that is left first."""
    d, rows, columns = d.copy(), list(range(len(d))), list(range(len(d)))
    found = []
    while rows:
        p, q = max(((r, c) for r in rows for c in columns), key=lambda at: abs(d[at]))
        found.append((p, q))
        rows.remove(p)
        columns.remove(q)
        d[rows] -= np.outer(d[rows, q] / d[p, q], d[p])
    return found


def test_a_support_is_written_in_the_order_of_complete_pivoting():
    """Of the differences from the row and the column of the greatest weight, which come last."""
    for seed in range(40):
        game = of_kind("random", 1, 7, 7, seed=seed)[0]
        f, z = in_lanes(np.repeat(game[None], 8, axis=0))
        assert eight_games.simplex_eight(f, z, 0, 7, 7, TOLERANCE) & 1
        at = z.size - eight_games.SUPPORT
        eight_games.read_support(f, z, 0, 7, 7, 0, at)
        size = int(z[at])
        rows, columns = (z[at + k : at + k + size] for k in (eight_games.ROWS, eight_games.COLUMNS))
        r, c = int(rows[-1]), int(columns[-1])
        d = game[np.ix_(rows, columns)] - game[rows, c][:, None] - game[r, columns] + game[r, c]
        assert complete_pivoting(d[:-1, :-1]) == [(i, i) for i in range(size - 1)]
