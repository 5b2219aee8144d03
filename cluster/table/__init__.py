"""Tables, on disk (format 5) and in memory: what is in a folder, and who reads and writes it.

docs/reference/table-format.md has the folder, and each of its files. Version history: 1 (2026-11)
first. 2 tables of roots, parts, an error a file. 3 one folder a rules identity, a ledger that only
grows, every row group sealed, all state columns in the file. 4 (2026-11) numbered entries with
fences, which object stores keep as well; no file is ever overwritten. 5 (2026-11) files are written
by pyarrow alone.
"""

from collections.abc import Callable
from typing import Literal

FORMAT = 5
RUNNING, LOCK = "running.json", "lock.json"
Condition = Literal["complete", "partial", "stale", "damaged", "refused", "missing"]
"""Of a table."""
OnRows = Callable[[int, int], None]
"""Told how many rows were gone through, and of how many; (0, …) when that begins."""


def nobody(done: int, total: int) -> None:
    """Nobody is told."""
