"""A sample of edges: what it says of them, and that it comes to what plays seldom do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from luckbase import solver
from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.fields import Field, Fields, set_field
from luckbase.solver.game.game import Game
from luckbase.solver.search.bellman import expand
from luckbase.solver.search.edge_sample import EdgeSample, Ways, features
from luckbase.solver.search.explore import INNER, explore
from luckbase.solver.search.keys import unpack_all
from tests.solver.search.moves import moves_of

BOARDS = Path(__file__).parents[3] / "boards"


def load(path: str, **options: object) -> Game:
    return solver.load_game(solver.load_board(BOARDS / f"{path}.toml", **options))


def any_way(count: int, columns: int) -> Ways:
    return Ways(np.zeros((count, columns)), np.zeros(count))


def whole(game: Game, roots: Ints) -> tuple[Ints, Ints, Ints]:
    """(changes, how many edges change that, features of the states not over) of all there is."""
    levels = explore(game, roots)
    states = unpack_all(game.bits, levels.keys[levels.kinds == INNER])
    edges = expand(game, states)
    own = features(game.fields, states)
    changes = features(game.fields, edges.children) - np.repeat(own, np.diff(edges.first), axis=0)
    changes, counts = np.unique(changes[changes.any(axis=1)], axis=0, return_counts=True)
    return changes, counts, own


def in_order(rows: Ints) -> Ints:
    return np.array(sorted(rows.tolist()))


def test_features_are_numbers_and_how_many_a_set_holds() -> None:
    fields = Fields([set_field("mine", 5), Field("scores", 2, high=90), set_field("deck", 3)])
    states = np.array([[0b10101, 7, 90, 0], [0, 0, 1, 0b111]])
    assert features(fields, states).tolist() == [[3, 7, 90, 0], [0, 0, 1, 3]]
    assert states[0, 0] == 0b10101


@pytest.mark.parametrize("path", ["jackpot/tiny", "skunk/tiny", "goofspiel/tiny"])
@pytest.mark.parametrize("down", [False, True])
def test_a_small_game_is_known_whole_and_each_edge_counted_once(path: str, down: bool) -> None:
    game = load(path)
    root = game.needed_start()[None]
    sample = EdgeSample(game, root, 0)
    if down:
        assert sample.descend(any_way(64, game.field_count), 64) > 50
    sample.widen(1 << 20, 1 << 20)
    changes, counts, own = whole(game, root)
    order = np.lexsort(sample.changes.T[::-1])
    assert (sample.changes[order] == changes).all()
    assert (sample.counts[order] == counts).all()
    assert (in_order(sample.met) == in_order(own)).all()


def test_what_a_fall_to_nothing_would_have_been_from_the_most() -> None:
    """One edge empties heap 1, one heap 2, and the planted one both of them."""
    game = moves_of((-2, 0, 1), (0, -3, 1), high=9, planted=((2, 3, 5), (0, 0, 5)))
    sample = EdgeSample(game, np.array([[2, 3, 5]]), 0)
    sample.widen(10, 10)
    assert in_order(sample.changes).tolist() == [[-2, -3, 0], [-2, 0, 1], [0, -3, 1]]
    worst = [[-9, -9, 0], [-9, -3, 0], [-9, 0, 1], [-2, -9, 0], [0, -9, 1]]
    assert in_order(sample.worst).tolist() == worst


def test_a_descent_that_pushes_comes_where_no_lot_does() -> None:
    """Of all ways of 200 steps one in 2 ** 200 ends there."""
    game = moves_of((1, 0), (0, 1), high=200)
    root = np.array([[0, 0]])
    pushed, by_lot = EdgeSample(game, root, 0), EdgeSample(game, root, 0)
    pushed.descend(Ways(np.array([[1.0, 0.0]] * 64), np.zeros(64)), 250)
    by_lot.descend(any_way(64, 2), 250)
    assert [200, 0] in pushed.met.tolist()
    assert by_lot.met[by_lot.met[:, 1] == 0].max() < 30


@pytest.mark.parametrize(("order", "heap"), [(-1.0, 0), (1.0, 1)])
def test_a_descent_takes_always_the_first_edge_or_the_last(order: float, heap: int) -> None:
    game = moves_of((1, 0), (0, 1), high=200)
    sample = EdgeSample(game, np.array([[0, 0]]), 0)
    sample.descend(Ways(np.zeros((1, 2)), np.array([order])), 40)
    assert sample.met[:, heap].max() > 10
    assert not sample.met[:, 1 - heap].any()


def test_a_play_without_an_end_is_left() -> None:
    game = moves_of((0, 0), (0, 1), high=1)
    sample = EdgeSample(game, np.array([[0, 1], [0, 0]]), 0)
    assert sample.descend(any_way(8, 2), 500) == 2
    assert sample.descend(any_way(8, 2), 500) == 0
    assert sample.changes.tolist() == [[0, 1]]  # an edge that changes nothing is left out


def test_the_same_seed_meets_the_same() -> None:
    game = load("skunk/seed")
    root = game.needed_start()[None]
    first, again, other = (EdgeSample(game, root, seed) for seed in (1, 1, 2))
    for sample in (first, again, other):
        sample.widen(300, 30)
        sample.descend(any_way(16, game.field_count), 20)
    assert (first.met == again.met).all() and (first.changes == again.changes).all()
    assert first.met.shape != other.met.shape or (first.met != other.met).any()
