"""Export the rows of a table, filtered, as a stream of Arrow batches or to a CSV, JSON-lines or
Parquet file.

One row group is in memory at a time.

The columns are those of the files (`cluster.store.format`), the same for all parts. A column that a
part does not have is null; the last column, ``part``, names the row's part. With payoffs of every
action, there are more columns (`cluster.answers.columns`), which are computed from the rows'
children. Rows are filtered by stored columns first; other columns are computed only for matching
rows and only if requested. If a game does not list its actions, the matching rows are first read
once to collect their names.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from luckbase.cluster import notebook
from luckbase.cluster.answers.actions import (
    EveryAction,
    actions_at,
    joined,
    nothing_known,
    states_at_once,
)
from luckbase.cluster.answers.columns import (
    DECISION_COLUMNS,
    ActionNames,
    Where,
    in_order,
    listed_actions,
    parse_where,
)
from luckbase.cluster.answers.files import WRITERS, format_of, whole_file
from luckbase.cluster.answers.parts import Batch, Part
from luckbase.cluster.machine import memory_to_use
from luckbase.cluster.store import OnRows
from luckbase.cluster.store.format import column_of, numbers_of
from luckbase.solver import sentences
from luckbase.solver.errors import CorruptTableError, MemoryLimitError, OptionError, need
from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.capabilities import choice_names
from luckbase.solver.game.rules import JOINT, SIMULTANEOUS
from luckbase.solver.result import Result
from luckbase.solver.search.expand import expand
from luckbase.solver.sentences import nearest, option

if TYPE_CHECKING:
    from luckbase.cluster.answers.lookup import Lookup

PART = "part"
EVERY_ROW = Where(())


def schema_of(table: Lookup) -> pa.Schema:
    """Return the columns of all parts, with their types."""
    types: dict[str, Any] = {}
    for part in table.parts:
        for column in part.schema if part.entries else ():
            kind = pa.string() if pa.types.is_dictionary(column.type) else column.type
            before = types.setdefault(column.name, kind)
            if before != kind:
                types[column.name] = pa.float64()
    return pa.schema([*types.items(), (PART, pa.string())])


def reader(
    table: Lookup, where: Any, columns: Sequence[str] | None, actions: bool = False,
    on_rows: OnRows = notebook.on_rows, *, says_part: bool = True,
) -> pa.RecordBatchReader:  # fmt: skip
    """Return a reader of the matching rows (`cluster.answers.table.Table.to_arrow`).

    on_rows: called with the number of rows done and the total.
    says_part: include the column ``part`` if `columns` is None.
    """
    stored, listed = schema_of(table), listed_actions(table.game)
    in_words = isinstance(where, str) or (isinstance(where, Sequence) and len(where) > 0)
    if not table.rows and (in_words or columns is not None):
        raise OptionError(f"{table.where}: this table has no rows yet")
    gather = actions and (not listed or table.game.simultaneous)
    if columns is not None and {*columns} <= {*stored.names, *DECISION_COLUMNS}:
        gather = False  # the names of actions are not needed
    names = ActionNames(table.game, listed) if actions else None
    if gather:
        conditions = EVERY_ROW
        if in_words:
            conditions = parse_where(table.game, where, stored, lenient=True)
        names = _names(table, conditions.only({*stored.names} - {*DECISION_COLUMNS}), stored)
    try:
        rows = _Rows(table, where, in_words, columns, stored, names, gather)
    except OptionError:
        if not gather or not in_words:
            raise
        names = _names(table, EVERY_ROW, stored)  # for an action outside these rows
        rows = _Rows(table, where, in_words, columns, stored, names, gather)
    if columns is None and not says_part:
        rows.shown = rows.shown.remove(rows.shown.get_field_index(PART))
    return pa.RecordBatchReader.from_batches(rows.shown, rows.batches(on_rows))


def columns_of(table: Lookup) -> pa.Schema:
    """Return the columns that conditions may use, as far as they are known without reading rows."""
    return _every_column(schema_of(table), ActionNames(table.game, listed_actions(table.game)))


def _every_column(stored: pa.Schema, names: ActionNames | None) -> pa.Schema:
    """Return the columns of the files and of the named actions; ``part`` is last."""
    kinds = {column.name: column.type for column in stored if column.name != PART}
    if names is not None:
        kinds |= DECISION_COLUMNS | dict.fromkeys(names.columns, pa.float64())
    return pa.schema([*kinds.items(), (PART, pa.string())])


class _Rows:
    """The requested rows and columns of a table.

    stored: the columns of its files.
    names: of the actions; None to leave them out.
    gathered: the names were collected from rows.

    Raises OptionError.
    """

    def __init__(
        self, table: Lookup, where: Any, in_words: bool, columns: Sequence[str] | None,
        stored: pa.Schema, names: ActionNames | None, gathered: bool,
    ) -> None:  # fmt: skip
        self.table, self.stored, self.names = table, stored, names
        self.schema = schema = _every_column(stored, names)
        for name in columns or ():
            if name not in schema.names:
                expected = nearest(name, schema.names)
                raise OptionError(f"columns: unknown column '{name}'; {expected}")
        self.shown = schema if columns is None else pa.schema([schema.field(c) for c in columns])
        conditions = parse_where(table.game, where, schema) if in_words else EVERY_ROW
        _check_stored(table, conditions)
        _check_best(table, conditions, stored, names if gathered else None)
        self.expression = None if in_words else where
        self.read_columns = {*self.shown.names, *conditions.columns}
        if self.expression is not None:
            self.read_columns = {*schema.names}
        worked_out = set() if names is None else {"margin", "toss_up", *names.columns}
        if names is not None and not all(part.dense for part in table.parts):
            worked_out |= {"best", "to_act"}  # also of final states and of certain choices
        self.computed = self.read_columns & worked_out
        self.first = conditions.only({*stored.names} - self.computed)
        self.last = conditions.without(self.first)

    def batches(self, on_rows: OnRows) -> Iterator[pa.RecordBatch]:
        done, total = 0, sum(part.rows for part in self.table.parts)
        for part in self.table.parts:
            columns = {*self.read_columns, "best", "to_act"}
            for batch in part.batches(columns, self.first.may_hold):
                on_rows(done + batch.before, total)
                for rows in self._matching_rows(part, batch):
                    yield from rows.select(self.shown.names).combine_chunks().to_batches()
            done += part.rows
            on_rows(done, total)

    def _matching_rows(self, part: Part, batch: Batch) -> Iterator[pa.Table]:
        """Yield the matching rows of a batch, as many at a time as fit in memory with their edges.
        In a part without payoffs, computed columns are null."""
        at = _matching(part, batch, self.first, self.stored)
        computed = self.computed if part.paid else ()
        size = states_at_once(self.table.game) if computed else max(1, len(at))
        for start in range(0, len(at), size):
            selected = at[start : start + size]
            rows = batch.rows.take(selected)
            if computed and self.names is not None:
                actions = actions_of(self.table, part, batch, selected)
                for name, column in self.names.arrays_of(actions, computed).items():
                    if name in rows.column_names:
                        rows = rows.drop_columns([name])
                    rows = rows.append_column(name, column)
            rows = _fitted(rows, part, self.schema)
            for expression in (self.last.expression(), self.expression):
                rows = rows if expression is None else rows.filter(expression)
            if len(rows) or not computed:
                yield rows


def _check_stored(table: Lookup, where: Where) -> None:
    """Raise OptionError if conditions allow only states that have no row in a full table."""
    if table.full is None or len(table.parts) > 1:
        return
    for each in where.conditions:
        why = table.full.layout.left_out.get(each.column)
        if why and each.other is None and not each.may_hold((0, 0)):
            raise OptionError(f"where: {each.column}: {why}")


def _check_best(table: Lookup, where: Where, stored: pa.Schema, names: ActionNames | None) -> None:
    """Raise OptionError if `best` is compared with an action that the table does not have, as far
    as its actions are known."""
    values = [
        each.value for each in where.conditions if each.column == "best" and each.op in ("==", "!=")
    ]
    possible = [*listed_actions(table.game)]
    if not values or (names is None and not possible):
        return
    stored_names = [] if names is None else [*names.actions, *names.choices]
    if not possible and not {*values} <= {*stored_names}:
        all_names = _names(table, EVERY_ROW, stored)  # of all rows, not only of matching ones
        possible = [*all_names.actions, *all_names.choices]
    for value in values:
        if value not in possible + stored_names:
            raise OptionError(
                f"where: best: '{value[:40]}' is not an action of this table; "
                f"{nearest(value, possible)}"
            )


def actions_of(table: Lookup, part: Part, batch: Batch, at: Ints) -> EveryAction:
    """Compute the actions at rows `at` of a batch, as `ask` does. In a full table, rows where no
    player acts are skipped."""
    acts = np.ones(len(at), bool)
    if part.dense:
        acts = numbers_of(batch.rows.column("to_act"))[at] != 0
    (acting,), (others,) = np.nonzero(acts), np.nonzero(~acts)
    pieces = [(others, nothing_known(len(others), table.game.players))]
    if len(acting):
        states = np.ascontiguousarray(batch.states(at[acting]))
        inputs = table.game.fields.values(states)
        pieces.append((acting, actions_at(table, part, states, inputs)))
    return joined(pieces)


def _matching(part: Part, batch: Batch, where: Where, stored: pa.Schema) -> Ints:
    """Return the rows of a batch that satisfy the conditions on stored columns."""
    at, expression = np.arange(len(batch.rows)), where.expression()
    if expression is None:
        return at
    columns = pa.schema([stored.field(name) for name in where.columns])
    fitted = _fitted(batch.rows, part, columns).append_column("", column_of(at))
    return numbers_of(fitted.filter(expression).column(""))


def _fitted(rows: pa.Table, part: Part, schema: pa.Schema) -> pa.Table:
    arrays = []
    for column in schema:
        if column.name == PART:
            arrays.append(pa.array([part.name] * len(rows), pa.string()))
        elif column.name in rows.column_names:
            try:
                arrays.append(rows[column.name].cast(column.type))
            except pa.ArrowException as error:
                raise CorruptTableError(
                    f"{part.where}: column {column.name} has other values than luckbase writes "
                    f"({str(error).splitlines()[0]}); luckbase solve --force of its board makes it "
                    "again"
                ) from None
        else:
            arrays.append(pa.nulls(len(rows), column.type))
    return pa.Table.from_arrays(arrays, schema=schema)


def _names(table: Lookup, where: Where, stored: pa.Schema) -> ActionNames:
    """Return the actions of the rows that satisfy the conditions on stored columns."""
    game, size = table.game, states_at_once(table.game)
    actions: set[str] = set()
    choices: set[str] = set()
    for part in table.parts:
        for batch in part.batches({"to_act", *where.columns}, where.may_hold):
            at = _matching(part, batch, where, stored)
            if part.dense:
                at = at[numbers_of(batch.rows.column("to_act"))[at] != 0]
            for start in range(0, len(at), size):
                states = np.ascontiguousarray(batch.states(at[start : start + size]))
                edges = expand(game, states)
                owners = np.repeat(np.arange(len(states)), np.diff(edges.first))
                alone = ((edges.actors >= 0) & ~edges.terminal)[owners]
                actions.update(map(game.action_name, np.unique(edges.actions[alone]).tolist()))
                for x in np.flatnonzero(edges.kinds == SIMULTANEOUS).tolist():
                    pairs = edges.actions[edges.first[x] : edges.first[x + 1]]
                    state = game.describe(states[x])
                    for player, codes in enumerate((pairs // JOINT, pairs % JOINT)):
                        numbers = np.unique(codes).tolist()
                        choices.update(choice_names(game, state, player, numbers))
    return ActionNames(game, in_order(game, actions), in_order(game, choices))


def data_frame(table: Lookup, where: Any, columns: Sequence[str] | None, actions: bool) -> Any:
    """Return the matching rows as a pandas DataFrame (`cluster.answers.table.Table.to_pandas`)."""
    need("to_pandas", "pandas")
    rows = reader(table, where, columns, actions, says_part=len(table.parts) != 1)
    batches, size = [], 0
    for batch in rows:
        batches.append(batch)
        size += batch.nbytes
        if size > memory_to_use():
            raise MemoryLimitError(
                f"to_pandas: more than {sentences.size(size)} of rows, and the memory that is free "
                "does not hold them twice; choose some with where or columns, or use to_arrow"
            )
    arrow_table = pa.Table.from_batches(batches, rows.schema)
    batches.clear()
    return arrow_table.to_pandas(split_blocks=True, self_destruct=True)


# --- into a file ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Exported(Result):
    """The result of an export. bytes: 0 for a pipe."""

    out: str
    rows: int
    columns: list[str]
    bytes: int


def export(
    table: Lookup, out: str, where: Any, columns: Sequence[str] | None, format: str | None,
    on_rows: OnRows,
) -> Exported:  # fmt: skip
    """Write rows to a file, or to stdout for ``-`` (`cluster.answers.table.Table.export`)."""
    kind = _format_of(out, format)
    says_part = len(table.parts) != 1
    rows = reader(table, where, columns, actions=True, on_rows=on_rows, says_part=says_part)
    notes = table.origin.as_json() | {"unfinished": table.unfinished()}
    notes |= {"error": table.error, "game": table.game.board.game}
    schema = rows.schema.with_metadata({f"luckbase.{k}": json.dumps(v) for k, v in notes.items()})
    count = 0
    with whole_file(out) as file:
        with WRITERS[kind](file, schema) as write:
            for batch in rows:
                count += len(batch)
                write(batch)
        size = 0 if out == "-" else file.tell()
    return Exported(out, count, list(rows.schema.names), size)


def _format_of(out: str, name: str | None) -> str:
    """Return the format, by its name or the file's suffix; CSV for stdout. Raises OptionError."""
    if name is None:
        return "csv" if out == "-" else format_of(out, option("out"))
    if name not in WRITERS:
        expected = nearest(name, WRITERS)
        raise OptionError(f"{option('format')}: unknown format '{name[:30]}'; {expected}")
    return name
