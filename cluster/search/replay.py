"""What the tasks of a search took, and what the same search would take on so many cores.

A search by stages leaves the times of its tasks in its table, ``log/<part>.tasks.json``. They are
played out by the schedule of both passes: down, level by level, the largest task first and each
level once the one above is found; up, as the tiers of a full table (`cluster.run.replay`).
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from luckbase.cluster.run.replay import Costs, Replayed, Tasks, longest_chain, play_out
from luckbase.cluster.run.schedule import Shard

ENDING = ".tasks.json"
COSTS = Costs()


@dataclass(frozen=True)
class TaskTimes:
    """Of a search. states: that it met, those that are over included. finds: of each level, the
    highest first, the seconds of its tasks on the way down. sweeps: seconds of each task on the way
    up, in the schedule's order: to solve, and to write its file. reads: the tasks before it that
    each reads. states_of: states that each solves. row_bytes: of each state's payoffs as they
    travel."""

    states: int
    finds: list[list[float]]
    sweeps: list[tuple[float, float]]
    reads: list[list[int]]
    states_of: list[int]
    row_bytes: int

    @property
    def work(self) -> float:
        """Seconds of all tasks."""
        return sum(map(sum, self.finds)) + sum(map(sum, self.sweeps))


def write_times(times: TaskTimes, table: Path, part: str) -> None:
    """Leave them in the table's folder, for `times_of`."""
    path = table / "log" / f"{part.replace('/', '-')}{ENDING}"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(asdict(times)), encoding="utf-8")


def times_of(table: Path) -> list[TaskTimes]:
    """Of each search by stages whose states are in a table."""
    found = sorted((table / "log").glob(f"*{ENDING}"))
    return [TaskTimes(**json.loads(path.read_text(encoding="utf-8"))) for path in found]


def replay_search(times: TaskTimes, workers: int, costs: Costs = COSTS) -> Replayed:
    """Both passes with so many workers."""
    down = driver = path = 0.0
    for finds in times.finds:
        handed = costs.task * len(finds)
        driver += handed + costs.commit * len(finds)
        path += max(finds, default=0.0)
        down += handed + _last(finds, workers) + costs.commit
    shards = [
        Shard(i, str(i), tuple(reads), states, 1)
        for i, (reads, states) in enumerate(zip(times.reads, times.states_of, strict=True))
    ]
    coming = [times.row_bytes * states / costs.bytes_a_second for states in times.states_of]
    tasks = Tasks(times.sweeps, times.reads, coming)
    up, busy, waited = play_out(shards, tasks, workers, costs)
    solves, writes = zip(*times.sweeps, strict=True)
    path += longest_chain(shards, solves, writes)
    return Replayed(workers, down + up, times.work, path, driver + busy, waited)


def _last(seconds: Sequence[float], workers: int) -> float:
    """When the last of some tasks ends, the longest begun first."""
    free = [0.0] * workers
    for taken in sorted(seconds, reverse=True):
        heapq.heapreplace(free, free[0] + taken)
    return max(free)
