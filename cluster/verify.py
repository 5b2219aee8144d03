"""Is the table what it says it is? Files first, then values against the rules.

**Files.** Every file that the manifest names is there, has its size, its checksum, its rows and its
columns; nothing lies beside them; the manifest itself is as luckbase wrote it and names the tiers,
rows and keys that the rules and the board ask for.

**Values.** The Bellman residual of rows: the payoff recomputed from the rules (not the kernel) over
the stored payoffs of the children, minus the stored payoff, largest over players. Of tied actions
any one that the stored payoffs agree with will do. Exact arithmetic would leave at most what
float32 rounds off, twice the table's error bound; anything above `TOLERANCE` is a fault.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cluster.answer import Table
from cluster.manifest import NAME, FileEntry, key_range, solve_id
from cluster.probe import TierTable
from cluster.store import part_name, row_group_rows, sha256_of, tier_file
from solver.board import board_hash
from solver.game import TieredGame

TOLERANCE = 1e-6
"""A residual above this is a fault; stored payoffs are good to 3e-8."""


@dataclass(frozen=True)
class Residuals:
    """What the rows checked gave. worst: the largest residual; state: where, as fields."""

    rows: int
    worst: float
    mean: float
    state: dict[str, Any]
    faults: int


def check_files(table: Table, on_file: Callable[[int, int], None] = lambda i, n: None) -> list[str]:
    """What is wrong with the table's files, a sentence each; empty if nothing is."""
    manifest, game = table.manifest, table.game
    faults = []
    right = board_hash(game.board), solve_id(game, manifest.roots)
    if (manifest.board_hash, manifest.solve_id) != right:
        faults.append(f"{NAME}: its hashes are not those of the board that it holds")
    expected: dict[str, Any] = {"": None}
    if isinstance(table, TierTable):
        expected = {
            part_name(table.game, tier, part): (tier, rows)
            for tier in table.game.tiers()
            for part, rows in enumerate(table.game.parts(tier))
        }
    if manifest.complete and set(expected) != set(manifest.files):
        faults.append(f"{NAME}: says complete, and does not name the board's {len(expected)} tiers")
    for i, (folder, entry) in enumerate(sorted(manifest.files.items())):
        on_file(i, len(manifest.files))
        if folder not in expected:
            faults.append(f"{NAME}: names {folder}, which is no tier of this board")
            continue
        if isinstance(table, TierTable):
            tier, part = expected[folder]
            faults += _check_entry(table.game, folder, tier, part, entry)
        path = tier_file(table.path, folder)
        faults += _check_file(path, entry.bytes, entry.sha256, entry.rows)
    known = {tier_file(table.path, folder) for folder in manifest.files}
    for path in sorted((table.path / "tiers").rglob("*")):
        if path.is_file() and path not in known and path.suffix != ".part":
            faults.append(f"{path}: is not in the manifest")
    return faults


def _check_entry(
    game: TieredGame[Any], folder: str, tier: Any, part: tuple[int, int], entry: FileEntry
) -> list[str]:
    number, rows = game.tier_number(tier), part[1] - part[0]
    said = (entry.tier, entry.rows, entry.row_group_rows, (entry.first_key, entry.last_key))
    right = (number, rows, row_group_rows(game, tier), key_range(number, rows, part[0]))
    wrong = f"{NAME}: {folder}: its rows or keys are not those of the tier"
    return [] if said == right else [wrong]


def _check_file(path: Path, size: int, sha256: str, rows: int) -> list[str]:
    if not path.is_file():
        return [f"{path}: is missing"]
    there = path.stat().st_size
    if there != size:
        kind = "truncated" if there < size else "longer than it was written"
        return [f"{path}: is {kind}: {there} bytes, the manifest says {size}"]
    if sha256_of(path) != sha256:
        return [f"{path}: its bytes have changed: the checksum does not match"]
    try:
        found = pq.ParquetFile(path).metadata.num_rows
    except (OSError, pa.ArrowException) as error:
        return [f"{path}: is not Parquet: {' '.join(str(error).split())[:100]}"]
    return [] if found == rows else [f"{path}: has {found} rows, the manifest says {rows}"]


def check_residuals(
    table: Table,
    sample: int | None,
    seed: int = 0,
    on_rows: Callable[[int, int], None] = lambda done, total: None,
) -> Residuals:
    """Bellman residuals of `sample` rows drawn evenly from the whole table, or of all (None).

    Raises CorruptTableError where a file can not be read, MissingTableError where a child of a row
    is not there.
    """
    total = table.manifest.rows if sample is None else min(sample, table.manifest.rows)
    done = faults = 0
    worst, summed = -1.0, 0.0
    where: dict[str, Any] = {}
    for states in table.all_states() if sample is None else table.draw(sample, seed):
        residuals = table.residuals(states)
        at = int(np.argmax(residuals))
        if residuals[at] > worst:
            worst, where = float(residuals[at]), table.game.describe(states[at])
        faults += int((residuals > TOLERANCE).sum())
        summed += float(residuals.sum())
        done += len(states)
        on_rows(done, total)
    return Residuals(done, max(worst, 0.0), summed / max(done, 1), where, faults)
