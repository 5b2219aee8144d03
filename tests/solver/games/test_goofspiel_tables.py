"""The first move of Goofspiel in numbers, and the paper's observations on them."""

import numpy as np
import pytest

from luckbase.solver.games.goofspiel.charts import SEEN, bids_of, first_bids
from tests.solver.games.goofspiel import published, solved


def first(cards, objective="points"):
    table = solved(cards, objective)
    return first_bids(table.game, table.look_up)


def test_table_1_as_it_is_printed():
    """Rhoads and Bartholdi 2012, Table 1, within one unit of the last digit."""
    lines = bids_of(first(5)).lines
    assert lines[0].split() == ["1", "2", "3", "4", "5"]
    printed = np.array([[float(cell) for cell in line.split()] for line in lines[1:]])
    np.testing.assert_array_equal(printed[:, 0], np.arange(1, 6))
    np.testing.assert_allclose(printed[:, 1:], published(1), rtol=0, atol=1.01e-4)
    assert len(set(map(len, lines))) == 1


@pytest.mark.parametrize(("objective", "even"), [("points", 0.0), ("win", 0.5)])
def test_equal_hands_draw_whatever_is_turned_up(objective, even):
    found = first(6, objective)
    np.testing.assert_allclose(found.values, even, rtol=0, atol=1e-11)
    np.testing.assert_allclose(found.chances.sum(axis=0), 1, rtol=0, atol=1e-12)
    assert (found.gaps >= 0).all() and (found.gaps < 1e-11).all()
    assert (found.least <= found.chances).all() and (found.chances <= found.most).all()


@pytest.mark.parametrize("cards", [5, 6, 7, 8, 9])
def test_the_bids_that_the_seed_never_saw_are_never_optimal(cards):
    """The paper, 4: on the N never N - 1 nor N - 2; with even N never the 1."""
    never = {bid for bid, most in enumerate(first(cards).most[:, -1], 1) if most < 1e-5}
    assert {cards - 1, cards - 2} <= never
    assert cards % 2 or 1 in never


def test_supports_of_table_1_are_its_entries_that_are_not_0():
    found = first(5)
    supports = [(np.flatnonzero(column > SEEN) + 1).tolist() for column in found.chances.T]
    assert supports == [[1, 2, 3], [1, 3, 4], [1, 2, 4], [1, 2, 3, 4, 5], [1, 2, 5]]
    assert found.unique.all()
    assert ((found.most < 1e-5) == (found.chances <= SEEN)).all()


def test_parity_is_the_chance_of_a_bid_as_odd_as_the_upcard():
    found = first(5)
    odd = found.chances[[0, 2, 4]].sum(axis=0)
    np.testing.assert_allclose(found.same_parity[::2], odd[::2], rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.same_parity[1::2], 1 - odd[1::2], rtol=0, atol=1e-12)


@pytest.mark.slow
def test_on_the_king_bids_are_odd():
    """The paper, 4: on the 13 odd bids up to 9, and the 13, by far the more likely ones."""
    found = first(13)
    np.testing.assert_allclose(found.chances, published(2), rtol=0, atol=1e-3)
    assert found.same_parity[-1] > 0.9
