"""The states that two tables have in common, and the cost of keeping a decision of the first table
where their best actions differ (`Prices`).

The states of the smaller table are looked up in the other one. Files whose rows are the same states
in the same order are read side by side.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from luckbase.cluster.answers.lookup import Lookup
from luckbase.cluster.answers.parts import Part, Rows, lookup_or_backup
from luckbase.cluster.answers.tier_part import TierPart
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.search.bellman import evaluate
from luckbase.solver.search.expand import expand

STATES_A_STEP = 100_000
"""States that are expanded at a time: some 40 edges of 150 bytes each."""


class Pair(NamedTuple):
    """n states that both tables hold.

    rows: states of the smaller table that were looked at.
    only: how many of these only the first table holds, and only the second one.
    sides: the n rows of each table.
    tier: the number of their tier; all pairs of a tier follow each other. None without tiers.
    """

    rows: int
    only: tuple[int, int]
    sides: tuple[Rows, Rows]
    tier: int | None = None


def parts_of(table: Lookup) -> list[Part]:
    """Return the parts that are compared: the full table, or all parts if there is none."""
    if table.full is None:
        return table.parts
    return [part for part in table.parts if part is table.full or part is table.decided]


def rows_of(table: Lookup) -> int:
    """Return the number of rows of these parts."""
    return sum(part.rows for part in parts_of(table))


def all_pairs(first: Lookup, second: Lookup) -> Iterator[Pair]:
    """Yield every state of the smaller table; of equal ones, of the first."""
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
                for sides in zip(part.scan([entry]), full.scan([same]), strict=True):
                    ordered = sides[::-1] if swapped else sides
                    yield Pair(len(sides[0].values), (0, 0), ordered, entry.tier)
            else:
                for rows in part.scan([entry]):
                    yield _look_up((first, second), swapped, rows, entry.tier)


def drawn_pairs(first: Lookup, second: Lookup, sample: int) -> Iterator[Pair]:
    """Draw states of the smaller table, always the same ones."""
    swapped = rows_of(second) < rows_of(first)
    small = second if swapped else first
    for states in small.draw(sample, 0):
        yield _look_up((first, second), swapped, _rows(small, states))


def _rows(table: Lookup, states: Ints) -> Rows:
    """Return the rows of canonical states (n, fields) of a table; NaN for payoffs it lacks."""
    values, paid = table.lookup(states)
    values[~paid] = np.nan
    names = numbered(())
    best = coded(table.stored_best(states) if len(states) else (), names).astype(np.int16)
    return Rows(states.__getitem__, values, best, names_of(names))


def _look_up(
    tables: tuple[Lookup, Lookup], swapped: bool, rows: Rows, tier: int | None = None
) -> Pair:
    """Return the pair of rows of the smaller table; the other one is looked up by state."""
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
    """Return the number of each name; -1 for none."""
    return {None: -1} | {name: i for i, name in enumerate(names)}


def coded(names: Sequence[str | None], numbers: dict[str | None, int]) -> Ints:
    """Return the numbers (n,) of names, -1 for none; new names are added to `numbers`."""
    return np.array([numbers.setdefault(name, len(numbers) - 1) for name in names], np.int64)


def names_of(numbers: dict[str | None, int]) -> tuple[str, ...]:
    """Return the names in the order of their numbers."""
    return tuple(name for name in numbers if name is not None)


# --- what a decision costs -----------------------------------------------------------------------

MOVED, TOSS_UP, ONE_SIDED, UNPRICED = range(4)
"""Kinds of decisions that differ: moved, with a cost; a toss-up; a decision in one table only, or
whose old action the second table does not allow; one whose children a table does not hold."""


class Changed(NamedTuple):
    """n states whose best actions differ.

    first, second: int64 (n, fields), the state in each game.
    best_first, best_second: int64 (n,), numbers of names, -1 for none.
    apart: float64 (n,), the difference of their payoffs.
    """

    first: Ints
    second: Ints
    best_first: Ints
    best_second: Ints
    apart: Floats


class Priced(NamedTuple):
    """The costs of n decisions.

    kind: int8 (n,), `MOVED` and so on.
    actors: int64 (n,), from 0; -1 if nobody decides.
    old, new: float64 (n,), payoffs to the actor, in the second table, of the best actions of the
        first and of the second table; NaN if unknown.
    cost: float64 (n,), new - old, at least 0.
    """

    kind: NDArray[np.int8]
    actors: Ints
    old: Floats
    new: Floats
    cost: Floats


NOTHING_PRICED = Priced(np.empty(0, np.int8), np.empty(0, np.int64), *(np.empty(0),) * 3)


class Prices:
    """Prices decisions of the first table by the second.

    At a state x whose best action is a in the first table and b in the second, with the payoffs q
    of the second to the player who decides::

        cost(x) = q(x, b) - q(x, a)  >= 0

    Every action of x is computed from its children: in the second table for the cost, and in the
    first to know which actions were as good as a. If some action is best in both tables, within
    their errors, the decision is a toss-up. Otherwise it moved.
    """

    def __init__(self, first: Lookup, second: Lookup) -> None:
        self.first, self.second = first, second

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
        if any(table.decided is not None for table in (self.first, self.second)):
            kind[kind == UNPRICED] = MOVED  # there are no payoffs beyond the frontier
        lost = ~second.known | (kind == UNPRICED) | (kind == ONE_SIDED)
        old[lost] = new[~second.known] = np.nan
        cost = np.where(lost, np.nan, np.maximum(new - old, 0.0))
        return Priced(kind, second.actors, old, new, cost)


def _with_action(states: Ints, actions: Ints) -> Ints:
    """Return (state, action) as one number each; an action is below 2^40."""
    return states * (1 << 40) + actions


class _Actions:
    """Every action of n states, k in all, computed from their children.

    known: bool (n,), whether the table holds all children.
    named: int64 (k,), the number of each action's name.
    own: float64 (k,), each action's payoff to the player who acts.
    good: bool (k,), whether that is as good as the best of its state, within the error.
    """

    def __init__(self, table: Lookup, states: Ints, names: dict[str | None, int]) -> None:
        """names: numbers of actions by name; new names are added."""
        game = table.game
        edges = expand(game, states)
        below, known = lookup_or_backup(game, table.lookup, edges.children, table.tolerance)
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
        """Return each action (k,) with the number (n,) of its state."""
        return _with_action(numbers[self.q.states], self.named)

    def payoffs(self, actions: Ints) -> Floats:
        """Return the payoffs (n,) of an action of each state to the actor; NaN if not allowed."""
        payoffs = np.full(len(actions), np.nan)
        rows = np.flatnonzero((self.named == actions[self.q.states]) & (self.named >= 0))
        payoffs[self.q.states[rows]] = self.own[rows]
        return payoffs
