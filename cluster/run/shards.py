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

MOST_LOSSES = 3


@dataclass(frozen=True)
class Steps:
    """What a driver does. task: the task of an instruction. commit: a receipt whose file is wanted.
    count: every receipt. drop: shards whose payoffs nobody reads any more. show: after every event,
    and twice a second."""

    task: Callable[[Solve], AnyTask]
    commit: Callable[[Any], None]
    count: Callable[[Any], None]
    drop: Callable[[list[int]], None]
    show: Callable[[], None]


def run_shards(schedule: Schedule, workers: Workers, do: Steps) -> None:
    """Until the schedule is finished."""

    def follow(steps: list[Instruction], receipt: Any) -> None:
        # New work first: workers go on while this process flushes and renames.
        for step in steps:
            if isinstance(step, Solve):
                workers.submit(do.task(step))
        if any(isinstance(step, Commit) and step.commit for step in steps):
            do.commit(receipt)
        if receipt is not None:
            do.count(receipt)
        do.drop([step.shard for step in steps if isinstance(step, Drop)])

    follow(schedule.start(), None)
    while not schedule.finished:
        receipt = workers.wait_one(0.5)
        if isinstance(receipt, Handed):
            follow(schedule.handed(receipt.shard), None)
        elif receipt is not None:
            follow(schedule.solved(receipt.shard), receipt)
        if workers.slots != schedule.workers:
            follow(schedule.resize(workers.slots), None)
        do.show()


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
