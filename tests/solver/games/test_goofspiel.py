"""Goofspiel: patterns, the kernel against the rules and the reference, published numbers."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from luckbase.solver.games.goofspiel.charts import SEEN
from luckbase.solver.matrix_games import simplex
from luckbase.solver.search.expand import expand
from tests.reference import goofspiel as reference
from tests.reference import matrix_game as exact_games
from tests.solver.games.goofspiel import (
    Solved,
    first_move,
    goofspiel,
    in_parts,
    layers,
    mask,
    published,
    solved,
)


def subsets(cards, size):
    return [frozenset(chosen) for chosen in combinations(range(1, cards + 1), size)]


# --- layers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("cards", "states"), [(10, 2273687), (12, 63214409), (13, 336525645)])
def test_states_are_as_many_as_were_counted(cards, states):
    result = layers(cards)
    both = [2 * result.rows(tier) - result.layer(tier).width for tier in result.tiers()]
    assert sum(both) == states


@pytest.mark.parametrize(
    ("cards", "objective"), [(1, "points"), (7, "points"), (5, "win"), (15, "points")]
)
def test_locate_is_the_inverse_of_states_at(cards, objective):
    """Of every row; of more than seven cards, of some."""
    result = layers(cards, objective)
    for tier in result.tiers():
        count = result.rows(tier)
        some = np.random.default_rng(tier).integers(0, count, 1000)
        rows = some if cards > 7 else np.arange(count)
        states = result.states_at(tier, rows)
        number, back = result.locate(states)
        assert (number == tier).all()
        np.testing.assert_array_equal(back, rows)
        assert not result.swapped(states).any()


def test_parts_cover_a_layer_in_whole_patterns():
    for cards, objective in [(13, "points"), (14, "points"), (10, "win")]:
        result = layers(cards, objective)
        for tier in result.tiers():
            parts = result.parts(tier)
            assert [start for start, _ in parts[1:]] == [stop for _, stop in parts[:-1]]
            assert (parts[0][0], parts[-1][1]) == (0, result.rows(tier))
            assert all(start % result.block_rows(tier) == 0 < stop - start for start, stop in parts)


@pytest.mark.parametrize("objective", ["points", "win"])
def test_any_parts_give_the_same_bits(objective):
    result, table = layers(5, objective), solved(5, objective)
    width = result.block_rows(4)
    count = result.rows(4) // width
    for pieces in (1, 2, 3, 5):
        bounds = [count * i // pieces * width for i in range(pieces + 1)]
        out = in_parts(result, 4, table.payoffs[3], list(pairwise(bounds)))
        assert out.tobytes() == table.payoffs[4].tobytes()


# --- values --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cards", "sizes"),
    [(4, range(1, 5)), (5, range(1, 4)), pytest.param(5, [4, 5], marks=pytest.mark.slow)],
)
def test_patterns_change_nothing(cards, sizes):
    """Every (V, Y, P) against the exact value of the game without patterns."""
    table = solved(cards)
    for size in sizes:
        hands = subsets(cards, size)
        triples = [(v, y, p) for v in hands for y in hands for p in hands]
        values = np.array([[mask(v), mask(y), mask(p), 0] for v, y, p in triples])
        result = table.look_up(table.game.canonical_states(values))
        exact = np.array([float(reference.value(*triple)) for triple in triples])
        np.testing.assert_allclose(result, np.stack([exact, -exact], axis=1), rtol=0, atol=1e-12)


@settings(max_examples=30)
@given(st.data())
def test_random_states_have_the_exact_value(data):
    cards = data.draw(st.integers(6, 8))
    size = data.draw(st.integers(1, 3))
    hand = st.permutations(range(1, cards + 1)).map(lambda order: frozenset(order[:size]))
    triple = (data.draw(hand), data.draw(hand), data.draw(hand))
    table = solved(cards)
    states = table.game.canonical_states(np.array([[*map(mask, triple), 0]]))
    exact = float(reference.value(*triple))
    np.testing.assert_allclose(table.look_up(states), [[exact, -exact]], rtol=0, atol=1e-12)


@pytest.mark.parametrize("cards", [2, 3, 4])
def test_winning_has_the_exact_values(cards):
    table = solved(cards, "win")
    for tier in table.layout.tiers():
        states = table.layout.states_at(tier, np.arange(table.layout.rows(tier)))[::7]
        exact = []
        for state in states:
            text = table.game.describe(state)
            hands = (frozenset(text[name]) for name in ("mine", "theirs", "deck"))
            exact.append(float(reference.value(*hands, True, text["lead"])))
        result = table.look_up(states)
        np.testing.assert_allclose(result[:, 0], exact, rtol=0, atol=1e-12)
        np.testing.assert_allclose(result.sum(axis=1), 1, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("cards", "objective"), [(9, "points"), (6, "win")])
def test_the_kernel_solves_the_games_of_the_rules(cards, objective):
    """The Bellman residual of random rows: successors by the rules, values by `simplex`."""
    table, rng = solved(cards, objective), np.random.default_rng(1)
    for tier in table.layout.tiers():
        states = table.layout.states_at(tier, rng.integers(0, table.layout.rows(tier), 20))
        upcards = expand(table.game, states)
        bids = expand(table.game, upcards.children)
        payoffs = table.look_up(bids.children) + bids.rewards
        games = simplex.solve(payoffs[:, 0].reshape(-1, tier, tier)).values
        values = np.add.reduceat(upcards.weights * games, upcards.first[:-1])
        np.testing.assert_allclose(table.look_up(states)[:, 0], values, rtol=0, atol=1e-11)


# --- published -----------------------------------------------------------------------------------


def test_table_1_of_the_paper():
    """Rhoads and Bartholdi 2012, Table 1: five cards, within one unit of the last digit."""
    np.testing.assert_allclose(first_move(solved(5)).chances, published(1), rtol=0, atol=1.01e-4)


@pytest.mark.slow
def test_table_2_of_the_paper():
    """Table 2: thirteen cards, within .001 (four of its entries are off by up to .0009)."""
    result = first_move(solved(13))
    np.testing.assert_allclose(result.chances, published(2), rtol=0, atol=1e-3)
    assert result.same_parity[-1] > 0.9  # the paper, 4: on the king odd bids are by far likelier


def test_the_nine_on_the_nine():
    """The paper, 5: with nine cards a 9 is bid on the 9 with .7475; the value of a start is 0."""
    bids = first_move(solved(9))
    assert abs(bids.chances[8, -1] - 0.7475) < 5e-5
    assert abs(bids.values[-1]) < 1e-11 and bids.unique[-1]


def test_two_cards_left_of_the_paper():
    """The paper, 3.1: Q K left, 2 4 against 1 3: high on the king with 52%, 12.52 on average."""
    table = Solved(layers(13), [1, 2])
    words = {"mine": "2,4", "theirs": "1,3", "deck": "12,13"}
    assert abs(first_move(table, **words).chances[1, 1] - 0.52) < 5e-3
    value = table.look_up(table.game.parse(words)[None])[0, 0]
    assert abs(value - 12.52) < 5e-3


@pytest.mark.parametrize("cards", [5, 6, 7, 8, 9])
def test_on_the_highest_card_the_next_two_are_never_bid(cards):
    """The paper, 4; and with an even number of cards never the 1."""
    most = first_move(solved(cards)).most[:, -1]
    assert (most[cards - 3 : cards - 1] < 1e-5).all()
    assert cards % 2 or most[0] < 1e-5


def test_winning_with_five_cards_bids_less_on_the_five():
    """docs/numbers.md#numbers-of-this-project: 1 .1444, 2 .0154, 5 .8402
    where points ask for .8636."""
    chances = first_move(solved(5, "win")).chances[:, -1]
    np.testing.assert_allclose(chances, [0.1444, 0.0154, 0, 0, 0.8402], rtol=0, atol=5e-5)


@pytest.mark.parametrize(("objective", "even"), [("points", 0.0), ("win", 0.5)])
def test_equal_hands_draw_whatever_is_turned_up(objective, even):
    result = first_move(solved(6, objective))
    np.testing.assert_allclose(result.values, even, rtol=0, atol=1e-11)
    np.testing.assert_allclose(result.chances.sum(axis=0), 1, rtol=0, atol=1e-12)
    assert (result.gaps >= 0).all() and (result.gaps < 1e-11).all()
    assert (result.least <= result.chances).all() and (result.chances <= result.most).all()


def test_supports_of_table_1_are_its_entries_that_are_not_0():
    result = first_move(solved(5))
    supports = [(np.flatnonzero(column > SEEN) + 1).tolist() for column in result.chances.T]
    assert supports == [[1, 2, 3], [1, 3, 4], [1, 2, 4], [1, 2, 3, 4, 5], [1, 2, 5]]
    assert result.unique.all()
    assert ((result.most < 1e-5) == (result.chances <= SEEN)).all()


def test_parity_is_the_chance_of_a_bid_as_odd_as_the_upcard():
    result = first_move(solved(5))
    odd = result.chances[[0, 2, 4]].sum(axis=0)
    np.testing.assert_allclose(result.same_parity[::2], odd[::2], rtol=0, atol=1e-12)
    np.testing.assert_allclose(result.same_parity[1::2], 1 - odd[1::2], rtol=0, atol=1e-12)


# --- what people ask -----------------------------------------------------------------------------


def test_fields_are_read_and_said_again():
    game = goofspiel(6, "win")
    words = {"mine": "1,5,6", "theirs": "2,3,4", "deck": "1,4,6", "upcard": "4", "lead": "-3"}
    state = game.parse(words)
    text = {"mine": [1, 3, 4], "theirs": [2], "deck": [1, 4, 6], "upcard": 4, "lead": -3}
    assert game.describe(state) == text | {"mine": [1, 5, 6], "theirs": [2, 3, 4]}
    low = game.parse(words | {"mine": "2,3,6", "theirs": "3,4,5"})
    assert game.describe(low)["mine"] == [1, 2, 5] and game.describe(low)["theirs"] == [2, 3, 4]


def test_bids_are_said_in_the_cards_that_were_named():
    """The 5 and the 6 beat all of theirs: one is as good as the other, and the 5 has the weight."""
    table = solved(6)
    bids = first_move(table, mine="1,5,6", theirs="2,3,4", deck="1,4,6")
    assert bids.hand == (1, 5, 6) and bids.deck == (1, 4, 6)
    assert bids.chances[2, 1] == 0 and not bids.unique[1]
    assert bids.most[1, 1] == pytest.approx(bids.most[2, 1], abs=1e-5)
    exact = reference.game(frozenset({1, 5, 6}), frozenset({2, 3, 4}), frozenset({1, 4, 6}), 4)
    assert bids.values[1] == pytest.approx(float(exact_games.solve(exact)[0]), abs=1e-12)
    swapped = first_move(table, mine="2,3,4", theirs="1,5,6", deck="1,4,6")
    assert swapped.values[1] == pytest.approx(-bids.values[1], abs=1e-12)
