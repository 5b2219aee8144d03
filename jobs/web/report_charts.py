"""Charts of a report: as SVG, with their numbers for the mouse, for the keyboard and in tables.

A picture's colours are a small PNG, one point a cell, in the SVG; lines, letters and levels lie
above it. Its numbers stand in the page as JSON, which ``report.js`` reads where the mouse is, and
as a table of at most `MOST_CELLS`. A chart of another kind is shown by its rows.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from luckbase.jobs.web.report_curves import curves
from luckbase.jobs.web.report_parts import (
    Detail,
    mouse,
    number,
    path_of,
    png,
    table,
    text_at,
    ticks,
    words_at,
)
from luckbase.solver.charts.model import Chart, Curves, Heatmap, Listing

WIDE, HIGH = 640.0, 560.0
LEFT, TOP, SIDE = 74.0, 14.0, 478.0
"""The sheet, and the square of the picture in it, in units."""
SCALE, SCALE_WIDE = LEFT + SIDE + 16.0, 16.0
"""Where the scale of colours is, and how wide."""
TICKS = 6


def figure(made: Chart, shows: str, command: str, detail: Detail) -> str:
    """A chart as a part of a page; command: prints all of its numbers."""
    if isinstance(made, Heatmap):
        inner = _picture(made, command, detail)
    elif isinstance(made, Curves):
        inner = curves(made, command, detail)
    else:
        inner = _listing(made, command, detail)
    title = escape(shows[:1].upper() + shows[1:])
    return f'<section class="chart"><h3>{title}</h3>{inner}</section>'


# --- lists -------------------------------------------------------------------------------------


def _listing(made: Listing, command: str, detail: Detail) -> str:
    lines, rows = made.lines, made.rows
    html = f"<p>{escape(made.note)}</p>" if made.note else ""
    if lines:
        shown = "\n".join(lines[: detail.lines])
        html += f'<div class="wide"><pre>{escape(shown)}</pre></div>'
        html += _more(len(lines), detail.lines, "lines", command)
    few = rows[: detail.rows]
    body = table(made.columns, [[_cell(cell) for cell in row] for row in few])
    if not lines:
        return html + body + _more(len(rows), detail.rows, "rows", command)
    more = _more(len(rows), detail.rows, "rows", command)
    return html + f"<details><summary>The numbers</summary>{body}{more}</details>"


def _more(count: int, shown: int, what: str, command: str) -> str:
    if count <= shown:
        return ""
    return f"<p>{count - shown:,} more {what}: <code>{escape(command)}</code></p>"


def _cell(value: object) -> str:
    return f"{value:.7g}" if isinstance(value, float) else str(value)


# --- pictures ----------------------------------------------------------------------------------


def _picture(made: Heatmap, command: str, detail: Detail) -> str:
    svg = "".join(_parts(made))
    title, about = escape(made.title), escape(made.about)
    told = mouse(_numbers(made, detail)) if detail.mouse else ""
    return (
        f'<figure class="heat"><figcaption><b>{title}</b><br>{about}</figcaption>'
        f'<svg viewBox="0 0 {WIDE:g} {HIGH:g}" role="img" tabindex="0" '
        f'aria-label="{title}. {about}" font-family="system-ui, sans-serif">'
        f"{svg}</svg>{told}</figure>{_grid(made, command, detail)}"
    )


def _parts(made: Heatmap) -> Iterator[str]:
    blank = np.isnan(made.values) if made.blank is None else made.blank | np.isnan(made.values)
    low, high = _limits(made, blank)
    yield f'<rect class="blank" x="{LEFT:g}" y="{TOP:g}" width="{SIDE:g}" height="{SIDE:g}"/>'
    picture = _coloured(made.values, blank, low, high)[:, ::-1].transpose(1, 0, 2)
    yield _image(picture, LEFT, TOP, SIDE, SIDE)
    for level in made.levels:
        yield from _contour(made, level)
    for line in made.lines:
        path = path_of([_x(made, x) for x in line.xs], [_y(made, y) for y in line.ys])
        yield f'<path class="halo" d="{path}"/><path class="line" d="{path}">'
        yield f"<title>{escape(line.label)}</title></path>"
    for words in made.words:
        x, y = _x(made, words.x), _y(made, words.y)
        yield words_at(words.text, x, y)
    yield from _axes(made)
    if not blank.all():
        yield from _scale(made, low, high)
    yield '<rect class="here" width="0" height="0"/>'


def _limits(made: Heatmap, blank: NDArray[np.bool_]) -> tuple[float, float]:
    if made.limits is not None:
        return made.limits
    shown = made.values[~blank]
    return (float(shown.min()), float(shown.max())) if len(shown) else (0.0, 1.0)


def _coloured(
    values: NDArray[np.float64], blank: NDArray[np.bool_], low: float, high: float
) -> NDArray[np.uint8]:
    """The colours (…, 4) of numbers (…): the darker the less, so that grey says the same."""
    from matplotlib import colormaps

    share = np.clip((np.where(blank, low, values) - low) / ((high - low) or 1.0), 0, 1)
    found = (colormaps["viridis"](share) * 255 + 0.5).astype(np.uint8)
    found[blank] = 0
    return found


def _image(points: NDArray[np.uint8], x: float, y: float, wide: float, high: float) -> str:
    data = base64.b64encode(png(points)).decode()
    return (
        f'<image x="{x:g}" y="{y:g}" width="{wide:g}" height="{high:g}" class="points" '
        f'preserveAspectRatio="none" href="data:image/png;base64,{data}"/>'
    )


def _x(made: Heatmap, x: float) -> float:
    return LEFT + SIDE * _share(made.xs, x)


def _y(made: Heatmap, y: float) -> float:
    return TOP + SIDE * (1 - _share(made.ys, y))


def _share(centres: NDArray[np.int64], at: float) -> float:
    """Where a value stands between the first cell's beginning and the last one's end, 0 to 1."""
    step = float(centres[1] - centres[0]) if len(centres) > 1 else 1.0
    return (at - float(centres[0]) + step / 2) / (step * len(centres))


def _axes(made: Heatmap) -> Iterator[str]:
    yield f'<rect class="frame" x="{LEFT:g}" y="{TOP:g}" width="{SIDE:g}" height="{SIDE:g}"/>'
    bottom = TOP + SIDE
    for x in ticks(made.xs[0], made.xs[-1], TICKS, True):
        at = _x(made, x)
        yield f'<path class="frame" d="M{at:.1f} {bottom:g}v5"/>'
        yield text_at(f"{x:,.0f}", at, bottom + 16, "middle", 12)
    for y in ticks(made.ys[0], made.ys[-1], TICKS, True):
        at = _y(made, y)
        yield f'<path class="frame" d="M{LEFT:g} {at:.1f}h-5"/>'
        yield text_at(f"{y:,.0f}", LEFT - 8, at, "end", 12)
    yield text_at(made.x_label, LEFT + SIDE / 2, bottom + 38, "middle", 14)
    yield (
        f'<text transform="translate(11 {TOP + SIDE / 2:g}) rotate(-90)" text-anchor="middle" '
        f'font-size="14">{escape(made.y_label)}</text>'
    )


def _scale(made: Heatmap, low: float, high: float) -> Iterator[str]:
    """The scale of colours with its numbers."""
    shares = np.linspace(high, low, 64).reshape(-1, 1)
    yield _image(
        _coloured(shares, np.zeros(shares.shape, bool), low, high), SCALE, TOP, SCALE_WIDE, SIDE
    )
    for k in range(5):
        at = TOP + SIDE * (1 - k / 4)
        shown = low + (high - low) * k / 4
        yield text_at(f"{shown:.3g}", SCALE + SCALE_WIDE + 5, at, "start", 12)
    yield (
        f'<text transform="translate({WIDE - 8:g} {TOP + SIDE / 2:g}) rotate(-90)" '
        f'text-anchor="middle" font-size="13">{escape(made.colour_label)}</text>'
    )


def _contour(made: Heatmap, level: float) -> Iterator[str]:
    """The line along which the numbers are `level`: marching squares, with its number on it."""
    segments = segments_at(made.values, level)
    if not len(segments):
        return
    step_x = SIDE / len(made.xs)
    step_y = SIDE / len(made.ys)
    xs = LEFT + (segments[:, :, 0] + 0.5) * step_x
    ys = TOP + SIDE - (segments[:, :, 1] + 0.5) * step_y
    path = "".join(
        f"M{a:.1f} {b:.1f}L{c:.1f} {d:.1f}"
        for (a, c), (b, d) in zip(xs.tolist(), ys.tolist(), strict=True)
    )
    middle = len(segments) // 2
    yield f'<path class="level" d="{path}"/>'
    yield text_at(f"{level:g}", float(xs[middle, 0]), float(ys[middle, 0]), "middle", 11, "level")


def segments_at(values: NDArray[np.float64], level: float) -> NDArray[np.float64]:
    """Where numbers on a grid (n, m) cross a level: segments (k, 2, 2) of points (row, column), by
    straight lines between neighbours; none at a cell with a corner that is NaN."""
    found = []
    corners = ((0, 0), (1, 0), (1, 1), (0, 1))
    above = values >= level
    same = above[:-1, :-1] & above[1:, :-1] & above[1:, 1:] & above[:-1, 1:]
    none = ~(above[:-1, :-1] | above[1:, :-1] | above[1:, 1:] | above[:-1, 1:])
    whole = ~np.isnan(values)
    known = whole[:-1, :-1] & whole[1:, :-1] & whole[1:, 1:] & whole[:-1, 1:]
    for i, j in np.argwhere(~(same | none) & known).tolist():
        points = []
        for (a, b), (c, d) in zip(corners, corners[1:] + corners[:1], strict=True):
            one, other = values[i + a, j + b], values[i + c, j + d]
            if (one >= level) != (other >= level):
                share = (level - one) / (other - one)
                points.append((i + a + share * (c - a), j + b + share * (d - b)))
        found += [points[k : k + 2] for k in range(0, len(points) - 1, 2)]
    return np.array(found, np.float64).reshape(-1, 2, 2)


def _numbers(made: Heatmap, detail: Detail) -> dict[str, Any]:
    """All numbers, for the mouse."""
    return {
        "plot": [LEFT, TOP, SIDE, SIDE],
        "labels": [made.x_label, made.y_label, made.colour_label],
        "xs": made.xs.tolist(), "ys": made.ys.tolist(),
        "values": [[number(v, detail.decimals) for v in row] for row in made.values],
    }  # fmt: skip


def _grid(made: Heatmap, command: str, detail: Detail) -> str:
    """The numbers as a table, every so many of them."""
    every = 1
    while -(-len(made.xs) // every) * -(-len(made.ys) // every) > detail.cells:
        every += 1
    heads = [f"{made.names[1]} \\ {made.names[0]}", *(f"{x:,}" for x in made.xs[::every])]
    rows = [
        [f"{y:,}", *("" if np.isnan(v) else f"{v:.4g}" for v in made.values[::every, j])]
        for j, y in list(enumerate(made.ys))[::every]
    ]
    said = f"Every {_th(every)} row and column; all" if every > 1 else "The same in a file"
    return (
        f"<details><summary>The numbers as a table</summary><p>{escape(made.colour_label)}: "
        f"{escape(made.x_label)} in columns, {escape(made.y_label)} in rows.</p>"
        f"{table(heads, rows)}<p>{said}: <code>{escape(command)}</code></p></details>"
    )


def _th(number: int) -> str:
    return {2: "second", 3: "third"}.get(number, f"{number}th")
