"""A real search by stages whose tasks were done before, and now sleep for as long as that took.

`receipts` notes what the tasks of a search say and how long each takes; `sleeping` has the same
search go on any number of threads of this machine that sleep and say it again. The driver, what it
cuts, its schedule and its ledger are the real ones, so what it does beside so many workers can be
measured, and held to what the same times give when they are played out (`search_replay`).

``python -m tests.bench.asleep``: see `main`.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from luckbase.cluster.run.worker import Pool, Task, Threads
from luckbase.cluster.search.files import RequestedKeys
from luckbase.cluster.search.stages import StageSearch
from luckbase.cluster.search.tasks import CutStage, Find, FindReceipt, FoundAsks, Sweep


class Said(NamedTuple):
    """What a task said: what it asks for, or None, and its receipt; seconds until what others wait
    for is there and until its file is, and which requests it met."""

    early: Any
    receipt: Any
    solve: float
    write: float
    met: frozenset[RequestedKeys] = frozenset()


Receipts = dict[str, Said]


def name_of(job: Any) -> str:
    """What names a task in all runs of a search."""
    if isinstance(job, CutStage):
        return f"look {job.sample.stage}"
    return str(job.name if isinstance(job, Find) else job.file)


@contextmanager
def receipts() -> Iterator[Receipts]:
    """What the tasks of searches by stages say that run in this process meanwhile."""
    found: Receipts = {}

    def noting(kind: Any) -> Any:
        run = kind.run

        def noted(job: Any, *given: Any) -> Iterator[Any]:
            began, steps = time.perf_counter(), run(job, *given)
            early = next(steps)
            there = time.perf_counter()
            yield early
            receipt, content = next(steps)
            end, met = time.perf_counter(), frozenset[RequestedKeys]()
            if isinstance(receipt, FindReceipt):
                met = frozenset(job.asks[i] for i in receipt.used_asks)
            asks = early if isinstance(early, FoundAsks) else None
            found[name_of(job)] = Said(asks, receipt, there - began, end - there, met)
            yield receipt, content

        return patch.object(kind, "run", noted)

    with noting(CutStage), noting(Find), noting(Sweep):
        yield found


@dataclass(frozen=True)
class Asleep:
    """A task that sleeps, and says what was said."""

    said: Said
    shard: int
    met: list[int]

    def compile(self) -> None:
        """Nothing is."""

    def run(self, payoffs: Any, sent: Any, out: Any, stop: Any) -> Iterator[Any]:
        """As `worker.Job.run`."""
        time.sleep(self.said.solve)
        early = self.said.early
        yield None if early is None else replace(early, shard=self.shard)
        time.sleep(self.said.write)
        receipt = replace(self.said.receipt, shard=self.shard)
        if isinstance(receipt, FindReceipt):
            receipt = replace(receipt, used_asks=self.met)
        yield receipt, None


class Sleepers(Threads):
    """Threads that sleep. waited: seconds that the driver waited for them."""

    def __init__(self, said: Receipts, count: int, pool: Pool, location: Any) -> None:
        super().__init__(count, pool, location)
        self._said, self.waited = said, 0.0

    def wait_one(self, seconds: float) -> Any:
        began = time.perf_counter()
        try:
            return super().wait_one(seconds)
        finally:
            self.waited += time.perf_counter() - began

    def submit(self, task: Task) -> None:
        job: Any = task.job
        said, keep, met = self._said[name_of(job)], task.keep, list[int]()
        if isinstance(job, Find):
            met = [i for i, one in enumerate(job.asks) if one in said.met]
        if keep is not None:  # nobody touches it
            keep = replace(keep, shape=(1, 1), span=(0, 1))
        super().submit(replace(task, job=Asleep(said, job.number, met), keep=keep))

    def whole(self, wanted: Mapping[str, str]) -> set[str]:
        return set(wanted)

    def delete(self, names: Iterable[str] | None = None) -> None:
        """Nothing is there."""


@contextmanager
def sleeping(said: Receipts, count: int) -> Iterator[list[tuple[float, float]]]:
    """Searches by stages go on so many sleepers meanwhile; of the driver of each the seconds of
    processor time, and those in which it did not wait for them."""
    taken: list[tuple[float, float]] = []
    run = StageSearch.run

    def workers(search: StageSearch, kept: int, store: int) -> Any:
        pool = Pool(kept, search.location.spill)
        return closing(Sleepers(said, count, pool, search.location))

    def clocked(search: StageSearch) -> Any:
        used, began = time.thread_time(), time.perf_counter()
        try:
            return run(search)
        finally:
            sleepers: Any = search.workers
            busy = time.perf_counter() - began - sleepers.waited
            taken.append((time.thread_time() - used, busy))

    with patch.object(StageSearch, "_workers", workers), patch.object(StageSearch, "run", clocked):
        yield taken


PLENTY = 1 << 50
"""Bytes that sleepers may have."""


def main() -> None:
    """Search 32 million states in earnest; then again on 16, 128 and 1,024 sleepers, beside what
    playing the same times out gives, a task's share of the driver among them."""
    from tests.bench.replay import Costs
    from tests.bench.search import LARGER, large_search
    from tests.bench.search_replay import recording, replay_search
    from tests.places import BOARDS

    board, cores = BOARDS / "press-your-luck/1985-02.toml", 2
    with tempfile.TemporaryDirectory(prefix="luckbase-") as folder:
        with receipts() as said:
            large_search(board, Path(folder) / "found", LARGER, workers=cores)
        for count in (16, 128, 1024):
            with sleeping(said, count) as taken, recording() as found:
                began = time.perf_counter()
                again = large_search(
                    board, Path(folder) / "again", LARGER, workers=count, memory=PLENTY
                )
                wall = time.perf_counter() - began
            used, busy = taken[0]
            task = max(0.0, busy - found[0].noted) / again.shards / 2
            costs = Costs(task=task, reference=0.0, bytes_a_second=float("inf"))
            played = replay_search(found[0], count, costs)
            print(f"{count} sleepers: {wall:.2f} s, played out {played.seconds:.2f} s, "
                  f"{played.work / wall:.1f} times one core; the driver "
                  f"{1e6 * used / again.shards / 2:.0f} µs a task, of which {1e6 * task:.0f} "
                  f"neither cutting nor committing", flush=True)  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
