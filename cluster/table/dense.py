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

from luckbase.cluster.table.answer import Answer, Lookahead, Origin, answer_ahead, look_ahead
from luckbase.cluster.table.part import PIECE, Part, worth
from luckbase.solver.errors import CorruptTableError, MissingTableError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.capabilities import Layout, layout_of
from luckbase.solver.game.transition import TERMINAL
from luckbase.solver.graph.bellman import Expanded, evaluate, expand


class DensePart(Part):
    """The full table, or as much of it as is solved."""

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

    def _best_numbers(self, states: Ints, edges: Expanded) -> Ints:
        """(n,) the best actions of expanded states as the solve took them; -1 where nobody decides,
        -2 for one that is none of this game."""
        there = set(edges.actions.tolist())
        named = {self.game.action_name(action): action for action in there if action >= 0}
        return np.array([-1 if name is None else named.get(name, -2)
                         for name in self.stored_best(states)], np.int64)  # fmt: skip

    def look_ahead(self, states: Ints, edges: Expanded) -> Lookahead:
        """Every action of expanded states, and the stored best ones."""
        below, there = worth(self.game, self.look, edges.children, self.tolerance)
        if not there.all():
            lost = self.game.describe(edges.children[np.flatnonzero(~there)[0]])
            raise MissingTableError(f"{self.where}: {lost} is not there, and a parent of it is")
        q = evaluate(edges, below)
        best = self._best_numbers(states, edges)
        allowed = np.logical_or.reduceat(q.actions == best[q.states], q.first[:-1])
        wrong = np.flatnonzero((best != -1) & ~allowed)
        if len(wrong):
            state = self.game.describe(states[wrong[0]])
            raise CorruptTableError(f"{self.where}: names an action at {state} that is none there")
        return look_ahead(q, edges.actors, self.tolerance, best)

    def answers(self, states: Ints, origin: Origin) -> list[Answer]:
        values, _ = self.look(states)
        edges = expand(self.game, states)
        look = self.look_ahead(states, edges)
        found = []
        for x, state in enumerate(states):
            if edges.kinds[x] == TERMINAL or edges.actors[x] < 0:
                error = 0.0 if edges.kinds[x] == TERMINAL else self.error
                said = self.game.describe(state)
                stored = tuple(map(float, values[x]))
                found.append(Answer(origin, said, None, stored, error=error))
            else:
                found.append(answer_ahead(origin, self.game, state, x, look, values[x], self.error))
        return found

    def best_of(self, states: Ints) -> tuple[list[str | None], Floats]:
        edges = expand(self.game, states)
        look = self.look_ahead(states, edges)
        names = [
            None if edges.actors[x] < 0 else self.game.action_name(int(look.actions[best]))
            for x, best in enumerate(look.best)
        ]
        return names, look.margins

    def residuals(self, states: Ints) -> Floats:
        stored, _ = self.look(states)
        edges = expand(self.game, states)
        look = self.look_ahead(states, edges)
        taken = look.values[look.best]
        found: Floats = np.abs(taken - stored).max(axis=1)
        own = look.values[np.arange(len(look.actions)),
                          np.repeat(np.maximum(edges.actors, 0), np.diff(look.first))]  # fmt: skip
        top = np.maximum.reduceat(own, look.first[:-1])
        found = np.maximum(found, top - own[look.best])  # a best action that is not one shows too
        return found

    # --- rows --------------------------------------------------------------------------------

    def draw(self, count: int, seed: int) -> Iterator[Ints]:
        ends = np.cumsum([rows for _, _, rows in self.spans])
        rng = np.random.default_rng(seed)
        drawn = np.sort(rng.integers(0, int(ends[-1]), count)) if len(ends) else np.empty(0, int)
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
