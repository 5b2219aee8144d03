"""Solve a full table, or plan it: memory, disk space and time, without using any of them.

Two runs fill a table. The first gives payoffs to the tiers up to the frontier (`tiers`). If the
board has `decisions`, the second stores only the best actions of the tiers beyond it (`decisions`).
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from luckbase.cluster.solve.decisions import (
    ChainPlan,
    ChainRun,
    chain_slots,
    committed_chains,
    decided_layout,
    make_chain_plan,
)
from luckbase.cluster.solve.driver import Work, is_new, memory_budget, solve_table, stored_manifest
from luckbase.cluster.solve.options import Options, SolveOptions
from luckbase.cluster.solve.progress import SolvedTiers
from luckbase.cluster.solve.tiers import Plan, TierPlan, TierRun, check_room, committed, make_plan
from luckbase.cluster.store.format import tier_files
from luckbase.cluster.store.manifest import DECISIONS, TIERS, Done, Goal, Manifest, table_directory
from luckbase.cluster.store.provenance import origin_of
from luckbase.solver.board.file import read_board
from luckbase.solver.board.model import Board, options_of
from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.capabilities import DecisionLayout, FullTable
from luckbase.solver.game.game import Game, load_game
from luckbase.solver.result import PythonOnly, Result, Rounded
from luckbase.solver.sentences import size

# --- the plan ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FullPlan(Plan):
    """The plan of a full table: the shards of its tiers, then those of its decisions."""

    tiers: TierPlan
    chains: ChainPlan | None

    def kept(self, layout: FullTable[Any], manifest: Manifest) -> int:
        """Return the number of states that the manifest has."""
        rows = sum(self.tiers.shards[i].rows for i in committed(layout, self.tiers, manifest))
        if self.chains is None:
            return rows
        each = zip(self.chains.of_tier, self.chains.rows_of, strict=True)
        return rows + sum(more for name, more in each if name in manifest.files)

    def committed(self, layout: FullTable[Any], manifest: Manifest) -> set[int]:
        """Return the shards that the manifest has."""
        first = len(self.tiers.shards)
        chains = () if self.chains is None else committed_chains(self.chains, manifest)
        return committed(layout, self.tiers, manifest) | {first + i for i in chains}


def make_full_plan(layout: FullTable[Any], workers: int = 1, boundaries: bool = False) -> FullPlan:
    """Return the plan of a game's full table. boundaries: as in `tiers.make_plan`."""
    tiers, decided = make_plan(layout, workers, boundaries), decided_layout(layout.game)
    if decided is None:
        return FullPlan(tiers.shards, tiers.files, tiers.kept_bytes, tiers, None)
    chains, first = make_chain_plan(decided), len(tiers.shards)
    more = [
        replace(shard, index=first + shard.index, children=tuple(first + i for i in shard.children))
        for shard in chains.shards
    ]
    kept = max(tiers.kept_bytes, chains.kept_bytes)
    shards, files = (*tiers.shards, *more), (*tiers.files, *chains.files)
    return FullPlan(shards, files, kept, tiers, chains)


@dataclass(frozen=True)
class Level:
    """A group of shards with a common field.

    name: the field with its value.
    memory: bytes of the largest.
    """

    name: str
    shards: int
    states: int
    memory: int


@dataclass(frozen=True)
class Planned(Result):
    """The estimated cost of a solve."""

    board: str
    tiers: int
    shards: int
    states: int
    table_bytes: int
    """On disk."""
    kept_bytes: int
    """Maximum bytes of payoffs kept for shards that read them."""
    peak_memory: int
    """In bytes."""
    seconds: Rounded
    """Wall time with `workers` workers."""
    workers: int
    levels: PythonOnly[tuple[Level, ...]]
    plan: PythonOnly[Plan]
    game: PythonOnly[Game]
    table: PythonOnly[Path]
    budget: PythonOnly[int]
    """Bytes that shards may use."""
    smaller: PythonOnly[str]

    def check(self) -> None:
        """Raise MemoryLimitError or DiskLimitError if the remaining work does not fit."""
        manifest = stored_manifest(self.game, self.table)
        todo = self.plan.missing(manifest.files if manifest else ())
        check_room(self.plan, self.budget, self.table, self.smaller, todo, self.workers)


