"""The right to change a table: one process at a time, which replaces the manifest by
compare-and-swap. This module also reads the manifest and checks the files that it names.

**The swap is the fence**: it keeps out a process that has lost the right. Every commit replaces
``manifest.json`` only if it is still what this process wrote last (`Storage.swap`: an ETag
condition in a store, `flock` in a folder). If another process has taken over, the next commit fails
with an error. Each swap has its own number (`Manifest.revision`), so an old manifest never
reappears, and a request that arrives late has no effect.

**Data files** contain the writer's id and a hash of their content in their names. The manifest
records the id before the first of them is written, and no other process uses it. So files that a
late process writes or deletes never belong to the current table, a file is never replaced by
another one, and leftovers of a killed process can be distinguished from a user's own files in the
folder.

**Leases.** A writer renews a small object every `BEAT_SECONDS`. Another process takes over if that
object does not change for `LEASE_SECONDS` of its own monotonic clock, or at once if the writer's
process has ended on this host. Clocks of different hosts are never compared.

A file is in place before a manifest names it. Commits are `COMMIT_SECONDS` apart; slow commits are
further apart, so that they take less than `SHARE` of the time, but never more than `LONGEST_PAUSE`.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import socket
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Self

from luckbase.cluster import notebook
from luckbase.cluster.machine import cores, machine_id, process_ended, started
from luckbase.cluster.store import OnRows
from luckbase.cluster.store.manifest import (
    DECISIONS,
    NAME,
    SEARCH,
    SHARDS,
    TIERS,
    FileEntry,
    Head,
    Line,
    Manifest,
    Next,
    WriterRecord,
    decoded,
    file_error,
    file_errors,
    placed,
)
from luckbase.cluster.store.storage import Storage, attempt, in_threads
from luckbase.solver.errors import (
    CorruptTableError,
    FencedError,
    ForeignTableError,
    LuckbaseError,
    MissingTableError,
    RequestError,
    StoreError,
)
from luckbase.solver.sentences import many

BEATS = ".writer-"
"""Prefix of the objects that writers renew; followed by a writer's id."""
BEAT_SECONDS, LEASE_SECONDS = 5.0, 15.0
WATCH_SECONDS = 0.25
COMMIT_SECONDS, LONGEST_PAUSE, SHARE = 5.0, 60.0, 0.05
PARTS = (f"{TIERS}/", f"{DECISIONS}/", SEARCH)
_ID = re.compile(rb'"([0-9a-f]{8})"')
_FOLDER = r"(?:tiers|decisions|search-[0-9a-f]{1,32}|shards)/[^/]+"
_OF_WRITER = re.compile(
    rf"(?:{_FOLDER}\.(?:(?P<id>[0-9a-f]{{8}})(?:\.[0-9a-f]{{12}})?)\.(?:parquet|arrow)"
    rf"|{re.escape(BEATS)}(?P<beat>[0-9a-f]{{8}})|spill\.(?P<spill>[0-9a-f]{{8}})/.*)"
)
_TEMPORARY = re.compile(
    rf"(?:{_FOLDER}\.(?:parquet|arrow)|{re.escape(NAME)}|{re.escape(BEATS)}[^/]*)"
    r"\.[^/]+-[0-9]+-[0-9a-f]{8}-[0-9]+\.part"
)
_READ = 8 << 20
_alive: set[str] = set()
"""The ids of this process's writers."""


# --- names ---------------------------------------------------------------------------------------


def writer_of(name: str) -> str | None:
    """Return the id of the writer in a name; None if it has none."""
    match = _OF_WRITER.fullmatch(name)
    return match and (match["id"] or match["beat"] or match["spill"])


def is_ours(name: str, writers: Collection[str]) -> bool:
    """True if a file's name was given by one of these writers of the table."""
    return writer_of(name) in writers or _TEMPORARY.fullmatch(name) is not None


def writers_in(storage: Storage) -> set[str]:
    """Return the ids of a table's writers, even if its manifest is damaged."""
    with suppress(FileNotFoundError, NotADirectoryError, CorruptTableError):
        return {writer_id.decode() for writer_id in _ID.findall(storage.read_tagged(NAME)[0])}
    return set()


# --- reading -------------------------------------------------------------------------------------


def read_manifest(storage: Storage, where: Path) -> Manifest:
    """Return the manifest of the table at `where`. Raises MissingTableError if there is none,
    CorruptTableError if it was changed, ForeignTableError if it is of another format."""
    try:
        return decoded(storage.read_tagged(NAME)[0], where)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        raise _missing(storage, where) from None


