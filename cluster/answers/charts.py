"""Draw the charts of `solver.charts`: one Vega-Lite specification for files, pages and notebooks.
`grid` makes a chart of any table over any two of its columns.

A game returns numbers with their labels, `specification` makes a Vega-Lite chart of them, and
vl-convert renders it without a browser. vl-convert is imported only when a chart is drawn.

The specification is a plain dictionary. Altair writes the same dictionary, but takes five seconds
to check one with 1,600 cells, and needs six more packages.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator, Mapping
from html import escape
from itertools import count
from textwrap import wrap
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from luckbase.cluster.answers.actions import every_action
from luckbase.cluster.answers.lookup import Lookup
from luckbase.solver import sentences
from luckbase.solver.charts import Chart, Curves, Heatmap, Listing, outline, words_in
from luckbase.solver.errors import OptionError, need
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.game import Game
from luckbase.solver.search.expand import expand

PICTURES = (".png", ".svg", ".pdf", ".html")
"""File name suffixes of pictures."""
MAX_CELLS = 10_000
"""Maximum number of cells drawn in a heat map; larger ones show every second, third … value."""
WIDTH, SCALE = 560, 2
"""Width of the panel in units; pixels per unit in a PNG."""
TITLE, CAPTION = 62, 84
"""Characters per line of the title and of the caption below it."""
DRAWN = 2_000
"""Number of rows drawn to determine the range of columns."""
AXIS_VALUES = 100
"""Maximum number of values of a column on an axis of a grid."""
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

Layer = dict[str, Any]


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
        layers = _curves(picture, colours)
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
        "layer": [*layers, *_words(picture)], "width": width, "height": height,
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
    import vl_convert

    spec = specification(picture, page=True, width=width)
    svg = _with_ids(str(vl_convert.vegalite_to_svg(spec)), name)
    svg = re.sub(r' (style|aria-[a-z]+|role)="[^"]*"', "", svg)
    head, _, inner = svg.partition(">")
    (box,) = re.findall(r'viewBox="[\d. ]+"', head)
    label = escape(f"{picture.title}. {picture.about}")
    return f'<svg class="plot" role="img" aria-label="{label}" {box}>{inner}'


def _with_ids(svg: str, name: str) -> str:
    """Return the SVG with ids that begin with the name. vl-convert numbers ids across all pictures
    of a process, so a picture rendered twice would have different ids."""
    ids = re.findall(r'id="([^"]*)"', svg)
    for k, id in enumerate(ids):
        svg = re.sub(rf'(id="|url\(#){re.escape(id)}(?=["\)])', rf"\g<1>{name}-{k}", svg)
    return svg


def as_file(chart: Chart, suffix: str) -> bytes:
    """Return the bytes of a file of a chart: .csv, in which a gap is an empty cell; .txt of a list;
    or one of `PICTURES`."""
    if suffix == ".csv":
        lines = io.StringIO()
        writer = csv.writer(lines, lineterminator="\n")
        writer.writerow(chart.columns)
        writer.writerows([["" if cell != cell else cell for cell in row] for row in chart.rows])
        return lines.getvalue().encode()
    if isinstance(chart, Listing):
        return "".join(f"{line}\n" for line in chart.lines).encode()
    return draw(chart, suffix)


# --- layers --------------------------------------------------------------------------------------


def _format(label: str) -> str:
    return next((form for word, form in UNITS.items() if word in label), ",.6~f")


def _title(label: str) -> str:
    """Return the label without its unit, if the numbers show the unit."""
    return re.sub(r" \((dollars|probability)\)", "", label)


def _number(field: str, **more: Any) -> dict[str, Any]:
    return {"field": field, "type": "quantitative", **more}


def _tip(field: str, label: str, form: str = ",") -> dict[str, Any]:
    return _number(field, title=label, format=form)


def _axis(field: str, label: str, ends: tuple[float, float] | None) -> dict[str, Any]:
    scale = {"nice": False, "zero": False, **({"domain": list(ends)} if ends else {})}
    axis: dict[str, Any] = {"format": _format(label), "tickCount": 8}
    if ends and _format(label) == ",.6~f":  # whole numbers
        axis["tickMinStep"] = 1
    return _number(field, title=_title(label), scale=scale, axis=axis)


def _step(picture: Heatmap) -> int:
    """Return the stride between drawn values on each axis."""
    n, m = len(picture.xs), len(picture.ys)
    return next(k for k in count(1) if math.ceil(n / k) * math.ceil(m / k) <= MAX_CELLS)


def _heatmap(picture: Heatmap, colours: dict[str, str], step: int) -> Iterator[Layer]:
    """Yield the cells, and lines with a white edge on them."""
    xs, ys, values = picture.xs[::step], picture.ys[::step], picture.values[::step, ::step]
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
    scale: dict[str, Any] = {"scheme": "viridis"}
    if picture.limits is not None:
        scale |= {"domain": [float(end) for end in picture.limits], "clamp": True}
    label = picture.colour_label
    legend = {"format": _format(label), "gradientLength": 220, "titleOrient": "right",
              "orient": "right"}  # fmt: skip
    x = _axis("left", picture.x_label, (float(xs[0] - across), float(xs[-1] + across)))
    y = _axis("low", picture.y_label, (float(ys[0] - up), float(ys[-1] + up)))
    x["axis"]["grid"] = y["axis"]["grid"] = False
    yield _layer(
        rows, {"type": "rect", "strokeWidth": 0}, x=x, x2={"field": "right"}, y=y,
        y2={"field": "high"},
        color=_number("value", scale=scale, title=_title(label), legend=legend),
        tooltip=[_tip("x", picture.x_label), _tip("y", picture.y_label),
                 _tip("value", label, ",.6~f")],
    )  # fmt: skip
    points = [
        {"x": float(x), "y": float(y), "k": k, "piece": f"{n} {int(np.isnan(line.xs[:k]).sum())}",
         "label": line.label}
        for n, line in enumerate(picture.lines)
        for k, (x, y) in enumerate(zip(line.xs, line.ys, strict=True)) if not np.isnan(x)
    ]  # fmt: skip
    for colour, wide in (("white", 5), (colours["line"], 2.4)) if points else ():
        mark = {"type": "line", "strokeWidth": wide, "strokeCap": "round", "strokeJoin": "round"}
        named = {"field": "label", "type": "nominal", "title": None, "scale": {"range": [colour]},
                 "legend": None if colour == "white" else {"orient": "top"}}  # fmt: skip
        yield _layer(points, mark, x=_number("x"), y=_number("y"), color=named,
                     detail={"field": "piece"}, order=_number("k"))  # fmt: skip


def _curves(picture: Curves, colours: dict[str, str]) -> Iterator[Layer]:
    """Yield the bands with their texts, and the curves."""
    bands = [
        {"first": band.first, "last": band.last, "middle": (band.first + band.last) / 2,
         "text": band.text}
        for band in picture.bands
    ]  # fmt: skip
    if bands:
        yield _layer(bands, {"type": "rect", "color": colours["blank"]}, x=_number("first"),
                     x2={"field": "last"})  # fmt: skip
        text = {"type": "text", "y": 10, "baseline": "top", "lineBreak": "\n",
                "color": colours["faint"]}  # fmt: skip
        yield _layer(bands, text, x=_number("middle"), text={"field": "text"})
    rows = [
        {"x": int(x), "value": None if np.isnan(value) else float(value), "curve": curve.label}
        for curve in picture.curves
        for x, value in zip(picture.xs, curve.values, strict=True)
    ]
    names = [curve.label for curve in picture.curves]
    first, last = picture.x_range
    spare = 0.02 * (last - first) or 0.5  # for the markers at both ends
    x = _axis("x", picture.x_label, (first - spare, last + spare))
    y = _axis("value", picture.y_label, picture.limits)
    y["axis"].pop("tickMinStep", None)
    few = {"orient": "top", "columns": 4} if len(names) < 5 else {"orient": "right"}

    def stroke(k: int) -> dict[str, Any]:
        range_ = [STROKES[i % len(STROKES)][k] for i in range(len(names))]
        return {"field": "curve", "type": "nominal", "title": None,
                "legend": {"symbolType": "stroke", **few},
                "scale": {"domain": names, "range": range_}}  # fmt: skip

    mark: dict[str, Any] = {"type": "line", "strokeWidth": 2.4, "clip": True}
    if len(picture.xs) <= MARKED:
        mark["point"] = {"size": 28}
    tips = [{"field": "curve", "type": "nominal", "title": "curve"}, _tip("x", picture.x_label),
            _tip("value", picture.y_label, ",.6~f")]  # fmt: skip
    yield _layer(rows, mark, x=x, y=y, color=stroke(0), strokeDash=stroke(1), tooltip=tips)


def _words(picture: Heatmap | Curves) -> Iterator[Layer]:
    """Yield labels on the picture: dark letters with a white edge, readable on any colour."""
    words = [{"x": each.x, "y": each.y, "text": each.text} for each in picture.words]
    mark = {"type": "text", "fontSize": 17, "fontWeight": 700, "lineBreak": "\n"}
    edge = {"color": "white", "stroke": "white", "strokeWidth": 5, "strokeJoin": "round"}
    for more in (edge, {"color": "#222222"}) if words else ():
        yield _layer(words, {**mark, **more}, x=_number("x"), y=_number("y"),
                     text={"field": "text"})  # fmt: skip


def _layer(rows: list[dict[str, Any]], mark: dict[str, Any], **encoding: Any) -> Layer:
    return {"data": {"values": rows}, "mark": mark, "encoding": encoding}


# --- any two columns -----------------------------------------------------------------------------


class Span(NamedTuple):
    """Minimum, maximum and step of a column."""

    low: int
    high: int
    step: int

    def values(self, most: int) -> Ints:
        """Return at most `most` evenly spaced values from the minimum to the maximum."""
        steps = (self.high - self.low) // self.step + 1
        return np.arange(self.low, self.high + 1, self.step * math.ceil(steps / most))


def column_spans(table: Lookup) -> dict[str, Span]:
    """Return the span of each numeric column, from some thousand rows of the table."""
    game, drawn = table.game, list(table.draw(DRAWN, 0))
    if not drawn:
        return {}
    columns = game.state_columns(np.concatenate(drawn))
    return {
        name: Span(int(columns[name].min()), int(columns[name].max()), field.unit)
        for field in game.fields if not field.is_text for name in field.columns
    }  # fmt: skip


def grid(
    table: Lookup, columns: tuple[str, str], base: Mapping[str, str], colour: str = ""
) -> Heatmap:
    """Return a heat map of the table over two columns, x and y.

    base: a state in words, for the other fields.
    colour: value_1, … (a player's payoff), margin or best (the action's number); by default the
        payoff of the player who acts at the base.

    Raises OptionError for unknown columns or colours, StateError for an invalid base.
    """
    game, spans = table.game, column_spans(table)
    for which, name in zip("xy", columns, strict=True):
        if name not in spans:
            raise OptionError(
                f"{which}: '{name[:30]}' is not a column of numbers of this table; "
                f"{sentences.nearest(name, [*spans])}"
            )
    if columns[0] == columns[1]:
        raise OptionError(f"y: {columns[1]} is the column of x too; take another one")
    x, y = (spans[name].values(AXIS_VALUES) for name in columns)
    fixed = game.fields.read(base)
    state = game.fields.describe(game.fields.numbers(fixed)[0])
    up = int(expand(game, game.canonical_states(fixed.reshape(1, -1))).actors[0])
    colour = colour or f"value_{max(up, 0) + 1}"
    colours = [*(f"value_{i + 1}" for i in range(game.players)), "margin", "best"]
    if colour not in colours:
        raise OptionError(
            f"colour: unknown colour '{colour[:30]}'; {sentences.nearest(colour, colours)}"
        )
    shape = len(x), len(y)
    values = np.repeat(fixed[None], len(x) * len(y), axis=0)
    values[:, game.columns.index(columns[0])] = np.repeat(x, len(y))
    values[:, game.columns.index(columns[1])] = np.tile(y, len(x))
    numbers, best, names = _cell_numbers(table, values, colour)
    best = best.reshape(shape)
    regions = {name: best == k for k, name in enumerate(names)}
    lines = [outline("the best action changes", inside, x, y, best >= 0)
             for inside in [*regions.values()][: len(regions) - 1]]  # fmt: skip
    what, axes = colour_name(game, colour), [axis_name(game, column) for column in columns]
    title = f"{sentences.capital(what)} by {axes[0]} and {axes[1]}"
    return Heatmap(
        title=_title(title),
        about=sentences.fields({k: v for k, v in state.items() if k not in columns}, ", "),
        names=(*columns, colour), xs=x, ys=y, values=numbers.reshape(shape),
        x_label=axes[0], y_label=axes[1], colour_label=what,
        limits=(0.0, 1.0) if game.pays_chances and colour.startswith("value") else None,
        lines=tuple(line for line in lines if line is not None),
        words=words_in(regions, x, y) if len(regions) > 1 else (),
        rest={k: sentences.listed(v) for k, v in state.items() if k not in columns},
    )  # fmt: skip


def colour_name(game: Game, colour: str) -> str:
    """Return a description of the colours of a grid."""
    if colour.startswith("value_"):
        unit = " (probability)" if game.pays_chances else ""
        whose = f" of player {colour.removeprefix('value_')}" if game.players > 1 else ""
        return f"{game.payoff_name}{whose}{unit}"
    return {"margin": "margin of the best action", "best": "number of the best action"}[colour]


def axis_name(game: Game, column: str) -> str:
    """Return a column's name for an axis, with its unit if that is dollars."""
    field = next(each for each in game.fields if column in each.columns)
    name = column.replace("_", " ")
    if field.length == game.players > 1:
        name = " of player ".join(name.rsplit(" ", 1))
    return f"{name} (dollars)" if "ollars" in field.help else name


