"""Many states in, many answers out: CSV, JSON lines, Parquet, by a file's ending.

A state's columns are the table's own (``scores_1``, …), or one column a field as the command line
writes it (``scores`` = ``0,2000,3500``, in JSON also ``[0, 2000, 3500]``). Fields left out
are what they are in a query; a set of cards or tiles is ``1 2 5``, as tables have it, ``1,2,5`` or
``[1, 2, 5]``. States between a table's rows are answered by one step of the rules, as a query does.
The answers are the columns of the input, then one payoff a player, then, if asked for, ``best`` and
``toss_up``, then ``solve_id``: which table answered; columns of these names in the input give way.
On a pipe the format is CSV, or JSON lines where the first byte is ``{``; answers go back in the
format of the input.
"""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq
from numpy.typing import NDArray

from luckbase.cluster.table.part import worth
from luckbase.cluster.table.storage import attempt
from luckbase.cluster.table.table import Table
from luckbase.cluster.table.write import payoff_columns
from luckbase.solver.errors import OptionError, StateError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.game import Game

FORMATS = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl",
           ".parquet": "parquet"}  # fmt: skip
CHUNK = 20_000
"""States whose best actions are looked up at a time."""


def answer_batch(table: Table, source: str, out: str, best: bool) -> None:
    """Answer every state in `source`; write to `out` when all of them are answered.

    Raises OptionError for a file that can not be read or a format not known, StateError for the
    first state that is not one of the board's or not in the table.
    """
    kind, read = read_rows(source)
    target = kind if out == "-" else _format(out)
    said = state_columns(table.game, read)
    states = table.game.canonical_states(said)
    values = _probe(table, states)
    names = payoff_columns(table.game)
    ours = [*names, "best", "toss_up", "solve_id"]
    answers = read.drop_columns([name for name in read.column_names if name in ours])
    for i, name in enumerate(names):
        answers = answers.append_column(name, pa.array(values[:, i]))
    if best:
        actions, ties = _best(table, states, said)
        answers = answers.append_column("best", pa.array(actions, pa.string()))
        answers = answers.append_column("toss_up", pa.array(ties))
    solved_by = pa.array([table.origin.solve_id] * len(answers), pa.string())
    _write(answers.append_column("solve_id", solved_by), out, target)


def _probe(table: Table, states: Ints) -> Floats:
    """The payoffs of all, those between rows by one step of the rules; a sentence with the row of
    the first that the table does not reach."""
    values, found = table.look(states)
    missing = np.flatnonzero(~found)
    for at in range(0, len(missing), CHUNK):
        some = missing[at : at + CHUNK]
        values[some], found[some] = worth(table.game, table.look, states[some], table.tolerance)
    if not found.all():
        x = int(np.flatnonzero(~found)[0])
        raise StateError(f"row {x + 1}: is {table.why_outside(states[x])}")
    return values


def _best(table: Table, states: Ints, said: Ints) -> tuple[list[str | None], NDArray[np.bool_]]:
    """The best actions of states that `_probe` answers, and which are toss-ups (n,); said: the same
    as they were given, for the names of bids."""
    held = table.look(states)[1]
    names: list[str | None] = [None] * len(states)
    ties = np.zeros(len(states), bool)
    stored, _, ties[held] = table.best_of(states[held])
    for x, name in zip(np.flatnonzero(held).tolist(), stored, strict=True):
        names[x] = name
    for x in np.flatnonzero(~held).tolist():
        words = table.game.fields.describe(table.game.fields.numbers(said[x])[0])
        answer = table.ask(words)
        names[x], ties[x] = answer.best, answer.toss_up
    return names, ties


def _format(name: str) -> str:
    found = FORMATS.get(Path(name).suffix.lower())
    if found is None:
        raise OptionError(f"{name}: not a format known here; end it in .csv, .jsonl or .parquet")
    return found


def read_rows(source: str) -> tuple[str, pa.Table]:
    """The format and the rows of a file, or of standard input."""
    try:
        if source == "-":
            data = sys.stdin.buffer.read()
            kind = "jsonl" if data.lstrip()[:1] == b"{" else "csv"
            kind = "parquet" if data[:4] == b"PAR1" else kind
        else:
            kind, data = _format(source), Path(source).read_bytes()
        if kind == "csv":
            read = pa.csv.read_csv(io.BytesIO(data))
        elif kind == "jsonl":
            read = pa.json.read_json(io.BytesIO(data))
        else:
            read = pq.ParquetFile(pa.BufferReader(data)).read()  # names may repeat
    except OSError as error:
        raise OptionError(f"{source}: {error.strerror or error}") from None
    except pa.ArrowException as error:
        raise OptionError(f"{source}: {' '.join(str(error).split())[:150]}") from None
    for name in read.column_names:
        if read.column_names.count(name) > 1:
            said = f"'{name[:30]}'" if name else "nothing"
            raise OptionError(
                f"{source}: two columns are called {said}; each needs a name of its own"
            )
    return kind, read


def state_columns(game: Game, read: pa.Table) -> Ints:
    """The state columns, int64 (n, fields). Raises StateError."""
    known = {*game.columns, *game.fields.names}
    cells = {name: _cells(read[name], name) if name in known else None
             for name in read.column_names}  # fmt: skip
    return game.fields.read_columns(cells, len(read))


def _cells(column: Any, name: str) -> Any:
    """A column's cells: an array of whole numbers, or a list of texts, lists, numbers."""
    if pa.types.is_integer(column.type) and not column.null_count:
        return np.asarray(column.to_numpy(), np.int64)
    return column.to_pylist()


def _write(answers: pa.Table, out: str, kind: str) -> None:
    if out == "-":
        _encode(answers, sys.stdout.buffer, kind)
        sys.stdout.buffer.flush()
        return
    path = Path(out)
    beside = path.with_name(f"{path.name}.{attempt()}.part")
    try:
        with beside.open("wb") as file:
            _encode(answers, file, kind)
        beside.replace(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise OptionError(f"--out: {out}: {error.strerror or error}") from None


def _encode(answers: pa.Table, file: Any, kind: str) -> None:
    if kind == "parquet":
        pq.write_table(answers, file)
    elif kind == "csv":
        for i, (name, column) in enumerate(zip(answers.column_names, answers.columns, strict=True)):
            if pa.types.is_list(column.type):  # as a person writes it
                texts = [
                    None if row is None else ",".join(map(str, row)) for row in column.to_pylist()
                ]
                answers = answers.set_column(i, name, pa.array(texts, pa.string()))
        pa.csv.write_csv(answers, file)
    else:
        for batch in answers.to_batches(max_chunksize=CHUNK):
            text = "".join(json.dumps(row, default=str) + "\n" for row in batch.to_pylist())
            file.write(text.encode())
