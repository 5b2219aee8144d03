"""Residuals: just above the tolerance is a fault, just below it none, and the worst that is said is
the worst."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from luckbase import cluster
from luckbase.cluster.run.driver import file_entry
from luckbase.cluster.search.merge import solved_rows
from luckbase.cluster.table.ledger import compact
from luckbase.cluster.table.part import drawn_rows
from luckbase.cluster.table.storage import Folder
from luckbase.cluster.table.verify import TOLERANCE, check_residuals
from luckbase.cluster.table.write import write_states
from luckbase.jobs.app import run
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.graph.game_graph import Graph
from tests.cluster.table.test_tie_slack import Held
from tests.places import BOARDS
from tests.solver.graph.written_out import board_of, decides, over

GAME = (
    decides(0, [(1.0, 1)], [(1.0, 2)]),
    decides(1, [(0.5, 3), (0.5, 4)]),
    decides(0, [(0.25, 3), (0.75, 4)]),
    over(1.0, 0.0),
    over(0.0, 1.0),
)


class Given(Held):
    """A table whose rows have these residuals, in pieces."""

    def __init__(self, pieces: list[list[float]]) -> None:
        super().__init__(0.0)
        self.pieces = [np.array(piece) for piece in pieces]
        self.parts, self.rows = [self], sum(map(len, pieces))

    def all_states(self) -> Iterator[Ints]:
        first = 0
        for piece in self.pieces:
            yield np.arange(first, first + len(piece)).reshape(-1, 1)
            first += len(piece)

    def residuals(self, states: Ints) -> Floats:
        return np.concatenate(self.pieces)[states[:, 0]]


@given(st.lists(st.lists(st.floats(0, 3e-6), min_size=1), min_size=1))
def test_the_worst_residual_said_is_the_worst_of_all_pieces_and_its_state(
    pieces: list[list[float]],
) -> None:
    flat = [residual for piece in pieces for residual in piece]
    found = check_residuals(Given(pieces), None)  # type: ignore[arg-type]
    assert (found.rows, found.worst) == (len(flat), max(flat))
    assert flat[found.state["at"]] == found.worst
    assert found.mean == pytest.approx(sum(flat) / len(flat))
    assert found.faults == sum(residual > TOLERANCE for residual in flat)


def test_the_tolerance_is_a_millionth_and_only_what_is_above_it_is_a_fault() -> None:
    assert check_residuals(Given([[0.0, 0.999e-6], [1e-6]]), None).faults == 0
    assert check_residuals(Given([[0.0, 0.999e-6], [1.001e-6, 1e-5]]), None).faults == 2


def moved(results: Path, state: int, by: float, player: int = 0) -> Path:
    """A table of what lies below the start, sealed, with one payoff of one player moved."""
    board = board_of(*GAME)
    found = cluster.solve_below(board, results=results, workers=1)
    table, storage = found.table, Folder(found.table)
    graph = Graph(cluster.open_table(table).game)
    graph.solve(np.array([[0]]))
    rows = solved_rows(graph)
    rows = rows.only(np.argsort(rows.keys))
    rows.values[int(np.flatnonzero(rows.keys == state)[0]), player] += by
    (old,) = found.ledger.files.values()
    file = write_states(storage, old.name, graph.game, rows, old.error)
    storage.put(old.name, file.path)
    keys = old.first_key, old.last_key
    found.ledger.files[old.name] = file_entry(old.name, old.part, 0, keys, file, 0.0)
    compact(storage, found.ledger)
    return table


@pytest.mark.parametrize("player", [0, 1])
@pytest.mark.parametrize(("by", "code"), [(0.9e-6, 0), (1.1e-6, 1), (-0.9e-6, 0), (-1.1e-6, 1)])
def test_a_payoff_moved_by_more_than_the_tolerance_fails_the_verification(
    player: int, by: float, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """State 2 is worth less than 1, so that what is above it does not move with it."""
    table = moved(tmp_path, 2, by, player)
    capsys.readouterr()
    assert run(["verify", str(table), "--all", "--json"]) == code
    said = json.loads(capsys.readouterr().out)
    assert said["ok"] == (code == 0) and said["worst_state"] == {"at": 2}
    assert said["worst_residual"] == pytest.approx(abs(by), rel=1e-6)


@given(st.integers(0, 60), st.integers(0, 90), st.integers(0, 5))
def test_a_sample_draws_no_row_twice(total: int, count: int, seed: int) -> None:
    rows = drawn_rows(total, count, seed)
    assert len(rows) == len(set(rows.tolist())) == min(total, count)
    assert list(rows) == sorted(rows) and all(0 <= row < total for row in rows)


def test_a_sample_is_drawn_evenly() -> None:
    """Of few and of most rows; 4 standard deviations."""
    for count in (3, 9):
        often = np.zeros(12)
        for seed in range(4000):
            often[drawn_rows(12, count, seed)] += 1
        share = count / 12
        assert np.abs(often - 4000 * share).max() < 4 * (4000 * share * (1 - share)) ** 0.5


@pytest.mark.parametrize("board", ["pig", "skunk"])
def test_a_sample_as_large_as_the_table_checks_every_row_once(
    board: str, table_of: Callable[[Path], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    path = table_of(BOARDS / board / "tiny.toml")
    with cluster.open_table(path) as table:
        every, rows = check_residuals(table, None), table.rows
        for sample in (rows, 10 * rows):
            assert check_residuals(table, sample) == every
        assert check_residuals(table, rows - 1).rows == rows - 1
    assert run(["verify", str(path), "--sample", "1000000"]) == 0
    assert f"{rows:,} rows agree with the rules" in capsys.readouterr().out
