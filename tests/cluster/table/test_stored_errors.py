"""What a stored error is made of: each test is of a part without which the error that is stored, or
said in an answer, is smaller than the one that was made."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from luckbase import cluster, solver
from luckbase.cluster.table.entries import read_ledger
from luckbase.cluster.table.storage import Folder
from luckbase.solver.board.model import Board
from luckbase.solver.game.arrays import FLOAT64_ERROR, Floats
from luckbase.solver.games.goofspiel.layout import Layers
from luckbase.solver.matrix_game import simplex as matrix_game
from luckbase.solver.search.game_graph import Graph
from tests.shared import rewrite
from tests.solver.search.written_out import board_of, decides, over, written

BOARDS = Path(__file__).parents[3] / "boards"
RUNGS = 20
LADDER = [
    decides(0, [(0.75, rung), (0.25, rung + 1)], [(0.875, rung), (0.125, rung + 1)])
    for rung in range(RUNGS)
]  # every rung is a cycle of its own, and whoever climbs for ever is at the top: 1
LADDER.append(over(1.0))


@pytest.fixture
def rough(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cycles are solved to a gap of a thousandth."""
    monkeypatch.setattr("luckbase.solver.search.cycles.TOLERANCES", (1e-3,))


def test_the_gaps_of_all_cycles_below_a_state_are_in_a_graphs_error(rough: None) -> None:
    graph = Graph(written(*LADDER, players=1))
    graph.solve(np.array([[0]]))
    made = 1.0 - graph.values[0, 0]
    assert len(graph.gaps) == RUNGS and made > 5 * max(graph.gaps.values())
    assert made <= graph.error < 1.5 * made


def test_the_gaps_of_all_cycles_below_a_state_are_in_a_search_tables_error(
    rough: None, tmp_path: Path
) -> None:
    found = cluster.solve_below(board_of(*LADDER, players=1), results=tmp_path, workers=1)
    with cluster.open_table(found.table) as table:
        made = 1.0 - table.probe(np.array([[0]]))[0, 0]
        assert made > 0.002
        assert made <= table.error < 1.5 * made + FLOAT64_ERROR


def test_what_float64_sums_lose_is_in_a_search_tables_error(tmp_path: Path) -> None:
    board = board_of(decides(0, [(0.5, 1), (0.5, 2)]), over(1.0), over(0.0), players=1)
    found = cluster.solve_below(board, results=tmp_path, workers=1)
    assert found.ledger.error() == FLOAT64_ERROR > 0


def test_the_error_of_the_table_that_a_search_ends_at_is_in_its_own(tmp_path: Path) -> None:
    """A float32 table: what is stored below it is off by what it is."""
    board = solver.load_board(BOARDS / "press-your-luck/tiny.toml", frontier=1)
    below = cluster.solve(board, results=tmp_path)
    root = solver.load_game(board).parse({"scores": "0,500,0", "earned": "1,1,0"})
    found = cluster.solve_below(
        board, root[None], using=below.table, results=tmp_path, workers=1
    )  # fmt: skip
    assert found.ledger.error(found.goal.part) == below.ledger.error("tiers") + FLOAT64_ERROR


BELOW = 3e-8
"""How exact the table is at which searches of these tests end."""


def rounded(folder: Path, board: Board, states: list[int], error: float) -> Path:
    """The table of some states, said to be so exact."""
    solved = cluster.solve_below(board, np.array(states)[:, None], results=folder, workers=1)
    ledger = read_ledger(Folder(solved.table), solved.table)
    ledger.files = {name: replace(one, error=error) for name, one in ledger.files.items()}
    rewrite(solved.table, ledger)
    return solved.table


def close(apart: float, **rules: Any) -> Board:
    """Player 2 goes from 0 to 1, where player 1 takes 2 or 3, which gives player 2 more."""
    return board_of(
        decides(1, [(1.0, 1)]), decides(0, [(1.0, 2)], [(1.0, 3)]),
        decides(0, [(1.0, 4)]), decides(0, [(1.0, 5)]),
        over(0.5, 0.25), over(0.5 + apart, 0.75), **rules,
    )  # fmt: skip


