"""Lines that wait to be committed together, with the files that they name.

To flush a disk takes milliseconds, for one line as for a hundred: a driver with many workers hands
out new work first and commits what came meanwhile at once.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from luckbase.cluster.table.ledger import Ledger, commit
from luckbase.cluster.table.lines import Line
from luckbase.cluster.table.storage import Storage

MOST = 64
"""Lines that wait at most: what a process that dies has done in vain."""


class Commits:
    """What waits of a ledger, which is modified in place once it is on the disk. A driver commits
    when nothing else is to do or `full`. A context: at its end, also at an error, it commits."""

    def __init__(self, storage: Storage, ledger: Ledger) -> None:
        self.storage, self.ledger = storage, ledger
        self.lines: list[Line] = []
        self.files: dict[str, Path] = {}
        self.times = self.committed = 0
        self.flushing = self.adding = 0.0
        """Seconds, in all: of flushes, `times` of them; of the rest, for each of `committed`."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        self.flush()

    def __len__(self) -> int:
        return len(self.lines)

    @property
    def full(self) -> bool:
        """Whether no more should wait."""
        return len(self) >= MOST

    @property
    def seconds(self) -> tuple[float, float]:
        """Seconds that it took, on average: each time, and for each line; 0 where it took none."""
        each = self.flushing / max(1, self.times), self.adding / max(1, self.committed)
        return round(each[0], 6), round(each[1], 6)

    @contextmanager
    def taking_in(self) -> Iterator[None]:
        """Count the time in which the driver takes in what is to be committed."""
        began = time.perf_counter()
        yield
        self.adding += time.perf_counter() - began

    def add(self, line: Line, files: dict[str, Path]) -> None:
        """A line, and what is moved to its place before it is committed."""
        self.lines.append(line)
        self.files.update(files)

    def flush(self) -> None:
        """Commit all that waits: the files first, on the disk when this returns."""
        if not self.lines:
            return
        began = time.perf_counter()
        lines, files, self.lines, self.files = self.lines, self.files, [], {}
        self.storage.put_all(files)
        commit(self.storage, self.ledger, *lines)
        self.flushing += time.perf_counter() - began
        self.times, self.committed = self.times + 1, self.committed + len(lines)
