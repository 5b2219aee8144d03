"""Parquet files of a table: which columns, how they are encoded, how they come to their place.

**The full table** (``tiers/``): one file a tier, or a part of one. Its name is the tier's constant
columns, ``spins-2.whammies_1-0.whammies_2-0.whammies_3-0.parquet``, with ``.003`` before the ending
for part 3 of several; ``all.parquet`` where a game is one tier. Rows stand in the order of the
tier's keys: row i is the state with key tier << 40 | i. Columns, in order: the constant ones, the
state's other fields (people's units: int32, one column a player and field, ``scores_1``; sets of
cards or tiles as text, ``1 2 5``), ``payoff_1 …`` (float32 or float64 as the board says, one a
player), ``best`` (the name of the best action; null where nobody decides), ``to_act`` (int8: who
acts, from 1; 0 where nobody does, or both), and where the goals say so ``margin`` (float32: what
the second best would cost the one who acts; null where he has no choice).

**Searches** (``search/``, ``search-<id>/``): ``key`` (uint64, ascending: the state by bits,
`solver.search.keys`), all the state's fields, the payoffs in float64, ``best``, ``to_act``,
``margin`` (float64) and ``status`` (uint8: an index into `STATUS`). No two files of a part hold the
same key.

The file's key-value metadata names the format, the board's game, the tier and the error bound. Row
groups hold a multiple of the game's block of about 32 k rows. Measured on a $500 tier of 3.9 M rows
(`python -m tests.bench store`): the three payoffs as byte-stream-split with zstd level 1 take 4.2
bytes a row (plain lz4 5.2, plain zstd 4.5, pyarrow's defaults 8.9 and twice the time); the state
columns written plain with lz4 take 0.24 bytes and 17 ns a row (dictionary with zstd 0.10 bytes and
52 ns). `best` and `to_act` take 0.05 bytes and 8 ns a row, the constant columns 0.09 bytes and 6 ns
(as dictionaries twice that). Statistics are kept for the constant columns and the first two others,
which engines prune by; for more they cost more time than they save.

**A payoff table** says in memory what a search solved, by key: what its file will hold. Two that
have one state must agree on it to the last bit, whatever each came from.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from luckbase.cluster.table import FORMAT
from luckbase.cluster.table.folder import solver_version
from luckbase.cluster.table.ledger import KEY_SHIFT, SEARCH, TIERS, FileEntry
from luckbase.cluster.table.parquet import column_of, nullable, payoff_columns, seal_file, texts_of
from luckbase.cluster.table.storage import Storage, forget
from luckbase.solver.dense import rounding
from luckbase.solver.errors import DisagreementError
from luckbase.solver.game.arrays import Coded, Decisions, Floats, Ints
from luckbase.solver.game.capabilities import Layout
from luckbase.solver.game.game import Game
from luckbase.solver.search.keys import Keys, unpack_all

if TYPE_CHECKING:
    from luckbase.solver.search.game_graph import Graph


ROW_GROUP = 32_768
"""Rows in a row group, about; a lookup decodes one: 0.5 ms."""


@dataclass(frozen=True)
class FileReceipt:
    """What a worker says of a file that it wrote to `path`, a temporary place; the rest as the
    ledger keeps it (`ledger.FileEntry`)."""

    path: Path
    rows: int
    row_group_rows: int
    bytes: int
    footer: int
    checks: str
    error: float
    seconds: float


def part_name(layout: Layout[Any], tier: Any, part: int) -> str:
    """The name of the file of a part of a tier (module docstring)."""
    said = ".".join(f"{name}-{value}" for name, value in layout.tier_fields(tier).items()) or "all"
    number = "" if len(layout.parts(tier)) == 1 else f".{part:03d}"
    return f"{TIERS}/{said}{number}.parquet"


def search_name(part: str, ask: str, there: Collection[str]) -> str:
    """The name of the file that a search adds to its part, none of those `there`: its goal's, and a
    number from the second on."""
    numbers = ("", *(f".{k}" for k in range(1, len(there) + 2)))
    names = (f"{part}/{ask[:12]}{number}.parquet" for number in numbers)
    return next(name for name in names if name not in there)


def search_part(ask: str | None) -> str:
    """The part of a search: one for all those that are exact, one of its own for another."""
    return SEARCH if ask is None else f"{SEARCH}-{ask[:12]}"


def row_group_rows(layout: Layout[Any], tier: Any) -> int:
    """Rows of every row group of the tier but the last: a multiple of the game's block."""
    block = layout.block_rows(tier)
    return max(1, ROW_GROUP // block) * block


def key_range(tier_number: int, rows: int, start: int = 0) -> tuple[int, int]:
    """The first and the last key of `rows` rows of a tier, from row `start` on."""
    first = (tier_number << KEY_SHIFT) + start
    return first, first + rows - 1


def write_tier(
    storage: Storage, layout: Layout[Any], tier: Any, payoffs: Floats, decisions: Decisions,
    error: float, part: int = 0,
) -> FileReceipt:  # fmt: skip
    """Write the file of a part of a tier to a temporary place, flush it and read it back; `payoffs`
    and `decisions` as the kernel left them, the payoffs within `error` of the exact ones.

    Raises OSError where the disk does.
    """
    first, last = layout.parts(tier)[part]
    names, constant = payoff_columns(layout.game), layout.tier_fields(tier)

    def columns(start: int, stop: int) -> dict[str, Any]:
        values = layout.payoff_rows(tier, payoffs, start, stop)
        found: dict[str, Any] = {
            name: np.full(stop - start, value, np.int32) for name, value in constant.items()
        }
        found |= layout.state_rows(tier, first + start, first + stop)
        found |= zip(names, values, strict=True)
        found["best"] = _named(decisions.best[start:stop], layout.best_names)
        found["to_act"] = layout.acting_rows(tier, first + start, first + stop)
        if decisions.margin is not None:
            margin = decisions.margin[start:stop]
            found["margin"] = column_of(margin.astype(np.float32), np.isnan(margin))
        return found

    others = [name for name in layout.game.columns if name not in constant][:2]
    error += rounding(layout.game, layout.payoff_type)
    about = _about(layout.game, ".".join(f"{k}-{v}" for k, v in constant.items()), error)
    size = last - first, row_group_rows(layout, tier)
    name, pruned = part_name(layout, tier, part), [*constant, *others]
    return _write(storage, name, size, about, columns, error, names, pruned)


def write_states(
    storage: Storage, name: str, game: Game, solved: PayoffTable, error: float
) -> FileReceipt:
    """Write the file of a search (module docstring), as `write_tier` does."""
    names = payoff_columns(game)
    # Codes into the labels of the best actions, -1 where nobody decides or both do.
    known, codes = np.unique(
        np.maximum(np.where(solved.actor == 0, -1, solved.best), -1), return_inverse=True
    )
    labels = [game.action_name(int(action)) for action in known if action >= 0]
    codes = (codes - (len(known) - len(labels))).astype(np.int32)

    def columns(start: int, stop: int) -> dict[str, Any]:
        rows = solved.only(slice(start, stop))
        return {
            "key": rows.keys, **game.table_columns(unpack_all(game.bits, rows.keys)),
            **{name: rows.values[:, i] for i, name in enumerate(names)},
            "best": _named(codes[start:stop], labels), "to_act": rows.actor,
            "margin": nullable(rows.margin), "status": rows.status,
        }  # fmt: skip

    about, split = _about(game, "", error), [*names, "margin"]
    size = len(solved), ROW_GROUP
    return _write(storage, name, size, about, columns, error, split, ["key"])


def as_table(columns: dict[str, Any]) -> pa.Table:
    """Columns as pyarrow has them."""
    arrays = [_column(column) for column in columns.values()]
    return pa.Table.from_arrays(arrays, names=list(columns))


def _named(codes: NDArray[Any], labels: Sequence[str]) -> pa.Array:
    """A column of names, dictionary-coded; null where the code is below 0."""
    index = column_of(codes, codes < 0)
    return pa.DictionaryArray.from_arrays(index, texts_of(labels), safe=False)


def _column(column: Any) -> pa.Array:
    """An array as pyarrow has it; sets as text, dictionary-coded."""
    if isinstance(column, Coded):
        return pa.DictionaryArray.from_arrays(column_of(column.codes), texts_of(column.labels))
    return column if isinstance(column, pa.Array) else column_of(column)


def _write(
    storage: Storage, name: str, size: tuple[int, int], about: dict[str, str],
    columns: Callable[[int, int], dict[str, Any]], error: float,
    split: list[str], pruned: list[str],
) -> FileReceipt:  # fmt: skip
    """Write the file, on the disk, read back, sealed; the system forgets it. size: rows, and how
    many a group. about: its metadata. split: columns of floats that are byte-stream-split; pruned:
    those with statistics."""
    rows, group = size
    started = time.perf_counter()
    writer: pq.ParquetWriter | None = None
    path = storage.temporary(name)
    try:
        for start in range(0, max(rows, 1), group):
            batch = as_table(columns(start, min(start + group, rows)))
            if writer is None:
                writer = _writer(path, batch.schema, split, pruned)
                writer.add_key_value_metadata(about)
            written = pa.Table.from_arrays(batch.columns, schema=writer.schema)
            writer.write_table(written, row_group_size=group)
    finally:
        if writer is not None:
            writer.close()
    with path.open("rb") as file:
        os.fsync(file.fileno())
    length, footer, checks = seal_file(path)
    forget(path)  # written far faster than read: more memory for it, each time, costs a fifth
    seconds = time.perf_counter() - started
    return FileReceipt(path, rows, group, length, footer, checks, error, seconds)


def _about(game: Game, tier: str, error: float) -> dict[str, str]:
    """What a file says of itself when it is found alone: Parquet's key-value metadata."""
    return {
        "luckbase.format": str(FORMAT),
        "luckbase.game": game.board.game,
        "luckbase.tier": tier,
        "luckbase.payoff_error": repr(float(error)),
    }


def _writer(path: Path, schema: pa.Schema, split: list[str], pruned: list[str]) -> pq.ParquetWriter:
    texts = [field.name for field in schema if pa.types.is_dictionary(field.type)]
    return pq.ParquetWriter(
        path,
        pa.schema([field.with_nullable(field.name in ("best", "margin")) for field in schema]),
        compression={name: "zstd" if name in split else "lz4" for name in schema.names},
        compression_level={name: 1 for name in split},
        use_dictionary=texts or False,
        use_byte_stream_split=split,
        write_statistics=pruned,
        data_page_size=1 << 24,
        store_schema=False,  # text is text to every reader, however we hand it over
        write_page_checksum=True,
    )


def file_entry(
    name: str, part: str, tier: int, keys: tuple[int, int], file: FileReceipt, seconds: float = 0.0,
    resolved_error: float = np.inf,
) -> FileEntry:  # fmt: skip
    """A file as the ledger names it; keys: the first and the last; seconds: spent solving it;
    resolved_error: of the entry, its error if not given."""
    return FileEntry(
        name, part, tier, file.rows, file.row_group_rows, *keys, file.bytes, file.footer,
        file.checks, float(file.error),
        {"solve": round(seconds, 3), "write": round(file.seconds, 3)}, solver_version(),
        precision=resolved_error if resolved_error < file.error else 0.0,
    )  # fmt: skip


@dataclass(frozen=True)
class PayoffTable:
    """n states: keys uint64 (n,), values float64 (n, columns), best int64 (n,), status uint8 (n,).

    best: an action or a code of `solver.search.bellman`; status: an index into
    `table.keyed.STATUS`. gap: float64 (n,), of a cycle that was solved between bounds, at its state
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

    def only(self, rows: NDArray[Any] | slice) -> PayoffTable:
        """These rows: numbers, a mask (n,) or a slice."""
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
    from luckbase.solver.search.bellman import MIXED, UNDECIDED

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
