"""What the server answers: each view is a function from a request to a result, which `pages` shows
and `server` sends as JSON. Nothing here needs a server.

**A game**: the server stores no state. Every request contains a random seed and all moves so far,
and the game is replayed from its beginning (`cluster.play.game`).

**Training**: a decision that comes up in play, of a given difficulty
(`cluster.answers.examples`), with the cost of every action and the reasons.
"""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np

from luckbase.cluster.answers.charts import cell_state, for_page, grid
from luckbase.cluster.answers.examples import (
    DIFFICULTIES,
    Example,
    FoundRows,
    decisions,
    difficulty_of,
    first_rows,
    margins,
)
from luckbase.cluster.answers.grids import grid_notes
from luckbase.cluster.answers.moves import Moves, address, moves
from luckbase.cluster.answers.why import why
from luckbase.cluster.play.game import (
    Decision,
    Offer,
    Play,
    PlayOptions,
    new_seed,
    play_on,
)
from luckbase.jobs.web.pool import (
    Context,
    LongAnswer,
    OpenTable,
    TableInfo,
    TableSummary,
    ViewRequest,
    opponents,
)
from luckbase.solver import errors, sentences
from luckbase.solver.charts import Chart, Heatmap, Listing
from luckbase.solver.compiled import compiling_seconds
from luckbase.solver.errors import LuckbaseError, MissingTableError, OptionError
from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.capabilities import (
    Agents,
    Follow,
    agents_of,
    scene_at,
    scene_of,
    simplify,
    state_of,
)
from luckbase.solver.game.fields import typed
from luckbase.solver.game.game import Game
from luckbase.solver.result import Flat, IfAny, PythonOnly, Result
from luckbase.solver.scene import Scene
from luckbase.solver.sentences import nearest

if TYPE_CHECKING:
    from luckbase.cluster.answers.table import Table

SEARCH_STATES = 200_000
"""Maximum number of states of a search above a table for a page: half a second."""
SEARCH_SECONDS = 10.0
"""Seconds, without compiling, after which this search finds no more levels of states: rules can be
slow."""
SECONDS = 2.0
"""Maximum seconds of a search for rows; a page shows the rows found until then."""
MAX_SHOWN = 200
WIDTHS = {"desktop": 560, "phone": 300}
"""Widths of a chart's panel, for desktops and phones."""
UNNAMED = re.compile("a |another |the start|below ")
"""Begins the labels of examples that are not questions."""
MAX_MOVES = 2_000
MAX_SEED = 2**32 - 1


# --- tables --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TableList(Result):
    """The tables that are served."""

    tables: list[TableSummary]


def list_view(request: ViewRequest) -> TableList:
    """Return the tables that are served."""
    return TableList(list(map(request.pool.summary, request.pool.listed())))


def table_view(request: ViewRequest) -> TableInfo:
    """Return the facts of the table in the path."""
    return request.info()


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
    deadline = time.monotonic() - compiling_seconds() + SEARCH_SECONDS

    def on_level(states: int, levels: int) -> None:
        if time.monotonic() - compiling_seconds() > deadline:
            raise errors.SearchLimitError

    try:
        return moves(table, state, SEARCH_STATES if long else 0, on_level)
    except MissingTableError:
        if long:
            raise
        raise LongAnswer from None
    except errors.SearchLimitError:
        raise errors.SearchLimitError(
            f"{sentences.fields(state)} is above this table, and a search down to it meets more "
            f"than {SEARCH_STATES:,} states or takes {SEARCH_SECONDS:.0f} s; this command searches "
            f"further: luckbase query {shlex.quote(str(table.where))} {sentences.quoted(state)}"
        ) from None


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


# --- a game --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class GameView(Result):
    """A game so far."""

    seed: int
    seat: int
    seats: list[str]
    log: list[str]
    lines: int  # number of lines in the log; a page may show fewer
    state: dict[str, Any]
    query: str
    value: list[float] | None
    actions: list[str] | None
    """Your next choices; null if the game is over or an earlier line is shown."""
    hints: list[Offer] | None  # the payoff of each choice, if requested
    over: bool
    decisions: list[Decision]
    scene: PythonOnly[Scene]


