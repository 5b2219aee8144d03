"""What the tasks of a search took, and what the same search would take on so many cores.

The times of a search's tasks are taken while it runs (`recording`), and played out by the schedule
of both passes: down, level by level, each once it is known what the one above asks for and in the
order of `level_shards.Order`; up, as the tiers of a full table (`tests.bench.replay`).

``python -m tests.bench.search_replay [FIELD=VALUE ...]``: see `main`.
"""

from __future__ import annotations

import argparse
import heapq
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

from luckbase.cluster.run.schedule import Shard
from luckbase.cluster.run.worker import Threads
from luckbase.cluster.search.shards import Asker, Demand, LevelShard, Order
from luckbase.cluster.search.stages import StageSearch, _name
from luckbase.cluster.search.tasks import StageCut
from luckbase.cluster.table.writer import Writer
from luckbase.solver.search.stages import WHOLE
from tests.bench.replay import Costs, Driver, Replayed, Tasks, longest_chain, play_out

COSTS = Costs()
DRIVER = Costs(
    task=1e-4, reference=0.0, receipt=0.0, commit=5e-5, flush=3e-3,
    bytes_a_second=float("inf"),
)  # fmt: skip
"""A driver that takes .15 ms a task, as where its workers take no time."""


class FindTime(NamedTuple):
    """A task on the way down: its seconds, the states that it was thought to find, the numbers of
    those of its level that come before, and its seconds until what they ask for is known."""

    seconds: float
    expected: int
    after: Sequence[int]
    asks: float


@dataclass(frozen=True)
class TaskTimes:
    """Of a search. states: that it met, those that are over included. looks: seconds that the
    driver took to cut each level, the highest first; cuts: of each, how many of its stages workers
    looked at, and their seconds together; finds: of each, its tasks on the way down.
    sweeps: seconds of each task on the way up, in the schedule's order: to solve, and to write its
    file. reads: the tasks before it that each reads. states_of: states that each solves. row_bytes:
    of each state's payoffs as they travel. keep: seconds that the driver took to note what was
    found, on average; commit: to commit files, each time that it wrote, and for each task; 0 where
    it did neither. noted: of all this, and the looks, together."""

    states: int
    looks: list[float]
    finds: list[list[FindTime]]
    sweeps: list[tuple[float, float]]
    reads: list[list[int]]
    states_of: list[int]
    row_bytes: int
    keep: float = 0.0
    commit: tuple[float, float] = (0.0, 0.0)
    noted: float = 0.0
    cuts: Sequence[tuple[int, float]] = ()

    @property
    def work(self):
        """Seconds of all tasks."""
        finds = sum(one.seconds for level in self.finds for one in level)
        cuts = sum(seconds for _, seconds in self.cuts)
        return cuts + finds + sum(map(sum, self.sweeps))


@contextmanager
def recording():
    """The times of each search by stages that ends meanwhile in this process."""
    found = []
    looks, cuts, waited = list[float](), list[tuple[int, float]](), list[float]()
    cut_seconds, asked = list[float](), dict[Asker, float]()
    run, shards, flush = StageSearch.run, Demand.shards, Writer.commit
    cut = StageSearch._cut
    took = {}

    def flushed(writer, *lines):
        began = time.perf_counter()
        flush(writer, *lines)
        took.setdefault((id(writer), "flush"), []).append(time.perf_counter() - began)

    def clocked(name):
        method = getattr(StageSearch, name)

        def timed(search, *given):
            began = time.perf_counter()
            method(search, *given)
            took.setdefault((id(search), name), []).append(time.perf_counter() - began)

        return patch.object(StageSearch, name, timed)

    def mean(of, name):
        seconds = took.get((id(of), name), [0.0])
        return round(sum(seconds) / len(seconds), 6)

    def timed(asked, *given):
        began = time.perf_counter()
        found = shards(asked, *given)
        looks.append(time.perf_counter() - began - sum(waited))
        waited.clear()
        return found

    def cut_by_workers(search, some):
        began = time.perf_counter()
        cut_seconds.clear()
        found = cut(search, some)
        cuts.append((len(cut_seconds), sum(cut_seconds)))
        waited.append(time.perf_counter() - began if cut_seconds else 0.0)
        return found

    def kept(search):
        looks.clear()
        cuts.clear()
        solved = run(search)
        keep = mean(search, "_keep")
        commit = mean(search.writer, "flush"), mean(search, "commit")
        noted = sum(map(sum, (looks, *took.values())))
        took.clear()
        found.append(_times(search, list(looks), keep, commit, noted, list(cuts), dict(asked)))
        return solved

    with (
        patch.object(Demand, "shards", timed), patch.object(StageSearch, "run", kept),
        patch.object(StageSearch, "_cut", cut_by_workers),
        patch.object(Writer, "commit", flushed), clocked("_keep"), clocked("commit"),
        ExitStack() as noting,
    ):  # fmt: skip
        for patched in _noting(asked, cut_seconds):
            noting.enter_context(patched)
        yield found


