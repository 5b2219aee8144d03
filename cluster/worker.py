"""What a worker does: solve one shard and write its files beside their places.

`solve_shard` is the only function that runs elsewhere. It reads the children's payoffs from the
table's scratch folder and returns a receipt, no data: the disk is shared. The driver puts the files
in their place.
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
from typing import Any

import numpy as np

from cluster.store import (
    FileReceipt,
    beside,
    read_scratch,
    scratch_file,
    tier_file,
    tier_folder,
    write_scratch,
    write_tier,
)
from solver import load_tiered_game
from solver.board import Board
from solver.game import Floats, TieredGame


@dataclass(frozen=True)
class Task:
    """One shard: the tier with this index in the board's plan; what of it is wanted."""

    board: Board
    table: Path
    shard: int
    commit: bool
    keep: bool


@dataclass(frozen=True)
class Receipt:
    """What came of a shard: its file (None if none was wanted), seconds in the kernel, the process
    that solved it and the most memory that process has had (bytes)."""

    shard: int
    file: FileReceipt | None
    solve_seconds: float
    process: int
    peak_memory: int


_own = threading.local()


def _buffer(shape: tuple[int, ...]) -> Floats:
    """This worker's buffer, the size it needs; touching fresh memory costs more than the kernel."""
    size = int(np.prod(shape))
    held: Floats | None = getattr(_own, "buffer", None)
    if held is None or held.size < size:
        _own.buffer = held = None  # let go of the old one first
        held = _own.buffer = np.empty(size)
    return held[:size].reshape(shape)


@lru_cache(maxsize=2)
def _game(board: Board) -> TieredGame[Any]:
    return load_tiered_game(board)


def solve_shard(task: Task, stop: Callable[[], bool] = lambda: False) -> Receipt:
    """Solve a shard and write its files beside their places. Raises Stopped when told to stop."""
    game = _game(task.board)
    tier = game.tiers()[task.shard]
    folder = tier_folder(game, tier)

    def fetch(child: Any) -> Floats:
        return read_scratch(scratch_file(task.table, tier_folder(game, child)), game.shape(child))

    started = time.perf_counter()
    payoffs = _buffer(game.shape(tier))
    game.solve_tier(tier, payoffs, fetch, stop)
    seconds = time.perf_counter() - started
    if task.keep:
        write_scratch(payoffs, beside(scratch_file(task.table, folder)))
    file = None
    if task.commit:
        file = write_tier(game, tier, payoffs, beside(tier_file(task.table, folder)))
    return Receipt(task.shard, file, seconds, os.getpid(), peak_memory())


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
