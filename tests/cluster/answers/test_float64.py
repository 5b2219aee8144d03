"""A table of Press Your Luck in float64: the kernel's own numbers, and what is solved above it."""

import numpy as np
import pyarrow.parquet as pq
import pytest

from luckbase.solver.board.model import rules_identity
from luckbase.solver.game.arrays import FLOAT64_ERROR
from tests import solving
from tests.places import TINY

PAYOFFS = [f"payoff_{i}" for i in (1, 2, 3)]


def solved(folder, payoffs, frontier):
    board = solving.load_board(TINY, payoffs=payoffs, frontier=frontier)
    return solving.solve_board(board, results=folder)


def test_a_board_that_says_float32_is_the_one_that_says_nothing():
    text, left_out = solving.load_board(TINY, payoffs="float32"), solving.load_board(TINY)
    wide = solving.load_board(TINY, payoffs="float64")
    names = [rules_identity(solving.load_game(board)) for board in (text, left_out, wide)]
    assert names[0] == names[1] != names[2]


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    """The table of two spins, at once. Not to be changed."""
    return solved(tmp_path_factory.mktemp("wide"), "float64", 2)


def test_it_holds_what_a_table_in_float32_rounds(wide, tmp_path):
    narrow = solved(tmp_path, "float32", 2)
    assert narrow.manifest.files.keys() == wide.manifest.files.keys()
    for name in narrow.manifest.files:
        places = [each.table / each.manifest.files[name].place for each in (narrow, wide)]
        first, second = (pq.ParquetFile(place).read() for place in places)
        for column in PAYOFFS:
            assert first[column].type == "float" and second[column].type == "double"
            rounded = second[column].to_numpy().astype(np.float32)
            assert np.array_equal(first[column].to_numpy(), rounded)
        assert first.drop(PAYOFFS) == second.drop(PAYOFFS)
    assert wide.manifest.error() == FLOAT64_ERROR
    with solving.open_table(wide.table) as table:
        assert table.verify(None).residuals.worst < 1e-14
