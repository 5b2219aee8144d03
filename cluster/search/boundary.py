"""The boundary of a search: the states at which it ends, for their payoffs are known.

They are rows of the part's own other files, all at once (`known_payoffs`) or, of a search by stages
of the same level, by stage (`KeyPart.files_in`): a worker reads those of the shard it finds.
Or they are rows of another table (`--using`, `UsedTable`), looked up by whoever finds states: no
process goes through what lies above that table, and none has all that the search meets of it. A
worker that sees another table there than the driver did, or none, says so, and the driver finds
that shard.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from luckbase.cluster.table.entries import read_ledger
from luckbase.cluster.table.format import number_rows, numbers_of, payoff_columns, row_groups
from luckbase.cluster.table.keyed import GIVEN, SOLVED, KeyPart, PayoffTable, concatenated
from luckbase.cluster.table.ledger import FileEntry, Ledger
from luckbase.cluster.table.storage import Storage, storage_at
from luckbase.solver.errors import TableError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.game import Game
from luckbase.solver.search.bellman import KNOWN, action_starts
from luckbase.solver.search.expand import expand
from luckbase.solver.search.keys import NO_KEYS, Keys, unpack_all

if TYPE_CHECKING:
    from luckbase.cluster.table.table import StoredTable
    from luckbase.solver.search.stages import KeyedPayoffs, KnownPayoffs

AT_ONCE, BYTES_AN_EDGE = 2, 400
"""So many times as many states are looked up at once as a table says; for their margins each edge
takes so many bytes, or less."""


def known_payoffs(roots: Ints, table: StoredTable | KeyPart, max_states: int) -> PayoffTable:
    """What a table, or a part of one, has of the states at which a search from `roots` (m, fields)
    ends; nothing but their payoffs if it is a part.

    Raises SearchLimitError, TableError.
    """
    from luckbase.cluster.table.lookup import known_below

    keys, values = known_below(table, roots, max_states)
    order = np.argsort(keys)
    if isinstance(table, KeyPart):
        return known_rows(keys[order], values[order])
    return given_rows(table, keys[order])


def given_rows(table: StoredTable, keys: Keys) -> PayoffTable:
    """The rows of states (n,) that a table holds, by key, as a search that ends there has them."""
    size, pieces = given_at_once(table), [nothing_known(table.game)]
    for at in range(0, len(keys), size):
        states = unpack_all(table.game.strides, keys[at : at + size])
        margin = table.margins_of(states)
        best, actor = _acting(table.game, states, table.stored_best(states))
        known = known_rows(keys[at : at + size], table.lookup(states)[0])
        pieces.append(replace(known, best=best, margin=margin, actor=actor))
    return concatenated(pieces)


def given_at_once(table: StoredTable) -> int:
    """How many states are looked up at once."""
    return AT_ONCE * table.states_at_once


def nothing_known(game: Game) -> PayoffTable:
    """No state."""
    return known_rows(np.empty(0, np.uint64), np.empty((0, game.players)))


def known_rows(keys: Keys, values: Floats) -> PayoffTable:
    """States that are known, by ascending key, and nothing but their payoffs."""
    n = len(keys)
    return PayoffTable(
        keys, values, np.full(n, KNOWN), np.full(n, GIVEN, np.uint8), np.zeros(n),
        np.full(n, np.nan), np.zeros(n, np.int8),
    )  # fmt: skip


def _acting(game: Game, states: Ints, names: list[str | None]) -> tuple[Ints, NDArray[np.int8]]:
    """The numbers of the named actions of states (n, fields), KNOWN without one; who acts."""
    edges = expand(game, states)
    actions = edges.actions[action_starts(edges)[1]]  # much fewer than edges
    numbers = {game.action_name(int(a)): int(a) for a in np.unique(actions)}
    codes = [KNOWN if name is None else numbers[name] for name in names]
    acts = np.where(edges.terminal, 0, edges.actors + 1)
    return np.array(codes, np.int64), acts.astype(np.int8)


def read_rows(
    storage: Storage, table: Path, files: Collection[FileEntry], game: Game
) -> KeyedPayoffs:
    """The keys, ascending, and payoffs (n, players) of files. Raises CorruptTableError."""
    names = payoff_columns(game)
    parts: list[KeyedPayoffs] = [(NO_KEYS, np.empty((0, game.players)))]
    for read in row_groups(storage, table, files, ["key", *names]):
        parts.append((numbers_of(read.column("key")), number_rows(read, names)))
    return joined(parts)


def joined(parts: Sequence[KeyedPayoffs]) -> KeyedPayoffs:
    """Lots of keys with their payoffs as one, ascending; no key stands twice."""
    keys = np.concatenate([keys for keys, _ in parts])
    order = np.argsort(keys, kind="stable")
    return keys[order], np.concatenate([values for _, values in parts])[order]


def digest_of(entries: Iterable[FileEntry]) -> str:
    """The SHA-256 of what files hold, "" for none."""
    checks = sorted((entry.name, entry.checks) for entry in entries)
    return hashlib.sha256(repr(checks).encode()).hexdigest() if checks else ""


REMEMBERED, DECODED = 64 << 20, 4
"""Bytes of decoded row groups that a worker remembers of each part, at most; so many times its
bytes on the disk a row group may take."""
PIECE = 1 << 16  # states that are looked up at once
_ledgers: dict[UsedTable, Ledger | None] = {}
"""What the tables say at which searches end that run: of this process, or the last one of others
for which it works; None of a table that is not to be seen here as they saw it."""
_of_others: list[UsedTable] = []
_opened: dict[tuple[int, UsedTable], UsedEnds] = {}
"""By thread: a table answers one at a time."""


@dataclass(frozen=True)
class UsedTable:
    """A table at which a search ends."""

    path: Path
    without: str
    """The part that is left out, for the search itself writes it; "" for none."""
    sha256: str
    """Of what the others held when the search began: by it the same is known elsewhere."""


class UsedEnds:
    """What a table knows of states: `find_stages.EndTable`."""

    def __init__(self, path: Path, ledger: Ledger, without: str) -> None:
        from luckbase.cluster.table.find import table_at

        self.table = table_at(path, ledger)
        self.table.parts = [part for part in self.table.parts if part.name != without]
        for part in self.table.parts:
            part.groups.max_bytes = REMEMBERED

    @property
    def sha256(self) -> str:
        """Of what is looked up."""
        names = {part.name for part in self.table.parts}
        files = self.table.ledger.files.values()
        said = sorted((file.name, file.checks) for file in files if file.part in names)
        return hashlib.sha256(repr((self.table.identity, said)).encode()).hexdigest()

    def memory(self, states: int) -> int:
        """Bytes that it takes, about, to look up so many states."""
        sizes = [sum(entry.bytes for entry in part.entries) for part in self.table.parts]
        remembered = sum(min(REMEMBERED, DECODED * size) for size in sizes)
        edges = self.table.game.max_edges * min(states, given_at_once(self.table))
        return remembered + BYTES_AN_EDGE * edges

    def holds(self, keys: Keys) -> NDArray[np.bool_]:
        """(n,) whether it holds each state, by key."""
        bits, is_there = self.table.game.strides, np.zeros(len(keys), bool)
        for at in range(0, len(keys), PIECE):
            piece = np.ascontiguousarray(keys[at : at + PIECE])
            is_there[at : at + PIECE] = self.table.holds(unpack_all(bits, piece))
        return is_there

    def known_payoffs(self, keys: Keys) -> KnownPayoffs:
        """The rows of states that it holds, by key."""
        from luckbase.solver.search.stages import KnownPayoffs

        rows = given_rows(self.table, np.ascontiguousarray(keys))
        return KnownPayoffs(rows.values, rows.best, rows.margin, rows.actor)


def used_table(path: Path, without: str = "") -> UsedTable:
    """The table in a folder but for a part, as it stands; until it lets go of it this process finds
    it so also when it has grown.

    Raises MissingTableError, CorruptTableError."""
    used, ledger = _as_it_stands(path, without)
    _ledgers[used] = ledger
    return used


def _as_it_stands(path: Path, without: str) -> tuple[UsedTable, Ledger]:
    ledger = read_ledger(storage_at(path), path)
    return UsedTable(path.absolute(), without, UsedEnds(path, ledger, without).sha256), ledger


def used_ends(used: UsedTable) -> UsedEnds | None:
    """What this thread looks up in a table, opened once; None where it is not to be seen as it
    was."""
    if used not in _ledgers:
        for before in _of_others:
            let_go(before)
        _of_others[:] = [used]
        try:
            current, read = _as_it_stands(used.path, used.without)
            _ledgers[used] = read if current == used else None
        except (TableError, OSError):
            _ledgers[used] = None
    ledger, at = _ledgers[used], (threading.get_ident(), used)
    if ledger is None:
        return None
    if at not in _opened:
        _opened[at] = UsedEnds(used.path, ledger, used.without)
    return _opened[at]


def let_go(used: UsedTable) -> None:
    """Close a table in all threads, none of which asks it now, and forget what it said."""
    for at in [at for at in _opened if at[1] == used]:
        _opened.pop(at).table.close()
    _ledgers.pop(used, None)


def undecided(storage: Storage, table: Path, entries: Iterable[FileEntry], tolerance: float) -> int:
    """How many solved rows of files of searches have an action that is as good as the best, as far
    as the tolerance tells. Raises CorruptTableError."""
    count = 0
    for read in row_groups(storage, table, entries, ["margin", "status"]):
        margin, status = map(numbers_of, read.columns)
        count += int(((margin <= tolerance) & (status == SOLVED)).sum())
    return count


def can_decide(game: Game, tolerance: float) -> bool:
    """Whether payoffs of which those closer than this, the tie tolerance and twice their error, can
    not be told apart tell every decision: what is closer is tied, by the rules (`table.off`)."""
    return tolerance <= 3 * game.tie_tolerance


def error_with_undecided(game: Game, margins: Floats, tolerance: float, precision: float) -> float:
    """How far off payoffs may be that are within `precision` where all decisions, by their margins,
    could be told: else as far as the game allows, for those who do not decide."""
    widest = float(np.ptp(game.payoff_range))
    decided = can_decide(game, tolerance) or not (margins <= tolerance).any()
    return min(widest, precision) if decided else widest
