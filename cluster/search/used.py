"""The table at which a search ends (`--using`), asked by whoever finds states.

No process goes through what lies above that table, and none holds all that the search meets of it:
each worker that finds a shard opens the table itself. One that sees another table there than the
driver did, or none, says so, and the driver finds that shard.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from luckbase.cluster.search.given import PIECE_BYTES, given_rows
from luckbase.cluster.table.ledger import Ledger, read_ledger
from luckbase.cluster.table.part import FilePart
from luckbase.cluster.table.storage import Folder
from luckbase.cluster.table.stored import StoredTable
from luckbase.solver.errors import TableError
from luckbase.solver.graph.keys import Keys, unpack_all
from luckbase.solver.graph.stage import Given

REMEMBERED = 64 << 20
"""Bytes of decoded row groups that a worker remembers of each part."""
USED_BYTES = REMEMBERED + PIECE_BYTES
"""That a task takes which asks a table."""
_ledgers: dict[UsedTable, Ledger] = {}
_own = threading.local()


@dataclass(frozen=True)
class UsedTable:
    """A table at which a search ends: its folder, the part that is not asked, for that search
    itself writes it, and the SHA-256 of what the others held when it began, by which the same is
    known elsewhere."""

    path: Path
    without: str
    sha256: str


class UsedEnds:
    """What a table knows of states: `find_stages.Ends`."""

    def __init__(self, table: StoredTable, without: str) -> None:
        self.table = table
        table.parts = [part for part in table.parts if part.name != without]
        for part in table.parts:
            if isinstance(part, FilePart):
                part.most_held = REMEMBERED

    def holds(self, keys: Keys) -> NDArray[np.bool_]:
        """(n,) whether it holds each state, by key."""
        if not len(keys):
            return np.zeros(0, bool)
        return self.table.holds(unpack_all(self.table.game.bits, np.ascontiguousarray(keys)))

    def given(self, keys: Keys) -> Given:
        """The rows of states that it holds, by key."""
        rows = given_rows(self.table, np.ascontiguousarray(keys))
        return Given(rows.values, rows.best, rows.margin, rows.actor)


def used_table(path: Path, without: str = "") -> UsedTable:
    """The table in a folder but for a part, as it stands; this process will find it so also when it
    has grown.

    Raises MissingTableError, CorruptTableError."""
    ledger = read_ledger(Folder(path), path)
    used = UsedTable(path.absolute(), without, _sha256(ledger, without))
    _ledgers[used] = ledger
    return used


def used_ends(used: UsedTable) -> UsedEnds | None:
    """What this thread asks of a table, opened once; None where it is not to be seen as it was."""
    opened: OrderedDict[UsedTable, UsedEnds] = _own.__dict__.setdefault("opened", OrderedDict())
    if used not in opened:
        if used not in _ledgers:
            try:
                found = used_table(used.path, used.without)
            except (TableError, OSError):
                return None
            if found != used:
                return None
        while opened:  # of a search before
            opened.popitem()[1].table.close()
        opened[used] = UsedEnds(StoredTable(used.path, _ledgers[used]), used.without)
    return opened[used]


def _sha256(ledger: Ledger, without: str) -> str:
    said = sorted((one.name, one.checks) for one in ledger.files.values() if one.part != without)
    return hashlib.sha256(repr((ledger.head.identity, said)).encode()).hexdigest()
