"""What it costs to keep the old habit, where the best actions of two tables differ.

At a state x whose best action is a in the first table and b in the second, with the payoffs q of
the second to the player who decides::

    cost(x) = q(x, b) - q(x, a)  >= 0

Every action of x is worked out from its children, in the second table for the cost, and in the
first to know which were as good as a (not where its stored margin says that none was). Where some
action is best in both tables, as far as they can tell, the decision did not move: a toss-up. Where
there is none, it did, whichever of two that are level a table names.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from luckbase.cluster.machine import cores, free_memory
from luckbase.cluster.table.held import Held
from luckbase.cluster.table.lookup import Lookup
from luckbase.cluster.table.part import worth
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.graph.bellman import ActionValues, Expanded, evaluate, expand

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
        self.first, self.second = Held(first, most), Held(second, most)

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


def _worked_out(held: Held, states: Ints) -> tuple[Expanded, ActionValues, NDArray[np.bool_]]:
    """(the edges, every action's payoffs, whether all children are there) of states."""
    game = held.table.game
    edges = expand(game, states)
    below, found = worth(game, held.look, edges.children, held.table.tolerance)
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
