"""Parquet files of a table: written by pyarrow, and read only as they were written.

The footer's key-value metadata holds the start and the CRC-32 of each row group
(`luckbase.row_groups`). The manifest holds the SHA-256 of the footer, which `TableFile` checks when
it opens a file, and of the whole file, which ``luckbase verify`` checks. So each row group is
checked with a sum that the manifest vouches for, and two row groups that changed places are found.

Parquet's own page checksums are written for other readers. They are not enough for us, because they
do not cover the page headers: a changed byte there makes pyarrow decode byte-stream-split payoffs
as plain numbers, without an error. The CRC-32 of a row group takes .3 ns a byte, decoding it 3 ns.

`RowGroups` keeps the decoded row groups that were used last.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from luckbase.cluster.store.manifest import FileEntry, file_error, file_errors
from luckbase.cluster.store.storage import PARALLEL, Storage, in_threads
from luckbase.solver.errors import CorruptTableError

BUFFER = 4 << 20
"""Bytes collected for a write: pyarrow writes a row group in about 70 pieces."""
CHECKS = "luckbase.row_groups"
"""The key of a footer's metadata with the start and the CRC-32 of each row group."""
CACHED_BYTES = 640 << 20
"""Bytes of decoded row groups that a part keeps, 0.1 to 2 MB each."""
MAX_FETCHED = 128 << 20
"""Maximum bytes of a store's row groups that an open part keeps as they were read."""
MAX_GROUP_BYTES = 256 << 20
"""Bytes of the columns of a row group before compression; ours have 10 MB or so."""
MAX_TEXT = 1000
"""Maximum bytes of a text: an action's name or a field. A text may be in every row."""
_KINDS: dict[str, Callable[[Any], bool]] = {
    "key": pa.types.is_uint64, "best": pa.types.is_dictionary, "to_act": pa.types.is_int8,
    "margin": pa.types.is_float64,
}  # fmt: skip
"""The types of the columns that are read, except payoffs and the fields of states."""
FEW = 32
"""Up to this many row groups in a folder are decoded by one thread."""
Read = Callable[[str, int, int], bytes]
"""read(name, start, stop): returns bytes of an object."""


# --- writing -------------------------------------------------------------------------------------


class Writer:
    """One Parquet file; a context manager. Raises OSError if the disk does."""

    sums: dict[str, Any]
    """The fields `bytes`, `footer`, `footer_sha256` and `sha256` of the file's `FileEntry`, once it
    has closed without an error."""

    def __init__(
        self, path: Path, schema: pa.Schema, notes: Mapping[str, str], **options: Any
    ) -> None:
        """notes: key-value metadata. options: of `pyarrow.parquet.ParquetWriter`."""
        self._notes = dict(notes)
        self._checks: list[tuple[int, int]] = []
        self._sha256, self._end = hashlib.sha256(), 0
        self._file = path.open("w+b", buffering=BUFFER)
        self._writer = pq.ParquetWriter(
            self._file, schema, store_schema=False, write_page_checksum=True, **options
        )

    def write(self, rows: pa.Table) -> None:
        start = self._end
        self._writer.write_table(rows, row_group_size=max(1, len(rows)))
        self._checks.append((start, zlib.crc32(self._written())))

    def _written(self) -> bytes:
        """Return the bytes that were written since the last call."""
        self._file.flush()
        start, self._end = self._end, self._file.tell()
        content = os.pread(self._file.fileno(), self._end - start, start)
        self._sha256.update(content)
        return content

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        with closing(self._file):
            if kind is not None:
                with suppress(Exception):
                    self._writer.close()
                return
            self._writer.add_key_value_metadata({**self._notes, CHECKS: json.dumps(self._checks)})
            self._writer.close()
            footer = self._written()
            os.fsync(self._file.fileno())
            self.sums = {
                "bytes": self._end, "footer": len(footer), "sha256": self._sha256.hexdigest(),
                "footer_sha256": hashlib.sha256(footer).hexdigest(),
            }  # fmt: skip


# --- reading -------------------------------------------------------------------------------------


class _Window(io.RawIOBase):
    """The bytes of a row group, read and checked, at their place in the file, for pyarrow."""

    def __init__(self, size: int) -> None:
        """size: of the file."""
        self.size, self.position = size, 0
        self.start, self.content = 0, b""

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self.position = offset + (0, self.position, self.size)[whence]
        return self.position

    def tell(self) -> int:
        return self.position

    def read(self, size: int = -1) -> Any:
        begin = self.position - self.start
        if not 0 <= begin < len(self.content):
            raise OSError(f"byte {self.position} is in none of its row groups")
        part = memoryview(self.content)[begin : begin + size]
        self.position += len(part)
        return part


