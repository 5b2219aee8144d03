"""A table's pictures: charts and grids over two columns as data, a state drawn as SVG.

A scene (`solver.scene.Scene`) as SVG has no style, script or id of its own, so many may stand on
one page under the strictest policy. Lines and letters take the page's colour, so it can be read on
any ground and in grey; classes (``s-card``, ``s-up``, …) are there for tints (`STYLE`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from luckbase.cluster.table.frames import Axis, GridSpec, column_spans, grid
from luckbase.cluster.table.moves import address
from luckbase.jobs.web.http import whole
from luckbase.solver.charts import Chart, Curves, Heatmap, Listing
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.capabilities import scene_of
from luckbase.solver.game.game import Game
from luckbase.solver.result import Array2, Flat, Result, WholeNumbers, WholeNumbers2
from luckbase.solver.scene import Box, Counter, Die, Scene, Shape, Words

if TYPE_CHECKING:
    from luckbase.cluster.table.table import StoredTable

# --- charts ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ListingView(Result):
    """A chart to read: lines for people, rows for machines."""

    name: str
    kind: Literal["listing"]
    chart: Flat[Listing]


@dataclass(frozen=True)
class HeatmapView(Result):
    """A picture: values[i][j] at xs[i], ys[j]; null where there is none. blank: gets no colour.
    rest: where a cell is a state, its fields beside names[0] and names[1]; else null."""

    name: str
    kind: Literal["heatmap"]
    chart: Flat[Heatmap]


@dataclass(frozen=True)
class CurvesView(Result):
    """Curves over one axis: values[i] at xs[i]."""

    name: str
    kind: Literal["curves"]
    chart: Flat[Curves]


ChartView = ListingView | HeatmapView | CurvesView


def chart_view(name: str, made: Chart) -> ChartView:
    """A chart of a game as an answer has it."""
    if isinstance(made, Listing):
        return ListingView(name, "listing", made)
    if isinstance(made, Curves):
        return CurvesView(name, "curves", made)
    return HeatmapView(name, "heatmap", made)


# --- grids -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AxisView(Result):
    """A column over which a grid goes, with its values."""

    name: str
    label: str
    values: WholeNumbers[Ints]


@dataclass(frozen=True)
class GridView(Result):
    """A table over two columns: cells[i][j] at the i-th value of x and the j-th of y, null where
    there is no such number. best: into actions. queries, state: all other fields, in full."""

    x: AxisView
    y: AxisView
    colour: str
    cells: Array2[Floats]
    best: list[list[int | None]]
    to_act: WholeNumbers2[NDArray[np.int8]]
    actions: tuple[str, ...]
    queries: str
    state: dict[str, Any]
    payoff_name: str


def grid_bounds(
    table: StoredTable, x: str, y: str, state: Mapping[str, str]
) -> tuple[dict[str, tuple[int, int, int]], dict[str, str]]:
    """Of each of two columns its first and last value and the step between, which `state` says as
    ``NAME_from``, ``NAME_to``, ``NAME_step``; and the rest of the state. Raises OptionError."""
    known, rest, spans = column_spans(table), dict(state), {}
    for name in (x, y):
        low, high, step = known.get(name, (0, 0, 1))
        bounds = (
            _bound(rest, f"{name}_from", low, -(10**9)), _bound(rest, f"{name}_to", high, -(10**9)),
            _bound(rest, f"{name}_step", step, 1),
        )  # fmt: skip
        if name in known:
            spans[name] = bounds
    return spans, rest


def _bound(state: dict[str, str], name: str, default: int, low: int) -> int:
    text = state.pop(name, None)
    return default if text is None else whole(name, text, low, 10**9)


def grid_view(table: StoredTable, wish: GridSpec) -> GridView:
    """The grid over two columns. Raises OptionError, StateError."""
    made = grid(table, wish)
    full = table.game.fields.describe(table.game.fields.numbers(made.full)[0])
    return GridView(
        x=_axis_view(made.x), y=_axis_view(made.y), colour=wish.colour, cells=made.values,
        best=[[None if k < 0 else k for k in row] for row in made.best.tolist()],
        to_act=made.to_act, actions=made.actions, queries=address(full), state=full,
        payoff_name=table.game.payoff_name,
    )  # fmt: skip


def _axis_view(axis: Axis) -> AxisView:
    return AxisView(axis.name, axis.name.replace("_", " "), axis.values)


# --- scenes ------------------------------------------------------------------------------------

STYLE = Path(__file__).parent / "static" / "scene.css"
"""The tints, for both themes; the page links it, a page in one file holds it."""

ROUND = {"card": 7.0, "tile": 3.0, "square": 4.0, "slide": 3.0, "desk": 9.0, "track": 5.0,
         "bar": 4.0, "plate": 5.0}  # fmt: skip
"""How round the corners of a box are, in units."""
LOOKS = {
    "": 'stroke-width="1.1"',
    "up": 'stroke-width="3"',
    "gone": 'stroke-width="1" stroke-dasharray="3 3" opacity=".65"',
    "good": 'stroke-width="1.6"',
    "bad": 'stroke-width="2.4"',
    "chance": 'stroke-width="1.5" stroke-dasharray="2 2"',
    "quiet": 'stroke-width=".6"',
}
"""How a role looks without colours."""
PIPS = {1: "4", 2: "08", 3: "048", 4: "0268", 5: "02468", 6: "023568", 7: "0234568", 8: "01235678",
        9: "012345678"}  # fmt: skip
"""Where the pips of a face are, of three rows of three."""
LETTER = 0.35
"""Of a letter's size: how far its base line is below its middle."""


