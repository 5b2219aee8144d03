"""Rules about the product's files that import-linter and ruff cannot check: who may import whom is
in pyproject.toml. And plain English wherever a person reads: the house style of CONTRIBUTING.md, as
far as a test can tell. Messages, help and docstrings of commands, documentation and page hold no
phrase of its list.
"""

import ast
import re
import subprocess
from graphlib import TopologicalSorter
from importlib.util import find_spec

import grimp
import pytest

from tests.places import ROOT, parsed, product_files
from tests.shared import python

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


def test_no_module_imports_itself_by_way_of_others():
    """Imports inside functions and for types alone count too."""
    graph = grimp.build_graph("luckbase")
    imports = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
    assert len(graph.modules) > 90 and graph.count_imports() > 500
    tuple(TopologicalSorter(imports).static_order())  # raises CycleError


GAMES = r"press.?your.?luck|goofspiel|jackpot|skunk|\bpig\b|shut the box"


def test_no_game_is_named_outside_its_folder():
    """In code; an example, in a docstring or of a command, or a measurement may name one."""
    for path in product_files():
        inner = path.is_relative_to(ROOT / "solver/games")
        folder = path.relative_to(ROOT).parts[2:3] if inner else ()
        family = {"pig": ("pig", "skunk")}.get(folder[0] if folder else "", folder)
        own = [re.sub(r"\W|_", "", name) for name in family]
        for word in _names_in(path):
            if re.search(GAMES, word, re.IGNORECASE) and not word.startswith("luckbase "):
                assert any(n in re.sub(r"\W|_", "", word.lower()) for n in own), f"{path}: {word}"


def _names_in(path):
    """Every name and every text in a file's code, docstrings left out."""
    tree = parsed(path)
    said = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said:
            yield node.value
        elif isinstance(node, ast.Name | ast.Attribute | ast.FunctionDef | ast.ClassDef):
            yield getattr(node, "id", None) or getattr(node, "attr", None) or node.name
        elif isinstance(node, ast.ImportFrom):
            yield from (node.module or "", *(alias.name for alias in node.names))


FLOWS = {
    "cluster.solve.full_table": "check charts scene matrix_games.simplex search.stages",
    "cluster.search.solve": "check charts scene search.stages search.sweep",
    "cluster.answers.lookup": "check charts scene matrix_games.simplex search.game_graph",
}
"""The first module of a solve, of a small search and of a question, and modules of `solver` that
importing it must not load."""


@pytest.mark.parametrize("start", FLOWS)
def test_a_flow_loads_what_it_runs(start):
    script = f"import sys, luckbase.{start}; print(*sys.modules)"
    done = python("-c", script)
    found = done.stdout.split()
    assert "luckbase.solver.game.game" in found
    for name in FLOWS[start].split():
        module = f"luckbase.solver.{name}"
        assert find_spec(module) and module not in found


def test_nothing_large_is_tracked():
    """Tables, caches and virtual environments stay out: a push of them is refused whole."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("not a git checkout")
    names = [name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]
    assert [name for name in names if (ROOT / name).stat().st_size > 1_000_000] == []
    assert [name for name in names if ".venv" in name or "__pycache__" in name] == []
