"""Full tables: the plan of a solve, and the solve itself, by tiers or parts of tiers, children
first.

The rows and memory of a plan are exact. Bytes and seconds are predictions from the constants below
and the game's own (`tier_seconds`), which `python -m tests.bench` measures on any machine.

Files of earlier runs are kept. If a remaining shard reads their payoffs, these are read back if
they are stored exactly (float64); otherwise they are solved again, but not written again.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from luckbase.cluster.machine import PROCESS_BYTES, check_disk
from luckbase.cluster.solve.driver import (
    UNLIMITED,
    Run,
    Work,
)
from luckbase.cluster.solve.progress import Progress, SolvedTiers
from luckbase.cluster.solve.schedule import Commit, Drop, Schedule, Shard, Solve
from luckbase.cluster.solve.worker import (
    Out,
    PayoffPlace,
    Receipt,
    Sent,
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
    row_group_rows,
    tier_files,
    write_tier,
)
from luckbase.cluster.store.manifest import TIERS, FileEntry, Manifest, row_spans
from luckbase.cluster.store.parquet import TableFile
from luckbase.cluster.store.storage import in_threads
from luckbase.solver.board.model import Board
from luckbase.solver.dense import check_tiers
from luckbase.solver.errors import MemoryLimitError
from luckbase.solver.game.arrays import Decisions, Floats
from luckbase.solver.game.capabilities import DecisionLayout, FullTable
from luckbase.solver.game.game import Stopped, load_game
from luckbase.solver.sentences import size

WRITE_NS = 82.0
"""Core nanoseconds to encode, compress, flush and read back a state."""
SHARD_SECONDS = 0.03
"""Seconds that a shard takes in addition to its states: files, flushes, a manifest entry."""
BYTES_A_ROW = {np.dtype(np.float32): 5.4, np.dtype(np.float64): 14.0}
"""Bytes on disk for each state, by the type of stored payoffs."""
TOUCHED_SHARE = 1 / 3
"""Share of pages touched in children read only for their boundaries (an observed upper bound)."""
AHEAD = 2
"""Shards handed out on a cluster, as a multiple of its cores."""
BUFFER_BYTES_A_ROW = 400
"""Bytes for each row of the row group that is being written: columns and encoded pages."""


BOUNDARY = -1
"""Replaces the part in the boundary of a tier (`DecisionLayout`), sent instead of the whole
tier."""


@dataclass(frozen=True)
class Plan:
    """The work of a solve."""

    shards: tuple[Shard, ...]
    """Children first."""
    files: tuple[tuple[str, ...], ...]
    """The file names of each shard."""
    kept_bytes: int
    """Estimated maximum bytes of payoffs kept for other shards at once."""

    @property
    def rows(self) -> int:
        return sum(shard.rows for shard in self.shards)

    @property
    def table_bytes(self) -> int:
        """Estimated bytes of the files."""
        return sum(shard.bytes for shard in self.shards)

    @property
    def shard_memory(self) -> int:
        """Maximum bytes that one shard needs."""
        return max(shard.memory for shard in self.shards)

    @property
    def seconds(self) -> float:
        """Estimated core seconds."""
        return sum(shard.seconds for shard in self.shards)

    def peak_memory(self, workers: int) -> int:
        """Return the peak bytes with this many threads: the largest shards at the same time, and
        the kept payoffs. If memory is short, kept payoffs spill to disk."""
        largest = sorted((s.memory for s in self.shards), reverse=True)[:workers]
        return sum(largest) + self.kept_bytes + PROCESS_BYTES

    def missing(self, present: Collection[str]) -> list[int]:
        """Return the shards with a file that is not present."""
        return [i for i, names in enumerate(self.files) if not {*names} <= {*present}]

    @property
    def names(self) -> set[str]:
        return {name for names in self.files for name in names}


@dataclass(frozen=True)
class TierPlan(Plan):
    """The plan of the tiers with stored payoffs. A shard is a part of a tier."""

    parts: tuple[tuple[int, int], ...]
    """(index of the tier, part) of each shard; the part is `BOUNDARY` for the boundary of the
    tier."""


@lru_cache(maxsize=4)
def make_plan(layout: FullTable[Any], workers: int = 1, boundaries: bool = False) -> TierPlan:
    """Return the plan of a game's full table.

    boundaries: pass only the boundaries of tiers to the shards that read them, as between machines,
        if the game supports it.

    Raises GameError as `check_tiers` does.
    """
    check_tiers(layout)
    by_boundary = layout.game.get(DecisionLayout) if boundaries else None
    tiers = list(layout.tiers())
    index = {tier: i for i, tier in enumerate(tiers)}
    rows_of, bytes_of = list(map(layout.rows, tiers)), [payoff_bytes(layout, t) for t in tiers]
    bytes_a_row = BYTES_A_ROW[np.dtype(layout.payoff_type)]
    shards: list[Shard] = []
    files: list[tuple[str, ...]] = []
    parts: list[tuple[int, int]] = []
    of_tier: list[list[int]] = []
    of_boundary: dict[int, int] = {}
    faced = {
        child
        for tier in tiers
        for child in (by_boundary.boundaries_read(tier) if by_boundary else ())
    }
    for i, tier in enumerate(tiers):
        below = sorted(index[child] for child in layout.children(tier))
        sizes = sorted((bytes_of[c] for c in below), reverse=True)
        mapped = sum(sizes[:1]) + round(TOUCHED_SHARE * sum(sizes[1:]))
        children = tuple(shard for c in below for shard in of_tier[c])
        if by_boundary is not None:
            whole, read_of = (
                by_boundary.below(tier),
                [index[t] for t in by_boundary.boundaries_read(tier)],
            )
            mapped = sum(8 * by_boundary.boundary_size(tiers[c]) for c in read_of)
            mapped += bytes_of[index[whole]] if whole is not None else 0
            children = (*(of_tier[index[whole]] if whole is not None else ()),
                        *(of_boundary[c] for c in read_of))  # fmt: skip
        ranges, named = layout.parts(tier), tier_files(layout, tier)
        of_tier.append(list(range(len(shards), len(shards) + len(ranges))))
        for part, (start, stop) in enumerate(ranges):
            payoffs = bytes_of[i] * (stop - start) // max(rows_of[i], 1)
            group = min(row_group_rows(layout, tier), stop - start)
            memory = payoffs + mapped + BUFFER_BYTES_A_ROW * group
            name = layout.tier_name(tier)
            name += f", part {part + 1} of {len(ranges)}" if len(ranges) > 1 else ""
            rows, most = stop - start, layout.most_threads(tier)
            kernel = layout.tier_seconds(tier) * rows / max(1, rows_of[i])
            own_seconds = kernel + rows * WRITE_NS * 1e-9 + SHARD_SECONDS
            size = round(bytes_a_row * rows)
            shards.append(Shard(len(shards), name, children, rows, memory, most, own_seconds, size))
            files.append(tuple(file.name for file in named if file.part == part))
            parts.append((i, part))
        if by_boundary is not None and tier in faced:
            of_boundary[i] = len(shards)
            name, memory = (
                f"{layout.tier_name(tier)}, its boundary",
                8 * by_boundary.boundary_size(tier),
            )
            shards.append(Shard(len(shards), name, tuple(of_tier[i]), 0, memory, 0))
            files.append(())
            parts.append((i, BOUNDARY))
    kept = [
        shard.memory if part == BOUNDARY else bytes_of[i] * shard.rows // max(rows_of[i], 1)
        for shard, (i, part) in zip(shards, parts, strict=True)
    ]
    groups = {shard.children for shard in shards}  # parts of a tier have the same
    largest = max((kept[c] for group in groups for c in group), default=0)
    # If shards finish out of order, a few more are kept.
    kept_bytes = peak_kept(shards, kept, workers) + 2 * (workers - 1) * largest
    return TierPlan(tuple(shards), tuple(files), kept_bytes, tuple(parts))


def payoff_bytes(layout: FullTable[Any], tier: Any, kind: Any = np.float64) -> int:
    """Return the bytes of a tier's payoffs in memory."""
    return np.dtype(kind).itemsize * math.prod(layout.shape(tier))


