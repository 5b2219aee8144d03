"""What to do stands in every state that a search has solved: best action, who acts, margin."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from luckbase import solver
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.game import Game
from luckbase.solver.games.press_your_luck.layout import Planes
from luckbase.solver.games.press_your_luck.tiers import Tier
from luckbase.solver.matrix_game import simplex as matrix_game
from luckbase.solver.policy.chain import explore_profile
from luckbase.solver.policy.evaluate import deciders_of
from luckbase.solver.search.bellman import (
    MIXED,
    NEW,
    OVER,
    UNDECIDED,
    choose_by_bounds,
    evaluate,
    strategies_of,
)
from luckbase.solver.search.expand import expand
from luckbase.solver.search.explore import Explorer
from luckbase.solver.search.game_graph import Graph
from luckbase.solver.search.keys import pack_all, unpack_all
from tests.solver.game.deciding import assert_same, what_the_rules_say
from tests.solver.games.test_press_your_luck import boards, planes_of

BOARDS = Path(__file__).parents[3] / "boards"


def load(path: str, **options: object) -> Game:
    return solver.load_game(solver.load_board(BOARDS / f"{path}.toml", **options))


def payoffs(graph: Graph, states: Ints) -> Floats:
    """What a graph has of states (n, fields)."""
    found = graph.values[graph.look_up(pack_all(graph.game.strides, np.ascontiguousarray(states)))]
    return np.asarray(found)


def check(graph: Graph) -> int:
    """Hold every state to the rules over the graph's own values; returns how many have a choice."""
    solved = np.flatnonzero((graph.best != OVER) & (graph.best != NEW))
    states = graph.states(solved)
    best, actors, margins = what_the_rules_say(
        graph.game, states, lambda asked: payoffs(graph, asked), graph.tolerance
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
def test_every_state_of_a_search_says_what_the_rules_say(
    path: str, options: dict[str, object], words: dict[str, str]
) -> None:
    game = load(path, **options)
    graph = Graph(game)
    graph.solve((game.parse(words) if words else game.needed_start())[None])
    assert check(graph) > 3


@settings(max_examples=10)
@given(boards(), st.integers(0, 2**32 - 1))
def test_states_of_random_boards_say_what_the_rules_say(planes: Planes, seed: int) -> None:
    rng, graph = np.random.default_rng(seed), Graph(planes.game)
    tiers = planes.tiers()
    for tier in (tiers[i] for i in rng.integers(0, len(tiers), 4)):
        graph.solve(planes.states_at(tier, rng.integers(0, planes.rows(tier), 2)))
    check(graph)


def test_ties_go_to_the_earlier_action_and_cost_nothing() -> None:
    """The board on which spinning oneself and letting an opponent spin are often worth the same."""
    chances = {"whammy": "1/2", "1": "1/6", "2": "1/6", "3": "1/6"}
    planes = planes_of(chances, 4, 2, (True, "passer", 4))
    graph, tier = Graph(planes.game), Tier(2, (0, 0, 0))
    graph.solve(planes.states_at(tier, np.arange(0, planes.rows(tier), 3)))
    check(graph)
    tied = graph.margins <= graph.tolerance
    assert tied.sum() > 10 and (graph.margins[~np.isnan(graph.margins)] >= 0).all()


def test_where_both_choose_at_once_nobody_acts_alone() -> None:
    game = load("goofspiel/points", cards=3)
    graph = Graph(game)
    graph.solve(game.needed_start()[None])
    assert (graph.best == MIXED).any()
    assert np.isnan(graph.margins).all() and not graph.actors.any()


def test_a_margin_between_bounds_is_what_an_action_is_sure_to_be_ahead() -> None:
    game = load("press-your-luck/tiny")
    words = {"scores": "0,1000,500", "earned": "1,2,1"}
    cycle = {"scores": "3000,2500,3000", "earned": "2,1,1"}
    root, called = np.array([game.parse(words), game.parse(cycle)]), 0
    for depth in (2, 4, 6):
        explorer = Explorer(game, root)
        for _ in range(depth):
            explorer.deeper()
        last = explorer.keys[explorer.first[-2] :]
        leaves = last[~expand(game, unpack_all(game.strides, last)).terminal]
        graph = Graph(game, bounds=True)
        graph.know(leaves, np.tile([0.0, 0, 0, 1, 1, 1], (len(leaves), 1)))
        graph.solve(root)
        at = np.flatnonzero((graph.best >= 0) | (graph.best == UNDECIDED))
        edges = expand(game, graph.states(at))
        whole = payoffs(graph, edges.children)
        low, high = (evaluate(edges, whole[:, half]) for half in (slice(0, 3), slice(3, 6)))
        for x, number in enumerate(at):
            here, actor = slice(int(low.first[x]), int(low.first[x + 1])), int(edges.actors[x])
            assert graph.actors[number] == actor + 1
            actions = low.actions[here].tolist()
            if len(actions) == 1 or graph.best[number] == UNDECIDED:
                assert np.isnan(graph.margins[number])
                continue
            taken = actions.index(graph.best[number])
            others = np.delete(high.values[here, actor], taken)
            sure = max(low.values[here][taken, actor] - others.max(), 0.0)
            assert graph.margins[number] == pytest.approx(sure, abs=1e-13)
            called += sure > 0
    assert called > 0


def test_known_payoffs_are_taken_and_solved_ones_stay() -> None:
    game = load("press-your-luck/tiny")
    root = game.parse({"scores": "1000,0,500", "earned": "1,1,0"})[None]
    whole = Graph(game)
    whole.solve(root)
    some = np.arange(1, whole.count, 3)
    keys, known = whole.keys_at(some), Graph(game)
    known.know(keys, whole.values[some])
    top = known.solve(root)[0]
    assert known.margins[top] == whole.margins[0] and known.actors[top] == whole.actors[0]
    assert np.isnan(known.margins[known.look_up(keys)]).all()
    assert not known.actors[known.look_up(keys)].any()
    before = whole.values.copy()
    whole.know(keys, np.zeros_like(whole.values[some]))
    np.testing.assert_array_equal(whole.values, before)


def test_what_an_agent_has_fixed_nobody_decides() -> None:
    game = load("press-your-luck/tiny")
    root = game.parse({"scores": "0,1000,500", "earned": "0,2,0"})
    agents = deciders_of(game, ["always-pass"] * 3, root[None])
    chain = explore_profile(game, root, agents, 10_000)
    best = chain.solve().best
    fixed = best == MIXED
    assert fixed.any() and (chain.actors[fixed] >= 0).all()
    assert not np.isin(best[~chain.over], [OVER, UNDECIDED]).any()
    assert (best >= 0).any()  # those who must spin


def test_room_for_more_states_changes_nothing() -> None:
    """16,384 fit at first; the arrays are then made anew."""
    game = load("press-your-luck/1985-02", score_unit=1000)
    graph = Graph(game)
    graph.solve(game.parse({"scores": "0,2000,4000", "earned": "0,3,1"})[None])
    assert graph.count > 1 << 15
    check(graph)


@pytest.mark.parametrize("path", ["pig/tiny", "skunk/tiny"])
def test_on_a_cycle_bounds_that_meet_leave_the_same_margins(path: str) -> None:
    game = load(path, goal=12)
    exact, bounded = Graph(game), Graph(game, bounds=True)
    for graph in (exact, bounded):
        graph.solve(game.needed_start()[None])
    assert bounded.loops > 0
    at = bounded.look_up(exact.keys)
    called = bounded.best[at] >= 0
    assert called.sum() > 50
    assert (bounded.actors[at] == exact.actors).all()
    np.testing.assert_allclose(
        bounded.margins[at][called], exact.margins[called], rtol=0, atol=1e-11
    )
    assert np.isnan(bounded.margins[at][~called]).all()


def test_bounds_that_meet_are_the_payoffs_of_a_game_that_pays_on_the_way() -> None:
    game = load("goofspiel/points", cards=3)
    exact, bounded = Graph(game), Graph(game, bounds=True)
    for graph in (exact, bounded):
        graph.solve(game.needed_start()[None])
    values = np.tile(exact.values[: exact.count], 2)
    np.testing.assert_allclose(bounded.values[: exact.count], values, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("upper", "sure", "left"),
    [
        ((0.4, 0.6), 1, 1), ((0.495, 0.6), 1, -1),  # an earlier one that is level may be taken
        ((0.6, 0.505), 0, 0), ((0.6, 0.52), 0, -1),  # a later one only if better by more
    ],
)  # fmt: skip
def test_bounds_leave_the_actions_that_the_rule_for_ties_may_take(
    upper: tuple[float, float], sure: int, left: int
) -> None:
    """One player; the action of the greatest lower bound, .5, is `sure`; the tolerance is .01."""
    lower = [0.5 if action == sure else 0.3 for action in range(2)]
    q, out = np.column_stack([lower, upper]), np.empty(2)
    assert choose_by_bounds(2, sure, 0, 0.01, q, out) == left


@pytest.mark.parametrize("seat", [0, 1])
def test_each_sides_strategy_keeps_what_its_side_can_be_sure_of(seat: int) -> None:
    """Where the hands differ, and each side has to mix."""
    game = solver.load_game(solver.load_board(BOARDS / "goofspiel/points.toml", cards=5))
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
