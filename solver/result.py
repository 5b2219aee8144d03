"""Results as JSON: the fields of a class are the names in its JSON.

A result is a frozen dataclass; `Result.as_json` returns its JSON values. If a value in JSON differs
from the one in Python, the type of its field names the conversion.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cache
from pathlib import Path
from types import UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np
from pydantic import Field, PlainSerializer
from pydantic.fields import ComputedFieldInfo, FieldInfo
from pydantic_core import to_jsonable_python

T = TypeVar("T")

_FLAT, _IF_ANY = "x-flat", "x-if-any"
_IN_PLACE = Field(json_schema_extra={_FLAT: True})

PythonOnly = Annotated[T, Field(exclude=True)]
"""A field that is not in the JSON."""
IfAny = Annotated[
    T | None, Field(exclude_if=lambda value: value is None, json_schema_extra={_IF_ANY: True})
]
"""A field that is left out of the JSON if it is None."""
OrNull = Annotated[T, PlainSerializer(lambda value: value or None, return_type=T | None)]
"""A field that is null in the JSON if it is empty or 0."""
AsText = Annotated[T, PlainSerializer(str, return_type=str)]
"""A field that is text in the JSON."""
Flat = Annotated[T, _IN_PLACE]
"""A field that the JSON replaces by its own fields."""
Rounded = Annotated[float, PlainSerializer(lambda value: round(value, 1), return_type=float)]
"""Seconds, in tenths."""
Number = int | float


def _numbers(values: Any) -> Any:
    """Return an array as lists, with None for numbers that are not finite."""
    array = np.asarray(values, np.float64)
    lists = array.astype(object)
    lists[~np.isfinite(array)] = None
    return lists.tolist()


def _lists(values: Any) -> Any:
    return None if values is None else values.tolist()


Array = Annotated[T, PlainSerializer(_numbers, return_type=list[float | None])]
"""An array of numbers, with null for gaps."""
Array2 = Annotated[T, PlainSerializer(_numbers, return_type=list[list[float | None]])]
"""A two-dimensional array of numbers, with null for gaps."""
WholeNumbers = Annotated[T, PlainSerializer(_lists, return_type=list[int])]
Flags2 = Annotated[T, PlainSerializer(_lists, return_type=list[list[bool]] | None)]


class Result:
    """The result of a query or a command.

    json_order: every name of the JSON in order, if it differs from the order of the fields.
    """

    __slots__ = ()
    json_order: ClassVar[tuple[str, ...]] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the result as JSON values."""
        of: Any = type(self)
        said: dict[str, Any] = {}
        for name, called, made, extra in _parts(of):
            value = getattr(self, name)
            value = value if value is None or made is None else made(value)
            if extra == _FLAT:
                said |= value or {}
            elif value is not None or extra != _IF_ANY:
                said[called] = value
        order = self.json_order
        return {name: said[name] for name in order if name in said} if order else said


@cache
def _parts(kind: Any) -> list[tuple[str, str, Callable[[Any], Any] | None, str]]:
    """Return the parts of a class's JSON: the attribute, its name in the JSON, a function to JSON
    values, and _FLAT, _IF_ANY or ""."""
    known: dict[str, Any] = {}  # the names that the type hints use
    for base in reversed(kind.__mro__):
        known |= vars(sys.modules[base.__module__])
    types, parts = get_type_hints(kind, known, include_extras=True), []
    hints = {field.name: types[field.name] for field in fields(kind)}
    aliases: dict[str, str | None] = {}
    for base in reversed(kind.__mro__):
        for name, of in vars(base).items():
            info = getattr(of, "decorator_info", None)
            if isinstance(info, ComputedFieldInfo):
                aliases[name] = info.alias
                getter: Any = info.wrapped_property.fget
                hints[name] = get_type_hints(getter, known, include_extras=True)["return"]
    for name, hint in hints.items():
        said = [m for m in getattr(hint, "__metadata__", ()) if isinstance(m, FieldInfo)]
        extra: set[str] = set().union(*(m.json_schema_extra or () for m in said))  # type: ignore[arg-type]
        called = next((m.serialization_alias for m in said if m.serialization_alias), None)
        if not any(m.exclude for m in said):
            part_of = next((each for each in (_FLAT, _IF_ANY) if each in extra), "")
            parts.append((name, called or aliases.get(name) or name, _made(hint), part_of))
    return parts


def _made(hint: Any) -> Callable[[Any], Any] | None:
    """Return a function to JSON values for values of a type other than None; None if not needed."""
    said = [m for m in getattr(hint, "__metadata__", ()) if isinstance(m, PlainSerializer)]
    if said:
        first: Any = said[0].func
        then = _made(said[0].return_type)
        if then is None:
            return first
        return lambda value: made if type(made := first(value)) is dict else then(made)
    if get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    kind, inner = get_origin(hint) or hint, [part for part in get_args(hint) if part is not ...]
    if kind in ATOMS or kind is Literal:
        return None
    if isinstance(kind, type) and issubclass(kind, Result):
        return kind.as_json
    makers = [_made(part) for part in inner if part is not type(None)]
    if kind in (Union, UnionType) and (len(makers) == 1 or not any(makers)):
        return makers[0]
    if kind in (list, tuple) and makers and len({*makers}) == 1:
        (each_made,) = {*makers}
        return list if each_made is None else lambda value: [*map(each_made, value)]
    return _plain


ATOMS = (str, int, float, bool, type(None))


def _plain(value: Any) -> Any:
    kind = type(value)
    if value is None or kind in ATOMS:
        return value
    if kind is list:
        return [*map(_plain, value)]
    if kind is dict:
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, Result):
        return value.as_json()
    if isinstance(value, Mapping):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [*map(_plain, value)]
    return str(value) if isinstance(value, Path) else to_jsonable_python(value)
