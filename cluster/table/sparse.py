"""What lies below some roots, in files or in memory: the row of a state is found by its key.

What follows here from the rows that a kind of part looks up: payoffs, answers, residuals, samples.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from luckbase.cluster.table.every_action import EveryAction, joined, numbered, of_some
from luckbase.cluster.table.format import STATUS
from luckbase.cluster.table.part import Batch, Part, Rows, drawn_rows, once
from luckbase.solver.errors import CorruptTableError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.transition import SIMULTANEOUS
from luckbase.solver.graph import keys as hashing
from luckbase.solver.graph.bellman import Expanded, evaluate, expand, payoffs_of

SOLVED, GIVEN = range(len(STATUS))


class SparsePart(Part):
    """What lies below some roots, by key.

    A group is some rows of ascending keys, as a mapping of columns: key, values (n, columns), best
    (int16, into labels, -1 for none), labels, margin, status.
    """

    @abstractmethod
    def sizes(self) -> list[int]:
        """The rows of each group."""

    @abstractmethod
    def group_at(self, number: int, remember: bool = True) -> dict[str, Any]:
        """A group; remember: it may be asked for again soon."""

    @abstractmethod
    def find(self, states: Ints) -> tuple[Floats, NDArray[np.int16], Floats, Ints]:
        """Of canonical states: payoffs (n, players), best actions (n,) into `action_names`, -1 for
        none, margins (n,), status (n,), -1 where there is no row."""

    # --- payoffs -----------------------------------------------------------------------------

    def look(self, states: Ints) -> tuple[Floats, NDArray[np.bool_]]:
        states = np.asarray(states, np.int64)
        values, _, _, status = self.find(states)
        found = status >= 0
        missing = np.flatnonzero(~found)
        if len(missing):
            edges = expand(self.game, states[missing])
            at = missing[edges.terminal]
            values[at] = edges.rewards[edges.first[:-1][edges.terminal]]
            found[at] = True
        return values, found

    def holds(self, states: Ints) -> NDArray[np.bool_]:
        held: NDArray[np.bool_] = self.find(states)[3] >= 0
        return held

    # --- answers -----------------------------------------------------------------------------

    def every_action(self, states: Ints, edges: Expanded | None = None) -> EveryAction:
        values, codes, margins, status = self.find(states)
        edges = expand(self.game, states) if edges is None else edges
        over, q = edges.terminal, evaluate(edges, self._children(edges, status))
        values[over] = q.values[q.first[:-1][over]]
        acts = (edges.actors >= 0) & ~over
        first, at = of_some(q.first, acts & (status == SOLVED))
        names, named = numbered(self.game, q.actions[at])
        owner = q.states[at]
        best = self._stored(codes, owner, named, names)
        found = EveryAction(
            values, np.where(acts, edges.actors + 1, 0), first, names, named, q.values[at], best,
            np.where(acts, margins, np.nan), np.zeros(len(states), bool),
            np.where(over, 0.0, self.error),
        )  # fmt: skip
        found.ties[:] = self._ties(found, owner, np.maximum(edges.actors, 0))
        given = acts & (status == GIVEN)
        if given.any():
            found = self._with_given(found, codes, given)
        return found

    def told(self, batch: Batch, at: Ints) -> EveryAction:
        return self.every_action(batch.states(at))

    def _stored(
        self, codes: NDArray[np.int16], owner: Ints, named: Ints, names: tuple[str, ...]
    ) -> Ints:
        """(n,) the stored best actions (n,) among those of the states; -1 where there is none."""
        mine = self.codes_of(names)[named] == codes[owner]
        best = np.full(len(codes), -1, np.int64)
        best[owner[mine]] = np.flatnonzero(mine)
        return best

    def _ties(self, found: EveryAction, owner: Ints, actors: Ints) -> NDArray[np.bool_]:
        """(n,) whether an action other than the best may be as good."""
        n, at = len(found), np.arange(len(owner))
        most = np.full(n, -np.inf)
        own = found.q[at, actors[owner]]
        np.maximum.at(most, owner, own)
        level = own >= most[owner] - self.tolerance
        ties: NDArray[np.bool_] = np.bincount(owner[level], minlength=n) > 1
        return ties & (found.best >= 0)

    def _with_given(
        self, found: EveryAction, codes: NDArray[np.int16], given: NDArray[np.bool_]
    ) -> EveryAction:
        """With the best action alone, as the table had it where the search ended, of rows that were
        taken from there (n,)."""
        at = np.flatnonzero(given & (codes >= 0))
        if not len(at):
            return found
        n, m = len(found), len(at)
        alone = EveryAction(
            found.values[at], found.to_act[at], np.arange(m + 1), tuple(self.action_names),
            codes[at].astype(np.int64), found.values[at], np.arange(m), found.margins[at],
            np.zeros(m, bool), found.errors[at],
        )  # fmt: skip
        others = np.setdiff1d(np.arange(n), at)
        rest = found.only(others)
        return joined([(others, rest), (at, alone)], n, self.game.players)

    def _children(self, edges: Expanded, status: Ints) -> Floats:
        """Payoffs of the edges' children; 0 for those of rows that were not solved from them."""
        owner = np.repeat(np.arange(len(edges.kinds)), np.diff(edges.first))
        asked = (status[owner] == SOLVED) & ~edges.terminal[owner]
        found = np.zeros((len(edges.children), self.game.players))
        found[asked], there = once(self.game, self.look, edges.children[asked])
        if not there.all():
            lost = self.game.describe(edges.children[asked][np.flatnonzero(~there)[0]])
            raise CorruptTableError(
                f"{self.where}: {lost} is not there, and a parent of it is; luckbase solve --check "
                "of its board makes it again"
            )
        return found

    def best_of(self, states: Ints) -> tuple[NDArray[np.int16], Floats]:
        _, best, margin, _ = self.find(states)
        return best, margin

    def best_codes(self, states: Ints) -> NDArray[np.int16]:
        return self.find(states)[1]

    def places(self, states: Ints) -> Ints:
        return np.asarray(hashing.pack_all(self.game.bits, np.ascontiguousarray(states)))

    # --- rows --------------------------------------------------------------------------------

    def scan(self) -> Iterator[Rows]:
        for number in range(len(self.sizes())):
            group = self.group_at(number, remember=False)
            at = partial(self._at, group["key"])
            yield Rows(at, group["values"], group["best"], group["labels"])

    def _at(self, keys: NDArray[np.uint64], rows: Ints) -> Ints:
        return np.asarray(hashing.unpack_all(self.game.bits, np.ascontiguousarray(keys[rows])))

    def draw(self, count: int, seed: int) -> Iterator[Ints]:
        sizes = self.sizes()
        ends = np.cumsum(sizes)
        if not len(ends) or not ends[-1]:
            return
        drawn = drawn_rows(int(ends[-1]), count, seed)
        owner = np.searchsorted(ends, drawn, side="right")
        for which in np.unique(owner).tolist():
            rows = drawn[owner == which] - (ends[which] - sizes[which])
            yield from self._solved(self.group_at(which), rows)

    def all_states(self) -> Iterator[Ints]:
        for number in range(len(self.sizes())):
            group = self.group_at(number)
            yield from self._solved(group, np.arange(len(group["key"])))

    def _solved(self, group: dict[str, Any], rows: Ints) -> Iterator[Ints]:
        rows = rows[group["status"][rows] == SOLVED]
        if len(rows):
            yield self._at(group["key"], rows)

    def residuals(self, states: Ints) -> Floats:
        stored, _, _, status = self.find(states)
        edges = expand(self.game, states)
        q = evaluate(edges, self._children(edges, status))
        found: Floats = np.empty(len(states))
        tolerance = self.tolerance  # a search above rounded payoffs could not tell more either
        if (edges.kinds == SIMULTANEOUS).any():
            exact = payoffs_of(edges.kinds, edges.actors, q, tolerance)
            found = np.abs(exact - stored).max(axis=1)
            return found
        for x in range(len(states)):
            here = q.values[q.first[x] : q.first[x + 1]]
            found[x] = _residual(here, int(edges.actors[x]), stored[x], tolerance)
        return found


def _residual(q: Floats, actor: int, stored: Floats, tolerance: float) -> float:
    """How far the stored payoffs are from those that the actions' (k, players) give; of tied
    actions any will do."""
    own = q[:, actor]
    level = own >= own.max() - tolerance - 1e-11
    return float(np.abs(q[level] - stored).max(axis=1).min())
