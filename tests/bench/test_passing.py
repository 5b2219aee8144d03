"""When to pass: rounds are won as often as the chances say; the page and its numbers."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

import luckbase
from luckbase.cluster.table.table import tiers_in_memory
from luckbase.solver import load_layout
from tests.bench.passing import RIVALS, behind, rounds
from tests.places import BOARDS

PUBLISHED = Path(__file__).parents[2] / "results" / "published"
PAGE, LEADS = PUBLISHED / "press-your-luck-passing.md", PUBLISHED / "press-your-luck-passing.csv"
TINY = BOARDS / "press-your-luck" / "tiny.toml"


def test_rounds_are_won_and_passed_as_often_as_the_chances_say() -> None:
    board, games = luckbase.load_board(TINY, frontier=2), 20_000
    with tiers_in_memory(load_layout(board)) as table:
        played = rounds(table, games)
        simulated = luckbase.simulate(board, table, games, distribution=True)
    assert simulated.starts == pytest.approx(played.share)
    error = [each + 1e-9 for each in simulated.error]
    for own, right, off in zip(played.seats.mean(axis=0), simulated.mean, error, strict=True):
        assert own == pytest.approx(right, abs=6 * off)
    (passes,) = (each for each in simulated.distribution or () if each.what == "passes")
    assert passes.stderr
    assert played.passes.mean() == pytest.approx(passes.mean, abs=6 * passes.stderr)
    there, passed = map(sum, zip(*played.decisions.values(), strict=True))
    assert 0 < passed < there
    assert passed <= played.passes.sum()  # at the cap passing is no choice


def test_spans_behind_are_read_from_the_chart() -> None:
    assert behind({"passes": "-8000..-6000 7000..9000"}) == "6,000 to 8,000"
    assert behind({"passes": "-5000..-5000 3000..4000"}) == "5,000"
    assert behind({"passes": "7000..9000"}) == ""


def test_the_page_says_what_the_published_leads_do() -> None:
    with LEADS.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["third_score"] == "0"]
    found = {(row["spins"], int(row["rival_score"])): row["pass_from"] for row in rows}
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    start = lines.index("## At what lead to pass")
    table = [re.split(r" ?\| ?", line)[1:-1] for line in lines[start + 4 :]]
    table = table[: next(i for i, cells in enumerate(table) if not cells)]
    assert len(table) == len({spins for spins, _ in found}) > 3
    for spins, *leads in table:
        for rival, lead in zip(RIVALS, leads, strict=True):
            right = found[spins, rival]
            assert lead == (f"{int(right):,}" if right else "–")
