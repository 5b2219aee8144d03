"""The solve of a full table: its tiers, or parts of them, children first.

What an earlier run committed stays as it is. Where a shard still to do reads it, it is read back if
the stored payoffs are the kernel's own numbers (float64), else solved again and not written again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from luckbase.cluster.machine import cores
from luckbase.cluster.run.driver import Run, Work, memory_budget, solve_table
from luckbase.cluster.run.lock import is_new
from luckbase.cluster.run.options import Options, SolveOptions
from luckbase.cluster.run.plan import Plan, check_room, make_plan, payoff_bytes
from luckbase.cluster.run.progress import Progress, SolvedTiers
from luckbase.cluster.run.schedule import Schedule, Solve
from luckbase.cluster.run.worker import Kept, Receipt, Sent, Stop, TableLocation, Task, writable
from luckbase.cluster.table.answer import origin_of
from luckbase.cluster.table.folder import commit, drop_files
from luckbase.cluster.table.format import file_entry, key_range, write_tier
from luckbase.cluster.table.ledger import TIERS, Done, FileEntry, Goal, Ledger
from luckbase.cluster.table.parquet import SealedFile, numbers_of, payoff_columns
from luckbase.cluster.table.storage import Folder
from luckbase.solver import load_layout
from luckbase.solver.board.model import Board
from luckbase.solver.game.arrays import Decisions, Floats, Ints
from luckbase.solver.game.capabilities import Layout


def solve(board: Board, **options: Unpack[SolveOptions]) -> SolvedTiers:
    """Solve what is missing of the board's full table. Raises as `driver.solve_table`."""
    return solve_table(_FullTable(load_layout(board), Options(**options)))


class _FullTable(Work[SolvedTiers]):
    part = TIERS

    def __init__(self, layout: Layout[Any], options: Options) -> None:
        super().__init__(layout.game, options)
        self.layout, self.plan = layout, make_plan(layout, options.slots)
        self.files, self.margin = len(self.plan.files), options.margin
        self.budget, self.compile_seconds = memory_budget(options), 0.0

    def starts(self) -> Ints:
        start = self.game.start()
        return np.array([] if start is None else [start])

    def is_there(self, ledger: Ledger) -> bool:
        return ledger.files.keys() >= set(self.plan.files)

    def report(self, table: Path, ledger: Ledger, goal: Goal) -> SolvedTiers:
        kept = sum(ledger.files[name].rows for name in self.plan.files if name in ledger.files)
        workers = self.options.slots
        return SolvedTiers(origin_of(self.game), table, ledger, goal, kept=kept, workers=workers)

    def check_room(self, table: Path) -> None:
        plan, again = self.plan, self.options.force
        there = set() if again else set(Folder(table).list(f"{TIERS}/"))
        todo = [i for i, name in enumerate(plan.files) if name not in there]
        if todo:
            smaller = self.layout.smaller
            check_room(plan, self.budget, table, smaller, todo, self.options.slots)

    def forget(self, table: Path, ledger: Ledger) -> None:
        # All of the part where its files get another column, else what is wanted.
        anew = self.margin and not ledger.margin
        every = [entry.name for entry in ledger.of_part(TIERS)]
        drop_files(Folder(table), ledger, [n for n in every if anew or n in self.plan.files])

    def compile(self) -> None:
        started = time.perf_counter()
        self.layout.compile()
        self.compile_seconds = time.perf_counter() - started

    def solve(self, report: SolvedTiers) -> SolvedTiers:
        ledger, goal, plan = report.ledger, report.goal, self.plan
        folder = Folder(report.table)
        if is_new(goal, ledger):
            commit(folder, ledger, goal)
        if not self.is_there(ledger):
            run = _Run(self.layout, plan, report, self.options, self.budget)
            report = replace(run.solve(), compile_seconds=self.compile_seconds)
        if goal.ask not in ledger.done:
            commit(folder, ledger, Done(goal.ask, len(plan.files), plan.rows))
        for other in ledger.goals:  # which a lost file or --force undid, and all is there again
            if other.part == TIERS and other.ask not in ledger.done:
                plan = make_plan(load_layout(ledger.board(other.reach)))
                if ledger.files.keys() >= set(plan.files):
                    commit(folder, ledger, Done(other.ask, len(plan.files), plan.rows))
        return report


