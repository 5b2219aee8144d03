"""What to do stands in every row of a full table and in every state that a search has solved: best
action, who acts, margin; worked out a second time from the rules."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from luckbase.solver import dense
from luckbase.solver.check import _in_full, check_game
from luckbase.solver.game.rules import SIMULTANEOUS, TERMINAL
from luckbase.solver.games.press_your_luck.tiers import Tier
from luckbase.solver.matrix_games import simplex as matrix_game
from luckbase.solver.policies.chain import explore_profile
from luckbase.solver.policies.evaluate import deciders_of
from luckbase.solver.search.bellman import MIXED, NEW, OVER, chosen, evaluate, strategies_of
from luckbase.solver.search.expand import expand
from luckbase.solver.search.game_graph import Graph
from luckbase.solver.search.keys import pack_all
from tests import solving
from tests.places import BOARDS
from tests.solver.games.press_your_luck import InMemory
from tests.solver.games.test_press_your_luck import OPTIONS, boards, planes_of
from tests.solver.search.written_out import decides, over, written


def load(path, **options):
    return solving.load_game(solving.load_board(BOARDS / f"{path}.toml", **options))


def laid_out(path, **options):
    return solving.load_layout(solving.load_board(BOARDS / f"{path}.toml", **options))


def what_the_rules_say(game, states, look, tolerance=None):
    """By one step of the rules, every state on its own, and `solver.search.bellman.chosen`;
    tolerance: the game's if not said."""
    tolerance = game.tie_tolerance if tolerance is None else tolerance
    edges = expand(game, states)
    q = evaluate(edges, look(edges.children))
    chosen_at = chosen(q, edges.actors, tolerance) - q.first[:-1]
    best, margin = np.full(len(states), -1), np.full(len(states), np.nan)
    acts = (edges.actors >= 0) & (edges.kinds != TERMINAL) & (edges.kinds != SIMULTANEOUS)
    for x in np.flatnonzero(acts):
        actions = q.values[q.first[x] : q.first[x + 1]]
        actor = int(edges.actors[x])
        taken = int(chosen_at[x])
        best[x] = q.actions[q.first[x] + taken]
        if len(actions) > 1:
            others = np.delete(actions[:, actor], taken)
            margin[x] = max(actions[taken, actor] - others.max(), 0.0)
    return best, np.where(acts, edges.actors + 1, 0).astype(np.int8), margin


def assert_same(one, other):
    """Equal whole numbers (n,)."""
    assert one.tolist() == other.tolist()


def ties_in(layout):
    """In how many rows the best two actions are tied, and rounding alone would decide, where the
    kernel has the best action of every row."""
    noted, found = dense.InMemory(layout, best=True), np.zeros(2, int)
    look = InMemory(layout, noted.payoffs).look_up
    for tier in layout.tiers():
        states = layout.states_at(tier, np.arange(layout.rows(tier)))
        best, _, margin = what_the_rules_say(layout.game, states, look)
        assert_same(best, noted.best[tier])
        exact, _, _ = what_the_rules_say(layout.game, states, look, tolerance=0.0)
        found += (margin <= layout.game.tie_tolerance).sum(), (best != exact).sum()
    return found


# Full tables, every row of which `check_game` holds to the rules: the best action, who acts


UP = [{"scores": (0, 1, 2), "earned": (0, 1, 0)}]


@pytest.mark.parametrize("tied_pass", ["passer", "next"])
def test_ties_go_to_the_earlier_action_and_not_with_the_last_bits(tied_pass):
    """A whammy is as likely as money here, so that spinning oneself and letting an opponent spin
    are often worth the same; rounding alone would decide a hundred."""
    layout = planes_of(
        {"whammy": "1/2", "1": "1/6", "2": "1/6", "3": "1/6"}, 4, 2, (True, tied_pass, 2)
    )  # fmt: skip
    assert check_game(layout.game, UP, most=10)
    ties, by_rounding = ties_in(layout)
    assert ties > 500 and by_rounding > 100
    graph, tier = Graph(layout.game), Tier(2, (0, 0, 0))
    graph.solve(layout.states_at(tier, np.arange(0, layout.rows(tier), 3)))
    check(graph)
    tied = graph.margins <= graph.tolerance
    assert tied.sum() > 10 and (graph.margins[~np.isnan(graph.margins)] >= 0).all()


@pytest.mark.parametrize("options", OPTIONS)
def test_at_the_cap_too_where_loops_are_cut(options):
    """Two thirds of these rows have somebody at the cap, and all scores are level often."""
    chances = {"whammy": "1/5", "1": "1/4", "2 + spin": "3/10", "1 + spin": "1/4"}
    assert check_game(planes_of(chances, 2, 2, options).game, UP, most=10)


