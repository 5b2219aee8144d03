"""Pictures of `solver.charts`: drawn with matplotlib into files and pages, and as text.

Nothing is lost in grey: colours get lighter with the number, lines have a white edge or a stroke of
their own. The same numbers give the same bytes: nothing of the day or the machine stands in a file.
As text a heat map is a digit a cell, 0 for the least numbers and 9 for the greatest, and lines are
``#``; curves are a letter each. Where there are more numbers than room, some are left out.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from itertools import cycle
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from luckbase.jobs.terminal import write_file
from luckbase.solver.charts import Chart, Curves, Heatmap, Listing, Words
from luckbase.solver.errors import OptionError, need

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

Rectangle = tuple[float, float, float, float]
"""Left, bottom, width and height."""
WIDTH, DPI = 7.5, 125
"""Inches of a picture, and pixels of an inch."""
ABOVE, LINE_HEIGHT = 0.75, 0.22
"""Inches above the panel: with one line of title and one below it, and of every further line."""
LEGEND = 0.3
"""Inches above the panel for the names of its lines alone, in a page."""
PANEL, SCALE = (0.65, 0.6, 5.75, 5.75), (6.55, 0.6, 0.25, 5.75)
THOUSANDS_PANEL = (0.95, 0.6, 5.45, 5.75)
"""Of a heat map and of its scale of colours, in inches; of one with thousands on its axis."""
CURVES_PANEL, CURVES_ABOVE = (0.85, 0.6, 6.35, 3.85), 0.85
NO_DATE: dict[str, dict[str, None]] = {
    ".png": dict.fromkeys(["Software"]),
    ".svg": dict.fromkeys(["Date", "Creator"]),
    ".pdf": dict.fromkeys(["CreationDate", "Creator", "Producer"]),
}
STYLE: dict[str, Any] = {
    "font.family": "DejaVu Sans",  # comes with matplotlib
    "text.parse_math": False,  # dollars are dollars
    "font.size": 10, "svg.hashsalt": "luckbase", "svg.fonttype": "none", "pdf.fonttype": 42,
}  # fmt: skip
COLOURS = "viridis"
"""Of a heat map, darkest for the least number: its lightness never falls."""
COLOURED = (
    (68, 1, 84), (72, 40, 120), (62, 73, 137), (49, 104, 142), (38, 130, 142), (31, 158, 137),
    (53, 183, 121), (110, 206, 88), (181, 222, 43), (253, 231, 37),
)  # fmt: skip
"""The same of ten digits on a terminal."""
BLANK, INK, GREY, LINE, GRID = "#eceae6", "#222222", "#555555", "#d1223a", "#dddddd"
STROKES = (
    ("#1b3a6b", "-", "o"), ("#d1223a", "--", "s"), ("#2f8f5b", "-.", "^"), ("#c98a1b", ":", "D"),
    ("#6a4c93", (0, (5, 1, 1, 1, 1, 1)), "v"), ("#444444", (0, (1, 1)), "P"),
    ("#7fb2e5", "-", "X"), ("#e59a7f", "--", "*"),
)  # fmt: skip
"""Of curves: colour, stroke and marker, told apart without the colour."""
THOUSANDS = 1000
"""From which on numbers have commas."""
TITLE, ABOUT, ABOUT_HEATMAP = 58, 92, 58
"""Letters in a line of the title, and below the title of curves; of a heat map, beside what its
lines are."""
MARKED = 45
"""Points of a curve, above which they have no markers."""


# --- files ---------------------------------------------------------------------------------------


def save(chart: Chart, path: str) -> int:
    """Write a chart to a file (`Chart.save` of `solver.charts`)."""
    suffix, listing = Path(path).suffix.lower(), isinstance(chart, Listing)
    endings = (".txt", ".csv") if listing else (*NO_DATE, ".txt", ".csv")
    if suffix not in endings:
        kind = "list" if listing else "picture"
        raise OptionError(f"{path}: a {kind} is saved in a file that ends in {', '.join(endings)}")
    return write_file(path, as_file(chart, suffix))


def as_file(chart: Chart, suffix: str) -> bytes:
    """What stands in a file of a chart that ends in `suffix`: .csv, .txt, or of a picture."""
    if suffix == ".csv":
        lines = io.StringIO()
        csv.writer(lines, lineterminator="\n").writerows([chart.columns, *chart.rows])
        return lines.getvalue().encode()
    if isinstance(chart, Listing):
        return "".join(f"{line}\n" for line in chart.lines).encode()
    return text(chart).encode() if suffix == ".txt" else draw(chart, suffix)


def draw(picture: Heatmap | Curves, suffix: str = ".png") -> bytes:
    """The picture as the bytes of a file that ends in `suffix`: .png, .svg or .pdf. Raises
    OptionError where there is no matplotlib."""
    need("a picture", "matplotlib", extra="report")
    written = io.BytesIO()
    curves = isinstance(picture, Curves)
    title = wrap(picture.title, TITLE) or [""]
    caption = wrap(picture.about, ABOUT if curves else ABOUT_HEATMAP) or [""]
    above = (CURVES_ABOVE if curves else ABOVE) + LINE_HEIGHT * (len(title) + len(caption) - 2)
    with _style():
        figure = _figure(picture, above)
        axes = figure.axes[0]
        pad = 24 + 14 * (len(caption) - 1)
        axes.set_title("\n".join(title), loc="left", fontsize=13, fontweight="bold", pad=pad)
        axes.annotate(
            "\n".join(caption), (0, 1), (0, 8), "axes fraction", textcoords="offset points",
            color=GREY,
        )  # fmt: skip
        figure.savefig(written, format=suffix[1:], dpi=DPI, metadata=NO_DATE[suffix])
    return written.getvalue()


@contextmanager
def _style(more: Mapping[str, Any] = {}) -> Iterator[None]:
    """Our settings, whatever a person's own ones are."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        settings: dict[Any, Any] = {**STYLE, **more}
        matplotlib.rcParams.update(settings)
        yield


