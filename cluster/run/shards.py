"""The loop of every solve by a schedule: events of workers in, instructions out.

The driver of full tables (`driver`) and that of searches by stages (`cluster.search.by_stages`)
say what a task is and how it is committed; the rest is here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from luckbase.cluster.run.schedule import Instruction, Schedule
from luckbase.cluster.run.session import PayoffsLostError, Workers
from luckbase.cluster.run.worker import Handed

MOST_LOSSES = 3

Follow = Callable[[list[Instruction], Any], None]
"""follow(instructions, the receipt that brought them or None)."""


def run_shards(
    schedule: Schedule, workers: Workers, follow: Follow, show: Callable[[], None]
) -> None:
    """Until the schedule is finished. show: called after every event, and twice a second."""
    follow(schedule.start(), None)
    while not schedule.finished:
        receipt = workers.wait_one(0.5)
        if isinstance(receipt, Handed):
            follow(schedule.handed(receipt.shard), None)
        elif receipt is not None:
            follow(schedule.solved(receipt.shard), receipt)
        if workers.slots != schedule.workers:
            follow(schedule.resize(workers.slots), None)
        show()


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
