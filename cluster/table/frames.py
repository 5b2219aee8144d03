"""Many states in, many answers out: pandas, polars and Arrow tables, and lists of mappings.

A state's columns are the table's own (``scores_1``, …), or one column a field as the command line
writes it (``scores`` = ``0,2000,3500``, or a list ``[0, 2000, 3500]``). A cell is what
`solver.game.fields.Field.read` takes; a gap (null, NaN) is what a field is that nobody says. A set
of cards or tiles is ``1 2 5``, as tables have it, ``1,2,5`` or ``[1, 2, 5]``. The answers are the
columns of the input, then one payoff a player, then, where asked for, ``best``, ``margin``,
``toss_up`` and ``solve_id``: which table answered; or with every action the columns of
`cluster.table.columns`. A column of the input that has one of these names is refused: it is
somebody's data, or another table's answers, and neither may be lost or taken for this one's.

A `grid` is a table over two of its columns, the others fixed:

>>> with luckbase.open("boards/pig/tiny.toml") as table:
...     made = grid(table, GridSpec("mine", "turn", {"mine": "0", "yours": "10"}, "best"))
...     made.values.shape, made.actions
((20, 20), ('hold', 'roll'))
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from luckbase.cluster.table.answer import Answer, answer_at
from luckbase.cluster.table.columns import names_of
from luckbase.cluster.table.format import nullable, payoff_columns
from luckbase.cluster.table.parts import PIECE
from luckbase.solver.errors import OptionError, StateError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.game import Game
from luckbase.solver.search.expand import expand
from luckbase.solver.sentences import nearest, shorten

if TYPE_CHECKING:
    from luckbase.cluster.table.lookup import Lookup


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
    read = Frame(frame)
    inputs = state_columns(table.game, read)
    states = table.game.canonical_states(inputs)
    columns = _answers(table, inputs, states, more)
    if more.solve_id:
        columns["solve_id"] = pa.array([table.origin.solve_id] * len(states), pa.string())
    for name in read.names:
        if name in columns:
            raise OptionError(
                f"column {name}: is a column of the answers too; call yours something else, or "
                "leave it out"
            )
    return read.with_columns(columns)


def all_answers(table: Lookup, frame: Any) -> Iterator[Answer]:
    """The answer to each state of a frame, in its order (`cluster.table.table.Table.ask_all`)."""
    inputs = state_columns(table.game, Frame(frame))
    states = table.game.canonical_states(inputs)
    every, found = table.every_action(states, inputs)
    _check_found(table, states, found)
    for start in range(0, len(states), PIECE):
        described = table.game.fields.describe_all(states[start : start + PIECE])
        for x, state in enumerate(described, start):
            yield answer_at(every, x, table.origin, state)


def _check_found(table: Lookup, states: Ints, found: NDArray[np.bool_]) -> None:
    if not found.all():
        x = int(np.argmin(found))
        raise StateError(f"row {x + 1}: is {table.why_outside(states[x])}")


def _answers(table: Lookup, inputs: Ints, states: Ints, more: More) -> dict[str, pa.Array]:
    """The columns of the payoffs, and of what else is wanted of the decisions."""
    names = payoff_columns(table.game)
    if more.actions:
        every, found = table.every_action(states, inputs)
        _check_found(table, states, found)
        columns = {name: nullable(every.values[:, i]) for i, name in enumerate(names)}
        return columns | names_of(table.game, every).of(every)
    values, found = table.lookup_or_backup(states)
    _check_found(table, states, found)
    columns = {name: pa.array(values[:, i]) for i, name in enumerate(names)}
    if more.best or more.margin or more.toss_up:
        best, margins, ties = table.best_of(states, inputs)
        decisions = {
            "best": pa.array(best, pa.string()), "margin": nullable(margins),
            "toss_up": pa.array(ties),
        }  # fmt: skip
        columns |= {name: column for name, column in decisions.items() if getattr(more, name)}
    return columns


# --- kinds of frames ---------------------------------------------------------------------------


class Frame:
    """What a person gives as a frame. Raises OptionError for a kind that is none of four."""

    def __init__(self, frame: Any) -> None:
        self.frame, self.kind = frame, type(frame).__module__.partition(".")[0]
        """The frame; the package that it is of, "builtins" for a list of dicts."""
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
                f"states: a frame of type {type(frame).__name__} is none of pandas.DataFrame, "
                "polars.DataFrame (of a LazyFrame collect() it), pyarrow.Table and a list of dicts"
            )

    def cells(self, name: str) -> Any:
        """The cells of a column: an array of whole numbers, or a list."""
        if isinstance(self.frame, list):
            return [row.get(name) for row in self.frame]
        column = self.frame[name]
        if self.kind == "pyarrow":
            return _cells(name, column)
        in_pandas = self.kind == "pandas"
        if str(column.dtype).lower() != "object":  # polars' would be their addresses
            with suppress(pa.ArrowException, TypeError):  # Arrow has no such type
                arrow = pa.array(column, from_pandas=True) if in_pandas else column.to_arrow()
                return _cells(name, arrow)
        if in_pandas:
            return column.astype(object).where(column.notna(), None).tolist()
        return column.to_list()

    def with_columns(self, columns: dict[str, Any]) -> Any:
        """A frame of the same kind that has Arrow columns behind its own."""
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
    """The state columns, int64 (n, fields). Raises StateError; OptionError for two columns of a
    name."""
    known = {*game.columns, *game.fields.names}
    cells: dict[Hashable, Any] = {}
    for name in frame.names:
        if name in cells:
            said = f"'{shorten(str(name), 30)}'" if name != "" else "nothing"
            raise OptionError(f"two columns are called {said}; each needs a name of its own")
        cells[name] = None
    for name in cells:
        cells[name] = frame.cells(str(name)) if name in known else None
    by_name = {str(name): each for name, each in cells.items()}
    return game.fields.read_columns(by_name, len(frame.frame))


def _cells(name: str, column: Any) -> Any:
    """An Arrow column's cells. Raises StateError for one whose type says no whole numbers."""
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
    """Whether cells of an Arrow type can say a field."""
    if any(is_kind(type_) for is_kind in _OF_VALUES):
        return _says_numbers(type_.value_type)
    return any(is_kind(type_) for is_kind in (*_TEXTS, *_NUMBERS))


