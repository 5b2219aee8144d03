"""What it costs to keep the old habit, where the best actions of two tables differ.

At a state x whose best action is a in the first table and b in the second, with the payoffs q of
the second to the player who decides::

    cost(x) = q(x, b) - q(x, a)  >= 0

Every action of x is worked out from its children, in the second table for the cost, and in the
first to know whether it said a clearly (not where its stored margin says so).
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from luckbase.cluster.run.machine import cores, free_memory
from luckbase.cluster.table.held import Held
from luckbase.cluster.table.lookup import Lookup
from luckbase.cluster.table.part import worth
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.graph.bellman import ActionValues, Expanded, evaluate, expand

MOVED, TOSS_UP, ONE_SIDED, UNPRICED = range(4)
"""What a decision that differs is: priced; a toss-up in either table; a decision in one of them
only, or the old action is not allowed in the second; one whose children a table does not hold."""
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
        ties = np.add.reduceat(level.astype(np.int64), q.first[:-1]) > 1
        old, new = (
            _payoff(q, own, best, _numbers(table, q, names)) for best in changed.best
        )
        kind = np.full(n, MOVED, np.int8)
        kind[ties] = TOSS_UP
        unsure = np.flatnonzero(
            (kind == MOVED) & ~(changed.margins > SURE * self.first.table.tolerance)
        )
        tied, held = self._tied_before(changed.states[0][unsure])
        kind[unsure[tied]] = TOSS_UP
        kind[unsure[~held]] = UNPRICED
        kind[~there] = UNPRICED
        one_sided = (changed.best[0] < 0) | (changed.best[1] < 0) | np.isnan(old)
        kind[one_sided] = ONE_SIDED
        lost = (kind == UNPRICED) | one_sided
        old[lost] = np.nan
        new[~there | np.isnan(new)] = np.nan
        cost = np.where(lost, np.nan, np.maximum(new - old, 0.0))
        return Priced(kind, edges.actors, old, new, cost)

    def _tied_before(self, states: Ints) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """(whether several actions are best in the first table, whether that can be told)."""
        if not len(states):
            return np.zeros(0, bool), np.zeros(0, bool)
        edges, q, there = _worked_out(self.first, states)
        _, level = _own(q, edges, self.first.table.tolerance)
        tied = np.add.reduceat(level.astype(np.int64), q.first[:-1]) > 1
        return tied & there, there


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


def _numbers(table: Lookup, q: ActionValues, names: list[str]) -> Ints:
    """The actions' numbers by name, and last, for none, -2."""
    there = {table.game.action_name(a): a for a in set(q.actions.tolist()) if a >= 0}
    return np.array([*(there.get(name, -2) for name in names), -2], np.int64)


def _payoff(q: ActionValues, own: Floats, best: Ints, numbers: Ints) -> Floats:
    """(n,) what an action is worth; NaN where it is not one of the state's."""
    found = np.full(len(best), np.nan)
    taken = np.flatnonzero(q.actions == numbers[best][q.states])
    found[q.states[taken]] = own[taken]
    return found