class TableFile:
    """A Parquet file of a table, whose footer was read and checked. Threads may share it. Every
    method raises CorruptTableError if the file is not as it was written."""

    def __init__(
        self, storage: Storage, where: Path, entry: FileEntry, read: Read | None = None
    ) -> None:
        """where: the table's folder or URI, for messages. read: instead of `storage.read`."""
        self.storage, self.path, self.entry = storage, where / entry.place, entry
        self._read_span = read or storage.read
        footer = entry.bytes - entry.footer
        try:
            raw = self._read(footer, entry.bytes)
            if hashlib.sha256(raw).hexdigest() != entry.footer_sha256:
                raise self._changed("its footer")
            self.metadata = metadata = pq.read_metadata(pa.BufferReader(raw))
            columns = map(metadata.schema.column, range(metadata.num_columns))
            self._texts = [each.name for each in columns if each.physical_type == "BYTE_ARRAY"]
            self._idle = [self._reader()]
            self._stored = self._idle[0][1].schema_arrow
            starts, self._checks = zip(*json.loads(metadata.metadata[CHECKS.encode()]), strict=True)
        except (
            OSError, pa.ArrowException, ValueError, KeyError, TypeError, RecursionError,
        ) as error:  # fmt: skip
            raise self._changed(_line(error)) from None
        self._starts = [*starts, footer]
        self._check_shape()

    def _reader(self) -> tuple[_Window, Any]:
        """Return a reader for one thread, and its window."""
        window = _Window(self.entry.bytes)
        return window, pq.ParquetFile(
            window, metadata=self.metadata, read_dictionary=self._texts, pre_buffer=False
        )

    @property
    def schema(self) -> Any:
        return self._texts_decoded(self._stored.empty_table()).schema

    def _check_shape(self) -> None:
        """Raise CorruptTableError if the footer does not match the entry's rows and columns."""
        entry, metadata = self.entry, self.metadata
        for column in self._stored:
            payoff = column.name.startswith("payoff_")
            is_kind = _KINDS.get(column.name, pa.types.is_floating if payoff else _is_field)
            if not is_kind(column.type):
                raise self._changed(f"its column {column.name[:40]} has another type")
        groups = max(1, -(-entry.rows // entry.row_group_rows))
        if (metadata.num_rows, metadata.num_row_groups) != (entry.rows, groups):
            raise self._changed("it has other rows than the manifest says")
        all_integers = all(type(number) is int for number in (*self._starts, *self._checks))
        if not all_integers or sorted({0, *self._starts}) != self._starts:
            raise self._changed("its row groups have other places")

    def _check_group(self, number: int) -> None:
        """Raise CorruptTableError if a row group has the wrong rows or is too large for memory."""
        entry, group = self.entry, self.metadata.row_group(number)
        rows = min(entry.row_group_rows, entry.rows - number * entry.row_group_rows)
        size = self._starts[number + 1] - self._starts[number]
        size = max(group.total_byte_size, size, 8 * rows * group.num_columns)
        if group.num_rows != rows or group.total_byte_size < 0 or size > MAX_GROUP_BYTES:
            raise self._changed(f"row group {number + 1} has other rows, or too many bytes")

    def _read(self, start: int, stop: int) -> bytes:
        with file_errors(self.storage, self.path):
            return self._read_span(self.entry.place, start, stop)

    def _changed(self, why: str) -> CorruptTableError:
        return file_error(self.storage, self.path, why)

    @property
    def groups(self) -> int:
        return len(self._checks)

    def spans(self, group: int) -> dict[str, tuple[Any, Any]]:
        """Return the minimum and maximum of each column of a row group with statistics."""
        row_group = self.metadata.row_group(group)
        columns = (row_group.column(i) for i in range(row_group.num_columns))
        statistics = ((c.path_in_schema, c.statistics) for c in columns if c.is_stats_set)
        return {str(name): (s.min, s.max) for name, s in statistics if s.has_min_max}

    def check(self, group: int) -> bytes:
        """Return the bytes of a row group, checked."""
        content = self._read(self._starts[group], self._starts[group + 1])
        if zlib.crc32(content) != self._checks[group]:
            raise self._changed(f"row group {group + 1} of {self.groups}")
        return content

    def read(self, group: int, columns: Sequence[str]) -> Any:
        """Return columns of a row group as a pyarrow table, in this order."""
        try:
            reader = self._idle.pop()
        except IndexError:  # other threads use them all
            reader = self._reader()
        window, file = reader
        try:
            self._check_group(group)
            window.start, window.content = self._starts[group], self.check(group)
            rows = file.read_row_group(group, columns=list(columns), use_threads=False)
            return self._texts_decoded(rows.select(list(columns)))
        except (OSError, pa.ArrowException, LookupError) as error:
            raise self._changed(_line(error)) from None
        finally:
            window.content = b""
            self._idle.append(reader)

    def read_all(self, groups: Iterable[int], columns: Sequence[str]) -> Iterator[Any]:
        """Yield columns of row groups in order, read ahead from a store."""

        def read(group: int) -> Any:
            return self.read(group, columns)

        return in_threads(read, groups, PARALLEL) if self.storage.anywhere else map(read, groups)

    def _texts_decoded(self, rows: Any) -> Any:
        """Return columns with the texts of states decoded. They are read dictionary-encoded,
        because a long text in every row could fill the memory."""
        for i, name in enumerate(rows.column_names):
            column = rows.column(i)
            if not pa.types.is_dictionary(column.type):
                continue
            if any(_longest(chunk.dictionary) > MAX_TEXT for chunk in column.chunks):
                raise self._changed(f"its column {name[:40]} has too long a text")
            if name != "best":
                chunks = [chunk.dictionary_decode() for chunk in column.chunks]
                rows = rows.set_column(i, name, pa.chunked_array(chunks, column.type.value_type))
        return rows


def _is_field(kind: Any) -> bool:
    """True if a column of this type may have a field of states."""
    return bool(
        pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_dictionary(kind)
    )


def _longest(texts: Any) -> int:
    ends = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset :][: len(texts) + 1]
    return int(np.diff(ends).max(initial=0)) if len(texts) else 0


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:100]


