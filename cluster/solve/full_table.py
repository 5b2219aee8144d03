"""Solve a full table.

Two runs fill it. The first (`TierRun`) gives payoffs to the tiers up to the frontier, by tiers or
parts of tiers, children first. Files of earlier runs are kept. If a remaining shard reads their
payoffs, these are read back if they are stored exactly (float64); otherwise they are solved again,
but not written again.

If the board has `decisions`, the second run (`ChainRun`) stores only the best actions of the tiers
beyond the frontier. A shard of it is a *chain* of tiers (`plan.Chain`). It begins with the tiers up
to the frontier, which are solved again. Its worker holds two tiers in memory at a time and keeps
only what other chains read: boundaries, or a whole small tier. If a worker dies, the whole chain is
solved again. If several chains at once do not fit in memory, they are solved one by one, each on
all cores.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from luckbase.cluster.solve.driver import Run, Work, is_new, memory_budget, solve_table
from luckbase.cluster.solve.options import Options, SolveOptions
from luckbase.cluster.solve.plan import (
    BOUNDARY,
    Chain,
    Plan,
    chain_slots,
    check_room,
    joined,
    make_plans,
    payoff_bytes,
    piece_sizes,
)
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
    write_decisions,
    write_tier,
)
from luckbase.cluster.store.manifest import (
    DECISIONS,
    TIERS,
    Done,
    FileEntry,
    Manifest,
    file_error,
)
from luckbase.cluster.store.parquet import row_groups
from luckbase.cluster.store.storage import in_threads
from luckbase.solver.board.model import Board
from luckbase.solver.errors import Stopped
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.capabilities import DecisionLayout, FullTable
from luckbase.solver.game.game import Game, load_game

AHEAD = 2
"""Shards handed out on a cluster, as a multiple of its cores."""


def solve(board: Board, **options: Unpack[SolveOptions]) -> Solved:
    """Solve the missing parts of a board's full table. Raises as `driver.solve_table` does."""
    return solve_table(FullSolve(load_game(board).need(FullTable), Options.read(options)))


class FullSolve(Work):
    part = TIERS
    others = (DECISIONS,)

    def __init__(
        self, layout: FullTable[Any], options: Options, plans: tuple[Plan, ...] = ()
    ) -> None:
        super().__init__(layout.game, options)
        self.layout = layout
        self.plans = plans or make_plans(layout, options.slots, options.joins)
        self.plan = joined(self.plans)
        self.files, self.budget = len(self.plan.files), memory_budget(options)
        self.compile_seconds = 0.0

    def starts(self) -> Ints:
        start = self.game.start()
        return np.array([] if start is None else [start])

    def entries(self, manifest: Manifest) -> list[FileEntry]:
        return [manifest.files[name] for name in self.plan.files & manifest.files.keys()]

    def check_room(self, table: Path, manifest: Manifest | None) -> None:
        plan, present = self.plan, set[str]()
        if manifest is not None:
            solved_again = manifest.next.files if manifest.next else ()
            files = solved_again if self.options.force else manifest.files.values()
            present = {entry.name for entry in files}
        if todo := plan.missing(present):
            check_room(plan, self.budget, table, self.layout.smaller, todo, self.options.slots)

    def compile(self) -> None:
        started = time.perf_counter()
        self.layout.compile()
        if len(self.plans) > 1:
            self.game.need(DecisionLayout).compile()
        self.compile_seconds = time.perf_counter() - started

    def solve(self, report: Solved) -> Solved:
        manifest, goal = report.manifest, report.goal
        if is_new(goal, manifest):
            self.writer.commit(goal)
        todo = [plan.missing(manifest.files) for plan in self.plans]
        tiers, *beyond = self.plans
        if todo[0]:
            later = [shard for missing in todo[1:] for shard in missing]
            rows = sum(shard.rows for shard in later)
            run = TierRun(self, report, self.layout, tiers, self.budget, (len(later), rows))
            report = run.solve()
        for plan, missing in zip(beyond, todo[1:], strict=True):
            if missing:
                report = ChainRun(self, report, self.game, plan, self.budget).solve()
        if any(todo):
            report = replace(report, compile_seconds=self.compile_seconds)
        if goal.ask not in manifest.done:
            self.writer.add(Done(goal.ask, self.files, self.plan.rows))
        for earlier in manifest.goals:  # goals undone by a lost file or --force are reached again
            if earlier.part == TIERS and earlier.ask not in manifest.done:
                plan = joined(make_plans(load_game(manifest.board(earlier.reach)).need(FullTable)))
                if not plan.missing(manifest.files):
                    self.writer.add(Done(earlier.ask, len(plan.files), plan.rows))
        return report


