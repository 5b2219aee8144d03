"""The bench suite ``ledger``: commits, opening and checking a table of 10,000 files."""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from luckbase.jobs import terminal

FILES = 10_000
TOGETHER = 640
REWRITES = 5


def ledger_suite(board: Path, results: Path) -> None:
    """Print the table: all commits one by one, then opening, sizes looked at, the peer's commit."""
    from luckbase import solver
    from luckbase.cluster.table.entries import (
        MAX_WAITING,
        begin,
        commit,
        compact,
        damaged_files,
        read_ledger,
        write_head,
    )
    from luckbase.cluster.table.ledger import new_head
    from luckbase.cluster.table.storage import Folder

    where = results / "ledger"
    storage = Folder(where)
    head = new_head(solver.load_game(solver.load_board(board)))
    write_head(storage, head)
    ledger = begin(storage, where, head, "bench")
    (where / "tiers").mkdir(parents=True, exist_ok=True)
    entries = [_entry(i) for i in range(FILES)]
    for entry in entries:
        with (where / entry.name).open("wb") as file:
            file.truncate(entry.bytes)

    def commit_all() -> None:
        for entry in entries:
            commit(ledger, entry)

    committed, _ = _timed(commit_all)
    opened, _ = _timed(lambda: read_ledger(storage, where))
    compacted, _ = _timed(lambda: compact(ledger))
    again, read = _timed(lambda: read_ledger(storage, where))
    assert len(read.files) == FILES
    looked, bad = _timed(lambda: damaged_files(storage, where, read))
    assert not bad
    peer = _rewritten(where / "peer.json", entries)
    alone, together = (_files_and_lines(results / f"files-{n}", head, n) for n in (1, MAX_WAITING))
    rows = [
        ("10,000 commits, one small file each", f"{committed:.1f} s"),
        ("opening it before it is compacted", f"{opened:.2f} s"),
        ("compacting it", f"{compacted:.2f} s"),
        ("opening it compacted", f"{again:.2f} s"),
        ("the presence and size of 10,000 files", f"{looked:.2f} s"),
        ("one commit at 10,000 files", f"{committed / FILES * 1e3:.1f} ms"),
        ("the same by rewriting one JSON file", f"{peer * 1e3:.0f} ms"),
        ("a file put in its place and its line committed", f"{alone * 1e3:.1f} ms"),
        (f"the same of {MAX_WAITING} at once, each", f"{together * 1e3:.2f} ms"),
    ]
    terminal.print_table("A ledger of 10,000 files", ("", "time"), rows, sys.stdout)


def _timed(work: Any) -> tuple[float, Any]:
    started = time.perf_counter()
    found = work()
    return time.perf_counter() - started, found


def _entry(i: int) -> Any:
    from luckbase.cluster.table.ledger import FileEntry

    seconds = {"solve": 0.1, "write": 0.1}
    return FileEntry(
        f"tiers/spins-{i // 64}.whammies_1-{i % 64}.parquet", "tiers", i, 1000, 1000, i << 40,
        (i << 40) + 999, 5000 + i, 1600, "QUJDREVGR0hJSktMTU5PUA==", 3e-8, seconds, "0",
    )  # fmt: skip


def _files_and_lines(folder: Path, head: Any, number: int) -> float:
    """Seconds that a driver takes to commit a file, of so many at once."""
    from luckbase.cluster.table.entries import Commits, begin
    from luckbase.cluster.table.storage import Folder

    storage, seconds = Folder(folder), 0.0
    commits = Commits(begin(storage, folder, head, "bench"))
    for first in range(0, TOGETHER, number):
        entries = [_entry(i) for i in range(first, first + number)]
        paths = [storage.temporary(entry.name) for entry in entries]
        for path in paths:
            path.touch()
        started = time.perf_counter()
        for entry, path in zip(entries, paths, strict=True):
            storage.put_if_absent(entry.name, path)
            commits.add(entry)
        commits.flush()
        seconds += time.perf_counter() - started
    return seconds / TOGETHER


def _rewritten(path: Path, entries: list[Any]) -> float:
    """Seconds of a commit that writes all entries anew, flushes and renames."""
    forms = [asdict(entry) for entry in entries]
    started = time.perf_counter()
    for _ in range(REWRITES):
        with path.open("w", encoding="utf-8") as file:
            json.dump(forms, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        os.replace(path, path.with_suffix(".done"))
    return (time.perf_counter() - started) / REWRITES
