"""Solve a full table.

Two runs fill it. The first gives payoffs to the tiers up to the frontier (`tiers`). If the board
has `decisions`, the second (`ChainRun`) stores only the best actions of the tiers beyond it.

A shard of the second run is a *chain* of tiers (`plan.Chain`). It begins with the tiers up to the
frontier, which are solved again. Its worker holds two tiers in memory at a time and keeps only what
other chains read: boundaries, or a whole small tier. If a worker dies, the whole chain is solved
again. If several chains at once do not fit in memory, they are solved one by one, each on all
cores.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from luckbase.cluster.solve.driver import Work, is_new, memory_budget, solve_table
from luckbase.cluster.solve.options import Options, SolveOptions
from luckbase.cluster.solve.plan import (
    Chain,
    Plan,
    chain_slots,
    check_room,
    joined,
    make_plans,
    piece_sizes,
)
from luckbase.cluster.solve.progress import Solved
from luckbase.cluster.solve.schedule import Solve
from luckbase.cluster.solve.tiers import TierJob, TierRun, buffer
from luckbase.cluster.solve.worker import Out, PayoffPlace, Receipt, Steps, Stop, Task, writable
from luckbase.cluster.store.format import Written, write_decisions
from luckbase.cluster.store.manifest import DECISIONS, TIERS, Done, Manifest
from luckbase.solver.board.model import Board
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.capabilities import DecisionLayout, FullTable
from luckbase.solver.game.game import Game, load_game


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
        allocate = buffer if self.reuse else _fresh
        outputs = np.empty(sum(piece_sizes(layout, self.gives))) if out is None else out
        pieces_by_index = self._pieces(self.gives, outputs)
        for gives, pieces in zip(self.reads, map(writable, payoffs), strict=True):
            pieces_by_index |= self._pieces(gives, pieces)
        index = {tier: i for i, tier in enumerate(order)}
        sizes = {i: math.prod(dense.shape(order[i])) for i in self.tiers}
        last = self.tiers[-1]  # its buffer, usually the largest, is the first tier's in every chain
        most = [max((sizes[i] for i in self.tiers if (last - i) % 2 == turn), default=0)
                for turn in (0, 1)]  # fmt: skip
        rooms = [allocate(f"payoffs {turn}", (most[turn],)) for turn in (0, 1)]
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
                best = allocate("best", (dense.rows(tier),), np.int8)
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


def _fresh(name: str, shape: tuple[int, ...], kind: Any = np.float64) -> NDArray[Any]:
    """Like `tiers.buffer`, but not reused."""
    return np.empty(shape, kind)
