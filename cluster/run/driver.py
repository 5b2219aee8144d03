"""The driver: one pipeline for every solve, and one loop that hands out shards.

`solve_table` looks what is there, refuses what can not be done, locks the table, and has its `Work`
do the rest: a full table (`tiers`), or what lies below some roots (`cluster.search.solve`).

`Run` hands the shards of a schedule to workers. A finished shard's Parquet file is in its place,
then a line is added to the ledger: killed anywhere between, the same call goes on from the
last line. Payoffs stay with the workers until no shard reads them any more.
"""

from __future__ import annotations

import os
import shutil
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np

from luckbase.cluster import machine
from luckbase.cluster.machine import MemoryUsed
from luckbase.cluster.run.options import Options
from luckbase.cluster.run.progress import Lock, Progress, Solved, Watch, lock
from luckbase.cluster.run.schedule import Commit, Drop, Instruction, Schedule, Solve
from luckbase.cluster.run.worker import (
    PayoffsLostError,
    PayoffsReady,
    Pool,
    Receipt,
    TableLocation,
    Task,
    Threads,
    Workers,
)
from luckbase.cluster.table import RUNNING
from luckbase.cluster.table.entries import (
    HEAD,
    Commits,
    begin,
    check_identity,
    commit,
    compact,
    damaged_files,
    drop_files,
    entries_of,
    read_ledger,
    sweep,
    write_head,
)
from luckbase.cluster.table.index import take_index_away, write_index
from luckbase.cluster.table.ledger import (
    Goal,
    Ledger,
    Roots,
    digest,
    new_head,
    reach_of,
    table_directory,
)
from luckbase.cluster.table.storage import Storage, attempt, storage_at
from luckbase.solver.board.file import read_board
from luckbase.solver.board.model import rules_form, rules_identity
from luckbase.solver.errors import (
    CorruptTableError,
    ForeignTableError,
    GameError,
    LuckbaseError,
    MissingTableError,
    RequestError,
    StateError,
    StoreError,
    TableError,
)
from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.game import Game

PROBE = ".here-"
UNLIMITED = 1 << 62
LOSSES_ALLOWED = 3
IDLE_SECONDS = 0.5
S = TypeVar("S", bound=Solved)


class Work(ABC, Generic[S]):
    """What is to be solved of a table."""

    part: str
    others: tuple[str, ...] = ()
    """Other parts that it writes to."""
    roots: Roots | None = None
    """Of a search."""
    files: int = 1
    """Of a goal."""

    def __init__(self, game: Game, options: Options) -> None:
        self.game, self.options = game, options

    @abstractmethod
    def starts(self) -> Ints:
        """States (n, fields) from which a sample is held to the rules before anything is solved."""

    def is_there(self, ledger: Ledger) -> bool:
        """Whether the files of the work are there, which the ledger says are done."""
        return True

    @abstractmethod
    def report(self, table: Path, ledger: Ledger, goal: Goal) -> S:
        """What there was before."""

    def check_room(self, table: Path) -> None:
        """Raises MemoryLimitError, DiskLimitError for what will not fit."""

    def check_workers(self, workers: Workers) -> None:
        """Raise MemoryLimitError if no machine has the memory for the largest shard."""

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
    game, options, part, roots = work.game, work.options, work.part, work.roots
    table = table_directory(options.folder, game)
    if options.joins:
        from luckbase.cluster.run.ray import check_address  # Ray itself comes later

        check_address(str(options.address))
    if not options.force:
        whole = complete_ledger(game, table, part, roots)
        if whole is not None and work.is_there(whole):
            _tidy(table, whole)
            goal = _goal(game, whole, part, roots, work.files)
            return work.report(table, whole, goal)
    storage_at(table).check_writable()
    work.check_room(table)
    if game.is_checked:
        from luckbase.solver.check import check_sample  # brings the search

        check_sample(game, work.starts())
    with lock(table, options.on_note) as lease:
        machine.restart_memory_peak()
        parts = (part, *work.others)
        if options.force and options.joins:
            _check_cluster(work, table)
        ledger, damaged = _open_ledger(game, table, parts, lease)
        if options.force:
            work.forget(table, ledger)
        goal = _goal(game, ledger, part, roots, work.files)
        report = replace(work.report(table, ledger, goal), damaged=tuple(damaged))
        if goal.ask not in ledger.done or not work.is_there(ledger):
            options.on_progress(Progress(0, 0, 0, 0, 0.0, compiling=True))
            work.compile()
            with _no_empty_table(storage_at(table), ledger):
                report = work.solve(report)
        elif is_new(goal, ledger):
            commit(ledger, goal)
        _finish(storage_at(table), ledger)
    return report


