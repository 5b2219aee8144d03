"""The files beyond the frontier: Parquet with one column, ``best``, and one row for each state.

Row i of a tier's file is row i of the tier, so the key gives the row and no state is stored
(`docs/reference/table-format.md`). ``best`` is the name of the best action, dictionary-encoded and
compressed with zstd.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from luckbase.cluster.table.format import (
    Written,
    as_table,
    column_of,
    file_metadata,
    key_range,
    new_entry,
    row_group_rows,
    texts_of,
    tier_columns,
    tier_stem,
    written,
)
from luckbase.cluster.table.manifest import DECISIONS, TIERS, FileEntry, row_spans
from luckbase.cluster.table.parquet import Writer
from luckbase.cluster.table.parts import Batch, MayHold, Rows, TierPart
from luckbase.cluster.table.storage import Storage
from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.capabilities import DecisionLayout, Layout
from luckbase.solver.game.game import Stopped

GROUP_ROWS = 1 << 18
"""Rows of each row group except the last."""
_ZSTD = 3
_SCHEMA = pa.schema([pa.field("best", pa.dictionary(pa.int8(), pa.string()), nullable=False)])


def file_name(layout: Layout[Any], tier: Any) -> str:
    return f"{DECISIONS}/{tier_stem(layout, tier)}.parquet"


def write_decisions(
    storage: Storage, layout: DecisionLayout[Any], tier: Any, codes: NDArray[np.int8],
    stop: Callable[[], bool] = lambda: False,
) -> Written:  # fmt: skip
    """Write the file of a tier to a temporary place, and flush it.

    codes: the best action of each row, an index into `Layout.best_names`.

    Raises OSError if the disk does, and Stopped soon after `stop()` returns True.
    """
    started, dense = time.perf_counter(), layout.layout
    name = file_name(dense, tier)
    number, error = dense.tier_number(tier), layout.decision_error(tier)
    path, labels = storage.temporary(name), texts_of(tuple(dense.best_names))
    notes = file_metadata(dense.game, tier_stem(dense, tier), error)
    with Writer(
        path, _SCHEMA, notes, compression="zstd", compression_level=_ZSTD, use_dictionary=True,
        write_statistics=False, data_page_size=1 << 24, write_batch_size=1 << 16,
    ) as writer:  # fmt: skip
        for start in range(0, len(codes), GROUP_ROWS):
            if stop():
                raise Stopped
            index = column_of(codes[start : start + GROUP_ROWS])
            best = pa.DictionaryArray.from_arrays(index, labels)
            writer.write(pa.Table.from_arrays([best], schema=_SCHEMA))
    size, keys = (len(codes), GROUP_ROWS), key_range(number, len(codes))
    return written(new_entry(name, number, size, keys, error), path, writer.sums, started)


class DecisionPart(TierPart):
    """The full table beyond the frontier: the same keys, with best actions and without payoffs."""

    dense = False
    paid = False

    def __init__(self, *of: Any) -> None:
        self.plan = of[-1].need(DecisionLayout)
        super().__init__(*of)
        self.action_names = [*self.layout.best_names]
        paid = row_spans(self.manifest.of_part(TIERS))
        self.entries = [each for each in self.entries if paid.get(each.tier) != [(0, each.rows)]]

    @cached_property
    def layout(self) -> Layout[Any]:
        return self.plan.layout

    def _in_groups(self, keys: Ints, kind: str) -> list[tuple[Ints, NDArray[Any]]]:
        return [] if kind == "payoffs" else super()._in_groups(keys, kind)

    def stored(self, states: Ints) -> Rows:
        none = np.full(len(states), np.nan)
        payoffs, over = self.lookup(states)
        payoffs[~over] = np.nan
        best = self._best(self.keys(states))
        return Rows(np.asarray(states).__getitem__, payoffs, best, self.action_names, none)

    @property
    def schema(self) -> pa.Schema:
        constant = self.layout.tier_fields(self.tier_of_number[self.entries[0].tier])
        names = dict.fromkeys([*constant, *self.game.columns], pa.int32())
        return pa.schema([*(names | {"best": pa.string(), "to_act": pa.int8()}).items()])

    def best_of_file(self, i: int) -> NDArray[np.int16]:
        """Return the best actions (rows,) of file i, as indices into `Layout.best_names`."""
        with self.groups.passing(self.entries[i]) as file:
            groups = [self.decode(file, n, "best") for n in file.ahead(range(file.groups))]
        return np.concatenate(groups)

    def batches(
        self, columns: Collection[str] | None, may_hold: MayHold = lambda _: True,
        entries: Sequence[FileEntry] | None = None,
    ) -> Iterator[Batch]:  # fmt: skip
        before = 0
        for entry in self.entries if entries is None else entries:
            tier = self.tier_of_number[entry.tier]
            if may_hold(self.constants(entry)):
                codes = self.best_of_file(self.entries.index(entry))
                size = row_group_rows(self.layout, tier)
                for start in range(0, entry.rows, size):
                    best = codes[start : start + size]
                    cells = tier_columns(self.layout, tier, (start, start + len(best)), best)
                    rows = {k: v for k, v in cells.items() if columns is None or k in columns}
                    states = partial(self.states_in, entry, start, None)
                    yield Batch(as_table(rows), before + start, states)
            before += entry.rows