def check_identity(head: Head, identity: str, where: Path) -> None:
    """Raise ForeignTableError if a table has other rules."""
    if head.identity != identity:
        raise ForeignTableError(
            f"{where}: holds a table of other rules, {head.identity}; move it away"
        )


def _missing(storage: Storage, where: Path) -> MissingTableError | ForeignTableError:
    with suppress(OSError, ValueError, LookupError, TypeError, RecursionError, CorruptTableError):
        head = json.loads(storage.read_tagged("table.json")[0])
        board = shlex.quote(f"{head['game']}/{head['board']}"[:200])
        return ForeignTableError(
            f"{where}: format {int(head['format'])}; expected 5; remove it, then run: luckbase "
            f"solve {board}"
        )
    return MissingTableError(f"{where}: no table here ({NAME} is missing)")


# --- writing -------------------------------------------------------------------------------------


class Writer:
    """The process that may change a table; a context manager.

    `manifest` is the table as this process sees it, including uncommitted entries. While a solve
    replaces a finished table (`replace`), the committed files still answer queries and the new ones
    are in `Manifest.next`; `finish` makes them the table.
    """

    manifest: Manifest

    def __init__(self, storage: Storage, where: Path, head: Head) -> None:
        """where: the table, for messages. head: of the table, which is created if missing."""
        self.storage, self.where, self._head = storage, where, head
        self.damage = ""
        """Why the existing manifest could not be used."""
        self._answers: Manifest | None = None
        """The table that answers queries while its files are replaced."""
        self._old_levels: set[str] = set()
        """The parts whose levels are not solved again."""
        self._since: float | None = None
        """When the oldest uncommitted entry was added."""
        self._pause = COMMIT_SECONDS
        self.id = os.urandom(4).hex()
        self._record = WriterRecord(
            self.id, socket.gethostname(), os.getpid(), machine_id(), started(os.getpid()),
            datetime.now().astimezone().isoformat(timespec="seconds"),
        )  # fmt: skip
        self._tag: str | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._renew, daemon=True, name="luckbase writer")

    # --- taking over -----------------------------------------------------------------------------

    def take(self, on_note: Callable[[str], None] = lambda text: None) -> Self:
        """Become the process that may change the table.

        Raises RequestError if another one is running, ForeignTableError if the table has other
        rules, StoreError if the store ignores conditions.
        """
        if self.storage.anywhere:
            _check_conditions(self.storage, self.where)
        _alive.add(self.id)
        try:
            self._beat(0)
            while not self._try_to_take(on_note):
                pass
        except BaseException:
            self._stop_beating()
            raise
        self._thread.start()
        return self

    def _try_to_take(self, on_note: Callable[[str], None]) -> bool:
        self.manifest, self._tag, self.damage = Manifest(self._head), None, ""
        self.manifest.created = os.urandom(8).hex()
        try:
            content, self._tag = self.storage.read_tagged(NAME)
            self.manifest = decoded(content, self.where)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            error = _missing(self.storage, self.where)
            if isinstance(error, ForeignTableError):
                raise error from None
        except ForeignTableError:
            raise
        except CorruptTableError as error:
            self.damage = str(error)
            self.manifest.writers = sorted(writers_in(self.storage))
        stored = self.manifest.head
        check_identity(stored, self._head.identity, self.where)
        self.manifest.head = self._head
        if not _is_gone(self.manifest.writer) and not self._wait(on_note):
            return False
        self.manifest.writer = self._record
        self.manifest.writers = [*self.manifest.writers, self.id]
        return self._swap()

    def _wait(self, on_note: Callable[[str], None]) -> bool:
        """Wait until the writer has been silent for a lease. Return False if the manifest was
        replaced meanwhile. Raises RequestError if the writer is alive."""
        record = self.manifest.writer
        assert record is not None
        running = RequestError(f"{self.where}: another solve of this table is running: {record}")
        if _is_gone(record) is False:
            raise running
        on_note(f"it is locked by {record}; waiting {LEASE_SECONDS:.0f} s to see whether that runs")
        name, until = f"{BEATS}{record.id}", time.monotonic() + LEASE_SECONDS
        first = self._read(name)
        while time.monotonic() < until:
            time.sleep(WATCH_SECONDS)
            if self._read(name) != first:
                if self._replaced():
                    return False
                raise running
        return True

    def _replaced(self) -> bool:
        """True if the manifest has changed since it was read."""
        try:
            return self.storage.read_tagged(NAME)[1] != self._tag
        except FileNotFoundError:
            return True

    def _read(self, name: str) -> bytes | None:
        with suppress(FileNotFoundError):
            return self.storage.read(name)
        return None

    def _beat(self, number: int) -> None:
        self.storage.put(f"{BEATS}{self.id}", str(number).encode())

    def _renew(self) -> None:
        number = 0
        while not self._ended.wait(BEAT_SECONDS):
            number += 1
            with suppress(LuckbaseError, OSError):  # the store may not answer for a while
                self._beat(number)

    def _stop_beating(self) -> None:
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()
        _alive.discard(self.id)
        with suppress(LuckbaseError, OSError):
            self.storage.delete(f"{BEATS}{self.id}")

    # --- committing ------------------------------------------------------------------------------

    def place(self, name: str, sha256: str = "") -> str:
        """Return the path of this writer's file, as `placed` does."""
        return placed(name, self.id, sha256)

    def add(self, *lines: Line) -> None:
        """Add entries whose files are in place to the manifest; they are committed later."""
        for line in lines:
            self.manifest.add(line)
        if self._since is None:
            self._since = time.monotonic()

    @property
    def seconds(self) -> float:
        """Seconds until the next commit; infinite if nothing is uncommitted."""
        if self._since is None:
            return float("inf")
        return max(0.0, self._since + self._pause - time.monotonic())

    def commit(self, *lines: Line) -> None:
        """Replace the manifest. It is on disk when this returns. Raises FencedError if another
        process has taken over."""
        self.add(*lines)
        began = time.monotonic()
        if not self._swap():
            raise self._fenced()
        taken = time.monotonic() - began
        self._pause = min(LONGEST_PAUSE, max(COMMIT_SECONDS, taken / SHARE))
        self._since = None

    def _swap(self) -> bool:
        stored = now = self.manifest
        now.revision += 1
        if self._answers is not None:
            now.next = self._next(self._answers)
            stored = replace(
                self._answers, next=now.next, writer=now.writer, writers=now.writers,
                revision=now.revision,
            )  # fmt: skip
        tag = self.storage.swap(NAME, stored.encoded(), self._tag)
        self._tag = tag or self._tag
        return tag is not None

    def _next(self, answers: Manifest) -> Next:
        assert self.manifest.next is not None
        old = {entry.place for entry in answers.files.values()}
        files = [entry for entry in self.manifest.files.values() if entry.place not in old]
        new = self.manifest.levels.keys() - self._old_levels
        levels = [self.manifest.levels[part] for part in sorted(new)]
        return Next(self.manifest.next.ask, files, levels)

    def _fenced(self) -> FencedError:
        by = ""
        with suppress(LuckbaseError, OSError):
            now = read_manifest(self.storage, self.where)
            by = f": {now.writer}" if now.writer else ""
        return FencedError(
            f"another solve of this table has begun{by}; this one stops, and what it has committed "
            "stays"
        )

    def replace(self, ask: str, forget: Callable[[Manifest], None]) -> None:
        """Solve a finished goal (`Goal.ask`) again, while the table still answers queries.

        forget(manifest): removes the entries to be solved again. Progress of an earlier call for
        the same goal is kept.
        """
        before, earlier = self.manifest.copied(), self.manifest.next
        forget(self.manifest)
        self._old_levels = {*self.manifest.levels}
        if earlier is None or earlier.ask != ask:
            earlier = Next(ask, [], [])
        self._answers, self.manifest.next = before, earlier
        files = {entry.name: entry for entry in earlier.files}
        damaged = damaged_files(self.storage, self.where, files)
        for level in earlier.levels:
            self.manifest.add(level)
        for name in files.keys() - damaged.keys():
            self.manifest.add(files[name])

    def drop(self, names: Iterable[str], *parts: str) -> None:
        """Remove files from the table: first from the manifest, then their bytes. Goals of a part
        that loses a file, and of `parts`, no longer count as done."""
        entries = self.manifest.take_out(names, *parts)
        self.commit()
        self._delete(entry.place for entry in entries)

    @property
    def _places(self) -> set[str]:
        """The paths of all files in the last commit."""
        files = [*self.manifest.files.values()]
        files += self._answers.files.values() if self._answers else ()
        files += self.manifest.next.files if self.manifest.next else ()
        return {entry.place for entry in files}

    def _delete(self, places: Iterable[str]) -> None:
        kept = self._places
        for place in places:
            if place not in kept:
                self.storage.delete(place)

    def sweep(self) -> None:
        """Delete the leftovers of interrupted solves: files named by their writers that are not in
        the manifest. Raises FencedError."""
        kept, writers = self._places | {f"{BEATS}{self.id}"}, {*self.manifest.writers}
        places = (*PARTS, SHARDS, BEATS, f"{NAME}.")
        names = [name for place in places for name in self.storage.list(place)]
        if self._replaced():
            raise self._fenced()  # otherwise some of these may belong to a later writer
        for name in names:
            if name not in kept and is_ours(name, writers):
                self.storage.delete(name)

    def finish(self) -> None:
        """Commit that the solve is done and let other processes write. Delete replaced files."""
        before, self._answers = self._answers, None
        self.manifest.writer = replace(self._record, ended=True)
        if before is not None:
            self.manifest.next = None
        self.commit()
        if before is not None:
            self._delete(entry.place for entry in before.files.values())

    def remove(self) -> None:
        """Delete the manifest and thereby the table. Raises FencedError."""
        self.commit()
        if not self.storage.delete_tagged(NAME, str(self._tag)):
            raise self._fenced()
        self.manifest.writer = replace(self._record, ended=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Commit outstanding entries and let other processes write at once."""
        self._ended.set()
        try:
            running = self.manifest.writer == self._record
            if running and not isinstance(error, FencedError):
                self.manifest.writer = replace(self._record, ended=True)
                if not self._swap() and error is None:
                    raise self._fenced()
        except (LuckbaseError, OSError):
            if error is None:
                raise
        finally:
            self._stop_beating()


def _is_gone(record: WriterRecord | None) -> bool | None:
    """True if a writer has ended; None if this host cannot know."""
    if record is None or record.ended:
        return True
    ended = process_ended(vars(record))
    if ended is False and record.process == os.getpid():
        return record.id not in _alive
    return ended


def _check_conditions(storage: Storage, where: Path) -> None:
    """Raise StoreError for a store that accepts conditions and ignores them, because two solves of
    a table would not notice each other."""
    name, first = f"{BEATS}check.{attempt()}.part", attempt().encode()
    created = storage.swap(name, first, None)
    again = storage.swap(name, first[::-1], None)
    replaced = storage.swap(name, first[::-1], "0" * 32)
    storage.delete(name)
    if not created or again or replaced:
        header = "If-Match" if created and not again else "If-None-Match"
        raise StoreError(
            f"{where}: the store does not do what the header {header} of a write says, so nothing "
            "would keep two solves apart; expected one that does, or a folder"
        )


# --- the files that a manifest names -------------------------------------------------------------


def files_there(storage: Storage) -> dict[str, int]:
    """Return all files in the parts' folders, with sizes, even if the manifest lacks them."""
    return {name: size for part in PARTS for name, size in storage.list(part).items()}


def damaged_files(storage: Storage, where: Path, files: Mapping[str, FileEntry]) -> dict[str, str]:
    """Return a sentence for each file that is missing, empty or of another size, by name; none for
    a web server, which cannot list its files."""
    if not storage.lists:
        return {}
    sizes = files_there(storage)
    faults = {}
    for name, entry in sorted(files.items()):
        size = sizes.get(entry.place)
        if size != entry.bytes:
            why = "is missing" if size is None else f"has {many(size, 'byte')}, not {entry.bytes:,}"
            faults[name] = f"{where / entry.place}: {'is empty' if size == 0 else why}"
    return faults


def check_bytes(
    storage: Storage, where: Path, manifest: Manifest, on_rows: OnRows = notebook.on_rows
) -> dict[str, str]:
    """Read all bytes of all files. Return a sentence for each file that has changed, by name.

    on_rows: called with the number of rows read and the total.
    """
    faults = damaged_files(storage, where, manifest.files)
    entries = [entry for name, entry in sorted(manifest.files.items()) if name not in faults]
    rows, total = 0, sum(entry.rows for entry in entries)
    on_rows(rows, total)

    def read(entry: FileEntry) -> str | None:
        return why_wrong(storage, where, entry)

    for entry, why in zip(entries, in_threads(read, entries, cores()), strict=True):
        if why:
            faults[entry.name] = why
        rows += entry.rows
        on_rows(rows, total)
    return faults


def why_wrong(storage: Storage, where: Path, entry: FileEntry) -> str | None:
    """Return why the bytes of a file are not as written; None if they are."""
    digest, path = hashlib.sha256(), where / entry.place
    try:
        with file_errors(storage, path):
            for start in range(0, entry.bytes, _READ):
                digest.update(storage.read(entry.place, start, min(start + _READ, entry.bytes)))
    except CorruptTableError as error:
        return str(error)
    same = digest.hexdigest() == entry.sha256
    return None if same else str(file_error(storage, path, "its SHA-256 is another"))
