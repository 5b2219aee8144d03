"""The certificate of a fixed point, ingredient by ingredient: each test is of one without which the
bounds exclude a value that is known as a fraction."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from luckbase.solver.game.arrays import Floats
from luckbase.solver.search.cycles import Equations, certify
from tests.reference import linear

Edge = tuple[Fraction, Fraction, int]
"""Weight, reward, child: a state from 0, or a known payoff from -1 down."""


def component(states: list[list[Edge]], known: list[Fraction]) -> Equations:
    """States without a choice, as float64 has them."""
    flat = [edge for state in states for edge in state]
    known_ = np.array([[float(k)] for k in known])
    return Equations(
        np.concatenate([[0], np.cumsum([len(state) for state in states])]).astype(np.int64),
        np.array([child if child >= 0 else len(states) - 1 - child for _, _, child in flat]),
        np.array([float(weight) for weight, _, _ in flat]),
        np.zeros(len(flat), np.int64),
        np.array([[float(reward)] for _, reward, _ in flat]),
        np.zeros(len(states), np.int64), known_, known_,
    )  # fmt: skip


def values(states: list[list[Edge]], known: list[Fraction]) -> list[Fraction]:
    """The values in fractions, by elimination."""
    n = len(states)
    rows = [[Fraction(int(i == j)) for j in range(n)] + [Fraction(0)] for i in range(n)]
    for i, state in enumerate(states):
        for weight, reward, child in state:
            rows[i][n] += weight * reward
            if child >= 0:
                rows[i][child] -= weight
            else:
                rows[i][n] += weight * known[-1 - child]
    return linear.solve(rows)


def settled(c: Equations) -> Floats:
    """The table that float64 sweeps come to rest on: its residual, as computed, is 0 or nearly."""
    v = np.concatenate([np.zeros(c.size), c.known_lower[:, 0]])
    for _ in range(100_000):
        before = v[: c.size].copy()
        for x in range(c.size):
            q = 0.0
            for k in range(c.first[x], c.first[x + 1]):
                q += c.weights[k] * (c.rewards[k, 0] + v[c.children[k]])
            v[x] = q
        if (v[: c.size] == before).all():
            break
    return v[: c.size]


def assert_between(lower: Floats, right: list[Fraction], upper: Floats) -> None:
    for low, value, high in zip(lower.tolist(), right, upper.tolist(), strict=True):
        assert Fraction(low) <= value <= Fraction(high), (low, float(value), high)


@st.composite
def rational_games(draw: st.DrawFn) -> tuple[list[list[Edge]], list[Fraction]]:
    """Loops of thirds, sevenths and the like that are left seldom, so that roundings add up."""
    n = draw(st.integers(1, 4))
    known = [Fraction(draw(st.integers(-20, 20)), draw(st.sampled_from([1, 3, 7])))]
    states = []
    for x in range(n):
        parts = draw(st.sampled_from([21, 49, 97]))
        cut = draw(st.integers(1, parts - 2))
        reward = Fraction(draw(st.integers(-9, 9)), 11)
        states.append(
            [
                (Fraction(cut, parts), reward, (x + 1) % n),
                (Fraction(parts - 1 - cut, parts), -reward, draw(st.integers(0, n - 1))),
                (Fraction(1, parts), Fraction(0), -1),
            ]
        )
    return states, known


@given(rational_games())
def test_the_value_lies_between_the_bounds_of_a_table_that_sweeps_do_not_move(
    game: tuple[list[list[Edge]], list[Fraction]],
) -> None:
    """Such a table is off by many roundings: what is computed of its residual says nothing."""
    c = component(*game)
    guess = settled(c)
    lower, upper = certify(c, guess, guess)
    assert_between(lower, values(*game), upper)


def test_each_rounding_of_a_term_is_in_the_margin() -> None:
    """Weight, reward, product and sum are each rounded: this table, which a sweep does not move, is
    off by more than 59 steps of 2 u times the sizes of two terms."""
    rewards = Fraction(16.636363636363637), Fraction(88.22222222222223)
    state = [(Fraction(58, 59), rewards[0], 0), (Fraction(1, 59), rewards[1], -1)]
    c, guess = component([state], [Fraction(4)]), np.array([1057.1313131313352])
    (weight, leave), (back, out) = c.weights, c.rewards[:, 0]
    assert weight * (back + guess[0]) + leave * (out + 4.0) == guess[0]
    lower, upper = certify(c, guess, guess)
    assert_between(lower, values([state], [Fraction(4)]), upper)


def test_the_margin_grows_with_the_number_of_terms() -> None:
    """Four hundred terms of 2 ** -55 are lost, one by one, in a sum that is nearly 1."""
    many = 400
    state = [(1 - many * Fraction(1, 2**55), Fraction(0), -1)]
    state += [(Fraction(1, 2**55), Fraction(0), -1)] * many
    c = component([state], [Fraction(1)])
    guess = settled(c)
    assert 1 - guess[0] == many / 2**55  # all of them
    lower, upper = certify(c, guess, guess)
    assert_between(lower, [Fraction(1)], upper)


@pytest.mark.parametrize("away", [1.0, -1.0])
def test_the_steps_are_divided_by_their_slack(away: float) -> None:
    """A loop that is left once in 64 times, worth 0, all in powers of 2: a table that is 1 off has
    a residual of 1/64, 64 steps make that 1, and the steps are counted no further than half."""
    state = [(Fraction(63, 64), Fraction(0), 0), (Fraction(1, 64), Fraction(0), -1)]
    guess = np.array([away])
    lower, upper = certify(component([state], [Fraction(0)]), guess, guess)
    assert lower[0] <= 0.0 <= upper[0]


def test_a_payoff_too_small_for_float64_lies_between_the_bounds() -> None:
    """Half of the least number there is rounds to 0, as does the margin: the bounds go outwards."""
    least = Fraction(5e-324)
    state = [(Fraction(1, 2), Fraction(0), -1), (Fraction(1, 2), Fraction(0), -2)]
    c = component([state], [least, Fraction(0)])
    guess = settled(c)
    assert guess[0] == 0.0
    lower, upper = certify(c, guess, guess)
    assert_between(lower, [least / 2], upper)
    lower, upper = certify(component([state], [-least, Fraction(0)]), -guess, -guess)
    assert_between(lower, [-least / 2], upper)
