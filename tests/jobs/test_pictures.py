"""Pictures that are drawn: readable without colours, whole, and the same to the byte."""

from __future__ import annotations

import io
from itertools import pairwise

import numpy as np
import pytest

from luckbase.jobs.chart import PICTURES
from luckbase.jobs.terminal.pictures import COLOURS, LINE, STROKES, SUFFIXES, draw
from luckbase.jobs.terminal.text_pictures import VIRIDIS
from luckbase.solver.charts.model import Band, Curve, Curves, Heatmap, Words, outline

LUMINANCE = np.array([0.2126, 0.7152, 0.0722])


def grey(colours: object) -> np.ndarray:
    """How light colours (…, 3), 0 to 1, look in grey."""
    return np.asarray(colours, float)[..., :3] @ LUMINANCE


def pixels(picture: Heatmap | Curves) -> np.ndarray:
    from matplotlib.image import imread

    found: np.ndarray = imread(io.BytesIO(draw(picture, ".png")))[..., :3]
    return found


def split() -> Heatmap:
    """Numbers that rise from left to right; a line down the middle of the rows."""
    xs = ys = 500 * np.arange(40)
    values = np.repeat(np.linspace(0, 1, 40)[:, None], 40, axis=1)
    line = outline("play or pass", np.repeat((ys < 9750)[None, :], 40, axis=0), xs, ys)
    assert line is not None
    return Heatmap("$3,000 and $5,500", "a", ("x", "y", "v"), xs, ys, values, "x", "y", "v",
                   lines=(line,))  # fmt: skip


def test_colours_never_get_darker_as_numbers_grow() -> None:
    import matplotlib

    light = grey(matplotlib.colormaps[COLOURS](np.linspace(0, 1, 256)))
    assert (np.diff(light) > 0).all() and light[-1] - light[0] > 0.7
    ten = grey(np.array(VIRIDIS) / 255)
    assert (np.diff(ten) > 0).all()


def test_digits_have_the_colours_of_the_picture() -> None:
    import matplotlib

    drawn = matplotlib.colormaps[COLOURS](np.linspace(0, 1, 10))[:, :3]
    assert np.abs(drawn - np.array(VIRIDIS) / 255).max() < 0.02


def test_the_line_is_seen_in_grey_on_every_colour() -> None:
    """Across the line at any place grey changes by a third at least: its edge is white or it is."""
    light = grey(pixels(split()))
    middle = (light.shape[0] - 75) - int(5.75 * 125 * 0.5)  # 0.6 inches of axis below
    for column in np.linspace(150, 770, 20).astype(int):
        across = light[middle - 12 : middle + 12, column]
        assert across.max() - across.min() > 0.33, column


def test_strokes_are_told_apart_without_colours() -> None:
    assert len({(str(stroke), marker) for _, stroke, marker in STROKES}) == len(STROKES)
    for one, two in pairwise(STROKES):
        assert str(one[1]) != str(two[1])


def test_dollars_are_no_mathematics_and_nothing_is_cut_off() -> None:
    drawn = draw(split(), ".svg").decode()
    assert "$3,000 and $5,500" in drawn and "16,000" in drawn
    image = pixels(split())
    for edge in (image[:, :4], image[:, -4:], image[:4], image[-4:]):
        assert (edge == 1.0).all()


def lines(count: int, title: str = "t") -> Curves:
    xs = np.arange(10)
    made = tuple(Curve(f"label {k}", f"c{k}", 1000.0 * (xs + k)) for k in range(count))
    return Curves(title, "about " * 40, "x", xs, made, "my x", "my y", (Band(8.5, 9.5, "beyond"),),
                  (Words("here", 4, 2000),), (0.0, 12000.0))  # fmt: skip


@pytest.mark.parametrize("count", [1, 3, 10])
def test_curves_are_drawn_whole_with_their_labels(count: int) -> None:
    picture = lines(
        count, "A title that is so long that it has to go on in another line of its own"
    )
    drawn = draw(picture, ".svg").decode()
    for text in ("label 0", "beyond", "10,000", "my x", "my y"):
        assert text in drawn
    image = pixels(picture)
    for edge in (image[:, :4], image[:, -4:], image[:4], image[-4:]):
        assert (edge == 1.0).all()


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_curves_are_written_the_same_to_the_byte(suffix: str) -> None:
    assert draw(lines(2), suffix) == draw(lines(2), suffix)


def test_the_command_knows_the_endings() -> None:
    assert SUFFIXES == PICTURES and LINE.startswith("#")
