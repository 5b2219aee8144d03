"""Decisions beyond the frontier, for which a table stores only the best actions: the plan and the
run.

A shard is a *chain*: consecutive tiers in the order of the game's `DecisionLayout`, each of which
reads the whole tier before it. A chain begins with the tiers up to the frontier, which are solved
again. Its worker holds two tiers in memory at a time and keeps only what other chains read:
boundaries, or a whole small tier. If a worker dies, the whole chain is solved again. If several
chains at once do not fit in memory, they are solved one by one, each on all cores.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from luckbase.cluster.solve import tiers as full
from luckbase.cluster.solve.driver import Work
from luckbase.cluster.solve.progress import SolvedTiers
from luckbase.cluster.solve.schedule import Shard, Solve
from luckbase.cluster.solve.worker import (
    Out,
    PayoffPlace,
    Receipt,
    Sent,
    Steps,
    Stop,
    Task,
    writable,
)
from luckbase.cluster.store.decisions import file_name, write_decisions
from luckbase.cluster.store.format import Written
from luckbase.cluster.store.manifest import Manifest
from luckbase.solver.game.arrays import Decisions, Floats
from luckbase.solver.game.capabilities import DecisionLayout
from luckbase.solver.game.game import Game

BYTES_A_STATE = 0.035
"""On disk; more for small tables, less for many spins."""
WRITE_NS = 8.0
"""Core nanoseconds to encode, compress and flush a state."""
WRITE_BYTES = 16 << 20
"""Bytes needed while a file is written."""


def decided_layout(game: Game) -> DecisionLayout[Any] | None:
    """Return the order in which decisions beyond the frontier are solved; None if there are
    none."""
    layout = game.get(DecisionLayout)
    decided = layout is not None and any(map(layout.is_decided, layout.tiers()))
    return layout if decided else None


@dataclass(frozen=True)
class ChainPlan(full.TierPlan):
    """The plan of the decisions beyond the frontier. Its shards are chains."""

    chains: tuple[range, ...]
    """The tiers of each chain, by index in the order."""
    gives: tuple[tuple[int, ...], ...]
    """The payoffs that each chain keeps for others: index for a tier, ~index for its boundary."""
    of_tier: tuple[str, ...]
    """The file name of each tier; "" if there is none."""
    rows_of: tuple[int, ...]
    """The number of states in each file."""
    memory_of: tuple[int, ...]
    """Bytes needed when each tier is solved, including those of its chain before it."""


def make_chain_plan(layout: DecisionLayout[Any]) -> ChainPlan:
    """Return the plan of a board's decisions beyond the frontier."""
    dense, order = layout.layout, layout.tiers()
    index = {tier: i for i, tier in enumerate(order)}
    reads = [[~index[child] for child in layout.boundaries_read(tier)] for tier in order]
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
    all_rows, memory_of, shards = list(map(dense.rows, order)), list[int](), list[Shard]()
    decided = list(map(layout.is_decided, order))
    rows_of = [rows * is_decided for rows, is_decided in zip(all_rows, decided, strict=True)]
    for chain, boundaries in zip(chains, kept, strict=True):
        number, rooms = len(shards), [0, 0]
        for i in chain:
            turn = (chain[-1] - i) % 2
            rooms[turn] = max(rooms[turn], full.payoff_bytes(dense, order[i], layout.memory_type))
            coded = all_rows[i] + min(WRITE_BYTES, 8 * all_rows[i])
            memory_of.append(sum(rooms) + coded + boundaries)
        children = {chain_of[max(piece, ~piece)] for i in chain for piece in reads[i]} - {number}
        name = " to ".join(dense.tier_name(order[i]) for i in dict.fromkeys((chain[0], chain[-1])))
        rows = sum(rows_of[i] for i in chain)
        threads = max(dense.most_threads(order[i]) for i in chain)
        seconds = sum(dense.tier_seconds(order[i]) for i in chain) + rows * WRITE_NS * 1e-9
        seconds += full.SHARD_SECONDS * len(chain)
        memory, size = max(memory_of[chain[0] :]), round(BYTES_A_STATE * rows)
        shards.append(
            Shard(number, name, tuple(sorted(children)), rows, memory, threads, seconds, size)
        )
    of_tier = [
        file_name(dense, tier) if is_decided else ""
        for tier, is_decided in zip(order, decided, strict=True)
    ]
    return ChainPlan(
        tuple(shards), tuple(tuple(of_tier[i] for i in chain if of_tier[i]) for chain in chains),
        full.peak_kept(shards, kept, 1), tuple((shard.index, 0) for shard in shards),
        tuple(chains), tuple(gives), tuple(of_tier), tuple(rows_of), tuple(memory_of),
    )  # fmt: skip


def piece_sizes(layout: DecisionLayout[Any], gives: Iterable[int]) -> list[int]:
    """Return the number of payoffs in each piece that a chain gives (`ChainPlan.gives`)."""
    order = layout.tiers()
    return [
        math.prod(layout.layout.shape(order[i])) if i >= 0 else layout.boundary_size(order[~i])
        for i in gives
    ]


def chain_slots(plan: ChainPlan, memory: int, count: int) -> int:
    """Return how many chains are solved at once: `count` if they fit in memory with all kept
    payoffs, otherwise one, on all cores."""
    return count if count * (plan.shard_memory + plan.kept_bytes) <= memory // 2 else 1


def committed_chains(plan: ChainPlan, manifest: Manifest) -> set[int]:
    """Return the chains whose files are all in the manifest."""
    return {i for i, names in enumerate(plan.files) if manifest.files.keys() >= {*names}}


