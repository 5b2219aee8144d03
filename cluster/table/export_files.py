"""Rows of a table in a file or a pipe: CSV, Excel's .xlsx, Parquet, Arrow, JSON lines.

A file is written beside its place and renamed when it is whole. A stream of Arrow batches goes
through, a row group in memory at a time; .xlsx too, rows being written as they come.
"""

from __future__ import annotations

import json
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypedDict, Unpack

import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet as pq

from luckbase.cluster.table import OnRows, nobody
from luckbase.cluster.table.export import PART, reader
from luckbase.cluster.table.files import Counted, is_special, whole_file
from luckbase.solver.errors import OptionError
from luckbase.solver.sentences import nearest, on_command_line, option

if TYPE_CHECKING:
    from luckbase.cluster.table.lookup import Lookup

EXCEL_ROWS, EXCEL_COLUMNS = 1_048_575, 16_384
"""The most rows below a line of heads, and columns, of a sheet."""
WHOLE_NUMBERS = 2**53
"""From here on Excel does not hold every whole number."""
ROW_GROUP = 131_072
"""Rows of a row group of Parquet, about."""


class How(TypedDict, total=False):
    """How a table is exported.

    columns: only these, in this order. actions: with every action's payoffs, margin and toss_up
    (yes). format: one of `FORMATS`; by the ending of the file if not given. on_rows: told how many
    rows were gone through, and of how many.
    """

    columns: Sequence[str] | None
    actions: bool
    format: str | None
    on_rows: OnRows


@dataclass(frozen=True)
class Exported:
    """What was written: how many rows, their columns, bytes (0 into a pipe)."""

    out: str
    rows: int
    columns: list[str]
    bytes: int


def export(table: Lookup, out: str, where: Any = None, **how: Unpack[How]) -> Exported:
    """Write rows to a file, or to stdout for ``-`` (`cluster.table.table.Table.export`)."""
    kind = _kind(out, how.get("format"))
    columns, on_rows = how.get("columns"), how.get("on_rows", nobody)
    rows = reader(table, where, columns, how.get("actions", True), on_rows)
    if columns is None and len(table.parts) == 1:  # which part says nothing then
        columns = [name for name in rows.schema.names if name != PART]
        rows = reader(table, where, columns, how.get("actions", True), on_rows)
    schema = rows.schema.with_metadata(_about(table))
    if kind is Excel:
        Excel.check(schema, 0 if where is not None else sum(part.rows for part in table.parts), out)
    pipe = out == "-" or (is_special(out) and not Path(out).is_dir())
    if pipe and kind is Excel:
        said = on_command_line("give --out FILE.xlsx", "name a file that ends in .xlsx")
        raise OptionError(f"{option('format')}: xlsx can not go through a pipe; {said}")
    if out == "-":
        return _through(rows, kind(Counted(sys.stdout.buffer), schema, out), out)
    with whole_file(out) as file:
        return _through(rows, kind(file, schema, "-" if pipe else out), out)


def _through(rows: Any, writer: Writer, out: str) -> Exported:
    count = 0
    try:
        for batch in rows:
            count += len(batch)
            writer.write(batch)
        writer.close()
        writer.file.flush()
    finally:
        writer.let_go()
    size = writer.file.tell() if out != "-" else 0
    return Exported(out, count, list(rows.schema.names), size)


def _about(table: Lookup) -> dict[str, str]:
    """What a Parquet or Arrow file says of itself."""
    said = table.origin.as_json() | {"unfinished": table.unfinished()}
    said |= {"error": table.error, "game": table.game.board.game}
    return {f"luckbase.{name}": json.dumps(value) for name, value in said.items()}


def _kind(out: str, given: str | None) -> type[Writer]:
    """Which writer; of a pipe CSV where nothing is said. Raises OptionError."""
    if given is not None:
        if given not in FORMATS:
            raise OptionError(
                f"{option('format')}: unknown format '{given}'; {nearest(given, FORMATS)}"
            )
    elif out == "-":
        given = "csv"
    ending = Path(out).suffix.lower()
    for name, kind in FORMATS.items():
        if name == given or (given is None and ending in kind.endings):
            return kind
    endings = ", ".join(kind.endings[0] for kind in FORMATS.values())
    raise OptionError(f"{option('out')}: {out}: not a format known here; end it in {endings}")


class Writer(ABC):
    """Writes batches of one schema to an open file."""

    endings: ClassVar[tuple[str, ...]]

    def __init__(self, file: Any, schema: pa.Schema, out: str) -> None:
        self.file, self.schema, self.out = file, schema, out

    @abstractmethod
    def write(self, batch: pa.RecordBatch) -> None:
        """Write a batch."""

    @abstractmethod
    def close(self) -> None:
        """Write what is left; the file stays open."""

    def let_go(self) -> None:  # noqa: B027
        """Remove what stands beside the file, written or not."""


class Csv(Writer):
    """A line of heads, then a line a row; text in quotes, nothing where there is none."""

    endings = (".csv",)

    def __init__(self, file: Any, schema: pa.Schema, out: str) -> None:
        super().__init__(file, schema, out)
        self._writer = pa.csv.CSVWriter(pa.PythonFile(file, "w"), schema)

    def write(self, batch: pa.RecordBatch) -> None:
        self._writer.write_batch(batch)

    def close(self) -> None:
        self._writer.close()


