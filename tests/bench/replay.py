"""What a solve would take on so many cores: the real schedule, with a clock of its own.

Each shard takes its seconds: to solve, after which others may read its payoffs, and to write. A
task goes to the machine on which it begins soonest (Ray itself chooses the machine that has most of
what it reads), and has as many of its cores as the schedule says, which solve it and write its
files. Where a node does not have what is read it comes over the node's link, one thing after the
other, and is there for all its cores. The driver does one thing at a time: hand out a task, take in
what comes back, and when nothing else is to do commit all that it has taken in. Parts of a tier
come to all nodes while others are solved. No Ray, no disk.
"""

from __future__ import annotations

import heapq
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from luckbase.cluster.run.schedule import (
    Commit,
    Schedule,
    Solve,
)
from luckbase.cluster.run.tiers import (
    AHEAD,
    FACE,
    SHARD_SECONDS,
    WRITE_NS,
    make_plan,
    payoff_bytes,
)
from luckbase.cluster.table.format import tier_files
from luckbase.cluster.table.writer import COMMIT_SECONDS
from luckbase.jobs import terminal
from luckbase.solver import sentences
from luckbase.solver.games.press_your_luck.layout import Planes, diagonals

COPY = 1e9
"""Bytes a second that a task of Ray's takes out of others' payoffs and puts into its own."""
FILE_BYTES = 4.8
"""A state, of a table's files."""


@dataclass(frozen=True)
class Costs:
    """What it costs beside the shards, measured on two cores of an EPYC with Ray 2.60: seconds of
    the driver to hand out a task, for each reference in it, to flush a commit, to take in a
    receipt, and for each file in it. copy: bytes a second that a task puts together.
    bytes_a_second: that a node takes in from the network (10 Gbit/s). cores: of a node.
    file_rate: bytes a second of files
    that come to the driver, by its link or its disk, whichever is slower; no limit where workers
    put them into a store or a shared folder themselves. patience: seconds that what is done waits
    to be committed."""

    task: float = 1.5e-3
    reference: float = 1e-4
    flush: float = 5e-3
    receipt: float = 1e-3
    commit: float = 6e-5
    bytes_a_second: float = 1.25e9
    cores: int = 16
    file_rate: float = float("inf")
    patience: float = COMMIT_SECONDS
    copy: float = COPY


class Driver:
    """The one who hands out and commits, with a clock. now: until when it is busy; busy: for how
    long it was; link: until when files come to it."""

    def __init__(self, costs):
        self.costs, self.now, self.busy, self.waiting = costs, 0.0, 0.0, 0
        self.link = self.since = 0.0

    def takes(self, seconds):
        """It does something."""
        self.now, self.busy = self.now + seconds, self.busy + seconds

    def commits(self, size=0.0, files=1):
        """It takes in a receipt, whose files, of so many bytes together, it commits later."""
        self.link = max(self.link, self.now) + size / self.costs.file_rate
        self.takes(self.costs.receipt + self.costs.commit * files)
        if not self.waiting:
            self.since = self.now
        self.waiting += files

    def until(self, event):
        """The next event comes: what waits is committed before, if there is a moment."""
        due = max(self.now, self.since + self.costs.patience)
        if self.waiting and event > due:
            self.now = due
            self.flush()
        self.now = max(self.now, event)

    def flush(self):
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
    def efficiency(self):
        """Work over what the cores could have done meanwhile."""
        return self.work / (self.seconds * self.workers)

    @property
    def limit(self):
        """What takes longest of what can not be shared out."""
        parts = {
            "the longest chain of shards": self.path,
            "the driver": self.driver,
            "payoffs on the network": self.transfer / self.workers,
            "the work itself": self.work / self.workers,
        }
        return max(parts, key=lambda name: parts[name])


