"""What a file of a table says of itself (docs/reference/table-format.md), and that columns from
numpy and back are pyarrow's own, without pandas."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import luckbase
from luckbase.cluster.store.format import column_of, numbers_of, texts_of
from tests.places import BOARDS
from tests.shared import python

KINDS = ("int8", "uint8", "int16", "int32", "int64", "uint64", "float32", "float64", "bool")
SIZES = hnp.array_shapes(max_dims=1, min_side=0, max_side=40)
ARRAYS = st.sampled_from(KINDS).flatmap(lambda kind: hnp.arrays(kind, SIZES))


@given(ARRAYS, st.data(), st.integers(1, 3))
def test_numbers_are_those_of_pyarrow(values, data, step):
    values = values[::step]
    gone = data.draw(hnp.arrays(bool, len(values)))
    assert column_of(values).type == pa.array(values).type
    np.testing.assert_array_equal(
        column_of(values).to_numpy(zero_copy_only=False), values, strict=True
    )
    mine, theirs = column_of(values, gone), pa.array(values, mask=gone)
    assert mine.null_count == gone.sum()
    assert mine.is_null().equals(theirs.is_null())
    kept = mine.drop_null().to_numpy(zero_copy_only=False)
    np.testing.assert_array_equal(kept, values[~gone], strict=True)


@given(ARRAYS.filter(lambda a: a.dtype != bool), st.data())
def test_numbers_come_back_also_from_a_part_and_from_chunks(values, data):
    gone = data.draw(hnp.arrays(bool, len(values)))
    start = data.draw(st.integers(0, len(values)))
    expected = values.copy()
    expected[gone] = 7
    column = column_of(values, gone)
    np.testing.assert_array_equal(numbers_of(column[start:], 7), expected[start:], strict=True)
    chunks = pa.chunked_array([column[start:], column[:start], column], column.type)
    every = np.concatenate([expected[start:], expected[:start], expected])
    np.testing.assert_array_equal(numbers_of(chunks, 7), every, strict=True)
    none = pa.chunked_array([], column.type)
    np.testing.assert_array_equal(numbers_of(none), values[:0], strict=True)
    with_nan = numbers_of(column_of(np.array([1.0, 2.0]), np.array([True, False])))
    np.testing.assert_array_equal(with_nan, [np.nan, 2.0])


def test_numbers_are_not_copied():
    values = np.arange(10)
    assert np.shares_memory(numbers_of(column_of(values)), values)


@given(st.lists(st.text()))
def test_texts(texts):
    assert texts_of(tuple(texts)).equals(pa.array(texts, pa.string()))


def test_pandas_is_not_imported_to_solve_or_to_answer(tmp_path):
    """It is there, and pyarrow would."""
    script = f"""
import sys
from pathlib import Path
from tests import solving
board = solving.load_board("boards/press-your-luck/tiny.toml", frontier=1, score_cap=1500)
game = solving.load_game(board)
root = game.parse({{"scores": "0,1000,500", "earned": "1,1,1"}}).reshape(1, -1)
results = Path({str(tmp_path)!r})
full = solving.solve_board(board, results=results / "full")
below = [
    solving.solve_below(board, root, results=results / str(i), one_piece=i) for i in (0, 1 << 30)
]
for made in (full, *below):
    with solving.open_table(made.table) as opened:
        state = root[0] if made in below else game.parse({{"scores": "0,0,0", "earned": "0,1,0"}})
        assert opened.ask(game.describe(state)).actions
        assert opened.verify(50).ok
assert "pandas" not in sys.modules
import pandas
"""
    python("-c", script)


@pytest.mark.parametrize(
    ("board", "settings"),
    [("press-your-luck/tiny", {"frontier": 1}), ("pig/tiny", {}), ("jackpot/tiny", {})],
)
def test_a_footer_says_format_game_tier_and_error(board, settings, tmp_path):
    read = luckbase.load_board(BOARDS / f"{board}.toml", **settings)
    solved = luckbase.solve(read, results=tmp_path)
    for name, entry in solved.manifest.files.items():
        about = pq.read_metadata(solved.table / entry.place).metadata
        tier = Path(name).stem
        assert about[b"luckbase.format"] == b"5"
        assert about[b"luckbase.game"].decode() == board.partition("/")[0]
        assert about[b"luckbase.tier"].decode() == (tier if "spins" in tier else "")
        assert float(about[b"luckbase.payoff_error"]) == entry.error
