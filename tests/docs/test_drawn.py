"""The drawn charts in the documentation are what the commands beside them draw."""

import re
import shlex

import pytest

from luckbase.jobs.app import run
from tests.places import ROOT

PAGE = ROOT / "docs/how-to/charts.md"
COMMANDS = re.findall(
    r"^luckbase (chart boards/press-your-luck.*) --out (press-your-luck-.*\.png)$",
    PAGE.read_text(encoding="utf-8"),
    re.MULTILINE,
)
SOLVES = re.findall(
    r"^luckbase (solve boards/press-your-luck.*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE
)
ROOTS = re.compile(r"^cat > spins.csv <<'END'$(.*?)^END$", re.MULTILINE | re.DOTALL)


def test_every_drawn_chart_of_the_page_has_its_command():
    shown = set(re.findall(r"pictures/(press-your-luck-.*?\.png)", PAGE.read_text("utf-8")))
    assert shown == {name for _, name in COMMANDS} and len(shown) == 2
    assert all((ROOT / "docs/pictures" / name).stat().st_size < 400_000 for name in shown)


@pytest.mark.slow
def test_drawn_charts_are_those_of_the_whole_table(tmp_path):
    """45.8 million states; the bytes are those of the version of vl-convert in constraints.txt."""
    results = ["--results", str(tmp_path / "results")]
    board = str(ROOT / "boards/press-your-luck/1985-02.toml")
    (roots,) = ROOTS.findall(PAGE.read_text(encoding="utf-8"))
    (tmp_path / "spins.csv").write_text(roots.lstrip())
    for words in SOLVES:
        solve, _, *rest = shlex.split(words.replace("spins.csv", str(tmp_path / "spins.csv")))
        assert run([solve, board, *rest, *results]) == 0
    for words, name in COMMANDS:
        chart, _, *rest = shlex.split(words)
        assert run([chart, board, *rest, "--out", str(tmp_path / name), *results]) == 0
        assert (tmp_path / name).read_bytes() == (ROOT / "docs/pictures" / name).read_bytes()
