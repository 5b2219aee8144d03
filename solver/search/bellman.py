"""One step of the Bellman equation, the one of the house: at one state, compiled, and at many.

For a state x with actions a, each a lottery over edges with weight w, reward r and child y::

    q(x, a) = sum over the edges of a  w (r + V(y))
    V(x)    = q(x, a*),  a* the acting player's best action; of tied ones the earliest

Every engine puts these together, and whoever asks what every action is worth (`evaluate`); a sum is
taken in the order of the edges everywhere, so a payoff has the same bits whoever works it out.
Functions without a signature become part of the function that calls them.

**Errors.** Every step also bounds the error of what it computes: that of the worst child, the
rounding of the sums (Higham, 3.1), and what hangs on a decision that the errors leave open.

Sources: Puterman, Markov Decision Processes, 4.3 (the equations); Higham, Accuracy and stability of
numerical algorithms (rounding of sums).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.compiled import borrowed, inlined, njit, tuple_type, types
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.game import Game
from luckbase.solver.game.rules import JOINT, SIMULTANEOUS, TERMINAL
from luckbase.solver.matrix_game import SOLVE_GAME, WORK
from luckbase.solver.search.expand import Expanded, expand

if TYPE_CHECKING:
    from luckbase.solver.matrix_game.simplex import Solutions

OVER, MIXED, KNOWN, NEW, UNEVEN = -1, -3, -4, -5, -6
"""Instead of a best action: the game is over; a mixed strategy; given without one; met and not
solved; both choose at once and the payoffs do not have one sum."""
TIE, LOW, HIGH, EVEN, TOLD = range(5)
"""Where the limits of a step are: the tie tolerance, the least and the greatest payoff (0 if they
are to be found), the largest difference between sums of two players' payoffs that counts as none,
and the largest error that leaves no decision open: above a rounded table less than what counts as a
tie."""
U = 2.0**-53
"""The relative error of one operation in float64."""
JOINTLY = -2
"""Instead of who acts: both choose at once."""
MATRIX_GAME = types.FunctionType(SOLVE_GAME)
_i, _f, _i1, _f1 = types.int64, types.float64, types.int64[::1], types.float64[::1]
_f2, errors_type = types.float64[:, ::1], types.float32[::1]


class Lotteries(NamedTuple):
    """The edges of states behind one another, m of them; edges of one action stand together.

    children: ints (m,), rows of the values. weights: float64 (m,). actions: int64 (m,). rewards:
    float64 (m, players), or (0, players) where nothing is paid.
    """

    children: Any
    weights: Any
    actions: Any
    rewards: Any


LOTTERIES = tuple_type(Lotteries, _i1, _f1, _i1, _f2)
"""With children of int64."""


class Scratch(NamedTuple):
    """Scratch of a step. q: float64 (most edges, players). starts: int64 (most edges,), the first
    edge of each action. out: float64 (players,), the payoffs. limits: float64 (5,), TIE and so on.
    """

    q: Any
    starts: Any
    out: Any
    limits: Any


SCRATCH_TYPE = tuple_type(Scratch, _f2, _i1, _f1, _f1)


def limits_of(game: Game, tolerance: float) -> Floats:
    """Return the limits of a step, with this tolerance for ties: that of the rules, and above a
    table twice its error more."""
    (low, high), tie = game.known_range or (0.0, 0.0), game.tie_tolerance
    rounded = tolerance > 3 * tie * (1 + 1e-9)  # the table's error is larger than the rules' ties
    told = tie if rounded else tolerance
    even = 1e-9 * (high - low if game.known_range else 1.0)
    return np.array([tolerance, low, high, even, told])


def scratch_of(game: Game, edges: int, tolerance: float) -> Scratch:
    """Return scratch for states of at most so many edges, with this tolerance for ties."""
    q, starts = np.empty((edges, game.players)), np.empty(edges, np.int64)
    return Scratch(q, starts, np.empty(game.players), limits_of(game, tolerance))


@inlined
def borrowed_scratch(scratch):
    """Return scratch of a step whose arrays are `borrowed`."""
    return Scratch(
        borrowed(scratch.q), borrowed(scratch.starts), borrowed(scratch.out),
        borrowed(scratch.limits),
    )  # fmt: skip


@inlined
def action_value(edges, k, stop, values, skip, q, g):
    """Write q(x, a) of the action whose edges begin at k to row g of q, for each of its columns;
    returns where the action ends, at `stop` at the latest.

    values: float64 (states, skip + columns), `skip` columns in front not being values.
    """
    children, weights, actions, rewards = edges
    action, columns = actions[k], q.shape[1]
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
            paid = rewards[e, c] if pays else 0.0
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


@njit(_f(_i, _i, _i, _f2))
def margin_of(groups, best, actor, q):
    """Return what the second best action would cost the one who acts, at least 0."""
    second = -np.inf
    for g in range(groups):
        if g != best and q[g, actor] > second:
            second = q[g, actor]
    return max(q[best, actor] - second, 0.0)


@inlined
def decide(groups, actor, scratch):
    """Write the payoffs of the action that is taken to scratch.out; return its row in scratch.q and
    its margin, NaN if there is nothing to choose."""
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
    """Return a bound on the error of every action's payoffs: the largest of the children, and the
    rounding of a sum: for each term one operation on its chance, reward, product and sum."""
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
    """Return how much more the payoffs of the action taken may be off than those of all actions, by
    `error`: what the actor gives up by a tie, and, if the errors leave open which action is the
    best, how far the payoffs of these are apart."""
    more = 0.0
    for g in range(groups):
        more = max(more, q[g, actor] - q[taken, actor])
    if error > tolerance:  # what is closer is tied, by the rules
        for g in range(groups):
            if q[g, actor] + 2 * error >= q[taken, actor] - tolerance:
                for c in range(q.shape[1]):
                    more = max(more, abs(q[g, c] - q[taken, c]))
    return more


@njit(_f(_i, _f2))
def sums_apart(groups, q):
    """Return how far the sums of two players' payoffs are apart."""
    low = high = q[0, 0] + q[0, 1]
    for g in range(1, groups):
        low, high = min(low, q[g, 0] + q[g, 1]), max(high, q[g, 0] + q[g, 1])
    return high - low