def game_view(request: ViewRequest) -> GameView:
    """Replay a game. Return the log, the next question, and the cost of each decision.

    seed: of the dice; a new one by default. seat: your player number, from 1; by default the first
    player to decide. against: one agent, or one for each other player, separated by commas. move:
    your answers so far. hints: add the payoff of each action. at: show the game after so many lines
    of its log. Fields of a state are the beginning.

    Raises OptionError for an impossible move.
    """
    table, query = request.table, request.query
    game, moves = table.game, query.get("move", [])
    if len(moves) > MAX_MOVES:
        raise OptionError(f"move: {len(moves):,} are too many; expected at most {MAX_MOVES:,}")
    hints = query.integer("hints", 0, 1, 0)
    how = PlayOptions(seed=query.integer("seed", 0, MAX_SEED, new_seed()))
    if "seat" in query:
        how["seat"] = query.integer("seat", 1, game.players, 1)
    if "against" in query:
        _check_opponents(table, query["against"])
        how["against"] = query["against"]
    first = request.opened.facts.start
    try:
        play = play_on(table, query.state or None, **how)
    except LuckbaseError:  # it has no start, or the table none of them
        if query.state or first is None:
            raise
        play = play_on(table, first, **how)
    _check_priced(table, play)
    log, asks = play.replay(moves)
    shown = query.integer("at", 0, len(log), len(log))
    last, lines = shown == len(log), [line for line, _ in log[:shown]]
    state = play.state if last else log[shown - 1][1] if shown else play.root
    asks = asks and last
    seen = play.game.describe(play.game.own(Agents).as_seen_by(play.person, state))
    bare = simplify(game, state.reshape(1, -1))
    value, priced = table.backup(bare)
    return GameView(
        seed=how["seed"], seat=play.person + 1, seats=[seat.name for seat in play.seats],
        log=lines, lines=len(log), state=seen, query=address(game.describe(bare[0])),
        value=value[0].tolist() if priced[0] else None, actions=play.names if asks else None,
        hints=play.offers() if asks and hints else None,
        over=play.over and last, decisions=play.decisions, scene=scene_of(play.game, typed(seen)),
    )  # fmt: skip


def _check_opponents(table: Table, against: str) -> None:
    """Raise OptionError for an agent of the game that is not available on this board."""
    for name in map(str.strip, against.split(",")):
        offered = opponents(table.game)
        if name in agents_of(table.game) and name not in offered:
            hint = nearest(name, offered)
            raise OptionError(f"against: '{name}' cannot play on this board here; {hint}")


def _check_priced(table: Table, play: Play) -> None:
    """Raise MissingTableError if the table lacks payoffs of moves at the game's first state."""
    states = np.concatenate([play.state.reshape(1, -1), play.edges.children])
    priced = table.backup(simplify(table.game, states))[1]
    if not priced[1:].all():
        raise MissingTableError(
            f"state: {sentences.fields(play.shown)} cannot be played from: the table does not have "
            "the payoffs of what can happen there"
        )


# --- a decision to train with --------------------------------------------------------------------


@dataclass(frozen=True)
class TrainView(Result):
    """A decision."""

    state: Flat[StateView]
    seat: int
    choices: list[Offer]
    """The possible choices in the game's order, with their costs to the player `seat` (from 1)."""
    margin: float  # cost of the cheapest mistake
    difficulty: str
    """Of this decision: easy if a mistake costs more than 5 points, medium 1 to 5, hard less."""
    seed: int


