"""The run that gives payoffs to the tiers of a full table, by tiers or parts of tiers, children
first.

Files of earlier runs are kept. If a remaining shard reads their payoffs, these are read back if
they are stored exactly (float64); otherwise they are solved again, but not written again.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from luckbase.cluster.solve.driver import Run, Work
from luckbase.cluster.solve.plan import BOUNDARY, Plan, payoff_bytes
from luckbase.cluster.solve.progress import Progress, Solved
from luckbase.cluster.solve.schedule import Schedule, Solve
from luckbase.cluster.solve.worker import (
    Out,
    PayoffPlace,
    Receipt,
    Steps,
    Stop,
    TableLocation,
    Task,
    writable,
)
from luckbase.cluster.store.format import (
    TierFile,
    Written,
    check_payoffs,
    numbers_of,
    payoff_columns,
    tier_files,
    write_tier,
)
from luckbase.cluster.store.manifest import FileEntry, file_error
from luckbase.cluster.store.parquet import row_groups
from luckbase.cluster.store.storage import in_threads
from luckbase.solver.board.model import Board
from luckbase.solver.game.arrays import Floats
from luckbase.solver.game.capabilities import DecisionLayout, FullTable
from luckbase.solver.game.game import Stopped, load_game

AHEAD = 2
"""Shards handed out on a cluster, as a multiple of its cores."""


class TierRun(Run):
    """Solves the tiers with stored payoffs. Counts include earlier runs of the same solve.

    later: number of shards and states left for a later run.
    """

    def __init__(
        self, work: Work, report: Solved, layout: FullTable[Any], plan: Plan,
        memory: int, later: tuple[int, int] = (0, 0),
    ) -> None:  # fmt: skip
        super().__init__(work, report, memory)
        self.layout, self.plan, self.later = layout, plan, later
        self.tiers, self.exact = layout.tiers(), layout.payoff_type is np.float64
        self.largest = max(payoff_bytes(self.layout, tier) for tier in self.tiers)
        """Maximum bytes that one shard leaves for others."""
        self.shards, self.rows = report.shards, report.states
        self.again, self.read, self.again_seconds = report.again, report.read, report.again_seconds
        self.shards_total = self.rows_total = 0

    def solve(self) -> Solved:
        plan, slots = self.plan, self.options.slots
        spare = max(0, self.memory - min(self.memory, plan.shard_memory * slots))
        with self.open(spare, min(spare, round(1.1 * plan.kept_bytes) + slots * self.largest)):
            self.workers.check_memory(plan.shard_memory, self.layout.smaller)
            self.solve_shards()
        return self.done(
            again=self.again, read=self.read, states=self.rows, shards=self.shards,
            again_seconds=self.again_seconds,
        )  # fmt: skip

    def make_schedule(self) -> Schedule:
        shards, committed = self.plan.shards, self.plan.committed(self.manifest)
        # A boundary has no file to read back: take it from its tier again.
        in_files = {i for i in committed if shards[i].files} if self.exact else ()
        schedule = Schedule(
            shards, workers=self.workers.slots, memory=self.memory, committed=committed,
            stored=in_files, ahead=AHEAD if self.options.joins else 1,
        )  # fmt: skip
        waiting = [shards[i] for i in schedule.waiting]
        self.shards_total = self.shards + sum(bool(s.files) for s in waiting) + self.later[0]
        self.rows_total = self.progress().rows + sum(s.rows for s in waiting) + self.later[1]
        return schedule

    def progress(self) -> Progress:
        done = self.rows + self.again + self.read
        return Progress(self.shards, self.shards_total, done, self.rows_total, self.seconds)

    def rows_solved(self, shard: int) -> int:
        """Return the number of states of a finished shard that its task solved or read back."""
        return self.plan.shards[shard].rows

    def count(self, receipt: Receipt) -> None:
        self.shards += bool(self.plan.shards[receipt.shard].files)
        solved, new = self.rows_solved(receipt.shard), sum(e.rows for e in receipt.files.values())
        if receipt.shard in self.schedule.stored:
            self.read += solved
            return
        seconds = receipt.solve_seconds / max(1, solved)
        self.rows, self.again = self.rows + new, self.again + solved - new
        self.solve_seconds += seconds * new
        self.again_seconds += seconds * (solved - new)

    def drop(self, shards: list[int]) -> None:
        kept = {*map(self._payoffs_name, self.schedule.kept)}
        for name in {*map(self._payoffs_name, shards)} - kept:
            self.workers.drop(name)  # a tier in parts is dropped with its last part

    def _payoffs_name(self, shard: int) -> int:
        """Return the workers' name for a shard's payoffs: its tier; ~tier for a boundary."""
        tier, part = self.plan.shards[shard].work
        return ~tier if part == BOUNDARY else tier

    def task(self, step: Solve) -> Task:
        shard, files = self.plan.shards[step.shard], self.manifest.files
        index, part = shard.work
        layout, tier = self.layout, self.tiers[index]
        ranges = layout.parts(tier)
        stored = [files[name] for name in shard.files if step.shard in self.schedule.stored]
        reads = () if stored else tuple(dict.fromkeys(map(self._payoffs_name, shard.children)))
        cores = min(step.cores, self.workers.widest)
        names = [name for name in shard.files if step.commit and name not in files]
        job = SolveTier(
            board=self.game.board, location=self.location, tier=index, part=part,
            names=tuple(names), stored=tuple(stored),
        )  # fmt: skip
        if part == BOUNDARY:
            size = self.game.need(DecisionLayout).boundary_size(tier)
            keep = PayoffPlace(~index, (size,), (0, size))
        else:
            keep = PayoffPlace(index, layout.shape(tier), ranges[part], part, len(ranges))
        return Task(step.shard, job, shard.memory, reads, keep if step.keep else None, cores=cores)

    def commit(self, receipt: Receipt) -> None:
        solved = max(1, self.rows_solved(receipt.shard))
        for entry in receipt.files.values():
            self.writer.add(entry.solved_in(receipt.solve_seconds * entry.rows / solved))


@dataclass(frozen=True, kw_only=True)
class TierJob:
    """Fields of all jobs that solve tiers."""

    board: Board
    location: TableLocation

    @cached_property
    def layout(self) -> DecisionLayout[Any]:
        """The decision layout of a game that has one."""
        return load_game(self.board).need(DecisionLayout)

    def compile(self) -> None:
        load_game(self.board).need(FullTable).compile()


@dataclass(frozen=True, kw_only=True)
class SolveTier(TierJob):
    """The job that solves one shard of a full table: a part of a tier."""

    tier: int
    """Index in the board's plan."""
    part: int
    names: tuple[str, ...]
    """The files to write."""
    stored: tuple[FileEntry, ...] = ()
    """The committed files of its rows, if they store exact payoffs. These are then read back
    instead of being solved."""

    def run(self, task: Task, payoffs: Sequence[Any], out: Out, stop: Stop) -> Steps:
        """Solve the shard, or read it back."""
        layout, started = load_game(self.board).need(FullTable), time.perf_counter()
        tiers = layout.tiers()
        if self.part == BOUNDARY:
            boundary = np.empty(self.layout.boundary_size(tiers[self.tier])) if out is None else out
            self.layout.take_boundary(tiers[self.tier], payoffs[0], boundary)
            yield boundary
            yield Receipt(shard=task.shard, solve_seconds=time.perf_counter() - started), None
            return
        tier, (first, last) = tiers[self.tier], layout.parts(tiers[self.tier])[self.part]
        if self.stored:
            yield self._read_back(layout, tier, out)
            yield Receipt(shard=task.shard, solve_seconds=time.perf_counter() - started), None
            return
        layout.threads = task.cores
        inputs = dict(zip(task.reads, payoffs, strict=True))
        below: dict[Any, Any] = {
            tiers[i]: payoffs_of(layout, tiers[i], rows) for i, rows in inputs.items() if i >= 0
        }
        boundaries = {tiers[~i]: writable(rows) for i, rows in inputs.items() if i < 0}
        array = buffer("payoffs", part_shape(layout, tier, self.part)) if out is None else out
        best = None
        if self.names:
            best = buffer("best", (last - first,), np.int8)
            best.fill(-1)
        if boundaries:
            self.layout.layout.threads = task.cores
            complete = next(iter(below.values()), None)
            error = self.layout.solve_tier(tier, array, complete, boundaries, stop, best)
        else:
            error = layout.solve_tier(tier, array, below.__getitem__, stop, self.part, best)
        seconds = time.perf_counter() - started
        yield array if task.keep is not None else None
        if best is None:
            yield Receipt(shard=task.shard, solve_seconds=seconds), None
            return
        with self.location.storage() as storage:

            def write(file: TierFile) -> Written:
                if stop():
                    raise Stopped
                return write_tier(storage, layout, tier, file, array, best, error)

            missing = [file for file in tier_files(layout, tier) if file.name in self.names]
            written = list(in_threads(write, missing, layout.threads))
            receipt = Receipt(shard=task.shard, solve_seconds=seconds)
            done = receipt.with_files(storage, self.location.writer, written)
        yield done

    def _read_back(self, layout: FullTable[Any], tier: Any, out: Floats | None) -> Floats:
        """Return the exact payoffs from committed files. Raises CorruptTableError."""
        source = self.location.source([entry.place for entry in self.stored])
        payoffs = np.empty(part_shape(layout, tier, self.part)) if out is None else out
        planes = layout.kernel_planes(tier)
        flat = payoffs.reshape(len(planes), -1)
        names = payoff_columns(layout.game)
        columns = [names[player] for player in planes if player >= 0]
        first, last = layout.parts(tier)[self.part]
        ends = [first, *(entry.first_row + entry.rows for entry in self.stored)]
        if ends[-1] != last or ends[:-1] != [entry.first_row for entry in self.stored]:
            path = self.location.table / self.stored[0].place
            raise file_error(source, path, "it has other rows than the board")
        at = 0
        for group in row_groups(source, self.location.table, self.stored, columns):
            rows = slice(at, at + group.num_rows)
            for plane, player in zip(flat, planes, strict=True):
                plane[rows] = 0.0
                if player >= 0:
                    column = numbers_of(group.column(names[player]))
                    check_payoffs(column, layout.game, self.location.table)
                    plane[rows] = column
            at = rows.stop
        return payoffs


