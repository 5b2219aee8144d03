"""Two actions that a table's precision can not tell apart are tied: everywhere within twice its
error and the game's tolerance, and nowhere beyond."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from luckbase.cluster.answers.actions import from_rules
from luckbase.cluster.answers.find import table_at
from luckbase.cluster.answers.table import Table
from luckbase.cluster.store import FORMAT
from luckbase.cluster.store.manifest import Head, Manifest
from luckbase.cluster.store.provenance import Origin
from luckbase.solver.search.bellman import evaluate
from luckbase.solver.search.expand import expand
from tests import solving
from tests.shared import answer_by_search
from tests.solver.search.written_out import board_of, decides, over, written

ERROR, TOLERANCE = 1e-3, 1e-4
WITHIN, BEYOND = 2 * ERROR + 0.9 * TOLERANCE, 2 * ERROR + 1.1 * TOLERANCE
A, B = 3, 4
"""The states that actions a and b lead to; what the other gets tells which was taken."""


def game_of():
    """From 0 there is one way, to 1; from there one, to 2, where player 1 takes a or b."""
    return written(
        decides(0, [(1.0, 1)]),
        decides(1, [(1.0, 2)]),
        decides(0, [(1.0, A)], [(1.0, B)]),
        decides(0, [(1.0, 5)]),
        decides(0, [(1.0, 5)]),
        over(0.0, 0.0),
        tolerance=TOLERANCE,
    )


class Held(Table):
    """A table that holds what actions a and b lead to, to within ERROR; b is better by `apart`."""

    error: Any = ERROR
    tolerance: Any = TOLERANCE + 2 * ERROR

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
    assert tied or as_exact(above.error, ERROR)


def as_exact(error, bound):
    """Whether an error covers the bound, and no more than its rounding up to float32 adds."""
    return bound <= error < bound * (1 + 1e-6)


@pytest.mark.parametrize("state", [0, 1])
def test_but_for_what_hangs_on_a_decision_that_the_table_does_not_tell(state):
    """Player 2 gets .25 or .75, whichever is taken two steps below."""
    said = answer_by_search(Held(WITHIN), np.array([state]), 100)
    assert said.value[1] == 0.25 and as_exact(said.error, 0.5 + ERROR)
    said = answer_by_search(Held(WITHIN), np.array([2]), 100)
    assert said.toss_up and as_exact(said.error, ERROR)  # it says which


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
    slack = 2 * ERROR + TOLERANCE
    said = from_rules(table.game, edges, q, taken, slack, q.values[taken], ERROR)
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
    rough = {name: replace(entry, error=ERROR) for name, entry in found.manifest.files.items()}
    found.manifest.files = rough
    with table_at(found.table, found.manifest) as table:
        assert table.ask({"at": "0"}).toss_up == tied
