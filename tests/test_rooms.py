"""The house's walls: who may import whom."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NEVER = {
    "solver": {"ray", "pyarrow", "typer", "rich", "matplotlib", "cluster", "jobs", "tests"},
    "cluster": {"typer", "rich", "matplotlib", "jobs", "tests"},
    "jobs": {"tests", "ray"},
}
ONLY_THESE_KNOW_RAY = {"cluster/run/ray.py", "cluster/run/nodes.py"}


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imports(path: Path) -> list[ast.Import | ast.ImportFrom]:
    """The imports of a file, anywhere in it: to look for them takes longer than to read it."""
    found = ast.walk(parsed(path))
    return [node for node in found if isinstance(node, ast.Import | ast.ImportFrom)]


def imported(path: Path) -> set[str]:
    """The packages that a file imports, anywhere in it: our rooms by their names, others by the
    top one."""
    found: set[str] = set()
    for node in imports(path):
        names = [alias.name for alias in node.names]
        if isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
            if node.module == "luckbase":
                names = [f"luckbase.{alias.name}" for alias in node.names]
        for name in names:
            top, _, rest = name.partition(".")
            found.add(rest.partition(".")[0] if top == "luckbase" else top)
    return found


def test_nothing_is_imported_by_a_rooms_name_alone() -> None:
    """A notebook may have a solver.py of its own."""
    named = re.compile(rf"^\s*(?:from|import)\b.*\b(?:{'|'.join(NEVER)})\b", re.M)
    ours = re.compile(
        r"^\s*from (?:luckbase|tests)[\w.]* import .*|(?:luckbase|tests)\.[\w.]+", re.M
    )
    for path in [*FILES, *sorted((ROOT / "tests").rglob("*.py"))]:
        if not named.search(ours.sub("", path.read_text())):
            continue  # to parse them all takes ten seconds
        for node in imports(path):
            names = [alias.name for alias in node.names]
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            tops = {name.partition(".")[0] for name in names}
            assert not tops & set(NEVER), path


FILES = [path for room in NEVER for path in sorted((ROOT / room).rglob("*.py"))]


def test_a_room_does_not_know_what_it_must_not() -> None:
    for path in FILES:
        assert not imported(path) & NEVER[path.relative_to(ROOT).parts[0]], path


def test_only_workers_of_a_cluster_know_ray() -> None:
    knowing = {str(path.relative_to(ROOT)) for path in FILES if "ray" in imported(path)}
    assert knowing <= ONLY_THESE_KNOW_RAY


def test_a_module_says_what_it_is() -> None:
    assert [path for path in FILES if not ast.get_docstring(parsed(path))] == []


def modules() -> dict[str, Path]:
    """Our modules by name, a package by its own."""
    files = [*FILES, *sorted((ROOT / "luckbase").glob("*.py"))]
    found = {}
    for path in files:
        parts = path.relative_to(ROOT).with_suffix("").parts
        parts = parts if parts[0] == "luckbase" else ("luckbase", *parts)
        found[".".join(parts).removesuffix(".__init__")] = path
    return found


def import_graph(modules: dict[str, Path]) -> dict[str, set[str]]:
    """Which of our modules each one imports, anywhere in it, also for types alone."""
    graph = {}
    for name, path in modules.items():
        found: set[str] = set()
        for node in imports(path):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif node.module:
                inner = {f"{node.module}.{alias.name}" for alias in node.names}
                found |= {each if each in modules else node.module for each in inner}
        graph[name] = (found & modules.keys()) - {name}
    return graph


def _circle(graph: dict[str, set[str]]) -> list[str]:
    """The modules of a circle of imports; none where there is none."""
    try:
        tuple(TopologicalSorter(graph).static_order())
    except CycleError as error:
        circle: list[str] = error.args[1]
        return circle
    return []


MAY_RUN_WHAT_THEY_READ = {"cluster/run/nodes.py", "cluster/run/ray.py", "solver/compiled.py"}
"""What workers and the driver send each other, over Ray, which does the same; what a process tells
the one that it started to compile with it."""


def test_nothing_that_is_read_from_a_table_is_run() -> None:
    names = {"pickle", "cloudpickle", "marshal", "shelve", "dill", "joblib"}
    running = {str(path.relative_to(ROOT)) for path in FILES if imported(path) & names}
    assert running <= MAY_RUN_WHAT_THEY_READ


def test_no_module_imports_itself_by_way_of_others() -> None:
    graph = import_graph(modules())
    assert len(graph) > 100 and sum(map(len, graph.values())) > 600
    assert _circle(graph) == []


def test_the_rule_finds_a_circle(tmp_path: Path) -> None:
    for name, text in (
        ("a", "import m.b"),
        ("b", "def f():\n    from m import c"),
        ("c", "from m.a import x"),
    ):
        (tmp_path / f"{name}.py").write_text(text + "\n")
    modules = {f"m.{name}": tmp_path / f"{name}.py" for name in "abc"}
    assert sorted(set(_circle(import_graph(modules)))) == ["m.a", "m.b", "m.c"]


GAMES = r"press.?your.?luck|goofspiel|jackpot|skunk|\bpig\b|shut the box"


def test_no_game_is_named_outside_its_folder() -> None:
    """In code; an example, in a docstring or of a command, or a measurement may name one."""
    for path in FILES:
        inner = path.is_relative_to(ROOT / "solver/games")
        folder = path.relative_to(ROOT).parts[2:3] if inner else ()
        family = {"pig": ("pig", "skunk")}.get(folder[0] if folder else "", folder)
        own = [re.sub(r"\W|_", "", name) for name in family]
        for word in _names_in(path):
            if re.search(GAMES, word, re.IGNORECASE) and not word.startswith("luckbase "):
                assert any(n in re.sub(r"\W|_", "", word.lower()) for n in own), f"{path}: {word}"


def _names_in(path: Path) -> Iterator[str]:
    """Every name and every text in a file's code, docstrings left out."""
    tree = parsed(path)
    said = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said:
            yield node.value
        elif isinstance(node, ast.Name | ast.Attribute | ast.FunctionDef | ast.ClassDef):
            yield getattr(node, "id", None) or getattr(node, "attr", None) or node.name  # type: ignore[union-attr]
        elif isinstance(node, ast.ImportFrom):
            yield from (node.module or "", *(alias.name for alias in node.names))


