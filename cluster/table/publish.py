"""A finished table copied to where others ask it: an object store, or the folder of a web server.

File by file: each is checked as it is read, put, and read back to the last byte. A file that is
there already is read and checked, and not put again, so a copy that was stopped goes on. The ledger
follows, and last the index, without which a web server's table is none.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from luckbase.cluster.table import OnRows, nobody
from luckbase.cluster.table.decisions import opened
from luckbase.cluster.table.folder import (
    HEAD,
    begin,
    check_identity,
    compact,
    read_ledger,
    write_head,
)
from luckbase.cluster.table.index import take_index_away, write_index
from luckbase.cluster.table.ledger import FileEntry, Ledger
from luckbase.cluster.table.place import storage_at
from luckbase.cluster.table.storage import Memory, Storage
from luckbase.cluster.words import many, some
from luckbase.solver.errors import (
    CorruptTableError,
    MissingTableError,
    RequestError,
    StoreError,
)
from luckbase.solver.result import Result

AT_ONCE = 4
"""Files that are copied at once; each is in memory as a whole, twice."""


@dataclass(frozen=True)
class Published(Result):
    """A table that was copied. files, bytes: of the table; copied: files that were not there."""

    table: str
    to: str
    states: int
    files: int
    bytes: int
    copied: int


def publish(table: Path, to: Path, on_rows: OnRows = nobody) -> Published:
    """Copy a finished table to a place, which holds nothing yet or some of the same table.
    on_rows: told how many rows are there, and of how many.

    Raises RequestError for a table that is not finished, ForeignTableError where another stands in
    the place, CorruptTableError where a byte of either is not as it was written, StoreError.
    """
    source, target = storage_at(table), storage_at(to)
    ledger = read_ledger(source, table)
    _check_finished(table, ledger, to)
    if not target.lists:
        raise StoreError(
            f"{to}: is only read; expected a folder, or a URI of s3://, gs:// or az://"
        )
    _check_place(target, to, ledger)
    begun = begin(target, to, ledger.head, "luckbase publish")
    take_index_away(target, begun)
    there, rows, copied = target.list(), 0, 0
    footers: dict[str, bytes] = {}

    def copy(entry: FileEntry) -> bool:
        """Whether it had to be put."""
        if there.get(entry.place) == entry.bytes:
            content = target.read(entry.place)
            if _why_wrong(content, to, entry) is None:
                footers[entry.name] = content[-entry.footer :]
                return False
        content = source.read(entry.place)
        if why := _why_wrong(content, table, entry):
            raise CorruptTableError(why)
        target.put(entry.place, content)
        if target.read(entry.place) != content:
            raise StoreError(f"{to / entry.place}: is not what was put there; try again")
        footers[entry.name] = content[-entry.footer :]
        return True

    files = [ledger.files[name] for name in sorted(ledger.files)]
    pool = ThreadPoolExecutor(AT_ONCE)
    try:
        on_rows(0, ledger.rows)
        for entry, new in zip(files, pool.map(copy, files), strict=True):
            rows, copied = rows + entry.rows, copied + new
            on_rows(rows, ledger.rows)
    finally:
        pool.shutdown(cancel_futures=True)  # after an interrupt no other file is begun
    write_head(target, ledger.head)
    published = replace(ledger, entries=begun.entries)
    compact(published)
    write_index(target, target.read(HEAD), published, footers.__getitem__)
    return Published(str(table), str(to), ledger.rows, len(files), ledger.bytes, copied)


def _check_finished(table: Path, ledger: Ledger, to: Path) -> None:
    if os.fspath(table) == os.fspath(to):
        raise RequestError(f"{to}: is the table itself; expected another place")
    left = [goal for goal in ledger.goals if not ledger.is_done(goal)]
    if left or not ledger.files:
        raise RequestError(
            f"{table}: is not finished ({many(len(left), 'goal')} to go); luckbase status says "
            "what goes on with it"
        )


def _check_place(target: Storage, to: Path, ledger: Ledger) -> None:
    try:
        check_identity(target, to, ledger.head.identity)
        other = read_ledger(target, to)
    except MissingTableError:
        return
    if more := sorted(set(other.files) - set(ledger.files)):
        said = ", ".join(some(3, more))
        raise RequestError(f"{to}: holds more of this table than what is published: {said}")


def _why_wrong(content: bytes, where: Path, entry: FileEntry) -> str | None:
    """Why bytes are not those of a file; None where they are, to the last."""
    try:
        with closing(opened(Memory({entry.place: content}), where, entry)) as file:
            for group in range(file.groups):
                file.check(group)
    except CorruptTableError as error:
        return str(error)
    return None if len(content) == entry.bytes else f"{where / entry.place}: has another length"
