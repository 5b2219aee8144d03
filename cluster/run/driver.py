"""The driver: one pipeline for every solve, and one loop that hands out shards.

`solve_table` looks what is there, refuses what can not be done, locks the table, and has its `Work`
do the rest: a full table (`tiers`), or what lies below some roots (`cluster.search.solve`).

`Run` hands the shards of a schedule to workers. A finished shard's Parquet file is put in its
place, then a line is added to the ledger: killed anywhere between, the same call goes on from the
last line. Payoffs stay with the workers until no shard reads them any more.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import IO, Any, Generic, TypeVar

from luckbase.cluster import machine
from luckbase.cluster.machine import MemoryUsed
from luckbase.cluster.run.options import Options
from luckbase.cluster.run.progress import Progress, Solved, Watch
from luckbase.cluster.run.schedule import Commit, Drop, Instruction, Schedule, Solve
from luckbase.cluster.run.worker import (
    SPILL,
    PayoffsLostError,
    PayoffsReady,
    Pool,
    Receipt,
    TableLocation,
    Task,
    Threads,
    Workers,
)
from luckbase.cluster.table import RUNNING, folder
from luckbase.cluster.table.folder import Commits, commit, compact, read_ledger
from luckbase.cluster.table.ledger import (
    TIERS,
    Goal,
    Ledger,
    Roots,
    new_head,
    reach_of,
    table_directory,
)
from luckbase.cluster.table.place import storage_at
from luckbase.cluster.table.storage import Folder, attempt, flush_folder
from luckbase.solver.board.file import read_board
from luckbase.solver.board.model import rules_form, rules_identity
from luckbase.solver.errors import (
    CorruptTableError,
    ForeignTableError,
    LuckbaseError,
    MissingTableError,
    OptionError,
    RequestError,
    TableError,
)
from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.game import Game
from luckbase.solver.sentences import option

PROBE, LOCK = ".here-", ".lock"
UNLIMITED = 1 << 62
LOSSES_ALLOWED = 3
S = TypeVar("S", bound=Solved)


class Work(ABC, Generic[S]):
    """What is to be solved of a table."""

    part: str
    roots: Roots | None = None
    """Of a search."""
    files: int = 1
    """Of a goal."""
    margin: bool = False
    """Whether the full table gets that column."""

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
    if not (options.force or options.check):
        there = complete_ledger(game, table, part, roots, margin=work.margin)
        if there is not None and work.is_there(there):
            _tidy(table)
            goal = _goal(game, there, part, roots, work.files, margin=work.margin)
            return work.report(table, there, goal)
    work.check_room(table)
    with lock(table):
        machine.look_from_now()
        ledger, damaged = _open_ledger(game, table, part, check=options.check)
        if options.force:
            work.forget(table, ledger)
        if work.margin and ledger.of_part(TIERS) and not ledger.margin:
            raise OptionError(
                f"{option('margin')}: the files of this table have none, and all or none have it; "
                f"{option('force')} solves the table again"
            )
        goal = _goal(game, ledger, part, roots, work.files, margin=work.margin)
        report = replace(work.report(table, ledger, goal), damaged=tuple(damaged))
        if goal.ask not in ledger.done or not work.is_there(ledger):
            if game.is_checked:
                from luckbase.solver.check import check_sample  # brings the search

                check_sample(game, work.starts())
            options.on_progress(Progress(0, 0, 0, 0, 0.0, compiling=True))
            work.compile()
            report = work.solve(report)
        elif is_new(goal, ledger):
            commit(Folder(table), ledger, goal)
        compact(Folder(table), ledger)
    return report


# --- what is there -------------------------------------------------------------------------------


def complete_ledger(
    game: Game, table: Path, part: str, roots: Roots | None = None, margin: bool = False
) -> Ledger | None:
    """The ledger of a table in which all that is wanted is there and no file is missing or short;
    None otherwise. Nothing is written, and nobody's solve is waited for."""
    storage = storage_at(table)
    try:
        ledger = read_ledger(storage, table)
    except TableError:
        return None
    goal = _goal(game, ledger, part, roots, margin=margin)
    there = goal.ask in ledger.done and not is_new(goal, ledger)
    there &= ledger.head.identity == rules_identity(game)
    there &= all(shard.ask not in ledger.done for shard in ledger.shards.values())
    return ledger if there and not folder.damaged_files(storage, table, ledger) else None


def _goal(
    game: Game, ledger: Ledger, part: str, roots: Roots | None, files: int = 0, *, margin: bool
) -> Goal:
    """What a solve is to reach."""
    full = roots is None
    reach, wanted = reach_of(game.board) if full else {}, margin or (full and ledger.margin)
    number = max((goal.number for goal in ledger.goals), default=0) + 1
    return Goal(part, reach, roots, files, *_source(game), wanted, number)


