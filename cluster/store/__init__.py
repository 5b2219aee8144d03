"""Tables, on disk (format 5) and in memory: their files, and the code that reads and writes them.

docs/reference/table-format.md describes the folder and each file.
"""

from collections.abc import Callable
from typing import Literal

FORMAT = 5
RUNNING = "running.json"
GRID = "grid.json"
Condition = Literal[
    "complete", "partial", "stale", "damaged", "missing", "refused", "again", "solved", "failed",
    "running", "unneeded", "kept", "needed", "removed",
]  # fmt: skip
"""How a table stands, or the table of a board.

* complete: there is no work.
* partial: it lacks files.
* stale: it is of an older version of the board.
* damaged: it has damaged files.
* missing: there is no table.
* refused: its board cannot be read or solved here.
* again: all of it is to be solved again (`--force`).
* solved, failed: the result of a solve.
* running: a process is solving it.
* unneeded: no board file needs it, and it may be removed.
* kept: no board file needs it, and it is removed only if its folder is named.
* needed: a board file needs it.
* removed.
"""
OnRows = Callable[[int, int], None]
"""Called with the number of rows done and the total; (0, …) at the beginning."""
