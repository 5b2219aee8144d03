"""The charts of Goofspiel: Table 1 of the paper by one command, a picture, refusals."""

import csv

import pytest

from luckbase.jobs.app import run
from tests.places import ROOT

POINTS = str(ROOT / "boards/goofspiel/points.toml")


@pytest.fixture(scope="module")
def table(table_of):
    return str(table_of(POINTS, cards=5))


def test_the_seeds_table_1_by_one_command(table, tmp_path, capsys):
    """Rhoads and Bartholdi 2012, Table 1, within one unit of the last printed digit."""
    path = tmp_path / "bids.csv"
    assert run(["chart", table, "--out", str(path)]) == 0
    rows = {(int(r["upcard"]), int(r["bid"])): r for r in csv.DictReader(path.open())}
    assert len(rows) == 25
    with (ROOT / "tests/published/goofspiel-table-1.csv").open() as file:
        printed = list(csv.reader(line for line in file if not line.startswith("#")))
    checked = 0
    for line in printed:
        if not line[0].strip().isdigit():
            continue
        bid, *chances = line
        for upcard, chance in enumerate(chances, 1):
            result = float(rows[upcard, int(bid)]["chance"])
            assert result == pytest.approx(float(chance), abs=1.5e-4), (bid, upcard)
            checked += 1
    assert checked == 25
    capsys.readouterr()
    assert run(["chart", table]) == 0
    assert capsys.readouterr().out.splitlines()[5].split()[0] == "5"


def test_the_picture(table, tmp_path):
    path = tmp_path / "bids.png"
    assert run(["chart", table, "--what", "upcard", "--out", str(path)]) == 0
    assert path.stat().st_size > 10_000
