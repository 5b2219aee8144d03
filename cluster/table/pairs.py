"""The states that two tables share, read in pieces, and the cost of decisions that differ
(`Prices`).

States of the table with fewer rows are looked up in the other one. Files with the same states in
the same order are read side by side, several pieces at once on several cores.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from threading import Lock
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from luckbase.cluster.machine import free_memory
from luckbase.cluster.table.format import labelled, number_rows
from luckbase.cluster.table.lookup import Lookup
from luckbase.cluster.table.manifest import FileEntry
from luckbase.cluster.table.parts import Part, Rows, TierPart, lookup_or_backup
from luckbase.cluster.table.storage import in_threads
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.search.bellman import evaluate, final_payoffs
from luckbase.solver.search.expand import expand

R = TypeVar("R")

GROUPS_A_READ = 8
"""Number of row groups decoded at once."""
PIECE_GROUPS = 4
"""Number of row groups read side by side at a time."""
STATES_A_STEP = 8_000
"""Number of states that a thread expands at a time: about 40 edges of 150 bytes each."""
SHARE = 8
"""Each table's tiers may use one part in this many of the free memory."""


class Pair(NamedTuple):
    """n states that both tables have.

    rows: number of rows read from the table with fewer.
    only: number of these that only the first, and only the second table has.
    sides: the n rows of each table.
    tier: all pairs of a tier of the table with fewer rows come together; None without tiers.
    """

    rows: int
    only: tuple[int, int]
    sides: tuple[Rows, Rows]
    tier: int | None = None


Pairs = Iterator[Pair | Callable[[], Pair]]
"""Pairs, or functions that read one, which may be called at any time and concurrently."""


def in_order(pairs: Pairs, work: Callable[[Pair], R], threads: int, reading: Lock) -> Iterator[R]:
    """Yield work(pair) for each pair in order, concurrently. reading: held while reading a pair."""

    def run(pair: Pair | Callable[[], Pair]) -> R:
        return work(pair if isinstance(pair, Pair) else pair())

    def read() -> Pair | Callable[[], Pair] | None:
        with reading:
            return next(pairs, None)

    stream: Pairs = iter(read, None)
    return in_threads(run, stream, threads)


def parts_of(table: Lookup) -> list[Part]:
    """Return the parts that are compared: the full table, or all parts if there is none."""
    if table.full is None:
        return table.parts
    return [part for part in table.parts if part is table.full or part is table.decided]


def rows_of(table: Lookup) -> int:
    """Return the number of rows of these parts."""
    return sum(part.rows for part in parts_of(table))


def all_pairs(first: Lookup, second: Lookup) -> Pairs:
    """Yield every state of the table with fewer rows (of the first if equal)."""
    swapped = rows_of(second) < rows_of(first)
    small, large = (second, first) if swapped else (first, second)
    full = large.full
    entries = full.entries if isinstance(full, TierPart) else []
    alike = {(e.tier, e.first_key, e.rows, e.row_group_rows): e for e in entries}
    for part in parts_of(small):
        if not isinstance(part, TierPart):
            for rows in part.scan():
                yield _look_up((first, second), swapped, rows)
            continue
        for entry in part.entries:
            key = entry.tier, entry.first_key, entry.rows, entry.row_group_rows
            same = alike.get(key) if part.paid else None
            if same is not None and full is not None and part.stands_alike(entry, full):
                files = (part, entry), (full, same)
                yield from _side_by_side(files[::-1] if swapped else files)
            else:
                for rows in part.scan([entry]):
                    yield _look_up((first, second), swapped, rows, entry.tier)


def drawn_pairs(first: Lookup, second: Lookup, sample: int) -> Pairs:
    """Yield states drawn from the table with fewer rows, with a fixed seed."""
    swapped = rows_of(second) < rows_of(first)
    small = second if swapped else first
    for states in small.draw(sample, 0):
        yield _look_up((first, second), swapped, _rows(small, states))


# --- side by side --------------------------------------------------------------------------------

File = tuple[TierPart, FileEntry]


