"""A part of a table: what holds states and answers, on disk or in memory.

A part of tiers (`cluster.table.dense`) finds a row by its number, a part of a search
(`cluster.table.sparse`) by its key. Those in files read sealed row groups and remember a few.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from luckbase.cluster.table.answer import Answer, Origin
from luckbase.cluster.table.ledger import Ledger
from luckbase.cluster.table.lines import FileEntry
from luckbase.cluster.table.sealed import SealedFile
from luckbase.cluster.table.storage import Storage
from luckbase.cluster.table.write import payoff_columns
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.game import Game
from luckbase.solver.graph.bellman import evaluate, expand, payoffs_of

CACHED_GROUPS = 256
"""Decoded row groups that a part remembers; 0.4 to 2 MB each. More at once are not remembered."""
PIECE = 50_000
"""States that are handed out at a time: some 30 children each."""


@dataclass(frozen=True)
class Rows:
    """Rows as they are stored: n states.

    states: gives the states (k, fields) at numbers (k,) below n. values: float (n, columns). best:
    int16 (n,), into `labels`; -1 where nobody decides. labels: names of actions.
    """

    states: Callable[[Ints], Ints]
    values: Floats
    best: NDArray[np.int16]
    labels: tuple[str, ...]


MayHold = Callable[[Mapping[str, tuple[Any, Any]]], bool]
"""may_hold(column -> (least, greatest value)) -> whether such rows may be wanted."""


class Part(ABC):
    """One part of an open table; one thread at a time.

    where: the table, for people. name: of the part (`cluster.table.lines`). error: the bound on
    each payoff's. bounds: whether there are two payoffs a player, a lower and an upper one.
    """

    bounds: bool = False

    def __init__(self, where: object, name: str, game: Game, error: float) -> None:
        self.where, self.name, self.game, self.error = where, name, game, error

    def close(self) -> None:  # noqa: B027
        """Close files and forget what was decoded; in memory there are none."""

    @property
    @abstractmethod
    def rows(self) -> int:
        """How many states have a row."""

    @property
    def tolerance(self) -> float:
        """Actions closer than this can not be told apart from what is stored."""
        return self.game.tie_tolerance + 2 * self.error

    @cached_property
    def columns(self) -> list[str]:
        """The names of the columns that hold payoffs."""
        return payoff_columns(self.game, bounds=self.bounds)

    # --- states ------------------------------------------------------------------------------

    @abstractmethod
    def look(self, states: Ints) -> tuple[Floats, NDArray[np.bool_]]:
        """The payoffs (n, players), float64, of canonical states (n, fields), and of which states
        (n,) the part has them; those of states that are over come from the rules."""

    @abstractmethod
    def holds(self, states: Ints) -> NDArray[np.bool_]:
        """(n,) whether the part holds each canonical state (n, fields); not where it is over."""

    @abstractmethod
    def answers(self, states: Ints, origin: Origin) -> list[Answer]:
        """The answers to canonical states (n, fields) that the part holds."""

    @abstractmethod
    def best_of(self, states: Ints) -> tuple[list[str | None], Floats]:
        """Of canonical states that the part holds: the best actions, None where nobody decides, and
        the margins (n,), NaN where there is no choice."""

    @abstractmethod
    def stored_best(self, states: Ints) -> list[str | None]:
        """The best actions of canonical states that the part holds, as they are stored."""

    @abstractmethod
    def residuals(self, states: Ints) -> Floats:
        """(n,) |payoff by the rules over the stored children - stored payoff|, the largest over
        players, of states (n, fields) of the part."""

    @abstractmethod
    def scan(self) -> Iterator[Rows]:
        """All rows in the order of the files, in pieces of row groups."""

    @abstractmethod
    def batches(self, columns: Collection[str] | None, may_hold: MayHold) -> Iterator[Any]:
        """The rows as pyarrow tables with their columns (those of `columns` that there are), a row
        group at a time, as far as the spans of columns do not rule it out."""

    @abstractmethod
    def empty(self) -> Any:
        """A pyarrow table of no rows, with all columns; None where there is nothing."""

    @abstractmethod
    def draw(self, count: int, seed: int) -> Iterator[Ints]:
        """About `count` states that were solved, drawn evenly, in key order, in pieces."""

    @abstractmethod
    def all_states(self) -> Iterator[Ints]:
        """Every state whose payoff the part has from its children, in key order, in pieces."""


class FilePart(Part):
    """A part in files of a table's folder."""

    def __init__(
        self, storage: Storage, where: Path, ledger: Ledger, name: str, game: Game
    ) -> None:
        super().__init__(where, name, game, ledger.error(name))
        self.storage, self.folder, self.ledger = storage, where, ledger
        self.entries: list[FileEntry] = ledger.of_part(name)
        self._files: dict[int, SealedFile] = {}
        self._groups: OrderedDict[tuple[int, int, str], Any] = OrderedDict()

    def close(self) -> None:
        for file in self._files.values():
            file.close()
        self._files.clear()
        self._groups.clear()

    @property
    def rows(self) -> int:
        return sum(entry.rows for entry in self.entries)

    def file(self, i: int) -> SealedFile:
        """The open file number i of `entries`."""
        if i not in self._files:
            self._files[i] = SealedFile(self.storage, self.folder, self.entries[i])
        return self._files[i]

    def group(self, i: int, number: int, kind: str) -> Any:
        """What `decode` makes of a row group; remembered."""
        key = (i, number, kind)
        if key not in self._groups:
            self._groups[key] = self.decode(self.file(i), number, kind)
            if len(self._groups) > 2 * CACHED_GROUPS:
                self._groups.popitem(last=False)
        self._groups.move_to_end(key)
        return self._groups[key]

    def constants(self, entry: FileEntry) -> dict[str, tuple[Any, Any]]:
        """The columns that are constant in a file, as spans."""
        return {}

    def batches(self, columns: Collection[str] | None, may_hold: MayHold) -> Iterator[Any]:
        for entry in self.entries:
            if not may_hold(self.constants(entry)):
                continue
            file = SealedFile(self.storage, self.folder, entry)
            names = [name for name in file.names if columns is None or name in columns]
            for number in range(file.groups):
                if may_hold(file.spans(number)):
                    yield file.read(number, names)
            file.close()

    def empty(self) -> Any:
        return self.file(0).empty() if self.entries else None

    @abstractmethod
    def decode(self, file: SealedFile, number: int, kind: str) -> Any:
        """A row group in the form that answers a `kind` of question."""


