"""Queries of many states: pandas, polars and Arrow tables, and lists of mappings.

A state's columns are those of the table (``scores_1``, …) or one column for each field; cells are
read by `solver.game.fields.Field.read`. The result has the input's columns, then one payoff for
each player, then, if requested, ``best``, ``margin``, ``toss_up`` and ``solve_id`` (which table
answered), or with every action the columns of
`cluster.answers.columns`. An input column with one of
these names is refused, because it would be lost or mistaken for this table's answers.

Files are CSV, JSON lines or Parquet, by suffix. Pipes are CSV, or JSON lines if the first byte is
``{``. The output has the format of the input.
"""

from __future__ import annotations

import errno
import io
import json
import os
import sys
from collections.abc import Collection, Hashable, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain, islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from luckbase.cluster.answers.answer import Answer, answer_at
from luckbase.cluster.answers.columns import DECISION_COLUMNS, names_of
from luckbase.cluster.answers.parts import PIECE
from luckbase.cluster.store.format import nullable, payoff_columns
from luckbase.cluster.store.storage import attempt, is_special
from luckbase.solver.board.file import open_regular
from luckbase.solver.errors import OptionError, StateError
from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.fields import is_state
from luckbase.solver.game.game import Game
from luckbase.solver.sentences import option, shorten

if TYPE_CHECKING:
    from luckbase.cluster.answers.lookup import Lookup


FORMATS = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl",
           ".parquet": "parquet"}  # fmt: skip
MAX_COLUMNS = 1000
"""Maximum number of columns in JSON lines."""
CHUNK = 10_000
"""Number of rows written as JSON at a time."""


def answered(table: Lookup, frame: Any, more: Collection[str]) -> Any:
    """Return the frame with payoffs (`cluster.answers.table.Table.values`). more: other columns:
    best, margin, toss_up, solve_id; "actions" for all."""
    columns_in = Frame(frame)
    inputs = state_columns(table.game, columns_in)
    states = table.game.canonical_states(inputs)
    columns = _answers(table, inputs, states, more)
    if "solve_id" in more:
        columns["solve_id"] = pa.array([table.origin.solve_id] * len(states), pa.string())
    for name in columns_in.names:
        if name in columns:
            raise OptionError(
                f"column {name}: is a column of the answers too; call yours something else, or "
                "leave it out"
            )
    return columns_in.with_columns(columns)


def all_answers(table: Lookup, frame: Any) -> Iterator[Answer]:
    """Yield the answer to each state of a frame, in order
    (`cluster.answers.table.Table.ask_all`)."""
    inputs = state_columns(table.game, Frame(frame))
    states = table.game.canonical_states(inputs)
    actions, known = table.every_action(states, inputs)
    _check_found(table, states, known)
    for start in range(0, len(states), PIECE):
        described = table.game.fields.describe_all(states[start : start + PIECE])
        for x, state in enumerate(described, start):
            yield answer_at(actions, x, table.origin, state)


def _check_found(table: Lookup, states: Ints, known: NDArray[np.bool_]) -> None:
    if not known.all():
        x = int(np.argmin(known))
        why = f"is {table.why_outside(states[x])}"
        if table.full is None:  # a column that was omitted or named differently may be the reason
            why = f"{table.missing(states[x])}; ask it alone, or solve from it first"
        raise StateError(f"row {x + 1}: {why}")


def _answers(
    table: Lookup, inputs: Ints, states: Ints, more: Collection[str]
) -> dict[str, pa.Array]:
    """Return the columns of payoffs, and the other requested columns of decisions."""
    names = payoff_columns(table.game)
    if table.decided is not None or {*DECISION_COLUMNS, "actions"} & {*more}:  # some may be null
        actions, known = table.every_action(states, inputs)
        _check_found(table, states, known)
        columns = {name: nullable(actions.values[:, i]) for i, name in enumerate(names)}
        only = None if "actions" in more else more
        return columns | names_of(table.game, actions).of(actions, only)
    values, known = table.lookup_or_backup(states)
    _check_found(table, states, known)
    return {name: pa.array(values[:, i]) for i, name in enumerate(names)}