def _side_by_side(files: tuple[File, File]) -> Pairs:
    entry = files[0][1]
    groups = -(-entry.rows // entry.row_group_rows)
    for part, same in files:
        part.groups.file(part.entries.index(same))  # before threads share it
    for start in range(0, groups, PIECE_GROUPS):
        span = range(start, min(start + PIECE_GROUPS, groups))
        yield partial(_read_side_by_side, files, span)


def _read_side_by_side(files: tuple[File, File], span: range) -> Pair:
    first, second = _read(*files[0], span), _read(*files[1], span)
    return Pair(len(first.values), (0, 0), (first, second), files[0][1].tier)


def _read(part: TierPart, entry: FileEntry, span: range) -> Rows:
    file = part.groups.reopen(part.entries.index(entry))
    table = file.read_all(list(span), [*part.columns, "best"])
    file.close()
    best, labels = labelled(table.column("best").unify_dictionaries())
    tier, start = part.tier_of_number[entry.tier], entry.first_row + span[0] * entry.row_group_rows
    return Rows(
        lambda at: part.layout.states_at(tier, start + at), number_rows(table, part.columns), best,
        labels,
    )  # fmt: skip


# --- looked up -----------------------------------------------------------------------------------


def _rows(table: Lookup, states: Ints) -> Rows:
    """Return the rows of stored canonical states (n, fields); missing payoffs are NaN."""
    values, paid = table.lookup(states)
    values[~paid] = np.nan
    names = numbered(())
    best = coded(table.stored_best(states) if len(states) else (), names).astype(np.int16)
    return Rows(states.__getitem__, values, best, names_of(names))


def _look_up(
    tables: tuple[Lookup, Lookup], swapped: bool, rows: Rows, tier: int | None = None
) -> Pair:
    """Look up rows of the table with fewer rows in the other one."""
    small, large = tables[::-1] if swapped else tables
    n, players = len(rows.values), small.game.players
    states = rows.states(np.arange(n))
    in_large, both = large.game.known_states(small.game.fields.values(states))
    present = large.holds(in_large) if both.any() else np.zeros(0, bool)
    both[both] = present
    kept = Rows(states[both].__getitem__, rows.values[both, :players], rows.best[both], rows.labels)
    matches = _rows(large, in_large[present])
    alone = n - int(both.sum())
    if swapped:
        return Pair(n, (0, alone), (matches, kept), tier)
    return Pair(n, (alone, 0), (kept, matches), tier)


def numbered(names: Sequence[str]) -> dict[str | None, int]:
    """Return the index of each name; -1 for None."""
    return {None: -1} | {name: i for i, name in enumerate(names)}


def coded(names: Sequence[str | None], numbers: dict[str | None, int]) -> Ints:
    """Return the indices (n,) of names, adding new ones to `numbers`; -1 for None."""
    return np.array([numbers.setdefault(name, len(numbers) - 1) for name in names], np.int64)


def names_of(numbers: dict[str | None, int]) -> tuple[str, ...]:
    """Return the names in the order of their indices."""
    return tuple(name for name in numbers if name is not None)


# --- what a decision costs -----------------------------------------------------------------------

MOVED, TOSS_UP, ONE_SIDED, UNPRICED = range(4)
"""The kinds of decisions that differ: moved, with a cost; a toss-up; in one table only, or with a
first action that is not allowed in the second; with children that a table lacks."""


class Changed(NamedTuple):
    """n states whose best actions differ.

    first, second: int64 (n, fields), in each game's form.
    best_first, best_second: int64 (n,), indices of names; -1 for none.
    apart: float64 (n,), differences of their payoffs.
    """

    first: Ints
    second: Ints
    best_first: Ints
    best_second: Ints
    apart: Floats


class Priced(NamedTuple):
    """The costs of n changed decisions.

    kind: int8 (n,), `MOVED`, ….
    actors: int64 (n,), from 0; -1 for none.
    old, new: float64 (n,), payoff to the actor, in the second table, of the first and of the second
        table's best action; NaN if unknown.
    cost: new - old, at least 0.
    """

    kind: NDArray[np.int8]
    actors: Ints
    old: Floats
    new: Floats
    cost: Floats


NOTHING_PRICED = Priced(np.empty(0, np.int8), np.empty(0, np.int64), *(np.empty(0),) * 3)


class Prices:
    """The costs of the first table's decisions by the second table's payoffs. Thread-safe.

    At a state x with best action a in the first table and b in the second, where q are the second
    table's payoffs to the player who decides::

        cost(x) = q(x, b) - q(x, a)  >= 0

    Every action of x is computed from its children: in the second table for the cost, and in the
    first to find the actions as good as a. If some action is best in both tables within their
    precision, the decision is a toss-up and did not move. Otherwise it moved, whichever of several
    equal actions a table names.

    reading: the lock for reading from the tables.
    """

    def __init__(self, first: Lookup, second: Lookup) -> None:
        self.reading = Lock()
        self.first, self.second = (TierCache(table, self.reading) for table in (first, second))

    def priced(self, changed: Changed, names: Sequence[str]) -> Priced:
        """Return the costs. names: of the best actions."""
        priced = [
            self._step(Changed._make(column[x : x + STATES_A_STEP] for column in changed), names)
            for x in range(0, len(changed.apart), STATES_A_STEP)
        ]
        return Priced._make(map(np.concatenate, zip(NOTHING_PRICED, *priced, strict=True)))

    def _step(self, changed: Changed, names: Sequence[str]) -> Priced:
        numbers = numbered(names)
        second = _Actions(self.second, changed.second, numbers)
        old, new = second.payoffs(changed.best_first), second.payoffs(changed.best_second)
        kind = np.full(len(old), MOVED, np.int8)
        good = second.pairs(np.arange(len(old)))[second.good]
        kind[np.isin(_with_action(np.arange(len(old)), changed.best_first), good)] = TOSS_UP
        unsure = np.flatnonzero(kind == MOVED)
        if len(unsure):
            first = _Actions(self.first, changed.first[unsure], numbers)
            level = first.good & np.isin(first.pairs(unsure), good)
            both = np.logical_or.reduceat(level, first.q.first[:-1])
            kind[unsure[both]] = TOSS_UP
            kind[unsure[~first.known]] = UNPRICED
        kind[~second.known] = UNPRICED
        kind[(changed.best_first < 0) | (changed.best_second < 0) | np.isnan(old)] = ONE_SIDED
        if any(tiers.table.decided is not None for tiers in (self.first, self.second)):
            kind[kind == UNPRICED] = MOVED  # payoffs are not stored beyond the frontier
        lost = ~second.known | (kind == UNPRICED) | (kind == ONE_SIDED)
        old[lost] = new[~second.known] = np.nan
        cost = np.where(lost, np.nan, np.maximum(new - old, 0.0))
        return Priced(kind, second.actors, old, new, cost)


def _with_action(states: Ints, actions: Ints) -> Ints:
    """Encode (state, action) as one number; an action is below 2^40."""
    return states * (1 << 40) + actions


class _Actions:
    """All actions of n states, k in total, computed from their children.

    names: indices of actions by name; new ones are added.
    known: bool (n,), True if all children are known.
    named: int64 (k,), indices of the actions' names.
    own: float64 (k,), payoff of each action to the player who acts.
    good: bool (k,), True if the action is as good as the best of its state.
    """

    def __init__(self, tiers: TierCache, states: Ints, names: dict[str | None, int]) -> None:
        table, game = tiers.table, tiers.table.game
        edges = expand(game, states)
        below, known = lookup_or_backup(game, tiers.lookup, edges.children, table.tolerance)
        self.actors, self.q = edges.actors, evaluate(edges, below)
        q = self.q
        self.known: NDArray[np.bool_] = np.logical_and.reduceat(known, edges.first[:-1])
        distinct, codes = np.unique(q.actions, return_inverse=True)
        called = [game.action_name(action) if action >= 0 else None for action in distinct.tolist()]
        self.named = coded(called, names)[codes]
        self.own = q.of_actors(edges.actors)
        top = np.maximum.reduceat(self.own, q.first[:-1])
        self.good = self.own >= top[q.states] - table.tolerance

    def pairs(self, numbers: Ints) -> Ints:
        """Return each action (k,) combined with its state's number (n,)."""
        return _with_action(numbers[self.q.states], self.named)

    def payoffs(self, actions: Ints) -> Floats:
        """Return the payoffs (n,) of an action of each state to the player who acts; NaN if the
        state does not have it."""
        payoffs = np.full(len(actions), np.nan)
        rows = np.flatnonzero((self.named == actions[self.q.states]) & (self.named >= 0))
        payoffs[self.q.states[rows]] = self.own[rows]
        return payoffs


class TierCache:
    """A table whose whole tiers are cached in memory, up to a limit. Thread-safe.

    A million states of a move have ten million children, in a few tiers but spread all over them.
    Here each tier is read once, and a child costs one array access.

    reading: the lock for reading from the table itself.
    """

    def __init__(self, table: Lookup, reading: Lock) -> None:
        self.table, self.memory, self._reading = table, free_memory() // SHARE, reading
        self._tiers: OrderedDict[int, NDArray[Any]] = OrderedDict()
        self._lock = Lock()
        self._loading: dict[int, Lock] = {}

    def lookup(self, states: Ints) -> tuple[Floats, NDArray[np.bool_]]:
        states, part = np.ascontiguousarray(states), self.table.full
        if part is None:
            with self._reading:
                return self.table.lookup(states)
        numbers, rows = part.layout.locate(states)
        payoffs, known = np.zeros((len(states), self.table.game.players)), numbers == -1
        if known.any():
            payoffs[known] = final_payoffs(self.table.game, states[known])
        for number in np.unique(numbers[~known]).tolist():
            tier = self._tier(part, number)
            if tier is not None:
                at = np.flatnonzero(numbers == number)
                payoffs[at] = tier[rows[at]]
                known[at] = ~np.isnan(payoffs[at, 0])
        swapped = part.layout.swapped(states) & known & (numbers >= 0)
        payoffs[swapped] = payoffs[swapped][:, ::-1]
        left = np.flatnonzero(~known)
        if len(left):
            with self._reading:
                payoffs[left], known[left] = self.table.lookup(states[left])
        return payoffs, known

    def _tier(self, part: TierPart, number: int) -> NDArray[Any] | None:
        """Return the payoffs (rows, players) of a tier, with NaN for missing rows; None if the tier
        is missing or too large."""
        tier = part.tier_of_number.get(number)
        files = [i for i, entry in enumerate(part.entries) if entry.tier == number]
        if tier is None or not files:
            return None
        shape, kind = (part.layout.rows(tier), self.table.game.players), part.layout.payoff_type
        if shape[0] * shape[1] * np.dtype(kind).itemsize > self.memory:
            return None
        with self._lock:
            loading = self._loading.setdefault(number, Lock())
        with loading:
            payoffs = self._tiers.get(number)
            if payoffs is None:
                payoffs = self._read(part, files, np.full(shape, np.nan, kind))
            with self._lock:
                self._tiers[number] = payoffs
                self._tiers.move_to_end(number)
                while sum(tier.nbytes for tier in self._tiers.values()) > self.memory:
                    self._tiers.popitem(last=False)
        return payoffs

    def _read(self, part: TierPart, files: list[int], payoffs: NDArray[Any]) -> NDArray[Any]:
        for i in files:
            entry = part.entries[i]
            with self._reading:
                file = part.groups.reopen(i)
            for first in range(0, file.groups, GROUPS_A_READ):
                table = file.read_all(
                    list(range(first, min(first + GROUPS_A_READ, file.groups))), part.columns
                )
                at = entry.first_row + first * entry.row_group_rows
                payoffs[at : at + len(table)] = number_rows(table, part.columns)
            file.close()
        return payoffs
