"""A table of decisions: what its solve will take, and its solve.

A shard is a *chain*: tiers, one after the other in the order of the game's `DecisionLayout`, each
of which reads the one before it whole. Whoever solves one has two of its tiers in memory at a time,
and leaves what other chains read: faces, or all of a small tier. Nothing else travels, and the
whole chain is solved again where its worker dies. Where several chains at once have no room in
memory they go one by one, each on all cores.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from luckbase.cluster.run import tiers as full
from luckbase.cluster.run.driver import memory_budget, solve_table
from luckbase.cluster.run.options import Options, SolveOptions
from luckbase.cluster.run.progress import SolvedTiers
from luckbase.cluster.run.schedule import Shard, Solve
from luckbase.cluster.run.worker import (
    Out,
    PayoffPlace,
    Receipt,
    Sent,
    Steps,
    Stop,
    Task,
    writable,
)
from luckbase.cluster.table.columns import parse_where
from luckbase.cluster.table.decisions import file_name, write_decisions
from luckbase.cluster.table.format import (
    Written,
    tier_files,
    write_tier,
)
from luckbase.cluster.table.manifest import DECISIONS, TIERS, Goal, Manifest
from luckbase.cluster.table.storage import Storage, in_threads
from luckbase.solver.board.model import Board
from luckbase.solver.dense import check_tiers
from luckbase.solver.errors import OptionError
from luckbase.solver.game.arrays import Decisions, Floats
from luckbase.solver.game.capabilities import NOBODY, DecisionLayout
from luckbase.solver.game.game import Game, load_game
from luckbase.solver.sentences import many, option

BYTES_A_STATE = 0.035
"""On disk; small tables take more, many spins less."""
WRITE_NS = 5.0
"""Nanoseconds a state to encode, compress and flush, one core."""
WRITE_BYTES = 16 << 20
"""While a file is written."""
PAYOFF_BYTES = 1 << 30
"""By default payoffs are stored of levels smaller than this."""


@dataclass(frozen=True)
class DecisionPlan(full.Plan):
    """What a solve will do; chains are shards."""

    chains: tuple[range, ...] = ()
    """The tiers of each, by index in the order."""
    gives: tuple[tuple[int, ...], ...] = ()
    """What each leaves for others: ~index for the face of a tier, its index for all of it."""
    of_tier: tuple[tuple[str, ...], ...] = ()
    """The names of the files of each tier."""
    memory_of: tuple[int, ...] = ()
    """Bytes when each tier is solved, with those of its chain before it."""


def make_plan(layout: DecisionLayout[Any], payoffs_of: str | None = None) -> DecisionPlan:
    """The plan of the decisions of a game's full table. Raises OptionError, and GameError as
    `check_tiers`."""
    dense, order = layout.layout, layout.tiers()
    check_tiers(dense)
    if not 0 < len(dense.best_names) <= NOBODY:
        raise OptionError(
            f"board {dense.game.board.name}: one who decides alone has "
            f"{many(len(dense.best_names), 'action')}; decisions alone are kept of 1 to {NOBODY}"
        )
    paid = _paid_tiers(layout, payoffs_of)
    index = {tier: i for i, tier in enumerate(order)}
    reads = [[~index[child] for child in layout.faces_read(tier)] for tier in order]
    starts = []
    for i, below in enumerate(map(layout.below, order)):
        if i == 0 or below is None or index[below] != i - 1:
            starts.append(i)
            reads[i] += [] if below is None else [index[below]]
    pieces = {piece for of in reads for piece in of}
    chains = [range(*ends) for ends in pairwise([*starts, len(order)])]
    chain_of = [number for number, chain in enumerate(chains) for _ in chain]
    gives = [tuple(p for i in chain for p in (~i, i) if p in pieces) for chain in chains]
    kept = [np.dtype(layout.memory_type).itemsize * sum(piece_sizes(layout, of)) for of in gives]
    rows_of, memory_of, shards = list(map(dense.rows, order)), list[int](), list[Shard]()
    bytes_a_row = full.BYTES_A_ROW[np.dtype(dense.payoff_type)]
    for chain, faces in zip(chains, kept, strict=True):
        number, rooms = len(shards), [0, 0]
        for i in chain:
            turn = (chain[-1] - i) % 2
            rooms[turn] = max(rooms[turn], full.payoff_bytes(dense, order[i], layout.memory_type))
            coded = rows_of[i] + min(WRITE_BYTES, 8 * rows_of[i])
            memory_of.append(sum(rooms) + coded + faces)
        children = {chain_of[max(piece, ~piece)] for i in chain for piece in reads[i]} - {number}
        name = " to ".join(dense.tier_name(order[i]) for i in dict.fromkeys((chain[0], chain[-1])))
        rows = sum(rows_of[i] for i in chain)
        threads = max(dense.most_threads(order[i]) for i in chain)
        memory = max(memory_of[chain[0] :])
        shards.append(Shard(number, name, tuple(sorted(children)), rows, memory, threads))
    of_tier = [
        (file_name(layout, tier), *(f.name for f in tier_files(dense, tier) if tier in paid))
        for tier in order
    ]
    rows, paid_rows = sum(rows_of), sum(map(dense.rows, paid))
    seconds = sum(map(dense.tier_seconds, order)) + rows * WRITE_NS * 1e-9
    seconds += full.WRITE_NS * 1e-9 * paid_rows
    return DecisionPlan(
        tuple(shards), tuple(tuple(n for i in chain for n in of_tier[i]) for chain in chains),
        tuple((shard.index, 0) for shard in shards), rows,
        round(BYTES_A_STATE * rows + bytes_a_row * paid_rows), full.peak_kept(shards, kept, 1),
        max(shard.memory for shard in shards), seconds + full.SHARD_SECONDS * len(order),
        tuple(chains), tuple(gives), tuple(of_tier), tuple(memory_of),
    )  # fmt: skip


def piece_sizes(layout: DecisionLayout[Any], gives: Iterable[int]) -> list[int]:
    """How many numbers each piece that a chain gives has (`DecisionPlan.gives`)."""
    order = layout.tiers()
    return [
        math.prod(layout.layout.shape(order[i])) if i >= 0 else layout.face_size(order[~i])
        for i in gives
    ]


def _paid_tiers(layout: DecisionLayout[Any], payoffs_of: str | None) -> set[Any]:
    """The tiers that get payoffs too: those that are named; else the lowest and the highest level,
    each if it is small; none of a game of one tier. A level: tiers with the same first constant.
    Raises OptionError."""
    dense, order = layout.layout, layout.tiers()
    narrow = layout.memory_type is not np.float64
    if narrow and payoffs_of not in (None, "none"):
        raise OptionError(
            f"{option('payoffs_of')}: decisions of this board are solved in float32, so no payoffs "
            f"are stored with them; leave it out, or solve without {option('store')} for payoffs"
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
        named = {
            t for t, of in fields.items() if where.may_hold({k: (v, v) for k, v in of.items()})
        }
        if not named:
            raise OptionError(
                f"{option('payoffs_of')}: no tier of this table has {payoffs_of}; write none to "
                "store no payoffs"
            )
        return named
    level = {tier: next(iter(of.values()), 0) for tier, of in fields.items()}
    paid = set()
    for end in {min(level.values()), max(level.values())}:
        of = {tier for tier in order if level[tier] == end}
        bytes_a_row = full.BYTES_A_ROW[np.dtype(dense.payoff_type)]
        if bytes_a_row * sum(map(dense.rows, of)) < PAYOFF_BYTES:
            paid |= of
    return paid


def plan_table(game: Game, options: Options) -> full.Planned:
    """Return the plan of a board's table of decisions. Raises OptionError if it can have none."""
    layout = game.need(DecisionLayout)
    plan = make_plan(layout, options.payoffs_of)
    dense, order = layout.layout, layout.tiers()
    side = slots_for(plan, memory_budget(options), options.slots)
    peak = plan.peak_memory(side) + (side - 1) * plan.kept_bytes
    pieces = zip(order, map(dense.rows, order), plan.memory_of, strict=True)
    return full.planned_of(dense, plan, pieces, peak, options)


