"""A solve that is stopped half-way, as Ctrl+C does it."""

import pytest

from luckbase import cluster


def solve_until(board, results, shards, *, workers=1):
    """Solve the board's full table until this many shards are done, and stop there."""

    def stop(now):
        if now.shards >= shards:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cluster.solve(board, results=results, workers=workers, on_progress=stop)
