"""Games of public reports and textbooks on which luckbase once gave a wrong value, a bound that did
not hold, or none."""

from fractions import Fraction

import numpy as np
import pytest

import luckbase
from luckbase.cluster.answers.actions import stepped
from luckbase.solver.errors import GameError, StateError
from luckbase.solver.game.game import load_game
from luckbase.solver.search.bellman import evaluate, final_payoffs
from luckbase.solver.search.cycles import refusal as refusal_of
from luckbase.solver.search.expand import expand
from luckbase.solver.search.game_graph import Graph
from luckbase.solver.search.policies import SLOW
from tests.solver.board.board_files import assert_one_sentence
from tests.solver.search.written_out import board_of, both, chance, decides, over


def solved(board, at=0):
    """The payoff of player 1 in a state, and the bound on its error."""
    graph = Graph(load_game(board))
    (row,) = graph.solve(np.array([[at]]))
    return float(graph.values[row, 0]), float(graph.errors[row])


def assert_is(found, right, relative=1e-12):
    value, error = found
    assert abs(Fraction(value) - right) <= Fraction(error)
    assert value == pytest.approx(float(right), rel=relative)


def refusal(error, board, at=0):
    with pytest.raises(error) as caught:
        solved(board, at)
    assert_one_sentence(caught.value)
    return str(caught.value)


# --- the games, as boards ------------------------------------------------------------------------

PAIRS = (([3, 0, 5, 1], [3, 5, 0, 1]), ([2, 0, 0, 1], [1, 0, 0, 2]), ([4, 1, 3, 0], [4, 3, 1, 0]))
"""Two-by-two games whose payoffs have no one sum: the prisoner's dilemma, the battle of the sexes,
and one with a single equilibrium, which pays (4, 4)."""


def bimatrix(first, second):
    cells = [over(*pays) for pays in zip(first, second, strict=True)]
    return board_of(both(*([(1.0, 1 + cell)] for cell in range(4))), *cells, high=5.0)


def die(fee=1.0, sides=100):
    """Take the face of a die in dollars, or pay the fee and roll again, however often. From 1 on a
    state is a face."""
    faces = range(1, sides + 1)
    offers = [decides(0, [(1.0, face + sides)], [(1.0, 0, [-fee])]) for face in faces]
    roll = chance(*((1 / sides, face) for face in faces))
    return board_of(roll, *offers, *map(over, faces), players=1, low=-sides, high=sides)


def gambler(goal=100, heads=0.5, most=1, zero=False):
    """Stake some of the capital, the state, on a coin until the goal or nothing is left."""
    states = [over(0.0)]
    for capital in range(1, goal):
        stakes = range(0 if zero else 1, min(most, capital, goal - capital) + 1)
        states.append(decides(0, *(
            [(heads, capital + stake), (1 - heads, capital - stake)] for stake in stakes
        )))  # fmt: skip
    return board_of(*states, over(1.0), players=1)


def streak(heads, second):
    """Toss one of two coins until it shows so many heads in a row; every toss costs one."""
    tosses = [
        decides(0, *([(p, row + 1, [-1.0]), (1 - p, 0, [-1.0])] for p in (0.5, second)))
        for row in range(heads)
    ]
    return board_of(*tosses, over(0.0), players=1, low=-(3.0 ** (heads + 1)))


def throwers(one, two, pass_on=False, pairs=1):
    """Two throw in turn until one hits; one hit of player 2 leads to the next pair. If they may,
    they pass instead of throwing."""
    states, won = [], 2 * pairs
    for pair in range(pairs):
        up, other = 2 * pair, 2 * pair + 1
        passes = ([[(1.0, other)]], [[(1.0, up)]]) if pass_on else ([], [])
        states.append(decides(0, [(one, won), (1 - one, other)], *passes[0]))
        states.append(decides(1, [(two, won + 1 if pair == pairs - 1 else up + 2), (1 - two, up)],
                              *passes[1]))  # fmt: skip
    return board_of(*states, over(1.0, 0.0), over(0.0, 1.0))


def siege(end):
    """Both choose one of two gates. If they meet, player 2 wins the round, else player 1 gets 2 at
    gate 1 or 1 at gate 0; then the siege ends with a fixed chance, or goes on."""
    most = 2 / end if end else 1e6
    ends = [(end, 1)] if end else []
    pays = ([-1.0, 1.0], [1.0, -1.0], [2.0, -2.0], [-1.0, 1.0])
    rounds = ([(weight, child, paid) for weight, child in [*ends, (1 - end, 0)]] for paid in pays)
    return board_of(both(*rounds), over(0.0, 0.0), low=-most, high=most)


