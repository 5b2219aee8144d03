"""A tier in several files: the same rows however it was cut, by any workers, after any stop."""

from itertools import count, pairwise
from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest

import luckbase
from luckbase.cluster.answers.verify import verify
from luckbase.cluster.solve import full_table, worker
from luckbase.cluster.solve.driver import solve_table
from luckbase.cluster.solve.options import Options
from luckbase.cluster.solve.plan import BOUNDARY, make_plan, make_plans
from luckbase.cluster.store import format as table_format
from luckbase.cluster.store.format import tier_files
from luckbase.cluster.store.manifest import DECISIONS, TIERS
from luckbase.cluster.store.storage import Folder
from luckbase.cluster.store.writer import read_manifest
from luckbase.jobs.app import run
from luckbase.solver.errors import WorkerError
from tests import solving
from tests.e2e.stopped import solve_until
from tests.e2e.test_solve import files
from tests.places import TINY
from tests.shared import plain

ROWS = 900
"""Of a file of the tests: blocks of 42 are 2,058 rows of a tier of three players."""


def board(frontier=1, **settings):
    return solving.load_board(TINY, frontier=frontier, **settings)


def cut(monkeypatch, rows):
    monkeypatch.setattr(table_format, "FILE_ROWS", rows)
    make_plan.cache_clear()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Each tier in one file."""
    return solving.solve_board(board(), results=tmp_path_factory.mktemp("whole"), workers=1).table


@pytest.fixture
def small(monkeypatch):
    cut(monkeypatch, ROWS)
    yield
    make_plan.cache_clear()


@pytest.fixture(scope="module")
def in_files(tmp_path_factory):
    """The same table, its tiers in several files."""
    with pytest.MonkeyPatch.context() as patch:
        cut(patch, ROWS)
        return solving.solve_board(board(), results=tmp_path_factory.mktemp("cut"), workers=1).table


@pytest.fixture
def seconds(monkeypatch):
    """A second lies between two looks at the clock."""
    monkeypatch.setattr(full_table, "time", SimpleNamespace(perf_counter=count().__next__))


def rows_of(table):
    """All rows in the order of their keys."""
    entries = read_manifest(Folder(table), table).of_part(TIERS)
    return [row for e in entries for row in pq.ParquetFile(table / e.place).read().to_pylist()]


def test_a_tier_above_the_bound_is_cut_on_blocks_and_one_below_is_not(monkeypatch):
    layout = solving.load_layout(board())
    for bound in (1, 41, 43, 900, 2057, 2058, 1 << 24):
        monkeypatch.setattr(table_format, "FILE_ROWS", bound)
        for tier in layout.tiers():
            found, block = tier_files(layout, tier), layout.block_rows(tier)
            ends = [(file.start, file.stop) for file in found]
            assert ends[0][0] == 0 and ends[-1][1] == layout.rows(tier)
            assert all(one[1] == next_[0] for one, next_ in pairwise(ends))
            assert all(start < stop and not start % block for start, stop in ends)
            assert all(stop - start <= max(bound + block, block) for start, stop in ends)
            assert (len(found) == 1) == (layout.rows(tier) <= max(bound, block))
            assert (".000." in found[0].name) == (len(found) > 1)


def test_rows_do_not_depend_on_the_cut(whole, in_files):
    assert len(files(in_files)) == 36 > len(files(whole)) == 20
    assert rows_of(in_files) == rows_of(whole)


def test_bytes_do_not_depend_on_workers_or_stops(in_files, small, tmp_path):
    for workers in (1, 3):
        solve_until(board(), tmp_path / str(workers), 7, workers=workers)
        again = solving.solve_board(board(), results=tmp_path / str(workers), workers=workers)
        assert again.kept > 0
        assert files(again.table) == files(in_files)


def test_threads_write_the_files_of_a_tier_at_once(in_files, small, tmp_path):
    """As a worker of a cluster does, which does not see the folder and sends all bytes."""
    layout = solving.load_layout(board())
    plan = make_plan(layout)
    shard = next(shard for shard in plan.shards if len(shard.files) > 2)
    location = worker.TableLocation(tmp_path / "nowhere", "0123abcd")
    job = full_table.SolveTier(
        board=layout.game.board, location=location, tier=shard.work[0], part=0, names=shard.files
    )  # fmt: skip
    _, (receipt, content) = job.run(
        worker.Task(shard.index, job, 1, cores=3), (), None, lambda: False
    )
    assert len(content) == len(shard.files)
    there = receipt.arrived(Folder(tmp_path / "here"), content)
    for name, file in there.files.items():
        assert file.place != name
        assert (tmp_path / "here" / file.place).read_bytes() == files(in_files)[name]
    broken = {place: b"!" + raw[1:] for place, raw in content.items()}
    with pytest.raises(WorkerError, match="changed on the way"):
        receipt.arrived(Folder(tmp_path / "there"), broken)


def _spent(solved):
    return sum(entry.seconds["solve"] for entry in solved.manifest.files.values())


def test_one_file_that_is_lost_is_the_only_one_written_again(in_files, small, tmp_path):
    table = solving.solve_board(board(), results=tmp_path, workers=1).table
    lost = sorted((table / TIERS).glob("*.001.*.parquet"))[3]
    before = {p: p.stat().st_mtime_ns for p in table.rglob("*.parquet") if p != lost}
    lost.unlink()
    assert run(["status", str(table)]) == 1
    again = solving.solve_board(board(), results=tmp_path, workers=1)
    assert again.shards == 1 and len(again.damaged) == 1
    assert all(p.stat().st_mtime_ns == then for p, then in before.items())
    assert files(again.table) == files(in_files)


def test_float64_is_read_back_from_all_files(small, tmp_path):
    exact = board(1, payoffs="float64")
    solved = solving.solve_board(exact, results=tmp_path, workers=1)
    grown = solving.solve_board(board(2, payoffs="float64"), results=tmp_path, workers=2)
    assert (grown.read, grown.again) == (solved.states, 0)
    at_once = solving.solve_board(board(2, payoffs="float64"), results=tmp_path / "once", workers=1)
    assert files(grown.table) == files(at_once.table)


def test_a_question_an_export_and_a_copy_read_all_files(whole, in_files, tmp_path, capsys):
    said = []
    for table in (whole, in_files):
        out = tmp_path / f"{len(said)}.csv"
        assert run(["export", str(table), "scores_1=1000", "--out", str(out)]) == 0
        capsys.readouterr()
        assert run(["query", str(table), "scores=0,1000,500", "earned=0,0,1"]) == 0
        said.append((out.read_bytes(), capsys.readouterr().out))
    assert said[0] == said[1] and len(said[0][0]) > 10_000
    assert run(["publish", str(in_files), str(tmp_path / "copy")]) == 0
    with solving.open_table(tmp_path / "copy") as copy:
        verdict = verify(copy, 200)
        assert verdict.ok and verdict.files == len(files(in_files))
    assert run(["diff", str(whole), str(in_files)]) == 0


def test_verify_names_a_file_that_the_manifest_has_lost(in_files, small):
    with solving.open_table(in_files) as table:
        assert table.manifest is not None
        name = sorted(table.manifest.files)[5]
        del table.manifest.files[name]
        table.parts[0].entries[:] = table.manifest.of_part(TIERS)
        verdict = verify(table, 0)
    assert f"{in_files / name}: is not in the manifest, which says complete" in verdict.faults


def test_decisions_stand_beside_tiers_in_several_files(small, seconds, tmp_path):
    solved = luckbase.solve(board(1, decisions=2), results=tmp_path, workers=1)
    assert all(entry.seconds["solve"] > 0 for entry in solved.manifest.files.values())
    kept = solved.manifest.of_part(TIERS)
    assert all({*e.seconds} == {"solve", "write"} and plain(e.place) == e.name for e in kept)
    assert _spent(solved) == pytest.approx(solved.solve_seconds, abs=0.1)
    names = [entry.name for entry in solved.manifest.of_part(TIERS)]
    assert any(".001." in name for name in names)
    assert not any(".001." in entry.name for entry in solved.manifest.of_part(DECISIONS))
    assert verify(solving.open_table(solved.table), 20).ok


@pytest.mark.parametrize(("workers", "payoffs"), [(1, "float32"), (3, "float32"), (2, "float64")])
def test_tiers_from_boundaries_have_the_same_bytes_also_after_a_stop(tmp_path, workers, payoffs):
    """As the nodes of a cluster solve them, which are handed no whole tiers of other whammies; in
    float64 what is there already is read back, and a boundary has no file to be read from."""
    layout = solving.load_layout(board(2, payoffs=payoffs))
    plans = make_plans(layout, workers, boundaries=True)
    assert BOUNDARY in {shard.work[1] for shard in plans[0].shards}
    whole = solving.solve_board(layout.game.board, results=tmp_path / "whole", workers=1).table

    def solve(**more):
        options = Options(results=tmp_path, workers=workers, **more)
        return solve_table(full_table.FullSolve(layout, options, plans))

    def stop(now):
        if now.shards >= 9:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        solve(on_progress=stop)
    solved = solve()
    assert solved.kept > 0 and solved.shards < len(plans[0].shards) - 9
    assert files(solved.table) == files(whole)
