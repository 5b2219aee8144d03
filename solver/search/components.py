"""Strongly connected components of several states: solved as one piece, children known.

Small ones in which nothing is chosen are linear. With P the chances between the members, and r what
the edges pay plus what the children outside are worth::

    V = r + P V,    (1 - P) V = r

by Gaussian elimination with partial pivoting, in the order of the members' keys: the same bits
whatever the search, and whatever the number of threads of a linear algebra library.

All others go to `solver.search.interval_iteration`, which gives a lower and an upper payoff that
are proved, or refuses in a sentence that names a state: a cycle that play need not leave, a choice
on a cycle of a game that is not of one player or of two with payoffs of constant sum. A graph
without bounds takes the middle of the two and keeps their gap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numba import types
from numpy.typing import NDArray

from luckbase.solver.errors import StateError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.game import Game
from luckbase.solver.game.transition import SIMULTANEOUS
from luckbase.solver.linear import eliminate
from luckbase.solver.njit import njit
from luckbase.solver.search import interval_iteration
from luckbase.solver.search.bellman import Expanded
from luckbase.solver.search.bellman_step import (
    LOTTERIES,
    Lotteries,
    Scratch,
    action_values,
    decide,
)
from luckbase.solver.search.codes import MIXED, UNDECIDED
from luckbase.solver.search.interval_iteration import FixedPoint

MOST_LINEAR = 400
"""Members of a component that is solved by elimination: 20 ms."""
TOLERANCES = (1e-13, 1e-11, 1e-9)
"""Gaps asked for, by the size of the payoffs; the next where float64 can not give the last."""

_i, _f, _i1, _f1 = types.int64, types.float64, types.int64[::1], types.float64[::1]
_f2 = types.float64[:, ::1]


@dataclass(frozen=True)
class Component:
    """The m members of a component, in the order of their keys, with k edges.

    members: int32 (m,), their numbers. states: int64 (m, fields). edges: theirs. children: int32
    (k,), the number of each edge's child, -1 where it was never met. chances: of the actions of
    each member, where a policy fixes them, else empty. payoffs: float64 (states, columns), of all
    states by number, a column a player, or two for bounds; those of the members are not looked at.
    tolerance: of ties.
    """

    game: Game
    members: NDArray[np.int32]
    states: Ints
    edges: Expanded
    children: NDArray[np.int32]
    chances: Sequence[Floats]
    payoffs: Floats
    tolerance: float

    @property
    def columns(self) -> int:
        """Numbers a state."""
        return int(self.payoffs.shape[1])

    def describe(self, i: int) -> str:
        """Member i, for a sentence."""
        return str(self.game.describe(self.states[i]))


@dataclass(frozen=True)
class Solved:
    """The m members of a component, solved.

    values: float64 (m, columns). best: int64 (m,), margins: float64 (m,), actors: int8 (m,), as
    `Graph` has them. gap: of the bounds.
    """

    values: Floats
    best: Ints
    margins: Floats
    actors: NDArray[np.int8]
    gap: float


@dataclass(frozen=True)
class _Kept:
    """The edges that play may take: their places among all, their members, their weights with the
    policy's chances in them, their actions (those of a member whose policy is fixed are one), the
    members that they lead to, -1 for others."""

    at: Ints
    owner: Ints
    weights: Floats
    actions: Ints
    local: Ints


def solve(component: Component) -> Solved:
    """Solve a component, everything else below it being solved.

    Raises StateError for what is not covered.
    """
    c, m = component, len(component.members)
    weights, best, choice = _fixed(c)
    at = np.flatnonzero(weights > 0)  # what a policy never does may lead to states not met
    owner = np.repeat(np.arange(m), np.diff(c.edges.first))[at]
    place = {int(x): i for i, x in enumerate(c.members)}
    local = np.array([place.get(int(y), -1) for y in c.children[at]])
    acts = np.where(best[owner] == MIXED, 0, c.edges.actions[at])
    kept = _Kept(at, owner, weights[at], acts, local)
    margins = np.full(m, np.nan)
    actors = np.where(best == MIXED, 0, c.edges.actors + 1).astype(np.int8)
    if not choice and m <= MOST_LINEAR:
        return Solved(_linear(c, kept), best, margins, actors, 0.0)
    outside, which = np.unique(c.children[at][local < 0], return_inverse=True)
    local[local < 0] = m + which
    known = c.payoffs[outside]
    edges = Lotteries(local, kept.weights, acts, c.edges.rewards[at])
    first = np.searchsorted(owner, np.arange(m + 1))
    found = _certified(c, first, edges, known)
    values = np.concatenate([found.lower, found.upper], axis=1)
    if c.columns == c.game.players:
        values = (found.lower + found.upper) / 2
    if choice:
        whole = np.concatenate([values, known])
        _choose(edges, first, c.edges.actors, whole, c.tolerance, best, margins)
    return Solved(values, best, margins, actors, found.gap)


def _linear(c: Component, kept: _Kept) -> Floats:
    """The payoffs (m, columns) of members who have nothing to choose."""
    m = len(c.members)
    t = np.zeros((m, m + c.columns))
    matrix, right = t[:, :m], t[:, m:]
    np.fill_diagonal(matrix, 1.0)
    paid = np.tile(c.edges.rewards[kept.at], c.columns // c.game.players)
    for k in range(len(kept.at)):  # in the order of the edges: sums with the same bits
        i, weight = kept.owner[k], kept.weights[k]
        right[i] += weight * paid[k]
        if kept.local[k] >= 0:
            matrix[i, kept.local[k]] -= weight
        else:
            right[i] += weight * c.payoffs[c.children[kept.at[k]]]
    if not eliminate(t, m, c.columns, 1e-14, False):
        raise StateError(
            f"{c.describe(0)} lies on a cycle that play may never leave, so its payoff is not "
            "defined"
        )
    return right


def _certified(c: Component, first: Ints, edges: Lotteries, known: Floats) -> FixedPoint:
    """Bounds of the members, as close as float64 gives them."""
    players = c.game.players
    low, high = c.game.payoff_range
    equations = interval_iteration.Component(
        first, *edges, c.edges.actors,
        np.ascontiguousarray(known[:, :players]), np.ascontiguousarray(known[:, -players:]),
    )  # fmt: skip
    for tolerance in TOLERANCES:
        try:
            return interval_iteration.solve_component(
                equations, (low, high), tolerance * max(abs(low), abs(high)), describe=c.describe
            )
        except interval_iteration.GapError:
            if tolerance == TOLERANCES[-1]:
                raise
    raise AssertionError


@njit(types.void(LOTTERIES, _i1, _i1, _f2, _f, _i1, _f1), cache=True, nogil=True)
def _choose(edges, first, actors, values, tolerance, best, margins):  # type: ignore[no-untyped-def]
    """Write the best actions and their margins where there is a choice, from the values of the
    members and, behind them, of what they lead to."""
    most = 0
    for i in range(best.size):
        most = max(most, first[i + 1] - first[i])
    columns = values.shape[1]
    scratch = Scratch(np.empty((most, columns)), np.empty(most, np.int64), np.empty(columns))
    for i in range(best.size):
        groups = action_values(edges, first[i], first[i + 1], values, 0, scratch)
        if groups < 2:
            continue
        taken, margin = decide(groups, actors[i], edges.rewards.shape[1], tolerance, scratch)
        best[i] = edges.actions[scratch.starts[taken]] if taken >= 0 else UNDECIDED
        margins[i] = margin


def _fixed(c: Component) -> tuple[Floats, Ints, bool]:
    """The weights of the edges with the policy's chances in them, the action of each member that
    has one only (or MIXED where the policy fixes it), and whether there is a choice left."""
    edges, best = c.edges, np.empty(len(c.members), np.int64)
    weights, choice = edges.weights.copy(), False
    for i, chances in enumerate(c.chances):
        if edges.kinds[i] == SIMULTANEOUS:
            raise StateError(
                f"{c.describe(i)} lies on a cycle and both players choose there at once; such "
                "cycles are not solved"
            )
        here = slice(int(edges.first[i]), int(edges.first[i + 1]))
        actions = edges.actions[here]
        listed = list(dict.fromkeys(actions.tolist()))
        best[i] = listed[0]
        if len(chances):
            weights[here] *= chances[[listed.index(action) for action in actions.tolist()]]
            best[i] = MIXED
        else:
            choice = choice or len(listed) > 1
    return weights, best, choice
