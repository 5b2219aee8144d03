"""Skunk: the published numbers, the reference solver, the certificate, the chart, words."""

from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from luckbase.solver.dense import InMemory
from luckbase.solver.errors import StateError, Stopped
from luckbase.solver.game.arrays import NO_BEST
from luckbase.solver.game.capabilities import FullTable
from luckbase.solver.games.skunk import kernel
from luckbase.solver.games.skunk.charts import Strategy, hold_points
from luckbase.solver.search.bellman import evaluate, final_payoffs
from luckbase.solver.search.expand import expand
from tests import solving
from tests.reference.skunk import Reference
from tests.solver.board.board_files import assert_one_sentence

BOARDS = Path(__file__).parents[3] / "boards" / "skunk"
SEED, TINY = BOARDS / "seed.toml", BOARDS / "tiny.toml"


VARIANTS = [
    (("goal", 1),),
    (("goal", 10),),
    (("goal", 20),),
    (("goal", 13), ("dice", 1)),
    (("goal", 13), ("dice", 1), ("all_ones", "turn")),
]


@cache
def skunk(path=TINY, options=()):
    return solving.load_game(solving.load_board(path, **dict(options)))


@cache
def race_of(path=TINY, options=()):
    """Its one tier."""
    return skunk(path, options).need(FullTable)


@cache
def solved(path=TINY, options=()):
    """(payoffs, the bound on their error)."""
    race = race_of(path, options)
    out = np.full(race.shape(0), np.nan)
    return out, race.solve_tier(0, out, lambda child: out, lambda: False)


reference_of = cache(Reference)


def value(path, *state):
    race = race_of(path)
    return float(solved(path)[0][race.locate(np.array([[*state, 1]]))[1][0]])


# Published numbers


@pytest.mark.parametrize(
    ("state", "chance"),
    [((0, 0, 0), 0.519558893862), ((0, 5, 0), 0.497331818708), ((67, 0, 0), 0.858475698797)],
)
def test_the_chances_are_the_known_ones(state, chance):
    """docs/numbers.md#numbers-of-this-project; the .5195594,
    .4973309, .858472 of 1998 are near."""
    assert value(SEED, *state) == pytest.approx(chance, abs=1e-11)


def test_the_tables_bounds_are_less_than_1e_12_apart():
    assert 2 * solved(SEED)[1] < 1e-12


