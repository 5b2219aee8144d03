"""The full table: fields → tier and row → row group → payoffs.

One state decodes one row group, which is remembered; many are sorted by key, so each row group is
decoded once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from luckbase.cluster.machine import cores
from luckbase.cluster.table.dense import DensePart
from luckbase.cluster.table.format import KEY_SHIFT, start_row
from luckbase.cluster.table.lines import FileEntry
from luckbase.cluster.table.parquet import SealedFile, number_rows, numbers_of
from luckbase.cluster.table.part import FilePart, Rows, labelled
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.coded import Coded
from luckbase.solver.graph.bellman import final_payoffs

GROUPS_A_JOB, GROUPS_A_READ = 256, 8
"""Row groups that a thread takes of a file, and that it decodes at once."""
FEW = 16
"""States of one question."""


class TierPart(FilePart, DensePart):
    """The full table in files."""

    _last: tuple[bytes, tuple[Ints, Ints, NDArray[np.bool_]]] | None = None

    @cached_property
    def spans(self) -> list[tuple[Any, int, int]]:
        tiers = self.tier_of_number
        return [(tiers[e.tier], start_row(e), e.rows) for e in self.entries]

    def states_in(self, entry: FileEntry, start: int, read: Any, rows: Ints) -> Ints:
        tier = self.tier_of_number[entry.tier]
        return self.layout.states_at(tier, start_row(entry) + start + np.asarray(rows))

    def constants(self, entry: FileEntry) -> dict[str, tuple[Any, Any]]:
        fields = self.layout.tier_fields(self.tier_of_number[entry.tier])
        return {name: (value, value) for name, value in fields.items()}

    @cached_property
    def _bounds(self) -> tuple[Ints, Ints]:
        """The first and the last key of each file."""
        keys = [(entry.first_key, entry.last_key) for entry in self.entries]
        first, last = np.array(keys, np.int64).reshape(-1, 2).T
        return first, last

    def decode(self, file: SealedFile, number: int, kind: str) -> Any:
        if kind == "best":
            codes, labels = labelled(file.read(number, ["best"]).column(0))
            return self.codes_of(labels)[codes]
        if kind == "margin":
            return numbers_of(file.read(number, ["margin"]).column(0))
        return number_rows(file.read(number, self.columns), self.columns)

    # --- payoffs -----------------------------------------------------------------------------

    def holds(self, states: Ints) -> NDArray[np.bool_]:
        return self._place(states)[1] >= 0

    def _place(self, states: Ints) -> tuple[Ints, Ints, NDArray[np.bool_]]:
        """(key, file's index or -1, whether the game is over) of states (n, fields); the last few
        that were asked for are remembered, as one question asks for them again."""
        states = np.ascontiguousarray(np.asarray(states, np.int64))
        if len(states) > FEW:
            return self._placed(states)
        said = states.tobytes()
        if self._last is None or self._last[0] != said:
            self._last = said, self._placed(states)
        return self._last[1]

    def _placed(self, states: Ints) -> tuple[Ints, Ints, NDArray[np.bool_]]:
        numbers, rows = self.layout.locate(states)
        keys = (numbers << KEY_SHIFT) + rows
        first, last = self._bounds
        at = np.searchsorted(first, keys, side="right") - 1
        inside = (at >= 0) & (numbers >= 0)
        if len(last):
            inside &= keys <= last[at]
        return keys, np.where(inside, at, -1), numbers < 0

    def look(self, states: Ints) -> tuple[Floats, NDArray[np.bool_]]:
        states = np.ascontiguousarray(np.asarray(states, np.int64))
        keys, files, over = self._place(states)
        payoffs = np.zeros((len(states), self.game.players))
        if over.any():
            payoffs[over] = final_payoffs(self.game, states[over])
        rows, jobs = self._by_file(keys, files)
        if sum(len(groups) * self._group_bytes(i) for i, groups, _ in jobs) <= self.most_held:
            self.fetch(((i, n) for i, groups, _ in jobs for n in groups.tolist()), "payoffs")
            for i, groups, at in jobs:
                for number, x, row in self._in_groups(i, groups, at, rows):
                    payoffs[x] = self.group(i, number, "payoffs")[row]
        else:
            shares = [
                (i, share, at)
                for i, groups, at in jobs
                for share in np.array_split(groups, -(-len(groups) // GROUPS_A_JOB))
            ]
            with ThreadPoolExecutor(cores()) as pool:
                for done in [pool.submit(self._through, *one, rows, payoffs) for one in shares]:
                    done.result()
        swapped = self.layout.swapped(states) & (files >= 0)
        payoffs[swapped] = payoffs[swapped][:, ::-1]
        return payoffs, over | (files >= 0)

    def _group_bytes(self, i: int) -> int:
        """Bytes of the payoffs of a row group of file i, decoded."""
        size = np.dtype(self.layout.payoff_type).itemsize * self.game.players
        return min(self.entries[i].rows, self.entries[i].row_group_rows) * size

    def _by_file(self, keys: Ints, files: Ints) -> tuple[Ints, list[tuple[int, Ints, Ints]]]:
        """(rows in their files (n,), of each file met: its index, the row groups asked for, and
        which of the n lie there, by row); as `_place` gives the keys and the files."""
        order = np.lexsort((keys, files))
        order = order[files[order] >= 0]
        rows = keys - (self._bounds[0][files] if self.entries else 0)
        jobs = []
        for at in _runs(order, files[order]):
            i = int(files[at[0]])
            jobs.append((i, np.unique(rows[at] // self.entries[i].row_group_rows), at))
        return rows, jobs

    def _in_groups(
        self, i: int, groups: Ints, at: Ints, rows: Ints
    ) -> Iterator[tuple[int, Ints, Ints]]:
        """(row group, those of `at` in it, their rows in it); `at` is sorted by row."""
        size = self.entries[i].row_group_rows
        of = rows[at] // size
        for number in groups.tolist():
            first, last = np.searchsorted(of, [number, number + 1])
            x = at[first:last]
            yield number, x, rows[x] - number * size

    def _through(self, i: int, groups: Ints, at: Ints, rows: Ints, payoffs: Floats) -> None:
        """Fill the payoffs of those in `at` that lie in many row groups of file i: a thread's
        share, with a file of its own, nothing remembered."""
        size = self.entries[i].row_group_rows
        of = rows[at] // size
        file = SealedFile(self.storage, self.folder, self.entries[i], self.file(i).about)
        for span in np.array_split(groups, -(-len(groups) // GROUPS_A_READ)):
            first, last = np.searchsorted(of, [span[0], span[-1] + 1])
            wanted = at[first:last]
            position = np.searchsorted(span, of[first:last]) * size + rows[wanted] % size
            for c, column in enumerate(file.read_all(span.tolist(), self.columns).columns):
                payoffs[wanted, c] = numbers_of(column)[position]
        file.close()

    def told_within(self, states: Ints) -> Floats:
        told = np.array([entry.told for entry in self.entries])
        return told[self._place(states)[1]]

    # --- decisions ---------------------------------------------------------------------------

    def best_codes(self, states: Ints) -> NDArray[np.int16]:
        found = np.full(len(states), -1, np.int16)
        if not self.layout.best_names or not len(states):
            return found
        keys, files, _ = self._place(states)
        if len(states) <= FEW:  # a question's: without the sorting
            for k in np.flatnonzero(files >= 0).tolist():
                entry = self.entries[files[k]]
                number, row = divmod(int(keys[k]) - entry.first_key, entry.row_group_rows)
                found[k] = self.group(int(files[k]), number, "best")[row]
            return found
        rows, jobs = self._by_file(keys, files)
        self.fetch(((i, n) for i, groups, _ in jobs for n in groups.tolist()), "best")
        for i, groups, at in jobs:
            for number, x, row in self._in_groups(i, groups, at, rows):
                found[x] = self.group(i, number, "best")[row]
        return found

    # --- rows --------------------------------------------------------------------------------

    def scan(self) -> Iterator[Rows]:
        for entry in self.entries:
            yield from self.scan_file(entry)

    def scan_file(self, entry: FileEntry) -> Iterator[Rows]:
        """The rows of one file, a row group at a time."""
        file = SealedFile(self.storage, self.folder, entry)
        tier, first = self.tier_of_number[entry.tier], start_row(entry)
        for number in range(file.groups):
            read = file.read(number, [*self.columns, "best"])
            values = number_rows(read, self.columns)
            codes, labels = labelled(read.column("best"))
            start = first + number * entry.row_group_rows
            at = partial(self._at, tier, start)
            yield Rows(at, values, codes, labels)
        file.close()

    def _at(self, tier: Any, start: int, rows: Ints) -> Ints:
        return self.layout.states_at(tier, start + rows)

    def stands_alike(self, entry: FileEntry, other: TierPart) -> bool:
        """Whether the rows of a file are the same states, in people's units, as those of the same
        number in another full table."""
        block = entry.row_group_rows
        mine, theirs = self.tier_of_number[entry.tier], other.tier_of_number[entry.tier]
        start = start_row(entry)
        for at in range(start, start + entry.rows, block):
            stop = min(at + block, start + entry.rows)
            rows = [part.layout.state_rows(tier, at, stop) for part, tier in
                    ((self, mine), (other, theirs))]  # fmt: skip
            if rows[0].keys() != rows[1].keys() or not all(
                _equal(rows[0][name], rows[1][name]) for name in rows[0]
            ):
                return False
        return self.layout.tier_fields(mine) == other.layout.tier_fields(theirs)


def _equal(one: NDArray[np.int32] | Coded, other: NDArray[np.int32] | Coded) -> bool:
    if isinstance(one, Coded) and isinstance(other, Coded):
        return one.labels == other.labels and np.array_equal(one.codes, other.codes)
    return np.array_equal(np.asarray(one), np.asarray(other))


def _runs(items: Ints, labels: Ints) -> Iterable[Ints]:
    """The runs of `items` over equal neighbours in `labels`."""
    if len(items):
        yield from np.split(items, np.flatnonzero(np.diff(labels)) + 1)
