"""How far a solve is and what it did: for the process that started it, and for others.

While a solve runs, ``running.json`` in the table's folder is rewritten every second. What happened
stays in ``log/<time>.log``: a line for each node that comes, goes or is left out, each fault, and
how far the solve was every minute.
"""

from __future__ import annotations

import json
import os
import re
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
from luckbase.cluster.table import RUNNING
from luckbase.cluster.table.manifest import FileEntry, Goal, Manifest, Origin
from luckbase.cluster.table.storage import storage_at
from luckbase.solver import sentences
from luckbase.solver.errors import StoreError
from luckbase.solver.result import AsText, Flat, OrNull, PythonOnly, Result, Rounded
from luckbase.solver.sentences import html_facts, many

WRITE_SECONDS = 1.0
LOG_SECONDS = 60.0
LOG_NAME = r"log/[0-9]{8}T[0-9]{6}\.[0-9]{6}-[0-9]+\.log"
LOGS = 20
"""Logs that are kept of a table."""
MIN_SHARE = 0.01
"""Of the work, after which there is a pace to go by: the first shards are the smallest."""
Seconds = Annotated[float, PlainSerializer(lambda value: round(value, 3), return_type=float)]


@dataclass(frozen=True)
class Progress(Result):
    """How far a solve is: shards and rows of this run, seconds since it started."""

    shards: int
    shards_total: int
    rows: Annotated[int, Field(serialization_alias="states")]
    """Of a search that does not know yet how many states there are, those found."""
    rows_total: Annotated[int, Field(serialization_alias="states_total")]
    seconds: Rounded
    compiling: PythonOnly[bool] = False
    """It has not begun, all else is 0."""
    finding: OrNull[str] = ""
    """Of such a search: where it is."""
    of: PythonOnly[str] = "tiers"
    """What a shard is called."""
    before: PythonOnly[int] = 0
    """Rows that were there when it started."""
    json_order = (
        "shards", "shards_total", "states", "states_total", "seconds", "states_a_second",
        "finding", "seconds_left",
    )  # fmt: skip

    @property
    def rate(self) -> float:
        """Rows a second of this run."""
        return (self.rows - self.before) / self.seconds if self.seconds > 0 else 0.0

    @computed_field  # type: ignore[prop-decorator]
    @property
    def states_a_second(self) -> int:
        """The same, as a whole number."""
        return round(self.rate)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def seconds_left(self) -> float | None:
        """Until it is done, about; None where that is not known."""
        left = self.left() if self.rows_total else None
        return None if left is None else round(left, 1)

    @property
    def parts(self) -> tuple[int, int]:
        """Done and in all: states, or shards where nobody knows how many states there are."""
        known = (self.rows, self.rows_total)
        return known if self.rows_total else (self.shards, self.shards_total)

    def left(self, compiled: float = 0.0) -> float | None:
        """Seconds that are left at the pace so far, those that it `compiled` left out; None before
        there is a pace."""
        done, total = self.parts
        working, new = self.seconds - compiled, done - (self.before if self.rows_total else 0)
        if not total or new < MIN_SHARE * total or working <= 0:
            return None
        return working * max(0, total - done) / new


@dataclass(frozen=True)
class Solved(Result):
    """What a solve did; 0 or empty where all was there. Numbers are of states."""

    origin: Flat[Origin]
    table: AsText[Path]
    manifest: PythonOnly[Manifest]
    goal: PythonOnly[Goal]
    """What was wanted."""
    kept: int = 0
    """Were there."""
    states: Annotated[int, Field(serialization_alias="solved_now")] = 0
    """New ones."""
    damaged: tuple[str, ...] = ()
    """Files that were not as they should be and were made again, a sentence each."""
    shards: int = 0
    """Handed out."""
    seconds: Seconds = 0.0
    """From the first shard handed out to the last commit, starting Ray included."""
    solve_seconds: Seconds = 0.0
    """Of the workers, added up."""
    peak_memory: int = 0
    """Bytes, of this process and of the workers' together (`memory_used`)."""
    workers: int = 1
    ray: bool = False

    @property
    def searched(self) -> bool:
        """Whether it was a search, not the solve of a full table."""
        return self.goal.roots is not None

    @property
    def files(self) -> list[FileEntry]:
        """Of the table; of a search those of its part."""
        manifest = self.manifest
        return manifest.of_part(self.goal.part) if self.searched else [*manifest.files.values()]

    @computed_field(alias="states")  # type: ignore[prop-decorator]
    @property
    def rows(self) -> int:
        """States in them, each once."""
        return sum(entry.rows for entry in self.files) if self.searched else self.manifest.rows

    @computed_field  # type: ignore[prop-decorator]
    @property
    def bytes(self) -> int:
        """Of them."""
        return sum(entry.bytes for entry in self.files)

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


