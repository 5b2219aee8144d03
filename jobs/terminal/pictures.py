"""Draws pictures of `solver.charts.model` with matplotlib: the same bytes for the same numbers.

A `Heatmap` and `Curves` look alike: one message as the title, what it is of below it, and nothing
that is lost in grey: colours get lighter with the number, lines have a white edge or a stroke of
their own. No display is needed, and nothing of the day or the machine stands in a file.
"""

from __future__ import annotations

import io
from textwrap import wrap
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from luckbase.solver.charts.model import Curves, Heatmap, Words

SUFFIXES = (".png", ".svg", ".pdf")
WIDE, HIGH, LOW, DPI = 7.5, 7.1, 5.3, 125
"""Inches: of a picture, of a heat map, of curves."""
PANEL, SCALE = (0.65, 0.6, 5.75, 5.75), (6.55, 0.6, 0.25, 5.75)
THOUSANDS_PANEL = (0.95, 0.6, 5.45, 5.75)
"""Left, bottom, width and height of the picture and of its scale of colours, in inches; of one with
numbers of thousands on its axis."""
CURVES_PANEL = (0.85, 0.6, 6.35, 3.85)
NO_DATE: dict[str, dict[str, None]] = {
    ".png": {"Software": None},
    ".svg": {"Date": None, "Creator": None},
    ".pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",  # comes with matplotlib
    "font.size": 10,
    "svg.hashsalt": "luckbase",
    "text.parse_math": False,  # dollars are dollars
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
}
COLOURS = "viridis"
"""Of a heat map, darkest for the least number: its lightness never falls."""
BLANK, INK, GREY, LINE = "#eceae6", "#222222", "#555555", "#d1223a"
STROKES = (
    ("#1b3a6b", "-", "o"), ("#d1223a", "--", "s"), ("#2f8f5b", "-.", "^"), ("#c98a1b", ":", "D"),
    ("#6a4c93", (0, (5, 1, 1, 1, 1, 1)), "v"), ("#444444", (0, (1, 1)), "P"),
    ("#7fb2e5", "-", "X"), ("#e59a7f", "--", "*"),
)  # fmt: skip
"""Of curves: colour, stroke and marker, told apart without the colour."""
THOUSANDS = 1000
"""From which on numbers have commas."""
TITLE, MORE = 58, 0.22
"""Letters in a line of the title, and inches of every line above the first."""
ABOUT, ABOUT_HEATMAP = 92, 58
"""Letters in a line below the title of curves; of a heat map, beside what its lines are."""
MARKED = 45
"""Points of a curve, above which they have no markers."""


def draw(picture: Heatmap | Curves, suffix: str) -> bytes:
    """The picture as the bytes of a file that ends in `suffix`, one of `SUFFIXES`."""
    import matplotlib
    from matplotlib.figure import Figure

    from luckbase.solver.charts.model import Heatmap

    written = io.BytesIO()
    with matplotlib.rc_context():
        matplotlib.rcdefaults()  # whatever a person's own settings are
        matplotlib.rcParams.update(STYLE)
        title, about = _head(picture)
        high = HIGH if isinstance(picture, Heatmap) else LOW
        high += MORE * (len(title) + len(about) - 2)
        figure = Figure(figsize=(WIDE, high), dpi=DPI)
        if isinstance(picture, Heatmap):
            _fill_heatmap(figure, picture)
        else:
            _fill_curves(figure, picture)
        figure.savefig(written, format=suffix[1:], dpi=DPI, metadata=NO_DATE[suffix])
    return written.getvalue()


def as_png(picture: Heatmap | Curves) -> bytes:
    """The picture as the bytes of a PNG."""
    return draw(picture, ".png")


# --- heat maps -----------------------------------------------------------------------------------


