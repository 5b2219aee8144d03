"""How far off payoffs may be that are worked out from others, what a stored error is made of, and
which actions a table's precision cannot tell apart."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from luckbase.cluster.answers.actions import from_rules
from luckbase.cluster.answers.find import table_at
from luckbase.cluster.answers.moves import moves
from luckbase.cluster.answers.table import Table
from luckbase.cluster.store import FORMAT
from luckbase.cluster.store.manifest import Head, Manifest
from luckbase.cluster.store.provenance import Origin
from luckbase.solver.game.arrays import FLOAT64_ERROR
from luckbase.solver.games.goofspiel.full_table import Layers
from luckbase.solver.matrix_games import simplex as matrix_game
from luckbase.solver.search.bellman import (
    ActionValues,
    chosen,
    error_of_actions,
    error_of_taken,
    evaluate,
    undecided,
)
from luckbase.solver.search.expand import expand
from luckbase.solver.search.game_graph import Graph
from tests import solving
from tests.games.dimes import Dimes
from tests.places import BOARDS
from tests.shared import answer_by_search, answers_of
from tests.solver.search.written_out import board_of, decides, over, written

TIE = 1e-3
ERROR = 0.01
UNITS = st.integers(0, 40).map(lambda k: k / 200)


@given(data=st.data())
def test_the_payoffs_of_whichever_action_is_best_are_within_the_bound(data):
    k = data.draw(st.integers(1, 4))
    known = np.array(data.draw(st.lists(st.tuples(UNITS, UNITS), min_size=k, max_size=k)))
    errors = np.array(data.draw(st.lists(UNITS, min_size=k, max_size=k)))
    moved = data.draw(st.lists(st.tuples(*[st.floats(-1, 1)] * 2), min_size=k, max_size=k))
    right = known + np.array(moved) * errors[:, None]
    actor = np.array([data.draw(st.integers(0, 1))])
    first, actions = np.array([0, k]), np.arange(k)
    mine = ActionValues(np.zeros(k, np.int64), actions, known, first)
    theirs = replace(mine, values=right)
    tolerance = TIE + 2 * errors.max()
    taken = chosen(mine, actor, tolerance)
    best = chosen(theirs, actor, TIE)
    # Payoffs that tell all decisions are as good as right ones: those are tied by the rules.
    if errors.max() > TIE:
        bound = error_of_taken(mine, actor, errors, taken, TIE)
        assert np.abs(known[taken] - right[best]).max() <= bound[0] + 1e-12
        assert best == taken or undecided(mine, actor, errors, taken, TIE)[0]


def test_an_action_that_exact_payoffs_tell_counts_beside_one_that_is_not_told():
    """The second is the best one by the rules, and all are level as far as the third one tells."""
    values = np.array([[0.1, 0.0], [0.105, 0.2], [0.1, 0.0]])
    q = ActionValues(np.zeros(3, np.int64), np.arange(3), values, np.array([0, 3]))
    which = np.array([0])
    taken = chosen(q, which, TIE + 2 * ERROR)
    assert taken == [0] and chosen(q, which, TIE) == [1]
    for third in (0.0, ERROR):
        each = np.array([0.0, 0.0, third])
        assert error_of_taken(q, which, each, taken, TIE)[0] == pytest.approx(0.2)
        assert undecided(q, which, each, taken, TIE)[0]


def test_an_action_that_is_worse_for_sure_does_not_count():
    values = np.array([[0.5, 0.1], [0.5 - 2 * ERROR - TIE - 1e-6, 0.9]])
    q = ActionValues(np.zeros(2, np.int64), np.arange(2), values, np.array([0, 2]))
    which, each = np.array([0]), np.full(2, ERROR)
    assert error_of_taken(q, which, each, which, TIE)[0] == ERROR
    values[1, 0] += 2e-6
    assert error_of_taken(q, which, each, which, TIE)[0] == pytest.approx(0.8 + ERROR)


def test_ties_by_the_rules_are_told():
    values = np.array([[0.5, 0.1], [0.5, 0.9]])
    q = ActionValues(np.zeros(2, np.int64), np.arange(2), values, np.array([0, 2]))
    which = np.array([0])
    assert error_of_taken(q, which, np.full(2, TIE), which, TIE)[0] == TIE


def test_what_an_action_pays_is_off_by_the_mean_of_its_outcomes():
    game = written(
        decides(0, [(0.25, 1), (0.75, 2)], [(1.0, 1)]),
        *[decides(0, [(1.0, 3)])] * 2, over(0.0, 1.0),
    )  # fmt: skip
    edges = expand(game, np.array([[0]]))
    result = error_of_actions(edges, np.array([0.5, 0.1, 0.5]))
    assert result.tolist() == pytest.approx([0.2, 0.5])
    third, rough = np.full(3, 1 / 3), replace(edges, weights=np.array([0.1, 0.9 + 1e-9, 1.0]))
    assert error_of_actions(rough, third).tolist() == [1 / 3] * 2  # not more than all of them are


def roughly(result, part, error=ERROR):
    """The table, a part of which is said to be off by so much."""
    manifest = result.manifest
    mine = {entry.name: replace(entry, error=error) for entry in manifest.of_part(part)}
    manifest.files = manifest.files | mine
    return table_at(result.table, manifest)


A, B = 3, 4


@pytest.mark.parametrize(("apart", "further"), [(2 * ERROR, 0.5), (3 * ERROR, 0.0)])
def test_one_step_above_what_is_held_a_decision_may_not_be_told(apart, further, tmp_path):
    """From 1 there is one way, to 2, where player 1 takes A or B; these two are held."""
    board = board_of(
        decides(0, [(1.0, 1)]), decides(1, [(1.0, 2)]), decides(0, [(1.0, A)], [(1.0, B)]),
        decides(0, [(1.0, 5)]), decides(0, [(1.0, 6)]),
        over(0.5, 0.25), over(0.5 + apart, 0.75), tolerance=TIE,
    )  # fmt: skip
    result = solving.solve_below(board, np.array([[A], [B]]), results=tmp_path, workers=1)
    with roughly(result, result.goal.part) as table:
        query = {"at": "1"}
        (answer,) = answers_of(table, np.array([[1]]))
        for each in (table.ask(query), answer, moves(table, query).answer):
            assert each.source == "table"
            assert each.error == pytest.approx(ERROR + further)
        assert table.ask({"at": "2"}).error == ERROR  # it says which
        assert table.errors(np.array([[5]])).tolist() == [0.0]


def test_a_decision_that_hangs_on_one_that_was_not_told_is_a_toss_up(tmp_path):
    """At 0 player 2 takes 1, or 2, where player 1 takes C, or D, which gives player 2 far more."""
    a, c, d = 3, 4, 5
    board = board_of(
        decides(1, [(1.0, 1)], [(1.0, 2)]), decides(0, [(1.0, a)]),
        decides(0, [(1.0, c)], [(1.0, d)]),
        *[decides(0, [(1.0, 3 + state)]) for state in (a, c, d)],
        over(0.9, 0.4), over(0.0, 0.25), over(2 * ERROR, 0.75), tolerance=TIE,
    )  # fmt: skip
    result = solving.solve_below(board, np.array([[a], [c], [d]]), results=tmp_path, workers=1)
    with roughly(result, result.goal.part) as table:
        (answer,) = answers_of(table, np.array([[0]]))
        for each in (table.ask({"at": "0"}), answer, moves(table, {"at": "0"}).answer):
            assert each.value == (0.9, 0.4) and each.toss_up
            assert each.error == pytest.approx(0.5 + ERROR)
        assert not table.ask({"at": "1"}).toss_up


def test_where_one_part_is_exact_what_another_does_not_tell_counts(tmp_path):
    """1 is not held; there player 1 takes one of 2 and 3, which are held exactly, and are closer
    than the other part, with 4, tells."""
    apart = 1.3 * ERROR
    board = board_of(
        decides(1, [(1.0, 1)]), decides(0, [(1.0, 2)], [(1.0, 3)]),
        decides(0, [(1.0, 5)]), decides(0, [(1.0, 6)]), decides(0, [(1.0, 5)]),
        over(0.5, 0.25), over(0.5 + apart, 0.75), tolerance=TIE,
    )  # fmt: skip
    solving.solve_below(board, np.array([[2], [3]]), results=tmp_path, workers=1)
    rough = solving.solve_below(board, np.array([[4]]), results=tmp_path, workers=1)
    with roughly(rough, rough.goal.part) as table:
        assert {part.error == ERROR for part in table.parts} == {True, False}
        assert table.errors(np.array([[1]]))[0] == pytest.approx(0.5)
        assert table.ask({"at": "0"}).error == pytest.approx(0.5)


# --- what a stored error is made of: without each part it is smaller than the one that was made ---


RUNGS = 20
LADDER = [
    decides(0, [(0.75, rung), (0.25, rung + 1)], [(0.875, rung), (0.125, rung + 1)])
    for rung in range(RUNGS)
]  # every rung is a cycle of its own, and whoever climbs for ever is at the top: 1
LADDER.append(over(1.0))


def test_every_step_adds_to_the_error():
    graph = Graph(written(*LADDER, players=1))
    graph.solve(np.array([[0]]))
    rungs = graph.errors[graph.look_up(np.arange(RUNGS, dtype=np.uint64))]
    assert (np.diff(rungs) < 0).all() and rungs[-1] > 0
    assert 1.0 - graph.values[0, 0] <= graph.error < 1e-14


def test_the_error_of_a_table_grows_with_the_length_of_the_game(tmp_path):
    """Ten cents a round: float64 is 3e-7 off after 100,000 rounds, and the table says so."""
    board = Dimes(game="dimes", name="dimes", rules=Dimes.Options(rounds=100_000))
    result = solving.solve_below(board, results=tmp_path, workers=1)
    with solving.open_table(result.table) as table:
        created = abs(Fraction(float(table.probe(np.array([[100_000]]))[0, 0])) - 10_000)
        assert 1e-8 < created <= table.error < 1e-4


def test_what_float64_sums_lose_is_in_a_search_tables_error(tmp_path):
    board = board_of(decides(0, [(0.5, 1), (0.5, 2)]), over(1.0), over(0.0), players=1)
    result = solving.solve_below(board, results=tmp_path, workers=1)
    assert result.manifest.error() == FLOAT64_ERROR > 0


def test_no_payoff_is_said_to_be_off_by_more_than_the_game_allows(tmp_path, monkeypatch):
    monkeypatch.setattr(Graph, "error", 5.0)
    result = solving.solve_below(board_of(*LADDER, players=1), results=tmp_path, workers=1)
    assert result.manifest.error() == 1.0


def solved(board):
    """A board of five cards in memory: the payoffs of each layer."""
    layers = solving.load_layout(solving.load_board(BOARDS / f"goofspiel/{board}.toml", cards=5))
    assert isinstance(layers, Layers)
    payoffs = {}
    for tier in layers.tiers():
        payoffs[tier] = np.empty(layers.shape(tier))
        layers.solve_tier(tier, payoffs[tier], payoffs.__getitem__, lambda: False)
    return layers, payoffs


@pytest.mark.parametrize(
    ("board", "tier"), [("points", 2), ("points", 3), ("points", 4), ("win", 2), ("win", 3)]
)
def test_a_layers_error_holds_what_the_layers_below_may_be_off_by(board, tier):
    """Those below are moved by all that they may be off by, a gap a layer: so is this one, where
    one hand beats the other whatever is bid."""
    layers, payoffs = solved(board)
    out, off = np.empty(layers.shape(tier)), (tier - 1) * layers.layer_error
    below = payoffs[tier - 1] + off
    error = layers.solve_tier(tier, out, lambda _: below, lambda: False)
    moved = np.abs(out - payoffs[tier]).max()
    assert moved == pytest.approx(off, rel=0.01)
    assert moved <= error


def test_a_matrix_games_gap_is_in_an_answers_error(tmp_path, monkeypatch):
    board = solving.load_board(BOARDS / "goofspiel/points.toml", cards=3)
    table = solving.solve_board(board, results=tmp_path).table
    solve = matrix_game.solve

    def with_a_gap(games):
        result = solve(games)
        result.gaps[:] = 0.25
        return result

    monkeypatch.setattr(matrix_game, "solve", with_a_gap)
    with solving.open_table(table) as opened:
        words = {"mine": "1,2,3", "theirs": "1,2,3", "deck": "1,2,3", "upcard": "2"}
        assert opened.ask(words).error == opened.error + 0.25


# --- ties: within twice a table's error and the game's tolerance, and nowhere beyond -------------


HELD, TOLERANCE = 1e-3, 1e-4
WITHIN, BEYOND = 2 * HELD + 0.9 * TOLERANCE, 2 * HELD + 1.1 * TOLERANCE


def game_of():
    """From 0 there is one way, to 1; from there one, to 2, where player 1 takes a or b."""
    return written(
        decides(0, [(1.0, 1)]), decides(1, [(1.0, 2)]), decides(0, [(1.0, A)], [(1.0, B)]),
        *[decides(0, [(1.0, 5)])] * 2, over(0.0, 0.0), tolerance=TOLERANCE,
    )  # fmt: skip


class Held(Table):
    """A table that holds what actions a and b lead to, to within HELD; b is better by `apart`."""

    error: Any = HELD
    tolerance: Any = TOLERANCE + 2 * HELD

    def errors(self, states):
        return np.full(len(states), self.error)

    def __init__(self, apart):
        head = Head(FORMAT, "written", "held", "", {}, 0)
        super().__init__(game_of(), (), Path("memory"), Manifest(head), "held")
        self.origin = Origin("held")
        self.payoffs = {A: (0.5, 0.25), B: (0.5 + apart, 0.75)}

    def get_many(self, states):
        found = [self.payoffs.get(int(x), (0.0, 0.0)) for x in states[:, 0]]
        return np.array(found).reshape(-1, 2), self.holds(states)

    def owners(self, states, *, paid=False):
        return np.isin(states[:, 0], (A, B)).astype(int) - 1


@pytest.mark.parametrize(("apart", "tied"), [(WITHIN, True), (BEYOND, False)])
def test_above_the_frontier_actions_within_the_slack_are_a_toss_up_and_the_earlier_is_best(
    apart, tied
):
    said, best = answer_by_search(Held(apart), np.array([2]), 100), "a" if tied else "b"
    assert (said.toss_up, said.best) == (tied, best)
    assert said.value == ((0.5, 0.25) if tied else (0.5 + apart, 0.75))
    above = answer_by_search(Held(apart), np.array([0]), 100)  # decided with the same slack
    assert above.value[1] == said.value[1]
    assert tied or as_exact(above.error, HELD)


def as_exact(error, bound):
    """Whether an error covers the bound, and no more than its rounding up to float32 adds."""
    return bound <= error < bound * (1 + 1e-6)


@pytest.mark.parametrize("state", [0, 1])
def test_but_for_what_hangs_on_a_decision_that_the_table_does_not_tell(state):
    """Player 2 gets .25 or .75, whichever is taken two steps below."""
    said = answer_by_search(Held(WITHIN), np.array([state]), 100)
    assert said.value[1] == 0.25 and as_exact(said.error, 0.5 + HELD)
    said = answer_by_search(Held(WITHIN), np.array([2]), 100)
    assert said.toss_up and as_exact(said.error, HELD)  # it says which


def test_a_table_whose_error_is_below_the_slack_of_ties_tells_them(monkeypatch):
    monkeypatch.setattr(Held, "error", TOLERANCE)
    monkeypatch.setattr(Held, "tolerance", 3 * TOLERANCE)
    said = answer_by_search(Held(2 * TOLERANCE), np.array([0]), 100)
    assert as_exact(said.error, 3 * TOLERANCE)  # with what the one who acts gives up by the tie


@pytest.mark.parametrize(("apart", "tied"), [(WITHIN, True), (BEYOND, False)])
@pytest.mark.parametrize("stored", [0, 1])
def test_a_full_table_says_the_action_that_it_stores_and_a_toss_up_within_the_slack(
    apart, tied, stored
):
    """The solve decided in float64; as stored another one may be a little better."""
    table = Held(apart)
    edges = expand(table.game, np.array([[2]]))
    q = evaluate(edges, table.get_many(edges.children)[0])
    taken = np.array([stored])
    slack = 2 * HELD + TOLERANCE
    said = from_rules(table.game, edges, q, taken, slack, q.values[taken], HELD)
    assert said.best[0] == stored
    assert bool(said.ties[0]) == tied
    assert said.margins[0] == pytest.approx(apart if stored else 0.0)


@pytest.mark.parametrize(("apart", "tied"), [(WITHIN, True), (BEYOND, False)])
def test_a_search_table_says_toss_up_within_its_slack_and_not_beyond(apart, tied, tmp_path):
    board = board_of(
        decides(0, [(1.0, 1)], [(1.0, 2)]), over(0.5, 0.0), over(0.5 + apart, 0.0),
        tolerance=TOLERANCE,
    )  # fmt: skip
    found = solving.solve_below(board, results=tmp_path, workers=1)
    with roughly(found, found.goal.part, HELD) as table:
        assert table.ask({"at": "0"}).toss_up == tied
