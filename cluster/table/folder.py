"""A table's folder: its ledger, read and committed; whether its files are whole; what is cleared.

Every commit adds one small object ``ledger/<name>.jsonl`` of a line or several and never touches
another; at the end of a solve all lines are written into one object (`compact`) and the others
deleted, so a table of 10,000 files opens at once. To flush a disk takes milliseconds, for one line
as for a hundred: a driver with many workers hands out new work first and commits what came
meanwhile at once (`Commits`).

Names: a shard's stage file and what it asks for, ``shards/<goal>-<level>-<number>.arrow`` and
``.asks``; the table's files of its pieces, ``search/<goal>.<level>.<number>.<piece>.parquet``.
"""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from luckbase.cluster.table import FORMAT, OnRows, nobody
from luckbase.cluster.table.index import INDEX, footers_of, parts_of, read_index
from luckbase.cluster.table.ledger import (
    SEARCH,
    TIERS,
    Done,
    FileEntry,
    Goal,
    Head,
    Ledger,
    LevelEntry,
    Line,
    ShardEntry,
    as_text,
    digest,
    from_text,
    seal,
    unseal,
    validated,
)
from luckbase.cluster.table.storage import Storage
from luckbase.cluster.words import many
from luckbase.solver.board.model import identity_of
from luckbase.solver.errors import CorruptTableError, ForeignTableError, MissingTableError

if TYPE_CHECKING:
    from luckbase.solver.search.stages import Box

HEAD = "table.json"
LINES, ALL = "ledger/", "ledger/all-"
_TRIES = 50
PIECE_STATES = 1_000_000
"""States of what is solved by one task, about: boxes are not cut."""
SWEEP_BYTES = 150
"""Bytes a state that solving takes, about, beside a process's own."""
LEAST_BYTES = 64 << 20
SHARDS = "shards/"
"""Where shards lie in the table's folder while a search runs."""


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
    there = read_head(storage, where).identity
    if there != identity:
        raise ForeignTableError(f"{where}: holds a table of other rules, {there}; move it away")


def _changed(path: Path, why: str) -> str:
    return (
        f"{path}: was changed after luckbase wrote it: {why[:80]}; luckbase solve of its board "
        "makes it again"
    )


def read_ledger(
    storage: Storage, where: Path, *, head: Head | None = None, lenient: bool = False
) -> Ledger:
    """The ledger of the table at `where`, of its index where it has one and the head is not known.

    Raises as `read_head`, and CorruptTableError for a line that is not as luckbase wrote it, unless
    `lenient`: such a line then counts as not written, and `Ledger.damage` says so.
    """
    if head is None and (content := read_index(storage)) is not None:
        return _indexed(content, where)
    head = head or read_head(storage, where)
    for _ in range(_TRIES):
        try:
            return _read_lines(storage, where, head, lenient)
        except FileNotFoundError:
            continue  # a solve has just compacted it: look again
    raise CorruptTableError(f"{where}: its ledger changes all the time; try again")


def _indexed(content: bytes, where: Path) -> Ledger:
    """The ledger in a table's index, with its footers."""
    try:
        head, lines, footers = parts_of(content)
        ledger = Ledger(_head_of(head, where))
        for line in lines.decode().splitlines():
            ledger.add(from_text(ledger.head, line))
    except (ValueError, KeyError, zlib.error, RecursionError) as error:
        raise CorruptTableError(_changed(where / INDEX, str(error))) from None
    ledger.footers = footers_of(ledger, footers)
    return ledger


def _read_lines(storage: Storage, where: Path, head: Head, lenient: bool) -> Ledger:
    ledger = Ledger(head)
    for name in storage.list(LINES):
        if not name.endswith(".jsonl"):
            continue
        content = storage.read(name)
        *lines, rest = content.split(b"\n")
        lost = ["its end is missing"] if rest or not content else []
        if name.startswith(ALL) and name != _all_name(content) and content:
            lost.append("it is not the text that its name says")
        for number, raw in enumerate(lines, start=1):
            try:
                ledger.add(from_text(head, raw.decode("utf-8")))
            except (ValueError, RecursionError) as error:
                lost.append(f"line {number}: {error}")
        if lost and not lenient:
            raise CorruptTableError(_changed(where / name, lost[-1]))
        ledger.damage += [_changed(where / name, why) for why in lost]
    return ledger


