"""What a solve would take on so many cores: the real schedule, with a clock of its own.

Each shard takes its seconds: to solve, after which others may read its payoffs, and to write. Cores
that are idle when a large tier begins help to solve it. The first task of a node that reads a tier
waits until its payoffs have come over the network, the others of that node find them there; a tier
in parts is put together first. The driver does one thing at a time: hand out a task, take in what
comes back, and when nothing else is to do commit all that it has taken in. No Ray, no disk.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from luckbase.cluster.run.schedule import Commit, Instruction, Schedule, Shard, Solve
from luckbase.cluster.run.tiers import SHARD_SECONDS, WRITE_NS, Plan, payoff_bytes
from luckbase.cluster.table.folder import MAX_WAITING
from luckbase.solver.game.capabilities import Layout
from luckbase.solver.games.press_your_luck.layout import Planes, diagonals

FILE_BYTES = 4.8
"""A state, of a table's files."""


@dataclass(frozen=True)
class Costs:
    """What it costs beside the shards, measured on two cores of an EPYC with Ray 2.60: seconds of
    the driver to hand out a task, for each reference in it, to flush a commit, and for each file in
    it. bytes_a_second: that a node takes in from the network (10 Gbit/s). cores: of a node.
    file_rate: bytes a second of files that come to the driver, by its link or its disk, whichever
    is slower; no limit where workers put them into a store or a shared folder themselves."""

    task: float = 1.5e-3
    reference: float = 1e-4
    flush: float = 5e-3
    commit: float = 1e-3
    bytes_a_second: float = 1.25e9
    cores: int = 16
    file_rate: float = float("inf")


class Driver:
    """The one who hands out and commits, with a clock. now: until when it is busy; busy: for how
    long it was; link: until when files come to it."""

    def __init__(self, costs: Costs) -> None:
        self.costs, self.now, self.busy, self.waiting = costs, 0.0, 0.0, 0
        self.link = 0.0

    def takes(self, seconds: float) -> None:
        """It does something."""
        self.now, self.busy = self.now + seconds, self.busy + seconds

    def commits(self, size: float = 0.0) -> None:
        """It takes in a receipt, whose file, of so many bytes, it commits later."""
        self.link = max(self.link, self.now) + size / self.costs.file_rate
        self.takes(self.costs.commit)
        self.waiting += 1

    def until(self, event: float) -> None:
        """The next event comes: what waits is committed before, if there is a moment."""
        if event > self.now or self.waiting >= MAX_WAITING:
            self.flush()
        self.now = max(self.now, event)

    def flush(self) -> None:
        """It commits what waits."""
        if self.waiting:
            self.takes(self.costs.flush)
            self.waiting = 0


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
    index = {tier: i for i, tier in enumerate(tiers)}
    reads = [sorted(index[child] for child in layout.children(tier)) for tier in tiers]

    def coming(tier: int) -> float:
        times = 2 if len(layout.parts(tiers[tier])) > 1 else 1  # parts are put together first
        return times * payoff_bytes(layout, tiers[tier]) / costs.bytes_a_second

    def team(shard: int, free: int) -> tuple[int, float]:
        tier = tiers[plan.parts[shard][0]]
        most = min(_most_threads(layout, tier), costs.cores, 1 + free)
        return most, speed_up(layout, tier, most)

    tasks = Tasks(
        list(seconds), [reads[tier] for tier, _ in plan.parts],
        [coming(tier) for tier in range(len(tiers))], team,
    )  # fmt: skip
    ended, busy, waited = play_out(plan.shards, tasks, workers, costs)
    times = speed_ups(layout, plan, costs.cores)
    solves = [solve / n for (solve, _), n in zip(seconds, times, strict=True)]
    chain = longest_chain(plan.shards, solves, [write for _, write in seconds])
    return Replayed(workers, ended, sum(map(sum, seconds)), chain, busy, waited)


def _most_threads(layout: Layout[Any], tier: Any) -> int:
    return layout.most_threads(tier) if isinstance(layout, Planes) else 1


