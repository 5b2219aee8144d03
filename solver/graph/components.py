"""Strongly connected components of several states: solved as one piece, children known.

Small ones in which nothing is chosen are linear. With P the chances between the members, and r what
the edges pay plus what the children outside are worth::

    V = r + P V,    (1 - P) V = r

by Gaussian elimination with partial pivoting, in the order of the members' keys: the same bits
whatever the search, and whatever the number of threads of a linear algebra library.

All others go to `solver.graph.interval_iteration`, which gives a lower and an upper payoff that are
proved, or refuses in a sentence that names a state: a cycle that play need not leave, a choice on a
cycle of a game that is not of one player or of two with payoffs of constant sum. A graph without
bounds takes the middle of the two and keeps their gap (`Graph.gaps`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numba as nb
import numpy as np
from numba import types
from numpy.typing import NDArray

from luckbase.solver.errors import StateError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.transition import SIMULTANEOUS
from luckbase.solver.graph import interval_iteration as fixed_point
from luckbase.solver.graph.bellman import Expanded, choose, expand
from luckbase.solver.graph.depth_first import MIXED, UNDECIDED, choose_by_bounds, margin_of
from luckbase.solver.graph.interval_iteration import FixedPoint
from luckbase.solver.graph.keys import pack_all

if TYPE_CHECKING:
    from luckbase.solver.graph.graph import Graph

MOST_LINEAR = 400
"""Members of a component that is solved by elimination: 20 ms."""
TOLERANCES = (1e-13, 1e-11, 1e-9)
"""Gaps asked for, by the size of the payoffs; the next where float64 can not give the last."""

_f2 = types.float64[:, ::1]


@nb.njit(types.boolean(_f2, _f2), cache=True, nogil=True)
def eliminate(matrix, right):
    """Solve matrix (n, n) times x = right (n, c); x is left in `right`, both modified in place.

    Returns False where the matrix is singular.
    """
    n, columns = right.shape
    for k in range(n):
        pivot = k
        for i in range(k + 1, n):
            if abs(matrix[i, k]) > abs(matrix[pivot, k]):
                pivot = i
        if abs(matrix[pivot, k]) < 1e-14:
            return False
        if pivot != k:
            for j in range(k, n):
                matrix[k, j], matrix[pivot, j] = matrix[pivot, j], matrix[k, j]
            for c in range(columns):
                right[k, c], right[pivot, c] = right[pivot, c], right[k, c]
        for i in range(k + 1, n):
            factor = matrix[i, k] / matrix[k, k]
            if factor != 0.0:
                for j in range(k + 1, n):
                    matrix[i, j] -= factor * matrix[k, j]
                for c in range(columns):
                    right[i, c] -= factor * right[k, c]
    for k in range(n - 1, -1, -1):
        for c in range(columns):
            total = right[k, c]
            for j in range(k + 1, n):
                total -= matrix[k, j] * right[j, c]
            right[k, c] = total / matrix[k, k]
    return True


@dataclass(frozen=True)
class Component:
    """The m members of a component, solved.

    values: float64 (m, columns). best: int64 (m,), margins: float64 (m,), actors: int8 (m,), as
    `Graph` has them. gap: of the bounds.
    """

    values: Floats
    best: Ints
    margins: Floats
    actors: NDArray[np.int8]
    gap: float


def solve_component(graph: Graph, members: NDArray[np.int32]) -> Component:
    """Solve the members, sorted by key, of one component.

    All else below them is solved in `graph`. Raises StateError for what is not covered.
    """
    game = graph.game
    edges = expand(game, graph.states(members))
    children = graph.look_up(pack_all(game.bits, edges.children))
    weights, best, choice = _fixed(graph, members, edges)
    kept = np.flatnonzero(weights > 0)  # what a policy never does may lead to states not met
    owner = np.repeat(np.arange(len(members)), np.diff(edges.first))[kept]
    place = {int(x): i for i, x in enumerate(members)}
    local = np.array([place.get(int(y), -1) for y in children[kept]])
    rewards = edges.rewards[kept]
    margins = np.full(len(members), np.nan)
    actors = np.where(best == MIXED, 0, edges.actors + 1).astype(np.int8)
    if not choice and len(members) <= MOST_LINEAR:
        matrix, right = np.eye(len(members)), np.zeros((len(members), graph.columns))
        paid = np.tile(rewards, graph.columns // game.players)
        for k in range(len(owner)):  # in the order of the edges: sums with the same bits
            i, weight = owner[k], weights[kept[k]]
            right[i] += weight * paid[k]
            if local[k] >= 0:
                matrix[i, local[k]] -= weight
            else:
                right[i] += weight * graph.values[children[kept[k]]]
        if not eliminate(matrix, right):
            raise StateError(
                f"{game.describe(graph.states(members[:1])[0])} lies on a cycle that play may "
                "never leave, so its payoff is not defined"
            )
        return Component(right, best, margins, actors, 0.0)
    outside, which = np.unique(children[kept][local < 0], return_inverse=True)
    local[local < 0] = len(members) + which
    # What a policy has fixed is one lottery: its edges are one action.
    acts = np.where(best[owner] == MIXED, 0, edges.actions[kept])
    known = graph.values[outside]
    first = np.searchsorted(owner, np.arange(len(members) + 1))
    found = _certified(
        graph, members, (first, acts, weights[kept], rewards, local, edges.actors),
        known[:, : game.players], known[:, -game.players :],
    )  # fmt: skip
    values = np.concatenate([found.lower, found.upper], axis=1)
    if graph.columns == game.players:
        values = (found.lower + found.upper) / 2
    if choice:
        whole = np.concatenate([values, known])
        order = np.where(local >= 0, local, 0)
        _choose(graph, edges, kept, owner, acts, whole[order], best, margins)
    return Component(values, best, margins, actors, found.gap)


def _certified(
    graph: Graph,
    members: NDArray[np.int32],
    flat: tuple[Ints, Ints, Floats, Floats, Ints, Ints],
    lower: Floats,
    upper: Floats,
) -> FixedPoint:
    game = graph.game
    low, high = game.payoff_range
    size = max(abs(low), abs(high))
    describe = lambda x: str(game.describe(graph.states(members[x : x + 1])[0]))  # noqa: E731
    for tolerance in TOLERANCES:
        try:
            return fixed_point.solve_component(
                *flat, np.ascontiguousarray(lower), np.ascontiguousarray(upper), low, high,
                tolerance * size, describe=describe,
            )  # fmt: skip
        except fixed_point.GapError:
            if tolerance == TOLERANCES[-1]:
                raise
    raise AssertionError


def _choose(
    graph: Graph,
    edges: Expanded,
    kept: Ints,
    owner: Ints,
    acts: Ints,
    below: Floats,
    best: Ints,
    margins: Floats,
) -> None:
    """Write the best actions and their margins where there is a choice, from the values (k,
    columns) of children."""
    players = graph.game.players
    paid = edges.weights[kept, None] * (
        np.tile(edges.rewards[kept], below.shape[1] // players) + below
    )
    starts = np.ones(len(owner), bool)
    starts[1:] = (owner[1:] != owner[:-1]) | (acts[1:] != acts[:-1])
    at = np.flatnonzero(starts)
    q, of = np.add.reduceat(paid, at, axis=0), owner[at]
    bounds = np.searchsorted(of, np.arange(len(best) + 1))
    out = np.empty(2 * players)
    for i in range(len(best)):
        here = slice(int(bounds[i]), int(bounds[i + 1]))
        own, actor = np.ascontiguousarray(q[here]), int(edges.actors[i])
        if len(own) < 2:
            continue
        taken = choose(own, actor, graph.tolerance)
        if graph.bounds:
            taken = int(choose_by_bounds(len(own), taken, actor, graph.tolerance, own, out))
        best[i] = acts[at[here]][taken] if taken >= 0 else UNDECIDED
        if taken >= 0:
            upper = actor + own.shape[1] - players
            margins[i] = margin_of(len(own), taken, actor, upper, own)


def _fixed(graph: Graph, members: NDArray[np.int32], edges: Expanded) -> tuple[Floats, Ints, bool]:
    """The weights of the edges with the policy's chances in them, the action of each member that
    has one only (or MIXED where the policy fixes it), and whether there is a choice left."""
    weights, best = edges.weights.copy(), np.empty(len(members), np.int64)
    choice = False
    for i, x in enumerate(members):
        if edges.kinds[i] == SIMULTANEOUS:
            raise StateError(
                f"{graph.game.describe(graph.states(members[i : i + 1])[0])} lies on a cycle and "
                "both players choose there at once; such cycles are not solved"
            )
        here = slice(int(edges.first[i]), int(edges.first[i + 1]))
        actions = edges.actions[here]
        listed = list(dict.fromkeys(actions.tolist()))
        best[i] = listed[0]
        chances = graph.policy_of(int(x))
        if len(chances):
            weights[here] *= chances[[listed.index(action) for action in actions.tolist()]]
            best[i] = MIXED
        else:
            choice = choice or len(listed) > 1
    return weights, best, choice
