"""Compiled code is kept by what is compiled: neither too long nor too short."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numba
import pytest

from luckbase.solver import compiled
from luckbase.solver.games.press_your_luck import rules as compiled_rules

ROOT = Path(__file__).parents[2]

HELPER = '''"""Words."""
import numba as nb

FACTOR = 3

@nb.njit("int64(int64)", cache=True)
def times(x):
    """Words."""
    return FACTOR * x
'''
KERNEL = '''"""Words."""
import numba as nb
{imports}

@nb.njit("int64(int64)", cache=True)
def first(x):
    return times(x) + 1

def made(k):
    @nb.njit("int64(int64)", cache=True)
    def inner(x):
        return times(x) + k
    return inner

second, third = made(10), made(100)
'''
RUN = """
import json
from luckbase.solver.graph import a_kernel
import a_game
each = [f for m in (a_kernel, a_game) for f in (m.first, m.second, m.third, m.times)]
print(json.dumps([[f(2) for f in each], [sum(f.stats.cache_misses.values()) for f in each]]))
"""


def write(checkout: Path, author: Path) -> None:
    """A checkout with a kernel and its helper in other rooms of ours, and somebody's own game with
    a helper beside it."""
    shutil.copytree(
        ROOT / "luckbase", checkout / "luckbase", ignore=shutil.ignore_patterns("__py*")
    )
    solver = checkout / "luckbase/solver"
    (solver / "policy/a_helper.py").write_text(HELPER)
    (solver / "graph/a_kernel.py").write_text(
        KERNEL.format(imports="from luckbase.solver.policy.a_helper import times")
    )
    author.mkdir()
    (author / "a_helper.py").write_text(HELPER)
    (author / "a_game.py").write_text(
        KERNEL.format(imports="import luckbase.solver\nfrom a_helper import times")
    )


def run(checkout: Path, author: Path, cache: Path) -> tuple[list[int], list[int]]:
    """What the functions give, and how many were compiled: ours, then the author's."""
    done = subprocess.run(
        [sys.executable, "-c", RUN], cwd=author, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": f"{checkout}{os.pathsep}{author}",
             "NUMBA_CACHE_DIR": str(cache)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    answers, misses = json.loads(done.stdout)
    return answers, misses


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_a_change_of_code_is_compiled_and_nothing_else_is(tmp_path: Path) -> None:
    """The helper is in another file, which numba itself does not notice."""
    checkout, author, cache = tmp_path / "there", tmp_path / "author", tmp_path / "cache"
    write(checkout, author)
    solver = checkout / "luckbase/solver"
    assert run(checkout, author, cache) == ([7, 16, 106, 6] * 2, [1] * 8)

    checkout = checkout.rename(tmp_path / "elsewhere")
    solver = checkout / "luckbase/solver"
    for helper in (solver / "policy/a_helper.py", author / "a_helper.py"):
        edit(helper, "Words", "Other words,\n\nand more of them")
    for kernel in (solver / "graph/a_kernel.py", author / "a_game.py"):
        edit(kernel, "@nb.njit", "# more is said here\n# of this\n\n@nb.njit")
        edit(kernel, "    # more is said here\n# of this\n\n@nb.njit", "    # more\n    @nb.njit")
    assert run(checkout, author, cache) == ([7, 16, 106, 6] * 2, [0] * 8)

    edit(solver / "policy/a_helper.py", "FACTOR = 3", "FACTOR = 5")
    assert run(checkout, author, cache) == ([11, 20, 110, 10, 7, 16, 106, 6], [1] * 4 + [0] * 4)
    edit(author / "a_helper.py", "FACTOR = 3", "FACTOR = 4")
    assert run(checkout, author, cache) == ([11, 20, 110, 10, 9, 18, 108, 8], [0] * 4 + [1] * 4)
    edit(author / "a_game.py", "(x) + 1", "(x) + 2")
    answers, misses = run(checkout, author, cache)
    assert answers == [11, 20, 110, 10, 10, 18, 108, 8]
    assert misses == [0] * 4 + [1, 1, 1, 0]


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A home of its own, and nothing remembered."""
    remembered = (compiled._own_key, compiled._own_source, compiled._own_file,
                  compiled._made_with, compiled._usable)  # fmt: skip
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    for each in remembered:
        monkeypatch.setattr(compiled, each.__name__, compiled.cache(each.__wrapped__))
    return tmp_path / "cache/luckbase"


def test_our_functions_are_kept_by_their_modules_key() -> None:
    folder = Path(compiled_rules.transition._cache.cache_path)
    assert folder.name == compiled._own_key(compiled_rules.__name__)
    assert folder.parent in list(compiled.homes())


def test_what_a_kernel_is_compiled_of_is_known() -> None:
    kernel = "luckbase.solver.games.press_your_luck.kernel"
    known = compiled._closure(kernel, compiled._own_file(kernel))  # type: ignore[arg-type]
    for name in (
        "games.press_your_luck.choosing",
        "games.press_your_luck.rules",
        "game.transition",
    ):
        assert f"luckbase.solver.{name}" in known
    assert "luckbase.solver.graph.game_graph" not in known
    assert all(name.startswith("luckbase.solver") for name in known)


@pytest.mark.parametrize("ingredient", ["numba", "llvmlite", "numpy", "processor"])
def test_another_compiler_or_processor_is_another_folder(
    ingredient: str, fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = compiled._own_key(compiled_rules.__name__)
    if ingredient == "processor":
        monkeypatch.setattr(numba.core.config, "CPU_NAME", "generic")
    else:
        monkeypatch.setattr(sys.modules[ingredient], "__version__", "0.0")
    for each in (compiled._own_key, compiled._made_with):
        each.cache_clear()
    assert compiled._own_key(compiled_rules.__name__) != before


def test_a_function_that_knows_nothing_of_ours_is_left_to_numba(tmp_path: Path) -> None:
    path = tmp_path / "foreign.py"
    path.write_text("import numba\nimport numpy as np\n")

    def foreign() -> None:
        """Said to be of that file."""

    foreign.__module__ = "foreign"
    assert compiled.Locator.from_function(foreign, str(path)) is None
    assert compiled.Locator.from_function(foreign, "<ipython-input-1>") is None


def aged(path: Path, days: float) -> Path:
    path.mkdir(parents=True)
    (path / "f-1.py311.1.nbc").write_bytes(b"x")
    then = time.time() - days * 86400
    os.utime(path, (then, then))
    return path


def test_a_new_folder_makes_old_ones_go_and_those_in_use_stay(fresh: Path) -> None:
    old, recent, used = (
        aged(fresh / f"luckbase.{name}", days)
        for name, days in (("old", 31), ("recent", 29), ("used", 31))
    )
    note = fresh / "sources/0123.py311"
    aged(note.parent, 31)
    note.write_text("{}")
    os.utime(note, (0, 0))
    assert compiled._usable(used) and old.exists()
    assert compiled._usable(fresh / "luckbase.new")
    assert not old.exists() and not note.exists()
    assert recent.exists() and used.exists() and note.parent.exists()
    assert {path.name for path in fresh.iterdir()} == {
        "luckbase.new", "luckbase.recent", "luckbase.used", "sources"}  # fmt: skip


def test_a_folder_that_goes_while_it_is_in_use_is_made_again(fresh: Path) -> None:
    function = compiled_rules.transition.py_func
    locator = compiled.Locator.from_function(function, function.__code__.co_filename)
    assert locator is not None
    folder = Path(locator.get_cache_path())
    shutil.rmtree(folder)
    locator.ensure_cache_path()
    assert folder.is_dir()


def test_many_may_prune_and_read_at_once(fresh: Path) -> None:
    texts = [f"import luckbase\nx = {k}\n".encode() for k in range(20)]

    for k in range(100):
        aged(fresh / f"luckbase.{k}", 31)

    def work(k: int) -> list[compiled.Source]:
        compiled.prune(fresh)
        return [compiled.read_source(text) for text in texts]

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(work, range(16)))
    assert all(each == found[0] for each in found)
    assert len({source.digest for source in found[0]}) == 20
    assert not list(fresh.glob("luckbase.*"))


def test_where_nothing_can_be_written_the_next_home_is_taken(
    fresh: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    blocked = tmp_path / "blocked"
    blocked.write_text("a file, not a folder")
    monkeypatch.setattr(compiled, "homes", lambda: iter([blocked, tmp_path / "next"]))
    function = compiled_rules.transition.py_func
    locator = compiled.Locator.from_function(function, function.__code__.co_filename)
    assert locator is not None
    assert Path(locator.get_cache_path()).parent == tmp_path / "next"
    assert list((tmp_path / "next/sources").iterdir())
