"""The answers about states: of one, along a line of play, in two tables; charts, and grids over two
columns."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field

from luckbase.cluster.info import label
from luckbase.cluster.table.moves import Addressed, Moves, Outcome, address, moves
from luckbase.cluster.table.why import why
from luckbase.jobs.web import tables
from luckbase.jobs.web.http import ApiRequest, StateParams, TableParams, Truth, whole
from luckbase.jobs.web.pictures import svg
from luckbase.solver import errors, sentences
from luckbase.solver.charts import Curves, Heatmap, Listing
from luckbase.solver.errors import LuckbaseError, OptionError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.capabilities import scene_at
from luckbase.solver.game.fields import typed
from luckbase.solver.game.game import Game
from luckbase.solver.result import Array2, Flat, Result, WholeNumbers, WholeNumbers2
from luckbase.solver.search.expand import expand
from luckbase.solver.sentences import nearest, shorten

if TYPE_CHECKING:
    from luckbase.cluster.table.table import StoredTable, Table
    from luckbase.jobs.web.pool import TablePool

ROUNDING = 1e-12
"""Chances that differ by less are equal."""
LINE_STEPS = 200
"""Steps of a main line."""
MAX_CELLS = 40_000
GRID_PIECE = 4_000
"""States that are looked at together: some 60 children each."""


def step(game: Game) -> float:
    """What margins are counted in: a hundredth of a win, a tenth of a point, or of the most that
    many points or dollars can be a thousandth."""
    low, high = game.known_range or (0.0, 100.0)
    return 0.01 * (high - low) if high - low <= 2 else max(0.1, 0.001 * high)


@dataclass(frozen=True)
class StateView(Result):
    """The answer to a state, as luckbase query --json says it, and what can happen there. to_act:
    from 1; null: nobody, or both. actions: best first. outcomes: where chance moves, or both choose
    at once. drawing: SVG. held: the table has a row of it. why: sentences on what is best.
    defaults: fields that were not said, and what they are taken for. playable: a game can begin
    there; why_not_playable: a sentence if not."""

    moves: Flat[Moves]
    defaults: dict[str, Any]
    why: list[str]
    playable: bool
    why_not_playable: str | None
    drawing: str | None


Drawn = Literal["none", "state", "whole"]
_DRAWN: dict[str, Drawn] = {"0": "none", "1": "whole", "state": "state",
                            "false": "none", "true": "whole"}  # fmt: skip


def _drawn(text: str) -> Drawn:
    if text not in _DRAWN:
        raise OptionError(f"drawing: '{shorten(text, 30)}' is not 1, 0 or state")
    return _DRAWN[text]


class DrawnParams(StateParams):
    """Of a state that is drawn."""

    drawing: Annotated[Drawn, BeforeValidator(_drawn)] = "whole"
    """0: without the drawing; state: without the table's `backdrop`, which every drawing shares and
    which goes behind the drawing's <desc>."""


def state_view(table: StoredTable, request: ApiRequest[DrawnParams]) -> StateView:
    """Return the answer to a state with what can happen there, and its drawing."""
    state = tables.need_state(table, request.params.state, request.params.seed)
    return state_answer(table, state, request.params.drawing)


def warm_up(pool: TablePool, id: str) -> None:
    """Ask a table something, so that what is compiled of its game is loaded; what is opened for it
    is closed again."""
    request = ApiRequest(DrawnParams.read(()))
    with suppress(LuckbaseError):
        pool.ask(id, lambda table: state_view(table, request).as_json())
    pool.forget(id)


def state_answer(table: StoredTable, state: Mapping[str, str], drawn: Drawn = "whole") -> StateView:
    """Return the answer to a state with what can happen there; drawn: how much of its drawing."""
    there, fields = _moves(table, state), table.game.fields
    picture = None
    if drawn != "none":
        picture = svg(scene_at(table.game, fields.read(state)), drawn == "whole")
    reasons, why_not = list(map(str, why(table, there))), tables.why_not(there)
    return StateView(there, fields.left_out(state), reasons, why_not is None, why_not, picture)


