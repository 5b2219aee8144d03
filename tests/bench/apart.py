"""How far a rough table is from a good one of the same game: payoffs, decisions, what they cost.

The rough one may be of a coarser board: states are matched by their fields in people's units, so
only those count that both boards have.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.capabilities import SearchHints
from luckbase.solver.search.expand import expand

if TYPE_CHECKING:
    from luckbase.cluster.table.lookup import Lookup


@dataclass(frozen=True)
class Apart:
    """How far payoffs and decisions are apart.

    states: compared. mean, high, most: of the largest difference of a player's payoff, a state: its
    mean, its 99th percentile, its greatest. decisions: states in which a player decides. others: of
    those, in how many the rough table's best action is another and costs something by the good
    one. cost, most_cost: what playing by the rough table costs the one who decides, by the good
    table: the mean over decisions, and the greatest.
    """

    states: int
    mean: float
    high: float
    most: float
    decisions: int
    others: int
    cost: float
    most_cost: float

    def as_json(self) -> dict[str, Any]:
        """The numbers by name."""
        return dict(self.__dict__)


def apart(good: Lookup, rough: Lookup, states: Iterable[Ints]) -> dict[int, Apart]:
    """By level of the game (`SearchHints`; all under 0 where it declares none), of canonical states
    of the good table's game, in pieces (n, fields).

    Raises MissingTableError where the good table lacks the children of a decision.
    """
    pieces = [one for piece in states for one in _compared(good, rough, piece)]
    if not pieces:
        return {}
    levels, gaps, decides, costs = (np.concatenate(column) for column in zip(*pieces, strict=True))
    return {
        int(level): _said(gaps[at], decides[at], costs[at])
        for level in np.unique(levels)
        for at in [levels == level]
    }


def together(found: Iterable[Apart]) -> Apart:
    """Of all levels, each counting by its states; the 99th percentile is the greatest of theirs."""
    each = list(found)
    states, decisions = sum(one.states for one in each), sum(one.decisions for one in each)
    return Apart(
        states, sum(one.mean * one.states for one in each) / max(1, states),
        max(one.high for one in each), max(one.most for one in each), decisions,
        sum(one.others for one in each),
        sum(one.cost * one.decisions for one in each) / max(1, decisions),
        max(one.most_cost for one in each),
    )  # fmt: skip


def _said(gaps: Floats, decides: Ints, costs: Floats) -> Apart:
    decisions = int(decides.sum())
    return Apart(
        len(gaps), float(gaps.mean()), float(np.quantile(gaps, 0.99)), float(gaps.max()),
        decisions, int((costs > 0).sum()), float(costs.sum() / max(1, decisions)),
        float(costs.max()),
    )  # fmt: skip


def _compared(
    good: Lookup, rough: Lookup, states: Ints
) -> Iterator[tuple[Ints, Floats, Ints, Floats]]:
    """(levels, gaps, who decides, costs), each (m,), of those states that both tables hold."""
    theirs, known = rough.game.known_states(good.game.fields.values(states))
    states = states[known]
    if not len(states):
        return
    values, held = good.lookup(states)
    others, there = rough.lookup(theirs)
    both = np.flatnonzero(held & there)
    if not len(both):
        return
    states, theirs = states[both], theirs[both]
    gaps = np.abs(values[both] - others[both]).max(axis=1)
    names, wanted = good.stored_best(states), rough.stored_best(theirs)
    edges = expand(good.game, states)
    decides = np.array([len(np.unique(edges.actions[i:j])) > 1 for i, j in
                        zip(edges.first[:-1], edges.first[1:], strict=True)])  # fmt: skip
    differ = [i for i, (one, other) in enumerate(zip(names, wanted, strict=True))
              if decides[i] and one != other]  # fmt: skip
    costs = np.zeros(len(states))
    if differ:
        costs[differ] = _costs(good, states[differ], [wanted[i] for i in differ])
    yield _levels(good, states), gaps, decides.astype(np.int64), costs


def _costs(good: Lookup, states: Ints, actions: list[str | None]) -> Floats:
    """What the action costs the one who decides, 0 where it is a toss-up, (n,)."""
    edges = expand(good.game, states)
    q = good.action_values(edges)
    found = np.zeros(len(states))
    for i, action in enumerate(actions):
        own = q.values[q.first[i] : q.first[i + 1], int(edges.actors[i])]
        names = [good.game.action_name(int(a)) for a in q.actions[q.first[i] : q.first[i + 1]]]
        if action in names:
            cost = float(own.max() - own[names.index(action)])
            found[i] = cost if cost > good.tolerance else 0.0
    return found


def _levels(lookup: Lookup, states: Ints) -> Ints:
    """The game's level of states, (n,)."""
    level = lookup.game.own(SearchHints).level
    found = np.zeros(len(states), np.int64)
    if level is not None:
        for name, factor in level.falls.items():
            found += factor * states[:, lookup.game.columns.index(name)]
    return found
