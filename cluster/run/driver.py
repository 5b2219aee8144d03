"""The driver: hands the plan to workers, commits what they finish, says how far it is.

A thin shell around `schedule`, for full tables here and for searches by stages
(`cluster.search.stages`). A finished shard's Parquet file is put in its place, then a line is added
to the ledger: killed anywhere between, the same call goes on from the last line. Payoffs stay with
the workers until no shard reads them any more.

What an earlier run committed stays as it is. Where a shard still to do reads it, it is read back if
the stored payoffs are the kernel's own numbers (float64), else solved again and not written again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from luckbase.cluster.machine import MemoryUsed, free_memory, look_from_now, memory_used, total
from luckbase.cluster.run.lock import (
    complete_ledger,
    is_new,
    lock,
    make_goal,
    marked,
    open_ledger,
    spill_folder,
    tidy,
)
from luckbase.cluster.run.options import Options, SolveOptions
from luckbase.cluster.run.plan import MEMORY_SHARE, Plan, check_room, make_plan, payoff_bytes
from luckbase.cluster.run.progress import Progress, SolvedTiers, Watch
from luckbase.cluster.run.schedule import Commit, Drop, Instruction, Schedule, Solve
from luckbase.cluster.run.threads import Pool, threads
from luckbase.cluster.run.worker import (
    AnyTask,
    Handed,
    Home,
    PayoffsLostError,
    Receipt,
    Task,
    Workers,
    process_name,
)
from luckbase.cluster.table.answer import origin_of
from luckbase.cluster.table.folder import Commits, commit, compact, drop_files
from luckbase.cluster.table.format import file_entry, key_range
from luckbase.cluster.table.ledger import TIERS, Done, Ledger, table_directory
from luckbase.cluster.table.storage import Folder
from luckbase.solver import load_layout
from luckbase.solver.board.model import Board
from luckbase.solver.check import check_sample
from luckbase.solver.game.capabilities import Layout

UNLIMITED = 1 << 62


def solve(board: Board, **options: Unpack[SolveOptions]) -> SolvedTiers:
    """Solve what is missing of the board's full table; a table that is complete is left alone.

    Raises RequestError for what can not be done (too little memory or disk, another solve of the
    same table running), CorruptTableError for a file that a solve reads back and that has changed.
    """
    asked = Options(**options)
    layout = load_layout(board)
    game = layout.game
    if asked.joins:
        from luckbase.cluster.run.ray import check_address  # Ray itself comes later

        check_address(str(asked.address))
    plan = make_plan(layout, asked.slots)
    table = table_directory(asked.folder, game)
    if not (asked.force or asked.check):
        ledger = complete_ledger(game, table, TIERS, margin=asked.margin)
        if ledger is not None and ledger.files.keys() >= set(plan.files):
            kept = sum(ledger.files[name].rows for name in plan.files)
            goal = make_goal(game, ledger, TIERS, len(plan.files), margin=asked.margin)
            tidy(table)
            return SolvedTiers(origin_of(game), table, ledger, goal, kept=kept, workers=asked.slots)
    budget = memory_budget(asked)
    there = set(Folder(table).list(f"{TIERS}/"))
    if asked.force or not there.issuperset(plan.files):
        todo = [i for i, name in enumerate(plan.files) if asked.force or name not in there]
        check_room(plan, budget, table, layout.smaller, todo, asked.slots)
    with lock(table):
        return _solve_locked(layout, plan, table, budget, asked)


def memory_budget(asked: Options) -> int:
    """Bytes that shards in flight and kept payoffs may have here; of a cluster each node looks
    after its own."""
    if asked.memory is not None:
        return asked.memory
    return int(free_memory() * MEMORY_SHARE) if not asked.joins else UNLIMITED


def _solve_locked(
    layout: Layout[Any], plan: Plan, table: Path, budget: int, asked: Options
) -> SolvedTiers:
    look_from_now()
    game = layout.game
    ledger, damaged = open_ledger(game, table, TIERS, check=asked.check)
    if asked.force:  # all of the part where its files get another column, else what was asked for
        anew = asked.margin and not ledger.margin
        every = [entry.name for entry in ledger.of_part(TIERS)]
        drop_files(Folder(table), ledger, [n for n in every if anew or n in plan.files])
    goal = make_goal(game, ledger, TIERS, len(plan.files), margin=asked.margin)
    if is_new(goal, ledger):
        commit(Folder(table), ledger, goal)
    kept = sum(ledger.files[name].rows for name in plan.files if name in ledger.files)
    report = SolvedTiers(
        origin_of(game), table, ledger, goal, kept=kept, workers=asked.slots,
        damaged=tuple(damaged),
    )  # fmt: skip
    if any(name not in ledger.files for name in plan.files):
        start = game.start()
        check_sample(game, np.array([] if start is None else [start]))
        with (
            Watch(table, asked.on_progress, asked.on_note) as watch,
            marked(table) as home,
            _workers(layout, plan, home, asked, budget, watch) as workers,
        ):
            workers.check_memory(plan.shard_memory, layout.smaller)
            started = time.perf_counter()
            asked.on_progress(Progress(0, 0, 0, 0, 0.0, compiling=True))
            layout.compile()  # once, not in every worker at the same time
            compiled = time.perf_counter() - started
            run = _Run(layout, plan, home, ledger, workers, watch, budget)
            run.threads = 0 if asked.joins else 1  # here each core has a worker
            run.solve()
        ray = asked.address is not None
        report = replace(run.report(report), compile_seconds=compiled, ray=ray)
    if goal.ask not in ledger.done:
        commit(Folder(table), ledger, Done(goal.ask, len(plan.files), plan.rows))
        _note_others(table, ledger)
    compact(Folder(table), ledger)
    return report


def _note_others(table: Path, ledger: Ledger) -> None:
    """Say of other goals of the full table, which a lost file or --force undid, that all is there
    again."""
    for goal in ledger.goals:
        if goal.part == TIERS and goal.ask not in ledger.done:
            plan = make_plan(load_layout(ledger.board(goal.reach)))
            if ledger.files.keys() >= set(plan.files):
                commit(Folder(table), ledger, Done(goal.ask, len(plan.files), plan.rows))


def _workers(
    layout: Layout[Any], plan: Plan, home: Home, asked: Options, budget: int, watch: Watch
) -> AbstractContextManager[Workers]:
    left = max(0, budget - min(budget, plan.shard_memory * asked.slots))
    largest = max(payoff_bytes(layout, tier) for tier in layout.tiers())
    wanted = round(1.1 * plan.kept_bytes) + asked.slots * largest
    return open_workers(asked, home, watch, left, min(wanted, left))


def open_workers(
    asked: Options, home: Home, watch: Watch, kept: int, store: int
) -> AbstractContextManager[Workers]:
    """The workers of a solve: threads, or Ray's where there is an address. kept: bytes of payoffs
    that threads keep in memory; store: of the object store of a Ray that is started here."""
    if asked.address is None:
        return threads(asked.slots, Pool(kept, spill_folder(home.table)))
    from luckbase.cluster.run.ray import ray_cluster, ray_here

    if asked.joins:
        return ray_cluster(asked.address, home, watch.note, asked.workers)
    return ray_here(asked.slots, home, store, watch.note)


class _Run:
    """One run of the driver: the schedule, the ledger, the counts."""

    def __init__(
        self, layout: Layout[Any], plan: Plan, home: Home, ledger: Ledger, workers: Workers,
        watch: Watch, memory: int,
    ) -> None:  # fmt: skip
        self.layout, self.plan, self.ledger = layout, plan, ledger
        self.commits, self.home = Commits(Folder(home.table), ledger), home
        self.workers, self.watch = workers, watch
        self.memory, self.threads = memory, 1
        self._index = {tier: i for i, tier in enumerate(layout.tiers())}
        self.shards = self.rows = self.again = self.read = self.cores = 0
        self.solve_seconds = self.again_seconds = 0.0
        self.processes: dict[str, MemoryUsed] = {}
        self.tally: dict[str, float] = {}
        self.started = time.perf_counter()

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.started

    def report(self, before: SolvedTiers) -> SolvedTiers:
        """What was done, beside what is known already."""
        peak = total(self.processes | {process_name(): memory_used()})
        return replace(
            before, again=self.again, read=self.read, states=self.rows,
            shards=self.shards, seconds=self.seconds, solve_seconds=self.solve_seconds,
            again_seconds=self.again_seconds, peak_memory=peak, tally=self.tally,
            workers=self.cores,
        )  # fmt: skip

    def solve(self) -> None:
        """Until nothing is left to do."""
        through_losses(self._solve, self.workers, self.watch.note)

    def _solve(self) -> None:
        plan, ledger = self.plan, self.ledger
        committed = {i for i, name in enumerate(plan.files) if name in ledger.files}
        exact = self.layout.payoff_type is np.float64
        self.schedule = Schedule(
            plan.shards, workers=self.workers.slots, memory=self.memory, committed=committed,
            stored=committed if exact else (),
        )  # fmt: skip
        todo = self.shards + len(self.schedule.waiting)
        done = self.rows + self.again + self.read
        rows = done + sum(plan.shards[i].rows for i in self.schedule.waiting)

        def show() -> None:
            done, doing = self.rows + self.again + self.read, self.workers.doing()
            self.cores = max(self.cores, sum(n["slots"] for n in doing if "left_out" not in n))
            self.watch.show(Progress(self.shards, todo, done, rows, self.seconds), doing)

        hooks = Hooks(self._task, self.commits, self._commit, self._count, self._drop, show)
        run_shards(self.schedule, self.workers, hooks)

    def _count(self, receipt: Receipt) -> None:
        rows = self.plan.shards[receipt.shard].rows
        self.shards += 1
        self.processes[receipt.process] = receipt.peak
        if receipt.shard in self.schedule.stored:
            self.read += rows
        elif receipt.file is None:
            self.again += rows
            self.again_seconds += receipt.solve_seconds
        else:
            self.rows += rows
            self.solve_seconds += receipt.solve_seconds
            self.tally = add_tally(self.tally, receipt.tally)

    def _drop(self, shards: list[int]) -> None:
        dropped = {self.plan.parts[shard][0] for shard in shards}
        for tier in dropped - {self.plan.parts[shard][0] for shard in self.schedule.kept}:
            self.workers.drop(tier)  # a tier in parts goes with the last one

    def _task(self, step: Solve) -> Task:
        index, part = self.plan.parts[step.shard]
        tier = self.layout.tiers()[index]
        stored, reads = None, sorted(self._index[child] for child in self.layout.children(tier))
        if step.shard in self.schedule.stored:
            stored, reads = self.ledger.files[self.plan.files[step.shard]], []
        ranges = self.layout.parts(tier)
        return Task(
            self.layout.game.board, self.home, step.shard, index, part, len(ranges), ranges[part],
            self.layout.shape(tier), tuple(reads), step.commit, step.keep,
            self.plan.shards[step.shard].memory, self.ledger.margin, stored, self.threads,
        )  # fmt: skip

    def _commit(self, receipt: Receipt) -> None:
        assert receipt.file is not None
        index, part = self.plan.parts[receipt.shard]
        tier = self.layout.tiers()[index]
        start, _ = self.layout.parts(tier)[part]
        keys = key_range(self.layout.tier_number(tier), receipt.file.rows, start)
        entry = file_entry(
            self.plan.files[receipt.shard], TIERS, self.layout.tier_number(tier), keys,
            receipt.file, receipt.solve_seconds,
        )  # fmt: skip
        self.commits.add(entry, {entry.name: receipt.file.path})


def add_tally(total: dict[str, float], more: dict[str, float]) -> dict[str, float]:
    """Two tallies together: names that begin with "worst" are maxima, the others sums."""
    found = dict(total)
    for name, number in more.items():
        before = found.get(name, 0.0)
        found[name] = max(before, number) if name.startswith("worst") else before + number
    return found


LOSSES_ALLOWED = 3


@dataclass(frozen=True)
class Hooks:
    """What a driver does. task: the task of an instruction. commit: a receipt whose file is wanted,
    which adds its line to `commits`. count: every receipt. drop: shards whose payoffs nobody reads
    any more. show: when no event waits, and twice a second."""

    task: Callable[[Solve], AnyTask]
    commits: Commits
    commit: Callable[[Any], None]
    count: Callable[[Any], None]
    drop: Callable[[list[int]], None]
    show: Callable[[], None]


def run_shards(schedule: Schedule, workers: Workers, hooks: Hooks) -> None:
    """Until the schedule is finished. What is solved stays, also at an error."""
    with hooks.commits:
        _Loop(schedule, workers, hooks).run()


class _Loop:
    def __init__(self, schedule: Schedule, workers: Workers, hooks: Hooks) -> None:
        self.schedule, self.workers, self.hooks = schedule, workers, hooks
        self.dropped: list[int] = []

    def run(self) -> None:
        schedule, workers = self.schedule, self.workers
        self.follow(schedule.start())
        while not schedule.finished:
            event = workers.wait_one(0.0 if self.dropped or self.hooks.commits else 0.5)
            if isinstance(event, Handed):
                self.follow(schedule.handed(event.shard))
            elif event is not None:
                self.follow(schedule.solved(event.shard), event)
            if workers.slots != schedule.workers:
                self.follow(schedule.resize(workers.slots))
            if event is None or self.hooks.commits.full:
                self.settle()
        self.settle()

    def follow(self, steps: list[Instruction], receipt: Any = None) -> None:
        # New work first: workers go on while this process flushes and renames.
        for step in steps:
            if isinstance(step, Solve):
                self.workers.submit(self.hooks.task(step))
        if any(isinstance(step, Commit) and step.commit for step in steps):
            with self.hooks.commits.taking_in():
                self.hooks.commit(receipt)
        if receipt is not None:
            self.hooks.count(receipt)
        self.dropped += [step.shard for step in steps if isinstance(step, Drop)]

    def settle(self) -> None:
        """Commit what waits, then drop: nothing goes that is needed while that is not there."""
        self.hooks.commits.flush()
        if self.dropped:
            self.hooks.drop(self.dropped)
            self.dropped = []
        self.hooks.show()


def through_losses(
    solve: Callable[[], None], workers: Workers, note: Callable[[str], None]
) -> None:
    """Solve; where payoffs were lost with their machines, again from what is committed,
    `LOSSES_ALLOWED` times."""
    for left in range(LOSSES_ALLOWED, -1, -1):
        try:
            return solve()
        except PayoffsLostError as error:
            if not left:
                raise
            note(f"{error}; it does so now")
            workers.forget()
