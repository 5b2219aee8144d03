"""Answers about states: one state, and one state in two tables."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from luckbase.cluster.answers.grids import grid_notes
from luckbase.cluster.answers.moves import Moves, moves
from luckbase.cluster.answers.pictures import svg
from luckbase.cluster.answers.why import why
from luckbase.jobs.web import tables
from luckbase.jobs.web.http import LongAnswer, ViewRequest
from luckbase.solver import errors, sentences
from luckbase.solver.errors import LuckbaseError
from luckbase.solver.game.capabilities import Follow, scene_at, state_of
from luckbase.solver.game.fields import typed
from luckbase.solver.result import Flat, IfAny, PythonOnly, Result
from luckbase.solver.scene import Scene

if TYPE_CHECKING:
    from luckbase.cluster.answers.table import Table
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
    grid: how far the answer is from the board's own, if the table rounds scores.
    scene: the subject of the drawing, if there is one.
    """

    moves: Flat[Moves]
    defaults: dict[str, Any]
    why: list[str]
    playable: bool
    why_not_playable: str | None
    drawing: str | None
    grid: IfAny[str]
    scene: PythonOnly[Scene | None]


def state_view(request: ViewRequest) -> StateView:
    """Return the answer to a state, its moves and its drawing, from the finest table of the board
    that has it if this one does not. The state is given by its fields or as a sentence, is drawn by
    a seed, or is the page's first. Raises StateError."""
    query, table = request.query, request.table
    state: Mapping[str, str] = query.state
    if "sentence" in query:
        table.game.need(Follow)
        on_grid = table.for_state(query["sentence"]).game
        state = typed(on_grid.describe(state_of(on_grid, query["sentence"])))
    state = state or tables.need_state(request.opened, query.random_seed)
    drawing = query.flag("drawing", True)
    return state_answer(table.for_state(state), state, drawing, long=request.long)


def state_answer(
    table: Table, state: Mapping[str, str], drawing: bool = True, *, long: bool = True
) -> StateView:
    """Return the answer to a state, its moves, and its drawing if requested. long: search if the
    table does not have the state; otherwise raise LongAnswer."""
    there, fields = _moves(table, state, long), table.game.fields
    scene = scene_at(table.game, fields.read(state)) if drawing else None
    reasons, why_not = list(map(str, why(table, there))), tables.why_not(there)
    return StateView(
        there, fields.left_out(state), reasons, why_not is None, why_not,
        None if scene is None else svg(scene), grid_notes(table)(there.numbers) or None, scene,
    )  # fmt: skip


def _moves(table: Table, state: Mapping[str, str], long: bool) -> Moves:
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
    """Two answers to one state. change: the second's payoffs minus the first's; null if the numbers
    of players differ."""

    first: StateView
    second: StateView
    change: list[float] | None
    same_best: bool


def compare_view(request: ViewRequest) -> CompareView:
    """Return the answers of two tables to a state; by default, the first example in both."""
    second = request.open(request.query.need("second", "ID")).table
    examples = [each.state for each in request.opened.facts.examples]
    states = [request.query.state] if request.query.state else examples
    if not states:
        raise errors.MissingTableError(f"{request.path['id']}: holds no state yet; solve it first")
    for state in states:
        try:
            views = [state_answer(table, state, long=request.long)
                     for table in (request.table, second)]  # fmt: skip
            break
        except LuckbaseError:
            if state is states[-1]:
                raise
    one, two = (view.moves.answer for view in views)
    same = len(one.value) == len(two.value)
    change = [b - a for a, b in zip(one.value, two.value, strict=True)] if same else None
    return CompareView(views[0], views[1], change, one.best == two.best)