def _figure(picture: Heatmap | Curves, above: float) -> Figure:
    """The picture without its title, its first axes the panel; above: inches above the panel."""
    from matplotlib.figure import Figure

    panel = CURVES_PANEL
    if isinstance(picture, Heatmap):
        panel = THOUSANDS_PANEL if picture.ys[-1] >= THOUSANDS else PANEL
    figure = Figure(figsize=(WIDTH, panel[1] + panel[3] + above), dpi=DPI)
    axes = figure.add_axes(_place(panel, figure))
    if isinstance(picture, Heatmap):
        _fill_heatmap(figure, axes, picture)
    else:
        _fill_curves(axes, picture)
    return figure


def _fill_heatmap(figure: Figure, axes: Axes, picture: Heatmap) -> None:
    from matplotlib.patheffects import withStroke
    from matplotlib.ticker import MaxNLocator

    lower, upper = picture.limits or (None, None)
    blank = np.isnan(picture.values) if picture.blank is None else picture.blank
    coloured = np.where(blank, np.nan, picture.values)
    left, right, bottom, top = edges = (*_edges(picture.xs), *_edges(picture.ys))
    mesh = axes.imshow(
        coloured.T, cmap=COLOURS, vmin=lower, vmax=upper, extent=edges, origin="lower",
        interpolation="none", aspect="auto",
    )  # fmt: skip
    axes.set_facecolor(BLANK)
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


def _fill_curves(axes: Axes, picture: Curves) -> None:
    for band in picture.bands:
        axes.axvspan(band.first, band.last, color=BLANK, lw=0, zorder=0)
        axes.annotate(
            band.text, ((band.first + band.last) / 2, 1), (0, -5), textcoords="offset points",
            xycoords=("data", "axes fraction"), ha="center", va="top", color=GREY,
        )  # fmt: skip
    markers = len(picture.xs) <= MARKED
    for i, curve in enumerate(picture.curves):
        colour, stroke, marker = STROKES[i % len(STROKES)]
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
    axes.grid(color=GRID, lw=0.6)
    axes.set_axisbelow(True)
    axes.legend(loc="best", framealpha=0.9, edgecolor=GRID, handlelength=3.2)


def _write(axes: Axes, words: tuple[Words, ...]) -> None:
    from matplotlib.patheffects import withStroke

    for each in words:
        axes.text(
            each.x, each.y, each.text, ha="center", va="center", color=INK, fontsize=12,
            path_effects=[withStroke(linewidth=3, foreground="white")],
        )  # fmt: skip


