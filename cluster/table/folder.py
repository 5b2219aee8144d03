"""A table's folder: its ledger, read and committed; whether its files are whole; what is cleared.

Every commit adds one small object of a line or several and never touches another (`entries`); at
the end of a solve all lines are written into one (`compact`), so a table of 10,000 files opens at
once. Files are in their places before a line names them (`format.put_file`). To flush a disk takes
milliseconds, for one line as for a hundred: a driver with many workers hands out new work first and
commits what came meanwhile at once (`Commits`).

Names: a shard's stage file and what it asks for, ``shards/<goal>-<level>-<number>.<sha>.arrow``
and ``.asks``; the table's files of its pieces, ``search/<goal>.<level>.<number>.<piece>.parquet``.

**Publishing** copies a finished table to where others ask it, an object store or the folder of a
web server: each file is checked as it is read, put, and read back to the last byte. One that is
there already is read and checked, and not put again, so a copy that was stopped goes on. The ledger
follows, and last the index, without which a web server's table is none.
"""

from __future__ import annotations

import hashlib
import os
import time
import zlib
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from luckbase.cluster.table import FORMAT, OnRows, nobody
from luckbase.cluster.table.entries import LINES, Entries, is_entry, seal, unseal
from luckbase.cluster.table.ledger import (
    DECISIONS,
    RUNS,
    SEARCH,
    SHARDS,
    TIERS,
    FileEntry,
    Goal,
    Head,
    Ledger,
    Line,
    ShardEntry,
    as_text,
    from_text,
    validated,
)
from luckbase.cluster.table.place import (
    INDEX,
    footers_of,
    parts_of,
    read_index,
    storage_at,
    take_index_away,
    write_index,
)
from luckbase.cluster.table.storage import Memory, Storage, Stored, in_threads
from luckbase.solver.board.model import identity_of
from luckbase.solver.errors import (
    CorruptTableError,
    ForeignTableError,
    MissingTableError,
    RequestError,
    StoreError,
)
from luckbase.solver.result import Result
from luckbase.solver.sentences import many, some

if TYPE_CHECKING:
    from luckbase.solver.search.stages import Box

HEAD = "table.json"
PIECE_STATES = 1_000_000
"""States of what is solved by one task, about: boxes are not cut."""
SWEEP_BYTES = 150
"""Bytes a state that solving takes, about, beside a process's own."""
LEAST_BYTES = 64 << 20
ORPHAN_SECONDS = 86_400.0
"""After which a file that no line names goes, by the clock of the place that it lies in."""


def read_head(storage: Storage, where: Path) -> Head:
    """The head of the table at `where`.

    Raises MissingTableError where there is none, CorruptTableError where it is not as luckbase
    wrote it or of another format.
    """
    try:
        return _head_of(storage.read(HEAD), where)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        raise MissingTableError(f"{where}: no table here ({HEAD} is missing)") from None


def _head_of(content: bytes, where: Path) -> Head:
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        raise CorruptTableError(_changed(where / HEAD, "is not text")) from None
    try:
        form = unseal("", text)
        if form.get("format") != FORMAT:
            raise CorruptTableError(
                f"{where / HEAD}: format {form.get('format')}; expected {FORMAT}; solve its board "
                "again"
            )
        head: Head = validated(Head, form)
        if identity_of(head.rules, head.rules_version) != head.identity:
            raise ValueError("its identity is not that of its rules")
        return head
    except (ValueError, RecursionError) as error:
        raise CorruptTableError(_changed(where / HEAD, str(error))) from None


def check_identity(storage: Storage, where: Path, identity: str) -> None:
    """Raises as `read_head`, and ForeignTableError where the head says other rules."""
    stored = read_head(storage, where).identity
    if stored != identity:
        raise ForeignTableError(f"{where}: holds a table of other rules, {stored}; move it away")


def _changed(path: Path, why: str) -> str:
    again = "luckbase solve of its board makes it again"
    if getattr(path, "read_only", False):
        again = "expected what luckbase publish wrote; publish the table there again"
    return f"{path}: was changed after luckbase wrote it: {why[:80]}; {again}"


