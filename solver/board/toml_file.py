"""A TOML file as a dictionary, whatever is wrong with it in one sentence."""

import os
import re
import tomllib
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from luckbase.solver.errors import BoardError, OptionError
from luckbase.solver.sentences import shorten

# A board is some 3 kB; tomllib takes time quadratic in the length of a key.
MAX_BYTES = 30_000
FEW = 8
"""Board files of a folder that are named where none is nearly the one that was asked for."""


def path_of(name: str | os.PathLike[str]) -> Path:
    """The path of what a person names. Raises OptionError for "", which `Path` takes for "."."""
    if not os.fspath(name).strip():
        raise OptionError("'' is the name of nothing; write a file's or a folder's, or . for here")
    return Path(name)


def read_toml(path: Path, where: str) -> dict[str, Any]:
    """The file's TOML. Raises BoardError in one sentence, with the line where there is one."""
    try:
        with path.open("rb") as file:
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
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise BoardError(f"{where}: line {line}: is not UTF-8 text; save it as UTF-8") from None
    except RecursionError:
        raise BoardError(f"{where}: is nested too deeply for a board file") from None
    except ValueError as error:  # tomllib's own errors, and numbers of thousands of digits
        raise BoardError(f"{where}: {_toml_fault(str(error))}") from None


def _toml_fault(message: str) -> str:
    """tomllib's message with its line in front: "line 3: not TOML: ... (column 6)"."""
    found = re.fullmatch(r"(.*) \(at line (\d+), column (\d+)\)", message, re.DOTALL)
    if found:
        reason, line, column = found.groups()
        return f"line {line}: not TOML: {shorten(reason, 100)} (column {column})"
    return f"not TOML: {shorten(message, 100)}"


def _sibling(path: Path) -> str:
    """A clause naming the board file beside `path` that has nearly its name, or else all of them
    where they are few, or nothing."""
    try:
        beside = {file.stem: file for file in sorted(path.parent.glob("*.toml"))}
    except (OSError, ValueError):
        return ""
    close = get_close_matches(path.stem, beside, n=1, cutoff=0.8)
    if close:
        return f"; did you mean {show_path(beside[close[0]])}?"
    boards = [file.name for file in beside.values() if len(beside) <= FEW and _is_board(file)]
    return f"; the board files there are {', '.join(boards)}" if boards else ""


def _is_board(path: Path) -> bool:
    """Whether a file looks like a board: TOML that names a game. A pipe may wait for ever."""
    try:
        return path.is_file() and "game" in read_toml(path, "")
    except BoardError:
        return False


def show_path(path: Path) -> str:
    """The path as a sentence names it, on one line."""
    text = str(path)
    return text if text.isprintable() else shorten(ascii(text), 200)