@dataclass(frozen=True)
class SolvedTiers(Solved):
    """What the solve of a full table did."""

    shards: PythonOnly[int] = 0
    solve_seconds: Annotated[Seconds, Field(serialization_alias="kernel_seconds")] = 0.0
    again: Annotated[int, Field(serialization_alias="solved_again")] = 0
    """Solved again for those that read them."""
    read: Annotated[int, Field(serialization_alias="read_back")] = 0
    """Read back for them."""
    again_seconds: PythonOnly[float] = 0.0
    """Of the kernel."""
    compile_seconds: Seconds = 0.0
    """Before the first shard."""
    json_order = (
        "board", "options", "solve_id", "stale", "table", "states", "tiers", "bytes", "kept",
        "solved_again", "read_back", "solved_now", "damaged", "seconds", "states_per_second",
        "compile_seconds", "kernel_seconds", "peak_memory", "workers", "ray",
    )  # fmt: skip

    @computed_field  # type: ignore[prop-decorator]
    @property
    def tiers(self) -> int:
        """Files in the table."""
        return len(self.manifest.files)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def states_per_second(self) -> int | None:
        """From end to end."""
        done = self.states + self.again + self.read
        return round(done / self.seconds) if self.seconds else None


@dataclass(frozen=True)
class SolvedSearch(Solved):
    """What a search did."""

    edges: int = 0
    """Expanded."""
    levels: int = 0
    """By which it went; 0 where it was one piece."""
    stages: int = 0
    bytes_a_state: Rounded = 0.0
    """Of its arrays, where it was one piece."""
    json_order = (
        "board", "options", "solve_id", "stale", "table", "states", "bytes", "kept", "solved_now",
        "damaged", "edges", "overlap", "levels", "stages", "shards", "seconds", "solve_seconds",
        "bytes_a_state", "peak_memory", "workers", "ray",
    )  # fmt: skip

    @computed_field  # type: ignore[prop-decorator]
    @property
    def overlap(self) -> float:
        """States solved over distinct states: no two shards solve the same one."""
        return 1.0


def _now() -> datetime:
    return datetime.now().astimezone()


class Watch:
    """Writes the progress of a solve to its folder; a context manager."""

    def __init__(
        self, table: Path, on_progress: Callable[[Progress], None], on_note: Callable[[str], None]
    ) -> None:
        self.table, self.on_progress, self.on_note = table, on_progress, on_note
        self.began, self.last_note = _now(), ""
        self._written = self._logged = float("-inf")
        self._storage, self._text = storage_at(table), ""
        self._log = f"log/{self.began:%Y%m%dT%H%M%S.%f}-{os.getpid()}.log"

    def __enter__(self) -> Watch:
        if not self._storage.anywhere:
            (self.table / self._log).parent.mkdir(parents=True, exist_ok=True)
        logs = [name for name in self._storage.list("log/") if re.fullmatch(LOG_NAME, name)]
        for old in logs[: -LOGS + 1]:
            with suppress(OSError):
                self._storage.delete(old)
        self.note(f"a solve begins: process {os.getpid()} on {socket.gethostname()}", tell=False)
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        end = "the solve is done" if error is None else f"the solve ends: {error!s}"
        self.note(end, tell=False)
        with suppress(OSError, StoreError):
            if self._storage.anywhere:  # to which nothing can be added
                self._storage.put(self._log, self._text.encode())
            self._storage.delete(RUNNING)

    def note(self, text: str, *, tell: bool = True) -> None:
        """Something happened that a person should know; without `tell`, the log only."""
        now = _now()
        if tell:
            self.last_note = f"{now:%H:%M:%S} {text}"
            self.on_note(text)
        line = f"{now.isoformat(timespec='seconds')} {text}\n"
        if self._storage.anywhere:
            self._text += line
            return
        with suppress(OSError), (self.table / self._log).open("a", encoding="utf-8") as file:
            file.write(line)

    def show(self, progress: Progress, doing: list[dict[str, Any]]) -> None:
        """How far it is, and what each machine does."""
        self.on_progress(progress)
        now = time.monotonic()
        if now - self._written < WRITE_SECONDS:
            return
        self._written = now
        content = {
            "host": socket.gethostname(), "process": os.getpid(),
            "since": self.began.isoformat(timespec="seconds"),
            "at": _now().isoformat(timespec="seconds"),
            **progress.as_json(), "nodes": doing, "memory": resident_memory(),
            "last_note": self.last_note,
        }  # fmt: skip
        self._write(json.dumps(content))
        if now - self._logged >= LOG_SECONDS:
            self._logged = now
            at = f"{progress.shards} of {many(progress.shards_total, 'shard')}"
            self.note(
                f"{at}, {many(progress.rows, 'state')}, {many(len(doing), 'node')}", tell=False
            )

    def _write(self, content: str) -> None:
        with suppress(OSError, StoreError):  # a full disk stops the solve elsewhere, in a sentence
            if self._storage.anywhere:
                self._storage.put(RUNNING, content.encode())
                return
            beside = self.table / f".{RUNNING}.{os.getpid()}"  # not flushed: it is worth nothing
            beside.write_text(content)
            beside.replace(self.table / RUNNING)