def _moves(table: StoredTable, state: Mapping[str, str]) -> Moves:
    """What can happen at a state; one above the table is searched, within a page's patience."""
    try:
        return moves(table, state, tables.SEARCH_STATES)
    except errors.SearchLimitError:
        raise errors.SearchLimitError(
            f"{sentences.fields(state)} is above this table, and a search down to it meets more "
            f"than {tables.SEARCH_STATES:,} states; this one goes on further: "
            f"luckbase query {shlex.quote(str(table.path))} {sentences.fields(state)}"
        ) from None


@dataclass(frozen=True)
class Step(Result):
    """A step of a main line: the best action and the likeliest outcome."""

    state: Addressed
    to_act: int | None
    action: str | None
    outcome: str | None
    chance: float | None
    value: tuple[float, ...]
    over: bool


@dataclass(frozen=True)
class MainLine(Result):
    """A main line; stopped: why it does not go on: the table knows no more, or it comes back to
    where it was."""

    line: list[Step]
    stopped: str | None


class LineParams(StateParams):
    """Of a main line."""

    most: Annotated[int, BeforeValidator(lambda text: whole("most", text, 1, LINE_STEPS))] = 20
    """Steps, 1 to `LINE_STEPS`."""


def main_line(table: StoredTable, request: ApiRequest[LineParams]) -> MainLine:
    """The best action and the likeliest outcome, again and again, so many times at most; nowhere
    twice."""
    state = tables.need_state(table, request.params.state, request.params.seed)
    line: list[Step] = []
    met: set[str] = set()
    while len(line) < request.params.most:
        try:
            there = _moves(table, state)
        except (errors.TableError, errors.SearchLimitError) as error:
            if not line:
                raise
            return MainLine(line, str(error))
        met.add(address(there.answer.state))
        answer, best = there.answer, next((move for move in there.moves if move.best), None)
        action = None if best is None or there.outcomes else best.action.name
        outcomes = there.outcomes or (best.outcomes if best is not None else ())
        then = _likeliest(outcomes, (answer.to_act or 1) - 1, met)
        happens, chance = (None, None) if then is None else (then.name, then.chance)
        line.append(
            Step(answer.state, answer.to_act, action, happens, chance, answer.value, there.over)
        )
        if then is None:
            break
        if address(then.state) in met:
            return MainLine(line, f"comes back to {sentences.fields(then.state)}")
        state = typed(then.state)
    return MainLine(line, None)