def worth(
    game: Game,
    look: Callable[[Ints], tuple[Floats, NDArray[np.bool_]]],
    states: Ints,
    tolerance: float,
) -> tuple[Floats, NDArray[np.bool_]]:
    """As `look`, and also of states all of whose children it finds: one step of the rules over
    them, the earlier one of two actions that are closer than `tolerance`."""
    payoffs, found = look(states)
    missing = np.flatnonzero(~found)
    if len(missing):
        edges = expand(game, np.ascontiguousarray(np.asarray(states)[missing]))
        below, there = look(edges.children)
        fine = np.logical_and.reduceat(there, edges.first[:-1])
        q = evaluate(edges, below)
        values = payoffs_of(edges.kinds, edges.actors, q, tolerance)
        payoffs[missing[fine]] = values[fine]
        found = found.copy()
        found[missing[fine]] = True
    return payoffs, found


def first_holding(parts: Sequence[Part], states: Ints) -> Ints:
    """(n,) the first of `parts` that holds each canonical state (n, fields); -1 where none does."""
    states = np.ascontiguousarray(np.asarray(states, np.int64))
    found = np.full(len(states), -1, np.int64)
    for i, part in enumerate(parts):
        left = np.flatnonzero(found < 0)
        if not len(left):
            break
        found[left[part.holds(states[left])]] = i
    return found


def labelled(column: Any) -> tuple[NDArray[np.int16], tuple[str, ...]]:
    """(codes (n,), -1 for null; labels) of a column of names, read dictionary-coded."""
    array = column.combine_chunks() if hasattr(column, "combine_chunks") else column
    if hasattr(array, "num_chunks"):
        array = array.chunk(0)
    indices = array.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int16)
    return indices, tuple(str(name) for name in array.dictionary.to_pylist())
