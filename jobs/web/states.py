"""Answers about tables (list, facts, charts, rows) and states (in one table, in two)."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from luckbase.cluster.answers.charts import grid
from luckbase.cluster.answers.examples import FoundRows, first_rows
from luckbase.cluster.answers.grids import grid_notes
from luckbase.cluster.answers.moves import Moves, address, moves
from luckbase.cluster.answers.why import why
from luckbase.jobs.web.http import LongAnswer, ViewRequest
from luckbase.jobs.web.pool import OpenTable, TableFacts, TableSummary
from luckbase.solver import errors, sentences
from luckbase.solver.charts import Chart
from luckbase.solver.errors import LuckbaseError, MissingTableError, OptionError
from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.capabilities import Follow, scene_at, state_of
from luckbase.solver.game.fields import typed
from luckbase.solver.game.game import Game
from luckbase.solver.result import Flat, IfAny, PythonOnly, Result
from luckbase.solver.scene import Scene

if TYPE_CHECKING:
    from luckbase.cluster.answers.table import Table
    from luckbase.jobs.web.pool import TablePool

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


# --- states --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StateView(Result):
    """The answer to a state, as in luckbase query --json, and its moves. to_act: from 1; null for
    none or both. actions: best first. outcomes: for chance and simultaneous moves."""

    moves: Flat[Moves]
    defaults: dict[str, Any]  # omitted fields and their values
    why: list[str]  # sentences about the best action
    playable: bool  # True if a game can begin there: payoffs of all outcomes are known
    grid: IfAny[str]  # how far the answer is from the board's own, if the table rounds scores
    game: PythonOnly[Game]
    inputs: PythonOnly[Ints]  # the state as given, in users' units

    @cached_property
    def scene(self) -> Scene:
        """The drawing of the state."""
        return scene_at(self.game, self.inputs)


def state_view(request: ViewRequest) -> StateView:
    """Return the answer to a state and its moves, from the finest table of the board that has it if
    this one does not. The state is given by its fields or as a sentence, or is the page's first.
    Raises StateError."""
    query, table = request.query, request.table
    state: Mapping[str, str] = query.state
    if "sentence" in query:
        table.game.need(Follow)
        on_grid = table.for_state(query["sentence"]).game
        state = typed(on_grid.describe(state_of(on_grid, query["sentence"])))
    state = state or start_of(request.opened)
    return state_answer(table.for_state(state), state, long=request.long)


def state_answer(table: Table, state: Mapping[str, str], *, long: bool = True) -> StateView:
    """Return the answer to a state and its moves. long: search if the table does not have the
    state; otherwise raise LongAnswer."""
    there, fields = _moves(table, state, long), table.game.fields
    outcomes = chain(there.outcomes, *(move.outcomes for move in there.moves))
    priced = there.answer.source == "table" and all(each.value for each in outcomes)
    return StateView(
        there, fields.left_out(state), why(table, there), priced and not there.over,
        grid_notes(table)(there.numbers) or None, table.game, fields.read(state),
    )  # fmt: skip


def _moves(table: Table, state: Mapping[str, str], long: bool) -> Moves:
    """Return the moves at a state, with a search above the table if a page can wait for it."""
    try:
        return moves(table, state, SEARCH_STATES if long else 0)
    except MissingTableError:
        if long:
            raise
        raise LongAnswer from None
    except errors.SearchLimitError:
        raise errors.SearchLimitError(
            f"{sentences.fields(state)} is above this table, and a search down to it meets more "
            f"than {SEARCH_STATES:,} states; this command searches further: "
            f"luckbase query {shlex.quote(str(table.where))} {sentences.quoted(state)}"
        ) from None


def warm_up(pool: TablePool, id: str) -> None:
    """Query a table so that the compiled code of its game is loaded, then close it again."""
    with suppress(LuckbaseError), ViewRequest(pool, {"id": id}) as request:
        state_view(request).as_json()
    pool.forget(id)


# --- two tables --------------------------------------------------------------------------------


@dataclass(frozen=True)
class CompareView(Result):
    """Two answers to one state."""

    second_id: str  # the id of the second table
    query: str  # the address of both answers
    first: StateView
    second: StateView
    change: list[float] | None
    """The second's payoffs minus the first's; null if the numbers of players differ."""


def rivals(request: ViewRequest) -> list[TableSummary]:
    """Return the other tables of the same game, the most similar first."""
    first = request.pool.summary(request.opened.entry)

    def distance(table: TableSummary) -> tuple[bool, int]:
        options = {*table.status.options.items()} ^ {*first.status.options.items()}
        return table.board != first.board, len(options)

    tables = map(request.pool.summary, request.pool.listed())
    usable = (each for each in tables if each.status.state not in ("damaged", "refused"))
    return sorted(
        (each for each in usable if each.game == first.game and each.id != first.id), key=distance
    )


def compare_view(request: ViewRequest) -> CompareView:
    """Return the answers of two tables to a state: by default of the most similar table, and to the
    first example in both. Raises MissingTableError if there is none."""
    id = request.query.get("second") or next((each.id for each in rivals(request)), None)
    if id is None:
        raise MissingTableError("this is the only table of its game; solve another board first")
    second = request.open(id).table
    if request.query.state:
        return _compared(request, id, second, request.query.state)
    for each in request.opened.facts.examples:
        with suppress(LuckbaseError):
            return _compared(request, id, second, each.state)
    raise MissingTableError(f"{request.path['id']}: has no example in both tables; give a state")


def _compared(
    request: ViewRequest, id: str, second: Table, state: Mapping[str, str]
) -> CompareView:
    views = [state_answer(table, state, long=request.long) for table in (request.table, second)]
    values = [view.moves.answer.value for view in views]
    same = len(values[0]) == len(values[1])
    change = [b - a for a, b in zip(*values, strict=True)] if same else None
    query = f"second={quote(id)}&{address(views[0].moves.answer.state)}"
    return CompareView(id, query, views[0], views[1], change)
