"""Board files: read one, check it, give its canonical form and hash, and say how two boards differ.

A board is the data that may change from one night to the next: a TOML file under `boards/`, named
after the file. What stands in it is up to its game; each game has a pydantic model, a subclass of
`Board`, found through `solver.games`. This module turns whatever is wrong with a file into one
sentence.

    >>> board = read_board(Path("boards/press-your-luck/1985-02.toml"), {"score_unit": "500"})
    >>> board.name
    '1985-02'

The canonical form is the board as JSON, sorted, with every default written out. It holds what can
change values or the rows of a table and nothing else: not the title, the comments, the name, nor
the order of keys. Two boards with one canonical form are one board; `board_hash` is its SHA-256.
(`solver.board.identity`: without what says only how far a table goes.)
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, PrivateAttr, ValidationError
from pydantic_core import PydanticCustomError

from luckbase.solver.board.toml_file import cut, read_toml, show_path
from luckbase.solver.errors import BoardError, OptionError
from luckbase.solver.games import GAMES, board_class

Location = tuple[str | int, ...]  # the keys (text) and list positions (from 0) that lead to a value


class Section(BaseModel):
    """One table of a board file: frozen, and a key that it does not know is a mistake."""

    model_config = ConfigDict(frozen=True, extra="forbid")


@dataclass(frozen=True)
class Source:
    """Where a board was read: the file's absolute path, and the options that `--set` changed."""

    file: str
    settings: dict[str, str]


class Board(Section):
    """What every board has. A game subclasses it with `game: Literal[...]` and its own sections.

    The sections `rules` and `solve` hold the options, which `--set name=value` may change. Boards
    are equal if what stands in them is, wherever they were read.
    """

    reach: ClassVar[frozenset[str]] = frozenset()
    """Options that say how far a table goes and change no payoff."""

    game: str
    name: str  # the stem of the file; not a key in it
    title: str = ""
    _source: Source | None = PrivateAttr(default=None)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash((type(self), *self.__dict__.values()))

    @property
    def source(self) -> Source | None:
        """Where the board was read; None where it was made in another way."""
        return self._source

    def read_from(self, source: Source | None) -> Self:
        """The same board, with where it was read."""
        found = self.model_copy()
        found._source = source
        return found

    @classmethod
    def options(cls) -> dict[str, Location]:
        """Where each option that `--set` may change stands: name -> location in the file."""
        found: dict[str, Location] = {}
        for section in ("rules", "solve"):
            fields = _fields_of(cls, (section,))
            found |= {option: (section, option) for option in fields}
        return found

    @classmethod
    def place(cls, location: Location) -> str:
        """A location as a person would name it; an option by its name alone."""
        if len(location) > 1 and location[0] in ("rules", "solve"):
            location = location[1:]
        words = [f"item {part + 1}" if isinstance(part, int) else part for part in location]
        return ", ".join(words)


def read_board(path: Path, settings: Mapping[str, str] = {}) -> Board:
    """Read and check the board in the file `path`, its options changed by `settings` if any.

    `settings` are the command line's `--set name=value`: an option of [rules] or [solve], or
    another that the game lists in `Board.options`; values as text, read as in TOML.

    Raises BoardError for a file or a board that is not right, OptionError for a setting that is
    not: one sentence either way, whatever bytes the file holds.
    """
    where = show_path(path)
    data = read_toml(path, where)
    try:
        model = _model(data)
    except _Fault as fault:
        raise BoardError(f"{where}: {fault}") from None
    changed = data
    for option, text in settings.items():
        changed = _with_setting(changed, model, option, text)
    try:
        board = _validated(model, path.stem, changed)
        return board.read_from(Source(str(path.absolute()), dict(settings)))
    except _Fault as fault:
        sentence, location = str(fault), fault.location
    asked = location in [model.options()[option] for option in settings]
    if asked or (settings and _is_right(model, path.stem, data)):
        said = " ".join(f"--set {name}={cut(text, 30)}" for name, text in settings.items())
        raise OptionError(f"{where} with {said}: {sentence}")
    raise BoardError(f"{where}: {sentence}")


