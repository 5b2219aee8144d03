"""A table of decisions: what its solve will take, and its solve.

A shard is a tier, in the order of the game's `DecisionLayout`. What others than the next tier up
read of it, its face, is a shard of its own, which reads the tier and writes nothing: so `Schedule`
lets a tier go once the next one is solved and its face is taken, and after a stop solves again what
is still read. Where several tiers at once have no room in memory they go one by one, each on all
cores.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import pyarrow as pa

from luckbase.cluster.machine import PROCESS_BYTES, cores, memory_to_use
from luckbase.cluster.run import tiers as full
from luckbase.cluster.run.driver import memory_budget, solve_table
from luckbase.cluster.run.options import Options, SolveOptions
from luckbase.cluster.run.progress import SolvedTiers
from luckbase.cluster.run.schedule import Commit, Drop, Instruction, Shard, Solve
from luckbase.cluster.run.worker import (
    PayoffPlace,
    Receipt,
    Sent,
    Stop,
    TableLocation,
    Task,
    writable,
)
from luckbase.cluster.table.columns import parse_where
from luckbase.cluster.table.decisions import (
    codes_of,
    file_names,
    write_blocks,
    write_runs,
)
from luckbase.cluster.table.folder import drop_files
from luckbase.cluster.table.format import (
    FileReceipt,
    file_entry,
    in_threads,
    key_range,
    put_file,
    tier_files,
    write_tier,
)
from luckbase.cluster.table.ledger import (
    DECISIONS,
    RUNS,
    TIERS,
    Ledger,
    marked,
    table_directory,
)
from luckbase.cluster.table.place import storage_at
from luckbase.solver import load_game
from luckbase.solver.board.model import Board
from luckbase.solver.errors import OptionError
from luckbase.solver.game.arrays import Decisions, Floats
from luckbase.solver.game.capabilities import NOBODY, DecisionLayout
from luckbase.solver.sentences import many, option

BYTES_A_STATE = 0.035
"""Of blocks and runs together; small tables take more, many spins less."""
WRITE_NS = 5.0
"""Nanoseconds a state to lay out, compress and flush both, one core."""
RUN_BYTES = 400 << 20
"""While runs are made."""
PAYOFF_BYTES = 1 << 30
"""Levels of which payoffs are stored where nothing is said are smaller."""


@dataclass(frozen=True)
class DecisionPlan(full.Plan):
    """What a solve will do; tiers and their faces are shards."""

    tier_of: tuple[int, ...] = ()
    """The index of the tier of each shard; a face's has no files."""


def make_plan(
    layout: DecisionLayout[Any], payoffs_of: str | None = None, margins: bool = False
) -> DecisionPlan:
    """The plan of the decisions of a game's full table, one tier at a time. Raises OptionError."""
    dense, order = layout.layout, layout.tiers()
    number = np.dtype(dense.plane_type).itemsize
    if not 0 < len(dense.best_names) <= NOBODY:
        raise OptionError(
            f"board {dense.game.board.name}: one who decides alone has "
            f"{many(len(dense.best_names), 'action')}; decisions alone are kept of 1 to {NOBODY}"
        )
    paid = _paid_tiers(layout, payoffs_of)
    faced = {child for tier in order for child in layout.faces_read(tier)}
    shards: list[Shard] = []
    names: list[tuple[str, ...]] = []
    tier_of: list[int] = []
    kept: list[int] = []
    whole: dict[Any, int] = {}
    face: dict[Any, int] = {}
    for i, tier in enumerate(order):
        below, rows, size = layout.below(tier), dense.rows(tier), full.payoff_bytes(dense, tier)
        children = [whole[below]] if below is not None else []
        children += [face[child] for child in layout.faces_read(tier)]
        whole[tier] = len(shards)
        own = size + rows + rows // 4 + RUN_BYTES * min(1, rows // (1 << 20))
        own += 9 * rows * margins  # float64, and a copy of the codes
        shards.append(Shard(len(shards), dense.tier_name(tier), tuple(children), rows, own))
        files = file_names(layout, tier)
        names.append((*files, *(f.name for f in tier_files(dense, tier) if tier in paid)))
        tier_of.append(i)
        kept.append(size)
        if tier in faced:
            face[tier] = len(shards)
            size = number * layout.face_size(tier)
            name = f"{dense.tier_name(tier)}, its face"
            shards.append(Shard(len(shards), name, (whole[tier],), 0, size))
            names.append(())
            tier_of.append(i)
            kept.append(size)
    rows = sum(shard.rows for shard in shards)
    bytes_a_row = full.BYTES_A_ROW[np.dtype(dense.payoff_type)]
    table_bytes = BYTES_A_STATE * rows + bytes_a_row * sum(map(dense.rows, paid))
    seconds = sum(map(dense.tier_seconds, order)) + rows * WRITE_NS * 1e-9
    seconds += full.WRITE_NS * 1e-9 * sum(map(dense.rows, paid))
    return DecisionPlan(
        tuple(shards), tuple(names), tuple((i, 0) for i in tier_of), rows, round(table_bytes),
        full.peak_kept(shards, kept, 1), max(shard.memory for shard in shards),
        seconds + full.SHARD_SECONDS * len(order), tuple(tier_of),
    )  # fmt: skip