def _all_name(content: bytes) -> str:
    """The name of the object that holds all lines."""
    return f"{ALL}{hashlib.sha256(content).hexdigest()[:12]}.jsonl"


def write_head(storage: Storage, head: Head) -> None:
    """Write the head."""
    storage.put(HEAD, seal("", asdict(head), indent=1).encode())


def commit(storage: Storage, ledger: Ledger, *lines: Line) -> None:
    """Add lines to the ledger, all or none, on the disk when this returns; `ledger` is modified in
    place."""
    text = "".join(as_text(ledger.head, line) for line in lines)
    name = _line_name(lines[0]) if len(lines) == 1 else f"lines-{digest(text)[:12]}"
    storage.put(f"{LINES}{name}.jsonl", text.encode())
    for line in lines:
        ledger.add(line)


def _line_name(line: Line) -> str:
    """The name of the object that holds a line alone."""
    if isinstance(line, FileEntry | ShardEntry):
        return re.sub(r"[^A-Za-z0-9_.-]", ",", line.name)
    if isinstance(line, Done | LevelEntry):
        return f"{'done' if isinstance(line, Done) else 'level'}-{line.ask}"
    return f"goal-{line.number:04d}-{digest(json.dumps(asdict(line), sort_keys=True))[:12]}"


def compact(storage: Storage, ledger: Ledger) -> None:
    """Write all lines of `ledger` as one object, and delete every other: what it does not say any
    more is gone. Nothing is written where nothing would change."""
    text = "".join(as_text(ledger.head, line) for line in ledger.lines()).encode()
    name = _all_name(text)
    there = storage.list(LINES)
    if name not in there and text:
        storage.put(name, text)
    for other in there:
        if other != name:
            storage.delete(other)


MAX_WAITING = 64
"""Lines that wait at most: what a process that dies has done in vain."""


class Commits:
    """What waits of a ledger, which is modified in place once it is on the disk. A driver commits
    when nothing else is to do or `full`. A context: at its end, also at an error, it commits."""

    def __init__(self, storage: Storage, ledger: Ledger) -> None:
        self.storage, self.ledger = storage, ledger
        self.lines: list[Line] = []
        self.files: dict[str, Path] = {}

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

    def add(self, line: Line, files: dict[str, Path]) -> None:
        """A line, and what is moved to its place before it is committed."""
        self.lines.append(line)
        self.files.update(files)

    def flush(self) -> None:
        """Commit all that waits: the files first, on the disk when this returns."""
        if not self.lines:
            return
        lines, files, self.lines, self.files = self.lines, self.files, [], {}
        self.storage.put_all(files)
        commit(self.storage, self.ledger, *lines)


# --- shards of a search that runs ---


def shard_name(name: str) -> str:
    """Where a shard's stage file lies in the table's folder while the search runs."""
    return f"{SHARDS}{name}.arrow"


def ask_name(name: str) -> str:
    """Where that lies what a shard asks for."""
    return f"{SHARDS}{name}.asks"


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
    found: list[Piece] = []
    stop, states = len(entry.boxes), 0
    for i in range(len(entry.boxes) - 1, -1, -1):
        states += entry.boxes[i]
        if states >= PIECE_STATES or not i:
            found.append(Piece(entry, len(found), (i, stop)))
            stop, states = i, 0
    return found


def ends_of(box: Box) -> list[int]:
    """A box as the ledger says it: its ends, nothing for all of a stage."""
    return [] if box.whole else [box.low, box.high]


def askers_of(entry: ShardEntry) -> list[str]:
    """The names of the shards that ask a shard."""
    search = entry.name.split("-")[0]
    return [f"{search}-{level}-{k}" for level, numbers in entry.askers.items() for k in numbers]


# --- files ---


def files_there(storage: Storage) -> dict[str, int]:
    """What stands in the folders of the parts, with sizes, whether the ledger names it or not."""
    return {**storage.list(f"{TIERS}/"), **storage.list(SEARCH)}


