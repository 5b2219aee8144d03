"""What it costs to keep a decision of the first table, where the best actions of two differ.

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

`changes_file` has every decision that moved, as a file that grows while two tables are compared.
Its columns: the state's, as the second table has them; ``to_act``; ``best_first``,
``best_second``; ``old`` and ``new``, what the two are worth to who acts in the second table;
``cost``, null where there is none to tell; ``toss_up``; ``payoffs_apart``.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from luckbase.cluster.machine import cores, free_memory
from luckbase.cluster.table.files import whole_file
from luckbase.cluster.table.format import as_table
from luckbase.cluster.table.lookup import Lookup
from luckbase.cluster.table.parquet import nullable, numbers_of
from luckbase.cluster.table.parts import lookup_or_backup
from luckbase.cluster.table.tiers import GROUPS_A_READ, TierPart
from luckbase.solver.errors import OptionError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.game import Game
from luckbase.solver.search.bellman import evaluate, final_payoffs
from luckbase.solver.search.expand import expand
from luckbase.solver.sentences import option

MOVED, TOSS_UP, ONE_SIDED, UNPRICED = range(4)
"""What a decision that differs is: priced; a toss-up; a decision in one of the tables only, or the
old action is not allowed in the second; one whose children a table does not hold."""
STATES_A_STEP = 8_000
"""States that a thread expands at a time: some 40 edges of 150 bytes each."""
SHARE = 8
"""Of the free memory that each table's tiers may take."""
CLEAR = 4.0
"""A stored margin of so many tolerances says that no other action is as good."""
NO_ACTION = -2


class Changed(NamedTuple):
    """n states whose best actions differ."""

    first: Ints
    """int64 (n, fields), as the first game has them."""
    second: Ints
    """The same as the second game has them."""
    best_first: Ints
    """int64 (n,), the first table's best actions, into names; -1 for none."""
    best_second: Ints
    apart: Floats
    """float64 (n,), how far their payoffs are apart."""
    margins: Floats
    """float64 (n,), the first table's stored ones, NaN where it has none."""


class Priced(NamedTuple):
    """What n of them cost."""

    kind: NDArray[np.int8]
    actors: Ints
    """int64 (n,), from 0, -1 for nobody."""
    old: Floats
    """float64 (n,), what the first table's best action is worth to the actor in the second; NaN
    where that is not known."""
    new: Floats
    """The same of the second table's."""
    cost: Floats
    """new - old, at least 0."""


