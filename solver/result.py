"""Results as JSON: the fields of a class are its JSON, and give its schema.

A result is a frozen dataclass; the type of a field says how it stands in JSON where that is not as
in Python. pydantic writes the JSON (`Result.as_json`), and the schema of it (`jobs.web.server`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, ClassVar, TypeVar, get_type_hints

import numpy as np
from pydantic import (
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    PlainSerializer,
    TypeAdapter,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, SchemaSerializer, core_schema

T = TypeVar("T")


class _AnyType:
    """pydantic need not know the type."""

    def __get_pydantic_core_schema__(self, kind: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.any_schema()


ANY_TYPE = _AnyType()

_FLAT, _IF_ANY = "x-flat", "x-if-any"
_IN_PLACE = Field(json_schema_extra={_FLAT: True})

PythonOnly = Annotated[T, ANY_TYPE, Field(exclude=True)]
"""A field that is not in the JSON."""
IfAny = Annotated[
    T | None, Field(exclude_if=lambda value: value is None, json_schema_extra={_IF_ANY: True})
]
"""A field that is left out of the JSON where it is None."""
OrNull = Annotated[T, PlainSerializer(lambda value: value or None, return_type=T | None)]
"""A field that is null in the JSON where it is empty or 0."""
AsText = Annotated[T, ANY_TYPE, PlainSerializer(str, return_type=str, when_used="unless-none")]
"""A field that is its text in the JSON."""
Flat = Annotated[T, _IN_PLACE]
"""A field whose own fields stand in the JSON in its place."""
Rounded = Annotated[float, PlainSerializer(lambda value: round(value, 1), return_type=float)]
"""Seconds, in tenths."""
Number = int | float


def _numbers(values: Any) -> Any:
    """An array as lists, None where there is no number."""
    array = np.asarray(values, np.float64)
    lists = array.astype(object)
    lists[~np.isfinite(array)] = None
    return lists.tolist()


def _lists(values: Any) -> Any:
    return None if values is None else values.tolist()


Array = Annotated[T, ANY_TYPE, PlainSerializer(_numbers, return_type=list[float | None])]
"""An array of numbers, null where there is none."""
Array2 = Annotated[T, ANY_TYPE, PlainSerializer(_numbers, return_type=list[list[float | None]])]
"""The same of two dimensions."""
WholeNumbers = Annotated[T, ANY_TYPE, PlainSerializer(_lists, return_type=list[int])]
WholeNumbers2 = Annotated[T, ANY_TYPE, PlainSerializer(_lists, return_type=list[list[int]])]
Flags2 = Annotated[T, ANY_TYPE, PlainSerializer(_lists, return_type=list[list[bool]] | None)]


class Result:
    """What a question or a command gives, and its JSON. json_order: every name of the JSON in its
    order, where that is not the fields'."""

    json_order: ClassVar[tuple[str, ...]] = ()

    __pydantic_config__ = ConfigDict(
        extra="forbid", serialize_by_alias=True, json_schema_serialization_defaults_required=True
    )

    def as_json(self) -> dict[str, Any]:
        """The result as JSON values."""
        kind: Any = type(self)
        return self._in_place(_writer(kind)(self, mode="json", warnings=False))

    @classmethod
    def _in_place(cls, said: dict[str, Any]) -> dict[str, Any]:
        """The JSON with what is flat in its place, in its order."""
        kind: Any = cls
        flat, order = _flat(kind), cls.json_order
        if len(flat) == 1 and not order and next(iter(said)) == flat[0]:
            # In one go: answers are many.
            return {**said.pop(flat[0]), **said}
        if flat:
            parts, said = said, {}
            for name, part in parts.items():
                if name in flat:
                    said.update(part)
                else:
                    said[name] = part
        return {name: said[name] for name in order if name in said} if order else said

    @classmethod
    def __get_pydantic_core_schema__(cls, kind: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema: Any = handler(kind)
        if _flat(kind) or cls.json_order:

            def serialize(value: Any, inner: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
                return cls._in_place(inner(value))

            schema["serialization"] = core_schema.wrap_serializer_function_ser_schema(serialize)
        return schema

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        made = handler(schema)
        whole = handler.resolve_ref_schema(made)
        whole["description"] = whole.get("description", "").replace("None", "null")
        own, required = whole["properties"], set(whole.get("required", ()))
        whole["properties"], whole["required"] = {}, []
        for name, said in own.items():
            if said.pop(_FLAT, False):
                inner = handler.resolve_ref_schema(said)
                whole["properties"] |= inner["properties"]
                whole["required"] += inner["required"]
                continue
            if said.pop(_IF_ANY, False):
                required.discard(name)
                (said,) = (one for one in said["anyOf"] if one != {"type": "null"})
            whole["properties"][name] = said
            whole["required"] += [name] * (name in required)
        whole["required"] = list(dict.fromkeys(whole["required"]))
        whole["properties"] |= {name: whole["properties"].pop(name) for name in cls.json_order}
        return made


@cache
def adapter(kind: Any) -> TypeAdapter[Any]:
    """What writes results of a class, and says their schema."""
    return TypeAdapter(kind)


@cache
def _flat(kind: Any) -> tuple[str, ...]:
    """The names of the fields of a class that are `Flat`."""
    hints = get_type_hints(kind, include_extras=True)
    return tuple(n for n, hint in hints.items() if _IN_PLACE in getattr(hint, "__metadata__", ()))


@cache
def _writer(kind: Any) -> Callable[..., dict[str, Any]]:
    """What writes a result's fields, its own flat ones not yet in their place: without a call back
    to Python, which takes as long as the rest."""
    schema: Any = adapter(kind).core_schema
    inner = schema.get("schema") if schema["type"] == "definitions" else None
    if inner is None:
        return SchemaSerializer(_bare(schema)).to_python
    return SchemaSerializer({**schema, "schema": _bare(inner)}).to_python


def _bare(schema: Any) -> Any:
    return {name: part for name, part in schema.items() if name != "serialization"}
