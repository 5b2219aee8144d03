"""Reported games whose values were wrong, whose bounds did not hold, or that were refused."""

from fractions import Fraction

import numpy as np
import pytest

import luckbase
from luckbase.cluster.answers.actions import stepped
from luckbase.solver.errors import GameError, StateError
from luckbase.solver.game.game import load_game
from luckbase.solver.search.bellman import evaluate, final_payoffs
from luckbase.solver.search.expand import expand
from luckbase.solver.search.game_graph import Graph
from tests.games import reported
from tests.solver.board.board_files import assert_one_sentence


def board_of(kind, **options):
    name = kind.__name__.lower()
    return kind(game=name, name=name, rules=kind.Options(**options))


def solved(kind, **options):
    """The payoff of player 1 at the start, and the bound on its error."""
    game = load_game(board_of(kind, **options))
    graph = Graph(game)
    at = graph.solve(game.needed_start()[None])
    return float(graph.values[at[0], 0]), float(graph.errors[at[0]])


def assert_is(found, right, relative=1e-12):
    value, error = found
    assert abs(Fraction(value) - right) <= Fraction(error)
    assert value == pytest.approx(float(right), rel=relative)


def refusal(error, kind, **options):
    with pytest.raises(error) as caught:
        solved(kind, **options)
    assert_one_sentence(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(("which", "sums"), [(0, (2, 6)), (1, (0, 3)), (2, (0, 8))])
def test_both_choose_at_once_without_one_sum(which, sums):
    """The value of the matrix game of player 1 alone is not what an equilibrium pays."""
    said = refusal(GameError, reported.Bimatrix, which=which)
    assert "at cell=0: both choose at once" in said
    assert f"add up to {sums[0]} for" in said and f"but to {sums[1]} for" in said
    with pytest.raises(GameError, match="add up to"):
        luckbase.evaluate(board_of(reported.Bimatrix, which=which), "best-response")


def test_one_step_above_a_table_is_held_to_one_sum_too():
    """The ends of the game are known without a search."""
    game = load_game(board_of(reported.Bimatrix))
    start = game.needed_start()[None]
    edges = expand(game, start)
    q = evaluate(edges, final_payoffs(game, edges.children))
    near, inputs = (game.tie_tolerance, 0.0), game.fields.values(start)
    with pytest.raises(GameError, match="add up to 2 for") as caught:
        stepped(game, edges, q, near, np.zeros(4), inputs)
    assert_one_sentence(caught.value)


@pytest.mark.parametrize("pairs", [(1e-7, 2e-7), (1e-14, 2e-14)])
@pytest.mark.parametrize("pass_on", [False, True])
def test_two_throwers_who_rarely_hit(pairs, pass_on):
    """With a choice too: both may pass, and should not."""
    p, q = map(Fraction, pairs)
    found = solved(reported.Throwers, one=pairs[0], two=pairs[1], pass_on=pass_on)
    assert_is(found, p / (p + q - p * q), 1e-15)


@pytest.mark.parametrize("rounds", [1000, 100_000])
def test_the_bound_covers_a_long_game(rounds):
    """Rounding adds up over the depth: 3.4e-7 after 100,000 rounds."""
    assert_is(solved(reported.Dimes, rounds=rounds), Fraction(rounds, 10), 1e-9)


@pytest.mark.parametrize("goal", [400, 402, 1000, 20_000])
def test_gamblers_ruin(goal):
    assert_is(solved(reported.Gambler, goal=goal), Fraction(1, 2), 1e-15)


def test_bold_play():
    """Stake all that helps: from half the goal the chance is that of heads."""
    assert_is(solved(reported.Gambler, heads=0.4, most=50), Fraction(0.4), 1e-14)


def test_heads_in_a_row_with_a_second_coin():
    assert_is(solved(reported.Streak), Fraction(-(2**19 - 2)), 1e-15)


def test_a_die_that_may_be_thrown_again_for_a_dollar():
    assert_is(solved(reported.Die), Fraction(1223, 14), 1e-15)


def test_the_grid_world_of_the_textbook():
    """.705 in Russell and Norvig."""
    value, error = solved(reported.Grid)
    assert round(value, 3) == 0.705 and error < 1e-14


def test_a_cycle_for_free_names_its_actions():
    said = refusal(StateError, reported.Die, fee=0.0)
    assert "lies on a cycle that the players can keep up for ever for free (" in said
    assert ": again" in said and "do not say what such a play pays" in said
    said = refusal(StateError, reported.Gambler, zero=True)
    assert "for ever for free (capital=1: stake 0)" in said


@pytest.mark.parametrize("end", [0.5, 0.1, 1e-5])
def test_a_siege_in_which_both_choose_at_once(end):
    """Each round is the game [[-1, 1], [2, -1]], worth 1/5, and there are 1 / end rounds."""
    assert_is(solved(reported.Siege, end=end), Fraction(1, 5) / Fraction(end), 1e-9)


def test_a_siege_that_need_not_end_is_refused():
    assert "for ever for free (over=0: " in refusal(StateError, reported.Siege, end=0.0)


def test_many_small_cycles_behind_one_another():
    """Player 2's hits lead to the next pair: 30 pairs, each of which player 1 wins with 5/14."""
    p, q = Fraction(0.1), Fraction(0.2)
    other = (1 - p) * q / (p + q - p * q)
    assert_is(solved(reported.Throwers, pairs=30), 1 - other**30, 1e-14)


def test_own_games_give_the_same_in_a_table():
    with luckbase.open(board_of(reported.Die), in_memory=True) as table:
        answer = table[{"face": 87}]
        assert answer.value[0] == pytest.approx(87, rel=1e-15) and answer.best == "take"
        assert table[{"face": 86}].best == "again"
        assert np.isclose(table[{"face": 0}].value[0], 1223 / 14, rtol=1e-15)
