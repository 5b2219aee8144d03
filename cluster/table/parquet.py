"""Parquet row groups in which the columns that repeat are coded once.

In a full table's file most columns say which state a row is: the tier's are constant, spins and the
last score run in the same order through every row group. To code, compress and check them again
for each takes a fourth of a solve. So a column that is handed over as a **read-only array** or in
**runs** is coded when it is seen first, by pyarrow, as the file of one column; and its chunk's
bytes are put behind the others of every row group that holds it. pyarrow writes those others, one
row group after the other into one open file, whose positions it reads. The footer is put together
of the parts that pyarrow wrote, in thrift's compact protocol; new are positions, names and sums. It
is the one that pyarrow would have written but for the order of the chunks in a row group.
(Format: apache/parquet-format, `parquet.thrift`; apache/thrift, `thrift-compact-protocol.md`.)
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from luckbase.solver.game.arrays import Runs

BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, STRUCT = 3, 4, 5, 6, 7, 8, 9, 12
"""Types of thrift's compact protocol."""
GROUPS = 4
"""The number of a footer's field that holds the row groups."""
UNCOMPRESSED, ROWS, COMPRESSED = 2, 3, 6
"""Those of a row group's sums."""
METADATA, PATH, PLACE = 3, 3, 9
"""In a column's those of its metadata, and in these of its path and of its first page's place."""
NULLABLE = ("best", "margin")
"""Columns that may hold nulls."""
ASCENDING = ("key",)
"""Columns that are stored as differences, which take a twentieth of the bytes and half the time."""
REMEMBERED = 4096
"""Columns of row groups whose chunk is remembered: some kilobytes each."""


def varint(value: int) -> bytes:
    """A number of 0 or more, seven bits a byte, the lowest first."""
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def integer(value: int) -> bytes:
    """An integer of 0 or more as thrift writes it, zigzag."""
    return varint(value << 1)


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """(the number, where it ends)."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7


def skip(data: bytes, at: int, kind: int) -> int:
    """Where a value at `at` ends."""
    if kind == STRUCT:
        while head := data[at]:
            at += 1
            if I16 <= head & 15 <= I64:  # most are: no call for them
                while data[at] > 127:
                    at += 1
                at += 1
            else:
                at = skip(data, at, head & 15)
        return at + 1
    if kind == LIST:
        of = data[at] & 15
        size, at = list_head(data, at)
        for _ in range(size):
            at = skip(data, at, of)
        return at
    if kind == BINARY:
        size, at = read_varint(data, at)
        return at + size
    if I16 <= kind <= I64:
        return read_varint(data, at)[1]
    return at + {BYTE: 1, DOUBLE: 8}.get(kind, 0)  # a truth value stands in its field's head


def fields(data: bytes, at: int) -> Iterator[tuple[int, int, int]]:
    """(number, where its value begins, where it ends) of each field of a struct at `at`."""
    number = 0
    while head := data[at]:  # the lower half its type, the upper one the step from the last number
        number += head >> 4
        end = skip(data, at + 1, head & 15)
        yield number, at + 1, end
        at = end


def list_head(data: bytes, at: int) -> tuple[int, int]:
    """(how many, where the first begins) of a list at `at`."""
    size = data[at] >> 4
    return (size, at + 1) if size < 15 else read_varint(data, at + 1)


def path(name: str) -> bytes:
    """Of a column: a list of its name."""
    return bytes([1 << 4 | BINARY]) + varint(len(name.encode())) + name.encode()


def list_of(parts: list[bytes]) -> bytes:
    """A list of structs."""
    size = len(parts)
    head = bytes([size << 4 | STRUCT]) if size < 15 else bytes([0xF0 | STRUCT]) + varint(size)
    return head + b"".join(parts)


def row_groups(raw: bytes) -> Iterator[tuple[list[bytes], dict[int, int], bytes]]:
    """Of a footer's row groups the columns' metadata, the numbers of the other fields, and the
    heads of these. In one pass: Python takes a microsecond a value."""
    at = next(begin for number, begin, _ in fields(raw, 0) if number == GROUPS)
    count, at = list_head(raw, at)
    for _ in range(count):
        columns, at = list_head(raw, at + 1)
        chunks, numbers, heads, number = [], {}, [], 1
        for _ in range(columns):
            end = skip(raw, at, STRUCT)
            chunks.append(raw[at:end])
            at = end
        while head := raw[at]:
            number += head >> 4
            value, at = read_varint(raw, at + 1)
            numbers[number] = value >> 1
            heads.append(head)
        at += 1
        yield chunks, numbers, bytes(heads)


@dataclass(frozen=True)
class Chunk:
    """A column of a row group, coded."""

    column: Any
    """Remembered, so that its memory is nobody else's."""
    content: bytes
    uncompressed: int
    metadata: tuple[bytes, bytes, bytes]
    """In pieces: behind the first stands the column's path, behind the second its place."""


