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
from cluster.store import KEY_SHIFT, tier_file
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
    def _entries(self) -> list[tuple[str, FileEntry]]:
        """The files by ascending key."""
        return sorted(self.manifest.files.items(), key=lambda item: item[1].first_key)

    @cached_property
    def _bounds(self) -> tuple[Ints, Ints]:
        """The first and the last key of each file."""
        keys = [(entry.first_key, entry.last_key) for _, entry in self._entries]
        first, last = np.array(keys, np.int64).reshape(-1, 2).T
        return first, last

    # --- payoffs -----------------------------------------------------------------------------

    def holds(self, states: Ints) -> NDArray[np.bool_]:
        return self._place(states)[1] >= 0

    def why_outside(self, state: Ints) -> str | None:
        return self.game.why_outside(state)

    def _place(self, states: Ints) -> tuple[Ints, Ints, NDArray[np.bool_]]:
        """(key, file's index or -1, whether the game is over) of states (n, fields)."""
        numbers, rows = self.game.locate(states)
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
        order = np.lexsort((keys, files))
        order = order[files[order] >= 0]
        rows = keys - (self._bounds[0][files] if len(self._entries) else 0)
        jobs = [(int(files[at[0]]), at) for at in _runs(order, files[order])]
        groups = [np.unique(rows[at] // self._group_rows(i)) for i, at in jobs]
        if sum(map(len, groups)) <= CACHED_GROUPS:
            for (i, at), wanted in zip(jobs, groups, strict=True):
                self._look(i, wanted, at, rows, payoffs)
        else:
            parts = [
                (i, part, at)
                for (i, at), wanted in zip(jobs, groups, strict=True)
                for part in np.array_split(wanted, -(-len(wanted) // GROUPS_A_JOB))
            ]
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                for done in [
                    pool.submit(self._look_through, *part, rows, payoffs) for part in parts
                ]:
                    done.result()
        swapped = self.game.swapped(states) & (files >= 0)
        payoffs[swapped] = payoffs[swapped][:, ::-1]
        return payoffs, over | (files >= 0)

    def _group_rows(self, i: int) -> int:
        return self._entries[i][1].row_group_rows

    def _look(self, i: int, groups: Ints, at: Ints, rows: Ints, payoffs: Floats) -> None:
        """Fill payoffs[at] from few row groups of file i, which are remembered."""
        size = self._group_rows(i)
        for group in groups:
            key = (i, int(group))
            if key not in self._groups:
                columns = self._decode(self._file(i), i, [int(group)])
                self._groups[key] = np.stack(columns, axis=1)
                if len(self._groups) > CACHED_GROUPS:
                    self._groups.popitem(last=False)
            self._groups.move_to_end(key)
            inside = rows[at] // size == group
            payoffs[at[inside]] = self._groups[key][rows[at[inside]] % size]

    def _look_through(self, i: int, groups: Ints, at: Ints, rows: Ints, payoffs: Floats) -> None:
        """Fill the payoffs of those in `at` (sorted by row) that lie in many row groups of file i.

        A thread's share: a file handle of its own, several groups a read, nothing remembered.
        """
        size = self._group_rows(i)
        of = rows[at] // size
        with self._open(i) as file:
            for span in np.array_split(groups, -(-len(groups) // GROUPS_A_READ)):
                first, last = np.searchsorted(of, [span[0], span[-1] + 1])
                wanted = at[first:last]
                position = np.searchsorted(span, of[first:last]) * size + rows[wanted] % size
                for c, column in enumerate(self._decode(file, i, span.tolist())):
                    payoffs[wanted, c] = column[position]

    def _decode(
        self, file: pq.ParquetFile, i: int, groups: list[int]
    ) -> list[NDArray[np.floating[Any]]]:
        """The payoffs in some row groups, behind one another: a column a player."""
        try:
            read = file.read_row_groups(groups, columns=self.manifest.payoffs, use_threads=False)
        except (OSError, pa.ArrowException, IndexError) as error:
            raise CorruptTableError(f"{self._path(i)}: {_line(error)}") from None
        return [column.to_numpy() for column in read.columns]

    def _path(self, i: int) -> Path:
        return tier_file(self.path, self._entries[i][0])

    def _open(self, i: int) -> pq.ParquetFile:
        try:
            return pq.ParquetFile(self._path(i))
        except (OSError, pa.ArrowException) as error:
            raise CorruptTableError(f"{self._path(i)}: {_line(error)}") from None

    def _file(self, i: int) -> pq.ParquetFile:
        if i not in self._files:
            self._files[i] = self._open(i)
        return self._files[i]

    # --- rows --------------------------------------------------------------------------------

    def draw(self, count: int, seed: int) -> Iterator[Ints]:
        ends = np.cumsum([entry.rows for _, entry in self._entries])
        rng = np.random.default_rng(seed)
        drawn = np.sort(rng.integers(0, int(ends[-1]), count)) if len(ends) else np.empty(0, int)
        # One pass over the table for a sample of any usual size: children lie all over it.
        for part in np.array_split(drawn, max(1, -(-len(drawn) // (4 * PIECE)))):
            owner = np.searchsorted(ends, part, side="right")
            states = [
                self._states(int(i), part[owner == i] - (ends[i] - self._entries[i][1].rows))
                for i in np.unique(owner)
            ]
            if states:
                yield np.concatenate(states)

    def all_states(self) -> Iterator[Ints]:
        for i, (_, entry) in enumerate(self._entries):
            for start in range(0, entry.rows, PIECE):
                yield self._states(i, np.arange(start, min(start + PIECE, entry.rows)))

    def _states(self, i: int, rows: Ints) -> Ints:
        """The states at rows of file i."""
        entry = self._entries[i][1]
        start = entry.first_key - (entry.tier << KEY_SHIFT)
        return self.game.states_at(self._tiers[entry.tier], start + rows)

    @cached_property
    def _tiers(self) -> dict[int, Any]:
        return self.game.tier_of_number()


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