def slots_for(plan: full.Plan, memory: int, count: int) -> int:
    """How many chains are solved at once: as many as have room with all that is kept, else one on
    all cores."""
    return count if count * (plan.shard_memory + plan.kept_bytes) <= memory // 2 else 1


def solve(board: Board, **options: Unpack[SolveOptions]) -> SolvedTiers:
    """Solve what is missing of the board's decisions. Raises as `driver.solve_table`."""
    return solve_table(_Decisions(load_game(board).need(DecisionLayout), Options(**options)))


class _Decisions(full.FullTable):
    plan: DecisionPlan
    part = DECISIONS
    others = (TIERS,)

    def __init__(self, layout: DecisionLayout[Any], options: Options) -> None:
        plan, budget = make_plan(layout, options.payoffs_of), memory_budget(options)
        self.threads = options.slots
        if not options.joins:
            options = replace(options, workers=slots_for(plan, budget, options.slots))
        super().__init__(layout.layout, options, plan)
        self.decisions, self.files = layout, len(plan.of_tier)

    def committed_shards(self, manifest: Manifest) -> set[int]:
        return {i for i, names in enumerate(self.plan.files) if manifest.files.keys() >= {*names}}

    def report(self, table: Path, manifest: Manifest, goal: Goal) -> SolvedTiers:
        files, tiers = manifest.files.keys(), self.decisions.tiers()
        of_tier = zip(tiers, self.plan.of_tier, strict=True)
        kept = sum(self.layout.rows(tier) for tier, names in of_tier if files >= {*names})
        return replace(super().report(table, manifest, goal), kept=kept)

    def compile_kernels(self) -> None:
        self.decisions.compile()

    def run(self, report: SolvedTiers) -> full.TierRun:
        return _Run(self, report)


