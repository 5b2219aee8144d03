"""Searches that are stopped, killed, damaged half-way: solved shards are not solved again, and at
the end the table is the same as without a stop."""

import os
import signal
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from luckbase.cluster.answers.verify import check_files, check_residuals
from luckbase.cluster.search import shards as level_shards
from luckbase.cluster.search.shards import Demand, Growth, number_of
from luckbase.cluster.search.stages import StageSearch
from luckbase.cluster.search.tasks import FindReceipt
from luckbase.cluster.solve import nodes
from luckbase.cluster.solve.worker import PayoffsLostError, Threads
from luckbase.cluster.store.storage import Folder, place_of, storage_at
from luckbase.cluster.store.writer import read_manifest
from luckbase.solver.errors import CorruptTableError, MissingTableError, SearchLimitError, Stopped
from luckbase.solver.search import stages as solver_stages
from tests import solving
from tests.cluster.search.searches import (
    OTHER,
    WIDE,
    by,
    cut_small,
    files_of,
    rows_of,
    search,
    tiny,
)
from tests.e2e.stopped import stopped_after
from tests.places import ROOT


def killed(results, kind, times):
    """A search by stages that is killed (kill -9) on its way down ("found") once so many shards are
    found, or on its way up ("files") once so many files are committed."""
    script = (
        "import sys, time, pytest; sys.path.insert(0, sys.argv[1])\n"
        "from tests.cluster.search import searches as t\n"
        "t.cut_small(pytest.MonkeyPatch())\n"
        "from luckbase.cluster.search.stages import StageSearch\n"
        "from luckbase.cluster.store import writer\n"
        "writer.COMMIT_SECONDS, writer.SHARE = 0.0, float('inf')\n"
        "def slowly(does, count):\n"
        "    def then(self, *how):\n"
        "        does(self, *how)\n"
        "        if count(self) >= int(sys.argv[4]):\n"
        "            print('done', flush=True); time.sleep(60)\n"
        "    return then\n"
        "if sys.argv[3] == 'files':\n"
        "    Writer = writer.Writer\n"
        "    Writer.commit = slowly(Writer.commit, lambda self: len(self.manifest.files))\n"
        "else:\n"
        "    StageSearch._keep = slowly(StageSearch._keep, lambda self: len(self.shards))\n"
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
    return read_manifest(storage_at(table), table)


def name_of(found):
    """The level of a shard and its path in it."""
    return f"{found.shard.stages[0] >> 32}-{number_of(found.shard.path)}"


class Watched:
    """The names of the shards that are found and of the files that are written meanwhile."""

    def __init__(self, patch):
        self.found = []
        self.solved = []
        keep, commit = StageSearch._keep, StageSearch.commit

        def kept(search, receipt, *how):
            self.found.append(name_of(receipt.found))
            keep(search, receipt, *how)

        def committed(search, receipt):
            if receipt.files:
                self.solved.append(search._file(search.solves[receipt.shard]))
            commit(search, receipt)

        patch.setattr(StageSearch, "_keep", kept)
        patch.setattr(StageSearch, "commit", committed)


@pytest.fixture
def watched(monkeypatch):
    return Watched(monkeypatch)


def test_a_search_killed_on_its_way_down_finds_its_states_again(staged, small, watched, tmp_path):
    left = killed(tmp_path, "found", 5)
    (table,) = tmp_path.glob("*/*/*")
    assert not left.complete and not left.files and left.levels
    assert list(table.glob("shards/*"))
    with pytest.raises(MissingTableError, match="solve again to go on"):
        solving.open_table(table).probe(tiny().parse(WIDE)[None])
    solved = by(tmp_path, workers=2)
    assert files_of(solved.table) == files_of(staged.table)
    assert len(watched.found) == solved.shards == staged.shards
    assert (solved.states, solved.kept) == (staged.states, 0)
    assert solved.manifest.complete and not list(table.glob("shards/*"))


def test_force_solves_all_of_a_stopped_search_anew(staged, small, watched, tmp_path):
    with pytest.raises(Stopped), stopped_after(5, Stopped):
        by(tmp_path, workers=1)
    assert not [*tmp_path.glob("*/*/*/shards/*")]
    watched.solved.clear()
    solved = by(tmp_path, workers=1, force=True)
    assert files_of(solved.table) == files_of(staged.table)
    assert len(watched.solved) == len(staged.manifest.files) and solved.kept == 0


def test_a_search_killed_on_its_way_up_goes_on_from_what_it_solved(
    staged, small, watched, tmp_path
):
    left = killed(tmp_path, "files", 10)
    (table,) = tmp_path.glob("*/*/*")
    assert 10 <= len(left.files) < len(staged.manifest.files)
    places = [table / entry.place for entry in left.files.values()]
    before = {path: path.stat().st_mtime_ns for path in places}
    solved = by(tmp_path, workers=3)
    assert files_of(solved.table) == files_of(staged.table)
    assert len(watched.found) == staged.shards
    assert not set(watched.solved) & set(left.files)
    assert len(watched.solved) == len(staged.manifest.files) - len(left.files)
    assert all(path.stat().st_mtime_ns == then for path, then in before.items())
    assert (solved.states, solved.kept) == (staged.states - left.rows, left.rows)
    assert not list(table.glob("shards/*"))


def test_boxes_that_a_shard_leaves_to_others_are_found_by_these(watched, tmp_path, monkeypatch):
    """Nobody foresees that a shard bursts, so all of a stage is one shard at first."""
    root = tiny().parse({**WIDE, "earned": "1,1,1", "whammies": "3,2,2"})[None]
    cut_small(monkeypatch, 400)
    monkeypatch.setattr(Demand, "_large_stages", lambda *_: [])
    monkeypatch.setattr(level_shards, "growth_of", lambda *_: Growth(0.01, 0.0, 0))
    monkeypatch.setattr(solver_stages, "CACHED", 100)
    once = by(tmp_path / "once", root, workers=1)
    left = [name for name in watched.found if "." in name]
    assert len(left) > 15 and any(name.count(".") > 1 for name in left)
    assert rows_of(once.table) == rows_of(search(tmp_path / "whole", root).table)


def test_boxes_are_left_to_others_so_many_times_and_no_more(watched, tmp_path, monkeypatch):
    """Names end somewhere; what is left is found by one shard."""
    cut_small(monkeypatch, 4)
    root = tiny().parse({"scores": "2000,1000,2500", "earned": "0,1,1"})[None]
    monkeypatch.setattr(Demand, "_large_stages", lambda *_: [])
    monkeypatch.setattr(level_shards, "growth_of", lambda *_: Growth(0.01, 0.0, 0))
    monkeypatch.setattr(level_shards, "DEEPEST", 2)
    monkeypatch.setattr(solver_stages, "CACHED", 8)
    rows = rows_of(by(tmp_path / "stages", root, workers=1).table)
    assert rows == rows_of(search(tmp_path / "whole", root).table)
    assert {name.count(".") for name in watched.found} == {0, 1}


def changed(path):
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(raw)


def emptied(path):
    path.write_bytes(b"")


@pytest.mark.parametrize("how", [changed, emptied])
def test_a_stage_file_that_changed_is_refused_and_the_same_command_goes_on(
    how, staged, small, watched, tmp_path, monkeypatch
):
    up = StageSearch._up

    def damaged(search):
        up(search)
        how(search.report.table / search.solves[12].place)

    with monkeypatch.context() as patch:
        patch.setattr(StageSearch, "_up", damaged)
        with pytest.raises(CorruptTableError, match="is not as luckbase wrote it; run the command"):
            by(tmp_path, workers=1)
    solved = by(tmp_path, workers=1)
    assert 0 < solved.kept < staged.states and len(set(watched.solved)) == len(watched.solved)
    assert files_of(solved.table) == files_of(staged.table)


# --- several searches of one table ---

OTHER_ROOT, WIDE_ROOT = (tiny().parse(words)[None] for words in (OTHER, WIDE))


@pytest.fixture(scope="module")
def alone(staged, whole, tmp_path_factory):
    """The files of searches below OTHER and WIDE, each in a table of its own, by one_piece."""
    found = {}
    for one_piece, wide in ((0, staged), (10**6, whole)):
        with pytest.MonkeyPatch.context() as patch:
            cut_small(patch)
            other = by(tmp_path_factory.mktemp("other"), OTHER_ROOT, one_piece=one_piece)
        found[one_piece] = files_of(other.table) | files_of(wide.table)
    return found


def test_a_stopped_search_goes_on_after_another_has_solved_part_of_it(
    alone, small, watched, tmp_path
):
    """Each has its own files, whoever comes first."""
    with pytest.raises(KeyboardInterrupt), stopped_after(10):
        by(tmp_path, workers=1)
    (table,) = tmp_path.glob("*/*/*")
    left = read_manifest(Folder(table), table)
    watched.solved.clear()
    by(tmp_path, OTHER_ROOT)
    solved = by(tmp_path)
    assert solved.manifest.complete and not list(table.glob("shards/*"))
    assert files_of(solved.table) == alone[0]
    assert left.files and not set(watched.solved) & set(left.files)


@pytest.mark.parametrize("one_piece", [0, 10**6])
def test_a_file_that_is_lost_is_solved_again_and_other_searches_stay_done(
    one_piece, alone, small, watched, tmp_path
):
    roots = OTHER_ROOT, WIDE_ROOT
    made = [by(tmp_path / "grown", root, one_piece=one_piece) for root in roots]
    lost = min(name for name, entry in made[0].manifest.files.items()
               if entry.part == made[0].goal.part)  # fmt: skip
    (made[0].table / made[0].manifest.files[lost].place).unlink()
    again = by(tmp_path / "grown", roots[1], one_piece=one_piece)
    assert again.states == 0
    again = by(tmp_path / "grown", roots[0], one_piece=one_piece)
    assert again.manifest.complete and files_of(again.table) == alone[one_piece]
    assert again.states == made[0].manifest.files[lost].rows


def test_force_of_one_of_several_searches_leaves_the_others_as_they_are(
    alone, small, watched, tmp_path
):
    first, second = (by(tmp_path, root) for root in (OTHER_ROOT, WIDE_ROOT))
    watched.solved.clear()
    solved = by(tmp_path, OTHER_ROOT, force=True)
    assert solved.manifest.complete and files_of(solved.table) == alone[0]
    assert {name.partition("/")[0] for name in watched.solved} == {first.goal.part}
    assert first.goal.part != second.goal.part


def test_states_that_two_searches_hold_have_one_answer(small, tmp_path):
    """They are rows of both, the same to the bit."""
    made = [by(tmp_path, root) for root in (OTHER_ROOT, WIDE_ROOT)]
    with solving.open_table(made[1].table) as table:
        drawn = [np.concatenate(list(part.draw(part.rows, 0))) for part in table.parts]
        first = {state.tobytes() for state in drawn[0]}
        shared = np.array([state for state in drawn[1] if state.tobytes() in first])
        assert 0 < len(shared) < min(map(len, drawn))
        values = [part.get_many(shared)[0].tobytes() for part in table.parts]
        assert values == [table.get_many(shared)[0].tobytes()] * 2
        assert check_files(table) == [] and check_residuals(table, None).faults == 0


def test_force_of_a_search_that_was_never_begun_leaves_others_as_they_are(small, tmp_path):
    """Also where it does not come to its end."""
    solved = by(tmp_path, OTHER_ROOT)
    with pytest.raises(SearchLimitError):
        by(tmp_path, WIDE_ROOT, force=True, max_states=300)
    manifest = read_manifest(storage_at(solved.table), solved.table)
    assert manifest.done == solved.manifest.done and manifest.files == solved.manifest.files


# --- lost machines ---


def test_what_ran_when_a_machine_was_lost_is_not_waited_for(staged, small, tmp_path, monkeypatch):
    wait_one, lost = Threads.wait_one, list[Any]()

    def loses(workers, seconds):
        assert workers._tasks or not workers._events.empty()  # else it would wait without end
        event = wait_one(workers, seconds)
        if isinstance(event, FindReceipt) and not lost:
            lost.append(event)
            raise PayoffsLostError("lost")
        return event

    monkeypatch.setattr(Threads, "wait_one", loses)
    assert files_of(by(tmp_path, workers=2).table) == files_of(staged.table) and lost


def test_ray_workers_write_the_same_bytes_also_where_one_dies(
    staged, small, tmp_path, ray_cluster, monkeypatch
):
    """A Ray worker kills itself in its first shard, once."""
    died = tmp_path / "died"

    def deadly(*given):  # goes to the workers as it is written here
        if not died.exists():
            died.touch()
            os._exit(1)
        yield from nodes.run(*given)

    monkeypatch.setattr(nodes, "run", deadly)
    solved = by(tmp_path / "search", workers=2, address=ray_cluster)
    assert solved.ray and died.exists()
    assert files_of(solved.table) == files_of(staged.table)
    assert (solved.states, solved.shards) == (staged.states, staged.shards)
    assert not list(solved.table.glob("shards/*"))
    import ray

    assert not ray.is_initialized()