# --- kinds of frames ---------------------------------------------------------------------------


class Frame:
    """A user's frame. Raises OptionError for an unsupported type."""

    def __init__(self, frame: Any) -> None:
        self.frame, self.kind = frame, type(frame).__module__.partition(".")[0]
        """The frame, and the package of its type; "builtins" for a list of dicts."""
        self.names: list[Hashable]
        if isinstance(frame, list) and all(isinstance(row, dict) for row in frame):
            self.names = list(dict.fromkeys(name for row in frame for name in row))
        elif isinstance(frame, pa.Table):
            try:
                self.names = list(frame.column_names)
            except UnicodeDecodeError:
                raise OptionError("states: the name of a column is not text in UTF-8") from None
        elif (self.kind == "pandas" and hasattr(frame, "columns")) or (
            self.kind == "polars" and hasattr(frame, "to_arrow") and hasattr(frame, "columns")
        ):
            self.names = list(frame.columns)
        else:
            raise OptionError(
                f"states: unknown type {type(frame).__name__}; expected pandas.DataFrame, "
                "polars.DataFrame (of a LazyFrame collect() it), pyarrow.Table or a list of dicts"
            )

    def cells(self, name: str) -> Any:
        """Return the cells of a column: an integer array or a list."""
        if isinstance(self.frame, list):
            return [row.get(name) for row in self.frame]
        column = self.frame[name]
        if self.kind == "pyarrow":
            return _cells(name, column)
        in_pandas = self.kind == "pandas"
        if str(column.dtype).lower() != "object":  # polars' elements would be addresses
            with suppress(pa.ArrowException, TypeError):  # Arrow has no such type
                arrow = pa.array(column, from_pandas=True) if in_pandas else column.to_arrow()
                return _cells(name, arrow)
        if in_pandas:
            return column.astype(object).where(column.notna(), None).tolist()
        return column.to_list()

    def with_columns(self, columns: dict[str, Any]) -> Any:
        """Return a frame of the same kind with Arrow columns added."""
        frame = self.frame
        if isinstance(frame, list):
            rows = pa.table(columns).to_pylist()
            return [row | more for row, more in zip(frame, rows, strict=True)]
        if self.kind == "pyarrow":
            for name, column in columns.items():
                frame = frame.append_column(name, column)
            return frame
        if self.kind == "pandas":
            arrays = {name: column.to_pandas().to_numpy() for name, column in columns.items()}
            return frame.assign(**arrays)
        import polars

        return frame.with_columns(
            polars.Series(name, polars.from_arrow(column)) for name, column in columns.items()
        )


_kinds = pa.types
_NUMBERS = (_kinds.is_null, _kinds.is_boolean, _kinds.is_integer, _kinds.is_floating,
            _kinds.is_decimal)  # fmt: skip
_TEXTS = (_kinds.is_string, _kinds.is_large_string, _kinds.is_string_view, _kinds.is_binary,
          _kinds.is_large_binary, _kinds.is_binary_view, _kinds.is_fixed_size_binary)  # fmt: skip
_OF_VALUES = (_kinds.is_list, _kinds.is_large_list, _kinds.is_fixed_size_list, _kinds.is_list_view,
              _kinds.is_large_list_view, _kinds.is_dictionary,
              _kinds.is_run_end_encoded)  # fmt: skip


# --- columns -----------------------------------------------------------------------------------


def state_columns(game: Game, frame: Frame) -> Ints:
    """Return states, int64 (n, fields). Raises StateError; OptionError for duplicate columns."""
    names = {*game.columns, *game.fields.names}
    cells: dict[Hashable, Any] = {}
    for name in frame.names:
        if name in cells:
            name_text = f"'{shorten(str(name), 30)}'" if name != "" else "nothing"
            raise OptionError(f"two columns are called {name_text}; each needs a name of its own")
        cells[name] = None
    for name in cells:
        cells[name] = frame.cells(str(name)) if name in names else None
    by_name = {str(name): each for name, each in cells.items()}
    return game.fields.read_columns(by_name, len(frame.frame))


