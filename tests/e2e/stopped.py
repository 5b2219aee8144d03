"""A solve that is stopped half-way, as Ctrl+C does it."""

from __future__ import annotations

from pathlib import Path

import pytest

from luckbase import cluster
from luckbase.cluster.run.progress import Progress
from luckbase.solver.board.model import Board


def solve_until(board: Board, results: Path, shards: int, *, workers: int = 1) -> None:
    """Solve the board's full table until this many shards are done, and stop there."""

    def stop(now: Progress) -> None:
        if now.shards >= shards:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cluster.solve(board, results=results, workers=workers, on_progress=stop)
