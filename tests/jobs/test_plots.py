"""Pictures are readable without colours, whole, and the same to the byte; those of a page have its
colours and nothing that a strict policy refuses; as text they fit and say the numbers."""

import base64
import io
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from luckbase.jobs import plots
from luckbase.jobs.app import PICTURES
from luckbase.jobs.plots import CLASSES, COLOURS, MIN_WIDTH, draw, for_page, text
from luckbase.solver.charts import Band, Curve, Curves, Heatmap, Line, Words, outline

LUMINANCE = np.array([0.2126, 0.7152, 0.0722])


def grey(colours):
    """How light colours (…, 3), 0 to 1, look in grey."""
    return np.asarray(colours, float)[..., :3] @ LUMINANCE


def pixels(picture):
    from matplotlib.image import imread

    return imread(io.BytesIO(draw(picture, ".png")))[..., :3]


def split():
    """Numbers that rise from left to right; a line down the middle of the rows."""
    xs = ys = 500 * np.arange(40)
    values = np.repeat(np.linspace(0, 1, 40)[:, None], 40, axis=1)
    line = outline("play or pass", np.repeat((ys < 9750)[None, :], 40, axis=0), xs, ys)
    return Heatmap("$3,000 and $5,500", "a", ("x", "y", "v"), xs, ys, values, "x", "y", "v",
                   lines=(line,))  # fmt: skip


def test_colours_never_get_darker_as_numbers_grow():
    import matplotlib

    light = grey(matplotlib.colormaps[COLOURS](np.linspace(0, 1, 256)))
    assert (np.diff(light) > 0).all() and light[-1] - light[0] > 0.7


def test_the_line_is_seen_in_grey_on_every_colour():
    """Across the line at any place grey changes by a third at least: its edge is white or it is."""
    light = grey(pixels(split()))
    middle = (light.shape[0] - 75) - int(5.75 * 125 * 0.5)  # 0.6 inches of axis below
    for column in np.linspace(150, 770, 20).astype(int):
        across = light[middle - 12 : middle + 12, column]
        assert across.max() - across.min() > 0.33, column


def lines(count, title="t"):
    xs = np.arange(10)
    made = tuple(Curve(f"label {k}", f"c{k}", 1000.0 * (xs + k)) for k in range(count))
    return Curves(title, "about " * 40, "x", xs, made, "my x", "my y", (Band(8.5, 9.5, "beyond"),),
                  (Words("here", 4, 2000),), (0.0, 12000.0))  # fmt: skip


@pytest.mark.parametrize("suffix", PICTURES)
def test_curves_are_written_the_same_to_the_byte(suffix):
    assert draw(lines(2), suffix) == draw(lines(2), suffix)


# --- in a page -----------------------------------------------------------------------------------


