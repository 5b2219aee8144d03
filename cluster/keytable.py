"""Questions to a table of what lies below some roots: fields → key → row group → row.

Rows stand by ascending key (`cluster.store`), so a key is found by the first keys of the row groups
and a binary search in one of them. `probe` gives the payoffs, of a search that was cut the lower
ones; `look_bounds` gives both.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from cluster.answer import Action, Answer, Table
from cluster.manifest import Manifest
from cluster.store import STATUS, payoff_columns, tier_file
from solver import keys as hashing
from solver import load_game
from solver.backup import Edges, evaluate, expand
from solver.board import board_from_canonical
from solver.errors import CorruptTableError, MissingTableError, StateError
from solver.game import TERMINAL, Floats, Game, Ints
from solver.walk import choose_by_bounds

CACHED_GROUPS = 256
"""Decoded row groups that a table remembers; up to 2 MB each."""
SOLVED, GIVEN, CUT = range(len(STATUS))


class KeyTable(Table):
    """What lies below some roots. Safe to use from one thread at a time."""

    def __init__(self, path: Path, manifest: Manifest) -> None:
        super().__init__(path, manifest)
        self.game: Game = load_game(board_from_canonical(manifest.board, manifest.canonical))
        assert manifest.roots is not None
        self.roots = manifest.roots
        self.bounds = manifest.roots.max_depth is not None
        self._groups: OrderedDict[int, dict[str, NDArray[Any]]] = OrderedDict()

    def close(self) -> None:
        if "_file" in self.__dict__:
            self._file.close()
            del self.__dict__["_file"]
        self._groups.clear()

    # --- rows --------------------------------------------------------------------------------

    @cached_property
    def _file(self) -> pq.ParquetFile:
        path = tier_file(self.path, "")
        if not self.manifest.files:
            raise MissingTableError(f"{self.path}: not solved yet; solve again to go on")
        try:
            return pq.ParquetFile(path)
        except (OSError, pa.ArrowException) as error:
            raise CorruptTableError(f"{path}: {' '.join(str(error).split())[:150]}") from None

    @cached_property
    def _first_keys(self) -> NDArray[np.uint64]:
        """The first key of each row group."""
        about = self._file.metadata
        groups = [about.row_group(i).column(0).statistics for i in range(about.num_row_groups)]
        return np.array([0 if s is None else s.min for s in groups], np.uint64)

    def _group(self, number: int) -> dict[str, NDArray[Any]]:
        """The decoded columns of a row group that are not the state's."""
        if number not in self._groups:
            names = ["key", *self._payoffs, "best", "status"]
            try:
                read = self._file.read_row_group(number, columns=names, use_threads=False)
            except (OSError, pa.ArrowException, IndexError) as error:
                path = tier_file(self.path, "")
                raise CorruptTableError(f"{path}: {' '.join(str(error).split())[:150]}") from None
            columns = {name: read[name].to_numpy() for name in names}
            columns["values"] = np.stack([columns.pop(name) for name in self._payoffs], axis=1)
            self._groups[number] = columns
            if len(self._groups) > CACHED_GROUPS:
                self._groups.popitem(last=False)
        self._groups.move_to_end(number)
        return self._groups[number]

    @cached_property
    def _payoffs(self) -> list[str]:
        names = payoff_columns(self.game)
        return names + [f"upper_{i + 1}" for i in range(self.game.players)] * self.bounds

    def _rows(self, states: Ints) -> tuple[Floats, list[str | None], Ints]:
        """Payoffs (n, columns), best actions, status (-1 where the table has no such row)."""
        states = np.ascontiguousarray(np.asarray(states, np.int64))
        values = np.zeros((len(states), len(self._payoffs)))
        best: list[str | None] = [None] * len(states)
        status = np.full(len(states), -1, np.int64)
        fine = np.flatnonzero(hashing.fits(self.game.bits, states))
        keys = hashing.pack_all(self.game.bits, np.ascontiguousarray(states[fine]))
        groups = np.searchsorted(self._first_keys, keys, side="right") - 1
        for number in np.unique(groups[groups >= 0]):
            group = self._group(int(number))
            at = np.flatnonzero(groups == number)
            place = np.searchsorted(group["key"], keys[at])
            place = np.minimum(place, len(group["key"]) - 1)
            there = group["key"][place] == keys[at] if len(group["key"]) else np.zeros(0, bool)
            x, row = fine[at[there]], place[there]
            values[x], status[x] = group["values"][row], group["status"][row]
            for i, name in zip(x.tolist(), group["best"][row].tolist(), strict=True):
                best[i] = name
        return values, best, status

    # --- payoffs -----------------------------------------------------------------------------

    def look_bounds(self, states: Ints) -> tuple[Floats, NDArray[np.bool_]]:
        """Payoffs (n, columns) as stored: of a cut search the lower, then the upper ones; and of
        which states. States that are over come from the rules."""
        values, _, status = self._rows(states)
        found = status >= 0
        missing = np.flatnonzero(~found)
        if len(missing):
            edges = expand(self.game, np.asarray(states)[missing])
            at = missing[edges.terminal]
            paid = edges.rewards[edges.first[:-1][edges.terminal]]
            values[at] = np.tile(paid, len(self._payoffs) // self.game.players)
            found[at] = True
        return values, found

    def look(self, states: Ints) -> tuple[Floats, NDArray[np.bool_]]:
        values, found = self.look_bounds(np.asarray(states, np.int64))
        return np.ascontiguousarray(values[:, : self.game.players]), found

    def holds(self, states: Ints) -> NDArray[np.bool_]:
        held: NDArray[np.bool_] = self._rows(states)[2] >= 0
        return held

    def why_outside(self, state: Ints) -> str | None:
        if self.look(state.reshape(1, -1))[1][0]:
            return None
        return "not below this table's roots"

    # --- answers -----------------------------------------------------------------------------

    def answers(self, states: Ints) -> list[Answer]:
        values, best, status = self._rows(states)
        edges = expand(self.game, states)
        for x in np.flatnonzero((status < 0) & ~edges.terminal):
            raise StateError(self._missing(states[x]))
        children, _ = self._children(edges, status)
        lower = evaluate(edges, children[:, : self.game.players])
        upper = evaluate(edges, children[:, -self.game.players :])
        return [
            self._answer_of(x, states[x], values[x], best[x], int(status[x]), edges, lower, upper)
            for x in range(len(states))
        ]

    def _children(self, edges: Edges, status: Ints) -> tuple[Floats, NDArray[np.bool_]]:
        """Payoffs of the edges' children; 0 for those of rows that were not solved from them."""
        owner = np.repeat(np.arange(len(edges.kinds)), np.diff(edges.first))
        asked = (status[owner] == SOLVED) & ~edges.terminal[owner]
        found = np.zeros((len(edges.children), len(self._payoffs)))
        found[asked], there = self.look_bounds(edges.children[asked])
        if not there.all():
            lost = edges.children[asked][np.flatnonzero(~there)[0]]
            raise CorruptTableError(f"{self.path}: {self._missing(lost)}, and a parent of it is")
        return found, asked

    def _answer_of(
        self, x: int, state: Ints, value: Floats, best: str | None, status: int, edges: Edges,
        lower: Any, upper: Any,
    ) -> Answer:  # fmt: skip
        players = self.game.players
        common = (self.manifest.board, self.game.describe(state))
        first, last = lower.first[x], lower.first[x + 1]
        if edges.kinds[x] == TERMINAL:
            paid = tuple(map(float, lower.values[first]))
            return Answer(*common, None, paid, (), None, False, 0.0)
        low, high = tuple(map(float, value[:players])), tuple(map(float, value[-players:]))
        actor = int(edges.actors[x])
        error = self.error + max(h - v for v, h in zip(low, high, strict=True))
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
            slack = 2 * self.error + self.game.tie_tolerance
            level = upper.values[first:last, actor] >= own.max() - slack
            toss_up = best is not None and bool(level.sum() > 1)
        bounds = high if self.bounds else None
        return Answer(*common, actor + 1, low, actions, best, toss_up, error, upper=bounds)

    def best_names(
        self, edges: Edges, states: Ints, values: Floats
    ) -> list[tuple[str | None, bool]]:
        return [(answer.best, answer.toss_up) for answer in self.answers(states)]

    # --- verification ------------------------------------------------------------------------

    def draw(self, count: int, seed: int) -> Iterator[Ints]:
        about = self._file.metadata
        ends = np.cumsum([about.row_group(i).num_rows for i in range(about.num_row_groups)])
        drawn = np.sort(np.random.default_rng(seed).integers(0, int(ends[-1]), count))
        owner = np.searchsorted(ends, drawn, side="right")
        for number in np.unique(owner):
            group = self._group(int(number))
            rows = drawn[owner == number] - (ends[number] - len(group["key"]))
            yield from self._solved(group, rows)

    def all_states(self) -> Iterator[Ints]:
        for number in range(self._file.metadata.num_row_groups):
            group = self._group(number)
            yield from self._solved(group, np.arange(len(group["key"])))

    def _solved(self, group: dict[str, NDArray[Any]], rows: Ints) -> Iterator[Ints]:
        rows = rows[group["status"][rows] == SOLVED]
        if len(rows):
            yield np.asarray(hashing.unpack_all(self.game.bits, group["key"][rows]))

    def residuals(self, states: Ints) -> Floats:
        stored, _, status = self._rows(states)
        edges = expand(self.game, states)
        children, _ = self._children(edges, status)
        players = self.game.players
        halves = [children[:, i : i + players] for i in range(0, len(self._payoffs), players)]
        q = [evaluate(edges, half) for half in halves]
        both = np.concatenate([one.values for one in q], axis=1)
        found = np.empty(len(states))
        tolerance = self.game.tie_tolerance
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
