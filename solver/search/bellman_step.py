"""One step of the Bellman equation at one state, compiled: the one of the house.

For a state x with actions a, each a lottery over edges with weight w, reward r and child y::

    q(x, a) = sum over the edges of a  w (r + V(y))
    V(x)    = q(x, a*),  a* the acting player's best action; of tied ones the earliest

The depth-first search, the interval iteration and whoever asks what every action is worth
(`solver.search.bellman`) put these together; a sum is taken in the order of the edges everywhere,
so a payoff has the same bits whoever works it out. Functions without a signature become part of the
function that calls them.

**Bounds.** Where V has two columns a player, a lower and an upper payoff: the acting player's value
lies between the greatest lower and the greatest upper payoff of their actions; what the others get
lies between the least and the most over the actions that they may still take, those whose upper
payoff reaches their greatest lower one. The best action is called when one such is left.

Source: Puterman, Markov Decision Processes, 4.3 (the equations).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba as nb
import numpy as np
from numba import types

from luckbase.solver.game.transition import JOINT
from luckbase.solver.matrix_game.simplex import SOLVE_GAME, WORK
from luckbase.solver.njit import njit
from luckbase.solver.search.codes import JOINTLY, MIXED, UNDECIDED

MATRIX_GAME = types.FunctionType(SOLVE_GAME)
_i, _f, _i1, _f1 = types.int64, types.float64, types.int64[::1], types.float64[::1]
_f2 = types.float64[:, ::1]

inlined = nb.njit(nogil=True, forceinline=True)


class Lotteries(NamedTuple):
    """The edges of states behind one another, m of them; edges of one action stand together.

    children: ints (m,), rows of the values. weights: float64 (m,). actions: int64 (m,). rewards:
    float64 (m, players), or (0, players) where nothing is paid.
    """

    children: Any
    weights: Any
    actions: Any
    rewards: Any


LOTTERIES = types.NamedTuple((_i1, _f1, _i1, _f2), Lotteries)
"""With children of int64."""


class Scratch(NamedTuple):
    """Where a step writes: q float64 (most edges, columns), the first edge of each action int64
    (most edges,), the payoffs float64 (columns,). A column a player, or two: lower, then upper."""

    q: Any
    starts: Any
    out: Any


@inlined
def action_value(edges, k, stop, values, skip, q, g):
    """Write q(x, a) of the action whose edges begin at k to row g of q, for each of its columns;
    returns where the action ends, at `stop` at the latest.

    values: float64 (states, skip + columns), `skip` columns in front not being values.
    """
    children, weights, actions, rewards = edges
    action, columns, players = actions[k], q.shape[1], rewards.shape[1]
    pays = rewards.shape[0] > 0
    if columns == 3 and not pays:  # a row of three is one cache line, and read once
        q0 = q1 = q2 = 0.0
        while k < stop and actions[k] == action:
            y, weight = children[k], weights[k]
            q0 += weight * values[y, skip]
            q1 += weight * values[y, skip + 1]
            q2 += weight * values[y, skip + 2]
            k += 1
        q[g, 0], q[g, 1], q[g, 2] = q0, q1, q2
        return k
    end = k + 1
    while end < stop and actions[end] == action:
        end += 1
    for c in range(columns):
        total = 0.0
        for e in range(k, end):
            paid = rewards[e, c if c < players else c - players] if pays else 0.0
            total += weights[e] * (paid + values[children[e], skip + c])
        q[g, c] = total
    return end


@inlined
def action_values(edges, k, stop, values, skip, scratch):
    """`action_value` of every action of a state, whose edges are k .. stop - 1; where each begins
    goes to scratch.starts. Returns how many."""
    groups = 0
    while k < stop:
        scratch.starts[groups] = k
        k = action_value(edges, k, stop, values, skip, scratch.q, groups)
        groups += 1
    return groups


@inlined
def best_of(q, groups, actor, tolerance):
    """The row of q (groups, …) that `actor` takes: a later one if better by more."""
    best = 0
    for g in range(1, groups):
        if q[g, actor] > q[best, actor] + tolerance:
            best = g
    return best


@njit(_i(_i, _i, _i, _f, _f2, _f1), cache=True, nogil=True)
def choose_by_bounds(groups, sure, actor, tolerance, q, out):
    """The bounds of a state from those of its actions, q (groups, 2 players), into `out`; `sure` is
    the action of the greatest lower bound. Returns the only action left, or -1."""
    players = out.size // 2
    floor, left, last = q[sure, actor], 0, 0
    for p in range(players):
        out[p], out[players + p] = np.inf, -np.inf
    highest = -np.inf
    for g in range(groups):
        highest = max(highest, q[g, actor])
        # An earlier action is taken if level, a later one only if better by more.
        need = floor + (tolerance if g > sure else -tolerance)
        if g == sure or q[g, players + actor] > need:
            left, last = left + 1, g
            for p in range(players):
                out[p] = min(out[p], q[g, p])
                out[players + p] = max(out[players + p], q[g, players + p])
    if left == 1:
        return last
    out[actor] = highest
    return -1


@njit(_f(_i, _i, _i, _i, _f2), cache=True, nogil=True)
def margin_of(groups, best, lower, upper, q):
    """What the second best action would cost the one who acts, at least 0: q (groups, columns) of
    the best in column `lower`, less the greatest of the others in column `upper`."""
    second = -np.inf
    for g in range(groups):
        if g != best and q[g, upper] > second:
            second = q[g, upper]
    return max(q[best, lower] - second, 0.0)


@inlined
def decide(groups, actor, players, tolerance, scratch):
    """The payoffs of a state from its actions' (`action_values`), into scratch.out; returns (which
    action is taken, or -1 where the bounds do not say; its margin).

    The margin is NaN where there is nothing to choose or nothing is called; with bounds it is the
    best one's lower payoff less the greatest upper one of the others.
    """
    q, out = scratch.q, scratch.out
    chooses, bounded = groups > 1 and actor >= 0, out.size > players
    taken = best_of(q, groups, actor, tolerance) if chooses else 0
    if chooses and bounded:
        taken = choose_by_bounds(groups, taken, actor, tolerance, q, out)
    else:
        for c in range(out.size):
            out[c] = q[taken, c]
    margin = np.nan
    if chooses and taken >= 0:
        margin = margin_of(groups, taken, actor, actor + (players if bounded else 0), q)
    return taken, margin


@njit(SOLVE_GAME, cache=True, nogil=True)
def no_matrix_games(a, rows, columns, dominance, x, y, work):
    """In the place of `simplex.solve_game` for games whose players never choose at once."""
    return np.nan, np.nan, 0, 0


@njit(types.void(MATRIX_GAME, _i, _i, _i1, _f2, _f1), cache=True, nogil=True)
def joint_value(solve_game, groups, base, actions, q, out):
    """The payoffs of a state in which both choose at once: the value of the matrix game of its
    joint actions, q (groups, 2), rows slowest; or both bounds of it, q (groups, 4)."""
    k, columns = base, 0  # pairs of the first row
    while columns < groups and actions[k] // JOINT == actions[base] // JOINT:
        action = actions[k]
        columns += 1
        if columns == groups:
            break
        while actions[k] == action:
            k += 1
    rows = groups // columns
    game = np.empty((rows, columns))
    x, y, work = np.zeros(rows), np.zeros(columns), np.zeros(WORK)
    for side in range(out.size // 2):
        for r in range(rows):
            for c in range(columns):
                game[r, c] = q[r * columns + c, 2 * side]
        out[2 * side] = solve_game(game, rows, columns, True, x, y, work)[0]
    total = q[0, 0] + q[0, out.size - 1]
    for side in range(out.size // 2):  # the lower of one is the upper of the other
        out[out.size - 1 - 2 * side] = total - out[2 * side]


@inlined
def back_up(solve_game, edges, span, actor, values, tolerance, scratch):
    """The step for a state whose edges are span[0] .. span[1] - 1: its payoffs into scratch.out;
    returns (its best action or UNDECIDED or MIXED, the margin as `decide` gives it).

    actor: from 0; -1 for nobody, JOINTLY for both. values: the first column is none.
    """
    groups = action_values(edges, span[0], span[1], values, 1, scratch)
    best, margin = MIXED, np.nan
    if actor == JOINTLY:
        joint_value(solve_game, groups, span[0], edges.actions, scratch.q, scratch.out)
    else:
        taken, margin = decide(groups, actor, edges.rewards.shape[1], tolerance, scratch)
        best = edges.actions[scratch.starts[taken]] if taken >= 0 else UNDECIDED
    return best, margin
