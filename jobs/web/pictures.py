"""A table's pictures as data: charts, grids over two columns, and a state drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal, TypeVar

import numpy as np
from pydantic import PlainSerializer

from luckbase.cluster.result import Result
from luckbase.cluster.table.grid import Axis, Grid, Wish, column_spans, grid
from luckbase.cluster.table.moves import address
from luckbase.cluster.table.stored import StoredTable
from luckbase.jobs.web.params import whole
from luckbase.jobs.web.scene_svg import svg
from luckbase.jobs.web.tables import label, need_state
from luckbase.solver.charts.model import Chart, Curves, Listing
from luckbase.solver.game.game import Game
from luckbase.solver.game.scenes import scene_of

V = TypeVar("V", bound=Result)


def drawing(game: Game, words: Mapping[str, object]) -> str:
    """The state in a person's words, drawn as the game looks, as SVG. Raises StateError."""
    return svg(scene_of(game, words))


def numbers(values: Any) -> Any:
    """An array of numbers as lists, None where there is none."""
    found = np.asarray(values, np.float64)
    return _blank(found, ~np.isfinite(found))


def _blank(values: Any, nothing: Any) -> Any:
    """An array as lists, None where there is nothing."""
    lists = values.astype(object)
    lists[nothing] = None
    return lists.tolist()


def _lists(values: Any) -> Any:
    return None if values is None else values.tolist()


Numbers = Annotated[Any, PlainSerializer(numbers, return_type=list[float | None])]
"""An array of numbers, null where there is none."""
Numbers2 = Annotated[Any, PlainSerializer(numbers, return_type=list[list[float | None]])]
Whole = Annotated[Any, PlainSerializer(_lists, return_type=list[int])]
Whole2 = Annotated[Any, PlainSerializer(_lists, return_type=list[list[int]])]
Flags2 = Annotated[Any, PlainSerializer(_lists, return_type=list[list[bool]] | None)]


# --- charts ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ListingView(Result):
    """A chart to read: lines for people, rows for machines."""

    name: str
    kind: Literal["listing"]
    note: str
    lines: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[str | int | float, ...], ...]


@dataclass(frozen=True)
class LineView(Result):
    """A line on a heat map, in the units of its axes; null is a gap."""

    label: str
    xs: Numbers
    ys: Numbers


@dataclass(frozen=True)
class WordsView(Result):
    """Words on a picture, centred on a point in the units of its axes."""

    text: str
    x: float
    y: float


@dataclass(frozen=True)
class HeatmapView(Result):
    """A picture: values[i][j] at xs[i], ys[j]; null where there is none. blank: gets no colour.
    rest: where a cell is a state, its fields beside names[0] and names[1]; else null."""

    name: str
    kind: Literal["heatmap"]
    title: str
    about: str
    names: tuple[str, str, str]
    rest: dict[str, str] | None
    xs: Whole
    ys: Whole
    values: Numbers2
    x_label: str
    y_label: str
    colour_label: str
    limits: tuple[float, float] | None
    levels: tuple[float, ...]
    blank: Flags2
    lines: tuple[LineView, ...]
    words: tuple[WordsView, ...]


@dataclass(frozen=True)
class CurveView(Result):
    """A curve; null where it has no number."""

    label: str
    name: str
    values: Numbers


@dataclass(frozen=True)
class BandView(Result):
    """A stretch of the x axis that is marked, and why."""

    first: float
    last: float
    text: str


@dataclass(frozen=True)
class CurvesView(Result):
    """Curves over one axis: values[i] at xs[i]."""

    name: str
    kind: Literal["curves"]
    title: str
    about: str
    x_name: str
    x_label: str
    y_label: str
    xs: Whole
    limits: tuple[float, float] | None
    curves: tuple[CurveView, ...]
    bands: tuple[BandView, ...]
    words: tuple[WordsView, ...]


ChartView = ListingView | HeatmapView | CurvesView


def chart_view(name: str, made: Chart) -> ChartView:
    """A chart of a game as an answer has it."""
    if isinstance(made, Listing):
        return _view(ListingView, made, {"name": name, "kind": "listing"})
    own: dict[str, Any] = {"name": name, "words": _views(WordsView, made.words)}
    if isinstance(made, Curves):
        own |= {"curves": _views(CurveView, made.curves), "bands": _views(BandView, made.bands)}
        return _view(CurvesView, made, own | {"kind": "curves"})
    own |= {"lines": _views(LineView, made.lines)}
    return _view(HeatmapView, made, own | {"kind": "heatmap"})


def _view(kind: type[V], made: object, own: Mapping[str, Any] = {}) -> V:
    """What has the attributes of another, but for its own."""
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    return kind(**{name: own[name] if name in own else getattr(made, name) for name in names})


def _views(kind: type[V], made: tuple[object, ...]) -> tuple[V, ...]:
    return tuple(_view(kind, one) for one in made)


# --- grids -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AxisView(Result):
    """A column over which a grid goes, with its values."""

    name: str
    label: str
    values: Whole


@dataclass(frozen=True)
class GridView(Result):
    """A table over two columns: cells[i][j] at the i-th value of x and the j-th of y, null where
    there is no such number. best: into actions. queries, state: all other fields, in full."""

    x: AxisView
    y: AxisView
    colour: str
    cells: Numbers2
    best: list[list[int | None]]
    to_act: Whole2
    actions: tuple[str, ...]
    queries: str
    state: dict[str, Any]
    payoff_name: str


def grid_view(
    table: StoredTable, x: str, y: str, colour: str, state: Mapping[str, str], seed: int | None
) -> GridView:
    """The grid over two columns. state: all other fields, and of a column its first and last value
    and the step between, as ``NAME_from``, ``NAME_to``, ``NAME_step``. Raises OptionError,
    StateError."""
    held, rest, spans = column_spans(table), dict(state), {}
    for name in (x, y):
        low, high, step = held.get(name, (0, 0, 1))
        bounds = (
            _bound(rest, f"{name}_from", low, -(10**9)), _bound(rest, f"{name}_to", high, -(10**9)),
            _bound(rest, f"{name}_step", step, 1),
        )  # fmt: skip
        if name in held:
            spans[name] = bounds
    made = grid(table, Wish(x, y, need_state(table, rest, seed), colour, spans))
    return _grid_view(table, colour, made)


def _bound(state: dict[str, str], name: str, default: int, low: int) -> int:
    text = state.pop(name, None)
    return default if text is None else whole(name, text, low, 10**9)


def _grid_view(table: StoredTable, colour: str, made: Grid) -> GridView:
    full = table.game.fields.describe(table.game.fields.numbers(made.full)[0])
    return GridView(
        x=_axis_view(made.x), y=_axis_view(made.y), colour=colour, cells=made.values,
        best=_blank(made.best, made.best < 0), to_act=made.to_act, actions=made.actions,
        queries=address(full), state=full, payoff_name=table.game.payoff_name,
    )  # fmt: skip


def _axis_view(axis: Axis) -> AxisView:
    return AxisView(axis.name, label(axis.name), axis.values)
