"""Lines around regions, words in the middle of them, rows of curves."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from luckbase.solver.charts import Band, Curve, Curves, middle_of, outline, words_in

MASKS = arrays(bool, st.tuples(st.integers(1, 7), st.integers(1, 7)))


@given(MASKS, MASKS)
def test_the_line_runs_between_the_cells_that_differ_and_nowhere_else(inside, known):
    known = np.resize(known, inside.shape)
    xs, ys = 10 * np.arange(inside.shape[0]), 2 * np.arange(inside.shape[1])
    wanted = set()
    for i, j in np.ndindex(*inside.shape):
        for k, m in ((i + 1, j), (i, j + 1)):
            there = k < len(xs) and m < len(ys) and known[i, j] and known[k, m]
            if there and inside[i, j] != inside[k, m]:
                wanted.add(((xs[i] + xs[k]) / 2, (ys[j] + ys[m]) / 2))
    line = outline("around", inside, xs, ys, known)
    if line is None:
        assert not wanted
        return
    pieces = np.column_stack([line.xs, line.ys]).reshape(-1, 3, 2)
    assert np.isnan(pieces[:, 2]).all() and not np.isnan(pieces[:, :2]).any()
    assert {tuple(middle) for middle in pieces[:, :2].mean(axis=1)} == wanted
    assert len(pieces) == len(wanted)
    if len(xs) > 1 and len(ys) > 1:  # as long as the side of a cell
        assert set(np.abs(pieces[:, 1] - pieces[:, 0]).sum(axis=1)) <= {10.0, 2.0}


@given(MASKS)
def test_words_stand_inside_as_far_from_the_edge_as_can_be(inside):
    def room(i, j):
        outside = np.argwhere(~np.pad(inside, 1)) - 1
        return int(np.abs(outside - [i, j]).sum(axis=1).min())

    result = middle_of(inside)
    if result is None:
        assert not inside.any()
        return
    assert inside[result]
    assert room(*result) == max(room(i, j) for i, j in np.argwhere(inside))


def test_a_small_region_gets_no_word_and_what_follows_a_space_is_not_written():
    inside = np.zeros((10, 10), bool)
    inside[2:5, 2:5] = True
    xs = 100 * np.arange(10)
    (word,) = words_in({"pass ahead": inside}, xs, xs)
    assert (word.text, word.x, word.y) == ("pass", 300.0, 300.0)
    inside[2:5, 2:5] = np.eye(3, dtype=bool) & (np.arange(3) == 1)
    assert words_in({"pass": inside}, xs, xs) == ()


def test_rows_of_curves_have_nan_for_gaps():
    play = Curve("to play", "play", np.array([0.25, np.nan, 1.0]))
    passed = Curve("to pass", "pass", np.array([np.nan, 0.123456789012, 3000.0]))
    curves = Curves("t", "a", "lead", np.array([-5, 0, 5]), (play, passed), "x", "y")
    assert curves.columns == ("lead", "play", "pass")
    nan = pytest.approx(np.nan, nan_ok=True)
    assert curves.rows == ((-5, 0.25, nan), (0, nan, 0.123456789), (5, 1, 3000))
    assert set(curves.to_pandas().dtypes.iloc[1:].astype(str)) == {"float64"}
    assert curves.x_range == (-5, 5)
    wider = Curves("t", "a", "lead", np.array([1, 2]), (), "x", "y", (Band(2.5, 3.5, "none"),))
    assert wider.x_range == (1, 3.5)
