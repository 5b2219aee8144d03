"""Payoff tables by key, and their union.

A payoff table says of states what was solved: key, payoffs, best action, status. Two that have one
state must agree on it to the last bit, whatever each came from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.errors import DisagreementError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.game import Game
from luckbase.solver.graph.keys import Keys, unpack_all

if TYPE_CHECKING:
    from luckbase.solver.graph.game_graph import Graph


@dataclass(frozen=True)
class PayoffTable:
    """n states: keys uint64 (n,), values float64 (n, columns), best int64 (n,), status uint8 (n,).

    best: an action or a code of `solver.graph.codes`; status: an index into
    `table.write.STATUS`. gap: float64 (n,), of a cycle that was solved between bounds, at its state
    of the lowest key, else 0. margin: float64 (n,), what the second best would cost the one who
    decides; NaN where there is no choice. actor: int8 (n,), who acts, from 1; 0 where nobody does,
    or both. The last three are blank if not given.
    """

    keys: Keys
    values: Floats
    best: Ints
    status: NDArray[np.uint8]
    gap: Floats = None  # type: ignore[assignment]
    margin: Floats = None  # type: ignore[assignment]
    actor: NDArray[np.int8] = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        n = len(self.keys)
        blank = {"gap": np.zeros(n), "margin": np.full(n, np.nan), "actor": np.zeros(n, np.int8)}
        for name, column in blank.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, column)

    def __len__(self) -> int:
        return len(self.keys)

    def only(self, rows: NDArray[Any]) -> PayoffTable:
        """These rows: numbers or a mask (n,)."""
        return PayoffTable(*(getattr(self, each.name)[rows] for each in fields(self)))


def merge(game: Game, tables: Sequence[PayoffTable]) -> tuple[PayoffTable, int]:
    """The union of payoff tables, by ascending key, and how many rows stood in more than one.

    Raises DisagreementError, with both values, where two differ in a bit of a payoff or in the
    best action.
    """
    columns = [np.concatenate([getattr(table, each.name) for table in tables])
               for each in fields(PayoffTable)]  # fmt: skip
    every = PayoffTable(*columns)
    every = every.only(np.argsort(every.keys, kind="stable"))
    keys, values, best = every.keys, every.values, every.best
    first = np.ones(len(keys), bool)
    first[1:] = keys[1:] != keys[:-1]
    again = np.flatnonzero(~first)
    bits = values.view(np.uint64)
    differs = (bits[again] != bits[again - 1]).any(axis=1) | (best[again] != best[again - 1])
    if differs.any():
        x = int(again[np.flatnonzero(differs)[0]])
        state = game.describe(unpack_all(game.bits, keys[x : x + 1])[0])
        raise DisagreementError(
            f"two shards disagree on {state}: {values[x - 1].tolist()} and {values[x].tolist()}, "
            f"actions {best[x - 1]} and {best[x]}; nothing was written"
        )
    return every.only(first), len(again)


def solved_rows(graph: Graph, start: int = 0) -> PayoffTable:
    """The states from number `start` on that a graph has solved itself and that are not over."""
    from luckbase.solver.graph.codes import MIXED, UNDECIDED

    best = graph.best[start:]
    at = start + np.flatnonzero((best >= 0) | (best == UNDECIDED) | (best == MIXED))
    gap = np.zeros(len(at))
    gapped = np.array(sorted(number for number in graph.gaps if number >= start), np.int64)
    gap[np.searchsorted(at, gapped)] = [graph.gaps[int(number)] for number in gapped]
    status = np.zeros(len(at), np.uint8)
    return PayoffTable(
        graph.keys_at(at), graph.values[at], graph.best[at], status, gap, graph.margins[at],
        graph.actors[at],
    )  # fmt: skip
