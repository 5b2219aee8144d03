"""End to end: the same bytes whatever happens on the way (DESIGN 5.2, 5.3)."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import cluster
import solver
from cluster import driver, store
from cluster.driver import Progress, Solved
from cluster.manifest import read_manifest
from cluster.plan import Plan
from solver.errors import CorruptTableError, MemoryLimitError, RequestError

ROOT = Path(__file__).parents[1]
TINY = ROOT / "boards/press-your-luck/tiny.toml"
BOARD = solver.load_board(TINY, frontier=2)


def files(table: Path) -> dict[str, bytes]:
    """Every file of a table's tiers, by its name in it."""
    return {str(p.relative_to(table)): p.read_bytes() for p in sorted(table.rglob("*.parquet"))}


def leftovers(table: Path) -> list[Path]:
    return [*table.rglob("*.part"), *table.glob("scratch/*")]


def ledger(table: Path) -> dict[str, object]:
    """The manifest without what depends on the clock."""
    manifest = read_manifest(table)
    entries = {
        name: (e.tier, e.rows, e.row_group_rows, e.first_key, e.last_key, e.bytes, e.sha256)
        for name, e in manifest.files.items()
    }
    return {**vars(manifest), "files": entries}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return cluster.solve(BOARD, results=tmp_path_factory.mktemp("plain"), workers=1).table


@pytest.mark.parametrize("workers", [2, 3, 5])
def test_any_number_of_workers_gives_the_same_bytes(
    workers: int, undisturbed: Path, tmp_path: Path
) -> None:
    table = cluster.solve(BOARD, results=tmp_path, workers=workers).table
    assert files(table) == files(undisturbed)
    assert ledger(table) == ledger(undisturbed)
    assert not leftovers(table)


def test_a_complete_table_is_left_alone(undisturbed: Path) -> None:
    before = {p: p.stat().st_mtime_ns for p in undisturbed.rglob("*") if p.is_file()}
    again = cluster.solve(BOARD, results=undisturbed.parents[2])
    assert (again.shards, again.rows, again.table) == (0, 0, undisturbed)
    assert before == {p: p.stat().st_mtime_ns for p in undisturbed.rglob("*") if p.is_file()}


@pytest.mark.parametrize("after", [0, 1, 7, 20, 40])
def test_an_interrupted_solve_goes_on_where_it_was(
    after: int, undisturbed: Path, tmp_path: Path
) -> None:
    def stop(now: Progress) -> None:
        if now.shards >= after:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cluster.solve(BOARD, results=tmp_path, workers=2, on_progress=stop)
    (path,) = (p.parent for p in tmp_path.rglob("manifest.json"))
    finished = set(read_manifest(path).files)
    assert after <= len(finished) < len(BOARD_TIERS)
    solved = cluster.solve(BOARD, results=tmp_path, workers=2)
    assert solved.shards == len(BOARD_TIERS) - len(finished)
    assert files(path) == files(undisturbed)
    assert not leftovers(path)


BOARD_TIERS = solver.load_tiered_game(BOARD).tiers()


def test_kept_payoffs_that_are_gone_are_solved_again_and_committed_once(
    undisturbed: Path, tmp_path: Path
) -> None:
    def stop(now: Progress) -> None:
        if now.shards >= 30:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cluster.solve(BOARD, results=tmp_path, workers=1, on_progress=stop)
    (table,) = (p.parent for p in tmp_path.rglob("manifest.json"))
    before = {p: p.stat().st_mtime_ns for p in table.rglob("*.parquet")}
    committed = {store.tier_file(table, folder) for folder in read_manifest(table).files}
    shutil.rmtree(table / "scratch")
    solved = cluster.solve(BOARD, results=tmp_path, workers=1)
    assert solved.shards > len(BOARD_TIERS) - len(committed)
    assert all(p.stat().st_mtime_ns == before[p] for p in committed)
    assert files(table) == files(undisturbed)


CHILD = """
import sys, cluster, solver
board = solver.load_board(sys.argv[1], frontier=2)
cluster.solve(board, results=sys.argv[2], workers=2)
"""


