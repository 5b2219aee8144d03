"""The tables that are served: found beforehand, listed by id, opened as they are asked for.

An id (``pig~tiny~1f6fa0d7efbd``) is looked up in a list that was made from what stands under the
folders named at the start; nothing of a request ever becomes a path. The list is made again now and
then, so tables that are solved meanwhile appear. An opened table answers one question at a time;
each is opened up to `COPIES` times, so that a long question does not hold up short ones. The tables
that were asked for least are closed when there are more than `OPEN_TABLES`. A table that has
changed on the disk since it was opened is opened again.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from luckbase.cluster.machine import memory_limit
from luckbase.cluster.table.find import is_table, tables_below
from luckbase.cluster.table.folder import HEAD
from luckbase.cluster.table.status import Status, status_of
from luckbase.cluster.table.table import StoredTable, open_table
from luckbase.solver.errors import CorruptTableError, MissingTableError

OPEN_TABLES = 4
"""Tables that stay open."""
COPIES = 2
"""How often one table is opened at once."""
FIRST_BYTES, OTHER_BYTES = 640 << 20, 64 << 20
"""Of decoded row groups that a table's first copy remembers, and each other one; with `OPEN_TABLES`
tables 2.8 GB at most, and no more than half of the machine's memory."""
LIST_SECONDS, LEDGER_SECONDS = 2.0, 1.0
"""How old the list may get, and what is known of a table's ledger."""

_PATH = re.compile(r"(?<![\w.~/-])/(?!api/)(?:[^\s/:;,'\"]+/)+[^\s/:;,'\"]*")
"""A path from the root, of two names or more."""

Finder = Callable[[], Sequence[Path]]
"""Gives the folders of tables as they are now."""


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


@dataclass
class _Copies:
    """One table's open copies: those that nobody is using, and how many there are."""

    stamp: object
    free: list[StoredTable] = field(default_factory=list)
    count: int = 0
    checked: float = float("-inf")


class TablePool:
    """The tables that are served; safe to use from any thread."""

    def __init__(self, finders: Sequence[Finder], open_tables: int = OPEN_TABLES) -> None:
        """`says_paths`: sentences may name folders of this machine; for its own people only."""
        self.finders, self.open_tables = list(finders), open_tables
        self.says_paths = True
        share = memory_limit() // (2 * open_tables) - OTHER_BYTES
        self.first_bytes = max(OTHER_BYTES, min(FIRST_BYTES, share))
        self._lock = threading.RLock()
        self._freed = threading.Condition(self._lock)
        self._listed: dict[str, TableEntry] = {}
        self._made = float("-inf")
        self._opened: OrderedDict[str, _Copies] = OrderedDict()
        self._status: dict[str, tuple[object, float, Status]] = {}

    # --- the list ------------------------------------------------------------------------------

    def listed(self) -> list[TableEntry]:
        """Every table, in the order in which it was found."""
        with self._lock:
            self._list_again()
            return list(self._listed.values())

    def find(self, id: str) -> TableEntry:
        """The table of that id. Raises MissingTableError."""
        with self._lock:
            if id not in self._listed or not is_table(self._listed[id].path):
                self._list_again()
            found = self._listed.get(id)
        if found is None or not is_table(found.path):
            raise MissingTableError(
                f"'{id[:60]}' is no table here; GET /api/tables lists those that are"
            )
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

    def without_paths(self, sentence: str, entry: TableEntry) -> str:
        """A sentence about a table as those who ask may read it: where they are of other machines,
        its id in place of its folder, and files by their last names."""
        if self.says_paths:
            return sentence
        for path in {str(entry.path), str(entry.path.absolute())}:
            sentence = sentence.replace(path, entry.id)
        return _PATH.sub(lambda found: Path(found[0]).name, sentence)

    # --- open tables ---------------------------------------------------------------------------

    @contextmanager
    def open(self, id: str) -> Iterator[StoredTable]:
        """The table of that id, open, for this thread alone.

        Raises MissingTableError, CorruptTableError.
        """
        entry = self.find(id)
        table, copies = self._take(entry)
        sound = False
        try:
            yield table
            sound = True
        except (CorruptTableError, OSError) as error:
            if not is_table(entry.path):
                raise MissingTableError(f"{id}: is not there any more") from None
            if isinstance(error, OSError):
                why = f"{id}: can not be read: {error.strerror or error}"
                raise CorruptTableError(why) from None
            raise
        except BaseException:
            sound = True
            raise
        finally:
            self._give_back(entry.id, table, copies, keep=sound)

    def _take(self, entry: TableEntry) -> tuple[StoredTable, _Copies]:
        with self._freed:
            while True:
                copies = self._copies(entry)
                if copies.free:
                    table = max(copies.free, key=_remembers)
                    copies.free.remove(table)
                    return table, copies
                if copies.count < COPIES:
                    copies.count += 1
                    first = copies.count == 1
                    break
                self._freed.wait()
        try:
            table = open_table(entry.path)
            _remember(table, self.first_bytes if first else OTHER_BYTES)
            if not self.says_paths:
                why = tuple(self.without_paths(each, entry) for each in table.origin.stale)
                table.__dict__["origin"] = replace(table.origin, stale=why)
            return table, copies
        except BaseException:
            with self._freed:
                copies.count -= 1
                self._freed.notify_all()
            raise

    def _copies(self, entry: TableEntry) -> _Copies:
        """The copies of a table as it stands on the disk; closes those of one that has changed."""
        copies, now = self._opened.get(entry.id), time.monotonic()
        if copies is None or now - copies.checked > LEDGER_SECONDS:
            stamp = _stamp(entry.path)
            if copies is None or copies.stamp != stamp:
                self._close(entry.id)
                copies = self._opened[entry.id] = _Copies(stamp)
            copies.checked = now
        self._opened.move_to_end(entry.id)
        while len(self._opened) > self.open_tables:
            self._close(next(iter(self._opened)))
        return copies

    def _give_back(self, id: str, table: StoredTable, copies: _Copies, keep: bool) -> None:
        with self._freed:
            if self._opened.get(id) is copies:
                if keep:
                    copies.free.append(table)
                    self._freed.notify_all()
                    return
                copies.count -= 1
                copies.checked = float("-inf")
            self._freed.notify_all()
        table.close()

    def _close(self, id: str) -> None:
        """Close what is open of a table; what is in use is closed when it is given back."""
        copies = self._opened.pop(id, None)
        for table in copies.free if copies is not None else ():
            table.close()

    def forget(self, id: str) -> None:
        """Close what is open of a table."""
        with self._lock:
            self._close(id)

    def close(self) -> None:
        """Close everything."""
        with self._lock:
            for id in list(self._opened):
                self._close(id)


def _remember(table: StoredTable, size: int) -> None:
    """Have a table remember so many bytes of decoded row groups, its parts together."""
    parts = table.parts
    for part in parts:
        part.groups.max_bytes = size // len(parts)


def _remembers(table: StoredTable) -> int:
    return sum(part.groups.max_bytes for part in table.parts)


def _stamp(path: Path) -> object:
    """What changes when a table does: its head and the names in its ledger."""
    try:
        with os.scandir(path / "ledger") as entries:
            names = sorted(entry.name for entry in entries)
        head = (path / HEAD).stat()
    except OSError:
        return None
    return names, head.st_mtime_ns, head.st_ino


# --- where tables are found ---------------------------------------------------------------------


def under(folder: Path) -> Finder:
    """The tables under a folder: results, those of a game or a board in them, or a table itself."""
    return partial(tables_below, folder)
