"""The files of a table: their names, columns and encodings, and columns between numpy and Arrow.

docs/reference/table-format.md describes them, for the full table (``tiers/``, and ``decisions/``
beyond the frontier) and for searches (``search-<id>/``). A tier of more than `FILE_ROWS` rows is
cut into files of nearly the same size. A tier that its game solves in parts (`FullTable.parts`) has
a file a part. So several cores write at once, and the bytes depend on the board alone. A row group
has about 65,000 rows, a multiple of the game's block; without payoffs it has more.

Measured on a $500 tier of 3.9 M rows (`python -m tests.bench store`): the three payoffs as
byte-stream-split with zstd level -1 take 4.2 bytes a row (plain lz4 5.2, plain zstd 4.5, pyarrow's
defaults 8.9 and twice the time); the state columns written plain with lz4 take .24 bytes and 17 ns
a row (dictionary with zstd .10 bytes and 52 ns), the constant columns .09 bytes and 6 ns. `best`
takes .03 bytes and 5 ns. Statistics, by which engines prune, are kept for the first two columns
that are not constant; for others they cost more time than they save.

Columns move between numpy and Arrow without copies where possible. pyarrow's own conversions
(`pa.array`, `to_numpy`) first import pandas if it is installed, which takes half as long as an
answer.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from luckbase.cluster.store import FORMAT
from luckbase.cluster.store.manifest import DECISIONS, KEY_SHIFT, TIERS, FileEntry, solver_version
from luckbase.cluster.store.parquet import Writer
from luckbase.cluster.store.storage import Storage
from luckbase.solver.errors import CorruptTableError, Stopped
from luckbase.solver.game.arrays import Best, Coded, Floats, Ints, Runs
from luckbase.solver.game.capabilities import DecisionLayout, FullTable, rounding
from luckbase.solver.game.game import Game
from luckbase.solver.search.keys import Keys, unpack_columns

if TYPE_CHECKING:
    from luckbase.solver.search.game_graph import Graph

FILE_ROWS = 1 << 24
"""Approximate maximum rows of a file of a full table: about 80 MB and 1.4 core seconds. Tables that
were cut into other files could not be resumed, so another number is another `FORMAT`."""
ROW_GROUP = 65_536
"""Approximate rows of a row group; a lookup decodes one in 1 ms."""
DECISION_ROWS = 1 << 18
"""Rows of each row group of decisions except the last."""
ROUNDED = 1e-6
"""Tolerance of stored payoffs outside the game's range, relative to its ends."""
NULLABLE = ("best", "margin")
"""Columns that may hold nulls."""
ASCENDING = ("key",)
"""Columns stored as differences, which takes a twentieth of the bytes and half the time."""


class Written(NamedTuple):
    """A file that a worker wrote to a temporary place."""

    entry: FileEntry  # its manifest entry, without the time of its payoffs
    path: Path  # the temporary place


def tier_stem(layout: FullTable[Any], tier: Any) -> str:
    return ".".join(f"{name}-{value}" for name, value in layout.tier_fields(tier).items()) or "all"


class TierFile(NamedTuple):
    """A file of the full table: rows [start, stop) of a tier, which are in one of its parts
    (`FullTable.parts`)."""

    name: str
    part: int
    start: int
    stop: int