def _quiet(text: str, tell: bool = True) -> None:
    """Drop a note about the nodes: the solve itself makes it again."""


def _check_cluster(work: Work[Any], table: Path) -> None:
    """Join the cluster and leave it again, before `--force` removes a finished table.

    Raises OptionError if the cluster does not let this process in, MemoryLimitError if no node has
    the memory.
    """
    from luckbase.cluster.run.ray import ray_cluster

    options = work.options
    location = TableLocation(table, f"{PROBE}{attempt()}")
    with ray_cluster(str(options.address), location, _quiet, options.workers) as workers:
        work.check_workers(workers)


@contextmanager
def _no_empty_table(storage: Storage, ledger: Ledger) -> Iterator[None]:
    """Where a solve finds that these rules cannot be solved, nobody finds an empty table of them;
    the log and the fence stay."""
    try:
        yield
    except (GameError, StateError):
        if not (ledger.files or ledger.goals):
            storage.delete(HEAD)
        raise


# --- what is there -------------------------------------------------------------------------------


def complete_ledger(
    game: Game, table: Path, part: str, roots: Roots | None = None
) -> Ledger | None:
    """The ledger of a table that has all that was requested, with no file missing or short;
    None otherwise. Nothing is written, and nobody's solve is waited for."""
    storage = storage_at(table)
    try:
        ledger = read_ledger(storage, table)
    except TableError:
        return None
    goal = _goal(game, ledger, part, roots)
    complete = goal.ask in ledger.done and not is_new(goal, ledger)
    complete &= ledger.head.identity == rules_identity(game)
    return ledger if complete and not damaged_files(storage, table, ledger) else None


def _goal(game: Game, ledger: Ledger, part: str, roots: Roots | None, files: int = 0) -> Goal:
    """The goal of a solve."""
    reach = reach_of(game.board) if roots is None else {}
    number = max((goal.number for goal in ledger.goals), default=0) + 1
    return Goal(part, reach, roots, files, *_source(game), number)


def _source(game: Game) -> tuple[str, dict[str, str]]:
    """The file and the settings that the game's board was read from; "" where it is not what
    stands there."""
    source = game.board.source
    if source is None:
        return "", {}
    try:
        now = read_board(Path(source.file), source.settings)
    except LuckbaseError:
        return "", {}
    same = rules_form(now) == rules_form(game.board) and reach_of(now) == reach_of(game.board)
    return (source.file, dict(sorted(source.settings.items()))) if same else ("", {})


def is_new(goal: Goal, ledger: Ledger) -> bool:
    """Whether a goal says what no goal of the ledger says: how far, from which roots, or where the
    board stands."""
    sources = [(g.board_file, g.settings) for g in ledger.goals]
    return goal.ask not in {g.ask for g in ledger.goals} or (
        bool(goal.board_file) and (goal.board_file, goal.settings) not in sources
    )


def _finish(storage: Storage, ledger: Ledger) -> None:
    """Leave a table as others read it: one entry that says all, and of a store its index."""
    compact(ledger)
    if not storage.list(HEAD):  # somebody's `clean`, which was suspended, has just deleted it
        write_head(storage, ledger.head)
    if storage.anywhere:
        write_index(storage, storage.read(HEAD), ledger)


def _tidy(table: Path, whole: Ledger) -> None:
    """Do what is left for a complete table whose solve was killed at its very end: its ledger in
    one object, no temporary files. Who is at it just now does so at its own end."""
    if not whole.compacted:
        with suppress(RequestError, OSError), lock(table) as lease:
            storage = storage_at(table)
            ledger = begin(storage, table, whole.head, lease.holder, lease.lapsed)
            sweep(storage, ledger)
            _finish(storage, ledger)


def _open_ledger(
    game: Game, table: Path, parts: tuple[str, ...], lease: Lock
) -> tuple[Ledger, list[str]]:
    """The ledger to go on from, and what was damaged in these parts and dropped, a sentence each.
    Files that the ledger does not name are deleted.

    Files are checked by their sizes. Raises ForeignTableError if the folder holds a table of other
    rules.
    """
    storage, head, damaged = storage_at(table), new_head(game), list[str]()
    if storage.anywhere:
        _check_conditions(storage, table)
    try:
        check_identity(storage, table, head.identity)
    except MissingTableError:
        write_head(storage, head)
    except ForeignTableError:
        raise
    except CorruptTableError as error:
        damaged.append(str(error))
        write_head(storage, head)
    ledger = begin(storage, table, head, lease.holder, lease.lapsed)
    if storage.anywhere:
        take_index_away(storage, ledger)
    if ledger.damage:
        damaged += ledger.damage
        ledger.done.clear()
        compact(ledger)
    of_parts = replace(ledger, files={e.name: e for p in parts for e in ledger.of_part(p)})
    faults = damaged_files(storage, table, of_parts)
    if faults:
        drop_files(ledger, faults)
    probes = storage.list(PROBE)
    sweep(storage, ledger)
    for name in (RUNNING, *probes):
        storage.delete(name)
    return ledger, [*damaged, *faults.values()]


