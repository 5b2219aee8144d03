"""The facts of a table: its entry in the list, and the details for its page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from luckbase.cluster.answers.charts import column_spans
from luckbase.cluster.answers.examples import (
    Example,
    examples,
    searches,
)
from luckbase.cluster.answers.find import Status
from luckbase.cluster.info import FieldInfo, agents_on, field_info
from luckbase.solver.board import registry
from luckbase.solver.board.model import canonical, options_of
from luckbase.solver.charts import Kind, Search
from luckbase.solver.game.capabilities import Charts, Drawing, Follow
from luckbase.solver.game.game import Game
from luckbase.solver.result import Flat, Result

if TYPE_CHECKING:
    from luckbase.cluster.answers.table import Table

AGENT_SECONDS = 2.0
"""Maximum seconds an opponent may need before its first move."""


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
