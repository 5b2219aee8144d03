"""All rows of a table as a stream of Arrow batches, filtered, a row group in memory at a time.

The columns are those of the files (`cluster.table.format`), the same for all parts: what a part
does not have is null (a search has no constant columns of a tier, the full table no `status`), and
the last one, ``part``, says which part a row stands in. Where parts differ in a type, the wider one
is taken; names and sets are text.

With every action there are more (`cluster.table.columns`), before ``part``: `toss_up` and
the payoffs of each action, worked out from the rows' children as for a question; `margin`, to its
full precision, replaces what is stored. Rows are first filtered by what is stored, and nothing is
worked out for a row that is not wanted, or for a column that nobody asked for. Where a game does
not list its actions, their names are those of the rows that are wanted, found by going through
their states once before.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from luckbase.cluster.table import OnRows, nobody
from luckbase.cluster.table.actions import EveryAction, joined
from luckbase.cluster.table.columns import (
    DECISION_COLUMNS,
    ActionNames,
    Where,
    in_order,
    listed_actions,
    parse_where,
)
from luckbase.cluster.table.parquet import column_of, numbers_of
from luckbase.cluster.table.parts import Batch, Part
from luckbase.solver.errors import OptionError
from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.capabilities import choice_names
from luckbase.solver.game.rules import SIMULTANEOUS
from luckbase.solver.search.expand import expand
from luckbase.solver.sentences import nearest

if TYPE_CHECKING:
    from luckbase.cluster.table.lookup import Lookup

PART = "part"
REMEMBERED = 192 << 20
"""Bytes of decoded row groups that are remembered for the children of rows on their way."""


def schema_of(table: Lookup) -> pa.Schema:
    """The columns of all parts and their types."""
    types: dict[str, Any] = {}
    for part in table.parts:
        empty = part.empty()
        for column in empty.schema if empty is not None else ():
            kind = pa.string() if pa.types.is_dictionary(column.type) else column.type
            before = types.setdefault(column.name, kind)
            if before != kind:
                types[column.name] = pa.float64()
    return pa.schema([*types.items(), (PART, pa.string())])


def reader(
    table: Lookup, where: Any, columns: Sequence[str] | None, actions: bool = False,
    on_rows: OnRows = nobody,
) -> pa.RecordBatchReader:  # fmt: skip
    """The rows that are wanted (`cluster.table.table.Table.to_arrow`). on_rows: told how many rows
    are behind us, and of how many."""
    stored = schema_of(table)
    words = isinstance(where, str) or (isinstance(where, Sequence) and len(where))
    said, expression = (where, None) if words else (None, where)
    names = _names(table, said, stored, columns) if actions else None
    try:
        rows = _rows(table, (said, expression), columns, stored, names)
    except OptionError:
        if names is None or listed_actions(table.game) or said is None:
            raise
        names = _names(table, None, stored, columns)  # of an action that no such row has
        rows = _rows(table, (said, expression), columns, stored, names)
    return pa.RecordBatchReader.from_batches(rows.shown, rows.batches(on_rows))


def _rows(
    table: Lookup, where: tuple[Any, Any], columns: Sequence[str] | None, stored: pa.Schema,
    names: ActionNames | None,
) -> _Rows:  # fmt: skip
    """The rows and columns that are meant; where: words, and an expression. Raises OptionError."""
    schema = stored if names is None else _with_actions(stored, names)
    for name in columns or ():
        if name not in schema.names:
            raise OptionError(f"columns: unknown column '{name}'; {nearest(name, schema.names)}")
    said = None if where[0] is None else parse_where(table.game, where[0], schema)
    if said is not None:
        gathered = None if names is None or _quick(stored, columns) else names
        _check_best(table, said, stored, gathered)
    shown = schema if columns is None else pa.schema([schema.field(name) for name in columns])
    return _Rows(table, said, where[1], shown, schema, stored, names)


def _check_best(table: Lookup, said: Where, stored: pa.Schema, names: ActionNames | None) -> None:
    """Raises OptionError where the best action is to be one that the table does not have, as far as
    its actions are known: listed by the game, or gathered."""
    asked = [one for one in said.conditions if one.column == "best" and one.op in ("==", "!=")]
    known = [*listed_actions(table.game)]
    if not asked or (names is None and not known):
        return
    met = [] if names is None else [*names.actions, *names.choices]
    if not known and any(one.value not in met for one in asked):
        every = _names(table, None, stored, None)  # of all rows, not of those wanted alone
        known = [*every.actions, *every.choices]
    for one in asked:
        if one.value not in known + met:
            raise OptionError(
                f"where: best: '{one.value[:40]}' is no action of this table; "
                f"{nearest(one.value, known)}"
            )


def _with_actions(stored: pa.Schema, names: ActionNames) -> pa.Schema:
    kinds = {column.name: column.type for column in stored if column.name != PART}
    kinds |= DECISION_COLUMNS | dict.fromkeys(names.columns, pa.float64())
    return pa.schema([*kinds.items(), (PART, pa.string())])


@dataclass(frozen=True)
class _Rows:
    """The rows that are wanted of a table. said, expression: which rows. shown: their columns.
    schema: all columns, those that are `stored` among them. names: of the actions; None without."""

    table: Lookup
    said: Where | None
    expression: Any
    shown: pa.Schema
    schema: pa.Schema
    stored: pa.Schema
    names: ActionNames | None
    worked: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        """`worked`: the columns that have to be worked out."""
        if self.names is not None:
            made = {"margin", "toss_up", *self.names.columns}
            if not all(part.dense for part in self.table.parts):
                made |= {"best", "to_act"}  # of a search's end, and of bids that are certain
            self.worked.update(self._looked_at() & made)

    def _looked_at(self) -> set[str]:
        if self.expression is not None:
            return set(self.schema.names)
        return {*self.shown.names, *(self.said.columns if self.said is not None else ())}

    def batches(self, on_rows: OnRows) -> Iterator[pa.RecordBatch]:
        """Batches of the columns shown."""
        looked_at, done = self._looked_at(), 0
        total = sum(part.rows for part in self.table.parts)
        for part in self.table.parts:
            read = {*looked_at, "best", "to_act"}
            if self.worked:
                read |= {*part.columns, "best"}
            with _remembering(part):
                for batch in part.batches(read, self._may_hold):
                    on_rows(done + batch.before, total)
                    for rows in self._of(part, batch):
                        yield from rows.select(self.shown.names).combine_chunks().to_batches()
            done += part.rows
            on_rows(done, total)

    def _may_hold(self, spans: Any) -> bool:
        if self.said is None:
            return True
        return self.said.only(self._before).may_hold(spans)

    @property
    def _before(self) -> list[str]:
        """The columns that are there before anything is worked out."""
        return [name for name in self.stored.names if name not in self.worked]

    def _of(self, part: Part, batch: Batch) -> Iterator[pa.Table]:
        """The rows wanted of a batch, as many at a time as fit in memory with their edges."""
        at = np.arange(len(batch.rows))
        first = None if self.said is None else self.said.only(self._before).expression()
        if first is not None:
            fitted = _fitted(batch.rows, self.stored, part, self._looked_at())
            numbered = fitted.append_column("", column_of(at))
            at = numbers_of(numbered.filter(first).column(""))
        if not self.worked:
            if len(at):
                yield self._finished(_fitted(batch.rows.take(at), self.schema, part, None), None)
            return
        most = self.table.states_at_once
        for start in range(0, len(at), most):
            here = at[start : start + most]
            assert self.names is not None
            made = self.names.of(told_of(self.table, part, batch, here), self.worked)
            rows = batch.rows.take(here)
            for name, column in made.items():
                if name in rows.column_names:
                    rows = rows.drop_columns([name])
                rows = rows.append_column(name, column)
            last = self.said.only(self.worked).expression() if self.said is not None else None
            found = self._finished(_fitted(rows, self.schema, part, None), last)
            if len(found):
                yield found

    def _finished(self, rows: pa.Table, last: Any) -> pa.Table:
        for expression in (last, self.expression):
            rows = rows if expression is None else rows.filter(expression)
        return rows


def told_of(table: Lookup, part: Part, batch: Batch, at: Ints) -> EveryAction:
    """What `ask` says of the states in rows `at` of a batch of a part. Nothing is worked out in a
    full table where nobody acts."""
    if not part.dense:
        states = np.ascontiguousarray(batch.states(at))
        return table.of_part(part, states, table.game.fields.values(states))
    acts = numbers_of(batch.rows.column("to_act"))[at] != 0
    some = np.flatnonzero(acts)
    pieces = [(some, part.actions_of_rows(batch, at[some]))] if len(some) else []
    return joined(pieces, len(at), table.game.players)


@contextmanager
def _remembering(part: Part) -> Iterator[None]:
    """While this lasts, a part in files remembers no more than neighbours need."""
    groups = part.groups
    before, groups.max_bytes = groups.max_bytes, min(groups.max_bytes, REMEMBERED)
    try:
        yield
    finally:
        groups.max_bytes = before


def _fitted(
    rows: pa.Table, schema: pa.Schema, part: Part, wanted: Collection[str] | None
) -> pa.Table:
    """The rows with all columns of the schema, or those wanted."""
    arrays, kinds = [], []
    for column in schema:
        if wanted is not None and column.name not in wanted:
            continue
        if column.name == PART:
            arrays.append(pa.array([part.name] * len(rows), pa.string()))
        elif column.name in rows.column_names:
            arrays.append(rows[column.name].cast(column.type))
        else:
            arrays.append(pa.nulls(len(rows), column.type))
        kinds.append((column.name, column.type))
    return pa.Table.from_arrays(arrays, schema=pa.schema(kinds))


# --- names of actions --------------------------------------------------------------------------


def _names(
    table: Lookup, where: Any, stored: pa.Schema, columns: Sequence[str] | None
) -> ActionNames:
    """The actions of the rows that are wanted, or all that the game lists."""
    listed = listed_actions(table.game)
    if listed or _quick(stored, columns):
        return ActionNames(table.game, listed)
    said = _stored_only(table, where, stored)
    actions: set[str] = set()
    choices: set[str] = set()
    for part in table.parts:
        read = {"to_act", *(said.columns if said is not None else ())}
        for batch in part.batches(read, said.may_hold if said is not None else lambda _: True):
            at = np.arange(len(batch.rows))
            first = None if said is None else said.expression()
            if said is not None and first is not None:
                fitted = _fitted(batch.rows, stored, part, set(said.columns))
                numbered = fitted.append_column("", column_of(at))
                at = numbers_of(numbered.filter(first).column(""))
            if part.dense:
                at = at[numbers_of(batch.rows.column("to_act"))[at] != 0]
            for start in range(0, len(at), table.states_at_once):
                states = batch.states(at[start : start + table.states_at_once])
                _note(table, states, actions, choices)
    game = table.game
    return ActionNames(game, in_order(game, actions), in_order(game, choices))


def _quick(stored: pa.Schema, columns: Sequence[str] | None) -> bool:
    """Whether the columns that are wanted are known without the names of actions."""
    return columns is not None and {*columns} <= {*stored.names, *DECISION_COLUMNS}


def _stored_only(table: Lookup, where: Any, stored: pa.Schema) -> Where | None:
    """The conditions on columns that are stored."""
    if where is None:
        return None
    found = parse_where(table.game, where, stored, lenient=True)
    return found.only([name for name in stored.names if name not in DECISION_COLUMNS])


def _note(table: Lookup, states: Ints, actions: set[str], choices: set[str]) -> None:
    """Note the names of the actions of states, and of the choices where both choose at once."""
    game = table.game
    edges = expand(game, np.ascontiguousarray(states))
    owners = np.repeat(np.arange(len(states)), np.diff(edges.first))
    alone = (edges.actors >= 0) & ~edges.terminal
    actions.update(
        game.action_name(int(action)) for action in np.unique(edges.actions[alone[owners]])
    )
    for x in np.flatnonzero(edges.kinds == SIMULTANEOUS).tolist():
        from luckbase.solver.game.rules import JOINT

        joint = edges.actions[edges.first[x] : edges.first[x + 1]]
        described = game.describe(states[x])
        sizes = len(np.unique(joint // JOINT)), len(np.unique(joint % JOINT))
        for player, count in enumerate(sizes):
            choices.update(choice_names(game, described, player, count))
