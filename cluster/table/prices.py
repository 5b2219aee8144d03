"""What it costs to keep the old habit, where the best actions of two tables differ.

At a state x whose best action is a in the first table and b in the second, with the payoffs q of
the second to the player who decides::

    cost(x) = q(x, b) - q(x, a)  >= 0

Every action of x is worked out from its children, in the second table for the cost, and in the
first to know which were as good as a (not where its stored margin says that none was). Where some
action is best in both tables, as far as they can tell, the decision did not move: a toss-up. Where
there is none, it did, whichever of two that are level a table names.

A million states of a move have ten million children, which lie in a few tiers and all over these.
`TierPart.lookup` sorts them and reads each row group once a call; in a `TierCache` a tier is read
once, whole, and a child costs a place in an array.

`ChangesFile` has every decision that moved, as a file that grows while two tables are compared. Its
columns: the state's, as the second table has them; ``to_act``; ``best_first``, ``best_second``;
``old`` and ``new``, what the two are worth to who acts in the second table; ``cost``, null where
there is none to tell; ``toss_up``; ``payoffs_apart``.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from luckbase.cluster.machine import cores, free_memory
from luckbase.cluster.table.files import whole_file
from luckbase.cluster.table.format import as_table, nullable, start_row
from luckbase.cluster.table.lookup import Lookup
from luckbase.cluster.table.parquet import numbers_of
from luckbase.cluster.table.parts import lookup_or_backup
from luckbase.cluster.table.tiers import GROUPS_A_READ, TierPart
from luckbase.solver.errors import OptionError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.game import Game
from luckbase.solver.search.bellman import ActionValues, Expanded, evaluate, expand, final_payoffs
from luckbase.solver.sentences import option

MOVED, TOSS_UP, ONE_SIDED, UNPRICED = range(4)
"""What a decision that differs is: priced; a toss-up; a decision in one of the tables only, or the
old action is not allowed in the second; one whose children a table does not hold."""
STATES_A_STEP = 8_000
"""States that a thread expands at a time: some 40 edges of 150 bytes each."""
SHARE = 8
"""Of the free memory that each table's tiers may take."""
SURE = 4.0
"""A stored margin of so many tolerances says that no other action is as good."""


@dataclass(frozen=True)
class Changed:
    """States whose best actions differ, n of them: as both games have them (n, fields); the best
    actions int64 (n,) into names, -1 for none; how far their payoffs are apart; the first table's
    stored margins, NaN where it has none."""

    states: tuple[Ints, Ints]
    best: tuple[Ints, Ints]
    apart: Floats
    margins: Floats

    def __len__(self) -> int:
        return len(self.apart)

    def only(self, rows: slice) -> Changed:
        """Some of them."""
        return Changed(
            (self.states[0][rows], self.states[1][rows]), (self.best[0][rows], self.best[1][rows]),
            self.apart[rows], self.margins[rows],
        )  # fmt: skip


@dataclass(frozen=True)
class Priced:
    """What n of them cost. kind: int8 (n,). actors: int64 (n,), from 0, -1 for nobody. old, new:
    float64 (n,), what the first and the second table's best action are worth to the actor in the
    second; NaN where that is not known. cost: new - old, at least 0."""

    kind: NDArray[np.int8]
    actors: Ints
    old: Floats
    new: Floats
    cost: Floats


