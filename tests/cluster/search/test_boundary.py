"""A search that ends at another table asks it where it meets its states, and nowhere before."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from luckbase import cluster, solver
from luckbase.cluster.run.nodes import Declined, Nodes
from luckbase.cluster.run.progress import Solved
from luckbase.cluster.run.ray import RayWorkers
from luckbase.cluster.run.worker import NotSeenError, TableLocation
from luckbase.cluster.search import boundary
from luckbase.cluster.search import tasks as stage_tasks
from luckbase.cluster.search.boundary import UsedEnds, UsedTable, let_go, used_ends, used_table
from luckbase.cluster.search.stages import StageSearch
from luckbase.cluster.table import folder
from luckbase.cluster.table.keyed import GIVEN, SOLVED
from luckbase.cluster.table.table import StoredTable
from luckbase.cluster.table.verify import check_residuals
from luckbase.solver.errors import SearchLimitError, WorkerError
from luckbase.solver.game.capabilities import SearchHints
from luckbase.solver.game.game import Game, Stopped
from luckbase.solver.search.expand import expand
from luckbase.solver.search.find_stages import RisingError
from luckbase.solver.search.keys import pack_all
from tests.cluster.search.searches import (
    OTHER,
    TINY,
    WIDE,
    by,
    files_of,
    rows_of,
    stopped_after,
    tiny,
)
from tests.places import ROOT
from tests.shared import answers_of

pytestmark = pytest.mark.usefixtures("small")

GOOFSPIEL = ROOT / "boards/goofspiel/tiny.toml"


def test_what_is_known_from_two_places_is_by_ascending_key() -> None:
    def known(*keys: int) -> tuple[Any, Any]:
        return np.array(keys, np.uint64), np.array([[key / 64, 1.0] for key in keys]).reshape(-1, 2)

    top = 1 << 63  # a key is a whole number, not a float
    for one, other in (((1, top + 1), (2, top)), ((), (5,)), ((5,), ()), ((), ())):
        keys, payoffs = boundary.joined([known(*one), known(*other)])
        every = sorted(one + other)
        assert keys.dtype == np.uint64 and keys.tolist() == every
        assert payoffs.tolist() == known(*every)[1].tolist()


@pytest.fixture
def full(table_of: Callable[..., Path]) -> Path:
    return table_of(TINY, frontier=1)


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """The same table, to be changed."""
    return cluster.solve(tiny(frontier=1).board, results=tmp_path / "its").table


@pytest.fixture
def whole(full: Path, tmp_path: Path) -> Solved:
    """The search in one piece."""
    return by(tmp_path / "whole", using=full, one_piece=10**6)


def test_nothing_is_gone_through_before_and_nobody_holds_what_is_met(
    finds: list[Any], limits: list[int], full: Path, whole: Solved, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    limits.clear()
    monkeypatch.setattr(boundary, "given_at_once", lambda table: 7)
    solved = by(tmp_path / "one", using=full, workers=1)
    assert limits == [1], "a look whether it is small, no more"
    assert finds and all(task.job.used and task.memory > folder.LEAST_BYTES for task in finds)
    assert not any(len(task.job.known[0]) for task in finds)
    assert rows_of(solved.table) == rows_of(whole.table) and solved.states == whole.states
    status = np.concatenate(statuses(solved))
    assert solved.states == (status != GIVEN).sum() and (status == GIVEN).sum() > 20
    assert solved.ledger.error(solved.goal.part) == pytest.approx(
        whole.ledger.error(whole.goal.part)
    )
    two = by(tmp_path / "two", using=full, workers=2)
    assert files_of(two.table) == files_of(solved.table)


def statuses(solved: Solved) -> list[Any]:
    import pyarrow.parquet as pq

    return [
        pq.ParquetFile(path).read()["status"].to_numpy()
        for path in sorted(solved.table.rglob("*.parquet"))
    ]


def test_what_stands_in_its_own_table_is_answered_there(full: Path, tmp_path: Path) -> None:
    solved = by(tmp_path, using=full)
    with cluster.open_table(solved.table) as table, cluster.open_table(full) as other:
        (part,) = table.parts
        states = np.concatenate([rows.states(np.arange(len(rows.values))) for rows in part.scan()])
        there = states[other.holds(states)]
        assert len(there) > 20
        assert np.array_equal(table.lookup(there)[0], other.lookup(there)[0])
        best, margins = table.stored_best(there), table.margins_of(there)
        names, apart = other.stored_best(there), other.margins_of(there)
        assert np.array_equal(margins, apart, equal_nan=True)
        assert best == names
        assert sum(one is not None for one in best) > (~np.isnan(margins)).sum() > 20
        answers = [answers_of(where, there) for where in (table, other)]
        for mine, its in zip(*answers, strict=True):
            assert (mine.best, mine.to_act) == (its.best, its.to_act)
            assert [one.name for one in mine.actions] == ([its.best] if its.best else [])


@pytest.mark.parametrize("share", [0.3, 0.7])
def test_one_that_was_stopped_goes_on(
    finds: list[Any], share: float, full: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that were given are read back with the others."""
    clean = by(tmp_path / "clean", using=full, workers=1)
    with pytest.raises(Stopped), stopped_after(int(share * len(files_of(clean.table)))):
        by(tmp_path / "stopped", using=full, workers=1)
    finds.clear()
    solved = by(tmp_path / "stopped", using=full, workers=2)
    assert not finds and 0 < solved.states <= clean.states
    assert files_of(solved.table) == files_of(clean.table)