def damaged_files(storage: Storage, where: Path, ledger: Ledger) -> dict[str, str]:
    """The files that are missing, empty or of another size, by name, each with a sentence; nothing
    is known of a web server's, which does not say what it has."""
    if not storage.lists:
        return {}
    there = files_there(storage)
    found = {}
    for name, entry in sorted(ledger.files.items()):
        size = there.get(name)
        if size != entry.bytes:
            why = "is missing" if size is None else f"has {many(size, 'byte')}, not {entry.bytes:,}"
            found[name] = f"{where / name}: {'is empty' if size == 0 else why}"
    return found


def check_bytes(
    storage: Storage, where: Path, ledger: Ledger, on_rows: OnRows = nobody
) -> dict[str, str]:
    """The files that are not as they were written, by name: every byte of all of them is read.
    on_rows: told how many rows lie in those that were read, and in all."""
    from luckbase.cluster.machine import cores
    from luckbase.cluster.table.format import SealedFile  # brings pyarrow

    def check(entry: FileEntry) -> str | None:
        try:
            with closing(SealedFile(storage, where, entry)) as file:
                for group in file.ahead(range(file.groups)):
                    file.check(group)
        except CorruptTableError as error:
            return str(error)
        return None

    found = damaged_files(storage, where, ledger)
    entries = [entry for name, entry in sorted(ledger.files.items()) if name not in found]
    rows, total = 0, sum(entry.rows for entry in entries)
    pool = ThreadPoolExecutor(cores())
    try:
        on_rows(rows, total)
        for entry, why in zip(entries, pool.map(check, entries), strict=True):
            if why:
                found[entry.name] = why
            rows += entry.rows
            on_rows(rows, total)
    finally:
        pool.shutdown(cancel_futures=True)  # after an interrupt no other file is begun
    return found


def drop_files(
    storage: Storage, ledger: Ledger, names: list[str], goal: Goal | None = None
) -> None:
    """Take files out of the table: the ledger first, then their bytes. No goal of a part that
    loses a file counts as done, nor `goal`. `ledger` is modified in place."""
    parts = {ledger.files.pop(name).part for name in names}
    if goal is not None:
        parts.add(goal.part)
    asks = {goal.ask for goal in ledger.goals if goal.part in parts}
    for ask in asks:
        ledger.done.pop(ask, None)
    ledger.shards = {name: s for name, s in ledger.shards.items() if s.ask not in asks}
    compact(storage, ledger)
    for name in names:
        storage.delete(name)


def sweep(storage: Storage, where: Path, ledger: Ledger) -> list[str]:
    """Delete what a stopped solve left: temporary files, files that the ledger does not name,
    shards of searches that are done; and forget shards that are not as they were written, a
    sentence each."""
    lost = []
    files = {name.rpartition("/")[2] for name in ledger.files}
    solved = {
        name for name, shard in ledger.shards.items()
        if all(stage_file_name("", name, p.number)[1:] in files for p in pieces_of(shard))
    }  # fmt: skip
    for name, shard in list(ledger.shards.items()):
        spare = name in solved and solved.issuperset(askers_of(shard))
        why = None if shard.ask in ledger.done else _why_lost(storage, shard, spare)
        if why:
            lost.append(f"{where / shard_name(name)}: {why}")
        if why or shard.ask in ledger.done:
            del ledger.shards[name]
    committed = {*ledger.files, *map(shard_name, ledger.shards), *map(ask_name, ledger.shards)}
    for folder in (f"{TIERS}/", SEARCH, SHARDS, LINES, f"{HEAD}."):
        for name in storage.list(folder):
            ours = name in committed or name.startswith(LINES)
            if name.endswith(".part") or not ours:
                storage.delete(name)
    return lost


def _why_lost(storage: Storage, shard: ShardEntry, spare: bool) -> str | None:
    """Why a shard that was found has to be found again; None if it has not. spare: it is solved and
    nobody reads it any more, so it need have no file; lower shards may yet need what it asks for.
    """
    changed = "is not as luckbase wrote it"
    try:
        if hashlib.sha256(storage.read(ask_name(shard.name))).hexdigest() != shard.ask_sha256:
            return changed
        content = storage.read(shard_name(shard.name))
    except FileNotFoundError:
        gone = ask_name(shard.name) not in storage.list(ask_name(shard.name))
        return "is missing" if gone or not spare else None
    return None if hashlib.sha256(content).hexdigest() == shard.sha256 else changed
