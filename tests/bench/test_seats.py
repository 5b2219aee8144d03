"""The suite that says what a seat is worth, on a small board."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import luckbase
from tests import bench
from tests.bench import seats
from tests.bench.test_coarsening import SMALL_BOARD


def test_the_suite_says_what_is_measured_and_what_is_extrapolated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And its numbers are those of the table, expected over where the questions lead."""
    board, scores = tmp_path / "small.toml", (0, 1000, 1000)
    begins = "[start]\nscores = [0, 1000, 1000]\nquestions = 1\n[rules]"
    board.write_text(SMALL_BOARD.replace("[rules]", begins))
    cases = seats.Case(500, "all", 2000, 2), seats.Case(1000, "6", 2000, 3)
    monkeypatch.setattr(seats, "CASES", cases)
    monkeypatch.setattr(seats, "SCORES", (scores,))
    bench.main(["seats", str(board), "--results", str(tmp_path / "r")])
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    found = {row[0]: row for row in rows if row and (row[0].isdigit() or row[0] == "all")}
    assert len(found) == seats.MOST + 1 and "all outcomes" in " ".join(found["2"])
    assert " ".join(found["3"]).endswith("error of fewer spins")
    assert "extrapolated" in found["4"] and "not measured" in " ".join(found["20"])
    assert found["1"][5] == "$500," and float(found["3"][5]) > 0
    read = luckbase.load_board(board, score_unit=500, frontier=2, score_cap=2000)
    with luckbase.open(read, in_memory=True) as table:
        right = seats.seats(table, scores)[2]
    assert [float(x) for x in found["2"][2:5]] == pytest.approx(right, abs=5e-4)


def test_a_line_goes_on_and_stays_chances() -> None:
    known = {n: np.array([0.5 - 0.1 * n, 0.2, 0.3 + 0.1 * n]) for n in range(1, 5)}
    assert seats.on_a_line(known, 5) == pytest.approx([0.0, 0.2, 0.8])
    assert seats.on_a_line(known, 9).sum() == pytest.approx(1) and seats.on_a_line(known, 9)[0] == 0