# --- tiers ---------------------------------------------------------------------------------------


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
        self.shards_total = self.rows_total = 0

    def solve(self) -> Solved:
        plan, slots = self.plan, self.options.slots
        spare = max(0, self.memory - min(self.memory, plan.shard_memory * slots))
        with self.open(spare, min(spare, round(1.1 * plan.kept_bytes) + slots * self.largest)):
            self.workers.check_memory(plan.shard_memory, self.layout.smaller)
            self.solve_shards()
        return self.done()

    def make_schedule(self) -> Schedule:
        shards, committed = self.plan.shards, self.plan.committed(self.manifest)
        # A boundary has no file to read back: take it from its tier again.
        in_files = {i for i in committed if shards[i].files} if self.exact else ()
        schedule = Schedule(
            shards, workers=self.workers.slots, memory=self.memory, committed=committed,
            stored=in_files, ahead=AHEAD if self.options.joins else 1,
        )  # fmt: skip
        waiting = [shards[i] for i in schedule.waiting]
        self.shards_total = self.report.shards + sum(bool(s.files) for s in waiting) + self.later[0]
        self.rows_total = self.progress().rows + sum(s.rows for s in waiting) + self.later[1]
        return schedule

    def progress(self) -> Progress:
        now = self.report
        done = now.states + now.again + now.read
        return Progress(now.shards, self.shards_total, done, self.rows_total, self.seconds)

    def rows_solved(self, shard: int) -> int:
        """Return the number of states of a finished shard that its task solved or read back."""
        return self.plan.shards[shard].rows

    def count(self, receipt: Receipt) -> None:
        self.add(shards=bool(self.plan.shards[receipt.shard].files))
        solved, new = self.rows_solved(receipt.shard), sum(e.rows for e in receipt.files.values())
        if receipt.shard in self.schedule.stored:
            self.add(read=solved)
            return
        again, seconds = solved - new, receipt.solve_seconds / max(1, solved)
        self.add(
            states=new, again=again, solve_seconds=seconds * new, again_seconds=seconds * again
        )

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


def buffer(
    name: str, shape: tuple[int, ...], kind: Any = np.float64, reuse: bool = True
) -> NDArray[Any]:
    """Return this worker's buffer, because touching fresh memory costs more than the kernel; a new
    array if not `reuse`."""
    if not reuse:
        return np.empty(shape, kind)
    needed, name = math.prod(shape), f"{name} {np.dtype(kind)}"
    buffer: NDArray[Any] | None = getattr(_thread_buffers, name, None)
    if buffer is None or buffer.size < needed:
        setattr(_thread_buffers, name, None)  # free the old one first
        buffer = np.empty(needed, kind)
        setattr(_thread_buffers, name, buffer)
    return buffer[:needed].reshape(shape)


# --- decisions beyond the frontier ---------------------------------------------------------------


