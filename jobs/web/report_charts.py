"""Charts of a report: pictures as SVG, with their numbers for the mouse, the keyboard, in tables.

Pictures are drawn by `jobs.plots`. Their numbers stand in the page as JSON, which ``report.js``
reads where the mouse is, and as a table of some of them. A list is shown by its lines and rows.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import count
from typing import Any

import numpy as np

from luckbase.jobs.plots import PagePicture, for_page
from luckbase.solver.charts import Chart, Curves, Heatmap, Listing
from luckbase.solver.sentences import html_table

CURVE_ROWS = 41
"""Of the table below curves."""


@dataclass(frozen=True)
class Detail:
    """How much of a chart's numbers stands in the page: lines and rows of a list, cells of a
    picture's table, decimals under the mouse, and whether there are any."""

    lines: int = 25
    rows: int = 400
    cells: int = 441
    decimals: int = 6
    mouse: bool = True


@dataclass(frozen=True)
class ReportChart:
    """A chart of a report. name: on the command line; shows: what, for people; chart: None where
    there is none, and `why` says why; picture: drawn once, however often the page is put
    together."""

    name: str
    shows: str
    chart: Chart | None = None
    why: str = ""
    picture: PagePicture | None = None


def report_chart(name: str, shows: str, chart: Chart, number: int) -> ReportChart:
    """A chart for a page, drawn if it is a picture; number: of the charts on the page."""
    picture = None if isinstance(chart, Listing) else for_page(chart, f"chart-{number}")
    return ReportChart(name, shows, chart, picture=picture)


def chart_section(of: ReportChart, command: str, detail: Detail) -> str:
    """A chart as a part of a page; command: prints all of its numbers."""
    if of.chart is None:
        inner = f"<p>{escape(of.why)}</p>"
    elif isinstance(of.chart, Listing):
        inner = _listing(of.chart, command, detail)
    else:
        assert of.picture is not None
        inner = _figure(of.chart, of.picture, detail) + _numbers_table(of.chart, command, detail)
    title = escape(of.shows[:1].upper() + of.shows[1:])
    return f'<section class="chart"><h3>{title}</h3>{inner}</section>'


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], kind: str = "") -> str:
    """A table that is scrolled where the page is too narrow for it; kind: its class."""
    return f'<div class="wide">{html_table(heads, rows, kind=kind)}</div>'


# --- lists -------------------------------------------------------------------------------------


def _listing(chart: Listing, command: str, detail: Detail) -> str:
    lines, rows = chart.lines, chart.rows
    html = f"<p>{escape(chart.note)}</p>" if chart.note else ""
    cells = [[_cell(cell) for cell in row] for row in rows[: detail.rows]]
    body = table(chart.columns, cells) + _more(len(rows), detail.rows, "rows", command)
    if not lines:
        return html + body
    shown = "\n".join(lines[: detail.lines])
    html += f'<div class="wide"><pre>{escape(shown)}</pre></div>'
    html += _more(len(lines), detail.lines, "lines", command)
    return html + f"<details><summary>The numbers</summary>{body}</details>"


def _more(number: int, shown: int, what: str, command: str) -> str:
    if number <= shown:
        return ""
    return f"<p>{number - shown:,} more {what}: <code>{escape(command)}</code></p>"


def _cell(value: object) -> str:
    return f"{value:.7g}" if isinstance(value, float) else str(value)


# --- pictures ----------------------------------------------------------------------------------


def _figure(chart: Heatmap | Curves, picture: PagePicture, detail: Detail) -> str:
    head = f"<figcaption><b>{escape(chart.title)}</b><br>{escape(chart.about)}</figcaption>"
    under = ""
    if detail.mouse:
        # Nothing in the numbers can end the element.
        numbers = json.dumps(_numbers(chart, picture, detail), separators=(",", ":"))
        under = (
            f'<script type="application/json" class="numbers">'
            f"{numbers.replace('<', chr(92) + 'u003c')}</script>"
            '<output class="under" aria-live="polite">Point at the picture, or move through it '
            "with the arrow keys.</output>"
        )
    return f'<figure class="plot">{head}{picture.svg}{under}</figure>'


def _numbers(chart: Heatmap | Curves, picture: PagePicture, detail: Detail) -> dict[str, Any]:
    """All numbers, and where they are on the sheet, for the mouse."""

    def row(values: Any) -> list[int | float | None]:
        rounded = np.round(values, detail.decimals).tolist()
        return [None if x != x else int(x) if x == int(x) else x for x in rounded]

    numbers: dict[str, Any] = {"plot": picture.frame, "xs": chart.xs.tolist()}
    if isinstance(chart, Curves):
        return numbers | {
            "labels": [chart.x_label, *(curve.label for curve in chart.curves)],
            "places": picture.places,
            "curves": [row(curve.values) for curve in chart.curves],
        }
    return numbers | {
        "labels": [chart.x_label, chart.y_label, chart.colour_label],
        "ys": chart.ys.tolist(),
        "values": [row(values) for values in chart.values],
    }


def _numbers_table(chart: Heatmap | Curves, command: str, detail: Detail) -> str:
    """The numbers as a table, every so many of them."""
    if isinstance(chart, Curves):
        every, which = -(-len(chart.xs) // CURVE_ROWS), "row"
        about, heads = chart.y_label, [chart.x_label, *(curve.label for curve in chart.curves)]
        lines = zip(chart.xs, *(curve.values for curve in chart.curves), strict=True)
        rows = [[f"{x:,}", *map(_short, values)] for x, *values in list(lines)[::every]]
    else:
        (n, m), which = chart.values.shape, "row and column"
        every = next(k for k in count(1) if -(-n // k) * -(-m // k) <= detail.cells)
        about = f"{chart.colour_label}: {chart.x_label} in columns, {chart.y_label} in rows."
        heads = [f"{chart.names[1]} \\ {chart.names[0]}", *(f"{x:,}" for x in chart.xs[::every])]
        columns = chart.values[::every].T[::every]
        rows = [
            [f"{y:,}", *map(_short, values)]
            for y, values in zip(chart.ys[::every], columns, strict=True)
        ]
    numbered = {2: "second", 3: "third"}.get(every, f"{every}th")
    left_out = f"Every {numbered} {which}; all" if every > 1 else "The same in a file"
    return (
        f"<details><summary>The numbers as a table</summary><p>{escape(about)}</p>"
        f"{table(heads, rows)}<p>{left_out}: <code>{escape(command)}</code></p></details>"
    )


def _short(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.4g}"
