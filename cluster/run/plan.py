"""The plan of a solve: shards, rows, bytes, memory, seconds, before any of it is spent; and whether
it fits.

Rows and memory are exact; bytes and seconds are predictions from the constants below and the game's
own (`tier_seconds`), which `python -m tests.bench` measures on any machine.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from luckbase.cluster.machine import cores, free_memory
from luckbase.cluster.run.schedule import Commit, Drop, Schedule, Shard
from luckbase.cluster.table.format import part_name, row_group_rows
from luckbase.cluster.table.ledger import table_directory
from luckbase.cluster.table.storage import Folder
from luckbase.cluster.words import size
from luckbase.solver import load_layout
from luckbase.solver.board.model import Board
from luckbase.solver.errors import DiskLimitError, MemoryLimitError
from luckbase.solver.game.capabilities import Layout
from luckbase.solver.result import PythonOnly, Result, Rounded

WRITE_NS = 82.0
"""Nanoseconds a state to encode, compress, flush and read back, one core."""
SHARD_SECONDS = 0.03
"""What a shard costs beside its states: files, flushes, a line of the ledger."""
BYTES_A_ROW = {np.dtype(np.float32): 5.4, np.dtype(np.float64): 14.0}
"""Bytes a state of a table on disk, by how its payoffs are stored."""
PROCESS_BYTES = 300 << 20
"""Bytes of a process before it solves anything: Python, numba, pyarrow."""
TOUCHED_SHARE = 1 / 3
"""Of the children read for their faces only, the pages touched (an upper bound seen in runs)."""
BUFFER_BYTES_A_ROW = 400
"""Bytes a row of the row group that is being written: columns, encoded pages."""


@dataclass(frozen=True)
class Plan:
    """What a solve will do.

    shards: one a part of a tier, children first. files: their names in the table. parts: (index
    of the tier, part) of each. rows: states.
    table_bytes: of the files. kept_bytes: about the most payoffs that are kept for other shards at
    once.
    shard_memory: the most that one shard needs. seconds: of one core.
    """

    shards: tuple[Shard, ...]
    files: tuple[str, ...]
    parts: tuple[tuple[int, int], ...]
    rows: int
    table_bytes: int
    kept_bytes: int
    shard_memory: int
    seconds: float

    def wall_seconds(self, workers: int) -> float:
        """Seconds with so many workers, none of them idle."""
        return self.seconds / max(1, workers)

    def peak_memory(self, workers: int) -> int:
        """Bytes in use with so many shards in flight, in threads: the largest ones at the same
        time, and the payoffs that are kept; where memory is short, those spill to the disk."""
        largest = sorted((s.memory for s in self.shards), reverse=True)[:workers]
        return sum(largest) + self.kept_bytes + PROCESS_BYTES


def make_plan(layout: Layout[Any], workers: int = 1) -> Plan:
    """The plan of the game's full table."""
    return _make_plan(layout, workers)


@lru_cache(maxsize=4)
def _make_plan(layout: Layout[Any], workers: int) -> Plan:
    tiers = list(layout.tiers())
    index = {tier: i for i, tier in enumerate(tiers)}
    rows_of, bytes_of = list(map(layout.rows, tiers)), [payoff_bytes(layout, t) for t in tiers]
    shards: list[Shard] = []
    files: list[str] = []
    parts: list[tuple[int, int]] = []
    of_tier: list[list[int]] = []
    for i, tier in enumerate(tiers):
        below = sorted(index[child] for child in layout.children(tier))
        read = sorted((bytes_of[c] for c in below), reverse=True)
        mapped = sum(read[:1]) + round(TOUCHED_SHARE * sum(read[1:]))
        children = tuple(shard for c in below for shard in of_tier[c])
        ranges = layout.parts(tier)
        of_tier.append(list(range(len(shards), len(shards) + len(ranges))))
        for part, (start, stop) in enumerate(ranges):
            own = bytes_of[i] * (stop - start) // max(rows_of[i], 1)
            group = min(row_group_rows(layout, tier), stop - start)
            memory = own + mapped + BUFFER_BYTES_A_ROW * group
            name = layout.tier_name(tier)
            name += f", part {part + 1} of {len(ranges)}" if len(ranges) > 1 else ""
            shards.append(Shard(len(shards), name, children, stop - start, memory))
            files.append(part_name(layout, tier, part))
            parts.append((i, part))
    rows = sum(shard.rows for shard in shards)
    kept = {shard.index: bytes_of[i] * shard.rows // max(rows_of[i], 1)
            for shard, (i, _) in zip(shards, parts, strict=True)}  # fmt: skip
    return Plan(
        tuple(shards),
        tuple(files),
        tuple(parts),
        rows,
        round(rows * BYTES_A_ROW[np.dtype(layout.payoff_type)]),
        # Shards that finish out of turn keep a few more than a run in turn does.
        peak_kept(shards, kept, workers) + 2 * (workers - 1) * _largest_kept(shards, kept),
        max(shard.memory for shard in shards),
        sum(map(layout.tier_seconds, tiers)) + rows * WRITE_NS * 1e-9 + SHARD_SECONDS * len(shards),
    )


