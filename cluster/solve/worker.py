"""Workers: each task returns its payoffs, its file and a receipt.

A **task** says where the payoffs are that it reads, and where to put its own. Its **job** does the
work on any machine: it solves a tier or part of a tier (`full_table`), or does a step of a search
by stages (`cluster.search.tasks`). If the worker's machine can reach the table (a URI, or a shared
folder), it writes its files there; otherwise it returns their bytes to the driver. Data needed only
during the solve, such as stage files and spilled payoffs, is on each machine's own disk
(`TableLocation.scratch`).

Workers are threads of this process (`Threads`) or tasks of Ray (`ray`). The kernel and the Parquet
writer release Python's global lock, so threads use all cores.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import shutil
import socket
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from queue import Empty, SimpleQueue
from types import SimpleNamespace
from typing import Any, Protocol

import numpy as np

from luckbase.cluster.machine import MemoryUsed, memory_used, process_name
from luckbase.cluster.store.format import Written, put_file
from luckbase.cluster.store.manifest import FileEntry, placed
from luckbase.cluster.store.storage import Folder, Memory, Storage, in_threads, is_uri, storage_at
from luckbase.cluster.store.writer import BEATS
from luckbase.solver.errors import WorkerError
from luckbase.solver.game.arrays import Floats

PUT_AT_ONCE = 4
"""Files of a task that are written at once, because an object store takes its time for each."""
Stop = Callable[[], bool]
Out = Floats | None
"""The array for a job's own payoffs; None to create one."""
Steps = Iterator[Any]
"""Yielded by a job: its own payoffs, or None if they are not to be kept; then, once its files are
written, its receipt with the bytes of files that must be sent, by place."""


class PayoffsLostError(WorkerError):
    """Payoffs or stage files were lost with their machines and must be computed again."""


class NotSeenError(WorkerError):
    """A job reads files that its machine cannot reach; they must be sent with it."""

    def __init__(self, names: tuple[str, ...]) -> None:
        super().__init__("files of the table that are read are not to be seen any more")
        self.names = names


@dataclass(frozen=True)
class TableLocation:
    """The location of a table."""

    table: Path  # its folder or URI
    writer: str  # the id of the driver's writer (`cluster.store.writer`)
    apart: str = ""
    """The folder, on each machine's own disk, for data needed only during the solve; "" if that is
    in the table's folder."""

    @property
    def scratch(self) -> Path:
        """This machine's folder for data that is needed only during the solve."""
        return Path(tempfile.gettempdir()) / self.apart if self.apart else self.table

    @property
    def spill(self) -> Path:
        """The folder for payoffs that do not fit into this machine's memory."""
        return self.spill_of(self.writer)

    def spill_of(self, writer: str) -> Path:
        """Return the folder for spilled payoffs of a writer."""
        return self.scratch / f"spill.{writer}"

    def keep(self, place: str, content: bytes) -> None:
        """Write a stage file to this machine's folder. It is not flushed: after a power failure its
        states are found again. Raises OSError that names the full disk."""
        path = self.scratch / place
        try:
            if self.apart:
                self.scratch.mkdir(mode=0o700, exist_ok=True)  # in a public folder
            path = Folder(self.scratch).temporary(place)
            path.write_bytes(content)
            os.replace(path, self.scratch / place)
        except OSError as error:
            path.unlink(missing_ok=True)
            if not self.apart:
                raise
            where = f"{path.parent} on {socket.gethostname()}"
            raise OSError(error.errno, error.strerror or str(error), where) from None

    def read(self, name: str) -> bytes | None:
        """Return a stage file of this machine; None if it is not here."""
        with suppress(FileNotFoundError):
            return Folder(self.scratch).read(name)
        return None

    def delete(self, names: Iterable[str] | None = None) -> None:
        """Delete stage files of this machine; without names, its whole folder."""
        if names is None and self.apart:
            shutil.rmtree(self.scratch, ignore_errors=True)
        for name in names or ():
            Folder(self.scratch).delete(name)

    @property
    def shared(self) -> bool:
        """True if this machine can reach the table: it sees the file that the writer renews."""
        return is_uri(self.table) or (self.table / f"{BEATS}{self.writer}").exists()

    def source(self, names: Sequence[str]) -> Storage:
        """Return the storage to read these files from: the table, or this machine's folder if they
        were sent with the task. Raises NotSeenError."""
        if names and self.apart and (self.scratch / names[0]).exists():
            return Folder(self.scratch)
        if names and not self.shared:
            raise NotSeenError(tuple(names))
        return storage_at(self.table)

    @contextmanager
    def storage(self) -> Iterator[Storage]:
        """Yield the storage to write to: the table if it can be reached, otherwise memory."""
        if self.shared:
            yield storage_at(self.table)
            return
        with closing(Memory()) as memory:
            yield memory


