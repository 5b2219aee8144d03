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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from luckbase.cluster.store.manifest import FileEntry, file_error, file_errors
from luckbase.cluster.store.storage import PARALLEL, Storage, in_threads
from luckbase.solver.errors import CorruptTableError

BUFFER = 4 << 20
"""Bytes collected for a write: pyarrow writes a row group in about 70 pieces."""
CHECKS = "luckbase.row_groups"
"""The key of a footer's metadata with the start and the CRC-32 of each row group."""
AHEAD = 64
"""Number of row groups read from a store at once if a file is read from end to end: about 10 MB."""
CACHED_BYTES = 640 << 20
"""Bytes of decoded row groups that a part keeps, 0.1 to 2 MB each."""
MAX_FETCHED = 128 << 20
"""Maximum bytes of a store's row groups that are kept for later queries."""
MAX_GROUP_BYTES = 256 << 20
"""Bytes of the columns of a row group before compression; ours have 10 MB or so."""
MAX_TEXT = 1000
"""Maximum bytes of a text: an action's name or a field. A text may be in every row."""
_KINDS: dict[str, Callable[[Any], bool]] = {
    "key": pa.types.is_uint64, "best": pa.types.is_dictionary, "to_act": pa.types.is_int8,
    "margin": pa.types.is_float64,
}  # fmt: skip
"""The types of the columns that are read, except payoffs and the fields of states."""
GROUPS_A_JOB = 32
"""Row groups that a thread decodes at a time."""
Span = tuple[int, int]
"""The first byte, and the end (exclusive)."""


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
    """The bytes of a file that were read and checked, at their positions, for pyarrow."""

    def __init__(self, size: int) -> None:
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
    """An open Parquet file of a table. Not thread-safe. Every method raises CorruptTableError if
    the file is not as it was written."""

    def __init__(
        self, storage: Storage, where: Path, entry: FileEntry, metadata: Any = None
    ) -> None:
        """where: the table's folder or URI, for messages. metadata: the footer, if already read."""
        self.storage, self.path, self.entry = storage, where / entry.place, entry
        self.buffers: dict[Span, bytes] = {}
        """Bytes that were read ahead."""
        self._window, footer = _Window(entry.bytes), entry.bytes - entry.footer
        try:
            if metadata is None:
                raw = self._read(footer, entry.bytes)
                if hashlib.sha256(raw).hexdigest() != entry.footer_sha256:
                    raise self._changed("its footer")
                metadata = pq.read_metadata(pa.BufferReader(raw))
            columns = map(metadata.schema.column, range(metadata.num_columns))
            texts = [each.name for each in columns if each.physical_type == "BYTE_ARRAY"]
            self._file = pq.ParquetFile(
                self._window, metadata=metadata, read_dictionary=texts, pre_buffer=False
            )
            starts, self._checks = zip(*json.loads(metadata.metadata[CHECKS.encode()]), strict=True)
        except (
            OSError, pa.ArrowException, ValueError, KeyError, TypeError, RecursionError,
        ) as error:  # fmt: skip
            raise self._changed(_line(error)) from None
        self.metadata = metadata
        self._starts = [*starts, footer]
        self._check_shape()

    def _check_shape(self) -> None:
        """Raise CorruptTableError if the footer does not match the entry's rows and columns."""
        entry, metadata = self.entry, self.metadata
        for column in self._file.schema_arrow:
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
        start, stop = self.bytes_of(number)
        size = max(group.total_byte_size, stop - start, 8 * rows * group.num_columns)
        if group.num_rows != rows or group.total_byte_size < 0 or size > MAX_GROUP_BYTES:
            raise self._changed(f"row group {number + 1} has other rows, or too many bytes")

    def _read(self, start: int, stop: int) -> bytes:
        content = self.buffers.get((start, stop))
        return self._read_ranges([(start, stop)])[0] if content is None else content

    def _read_ranges(self, spans: list[Span]) -> list[bytes]:
        with file_errors(self.storage, self.path):
            return self.storage.read_ranges(self.entry.place, spans) if spans else []

    def _changed(self, why: str) -> CorruptTableError:
        return file_error(self.storage, self.path, why)

    @property
    def groups(self) -> int:
        return len(self._checks)

    def bytes_of(self, group: int) -> Span:
        return self._starts[group], self._starts[group + 1]

    def fetch(self, groups: Iterable[int]) -> None:
        """Read row groups into `buffers`, in few requests; `check` checks them."""
        spans = [self.bytes_of(group) for group in groups]
        spans = [span for span in spans if span not in self.buffers]
        self.buffers.update(zip(spans, self._read_ranges(spans), strict=True))

    def ahead(self, groups: Sequence[int]) -> Iterator[int]:
        """Yield row groups in order, reading ahead from a store. Do not read others meanwhile."""
        for position, group in enumerate(groups):
            if self.storage.anywhere and position % AHEAD == 0:
                if self.buffered_bytes > MAX_FETCHED:
                    self.buffers.clear()
                self.fetch(groups[position : position + AHEAD])
            yield group

    @property
    def buffered_bytes(self) -> int:
        return sum(map(len, self.buffers.values()))

    def spans(self, group: int) -> dict[str, tuple[Any, Any]]:
        """Return the minimum and maximum of each column of a row group with statistics."""
        row_group = self.metadata.row_group(group)
        columns = (row_group.column(i) for i in range(row_group.num_columns))
        statistics = ((c.path_in_schema, c.statistics) for c in columns if c.is_stats_set)
        return {str(name): (s.min, s.max) for name, s in statistics if s.has_min_max}

    @property
    def schema(self) -> Any:
        return self._texts_decoded(self._file.schema_arrow.empty_table()).schema

    def check(self, group: int) -> bytes:
        """Return the bytes of a row group, checked."""
        content = self._read(*self.bytes_of(group))
        if zlib.crc32(content) != self._checks[group]:
            raise self._changed(f"row group {group + 1} of {self.groups}")
        return content

    def read(self, group: int, columns: Sequence[str]) -> Any:
        """Return columns of a row group as a pyarrow table, in this order."""
        try:
            self._check_group(group)
            self._window.start, self._window.content = self._starts[group], self.check(group)
            rows = self._file.read_row_group(group, columns=list(columns), use_threads=False)
            return self._texts_decoded(rows.select(list(columns)))
        except (OSError, pa.ArrowException, LookupError) as error:
            raise self._changed(_line(error)) from None
        finally:
            self._window.content = b""

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

    def close(self) -> None:
        self._file.close()


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
        with closing(TableFile(storage, table, entry)) as file:
            for group in file.ahead(range(file.groups)):
                yield file.read(group, columns)


