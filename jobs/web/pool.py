"""The tables that are served: listed by id, opened on demand and cached.

An id (``pig~tiny~1f6fa0d7efbd``) is looked up in a list of the tables in the folders given at the
start, so a request never becomes a path. The list is renewed regularly, so tables that are solved
meanwhile appear. An open table answers one query at a time and then stays open for the next; the
least recently used tables are closed. A table that has changed on disk is reopened.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from luckbase.cluster.answers.find import (
    Status,
    is_table,
    open_table,
    status_of,
    tables_on_grids,
)
from luckbase.cluster.answers.table import StoredTable
from luckbase.cluster.machine import memory_limit
from luckbase.cluster.store.manifest import NAME
from luckbase.cluster.store.storage import is_uri
from luckbase.solver import errors
from luckbase.solver.errors import LuckbaseError

OPEN_TABLES = 6
"""Number of tables that stay open; as many again may be in use."""
REMEMBERED_BYTES = 800 << 20
"""Bytes of decoded row groups cached for an open table: 50 million states with three players. All
tables together use at most a third of the machine's memory."""
LIST_SECONDS = 2.0
"""Maximum age of the list."""

_PATH = re.compile(r"(?<![\w.~/-])/(?!tables/)(?:[^\s/:;,'\"]+/)+[^\s/:;,'\"]*")
"""An absolute path with at least two names."""

Finder = Callable[[], Sequence[Path]]
"""Returns the current folders of tables."""
T = TypeVar("T")


@dataclass(frozen=True)
class TableEntry:
    """A table in the list."""

    id: str
    path: Path

    @property
    def names(self) -> tuple[str, str, str]:
        """The names of its game, board and rules identity, from its folders."""
        parts = self.path.absolute().parts[-3:]
        return (*("?",) * (3 - len(parts)), *parts)  # type: ignore[return-value]

    @property
    def place(self) -> str:
        """The table's name for commands, without the folders above its results."""
        return str(self.path) if is_uri(self.path) else "/".join(("results", *self.names))

    def without_paths(self, sentence: str) -> str:
        """Return a message about the table without local paths: `place` replaces its folder, and
        other files are given by name only."""
        for path in {str(self.path), str(self.path.absolute())}:
            sentence = sentence.replace(path, self.place)
        return _PATH.sub(lambda found: Path(found[0]).name, sentence)


class TablePool:
    """The tables that are served. Thread-safe."""

    def __init__(self, finders: Sequence[Finder], open_tables: int = OPEN_TABLES) -> None:
        self.finders, self.open_tables = list(finders), open_tables
        self.remembered = min(REMEMBERED_BYTES, memory_limit() // (3 * open_tables))
        self._lock = threading.Lock()
        self._listed: dict[str, TableEntry] = {}
        self._made = float("-inf")
        self._free: dict[StoredTable, tuple[str, object]] = {}
        """Idle open tables, most recently used last, with their ids and stamps."""
        self._status: dict[str, tuple[object, float, Status]] = {}
        self._boards: dict[str, Path | None] = {}
        """The board files of opened tables, by id."""

    # --- the list ------------------------------------------------------------------------------

    def listed(self) -> list[TableEntry]:
        """Return all tables, in the order in which they were found."""
        with self._lock:
            self._list_again()
            return list(self._listed.values())

    def find(self, id: str) -> TableEntry:
        """Return the table with an id. Raises MissingTableError."""
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
            name = name.encode(errors="replace").decode()  # URLs are in UTF-8
            id, again = known.get(path, name), 1
            while id in listed:
                again += 1
                id = f"{name}~{again}"
            listed[id] = TableEntry(id, path)
        self._listed, self._made = listed, time.monotonic()

    def status(self, entry: TableEntry) -> Status:
        """Return a table's status without opening its files; it may be some seconds old."""
        stamp, now = _stamp(entry.path), time.monotonic()
        known = self._status.get(entry.id)
        if known is None or known[0] != stamp or now - known[1] > 5 * LIST_SECONDS:
            known = (stamp, now, status_of(entry.path))
            self._status[entry.id] = known
        return known[2]

    def _stamp(self, entry: TableEntry) -> tuple[object, object]:
        return _stamp(entry.path), _changed(self._boards.get(entry.id))

    def smallest(self) -> list[str]:
        """Return the id of the smallest table of each game."""
        found: dict[str, tuple[int, str]] = {}
        for each in self.listed():
            if states := self.status(each).states:
                game = each.names[0]
                found[game] = min((states, each.id), found.get(game, (states, each.id)))
        return [id for _, id in found.values()]

    # --- open tables ---------------------------------------------------------------------------

    def ask(self, id: str, question: Callable[[StoredTable], T], *, strict: bool = False) -> T:
        """Return question(table) for an open table.

        strict: refuse a stale table.

        An error gets the attribute `fields`, the names of the fields of the table's states.
        """
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
            error.args = (entry.without_paths(str(error)),)
            raise

    def open(self, id: str) -> AbstractContextManager[StoredTable]:
        """Open the table with an id, for this thread only. Raises MissingTableError,
        CorruptTableError."""
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
        """Return the last used idle copy of a table if it is current; otherwise close its
        copies."""
        with self._lock:
            for table, key in reversed(self._free.items()):
                if key == (id, stamp):
                    del self._free[table]
                    return table
        self.forget(id)
        return None

    def _open(self, entry: TableEntry) -> tuple[StoredTable, tuple[object, object]]:
        """Open a table. Return it, and a stamp of its files from before it was read."""
        stood = _stamp(entry.path)
        table = open_table(entry.path)
        table.parts = [part for part in table.parts if part.paid]  # the page shows payoffs
        if type(table.game.board).grid and not is_uri(entry.path):
            paths = tables_on_grids(table.game.board, entry.path.parents[2], {})
            table.others = [partial(open_table, path) for path in paths]
        goals = table.manifest.goals[::-1]
        file = next((goal.board_file for goal in goals if goal.board_file), None)
        self._boards[entry.id] = Path(file) if file else None
        stamp = stood, _changed(self._boards.get(entry.id))  # before the board is read
        for part in table.parts:
            part.groups.max_bytes = self.remembered // len(table.parts)
        why = tuple(map(entry.without_paths, table.origin.stale))
        table.__dict__["origin"] = replace(table.origin, stale=why)
        return table, stamp

    def forget(self, *ids: str) -> None:
        """Close idle copies of these tables; without ids, of all tables."""
        with self._lock:
            for table, (id, _) in [*self._free.items()]:
                if not ids or id in ids:
                    del self._free[table]
                    table.close()


def _is_there(path: Path) -> bool:
    """True if a table still exists. For an object store, whose answers are slow, this is checked
    when the table is opened."""
    return is_uri(path) or is_table(path)


def _stamp(path: Path) -> object:
    """Return a value that changes when a table's manifest changes; for a store, every minute."""
    if is_uri(path):
        return int(time.monotonic()) // 60
    try:
        manifest = os.stat(f"{path}/{NAME}")
    except OSError:
        return None
    return manifest.st_mtime_ns, manifest.st_ino


def _changed(path: Path | None) -> object:
    """Return a value that changes when a file changes."""
    try:
        found = None if path is None else path.stat()
    except OSError:
        return None
    return found and (found.st_mtime_ns, found.st_size, found.st_ino)