def footer_start(file: bytes) -> int:
    """Where the footer of a file begins, behind which stand its length and a mark, 8 bytes."""
    return len(file) - 8 - int.from_bytes(file[-8:-4], "little")


def make_chunk(column: Any, file: bytes) -> Chunk:
    """The only chunk of a file that holds `column` and nothing else."""
    end = footer_start(file)
    [([raw], sums, _)] = row_groups(file[end:-8])
    outer = {number: begin for number, begin, _ in fields(raw, 0)}
    at = {number: (begin, stop) for number, begin, stop in fields(raw, outer[METADATA])}
    (path, path_end), (place, place_end) = at[PATH], at[PLACE]
    pieces = raw[:path], raw[path_end:place], raw[place_end:]
    return Chunk(column, file[4:end], sums[UNCOMPRESSED], pieces)


class Writer:
    """One file: `write` a row group after the other, then `close`. Raises OSError where the disk
    does."""

    def __init__(
        self, path: Path, notes: Mapping[str, str], split: Sequence[str], pruned: Sequence[str],
        convert: Callable[[Any], pa.Array],
    ) -> None:  # fmt: skip
        """notes: key-value metadata. split: columns of floats that are byte-stream-split; pruned:
        those with statistics. convert: a column as Arrow has it."""
        self._notes, self._split, self._pruned = dict(notes), split, pruned
        self._convert = convert
        self._path, self._file = path, pa.OSFile(str(path), "wb")
        self._schema = pa.schema([])
        self._paths: dict[str, bytes] = {}
        """Of the columns that are coded once."""
        self.starts: list[int] = []
        """The byte at which each row group begins; 0 for the first."""
        self._own: pq.ParquetWriter | None = None
        """Of the others."""
        self._repeated: list[list[tuple[str, Chunk, int]]] = []
        """What was put in each row group, and where."""

    def write(self, columns: Mapping[str, Any]) -> None:
        """A row group. Those columns are coded once that repeat (`content_of`) in the first."""
        encoded = {n: self._convert(each) for n, each in columns.items() if n not in self._paths}
        if self._own is None:
            fields = [pa.field(name, each.type, name in NULLABLE) for name, each in encoded.items()]
            once = [name for name, each in columns.items() if content_of(each) is not None]
            self._paths = {name: path(name) for name in once}
            others = pa.schema([field for field in fields if field.name not in self._paths])
            self._schema, self._own = pa.schema(fields), self._writer(self._file, others)
        self.starts.append(self._file.tell() if self.starts else 0)
        arrays = [encoded[name] for name in self._own.schema.names]
        rows = pa.Table.from_arrays(arrays, schema=self._own.schema)
        self._own.write_table(rows, row_group_size=max(1, len(rows)))
        chunks = [(name, self._chunk(name, columns[name])) for name in self._paths]
        ends = accumulate((len(chunk.content) for _, chunk in chunks), initial=self._file.tell())
        self._repeated.append([(*chunk, place) for chunk, place in zip(chunks, ends, strict=False)])
        self._file.write(b"".join(chunk.content for _, chunk in chunks))

    def close(self) -> None:
        """Write the footer."""
        if self._own is not None:
            self._own.close()
        self._file.close()
        if any(self._repeated):
            with self._path.open("r+b") as file:
                file.seek(-8, os.SEEK_END)
                size = int.from_bytes(file.read(4), "little")
                begin = file.seek(-8 - size, os.SEEK_END)
                footer = self._footer(file.read(size))
                file.seek(begin)
                file.write(footer + len(footer).to_bytes(4, "little") + b"PAR1")
                file.truncate()

    def _footer(self, footer: bytes) -> bytes:
        """Of all columns, from that of those which are not coded once."""
        assert self._own is not None
        names = self._own.schema.names
        rows, groups = 0, []
        for group_parts, repeated in zip(row_groups(footer), self._repeated, strict=True):
            chunks, sums, heads = group_parts
            chunk_of = dict(zip(names, chunks, strict=True))
            for name, chunk, place in repeated:
                first, second, third = chunk.metadata
                chunk_of[name] = b"".join((first, self._paths[name], second, integer(place), third))
                sums[UNCOMPRESSED] += chunk.uncompressed
                sums[COMPRESSED] += len(chunk.content)
            rows += sums[ROWS]
            group = b"\x19" + list_of([chunk_of[name] for name in self._schema.names])
            for head, value in zip(heads, sums.values(), strict=True):
                group += bytes([head]) + integer(value)
            groups.append(group + b"\x00")
        empty = self._coded(self._schema)
        raw = empty[footer_start(empty) : -8]
        ends = {number: end for number, _, end in fields(raw, 0)}
        return b"".join((
            raw[: ends[2]], b"\x16", integer(rows), b"\x19", list_of(groups), raw[ends[GROUPS] :],
        ))  # fmt: skip

    def _chunk(self, name: str, column: Any) -> Chunk:
        """Its coded column. Remembered by whether statistics are wanted, and the content."""
        key = name in self._pruned, content_of(column)
        if (chunk := _chunks.get(key)) is None:
            array = self._convert(column)
            chunk = make_chunk(column, self._coded(pa.schema([self._schema.field(name)]), [array]))
            if key[1] is not None:
                with _lock:
                    _chunks[key] = chunk
                    while len(_chunks) > REMEMBERED:
                        _chunks.popitem(last=False)
        return chunk

    def _coded(self, schema: pa.Schema, arrays: Sequence[pa.Array] = ()) -> bytes:
        """A file of one row group, or of none."""
        sink = pa.BufferOutputStream()
        with self._writer(sink, schema) as writer:
            if arrays:
                rows = pa.Table.from_arrays(arrays, schema=schema)
                writer.write_table(rows, row_group_size=max(1, len(rows)))
        return sink.getvalue().to_pybytes()

    def _writer(self, sink: pa.NativeFile, schema: pa.Schema) -> pq.ParquetWriter:
        names = schema.names
        split = [name for name in names if name in self._split]
        encodings = dict.fromkeys(split, "BYTE_STREAM_SPLIT")
        encodings |= {name: "DELTA_BINARY_PACKED" for name in names if name in ASCENDING}
        texts = [field.name for field in schema if pa.types.is_dictionary(field.type)]
        writer = pq.ParquetWriter(
            sink, schema,
            compression={name: "zstd" if name in split else "lz4" for name in names},
            compression_level={name: -1 for name in split},
            use_dictionary=texts or False,
            column_encoding=encodings or None,
            write_statistics=[name for name in names if name in self._pruned],
            data_page_size=1 << 24,
            write_batch_size=1 << 16,
            store_schema=False,  # text is text to every reader, however we hand it over
            write_page_checksum=True,
        )  # fmt: skip
        writer.add_key_value_metadata(self._notes)
        return writer


_lock = threading.Lock()
_chunks: OrderedDict[tuple[bool, Hashable], Chunk] = OrderedDict()


def content_of(column: Any) -> Hashable | None:
    """What stands for the content of a column that may repeat: of a read-only array its memory, of
    runs their values. None for others."""
    if isinstance(column, Runs):
        return column.values.tobytes(), column.values.dtype.char, column.times
    if isinstance(column, np.ndarray) and not column.flags.writeable:
        base = column.base
        if base is None or (isinstance(base, np.ndarray) and not base.flags.writeable):
            return column.__array_interface__["data"][0], column.dtype.char, len(column)
    return None
