"""A declared function is compiled when it is called, for what it declares and nothing else."""

import importlib
import os
import pickle
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import types
from numba.core.types import abstract

from luckbase.solver import compiled, load_board
from luckbase.solver.compiled import ahead, beside, borrowed
from luckbase.solver.game.game import load_game
from luckbase.solver.game.rules import room_for
from luckbase.solver.games.press_your_luck import game
from luckbase.solver.njit import njit
from luckbase.solver.search.expand import expand
from tests.places import BOARDS, ROOT
from tests.shared import FIRST_CODE, first_solves, python

NUMBER = types.int64(types.int64)


def made():
    @njit(NUMBER, cache=False)
    def add(x):
        return x + 1

    @njit(types.int64(types.FunctionType(NUMBER), types.int64[::1]), cache=False)
    def call(function, numbers):
        return function(numbers[0]) + add(2)

    return add, call


def test_it_is_compiled_when_it_is_called_and_once():
    add, call = made()
    assert not add.overloads and not call.overloads
    assert call(add, np.array([5, 6])) == 9
    assert add(np.int32(7)) == 8 and add(True) == 2
    assert add.signatures == [(types.int64,)]
    assert add.nopython_signatures[0].return_type == types.int64


def test_what_is_borrowed_is_not_indexed_from_its_end():
    """Read or written, by one number or by two: below 0 lies what stands before it."""

    @njit(types.void(types.int64[::1], types.int64[:, ::1], types.int64), cache=False)
    def write(row, rows, i):
        row, rows = borrowed(row), borrowed(rows)
        row[0], rows[0, 0] = row[i], rows[i, 1]
        row[i], rows[i, 0] = 10, 11

    numbers = np.arange(10)
    write(numbers[2:4], numbers[4:].reshape(3, 2), -1)
    assert numbers.tolist() == [0, 10, 11, 3, 3, 5, 6, 7, 8, 9]


SEARCHES = """
import tempfile
import numba
from luckbase.cluster import solve_below
from luckbase.solver import load_board, load_game
from tests.places import BOARDS

assert numba.config.BOUNDSCHECK == 1
for game in ("press-your-luck", "goofspiel", "jackpot", "pig", "skunk"):
    board, root = load_board(BOARDS / game / "tiny.toml"), None
    if game == "press-your-luck":
        state = load_game(board).parse({"scores": "0,1000,2000", "earned": "0,2,1"})
        root = state.reshape(1, -1)
    for at_once in (0, 1 << 40):
        with tempfile.TemporaryDirectory() as folder:
            found = solve_below(board, root, results=folder, one_piece=at_once)
            print(game, at_once, found.states)
"""


@pytest.mark.slow  # all is compiled anew
def test_no_search_leaves_the_arrays_that_it_borrows(tmp_path):
    """numba looks at every index; by stages, and in one piece."""
    checked = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", SEARCHES], cwd=ROOT, env=os.environ | checked, text=True,
        capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 2 * 5


class Strict(np.ndarray):
    """An array that nobody indexes from its end."""

    def __getitem__(self, at):
        self._check(at)
        return super().__getitem__(at)

    def __setitem__(self, at, value):
        self._check(at)
        super().__setitem__(at, value)

    @staticmethod
    def _check(at):
        for index in at if isinstance(at, tuple) else [at]:
            first = index.start if isinstance(index, slice) else index
            assert first is None or first >= 0, at