def tier_files(layout: FullTable[Any], tier: Any) -> list[TierFile]:
    """Return the files of a tier, in the order of their rows."""
    parts, rows, block = layout.parts(tier), layout.rows(tier), layout.block_rows(tier)
    count = max(1, min(-(-rows // FILE_ROWS), rows // block))
    ends = [rows // block * k // count * block for k in range(count)] + [rows]
    spans, stem = parts if len(parts) > 1 else [*pairwise(ends)], tier_stem(layout, tier)
    return [
        TierFile(
            f"{TIERS}/{stem}{f'.{k:03d}' * (len(spans) > 1)}.parquet", k * (len(parts) > 1), *span
        )
        for k, span in enumerate(spans)
    ]


def row_group_rows(layout: FullTable[Any], tier: Any) -> int:
    """Return the rows of each row group except the last: a multiple of the game's block."""
    block = layout.block_rows(tier)
    return max(1, ROW_GROUP // block) * block


def key_range(tier_number: int, rows: int, start: int = 0) -> tuple[int, int]:
    """Return the first and last key of `rows` rows of a tier, beginning at row `start`."""
    first = (tier_number << KEY_SHIFT) + start
    return first, first + rows - 1


# --- written ---


def write_tier(
    storage: Storage, layout: FullTable[Any], tier: Any, file: TierFile, payoffs: Floats,
    best: Best, error: float,
) -> Written:  # fmt: skip
    """Write a file of a tier to a temporary place, and flush it.

    payoffs, best: of the file's part, as the kernel left them; payoffs are within `error` of
        the exact ones.

    Raises OSError if the disk does.
    """
    names, constant = payoff_columns(layout.game), layout.tier_fields(tier)

    first = layout.parts(tier)[file.part][0]

    def columns(start: int, stop: int) -> dict[str, Any]:
        span = file.start + start, file.start + stop
        start, stop = span[0] - first, span[1] - first  # of the part
        values = zip(names, layout.payoff_rows(tier, payoffs, start, stop), strict=True)
        return tier_columns(layout, tier, span, best[start:stop], dict(values))

    others = [name for name in layout.game.columns if name not in constant][:2]
    error += rounding(layout)
    number, rows = layout.tier_number(tier), file.stop - file.start
    size, keys = (rows, row_group_rows(layout, tier)), key_range(number, rows, file.start)
    entry = new_entry(file.name, number, size, keys, error)
    name_of_tier = ".".join(f"{k}-{v}" for k, v in constant.items())
    return write_file(storage, layout.game, entry, columns, names, others, name_of_tier)


def tier_columns(
    layout: FullTable[Any], tier: Any, span: tuple[int, int], best: NDArray[Any],
    payoffs: Mapping[str, Any] = {},
) -> dict[str, Any]:  # fmt: skip
    """Return the columns of rows `span` of a tier. best, payoffs: of these rows."""
    columns: dict[str, Any] = constants(layout.tier_fields(tier), len(best))
    columns |= layout.state_rows(tier, *span)
    columns |= payoffs
    columns["best"] = names_column(best, layout.best_names)
    columns["to_act"] = layout.acting_rows(tier, *span)
    return columns


def decision_file(layout: FullTable[Any], tier: Any) -> str:
    return f"{DECISIONS}/{tier_stem(layout, tier)}.parquet"


def write_decisions(
    storage: Storage, layout: DecisionLayout[Any], tier: Any, codes: NDArray[np.int8],
    stop: Callable[[], bool] = lambda: False,
) -> Written:  # fmt: skip
    """Write the file of a tier beyond the frontier to a temporary place, and flush it. It has one
    column, ``best``, and one row for each state: the key gives the row.

    codes: the best action of each row, an index into `FullTable.best_names`.

    Raises OSError if the disk does, and Stopped soon after `stop()` returns True.
    """
    dense = layout.layout
    number = dense.tier_number(tier)

    def columns(start: int, stop: int) -> dict[str, Any]:
        return {"best": names_column(codes[start:stop], dense.best_names)}

    size, keys = (len(codes), DECISION_ROWS), key_range(number, len(codes))
    entry = new_entry(decision_file(dense, tier), number, size, keys, 0.0)
    return write_file(storage, dense.game, entry, columns, [], [], tier_stem(dense, tier), stop)


def write_file(
    storage: Storage, game: Game, entry: FileEntry, columns: Callable[[int, int], dict[str, Any]],
    split: list[str], pruned: list[str], tier: str = "", stop: Callable[[], bool] = lambda: False,
) -> Written:  # fmt: skip
    """Write the file of a `new_entry` and flush it to the disk. Its metadata identify it if it is
    found alone.

    columns(start, stop): of these rows. split: columns of floats that are byte-stream-split.
    pruned: columns with statistics. tier: its name, for a full table.

    Raises Stopped soon after `stop()` returns True. After an error the file is deleted, because the
    next solve checks the room on the disk before it deletes leftovers.
    """
    rows, group = entry.rows, entry.row_group_rows
    started, path = time.perf_counter(), storage.temporary(entry.name)
    arrays = arrow_columns(columns(0, min(group, rows)))
    nullable = () if entry.part == DECISIONS else NULLABLE
    schema = pa.schema([pa.field(name, a.type, name in nullable) for name, a in arrays.items()])
    metadata = {
        "luckbase.format": str(FORMAT), "luckbase.game": game.board.game, "luckbase.tier": tier,
        "luckbase.payoff_error": repr(entry.error),
    }  # fmt: skip
    options = _options(schema, split, pruned)
    if entry.part == DECISIONS:
        options |= {"compression": "zstd", "compression_level": 3}
    try:
        with Writer(path, schema, metadata, **options) as writer:
            for start in range(0, max(1, rows), group):
                if stop():
                    raise Stopped
                if start:
                    arrays = arrow_columns(columns(start, min(start + group, rows)))
                writer.write(pa.Table.from_arrays([*arrays.values()], schema=schema))
    except BaseException:
        with suppress(OSError):  # a file in memory has no name
            path.unlink()
        raise
    seconds = {"write": round(time.perf_counter() - started, 3)}
    return Written(replace(entry, seconds=seconds, **writer.sums), path)


def _options(schema: pa.Schema, split: list[str], pruned: list[str]) -> dict[str, Any]:
    names = schema.names
    encodings = {name: "BYTE_STREAM_SPLIT" for name in names if name in split}
    encodings |= {name: "DELTA_BINARY_PACKED" for name in names if name in ASCENDING}
    return {
        "compression": {name: "zstd" if name in split else "lz4" for name in names},
        "compression_level": {name: -1 for name in names if name in split},
        "use_dictionary": [f.name for f in schema if pa.types.is_dictionary(f.type)] or False,
        "column_encoding": encodings or None,
        "write_statistics": [name for name in names if name in pruned],
        "data_page_size": 1 << 24,
        "write_batch_size": 1 << 16,
    }


def new_entry(
    name: str, tier: int, size: tuple[int, int], keys: tuple[int, int], error: float,
    **of_stages: Any,
) -> FileEntry:  # fmt: skip
    """Return the manifest's entry of a file before it is written.

    size: rows, and rows a group; keys: the first and the last; of_stages: its `stages`, `boxes`.
    """
    return FileEntry(
        name, name.partition("/")[0], tier, *size, *keys, 0, 0, "", "", float(error), {},
        solver_version(), **of_stages,
    )  # fmt: skip


def put_file(storage: Storage, file: Written, at: str) -> FileEntry:
    """Put a file that was written in its place, and return its entry with the place."""
    storage.put(at, file.path)
    return file.entry.placed(at)


# --- searches ---


@dataclass(frozen=True)
class PayoffTable:
    """The result of a search: n states with payoffs in c columns."""

    keys: Keys  # uint64 (n,)
    values: Floats  # float64 (n, c)
    best: Ints  # int64 (n,), an action or a code of `solver.search.bellman`
    margin: Floats
    """float64 (n,), the cost of the second-best action to the player who decides; NaN without a
    choice."""
    actor: NDArray[np.int8]  # int8 (n,), the player who acts, from 1; 0 for none or both

    def __len__(self) -> int:
        return len(self.keys)

    def only(self, rows: NDArray[Any] | slice) -> PayoffTable:
        """Select rows by indices, a mask (n,) or a slice."""
        return PayoffTable(*(getattr(self, each.name)[rows] for each in fields(self)))


def solved_rows(graph: Graph) -> PayoffTable:
    """Return the rows of a solved graph (`Graph.rows`)."""
    at = graph.rows()
    return PayoffTable(
        graph.keys_at(at), graph.values[at], graph.best[at], graph.margins[at], graph.actors[at]
    )


def write_states(
    storage: Storage, name: str, game: Game, table: PayoffTable, error: float, **of_stages: Any
) -> Written:  # fmt: skip
    """Write a search's file, by ascending key, like `write_tier`. of_stages: as in `new_entry`."""
    names = payoff_columns(game)
    # Indices into the labels of best actions; -1 if no player decides or both do.
    chosen = np.where(table.actor == 0, -1, np.maximum(table.best, -1))
    starts = np.append(True, chosen[1:] != chosen[:-1])  # starts of runs, of which there are few
    actions = np.unique(chosen[starts[: len(chosen)]])
    actions = actions[actions >= 0]
    labels = [game.action_name(action) for action in actions.tolist()]
    codes = (np.searchsorted(actions, chosen, side="right") - 1).astype(np.int32)

    def columns(start: int, stop: int) -> dict[str, Any]:
        rows = table.only(slice(start, stop))
        numbers = np.empty((game.field_count, len(rows)), np.int64)
        unpack_columns(game.strides, rows.keys, numbers)
        return {
            "key": rows.keys, **game.table_columns(numbers.T),
            **{name: rows.values[:, i] for i, name in enumerate(names)},
            "best": names_column(codes[start:stop], labels), "to_act": rows.actor,
            "margin": nullable(rows.margin),
        }  # fmt: skip

    ends = (int(table.keys[0]), int(table.keys[-1])) if len(table) else (0, 0)
    size = len(table), ROW_GROUP
    entry = new_entry(name, 0, size, ends, error, **of_stages)
    return write_file(storage, game, entry, columns, [*names, "margin"], ["key"])


# --- between numpy and Arrow ---


def payoff_columns(game: Game) -> list[str]:
    """``payoff_1``, … in turn order."""
    return [f"payoff_{i + 1}" for i in range(game.players)]


def numbers_of(column: Any, missing: float = np.nan) -> NDArray[Any]:
    """Return the numbers (n,) of a column or a chunk. missing: replaces nulls. The array may be
    read-only, because it may share the column's memory."""
    parts = []
    for chunk in [column] if isinstance(column, pa.Array) else column.chunks:
        parts.append(_filled(chunk, missing) if chunk.null_count else np.from_dlpack(chunk))
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts) if parts else np.empty(0, column.type.to_pandas_dtype())


def _filled(chunk: pa.Array, missing: float) -> NDArray[Any]:
    """Return the numbers of a chunk with nulls. (`pyarrow.compute` is slow to import.)"""
    validity, content = chunk.buffers()
    plain = pa.Array.from_buffers(chunk.type, len(chunk), [None, content], offset=chunk.offset)
    stop = chunk.offset + len(chunk)
    bits = np.unpackbits(np.frombuffer(validity, np.uint8), count=stop, bitorder="little")
    filled = np.from_dlpack(plain).copy()
    filled[bits[chunk.offset :] == 0] = missing
    return filled


def stored_payoffs(table: Any, game: Game, where: Path) -> NDArray[Any]:
    """Return the payoffs (n, players) in the columns of a table. Raises as `check_payoffs` does."""
    payoffs = np.stack([numbers_of(table.column(name)) for name in payoff_columns(game)], axis=1)
    check_payoffs(payoffs, game, where)
    return payoffs


def check_payoffs(payoffs: NDArray[Any], game: Game, where: Path) -> None:
    """Raise CorruptTableError for payoffs that are NaN or outside the game's range, because kernels
    do not accept them. where: the table or the file."""
    low, high = game.payoff_span
    slack = 0.0 if game.known_range is None else ROUNDED * max(1.0, abs(low), abs(high))
    if payoffs.size and not (low - slack <= payoffs.min() and payoffs.max() <= high + slack):
        raise CorruptTableError(f"{where}: has payoffs that no state of this game has")


def column_of(values: NDArray[Any], nulls: NDArray[np.bool_] | None = None) -> pa.Array:
    """Return a column of numbers or booleans. nulls: mask of nulls."""
    flat = np.ascontiguousarray(values)
    content = np.packbits(flat, bitorder="little") if flat.dtype.kind == "b" else flat
    validity = None
    if nulls is not None and nulls.any():
        validity = pa.py_buffer(np.packbits(~nulls, bitorder="little"))
    kind = pa.from_numpy_dtype(flat.dtype)
    return pa.Array.from_buffers(kind, len(flat), [validity, pa.py_buffer(content)])


def nullable(values: Floats) -> pa.Array:
    """Return a column of float64 numbers; NaN is null."""
    return column_of(np.asarray(values, np.float64), np.isnan(values))


def labelled(column: Any) -> tuple[NDArray[np.int16], tuple[str, ...]]:
    """Return (codes (n,), -1 for null; labels) of a dictionary-encoded column of names. Raises
    CorruptTableError for codes without a label."""
    array = column.combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = array.chunk(0)
    codes = numbers_of(array.indices, -1)
    labels = tuple(map(str, array.dictionary.to_pylist()))
    if len(codes) and not (codes.min() >= -1 and codes.max() < min(len(labels), 1 << 15)):
        raise CorruptTableError("a column of names has codes of no name")
    return codes.astype(np.int16), labels


@lru_cache(maxsize=64)
def texts_of(texts: tuple[str, ...]) -> pa.Array:
    """Return a column of texts, cached, because every row group needs the game's actions."""
    contents = [text.encode() for text in texts]
    ends = np.cumsum([0, *map(len, contents)], dtype=np.int32)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(contents))]
    return pa.Array.from_buffers(pa.string(), len(contents), buffers)


def constants(fields: Mapping[str, int], rows: int) -> dict[str, pa.Array]:
    return {name: _constant(value, rows) for name, value in fields.items()}


@lru_cache(maxsize=64)
def _constant(value: int, rows: int) -> pa.Array:
    return column_of(np.full(rows, value, np.int32))


def as_table(columns: dict[str, Any]) -> pa.Table:
    arrays = arrow_columns(columns)
    return pa.Table.from_arrays([*arrays.values()], names=[*arrays])


def arrow_columns(columns: Mapping[str, Any]) -> dict[str, pa.Array]:
    return {name: _column(column) for name, column in columns.items()}


def names_column(codes: NDArray[Any], labels: Sequence[str]) -> pa.Array:
    """Return a dictionary-encoded column of names; null for negative codes."""
    index = column_of(codes, codes < 0)
    return pa.DictionaryArray.from_arrays(index, texts_of(tuple(labels)), safe=False)


def _column(column: Any) -> pa.Array:
    if isinstance(column, Runs):
        column = np.repeat(column.values, column.times)
    if isinstance(column, Coded):
        return pa.DictionaryArray.from_arrays(
            column_of(column.codes), texts_of(tuple(column.labels))
        )
    return column if isinstance(column, pa.Array) else column_of(column)