def peak_kept(shards: Sequence[Shard], kept_bytes: Sequence[int], workers: int) -> int:
    """Simulate the schedule with shards finishing in order; return the peak of kept bytes."""
    schedule = Schedule(shards, workers=workers, memory=UNLIMITED)
    running = [i.shard for i in schedule.start() if isinstance(i, Solve)]
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


def check_room(
    plan: Plan, memory: int, table: Path, smaller: str, todo: Sequence[int] | None = None,
    workers: int = 1,
) -> None:  # fmt: skip
    """Check that a plan fits into memory, and on the disk beside the existing files.

    smaller: a change that would take less (`FullTable.smaller`).
    todo: the remaining shards; default all.

    Raises MemoryLimitError, DiskLimitError.
    """
    if plan.shard_memory > memory:
        raise MemoryLimitError(
            f"memory: the largest tier needs {size(plan.shard_memory)} and "
            f"{size(memory)} may be used; {smaller} takes less"
        )
    shards = plan.shards if todo is None else [plan.shards[i] for i in todo]
    spilled = max(0, plan.kept_bytes - max(0, memory - workers * plan.shard_memory))
    check_disk("solve", sum(shard.bytes for shard in shards) + spilled, table, smaller)


# --- the solve ------------------------------------------------------------------------------------


