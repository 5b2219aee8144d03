"""Compiling is said while it goes on, and no estimate of time left counts it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import numba
import pytest

from luckbase import cluster, solver
from luckbase.cluster.run.options import Progress
from luckbase.jobs.terminal import compiling, render
from tests.shared import first_solves

ROOT = Path(__file__).parents[2]


def test_a_first_run_says_that_it_compiles_and_a_second_does_not(run_folder: Path) -> None:
    first, second = (said["err"] for said in first_solves(run_folder))
    assert first.startswith("compiling, the first time only …\n")
    assert first.count("compiling, the first") == 1 and "compiling, the first" not in second


def test_only_compiling_is_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(compiling, "A_MOMENT", 0.0)
    looked = looks(monkeypatch)
    before = compiling.seconds()
    with compiling.watch():
        looked(3)
    assert compiling.seconds() == before and capsys.readouterr().err == ""
    with compiling.watch():
        looked(2)  # it listens

        @numba.njit
        def add(x: int) -> int:
            return x + 1

        add(1)
        looked(2)
    assert compiling.seconds() - before > 0
    assert capsys.readouterr().err == "compiling, the first time only …\n"


def looks(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Waits until the thread that watches has looked so many times more, however busy the machine
    is."""
    turn = threading.Semaphore(0)

    class Counted(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            turn.release()
            return super().wait(timeout)

    monkeypatch.setattr(compiling.threading, "Event", Counted)

    def wait(times: int) -> None:
        while turn.acquire(blocking=False):
            pass
        for _ in range(times):
            assert turn.acquire(timeout=60)

    return wait


def test_the_time_left_is_at_the_pace_of_work_alone() -> None:
    now = Progress(5, 20, 250, 1000, 40.0)
    assert render.left_seconds(now, 0.0) == pytest.approx(120)
    assert render.left_seconds(now, 30.0) == pytest.approx(30)
    assert render.left_seconds(now, 40.0) is None
    assert render.left_seconds(Progress(1, 400, 1, 10**6, 5.0), 0.0) is None  # no pace yet
    gone_on = Progress(9, 20, 750, 1000, 40.0, before=500)
    assert render.left_seconds(gone_on, 0.0) == pytest.approx(40)
    assert render.left_seconds(Progress(1, 4, 0, 0, 5.0), 0.0) == pytest.approx(15)
    assert render.left_seconds(Progress(0, 0, 0, 0, 0.0, compiling=True), 0.0) is None


@pytest.mark.parametrize("board", ["press-your-luck/tiny", "jackpot/tiny"])
def test_a_solve_and_a_search_say_when_they_compile(board: str, tmp_path: Path) -> None:
    seen: list[Progress] = []
    made = solver.load_board(ROOT / f"boards/{board}.toml")
    if board.startswith("jackpot"):
        cluster.solve_below(made, results=tmp_path, workers=1, on_progress=seen.append)
    else:
        cluster.solve(made, results=tmp_path, workers=1, on_progress=seen.append)
    assert [now.compiling for now in seen[:2]] == [True, False]
    assert not any(now.compiling for now in seen[1:])


def test_the_lines_of_progress_take_compiling_in_their_stride(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(render, "LINE_SECONDS", 0.0)
    with render.progress("tiny") as show:
        show(Progress(0, 0, 0, 0, 0.0, compiling=True))
        show(Progress(5, 20, 250, 1000, 40.0))
    assert capsys.readouterr().err == (
        "tiny: 25 %  6 states/s, 5 of 20 tiers, about 2 min 00 s left\n"
    )


def test_the_bar_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("FORCE_COLOR", "1")
    with render.progress("tiny") as show:
        show(Progress(0, 0, 0, 0, 0.0, compiling=True))
        time.sleep(0.3)
        show(Progress(5, 20, 250, 1000, 40.0))
    assert "compiling, the first time only" in capsys.readouterr().err