def payoffs_of(layout: FullTable[Any], tier: Any, read: Floats | Mapping[int, Floats]) -> Floats:
    """Return the payoffs of a tier in one array, as kernels take them.

    read: the array, or arrays of its parts by number.
    """
    if not isinstance(read, Mapping):
        return writable(read).reshape(layout.shape(tier))
    payoffs, ranges = np.empty(layout.shape(tier)), layout.parts(tier)
    for part, rows in read.items():
        payoffs[slice(*ranges[part])] = rows
    return payoffs


def part_shape(layout: FullTable[Any], tier: Any, part: int) -> tuple[int, ...]:
    """Return the shape of the payoffs of a part of a tier."""
    shape, ranges = layout.shape(tier), layout.parts(tier)
    if len(ranges) == 1:
        return shape
    start, stop = ranges[part]
    return stop - start, *shape[1:]


_thread_buffers = threading.local()


def buffer(name: str, shape: tuple[int, ...], kind: Any = np.float64) -> NDArray[Any]:
    """Return this worker's buffer, because touching fresh memory costs more than the kernel."""
    needed, name = math.prod(shape), f"{name} {np.dtype(kind)}"
    buffer: NDArray[Any] | None = getattr(_thread_buffers, name, None)
    if buffer is None or buffer.size < needed:
        setattr(_thread_buffers, name, None)  # free the old one first
        buffer = np.empty(needed, kind)
        setattr(_thread_buffers, name, buffer)
    return buffer[:needed].reshape(shape)
