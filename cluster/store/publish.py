"""Publish a finished table: copy it to an object store or to the folder of a web server.

Each file is checked when it is read, written, and read back completely. A file that already exists
is checked and not written again, so an interrupted copy can be continued. Readers of the copy need
the manifest and the files that it names.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

from luckbase.cluster import notebook
from luckbase.cluster.store import OnRows
from luckbase.cluster.store.manifest import FileEntry, Manifest
from luckbase.cluster.store.storage import Memory, in_threads, storage_at
from luckbase.cluster.store.writer import Writer, read_manifest, why_wrong
from luckbase.solver.errors import CorruptTableError, RequestError, StoreError
from luckbase.solver.result import Result
from luckbase.solver.sentences import many, some

AT_ONCE = 4
"""Number of files copied at once; each is in memory twice."""


@dataclass(frozen=True)
class Published(Result):
    """A table that was copied."""

    table: str
    to: str
    states: int
    files: int
    bytes: int
    """Number of files and of bytes of the table."""
    copied: int  # number of files that did not exist before


def publish(table: Path, to: Path, on_rows: OnRows = notebook.on_rows) -> Published:
    """Copy a finished table to a place that is empty or contains part of the same table.

    on_rows: called with the number of rows copied and the total.

    Raises RequestError if the table is not finished, ForeignTableError if the place contains
    another table, CorruptTableError if a file of either has changed, StoreError.
    """
    source, target = storage_at(table), storage_at(to)
    manifest = read_manifest(source, table)
    _check_finished(table, manifest, to)
    target.check_writable()
    rows, copied = 0, 0
    on_rows(0, manifest.rows)
    with Writer(target, to, manifest.head).take() as writer:
        _check_place(writer.manifest, to, manifest)
        writer.sweep()

        def copy(entry: FileEntry) -> FileEntry:
            """Return the file's entry in the copy; write the file if it is missing."""
            existing = writer.manifest.files.get(entry.name)
            same = existing is not None and existing.sha256 == entry.sha256
            if existing is not None and same and why_wrong(target, to, existing) is None:
                return existing
            content = source.read(entry.place)
            if why := why_wrong(Memory({entry.place: content}), table, entry):
                raise CorruptTableError(why)
            new = entry.placed(writer.place(entry.name, entry.sha256))
            target.put(new.place, content)
            if target.read(new.place) != content:
                raise StoreError(f"{to / new.place}: is not what was put there; try again")
            return new

        files = [manifest.files[name] for name in sorted(manifest.files)]
        writer.add(*(replace(goal, board_file="") for goal in manifest.goals))  # the path is local
        writer.add(*manifest.levels.values())
        for entry, new in zip(files, in_threads(copy, files, AT_ONCE), strict=True):
            if writer.manifest.files.get(entry.name) != new:
                copied += 1
                writer.manifest.files[entry.name] = new
            rows += entry.rows
            on_rows(rows, manifest.rows)
            if writer.seconds == 0:
                writer.commit()
        writer.add(*manifest.done.values())
        writer.commit()
        writer.sweep()  # files of an older copy
        writer.finish()
    return Published(str(table), str(to), manifest.rows, len(files), manifest.bytes, copied)


def _check_finished(table: Path, manifest: Manifest, to: Path) -> None:
    if os.fspath(table) == os.fspath(to):
        raise RequestError(f"{to}: is the table itself; expected another place")
    unfinished = [goal for goal in manifest.goals if not manifest.is_done(goal)]
    if unfinished or not manifest.files:
        raise RequestError(
            f"{table}: is not finished ({many(len(unfinished), 'goal')} to go); luckbase status "
            "prints the command that resumes it"
        )


def _check_place(existing: Manifest, to: Path, manifest: Manifest) -> None:
    if more := sorted(set(existing.files) - set(manifest.files)):
        names = ", ".join(some(3, more))
        raise RequestError(f"{to}: holds more of this table than what is published: {names}")
