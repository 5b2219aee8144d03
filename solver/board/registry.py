"""The games by name, and where each is: its folder here, an installed package, or a call.

* A folder of `solver.games` says in its ``__init__`` which games are in it: ``GAMES``, a tuple of
  `Entry`. Nothing else names a game.
* An installed package declares entry points of the group ``luckbase.games``, the name of the game
  leading to an `Entry`, or to whatever registers one when it is loaded.
* Anybody calls `register`; `solver.game.game` does it for somebody's own file.

Nothing is imported before it is asked for: a board's model brings pydantic, the rules bring numba.
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
    """Somebody's file that registered games, as it was when it was run."""

    path: str
    text: str


@dataclass(frozen=True)
class Entry:
    """A game. board: the model of its board files; make: board -> `Rules`; either may be
    ``module:name``, which is imported when it is asked for. stamp: of the code that it comes from,
    where that may change under its version; 0 elsewhere. file: the one that entered it, if any.
    title: what people call it, its name if not given; about: the game in two sentences."""

    name: str
    board: type[Board] | str
    make: Callable[[Any], Rules] | str
    stamp: int = 0
    file: GameFile | None = None
    title: str = ""
    about: str = ""

    def model(self) -> type[Board]:
        """The model of its board files."""
        return load(self.board)

    def rules(self, board: Board) -> Rules:
        """Its rules on a board. Raises BoardError or OptionError for a board that it refuses."""
        return load(self.make)(board)


entries: dict[str, Entry] = {}
"""The games that were entered, by name."""


def enter(entry: Entry) -> None:
    """Enter a game, in the place of one that was entered by this name before.

    Raises OptionError for the name of a game of this package.
    """
    if entry.name in _here():
        raise OptionError(f"game '{entry.name}' is one of luckbase's own; take another name")
    entries[entry.name] = entry


def register(
    name: str, board: type[Board], rules: Callable[[Any], Rules], title: str = "", about: str = ""
) -> None:
    """Enter a game: its name as a board file says it, the model of its board files, and the
    function that makes its rules of a board; title, about: what people call it, and the game in two
    sentences. Raises OptionError for a name that is taken or cannot be one of a folder; TypeError
    for a model that is none."""
    if not re.fullmatch(r"\w[\w-]*", name):
        raise OptionError(f"game {name!r}: expected a name of letters, digits, - and _")
    texts = isinstance(title, str) and isinstance(about, str)
    if not (hasattr(board, "options") and callable(rules) and texts):  # as a `Board` has
        raise TypeError(
            "register: expected (name, a class of Board, the function of its rules, title, about)"
        )
    enter(Entry(name, board, rules, title=title, about=about))


def of_file(file: GameFile) -> tuple[str, ...]:
    """The games that a file of this text has registered."""
    return tuple(e.name for e in entries.values() if e.file and e.file.text == file.text)


def names() -> tuple[str, ...]:
    """The names of all games that are known, in the order of the alphabet."""
    return tuple(sorted({*_here(), *_installed(), *entries}))


def is_here(name: str) -> bool:
    """Whether the game of this name is one of this package."""
    return name not in entries and name in _here()


def said(name: str) -> str:
    """What an author knows a game by: its file, or its name."""
    file = entries[name].file if name in entries else None
    return f"game {name}" if file is None else Path(file.path).name


def known(name: str) -> bool:
    """Whether there is a game of this name."""
    return name in entries or name in _here() or name in _installed()


def described(name: str) -> tuple[str, str]:
    """What people call a game, and the game in two sentences; its name, and nothing, where that is
    all that is known."""
    entry = find(name) if known(name) else None
    return (entry.title or name, entry.about) if entry else (name, "")


def find(name: str) -> Entry:
    """The game of this name. Raises OptionError for one that is not known."""
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
    """The games of this package, by the folders there are."""
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
    """What ``module:name`` names; anything else, as it is."""
    if not isinstance(where, str) or ":" not in where:
        return where
    module, _, name = where.partition(":")
    return getattr(importlib.import_module(module), name)
