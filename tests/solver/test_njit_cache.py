"""Compiled code is kept by what is compiled: neither too long nor too short."""

import json
import os
import shutil
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numba
import numpy as np
import pytest

from luckbase.solver import njit
from luckbase.solver.games.press_your_luck import game as press_your_luck
from tests.places import ROOT
from tests.shared import python

KEPT = Path(press_your_luck.transition._cache.cache_path)
"""As it is before a test of this file chooses another place."""

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
from luckbase.solver.search import a_kernel
import a_game
each = [f for m in (a_kernel, a_game) for f in (m.first, m.second, m.third, m.times)]
print(json.dumps([[f(2) for f in each], [sum(f.stats.cache_misses.values()) for f in each]]))
"""


def write(checkout, author):
    """A checkout with a kernel and its helper in other rooms of ours, and somebody's own game with
    a helper beside it."""
    shutil.copytree(
        ROOT / "luckbase", checkout / "luckbase", ignore=shutil.ignore_patterns("__py*")
    )
    solver = checkout / "luckbase/solver"
    (solver / "policy/a_helper.py").write_text(HELPER)
    (solver / "search/a_kernel.py").write_text(
        KERNEL.format(imports="from luckbase.solver.policy.a_helper import times")
    )
    author.mkdir()
    (author / "a_helper.py").write_text(HELPER)
    (author / "a_game.py").write_text(
        KERNEL.format(imports="import luckbase.solver\nfrom a_helper import times")
    )


def run(checkout, author, cache):
    """What the functions give, and how many were compiled: ours, then the author's."""
    done = python(
        "-c",
        RUN,
        cwd=author,
        check=False,
        env={"PYTHONPATH": f"{checkout}{os.pathsep}{author}", "NUMBA_CACHE_DIR": str(cache)},
    )
    assert done.returncode == 0, done.stderr
    answers, misses = json.loads(done.stdout)
    return answers, misses