def begin(storage: Storage, where: Path, head: Head, holder: str, lapsed: bool = False) -> Ledger:
    """The ledger from which a driver goes on, to which no earlier driver can add any more. Lines
    that are not as luckbase wrote them are left out and noted. lapsed: as `Entries.begin` has it.
    """
    entries = Entries(storage, head.identity)
    entries.begin(holder, lapsed)
    ledger = read_lines(where, entries, head)
    ledger.entries = entries
    return ledger


def read_ledger(storage: Storage, where: Path) -> Ledger:
    """The ledger of the table at `where`, of its index where it has one. Raises as `read_head`, and
    CorruptTableError for a line that is not as luckbase wrote it."""
    content = read_index(storage)
    indexed = None if content is None else _indexed(content, where)
    if indexed is not None:
        return indexed
    head = read_head(storage, where)
    ledger = read_lines(where, Entries(storage, head.identity), head)
    if ledger.damage:
        raise CorruptTableError(ledger.damage[-1])
    return ledger


def _indexed(content: bytes, where: Path) -> Ledger | None:
    """The ledger in a table's index, with its footers; None while the table is changed."""
    try:
        head, lines, footers = parts_of(content)
        if not head:
            return None
        ledger = Ledger(_head_of(head, where))
        for line in lines.decode().splitlines():
            ledger.add(from_text(ledger.head, line))
    except (ValueError, KeyError, zlib.error, RecursionError) as error:
        raise CorruptTableError(_changed(where / INDEX, str(error))) from None
    ledger.footers, ledger.compacted = footers_of(ledger, footers), True
    return ledger


def read_lines(where: Path, entries: Entries, head: Head) -> Ledger:
    """What the entries of a table say. A line that is not as it was written counts as none, and
    `Ledger.damage` says so."""
    ledger = Ledger(head)
    for entry in entries.read():
        lost = [entry.damage] if entry.damage else []
        for number, line in enumerate(entry.lines, start=2):
            try:
                ledger.add(from_text(head, line + "\n"))
            except (ValueError, RecursionError) as error:
                lost.append(f"line {number}: {error}")
        ledger.damage += [_changed(where / entry.name, why) for why in lost]
    ledger.compacted = entries.compacted is not None
    return ledger


def write_head(storage: Storage, head: Head) -> None:
    """Write the head."""
    storage.put(HEAD, seal("", asdict(head), indent=1).encode())


def commit(ledger: Ledger, *lines: Line) -> None:
    """Add lines to the ledger, all or none, on the disk when this returns; `ledger`, which has
    begun, is modified in place. Raises FencedError where another driver has begun."""
    entries_of(ledger).add("".join(as_text(ledger.head, line) for line in lines))
    for line in lines:
        ledger.add(line)


def compact(ledger: Ledger) -> None:
    """Write all lines of `ledger` as one entry, and delete those before it: what it does not say
    any more is gone. Nothing is written where nothing would change."""
    entries_of(ledger).compact(ledger.as_text())


def entries_of(ledger: Ledger) -> Entries:
    """Where lines are added to a ledger that has begun."""
    assert ledger.entries is not None, "a driver begins before it commits"
    return ledger.entries


MAX_WAITING = 64
"""Lines that wait at most: what a process that dies has done in vain."""


class Commits:
    """Lines that wait, of a ledger that is modified in place once they are on the disk. A driver
    commits when nothing else is to do and they have waited, or `full`. A context: at its end, also
    at an error, it commits."""

    def __init__(self, ledger: Ledger, patience: float = 0.0) -> None:
        """patience: seconds that a line may wait for others."""
        self.ledger, self.patience, self._since = ledger, patience, 0.0
        self.lines: list[Line] = []

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        self.flush()

    def __len__(self) -> int:
        return len(self.lines)

    @property
    def full(self) -> bool:
        """Whether no more should wait."""
        return len(self) >= MAX_WAITING

    @property
    def seconds(self) -> float:
        """Until the lines that wait are to be committed."""
        return max(0.0, self._since + self.patience - time.monotonic())

    def add(self, line: Line) -> None:
        """A line, of files that are in their places."""
        if not self.lines:
            self._since = time.monotonic()
        self.lines.append(line)

    def flush(self) -> None:
        """Commit all that waits."""
        lines, self.lines = self.lines, []
        if lines:
            commit(self.ledger, *lines)


