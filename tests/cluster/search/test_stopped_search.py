"""Searches that are stopped, killed, damaged half-way: what was done is not done again, and in the
end the table is the one of a search that went through."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from luckbase import cluster
from luckbase.cluster.run import nodes
from luckbase.cluster.run import ray as ray_workers
from luckbase.cluster.run.progress import Solved
from luckbase.cluster.run.worker import PayoffsLostError, Threads
from luckbase.cluster.search import shards as level_shards
from luckbase.cluster.search import solve as searching
from luckbase.cluster.search.shards import Demand, Growth
from luckbase.cluster.search.stages import StageSearch
from luckbase.cluster.search.tasks import Find, FindReceipt, FoundAsks, SweepReceipt
from luckbase.cluster.table.entries import read_ledger
from luckbase.cluster.table.folder import needed_shards, shard_file_name
from luckbase.cluster.table.ledger import Done, Ledger
from luckbase.cluster.table.storage import Folder, place_of, storage_at
from luckbase.cluster.table.verify import check_files, check_residuals
from luckbase.solver.errors import MissingTableError, SearchLimitError
from luckbase.solver.game.game import Stopped
from luckbase.solver.search import find_stages
from luckbase.solver.search.find_stages import BoxSearch
from luckbase.solver.search.stages import Stage
from tests.cluster.search.searches import (
    OTHER,
    SMALL,
    WIDE,
    by,
    cut_small,
    files_of,
    rows_of,
    search,
    tiny,
)
from tests.places import ROOT


def killed(results: Path | str, kind: str, times: int) -> Ledger:
    """A search by stages that is killed (kill -9) once so much of a kind is committed: shards,
    files."""
    script = (
        "import sys, time; sys.path.insert(0, sys.argv[1])\n"
        "from tests.cluster.search import searches as t\n"
        "t.cut_small(t.pytest.MonkeyPatch())\n"
        "from luckbase.cluster.table.entries import Commits\n"
        "flush = Commits.flush\n"
        "def slowly(self):\n"
        "    flush(self)\n"
        "    if len(getattr(self.ledger, sys.argv[3])) >= int(sys.argv[4]):\n"
        "        print('done', flush=True); time.sleep(60)\n"
        "Commits.flush = slowly\n"
        "t.by(sys.argv[2], workers=1)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(ROOT), str(results), kind, str(times)],
        stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "done\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    (table,) = place_of(results).glob("*/*/*")
    return read_ledger(storage_at(table), table)


class Watched:
    """The names of the shards that are found and of the files that are written meanwhile."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.found: list[str] = []
        self.solved: list[str] = []
        keep, commit = StageSearch._keep, StageSearch.commit

        def kept(search: StageSearch, receipt: FindReceipt, *how: object) -> None:
            self.found.append(receipt.entry.name)
            keep(search, receipt, *how)  # type: ignore[arg-type]

        def committed(search: StageSearch, receipt: SweepReceipt) -> None:
            if receipt.files:
                self.solved.append(search._file(search.solves[receipt.shard]))
            commit(search, receipt)

        patch.setattr(StageSearch, "_keep", kept)
        patch.setattr(StageSearch, "commit", committed)


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Watched:
    return Watched(monkeypatch)


def test_a_search_killed_on_its_way_down_goes_on_from_what_it_found(
    staged: Solved, small: None, watched: Watched, tmp_path: Path
) -> None:
    left = killed(tmp_path, "shards", 5)
    (table,) = tmp_path.glob("*/*/*")
    assert not left.complete and len(left.shards) == 5 and not left.files and left.levels
    with pytest.raises(MissingTableError, match="solve again to go on"):
        cluster.open_table(table).probe(tiny().parse(WIDE)[None])
    solved = by(tmp_path, workers=2)
    assert files_of(solved.table) == files_of(staged.table)
    assert not set(watched.found) & set(left.shards)
    assert len(watched.found) + 5 == solved.shards == staged.shards
    assert (solved.states, solved.kept, solved.overlap) == (staged.states, 0, 1.0)
    assert solved.ledger.complete and not solved.ledger.shards
    assert not list(table.glob("shards/*"))


