"""Solve a full table.

Two runs fill it. The first gives payoffs to the tiers up to the frontier (`tiers`). If the board
has `decisions`, the second stores only the best actions of the tiers beyond it (`decisions`).
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from luckbase.cluster.solve.decisions import ChainRun
from luckbase.cluster.solve.driver import Work, is_new, memory_budget, solve_table
from luckbase.cluster.solve.options import Options, SolveOptions
from luckbase.cluster.solve.plan import Plan, check_room, joined, make_plans
from luckbase.cluster.solve.progress import Solved
from luckbase.cluster.solve.tiers import TierRun
from luckbase.cluster.store.manifest import DECISIONS, TIERS, Done, Manifest
from luckbase.solver.board.model import Board
from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.capabilities import DecisionLayout, FullTable
from luckbase.solver.game.game import load_game


def solve(board: Board, **options: Unpack[SolveOptions]) -> Solved:
    """Solve the missing parts of a board's full table. Raises as `driver.solve_table` does."""
    return solve_table(FullSolve(load_game(board).need(FullTable), Options.read(options)))


class FullSolve(Work):
    """The work of solving a full table."""

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

    def is_there(self, manifest: Manifest) -> bool:
        return not self.plan.missing(manifest.files)

    def kept(self, manifest: Manifest) -> int:
        return self.plan.kept(manifest)

    def check_room(self, table: Path, manifest: Manifest | None) -> None:
        plan, present = self.plan, set[str]()
        if manifest is not None:
            solved_again = manifest.next.files if manifest.next else ()
            files = solved_again if self.options.force else manifest.files.values()
            present = {entry.name for entry in files}
        if todo := plan.missing(present):
            check_room(plan, self.budget, table, self.layout.smaller, todo, self.options.slots)

    def forget(self, manifest: Manifest) -> None:
        manifest.take_out([name for name in self.plan.files if name in manifest.files])

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