class _Run(Run[SolvedTiers]):
    def __init__(
        self, layout: Layout[Any], plan: Plan, report: SolvedTiers, options: Options, memory: int
    ) -> None:
        super().__init__(layout.game, report, options, memory)
        self.layout, self.plan = layout, plan
        self._index = {tier: i for i, tier in enumerate(layout.tiers())}
        self.shards = self.rows = self.again = self.read = 0
        self.shards_total = self.rows_total = 0
        self.again_seconds = 0.0
        self.tally: dict[str, float] = {}

    def solve(self) -> SolvedTiers:
        """All of it; returns what was done."""
        plan, slots = self.plan, self.options.slots
        left = max(0, self.memory - min(self.memory, plan.shard_memory * slots))
        largest = max(payoff_bytes(self.layout, tier) for tier in self.layout.tiers())
        with self.open(left, min(left, round(1.1 * plan.kept_bytes) + slots * largest)):
            self.workers.check_memory(plan.shard_memory, self.layout.smaller)
            self.solve_shards()
        return self.done(
            again=self.again, read=self.read, states=self.rows, shards=self.shards,
            again_seconds=self.again_seconds, tally=self.tally,
        )  # fmt: skip

    def make_schedule(self) -> Schedule:
        plan, ledger = self.plan, self.ledger
        committed = {i for i, name in enumerate(plan.files) if name in ledger.files}
        exact = self.layout.payoff_type is np.float64
        schedule = Schedule(
            plan.shards, workers=self.workers.slots, memory=self.memory, committed=committed,
            stored=committed if exact else (),
        )  # fmt: skip
        self.shards_total = self.shards + len(schedule.waiting)
        done = self.rows + self.again + self.read
        self.rows_total = done + sum(plan.shards[i].rows for i in schedule.waiting)
        return schedule

    def progress(self) -> Progress:
        done = self.rows + self.again + self.read
        return Progress(self.shards, self.shards_total, done, self.rows_total, self.seconds)

    def count(self, receipt: Receipt) -> None:
        rows = self.plan.shards[receipt.shard].rows
        self.shards += 1
        if receipt.shard in self.schedule.stored:
            self.read += rows
        elif receipt.file is None:
            self.again += rows
            self.again_seconds += receipt.solve_seconds
        else:
            self.rows += rows
            self.solve_seconds += receipt.solve_seconds
            self.tally = add_tally(self.tally, receipt.tally)

    def drop(self, shards: list[int]) -> None:
        dropped = {self.plan.parts[shard][0] for shard in shards}
        for tier in dropped - {self.plan.parts[shard][0] for shard in self.schedule.kept}:
            self.workers.drop(tier)  # a tier in parts goes with the last one

    def task(self, step: Solve) -> Task:
        index, part = self.plan.parts[step.shard]
        layout, tier = self.layout, self.layout.tiers()[index]
        stored, reads = None, sorted(self._index[child] for child in layout.children(tier))
        if step.shard in self.schedule.stored:
            stored, reads = self.ledger.files[self.plan.files[step.shard]], []
        ranges = layout.parts(tier)
        job = SolveTier(
            board=self.game.board, location=self.location, shard=step.shard, tier=index, part=part,
            reads=tuple(reads), commit=step.commit, keep=step.keep, margin=self.ledger.margin,
            stored=stored, threads=0 if self.options.joins else 1,  # here each core has a worker
        )  # fmt: skip
        keep = Kept(index, layout.shape(tier), ranges[part], part, len(ranges))
        memory = self.plan.shards[step.shard].memory
        return Task(step.shard, job, memory, tuple(reads), keep if step.keep else None)

    def commit(self, receipt: Receipt) -> None:
        assert receipt.file is not None
        index, part = self.plan.parts[receipt.shard]
        tier = self.layout.tiers()[index]
        number, (start, _) = self.layout.tier_number(tier), self.layout.parts(tier)[part]
        entry = file_entry(
            self.plan.files[receipt.shard], TIERS, number,
            key_range(number, receipt.file.rows, start), receipt.file, receipt.solve_seconds,
        )  # fmt: skip
        self.commits.add(entry, {entry.name: receipt.file.path})


def add_tally(total: dict[str, float], more: dict[str, float]) -> dict[str, float]:
    """Two tallies together: names that begin with "worst" are maxima, the others sums."""
    found = dict(total)
    for name, number in more.items():
        before = found.get(name, 0.0)
        found[name] = max(before, number) if name.startswith("worst") else before + number
    return found


