"""The addresses of the API: what each takes and gives, how it is answered, and their description,
OpenAPI 3.1, which is made of the classes of their parameters and answers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import Field, TypeAdapter

from luckbase.cluster.table.frames import GridSpec
from luckbase.cluster.table.table import StoredTable
from luckbase.jobs.web import play, states, tables
from luckbase.jobs.web.http import (
    QueryParams,
    StateParams,
    TableParams,
    Truth,
    encode,
    from_to,
)
from luckbase.jobs.web.pictures import ChartView, GridView, chart_view, grid_bounds, grid_view
from luckbase.jobs.web.pool import TablePool
from luckbase.solver.errors import LuckbaseError, StaleTableError
from luckbase.solver.result import IfAny, Result, adapter

JSON = "application/json"
LINE_STEPS = 200
"""Steps of a main line."""

P = TypeVar("P", bound=TableParams)


@dataclass(frozen=True)
class ApiRequest:
    """What is asked beside the parameters. path: what stands in the address; kind: the type of the
    body, as its sender names it."""

    path: Mapping[str, str]
    kind: str = ""
    body: bytes = b""


Answer = Callable[[TablePool, Any, ApiRequest], tuple[str, bytes]]
"""Gives, of the tables, the parameters and the rest of a request, the type of what is sent, and its
bytes."""


@dataclass(frozen=True)
class View:
    """An address of the API.

    path; summary and about: what it gives, in words. params: its parameters. answer: what answers
    it. gives: the class of the answer, None where it is
    rows. takes: that of the body, None for rows. max_bytes: how large a body it takes (0: none);
    check_body: raises what is wrong with one by its type and its first bytes. long: whether an
    answer may take long.
    """

    path: str
    summary: str
    params: type[QueryParams]
    answer: Answer
    gives: Any = None
    about: str = ""
    method: str = "GET"
    takes: Any = None
    max_bytes: int = 0
    check_body: Callable[[str, bytes], object] = lambda kind, first: None
    long: bool = False


def ids_in(path: Mapping[str, str], pairs: Mapping[str, str]) -> list[str]:
    """The ids of the tables that are asked: in the path, or the two that are compared."""
    if "id" in path:
        return [path["id"]]
    return [id for id in map(pairs.get, ("first", "second")) if id]


def list_view(pool: TablePool, params: QueryParams, request: ApiRequest) -> tuple[str, bytes]:
    """``GET /api/tables``."""
    found = tables.TableList([tables.summary(pool, each) for each in pool.listed()])
    return JSON, encode(found.as_json())


def ask(pool: TablePool, id: str, strict: bool, question: Callable[[StoredTable], Any]) -> Any:
    """What a question of an open table gives; strict: a stale one is refused."""
    entry = pool.find(id)
    try:
        with pool.open(id) as table:
            try:
                if strict and table.origin.stale:
                    why = "; ".join(table.origin.stale[:3])
                    raise StaleTableError(f"{id}: this table is stale: {why}")
                return question(table)
            except LuckbaseError as error:
                error.fields = table.game.fields.names  # type: ignore[attr-defined]
                raise
    except LuckbaseError as error:
        error.args = (pool.without_paths(str(error), entry),)
        raise


def table_view(pool: TablePool, params: TableParams, request: ApiRequest) -> tuple[str, bytes]:
    """``GET /api/tables/{id}``."""
    id = request.path["id"]
    listed = tables.summary(pool, pool.find(id))
    return JSON, ask(
        pool, id, params.strict, lambda table: encode(tables.info(listed, table).as_json())
    )


def of_table(question: Callable[[StoredTable, P, ApiRequest], Result]) -> Answer:
    """What answers by one table as JSON."""

    def answer(pool: TablePool, params: P, request: ApiRequest) -> tuple[str, bytes]:
        def encoded(table: StoredTable) -> bytes:
            return encode(question(table, params, request).as_json())

        return JSON, ask(pool, request.path["id"], params.strict, encoded)

    return answer


# --- one table ---------------------------------------------------------------------------------


class DrawnParams(StateParams):
    """Of a state that is drawn."""

    drawing: Truth = Field(True, description="0: without the drawing", examples=["0"])


def _state(table: StoredTable, params: DrawnParams, request: ApiRequest) -> states.StateView:
    state = tables.need_state(table, params.state, params.seed)
    return states.state_view(table, state, params.drawing)


class LineParams(StateParams):
    """Of a main line."""

    most: Annotated[int, Field(ge=1, le=LINE_STEPS), from_to(1, LINE_STEPS)] = Field(
        20, description=f"steps, 1 to {LINE_STEPS}", examples=[20]
    )


def _line(table: StoredTable, params: LineParams, request: ApiRequest) -> states.MainLine:
    state = tables.need_state(table, params.state, params.seed)
    return states.main_line(table, state, params.most)


class ChartParams(TableParams):
    """Of a chart."""

    takes_state: ClassVar[bool] = True
    reachable: Truth = Field(False, description="1: without what no play comes to", examples=["1"])


class GridParams(StateParams):
    """Of a grid."""

    x: str = Field(title="COLUMN", description="a column", examples=["mine"])
    y: str = Field(title="COLUMN", description="another", examples=["yours"])
    colour: str = Field(
        "value_1", description="value_1, …: a player's payoff; margin; best", examples=["value_1"]
    )


def _chart(table: StoredTable, params: ChartParams, request: ApiRequest) -> ChartView:
    name = request.path["name"]
    return chart_view(name, table.chart(name, params.state, reachable=params.reachable))


def _grid(table: StoredTable, params: GridParams, request: ApiRequest) -> GridView:
    spans, rest = grid_bounds(table, params.x, params.y, params.state)
    state = tables.need_state(table, rest, params.seed)
    return grid_view(table, GridSpec(params.x, params.y, state, params.colour or "value_1", spans))


# --- many states, two tables, a game -----------------------------------------------------------


class BatchParams(TableParams):
    """Of a batch."""

    best: Truth = Field(False, description="1: the best action and toss-ups too", examples=["1"])


def batch_view(pool: TablePool, params: BatchParams, request: ApiRequest) -> tuple[str, bytes]:
    """``POST /api/tables/{id}/batch``."""
    format_ = states.format_of(request.kind, request.body)
    return states.SENT_TYPES[format_], ask(
        pool, request.path["id"], params.strict,
        lambda table: states.rows_of(table, request.body, format_, params.best),
    )  # fmt: skip


def _play(table: StoredTable, params: TableParams, request: ApiRequest) -> play.GameView:
    return play.played(table, play.read_game(request.body, table.game.players))


class CompareParams(DrawnParams):
    """Of two tables."""

    first: str = Field(title="ID", description="a table's id", examples=["ID"])
    second: str = Field(title="ID", description="another's", examples=["ID"])


def compare_view(pool: TablePool, params: CompareParams, request: ApiRequest) -> tuple[str, bytes]:
    """``GET /api/compare``: the answers of two tables to one state, the second less the first."""
    state: Mapping[str, str] = params.state
    found = []
    for id in (params.first, params.second):
        # One after the other: to hold one while waiting for another could wait for ever.

        def question(table: StoredTable) -> states.StateView:
            nonlocal state
            state = tables.need_state(table, state, params.seed)
            return states.state_view(table, state, params.drawing)

        found.append(ask(pool, id, params.strict, question))
    return JSON, encode(states.compared(*found).as_json())


def smallest(pool: TablePool) -> list[str]:
    """The ids of the smallest table of each game."""
    found: dict[str, tuple[int, str]] = {}
    for each in pool.listed():
        status = pool.status(each)
        if status.states:
            this = status.states, each.id
            found[each.names[0]] = min(this, found.get(each.names[0], this))
    return [id for _, id in found.values()]


def warm_up(pool: TablePool, id: str) -> None:
    """Ask a table something, so that what is compiled of its game is loaded; what is opened for it
    is closed again."""
    params, request = DrawnParams.read({}), ApiRequest({})
    with suppress(LuckbaseError):
        ask(pool, id, False, lambda table: _state(table, params, request).as_json())
    pool.forget(id)


AT = "/api/tables/{id}"
FIELDS = "The fields of a state, as /api/tables/{id} lists them, are parameters too."
VIEWS = (
    View("/api/tables", "The tables that are served.", QueryParams, list_view, tables.TableList),
    View(AT, "One table, its game and its fields.", TableParams, table_view, tables.TableInfo),
    View(
        f"{AT}/state", "A state: payoffs, actions, outcomes.", DrawnParams,
        of_table(_state), states.StateView, FIELDS,
    ),
    View(
        f"{AT}/mainline", "The best action and the likeliest outcome, to the end.", LineParams,
        of_table(_line), states.MainLine,
        f"{FIELDS} Of equally likely outcomes the middle one for who acts.",
    ),
    View(
        f"{AT}/chart/{{name}}", "A chart of the game; fields choose its lines.", ChartParams,
        of_table(_chart), ChartView, FIELDS,
    ),
    View(
        f"{AT}/grid", "Payoffs, margins or best actions over two columns.", GridParams,
        of_table(_grid), GridView,
        f"{FIELDS} COLUMN_from, COLUMN_to, COLUMN_step bound an axis; at most 40,000 cells.",
    ),
    View(
        f"{AT}/batch", "Many states at once, as luckbase query --batch.", BatchParams, batch_view,
        about="JSON lines, CSV or Parquet in, the same out, with payoff_1, …; at most 1,000,000 "
        "rows.",
        method="POST", max_bytes=states.MAX_BYTES, check_body=states.format_of, long=True,
    ),
    View(
        f"{AT}/play", "A person's game, played from its seed and moves.", TableParams,
        of_table(_play), play.GameView,
        method="POST", takes=play.GameRequest, max_bytes=play.MAX_BYTES,
    ),
    View(
        "/api/compare", "One state in two tables.", CompareParams, compare_view,
        states.CompareView, FIELDS,
    ),
)  # fmt: skip


# --- the description ---------------------------------------------------------------------------

REFERENCE = "#/components/schemas/{model}"
ABOUT = (
    "The exact payoff of every state of a game. Nothing is written. Payoffs are lists over players "
    "in turn order; players count from 1; errors are sentences."
)
WRONG = {
    "400": "The request is wrong; the sentence says what would be right.",
    "404": "There is no such table, or it does not reach the state.",
    "409": "The table is damaged, or stale and strict=1.",
    "503": "Too much is asked at once; ask again in a moment.",
    "500": "A mistake of luckbase's.",
}
WRONG_BODY = {
    "403": "A page of another site sends it.",
    "408": "Its body has not come in time.",
}


@dataclass(frozen=True)
class Refusal(Result):
    """Why a request is not answered. field: of the state, if the sentence is of one."""

    error: str
    field: IfAny[str] = None


@cache
def described() -> dict[str, Any]:
    """The OpenAPI document."""
    gives = [*(view.gives for view in VIEWS if view.gives), Refusal]
    takes = [view.takes for view in VIEWS if view.takes]
    of_kind, defined = TypeAdapter.json_schemas(
        [(kind, "serialization", adapter(kind)) for kind in gives]
        + [(kind, "validation", adapter(kind)) for kind in takes],
        ref_template=REFERENCE,
    )
    schemas = {kind: schema for (kind, _), schema in of_kind.items()}
    paths = {view.path: {view.method.lower(): _operation(view, schemas)} for view in VIEWS}
    parts, used = defined["$defs"], set[str]()
    new = _references(paths)
    while new:
        used |= new
        new = _references([parts[name] for name in new]) - used
    return {
        "openapi": "3.1.0",
        "info": {"title": "luckbase", "version": "1", "description": ABOUT},
        "paths": paths,
        "components": {"schemas": {name: parts[name] for name in sorted(used)}},
    }


def _references(form: object) -> set[str]:
    """The names of the schemas that a part of the document refers to."""
    return set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(form)))


def _operation(view: View, schemas: dict[Any, Any]) -> dict[str, Any]:
    """The operation of an address. schemas: of answers and bodies, by their classes."""
    rows = {kind: {"schema": {"type": "string"}} for kind in states.SENT_TYPES.values()}
    wrong = _json(schemas[Refusal])
    answers = {
        "200": {
            "description": "The answer.",
            "content": _json(schemas[view.gives]) if view.gives else rows,
        }
    }
    refusals = WRONG | WRONG_BODY if view.max_bytes else WRONG
    answers |= {code: {"description": says, "content": wrong} for code, says in refusals.items()}
    operation = {
        "summary": view.summary, "description": view.about, "parameters": _parameters(view),
        "responses": answers,
    }  # fmt: skip
    if view.takes:
        operation["requestBody"] = {"content": _json(schemas[view.takes])}
    elif view.max_bytes:
        operation["requestBody"] = {"required": True, "content": rows}
    return operation


def _parameters(view: View) -> list[dict[str, Any]]:
    named: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in ("id", "name") if f"{{{name}}}" in view.path
    ]  # fmt: skip
    schema = view.params.model_json_schema()
    for name, own in schema.get("properties", {}).items():
        required = name in schema.get("required", ())
        (example,) = own.pop("examples")
        own = {key: value for key, value in own.items() if key not in ("title", "default")}
        named.append(
            {"name": name, "in": "query", "required": required,
             "description": own.pop("description"), "schema": own, "example": example}
        )  # fmt: skip
    if view.params.takes_state:
        fields = {"type": "object", "additionalProperties": {"type": "string"}}
        named.append({"name": "fields", "in": "query", "style": "form", "explode": True,
                      "description": FIELDS, "schema": fields})  # fmt: skip
    return named


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}