def speed_up(layout: Layout[Any], tier: Any, threads: int) -> float:
    """How many times as fast `solve_tier` is with so many threads, by its steps alone."""
    most = min(threads, _most_threads(layout, tier))
    if most == 1 or not isinstance(layout, Planes):
        return 1.0
    edge = layout.edge(tier)
    lines = [len(line) for line in diagonals(*(-(-n // edge) for n in layout.shape(tier)[1:3]))]
    return sum(lines) / sum(-(-line // most) for line in lines)


def alone(shard: int, free: int) -> tuple[int, float]:
    """No other core helps to solve a shard."""
    return 1, 1.0


@dataclass(frozen=True)
class Tasks:
    """Shards as they are played out. seconds: of each, to solve and to write. reads: what each
    reads, as numbers of payoff tables. coming: seconds that each of those takes to a node. team:
    (shard, cores that are free) -> how many solve it, and how many times as fast that is."""

    seconds: list[tuple[float, float]]
    reads: list[list[int]]
    coming: list[float]
    team: Callable[[int, int], tuple[int, float]] = alone


def play_out(
    shards: Sequence[Shard], tasks: Tasks, workers: int, costs: Costs
) -> tuple[float, float, float]:
    """The schedule with a clock: seconds until the end, that the driver was busy, and that cores
    waited for payoffs."""
    schedule = Schedule(shards, workers=workers, memory=1 << 62)
    free = list(range(workers))  # the lowest first, so that nodes fill up
    there: dict[tuple[int, int], float] = {}  # when payoffs are on a node
    # when; shard; its workers, the first of which writes; whether it is over
    events: list[tuple[float, int, list[int], bool]] = []
    driver, waited = Driver(costs), 0.0

    def follow(steps: list[Instruction]) -> None:
        nonlocal waited
        begin = sum(isinstance(step, Solve) for step in steps)
        for step in steps:
            if isinstance(step, Solve):
                begin -= 1
                driver.takes(costs.task + costs.reference * len(tasks.reads[step.shard]))
                worker = heapq.heappop(free)
                start = driver.now
                for child in tasks.reads[step.shard]:
                    at = (worker // costs.cores, child)
                    there.setdefault(at, driver.now + tasks.coming[child])
                    start = max(start, there[at])
                waited += start - driver.now
                solve, write = tasks.seconds[step.shard]
                most, faster = tasks.team(step.shard, len(free) - begin)
                team = [worker, *(heapq.heappop(free) for _ in range(most - 1))]
                schedule.workers -= most - 1
                solve /= faster
                heapq.heappush(events, (start + solve, step.shard, team, False))
                heapq.heappush(events, (start + solve + write, step.shard, team[:1], True))
            elif isinstance(step, Commit) and step.commit:
                driver.commits(FILE_BYTES * shards[step.shard].rows)

    follow(schedule.start())
    while events:
        now, shard, team, over = heapq.heappop(events)
        driver.until(now)
        for worker in team if over else team[1:]:
            heapq.heappush(free, worker)
        if over:
            follow(schedule.solved(shard))
        else:
            follow(schedule.payoffs_ready(shard))
            follow(schedule.resize(schedule.workers + len(team) - 1))
    driver.flush()
    return max(driver.now, driver.link), driver.busy, waited


def speed_ups(layout: Layout[Any], plan: Plan, cores: int) -> list[float]:
    """How many times faster than one a node of so many cores solves each shard."""
    tiers = layout.tiers()
    return [speed_up(layout, tiers[tier], cores) for tier, _ in plan.parts]


def bound_by_rows(layout: Layout[Any], plan: Plan, cores: int = Costs.cores) -> float:
    """How many times faster than one core any number of nodes can be, if only rows took time: all
    rows over those of the longest chain of shards, each as fast as a node of so many cores is."""
    times = speed_ups(layout, plan, cores)
    rows = [shard.rows / n for shard, n in zip(plan.shards, times, strict=True)]
    return plan.rows / longest_chain(plan.shards, rows)


def longest_chain(
    shards: Sequence[Shard], weights: Sequence[float], last: Sequence[float] = ()
) -> float:
    """The most that shards weigh together of which each reads the one before; last: what a shard
    weighs besides where the chain ends with it."""
    far, most = [0.0] * len(shards), 0.0
    for shard in shards:
        below = max((far[child] for child in shard.children), default=0.0)
        far[shard.index] = weights[shard.index] + below
        most = max(most, far[shard.index] + (last[shard.index] if last else 0.0))
    return most
