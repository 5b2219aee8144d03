"""A table's files: where they are, how they are written and read.

Format 1, of a table's directory ``results/<game>/<board>/<solve id>/``::

    manifest.json                      the ledger (`cluster.manifest`)
    tiers/<field>=<value>/…/payoffs.parquet
                                       one file a tier; the constant columns are its folders (hive
                                       partitions), as ``spins=2/whammies_1=0/whammies_2=0/…``
    scratch/<tier>.f64                 while solving only: a tier's payoffs as the kernel left them,
                                       raw float64, for the tiers that read it

Rows stand in the order of the tier's keys: row i of the file is the state with key tier << 40 | i.
The file's key-value metadata names the format, the board, the tier and the payoffs' error bound.
Columns, in order: the state's fields that vary (int32, people's units, one column a player and
field: ``scores_1``), then ``payoff_1 …`` (float32, one a player). No nulls anywhere.

Row groups hold a multiple of the game's block of about 32 k rows. Measured on a $500 tier of 3.9 M
rows (`luckbase bench BOARD store`): the three payoffs as byte-stream-split with zstd level 1 take
4.2 bytes a row (plain lz4 5.2, plain zstd 4.5, pyarrow's defaults 8.9 and twice the time); the nine
state columns written plain with lz4 take 0.24 bytes and 17 ns a row (dictionary with zstd 0.10
bytes and 52 ns). Statistics are kept for the columns that engines prune by, the first two scores;
for the others they cost more time than they save.

Every file is written beside its place, flushed, read back and renamed.

Version history: 1 (2026-11) first.
"""

from __future__ import annotations

import hashlib
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from solver.game import Floats, TieredGame

FORMAT = 1
ROW_GROUP = 32_768
"""Rows in a row group, about; a lookup decodes one: 0.3 ms."""
KEY_SHIFT = 40
PAYOFF_ERROR = 2.0**-25 + 1e-12
"""The bound on |stored - float64| of a payoff in [0, 1]: half a unit in the last place of float32,
and what float64 sums lose."""


@dataclass(frozen=True)
class FileReceipt:
    """What a worker says of a file that it wrote."""

    rows: int
    row_group_rows: int
    bytes: int
    sha256: str
    seconds: float


def tier_folder(game: TieredGame[Any], tier: Any) -> str:
    """``spins=2/whammies_1=0/…``: the tier's folder, and its name in the manifest."""
    return "/".join(f"{name}={value}" for name, value in game.tier_fields(tier).items())


def tier_file(table: Path, folder: str) -> Path:
    """The Parquet file of a tier."""
    return table / "tiers" / folder / "payoffs.parquet"


def scratch_file(table: Path, folder: str) -> Path:
    """The raw payoffs of a tier, kept while other tiers still read them."""
    return table / "scratch" / f"{folder.replace('/', ',')}.f64"


def beside(path: Path) -> Path:
    """Where a file is written before it is renamed to `path`."""
    return path.with_name(path.name + ".part")


def payoff_columns(game: TieredGame[Any]) -> list[str]:
    """``payoff_1``, … in turn order."""
    return [f"payoff_{i + 1}" for i in range(game.players)]


def row_group_rows(game: TieredGame[Any], tier: Any) -> int:
    """Rows of every row group of the tier but the last: a multiple of the game's block."""
    block = game.block_rows(tier)
    return max(1, ROW_GROUP // block) * block


def write_tier(game: TieredGame[Any], tier: Any, payoffs: Floats, path: Path) -> FileReceipt:
    """Write a tier's table to `path`, flush it and read it back; `payoffs` as the kernel left them.

    The caller renames. Raises OSError where the disk does.
    """
    started = time.perf_counter()
    rows, group = game.rows(tier), row_group_rows(game, tier)
    names = payoff_columns(game)
    fields: list[pa.Field] = []
    writer: pq.ParquetWriter | None = None
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        for start in range(0, rows, group):
            stop = min(start + group, rows)
            states = game.state_rows(tier, start, stop)
            values = game.payoff_rows(tier, payoffs, start, stop)
            if writer is None:
                fields = [pa.field(name, pa.int32(), nullable=False) for name in states]
                fields += [pa.field(name, pa.float32(), nullable=False) for name in names]
                codec = {name: "lz4" for name in states} | {name: "zstd" for name in names}
                writer = pq.ParquetWriter(
                    path,
                    pa.schema(fields, metadata=_about(game, tier)),
                    compression=codec,
                    compression_level={name: 1 for name in names},
                    use_dictionary=False,
                    use_byte_stream_split=names,
                    write_statistics=list(states)[:2],
                    data_page_size=1 << 24,
                )
            arrays = [pa.array(column) for column in (*states.values(), *values)]
            writer.write_table(
                pa.Table.from_arrays(arrays, schema=writer.schema), row_group_size=group
            )
    finally:
        if writer is not None:
            writer.close()
    with path.open("rb") as file:
        os.fsync(file.fileno())
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return FileReceipt(rows, group, path.stat().st_size, digest, time.perf_counter() - started)


def _about(game: TieredGame[Any], tier: Any) -> dict[str, str]:
    """What a file says of itself when it is found alone: Parquet's key-value metadata."""
    return {
        "luckbase.format": str(FORMAT),
        "luckbase.board": f"{game.board.game} {game.board.name}",
        "luckbase.tier": tier_folder(game, tier),
        "luckbase.payoff_error": repr(PAYOFF_ERROR),
    }


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_scratch(payoffs: Floats, path: Path) -> None:
    """Keep a tier's payoffs for the tiers that read it; flushed only where a restart can not be
    told from a crash (see `boot`)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        payoffs.tofile(file)
        if boot() is None:
            os.fsync(file.fileno())


def read_scratch(path: Path, shape: tuple[int, ...]) -> Floats:
    """A tier's kept payoffs, mapped: only what is looked at is read. Not to be written to."""
    mapped = np.memmap(path, np.float64, mode="c", shape=shape)
    return np.asarray(mapped)


def boot() -> str | None:
    """What names this run of the machine, or None where the system does not say.

    A file that was written but not flushed survives a killed process, not a power cut.
    """
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None


def replace(path: Path, final: Path, top: Path, flushed: set[Path]) -> None:
    """Rename, and flush the folders up to `top`, so that the name survives a power cut.

    Folders above the file's own are flushed once: `flushed` remembers them, modified in place.
    """
    final.parent.mkdir(parents=True, exist_ok=True)
    os.replace(path, final)
    flush_folder(final.parent)
    for folder in final.parent.parents:
        if folder == top.parent or folder in flushed:
            break
        flush_folder(folder)
        flushed.add(folder)


def flush_folder(folder: Path) -> None:
    """Flush a folder's names to the disk (where the system can)."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    except OSError:
        pass
    finally:
        os.close(handle)