class Job(Protocol):
    """The work of a task. Picklable."""

    def compile(self) -> None:
        """Compile, or load, the functions that the job needs."""

    def run(self, task: Task, payoffs: Sequence[Any], out: Out, stop: Stop) -> Steps:
        """Do the work of its task. payoffs: for each tier that it reads, an array, or arrays of its
        parts by number.

        Raises Stopped soon after `stop()` returns True; NotSeenError before it yields anything.
        """


@dataclass(frozen=True)
class PayoffPlace:
    """Where the payoffs of a shard are kept for other shards."""

    tier: int  # index of the tier
    shape: tuple[int, ...]  # of the tier's array
    span: tuple[int, int]  # the shard's rows of the tier
    part: int = 0
    parts: int = 1
    """The shard is part `part` of `parts`."""


@dataclass(frozen=True)
class Task:
    """A task for a worker."""

    shard: int
    job: Job
    memory: int  # bytes that it needs
    reads: tuple[int, ...] = ()  # the payoffs that it reads, by `PayoffPlace.tier`
    keep: PayoffPlace | None = None  # where its own payoffs are kept, if they are
    stage_file: str = ""  # the stage file that it reads, if any
    cores: int = 1  # number of cores to use


@dataclass(frozen=True, kw_only=True)
class Receipt:
    """The result of a task, made by the worker at the end."""

    shard: int
    solve_seconds: float
    files: dict[str, FileEntry] = field(default_factory=dict)
    """The requested files, by name."""
    process: str = field(default_factory=process_name)
    peak: MemoryUsed = field(default_factory=memory_used)
    """Peak memory of the process."""
    stage_file: str = ""
    """The stage file left on the machine's disk."""

    def with_files(
        self, storage: Storage, writer: str, written: Sequence[Written]
    ) -> tuple[Receipt, dict[str, bytes] | None]:
        """Return the receipt after moving files to the writer's places. If they were written to
        memory, also return their bytes by place, which are not in the table yet."""

        def put(file: Written) -> FileEntry:
            path = placed(file.entry.name, writer, file.entry.sha256)
            return put_file(storage, file, path)

        files = {entry.name: entry for entry in in_threads(put, written, PUT_AT_ONCE)}
        content = storage.objects if isinstance(storage, Memory) else None
        return replace(self, files=files), content

    def arrived(self, storage: Storage, content: Mapping[str, bytes]) -> Receipt:
        """Return the receipt after writing files whose bytes were returned, by place. Raises
        WorkerError if a file's hash is wrong."""
        for entry in self.files.values():
            if hashlib.sha256(content[entry.place]).hexdigest() != entry.sha256:
                raise WorkerError(
                    f"{entry.place}: its bytes changed on the way from {self.process}"
                )
            storage.put(entry.place, content[entry.place])
        return self


@dataclass(frozen=True)
class PayoffsReady:
    """The payoffs of a shard are ready for its readers; its file is still being written."""

    shard: int


class Workers(Protocol):
    """The driver's interface to workers. They keep payoffs of tiers if tasks request it, pass them
    to the tasks that read them, and drop them on request."""

    @property
    def slots(self) -> int:
        """The number of tasks they run at once; may change."""

    @property
    def widest(self) -> int:
        """The largest number of cores that a task can have on any machine."""

    def submit(self, task: Task) -> None:
        """Start a task. The payoffs that it reads must be kept."""

    def wait_one(self, seconds: float) -> Any:
        """Return the next event, or None if there is none in this time.

        An event is `PayoffsReady` for a kept shard (possibly several times), or a receipt. Raises
        the exception that a task raised.
        """

    def drop(self, tier: int) -> None:
        """Delete the payoffs of the tier with this index."""

    def delete(self, names: Iterable[str] | None = None) -> None:
        """Delete these stage files; without names, all temporary data."""

    def activity(self) -> list[dict[str, Any]]:
        """Return each machine's name, number of slots and running shards."""

    def check_memory(self, needed: int, smaller: str) -> None:
        """Raise MemoryLimitError if no machine has enough memory for a shard. smaller: a change
        that would take less."""

    def forget(self) -> None:
        """Cancel all tasks and delete all payoffs."""


