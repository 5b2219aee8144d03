"""Strongly connected components of several states: solved as one piece, children known.

Nothing chosen: the payoffs are the solution of linear equations. With P the chances between the
members, and r what the edges pay plus what the children outside are worth::

    V = r + P V,    (1 - P) V = r

by Gaussian elimination with partial pivoting, in the order of the members' keys: the same bits
whatever the search, and whatever the number of threads of a linear algebra library.

A component with a choice in it is refused, naming a state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numba as nb
import numpy as np
from numba import types
from numpy.typing import NDArray

from solver.backup import Edges, expand
from solver.errors import StateError
from solver.game import Floats, Ints
from solver.keys import pack_all
from solver.walk import MIXED

if TYPE_CHECKING:
    from solver.graph import Graph

MOST_LINEAR = 3000
"""Members of a component that is solved by elimination: 9 s."""

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


def solve_component(graph: Graph, members: NDArray[np.int32]) -> tuple[Floats, Ints]:
    """(values (m, columns), best actions (m,)) of the members, sorted by key, of one component.

    All else below them is solved in `graph`. Raises StateError for what is not covered.
    """
    game = graph.game
    edges = expand(game, graph.states(members))
    children = graph.look_up(pack_all(game.bits, edges.children))
    place = {int(x): i for i, x in enumerate(members)}
    inside = np.array([place.get(int(y), -1) for y in children])
    weights, best = _fixed(graph, members, edges)
    if len(members) > MOST_LINEAR:
        raise StateError(
            f"{game.describe(graph.states(members[:1])[0])} lies on a cycle of {len(members)} "
            f"states; the search solves cycles of at most {MOST_LINEAR}"
        )
    owner = np.repeat(np.arange(len(members)), np.diff(edges.first))
    matrix = np.eye(len(members))
    right = np.zeros((len(members), graph.columns))
    rewards = np.tile(edges.rewards, graph.columns // game.players)
    for k in range(len(owner)):  # in the order of the edges: sums with the same bits
        i, weight = owner[k], weights[k]
        if weight == 0.0:
            continue  # an action that the policy never takes: its child may not have been met
        right[i] += weight * rewards[k]
        if inside[k] >= 0:
            matrix[i, inside[k]] -= weight
        else:
            right[i] += weight * graph.values[children[k]]
    if not eliminate(matrix, right):
        raise StateError(
            f"{game.describe(graph.states(members[:1])[0])} lies on a cycle that play may never "
            "leave, so its payoff is not defined"
        )
    return right, best


def _fixed(graph: Graph, members: NDArray[np.int32], edges: Edges) -> tuple[Floats, Ints]:
    """The weights of the edges with nothing left to choose, and each member's best action."""
    weights, best = edges.weights.copy(), np.empty(len(members), np.int64)
    for i, x in enumerate(members):
        here = slice(int(edges.first[i]), int(edges.first[i + 1]))
        actions = edges.actions[here]
        listed = list(dict.fromkeys(actions.tolist()))
        best[i] = listed[0]
        chances = graph.policy_of(int(x))
        if len(chances):
            weights[here] *= chances[[listed.index(action) for action in actions.tolist()]]
            best[i] = MIXED
        elif len(listed) > 1:
            raise StateError(
                f"{graph.game.describe(graph.states(members[i : i + 1])[0])} lies on a cycle with "
                "a choice in it; the search solves cycles without choices only"
            )
    return weights, best
