"""Charts as data: a full table at a glance, for `jobs` to print or draw.

The capability `solver.game.capabilities.Charts` lists a game's charts and makes them from payoffs
that it looks up. A `Listing` is text, a `Heatmap` a picture of numbers over two axes, `Curves` a
picture of numbers over one. Each also has its numbers as rows. Other modules draw them.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from itertools import count
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.errors import OptionError, StateError, need
from luckbase.solver.result import Array, Array2, Flags2, PythonOnly, Result, WholeNumbers
from luckbase.solver.sentences import figures, html_table, many, some

Lookup = Callable[[NDArray[np.int64]], NDArray[np.float64]]
"""Canonical states, int64 (n, fields) -> payoffs, float64 (n, players)."""

Best = Callable[[NDArray[np.int64]], list[str | None]]
"""Canonical states, int64 (n, fields) -> their best actions; None if no player decides."""

Cell = int | float | str

DECIMALS = 10
"""Decimals of a payoff in the rows of a chart; the last is reliable. The table has all of them."""


SHOWN_ROWS, PRINTED_CELLS = 30, 100
"""Rows of a list in a notebook or as text, and cells of a picture as text."""
DRAWN_BY: dict[str, str] = {}
"""The renderers for notebooks, ``module:function`` by kind, registered by `luckbase.open`.

