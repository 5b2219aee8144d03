"""The driver: hands the plan to workers, commits what they finish, says how far it is.

A thin shell around `schedule`. Each finished shard is committed in this order: kept payoffs
renamed, Parquet file put in its place, a line added to the ledger. Killed anywhere between, the
same call goes on from the last line.

What an earlier run committed stays as it is. Where a shard still to do reads it, it is read back if
the stored payoffs are the kernel's own numbers (float64), else solved again and not written again.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from luckbase.cluster.run.opening import (
    check_room,
    complete_ledger,
    free_memory,
    is_new,
    lock,
    make_goal,
    open_ledger,
)
from luckbase.cluster.run.options import Options, Progress, Solved, SolveOptions
from luckbase.cluster.run.plan import Plan, make_plan
from luckbase.cluster.run.planned import MEMORY_SHARE
from luckbase.cluster.run.schedule import Commit, Drop, Instruction, Schedule, Solve
from luckbase.cluster.run.scratch import tier_file
from luckbase.cluster.run.session import Workers, check_address, ray_session, threads
from luckbase.cluster.run.worker import Receipt, Task, peak_memory
from luckbase.cluster.table.health import drop_files
from luckbase.cluster.table.ledger import Ledger, commit, compact, solver_version, table_directory
from luckbase.cluster.table.lines import TIERS, Done, FileEntry
from luckbase.cluster.table.storage import Folder, attempt
from luckbase.cluster.table.write import FileReceipt, entry_seconds, key_range
from luckbase.solver import load_layout
from luckbase.solver.board.model import Board
from luckbase.solver.game.capabilities import Layout


def solve(board: Board, **options: Unpack[SolveOptions]) -> Solved:
    """Solve what is missing of the board's full table; a table that is complete is left alone.

    Raises RequestError for what can not be done (too little memory or disk, another solve of the
    same table running), CorruptTableError for a file that a solve reads back and that has changed.
    """
    asked = Options(**options)
    layout = load_layout(board)
    game = layout.game
    if asked.address:
        check_address(asked.address)
    plan = make_plan(layout, asked.slots)
    table = table_directory(asked.folder, game)
    if not (asked.force or asked.check):
        ledger = complete_ledger(game, table, TIERS, margin=asked.margin)
        if ledger is not None and ledger.files.keys() >= set(plan.files):
            kept = sum(ledger.files[name].rows for name in plan.files)
            goal = make_goal(game, ledger, TIERS, len(plan.files), margin=asked.margin)
            return Solved(table, ledger, goal, kept=kept, workers=asked.slots)
    budget = asked.memory if asked.memory is not None else int(free_memory() * MEMORY_SHARE)
    there = set(Folder(table).list(f"{TIERS}/"))
    if asked.force or not there.issuperset(plan.files):
        todo = [i for i, name in enumerate(plan.files) if asked.force or name not in there]
        check_room(plan, budget, table, layout.smaller, todo)  # before anything is made, or unmade
    with lock(table):
        return _solve_locked(layout, plan, table, budget, asked)


def _solve_locked(
    layout: Layout[Any], plan: Plan, table: Path, budget: int, asked: Options
) -> Solved:
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
    report = Solved(
        table, ledger, goal, kept=kept, workers=asked.slots, damaged=tuple(damaged)
    )  # fmt: skip
    if any(name not in ledger.files for name in plan.files):
        started = time.perf_counter()
        asked.on_progress(Progress(0, 0, 0, 0, 0.0, compiling=True))
        layout.compile()  # once, not in every worker at the same time
        compiled = time.perf_counter() - started
        use_ray = asked.address is not None or not plan.in_process(asked.slots)
        run = _Run(layout, plan, table, ledger, asked.slots, budget, asked.on_progress)
        session = (
            ray_session(asked.slots, run.folder, asked.address) if use_ray else threads(asked.slots)
        )
        with session as pool:
            run.solve(pool)
        shutil.rmtree(table / "scratch", ignore_errors=True)
        report = replace(run.report(report), compile_seconds=compiled, ray=use_ray)
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


class _Run:
    """One run of the driver: the schedule, the ledger, the counts."""

    def __init__(
        self,
        layout: Layout[Any],
        plan: Plan,
        table: Path,
        ledger: Ledger,
        workers: int,
        memory: int,
        on_progress: Callable[[Progress], None],
    ) -> None:
        self.layout, self.plan, self.ledger = layout, plan, ledger
        self.storage, self.table, self.on_progress = Folder(table), table, on_progress
        self.folder = table / "scratch" / attempt()
        committed = {i for i, name in enumerate(plan.files) if name in ledger.files}
        exact = layout.payoff_type is np.float64
        self.schedule = Schedule(
            plan.shards, workers=workers, memory=memory, committed=committed,
            stored=committed if exact else (),
        )  # fmt: skip
        self.todo = len(self.schedule.waiting)
        self.rows_todo = sum(plan.shards[i].rows for i in self.schedule.waiting)
        self.shards = self.rows = self.again = self.read = 0
        self.solve_seconds = self.again_seconds = 0.0
        self.processes: dict[int, int] = {}
        self.tally: dict[str, float] = {}
        self.started = time.perf_counter()

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.started

    def report(self, before: Solved) -> Solved:
        """What was done, beside what is known already."""
        peak = sum((self.processes | {os.getpid(): peak_memory()}).values())
        return replace(
            before, again=self.again, read=self.read, states=self.rows,
            shards=self.shards, seconds=self.seconds, solve_seconds=self.solve_seconds,
            again_seconds=self.again_seconds, peak_memory=peak, tally=self.tally,
        )  # fmt: skip

    def solve(self, workers: Workers) -> None:
        """Until nothing is left to do."""
        self._follow(self.schedule.start(), workers, None)
        while not self.schedule.finished:
            receipt = workers.wait_one(0.5)
            if receipt is not None:
                self._follow(self.schedule.solved(receipt.shard), workers, receipt)
                self._count(receipt)
            done = self.rows + self.again + self.read
            self.on_progress(Progress(self.shards, self.todo, done, self.rows_todo, self.seconds))

    def _count(self, receipt: Receipt) -> None:
        rows = self.plan.shards[receipt.shard].rows
        self.shards += 1
        self.processes[receipt.process] = receipt.peak_memory
        if receipt.shard in self.schedule.stored:
            self.read += rows
        elif receipt.file is None:
            self.again += rows
            self.again_seconds += receipt.solve_seconds
        else:
            self.rows += rows
            self.solve_seconds += receipt.solve_seconds
            self.tally = add_tally(self.tally, receipt.tally)

    def _follow(self, steps: list[Instruction], workers: Workers, receipt: Receipt | None) -> None:
        # New work first: workers go on while this process flushes and renames.
        for step in steps:
            if isinstance(step, Commit) and receipt is not None and receipt.kept is not None:
                os.replace(receipt.kept, self._scratch(step.shard))
        for step in steps:
            if isinstance(step, Solve):
                workers.submit(self._task(step))
        for step in steps:
            if isinstance(step, Commit) and step.commit:
                assert receipt is not None
                self._commit(receipt)
        for step in steps:
            if isinstance(step, Drop):
                self._drop(step.shard)

    def _task(self, step: Solve) -> Task:
        tier, part = self.plan.parts[step.shard]
        stored = None
        if step.shard in self.schedule.stored:
            stored = self.ledger.files[self.plan.files[step.shard]]
        return Task(
            self.layout.game.board, self.table, self.folder, step.shard, tier, part, step.commit,
            step.keep, self.ledger.margin, stored,
        )  # fmt: skip

    def _scratch(self, shard: int) -> Path:
        return tier_file(self.folder, self.layout, self.layout.tiers()[self.plan.parts[shard][0]])

    def _drop(self, shard: int) -> None:
        """Nobody reads the shard any more; of a tier in parts the file goes with the last one."""
        tier = self.plan.parts[shard][0]
        others = (i for i, (other, _) in enumerate(self.plan.parts) if other == tier)
        if not any(i in self.schedule.kept for i in others):
            self._scratch(shard).unlink(missing_ok=True)

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
        self.storage.put(entry.name, receipt.file.path)
        commit(self.storage, self.ledger, entry)


def file_entry(
    name: str, part: str, tier: int, keys: tuple[int, int], file: FileReceipt, seconds: float
) -> FileEntry:
    """A file as the ledger names it; seconds: spent solving it."""
    return FileEntry(
        name, part, tier, file.rows, file.row_group_rows, *keys, file.bytes, file.footer,
        file.checks, float(file.error), entry_seconds(seconds, file.seconds), solver_version(),
    )  # fmt: skip


def add_tally(total: dict[str, float], more: dict[str, float]) -> dict[str, float]:
    """Two tallies together: names that begin with "worst" are maxima, the others sums."""
    found = dict(total)
    for name, number in more.items():
        before = found.get(name, 0.0)
        found[name] = max(before, number) if name.startswith("worst") else before + number
    return found
