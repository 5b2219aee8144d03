"""What lies in a table's folder while a search by stages runs, and the pieces that it is solved in.

Names: a shard's stage file and what it asks for, ``shards/<goal>-<level>-<number>.arrow`` and
``.asks``; the table's files of its pieces, ``search/<goal>.<level>.<number>.<piece>.parquet``.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from luckbase.cluster.table.lines import ShardEntry
from luckbase.solver.graph.stage import Box

PIECE_STATES = 1_000_000
"""States of what is solved by one task, about: boxes are not cut."""
SWEEP_BYTES = 150
"""Bytes a state that solving takes, about, beside a process's own."""
LEAST_BYTES = 64 << 20
SHARDS = "shards/"
"""Where shards lie in the table's folder while a search runs."""


def shard_name(name: str) -> str:
    """Where a shard's stage file lies in the table's folder while the search runs."""
    return f"{SHARDS}{name}.arrow"


def ask_name(name: str) -> str:
    """Where that lies what a shard asks for."""
    return f"{SHARDS}{name}.asks"


def stage_file_name(part: str, shard: str, piece: int) -> str:
    """The name of the table's file of a piece of a shard: ``<goal>.<level>.<number>.<piece>``."""
    return f"{part}/{shard.replace('-', '.')}.{piece}.parquet"


@dataclass(frozen=True)
class Piece:
    """Boxes of a shard, from the first to before the last, that are solved by one task."""

    entry: ShardEntry
    number: int
    boxes: tuple[int, int]

    @property
    def states(self) -> int:
        """How many there are."""
        return sum(self.entry.boxes[slice(*self.boxes)])

    @property
    def spans(self) -> tuple[Box, ...]:
        """Where they lie."""
        return tuple(Box(*ends) for ends in self.entry.spans[slice(*self.boxes)])

    @property
    def alone(self) -> bool:
        """Whether it is all of the shard."""
        return self.boxes == (0, len(self.entry.boxes))

    @property
    def memory(self) -> int:
        """Bytes that its task takes, about."""
        return max(LEAST_BYTES, SWEEP_BYTES * self.states)


def pieces_of(entry: ShardEntry) -> list[Piece]:
    """The pieces of a shard, children first: boxes as they come, last ones first, while they are
    small together."""
    found: list[Piece] = []
    stop, states = len(entry.boxes), 0
    for i in range(len(entry.boxes) - 1, -1, -1):
        states += entry.boxes[i]
        if states >= PIECE_STATES or not i:
            found.append(Piece(entry, len(found), (i, stop)))
            stop, states = i, 0
    return found


def ends_of(box: Box) -> list[int]:
    """A box as the ledger says it: its ends, nothing for all of a stage."""
    return [] if box.whole else [box.low, box.high]


def askers_of(entry: ShardEntry) -> list[str]:
    """The names of the shards that ask a shard."""
    search = entry.name.split("-")[0]
    return [f"{search}-{level}-{k}" for level, numbers in entry.askers.items() for k in numbers]


def all_solved(entry: ShardEntry, files: Collection[str]) -> bool:
    """Whether all pieces of a shard have their files among some, without their folders."""
    return all(stage_file_name("", entry.name, one.number)[1:] in files for one in pieces_of(entry))
