"""A solve that runs, for whoever looks from elsewhere: a file rewritten every second, and a log.

Both lie in the table's folder: ``running.json`` while the solve runs, ``log/<time>.log`` for good:
a line for each node that comes, goes or is left out, each fault, and how far it was every minute.
"""

from __future__ import annotations

import json
import os
import socket
import time
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from luckbase.cluster.machine import resident_memory
from luckbase.cluster.run.options import Options, Progress
from luckbase.cluster.table import RUNNING
from luckbase.cluster.words import many

EVERY = 1.0
LOG_EVERY = 60.0
LOGS = 20
"""Logs that are kept of a table."""


class Watch:
    """What a solve says of itself while it runs; a context, at whose end it says no more."""

    def __init__(self, table: Path, asked: Options) -> None:
        self.table, self.asked = table, asked
        self.began, self.fault = datetime.now().astimezone(), ""
        self._written = self._logged = float("-inf")
        self._log = table / "log" / f"{self.began:%Y%m%dT%H%M%S.%f}-{os.getpid()}.log"

    def __enter__(self) -> Watch:
        self._log.parent.mkdir(parents=True, exist_ok=True)
        for old in sorted(self._log.parent.glob("*.log"))[: -LOGS + 1]:
            with suppress(OSError):
                old.unlink()
        self.note(f"a solve begins: process {os.getpid()} on {socket.gethostname()}", tell=False)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        said = "the solve is done" if error is None else f"the solve ends: {error or kind.__name__}"  # type: ignore[union-attr]
        self.note(said, tell=False)
        with suppress(OSError):
            (self.table / RUNNING).unlink(missing_ok=True)

    def note(self, text: str, *, tell: bool = True) -> None:
        """Something happened that a person should know."""
        now = datetime.now().astimezone()
        if tell:
            self.fault = f"{now:%H:%M:%S} {text}"
            self.asked.on_note(text)
        with suppress(OSError), self._log.open("a", encoding="utf-8") as file:
            file.write(f"{now.isoformat(timespec='seconds')} {text}\n")

    def show(self, progress: Progress, doing: list[dict[str, Any]]) -> None:
        """How far it is, and what each machine does."""
        self.asked.on_progress(progress)
        now = time.monotonic()
        if now - self._written < EVERY:
            return
        self._written = now
        said = {
            "host": socket.gethostname(), "process": os.getpid(),
            "since": self.began.isoformat(timespec="seconds"),
            "at": datetime.now().astimezone().isoformat(timespec="seconds"),
            **progress.as_json(), "nodes": doing, "memory": resident_memory(),
            "last_note": self.fault,
        }  # fmt: skip
        beside = self.table / f".{RUNNING}.{os.getpid()}"
        with suppress(OSError):  # a full disk stops the solve elsewhere, with a sentence
            beside.write_text(json.dumps(said))
            beside.replace(self.table / RUNNING)
        if now - self._logged >= LOG_EVERY:
            self._logged = now
            at = f"{progress.shards} of {many(progress.shards_total, 'shard')}"
            self.note(
                f"{at}, {many(progress.rows, 'state')}, {many(len(doing), 'node')}", tell=False
            )
