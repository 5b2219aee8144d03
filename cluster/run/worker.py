"""What a worker does: one task; its payoffs, its file and a receipt come back.

A **task** says where the payoffs are that it reads, and where its own are to stand; the **job** in
it is what is done, wherever that is: to solve a tier or a part of one (`tiers`), or what a search
by stages has to do (`cluster.search.tasks`). The worker puts its file in its place where its
machine sees the table: a URI, or a folder that is shared, which a file in it tells. Else the bytes
come back to the driver. What is needed only while it is solved, stage files and payoffs that spill,
lies on each machine's own disk (`TableLocation.scratch`).

Workers are threads of this process (`Threads`), or those that Ray places (`ray`). The kernel and
the Parquet writer let go of Python's lock, so threads use all cores.
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
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from queue import Empty, SimpleQueue
from types import SimpleNamespace
from typing import Any, Protocol

import numpy as np

from luckbase.cluster.machine import MemoryUsed, memory_used, process_name
from luckbase.cluster.table.format import Written, put_file
from luckbase.cluster.table.manifest import FileEntry, placed
from luckbase.cluster.table.storage import Folder, Memory, Storage, in_threads, is_uri, storage_at
from luckbase.solver.errors import WorkerError
from luckbase.solver.game.arrays import Floats

PUT_AT_ONCE = 4
"""Files of a task: an object store takes its time for each."""
Stop = Callable[[], bool]
Sent = Mapping[str, bytes]
"""The files of the table that were sent with a task, by name."""
Out = Floats | None
"""Where a job's own payoffs are to stand, if that is said."""
Steps = Iterator[Any]
"""What a job yields: its own payoffs, None where they are not to be kept, and once its files are
written a receipt, with their bytes by place where those are to be sent."""


class PayoffsLostError(WorkerError):
    """Payoffs or stage files were lost with their machines: they are made again."""


class NotSeenError(WorkerError):
    """A job reads files that its machine does not see: they have to be sent with it."""

    def __init__(self, names: tuple[str, ...]) -> None:
        super().__init__("files of the table that are read are not to be seen any more")
        self.names = names


@dataclass(frozen=True)
class TableLocation:
    """Where a table lies: its folder or URI, and the name of a file in the folder by which a
    machine that shares it knows it. apart: the folder, on each machine's own disk, of what is
    needed only while it is solved; "" where that lies with the table. writer: the id of the
    driver's writer (`cluster.table.writer`)."""

    table: Path
    probe_file: str
    apart: str = ""
    writer: str = ""

    @property
    def scratch(self) -> Path:
        """Where this machine keeps what is needed only while the table is solved."""
        return Path(tempfile.gettempdir()) / self.apart if self.apart else self.table

    @property
    def spill(self) -> Path:
        """Where payoffs lie that do not fit in the memory of this machine."""
        return self.spill_of(self.writer)

    def spill_of(self, writer: str) -> Path:
        """Return the same of a writer."""
        return self.scratch / f"spill.{writer}"

    @contextmanager
    def stage_file(self, place: str) -> Iterator[Path]:
        """A temporary file of this machine's for `place`, gone at the end. Raises OSError that says
        which disk is full."""
        path = self.scratch / place
        try:
            if self.apart:
                self.scratch.mkdir(mode=0o700, exist_ok=True)  # in a folder that is everybody's
            path = Folder(self.scratch).temporary(place)
            yield path
        except OSError as error:
            if not self.apart:
                raise
            where = f"{path.parent} on {socket.gethostname()}"
            raise OSError(error.errno, error.strerror or str(error), where) from None
        finally:
            path.unlink(missing_ok=True)

    def keep(self, name: str, path: Path) -> None:
        """Put a stage file in the folder where this machine keeps them. It is not flushed: after a
        power cut its states are found again."""
        os.replace(path, self.scratch / name)

    def read(self, name: str) -> bytes | None:
        """A stage file that this machine has; None where it has not."""
        with suppress(FileNotFoundError):
            return Folder(self.scratch).read(name)
        return None

    def delete(self, names: Iterable[str] | None = None) -> None:
        """Delete stage files of this machine's; without names, all that lies apart."""
        if names is None and self.apart:
            shutil.rmtree(self.scratch, ignore_errors=True)
        for name in names or ():
            Folder(self.scratch).delete(name)

    @property
    def shared(self) -> bool:
        """Whether this machine sees it."""
        return is_uri(self.table) or (self.table / self.probe_file).exists()

    def source(self, names: Sequence[str], sent: Sent) -> Storage:
        """Where these files are read: in the folder, or among what was sent. Raises
        NotSeenError."""
        if sent.keys() & set(names):
            return Memory(sent)
        if names and not self.shared:
            raise NotSeenError(tuple(names))
        return storage_at(self.table)

    @contextmanager
    def storage(self) -> Iterator[Storage]:
        """Where a file is written: the table where this machine sees it, else memory."""
        if self.shared:
            yield storage_at(self.table)
            return
        memory = Memory()
        try:
            yield memory
        finally:
            memory.close()