def _likeliest(outcomes: Sequence[Outcome], player: int, met: Set[str]) -> Outcome | None:
    """The likeliest outcome. Of equally likely ones, where there is one that was not met, the
    middle one of those by what they are worth to a player (from 0), so that a main line shows
    neither luck nor bad luck."""
    top = max((each.chance for each in outcomes), default=0.0)
    likely = [each for each in outcomes if each.chance > top - ROUNDING]
    fresh = [each for each in likely if address(each.state) not in met] or likely

    def payoff(each: Outcome) -> float:
        return 0.0 if each.value is None else each.value[player] + each.reward[player]

    ordered = sorted(fresh, key=payoff)
    return ordered[(len(ordered) - 1) // 2] if ordered else None


# --- charts, grids -------------------------------------------------------------------------------


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
    """Of a chart."""


def chart_view(table: StoredTable, request: ApiRequest[ChartParams]) -> ChartView:
    """A chart of the game."""
    name, params = request.path["name"], request.params
    made = table.chart(name, params.state)
    if isinstance(made, Listing):
        return ListingView(name, "listing", made)
    if isinstance(made, Curves):
        return CurvesView(name, "curves", made)
    return HeatmapView(name, "heatmap", made)


@dataclass(frozen=True)
class AxisView(Result):
    """A column over which a grid goes, with its values."""

    name: str
    label: str
    values: WholeNumbers[Ints]


@dataclass(frozen=True)
class GridView(Result):
    """A table over two columns: cells[i][j] at the i-th value of x and the j-th of y, null where
    there is no such number. best: into actions. queries, state: all other fields, in full."""

    x: AxisView
    y: AxisView
    colour: str
    cells: Array2[Floats]
    best: list[list[int | None]]
    to_act: WholeNumbers2[NDArray[np.int8]]
    actions: tuple[str, ...]
    queries: str
    state: dict[str, Any]
    payoff_name: str


class GridParams(StateParams):
    """Of a grid."""

    x: str = Field(title="COLUMN")
    y: str = Field(title="COLUMN")
    colour: str = "value_1"
    """value_1, …: a player's payoff; margin; best."""


def grid_view(table: StoredTable, request: ApiRequest[GridParams]) -> GridView:
    """The grid over two columns; what bounds an axis, as ``NAME_from``, ``NAME_to``, ``NAME_step``,
    stands among the fields of the state. Raises OptionError, StateError."""
    params, known = request.params, tables.column_spans(table)
    rest, spans = dict(params.state), {}
    for name in (params.x, params.y):
        bounds = []
        for end, bound in zip(("from", "to", "step"), known.get(name, (0, 0, 1)), strict=True):
            low = 1 if end == "step" else -(10**9)
            said = rest.pop(f"{name}_{end}", None)
            bounds.append(bound if said is None else whole(f"{name}_{end}", said, low, 10**9))
        if name in known:
            spans[name] = (bounds[0], bounds[1], bounds[2])
    state = tables.need_state(table, rest, params.seed)
    colour = params.colour or "value_1"
    return grid(table, (params.x, params.y), state, colour, spans)


def grid(
    table: Table, columns: tuple[str, str], base: Mapping[str, str], colour: str,
    spans: Mapping[str, tuple[int, int, int]] = {},
) -> GridView:  # fmt: skip
    """The table over two columns, x and y.

    base: a state in words, for the other fields. colour: what the numbers are: value_1, … (a
    player's payoff), margin or best. spans: the least value, the greatest and the step of a column,
    where they are not those of the table. Raises OptionError for columns or colours that are none,
    and for more than `MAX_CELLS` cells; StateError for a base that is no state.
    """
    game, known = table.game, tables.column_spans(table) | dict(spans)
    x, y = (_axis(which, name, known) for which, name in zip("xy", columns, strict=True))
    if x.name == y.name:
        raise OptionError(f"y: {y.name} is the column of x too; take another one")
    shape = len(x.values), len(y.values)
    cells = shape[0] * shape[1]
    if cells > MAX_CELLS:
        raise OptionError(
            f"x and y: {shape[0]} by {shape[1]} are {cells:,} cells; expected at most "
            f"{MAX_CELLS:,}: take {x.name}_from, {x.name}_to, {x.name}_step closer"
        )
    colours = [*(f"value_{i + 1}" for i in range(game.players)), "margin", "best"]
    if colour not in colours:
        raise OptionError(f"colour: unknown colour '{colour[:30]}'; {nearest(colour, colours)}")
    fixed = game.fields.read(base)
    values = np.repeat(fixed[None], cells, axis=0)
    values[:, game.columns.index(x.name)] = np.repeat(x.values, shape[1])
    values[:, game.columns.index(y.name)] = np.tile(y.values, shape[0])
    numbers, best, to_act, actions = _cell_numbers(table, values, colour)
    state = game.fields.describe(game.fields.numbers(fixed)[0])
    return GridView(
        x=x, y=y, colour=colour, cells=numbers.reshape(shape),
        best=[[None if k < 0 else k for k in row] for row in best.reshape(shape).tolist()],
        to_act=to_act.reshape(shape), actions=actions, queries=address(state), state=state,
        payoff_name=game.payoff_name,
    )  # fmt: skip


def _axis(which: str, name: str, spans: Mapping[str, tuple[int, int, int]]) -> AxisView:
    if name not in spans:
        known = list(spans)
        raise OptionError(
            f"{which}: '{name[:30]}' is not a column of numbers of this table; "
            f"{nearest(name, known)}"
        )
    low, high, step = spans[name]
    if step < 1 or high < low or (high - low) // step >= MAX_CELLS:
        raise OptionError(f"{which}: {name} from {low} to {high} by {step} gives no values")
    return AxisView(name, label(name), np.arange(low, high + 1, step))


def _cell_numbers(
    table: Table, values: Ints, colour: str
) -> tuple[Floats, NDArray[np.int16], NDArray[np.int8], tuple[str, ...]]:
    """Of states as a person gives them, values (n, columns): the numbers (n,), the best actions
    (n,) by their names, and who decides (n,)."""
    game = table.game
    states, sound = game.known_states(values)
    places = np.flatnonzero(sound)
    numbers, best = np.full(len(values), np.nan), np.full(len(values), -1, np.int16)
    acts = np.zeros(len(values), np.int8)
    names: dict[str, int] = {}
    for start in range(0, len(states), GRID_PIECE):
        here, at = (each[start : start + GRID_PIECE] for each in (states, places))
        payoffs, there = table.lookup_or_backup(here)
        own = np.flatnonzero(table.owners(here) >= 0)
        if colour == "margin":
            numbers[at[own]] = table.margins_of(here[own])
        for x, name in zip(at[own].tolist(), table.stored_best(here[own]), strict=True):
            best[x] = -1 if name is None else names.setdefault(name, len(names))
        decided = best[at] >= 0
        acts[at] = np.where(decided, expand(game, here).actors + 1, 0)
        if colour == "best":
            numbers[at] = np.where(decided, best[at], np.nan)
        elif colour != "margin":
            player = int(colour.removeprefix("value_")) - 1
            numbers[at] = np.where(there, payoffs[:, player], np.nan)
    return numbers, best, acts, tuple(names)


# --- two tables --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Change(Result):
    """What an action is worth in the second table, less what it is in the first."""

    action: str
    change: list[float] | None


@dataclass(frozen=True)
class CompareView(Result):
    """Two answers to one state; change: the second's payoffs less the first's. moved: not both
    answer the state that was asked about; this is another, which both do."""

    first: StateView
    second: StateView
    change: list[float] | None
    differences: list[Change]
    same_best: bool
    moved: bool


class CompareParams(DrawnParams):
    """Of two tables."""

    first: str = Field(title="ID")
    second: str = Field(title="ID")
    shared: Truth = False
    """If not both answer the state: one that both do."""


def compare_view(pool: TablePool, request: ApiRequest[CompareParams]) -> CompareView:
    """The answers of two tables to one state, the second less the first."""
    params = request.params
    state: Mapping[str, str] = params.state
    if params.shared:
        state = _shared_state(pool, (params.first, params.second), state)
    moved = bool(params.state) and state is not params.state

    def question(table: StoredTable) -> StateView:
        nonlocal state
        state = tables.need_state(table, state, params.seed)
        return state_answer(table, state, params.drawing)

    # One after the other: to hold one while waiting for another could wait for ever.
    views = [pool.ask(id, question, strict=params.strict) for id in (params.first, params.second)]
    first, second = (view.moves for view in views)
    values = {move.action.name: move.action.value for move in first.moves}
    differences = [
        Change(move.action.name, _less(move.action.value, values[move.action.name]))
        for move in second.moves
        if move.action.name in values
    ]
    change = _less(second.answer.value, first.answer.value)
    same_best = first.answer.best == second.answer.best
    return CompareView(views[0], views[1], change, differences, same_best, moved)


def _shared_state(
    pool: TablePool, ids: tuple[str, str], state: Mapping[str, str]
) -> Mapping[str, str]:
    """The state if both tables answer it, else the first that both do of those where they begin and
    of their examples; the state where there is none."""

    def answered(table: StoredTable, states: Sequence[Mapping[str, str]]) -> list[bool]:
        found = []
        for each in states:
            try:
                found.append(not _moves(table, each).over)
            except LuckbaseError:
                found.append(False)
        return found

    begun = [pool.ask(id, lambda table: [*tables.beginnings(table)]) for id in ids]
    states = [*([state] if state else []), *begun[0], *begun[1]]
    both = [pool.ask(id, lambda table: answered(table, states)) for id in ids]
    return next((each for each, *sound in zip(states, *both, strict=True) if all(sound)), state)


def _less(second: Sequence[float], first: Sequence[float]) -> list[float] | None:
    """The differences; None between games of different numbers of players."""
    same = len(first) == len(second)
    return [b - a for a, b in zip(first, second, strict=True)] if same else None