FLOWS = {
    "cluster.run.tiers": "check charts scene matrix_game.simplex game.faults search.stages",
    "cluster.search.solve": "check charts scene search.stages search.sweep search.explore",
    "cluster.table.lookup": "check charts scene matrix_game.simplex search.game_graph",
}
"""Where a solve, a small search and a question begin, and what of `solver` they do without."""


def loaded(start: str, modules: dict[str, Path]) -> set[str]:
    """The modules that are loaded where one is imported, itself too: by what stands at the top."""
    found, waiting = set[str](), [start]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            for node in parsed(modules[name]).body:
                if isinstance(node, ast.ImportFrom) and node.module:
                    inner = [f"{node.module}.{alias.name}" for alias in node.names]
                    waiting += {node.module, *inner} & modules.keys()
    return found


@pytest.mark.parametrize("start", FLOWS)
def test_a_flow_loads_what_it_runs(start: str) -> None:
    found = loaded(f"luckbase.{start}", modules())
    assert f"luckbase.{start}" in found and "luckbase.solver.game.game" in found
    assert found.isdisjoint(f"luckbase.solver.{name}" for name in FLOWS[start].split())


@pytest.mark.parametrize("name", ["solver", "cluster", "jobs"])
def test_the_rule_catches_a_forbidden_import(name: str, tmp_path: Path) -> None:
    path = tmp_path / "wrong.py"
    path.write_text("def f():\n    from luckbase.jobs.app import run\n    import tests.x\n")
    assert imported(path) & NEVER[name]


def test_nothing_large_is_tracked() -> None:
    """Tables, caches and virtual environments stay out: a push of them is refused whole."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("not a git checkout")
    names = [name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]
    assert [name for name in names if (ROOT / name).stat().st_size > 1_000_000] == []
    assert [name for name in names if ".venv" in name or "__pycache__" in name] == []