def committed(layout: FullTable[Any], plan: TierPlan, manifest: Manifest) -> set[int]:
    """Return the shards of a plan whose rows are all in files of the manifest, even if tiers were
    cut into files differently."""
    spans, tiers, shards = row_spans(manifest.of_part(TIERS)), layout.tiers(), set()
    for i, (tier, part) in enumerate(plan.parts):
        start, stop = (0, 0) if part == BOUNDARY else layout.parts(tiers[tier])[part]
        of_tier = spans.get(layout.tier_number(tiers[tier]), [])
        if part == BOUNDARY or any(first <= start and stop <= last for first, last in of_tier):
            shards.add(i)
    return shards


class TierRun(Run[SolvedTiers]):
    """Solves the tiers with stored payoffs. Counts include earlier runs of the same solve.

    later: number of shards and states left for a later run.
    """

    plan: TierPlan

    def __init__(
        self, work: Work[SolvedTiers], report: SolvedTiers, layout: FullTable[Any], plan: TierPlan,
        memory: int, later: tuple[int, int] = (0, 0),
    ) -> None:  # fmt: skip
        super().__init__(work, report, work.options, memory)
        self.layout, self.plan, self.later = layout, plan, later
        self.tiers, self.exact = layout.tiers(), layout.payoff_type is np.float64
        self.largest = max(payoff_bytes(self.layout, tier) for tier in self.tiers)
        """Maximum bytes that one shard leaves for others."""
        self.shards, self.rows = report.shards, report.states
        self.again, self.read, self.again_seconds = report.again, report.read, report.again_seconds
        self.shards_total = self.rows_total = 0
        self.stored_entries: dict[int, list[FileEntry]] = {}
        """The committed files, by tier."""

    def solve(self) -> SolvedTiers:
        plan, slots = self.plan, self.options.slots
        left = max(0, self.memory - min(self.memory, plan.shard_memory * slots))
        with self.open(left, min(left, round(1.1 * plan.kept_bytes) + slots * self.largest)):
            self.workers.check_memory(plan.shard_memory, self.layout.smaller)
            self.solve_shards()
        return self.done(
            again=self.again, read=self.read, states=self.rows, shards=self.shards,
            again_seconds=self.again_seconds,
        )  # fmt: skip

    def committed(self) -> set[int]:
        return committed(self.layout, self.plan, self.manifest)

    def make_schedule(self) -> Schedule:
        committed = self.committed()
        # A boundary has no file to read back: take it from its tier again.
        in_files = {i for i in committed if self.plan.parts[i][1] != BOUNDARY} if self.exact else ()
        self.stored_entries = {}
        for entry in self.manifest.of_part(TIERS):
            self.stored_entries.setdefault(entry.tier, []).append(entry)
        schedule = Schedule(
            self.plan.shards, workers=self.workers.slots, memory=self.memory, committed=committed,
            stored=in_files, ahead=AHEAD if self.options.joins else 1,
        )  # fmt: skip
        waiting = schedule.waiting
        shards = sum(bool(self.plan.files[i]) for i in waiting)
        rows = sum(self.plan.shards[i].rows for i in waiting)
        self.shards_total = self.shards + shards + self.later[0]
        self.rows_total = self.progress().rows + rows + self.later[1]
        return schedule

    def progress(self) -> Progress:
        done = self.rows + self.again + self.read
        return Progress(self.shards, self.shards_total, done, self.rows_total, self.seconds)

    def count(self, receipt: Receipt) -> None:
        rows = self.plan.shards[receipt.shard].rows
        self.shards += self.plan.parts[receipt.shard][1] != BOUNDARY
        if receipt.shard in self.schedule.stored:
            self.read += rows
        elif not receipt.files:
            self.again += rows
            self.again_seconds += receipt.solve_seconds
        else:
            self.rows += rows
            self.solve_seconds += receipt.solve_seconds

    def drop(self, shards: list[int]) -> None:
        for place in {*map(self._place, shards)} - {*map(self._place, self.schedule.kept)}:
            self.workers.drop(place)  # a tier in parts is dropped with its last part

    def _place(self, shard: int) -> int:
        """Return the workers' name for a shard's payoffs: its tier; ~tier for a boundary."""
        tier, part = self.plan.parts[shard]
        return ~tier if part == BOUNDARY else tier

    def task(self, step: Solve) -> Task:
        shard, (index, part) = self.plan.shards[step.shard], self.plan.parts[step.shard]
        layout, tier = self.layout, self.tiers[index]
        ranges = layout.parts(tier)
        start, stop = span = (0, 0) if part == BOUNDARY else ranges[part]
        stored = [
            entry for entry in self.stored_entries.get(layout.tier_number(tier), ())
            if step.shard in self.schedule.stored
            and entry.first_row < stop and start < entry.first_row + entry.rows
        ]  # fmt: skip
        reads = () if stored else tuple(dict.fromkeys(map(self._place, shard.children)))
        committed, cores = self.manifest.files, min(step.cores, self.workers.widest)
        names = [name for name in self.plan.files[step.shard] if name not in committed]
        job = SolveTier(
            board=self.game.board, location=self.location, shard=step.shard, tier=index, part=part,
            reads=reads, names=tuple(names) if step.commit else (), keep=step.keep,
            stored=tuple(stored), threads=cores,
        )  # fmt: skip
        keep = PayoffPlace(index, layout.shape(tier), span, part, len(ranges))
        if part == BOUNDARY:
            size = self.game.need(DecisionLayout).boundary_size(tier)
            keep = PayoffPlace(~index, (size,), (0, size))
        return Task(step.shard, job, shard.memory, reads, keep if step.keep else None, cores=cores)

    def commit(self, receipt: Receipt) -> None:
        rows = max(1, self.plan.shards[receipt.shard].rows)
        for entry in receipt.files.values():
            self.writer.add(entry.solved_in(receipt.solve_seconds * entry.rows / rows))


