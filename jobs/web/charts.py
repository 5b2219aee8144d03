"""Charts of a table, grids of it over two columns, and ready searches for rows."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field

from luckbase.cluster.info import label
from luckbase.cluster.table.frames import all_answers
from luckbase.cluster.table.moves import Addressed
from luckbase.jobs.web import tables
from luckbase.jobs.web.http import ApiRequest, StateParams, TableParams, whole
from luckbase.solver.charts import Curves, Heatmap, Listing, Search, outline, words_in
from luckbase.solver.errors import OptionError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.game import Game
from luckbase.solver.result import Flat, Result
from luckbase.solver.search.expand import expand
from luckbase.solver.sentences import capital, fields, listed, nearest

if TYPE_CHECKING:
    from luckbase.cluster.table.table import StoredTable, Table

MAX_CELLS = 10_000
GRID_PIECE = 4_000
"""Number of states looked up together: about 60 children each."""
SECONDS = 2.0
"""Maximum seconds of a search for rows; a page shows the rows found until then."""
MAX_SHOWN = 200


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


class ChartParams(TableParams, extra="allow"):
    """The parameters of a chart: its fields."""


def chart_view(table: StoredTable, request: ApiRequest[ChartParams]) -> ChartView:
    """Return a chart of the game."""
    name, params = request.path["name"], request.params
    made = table.chart(name, params.state)
    if isinstance(made, Listing):
        return ListingView(name, "listing", made)
    if isinstance(made, Curves):
        return CurvesView(name, "curves", made)
    return HeatmapView(name, "heatmap", made)


# --- grids ---------------------------------------------------------------------------------------


class GridParams(StateParams):
    """The parameters of a grid. Those that bound an axis, ``NAME_from``, ``NAME_to`` and
    ``NAME_step``, are among the fields of the state."""

    x: str = Field(title="COLUMN")
    y: str = Field(title="COLUMN")
    colour: str = ""
    """value_1, …: a player's payoff; margin; best. By default the payoff of the player who acts."""


Span = tuple[int, int, int]
"""The least value of a column, the greatest, and the step."""


def grid_view(table: StoredTable, request: ApiRequest[GridParams]) -> HeatmapView:
    """Return a heat map over two columns. Raises OptionError, StateError."""
    params, known = request.params, tables.column_spans(table)
    rest, spans = dict(params.state), dict[str, Span]()
    for name in (params.x, params.y):
        low, high, unit = known.get(name, (0, 0, 1))
        first, last, step = (
            whole(f"{name}_{end}", rest.pop(f"{name}_{end}", default), least, 10**9)
            for end, default, least in (("from", low, -(10**9)), ("to", high, -(10**9)),
                                        ("step", coarse(low, high, unit), 1))
        )  # fmt: skip
        if name in known:
            spans[name] = first, last, step
    for name in (params.x, params.y):
        rest = _without(table, rest, name, known)
    state = tables.need_state(table, rest, params.seed)
    made = grid(table, (params.x, params.y), state, params.colour, spans)
    return HeatmapView("grid", "heatmap", made)