def _name_axes(axes: Axes, picture: Heatmap | Curves, ends: tuple[float, float]) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(11, integer=True))
    for axis in (axes.xaxis, axes.yaxis):
        if max(map(abs, axis.get_view_interval())) >= THOUSANDS:
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.set_xlim(*ends)
    axes.set_xlabel(picture.x_label)
    axes.set_ylabel(picture.y_label)


def _place(inches: Rectangle, figure: Figure) -> Rectangle:
    """A rectangle in shares of the figure."""
    left, bottom, width, height = inches
    across, up = figure.get_size_inches()
    return left / across, bottom / up, width / across, height / up


def _edges(centres: NDArray[np.int64]) -> tuple[float, float]:
    """Where the first of the evenly spaced cells begins and the last one ends."""
    half = (centres[1] - centres[0]) / 2 if len(centres) > 1 else 0.5
    return float(centres[0] - half), float(centres[-1] + half)


# --- a part of a page ----------------------------------------------------------------------------

GROUND = "#fcfcfa"
PAGE_STYLE = {
    "figure.facecolor": "none", "axes.facecolor": "none", "legend.facecolor": GROUND,
}  # fmt: skip
PAGE_COLOURS = {
    "#000000": "var(--faint)", INK: "var(--ink)", GREY: "var(--faint)", BLANK: "var(--blank)",
    GRID: "var(--edge)", GROUND: "var(--ground)",
} | {stroke[0]: f"var(--stroke-{i})" for i, stroke in enumerate(STROKES)}  # fmt: skip
"""What a page calls our colours; what lies on the colours of a heat map, white, stays as it is."""
CLASSES = ("said",)
"""Of groups of letters, for the page's style: words on the picture."""


@dataclass(frozen=True)
class PagePicture:
    """A picture to stand in a page, without title."""

    svg: str
    """An element without style sheet, inline style or date, whose ids no other picture has; it has
    an empty element of the class ``here`` for what is pointed at."""
    frame: Rectangle
    """Left, top, width and height of the panel, in the units of its view box."""
    places: tuple[float, ...] = ()
    """Of each x of `Curves` across the sheet, in the same units; none of a heat map."""


def for_page(picture: Heatmap | Curves, name: str) -> PagePicture:
    """The picture as a part of a page that says its title. name: letters, digits and hyphens, which
    no other picture on the page has.

    Colours are the page's: ``--ink``, ``--faint``, ``--edge``, ``--blank``, ``--ground`` and
    ``--stroke-0`` to ``--stroke-7``; groups of letters have the classes `CLASSES`.
    """
    written = io.BytesIO()
    with _style(PAGE_STYLE):
        figure = _figure(picture, LEGEND if isinstance(picture, Heatmap) and picture.lines else 0.1)
        axes = figure.axes[0]
        for text in axes.texts:
            if text.get_path_effects():  # they would be drawn as outlines, not as letters
                text.set_path_effects([])
                text.set_gid("said")
        none = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(written, format="svg", metadata=none)
        points = [(x, 0.0) for x in picture.xs] if isinstance(picture, Curves) else []
        shares = [float(axes.transLimits.transform(point)[0]) for point in points]
        sheet = [72 * float(inches) for inches in figure.get_size_inches()]
        x, y, across, up = map(float, axes.get_position().bounds)
    left, width, height = x * sheet[0], across * sheet[0], up * sheet[1]
    top = (1 - y) * sheet[1] - height
    frame = (round(left, 2), round(top, 2), round(width, 2), round(height, 2))
    label = escape(f"{picture.title}. {picture.about}")
    marker = '<path class="here"/>' if points else '<rect class="here" width="0" height="0"/>'
    inner = _for_page(written.getvalue().decode(), name)
    svg = (
        f'<svg viewBox="0 0 {sheet[0]:g} {sheet[1]:g}" role="img" tabindex="0" '
        f'aria-label="{label}" fill="currentColor" stroke-linejoin="round">{inner}{marker}</svg>'
    )
    return PagePicture(svg, frame, tuple(round(left + width * share, 1) for share in shares))