def _fill_heatmap(figure: Figure, picture: Heatmap) -> None:
    import numpy as np
    from matplotlib.patheffects import withStroke
    from matplotlib.ticker import MaxNLocator

    panel = THOUSANDS_PANEL if picture.ys[-1] >= THOUSANDS else PANEL
    axes = figure.add_axes(_place(panel, figure))
    low, high = picture.limits or (None, None)
    blank = np.isnan(picture.values) if picture.blank is None else picture.blank
    coloured = np.where(blank, np.nan, picture.values)
    left, right, bottom, top = edges = (*_edges(picture.xs), *_edges(picture.ys))
    mesh = axes.imshow(
        coloured.T, cmap=COLOURS, vmin=low, vmax=high, extent=edges, origin="lower",
        interpolation="nearest", aspect="auto",
    )  # fmt: skip
    axes.set_facecolor(BLANK)
    if picture.levels:
        contours = axes.contour(
            picture.xs, picture.ys, picture.values.T, picture.levels, colors="white",
            linewidths=0.7, alpha=0.8,
        )  # fmt: skip
        axes.clabel(contours, fontsize=8, fmt="%g")
    for line in picture.lines:
        outlined = [withStroke(linewidth=4.5, foreground="white")]
        axes.plot(line.xs, line.ys, color=LINE, lw=2.4, label=line.label,
                  path_effects=outlined, solid_joinstyle="round")  # fmt: skip
    _write(axes, picture.words)
    axes.yaxis.set_major_locator(MaxNLocator(11, integer=True))
    _name_axes(axes, picture, (left, right))
    axes.set_ylim(bottom, top)
    if not np.isnan(coloured).all():
        scale = figure.add_axes(_place(SCALE, figure))
        figure.colorbar(mesh, cax=scale, label=picture.colour_label)
        if np.array_equal(coloured, np.round(coloured), equal_nan=True):
            scale.yaxis.set_major_locator(MaxNLocator(integer=True))
    if picture.lines:
        axes.legend(loc="lower right", bbox_to_anchor=(1, 1), frameon=False, borderaxespad=0.1)


# --- curves --------------------------------------------------------------------------------------


def _fill_curves(figure: Figure, picture: Curves) -> None:
    axes = figure.add_axes(_place(CURVES_PANEL, figure))
    for band in picture.bands:
        axes.axvspan(band.first, band.last, color=BLANK, lw=0, zorder=0)
        axes.annotate(
            band.text, ((band.first + band.last) / 2, 1), (0, -5), textcoords="offset points",
            xycoords=("data", "axes fraction"), ha="center", va="top", color=GREY,
        )  # fmt: skip
    markers = len(picture.xs) <= MARKED
    for curve, (colour, stroke, marker) in zip(picture.curves, _strokes(picture), strict=True):
        axes.plot(
            picture.xs, curve.values, color=colour, ls=stroke, lw=2.2, label=curve.label,
            marker=marker if markers else None, ms=4.5,
        )  # fmt: skip
    _write(axes, picture.words)
    first, last = picture.x_range
    spare = 0.02 * (last - first) or 0.5
    _name_axes(axes, picture, (first - spare, last + spare))
    if picture.limits:
        axes.set_ylim(*picture.limits)
    axes.grid(color="#dddddd", lw=0.6)
    axes.set_axisbelow(True)
    axes.legend(loc="best", framealpha=0.9, edgecolor="#dddddd", handlelength=3.2)


def _strokes(picture: Curves) -> list[tuple[Any, Any, str]]:
    return [STROKES[i % len(STROKES)] for i in range(len(picture.curves))]


# --- both ----------------------------------------------------------------------------------------


def _write(axes: Axes, words: tuple[Words, ...]) -> None:
    from matplotlib.patheffects import withStroke

    for each in words:
        axes.text(
            each.x, each.y, each.text, ha="center", va="center", color=INK, fontsize=12,
            path_effects=[withStroke(linewidth=3, foreground="white")],
        )  # fmt: skip


def _name_axes(axes: Axes, picture: Heatmap | Curves, ends: tuple[float, float]) -> None:
    """Names of the axes, the title, and what it is of."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(11, integer=True))
    for axis in (axes.xaxis, axes.yaxis):
        if max(map(abs, axis.get_view_interval())) >= THOUSANDS:
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.set_xlim(*ends)
    axes.set_xlabel(picture.x_label)
    axes.set_ylabel(picture.y_label)
    title, about = _head(picture)
    pad = 24 + 14 * (len(about) - 1)
    axes.set_title("\n".join(title), loc="left", fontsize=13, fontweight="bold", pad=pad)
    axes.annotate(
        "\n".join(about), (0, 1), (0, 8), "axes fraction", textcoords="offset points", color=GREY
    )


def _head(picture: Heatmap | Curves) -> tuple[list[str], list[str]]:
    """The lines of the title, and of what stands below it."""
    from luckbase.solver.charts.model import Curves

    wide = ABOUT if isinstance(picture, Curves) else ABOUT_HEATMAP
    return wrap(picture.title, TITLE) or [""], wrap(picture.about, wide) or [""]


def _place(
    inches: tuple[float, float, float, float], figure: Figure
) -> tuple[float, float, float, float]:
    """A rectangle in shares of the figure."""
    left, bottom, width, height = inches
    wide, high = figure.get_size_inches()
    return left / wide, bottom / high, width / wide, height / high


def _edges(centres: NDArray[np.int64]) -> tuple[float, float]:
    """Where the first of the evenly spaced cells begins and the last one ends."""
    half = (centres[1] - centres[0]) / 2 if len(centres) > 1 else 0.5
    return float(centres[0] - half), float(centres[-1] + half)
