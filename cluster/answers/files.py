"""Files of rows: CSV, JSON lines and Parquet, by suffix.

Pipes are CSV, or JSON lines if the first byte is ``{``. A file that is written appears at its place
when it is complete.
"""

from __future__ import annotations

import errno
import io
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, cast

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from luckbase.cluster.store.storage import attempt, is_special
from luckbase.solver.board.file import open_regular
from luckbase.solver.errors import OptionError
from luckbase.solver.sentences import option, shorten

FORMATS = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl",
           ".parquet": "parquet"}  # fmt: skip
MAX_COLUMNS = 1000
"""Maximum number of columns in JSON lines."""
CHUNK = 10_000
"""Number of rows written as JSON at a time."""
ROW_GROUP = 131_072
"""Approximate rows of a Parquet row group."""
Write = Callable[[pa.RecordBatch], object]
"""Writes a batch. The rest is written when its context ends without an error."""


# --- reading -------------------------------------------------------------------------------------


def format_of(name: str, option: str = "") -> str:
    """Return a file's format by its suffix. option: prefix of the message. Raises OptionError."""
    format_name = FORMATS.get(Path(name).suffix.lower())
    if format_name is None:
        where = f"{option}: {name}" if option else name
        raise OptionError(f"{where}: unknown format; end it in .csv, .jsonl or .parquet")
    return format_name


def read_rows(source: str) -> tuple[str, pa.Table]:
    """Return the format and the rows of a file, or of stdin for ``-``. Raises OptionError."""
    try:
        if source == "-":
            data = sys.stdin.buffer.read()
            kind = "jsonl" if data.lstrip()[:1] == b"{" else "csv"
            kind = "parquet" if data[:4] == b"PAR1" else kind
        else:
            kind = format_of(source)
            with open(source, "rb", opener=open_regular) as file:
                data = file.read()
    except OSError as error:
        raise OptionError(f"{source}: {error.strerror or error}") from None
    return kind, rows_in(data, kind, source)


def rows_in(data: bytes, kind: str, source: str) -> pa.Table:
    """Return the rows in a file's bytes. source: its name for messages. Raises OptionError."""
    try:
        if kind == "parquet":
            return pq.ParquetFile(pa.BufferReader(data)).read()  # names may repeat
        data.decode()
        if kind != "csv":
            return _json_rows(data, source)
        heads = data.partition(b"\n")[0].decode()  # spreadsheets may write semicolons or tabs
        between = next((each for each in ",;\t" if each in heads), ",")
        options = pa.csv.ParseOptions(delimiter=between)
        conversion = pa.csv.ConvertOptions(null_values=[""])  # NA and null may be names
        return pa.csv.read_csv(io.BytesIO(data), parse_options=options, convert_options=conversion)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise OptionError(f"{source}: line {line} is not text in UTF-8; save it as UTF-8") from None
    except (pa.ArrowException, OSError) as error:
        raise OptionError(f"{source}: {' '.join(str(error).split())[:150].rstrip('.')}") from None


def _json_rows(data: bytes, source: str) -> pa.Table:
    """Return the rows of JSON lines. Raises OptionError, which names the line. (pyarrow's own
    reader crashes the process on some input.)"""
    if data.lstrip()[:1] == b"[":
        raise OptionError(f"{source}: is a list; expected JSON lines, an object a line")
    rows, names = list[dict[str, Any]](), dict[str, None]()
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            why = getattr(error, "msg", "nested too deeply")
            raise OptionError(f"{source}: line {number} is not JSON: {why}") from None
        if not isinstance(row, dict) or not all(map(_is_cell, row.values())):
            raise OptionError(
                f"{source}: line {number} is not a row; expected an object with numbers, text and "
                "lists of these"
            )
        rows.append(row)
        names |= dict.fromkeys(row)
        if len(names) > MAX_COLUMNS:
            raise OptionError(f"{source}: line {number}: more than {MAX_COLUMNS} columns")
    columns = {name: _json_column(name, [row.get(name) for row in rows], source) for name in names}
    try:
        return pa.table(columns)
    except UnicodeEncodeError:
        raise OptionError(f"{source}: the name of a column is not text") from None


def _json_column(name: str, cells: list[Any], source: str) -> pa.Array:
    """Return a column of JSON lines. Raises OptionError."""
    try:
        return pa.array(cells)
    except OverflowError:  # more than 64 bits: text, which is refused later
        return pa.array([None if cell is None else str(cell) for cell in cells])
    except (pa.ArrowException, UnicodeEncodeError):
        raise OptionError(
            f"{source}: column {shorten(name, 30)}: cells of several types; expected numbers, "
            "text or lists of numbers"
        ) from None


def _is_cell(value: Any) -> bool:
    """True if a value is a number, text or None, or a list of these."""
    plain = str | int | float | None
    is_list = isinstance(value, list) and all(isinstance(each, plain) for each in value)
    return isinstance(value, plain) or is_list


# --- writing -------------------------------------------------------------------------------------


def write_rows(rows: pa.Table, out: str, kind: str) -> None:
    """Write rows to a file atomically, or to standard output for ``-``. Raises OptionError if that
    is impossible."""
    with whole_file(out) as file:
        encode(rows, file, kind)


