"""The rows of a table that meet conditions, as luckbase export takes them: the first of them with
their answers, and how many there are, as far as a page waits for that."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import pyarrow as pa
from pydantic import BeforeValidator

from luckbase.cluster.info import label
from luckbase.cluster.table.columns import listed_actions, parse_where
from luckbase.cluster.table.export import columns_of
from luckbase.cluster.table.frames import all_answers
from luckbase.cluster.table.moves import Addressed
from luckbase.cluster.table.why import Payoffs
from luckbase.jobs.web import tables
from luckbase.jobs.web.http import ApiRequest, TableParams, whole
from luckbase.jobs.web.states import step
from luckbase.solver.charts import Search
from luckbase.solver.errors import OptionError
from luckbase.solver.game.capabilities import Charts
from luckbase.solver.game.game import Game
from luckbase.solver.result import Result

if TYPE_CHECKING:
    from luckbase.cluster.table.table import StoredTable, Table

SECONDS = 2.0
"""That a search goes on; what it has found by then is shown."""
MAX_SHOWN = 200
OF_THE_TABLE = ("key", "status", "part")
"""Columns that say how a table is kept, not what is in it."""


def of_any_game(game: Game) -> tuple[Search, ...]:
    """Searches of every game in which one acts at a time; close: within a thousandth of a win, or
    of the most dollars, or a tenth of a point."""
    low, high = game.known_range or (0.0, 100.0)
    close = 0.001 if high - low <= 2 else step(game)
    gap = Payoffs(game.payoff_name, False).change(close) if close >= 1 else f"{close:g}"
    return (
        Search(f"close decisions: the next best costs less than {gap}",
               f"margin>0 margin<{close:g}"),
        Search("toss-ups: another action is worth as much", "toss_up=true"),
    )  # fmt: skip


@dataclass(frozen=True)
class FilterColumn(Result):
    """A column that a condition may be on. kind: number, text, set (of numbers) or truth. values:
    those that a text can have, where they are known; min, max: between which values numbers lie,
    about, where that is known. help: what it says."""

    name: str
    label: str
    kind: Literal["number", "text", "set", "truth"]
    help: str
    values: list[str]
    min: int | None = None
    max: int | None = None


@dataclass(frozen=True)
class FilterInfo(Result):
    """What can be looked for: the columns, and searches to begin with."""

    columns: list[FilterColumn]
    examples: list[Search]


@dataclass(frozen=True)
class FilterRow(Result):
    """A row that was found, as luckbase query answers it."""

    state: Addressed
    to_act: int | None
    best: str | None
    margin: float | None
    toss_up: bool
    value: tuple[float, ...]


@dataclass(frozen=True)
class FilterView(Result):
    """What was found. count: of the rows that were looked at, of so many; complete: these are
    all."""

    where: str
    rows: list[FilterRow]
    count: int
    looked_at: int
    of: int
    complete: bool


class FilterParams(TableParams):
    """Of a search for rows."""

    where: str = ""
    """Conditions, as ``luckbase export`` takes them; empty for every row."""
    most: Annotated[int, BeforeValidator(lambda text: whole("most", text, 1, MAX_SHOWN))] = 50
    """Rows that are shown, 1 to `MAX_SHOWN`."""


def columns_view(table: StoredTable, request: ApiRequest[TableParams]) -> FilterInfo:
    """What can be looked for in a table."""
    charts, schema = table.game.get(Charts), columns_of(table)
    searches = [] if charts is None else [*charts.searches]
    searches += [] if table.game.simultaneous else of_any_game(table.game)
    return FilterInfo(
        list(_columns(table, schema)), [each for each in searches if _fits(table, each, schema)]
    )


def _fits(table: Table, search: Search, schema: pa.Schema) -> bool:
    """Whether a search is of columns that this table has, and can find anything there."""
    try:
        parse_where(table.game, search.where, schema)
    except OptionError:
        return False
    return True


def _columns(table: Table, schema: pa.Schema) -> Iterator[FilterColumn]:
    game, spans = table.game, tables.column_spans(table)
    helps = {column: field.help for field in game.fields for column in field.columns} | {
        "to_act": "The player to act, from 1; 0 where nobody chooses, or both at once.",
        "best": "The best action.",
        "margin": "What the second best action would cost.",
        "toss_up": "Whether another action is worth as much as the best.",
    }
    sets = {field.name for field in game.fields if field.is_set}
    for column in schema:
        name = column.name
        if name in OF_THE_TABLE:
            continue
        kind: Literal["number", "text", "set", "truth"] = "number"
        if name in sets:
            kind = "set"
        elif pa.types.is_boolean(column.type):
            kind = "truth"
        elif pa.types.is_string(column.type):
            kind = "text"
        action, word, player = name.rpartition("_payoff_" if "_payoff_" in name else "payoff_")
        text = f"{game.payoff_name} of player {player}" if word else ""
        if action:
            text += f" after {action.replace('_', ' ')}"
        lower, upper, _ = spans.get(name, (None, None, 1))
        yield FilterColumn(
            name, label(name), kind, helps.get(name) or text.capitalize(),
            list(listed_actions(game)) if name == "best" else [], lower, upper,
        )  # fmt: skip


class _Late(Exception):
    """The time for a search is over."""


def filter_view(table: StoredTable, request: ApiRequest[FilterParams]) -> FilterView:
    """The rows that meet conditions. Raises OptionError for what is no condition."""
    where, most = request.params.where.strip(), request.params.most
    deadline = time.monotonic() + SECONDS
    kept: list[pa.RecordBatch] = []
    count = taken = looked_at = 0

    def on_rows(done: int, total: int) -> None:
        nonlocal looked_at
        looked_at = done
        if time.monotonic() > deadline:
            raise _Late

    reader = table.to_arrow(where or None, table.game.columns, actions=True, on_rows=on_rows)
    complete = False
    with suppress(_Late):
        for batch in reader:
            count += len(batch)
            if taken < most and len(batch):
                kept.append(batch.slice(0, most - taken))
                taken += len(kept[-1])
        complete = True
    rows = [
        FilterRow(each.state, each.to_act, each.best, each.margin, each.toss_up, each.value)
        for each in (all_answers(table, pa.Table.from_batches(kept)) if kept else ())
    ]
    return FilterView(where, rows, count, looked_at, table.rows, complete)