def plan_table(game: Game, options: Options) -> Planned:
    """Return the plan of a board's full table. Raises OptionError if the board has none."""
    layout, count = game.need(FullTable), options.slots
    plan, tiers, budget = make_full_plan(layout, count), layout.tiers(), memory_budget(options)
    pieces = [
        (layout, tiers[index], shard.rows, shard.memory)
        for shard, (index, _) in zip(plan.tiers.shards, plan.tiers.parts, strict=True)
    ]
    tier_count, peak = len(tiers), plan.tiers.peak_memory(count)
    if plan.chains is not None:
        side = chain_slots(plan.chains, budget, count)
        kept = (side - 1) * plan.chains.kept_bytes
        peak = max(peak, plan.chains.peak_memory(side) + kept)
        decided = game.need(DecisionLayout)
        each = zip(decided.tiers(), plan.chains.memory_of, strict=True)
        beyond = [(tier, memory) for tier, memory in each if decided.is_decided(tier)]
        tier_count += len(beyond)
        pieces += [
            (decided.layout, tier, decided.layout.rows(tier), memory) for tier, memory in beyond
        ]
    levels: dict[Any, list[int]] = {}
    for of, tier, rows, memory in pieces:
        none = (of.tier_name(tier), "")
        level = levels.setdefault(next(iter(of.tier_fields(tier).items()), none), [0, 0, 0])
        level[0] += 1
        level[1] += rows
        level[2] = max(level[2], memory)
    listed = (Level(f"{name} {value}".strip(), *of) for (name, value), of in sorted(levels.items()))
    return Planned(
        game.board.name, tier_count, len(plan.shards), plan.rows, plan.table_bytes,
        plan.kept_bytes, peak, plan.seconds / count, count, tuple(listed), plan, game,
        table_directory(options.folder, game), budget, layout.smaller,
    )  # fmt: skip


def fitting(board: Board, options: Options) -> Board:
    """Return a board with decisions as far as memory allows, if its file (not an option) gives the
    depth; otherwise the board. A depth chosen by an earlier solve of the file is kept."""
    source = board.source
    if (
        not type(board).grid
        or source is None
        or (option := type(board).grid[-1]) in source.settings
    ):
        return board
    game, (deepest, _) = load_game(board), options_of(board)[option]
    if decided_layout(game) is None:
        return board
    manifest = stored_manifest(game, table_directory(options.folder, game))
    for goal in manifest.goals if manifest is not None else ():
        others = {name: value for name, value in goal.settings.items() if name != option}
        fixed = int(goal.settings.get(option, deepest))
        if (goal.board_file, others) == (source.file, source.settings) and fixed <= deepest:
            return board if fixed == deepest else read_board(Path(source.file), goal.settings)
    budget, needed = memory_budget(options), 0
    for depth in range(deepest, 0, -1):
        if depth < deepest:
            settings = {**source.settings, option: str(depth)}
            game = load_game(read_board(Path(source.file), settings))
        memory = make_full_plan(game.need(FullTable), options.slots, options.joins).shard_memory
        needed = needed or memory
        if memory <= budget:
            if depth < deepest:
                options.on_note(
                    f"{board.name}: {option} = {deepest} need {size(needed)} of memory, and "
                    f"{size(budget)} may be used; this table reaches {depth}"
                )
            return game.board
    return board


# --- the solve -----------------------------------------------------------------------------------


def solve(board: Board, **options: Unpack[SolveOptions]) -> SolvedTiers:
    """Solve the missing parts of a board's full table. Raises as `driver.solve_table` does."""
    return solve_table(FullSolve(load_game(board).need(FullTable), Options.read(options)))


