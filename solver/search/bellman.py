"""One step of the Bellman equation, compiled for one state and for many; all engines share it.

For a state x with actions a, each a lottery over edges with weight w, reward r and child y::

    q(x, a) = sum over the edges of a  w (r + V(y))
    V(x)    = q(x, a*),  a* the acting player's best action; of tied ones the earliest

Sums are always taken in the order of the edges, so a payoff has the same bits whichever engine
computes it. Every step also bounds the error of its result: the worst child's error, the rounding
of the sums (Higham, 3.1), and the loss if the errors leave a decision open.

Sources: Puterman, Markov Decision Processes, 4.3 (the equations); Higham, Accuracy and stability of
numerical algorithms (rounding of sums).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.compiled import inlined, njit, tuple_type, types
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.faults import broken
from luckbase.solver.game.game import Game
from luckbase.solver.game.rules import JOINT, SIMULTANEOUS, TERMINAL
from luckbase.solver.matrix_games import SOLVE_GAME, WORK
from luckbase.solver.search.expand import Expanded, expand

if TYPE_CHECKING:
    from luckbase.solver.matrix_games.simplex import Solutions

OVER, MIXED, KNOWN, NEW, UNEVEN = -1, -3, -4, -5, -6
"""In place of a best action: the game is over; a mixed strategy; the payoff was given; met but not
solved; both choose at once and payoffs do not have a constant sum."""
TIE, LOW, HIGH, EVEN, TOLD = range(5)
"""Positions in the limits of a step: the tie tolerance; the least and the greatest payoff (0 if the
search has to find them); the largest difference between sums of two payoffs that counts as none;
and the largest error that leaves no decision open. Above a rounded table the last is less than the
tie tolerance."""
U = 2.0**-53
"""The relative error of one operation in float64."""
JOINTLY = -2
"""In place of an actor: both choose at once."""
MATRIX_GAME = types.FunctionType(SOLVE_GAME)
_i, _f, _i1, _f1 = types.int64, types.float64, types.int64[::1], types.float64[::1]
_f2, errors_type = types.float64[:, ::1], types.float32[::1]


class Lotteries(NamedTuple):
    """The edges of states one after another, m of them; edges of one action are consecutive."""

    children: Any  # ints (m,), rows of the values
    weights: Any  # float64 (m,)
    actions: Any  # int64 (m,)
    rewards: Any  # float64 (m, players), or (0, players) if edges pay nothing


LOTTERIES = tuple_type(Lotteries, _i1, _f1, _i1, _f2)  # with children of int64


class Scratch(NamedTuple):
    """Scratch for a step."""

    q: Any  # float64 (most edges, players)
    starts: Any  # int64 (most edges,), the first edge of each action
    out: Any  # float64 (players,), the payoffs
    limits: Any  # float64 (5,), TIE to TOLD


SCRATCH_TYPE = tuple_type(Scratch, _f2, _i1, _f1, _f1)


class Results(NamedTuple):
    """The results of states, by number."""

    values: Any  # float64 (room, 1 + players), the payoffs; the first column is the key
    best: Any  # int64 (room,), the best action, or why there is none
    margins: Any  # float64 (room,), as in `decide`
    actors: Any  # int8 (room,), from 1; 0 if no player acts or both choose at once
    errors: Any  # float32 (room,), error bounds of the payoffs


RESULTS_TYPE = tuple_type(Results, _f2, _i1, _f1, types.int8[::1], errors_type)


def limits_of(game: Game, tolerance: float) -> Floats:
    """Return the limits of a step; tolerance: for ties, above a table twice its error more."""
    (low, high), tie = game.known_range or (0.0, 0.0), game.tie_tolerance
    rounded = tolerance > 3 * tie * (1 + 1e-9)  # the table's error exceeds the rules' tolerance
    told = tie if rounded else tolerance
    even = 1e-9 * (high - low if game.known_range else 1.0)
    return np.array([tolerance, low, high, even, told])


def scratch_of(game: Game, edges: int, tolerance: float) -> Scratch:
    """Return scratch for states of at most `edges` edges, with this tolerance for ties."""
    q, starts = np.empty((edges, game.players)), np.empty(edges, np.int64)
    return Scratch(q, starts, np.empty(game.players), limits_of(game, tolerance))


@inlined
def action_value(edges, k, stop, values, skip, q, g):
    """Write q(x, a) of the action whose edges begin at k to row g of q; return where it ends.

    stop: the end of the state's edges.
    values: float64 (states, skip + columns); the first `skip` columns are not values.
    """
    children, weights, actions, rewards = edges
    action, columns = actions[k], q.shape[1]
    pays = rewards.shape[0] > 0
    if columns == 3 and not pays:  # a row of three fits a cache line: read it once
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
            paid = rewards[e, c] if pays else 0.0
            total += weights[e] * (paid + values[children[e], skip + c])
        q[g, c] = total
    return end


@inlined
def action_values(edges, k, stop, values, skip, scratch):
    """Run `action_value` for every action of a state, whose edges are k .. stop - 1.

    Writes where each action begins to scratch.starts; returns the number of actions.
    """
    groups = 0
    while k < stop:
        scratch.starts[groups] = k
        k = action_value(edges, k, stop, values, skip, scratch.q, groups)
        groups += 1
    return groups


@inlined
def best_of(q, groups, actor, tolerance):
    """Return the row of q (groups, …) that `actor` takes: a later one only if better by more."""
    best = 0
    for g in range(1, groups):
        if q[g, actor] > q[best, actor] + tolerance:
            best = g
    return best


@njit(_f(_i, _i, _i, _f2))
def margin_of(groups, best, actor, q):
    """Return the loss of the actor's second best action, at least 0."""
    second = -np.inf
    for g in range(groups):
        if g != best and q[g, actor] > second:
            second = q[g, actor]
    return max(q[best, actor] - second, 0.0)


