"""The full table as a part: a key gives the position of a row, up to the frontier and beyond."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from luckbase.cluster.answers.parts import Batch, GroupRows, MayHold, Part, Rows, by_group
from luckbase.cluster.store.format import as_table, row_group_rows, stored_payoffs, tier_columns
from luckbase.cluster.store.manifest import KEY_SHIFT, TIERS, FileEntry, row_spans
from luckbase.cluster.store.parquet import TableFile
from luckbase.solver.errors import CorruptTableError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.capabilities import DecisionLayout, FullTable
from luckbase.solver.search.bellman import final_payoffs

MEMORY = 1 << 16
"""Number of states whose keys are cached."""
OVER = -2
"""Used in place of a key: the state is terminal."""


class TierPart(Part):
    """The full table, complete or not. A key consists of a tier's number and a row's number."""

    dense = True
    _last: tuple[bytes, Ints] = b"", np.empty(0, np.int64)

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

    def decode(self, file: TableFile, number: int, kind: str) -> NDArray[Any]:
        if kind == "best":
            return self.codes_of(file.read(number, ["best"]).column(0))
        return stored_payoffs(file.read(number, self.columns), self.game, file.path)

    def states_in(self, entry: FileEntry, start: int, table: Any, rows: Ints) -> Ints:
        tier = self.tier_of_number[entry.tier]
        return self.layout.states_at(tier, entry.first_row + start + np.asarray(rows))

    def states_at(self, i: int, rows: Ints) -> Ints:
        return self.states_in(self.entries[i], 0, None, rows)

    def constants(self, entry: FileEntry) -> dict[str, tuple[Any, Any]]:
        fields = self.layout.tier_fields(self.tier_of_number[entry.tier])
        return {name: (value, value) for name, value in fields.items()}

    def level_of(self, entry: FileEntry) -> Any:
        """Return the level of a file's tier, such as the number of spins left."""
        return next(iter(self.layout.tier_fields(self.tier_of_number[entry.tier]).values()))

    def keys(self, states: Ints) -> Ints:
        """As `Part.keys`; OVER for a terminal state, smaller if the state has no row. The last
        result for few states is cached, because `holds` is called before the lookup."""
        states = np.ascontiguousarray(states, np.int64)
        content = states.tobytes() if len(states) <= MEMORY else b""
        if not content or self._last[0] != content:
            numbers, rows = self.layout.locate(states)
            keys = np.where(numbers < 0, numbers + (OVER + 1), (numbers << KEY_SHIFT) + rows)
            self._last = content, keys
        return self._last[1]

    def _files(self, keys: Ints) -> Ints:
        """Return the file (n,) that contains each key; -1 for none."""
        first, last, _ = self._bounds
        at = np.searchsorted(first, keys, side="right") - 1
        return np.where(keys <= np.append(last, -1)[at], at, -1)

    def files_of(self, states: Ints) -> Ints:
        return self._files(self.keys(states))

    def row_groups_of(self, keys: Ints) -> GroupRows:
        order = np.argsort(keys, kind="stable")
        files = self._files(keys[order])
        order, files = order[files >= 0], files[files >= 0]
        first, _, sizes = self._bounds
        groups, rows = np.divmod(keys[order] - first[files], sizes[files])
        return by_group(files, groups, order, rows)

    def get_many(self, states: Ints) -> tuple[Floats, NDArray[np.bool_]]:
        states = np.ascontiguousarray(states, np.int64)
        keys = self.keys(states)
        payoffs, known = np.zeros((len(states), self.game.players)), keys == OVER
        if known.any():
            payoffs[known] = final_payoffs(self.game, states[known])
        swapped = self.layout.swapped(states) & ~known
        for at, rows in self._in_groups(keys, "payoffs"):
            payoffs[at], known[at] = rows, True
        payoffs[swapped] = payoffs[swapped][:, ::-1]
        return payoffs, known

    def _best(self, states: Ints) -> NDArray[np.int16]:
        best = np.full(len(states), -1, np.int16)
        if self.layout.best_names:
            for at, rows in self._in_groups(self.keys(states), "best"):
                best[at] = rows
        return best

    def _in_groups(self, keys: Ints, kind: str) -> list[tuple[Ints, NDArray[Any]]]:
        """Return the indices of the keys (n,) that have a row, and their rows of this kind: one
        pair, or none if no key has a row. Writing each row group's rows to their places would take
        longer."""
        pieces: list[tuple[Ints, NDArray[Any]]] = []
        self.read(keys, kind, lambda _, group, at, rows: pieces.append((at, group[rows])))
        if not pieces:
            return []
        at, rows = (np.concatenate(each) for each in zip(*pieces, strict=True))
        return [(at, rows)]

    def stored(self, states: Ints) -> Rows:
        states = np.ascontiguousarray(states, np.int64)
        values, known = self.get_many(states)
        values[~known] = np.nan
        return Rows(values, self._best(states), self.action_names)

    def best_codes(self, states: Ints) -> tuple[NDArray[np.int16], Sequence[str]]:
        return self._best(states), self.action_names


class DecisionPart(TierPart):
    """The full table beyond the frontier: the same keys, with best actions and without payoffs."""

    dense = False
    paid = False

    def __init__(self, *arguments: Any) -> None:
        self.plan = arguments[-1].need(DecisionLayout)
        super().__init__(*arguments)
        self.action_names = [*self.layout.best_names]
        paid = row_spans(self.manifest.of_part(TIERS))
        self.entries = [each for each in self.entries if paid.get(each.tier) != [(0, each.rows)]]

    @cached_property
    def layout(self) -> FullTable[Any]:
        return self.plan.layout

    def _in_groups(self, keys: Ints, kind: str) -> list[tuple[Ints, NDArray[Any]]]:
        return [] if kind == "payoffs" else super()._in_groups(keys, kind)

    @property
    def schema(self) -> pa.Schema:
        constant = self.layout.tier_fields(self.tier_of_number[self.entries[0].tier])
        names = dict.fromkeys([*constant, *self.game.columns], pa.int32())
        return pa.schema([*(names | {"best": pa.string(), "to_act": pa.int8()}).items()])

    def best_of_file(self, i: int) -> NDArray[np.int16]:
        """Return the best actions (rows,) of file i, as indices into `FullTable.best_names`."""
        with self.groups.passing(self.entries[i]) as file:
            groups = [self.decode(file, n, "best") for n in file.ahead(range(file.groups))]
        return np.concatenate(groups)

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
                    states = partial(self.states_in, entry, start, None)
                    yield Batch(as_table(rows), before + start, states)
            before += entry.rows
