"""States and answers in files and pipes: CSV, JSON lines and Parquet, by a file's ending.

On a pipe the format is CSV, or JSON lines where the first byte is ``{``; answers go back in the
format of the input.
"""

from __future__ import annotations

import errno
import io
import json
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, cast

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq

from luckbase.cluster.table.storage import attempt
from luckbase.solver.errors import OptionError
from luckbase.solver.sentences import option

FORMATS = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl",
           ".parquet": "parquet"}  # fmt: skip
CHUNK = 10_000
"""Rows that are written as JSON at a time."""


def format_of(name: str) -> str:
    """The format that a file's ending says. Raises OptionError."""
    found = FORMATS.get(Path(name).suffix.lower())
    if found is None:
        raise OptionError(f"{name}: not a format known here; end it in .csv, .jsonl or .parquet")
    return found


def read_rows(source: str) -> tuple[str, pa.Table]:
    """The format and the rows of a file, or of standard input for ``-``. Raises OptionError."""
    try:
        if source == "-":
            data = sys.stdin.buffer.read()
            kind = "jsonl" if data.lstrip()[:1] == b"{" else "csv"
            kind = "parquet" if data[:4] == b"PAR1" else kind
        else:
            kind, data = format_of(source), Path(source).read_bytes()
    except OSError as error:
        raise OptionError(f"{source}: {error.strerror or error}") from None
    return kind, rows_in(data, kind, source)


def rows_in(data: bytes, kind: str, source: str) -> pa.Table:
    """The rows in the bytes of a file of that format. source: the file, for people. Raises
    OptionError."""
    try:
        if kind == "parquet":
            return pq.ParquetFile(pa.BufferReader(data)).read()  # names may repeat
        data.decode()
        read = pa.csv.read_csv if kind == "csv" else pa.json.read_json
        return read(io.BytesIO(data))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise OptionError(f"{source}: line {line} is not text in UTF-8; save it as UTF-8") from None
    except (pa.ArrowException, OSError) as error:
        raise OptionError(f"{source}: {' '.join(str(error).split())[:150].rstrip('.')}") from None


def write_rows(rows: pa.Table, out: str, kind: str) -> None:
    """Write rows to a file, whole or not at all, or to standard output for ``-``.

    Raises OptionError where that can not be.
    """
    if out == "-":
        encode(rows, sys.stdout.buffer, kind)
        return
    with whole_file(out) as file:
        encode(rows, file, kind)


def write_lines(lines: Iterable[str], out: str) -> None:
    """Write lines as `write_rows` does rows; the first is made before anything is written."""
    rest = iter(lines)
    pages = iter(lambda: [f"{line}\n" for line in islice(rest, CHUNK)], [])
    if out == "-":
        for page in pages:
            sys.stdout.write("".join(page))
        sys.stdout.flush()
        return
    first = next(pages, [])
    with whole_file(out) as file:
        for page in chain([first], pages):
            file.write("".join(page).encode())


class Counted(io.RawIOBase):
    """An open pipe: pyarrow asks where it is, which a pipe does not know."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._at = file, 0

    def write(self, content: Any) -> int:
        """Write bytes."""
        data = memoryview(content).cast("B")
        self._file.write(data)
        self._at += len(data)
        return len(data)

    def tell(self) -> int:
        """How many bytes were written."""
        return self._at

    def flush(self) -> None:
        """Let them go."""
        if not self._file.closed:
            self._file.flush()

    def writable(self) -> bool:
        """Yes."""
        return True


def is_special(out: str) -> bool:
    """Whether a name is that of something that is no regular file: a pipe, a device, a folder."""
    try:
        return not stat.S_ISREG(os.stat(out).st_mode)
    except OSError:
        return False  # nothing is there


def check_place(option: str, out: str) -> None:
    """Raises OptionError, by the option's name, where no file can be written."""
    path = Path(os.path.realpath(out))
    code = 0
    if path.is_dir():
        code = errno.EISDIR
    elif not path.parent.is_dir():
        code = errno.ENOENT
    elif not os.access(path if path.exists() else path.parent, os.W_OK):
        code = errno.EACCES
    if code:
        raise OptionError(f"{option}: {out}: {os.strerror(code)}")


@contextmanager
def whole_file(out: str) -> Iterator[IO[bytes]]:
    """A file to write, that stands at its place when all of it is there, and not before. A link
    stays, and its file is written; a pipe or a device is written as it comes.

    Raises OptionError where it can not be made; OSError, with its name, where the disk is full.
    """
    special = is_special(out)
    path = Path(out) if special else Path(os.path.realpath(out))
    beside = path.with_name(f"{path.name}.{attempt()}.part")
    try:
        with (path if special else beside).open("wb") as file:
            yield cast(IO[bytes], Counted(file)) if special else file
            if not special:
                file.flush()
                os.fsync(file.fileno())
        if not special:
            beside.replace(path)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise OSError(error.errno, error.strerror, out) from None
        raise OptionError(f"{option('out')}: {out}: {error.strerror or error}") from None
    finally:
        with suppress(OSError):
            beside.unlink(missing_ok=True)


def encode(rows: pa.Table, file: Any, kind: str) -> None:
    """Write rows to an open file in a format. Raises OptionError for a column that it can not
    hold."""
    try:
        if kind == "parquet":
            pq.write_table(rows, file)
        elif kind == "csv":
            pa.csv.write_csv(_with_lists_as_text(rows), file)
        else:
            for batch in rows.to_batches(max_chunksize=CHUNK):
                text = "".join(json.dumps(row, default=str) + "\n" for row in batch.to_pylist())
                file.write(text.encode())
    except (pa.ArrowException, ValueError, OverflowError) as error:
        said = " ".join(str(error).split())[:150].rstrip(".")
        raise OptionError(f"{kind}: does not hold a column of the input: {said}") from None


def _with_lists_as_text(rows: pa.Table) -> pa.Table:
    """Lists as a person writes them: CSV has none."""
    for i, (name, column) in enumerate(zip(rows.column_names, rows.columns, strict=True)):
        if pa.types.is_list(column.type):
            lists = column.to_pylist()
            texts = [None if row is None else ",".join(map(str, row)) for row in lists]
            rows = rows.set_column(i, name, pa.array(texts, pa.string()))
    return rows
