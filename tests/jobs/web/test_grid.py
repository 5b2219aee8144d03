"""Grids over two columns say what the table says of each state."""

import numpy as np
import pytest

import luckbase
from luckbase.jobs.web.states import grid
from tests.places import BOARDS


@pytest.fixture(scope="module")
def table():
    with luckbase.open(BOARDS / "pig/tiny.toml", in_memory=True) as opened:
        yield opened


@pytest.mark.parametrize("colour", ["value_1", "value_2", "margin", "best"])
def test_a_grid_says_what_each_state_says(colour, table):
    base = {"mine": "0", "yours": "0", "turn": "3"}
    found = grid(table, ("mine", "yours"), base, colour, {"mine": (0, 20, 4)})
    assert found.cells.shape == (6, 20)
    for i, mine in enumerate(found.x.values.tolist()):
        for j, yours in enumerate(found.y.values.tolist()):
            answer = table.ask({"mine": mine, "yours": yours, "turn": 3})
            code = found.best[i][j]
            best = None if code is None else found.actions[code]
            assert best == answer.best
            known = {
                "value_1": answer.value[0], "value_2": answer.value[1], "margin": answer.margin,
                "best": None if best is None else found.actions.index(best),
            }[colour]  # fmt: skip
            assert (
                np.isnan(found.cells[i, j])
                if known is None
                else (found.cells[i, j] == pytest.approx(known))
            )


def test_cells_that_are_no_states_are_empty(table):
    spans = {"mine": (19, 25, 1)}
    found = grid(table, ("mine", "turn"), {"mine": "0", "yours": "0"}, "value_1", spans)
    assert np.isnan(found.cells[2:]).all() and not np.isnan(found.cells[0]).any()


def test_a_grid_in_pieces_is_the_same(table, monkeypatch):
    wish = ("mine", "turn"), {"mine": "0", "yours": "7"}, "margin"
    whole = grid(table, *wish)
    monkeypatch.setattr("luckbase.jobs.web.states.GRID_PIECE", 37)  # no option
    pieces = grid(table, *wish)
    assert np.array_equal(whole.cells, pieces.cells, equal_nan=True)
    names = [
        [None if code is None else each.actions[code] for row in each.best for code in row]
        for each in (whole, pieces)
    ]
    assert names[0] == names[1]