@inlined
def decide(groups, actor, scratch):
    """Write the payoffs of the action taken to scratch.out; return its row in scratch.q, and its
    margin, NaN if there is no choice."""
    q, out, margin = scratch.q, scratch.out, np.nan
    chooses = groups > 1 and actor >= 0
    taken = best_of(q, groups, actor, scratch.limits[TIE]) if chooses else 0
    for c in range(out.size):
        out[c] = q[taken, c]
    if chooses:
        margin = margin_of(groups, taken, actor, q)
    return taken, margin


@inlined
def step_error(edges, span, groups, values, errors, scratch):
    """Return a bound on the error of every action's payoffs: the largest error of a child plus the
    rounding of a sum, one operation each on a term's chance, reward, product and sum."""
    children, _, _, rewards = edges
    limits, size, worst, longest = scratch.limits, 0.0, np.float32(0.0), np.int64(0)
    if rewards.shape[0] == 0:
        size = max(abs(limits[LOW]), abs(limits[HIGH]))
    for k in range(span[0], span[1]):
        worst = max(worst, errors[children[k]])
    for g in range(groups):
        end = scratch.starts[g + 1] if g + 1 < groups else span[1]
        longest = max(longest, end - scratch.starts[g])
    if rewards.shape[0] > 0:
        for k in range(span[0], span[1]):
            for c in range(rewards.shape[1]):
                paid = rewards[k, c]
                size = max(size, abs(paid) + abs(paid + values[children[k], 1 + c]))
    return worst + (longest + 4) * U * size


@njit(_f(_i, _i, _i, _f, _f, _f2))
def undecided_error(groups, taken, actor, error, tolerance, q):
    """Return how much further than `error` the payoffs of the action taken may be off: the actor's
    loss by a tie and, if the errors leave the best action open, the differences to the others."""
    more = 0.0
    for g in range(groups):
        more = max(more, q[g, actor] - q[taken, actor])
    if error > tolerance:  # closer actions are tied, by the rules
        for g in range(groups):
            if q[g, actor] + 2 * error >= q[taken, actor] - tolerance:
                for c in range(q.shape[1]):
                    more = max(more, abs(q[g, c] - q[taken, c]))
    return more


@njit(_f(_i, _f2))
def sums_apart(groups, q):
    """Return the range of the sums of two players' payoffs."""
    low = high = q[0, 0] + q[0, 1]
    for g in range(1, groups):
        low, high = min(low, q[g, 0] + q[g, 1]), max(high, q[g, 0] + q[g, 1])
    return high - low


@njit(SOLVE_GAME)
def no_matrix_games(a, rows, columns, dominance, x, y, work):
    """Replace `simplex.solve_game` for games whose players never choose at once."""
    return np.nan, np.nan


