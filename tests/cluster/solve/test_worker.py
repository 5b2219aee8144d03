"""Arrays of payoffs in one process: used again, beyond the memory in files, never mixed up."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from luckbase.cluster.solve.plan import make_plan
from luckbase.cluster.solve.worker import Pool, writable
from tests import solving
from tests.e2e.test_solve import files
from tests.places import TINY


@given(st.data())
def test_what_is_held_is_nobody_elses(tmp_path_factory, data):
    pool = Pool(data.draw(st.integers(0, 400)), tmp_path_factory.getbasetemp() / "spill")
    stored = []
    for turn in range(data.draw(st.integers(1, 25))):
        if stored and data.draw(st.booleans()):
            each, number = stored.pop(data.draw(st.integers(0, len(stored) - 1)))
            assert (each == number).all()
            pool.give(each)
        else:
            shape = (data.draw(st.integers(1, 4)), data.draw(st.integers(1, 9)))
            each = pool.take(shape)
            assert each.shape == shape and each.flags.writeable
            each[...] = turn
            stored.append((each, turn))
        assert all((each == number).all() for each, number in stored)


def test_memory_is_used_again_and_what_is_beyond_lies_in_a_file(tmp_path):
    pool = Pool(8 * 100, tmp_path / "spill")
    first = pool.take((60,))
    assert not (tmp_path / "spill").exists()
    beyond = pool.take((60,))
    assert (tmp_path / "spill").exists() and not list((tmp_path / "spill").iterdir())
    pool.give(beyond)
    pool.give(first)
    assert pool.take((50,)).base is first.base
    pool = Pool(8 * 100, tmp_path / "none")
    pool.give(pool.take((60,)))
    pool.take((100,))  # what is free makes room
    assert not (tmp_path / "none").exists()


def test_a_solve_whose_payoffs_do_not_fit_writes_the_same_bytes(tmp_path):
    board = solving.load_board(TINY, frontier=2)
    usual = solving.solve_board(board, results=tmp_path / "usual", workers=2)
    least = make_plan(solving.load_layout(board)).shard_memory
    tight = solving.solve_board(board, results=tmp_path / "tight", workers=2, memory=least)
    assert files(tight.table) == files(usual.table)
    assert not (tight.table / "spill").exists()


def test_memory_that_may_not_be_written_to_is_the_same_memory():
    array = np.arange(6.0).reshape(2, 3)
    array.setflags(write=False)
    same = writable(array)
    assert same.flags.writeable and np.shares_memory(same, array) and (same == array).all()
    assert writable(same) is same