class Prices:
    """Prices decisions of the first table by the second."""

    def __init__(self, first: Lookup, second: Lookup, most: int | None = None) -> None:
        """most: bytes that each table's tiers may take in memory."""
        most = free_memory() // SHARE if most is None else most
        self.first, self.second = TierCache(first, most), TierCache(second, most)

    def priced(self, changed: Changed, names: list[str]) -> Priced:
        """What they cost; `names` of their best actions."""
        steps = [
            changed.only(slice(x, x + STATES_A_STEP)) for x in range(0, len(changed), STATES_A_STEP)
        ]
        with ThreadPoolExecutor(cores()) as pool:
            found = list(pool.map(lambda step: self._step(step, names), steps))
        return Priced(*(
            np.concatenate([getattr(one, name) for one in found])
            for name in ("kind", "actors", "old", "new", "cost")
        ))  # fmt: skip

    def _step(self, changed: Changed, names: list[str]) -> Priced:
        table, n = self.second.table, len(changed)
        edges, q, there = _worked_out(self.second, changed.states[1])
        own, level = _own(q, edges, table.tolerance)
        named = _named(table, q)
        numbers = np.array([*(named.get(name, -2) for name in names), -2], np.int64)
        good = _pairs(q, level, q.actions)
        old, new = (_payoff(q, own, best, numbers) for best in changed.best)
        kind = np.full(n, MOVED, np.int8)
        kind[np.isin(np.arange(n) * _MOST + numbers[changed.best[0]], good)] = TOSS_UP
        unsure = np.flatnonzero(
            (kind == MOVED) & ~(changed.margins > SURE * self.first.table.tolerance)
        )
        both, held = self._good_in_both(changed.states[0][unsure], unsure, good, named)
        kind[unsure[both]] = TOSS_UP
        kind[unsure[~held]] = UNPRICED
        kind[~there] = UNPRICED
        one_sided = (changed.best[0] < 0) | (changed.best[1] < 0) | np.isnan(old)
        kind[one_sided] = ONE_SIDED
        lost = (kind == UNPRICED) | one_sided
        old[lost] = np.nan
        new[~there | np.isnan(new)] = np.nan
        cost = np.where(lost, np.nan, np.maximum(new - old, 0.0))
        return Priced(kind, edges.actors, old, new, cost)

    def _good_in_both(
        self, states: Ints, which: Ints, good: Ints, named: dict[str | None, int]
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """(whether some action that is best in the first table is among the `good` ones of the
        second, whose actions are `named`; whether that can be told), of its states (k, fields),
        numbers `which` (k,)."""
        if not len(states):
            return np.zeros(0, bool), np.zeros(0, bool)
        edges, q, there = _worked_out(self.first, states)
        _, level = _own(q, edges, self.first.table.tolerance)
        game = self.first.table.game
        known, codes = np.unique(q.actions, return_inverse=True)
        as_second = [named.get(game.action_name(a) if a >= 0 else None, -2) for a in known.tolist()]
        actions = np.array(as_second, np.int64)[codes]
        level &= np.isin(which[q.states] * _MOST + actions, good)
        both: NDArray[np.bool_] = np.logical_or.reduceat(level, q.first[:-1])
        return both & there, there


_MOST = 1 << 40
"""Above the number of any action."""


def _pairs(q: ActionValues, which: NDArray[np.bool_], actions: Ints) -> Ints:
    """(state, action) of some actions as one number each."""
    found: Ints = q.states[which] * _MOST + actions[which]
    return found


def _worked_out(held: TierCache, states: Ints) -> tuple[Expanded, ActionValues, NDArray[np.bool_]]:
    """(the edges, every action's payoffs, whether all children are there) of states."""
    game = held.table.game
    edges = expand(game, states)
    below, found = lookup_or_backup(game, held.lookup, edges.children, held.table.tolerance)
    return edges, evaluate(edges, below), np.logical_and.reduceat(found, edges.first[:-1])


def _own(q: ActionValues, edges: Expanded, tolerance: float) -> tuple[Floats, Any]:
    """(each action's payoff to who acts (k,), whether it is as good as the best of its state)."""
    own = q.values[np.arange(len(q.states)), np.maximum(edges.actors, 0)[q.states]]
    top = np.maximum.reduceat(own, q.first[:-1])
    return own, own >= top[q.states] - tolerance


def _named(table: Lookup, q: ActionValues) -> dict[str | None, int]:
    """The actions that there are, by name."""
    return {table.game.action_name(a): a for a in set(q.actions.tolist()) if a >= 0}


def _payoff(q: ActionValues, own: Floats, best: Ints, numbers: Ints) -> Floats:
    """(n,) what an action is worth; NaN where it is not one of the state's."""
    found = np.full(len(best), np.nan)
    taken = np.flatnonzero(q.actions == numbers[best][q.states])
    found[q.states[taken]] = own[taken]
    return found


class TierCache:
    """A table whose tiers are kept in memory, up to `most` bytes; several threads may ask."""

    def __init__(self, table: Lookup, most: int) -> None:
        self.table, self.most = table, most
        self._part = table.full if isinstance(table.full, TierPart) else None
        self._tiers: OrderedDict[int, NDArray[Any]] = OrderedDict()
        self._lock, self._asking = Lock(), Lock()
        self._loading: dict[int, Lock] = {}
        self._entries: dict[int, list[int]] = {}
        for i, entry in enumerate(self._part.entries if self._part else ()):
            self._entries.setdefault(entry.tier, []).append(i)

    def lookup(self, states: Ints) -> tuple[Floats, NDArray[np.bool_]]:
        """As `Lookup.lookup`."""
        states = np.ascontiguousarray(states)
        if self._part is None:
            with self._asking:
                return self.table.lookup(states)
        numbers, rows = self._part.layout.locate(states)
        payoffs, found = np.zeros((len(states), self.table.game.players)), numbers < 0
        if found.any():
            payoffs[found] = final_payoffs(self.table.game, states[found])
        for number in np.unique(numbers[~found]).tolist():
            tier = self._tier(number)
            if tier is not None:
                at = np.flatnonzero(numbers == number)
                payoffs[at] = tier[rows[at]]
                found[at] = ~np.isnan(payoffs[at, 0])
        swapped = self._part.layout.swapped(states) & found & (numbers >= 0)
        payoffs[swapped] = payoffs[swapped][:, ::-1]
        left = np.flatnonzero(~found)
        if len(left):
            with self._asking:
                payoffs[left], found[left] = self.table.lookup(states[left])
        return payoffs, found

    def _tier(self, number: int) -> NDArray[Any] | None:
        """The payoffs (rows, players) of a tier, NaN where it has no row; None where there is none
        of it, or it is too large."""
        assert self._part is not None
        tier = self._part.tier_of_number.get(number)
        if tier is None or number not in self._entries:
            return None
        layout, players = self._part.layout, self.table.game.players
        size = layout.rows(tier) * players * np.dtype(layout.payoff_type).itemsize
        if size > self.most:
            return None
        with self._lock:
            loading = self._loading.setdefault(number, Lock())
        with loading:
            with self._lock:
                if number in self._tiers:
                    self._tiers.move_to_end(number)
                    return self._tiers[number]
            made = self._read(number, layout.rows(tier))
            with self._lock:
                self._tiers[number] = made
                while sum(one.nbytes for one in self._tiers.values()) > self.most:
                    self._tiers.popitem(last=False)
        return made

    def _read(self, number: int, rows: int) -> NDArray[Any]:
        part = self._part
        assert part is not None
        made = np.full((rows, self.table.game.players), np.nan, part.layout.payoff_type)
        for i in self._entries[number]:
            entry = part.entries[i]
            with self._asking:
                file = part.groups.reopen(i)
            for first in range(0, file.groups, GROUPS_A_READ):
                span = list(range(first, min(first + GROUPS_A_READ, file.groups)))
                at = start_row(entry) + first * entry.row_group_rows
                read = file.read_all(span, part.columns)
                for p, column in enumerate(read.columns):
                    made[at : at + len(read), p] = numbers_of(column)
            file.close()
        return made


ENDINGS = (".csv", ".parquet")


@contextmanager
def changes_file(out: str | os.PathLike[str], game: Game) -> Iterator[ChangesFile]:
    """A file of changes; whole when it is left without an error, else not there.

    Raises OptionError for another ending, and where it can not be written; OSError, with its name,
    where the disk is full.
    """
    ending = Path(out).suffix.lower()
    if ending not in ENDINGS:
        raise OptionError(f"{option('out')}: {out}: end it in {' or '.join(ENDINGS)}")
    with whole_file(os.fspath(out)) as file:
        made = ChangesFile(file, game, ending == ".csv")
        try:
            yield made
        except BaseException:
            with suppress(OSError):
                made.close()
            raise
        made.close()


class ChangesFile:
    """An open file of changes, as CSV or Parquet."""

    def __init__(self, file: IO[bytes], game: Game, is_csv: bool) -> None:
        self.game = game
        nothing = np.empty((0, game.field_count), np.int64)
        none, no = np.empty(0, np.int64), np.empty(0)
        rows = self._rows(
            Changed((nothing, nothing), (none, none), no, no),
            Priced(np.empty(0, np.int8), none, no, no, no), [],
        )  # fmt: skip
        kind = pa.csv.CSVWriter if is_csv else pq.ParquetWriter
        self._writer: Any = kind(pa.PythonFile(file, "w"), rows.schema)

    def write(self, changed: Changed, priced: Priced, names: Sequence[str]) -> None:
        """Write some more."""
        self._writer.write_table(self._rows(changed, priced, names))

    def close(self) -> None:
        """Write what is left; the file itself stays open."""
        self._writer.close()

    def _rows(self, changed: Changed, priced: Priced, names: Sequence[str]) -> pa.Table:
        state = as_table(dict(self.game.table_columns(changed.states[1])))
        columns = {
            name: column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column
            for name, column in zip(state.column_names, state.columns, strict=True)
        }
        return pa.table(columns | {
            "to_act": pa.array((priced.actors + 1).astype(np.int8)),
            "best_first": _name_column(changed.best[0], names),
            "best_second": _name_column(changed.best[1], names),
            "old": nullable(priced.old), "new": nullable(priced.new), "cost": nullable(priced.cost),
            "toss_up": pa.array(priced.kind == TOSS_UP),
            "payoffs_apart": pa.array(np.asarray(changed.apart, np.float64)),
        })  # fmt: skip


def _name_column(best: Ints, names: Sequence[str]) -> pa.Array:
    every = pa.array([*names, None], pa.string())
    return every.take(pa.array(np.where(best < 0, len(names), best)))