def test_a_decision_that_the_table_below_does_not_tell_is_in_the_error_alone(
    tmp_path: Path,
) -> None:
    """Also where a ledger says nothing of it, and all is solved again."""
    board = close(BELOW)
    used, root = rounded(tmp_path / "used", board, [2, 3], BELOW), np.array([[0]])
    found = cluster.solve_below(board, root, using=used, results=tmp_path, workers=1)
    older = read_ledger(Folder(found.table), found.table)
    older.files = {
        name: replace(one, error=BELOW, precision=0.0) for name, one in older.files.items()
    }
    rewrite(found.table, older)
    again = cluster.solve_below(board, root, using=used, results=tmp_path, workers=1, force=True)
    for one in (found, again):
        part = one.goal.part
        assert one.ledger.error(part) == 1.0
        assert one.ledger.precision(part) == pytest.approx(BELOW, rel=1e-3)


@pytest.mark.parametrize(("error", "told"), [(2e-12, True), (2e-11, False)])
def test_what_is_tied_by_the_rules_is_told(error: float, told: bool, tmp_path: Path) -> None:
    board = close(0.0, tolerance=1e-11)
    used, notes = rounded(tmp_path / "used", board, [2, 3], error), []
    found = cluster.solve_below(
        board, np.array([[0]]), using=used, results=tmp_path, workers=1, on_note=notes.append
    )
    expected = error + FLOAT64_ERROR if told else 1.0
    assert found.ledger.error(found.goal.part) == pytest.approx(expected)
    assert bool(notes) == (not told)


def test_the_gaps_of_cycles_are_in_the_precision_too(tmp_path: Path) -> None:
    board = board_of(
        decides(0, [(0.5, 1), (0.5, 2)], [(1.0, 3)]), decides(1, [(0.5, 0), (0.5, 3)], [(1.0, 2)]),
        decides(0, [(1.0, 4)]), decides(0, [(1.0, 5)]), over(0.9, 0.1), over(0.2, 0.8),
    )  # fmt: skip
    used = rounded(tmp_path / "used", board, [2, 3], BELOW)
    found = cluster.solve_below(board, np.array([[0]]), using=used, results=tmp_path, workers=1)
    part = found.goal.part
    assert found.ledger.precision(part) == found.ledger.error(part) > BELOW + FLOAT64_ERROR


def test_no_payoff_is_said_to_be_off_by_more_than_the_game_allows(tmp_path: Path) -> None:
    board = close(BELOW)
    used = rounded(tmp_path / "used", board, [2, 3], 1.0)
    found = cluster.solve_below(board, np.array([[0]]), using=used, results=tmp_path, workers=1)
    assert found.ledger.error(found.goal.part) == 1.0


# Goofspiel


def solved(board: str) -> tuple[Layers, dict[int, Floats]]:
    """A board of five cards in memory: the payoffs of each layer."""
    layers = solver.load_layout(solver.load_board(BOARDS / f"goofspiel/{board}.toml", cards=5))
    assert isinstance(layers, Layers)
    payoffs: dict[int, Floats] = {}
    for tier in layers.tiers():
        payoffs[tier] = np.empty(layers.shape(tier))
        layers.solve_tier(tier, payoffs[tier], payoffs.__getitem__, lambda: False)
    return layers, payoffs


@pytest.mark.parametrize(
    ("board", "tier"), [("points", 2), ("points", 3), ("points", 4), ("win", 2), ("win", 3)]
)
def test_a_layers_error_holds_what_the_layers_below_may_be_off_by(board: str, tier: int) -> None:
    """Those below are moved by all that they may be off by, a gap a layer: so is this one, where
    one hand beats the other whatever is bid."""
    layers, payoffs = solved(board)
    out, off = np.empty(layers.shape(tier)), (tier - 1) * layers.layer_error
    below = payoffs[tier - 1] + off
    error = layers.solve_tier(tier, out, lambda _: below, lambda: False)
    moved = np.abs(out - payoffs[tier]).max()
    assert moved == pytest.approx(off, rel=0.01)
    assert moved <= error


def test_a_matrix_games_gap_is_in_an_answers_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    board = solver.load_board(BOARDS / "goofspiel/points.toml", cards=3)
    table = cluster.solve(board, results=tmp_path).table
    solve = matrix_game.solve

    def with_a_gap(games: Floats) -> matrix_game.Solutions:
        found = solve(games)
        found.gaps[:] = 0.25
        return found

    monkeypatch.setattr(matrix_game, "solve", with_a_gap)
    with cluster.open_table(table) as opened:
        words = {"mine": "1,2,3", "theirs": "1,2,3", "deck": "1,2,3", "upcard": "2"}
        assert opened.ask(words).error == opened.error + 0.25
