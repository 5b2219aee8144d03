"""The views of a table: what each address of one takes and gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np

from luckbase.cluster import words
from luckbase.cluster.table.grid import Axis, Grid, Wish, column_spans, grid
from luckbase.cluster.table.moves import Moves, Outcome, address, moves, state_text
from luckbase.cluster.table.stored import StoredTable
from luckbase.jobs.web import about, playing, rows
from luckbase.jobs.web.asked import Asked
from luckbase.jobs.web.pictures import drawing
from luckbase.jobs.web.replies import as_json
from luckbase.jobs.web.shelf import Shelf
from luckbase.solver.charts.model import Chart, Curves, Listing
from luckbase.solver.errors import LuckbaseError, SearchLimitError, StaleTableError, TableError

JSON = "application/json"
MOST_STEPS = 200
"""Steps of a main line."""
ROUNDING = 1e-12
"""Chances that differ by less are equal."""

Reply = tuple[str, bytes]
"""The type of what is sent, and its bytes."""
Question = Callable[[StoredTable, Asked], Any]


@dataclass(frozen=True)
class View:
    """An address: its path, what answers it, how large a body it takes (0: none), what is wrong
    with a body by its type and its first bytes, and whether an answer may take long."""

    path: str
    answer: Callable[[Shelf, Mapping[str, str], Asked, str, bytes], Reply]
    method: str = "GET"
    most_bytes: int = 0
    check_body: Callable[[str, bytes], object] = lambda kind, first: None
    long: bool = False


def listing(shelf: Shelf) -> dict[str, Any]:
    """``GET /api/tables``."""
    return {"tables": [about.summary(shelf, each) for each in shelf.listed()]}


def ask(shelf: Shelf, id: str, asked: Asked, question: Callable[[StoredTable], Any]) -> Any:
    """What a question of an open table gives; ``strict=1`` refuses a stale one."""
    strict = asked.truth("strict")
    shelved = shelf.find(id)
    try:
        with shelf.open(id) as table:
            try:
                if strict and table.origin.stale:
                    why = "; ".join(table.origin.stale[:3])
                    raise StaleTableError(f"{id}: this table is stale: {why}")
                return question(table)
            except LuckbaseError as error:
                error.fields = table.game.fields.names  # type: ignore[attr-defined]
                raise
    except LuckbaseError as error:
        error.args = (shelf.said(str(error), shelved),)
        raise


def of_table(question: Callable[[StoredTable, Asked], Any]) -> Callable[..., Reply]:
    """A view that asks one table, by parameters alone, and says JSON."""

    def answer(
        shelf: Shelf, path: Mapping[str, str], asked: Asked, kind: str, body: bytes
    ) -> Reply:
        said = ask(shelf, path["id"], asked, lambda table: as_json(question(table, asked)))
        return JSON, said

    return answer


# --- one table, one state ----------------------------------------------------------------------


def table_view(
    shelf: Shelf, path: Mapping[str, str], asked: Asked, kind: str, body: bytes
) -> Reply:
    """``GET /api/tables/{id}``."""
    summary = about.summary(shelf, shelf.find(path["id"]))

    def question(table: StoredTable) -> bytes:
        asked.nothing_else(("strict",))
        return as_json(summary | about.described(table))

    return JSON, ask(shelf, path["id"], asked, question)


def state_view(table: StoredTable, asked: Asked) -> dict[str, Any]:
    """``GET /api/tables/{id}/state``."""
    drawn, seed = asked.truth("drawing", True), seed_in(asked)
    return state_said(table, about.need_state(table, asked.state(), seed), drawn)


def seed_in(asked: Asked) -> int | None:
    """What ``random=TEXT`` draws by; None where it is not there."""
    text = asked.take("random")
    return None if text is None else crc32(text.encode())


def state_said(table: StoredTable, said: Mapping[str, str], drawn: bool) -> dict[str, Any]:
    """The answer to a state with what can happen there, and its drawing."""
    there = _moves(table, said)
    why = playing.why_not(there)
    return there.as_json() | {
        "playable": why is None, "why_not_playable": why,
        "drawing": drawing(table.game, said) if drawn else None,
    }  # fmt: skip


def _moves(table: StoredTable, said: Mapping[str, str]) -> Moves:
    """What can happen at a state; one above the table is searched, within a page's patience."""
    try:
        return moves(table, said, about.MOST_SEARCHED)
    except SearchLimitError:
        raise SearchLimitError(
            f"{words.fields(said)} is above this table, and a search down to it meets more than "
            f"{about.MOST_SEARCHED:,} states; this one goes on further: "
            f"luckbase query {table.path} {words.fields(said)}"
        ) from None


