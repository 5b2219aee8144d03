"""A part of a table: what holds states and answers, in files that lie in a folder or in memory.

A part of tiers (`cluster.table.tiers`) finds a row by its number, a part of a search
(`cluster.table.keyed`) by its key. Both read sealed row groups and remember a few
(`cluster.table.parquet.RowGroups`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from luckbase.cluster.table.answer import EveryAction
from luckbase.cluster.table.ledger import FileEntry, Ledger
from luckbase.cluster.table.parquet import (
    RowGroups,
    SealedFile,
    labelled,
    number_rows,
    payoff_columns,
)
from luckbase.cluster.table.storage import Storage
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.game import Game
from luckbase.solver.search.bellman import evaluate, payoffs_of
from luckbase.solver.search.expand import Expanded, expand
from luckbase.solver.search.keys import Numbering, fits, pack_all

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


@dataclass(frozen=True)
class Batch:
    """Rows of a part: `rows`, a pyarrow table of n; before: rows of the part before its first.
    states: gives the states (k, fields) at numbers (k,) below n."""

    rows: Any
    before: int
    states: Callable[[Ints], Ints]


MayHold = Callable[[Mapping[str, tuple[Any, Any]]], bool]
"""may_hold(column -> (least, greatest value)) -> whether such rows may be wanted."""


class Part(ABC):
    """One part of an open table; one thread at a time.

    where: the table, for people. name: of the part (`cluster.table.ledger`). error: the bound on
    each payoff's; precision: as error, but for what hangs on decisions that are too close to
    resolve. dense: whether it is the full table, or as much of it as is solved. groups: its open
    files. action_names: those that were met, into which codes are.
    """

    dense = False
    needed: Sequence[str] = ()
    """Columns by which a row's state is known."""

    def __init__(
        self, storage: Storage, where: Path, ledger: Ledger, name: str, game: Game
    ) -> None:
        self.where, self.ledger, self.name, self.game = where, ledger, name, game
        self.error, self.precision = ledger.error(name), ledger.precision(name)
        self.groups = RowGroups(storage, where, ledger.of_part(name), self.decode)
        self.action_names: list[str] = []
        self._codes: dict[tuple[str, ...], NDArray[np.int16]] = {}

    @property
    def entries(self) -> list[FileEntry]:
        """Its files, by first key; only those that are set, for whoever reads no others."""
        return self.groups.entries

    @entries.setter
    def entries(self, entries: list[FileEntry]) -> None:
        self.groups.entries = entries

    def codes_of(self, labels: tuple[str, ...]) -> NDArray[np.int16]:
        """Labels as indices into `action_names`, which grows by what it has not; -1 behind them."""
        if labels not in self._codes:
            self.action_names += [label for label in labels if label not in self.action_names]
            codes = [self.action_names.index(label) for label in labels]
            self._codes[labels] = np.array([*codes, -1], np.int16)
        return self._codes[labels]

    def named(self, codes: NDArray[np.int16]) -> list[str | None]:
        """The names of codes (n,), None for -1."""
        names = [*self.action_names, None]
        return [names[code] for code in codes.tolist()]

    @property
    def rows(self) -> int:
        """How many states have a row."""
        return sum(entry.rows for entry in self.entries)

    @property
    def tolerance(self) -> float:
        """Actions closer than this can not be told apart from what is stored."""
        return self.game.tie_tolerance + 2 * self.precision

    @cached_property
    def columns(self) -> list[str]:
        """The names of the columns that hold payoffs."""
        return payoff_columns(self.game)

    # --- states ------------------------------------------------------------------------------

    @abstractmethod
    def lookup(self, states: Ints) -> tuple[Floats, NDArray[np.bool_]]:
        """The payoffs (n, players), float64, of canonical states (n, fields), and of which states
        (n,) the part has them; those of states that are over come from the rules."""

    @abstractmethod
    def holds(self, states: Ints) -> NDArray[np.bool_]:
        """(n,) whether the part holds each canonical state (n, fields); not where it is over."""

    @abstractmethod
    def every_action(self, states: Ints, edges: Expanded | None = None) -> EveryAction:
        """What it says of canonical states (n, fields) that the part holds, or that are over, with
        every action; where both choose at once the payoffs alone. edges: of the states, if they are
        expanded already."""

    def actions_of_rows(self, batch: Batch, at: Ints) -> EveryAction:
        """`every_action` of the states in rows `at` of a batch with payoffs and ``best``."""
        return self.every_action(np.ascontiguousarray(batch.states(at)))

    @abstractmethod
    def best_codes(self, states: Ints) -> NDArray[np.int16]:
        """(n,) the best actions of canonical states that the part holds, as they are stored, into
        `action_names`; -1 where nobody decides."""

    def best_of(self, states: Ints) -> tuple[NDArray[np.int16], Floats]:
        """`best_codes`, and the margins (n,), NaN where there is no choice."""
        return self.best_codes(states), self.every_action(states).margins

    @abstractmethod
    def places(self, states: Ints) -> Ints:
        """(n,) numbers by which states that the part holds stand in its order."""

    @abstractmethod
    def residuals(self, states: Ints) -> Floats:
        """(n,) |payoff by the rules over the stored children - stored payoff|, the largest over
        players, of states (n, fields) of the part."""

    @abstractmethod
    def resolved_errors(self, states: Ints) -> Floats:
        """(n,) `precision` of each of the states (n, fields) of the part, as its file says."""

    # --- rows --------------------------------------------------------------------------------

    @abstractmethod
    def decode(self, file: SealedFile, number: int, kind: str) -> Any:
        """A row group in the form that answers a kind of question (`RowGroups`)."""

    @abstractmethod
    def states_in(self, entry: FileEntry, start: int, read: Any, rows: Ints) -> Ints:
        """The states (k, fields) in rows (k,), counted from row `start` of a file, of which `read`
        was read."""

    def constants(self, entry: FileEntry) -> dict[str, tuple[Any, Any]]:
        """The columns that are constant in a file, as spans."""
        return {}

    def batches(
        self, columns: Collection[str] | None, may_hold: MayHold = lambda _: True,
        entries: Sequence[FileEntry] | None = None,
    ) -> Iterator[Batch]:  # fmt: skip
        """The rows of all files, or of these, with their columns (those of `columns` that there
        are), a row group at a time, as far as the spans of columns do not rule it out."""
        before = 0
        for entry in self.entries if entries is None else entries:
            if may_hold(self.constants(entry)):
                with closing(SealedFile(self.groups.storage, self.where, entry)) as file:
                    names = [name for name in file.names if columns is None or name in columns]
                    names += [name for name in self.needed if name not in names]
                    for number in range(file.groups):
                        if may_hold(file.spans(number)):
                            start = number * entry.row_group_rows
                            read = file.read(number, names)
                            states = partial(self.states_in, entry, start, read)
                            yield Batch(read, before + start, states)
            before += entry.rows

    def scan(self, entries: Sequence[FileEntry] | None = None) -> Iterator[Rows]:
        """The payoffs and best actions of all rows, as `batches`."""
        for batch in self.batches([*self.columns, "best"], entries=entries):
            best, labels = labelled(batch.rows.column("best"))
            yield Rows(batch.states, number_rows(batch.rows, self.columns), best, labels)

    def empty(self) -> Any:
        """A pyarrow table of no rows, with all columns; None where there is nothing."""
        return self.groups.file(0).empty() if self.entries else None

    @property
    @abstractmethod
    def sizes(self) -> list[int]:
        """The rows of each run, in key order: a file, or a row group of one."""

    @abstractmethod
    def solved_states(self, i: int, rows: Ints) -> Ints:
        """The states (k, fields) at rows (n,) of run i that were solved from their children."""

    def draw(self, count: int, seed: int) -> Iterator[Ints]:
        """About `count` different states that were solved, drawn evenly, in key order, in pieces;
        all where there are no more."""
        ends = np.cumsum([0, *self.sizes])
        drawn = drawn_rows(int(ends[-1]), count, seed)
        # One pass over the table for a sample of any usual size: children lie all over it.
        for share in np.array_split(drawn, max(1, -(-len(drawn) // (4 * PIECE)))):
            owner = np.searchsorted(ends, share, side="right") - 1
            states = [
                self.solved_states(i, share[owner == i] - ends[i])
                for i in np.unique(owner).tolist()
            ]
            if any(map(len, states)):
                yield np.concatenate(states)

    def all_states(self) -> Iterator[Ints]:
        """Every state whose payoff the part has from its children, in key order, in pieces."""
        for i, rows in enumerate(self.sizes):
            for start in range(0, rows, PIECE):
                states = self.solved_states(i, np.arange(start, min(start + PIECE, rows)))
                if len(states):
                    yield states


def drawn_rows(total: int, count: int, seed: int) -> Ints:
    """`count` different rows of so many, drawn evenly, ascending; all where there are no more."""
    if count >= total:
        return np.arange(total)
    rng = np.random.default_rng(seed)
    if 2 * count > total:
        return np.sort(rng.choice(total, count, replace=False))
    found = np.unique(rng.integers(0, total, count))
    while len(found) < count:  # those that came twice are drawn again
        found = np.union1d(found, rng.integers(0, total, count - len(found)))
    return found


# --- payoffs of any states -----------------------------------------------------------------------

Lookup = Callable[[Ints], tuple[Floats, NDArray[np.bool_]]]
"""lookup(states (n, fields)) -> payoffs (n, players), and of which (n,) there are any."""
FEW = 64
"""States of which none is looked for twice, as looking for two of a kind would take longer."""


def once(game: Game, lookup: Lookup, states: Ints) -> tuple[Floats, NDArray[np.bool_]]:
    """As `lookup`, each state only once: children of neighbours are often the same."""
    if len(states) <= FEW or not fits(game.bits, states).all():
        return lookup(states)
    numbering = Numbering()
    numbers = numbering.enter(pack_all(game.bits, np.ascontiguousarray(states)))
    first = np.empty(numbering.count, np.int64)
    first[numbers[::-1]] = np.arange(len(states) - 1, -1, -1)
    payoffs, found = lookup(states[first])
    return payoffs[numbers], found[numbers]


def lookup_or_backup(
    game: Game, lookup: Lookup, states: Ints, tolerance: float
) -> tuple[Floats, NDArray[np.bool_]]:
    """As `lookup`, and also of states all of whose children it finds: one step of the rules over
    them, the earlier one of two actions that are closer than `tolerance`."""
    payoffs, found = lookup(states)
    missing = np.flatnonzero(~found)
    if len(missing):
        edges = expand(game, np.ascontiguousarray(np.asarray(states)[missing]))
        below, there = lookup(edges.children)
        fine = np.logical_and.reduceat(there, edges.first[:-1])
        q = evaluate(edges, below)
        values = payoffs_of(edges.kinds, edges.actors, q, tolerance)
        payoffs[missing[fine]] = values[fine]
        found = found.copy()
        found[missing[fine]] = True
    return payoffs, found
