"""A ledger in its place: the objects that it lies in, who may add one, which of them count; all of
it read and committed; and whether the files that it names are whole, and what is cleared.

Every commit adds one small object of a line or several and never touches another; at the end of a
solve all lines are written into one (`compact`), so a table of 10,000 files opens at once. Files
are in their places before a line names them (`format.put_file`). To flush a disk takes
milliseconds, for one line as for a hundred: a driver with many workers hands out new work first and
commits what came meanwhile at once (`Commits`).

An **entry** is ``ledger/<10 digits>``, counted from 1: sealed lines, the first of which says what
it is. It is put where there is none, and never changes::

    fence   a driver begins here: nobody who began before it can add anything any more
    lines   what one commit adds, all of it or nothing
    all     everything that counts here: what has a smaller number does not count any more

A driver adds the number after its last, no other, so an earlier one runs into the fence of a later
one, and stops. Safety needs nothing else: no lock, no lease, no clock. What it does need:

* Fences are never deleted. A driver that was suspended for a week tries the number after its last,
  and that must be taken.
* A compaction deletes smaller numbers than its own: what another driver has added after it counts.
* Names that a driver deletes are of its own past. It deletes a file that the ledger named once an
  entry of its own has taken it out; another only where it has listed it, and then found that
  nobody has begun (`check`). And whoever begins while an earlier driver may yet live puts all files
  under names of its own (`mark`): so no delete that comes late, of whatever driver, hits what
  counts.
* A driver that has made its fence lists again. A compaction may have made a hole, between its first
  list and its fence, into which the fence fell, where it stops nobody: then it begins again.
"""

from __future__ import annotations

import hashlib
import os
import time
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from luckbase.cluster.table import FORMAT, OnRows, nobody
from luckbase.cluster.table.index import INDEX, footers_of, parts_of, read_index
from luckbase.cluster.table.ledger import (
    DECISIONS,
    RUNS,
    SEARCH,
    SHARDS,
    TIERS,
    FileEntry,
    Head,
    Ledger,
    Line,
    as_text,
    digest,
    file_error,
    file_errors,
    from_text,
    seal,
    unseal,
    validated,
)
from luckbase.cluster.table.storage import Storage, Stored, in_threads
from luckbase.solver.board.model import identity_of
from luckbase.solver.errors import (
    CorruptTableError,
    FencedError,
    ForeignTableError,
    MissingTableError,
)
from luckbase.solver.sentences import many

HEAD = "table.json"
LINES = "ledger/"
FENCE, ADDS, ALL = "fence", "lines", "all"
ORPHAN_SECONDS = 86_400.0
"""After which a file that no line names goes, by the clock of the place that it lies in."""
_DIGITS, _TRIES, _GAP_TRIES, _AT_ONCE = 10, 50, 3, 16


@dataclass(frozen=True)
class Entry:
    """An entry that counts. lines: without their line feeds. damage: why not all of it is as it was
    written, "" where it is."""

    number: int
    kind: str
    lines: list[str]
    holder: str = ""
    damage: str = ""

    @property
    def name(self) -> str:
        """Its name in the store."""
        return entry_name(self.number)


def is_entry(name: str) -> bool:
    """Whether an object is an entry, by its name."""
    number = name.removeprefix(LINES)
    return len(number) == _DIGITS and number.isascii() and number.isdigit()


def entry_name(number: int) -> str:
    """The name of an entry."""
    return f"{LINES}{number:0{_DIGITS}d}"