class _Run(full.TierRun):
    plan: DecisionPlan

    def __init__(self, work: _Decisions, report: SolvedTiers) -> None:
        super().__init__(work, report)
        self.decisions, self.tiers = work.decisions, work.decisions.tiers()
        self.threads, self.exact = max(1, work.threads // self.options.slots), False
        self.kind = self.decisions.memory_type
        sizes = (sum(piece_sizes(self.decisions, of)) for of in self.plan.gives)
        self.largest = np.dtype(self.kind).itemsize * max(sizes)
        self.solved: dict[int, range] = {}
        """The tiers of a chain that are solved: up to the last one that is needed."""

    def task(self, step: Solve) -> Task:
        plan, shard, chain = self.plan, self.plan.shards[step.shard], self.plan.chains[step.shard]
        cores, committed = min(step.cores, self.workers.widest), self.manifest.files
        names = [
            tuple(n for n in plan.of_tier[i] if n not in committed) if step.commit else ()
            for i in chain
        ]
        gives = plan.gives[step.shard]
        last = max(i for i in chain if names[i - chain[0]] or (step.keep and {i, ~i} & {*gives}))
        self.solved[step.shard] = tiers = range(chain[0], last + 1)
        job = SolveChain(
            board=self.game.board, location=self.location, shard=step.shard, tiers=tiers,
            keep=step.keep, gives=gives, reads=tuple(plan.gives[i] for i in shard.children),
            names=tuple(names[: len(tiers)]),
            threads=max(self.threads, cores), reuse=self.options.address is None,
        )  # fmt: skip
        size = sum(piece_sizes(self.decisions, gives))
        keep = PayoffPlace(step.shard, (size,), (0, size)) if step.keep else None
        return Task(step.shard, job, shard.memory, shard.children, keep, cores=cores)

    def commit(self, receipt: Receipt) -> None:
        tiers = self.solved[receipt.shard]
        total = sum(self.layout.rows(self.tiers[i]) for i in tiers)
        for entry in receipt.files.values():
            rows = entry.rows if entry.part == DECISIONS else 0  # which alone have all of a tier
            self.writer.add(entry.solved_in(receipt.solve_seconds * rows / max(1, total)))

    def count(self, receipt: Receipt) -> None:
        chain, solved = self.plan.chains[receipt.shard], self.solved[receipt.shard]
        rows = [self.layout.rows(self.tiers[i]) for i in chain]
        new = sum(
            rows[i - chain[0]] for i in solved if receipt.files.keys() & {*self.plan.of_tier[i]}
        )
        again = sum(rows[: len(solved)]) - new
        self.shards += 1
        self.rows, self.again = self.rows + new, self.again + again
        self.rows_total -= sum(rows[len(solved) :])
        seconds = receipt.solve_seconds / max(1, new + again)
        self.solve_seconds += seconds * new
        self.again_seconds += seconds * again


@dataclass(frozen=True, kw_only=True)
class SolveChain(full.TierJob):
    """One shard of a table of decisions, as a job: tiers one after the other."""

    tiers: range
    """In the order of the decisions."""
    gives: tuple[int, ...]
    """As `DecisionPlan.gives`."""
    reads: tuple[tuple[int, ...], ...]
    """What the chains gave that it reads."""
    names: tuple[tuple[str, ...], ...]
    """The files of each tier to write."""
    reuse: bool
    """Whether its worker keeps the memory for the next one: to touch fresh memory takes three times
    as long as to solve what stands in it (measured: 34 ns a state of 45). Ray's may be many, one
    after the other, on one machine."""

    def compile(self) -> None:
        self.layout.compile()

    def run(self, payoffs: Sequence[Floats], sent: Sent, out: Out, stop: Stop) -> Steps:
        """Solve the tiers and write their files. payoffs: of each chain that
        is read, the pieces that it gives, one after the other."""
        layout, dense, order = self.layout, self.layout.layout, self.layout.tiers()
        dense.threads, kind = self.threads, layout.memory_type
        buffer = full.buffer if self.reuse else _fresh
        outputs = np.empty(sum(piece_sizes(layout, self.gives)), kind) if out is None else out
        pieces_by_index = self._pieces(self.gives, outputs)
        for gives, pieces in zip(self.reads, map(writable, payoffs), strict=True):
            pieces_by_index |= self._pieces(gives, pieces)
        index = {tier: i for i, tier in enumerate(order)}
        sizes = {i: math.prod(dense.shape(order[i])) for i in self.tiers}
        last = self.tiers[-1]  # its turn, the largest mostly, is the first one's in every chain
        most = [max((sizes[i] for i in self.tiers if (last - i) % 2 == turn), default=0)
                for turn in (0, 1)]  # fmt: skip
        rooms = [buffer(f"payoffs {turn}", (most[turn],), kind) for turn in (0, 1)]
        current: Floats | None = None
        seconds, files = 0.0, list[Written]()
        with self.location.storage() as storage:
            for i, names in zip(self.tiers, self.names, strict=True):
                started, tier = time.perf_counter(), order[i]
                below = layout.below(tier)
                if i == self.tiers[0] and below is not None:
                    current = pieces_by_index[index[below]].reshape(dense.shape(below))
                child_payoffs = None if below is None else current
                current = rooms[(last - i) % 2][: sizes[i]].reshape(dense.shape(tier))
                best = buffer("best", (dense.rows(tier),), np.int8)
                decisions = Decisions(best)
                faces = {child: pieces_by_index[~index[child]] for child in layout.faces_read(tier)}
                error = layout.solve_tier(tier, current, child_payoffs, faces, stop, decisions)
                if ~i in self.gives:
                    layout.take_face(tier, current, pieces_by_index[~i])
                if i in self.gives:
                    pieces_by_index[i][:] = current.reshape(-1)
                seconds += time.perf_counter() - started
                if names:
                    files += self._write(storage, tier, names, current, decisions, error, stop)
            receipt = Receipt(shard=self.shard, solve_seconds=seconds)
            done = receipt.with_files(storage, self.location.writer, files)
        yield outputs if self.keep else None
        yield done

    def _pieces(self, gives: tuple[int, ...], together: Floats) -> dict[int, Floats]:
        """The pieces that stand together, views of it."""
        ends = np.cumsum(piece_sizes(self.layout, gives))
        return dict(zip(gives, np.split(together, ends[:-1]), strict=False))

    def _write(
        self, storage: Storage, tier: Any, names: tuple[str, ...], payoffs: Floats,
        decisions: Decisions, error: float, stop: Stop,
    ) -> Iterator[Written]:  # fmt: skip
        """Files of a tier, in temporary places; written at the same time."""
        layout, dense = self.layout, self.layout.layout
        of_tier = {file.name: file for file in tier_files(dense, tier)}
        codes = decisions.best.view(np.uint8)

        def written(name: str) -> Written:
            if name in of_tier:
                return write_tier(storage, dense, tier, of_tier[name], payoffs, decisions, error)
            return write_decisions(storage, layout, tier, codes, stop)

        return in_threads(written, names, self.threads)


def _fresh(name: str, shape: tuple[int, ...], kind: Any = np.float64) -> NDArray[Any]:
    """As `tiers.buffer`, gone with its last reader."""
    return np.empty(shape, kind)
