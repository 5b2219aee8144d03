"""The loop of every solve by a schedule: events of workers in, instructions out.

The driver of full tables (`driver`) and that of searches by stages (`cluster.search.by_stages`)
say what a task is and how it is committed; the rest is here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from luckbase.cluster.run.schedule import Commit, Drop, Instruction, Schedule, Solve
from luckbase.cluster.run.session import PayoffsLostError, Workers
from luckbase.cluster.run.worker import AnyTask, Handed
from luckbase.cluster.table.ledger import Commits

MOST_LOSSES = 3


@dataclass(frozen=True)
class Steps:
    """What a driver does. task: the task of an instruction. commit: a receipt whose file is wanted,
    which adds its line to `commits`. count: every receipt. drop: shards whose payoffs nobody reads
    any more. show: when no event waits, and twice a second."""

    task: Callable[[Solve], AnyTask]
    commits: Commits
    commit: Callable[[Any], None]
    count: Callable[[Any], None]
    drop: Callable[[list[int]], None]
    show: Callable[[], None]


def run_shards(schedule: Schedule, workers: Workers, do: Steps) -> None:
    """Until the schedule is finished. What is solved stays, also at an error."""
    with do.commits:
        _Loop(schedule, workers, do).run()


class _Loop:
    def __init__(self, schedule: Schedule, workers: Workers, do: Steps) -> None:
        self.schedule, self.workers, self.do = schedule, workers, do
        self.dropped: list[int] = []

    def run(self) -> None:
        schedule, workers = self.schedule, self.workers
        self.follow(schedule.start())
        while not schedule.finished:
            event = workers.wait_one(0.0 if self.dropped or self.do.commits else 0.5)
            if isinstance(event, Handed):
                self.follow(schedule.handed(event.shard))
            elif event is not None:
                self.follow(schedule.solved(event.shard), event)
            if workers.slots != schedule.workers:
                self.follow(schedule.resize(workers.slots))
            if event is None or self.do.commits.full:
                self.settle()
        self.settle()

    def follow(self, steps: list[Instruction], receipt: Any = None) -> None:
        # New work first: workers go on while this process flushes and renames.
        for step in steps:
            if isinstance(step, Solve):
                self.workers.submit(self.do.task(step))
        if any(isinstance(step, Commit) and step.commit for step in steps):
            with self.do.commits.taking_in():
                self.do.commit(receipt)
        if receipt is not None:
            self.do.count(receipt)
        self.dropped += [step.shard for step in steps if isinstance(step, Drop)]

    def settle(self) -> None:
        """Commit what waits, then drop: nothing goes that is needed while that is not there."""
        self.do.commits.flush()
        if self.dropped:
            self.do.drop(self.dropped)
            self.dropped = []
        self.do.show()


def through_losses(
    solve: Callable[[], None], workers: Workers, note: Callable[[str], None]
) -> None:
    """Solve; where payoffs were lost with their machines, again from what is committed,
    `MOST_LOSSES` times."""
    for left in range(MOST_LOSSES, -1, -1):
        try:
            return solve()
        except PayoffsLostError as error:
            if not left:
                raise
            note(f"{error}; it does so now")
            workers.forget()
