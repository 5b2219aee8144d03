"""A part of a table: rows of states, in files in a folder or in memory.

Every state of a part has a key, and rows are sorted by key (`cluster.answers.part_kinds`). Many
states are looked up in the order of their keys, so each row group is decoded once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from luckbase.cluster.store.format import labelled, payoff_columns
from luckbase.cluster.store.manifest import FileEntry, Manifest, file_error
from luckbase.cluster.store.parquet import Columns, RowGroups, TableFile
from luckbase.cluster.store.storage import Storage
from luckbase.solver.errors import CorruptTableError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.game import Game
from luckbase.solver.game.rules import SIMULTANEOUS
from luckbase.solver.search.bellman import (
    ActionValues,
    chosen,
    evaluate,
    final_payoffs,
    margins_of,
    payoffs_of,
    sums_differ,
)
from luckbase.solver.search.expand import Expanded, expand
from luckbase.solver.search.keys import Numbering, fits, pack_all

FETCHED = 1000
"""Maximum number of states that are looked up in a store before they are needed."""
PIECE = 50_000
"""Number of states yielded at a time; each has about 30 children."""
ROUNDING = 1e-11
"""Maximum rounding difference between the sums of two tied actions."""


@dataclass(frozen=True)
class Rows:
    """The rows of n states."""

    file: Ints  # int64 (n,), the number of the file; -1 for a state without a row
    values: Floats  # float (n, players), 0 if not known
    known: NDArray[np.bool_]  # bool (n,), whether the payoffs are known: stored, or of an end
    best: NDArray[np.int16]
    """int16 (n,), indices into `Part.action_names`; -1 if no player decides or nothing is
    decided."""
    margin: Floats  # float64 (n,), NaN without a choice, and in a full table, which has none


COLUMNS: Set[str] = frozenset(("values", "best", "margin"))
"""The columns of `Rows` that are stored."""


def distance(numbers: Floats, others: Floats) -> Floats:
    """Return the differences (n,) of numbers: 0 if both are NaN, infinite if one is."""
    distances = np.abs(numbers - others)
    same = np.isnan(numbers) & np.isnan(others)
    return np.where(same, 0.0, np.where(np.isnan(distances), np.inf, distances))


def named(codes: NDArray[Any], labels: Sequence[str]) -> list[str | None]:
    """Return the labels of codes (n,); None for -1."""
    names = [*labels, None]
    return [names[code] for code in codes.tolist()]


class Batch(NamedTuple):
    """Consecutive rows of a part."""

    rows: Any  # a pyarrow table
    before: int  # number of rows of the part before the first one
    states: Callable[[Ints], Ints]  # returns the states (k, fields) at indices (k,)


MayHold = Callable[[Mapping[str, tuple[Any, Any]]], bool]
"""may_hold(column -> (minimum, maximum)) returns True if such rows may match."""
GroupRows = list[tuple[int, int, Ints, NDArray[Any]]]
"""Row groups that may have some of n states: (file, row group, indices, their keys or rows)."""


class Part(ABC):
    """One part of an open table. Not thread-safe."""

    dense = False
    """True for the full table, even if it is incomplete."""
    has: Set[str] = COLUMNS
    """The columns that it has."""

    def __init__(
        self, storage: Storage, where: Path, manifest: Manifest, name: str, game: Game
    ) -> None:
        """where: the table, for messages. name: of the part (`cluster.store.manifest`)."""
        self.where, self.manifest, self.name, self.game = where, manifest, name, game
        self.error = manifest.error(name)
        """A bound on the error of each payoff."""
        self.tolerance = game.tie_tolerance + 2 * self.error
        """Actions closer than this cannot be distinguished by stored payoffs."""
        self.columns = payoff_columns(game) if self.paid else []
        """The names of the payoff columns."""
        self.entries = manifest.of_part(name)
        """Its files, by first key."""
        self.groups = RowGroups(storage, where, self.entries, self.decode)
        self.action_names: list[str] = []
        """The actions read so far; decoded best actions are indices into this list."""
        self._codes: dict[tuple[str, ...], NDArray[np.int16]] = {}

    @property
    def paid(self) -> bool:
        """True if it has payoffs, not only decisions."""
        return "values" in self.has

    @property
    def schema(self) -> Any:
        """The columns of its rows and their types, for a part with files."""
        return self.groups.file(0).schema

    @property
    def rows(self) -> int:
        return sum(entry.rows for entry in self.entries)

    # --- what each kind of part implements ---------------------------------------------------

    @abstractmethod
    def keys(self, states: Ints) -> NDArray[Any]:
        """Return numbers (n,) by which the part orders the states (n, fields)."""

    @abstractmethod
    def stored(self, states: Ints, names: Set[str] = COLUMNS) -> Rows:
        """Look up those of these columns that the part has, of canonical states (n, fields).
        Payoffs of terminal states, which have no row, come from the rules."""

    @abstractmethod
    def files_of(self, states: Ints) -> Ints:
        """Return the numbers (n,) of the files with the rows of canonical states (n, fields); -1
        for a state that has none."""

    @abstractmethod
    def decode(self, file: TableFile, number: int, names: Set[str]) -> Columns:
        """Return at least these columns of a row group, of those that the part has, and for a
        search "key"."""

    @abstractmethod
    def states_at(self, i: int, rows: Ints) -> Ints:
        """Return the states (n, fields) at rows (n,) of file i."""

    def constants(self, entry: FileEntry) -> dict[str, tuple[Any, Any]]:
        """Return the columns that are constant in a file, as spans."""
        return {}

    def place(self, group: Columns, keys: NDArray[Any]) -> tuple[Any, NDArray[Any]]:
        """Return the indices of keys (k,) that are in a row group, and their rows."""
        return slice(None), keys

    # --- of states ---------------------------------------------------------------------------

    def read(self, n: int, requests: GroupRows, names: Set[str]) -> Rows:
        """Return the rows of n states that are in these row groups."""
        rows = Rows(
            np.full(n, -1), np.zeros((n, self.game.players)), np.zeros(n, bool),
            np.full(n, -1, np.int16), np.full(n, np.nan),
        )  # fmt: skip
        names = names & self.has

        def use(k: int, group: Columns) -> None:
            i, _, at, keys = requests[k]
            present, places = self.place(group, keys)
            at = at[present]
            rows.file[at] = i
            for name in names:
                getattr(rows, name)[at] = group[name][places]

        if names:
            self.groups.each([(i, number) for i, number, *_ in requests], names, use)
            rows.known[:] = (rows.file >= 0) & self.paid
        return rows

    def end(self, rows: Rows, states: Ints, at: Ints) -> None:
        """Set the payoffs of the terminal states at indices (k,)."""
        rows.values[at] = final_payoffs(self.game, states[at])
        rows.known[at] = True

    def get_many(self, states: Ints) -> tuple[Floats, NDArray[np.bool_]]:
        """Return the payoffs, float64 (n, players), of canonical states (n, fields), and a mask
        (n,) of known ones."""
        rows = self.stored(states, {"values"})
        return rows.values, rows.known

    def holds(self, states: Ints) -> NDArray[np.bool_]:
        """Return a mask (n,) of the canonical states (n, fields) that have a row."""
        holds: NDArray[np.bool_] = self.files_of(states) >= 0
        return holds

    def errors_of(self, states: Ints) -> Floats:
        """Return error bounds (n,) of the payoffs of states (n, fields), by their files."""
        bounds = np.array([entry.error for entry in self.entries])
        same = len(np.unique(bounds)) == 1
        return np.full(len(states), bounds[0]) if same else bounds[self.files_of(states)]

    def fetch(self, states: Ints) -> None:
        """Look up canonical states (n, fields) in an object store, if they are few: then later
        lookups of some of them wait for no request."""
        if self.groups.storage.anywhere and len(states) <= FETCHED:
            self.stored(states)

    def children(self, edges: Expanded) -> Floats:
        """Return the payoffs (m, players) of the children of expanded states (n,), in the order of
        edges. Raises CorruptTableError if a child is missing."""
        at = np.flatnonzero(np.repeat(~edges.terminal, np.diff(edges.first)))
        of_children = np.zeros((len(edges.children), self.game.players))
        states, lookup = edges.children[at], self.get_many
        payoffs, known = once(self.game, lookup, states)
        if self.dense and not known.all():  # one step of the rules, for simultaneous moves below
            each = partial(once, self.game, lookup)
            payoffs, known = backup(self.game, each, states, self.tolerance)
        if not known.all():
            lost = self.game.say(states[np.flatnonzero(~known)[0]])
            raise CorruptTableError(
                f"{self.where}: {lost} is not there, and a parent of it is; luckbase solve --force "
                "of its board makes it again"
            )
        of_children[at] = payoffs
        return of_children

    def taken(self, rows: Rows, q: ActionValues, actors: Ints, states: Ints) -> Ints:
        """Return the rows (n,) of `q` of the stored best actions of expanded states (n, fields);
        the earliest of tied actions if none is stored.

        Raises CorruptTableError for an action that its state does not have.
        """
        named = {self.game.action_name(a): a for a in set(q.actions.tolist()) if a >= 0}
        numbers = [named.get(name, -2) for name in self.action_names]
        best = np.array([*numbers, -1], np.int64)[rows.best]
        chosen_rows = chosen(q, actors, self.tolerance)
        stored = np.flatnonzero(q.actions == best[q.states])
        chosen_rows[q.states[stored]] = stored
        wrong = np.flatnonzero((best != -1) & (q.actions[chosen_rows] != best))
        if len(wrong):
            state = self.game.say(states[wrong[0]])
            raise CorruptTableError(
                f"{self.where}: names an action at {state} that it does not allow"
            )
        return chosen_rows

    def residuals(self, states: Ints) -> Floats:
        """Return the Bellman residuals (n,) of solved states (n, fields): the largest difference
        over players between the stored payoff and the payoff by the rules from stored children.

        Also the error of a wrong best action, or of a wrong margin. In a search, any of tied
        actions counts as right.
        """
        rows, edges = self.stored(states), expand(self.game, states)
        q = evaluate(edges, self.children(edges))
        payoffs = q.of_actors(edges.actors)
        short = np.maximum.reduceat(payoffs, q.first[:-1])[q.states] - payoffs
        apart = np.abs(q.values - rows.values[q.states]).max(axis=1)
        at = self.taken(rows, q, edges.actors, states)
        worse, tie = short[at], self.game.tie_tolerance
        if self.dense:
            off = apart[at] - np.minimum(worse, tie)  # a kernel may have what the tied one pays
            residuals = np.maximum(0.0, np.maximum(off, worse - tie))
        else:
            tie = self.tolerance + ROUNDING
            off = np.minimum.reduceat(np.where(short <= tie, apart, np.inf), q.first[:-1])
            residuals = np.maximum(off, np.where(worse <= tie, 0.0, worse))
            off = distance(margins_of(q, edges.actors, at), rows.margin) / 2
            residuals = np.maximum(residuals, off)
        both = np.flatnonzero(edges.kinds == SIMULTANEOUS)
        if len(both):
            exact = payoffs_of(edges.kinds, edges.actors, q, self.tolerance)[both]
            off = np.abs(exact - rows.values[both]).max(axis=1)
            residuals[both] = np.maximum(off, sums_differ(q, both) / 2)
        return np.asarray(residuals)

    # --- all rows ----------------------------------------------------------------------------

    def codes_of(self, column: Any) -> NDArray[np.int16]:
        """Return best actions as indices into `action_names`, which grows; -1 for none."""
        codes, labels = labelled(column)
        if labels not in self._codes:
            self.action_names += [label for label in labels if label not in self.action_names]
            known = [self.action_names.index(label) for label in labels]
            self._codes[labels] = np.array([*known, -1], np.int16)
        numbers = self._codes[labels]
        if (numbers[:-1] == np.arange(len(labels))).all():
            return codes  # unchanged: a lookup would take longer than everything else
        return np.take(numbers, codes, mode="wrap")

    def batches(
        self, columns: Collection[str] | None, may_hold: MayHold = lambda _: True
    ) -> Iterator[Batch]:
        """Yield all rows, one row group at a time.

        columns: only these, if they exist.
        may_hold: skips files and row groups by the spans of their columns.
        """
        before = 0
        for i, entry in enumerate(self.entries):
            if may_hold(self.constants(entry)):
                file = self.groups.open(entry)
                present = file.schema.names
                if not {*self.columns} <= {*present}:
                    raise file_error(self.groups.storage, file.path, "it lacks a column")
                names = [name for name in present if columns is None or name in columns]
                numbers = [n for n in range(file.groups) if may_hold(file.spans(n))]
                for number, rows in zip(numbers, file.read_all(numbers, names), strict=True):
                    start = number * entry.row_group_rows
                    yield self.batch(i, start, before, rows)
            before += entry.rows

    def batch(self, i: int, start: int, before: int, rows: Any) -> Batch:
        """Return the rows of file i from row `start`, after `before` rows of other files."""
        return Batch(rows, before + start, lambda at: self.states_at(i, start + np.asarray(at)))

    def draw(self, count: int, seed: int) -> Iterator[Ints]:
        """Yield about `count` distinct states, drawn uniformly, in key order, in pieces; all states
        if there are no more."""
        drawn = range(self.rows) if count >= self.rows else drawn_rows(self.rows, count, seed)
        # Children are spread over the table, so a sample of any usual size takes one pass.
        for start in range(0, len(drawn), 4 * PIECE):
            yield self._states_at(np.asarray(drawn[start : start + 4 * PIECE]))

    def _states_at(self, rows: Ints) -> Ints:
        """Return the states (k, fields) at rows (k,) of the part, k > 0."""
        ends = np.cumsum([0, *(entry.rows for entry in self.entries)])
        files = np.searchsorted(ends, rows, side="right") - 1
        return np.concatenate(
            [self.states_at(i, rows[files == i] - ends[i]) for i in np.unique(files).tolist()]
        )


def drawn_rows(total: int, count: int, seed: int) -> Ints:
    """Draw `count` distinct rows of `total` uniformly, ascending; all rows if there are no more."""
    if count >= total:
        return np.arange(total)
    rng = np.random.default_rng(seed)
    if 2 * count > total:
        return np.sort(rng.choice(total, count, replace=False))
    rows = np.unique(rng.integers(0, total, count))
    while len(rows) < count:  # replace duplicates
        rows = np.union1d(rows, rng.integers(0, total, count - len(rows)))
    return rows


def by_group(files: Ints, groups: Ints, at: Ints, keys: NDArray[Any]) -> GroupRows:
    """Group n keys by row group. files, groups, at, keys: (k,), sorted by file and row group; `at`
    are the indices of the keys."""
    first = np.flatnonzero(np.diff((files << 32) + groups, prepend=-1))
    ends = pairwise([*first.tolist(), len(at)])
    each = zip(files[first].tolist(), groups[first].tolist(), ends, strict=True)
    return [(i, number, at[a:b], keys[a:b]) for i, number, (a, b) in each]


# --- payoffs of any states -----------------------------------------------------------------------

Lookup = Callable[[Ints], tuple[Floats, NDArray[np.bool_]]]
"""lookup(states (n, fields)) returns payoffs (n, players) and a mask (n,) of known ones."""
FEW = 64
"""Up to this many states are looked up directly, because removing duplicates would take longer."""


def once(game: Game, lookup: Lookup, states: Ints) -> tuple[Floats, NDArray[np.bool_]]:
    """Look up each distinct state only once: neighbours often share children."""
    if len(states) <= FEW or not fits(game.strides, states).all():
        return lookup(states)
    numbering = Numbering()
    numbers = numbering.enter(pack_all(game.strides, np.ascontiguousarray(states)))
    first = np.empty(numbering.count, np.int64)
    first[numbers[::-1]] = np.arange(len(states) - 1, -1, -1)
    payoffs, known = lookup(states[first])
    return payoffs[numbers], known[numbers]


def backup(
    game: Game, lookup: Lookup, states: Ints, tolerance: float
) -> tuple[Floats, NDArray[np.bool_]]:
    """As `lookup`, and also compute states whose children are all known, by one step of the rules.
    Of two actions that are closer than `tolerance`, the earlier one is taken."""
    payoffs, known = lookup(states)
    missing = np.flatnonzero(~known)
    if len(missing):
        edges = expand(game, np.ascontiguousarray(np.asarray(states)[missing]))
        below, children_known = lookup(edges.children)
        fine = np.logical_and.reduceat(children_known, edges.first[:-1])
        q = evaluate(edges, below)
        values = payoffs_of(edges.kinds, edges.actors, q, tolerance)
        payoffs[missing[fine]] = values[fine]
        known = known.copy()
        known[missing[fine]] = True
    return payoffs, known
