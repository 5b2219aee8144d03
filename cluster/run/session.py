"""Workers of this process: threads. Hand out tasks, hand on payoffs, wait, stop.

Threads and Ray's workers (`ray_workers`) run `worker.work` and nothing else, so a table's bytes do
not depend on which. The kernel and the Parquet writer let go of Python's lock, so threads use all
cores.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from typing import Any, Protocol

from luckbase.cluster.run.payoffs import Held, Pool
from luckbase.cluster.run.worker import AnyTask, Handed, Result, work
from luckbase.solver.errors import WorkerError


class PayoffsLostError(WorkerError):
    """Payoffs were lost with their machines and Ray could not make them again."""


class Workers(Protocol):
    """What the driver asks of workers. They keep the payoffs of tiers whose tasks say so, hand them
    to the tasks that read them, and drop them when they are told."""

    @property
    def slots(self) -> int:
        """How many tasks they do at once; may change."""

    def submit(self, task: AnyTask) -> None:
        """Hand out a task. What it reads must be kept."""

    def wait_one(self, seconds: float) -> Any:
        """`Handed`, of a shard that is kept, or a receipt; None when none came in that time. Raises
        what the task raised."""

    def drop(self, tier: int) -> None:
        """Nobody reads the payoffs of the tier with this index any more."""

    def doing(self) -> list[dict[str, Any]]:
        """What each machine does: name, slots, shards."""

    def check_memory(self, needed: int, smaller: str) -> None:
        """Raises MemoryLimitError where no machine has so many bytes for a shard; smaller: what
        would take less."""

    def forget(self) -> None:
        """Let go of all tasks and payoffs."""


class Threads:
    """Workers in this process."""

    def __init__(self, count: int, pool: Pool | None) -> None:
        self.slots = count
        self._arrays = pool
        self._pool = ThreadPoolExecutor(count, thread_name_prefix="luckbase")
        self._stop = threading.Event()
        self._tasks: dict[Future[Result], int] = {}
        self._events: SimpleQueue[Handed | Future[Result]] = SimpleQueue()
        self._kept: dict[int, Held] = {}

    def submit(self, task: AnyTask) -> None:
        given = [self._kept[tier].array for tier in task.reads]
        out = self._place(task) if task.keep else None
        future = self._pool.submit(self._work, task, given, out)
        self._tasks[future] = task.shard
        future.add_done_callback(self._events.put)

    def _work(self, task: AnyTask, given: list[Any], out: Any) -> Result:
        steps = work(task, given, out, self._stop.is_set)
        next(steps)
        if out is not None:
            self._events.put(Handed(task.shard))
        result: Result = next(steps)
        return result

    def _place(self, task: AnyTask) -> Any:
        """Where the payoffs of a shard stand that is kept, among those of its tier."""
        assert self._arrays is not None
        if task.tier not in self._kept:
            self._kept[task.tier] = self._arrays.take(task.shape)
        whole = self._kept[task.tier].array
        return whole if task.parts == 1 else whole[slice(*task.span)]

    def wait_one(self, seconds: float) -> Any:
        try:
            event = self._events.get(timeout=seconds)
        except Empty:
            return None
        if isinstance(event, Handed):
            return event
        del self._tasks[event]
        return event.result().receipt

    def drop(self, tier: int) -> None:
        assert self._arrays is not None
        self._arrays.give(self._kept.pop(tier))

    def doing(self) -> list[dict[str, Any]]:
        return [{"node": "this process", "slots": self.slots, "shards": list(self._tasks.values())}]

    def check_memory(self, needed: int, smaller: str) -> None:
        """Checked before (`opening.check_room`)."""

    def forget(self) -> None:
        self._tasks, self._kept = {}, {}

    def close(self) -> None:
        """Stop tasks between planes and wait for them."""
        self._stop.set()
        self._pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def threads(count: int, pool: Pool | None = None) -> Iterator[Workers]:
    """Workers in this process for the length of a solve; pool: for the payoffs that they keep."""
    workers = Threads(count, pool)
    try:
        yield workers
    finally:
        workers.close()
