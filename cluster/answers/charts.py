"""Draw the charts of `solver.charts`: one Vega-Lite specification for files, pages and notebooks.

A game returns numbers with their labels, `specification` makes a Vega-Lite chart of them, and
vl-convert renders it without a browser. vl-convert is imported only when a chart is drawn.

The specification is a plain dictionary. Altair writes the same dictionary, but takes five seconds
to check one with 1,600 cells, and needs six more packages.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from functools import lru_cache
from html import escape
from itertools import count
from textwrap import wrap
from typing import Any

import numpy as np

from luckbase.solver.charts import Chart, Curves, Heatmap, Listing
from luckbase.solver.errors import need

PICTURES = (".png", ".svg", ".pdf", ".html")
"""File name suffixes of pictures."""
MAX_CELLS = 10_000
"""Maximum number of cells drawn in a heat map; larger ones show every second, third … value."""
WIDTH, SCALE = 560, 2
"""Width of the panel in units; pixels per unit in a PNG."""
TITLE, CAPTION = 62, 84
"""Characters per line of the title and of the caption below it."""
MARKED = 45
"""A curve with at most this many points has a marker at each."""
UNITS = {"dollars": "$,.0f", "probability": ".0%", "chance": ".0%"}
"""Number format of an axis, by a word in its label."""
STROKES = (
    ("#0b5fa5", [1, 0]), ("#d55e00", [7, 3]), ("#2f8f5b", [2, 2]), ("#c98a1b", [8, 3, 2, 3]),
    ("#7a4a9c", [4, 2]), ("#666666", [1, 0]), ("#3a9bd9", [10, 4]), ("#b03060", [3, 5]),
)  # fmt: skip
"""Colours and dashes of curves; they differ without colour too."""
FILE = {"ink": "#222222", "faint": "#555555", "edge": "#dddddd", "blank": "#eceae6",
        "ground": "#ffffff", "line": "#d1223a"}  # fmt: skip
PAGE = {"ink": "var(--ink)", "faint": "var(--faint)", "edge": "var(--edge)",
        "blank": "var(--blank)", "ground": "transparent", "line": "#e0223c"}  # fmt: skip
"""Colours of a file; a page uses those of its theme."""


def specification(
    picture: Heatmap | Curves, *, page: bool = False, width: int = WIDTH
) -> dict[str, Any]:
    """Return a picture as a Vega-Lite chart.

    page: leave out the title, and take the colours from the style of a page.
    width: of the panel, in units.
    """
    colours = PAGE if page else FILE
    heatmap = isinstance(picture, Heatmap)
    height = round(width * 0.56)
    if isinstance(picture, Heatmap):
        step = _step(picture)
        layers = _heatmap(picture, colours, step)
        # An integer size of cells keeps the edges between them sharp.
        n, m = len(picture.xs[::step]), len(picture.ys[::step])
        width, height = max(1, round(width / n)) * n, max(1, round(width * 0.9 / m)) * m
    else:
        layers = [*_bands(picture, colours), *_curves(picture)]
    if picture.words:
        layers.append(_words(picture))
    title = {
        "text": wrap(picture.title, TITLE), "subtitle": wrap(picture.about, CAPTION),
        "anchor": "start", "fontSize": 17, "subtitleFontSize": 12, "offset": 12,
        "color": colours["ink"], "subtitleColor": colours["faint"],
    }  # fmt: skip
    axis = {
        "labelColor": colours["faint"], "titleColor": colours["ink"], "gridColor": colours["edge"],
        "domainColor": colours["edge"], "tickColor": colours["edge"], "labelFontSize": 12,
        "titleFontSize": 13, "titleFontWeight": "normal", "titlePadding": 10,
    }  # fmt: skip
    spec: dict[str, Any] = {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "layer": layers, "width": width, "height": height,
        "resolve": {"scale": {"color": "independent", "strokeDash": "independent"}},
        "config": {
            "aria": False, "background": colours["ground"], "axis": axis,
            "font": "Inter, system-ui, Helvetica, Arial, sans-serif",
            "view": {"stroke": None, **({"fill": colours["blank"]} if heatmap else {})},
            "legend": {"labelColor": colours["ink"], "titleColor": colours["ink"],
                       "labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal",
                       "symbolStrokeWidth": 3, "symbolSize": 220, "labelLimit": 320,
                       "titleLimit": 320},
        },
    }  # fmt: skip
    if not page:
        spec["title"] = title
    return spec


def draw(picture: Heatmap | Curves, suffix: str = ".png") -> bytes:
    """Return the bytes of a file of the picture that ends in `suffix`, one of `PICTURES`. Raises
    OptionError if vl-convert is not installed."""
    need("a picture", "vl_convert", extra="report")
    import vl_convert

    spec = specification(picture)

    if suffix == ".png":
        return bytes(vl_convert.vegalite_to_png(spec, scale=SCALE))
    if suffix == ".pdf":
        return bytes(vl_convert.vegalite_to_pdf(spec))
    if suffix == ".html":
        return str(vl_convert.vegalite_to_html(spec, bundle=True)).encode()
    return _with_ids(str(vl_convert.vegalite_to_svg(spec)), "chart").encode()


def for_page(picture: Heatmap | Curves, name: str = "chart", width: int = WIDTH) -> str:
    """Return the picture as an ``<svg>`` element for a page that shows its title.

    name: makes the ids of the element differ from those of other pictures on the page.
    width: of the panel, in units; letters keep their size.

    A strict content security policy allows the element: it has no script and no inline style.
    """
    need("a picture", "vl_convert", extra="report")
    spec = specification(picture, page=True, width=width)
    return _rendered(json.dumps(spec), name, f"{picture.title}. {picture.about}")


@lru_cache(64)
def _rendered(spec: str, name: str, label: str) -> str:
    import vl_convert

    svg = _with_ids(str(vl_convert.vegalite_to_svg(spec)), name)
    svg = re.sub(r' (style|aria-[a-z]+|role)="[^"]*"', "", svg)
    head, _, inner = svg.partition(">")
    (box,) = re.findall(r'viewBox="[\d. ]+"', head)
    return f'<svg class="plot" role="img" aria-label="{escape(label)}" {box}>{inner}'


def _with_ids(svg: str, name: str) -> str:
    """Return the SVG with ids that begin with the name. vl-convert numbers ids across all pictures
    of a process, so a picture rendered twice would have different ids."""
    ids = re.findall(r'id="([^"]*)"', svg)
    for k, id in enumerate(ids):
        svg = re.sub(rf'(id="|url\(#){re.escape(id)}(?=["\)])', rf"\g<1>{name}-{k}", svg)
    return svg


def as_csv(chart: Chart) -> bytes:
    """Return the numbers of a chart as CSV; a gap is an empty cell."""
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow(chart.columns)
    writer.writerows([["" if cell != cell else cell for cell in row] for row in chart.rows])
    return lines.getvalue().encode()


def as_file(chart: Chart, suffix: str) -> bytes:
    """Return the bytes of a file of a chart: .csv, .txt of a list, or one of `PICTURES`."""
    if suffix == ".csv":
        return as_csv(chart)
    if isinstance(chart, Listing):
        return "".join(f"{line}\n" for line in chart.lines).encode()
    return draw(chart, suffix)


# --- layers --------------------------------------------------------------------------------------


def _format(label: str) -> str:
    return next((form for word, form in UNITS.items() if word in label), ",.6~f")


def _title(label: str) -> str:
    """Return the label without its unit, if the numbers show the unit."""
    return re.sub(r" \((dollars|probability)\)", "", label)


def _axis(field: str, label: str, ends: tuple[float, float] | None) -> dict[str, Any]:
    scale = {"nice": False, "zero": False, **({"domain": list(ends)} if ends else {})}
    axis: dict[str, Any] = {"format": _format(label), "tickCount": 8}
    if ends and _format(label) == ",.6~f":  # whole numbers
        axis["tickMinStep"] = 1
    return {"field": field, "type": "quantitative", "title": _title(label), "scale": scale,
            "axis": axis}  # fmt: skip


def _step(picture: Heatmap) -> int:
    """Return the stride between drawn values on each axis."""
    n, m = len(picture.xs), len(picture.ys)
    return next(k for k in count(1) if math.ceil(n / k) * math.ceil(m / k) <= MAX_CELLS)


def _heatmap(picture: Heatmap, colours: dict[str, str], step: int) -> list[dict[str, Any]]:
    xs, ys = picture.xs[::step], picture.ys[::step]
    values = picture.values[::step, ::step]
    shown = ~np.isnan(values)
    if picture.blank is not None:
        shown &= ~picture.blank[::step, ::step]
    across, up = ((axis[1] - axis[0]) / 2 if len(axis) > 1 else 0.5 for axis in (xs, ys))
    rows = [
        {"x": int(xs[i]), "y": int(ys[j]), "value": float(values[i, j]),
         "left": float(xs[i] - across), "right": float(xs[i] + across),
         "low": float(ys[j] - up), "high": float(ys[j] + up)}
        for i, j in np.argwhere(shown)
    ]  # fmt: skip
    x_ends = float(xs[0] - across), float(xs[-1] + across)
    y_ends = float(ys[0] - up), float(ys[-1] + up)
    scale: dict[str, Any] = {"scheme": "viridis"}
    if picture.limits is not None:
        scale |= {"domain": [float(end) for end in picture.limits], "clamp": True}
    label = picture.colour_label
    tips = [
        {"field": "x", "type": "quantitative", "title": picture.x_label, "format": ","},
        {"field": "y", "type": "quantitative", "title": picture.y_label, "format": ","},
        {"field": "value", "type": "quantitative", "title": label, "format": ",.6~f"},
    ]
    x, y = _axis("left", picture.x_label, x_ends), _axis("low", picture.y_label, y_ends)
    x["axis"]["grid"] = y["axis"]["grid"] = False
    layers: list[dict[str, Any]] = [{
        "data": {"values": rows}, "mark": {"type": "rect", "strokeWidth": 0},
        "encoding": {
            "x": x, "x2": {"field": "right"}, "y": y, "y2": {"field": "high"}, "tooltip": tips,
            "color": {
                "field": "value", "type": "quantitative", "scale": scale, "title": _title(label),
                "legend": {"format": _format(label), "gradientLength": 220,
                           "titleOrient": "right", "orient": "right"},
            },
        },
    }]  # fmt: skip
    points = [
        {"x": float(x), "y": float(y), "k": k, "piece": f"{n} {int(np.isnan(line.xs[:k]).sum())}",
         "label": line.label}
        for n, line in enumerate(picture.lines)
        for k, (x, y) in enumerate(zip(line.xs, line.ys, strict=True)) if not np.isnan(x)
    ]  # fmt: skip
    for colour, wide in (("white", 5), (colours["line"], 2.4)) if points else ():
        mark = {"type": "line", "strokeWidth": wide, "strokeCap": "round", "strokeJoin": "round"}
        named = {"field": "label", "type": "nominal", "title": None,
                 "scale": {"range": [colour]},
                 "legend": {"orient": "top"} if colour != "white" else None}  # fmt: skip
        layers.append({
            "data": {"values": points}, "mark": mark,
            "encoding": {
                "x": {"field": "x", "type": "quantitative"}, "color": named,
                "y": {"field": "y", "type": "quantitative"}, "detail": {"field": "piece"},
                "order": {"field": "k", "type": "quantitative"},
            },
        })  # fmt: skip
    return layers


def _curves(picture: Curves) -> list[dict[str, Any]]:
    rows = [
        {"x": int(x), "value": None if np.isnan(value) else float(value), "curve": curve.label}
        for curve in picture.curves
        for x, value in zip(picture.xs, curve.values, strict=True)
    ]
    names = [curve.label for curve in picture.curves]
    strokes = [STROKES[i % len(STROKES)] for i in range(len(names))]
    y = _axis("value", picture.y_label, picture.limits)
    first, last = picture.x_range
    spare = 0.02 * (last - first) or 0.5  # for the markers at both ends
    x = _axis("x", picture.x_label, (first - spare, last + spare))
    y["axis"].pop("tickMinStep", None)
    legend: dict[str, Any] = {"symbolType": "stroke", "orient": "right"}
    if len(names) < 5:
        legend |= {"orient": "top", "columns": 4}
    colour = {"field": "curve", "type": "nominal", "title": None, "legend": legend,
              "scale": {"domain": names, "range": [stroke[0] for stroke in strokes]}}  # fmt: skip
    dash = {"field": "curve", "type": "nominal", "title": None, "legend": legend,
            "scale": {"domain": names, "range": [stroke[1] for stroke in strokes]}}  # fmt: skip
    mark: dict[str, Any] = {"type": "line", "strokeWidth": 2.4, "clip": True}
    if len(picture.xs) <= MARKED:
        mark["point"] = {"size": 28}
    tips = [
        {"field": "curve", "type": "nominal", "title": "curve"},
        {"field": "x", "type": "quantitative", "title": picture.x_label, "format": ","},
        {"field": "value", "type": "quantitative", "title": picture.y_label, "format": ",.6~f"},
    ]
    return [{
        "data": {"values": rows}, "mark": mark,
        "encoding": {"x": x, "y": y, "color": colour, "strokeDash": dash, "tooltip": tips},
    }]  # fmt: skip


def _bands(picture: Curves, colours: dict[str, str]) -> list[dict[str, Any]]:
    if not picture.bands:
        return []
    bands = [
        {"first": band.first, "last": band.last, "middle": (band.first + band.last) / 2,
         "text": band.text}
        for band in picture.bands
    ]  # fmt: skip
    quantity = {"type": "quantitative"}
    return [
        {
            "data": {"values": bands}, "mark": {"type": "rect", "color": colours["blank"]},
            "encoding": {"x": {"field": "first", **quantity}, "x2": {"field": "last"}},
        },
        {
            "data": {"values": bands},
            "mark": {"type": "text", "y": 10, "baseline": "top", "lineBreak": "\n",
                     "color": colours["faint"]},
            "encoding": {"x": {"field": "middle", **quantity}, "text": {"field": "text"}},
        },
    ]  # fmt: skip


def _words(picture: Heatmap | Curves) -> dict[str, Any]:
    """Return labels on the picture: dark letters with a white edge, readable on any colour."""
    words = [{"x": each.x, "y": each.y, "text": each.text} for each in picture.words]
    quantity = {"type": "quantitative"}
    encoding = {"x": {"field": "x", **quantity}, "y": {"field": "y", **quantity},
                "text": {"field": "text"}}  # fmt: skip
    mark = {"type": "text", "fontSize": 17, "fontWeight": 700, "lineBreak": "\n"}
    under = {**mark, "color": "white", "stroke": "white", "strokeWidth": 5, "strokeJoin": "round"}
    marks = under, {**mark, "color": "#222222"}
    return {"data": {"values": words}, "layer": [{"mark": m, "encoding": encoding} for m in marks]}
