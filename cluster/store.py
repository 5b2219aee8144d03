"""A table's files: where they are, how they are written and read.

Format 1, of a table's directory ``results/<game>/<board>/<solve id>/``::

    manifest.json                      the ledger (`cluster.manifest`)
    tiers/<field>=<value>/…/payoffs.parquet
                                       one file a tier; the constant columns are its folders (hive
                                       partitions), as ``spins=2/whammies_1=0/whammies_2=0/…``;
                                       no folder where a game is one tier, without such columns
    scratch/<tier>.f64                 while solving only: a tier's payoffs as the kernel left them,
                                       raw float64, for the tiers that read it; of a tier of several
                                       parts one file, and an empty ``<part>.kept`` for each part
    scratch/<shard>.arrow              while searching only: a shard's payoffs (`cluster.merge`)

Rows stand in the order of the tier's keys: row i of the file is the state with key tier << 40 | i.
The file's key-value metadata names the format, the board, the tier and the payoffs' error bound.
Columns, in order: the state's fields that vary (int32, people's units, one column a player and
field: ``scores_1``), then ``payoff_1 …`` (float32 or float64 as the game says, one a player). No
nulls anywhere. A tier of several parts has a file a part, ``payoffs-001.parquet`` …, rows in order.

A table of what lies below some roots (`cluster.search`) is one file, ``tiers/payoffs.parquet``:
``key`` (uint64, ascending: the state by bits, `solver.keys`), all the state's fields, the payoffs
in float64, ``best`` (the name of the best action; null where there is none or it is not decided)
and ``status`` (see `STATUS`). Where the search was cut, ``payoff_i`` is the lower bound and
``upper_i`` the upper one.

Row groups hold a multiple of the game's block of about 32 k rows. Measured on a $500 tier of 3.9 M
rows (`luckbase bench BOARD store`): the three payoffs as byte-stream-split with zstd level 1 take
4.2 bytes a row (plain lz4 5.2, plain zstd 4.5, pyarrow's defaults 8.9 and twice the time); the nine
state columns written plain with lz4 take 0.24 bytes and 17 ns a row (dictionary with zstd 0.10
bytes and 52 ns). Statistics are kept for the columns that engines prune by, the first two scores;
for the others they cost more time than they save.

Every file is written beside its place, flushed, read back and renamed.

Version history: 1 (2026-11) first. 2 (2026-11) tables of roots; float64; parts; an error a file.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from cluster.merge import PayoffTable
from solver.board import Board
from solver.game import Floats, Game, Ints, TieredGame
from solver.keys import unpack_all

FORMAT = 2
ROW_GROUP = 32_768
"""Rows in a row group, about; a lookup decodes one: 0.3 ms."""
KEY_SHIFT = 40
STATUS = ("solved", "given", "cut")
"""Of a row of a table of roots: solved from its children; taken from the table named with --using;
cut by --max-depth, so that its payoffs are anything the game allows."""


@dataclass(frozen=True)
class FileReceipt:
    """What a worker says of a file that it wrote. error: the bound on that of its payoffs."""

    rows: int
    row_group_rows: int
    bytes: int
    sha256: str
    error: float
    seconds: float


def tier_folder(game: TieredGame[Any], tier: Any) -> str:
    """``spins=2/whammies_1=0/…``: the tier's folder, and its name in the manifest; "" where no
    column is constant: the one tier of such a game is ``tiers/payoffs.parquet``."""
    return "/".join(f"{name}={value}" for name, value in game.tier_fields(tier).items())


def part_name(game: TieredGame[Any], tier: Any, part: int) -> str:
    """A part's name in the manifest: its tier's folder, and ``#003`` where there are several."""
    folder = tier_folder(game, tier)
    return folder if len(game.parts(tier)) == 1 else f"{folder}#{part:03d}"


def tier_file(table: Path, name: str) -> Path:
    """The Parquet file of a tier, or of a part of one."""
    folder, _, part = name.partition("#")
    return table / "tiers" / folder / (f"payoffs-{part}.parquet" if part else "payoffs.parquet")


def scratch_file(table: Path, name: str) -> Path:
    """The raw payoffs of a tier with all its parts, kept while other tiers still read them."""
    folder = name.partition("#")[0]
    return table / "scratch" / f"{folder.replace('/', ',') or 'payoffs'}.f64"


def kept_mark(table: Path, name: str) -> Path:
    """What says that a part's payoffs are in its tier's scratch file."""
    return table / "scratch" / f"{name.replace('/', ',')}.kept"


def shard_file(table: Path, name: str) -> Path:
    """The payoff table of one shard of a search, kept while the search runs."""
    return table / "scratch" / f"{name}.arrow"


def beside(path: Path) -> Path:
    """Where a file is written before it is renamed to `path`."""
    return path.with_name(path.name + ".part")


def payoff_columns(game: Game) -> list[str]:
    """``payoff_1``, … in turn order."""
    return [f"payoff_{i + 1}" for i in range(game.players)]


