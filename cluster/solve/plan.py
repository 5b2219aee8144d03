"""The plan of a solve: its shards, and the memory, disk space and time that they take.

The rows and memory of a full table are exact. Bytes and seconds are predictions from the constants
below and the game's own (`tier_seconds`), which `python -m tests.bench` measures on any machine.

A full table has one or two plans, which are solved one after the other: the tiers up to the
frontier, whose shards are tiers or parts of tiers, and the decisions beyond it, whose shards are
chains of tiers. A search is planned by `cluster.search.plan`.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from luckbase.cluster.machine import PROCESS_BYTES, check_disk
from luckbase.cluster.solve.driver import UNLIMITED, memory_budget, stored_manifest
from luckbase.cluster.solve.options import Options
from luckbase.cluster.solve.schedule import Drop, Schedule, Shard, Solve
from luckbase.cluster.store.format import decision_file, row_group_rows, tier_files
from luckbase.cluster.store.manifest import Manifest, table_directory
from luckbase.cluster.store.storage import is_uri
from luckbase.solver.board.file import read_board
from luckbase.solver.board.model import Board, options_of
from luckbase.solver.dense import check_tiers
from luckbase.solver.errors import MemoryLimitError
from luckbase.solver.game.capabilities import DecisionLayout, FullTable
from luckbase.solver.game.game import Game, load_game
from luckbase.solver.result import PythonOnly, Result, Rounded
from luckbase.solver.sentences import size

WRITE_NS, WRITE_DECISION_NS = 82.0, 12.0
"""Core nanoseconds to encode, compress, flush and read back a state: with payoffs, and without.
A decision takes 6, but a chain's other threads wait meanwhile."""
SHARD_SECONDS = 0.03
"""Seconds that a file takes in addition to its states: creating, flushes, a manifest entry."""
BYTES_A_ROW = {np.dtype(np.float32): 5.4, np.dtype(np.float64): 14.0}
"""Bytes on disk for each state, by the type of stored payoffs."""
BYTES_A_DECISION = 0.02
"""Bytes on disk for each state without payoffs; the round of 1985-02 takes .007 to .013."""
TOUCHED_SHARE = 1 / 3
"""Share of pages touched in children read only for their boundaries (an observed upper bound)."""
BUFFER_BYTES_A_ROW = 400
"""Bytes for each row of the row group that is being written: columns and encoded pages."""
WRITE_BYTES = 16 << 20
"""Bytes needed while a file of decisions is written."""
BOUNDARY = -1
"""Replaces the part in the boundary of a tier (`DecisionLayout`), sent instead of the whole
tier."""


@dataclass(frozen=True)
class Plan:
    """The shards of a solve, children first."""

    shards: tuple[Shard, ...]
    kept_bytes: int  # estimated maximum bytes of payoffs kept for other shards at once

    @property
    def rows(self) -> int:
        return sum(shard.rows for shard in self.shards)

    @property
    def table_bytes(self) -> int:
        return sum(shard.bytes for shard in self.shards)

    @property
    def shard_memory(self) -> int:
        return max(shard.memory for shard in self.shards)

    @property
    def seconds(self) -> float:
        return sum(shard.seconds for shard in self.shards)

    @property
    def files(self) -> set[str]:
        return {name for shard in self.shards for name in shard.files}

    def peak_memory(self, workers: int) -> int:
        """Return the peak bytes with this many threads: the largest shards at the same time, and
        the kept payoffs. If memory is short, kept payoffs spill to disk."""
        largest = sorted((s.memory for s in self.shards), reverse=True)[:workers]
        return sum(largest) + self.kept_bytes + PROCESS_BYTES

    def missing(self, present: Collection[str]) -> list[Shard]:
        """Return the shards with a file that is not present."""
        names = {*present}
        return [shard for shard in self.shards if not names.issuperset(shard.files)]

    def committed(self, manifest: Manifest) -> set[int]:
        """Return the shards whose files are all in the manifest."""
        missing = {shard.index for shard in self.missing(manifest.files)}
        return {shard.index for shard in self.shards} - missing


def joined(plans: Sequence[Plan]) -> Plan:
    """Return plans that are solved one after the other as one, for its sums."""
    shards = tuple(shard for plan in plans for shard in plan.shards)
    return Plan(shards, max(plan.kept_bytes for plan in plans))


def make_plans(
    layout: FullTable[Any], workers: int = 1, boundaries: bool = False
) -> tuple[Plan, ...]:
    """Return the plans of a game's full table: of its tiers, and of the decisions beyond them if
    there are any. boundaries: as in `make_plan`."""
    tiers, decided = make_plan(layout, workers, boundaries), decided_layout(layout.game)
    return (tiers,) if decided is None else (tiers, make_chain_plan(decided))


