"""Rules about the product's files that import-linter and ruff cannot check.

Who may import whom is in pyproject.toml, under [tool.importlinter] and banned-api.
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
    "cluster.search.solve": "check charts scene search.stages search.sweep search.explore",
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
