"""A table of decisions: what it says is what the table of payoffs says, and what it lacks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import luckbase
from luckbase.cluster.table.ledger import DECISIONS, RUNS, TIERS
from luckbase.cluster.table.table import StoredTable, tiers_in_memory
from luckbase.solver import load_layout
from luckbase.solver.board.model import Board
from luckbase.solver.game.arrays import Ints
from tests.places import BOARDS, IN_MEMORY

FEBRUARY = BOARDS / "press-your-luck" / "1985-02.toml"


def coarse(frontier: int = 3) -> Board:
    """A board of which a solve takes a second."""
    return luckbase.load_board(FEBRUARY, score_unit=1000, score_cap=3000, frontier=frontier)


@pytest.fixture(scope="module")
def solved(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoredTable]:
    """The coarse board's decisions, with margins; open."""
    folder = tmp_path_factory.mktemp("decisions")
    done = luckbase.solve(coarse(), store="decisions", margin=True, results=folder)
    with luckbase.open(done.table) as table:
        yield table


@pytest.fixture(scope="module")
def every_state() -> Ints:
    """All states of it."""
    with tiers_in_memory(load_layout(coarse())) as full:
        return np.concatenate([states for part in full.parts for states in part.all_states()])


def test_every_decision_is_that_of_the_table_of_payoffs(
    solved: StoredTable, every_state: Ints
) -> None:
    with tiers_in_memory(load_layout(coarse())) as full:
        assert solved.stored_best(every_state) == full.stored_best(every_state)
        decided = solved.decided
        assert decided is not None
        assert decided.stored_best(every_state) == full.stored_best(every_state)
        assert decided.rows == len(every_state) == full.rows
        _, margins, _ = full.best_of(every_state)
    codes, there = decided.codes(every_state)
    assert there.all()
    ends = [0.0, 0.001, 0.005, 0.01, 0.02, 0.05, 1.1]
    classes = codes >> 4
    assert (np.isnan(margins) == (classes == 0)).all()
    choice = classes > 0
    near = 1e-6  # the margins of `full` are from rounded payoffs
    low, high = np.array(ends)[classes[choice] - 1], np.array(ends)[classes[choice]]
    assert ((margins[choice] >= low - near) & (margins[choice] < high + near)).all()
    assert len(np.unique(classes)) == 7
