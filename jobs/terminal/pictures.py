"""Draws a `solver.charts.model.Heatmap` with matplotlib: the same bytes for the same numbers.

No display is needed, and nothing of the day or the machine stands in a file.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from luckbase.solver.charts.model import Heatmap

SUFFIXES = (".png", ".svg", ".pdf")
WIDE, HIGH, DPI = 7.5, 7.1, 125
PANEL, SCALE = (0.65, 0.6, 5.75, 5.75), (6.55, 0.6, 0.25, 5.75)
"""Left, bottom, width and height of the picture and of its scale of colours, in inches."""
WIDE_NUMBERS = 10_000
"""Numbers on the y axis that need more room."""
NO_DATE: dict[str, dict[str, None]] = {
    ".png": {"Software": None},
    ".svg": {"Date": None, "Creator": None},
    ".pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",  # comes with matplotlib
    "font.size": 10,
    "svg.hashsalt": "luckbase",
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
}
BLANK, INK, GREY, LINE = "#eceae6", "#222222", "#555555", "#d1223a"


def draw(picture: Heatmap, suffix: str) -> bytes:
    """The picture as the bytes of a file that ends in `suffix`, one of `SUFFIXES`."""
    import matplotlib
    from matplotlib.figure import Figure

    written = io.BytesIO()
    with matplotlib.rc_context():
        matplotlib.rcdefaults()  # whatever a person's own settings are
        matplotlib.rcParams.update(STYLE)
        figure = Figure(figsize=(WIDE, HIGH), dpi=DPI)
        _fill(figure, picture)
        figure.savefig(written, format=suffix[1:], dpi=DPI, metadata=NO_DATE[suffix])
    return written.getvalue()


def as_png(picture: Heatmap) -> bytes:
    """The picture as the bytes of a PNG."""
    return draw(picture, ".png")


def _fill(figure: Figure, picture: Heatmap) -> None:
    import numpy as np
    from matplotlib.patheffects import withStroke
    from matplotlib.ticker import MaxNLocator

    left, bottom, width, high = PANEL
    if abs(picture.ys).max() >= WIDE_NUMBERS:
        left, width = left + 0.2, width - 0.2
    axes = figure.add_axes(_place((left, bottom, width, high)))
    least, most = picture.limits or (None, None)
    blank = np.isnan(picture.values) if picture.blank is None else picture.blank
    coloured = np.where(blank, np.nan, picture.values)
    left, right, bottom, top = edges = (*_edges(picture.xs), *_edges(picture.ys))
    mesh = axes.imshow(
        coloured.T, cmap="viridis", vmin=least, vmax=most, extent=edges, origin="lower",
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
    for words in picture.words:
        axes.text(words.x, words.y, words.text, ha="center", va="center", color=INK, fontsize=12)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(11, integer=True))
    axes.set_xlim(left, right)
    axes.set_ylim(bottom, top)
    axes.set_xlabel(picture.x_label)
    axes.set_ylabel(picture.y_label)
    axes.set_title(picture.title, loc="left", fontsize=13, fontweight="bold", pad=24)
    axes.annotate(
        picture.about, (0, 1), (0, 8), "axes fraction", textcoords="offset points", color=GREY
    )
    if not np.isnan(coloured).all():
        scale = figure.add_axes(_place(SCALE))
        figure.colorbar(mesh, cax=scale, label=picture.colour_label)
        if np.array_equal(coloured, np.round(coloured), equal_nan=True):
            scale.yaxis.set_major_locator(MaxNLocator(integer=True))
    if picture.lines:
        axes.legend(loc="lower right", bbox_to_anchor=(1, 1), frameon=False, borderaxespad=0.1)


def _place(inches: tuple[float, float, float, float]) -> tuple[float, float, float, float]:
    """A rectangle in shares of the figure."""
    left, bottom, width, height = inches
    return left / WIDE, bottom / HIGH, width / WIDE, height / HIGH


def _edges(centres: NDArray[np.int64]) -> tuple[float, float]:
    """Where the first of the evenly spaced cells begins and the last one ends."""
    half = (centres[1] - centres[0]) / 2 if len(centres) > 1 else 0.5
    return float(centres[0] - half), float(centres[-1] + half)