def planned_seconds(layout, plan):
    """Seconds of each shard, one core: of the kernel, by the game, and of writing."""
    tiers, found = layout.tiers(), []
    for shard, (tier, part) in zip(plan.shards, plan.parts, strict=True):
        share = shard.rows / max(1, layout.rows(tiers[tier]))
        kernel = layout.tier_seconds(tiers[tier]) * share
        found.append(
            (kernel, 0.0 if part == FACE else shard.rows * WRITE_NS * 1e-9 + SHARD_SECONDS)
        )
    return found


def replay(layout, plan, seconds, workers, costs=Costs()):
    """Run the schedule with so many workers; seconds: of each shard, to solve and to write."""
    tiers = layout.tiers()
    sizes = [
        shard.memory
        if part == FACE
        else payoff_bytes(layout, tiers[tier]) * shard.rows / max(1, layout.rows(tiers[tier]))
        for shard, (tier, part) in zip(plan.shards, plan.parts, strict=True)
    ]
    files = [len(tier_files(layout, tiers[tier])) for tier, _ in plan.parts]
    numbers = [~tier if part == FACE else tier for tier, part in plan.parts]
    one = [part == FACE or len(layout.parts(tiers[tier])) == 1 for tier, part in plan.parts]
    tasks = Tasks(
        list(seconds), [[numbers[child] for child in shard.children] for shard in plan.shards],
        list(zip(numbers, sizes, one, strict=True)),
        lambda shard, cores: speed_up(layout, tiers[plan.parts[shard][0]], cores),
        [max(1, len(names)) for names in plan.files],
    )  # fmt: skip
    ended, busy, waited = play_out(plan.shards, tasks, workers, costs)
    times = speed_ups(layout, plan, costs.cores)
    chain = longest_chain(
        plan.shards, [solve / n for (solve, _), n in zip(seconds, times, strict=True)],
        [write / min(n, costs.cores) for (_, write), n in zip(seconds, files, strict=True)],
    )  # fmt: skip
    return Replayed(workers, ended, sum(map(sum, seconds)), chain, busy, waited)