class Threads:
    """Workers that are threads of this process. `close` ends them."""

    def __init__(self, count: int, pool: Pool, location: TableLocation) -> None:
        """pool: provides the arrays for kept payoffs."""
        self.slots = self.widest = count
        self._arrays, self._location = pool, location
        self._pool = ThreadPoolExecutor(count, thread_name_prefix="luckbase")
        self._stop = threading.Event()
        self._tasks: dict[Future[Any], int] = {}
        self._events: SimpleQueue[Any] = SimpleQueue()
        self._kept: dict[int, Floats] = {}

    def submit(self, task: Task) -> None:
        payoffs, out, keep = [self._kept[tier] for tier in task.reads], None, task.keep
        if keep is not None:
            if keep.tier not in self._kept:
                self._kept[keep.tier] = self._arrays.take(keep.shape)
            out = self._kept[keep.tier]
            out = out if keep.parts == 1 else out[slice(*keep.span)]
        future = self._pool.submit(self._work, task, payoffs, out)
        self._tasks[future] = task.shard
        future.add_done_callback(self._events.put)

    def _work(self, task: Task, payoffs: list[Floats], out: Floats | None) -> Any:
        steps = task.job.run(task, payoffs, out, self._stop.is_set)
        next(steps)
        if out is not None:
            self._events.put(PayoffsReady(task.shard))
        receipt, _ = next(steps)
        return receipt

    def wait_one(self, seconds: float) -> Any:
        try:
            event = self._events.get(timeout=seconds)
        except Empty:
            return None
        if not isinstance(event, Future):
            return event
        del self._tasks[event]
        return event.result()

    def drop(self, tier: int) -> None:
        self._arrays.give(self._kept.pop(tier))

    def delete(self, names: Iterable[str] | None = None) -> None:
        self._location.delete(names)

    def activity(self) -> list[dict[str, Any]]:
        return [{"node": "this process", "slots": self.slots, "shards": list(self._tasks.values())}]

    def check_memory(self, needed: int, smaller: str) -> None:
        """Nothing to do: `plan.check_room` checks before the solve."""

    def forget(self) -> None:
        for future in self._tasks:
            future.cancel()
        wait(self._tasks)
        self._tasks, self._events = {}, SimpleQueue()
        for tier in list(self._kept):
            self.drop(tier)

    def close(self) -> None:
        """Stop tasks between planes and wait for them."""
        self._stop.set()
        self._pool.shutdown(wait=True, cancel_futures=True)


def writable(array: Floats) -> Floats:
    """Return the same memory as a writable array, because compiled functions treat read-only arrays
    as another type and would be compiled again. They do not write to it."""
    if array.flags.writeable:
        return array
    interface = dict(array.__array_interface__)
    interface["data"] = interface["data"][0], False
    return np.asarray(SimpleNamespace(__array_interface__=interface, owner=array))


ROOMY = 1.5
"""A used array may be this many times as large as needed."""


class Pool:
    """The arrays of payoffs of a run. Not thread-safe.

    Touching fresh memory costs more than the kernel, so arrays are reused. Arrays beyond the pool's
    bytes are mapped from unnamed files, whose pages the system can evict.
    """

    def __init__(self, memory: int, folder: Path) -> None:
        """memory: bytes for arrays in memory.
        folder: the folder for larger ones.
        """
        self._memory, self._folder = memory, folder
        self._free: list[Floats] = []
        self._bytes = 0

    def take(self, shape: tuple[int, ...]) -> Floats:
        """Return an uninitialized array of this shape, a view of a buffer that `give` takes back.
        Raises OSError if the disk is full."""
        needed = int(np.prod(shape))
        fitting = [i for i, b in enumerate(self._free) if needed <= b.size <= ROOMY * needed]
        if fitting:
            buffer = self._free.pop(min(fitting, key=lambda i: self._free[i].size))
        else:
            while self._free and self._bytes + 8 * needed > self._memory:
                smallest = min(range(len(self._free)), key=lambda i: self._free[i].size)
                self._bytes -= self._free.pop(smallest).nbytes  # keep the largest: slow to touch
            if self._bytes + 8 * needed > self._memory:
                buffer = self._in_a_file(needed)
            else:
                buffer = np.empty(needed)
                self._bytes += buffer.nbytes
        return buffer[:needed].reshape(shape)

    def give(self, array: Floats) -> None:
        """Take back an array that is no longer read."""
        buffer = array.base
        if buffer is not None and buffer.base is None:  # a file ends with its last reader
            self._free.append(buffer)

    def _in_a_file(self, size: int) -> Floats:
        self._folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=self._folder) as file:
            needed = 8 * max(1, size)
            os.posix_fallocate(file.fileno(), 0, needed)  # a full disk raises an error here
            mapped = mmap.mmap(file.fileno(), needed)
        return np.frombuffer(mapped)
