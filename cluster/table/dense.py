"""A full table, in files or in memory: the row of a state is its key.

What follows here from the payoffs and the best actions that a kind of part looks up: every action
of a state, answers, margins, residuals, and samples of the rows.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from luckbase.cluster.table.answer import Lookahead, look_ahead
from luckbase.cluster.table.every_action import EveryAction, from_rules
from luckbase.cluster.table.format import KEY_SHIFT
from luckbase.cluster.table.parquet import numbers_of
from luckbase.cluster.table.part import PIECE, Batch, Part, drawn_rows, labelled, once, worth
from luckbase.solver.errors import CorruptTableError, MissingTableError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.capabilities import Layout, layout_of
from luckbase.solver.graph.bellman import Expanded, evaluate, expand


class DensePart(Part):
    """The full table, or as much of it as is solved."""

    dense = True

    @cached_property
    def layout(self) -> Layout[Any]:
        """The game's tiers."""
        return layout_of(self.game)

    @property
    @abstractmethod
    def spans(self) -> list[tuple[Any, int, int]]:
        """(tier, first row, rows) of each piece of a tier that is there, in the order of keys."""

    @property
    def rows(self) -> int:
        return sum(rows for _, _, rows in self.spans)

    # --- decisions ---------------------------------------------------------------------------

    def _best_numbers(self, best: NDArray[np.int16], actions: Ints) -> Ints:
        """(n,) the numbers of the stored best actions (n,) of states that have these actions (k,)
        in all; -1 where nobody decides, -2 for one that is none of theirs."""
        there = np.unique(actions).tolist()
        known = {self.game.action_name(action): action for action in there if action >= 0}
        numbers = [known.get(name, -2) for name in self.action_names]
        return np.array([*numbers, -1], np.int64)[best]

    def _all_values(self, states: Ints, edges: Expanded) -> tuple[Floats, Floats]:
        """The payoffs of expanded states, and of their children, looked up together."""
        n = len(states)
        every = np.concatenate([states, edges.children])
        payoffs, there = once(self.game, self.look, every)
        return payoffs[:n], self._all_there(edges, payoffs[n:], there[n:])

    def _all_there(self, edges: Expanded, below: Floats, there: NDArray[np.bool_]) -> Floats:
        """The payoffs of all children, from those that were found."""
        if not there.all():  # one step of the rules, where both choose below
            below, there = worth(self.game, self.look, edges.children, self.tolerance)
        if not there.all():
            lost = self.game.describe(edges.children[np.flatnonzero(~there)[0]])
            raise MissingTableError(f"{self.where}: {lost} is not there, and a parent of it is")
        return below

    def look_ahead(
        self, states: Ints, edges: Expanded, below: Floats, codes: NDArray[np.int16]
    ) -> Lookahead:
        """Every action of expanded states, from the payoffs of their children, and the stored best
        ones (n,)."""
        q = evaluate(edges, below)
        best = self._best_numbers(codes, q.actions)
        allowed = np.logical_or.reduceat(q.actions == best[q.states], q.first[:-1])
        wrong = np.flatnonzero((best != -1) & ~allowed)
        if len(wrong):
            state = self.game.describe(states[wrong[0]])
            raise CorruptTableError(f"{self.where}: names an action at {state} that is none there")
        return look_ahead(q, edges.actors, self.tolerance, best)

    def every_action(self, states: Ints, edges: Expanded | None = None) -> EveryAction:
        edges = expand(self.game, states) if edges is None else edges
        values, below = self._all_values(states, edges)
        return self.of_rows(states, edges, values, below, self.best_codes(states))

    def told(self, batch: Batch, at: Ints) -> EveryAction:
        columns = [numbers_of(batch.rows.column(name))[at] for name in self.columns]
        values = np.stack(columns, axis=1).astype(np.float64)
        codes, labels = labelled(batch.rows.column("best"))
        states = np.ascontiguousarray(batch.states(at))
        edges = expand(self.game, states)
        below, there = once(self.game, self.look, edges.children)
        below = self._all_there(edges, below, there)
        return self.of_rows(states, edges, values, below, self.codes_of(labels)[codes[at]])

    def of_rows(
        self, states: Ints, edges: Expanded, values: Floats, below: Floats,
        codes: NDArray[np.int16],
    ) -> EveryAction:  # fmt: skip
        """The same from the payoffs (n, players) and the best actions (n,) as they are stored, and
        the payoffs of the children."""
        look = self.look_ahead(states, edges, below, codes)
        return from_rules(self.game, edges, look, values, self.error)

    def best_of(self, states: Ints) -> tuple[NDArray[np.int16], Floats]:
        found = self.every_action(states)
        named = found.named[found.best] if len(found.named) else found.best
        best = self.codes_of(found.names)[np.where(found.best >= 0, named, -1)]
        return best, found.margins

    def residuals(self, states: Ints) -> Floats:
        edges = expand(self.game, states)
        stored, below = self._all_values(states, edges)
        look = self.look_ahead(states, edges, below, self.best_codes(states))
        taken = look.values[look.best]
        found: Floats = np.abs(taken - stored).max(axis=1)
        own = look.values[np.arange(len(look.actions)),
                          np.repeat(np.maximum(edges.actors, 0), np.diff(look.first))]  # fmt: skip
        top = np.maximum.reduceat(own, look.first[:-1])
        short = top - own[look.best] - self.game.tie_tolerance
        found = np.maximum(found, short)  # a best action that is not one shows too
        return found

    def places(self, states: Ints) -> Ints:
        numbers, rows = self.layout.locate(np.ascontiguousarray(states))
        return (numbers << KEY_SHIFT) + rows

    # --- rows --------------------------------------------------------------------------------

    def draw(self, count: int, seed: int) -> Iterator[Ints]:
        ends = np.cumsum([rows for _, _, rows in self.spans])
        drawn = drawn_rows(int(ends[-1]) if len(ends) else 0, count, seed)
        # One pass over the table for a sample of any usual size: children lie all over it.
        for share in np.array_split(drawn, max(1, -(-len(drawn) // (4 * PIECE)))):
            owner = np.searchsorted(ends, share, side="right")
            states = [
                self._states(int(i), share[owner == i] - (ends[i] - self.spans[i][2]))
                for i in np.unique(owner)
            ]
            if states:
                yield np.concatenate(states)

    def all_states(self) -> Iterator[Ints]:
        for i, (_, _, rows) in enumerate(self.spans):
            for start in range(0, rows, PIECE):
                yield self._states(i, np.arange(start, min(start + PIECE, rows)))

    def _states(self, i: int, rows: Ints) -> Ints:
        """The states at rows of span i."""
        tier, first, _ = self.spans[i]
        return self.layout.states_at(tier, first + rows)

    @cached_property
    def tier_of_number(self) -> dict[int, Any]:
        """The tiers of the game's full table by number."""
        return self.layout.tier_of_number()