# --- tiers ---------------------------------------------------------------------------------------


@lru_cache(maxsize=4)
def make_plan(layout: FullTable[Any], workers: int = 1, boundaries: bool = False) -> Plan:
    """Return the plan of the tiers with stored payoffs. The work of a shard is the index of its
    tier and its part; the part is `BOUNDARY` for the boundary of the tier.

    boundaries: pass only the boundaries of tiers to the shards that read them, as between machines,
        if the game supports it.

    Raises GameError as `check_tiers` does.
    """
    check_tiers(layout)
    by_boundary = layout.game.get(DecisionLayout) if boundaries else None
    tiers = list(layout.tiers())
    index = {tier: i for i, tier in enumerate(tiers)}
    bytes_of = [payoff_bytes(layout, tier) for tier in tiers]
    bytes_a_row = BYTES_A_ROW[np.dtype(layout.payoff_type)]
    shards, kept = list[Shard](), list[int]()
    of_tier: list[list[int]] = []
    of_boundary: dict[int, int] = {}
    read_as_boundary = set[Any]()
    if by_boundary is not None:
        read_as_boundary.update(*map(by_boundary.boundaries_read, tiers))

    for i, tier in enumerate(tiers):
        if by_boundary is None:
            below = sorted(index[child] for child in layout.children(tier))
            sizes = sorted((bytes_of[c] for c in below), reverse=True)
            mapped = sum(sizes[:1]) + round(TOUCHED_SHARE * sum(sizes[1:]))
            children = [shard for c in below for shard in of_tier[c]]
        else:
            in_full, read = by_boundary.below(tier), by_boundary.boundaries_read(tier)
            below = [] if in_full is None else [index[in_full]]
            mapped = sum(bytes_of[c] for c in below)
            mapped += sum(8 * by_boundary.boundary_size(child) for child in read)
            children = [shard for c in below for shard in of_tier[c]]
            children += [of_boundary[index[child]] for child in read]
        ranges, named, rows_of = layout.parts(tier), tier_files(layout, tier), layout.rows(tier)
        of_tier.append(list(range(len(shards), len(shards) + len(ranges))))
        for part, (start, stop) in enumerate(ranges):
            rows, name = stop - start, layout.tier_name(tier)
            name += f", part {part + 1} of {len(ranges)}" if len(ranges) > 1 else ""
            payoffs = bytes_of[i] * rows // max(rows_of, 1)
            buffers = BUFFER_BYTES_A_ROW * min(row_group_rows(layout, tier), rows)
            kernel = layout.tier_seconds(tier) * rows / max(1, rows_of)
            seconds = kernel + rows * WRITE_NS * 1e-9 + SHARD_SECONDS
            shards.append(Shard(
                len(shards), name, tuple(children), rows, payoffs + mapped + buffers,
                layout.most_threads(tier), seconds, round(bytes_a_row * rows),
                tuple(file.name for file in named if file.part == part), (i, part),
            ))  # fmt: skip
            kept.append(payoffs)
        if by_boundary is not None and tier in read_as_boundary:
            of_boundary[i] = len(shards)
            name, memory = layout.tier_name(tier), 8 * by_boundary.boundary_size(tier)
            shards.append(Shard(
                len(shards), f"{name}, its boundary", tuple(of_tier[i]), 0, memory, 0,
                work=(i, BOUNDARY),
            ))  # fmt: skip
            kept.append(memory)

    groups = {shard.children for shard in shards}  # parts of a tier have the same
    largest = max((kept[c] for group in groups for c in group), default=0)
    # If shards finish out of order, a few more are kept.
    kept_bytes = peak_kept(shards, kept, workers) + 2 * (workers - 1) * largest
    return Plan(tuple(shards), kept_bytes)


def payoff_bytes(layout: FullTable[Any], tier: Any) -> int:
    return 8 * math.prod(layout.shape(tier))


def peak_kept(shards: Sequence[Shard], kept_bytes: Sequence[int], workers: int) -> int:
    """Simulate the schedule with shards finishing in order; return the peak of kept bytes."""
    schedule = Schedule(shards, workers=workers, memory=UNLIMITED)
    running = [i.shard for i in schedule.start() if isinstance(i, Solve)]
    now = peak = 0
    while running:
        shard = running.pop(0)
        now += kept_bytes[shard] if schedule.readers[shard] else 0
        peak = max(peak, now)
        for step in schedule.solved(shard):
            if isinstance(step, Drop):
                now -= kept_bytes[step.shard]
            else:
                running.append(step.shard)
    return peak


