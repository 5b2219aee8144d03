"""Declared functions are compiled when they are first called. For one state they run as Python."""

import json
import pickle
from concurrent.futures import ThreadPoolExecutor

import numba as nb
import numpy as np
import pytest

import luckbase
from luckbase.cluster.answers.find import open_table
from luckbase.cluster.answers.moves import moves
from luckbase.cluster.answers.why import why
from luckbase.solver.compiled import in_python, jitable, njit, types
from luckbase.solver.search.keys import bits_in
from luckbase.solver.search.runs import lowest_bit
from tests.places import BOARDS
from tests.shared import FIRST_CODE, first_solves, python

LAID_OUT = ["press-your-luck", "skunk", "pig", "goofspiel"]
ASK = """
import json, sys
from luckbase.cluster.answers.moves import moves
from luckbase.cluster.answers.find import open_table
from luckbase.cluster.answers.why import why
from luckbase.solver.compiled import in_python

for path, states in json.load(sys.stdin):
    with open_table(path) as table, in_python(beside=True):
        for state in states:
            there = moves(table, state)
            print(json.dumps([there.answer.as_json(), why(table, there)]))
    if 'goofspiel' not in path:  # which needs the compiled matrix games
        assert 'numba' not in sys.modules
"""


def test_the_answer_to_a_state_is_the_same_in_python_to_the_last_bit(table_of, tmp_path):
    """Of every game, in a process that does not import numba."""
    query, expected = [], []
    searched = luckbase.solve(BOARDS / "jackpot/tiny.toml", results=tmp_path)
    for path in (searched.table, *(table_of(BOARDS / game / "tiny.toml") for game in LAID_OUT)):
        with open_table(path) as table:
            states = [table.game.describe(s) for s in np.concatenate(list(table.draw(8, 1)))]
            for state in states:
                there = moves(table, state)
                expected.append([there.answer.as_json(), why(table, there)])
        query.append((str(path), states))
    done = python("-c", ASK, input=json.dumps(query))
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert answers == json.loads(json.dumps(expected))


def test_rows_of_a_full_table_are_looked_up_without_numba(table_of):
    """However many: a batch took half as long again once the rules were asked about no state."""
    path = table_of(BOARDS / "press-your-luck/tiny.toml", frontier=1)
    script = f"""
import sys, luckbase
with luckbase.open({str(path)!r}) as table:
    rows = table.to_arrow().read_all()
    answered = table.values(rows.drop_columns(["payoff_1", "payoff_2", "payoff_3"]))
assert len(rows) > 1000 and answered["payoff_1"].to_pylist() == rows["payoff_1"].to_pylist()
assert 'numba' not in sys.modules
"""
    python("-c", script)


NUMBER = types.int64(types.int64)


@njit(NUMBER, cache=False)
def double(x):
    return 2 * x


@jitable()
def more(x, by=None):
    if by is None:
        return x + 1
    if by < 0:
        raise ValueError("too few", by)
    return x + by


@njit(types.int64(types.FunctionType(NUMBER), types.int64[::1]), cache=False)
def twice(function, numbers):
    return function(more(function(numbers[0])))


@njit(types.int64(types.uint64), cache=False)
def bits_and_lowest(bits):
    return 100 * bits_in(bits) + lowest_bit(bits)


def test_bits_are_counted_and_found_in_python_as_they_are_compiled():
    for bits in (1, 6, 12, 1 << 63, (1 << 64) - 1, 5 << 40):
        expected = 100 * bin(bits).count("1") + len(bin(bits)) - 1 - bin(bits).rindex("1")
        number = np.uint64(bits)
        with np.errstate(over="ignore"):  # as `in_python`
            plain = 100 * bits_in(number) + lowest_bit(number)
        assert bits_and_lowest(number) == plain == expected


def test_it_is_a_function_of_numbas_where_others_call_it():
    numbers = np.array([3, 6])
    assert twice(double, numbers) == 14 == twice.plain(double, numbers)
    assert nb.typeof(double) == nb.typeof(double.made)

    @nb.njit
    def of_an_author(x):
        return double(more(x)) + more(x, 5)

    assert of_an_author(1) == 10


def test_it_is_compiled_when_it_is_called_and_once():
    @njit(NUMBER, cache=False)
    def add(x):
        return x + 1

    assert not add.is_compiled
    assert add(np.int32(7)) == 8 and add(True) == 2 and add.is_compiled
    assert add.made.nopython_signatures == [NUMBER.made]


def test_a_part_raises_in_its_caller():
    @njit(NUMBER, cache=False)
    def less(x):
        return more(x, -x)

    assert less(-1) == 0
    with pytest.raises(ValueError, match=r"too few.*-2"):
        less(2)


@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("words", [(0, np.array([1.0])), (0, np.arange(6)[::2]), (3, None)])
def test_what_does_not_fit_the_signature_is_refused(words, before):
    function, numbers = words
    if before:
        twice(double, np.array([1]))
    with pytest.raises(TypeError, match="No matching definition"):
        twice(function or double, np.array([1]) if numbers is None else numbers)


def test_threads_that_come_at_once_get_the_same_answers():
    @njit(NUMBER, cache=False)
    def add(x):
        return more(x) + double(x)

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(add, range(64))) == [3 * x + 1 for x in range(64)]


def test_it_goes_through_pickle_by_its_name():
    assert pickle.loads(pickle.dumps(double)) is double
    assert pickle.loads(pickle.dumps(more)) is more


def test_numba_is_used_where_it_is_there_anyway_or_beside_it_what_is_compiled():
    @njit(types.float64(types.float64), cache=False)
    def half(x):
        return x / 2

    with in_python(beside=True):
        assert half(1) == 0.5 and not half.is_compiled
    with in_python():
        assert half(1) == 0.5 and half.is_compiled
    with in_python(beside=True):
        half.plain = None
        assert half(1) == 0.5


def test_a_solve_compiles_its_kernel_and_neither_search_nor_rules(run_folder):
    """A newcomer's first solve pays for its own kernel only: the few questions at its end are
    answered as Python."""
    named = first_solves(run_folder)[0]["out"].split()[1:]
    ours = {name.rpartition(".")[0] for name in named if name.startswith("luckbase.")}
    game = "luckbase.solver.games.press_your_luck"
    assert ours == {f"{game}.kernel", f"{game}.full_table"}
    kept = {path.name.partition("-")[0] for path in (run_folder / FIRST_CODE).rglob("*.nbc")}
    assert kept == {"kernel.solve_plane", "full_table._narrow"}


SEARCHES = """
import tempfile
import numba
from tests.solving import solve_below
from tests.solving import load_board, load_game
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
def test_no_search_reads_or_writes_beyond_its_arrays(tmp_path):
    """numba checks every index, by stages and in one piece."""
    checked = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    done = python("-c", SEARCHES, env=checked)
    assert len(done.stdout.splitlines()) == 2 * 5