"png" returns a picture as PNG, "html" a scene as an element of a page, "file" writes a chart to a
file. They are imported when something is shown.
"""

FULL, START = "full", "start"
MOST_NUMBERS = 500  # the most numbers of a range; more than a person can read


@dataclass(frozen=True)
class ChartField(Result):
    """A choice that a chart offers."""

    name: str
    help: str  # a sentence about it


@dataclass(frozen=True)
class Kind(Result):
    """One of a game's charts.

    shows: its content, for people.
    picture: whether it is a `Heatmap` or `Curves`, not a `Listing`.
    needs: `FULL`, a full table; or `START`, everything below the game's start suffices.
    reading: how to read it, in a sentence.
    takes: the choices that it offers; None if unknown.
    """

    name: str
    shows: str
    picture: bool = False
    needs: PythonOnly[str] = FULL
    reading: str = ""
    takes: tuple[ChartField, ...] | None = None

    def __repr__(self) -> str:
        return f"<{self.name}: {self.shows}{' (a picture)' * self.picture}>"


@dataclass(frozen=True)
class Search(Result):
    """Rows of a table that are worth looking for."""

    label: str
    where: str  # the condition, for `luckbase export`


@dataclass(frozen=True)
class ChartRequest:
    """A request for a chart.

    fields: restrict it to these values, as text.
    error: bound on the error of the payoffs that the lookup returns; closer choices are marked.
    best: looks up best actions, if the table stores them without payoffs.
    """

    fields: Mapping[str, str] = field(default_factory=dict)
    error: float = 0.0
    best: Best | None = None


class _Chart(Result):
    """Base of all charts: `columns` and `rows` are its numbers."""

    columns: Any
    rows: Any

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {', '.join(self.columns)}>"

    def to_pandas(self) -> Any:
        """Return the rows as a pandas.DataFrame. Raises OptionError if pandas is not installed."""
        need("to_pandas", "pandas")
        import pandas

        return pandas.DataFrame(list(self.rows), columns=list(self.columns))

    def save(self, path: str | os.PathLike[str]) -> int:
        """Write a file and return its number of bytes.

        Pictures are written as .png, .svg, .pdf or .html, lists as .txt, the numbers of either as
        .csv.

        >>> t.chart("leads").save("leads.png")

        Raises OptionError for another ending, or if a picture needs vl-convert and it is not
        installed.
        """
        return drawn("file", self, os.fspath(path))


@dataclass(frozen=True, repr=False)
class Listing(_Chart):
    """A chart as text.

    lines: for people.
    columns, rows: the same for programs.
    note: how to read a line, in a sentence.
    """

    lines: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""

    json_order: ClassVar = ("note", "lines", "columns", "rows")

    def __str__(self) -> str:
        return "\n".join(some(SHOWN_ROWS, self.lines))

    def cells(self, count: int) -> list[list[str]]:
        """Return the first rows as text."""
        return [
            [f"{cell:.7g}" if isinstance(cell, float) else str(cell) for cell in row]
            for row in self.rows[:count]
        ]

    def _repr_html_(self) -> str:
        more = len(self.rows) - SHOWN_ROWS
        more_rows = f"<small>{many(more, 'more row')}</small>" if more > 0 else ""
        return html_table(self.columns, self.cells(SHOWN_ROWS), [self.note]) + more_rows


def aligned(rows: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Return lines of cells in columns two spaces apart, aligned to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return tuple(
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


@dataclass(frozen=True, eq=False)
class Line(Result):
    """A line on a picture, through (xs[i], ys[i]) in the units of the axes; NaN is a gap."""

    label: str
    xs: Array[NDArray[np.float64]]
    ys: Array[NDArray[np.float64]]


@dataclass(frozen=True)
class Words(Result):
    """Words on a picture, centred on a point."""

    text: str
    x: float
    y: float


class _Picture(_Chart):
    """A picture. A notebook shows it if vl-convert is installed."""

    title: Any
    about: Any
    sample: Any

    def __str__(self) -> str:
        heads, rows, _ = self.sample(PRINTED_CELLS)
        return "\n".join([self.title, self.about, *aligned([heads, *rows])])

    def _repr_png_(self) -> bytes | None:
        with suppress(OptionError):  # without vl-convert
            return drawn("png", self)
        return None


@dataclass(frozen=True, eq=False, repr=False)
class Heatmap(_Picture):
    """A picture: numbers as colour over two axes.

    title: the message of the picture.
    about: its subject.
    names: column names of x, y and the number; x and y are state columns if they are fields.
    xs, ys: the values on the axes, evenly spaced.
    values: float64 (len(xs), len(ys)), NaN for gaps.
    blank: bool, the same shape: numbers without colour.
    limits: the numbers at the ends of the colour scale, by default the least and the greatest;
        numbers beyond get the end's colour.
    rest: if a cell is a state: the fields that all cells share, as text.
    """

    title: str
    about: str
    names: tuple[str, str, str]
    xs: WholeNumbers[NDArray[np.int64]]
    ys: WholeNumbers[NDArray[np.int64]]
    values: Array2[NDArray[np.float64]]
    x_label: str
    y_label: str
    colour_label: str
    blank: Flags2[NDArray[np.bool_] | None] = None
    limits: tuple[float, float] | None = None
    lines: tuple[Line, ...] = ()
    words: tuple[Words, ...] = ()
    rest: Mapping[str, str] | None = None

    json_order: ClassVar = (
        "title", "about", "names", "rest", "xs", "ys", "values", "x_label", "y_label",
        "colour_label", "limits", "blank", "lines", "words",
    )  # fmt: skip

    @property
    def columns(self) -> tuple[str, ...]:
        return self.names

    def sample(self, cells: int) -> tuple[list[str], list[list[str]], int]:
        """Return at most `cells` of the numbers as text, x in columns and y in rows.

        Returns the heads, the rows, and the step: every how many values of each axis are shown.
        """
        n, m = self.values.shape
        step = next(k for k in count(1) if math.ceil(n / k) * math.ceil(m / k) <= cells)
        heads = [f"{self.names[1]} \\ {self.names[0]}", *(f"{x:,}" for x in self.xs[::step])]
        rows = zip(self.ys[::step], self.values[::step, ::step].T, strict=True)
        return heads, [[f"{y:,}", *map(_figures, values)] for y, values in rows], step

    @property
    def rows(self) -> tuple[tuple[Cell, ...], ...]:
        """The numbers, without gaps: x, y, value, x slowest; to `DECIMALS`."""
        return tuple(
            (int(x), int(y), _cell(value))
            for x, row in zip(self.xs, self.values, strict=True)
            for y, value in zip(self.ys, row, strict=True)
            if not np.isnan(value)
        )


@dataclass(frozen=True, eq=False)
class Curve(Result):
    """One of `Curves`."""

    label: str  # for people
    name: str  # as a column
    values: Array[NDArray[np.float64]]  # (n,), NaN for gaps


@dataclass(frozen=True)
class Band(Result):
    """A marked stretch of the x axis, from first to last in its units; text: on the picture."""

    first: float
    last: float
    text: str


@dataclass(frozen=True, eq=False, repr=False)
class Curves(_Picture):
    """A picture: numbers over one axis.

    title, about, words: as in `Heatmap`.
    x_name: the column name of x.
    xs: int64 (n,), ascending.
    limits: the least and greatest number of the y axis; by default as needed.
    """

    title: str
    about: str
    x_name: str
    xs: WholeNumbers[NDArray[np.int64]]
    curves: tuple[Curve, ...]
    x_label: str
    y_label: str
    bands: tuple[Band, ...] = ()
    words: tuple[Words, ...] = ()
    limits: tuple[float, float] | None = None

    json_order: ClassVar = (
        "title", "about", "x_name", "x_label", "y_label", "xs", "limits", "curves", "bands",
        "words",
    )  # fmt: skip

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of x and of the curves."""
        return (self.x_name, *(curve.name for curve in self.curves))

    def sample(self, cells: int) -> tuple[list[str], list[list[str]], int]:
        """Return at most `cells` of the numbers as text, one row for each x shown.

        Returns the heads, the rows, and the step: every how many values of x are shown.
        """
        step = math.ceil(len(self.xs) * (1 + len(self.curves)) / cells)
        heads = [self.x_label, *(curve.label for curve in self.curves)]
        rows = zip(self.xs, *(curve.values for curve in self.curves), strict=True)
        return heads, [[f"{x:,}", *map(_figures, values)] for x, *values in rows][::step], step

    @property
    def rows(self) -> tuple[tuple[Cell, ...], ...]:
        """x and the number of each curve, NaN for gaps; to `DECIMALS`."""
        return tuple(
            (int(x), *map(_cell, values))
            for x, *values in zip(self.xs, *(curve.values for curve in self.curves), strict=True)
        )

    @property
    def x_range(self) -> tuple[float, float]:
        """The ends of the x axis, which contains all numbers and bands."""
        first, last = float(self.xs[0]), float(self.xs[-1])
        ends = [end for band in self.bands for end in (band.first, band.last)]
        return min([first, *ends]), max([last, *ends])


