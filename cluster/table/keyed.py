"""The part of a search: what lies below some roots, by key.

No two files hold one key. Files of a search by stages have stages of its level
(`capabilities.Level`), which say which file a key is in; the first keys of the row groups, and a
binary search in one of them, find its row.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from luckbase.cluster.table.ledger import TIERS, FileEntry, made_by
from luckbase.cluster.table.parquet import SealedFile, number_rows, numbers_of
from luckbase.cluster.table.parts import Part, Rows, TierPart, Wanted, by_group
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.capabilities import level_from
from luckbase.solver.search.expand import expand
from luckbase.solver.search.keys import Keys, fits, pack_all, unpack_all

if TYPE_CHECKING:
    from luckbase.solver.search.stages import Box, Stages

STATUS = ("solved", "given")
"""Of a row of a search: solved from its children; taken from the table named with --using."""
SOLVED, GIVEN = range(len(STATUS))


class KeyPart(Part):
    """What lies below some roots.

    A row group is decoded as a mapping of columns: key, values (n, players), best (int16, into
    `action_names`, -1 for none), margin, status.
    """

    needed = ("key",)

    def decode(self, file: SealedFile, number: int, kind: str) -> dict[str, NDArray[Any]]:
        read = file.read(number, ["key", *self.columns, "best", "margin", "status"])
        columns = {name: numbers_of(read.column(name)) for name in ("key", "margin", "status")}
        best = self.codes_of(read.column("best"))
        return columns | {"values": number_rows(read, self.columns), "best": best}

    def states_in(self, entry: FileEntry, start: int, read: Any, rows: Ints) -> Ints:
        return self._states(numbers_of(read.column("key"))[rows])

    def _states(self, keys: Keys) -> Ints:
        return np.asarray(unpack_all(self.game.bits, np.ascontiguousarray(keys)))

    def solved_states(self, i: int, rows: Ints) -> Ints:
        keys, size = [], self.entries[i].row_group_rows
        for _, number, at in by_group(np.full(len(rows), i), rows // size, rows):
            group = self.groups.get(i, number, "rows")
            here = at - number * size
            keys.append(group["key"][here[group["status"][here] == SOLVED]])
        return self._states(np.concatenate(keys))

    # --- places of states --------------------------------------------------------------------

    def keys(self, states: Ints) -> Keys:
        return np.asarray(pack_all(self.game.bits, np.ascontiguousarray(states)))

    @cached_property
    def _firsts(self) -> dict[int, Keys]:
        return {}

    def _first_keys(self, i: int) -> Keys:
        """The first key of each row group of file number i."""
        if i not in self._firsts:
            about = self.groups.file(i).about
            groups = [about.row_group(k).column(0).statistics for k in range(about.num_row_groups)]
            self._firsts[i] = np.array([0 if s is None else s.min for s in groups], np.uint64)
        return self._firsts[i]

    @cached_property
    def _levels(self) -> list[tuple[Stages, dict[int, tuple[list[int], list[Box]]]]]:
        """Of each search by stages: its level, and the files that hold states of each stage, with
        the boxes that they hold: a file once for each of its boxes."""
        from luckbase.solver.search.stages import WHOLE, Box, Stages  # compiles the search

        found = []
        for ask, line in self.ledger.levels.items():
            files: dict[int, tuple[list[int], list[Box]]] = {}
            for i, entry in enumerate(self.entries):
                boxes = [Box(*ends) for ends in entry.boxes] or [WHOLE]
                for stage in entry.stages if made_by(entry.name, ask) else ():
                    there, held = files.setdefault(stage, ([], []))
                    there += [i] * len(boxes)
                    held += boxes
            if files:
                found.append((Stages(self.game, level_from(line.level)), files))
        return found

    def _files_of(self, keys: Keys) -> Iterator[tuple[int, Ints]]:
        """Files by number, and which of the keys (n,) each may hold."""
        for i, entry in enumerate(self.entries):
            if not entry.stages:  # of a search in one piece
                first, last = np.uint64(entry.first_key), np.uint64(entry.last_key)
                yield i, np.flatnonzero((keys >= first) & (keys <= last))
        for level, files in self._levels:
            stages = level.of(keys)
            for stage in np.unique(stages).tolist():
                here = np.flatnonzero(stages == stage)
                there, boxes = files.get(stage, ([], []))
                of = np.array([*there, -1])[level.boxes_of(keys[here], boxes)]
                for i in np.unique(of[of >= 0]).tolist():
                    yield i, here[of == i]

    def wanted(self, keys: Keys) -> Wanted:
        found: Wanted = []
        for i, at in self._files_of(keys):
            groups = np.searchsorted(self._first_keys(i), keys[at], side="right") - 1
            groups[keys[at] > np.uint64(self.entries[i].last_key)] = -1
            order = np.argsort(groups, kind="stable")[np.count_nonzero(groups < 0) :]
            found += by_group(np.full(len(order), i), groups[order], at[order])
        return found

    def place(
        self, i: int, number: int, group: dict[str, NDArray[Any]], keys: Keys
    ) -> tuple[Ints, Ints]:
        rows = np.minimum(np.searchsorted(group["key"], keys), len(group["key"]) - 1)
        there = np.flatnonzero(group["key"][rows] == keys)
        return there, rows[there]

    def _find(self, states: Ints) -> dict[str, NDArray[Any]]:
        """Of canonical states: values (n, players), best (n,) into `action_names`, -1 for none,
        margin (n,), status (n,), -1 where there is no row, file (n,)."""
        states = np.ascontiguousarray(states, np.int64)
        n, fine = len(states), np.flatnonzero(fits(self.game.bits, states))
        found: dict[str, NDArray[Any]] = {
            "values": np.zeros((n, len(self.columns))), "best": np.full(n, -1, np.int16),
            "margin": np.full(n, np.nan), "status": np.full(n, -1, np.int64),
            "file": np.full(n, -1),
        }  # fmt: skip

        def use(i: int, group: dict[str, NDArray[Any]], at: Ints, rows: Ints) -> None:
            found["file"][fine[at]] = i
            for name in ("values", "best", "margin", "status"):
                found[name][fine[at]] = group[name][rows]

        self.read(self.keys(states[fine]), "rows", use)
        return found

    # --- what it says of them ----------------------------------------------------------------

    def holds(self, states: Ints) -> NDArray[np.bool_]:
        return np.asarray(self._find(states)["status"] >= 0)

    def resolved_errors(self, states: Ints) -> Floats:
        bounds = np.array([entry.resolved_error for entry in self.entries])
        if len(np.unique(bounds)) == 1:
            return np.full(len(states), self.precision)
        return np.asarray(bounds[self._find(states)["file"]])

    def lookup(self, states: Ints) -> tuple[Floats, NDArray[np.bool_]]:
        found = self._find(states)
        return self._with_ends(np.asarray(states), found["values"], found["status"] >= 0)

    def _with_ends(
        self, states: Ints, values: Floats, found: NDArray[np.bool_]
    ) -> tuple[Floats, NDArray[np.bool_]]:
        """Payoffs that were found, with those of states that are over, which have no row."""
        missing = np.flatnonzero(~found)
        if len(missing):
            edges = expand(self.game, np.ascontiguousarray(states[missing], np.int64))
            at = missing[edges.terminal]
            values[at] = edges.rewards[edges.first[:-1][edges.terminal]]
            found[at] = True
        return values, found

    def stored(self, states: Ints) -> Rows:
        found = self._find(states)
        values, _ = self._with_ends(np.asarray(states), found["values"], found["status"] >= 0)
        return Rows(
            states.__getitem__, values, found["best"], self.action_names, found["margin"],
            found["status"] == SOLVED,
        )  # fmt: skip

    def stored_best(self, states: Ints) -> list[str | None]:
        return self.stored(states).best_names


def part_kind(name: str) -> type[Part]:
    """What holds the rows of a part of this name."""
    return TierPart if name == TIERS else KeyPart
