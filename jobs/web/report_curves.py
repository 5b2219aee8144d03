"""Curves of a report: as SVG, told apart without colours, with the numbers."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any

import numpy as np

from luckbase.jobs.web.report_parts import (
    Detail,
    mouse,
    number,
    path_of,
    table,
    text_at,
    ticks,
    words_at,
)
from luckbase.solver.charts.model import Curves

WIDE, HIGH = 640.0, 400.0
LEFT, TOP, ACROSS, DOWN = 76.0, 14.0, 538.0, 330.0
"""The sheet, and the picture in it, in units."""
STROKES = ("", "9 4", "2 3", "12 3 2 3", "5 5", "1 5", "16 4", "7 2 2 2 2 2")
"""Dashes of the curves, so that they are told apart in grey."""
ROWS = 41
"""Of the table below the picture."""


def curves(made: Curves, command: str, detail: Detail) -> str:
    """Curves as a part of a page; command: prints all of their numbers."""
    title, about = escape(made.title), escape(made.about)
    spans = (_ends(made), _limits(made))
    svg = "".join(_parts(made, *spans))
    keys = "".join(
        f'<li><svg viewBox="0 0 40 10" aria-hidden="true"><path class="curve c{i % 8}" '
        f'stroke-dasharray="{STROKES[i % 8]}" d="M0 5H40"/></svg>{escape(curve.label)}</li>'
        for i, curve in enumerate(made.curves)
    )
    told = mouse(_numbers(made, spans[0], detail)) if detail.mouse else ""
    heads = [made.x_label, *(curve.label for curve in made.curves)]
    every = -(-len(made.xs) // ROWS)
    rows = [
        [f"{x:,}", *("" if np.isnan(c.values[i]) else f"{c.values[i]:.4g}" for c in made.curves)]
        for i, x in list(enumerate(made.xs))[::every]
    ]
    return (
        f'<figure class="heat"><figcaption><b>{title}</b><br>{about}</figcaption>'
        f'<svg viewBox="0 0 {WIDE:g} {HIGH:g}" role="img" tabindex="0" '
        f'aria-label="{title}. {about}" font-family="system-ui, sans-serif">{svg}</svg>'
        f'<ul class="keys">{keys}</ul>{told}</figure><details><summary>The numbers as a table'
        f"</summary><p>{escape(made.y_label)}</p>{table(heads, rows)}<p>All of them: <code>"
        f"{escape(command)}</code></p></details>"
    )


def _ends(made: Any) -> tuple[float, float]:
    """The ends of the x axis: all numbers and all bands."""
    ends = [float(made.xs[0]), float(made.xs[-1])]
    ends += [end for band in getattr(made, "bands", ()) for end in (band.first, band.last)]
    low, high = min(ends), max(ends)
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _limits(made: Any) -> tuple[float, float]:
    """The ends of the y axis."""
    if made.limits is not None:
        low, high = made.limits
        return float(low), float(high)
    every = np.concatenate([np.asarray(curve.values, float) for curve in made.curves])
    every = every[~np.isnan(every)]
    if not len(every):
        return 0.0, 1.0
    low, high = float(every.min()), float(every.max())
    spare = 0.04 * (high - low) or 0.5
    return low - spare, high + spare


def _parts(made: Any, xs: tuple[float, float], ys: tuple[float, float]) -> Iterator[str]:
    def x_at(x: float) -> float:
        return LEFT + ACROSS * (x - xs[0]) / (xs[1] - xs[0])

    def y_at(y: float) -> float:
        return TOP + DOWN * (1 - (y - ys[0]) / (ys[1] - ys[0]))

    for band in getattr(made, "bands", ()):
        first, last = x_at(band.first), x_at(band.last)
        yield f'<rect class="blank" x="{first:.1f}" y="{TOP:g}" width="{last - first:.1f}" '
        yield f'height="{DOWN:g}"/>{text_at(band.text, (first + last) / 2, TOP + 10, "middle", 12)}'
    for x in ticks(*xs, 8, whole=True):
        yield f'<path class="grid" d="M{x_at(x):.1f} {TOP:g}v{DOWN:g}"/>'
        yield text_at(f"{x:,.0f}", x_at(x), TOP + DOWN + 14, "middle", 12)
    for y in ticks(*ys, 6, whole=False):
        yield f'<path class="grid" d="M{LEFT:g} {y_at(y):.1f}h{ACROSS:g}"/>'
        yield text_at(f"{y:,.6g}", LEFT - 7, y_at(y), "end", 12)
    yield f'<rect class="frame" x="{LEFT:g}" y="{TOP:g}" width="{ACROSS:g}" height="{DOWN:g}"/>'
    for i, curve in enumerate(made.curves):
        path = path_of([x_at(x) for x in made.xs], [y_at(y) for y in curve.values])
        yield f'<path class="curve c{i % 8}" stroke-dasharray="{STROKES[i % 8]}" d="{path}">'
        yield f"<title>{escape(curve.label)}</title></path>"
    for said in getattr(made, "words", ()):
        yield words_at(said.text, x_at(said.x), y_at(said.y))
    yield text_at(made.x_label, LEFT + ACROSS / 2, HIGH - 14, "middle", 14)
    yield (
        f'<text transform="translate(11 {TOP + DOWN / 2:g}) rotate(-90)" text-anchor="middle" '
        f'font-size="14">{escape(made.y_label)}</text><path class="here"/>'
    )


def _numbers(made: Any, xs: tuple[float, float], detail: Detail) -> dict[str, Any]:
    """All numbers, for the mouse; places: where each x is on the sheet."""
    places = [round(LEFT + ACROSS * (float(x) - xs[0]) / (xs[1] - xs[0]), 1) for x in made.xs]
    return {
        "plot": [LEFT, TOP, ACROSS, DOWN], "xs": [int(x) for x in made.xs], "places": places,
        "labels": [made.x_label, *(curve.label for curve in made.curves)],
        "curves": [[number(v, detail.decimals) for v in c.values] for c in made.curves],
    }  # fmt: skip