class Parquet(Writer):
    """Parquet with zstd, payoffs split by bytes; row groups of some 130,000 rows."""

    endings = (".parquet", ".pq")

    def __init__(self, file: Any, schema: pa.Schema, out: str) -> None:
        super().__init__(file, schema, out)
        floats = [f.name for f in schema if pa.types.is_floating(f.type)]
        others = [f.name for f in schema if f.name not in floats]
        self._writer = pq.ParquetWriter(
            pa.PythonFile(file, "w"), schema, compression="zstd", compression_level=1,
            use_dictionary=others or False, use_byte_stream_split=floats,
        )  # fmt: skip
        self._held: list[pa.RecordBatch] = []

    def write(self, batch: pa.RecordBatch) -> None:
        self._held.append(batch)
        if sum(map(len, self._held)) >= ROW_GROUP:
            self._write_held()

    def _write_held(self) -> None:
        if self._held:
            rows = pa.Table.from_batches(self._held, self.schema.remove_metadata())
            self._writer.write_table(rows.replace_schema_metadata(self.schema.metadata), 1 << 30)
        self._held = []

    def close(self) -> None:
        self._write_held()
        self._writer.close()


class Arrow(Writer):
    """Arrow: the file format (Feather 2) in a file, the stream format in a pipe."""

    endings = (".arrow", ".feather", ".ipc")

    def __init__(self, file: Any, schema: pa.Schema, out: str) -> None:
        super().__init__(file, schema, out)
        make = pa.ipc.new_stream if out == "-" else pa.ipc.new_file
        self._writer = make(pa.PythonFile(file, "w"), schema)

    def write(self, batch: pa.RecordBatch) -> None:
        self._writer.write_batch(batch)

    def close(self) -> None:
        self._writer.close()


class JsonLines(Writer):
    """A JSON object a line."""

    endings = (".jsonl", ".ndjson", ".json")

    def write(self, batch: pa.RecordBatch) -> None:
        names = batch.schema.names
        columns = [column.to_pylist() for column in batch.columns]
        for row in zip(*columns, strict=True):
            said = dict(zip(names, row, strict=True))
            self.file.write(json.dumps(said).encode() + b"\n")

    def close(self) -> None:
        pass


class Excel(Writer):
    """A sheet with a line of heads that stays in sight; whole numbers that Excel would round are
    text."""

    endings = (".xlsx",)

    def __init__(self, file: Any, schema: pa.Schema, out: str) -> None:
        import xlsxwriter

        super().__init__(file, schema, out)
        where, name = Path(out).absolute().parent, Path(out).name
        self._beside = tempfile.TemporaryDirectory(prefix=f"{name}.", suffix=".part", dir=where)
        options = {"constant_memory": True, "tmpdir": self._beside.name}
        self._book = xlsxwriter.Workbook(file, options)
        self._book.use_zip64()
        self._sheet = self._book.add_worksheet("table")
        self._sheet.freeze_panes(1, 0)
        bold = self._book.add_format({"bold": True})
        for i, name in enumerate(schema.names):
            self._sheet.set_column(i, i, max(9, min(len(name) + 1, 30)))
            self._sheet.write_string(0, i, name, bold)
        self._rows = 0

    @staticmethod
    def check(schema: pa.Schema, rows: int, out: str) -> None:
        """Raises OptionError for more than a sheet holds."""
        if len(schema.names) > EXCEL_COLUMNS:
            raise OptionError(
                f"{option('out')}: {out}: {len(schema.names):,} columns, and Excel holds "
                f"{EXCEL_COLUMNS:,}; choose some with {option('columns')}"
            )
        if rows > EXCEL_ROWS:
            raise OptionError(
                f"{option('out')}: {out}: more than the {EXCEL_ROWS:,} rows that Excel holds; "
                "choose some, as 'scores_1>=8000', or write .csv or .parquet"
            )

    def write(self, batch: pa.RecordBatch) -> None:
        self.check(self.schema, self._rows + len(batch), self.out)
        columns = [self._cells(column) for column in batch.columns]
        for row in zip(*columns, strict=True):
            self._rows += 1
            for i, value in enumerate(row):
                if value is not None:
                    _PUT[type(value)](self._sheet, self._rows, i, value)

    def _cells(self, column: pa.Array) -> list[Any]:
        values: list[Any] = column.to_pylist()
        if pa.types.is_uint64(column.type) or pa.types.is_int64(column.type):
            return [str(x) if x is not None and abs(x) >= WHOLE_NUMBERS else x for x in values]
        return values

    def close(self) -> None:
        if self._rows:
            self._sheet.autofilter(0, 0, self._rows, len(self.schema.names) - 1)
        from xlsxwriter.exceptions import FileCreateError

        try:
            self._book.close()
        except FileCreateError as error:  # holds the one of the disk
            raise error.args[0] from None

    def let_go(self) -> None:
        self._book.fileclosed = True
        self._beside.cleanup()


_PUT: dict[type, Callable[[Any, int, int, Any], Any]] = {
    str: lambda sheet, row, column, value: sheet.write_string(row, column, value),
    bool: lambda sheet, row, column, value: sheet.write_boolean(row, column, value),
    int: lambda sheet, row, column, value: sheet.write_number(row, column, value),
    float: lambda sheet, row, column, value: sheet.write_number(row, column, value),
}

FORMATS: dict[str, type[Writer]] = {
    "csv": Csv, "xlsx": Excel, "parquet": Parquet, "arrow": Arrow, "jsonl": JsonLines,
}  # fmt: skip
"""By name."""