# --- decisions beyond the frontier ---------------------------------------------------------------


@dataclass(frozen=True)
class Chain:
    """Consecutive tiers in the order of a `DecisionLayout`, each of which reads the whole tier
    before it; the work of a shard (`decisions`)."""

    tiers: range  # indices in the order
    gives: tuple[int, ...]
    """The payoffs that it keeps for others: index for a tier, ~index for its boundary."""
    names: tuple[str, ...]  # the file name of each tier; "" if there is none
    rows: tuple[int, ...]  # the number of states in each file


def decided_layout(game: Game) -> DecisionLayout[Any] | None:
    """Return the order in which decisions beyond the frontier are solved; None if there are
    none."""
    layout = game.get(DecisionLayout)
    decided = layout is not None and any(map(layout.is_decided, layout.tiers()))
    return layout if decided else None


def make_chain_plan(layout: DecisionLayout[Any]) -> Plan:
    """Return the plan of a board's decisions beyond the frontier. The work of a shard is a
    `Chain`."""
    dense, order = layout.layout, layout.tiers()
    index = {tier: i for i, tier in enumerate(order)}
    reads = [[~index[child] for child in layout.boundaries_read(tier)] for tier in order]
    starts = []
    for i, below in enumerate(map(layout.below, order)):
        if i == 0 or below is None or index[below] != i - 1:
            starts.append(i)
            reads[i] += [] if below is None else [index[below]]
    pieces = {piece for inputs in reads for piece in inputs}
    chains = [range(*ends) for ends in pairwise([*starts, len(order)])]
    chain_of = [number for number, chain in enumerate(chains) for _ in chain]
    shards, kept = list[Shard](), list[int]()
    for number, tiers in enumerate(chains):
        gives = tuple(piece for i in tiers for piece in (~i, i) if piece in pieces)
        kept.append(8 * sum(piece_sizes(layout, gives)))
        decided = [layout.is_decided(order[i]) for i in tiers]
        all_rows = [dense.rows(order[i]) for i in tiers]
        names = [decision_file(dense, order[i]) * is_decided
                 for i, is_decided in zip(tiers, decided, strict=True)]  # fmt: skip
        rows_of = [rows * is_decided for rows, is_decided in zip(all_rows, decided, strict=True)]
        memory, rooms = 0, [0, 0]
        for i, rows in zip(tiers, all_rows, strict=True):
            turn = (tiers[-1] - i) % 2
            rooms[turn] = max(rooms[turn], payoff_bytes(dense, order[i]))
            memory = max(memory, sum(rooms) + rows + min(WRITE_BYTES, 8 * rows) + kept[-1])
        children = {chain_of[max(piece, ~piece)] for i in tiers for piece in reads[i]} - {number}
        name = " to ".join(dense.tier_name(order[i]) for i in dict.fromkeys((tiers[0], tiers[-1])))
        seconds = sum(dense.tier_seconds(order[i]) for i in tiers) + SHARD_SECONDS * len(tiers)
        seconds += sum(rows_of) * WRITE_DECISION_NS * 1e-9
        shards.append(Shard(
            number, name, tuple(sorted(children)), sum(rows_of), memory,
            max(dense.most_threads(order[i]) for i in tiers), seconds,
            round(BYTES_A_DECISION * sum(rows_of)), tuple(filter(None, names)),
            Chain(tiers, gives, tuple(names), tuple(rows_of)),
        ))  # fmt: skip
    return Plan(tuple(shards), peak_kept(shards, kept, 1))


def piece_sizes(layout: DecisionLayout[Any], gives: Iterable[int]) -> list[int]:
    """Return the number of payoffs in each piece that a chain gives (`Chain.gives`)."""
    order = layout.tiers()
    return [
        math.prod(layout.layout.shape(order[i])) if i >= 0 else layout.boundary_size(order[~i])
        for i in gives
    ]


def chain_slots(plan: Plan, memory: int, count: int) -> int:
    """Return how many chains are solved at once: `count` if they fit in memory with all kept
    payoffs, otherwise one, on all cores."""
    return count if count * (plan.shard_memory + plan.kept_bytes) <= memory // 2 else 1


# --- the estimate --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Group:
    """Some shards of a full table, for the printed plan."""

    name: str  # the field that they share, with its value
    shards: int
    states: int
    memory: int  # bytes of the largest


