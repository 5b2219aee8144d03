"""Many states in, many answers out: pandas, polars and Arrow tables, and lists of mappings.

A state's columns are the table's own (``scores_1``, …), or one column a field as the command line
writes it (``scores`` = ``0,2000,3500``, or a list ``[0, 2000, 3500]``). Fields left out are 0, but
for the first; a set of cards or tiles is ``1 2 5``, as tables have it, ``1,2,5`` or ``[1, 2, 5]``.
The answers are the columns of the input, then one payoff a player, then, where asked for, ``best``,
``margin``, ``toss_up`` and ``solve_id``: which table answered; or with every action the columns of
`cluster.table.action_columns`. Columns of these names in the input give way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from luckbase.cluster.table.action_columns import names_of
from luckbase.cluster.table.answer import Answer
from luckbase.cluster.table.every_action import EveryAction
from luckbase.cluster.table.part import PIECE, worth
from luckbase.cluster.table.write import nullable, payoff_columns
from luckbase.cluster.words import listed
from luckbase.solver.errors import OptionError, StateError
from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.game import Game

if TYPE_CHECKING:
    from luckbase.cluster.table.lookup import Lookup

Back = Callable[[Any, dict[str, Any], list[str]], Any]
"""back(frame, columns to add, columns that give way) -> the frame of the same kind."""


@dataclass(frozen=True)
class More:
    """Which columns are wanted beside the payoffs."""

    best: bool = False
    margin: bool = False
    toss_up: bool = False
    solve_id: bool = False
    actions: bool = False


def answered(table: Lookup, frame: Any, more: More) -> Any:
    """The frame with payoffs (`cluster.table.table.Table.values`)."""
    read, back = taken(frame)
    said = state_columns(table.game, read)
    states = table.game.canonical_states(said)
    columns = (_with_actions if more.actions else _answers)(table, said, states, more)
    names = payoff_columns(table.game)
    gone = [*names, "best", "toss_up", "solve_id", *["margin"] * more.margin, *columns]
    return back(frame, columns, gone)


def all_answers(table: Lookup, frame: Any) -> Iterator[Answer]:
    """The answer to each state of a frame, in its order (`cluster.table.table.Table.ask_all`)."""
    said = state_columns(table.game, taken(frame)[0])
    states = table.game.canonical_states(said)
    told = _told(table, said, states)
    for start in range(0, len(states), PIECE):
        described = table.game.fields.describe_all(states[start : start + PIECE])
        for x, state in enumerate(described, start):
            yield told.answer(table.origin, state, x)


def _told(table: Lookup, said: Ints, states: Ints) -> EveryAction:
    """Every action of all states. Raises StateError, with the row."""
    told, found = table.every_action(states, said)
    if not found.all():
        x = int(np.flatnonzero(~found)[0])
        raise StateError(f"row {x + 1}: is {table.why_outside(states[x])}")
    return told


def _with_actions(table: Lookup, said: Ints, states: Ints, more: More) -> dict[str, pa.Array]:
    """The columns of the payoffs, of the decision and of every action."""
    told = _told(table, said, states)
    names = payoff_columns(table.game)
    columns = {name: nullable(told.values[:, i]) for i, name in enumerate(names)}
    columns |= names_of(table.game, told).of(told)
    if more.solve_id:
        columns["solve_id"] = pa.array([table.origin.solve_id] * len(states), pa.string())
    return columns


def states_of(game: Game, frame: Any) -> Ints:
    """The canonical states (n, fields) of a frame. Raises StateError, OptionError."""
    return game.canonical_states(state_columns(game, taken(frame)[0]))


def _answers(table: Lookup, said: Ints, states: Ints, more: More) -> dict[str, pa.Array]:
    values, found = worth(table.game, table.look, states, table.tolerance)
    if not found.all():
        x = int(np.flatnonzero(~found)[0])
        raise StateError(f"row {x + 1}: is {table.why_outside(states[x])}")
    names = payoff_columns(table.game)
    columns = {name: pa.array(values[:, i]) for i, name in enumerate(names)}
    if more.best or more.margin or more.toss_up:
        actions, margins, ties = table.best_of(states, said)
        columns |= {"best": pa.array(actions, pa.string())} if more.best else {}
        if more.margin:
            columns["margin"] = nullable(margins)
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
    known = {*game.columns, *game.fields.names}
    cells = {name: _cells(read[name]) if name in known else None for name in read.column_names}
    return game.fields.read_columns(cells, len(read))


def _cells(column: Any) -> Any:
    """A column's cells: an array of whole numbers, or a list of texts, lists, numbers."""
    if pa.types.is_integer(column.type) and not column.null_count:
        return np.asarray(column.to_numpy(), np.int64)
    return column.to_pylist()