def row_group_rows(game: TieredGame[Any], tier: Any) -> int:
    """Rows of every row group of the tier but the last: a multiple of the game's block."""
    block = game.block_rows(tier)
    return max(1, ROW_GROUP // block) * block


def rounding(game: Game, stored: type[np.floating[Any]]) -> float:
    """The most that storing a payoff as this type loses: half a unit in the last place."""
    most = max(abs(bound) for bound in game.payoff_range)
    return 0.0 if stored is np.float64 else 2.0 ** (np.ceil(np.log2(most)) - 25)


def write_tier(
    game: TieredGame[Any], tier: Any, payoffs: Floats, error: float, path: Path, part: int = 0
) -> FileReceipt:
    """Write the table of a part of a tier to `path`, flush it and read it back; `payoffs` as the
    kernel left them, within `error` of the exact ones.

    The caller renames. Raises OSError where the disk does.
    """
    first, last = game.parts(tier)[part]
    rows, group = last - first, row_group_rows(game, tier)
    total = error + rounding(game, game.payoff_type)
    about = _about(game.board, tier_folder(game, tier), total)
    names = payoff_columns(game)

    def batch(start: int, stop: int) -> dict[str, NDArray[Any]]:
        states = game.state_rows(tier, first + start, first + stop)
        values = game.payoff_rows(tier, payoffs, start, stop)
        return {**states, **dict(zip(names, values, strict=True))}

    pruned = [name for name in game.columns if name not in game.tier_fields(tier)][:2]
    return _write(path, rows, group, batch, names, pruned, about, total)


def write_states(game: Game, solved: PayoffTable, error: float, path: Path) -> FileReceipt:
    """Write a table of roots (module docstring), as `write_tier` does."""
    names = payoff_columns(game)
    names += [f"upper_{i + 1}" for i in range(game.players)] * (solved.values.shape[1] > len(names))
    best = best_names(game, solved.best)

    def batch(start: int, stop: int) -> dict[str, Any]:
        part = slice(start, stop)
        states = game.state_columns(unpack_all(game.bits, solved.keys[part]))
        values = {name: solved.values[part, i] for i, name in enumerate(names)}
        return {"key": solved.keys[part], **states, **values, "best": best[part],
                "status": solved.status[part]}  # fmt: skip

    about = _about(game.board, "", error)
    return _write(path, len(solved.keys), ROW_GROUP, batch, names, ["key"], about, error)


def best_names(game: Game, best: Ints) -> pa.Array:
    """The names of best actions (n,), null where there is none (`solver.walk`)."""
    actions, which = np.unique(best, return_inverse=True)
    known = [game.action_name(int(action)) if action >= 0 else None for action in actions]
    names = pa.DictionaryArray.from_arrays(
        pa.array(which, pa.int32()), pa.array(known, pa.string())
    )
    return names.cast(pa.string())


def _write(
    path: Path,
    rows: int,
    group: int,
    batch: Callable[[int, int], dict[str, Any]],
    payoffs: list[str],
    pruned: list[str],
    about: dict[str, str],
    error: float,
) -> FileReceipt:
    """Write rows in groups of `group`; `payoffs`: columns to split, `pruned`: columns with
    statistics. Flush, read back."""
    started = time.perf_counter()
    writer: pq.ParquetWriter | None = None
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        for start in range(0, max(rows, 1), group):
            columns = batch(start, min(start + group, rows))
            arrays = [pa.array(column) for column in columns.values()]
            if writer is None:
                fields = [
                    pa.field(name, array.type, nullable=name == "best")
                    for name, array in zip(columns, arrays, strict=True)
                ]
                writer = pq.ParquetWriter(
                    path,
                    pa.schema(fields, metadata=about),
                    compression={name: "zstd" if name in payoffs else "lz4" for name in columns},
                    compression_level={name: 1 for name in payoffs},
                    use_dictionary=["best"] if "best" in columns else False,
                    use_byte_stream_split=payoffs,
                    write_statistics=pruned,
                    data_page_size=1 << 24,
                )
            written = pa.Table.from_arrays(arrays, schema=writer.schema)
            writer.write_table(written, row_group_size=group)
    finally:
        if writer is not None:
            writer.close()
    with path.open("rb") as file:
        os.fsync(file.fileno())
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    seconds = time.perf_counter() - started
    return FileReceipt(rows, group, path.stat().st_size, digest, error, seconds)


def _about(board: Board, tier: str, error: float) -> dict[str, str]:
    """What a file says of itself when it is found alone: Parquet's key-value metadata."""
    return {
        "luckbase.format": str(FORMAT),
        "luckbase.board": f"{board.game} {board.name}",
        "luckbase.tier": tier,
        "luckbase.payoff_error": repr(error),
    }


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_scratch(payoffs: Floats, path: Path, first: int | None = None) -> None:
    """Keep a tier's payoffs for the tiers that read it, or a part's, from number `first` on in the
    tier's file; flushed only where a restart can not be told from a crash (see `boot`)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    flags = os.O_RDWR | os.O_CREAT | (os.O_TRUNC if first is None else 0)
    with os.fdopen(os.open(path, flags, 0o644), "r+b") as file:
        file.seek(8 * (first or 0))
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