class Entries:
    """The entries of one table. Whoever adds begins before; who reads only, does not."""

    def __init__(self, storage: Storage, identity: str) -> None:
        """identity: of the table, by which lines are sealed."""
        self.storage, self.identity = storage, identity
        self.number = 0
        """Of the last one that is this driver's; 0 before it begins."""
        self.mark = ""
        """What the names of this driver's files have that no other driver's have."""
        self.compacted: str | None = None
        """The text of the entry that says all, where only fences came after it."""
        self._compaction = 0
        self._nonce = os.urandom(8).hex()
        self._kinds: dict[int, str] = {}

    # --- adding --------------------------------------------------------------------------------

    def begin(self, holder: str, lapsed: bool = False) -> None:
        """Make a fence, which names the holder: from here on no earlier driver adds anything.
        lapsed: an earlier driver may yet live, and delete what it wanted to delete."""
        for _ in range(_TRIES):
            number = max(self._numbers(), default=0) + 1
            if self._put(number, FENCE, "", holder) and max(self._numbers()) == number:
                self.number, self.mark = number, f".fence-{number}" if lapsed else ""
                return
        raise FencedError("other solves of this table begin all the time; try again")

    def add(self, text: str, kind: str = ADDS) -> None:
        """Add sealed lines, each with its line feed, in one entry. Raises FencedError where another
        driver has begun."""
        assert self.number, "a driver begins before it adds"
        number = self.number + 1
        if not self._put(number, kind, text):
            raise self._fenced()
        self.number, self.compacted = number, None

    def check(self) -> None:
        """Raises FencedError where another driver has begun."""
        if max(self._numbers()) > self.number:
            raise self._fenced()

    def _fenced(self) -> FencedError:
        by, name = "", entry_name(self.number + 1)
        with suppress(FileNotFoundError):
            by = self._entry(self.number + 1, self.storage.read(name)).holder
        return FencedError(
            f"another solve of this table has begun{by and f': {by}'}; this one stops, and what it "
            "has committed stays"
        )

    def compact(self, text: str) -> None:
        """Say in one entry all lines that count, where none says so yet; and delete what does not
        count any more."""
        if text != self.compacted:
            self.add(text, ALL)
            self.compacted, self._compaction = text, self.number
        for number in self._superseded():
            self.storage.delete(entry_name(number))

    def _superseded(self) -> list[int]:
        return [n for n in self._numbers() if n < self._compaction and self._kind(n) != FENCE]

    def _kind(self, number: int) -> str:
        """The kind of an entry; of one that can not be read, of which it may be: a fence."""
        if number not in self._kinds:
            try:
                self._entry(number, self.storage.read(entry_name(number)))
            except FileNotFoundError:
                return ADDS
        return self._kinds[number]

    def _put(self, number: int, kind: str, text: str, holder: str = "") -> bool:
        head = {"kind": kind, "number": number, "nonce": self._nonce, "digest": digest(text)}
        head |= {"holder": holder} if holder else {}
        content = (seal(self.identity, head) + text).encode()
        done = self.storage.put_if_absent(entry_name(number), content)
        if done:
            self._kinds[number] = kind
        return done

    # --- reading -------------------------------------------------------------------------------

    def read(self) -> list[Entry]:
        """The entries that count, ascending: the last of all lines, and what came after it.

        A number that is missing among them is an entry that has only damage.
        """
        for attempt in range(_TRIES):
            numbers = self._numbers()
            entries, end = list[Entry](), (numbers or [0])[-1]
            try:
                for entry in self._descending(numbers):
                    entries += [_missing(n) for n in range(end, entry.number, -1)]
                    entries.append(entry)
                    end = entry.number - 1
                    if entry.kind == ALL:
                        end = 0
                        break
            except FileNotFoundError:
                continue  # it has just been compacted
            entries += [_missing(n) for n in range(end, 0, -1)][:1]
            gaps = any(not entry.kind for entry in entries)
            if not gaps or attempt >= _GAP_TRIES:  # a folder's list may miss one that is new
                return self._note_compaction(entries[::-1])
        raise CorruptTableError("the ledger of this table changes all the time; try again")

    def _note_compaction(self, entries: list[Entry]) -> list[Entry]:
        counts = [entry for entry in entries if entry.kind != FENCE]
        self.compacted = None
        if all(entry.kind == ALL and not entry.damage for entry in counts):
            self.compacted = "".join(f"{line}\n" for entry in counts for line in entry.lines)
            self._compaction = counts[0].number if counts else 0
        return entries

    def _descending(self, numbers: list[int]) -> Iterator[Entry]:
        names = [entry_name(number) for number in numbers]
        if names:  # of a table that is complete the last one says all
            yield self._entry(numbers[-1], self.storage.read(names[-1]))
        for stop in range(len(names) - 1, 0, -_AT_ONCE):
            at = range(max(0, stop - _AT_ONCE), stop)
            contents = self._read_all([names[i] for i in at])
            yield from (self._entry(numbers[i], contents[i - at[0]]) for i in reversed(at))

    def _read_all(self, names: list[str]) -> list[bytes]:
        return list(in_threads(self.storage.read, names, _AT_ONCE))  # of a store as quick as one

    def _entry(self, number: int, content: bytes) -> Entry:
        head: dict[str, Any] = {}
        try:
            first, _, text = content.decode().partition("\n")
            head = unseal(self.identity, first + "\n")
            damage = "" if digest(text) == head["digest"] else "its lines are not all there"
            damage = damage if head["number"] == number else "it is of another number"
        except (ValueError, KeyError, RecursionError) as error:
            text = content.decode(errors="replace")
            damage = f"line 1: {error}"
        self._kinds[number] = head.get("kind", FENCE)
        lines = text.removesuffix("\n").split("\n") if text else []
        return Entry(number, head.get("kind", ADDS), lines, head.get("holder", ""), damage)

    def _numbers(self) -> list[int]:
        names = filter(is_entry, self.storage.list(LINES))
        return sorted(int(name.removeprefix(LINES)) for name in names)