def main_line(table: StoredTable, asked: Asked) -> dict[str, Any]:
    """``GET /api/tables/{id}/mainline``: the best action and the likeliest outcome, again and
    again; nowhere twice."""
    most, seed = asked.whole("most", 20, 1, MOST_STEPS), seed_in(asked)
    state = about.need_state(table, asked.state(), seed)
    line: list[dict[str, Any]] = []
    met: set[str] = set()
    why = None
    while len(line) < most:
        try:
            there = _moves(table, state)
        except (TableError, SearchLimitError) as error:
            if not line:
                raise
            why = str(error)
            break
        met.add(address(there.answer.state))
        step, outcome = _next(there, met)
        line.append(step)
        if outcome is None:
            break
        if address(outcome.state) in met:
            why = f"comes back to {words.fields(outcome.state)}"
            break
        state = words.typed(outcome.state)
    return {"line": line, "stopped": why}


def _next(there: Moves, met: Set[str]) -> tuple[dict[str, Any], Outcome | None]:
    """A step of a main line, and where it leads; None at the end."""
    said, answer = there.answer.state, there.answer
    best = next((move for move in there.moves if move.best), None)
    outcomes = there.outcomes or (best.outcomes if best is not None else ())
    likeliest = _middle(outcomes, (answer.to_act or 1) - 1, met)
    step = {
        **state_text(said).as_json(), "to_act": answer.to_act,
        "action": None if best is None or there.outcomes else best.action.name,
        "outcome": None if likeliest is None else likeliest.name,
        "chance": None if likeliest is None else likeliest.chance,
        "value": answer.value, "over": there.over,
    }  # fmt: skip
    return step, likeliest