Chart = Listing | Heatmap | Curves  # the charts that a game makes of a table


def drawn(kind: str, picture: Any, *how: Any) -> Any:
    """Draw a picture or a scene with the renderer of this kind; None if none is registered."""
    if kind not in DRAWN_BY:
        return None
    module, name = DRAWN_BY[kind].split(":")
    return getattr(import_module(module), name)(picture, *how)


def _figures(value: float) -> str:
    return "" if math.isnan(value) else figures(value, 4)


def _cell(value: float) -> int | float:
    if math.isnan(value):
        return math.nan
    return int(value) if value == int(value) else round(float(value), DECIMALS)


def outline(
    label: str, inside: NDArray[np.bool_], xs: NDArray[np.int64], ys: NDArray[np.int64],
    known: NDArray[np.bool_],
) -> Line | None:  # fmt: skip
    """Return the line around the inside cells (len(xs), len(ys)), on edges between `known` cells;
    None if there is no such edge."""
    half = [(axis[1] - axis[0]) / 2 if len(axis) > 1 else 0.5 for axis in (xs, ys)]
    pieces: list[tuple[float, float]] = []
    turned = (inside[1:] != inside[:-1]) & known[1:] & known[:-1]
    for i, j in np.argwhere(turned):
        x = float(xs[i] + half[0])
        pieces += [(x, ys[j] - half[1]), (x, ys[j] + half[1]), (np.nan, np.nan)]
    turned = (inside[:, 1:] != inside[:, :-1]) & known[:, 1:] & known[:, :-1]
    for i, j in np.argwhere(turned):
        y = float(ys[j] + half[1])
        pieces += [(xs[i] - half[0], y), (xs[i] + half[0], y), (np.nan, np.nan)]
    if not pieces:
        return None
    across, up = np.array(pieces).T
    return Line(label, across, up)


def last_run(yes: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the index from which all are true, along the last axis; its length if none."""
    no = ~yes[..., ::-1]
    start: NDArray[np.int64] = yes.shape[-1] - no.argmax(axis=-1)
    return np.where(no.any(axis=-1), start, 0)


def middle_of(inside: NDArray[np.bool_]) -> tuple[int, int] | None:
    """Return the cell of a region (n, m) farthest from its edge, to place words; None if empty."""
    remaining, middle = np.pad(inside, 1), None
    while remaining.any():
        cells = np.argwhere(remaining)
        middle = cells[len(cells) // 2] - 1
        core = remaining[1:-1, 1:-1] & remaining[:-2, 1:-1] & remaining[2:, 1:-1]
        remaining = np.pad(core & remaining[1:-1, :-2] & remaining[1:-1, 2:], 1)
    return None if middle is None else (int(middle[0]), int(middle[1]))


def words_in(
    regions: dict[str, NDArray[np.bool_]], xs: NDArray[np.int64], ys: NDArray[np.int64]
) -> tuple[Words, ...]:
    """Place the first word of its name in each region (len(xs), len(ys)) that covers at least 2% of
    the picture."""
    words = []
    for name, inside in regions.items():
        middle = middle_of(inside)
        if middle is not None and inside.sum() >= 0.02 * inside.size:
            words.append(Words(name.split()[0], float(xs[middle[0]]), float(ys[middle[1]])))
    return tuple(words)


def numbers_in(name: str, text: str) -> list[int]:
    """Return the numbers of ``1,2,5`` or ``1-12``, each once. Raises StateError."""
    numbers: list[int] = []
    for part in text.replace("$", "").replace(" ", "").split(","):
        ends = re.fullmatch(r"([0-9]{1,9})(?:-([0-9]{1,9}))?", part)
        if not ends:
            raise StateError(
                f"{name}: '{text[:30]}' is not a number or several, as in {name}=1,2 or {name}=1-3"
            )
        first, last = int(ends[1]), int(ends[2] or ends[1])
        if last - first >= MOST_NUMBERS:
            raise StateError(f"{name}: {part} are too many; expected at most {MOST_NUMBERS}")
        numbers += range(first, last + 1)
    return list(dict.fromkeys(numbers))
