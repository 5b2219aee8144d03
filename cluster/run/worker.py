"""What a worker does: solve one shard and write its files in temporary places.

`work` is the only function that runs elsewhere. A shard of a full table is a tier or a part of one
(`solve_shard`): it reads the children's payoffs from this run's scratch folder. A shard of a search
is a share of a level (`solve_subtrees`): everything below some states. Either way a receipt
comes back, no data: the disk is shared. The driver puts the files in their place.

A worker keeps the graph of a search from one of its shards to the next and takes in what others
have finished meanwhile, so it solves nothing twice that was finished when it began.
"""

from __future__ import annotations

import os
import resource
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from luckbase.cluster.run import scratch
from luckbase.cluster.search.merge import read_shard, solved_rows, write_shard
from luckbase.cluster.table.lines import FileEntry
from luckbase.cluster.table.sealed import SealedFile
from luckbase.cluster.table.storage import Folder
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
class Task:
    """One shard: a part of the tier with this index in the board's plan; what of it is wanted.

    run: this run's scratch folder. stored: the shard's committed file where that holds the kernel's
    own numbers: they are read back, and nothing is solved.
    """

    board: Board
    table: Path
    run: Path
    shard: int
    tier: int
    part: int
    commit: bool
    keep: bool
    margin: bool = False
    stored: FileEntry | None = None


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
    table: Path
    search: str
    shard: int
    name: str
    keys: Keys
    known: tuple[Known, ...]
    max_states: int
    tolerance: float


@dataclass(frozen=True)
class SubtreesReceipt:
    """What came of such a shard: states solved and edges expanded in it, its file."""

    shard: int
    states: int
    edges: int
    path: Path
    bytes: int
    sha256: str
    bytes_a_state: float
    solve_seconds: float
    process: int
    peak_memory: int


@dataclass(frozen=True)
class Receipt:
    """What came of a shard: its file (None if none was wanted), its kept payoffs (None if they were
    not wanted, or stand in their place already), seconds in the kernel, the process that solved
    it, the most memory that process has had (bytes), and what the game counted."""

    shard: int
    file: FileReceipt | None
    kept: Path | None
    solve_seconds: float
    process: int
    peak_memory: int
    tally: dict[str, float]


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


def work(task: Task | SubtreesTask, stop: Callable[[], bool] = lambda: False) -> Any:
    """Solve a shard of either kind; returns its receipt. Raises Stopped when told to stop."""
    return solve_shard(task, stop) if isinstance(task, Task) else solve_subtrees(task, stop)


@lru_cache(maxsize=2)
def _layout(board: Board) -> Layout[Any]:
    return load_layout(board)


def solve_shard(task: Task, stop: Callable[[], bool] = lambda: False) -> Receipt:
    """Solve a shard and write its files. Raises Stopped when told to stop."""
    layout = _layout(task.board)
    tier = layout.tiers()[task.tier]
    first, last = layout.parts(tier)[task.part]
    whole = last - first == layout.rows(tier)
    shape = layout.shape(tier)

    def fetch(child: Any) -> Floats:
        return scratch.read(scratch.tier_file(task.run, layout, child), layout.shape(child))

    started = time.perf_counter()
    error, decisions, tally = 0.0, None, {}
    if task.stored is not None:
        payoffs = _read_back(task, layout, tier)
    else:
        payoffs = _buffer("payoffs", shape if whole else (last - first, *shape[1:]))
        if task.commit:
            best = _buffer("best", (last - first,), np.int8)
            best.fill(-1)
            margin = _buffer("margin", (last - first,)) if task.margin else None
            if margin is not None:
                margin.fill(np.nan)
            decisions = Decisions(best, margin)
        error = layout.solve_tier(tier, payoffs, fetch, stop, task.part, decisions)
        tally = layout.take_tally(tier, task.part)
    seconds = time.perf_counter() - started
    kept = None
    if task.keep:
        path = scratch.tier_file(task.run, layout, tier)
        if whole:
            kept = scratch.write(payoffs, path)
        else:
            scratch.write_part(payoffs, path, first * (payoffs.size // (last - first)))
    file = None
    if decisions is not None:
        file = write_tier(Folder(task.table), layout, tier, payoffs, decisions, error, task.part)
    return Receipt(task.shard, file, kept, seconds, os.getpid(), peak_memory(), tally)


def _read_back(task: Task, layout: Layout[Any], tier: Any) -> Floats:
    """The kernel's own numbers from a committed file. Raises CorruptTableError."""
    assert task.stored is not None
    file = SealedFile(Folder(task.table), task.table, task.stored)
    names = payoff_columns(layout.game)
    groups = [file.read(number, names) for number in range(file.groups)]
    columns = [np.concatenate([g.column(name).to_numpy() for g in groups]) for name in names]
    file.close()
    return layout.kernel_payoffs(tier, columns)


def solve_subtrees(task: SubtreesTask, stop: Callable[[], bool] = lambda: False) -> SubtreesReceipt:
    """Solve what lies below a share of a level and write what was not known of it."""
    graph, taken = _graph_of(task, stop)
    started = time.perf_counter()
    for one in task.known:
        if one.name not in taken:
            known = read_shard(Folder(task.table), one.name, one.sha256)
            graph.know(known.keys, known.values, known.best, known.margin, known.actor)
            taken.add(one.name)
    before, edges = graph.count, graph.edges
    del _own.graph  # should this one be stopped half-way
    graph.solve(unpack_all(graph.game.bits, np.array(task.keys)))  # Ray's arrays can not be written
    _own.graph = (task.search, graph, taken)
    taken.add(task.name)
    seconds = time.perf_counter() - started
    solved = solved_rows(graph, before)
    path, size, sha256 = write_shard(Folder(task.table), task.name, solved)
    return SubtreesReceipt(
        task.shard, len(solved), graph.edges - edges, path, size, sha256, graph.bytes_a_state,
        seconds, os.getpid(), peak_memory(),
    )  # fmt: skip


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
