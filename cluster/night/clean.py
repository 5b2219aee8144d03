"""Tables that no board file asks for any more, and taking them away.

A board file asks for the table of its rules as they stand. A table is found to be asked for by the
files that it was solved from, as its ledger says, by the board files beside those, and by those
that are named. What was solved with ``--set``, from some states or from no file, nobody's file asks
for; it goes where its folder is named, and not else. Nor goes what somebody solves, or whose board
file can not be read, or lay in a folder that is not there now: it may have been moved, or its disk
taken out.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from luckbase.cluster import words
from luckbase.cluster.night.asked import asked_for
from luckbase.cluster.night.removal import contents, remove
from luckbase.cluster.table.files import is_special
from luckbase.cluster.table.find import is_table, tables_in, what_changed
from luckbase.cluster.table.ledger import Ledger, read_ledger
from luckbase.cluster.table.lines import Goal
from luckbase.cluster.table.status import running
from luckbase.cluster.table.storage import Folder
from luckbase.cluster.words import check_folder
from luckbase.solver import load_game
from luckbase.solver.board.file import read_board
from luckbase.solver.board.identity import rules_identity
from luckbase.solver.board.toml_file import path_of
from luckbase.solver.errors import LuckbaseError, OptionError, TableError
from luckbase.solver.game.capabilities import Layout
from luckbase.solver.sentences import option, setting


@dataclass(frozen=True)
class Spare:
    """A table that no board file asks for, or one that was named.

    state: unasked (it may go), protected (only where its folder is named), asked (a board file asks
    for it), running (somebody solves it); removed. why: sentences. bytes, states: of the table.
    left: what of its folder is not luckbase's own, and stays. error: why it could not be removed.
    """

    table: Path
    state: str
    why: tuple[str, ...] = ()
    states: int = 0
    bytes: int = 0
    left: tuple[str, ...] = ()
    named: bool = False
    error: str = ""

    def as_json(self) -> dict[str, Any]:
        """The same as JSON values."""
        return {
            "table": str(self.table), "state": self.state, "why": list(self.why),
            "states": self.states, "bytes": self.bytes, "left": list(self.left),
            "error": self.error or None,
        }  # fmt: skip


def clean(
    names: Sequence[str], results: str | os.PathLike[str], *, yes: bool = False
) -> list[Spare]:
    """What no board file asks for any more, of the tables of some boards or of all; removed if
    `yes`. A table's folder among `names` stands for itself.

    Raises OptionError for a name that is neither a table nor a board's, and for a URI.
    """
    check_folder(results)
    if not Path(results).is_dir() and not (names and all(is_table(path_of(n)) for n in names)):
        raise OptionError(f"{option('results')}: there is no folder {results}")
    scope = _Scope(names, Path(results))
    found = [one for path in scope.tables() if (one := _spare(path, scope)) is not None]
    return [_removed(one) if yes and one.state == "unasked" else one for one in found]


def _removed(one: Spare) -> Spare:
    try:
        return replace(one, state="removed", left=tuple(remove(one.table)))
    except LuckbaseError as error:
        return replace(one, state="running", error=str(error))
    except OSError as error:
        said = f"{error.filename or one.table}: {error.strerror or error}"
        return replace(one, error=f"it can not be removed: {said}")


class _Scope:
    """What was named: tables by their folders, board files and folders of boards."""

    def __init__(self, names: Sequence[str], results: Path) -> None:
        self.results = results
        self.named = [Path(name) for name in names if is_table(path_of(name))]
        self.places = [name for name in names if not is_table(Path(name))]
        self.boards = asked_for([name for name in self.places if Path(name).exists()])
        self.files = {path: _files(path) for path in tables_in(results)}
        known = [file for files in self.files.values() for file in files]
        for name in self.places:
            if not Path(name).exists() and not any(_below(file, name) for file in known):
                raise OptionError(f"{name}: no such table, board file or folder of boards")

    def tables(self) -> list[Path]:
        """The tables that are looked at."""
        named = {os.path.realpath(path): path for path in self.named}
        if self.named and not self.places:
            return list(named.values())
        there = {os.path.realpath(path): path for path in self.files}
        if self.places:
            there = {real: path for real, path in there.items() if self._is_in(path)}
        return sorted([*named.values(), *(p for real, p in there.items() if real not in named)])

    def _is_in(self, path: Path) -> bool:
        """Whether a table is of a board that was named."""
        place = (path.parent.parent.name, path.parent.name)
        if place in {(one.board.game, one.board.name) for one in self.boards if one.board}:
            return True
        return any(_below(file, name) for file in self.files[path] for name in self.places)

    @cached_property
    def asked(self) -> dict[str, str]:
        """The rules that board files ask for, and one file of each: those named, and those beside
        files that tables were solved from."""
        folders = {os.path.dirname(file) for files in self.files.values() for file in files}
        there = dict.fromkeys(
            one for folder in sorted(folders - {""})
            for one in ([folder] if os.path.isdir(folder) else _moved(folder, self.results))
        )  # fmt: skip
        beside = [
            str(file) for folder in there for file in sorted(Path(folder).glob("*.toml"))
            if not is_special(str(file))
        ]  # fmt: skip
        found: dict[str, str] = {}
        for one in [*self.boards, *asked_for(beside)]:
            if one.board is not None and not one.settings:
                try:
                    found.setdefault(rules_identity(load_game(one.board)), one.file)
                except LuckbaseError:
                    continue
        return found


def _files(path: Path) -> list[str]:
    """The board files that a table was solved from."""
    try:
        return [goal.board_file for goal in read_ledger(Folder(path), path).goals]
    except TableError:
        return []


def _moved(folder: str, results: Path) -> list[str]:
    """Where a folder that is not there now may be, if a project was moved with its results: the end
    of its path beside the results, or beside a folder that they are in."""
    parts = Path(folder).parts[1:]
    above = Path(os.path.realpath(results)).parents
    found = [os.path.join(one, *parts[i:]) for one in above for i in range(len(parts))]
    return [str(above[0]), *filter(os.path.isdir, found)]


def _is_gone(file: str) -> bool:
    """Whether a file is not there, though its folder is and can be read."""
    try:
        return os.path.basename(file) not in os.listdir(os.path.dirname(file))
    except OSError:
        return False


def _below(file: str, name: str) -> bool:
    """Whether a file is the one that is named, or in the folder that is."""
    if not file:
        return False
    here, there = os.path.realpath(file), os.path.realpath(name)
    return here == there or here.startswith(os.path.join(there, ""))


def _spare(path: Path, scope: _Scope) -> Spare | None:
    """What is to be said of a table; None of one that is asked for and was not named."""
    named = path in scope.named
    if path.is_symlink():
        return Spare(path, "protected", ("it is a link, and a link is not followed",), named=named)
    ours, others = contents(path)
    one = Spare(path, "", bytes=sum(ours.values()), left=tuple(others), named=named)
    try:
        ledger = read_ledger(Folder(path), path)
    except TableError as error:
        why = (str(error), f"it goes where it is named: {path}")
        return replace(one, state="unasked" if named else "protected", why=why[: 2 - named])
    one = replace(one, states=ledger.rows)
    said = running(path)
    if said:
        who = f"process {said['process']} on {said['host']} solves it"
        return replace(one, state="running", why=(who,))
    by = scope.asked.get(ledger.head.identity)
    seen = [_of_goal(goal, ledger) for goal in ledger.goals]
    by = by or next((goal.file for goal in seen if goal.now == "same" and goal.plain), None)
    if by is not None:
        return replace(one, state="asked", why=(f"{by} asks for it",)) if named else None
    if named:
        return replace(one, state="unasked", why=_why(seen))
    if any(goal.now == "same" for goal in seen):
        return None  # with the options that it was solved with, its board file still means it
    reasons = tuple(dict.fromkeys(goal.protects for goal in seen if goal.protects))
    if reasons or not seen:
        return replace(one, state="protected", why=(*_why(seen), *reasons))
    return replace(one, state="unasked", why=_why(seen))


@dataclass(frozen=True)
class _Seen:
    """A goal, and what its board file says now. now: same, changed, gone, away (nor is its folder
    there), unread, unknown. why: in sentences. plain: whether the board file alone asks for it.
    protects: why it does not go."""

    file: str
    now: str
    why: tuple[str, ...]
    plain: bool
    protects: str


def _of_goal(goal: Goal, ledger: Ledger) -> _Seen:
    file = goal.board_file
    if not file:
        return _Seen("", "unknown", (), False, "it was solved of a board that stands in no file")
    protects = ""
    if goal.settings:
        options = " ".join(setting(name, value) for name, value in goal.settings.items())
        protects = f"it was solved with {options}"
    if not protects and goal.roots is not None and not _is_start(goal, ledger):
        protects = "it was solved from some states"
    if _is_gone(file):
        return _Seen(file, "gone", (f"{file} is gone",), False, protects)
    if not os.path.exists(file):
        said = f"{file} can not be looked for: its folder is not there, or can not be read"
        protects = protects or "its board file may have been moved, or its disk taken out"
        return _Seen(file, "away", (said,), False, protects)
    try:
        game = load_game(read_board(Path(file), goal.settings))
    except LuckbaseError as error:
        return _Seen(file, "unread", (f"its board file can not be read: {error}",), False,
                     protects or "its board file may be half-saved")  # fmt: skip
    same = rules_identity(game) == ledger.head.identity
    changed = (
        () if same else words.some(5, what_changed(ledger.head, game.board, game.rules_version))
    )
    return _Seen(file, "same" if same else "changed", changed, not protects, protects)


def _is_start(goal: Goal, ledger: Ledger) -> bool:
    """Whether a search is what a plain solve of the board does: below its start, to the end."""
    roots = goal.roots
    assert roots is not None
    try:
        game = load_game(ledger.board(goal.reach))
    except LuckbaseError:
        return False
    start = game.start()
    if start is None or game.has(Layout) or roots.using is not None:
        return False
    return roots.start == [game.describe(start)]


def _why(seen: Iterable[_Seen]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(said for goal in seen for said in goal.why))
