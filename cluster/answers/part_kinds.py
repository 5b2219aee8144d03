"""The kinds of parts: the full table, its decisions beyond the frontier, and searches.

In the full table, a key gives the position of a row. In a search, a key is in at most one file.
Files of a search by stages list the stages of its level (`rules.Level`) that they contain, which
determines the file of a key. The first keys of row groups, and a binary search in one of them,
determine its row.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Set
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from luckbase.cluster.answers.parts import COLUMNS, Batch, GroupRows, MayHold, Part, Rows, by_group
from luckbase.cluster.store.format import (
    as_table,
    numbers_of,
    row_group_rows,
    stored_payoffs,
    tier_columns,
)
from luckbase.cluster.store.manifest import KEY_SHIFT, TIERS, FileEntry, row_spans
from luckbase.cluster.store.parquet import Columns, TableFile
from luckbase.solver.compiled import compile_on
from luckbase.solver.errors import CorruptTableError, OptionError, StateError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.capabilities import DecisionLayout, FullTable
from luckbase.solver.game.rules import TERMINAL, level_from
from luckbase.solver.search.expand import known_below, who_acts
from luckbase.solver.search.keys import Keys, fits, pack_all, unpack_all

if TYPE_CHECKING:
    from luckbase.solver.search.stages import Box, Stages

OVER = -2
"""Used in place of a key in a full table: the state is terminal."""
TURN_STATES = 512
"""Number of states inside turns that are solved at once: at most about as many turns."""


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


class KeyPart(Part):
    """The states below some roots. A row group is decoded as a mapping of columns: key, values (n,
    players), best (int16, into `action_names`, -1 for none), margin."""

    def decode(self, file: TableFile, number: int, names: Set[str]) -> Columns:
        table = file.read(number, ["key", *self.columns, "best", "margin"])
        columns = {name: numbers_of(table.column(name)) for name in ("key", "margin")}
        best = self.codes_of(table.column("best"))
        return columns | {"values": stored_payoffs(table, self.game, file.path), "best": best}

    def _states(self, keys: Keys) -> Ints:
        """Return the states (n, fields) of keys (n,). Raises CorruptTableError for a key that is
        not a canonical state, because compiled rules would read beyond their arrays."""
        game = self.game
        states = np.asarray(unpack_all(game.strides, np.ascontiguousarray(keys)))
        try:
            same = (game.canonical_states(game.fields.values(states)) == states).all()
        except StateError as error:
            raise CorruptTableError(f"{self.where}: has a key of no state: {error}") from None
        if not same:
            raise CorruptTableError(f"{self.where}: has a key of a state that is not canonical")
        return states

    def states_at(self, i: int, rows: Ints) -> Ints:
        keys, size = [], self.entries[i].row_group_rows
        for _, number, at, _ in by_group(np.full(len(rows), i), rows // size, rows, rows):
            group = self.groups.get(i, number, {"key"})
            keys.append(group["key"][at - number * size])
        return self._states(np.concatenate(keys))

    # --- places of states --------------------------------------------------------------------

    def keys(self, states: Ints) -> Keys:
        return np.asarray(pack_all(self.game.strides, np.ascontiguousarray(states)))

    @cached_property
    def _firsts(self) -> dict[int, Keys]:
        return {}

    def _first_keys(self, i: int) -> Keys:
        if i not in self._firsts:
            head = self.groups.file(i).metadata
            groups = [head.row_group(k).column(0).statistics for k in range(head.num_row_groups)]
            try:
                self._firsts[i] = np.array([0 if s is None else s.min for s in groups], np.uint64)
            except (TypeError, ValueError, OverflowError):
                raise CorruptTableError(
                    f"{self.groups.file(i).path}: its first column has no keys"
                ) from None
        return self._firsts[i]

    @cached_property
    def _stages(self) -> tuple[Stages, dict[int, tuple[list[int], list[Box]]]] | None:
        """For a search by stages, its level, and for each stage the files with its states and their
        boxes; a file is repeated for each of its boxes. None for a search in one piece."""
        if self.name not in self.manifest.levels:
            return None
        from luckbase.solver.search.stages import WHOLE, Box, Stages  # compiles the search

        try:
            level = Stages(self.game, level_from(self.manifest.levels[self.name].level))
        except (OptionError, TypeError, ValueError, LookupError, AttributeError, ArithmeticError):
            raise CorruptTableError(f"{self.where}: has a level that is none") from None
        files: dict[int, tuple[list[int], list[Box]]] = {}
        for i, entry in enumerate(self.entries):
            boxes = [Box(*ends) for ends in entry.boxes] or [WHOLE]
            for stage in entry.stages:
                files_of_stage, boxes_of_stage = files.setdefault(stage, ([], []))
                files_of_stage += [i] * len(boxes)
                boxes_of_stage += boxes
        return level, files

    def _files_of(self, keys: Keys) -> Iterator[tuple[int, Ints]]:
        """Yield files by index, with the indices of the keys (n,) that each may contain."""
        if self._stages is None:
            for i, entry in enumerate(self.entries):
                first, last = np.uint64(entry.first_key), np.uint64(entry.last_key)
                yield i, np.flatnonzero((keys >= first) & (keys <= last))
            return
        level, files = self._stages
        stages = level.of(keys)
        for stage in np.unique(stages).tolist():
            in_stage = np.flatnonzero(stages == stage)
            candidates, boxes = files.get(stage, ([], []))
            owners = np.array([*candidates, -1])[level.boxes_of(keys[in_stage], boxes)]
            for i in np.unique(owners[owners >= 0]).tolist():
                yield i, in_stage[owners == i]

    def _find(self, states: Ints, names: Set[str]) -> Rows:
        """As `stored`, without terminal states."""
        requests: GroupRows = []
        fine = np.flatnonzero(fits(self.game.strides, states))
        keys = self.keys(states[fine])
        for i, at in self._files_of(keys):
            groups = np.searchsorted(self._first_keys(i), keys[at], side="right") - 1
            groups[keys[at] > np.uint64(self.entries[i].last_key)] = -1
            order = np.argsort(groups, kind="stable")[np.count_nonzero(groups < 0) :]
            at = at[order]
            requests += by_group(np.full(len(at), i), groups[order], fine[at], keys[at])
        return self.read(len(states), requests, names)

    def place(self, group: Columns, keys: Keys) -> tuple[Any, NDArray[Any]]:
        rows = np.minimum(np.searchsorted(group["key"], keys), len(group["key"]) - 1)
        present = np.flatnonzero(group["key"][rows] == keys)
        return present, rows[present]

    def files_of(self, states: Ints) -> Ints:
        return self._find(np.ascontiguousarray(states, np.int64), {"values"}).file

    def stored(self, states: Ints, names: Set[str] = COLUMNS) -> Rows:
        states = np.ascontiguousarray(states, np.int64)
        rows = self._find(states, names)
        missing = np.flatnonzero(rows.file < 0)
        if len(missing):
            self.end(rows, states, missing[who_acts(self.game, states[missing])[0] == TERMINAL])
        return rows

    # --- states inside turns -----------------------------------------------------------------

    def get_many(self, states: Ints) -> tuple[Floats, NDArray[np.bool_]]:
        """As `Part.get_many`; states inside a turn are computed by solving the rest of the turn."""
        values, known = super().get_many(states)
        if self.game.turn.size and not known.all():
            self._solve_turns(np.ascontiguousarray(states, np.int64), values, known)
        return values, known

    def _solve_turns(self, states: Ints, values: Floats, known: NDArray[np.bool_]) -> None:
        """Compute the payoffs of states (n, fields) inside turns, if the part has all states in
        which their turns can end. Updates `values` and `known`."""
        unknown = np.flatnonzero(~known)
        inside = unknown[self.game.within_turn(states[unknown])]
        between = states[inside]
        between[:, self.game.turn[0]] = self.game.turn[1]
        order = np.argsort(self.keys(between), kind="stable")  # group states of the same turn
        for start in range(0, len(order), TURN_STATES):
            pieces = [inside[order[start : start + TURN_STATES]]]
            while pieces:
                at = pieces.pop()
                payoffs = self._payoffs_inside(states[at])
                if payoffs is not None:
                    values[at], known[at] = payoffs, True
                elif len(at) > 1:  # some of these turns end outside the part: try one by one
                    pieces.extend(at[:, None])

    def _payoffs_inside(self, states: Ints) -> Floats | None:
        """Return the payoffs (n, players) of states (n, fields) inside turns; None if the part
        lacks a state in which these turns can end."""
        from luckbase.solver.search.game_graph import Graph

        compile_on()
        game = self.game
        ends = known_below(game, states, lambda below: ~game.within_turn(below))
        payoffs, known = self.get_many(unpack_all(game.strides, ends))
        if not known.all():
            return None
        graph = Graph(game)
        graph.know(ends, payoffs, self.error)
        at = graph.solve(states)
        return graph.values[at]
