"""The driver: a fixed order of steps for every solve, and a loop that hands out shards.

A `Work` is the request: a full table (`full_table`) or a search (`cluster.search.solve`).
`solve_table` reads the existing table, refuses impossible requests, becomes the table's writer, and
runs the work.

A `Run` is one pass over the workers. It hands them the shards of a schedule. The Parquet file of a
finished shard is in place before the manifest names it, so after a crash the same call continues
from the last commit. Workers keep payoffs until no shard reads them any more.
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
from typing import Any

from luckbase.cluster import machine
from luckbase.cluster.machine import MemoryUsed
from luckbase.cluster.solve.options import Options
from luckbase.cluster.solve.progress import Progress, Solved, Watch
from luckbase.cluster.solve.schedule import Drop, Instruction, Schedule, Solve
from luckbase.cluster.solve.worker import (
    PayoffsLostError,
    PayoffsReady,
    Pool,
    Receipt,
    TableLocation,
    Task,
    Threads,
    Workers,
)
from luckbase.cluster.store import RUNNING
from luckbase.cluster.store.manifest import (
    SHARDS,
    FileEntry,
    Goal,
    Manifest,
    Roots,
    digest,
    new_head,
    reach_of,
    table_directory,
)
from luckbase.cluster.store.provenance import origin_of
from luckbase.cluster.store.storage import Folder, storage_at
from luckbase.cluster.store.writer import Writer, damaged_files, read_manifest, writer_of
from luckbase.solver.board.file import read_board
from luckbase.solver.board.model import rules_form, rules_identity
from luckbase.solver.errors import GameError, LuckbaseError, StateError, TableError
from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.game import Game

UNLIMITED = 1 << 62
LOSSES_ALLOWED = 3
IDLE_SECONDS = 0.5


class Work(ABC):
    """The work of a solve: a part of a table."""

    part: str
    others: tuple[str, ...] = ()
    """Other parts to which it writes."""
    writer: Writer
    """Set while the table is open for writing."""
    roots: Roots | None = None
    """The roots, for a search."""
    files: int = 1
    """Number of files of a full table; 1 for a search, which may have more."""

    def __init__(self, game: Game, options: Options) -> None:
        self.game, self.options = game, options

    @abstractmethod
    def starts(self) -> Ints:
        """Return states (n, fields) from which a sample is checked against the rules first."""

    @abstractmethod
    def entries(self, manifest: Manifest) -> list[FileEntry]:
        """Return the files of the work that exist already."""

    @abstractmethod
    def check_room(self, table: Path, manifest: Manifest | None) -> None:
        """Raise MemoryLimitError or DiskLimitError if the remaining work does not fit.

        manifest: of the table, if there is one.
        """

    @abstractmethod
    def compile(self) -> None:
        """Compile, or load, the functions needed, before every worker does so."""

    @abstractmethod
    def solve(self, report: Solved) -> Solved:
        """Solve and commit the missing parts. Return the report with its counts."""

    def report(self, table: Path, manifest: Manifest, goal: Goal) -> Solved:
        kept = sum(entry.rows for entry in self.entries(manifest))
        return Solved(origin_of(self.game), table, manifest, goal, kept=kept, workers=0)

    def forget(self, manifest: Manifest) -> None:
        """Remove the work's entries from the manifest, to solve them again (``--force``)."""
        manifest.levels.pop(self.part, None)
        manifest.take_out([entry.name for entry in self.entries(manifest)], self.part)


def solve_table(work: Work) -> Solved:
    """Solve the missing parts of a table. A complete table is left unchanged.

    Raises RequestError if the solve is impossible (not enough memory or disk space, or another
    solve of the same table is running), CorruptTableError if a file that is read back has changed.
    """
    game, options, part, roots = work.game, work.options, work.part, work.roots
    table = table_directory(options.folder, game)
    before = stored_manifest(game, table)
    if before is not None and not options.force:
        goal = _goal(game, before, part, roots, work.files)
        if is_reached(goal, before, table):
            return work.report(table, before, goal)
    if options.joins:
        from luckbase.cluster.solve.ray import check_address

        check_address(str(options.address))
    storage = storage_at(table)
    storage.check_writable()
    work.check_room(table, before)
    if game.is_checked:
        from luckbase.solver.check import check_sample  # imports the search

        check_sample(game, work.starts())
    with Writer(storage, table, new_head(game)).take(options.on_note) as work.writer:
        machine.restart_memory_peak()
        damaged = _clear(work.writer, (part, *work.others))
        manifest = work.writer.manifest
        goal = _goal(game, manifest, part, roots, work.files)
        if options.force:
            work.writer.replace(goal.ask, work.forget)
        report = replace(work.report(table, manifest, goal), damaged=tuple(damaged))
        if goal.ask not in manifest.done:
            options.on_progress(Progress(0, 0, 0, 0, 0.0, compiling=True))
            work.compile()
            with _no_empty_table(work.writer):
                report = work.solve(report)
        elif is_new(goal, manifest):
            work.writer.add(goal)
        work.writer.finish()
    return report


