"""A table for programs that read neither its ledger nor its columns: Delta Lake's, and Storm.

**Delta** (`write_commit`): one commit beside the files of a finished table, and Spark, polars'
`scan_delta` and `deltalake` take it by name. No row is written again. Source of the form (reader
version 1, writer version 2): https://github.com/delta-io/delta/blob/master/PROTOCOL.md. Delta has
no unsigned numbers: a search's columns ``key`` and ``status`` are left out. The table is said to be
append-only; what somebody appends changes the commits alone, which nothing here reads.

**Storm** (`write_process`): a table's states as a Markov decision process in Storm's explicit
format: what the model checker (stormchecker.org), or whatever reads its files, solves from the
rules, not from our payoffs. Three files of one name: ``.tra`` (state, choice, next state, chance),
``.lab``, ``.rew``. States are numbered as the table's rows; behind them is one for each payoff with
which a game ends, then one in which it stays. Who chooses in it is player 1. The others do what the
table takes for best, so the most that player 1 can get is their payoff in the table. Labels:
``init``; ``over``, the last state; ``won``, where games pay 0 or 1. ``Pmax=? [F "won"]`` is the
payoff then, and ``Rmax=? [F "over"]`` is it always.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from contextlib import closing
from functools import reduce
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from luckbase.cluster.table import OnRows
from luckbase.cluster.table.format import SealedFile
from luckbase.cluster.table.frames import whole_file
from luckbase.cluster.table.ledger import FileEntry, solver_version
from luckbase.cluster.table.parts import Part, Rows
from luckbase.solver.errors import OptionError
from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.rules import DECISION
from luckbase.solver.search.bellman import action_starts, final_payoffs
from luckbase.solver.search.expand import Expanded, expand
from luckbase.solver.sentences import option

if TYPE_CHECKING:
    from luckbase.cluster.table.lookup import Lookup

COMMIT = "_delta_log/00000000000000000000.json"
TYPES = {
    "int8": "byte", "int16": "short", "int32": "integer", "int64": "long", "float": "float",
    "double": "double", "string": "string",
}  # fmt: skip
"""Delta's names of Arrow's types."""
WON = {0.0, 1.0}
AT_ONCE = 20_000
"""States that are expanded at a time."""


def write_commit(table: Lookup) -> tuple[str, int, list[str], int]:
    """Write the commit of a table's first part, the full table where there is one, in the place of
    an earlier one: (its path, rows, columns, bytes). Raises OptionError for a table that is not
    finished, or in no folder; CorruptTableError for a file whose footer was changed."""
    left = table.unfinished()
    if left or table.ledger is None or not table.parts:
        why = left[0] if left else "it is in no folder"
        where = f"{option('format')}: delta: {table.where}"
        raise OptionError(f"{where}: {why}; expected a whole table")
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


def write_process(table: Lookup, out: str, on_rows: OnRows) -> tuple[int, int]:
    """Write the files ``out.tra``, … of a table's first part: (states, bytes). Raises OptionError
    for a game that is no such process, and for a table that does not hold all that can follow."""
    game, left = table.game, table.unfinished()
    where = f"{option('format')}: storm: {game.board.game}"
    if game.simultaneous or game.pays:
        why = "both players choose at once" if game.simultaneous else "it pays before it is over"
        raise OptionError(f"{where}: {why}; expected a game of turns that pays at its end")
    if left or not table.parts:
        raise OptionError(f"{where}: {left[0] if left else 'no rows'}; expected a whole table")
    part = table.parts[0]
    keys = np.concatenate([part.keys(rows) for _, rows in _states(part)])
    finals: dict[float, int] = {}
    with whole_file(f"{out}.tra") as file:
        file.write(b"mdp\n")
        for number, (rows, states) in _numbered(part):
            _write_edges(file, part, keys, finals, number, rows, states)
            on_rows(number + len(states), part.rows)
        end = len(keys) + len(finals)
        for at in (*finals.values(), end):
            file.write(f"{at} 0 {end} 1\n".encode())
        size = file.tell()
    named = {number: "init" for number in _starts(part, keys)} | {end: "over"}
    if {*finals} <= WON and 1.0 in finals:
        named[finals[1.0]] = "won"
    labels = " ".join(sorted({"init", *named.values()}))
    lines = [f"{number} {label}" for number, label in sorted(named.items())]
    with whole_file(f"{out}.lab") as file:
        size += file.write("\n".join(["#DECLARATION", labels, "#END", *lines, ""]).encode())
    with whole_file(f"{out}.rew") as file:
        paid = (f"{number} {payoff!r}\n" for payoff, number in finals.items() if payoff)
        size += file.write("".join(paid).encode())
    return end + 1, size


def _states(part: Part) -> Iterator[tuple[Rows, Ints]]:
    """(rows, states (k, fields)) of a part, so many at a time, in the order of their keys."""
    for rows in part.scan():
        for start in range(0, len(rows.best), AT_ONCE):
            at = np.arange(start, min(start + AT_ONCE, len(rows.best)))
            yield Rows(rows.states, rows.values[at], rows.best[at], rows.labels), rows.states(at)


def _numbered(part: Part) -> Iterator[tuple[int, tuple[Rows, Ints]]]:
    """The same, with the number of the first state of each."""
    number = 0
    for piece in _states(part):
        yield number, piece
        number += len(piece[1])


def _write_edges(
    file: IO[bytes], part: Part, keys: Ints, finals: dict[float, int], number: int, rows: Rows,
    states: Ints,
) -> None:  # fmt: skip
    """The lines of states (k, fields), the first of which has this number. finals: payoff -> state,
    grows by what is met."""
    edges = expand(part.game, np.ascontiguousarray(states))
    owners, choices, kept = _choices(part, edges, rows)
    children = part.keys(edges.children)
    at = np.minimum(np.searchsorted(keys, children), len(keys) - 1)
    over = keys[at] != children
    try:
        payoffs = final_payoffs(part.game, edges.children[over])[:, 0]
    except ValueError as error:
        raise OptionError(
            f"{option('format')}: storm: {part.where} ends at states of another table: {error}"
        ) from None
    for payoff in np.unique(payoffs).tolist():
        finals.setdefault(payoff, len(keys) + len(finals))
    at[over] = [finals[payoff] for payoff in payoffs.tolist()]
    lines = np.column_stack([owners + number, choices, at])
    order = np.lexsort(lines.T[::-1])
    order = order[kept[order]]
    lines = lines[order]
    begins = np.flatnonzero(np.append(True, (lines[1:] != lines[:-1]).any(axis=1)))
    chances = np.add.reduceat(edges.weights[order], begins).tolist()
    edges_of = zip(lines[begins].tolist(), chances, strict=True)
    file.write("".join(f"{x} {c} {y} {chance!r}\n" for (x, c, y), chance in edges_of).encode())


def _choices(part: Part, edges: Expanded, rows: Rows) -> tuple[Ints, Ints, NDArray[np.bool_]]:
    """Of each edge (m,): its state, the number of its choice there, whether it is kept: all of who
    chooses and of chance; of the others only those of the best action, their choice 0."""
    owners, starts = action_starts(edges)
    action = np.zeros(len(owners), np.int64)
    action[starts] = 1
    action = np.cumsum(action) - 1
    choices = action - action[edges.first[:-1]][owners]
    forced = ((edges.kinds == DECISION) & (edges.actors > 0))[owners]
    codes, which = np.unique(edges.actions, return_inverse=True)
    labels = {label: code for code, label in enumerate(rows.labels)}
    best = np.array([labels.get(part.game.action_name(code), -2) for code in codes.tolist()])
    kept = ~forced | (best[which] == rows.best[owners])
    return owners, np.where(forced, 0, choices), kept


def _starts(part: Part, keys: Ints) -> list[int]:
    """The numbers of the states in which searches of the part began, or of the game's start; of the
    first state where there is neither."""
    game = part.game
    roots = [goal.roots for goal in part.ledger.goals if goal.part == part.name]
    starts = [game.parse(start) for each in roots if each for start in each.start]
    if not starts and (start := game.start()) is not None:
        starts = [start]
    if not starts:
        return [0]
    start_keys = part.keys(np.array(starts))
    at = np.minimum(np.searchsorted(keys, start_keys), len(keys) - 1)
    return sorted({*at[keys[at] == start_keys].tolist()})