def _middle(outcomes: Sequence[Outcome], player: int, met: Set[str]) -> Outcome | None:
    """The likeliest outcome. Of equally likely ones, where there is one that was not met, the
    middle one of those by what they are worth to a player (from 0), so that a main line shows
    neither luck nor bad luck."""
    top = max((each.chance for each in outcomes), default=0.0)
    likely = [each for each in outcomes if each.chance > top - ROUNDING]
    fresh = [each for each in likely if address(each.state) not in met] or likely

    def worth(each: Outcome) -> float:
        return 0.0 if each.value is None else each.value[player] + each.reward[player]

    ordered = sorted(fresh, key=worth)
    return ordered[(len(ordered) - 1) // 2] if ordered else None


# --- pictures ----------------------------------------------------------------------------------


def chart_view(
    shelf: Shelf, path: Mapping[str, str], asked: Asked, kind: str, body: bytes
) -> Reply:
    """``GET /api/tables/{id}/chart/{name}``."""

    def question(table: StoredTable) -> bytes:
        reachable = asked.truth("reachable")
        made = table.chart(path["name"], asked.state(), reachable=reachable)
        return as_json(_chart_said(path["name"], made))

    return JSON, ask(shelf, path["id"], asked, question)


def _chart_said(name: str, made: Chart) -> dict[str, Any]:
    if isinstance(made, Listing):
        return {
            "name": name, "kind": "listing", "note": made.note, "lines": made.lines,
            "columns": made.columns, "rows": made.rows,
        }  # fmt: skip
    if isinstance(made, Curves):
        return {
            "name": name, "kind": "curves", "title": made.title, "about": made.about,
            "x_name": made.x_name, "x_label": made.x_label, "y_label": made.y_label,
            "xs": made.xs.tolist(), "limits": made.limits,
            "curves": [{"label": one.label, "name": one.name, "values": numbers(one.values)}
                       for one in made.curves],
            "bands": [{"first": band.first, "last": band.last, "text": band.text}
                      for band in made.bands],
            "words": [{"text": each.text, "x": each.x, "y": each.y} for each in made.words],
        }  # fmt: skip
    return {
        "name": name, "kind": "heatmap", "title": made.title, "about": made.about,
        "names": made.names, "rest": made.rest, "xs": made.xs.tolist(), "ys": made.ys.tolist(),
        "values": numbers(made.values), "x_label": made.x_label, "y_label": made.y_label,
        "colour_label": made.colour_label, "limits": made.limits, "levels": made.levels,
        "blank": None if made.blank is None else made.blank.tolist(),
        "lines": [
            {"label": line.label, "xs": numbers(line.xs), "ys": numbers(line.ys)}
            for line in made.lines
        ],
        "words": [{"text": each.text, "x": each.x, "y": each.y} for each in made.words],
    }  # fmt: skip


def numbers(values: Any) -> Any:
    """An array of numbers as lists, None where there is none."""
    found = np.asarray(values, np.float64)
    return _blank(found, ~np.isfinite(found))


def _blank(values: Any, nothing: Any) -> Any:
    """An array as lists, None where there is nothing."""
    said = values.astype(object)
    said[nothing] = None
    return said.tolist()


def grid_view(table: StoredTable, asked: Asked) -> dict[str, Any]:
    """``GET /api/tables/{id}/grid``: cells[i][j] is at the i-th value of x and the j-th of y."""
    x, y = asked.need("x", "COLUMN"), asked.need("y", "COLUMN")
    colour = asked.take("colour") or "value_1"
    held = column_spans(table)
    spans = {}
    for name in (x, y):
        low, high, step = held.get(name, (0, 0, 1))
        spans[name] = (
            asked.whole(f"{name}_from", low, -(10**9), 10**9),
            asked.whole(f"{name}_to", high, -(10**9), 10**9),
            asked.whole(f"{name}_step", step, 1, 10**9),
        )
    spans = {name: span for name, span in spans.items() if name in held}
    seed = seed_in(asked)
    base = about.need_state(table, asked.state(), seed)
    return _grid_said(table, colour, grid(table, Wish(x, y, base, colour, spans)))


def _grid_said(table: StoredTable, colour: str, made: Grid) -> dict[str, Any]:
    full = table.game.fields.describe(table.game.fields.numbers(made.full)[0])
    return {
        "x": _axis_said(made.x), "y": _axis_said(made.y), "colour": colour,
        "cells": numbers(made.values),
        "best": _blank(made.best, made.best < 0),
        "to_act": made.to_act.tolist(), "actions": made.actions, "queries": address(full),
        "state": full, "payoff_name": table.game.payoff_name,
    }  # fmt: skip


def _axis_said(axis: Axis) -> dict[str, Any]:
    return {"name": axis.name, "label": about.label(axis.name), "values": axis.values.tolist()}


# --- more than one state, more than one table --------------------------------------------------


def batch_view(
    shelf: Shelf, path: Mapping[str, str], asked: Asked, kind: str, body: bytes
) -> Reply:
    """``POST /api/tables/{id}/batch``."""
    format_, best = rows.kind_of(kind, body), asked.truth("best")

    def question(table: StoredTable) -> bytes:
        asked.nothing_else(("best", "strict"))
        return rows.answered(table, body, format_, best)

    return rows.SENT[format_], ask(shelf, path["id"], asked, question)


def play_view(shelf: Shelf, path: Mapping[str, str], asked: Asked, kind: str, body: bytes) -> Reply:
    """``POST /api/tables/{id}/play``."""

    def question(table: StoredTable) -> bytes:
        asked.nothing_else(("strict",))
        game = playing.read_game(body, table.game.players)
        return as_json(playing.played(table, game))

    return JSON, ask(shelf, path["id"], asked, question)


def compare_view(
    shelf: Shelf, path: Mapping[str, str], asked: Asked, kind: str, body: bytes
) -> Reply:
    """``GET /api/compare``: the answers of two tables to one state, the second less the first."""
    ids = asked.need("first", "ID"), asked.need("second", "ID")
    strict, drawn, seed = asked.truth("strict"), asked.truth("drawing", True), seed_in(asked)
    state: Mapping[str, str] = asked.state()
    found = []
    for id in ids:  # one after the other: to hold one while waiting for another could wait for ever

        def question(table: StoredTable) -> dict[str, Any]:
            nonlocal state
            state = about.need_state(table, state, seed)
            return state_said(table, state, drawn)

        found.append(ask(shelf, id, Asked([("strict", "1")] * strict), question))
    return JSON, as_json(_compared(*found))


def _compared(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    values = {each["action"]: each["value"] for each in first["actions"]}
    return {
        "first": first, "second": second, "change": _less(second["value"], first["value"]),
        "differences": [
            {"action": each["action"], "change": _less(each["value"], values[each["action"]])}
            for each in second["actions"] if each["action"] in values
        ],
        "same_best": first["best"] == second["best"],
    }  # fmt: skip


def _less(one: list[float], other: list[float]) -> list[float] | None:
    """The differences; None between games of different numbers of players."""
    if len(one) != len(other):
        return None
    return [a - b for a, b in zip(one, other, strict=True)]


def ids_in(path: Mapping[str, str], asked: Asked) -> list[str]:
    """The ids of the tables that are asked: in the path, or the two that are compared."""
    if "id" in path:
        return [path["id"]]
    return [id for id in (asked.left.get("first"), asked.left.get("second")) if id]


def smallest(shelf: Shelf) -> list[str]:
    """The ids of the smallest table of each game."""
    found: dict[str, tuple[int, str]] = {}
    for each in shelf.listed():
        status = shelf.status(each)
        if status.states:
            this = status.states, each.id
            found[each.names[0]] = min(this, found.get(each.names[0], this))
    return [id for _, id in found.values()]


def warm_up(shelf: Shelf, id: str) -> None:
    """Ask a table something, so that what is compiled of its game is loaded; what is opened for it
    is closed again."""
    with suppress(LuckbaseError):
        ask(shelf, id, Asked([]), lambda table: as_json(state_view(table, Asked([]))))
    shelf.forget(id)


AT = "/api/tables/{id}"
VIEWS = (
    View(AT, table_view),
    View(f"{AT}/state", of_table(state_view)),
    View(f"{AT}/mainline", of_table(main_line)),
    View(f"{AT}/chart/{{name}}", chart_view),
    View(f"{AT}/grid", of_table(grid_view)),
    View(f"{AT}/batch", batch_view, "POST", rows.MOST_BYTES, rows.kind_of, long=True),
    View(f"{AT}/play", play_view, "POST", playing.MOST_BYTES),
    View("/api/compare", compare_view),
)