def matrix_game_solver(game: Game) -> Any:
    """Return the solver of a game's matrix games; a stub if it needs none, because the simplex is
    slow to compile."""
    if not game.simultaneous:
        return no_matrix_games
    from luckbase.solver.matrix_games.simplex import solve_game

    return solve_game


@njit(_f(MATRIX_GAME, _i, _i, _i1, _f2, _f1))
def joint_value(solve_game, groups, base, actions, q, out):
    """Write the payoffs of a state in which both choose at once; return the gap of its matrix game.

    q: (groups, 2), the payoffs of its pairs of actions, rows slowest.
    """
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
    for r in range(rows):
        for c in range(columns):
            game[r, c] = q[r * columns + c, 0]
    value, gap = solve_game(game, rows, columns, True, x, y, work)
    out[0], out[1] = value, q[0, 0] + q[0, 1] - value
    return gap


@inlined
def back_up(solve_game, edges, span, actor, values, errors, scratch):
    """Take the step for a state, with edges span[0] .. span[1] - 1; write payoffs to scratch.out.

    actor: from 0; -1 for chance, JOINTLY for both.
    values: float64 (any, 1 + players); the first column is skipped.
    errors: float32 (any,), error bounds of the values.

    Returns its best action, or MIXED or UNEVEN; its margin as in `decide`; and a bound on the error
    of the payoffs.
    """
    groups = action_values(edges, span[0], span[1], values, 1, scratch)
    error = step_error(edges, span, groups, values, errors, scratch)
    best, margin, limits = MIXED, np.nan, scratch.limits
    if actor == JOINTLY:
        apart = sums_apart(groups, scratch.q)
        if apart > max(limits[EVEN], 4 * error):
            best = UNEVEN
        else:
            gap = joint_value(solve_game, groups, span[0], edges.actions, scratch.q, scratch.out)
            error += apart + gap
    else:
        taken, margin = decide(groups, actor, scratch)
        best = edges.actions[scratch.starts[taken]]
        if groups > 1 and actor >= 0:
            error += undecided_error(groups, taken, actor, error, limits[TOLD], scratch.q)
    return best, margin, error


@inlined
def rounded_up(error):
    """Return an error as a float32 that is not smaller."""
    return np.float32(error * (1 + 2.0**-23))


def sums_differ(q: ActionValues, states: Ints) -> Floats:
    """Return the range of the two payoffs' sums over the pairs of actions of expanded states (m,):
    (m,)."""
    sums, first = q.values.sum(axis=1), q.first[:-1]
    differ: Floats = np.maximum.reduceat(sums, first) - np.minimum.reduceat(sums, first)
    return differ[states]


def refuse_uneven(game: Game, state: Ints, payoffs: Floats) -> None:
    """Raise GameError for a simultaneous state (fields,) whose payoffs do not have a constant sum.

    payoffs: (m, 2), of its children in the order of the edges.
    """
    refuse_sums(game, state, evaluate(expand(game, state.reshape(1, -1)), payoffs), 0)


def refuse_sums(game: Game, state: Ints, q: ActionValues, x: int) -> None:
    """Raise GameError as `refuse_uneven` does, for state (fields,), number x of `q`."""
    at = slice(q.first[x], q.first[x + 1])
    sums, actions = q.values[at].sum(axis=1), q.actions[at]
    pairs = [
        " and ".join(game.action_name(int(part)) for part in divmod(int(actions[at]), JOINT))
        for at in (sums.argmin(), sums.argmax())
    ]
    raise broken(
        game, state,
        f"both choose at once, and the payoffs of the two players add up to {sums.min():.12g} for "
        f"{pairs[0]} but to {sums.max():.12g} for {pairs[1]}; expected one sum for all pairs",
    )  # fmt: skip


@dataclass(frozen=True)
class ActionValues:
    """q of every action of expanded states: k actions in all, p players."""

    states: Ints  # (k,), the state's index, ascending
    actions: Ints  # (k,)
    values: Floats  # (k, p)
    first: Ints  # (n + 1,), state x has actions first[x] .. first[x + 1] - 1

    def of_actors(self, actors: Ints) -> Floats:
        """Return every action's payoff (k,) to its actor, one of (n,) from 0; -1 is player 1."""
        columns = np.maximum(actors, 0)[self.states]
        payoffs: Floats = self.values[np.arange(len(self.states)), columns]
        return payoffs


