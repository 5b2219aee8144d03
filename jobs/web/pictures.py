"""A table's pictures as data: charts, grids over two columns, and a state drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from luckbase.cluster.table.frames import Axis, Grid, Wish, column_spans, grid
from luckbase.cluster.table.moves import address
from luckbase.cluster.table.table import StoredTable
from luckbase.jobs.web.params import whole
from luckbase.jobs.web.scene_svg import svg
from luckbase.jobs.web.tables import label, need_state
from luckbase.solver.charts import Chart, Curves, Heatmap, Listing
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.capabilities import scene_of
from luckbase.solver.game.game import Game
from luckbase.solver.result import Array2, Flat, Result, WholeNumbers, WholeNumbers2


def drawing(game: Game, words: Mapping[str, object]) -> str:
    """The state in a person's words, drawn as the game looks, as SVG. Raises StateError."""
    return svg(scene_of(game, words))


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
        best=[[None if k < 0 else k for k in row] for row in made.best.tolist()],
        to_act=made.to_act, actions=made.actions, queries=address(full), state=full,
        payoff_name=table.game.payoff_name,
    )  # fmt: skip


def _axis_view(axis: Axis) -> AxisView:
    return AxisView(axis.name, label(axis.name), axis.values)
