"""Publishing copies a finished table to where others ask it, an object store or the folder of a
web server: each file is checked as it is read, put, and read back to the last byte. One that is
there already is read and checked, and not put again, so a copy that was stopped goes on. The ledger
follows, and last the index, without which a web server's table is none.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

from luckbase.cluster.table import OnRows, nobody
from luckbase.cluster.table.entries import (
    HEAD,
    begin,
    check_identity,
    compact,
    read_ledger,
    why_wrong,
    write_head,
)
from luckbase.cluster.table.index import take_index_away, write_index
from luckbase.cluster.table.ledger import (
    FileEntry,
    Ledger,
)
from luckbase.cluster.table.storage import Memory, Storage, in_threads, storage_at
from luckbase.solver.errors import (
    CorruptTableError,
    MissingTableError,
    RequestError,
    StoreError,
)
from luckbase.solver.result import Result
from luckbase.solver.sentences import many, some

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
    on_rows: called with how many rows are there, and of how many.

    Raises RequestError for a table that is not finished, ForeignTableError where another stands in
    the place, CorruptTableError where a byte of either is not as it was written, StoreError.
    """
    source, target = storage_at(table), storage_at(to)
    ledger = read_ledger(source, table)
    _check_finished(table, ledger, to)
    target.check_writable()
    _check_place(target, to, ledger)
    target_ledger = begin(target, to, ledger.head, "luckbase publish")
    take_index_away(target, target_ledger)
    existing, rows, copied = target.list(), 0, 0
    footers: dict[str, bytes] = {}

    def copy(entry: FileEntry) -> bool:
        """Whether it had to be put."""
        if existing.get(entry.place) == entry.bytes:
            content = target.read(entry.place)
            if len(content) == entry.bytes and not why_wrong(
                Memory({entry.place: content}), to, entry
            ):
                footers[entry.name] = content[-entry.footer :]
                return False
        content = source.read(entry.place)
        why = why_wrong(Memory({entry.place: content}), table, entry)
        if why is None and len(content) != entry.bytes:
            why = f"{table / entry.place}: has another length"
        if why:
            raise CorruptTableError(why)
        target.put(entry.place, content)
        if target.read(entry.place) != content:
            raise StoreError(f"{to / entry.place}: is not what was put there; try again")
        footers[entry.name] = content[-entry.footer :]
        return True

    files = [ledger.files[name] for name in sorted(ledger.files)]
    on_rows(0, ledger.rows)
    for entry, new in zip(files, in_threads(copy, files, AT_ONCE), strict=True):
        rows, copied = rows + entry.rows, copied + new
        on_rows(rows, ledger.rows)
    write_head(target, ledger.head)
    published = replace(ledger, entries=target_ledger.entries)
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
        existing = read_ledger(target, to)
    except MissingTableError:
        return
    if more := sorted(set(existing.files) - set(ledger.files)):
        names = ", ".join(some(3, more))
        raise RequestError(f"{to}: holds more of this table than what is published: {names}")
