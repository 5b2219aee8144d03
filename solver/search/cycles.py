"""Cycles: strongly connected components of states, each solved as one piece after its children.

`solve_component` solves one component for all its players. The searches call it from compiled code,
for one component after another, without returning to Python:

* **No choice**: a linear system for each player.
* **One player, or two of constant sum**: policy iteration (`solver.search.policies`). The second
  player's payoffs are the sum minus the first player's.
* **Three players or more**: each player takes their own best action, sweep by sweep, once from the
  least payoffs and once from the greatest. This need not converge, or converge to a single
  equilibrium, so it is checked: both must reach actions with the same payoffs, within 1e-12 of the
  range. Otherwise the component is refused.
* **Both choose at once** (`solve_jointly`, from Python): if every play ends for any choices
  (Shapley), the matrix games of all states give strategies for both players. With either strategy
  fixed, the component is a problem for a single player, and its values are proved bounds below and
  above. The strategies are improved until the bounds meet (Hoffman and Karp).

Every payoff has a proved bound on its error. Every play that counts ends, so errors of children add
no more than the largest of them.

Sources: as in `solver.search.policies`; Shapley, Stochastic games (1953).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.compiled import jitable, njit, tuple_type, types
from luckbase.solver.errors import StateError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.game import Game
from luckbase.solver.game.rules import JOINT
from luckbase.solver.search.bellman import (
    EVEN,
    HIGH,
    JOINTLY,
    LOW,
    MIXED,
    RESULTS_TYPE,
    TIE,
    Lotteries,
    Results,
    U,
    best_of,
    margin_of,
    rounded_up,
)
from luckbase.solver.search.elimination import SOLVED, View, fill, part
from luckbase.solver.search.policies import FREE, NO_EXIT, PAYS, SLOW, endless, solve_view

LATER, AT_ONCE, NO_SUM, UNSETTLED = -1, 10, 11, 12
"""More reasons why a component is not solved: the engine is not compiled yet; both choose at once;
the payoffs of two players have no constant sum; best replies do not converge."""
MEMBER = -1000
"""In place of a best action: a member of the component being solved is MEMBER minus its number."""
MAX_REPLIES = 20_000
MAX_ROUNDS, MEET = 100, 1e-9
"""The most strategies tried if both choose at once; how close their bounds must come, relative to
the size of the payoffs."""
_i, _f, _i1, _f1, _f2 = (
    types.int64, types.float64, types.int64[::1], types.float64[::1], types.float64[:, ::1],
)  # fmt: skip
_n1 = types.int32[::1]


class Component(NamedTuple):
    """n states that can return to each other, k actions, m outcomes of p players."""

    action_first: Ints  # as in `elimination.View`, like the next two
    first: Ints
    weights: Floats
    children: Ints  # (m,), from 0, or -1 - row for a child outside, whose payoffs are known
    rewards: Floats  # (m, p), or (0, p) if edges pay nothing
    names: Ints  # (k,), the game's numbers of the actions
    actors: Ints  # (n,), from 0; -1 for chance, JOINTLY for both
    off: float  # the largest error of a child outside


class Found(NamedTuple):
    """The results for n states."""

    values: Floats  # (n, players)
    errors: Floats
    best: Ints
    margins: Floats
    cycle: Ints  # (n,), the action, from 0 to k - 1, of each state of refused cycles, -1 elsewhere


COMPONENT = tuple_type(Component, _i1, _i1, _f1, _i1, _f2, _i1, _i1, _f)
FOUND = tuple_type(Found, _f2, _f1, _i1, _f1, _i1)
SOLVE_COMPONENT_TYPE = _i(COMPONENT, _f2, _f1, FOUND)
SOLVE_COMPONENT = types.FunctionType(SOLVE_COMPONENT_TYPE)
"""The type of `solve_component`, which the searches take as an argument, because it is slow to
compile and most games have no cycles."""


@jitable()
def found_for(n, players):
    """Return arrays for the results for n states."""
    found = Found(
        np.empty((n, players)), np.empty(n), np.empty(n, np.int64), np.empty(n),
        np.empty(n, np.int64),
    )  # fmt: skip
    for x in range(n):
        found.cycle[x] = -1
    return found


@njit(COMPONENT(tuple_type(Lotteries, _n1, _f1, _i1, _f2), _i1, _i1, _i1, _i1, RESULTS_TYPE, _n1))
def gather(edges, first, last, begin, actors, out, members):
    """Return the component of n members.

    edges: those of member i are first[i] .. last[i] - 1, their children from begin[i] on.
    out: the results; the best actions of the members are overwritten.
    members: int32 (n,), the members' rows of `out`, by ascending key.
    """
    n, m, pays = members.size, 0, edges.rewards.shape[0] > 0
    for i in range(n):
        m += last[i] - first[i]
        out.best[members[i]] = MEMBER - i
    action_first, firsts = np.empty(n + 1, np.int64), np.empty(m + 1, np.int64)
    names, weights, children = np.empty(m, np.int64), np.empty(m), np.empty(m, np.int64)
    rewards = np.empty((m if pays else 0, edges.rewards.shape[1]))
    k, e, off = 0, 0, np.float32(0.0)
    for i in range(n):
        action_first[i] = k
        for j in range(first[i], last[i]):
            if j == first[i] or edges.actions[j] != edges.actions[j - 1]:
                names[k], firsts[k] = edges.actions[j], e
                k += 1
            y = edges.children[begin[i] + j - first[i]]
            if y < out.best.size and out.best[y] <= MEMBER:
                children[e] = MEMBER - out.best[y]
            else:
                children[e], off = -1 - y, max(off, out.errors[y])
            weights[e] = edges.weights[j]
            if pays:
                for p in range(rewards.shape[1]):
                    rewards[e, p] = edges.rewards[j, p]
            e += 1
    action_first[n], firsts[k] = k, e
    return Component(
        action_first, firsts[: k + 1], weights, children, rewards, names[:k], actors,
        np.float64(off),
    )  # fmt: skip


@njit(types.void(COMPONENT, FOUND, _n1, RESULTS_TYPE))
def write_found(c, found, members, out):
    """Write the results for the members (n,) of a component to the results of all states."""
    for i in range(members.size):
        x = members[i]
        for p in range(found.values.shape[1]):
            out.values[x, 1 + p] = found.values[i, p]
        out.best[x], out.margins[x] = found.best[i], found.margins[i]
        out.actors[x], out.errors[x] = max(c.actors[i], -1) + 1, rounded_up(found.errors[i])


@njit(_i(SOLVE_COMPONENT, COMPONENT, _f1, _n1, RESULTS_TYPE))
def solve_members(solve, c, limits, members, out):
    """Solve the component of these members (n,) with `solve`; return a status."""
    found = found_for(members.size, out.values.shape[1] - 1)
    status = solve(c, out.values, limits, found)
    if status == SOLVED:
        write_found(c, found, members, out)
    return status


@njit(SOLVE_COMPONENT_TYPE)
def later(c, rows, limits, found):
    """Stand in for `solve_component` until the first cycle is found."""
    return LATER


@part
def view_of(c, rows, player, policy):
    """Return the component as a player sees it.

    policy: (n,), to keep only its actions; or empty.
    rows: float64 (any, 1 + players), the payoffs of children outside.
    """
    n, k, m, every = c.actors.size, 0, c.weights.size, c.names.size
    action_first, first = np.empty(n + 1, np.int64), np.empty(every + 1, np.int64)
    weights, children = np.empty(m), np.empty(m, np.int64)
    rewards, worths, m = np.empty(m), np.empty(m), 0
    for x in range(n):
        action_first[x] = k
        for a in range(c.action_first[x], c.action_first[x + 1]):
            if policy.size and a != policy[x]:
                continue
            first[k] = m
            k += 1
            for e in range(c.first[a], c.first[a + 1]):
                y = children[m] = c.children[e]
                weights[m] = c.weights[e]
                rewards[m] = c.rewards[e, player] if c.rewards.shape[0] else 0.0
                worths[m] = rows[-1 - y, 1 + player] if y < 0 else 0.0
                m += 1
    action_first[n], first[k] = k, m
    return View(
        action_first, first[: k + 1], weights[:m], children[:m], rewards[:m], worths[:m], c.actors
    )  # fmt: skip


@part
def _chance_error(weights):
    """Return the relative error of each chance: 0 if all are multiples of 2 ** -26."""
    for e in range(weights.size):
        if weights[e] * 2.0**26 % 1.0 != 0.0:
            return U
    return 0.0


@jitable()
def _sums(c, rows):
    """Return the least and the greatest sum of two players' payoffs.

    Infinite if an edge pays one player more than the other loses.
    """
    low, high = np.inf, -np.inf
    for e in range(c.weights.size):
        if c.rewards.shape[0] and c.rewards[e, 0] + c.rewards[e, 1] != 0.0:
            return -np.inf, np.inf
        if c.children[e] < 0:
            row = -1 - c.children[e]
            low = min(low, rows[row, 1] + rows[row, 2])
            high = max(high, rows[row, 1] + rows[row, 2])
    return low, high


@part
def _action_payoffs(c, rows, values, a, q, g):
    """Write the payoffs of action a to row g of q (any, players)."""
    for p in range(q.shape[1]):
        total = 0.0
        for e in range(c.first[a], c.first[a + 1]):
            y = c.children[e]
            paid = c.rewards[e, p] if c.rewards.shape[0] else 0.0
            total += c.weights[e] * (paid + (values[y, p] if y >= 0 else rows[-1 - y, 1 + p]))
        q[g, p] = total


@part
def _best_at(c, rows, values, x, limits, q):
    """Write the payoffs of the actions at state x to q; return the best row and their number."""
    start, actions = c.action_first[x], c.action_first[x + 1] - c.action_first[x]
    for g in range(actions):
        _action_payoffs(c, rows, values, start + g, q, g)
    return best_of(q, actions, c.actors[x], limits[TIE]) if actions > 1 else 0, actions


@jitable()
def _range(c, rows, limits):
    """Return the declared range of payoffs, or that of the children outside, extended by the most
    that one edge of every member pays."""
    if limits[LOW] < limits[HIGH]:
        return limits[LOW], limits[HIGH]
    low, high, paid = np.inf, -np.inf, 0.0
    for e in range(c.weights.size):
        for p in range(rows.shape[1] - 1):
            if c.rewards.shape[0]:
                paid = max(paid, abs(c.rewards[e, p]))
            if c.children[e] < 0:
                worth = rows[-1 - c.children[e], 1 + p]
                low, high = min(low, worth), max(high, worth)
    if low > high:  # no way out: it will be refused
        return 0.0, 0.0
    return low - c.actors.size * paid, high + c.actors.size * paid


@part
def _reply(c, rows, limits, values, policy, q):
    """Sweep over best replies, in place, until the values converge; return whether they do."""
    players = values.shape[1]
    low, high = _range(c, rows, limits)
    still = 4 * U * max(abs(low), abs(high))
    for _ in range(MAX_REPLIES):
        moved = 0.0
        for i in range(c.actors.size):
            x = c.actors.size - 1 - i
            taken, _ = _best_at(c, rows, values, x, limits, q)
            policy[x] = c.action_first[x] + taken
            for p in range(players):
                moved = max(moved, abs(q[taken, p] - values[x, p]))
                values[x, p] = q[taken, p]
        if moved <= still:
            return True
    return False


@part
def _solve_each(c, rows, policy, values, errors, cycle):
    """Compute the payoffs of a policy for every player; return a status."""
    n, players = values.shape
    chance_error = _chance_error(c.weights)
    value, error = np.empty(n), np.empty(n)
    fill(errors, 0.0)
    for player in range(players):
        got = solve_view(view_of(c, rows, player, policy), chance_error, value, error, cycle)
        if got != SOLVED:
            return got
        for x in range(n):
            values[x, player] = value[x]
            errors[x] = max(errors[x], error[x])
    return SOLVED


@part
def _settle(c, rows, limits, found, q):  # noqa: C901  # both ends, then the comparison
    """Find best replies of three or more players, from both ends; return a status."""
    n, players = found.values.shape
    one, two = np.empty(n, np.int64), np.empty(n, np.int64)
    values, errors, same = np.empty((n, players)), np.empty(n), True
    low, high = _range(c, rows, limits)
    for side in range(2):
        for x in range(n):
            for p in range(players):
                found.values[x, p] = low if side == 0 else high
        if not _reply(c, rows, limits, found.values, one if side == 0 else two, q):
            return UNSETTLED
    for x in range(n):
        same = same and one[x] == two[x]
    got = _solve_each(c, rows, one, found.values, found.errors, found.cycle)
    if got == SOLVED and not same:
        got = _solve_each(c, rows, two, values, errors, found.cycle)
        near = 1e-12 * max(abs(low), abs(high))
        for x in range(n if got == SOLVED else 0):
            for p in range(players):
                apart = abs(values[x, p] - found.values[x, p])
                if apart > near + errors[x] + found.errors[x]:
                    return UNSETTLED
    for x in range(n if got != SOLVED else 0):  # for a refused cycle: the actions
        found.cycle[x] = one[x] if found.cycle[x] >= 0 else -1
    return got


@njit(types.void(COMPONENT, _f2, _f1, FOUND))
def choose(c, rows, limits, found):
    """Write the best actions and their margins, from the values."""
    most = 0
    for x in range(c.actors.size):
        most = max(most, c.action_first[x + 1] - c.action_first[x])
    q = np.empty((most, found.values.shape[1]))
    for x in range(c.actors.size):
        found.best[x], found.margins[x] = MIXED, np.nan
        if c.actors[x] != JOINTLY:
            taken, actions = _best_at(c, rows, found.values, x, limits, q)
            found.best[x] = c.names[c.action_first[x] + taken]
            if actions > 1:
                found.margins[x] = margin_of(actions, taken, c.actors[x], q)


@njit(SOLVE_COMPONENT_TYPE, error_model="numpy")
def solve_component(c, rows, limits, found):  # one case after the other
    """Solve a component for all players; return SOLVED or a reason.

    rows: float64 (any, 1 + players), the payoffs of children outside, after the first column.
    limits: as in `bellman.limits_of`.
    found: written.
    """
    n, players = found.values.shape
    most = 1
    for x in range(n):
        most = max(most, c.action_first[x + 1] - c.action_first[x])
        if c.actors[x] == JOINTLY:
            return AT_ONCE
    everything = np.empty(0, np.int64)
    if most == 1:
        got = _solve_each(c, rows, everything, found.values, found.errors, found.cycle)
    elif players > 2:
        got = _settle(c, rows, limits, found, np.empty((most, players)))
    else:
        value, chance_error = np.empty(n), _chance_error(c.weights)
        low, high = _sums(c, rows) if players == 2 else (0.0, 0.0)
        total, spread = low / 2 + high / 2, high - low
        if spread > max(limits[EVEN], 4 * c.off):
            return NO_SUM
        view = view_of(c, rows, 0, everything)
        got = solve_view(view, chance_error, value, found.errors, found.cycle)
        for x in range(n):
            found.values[x, 0] = value[x]
            if players == 2:
                found.values[x, 1] = total - value[x]
                found.errors[x] += spread + U * (abs(total) + abs(total - value[x]))
    if got != SOLVED:
        return got
    for x in range(n):
        found.errors[x] += c.off
    choose(c, rows, limits, found)
    return SOLVED


# --- both choose at once ------------------------------------------------------------------------


def solve_jointly(c: Component, rows: Floats, limits: Floats, found: Found) -> int:
    """Solve a component with states where both choose at once; return SOLVED or a reason."""
    n = len(c.actors)
    whole = view_of(c, rows, 0, np.empty(0, np.int64))
    low, high = _sums(c, rows)
    total, spread = low / 2 + high / 2, high - low
    if not spread <= max(limits[EVEN], 4 * c.off):
        return NO_SUM
    if endless(whole, found.cycle):
        return FREE
    values, best, quiet = np.zeros(n), (np.full(n, -np.inf), np.full(n, np.inf)), 0
    scale = max(*map(abs, _range(c, rows, limits)), np.finfo(float).tiny)
    gap = np.inf
    for _ in range(MAX_ROUNDS):
        bounds = [
            _fixed(c, whole, side, shares)
            for side, shares in enumerate(_strategies(c, whole, values))
        ]
        np.maximum(best[0], bounds[0][0] - bounds[0][1], out=best[0])
        np.minimum(best[1], bounds[1][0] + bounds[1][1], out=best[1])
        values, closer = bounds[0][0], float((best[1] - best[0]).max())
        quiet = 0 if closer < 0.9 * gap else quiet + 1
        gap = min(gap, closer)
        if gap <= 2 * U * scale or quiet > 2:
            break
    if not gap <= MEET * scale:
        return SLOW
    found.values[:, 0] = best[0] + (best[1] - best[0]) / 2
    found.values[:, 1] = total - found.values[:, 0]
    found.errors[:] = (best[1] - best[0]) / 2 + spread + c.off
    found.errors[:] += 4 * U * (abs(total) + np.abs(found.values[:, 0]))
    choose(c, rows, limits, found)
    return SOLVED


def _strategies(c: Component, view: View, values: Floats) -> tuple[Floats, Floats]:
    """Return each player's optimal strategy for these values, as a share of each action (k,).

    In a state where both choose, it is the share of the row or column of the pair.
    """
    from luckbase.solver.matrix_games import simplex

    children = np.where(view.children >= 0, values[np.maximum(view.children, 0)], view.worths)
    q = np.add.reduceat(view.weights * (view.rewards + children), view.first[:-1])
    shares = np.ones(len(q)), np.ones(len(q))
    for x, actor in enumerate(c.actors.tolist()):
        at = slice(c.action_first[x], c.action_first[x + 1])
        if actor == JOINTLY:
            columns = _columns(c.names[at])
            solved = simplex.solve(q[at].reshape(1, -1, columns))
            shares[0][at] = np.repeat(solved.row_strategies[0], columns)
            shares[1][at] = np.tile(solved.column_strategies[0], len(q[at]) // columns)
        elif actor in (0, 1):
            taken = int(q[at].argmax() if actor == 0 else q[at].argmin())
            shares[actor][at] = np.arange(len(q[at])) == taken
    return shares


def _columns(names: Ints) -> int:
    return int((names // JOINT == names[0] // JOINT).sum())


def _fixed(c: Component, view: View, player: int, shares: Floats) -> tuple[Floats, Floats]:
    """Return the values (n,) and errors if a player's strategy is fixed and the other replies."""
    n, number = len(c.actors), np.arange(len(c.names))
    for x in np.flatnonzero(c.actors == JOINTLY).tolist():
        at = slice(c.action_first[x], c.action_first[x + 1])
        columns = _columns(c.names[at])
        pairs = np.arange(len(c.names[at]))
        number[at] = c.action_first[x] + (pairs % columns if player == 0 else pairs // columns)
    action = np.repeat(np.arange(len(c.names)), np.diff(c.first))
    edges = np.flatnonzero(shares[action] > 0)
    edges = edges[np.argsort(number[action[edges]], kind="stable")]
    action = action[edges]
    numbers, starts = np.unique(number[action], return_index=True)
    fixed = View(
        np.searchsorted(numbers, c.action_first), np.append(starts, len(edges)),
        view.weights[edges] * shares[action], view.children[edges], view.rewards[edges],
        view.worths[edges], np.where(c.actors == JOINTLY, 1 - player, c.actors),
    )  # fmt: skip
    values, errors, cycle = np.empty(n), np.empty(n), np.empty(n, np.int64)
    got = solve_view(fixed, 3 * U, values, errors, cycle)  # a share, a product, a chance
    if got != SOLVED:
        errors[:] = np.inf
    return values, errors


# --- in Python ---------------------------------------------------------------------------------


def solve_alone(
    game: Game, c: Component, limits: Floats, members: NDArray[np.int32], out: Results, states: Ints
) -> None:
    """Solve a component, members (n,), that `solve_members` did not solve.

    states: its states (n, fields). Raises StateError if it cannot be solved.
    """
    found = found_for(len(members), game.players)
    status = solve_component(c, out.values, limits, found)
    if status == AT_ONCE:
        status = solve_jointly(c, out.values, limits, found)
    if status != SOLVED:
        raise refusal(game, c, states, found.cycle, status)
    write_found(c, found, members, out)


def refusal(game: Game, c: Component, states: Ints, cycle: Ints, status: int) -> StateError:
    """Return the error of a component, states (n, fields), that is not solved.

    cycle: as in `Found`.
    """
    at = _one_cycle(c, cycle) if status in (NO_EXIT, FREE, PAYS) else []
    named = [f"{game.say(states[x])}: {game.action_name(int(c.names[cycle[x]]))}" for x in at[:3]]
    listed = f" ({'; '.join([*named, '…'] if len(at) > 3 else named)})"
    where = game.say(states[at[0] if at else 0])
    why = {
        NO_EXIT: "that play never leaves, so its payoff is not defined",
        FREE: f"that the players can keep up for ever for free{listed}, and the rules do not say "
        "what such a play pays",
        PAYS: f"that pays more and more the longer it is kept up{listed}, so its payoff has no "
        "bound",
        NO_SUM: "with a choice in it, and the two players' payoffs have no constant sum; such "
        "cycles are solved for games of constant sum",
        UNSETTLED: "with a choice in it, where the players' best replies do not settle on one "
        "payoff",
        SLOW: "whose bounds do not meet",
    }[status]
    return StateError(f"{where} lies on a cycle {why}")


def _one_cycle(c: Component, cycle: Ints) -> list[int]:
    """Return the states of one of some refused cycles, ascending: a small one, without those that
    only lead to it."""
    reached, count = np.flatnonzero(cycle >= 0)[:1].tolist(), 0
    while len(reached) != count:
        count, reached = len(reached), reached[-1:]
        met = {*reached}
        for x in reached:  # it grows
            for y in c.children[c.first[cycle[x]] : c.first[cycle[x] + 1]].tolist():
                if y >= 0 and cycle[y] >= 0 and y not in met:
                    met.add(y)
                    reached.append(y)
    return sorted(reached)
