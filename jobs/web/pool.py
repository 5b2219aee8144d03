"""The tables that are served: found beforehand, listed by id, opened as they are asked for.

An id (``pig~tiny~1f6fa0d7efbd``) is looked up in a list that was made from what stands under the
folders named at the start; nothing of a request ever becomes a path. The list is made again now and
then, so tables that are solved meanwhile appear. An opened table answers one question at a time;
afterwards it stays open for the next, and those that were asked longest ago are closed. One that
has changed on the disk since it was opened is opened again.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from luckbase.cluster.machine import memory_limit
from luckbase.cluster.table.find import Status, is_table, open_table, status_of
from luckbase.cluster.table.manifest import NAME
from luckbase.cluster.table.storage import is_uri
from luckbase.cluster.table.table import StoredTable
from luckbase.solver import errors
from luckbase.solver.errors import LuckbaseError

OPEN_TABLES = 6
"""Tables that stay open; as many may be in use."""
REMEMBERED_BYTES = 800 << 20
"""Of decoded row groups that an open table remembers, 50 million states of three players; all
together no more than a third of the machine's memory."""
LIST_SECONDS = 2.0
"""How old the list may get."""

_PATH = re.compile(r"(?<![\w.~/-])/(?!tables/)(?:[^\s/:;,'\"]+/)+[^\s/:;,'\"]*")
"""A path from the root, of two names or more."""

Finder = Callable[[], Sequence[Path]]
"""Gives the folders of tables as they are now."""
T = TypeVar("T")


@dataclass(frozen=True)
class TableEntry:
    """A table in the list: its id, and its folder."""

    id: str
    path: Path

    @property
    def names(self) -> tuple[str, str, str]:
        """The names of its game, board and rules identity, as its folders have them."""
        parts = self.path.absolute().parts[-3:]
        return (*("?",) * (3 - len(parts)), *parts)  # type: ignore[return-value]