class FullSolve(Work[SolvedTiers]):
    """The work of solving a full table."""

    part = TIERS
    others = (DECISIONS,)

    def __init__(
        self, layout: FullTable[Any], options: Options, plan: FullPlan | None = None
    ) -> None:
        super().__init__(layout.game, options)
        self.layout = layout
        self.plan = plan or make_full_plan(layout, options.slots, options.joins)
        self.files = len(self.plan.names)
        self.budget, self.compile_seconds = memory_budget(options), 0.0

    def starts(self) -> Ints:
        start = self.game.start()
        return np.array([] if start is None else [start])

    def is_there(self, manifest: Manifest) -> bool:
        return len(self.plan.committed(self.layout, manifest)) == len(self.plan.shards)

    def report(self, table: Path, manifest: Manifest, goal: Goal) -> SolvedTiers:
        kept, workers = self.plan.kept(self.layout, manifest), self.options.slots
        return SolvedTiers(origin_of(self.game), table, manifest, goal, kept=kept, workers=workers)

    def check_room(self, table: Path, manifest: Manifest | None) -> None:
        plan, present = self.plan, set[str]()
        if manifest is not None:
            solved_again = manifest.next.files if manifest.next else ()
            files = solved_again if self.options.force else manifest.files.values()
            present = {entry.name for entry in files}
        if todo := plan.missing(present):
            check_room(plan, self.budget, table, self.layout.smaller, todo, self.options.slots)

    def forget(self, manifest: Manifest) -> None:
        names = [entry.name for entry in manifest.of_part(TIERS, DECISIONS)]
        manifest.take_out([name for name in names if name in self.plan.names])

    def compile(self) -> None:
        started = time.perf_counter()
        self.layout.compile()
        if self.plan.chains is not None:
            self.game.need(DecisionLayout).compile()
        self.compile_seconds = time.perf_counter() - started

    def solve(self, report: SolvedTiers) -> SolvedTiers:
        manifest, goal = report.manifest, report.goal
        if is_new(goal, manifest):
            self.writer.commit(goal)
        if not self.is_there(manifest):
            self.drop_other_cuts(manifest)
            report = replace(self.run(report), compile_seconds=self.compile_seconds)
        if goal.ask not in manifest.done:
            self.writer.add(Done(goal.ask, self.files, self.plan.rows))
        for earlier in manifest.goals:  # goals undone by a lost file or --force are reached again
            if earlier.part == TIERS and earlier.ask not in manifest.done:
                layout = load_game(manifest.board(earlier.reach)).need(FullTable)
                plan = make_full_plan(layout)
                if len(plan.committed(layout, manifest)) == len(plan.shards):
                    self.writer.add(Done(earlier.ask, len(plan.names), plan.rows))
        return report

    def run(self, report: SolvedTiers) -> SolvedTiers:
        """Solve the missing parts: the tiers, then the decisions beyond them."""
        manifest, tiers, chains = report.manifest, self.plan.tiers, self.plan.chains
        missing = len(committed(self.layout, tiers, manifest)) < len(tiers.shards)
        if chains is None:
            return TierRun(self, report, self.layout, tiers, self.budget).solve()
        there = committed_chains(chains, manifest)
        left = [shard.rows for shard in chains.shards if shard.index not in there]
        if missing:
            later = len(left), sum(left)
            report = TierRun(self, report, self.layout, tiers, self.budget, later).solve()
        if left:
            report = ChainRun(self, report, self.game, chains, self.budget).solve()
        return report

    def drop_other_cuts(self, manifest: Manifest) -> None:
        """Remove files of incomplete tiers that an earlier version cut into files differently."""
        plan, tiers = self.plan.tiers, self.layout.tiers()
        there = committed(self.layout, plan, manifest)
        missing = {tiers[tier] for i, (tier, _) in enumerate(plan.parts) if i not in there}
        numbers = {self.layout.tier_number(tier) for tier in missing}
        cut = {file.name: file.rows for tier in missing for file in tier_files(self.layout, tier)}
        others = [
            entry.name for entry in manifest.of_part(TIERS)
            if entry.tier in numbers
            and cut.get(entry.name) != (entry.first_row, entry.first_row + entry.rows)
        ]  # fmt: skip
        if others:
            self.writer.drop(others)