@settings(max_examples=10)
@given(boards(), st.integers(0, 2**32 - 1))
def test_rows_and_states_of_random_boards_say_what_the_rules_say(layout, seed):
    graph, rng, tiers = Graph(layout.game), np.random.default_rng(seed), layout.tiers()
    check_game(layout.game, UP, most=10, rows=8_000)
    for tier in (tiers[i] for i in rng.integers(0, len(tiers), 4)):
        graph.solve(layout.states_at(tier, rng.integers(0, layout.rows(tier), 2)))
    check(graph)


ROLLS = {"goal": 12, "dice": 2, "sides": 3, "all_ones": "turn", "count": "rolls"}


@pytest.mark.parametrize(
    ("path", "options", "ties"),
    [
        ("skunk/tiny", {}, 0),
        ("skunk/tiny", {"goal": 27, "first_roll_safe": True}, 0),
        ("skunk/tiny", {"goal": 23, "dice": 1, "all_ones": "turn"}, 0),
        ("skunk/tiny", ROLLS, 8),  # of which rounding would decide six
        ("pig/tiny", {}, 0),
        ("pig/race", {"goal": 24}, 0),
        ("pig/piglet", {"goal": 7}, 0),
        ("pig/rounds", {"rounds": 2, "cut": 20}, 190),
        ("pig/rounds", {"rounds": 3, "cut": 20, "objective": "difference"}, 190),
        ("pig/rounds", {"rounds": 2, "cut": 25, "first_roll_forced": True, "draw": "second"}, 1),
    ],
)
def test_every_row_of_a_small_dice_game_says_what_the_rules_say(path, options, ties):
    """`ties`: rows at the least in which both actions are worth the same."""
    layout = laid_out(path, **options)
    assert check_game(layout.game, most=100)
    assert ties_in(layout)[0] >= ties


@pytest.mark.parametrize("path", ["press-your-luck/tiny", "skunk/tiny", "pig/rounds"])
def test_payoffs_are_the_same_bits_with_their_best_actions(path):
    layout = laid_out(path, **({"cut": 30} if path == "pig/rounds" else {}))
    plain, noted = dense.InMemory(layout), dense.InMemory(layout, best=True)
    for tier, out in plain.payoffs.items():
        assert out.tobytes() == noted.payoffs[tier].tobytes()


@settings(max_examples=20)
@given(st.sampled_from(["press-your-luck/tiny", "skunk/tiny", "pig/rounds"]), st.data())
def test_who_acts_in_some_rows_is_who_acts_in_all(path, data):
    layout = laid_out(path)
    tier = data.draw(st.sampled_from(list(layout.tiers())))
    block = layout.block_rows(tier)
    bounds = st.integers(0, layout.rows(tier) // block)
    start, stop = sorted((data.draw(bounds) * block, data.draw(bounds) * block))
    part = layout.acting_rows(tier, start, stop)
    assert part.dtype == np.int8 and len(part) == stop - start
    assert (part == layout.acting_rows(tier, 0, layout.rows(tier))[start:stop]).all()


@settings(max_examples=20)
@given(st.sampled_from(["press-your-luck/tiny", "skunk/tiny", "goofspiel/points"]), st.data())
def test_columns_of_some_rows_are_those_of_all(path, data):
    layout = laid_out(path, **({"cards": 5} if path == "goofspiel/points" else {}))
    tier = data.draw(st.sampled_from(list(layout.tiers())))
    rows, block = layout.rows(tier), layout.block_rows(tier)
    bounds = st.integers(0, rows // block)
    start, stop = sorted((data.draw(bounds) * block, data.draw(bounds) * block))
    stored = np.random.default_rng(1).random(layout.shape(tier)) / 2
    all_, part = (
        [*layout.payoff_rows(tier, stored, *span), *map(_in_full, columns.values())]
        for span in ((0, rows), (start, stop))
        for columns in [layout.state_rows(tier, *span)]
    )
    assert [column[start:stop].tolist() for column in all_] == [column.tolist() for column in part]


# Searches


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
        ("press-your-luck/tiny", {"tied_pass": "next"},
         {"scores": "0,1000,500", "earned": "2,1,0"}),
        ("press-your-luck/tiny", {"third_place_spins": False},
         {"scores": "3000,3000,2500", "earned": "2,1,0"}),
        ("jackpot/tiny", {}, {}), ("skunk/tiny", {"goal": 12}, {}), ("pig/tiny", {}, {}),
        ("pig/rounds", {"rounds": 2, "cut": 20}, {}),
    ],
)  # fmt: skip
def test_every_state_of_a_search_says_what_the_rules_say(path, options, words):
    game = load(path, **options)
    graph = Graph(game)
    graph.solve((game.parse(words) if words else game.needed_start())[None])
    assert check(graph) > 3


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
    assert known.count <= full.count and known.edges < full.edges
    assert known.values[top].tobytes() == full.values[0].tobytes()
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
    game = load("goofspiel/points", cards=5)
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
