"""The result of a search: states with payoffs, and how it is written to a file."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from luckbase.cluster.store.format import (
    ROW_GROUP,
    Written,
    names_column,
    new_entry,
    nullable,
    payoff_columns,
    write_file,
)
from luckbase.cluster.store.storage import Storage
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.game import Game
from luckbase.solver.search.bellman import MIXED
from luckbase.solver.search.keys import Keys, unpack_columns

if TYPE_CHECKING:
    from luckbase.solver.search.game_graph import Graph


@dataclass(frozen=True)
class PayoffTable:
    """The result of a search: n states with payoffs in c columns.

    keys: uint64 (n,).
    values: float64 (n, c).
    best: int64 (n,), an action or a code of `solver.search.bellman`.
    margin: float64 (n,), the cost of the second-best action to the player who decides; NaN without
        a choice.
    actor: int8 (n,), the player who acts, from 1; 0 for none or both.
    """

    keys: Keys
    values: Floats
    best: Ints
    margin: Floats
    actor: NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.keys)

    def only(self, rows: NDArray[Any] | slice) -> PayoffTable:
        """Select rows by indices, a mask (n,) or a slice."""
        return PayoffTable(*(getattr(self, each.name)[rows] for each in fields(self)))


def solved_rows(graph: Graph) -> PayoffTable:
    """Return the solved, non-terminal states of a graph, by ascending key. If the game names the
    fields of a turn, only states between turns."""
    best = graph.best
    index = np.flatnonzero((best >= 0) | (best == MIXED))
    if graph.game.turn.size:
        index = index[~graph.game.within_turn(graph.states(index))]
    rows = PayoffTable(
        graph.keys_at(index),
        graph.values[index],
        best[index],
        graph.margins[index],
        graph.actors[index],
    )
    return rows.only(np.argsort(rows.keys))


def write_states(
    storage: Storage, name: str, game: Game, table: PayoffTable, error: float, **of_stages: Any
) -> Written:  # fmt: skip
    """Write a search's file, by ascending key, like `write_tier`. of_stages: as in `new_entry`."""
    names = payoff_columns(game)
    # Indices into the labels of best actions; -1 if no player decides or both do.
    chosen = np.where(table.actor == 0, -1, np.maximum(table.best, -1))
    starts = np.append(True, chosen[1:] != chosen[:-1])  # starts of runs, of which there are few
    actions = np.unique(chosen[starts[: len(chosen)]])
    actions = actions[actions >= 0]
    labels = [game.action_name(action) for action in actions.tolist()]
    codes = (np.searchsorted(actions, chosen, side="right") - 1).astype(np.int32)

    def columns(start: int, stop: int) -> dict[str, Any]:
        rows = table.only(slice(start, stop))
        numbers = np.empty((game.field_count, len(rows)), np.int64)
        unpack_columns(game.strides, rows.keys, numbers)
        return {
            "key": rows.keys, **game.table_columns(numbers.T),
            **{name: rows.values[:, i] for i, name in enumerate(names)},
            "best": names_column(codes[start:stop], labels), "to_act": rows.actor,
            "margin": nullable(rows.margin),
        }  # fmt: skip

    ends = (int(table.keys[0]), int(table.keys[-1])) if len(table) else (0, 0)
    size = len(table), ROW_GROUP
    entry = new_entry(name, 0, size, ends, error, **of_stages)
    return write_file(storage, game, entry, columns, [*names, "margin"], ["key"])
