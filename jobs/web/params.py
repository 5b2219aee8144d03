"""What a request says, read and checked; a sentence where it is wrong.

The fields of a class of `QueryParams` are the parameters of an address, and their description
(`jobs.web.openapi`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, ClassVar, Literal, Self, get_args
from zlib import crc32

from pydantic import BaseModel, BeforeValidator, Field, ValidationInfo

from luckbase.solver.errors import OptionError, StateError
from luckbase.solver.sentences import nearest, shorten

_WHOLE = re.compile(r"[+-]?[0-9]{1,15}")
WORD_LENGTH = 400
"""Letters that a parameter may have; any state is shorter."""


def read_pairs(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The parameters of an address, each once. Raises OptionError."""
    found: dict[str, str] = {}
    for name, value in pairs:
        if name in found:
            raise OptionError(f"{shorten(name, 30)}: is given twice")
        if len(value) > WORD_LENGTH:
            raise OptionError(f"{shorten(name, 30)}: has more than {WORD_LENGTH} letters")
        found[name] = value
    return found


def _truth(text: str, info: ValidationInfo) -> bool:
    if text not in get_args(_Truth):
        raise OptionError(f"{info.field_name}: '{shorten(text, 30)}' is neither 1 nor 0")
    return text in ("1", "true")


_Truth = Literal["0", "1", "false", "true"]
Truth = Annotated[bool, BeforeValidator(_truth, json_schema_input_type=_Truth)]
"""Whether a parameter says 1 or true."""


def from_to(low: int, high: int) -> BeforeValidator:
    """A whole number from low to high."""

    def read(text: str, info: ValidationInfo) -> int:
        return whole(str(info.field_name), text, low, high)

    return BeforeValidator(read)


class QueryParams(BaseModel):
    """The parameters of an address. takes_state: whether the rest are fields of a state, `state`;
    else they are refused."""

    takes_state: ClassVar[bool] = False
    _state: dict[str, str] = {}

    @property
    def state(self) -> dict[str, str]:
        """The fields of a state in words."""
        return self._state

    @classmethod
    def read(cls, pairs: Mapping[str, str]) -> Self:
        """The parameters as they were typed. Raises OptionError."""
        fields = cls.model_fields
        for name, field in fields.items():
            if field.is_required() and not pairs.get(name):
                raise OptionError(f"{name}: is missing; write {name}={field.title}")
        made = cls.model_validate({name: pairs[name] for name in pairs if name in fields})
        made._state = {name: text for name, text in pairs.items() if name not in fields}
        if not cls.takes_state:
            for name in made._state:
                raise OptionError(
                    f"unknown parameter '{shorten(name, 30)}'; {nearest(name, fields)}"
                )
        return made


class TableParams(QueryParams):
    """Of one table."""

    strict: Truth = Field(
        False, description="1: refuse a table whose board has changed since (409)", examples=["0"]
    )


class StateParams(TableParams):
    """Of a state, by its fields or drawn."""

    takes_state: ClassVar[bool] = True
    random: str = Field(
        "", description="with no fields: a state drawn by this seed", examples=["7"]
    )

    @property
    def seed(self) -> int | None:
        """What ``random=TEXT`` draws by; None where it is not there."""
        return crc32(self.random.encode()) if "random" in self.model_fields_set else None


def whole(name: str, text: object, low: int, high: int) -> int:
    """A whole number from low to high. Raises OptionError."""
    said = str(text)
    if isinstance(text, bool) or not _WHOLE.fullmatch(said) or not low <= int(said) <= high:
        raise OptionError(
            f"{name}: '{shorten(said, 30)}' is not a whole number from {low} to {high}"
        )
    return int(said)


def state_in(text: object) -> dict[str, str]:
    """The fields of an address, ``scores=0,500,0&earned=1,0,0``, or of a mapping. Raises
    StateError."""
    if isinstance(text, Mapping):
        return {str(name): _plain(name, value) for name, value in text.items() if value is not None}
    found: dict[str, str] = {}
    for word in re.split(r"[&\s]+", str(text).strip().removeprefix("?")):
        name, equals, value = word.partition("=")
        if not word:
            continue
        if not equals:
            raise StateError(f"'{shorten(word, 30)}' is not FIELD=VALUE, as in turn=0")
        if name in found:
            raise StateError(f"{shorten(name, 30)} is given twice")
        found[name] = value.replace("%2C", ",")
    return found


def _plain(name: object, value: Any) -> str:
    if isinstance(value, list):
        return ",".join(map(str, value))
    if not isinstance(value, str | int):
        raise StateError(f"{name}: {shorten(str(value), 30)} is neither a number nor text")
    return str(value)
