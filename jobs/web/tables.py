"""The facts of tables: a summary for the list, and details for a table's page."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from luckbase.cluster.answers.columns import parse_where
from luckbase.cluster.answers.export import columns_of
from luckbase.cluster.answers.find import Status, held_roots
from luckbase.cluster.answers.moves import Addressed, Moves, moves
from luckbase.cluster.info import FieldInfo, agents_on, field_info, label
from luckbase.jobs.web.http import ApiRequest, QueryParams, TableParams
from luckbase.solver.board import registry
from luckbase.solver.board.model import canonical, options_of
from luckbase.solver.charts import Kind, Search
from luckbase.solver.errors import LuckbaseError, MissingTableError, OptionError
from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.capabilities import Charts, Drawing, Follow, FullTable
from luckbase.solver.game.fields import typed
from luckbase.solver.game.game import Game
from luckbase.solver.result import Flat, Result
from luckbase.solver.search.expand import expand
from luckbase.solver.sentences import fields

if TYPE_CHECKING:
    from luckbase.cluster.answers.table import StoredTable, Table
    from luckbase.jobs.web.pool import TableEntry, TablePool

SEARCH_STATES = 200_000
"""Maximum number of states of a search above a table for a page: half a second."""
AGENT_SECONDS = 2.0
"""Maximum seconds an opponent may need before its first move."""
TRIES = 20
"""Number of rows drawn to find one solved state: some rows of a partial search are not solved."""
DRAWN = 2_000
"""Number of rows drawn to determine the range of columns."""


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
class TableList(Result):
    """The tables that are served."""

    tables: list[TableSummary]


@dataclass(frozen=True)
class Example(Result):
    """An interesting state."""

    label: str
    state: dict[str, str]
    address: Addressed


@dataclass(frozen=True)
class ColumnInfo(Result):
    """A column for the axis of a grid, and the range of its values in the table."""

    name: str
    label: str
    min: int
    max: int
    step: int


@dataclass(frozen=True)
class TableInfo(Result):
    """A table with its game and board.

    searches: ready searches, numbered from 1.
    sentence: an example of a state in words; null if the game cannot read one.
    option_help: describes each option of the board.
    outcome_note: explains the names of outcomes.
    """

    summary: Flat[TableSummary]
    players: int
    payoff_name: str
    payoff_range: tuple[float, float] | None
    fields: list[FieldInfo]
    start: dict[str, str] | None
    examples: list[Example]
    charts: list[Kind]
    axes: list[ColumnInfo]
    searches: list[Search]
    sentence: str | None
    agents: list[str]
    option_help: dict[str, str]
    outcome_note: str
    board_file: dict[str, Any]


def list_view(pool: TablePool, request: ApiRequest[QueryParams]) -> TableList:
    """Return the tables that are served."""
    return TableList([summary(pool, each) for each in pool.listed()])


def table_view(pool: TablePool, request: ApiRequest[TableParams]) -> TableInfo:
    """Return the facts of one table."""
    id = request.path["id"]
    listed = summary(pool, pool.find(id))
    return pool.ask(id, lambda table: info(listed, table), strict=request.params.strict)


def summary(pool: TablePool, entry: TableEntry) -> TableSummary:
    """Return a table's entry in the list."""
    status = pool.status(entry)
    game, board, identity = status.names or entry.names
    game_title, about = registry.described(game)
    return TableSummary(
        entry.id, game, board, status.title or board, game_title, about, identity, status.error,
        replace(status, table=entry.place, why=tuple(map(entry.without_paths, status.why))),
    )  # fmt: skip


def step(game: Game) -> float:
    """Return the unit of margins: a hundredth of a win, a tenth of a point, or a thousandth of
    the most points or dollars."""
    low, high = game.known_range or (0.0, 100.0)
    return 0.01 * (high - low) if high - low <= 2 else max(0.1, 0.001 * high)


def searches(table: Table) -> list[Search]:
    """Return the ready searches whose columns this table has, the game's own first."""
    game, charts, schema = table.game, table.game.get(Charts), columns_of(table)
    ready = [] if charts is None else [*charts.searches]
    if not game.simultaneous:
        low, high = game.known_range or (0.0, 100.0)
        close = 0.001 if high - low <= 2 else step(game)
        gap = game.payoffs.change(close)
        ready += [
            Search(f"close decisions: the next best costs less than {gap}",
                   f"margin>0 margin<{close:g}"),
            Search("toss-ups: another action is worth as much", "toss_up=true"),
        ]  # fmt: skip

    def fits(search: Search) -> bool:
        with suppress(OptionError):
            parse_where(game, search.where, schema)
            return True
        return False

    return [*filter(fits, ready)]


class Span(NamedTuple):
    """Minimum, maximum and step of a column."""

    low: int
    high: int
    step: int

    def values(self, most: int) -> Ints:
        """Return at most `most` evenly spaced values from the minimum to the maximum."""
        steps = (self.high - self.low) // self.step + 1
        return np.arange(self.low, self.high + 1, self.step * math.ceil(steps / most))


