"""The suites that measure how far coarse boards are off, on a small board."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import bench
from tests.bench import coarsening

SMALL_BOARD = """
game = "press-your-luck"
[outcomes]
"whammy" = "1/6"
"500" = "1/6"
"1000" = "1/6"
"2000" = "1/6"
"500 + spin" = "1/6"
"1500 + spin" = "1/6"
[rules]
max_whammies = 1
[solve]
score_cap = 2000
"""


def test_the_suite_measures_and_labels_what_it_extrapolates(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A small board in place of the real one: the same table, twin of the one in the docs."""
    board = tmp_path / "small.toml"
    board.write_text(SMALL_BOARD)
    case = coarsening.Case(500, 3, ((500, "5"), (500, "all"), (1000, "6")))
    monkeypatch.setattr(coarsening, "CASES", (case,))
    monkeypatch.setattr(coarsening, "SEARCHED", "scores=0,1000,2000 earned=0,2,0")
    monkeypatch.setattr(coarsening, "SEARCHES", ((500, "all"), (500, "5"), (1000, "6")))
    monkeypatch.setattr(coarsening, "SAMPLE", 500)
    monkeypatch.setattr(coarsening, "LEVELS_TO_GO_ON_FROM", 3)
    bench.main(["coarsen", str(board), "--results", str(tmp_path / "r")])
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    searches = [line for line in lines if len(line) > 2 and line[2].isdecimal()][:3]
    assert [line[0] for line in searches] == ["$500,", "$500,", "$1000,"]
    assert "(+0.0000)" in searches[0] and int(searches[1][3]) < int(searches[0][3])
    exact = [line for line in lines if line[:2] == ["$500,", "all"] and line[2] in "123"]
    assert len(exact) == 3
    assert all(float(line[3]) == float(line[5]) == float(line[7]) == 0 for line in exact)
    coarse = [line for line in lines if line[:2] == ["$500,", "5"] and line[2] in "123"]
    assert len(coarse) == 3 and all(float(line[3]) > 0 for line in coarse)
    assert sum("extrapolated" in line for line in lines) == 3
    assert [p.name for p in (tmp_path / "r").iterdir()] == ["press-your-luck"]


def test_the_far_suite_compares_the_roots_and_all_below_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a small board, three spins in place of eight; a table that is not coarse is not off."""
    board = tmp_path / "small.toml"
    board.write_text(SMALL_BOARD)
    monkeypatch.setattr(coarsening, "FAR", 3)
    monkeypatch.setattr(coarsening, "FINE_UNIT", 500)
    roots = ("scores=0,2000,1000 earned=0,3,0", "scores=0,0,1000 earned=0,1,2")
    monkeypatch.setattr(coarsening, "ROOTS", roots)
    for unit, outcomes, same in ((500, "all", True), (1000, "6", False)):
        monkeypatch.setattr(coarsening, "FAR_UNIT", unit)
        monkeypatch.setattr(coarsening, "FAR_OUTCOMES", outcomes)
        bench.main(["far", str(board), "--results", str(tmp_path / "r")])
        lines = [line.split() for line in capsys.readouterr().out.splitlines()]
        root = [line for line in lines if line[:2] in (["1", "2"], ["2", "2"])]
        assert len(root) == 2
        assert all((abs(float(line[4])) < 2e-4) == same for line in root)
        levels = [line for line in lines if line[:1] in (["1"], ["2"], ["3"]) and line[1] != "2"]
        errors = [float(line[2]) for line in levels if line[0] in "123" and len(line) == 8]
        assert len(errors) == 3 and all((error < 1e-5) == same for error in errors)
