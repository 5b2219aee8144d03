"""What a worker does: solve one shard; its file, its payoffs and a receipt come back.

`work` is the only function that runs elsewhere. A shard of a full table is a tier or a part of one
(`solve_shard`): its children's payoffs are handed to it. Shards of a search are of two kinds
(`cluster.search.tasks`). A file is written in a temporary place of the table's folder where
this machine shares that, which a mark in it says, for the driver to put in its place; else its
bytes come back.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from luckbase.cluster.machine import MemoryUsed, cores, memory_used
from luckbase.cluster.table.format import FileReceipt, write_tier
from luckbase.cluster.table.ledger import TIERS, FileEntry
from luckbase.cluster.table.parquet import SealedFile, numbers_of, payoff_columns, seal_file
from luckbase.cluster.table.storage import Folder, Memory, Storage
from luckbase.solver import load_layout
from luckbase.solver.board.model import Board
from luckbase.solver.errors import WorkerError
from luckbase.solver.game.arrays import Decisions, Floats
from luckbase.solver.game.capabilities import Layout


@dataclass(frozen=True)
class Home:
    """Where a table lies: its folder, and the name of a file there by which a machine that shares
    the folder knows it."""

    table: Path
    mark: str

    @contextmanager
    def storage(self) -> Iterator[Storage]:
        """The folder where this machine shares it, else memory."""
        if (self.table / self.mark).exists():
            yield Folder(self.table)
            return
        memory = Memory()
        try:
            yield memory
        finally:
            memory.close()


class AnyTask(Protocol):
    """What a worker is handed. keep: whether its payoffs are to be kept, as part `part` of so many
    of `tier`; shape: of the whole of those, span: its rows in them. reads: whose payoffs it is
    handed. memory: bytes that it takes. stored: set where its payoffs are read back only. needs:
    the files that it reads; used: the other table that it asks, if any. place: where its own goes,
    about."""

    @property
    def shard(self) -> int: ...
    @property
    def memory(self) -> int: ...
    @property
    def keep(self) -> bool: ...
    @property
    def stored(self) -> Any: ...
    @property
    def tier(self) -> int: ...
    @property
    def part(self) -> int: ...
    @property
    def parts(self) -> int: ...
    @property
    def reads(self) -> tuple[int, ...]: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def span(self) -> tuple[int, int]: ...
    @property
    def needs(self) -> tuple[str, ...]: ...
    @property
    def used(self) -> Any: ...
    @property
    def place(self) -> str: ...

    def compile(self) -> None:
        """Compile, or load, what it needs."""

    def run(
        self, given: Sequence[Any], out: Floats | None, stop: Callable[[], bool]
    ) -> Iterator[Any]:
        """Do it; yields as `work`."""


@dataclass(frozen=True)
class Task:
    """One shard of a full table: a part, of so many, of the tier with this index in the board's
    plan; what of it is wanted: its file (commit), its payoffs (keep).

    span: its rows in the tier. shape: of the whole tier's payoffs. reads: the tiers, by index,
    whose payoffs it is handed. memory: bytes that it takes. stored: the shard's committed file
    where that holds the kernel's own numbers: they are read back, and nothing is solved. threads:
    that solve it, at most; 0 for as many as its machine has cores.
    """

    board: Board
    home: Home
    shard: int
    tier: int
    part: int
    parts: int
    span: tuple[int, int]
    shape: tuple[int, ...]
    reads: tuple[int, ...]
    commit: bool
    keep: bool
    memory: int
    margin: bool = False
    stored: FileEntry | None = None
    threads: int = 0
    used: None = None

    @property
    def place(self) -> str:
        """Where its file goes, about."""
        return f"{TIERS}/shard-{self.shard}"

    @property
    def needs(self) -> tuple[str, ...]:
        """The files that it reads."""
        return () if self.stored is None else (self.stored.name,)

    def compile(self) -> None:
        """Compile, or load, what it needs."""
        layout_of(self.board).compile()

    def run(
        self, given: Sequence[Any], out: Floats | None, stop: Callable[[], bool]
    ) -> Iterator[Any]:
        """Solve the shard, or read it back; yields as `work`."""
        if self.stored is not None:
            return _read_back(self, given, out)
        return solve_shard(self, given, out, stop)

    @property
    def own_shape(self) -> tuple[int, ...]:
        """The shape of its payoffs."""
        return self.shape if self.parts == 1 else (self.span[1] - self.span[0], *self.shape[1:])


@dataclass(frozen=True)
class Receipt:
    """What came of a shard: its file (None if none was wanted), seconds in the kernel, the process
    that solved it, the most memory that one has had, and what the game counted.
    sent: whether the file's bytes came back, and it stands in no folder. missing: nothing came of
    it, for a file that it reads is not to be seen there. node: Ray's id of the machine; "" for this
    one."""

    shard: int
    file: FileReceipt | None
    solve_seconds: float
    process: str
    peak: MemoryUsed
    tally: dict[str, float]
    sent: bool = False
    missing: bool = False
    node: str = ""

    def at(self, path: Path) -> Receipt:
        """The same with its file somewhere else. Raises WorkerError where it changed."""
        file = self.file
        assert file is not None
        if seal_file(path) != (file.bytes, file.footer, file.checks):
            raise WorkerError(f"{path}: its bytes changed on the way from node {self.node}")
        return replace(self, file=replace(file, path=path))


@dataclass(frozen=True)
class Handed:
    """The payoffs of a shard are there, for those that read them; its file is being written."""

    shard: int


@dataclass(frozen=True)
class Result:
    """What a worker gives back at the end: a receipt; the bytes of the shard's file where the
    table's folder is not shared."""

    receipt: Any
    content: bytes | None = None