def _check_conditions(storage: Storage, table: Path) -> None:
    """Raises StoreError for a store that takes conditions and does not keep them: two solves of a
    table would not notice each other."""
    name, first = f"{PROBE}{attempt()}", attempt().encode()
    created = storage.put_if_absent(name, first)
    again = storage.put_if_absent(name, first[::-1])
    replaced = storage.put_if_match(name, first[::-1], "0" * 32)
    storage.delete(name)
    if not created or again or replaced:
        header = "If-Match" if created and not again else "If-None-Match"
        raise StoreError(
            f"{table}: the store does not do what the header {header} of a write says, so nothing "
            "would keep two solves apart; expected one that does, or a folder"
        )


# --- workers that see the table ------------------------------------------------------------------


@contextmanager
def shown_by_a_file(table: Path, joins: bool, mark: str) -> Iterator[TableLocation]:
    """The table with a file in its folder, by which machines that share it know it; at the end
    both are as before. In a store, or where a cluster `joins`, each machine keeps what is needed
    only meanwhile in a folder of its own, which the next driver finds, on whatever host.
    mark: of the driver."""
    storage, apart = storage_at(table), ""
    if joins or storage.anywhere:  # no other table of this name was made just then
        sha256 = digest(f"{table} {storage.details(HEAD)[HEAD].put_at}")
        apart = f"luckbase-{os.getuid()}-{sha256[:16]}"
    location = TableLocation(table, f"{PROBE}{attempt()}", apart, mark)
    shutil.rmtree(location.spill, ignore_errors=True)  # of one that was killed
    if not storage.anywhere:
        storage.put(location.probe_file, b"")
    try:
        yield location
    finally:
        if not storage.anywhere:
            storage.delete(location.probe_file)
        shutil.rmtree(location.spill, ignore_errors=True)
        if location.apart:
            with suppress(OSError):
                location.scratch.rmdir()


# --- the loop ------------------------------------------------------------------------------------


def memory_budget(options: Options) -> int:
    """Bytes that shards in flight and kept payoffs may have here; of a cluster each node looks
    after its own."""
    if options.memory is not None:
        return options.memory
    return UNLIMITED if options.joins else machine.memory_to_use()


def peak_memory(processes: dict[str, MemoryUsed] = {}) -> int:
    """Bytes that this process and others have had together at most."""
    return machine.total(processes | {machine.process_name(): machine.memory_used()})


class Run(ABC, Generic[S]):
    """One run over workers: the schedule, the ledger, the counts. `workers`, `watch` and `location`
    are there while they are open."""

    workers: Workers
    watch: Watch
    location: TableLocation
    schedule: Schedule
    kind: Any = np.float64
    """Of the payoffs that are kept."""

    def __init__(self, game: Game, report: S, options: Options, memory: int) -> None:
        self.game, self.before, self.options, self.memory = game, report, options, memory
        self.ledger, self.storage = report.ledger, storage_at(report.table)
        self.commits = Commits(self.ledger)
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
        """Add a requested file, and its line, to `commits`."""

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
            shown_by_a_file(table, options.joins, entries_of(self.ledger).mark) as self.location,
            self._workers(kept, store) as self.workers,
        ):
            yield

    def _workers(self, kept: int, store: int) -> AbstractContextManager[Workers]:
        options, location, note = self.options, self.location, self.watch.note
        if options.address is None:
            pool = Pool(kept, location.spill, self.kind)
            return closing(Threads(options.slots, pool, location))
        from luckbase.cluster.run.ray import ray_cluster, ray_here

        if options.joins:
            return ray_cluster(options.address, location, note, options.workers)
        return ray_here(options.slots, location, store, note)

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
                idle = 0.0 if self.dropped else IDLE_SECONDS
                event = workers.wait_one(commits.seconds if commits else idle)
                if isinstance(event, PayoffsReady):
                    self._follow(schedule.payoffs_ready(event.shard))
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
