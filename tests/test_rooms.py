"""The house's walls: who may import whom."""

from __future__ import annotations

import ast
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NEVER = {
    "solver": {"ray", "pyarrow", "typer", "rich", "matplotlib", "cluster", "jobs", "tests"},
    "cluster": {"typer", "rich", "matplotlib", "jobs", "tests"},
    "jobs": {"tests", "ray"},
}
ONLY_THESE_KNOW_RAY = {f"cluster/run/{name}.py" for name in ("driver", "worker", "session")}


def imported(path: Path) -> set[str]:
    """The packages that a file imports, anywhere in it: our rooms by their names, others by the
    top one."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
            if node.module == "luckbase":
                names = [f"luckbase.{alias.name}" for alias in node.names]
        for name in names:
            top, _, rest = name.partition(".")
            found.add(rest.partition(".")[0] if top == "luckbase" else top)
    return found


def test_nothing_is_imported_by_a_rooms_name_alone() -> None:
    """A notebook may have a solver.py of its own."""
    for path in [*FILES, *sorted((ROOT / "tests").rglob("*.py"))]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            tops = {name.partition(".")[0] for name in names}
            assert not tops & set(NEVER), path


FILES = [path for room in NEVER for path in sorted((ROOT / room).rglob("*.py"))]


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_room_does_not_know_what_it_must_not(path: Path) -> None:
    name = path.relative_to(ROOT)
    assert not imported(path) & NEVER[name.parts[0]]
    if "ray" in imported(path):
        assert str(name) in ONLY_THESE_KNOW_RAY


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_module_says_what_it_is_and_stays_short(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert ast.get_docstring(ast.parse(text)), "no docstring"
    assert text.count("\n") <= 400


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