def _source(game: Game) -> tuple[str, dict[str, str]]:
    """The file and the settings that the game's board was read from; "" where it is not what
    stands there."""
    source = game.board.source
    if source is None:
        return "", {}
    try:
        read = read_board(Path(source.file), source.settings)
    except LuckbaseError:
        return "", {}
    same = rules_form(read) == rules_form(game.board) and reach_of(read) == reach_of(game.board)
    return (source.file, dict(sorted(source.settings.items()))) if same else ("", {})


def is_new(goal: Goal, ledger: Ledger) -> bool:
    """Whether a goal says what no goal of the ledger says: how far, from which roots, or where the
    board stands."""
    known = [(other.board_file, other.settings) for other in ledger.goals]
    return goal.margin not in {other.margin for other in ledger.goals if other.ask == goal.ask} or (
        bool(goal.board_file) and (goal.board_file, goal.settings) not in known
    )


def _tidy(table: Path) -> None:
    """Do what is left for a complete table whose solve was killed at its very end: its ledger in
    one object, no temporary files. Who is at it just now does so at its own end."""
    storage = Folder(table)
    if len(storage.list(folder.LINES)) > 1:
        with suppress(RequestError, OSError), lock(table):
            ledger = read_ledger(storage, table)
            folder.sweep(storage, table, ledger)
            compact(storage, ledger)


def _open_ledger(game: Game, table: Path, part: str, *, check: bool) -> tuple[Ledger, list[str]]:
    """The ledger to go on from, and what of the part was damaged and is forgotten, a sentence each.
    Whatever the ledger does not name is swept away.

    check: every byte of the part is read, not the sizes only. Raises ForeignTableError where the
    folder holds a table of other rules.
    """
    storage, head, damaged = Folder(table), new_head(game), list[str]()
    try:
        folder.check_identity(storage, table, head.identity)
    except MissingTableError:
        folder.write_head(storage, head)
    except ForeignTableError:
        raise
    except CorruptTableError as error:
        damaged.append(str(error))
        folder.write_head(storage, head)
    ledger = read_ledger(storage, table, head=head, lenient=True)
    if ledger.damage:
        damaged += ledger.damage
        ledger.done.clear()
        compact(storage, ledger)
    mine = replace(ledger, files={e.name: e for e in ledger.of_part(part)})
    bad = (folder.check_bytes if check else folder.damaged_files)(storage, table, mine)
    if bad:
        folder.drop_files(storage, ledger, list(bad))
    lost = folder.sweep(storage, table, ledger)
    if lost:  # else the lines of these count at the next reading
        compact(storage, ledger)
    shutil.rmtree(table / SPILL, ignore_errors=True)
    for path in (table / RUNNING, *table.glob(f"{PROBE}*")):
        path.unlink(missing_ok=True)
    return ledger, [*damaged, *lost, *bad.values()]


# --- one solve of a table at a time --------------------------------------------------------------


@contextmanager
def lock(table: Path) -> Iterator[None]:
    """One solve of a table at a time. Raises RequestError where another is running, with who."""
    with _locked(table) as file:
        file.truncate(0)
        now = datetime.now().astimezone().isoformat(timespec="seconds")
        json.dump({"host": socket.gethostname(), "process": os.getpid(), "since": now}, file)
        file.flush()
        try:
            yield
        finally:
            file.truncate(0)


def _locked(table: Path) -> IO[str]:
    """The open lock file of a table, locked."""
    import fcntl

    while True:
        new = [path for path in (table, *table.parents) if not path.exists()]
        table.mkdir(parents=True, exist_ok=True)
        for path in new:
            flush_folder(path.parent)
        try:
            file = (table / LOCK).open("a+")
        except FileNotFoundError:
            continue  # the table has just been removed (`luckbase clean`)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            who = ""
            with suppress(OSError, ValueError, KeyError, TypeError):
                said = json.loads((table / LOCK).read_text())
                who = f": process {said['process']} on {said['host']} since {said['since']}"
            raise RequestError(f"{table}: another solve of this table is running{who}") from None
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.fileno()), (table / LOCK).stat()):
                return file
        file.close()  # it was removed between the two


@contextmanager
def shown_by_a_file(table: Path) -> Iterator[TableLocation]:
    """The table with a file in its folder, by which machines that share it know it; at the end
    both are as before."""
    location = TableLocation(table, f"{PROBE}{attempt()}")
    (table / location.probe_file).touch()
    try:
        yield location
    finally:
        (table / location.probe_file).unlink(missing_ok=True)
        shutil.rmtree(table / SPILL, ignore_errors=True)


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
        options, location, note = self.options, self.location, self.watch.note
        if options.address is None:
            return closing(Threads(options.slots, Pool(kept, location.table / SPILL)))
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
                event = workers.wait_one(0.0 if self.dropped or commits else 0.5)
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
