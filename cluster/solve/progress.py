"""The progress and the result of a solve, for the process that started it and for others.

During a solve, ``running.json`` in the table's folder is rewritten every second.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, PlainSerializer, computed_field

from luckbase.cluster.machine import resident_memory
from luckbase.cluster.store import RUNNING
from luckbase.cluster.store.manifest import FileEntry, Goal, Manifest
from luckbase.cluster.store.provenance import Origin
from luckbase.cluster.store.storage import storage_at
from luckbase.solver import sentences
from luckbase.solver.errors import StoreError
from luckbase.solver.result import AsText, Flat, OrNull, PythonOnly, Result, Rounded
from luckbase.solver.sentences import html_facts, many

WRITE_SECONDS = 1.0
MIN_SHARE = 0.01
"""Share of the work after which the pace is meaningful: the first shards are the smallest."""
Seconds = Annotated[float, PlainSerializer(lambda value: round(value, 3), return_type=float)]


@dataclass(frozen=True)
class Progress(Result):
    """The progress of a solve: shards and rows of this run, and seconds since it started."""

    shards: int
    shards_total: int
    rows: Annotated[int, Field(serialization_alias="states")]
    """If the number of states is not known yet: the states found."""
    rows_total: Annotated[int, Field(serialization_alias="states_total")]
    seconds: Rounded
    compiling: PythonOnly[bool] = False
    """True before the solve begins; everything else is then 0."""
    finding: OrNull[str] = ""
    """The current place of a search that is finding its states."""
    unit: PythonOnly[str] = "tiers"
    """The name of shards in messages."""
    before: PythonOnly[int] = 0
    """Rows that existed when it started."""
    json_order = (
        "shards", "shards_total", "states", "states_total", "seconds", "states_a_second",
        "finding", "seconds_left",
    )  # fmt: skip

    @property
    def rate(self) -> float:
        """Rows per second of this run."""
        return (self.rows - self.before) / self.seconds if self.seconds > 0 else 0.0

    @computed_field  # type: ignore[prop-decorator]
    @property
    def states_a_second(self) -> int:
        """`rate` as an integer."""
        return round(self.rate)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def seconds_left(self) -> float | None:
        """Estimated seconds until the end; None if unknown."""
        seconds = self.estimate() if self.rows_total else None
        return None if seconds is None else round(seconds, 1)

    @property
    def parts(self) -> tuple[int, int]:
        """Done and total: states, or shards if the number of states is unknown."""
        known = (self.rows, self.rows_total)
        return known if self.rows_total else (self.shards, self.shards_total)

    @property
    def text(self) -> str:
        """The speed, and the number of finished shards, as text."""
        rate = f"{sentences.count(self.rate)} states/s"
        if self.finding:
            return f"{finding_text(self.rows, self.finding)}, {rate}"
        if not self.shards_total:
            return rate
        what = self.unit if self.rows_total else "shards"
        return f"{rate}, {self.shards} of {many(self.shards_total, what.removesuffix('s'))}"

    def estimate(self, compiled: float = 0.0) -> float | None:
        """Estimate the remaining seconds at the pace so far; None before the pace is known.

        compiled: seconds spent compiling, which do not count.
        """
        done, total = self.parts
        working, new = self.seconds - compiled, done - (self.before if self.rows_total else 0)
        if not total or new < MIN_SHARE * total or working <= 0:
            return None
        return working * max(0, total - done) / new


def finding_text(states: int, finding: str) -> str:
    """Return the number of states that a search has found, and its current place."""
    return f"{sentences.counted(states, 'state')} found, {finding}"


@dataclass(frozen=True)
class Solved(Result):
    """The result of a solve; 0 or empty if the table was complete. Numbers count states.

    goal: of the solve.
    kept: states that existed before.
    states: new states.
    again, read: states of a full table that were solved again, or read back, because other shards
        read them.
    damaged: a sentence for each damaged file that was replaced.
    shards: number of shards solved.
    edges: number of expanded edges of a search.
    levels, stages: of a search; 0 if it was solved in one piece.
    seconds: wall time from the first shard to the last commit, including the start of Ray.
    compile_seconds: before the first shard.
    solve_seconds: total time of all workers; of a full table, in the kernel.
    again_seconds: the same for `again`.
    bytes_a_state: bytes of arrays for each state of a search in one piece.
    peak_memory: peak bytes of this process and the workers together (`memory_used`).
    """

    origin: Flat[Origin]
    table: AsText[Path]
    manifest: PythonOnly[Manifest]
    goal: PythonOnly[Goal]
    kept: int = 0
    states: Annotated[int, Field(serialization_alias="solved_now")] = 0
    again: Annotated[int, Field(serialization_alias="solved_again")] = 0
    read: Annotated[int, Field(serialization_alias="read_back")] = 0
    damaged: tuple[str, ...] = ()
    shards: int = 0
    edges: int = 0
    levels: int = 0
    stages: int = 0
    seconds: Seconds = 0.0
    compile_seconds: Seconds = 0.0
    solve_seconds: Seconds = 0.0
    again_seconds: PythonOnly[float] = 0.0
    bytes_a_state: Rounded = 0.0
    peak_memory: int = 0
    workers: int = 1
    ray: bool = False
    json_order = (
        "board", "options", "solve_id", "stale", "table", "states", "file_count", "bytes", "kept",
        "solved_again", "read_back", "solved_now", "damaged", "shards", "edges", "levels", "stages",
        "seconds", "states_per_second", "compile_seconds", "solve_seconds", "bytes_a_state",
        "peak_memory", "workers", "ray",
    )  # fmt: skip

    @property
    def searched(self) -> bool:
        """True for a search, False for a full table."""
        return self.goal.roots is not None

    @property
    def files(self) -> list[FileEntry]:
        """The table's files; for a search, those of its part."""
        manifest = self.manifest
        return manifest.of_part(self.goal.part) if self.searched else [*manifest.files.values()]

    @computed_field(alias="states")  # type: ignore[prop-decorator]
    @property
    def rows(self) -> int:
        """Distinct states in the files."""
        return sum(entry.rows for entry in self.files) if self.searched else self.manifest.rows

    @computed_field  # type: ignore[prop-decorator]
    @property
    def bytes(self) -> int:
        """Size of the files."""
        return sum(entry.bytes for entry in self.files)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def file_count(self) -> int:
        """Number of files."""
        return len(self.files)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def states_per_second(self) -> int | None:
        """From start to end."""
        done = self.states + self.again + self.read
        return round(done / self.seconds) if self.seconds else None

    def _repr_html_(self) -> str:
        manifest = self.manifest
        how = many(self.workers, "Ray worker" if self.ray else "thread")
        rows = [("states", f"{self.states:,} solved now, {self.kept:,} were there"),
                ("table", f"{many(manifest.rows, 'state')} in {many(len(manifest.files), 'file')}, "
                          f"{sentences.size(manifest.bytes)}"),
                ("time", f"{sentences.duration(self.seconds)} with {how}" * bool(self.shards)),
                ("memory", sentences.size(self.peak_memory) * bool(self.peak_memory)),
                ("payoffs within", sentences.bound(manifest.error(self.goal.part))),
                ("where", str(self.table))]  # fmt: skip
        return html_facts(f"{manifest.head.board} is solved", rows)


