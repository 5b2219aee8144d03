"""Compiled code is kept by version, in a folder that nobody else may write to."""

import json
import os
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numba
import numpy
import pytest

from luckbase.solver import compiled
from tests.places import ROOT
from tests.shared import python

HELPER = """
from luckbase.solver.compiled import njit, types

FACTOR = 3

@njit(types.int64(types.int64))
def times(x):
    return FACTOR * x
"""
KERNEL = """
from luckbase.solver.compiled import njit, types
from luckbase.solver.policies.a_helper import times

@njit(types.int64(types.int64))
def first(x):
    return times(x) + 1

def made(k):
    @njit(types.int64(types.int64))
    def inner(x):
        return times(x) + k
    return inner

second, third = made(10), made(100)
"""
RUN = """
import json
from luckbase.solver.search import a_kernel as m
each = m.first, m.second, m.third, m.times
print(json.dumps([[f(2) for f in each], [sum(f.made.stats.cache_misses.values()) for f in each]]))
"""


def run(checkout, cache):
    """Return the results of the functions, and how many were compiled."""
    env = {"PYTHONPATH": str(checkout), "NUMBA_CACHE_DIR": str(cache)}
    done = python("-c", RUN, cwd=checkout, env=env)
    return json.loads(done.stdout)


def test_no_change_of_code_meets_what_was_compiled_before(tmp_path):
    """The helper is in another file, which numba itself does not notice."""
    checkout, cache = tmp_path / "there", tmp_path / "cache"
    shutil.copytree(
        ROOT / "luckbase", checkout / "luckbase", ignore=shutil.ignore_patterns("__py*")
    )
    helper = checkout / "luckbase/solver/policies/a_helper.py"
    helper.write_text(HELPER)
    (checkout / "luckbase/solver/search/a_kernel.py").write_text(KERNEL)
    assert run(checkout, cache) == [[7, 16, 106, 6], [1] * 4]
    assert run(checkout, cache) == [[7, 16, 106, 6], [0] * 4]
    helper.write_text(HELPER.replace("FACTOR = 3", "FACTOR = 5"))
    assert run(checkout, cache) == [[11, 20, 110, 10], [1] * 4]
    assert len(list((cache / "luckbase").iterdir())) == 2


@pytest.fixture
def fresh(monkeypatch, tmp_path):
    """A root of its own, and nothing remembered."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    compiled.cache_folder.cache_clear()
    yield tmp_path / "cache/luckbase"
    compiled.cache_folder.cache_clear()


def test_what_is_changed_while_a_process_runs_is_not_kept(fresh, monkeypatch):
    """It may have imported some files before the change and some after."""
    assert compiled.cache_folder().parent == fresh
    compiled.cache_folder.cache_clear()
    newest = max(file.stat().st_mtime for file in Path(compiled.__file__).parent.rglob("*.py"))
    monkeypatch.setattr(compiled, "_STARTED", newest - 1)
    assert compiled.cache_folder() is None


@pytest.mark.parametrize("module", [numba, numpy])
def test_another_version_is_another_folder(module, monkeypatch):
    sources = [Path(compiled.__file__)]
    before = compiled.version_hash(sources)
    assert compiled.version_hash(sources) == before
    monkeypatch.setattr(module, "__version__", "0.0")
    assert compiled.version_hash(sources) != before


def writable(root):
    root.mkdir(parents=True)
    root.chmod(0o770)


def linked(root):
    root.parent.mkdir()
    (root.parent / "elsewhere").mkdir(mode=0o700)
    root.symlink_to(root.parent / "elsewhere")


def a_file(root):
    root.parent.mkdir()
    root.write_text("not a folder")


@pytest.mark.parametrize("make", [writable, linked, a_file])
def test_a_folder_that_is_not_safe_is_left_alone_and_the_next_is_taken(
    make, fresh, monkeypatch, tmp_path
):
    make(fresh)
    monkeypatch.setattr(compiled, "cache_roots", lambda: iter([fresh, tmp_path / "next"]))
    assert compiled.cache_folder().parent == tmp_path / "next"
    assert (tmp_path / "next").stat().st_mode & 0o777 == 0o700
    assert fresh.is_file() or not list(fresh.iterdir())


def test_the_folder_of_a_version_has_to_be_safe_too(fresh, monkeypatch, tmp_path):
    folder = compiled.cache_folder()
    folder.chmod(0o777)
    compiled.cache_folder.cache_clear()
    monkeypatch.setattr(compiled, "cache_roots", lambda: iter([fresh, tmp_path / "next"]))
    assert compiled.cache_folder().parent == tmp_path / "next"


def test_a_folder_of_another_user_is_not_used_and_without_any_nothing_is_kept(fresh, monkeypatch):
    fresh.mkdir(parents=True, mode=0o700)
    monkeypatch.setattr(compiled.os, "getuid", lambda: os.geteuid() + 1)
    monkeypatch.setattr(compiled, "cache_roots", lambda: iter([fresh]))
    assert compiled.cache_folder() is None

    @compiled.njit(compiled.types.int64(compiled.types.int64))
    def add(x):
        return x + 1

    assert add(1) == 2 and not list(fresh.rglob("*"))


def aged(path, days):
    path.mkdir(parents=True, mode=0o700)
    (path / "f-1.py311.1.nbc").write_bytes(b"x")
    then = time.time() - days * 86400
    os.utime(path, (then, then))
    return path


def test_a_new_folder_makes_old_ones_go_and_those_in_use_stay(fresh):
    used = compiled.cache_folder()
    os.utime(used, (0, 0))
    compiled.cache_folder.cache_clear()
    assert compiled.cache_folder() == used
    assert used.stat().st_mtime > time.time() - 3600
    old, recent = aged(fresh / "old", 31), aged(fresh / "recent", 29)
    compiled.prune(fresh)
    assert not old.exists() and recent.exists() and used.exists()
    assert {path.name for path in fresh.iterdir()} == {used.name, "recent"}


def test_many_may_prune_at_once(fresh):
    for k in range(100):
        aged(fresh / f"version-{k}", 31)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(compiled.prune, [fresh] * 16))
    assert not list(fresh.iterdir())