@pytest.mark.parametrize(
    ("name", "value"), [("given", "another"), ("box", [1, 2]), ("stages", [7])]
)
def test_a_shard_that_was_not_found_as_it_is_to_be_is_found_again(
    staged: Solved, small: None, watched: Watched, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, name: str, value: Any,
) -> None:  # fmt: skip
    keep, kept = StageSearch._keep, list[str]()

    def changed(search: StageSearch, receipt: FindReceipt, askers: Any) -> None:
        if not kept:
            receipt = replace(receipt, entry=replace(receipt.entry, **{name: value}))
        kept.append(receipt.entry.name)
        keep(search, receipt, askers)
        if len(kept) == 3:
            raise Stopped

    with monkeypatch.context() as patch, pytest.raises(Stopped):
        patch.setattr(StageSearch, "_keep", changed)
        by(tmp_path, workers=1)
    solved = by(tmp_path, workers=1)
    assert [watched.found.count(each) for each in kept] == [2, 1, 1]
    assert files_of(solved.table) == files_of(staged.table)


def test_force_finds_all_of_a_stopped_search_anew(
    staged: Solved, small: None, watched: Watched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep = StageSearch._keep

    def stops(search: StageSearch, *what: Any) -> None:
        keep(search, *what)
        if len(watched.found) == 5:
            raise Stopped

    with monkeypatch.context() as patch, pytest.raises(Stopped):
        patch.setattr(StageSearch, "_keep", stops)
        by(tmp_path, workers=1)
    (table,) = tmp_path.glob("*/*/*")
    left = read_ledger(Folder(table), table)
    assert left.shards and not left.files
    watched.found.clear()
    solved = by(tmp_path, workers=1, force=True)
    assert len(watched.found) == solved.shards and files_of(solved.table) == files_of(staged.table)


@pytest.mark.parametrize("workers", [3])
def test_a_search_killed_on_its_way_up_goes_on_from_what_it_solved(
    staged: Solved, small: None, watched: Watched, tmp_path: Path, workers: int
) -> None:
    left = killed(tmp_path, "files", 10)
    (table,) = tmp_path.glob("*/*/*")
    assert len(left.shards) == staged.shards and 10 <= len(left.files) < len(staged.ledger.files)
    before = {path: path.stat().st_mtime_ns for path in table.rglob("*.parquet")}
    solved = by(tmp_path, workers=workers)
    assert files_of(solved.table) == files_of(staged.table)
    assert watched.found == []
    assert not set(watched.solved) & set(left.files)
    assert len(watched.solved) == len(staged.ledger.files) - len(left.files)
    assert all(path.stat().st_mtime_ns == then for path, then in before.items())
    assert (solved.states, solved.kept) == (staged.states - left.rows, left.rows)
    assert not list(table.glob("shards/*"))


def test_boxes_that_a_shard_leaves_to_others_are_found_by_these_also_after_a_stop(
    watched: Watched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody foresees that a shard bursts, so all of a stage is one shard at first."""
    root = tiny().parse({**WIDE, "earned": "1,1,1", "whammies": "3,2,2"})[None]
    cut_small(monkeypatch, 400)
    monkeypatch.setattr(Demand, "_large_stages", lambda *_: [])
    monkeypatch.setattr(level_shards, "growth_of", lambda *_: Growth(0.01, 0.0, 0))
    monkeypatch.setattr(find_stages, "CACHED", 100)
    once = by(tmp_path / "once", root, workers=1)
    left = [name for name in watched.found if "." in name]
    assert len(left) > 15 and any(name.count(".") > 1 for name in left)
    assert rows_of(once.table) == rows_of(search(tmp_path / "whole", root).table)
    keep, times = StageSearch._keep, [0]

    def stops(search: StageSearch, *how: Any) -> None:
        keep(search, *how)
        times[0] += 1
        if times[0] in (5, 11, 16):
            raise Stopped

    monkeypatch.setattr(StageSearch, "_keep", stops)
    watched.found.clear()
    for _ in range(3):
        with pytest.raises(Stopped):
            by(tmp_path / "stopped", root, workers=2)
    again = by(tmp_path / "stopped", root, workers=3)
    assert files_of(again.table) == files_of(once.table)
    assert times[0] <= once.shards + 3 * 2  # what ran at a stop is found again, nothing else


def test_boxes_are_left_to_others_so_many_times_and_no_more(
    watched: Watched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names end somewhere; what is left is found by one shard."""
    cut_small(monkeypatch, 4)
    root = tiny().parse({"scores": "2000,1000,2500", "earned": "0,1,1"})[None]
    monkeypatch.setattr(Demand, "_large_stages", lambda *_: [])
    monkeypatch.setattr(level_shards, "growth_of", lambda *_: Growth(0.01, 0.0, 0))
    monkeypatch.setattr(level_shards, "DEEPEST", 2)
    monkeypatch.setattr(find_stages, "CACHED", 8)
    rows = rows_of(by(tmp_path / "stages", root, workers=1).table)
    assert rows == rows_of(search(tmp_path / "whole", root).table)
    assert {name.count(".") for name in watched.found} == {0, 1}


@pytest.mark.parametrize("states", [SMALL, 100])
def test_a_search_that_is_cut_another_way_does_not_go_on_from_what_is_there(
    states: int, staged: Solved, tmp_path: Path, halfway: Callable[[str], Path],
    watched: Watched, monkeypatch: pytest.MonkeyPatch, whole: Solved,
) -> None:  # fmt: skip
    """Its files may have the same names; what is in them is not the same."""
    table = halfway("commit")
    there = read_ledger(Folder(table), table)
    assert there.files and all(level.cutting for level in there.levels.values())
    cut_small(monkeypatch, states)
    watched.solved.clear()
    solved = by(tmp_path / "half", workers=2)
    assert rows_of(solved.table) == rows_of(whole.table)
    kept = len(solved.ledger.files) - len(watched.solved)
    assert kept == (len(there.files) if states == SMALL else 0)
    with cluster.open_table(solved.table) as opened:
        assert check_files(opened) == [] and check_residuals(opened, None).faults == 0


def test_a_search_killed_at_its_very_end_is_done_by_the_next_one(
    staged: Solved, small: None, watched: Watched, tmp_path: Path
) -> None:
    """All files are there and nothing says so yet."""
    left = killed(tmp_path, "files", len(staged.ledger.files))
    assert left.files.keys() == staged.ledger.files.keys() and not left.complete
    solved = by(tmp_path)
    assert solved.ledger.complete and (watched.found, watched.solved) == ([], [])
    assert files_of(solved.table) == files_of(staged.table)
    assert (solved.states, solved.kept) == (0, staged.states)
    assert not list(solved.table.glob("shards/*"))


@pytest.mark.parametrize("step", ["commit", "compact"])
def test_a_search_that_ends_before_it_says_so_finds_and_solves_nothing_again(
    step: str, staged: Solved, small: None, watched: Watched, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Before the line that it is done, and before what lies between the passes is deleted."""
    do, solved = getattr(searching, step), []

    def stops(ledger: Ledger, *line: Any) -> None:
        if (line and isinstance(line[0], Done)) or (step == "compact" and solved):
            raise Stopped
        do(ledger, *line)

    finish = searching._Search._finish

    def finishes(search: Any, *how: Any) -> None:
        solved.append(search)
        finish(search, *how)

    with monkeypatch.context() as patch:
        patch.setattr(searching._Search, "_finish", finishes)
        patch.setattr(searching, step, stops)
        with pytest.raises(Stopped):
            by(tmp_path)
    assert len(solved) == 1
    watched.found.clear()
    watched.solved.clear()
    again = by(tmp_path)
    assert not watched.found and not watched.solved and not again.damaged
    assert files_of(again.table) == files_of(staged.table) and again.ledger.complete
    assert not again.ledger.shards and not list(again.table.glob("shards/*"))
    assert again.ledger.compacted or read_ledger(Folder(again.table), again.table).compacted


def changed(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(raw)


def emptied(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize(
    ("kind", "how", "step"),
    [
        ("stage file", changed, "_keep"),
        ("ask", changed, "_keep"),
        ("ask", Path.unlink, "_keep"),
        ("stage file", changed, "commit"),
        ("ask", changed, "commit"),
        ("stage file", Path.unlink, "commit"),
        ("ask", emptied, "commit"),
    ],
)
def test_a_shard_that_is_lost_is_said_and_found_again(
    kind: str, how: Callable[[Path], None], step: str, staged: Solved, small: None,
    watched: Watched, tmp_path: Path, halfway: Callable[[str], Path],
) -> None:  # fmt: skip
    table = halfway(step)
    watched.found.clear()
    left = read_ledger(Folder(table), table)
    there = [name for name, one in left.shards.items() if (table / one.place).exists()]
    lost = min(there, key=lambda name: -left.shards[name].level)
    how(table / (left.shards[lost].place if kind == "stage file" else left.shards[lost].ask_place))
    solved = by(tmp_path / "half", workers=2)
    assert [lost in said for said in solved.damaged] == [True]
    assert lost in watched.found
    assert watched.found == [lost] or step == "_keep"
    assert files_of(solved.table) == files_of(staged.table)
    assert not list(table.glob("shards/*"))


def test_a_stage_file_that_is_solved_and_still_read_is_found_again_when_it_is_lost(
    staged: Solved, watched: Watched, tmp_path: Path, halfway: Callable[[str], Path]
) -> None:
    table = halfway("commit")
    left = read_ledger(Folder(table), table)
    names = [name for name in left.shards if shard_file_name("search", name) in left.files]
    (lost, *_) = [name for name in names if (table / left.shards[name].place).exists()]
    (table / left.shards[lost].place).unlink()
    watched.found.clear()
    solved = by(tmp_path / "half", workers=2)
    assert watched.found == [lost] and len(solved.damaged) == 1
    assert files_of(solved.table) == files_of(staged.table)


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The results of a search that was stopped once a step was done a few times; the file of the
    last one is written and nothing says so."""

    @cache
    def results(step: str) -> Path:
        do, done, folder = getattr(StageSearch, step), [], tmp_path_factory.mktemp(step)

        def stops(search: StageSearch, *how: object) -> None:
            if len(done) == {"_keep": 7, "commit": 10}[step]:
                raise KeyboardInterrupt
            do(search, *how)
            done.append(0)

        with pytest.MonkeyPatch.context() as patch:
            cut_small(patch)
            patch.setattr(StageSearch, step, stops)
            with pytest.raises(KeyboardInterrupt):
                by(folder, workers=1)
        return folder

    return results


@pytest.fixture
def halfway(small: None, stopped: Callable[[str], Path], tmp_path: Path) -> Callable[[str], Path]:
    """The table of a search that was stopped, to be changed and solved."""

    def table(step: str) -> Path:
        results = shutil.copytree(stopped(step), tmp_path / "half", dirs_exist_ok=True)
        (found,) = results.glob("*/*/*")
        return found

    return table


def test_every_shard_lost_is_a_search_from_its_beginning(
    staged: Solved, watched: Watched, tmp_path: Path, halfway: Callable[[str], Path]
) -> None:
    """Files that were written stay."""
    table = halfway("commit")
    watched.solved.clear()
    left = read_ledger(Folder(table), table)
    shutil.rmtree(table / "shards")
    solved = by(tmp_path / "half", workers=2)
    assert files_of(solved.table) == files_of(staged.table)
    assert not set(watched.solved) & set(left.files)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Solved:
    """What lies below OTHER and WIDE in one piece."""
    roots = np.array([tiny().parse(words) for words in (OTHER, WIDE)])
    return search(tmp_path_factory.mktemp("both"), roots)


def test_a_stopped_search_goes_on_after_another_has_solved_part_of_it(
    small: None, both: Solved, tmp_path: Path, halfway: Callable[[str], Path]
) -> None:
    """What that one solved is known now, so other states are left to find; no key stands twice."""
    below = tiny().parse(OTHER)[None]
    for step, one_piece in [("_keep", 0), ("commit", 0), ("commit", 10**6)]:
        table = halfway(step)
        notes: list[str] = []
        search(tmp_path / "half", below, one_piece=one_piece, on_note=notes.append)
        assert "makes that one start over" in notes[0]
        solved = by(tmp_path / "half", on_note=notes.append)
        assert len(notes) == 2 and "it starts over" in notes[1]
        assert rows_of(table) == rows_of(both.table)
        with cluster.open_table(table) as opened:
            assert check_files(opened) == [] and check_residuals(opened, None).faults == 0
        assert solved.ledger.complete and not list(table.glob("shards/*"))
        shutil.rmtree(table)


@pytest.mark.parametrize("pieces", [(0, 0, 0), (10**6, 10**6, 0), (0, 10**6, 10**6)])
def test_what_is_solved_after_a_file_was_lost_leaves_no_hole_and_no_key_twice(
    pieces: tuple[int, ...], small: None, both: Solved, tmp_path: Path
) -> None:
    roots = np.array([tiny().parse(words) for words in (OTHER, WIDE)])
    made = [
        search(tmp_path / "grown", roots[i : i + 1], one_piece=one_piece)
        for i, one_piece in enumerate(pieces[:2])
    ]
    lost = next(name for name in made[0].ledger.files if made[0].goal.ask[:12] in name)
    (made[0].table / lost).unlink()
    for i in (1, 0):
        solved = search(tmp_path / "grown", roots[i : i + 1], one_piece=pieces[2])
        with cluster.open_table(solved.table) as table:
            assert table.holds(roots[i : i + 1]).all() and check_files(table) == []
    assert solved.ledger.complete
    assert rows_of(solved.table) == rows_of(both.table)


def test_force_of_one_of_several_searches_leaves_no_hole_and_no_key_twice(
    small: None, both: Solved, tmp_path: Path
) -> None:
    """What is said to be there is there; the others' own files may have to be solved again."""
    roots = np.array([tiny().parse(words) for words in (OTHER, WIDE)])
    for i in range(2):
        by(tmp_path / "grown", roots[i : i + 1])
    for forced in range(2):
        solved = by(tmp_path / "grown", roots[forced : forced + 1], force=True)
        for i in range(2):
            solved = by(tmp_path / "grown", roots[i : i + 1])
        assert solved.ledger.complete
        assert rows_of(solved.table) == rows_of(both.table)


def test_force_of_a_search_that_was_never_begun_leaves_others_as_they_are(
    small: None, tmp_path: Path
) -> None:
    """Also where it does not come to its end."""
    first, second = (tiny().parse(words)[None] for words in (OTHER, WIDE))
    solved = by(tmp_path, first)
    with pytest.raises(SearchLimitError):
        by(tmp_path, second, force=True, max_states=300)
    ledger = read_ledger(storage_at(solved.table), solved.table)
    assert ledger.done == solved.ledger.done and ledger.files == solved.ledger.files


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> list[Find]:
    """All tasks to find the shards of the search."""
    run, found = Find.run, list[Find]()

    def noted(job: Find, *given: Any) -> Iterator[Any]:
        found.append(job)
        yield from run(job, *given)

    with pytest.MonkeyPatch.context() as patch:
        cut_small(patch)
        patch.setattr(Find, "run", noted)
        by(tmp_path_factory.mktemp("noted"), workers=1)
    return found


@pytest.mark.parametrize("stops", [False, True])
@pytest.mark.parametrize("level", [False, True])
def test_who_waits_for_a_shard_goes_on_while_that_writes_its_file(
    staged: Solved, small: None, jobs: list[Find], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, stops: bool, level: bool,
) -> None:  # fmt: skip
    """Shards of its level, and the next one. Also where it is stopped before that, and the ledger
    has those that waited and not itself."""
    run, keep = Find.run, StageSearch._keep
    of = {(job.shard.stages[0] >> 32, job.shard.path): job for job in jobs}
    waits = next(job for job in jobs if len(job.shard.after) == 1)
    number = waits.shard.stages[0] >> 32
    before = of[number, waits.shard.after]
    if level:
        waits = next(job for (lower, _), job in of.items() if lower < number)
    found, here = threading.Event(), list[bool]()

    order, ordered = BoxSearch.stage, list[int]()

    def noting(box: BoxSearch) -> Stage:
        ordered.append(threading.get_ident())
        return order(box)

    def slow(job: Find, *given: Any) -> Iterator[Any]:
        steps, so_far = run(job, *given), ordered.count(threading.get_ident())
        yield next(steps)
        if job.name == before.name:
            assert ordered.count(threading.get_ident()) == so_far  # its states are not in order yet
            here.append(found.wait(30))
            if stops:
                raise Stopped
        yield from steps

    def kept(search: StageSearch, receipt: FindReceipt, askers: Any) -> None:
        keep(search, receipt, askers)
        if receipt.entry.name == waits.name:
            found.set()

    with monkeypatch.context() as patch:
        patch.setattr(Find, "run", slow)
        patch.setattr(BoxSearch, "stage", noting)
        patch.setattr(StageSearch, "_keep", kept)
        with pytest.raises(Stopped) if stops else nullcontext():
            by(tmp_path / "search", workers=2)
    assert here == [True]
    (table,) = (tmp_path / "search").glob("*/*/*")
    shards = read_ledger(Folder(table), table).shards
    assert (waits.name in shards, before.name in shards) == (stops, False)
    assert files_of(by(tmp_path / "search", workers=2).table) == files_of(staged.table)


def test_what_a_shard_says_twice_counts_once(
    staged: Solved, small: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ray does a task again whose machine was lost before its file was there."""
    again, wait_one = list[FoundAsks](), Threads.wait_one

    def twice(workers: Threads, seconds: float) -> Any:
        if again:
            return again.pop()
        event = wait_one(workers, seconds)
        if isinstance(event, FoundAsks):
            again.append(event)
        return event

    monkeypatch.setattr(Threads, "wait_one", twice)
    assert files_of(by(tmp_path, workers=2).table) == files_of(staged.table)


def test_what_ran_when_a_machine_was_lost_is_not_waited_for(
    staged: Solved, small: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait_one, lost = Threads.wait_one, list[Any]()

    def loses(workers: Threads, seconds: float) -> Any:
        assert workers._tasks or not workers._events.empty()  # else it would wait without end
        event = wait_one(workers, seconds)
        if isinstance(event, FoundAsks) and not lost:
            lost.append(event)
            raise PayoffsLostError("lost")
        return event

    monkeypatch.setattr(Threads, "wait_one", loses)
    assert files_of(by(tmp_path, workers=2).table) == files_of(staged.table) and lost


def test_ray_workers_write_the_same_bytes_also_where_one_dies(
    staged: Solved, small: None, tmp_path: Path, ray_cluster: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Ray worker kills itself in its first shard, once. Stages are cut here, where they are cut
    small."""
    died = tmp_path / "died"

    def deadly(*given: Any) -> Any:  # goes to the workers as it is written here
        if not died.exists():
            died.touch()
            os._exit(1)
        yield from nodes.run(*given)

    monkeypatch.setattr(ray_workers, "run", deadly)
    monkeypatch.setattr(StageSearch, "_cut", lambda search, looks: search.asks.cut(looks))
    solved = by(tmp_path / "search", workers=2, address=ray_cluster)
    assert solved.ray and died.exists()
    assert files_of(solved.table) == files_of(staged.table)
    assert (solved.states, solved.shards) == (staged.states, staged.shards)
    assert not list(solved.table.glob("shards/*"))
    import ray

    assert not ray.is_initialized()


def test_stage_files_are_needed_of_what_is_not_solved_or_is_read_by_what_is_not() -> None:
    """Of what was left to others nobody needs any."""
    shards = {
        f"a-1-{name}": SimpleNamespace(name=f"a-1-{name}", ask="it", rows=rows, askers=askers)
        for name, rows, askers in (
            ("open", 1, {}), ("read", 1, {"1": ["open"]}), ("solved", 1, {"1": ["read"]}),
            ("left", 0, {}),
        )
    }  # fmt: skip
    files = {f"search/a.1.{name}.parquet": None for name in ("read", "solved")}
    ledger: Any = SimpleNamespace(shards=shards, files=files)
    assert [one.name for one in needed_shards(ledger, "it")] == ["a-1-open", "a-1-read"]
    assert needed_shards(ledger, "another") == []


@pytest.mark.parametrize("needed", ["kept", "running", "waiting", "uncommitted", ""])
def test_a_stage_file_goes_when_nobody_needs_it(needed: str) -> None:
    """Also of a shard that is there and is read back after a stop."""
    rows = {name: {1} if name == needed else set() for name in ("kept", "running", "waiting")}
    search: Any = SimpleNamespace(
        solves=["first", "second"], _file=str, schedule=SimpleNamespace(**rows),
        ledger=SimpleNamespace(files=["first"] if needed == "uncommitted" else ["second"]),
    )  # fmt: skip
    assert StageSearch._needed(search, 1) == bool(needed)