@dataclass(frozen=True)
class Planned(Result):
    """The estimated cost of a solve: of a full table, or of a search.

    exact: True if all states were counted; otherwise all numbers are lower bounds, and there may be
        many times more states.
    levels: number of levels of a search; 0 if it is solved in one piece, None if unknown; for a
        full table, the number of tiers.
    table_bytes: on disk.
    kept_bytes: maximum bytes that are kept until the solve ends: payoffs that other shards read,
        or the stage files of a search.
    peak_memory: in bytes.
    seconds: wall time with `workers` workers.
    """

    board: str
    states: int
    exact: bool
    levels: int | None
    table_bytes: int
    kept_bytes: int
    peak_memory: int
    seconds: Rounded
    workers: int
    table: PythonOnly[Path]
    smaller: PythonOnly[str]
    """A change that would take less."""
    disk_bytes: PythonOnly[int] = 0
    """Bytes that a search needs on the disk."""
    plan: PythonOnly[Plan] = Plan((), 0)
    """The shards of a full table."""
    groups: PythonOnly[tuple[Group, ...]] = ()
    budget: PythonOnly[int] = 0
    """Bytes that the shards of a full table may use."""

    def check(self, todo: Sequence[Shard] = ()) -> None:
        """Raise MemoryLimitError or DiskLimitError if a search, or these shards of a full table, do
        not fit."""
        if self.plan.shards:
            check_room(self.plan, self.budget, self.table, self.smaller, todo, self.workers)
        else:
            here = Path(tempfile.gettempdir()) if is_uri(self.table) else self.table
            check_disk("search", self.disk_bytes, here, self.smaller)


def check_room(
    plan: Plan, memory: int, table: Path, smaller: str, todo: Sequence[Shard] | None = None,
    workers: int = 1,
) -> None:  # fmt: skip
    """Check that a plan fits into memory, and on the disk beside the existing files.

    smaller: a change that would take less (`FullTable.smaller`).
    todo: the remaining shards; default all.

    Raises MemoryLimitError, DiskLimitError.
    """
    if plan.shard_memory > memory:
        raise MemoryLimitError(
            f"memory: the largest tier needs {size(plan.shard_memory)} and "
            f"{size(memory)} may be used; {smaller} takes less"
        )
    shards = plan.shards if todo is None else todo
    spilled = max(0, plan.kept_bytes - max(0, memory - workers * plan.shard_memory))
    check_disk("solve", sum(shard.bytes for shard in shards) + spilled, table, smaller)


def plan_table(game: Game, options: Options) -> Planned:
    """Return the plan of a board's full table. Raises OptionError if the board has none."""
    layout, count, budget = game.need(FullTable), options.slots, memory_budget(options)
    plans, tiers = make_plans(layout, count), layout.tiers()
    total, peak = joined(plans), plans[0].peak_memory(count)
    pieces = [(layout, tiers[shard.work[0]], shard.rows, shard.memory) for shard in plans[0].shards]
    tier_count = len(tiers)
    for plan in plans[1:]:
        side = chain_slots(plan, budget, count)
        peak = max(peak, plan.peak_memory(side) + (side - 1) * plan.kept_bytes)
        decided = game.need(DecisionLayout)
        dense, order = decided.layout, decided.tiers()
        beyond = [
            (dense, order[i], rows, shard.memory) for shard in plan.shards
            for i, rows in zip(shard.work.tiers, shard.work.rows, strict=True) if rows
        ]  # fmt: skip
        tier_count += len(beyond)
        pieces += beyond
    # What the budget does not hold spills to disk.
    peak = min(peak, max(budget, total.shard_memory) + PROCESS_BYTES)
    groups: dict[Any, list[int]] = {}
    for dense, tier, rows, memory in pieces:
        none = (dense.tier_name(tier), "")
        group = groups.setdefault(next(iter(dense.tier_fields(tier).items()), none), [0, 0, 0])
        group[0] += 1
        group[1] += rows
        group[2] = max(group[2], memory)
    listed = (
        Group(f"{name} {value}".strip(), *sums) for (name, value), sums in sorted(groups.items())
    )
    return Planned(
        game.board.name, total.rows, True, tier_count, total.table_bytes, total.kept_bytes, peak,
        total.seconds / count, count, table_directory(options.folder, game), layout.smaller,
        plan=total, groups=tuple(listed), budget=budget,
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
        plans = make_plans(game.need(FullTable), options.slots, options.joins)
        memory = joined(plans).shard_memory
        needed = needed or memory
        if memory <= budget:
            if depth < deepest:
                options.on_note(
                    f"{board.name}: {option} = {deepest} need {size(needed)} of memory, and "
                    f"{size(budget)} may be used; this table reaches {depth}"
                )
            return game.board
    return board
