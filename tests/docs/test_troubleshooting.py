"""The sentences that the pages quote are those that luckbase prints."""

import ast
import re

from tests.places import ROOT, parsed

PAGE = ROOT / "docs/how-to/troubleshooting.md"


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
    for row in re.findall(r"^\| (`.*?) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE):
        for sentence in re.findall(r"`([^`]+)`", row):
            for piece in re.split(r"…|\.\.\.", sentence):
                words = piece.strip(" ;:,()")
                if len(words) > 3:
                    quoted += 1
                    assert words in code, f"no such sentence any more: {words}"
    assert quoted > 40