@contextmanager
def _no_empty_table(writer: Writer) -> Iterator[None]:
    """Remove the table if it is empty and solving raises an error in the rules."""
    try:
        yield
    except (GameError, StateError):
        if not (writer.manifest.files or writer.manifest.goals):
            writer.remove()
        raise


# --- what is there -------------------------------------------------------------------------------


def stored_manifest(game: Game, table: Path) -> Manifest | None:
    """Return the manifest of a table; None if it cannot be used or has other rules."""
    try:
        manifest = read_manifest(storage_at(table), table)
    except TableError:
        return None
    return manifest if manifest.head.identity == rules_identity(game) else None


def complete_manifest(
    game: Game, table: Path, part: str, roots: Roots | None = None
) -> Manifest | None:
    """Return the manifest of a table that reaches the goal, with no file missing or truncated;
    otherwise None. Does not write."""
    manifest = stored_manifest(game, table)
    if manifest is None or not is_reached(_goal(game, manifest, part, roots), manifest, table):
        return None
    return manifest


def is_reached(goal: Goal, manifest: Manifest, table: Path) -> bool:
    """True if a goal is reached and recorded, and no file of its table is missing or truncated."""
    done = goal.ask in manifest.done and not is_new(goal, manifest)
    return done and not damaged_files(storage_at(table), table, manifest.files)


def _goal(game: Game, manifest: Manifest, part: str, roots: Roots | None, files: int = 0) -> Goal:
    reach = reach_of(game.board) if roots is None else {}
    number = max((goal.number for goal in manifest.goals), default=0) + 1
    return Goal(part, reach, roots, files, *_source(game), number)


def _source(game: Game) -> tuple[str, dict[str, str]]:
    """Return the file and settings from which the board was read; "" if the file has changed."""
    source = game.board.source
    if source is None:
        return "", {}
    try:
        now = read_board(Path(source.file), source.settings)
    except LuckbaseError:
        return "", {}
    same = rules_form(now) == rules_form(game.board) and reach_of(now) == reach_of(game.board)
    return (source.file, dict(sorted(source.settings.items()))) if same else ("", {})


def is_new(goal: Goal, manifest: Manifest) -> bool:
    """True if no goal of the manifest has this reach, these roots or this board file."""
    sources = [(g.board_file, g.settings) for g in manifest.goals]
    return goal.ask not in {g.ask for g in manifest.goals} or (
        bool(goal.board_file) and (goal.board_file, goal.settings) not in sources
    )


def _clear(writer: Writer, parts: tuple[str, ...]) -> list[str]:
    """Drop files of these parts that are missing or truncated, and leftovers of interrupted solves.
    Return a sentence for each damaged file."""
    storage, table, manifest = writer.storage, writer.where, writer.manifest
    damaged = [writer.damage] if writer.damage else []
    of_parts = {name: entry for name, entry in manifest.files.items() if entry.part in parts}
    if faults := damaged_files(storage, table, of_parts):
        writer.drop(faults)
    writer.sweep()
    storage.delete(RUNNING)
    return [*damaged, *faults.values()]


@contextmanager
def table_location(table: Path, joins: bool, writer: Writer) -> Iterator[TableLocation]:
    """Yield the table's location. Delete temporary data at the end.

    In an object store, or with a cluster, each machine keeps temporary data in its own folder. Its
    name depends only on the table, so a later driver on any host finds it.
    """
    apart = ""
    if joins or storage_at(table).anywhere:
        sha256 = digest(f"{table} {writer.manifest.created}")
        apart = f"luckbase-{os.getuid()}-{sha256[:16]}"
    location = TableLocation(table, writer.id, apart)
    for writer_id in writer.manifest.writers:  # of writers that were killed
        shutil.rmtree(location.spill_of(writer_id), ignore_errors=True)
    try:
        yield location
    finally:
        shutil.rmtree(location.spill, ignore_errors=True)
        stage_files = Folder(location.scratch).list(SHARDS)
        location.delete(name for name in stage_files if writer_of(name) == writer.id)
        if location.apart:
            with suppress(OSError):
                (location.scratch / SHARDS).rmdir()
            with suppress(OSError):
                location.scratch.rmdir()


# --- the loop ------------------------------------------------------------------------------------


def memory_budget(options: Options) -> int:
    """Return the bytes that running shards and kept payoffs may use here. On a cluster, each node
    limits its own."""
    if options.memory is not None:
        return options.memory
    return UNLIMITED if options.joins else machine.memory_to_use()


def peak_memory(processes: dict[str, MemoryUsed] = {}) -> int:
    """Return the peak bytes of this process and other processes together."""
    return machine.total(processes | {machine.process_name(): machine.memory_used()})


