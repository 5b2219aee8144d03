"""What a worker does: solve one shard; its file, its payoffs and a receipt come back.

`work` is the only function that runs elsewhere. A shard of a full table is a tier or a part of one
(`solve_shard`): its children's payoffs are handed to it. A shard of a search is a share of a level
(`solve_subtrees`): everything below some states. The file is written in a temporary place of the
table's folder where this machine shares that, which a mark in it says, for the driver to put in its
place; else its bytes come back.

A worker keeps the graph of a search from one of its shards to the next and takes in what others
have finished meanwhile, so it solves nothing twice that was finished when it began.
"""

from __future__ import annotations

import os
import resource
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from luckbase.cluster.run.machine import cores
from luckbase.cluster.run.payoffs import writable
from luckbase.cluster.search.merge import read_shard, shard_name, solved_rows, write_shard
from luckbase.cluster.table.lines import FileEntry
from luckbase.cluster.table.sealed import SealedFile
from luckbase.cluster.table.storage import Folder, Memory, Storage
from luckbase.cluster.table.write import FileReceipt, payoff_columns, write_tier
from luckbase.solver import load_game, load_layout
from luckbase.solver.board.model import Board
from luckbase.solver.game.arrays import Floats
from luckbase.solver.game.capabilities import Layout
from luckbase.solver.game.decisions import Decisions
from luckbase.solver.graph.keys import Keys, unpack_all

if TYPE_CHECKING:
    from luckbase.solver.graph.game_graph import Graph


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