class ChainRun(full.TierRun):
    """Solves the decisions beyond the frontier. Counts include earlier runs of the same solve."""

    plan: ChainPlan

    def __init__(
        self, work: Work[SolvedTiers], report: SolvedTiers, game: Game, plan: ChainPlan,
        memory: int,
    ) -> None:  # fmt: skip
        self.decisions = game.need(DecisionLayout)
        super().__init__(work, report, self.decisions.layout, plan, memory)
        threads = self.options.slots
        if not self.options.joins:
            self.options = replace(self.options, workers=chain_slots(plan, memory, threads))
        self.tiers = self.decisions.tiers()
        self.threads, self.exact = max(1, threads // self.options.slots), False
        self.kind = self.decisions.memory_type
        sizes = (sum(piece_sizes(self.decisions, of)) for of in plan.gives)
        self.largest = np.dtype(self.kind).itemsize * max(sizes)
        self.solved: dict[int, range] = {}
        """The tiers of each chain that are solved: up to the last one needed."""

    def committed(self) -> set[int]:
        return committed_chains(self.plan, self.manifest)

    def task(self, step: Solve) -> Task:
        plan, shard, chain = self.plan, self.plan.shards[step.shard], self.plan.chains[step.shard]
        cores, files = min(step.cores, self.workers.widest), self.manifest.files
        names = ["" if plan.of_tier[i] in files or not step.commit else plan.of_tier[i]
                 for i in chain]  # fmt: skip
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
        total = max(1, sum(self.plan.rows_of[i] for i in self.solved[receipt.shard]))
        for entry in receipt.files.values():
            self.writer.add(entry.solved_in(receipt.solve_seconds * entry.rows / total))

    def count(self, receipt: Receipt) -> None:
        plan, chain = self.plan, self.plan.chains[receipt.shard]
        new = sum(entry.rows for entry in receipt.files.values())
        solved = sum(plan.rows_of[i] for i in self.solved[receipt.shard])
        self.shards += 1
        self.rows, self.again = self.rows + new, self.again + solved - new
        self.rows_total -= sum(plan.rows_of[i] for i in chain) - solved
        seconds = receipt.solve_seconds / max(1, solved)
        self.solve_seconds += seconds * new
        self.again_seconds += seconds * (solved - new)


@dataclass(frozen=True, kw_only=True)
class SolveChain(full.TierJob):
    """The job that solves the tiers of a chain one after another."""

    tiers: range
    """Indices in the order of the decisions."""
    gives: tuple[int, ...]
    """As in `ChainPlan.gives`."""
    reads: tuple[tuple[int, ...], ...]
    """The `gives` of each chain that it reads."""
    names: tuple[str, ...]
    """The file of each tier; "" if none is to be written."""
    reuse: bool
    """True to keep the worker's memory for the next job: touching fresh memory takes three times as
    long as solving the states in it (measured: 34 of 45 ns a state). Not for Ray, where many
    processes may follow one another on a machine."""

    def compile(self) -> None:
        self.layout.compile()

    def run(self, payoffs: Sequence[Floats], sent: Sent, out: Out, stop: Stop) -> Steps:
        """Solve the tiers and write their files.

        payoffs: for each chain that is read, the pieces that it gives, concatenated.
        """
        layout, dense, order = self.layout, self.layout.layout, self.layout.tiers()
        dense.threads, kind = self.threads, layout.memory_type
        buffer = full.buffer if self.reuse else _fresh
        outputs = np.empty(sum(piece_sizes(layout, self.gives)), kind) if out is None else out
        pieces_by_index = self._pieces(self.gives, outputs)
        for gives, pieces in zip(self.reads, map(writable, payoffs), strict=True):
            pieces_by_index |= self._pieces(gives, pieces)
        index = {tier: i for i, tier in enumerate(order)}
        sizes = {i: math.prod(dense.shape(order[i])) for i in self.tiers}
        last = self.tiers[-1]  # its buffer, usually the largest, is the first tier's in every chain
        most = [max((sizes[i] for i in self.tiers if (last - i) % 2 == turn), default=0)
                for turn in (0, 1)]  # fmt: skip
        rooms = [buffer(f"payoffs {turn}", (most[turn],), kind) for turn in (0, 1)]
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
                best = buffer("best", (dense.rows(tier),), np.int8)
                decisions = Decisions(best)
                boundaries = {
                    child: pieces_by_index[~index[child]] for child in layout.boundaries_read(tier)
                }
                layout.solve_tier(tier, current, child_payoffs, boundaries, stop, decisions)
                if ~i in self.gives:
                    layout.take_boundary(tier, current, pieces_by_index[~i])
                if i in self.gives:
                    pieces_by_index[i][:] = current.reshape(-1)
                seconds += time.perf_counter() - started
                if name:
                    files.append(write_decisions(storage, layout, tier, best, stop))
            receipt = Receipt(shard=self.shard, solve_seconds=seconds)
            done = receipt.with_files(storage, self.location.writer, files)
        yield outputs if self.keep else None
        yield done

    def _pieces(self, gives: tuple[int, ...], together: Floats) -> dict[int, Floats]:
        """Return views of concatenated pieces."""
        ends = np.cumsum(piece_sizes(self.layout, gives))
        return dict(zip(gives, np.split(together, ends[:-1]), strict=False))


def _fresh(name: str, shape: tuple[int, ...], kind: Any = np.float64) -> NDArray[Any]:
    """Like `tiers.buffer`, but not reused."""
    return np.empty(shape, kind)
