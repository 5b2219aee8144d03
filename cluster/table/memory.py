"""Tables in memory: the same questions, answers, checks and charts, with nothing on disk.

A full table in memory has the payoffs and the best actions that `cluster.run.driver` would write,
rounded as its files are, and a search those of a search's files: they answer alike to the last bit.

    >>> table = in_memory(game)                       # all tiers, or all below the game's start
    >>> table.ask({"mine": 0, "yours": 87}).best
    'roll'
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from luckbase.cluster.table.dense import DensePart
from luckbase.cluster.table.format import (
    ROW_GROUP,
    PayoffTable,
    as_table,
    decided,
    row_group_rows,
    search_columns,
    solved_rows,
    tier_columns,
)
from luckbase.cluster.table.lines import SEARCH, TIERS
from luckbase.cluster.table.part import Batch, MayHold, Rows
from luckbase.cluster.table.sparse import SparsePart
from luckbase.cluster.table.table import Table
from luckbase.solver.game.arrays import FLOAT64_ERROR, Floats, Ints
from luckbase.solver.game.capabilities import Layout
from luckbase.solver.game.decisions import Decisions
from luckbase.solver.game.game import Game
from luckbase.solver.game.in_memory import InMemory, rounding
from luckbase.solver.graph import keys as hashing

WHERE = "memory"
MOST_STATES = 20_000_000
"""States that a search in memory may meet unless told otherwise."""


class MemoryTiers(DensePart):
    """A full table in memory."""

    def __init__(self, solved: InMemory[Any]) -> None:
        layout = solved.layout
        self.rounding = rounding(layout.game, layout.payoff_type)
        super().__init__(WHERE, TIERS, layout.game, solved.error + self.rounding)
        self.solved = solved
        tiers = sorted(solved.payoffs, key=layout.tier_number)
        self._spans = [(tier, 0, layout.rows(tier)) for tier in tiers]

    @property
    def spans(self) -> list[tuple[Any, int, int]]:
        return self._spans

    def look(self, states: Ints) -> tuple[Floats, NDArray[np.bool_]]:
        return self.solved.look(states)

    def holds(self, states: Ints) -> NDArray[np.bool_]:
        found = np.zeros(len(states), bool)
        for _, at, _ in self.solved.locate(np.ascontiguousarray(states)):
            found[at] = True
        return found

    def told_within(self, states: Ints) -> Floats:
        found = np.zeros(len(states))
        for tier, at, _ in self.solved.locate(np.ascontiguousarray(states)):
            found[at] = self.solved.errors[tier] + self.rounding
        return found

    def best_codes(self, states: Ints) -> NDArray[np.int16]:
        found = np.full(len(states), -1, np.int16)
        codes = self.codes_of(tuple(self.layout.best_names))
        for tier, at, rows in self.solved.locate(np.ascontiguousarray(states)):
            found[at] = codes[self.solved.best[tier][rows]]
        return found

    def scan(self) -> Iterator[Rows]:
        for tier, _, rows in self.spans:
            step = row_group_rows(self.layout, tier)
            for start in range(0, rows, step):
                at = np.arange(start, min(start + step, rows))
                best = self.solved.best[tier][at].astype(np.int16)
                states = partial(self._at, tier, start)
                values = self.solved.rows(tier, at)
                yield Rows(states, values, best, tuple(self.layout.best_names))

    def batches(self, columns: Collection[str] | None, may_hold: MayHold) -> Iterator[Batch]:
        before = 0
        for tier, _, rows in self.spans:
            constants = self.layout.tier_fields(tier)
            if may_hold({name: (value, value) for name, value in constants.items()}):
                step = row_group_rows(self.layout, tier)
                for start in range(0, rows, step):
                    made = self._table(tier, (start, min(start + step, rows)), columns)
                    yield Batch(made, before + start, partial(self._at, tier, start))
            before += rows

    def _table(
        self, tier: Any, span: tuple[int, int], columns: Collection[str] | None = None
    ) -> Any:
        same = {
            name: np.full(span[1] - span[0], value, np.int32)
            for name, value in self.layout.tier_fields(tier).items()
        }
        decisions = Decisions(self.solved.best[tier])
        payoffs = self.solved.payoffs[tier]
        made = as_table(same | tier_columns(self.layout, tier, payoffs, decisions, span))
        return (
            made if columns is None else made.select([n for n in made.column_names if n in columns])
        )

    def empty(self) -> Any:
        return self._table(self.spans[0][0], (0, 0)) if self.spans else None

    def _at(self, tier: Any, start: int, rows: Ints) -> Ints:
        return self.layout.states_at(tier, start + rows)


class MemorySearch(SparsePart):
    """What lies below some roots, solved in memory; rows by ascending key."""

    def __init__(self, game: Game, solved: PayoffTable) -> None:
        error = FLOAT64_ERROR + game.cut_error + float(solved.gap.sum()) / 2
        super().__init__(WHERE, SEARCH, game, error)
        self.solved = solved.only(np.argsort(solved.keys))
        self.codes, self.labels = decided(game, self.solved)

    @property
    def rows(self) -> int:
        return len(self.solved)

    def sizes(self) -> list[int]:
        return [min(ROW_GROUP, self.rows - i) for i in range(0, self.rows, ROW_GROUP)]

    def group_at(self, number: int, remember: bool = True) -> dict[str, Any]:
        here = slice(number * ROW_GROUP, (number + 1) * ROW_GROUP)
        held = self.solved
        return {
            "key": held.keys[here], "values": held.values[here], "best": self.codes[here],
            "labels": self.labels, "margin": held.margin[here], "status": held.status[here],
        }  # fmt: skip

    def batches(self, columns: Collection[str] | None, may_hold: MayHold) -> Iterator[Batch]:
        for start in range(0, self.rows, ROW_GROUP):
            made = self._table(slice(start, start + ROW_GROUP))
            keys = self.solved.keys[start : start + ROW_GROUP]
            names = [name for name in made.column_names if columns is None or name in columns]
            yield Batch(made.select(names), start, partial(self._at, keys))

    def _table(self, rows: slice) -> Any:
        return as_table(search_columns(self.game, self.solved, self.codes, self.labels, rows))

    def empty(self) -> Any:
        return self._table(slice(0, 0))

    def find(self, states: Ints) -> tuple[Floats, NDArray[np.int16], Floats, Ints]:
        states, held = np.ascontiguousarray(np.asarray(states, np.int64)), self.solved
        values = np.zeros((len(states), len(self.columns)))
        best = np.full(len(states), -1, np.int16)
        margin, status = np.full(len(states), np.nan), np.full(len(states), -1, np.int64)
        fine = np.flatnonzero(hashing.fits(self.game.bits, states))
        keys = hashing.pack_all(self.game.bits, np.ascontiguousarray(states[fine]))
        rows = np.minimum(np.searchsorted(held.keys, keys), max(0, len(held) - 1))
        there = held.keys[rows] == keys if len(held) else np.zeros(len(keys), bool)
        x, rows = fine[there], rows[there]
        values[x], margin[x], status[x] = held.values[rows], held.margin[rows], held.status[rows]
        best[x] = self.codes_of(self.labels)[self.codes[rows]]
        return values, best, margin, status


def tiers_in_memory(layout: Layout[Any], stop: Callable[[], bool] = lambda: False) -> Table:
    """The full table, solved in memory: 8 bytes a state and player or less.

    Raises OptionError where the board has none, Stopped soon after `stop()` turns true.
    """
    part = MemoryTiers(InMemory(layout, best=True, stop=stop))
    return Table(layout.game, [part], WHERE, "all tiers, solved just now")


def search_in_memory(game: Game, roots: Ints, max_states: int = MOST_STATES) -> Table:
    """All that lies below canonical roots (m, fields), solved in memory: 60 bytes a state.

    Raises SearchLimitError beyond `max_states`, StateError as `Graph.solve`.
    """
    from luckbase.solver.graph.game_graph import Graph

    graph = Graph(game, max_states=max_states)
    graph.solve(np.ascontiguousarray(roots).reshape(-1, game.field_count))
    part = MemorySearch(game, solved_rows(graph))
    return Table(game, [part], WHERE, "a search of all that lies below")