def action_starts(edges: Expanded) -> tuple[Ints, Ints]:
    """Return the state of each edge (m,) and the first edge of each action (k,)."""
    owner = np.repeat(np.arange(len(edges.kinds)), np.diff(edges.first))
    starts = np.ones(len(owner), bool)
    starts[1:] = (owner[1:] != owner[:-1]) | (edges.actions[1:] != edges.actions[:-1])
    return owner, np.flatnonzero(starts)


@njit(types.void(_i1, _i1, LOTTERIES, _f2, _f2))
def _evaluate(kinds, first, edges, payoffs, q):
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
    """Return q of every action, from the payoffs (m, players) of the children in the edges' order;
    those of terminal edges are ignored."""
    owner, at = action_starts(edges)
    q, edge_numbers = np.empty((len(at), edges.rewards.shape[1])), np.arange(len(owner))
    flat = Lotteries(edge_numbers, edges.weights, edges.actions, edges.rewards)
    _evaluate(edges.kinds, edges.first, flat, np.ascontiguousarray(payoffs, np.float64), q)
    first = np.searchsorted(owner[at], np.arange(len(edges.kinds) + 1))
    return ActionValues(owner[at], edges.actions[at], q, first)


@njit(types.void(_i1, _i1, _f2, types.float64, _i1))
def _choose(first, actors, values, tolerance, taken):
    """Write the row taken at each state, whose actions are first[x] .. first[x + 1] - 1."""
    for x in range(actors.size):
        rows = values[first[x] : first[x + 1]]
        taken[x] = first[x] + best_of(rows, rows.shape[0], actors[x], tolerance)


def chosen(q: ActionValues, actors: Ints, tolerance: float) -> Ints:
    """Return the row of `q` that the actor of each of n states takes, as `best_of`, int64 (n,).

    actors: (n,), from 0; player 1 decides if it is -1.
    """
    taken = np.empty(len(actors), np.int64)
    up = np.maximum(np.asarray(actors, np.int64), 0)
    _choose(np.ascontiguousarray(q.first), up, np.ascontiguousarray(q.values), tolerance, taken)
    return taken


def margins_of(q: ActionValues, actors: Ints, taken: Ints) -> Floats:
    """Return (n,) the margins of states whose actions taken are rows (n,) of `q`: what the second
    best action would cost the actor (n,), from 0; NaN if there is nothing to choose."""
    payoffs = q.of_actors(actors)
    others = payoffs.copy()
    others[taken] = -np.inf
    margins = np.maximum(payoffs[taken] - np.maximum.reduceat(others, q.first[:-1]), 0.0)
    chooses = (np.diff(q.first) > 1) & (actors >= 0)
    return np.where(chooses, margins, np.nan)


def choose(values: Floats, actor: int, tolerance: float) -> int:
    """Return the row of `values` (actions, players) that `actor` takes, as `best_of`."""
    taken, first = np.empty(1, np.int64), np.array([0, len(values)])
    _choose(first, np.array([actor]), np.ascontiguousarray(values), tolerance, taken)
    return int(taken[0])


def solved_games(q: ActionValues, states: Ints) -> Iterator[tuple[Ints, Solutions]]:
    """Solve the matrix games of expanded simultaneous states (m,): yield, for each shape of game,
    the states and their solutions."""
    if not len(states):
        return
    from luckbase.solver.matrix_games import simplex

    row, first = q.actions // JOINT, q.first[:-1]
    counts = np.diff(q.first)
    of_first = np.add.reduceat((row == np.repeat(row[first], counts)).astype(np.int64), first)
    columns, rows = of_first[states], counts[states] // of_first[states]
    for shape in sorted(set(zip(rows.tolist(), columns.tolist(), strict=True))):
        at = states[(rows == shape[0]) & (columns == shape[1])]
        cells = q.first[at][:, None] + np.arange(shape[0] * shape[1])
        yield at, simplex.solve(q.values[cells, 0].reshape(-1, *shape))


