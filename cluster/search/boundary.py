"""The boundary of a search: the states at which it ends, for their payoffs are known.

They are rows of the part's own other files, all at once (`known_payoffs`) or, of a search by stages
of the same level, by stage (`StoredStages`): read where they are wanted, those of a shard by the
worker that finds it. Or they are rows of another table (`--using`, `UsedTable`), asked by whoever
finds states: no process goes through what lies above that table, and none holds all that the search
meets of it. A worker that sees another table there than the driver did, or none, says so, and the
driver finds that shard.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from luckbase.cluster.table.folder import read_ledger
from luckbase.cluster.table.format import PayoffTable
from luckbase.cluster.table.keyed import GIVEN, SOLVED, KeyPart
from luckbase.cluster.table.ledger import FileEntry, Ledger, made_by
from luckbase.cluster.table.lookup import known_below
from luckbase.cluster.table.parquet import numbers_of, payoff_columns, row_groups
from luckbase.cluster.table.storage import Folder, Storage
from luckbase.cluster.table.table import StoredTable
from luckbase.solver.errors import TableError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.game import Game
from luckbase.solver.search.bellman import KNOWN, action_starts
from luckbase.solver.search.expand import expand
from luckbase.solver.search.explore import PIECE
from luckbase.solver.search.keys import Keys, unpack_all
from luckbase.solver.search.stages import NO_KEYS, WHOLE, Box, Given, Known, Stages

AT_ONCE, BYTES_AN_EDGE = 2, 400
"""So many times as many states are looked up at once as a table says; for their margins each edge
takes so many bytes, or less."""


def known_payoffs(
    game: Game, roots: Ints, held: StoredTable | KeyPart | None, max_states: int
) -> PayoffTable:
    """What a table, or a part of one, has of the states at which a search from `roots` (m, fields)
    ends; nothing but their payoffs if it is a part.

    Raises SearchLimitError, TableError.
    """
    if held is None:
        return nothing_known(game)
    keys, values = known_below(held, roots, max_states)
    order = np.argsort(keys)
    if isinstance(held, StoredTable):
        return given_rows(held, keys[order])
    return known_rows(keys[order], values[order])


def given_rows(table: StoredTable, keys: Keys) -> PayoffTable:
    """The rows of states (n,) that a table holds, by key, as a search that ends there has them."""
    if not len(keys):
        return nothing_known(table.game)
    size = given_at_once(table)
    pieces = [_given_piece(table, keys[at : at + size]) for at in range(0, len(keys), size)]
    columns = [[getattr(one, each.name) for one in pieces] for each in fields(PayoffTable)]
    return PayoffTable(*map(np.concatenate, columns))


def given_at_once(table: StoredTable) -> int:
    """How many states are looked up at once."""
    return AT_ONCE * table.states_at_once


def _given_piece(table: StoredTable, keys: Keys) -> PayoffTable:
    game, status = table.game, np.full(len(keys), GIVEN, np.uint8)
    states = unpack_all(game.bits, keys)
    names, margin, _ = table.best_of(states)
    best, actor = _acting(game, states, names)
    return PayoffTable(
        keys, table.lookup(states)[0], best, status, np.zeros(len(keys)), margin, actor
    )


def nothing_known(game: Game) -> PayoffTable:
    """No state."""
    return known_rows(np.empty(0, np.uint64), np.empty((0, game.players)))


def known_rows(keys: Keys, values: Floats) -> PayoffTable:
    """States that are known, by ascending key, and nothing but their payoffs."""
    status = np.full(len(keys), GIVEN, np.uint8)
    return PayoffTable(keys, values, np.full(len(keys), KNOWN), status)


def _acting(game: Game, states: Ints, names: list[str | None]) -> tuple[Ints, NDArray[np.int8]]:
    """The numbers of the named actions of states (n, fields), KNOWN without one; who acts."""
    edges = expand(game, states)
    actions = edges.actions[action_starts(edges)[1]]  # much fewer than edges
    numbers = {game.action_name(int(a)): int(a) for a in np.unique(actions)}
    found = [KNOWN if name is None else numbers[name] for name in names]
    acts = np.where(edges.terminal, 0, edges.actors + 1)
    return np.array(found, np.int64), acts.astype(np.int8)


@dataclass(frozen=True)
class StoredStages:
    """The files of a table that hold states of each stage; keys ascend in a file."""

    stages: Stages
    table: Path
    of: dict[int, list[FileEntry]]

    def files(self, numbers: Sequence[int], box: Box) -> tuple[FileEntry, ...]:
        """Those that may hold states of a box of these stages."""
        found = {one.name: one for number in numbers for one in self.of.get(number, ())}
        if box.whole or not found:
            return tuple(found.values())
        boxes = [(name, Box(*ends)) for name, one in found.items() for ends in one.boxes]
        met = {name for name, one in found.items() if not one.boxes}
        if boxes:
            there = self.stages.meet([box], [one for _, one in boxes])[0].tolist()
            met |= {name for (name, _), meets in zip(boxes, there, strict=True) if meets}
        return tuple(one for name, one in found.items() if name in met)

    def keys(self, stage: int) -> Keys:
        """The keys of a stage that are there, ascending."""
        files = self.files([stage], WHOLE)
        return read_stored(Folder(self.table), self.table, files, self.stages, ([stage], WHOLE))[0]

    def digest(self) -> bytes:
        """What is there, as a SHA-256."""
        names = {one.name: one.checks for files in self.of.values() for one in files}
        return hashlib.sha256(repr(sorted(names.items())).encode()).digest()


def stored_stages(
    stages: Stages, table: Path, ledger: Ledger, entries: Collection[FileEntry]
) -> StoredStages | None:
    """The files `entries` of a table by stages; those of searches in one piece are left out. None
    where one has stages of another level."""
    ours = stages.level.as_json()
    of: dict[int, list[FileEntry]] = {}
    levels = {ask: line.level for ask, line in ledger.levels.items()}
    for entry in entries:
        its = [level for ask, level in levels.items() if made_by(entry.name, ask)]
        if entry.stages and its != [ours]:
            return None
        for stage in entry.stages:
            of.setdefault(stage, []).append(entry)
    return StoredStages(stages, table, of)


def read_stored(
    storage: Storage, table: Path, files: Collection[FileEntry], stages: Stages,
    where: tuple[Collection[int], Box], payoffs: bool = False,
) -> Known:  # fmt: skip
    """The keys, ascending, of what files have of a box of some stages; their payoffs (n, players),
    if asked for. where: the stages, the box.

    Raises CorruptTableError.
    """
    numbers, box = np.array(sorted(where[0]), np.uint64), where[1]

    def inside(keys: Keys) -> NDArray[np.bool_]:
        here = np.isin(stages.of(keys), numbers)
        return here if box.whole else here & (stages.boxes_of(keys, [box]) == 0)

    return _read(storage, table, files, stages.game, inside, payoffs)


def read_rows(storage: Storage, table: Path, files: Collection[FileEntry], game: Game) -> Known:
    """The keys, ascending, and payoffs (n, players) of all rows of files. Raises
    CorruptTableError."""
    return _read(storage, table, files, game, lambda keys: np.ones(len(keys), bool), True)


def _read(
    storage: Storage, table: Path, files: Collection[FileEntry], game: Game,
    inside: Callable[[Keys], NDArray[np.bool_]], payoffs: bool,
) -> Known:  # fmt: skip
    names = payoff_columns(game) if payoffs else []
    keys, values = [NO_KEYS], [np.empty((0, game.players))]
    for read in row_groups(storage, table, files, ["key", *names]):
        these = numbers_of(read.column("key")).copy()  # numba takes none that is read-only
        here = inside(these)
        keys.append(these[here])
        if payoffs:
            columns = [numbers_of(read.column(name))[here] for name in names]
            values.append(np.stack(columns, axis=1))
    every, rows = np.concatenate(keys), np.concatenate(values)
    order = np.argsort(every, kind="stable")
    return every[order], rows[order] if payoffs else rows


def joined(one: Known, other: Known) -> Known:
    """Two lots of keys, each ascending, none in both, with their payoffs."""
    if not len(one[0]) or not len(other[0]):
        return one if len(one[0]) else other
    keys = np.concatenate([one[0], other[0]])
    order = np.argsort(keys, kind="stable")
    return keys[order], np.concatenate([one[1], other[1]])[order]


def digest_of(given: PayoffTable, held: StoredStages | None) -> str:
    """The SHA-256 of all that is known before a search, "" for nothing."""
    content = given.keys.tobytes() + given.values.tobytes()
    if held is not None and held.of:
        content += held.digest()
    return hashlib.sha256(content).hexdigest() if content else ""


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
            part.groups.max_bytes = REMEMBERED
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


def can_decide(game: Game, tolerance: float) -> bool:
    """Whether payoffs of which those closer than this, the tie tolerance and twice their error, can
    not be told apart tell every decision: what is closer is tied, by the rules (`table.off`)."""
    return tolerance <= 3 * game.tie_tolerance


def error_with_undecided(game: Game, margins: Floats, tolerance: float, precision: float) -> float:
    """How far off payoffs may be that are within `precision` where all decisions, by their margins,
    could be told: else as far as the game allows, for those who do not decide."""
    most = float(np.ptp(game.payoff_range))
    decided = can_decide(game, tolerance) or not (margins <= tolerance).any()
    return min(most, precision) if decided else most


def let_go(used: UsedTable) -> None:
    """Close a table in all threads, none of which asks it now, and forget what it said."""
    for at in [at for at in _opened if at[1] == used]:
        _opened.pop(at).table.close()
    _ledgers.pop(used, None)
