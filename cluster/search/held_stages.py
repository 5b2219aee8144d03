"""What a table has of the stages of a search already, in files by stages of the same level.

Another root's search ends at these states. They are found by stage and read where they are wanted,
those of a shard by the worker that finds it: no process holds them all, and nothing above them has
to be met before the search itself meets it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from luckbase.cluster.table.format import PayoffTable, made_by, payoff_columns
from luckbase.cluster.table.ledger import Ledger
from luckbase.cluster.table.lines import FileEntry
from luckbase.cluster.table.parquet import numbers_of, row_groups
from luckbase.cluster.table.storage import Folder, Storage
from luckbase.solver.game.game import Game
from luckbase.solver.graph.keys import Keys
from luckbase.solver.graph.stage import NO_KEYS, WHOLE, Box, Known, Stages


@dataclass(frozen=True)
class HeldStages:
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
        return read_held(Folder(self.table), self.table, files, self.stages, ([stage], WHOLE))[0]

    def digest(self) -> bytes:
        """What is there, as a SHA-256."""
        names = {one.name: one.checks for files in self.of.values() for one in files}
        return hashlib.sha256(repr(sorted(names.items())).encode()).digest()


def held_stages(
    stages: Stages, table: Path, ledger: Ledger, entries: Collection[FileEntry]
) -> HeldStages | None:
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
    return HeldStages(stages, table, of)


def read_held(
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


def digest_of(given: PayoffTable, held: HeldStages | None) -> str:
    """The SHA-256 of all that is known before a search, "" for nothing."""
    content = given.keys.tobytes() + given.values.tobytes()
    if held is not None and held.of:
        content += held.digest()
    return hashlib.sha256(content).hexdigest() if content else ""
