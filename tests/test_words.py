"""Plain English wherever a person reads: the house style of CONTRIBUTING.md, as far as a test can
tell. Messages, help and docstrings of commands, documentation and page hold no phrase of its list.
"""

import ast
import re

from tests.places import ROOT, parsed

STYLE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
REFUSED = (
    r"\b(is|are) none of\b",
    r"(?<![Tt]here )(?<!where )\bis no (?!longer\b|more\b|less\b)\w+",
    r"\bold (habit|one costs)\b",
    r"\bright would be\b",
    r"\bknown here\b",
    r"\bstands? (there|in one)\b",
    r"\banew\b",
    r"\bin flight\b",
    r"\basked for\b",
    r"\basks for it\b",
    r"\b(is|are|be|was) told\b",
    r"\bcan not\b",
    r"\bof use\b",
    r"\b\d+ for \d+\b",
    r"\bhalf-way\b",
    r"\bit goes where\b",
    r"\bpercentage points?\b(?! \()",
    r"\b(he|she|his|him|her|hers)\b",
)
"""Each has an example in the table of CONTRIBUTING.md, with what to write in its place."""


def rows_of(heading):
    """The cells of the table behind a heading of CONTRIBUTING.md."""
    part = STYLE.split(f"\n### {heading}\n")[1].split("\n### ")[0].split("\n## ")[0]
    lines = [line for line in part.splitlines() if line.startswith("| ")][2:]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def docstrings(tree):
    """The ids of a module's docstrings, and of the texts behind its constants; not of commands'
    docstrings, which are their help."""
    return {
        id(each.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if not any("command" in ast.unparse(d) for d in getattr(node, "decorator_list", ()))
        for each in node.body
        if isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant)
    }


def strings(path):
    """(line, text) of a module's strings, "{}" for what is put in."""
    tree = parsed(path)
    hidden = docstrings(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = [each.value if isinstance(each, ast.Constant) else "{}" for each in node.values]
            yield node.lineno, "".join(map(str, parts))
            hidden |= {id(each) for each in node.values}
        elif isinstance(node, ast.Constant) and id(node) not in hidden:
            yield node.lineno, str(node.value)


def page_texts(path):
    """(line, text) of a file of the page, its comments left out."""
    text = re.sub(r"/\*.*?\*/|(?<!:)//[^\n]*|<!--.*?-->", lambda match: "\n" * match[0].count("\n"),
                  path.read_text(encoding="utf-8"), flags=re.DOTALL)  # fmt: skip
    yield from enumerate(text.splitlines(), start=1)


def doc_texts(path):
    """(line, text) of a page of the documentation, without the house style's own examples."""
    text = path.read_text(encoding="utf-8")
    if path.name == "CONTRIBUTING.md":
        before, style = text.split("\n## House style\n")
        text = before + "\n" * style.count("\n")
    yield from enumerate(re.sub(r"<!--.*?-->", "", text).splitlines(), start=1)


def everything():
    """(place, text) of all that a person reads."""
    modules = [p for room in ("solver", "cluster", "jobs") for p in (ROOT / room).rglob("*.py")]
    page = [*(ROOT / "jobs/web/templates").iterdir(), ROOT / "jobs/web/static/live.js"]
    docs = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    for paths, texts in ((modules, strings), (page, page_texts), (docs, doc_texts)):
        assert len(paths) >= 10
        for path in paths:
            for line, text in texts(path):
                yield f"{path.relative_to(ROOT)}:{line}", " ".join(text.split())


def test_no_text_that_a_person_reads_has_a_phrase_of_the_list():
    """All at once: three of pytest's workers would read the whole product for a part of them."""
    refused = re.compile("|".join(f"(?:{phrase})" for phrase in REFUSED))
    result = [f"{where}: {text[:120]}" for where, text in everything() if refused.search(text)]
    assert not result, "\n".join(result)


def test_the_house_style_has_an_example_of_each_phrase():
    """So each of them finds what it is for, and the table says what to write in its place."""
    examples = [row[0] for row in rows_of("Refused by a test")]
    for example in examples:
        assert any(re.search(phrase, example) for phrase in REFUSED), example
    for phrase in REFUSED:
        assert any(re.search(phrase, example) for example in examples), phrase