@pytest.mark.parametrize("board", ["tiny", "1984-06-double", "1985-02"])
def test_the_rules_of_press_your_luck_do_not_index_from_the_end(board, monkeypatch):
    """The small twin: their transition in Python, at states all the way down from a root."""
    here = load_game(load_board(BOARDS / f"press-your-luck/{board}.toml"))
    states = here.parse({"scores": "0,1000,2000", "earned": "0,2,1"}).reshape(1, -1)
    monkeypatch.setattr(borrowed, "plain", lambda array: array.view(Strict))
    over = 0
    for _ in range(9):
        edges = expand(here, states)
        over += int(edges.terminal.sum())
        with compiled.in_python(beside=True):
            for x in range(len(states)):
                out = room_for(here.max_edges, here.field_count, here.players)
                count = here.transition.plain(here.numbers, states[x], out)
                if not edges.terminal[x]:
                    mine = slice(*edges.first[x : x + 2])
                    assert np.array_equal(out.children[:count], edges.children[mine])
        states = np.unique(edges.children, axis=0)
        states = states[:: max(1, len(states) // 100)]
    assert over


def test_a_part_is_compiled_into_its_caller_and_raises_there():
    """Python's own way to it is not made, until Python calls it."""

    @njit(NUMBER, cache=False)
    def add(x):
        if x > 5:
            raise ValueError("too many", x)
        return x + 1

    @njit(NUMBER, cache=False)
    def twice(x):
        return add(add(x))

    made = add
    assert twice(3) == 5 and not made.overloads
    with pytest.raises(ValueError, match=r"too many.*6"):
        twice(5)
    assert add(3) == 4 and len(made.overloads) == 1


@pytest.mark.parametrize("signature", ["nb.int64(nb.int64)", "None"])
def test_scipy_is_imported_where_matrices_are_multiplied_and_nowhere_else(signature):
    """Also where it is a function of somebody else's, after one of ours."""
    script = """
import sys
import numba as nb
import numpy as np
from luckbase.solver.njit import njit

@njit(SIGNATURE, cache=False)
def add(x):
    return x + 1

@nb.njit
def dot(a, b):
    return np.dot(a, b)

assert add(1) == 2
before = "scipy.linalg" in sys.modules
print(before, dot(np.eye(2), 3 * np.eye(2))[1].tolist(), "scipy.linalg" in sys.modules)
"""
    done = python("-c", script.replace("SIGNATURE", signature))
    assert done.stdout.split() == ["False", "[0.0,", "3.0]", "True"]


def test_one_that_calls_itself_is_compiled_too():
    @njit(NUMBER, cache=False)
    def factorial(n):
        return 1 if n < 2 else n * factorial(n - 1)

    assert factorial(10) == 3628800


@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize(
    "words",
    [
        (lambda add: add, np.array([1.0])),
        (lambda add: add, np.arange(6)[::2]),
        (lambda add: 3, np.array([1])),
    ],
)
def test_what_does_not_fit_the_signature_is_refused(words, before):
    add, call = made()
    if before:
        call(add, np.array([1]))
    with pytest.raises(TypeError, match="No matching definition"):
        call(words[0](add), words[1])


def test_a_function_of_another_type_is_refused():
    _, call = made()

    @njit(types.float64(types.float64), cache=False)
    def other(x):
        return x

    with pytest.raises(TypeError, match="other is "):
        call(other, np.array([1]))


def test_threads_that_come_at_once_get_one_compiled_function():
    add, call = made()
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(lambda k: call(add, np.array([k % 2])), range(64))) == {4, 5}
    assert len(add.signatures) == len(call.signatures) == 1


def test_a_type_that_two_threads_make_at_once_is_one(monkeypatch):
    """Else what the one declares does not match what the other calls it with."""
    count, found = abstract._autoincr, list[Any]()

    def make():
        found.append(types.UniTuple(types.int64, 123_457))

    def after_another():
        code = count()
        if not others:
            others.append(threading.Thread(target=make))
            others[0].start()
            others[0].join(0.2)
        return code

    others = list[threading.Thread]()
    monkeypatch.setattr(abstract, "_autoincr", after_another)
    make()
    others[0].join()
    assert found[0] is found[1]


def test_it_goes_through_pickle():
    state = np.array([1, 2, 3, 1, 0, 0, 0, 0, 0, 0, 0, 0])
    there = pickle.loads(pickle.dumps(game.player_up))
    assert there(state) == game.player_up(state)


def test_a_solve_compiles_its_kernel_and_neither_search_nor_rules(run_folder):
    """A newcomer's first solve pays for its own kernel only, each function once: the few questions
    at its end are answered as Python."""
    compiled = first_solves(run_folder)[0]["out"].split()[1:]
    ours = [name for name in compiled if name.startswith("luckbase.")]
    here = {name.rpartition(".")[0] for name in ours}
    kept = {path.parent.name for path in (run_folder / FIRST_CODE).rglob("*.nbc")}
    modules = {f"luckbase.solver.games.press_your_luck.{name}" for name in ("kernel", "layout")}
    assert here <= kept == modules  # another process may have compiled some
    assert len(set(ours)) == len(ours), "compiled for more than one type"
    assert not [name for name in compiled if "unicode" in name], "compiles what it may raise"


def test_a_program_that_knows_no_luckbase_keeps_its_own_compiled_code(run_folder):
    """Which one with luckbase starts: nothing of it stands in the environment."""
    code = "import os, luckbase.solver.njit; print([x for x in os.environ if 'LOCATOR' in x])"
    found = python("-c", code, cwd=run_folder)
    assert found.stdout.strip() == "[]"


APART = """
import numpy as np
from luckbase.solver.compiled import njit, types

@njit(types.int64(types.int64))
def power(x):
    return x**3

@njit(returns=types.int64)
def total(numbers):
    if numbers.size > 3:
        raise ValueError("too many", numbers.size)
    result = 0
    for number in numbers:
        result += number
    return result

@njit(error_model="numpy")
def mean(numbers):
    return total(numbers) / numbers.size
"""


@pytest.fixture
def apart(tmp_path, monkeypatch, request):
    """A module of its own, nothing of which is compiled."""
    name = f"apart_{abs(hash(request.node.name))}"  # two of one name would be one to the linker
    (tmp_path / f"{name}.py").write_text(APART)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(compiled, "IMPORTED", {name})  # else only ours are
    return importlib.import_module(name)


def test_what_is_compiled_apart_is_code_of_its_own_and_raises_where_it_is_called(apart):
    assert apart.mean(np.array([1, 2, 6])) == 3.0
    assert len(apart.total._cache._cache_file._load_index()) == 1
    with pytest.raises(ValueError, match=r"too many.*4"):
        apart.mean(np.arange(4))
    again = njit(None)(apart.mean.plain)  # finds both on disk
    assert again(np.array([4, 5])) == 4.5 and not again.stats.cache_misses


def test_what_called_it_is_kept_and_it_is_gone(apart):
    """In a process that has never seen it. What it is compiled with does not hang on who asks."""
    assert apart.mean(np.array([1, 2, 6])) == 3.0
    for path in Path(apart.total._cache.cache_path).glob("*.total-*"):
        path.unlink()
    script = f"import {apart.__name__} as m, numpy as np; print(m.mean(np.array([7, 8])))"
    done = python(
        "-c", script, env={"PYTHONPATH": f"{ROOT}{os.pathsep}{Path(apart.__file__).parent}"}
    )
    assert done.stdout.strip() == "7.5"


def test_another_process_compiles_what_is_named_to_it(apart):
    """The very function: it is found on disk by whoever would compile it."""
    with beside(2):
        ahead(apart.power, apart.total)
        other = compiled._other
        with other.changed:
            assert other.changed.wait_for(lambda: not other.wanted and other.now is None, 60)
        assert apart.power(3) == 27 and not apart.power.stats.cache_misses
        assert apart.mean(np.array([1, 2, 6])) == 3.0
    assert other.process.returncode is not None and not other.thread.is_alive()
    with beside(2):
        ahead(apart.power, apart.total)
        assert compiled._other is None, "all is there"


@pytest.mark.parametrize("code", [None, "", "import sys; print(flush=True); sys.stdin.read(1)"])
def test_a_process_that_fails_does_no_harm(apart, code, monkeypatch):
    """It does not start, ends at once, or when it is to compile something."""
    command = [sys.executable if code is not None else "", "-c", code or ""]
    start = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda _, **pipes: start(command, **pipes))
    with beside(2):
        ahead(apart.power)
        assert (compiled._other is None) == (code is None)
        assert apart.power(3) == 27 and apart.mean(np.array([1, 2, 6])) == 3.0
        assert apart.power.stats.cache_misses


def test_one_core_has_no_other_process_nor_have_the_functions_of_others(apart, monkeypatch):
    ahead(apart.power)
    with beside(1):
        ahead(apart.power)
        assert compiled._other is None
    monkeypatch.setattr(compiled, "IMPORTED", {"luckbase"})
    with beside(2):
        ahead(apart.power)
        assert compiled._other is None and apart.power(2) == 8