def _cell_numbers(
    table: Lookup, values: Ints, colour: str
) -> tuple[Floats, NDArray[np.int16], tuple[str, ...]]:
    """For states in users' units, values (n, columns), return numbers (n,), best actions (n,) with
    -1 for none, and the names of the actions."""
    states, sound = table.game.known_states(values)
    actions, known = every_action(table, states)
    names: dict[str, int] = {}
    codes = [
        names.setdefault(name, len(names)) if name is not None and is_known else -1
        for name, is_known in zip(actions.best_names(), known.tolist(), strict=True)
    ]
    numbers, best = np.full(len(values), np.nan), np.full(len(values), -1, np.int16)
    best[sound] = codes
    if colour == "best":
        numbers = np.where(best >= 0, best, np.nan)
    elif colour == "margin":
        numbers[sound] = np.where(known, actions.margins, np.nan)
    else:
        player = int(colour.removeprefix("value_")) - 1
        numbers[sound] = np.where(known, actions.values[:, player], np.nan)
    return numbers, best, tuple(names)


def cell_state(game: Game, chart: Heatmap) -> dict[str, str] | None:
    """Return the fields that a heat map's cells share, as URL parameters, without its axes; None if
    cells are not states."""
    axes = chart.names[:2]
    if chart.rest is None or not set(axes) <= set(game.columns):
        return None
    cell: dict[str, str] = {}
    for each in game.fields:
        if each.name not in chart.rest:
            continue
        if set(axes) & set(each.columns) and each.length > 1:
            parts = zip(each.columns, chart.rest[each.name].split(","), strict=True)
            cell |= {name: value for name, value in parts if name not in axes}
        elif each.name not in axes:
            cell[each.name] = chart.rest[each.name]
    return cell