# --- shards of a search that runs ---


def stage_file_name(part: str, shard: str, piece: int) -> str:
    """The name of the table's file of a piece of a shard: ``<goal>.<level>.<number>.<piece>``."""
    return f"{part}/{shard.replace('-', '.')}.{piece}.parquet"


@dataclass(frozen=True)
class Piece:
    """Boxes of a shard, from the first to before the last, that are solved by one task."""

    entry: ShardEntry
    number: int
    boxes: tuple[int, int]

    @property
    def states(self) -> int:
        """How many there are."""
        return sum(self.entry.boxes[slice(*self.boxes)])

    @property
    def spans(self) -> tuple[Box, ...]:
        """Where they lie."""
        from luckbase.solver.search.stages import Box  # compiles the search

        return tuple(Box(*ends) for ends in self.entry.spans[slice(*self.boxes)])

    @property
    def memory(self) -> int:
        """Bytes that its task takes, about."""
        return max(LEAST_BYTES, SWEEP_BYTES * self.states)


def pieces_of(entry: ShardEntry) -> list[Piece]:
    """The pieces of a shard, children first: boxes as they come, last ones first, while they are
    small together."""
    pieces: list[Piece] = []
    stop, states = len(entry.boxes), 0
    for i in range(len(entry.boxes) - 1, -1, -1):
        states += entry.boxes[i]
        if states >= PIECE_STATES or not i:
            pieces.append(Piece(entry, len(pieces), (i, stop)))
            stop, states = i, 0
    return pieces


def ends_of(box: Box) -> list[int]:
    """A box as the ledger says it: its ends, nothing for all of a stage."""
    return [] if box.whole else [box.low, box.high]


def askers_of(entry: ShardEntry) -> list[str]:
    """The names of the shards that ask a shard."""
    search = entry.name.split("-")[0]
    return [f"{search}-{level}-{k}" for level, numbers in entry.askers.items() for k in numbers]


def needed_shards(ledger: Ledger, ask: str) -> list[ShardEntry]:
    """The shards of a search whose stage files are still needed: those that are not solved, and
    those that one of them reads."""
    files = {name.rpartition("/")[2] for name in ledger.files}
    solved = {
        name for name, shard in ledger.shards.items()
        if all(stage_file_name("", name, p.number)[1:] in files for p in pieces_of(shard))
    }  # fmt: skip
    return [
        shard for name, shard in ledger.shards.items()
        if shard.ask == ask and not (name in solved and solved.issuperset(askers_of(shard)))
    ]  # fmt: skip


# --- files ---


def files_there(storage: Storage) -> dict[str, int]:
    """The files in the folders of the parts, with sizes, whether the ledger names them or not."""
    dense = [storage.list(f"{part}/") for part in (TIERS, DECISIONS, RUNS)]
    return {name: size for part in (*dense, storage.list(SEARCH)) for name, size in part.items()}


def damaged_files(storage: Storage, where: Path, ledger: Ledger) -> dict[str, str]:
    """The files that are missing, empty or of another size, by name, each with a sentence; nothing
    is known of a web server's, which does not say what it has."""
    if not storage.lists:
        return {}
    sizes = files_there(storage)
    faults = {}
    for name, entry in sorted(ledger.files.items()):
        size = sizes.get(entry.place)
        if size != entry.bytes:
            why = "is missing" if size is None else f"has {many(size, 'byte')}, not {entry.bytes:,}"
            faults[name] = f"{where / entry.place}: {'is empty' if size == 0 else why}"
    return faults