def canonical(board: Board) -> dict[str, Any]:
    """The board as plain JSON values, keys sorted, defaults written out, empty sections left out.

    It has the shape of the file, so `board_from_canonical` reads it back.
    """
    dumped = board.model_dump(mode="json", exclude={"name", "title"}, exclude_none=True)
    return {key: value for key, value in _sorted(dumped).items() if value != {}}


def board_hash(board: Board) -> str:
    """The SHA-256 of the canonical form written as compact ASCII JSON, in 64 hexadecimal digits."""
    text = json.dumps(canonical(board), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def board_from_canonical(name: str, form: Mapping[str, Any]) -> Board:
    """The board called `name` from its canonical form, as a table's ledger holds it (no title).

    Raises BoardError where the form is not a board, as after an edit by hand.
    """
    try:
        return _validated(_model(form), name, form)
    except _Fault as fault:
        raise BoardError(f"board {cut(name, 60)}: {fault}") from None


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """What changed between two canonical forms, one sentence a value, none if they are equal.

    Such as "squares 4, slide 1: was '3000 + spin', now '3500 + spin'" or "score_unit: was 250,
    now 500"; a section that came or went is one sentence.
    """
    try:
        model = _model(new)
    except _Fault:
        model = Board
    return [f"{model.place(at)}: {change}" for at, change in _changes(old, new, ())]


def mistake(sentence: str, *location: str | int) -> PydanticCustomError:
    """The error that a model's validator raises: `sentence` says what is wrong at `location`.

    `location` is from the top of the file; without one, it is what pydantic was looking at.
    """
    return PydanticCustomError("board", "{sentence}", {"sentence": sentence, "at": location})


def show(value: object) -> str:
    """A value from a board file as a sentence quotes it: short, on one line, whatever it is."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return repr(cut(value, 60))
    if isinstance(value, int) and abs(value) >= 10**30:
        return "a number of more than 30 digits"  # Python refuses to print very long ones
    if isinstance(value, Mapping):
        return "a table"
    if isinstance(value, list | tuple):
        parts = ["…" if isinstance(part, Mapping | list | tuple) else show(part) for part in value]
        return cut(f"[{', '.join(parts)}]", 60)
    return "nothing" if value is None else cut(str(value), 60)


def nearest(word: str, known: Iterable[str]) -> str:
    """A clause on what was meant: "did you mean 'a' or 'b'?", or else all that is known."""
    known = list(known)
    close = get_close_matches(word[:100].lower(), known, n=3, cutoff=0.6)
    if close:
        return f"did you mean {' or '.join(map(repr, close))}?"
    return f"known here: {', '.join(known)}"


class _Fault(Exception):
    """What is wrong with a board: `str` is the sentence with its place, without the file."""

    def __init__(self, sentence: str, location: Location = (), place: str = "") -> None:
        super().__init__(f"{place}: {sentence}" if place else sentence)
        self.location = location


def _model(data: Mapping[str, Any]) -> type[Board]:
    """The model of the game that `data` names. Raises _Fault."""
    right = " or ".join(f'game = "{game}"' for game in GAMES)
    if "game" not in data:
        raise _Fault(f"is missing; write {right}", ("game",), "game")
    game = data["game"]
    if not isinstance(game, str) or game not in GAMES:
        raise _Fault(f"{show(game)} is not a game known here; write {right}", ("game",), "game")
    return board_class(game)


def _with_setting(
    data: Mapping[str, Any], model: type[Board], option: str, text: str
) -> dict[str, Any]:
    """`data` with one option changed. Raises OptionError for an option that is not there."""
    options = model.options()
    if option not in options:
        known = nearest(option, sorted(options))
        raise OptionError(f"--set: unknown option {show(option)}; {known}")
    *sections, key = map(str, options[option])
    changed = inner = dict(data)
    for section in sections:
        if not isinstance(inner.get(section, {}), Mapping):
            return changed  # not a section: validation will say so
        inner[section] = dict(inner.get(section, {}))
        inner = inner[section]
    inner[key] = _setting(text)
    return changed


def _setting(text: str) -> object:
    """The value that a setting's text stands for: a truth value, a whole number, or text."""
    if text in ("true", "false"):
        return text == "true"
    return int(text) if re.fullmatch(r"[+-]?[0-9]{1,30}", text) else text


def _is_right(model: type[Board], name: str, data: Mapping[str, Any]) -> bool:
    """Whether the file would do without the settings."""
    try:
        _validated(model, name, data)
    except _Fault:
        return False
    return True


def _validated(model: type[Board], name: str, data: Mapping[str, Any]) -> Board:
    """The board. Raises _Fault with the first mistake, a misspelt key before what it leaves out."""
    if "name" in data:
        raise _Fault("unknown key 'name'; a board is named after its file", ("name",))
    try:
        return model.model_validate({**data, "name": name})
    except ValidationError as error:
        errors = error.errors(include_url=False)
    first = next((e for e in errors if e["type"] == "extra_forbidden"), errors[0])
    context = first.get("ctx", {})
    location: Location = tuple(context.get("at", ())) or first["loc"]
    if first["type"] == "extra_forbidden":
        place = model.place(location[:-1])
        raise _Fault(_unknown_key(model, location), location, place)
    if first["type"] == "board":
        sentence = context["sentence"]
    else:
        wording = _SENTENCES.get(first["type"], "{value} is not right here")
        sentence = wording.format(value=show(first["input"]), **context)
    raise _Fault(sentence, location, model.place(location))


# What pydantic finds -> how we say it; {value} is what stands in the file, the rest its context.
_SENTENCES = {
    "missing": "is missing",
    "string_type": "{value} is not text in quotes",
    "int_type": "{value} is not a whole number",
    "bool_type": "{value} is not true or false",
    "greater_than_equal": "{value} is too small; the least is {ge}",
    "less_than_equal": "{value} is too large; the most is {le}",
    "literal_error": "{value} is not one of its values; write {expected}",
    "model_type": "{value} is not a section; write its name in square brackets and its keys below",
}


def _unknown_key(model: type[Board], location: Location) -> str:
    """The sentence for the key that ends `location`, with what was probably meant."""
    *above, last = location
    key = str(last)
    home = model.options().get(key)
    if home and home[:-1] != tuple(above):
        section = f"in [{home[0]}]" if len(home) > 1 else "at the top, above the first section"
        return f"unknown key {show(key)}; it belongs {section}"
    known = [field for field in _fields_of(model, tuple(above)) if field != "name"]
    return f"unknown key {show(key)}; {nearest(key, known)}"


def _fields_of(model: type[BaseModel], location: Location) -> list[str]:
    """The keys that the section at `location` may have; none if the model has no such section."""
    for part in location:
        field = model.model_fields.get(str(part))
        inner = field.annotation if field else None
        if not (isinstance(inner, type) and issubclass(inner, BaseModel)):
            return []
        model = inner
    return list(model.model_fields)


def _changes(old: object, new: object, at: Location) -> Iterable[tuple[Location, str]]:
    """Where two canonical values differ, and how, in the order of the file's numbers and names."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in sorted({*old, *new}, key=_in_order):
            inner = (*at, key)
            if key in old and key in new:
                yield from _changes(old[key], new[key], inner)
            elif isinstance(new.get(key, old.get(key)), Mapping):
                yield inner, "is new in the board" if key in new else "is no longer in the board"
            elif key in new:
                yield inner, f"was not there, now {show(new[key])}"
            else:
                yield inner, f"was {show(old[key])}, now not there"
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for number, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from _changes(before, after, (*at, number))
    elif old != new or type(old) is not type(new):
        yield at, f"was {show(old)}, now {show(new)}"


def _in_order(key: str) -> tuple[int, str]:
    """Sort key: numbers as numbers ("2" before "10"), names after them."""
    return (int(key), "") if re.fullmatch(r"[0-9]{1,9}", key) else (10**9, key)


def _sorted(value: Any) -> Any:
    """`value` with the keys of every table in order."""
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value, key=_in_order)}
    return value
