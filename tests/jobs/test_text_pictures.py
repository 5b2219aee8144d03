"""Pictures as text: they fit, plain where nobody asked for colours, and say the numbers."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from luckbase.jobs.terminal.text_pictures import LEAST_WIDE, VIRIDIS, text
from luckbase.solver.charts.model import Band, Curve, Curves, Heatmap, Line, Words

ESCAPE = re.compile("\x1b\\[[0-9;]*m")


def heatmap(values: np.ndarray, **more: object) -> Heatmap:
    xs, ys = 10 * np.arange(values.shape[0]), 10 * np.arange(values.shape[1])
    return Heatmap(
        "title", "about", ("x", "y", "v"), xs, ys, values, "my x", "my y", "number", **more
    )  # type: ignore[arg-type]


def field(printed: str) -> list[str]:
    """The lines of the picture, what stands right of the axis, top line first."""
    return [line.partition("|")[2] for line in printed.splitlines() if "|" in line]


def test_a_digit_is_the_tenth_of_the_scale_that_a_number_lies_in() -> None:
    values = np.array([[0.0, 0.19, 0.3], [0.999, 1.0, np.nan]])
    printed = text(heatmap(values, limits=(0.0, 1.0)))
    assert field(printed) == ["3", "1 9", "0 9"]
    assert "number, from:" in printed
    assert "  0 0  1 0.1  2 0.2  3 0.3  4 0.4  5 0.5  6 0.6  7 0.7  8 0.8  9 0.9  to 1" in printed


def test_blank_cells_lines_and_words_are_seen() -> None:
    values = np.linspace(0, 1, 400).reshape(20, 20)
    line = Line("edge", np.array([95.0, 95.0]), np.array([-5.0, 195.0]))
    shown = heatmap(
        values, blank=values > 0.9, lines=(line,), words=(Words("hold\non", 30.0, 100.0),)
    )
    lines = field(text(shown))
    assert all(line[20:22] == "##" for line in lines) and len(lines) == 20
    assert lines[0].endswith("....")
    assert lines[8][4:10] == " hold " and lines[9][4:8] == " on "
    key = text(shown).splitlines()[-2:]
    assert key == ["  # edge", "  . none"]


@given(st.integers(1, 130), st.integers(1, 130), st.integers(1, 200))
def test_a_heat_map_fits_whatever_its_size(across: int, up: int, wide: int) -> None:
    values = np.arange(across * up, dtype=float).reshape(across, up)
    printed = text(heatmap(values), wide)
    rows = field(printed)
    assert rows and len(rows) <= 52
    assert max(len(line) for line in printed.splitlines() if "|" in line) <= max(wide, LEAST_WIDE)
    assert printed.isascii() and printed.endswith("\n")


def test_colours_are_only_where_they_are_asked_for() -> None:
    shown = heatmap(np.linspace(0, 1, 9).reshape(3, 3))
    plain, coloured = text(shown), text(shown, colour=True)
    assert not ESCAPE.search(plain) and ESCAPE.search(coloured)
    assert ESCAPE.sub("", coloured) == "".join(f"{x}\n" for x in plain.splitlines()) or (
        [x.rstrip() for x in ESCAPE.sub("", coloured).splitlines()] == plain.splitlines()
    )
    assert len(VIRIDIS) == 10


def curves(*values: list[float], **more: object) -> Curves:
    xs = np.arange(len(values[0]))
    made = tuple(Curve(f"curve {k}", f"c{k}", np.array(v)) for k, v in enumerate(values))
    return Curves("title", "about", "x", xs, made, "my x", "my y", **more)  # type: ignore[arg-type]


def test_a_curve_is_where_its_numbers_are() -> None:
    printed = text(curves([0.0, 1.0], [1.0, 1.0]), 60)
    rows = field(printed)
    assert rows[0].startswith("xxxx") and rows[-1].startswith("oo")
    assert rows[len(rows) // 2].strip("o ") == ""
    assert "  o curve 0   x curve 1" in printed
    labels = [line.partition("|")[0].strip() for line in printed.splitlines() if "|" in line]
    assert [label for label in labels if label] == ["1", "0.8", "0.6", "0.4", "0.2", "0"]


def test_a_gap_is_a_gap_and_a_band_is_marked() -> None:
    band = Band(3.0, 5.0, "beyond\nthe table")
    printed = text(curves([1.0, 2.0, np.nan, 3.0, 4.0], bands=(band,)), 50)
    rows = field(printed)
    columns = {k for row in rows for k, char in enumerate(row) if char == "o"}
    assert not columns & set(range(10, 24))
    assert all(row.rstrip().endswith(":") or row.rstrip().endswith("o") for row in rows)
    assert "  : beyond the table" in printed


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=80), st.integers(1, 200))
def test_curves_fit_and_every_number_is_drawn(values: list[float], wide: int) -> None:
    printed = text(curves(values), wide)
    rows = field(printed)
    assert max(len(line) for line in printed.splitlines()[3:]) <= max(wide, LEAST_WIDE) + 16
    columns = {k for row in rows for k, char in enumerate(row) if char == "o"}
    assert columns and max(columns) < max(wide, LEAST_WIDE)
    assert 0 in columns


@pytest.mark.parametrize("values", [[5.0], [2.0, 2.0], [np.nan, np.nan], [0.0, 0.0]])
def test_nothing_to_spread_is_no_error(values: list[float]) -> None:
    assert text(curves(values)).startswith("title\nabout\n")


def test_no_colour_at_all_is_no_error() -> None:
    assert "title" in text(heatmap(np.full((2, 2), np.nan)))
    assert "0" in text(heatmap(np.full((1, 1), 7.0)))