@dataclass(frozen=True)
class Task:
    """One shard: a part, of so many, of the tier with this index in the board's plan; what of it is
    wanted: its file (commit), its payoffs (keep).

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

    @property
    def own_shape(self) -> tuple[int, ...]:
        """The shape of its payoffs."""
        return self.shape if self.parts == 1 else (self.span[1] - self.span[0], *self.shape[1:])


@dataclass(frozen=True)
class Known:
    """A file of payoffs that need not be solved again, with its SHA-256."""

    name: str
    sha256: str


@dataclass(frozen=True)
class SubtreesTask:
    """One shard of a search: everything below the states with these keys.

    search: names the search; what a worker has of another is forgotten. known: what need not be
    solved again. tolerance: actions closer than this are tied.
    """

    board: Board
    home: Home
    search: str
    shard: int
    name: str
    keys: Keys
    known: tuple[Known, ...]
    max_states: int
    tolerance: float


@dataclass(frozen=True)
class SubtreesReceipt:
    """What came of such a shard: states solved and edges expanded in it, its file. sent: as of a
    `Receipt`."""

    shard: int
    states: int
    edges: int
    path: Path
    bytes: int
    sha256: str
    bytes_a_state: float
    solve_seconds: float
    process: str
    peak_memory: int
    sent: bool = False
    node: str = ""


@dataclass(frozen=True)
class Receipt:
    """What came of a shard: its file (None if none was wanted), seconds in the kernel, the process
    that solved it, the most memory that process has had (bytes), and what the game counted.
    sent: whether the file's bytes came back, and it stands in no folder. missing: nothing came of
    it, for its stored file is not to be seen there. node: Ray's id of the machine; "" for this
    one."""

    shard: int
    file: FileReceipt | None
    solve_seconds: float
    process: str
    peak_memory: int
    tally: dict[str, float]
    sent: bool = False
    missing: bool = False
    node: str = ""


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
    task: Task | SubtreesTask,
    given: Sequence[Any],
    out: Floats | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> Iterator[Any]:
    """Solve a shard of either kind; yields its payoffs, None where they are not to be kept, and
    once its file is written a `Result`. Raises Stopped when told to stop.

    given: the payoffs of the tiers that it reads, or the bytes of what is known to a search, empty
    where its folder has them; of a stored shard the bytes of its file, where they were asked for.
    out: where its payoffs are to stand.
    """
    if isinstance(task, SubtreesTask):
        yield None
        yield solve_subtrees(task, given, stop)
    elif task.stored is not None:
        yield from _read_back(task, given, out)
    else:
        yield from solve_shard(task, given, out, stop)


def compile_for(task: Task | SubtreesTask) -> None:
    """Compile, or load, what such a task needs."""
    if isinstance(task, Task):
        layout_of(task.board).compile()
        return
    from luckbase.cluster.search.roots import warm_up

    warm_up(load_game(task.board))


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
    receipt = Receipt(task.shard, file, seconds, process_name(), peak_memory(), tally, sent)
    yield Result(receipt, content)


def _read_back(task: Task, given: Sequence[bytes], out: Floats | None) -> Iterator[Any]:
    """The kernel's own numbers from a committed file; yields as `work`.

    Raises CorruptTableError."""
    entry, layout = task.stored, layout_of(task.board)
    assert entry is not None
    seconds = time.perf_counter()
    with task.home.storage() as storage:
        if isinstance(storage, Memory) and not given:
            missing = Receipt(
                task.shard, None, 0.0, process_name(), peak_memory(), {}, missing=True
            )
            yield None
            yield Result(missing)
            return
        if given:
            storage = Memory({entry.name: given[0]})
        file = SealedFile(storage, task.home.table, entry)
        names = payoff_columns(layout.game)
        groups = [file.read(number, names) for number in range(file.groups)]
        columns = [np.concatenate([g.column(name).to_numpy() for g in groups]) for name in names]
        file.close()
    payoffs = layout.kernel_payoffs(layout.tiers()[task.tier], columns).reshape(task.own_shape)
    if out is not None:
        out[...] = payoffs
        payoffs = out
    seconds = time.perf_counter() - seconds
    yield payoffs
    yield Result(Receipt(task.shard, None, seconds, process_name(), peak_memory(), {}))


def solve_subtrees(task: SubtreesTask, given: Sequence[bytes], stop: Callable[[], bool]) -> Result:
    """Solve what lies below a share of a level and write what was not known of it."""
    graph, taken = _graph_of(task, stop)
    started = time.perf_counter()
    sent = {shard_name(k.name): content for k, content in zip(task.known, given, strict=False)}
    from_where: Storage = Memory(sent) if sent else Folder(task.home.table)
    for one in task.known:
        if one.name not in taken:
            known = read_shard(from_where, one.name, one.sha256)
            graph.know(known.keys, known.values, known.best, known.margin, known.actor)
            taken.add(one.name)
    before, edges = graph.count, graph.edges
    del _own.graph  # should this one be stopped half-way
    graph.solve(unpack_all(graph.game.bits, np.array(task.keys)))  # Ray's arrays can not be written
    _own.graph = (task.search, graph, taken)
    taken.add(task.name)
    seconds = time.perf_counter() - started
    solved = solved_rows(graph, before)
    content = None
    with task.home.storage() as storage:
        path, size, sha256 = write_shard(storage, task.name, solved)
        if isinstance(storage, Memory):
            content = path.read_bytes()
    receipt = SubtreesReceipt(
        task.shard, len(solved), graph.edges - edges, path, size, sha256, graph.bytes_a_state,
        seconds, process_name(), peak_memory(), content is not None,
    )  # fmt: skip
    return Result(receipt, content)


def _graph_of(task: SubtreesTask, stop: Callable[[], bool]) -> tuple[Graph, set[str]]:
    """This worker's graph of the search, and what it has taken in."""
    from luckbase.solver.graph.game_graph import (
        Graph,  # compiles the search, which a full table does not need
    )

    held = getattr(_own, "graph", None)
    if held is None or held[0] != task.search:
        _own.graph = None  # let go of the old one first
        graph = Graph(
            load_game(task.board), tolerance=task.tolerance, max_states=task.max_states, stop=stop
        )
        held = _own.graph = (task.search, graph, set())
    held[1].stop = stop
    return held[1], held[2]


def peak_memory() -> int:
    """The most memory that this process has had, in bytes."""
    try:  # getrusage counts what the parent had when it started this process
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) << 10
    except OSError:
        pass
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