def test_kill_9_at_any_moment_costs_no_tier_and_no_bit(undisturbed: Path, tmp_path: Path) -> None:
    rng = random.Random(0)
    command = [sys.executable, "-c", CHILD, str(TINY), str(tmp_path)]
    seen = 0
    for _ in range(6):
        process = subprocess.Popen(command, cwd=ROOT)
        while process.poll() is None and len(list(tmp_path.rglob("*.parquet"))) <= seen:
            time.sleep(0.005)
        time.sleep(rng.random() * 0.15)
        process.kill()
        process.wait()
        seen = len(list(tmp_path.rglob("*.parquet")))
    table = cluster.solve(BOARD, results=tmp_path, workers=2).table
    assert files(table) == files(undisturbed)
    assert ledger(table) == ledger(undisturbed)
    assert not leftovers(table)


def test_dying_between_any_two_steps_of_a_commit_loses_nothing(
    undisturbed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for step, name in enumerate(("rename", "manifest", "scratch")):
        results = tmp_path / name
        calls = {"n": 0}
        target, attribute = [
            (driver.store, "replace"), (driver, "write_manifest"), (driver.os, "replace"),
        ][step]  # fmt: skip
        real = getattr(target, attribute)

        def dies(*words: object, real: object = real, calls: dict[str, int] = calls) -> object:
            calls["n"] += 1
            if calls["n"] == 12:
                raise OSError(28, "No space left on device")
            return real(*words)  # type: ignore[operator]

        with monkeypatch.context() as patch:
            patch.setattr(target, attribute, dies)
            with pytest.raises(OSError, match="No space left"):
                cluster.solve(BOARD, results=results, workers=1)
        table = cluster.solve(BOARD, results=results, workers=1).table
        assert files(table) == files(undisturbed)


def test_what_does_not_fit_is_refused_before_anything_is_made_or_unmade(
    undisturbed: Path, tmp_path: Path
) -> None:
    with pytest.raises(MemoryLimitError, match="memory: the largest tier needs"):
        cluster.solve(BOARD, results=tmp_path, memory=1000)
    assert not list(tmp_path.iterdir())
    before = files(undisturbed)
    with pytest.raises(MemoryLimitError):
        cluster.solve(BOARD, results=undisturbed.parents[2], memory=1000, force=True)
    assert files(undisturbed) == before
    # A complete table asks for nothing.
    assert cluster.solve(BOARD, results=undisturbed.parents[2], memory=1000).shards == 0


def test_a_second_solve_of_the_same_table_is_refused_while_one_runs(tmp_path: Path) -> None:
    refused: list[str] = []

    def try_another(now: Progress) -> None:
        if not refused:
            with pytest.raises(RequestError, match="another solve") as found:
                cluster.solve(BOARD, results=tmp_path)
            refused.append(str(found.value))

    cluster.solve(BOARD, results=tmp_path, on_progress=try_another)
    assert refused


def test_a_damaged_file_of_a_table_that_is_not_finished_is_named(tmp_path: Path) -> None:
    def stop(now: Progress) -> None:
        if now.shards >= 10:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cluster.solve(BOARD, results=tmp_path, on_progress=stop)
    (table,) = (p.parent for p in tmp_path.rglob("manifest.json"))
    folder = sorted(read_manifest(table).files)[0]
    path = store.tier_file(table, folder)
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(CorruptTableError, match="--force") as found:
        cluster.solve(BOARD, results=tmp_path)
    assert str(path) in str(found.value)


def _solve_with_ray(results: Path, monkeypatch: pytest.MonkeyPatch) -> Solved:
    monkeypatch.setattr(Plan, "in_process", lambda self, workers: False)
    return cluster.solve(BOARD, results=results, workers=2)


def test_ray_workers_give_the_same_bytes_and_are_gone_afterwards(
    undisturbed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    solved = _solve_with_ray(tmp_path, monkeypatch)
    assert solved.ray
    assert files(solved.table) == files(undisturbed)
    import ray

    assert not ray.is_initialized()


def test_a_killed_ray_worker_costs_a_retry_and_no_state(
    undisturbed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first receipt names its worker's process, which is killed there and then."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    killed: list[int] = []
    real = driver._Run._commit

    def commit(self: driver._Run, receipt: driver.Receipt) -> None:
        real(self, receipt)
        if len(killed) < 2 and receipt.process not in killed:
            killed.append(receipt.process)
            os.kill(receipt.process, signal.SIGKILL)

    monkeypatch.setattr(driver._Run, "_commit", commit)
    solved = _solve_with_ray(tmp_path, monkeypatch)
    assert killed
    assert files(solved.table) == files(undisturbed)
