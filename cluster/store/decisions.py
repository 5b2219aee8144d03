"""The files beyond the frontier: Parquet with one column, ``best``, and one row for each state.

Row i of a tier's file is row i of the tier, so the key gives the row and no state is stored
(`docs/reference/table-format.md`). ``best`` is the name of the best action, dictionary-encoded and
compressed with zstd.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from luckbase.cluster.store.format import (
    Written,
    column_of,
    file_metadata,
    key_range,
    new_entry,
    texts_of,
    tier_stem,
    written,
)
from luckbase.cluster.store.manifest import DECISIONS
from luckbase.cluster.store.parquet import Writer
from luckbase.cluster.store.storage import Storage
from luckbase.solver.game.capabilities import DecisionLayout, FullTable
from luckbase.solver.game.game import Stopped

GROUP_ROWS = 1 << 18
"""Rows of each row group except the last."""
_ZSTD = 3
_SCHEMA = pa.schema([pa.field("best", pa.dictionary(pa.int8(), pa.string()), nullable=False)])


def file_name(layout: FullTable[Any], tier: Any) -> str:
    return f"{DECISIONS}/{tier_stem(layout, tier)}.parquet"


def write_decisions(
    storage: Storage, layout: DecisionLayout[Any], tier: Any, codes: NDArray[np.int8],
    stop: Callable[[], bool] = lambda: False,
) -> Written:  # fmt: skip
    """Write the file of a tier to a temporary place, and flush it.

    codes: the best action of each row, an index into `FullTable.best_names`.

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