def column_spans(table: Table) -> dict[str, Span]:
    """Return the span of each numeric column, from some thousand rows of the table."""
    game, found = table.game, dict[str, Span]()
    drawn = list(table.draw(DRAWN, 0))
    if not drawn:
        return {}
    columns = game.state_columns(np.concatenate(drawn))
    for each in game.fields:
        for name in () if each.is_text else each.columns:
            values = columns[name]
            found[name] = Span(int(values.min()), int(values.max()), each.unit)
    return found


_known: WeakKeyDictionary[StoredTable, TableInfo] = WeakKeyDictionary()
"""The facts of open tables."""


def info(listed: TableSummary, table: StoredTable) -> TableInfo:
    """Return the facts of a table, with those of the list."""
    if table not in _known:
        _known[table] = _info(listed, table)
    return replace(_known[table], summary=replace(listed, error_bound=table.error))


def _info(listed: TableSummary, table: StoredTable) -> TableInfo:
    game, spans = table.game, column_spans(table)
    charts, known, follow = game.get(Charts), known_starts(table), game.get(Follow)
    return TableInfo(
        summary=listed, players=game.players, payoff_name=game.payoff_name,
        payoff_range=game.known_range,
        fields=[field_info(game, of) for of in game.fields],
        start=next(beginnings(table, known), None),
        examples=[Example(about, state, state) for about, state in _instructive(table, known)],
        charts=[] if charts is None else list(charts.kinds),
        axes=[
            ColumnInfo(name, label(name), low, high, step)
            for name, (low, high, step) in spans.items() if high > low
        ],
        searches=searches(table),
        sentence=None if follow is None else follow.words[0][0],
        agents=opponents(game),
        option_help={
            name: of.description for name, (_, of) in options_of(game.board).items()
            if of.description
        },
        outcome_note=game.own(Drawing).note,
        board_file={"name": game.board.name, **canonical(game.board)},
    )  # fmt: skip


def opponents(game: Game) -> list[str]:
    """Return the agents that the board supports and that are fast enough for a request."""
    return [*agents_on(game, AGENT_SECONDS)]


Starts = list[tuple[float, dict[str, str]]]
"""States in which plays begin, with their probabilities."""


def known_starts(table: Table) -> Starts:
    """Return the game's starts that the table answers, with their probabilities, most likely first.
    If there is only one start, a short search is allowed."""
    starts = table.game.starts()
    if len(starts) == 1:
        said = typed(table.game.describe(starts[0][1]))
        try:
            moves(table, said, SEARCH_STATES)
            return [(1.0, said)]
        except LuckbaseError:
            return []
    if not starts:
        return []
    states = np.array([state for _, state in starts])
    known = table.lookup_or_backup(states)[1] & ~expand(table.game, states).terminal
    return [
        (chance, typed(table.game.describe(state)))
        for (chance, state), there in zip(starts, known, strict=True) if there
    ]  # fmt: skip


def beginnings(table: StoredTable, known: Starts | None = None) -> Iterator[dict[str, str]]:
    """Yield states with which a page can begin: the game's most likely start in the table, roots of
    searches, and other examples. known: the table's starts, if computed."""
    known = known_starts(table) if known is None else known
    yield from (state for _, state in chain(known[:1], _instructive(table, known)))


def beginnings_of(table: StoredTable) -> list[dict[str, str]]:
    """Return all states of `beginnings`."""
    return [*beginnings(table)]


def _instructive(table: StoredTable, known: Starts) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield some states with answers, and some drawn, with descriptions. known: the starts."""
    if len(table.game.starts()) > 1:
        starts = known[:5]
        for chance, said in starts:
            own = {name: text for name, text in said.items()
                   if any(text != other[name] for _, other in starts)}  # fmt: skip
            yield f"a start, one in {1 / chance:,.0f}: {fields(own)}", said
    yield from (("where a search began", typed(root)) for root in islice(held_roots(table), 3))
    yield from islice(_questions(table), 8)
    for seed in range(2):
        if (state := drawn_state(table, seed)) is not None:
            yield ("a random state", "another random state")[seed], state


def _questions(table: Table) -> Iterator[tuple[str, dict[str, str]]]:
    layout = table.game.get(FullTable)
    for said, state in layout.opening_questions() if layout is not None else ():
        at = table.game.parse(state).reshape(1, -1)
        if table.lookup_or_backup(at)[1][0]:
            yield said, typed(state)


def drawn_state(table: Table, seed: int) -> dict[str, str] | None:
    """Return a state drawn from the table; None if no solved state was found."""
    for states in table.draw(TRIES, seed):
        return typed(table.game.describe(states[seed % len(states)]))
    return None


def need_state(table: StoredTable, words: Mapping[str, str], seed: int | None) -> Mapping[str, str]:
    """Return the requested state: the given fields, one drawn by a seed, or the page's first.
    Raises MissingTableError for an empty table."""
    if words:
        return words
    found = drawn_state(table, seed) if seed is not None else next(beginnings(table), None)
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
