"""Questions to a full table: fields → key → row group → payoffs.

    >>> with cluster.open_table("results/press-your-luck/1985-02/0f3c…") as table:
    ...     table.probe(states)                       # (n, fields) -> (n, players) float64
    ...     table.ask({"scores": "0,10000,7000", "earned": "0,1,0"}).best
    'pass to 2'

`probe` raises MissingTableError for a state that the table does not hold, `get` gives a default.
One state decodes one row group, which is remembered; many are sorted by key, so each row group is
decoded once.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from cluster.answer import Table
from cluster.manifest import FileEntry, Manifest, read_manifest
from cluster.store import tier_file
from solver import load_tiered_game
from solver.backup import final_payoffs
from solver.board import board_from_canonical
from solver.errors import CorruptTableError
from solver.game import Floats, Ints, TieredGame

CACHED_GROUPS = 256
"""Decoded row groups that a table remembers; 400 kB each. More at once are not remembered."""
GROUPS_A_JOB, GROUPS_A_READ = 256, 8
"""Row groups that a thread takes of a file, and that it decodes at once."""
PIECE = 50_000
"""States that are drawn at a time: some 30 children each."""


class TierTable(Table):
    """A full table: the row of a state is its key."""

    def __init__(self, path: Path, manifest: Manifest) -> None:
        super().__init__(path, manifest)
        self.game: TieredGame[Any] = load_tiered_game(
            board_from_canonical(self.manifest.board, self.manifest.canonical)
        )
        self._files: dict[int, pq.ParquetFile] = {}
        self._groups: OrderedDict[tuple[int, int], Floats] = OrderedDict()

    def close(self) -> None:
        for file in self._files.values():
            file.close()
        self._files.clear()
        self._groups.clear()

    @cached_property
    def _entries(self) -> dict[int, tuple[str, FileEntry]]:
        return {entry.tier: (name, entry) for name, entry in self.manifest.files.items()}

    # --- payoffs -----------------------------------------------------------------------------

    def holds(self, states: Ints) -> NDArray[np.bool_]:
        numbers, _ = self.game.locate(states)
        held: NDArray[np.bool_] = np.isin(numbers, list(self._entries))
        return held

    def why_outside(self, state: Ints) -> str | None:
        return self.game.why_outside(state)

    def look(self, states: Ints) -> tuple[Floats, NDArray[np.bool_]]:
        states = np.ascontiguousarray(np.asarray(states, np.int64))
        numbers, rows = self.game.locate(states)
        payoffs = np.zeros((len(states), self.game.players))
        over = numbers < 0
        if over.any():
            payoffs[over] = final_payoffs(self.game, states[over])
        found = over | np.isin(numbers, list(self._entries))
        order = np.lexsort((rows, numbers))
        order = order[found[order] & ~over[order]]
        jobs = [(self._entries[int(numbers[at[0]])][1], at) for at in _runs(order, numbers[order])]
        groups = [np.unique(rows[at] // entry.row_group_rows) for entry, at in jobs]
        if sum(map(len, groups)) <= CACHED_GROUPS:
            for (entry, at), wanted in zip(jobs, groups, strict=True):
                self._look(entry, wanted, at, rows, payoffs)
        else:
            parts = [
                (entry, part, at)
                for (entry, at), wanted in zip(jobs, groups, strict=True)
                for part in np.array_split(wanted, -(-len(wanted) // GROUPS_A_JOB))
            ]
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                for done in [
                    pool.submit(self._look_through, *part, rows, payoffs) for part in parts
                ]:
                    done.result()
        return payoffs, found

    def _look(self, entry: FileEntry, groups: Ints, at: Ints, rows: Ints, payoffs: Floats) -> None:
        """Fill payoffs[at] from few row groups, which are remembered."""
        for group in groups:
            key = (entry.tier, int(group))
            if key not in self._groups:
                columns = self._decode(self._file(entry), entry, [int(group)])
                self._groups[key] = np.stack(columns, axis=1)
                if len(self._groups) > CACHED_GROUPS:
                    self._groups.popitem(last=False)
            self._groups.move_to_end(key)
            inside = rows[at] // entry.row_group_rows == group
            payoffs[at[inside]] = self._groups[key][rows[at[inside]] % entry.row_group_rows]

    def _look_through(
        self, entry: FileEntry, groups: Ints, at: Ints, rows: Ints, payoffs: Floats
    ) -> None:
        """Fill the payoffs of those in `at` (sorted by row) that lie in many row groups.

        A thread's share: a file handle of its own, several groups a read, nothing remembered.
        """
        size = entry.row_group_rows
        of = rows[at] // size
        with self._open(entry) as file:
            for span in np.array_split(groups, -(-len(groups) // GROUPS_A_READ)):
                first, last = np.searchsorted(of, [span[0], span[-1] + 1])
                wanted = at[first:last]
                position = np.searchsorted(span, of[first:last]) * size + rows[wanted] % size
                for i, column in enumerate(self._decode(file, entry, span.tolist())):
                    payoffs[wanted, i] = column[position]

    def _decode(
        self, file: pq.ParquetFile, entry: FileEntry, groups: list[int]
    ) -> list[NDArray[np.float32]]:
        """The payoffs in some row groups, behind one another: a column a player."""
        try:
            read = file.read_row_groups(groups, columns=self.manifest.payoffs, use_threads=False)
        except (OSError, pa.ArrowException, IndexError) as error:
            raise CorruptTableError(f"{self._path(entry)}: {_line(error)}") from None
        return [column.to_numpy() for column in read.columns]

    def _path(self, entry: FileEntry) -> Path:
        return tier_file(self.path, self._entries[entry.tier][0])

    def _open(self, entry: FileEntry) -> pq.ParquetFile:
        try:
            return pq.ParquetFile(self._path(entry))
        except (OSError, pa.ArrowException) as error:
            raise CorruptTableError(f"{self._path(entry)}: {_line(error)}") from None

    def _file(self, entry: FileEntry) -> pq.ParquetFile:
        if entry.tier not in self._files:
            self._files[entry.tier] = self._open(entry)
        return self._files[entry.tier]

    # --- rows --------------------------------------------------------------------------------

    def draw(self, count: int, seed: int) -> Iterator[Ints]:
        tiers = self.game.tier_of_number()
        entries = sorted(self.manifest.files.values(), key=lambda entry: entry.first_key)
        ends = np.cumsum([entry.rows for entry in entries])
        rng = np.random.default_rng(seed)
        drawn = np.sort(rng.integers(0, int(ends[-1]), count)) if len(ends) else np.empty(0, int)
        # One pass over the table for a sample of any usual size: children lie all over it.
        for part in np.array_split(drawn, max(1, -(-len(drawn) // (4 * PIECE)))):
            owner = np.searchsorted(ends, part, side="right")
            states = [
                self.game.states_at(
                    tiers[entries[i].tier], part[owner == i] - (ends[i] - entries[i].rows)
                )
                for i in np.unique(owner)
            ]
            if states:
                yield np.concatenate(states)

    def all_states(self) -> Iterator[Ints]:
        tiers = self.game.tier_of_number()
        for entry in sorted(self.manifest.files.values(), key=lambda entry: entry.first_key):
            for start in range(0, entry.rows, PIECE):
                rows = np.arange(start, min(start + PIECE, entry.rows))
                yield self.game.states_at(tiers[entry.tier], rows)


def open_table(path: str | os.PathLike[str]) -> Table:
    """Open the table in a directory. Raises MissingTableError, CorruptTableError."""
    manifest = read_manifest(Path(path))
    if manifest.roots is not None:
        from cluster.keytable import KeyTable

        return KeyTable(Path(path), manifest)
    return TierTable(Path(path), manifest)


def _runs(items: Ints, labels: Ints) -> Iterable[Ints]:
    """The runs of `items` over equal neighbours in `labels`."""
    if len(items):
        yield from np.split(items, np.flatnonzero(np.diff(labels)) + 1)


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:150]
