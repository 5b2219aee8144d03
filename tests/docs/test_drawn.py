"""The drawn charts in the documentation are what the commands beside them draw."""

import re
import shlex

import pytest

from luckbase.jobs.app import run
from tests.places import ROOT

PAGE = ROOT / "docs/how-to/charts.md"
COMMANDS = re.findall(
    r"^luckbase (chart press-your-luck/.*) --out (press-your-luck-.*\.png)$",
    PAGE.read_text(encoding="utf-8"),
    re.MULTILINE,
)
SOLVES = re.findall(
    r"^luckbase (solve press-your-luck/.*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE
)


def test_every_drawn_chart_of_the_page_has_its_command():
    shown = set(re.findall(r"pictures/(press-your-luck-.*?\.png)", PAGE.read_text("utf-8")))
    assert shown == {name for _, name in COMMANDS} and len(shown) == 2
    assert all((ROOT / "docs/pictures" / name).stat().st_size < 400_000 for name in shown)


@pytest.mark.slow
def test_drawn_charts_are_those_of_the_whole_table(tmp_path):
    """42.9 million states; the bytes are those of the version of vl-convert in constraints.txt."""
    results = ["--results", str(tmp_path / "results")]
    for words in SOLVES:
        assert run([*shlex.split(words), *results]) == 0
    for words, name in COMMANDS:
        assert run([*shlex.split(words), "--out", str(tmp_path / name), *results]) == 0
        assert (tmp_path / name).read_bytes() == (ROOT / "docs/pictures" / name).read_bytes()
