"""Workers of this process: threads, and the arrays of payoffs that they hand to one another.

The kernel and the Parquet writer let go of Python's lock, so threads use all cores. To touch fresh
memory costs more than the kernel, so arrays come from a pool: what nobody reads any more is used
again. What is beyond the pool's bytes lies in files without a name, whose pages the system may let
go of.
"""

from __future__ import annotations

import mmap
import os
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import numpy as np

from luckbase.cluster.run.worker import AnyTask, Handed, Result, Workers, work
from luckbase.solver.game.arrays import Floats


class Threads:
    """Workers in this process."""

    def __init__(self, count: int, pool: Pool | None) -> None:
        self.slots = count
        self._arrays = pool
        self._pool = ThreadPoolExecutor(count, thread_name_prefix="luckbase")
        self._stop = threading.Event()
        self._tasks: dict[Future[Result], int] = {}
        self._events: SimpleQueue[Handed | Future[Result]] = SimpleQueue()
        self._kept: dict[int, PooledArray] = {}

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


ROOMY = 1.5
"""So many times what is needed a used array may have."""


@dataclass(frozen=True)
class PooledArray:
    """An array of payoffs and the memory that it lies in."""

    array: Floats
    buffer: Floats


class Pool:
    """Arrays of payoffs for one run; one thread at a time takes and gives back."""

    def __init__(self, memory: int, folder: Path) -> None:
        """memory: bytes that arrays may have; folder: where what is beyond lies."""
        self._memory, self._folder = memory, folder
        self._free: list[Floats] = []
        self._bytes = 0

    def take(self, shape: tuple[int, ...]) -> PooledArray:
        """An array of this shape; what stands in it is anything. Raises OSError where the disk is
        full."""
        size = int(np.prod(shape))
        fitting = [b for b in self._free if size <= b.size <= max(1, ROOMY * size)]
        if fitting:
            buffer = min(fitting, key=lambda b: b.size)
            self._free = [b for b in self._free if b is not buffer]
        else:
            while self._free and self._bytes + 8 * size > self._memory:
                self._let_go(max(range(len(self._free)), key=lambda i: self._free[i].size))
            if self._bytes + 8 * size > self._memory:
                buffer = self._in_a_file(size)
            else:
                buffer = np.empty(size)
                self._bytes += buffer.nbytes
        return PooledArray(buffer[:size].reshape(shape), buffer)

    def give(self, pooled: PooledArray) -> None:
        """Nobody reads this any more."""
        if pooled.buffer.base is None:  # what lies in a file goes with its last reader
            self._free.append(pooled.buffer)

    def _let_go(self, i: int) -> None:
        self._bytes -= self._free.pop(i).nbytes

    def _in_a_file(self, size: int) -> Floats:
        self._folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=self._folder) as file:
            os.posix_fallocate(file.fileno(), 0, max(8, 8 * size))  # a full disk says so here
            mapped = mmap.mmap(file.fileno(), max(8, 8 * size))
        return np.frombuffer(mapped, np.float64)[:size]
