"""The part of a search: states below some roots, found by key.

A key is in at most one file of a part. Files of a search by stages list the stages of its level
(`rules.Level`) that they contain, which determines the file of a key. The first keys of row groups,
and a binary search in one of them, determine its row.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from luckbase.cluster.answers.parts import COLUMNS, GroupRows, Part, Rows, by_group
from luckbase.cluster.store.format import numbers_of, stored_payoffs
from luckbase.cluster.store.parquet import Columns, TableFile
from luckbase.solver.compiled import compile_on
from luckbase.solver.errors import CorruptTableError, OptionError, StateError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.rules import TERMINAL, level_from
from luckbase.solver.search.expand import known_below, who_acts
from luckbase.solver.search.keys import Keys, fits, pack_all, unpack_all

if TYPE_CHECKING:
    from luckbase.solver.search.stages import Box, Stages


TURN_STATES = 512
"""Number of states inside turns that are solved at once: at most about as many turns."""


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
