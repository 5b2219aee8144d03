"""How far off payoffs may be that are worked out from others: wherever the right ones lie, what the
rules make of them is within the bounds."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from luckbase.cluster.answers.find import table_at
from luckbase.cluster.answers.moves import moves
from luckbase.solver.search.bellman import (
    ActionValues,
    chosen,
    error_of_actions,
    error_of_taken,
    undecided,
)
from luckbase.solver.search.expand import expand
from tests import solving
from tests.shared import answers_of
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


def roughly(result, part):
    """The table, a part of which is said to be off by `ERROR`."""
    manifest = result.manifest
    mine = {entry.name: replace(entry, error=ERROR) for entry in manifest.of_part(part)}
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