class ChainRun(TierRun):
    """Solves the decisions beyond the frontier. Counts include earlier runs of the same solve."""

    def __init__(self, work: Work, report: Solved, game: Game, plan: Plan, memory: int) -> None:
        self.decisions = game.need(DecisionLayout)
        super().__init__(work, report, self.decisions.layout, plan, memory)
        threads = self.options.slots
        if not self.options.joins:
            self.options = replace(self.options, workers=chain_slots(plan, memory, threads))
        self.threads, self.exact = max(1, threads // self.options.slots), False
        sizes = (sum(piece_sizes(self.decisions, shard.work.gives)) for shard in plan.shards)
        self.largest = 8 * max(sizes)
        self.solved: dict[int, int] = {}
        """The number of tiers of each chain that are solved: up to the last one needed."""

    def _payoffs_name(self, shard: int) -> int:
        return shard

    def task(self, step: Solve) -> Task:
        shard, files = self.plan.shards[step.shard], self.manifest.files
        chain: Chain = shard.work
        names = [name if step.commit and name not in files else "" for name in chain.names]
        kept = {max(piece, ~piece) for piece in chain.gives if step.keep}
        needed = [k for k, i in enumerate(chain.tiers) if names[k] or i in kept]
        count = self.solved[step.shard] = needed[-1] + 1
        cores = min(step.cores, self.workers.widest)
        job = SolveChain(
            board=self.game.board, location=self.location, tiers=chain.tiers[:count],
            gives=chain.gives,
            reads=tuple(self.plan.shards[i].work.gives for i in shard.children),
            names=tuple(names[:count]), threads=max(self.threads, cores),
            reuse=self.options.address is None,
        )  # fmt: skip
        size = sum(piece_sizes(self.decisions, chain.gives))
        keep = PayoffPlace(step.shard, (size,), (0, size)) if step.keep else None
        return Task(step.shard, job, shard.memory, shard.children, keep, cores=cores)

    def rows_solved(self, shard: int) -> int:
        return sum(self.plan.shards[shard].work.rows[: self.solved[shard]])

    def count(self, receipt: Receipt) -> None:
        super().count(receipt)
        self.rows_total -= self.plan.shards[receipt.shard].rows - self.rows_solved(receipt.shard)


@dataclass(frozen=True, kw_only=True)
class SolveChain(TierJob):
    """The job that solves the tiers of a chain one after another."""

    tiers: range
    """Indices in the order of the decisions."""
    gives: tuple[int, ...]
    """As in `Chain.gives`."""
    reads: tuple[tuple[int, ...], ...]
    """The `gives` of each chain that it reads."""
    names: tuple[str, ...]
    """The file of each tier; "" if none is to be written."""
    threads: int
    reuse: bool
    """True to keep the worker's memory for the next job: touching fresh memory takes three times as
    long as solving the states in it (measured: 34 of 45 ns a state). Not for Ray, where many
    processes may follow one another on a machine."""

    def compile(self) -> None:
        self.layout.compile()

    def run(self, task: Task, payoffs: Sequence[Floats], out: Out, stop: Stop) -> Steps:
        """Solve the tiers and write their files.

        payoffs: for each chain that is read, the pieces that it gives, concatenated.
        """
        layout, dense, order = self.layout, self.layout.layout, self.layout.tiers()
        dense.threads = self.threads
        outputs = np.empty(sum(piece_sizes(layout, self.gives))) if out is None else out
        pieces_by_index = self._pieces(self.gives, outputs)
        for gives, pieces in zip(self.reads, map(writable, payoffs), strict=True):
            pieces_by_index |= self._pieces(gives, pieces)
        index = {tier: i for i, tier in enumerate(order)}
        sizes = {i: math.prod(dense.shape(order[i])) for i in self.tiers}
        last = self.tiers[-1]  # its buffer, usually the largest, is the first tier's in every chain
        most = [max((sizes[i] for i in self.tiers if (last - i) % 2 == turn), default=0)
                for turn in (0, 1)]  # fmt: skip
        rooms = [buffer(f"payoffs {turn}", (most[turn],), reuse=self.reuse) for turn in (0, 1)]
        current: Floats | None = None
        seconds, files = 0.0, list[Written]()
        with self.location.storage() as storage:
            for i, name in zip(self.tiers, self.names, strict=True):
                started, tier = time.perf_counter(), order[i]
                below = layout.below(tier)
                if i == self.tiers[0] and below is not None:
                    current = pieces_by_index[index[below]].reshape(dense.shape(below))
                child_payoffs = None if below is None else current
                current = rooms[(last - i) % 2][: sizes[i]].reshape(dense.shape(tier))
                best = buffer("best", (dense.rows(tier),), np.int8, self.reuse)
                boundaries = {
                    child: pieces_by_index[~index[child]] for child in layout.boundaries_read(tier)
                }
                layout.solve_tier(tier, current, child_payoffs, boundaries, stop, best)
                if ~i in self.gives:
                    layout.take_boundary(tier, current, pieces_by_index[~i])
                if i in self.gives:
                    pieces_by_index[i][:] = current.reshape(-1)
                seconds += time.perf_counter() - started
                if name:
                    files.append(write_decisions(storage, layout, tier, best, stop))
            receipt = Receipt(shard=task.shard, solve_seconds=seconds)
            done = receipt.with_files(storage, self.location.writer, files)
        yield outputs if task.keep is not None else None
        yield done

    def _pieces(self, gives: tuple[int, ...], together: Floats) -> dict[int, Floats]:
        ends = np.cumsum(piece_sizes(self.layout, gives))
        return dict(zip(gives, np.split(together, ends[:-1]), strict=False))
