"""Tables in memory say what the same table on disk says."""

import re

import numpy as np
import pytest

import luckbase
from luckbase.solver.charts import Curves
from luckbase.solver.errors import StateError
from luckbase.solver.game.capabilities import Charts
from tests.places import BOARDS
from tests.shared import answers_of

BOTH = [
    ("press-your-luck/tiny", {"frontier": 1}), ("pig/tiny", {}), ("skunk/tiny", {}),
    ("goofspiel/points", {"cards": 4}), ("goofspiel/win", {"cards": 3}),
    ("pig/rounds", {"rounds": 2, "cut": 30}), ("jackpot/tiny", {}),
]  # fmt: skip
"""Boards of every game: full tables of float32 and of float64, with cycles, with bids; a search."""


@pytest.mark.parametrize(("name", "options"), BOTH, ids=[name for name, _ in BOTH])
def test_a_table_in_memory_is_the_one_on_disk_to_the_last_bit(name, options, tmp_path):
    board = luckbase.load_board(BOARDS / f"{name}.toml", **options)
    luckbase.solve(board, results=tmp_path, workers=1)
    with (
        luckbase.open(board, results=tmp_path) as stored,
        luckbase.open(board, in_memory=True) as memory,
    ):
        assert (memory.error, memory.tolerance, memory.rows) == (
            stored.error, stored.tolerance, stored.rows
        )  # fmt: skip
        ours, theirs = memory.to_arrow().read_all(), stored.to_arrow().read_all()
        assert ours.drop_columns("part").equals(theirs.drop_columns("part"))
        parts = [re.sub(r"^search-[0-9a-f]{12}$", "search", x) for x in theirs["part"].to_pylist()]
        assert ours["part"].to_pylist() == parts  # on disk a search has a name of its own
        (states,) = memory.draw(60, 1)
        assert np.array_equal(states, np.concatenate(list(stored.draw(60, 1))))
        assert answers_of(memory, states) == answers_of(stored, states)
        assert memory.stored_best(states) == stored.stored_best(states)
        assert memory.verify(500).residuals == stored.verify(500).residuals
        assert not memory.diff(stored).differs and not stored.diff(memory).differs
        if memory.game.has(Charts):
            drawn, of_disk = memory.chart(), stored.chart()
            assert drawn.as_json() == of_disk.as_json()
            if isinstance(drawn, Curves) and isinstance(of_disk, Curves):
                for one, other in zip(drawn.curves, of_disk.curves, strict=True):
                    assert one.values.tobytes() == other.values.tobytes()
        else:
            with pytest.raises(luckbase.errors.OptionError, match="has no charts"):
                memory.chart()


def test_what_a_search_in_memory_does_not_hold_is_said(tmp_path):
    state = {"open": (1, 2, 3)}
    with luckbase.open(BOARDS / "jackpot/tiny.toml", in_memory=True, start=state) as table:
        assert table[state].source == "table"
        with pytest.raises(StateError, match="is not below this table's roots"):
            table.ask({"open": (1, 2, 3, 4)})
        with pytest.raises(StateError, match=r"row 2: open=1,2,3,4 is not .*; ask it alone"):
            table.values([state, {"open": (1, 2, 3, 4)}])
        assert table[{"open": (1, 2, 3, 4)}].source == "search"
