"""Parquet files of a table: their columns, how they are written, and read only as written.

docs/reference/table-format.md has their names and columns, for the full table (``tiers/``) and for
searches (``search/``). A tier of more than `FILE_ROWS` rows is cut in files as equal as its blocks
allow, one that its game solves in parts (`Layout.parts`) in these: several cores write at once, and
the bytes hang on the board alone. Row groups hold a multiple of the game's block, some 32 k rows.
Measured on a $500 tier of 3.9 M rows (`python -m tests.bench store`): the three payoffs as
byte-stream-split with zstd level -1 take 4.2 bytes a row (plain lz4 5.2, plain zstd 4.5, pyarrow's
defaults 8.9 and twice the time); the state columns written plain with lz4 take 0.24 bytes and 17 ns
a row (dictionary with zstd 0.10 bytes and 52 ns), the constant columns 0.09 bytes and 6 ns: those
that repeat are coded once (`parquet`). `best` takes 0.03 bytes and 5 ns. Statistics are kept for
the constant columns and the first two others, which engines prune by; for more they cost more time
than they save.

**Sealed.** The ledger holds for each file a check of its footer and one of each row group, 8 bytes
of the SHA-256. Together they cover every byte, and two row groups that swapped places are found.
What is decoded is the very bytes that were checked; that costs 0.6 ns a byte, decoding 3.

Between numpy's arrays and Arrow's columns nothing is copied that need not be. pyarrow's own ways
(`pa.array`, `to_numpy`) import pandas first, where it is installed, to see whether they are handed
something of it: half as long as all else that an answer takes.
"""

from __future__ import annotations

import base64
import hashlib
import mmap
import os
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import cached_property, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from luckbase.cluster.table import FILE_FORMAT
from luckbase.cluster.table.ledger import KEY_SHIFT, TIERS, FileEntry, solver_version
from luckbase.cluster.table.parquet import Writer
from luckbase.cluster.table.storage import PARALLEL, Storage, forget, in_threads
from luckbase.solver.errors import CorruptTableError
from luckbase.solver.game.arrays import Coded, Decisions, Floats, Ints, Runs
from luckbase.solver.game.capabilities import Layout, rounding
from luckbase.solver.game.game import Game

Span = tuple[int, int]
"""The first byte, and the one behind the last."""
_TAIL = 8  # the footer's length and PAR1
_READ = 8 << 20
AHEAD = 64
"""Row groups that are read at once where all of a file are read: some 10 MB."""


FILE_ROWS = 1 << 24
"""Rows that a file of a full table has at most, about: some 80 MB, 1.4 s of one core."""
ROW_GROUP = 32_768
"""Rows in a row group, about; a lookup decodes one: 0.5 ms."""


class Written(NamedTuple):
    """A file that a worker wrote to a temporary place: its line in the ledger, but for what it took
    to solve, and the place."""

    entry: FileEntry
    path: Path


def tier_stem(layout: Layout[Any], tier: Any) -> str:
    """The name of a tier's files without folder and ending."""
    return ".".join(f"{name}-{value}" for name, value in layout.tier_fields(tier).items()) or "all"


class TierFile(NamedTuple):
    """A file of the full table: its name; the part of the tier (`Layout.parts`) and the rows of it
    [start, stop), counted from the part's first, which is row `first` of the tier."""

    name: str
    part: int
    start: int
    stop: int
    first: int = 0

    @property
    def rows(self) -> tuple[int, int]:
        """[start, stop), counted from the tier's first row."""
        return self.first + self.start, self.first + self.stop

    def keys(self, tier_number: int) -> tuple[int, int]:
        """Its first and its last key."""
        return key_range(tier_number, self.stop - self.start, self.first + self.start)