def drawing(game: Game, words: Mapping[str, object]) -> str:
    """The state in a person's words, drawn as the game looks, as SVG. Raises StateError."""
    return svg(scene_of(game, words))


def svg(scene: Scene) -> str:
    """The scene as an ``<svg>`` element that is as wide as its container allows."""
    title, about = escape(scene.title), escape(scene.about)
    shapes = "".join(map(_drawn, scene.shapes))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="scene" role="img" aria-label="{title}. '
        f'{about}" viewBox="0 0 {scene.wide:g} {scene.high:g}" fill="none" stroke="currentColor" '
        f'font-family="system-ui, sans-serif"><title>{title}</title><desc>{about}</desc>'
        f"{shapes}</svg>"
    )


def as_html(scene: Scene) -> str:
    """The scene with its tints, as a notebook shows it."""
    style = f"<style>{STYLE.read_text(encoding='utf-8')}</style>"
    return f'{style}<div style="max-width: 44rem">{svg(scene)}</div>'


@lru_cache(4096)
def _drawn(shape: Shape) -> str:
    """A shape; most of a scene is the same in the next one."""
    match shape:
        case Box():
            return _box(shape)
        case Counter():
            return _counter(shape)
        case Die():
            return _die(shape)
    return _words(shape)


def _group(kind: str, role: str, about: str, inner: str, data: str = "") -> str:
    classes = f"s-{kind} s-{role}" if role else f"s-{kind}"
    title = f"<title>{escape(about)}</title>" if about else ""
    return f'<g class="{classes}"{data} {LOOKS[role]}>{title}{inner}</g>'


def _box(box: Box) -> str:
    edge = (
        f'<rect x="{box.x:g}" y="{box.y:g}" width="{max(box.wide, 0):g}" height="{box.high:g}" '
        f'rx="{ROUND[box.kind]:g}"/>'
    )
    step, middle = box.size * 1.25, box.x + box.wide / 2
    first = box.y + box.high / 2 - step * (len(box.lines) - 1) / 2
    lines = "".join(
        _text(line, middle, first + i * step, box.size) for i, line in enumerate(box.lines)
    )
    data = ""
    if box.field:
        data = f' data-field="{escape(box.field)}" data-value="{escape(box.value)}"'
    return _group(box.kind, box.role, box.about, edge + lines, data)


def _counter(one: Counter) -> str:
    circle = f'<circle cx="{one.x:g}" cy="{one.y:g}" r="{one.radius:g}"/>'
    word = _text(one.word, one.x, one.y, one.radius * (1.25 if len(one.word) < 2 else 0.9))
    return _group("counter", one.role, one.about, circle + (word if one.word else ""))


def _die(die: Die) -> str:
    edge = (
        f'<rect x="{die.x:g}" y="{die.y:g}" width="{die.wide:g}" height="{die.wide:g}" '
        f'rx="{die.wide / 6:g}"/>'
    )
    middle = die.wide / 2
    if die.face is None:
        return _group("die", die.role, "a die before the roll", edge + _text(
            "?", die.x + middle, die.y + middle, middle
        ))  # fmt: skip
    if die.face in PIPS and die.sides <= 9:
        step = die.wide * 0.26
        inner = "".join(
            f'<circle class="s-pip" cx="{die.x + middle + (int(at) % 3 - 1) * step:g}" '
            f'cy="{die.y + middle + (int(at) // 3 - 1) * step:g}" r="{die.wide * 0.085:g}" '
            'fill="currentColor" stroke="none"/>'
            for at in PIPS[die.face]
        )
    else:
        inner = _text(str(die.face), die.x + middle, die.y + middle, middle)
    return _group("die", die.role, f"a die that shows {die.face}", edge + inner)


def _words(words: Words) -> str:
    classes = f"s-words s-{words.role}" if words.role else "s-words"
    faint = ' opacity=".7"' if words.role in ("quiet", "gone") else ""
    return _text(words.text, words.x, words.y, words.size, words.at, words.bold, classes, faint)


def _text(
    text: str, x: float, y: float, size: float, at: str = "middle", bold: bool = False,
    classes: str = "", more: str = "",
) -> str:  # fmt: skip
    kind = f' class="{classes}"' if classes else ""
    weight = ' font-weight="700"' if bold else ""
    return (
        f'<text{kind} x="{x:g}" y="{y + LETTER * size:g}" font-size="{size:g}" '
        f'text-anchor="{at}" fill="currentColor" stroke="none"{weight}{more}>{escape(text)}</text>'
    )
