"""A table's folder is taken away: what luckbase wrote in it, and nothing else.

Its files go first, the ledger and the head last: after a stop in between the table is there,
damaged, and the same call goes on. Somebody's own files stay, and then the folder does.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path

from luckbase.cluster.run.opening import LOCK, MARK, lock
from luckbase.cluster.table import RUNNING
from luckbase.cluster.table.ledger import HEAD

FOLDERS = {
    "tiers": ("*.parquet", "*.part"),
    "search": ("*.parquet", "*.part"),
    "search-*": ("*.parquet", "*.part"),
    "shards": ("*.arrow", "*.ask", "*.part"),
    "ledger": ("*.jsonl", "*.part"),
    "log": ("*.log",),
    "spill": ("*",),
}
"""The folders in a table's, and what luckbase writes there."""
FILES = (HEAD, f"{HEAD}.*.part", RUNNING, f".{RUNNING}.*", f"{MARK}*", LOCK)
LAST = ("ledger/", HEAD, LOCK)


def contents(table: Path) -> tuple[dict[str, int], list[str]]:
    """(the files in a table's folder that luckbase wrote, with sizes; what is not its own)."""
    ours: dict[str, int] = {}
    others = []
    for name, size in _walk(table, ""):
        if size is not None and _is_ours(name):
            ours[name] = size
        else:
            others.append(name)
    return ours, sorted(others)


def remove(table: Path) -> list[str]:
    """Take a table away; returns what is not luckbase's own and stays.

    Raises RequestError where a solve of it is running, OSError for what can not be deleted.
    """
    with lock(table):
        ours, others = contents(table)
        for name in sorted(ours, key=_turn):
            (table / name).unlink(missing_ok=True)
        for folder, _, _ in os.walk(table, topdown=False):
            with suppress(OSError):  # something of somebody's is in it
                os.rmdir(folder)
    for above in (table.parent, table.parent.parent):  # the board's, the game's
        with suppress(OSError):
            above.rmdir()
    return others


def _turn(name: str) -> int:
    """When a file goes: the ledger after all it names, then the head, then the lock."""
    return next((i for i, last in enumerate(LAST, start=1) if name.startswith(last)), 0)


def _walk(folder: Path, inner: str) -> Iterator[tuple[str, int | None]]:
    """Every file below a folder with its size; None for a link, which is not followed."""
    try:
        entries = sorted(os.scandir(folder / inner), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        name = inner + entry.name
        if entry.is_symlink():
            yield name, None
        elif entry.is_dir():
            yield from _walk(folder, f"{name}/")
        else:
            yield name, entry.stat().st_size


def _is_ours(name: str) -> bool:
    folder, slash, rest = name.partition("/")
    if not slash:
        return any(fnmatchcase(name, ours) for ours in FILES)
    kinds = next((k for ours, k in FOLDERS.items() if fnmatchcase(folder, ours)), ())
    deep = "/" in rest and folder != "spill"
    return not deep and any(fnmatchcase(rest, kind) for kind in kinds)
