"""Charts of a table, grids of it over two columns, and ready searches for rows."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field

from luckbase.cluster.answers.frames import all_answers
from luckbase.cluster.answers.moves import Addressed
from luckbase.cluster.info import label
from luckbase.jobs.web import tables
from luckbase.jobs.web.http import ApiRequest, StateParams, TableParams, whole
from luckbase.solver.charts import Chart, Heatmap, Search, outline, words_in
from luckbase.solver.errors import OptionError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.game import Game
from luckbase.solver.result import Flat, Result
from luckbase.solver.search.expand import expand
from luckbase.solver.sentences import capital, fields, listed, nearest

if TYPE_CHECKING:
    from luckbase.cluster.answers.table import StoredTable, Table

AXIS_VALUES = 100
"""Maximum number of values of a column on an axis of a grid."""
GRID_PIECE = 4_000
"""Number of states looked up together: about 60 children each."""
SECONDS = 2.0
"""Maximum seconds of a search for rows; a page shows the rows found until then."""
MAX_SHOWN = 200


@dataclass(frozen=True)
class ChartView(Result):
    """A chart of `solver.charts`; `kind` gives its class. null in a picture is a gap.

    rest: if the cells of a heat map are states, the fields other than names[0] and names[1];
        otherwise null.
    """

    name: str
    kind: str
    chart: Flat[Chart]


class ChartParams(TableParams, extra="allow"):
    """The parameters of a chart: its fields."""


def chart_view(table: StoredTable, request: ApiRequest[ChartParams]) -> ChartView:
    """Return a chart of the game."""
    name = request.path["name"]
    made = table.chart(name, request.params.state)
    return ChartView(name, type(made).__name__.lower(), made)


# --- grids ---------------------------------------------------------------------------------------


class GridParams(StateParams):
    """The parameters of a grid. The fields of a state are shared by all cells."""

    x: str = Field(title="COLUMN")
    y: str = Field(title="COLUMN")
    colour: str = ""
    """value_1, …: a player's payoff; margin; best. By default the payoff of the player who acts."""


def grid_view(table: StoredTable, request: ApiRequest[GridParams]) -> ChartView:
    """Return a heat map over two columns. Raises OptionError, StateError."""
    params, shared = request.params, dict(request.params.state)
    for field in table.game.fields:
        # A column of an axis may be left out, but a state needs a value there.
        if shared and field.name not in shared:
            for name in {params.x, params.y} & {*field.columns}:
                shared.setdefault(name, str(field.low))
    state = tables.need_state(table, shared, params.seed)
    made = grid(table, (params.x, params.y), state, params.colour)
    return ChartView("grid", "heatmap", made)


def grid(
    table: Table, columns: tuple[str, str], base: Mapping[str, str], colour: str = ""
) -> Heatmap:
    """Return a heat map of the table over two columns, x and y.

    base: a state in words, for the other fields.
    colour: value_1, … (a player's payoff), margin or best (the action's number); by default the
        payoff of the player who acts at the base.

    Raises OptionError for unknown columns or colours, StateError for an invalid base.
    """
    game, spans = table.game, tables.column_spans(table)
    for which, name in zip("xy", columns, strict=True):
        if name not in spans:
            raise OptionError(
                f"{which}: '{name[:30]}' is not a column of numbers of this table; "
                f"{nearest(name, [*spans])}"
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
        raise OptionError(f"colour: unknown colour '{colour[:30]}'; {nearest(colour, colours)}")
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