@dataclass(frozen=True, kw_only=True)
class TierJob:
    """Fields of all jobs that solve tiers.

    keep: keep the payoffs for other shards.
    threads: number of threads that solve and write files.
    """

    board: Board
    location: TableLocation
    shard: int
    keep: bool
    threads: int = 1

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
    reads: tuple[int, ...]
    """The tiers whose payoffs it gets, by index; ~index for a boundary."""
    names: tuple[str, ...]
    """The files to write."""
    stored: tuple[FileEntry, ...] = ()
    """The committed files of its rows, if they store exact payoffs. These are then read back
    instead of being solved."""

    def run(self, payoffs: Sequence[Any], sent: Sent, out: Out, stop: Stop) -> Steps:
        """Solve the shard, or read it back."""
        layout, started = load_game(self.board).need(FullTable), time.perf_counter()
        tiers = layout.tiers()
        if self.part == BOUNDARY:
            boundary = np.empty(self.layout.boundary_size(tiers[self.tier])) if out is None else out
            self.layout.take_boundary(tiers[self.tier], payoffs[0], boundary)
            yield boundary
            yield Receipt(shard=self.shard, solve_seconds=time.perf_counter() - started), None
            return
        tier, (first, last) = tiers[self.tier], layout.parts(tiers[self.tier])[self.part]
        if self.stored:
            yield self._read_back(layout, tier, sent, out)
            yield Receipt(shard=self.shard, solve_seconds=time.perf_counter() - started), None
            return
        layout.threads = self.threads
        inputs = dict(zip(self.reads, payoffs, strict=True))
        below: dict[Any, Any] = {
            tiers[i]: payoffs_of(layout, tiers[i], of) for i, of in inputs.items() if i >= 0
        }
        boundaries = {tiers[~i]: writable(of) for i, of in inputs.items() if i < 0}
        array = buffer("payoffs", part_shape(layout, tier, self.part)) if out is None else out
        decisions = None
        if self.names:
            best = buffer("best", (last - first,), np.int8)
            best.fill(-1)
            decisions = Decisions(best)
        if boundaries:
            self.layout.layout.threads = self.threads
            whole = next(iter(below.values()), None)
            error = self.layout.solve_tier(tier, array, whole, boundaries, stop, decisions)
        else:
            error = layout.solve_tier(tier, array, below.__getitem__, stop, self.part, decisions)
        seconds = time.perf_counter() - started
        yield array if self.keep else None
        if decisions is None:
            yield Receipt(shard=self.shard, solve_seconds=seconds), None
            return
        with self.location.storage() as storage:

            def write(file: TierFile) -> Written:
                if stop():
                    raise Stopped
                return write_tier(storage, layout, tier, file, array, decisions, error)

            missing = [file for file in tier_files(layout, tier) if file.name in self.names]
            written = list(in_threads(write, missing, layout.threads))
            receipt = Receipt(shard=self.shard, solve_seconds=seconds)
            done = receipt.with_files(storage, self.location.writer, written)
        yield done

    def _read_back(
        self, layout: FullTable[Any], tier: Any, sent: Sent, out: Floats | None
    ) -> Floats:
        """Return the exact payoffs from committed files. Raises CorruptTableError."""
        source = self.location.source([entry.place for entry in self.stored], sent)
        payoffs = np.empty(part_shape(layout, tier, self.part)) if out is None else out
        planes = layout.kernel_planes(tier)
        flat = payoffs.reshape(len(planes), -1)
        names = payoff_columns(layout.game)
        columns = [names[player] for player in planes if player >= 0]
        first, last = layout.parts(tier)[self.part]
        for entry in self.stored:
            with closing(TableFile(source, self.location.table, entry)) as file:
                for number in range(file.groups):
                    at = entry.first_row + number * entry.row_group_rows
                    if at >= last or at + entry.row_group_rows <= first:
                        continue
                    group = file.read(number, columns)
                    in_group = slice(max(0, first - at), min(group.num_rows, last - at))
                    rows = slice(at + in_group.start - first, at + in_group.stop - first)
                    for plane, player in zip(flat, planes, strict=True):
                        plane[rows] = 0.0
                        if player >= 0:
                            column = numbers_of(group.column(names[player]))[in_group]
                            check_payoffs(column, layout.game, file.path)
                            plane[rows] = column
        return payoffs


