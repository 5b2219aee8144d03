"""Views of tables: the list, the facts, the charts and the rows of a ready search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from luckbase.cluster.answers.charts import grid
from luckbase.cluster.answers.examples import FoundRows, first_rows
from luckbase.jobs.web.pool import OpenTable, TableFacts, TableSummary
from luckbase.solver.charts import Chart
from luckbase.solver.errors import MissingTableError, OptionError
from luckbase.solver.result import Flat, Result

if TYPE_CHECKING:
    from luckbase.jobs.web.http import ViewRequest

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


def start_of(opened: OpenTable) -> dict[str, str]:
    """Return the state with which a page begins. Raises MissingTableError for an empty table."""
    if opened.facts.start is None:
        raise MissingTableError(f"{opened.table.origin}: holds no state yet; solve it first")
    return opened.facts.start


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
    """Return a heat map over two columns, x and y, by default the table's first two. The cells
    share the other fields of the state. Raises OptionError, StateError."""
    query, table = request.query, request.table
    across, up, *_ = [*request.opened.facts.axes, "", ""]
    x, y = query.get("x", across), query.get("y", up)
    shared = query.state
    for field in table.game.fields if shared else ():
        # A column of an axis may be left out, but a state needs a value there.
        for name in {x, y} & {*field.columns} if field.name not in shared else ():
            shared.setdefault(name, str(field.low))
    base = shared or start_of(request.opened)
    return ChartView("grid", "heatmap", grid(table, (x, y), base, query.get("colour", "")))


def search_view(request: ViewRequest) -> FoundRows:
    """Return the first rows, at most `most`, that a ready search finds. Raises OptionError for an
    unknown search."""
    table, most = request.table, request.query.integer("most", 1, MAX_SHOWN, 50)
    ready, number = request.opened.facts.searches, int(request.path["number"])
    if not 1 <= number <= len(ready):
        raise OptionError(f"search: {number} is unknown; this table has {len(ready)} of them")
    return first_rows(table, ready[number - 1], most, SECONDS)
