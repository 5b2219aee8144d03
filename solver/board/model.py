"""Boards: their common parts, canonical form and hash.

A board is the data that may change from one night to the next: a TOML file under `boards/`, named
after the file (`solver.board.file` reads it). Each game defines its contents with a pydantic model,
a subclass of `Board`.

The canonical form is the board as sorted JSON with all defaults written out. It contains exactly
the things that can change payoffs or the rows of a table: not the title, comments, name or order of
keys. Boards with equal canonical forms are the same board; `board_hash` is its SHA-256.

The **rules identity** of a game on a board is a hash of the canonical board without the options of
reach (`Board.reach`), which only set how far a table goes, and of the version of the game's rules.
It does not depend on the file's name, the frontier or the roots of a search: tables with the same
identity have the same payoffs and grow together.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Annotated, Any, ClassVar, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, TypeAdapter, field_validator
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

Location = tuple[str | int, ...]  # the keys (text) and list positions (from 0) that lead to a value


class Section(BaseModel):
    """One table of a board file: frozen; unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def option(
    default: Any, low: float | None = None, high: float | None = None, help: str = ""
) -> Any:
    """Declare an option of a section.

    Its annotation gives the type: `int` from `low` to `high`, `float`, `bool`, `str`, or a
    `Literal` of texts. help: its effect, in a plain sentence with its unit.

    Raises TypeError for a default that no board file can contain.
    """
    if not isinstance(default, int | float | str | list | None):
        raise TypeError(f"option: {default!r:.60}; expected a number, text, true or false")
    strict = None if type(default) is str else True  # only text is accepted as text
    return Field(
        default, ge=low, le=high, strict=strict, description=help or None, validate_default=True
    )


@dataclass(frozen=True)
class Source:
    """Where a board was read: the file's absolute path, and the options that `--set` changed, or
    that pick one of the file's grids."""

    file: str
    settings: dict[str, str]


class Board(Section):
    """The base of every board. A game subclasses it with `game: Literal[...]` and its own sections.

    The sections `rules` and `solve` hold the options, which `--set name=value` can change. Boards
    with equal contents are equal, even from different files.
    """

    reach: ClassVar[frozenset[str]] = frozenset()
    """Options that set the reach of a table and change no payoff."""
    grid: ClassVar[tuple[str, ...]] = ()
    """Options that each [[grid]] of a board file sets: first the unit to which amounts are rounded,
    then the reach of that table. Empty if boards of the game have no grids."""

    game: str
    name: str  # the stem of the file; not a key in it
    title: str = option("")
    _source: Source | None = PrivateAttr(default=None)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash((type(self), *self.__dict__.values()))

    @property
    def source(self) -> Source | None:
        """The file that the board was read from; None if it was made another way."""
        return self._source

    def read_from(self, source: Source | None) -> Self:
        """Return the same board with its origin."""
        board = self.model_copy()
        board._source = source
        return board

    @field_validator("title")
    @classmethod
    def _title_can_be_printed(cls, title: str) -> str:
        if not title.isprintable():
            raise mistake(f"{title!a} has characters that are not printed; expected one line")
        return title

    @classmethod
    def options(cls) -> dict[str, Location]:
        """Return name -> location in the file for each option that `--set` can change."""
        places: dict[str, Location] = {}
        for section in ("rules", "solve"):
            fields = fields_of(cls, (section,))
            places |= {option: (section, option) for option in fields}
        return places

    @classmethod
    def place(cls, location: Location) -> str:
        """Return a location in words; for an option, its name."""
        if len(location) > 1 and location[0] in ("rules", "solve"):
            location = location[1:]
        words = [f"item {part + 1}" if isinstance(part, int) else part for part in location]
        return ", ".join(words)


def canonical(board: Board) -> dict[str, Any]:
    """Return the board as JSON values, for `board_from_canonical`: keys sorted, defaults written
    out, empty sections left out."""
    dumped = board.model_dump(mode="json", exclude={"name", "title"}, exclude_none=True)
    return {key: value for key, value in _sorted(dumped).items() if value != {}}


def board_hash(board: Board) -> str:
    """Return the SHA-256 of the canonical form as compact ASCII JSON, in 64 hexadecimal digits."""
    return _digest(canonical(board))


def _digest(form: Any) -> str:
    text = json.dumps(form, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def mistake(sentence: str, *location: str | int) -> PydanticCustomError:
    """Return an error for a model's validator to raise; location: of the fault, from the top of the
    file, by default the value that pydantic is validating."""
    return PydanticCustomError("board", "{sentence}", {"sentence": sentence, "at": location})


def fields_of(model: type[BaseModel], location: Location) -> dict[str, FieldInfo]:
    """Return the keys that the section at `location` may have; empty for an unknown section."""
    for part in location:
        field = model.model_fields.get(str(part))
        kind = field.annotation if field else None
        inner = [
            x for x in (kind, *get_args(kind)) if isinstance(x, type) and issubclass(x, BaseModel)
        ]
        if not inner:
            return {}
        model = inner[0]
    return model.model_fields


def in_order(key: str) -> tuple[int, str]:
    """Sort key: numbers as numbers ("2" before "10"), then names."""
    return (int(key), "") if re.fullmatch(r"[0-9]{1,9}", key) else (10**9, key)


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value, key=in_order)}
    return value


def rules_form(board: Board) -> dict[str, Any]:
    """Return the canonical form without the options of reach: everything that changes a payoff."""
    form = canonical(board)
    for option in type(board).reach:
        *sections, key = map(str, type(board).options()[option])
        inner = form
        for section in sections:
            inner = inner.get(section, {})
        inner.pop(key, None)
    return {key: value for key, value in form.items() if value != {}}


def identity_of(form: Mapping[str, Any], rules_version: int) -> str:
    """Return the rules identity of a `rules_form`, in 12 hexadecimal digits."""
    return _digest([form, rules_version])[:12]


def rules_identity(game: Any) -> str:
    """Return the rules identity of a `Game` on its board, in 12 hexadecimal digits."""
    return identity_of(rules_form(game.board), game.rules_version)


def changed_options(board: Board) -> dict[str, Any]:
    """Return the options by name that differ from their defaults, and always the unit of a grid.
    Options of reach are left out."""
    changed = {
        option: value for option, (value, field) in options_of(board).items()
        if option not in type(board).reach
        and (value != field.default or option in type(board).grid)
    }  # fmt: skip
    return dict(sorted(changed.items()))


def options_of(board: Board) -> dict[str, tuple[Any, FieldInfo]]:
    """Return the options by name: the value on this board, and the field of the model."""
    options = {}
    for option, location in type(board).options().items():
        *sections, key = map(str, location)
        inner: Any = reduce(getattr, sections, board)
        options[option] = getattr(inner, key), type(inner).model_fields[key]
    return options


def values_of(field: FieldInfo) -> list[str | bool | range]:
    """Return the values that an option accepts: texts, truth values, ranges; text for fractions."""
    kind: Any = Annotated[field.annotation, None, *field.metadata]
    schema = TypeAdapter(kind).json_schema()
    values: list[str | bool | range] = []
    for part in schema.get("anyOf", [schema]):
        values += part.get("enum", [part["const"]] if "const" in part else [])
        if part.get("type") == "boolean":
            values += [True, False]
        if "minimum" in part and "maximum" in part:
            low, high, is_whole = part["minimum"], part["maximum"], part["type"] == "integer"
            values.append(range(low, high + 1) if is_whole else f"{low:g} to {high:g}")
    return values