def _paid_tiers(layout: DecisionLayout[Any], payoffs_of: str | None) -> set[Any]:
    """The tiers that get payoffs too: those that are named; else the lowest and the highest level,
    each if it is small; none of a game of one tier. A level: tiers with the same first constant.
    Raises OptionError."""
    dense, order = layout.layout, layout.tiers()
    narrow = dense.plane_type is not np.float64
    if narrow and payoffs_of not in (None, "none"):
        raise OptionError(
            f"{option('payoffs_of')}: with planes of float32 payoffs are those of the decisions, "
            "which may fall otherwise than the best ones, so none are stored; leave it out"
        )
    fields = {tier: dense.tier_fields(tier) for tier in order}
    if narrow or payoffs_of == "none" or (payoffs_of is None and not fields[order[0]]):
        return set()
    if payoffs_of is not None and not fields[order[0]]:
        raise OptionError(
            f"{option('payoffs_of')}: {dense.game.board.game} is one tier; leave it out, and "
            f"{option('store')} too for the payoffs of all states"
        )
    if payoffs_of is not None:
        schema = pa.schema([(name, pa.int32()) for name in fields[order[0]]])
        try:
            where = parse_where(dense.game, payoffs_of, schema)
        except OptionError as error:
            raise OptionError(f"{option('payoffs_of')}: {error}") from None
        return {t for t, of in fields.items() if where.may_hold({k: (v, v) for k, v in of.items()})}
    level = {tier: next(iter(of.values()), 0) for tier, of in fields.items()}
    found = set()
    for end in {min(level.values()), max(level.values())}:
        of = {tier for tier in order if level[tier] == end}
        bytes_a_row = full.BYTES_A_ROW[np.dtype(dense.payoff_type)]
        if bytes_a_row * sum(map(dense.rows, of)) < PAYOFF_BYTES:
            found |= of
    return found


def planned(
    board: Board, results: Path, workers: int | None = None, memory: int | None = None,
    payoffs_of: str | None = None,
) -> full.Planned:  # fmt: skip
    """The plan of a board's table of decisions. Raises OptionError where it can have none."""
    layout = load_game(board).need(DecisionLayout)
    dense, plan, order = layout.layout, make_plan(layout, payoffs_of), layout.tiers()
    levels: dict[Any, list[int]] = {}
    for shard, i in zip(plan.shards, plan.tier_of, strict=True):
        none = (dense.tier_name(order[i]), "")
        level = levels.setdefault(next(iter(dense.tier_fields(order[i]).items()), none), [0, 0, 0])
        level[0] += shard.rows > 0
        level[1] += shard.rows
        level[2] = max(level[2], shard.memory)
    listed = (full.Level(f"{name} {v}".strip(), *of) for (name, v), of in sorted(levels.items()))
    budget, count = memory_to_use() if memory is None else memory, workers or cores()
    side = slots_for(plan, budget, count)
    peak = sum(sorted((s.memory for s in plan.shards), reverse=True)[:side])
    return full.Planned(
        board.name, len(order), sum(s.rows > 0 for s in plan.shards), plan.rows, plan.table_bytes,
        plan.kept_bytes, peak + side * plan.kept_bytes + PROCESS_BYTES, plan.seconds / count,
        count, tuple(listed), plan, table_directory(results.absolute(), layout.layout.game),
        budget, dense.smaller,
    )  # fmt: skip


