"""Whether a table's files are there and whole, and what a solve clears away before it begins."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from cluster.table.ledger import Ledger, compact
from cluster.table.sealed import SealedFile
from cluster.table.storage import Storage
from solver.errors import CorruptTableError


def damaged_files(storage: Storage, where: Path, ledger: Ledger) -> dict[str, str]:
    """The files that are missing, empty or of another size, by name, each with a sentence."""
    there = {**storage.list("tiers"), **storage.list("search")}
    found = {}
    for name, entry in sorted(ledger.files.items()):
        size = there.get(name)
        if size != entry.bytes:
            why = "is missing" if size is None else f"has {size} bytes, not {entry.bytes}"
            found[name] = f"{where / name}: {'is empty' if size == 0 else why}"
    return found


def check_bytes(
    storage: Storage,
    where: Path,
    ledger: Ledger,
    on_file: Callable[[int, int], None] = lambda i, n: None,
) -> dict[str, str]:
    """The files that are not as they were written, by name: every byte of all of them is read."""
    found = damaged_files(storage, where, ledger)
    for i, (name, entry) in enumerate(sorted(ledger.files.items())):
        on_file(i, len(ledger.files))
        if name in found:
            continue
        try:
            file = SealedFile(storage, where, entry)
            for group in range(file.groups):
                file.check(group)
            file.close()
        except CorruptTableError as error:
            found[name] = str(error)
    return found


def drop_files(storage: Storage, ledger: Ledger, names: list[str]) -> None:
    """Take files out of the table: the ledger first, then their bytes. No goal of a part that
    loses a file counts as done. `ledger` is modified in place."""
    parts = {ledger.files.pop(name).part for name in names}
    for goal in ledger.goals:
        if goal.part in parts:
            ledger.done.pop(goal.ask, None)
    compact(storage, ledger)
    for name in names:
        storage.delete(name)


def sweep(storage: Storage, ledger: Ledger) -> None:
    """Delete what a stopped solve left: temporary files, files that the ledger does not name."""
    for name in [*storage.list("tiers"), *storage.list("search"), *storage.list("shards"),
                 *storage.list("ledger/"), *storage.list("table.json.")]:  # fmt: skip
        shard = name.removeprefix("shards/").removesuffix(".arrow")
        committed = name in ledger.files or shard in ledger.shards
        if name.endswith(".part") or not (committed or name.startswith(("ledger/", "table.json"))):
            storage.delete(name)


def forget_part(storage: Storage, ledger: Ledger, part: str) -> None:
    """Take a whole part out of the table, with everything that was asked of it."""
    ledger.goals = [goal for goal in ledger.goals if goal.part != part]
    wanted = {goal.ask for goal in ledger.goals}
    ledger.done = {ask: done for ask, done in ledger.done.items() if ask in wanted}
    ledger.shards = {name: s for name, s in ledger.shards.items() if s.ask in wanted}
    drop_files(storage, ledger, [entry.name for entry in ledger.of_part(part)])