_own = threading.local()


def _buffer(name: str, shape: tuple[int, ...], kind: Any = np.float64) -> NDArray[Any]:
    """This worker's buffer, the size it needs; touching fresh memory costs more than the kernel."""
    size = int(np.prod(shape))
    held: NDArray[Any] | None = getattr(_own, name, None)
    if held is None or held.size < size:
        setattr(_own, name, None)  # let go of the old one first
        held = np.empty(size, kind)
        setattr(_own, name, held)
    return held[:size].reshape(shape)


def work(
    task: AnyTask,
    given: Sequence[Any],
    out: Floats | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> Iterator[Any]:
    """Do a task; yields its payoffs, None where they are not to be kept, and once its file is
    written a `Result`. Raises Stopped when told to stop.

    given: the payoffs of what it reads, then the bytes of the files that it needs, where they were
    asked for. out: where its payoffs are to stand.
    """
    memory_used()  # from here on it is looked at
    return task.run(given, out, stop)


def process_name() -> str:
    """This process among those of all machines."""
    return f"{socket.gethostname()} {os.getpid()}"


@lru_cache(maxsize=2)
def layout_of(board: Board) -> Layout[Any]:
    """The layout of a board, kept from one shard to the next."""
    return load_layout(board)


def solve_shard(
    task: Task, given: Sequence[Floats], out: Floats | None, stop: Callable[[], bool]
) -> Iterator[Any]:
    """Solve a shard, then write its file; yields as `work`."""
    layout = layout_of(task.board)
    tiers = layout.tiers()
    tier = tiers[task.tier]
    layout.threads = task.threads or cores()
    below = {
        tiers[i]: writable(payoffs).reshape(layout.shape(tiers[i]))
        for i, payoffs in zip(task.reads, given, strict=True)
    }
    started = time.perf_counter()
    payoffs = _buffer("payoffs", task.own_shape) if out is None else out
    decisions, rows = None, task.span[1] - task.span[0]
    if task.commit:
        best = _buffer("best", (rows,), np.int8)
        best.fill(-1)
        margin = _buffer("margin", (rows,)) if task.margin else None
        if margin is not None:
            margin.fill(np.nan)
        decisions = Decisions(best, margin)
    error = layout.solve_tier(tier, payoffs, below.__getitem__, stop, task.part, decisions)
    tally = layout.take_tally(tier, task.part)
    seconds = time.perf_counter() - started
    yield payoffs if task.keep else None
    file, content = None, None
    if decisions is not None:
        with task.home.storage() as storage:
            file = write_tier(storage, layout, tier, payoffs, decisions, error, task.part)
            if isinstance(storage, Memory):
                content = file.path.read_bytes()
    sent = content is not None
    receipt = Receipt(task.shard, file, seconds, process_name(), memory_used(), tally, sent)
    yield Result(receipt, content)


def nothing_seen(shard: int) -> Iterator[Any]:
    """What a task yields whose files are not to be seen on its machine: it asks for them."""
    yield None
    yield Result(Receipt(shard, None, 0.0, process_name(), memory_used(), {}, missing=True))


def source_of(task: AnyTask, storage: Storage, contents: Sequence[Any]) -> Storage | None:
    """Where the files are that a task needs: in the table's folder, or among what it was handed;
    None where they are not to be seen. storage: as of `Home.storage`."""
    if contents:
        return Memory(dict(zip(task.needs, contents, strict=True)))
    return None if task.needs and isinstance(storage, Memory) else storage


def _read_back(task: Task, given: Sequence[bytes], out: Floats | None) -> Iterator[Any]:
    """The kernel's own numbers from a committed file; yields as `work`.

    Raises CorruptTableError."""
    entry, layout = task.stored, layout_of(task.board)
    assert entry is not None
    seconds = time.perf_counter()
    with task.home.storage() as storage:
        source = source_of(task, storage, given)
        if source is None:
            yield from nothing_seen(task.shard)
            return
        payoffs = np.empty(task.own_shape) if out is None else out
        planes = layout.kernel_planes(layout.tiers()[task.tier])
        flat = payoffs.reshape(len(planes), -1)
        names = payoff_columns(layout.game)
        read = [names[player] for player in planes if player >= 0]
        file, at = SealedFile(source, task.home.table, entry), 0
        for number in range(file.groups):
            group = file.read(number, read)
            rows = slice(at, at + group.num_rows)
            for plane, player in zip(flat, planes, strict=True):
                plane[rows] = numbers_of(group.column(names[player])) if player >= 0 else 0.0
            at = rows.stop
        file.close()
    seconds = time.perf_counter() - seconds
    yield payoffs
    yield Result(Receipt(task.shard, None, seconds, process_name(), memory_used(), {}))


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


def writable(array: Floats) -> Floats:
    """The same memory for compiled code, which takes an array that can not be written to for
    another type and compiles anew. Nothing writes to it."""
    return array if array.flags.writeable else np.asarray(_Unlocked(array))


class _Unlocked:
    def __init__(self, array: Floats) -> None:
        self._array = array  # whose memory must stay
        about = dict(array.__array_interface__)
        self.__array_interface__ = about | {"data": (about["data"][0], False)}