def tier_files(layout: Layout[Any], tier: Any) -> list[TierFile]:
    """The files of a tier, in the order of their rows (module docstring)."""
    stem, parts = tier_stem(layout, tier), layout.parts(tier)
    if len(parts) > 1:
        return [
            TierFile(f"{TIERS}/{stem}.{k:03d}.parquet", k, 0, stop - start, start)
            for k, (start, stop) in enumerate(parts)
        ]
    rows, block = layout.rows(tier), layout.block_rows(tier)
    count = max(1, min(-(-rows // FILE_ROWS), rows // block))
    if count == 1:
        return [TierFile(f"{TIERS}/{stem}.parquet", 0, 0, rows)]
    ends = [rows // block * k // count * block for k in range(count)] + [rows]
    return [
        TierFile(f"{TIERS}/{stem}.{k:03d}.parquet", 0, start, stop)
        for k, (start, stop) in enumerate(pairwise(ends))
    ]


def row_group_rows(layout: Layout[Any], tier: Any) -> int:
    """Rows of every row group of the tier but the last: a multiple of the game's block."""
    block = layout.block_rows(tier)
    return max(1, ROW_GROUP // block) * block


def key_range(tier_number: int, rows: int, start: int = 0) -> tuple[int, int]:
    """The first and the last key of `rows` rows of a tier, from row `start` on."""
    first = (tier_number << KEY_SHIFT) + start
    return first, first + rows - 1


# --- written ---


def write_tier(
    storage: Storage, layout: Layout[Any], tier: Any, file: TierFile, payoffs: Floats,
    decisions: Decisions, error: float,
) -> Written:  # fmt: skip
    """Write a file of a tier to a temporary place, flush it and read it back; `payoffs` and
    `decisions` of its part as the kernel left them, the payoffs within `error` of the exact ones.

    Raises OSError where the disk does.
    """
    names, constant = payoff_columns(layout.game), layout.tier_fields(tier)

    def columns(start: int, stop: int) -> dict[str, Any]:
        start, stop = file.start + start, file.start + stop
        values = zip(names, layout.payoff_rows(tier, payoffs, start, stop), strict=True)
        span, best = (file.first + start, file.first + stop), decisions.best[start:stop]
        return tier_columns(layout, tier, span, best, dict(values))

    others = [name for name in layout.game.columns if name not in constant][:2]
    error += rounding(layout)
    metadata = file_metadata(layout.game, ".".join(f"{k}-{v}" for k, v in constant.items()), error)
    size, number = (file.stop - file.start, row_group_rows(layout, tier)), layout.tier_number(tier)
    entry = new_entry(file.name, number, size, file.keys(number), error)
    return write_file(storage, entry, metadata, columns, names, [*constant, *others])


def tier_columns(
    layout: Layout[Any], tier: Any, span: tuple[int, int], best: NDArray[Any],
    payoffs: Mapping[str, Any] = {},
) -> dict[str, Any]:  # fmt: skip
    """The columns of rows [start, stop) of a tier; best, payoffs: of these."""
    columns: dict[str, Any] = constants(layout.tier_fields(tier), len(best))
    columns |= layout.state_rows(tier, *span)
    columns |= payoffs
    columns["best"] = names_column(best, layout.best_names)
    columns["to_act"] = layout.acting_rows(tier, *span)
    return columns


def write_file(
    storage: Storage, entry: FileEntry, metadata: dict[str, str],
    columns: Callable[[int, int], dict[str, Any]], split: list[str], pruned: list[str],
) -> Written:  # fmt: skip
    """Write the file of a `new_entry`, on the disk, read back, sealed; the system forgets it.
    metadata: its own. split: columns of floats that are byte-stream-split; pruned: those with
    statistics."""
    rows, group = entry.rows, entry.row_group_rows
    started = time.perf_counter()
    path = storage.temporary(entry.name)
    writer = Writer(path, metadata, split, pruned, _column)
    try:
        for start in range(0, max(rows, 1), group):
            writer.write(columns(start, min(start + group, rows)))
    finally:
        writer.close()
    return sealed(entry, path, flush_and_seal(path, writer.starts), started)


def file_metadata(game: Game, tier: str, error: float) -> dict[str, str]:
    """The key-value metadata of a Parquet file: what it is, should it be found alone."""
    return {
        "luckbase.format": FILE_FORMAT,
        "luckbase.game": game.board.game,
        "luckbase.tier": tier,
        "luckbase.payoff_error": repr(float(error)),
    }


def new_entry(
    name: str, tier: int, size: tuple[int, int], keys: tuple[int, int], error: float,
    **of_stages: Any,
) -> FileEntry:  # fmt: skip
    """Return the ledger's line of a file before it is written.

    size: rows, and rows a group; keys: the first and the last; of_stages: its `stages`, `boxes`.
    """
    return FileEntry(
        name, name.partition("/")[0], tier, *size, *keys, 0, 0, "", float(error), {},
        solver_version(), **of_stages,
    )  # fmt: skip


def sealed(entry: FileEntry, path: Path, seal: tuple[int, int, str], started: float) -> Written:
    """The same once it is written, with what `seal_file` says of it. started: by the clock."""
    length, footer, checks = seal
    seconds = {"write": round(time.perf_counter() - started, 3)}
    new = replace(entry, bytes=length, footer=footer, checks=checks, seconds=seconds)
    return Written(new, path)


def put_file(storage: Storage, at: str, file: Written) -> FileEntry:
    """Put a file that was written in its place; its line, which says where it is. None is ever
    overwritten: one of the same bytes is taken for it, beside one of others it gets a name of its
    own."""
    if storage.put_if_absent(at, file.path):
        return file.entry.placed(at)
    own_hash = hashlib.sha256(file.entry.checks.encode()).hexdigest()[:12]
    stem, _, ending = at.rpartition(".")
    at = f"{stem}.{own_hash}.{ending}"
    if not storage.put_if_absent(at, file.path):
        raise CorruptTableError(f"{at}: is not as luckbase wrote it; remove it, then again")
    return file.entry.placed(at)


# --- sealed, and read ---


def _check(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()[:8]


def group_starts(metadata: Any) -> list[int]:
    """The byte at which each row group of a file begins; 0 for the first."""
    starts = [0]
    for number in range(1, metadata.num_row_groups):
        group = metadata.row_group(number)
        columns = [group.column(i) for i in range(group.num_columns)]
        pages = [(c.dictionary_page_offset, c.data_page_offset) for c in columns]
        starts.append(min(offset for offsets in pages for offset in offsets if offset))
    return starts[: metadata.num_row_groups]


def seal_file(path: Path, starts: Sequence[int] = ()) -> tuple[int, int, str]:
    """(bytes, bytes of the footer, checks) of a Parquet file, as the ledger keeps them. starts:
    `group_starts`, if known."""
    with path.open("rb") as file:
        handle, size = file.fileno(), os.fstat(file.fileno()).st_size
        tail = os.pread(handle, _TAIL, max(0, size - _TAIL))
        footer = int.from_bytes(tail[:4], "little") + _TAIL
        if tail[4:] != b"PAR1" or footer > size:
            raise CorruptTableError(f"{path}: is not Parquet")
        raw = os.pread(handle, footer, size - footer)
        starts = starts or group_starts(pq.read_metadata(pa.BufferReader(raw)))
        checks = [_check(raw)]
        for start, stop in zip(starts, [*starts[1:], size - footer], strict=True):
            digest = hashlib.sha256()
            for at in range(start, stop, _READ):
                digest.update(os.pread(handle, min(_READ, stop - at), at))
            checks.append(digest.digest()[:8])
    return size, footer, base64.b64encode(b"".join(checks)).decode()


def flush_and_seal(path: Path, starts: Sequence[int] = ()) -> tuple[int, int, str]:
    """`seal_file` of a file that was just written: it is on the disk then, and read back."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
    sealed = seal_file(path, starts)
    forget(path)  # written far faster than read: more memory for it, each time, costs a fifth
    return sealed


class SealedFile:
    """An open Parquet file of a table; one thread at a time. All raises CorruptTableError."""

    def __init__(
        self, storage: Storage, where: Path, entry: FileEntry, metadata: Any = None,
        raw: bytes | None = None,
    ) -> None:  # fmt: skip
        """where: the table, for people. metadata: the footer, if it was read; raw: its bytes,
        if those were."""
        self.storage, self.path, self.entry = storage, where / entry.place, entry
        self.buffers: dict[Span, bytes] = {}
        """Bytes that were read and will be asked for."""
        self.checked: set[int] = set()
        """Row groups whose bytes were read and are as they were written."""
        raw_checks = base64.b64decode(entry.checks, validate=True)
        self._checks = [raw_checks[i : i + 8] for i in range(0, len(raw_checks), 8)]
        self._open(metadata, raw)
        if len(self._checks) != len(self._starts):
            raise self._changed("its footer")

    def _footer(self, raw: bytes | None) -> bytes:
        """Its footer, checked; raw: if it was read before."""
        raw = raw or self._read(self.entry.bytes - self.entry.footer, self.entry.bytes)
        if _check(raw) != self._checks[0]:
            raise self._changed("its footer")
        return raw

    def _open(self, metadata: Any, raw: bytes | None) -> None:
        """Set `metadata`, and where its row groups begin and the last one ends."""
        entry = self.entry
        # As large as the file and empty: only what was checked is put there, at its place.
        private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        self._space = mmap.mmap(-1, entry.bytes, flags=private)
        try:
            if metadata is None:
                metadata = pq.read_metadata(pa.BufferReader(self._footer(raw)))
            source = pa.BufferReader(pa.py_buffer(self._space))
            self._file = pq.ParquetFile(source, metadata=metadata, read_dictionary=["best"])
        except (OSError, pa.ArrowException) as error:
            raise self._changed(_line(error)) from None
        self.metadata = metadata
        self._starts = [*group_starts(metadata), entry.bytes - entry.footer]

    def _read(self, start: int, stop: int) -> bytes:
        content = self.buffers.get((start, stop))
        return self._read_ranges([(start, stop)])[0] if content is None else content

    def _read_ranges(self, spans: list[Span]) -> list[bytes]:
        try:
            return self.storage.read_ranges(self.entry.place, spans) if spans else []
        except (FileNotFoundError, NotADirectoryError):
            raise self._changed("it is missing") from None
        except CorruptTableError as error:  # fewer bytes than there should be
            raise self._changed(f"it {str(error).rpartition(': ')[2]}") from None

    def _changed(self, what: str) -> CorruptTableError:
        again = "delete it, and luckbase solve of its board makes it again"
        if not self.storage.lists:
            again = "its server has changed it; publish the table there again"
        return CorruptTableError(f"{self.path}: is not as luckbase wrote it ({what}); {again}")

    @property
    def groups(self) -> int:
        """How many row groups there are."""
        return len(self._starts) - 1

    def bytes_of(self, group: int) -> Span:
        """Where the bytes of a row group begin and end."""
        return self._starts[group], self._starts[group + 1]

    def fetch(self, groups: Iterable[int]) -> None:
        """Read row groups into `buffers`, in few requests; `check` verifies them."""
        spans = [self.bytes_of(group) for group in groups]
        spans = [span for span in spans if span not in self.buffers]
        self.buffers.update(zip(spans, self._read_ranges(spans), strict=True))

    def ahead(self, groups: Sequence[int]) -> Iterator[int]:
        """These row groups, one after the other, read many at a time where requests take a while;
        no others are asked for meanwhile."""
        for at, group in enumerate(groups):
            if self.storage.anywhere and at % AHEAD == 0:
                if self.buffered_bytes > MAX_FETCHED:
                    self.buffers.clear()
                self.fetch(groups[at : at + AHEAD])
            yield group

    @property
    def buffered_bytes(self) -> int:
        """How many bytes are kept that were read."""
        return sum(map(len, self.buffers.values()))

    def spans(self, group: int) -> dict[str, tuple[Any, Any]]:
        """The least and the greatest value of the columns of a row group that have statistics."""
        row_group = self.metadata.row_group(group)
        columns = (row_group.column(i) for i in range(row_group.num_columns))
        statistics = ((c.path_in_schema, c.statistics) for c in columns if c.is_stats_set)
        return {str(name): (s.min, s.max) for name, s in statistics if s.has_min_max}

    @property
    def schema(self) -> Any:
        """The columns and their types."""
        return self._file.schema_arrow

    def check(self, group: int) -> bytes:
        """The bytes of a row group, checked."""
        content = self._read(*self.bytes_of(group))
        if _check(content) != self._checks[1 + group]:
            raise self._changed(f"row group {group + 1} of {self.groups}")
        self.checked.add(group)
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
        finally:  # the pages that lie between go back to the system
            for start, stop in map(self.bytes_of, groups):
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
            for group in file.ahead(range(file.groups)):
                yield file.read(group, columns)


CACHED_BYTES = 640 << 20
"""Of decoded row groups that a part remembers, 0.1 to 2 MB each: the payoffs of 50 million states
of three players. A question that needs more at once reads them and remembers none."""
MAX_FETCHED = 128 << 20
"""Bytes of a store's row groups that are kept for the next question."""
GROUPS_A_JOB = 32
"""Row groups that a thread decodes at a time."""


class Kept:
    """Row groups of one kind behind one another in one array, `rows`, so that rows of many are
    looked up at once; those that were read first make room. starts: int64, where each row group of
    the files begins, counted over all of them; -1 where it is not there."""

    def __init__(self, groups: int, rows: NDArray[Any]) -> None:
        self.rows, self.starts = rows, np.full(groups, -1, np.int64)
        self._end, self._order = 0, deque[tuple[int, int, Any]]()

    def put(self, group: int, key: Any, rows: NDArray[Any]) -> tuple[NDArray[Any], list[Any]]:
        """Keep a row group; returns it as it is kept, and the keys of those that are not any more.
        Places count on from round to round."""
        size, gone = len(self.rows), list[Any]()
        if self._end % size + len(rows) > size:
            self._end += size - self._end % size
        self._order.append((self._end, group, key))
        self.starts[group] = at = self._end % size
        self._end += len(rows)
        while self._order[0][0] < self._end - size:
            _, first, key = self._order.popleft()
            self.starts[first] = -1
            gone.append(key)
        self.rows[at : at + len(rows)] = rows
        return self.rows[at : at + len(rows)], gone


class RowGroups:
    """Files of a table, opened once, and their decoded row groups that were read lately; one
    thread at a time."""

    def __init__(
        self, storage: Storage, where: Path, entries: list[FileEntry],
        decode: Callable[[Any, int, str], Any], footers: Mapping[str, bytes] = {},
        sealed: type[SealedFile] = SealedFile,
    ) -> None:  # fmt: skip
        """decode(file, number, kind): a row group in the form that answers a kind of question, an
        array or a mapping of some. footers: of files, by name, that were read already."""
        self.storage, self.where, self.entries, self.decode = storage, where, entries, decode
        self.footers, self.sealed = footers, sealed
        self.max_bytes, self.bytes = CACHED_BYTES, 0
        self._files: dict[int, SealedFile] = {}
        self._groups: OrderedDict[tuple[int, int, str], Any] = OrderedDict()
        self.kept: dict[str, Kept] = {}
        """Of each kind that is decoded as an array: those that are remembered."""

    @cached_property
    def firsts(self) -> Ints:
        """Of each file, and behind the last: how many row groups those before it have."""
        counts = [-(-entry.rows // max(1, entry.row_group_rows)) for entry in self.entries]
        return np.cumsum([0, *counts])

    def close(self) -> None:
        """Close the files and forget what was decoded."""
        for file in self._files.values():
            file.close()
        self._files.clear()
        self._groups.clear()
        self.kept.clear()
        self.bytes = 0

    def file(self, i: int) -> SealedFile:
        """The open file number i."""
        if i not in self._files:
            self._files[i] = self.open_file(self.entries[i])
        return self._files[i]

    def open_file(self, entry: FileEntry) -> SealedFile:
        """A file, by its footer where that was read already."""
        return self.sealed(self.storage, self.where, entry, raw=self.footers.get(entry.name))

    @contextmanager
    def passing(self, entry: FileEntry) -> Iterator[SealedFile]:
        """A file, to go through its rows; of a store the one that questions are answered from, so
        that neither asks for what the other has read."""
        if self.storage.anywhere:
            self._make_room()
            yield self.file(self.entries.index(entry))
        else:
            with closing(self.open_file(entry)) as file:
                yield file

    def _make_room(self) -> None:
        if sum(file.buffered_bytes for file in self._files.values()) > MAX_FETCHED:
            for file in self._files.values():
                file.buffers.clear()

    def fetch(self, groups: Iterable[tuple[int, int]]) -> None:
        """Read row groups (file, number) that will be asked for, and the footers of their files, in
        parallel; nothing of a folder, where that saves nothing."""
        if not self.storage.anywhere:
            return
        by_file: dict[int, list[int]] = {}
        for i, number in groups:
            by_file.setdefault(i, []).append(number)
        self._make_room()

        def fetch(i: int) -> None:
            file = self._files.get(i) or self.open_file(self.entries[i])
            self._files[i] = file
            file.fetch(by_file[i])

        list(in_threads(fetch, by_file, PARALLEL))

    def reopen(self, i: int) -> SealedFile:
        """File number i once more, for a thread of its own."""
        file = self.sealed(self.storage, self.where, self.entries[i], self.file(i).metadata)
        file.buffers, file.checked = dict(self.file(i).buffers), self.file(i).checked
        return file

    @property
    def checked(self) -> dict[str, set[int]]:
        """Of files, by name, the row groups that were read whole (`SealedFile.checked`)."""
        return {self.entries[i].name: file.checked for i, file in self._files.items()}

    def get(self, i: int, number: int, kind: str) -> Any:
        """A row group of file i, decoded."""
        key = (i, number, kind)
        if (group := self._groups.get(key)) is None:
            self._keep(key, group := self.decode(self.file(i), number, kind))
        else:
            self._groups.move_to_end(key)
        return group

    def _keep(self, key: tuple[int, int, str], decoded: Any) -> None:
        gone, size = list[tuple[int, int, str]](), size_of(decoded)
        if isinstance(decoded, np.ndarray):
            kept = self.kept.get(key[2]) or self._room(key[2], decoded)
            if len(decoded) > len(kept.rows):
                return
            decoded, gone = kept.put(int(self.firsts[key[0]]) + key[1], key, decoded)
        self._groups[key] = decoded
        self.bytes += size
        for each in gone:
            if (last := self._groups.pop(each, None)) is not None:  # else it had to go before
                self.bytes -= size_of(last)
        while self.bytes > self.max_bytes and len(self._groups) > 1:
            self.bytes -= size_of(self._groups.popitem(last=False)[1])

    def _room(self, kind: str, like: NDArray[Any]) -> Kept:
        """Room for row groups of a kind: all of them, or three quarters of what is left."""
        left = self.max_bytes - sum(each.rows.nbytes for each in self.kept.values())
        rows = min(sum(e.rows for e in self.entries), left * 3 // 4 // max(1, like[:1].nbytes))
        array = np.empty((max(rows, 1), *like.shape[1:]), like.dtype)
        self.kept[kind] = Kept(int(self.firsts[-1]), array)
        return self.kept[kind]

    def each(
        self, groups: Sequence[tuple[int, int]], kind: str, use: Callable[[int, Any], None]
    ) -> None:
        """use(k, decoded) for each row group groups[k] (file, number), in any order; where many are
        not remembered on all cores, and where they have no room together none is remembered."""
        missing = [k for k, key in enumerate(groups) if (*key, kind) not in self._groups]
        later = missing[1:] if len(missing) > GROUPS_A_JOB else []
        files = [self.entries[groups[k][0]] for k in missing]
        stored = sum(e.bytes * min(1.0, e.row_group_rows / max(1, e.rows)) for e in files)
        few = stored <= MAX_FETCHED
        self.fetch(groups[k] for k in (missing if few else missing[:1]))
        for k in sorted({*range(len(groups))} - {*later}) if later else range(len(groups)):
            i, number = groups[k]
            use(k, self.get(i, number, kind))
        if not later:
            return
        i, number = groups[missing[0]]
        size = size_of(self.get(i, number, kind)) * len(missing)
        remembered = size <= self.max_bytes

        def decode(share: Sequence[int]) -> list[tuple[int, Any]]:
            files = {i: self.reopen(i) for i in {groups[k][0] for k in share}}
            decoded = []
            for i, file in files.items() if self.storage.anywhere else ():
                file.fetch(groups[k][1] for k in share if groups[k][0] == i)
            for k in share:
                i, number = groups[k]
                group = self.decode(files[i], number, kind)
                use(k, group)
                decoded += [(k, group)] if remembered else []
            for file in files.values():
                file.close()
            return decoded

        # All where they may be asked for again, else one of each file.
        first = dict((groups[k][0], groups[k]) for k in later).values()
        self.fetch([groups[k] for k in later] if size <= MAX_FETCHED else first)
        for i in {groups[k][0] for k in later}:
            self.file(i)  # opened by one thread
        shares = [later[k : k + GROUPS_A_JOB] for k in range(0, len(later), GROUPS_A_JOB)]
        from luckbase.cluster.machine import cores

        for decoded in in_threads(decode, shares, PARALLEL if self.storage.anywhere else cores()):
            for k, group in decoded:
                self._keep((*groups[k], kind), group)


def size_of(decoded: Any) -> int:
    """Bytes of a decoded row group."""
    columns = [decoded] if isinstance(decoded, np.ndarray) else decoded.values()
    return sum(column.nbytes for column in columns if isinstance(column, np.ndarray))


# --- between numpy and Arrow ---


def payoff_columns(game: Game) -> list[str]:
    """``payoff_1``, … in turn order."""
    return [f"payoff_{i + 1}" for i in range(game.players)]


def numbers_of(column: Any, missing: float = np.nan) -> NDArray[Any]:
    """The numbers (n,) of a column, or of a chunk of one; missing: instead of null. They may not be
    written to where they are the column's own memory."""
    parts = []
    for chunk in [column] if isinstance(column, pa.Array) else column.chunks:
        parts.append(_filled(chunk, missing) if chunk.null_count else np.from_dlpack(chunk))
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts) if parts else np.empty(0, column.type.to_pandas_dtype())


def _filled(chunk: pa.Array, missing: float) -> NDArray[Any]:
    """The numbers of a chunk with nulls. (`pyarrow.compute` takes a tenth of a query to import.)"""
    validity, content = chunk.buffers()
    plain = pa.Array.from_buffers(chunk.type, len(chunk), [None, content], offset=chunk.offset)
    stop = chunk.offset + len(chunk)
    bits = np.unpackbits(np.frombuffer(validity, np.uint8), count=stop, bitorder="little")
    filled = np.from_dlpack(plain).copy()
    filled[bits[chunk.offset :] == 0] = missing
    return filled


def number_rows(table: Any, names: Sequence[str]) -> NDArray[Any]:
    """The numbers (n, k) of these columns of a table, row by row."""
    return np.stack([numbers_of(table.column(name)) for name in names], axis=1)


def column_of(values: NDArray[Any], nulls: NDArray[np.bool_] | None = None) -> pa.Array:
    """A column of numbers, or of truth values; nulls: which of them are null."""
    flat = np.ascontiguousarray(values)
    content = np.packbits(flat, bitorder="little") if flat.dtype.kind == "b" else flat
    validity = None
    if nulls is not None and nulls.any():
        validity = pa.py_buffer(np.packbits(~nulls, bitorder="little"))
    kind = pa.from_numpy_dtype(flat.dtype)
    return pa.Array.from_buffers(kind, len(flat), [validity, pa.py_buffer(content)])


def nullable(values: Floats) -> pa.Array:
    """A column of float64 numbers; NaN is null."""
    return column_of(np.asarray(values, np.float64), np.isnan(values))


def labelled(column: Any) -> tuple[NDArray[np.int16], tuple[str, ...]]:
    """(codes (n,), -1 for null; labels) of a column of names, read dictionary-coded."""
    array = column.combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = array.chunk(0)
    codes = numbers_of(array.indices, -1).astype(np.int16)
    return codes, tuple(str(name) for name in array.dictionary.to_pylist())


@lru_cache(maxsize=64)
def texts_of(texts: tuple[str, ...]) -> pa.Array:
    """A column of texts. Those of a game's actions are made for every row group."""
    return bytes_of([text.encode() for text in texts]).cast(pa.string())


def bytes_of(contents: Sequence[bytes]) -> pa.Array:
    """A column of bytes."""
    ends = np.cumsum([0, *map(len, contents)], dtype=np.int64)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(contents))]
    return pa.Array.from_buffers(pa.large_binary(), len(contents), buffers)


def lists_of(arrays: Sequence[NDArray[Any]], kind: Any) -> pa.Array:
    """A column of lists of numbers of this type."""
    ends = np.cumsum([0, *map(len, arrays)], dtype=np.int64)
    numbers = arrays[0] if len(arrays) == 1 else np.concatenate([np.empty(0, kind), *arrays])
    return pa.LargeListArray.from_arrays(
        column_of(ends), column_of(numbers.astype(kind, copy=False))
    )


def constants(fields: Mapping[str, int], rows: int) -> dict[str, Runs]:
    """The columns that are constant in a tier."""
    return {name: Runs(np.array([value], np.int32), rows) for name, value in fields.items()}


def as_table(columns: dict[str, Any]) -> pa.Table:
    """Columns as pyarrow has them."""
    arrays = [_column(column) for column in columns.values()]
    return pa.Table.from_arrays(arrays, names=list(columns))


def names_column(codes: NDArray[Any], labels: Sequence[str]) -> pa.Array:
    """A column of names, dictionary-coded; null where the code is below 0."""
    index = column_of(codes, codes < 0)
    return pa.DictionaryArray.from_arrays(index, texts_of(tuple(labels)), safe=False)


def _column(column: Any) -> pa.Array:
    """An array as pyarrow has it; sets as text, dictionary-coded."""
    if isinstance(column, Runs):
        column = np.repeat(column.values, column.times)
    if isinstance(column, Coded):
        return pa.DictionaryArray.from_arrays(
            column_of(column.codes), texts_of(tuple(column.labels))
        )
    return column if isinstance(column, pa.Array) else column_of(column)