def coarse(low: int, high: int, unit: int) -> int:
    """Return the step that gives at most a hundred values."""
    return unit * max(1, -(-((high - low) // unit + 1) // 100))


def _without(
    table: Table, state: Mapping[str, str], name: str, known: Mapping[str, Span]
) -> dict[str, str]:
    """Return a state whose column of an axis has a value, if the others of its field are given:
    the axis replaces it."""
    field = next((each for each in table.game.fields if name in each.columns), None)
    given = dict(state)
    if field is not None and field.name not in given and len(given) > 0:
        given.setdefault(name, str(known.get(name, (field.low,))[0]))
    return given


def grid(
    table: Table, columns: tuple[str, str], base: Mapping[str, str], colour: str = "",
    spans: Mapping[str, Span] = {},
) -> Heatmap:  # fmt: skip
    """Return a heat map of the table over two columns, x and y.

    base: a state in words, for the other fields.
    colour: what the numbers are: value_1, … (a player's payoff), margin or best (the number of the
    action); the payoff of the player up at the base if empty.
    spans: the least value, the greatest and the step of a column, if not those of the table.

    Raises OptionError for columns or colours that are none, and for more than `MAX_CELLS` cells;
    StateError for a base that is no state.
    """
    game, known = table.game, dict(spans)
    if not known.keys() >= {*columns}:
        known = tables.column_spans(table) | known
    x, y = (_axis(which, name, known) for which, name in zip("xy", columns, strict=True))
    if columns[0] == columns[1]:
        raise OptionError(f"y: {columns[1]} is the column of x too; take another one")
    shape = len(x), len(y)
    cells = shape[0] * shape[1]
    if cells > MAX_CELLS:
        raise OptionError(
            f"x and y: {shape[0]} by {shape[1]} are {cells:,} cells; expected at most "
            f"{MAX_CELLS:,}: take {columns[0]}_from, {columns[0]}_to, {columns[0]}_step closer"
        )
    fixed = game.fields.read(base)
    state = game.fields.describe(game.fields.numbers(fixed)[0])
    up = int(expand(game, game.canonical_states(fixed.reshape(1, -1))).actors[0])
    colour = colour or f"value_{max(up, 0) + 1}"
    colours = [*(f"value_{i + 1}" for i in range(game.players)), "margin", "best"]
    if colour not in colours:
        raise OptionError(f"colour: unknown colour '{colour[:30]}'; {nearest(colour, colours)}")
    values = np.repeat(fixed[None], cells, axis=0)
    values[:, game.columns.index(columns[0])] = np.repeat(x, shape[1])
    values[:, game.columns.index(columns[1])] = np.tile(y, shape[0])
    numbers, best, names = _cell_numbers(table, values, colour)
    best = best.reshape(shape)
    regions = {name: best == k for k, name in enumerate(names)}
    lines = [outline("the best action changes", inside, x, y, best >= 0)
             for inside in [*regions.values()][: len(regions) - 1]]  # fmt: skip
    what, axes = colour_name(game, colour), [axis_name(game, column) for column in columns]
    title = f"{capital(what)} by {axes[0]} and {axes[1]}"
    return Heatmap(
        title=re.sub(r" \((dollars|probability)\)", "", title),
        about=fields({k: v for k, v in state.items() if k not in columns}, ", "),
        names=(*columns, colour), xs=x, ys=y, values=numbers.reshape(shape),
        x_label=axes[0], y_label=axes[1], colour_label=what,
        limits=(0.0, 1.0) if game.pays_chances and colour.startswith("value") else None,
        lines=tuple(line for line in lines if line is not None),
        words=words_in(regions, x, y) if len(regions) > 1 else (),
        rest={name: listed(value) for name, value in state.items() if name not in columns},
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
    name, _, number = column.rpartition("_")
    said = (
        f"{label(name)} of player {number}" if field.length == game.players > 1 else label(column)
    )
    return f"{said} (dollars)" if "ollars" in field.help else said


def _axis(which: str, name: str, spans: Mapping[str, Span]) -> Ints:
    if name not in spans:
        raise OptionError(
            f"{which}: '{name[:30]}' is not a column of numbers of this table; "
            f"{nearest(name, [*spans])}"
        )
    low, high, step = spans[name]
    if step < 1 or high < low or (high - low) // step >= MAX_CELLS:
        raise OptionError(f"{which}: {name} from {low} to {high} by {step} gives no values")
    return np.arange(low, high + 1, step)


def _cell_numbers(
    table: Table, values: Ints, colour: str
) -> tuple[Floats, NDArray[np.int16], tuple[str, ...]]:
    """For states in users' units, values (n, columns), return numbers (n,), best actions (n,) with
    -1 for none, and the names of the actions."""
    game = table.game
    states, sound = game.known_states(values)
    places = np.flatnonzero(sound)
    numbers, best = np.full(len(values), np.nan), np.full(len(values), -1, np.int16)
    names: dict[str, int] = {}
    for start in range(0, len(states), GRID_PIECE):
        here, at = (each[start : start + GRID_PIECE] for each in (states, places))
        payoffs, there = table.lookup_or_backup(here)
        own = np.flatnonzero(table.owners(here) >= 0)
        if colour == "margin":
            numbers[at[own]] = table.margins_of(here[own])
        for x, name in zip(at[own].tolist(), table.stored_best(here[own]), strict=True):
            best[x] = -1 if name is None else names.setdefault(name, len(names))
        if colour == "best":
            numbers[at] = np.where(best[at] >= 0, best[at], np.nan)
        elif colour != "margin":
            player = int(colour.removeprefix("value_")) - 1
            numbers[at] = np.where(there, payoffs[:, player], np.nan)
    return numbers, best, tuple(names)


def cell_state(game: Game, chart: Heatmap) -> dict[str, str] | None:
    """Return the fields that a heat map's cells share, as URL parameters, without its axes; None if
    cells are not states."""
    axes = chart.names[:2]
    if chart.rest is None or not set(axes) <= set(game.columns):
        return None
    found: dict[str, str] = {}
    for each in game.fields:
        if each.name not in chart.rest:
            continue
        if set(axes) & set(each.columns) and each.length > 1:
            parts = zip(each.columns, chart.rest[each.name].split(","), strict=True)
            found |= {name: value for name, value in parts if name not in axes}
        elif each.name not in axes:
            found[each.name] = chart.rest[each.name]
    return found


# --- ready searches ------------------------------------------------------------------------------


@dataclass(frozen=True)
class FoundRow(Result):
    """A row that was found, in the form of luckbase query."""

    state: Addressed
    to_act: int | None
    best: str | None
    margin: float | None
    toss_up: bool
    value: tuple[float, ...]


@dataclass(frozen=True)
class SearchView(Result):
    """The rows that a search found.

    count: number of rows found among the first `looked_at` of `of` rows.
    complete: True if the search read all rows.
    """

    search: Flat[Search]
    rows: list[FoundRow]
    count: int
    looked_at: int
    of: int
    complete: bool


class SearchParams(TableParams):
    """The parameters of a ready search."""

    most: Annotated[int, BeforeValidator(lambda text: whole("most", text, 1, MAX_SHOWN))] = 50
    """Maximum number of rows shown, 1 to `MAX_SHOWN`."""


class _Late(Exception):
    """The time for a search is over."""


def search_view(table: StoredTable, request: ApiRequest[SearchParams]) -> SearchView:
    """Return the first rows that a ready search finds. Raises OptionError for an unknown one."""
    ready, most = tables.searches(table), request.params.most
    number = whole("search", request.path["number"], 1, max(len(ready), 1))
    if not ready:
        raise OptionError(f"search: a table of {table.game.board.game} has none")
    search, deadline = ready[number - 1], time.monotonic() + SECONDS
    kept: list[pa.RecordBatch] = []
    count = taken = looked_at = 0

    def on_rows(done: int, total: int) -> None:
        nonlocal looked_at
        looked_at = done
        if time.monotonic() > deadline:
            raise _Late

    reader = table.to_arrow(search.where, table.game.columns, actions=True, on_rows=on_rows)
    complete = False
    with suppress(_Late):
        for batch in reader:
            count += len(batch)
            if taken < most and len(batch):
                kept.append(batch.slice(0, most - taken))
                taken += len(kept[-1])
        complete = True
    rows = [
        FoundRow(each.state, each.to_act, each.best, each.margin, each.toss_up, each.value)
        for each in (all_answers(table, pa.Table.from_batches(kept)) if kept else ())
    ]
    return SearchView(search, rows, count, looked_at, table.rows, complete)
