"""Comments name their sources: pages that this repository has, by anchors that exist."""

import re
import shlex
from pathlib import Path

import pytest

from luckbase.jobs.app import run
from tests.places import ROOT, product_files
from tests.test_words import strings

ELSEWHERE = re.compile(
    r"(?i:games?'?s?'?[ _]pages?\b|\bthe[ _]seed('s|s)?\b(?!\.))|\bDESIGN\b"
    r"|shared/(games|seeds|boards)"
)
"""What only those who wrote this house have seen."""
HERE = Path(__file__)


def texts():
    """Every text that we wrote."""
    result = [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")]
    for folder in ("solver", "cluster", "jobs", "luckbase", "tests", "boards", "docs", "results"):
        for ending in ("py", "toml", "md"):
            result += (ROOT / folder).rglob(f"*.{ending}")
    return [path for path in result if path.is_file() and path != HERE]


def anchors(page):
    """The anchors of a page's headings, as GitHub makes them."""
    heads = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def test_no_comment_refers_to_a_page_that_the_repository_does_not_have():
    there = texts()
    assert len(there) > 200
    for path in there:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            assert not ELSEWHERE.search(line), f"{path.relative_to(ROOT)}:{number}: {line.strip()}"


def test_every_source_that_is_named_exists():
    known = anchors(ROOT / "docs/numbers.md")
    named = 0
    for path in texts():
        for anchor in re.findall(r"numbers\.md#([\w-]+)", path.read_text(encoding="utf-8")):
            named += 1
            assert anchor in known, f"{path.relative_to(ROOT)}: #{anchor}"
    assert named >= 25


MISTAKES = ROOT / "docs/how-to/troubleshooting.md"


def test_every_sentence_of_the_page_stands_in_the_code():
    code, quoted = "\n".join(text for path in product_files() for _, text in strings(path)), 0
    for row in re.findall(r"^\| (`.*?) \|", MISTAKES.read_text(encoding="utf-8"), re.MULTILINE):
        for sentence in re.findall(r"`([^`]+)`", row):
            for piece in re.split(r"…|\.\.\.", sentence):
                words = piece.strip(" ;:,()")
                if len(words) > 3:
                    quoted += 1
                    assert words in code, f"no such sentence any more: {words}"
    assert quoted > 40


# --- drawn charts are what the commands beside them draw ------------------------------------------

CHARTS = ROOT / "docs/how-to/charts.md"
COMMANDS = re.findall(
    r"^luckbase (chart press-your-luck/.*) --out (press-your-luck-.*\.png)$",
    CHARTS.read_text(encoding="utf-8"),
    re.MULTILINE,
)
SOLVES = re.findall(
    r"^luckbase (solve press-your-luck/.*)$", CHARTS.read_text(encoding="utf-8"), re.MULTILINE
)


def test_every_drawn_chart_of_the_page_has_its_command():
    shown = set(re.findall(r"pictures/(press-your-luck-.*?\.png)", CHARTS.read_text("utf-8")))
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
