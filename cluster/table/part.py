"""A part of a table: what holds states and answers, on disk or in memory.

A part of tiers (`cluster.table.tiers`) finds a row by its number, a part of a search
(`cluster.table.keyed`) by its key. Those in files read sealed row groups and remember a few.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from luckbase.cluster.machine import cores
from luckbase.cluster.table.actions import EveryAction
from luckbase.cluster.table.format import payoff_columns
from luckbase.cluster.table.ledger import FileEntry, Ledger
from luckbase.cluster.table.parquet import SealedFile, numbers_of
from luckbase.cluster.table.storage import Storage
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.game import Game
from luckbase.solver.search.bellman import Expanded, evaluate, expand, most_residual, payoffs_of
from luckbase.solver.search.keys import Numbering, fits, pack_all

CACHED_BYTES = 640 << 20
"""Of decoded row groups that a part remembers, 0.1 to 2 MB each: the payoffs of 50 million states
of three players. A question that needs more at once reads them and remembers none."""
MEMORY = "memory"
"""Where tables stand that are in no folder."""
GROUPS_A_JOB = 16
"""Row groups that a thread decodes at a time."""
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
    each payoff's. dense:
    whether it is the full table, or as much of it as is solved.
    """

    dense: bool = False

    def __init__(self, where: object, name: str, game: Game, error: float) -> None:
        self.where, self.name, self.game, self.error = where, name, game, error
        self.action_names: list[str] = []
        self._codes: dict[tuple[str, ...], NDArray[np.int16]] = {}

    def codes_of(self, labels: tuple[str, ...]) -> NDArray[np.int16]:
        """Labels as indices into `action_names`, which grows by what it has not; -1 behind them."""
        if labels not in self._codes:
            new = [label for label in labels if label not in self.action_names]
            self.action_names += new
            codes = [self.action_names.index(label) for label in labels]
            self._codes[labels] = np.array([*codes, -1], np.int16)
        return self._codes[labels]

    def named(self, codes: NDArray[np.int16]) -> list[str | None]:
        """The names of codes (n,), None for -1."""
        names = [*self.action_names, None]
        return [names[code] for code in codes.tolist()]

    def close(self) -> None:  # noqa: B027
        """Close files and forget what was decoded; in memory there are none."""

    @property
    @abstractmethod
    def rows(self) -> int:
        """How many states have a row."""

    @property
    def precision(self) -> float:
        """As `error`, but for what hangs on decisions that could not be told."""
        return self.error

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

    @abstractmethod
    def best_of(self, states: Ints) -> tuple[NDArray[np.int16], Floats]:
        """Of canonical states that the part holds: the best actions (n,), into `action_names`, -1
        where nobody decides; and the margins (n,), NaN where there is no choice."""

    @abstractmethod
    def best_codes(self, states: Ints) -> NDArray[np.int16]:
        """(n,) the best actions of canonical states that the part holds, as they are stored, into
        `action_names`; -1 where nobody decides."""

    def stored_best(self, states: Ints) -> list[str | None]:
        """The same by name."""
        return self.named(self.best_codes(states))

    @abstractmethod
    def places(self, states: Ints) -> Ints:
        """(n,) numbers by which states that the part holds stand in its order."""

    @abstractmethod
    def residuals(self, states: Ints) -> Floats:
        """(n,) |payoff by the rules over the stored children - stored payoff|, the largest over
        players, of states (n, fields) of the part."""

    def told_within(self, states: Ints) -> Floats:
        """(n,) `precision` of each of the states (n, fields) of the part, as its file says."""
        return np.full(len(states), self.precision)

    def most_residuals(self, states: Ints) -> Floats:
        """(n,) the most that `residuals` are where the part keeps what its files promise: a file's
        promise holds for what it was made from, too. What the rules cut off shows in none."""
        return most_residual(self.game, self.told_within(states) - self.game.cut_error)

    @abstractmethod
    def scan(self) -> Iterator[Rows]:
        """All rows in the order of the files, in pieces of row groups."""

    @abstractmethod
    def batches(self, columns: Collection[str] | None, may_hold: MayHold) -> Iterator[Batch]:
        """The rows with their columns (those of `columns` that there are), a row group at a time,
        as far as the spans of columns do not rule it out."""

    @abstractmethod
    def told(self, batch: Batch, at: Ints) -> EveryAction:
        """`every_action` of the states in rows `at` of a batch, whose columns that are `stored` it
        has."""

    @property
    def stored(self) -> list[str]:
        """The columns of a batch from which `told` works."""
        return [*self.columns, "best"]

    @abstractmethod
    def empty(self) -> Any:
        """A pyarrow table of no rows, with all columns; None where there is nothing."""

    @abstractmethod
    def draw(self, count: int, seed: int) -> Iterator[Ints]:
        """About `count` different states that were solved, drawn evenly, in key order, in pieces;
        all where there are no more."""

    @abstractmethod
    def all_states(self) -> Iterator[Ints]:
        """Every state whose payoff the part has from its children, in key order, in pieces."""


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
        self._held, self.most_held = 0, CACHED_BYTES

    def close(self) -> None:
        for file in self._files.values():
            file.close()
        self._files.clear()
        self._groups.clear()
        self._held = 0

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
            self._keep(key, self.decode(self.file(i), number, kind))
        self._groups.move_to_end(key)
        return self._groups[key]

    def _keep(self, key: tuple[int, int, str], decoded: Any) -> None:
        """Remember a row group, and forget those that nobody asked for lately."""
        self._groups[key] = decoded
        self._held += size_of(decoded)
        while self._held > self.most_held and len(self._groups) > 1:
            self._held -= size_of(self._groups.popitem(last=False)[1])

    def fetch(self, wanted: Iterable[tuple[int, int]], kind: str) -> None:
        """Decode what is not remembered of many row groups (file, number), on all cores."""
        missing = [key for key in wanted if (*key, kind) not in self._groups]
        if len(missing) < GROUPS_A_JOB:
            return

        def some(keys: Sequence[tuple[int, int]]) -> list[Any]:
            files = {
                i: SealedFile(self.storage, self.folder, self.entries[i], self.file(i).about)
                for i in dict.fromkeys(i for i, _ in keys)
            }
            found = [self.decode(files[i], number, kind) for i, number in keys]
            for file in files.values():
                file.close()
            return found

        for i in {i for i, _ in missing}:
            self.file(i)  # opened by one thread
        shares = [missing[k : k + GROUPS_A_JOB] for k in range(0, len(missing), GROUPS_A_JOB)]
        with ThreadPoolExecutor(cores()) as pool:
            for keys, decoded in zip(shares, pool.map(some, shares), strict=True):
                for key, one in zip(keys, decoded, strict=True):
                    self._keep((*key, kind), one)

    def constants(self, entry: FileEntry) -> dict[str, tuple[Any, Any]]:
        """The columns that are constant in a file, as spans."""
        return {}

    def batches(self, columns: Collection[str] | None, may_hold: MayHold) -> Iterator[Batch]:
        before = 0
        for entry in self.entries:
            if may_hold(self.constants(entry)):
                file = SealedFile(self.storage, self.folder, entry)
                names = [name for name in file.names if columns is None or name in columns]
                names += [name for name in self.needed if name not in names]
                for number in range(file.groups):
                    if may_hold(file.spans(number)):
                        start = number * entry.row_group_rows
                        read = file.read(number, names)
                        states = partial(self.states_in, entry, start, read)
                        yield Batch(read, before + start, states)
                file.close()
            before += entry.rows

    needed: Sequence[str] = ()
    """Columns by which a row's state is known."""

    @abstractmethod
    def states_in(self, entry: FileEntry, start: int, read: Any, rows: Ints) -> Ints:
        """The states (k, fields) in rows (k,), counted from row `start` of a file, of which `read`
        was read."""

    def empty(self) -> Any:
        return self.file(0).empty() if self.entries else None

    @abstractmethod
    def decode(self, file: SealedFile, number: int, kind: str) -> Any:
        """A row group in the form that answers a `kind` of question."""


def size_of(decoded: Any) -> int:
    """Bytes of what `FilePart.decode` gives."""
    if isinstance(decoded, np.ndarray):
        return decoded.nbytes
    several = decoded.values() if isinstance(decoded, dict) else decoded
    return sum(one.nbytes for one in several if isinstance(one, np.ndarray))


FEW = 64
"""States of which none is looked for twice, as looking for two of a kind would take longer."""


def once(
    game: Game, look: Callable[[Ints], tuple[Floats, NDArray[np.bool_]]], states: Ints
) -> tuple[Floats, NDArray[np.bool_]]:
    """As `look`, each state only once: children of neighbours are often the same."""
    if len(states) <= FEW or not fits(game.bits, states).all():
        return look(states)
    numbering = Numbering()
    numbers = numbering.enter(pack_all(game.bits, np.ascontiguousarray(states)))
    first = np.empty(numbering.count, np.int64)
    first[numbers[::-1]] = np.arange(len(states) - 1, -1, -1)
    payoffs, found = look(states[first])
    return payoffs[numbers], found[numbers]


def lookup_or_backup(
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
    codes = numbers_of(array.indices, -1).astype(np.int16)
    return codes, tuple(str(name) for name in array.dictionary.to_pylist())