def strategy(path=TINY, tolerance=1e-11):
    """What the charts are made of."""
    out = solved(path)[0]
    return Strategy(race_of(path), out[: len(out) // 2], tolerance)


@pytest.mark.parametrize(
    ("goal", "exact"), [(10, Fraction(46656, 68491)), (20, Fraction(20155392, 33433085))]
)
def test_small_goals_have_their_exact_fractions(goal, exact):
    """docs/numbers.md#numbers-of-this-project; found again by the reference
    solver, and by the kernel within its own bound."""
    assert reference_of(goal, 2, 6, "score").value[0, 0, 0] == exact
    out, bound = solved(TINY, (("goal", goal),))
    assert abs(Fraction(float(out[0])) - exact) <= bound < 1e-13


# Kernel, rules, reference


@pytest.mark.parametrize("options", VARIANTS, ids=str)
def test_every_row_is_the_references_fraction_within_the_bound(options):
    race, (out, bound) = race_of(TINY, options), solved(TINY, options)
    rules = race.options
    exact = reference_of(rules.goal, rules.dice, rules.sides, rules.all_ones).value
    states = race.states_at(0, np.arange(race.rows(0)))
    for state, payoff in zip(states.tolist(), out.tolist(), strict=True):
        mine, yours, turn, player = state
        own = exact[mine, yours, turn]
        assert abs(Fraction(payoff) - (own if player == 1 else 1 - own)) <= bound


@given(
    st.integers(1, 12),
    st.integers(1, 3),
    st.integers(2, 4),
    st.sampled_from(["turn", "score", "points"]),
    st.sampled_from(["turn", "score", "points"]),
    st.booleans(),
    st.sampled_from(["faces", "rolls"]),
)
@settings(max_examples=30, deadline=None)
def test_any_board_is_solved_and_certified(goal, dice, sides, some, every, safe, count):
    options = (
        ("goal", goal), ("dice", dice), ("sides", sides), ("some_ones", some),
        ("all_ones", every), ("first_roll_safe", safe), ("count", count),
    )  # fmt: skip
    rolls = race_of(TINY, options).options.rolls(False)
    counting = sum(rolls.points) / rolls.total
    assume(counting**goal > 1e-5)  # or see the next test
    table = InMemory(race_of(TINY, options))
    states = table.layout.states_at(0, np.arange(table.layout.rows(0)))
    out, error = table.lookup(states)[0], table.error
    assert np.abs(solving.one_step(table, states) - out).max() < 1e-14 and error < 1e-9
    assert ((out > -1e-14) & (out < 1 + 1e-14)).all()


def test_a_board_whose_plays_can_last_too_long_is_refused_in_a_sentence():
    """One roll in eight counts, for a point: who never holds needs 7 in a row, 2 million rolls."""
    race = race_of(
        TINY, (("goal", 7), ("dice", 3), ("sides", 2), ("count", "rolls"), ("all_ones", "turn"))
    )
    with pytest.raises(StateError) as caught:
        race.solve_tier(0, np.empty(race.shape(0)), lambda child: np.empty(0), lambda: False)
    assert_one_sentence(caught.value)
    assert "the values at goal 7 are certain to 2" in str(caught.value)


# The certificate is real


def fresh(race, sweeps):
    """A table after so many sweeps."""
    V = np.full((race.goal, race.goal), 0.5)
    for _ in range(sweeps):
        kernel.sweep(race.ints, V)
    out = np.empty(race.shape(0))
    kernel.fill(race.ints, V, out, 0.0, NO_BEST)
    return out


@pytest.mark.parametrize("sweeps", [1, 2, 3])
def test_a_wrong_stopping_rule_is_in_the_bound(sweeps):
    """Stopped too early, the bound says how far off the table can be, and it is not below that."""
    race, (right, _) = race_of(TINY, (("goal", 40),)), solved(TINY, (("goal", 40),))
    out = fresh(race, sweeps)
    bound = kernel.certify(race.ints, out)
    assert np.abs(out - right).max() <= bound + 1e-12
    assert bound > 1e-9


@given(st.integers(0, 8399), st.sampled_from([1e-12, -1e-9, 1e-6, -0.1, 0.5, np.nan]))
@settings(max_examples=50)
def test_one_wrong_row_is_in_the_bound(row, error):
    game, out = skunk(), solved()[0].copy()
    out[row] += error
    assert not kernel.certify(game.numbers.ints, out) < abs(error)


def test_the_bound_on_the_length_of_a_game_is_one():
    """No policy of both players plays longer on average: here the longest, by value iteration."""
    for options in ((("goal", 6),), (("goal", 9), ("dice", 1), ("all_ones", "turn"))):
        race = race_of(TINY, options)
        edges = expand(race.game, race.states_at(0, np.arange(race.rows(0))))
        tier, rows = race.locate(edges.children)
        begins = evaluate(edges, np.zeros((len(rows), 2))).first[:-1]
        action = np.flatnonzero(np.diff(edges.actions, prepend=-1) != 0)
        action = np.union1d(action, edges.first[:-1])
        weights = np.where(tier < 0, 0.0, edges.weights)
        w, before = np.zeros(len(begins)), None
        while before is None or np.abs(w - before).max() > 1e-9:
            before = w
            means = np.add.reduceat(weights * w[rows], action)
            w = 1 + np.maximum.reduceat(means, begins)
        assert w.max() <= kernel.most_actions(race.ints) <= 2.5 * w.max()


# The chart


def test_the_chart_and_the_rules_agree_on_rolling_and_holding():
    race, out = race_of(), solved()[0]
    for mine, yours in ((0, 0), (3, 17), (12, 5)):
        hold, roll = kernel.action_values(race.ints, out, mine, yours)
        states = np.array([[mine, yours, t, 1] for t in range(20 - mine)])
        edges = expand(race.game, states)
        tier, rows = race.locate(edges.children)
        one = np.where(tier < 0, 0.0, out[rows])
        one[tier < 0] = final_payoffs(race.game, edges.children[tier < 0])[:, 0]
        q = evaluate(edges, np.column_stack([one, 1 - one]))
        assert q.values[q.actions == 1, 0] == pytest.approx(roll, abs=1e-14)
        assert q.values[q.actions == 0, 0] == pytest.approx(hold[1:], abs=1e-14)


def test_toggles_ascend_and_a_chart_has_a_line_for_each_pair_of_scores():
    lines = strategy().entries(range(20), range(20))
    assert [(line.mine, line.yours) for line in lines] == [
        (mine, yours) for mine in range(20) for yours in range(20)
    ]
    for line in lines:
        assert list(line.toggles) == sorted(set(line.toggles)) and line.toggles
        assert line.toggles[-1] <= 20 - line.mine
    assert hold_points(strategy())[0, 0] == lines[0].hold


# Words


def test_states_in_words():
    race = race_of(SEED)
    assert race.game.parse({"mine": "0", "yours": "87", "turn": "32"}).tolist() == [0, 87, 32, 1]
    assert race.game.parse({"mine": "99", "yours": "5", "turn": "7", "player": "2"}).tolist() == [
        100, 0, 0, 2,
    ]  # fmt: skip
    assert race.game.parse({"mine": "3", "yours": "100"}).tolist() == [100, 0, 0, 2]
    assert race.game.describe(race.game.start()) == {"mine": 0, "yours": 0, "turn": 0, "player": 1}
    for _, words in race.opening_questions():
        assert race.locate(race.game.parse(words))[0][0] == 0


RACES = {
    "the start": lambda mine, yours, turn: mine == yours == turn == 0,
    "level, at the usual hold": lambda mine, yours, turn: mine == yours == 0 < turn,
    "far ahead": lambda mine, yours, turn: yours == turn == 0 and mine > 60,
    "the other is nearly there":
        lambda mine, yours, turn: mine == 0 and 20 < turn < 40 < 80 < yours,
    "a great turn, the other nearly there":
        lambda mine, yours, turn: mine == 0 and 40 < turn < 80 < yours,
}  # fmt: skip


def test_what_is_proposed_to_ask_is_what_its_title_says():
    query = dict(race_of(SEED).opening_questions())
    assert set(query) == set(RACES)
    for title, state in query.items():
        assert RACES[title](*(state[name] for name in ("mine", "yours", "turn"))), title


def test_a_solve_stops_when_it_is_told_to():
    race = race_of()
    with pytest.raises(Stopped):
        race.solve_tier(0, np.empty(race.shape(0)), lambda child: np.empty(0), lambda: True)
