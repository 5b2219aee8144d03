"""Arrays of payoffs in one process: used again, beyond the memory in files, never mixed up. And
tiers in parts, by Goofspiel: the same rows however a layer is split, asked, resumed."""

from collections import deque

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from luckbase.cluster.answers.part_kinds import TierPart
from luckbase.cluster.answers.verify import check_files, check_residuals
from luckbase.cluster.solve.plan import make_plan
from luckbase.cluster.solve.worker import Pool, writable
from luckbase.solver.games.goofspiel import full_table as layout
from tests import solving
from tests.e2e.test_solve import files
from tests.places import BOARDS, TINY


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


# --- tiers in parts -------------------------------------------------------------------------------


POINTS = BOARDS / "goofspiel/points.toml"


@pytest.fixture
def small_parts(monkeypatch):
    layout.layer_of.cache_clear()
    monkeypatch.setattr("luckbase.solver.game.game._loaded", deque())
    monkeypatch.setattr(layout, "GAMES_A_PART", 3000)
    yield
    layout.layer_of.cache_clear()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    board = solving.load_board(POINTS, cards=7)
    return solving.solve_board(board, results=tmp_path_factory.mktemp("whole")).table


def payoffs(path):
    with solving.open_table(path) as table:
        states = np.concatenate(list(table.draw(table.rows, 0)))
        return states, table.probe(states)


@pytest.mark.parametrize("workers", [1, 3])
def test_parts_give_the_same_rows_as_whole_tiers(whole, tmp_path, small_parts, workers):
    board = solving.load_board(POINTS, cards=7)
    table = solving.solve_board(board, results=tmp_path, workers=workers).table
    assert len(list(table.rglob("*.parquet"))) > 12
    states, values = payoffs(table)
    wanted, exact = payoffs(whole)
    assert (states == wanted).all()
    assert values.tobytes() == exact.tobytes()
    with solving.open_table(table) as opened:
        assert isinstance(opened.full, TierPart)
        assert check_files(opened) == []
        assert check_residuals(opened, 500).worst < 1e-12
    assert not (table / "spill").exists()


def test_a_table_plays_both_sides_of_a_turned_card(whole):
    from luckbase.solver.policies.evaluate import evaluate_profile

    with solving.open_table(whole) as table:
        agent = table.agent()
        remaining = "1,2,3,4,5"  # the last five turns
        start = table.game.parse({"mine": remaining, "theirs": remaining, "deck": remaining})
        assert evaluate_profile(table.game, start, [agent, agent]).value[0] == pytest.approx(0)
        won = evaluate_profile(table.game, start, [agent, "random"]).value[0]
        assert won == pytest.approx(2.0413, abs=1e-4)
