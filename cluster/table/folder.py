"""What lies in a table's folder: whether its files are whole, what is beside them while a search
by stages runs and in which pieces that is solved, and what is cleared away.

Names: a shard's stage file and what it asks for, ``shards/<goal>-<level>-<number>.arrow`` and
``.asks``; the table's files of its pieces, ``search/<goal>.<level>.<number>.<piece>.parquet``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from luckbase.cluster.machine import cores
from luckbase.cluster.table import OnRows, nobody
from luckbase.cluster.table.ledger import HEAD, LINES, Ledger, compact
from luckbase.cluster.table.lines import SEARCH, TIERS, FileEntry, Goal, ShardEntry
from luckbase.cluster.table.storage import Storage
from luckbase.cluster.words import many
from luckbase.solver.errors import CorruptTableError
from luckbase.solver.search.stage import Box

PIECE_STATES = 1_000_000
"""States of what is solved by one task, about: boxes are not cut."""
SWEEP_BYTES = 150
"""Bytes a state that solving takes, about, beside a process's own."""
LEAST_BYTES = 64 << 20
SHARDS = "shards/"
"""Where shards lie in the table's folder while a search runs."""


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
        return tuple(Box(*ends) for ends in self.entry.spans[slice(*self.boxes)])

    @property
    def alone(self) -> bool:
        """Whether it is all of the shard."""
        return self.boxes == (0, len(self.entry.boxes))

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


def all_solved(entry: ShardEntry, files: Collection[str]) -> bool:
    """Whether all pieces of a shard have their files among some, without their folders."""
    return all(stage_file_name("", entry.name, one.number)[1:] in files for one in pieces_of(entry))


def files_there(storage: Storage) -> dict[str, int]:
    """What stands in the folders of the parts, with sizes, whether the ledger names it or not."""
    return {**storage.list(f"{TIERS}/"), **storage.list(SEARCH)}


def damaged_files(storage: Storage, where: Path, ledger: Ledger) -> dict[str, str]:
    """The files that are missing, empty or of another size, by name, each with a sentence."""
    there = files_there(storage)
    found = {}
    for name, entry in sorted(ledger.files.items()):
        size = there.get(name)
        if size != entry.bytes:
            why = "is missing" if size is None else f"has {many(size, 'byte')}, not {entry.bytes:,}"
            found[name] = f"{where / name}: {'is empty' if size == 0 else why}"
    return found


def check_bytes(
    storage: Storage,
    where: Path,
    ledger: Ledger,
    on_rows: OnRows = nobody,
) -> dict[str, str]:
    """The files that are not as they were written, by name: every byte of all of them is read.
    on_rows: told how many rows lie in those that were read, and in all."""
    from luckbase.cluster.table.parquet import SealedFile  # brings pyarrow

    def why_not(entry: FileEntry) -> str | None:
        try:
            with closing(SealedFile(storage, where, entry)) as file:
                for group in range(file.groups):
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
        for entry, why in zip(entries, pool.map(why_not, entries), strict=True):
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
    solved = {name for name, one in ledger.shards.items() if all_solved(one, files)}
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
    try:
        ask = hashlib.sha256(storage.read(ask_name(shard.name))).hexdigest()
        if ask != shard.ask_sha256:
            return "is not as luckbase wrote it"
        content = storage.read(shard_name(shard.name))
    except FileNotFoundError:
        gone = ask_name(shard.name) not in storage.list(ask_name(shard.name))
        return "is missing" if gone or not spare else None
    whole = hashlib.sha256(content).hexdigest() == shard.sha256
    return None if whole else "is not as luckbase wrote it"
