"""What a solve would take on so many cores: the real schedule, with a clock of its own.

Each shard takes its seconds: to solve, after which others may read its payoffs, and to write. The
first task of a node that reads a tier waits until its payoffs have come over the network, the
others of that node find them there; a tier in parts is put together first. The driver does one
thing at a time: hand out a task, commit a file. No Ray, no disk.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from luckbase.cluster.run.plan import SHARD_SECONDS, WRITE_NS, Plan, payoff_bytes
from luckbase.cluster.run.schedule import Commit, Instruction, Schedule, Solve
from luckbase.solver.game.capabilities import Layout


@dataclass(frozen=True)
class Costs:
    """What it costs beside the shards, measured on two cores of an EPYC with Ray 2.60: seconds of
    the driver to hand out a task, for each reference in it, to commit a file. bytes_a_second: that
    a node takes in from the network (10 Gbit/s). cores: of a node."""

    task: float = 1.5e-3
    reference: float = 1e-4
    commit: float = 6e-3
    bytes_a_second: float = 1.25e9
    cores: int = 16


@dataclass(frozen=True)
class Replayed:
    """seconds: of wall time. work: of all shards. path: of the longest chain of shards, each solved
    when the one before is, and the last one's file. driver: that the driver was busy. transfer:
    that cores waited for payoffs."""

    workers: int
    seconds: float
    work: float
    path: float
    driver: float
    transfer: float

    @property
    def efficiency(self) -> float:
        """Work over what the cores could have done meanwhile."""
        return self.work / (self.seconds * self.workers)

    @property
    def limit(self) -> str:
        """What takes longest of what can not be shared out."""
        parts = {
            "the longest chain of shards": self.path,
            "the driver": self.driver,
            "payoffs on the network": self.transfer / self.workers,
            "the work itself": self.work / self.workers,
        }
        return max(parts, key=lambda name: parts[name])


def planned_seconds(layout: Layout[Any], plan: Plan) -> list[tuple[float, float]]:
    """Seconds of each shard, one core: of the kernel, by the game, and of writing."""
    tiers, found = layout.tiers(), []
    for shard, (tier, _) in zip(plan.shards, plan.parts, strict=True):
        share = shard.rows / max(1, layout.rows(tiers[tier]))
        kernel = layout.tier_seconds(tiers[tier]) * share
        found.append((kernel, shard.rows * WRITE_NS * 1e-9 + SHARD_SECONDS))
    return found


def replay(
    layout: Layout[Any], plan: Plan, seconds: Sequence[tuple[float, float]], workers: int,
    costs: Costs = Costs(),
) -> Replayed:  # fmt: skip
    """Run the schedule with so many workers; seconds: of each shard, to solve and to write."""
    tiers = layout.tiers()
    size = [payoff_bytes(layout, tier) / costs.bytes_a_second for tier in tiers]
    parts = [len(layout.parts(tier)) for tier in tiers]
    index = {tier: i for i, tier in enumerate(tiers)}
    reads = [sorted(index[child] for child in layout.children(tier)) for tier in tiers]
    schedule = Schedule(plan.shards, workers=workers, memory=1 << 62)
    free = list(range(workers))  # the lowest first, so that nodes fill up
    there: dict[tuple[int, int], float] = {}  # when a tier's payoffs are on a node
    events: list[tuple[float, int, int, bool]] = []  # when, shard, worker, whether it is over
    driver = busy = waited = 0.0

    def follow(steps: list[Instruction], now: float) -> None:
        nonlocal driver, busy, waited
        driver = max(driver, now)
        for step in steps:
            if isinstance(step, Solve):
                tier = plan.parts[step.shard][0]
                cost = costs.task + costs.reference * len(reads[tier])
                driver, busy = driver + cost, busy + cost
                worker = heapq.heappop(free)
                start = driver
                for child in reads[tier]:
                    at = (worker // costs.cores, child)
                    gathered = size[child] if parts[child] > 1 else 0.0
                    there.setdefault(at, driver + size[child] + gathered)
                    start = max(start, there[at])
                waited += start - driver
                solve, write = seconds[step.shard]
                heapq.heappush(events, (start + solve, step.shard, worker, False))
                heapq.heappush(events, (start + solve + write, step.shard, worker, True))
            elif isinstance(step, Commit) and step.commit:
                driver, busy = driver + costs.commit, busy + costs.commit

    follow(schedule.start(), 0.0)
    now = 0.0
    while events:
        now, shard, worker, over = heapq.heappop(events)
        if over:
            heapq.heappush(free, worker)
        follow(schedule.solved(shard) if over else schedule.handed(shard), now)
    work = sum(map(sum, seconds))
    chain = longest_chain(plan, [solve for solve, _ in seconds], [write for _, write in seconds])
    return Replayed(workers, max(now, driver), work, chain, busy, waited)


def longest_chain(plan: Plan, weights: Sequence[float], last: Sequence[float] = ()) -> float:
    """The most that shards weigh together of which each reads the one before; last: what a shard
    weighs besides where the chain ends with it."""
    far, most = [0.0] * len(plan.shards), 0.0
    for shard in plan.shards:
        below = max((far[child] for child in shard.children), default=0.0)
        far[shard.index] = weights[shard.index] + below
        most = max(most, far[shard.index] + (last[shard.index] if last else 0.0))
    return most
