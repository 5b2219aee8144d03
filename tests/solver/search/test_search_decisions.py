"""What to do stands in every state that a search has solved: best action, who acts, margin."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from luckbase.solver.games.press_your_luck.tiers import Tier
from luckbase.solver.matrix_games import simplex as matrix_game
from luckbase.solver.policies.chain import explore_profile
from luckbase.solver.policies.evaluate import deciders_of
from luckbase.solver.search.bellman import MIXED, NEW, OVER, evaluate, strategies_of
from luckbase.solver.search.expand import expand
from luckbase.solver.search.game_graph import Graph
from luckbase.solver.search.keys import pack_all
from tests import solving
from tests.places import BOARDS
from tests.solver.game.deciding import assert_same, what_the_rules_say
from tests.solver.games.test_press_your_luck import boards, planes_of
from tests.solver.search.written_out import decides, over, written


def load(path, **options):
    return solving.load_game(solving.load_board(BOARDS / f"{path}.toml", **options))


def payoffs(graph, states):
    """What a graph has of states (n, fields)."""
    result = graph.values[graph.look_up(pack_all(graph.game.strides, np.ascontiguousarray(states)))]
    return np.asarray(result)


def check(graph):
    """Hold every state to the rules over the graph's own values; returns how many have a choice."""
    solved = np.flatnonzero((graph.best != OVER) & (graph.best != NEW))
    states = graph.states(solved)
    best, actors, margins = what_the_rules_say(
        graph.game, states, lambda query: payoffs(graph, query), graph.tolerance
    )
    acts = actors > 0
    assert_same(best[acts], graph.best[solved][acts])
    assert_same(actors, graph.actors[solved])
    np.testing.assert_allclose(graph.margins[solved], margins, rtol=0, atol=1e-12)
    others = np.setdiff1d(np.arange(graph.count), solved)
    assert np.isnan(graph.margins[others]).all() and not graph.actors[others].any()
    return int((~np.isnan(margins)).sum())


@pytest.mark.parametrize(
    ("path", "options", "words"),
    [
        ("press-your-luck/tiny", {}, {"scores": "0,1000,500", "earned": "1,2,1"}),
        (
            "press-your-luck/tiny",
            {"tied_pass": "next"},
            {"scores": "0,1000,500", "earned": "2,1,0"},
        ),
        (
            "press-your-luck/tiny",
            {"third_place_spins": False},
            {"scores": "3000,3000,2500", "earned": "2,1,0"},
        ),
        ("jackpot/tiny", {}, {}),
        ("skunk/tiny", {"goal": 12}, {}),
        ("pig/tiny", {}, {}),
        ("pig/rounds", {"rounds": 2, "cut": 20}, {}),
    ],
)
def test_every_state_of_a_search_says_what_the_rules_say(path, options, words):
    game = load(path, **options)
    graph = Graph(game)
    graph.solve((game.parse(words) if words else game.needed_start())[None])
    assert check(graph) > 3


@settings(max_examples=10)
@given(boards(), st.integers(0, 2**32 - 1))
def test_states_of_random_boards_say_what_the_rules_say(planes, seed):
    rng, graph = np.random.default_rng(seed), Graph(planes.game)
    tiers = planes.tiers()
    for tier in (tiers[i] for i in rng.integers(0, len(tiers), 4)):
        graph.solve(planes.states_at(tier, rng.integers(0, planes.rows(tier), 2)))
    check(graph)


def test_ties_go_to_the_earlier_action_and_cost_nothing():
    """The board on which spinning oneself and letting an opponent spin are often worth the same."""
    chances = {"whammy": "1/2", "1": "1/6", "2": "1/6", "3": "1/6"}
    planes = planes_of(chances, 4, 2, (True, "passer", 4))
    graph, tier = Graph(planes.game), Tier(2, (0, 0, 0))
    graph.solve(planes.states_at(tier, np.arange(0, planes.rows(tier), 3)))
    check(graph)
    tied = graph.margins <= graph.tolerance
    assert tied.sum() > 10 and (graph.margins[~np.isnan(graph.margins)] >= 0).all()


