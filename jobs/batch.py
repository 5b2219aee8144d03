"""Many states in, many answers out: CSV, JSON lines, Parquet, by a file's ending.

A state's columns are the table's own (``scores_1``, …), or one column a field as the command line
writes it (``scores`` = ``0,2000,3500``, in JSON also ``[0, 2000, 3500]``). Fields left out are 0,
but for the first; a set of cards or tiles is ``1 2 5``, as tables have it, ``1,2,5`` or
``[1, 2, 5]``. The answers are the columns of the input, then one payoff a player, then, if asked
for, ``best`` and ``toss_up``, then ``solve_id``: which table answered; columns of these names in
the input give way. On a pipe the format is CSV, or JSON lines where the first byte is ``{``;
answers go back in the format of the input.
"""

from __future__ import annotations

import io
import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq

from luckbase.cluster.table.storage import attempt
from luckbase.cluster.table.table import Table
from luckbase.cluster.table.write import payoff_columns
from luckbase.solver.errors import OptionError, StateError
from luckbase.solver.game.rules import Floats, Game, Ints

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
    states = table.game.canonical_states(state_columns(table.game, read))
    values = _probe(table, states)
    names = payoff_columns(table.game)
    ours = [*names, "best", "toss_up", "solve_id"]
    answers = read.drop_columns([name for name in read.column_names if name in ours])
    for i, name in enumerate(names):
        answers = answers.append_column(name, pa.array(values[:, i]))
    if best:
        actions, _, ties = table.best_of(states)
        answers = answers.append_column("best", pa.array(actions, pa.string()))
        answers = answers.append_column("toss_up", pa.array(ties))
    solved_by = pa.array([table.origin.solve_id] * len(answers), pa.string())
    _write(answers.append_column("solve_id", solved_by), out, target)


def _probe(table: Table, states: Ints) -> Floats:
    """The payoffs of all; a sentence with the row of the first that the table does not hold."""
    values, found = table.look(states)
    if not found.all():
        x = int(np.flatnonzero(~found)[0])
        raise StateError(f"row {x + 1}: is {table.why_outside(states[x])}")
    return values


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
    known = {*game.columns, *(name for name, _ in game.fields)}
    if not any(name in known for name in read.column_names):
        raise StateError(
            f"no column of a state among {', '.join(read.column_names[:6])}; write "
            f"{', '.join(game.columns[:3])}, … or {', '.join(name for name, _ in game.fields)}"
        )
    parts = []
    for number, (field, length) in enumerate(game.fields):
        names = [field] if length == 1 else [f"{field}_{i + 1}" for i in range(length)]
        there = [name for name in names if name in read.column_names]
        if field in game.sets and field in read.column_names:
            parts.append(_sets(read[field], field).reshape(-1, 1))
        elif field in read.column_names and length > 1:
            parts.append(_lists(read[field], field, length))
        elif len(there) == len(names):
            parts += [_whole(read[name], name) for name in names]
        elif there or number == 0:
            missing = next(name for name in names if name not in there)
            raise StateError(f"column {missing} is missing")
        else:
            parts.append(np.zeros((len(read), length), np.int64))
    return np.column_stack(parts)


def _whole(column: Any, name: str) -> Ints:
    if len(column) == 0:
        return np.empty(0, np.int64)
    if column.null_count or not pa.types.is_integer(column.type):
        raise StateError(f"column {name}: must hold whole numbers, and no gaps")
    return np.asarray(column.to_numpy(), np.int64)


def _sets(column: Any, name: str) -> Ints:
    """Sets of numbers from 1 as bits: ``1 2 5``, ``1,2,5`` or ``[1, 2, 5]``; nothing is the empty
    set."""
    masks = []
    for row, said in enumerate(column.to_pylist(), start=1):
        words = said if isinstance(said, list) else re.split(r"[ ,]+", str(said or "").strip())
        mask = 0
        for word in words:
            if str(word) == "":
                continue
            if not re.fullmatch(r"[1-9][0-9]?", str(word)) or int(word) > 62:
                raise StateError(f"row {row}: {name}: '{str(word)[:30]}' is not a number from 1")
            if mask >> (int(word) - 1) & 1:
                raise StateError(f"row {row}: {name}: {word} stands there twice")
            mask |= 1 << (int(word) - 1)
        masks.append(mask)
    return np.array(masks, np.int64)


def _lists(column: Any, name: str, length: int) -> Ints:
    """``0,2000,3500`` or ``[0, 2000, 3500]`` in each row."""
    if len(column) == 0:
        return np.empty((0, length), np.int64)
    if pa.types.is_string(column.type):
        column = pc.split_pattern(column, ",")
    if not pa.types.is_list(column.type) or column.null_count:
        raise StateError(f"column {name}: must hold {length} whole numbers a row, as 0,2000,3500")
    lengths = pc.list_value_length(column).to_numpy()
    wrong = np.flatnonzero(lengths != length)
    if len(wrong):
        raise StateError(
            f"row {wrong[0] + 1}: {name}: has {lengths[wrong[0]]} values, not {length}"
        )
    try:
        flat = pc.cast(pc.list_flatten(column), pa.int64())
    except pa.ArrowException:
        raise StateError(f"column {name}: must hold whole numbers") from None
    return _whole(flat, name).reshape(-1, length)


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