def _largest_kept(shards: Collection[Shard], kept_bytes: dict[int, int]) -> int:
    groups = {shard.children for shard in shards}  # parts of a tier have the same
    return max((kept_bytes[c] for group in groups for c in group), default=0)


def payoff_bytes(layout: Layout[Any], tier: Any) -> int:
    """Bytes of a tier's payoffs as the kernel keeps them."""
    size = 8
    for length in layout.shape(tier):
        size *= length
    return size


def peak_kept(shards: Collection[Shard], kept_bytes: dict[int, int], workers: int) -> int:
    """The most bytes kept at once, by running the schedule with shards finishing in turn."""
    schedule = Schedule(tuple(shards), workers=workers, memory=1 << 62)
    running = [i.shard for i in schedule.start() if not isinstance(i, Commit | Drop)]
    now = peak = 0
    while running:
        for step in schedule.solved(running.pop(0)):
            if isinstance(step, Commit):
                now += kept_bytes[step.shard] if step.keep else 0
                peak = max(peak, now)
            elif isinstance(step, Drop):
                now -= kept_bytes[step.shard]
            else:
                running.append(step.shard)
    return peak


DISK_RESERVE = 1 << 30
"""Bytes that are left free on the disk."""
MEMORY_SHARE = 0.7
"""Of the machine's free memory, what shards in flight may use unless told otherwise."""


@dataclass(frozen=True)
class Level:
    """Shards that have something in common: what, how many, their states, bytes of the largest."""

    name: str
    shards: int
    states: int
    memory: int


@dataclass(frozen=True)
class Planned(Result):
    """What a solve will take."""

    board: str
    tiers: int
    shards: int
    states: int
    table_bytes: int
    """On disk."""
    kept_bytes: int
    """Payoffs for shards that read them, at their fullest."""
    peak_memory: int
    """Bytes."""
    seconds: Rounded
    """Of wall time with so many workers."""
    workers: int
    levels: PythonOnly[tuple[Level, ...]]
    plan: PythonOnly[Plan]
    table: PythonOnly[Path]
    budget: PythonOnly[int]
    """Bytes that they may use."""
    smaller: PythonOnly[str]

    def check(self) -> None:
        """Raises MemoryLimitError, DiskLimitError for what is still to do and will not fit."""
        there = set(Folder(self.table).list("tiers"))
        todo = [i for i, name in enumerate(self.plan.files) if name not in there]
        check_room(self.plan, self.budget, self.table, self.smaller, todo, self.workers)


def planned(
    board: Board, results: Path, workers: int | None = None, memory: int | None = None
) -> Planned:
    """The plan of a board's full table. Raises BoardError, OptionError where it has none."""
    layout = load_layout(board)
    count = workers or cores()
    made, tiers = make_plan(layout, count), layout.tiers()
    levels: dict[Any, list[int]] = {}
    for shard, (index, _) in zip(made.shards, made.parts, strict=True):
        fields = layout.tier_fields(tiers[index])
        none = (layout.tier_name(tiers[index]), "")
        level = levels.setdefault(next(iter(fields.items()), none), [0, 0, 0])
        level[0] += 1
        level[1] += shard.rows
        level[2] = max(level[2], shard.memory)
    listed = (Level(f"{name} {value}".strip(), *of) for (name, value), of in sorted(levels.items()))
    return Planned(
        board.name, len(tiers), len(made.shards), made.rows, made.table_bytes, made.kept_bytes,
        made.peak_memory(count), made.wall_seconds(count), count, tuple(listed), made,
        table_directory(results.absolute(), layout.game),
        memory if memory is not None else int(free_memory() * MEMORY_SHARE), layout.smaller,
    )  # fmt: skip


def check_room(
    plan: Plan, memory: int, table: Path, smaller: str, todo: Sequence[int] | None = None,
    workers: int = 1,
) -> None:  # fmt: skip
    """Refuse what will not fit, in the memory or on the disk beside what is already there.

    smaller: what would (`Layout.smaller`). todo: the shards that are still to do (all).
    Raises MemoryLimitError, DiskLimitError.
    """
    if plan.shard_memory > memory:
        raise MemoryLimitError(
            f"memory: the largest tier needs {size(plan.shard_memory)} and "
            f"{size(memory)} may be used; {smaller} would take less"
        )
    rows = plan.rows if todo is None else sum(plan.shards[i].rows for i in todo)
    spilled = max(0, plan.kept_bytes - max(0, memory - workers * plan.shard_memory))
    needed = plan.table_bytes * rows // max(plan.rows, 1) + spilled
    check_disk("solve", needed, table, smaller)


def check_disk(what: str, needed: int, table: Path, smaller: str) -> None:
    """Refuse what will not fit on the disk beside what is already there.

    what: the solve, the search. needed: bytes. smaller: what would take less. Raises
    DiskLimitError.
    """
    probe, free = free_disk(table)
    if needed > free:
        raise DiskLimitError(
            f"disk: the {what} needs about {size(needed)} under {probe} and "
            f"{size(max(free, 0))} are free; {smaller} would take less"
        )


def free_disk(table: Path) -> tuple[Path, int]:
    """(the folder above a table that is there already, bytes that may be written to it)."""
    probe = table
    while not probe.exists():
        probe = probe.parent
    return probe, shutil.disk_usage(probe).free - DISK_RESERVE
