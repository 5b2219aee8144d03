"""The table at which a search ends (`--using`), asked by whoever finds states.

No process goes through what lies above that table, and none holds all that the search meets of it:
each worker that finds a shard opens the table itself. One that sees another table there than the
driver did, or none, says so, and the driver finds that shard.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from luckbase.cluster.search.given import BYTES_AN_EDGE, given_at_once, given_rows
from luckbase.cluster.table.keyed import SOLVED
from luckbase.cluster.table.ledger import Ledger, read_ledger
from luckbase.cluster.table.lines import FileEntry
from luckbase.cluster.table.parquet import numbers_of, row_groups
from luckbase.cluster.table.part import FilePart
from luckbase.cluster.table.storage import Folder, Storage
from luckbase.cluster.table.table import StoredTable
from luckbase.solver.errors import TableError
from luckbase.solver.game.arrays import Floats
from luckbase.solver.game.game import Game
from luckbase.solver.graph.explore import PIECE
from luckbase.solver.graph.keys import Keys, unpack_all
from luckbase.solver.graph.stage import Given

REMEMBERED = 64 << 20
"""Bytes of decoded row groups that a worker remembers of each part, at most."""
DECODED = 4
"""So many times its bytes on the disk a row group may take."""
_ledgers: dict[UsedTable, Ledger] = {}
"""What the tables said that this process found at the beginning of its searches, which run."""
_of_others: list[UsedTable] = []
"""The one of them at which a search of another process ends, for which this one works."""
_refused: set[UsedTable] = set()
"""Those that this process does not see as others did."""
_opened: dict[tuple[int, UsedTable], UsedEnds] = {}
"""By thread: a table answers one at a time."""


@dataclass(frozen=True)
class UsedTable:
    """A table at which a search ends: its folder; the part that is not asked, "" for none, for that
    search itself writes it; and the SHA-256 of what the others held when it began, by which the
    same is known elsewhere."""

    path: Path
    without: str
    sha256: str


class UsedEnds:
    """What a table knows of states: `find_stages.Ends`."""

    def __init__(self, path: Path, ledger: Ledger, without: str) -> None:
        self.table = StoredTable(path, ledger)
        parts = [one for one in self.table.parts if one.name != without]
        self.table.parts, self._remembered = list(parts), 0
        for part in parts:
            assert isinstance(part, FilePart)
            part.most_held = REMEMBERED
            on_disk = sum(entry.bytes for entry in part.entries)
            self._remembered += min(REMEMBERED, DECODED * on_disk)

    @property
    def sha256(self) -> str:
        """Of what is asked."""
        names = {part.name for part in self.table.parts}
        files = self.table.ledger.files.values()
        said = sorted((one.name, one.checks) for one in files if one.part in names)
        return hashlib.sha256(repr((self.table.identity, said)).encode()).hexdigest()

    def memory(self, states: int) -> int:
        """Bytes that it takes, about, to ask it of so many states."""
        at_once = min(states, given_at_once(self.table))
        return self._remembered + BYTES_AN_EDGE * self.table.game.max_edges * at_once

    def holds(self, keys: Keys) -> NDArray[np.bool_]:
        """(n,) whether it holds each state, by key."""
        bits, found = self.table.game.bits, np.zeros(len(keys), bool)
        for at in range(0, len(keys), PIECE):
            some = np.ascontiguousarray(keys[at : at + PIECE])
            found[at : at + PIECE] = self.table.holds(unpack_all(bits, some))
        return found

    def given(self, keys: Keys) -> Given:
        """The rows of states that it holds, by key."""
        rows = given_rows(self.table, np.ascontiguousarray(keys))
        return Given(rows.values, rows.best, rows.margin, rows.actor)


def used_table(path: Path, without: str = "") -> UsedTable:
    """The table in a folder but for a part, as it stands; until it lets go of it this process finds
    it so also when it has grown.

    Raises MissingTableError, CorruptTableError."""
    used, ledger = _as_it_stands(path, without)
    _ledgers[used] = ledger
    return used


def _as_it_stands(path: Path, without: str) -> tuple[UsedTable, Ledger]:
    ledger = read_ledger(Folder(path), path)
    return UsedTable(path.absolute(), without, UsedEnds(path, ledger, without).sha256), ledger


def used_ends(used: UsedTable) -> UsedEnds | None:
    """What this thread asks of a table, opened once; None where it is not to be seen as it was."""
    if used in _refused:
        return None
    if used not in _ledgers:
        for before in _of_others:
            let_go(before)
        try:
            found, ledger = _as_it_stands(used.path, used.without)
        except (TableError, OSError):
            found = None
        if found != used:
            _refused.add(used)
            return None
        _ledgers[used], _of_others[:] = ledger, [used]
    at = threading.get_ident(), used
    if at not in _opened:
        _opened[at] = UsedEnds(used.path, _ledgers[used], used.without)
    return _opened[at]


def undecided(storage: Storage, table: Path, entries: Iterable[FileEntry], tolerance: float) -> int:
    """How many solved rows of files of searches have an action that is as good as the best, as far
    as the tolerance tells. Raises CorruptTableError."""
    found = 0
    for read in row_groups(storage, table, entries, ["margin", "status"]):
        margin, status = map(numbers_of, read.columns)
        found += int(((margin <= tolerance) & (status == SOLVED)).sum())
    return found


def tells(game: Game, tolerance: float) -> bool:
    """Whether payoffs of which those closer than this, the tie tolerance and twice their error, can
    not be told apart tell every decision: what is closer is tied, by the rules (`table.off`)."""
    return tolerance <= 3 * game.tie_tolerance


def with_untold(game: Game, margins: Floats, tolerance: float, precision: float) -> float:
    """How far off payoffs may be that are within `precision` where all decisions, by their margins,
    could be told: else as far as the game allows, for those who do not decide."""
    most = float(np.ptp(game.payoff_range))
    told = tells(game, tolerance) or not (margins <= tolerance).any()
    return min(most, precision) if told else most


def let_go(used: UsedTable) -> None:
    """Close a table in all threads, none of which asks it now, and forget what it said."""
    for at in [at for at in _opened if at[1] == used]:
        _opened.pop(at).table.close()
    _ledgers.pop(used, None)
