"""Words in the middle of regions, rows of curves; the charts of Press Your Luck test the lines."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from luckbase.solver.charts import Band, Curve, Curves, middle_of, words_in

MASKS = arrays(bool, st.tuples(st.integers(1, 7), st.integers(1, 7)))


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
