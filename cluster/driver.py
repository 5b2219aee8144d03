"""The driver: walks the plan with workers, commits what they finish, says how far it is.

A thin shell around `schedule`. Each finished shard is committed in this order: kept payoffs
renamed, Parquet file renamed, manifest replaced. Killed anywhere between, the same call goes on
from the last tier in the manifest.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cluster import store
from cluster.manifest import (
    FileEntry,
    Manifest,
    key_range,
    new_manifest,
    read_manifest,
    table_directory,
    write_manifest,
)
from cluster.plan import Plan, make_plan
from cluster.schedule import Commit, Drop, Instruction, Schedule, Solve
from cluster.session import Workers, check_address, ray_session, threads
from cluster.worker import Receipt, Task, peak_memory
from solver import load_tiered_game
from solver.board import Board
from solver.errors import CorruptTableError, MemoryLimitError, MissingTableError, RequestError
from solver.game import TieredGame

MEMORY_SHARE = 0.7
"""Of the machine's free memory, what shards in flight may use unless told otherwise."""
DISK_RESERVE = 1 << 30
"""Bytes that are left free on the disk."""


@dataclass(frozen=True)
class Progress:
    """How far a solve is: shards and rows of this run, seconds since it started."""

    shards: int
    shards_total: int
    rows: int
    rows_total: int
    seconds: float


@dataclass(frozen=True)
class Solved:
    """What a solve did. `rows`, `shards`, `seconds`: of this run; 0 where all was there.

    seconds: from the first shard handed out to the last commit, starting Ray included.
    solve_seconds: in the kernel, added up over workers. compile_seconds: before the first shard.
    peak_memory: bytes, of this process and of the workers' together. tally: what the game counted.
    """

    table: Path
    manifest: Manifest
    rows: int
    shards: int
    seconds: float
    solve_seconds: float
    compile_seconds: float
    peak_memory: int
    workers: int
    ray: bool
    tally: dict[str, float] = field(default_factory=dict)


