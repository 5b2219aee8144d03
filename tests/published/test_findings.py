"""The script of the published findings runs on small boards, and prints what is published."""

import csv
import importlib.util
import itertools
import re
from pathlib import Path

import pytest

import luckbase
from tests.places import BOARDS, ROOT

FOLDER = ROOT / "results" / "published"
SPEC = importlib.util.spec_from_file_location("findings", FOLDER / "findings.py")
assert SPEC and SPEC.loader
findings = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(findings)
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


@pytest.fixture
def board(tmp_path, monkeypatch):
    """A board that is solved in a moment."""
    monkeypatch.chdir(tmp_path)
    Path("small.toml").write_text(SMALL_BOARD)
    return "small.toml"


def test_the_leads_for_a_win_and_for_money_are_those_of_the_page():
    page = (FOLDER / "press-your-luck-money.md").read_text(encoding="utf-8")
    rows = [row for row in findings.money(rivals=(6000,)) if row[0] == 1]
    assert [name for _, _, name, _ in rows] == ["win", "money", "a win for $10,000 and money"]
    for spins, rival, name, spans in rows:
        words = ", ".join(
            " to ".join(f"{int(lead):,}" for lead in span.split("..")) for span in spans.split()
        )
        assert f"{spins:5}  {rival:6,}  {name:28} {words}\n" in page


def test_the_leads_by_best_actions_alone_are_those_by_payoffs(tmp_path):
    result = []
    for options in ({"frontier": 2}, {"frontier": 1, "decisions": 2}):
        read = luckbase.load_board(BOARDS / "press-your-luck/tiny.toml", **options)
        solved = luckbase.solve(read, results=tmp_path / str(len(options)))
        with luckbase.open(solved.table) as table:
            result.append([*findings.passing(table)])
    assert result[0] == result[1] and any(row[-1] for row in result[0][1:])


def test_the_page_has_the_published_leads():
    with (FOLDER / "press-your-luck-passing.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["third_score"] == "0"]
    result = {(row["spins"], int(row["rival_score"])): row["passes"] for row in rows}
    lines = (FOLDER / "press-your-luck-passing.md").read_text(encoding="utf-8").splitlines()
    start = lines.index("## At which lead to pass")
    rows = itertools.takewhile(lambda line: line.startswith("|"), lines[start + 4 :])
    table = [re.split(r" ?\| ?", line)[1:-1] for line in rows]
    assert len(table) == len({spins for spins, _ in result}) > 3
    for spins, *leads in table:
        for rival, lead in zip(range(2000, 15_000, 2000), leads, strict=True):
            span = result[spins, rival].split(" ")[-1]
            below_the_cap = span.endswith(f"..{19_500 - rival}")
            assert lead == (f"{int(span.split('..')[0]):,}" if below_the_cap else "–")


def test_seats_are_measured_where_a_table_goes_and_extrapolated_beyond(board):
    """The numbers are those of the finest table; its error is measured against a finer one."""
    scores = (0, 1000, 1000)
    tables = (
        {"score_unit": 500, "outcomes": "all", "score_cap": 2000, "frontier": 2},
        {"score_unit": 1000, "outcomes": 6, "score_cap": 2000, "frontier": 3},
    )
    rows = [*findings.seats(board, tables, [scores])][1:]
    assert [row[1] for row in rows] == [*range(1, findings.MOST_SPINS + 1)]
    assert [row[-1] for row in rows[:4]] == ["500", "500", "1000", "extrapolated"]
    assert rows[1][5] == "" and float(rows[2][5]) > 0 and rows[3][5] == ""
    for row in rows:
        assert sum(map(float, row[2:5])) == pytest.approx(1, abs=2e-3)


def test_a_board_is_not_off_itself_and_a_coarser_one_is(board):
    rows = [*findings.coarser(board, 500, [(500, "all"), (500, 5), (1000, 6)])][1:]
    same, *others = [[float(number) for number in row[2:]] for row in rows]
    assert same == [0] * 5
    assert all(mean > 0 and mean <= high <= largest for mean, high, largest, *_ in others)


def test_the_gain_of_choosing_is_small_and_may_be_a_loss():
    names, row = findings.choosing(["1985-02"], score_unit=1000, score_cap=8000, frontier=1)
    result = dict(zip(names[:4], row[:4], strict=True)) | {"least": row[5]}
    assert result["spins"] == 1
    assert float(result["least"]) < 0 < float(result["mean"]) < float(result["most"])
