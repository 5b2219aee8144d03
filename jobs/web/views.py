"""The addresses of the API: what each takes and gives, how it is answered, and their description,
OpenAPI 3.1, which is made of the classes of their parameters and answers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from luckbase.jobs.web import play, states, tables
from luckbase.jobs.web.http import ApiRequest, QueryParams, TableParams
from luckbase.jobs.web.states import Rows
from luckbase.solver.result import IfAny, Result, adapter

if TYPE_CHECKING:
    from luckbase.cluster.table.table import StoredTable
    from luckbase.jobs.web.pool import TablePool

Answer = Callable[["TablePool", ApiRequest[Any]], Result | Rows]


@dataclass(frozen=True)
class View:
    """An address of the API. summary, about: what it gives, in words."""

    path: str
    summary: str
    params: type[QueryParams]
    answer: Answer
    gives: Any = None
    """The class of the answer; None where it is rows."""
    about: str = ""
    method: str = "GET"
    takes: Any = None
    """The class of the body; None where that is rows."""
    max_bytes: int = 0
    """How large a body it takes; 0: none."""
    check_body: Callable[[str, bytes], object] = lambda kind, first: None
    """Raises what is wrong with a body by its type and its first bytes."""
    long: bool = False
    """Whether an answer may take long."""


def of_table(question: Callable[[StoredTable, ApiRequest[Any]], Result | Rows]) -> Answer:
    """What answers by one table."""

    def answer(pool: TablePool, request: ApiRequest[TableParams]) -> Result | Rows:
        id, strict = request.path["id"], request.params.strict
        return pool.ask(id, lambda table: question(table, request), strict=strict)

    return answer


def ids_in(path: Mapping[str, str], pairs: Mapping[str, str]) -> list[str]:
    """The ids of the tables that are asked: in the path, or the two that are compared."""
    if "id" in path:
        return [path["id"]]
    return [id for id in map(pairs.get, ("first", "second")) if id]


AT = "/api/tables/{id}"
FIELDS = "The fields of a state, as /api/tables/{id} lists them, are parameters too."
VIEWS = (
    View(
        "/api/tables", "The tables that are served.", QueryParams,
        tables.list_view, tables.TableList,
    ),
    View(
        AT, "One table, its game and its fields.", TableParams,
        tables.table_view, tables.TableInfo,
    ),
    View(
        f"{AT}/state", "A state: payoffs, actions, outcomes.", states.DrawnParams,
        of_table(states.state_view), states.StateView, FIELDS,
    ),
    View(
        f"{AT}/mainline", "The best action and the likeliest outcome, to the end.",
        states.LineParams, of_table(states.main_line), states.MainLine,
        f"{FIELDS} Of equally likely outcomes the middle one for who acts.",
    ),
    View(
        f"{AT}/chart/{{name}}", "A chart of the game; fields choose its lines.",
        states.ChartParams, of_table(states.chart_view), states.ChartView, FIELDS,
    ),
    View(
        f"{AT}/grid", "Payoffs, margins or best actions over two columns.", states.GridParams,
        of_table(states.grid_view), states.GridView,
        f"{FIELDS} COLUMN_from, COLUMN_to, COLUMN_step bound an axis; at most 40,000 cells.",
    ),
    View(
        f"{AT}/batch", "Many states at once, as luckbase query --batch.", states.BatchParams,
        of_table(states.batch_view),
        about="JSON lines, CSV or Parquet in, the same out, with payoff_1, …; at most 1,000,000 "
        "rows.",
        method="POST", max_bytes=states.MAX_BYTES, check_body=states.format_of, long=True,
    ),
    View(
        f"{AT}/play", "A person's game, played from its seed and moves.", TableParams,
        of_table(play.game_view), play.GameView,
        method="POST", takes=play.GameRequest, max_bytes=play.MAX_BYTES,
    ),
    View(
        "/api/compare", "One state in two tables.", states.CompareParams,
        states.compare_view, states.CompareView, FIELDS,
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
    if view.params.model_config.get("extra") == "allow":
        fields = {"type": "object", "additionalProperties": {"type": "string"}}
        named.append({"name": "fields", "in": "query", "style": "form", "explode": True,
                      "description": FIELDS, "schema": fields})  # fmt: skip
    return named


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}