class Run(ABC):
    """One run over workers: the schedule, the manifest and the counts. `workers`, `watch` and
    `location` exist while they are open."""

    workers: Workers
    watch: Watch
    location: TableLocation
    schedule: Schedule
    threads = 1
    """Number of threads of each worker in this process."""

    def __init__(self, work: Work, report: Solved, memory: int) -> None:
        self.game, self.options, self.writer = work.game, work.options, work.writer
        self.report, self.manifest, self.memory = report, report.manifest, memory
        self.processes: dict[str, MemoryUsed] = {}
        self.cores = 0
        self.started = time.perf_counter() - report.seconds

    @abstractmethod
    def make_schedule(self) -> Schedule:
        """Return the schedule of the remaining work."""

    @abstractmethod
    def task(self, step: Solve) -> Task:
        """Return the task of an instruction."""

    @abstractmethod
    def commit(self, receipt: Any) -> None:
        """Add a requested file to the manifest."""

    @abstractmethod
    def count(self, receipt: Any) -> None:
        """Count the result of a task."""

    @abstractmethod
    def drop(self, shards: list[int]) -> None:
        """Drop the payoffs of these shards, which no shard reads any more."""

    @abstractmethod
    def progress(self) -> Progress:
        """Return the progress."""

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.started

    @contextmanager
    def open(self, kept: int, store: int) -> Iterator[None]:
        """Open the workers: threads, or Ray's if there is an address.

        kept: bytes of payoffs that threads keep in memory.
        store: bytes of the object store of a Ray that is started here.
        """
        table, options = self.report.table, self.options
        with (
            Watch(table, options.on_progress, options.on_note) as self.watch,
            table_location(table, options.joins, self.writer) as self.location,
            self._workers(kept, store) as self.workers,
        ):
            yield

    def _workers(self, kept: int, store: int) -> AbstractContextManager[Workers]:
        options, location, note = self.options, self.location, self.watch.note
        if options.address is None:
            pool = Pool(kept, location.spill)
            return closing(Threads(options.slots, pool, location))
        from luckbase.cluster.solve.ray import ray_workers

        workers = (options.workers or 0) if options.joins else options.slots
        return ray_workers(options.address, location, note, workers, store)

    def add(self, **counts: float) -> None:
        """Add to the counts of the report."""
        sums = {name: getattr(self.report, name) + count for name, count in counts.items()}
        self.report = replace(self.report, **sums)

    def done(self, **counts: Any) -> Solved:
        """Return the report, with these counts in place of its own."""
        ray = self.options.address is not None
        workers = self.options.slots * self.threads
        if ray:  # the cores that its nodes had
            workers = self.cores or workers
        return replace(
            self.report, seconds=self.seconds, peak_memory=peak_memory(self.processes), ray=ray,
            workers=workers, **counts,
        )  # fmt: skip

    def solve_shards(self) -> None:
        """Solve until no work is left. If payoffs are lost with their machines, start again from
        the last commit, at most `LOSSES_ALLOWED` times."""
        for losses_left in range(LOSSES_ALLOWED, -1, -1):
            try:
                self.schedule = self.make_schedule()
                return self.follow_schedule()
            except PayoffsLostError as error:
                if not losses_left:
                    raise
                self.watch.note(f"{error}; it does so now")
                self.workers.forget()

    def follow_schedule(self) -> None:
        """Run until the schedule is finished. Commit every few seconds."""
        schedule, workers = self.schedule, self.workers
        self._follow(schedule.start())
        while not schedule.finished:
            event = workers.wait_one(min(IDLE_SECONDS, self.writer.seconds))
            if isinstance(event, PayoffsReady):
                self._follow(schedule.payoffs_ready(event.shard))
            elif event is not None:
                commits = event.shard in schedule.to_commit
                self._follow(schedule.solved(event.shard), event, commits)
            if workers.slots != schedule.workers:
                self._follow(schedule.resize(workers.slots))
            if self.writer.seconds == 0:
                self.writer.commit()
            self.show(self.progress())

    def _follow(self, steps: list[Instruction], receipt: Any = None, commits: bool = False) -> None:
        # Submit new work first, so that workers continue while this process renames files.
        for step in steps:
            if isinstance(step, Solve):
                self.workers.submit(self.task(step))
        if commits:
            self.commit(receipt)
        if receipt is not None:
            self.note_memory(receipt)
            self.count(receipt)
        if dropped := [step.shard for step in steps if isinstance(step, Drop)]:
            self.drop(dropped)

    def note_memory(self, receipt: Receipt) -> None:
        self.processes[receipt.process] = receipt.peak

    def show(self, progress: Progress) -> None:
        nodes = self.workers.activity()
        self.cores = max(self.cores, sum(node["slots"] for node in nodes))
        self.watch.show(progress, nodes)