def speed_up(layout, tier, threads):
    """How many times as fast `solve_tier` is with so many threads, by its steps alone."""
    most = min(threads, layout.most_threads(tier))
    if most <= 1 or not isinstance(layout, Planes):
        return 1.0
    edge = layout.edge(tier)
    lines = [len(line) for line in diagonals(*(-(-n // edge) for n in layout.shape(tier)[1:3]))]
    return sum(lines) / sum(-(-line // most) for line in lines)


@dataclass(frozen=True)
class Tasks:
    """Shards as they are played out. seconds: of each, to solve and to write. reads: the payoffs
    that each reads, by number. own: the number of its own, their bytes, and whether they are all
    of that number. gain: (shard, cores) -> how many times as fast they solve it. files: that each
    writes."""

    seconds: list[tuple[float, float]]
    reads: list[list[int]]
    own: list[tuple[int, float, bool]]
    gain: Callable[[int, int], float] = lambda shard, cores: 1.0
    files: Sequence[int] = ()


def choose_node(load, bytes_at):
    """The machine on which a shard begins soonest. load: seconds of work that each has for each of
    its cores. bytes_at: of what the shard reads, by the machine that has it."""
    total = sum(bytes_at.values())

    def begins(node):
        bring = (total - bytes_at.get(node, 0)) / Costs.bytes_a_second
        return max(load[node], bring), load[node], node

    return min(load, key=begins)


class Machines:
    """The machines of a cluster with a clock. Payoffs come to each over its own link, one after the
    other, and are there for all its cores: those in one piece when they are read, parts of others
    when they were solved."""

    def __init__(self, workers, tasks, costs):
        nodes, self.tasks, self.costs = -(-workers // costs.cores), tasks, costs
        last = workers - costs.cores * (nodes - 1)
        self.free = {f"{i:04d}": costs.cores for i in range(nodes - 1)} | {f"{nodes - 1:04d}": last}
        self.slots = dict(self.free)
        self.load = dict.fromkeys(self.free, 0.0)
        self.link = dict.fromkeys(self.free, 0.0)
        self.there = {}
        self.size = {number: size for number, size, _ in tasks.own}
        self.pieces = Counter[int]()
        self.home = {}
        self.queues = {node: [] for node in self.free}
        self.waited = 0.0

    def hand_out(self, shard, cores):
        """Choose a machine; the shard begins when its cores are free."""
        bytes_at = dict.fromkeys(self.free, 0)
        for number in dict.fromkeys(self.tasks.reads[shard]):
            if number in self.home:
                bytes_at[self.home[number]] += round(self.size[number])
        if cores:
            node = choose_node(self.load, bytes_at)
        else:
            node = max(bytes_at, key=lambda node: bytes_at[node])
        self.load[node] += sum(self.tasks.seconds[shard]) / self.slots[node]
        heapq.heappush(self.queues[node], (shard, cores))
        return node

    def begin(self, node, now):
        """(shard, cores, when all that it reads is there) of those that begin on a machine now."""
        queue = self.queues[node]
        while queue and min(queue[0][1], self.slots[node]) <= self.free[node]:
            shard, cores = heapq.heappop(queue)
            cores = min(cores, self.slots[node])
            self.free[node] -= cores
            start = now
            for number in dict.fromkeys(self.tasks.reads[shard]):
                if (node, number) not in self.there:
                    bring = self.size[number] / self.costs.bytes_a_second
                    self.link[node] = max(self.link[node], now) + bring
                    self.there[node, number] = self.link[node]
                start = max(start, self.there[node, number])
            self.waited += cores * (start - now)
            yield shard, cores, start

    def solved(self, shard, node, now):
        """Its payoffs are there; the driver's seconds to send for parts."""
        number, size, one = self.tasks.own[shard]
        if one:
            self.home[number], self.there[node, number] = node, now
            return 0.0
        self.pieces[number] += 1
        for other in self.free:
            bring = 0.0 if node == other else size / self.costs.bytes_a_second
            self.link[other] = max(self.link[other], now) + bring
            there = self.link[other] + size / self.costs.copy
            self.there[other, number] = max(there, self.there.get((other, number), 0.0))
        return 0.0

    def done(self, shard, node, cores):
        """Its cores are free."""
        self.free[node] += cores
        self.load[node] -= sum(self.tasks.seconds[shard]) / self.slots[node]


def play_out(shards, tasks, workers, costs):
    """The schedule with a clock: seconds until the end, that the driver was busy, and that cores
    waited for payoffs."""
    limited = [replace(shard, cores=min(shard.cores, costs.cores)) for shard in shards]
    schedule = Schedule(limited, workers=workers, memory=1 << 62, ahead=AHEAD)
    machines, driver = Machines(workers, tasks, costs), Driver(costs)
    files = tasks.files or [1] * len(shards)
    # when; shard; its machine and cores; whether it is over
    events = []

    def begin(node, now):
        for shard, cores, start in machines.begin(node, now):
            solve, write = tasks.seconds[shard]
            team = max(1, cores)
            start += solve / tasks.gain(shard, team)
            heapq.heappush(events, (start, shard, node, cores, False))
            start += write / files[shard] * -(-files[shard] // team)
            heapq.heappush(events, (start, shard, node, cores, True))

    def follow(steps):
        for step in steps:
            if isinstance(step, Solve):
                references = sum(machines.pieces[i] or 1 for i in set(tasks.reads[step.shard]))
                driver.takes(costs.task + costs.reference * references)
                begin(machines.hand_out(step.shard, step.cores), driver.now)
            elif isinstance(step, Commit) and step.commit:
                driver.commits(FILE_BYTES * shards[step.shard].rows, files[step.shard])

    follow(schedule.start())
    while events:
        now, shard, node, cores, over = heapq.heappop(events)
        driver.until(now)
        if over:
            machines.done(shard, node, cores)
            begin(node, driver.now)
            follow(schedule.solved(shard))
        else:
            driver.takes(machines.solved(shard, node, now))
            follow(schedule.payoffs_ready(shard))
    driver.flush()
    return max(driver.now, driver.link), driver.busy, machines.waited


def speed_ups(layout, plan, cores):
    """How many times faster than one a node of so many cores solves each shard."""
    tiers = layout.tiers()
    return [speed_up(layout, tiers[tier], cores) for tier, _ in plan.parts]


def bound_by_rows(layout, plan, cores=Costs.cores):
    """How many times faster than one core any number of nodes can be, if only rows took time: all
    rows over those of the longest chain of shards, each as fast as a node of so many cores is."""
    times = speed_ups(layout, plan, cores)
    rows = [shard.rows / n for shard, n in zip(plan.shards, times, strict=True)]
    return plan.rows / longest_chain(plan.shards, rows)


def longest_chain(shards, weights, last=()):
    """The most that shards weigh together of which each reads the one before; last: what a shard
    weighs besides where the chain ends with it."""
    far, most = [0.0] * len(shards), 0.0
    for shard in shards:
        below = max((far[child] for child in shard.children), default=0.0)
        far[shard.index] = weights[shard.index] + below
        most = max(most, far[shard.index] + (last[shard.index] if last else 0.0))
    return most


# --- the suite -----------------------------------------------------------------------------------

CORES = (16, 128, 1024)
DRIVER_RATE = 0.5e9
"""Bytes a second that a disk of the driver takes."""
CASES = (
    {"score_unit": 500, "frontier": 5},
    {"score_unit": 250, "frontier": 8},
    {"cards": 13},
    {"cards": 15},
)
"""Settings of which those are taken that the board has."""


def replay_suite(board, results):
    """Times of shards, measured where there is a table under `results`, through the schedule."""
    from pydantic import BaseModel

    from luckbase import solver

    known = {name: None for _, part in solver.load_board(board) if isinstance(part, BaseModel)
             for name, _ in part}  # fmt: skip
    cases = [case for case in CASES if case.keys() <= known.keys()] or [{}]
    rows = []
    for settings in cases:
        layout = solver.load_layout(solver.load_board(board, **settings))
        plan = make_plan(layout, faces=True)
        seconds = measured_seconds(layout, plan, results) or planned_seconds(layout, plan)
        bound = bound_by_rows(layout, plan)
        title = " ".join(f"{name}={value}" for name, value in settings.items())
        for count in CORES:
            run = replay(layout, plan, seconds, count)
            by_driver = replay(layout, plan, seconds, count, Costs(file_rate=DRIVER_RATE))
            rows.append(
                (f"{board.stem} {title}", str(count), sentences.duration(run.seconds),
                 sentences.duration(by_driver.seconds),
                 f"{run.work / run.seconds:.1f}", f"{run.efficiency:.0%}", run.limit,
                 f"{bound:.0f}")
            )  # fmt: skip
    heads = (
        "table",
        "cores",
        "time",
        "files by the driver",
        "times one core",
        "efficiency",
        "limit",
        "bound by rows",
    )
    terminal.print_table("Replayed: 16 cores a node, 10 Gbit/s", heads, rows, sys.stdout)
    _searches(board, results)


def _searches(board, results):
    """The same of a large search by stages, which is made."""
    from tests.bench.search import large_search
    from tests.bench.search_replay import print_replayed, recording

    with recording() as found:
        large_search(board, results)
    print_replayed(found[0], CORES)


def measured_seconds(layout, plan, results):
    """Of each shard, as the manifest of the board's table has them; none where not all is there."""
    from luckbase.cluster.table.manifest import table_directory
    from luckbase.cluster.table.storage import Folder
    from luckbase.cluster.table.writer import read_manifest
    from luckbase.solver.errors import TableError

    path = table_directory(results.absolute(), layout.game)
    try:
        files = read_manifest(Folder(path), path).files
        taken = [[files[name].seconds for name in names] for names in plan.files]
        return [(sum(one["solve"] for one in of), sum(one["write"] for one in of)) for of in taken]
    except (TableError, KeyError):
        return []
