"""The bench suite ``replay``: a full table's schedule, played with a simulated clock on many cores.

Each shard takes its seconds to solve, after which other shards can read its payoffs, and then its
seconds to write. The driver does one thing at a time: it hands out a task, or takes in a receipt.
Transfers of payoffs between machines are not simulated. Neither Ray nor the disk is used.
"""

import heapq
import sys
from collections import deque
from dataclasses import dataclass

from luckbase.cluster.solve.full_table import AHEAD
from luckbase.cluster.solve.plan import BOUNDARY, SHARD_SECONDS, WRITE_NS, make_plan
from luckbase.cluster.solve.schedule import Schedule, Solve
from luckbase.jobs import terminal
from luckbase.solver import sentences
from luckbase.solver.games.press_your_luck.full_table import Planes, diagonals
from tests import solving

CORES = (16, 128, 1024)
CASES = (
    {"score_unit": 500, "frontier": 5},
    {"score_unit": 250, "frontier": 8},
    {"cards": 13},
    {"cards": 15},
)
"""Settings to try; a board uses those that it has."""


@dataclass(frozen=True)
class Costs:
    """Seconds of the driver, measured on two cores of an EPYC with Ray 2.60.

    task: to hand out a task. reference: for each payoff table that the task reads.
    receipt: to take in a receipt. cores: of a machine, the most that can solve one shard.
    """

    task: float = 1.5e-3
    reference: float = 1e-4
    receipt: float = 1e-3
    cores: int = 16


@dataclass(frozen=True)
class Replayed:
    """seconds: wall time. work: core seconds of all shards. path: seconds of the longest chain of
    shards that read each other. driver: seconds in which the driver was busy."""

    workers: int
    seconds: float
    work: float
    path: float
    driver: float

    @property
    def limit(self):
        """Return the part that cannot be shared out further and takes the longest."""
        parts = {
            "the longest chain of shards": self.path, "the driver": self.driver,
            "the work itself": self.work / self.workers,
        }  # fmt: skip
        return max(parts, key=parts.get)


def planned_seconds(layout, plan):
    """Return the core seconds of each shard, to solve and to write, as the plan estimates them."""
    tiers, seconds = layout.tiers(), []
    for shard in plan.shards:
        tier, part = shard.work
        share = shard.rows / max(1, layout.rows(tiers[tier]))
        write = 0.0 if part == BOUNDARY else shard.rows * WRITE_NS * 1e-9 + SHARD_SECONDS
        seconds.append((layout.tier_seconds(tiers[tier]) * share, write))
    return seconds


def replay(layout, plan, seconds, workers, costs=Costs()):
    """Run the schedule on `workers` cores. seconds: of each shard, to solve and to write."""
    schedule = Schedule(plan.shards, workers=workers, memory=1 << 62, ahead=AHEAD)
    free, now, busy, waiting, events = workers, 0.0, 0.0, deque(), []

    def follow(steps, took=0.0):
        nonlocal now, busy
        for step in steps:
            if isinstance(step, Solve):
                took += costs.task + costs.reference * len(plan.shards[step.shard].children)
                waiting.append((step.shard, max(1, min(step.cores, costs.cores, workers))))
        now, busy = now + took, busy + took

    def begin():
        nonlocal free
        while waiting and waiting[0][1] <= free:
            shard, cores = waiting.popleft()
            free -= cores
            solve, write = seconds[shard]
            ready = now + solve / speed_up(layout, plan, shard, cores)
            heapq.heappush(events, (ready, shard, 0))
            heapq.heappush(events, (ready + write / cores, shard, cores))

    follow(schedule.start())
    begin()
    while events:
        at, shard, cores = heapq.heappop(events)
        now = max(now, at)
        free += cores
        if cores:
            follow(schedule.solved(shard), costs.receipt)
        else:
            follow(schedule.payoffs_ready(shard))
        begin()
    gains = [speed_up(layout, plan, i, min(costs.cores, workers)) for i in range(len(seconds))]
    path = longest_chain(
        plan.shards, [s / gain for (s, _), gain in zip(seconds, gains, strict=True)]
    )
    return Replayed(workers, now, sum(map(sum, seconds)), path, busy)


def speed_up(layout, plan, shard, cores):
    """Return how many times faster `solve_tier` is on so many cores, by its number of steps."""
    tier = layout.tiers()[plan.shards[shard].work[0]]
    most = min(cores, layout.most_threads(tier))
    if most <= 1 or not isinstance(layout, Planes):
        return 1.0
    edge = layout.edge(tier)
    lines = [len(line) for line in diagonals(*(-(-n // edge) for n in layout.shape(tier)[1:3]))]
    return sum(lines) / sum(-(-line // most) for line in lines)


def longest_chain(shards, weights):
    """Return the greatest sum of the weights of shards each of which reads the one before."""
    far = [0.0] * len(shards)
    for shard in shards:
        below = max((far[child] for child in shard.children), default=0.0)
        far[shard.index] = weights[shard.index] + below
    return max(far)


def replay_suite(board, results):
    """Print the times of the board's tables on clusters of several sizes."""
    known = solving.load_board(board).options()
    rows = []
    for settings in [case for case in CASES if case.keys() <= known.keys()] or [{}]:
        layout = solving.load_layout(solving.load_board(board, **settings))
        plan = make_plan(layout, boundaries=True)
        title = " ".join(f"{name}={value}" for name, value in settings.items())
        for cores in CORES:
            run = replay(layout, plan, planned_seconds(layout, plan), cores)
            rows.append((f"{board.stem} {title}", str(cores), sentences.duration(run.seconds),
                         f"{run.work / run.seconds:.1f}", run.limit))  # fmt: skip
    heads = ("table", "cores", "time", "times one core", "limit")
    terminal.print_table("Replayed: machines of 16 cores", heads, rows, sys.stdout)