def _for_page(svg: str, name: str) -> str:
    """What stands in an SVG file of matplotlib's, made to stand in a page."""
    svg = svg[svg.index(">", svg.index("<svg")) + 1 : svg.rindex("</svg>")]
    svg = re.sub(r"<style.*?</style>|<metadata.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"base64,[^\"]*", lambda match: "".join(match[0].split()), svg)
    svg = re.sub(r"\s+", " ", svg).replace("> <", "><").replace("xlink:href", "href")
    svg = re.sub(r' transform="rotate\(-0 [^"]*"', "", svg)
    svg = re.sub(r'style="([^"]*)"', lambda match: _attributes(match[1]), svg)
    used = set(re.findall(r'(?:href="|url\()#([^")]+)', svg))
    svg = re.sub(r'((?:href="|url\()#)', rf"\g<1>{name}-", svg)

    def renamed(match: re.Match[str]) -> str:
        if match[1] in used:
            return f' id="{name}-{match[1]}"'
        return f' class="{match[1]}"' if match[1] in CLASSES else ""

    return re.sub(r' id="([^"]*)"', renamed, svg)


def _attributes(style: str) -> str:
    """An inline style as attributes, which a page's policy allows; letters are the page's."""
    pairs = dict(re.findall(r"([\w-]+): ?([^;]+)", style))
    pairs.pop("font-family", None)
    return " ".join(f'{name}="{PAGE_COLOURS.get(value, value)}"' for name, value in pairs.items())


# --- text ----------------------------------------------------------------------------------------

PIPED, MIN_WIDTH, MARGIN, MAX_ROWS = 100, 40, 9, 52
"""Columns: where there is no terminal, at least, left of the picture. Lines of a heat map."""
LETTERS = "ox+*@%&="
Span = tuple[float, float]


def text(picture: Heatmap | Curves, width: int | None = None, colour: bool = False) -> str:
    """The picture in lines of at most `width` columns, a line break at the end of each.

    width: `PIPED` if not given; no less than `MIN_WIDTH`. colour: with escape sequences.
    """
    columns = max(width or PIPED, MIN_WIDTH) - MARGIN
    head = (part for words in (picture.title, picture.about) for part in wrap(words, columns))
    lines = [*head, "", picture.y_label]
    if isinstance(picture, Heatmap):
        lines += _heatmap_text(picture, columns, _coloured if colour else str)
    else:
        lines += _curves_text(picture, columns)
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _heatmap_text(picture: Heatmap, columns: int, paint: Callable[[str], str]) -> Iterator[str]:
    (n, m), across, up = picture.values.shape, _edges(picture.xs), _edges(picture.ys)
    room, columns, rows = columns + MARGIN, min(columns, 2 * n), min(m, MAX_ROWS)
    none = np.isnan(picture.values)
    blank = none if picture.blank is None else picture.blank | none
    numbers = picture.values[~blank]
    low, high = picture.limits or ((numbers.min(), numbers.max()) if len(numbers) else (0.0, 1.0))
    tenths = (np.where(none, low, picture.values) - low) / ((high - low) or 1.0) * 10
    digits = np.clip((tenths + 1e-9).astype(int), 0, 9).astype(str)  # .3 is no 2
    signs = np.where(none, " ", np.where(blank, ".", digits))
    signs = signs[np.ix_(np.arange(columns) * n // columns, np.arange(rows) * m // rows)].T
    for line in picture.lines:
        ends = np.array([line.xs, line.ys])[..., None]
        points = ends[:, :-1] + (ends[:, 1:] - ends[:, :-1]) * np.linspace(0, 1, 300)[1:-1]
        xs, ys = points[:, ~np.isnan(points).any(axis=0)]
        signs[_bins(ys, up, rows), _bins(xs, across, columns)] = "#"
    cells = [[paint(sign) for sign in row] for row in signs]
    for words in picture.words:
        label = f" {' '.join(words.text.split())} "[:columns]
        at = np.clip(_bins(words.x, across, columns) - len(label) // 2, 0, columns - len(label))
        cells[_bins(words.y, up, rows)][at : at + len(label)] = label
    yield from _framed(cells, across, up, picture.x_label, True)
    bounds = [f"{x:,.0f}" if high - low >= 10 else f"{x:.3g}" for x in np.linspace(low, high, 11)]
    key = [f"{paint(str(k))} {bounds[k]}" for k in range(10)] + [f"to {bounds[10]}"]
    two_lines = 4 * len(key) + sum(map(len, bounds)) > room
    yield from ("", f"{picture.colour_label}, from:")
    yield from ("  " + "  ".join(part) for part in ((key[:5], key[5:]) if two_lines else (key,)))
    yield from (f"  # {line.label}" for line in picture.lines)
    yield from ["  . none"] * int((blank & ~none).any())


def _curves_text(picture: Curves, columns: int) -> Iterator[str]:
    rows = 21
    numbers = np.concatenate([picture.limits or (), *(curve.values for curve in picture.curves)])
    low, high = (0, 1) if np.isnan(numbers).all() else (np.nanmin(numbers), np.nanmax(numbers))
    spare = (high - low) / (2 * rows - 2) or 0.5
    up, across = (low - spare, high + spare), picture.x_range
    cells = np.full((rows, columns), " ")
    for band in picture.bands:
        cells[:, _bins(np.linspace(band.first, band.last, columns), across, columns)] = ":"
    named = list(zip(cycle(LETTERS), picture.curves, strict=False))
    fine = np.union1d(np.linspace(*across, 40 * columns), picture.xs)
    for letter, curve in named:
        heights = np.interp(fine, picture.xs, curve.values, np.nan, np.nan)
        xs, ys = fine[~np.isnan(heights)], heights[~np.isnan(heights)]
        cells[_bins(ys, up, rows), _bins(xs, across, columns)] = letter
    yield from _framed(cells, across, up, picture.x_label, False)
    key = "   ".join(f"{letter} {curve.label}" for letter, curve in named)
    yield from ("", *wrap(key, columns + MARGIN, initial_indent="  ", subsequent_indent="  "))
    yield from dict.fromkeys(f"  : {' '.join(band.text.split())}" for band in picture.bands)


def _framed(cells: Any, across: Span, up: Span, name: str, whole: bool) -> Iterator[str]:
    """Lines of cells, the last on top, with the axes between their ends; name: of x."""
    rows, columns = len(cells), len(cells[0])
    labels = {int(_bins(y, up, rows)): f"{y:,.6g}" for y in _ticks(up, rows // 4, whole)}
    for k in reversed(range(rows)):
        yield f"{labels.get(k, ''):>{MARGIN - 2}} |" + "".join(cells[k])
    line = ""
    for x in _ticks(across, columns // 8, True):
        label = f"{x:,.0f}"
        at = min(int(_bins(x, across, columns)), columns - len(label))
        if at > len(line) or not line:
            line = line.ljust(at) + label
    yield f"{'+':>{MARGIN}}" + "-" * columns
    yield from (" " * MARGIN + line, " " * MARGIN + name)


def _ticks(span: Span, most: int, whole: bool) -> list[float]:
    """Round numbers in a span, about so many: multiples of 1, 2, 2.5 or 5 times a power of ten; two
    at least where there are such; as matplotlib has them."""
    low, high = span
    target = (high - low) / max(2, most) or 1.0
    power = 10.0 ** math.floor(math.log10(target))
    steps = [power * step for step in (0.1, 0.2, 0.25, 0.5, 1, 2, 2.5, 5, 10)]
    if whole:
        least = float(math.floor(high) > math.ceil(low))
        steps = [max(least, step) for step in steps if step < 1 or step == round(step)]
    ticks: list[float] = []
    for step in reversed(steps[: 1 + sum(step < target for step in steps)]):
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        ticks = [k * step for k in range(first, last + 1)]
        if len(ticks) > 1:
            break
    return [x for x in ticks if low <= x <= high]


def _bins(points: Any, span: Span, count: int) -> Any:
    """In which of so many equal parts of the span points lie; ties go up."""
    shares = (np.asarray(points) - span[0]) / ((span[1] - span[0]) or 1.0)
    return np.clip((shares * count + 1e-9).astype(int), 0, count - 1)


def _coloured(sign: str) -> str:
    if not sign.isdigit():
        return f"\x1b[1;37;41m{sign}\x1b[0m" if sign == "#" else sign
    red, green, blue = COLOURED[int(sign)]
    return f"\x1b[{30 if sign > '5' else 97};48;2;{red};{green};{blue}m{sign}\x1b[0m"