class RowGroups:
    """Open files of a table and their most recently used decoded row groups. Not thread-safe."""

    def __init__(
        self, storage: Storage, where: Path, entries: list[FileEntry],
        decode: Callable[[Any, int, str], Any],
    ) -> None:  # fmt: skip
        """decode(file, number, kind): returns a row group in the form for a kind of query, as an
        array or a mapping to arrays."""
        self.storage, self.where, self.entries, self.decode = storage, where, entries, decode
        self.max_bytes, self.bytes = CACHED_BYTES, 0
        self._files: dict[int, TableFile] = {}
        self._groups: OrderedDict[tuple[int, int, str], Any] = OrderedDict()

    def close(self) -> None:
        """Close the files and forget the row groups."""
        for file in self._files.values():
            file.close()
        self._files.clear()
        self._groups.clear()
        self.bytes = 0

    def file(self, i: int) -> TableFile:
        if i not in self._files:
            self._files[i] = self._open(self.entries[i])
        return self._files[i]

    def _open(self, entry: FileEntry) -> TableFile:
        return TableFile(self.storage, self.where, entry)

    @contextmanager
    def passing(self, entry: FileEntry) -> Iterator[TableFile]:
        """Open a file to read all its rows. In a store, this is the same file that queries use, so
        that each range is requested once."""
        if self.storage.anywhere:
            self._make_room()
            yield self.file(self.entries.index(entry))
        else:
            with closing(self._open(entry)) as file:
                yield file

    def _make_room(self) -> None:
        if sum(file.buffered_bytes for file in self._files.values()) > MAX_FETCHED:
            for file in self._files.values():
                file.buffers.clear()

    def fetch(self, groups: Iterable[tuple[int, int]]) -> None:
        """Read row groups (file, number) and the footers of their files from a store, in parallel.
        Does nothing for a folder."""
        if not self.storage.anywhere:
            return
        by_file: dict[int, list[int]] = {}
        for i, number in groups:
            by_file.setdefault(i, []).append(number)
        self._make_room()

        def fetch(i: int) -> None:
            file = self._files.get(i) or self._open(self.entries[i])
            self._files[i] = file
            file.fetch(by_file[i])

        list(in_threads(fetch, by_file, PARALLEL))

    def reopen(self, i: int) -> TableFile:
        """Open file number i once more, for another thread."""
        file = TableFile(self.storage, self.where, self.entries[i], self.file(i).metadata)
        file.buffers = dict(self.file(i).buffers)
        return file

    def get(self, i: int, number: int, kind: str) -> Any:
        key = (i, number, kind)
        if key not in self._groups:
            self._keep(key, self.decode(self.file(i), number, kind))
        self._groups.move_to_end(key)
        return self._groups[key]

    def _keep(self, key: tuple[int, int, str], decoded: Any) -> None:
        """Cache a row group, and drop the least recently used ones if there is no room. The last
        one stays, however large."""
        if key not in self._groups:
            self.bytes += size_of(decoded)
        self._groups[key] = decoded
        while self.bytes > self.max_bytes and len(self._groups) > 1:
            self.bytes -= size_of(self._groups.popitem(last=False)[1])

    def each(
        self, groups: Sequence[tuple[int, int]], kind: str, use: Callable[[int, Any], None]
    ) -> None:
        """Call use(k, decoded) for each row group groups[k] (file, number), in any order. Many are
        decoded on all cores."""
        missing: list[int] = []
        for k, key in enumerate(groups):
            if (*key, kind) in self._groups:
                use(k, self.get(*key, kind))
            else:
                missing.append(k)
        if len(missing) <= GROUPS_A_JOB:
            self.fetch(groups[k] for k in missing)
            for k in missing:
                use(k, self.get(*groups[k], kind))
            return
        self.fetch(self._first_fetched([groups[k] for k in missing]))
        for i in {groups[k][0] for k in missing}:
            self.file(i)  # opened by one thread

        def decode(share: list[int]) -> list[Any]:
            decoded = self._decode_apart([groups[k] for k in share], kind)
            for k, group in zip(share, decoded, strict=True):
                use(k, group)
            return decoded

        from luckbase.cluster.machine import cores

        shares = [missing[k : k + GROUPS_A_JOB] for k in range(0, len(missing), GROUPS_A_JOB)]
        threads = PARALLEL if self.storage.anywhere else cores()
        for share, decoded in zip(shares, in_threads(decode, shares, threads), strict=True):
            for k, group in zip(share, decoded, strict=True):
                self._keep((*groups[k], kind), group)

    def _decode_apart(self, groups: Sequence[tuple[int, int]], kind: str) -> list[Any]:
        """Return decoded row groups (file, number), from files reopened for this thread."""
        files = {i: self.reopen(i) for i in {i for i, _ in groups}}
        if self.storage.anywhere:
            for i, file in files.items():
                file.fetch(number for file_number, number in groups if file_number == i)
        decoded = [self.decode(files[i], number, kind) for i, number in groups]
        for file in files.values():
            file.close()
        return decoded

    def _first_fetched(self, groups: list[tuple[int, int]]) -> Iterable[tuple[int, int]]:
        """Return the row groups to read from a store first: all if they fit, or one a file."""
        entries = [self.entries[i] for i, _ in groups]
        stored = sum(e.bytes * min(1.0, e.row_group_rows / max(1, e.rows)) for e in entries)
        return groups if stored <= MAX_FETCHED else {i: (i, n) for i, n in groups}.values()


def size_of(decoded: Any) -> int:
    columns = [decoded] if isinstance(decoded, np.ndarray) else decoded.values()
    return sum(column.nbytes for column in columns if isinstance(column, np.ndarray))