class Job(Protocol):
    """What a task does. Picklable."""

    def compile(self) -> None:
        """Compile, or load, what it needs."""

    def run(self, payoffs: Sequence[Any], sent: Sent, out: Out, stop: Stop) -> Steps:
        """Do it. payoffs: of each tier that it reads, an array, or the arrays of its parts by
        number. Raises Stopped soon after `stop()` turns true; before it yields anything,
        NotSeenError."""


@dataclass(frozen=True)
class PayoffPlace:
    """Where the payoffs of a shard are kept for others: rows `span` of those of a tier, an array of
    this shape, as part `part` of so many."""

    tier: int
    shape: tuple[int, ...]
    span: tuple[int, int]
    part: int = 0
    parts: int = 1


@dataclass(frozen=True)
class Task:
    """What a worker is handed. memory: bytes that it takes. reads: the payoffs that it is handed,
    by `PayoffPlace.tier`. keep: where its own are kept, if they are. stage_file: that it reads, if
    any. cores: of its machine. early: whether what it yields first is for the driver."""

    shard: int
    job: Job
    memory: int
    reads: tuple[int, ...] = ()
    keep: PayoffPlace | None = None
    stage_file: str = ""
    cores: int = 1
    early: bool = False


@dataclass(frozen=True, kw_only=True)
class Receipt:
    """The result of a task, made by the worker when all is done."""

    shard: int
    solve_seconds: float
    files: dict[str, FileEntry] = field(default_factory=dict)
    """Those that were requested, by their names."""
    process: str = field(default_factory=process_name)
    peak: MemoryUsed = field(default_factory=memory_used)
    """The most memory that the process has had."""
    sent: bool = False
    """Whether the bytes of the files came back, and they stand in no folder."""
    stage_file: str = ""
    """That it left on that machine's disk."""

    def with_files(
        self, storage: Storage, writer: str, written: Sequence[Written]
    ) -> tuple[Receipt, dict[str, bytes] | None]:
        """The same once files are in their places, the writer's; where they were written to
        memory, their bytes."""

        def put(file: Written) -> FileEntry:
            at = placed(file.entry.name, writer)
            return file.entry.placed(at) if in_memory else put_file(storage, at, file)

        in_memory = isinstance(storage, Memory)
        files = {entry.name: entry for entry in in_threads(put, written, PUT_AT_ONCE)}
        content = {files[entry.name].place: path.read_bytes() for entry, path in written
                   if in_memory}  # fmt: skip
        return replace(self, files=files, sent=in_memory), content if in_memory else None

    def arrived(self, storage: Storage, content: Mapping[str, bytes]) -> Receipt:
        """The same once its files, whose bytes came here by place, are in their places. Raises
        WorkerError where one changed."""
        files = {}
        for name, entry in self.files.items():
            path = storage.written(entry.place, content[entry.place])
            if hashlib.sha256(content[entry.place]).hexdigest() != entry.sha256:
                raise WorkerError(f"{path}: its bytes changed on the way from {self.process}")
            files[name] = put_file(storage, entry.place, Written(entry, path))
        return replace(self, files=files)


@dataclass(frozen=True)
class PayoffsReady:
    """The payoffs of a shard are there, for those that read them; its file is being written."""

    shard: int