def train_view(request: ViewRequest) -> TrainView:
    """Return a decision of a difficulty, the same for the same seed; or the decision at a given
    state. Raises MissingTableError if there is none."""
    table, query, game = request.table, request.query, request.table.game
    seed = query.integer("seed", 0, MAX_SEED, new_seed())
    difficulty = query.get("difficulty", "any")
    if difficulty not in DIFFICULTIES:
        hint = nearest(difficulty, DIFFICULTIES)
        raise OptionError(f"difficulty: '{difficulty[:30]}' is unknown; {hint}")
    if query.state:
        state = game.parse(query.state)
        view = _decision(table, state, float(margins(table, state.reshape(1, -1))[0]), seed)
        if view is None:
            raise MissingTableError(f"{sentences.fields(query.state)}: nobody has a choice there")
        return view
    starts = [state for _, state in game.starts()]
    examples = [game.parse(each.state) for each in request.opened.facts.examples]
    beginnings = [np.array(each) for each in (starts, examples) if each]
    found = (
        _decision(table, *each, seed) for each in decisions(table, beginnings, difficulty, seed)
    )
    return next(view for view in found if view is not None)


def _decision(table: Table, state: Ints, margin: float, seed: int) -> TrainView | None:
    """Return the decision at a state; None if there is no choice or the result of an action is
    unknown."""
    if np.isnan(margin):
        return None
    view = state_answer(table, typed(table.game.describe(state)))
    answer = view.moves.answer
    if not view.playable or len(answer.actions) < 2:
        return None
    seat = answer.to_act or 1
    choices = play_on(table, answer.state, seat=seat).offers()
    return TrainView(view, seat, choices, margin, difficulty_of(table.game, margin), seed)


# --- what only pages show ------------------------------------------------------------------------


def draw(view_request: ViewRequest, context: Context) -> Context:
    """Return a chart's pictures, and the state that its cells share."""
    chart = None if context["result"] is None else context["result"].chart
    if chart is None or isinstance(chart, Listing):
        return {"svgs": {}, "cells": None}
    cells = cell_state(view_request.table.game, chart) if isinstance(chart, Heatmap) else None
    svgs = {name: for_page(chart, f"chart-{name}", width) for name, width in WIDTHS.items()}
    return {"svgs": svgs, "cells": cells}


def others(view_request: ViewRequest, context: Context) -> Context:
    """Return the tables to compare with, and the facts of the second table."""
    context["rivals"] = [each.as_json() for each in rivals(view_request)]
    if context["view"] is None:
        return context
    opened = view_request.open(context["view"]["second_id"])
    second = view_request.info(opened).as_json()
    return {"second": second}


def home(view_request: ViewRequest, context: Context) -> Context:
    """Return the tables by game, and a question from the largest."""
    listed = context["view"]["tables"]
    games: dict[str, list[dict[str, Any]]] = {}
    for each in listed:
        same = [other["options"] for other in listed if other["title"] == each["title"]]
        own = each["options"].items()
        each["apart"] = {n: v for n, v in own if any(other.get(n) != v for other in same)}
        games.setdefault(each["game"], []).append(each)
    usable = [each for each in listed if each["state"] == "complete" and each["states"]]
    context_found: Context = {"question": None}
    for each in sorted(usable, key=lambda each: -each["states"]):
        with suppress(LuckbaseError):
            largest = view_request.open(each["id"])
            finest = view_request.open(view_request.pool.finest(largest))
            context_found = question(view_request, finest, largest.facts.examples)
            break
    return {**context_found, "games": games, "running": any(each["running"] for each in listed)}


def question(view_request: ViewRequest, opened: OpenTable, examples: Sequence[Example]) -> Context:
    """Return a decision of a board in words, with its drawing, and the board's other questions."""
    examples = sorted(examples, key=lambda each: bool(UNNAMED.match(each.label)))
    for each in examples:
        with suppress(LuckbaseError):
            table = opened.table.for_state(each.state)
            view = state_answer(table, each.state)
            answer = view.moves.answer
            if answer.to_act and len(answer.actions) > 1 and not answer.toss_up:
                more = [other.as_json() for other in examples
                          if other is not each and not UNNAMED.match(other.label)]  # fmt: skip
                question = {"view": view.as_json(), "scene": view.scene, "others": more,
                            "result": view}  # fmt: skip
                return {"question": question, "info": view_request.info(opened).as_json()}
    return {"question": None}