class Prices:
    """Prices decisions of the first table by the second."""

    def __init__(self, first: Lookup, second: Lookup) -> None:
        memory = free_memory() // SHARE
        self.first, self.second = TierCache(first, memory), TierCache(second, memory)

    def priced(self, changed: Changed, names: list[str]) -> Priced:
        """What they cost; `names` of their best actions."""
        steps = [
            Changed._make(column[x : x + STATES_A_STEP] for column in changed)
            for x in range(0, len(changed.apart), STATES_A_STEP)
        ]
        with ThreadPoolExecutor(cores()) as pool:
            found = list(pool.map(lambda step: self._step(step, names), steps))
        return Priced(*map(np.concatenate, zip(*found, strict=True)))

    def _step(self, changed: Changed, names: list[str]) -> Priced:
        table, n = self.second.table, len(changed.apart)
        here = _AllActions(self.second, changed.second)
        actions = here.q.actions
        numbers = {table.game.action_name(a): a for a in set(actions.tolist()) if a >= 0}
        codes = np.array([*(numbers.get(name, NO_ACTION) for name in names), NO_ACTION], np.int64)
        old, new = (here.payoffs(codes[best]) for best in (changed.best_first, changed.best_second))
        good = _pairs(here.q.states[here.good], actions[here.good])
        kind = np.full(n, MOVED, np.int8)
        kind[np.isin(_pairs(np.arange(n), codes[changed.best_first]), good)] = TOSS_UP
        clear = changed.margins > CLEAR * self.first.table.tolerance
        unsure = np.flatnonzero((kind == MOVED) & ~clear)
        both, held = self._good_in_both(changed.first[unsure], unsure, good, numbers)
        kind[unsure[both]] = TOSS_UP
        kind[unsure[~held]] = UNPRICED
        kind[~here.there] = UNPRICED
        one_sided = (changed.best_first < 0) | (changed.best_second < 0) | np.isnan(old)
        kind[one_sided] = ONE_SIDED
        lost = (kind == UNPRICED) | one_sided
        old[lost] = np.nan
        new[~here.there | np.isnan(new)] = np.nan
        cost = np.where(lost, np.nan, np.maximum(new - old, 0.0))
        return Priced(kind, here.edges.actors, old, new, cost)

    def _good_in_both(
        self, states: Ints, which: Ints, good: Ints, numbers: dict[str, int]
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """(whether some action that is best in the first table is among the `good` ones of the
        second, whose actions have these numbers; whether that can be told), of its states
        (k, fields), numbers `which` (k,)."""
        if not len(states):
            return np.zeros(0, bool), np.zeros(0, bool)
        here, game = _AllActions(self.first, states), self.first.table.game
        known, codes = np.unique(here.q.actions, return_inverse=True)
        as_second = [
            numbers.get(game.action_name(a), NO_ACTION) if a >= 0 else NO_ACTION
            for a in known.tolist()
        ]
        actions = np.array(as_second, np.int64)[codes]
        level = here.good & np.isin(_pairs(which[here.q.states], actions), good)
        both: NDArray[np.bool_] = np.logical_or.reduceat(level, here.q.first[:-1])
        return both & here.there, here.there


def _pairs(states: Ints, actions: Ints) -> Ints:
    """(state, action) as one number each; an action is below 2^40."""
    return states * (1 << 40) + actions


class _AllActions:
    """Every action of n states, worked out from their children.

    there: bool (n,), whether all children are. own: float64 (k,), each action's payoff to who acts;
    good: bool (k,), whether that is as good as the best of its state.
    """

    def __init__(self, tiers: TierCache, states: Ints) -> None:
        table, game = tiers.table, tiers.table.game
        self.edges = edges = expand(game, states)
        below, found = lookup_or_backup(game, tiers.lookup, edges.children, table.tolerance)
        self.q = q = evaluate(edges, below)
        self.there: NDArray[np.bool_] = np.logical_and.reduceat(found, edges.first[:-1])
        self.own = q.values[np.arange(len(q.states)), np.maximum(edges.actors, 0)[q.states]]
        top = np.maximum.reduceat(self.own, q.first[:-1])
        self.good = self.own >= top[q.states] - table.tolerance

    def payoffs(self, actions: Ints) -> Floats:
        """(n,) what an action of each state is worth to who acts; NaN where it is none of its."""
        found = np.full(len(actions), np.nan)
        taken = np.flatnonzero(self.q.actions == actions[self.q.states])
        found[self.q.states[taken]] = self.own[taken]
        return found


class TierCache:
    """A table whose tiers are kept in memory, up to so many bytes; several threads may ask."""

    def __init__(self, table: Lookup, memory: int) -> None:
        self.table, self.memory = table, memory
        self._part = table.full if isinstance(table.full, TierPart) else None
        self._tiers: OrderedDict[int, NDArray[Any]] = OrderedDict()
        self._lock, self._asking = Lock(), Lock()
        self._loading: dict[int, Lock] = {}
        self._entries: dict[int, list[int]] = {}
        for i, entry in enumerate(self._part.entries if self._part else ()):
            self._entries.setdefault(entry.tier, []).append(i)

    def lookup(self, states: Ints) -> tuple[Floats, NDArray[np.bool_]]:
        """As `Lookup.lookup`."""
        states, part = np.ascontiguousarray(states), self._part
        if part is None:
            with self._asking:
                return self.table.lookup(states)
        numbers, rows = part.layout.locate(states)
        payoffs, found = np.zeros((len(states), self.table.game.players)), numbers < 0
        if found.any():
            payoffs[found] = final_payoffs(self.table.game, states[found])
        for number in np.unique(numbers[~found]).tolist():
            tier = self._tier(part, number)
            if tier is not None:
                at = np.flatnonzero(numbers == number)
                payoffs[at] = tier[rows[at]]
                found[at] = ~np.isnan(payoffs[at, 0])
        swapped = part.layout.swapped(states) & found & (numbers >= 0)
        payoffs[swapped] = payoffs[swapped][:, ::-1]
        left = np.flatnonzero(~found)
        if len(left):
            with self._asking:
                payoffs[left], found[left] = self.table.lookup(states[left])
        return payoffs, found

    def _tier(self, part: TierPart, number: int) -> NDArray[Any] | None:
        """The payoffs (rows, players) of a tier, NaN where it has no row; None where there is none
        of it, or it is too large."""
        tier = part.tier_of_number.get(number)
        if tier is None or number not in self._entries:
            return None
        shape = part.layout.rows(tier), self.table.game.players
        if shape[0] * shape[1] * np.dtype(part.layout.payoff_type).itemsize > self.memory:
            return None
        with self._lock:
            loading = self._loading.setdefault(number, Lock())
        with loading:
            with self._lock:
                if number in self._tiers:
                    self._tiers.move_to_end(number)
                    return self._tiers[number]
            payoffs = self._read(part, self._entries[number], shape)
            with self._lock:
                self._tiers[number] = payoffs
                while sum(tier.nbytes for tier in self._tiers.values()) > self.memory:
                    self._tiers.popitem(last=False)
        return payoffs

    def _read(self, part: TierPart, entries: list[int], shape: tuple[int, int]) -> NDArray[Any]:
        payoffs = np.full(shape, np.nan, part.layout.payoff_type)
        for i in entries:
            entry = part.entries[i]
            with self._asking:
                file = part.groups.reopen(i)
            for first in range(0, file.groups, GROUPS_A_READ):
                span = list(range(first, min(first + GROUPS_A_READ, file.groups)))
                at = entry.first_row + first * entry.row_group_rows
                read = file.read_all(span, part.columns)
                for p, column in enumerate(read.columns):
                    payoffs[at : at + len(read), p] = numbers_of(column)
            file.close()
        return payoffs


# --- the decisions that moved, in a file ---------------------------------------------------------

Write = Callable[[Changed, Priced, Sequence[str]], None]
"""write(changed, priced, names of actions): some more of them."""
ENDINGS = (".csv", ".parquet")


@contextmanager
def changes_file(out: str | os.PathLike[str], game: Game) -> Iterator[Write]:
    """What writes to a file of changes; the file is whole when this is left without an error, else
    not there.

    Raises OptionError for another ending, and where it can not be written; OSError, with its name,
    where the disk is full.
    """
    ending = Path(out).suffix.lower()
    if ending not in ENDINGS:
        raise OptionError(f"{option('out')}: {out}: end it in {' or '.join(ENDINGS)}")
    codes, no = np.empty(0, np.int64), np.empty(0)
    states = np.empty((0, game.field_count), np.int64)
    nothing = Changed(states, states, codes, codes, no, no)
    unpriced = Priced(codes.astype(np.int8), codes, no, no, no)
    with whole_file(os.fspath(out)) as file:
        kind: Any = pa.csv.CSVWriter if ending == ".csv" else pq.ParquetWriter
        schema = _change_rows(game, nothing, unpriced, ()).schema
        writer = kind(pa.PythonFile(file, "w"), schema)
        try:
            yield lambda *rows: writer.write_table(_change_rows(game, *rows))
        except BaseException:
            with suppress(OSError):
                writer.close()
            raise
        writer.close()


def _change_rows(game: Game, changed: Changed, priced: Priced, names: Sequence[str]) -> pa.Table:
    state, every = as_table(dict(game.table_columns(changed.second))), pa.array([*names, None])
    columns = {
        name: column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column
        for name, column in zip(state.column_names, state.columns, strict=True)
    }
    best_first, best_second = (
        every.cast(pa.string()).take(pa.array(np.where(best < 0, len(names), best)))
        for best in (changed.best_first, changed.best_second)
    )
    return pa.table(columns | {
        "to_act": pa.array((priced.actors + 1).astype(np.int8)),
        "best_first": best_first, "best_second": best_second,
        "old": nullable(priced.old), "new": nullable(priced.new), "cost": nullable(priced.cost),
        "toss_up": pa.array(priced.kind == TOSS_UP), "payoffs_apart": pa.array(changed.apart),
    })  # fmt: skip