def _now() -> datetime:
    return datetime.now().astimezone()


class Watch:
    """Writes the progress of a solve to its folder; a context manager."""

    def __init__(
        self, table: Path, on_progress: Callable[[Progress], None], on_note: Callable[[str], None]
    ) -> None:
        self.table, self.on_progress, self.on_note = table, on_progress, on_note
        self.began, self.last_note = _now(), ""
        self._written, self._storage = float("-inf"), storage_at(table)

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError, StoreError):
            self._storage.delete(RUNNING)

    def note(self, text: str) -> None:
        """Report an event to the user."""
        self.last_note = f"{_now():%H:%M:%S} {text}"
        self.on_note(text)

    def show(self, progress: Progress, nodes: list[dict[str, Any]]) -> None:
        """Report the progress. nodes: the work of each machine."""
        self.on_progress(progress)
        now = time.monotonic()
        if now - self._written < WRITE_SECONDS:
            return
        self._written = now
        content = {
            "host": socket.gethostname(), "process": os.getpid(),
            "since": self.began.isoformat(timespec="seconds"),
            "at": _now().isoformat(timespec="seconds"),
            **progress.as_json(), "nodes": nodes, "memory": resident_memory(),
            "last_note": self.last_note,
        }  # fmt: skip
        self._write(json.dumps(content))

    def _write(self, content: str) -> None:
        with suppress(OSError, StoreError):  # a full disk stops the solve elsewhere, with a message
            if self._storage.anywhere:
                self._storage.put(RUNNING, content.encode())
                return
            beside = self.table / f".{RUNNING}.{os.getpid()}"  # not flushed: losing it does no harm
            beside.unlink(missing_ok=True)
            with beside.open("x") as file:
                file.write(content)
            beside.replace(self.table / RUNNING)