def _noting(asked, cuts):
    """Note the seconds until the requests of a shard were known, by its name, and those in which a
    stage was cut."""
    wait_one, hand_out, take = Threads.wait_one, StageSearch._hand_out, StageSearch._take
    handed_out = dict[int, float]()

    def waited_for(workers, seconds):
        event = wait_one(workers, seconds)
        if isinstance(event, StageCut):
            cuts.append(event.solve_seconds)
        return event

    def hands_out(search, finding):
        handed_out[finding.task.shard] = time.perf_counter()
        hand_out(search, finding)

    def takes(search, event):
        finding = search.finding[event.shard]
        shard = finding.level.order.shards[finding.place]
        asked[_name(shard)] = time.perf_counter() - handed_out[event.shard]
        take(search, event)

    yield patch.object(Threads, "wait_one", waited_for)
    yield patch.object(StageSearch, "_hand_out", hands_out)
    yield patch.object(StageSearch, "_take", takes)


def _times(run, looks, keep, commit, noted, cuts, asked):
    """What the tasks of a run took. asked: as `_noting`."""
    of = {
        name: (found.seconds, asked.get(name, found.seconds)) for name, found in run.shards.items()
    }

    def time_of(shard):
        seconds, asks = of[_name(shard)]
        return FindTime(seconds, shard.likely, shard.after, min(seconds, asks))

    finds = [[time_of(shard) for shard in in_order(shards)] for shards in run.levels]
    return TaskTimes(
        run.met, looks, finds, [_sweep_seconds(run, found) for found in run.solves], run.reads,
        [found.rows for found in run.solves], 8 * (1 + run.game.players),
        keep, commit, noted, cuts,
    )  # fmt: skip


def in_order(shards):
    """The shards of a level as it was found, each after those that it waited for: what was left to
    it, for who left it, and whoever waits, for all that was left on the way."""
    at = sorted(range(len(shards)), key=lambda i: shards[i].path)
    left = {shard.path: [] for shard in shards}
    for place, i in enumerate(at):
        path = shards[i].path
        for n in range(1, len(path) + 1):
            left[path[:n]].append(place)
    ordered = []
    for i in at:
        shard = shards[i]
        after = {place for k in shard.after for place in left[shards[k].path]}
        if len(shard.path) > 1:
            after.add(left[shard.path[:-1]][0])
        ordered.append(shard._replace(after=tuple(sorted(after))))
    return ordered


def _sweep_seconds(run, found):
    """Seconds that it took to solve a shard and to write it; its file has those of finding it as
    well."""
    file = run.manifest.files.get(run._file(found))
    if file is None:  # it has no states of its own
        return 0.0, 0.0
    return max(0.0, file.seconds["solve"] - found.seconds), file.seconds["write"]


def replay_search(times, workers, costs=COSTS):
    """Both passes with so many workers. What the driver does takes as long as it was measured."""
    driver, path, over = Driver(costs), 0.0, 0.0
    down = _Down(workers, driver)
    cuts = times.cuts or [(0, 0.0)] * len(times.looks)
    for look, (looked, seconds), finds in zip(times.looks, cuts, times.finds, strict=True):
        driver.takes(look)
        each = seconds / looked if looked else 0.0
        down.find([FindTime(each, 0, (), each)] * looked, keep=0.0)
        down.find(finds, times.keep)
        known, ends = _chain(finds)
        over = max(over, path + look + each + ends)
        path += look + each + known
    down.end()
    path = max(path, over)
    costs = _measured(costs, times.commit)
    shards = [
        Shard(i, str(i), tuple(reads), states, 1)
        for i, (reads, states) in enumerate(zip(times.reads, times.states_of, strict=True))
    ]
    own = [(i, times.row_bytes * states, True) for i, states in enumerate(times.states_of)]
    tasks = Tasks(times.sweeps, times.reads, own)
    up, busy, waited = play_out(shards, tasks, workers, costs)
    solves, writes = zip(*times.sweeps, strict=True)
    path += longest_chain(shards, solves, writes)
    return Replayed(workers, driver.now + up, times.work, path, driver.busy + busy, waited)