def slots_for(plan: full.Plan, memory: int, count: int) -> int:
    """How many tiers are solved at once: as many as have room with all that each keeps, else one on
    all cores."""
    return count if count * (plan.shard_memory + plan.kept_bytes) <= memory // 2 else 1


def solve(board: Board, **options: Unpack[SolveOptions]) -> SolvedTiers:
    """Solve what is missing of the board's decisions. Raises as `driver.solve_table`."""
    return solve_table(_Decisions(load_game(board).need(DecisionLayout), Options(**options)))


class _Decisions(full.FullTable):
    part = DECISIONS
    others = (RUNS, TIERS)

    def __init__(self, layout: DecisionLayout[Any], options: Options) -> None:
        if options.address is not None:
            raise OptionError(
                f"{option('address')}: decisions are solved on one machine yet; leave it out"
            )
        plan, budget = make_plan(layout, options.payoffs_of, options.margin), memory_budget(options)
        self.threads = options.slots
        options = replace(options, workers=slots_for(plan, budget, options.slots))
        super().__init__(layout.layout, options, plan)
        self.decisions, self.files = layout, len(layout.tiers())

    def there(self, ledger: Ledger) -> set[int]:
        return {i for i, names in enumerate(self.plan.files) if ledger.files.keys() >= {*names}}

    def forget(self, table: Path, ledger: Ledger) -> None:
        every = [e.name for part in (DECISIONS, RUNS, TIERS) for e in ledger.of_part(part)]
        anew, wanted = self.margin and not ledger.margin, self.plan.names
        drop_files(storage_at(table), ledger, [n for n in every if anew or n in wanted])

    def run(self, report: SolvedTiers) -> full.TierRun:
        return _Run(self, report)


