"""The description of the API, OpenAPI 3.1: from the views, their parameters and answers."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import TypeAdapter

from luckbase.jobs.web.states import SENT_TYPES
from luckbase.jobs.web.views import FIELDS, VIEWS, View
from luckbase.solver.result import IfAny, Result, adapter

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
    rows = {kind: {"schema": {"type": "string"}} for kind in SENT_TYPES.values()}
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
