"""Whether a table's files are there and whole, and what a solve clears away before it begins."""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

from luckbase.cluster.run.machine import cores
from luckbase.cluster.search.pieces import SHARDS, all_solved, ask_name, askers_of, shard_name
from luckbase.cluster.table.ledger import HEAD, LINES, Ledger, compact
from luckbase.cluster.table.lines import SEARCH, TIERS, FileEntry, Goal, ShardEntry
from luckbase.cluster.table.progress import OnRows, nobody
from luckbase.cluster.table.storage import Storage
from luckbase.cluster.words import many
from luckbase.solver.errors import CorruptTableError


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
    from luckbase.cluster.table.sealed import SealedFile  # brings pyarrow

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
