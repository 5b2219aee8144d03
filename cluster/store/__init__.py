"""Tables, on disk (format 5) and in memory: their files, and the code that reads and writes them.

docs/reference/table-format.md describes the folder and each file.
"""

from collections.abc import Callable
from typing import Literal

FORMAT = 5
RUNNING = "running.json"
GRID = "grid.json"
Condition = Literal["complete", "partial", "stale", "damaged", "refused", "missing"]
"""The state of a table."""
OnRows = Callable[[int, int], None]
"""Called with the number of rows done and the total; (0, …) at the beginning."""
