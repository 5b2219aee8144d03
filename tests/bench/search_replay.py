"""What the tasks of a search took, and what the same search would take on so many cores.

The times of a search's tasks are taken while it runs (`recording`), and played out by the schedule
of both passes: down, level by level, each once the one above is found and in the order of
`level_shards.Order`; up, as the tiers of a full table (`tests.bench.replay`).
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple
from unittest.mock import patch

from luckbase.cluster.run.progress import Solved
from luckbase.cluster.run.schedule import Shard
from luckbase.cluster.run.worker import Threads
from luckbase.cluster.search.shards import Demand, LevelShard, Order
from luckbase.cluster.search.stages import PATIENCE, StageSearch
from luckbase.cluster.search.tasks import FoundAsks
from luckbase.cluster.table.entries import Commits
from luckbase.cluster.table.folder import Piece
from luckbase.solver.search.stages import WHOLE
from tests.bench.replay import Costs, Driver, Replayed, Tasks, longest_chain, play_out

COSTS = Costs()


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
    of each state's payoffs as they travel. keep, commit: seconds that the driver took to note what
    was found, to commit files, on average: each time that it wrote, and for each task; 0 where it
    did neither. noted: of all this, and the looks, together."""

    states: int
    looks: list[float]
    finds: list[list[FindTime]]
    sweeps: list[tuple[float, float]]
    reads: list[list[int]]
    states_of: list[int]
    row_bytes: int
    keep: tuple[float, float] = (0.0, 0.0)
    commit: tuple[float, float] = (0.0, 0.0)
    noted: float = 0.0
    cuts: Sequence[tuple[int, float]] = ()

    @property
    def work(self) -> float:
        """Seconds of all tasks."""
        finds = sum(one.seconds for level in self.finds for one in level)
        cuts = sum(seconds for _, seconds in self.cuts)
        return cuts + finds + sum(map(sum, self.sweeps))


@contextmanager
def recording() -> Iterator[list[TaskTimes]]:
    """The times of each search by stages that ends meanwhile in this process."""
    found: list[TaskTimes] = []
    looks, cuts, waited = list[float](), list[tuple[int, float]](), list[float]()
    asked = dict[str, float]()
    run, shards, flush = StageSearch.run, Demand.shards, Commits.flush
    cut = StageSearch._cut
    took: dict[tuple[int, str], list[float]] = {}

    def flushed(commits: Commits) -> None:
        began, lines = time.perf_counter(), len(commits)
        flush(commits)
        if lines:
            took.setdefault((id(commits), "flush"), []).append(time.perf_counter() - began)

    def clocked(name: str) -> Any:
        method = getattr(StageSearch, name)

        def timed(search: StageSearch, *given: Any) -> None:
            began = time.perf_counter()
            method(search, *given)
            took.setdefault((id(search), name), []).append(time.perf_counter() - began)

        return patch.object(StageSearch, name, timed)

    def mean(of: object, name: str) -> float:
        seconds = took.get((id(of), name), [0.0])
        return round(sum(seconds) / len(seconds), 6)

    def timed(asked: Demand, *given: Any) -> Any:
        began = time.perf_counter()
        found = shards(asked, *given)
        looks.append(time.perf_counter() - began - sum(waited))
        waited.clear()
        return found

    def cut_by_workers(search: StageSearch, some: Any) -> Any:
        began, before = time.perf_counter(), search.solve_seconds
        found = cut(search, some)
        taken = search.solve_seconds - before
        cuts.append((len(some) if taken else 0, taken))
        waited.append(time.perf_counter() - began if taken else 0.0)
        return found

    def kept(search: StageSearch) -> Solved:
        looks.clear()
        cuts.clear()
        solved = run(search)
        keep = mean(search.keeping, "flush"), mean(search, "_keep")
        commit = mean(search.commits, "flush"), mean(search, "commit")
        noted = sum(map(sum, (looks, *took.values())))
        took.clear()
        found.append(_times(search, list(looks), keep, commit, noted, list(cuts), dict(asked)))
        return solved

    with (
        patch.object(Demand, "shards", timed), patch.object(StageSearch, "run", kept),
        patch.object(StageSearch, "_cut", cut_by_workers),
        patch.object(Commits, "flush", flushed), clocked("_keep"), clocked("commit"),
        _noting_asks(asked),
    ):  # fmt: skip
        yield found