def _missing(number: int) -> Entry:
    return Entry(number, "", [], damage="is missing")


# --- a ledger, read and committed ---


def read_head(storage: Storage, where: Path) -> Head:
    """The head of the table at `where`.

    Raises MissingTableError where there is none, CorruptTableError where it is not as luckbase
    wrote it or of an earlier format, ForeignTableError where it is of a later one.
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
        if (found := form.get("format")) != FORMAT:
            said = f"{where / HEAD}: format {found}; expected {FORMAT}"
            if isinstance(found, int) and found > FORMAT:  # a solve must not replace it
                raise ForeignTableError(f"{said}; a newer luckbase wrote it: update this one")
            raise CorruptTableError(f"{said}; solve its board again")
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
    content = read_index(storage) if storage.anywhere else None
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


def compact(ledger: Ledger, gone: Iterable[str] = ()) -> None:
    """Write all lines of `ledger` as one entry, and delete those before it: what it does not say
    any more is gone, and so are files, in these places, that it names no more. Nothing is written
    where nothing would change."""
    entries_of(ledger).compact(ledger.as_text())
    for place in gone:
        entries_of(ledger).storage.delete(place)


def entries_of(ledger: Ledger) -> Entries:
    """Where lines are added to a ledger that has begun."""
    assert ledger.entries is not None, "a driver begins before it commits"
    return ledger.entries


MAX_WAITING = 64
"""Lines that wait at most once their patience is over: they are lost with their process."""


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
        """Whether no more should wait: there are many, and they have waited."""
        return len(self) >= MAX_WAITING and not self.seconds

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


# --- the files that it names ---


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
    storage: Storage, where: Path, ledger: Ledger, on_rows: OnRows = nobody
) -> dict[str, str]:
    """Read every byte of every file, and return a sentence for each file that has changed, by name.

    on_rows: called with how many rows were read, and of how many.
    """
    from luckbase.cluster.machine import cores

    faults = damaged_files(storage, where, ledger)
    entries = [entry for name, entry in sorted(ledger.files.items()) if name not in faults]
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


_READ = 8 << 20


def why_wrong(storage: Storage, where: Path, entry: FileEntry) -> str | None:
    """Return why the bytes of a file are not as they were written; None if they are."""
    digest, path = hashlib.sha256(), where / entry.place
    try:
        with file_errors(storage, path):
            for start in range(0, entry.bytes, _READ):
                digest.update(storage.read(entry.place, start, min(start + _READ, entry.bytes)))
    except CorruptTableError as error:
        return str(error)
    same = digest.hexdigest() == entry.sha256
    return None if same else str(file_error(storage, path, "its SHA-256 is another"))


def drop_files(ledger: Ledger, names: Iterable[str], *parts: str) -> None:
    """Take files out of the table: the ledger first, then their bytes. No goal of a part that
    loses a file counts as done, nor one of `parts`. `ledger` is modified in place."""
    entries = [ledger.files.pop(name) for name in names]
    lost = {*parts, *(entry.part for entry in entries)}
    for goal in ledger.goals:
        if goal.part in lost:
            ledger.done.pop(goal.ask, None)
    compact(ledger, [entry.place for entry in entries])


def sweep(storage: Storage, ledger: Ledger) -> None:
    """Delete the leftovers of a stopped solve: temporary files, stage files, and files that the
    ledger does not name."""
    committed = {entry.place for entry in ledger.files.values()}
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
