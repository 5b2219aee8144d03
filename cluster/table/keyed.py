"""What lies below some roots: fields → key → row group → row, over as many files as there are.

Rows stand by ascending key in each file, and no two files hold one key: a key is found by the first
keys of the row groups and a binary search in one of them. `look` gives the payoffs, of a search
that was cut the lower ones; `look_bounds` gives both.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from luckbase.cluster.table.answer import Action, Answer, Origin
from luckbase.cluster.table.part import Part, Rows, labelled
from luckbase.cluster.table.sealed import SealedFile
from luckbase.cluster.table.write import STATUS, payoff_columns
from luckbase.solver.errors import CorruptTableError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.transition import SIMULTANEOUS, TERMINAL
from luckbase.solver.graph import keys as hashing
from luckbase.solver.graph.bellman import ActionValues, Expanded, evaluate, expand, payoffs_of
from luckbase.solver.graph.bellman_step import choose_by_bounds

SOLVED, GIVEN, CUT = range(len(STATUS))


class KeyPart(Part):
    """What lies below some roots."""

    @cached_property
    def bounds(self) -> bool:
        """Whether there are two payoffs a player: a lower and an upper one."""
        goal = self.ledger.last(self.name)
        return goal is not None and goal.roots is not None and goal.roots.max_depth is not None

    @cached_property
    def columns(self) -> list[str]:
        return payoff_columns(self.game, bounds=self.bounds)

    # --- rows --------------------------------------------------------------------------------

    @cached_property
    def _first_keys(self) -> list[NDArray[np.uint64]]:
        """The first key of each row group of each file."""
        found = []
        for i in range(len(self.entries)):
            about = self.file(i).about
            groups = [about.row_group(k).column(0).statistics for k in range(about.num_row_groups)]
            found.append(np.array([0 if s is None else s.min for s in groups], np.uint64))
        return found

    def decode(self, file: SealedFile, number: int, kind: str) -> Any:
        """The columns of a row group that are not the state's."""
        read = file.read(number, ["key", *self.columns, "best", "margin", "status"])
        values = [read.column(name).to_numpy() for name in self.columns]
        codes, labels = labelled(read.column("best"))
        return {
            "key": read.column("key").to_numpy(), "values": np.stack(values, axis=1),
            "best": codes, "labels": labels, "margin": read.column("margin").to_numpy(),
            "status": read.column("status").to_numpy(),
        }  # fmt: skip

    def _rows(self, states: Ints) -> tuple[Floats, list[str | None], Floats, Ints]:
        """Payoffs (n, columns), best actions, margins, status (-1 where there is no such row)."""
        states = np.ascontiguousarray(np.asarray(states, np.int64))
        values = np.zeros((len(states), len(self.columns)))
        best: list[str | None] = [None] * len(states)
        margin = np.full(len(states), np.nan)
        status = np.full(len(states), -1, np.int64)
        fine = np.flatnonzero(hashing.fits(self.game.bits, states))
        keys = hashing.pack_all(self.game.bits, np.ascontiguousarray(states[fine]))
        for i in range(len(self.entries)):
            groups = np.searchsorted(self._first_keys[i], keys, side="right") - 1
            groups[keys > np.uint64(self.entries[i].last_key)] = -1
            for number in np.unique(groups[groups >= 0]).tolist():
                group = self.group(i, number, "rows")
                at = np.flatnonzero(groups == number)
                place = np.searchsorted(group["key"], keys[at])
                place = np.minimum(place, len(group["key"]) - 1)
                there = group["key"][place] == keys[at] if len(group["key"]) else np.zeros(0, bool)
                x, row = fine[at[there]], place[there]
                values[x], status[x] = group["values"][row], group["status"][row]
                margin[x] = group["margin"][row]
                for k, code in zip(x.tolist(), group["best"][row].tolist(), strict=True):
                    best[k] = group["labels"][code] if code >= 0 else None
        return values, best, margin, status

    # --- payoffs -----------------------------------------------------------------------------

    def look_bounds(self, states: Ints) -> tuple[Floats, NDArray[np.bool_]]:
        """Payoffs (n, columns) as stored: of a cut search the lower, then the upper ones; and of
        which states. States that are over come from the rules."""
        values, _, _, status = self._rows(states)
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
        held: NDArray[np.bool_] = self._rows(states)[3] >= 0
        return held

    # --- answers -----------------------------------------------------------------------------

    def answers(self, states: Ints, origin: Origin) -> list[Answer]:
        values, best, margin, status = self._rows(states)
        edges = expand(self.game, states)
        children = self._children(edges, status)
        lower = evaluate(edges, children[:, : self.game.players])
        upper = evaluate(edges, children[:, -self.game.players :])
        return [
            self._answer_of(
                origin, x, states[x], values[x], best[x], margin[x], int(status[x]), edges, lower,
                upper,
            )
            for x in range(len(states))
        ]  # fmt: skip

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

    def _answer_of(
        self, origin: Origin, x: int, state: Ints, value: Floats, best: str | None, margin: float,
        status: int, edges: Expanded, lower: ActionValues, upper: ActionValues,
    ) -> Answer:  # fmt: skip
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
        ahead = None if np.isnan(margin) else float(margin)
        return Answer(
            origin, said, actor + 1, low, actions, best, ahead, toss_up, error, upper=bounds
        )

    def best_of(self, states: Ints) -> tuple[list[str | None], Floats]:
        _, best, margin, _ = self._rows(states)
        return best, margin

    def stored_best(self, states: Ints) -> list[str | None]:
        return self._rows(states)[1]

    # --- rows --------------------------------------------------------------------------------

    def scan(self) -> Iterator[Rows]:
        for i in range(len(self.entries)):
            for number in range(self.file(i).groups):
                group = self.decode(self.file(i), number, "rows")
                at = partial(self._at, group["key"])
                yield Rows(at, group["values"], group["best"], group["labels"])

    def _at(self, keys: NDArray[np.uint64], rows: Ints) -> Ints:
        return np.asarray(hashing.unpack_all(self.game.bits, np.ascontiguousarray(keys[rows])))

    def draw(self, count: int, seed: int) -> Iterator[Ints]:
        sizes = [
            (i, number, self.file(i).about.row_group(number).num_rows)
            for i in range(len(self.entries))
            for number in range(self.file(i).groups)
        ]
        ends = np.cumsum([rows for _, _, rows in sizes])
        if not len(ends) or not ends[-1]:
            return
        drawn = np.sort(np.random.default_rng(seed).integers(0, int(ends[-1]), count))
        owner = np.searchsorted(ends, drawn, side="right")
        for which in np.unique(owner):
            i, number, rows = sizes[which]
            yield from self._solved(
                self.group(i, number, "rows"), drawn[owner == which] - (ends[which] - rows)
            )

    def all_states(self) -> Iterator[Ints]:
        for i in range(len(self.entries)):
            for number in range(self.file(i).groups):
                group = self.group(i, number, "rows")
                yield from self._solved(group, np.arange(len(group["key"])))

    def _solved(self, group: dict[str, Any], rows: Ints) -> Iterator[Ints]:
        rows = rows[group["status"][rows] == SOLVED]
        if len(rows):
            yield np.asarray(hashing.unpack_all(self.game.bits, group["key"][rows]))

    def residuals(self, states: Ints) -> Floats:
        stored, _, _, status = self._rows(states)
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
