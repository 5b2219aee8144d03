"""All rows of a table as a stream of Arrow batches, filtered, a row group in memory at a time.

The columns are those of the files (`cluster.table.write`), the same for all parts: what a part does
not have is null (a search has no constant columns of a tier, the full table no `status`), and the
last one, ``part``, says which part a row stands in. Where parts differ in a type, the wider one is
taken; names and sets are text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from luckbase.cluster.table.where import parse_where
from luckbase.solver.errors import OptionError
from luckbase.solver.sentences import nearest

if TYPE_CHECKING:
    from luckbase.cluster.table.lookup import Lookup
    from luckbase.cluster.table.part import Part

PART = "part"


def schema_of(table: Lookup) -> pa.Schema:
    """The columns of all parts and their types."""
    types: dict[str, Any] = {}
    for part in table.parts:
        empty = part.empty()
        for field in empty.schema if empty is not None else ():
            kind = pa.string() if pa.types.is_dictionary(field.type) else field.type
            before = types.setdefault(field.name, kind)
            if before != kind:
                types[field.name] = pa.float64()
    return pa.schema([*types.items(), (PART, pa.string())])


def reader(table: Lookup, where: Any, columns: Sequence[str] | None) -> pa.RecordBatchReader:
    """The rows that are wanted (`cluster.table.table.Table.to_arrow`)."""
    schema = schema_of(table)
    for name in columns or ():
        if name not in schema.names:
            raise OptionError(f"columns: unknown column '{name}'; {nearest(name, schema.names)}")
    words = isinstance(where, str) or (isinstance(where, Sequence) and len(where))
    said = parse_where(table.game, where, schema) if words else None
    expression = said.expression() if said is not None else where
    read: set[str] | None = None
    if columns is not None and (where is None or said is not None):
        read = {*columns, *(said.columns if said is not None else ())}
    shown = schema if columns is None else pa.schema([schema.field(name) for name in columns])
    inner = schema if read is None else pa.schema([f for f in schema if f.name in read])

    def batches() -> Iterator[pa.RecordBatch]:
        for part in table.parts:
            for rows in part.batches(read, lambda spans: said is None or said.may_hold(spans)):
                whole = _fitted(rows, inner, part)
                if expression is not None:
                    whole = whole.filter(expression)
                if len(whole):
                    yield from whole.select(shown.names).combine_chunks().to_batches()

    return pa.RecordBatchReader.from_batches(shown, batches())


def _fitted(rows: pa.Table, schema: pa.Schema, part: Part) -> pa.Table:
    """The rows with all columns of the schema."""
    arrays = []
    for field in schema:
        if field.name == PART:
            arrays.append(pa.array([part.name] * len(rows), pa.string()))
        elif field.name in rows.column_names:
            arrays.append(rows[field.name].cast(field.type))
        else:
            arrays.append(pa.nulls(len(rows), field.type))
    return pa.Table.from_arrays(arrays, schema=pa.schema([(f.name, f.type) for f in schema]))
