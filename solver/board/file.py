"""Board files: find, read, check and compare them.

Every fault in a file becomes one sentence. The name of a packaged board can replace the path of a
board file; an existing file or folder of that path takes precedence.

    >>> board = read_board(Path("boards/jackpot/seed.toml"), {"tiles": "6"})
    >>> board.name
    'seed'
"""

import errno
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache, reduce
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import Any, cast, get_args

from pydantic import ValidationError

from luckbase.solver.board import registry
from luckbase.solver.board.model import Board, Location, Source, fields_of, in_order
from luckbase.solver.errors import BoardError, OptionError
from luckbase.solver.sentences import nearest, on_command_line, setting, shorten, show

# A board is about 3 kB; tomllib takes time quadratic in the length of a key.
MAX_BYTES = 30_000
SPECIAL = "it is a pipe or a device; expected a file"
FEW = 8
"""The most board files of a folder that an error lists if no name is similar."""
BOARDS = Path(__file__).parents[2] / "boards"
"""The folder of the packaged boards, in a checkout and in an installed package."""
SUFFIX = ".toml"


def as_words(options: Mapping[str, object]) -> dict[str, str]:
    """Return a board's options as text, as in ``--set name=value``."""
    return {k: str(v).lower() if isinstance(v, bool) else str(v) for k, v in options.items()}


def read_board(path: Path, settings: Mapping[str, str] = {}) -> Board:
    """Return the board of a file, or the board of its finest grid. Arguments and errors are the
    same as in `read_boards`."""
    return next(read_boards(path, settings))


def read_boards(path: Path, settings: Mapping[str, str] = {}) -> Iterator[Board]:
    """Read a board file and yield a board for each of its grids, the finest first; one board if it
    has no grids, or if `settings` name a unit.

    settings: the command line's ``--set name=value``: options of [rules] or [solve], or others that
        the game lists in `Board.options`; values as text, read as in TOML.

    Raises BoardError for a wrong file or board and OptionError for a wrong setting, each with one
    sentence, for any bytes in the file.
    """
    where = show_path(path)
    data = read_toml(path, where)
    try:
        model = _model(data)
        grids = _grids(model, data)
    except _Fault as fault:
        raise BoardError(f"{where}: {fault}") from None
    rest = {key: value for key, value in data.items() if key != "grid"} if grids else data
    for grid in _grids_meant(model, grids, settings, where):
        words = dict(settings)
        if len(grids) > 1 and grid:
            words = {model.grid[0]: str(grid[model.grid[0]])} | words
        board = _read(where, path.stem, model, _with_grid(model, rest, grid, settings), settings)
        yield board.read_from(Source(str(path.absolute()), words))


def _read(
    where: str, name: str, model: type[Board], data: Mapping[str, Any], settings: Mapping[str, str]
) -> Board:
    """Return the board in the data of the file `where`, changed by `settings`. Raises as
    `read_boards`."""
    changed = data
    for option, text in settings.items():
        changed = _with_setting(changed, model, option, text)
    try:
        return _validated(model, name, changed)
    except _Fault as fault:
        sentence, location = str(fault), fault.location
    is_setting = location in [model.options()[option] for option in settings]
    if settings and not is_setting:
        with suppress(_Fault):  # without the settings it is valid
            is_setting = _validated(model, name, data) is not None
    if is_setting:
        shown = " ".join(setting(name, shorten(text, 30)) for name, text in settings.items())
        raise OptionError(f"{where} with {shown}: {sentence}")
    raise BoardError(f"{where}: {sentence}")


def board_from_canonical(name: str, form: Mapping[str, Any]) -> Board:
    """Return the board called `name` from its canonical form in a table's manifest (no title).
    Raises BoardError if the form is not a board."""
    try:
        return _validated(_model(form), name, form)
    except _Fault as fault:
        raise BoardError(f"board {shorten(name, 60)}: {fault}") from None


MISSING: Any = type("Missing", (), {"__repr__": lambda _: "missing"})()
"""In place of a value that a canonical form does not have."""


@dataclass(frozen=True)
class Change:
    """A change between two canonical forms. `str` is a sentence: "squares 4, slide 1: was '3000 +
    spin', now '3500 + spin'"."""

    location: Location
    place: str  # in words
    old: Any  # MISSING if there was none
    new: Any  # MISSING if it was removed

    def __str__(self) -> str:
        if self.old is MISSING and isinstance(self.new, Mapping):
            return f"{self.place}: is new in the board"
        if self.new is MISSING and isinstance(self.old, Mapping):
            return f"{self.place}: is no longer in the board"
        return f"{self.place}: was {show(self.old)}, now {show(self.new)}"


def changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Change]:
    """Return the changes between two canonical forms. A section that was added or removed is one
    change."""
    try:
        model = _model(new)
    except _Fault:
        model = Board
    return [Change(at, model.place(at), *values) for at, *values in _changes(old, new, ())]


def _grids(model: type[Board], data: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return each [[grid]] of a file's data, the finest first. Raises _Fault for an invalid grid.
    The values are checked later, as options."""
    if not model.grid or "grid" not in data:
        return []
    grids, unit, units = data["grid"], model.grid[0], list[int]()
    if not isinstance(grids, list) or not all(isinstance(grid, Mapping) for grid in grids):
        raise _Fault(f"write each as [[grid]] with {', '.join(model.grid)} below it", (), "grid")
    for number, grid in enumerate(grids, start=1):
        place = f"grid, item {number}"
        if unknown := [key for key in grid if key not in model.grid]:
            known = nearest(unknown[0], model.grid)
            raise _Fault(f"unknown key {show(unknown[0])}; {known}", (), place)
        if unit not in grid:
            raise _Fault("is missing", (), f"{place}, {unit}")
        if type(grid[unit]) is not int or grid[unit] in units:
            why = "is there twice" if grid[unit] in units else "is not a whole number"
            raise _Fault(f"{show(grid[unit])} {why}", (), f"{place}, {unit}")
        units.append(grid[unit])
    for option in model.grid:
        *sections, key = map(str, model.options()[option])
        if key in reduce(_section, sections, data):
            raise _Fault("each [[grid]] sets it; leave it out here", (), option)
    return sorted(grids, key=lambda grid: grid[unit])


def _grids_meant(
    model: type[Board], grids: list[dict[str, Any]], settings: Mapping[str, str], where: str
) -> list[dict[str, Any]]:
    """Return the grids that settings select: all grids, or the grid whose unit they name; an empty
    grid if the file has none. Raises OptionError if the settings fit several grids."""
    if not grids:
        return [{}]
    unit = model.grid[0]
    if unit in settings:
        return [grid for grid in grids if str(grid[unit]) == settings[unit]] or [{}]
    given = [option for option in model.grid if option in settings]
    if given and len(grids) > 1:
        *units, last = [str(grid[unit]) for grid in grids]
        words, which = on_command_line("--set: "), f"{', '.join(units)} or {last}"
        raise OptionError(
            f"{words}{given[0]}: {where} has {len(grids)} grids; give {unit} too: {which}"
        )
    return grids


def _with_grid(
    model: type[Board], data: Mapping[str, Any], grid: Mapping[str, Any],
    settings: Mapping[str, str],
) -> Mapping[str, Any]:  # fmt: skip
    """Return a file's data with the options of a grid in their sections. If settings set the reach
    of its table, the grid's options after the first of these are left out."""
    for option in model.grid:
        if option in settings and option != model.grid[0]:
            break
        if option in grid:
            data = _with_value(data, model.options()[option], grid[option])
    return data


def _section(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return a section of a file's data; an empty one if it has no such section."""
    section = data.get(name, {})
    return section if isinstance(section, Mapping) else {}


def _with_value(data: Mapping[str, Any], location: Location, value: Any) -> dict[str, Any]:
    """Return a file's data with a value at a location. An invalid section stays unchanged, because
    validation reports it."""
    name, *below = map(str, location)
    if not below:
        return {**data, name: value}
    if not isinstance(data.get(name, {}), Mapping):
        return dict(data)
    return {**data, name: _with_value(_section(data, name), tuple(below), value)}


class _Fault(Exception):
    """A fault of a board; `str` is a sentence with its location, without the file."""

    def __init__(self, sentence: str, location: Location = (), place: str = "") -> None:
        super().__init__(f"{place}: {sentence}" if place else sentence)
        self.location = location


def _model(data: Mapping[str, Any]) -> type[Board]:
    game = data.get("game")
    if isinstance(game, str) and registry.known(game):
        return registry.find(game).model()
    right = " or ".join(f'game = "{name}"' for name in registry.names())
    if "game" not in data:
        raise _Fault(f"is missing; write {right}", ("game",), "game")
    hint = on_command_line(
        "for a game of your own add --game FILE.py", "register a game of your own first"
    )
    sentence = f"unknown game {show(game)}; expected {right}; {hint}"
    raise _Fault(sentence, ("game",), "game")


def _with_setting(
    data: Mapping[str, Any], model: type[Board], option: str, text: str
) -> dict[str, Any]:
    options = model.options()
    if option not in options:
        known = nearest(option, sorted(options))
        raise OptionError(f"{on_command_line('--set: ')}unknown option {show(option)}; {known}")
    *sections, key = map(str, options[option])
    kind = fields_of(model, tuple(sections))[key].annotation
    kinds, value = (kind, *get_args(kind)), cast(Any, text)
    if str not in kinds and text not in kinds:
        if re.fullmatch(r"[+-]?[0-9]{1,30}", text):
            value = int(text)
        elif float in kinds:
            with suppress(ValueError):
                value = float(text)
        if text in ("true", "false"):
            value = text == "true"
    return _with_value(data, options[option], value)


def _validated(model: type[Board], name: str, data: Mapping[str, Any]) -> Board:
    """Return the board. Raises _Fault for its first fault, misspelt keys before missing keys."""
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
    raise _Fault(sentence_of(first), location, model.place(location))


def sentence_of(error: Mapping[str, Any]) -> str:
    """Return our sentence for an error in a `ValidationError`."""
    context = error.get("ctx", {})
    if error["type"] == "board":
        return str(context["sentence"])
    wording = _SENTENCES.get(error["type"], "{value} is not allowed here")
    return wording.format(value=show(error["input"]), **context)


# pydantic's error type -> our sentence; {value} is the value in the file, the rest its context.
_SENTENCES = {
    "missing": "is missing",
    "string_type": "{value} is not text in quotes",
    "int_type": "{value} is not a whole number",
    "bool_type": "{value} is not true or false",
    "greater_than_equal": "{value} is too small; expected at least {ge}",
    "less_than_equal": "{value} is too large; expected at most {le}",
    "literal_error": "{value} is not allowed; expected {expected}",
    "greater_than": "{value} is too small; expected more than {gt}",
    "float_type": "{value} is not a number",
    "finite_number": "{value} is not a finite number",
    "list_type": "{value} is not a list; write it in square brackets",
    "tuple_type": "{value} is not a list; write it in square brackets",
    "dict_type": "{value} is not a table; write it as {{ name = value }}",
    "too_short": "{value} is empty",
    "string_too_short": "{value} is empty",
    "model_type": "{value} is not a section; write its name in square brackets and its keys below",
}


def _unknown_key(model: type[Board], location: Location) -> str:
    """Return a sentence about the unknown key that ends `location`, with a suggestion."""
    *above, last = location
    key = str(last)
    home = model.options().get(key)
    if home and home[:-1] != tuple(above):
        section = f"in [{home[0]}]" if len(home) > 1 else "at the top, above the first section"
        return f"unknown key {show(key)}; it belongs {section}"
    known = [field for field in fields_of(model, tuple(above)) if field != "name"]
    return f"unknown key {show(key)}; {nearest(key, known)}"


def _changes(old: Any, new: Any, location: Location) -> Iterable[tuple[Location, Any, Any]]:
    """Yield the locations where two canonical values differ, and both values, in the order of
    keys."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in sorted({*old, *new}, key=in_order):
            yield from _changes(old.get(key, MISSING), new.get(key, MISSING), (*location, key))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for number, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from _changes(before, after, (*location, number))
    elif old != new or type(old) is not type(new):
        yield location, old, new


@cache
def packaged() -> tuple[str, ...]:
    """Return the names of the packaged boards, sorted: ``pig/race``."""
    return tuple(sorted(f"{path.parent.name}/{path.stem}" for path in BOARDS.glob(f"*/*{SUFFIX}")))


def located(name: str | os.PathLike[str]) -> Path:
    """Return the path that a name means: an existing file or folder, otherwise the packaged board
    of this name (``pig/race``, or ``race`` if only one game has it), otherwise the same path."""
    path = Path(name)
    if os.path.exists(path):
        return path
    word = path.as_posix()
    meant = [each for each in packaged() if word in (each, each.partition("/")[2])]
    return BOARDS / f"{meant[0]}{SUFFIX}" if len(meant) == 1 else path


def name_of(path: str | os.PathLike[str]) -> str:
    """Return the name of a packaged board; for any other path, the path as a person types it."""
    path = Path(path)
    return f"{path.parent.name}/{path.stem}" if path.parent.parent == BOARDS else str(path)


def suggestion(path: Path) -> str:
    """Return a clause naming the packaged boards that a missing path may mean, or ""."""
    if path.as_posix() in {name.partition("/")[0] for name in packaged()}:
        similar = [name for name in packaged() if name.startswith(f"{path.as_posix()}/")]
    else:
        wanted = "/".join(path.with_suffix("").parts[-2:])
        similar = [name for name in packaged() if name == wanted]
        similar = similar or get_close_matches(wanted, packaged(), n=1, cutoff=0.8)
        similar = similar or [name for name in packaged() if name.endswith(f"/{path.stem}")]
    if not similar:
        return ""
    *first_names, last = similar
    names = f"{', '.join(first_names)} or {last}, boards" if first_names else f"{last}, a board"
    return f"; did you mean {names} of luckbase?"


def path_of(name: str | os.PathLike[str]) -> Path:
    """Return the path of a file, a folder or a packaged board.

    Raises OptionError for "", which `Path` would read as ".".
    """
    if not os.fspath(name).strip():
        raise OptionError("'' is empty; expected the name of a file or a folder")
    return located(name)


def read_toml(path: Path, where: str) -> dict[str, Any]:
    """Return the file's TOML. Raises BoardError in one sentence, with the line if there is one."""
    try:
        with open(path, "rb", opener=open_regular) as file:
            raw = file.read(MAX_BYTES + 1)
    except IsADirectoryError:
        raise BoardError(f"{where}: is a directory; name the board file in it") from None
    except FileNotFoundError:
        raise BoardError(f"{where}: no such file{_sibling(path)}") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise BoardError(f"{where}: cannot be read: {shorten(reason, 100)}") from None
    if len(raw) > MAX_BYTES:
        raise BoardError(f"{where}: is larger than {MAX_BYTES} bytes, too large for a board file")
    try:
        return tomllib.loads(raw.decode("utf-8-sig"))
    except (RecursionError, ValueError) as error:
        if path.suffix != SUFFIX and not isinstance(error, RecursionError):
            raise BoardError(f"{where}: is not a board file (TOML)") from None
        raise BoardError(f"{where}: {_no_toml(raw, error)}") from None


def _no_toml(raw: bytes, error: ValueError | RecursionError) -> str:
    """Return why the bytes of a file are not TOML, with the line if there is one."""
    if isinstance(error, UnicodeDecodeError):
        line = raw.count(b"\n", 0, error.start) + 1
        return f"line {line}: is not UTF-8 text; save it as UTF-8"
    if isinstance(error, RecursionError):
        return "is nested too deeply for a board file"
    message = str(error)  # of tomllib's own errors, or of numbers of thousands of digits
    match = re.fullmatch(r"(.*) \(at line (\d+), column (\d+)\)", message, re.DOTALL)
    if match is None:
        return f"not TOML: {shorten(message, 100)}"
    return f"line {match[2]}: not TOML: {shorten(match[1], 100)} (column {match[3]})"


def open_regular(path: str | os.PathLike[str], flags: int) -> int:
    """Open a file as `os.open` does, but raise OSError for a pipe, a socket or a device."""
    special = OSError(errno.EINVAL, SPECIAL, os.fspath(path))
    try:
        handle = os.open(path, flags | getattr(os, "O_NONBLOCK", 0), 0o666)
    except OSError as error:
        raise special if error.errno == errno.ENXIO else error from None
    mode = os.fstat(handle).st_mode
    if S_ISREG(mode) or S_ISDIR(mode):
        return handle
    os.close(handle)
    raise special


def _sibling(path: Path) -> str:
    """Return a clause that names board files which a missing path may mean, or "".

    It prefers a file with a similar name in the same folder, then packaged boards, then all files
    in the folder if they are few.
    """
    if ":/" in str(path):
        return "; expected a board file on this machine"
    try:
        files = sorted(filter(Path.exists, path.parent.glob("*.toml")))  # skip broken links
        siblings = {file.stem: file for file in files}
    except (OSError, ValueError):
        return ""
    close = get_close_matches(path.stem, siblings, n=1, cutoff=0.8)
    if close:
        return f"; did you mean {show_path(siblings[close[0]])}?"
    if clause := suggestion(path):
        return clause
    boards = [file.name for file in siblings.values() if len(siblings) <= FEW and _is_board(file)]
    return f"; the board files there are {', '.join(boards)}" if boards else ""


def _is_board(path: Path) -> bool:
    """Return whether a file is TOML that names a game. Pipes are skipped: they could block."""
    try:
        return path.is_file() and "game" in read_toml(path, "")
    except BoardError:
        return False


def show_path(path: Path) -> str:
    """Return the path for a sentence, on one line; a URI keeps both slashes."""
    text = name_of(path)
    if ":/" in text and not os.path.exists(path):
        text = re.sub("^([a-z0-9]{2,}):/(?=[^/])", r"\1://", text)
    return text if text.isprintable() else shorten(ascii(text), 200)
