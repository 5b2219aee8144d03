"""The registry of games: in a folder here, in an installed package, or registered by a call.

* Each folder of `solver.games` lists its games in its ``__init__``: ``GAMES``, a tuple of `Entry`.
  No other code names a game.
* An installed package declares entry points of the group ``luckbase.games``: the name of the game
  -> an `Entry`, or an object that registers one when it is loaded.
* A program calls `register`; `solver.game.game` does so for a user's file.

Everything is imported when first needed: a board's model imports pydantic, the rules import numba.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from luckbase.solver.errors import OptionError
from luckbase.solver.sentences import on_command_line

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from luckbase.solver.board.model import Board
    from luckbase.solver.game.rules import Rules

GROUP = "luckbase.games"
HOME = "luckbase.solver.games"


@dataclass(frozen=True)
class GameFile:
    """A user's file that registered games, with its text when it was run."""

    path: str
    text: str


@dataclass(frozen=True)
class Entry:
    """A game.

    board: the model of its board files, or ``module:name``, imported when needed.
    make: function board -> `Rules`, or ``module:name``.
    stamp: a hash of its code, if that may change without a new version; otherwise 0.
    file: the user's file that registered it, if any.
    title: its name for people, by default `name`.
    about: the game in two sentences.
    """

    name: str
    board: type[Board] | str
    make: Callable[[Any], Rules] | str
    stamp: int = 0
    file: GameFile | None = None
    title: str = ""
    about: str = ""

    def model(self) -> type[Board]:
        return load(self.board)

    def rules(self, board: Board) -> Rules:
        """Return its rules on a board. Raises BoardError or OptionError if it refuses the board."""
        return load(self.make)(board)


entries: dict[str, Entry] = {}
"""The registered games, by name."""


def enter(entry: Entry) -> None:
    """Register a game, in place of an earlier one of the same name. Raises OptionError for the name
    of a game of this package."""
    if entry.name in _here():
        raise OptionError(f"game '{entry.name}' is one of luckbase's own; take another name")
    entries[entry.name] = entry


def register(
    name: str, board: type[Board], rules: Callable[[Any], Rules], title: str = "", about: str = ""
) -> None:
    """Register a game: its name in board files, the model of these, the function from a board to
    its rules, its name for people, and a description in two sentences.

    Raises OptionError for a name that is taken or cannot name a folder, TypeError for a wrong
    model.
    """
    if not re.fullmatch(r"\w[\w-]*", name):
        raise OptionError(f"game {name!r}: expected a name of letters, digits, - and _")
    texts = isinstance(title, str) and isinstance(about, str)
    if not (hasattr(board, "options") and callable(rules) and texts):  # as a `Board` has
        raise TypeError(
            "register: expected (name, a class of Board, the function of its rules, title, about)"
        )
    enter(Entry(name, board, rules, title=title, about=about))


def of_file(file: GameFile) -> tuple[str, ...]:
    """Return the games that a file with this text has registered."""
    return tuple(e.name for e in entries.values() if e.file and e.file.text == file.text)


def names() -> tuple[str, ...]:
    """Return the names of all known games, sorted."""
    return tuple(sorted({*_here(), *_installed(), *entries}))


def is_here(name: str) -> bool:
    """Return whether the game belongs to this package."""
    return name not in entries and name in _here()


def author_name(name: str) -> str:
    """Return a game's name for its author: its file, or ``game NAME``."""
    file = entries[name].file if name in entries else None
    return f"game {name}" if file is None else Path(file.path).name


def known(name: str) -> bool:
    """Return whether a game of this name exists."""
    return name in entries or name in _here() or name in _installed()


def described(name: str) -> tuple[str, str]:
    """Return a game's title and its description in two sentences; the name and "" if unknown."""
    entry = find(name) if known(name) else None
    return (entry.title or name, entry.about) if entry else (name, "")


def find(name: str) -> Entry:
    """Return the game of this name. Raises OptionError if it is unknown."""
    entry = entries.get(name) or _here().get(name)
    if entry is None and name in _installed():
        loaded = _installed()[name].load()
        entry = loaded if isinstance(loaded, Entry) else entries.get(name)
    if entry is None:
        raise OptionError(
            f"unknown game '{name[:60]}'; install its package, or "
            + on_command_line("name its file with --game FILE.py", "register it")
        )
    return entry


@cache
def _here() -> dict[str, Entry]:
    home = importlib.import_module(HOME)
    games = {}
    for folder in pkgutil.iter_modules(home.__path__):
        for entry in importlib.import_module(f"{HOME}.{folder.name}").GAMES:
            games[entry.name] = entry
    return games


@cache
def _installed() -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points

    return {point.name: point for point in entry_points(group=GROUP)}


def load(where: Any) -> Any:
    """Return the object that ``module:name`` names; anything else unchanged."""
    if not isinstance(where, str) or ":" not in where:
        return where
    module, _, name = where.partition(":")
    return getattr(importlib.import_module(module), name)
