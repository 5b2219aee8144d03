"""A finished table as a Delta table: one commit beside its files, and Spark, polars' `scan_delta`
and `deltalake` take it by name. No row is written again. Source of the form (reader version 1,
writer version 2): https://github.com/delta-io/delta/blob/master/PROTOCOL.md

Delta has no unsigned numbers: a search's columns ``key`` and ``status`` are left out. The table is
said to be append-only; what somebody appends changes the commits alone, which nothing here reads.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from contextlib import closing
from functools import reduce
from typing import TYPE_CHECKING, Any

from luckbase.cluster.table.format import SealedFile
from luckbase.cluster.table.ledger import FileEntry, solver_version
from luckbase.cluster.table.parts import Part
from luckbase.solver.errors import OptionError
from luckbase.solver.sentences import option

if TYPE_CHECKING:
    from luckbase.cluster.table.lookup import Lookup

COMMIT = "_delta_log/00000000000000000000.json"
TYPES = {
    "int8": "byte", "int16": "short", "int32": "integer", "int64": "long", "float": "float",
    "double": "double", "string": "string",
}  # fmt: skip
"""Delta's names of Arrow's types."""


def write_commit(table: Lookup) -> tuple[str, int, list[str], int]:
    """Write the commit of a table's first part, the full table where there is one, in the place of
    an earlier one: (its path, rows, columns, bytes). Raises OptionError for a table that is not
    finished, or in no folder; CorruptTableError for a file whose footer was changed."""
    left = table.unfinished()
    if left or table.ledger is None or not table.parts:
        why = left[0] if left else "it is in no folder"
        said = f"{option('format')}: delta: {table.where}"
        raise OptionError(f"{said}: {why}; expected a whole table")
    part = table.parts[0]
    columns = {f.name: TYPES[_plain(f.type)] for f in part.groups.file(0).schema
               if _plain(f.type) in TYPES}  # fmt: skip
    lines = [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {"metaData": _about(table, part, columns)},
        *(_added(part, entry, columns) for entry in part.entries),
        {"commitInfo": {"operation": "WRITE", "engineInfo": f"luckbase {solver_version()}"}},
    ]
    content = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines).encode()
    part.groups.storage.put(COMMIT, content)
    return str(table.where / COMMIT), part.rows, list(columns), len(content)


def _plain(kind: Any) -> str:
    """The name of a type, of the values of a dictionary."""
    return str(getattr(kind, "value_type", kind))


def _about(table: Lookup, part: Part, columns: dict[str, str]) -> dict[str, Any]:
    """The schema, and an id that the rules and the part give: the same whoever writes it."""
    assert table.ledger is not None
    head = table.ledger.head
    fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}}
              for name, kind in columns.items()]  # fmt: skip
    return {
        "id": str(uuid.uuid5(uuid.NAMESPACE_URL, f"luckbase/{head.identity}/{part.name}")),
        "name": f"{head.game} {head.board}", "description": str(table.origin),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}), "partitionColumns": [],
        "configuration": {"delta.appendOnly": "true", "luckbase.error": repr(part.error)},
    }  # fmt: skip


def _added(part: Part, entry: FileEntry, columns: dict[str, str]) -> dict[str, Any]:
    """One file, with the least and the greatest value of each column that has statistics: by these
    a reader passes files over. The time is 0: the same bytes whenever it is written."""
    with closing(SealedFile(part.groups.storage, part.where, entry)) as file:
        spans = list(_spans(file, columns))
    least = {name: reduce(min, (at[name][0] for at in spans)) for name in (spans or [{}])[0]}
    greatest = {name: reduce(max, (at[name][1] for at in spans)) for name in least}
    stats = {"numRecords": entry.rows, "minValues": least, "maxValues": greatest}
    return {"add": {
        "path": entry.place, "partitionValues": {}, "size": entry.bytes, "modificationTime": 0,
        "dataChange": True, "stats": json.dumps(stats, separators=(",", ":")),
    }}  # fmt: skip


def _spans(file: SealedFile, columns: dict[str, str]) -> Iterator[dict[str, tuple[int, int]]]:
    """Of each row group, the spans of whole numbers."""
    for group in range(file.groups):
        yield {name: span for name, span in file.spans(group).items()
               if name in columns and isinstance(span[0], int)}  # fmt: skip