@njit(SOLVE_GAME)
def no_matrix_games(a, rows, columns, dominance, x, y, work):
    """In the place of `simplex.solve_game` for games whose players never choose at once."""
    return np.nan, np.nan


def matrix_game_solver(game: Game) -> Any:
    """What solves the matrix games of a game, as an argument of an engine: the simplex only where
    there are any, for it is long to compile."""
    if not game.simultaneous:
        return no_matrix_games
    from luckbase.solver.matrix_game.simplex import solve_game

    return solve_game


@njit(_f(MATRIX_GAME, _i, _i, _i1, _f2, _f1))
def joint_value(solve_game, groups, base, actions, q, out):
    """Write the payoffs of a state in which both choose at once: the value of the matrix game of
    its pairs of actions, q (groups, 2), rows slowest. Return the gap of the game."""
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
    """Take the step for a state with edges span[0] .. span[1] - 1 and write its payoffs to
    scratch.out. Return its best action, or MIXED or UNEVEN; its margin as `decide` does; and a
    bound on the error of the payoffs.

    actor: from 0; -1 for nobody, JOINTLY for both. values: float64 (any, 1 + players), the first
    column is none. errors: float32 (any,), bounds on those of the values.
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
    """Return an error as a float32 that is no smaller."""
    return np.float32(error * (1 + 2.0**-23))


def sums_differ(q: ActionValues, states: Ints) -> Floats:
    """(m,) by how much the sums of the two players' payoffs differ between the pairs of actions of
    states (m,), indices of expanded states."""
    sums, first = q.values.sum(axis=1), q.first[:-1]
    differ: Floats = np.maximum.reduceat(sums, first) - np.minimum.reduceat(sums, first)
    return differ[states]


def refuse_uneven(game: Game, state: Ints, payoffs: Floats) -> None:
    """Raise GameError for a state (fields,) in which both choose at once and whose pairs of actions
    do not have one sum. payoffs: (m, 2), of its children in the order of the edges."""
    refuse_sums(game, state, evaluate(expand(game, state.reshape(1, -1)), payoffs), 0)


def refuse_sums(game: Game, state: Ints, q: ActionValues, x: int) -> None:
    """Raise GameError for a state (fields,) in which both choose at once, number x of `q`: its
    pairs of actions do not have one sum."""
    from luckbase.solver.game.faults import broken

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
    """q of every action of expanded states: k actions in all, p players.

    states: int64 (k,), the state's index, ascending. actions: int64 (k,). values: float64 (k, p).
    first: int64 (n + 1,), state x has actions first[x] .. first[x + 1].
    """

    states: Ints
    actions: Ints
    values: Floats
    first: Ints

    def of_actors(self, actors: Ints) -> Floats:
        """(k,) every action's payoff to who acts at its state, (n,) from 0; to player 1 where
        nobody does (-1)."""
        columns = np.maximum(actors, 0)[self.states]
        payoffs: Floats = self.values[np.arange(len(self.states)), columns]
        return payoffs


def action_starts(edges: Expanded) -> tuple[Ints, Ints]:
    """(the state of each edge (m,), the first edge of each action (k,))."""
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
    """q of every action, from the payoffs (m, players) of the children in the edges' order.

    The payoff given for the child of a terminal edge is not looked at.
    """
    owner, at = action_starts(edges)
    q, edge_numbers = np.empty((len(at), edges.rewards.shape[1])), np.arange(len(owner))
    flat = Lotteries(edge_numbers, edges.weights, edges.actions, edges.rewards)
    _evaluate(edges.kinds, edges.first, flat, np.ascontiguousarray(payoffs, np.float64), q)
    first = np.searchsorted(owner[at], np.arange(len(edges.kinds) + 1))
    return ActionValues(owner[at], edges.actions[at], q, first)


@njit(types.void(_i1, _i1, _f2, types.float64, _i1))
def _choose(first, actors, values, tolerance, taken):
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


def solved_games(q: ActionValues, states: Ints) -> Iterator[tuple[Ints, Solutions]]:
    """The matrix games of those of the expanded states, (m,), in which both choose at once, all of
    one shape at a time: which states, and their solutions."""
    if not len(states):
        return
    from luckbase.solver.matrix_game import simplex

    row, first = q.actions // JOINT, q.first[:-1]
    counts = np.diff(q.first)
    of_first = np.add.reduceat((row == np.repeat(row[first], counts)).astype(np.int64), first)
    columns, rows = of_first[states], counts[states] // of_first[states]
    for shape in sorted(set(zip(rows.tolist(), columns.tolist(), strict=True))):
        at = states[(rows == shape[0]) & (columns == shape[1])]
        cells = q.first[at][:, None] + np.arange(shape[0] * shape[1])
        yield at, simplex.solve(q.values[cells, 0].reshape(-1, *shape))


def strategies_of(q: ActionValues, player: int) -> list[Floats]:
    """An optimal strategy of a player (0 or 1) at each of n expanded states in which both choose at
    once, over their actions, ascending."""
    strategies: list[Floats] = [np.empty(0)] * (len(q.first) - 1)
    for at, solved in solved_games(q, np.arange(len(strategies))):
        sides = solved.row_strategies if player == 0 else solved.column_strategies
        for x, strategy in zip(at.tolist(), sides, strict=True):
            strategies[x] = strategy
    return strategies


def payoffs_of(kinds: Ints, actors: Ints, q: ActionValues, tolerance: float) -> Floats:
    """The payoffs (n, players) of n expanded states of any kind, from those of their actions."""
    payoffs = np.empty((len(kinds), q.values.shape[1]))
    both = kinds == SIMULTANEOUS
    if not both.all():
        payoffs[:] = q.values[chosen(q, actors, tolerance)]
    for at, solved in solved_games(q, np.flatnonzero(both)):
        payoffs[at, 0] = solved.values
        payoffs[at, 1] = q.values[q.first[at]].sum(axis=1) - solved.values
    return payoffs


def most_residual(game: Game, error: Floats | float) -> Floats:
    """(n,) the most by which payoffs that are each within `error` (n,) of the exact ones can be
    apart from one step of the rules over their children, which are as exact: twice that; and no
    less than twice what the sums of a step lose in float64."""
    largest = max(abs(bound) for bound in game.known_range or (0.0,))
    residual: Floats = 2 * np.maximum(error, (game.max_edges + 2) * 2.0**-53 * largest)
    return residual


def final_payoffs(game: Game, states: Ints) -> Floats:
    """The payoffs (n, players) of states that are over; ValueError if one is not."""
    edges = expand(game, states)
    if not edges.terminal.all():
        raise ValueError(f"not over: {game.say(states[np.flatnonzero(~edges.terminal)[0]])}")
    return edges.rewards


# --- how far off payoffs are that are worked out from others -------------------------------------
#
# A mean of payoffs is as exact as they are. But where two actions are closer than that tells,
# either may be the best one, and those who do not decide get what it gives them: so far their
# payoffs may be off. Payoffs that are off by no more than the tie tolerance tell every decision:
# what is closer is tied, by the rules.


def error_of_actions(edges: Expanded, off: Floats) -> Floats:
    """(k,) how far off the payoffs of every action of expanded states may be, if those of the
    children, in the edges' order, may be off by so much (m,)."""
    starts = action_starts(edges)[1]
    mean = np.add.reduceat(edges.weights * off, starts)
    low, high = np.minimum.reduceat(off, starts), np.maximum.reduceat(off, starts)
    error: Floats = np.clip(mean, low, high)  # without the rounding of the sum
    return error