class Workers(Protocol):
    """What the driver asks of workers. They keep the payoffs of tiers whose tasks say so, hand them
    to the tasks that read them, and drop them on request."""

    @property
    def slots(self) -> int:
        """How many tasks they do at once; may change."""

    @property
    def widest(self) -> int:
        """The most cores that a task can have on any machine."""

    def submit(self, task: Task) -> None:
        """Hand out a task. What it reads must be kept."""

    def wait_one(self, seconds: float) -> Any:
        """`PayoffsReady`, of a shard that is kept, or what a task said early, once at least; or a
        receipt; None when none came in that time. Raises what the task raised."""

    def drop(self, tier: int) -> None:
        """Nobody reads the payoffs of the tier with this index any more."""

    def delete(self, names: Iterable[str] | None = None) -> None:
        """Nobody needs these stage files any more; without names, all that lies apart."""

    def doing(self) -> list[dict[str, Any]]:
        """What each machine does: name, slots, shards."""

    def check_memory(self, needed: int, smaller: str) -> None:
        """Raises MemoryLimitError where no machine has so many bytes for a shard; smaller: what
        would take less."""

    def forget(self) -> None:
        """Let go of all tasks and payoffs."""


class Threads:
    """Workers in this process; `close` ends them."""

    def __init__(self, count: int, pool: Pool, location: TableLocation) -> None:
        """pool: of the arrays in which payoffs are kept."""
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
        steps = task.job.run(payoffs, {}, out, self._stop.is_set)
        first = next(steps)
        if task.early or out is not None:
            self._events.put(first if task.early else PayoffsReady(task.shard))
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

    def doing(self) -> list[dict[str, Any]]:
        return [{"node": "this process", "slots": self.slots, "shards": list(self._tasks.values())}]

    def check_memory(self, needed: int, smaller: str) -> None:
        """Checked before (`tiers.check_room`)."""

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
    """The same memory for compiled code, which takes an array that can not be written to for
    another type and compiles anew. Nothing writes to it."""
    if array.flags.writeable:
        return array
    interface = dict(array.__array_interface__)
    interface["data"] = interface["data"][0], False
    return np.asarray(SimpleNamespace(__array_interface__=interface, owner=array))


ROOMY = 1.5
"""So many times what is needed a used array may have."""


class Pool:
    """Arrays of payoffs for one run; one thread at a time takes and gives back.

    To touch fresh memory costs more than the kernel, so what nobody reads any more is used again.
    What is beyond the pool's bytes lies in files without a name, whose pages the system may let go
    of.
    """

    def __init__(self, memory: int, folder: Path, kind: Any = np.float64) -> None:
        """memory: bytes that arrays may have; folder: where what is beyond lies; kind: of the
        arrays' numbers."""
        self._memory, self._folder, self._kind = memory, folder, np.dtype(kind)
        self._free: list[Floats] = []
        self._bytes = 0

    def take(self, shape: tuple[int, ...]) -> Floats:
        """An array of this shape, a view of a buffer that `give` takes back; what stands in it is
        anything. Raises OSError where the disk is full."""
        needed = int(np.prod(shape))
        fitting = [i for i, b in enumerate(self._free) if needed <= b.size <= ROOMY * needed]
        if fitting:
            buffer = self._free.pop(min(fitting, key=lambda i: self._free[i].size))
        else:
            while self._free and self._bytes + self._kind.itemsize * needed > self._memory:
                smallest = min(range(len(self._free)), key=lambda i: self._free[i].size)
                self._bytes -= self._free.pop(smallest).nbytes  # the dearest to touch again stays
            if self._bytes + self._kind.itemsize * needed > self._memory:
                buffer = self._in_a_file(needed)
            else:
                buffer = np.empty(needed, self._kind)
                self._bytes += buffer.nbytes
        return buffer[:needed].reshape(shape)

    def give(self, array: Floats) -> None:
        """Nobody reads this any more."""
        buffer = array.base
        if buffer is not None and buffer.base is None:  # one in a file goes with its last reader
            self._free.append(buffer)

    def _in_a_file(self, size: int) -> Floats:
        self._folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=self._folder) as file:
            needed = self._kind.itemsize * max(1, size)
            os.posix_fallocate(file.fileno(), 0, needed)  # a full disk says so here
            mapped = mmap.mmap(file.fileno(), needed)
        return np.frombuffer(mapped, self._kind)
