"""Payoff tables by key: what shards return, on the disk that they share, and their union.

A payoff table says of states what was solved: key, payoffs, best action, status. Two shards that
solved one state must agree on it to the last bit, whatever each came from; the union is then the
same whatever the shards were.

On disk a shard's table is an Arrow file, ``shards/<name>.arrow``; the ledger has its SHA-256.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from luckbase.cluster.table.storage import Storage
from luckbase.solver.errors import CorruptTableError, DisagreementError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.game import Game
from luckbase.solver.graph.keys import Keys, unpack_all

if TYPE_CHECKING:
    from luckbase.solver.graph.game_graph import Graph


@dataclass(frozen=True)
class PayoffTable:
    """n states: keys uint64 (n,), values float64 (n, columns), best int64 (n,), status uint8 (n,).

    best: an action or a code of `solver.graph.codes`; status: an index into
    `table.write.STATUS`. gap: float64 (n,), of a cycle that was solved between bounds, at its state
    of the lowest key, else 0. margin: float64 (n,), what the second best would cost the one who
    decides; NaN where there is no choice. actor: int8 (n,), who acts, from 1; 0 where nobody does,
    or both. The last three are blank if not given.
    """

    keys: Keys
    values: Floats
    best: Ints
    status: NDArray[np.uint8]
    gap: Floats = None  # type: ignore[assignment]
    margin: Floats = None  # type: ignore[assignment]
    actor: NDArray[np.int8] = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        n = len(self.keys)
        blank = {"gap": np.zeros(n), "margin": np.full(n, np.nan), "actor": np.zeros(n, np.int8)}
        for name, column in blank.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, column)

    def __len__(self) -> int:
        return len(self.keys)

    def only(self, rows: NDArray[Any]) -> PayoffTable:
        """These rows: numbers or a mask (n,)."""
        return PayoffTable(*(getattr(self, each.name)[rows] for each in fields(self)))


def merge(game: Game, tables: Sequence[PayoffTable]) -> tuple[PayoffTable, int]:
    """The union of payoff tables, by ascending key, and how many rows stood in more than one.

    Raises DisagreementError, with both values, where two differ in a bit of a payoff or in the
    best action.
    """
    columns = [np.concatenate([getattr(table, each.name) for table in tables])
               for each in fields(PayoffTable)]  # fmt: skip
    every = PayoffTable(*columns)
    every = every.only(np.argsort(every.keys, kind="stable"))
    keys, values, best = every.keys, every.values, every.best
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
    return every.only(first), len(again)


def solved_rows(graph: Graph, start: int = 0) -> PayoffTable:
    """The states from number `start` on that a graph has solved itself and that are not over."""
    from luckbase.solver.graph.codes import MIXED, UNDECIDED

    best = graph.best[start:]
    at = start + np.flatnonzero((best >= 0) | (best == UNDECIDED) | (best == MIXED))
    gap = np.zeros(len(at))
    gapped = np.array(sorted(number for number in graph.gaps if number >= start), np.int64)
    gap[np.searchsorted(at, gapped)] = [graph.gaps[int(number)] for number in gapped]
    status = np.zeros(len(at), np.uint8)
    return PayoffTable(
        graph.keys_at(at), graph.values[at], graph.best[at], status, gap, graph.margins[at],
        graph.actors[at],
    )  # fmt: skip


SHARDS = "shards/"
"""Where shards lie in the table's folder while a search runs."""


def shard_name(name: str) -> str:
    """Where a shard's table lies in the table's folder while the search runs."""
    return f"{SHARDS}{name}.arrow"


def write_shard(storage: Storage, name: str, table: PayoffTable) -> tuple[Path, int, str]:
    """Write a shard's table to a temporary place and flush it; returns (path, bytes, SHA-256)."""
    columns = {"key": table.keys, "best": table.best, "status": table.status}
    columns |= {"gap": table.gap, "margin": table.margin, "actor": table.actor}
    columns |= {f"value_{i}": table.values[:, i] for i in range(table.values.shape[1])}
    batch = pa.RecordBatch.from_pydict({name: pa.array(c) for name, c in columns.items()})
    path = storage.temporary(shard_name(name))
    with path.open("wb") as file:
        with pa.ipc.new_file(file, batch.schema) as writer:
            writer.write_batch(batch)
        file.flush()
        os.fsync(file.fileno())
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return path, path.stat().st_size, digest


def read_shard(storage: Storage, name: str, sha256: str) -> PayoffTable:
    """A shard's table. Raises CorruptTableError where it is not as it was written."""
    try:
        content = storage.read(shard_name(name))
        if hashlib.sha256(content).hexdigest() != sha256:
            raise CorruptTableError(f"{shard_name(name)}: is not as luckbase wrote it")
        with pa.ipc.open_file(pa.BufferReader(content)) as reader:
            read = reader.read_all().combine_chunks()
        columns = [np.array(column.to_numpy()) for column in read.columns]  # compiled code writes
    except (OSError, pa.ArrowException) as error:
        said = " ".join(str(error).split())[:120]
        raise CorruptTableError(f"{shard_name(name)}: {said}") from None
    return PayoffTable(columns[0], np.stack(columns[6:], axis=1), *columns[1:6])