def roots_of(game: Game, start: Any) -> Ints | None:
    """Canonical states (m, fields): of a mapping, a list of them, a frame, or an array of canonical
    states; None where nothing is given. Raises StateError, OptionError."""
    if start is None:
        return None
    if isinstance(start, Mapping):
        start = [start]
    if isinstance(start, np.ndarray):
        width = game.field_count
        if start.dtype.kind not in "iu" or not start.size or start.shape[-1:] != (width,):
            raise StateError(
                f"start: an array of {start.dtype} {start.shape} is no array of canonical states, "
                f"int64 (n, {width})"
            )
        found = game.canonical_states(game.fields.values(start))
    elif isinstance(start, list | tuple):
        found = np.array([game.parse(one) for one in start]).reshape(-1, game.field_count)
    else:
        found = game.canonical_states(state_columns(game, Frame(start)))
    if not len(found):
        raise StateError(f"start: has no state; write one as {game.fields.example}")
    return found


# --- a table over two columns --------------------------------------------------------------------

MAX_CELLS = 40_000
GRID_PIECE = 4_000
"""States that are looked at together: some 60 children each."""
DRAWN = 2_000
"""Rows that are drawn to see between which values the columns lie."""
COLOURS = ("margin", "best")
"""What a cell may say beside the payoff of a player, value_1, …"""


@dataclass(frozen=True)
class Axis:
    """The values of one column, ascending, in people's units."""

    name: str
    values: Ints


