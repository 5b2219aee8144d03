"""Many states in, many answers out: pandas, polars and Arrow tables, and lists of mappings.

A state's columns are the table's own (``scores_1``, …), or one column a field as the command line
writes it (``scores`` = ``0,2000,3500``, or a list ``[0, 2000, 3500]``). Fields left out are 0, but
for the first; a set of cards or tiles is ``1 2 5``, as tables have it, ``1,2,5`` or ``[1, 2, 5]``.
The answers are the columns of the input, then one payoff a player, then, where asked for, ``best``,
``margin``, ``toss_up`` and ``solve_id``: which table answered. Columns of these names in the input
give way.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from luckbase.cluster.table.part import worth
from luckbase.cluster.table.write import payoff_columns
from luckbase.cluster.words import listed
from luckbase.solver.errors import OptionError, StateError
from luckbase.solver.game.rules import Game, Ints

if TYPE_CHECKING:
    from luckbase.cluster.table.table import Table

Back = Callable[[Any, dict[str, Any], list[str]], Any]
"""back(frame, columns to add, columns that give way) -> the frame of the same kind."""


@dataclass(frozen=True)
class More:
    """Which columns are wanted beside the payoffs."""

    best: bool = False
    margin: bool = False
    toss_up: bool = False
    solve_id: bool = False


def answered(table: Table, frame: Any, more: More) -> Any:
    """The frame with payoffs (`cluster.table.table.Table.values`)."""
    read, back = taken(frame)
    states = table.game.canonical_states(state_columns(table.game, read))
    names = payoff_columns(table.game)
    gone = [*names, "best", "toss_up", "solve_id", *["margin"] * more.margin]
    return back(frame, _answers(table, states, names, more), gone)


def states_of(game: Game, frame: Any) -> Ints:
    """The canonical states (n, fields) of a frame. Raises StateError, OptionError."""
    return game.canonical_states(state_columns(game, taken(frame)[0]))


def _answers(table: Table, states: Ints, names: list[str], more: More) -> dict[str, pa.Array]:
    values, found = worth(table.game, table.look, states, table.tolerance)
    if not found.all():
        x = int(np.flatnonzero(~found)[0])
        raise StateError(f"row {x + 1}: is {table.why_outside(states[x])}")
    columns = {name: pa.array(values[:, i]) for i, name in enumerate(names)}
    if more.best or more.margin or more.toss_up:
        actions, margins, ties = table.best_of(states)
        columns |= {"best": pa.array(actions, pa.string())} if more.best else {}
        if more.margin:
            columns["margin"] = pa.array(margins, mask=np.isnan(margins))
        columns |= {"toss_up": pa.array(ties)} if more.toss_up else {}
    if more.solve_id:
        columns["solve_id"] = pa.array([table.origin.solve_id] * len(states), pa.string())
    return columns


# --- kinds of frames ---------------------------------------------------------------------------


def taken(frame: Any) -> tuple[pa.Table, Back]:
    """A frame as an Arrow table, and the way back. Raises OptionError for another kind."""
    module = type(frame).__module__.partition(".")[0]
    try:
        if isinstance(frame, pa.Table):
            return frame, _back_to_arrow
        if module == "pandas" and hasattr(frame, "columns"):
            return pa.Table.from_pandas(frame, preserve_index=False), _back_to_pandas
        if module == "polars" and hasattr(frame, "to_arrow") and hasattr(frame, "columns"):
            return frame.to_arrow(), _back_to_polars
        if isinstance(frame, list) and all(isinstance(row, dict) for row in frame):
            names = dict.fromkeys(name for row in frame for name in row)
            rows = {name: [_plain(row.get(name)) for row in frame] for name in names}
            return pa.table(rows), _back_to_list
    except (pa.ArrowException, TypeError) as error:
        raise OptionError(f"states: {' '.join(str(error).split())[:150]}") from None
    raise OptionError(
        f"states: a frame of type {type(frame).__name__} is none of pandas.DataFrame, "
        "polars.DataFrame, pyarrow.Table and a list of dicts"
    )


def _plain(value: Any) -> Any:
    """A field's value as Arrow takes it, whatever the other rows have."""
    if isinstance(value, set | frozenset):
        value = sorted(value)
    if hasattr(value, "tolist"):
        value = value.tolist()
    return listed(value) if isinstance(value, list | tuple) else value


def _back_to_arrow(frame: Any, columns: dict[str, Any], gone: list[str]) -> Any:
    kept = frame.drop_columns([name for name in frame.column_names if name in gone])
    for name, column in columns.items():
        kept = kept.append_column(name, column)
    return kept


def _back_to_pandas(frame: Any, columns: dict[str, Any], gone: list[str]) -> Any:
    kept = frame.drop(columns=[name for name in frame.columns if name in gone])
    return kept.assign(**{
        name: column.to_pandas().to_numpy() for name, column in columns.items()
    })  # fmt: skip


def _back_to_polars(frame: Any, columns: dict[str, Any], gone: list[str]) -> Any:
    import polars

    kept = frame.drop([name for name in frame.columns if name in gone])
    return kept.with_columns(
        polars.Series(name, polars.from_arrow(column)) for name, column in columns.items()
    )


def _back_to_list(frame: Any, columns: dict[str, Any], gone: list[str]) -> Any:
    added = {name: column.to_pylist() for name, column in columns.items()}
    return [
        {name: value for name, value in row.items() if name not in gone}
        | {name: column[x] for name, column in added.items()}
        for x, row in enumerate(frame)
    ]


# --- columns -----------------------------------------------------------------------------------


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
    if pa.types.is_dictionary(column.type):
        column = pc.cast(column, pa.string())
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        column = pc.split_pattern(column, ",")
    kinds = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    if not any(kind(column.type) for kind in kinds) or column.null_count:
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