def edit(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_no_change_of_code_meets_what_was_compiled_before(tmp_path):
    """The helper is in another file, which numba itself does not notice."""
    checkout, author, cache = tmp_path / "there", tmp_path / "author", tmp_path / "cache"
    write(checkout, author)
    assert run(checkout, author, cache) == ([7, 16, 106, 6] * 2, [1] * 8)
    checkout = checkout.rename(tmp_path / "elsewhere")
    author = author.rename(tmp_path / "another")
    solver = checkout / "luckbase/solver"
    assert run(checkout, author, cache) == ([7, 16, 106, 6] * 2, [0] * 8)

    edit(author / "a_helper.py", "FACTOR = 3", "FACTOR = 4")
    assert run(checkout, author, cache) == ([7, 16, 106, 6, 9, 18, 108, 8], [0] * 4 + [1] * 4)
    edit(author / "a_game.py", "(x) + 1", "(x) + 2")
    answers, misses = run(checkout, author, cache)
    assert answers == [7, 16, 106, 6, 10, 18, 108, 8]
    assert misses == [0] * 4 + [1, 1, 1, 0]
    edit(solver / "policy/a_helper.py", "FACTOR = 3", "FACTOR = 5")
    assert run(checkout, author, cache) == ([11, 20, 110, 10, 10, 18, 108, 8], [1] * 8)


def test_what_is_changed_while_a_process_runs_is_not_kept(fresh, tmp_path):
    """It may have imported the helper before, and the kernel after."""
    game, helper = tmp_path / "a_game.py", tmp_path / "a_helper.py"
    game.write_text("import luckbase\nfrom a_helper import times\n")
    helper.write_text(HELPER)
    before = njit.key_of("a_game", game)
    assert before == njit.key_of("a_game", game)
    helper.write_text(HELPER.replace("FACTOR = 3", "FACTOR = 4"))
    keys = {njit.key_of("a_game", game) for _ in range(2)}
    assert len({before, *keys}) == 3
    helper.write_text(HELPER)
    assert njit.key_of("a_game", game) != before


@pytest.fixture
def fresh(monkeypatch, tmp_path):
    """A root of its own, and nothing remembered."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    for each in (njit._own_key, njit._made_with, njit._usable):
        monkeypatch.setattr(njit, each.__name__, njit.cache(each.__wrapped__))
    return tmp_path / "cache/luckbase"


def test_our_functions_are_kept_under_the_key_of_all_our_sources():
    folder = KEPT
    assert folder.name == press_your_luck.__name__
    key = njit.digest_of(njit.own_files(njit.PACKAGE))
    assert folder.parent.name == key
    assert folder.parents[1] in list(njit.cache_roots())


def test_what_is_kept_stays_ours_when_another_variable_of_numba_changes(monkeypatch):
    """It reads all of its variables again then, and ours is not among them any more."""
    monkeypatch.setenv("NUMBA_NUM_THREADS", "2")
    numba.core.config.reload_config()
    again = numba.njit(cache=True)(press_your_luck.player_up.plain)
    assert Path(again._cache.cache_path) == KEPT


def test_a_game_is_compiled_of_what_it_imports_from_beside_it_and_its_package(tmp_path):
    files = {
        "pack/__init__.py": "", "pack/game.py": "from . import rules\nfrom .deep import far",
        "pack/rules.py": "import beside, numpy", "pack/deep/far.py": "from ..rules import x",
        "pack/deep/__init__.py": "", "beside.py": "import luckbase.solver", "foreign.py": "",
    }  # fmt: skip
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    known = njit._sources("pack.game", tmp_path / "pack/game.py")
    names = {str(file.relative_to(tmp_path)) for file in known.values()}
    assert names == files.keys() - {"foreign.py"}


@pytest.mark.parametrize("ingredient", ["numba", "llvmlite", "numpy", "processor", "machine"])
def test_another_compiler_or_processor_is_another_folder(ingredient, fresh, monkeypatch):
    before = njit._own_key(press_your_luck.__name__)
    if ingredient == "processor":
        monkeypatch.setattr(numba.core.config, "CPU_NAME", "generic")
    elif ingredient == "machine":
        monkeypatch.setattr(njit.binding, "get_host_cpu_name", lambda: "another")
    else:
        monkeypatch.setattr(sys.modules[ingredient], "__version__", "0.0")
    for each in (njit._own_key, njit._made_with):
        each.cache_clear()
    assert njit._own_key(press_your_luck.__name__) != before


def test_an_installed_function_that_knows_nothing_of_ours_is_left_to_numba(tmp_path):
    path = tmp_path / "site-packages/foreign.py"
    path.parent.mkdir()
    path.write_text("import numba\nimport numpy as np\n")

    def foreign():
        """Said to be of that file."""

    foreign.__module__ = "foreign"
    assert njit.Locator.from_function(foreign, str(path)) is None
    assert njit.Locator.from_function(foreign, "<ipython-input-1>") is None
    path.write_text("import luckbase\n")
    assert njit.Locator.from_function(foreign, str(path)) is not None


def aged(path, days):
    path.mkdir(parents=True)
    (path / "f-1.py311.1.nbc").write_bytes(b"x")
    then = time.time() - days * 86400
    os.utime(path, (then, then))
    return path


def test_a_new_folder_makes_old_ones_go_and_those_in_use_stay(fresh):
    old, recent, used = (
        aged(fresh / f"luckbase.{name}", days)
        for name, days in (("old", 31), ("recent", 29), ("used", 31))
    )
    assert njit._usable(used) and old.exists()
    assert njit._usable(fresh / "luckbase.new")
    assert not old.exists()
    assert recent.exists() and used.exists()
    assert {path.name for path in fresh.iterdir()} == {
        "luckbase.new", "luckbase.recent", "luckbase.used"}  # fmt: skip


def test_a_folder_that_goes_while_it_is_in_use_is_made_again(fresh):
    function = press_your_luck.transition.py_func
    locator = njit.Locator.from_function(function, function.__code__.co_filename)
    assert locator is not None
    folder = Path(locator.get_cache_path())
    locator.ensure_cache_path()
    shutil.rmtree(folder.parent)
    locator.ensure_cache_path()
    assert folder.is_dir()


def test_two_signatures_kept_at_once_are_two_files(fresh, monkeypatch):
    """By two processes, of which neither has seen what the other one keeps."""
    function = press_your_luck.player_up.plain
    one, two, after = (njit.njit(None)(function) for _ in range(3))
    states = [np.zeros(20, kind) for kind in (np.int64, np.int32)]
    keep = one._cache._cache_file._save_data

    def keep_after_the_other(name, data):
        two(states[1])
        keep(name, data)

    monkeypatch.setattr(two._cache._cache_file, "_load_index", dict)
    monkeypatch.setattr(one._cache._cache_file, "_save_data", keep_after_the_other)
    one(states[0])
    assert len(list(fresh.rglob("*.nbc"))) == 2
    for state in states:
        after(state)
    assert [args[0].dtype.name for args in after.signatures] == ["int64", "int32"]


def test_many_may_prune_at_once(fresh):
    for k in range(100):
        aged(fresh / f"luckbase.{k}", 31)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(njit.prune, [fresh] * 16))
    assert not list(fresh.glob("luckbase.*"))


def test_where_nothing_can_be_written_the_next_folder_is_taken(fresh, monkeypatch, tmp_path):
    blocked = tmp_path / "blocked"
    blocked.write_text("a file, not a folder")
    monkeypatch.setattr(njit, "cache_roots", lambda: iter([blocked, tmp_path / "next"]))
    function = press_your_luck.transition.py_func
    locator = njit.Locator.from_function(function, function.__code__.co_filename)
    assert locator is not None
    assert Path(locator.get_cache_path()).parents[1] == tmp_path / "next"