@dataclass(frozen=True)
class GridSpec:
    """What is asked for. x, y: columns. base: a state in words, for the other fields. colour: what
    the numbers are: value_1, … (a player's payoff), margin or best. spans: the least value, the
    greatest and the step of a column, where they are not those of the table."""

    x: str
    y: str
    base: Mapping[str, str]
    colour: str
    spans: Mapping[str, tuple[int, int, int]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Grid:
    """x, y: the axes. values: float64 (len(x), len(y)): the numbers; NaN where there is no state,
    the table does not hold it, or there is no such number. best: int16, the same shape, into
    `actions`; -1 where nobody decides. to_act: int8, the same shape: who decides, from 1; 0
    nobody. full: int64 (columns,), the state of all other cells' fields, in people's units."""

    x: Axis
    y: Axis
    values: Floats
    best: NDArray[np.int16]
    to_act: NDArray[np.int8]
    actions: tuple[str, ...]
    full: Ints


def column_spans(table: Lookup) -> dict[str, tuple[int, int, int]]:
    """Of each column that is a number: the least and the greatest value among some thousand rows
    of the table, drawn evenly, and the step between values."""
    game, found = table.game, {}
    drawn = list(table.draw(DRAWN, 0))
    if not drawn:
        return {}
    columns = game.state_columns(np.concatenate(drawn))
    for each in game.fields:
        for name in () if each.is_set else each.columns:
            values = columns[name]
            found[name] = int(values.min()), int(values.max()), each.unit
    return found


def grid(table: Lookup, spec: GridSpec) -> Grid:
    """The table over two columns.

    Raises OptionError for columns or colours that are none, and for more than `MAX_CELLS` cells;
    StateError for a base that is no state.
    """
    game = table.game
    spans = column_spans(table) | dict(spec.spans)
    xs, ys = (_axis(name, value, spans) for name, value in (("x", spec.x), ("y", spec.y)))
    if spec.x == spec.y:
        raise OptionError(f"y: {spec.y} is the column of x too; take another one")
    cells = len(xs.values) * len(ys.values)
    if cells > MAX_CELLS:
        raise OptionError(
            f"x and y: {len(xs.values)} by {len(ys.values)} are {cells:,} cells; the most is "
            f"{MAX_CELLS:,}: take {spec.x}_from, {spec.x}_to, {spec.x}_step closer"
        )
    known = [f"value_{i + 1}" for i in range(game.players)] + list(COLOURS)
    if spec.colour not in known:
        raise OptionError(f"colour: '{spec.colour[:30]}' is none; {nearest(spec.colour, known)}")
    base = game.fields.read(spec.base)
    values = np.repeat(base[None], cells, axis=0)
    at = [game.columns.index(each.name) for each in (xs, ys)]
    values[:, at[0]] = np.repeat(xs.values, len(ys.values))
    values[:, at[1]] = np.tile(ys.values, len(xs.values))
    numbers, best, acts, actions = _cell_numbers(table, values, spec.colour)
    shape = len(xs.values), len(ys.values)
    return Grid(
        xs, ys, numbers.reshape(shape), best.reshape(shape), acts.reshape(shape), actions, base
    )


def _axis(which: str, name: str, spans: Mapping[str, tuple[int, int, int]]) -> Axis:
    if name not in spans:
        known = list(spans)
        raise OptionError(
            f"{which}: '{name[:30]}' is no column of numbers of this table; {nearest(name, known)}"
        )
    low, high, step = spans[name]
    if step < 1 or high < low or (high - low) // step >= MAX_CELLS:
        raise OptionError(f"{which}: {name} from {low} to {high} by {step} is no row of values")
    return Axis(name, np.arange(low, high + 1, step))


def _cell_numbers(
    table: Lookup, values: Ints, colour: str
) -> tuple[Floats, NDArray[np.int16], NDArray[np.int8], tuple[str, ...]]:
    """Of states as a person gives them, values (n, columns): the numbers (n,), the best actions
    (n,) by their names, and who decides (n,)."""
    game = table.game
    states, sound = game.known_states(values)
    places = np.flatnonzero(sound)
    numbers, best = np.full(len(values), np.nan), np.full(len(values), -1, np.int16)
    acts = np.zeros(len(values), np.int8)
    names: dict[str, int] = {}
    for start in range(0, len(states), GRID_PIECE):
        here, at = (each[start : start + GRID_PIECE] for each in (states, places))
        payoffs, there = table.lookup_or_backup(here)
        own = np.flatnonzero(table.owners(here) >= 0)
        if colour == "margin":
            found, numbers[at[own]], _ = table.best_of(here[own])
        else:
            found = table.stored_best(here[own])
        for x, name in zip(at[own].tolist(), found, strict=True):
            best[x] = -1 if name is None else names.setdefault(name, len(names))
        decided = best[at] >= 0
        acts[at] = np.where(decided, expand(game, here).actors + 1, 0)
        if colour == "best":
            numbers[at] = np.where(decided, best[at], np.nan)
        elif colour != "margin":
            player = int(colour.removeprefix("value_")) - 1
            numbers[at] = np.where(there, payoffs[:, player], np.nan)
    return numbers, best, acts, tuple(names)
