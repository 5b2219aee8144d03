"""Payoff tables by key: what shards return, on the disk that they share, and their union.

A payoff table says of states what was solved: key, payoffs, best action, status. Two shards that
solved one state must agree on it to the last bit, whatever each came from; the union is then the
same whatever the shards were.

On disk a shard's table is an Arrow file, written beside its place, flushed and renamed by the
driver.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from solver.errors import CorruptTableError, DisagreementError
from solver.game import Floats, Game, Ints
from solver.keys import Keys, unpack_all


@dataclass(frozen=True)
class PayoffTable:
    """n states: keys uint64 (n,), values float64 (n, columns), best int64 (n,), status uint8 (n,).

    best: an action or a code of `solver.walk`; status: an index into `store.STATUS`. gap: float64
    (n,), of a cycle that was solved between bounds, at its state of the lowest key, else 0.
    """

    keys: Keys
    values: Floats
    best: Ints
    status: NDArray[np.uint8]
    gap: Floats | None = None

    def __len__(self) -> int:
        return len(self.keys)


def merge(game: Game, tables: Sequence[PayoffTable]) -> tuple[PayoffTable, int]:
    """The union of payoff tables, by ascending key, and how many rows stood in more than one.

    Raises DisagreementError, with both values, where two differ in a bit of a payoff or in the
    best action.
    """
    keys = np.concatenate([table.keys for table in tables])
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    values = np.concatenate([table.values for table in tables])[order]
    best = np.concatenate([table.best for table in tables])[order]
    status = np.concatenate([table.status for table in tables])[order]
    gaps = [np.zeros(len(table)) if table.gap is None else table.gap for table in tables]
    gap = np.concatenate(gaps)[order]
    first = np.ones(len(keys), bool)
    first[1:] = keys[1:] != keys[:-1]
    again = np.flatnonzero(~first)
    bits = values.view(np.uint64)
    differs = (bits[again] != bits[again - 1]).any(axis=1) | (best[again] != best[again - 1])
    if differs.any():
        x = int(again[np.flatnonzero(differs)[0]])
        state = game.describe(unpack_all(game.bits, keys[x : x + 1])[0])
        raise DisagreementError(
            f"two shards disagree on {state}: {values[x - 1].tolist()} and {values[x].tolist()}, "
            f"actions {best[x - 1]} and {best[x]}; nothing was written"
        )
    return PayoffTable(keys[first], values[first], best[first], status[first], gap[first]), len(
        again
    )


def write_shard(table: PayoffTable, path: Path) -> None:
    """Write a shard's table to `path` and flush it; the caller renames."""
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = {"key": table.keys, "best": table.best, "status": table.status}
    columns |= {"gap": np.zeros(len(table)) if table.gap is None else table.gap}
    columns |= {f"value_{i}": table.values[:, i] for i in range(table.values.shape[1])}
    batch = pa.RecordBatch.from_pydict({name: pa.array(c) for name, c in columns.items()})
    with path.open("wb") as file:
        with pa.ipc.new_file(file, batch.schema) as writer:
            writer.write_batch(batch)
        file.flush()
        os.fsync(file.fileno())


def read_shard(path: Path) -> PayoffTable:
    """A shard's table. Raises CorruptTableError."""
    try:
        with pa.memory_map(str(path)) as file, pa.ipc.open_file(file) as reader:
            read = reader.read_all().combine_chunks()
        columns = [np.array(column.to_numpy()) for column in read.columns]  # compiled code writes
    except (OSError, pa.ArrowException) as error:
        raise CorruptTableError(f"{path}: {' '.join(str(error).split())[:120]}") from None
    return PayoffTable(columns[0], np.stack(columns[4:], axis=1), *columns[1:4])