def row_groups(
    storage: Storage, table: Path, entries: Iterable[FileEntry], columns: Sequence[str]
) -> Iterator[Any]:
    """Yield columns of the row groups of files, as `TableFile.read` returns them."""
    for entry in entries:
        file = TableFile(storage, table, entry)
        yield from file.read_all(range(file.groups), columns)


Columns = dict[str, NDArray[Any]]
"""Columns of a row group, as arrays."""


class RowGroups:
    """The files of a part of a table, and their most recently used row groups, decoded. Not
    thread-safe."""

    def __init__(
        self, storage: Storage, where: Path, entries: list[FileEntry],
        decode: Callable[[TableFile, int, Set[str]], Columns],
    ) -> None:  # fmt: skip
        """decode(file, number, names): returns at least these columns of a row group. Several
        threads call it at once."""
        self.storage, self.where, self.entries, self.decode = storage, where, entries, decode
        self.max_bytes, self.bytes = CACHED_BYTES, 0
        self._read = kept(storage.read) if storage.anywhere else None
        self._files: dict[int, TableFile] = {}
        self._groups: OrderedDict[tuple[int, int], Columns] = OrderedDict()

    def close(self) -> None:
        """Forget the files and the row groups."""
        self._files.clear()
        self._groups.clear()
        self.bytes = 0

    def open(self, entry: FileEntry) -> TableFile:
        """Return a file to read all its rows. It is not kept, because a large table has many."""
        return TableFile(self.storage, self.where, entry, self._read)

    def file(self, i: int) -> TableFile:
        if i not in self._files:
            self._files[i] = self.open(self.entries[i])
        return self._files[i]

    def get(self, i: int, number: int, names: Set[str]) -> Columns:
        missing = names - self._groups.get((i, number), {}).keys()
        if missing:
            self._keep((i, number), self.decode(self.file(i), number, missing))
        self._groups.move_to_end((i, number))
        return self._groups[i, number]

    def _keep(self, key: tuple[int, int], decoded: Columns) -> None:
        """Cache columns of a row group, and drop the least recently used row groups if there is no
        room. The last one stays, however large."""
        columns = self._groups.pop(key, {})
        self.bytes -= size_of(columns)
        self._groups[key] = columns | decoded
        self.bytes += size_of(self._groups[key])
        while self.bytes > self.max_bytes and len(self._groups) > 1:
            self.bytes -= size_of(self._groups.popitem(last=False)[1])

    def each(
        self, groups: Sequence[tuple[int, int]], names: Set[str],
        use: Callable[[int, Columns], None],
    ) -> None:  # fmt: skip
        """Call use(k, columns) for each row group groups[k] (file, number), in any order, with at
        least these columns. Many are decoded on all cores; from a store, they are read at once."""
        missing = list[int]()
        for k, key in enumerate(groups):
            if names <= self._groups.get(key, {}).keys():
                use(k, self.get(*key, names))
            else:
                missing.append(k)
        if len(missing) <= (1 if self.storage.anywhere else FEW):
            for k in missing:
                use(k, self.get(*groups[k], names))
            return
        from luckbase.cluster.machine import cores

        threads = PARALLEL if self.storage.anywhere else cores()
        for _ in in_threads(self.file, {groups[k][0] for k in missing}, threads):
            pass  # opened once each

        def decode(k: int) -> Columns:
            i, number = groups[k]
            return self.decode(self.file(i), number, names)

        for k, decoded in zip(missing, in_threads(decode, missing, threads), strict=True):
            use(k, decoded)
            self._keep(groups[k], decoded)


def kept(read: Read) -> Read:
    """Return a function that reads from a store and keeps what it has read, up to `MAX_FETCHED`
    bytes: rows of an export are also children of other rows."""
    spans: dict[tuple[str, int, int], bytes] = {}

    def read_once(name: str, start: int, stop: int) -> bytes:
        content = spans.get((name, start, stop))
        if content is None:
            if sum(map(len, spans.values())) > MAX_FETCHED:
                spans.clear()
            content = spans[name, start, stop] = read(name, start, stop)
        return content

    return read_once


def size_of(columns: Columns) -> int:
    return sum(column.nbytes for column in columns.values())