@dataclass(frozen=True)
class SolveTier:
    """One shard of a full table: a part of the tier with this index in the board's plan; what of it
    is wanted: its file (commit), its payoffs (keep).

    reads: the tiers, by index, whose payoffs it is handed. stored: the shard's committed file
    where that holds the kernel's own numbers: they are read back, and nothing is solved. threads:
    that solve it, at most; 0 for as many as its machine has cores.
    """

    board: Board
    location: TableLocation
    shard: int
    tier: int
    part: int
    reads: tuple[int, ...]
    commit: bool
    keep: bool
    margin: bool = False
    stored: FileEntry | None = None
    threads: int = 0

    @property
    def place(self) -> str:
        """Where its file goes, about."""
        return f"{TIERS}/shard-{self.shard}"

    def compile(self) -> None:
        """Compile, or load, what it needs."""
        load_layout(self.board).compile()

    def run(
        self, payoffs: Sequence[Floats], sent: Sent, out: Floats | None, stop: Stop
    ) -> Iterator[Any]:
        """Solve the shard, or read it back; yields as `Job.run`."""
        layout = load_layout(self.board)
        tier = layout.tiers()[self.tier]
        started = time.perf_counter()
        if self.stored is not None:
            yield self._read_back(layout, tier, self.stored, sent, out)
            yield Receipt(shard=self.shard, solve_seconds=time.perf_counter() - started), None
            return
        start, stop_at = layout.parts(tier)[self.part]
        layout.threads = self.threads or cores()
        tiers = layout.tiers()
        below = {
            tiers[i]: writable(read).reshape(layout.shape(tiers[i]))
            for i, read in zip(self.reads, payoffs, strict=True)
        }
        own = _buffer("payoffs", part_shape(layout, tier, self.part)) if out is None else out
        decisions = self._decisions(stop_at - start) if self.commit else None
        error = layout.solve_tier(tier, own, below.__getitem__, stop, self.part, decisions)
        tally = layout.take_tally(tier, self.part)
        seconds = time.perf_counter() - started
        yield own if self.keep else None
        if decisions is None:
            yield Receipt(shard=self.shard, solve_seconds=seconds, tally=tally), None
            return
        with self.location.storage() as storage:
            file = write_tier(storage, layout, tier, own, decisions, error, self.part)
            receipt = Receipt(shard=self.shard, solve_seconds=seconds, file=file, tally=tally)
            done = receipt.with_bytes(storage, file.path)
        yield done

    def _decisions(self, rows: int) -> Decisions:
        best = _buffer("best", (rows,), np.int8)
        best.fill(-1)
        margin = _buffer("margin", (rows,)) if self.margin else None
        if margin is not None:
            margin.fill(np.nan)
        return Decisions(best, margin)

    def _read_back(
        self, layout: Layout[Any], tier: Any, entry: FileEntry, sent: Sent, out: Floats | None
    ) -> Floats:
        """The kernel's own numbers from a committed file. Raises CorruptTableError."""
        source = self.location.source([entry.name], sent)
        payoffs = np.empty(part_shape(layout, tier, self.part)) if out is None else out
        planes = layout.kernel_planes(tier)
        flat = payoffs.reshape(len(planes), -1)
        names = payoff_columns(layout.game)
        read = [names[player] for player in planes if player >= 0]
        file, at = SealedFile(source, self.location.table, entry), 0
        for number in range(file.groups):
            group = file.read(number, read)
            rows = slice(at, at + group.num_rows)
            for plane, player in zip(flat, planes, strict=True):
                plane[rows] = numbers_of(group.column(names[player])) if player >= 0 else 0.0
            at = rows.stop
        file.close()
        return payoffs


def part_shape(layout: Layout[Any], tier: Any, part: int) -> tuple[int, ...]:
    """The shape of the payoffs of a part of a tier."""
    shape, ranges = layout.shape(tier), layout.parts(tier)
    if len(ranges) == 1:
        return shape
    start, stop = ranges[part]
    return stop - start, *shape[1:]


_own = threading.local()


def _buffer(name: str, shape: tuple[int, ...], kind: Any = np.float64) -> NDArray[Any]:
    """This worker's buffer, the size it needs; touching fresh memory costs more than the kernel."""
    size = int(np.prod(shape))
    held: NDArray[Any] | None = getattr(_own, name, None)
    if held is None or held.size < size:
        setattr(_own, name, None)  # let go of the old one first
        held = np.empty(size, kind)
        setattr(_own, name, held)
    return held[:size].reshape(shape)
