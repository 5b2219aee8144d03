"""The full table as a part: a key gives the position of a row, up to the frontier and beyond."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Set
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from luckbase.cluster.answers.parts import COLUMNS, Batch, GroupRows, MayHold, Part, Rows, by_group
from luckbase.cluster.store.format import as_table, row_group_rows, stored_payoffs, tier_columns
from luckbase.cluster.store.manifest import KEY_SHIFT, TIERS, FileEntry, row_spans
from luckbase.cluster.store.parquet import Columns, TableFile
from luckbase.solver.errors import CorruptTableError
from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.capabilities import DecisionLayout, FullTable

OVER = -2
"""Used in place of a key: the state is terminal."""


class TierPart(Part):
    """The full table, complete or not. A key consists of a tier's number and a row's number."""

    dense = True
    has = frozenset(("values", "best"))

    def __init__(self, *arguments: Any) -> None:
        """Raises CorruptTableError for a file of a tier that the board does not have."""
        super().__init__(*arguments)
        for entry in self.entries:
            tier = self.tier_of_number.get(entry.tier)
            if tier is None or entry.first_row + entry.rows > self.layout.rows(tier):
                raise CorruptTableError(f"{self.where / entry.place}: is of no tier of this board")

    @cached_property
    def layout(self) -> FullTable[Any]:
        return self.game.need(FullTable)

    @cached_property
    def tier_of_number(self) -> dict[int, Any]:
        """The tiers of the game's full table by number."""
        return self.layout.tier_of_number()

    @cached_property
    def _bounds(self) -> tuple[Ints, Ints, Ints]:
        """The first and last key of each file, and the rows of its row groups."""
        each = [(entry.first_key, entry.last_key, entry.row_group_rows) for entry in self.entries]
        first, last, rows = np.array(each, np.int64).reshape(-1, 3).T
        return first, last, rows

    def decode(self, file: TableFile, number: int, names: Set[str]) -> Columns:
        stored = [*(self.columns if "values" in names else ()), *(names & {"best"})]
        table, columns = file.read(number, stored), Columns()
        if "best" in names:
            columns["best"] = self.codes_of(table.column("best"))
        if "values" in names:
            columns["values"] = stored_payoffs(table, self.game, file.path)
        return columns

    def states_at(self, i: int, rows: Ints) -> Ints:
        entry = self.entries[i]
        return self.layout.states_at(self.tier_of_number[entry.tier], entry.first_row + rows)

    def constants(self, entry: FileEntry) -> dict[str, tuple[Any, Any]]:
        fields = self.layout.tier_fields(self.tier_of_number[entry.tier])
        return {name: (value, value) for name, value in fields.items()}

    def level_of(self, entry: FileEntry) -> Any:
        """Return the level of a file's tier, such as the number of spins left."""
        return next(iter(self.layout.tier_fields(self.tier_of_number[entry.tier]).values()))

    def keys(self, states: Ints) -> Ints:
        """As `Part.keys`; OVER for a terminal state, smaller if the state has no row."""
        numbers, rows = self.layout.locate(np.ascontiguousarray(states, np.int64))
        return np.where(numbers < 0, numbers + (OVER + 1), (numbers << KEY_SHIFT) + rows)

    def _files(self, keys: Ints) -> Ints:
        """Return the file (n,) that contains each key; -1 for none."""
        first, last, _ = self._bounds
        at = np.searchsorted(first, keys, side="right") - 1
        return np.where(keys <= np.append(last, -1)[at], at, -1)

    def files_of(self, states: Ints) -> Ints:
        return self._files(self.keys(states))

    def stored(self, states: Ints, names: Set[str] = COLUMNS) -> Rows:
        states = np.ascontiguousarray(states, np.int64)
        keys = self.keys(states)
        rows = self.read(len(keys), self._row_groups(keys), names)
        self.end(rows, states, np.flatnonzero(keys == OVER))
        swapped = self.layout.swapped(states) & (rows.file >= 0)
        rows.values[swapped] = rows.values[swapped][:, ::-1]
        return rows

    def _row_groups(self, keys: Ints) -> GroupRows:
        order = np.argsort(keys, kind="stable")
        files = self._files(keys[order])
        order, files = order[files >= 0], files[files >= 0]
        first, _, sizes = self._bounds
        groups, rows = np.divmod(keys[order] - first[files], sizes[files])
        return by_group(files, groups, order, rows)


class DecisionPart(TierPart):
    """The full table beyond the frontier: the same keys, with best actions and without payoffs."""

    dense = False
    has = frozenset(("best",))

    def __init__(self, *arguments: Any) -> None:
        self.plan = arguments[-1].need(DecisionLayout)
        super().__init__(*arguments)
        self.action_names = [*self.layout.best_names]
        paid = row_spans(self.manifest.of_part(TIERS))
        self.entries[:] = [e for e in self.entries if paid.get(e.tier) != [(0, e.rows)]]

    @cached_property
    def layout(self) -> FullTable[Any]:
        return self.plan.layout

    @property
    def schema(self) -> pa.Schema:
        constant = self.layout.tier_fields(self.tier_of_number[self.entries[0].tier])
        names = dict.fromkeys([*constant, *self.game.columns], pa.int32())
        return pa.schema([*(names | {"best": pa.string(), "to_act": pa.int8()}).items()])

    def best_of_file(self, i: int) -> NDArray[np.int16]:
        """Return the best actions (rows,) of file i, as indices into `FullTable.best_names`."""
        file = self.groups.open(self.entries[i])
        groups = file.read_all(range(file.groups), ["best"])
        return np.concatenate([self.codes_of(group.column("best")) for group in groups])

    def batches(
        self, columns: Collection[str] | None, may_hold: MayHold = lambda _: True
    ) -> Iterator[Batch]:
        before = 0
        for i, entry in enumerate(self.entries):
            tier = self.tier_of_number[entry.tier]
            if may_hold(self.constants(entry)):
                codes = self.best_of_file(i)
                size = row_group_rows(self.layout, tier)
                for start in range(0, entry.rows, size):
                    best = codes[start : start + size]
                    cells = tier_columns(self.layout, tier, (start, start + len(best)), best)
                    # Always with one column: without any, the table would have no rows.
                    shown = cells if columns is None else {*columns, "best"}
                    rows = {name: cell for name, cell in cells.items() if name in shown}
                    yield self.batch(i, start, before, as_table(rows))
            before += entry.rows