def _measured(costs, seconds):
    """Costs with what the driver was seen to take, where it was."""
    if not any(seconds):
        return costs
    return replace(
        costs,
        flush=seconds[0],
        receipt=0.0,
        commit=seconds[1],
    )


def _chain(finds):
    """Seconds of the longest chain of a level's tasks, each of which begins when what those before
    it ask for is known: until that is known of all, and until all are over."""
    known = []
    longest = 0.0
    for one in finds:
        begins = max((known[k] for k in one.after), default=0.0)
        known.append(begins + one.asks)
        longest = max(longest, begins + one.seconds)
    return max(known, default=0.0), longest


class _Down:
    """The way down: the driver hands out tasks to so many workers, and takes in what they say."""

    def __init__(self, workers, driver):
        self._free, self._driver = workers, driver
        self._events = []
        """Each event: its time; its number; the task; the order of its level if the task says then
        what it asks for, or None if it ends; the driver's seconds to note the result."""
        self._numbers = count()

    def find(self, finds, keep):
        """Hand out the tasks of a level in their order, until it is known what all ask for.

        keep: seconds that the driver takes to note the result of one.
        """
        order = Order([
            LevelShard((i,), (), WHOLE, one.expected, tuple(one.after))
            for i, one in enumerate(finds)
        ])  # fmt: skip
        driver, missing = self._driver, len(finds)
        while missing:
            while self._free and (i := order.pop()) is not None:
                driver.takes(driver.costs.task)
                for seconds, of in ((finds[i].asks, order), (finds[i].seconds, None)):
                    event = driver.now + seconds, next(self._numbers), i, of, keep
                    heapq.heappush(self._events, event)
                self._free -= 1
            missing -= self._take()

    def end(self):
        """All tasks end."""
        while self._events:
            self._take()

    def _take(self):
        """Take in the next event; whether it is known by it what a task asks for."""
        now, _, i, order, keep = heapq.heappop(self._events)
        self._driver.until(now)
        if order is not None:
            order.done(i)
            return True
        self._driver.takes(keep)
        self._free += 1
        return False


def print_replayed(times, cores, costs=COSTS):
    """A table: both passes with so many workers."""
    from luckbase.jobs import terminal
    from luckbase.solver import sentences

    title = f"{sentences.count(times.states)} states, {len(times.sweeps)} tasks, replayed"
    rows = []
    for workers in cores:
        run = replay_search(times, workers, costs)
        rows.append(
            (str(workers), sentences.duration(run.seconds), f"{run.work / run.seconds:.1f}",
             f"{run.path:.1f} s", run.limit)
        )  # fmt: skip
    heads = ("cores", "time", "times one core", "longest chain", "limit")
    terminal.print_table(title, heads, rows, sys.stdout)


def main(words=None):
    """Search below a state on two threads, and say what it took; then play it out on 16, 128 and
    1,024 cores, with a driver that takes .15 ms a task."""
    from luckbase.solver import sentences
    from tests.bench.search import LARGER, large_search
    from tests.places import BOARDS

    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("fields", nargs="*", metavar="FIELD=VALUE",
                        help="of the state; scores=0,2000,3500 earned=1,2,2")  # fmt: skip
    fields = parser.parse_args(words).fields
    root = dict(field.split("=") for field in fields)
    what = ("", 250, "passer", root) if root else LARGER
    board, threads = BOARDS / "press-your-luck/1985-02.toml", 2
    with tempfile.TemporaryDirectory(prefix="luckbase-", dir="/var/tmp") as folder:
        small = (*LARGER[:3], LARGER[3] | {"earned": "0,2,1"})
        large_search(board, Path(folder) / "compiled", small)
        began, used = time.perf_counter(), time.process_time()
        with recording() as found:
            table = Path(folder) / "table"
            made = large_search(board, table, what, workers=threads, memory=3 << 30)
        wall, used = time.perf_counter() - began, time.process_time() - used
    print(
        f"{made.states:,} states in {made.shards:,} shards of {made.levels} levels: "
        f"{sentences.duration(wall)}, {1e9 * used / made.states:,.0f} ns of processor time a "
        f"state, {1 - used / wall / threads:.0%} of both cores idle, "
        f"{sentences.size(made.peak_memory)} of memory, "
        f"{made.bytes / made.states:.1f} bytes a state on disk", flush=True,
    )  # fmt: skip
    unrecorded = replace(found[0], keep=0.0, commit=(0.0, 0.0))
    print_replayed(unrecorded, (16, 128, 1024), DRIVER)


if __name__ == "__main__":
    main()