def test_where_both_choose_at_once_nobody_acts_alone():
    game = load("goofspiel/points", cards=3)
    graph = Graph(game)
    graph.solve(game.needed_start()[None])
    assert (graph.best == MIXED).any()
    assert np.isnan(graph.margins).all() and not graph.actors.any()


def test_known_payoffs_are_taken_and_solved_ones_stay():
    game = load("press-your-luck/tiny")
    root = game.parse({"scores": "1000,0,500", "earned": "1,1,0"})[None]
    full = Graph(game)
    full.solve(root)
    some = np.arange(1, full.count, 3)
    keys, known = full.keys_at(some), Graph(game)
    known.know(keys, full.values[some])
    top = known.solve(root)[0]
    assert known.margins[top] == full.margins[0] and known.actors[top] == full.actors[0]
    assert np.isnan(known.margins[known.look_up(keys)]).all()
    assert not known.actors[known.look_up(keys)].any()
    before = full.values.copy()
    full.know(keys, np.zeros_like(full.values[some]))
    np.testing.assert_array_equal(full.values, before)


def test_what_an_agent_has_fixed_nobody_decides():
    game = load("press-your-luck/tiny")
    root = game.parse({"scores": "0,1000,500", "earned": "0,2,0"})
    agents = deciders_of(game, ["always-pass"] * 3, root[None])
    chain = explore_profile(game, root, agents, 10_000)
    best = chain.solve().best
    fixed = best == MIXED
    assert fixed.any() and (chain.actors[fixed] >= 0).all()
    assert not np.isin(best[~chain.over], [OVER]).any()
    assert (best >= 0).any()  # those who must spin


def test_room_for_more_states_changes_nothing():
    """16,384 fit at first; the arrays are then made anew."""
    game = load("press-your-luck/1985-02", score_unit=1000)
    graph = Graph(game)
    graph.solve(game.parse({"scores": "0,2000,4000", "earned": "0,3,1"})[None])
    assert graph.count > 1 << 15
    check(graph)


def test_an_error_below_adds_up_and_opens_close_decisions():
    """Player 2 goes to player 1, who takes one of two payoffs known to a hundredth."""
    game = written(
        decides(1, [(1.0, 1)]), decides(0, [(1.0, 2)], [(1.0, 3)]),
        over(0.5, 0.25), over(0.5, 0.75),
    )  # fmt: skip
    for apart, off in ((0.001, 0.5), (0.1, 0.01)):
        graph = Graph(game)
        known = np.array([[0.5, 0.25], [0.5 + apart, 0.75]])
        graph.know(np.array([2, 3], np.uint64), known, 0.01)
        at = graph.solve(np.array([[0]]))
        assert off <= graph.errors[at[0]] < off + 0.02


@pytest.mark.parametrize("seat", [0, 1])
def test_each_sides_strategy_keeps_what_its_side_can_be_sure_of(seat):
    """Where the hands differ, and each side has to mix."""
    game = solving.load_game(solving.load_board(BOARDS / "goofspiel/points.toml", cards=5))
    words = {"mine": "1,2,3", "theirs": "1,2,4", "deck": "1,2,3", "upcard": "1"}
    edges = expand(game, game.parse(words).reshape(1, -1))
    graph = Graph(game)
    graph.solve(edges.children)
    q = evaluate(edges, graph.values[graph.look_up(pack_all(game.strides, edges.children))])
    (own,) = strategies_of(q, seat)
    matrix = q.values[:, 0].reshape(3, 3)
    value = matrix_game.solve(matrix[None]).values[0]
    sure = (own @ matrix).min() if seat == 0 else (matrix @ own).max()
    assert sure == pytest.approx(value, abs=1e-9)
    assert matrix.max(axis=0).min() > value + 0.01 > matrix.min(axis=1).max() + 0.02
