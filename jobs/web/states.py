"""Answers about states: one state, and one state in two tables."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import Field

from luckbase.cluster.answers.grids import grid_notes
from luckbase.cluster.answers.moves import Moves, moves
from luckbase.cluster.answers.why import why
from luckbase.jobs.web import tables
from luckbase.jobs.web.http import ApiRequest, LongAnswer, StateParams, TableParams, Truth
from luckbase.jobs.web.pictures import svg
from luckbase.solver import errors, sentences
from luckbase.solver.errors import LuckbaseError
from luckbase.solver.game.capabilities import scene_at, state_of
from luckbase.solver.game.fields import typed
from luckbase.solver.result import Flat, PythonOnly, Result
from luckbase.solver.scene import Scene

if TYPE_CHECKING:
    from luckbase.cluster.answers.table import StoredTable
    from luckbase.jobs.web.pool import TablePool


@dataclass(frozen=True)
class StateView(Result):
    """The answer to a state, as in luckbase query --json, and its moves.

    to_act: from 1; null for none or both.
    actions: best first.
    outcomes: for chance and simultaneous moves.
    defaults: omitted fields and their values.
    why: sentences about the best action.
    playable: True if a game can begin there.
    why_not_playable: the reason if not.
    drawing: SVG.
    grid: how far the board's grid moves the answer.
    scene: the subject of the drawing, if there is one.
    """

    moves: Flat[Moves]
    defaults: dict[str, Any]
    why: list[str]
    playable: bool
    why_not_playable: str | None
    drawing: str | None
    grid: str
    scene: PythonOnly[Scene | None]


class DrawnParams(StateParams):
    """The parameters of a state that is drawn."""

    drawing: Truth = True
    """0: omit the drawing."""
    sentence: str = ""
    """The state as a sentence, as in the first line of ``luckbase advise``."""


def state_view(table: StoredTable, request: ApiRequest[DrawnParams]) -> StateView:
    """Return the answer to a state, its moves and its drawing, from the finest table of the board
    that has it if this one does not. Raises StateError for a sentence that the game cannot read."""
    params = request.params
    state: Mapping[str, str] = params.state
    if params.sentence:
        on_grid = table.for_state(params.sentence).game
        state = typed(on_grid.describe(state_of(on_grid, params.sentence)))
    state = tables.need_state(table, state, params.seed)
    return state_answer(table.for_state(state), state, params.drawing, long=request.long)


def warm_up(pool: TablePool, id: str) -> None:
    """Query a table so that the compiled code of its game is loaded, then close it again."""
    request = ApiRequest(DrawnParams())
    with suppress(LuckbaseError):
        pool.ask(id, lambda table: state_view(table, request).as_json())
    pool.forget(id)


def state_answer(
    table: StoredTable, state: Mapping[str, str], drawing: bool = True, *, long: bool = True
) -> StateView:
    """Return the answer to a state, its moves, and its drawing if requested. long: search if the
    table does not have the state; otherwise raise LongAnswer."""
    there, fields = _moves(table, state, long), table.game.fields
    scene = scene_at(table.game, fields.read(state)) if drawing else None
    reasons, why_not = list(map(str, why(table, there))), tables.why_not(there)
    return StateView(
        there, fields.left_out(state), reasons, why_not is None, why_not,
        None if scene is None else svg(scene), grid_notes(table)(there.numbers), scene,
    )  # fmt: skip


def _moves(table: StoredTable, state: Mapping[str, str], long: bool) -> Moves:
    """Return the moves at a state, with a search above the table if a page can wait for it."""
    try:
        return moves(table, state, tables.SEARCH_STATES if long else 0)
    except errors.MissingTableError:
        if long:
            raise
        raise LongAnswer from None
    except errors.SearchLimitError:
        raise errors.SearchLimitError(
            f"{sentences.fields(state)} is above this table, and a search down to it meets more "
            f"than {tables.SEARCH_STATES:,} states; this command searches further: "
            f"luckbase query {shlex.quote(str(table.path))} {sentences.quoted(state)}"
        ) from None


# --- two tables --------------------------------------------------------------------------------


@dataclass(frozen=True)
class CompareView(Result):
    """Two answers to one state. change: the second's payoffs minus the first's; null if the numbers
    of players differ."""

    first: StateView
    second: StateView
    change: list[float] | None
    same_best: bool


class CompareParams(TableParams, extra="allow"):
    """The parameters of a comparison."""

    second: str = Field(title="ID")
    """The other table."""


def compare_view(pool: TablePool, request: ApiRequest[CompareParams]) -> CompareView:
    """Return the answers of two tables to a state; by default, the first example in both."""
    params, views = request.params, list[StateView]()
    ids = request.path["id"], params.second
    given = params.model_extra or {}
    states = [given] if given else pool.ask(ids[0], tables.beginnings_of)
    for k, state in enumerate(states):
        # One after another: holding one table while waiting for another could deadlock.
        def question(table: StoredTable, state: Mapping[str, str] = state) -> StateView:
            return state_answer(table, state, long=request.long)

        try:
            views = [pool.ask(id, question, strict=params.strict) for id in ids]
            break
        except LuckbaseError:
            if k == len(states) - 1:
                raise
    if not views:
        raise errors.MissingTableError(f"{ids[0]}: holds no state yet; solve it first")
    first, second = (view.moves.answer for view in views)
    same = len(first.value) == len(second.value)
    change = [b - a for a, b in zip(first.value, second.value, strict=True)] if same else None
    return CompareView(views[0], views[1], change, first.best == second.best)