def test_it_begins_anew_where_that_table_has_grown(
    finds: list[Any], own: Path, table_of: Callable[..., Path], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    with pytest.raises(Stopped), stopped_after(3):
        by(tmp_path / "mine", using=own, workers=1)
    cluster.solve(tiny(frontier=2).board, results=tmp_path / "its")
    finds.clear()
    notes: list[str] = []
    solved = by(tmp_path / "mine", using=own, workers=1, on_note=notes.append)
    assert finds and "what is known has changed" in notes[0]
    larger = by(tmp_path / "larger", using=table_of(TINY, frontier=2), one_piece=10**6)
    assert rows_of(solved.table) == rows_of(larger.table) and solved.states == larger.states


def test_one_that_ends_at_its_own_table_goes_on_too(
    finds: list[Any], own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it has written of itself is no part of what it ends at."""
    clean = by(tmp_path / "clean", using=own, workers=1)
    with pytest.raises(Stopped), stopped_after(3):
        by(tmp_path / "its", using=own, workers=1)
    finds.clear()
    solved = by(tmp_path / "its", using=own, workers=1)
    assert solved.table == own and not finds
    mine = {name for name in solved.ledger.files if name.startswith(solved.goal.part)}
    assert {name: (own / name).read_bytes() for name in mine} == files_of(clean.table)
    for one_piece in (0, 10**6):
        again = by(tmp_path / "its", using=own, one_piece=one_piece, force=True)
        assert again.states == clean.states


def test_this_process_goes_on_with_what_it_found_and_others_say_that_they_see_another(
    own: Path,
) -> None:
    used = used_table(own)
    first = used_ends(used)
    assert first is not None and used_ends(used) is first
    state = first.table.game.parse({**WIDE, "earned": "0,0,1"})[None]
    keys = pack_all(first.table.game.strides, state)
    assert first.holds(keys).tolist() == [True] and first.holds(keys[:0]).tolist() == []
    for path, sha in ((own, "another"), (own / "nowhere", used.sha256)):
        assert used_ends(UsedTable(path, "", sha)) is None
    shutil.rmtree(own / "ledger")  # what it says now is of no interest
    again = used_ends(used)
    assert again is not None and again.holds(keys).all()
    table, file = first.table, first.table.parts[0].groups
    first.known_payoffs(keys)
    assert file._files
    let_go(used)
    assert not file._files and used_ends(used) is None and table


def test_nothing_of_it_is_kept_open(full: Path, tmp_path: Path) -> None:
    for one_piece in (0, 10**6):
        by(tmp_path / str(one_piece), using=full, one_piece=one_piece)
        assert not boundary._opened and not any(boundary._ledgers.values())


@pytest.mark.parametrize("kind", ["by stages", "in one piece"])
def test_it_may_be_a_table_of_searches(kind: str, tmp_path: Path) -> None:
    root = tiny().parse(OTHER)[None]
    lower = by(tmp_path / "lower", root, one_piece=0 if kind == "by stages" else 10**6)
    one, other = (
        by(tmp_path / str(i), using=lower.table, one_piece=i, workers=2) for i in (0, 10**6)
    )
    assert one.levels and rows_of(one.table) == rows_of(other.table)
    assert (np.concatenate(statuses(one)) == GIVEN).sum() > 0
    only = by(tmp_path / "only", root, using=lower.table)  # the root itself is there
    assert np.concatenate(statuses(only)).tolist() == [GIVEN]


def test_both_may_choose_at_once(table_of: Callable[..., Path], tmp_path: Path) -> None:
    board = solver.load_board(GOOFSPIEL)
    game = solver.load_game(board)
    start = game.needed_start()[None]
    edges = expand(game, start)
    below = cluster.solve_below(board, np.unique(edges.children, axis=0)[:3], results=tmp_path)
    one, other = (
        cluster.solve_below(
            board, start, using=below.table, results=tmp_path / str(i), one_piece=i, workers=2
        )
        for i in (0, 10**6)
    )
    assert one.levels and rows_of(one.table) == rows_of(other.table)
    assert (np.concatenate(statuses(one)) == GIVEN).sum() > 0


def test_a_machine_that_does_not_see_it_says_so_and_the_driver_finds_that(
    finds: list[Any], asks_stay: None, full: Path, tmp_path: Path
) -> None:
    table = by(tmp_path, using=full, workers=1).table
    (table / "here").touch()
    job = max((one.job for one in finds), key=lambda job: len(job.asks))
    job = replace(job, location=TableLocation(table, "here"))
    *_, (seen, _) = job.run((), {}, None, lambda: False)
    assert job.used is not None
    with pytest.raises(NotSeenError) as not_seen:
        list(replace(job, used=replace(job.used, path=tmp_path)).run((), {}, None, lambda: False))
    assert not_seen.value.names == ()
    notes: list[str] = []
    listed = [{"NodeID": name, "Alive": True, "NodeManagerHostname": name,
               "NodeManagerAddress": "-", "Resources": {"CPU": 1}} for name in "ab"]  # fmt: skip
    nodes, handed = Nodes(lambda: listed, notes.append), list[Any]()
    task = SimpleNamespace(task=SimpleNamespace(job=job))
    left: dict[str, str] = {}
    run: Any = SimpleNamespace(
        nodes=nodes, _submit=handed.append, _tasks=[task] * 3, _stage_files=left, _done_here=[]
    )
    assert RayWorkers._resubmit(run, task, Declined("a", "a")) is None  # type: ignore[arg-type]
    assert nodes.unseeing == ["a"] and handed == [task]
    for _ in range(2):  # nobody sees it
        early = RayWorkers._resubmit(run, task, Declined("b", "b"))  # type: ignore[arg-type]
        found = RayWorkers.wait_one(run, 0.0)  # its requests come first
        assert early.shard == found.shard and early.sha256 == seen.entry.ask_sha256
        assert found.entry.sha256 == seen.entry.sha256 and left == {seen.stage_file: ""}
    assert nodes.unseeing == [] and len(handed) == 1
    assert len(notes) == 2 and "node a (-) does not see the table" in notes[0]
    nodes._polled = float("-inf")
    nodes.refresh()
    assert not nodes.by_id["a"].sees and len(notes) == 2


def test_nodes_of_a_cluster_that_do_not_see_it(
    full: Path, tmp_path: Path, ray_cluster: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None of them does: the table is known by a sum that it does not have there."""
    near, notes = by(tmp_path / "near", using=full, workers=1), []
    monkeypatch.setattr(UsedEnds, "sha256", "as this process says")
    far = by(tmp_path / "far", using=full, address=ray_cluster, workers=2, on_note=notes.append)
    assert far.ray and files_of(far.table) == files_of(near.table)
    assert any("does not see the table at which the search ends" in note for note in notes)


def test_threads_that_do_not_see_it_end(
    full: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    monkeypatch.setattr(stage_tasks, "used_ends", lambda used: None)
    with pytest.raises(WorkerError, match="not to be seen any more"):
        by(tmp_path, using=full)


def test_decisions_closer_than_that_table_tells_are_counted_and_no_fault(
    full: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table that knows payoffs to .005 only; in all tables the earlier of such actions counts."""
    import pyarrow.parquet as pq

    monkeypatch.setattr(StoredTable, "error", 0.005)
    monkeypatch.setattr(StoredTable, "precision", 0.005)
    notes: list[str] = []
    solved = by(tmp_path, using=full, on_note=notes.append)
    close = 0
    for entry in solved.ledger.files.values():
        columns = ["margin", "status"]
        rows = pq.ParquetFile(solved.table / entry.name).read(columns)
        one = rows.to_pandas()
        here = int(((one.margin <= 0.01) & (one.status == SOLVED)).sum())
        assert entry.error == 1.0 or not here
        close += here
    assert close > 20 and notes[-1].startswith(f"{close} decisions hang on less than the error of")
    said = sorted({(entry.error, entry.precision) for entry in solved.ledger.files.values()})
    assert [error for error, _ in said] == pytest.approx([0.005, 1.0])
    assert [within for _, within in said] == pytest.approx([0.0, 0.005])  # 0: all is told there
    assert solved.ledger.precision(solved.goal.part) == pytest.approx(0.005)
    with cluster.open_table(solved.table) as table:
        assert table.parts[0].tolerance == pytest.approx(0.01, rel=1e-6)
        assert table.parts[0].error == 1.0
        assert check_residuals(table, None).faults == 0


def test_a_limit_is_said_before_anything_is_touched(full: Path, tmp_path: Path) -> None:
    with pytest.raises(SearchLimitError):
        by(tmp_path, using=full, one_piece=10**6, max_states=20)
    assert not files_of(tmp_path)


def test_a_level_that_does_not_hold_is_done_without(
    full: Path, whole: Solved, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rises(*given: Any) -> Any:
        raise RisingError("an edge rises")

    level = tiny().own(SearchHints).level
    assert level is not None
    hints = SearchHints(replace(level, found=True))
    monkeypatch.setattr(StageSearch, "_down", rises)
    monkeypatch.setattr(Game, "own", lambda game, kind: hints)
    solved = by(tmp_path / "mine", using=full, one_piece=0)
    assert rows_of(solved.table) == rows_of(whole.table) and solved.levels == 0
