"""Between numpy's arrays and Arrow's columns; nothing is copied that need not be.

pyarrow's own ways (`pa.array`, `to_numpy`) import pandas first, where it is installed, to see
whether they are handed something of it: half as long as all else that an answer takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


def numbers_of(column: Any, missing: float = np.nan) -> NDArray[Any]:
    """The numbers (n,) of a column, or of a chunk of one; missing: instead of null. They may not be
    written to where they are the column's own memory."""
    if isinstance(column, pa.Array):
        return _numbers(column, missing)
    parts = [_numbers(chunk, missing) for chunk in column.chunks]
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts) if parts else np.empty(0, column.type.to_pandas_dtype())


def number_rows(read: Any, names: Sequence[str]) -> NDArray[Any]:
    """The numbers (n, k) of these columns of a table, row by row."""
    return np.stack([numbers_of(read.column(name)) for name in names], axis=1)


def _numbers(array: pa.Array, missing: float) -> NDArray[Any]:
    kind, rows = np.dtype(array.type.to_pandas_dtype()), len(array)
    if not rows:
        return np.empty(0, kind)
    bits, content = array.buffers()
    found = np.frombuffer(content, kind, rows, array.offset * kind.itemsize)
    if not array.null_count:
        return found
    there = np.unpackbits(np.frombuffer(bits, np.uint8), bitorder="little")
    there = there[array.offset : array.offset + rows].astype(bool)
    return np.where(there, found, kind.type(missing))


def column_of(values: NDArray[Any], gone: NDArray[np.bool_] | None = None) -> pa.Array:
    """A column of numbers, or of truth values; gone: which of them are null."""
    flat = np.ascontiguousarray(values)
    content = np.packbits(flat, bitorder="little") if flat.dtype.kind == "b" else flat
    there = None
    if gone is not None and gone.any():
        there = pa.py_buffer(np.packbits(~gone, bitorder="little"))
    kind = pa.from_numpy_dtype(flat.dtype)
    return pa.Array.from_buffers(kind, len(flat), [there, pa.py_buffer(content)])


def texts_of(texts: Sequence[str]) -> pa.Array:
    """A column of texts."""
    ends, content = _joined([text.encode() for text in texts])
    buffers = [None, pa.py_buffer(ends.astype(np.int32)), content]
    return pa.Array.from_buffers(pa.string(), len(texts), buffers)


def bytes_of(contents: Sequence[bytes]) -> pa.Array:
    """A column of bytes."""
    ends, content = _joined(contents)
    return pa.Array.from_buffers(
        pa.large_binary(), len(contents), [None, pa.py_buffer(ends), content]
    )


def lists_of(arrays: Sequence[NDArray[Any]], kind: Any) -> pa.Array:
    """A column of lists of numbers of this type."""
    ends = np.cumsum([0, *map(len, arrays)], dtype=np.int64)
    numbers = arrays[0] if len(arrays) == 1 else np.concatenate([np.empty(0, kind), *arrays])
    return pa.LargeListArray.from_arrays(
        column_of(ends), column_of(numbers.astype(kind, copy=False))
    )


def _joined(contents: Sequence[bytes]) -> tuple[NDArray[np.int64], Any]:
    """Where each begins, and the end of all; all together."""
    ends = np.cumsum([0, *map(len, contents)], dtype=np.int64)
    return ends, pa.py_buffer(b"".join(contents))