def payoffs_of(layout: FullTable[Any], tier: Any, read: Floats | Mapping[int, Floats]) -> Floats:
    """Return the payoffs of a tier in one array, as kernels take them.

    read: the array, or arrays of its parts by number.
    """
    if not isinstance(read, Mapping):
        return writable(read).reshape(layout.shape(tier))
    whole, ranges = np.empty(layout.shape(tier)), layout.parts(tier)
    for part, rows in read.items():
        whole[slice(*ranges[part])] = rows
    return whole


def part_shape(layout: FullTable[Any], tier: Any, part: int) -> tuple[int, ...]:
    """Return the shape of the payoffs of a part of a tier."""
    shape, ranges = layout.shape(tier), layout.parts(tier)
    if len(ranges) == 1:
        return shape
    start, stop = ranges[part]
    return stop - start, *shape[1:]


_own = threading.local()


def buffer(name: str, shape: tuple[int, ...], kind: Any = np.float64) -> NDArray[Any]:
    """Return this worker's buffer, because touching fresh memory costs more than the kernel."""
    needed, name = math.prod(shape), f"{name} {np.dtype(kind)}"
    buffer: NDArray[Any] | None = getattr(_own, name, None)
    if buffer is None or buffer.size < needed:
        setattr(_own, name, None)  # free the old one first
        buffer = np.empty(needed, kind)
        setattr(_own, name, buffer)
    return buffer[:needed].reshape(shape)
