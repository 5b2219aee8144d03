"""The files of a table of decisions: codes in blocks, for questions; runs as Parquet, for others.

A code is a byte: the best action, an index into the game's names. Stored are the rows in which
somebody decides, in the order and with the differences that the game's `DecisionLayout` gives,
because they compress; a block is one zstd frame. Behind the blocks stands a footer, JSON with the
start and the check of each, its length in 4 bytes and ``LBD1``. `docs/reference/table-format.md`
says all that a reader needs.

Measured at $500 (1985-02): up to four spins, 850 million states, .0071 bytes a state in blocks and
.025 in runs; up to eight, 13.2 billion, .0051 and .013.
"""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from luckbase.cluster.table.format import (
    Written,
    as_table,
    column_of,
    constants,
    file_metadata,
    key_range,
    names_column,
    new_entry,
    row_group_rows,
    tier_columns,
    tier_stem,
    written,
)
from luckbase.cluster.table.manifest import DECISIONS, RUNS, TIERS, FileEntry
from luckbase.cluster.table.parquet import HashedFile, TableFile, Writer
from luckbase.cluster.table.parts import Batch, GroupRows, MayHold, Rows, TierPart
from luckbase.cluster.table.storage import Storage, in_threads
from luckbase.solver.game.arrays import Ints, Runs
from luckbase.solver.game.capabilities import NOBODY, DecisionLayout
from luckbase.solver.game.game import Stopped

_MAGIC = b"LBD1"
_ZSTD = 6
_CHUNK = 1 << 22
RUN_ROWS = 1 << 18
"""Runs of a row group of Parquet."""


def file_names(layout: DecisionLayout[Any], tier: Any) -> tuple[str, str]:
    """The names of a tier's blocks and runs."""
    stem = tier_stem(layout.layout, tier)
    return f"{DECISIONS}/{stem}.blocks", f"{RUNS}/{stem}.parquet"


def best_in(codes: NDArray[np.uint8]) -> NDArray[np.int16]:
    """The best actions (n,) that codes (n,) say; -1 where nobody decides."""
    best = codes.astype(np.int16)
    best[best == NOBODY] = -1
    return best


# --- blocks --------------------------------------------------------------------------------------


def write_blocks(
    storage: Storage, layout: DecisionLayout[Any], tier: Any, codes: NDArray[np.uint8],
    stop: Callable[[], bool] = lambda: False,
) -> Written:  # fmt: skip
    """Write the blocks of a tier to a temporary place, flushed. Raises OSError, and Stopped soon
    after `stop()` turns true."""
    started, dense = time.perf_counter(), layout.layout
    number, size = dense.tier_number(tier), (dense.rows(tier), layout.block_rows(tier))
    keys, name = key_range(number, size[0]), file_names(layout, tier)[0]
    path, checks, count = storage.temporary(name), [], 0

    def coded(block: int) -> tuple[int, bytes]:
        if stop():
            raise Stopped
        packed = layout.pack(tier, codes, block)
        content = pa.Codec("zstd", compression_level=_ZSTD).compress(packed, asbytes=True)
        return len(packed), content

    with closing(HashedFile(path)) as file:
        for codes_of_block, content in in_threads(coded, range(layout.blocks(tier)), dense.threads):
            count += codes_of_block
            at = file.size
            file.write(content)
            checks.append((at, zlib.crc32(file.end_section())))
        metadata = {
            "format": 1, "game": dense.game.board.game, "tier": tier_stem(dense, tier),
            "actions": [*dense.best_names], "codes": count,
            "block": layout.block_rows(tier), "checks": checks,
        }  # fmt: skip
        text = json.dumps(metadata, separators=(",", ":")).encode()
        file.write(text + len(text).to_bytes(4, "little") + _MAGIC)
        sums = file.finish()
    entry = new_entry(name, number, size, keys, layout.decision_error(tier))
    return written(entry, path, sums, started)


class BlocksFile(TableFile):
    """An open file of blocks; a row group is a block. All raises CorruptTableError."""

    def _open(self, metadata: Any) -> None:
        if metadata is None:
            metadata = json.loads(self._footer()[:-8])
        self.metadata = metadata
        self._set_checks(metadata["checks"])

    def codes(self, block: int) -> NDArray[np.uint8]:
        """A block as it was packed."""
        size = min(self.metadata["block"], self.metadata["codes"] - block * self.metadata["block"])
        content = pa.Codec("zstd").decompress(self.check(block), size, asbytes=True)
        return np.frombuffer(content, np.uint8)

    def close(self) -> None:
        """Nothing is open."""


# --- runs ----------------------------------------------------------------------------------------


def write_runs(
    storage: Storage, layout: DecisionLayout[Any], tier: Any, codes: NDArray[np.uint8],
    stop: Callable[[], bool] = lambda: False,
) -> Written:  # fmt: skip
    """Write the runs of a tier to a temporary place, flushed. Raises as `write_blocks`."""
    started, dense = time.perf_counter(), layout.layout
    name, constant = file_names(layout, tier)[1], dense.tier_fields(tier)
    path = storage.temporary(name)
    writer: Writer | None = None

    def made(runs: Callable[[], Mapping[str, Any]]) -> pa.Table:
        if stop():
            raise Stopped
        return _run_table(runs(), constant, dense.best_names)

    with ExitStack() as stack:
        for batch in in_threads(made, layout.runs(tier, codes), dense.threads):
            if writer is None:
                names = batch.schema.names
                writer = stack.enter_context(Writer(
                    path, batch.schema, file_metadata(dense.game, tier_stem(dense, tier), 0.0),
                    compression="zstd", compression_level=_ZSTD,
                    use_dictionary=[name for name in names if name not in ("from", "to")],
                    write_statistics=names[:6],
                ))  # fmt: skip
            for start in range(0, max(1, len(batch)), RUN_ROWS):
                writer.write(batch.slice(start, RUN_ROWS))
    assert writer is not None, "a tier has rows"
    entry = new_entry(name, dense.tier_number(tier), (0, 1), (0, 0), 0.0)
    return written(entry, path, writer.sums, started)