def write_lines(lines: Iterable[str], out: str) -> None:
    """Write lines as `write_rows` does. The first line is computed before anything is written."""
    rest = iter(lines)
    pages = iter(lambda: [f"{line}\n" for line in islice(rest, CHUNK)], [])
    if out == "-":
        for page in pages:  # as text: a replaced sys.stdout may accept only text
            sys.stdout.write("".join(page))
        sys.stdout.flush()
        return
    first = next(pages, [])
    with whole_file(out) as file:
        for page in chain([first], pages):
            file.write("".join(page).encode())


class Counted(io.RawIOBase):
    """An open file with a position, which pyarrow requires also of a pipe."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file, self._position = file, 0

    def write(self, content: Any) -> int:
        data = memoryview(content).cast("B")
        self.file.write(data)
        self._position += len(data)
        return len(data)

    def tell(self) -> int:
        return self._position

    def flush(self) -> None:
        if not self.file.closed:
            self.file.flush()

    def writable(self) -> bool:
        return True


def check_place(option: str, out: str) -> None:
    """Raise OptionError, with the option's name, if a file cannot be written there."""
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
    """Yield a file to write, which appears at its place when it is complete.

    A symbolic link stays and its target is replaced. Pipes, devices and, for ``-``, standard output
    are written directly.

    Raises OptionError if the file cannot be created; OSError, with its name, if the disk is full.
    """
    if out == "-":
        yield cast(IO[bytes], Counted(sys.stdout.buffer))
        sys.stdout.flush()
        return
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
    """Write rows to an open file. Raises OptionError for a column that the format cannot store."""
    try:
        with WRITERS[kind](file, rows.schema) as write:
            for batch in rows.to_batches(max_chunksize=CHUNK if kind == "jsonl" else None):
                write(batch)
    except (pa.ArrowException, ValueError, OverflowError) as error:
        why = " ".join(str(error).split())[:150].rstrip(".")
        raise OptionError(f"{kind}: cannot hold a column of the input: {why}") from None


@contextmanager
def _csv(file: Any, schema: pa.Schema) -> Iterator[Write]:
    """Write a line of headings, then a line for each row. Text is quoted; null is empty."""
    writer = pa.csv.CSVWriter(pa.PythonFile(file, "w"), for_csv(schema.empty_table()).schema)
    yield lambda batch: writer.write_table(for_csv(pa.Table.from_batches([batch])))
    writer.close()


@contextmanager
def _parquet(file: Any, schema: pa.Schema) -> Iterator[Write]:
    """Write Parquet with zstd and byte-stream-split payoffs."""
    waiting: list[pa.RecordBatch] = []
    floats = [f.name for f in schema if pa.types.is_floating(f.type)]
    others = [f.name for f in schema if f.name not in floats]
    sink = Counted(file)
    writer = pq.ParquetWriter(
        pa.PythonFile(sink, "w"), schema, compression="zstd", compression_level=1,
        use_dictionary=others or False, use_byte_stream_split=floats,
    )  # fmt: skip

    def write(batch: pa.RecordBatch | None) -> None:
        waiting.extend([] if batch is None else [batch])
        if sum(map(len, waiting)) >= (1 if batch is None else ROW_GROUP):
            rows = pa.Table.from_batches(waiting, schema.remove_metadata())
            writer.write_table(rows.replace_schema_metadata(schema.metadata), 1 << 30)
            waiting.clear()

    try:
        yield write
        write(None)
    except BaseException:
        sink.file = io.BytesIO()  # without its footer, nobody takes the file for a complete one
        raise
    finally:
        writer.close()


@contextmanager
def _json_lines(file: Any, schema: pa.Schema) -> Iterator[Write]:
    """Write an object a line; a date or the like as text."""

    def write(batch: pa.RecordBatch) -> None:
        lines = (json.dumps(row, default=str) + "\n" for row in batch.to_pylist())
        file.write("".join(lines).encode())

    yield write


WRITERS: dict[str, Callable[[Any, pa.Schema], AbstractContextManager[Write]]] = {
    "csv": _csv, "jsonl": _json_lines, "parquet": _parquet,
}  # fmt: skip
"""Writers by format, called as writer(file, schema). They leave the file open."""


def for_csv(rows: pa.Table) -> pa.Table:
    """Return rows for CSV: lists as comma-separated text, because CSV has none, and an apostrophe
    before text that a spreadsheet would execute as a formula."""
    for i, (name, column) in enumerate(zip(rows.column_names, rows.columns, strict=True)):
        if pa.types.is_list(column.type):
            lists = column.to_pylist()
            texts = [None if row is None else ",".join(map(str, row)) for row in lists]
            rows = rows.set_column(i, name, pa.array(texts, pa.string()))
        elif pa.types.is_string(column.type) or pa.types.is_dictionary(column.type):
            rows = rows.set_column(i, name, _without_formulas(column))
    return rows


def _without_formulas(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Put an apostrophe before cells that look like a formula and are not numbers."""
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    formula = pc.match_substring_regex(column, r"^[=+@\t\r-]")
    if not pc.any(formula).as_py():
        return column
    number = pc.match_substring_regex(column, r"^[+-]?[0-9.,]+(e[+-]?[0-9]+)?$")
    return pc.if_else(
        pc.and_not(formula, number), pc.binary_join_element_wise("'", column, ""), column
    )
