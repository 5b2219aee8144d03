"""``luckbase coarsen``: what it prints, the file that it writes, and its refusals."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from luckbase.jobs.app import run
from luckbase.solver import load_board
from luckbase.solver.games.press_your_luck.board import outcome_distribution
from tests.places import BOARDS

FEBRUARY = str(BOARDS / "press-your-luck/1985-02.toml")
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


def said(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    assert run(["coarsen", *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_it_says_what_is_kept_and_the_chances(capsys: pytest.CaptureFixture[str]) -> None:
    found = said(capsys, FEBRUARY, "--outcomes", "5", "--set", "score_unit=1000")
    facts = {fact["name"]: fact for fact in found["facts"]}
    assert [name for name, fact in facts.items() if not fact["kept"]] == ["its standard deviation"]
    assert facts["whammy"]["board"] == pytest.approx(1 / 6)
    assert facts["money plus a spin"]["coarse"] == pytest.approx(71 / 243)
    chances = {name: Fraction(chance) for name, chance in found["outcomes"].items()}
    assert sum(chances.values()) == 1 and len(chances) == 5
    money = {int(n): p for n, p in chances.items() if n.isdigit()}
    mean = sum(n * p for n, p in money.items()) / sum(money.values())
    assert float(mean) == pytest.approx(facts["mean money without a spin"]["board"])


def test_people_read_a_table_and_the_file_is_the_same_spin(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = tmp_path / "coarse.toml"
    assert run(["coarsen", FEBRUARY, "--outcomes", "8", "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "1985-02 on 8 outcomes" in printed and printed.count("kept") == 7
    assert "amounts move by $101.59 a spin" in printed
    wanted = outcome_distribution(load_board(FEBRUARY, outcomes=8))  # type: ignore[arg-type]
    assert outcome_distribution(load_board(out)) == wanted  # type: ignore[arg-type]


def test_no_file_is_written_over_but_one_that_it_wrote(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    board, other, out = (tmp_path / f"{name}.toml" for name in ("board", "other", "out"))
    board.write_text(SMALL_BOARD)
    other.write_text(SMALL_BOARD + "# my own, from which I ran it by luckbase coarsen.\n")
    (tmp_path / "link.toml").symlink_to(board)
    before = {path: path.read_bytes() for path in (board, other)}
    words = ["coarsen", str(board), "--set", "score_unit=500", "--outcomes"]
    assert run([*words, "4", "--out", str(out)]) == 0
    first = out.read_text()
    assert run([*words, "5", "--out", str(out)]) == 0 and out.read_text() != first
    for name, said in (
        ("board", "is a board that is read"), ("link", "is a board that is read"),
        ("other", "luckbase coarsen did not write it"), ("no/where", "there is no folder"),
    ):  # fmt: skip
        capsys.readouterr()
        assert run([*words, "5", "--out", str(tmp_path / f"{name}.toml")]) == 2
        assert said in capsys.readouterr().err
    again = ["coarsen", str(out), "--outcomes", "4", "--out", str(out)]
    assert run(again) == 2 and "is a board that is read" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in (board, other)} == before
    assert len(list(tmp_path.iterdir())) == 4


def test_a_write_that_fails_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from luckbase.jobs import written

    written.write(tmp_path / "x", b"old")

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(written.os, "fsync", full)
    with pytest.raises(OSError):
        written.write(tmp_path / "x", b"new")
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [("x", b"old")]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([FEBRUARY, "--outcomes", "4"], "4 are too few"),
        ([FEBRUARY, "--outcomes", "0"], "0 is not one of its values"),
        ([FEBRUARY, "--outcomes", "many"], "Invalid value for '--outcomes'"),
        ([FEBRUARY, "--outcomes", "6", "--set", "outcomes=7"], "given by --outcomes"),
        ([FEBRUARY, "--outcomes", "6", "--out", "x.csv"], "a board file ends in .toml"),
        ([str(BOARDS / "pig/tiny.toml"), "--outcomes", "6"], "pig has no outcomes of a spin"),
    ],
)
def test_what_can_not_be_is_one_sentence(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["coarsen", *words]) == 2
    error = capsys.readouterr().err
    assert sentence in error and len(error.splitlines()) == 1


def test_a_file_takes_chances_of_nine_digits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    board = tmp_path / "fine.toml"
    board.write_text(
        'game = "press-your-luck"\n[outcomes]\n"whammy" = "1/999999937"\n"500" = "1/999999929"\n'
        f'"750" = "1/3"\n"999" = "{1 - 1 / Fraction(999999937) - Fraction(1, 3)}"\n'
    )
    assert run(["coarsen", str(board), "--outcomes", "3", "--out", str(tmp_path / "x.toml")]) == 2
    assert not (tmp_path / "x.toml").exists()