def _run_table(runs: Mapping[str, Any], constant: dict[str, int], names: Any) -> pa.Table:
    code = runs["code"]
    columns: dict[str, Any] = constants(constant, len(code))
    for name, column in runs.items():
        if name != "code":
            whole = column
            if isinstance(column, Runs):
                whole = np.repeat(column.values, column.times)
            columns[name] = column_of(whole, whole < 0) if whole is not column else column
    columns["best"] = names_column(best_in(code), names)
    return as_table(columns)


# --- read ----------------------------------------------------------------------------------------


class DecisionPart(TierPart):
    """The decisions of a full table: keys as of the full table, and no payoffs."""

    dense = False
    paid = False
    file_kind = BlocksFile

    def __init__(self, *of: Any) -> None:
        super().__init__(*of)
        self.plan = self.game.need(DecisionLayout)
        self.action_names = [*self.layout.best_names]

    @property
    def rows(self) -> int:
        """Its rows, without those that have payoffs in another part."""
        return sum(entry.rows for entry in self.own_entries)

    @property
    def own_entries(self) -> list[FileEntry]:
        paid = {entry.tier for entry in self.manifest.of_part(TIERS)}
        return [entry for entry in self.entries if entry.tier not in paid]

    def decode(self, file: Any, number: int, kind: str) -> NDArray[Any]:
        tier = self.tier_of_number[file.entry.tier]
        return self.plan.unpack(tier, file.codes(number), number)

    def codes(self, states: Ints) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
        """The codes (n,) of canonical states (n, fields), and which (n,) the part holds; 0, the
        first action, where nobody has a choice."""
        keys = self.keys(np.ascontiguousarray(states, np.int64))
        files, codes = self._files(keys), np.zeros(len(states), np.uint8)
        requests: dict[tuple[int, int], list[tuple[Ints, Ints]]] = {}
        for i in np.unique(files[files >= 0]).tolist():
            entry, at = self.entries[i], np.flatnonzero(files == i)
            tier = self.tier_of_number[entry.tier]
            place = self.plan.place(tier, keys[at] - entry.first_key)
            blocks, rest = np.divmod(place, entry.row_group_rows)
            for block in np.unique(blocks[place >= 0]).tolist():
                in_block = blocks == block
                requests.setdefault((i, block), []).append((at[in_block], rest[in_block]))
        order = list(requests)

        def use(k: int, group: NDArray[np.uint8]) -> None:
            for at, rows in requests[order[k]]:
                codes[at] = group[rows]

        self.groups.each(order, "codes", use)
        return codes, files >= 0

    def row_groups_of(self, keys: Ints) -> GroupRows:
        return []  # no payoffs, and a block is small: read when it is needed

    def stored(self, states: Ints) -> Rows:
        codes, present = self.codes(states)
        payoffs, over = self.lookup(states)
        payoffs[~over] = np.nan
        best = np.where(present, best_in(codes), np.int16(-1))
        none = np.full(len(states), np.nan)
        return Rows(np.asarray(states).__getitem__, payoffs, best, self.action_names, none)

    def stored_best(self, states: Ints) -> list[str | None]:
        return self.stored(states).best_names

    @property
    def schema(self) -> pa.Schema:
        constant = self.layout.tier_fields(self.tier_of_number[self.entries[0].tier])
        names = dict.fromkeys([*constant, *self.game.columns], pa.int32())
        return pa.schema([*(names | {"best": pa.string(), "to_act": pa.int8()}).items()])

    def tier_codes(self, i: int) -> NDArray[np.uint8]:
        """The codes (rows,) of file i."""
        entry = self.entries[i]
        tier, file = self.tier_of_number[entry.tier], self.groups.file(i)
        blocks = [self.decode(file, block, "codes") for block in range(file.groups)]
        stored, codes = np.concatenate(blocks), np.zeros(entry.rows, np.uint8)
        for start in range(0, entry.rows, _CHUNK):
            at = self.plan.place(tier, np.arange(start, min(start + _CHUNK, entry.rows)))
            codes[start : start + len(at)] = np.where(at < 0, 0, stored[at])
        return codes

    def batches(
        self, columns: Collection[str] | None, may_hold: MayHold = lambda _: True,
        entries: Sequence[FileEntry] | None = None,
    ) -> Iterator[Batch]:  # fmt: skip
        before = 0
        for entry in self.own_entries if entries is None else entries:
            tier = self.tier_of_number[entry.tier]
            if may_hold(self.constants(entry)):
                codes = self.tier_codes(self.entries.index(entry))
                size = row_group_rows(self.layout, tier)
                for start in range(0, entry.rows, size):
                    best = best_in(codes[start : start + size])
                    cells = tier_columns(self.layout, tier, (start, start + len(best)), best)
                    rows = {k: v for k, v in cells.items() if columns is None or k in columns}
                    states = partial(self.states_in, entry, start, None)
                    yield Batch(as_table(rows), before + start, states)
            before += entry.rows