def error_of_taken(q: ActionValues, actors: Ints, off: Floats, taken: Ints, tie: float) -> Floats:
    """(n,) how far off the payoffs of states may be that are those of the actions taken, rows (n,)
    of `q`: there may be better ones, as far as those of actions, off by so much (k,), tell.

    actors: (n,), from 0. tie: the tie tolerance.
    """
    apart: Floats = np.abs(q.values - q.values[taken[q.states]]).max(axis=1) + off
    apart = np.where(_may_be_best(q, actors, off, taken, tie), apart, 0.0)
    error: Floats = np.maximum.reduceat(apart, q.first[:-1])
    return error


def undecided(
    q: ActionValues, actors: Ints, off: Floats, taken: Ints, tie: float
) -> NDArray[np.bool_]:
    """(n,) whether an action other than the one taken may be the best one; as `error_of_taken`."""
    possible = _may_be_best(q, actors, off, taken, tie)
    more: NDArray[np.bool_] = np.add.reduceat(possible, q.first[:-1], dtype=np.int64) > 1
    return more


def _may_be_best(
    q: ActionValues, actors: Ints, off: Floats, taken: Ints, tie: float
) -> NDArray[np.bool_]:
    """(k,) the actions one of which is the best one by the rules, each state's taken one with them:
    all that may be as good where one of these is off by more than the tie tolerance; where none is,
    what is tied is tied, and the first of them is the best."""
    payoffs = q.of_actors(actors)
    best = taken[q.states]
    may: NDArray[np.bool_] = payoffs + off >= payoffs[best] - off[best] - tie
    may[taken] = True
    may &= np.logical_or.reduceat(may & (off > tie), q.first[:-1])[q.states]
    may[taken] = may[chosen(q, actors, tie)] = True
    return may
