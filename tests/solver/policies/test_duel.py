"""A cycle through states in which both players choose at once and may wait for ever: no solve
covers it, but if one player's policy is fixed, the other decides alone, and payoffs are exact."""

import pytest

import luckbase
from tests.solver.search.written_out import board_of, both, over

BOTH, FIRST, SECOND = 0.3, 1.0, 0.9
"""What player 1 gets where both draw, they alone, player 2 alone."""


@pytest.fixture
def board():
    """Both wait or draw; while both wait, the clock goes round its three states."""
    clock = [both([(1.0, (hour + 1) % 3)], [(1.0, 5)], [(1.0, 4)], [(1.0, 3)]) for hour in range(3)]
    return board_of(*clock, *(over(first, 1 - first) for first in (BOTH, FIRST, SECOND)))


def draws(chance):
    """An agent that draws with this chance, whatever the clock says."""
    return lambda game, player, state, actions: [1 - chance, chance]


@pytest.mark.parametrize("theirs", [0.05, 0.2, 0.5, 1.0])
def test_a_best_response_to_a_fixed_policy_is_exact(board, theirs):
    """To wait for ever pays what player 2 leaves when they draw; to draw at once, the rest."""
    at_once = (1 - theirs) * FIRST + theirs * BOTH
    value = luckbase.evaluate(board, ["best-response", draws(theirs)]).value
    assert value[0] == pytest.approx(max(SECOND, at_once), abs=1e-12)
    assert sum(value) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("mine", [0.1, 0.6])
def test_the_second_player_responds_as_well(board, mine):
    """Who waits for ever gets what player 1 leaves when they draw."""
    wait, draw = 1 - FIRST, mine * (1 - BOTH) + (1 - mine) * (1 - SECOND)
    value = luckbase.evaluate(board, [draws(mine), "best-response"]).value
    assert value[1] == pytest.approx(max(wait, draw), abs=1e-12)


@pytest.mark.parametrize(("mine", "theirs"), [(0.3, 0.2), (0.01, 0.02), (1.0, 0.5)])
def test_two_fixed_policies_have_the_payoff_of_their_chain(board, mine, theirs):
    ends = {BOTH: mine * theirs, FIRST: mine * (1 - theirs), SECOND: (1 - mine) * theirs}
    right = sum(pay * chance for pay, chance in ends.items()) / sum(ends.values())
    agents = [draws(mine), draws(theirs)]
    assert luckbase.evaluate(board, agents).value[0] == pytest.approx(right, abs=1e-12)
    played = luckbase.evaluate(board, agents, games=20_000, seed=1)
    assert played.stderr and abs(played.value[0] - right) < 4 * played.stderr[0]


def test_where_both_are_free_or_nobody_ever_draws_it_is_refused_in_a_sentence(board):
    both = "at=0 lies on a cycle that the players can keep up for ever for free"
    with pytest.raises(luckbase.errors.StateError, match=both):
        luckbase.evaluate(board, "best-response")
    with pytest.raises(luckbase.errors.StateError, match="at=0 lies"):
        luckbase.evaluate(board, draws(0.0))


def test_a_drawing_says_what_each_of_two_chooses(board):
    edges = luckbase.graph(board, draws(0.5)).diagram.edges
    assert {edge.action for edge in edges} == {
        "a against a", "a against b", "b against a", "b against b",
    }  # fmt: skip


def test_a_solve_that_is_refused_leaves_no_table(board, tmp_path):
    with pytest.raises(luckbase.errors.StateError, match="at=0 lies"):
        luckbase.solve(board, results=tmp_path / "results")
    assert luckbase.status(results=tmp_path / "results") == []
