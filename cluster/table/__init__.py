"""Tables, on disk (format 4) and in memory: what is in a folder, and who reads and writes it.

One folder holds everything that was solved under one rules identity (`solver.board.model`)::

    results/<game>/<board>/<rules identity>/
        table.json            the head (`ledger`): which board and rules; never changes
        ledger/0000000001, …  what is committed: sealed lines (`ledger`, `entries`)
        tiers/*.parquet       the full table: one file a tier, or a part of one (`format`)
        search/*.parquet      what lies below the roots of searches, rows by key
        search-<id>/*.parquet of one search that ends at another table
        spill/, running.json  while a solve runs; worth nothing afterwards
        log/*.log             what happened while one ran
        lock.json             who is solving now (`cluster.run.lock`)

Version history: 1 (2026-11) first. 2 (2026-11) tables of roots, parts, an error a file. 3 (2026-11)
one folder a rules identity, a ledger that only grows, every row group sealed, `best`, `to_act`,
`margin`, all state columns in the file. 4 (2026-11) numbered entries with fences, which object
stores keep as well; no file is ever overwritten.
"""

from collections.abc import Callable
from typing import Literal

FORMAT = 4
FILE_FORMAT = "3"
"""Of the Parquet files, whose bytes have not changed since."""
RUNNING = "running.json"
Condition = Literal["complete", "partial", "stale", "damaged", "refused", "missing"]
"""Of a table."""
OnRows = Callable[[int, int], None]
"""Told how many rows were gone through, and of how many; (0, …) when that begins."""


def nobody(done: int, total: int) -> None:
    """Nobody is told."""
