"""The driver: one pipeline for every solve, and one loop that hands out shards.

`solve_table` looks what is there, refuses what can not be done, locks the table, and has its `Work`
do the rest: a full table (`tiers`), or what lies below some roots (`cluster.search.solve`).

`Run` hands the shards of a schedule to workers. A finished shard's Parquet file is put in its
place, then a line is added to the ledger: killed anywhere between, the same call goes on from the
last line. Payoffs stay with the workers until no shard reads them any more.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from luckbase.cluster.machine import MemoryUsed, free_memory, look_from_now, memory_used, total
from luckbase.cluster.run.lock import (
    complete_ledger,
    is_new,
    lock,
    make_goal,
    open_ledger,
    shown_by_a_file,
    spill_folder,
    tidy,
)
from luckbase.cluster.run.options import Options
from luckbase.cluster.run.plan import MEMORY_SHARE
from luckbase.cluster.run.progress import Progress, Solved, Watch
from luckbase.cluster.run.schedule import Commit, Drop, Instruction, Schedule, Solve
from luckbase.cluster.run.worker import (
    Handed,
    PayoffsLostError,
    Pool,
    Receipt,
    TableLocation,
    Task,
    Workers,
    process_name,
    threads,
)
from luckbase.cluster.table.folder import Commits, commit, compact
from luckbase.cluster.table.ledger import Goal, Ledger, Roots, table_directory
from luckbase.cluster.table.storage import Folder
from luckbase.solver.check import check_sample
from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.game import Game

UNLIMITED = 1 << 62
LOSSES_ALLOWED = 3
S = TypeVar("S", bound=Solved)


class Work(ABC, Generic[S]):
    """What is to be solved of a table: the part `part`, below `roots` where it is a search; `files`
    of a goal; with a column `margin` of the full table or without."""

    part: str
    roots: Roots | None = None
    files: int = 1
    margin: bool = False

    def __init__(self, game: Game, options: Options) -> None:
        self.game, self.options = game, options

    @abstractmethod
    def starts(self) -> Ints:
        """States (n, fields) from which a sample is held to the rules before anything is solved."""

    @abstractmethod
    def is_there(self, ledger: Ledger) -> bool:
        """Whether the files of the work are there, which the ledger says are done."""

    @abstractmethod
    def report(self, table: Path, ledger: Ledger, goal: Goal) -> S:
        """What there was before."""

    def check_room(self, table: Path) -> None:
        """Raises MemoryLimitError, DiskLimitError for what will not fit."""

    @abstractmethod
    def forget(self, table: Path, ledger: Ledger) -> None:
        """Take out of the table what is to be solved again (``--force``)."""

    @abstractmethod
    def compile(self) -> None:
        """Compile, or load, what is needed, before every worker does."""

    @abstractmethod
    def solve(self, report: S) -> S:
        """Solve what is missing, and commit that it is there; what was done."""


def solve_table(work: Work[S]) -> S:
    """Solve what is missing; a table that is complete is left alone.

    Raises RequestError for what can not be done (too little memory or disk, another solve of the
    same table running), CorruptTableError for a file that a solve reads back and that has changed.
    """
    game, options = work.game, work.options
    table = table_directory(options.folder, game)
    if options.joins:
        from luckbase.cluster.run.ray import check_address  # Ray itself comes later

        check_address(str(options.address))
    if not (options.force or options.check):
        there = complete_ledger(game, table, work.part, work.roots, margin=work.margin)
        if there is not None and work.is_there(there):
            tidy(table)
            return work.report(table, there, _goal(work, there))
    work.check_room(table)
    with lock(table):
        look_from_now()
        ledger, damaged = open_ledger(game, table, work.part, check=options.check)
        if options.force:
            work.forget(table, ledger)
        goal = _goal(work, ledger)
        report = replace(work.report(table, ledger, goal), damaged=tuple(damaged))
        if goal.ask not in ledger.done or not work.is_there(ledger):
            check_sample(game, work.starts())
            options.on_progress(Progress(0, 0, 0, 0, 0.0, compiling=True))
            work.compile()
            report = work.solve(report)
        elif is_new(goal, ledger):
            commit(Folder(table), ledger, goal)
        compact(Folder(table), ledger)
    return report


def _goal(work: Work[Any], ledger: Ledger) -> Goal:
    return make_goal(
        work.game, ledger, work.part, work.files, roots=work.roots, margin=work.margin
    )  # fmt: skip


def memory_budget(options: Options) -> int:
    """Bytes that shards in flight and kept payoffs may have here; of a cluster each node looks
    after its own."""
    if options.memory is not None:
        return options.memory
    return int(free_memory() * MEMORY_SHARE) if not options.joins else UNLIMITED


def peak_memory(processes: dict[str, MemoryUsed] = {}) -> int:
    """Bytes that this process and others have had together at most."""
    return total(processes | {process_name(): memory_used()})


class Run(ABC, Generic[S]):
    """One run over workers: the schedule, the ledger, the counts. `workers`, `watch` and `location`
    are there while they are open."""

    workers: Workers
    watch: Watch
    location: TableLocation
    schedule: Schedule

    def __init__(self, game: Game, report: S, options: Options, memory: int) -> None:
        self.game, self.before, self.options, self.memory = game, report, options, memory
        self.ledger, self.storage = report.ledger, Folder(report.table)
        self.commits = Commits(self.storage, self.ledger)
        self.processes: dict[str, MemoryUsed] = {}
        self.dropped: list[int] = []
        self.cores, self.solve_seconds = 0, 0.0
        self.started = time.perf_counter()

    @abstractmethod
    def make_schedule(self) -> Schedule:
        """What is still to do."""

    @abstractmethod
    def task(self, step: Solve) -> Task:
        """The task of an instruction."""

    @abstractmethod
    def commit(self, receipt: Any) -> None:
        """Add a file that is wanted, and its line, to `commits`."""

    @abstractmethod
    def count(self, receipt: Any) -> None:
        """Count what came of a task."""

    @abstractmethod
    def drop(self, shards: list[int]) -> None:
        """Nobody reads the payoffs of these shards any more."""

    @abstractmethod
    def progress(self) -> Progress:
        """How far it is."""

    @property
    def seconds(self) -> float:
        """Since it started."""
        return time.perf_counter() - self.started

    @contextmanager
    def open(self, kept: int, store: int) -> Iterator[None]:
        """The workers: threads, or Ray's where there is an address. kept: bytes of payoffs that
        threads keep in memory; store: of the object store of a Ray that is started here."""
        table, options = self.before.table, self.options
        with (
            Watch(table, options.on_progress, options.on_note) as self.watch,
            shown_by_a_file(table) as self.location,
            self._workers(kept, store) as self.workers,
        ):
            yield

    def _workers(self, kept: int, store: int) -> AbstractContextManager[Workers]:
        options = self.options
        if options.address is None:
            return threads(options.slots, Pool(kept, spill_folder(self.location.table)))
        from luckbase.cluster.run.ray import ray_cluster, ray_here

        if options.joins:
            return ray_cluster(options.address, self.location, self.watch.note, options.workers)
        return ray_here(options.slots, self.location, store, self.watch.note)

    def done(self, **counts: Any) -> S:
        """What was done, beside what is known already."""
        return replace(
            self.before, seconds=self.seconds, solve_seconds=self.solve_seconds,
            peak_memory=peak_memory(self.processes), workers=self.cores or self.options.slots,
            ray=self.options.address is not None, **counts,
        )  # fmt: skip

    def solve_shards(self) -> None:
        """Until nothing is left to do; where payoffs were lost with their machines, again from what
        is committed, `LOSSES_ALLOWED` times."""
        for left in range(LOSSES_ALLOWED, -1, -1):
            try:
                self.schedule = self.make_schedule()
                return self.follow_schedule()
            except PayoffsLostError as error:
                if not left:
                    raise
                self.watch.note(f"{error}; it does so now")
                self.workers.forget()

    def follow_schedule(self) -> None:
        """Until the schedule is finished. What is solved stays, also at an error."""
        schedule, workers, commits = self.schedule, self.workers, self.commits
        self.dropped = []
        with commits:
            self._follow(schedule.start())
            while not schedule.finished:
                event = workers.wait_one(0.0 if self.dropped or commits else 0.5)
                if isinstance(event, Handed):
                    self._follow(schedule.handed(event.shard))
                elif event is not None:
                    self._follow(schedule.solved(event.shard), event)
                if workers.slots != schedule.workers:
                    self._follow(schedule.resize(workers.slots))
                if event is None or commits.full:
                    self._settle()
            self._settle()

    def _follow(self, steps: list[Instruction], receipt: Any = None) -> None:
        # New work first: workers go on while this process flushes and renames.
        for step in steps:
            if isinstance(step, Solve):
                self.workers.submit(self.task(step))
        if any(isinstance(step, Commit) and step.commit for step in steps):
            with self.commits.taking_in():
                self.commit(receipt)
        if receipt is not None:
            self.note_memory(receipt)
            self.count(receipt)
        self.dropped += [step.shard for step in steps if isinstance(step, Drop)]

    def note_memory(self, receipt: Receipt) -> None:
        """How much memory a worker has had."""
        self.processes[receipt.process] = receipt.peak

    def _settle(self) -> None:
        """Commit what waits, then drop: nothing goes that is needed while that is not there."""
        self.commits.flush()
        if self.dropped:
            self.drop(self.dropped)
            self.dropped = []
        self.show(self.progress())

    def show(self, progress: Progress) -> None:
        """How far it is, and what each machine does."""
        doing = self.workers.doing()
        self.cores = max(self.cores, sum(node["slots"] for node in doing if "left_out" not in node))
        self.watch.show(progress, doing)