def _noting_asks(asked: dict[str, float]) -> Any:
    """Note the seconds until what a shard asks for was known, by the place of that."""
    wait_one = Threads.wait_one

    def waited_for(workers: Threads, seconds: float) -> Any:
        event = wait_one(workers, seconds)
        if isinstance(event, FoundAsks):
            asked[event.place] = event.seconds
        return event

    return patch.object(Threads, "wait_one", waited_for)


def _times(
    run: Any,
    looks: list[float],
    keep: tuple[float, float],
    commit: tuple[float, float],
    noted: float,
    cuts: list[tuple[int, float]],
    asked: Mapping[str, float],
) -> TaskTimes:
    """What the tasks of a run took, and those that it went on from. asked: as `_noting_asks`."""
    of = {one.name: (one.seconds, asked.get(one.ask_place, one.seconds)) for one in run.found}

    def time_of(shard: LevelShard) -> FindTime:
        seconds, asks = of[run._name(shard)]
        return FindTime(seconds, shard.likely, shard.after, min(seconds, asks))

    finds = [[time_of(shard) for shard in in_order(shards)] for shards in run.levels]
    return TaskTimes(
        run.met, looks, finds, [_sweep_seconds(run, piece) for piece in run.pieces], run.reads,
        [piece.states for piece in run.pieces], 8 * (1 + run.game.players),
        keep, commit, noted, cuts,
    )  # fmt: skip


def in_order(shards: Sequence[LevelShard]) -> list[LevelShard]:
    """The shards of a level as it was found, each after those that it waited for: what was left to
    it, for who left it, and whoever waits, for all that was left on the way."""
    at = sorted(range(len(shards)), key=lambda i: shards[i].path)
    left: dict[tuple[int, ...], list[int]] = {shard.path: [] for shard in shards}
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
        ordered.append(replace(shard, after=tuple(sorted(after))))
    return ordered


def _sweep_seconds(run: Any, piece: Piece) -> tuple[float, float]:
    """Seconds that it took to solve a piece and to write it; its file has those of finding it
    as well."""
    file = run.ledger.files.get(run._file(piece))
    if file is None:  # it has no states of its own
        return 0.0, 0.0
    finding = piece.entry.seconds * piece.states / max(1, piece.entry.rows)
    return max(0.0, file.seconds["solve"] - finding), file.seconds["write"]


def replay_search(times: TaskTimes, workers: int, costs: Costs = COSTS) -> Replayed:
    """Both passes with so many workers. What the driver does takes as long as it was measured."""
    driver, path = Driver(_measured(costs, times.keep)), 0.0
    cuts = times.cuts or [(0, 0.0)] * len(times.looks)
    for look, (count, seconds), finds in zip(times.looks, cuts, times.finds, strict=True):
        driver.takes(look)
        each = seconds / count if count else 0.0
        stages = [FindTime(each, 0, (), each)] * count
        path += look + _chain(stages) + _chain(finds)
        _find(stages, workers, driver, lines=False)
        _find(finds, workers, driver)
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


def _measured(costs: Costs, seconds: tuple[float, float]) -> Costs:
    """Costs with what the driver was seen to take, where it was."""
    if not any(seconds):
        return costs
    return replace(costs, flush=seconds[0], receipt=0.0, commit=seconds[1], patience=PATIENCE)


def _chain(finds: Sequence[FindTime]) -> float:
    """Seconds of the longest chain of a level's tasks, each of which begins when what those before
    it ask for is known."""
    known: list[float] = []
    longest = 0.0
    for one in finds:
        begins = max((known[k] for k in one.after), default=0.0)
        known.append(begins + one.asks)
        longest = max(longest, begins + one.seconds)
    return longest


def _find(finds: Sequence[FindTime], workers: int, driver: Driver, lines: bool = True) -> None:
    """Find a level: the driver hands out its tasks in their order, and takes in what comes back.
    lines: which it commits."""
    order = Order(
        [LevelShard((i,), (), WHOLE, one.expected, tuple(one.after)) for i, one in enumerate(finds)]
    )
    events: list[tuple[float, int, bool]] = []  # when; the task; whether it is over
    free = workers
    while True:
        while free and (i := order.pop()) is not None:
            driver.takes(driver.costs.task)
            heapq.heappush(events, (driver.now + finds[i].asks, i, False))
            heapq.heappush(events, (driver.now + finds[i].seconds, i, True))
            free -= 1
        if not events:
            return driver.flush()
        now, i, over = heapq.heappop(events)
        driver.until(now)
        if not over:
            order.done(i)
            continue
        if lines:
            driver.commits()
        free += 1
