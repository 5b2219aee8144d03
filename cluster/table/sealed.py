"""Parquet that is read only as it was written: every row group, every footer against the ledger.

The ledger holds for each file a check of its footer and one of each row group: the first 8 bytes of
the SHA-256 of the bytes from the row group's first to the next one's first (the first one's begin
at byte 0). Together they cover every byte, and two row groups that swapped places are found. What
is decoded is the very bytes that were checked; 64 bits of SHA-256 cost 0.6 ns a byte, decoding 3.
(Parquet's own page checksums are there too, for other readers; they do not cover a footer.)
"""

from __future__ import annotations

import base64
import hashlib
import mmap
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from luckbase.cluster.table.lines import FileEntry
from luckbase.cluster.table.storage import Storage
from luckbase.solver.errors import CorruptTableError

_TAIL = 8  # the footer's length and PAR1
_READ = 8 << 20


def _check(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()[:8]


def _footer_size(handle: int, size: int, path: Path) -> int:
    tail = os.pread(handle, _TAIL, max(0, size - _TAIL))
    length = int.from_bytes(tail[:4], "little") + _TAIL
    if tail[4:] != b"PAR1" or length > size:
        raise CorruptTableError(f"{path}: is not Parquet")
    return length


def group_starts(about: Any) -> list[int]:
    """The byte at which each row group of a file begins; 0 for the first."""
    starts = []
    for number in range(about.num_row_groups):
        group = about.row_group(number)
        offsets = [
            offset
            for column in (group.column(i) for i in range(group.num_columns))
            for offset in (column.dictionary_page_offset, column.data_page_offset)
            if offset
        ]
        starts.append(min(offsets))
    return [0, *starts[1:]]


def seal_file(path: Path) -> tuple[int, int, str]:
    """(bytes, bytes of the footer, checks) of a Parquet file, as the ledger keeps them."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        footer = _footer_size(file.fileno(), size, path)
        raw = os.pread(file.fileno(), footer, size - footer)
        starts = group_starts(pq.read_metadata(pa.BufferReader(raw)))
        checks = [_check(raw)]
        for start, stop in zip(starts, [*starts[1:], size - footer], strict=True):
            digest = hashlib.sha256()
            for at in range(start, stop, _READ):
                digest.update(os.pread(file.fileno(), min(_READ, stop - at), at))
            checks.append(digest.digest()[:8])
    return size, footer, base64.b64encode(b"".join(checks)).decode()


class SealedFile:
    """An open Parquet file of a table; one thread at a time. All raises CorruptTableError."""

    def __init__(self, storage: Storage, where: Path, entry: FileEntry, about: Any = None) -> None:
        """where: the table, for people. about: the footer, if it was read before."""
        self.storage, self.path, self.entry = storage, where / entry.name, entry
        self._checks = entry.check_list()
        self.about = self._footer() if about is None else about
        self._starts = [*group_starts(self.about), entry.bytes - entry.footer]
        if len(self._checks) != len(self._starts):
            raise self._changed("its footer")
        # As large as the file and empty: only what was checked is put there, at its place.
        private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        self._space = mmap.mmap(-1, entry.bytes, flags=private)
        source = pa.BufferReader(pa.py_buffer(self._space))
        try:
            self._file = pq.ParquetFile(source, metadata=self.about, read_dictionary=["best"])
        except (OSError, pa.ArrowException) as error:
            raise self._changed(_line(error)) from None

    def _footer(self) -> Any:
        entry = self.entry
        raw = self._read(entry.bytes - entry.footer, entry.bytes)
        if _check(raw) != self._checks[0]:
            raise self._changed("its footer")
        try:
            return pq.read_metadata(pa.BufferReader(raw))
        except (OSError, pa.ArrowException) as error:
            raise self._changed(_line(error)) from None

    def _read(self, start: int, stop: int) -> bytes:
        try:
            return self.storage.read(self.entry.name, start, stop)
        except (FileNotFoundError, NotADirectoryError):
            raise self._changed("it is missing") from None

    def _changed(self, what: str) -> CorruptTableError:
        return CorruptTableError(
            f"{self.path}: is not as luckbase wrote it ({what}); luckbase solve --check of its "
            "board makes it again"
        )

    @property
    def groups(self) -> int:
        """How many row groups there are."""
        return int(self.about.num_row_groups)

    @property
    def names(self) -> list[str]:
        """The columns."""
        return [str(name) for name in self._file.schema_arrow.names]

    def spans(self, group: int) -> dict[str, tuple[Any, Any]]:
        """The least and the greatest value of the columns of a row group that have statistics."""
        about = self.about.row_group(group)
        columns = (about.column(i) for i in range(about.num_columns))
        known = ((c.path_in_schema, c.statistics) for c in columns if c.is_stats_set)
        return {str(name): (s.min, s.max) for name, s in known if s.has_min_max}

    def empty(self) -> Any:
        """No rows, as a pyarrow table."""
        return self._file.schema_arrow.empty_table()

    def check(self, group: int) -> bytes:
        """The bytes of a row group, checked."""
        start, stop = self._starts[group : group + 2]
        content = self._read(start, stop)
        if _check(content) != self._checks[1 + group]:
            raise self._changed(f"row group {group + 1} of {self.groups}")
        return content

    def read(self, group: int, columns: Sequence[str]) -> Any:
        """Columns of a row group, checked, as a pyarrow table in the order asked for."""
        return self.read_all([group], columns)

    def read_all(self, groups: Sequence[int], columns: Sequence[str]) -> Any:
        """The same of several row groups behind one another."""
        try:
            for group in groups:
                self._space[slice(*self._starts[group : group + 2])] = self.check(group)
            return self._file.read_row_groups(
                list(groups), columns=list(columns), use_threads=False
            )
        except (OSError, pa.ArrowException, IndexError) as error:
            raise self._changed(_line(error)) from None
        finally:
            for group in groups:
                self._empty(*self._starts[group : group + 2])

    def _empty(self, start: int, stop: int) -> None:
        """Give the pages that lie between back to the system."""
        first, last = -(-start // mmap.PAGESIZE), stop // mmap.PAGESIZE
        if last > first and hasattr(mmap, "MADV_DONTNEED"):
            size = (last - first) * mmap.PAGESIZE
            self._space.madvise(mmap.MADV_DONTNEED, first * mmap.PAGESIZE, size)

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:100]


def row_groups(
    storage: Storage, table: Path, entries: Iterable[FileEntry], columns: Sequence[str]
) -> Iterator[Any]:
    """Columns of files, one row group after the other, as `SealedFile.read`."""
    for entry in entries:
        with closing(SealedFile(storage, table, entry)) as file:
            for group in range(file.groups):
                yield file.read(group, columns)
