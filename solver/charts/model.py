"""Charts as data: what a game says of its whole table at a glance, for `jobs` to print or draw.

The capability `solver.game.capabilities.Charts` lists a game's charts and makes each of payoffs
that it asks for::

    look = table.probe                                  # states (n, fields) -> payoffs (n, players)
    game.need(Charts).make("chart", look, Wanted({"mine": "0", "yours": "87"})).lines
    ('(0,87) .0661453 - 33 44 100',)

A `Listing` is a chart to read: lines for people, the same as rows for machines. A `Heatmap` is a
picture of numbers over two axes; its numbers are rows too. Nothing here knows how a picture is
drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.charts import shown

Look = Callable[[NDArray[np.int64]], NDArray[np.float64]]
"""Canonical states, int64 (n, fields) -> payoffs, float64 (n, players)."""

Cell = int | float | str

DECIMALS = 10
"""Of a payoff in rows: a chart is for reading, and the last one is good. All are in the table."""


@dataclass(frozen=True)
class Kind:
    """One of a game's charts. shows: what, for people; picture: a `Heatmap`, else a `Listing`."""

    name: str
    shows: str
    picture: bool = False


@dataclass(frozen=True)
class Wanted:
    """What is asked of a chart.

    fields: as text, only what has these values. reachable: without what no play by the chart comes
    to. error: the bound on the payoffs that `look` gives; a choice that hangs on less is to be
    marked.
    """

    fields: Mapping[str, str] = field(default_factory=dict)
    reachable: bool = False
    error: float = 0.0


@dataclass(frozen=True)
class Listing:
    """A chart to read. lines: for people; columns and rows: the same for machines; note: how to
    read a line, in a sentence."""

    lines: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""

    def __str__(self) -> str:
        return "\n".join(self.lines)

    def _repr_html_(self) -> str:
        """The rows in a notebook."""
        return shown.rows_as_html(self.columns, self.rows, self.note)


@dataclass(frozen=True, eq=False)
class Line:
    """A line on a picture, through (xs[i], ys[i]) in the units of the axes."""

    label: str
    xs: NDArray[np.float64]
    ys: NDArray[np.float64]


@dataclass(frozen=True)
class Words:
    """Words on a blank part of a picture, centred on a point."""

    text: str
    x: float
    y: float


@dataclass(frozen=True, eq=False)
class Heatmap:
    """A picture: numbers as colour over two axes.

    names: of x, y and the number, as columns. xs, ys: the values on the axes, evenly spaced.
    values: float64 (len(xs), len(ys)); NaN where there is none. blank: bool, the same shape: where
    a number gets no colour. title: what the picture says, one message; about: of what. limits: the
    numbers at the ends of the colours, the least and the greatest if not given; what is beyond has
    the end's colour. levels: contours of the numbers, labelled.
    """

    title: str
    about: str
    names: tuple[str, str, str]
    xs: NDArray[np.int64]
    ys: NDArray[np.int64]
    values: NDArray[np.float64]
    x_label: str
    y_label: str
    colour_label: str
    blank: NDArray[np.bool_] | None = None
    limits: tuple[float, float] | None = None
    levels: tuple[float, ...] = ()
    lines: tuple[Line, ...] = ()
    words: tuple[Words, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the numbers' columns."""
        return self.names

    @property
    def rows(self) -> tuple[tuple[Cell, ...], ...]:
        """The numbers: x, y, value, x slowest, as far as there are any; to `DECIMALS`."""
        return tuple(
            (int(x), int(y), int(value) if value == int(value) else round(float(value), DECIMALS))
            for x, row in zip(self.xs, self.values, strict=True)
            for y, value in zip(self.ys, row, strict=True)
            if not np.isnan(value)
        )

    def _repr_png_(self) -> bytes | None:
        """The picture in a notebook; None where nothing can draw it (`solver.charts.shown`)."""
        return shown.png_of(self)