class TablePool:
    """The tables that are served; safe to use from any thread.

    says_paths: sentences may name folders of this machine; for its own people only.
    """

    def __init__(self, finders: Sequence[Finder], open_tables: int = OPEN_TABLES) -> None:
        self.finders, self.open_tables, self.says_paths = list(finders), open_tables, True
        self.remembered = min(REMEMBERED_BYTES, memory_limit() // (3 * open_tables))
        self._lock = threading.Lock()
        self._listed: dict[str, TableEntry] = {}
        self._made = float("-inf")
        self._free: dict[StoredTable, tuple[str, object]] = {}
        """Open tables that nobody is using, the last used one last: their ids, and their stamps."""
        self._status: dict[str, tuple[object, float, Status]] = {}
        self._boards: dict[str, Path | None] = {}
        """The board files of the tables that were opened, by their ids."""

    # --- the list ------------------------------------------------------------------------------

    def listed(self) -> list[TableEntry]:
        """Every table, in the order in which it was found."""
        with self._lock:
            self._list_again()
            return list(self._listed.values())

    def find(self, id: str) -> TableEntry:
        """Return the table of that id. Raises MissingTableError."""
        found = self._listed.get(id)
        if found is None or not _is_there(found.path):
            with self._lock:
                self._list_again()
                found = self._listed.get(id)
        if found is None or not _is_there(found.path):
            raise errors.MissingTableError(f"unknown table '{id[:60]}'; GET /tables lists all")
        return found

    def _list_again(self) -> None:
        if time.monotonic() - self._made < LIST_SECONDS:
            return
        paths = dict.fromkeys(path for finder in self.finders for path in finder())
        known = {each.path: each.id for each in self._listed.values()}
        listed: dict[str, TableEntry] = {}
        for path in paths:
            name = "~".join(TableEntry("", path).names)
            name = name.encode(errors="replace").decode()  # an address is in UTF-8
            id, again = known.get(path, name), 1
            while id in listed:
                again += 1
                id = f"{name}~{again}"
            listed[id] = TableEntry(id, path)
        self._listed, self._made = listed, time.monotonic()

    def status(self, entry: TableEntry) -> Status:
        """What is known of a table without opening its files; some seconds old at most."""
        stamp, now = _stamp(entry.path), time.monotonic()
        known = self._status.get(entry.id)
        if known is None or known[0] != stamp or now - known[1] > 5 * LIST_SECONDS:
            known = (stamp, now, status_of(entry.path))
            self._status[entry.id] = known
        return known[2]

    def _stamp(self, entry: TableEntry) -> tuple[object, object]:
        return _stamp(entry.path), _changed(self._boards.get(entry.id))

    def without_paths(self, sentence: str, entry: TableEntry) -> str:
        """A sentence about a table as those who ask may read it: where they are of other machines,
        its id in place of its folder, and files by their last names."""
        if self.says_paths:
            return sentence
        for path in {str(entry.path), str(entry.path.absolute())}:
            sentence = sentence.replace(path, entry.id)
        return _PATH.sub(lambda found: Path(found[0]).name, sentence)

    def smallest(self) -> list[str]:
        """The ids of the smallest table of each game."""
        found: dict[str, tuple[int, str]] = {}
        for each in self.listed():
            if states := self.status(each).states:
                game = each.names[0]
                found[game] = min((states, each.id), found.get(game, (states, each.id)))
        return [id for _, id in found.values()]

    # --- open tables ---------------------------------------------------------------------------

    def ask(self, id: str, question: Callable[[StoredTable], T], *, strict: bool = False) -> T:
        """What a question of an open table gives; strict: a stale one is refused. An error has the
        `fields` of the table's states, by name."""
        entry = self.find(id)
        try:
            with self._opened(entry) as table:
                try:
                    if strict and table.origin.stale:
                        why = "; ".join(table.origin.stale[:3])
                        raise errors.StaleTableError(f"{id}: this table is stale: {why}")
                    return question(table)
                except LuckbaseError as error:
                    error.fields = table.game.fields.names  # type: ignore[attr-defined]
                    raise
        except LuckbaseError as error:
            error.args = (self.without_paths(str(error), entry),)
            raise

    def open(self, id: str) -> AbstractContextManager[StoredTable]:
        """The table of that id, open, for this thread alone.

        Raises MissingTableError, CorruptTableError.
        """
        return self._opened(self.find(id))

    @contextmanager
    def _opened(self, entry: TableEntry) -> Iterator[StoredTable]:
        id, stamp, sound = entry.id, self._stamp(entry), True
        table = self._take(id, stamp)
        if table is None:
            table, stamp = self._open(entry)
        try:
            yield table
        except (errors.CorruptTableError, OSError) as error:
            sound = False
            if not is_table(entry.path):
                raise errors.MissingTableError(f"{id}: is gone") from None
            if isinstance(error, OSError):
                why = f"{id}: cannot be read: {error.strerror or error}"
                raise errors.CorruptTableError(why) from None
            raise
        finally:
            with self._lock:
                if sound:
                    self._free[table] = (id, stamp)
                for each in [*self._free][: -self.open_tables] if sound else [table]:
                    self._free.pop(each, None)
                    each.close()

    def _take(self, id: str, stamp: object) -> StoredTable | None:
        """The last used copy of a table as it stands on the disk; closes those of one that has
        changed."""
        with self._lock:
            for table, key in reversed(self._free.items()):
                if key == (id, stamp):
                    del self._free[table]
                    return table
        self.forget(id)
        return None

    def _open(self, entry: TableEntry) -> tuple[StoredTable, tuple[object, object]]:
        """The table, opened, and how it and its board stood at the latest when it was."""
        stood = _stamp(entry.path)
        table = open_table(entry.path)
        table.parts = [part for part in table.parts if part.paid]  # the page shows payoffs
        goals = table.manifest.goals[::-1]
        file = next((goal.board_file for goal in goals if goal.board_file), None)
        self._boards[entry.id] = Path(file) if file else None
        stamp = stood, _changed(self._boards.get(entry.id))  # before the board is read
        for part in table.parts:
            part.groups.max_bytes = self.remembered // len(table.parts)
        if not self.says_paths:
            why = tuple(self.without_paths(each, entry) for each in table.origin.stale)
            table.__dict__["origin"] = replace(table.origin, stale=why)
        return table, stamp

    def forget(self, *ids: str) -> None:
        """Close what is open of tables and not in use; of all if none is named."""
        with self._lock:
            for table, (id, _) in [*self._free.items()]:
                if not ids or id in ids:
                    del self._free[table]
                    table.close()


def _is_there(path: Path) -> bool:
    """Whether a table is still there; of a store, whose every answer takes a while, it is said when
    the table is opened."""
    return is_uri(path) or is_table(path)


def _stamp(path: Path) -> object:
    """What changes when a table does: its manifest; of a store, each minute that begins."""
    if is_uri(path):
        return int(time.monotonic()) // 60
    try:
        manifest = os.stat(f"{path}/{NAME}")
    except OSError:
        return None
    return manifest.st_mtime_ns, manifest.st_ino


def _changed(path: Path | None) -> object:
    """What changes when a file does."""
    try:
        found = None if path is None else path.stat()
    except OSError:
        return None
    return found and (found.st_mtime_ns, found.st_size, found.st_ino)
