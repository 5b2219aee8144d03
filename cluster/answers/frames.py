"""Queries of many states: pandas, polars and Arrow tables, and lists of mappings.

A state's columns are the table's columns (``scores_1``, …) or one column for each field; cells are
read by `solver.game.fields.Field.read`. The result has the input's columns, then one payoff for
each player, then, if requested, ``best``, ``margin``, ``toss_up`` and ``solve_id`` (which table
answered), or with every action the columns of `cluster.answers.columns`. An input column with one
of these names is refused, because it would be lost or mistaken for this table's answers.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from luckbase.cluster.answers.actions import EveryAction, answer_at, every_action
from luckbase.cluster.answers.answer import Answer
from luckbase.cluster.answers.columns import DECISION_COLUMNS, names_of
from luckbase.cluster.answers.parts import PIECE
from luckbase.cluster.store.format import nullable, payoff_columns
from luckbase.solver.errors import OptionError, StateError
from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.game import Game
from luckbase.solver.sentences import shorten

if TYPE_CHECKING:
    from luckbase.cluster.answers.lookup import Lookup


def answered(table: Lookup, frame: Any, more: Collection[str]) -> Any:
    """Return the frame with payoffs (`cluster.answers.table.Table.values`). more: other columns:
    best, margin, toss_up, solve_id; "actions" for all."""
    rows, game = Frame(frame), table.game
    inputs = state_columns(game, rows)
    states, names = game.canonical_states(inputs), payoff_columns(game)
    if table.decided is not None or {*DECISION_COLUMNS, "actions"} & {*more}:  # some may be null
        actions = _actions(table, states, inputs)
        columns = {name: nullable(actions.values[:, i]) for i, name in enumerate(names)}
        columns |= names_of(game, actions).arrays_of(actions, None if "actions" in more else more)
    else:
        values, known = table.backup(states)
        _check_known(table, states, known)
        columns = {name: pa.array(values[:, i]) for i, name in enumerate(names)}
    if "solve_id" in more:
        columns["solve_id"] = pa.array([table.origin.solve_id] * len(states), pa.string())
    for name in rows.names:
        if name in columns:
            raise OptionError(
                f"column {name}: is a column of the answers too; call yours something else, or "
                "leave it out"
            )
    return rows.with_columns(columns)


def all_answers(table: Lookup, frame: Any) -> Iterator[Answer]:
    """Yield the answer to each state of a frame, in order
    (`cluster.answers.table.Table.ask_all`)."""
    inputs = state_columns(table.game, Frame(frame))
    states = table.game.canonical_states(inputs)
    actions = _actions(table, states, inputs)
    for start in range(0, len(states), PIECE):
        described = table.game.fields.describe_all(states[start : start + PIECE])
        for x, state in enumerate(described, start):
            yield answer_at(actions, x, table.origin, state)


def _actions(table: Lookup, states: Ints, inputs: Ints) -> EveryAction:
    """Return the answers to canonical states (n, fields). Raises StateError for a state without an
    answer."""
    actions, known = every_action(table, states, inputs)
    _check_known(table, states, known)
    return actions


def _check_known(table: Lookup, states: Ints, known: NDArray[np.bool_]) -> None:
    if not known.all():
        x = int(np.argmin(known))
        why = f"is {table.why_outside(states[x])}"
        if table.full is None:  # a column that was omitted or named differently may be the reason
            why = f"{table.missing(states[x])}; ask it alone, or solve from it first"
        raise StateError(f"row {x + 1}: {why}")


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
    """Return an Arrow column's cells. Raises StateError for cells that Python cannot have."""
    if pa.types.is_integer(column.type) and not column.null_count:
        return column.to_numpy()
    try:
        return column.to_pylist()
    except (pa.ArrowException, ValueError, OverflowError, LookupError):
        raise StateError(
            f"column {name}: is of type {shorten(str(column.type), 40)} and has a cell that cannot "
            "be read; expected whole numbers, text in UTF-8, or lists of them"
        ) from None