def solve(
    board: Board,
    *,
    results: str | os.PathLike[str] = "results",
    workers: int | None = None,
    address: str | None = None,
    memory: int | None = None,
    force: bool = False,
    board_file: str = "",
    settings: dict[str, str] | None = None,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> Solved:
    """Solve what is missing of the board's full table; a table that is complete is left alone.

    workers: how many shards at once (all cores). address: a Ray cluster to use. memory: bytes that
    shards in flight may need (a share of what is free). force: solve all of it again.
    board_file, settings: noted in the manifest, so that `staleness` can look again.

    Raises RequestError for what can not be done (too little memory or disk, another solve of the
    same table running), CorruptTableError where the table's manifest is damaged.
    """
    game = load_tiered_game(board)
    if address:
        check_address(address)
    count = workers or os.cpu_count() or 1
    plan = make_plan(game, count)
    table = table_directory(Path(results).absolute(), game)
    budget = memory if memory is not None else int(free_memory() * MEMORY_SHARE)
    if force or not is_complete(table):
        check_room(plan, budget, table)  # before anything is made, or with `force` unmade
    with lock(table):
        manifest = open_ledger(table, force, new_manifest(game, board_file, settings or {}))
        if manifest.complete:
            return Solved(table, manifest, 0, 0, 0.0, 0.0, 0.0, 0, count, False)
        started = time.perf_counter()
        game.compile()  # once, not in every worker at the same time
        compiled = time.perf_counter() - started
        use_ray = address is not None or not plan.in_process(count)
        run = _Run(game, plan, table, manifest, count, budget, on_progress)
        session = ray_session(count, table, address) if use_ray else threads(count)
        with session as pool:
            run.walk(pool)
        shutil.rmtree(table / "scratch", ignore_errors=True)
        return Solved(
            table, run.manifest, run.rows, run.shards, run.seconds, run.solve_seconds,
            compiled, run.peak_memory, count, use_ray, run.tally,
        )  # fmt: skip


class _Run:
    """One run of the driver: the schedule, the ledger, the counts."""

    def __init__(
        self,
        game: TieredGame[Any],
        plan: Plan,
        table: Path,
        manifest: Manifest,
        workers: int,
        memory: int,
        on_progress: Callable[[Progress], None],
    ) -> None:
        self.game, self.plan, self.table, self.manifest = game, plan, table, manifest
        self.on_progress = on_progress
        boot = store.boot() or "unknown"
        trusted = manifest.scratch_boot == boot
        if not trusted:
            shutil.rmtree(table / "scratch", ignore_errors=True)
            self.manifest = replace(manifest, scratch_boot=boot)
            write_manifest(table, self.manifest)
        kept = {i for i in range(len(plan.shards)) if self._is_kept(i)}
        committed = {i for i, folder in enumerate(plan.folders) if folder in manifest.files}
        self.schedule = Schedule(
            plan.shards, workers=workers, memory=memory, committed=committed, kept=kept & committed
        )
        self.todo = len(self.schedule.waiting)
        self.rows_todo = sum(plan.shards[i].rows for i in self.schedule.waiting)
        self.rows = self.shards = 0
        self.solve_seconds = 0.0
        self.processes: dict[int, int] = {}
        self.tally: dict[str, float] = {}
        self.flushed: set[Path] = set()
        self.started = time.perf_counter()

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.started

    @property
    def peak_memory(self) -> int:
        return sum((self.processes | {os.getpid(): peak_memory()}).values())

    def walk(self, workers: Workers) -> None:
        """Until nothing is left to do."""
        self._follow(self.schedule.start(), workers, None)
        while not self.schedule.finished:
            receipt = workers.wait_one(0.5)
            if receipt is not None:
                self._follow(self.schedule.solved(receipt.shard), workers, receipt)
                self.shards += 1
                self.rows += self.plan.shards[receipt.shard].rows
                self.solve_seconds += receipt.solve_seconds
                self.processes[receipt.process] = receipt.peak_memory
                for name, number in receipt.tally.items():
                    before = self.tally.get(name, 0.0)
                    most = name.startswith("worst")
                    self.tally[name] = max(before, number) if most else before + number
            self.on_progress(
                Progress(self.shards, self.todo, self.rows, self.rows_todo, self.seconds)
            )

    def _follow(self, steps: list[Instruction], workers: Workers, receipt: Receipt | None) -> None:
        # New work first: workers go on while this process flushes and renames.
        for step in steps:
            if isinstance(step, Commit) and step.keep:
                self._keep(step.shard)
        for step in steps:
            if isinstance(step, Solve):
                workers.submit(
                    Task(
                        self.game.board, self.table, step.shard, *self.plan.parts[step.shard],
                        step.commit, step.keep,
                    )
                )  # fmt: skip
        for step in steps:
            if isinstance(step, Commit) and step.commit:
                assert receipt is not None
                self._commit(receipt)
        for step in steps:
            if isinstance(step, Drop):
                self._drop(step.shard)

    def _tier(self, shard: int) -> tuple[Any, tuple[int, int], bool]:
        """A shard's tier, its rows, and whether they are all of the tier."""
        index, part = self.plan.parts[shard]
        tier = self.game.tiers()[index]
        ranges = self.game.parts(tier)
        return tier, ranges[part], len(ranges) == 1

    def _is_kept(self, shard: int) -> bool:
        tier, (_, last), whole = self._tier(shard)
        name = self.plan.folders[shard]
        size = _size(store.scratch_file(self.table, name))
        wanted = _payoff_bytes(self.game, tier) * last // max(self.game.rows(tier), 1)
        if whole:
            return size == wanted
        return size >= wanted and store.kept_mark(self.table, name).exists()

    def _keep(self, shard: int) -> None:
        name = self.plan.folders[shard]
        if self._tier(shard)[2]:
            path = store.scratch_file(self.table, name)
            os.replace(store.beside(path), path)
        else:
            store.kept_mark(self.table, name).touch()

    def _drop(self, shard: int) -> None:
        """Nobody reads the shard any more; of a tier in parts the file goes with the last one."""
        name = self.plan.folders[shard]
        mark = store.kept_mark(self.table, name)
        mark.unlink(missing_ok=True)
        if not list(mark.parent.glob(mark.name.partition("#")[0] + "#*.kept")):
            store.scratch_file(self.table, name).unlink(missing_ok=True)

    def _commit(self, receipt: Receipt) -> None:
        assert receipt.file is not None
        folder, (tier, (start, _), _) = self.plan.folders[receipt.shard], self._tier(receipt.shard)
        path = store.tier_file(self.table, folder)
        store.replace(store.beside(path), path, self.table, self.flushed)
        number = self.game.tier_number(tier)
        first, last = key_range(number, receipt.file.rows, start)
        entry = FileEntry(
            number, receipt.file.rows, receipt.file.row_group_rows, first, last,
            receipt.file.bytes, receipt.file.sha256, receipt.file.error,
            {"solve": round(receipt.solve_seconds, 3), "write": round(receipt.file.seconds, 3)},
        )  # fmt: skip
        self.manifest = self.manifest.with_file(folder, entry)
        write_manifest(self.table, self.manifest)


def _payoff_bytes(game: TieredGame[Any], tier: Any) -> int:
    from cluster.plan import payoff_bytes

    return payoff_bytes(game, tier)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1


def is_complete(table: Path) -> bool:
    try:
        return read_manifest(table).complete
    except MissingTableError:
        return False


def open_ledger(table: Path, force: bool, fresh: Manifest) -> Manifest:
    """The manifest to go on from, `fresh` if there is none; files that it does not name are swept
    away."""
    try:
        manifest = None if force else read_manifest(table)
    except MissingTableError:
        manifest = None
    if manifest is None:
        for folder in ("tiers", "scratch"):
            shutil.rmtree(table / folder, ignore_errors=True)
        manifest = fresh
        write_manifest(table, manifest)
    for folder, entry in manifest.files.items():
        if _size(store.tier_file(table, folder)) != entry.bytes:
            raise CorruptTableError(
                f"{store.tier_file(table, folder)}: is missing or not {entry.bytes} bytes; "
                "solve with --force to make the table anew"
            )
    for path in [*table.glob("tiers/**/*.part"), *table.glob("scratch/*.part")]:
        path.unlink(missing_ok=True)
    return manifest


def free_memory() -> int:
    """Bytes that programs may still use: the system's estimate, or half of all there is."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) << 10
    except OSError:
        pass
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2


def check_room(plan: Plan, memory: int, table: Path) -> None:
    """Refuse what will not fit, beside what is already there. Raises MemoryLimitError."""
    if plan.shard_memory > memory:
        raise MemoryLimitError(
            f"memory: the largest tier needs {plan.shard_memory / 1e9:.1f} GB and "
            f"{memory / 1e9:.1f} GB may be used; a smaller frontier or a larger score_unit "
            "needs less"
        )
    there = sum(path.stat().st_size for path in table.rglob("*") if path.is_file())
    needed = plan.table_bytes + plan.scratch_bytes - there
    probe = table
    while not probe.exists():
        probe = probe.parent
    free = shutil.disk_usage(probe).free - DISK_RESERVE
    if needed > free:
        raise MemoryLimitError(
            f"disk: the solve needs about {needed / 1e9:.1f} GB under {probe} and "
            f"{max(free, 0) / 1e9:.1f} GB are free; a smaller frontier or a larger score_unit "
            "needs less"
        )


@contextmanager
def lock(table: Path) -> Iterator[None]:
    """One solve of a table at a time. Raises RequestError where another one is running."""
    import fcntl

    table.mkdir(parents=True, exist_ok=True)
    with (table / ".lock").open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise RequestError(f"{table}: another solve of this table is running") from None
        yield
