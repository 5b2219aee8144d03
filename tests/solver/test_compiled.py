"""What is compiled when it is first called runs as Python, too: of one state, without numba."""

import json
import pickle

import numba as nb
import numpy as np

import luckbase
from luckbase.cluster.table.find import open_table
from luckbase.cluster.table.moves import moves
from luckbase.cluster.table.why import why
from luckbase.solver.compiled import Function, bits_in, in_python, jitable, njit, types
from luckbase.solver.search import runs
from luckbase.solver.search.runs import lowest_bit
from tests.places import BOARDS
from tests.shared import python

LAID_OUT = ["press-your-luck", "skunk", "pig", "goofspiel"]
ASK = """
import json, sys
from luckbase.cluster.table.moves import moves
from luckbase.cluster.table.find import open_table
from luckbase.cluster.table.why import why
from luckbase.solver.compiled import in_python

for path, states in json.load(sys.stdin):
    with open_table(path) as table, in_python(beside=True):
        for state in states:
            there = moves(table, state)
            print(json.dumps([there.answer.as_json(), list(map(str, why(table, there)))]))
    if 'goofspiel' not in path:  # which needs the compiled matrix games
        assert 'numba' not in sys.modules
"""


def test_the_answer_to_a_state_is_the_same_in_python_to_the_last_bit(table_of, tmp_path):
    """Of every game, in a process that does not import numba."""
    asked, expected = [], []
    searched = luckbase.solve(BOARDS / "jackpot/tiny.toml", results=tmp_path)
    for path in (searched.table, *(table_of(BOARDS / game / "tiny.toml") for game in LAID_OUT)):
        with open_table(path) as table:
            states = [table.game.describe(s) for s in np.concatenate(list(table.draw(8, 1)))]
            for state in states:
                there = moves(table, state)
                expected.append([there.answer.as_json(), list(map(str, why(table, there)))])
        asked.append((str(path), states))
    done = python("-c", ASK, input=json.dumps(asked))
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert answers == json.loads(json.dumps(expected))


@njit(types.int64(types.int64), cache=False)
def double(x):
    return 2 * x


@jitable
def more(x):
    return x + 1


@njit(types.int64(types.FunctionType(types.int64(types.int64)), types.int64), cache=False)
def twice(function, x):
    return function(more(function(x)))


@njit(types.int64(types.uint64), cache=False)
def bits_and_lowest(bits):
    return 100 * bits_in(bits) + lowest_bit(bits)


def test_bits_are_counted_and_found_in_python_as_they_are_compiled(monkeypatch):
    assert bits_and_lowest(np.uint64(12)) == 202  # compiled, before its parts are Python's
    monkeypatch.setattr(runs, "bits_in", bits_in.plain)
    for bits in (1, 6, 1 << 63, (1 << 64) - 1, 5 << 40):
        expected = 100 * bin(bits).count("1") + len(bin(bits)) - 1 - bin(bits).rindex("1")
        number = np.uint64(bits)
        plain = [function.plain(number) for function in (bits_in, lowest_bit)]
        assert bits_and_lowest(number) == 100 * plain[0] + plain[1] == expected


def test_it_is_a_function_of_numbas_where_others_call_it():
    assert twice(double, 3) == 14 == twice.plain(double, 3)
    assert twice.signatures and more(1) == 2
    assert double.__name__ == "double" and nb.typeof(double) == nb.typeof(double.made)


def test_it_goes_through_pickle_by_its_name_or_as_it_is():
    assert pickle.loads(pickle.dumps(double)) is double

    @njit(types.int64(types.int64), cache=False)
    def local(x):
        return x - 1

    there = pickle.loads(pickle.dumps(local))
    assert isinstance(there, Function) and there(5) == 4


def test_numba_is_used_where_it_is_there_anyway_or_beside_it_what_is_compiled():
    @njit(types.float64(types.float64), cache=False)
    def half(x):
        return x / 2

    with in_python(beside=True):
        assert half(1) == 0.5 and not half.signatures
    with in_python():
        assert half(1) == 0.5 and half.signatures
    with in_python(beside=True):
        half.plain = half.make = None
        assert half(1) == 0.5