class _Run(full.TierRun):
    """One run; what is kept has the index of its shard, not of its tier.

    To touch fresh memory takes three times as long as to solve what stands in it (measured: 34 ns a
    state of 45), so where tiers go one by one, those that at most one other reads take turns in two
    buffers of the largest size.
    """

    plan: DecisionPlan

    def __init__(self, work: _Decisions, report: SolvedTiers) -> None:
        super().__init__(work, report)
        self.decisions, self.tiers = work.decisions, work.decisions.tiers()
        self.threads, self.exact = max(1, work.threads // self.options.slots), False
        self.kind = self.layout.plane_type
        self.turns: dict[Any, int] = {}
        self.rooms = [0, 0]  # numbers of the two buffers
        read = Counter(map(self.decisions.below, self.tiers))  # whole; few spins often, and kept
        for tier in self.tiers if self.options.slots == 1 else ():
            if read[tier] < 2:
                turn = self.turns[tier] = 1 - self.turns.get(self.decisions.below(tier), 1)
                self.rooms[turn] = max(self.rooms[turn], math.prod(self.layout.shape(tier)))

    def solve(self, own: int = 0) -> SolvedTiers:
        return super().solve(own + np.dtype(self.kind).itemsize * max(self.rooms))

    def _follow(self, steps: list[Instruction], receipt: Any = None) -> None:
        if self.turns:  # the buffer is free before the next tier takes it
            done = [step.shard for step in steps if isinstance(step, Commit) and not step.keep]
            self.drop([i for i in done if self._room(i)])
            self.drop([step.shard for step in steps if isinstance(step, Drop)])
            steps = [step for step in steps if not isinstance(step, Drop)]
        super()._follow(steps, receipt)

    def drop(self, shards: list[int]) -> None:
        for shard in shards:
            self.workers.drop(shard)

    def task(self, step: Solve) -> Task:
        shard = self.plan.shards[step.shard]
        tier = self.tiers[self.plan.tier_of[step.shard]]
        names, face = self.plan.files[step.shard], not self.plan.files[step.shard]
        there = self.ledger.files
        job = SolveDecisions(
            board=self.game.board, location=self.location, shard=step.shard,
            tier=self.plan.tier_of[step.shard], face=face, keep=step.keep,
            names=tuple(n for n in names if n not in there) if step.commit else (),
            margin=self.ledger.margin, threads=self.threads,
        )  # fmt: skip
        shape = (self.decisions.face_size(tier),) if face else self.layout.shape(tier)
        room = self._room(step.shard)
        keep = PayoffPlace(step.shard, shape, (0, shape[0]), room=room)
        kept = keep if step.keep or room else None
        return Task(step.shard, job, shard.memory, shard.children, kept)

    def _room(self, shard: int) -> int:
        """Numbers of the buffer that a shard has its turn in; 0 where it has none."""
        tier = self.tiers[self.plan.tier_of[shard]]
        whole = self.plan.files[shard] and tier in self.turns
        return self.rooms[self.turns[tier]] if whole else 0

    def commit(self, receipt: Receipt) -> None:
        tier = self.tiers[self.plan.tier_of[receipt.shard]]
        number, rows = self.layout.tier_number(tier), self.layout.rows(tier)
        keys = {file.name: file.keys(number) for file in tier_files(self.layout, tier)}
        for name, file in receipt.files.items():
            part = name.partition("/")[0]
            every = (0, 0) if part == RUNS else key_range(number, rows)
            seconds = receipt.solve_seconds if part == DECISIONS else 0.0
            of_file = keys.get(name, every)
            self.commits.add(file_entry(name, part, number, of_file, file, seconds))


@dataclass(frozen=True)
class SolveDecisions:
    """One shard of a table of decisions, as a job: a tier, or the face of one."""

    board: Board
    location: TableLocation
    shard: int
    tier: int
    """Its index in the order of the decisions."""
    face: bool
    keep: bool
    """Whether its payoffs are kept."""
    names: tuple[str, ...]
    """Its files that are wanted."""
    margin: bool
    threads: int

    @cached_property
    def layout(self) -> DecisionLayout[Any]:
        """The game's decisions."""
        return load_game(self.board).need(DecisionLayout)

    def compile(self) -> None:
        """Compile, or load, what it needs."""
        self.layout.layout.compile()

    def run(
        self, payoffs: Sequence[Floats], sent: Sent, out: Floats | None, stop: Stop
    ) -> Iterator[Any]:
        """Solve the shard; yields as `Job.run`. payoffs: of a face, of its tier; of a tier, of the
        one below, if there is one, and of the faces."""
        layout, started = self.layout, time.perf_counter()
        tier = layout.tiers()[self.tier]
        if self.face:
            assert out is not None
            layout.take_face(tier, payoffs[0], out)
            yield out
            yield Receipt(shard=self.shard, solve_seconds=time.perf_counter() - started), None
            return
        dense, below = layout.layout, layout.below(tier)
        dense.threads = self.threads
        read = [*map(writable, payoffs)]
        under = None if below is None else read.pop(0)
        faces = dict(zip(layout.faces_read(tier), read, strict=True))
        own = full.buffer("payoffs", dense.shape(tier), dense.plane_type) if out is None else out
        best = full.buffer("best", (dense.rows(tier),), np.int8)
        margin = full.buffer("margin", best.shape) if self.margin and self.names else None
        if margin is not None:
            margin.fill(np.nan)
        decisions = Decisions(best, margin)
        error = layout.solve_tier(tier, own, under, faces, stop, decisions)
        seconds = time.perf_counter() - started
        yield own if self.keep else None
        files = self._write(tier, own, decisions, error, stop) if self.names else {}
        yield Receipt(shard=self.shard, solve_seconds=seconds, files=files), None

    def _write(
        self, tier: Any, payoffs: Floats, decisions: Decisions, error: float, stop: Stop
    ) -> dict[str, FileReceipt]:
        """Its files, in their places; written at the same time."""
        layout, dense = self.layout, self.layout.layout
        of_tier = {file.name: file for file in tier_files(dense, tier)}
        codes = codes_of(dense.game, decisions)
        with self.location.storage() as storage:

            def written(name: str) -> FileReceipt:
                if name in of_tier:
                    at = of_tier[name]
                    file = write_tier(storage, dense, tier, at, payoffs, decisions, error)
                elif name.startswith(f"{DECISIONS}/"):
                    file = write_blocks(storage, layout, tier, codes, stop)
                else:
                    file = write_runs(storage, layout, tier, codes, self.margin, stop)
                return put_file(storage, marked(name, self.location.mark), file)

            return dict(zip(self.names, in_threads(written, self.names, self.threads), strict=True))
