"""Views of tables: the list, the facts, the charts and the rows of a ready search."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from luckbase.cluster.answers.charts import grid
from luckbase.cluster.answers.examples import (
    FoundRows,
    drawn_state,
    first_rows,
)
from luckbase.cluster.answers.moves import Moves
from luckbase.jobs.web.facts import TableFacts, TableSummary
from luckbase.jobs.web.http import ViewRequest, integer
from luckbase.solver.charts import Chart
from luckbase.solver.errors import MissingTableError, OptionError
from luckbase.solver.result import Flat, Result
from luckbase.solver.sentences import fields

if TYPE_CHECKING:
    from luckbase.jobs.web.pool import OpenTable

SEARCH_STATES = 200_000
"""Maximum number of states of a search above a table for a page: half a second."""
SECONDS = 2.0
"""Maximum seconds of a search for rows; a page shows the rows found until then."""
MAX_SHOWN = 200


@dataclass(frozen=True)
class TableList(Result):
    """The tables that are served."""

    tables: list[TableSummary]


@dataclass(frozen=True)
class TableInfo(Result):
    """A table with its game and board."""

    summary: Flat[TableSummary]
    facts: Flat[TableFacts]


def list_view(request: ViewRequest) -> TableList:
    """Return the tables that are served."""
    return TableList(list(map(request.pool.summary, request.pool.listed())))


def table_view(request: ViewRequest) -> TableInfo:
    """Return the facts of the table in the path."""
    return info(request, request.opened)


def info(request: ViewRequest, opened: OpenTable) -> TableInfo:
    """Return the facts of an open table."""
    return TableInfo(request.pool.summary(opened.entry), opened.facts)


def need_state(opened: OpenTable, seed: int | None) -> dict[str, str]:
    """Return a state drawn by a seed, or the page's first. Raises MissingTableError for an empty
    table."""
    table = opened.table
    found = opened.facts.start if seed is None else drawn_state(table, seed)
    if found is None:
        raise MissingTableError(f"{table.origin}: holds no state yet; solve it first")
    return found


UNPRICED = "cannot be played from: the table does not have the payoffs of what can happen there"


def why_not(there: Moves) -> str | None:
    """Return why a game cannot begin at a state; None if it can."""
    if there.over:
        return "the game is over there"
    outcomes = chain(there.outcomes, *(move.outcomes for move in there.moves))
    if there.answer.source == "table" and None not in [each.value for each in outcomes]:
        return None
    return f"{fields(there.answer.state)} {UNPRICED}"


# --- charts and rows -----------------------------------------------------------------------------


@dataclass(frozen=True)
class ChartView(Result):
    """A chart of `solver.charts`; `kind` gives its class. null in a picture is a gap.

    rest: if the cells of a heat map are states, the fields other than names[0] and names[1];
        otherwise null.
    """

    name: str
    kind: str
    chart: Flat[Chart]


def chart_view(request: ViewRequest) -> ChartView:
    """Return a chart of the game. Its parameters are fields; an empty one has its default."""
    name = request.path["name"]
    given = {field: value for field, value in request.query.state.items() if value}
    chart = request.table.chart(name, given)
    return ChartView(name, type(chart).__name__.lower(), chart)


def grid_view(request: ViewRequest) -> ChartView:
    """Return a heat map over two columns, x and y. The cells share the other fields of the state.
    Raises OptionError, StateError."""
    query, table = request.query, request.table
    x, y = query.need("x", "COLUMN"), query.need("y", "COLUMN")
    shared = query.state
    for field in table.game.fields if shared else ():
        # A column of an axis may be left out, but a state needs a value there.
        for name in {x, y} & {*field.columns} if field.name not in shared else ():
            shared.setdefault(name, str(field.low))
    base = shared or need_state(request.opened, query.random_seed)
    return ChartView("grid", "heatmap", grid(table, (x, y), base, query.get("colour", "")))


def search_view(request: ViewRequest) -> FoundRows:
    """Return the first rows, at most `most`, that a ready search finds. Raises OptionError for an
    unknown one."""
    table, most = request.table, request.query.integer("most", 1, MAX_SHOWN, 50)
    ready = request.opened.facts.searches
    if not ready:
        raise OptionError(f"search: a table of {table.game.board.game} has none")
    number = integer("search", request.path["number"], 1, len(ready))
    return first_rows(table, ready[number - 1], most, SECONDS)
