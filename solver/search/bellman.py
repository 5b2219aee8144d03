"""What every action of expanded states is worth, for any game: the Bellman step, many at a time.

`expand` turns states into flat arrays of edges by the game's own transition; `evaluate` takes the
payoffs of the children and gives q (`solver.search.bellman_step`). Nothing here knows which game it
is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numba import types
from numpy.typing import NDArray

from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.faults import fault_at
from luckbase.solver.game.game import Game
from luckbase.solver.game.transition import (
    JOINT,
    NUMBERS_TYPE,
    SIMULTANEOUS,
    TERMINAL,
    TRANSITION,
    Edges,
)
from luckbase.solver.njit import njit
from luckbase.solver.search.bellman_step import LOTTERIES, Lotteries, action_value, best_of
from luckbase.solver.search.expansion import (
    ROOM_TYPE,
    expand_one,
    expanding,
    room_of,
)

if TYPE_CHECKING:
    from luckbase.solver.matrix_game.certified import Solutions

_i1, _i2, _f2 = types.int64[::1], types.int64[:, ::1], types.float64[:, ::1]


@njit(types.int64(TRANSITION, NUMBERS_TYPE, _i2, ROOM_TYPE, _i1, _i1, _i1), cache=True, nogil=True)
def _expand(transition, board, states, room, first, kinds, actors):  # type: ignore[no-untyped-def]
    """Write the edges of states (n, fields) behind one another; returns how many, or BROKEN, the
    state then in room.at."""
    children, weights, actions, rewards, about = room.edges
    most = weights.size // (states.shape[0] + 1)
    edge = 0
    for x in range(states.shape[0]):
        first[x] = edge
        stop = edge + most
        here = Edges(
            children[edge:stop], weights[edge:stop], actions[edge:stop], rewards[edge:stop], about
        )
        count = expand_one(transition, board, states[x], here, room)
        if count < 0:
            return count
        kinds[x], actors[x] = about[0], about[1]
        if about[0] == TERMINAL:  # one edge to itself that pays the payoff
            for f in range(states.shape[1]):  # to assign a row would compile what it may raise
                children[edge, f] = states[x, f]
            weights[edge], actions[edge], count = 1.0, -1, 1
        edge += count
    first[states.shape[0]] = edge
    return edge


@dataclass(frozen=True)
class Expanded:
    """The expanded states: n states, m edges, p players.

    kinds, actors: int64 (n,). first: int64 (n + 1,), state x has edges first[x] .. first[x + 1].
    children: int64 (m, fields). weights: float64 (m,). actions: int64 (m,), -1 at a terminal state,
    whose one edge leads to itself and pays its payoff. rewards: float64 (m, p).
    """

    kinds: Ints
    actors: Ints
    first: Ints
    children: Ints
    weights: Floats
    actions: Ints
    rewards: Floats

    @property
    def terminal(self) -> NDArray[np.bool_]:
        """(n,) whether each state is over."""
        return np.equal(self.kinds, TERMINAL)


def expand(game: Game, states: Ints) -> Expanded:
    """All edges of canonical states (n, fields), by the game's transition.

    Raises GameError for a state whose edges break the rules.
    """
    n = len(states)
    room = room_of(game, n + 1)
    first, kinds, actors = (np.empty(n + extra, np.int64) for extra in (1, 0, 0))
    found = np.ascontiguousarray(states)
    with expanding(game, room):
        m = int(_expand(game.transition, game.numbers, found, room, first, kinds, actors))
    if m < 0:
        raise fault_at(game, room.at)
    edges = room.edges
    return Expanded(
        kinds, actors, first, edges.children[:m], edges.weights[:m], edges.actions[:m],
        edges.rewards[:m],
    )  # fmt: skip


@dataclass(frozen=True)
class ActionValues:
    """q of every action of expanded states: k actions in all, p players.

    states: int64 (k,), the state's index, ascending. actions: int64 (k,). values: float64 (k, p).
    first: int64 (n + 1,), state x has actions first[x] .. first[x + 1].
    """

    states: Ints
    actions: Ints
    values: Floats
    first: Ints


def action_starts(edges: Expanded) -> tuple[Ints, Ints]:
    """(the state of each edge (m,), the first edge of each action (k,))."""
    owner = np.repeat(np.arange(len(edges.kinds)), np.diff(edges.first))
    starts = np.ones(len(owner), bool)
    starts[1:] = (owner[1:] != owner[:-1]) | (edges.actions[1:] != edges.actions[:-1])
    return owner, np.flatnonzero(starts)


@njit(types.void(_i1, _i1, LOTTERIES, _f2, _f2), cache=True, nogil=True)
def _evaluate(kinds, first, edges, payoffs, q):  # type: ignore[no-untyped-def]
    """Write q (k, players) of every action of states with edges first[x] .. first[x + 1] - 1."""
    g = 0
    for x in range(kinds.size):
        k = first[x]
        if kinds[x] == TERMINAL:
            for p in range(q.shape[1]):
                q[g, p] = edges.rewards[k, p]
            g, k = g + 1, k + 1
        while k < first[x + 1]:
            k = action_value(edges, k, first[x + 1], payoffs, 0, q, g)
            g += 1


def evaluate(edges: Expanded, payoffs: Floats) -> ActionValues:
    """q of every action, from the payoffs (m, players) of the children in the edges' order.

    The payoff given for the child of a terminal edge is not looked at.
    """
    owner, at = action_starts(edges)
    q, each = np.empty((len(at), edges.rewards.shape[1])), np.arange(len(owner))
    flat = Lotteries(each, edges.weights, edges.actions, edges.rewards)
    _evaluate(edges.kinds, edges.first, flat, np.ascontiguousarray(payoffs, np.float64), q)
    first = np.searchsorted(owner[at], np.arange(len(edges.kinds) + 1))
    return ActionValues(owner[at], edges.actions[at], q, first)


@njit(types.void(_i1, _i1, _f2, types.float64, _i1), cache=True, nogil=True)
def _choose(first, actors, values, tolerance, taken):  # type: ignore[no-untyped-def]
    """Write the row that is taken at each state, whose actions are first[x] .. first[x + 1] - 1."""
    for x in range(actors.size):
        rows = values[first[x] : first[x + 1]]
        taken[x] = first[x] + best_of(rows, rows.shape[0], actors[x], tolerance)


def chosen(q: ActionValues, actors: Ints, tolerance: float) -> Ints:
    """int64 (n,): the row of `q` that the actor (n,), from 0, of each of n states takes: a later
    action if better by more. Where nobody acts (-1) player 1 does."""
    taken = np.empty(len(actors), np.int64)
    up = np.maximum(np.asarray(actors, np.int64), 0)
    _choose(np.ascontiguousarray(q.first), up, np.ascontiguousarray(q.values), tolerance, taken)
    return taken


def choose(values: Floats, actor: int, tolerance: float) -> int:
    """The row of `values` (actions, players) that `actor` takes: a later one if better by more."""
    taken, first = np.empty(1, np.int64), np.array([0, len(values)])
    _choose(first, np.array([actor]), np.ascontiguousarray(values), tolerance, taken)
    return int(taken[0])


@dataclass(frozen=True)
class Joint:
    """A simultaneous state's matrix game: rows, columns: the actions of players 0 and 1, ascending.
    games: float64 (rows, columns), player 0's payoffs. total: what both players' payoffs sum to."""

    rows: Ints
    columns: Ints
    games: Floats
    total: float


def joint(actions: Ints, values: Floats) -> Joint:
    """The matrix game of joint actions (k,), rows slowest, and their payoffs (k, 2)."""
    rows, columns = np.unique(actions // JOINT), np.unique(actions % JOINT)
    games = np.ascontiguousarray(values[:, 0].reshape(len(rows), len(columns)))
    return Joint(rows, columns, games, float(values[0].sum()))


def solved_games(q: ActionValues, states: Ints) -> Iterator[tuple[Ints, Solutions]]:
    """The matrix games of those of the expanded states, (m,), in which both choose at once, all of
    one shape at a time: which states, and their solutions."""
    from luckbase.solver.matrix_game import certified as matrix_game

    if not len(states):
        return
    row, first = q.actions // JOINT, q.first[:-1]
    counts = np.diff(q.first)
    of_first = np.add.reduceat((row == np.repeat(row[first], counts)).astype(np.int64), first)
    columns, rows = of_first[states], counts[states] // of_first[states]
    for shape in sorted(set(zip(rows.tolist(), columns.tolist(), strict=True))):
        at = states[(rows == shape[0]) & (columns == shape[1])]
        cells = q.first[at][:, None] + np.arange(shape[0] * shape[1])
        yield at, matrix_game.solve(q.values[cells, 0].reshape(-1, *shape))


def strategies_of(q: ActionValues, player: int) -> list[Floats]:
    """An optimal strategy of a player (0 or 1) at each of n expanded states in which both choose at
    once, over their actions, ascending."""
    found: list[Floats] = [np.empty(0)] * (len(q.first) - 1)
    for at, solved in solved_games(q, np.arange(len(found))):
        sides = solved.row_strategies if player == 0 else solved.column_strategies
        for x, strategy in zip(at.tolist(), sides, strict=True):
            found[x] = strategy
    return found


def payoffs_of(kinds: Ints, actors: Ints, q: ActionValues, tolerance: float) -> Floats:
    """The payoffs (n, players) of n expanded states of any kind, from those of their actions."""
    found = np.empty((len(kinds), q.values.shape[1]))
    both = kinds == SIMULTANEOUS
    if not both.all():
        found[:] = q.values[chosen(q, actors, tolerance)]
    for at, solved in solved_games(q, np.flatnonzero(both)):
        found[at, 0] = solved.values
        found[at, 1] = q.values[q.first[at]].sum(axis=1) - solved.values
    return found


def most_residual(game: Game, error: Floats | float) -> Floats:
    """(n,) the most by which payoffs that are each within `error` (n,) of the exact ones can be
    apart from one step of the rules over their children, which are as exact: twice that; and no
    less than twice what the sums of a step lose in float64."""
    largest = max(abs(bound) for bound in game.payoff_range)
    found: Floats = 2 * np.maximum(error, (game.max_edges + 2) * 2.0**-53 * largest)
    return found


def final_payoffs(game: Game, states: Ints) -> Floats:
    """The payoffs (n, players) of states that are over; ValueError if one is not."""
    edges = expand(game, states)
    if not edges.terminal.all():
        raise ValueError(f"not over: {game.describe(states[np.flatnonzero(~edges.terminal)[0]])}")
    return edges.rewards
