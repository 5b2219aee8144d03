"""What lies below some roots, in files or in memory: the row of a state is found by its key.

What follows here from the rows that a kind of part looks up: payoffs, answers, residuals, samples.
`look` gives the payoffs, of a search that was cut the lower ones; `look_bounds` gives both.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from luckbase.cluster.table.answer import Action, Answer, Origin
from luckbase.cluster.table.part import Part, Rows
from luckbase.cluster.table.write import STATUS
from luckbase.solver.errors import CorruptTableError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.transition import SIMULTANEOUS, TERMINAL
from luckbase.solver.graph import keys as hashing
from luckbase.solver.graph.bellman import ActionValues, Expanded, evaluate, expand, payoffs_of
from luckbase.solver.graph.bellman_step import choose_by_bounds

SOLVED, GIVEN, CUT = range(len(STATUS))


@dataclass(frozen=True)
class _Held:
    """What is known of n states: `SparsePart.find`'s, their edges, their actions' payoffs (those of
    a search that was not cut are one)."""

    values: Floats
    best: list[str | None]
    margin: Floats
    status: Ints
    edges: Expanded
    lower: ActionValues
    upper: ActionValues


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
    def find(self, states: Ints) -> tuple[Floats, list[str | None], Floats, Ints]:
        """Of canonical states: payoffs (n, columns), best actions, margins (n,), status (n,), -1
        where there is no row."""

    # --- payoffs -----------------------------------------------------------------------------

    def look_bounds(self, states: Ints) -> tuple[Floats, NDArray[np.bool_]]:
        """Payoffs (n, columns) as stored: of a cut search the lower, then the upper ones; and of
        which states. States that are over come from the rules."""
        values, _, _, status = self.find(states)
        found = status >= 0
        missing = np.flatnonzero(~found)
        if len(missing):
            edges = expand(self.game, np.asarray(states)[missing])
            at = missing[edges.terminal]
            paid = edges.rewards[edges.first[:-1][edges.terminal]]
            values[at] = np.tile(paid, len(self.columns) // self.game.players)
            found[at] = True
        return values, found

    def look(self, states: Ints) -> tuple[Floats, NDArray[np.bool_]]:
        values, found = self.look_bounds(np.asarray(states, np.int64))
        return np.ascontiguousarray(values[:, : self.game.players]), found

    def holds(self, states: Ints) -> NDArray[np.bool_]:
        held: NDArray[np.bool_] = self.find(states)[3] >= 0
        return held

    # --- answers -----------------------------------------------------------------------------

    def answers(self, states: Ints, origin: Origin) -> list[Answer]:
        values, best, margin, status = self.find(states)
        edges = expand(self.game, states)
        children = self._children(edges, status)
        lower = evaluate(edges, children[:, : self.game.players])
        upper = evaluate(edges, children[:, -self.game.players :])
        held = _Held(values, best, margin, status, edges, lower, upper)
        return [self._answer_of(origin, x, state, held) for x, state in enumerate(states)]

    def _children(self, edges: Expanded, status: Ints) -> Floats:
        """Payoffs of the edges' children; 0 for those of rows that were not solved from them."""
        owner = np.repeat(np.arange(len(edges.kinds)), np.diff(edges.first))
        asked = (status[owner] == SOLVED) & ~edges.terminal[owner]
        found = np.zeros((len(edges.children), len(self.columns)))
        found[asked], there = self.look_bounds(edges.children[asked])
        if not there.all():
            lost = self.game.describe(edges.children[asked][np.flatnonzero(~there)[0]])
            raise CorruptTableError(
                f"{self.where}: {lost} is not there, and a parent of it is; luckbase solve --check "
                "of its board makes it again"
            )
        return found

    def _answer_of(self, origin: Origin, x: int, state: Ints, held: _Held) -> Answer:
        edges, lower, upper = held.edges, held.lower, held.upper
        value, best, status = held.values[x], held.best[x], int(held.status[x])
        players, said = self.game.players, self.game.describe(state)
        first, last = lower.first[x], lower.first[x + 1]
        if edges.kinds[x] == TERMINAL:
            return Answer(origin, said, None, tuple(map(float, lower.values[first])))
        low, high = tuple(map(float, value[:players])), tuple(map(float, value[-players:]))
        actor = int(edges.actors[x])
        error = self.error + max(h - v for v, h in zip(low, high, strict=True))
        bounds = high if self.bounds else None
        if actor < 0:  # chance alone, or both at once
            return Answer(origin, said, None, low, error=error, upper=bounds)
        actions: tuple[Action, ...] = ()
        toss_up = False
        if status == GIVEN and best is not None:
            actions = (Action(best, low),)
        elif status == SOLVED:
            names = [self.game.action_name(int(a)) for a in lower.actions[first:last]]
            own = lower.values[first:last, actor]
            order = sorted(range(len(names)), key=lambda k: (names[k] != best, -own[k], k))
            actions = tuple(
                Action(
                    names[k],
                    tuple(map(float, lower.values[first + k])),
                    tuple(map(float, upper.values[first + k])) if self.bounds else None,
                )
                for k in order
            )
            level = upper.values[first:last, actor] >= own.max() - self.tolerance
            toss_up = best is not None and bool(level.sum() > 1)
        ahead = None if np.isnan(held.margin[x]) else float(held.margin[x])
        return Answer(
            origin, said, actor + 1, low, actions, best, ahead, toss_up, error, upper=bounds
        )

    def best_of(self, states: Ints) -> tuple[list[str | None], Floats]:
        _, best, margin, _ = self.find(states)
        return best, margin

    def stored_best(self, states: Ints) -> list[str | None]:
        return self.find(states)[1]

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
        drawn = np.sort(np.random.default_rng(seed).integers(0, int(ends[-1]), count))
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
        children = self._children(edges, status)
        players = self.game.players
        halves = [children[:, i : i + players] for i in range(0, len(self.columns), players)]
        q = [evaluate(edges, half) for half in halves]
        both = np.concatenate([one.values for one in q], axis=1)
        found: Floats = np.empty(len(states))
        tolerance = self.game.tie_tolerance
        if (edges.kinds == SIMULTANEOUS).any():
            exact = [payoffs_of(edges.kinds, edges.actors, one, tolerance) for one in q]
            found = np.abs(np.concatenate(exact, axis=1) - stored).max(axis=1)
            return found
        for x in range(len(states)):
            here = np.ascontiguousarray(both[q[0].first[x] : q[0].first[x + 1]])
            found[x] = _residual(here, int(edges.actors[x]), stored[x], tolerance, players)
        return found


def _residual(q: Floats, actor: int, stored: Floats, tolerance: float, players: int) -> float:
    """How far the stored payoffs are from those that the actions' (k, columns) give; of tied
    actions any will do."""
    own = q[:, actor]
    if q.shape[1] == players or len(q) == 1:
        level = own >= own.max() - tolerance - 1e-11
        return float(np.abs(q[level] - stored).max(axis=1).min())
    sure, out = 0, np.empty(2 * players)
    for k in range(1, len(q)):
        if own[k] > own[sure] + tolerance:
            sure = k
    decided = choose_by_bounds(len(q), sure, actor, tolerance, q, out)
    return float(np.abs((q[decided] if decided >= 0 else out) - stored).max())