class Element(HTMLParser):
    """An element read: the attributes of all that is in it, by tag; its texts."""

    def __init__(self, html):
        super().__init__()
        self.all = []
        self.texts = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        assert len(dict(attrs)) == len(attrs)  # none twice
        self.all.append((tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data):
        self.texts.append(data)

    def values(self, name):
        return [attributes[name] for _, attributes in self.all if name in attributes]


def full():
    """A heat map with all that one can have, and letters that are none of a page's."""
    xs = ys = np.arange(6)
    values = np.add.outer(xs, 10.0 * ys)
    line = Line("a line & more", np.array([0.0, 5.0]), np.array([0.0, 5.0]))
    return Heatmap("a <title>", "about", ("x", "y", "v"), xs, ys, values, "my x", "my y", "<v>",
                   blank=values > 50, lines=(line,),
                   words=(Words("<script>", 2.0, 3.0),))  # fmt: skip


@pytest.mark.parametrize("picture", [full(), lines(8)], ids=["heatmap", "curves"])
def test_a_picture_in_a_page_has_its_colours_and_no_style_of_its_own(picture):
    read = Element(for_page(picture, "one").svg)
    assert not {tag for tag, _ in read.all} & {"style", "script", "metadata"}
    assert not read.values("style") and not read.values("font-family")
    assert all(size.endswith("px") for size in read.values("font-size"))
    colours = {*read.values("stroke"), *read.values("fill")}
    assert {colour for colour in colours if colour.startswith("#")} <= {"#ffffff"}
    assert {"var(--faint)", "none", "currentColor"} <= colours
    if isinstance(picture, Curves):
        assert {f"var(--stroke-{i})" for i in range(8)} <= colours
    assert [tag for tag, found in read.all if found.get("class") == "here"]


def test_letters_in_a_page_are_letters_and_title_and_date_are_the_pages():
    for picture, words in ((full(), ["<script>", "my x", "my y", "<v>", "a line & more", "25"]),
                           (lines(2), ["here", "beyond", "label 1", "10,000"])):  # fmt: skip
        svg = for_page(picture, "one").svg
        read = Element(svg)
        assert set(words) <= set(read.texts) and "<script>" not in svg
        assert picture.title not in read.texts
        (label,) = read.values("aria-label")
        assert label == f"{picture.title}. {picture.about}"
    assert set(CLASSES) <= set(Element(for_page(full(), "one").svg).values("class"))


def test_a_page_knows_where_the_numbers_are():
    """The image of a heat map, a point a cell, fills its frame; curves go through their places."""
    from matplotlib.image import imread

    shown = for_page(full(), "one")
    left, top, width, height = shown.frame
    image = next(found for tag, found in Element(shown.svg).all if tag == "image")
    points = imread(io.BytesIO(base64.b64decode(image["href"].split(",")[1])))
    assert points.shape[:2] == (6, 6)
    across, _, _, up, x, y = (float(n) for n in re.findall(r"-?[\d.]+", image["transform"]))
    size = (float(image["width"]), float(image["height"]))
    assert (x, across * size[0]) == pytest.approx((left, width), abs=0.1)
    assert sorted((y, y + up * size[1])) == pytest.approx([top, top + height], abs=0.1)
    xs = np.array([0, 500, 1000])
    made = (Curve("c", "c", np.array([0.0, 1.0, 2.0])),)
    shown = for_page(Curves("t", "a", "x", xs, made, "x", "y", (Band(500, 2000, "b"),)), "two")
    left, top, width, height = shown.frame
    # The band is twice as wide, and 2 % are spare on either side.
    assert shown.places == pytest.approx([left + width * (0.02 + k) / 1.04 for k in (0, 0.25, 0.5)],
                                         abs=0.1)  # fmt: skip
    curves = [
        found["d"] for _, found in Element(shown.svg).all
        if found.get("stroke") == "var(--stroke-0)" and "clip-path" in found
    ]  # fmt: skip
    (path,) = curves
    points = np.array([float(n) for n in re.findall(r"[\d.]+", path)]).reshape(-1, 2)
    assert points[:, 0] == pytest.approx(shown.places, abs=0.1)
    assert (points[:, 1] > top).all() and (points[:, 1] < top + height).all()


# --- as text -------------------------------------------------------------------------------------


def heatmap(values, **more):
    xs, ys = 10 * np.arange(values.shape[0]), 10 * np.arange(values.shape[1])
    return Heatmap(
        "title", "about", ("x", "y", "v"), xs, ys, values, "my x", "my y", "number", **more
    )


def field(printed):
    """The lines of the picture, what stands right of the axis, top line first."""
    return [line.partition("|")[2] for line in printed.splitlines() if "|" in line]


def test_a_digit_is_the_tenth_of_the_scale_that_a_number_lies_in():
    values = np.array([[0.0, 0.19, 0.3], [0.999, 1.0, np.nan]])
    printed = text(heatmap(values, limits=(0.0, 1.0)))
    assert field(printed) == ["33", "1199", "0099"]
    assert "number, from:" in printed
    assert "  0 0  1 0.1  2 0.2  3 0.3  4 0.4  5 0.5  6 0.6  7 0.7  8 0.8  9 0.9  to 1" in printed


@given(st.integers(1, 130), st.integers(1, 130), st.integers(1, 200))
def test_a_heat_map_fits_whatever_its_size(across, up, wide):
    values = np.arange(across * up, dtype=float).reshape(across, up)
    printed = text(heatmap(values), wide)
    rows = field(printed)
    assert rows and len(rows) <= 52
    assert max(len(line) for line in printed.splitlines() if "|" in line) <= max(wide, MIN_WIDTH)
    assert printed.isascii() and printed.endswith("\n")


def curves(*values, **more):
    xs = np.arange(len(values[0]))
    made = tuple(Curve(f"curve {k}", f"c{k}", np.array(v)) for k, v in enumerate(values))
    return Curves("title", "about", "x", xs, made, "my x", "my y", **more)


def test_a_curve_is_where_its_numbers_are():
    printed = text(curves([0.0, 1.0], [1.0, 1.0]), 60)
    rows = field(printed)
    assert rows[0].startswith("xxxx") and rows[-1].startswith("oo")
    assert rows[len(rows) // 2].strip("o ") == ""
    assert "  o curve 0   x curve 1" in printed
    labels = [line.partition("|")[0].strip() for line in printed.splitlines() if "|" in line]
    assert [label for label in labels if label] == ["1", "0.75", "0.5", "0.25", "0"]


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=80), st.integers(1, 200))
def test_curves_fit_and_every_number_is_drawn(values, wide):
    printed = text(curves(values), wide)
    rows = field(printed)
    assert max(len(line) for line in printed.splitlines()[3:]) <= max(wide, MIN_WIDTH) + 16
    columns = {k for row in rows for k, char in enumerate(row) if char == "o"}
    assert columns and max(columns) < max(wide, MIN_WIDTH)
    assert 0 in columns


@pytest.mark.parametrize("whole", [True, False])
def test_text_has_the_ticks_and_colours_that_a_picture_has(whole):
    """Made without matplotlib, which text does not need."""
    from matplotlib import colormaps
    from matplotlib.ticker import MaxNLocator

    for span, most in [((-0.5, 100.5), 5), ((0, 0.37), 7), ((3, 4), 9), ((-250, 10250), 12),
                       ((0.2, 0.9), 1), ((7, 7.5), 4), ((0, 1), 20)]:  # fmt: skip
        steps = [1, 2, 2.5, 5, 10]
        ticks = MaxNLocator(max(2, most), integer=whole, steps=steps).tick_values(*span)
        right = [float(x) for x in ticks if span[0] <= x <= span[1]]
        assert plots._ticks(span, most, whole) == pytest.approx(right, abs=1e-12), (span, most)
    shades = [colormaps[plots.COLOURS](k / 9)[:3] for k in range(10)]
    assert [tuple(round(255 * x) for x in shade) for shade in shades] == [*plots.COLOURED]