def grid_world(step=-0.04):
    """The 4 x 3 world of the textbook: 8 in 10 the way you want, 1 in 10 to each side."""
    ways = [(0, 1), (1, 0), (0, -1), (-1, 0)]

    def after(x, y, way):
        a, b = x + ways[way % 4][0], y + ways[way % 4][1]
        return 4 * y + x if (a, b) == (1, 1) or not (0 <= a < 4 and 0 <= b < 3) else 4 * b + a

    states = [
        decides(0, *(
            [(weight, after(x, y, way + turn), [step])
             for turn, weight in ((0, 0.8), (1, 0.1), (3, 0.1))]
            for way in range(4)
        ))
        for y in range(3) for x in range(4)
    ]  # fmt: skip
    states[7], states[11] = over(-1.0), over(1.0)
    return board_of(*states, players=1, low=-100.0)


# --- their values --------------------------------------------------------------------------------


@pytest.mark.parametrize(("which", "sums"), [(0, (2, 6)), (1, (0, 3)), (2, (0, 8))])
def test_both_choose_at_once_without_one_sum(which, sums):
    """The value of the matrix game of player 1 alone is not what an equilibrium pays."""
    board = bimatrix(*PAIRS[which])
    said = refusal(GameError, board)
    assert "at at=0: both choose at once" in said
    assert f"add up to {sums[0]} for" in said and f"but to {sums[1]} for" in said
    with pytest.raises(GameError, match="add up to"):
        luckbase.evaluate(board, "best-response")


def test_one_step_above_a_table_is_held_to_one_sum_too():
    """The ends of the game are known without a search."""
    game = load_game(bimatrix(*PAIRS[0]))
    start = game.needed_start()[None]
    edges = expand(game, start)
    q = evaluate(edges, final_payoffs(game, edges.children))
    near, inputs = (game.tie_tolerance, 0.0), game.fields.values(start)
    with pytest.raises(GameError, match="add up to 2 for") as caught:
        stepped(game, edges, q, near, np.zeros(4), inputs)
    assert_one_sentence(caught.value)


@pytest.mark.parametrize("pairs", [(1e-7, 2e-7), (1e-14, 2e-14), (1e-18, 0.5)])
@pytest.mark.parametrize("pass_on", [False, True])
def test_two_throwers_who_rarely_hit(pairs, pass_on):
    """With a choice too: both may pass, and should not."""
    p, q = map(Fraction, pairs)
    assert_is(solved(throwers(*pairs, pass_on)), p / (p + q - p * q), 1e-15)


@pytest.mark.parametrize("goal", [400, 402, 1000, 20_000])
def test_gamblers_ruin(goal):
    assert_is(solved(gambler(goal), goal // 2), Fraction(1, 2), 1e-15)


def test_bold_play():
    """Stake all that helps: from half the goal the chance is that of heads."""
    assert_is(solved(gambler(heads=0.4, most=50), 50), Fraction(0.4), 1e-14)


def test_heads_in_a_row_with_a_second_coin():
    assert_is(solved(streak(18, 0.45)), Fraction(-(2**19 - 2)), 1e-15)


def test_a_die_that_may_be_thrown_again_for_a_dollar():
    assert_is(solved(die()), Fraction(1223, 14), 1e-15)


def test_the_grid_world_of_the_textbook():
    """.705 in Russell and Norvig."""
    value, error = solved(grid_world())
    assert round(value, 3) == 0.705 and error < 1e-14


def test_a_cycle_for_free_names_its_actions():
    said = refusal(StateError, die(fee=0.0))
    assert "lies on a cycle that the players can keep up for ever for free (" in said
    assert ": b" in said and "do not say what such a play pays" in said
    said = refusal(StateError, gambler(zero=True), 50)
    assert "for ever for free (at=1: a" in said


@pytest.mark.parametrize("end", [0.5, 0.1, 1e-5])
def test_a_siege_in_which_both_choose_at_once(end):
    """Each round is the game [[-1, 1], [2, -1]], worth 1/5, and there are 1 / end rounds."""
    assert_is(solved(siege(end)), Fraction(1, 5) / Fraction(end), 1e-9)


def test_a_siege_that_need_not_end_is_refused():
    assert "for ever for free (at=0: " in refusal(StateError, siege(0.0))


def test_bounds_that_do_not_meet_are_a_sentence_whatever_the_cycle_holds():
    game, never_written = load_game(siege(0.5)), np.array([1 << 40])
    error = refusal_of(game, None, np.array([[0]]), never_written, SLOW)
    assert str(error) == "at=0 lies on a cycle whose bounds do not meet"


def test_many_small_cycles_behind_one_another():
    """Player 2's hits lead to the next pair: 30 pairs, each of which player 1 wins with 5/14."""
    p, q = Fraction(0.1), Fraction(0.2)
    other = (1 - p) * q / (p + q - p * q)
    assert_is(solved(throwers(0.1, 0.2, pairs=30)), 1 - other**30, 1e-14)