def _cells(name: str, column: Any) -> Any:
    """Return an Arrow column's cells. Raises StateError for a type that cannot be integers."""
    if not _says_numbers(column.type):
        raise StateError(
            f"column {name}: is of type {shorten(str(column.type), 40)}; expected whole numbers, "
            "text, or lists of them"
        )
    if pa.types.is_integer(column.type) and not column.null_count:
        return column.to_numpy()
    try:
        return column.to_pylist()
    except UnicodeDecodeError:
        raise StateError(f"column {name}: has text that is not in UTF-8") from None


def _says_numbers(type_: pa.DataType) -> bool:
    """True if an Arrow type can represent a field."""
    if any(is_kind(type_) for is_kind in _OF_VALUES):
        return _says_numbers(type_.value_type)
    return any(is_kind(type_) for is_kind in (*_TEXTS, *_NUMBERS))


def roots_of(game: Game, start: Any) -> Ints | None:
    """Return canonical states (m, fields); None for None.

    start: a state in users' form, a list of them, a frame, or an array of canonical states.

    Raises StateError, OptionError.
    """
    if start is None:
        return None
    if is_state(start):
        start = [start]
    if isinstance(start, np.ndarray):
        width = game.field_count
        if start.dtype.kind not in "iu" or not start.size or start.shape[-1:] != (width,):
            raise StateError(
                f"start: an array of {start.dtype} {start.shape}; expected canonical states, "
                f"int64 (n, {width})"
            )
        roots = game.canonical_states(game.fields.values(start))
    elif isinstance(start, list | tuple):
        roots = np.array([game.parse(state) for state in start]).reshape(-1, game.field_count)
    else:
        roots = game.canonical_states(state_columns(game, Frame(start)))
    if not len(roots):
        raise StateError(f"start: has no state; write one as {game.fields.example}")
    return roots


# --- files and pipes -----------------------------------------------------------------------------


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
        said = pa.csv.ConvertOptions(null_values=[""])  # NA and null may be names
        return pa.csv.read_csv(io.BytesIO(data), parse_options=options, convert_options=said)
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
    columns: dict[str, list[Any]] = {}
    count = 0
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
        for name, cell in row.items():
            cells = columns.setdefault(name, [])
            cells += [None] * (count - len(cells))
            cells.append(cell)
        count += 1
        if len(columns) > MAX_COLUMNS:
            raise OptionError(f"{source}: line {number}: more than {MAX_COLUMNS} columns")
    for cells in columns.values():
        cells += [None] * (count - len(cells))
    arrays = {name: _json_column(name, cells, source) for name, cells in columns.items()}
    try:
        return pa.table(arrays)
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
    """An open pipe with a position, which pyarrow requires."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._at = file, 0

    def write(self, content: Any) -> int:
        data = memoryview(content).cast("B")
        self._file.write(data)
        self._at += len(data)
        return len(data)

    def tell(self) -> int:
        return self._at

    def flush(self) -> None:
        if not self._file.closed:
            self._file.flush()

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
        if kind == "parquet":
            pq.write_table(rows, file)
        elif kind == "csv":
            pa.csv.write_csv(for_csv(rows), file)
        else:
            for batch in rows.to_batches(max_chunksize=CHUNK):
                text = "".join(json.dumps(row, default=str) + "\n" for row in batch.to_pylist())
                file.write(text.encode())
    except (pa.ArrowException, ValueError, OverflowError) as error:
        why = " ".join(str(error).split())[:150].rstrip(".")
        raise OptionError(f"{kind}: cannot hold a column of the input: {why}") from None


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