def check_bytes(
    storage: Storage, where: Path, ledger: Ledger, on_rows: OnRows = nobody,
    checked: Mapping[str, set[int]] = {},
) -> dict[str, str]:  # fmt: skip
    """The files that are not as they were written, by name: every byte of all of them is read.
    on_rows: called with how many rows were read, and of how many. checked: row groups, by
    file, that were read before."""
    from luckbase.cluster.machine import cores

    faults = damaged_files(storage, where, ledger)
    entries = [entry for name, entry in sorted(ledger.files.items()) if name not in faults]
    rows, total = 0, sum(entry.rows for entry in entries)
    on_rows(rows, total)

    def why_wrong(entry: FileEntry) -> str | None:
        return _why_wrong(storage, where, entry, checked.get(entry.name, set()))

    for entry, why in zip(entries, in_threads(why_wrong, entries, cores()), strict=True):
        if why:
            faults[entry.name] = why
        rows += entry.rows
        on_rows(rows, total)
    return faults


def _why_wrong(
    storage: Storage, where: Path, entry: FileEntry, checked: AbstractSet[int] = frozenset()
) -> str | None:
    """Why the bytes of a file are not as they were written; None where they are, to the last.
    checked: row groups that were read before."""
    from luckbase.cluster.table.decisions import open_blocks  # brings pyarrow

    try:
        with closing(open_blocks(storage, where, entry)) as file:
            for group in file.ahead(sorted({*range(file.groups)} - checked)):
                file.check(group)
    except CorruptTableError as error:
        return str(error)
    return None


def drop_files(
    storage: Storage, ledger: Ledger, names: list[str], goal: Goal | None = None
) -> None:
    """Take files out of the table: the ledger first, then their bytes. No goal of a part that
    loses a file counts as done, nor `goal`. `ledger` is modified in place."""
    entries = [ledger.files.pop(name) for name in names]
    parts, places = {entry.part for entry in entries}, [entry.place for entry in entries]
    if goal is not None:
        parts.add(goal.part)
    asks = {goal.ask for goal in ledger.goals if goal.part in parts}
    for ask in asks:
        ledger.done.pop(ask, None)
    ledger.shards = {name: s for name, s in ledger.shards.items() if s.ask not in asks}
    compact(ledger)
    for place in places:
        storage.delete(place)


def sweep(storage: Storage, where: Path, ledger: Ledger) -> list[str]:
    """Delete what a stopped solve left: temporary files, files that the ledger does not name,
    shards of searches that are done; and forget shards of which what they ask for is not as it was
    written, a sentence each."""
    lost = []
    for name, shard in list(ledger.shards.items()):
        why = None if shard.ask in ledger.done else _why_lost(storage, shard)
        if why:
            lost.append(f"{where / shard.ask_place}: {why}")
        if why or shard.ask in ledger.done:
            del ledger.shards[name]
    shards = ledger.shards.values()
    committed = {entry.place for entry in ledger.files.values()}
    committed |= {place for shard in shards for place in (shard.place, shard.ask_place)}
    files, parts = dict[str, Stored](), (TIERS, DECISIONS, RUNS, SEARCH)
    for folder in (*(f"{part}/" for part in parts[:3]), SEARCH, SHARDS, LINES, f"{HEAD}."):
        files |= storage.details(folder)
    now = max((stored.put_at for name, stored in files.items() if is_entry(name)), default=0.0)
    entries_of(ledger).check()  # so all of this is older than what a later driver puts
    for name, stored in files.items():
        if name in committed or is_entry(name):
            continue
        # A file of the table that is there already need not be put: who finds it takes it.
        spare = not name.startswith(parts) or now - stored.put_at > ORPHAN_SECONDS
        if spare or name.endswith(".part"):
            storage.delete(name)
    return lost


def _why_lost(storage: Storage, shard: ShardEntry) -> str | None:
    """Why a shard that was found has to be found again, for lower ones may yet need what it asks
    for; None if it has not."""
    try:
        content = storage.read(shard.ask_place)
    except FileNotFoundError:
        return "is missing"
    same = hashlib.sha256(content).hexdigest() == shard.ask_sha256
    return None if same else "is not as luckbase wrote it"


# --- publishing ---

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
            if len(content) == entry.bytes and not _why_wrong(
                Memory({entry.place: content}), to, entry
            ):
                footers[entry.name] = content[-entry.footer :]
                return False
        content = source.read(entry.place)
        why = _why_wrong(Memory({entry.place: content}), table, entry)
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