def strategies_of(q: ActionValues, player: int) -> list[Floats]:
    """Return a player's (0 or 1) optimal strategy at each of n simultaneous expanded states, over
    their actions, ascending."""
    strategies: list[Floats] = [np.empty(0)] * (len(q.first) - 1)
    for at, solved in solved_games(q, np.arange(len(strategies))):
        sides = solved.row_strategies if player == 0 else solved.column_strategies
        for x, strategy in zip(at.tolist(), sides, strict=True):
            strategies[x] = strategy
    return strategies


def payoffs_of(kinds: Ints, actors: Ints, q: ActionValues, tolerance: float) -> Floats:
    """Return the payoffs (n, players) of n expanded states, from their actions' payoffs."""
    payoffs = np.empty((len(kinds), q.values.shape[1]))
    both = kinds == SIMULTANEOUS
    if not both.all():
        payoffs[:] = q.values[chosen(q, actors, tolerance)]
    for at, solved in solved_games(q, np.flatnonzero(both)):
        payoffs[at, 0] = solved.values
        payoffs[at, 1] = q.values[q.first[at]].sum(axis=1) - solved.values
    return payoffs


def most_residual(game: Game, error: Floats | float) -> Floats:
    """Return the largest difference (n,) between payoffs within `error` (n,) of the exact ones and
    one step of the rules over equally exact children."""
    largest = max(abs(bound) for bound in game.known_range or (0.0,))
    residual: Floats = 2 * np.maximum(error, (game.max_edges + 2) * 2.0**-53 * largest)
    return residual


def final_payoffs(game: Game, states: Ints) -> Floats:
    """Return the payoffs (n, players) of terminal states. Raises ValueError for others."""
    if not len(states):  # expanding, even no state, compiles
        return np.zeros((0, game.players))
    edges = expand(game, states)
    if not edges.terminal.all():
        raise ValueError(f"not over: {game.say(states[np.flatnonzero(~edges.terminal)[0]])}")
    return edges.rewards


# --- errors of payoffs computed from other payoffs -----------------------------------------------
#
# A mean of payoffs has at most their error. But if two actions are closer than that error, either
# may be the best, and the payoffs of the other players may be off by the difference. Errors up to
# the tie tolerance leave no decision open: closer actions are tied, by the rules.


def error_of_actions(edges: Expanded, off: Floats) -> Floats:
    """Return an error bound of every action's payoffs, (k,), from bounds (m,) of the children."""
    starts = action_starts(edges)[1]
    mean = np.add.reduceat(edges.weights * off, starts)
    low, high = np.minimum.reduceat(off, starts), np.maximum.reduceat(off, starts)
    error: Floats = np.clip(mean, low, high)  # without the rounding of the sum
    return error


def error_of_taken(q: ActionValues, actors: Ints, off: Floats, taken: Ints, tie: float) -> Floats:
    """Return error bounds (n,) of states' payoffs, although other actions than those taken may be
    better, given the actions' bounds.

    actors: (n,), from 0.
    off: (k,), the bound of each action.
    taken: (n,), rows of `q`.
    tie: the tie tolerance.
    """
    apart: Floats = np.abs(q.values - q.values[taken[q.states]]).max(axis=1) + off
    apart = np.where(_may_be_best(q, actors, off, taken, tie), apart, 0.0)
    error: Floats = np.maximum.reduceat(apart, q.first[:-1])
    return error


def undecided(
    q: ActionValues, actors: Ints, off: Floats, taken: Ints, tie: float
) -> NDArray[np.bool_]:
    """Return whether an action other than the one taken may be best: (n,); as `error_of_taken`."""
    possible = _may_be_best(q, actors, off, taken, tie)
    more: NDArray[np.bool_] = np.add.reduceat(possible, q.first[:-1], dtype=np.int64) > 1
    return more


def _may_be_best(
    q: ActionValues, actors: Ints, off: Floats, taken: Ints, tie: float
) -> NDArray[np.bool_]:
    """Return a mask (k,) of the actions that may be the best by the rules, the taken ones included:
    all that may be as good, if the bound of one of them exceeds the tie tolerance."""
    payoffs = q.of_actors(actors)
    best = taken[q.states]
    may: NDArray[np.bool_] = payoffs + off >= payoffs[best] - off[best] - tie
    may[taken] = True
    may &= np.logical_or.reduceat(may & (off > tie), q.first[:-1])[q.states]
    may[taken] = may[chosen(q, actors, tie)] = True
    return may
