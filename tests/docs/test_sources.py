"""Comments name their sources: pages that this repository has, by anchors that exist."""

import ast
import re
from pathlib import Path

from tests.places import ROOT, parsed

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


def said():
    """Every text of the product's code, pieces of one sentence joined."""
    result = []
    for folder in ("solver", "cluster", "jobs"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(parsed(path)):
                if isinstance(node, ast.JoinedStr):
                    parts = [p.value if isinstance(p, ast.Constant) else "…" for p in node.values]
                    result.append("".join(map(str, parts)))
                elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                    result.append(node.value)
    return "\n".join(result)


def test_every_sentence_of_the_page_stands_in_the_code():
    code, quoted = said(), 0
    for row in re.findall(r"^\| (`.*?) \|", MISTAKES.read_text(encoding="utf-8"), re.MULTILINE):
        for sentence in re.findall(r"`([^`]+)`", row):
            for piece in re.split(r"…|\.\.\.", sentence):
                words = piece.strip(" ;:,()")
                if len(words) > 3:
                    quoted += 1
                    assert words in code, f"no such sentence any more: {words}"
    assert quoted > 40
