"""Views of tables: the list, the facts of a table, its charts, and the rows of a ready search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from luckbase.cluster.answers.charts import column_spans, grid
from luckbase.cluster.answers.examples import Example, FoundRows, examples, first_rows, searches
from luckbase.cluster.answers.find import Status
from luckbase.cluster.info import FieldInfo, agents_on, field_info
from luckbase.solver.board import registry
from luckbase.solver.board.model import canonical, options_of
from luckbase.solver.charts import Chart, Kind, Search
from luckbase.solver.errors import MissingTableError, OptionError
from luckbase.solver.game.capabilities import Charts, Drawing, Follow
from luckbase.solver.game.game import Game
from luckbase.solver.result import Flat, Result

if TYPE_CHECKING:
    from luckbase.cluster.answers.table import Table
    from luckbase.jobs.web.http import ViewRequest
    from luckbase.jobs.web.pool import OpenTable

AGENT_SECONDS = 2.0
"""Maximum seconds an opponent may need before its first move."""
SEARCH_STATES = 200_000
"""Maximum number of states of a search above a table for a page: half a second."""
SECONDS = 2.0
"""Maximum seconds of a search for rows; a page shows the rows found until then."""
MAX_SHOWN = 200


@dataclass(frozen=True)
class TableSummary(Result):
    """A table in the list.

    id: its name in URLs.
    title: of the board; its name if it has none.
    game_title: common name of the game.
    about: describes the game in two sentences.
    error_bound: error bound of all payoffs.
    status: as in `luckbase.status`, without local paths in `table` and `why`.
    """

    id: str
    game: str
    board: str
    title: str
    game_title: str
    about: str
    solve_id: str
    error_bound: float
    status: Flat[Status]


@dataclass(frozen=True)
class TableFacts(Result):
    """A table's game and board.

    start: the state with which a page begins; null if none is solved.
    axes: the columns that a grid can have as axes.
    searches: ready searches, numbered from 1.
    sentence: an example of a state in words; null if the game cannot read one.
    option_help: describes each option of the board.
    outcome_note: explains the names of outcomes.
    """

    players: int
    payoff_name: str
    payoff_range: tuple[float, float] | None
    fields: list[FieldInfo]
    start: dict[str, str] | None
    examples: list[Example]
    charts: list[Kind]
    axes: list[str]
    searches: list[Search]
    sentence: str | None
    agents: list[str]
    option_help: dict[str, str]
    outcome_note: str
    board_file: dict[str, Any]


def summary_of(id: str, names: tuple[str, str, str], status: Status) -> TableSummary:
    """Return a table's entry in the list. names: game, board and identity, by its folders."""
    game, board, identity = status.names or names
    title = status.title or board
    named = registry.described(game)
    return TableSummary(id, game, board, title, *named, identity, status.error, status)


def facts_of(table: Table) -> TableFacts:
    """Return the facts of a table."""
    game, spans, known = table.game, column_spans(table), examples(table)
    charts, follow = game.get(Charts), game.get(Follow)
    return TableFacts(
        players=game.players, payoff_name=game.payoff_name, payoff_range=game.known_range,
        fields=[field_info(game, item) for item in game.fields],
        start=known[0].state if known else None, examples=known,
        charts=[] if charts is None else list(charts.kinds),
        axes=[name for name, span in spans.items() if span.high > span.low],
        searches=searches(table),
        sentence=None if follow is None else follow.words[0][0],
        agents=opponents(game),
        option_help={
            name: item.description for name, (_, item) in options_of(game.board).items()
            if item.description
        },
        outcome_note=game.own(Drawing).note,
        board_file={"name": game.board.name, **canonical(game.board)},
    )  # fmt: skip


def opponents(game: Game) -> list[str]:
    """Return the agents that the board supports and that are fast enough for a request."""
    return [*agents_on(game, AGENT_SECONDS)]


# --- views ---------------------------------------------------------------------------------------


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
