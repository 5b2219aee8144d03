"""Where two tables of one game differ: in a payoff beyond their errors, or in the best action.

The states of the table with fewer are looked up in the other, piece by piece, so neither has to fit
in memory. Boards may differ (that is what the question is); states are matched by their fields in
people's units, so a state that is not on the other board's grid counts as missing.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster.answer import Table
from solver.backup import expand
from solver.errors import OptionError, StateError
from solver.game import Floats, Ints


@dataclass(frozen=True)
class Difference:
    """A state at which the tables differ: how far the payoffs are apart, the best actions."""

    state: dict[str, Any]
    size: float
    best: tuple[str | None, str | None]


@dataclass(frozen=True)
class Comparison:
    """states: compared. missing: of the smaller table and not in the other. payoffs, actions: at
    how many they differ. largest: the largest difference of a payoff. worst: the worst, first."""

    states: int
    missing: int
    payoffs: int
    actions: int
    largest: float
    tolerance: float
    worst: list[Difference]

    @property
    def differs(self) -> bool:
        """Whether there is any difference at all."""
        return bool(self.payoffs or self.actions)

    def as_json(self) -> dict[str, Any]:
        """The comparison as JSON values."""
        worst = [{"state": d.state, "size": d.size, "best": list(d.best)} for d in self.worst]
        own = {k: getattr(self, k) for k in ("states", "missing", "payoffs", "actions")}
        return {**own, "largest": self.largest, "tolerance": self.tolerance, "worst": worst}


def compare(
    one: Table,
    other: Table,
    *,
    tolerance: float | None = None,
    worst: int = 10,
    sample: int | None = None,
    seed: int = 0,
) -> Comparison:
    """Compare two tables. tolerance: how far payoffs may be apart (both tables' errors).

    Raises OptionError for tables of different games.
    """
    if one.manifest.game != other.manifest.game:
        raise OptionError(
            f"a table of {one.manifest.game} and one of {other.manifest.game} can not be compared"
        )
    slack = one.error + other.error + 1e-9 if tolerance is None else tolerance
    swapped = other.manifest.rows < one.manifest.rows
    small, large = (other, one) if swapped else (one, other)
    states = missing = payoffs = actions = 0
    largest = 0.0
    heap: list[tuple[float, int, Difference]] = []
    for piece in small.all_states() if sample is None else small.draw(sample, seed):
        theirs, found = _translated(small, large, piece)
        held = np.zeros(len(piece), bool)
        held[found] = large.look(theirs)[1]
        missing += int((~held).sum())
        mine, theirs = piece[held], theirs[held[found]]
        if not len(mine):
            continue
        gap = np.abs(small.probe(mine) - large.probe(theirs)).max(axis=1)
        best = _best(small, mine), _best(large, theirs)
        acts = np.array([a != b and not tie for (a, tie), (b, _) in zip(*best, strict=True)])
        states += len(mine)
        payoffs += int((gap > slack).sum())
        actions += int(acts.sum())
        largest = max(largest, float(gap.max()))
        for x in np.flatnonzero((gap > slack) | acts):
            names = best[0][x][0], best[1][x][0]
            if swapped:
                names = names[1], names[0]
            item = Difference(small.game.describe(mine[x]), float(gap[x]), names)
            heapq.heappush(heap, (float(gap[x]), -(states + int(x)), item))
            if len(heap) > worst:
                heapq.heappop(heap)
    ordered = [item for _, _, item in sorted(heap, key=lambda entry: entry[:2], reverse=True)]
    return Comparison(states, missing, payoffs, actions, largest, slack, ordered)


def _translated(small: Table, large: Table, states: Ints) -> tuple[Ints, NDArray[np.bool_]]:
    """The states as the other board has them, and which of them it has (n,)."""
    columns = small.game.state_columns(states)
    values = np.stack([np.asarray(column, np.int64) for column in columns.values()], axis=1)
    everything = np.ones(len(states), bool)
    try:
        return large.game.canonical_states(values), everything
    except StateError:
        pass
    kept: list[Ints] = []
    for x in range(len(states)):
        try:
            kept.append(large.game.canonical_states(values[x : x + 1])[0])
        except StateError:
            everything[x] = False
    return np.array(kept, np.int64).reshape(len(kept), values.shape[1]), everything


def _best(table: Table, states: Ints) -> list[tuple[str | None, bool]]:
    """(best action, whether it is a toss-up) of each state."""
    stored: Floats = table.probe(states)
    return table.best_names(expand(table.game, states), states, stored)
