"""What lies below some roots: fields → key → file → row group → row.

Rows stand by ascending key in each file, and no two files hold one key. Files of a search by stages
have stages of its level (`solver.game.level`), which say which file a key is in; the first keys of
the row groups, and a binary search in one of them, find its row.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from luckbase.cluster.table.format import made_by
from luckbase.cluster.table.lines import FileEntry
from luckbase.cluster.table.parquet import SealedFile, number_rows, numbers_of
from luckbase.cluster.table.part import FilePart, labelled
from luckbase.cluster.table.sparse import SparsePart
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.level import level_from
from luckbase.solver.graph import keys as hashing
from luckbase.solver.graph.stage import WHOLE, Box, Stages


class KeyPart(FilePart, SparsePart):
    """What lies below some roots, in files."""

    needed = ("key",)

    def states_in(self, entry: FileEntry, start: int, read: Any, rows: Ints) -> Ints:
        return self._at(numbers_of(read.column("key")), rows)

    @cached_property
    def precision(self) -> float:
        return self.ledger.precision(self.name)

    @cached_property
    def _places(self) -> list[tuple[int, int, int]]:
        """(file, row group, rows) of each group."""
        return [
            (i, number, self.file(i).about.row_group(number).num_rows)
            for i in range(len(self.entries))
            for number in range(self.file(i).groups)
        ]

    def sizes(self) -> list[int]:
        return [rows for _, _, rows in self._places]

    def group_at(self, number: int, remember: bool = True) -> dict[str, Any]:
        i, group, _ = self._places[number]
        found: dict[str, Any] = (
            self.group(i, group, "rows") if remember else self.decode(self.file(i), group, "rows")
        )
        return found

    def _first_keys(self, i: int) -> NDArray[np.uint64]:
        """The first key of each row group of file number i."""
        if i not in self._firsts:
            about = self.file(i).about
            groups = [about.row_group(k).column(0).statistics for k in range(about.num_row_groups)]
            self._firsts[i] = np.array([0 if s is None else s.min for s in groups], np.uint64)
        return self._firsts[i]

    @cached_property
    def _firsts(self) -> dict[int, NDArray[np.uint64]]:
        return {}

    @cached_property
    def _whole(self) -> list[int]:
        """The files of searches in one piece."""
        return [i for i, entry in enumerate(self.entries) if not entry.stages]

    @cached_property
    def _levels(self) -> list[tuple[Stages, dict[int, tuple[list[int], list[Box]]]]]:
        """Of each search by stages: its level, and the files that hold states of each stage, with
        the boxes that they hold: a file once for each of its boxes."""
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

    def _files_of(self, keys: NDArray[np.uint64]) -> Iterator[tuple[int, Ints]]:
        """Files by number, and which of the keys (n,) each may hold."""
        for i in self._whole:
            entry = self.entries[i]
            span = np.uint64(entry.first_key), np.uint64(entry.last_key)
            yield i, np.flatnonzero((keys >= span[0]) & (keys <= span[1]))
        for level, files in self._levels:
            stages = level.of(keys)
            for stage in np.unique(stages).tolist():
                here = np.flatnonzero(stages == stage)
                there, boxes = files.get(stage, ([], []))
                of = np.array([*there, -1])[level.boxes_of(keys[here], boxes)]
                for i in np.unique(of[of >= 0]).tolist():
                    yield i, here[of == i]

    def decode(self, file: SealedFile, number: int, kind: str) -> Any:
        """The columns of a row group that are not the state's."""
        read = file.read(number, ["key", *self.columns, "best", "margin", "status"])
        codes, labels = labelled(read.column("best"))
        return {
            "key": numbers_of(read.column("key")), "values": number_rows(read, self.columns),
            "best": codes, "labels": labels, "margin": numbers_of(read.column("margin")),
            "status": numbers_of(read.column("status")),
        }  # fmt: skip

    def _located(self, states: Ints) -> Iterator[tuple[int, dict[str, Any], Ints, Ints]]:
        """Of states (n, fields) that have a row: the file, the row group, which of the n, rows."""
        states = np.ascontiguousarray(np.asarray(states, np.int64))
        fine = np.flatnonzero(hashing.fits(self.game.bits, states))
        keys = hashing.pack_all(self.game.bits, np.ascontiguousarray(states[fine]))
        for i, here in self._files_of(keys):
            groups = np.searchsorted(self._first_keys(i), keys[here], side="right") - 1
            groups[keys[here] > np.uint64(self.entries[i].last_key)] = -1
            for number in np.unique(groups[groups >= 0]).tolist():
                group = self.group(i, number, "rows")
                at = here[groups == number]
                place = np.searchsorted(group["key"], keys[at])
                place = np.minimum(place, len(group["key"]) - 1)
                there = group["key"][place] == keys[at] if len(group["key"]) else np.zeros(0, bool)
                yield i, group, fine[at[there]], place[there]

    def find(self, states: Ints) -> tuple[Floats, NDArray[np.int16], Floats, Ints]:
        values = np.zeros((len(states), len(self.columns)))
        best = np.full(len(states), -1, np.int16)
        margin = np.full(len(states), np.nan)
        status = np.full(len(states), -1, np.int64)
        for _, group, x, row in self._located(states):
            values[x], status[x] = group["values"][row], group["status"][row]
            margin[x] = group["margin"][row]
            best[x] = self.codes_of(group["labels"])[group["best"][row]]
        return values, best, margin, status

    def told_within(self, states: Ints) -> Floats:
        found = super().told_within(states)
        if len({entry.told for entry in self.entries}) == 1:
            return found
        for i, _, x, _ in self._located(states):
            found[x] = self.entries[i].told
        return found
