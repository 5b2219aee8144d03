"""Tables, on disk (format 5) and in memory: the files in a folder, and who reads and writes them.

docs/reference/table-format.md describes the folder and each of its files.
"""

from collections.abc import Callable
from typing import Literal

FORMAT = 5
RUNNING = "running.json"
Condition = Literal["complete", "partial", "stale", "damaged", "refused", "missing"]
"""Of a table."""
OnRows = Callable[[int, int], None]
"""Told how many rows were gone through, and of how many; (0, …) when that begins."""


def nobody(done: int, total: int) -> None:
    """Nobody is told."""
