"""Cycles: strongly connected components of several states, solved as one piece, children known.

Small ones in which nothing is chosen are **linear**: V = r + P V, with P the chances between the
members, r what the edges pay plus what the children outside are worth. All others become
**equations**, whose values lie between two proved bounds. A component is then a set S of states
0 .. n - 1; player 0 maximises, player 1 (of two of constant sum) minimises player 0's payoff::

    (T v)(x) = best over a of q(x, a),    q(x, a) = sum over the edges of a  p (r + v(y))

**Covered**: components without a choice, any number of players; one player; two players of constant
sum; other players where their best replies settle, below. Where some policy (of all players
together) never ends, T may have more than one fixed point, and the rules do not say what a play
without an end pays. That is refused, but for two players each of whom has actions, those of step 3,
with which every play ends whatever the other does: step 3 holds then too, so the payoffs are proved
whatever a play without an end pays (both may pass for ever, and it pays neither).

**Best replies** of several players: each takes what is best for themselves, sweep by sweep, once
from the least payoffs and once from the greatest. Nothing says that this settles, or on one
equilibrium: it is checked. Where nothing moves any more, the actions taken make a component without
a choice, whose payoffs are bounded as above; both ways must come to the same ones, within the gap
and 1e-12 of the range, else the component is refused. Known payoffs must be exact.

1. **Every policy ends?** From S take away, again and again, each state of which every action has an
   edge that leaves what is left. If nothing is left, then from each state under any policy there is
   a chance of at least min(p) ** n to be out of S within n steps: T has one fixed point V, and
   T^k z -> V from every z. What is left otherwise is a trap (an end component).
2. **Iterate** two vectors, L from the least payoff and U from the largest, by Gauss-Seidel sweeps
   in alternating directions. T is monotone, so L <= V <= U whatever the order of the updates.
3. **Certify**, whatever led to L and U. Let pi be player 0's best actions at L, and w a table with
   w >= 1 + max over the other player's actions of sum p w  (w bounds the steps to the end). If
   T L >= L - eps at every state, then z = L - eps w has T_pi z >= z, hence V >= V_pi >= z. U goes
   the same way with player 1's actions fixed. eps is the residual as computed plus a bound on the
   rounding of its d terms, (d + 4) u times the sum of their sizes, u = 2 ** -53 (weights rounded
   once included). w comes from value iteration and is itself checked: if the slack
   w - max sum p w is at least s > 0, then w / s will do.

**Guarantee**: lower <= V <= upper at each state, wherever the iteration stopped; upper - lower is
at most the tolerance and what the known payoffs differ by themselves, or StateError is raised. All
sums are in the order of the edges and of the members' keys: the same bits whoever comes first.

Sources: Haddad and Monmege, Interval iteration algorithm for MDPs (2018); Bertsekas and Tsitsiklis,
An analysis of stochastic shortest path problems (1991); Condon, The complexity of stochastic games
(1992); Higham, Accuracy and stability of numerical algorithms, 3.1 (rounding of sums).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.compiled import njit, tuple_type, types
from luckbase.solver.errors import StateError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.game import Game
from luckbase.solver.game.rules import SIMULTANEOUS
from luckbase.solver.search.bellman import (
    LOTTERIES,
    SCRATCH_TYPE,
    UNDECIDED,
    Lotteries,
    action_value,
    action_values,
    decide,
    scratch_of,
)
from luckbase.solver.search.expand import Expanded, inlined

MAX_SWEEPS = 1_000_000
MAX_REPLIES = 20_000
_U = 2.0**-53
_ROUND_UP = 1 + 1e-6  # covers the rounding of products of bounds
_i, _f, _b = types.int64, types.float64, types.boolean
_i1, _f1, _f2 = types.int64[::1], types.float64[::1], types.float64[:, ::1]


class GapError(StateError):
    """Bounds that do not come as close as they should; a wider tolerance may do."""


class Equations(NamedTuple):
    """n states that can come back, m edges, k known payoffs of p players.

    first: int64 (n + 1,), state x has edges first[x] .. first[x + 1] - 1; edges of one action stand
    together. children: int64 (m,), a state below n, or n + j for known payoff j. weights: float64
    (m,), above 0. actions: int64 (m,). rewards: float64 (m, p). actors: int64 (n,), the player from
    0, anything where nothing is chosen. known_lower, known_upper: float64 (k, p), bounds on the
    payoffs.

    What is compiled sees it with one player's rewards and payoffs (`seen_by`): whose `actors` are
    0 maximises, whose are 1 minimises.
    """

    first: Ints
    children: Ints
    weights: Floats
    actions: Ints
    rewards: Floats
    actors: Ints
    known_lower: Floats
    known_upper: Floats

    @property
    def size(self) -> int:
        return len(self.actors)

    def seen_by(self, player: int) -> Equations:
        """The same with the rewards and payoffs of one player."""
        column = slice(player, player + 1)
        return self._replace(
            rewards=self.rewards[:, column].copy(),
            known_lower=self.known_lower[:, column].copy(),
            known_upper=self.known_upper[:, column].copy(),
        )


_EQUATIONS = tuple_type(Equations, _i1, _i1, _f1, _i1, _f2, _i1, _f2, _f2)


@dataclass(frozen=True)
class FixedPoint:
    """lower, upper: float64 (n, players), bounds on each payoff."""

    lower: Floats
    upper: Floats

    @property
    def gap(self) -> float:
        """The largest difference of the bounds."""
        return float((self.upper - self.lower).max(initial=0.0))


@njit(_i(_EQUATIONS, _i1))
def _peel(c, kept):
    """Take away from `kept` (n,) what leaves it whatever is chosen; returns how many stay."""
    n = kept.size
    left, changed = n, True
    while changed and left:
        changed = False
        for x in range(n - 1, -1, -1):
            k, stays = c.first[x], kept[x] == 0
            while k < c.first[x + 1] and not stays:
                action, stays = c.actions[k], True
                while k < c.first[x + 1] and c.actions[k] == action:
                    y = c.children[k]
                    stays = stays and y < n and kept[min(y, n - 1)] == 1
                    k += 1
            if not stays:
                kept[x], changed = 0, True
                left -= 1
    return left


@inlined
def _back_up(edges, span, actor, values, q):
    """(T v)(x) of the state with edges span[0] .. span[1] - 1, and where the action chosen begins;
    without a tolerance for ties. values: (n + k, 1); q: scratch (1, 1)."""
    best, chosen, k = 0.0, -1, span[0]
    while k < span[1]:
        start = k
        k = action_value(edges, k, span[1], values, 0, q, 0)
        if chosen < 0 or (q[0, 0] < best if actor == 1 else q[0, 0] > best):
            best, chosen = q[0, 0], start
    return best, chosen


@njit(_f(_EQUATIONS, _f2, _b))
def _sweep(c, values, backwards):
    """One Gauss-Seidel sweep over the first n of `values` (n + k, 1), in place; returns the largest
    change."""
    n, change = c.actors.size, 0.0
    edges, q = Lotteries(c.children, c.weights, c.actions, c.rewards), np.empty((1, 1))
    for i in range(n):
        x = n - 1 - i if backwards else i
        v, _ = _back_up(edges, (c.first[x], c.first[x + 1]), c.actors[x], values, q)
        change = max(change, abs(v - values[x, 0]))
        values[x, 0] = v
    return change


@njit(_f(_EQUATIONS, _f2, _f, _i1))
def _residual(c, values, sign, chosen):
    """The largest sign (v - T v), at least 0, with a bound on the rounding of any action's q;
    writes the chosen actions."""
    worst = 0.0
    edges, q = Lotteries(c.children, c.weights, c.actions, c.rewards), np.empty((1, 1))
    for x in range(c.actors.size):
        k, stop, margin = c.first[x], c.first[x + 1], 0.0
        v, chosen[x] = _back_up(edges, (k, stop), c.actors[x], values, q)
        while k < stop:
            start, size = k, 0.0
            while k < stop and c.actions[k] == c.actions[start]:
                magnitude = abs(c.rewards[k, 0]) + abs(values[c.children[k], 0])
                size += c.weights[k] * magnitude
                k += 1
            margin = max(margin, (k - start + 4) * _U * size)
        worst = max(worst, sign * (values[x, 0] - v) + margin)
    return worst


@njit(_f(_EQUATIONS, _i, _i1, _f2, _b))
def _steps(c, bound, chosen, w, update):
    """The least slack w - max sum p w where player `bound` keeps to `chosen`; w (n + k, 1), 0 at
    the known payoffs, is updated to 1 + max sum p w on the way if asked."""
    n, slack = c.actors.size, np.inf
    edges = Lotteries(c.children, c.weights, c.actions, np.empty((0, 1)))  # nothing is paid
    q = np.empty((1, 1))
    for i in range(n):
        x, greatest = n - 1 - i, 0.0
        k = c.first[x]
        while k < c.first[x + 1]:
            start = k
            k = action_value(edges, k, c.first[x + 1], w, 0, q, 0)
            if c.actors[x] != bound or start == chosen[x]:
                greatest = max(greatest, q[0, 0] * (1 + (k - start + 4) * _U))
        if update:
            w[x, 0] = 1 + greatest
        slack = min(slack, w[x, 0] - greatest)
    return slack


def trap(equations: Equations) -> Ints:
    """The states, ascending, among which some policy stays for ever; none where every policy ends.

    Players work together in it: what one of them alone could prevent is found too.
    """
    kept = np.ones(equations.size, np.int64)
    _peel(equations.seen_by(0), kept)
    return np.flatnonzero(kept)


def certify(equations: Equations, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
    """Bounds (n,), (n,) on player 0's payoffs that hold whatever `lower` and `upper` (n,) are.

    They are close where those are nearly fixed points, and infinite where the other player can keep
    the play up for ever. Step 3 of the module's docstring.
    """
    c, certified = equations.seen_by(0), []
    for guess, known, sign, bound in (
        (lower, c.known_lower, 1.0, 0),
        (upper, c.known_upper, -1.0, 1),
    ):
        chosen = np.empty(c.size, np.int64)
        eps = _residual(c, np.concatenate([guess[:, None], known]), sign, chosen)
        w = np.zeros((c.size + len(known), 1))
        w[: c.size] = 1.0
        slack = -1.0
        ends = not len(trap(_keeping(c, c.actors == bound, chosen)))
        for _ in range(MAX_SWEEPS if ends else 0):
            _steps(c, bound, chosen, w, True)
            slack = _steps(c, bound, chosen, w, False)
            if slack >= 0.5:
                break
        if slack > 0:
            bounds = guess - sign * (eps * _ROUND_UP) * (w[: c.size, 0] / slack)
            certified.append(np.nextafter(bounds, -sign * np.inf))
        else:
            certified.append(np.full(c.size, -sign * np.inf))
    return certified[0], certified[1]


def _keeping(c: Equations, who: NDArray[np.bool_], chosen: Ints) -> Equations:
    """The component where the states of a mask (n,) have the action that begins at `chosen` (n,)
    only."""
    owner = np.repeat(np.arange(c.size), np.diff(c.first))
    kept = ~who[owner] | (c.actions == c.actions[chosen][owner])
    first = np.concatenate([[0], np.cumsum(np.bincount(owner[kept], minlength=c.size))])
    edges = c.children[kept], c.weights[kept], c.actions[kept], c.rewards[kept]
    return Equations(first, *edges, c.actors, c.known_lower, c.known_upper)


@njit(_i(_EQUATIONS, _f2, _f, _f, SCRATCH_TYPE, _i1))
def _reply(c, values, still, tie, scratch, chosen):
    """Sweeps of best replies over the first n of `values` (n + k, players), in place, until none
    moves by more than `still`; `chosen` (n,): where the actions taken begin. Returns how many."""
    n, players = c.actors.size, values.shape[1]
    edges = Lotteries(c.children, c.weights, c.actions, c.rewards)
    for sweep in range(MAX_REPLIES):
        change = 0.0
        for i in range(n):
            x = n - 1 - i if sweep % 2 == 0 else i
            groups = action_values(edges, c.first[x], c.first[x + 1], values, 0, scratch)
            taken, _ = decide(groups, c.actors[x], players, tie, scratch)
            chosen[x] = scratch.starts[taken]
            for p in range(players):
                change = max(change, abs(scratch.out[p] - values[x, p]))
                values[x, p] = scratch.out[p]
        if change <= still:
            return sweep + 1
    return MAX_REPLIES


def _equilibrium(
    c: Equations, payoff_range: tuple[float, float], tolerance: float, tie: float,
    describe: Callable[[int], str], where: str,
) -> FixedPoint:  # fmt: skip
    """The payoffs on which best replies settle (module docstring); where: a state, named."""
    size, players = max(abs(bound) for bound in payoff_range), c.rewards.shape[1]
    scratch = scratch_of(int(np.diff(c.first).max()), players)
    exact = np.array_equal(c.known_lower, c.known_upper)
    solved: list[FixedPoint] = []
    for guess in payoff_range if exact else ():
        values = np.concatenate([np.full((c.size, players), guess), c.known_lower])
        chosen = np.empty(c.size, np.int64)
        if _reply(c, values, 4 * _U * size, tie, scratch, chosen) >= MAX_REPLIES:
            break
        taken = _keeping(c, np.ones(c.size, bool), chosen)
        taken = taken._replace(actors=np.zeros_like(c.actors))
        sides = [_iterate(taken.seen_by(i), payoff_range, tolerance, describe)
                for i in range(players)]  # fmt: skip
        solved.append(FixedPoint(*(np.column_stack([s[i] for s in sides]) for i in (0, 1))))
    near = tolerance + 1e-12 * size
    if len(solved) < 2 or np.abs(solved[0].lower - solved[1].lower).max() > near:
        raise StateError(
            f"{where} lies on a cycle with a choice in it, where the players' best replies do not "
            "settle on one payoff"
        )
    return solved[0]


def solve_equations(
    equations: Equations,
    payoff_range: tuple[float, float],
    tolerance: float,
    describe: Callable[[int], str] = lambda x: f"state {x}",
    tie: float = 0.0,
) -> FixedPoint:
    """Solve a component for all its players.

    payoff_range: the least and the most that a payoff can be; where the iteration starts, no more.
    tolerance: the largest gap beyond the gap of the known payoffs. describe: names a state in a
    sentence. tie: actions closer than this are tied, for best replies.

    Raises StateError, in one sentence that names a state: a component that is not covered, one in
    which some policy never ends, and one whose bounds stay apart for `MAX_SWEEPS` or in float64.
    """
    c, players = equations, equations.rewards.shape[1]
    stuck = trap(c)
    inner = np.ones(len(c.actions), bool)  # edges of the state of the one before
    inner[c.first[:-1]] = False
    choices = np.flatnonzero(inner[1:] & (c.actions[1:] != c.actions[:-1]))
    never = (
        f"{describe(int(stuck[0]))} lies on a cycle that the players can keep up for ever, and "
        "the rules do not say what such a play pays"
    ) if len(stuck) else ""  # fmt: skip
    if never and (players != 2 or not len(choices)):
        raise StateError(never)
    how = payoff_range, tolerance, describe
    if players == 1 or not len(choices):  # linear: each player's payoffs by themselves
        plain = c if len(choices) else c._replace(actors=np.zeros_like(c.actors))
        solved = [_iterate(plain.seen_by(i), *how) for i in range(players)]
        lower, upper = (np.column_stack([s[side] for s in solved]) for side in (0, 1))
        return FixedPoint(lower, upper)
    where = describe(int(np.searchsorted(c.first, choices[0], side="right")) - 1)
    if players > 2:
        return _equilibrium(c, *how[:2], tie, describe, where)
    sums = np.concatenate([c.known_lower[:, 0] + c.known_upper[:, 1],
                           c.known_upper[:, 0] + c.known_lower[:, 1]])  # fmt: skip
    total = float(sums.mean())
    size = 1e-9 * max(1.0, *map(abs, payoff_range))
    if np.ptp(sums) > size or c.rewards.sum(axis=1).any():  # no bound counts what is paid too much
        raise StateError(
            f"{where} lies on a cycle with a choice in it, and the two players' payoffs have no "
            "constant sum; such cycles are solved for games of constant sum"
        )
    lower, upper = _iterate(c.seen_by(0), *how, never)
    spread = float(np.abs(sums - total).max())
    return FixedPoint(
        np.column_stack([lower, total - spread - upper]),
        np.column_stack([upper, total + spread - lower]),
    )


def _iterate(
    c: Equations, payoff_range: tuple[float, float], tolerance: float,
    describe: Callable[[int], str], never: str = "",
) -> tuple[Floats, Floats]:  # fmt: skip
    """(lower, upper), certified, of equations as one player sees them: steps 2 and 3. never: why
    they may have no one fixed point, in a sentence."""
    n, (low, high) = c.size, payoff_range
    known_gap = float((c.known_upper - c.known_lower).max(initial=0.0))
    below = np.concatenate([np.full((n, 1), low), c.known_lower])
    above = np.concatenate([np.full((n, 1), high), c.known_upper])
    sweeps, target = 0, tolerance / 2 + known_gap
    while True:
        change = max(_sweep(c, values, sweeps % 2 == 0) for values in (below, above))
        sweeps += 1
        still = change <= 4 * _U * max(abs(low), abs(high)) or sweeps >= MAX_SWEEPS
        if not still and float(np.abs(above[:n] - below[:n]).max()) > target:
            continue
        lower, upper = certify(c, below[:n, 0], above[:n, 0])
        x = int(np.argmax(upper - lower))
        gap = float(upper[x] - lower[x])
        if gap <= tolerance + known_gap:
            return lower, upper
        if still:
            apart = f"a cycle whose bounds are {gap:.2g} apart after {sweeps} sweeps"
            why = f"{describe(x)} lies on {apart}; the tolerance is {tolerance:.2g}"
            raise GapError(never or why)
        target /= 4


# --- components of a search ---------------------------------------------------------------------

MAX_LINEAR = 400
"""Members of a component that is solved by elimination: 20 ms."""
TOLERANCES = (1e-13, 1e-11, 1e-9)
"""Largest gaps, by the size of the payoffs; the next where float64 can not give the last."""


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


def solve(
    game: Game, members: NDArray[np.integer[Any]], states: Ints, edges: Expanded, payoffs: Floats,
    tolerance: float,
) -> Solved:  # fmt: skip
    """Solve a component, everything else below it being solved.

    members: (m,), the numbers of its states (m, fields), in the order of their keys. edges: theirs,
    with the number of each child (k,) for the child. payoffs: float64 (numbers, columns), a column
    a player, or two for bounds; those of the members are not looked at. tolerance: of ties.

    Raises StateError for what is not covered.
    """

    def describe(i: int) -> str:
        return game.say(states[i])

    jointly = np.flatnonzero(edges.kinds == SIMULTANEOUS)
    if len(jointly):
        raise StateError(
            f"{describe(int(jointly[0]))} lies on a cycle and both players choose there at once; "
            "such cycles are not solved"
        )
    m, (low, high) = len(members), game.payoff_range
    by_number = np.argsort(members)
    below = np.searchsorted(members, edges.children, sorter=by_number)
    local = by_number[np.minimum(below, m - 1)]
    inside = members[local] == edges.children
    best, margins = edges.actions[edges.first[:-1]], np.full(m, np.nan)
    actors = (edges.actors + 1).astype(np.int8)
    choice = (edges.actions != np.repeat(best, np.diff(edges.first))).any()
    lotteries = Lotteries(local, edges.weights, edges.actions, edges.rewards)
    if not choice and m <= MAX_LINEAR:
        values = _linear(edges.first, lotteries, inside, payoffs[edges.children])
        if values is None:
            raise StateError(
                f"{describe(0)} lies on a cycle that play may never leave, so its payoff is not "
                "defined"
            )
        return Solved(values, best, margins, actors, 0.0)
    outside, which = np.unique(edges.children[~inside], return_inverse=True)
    local[~inside], known = m + which, payoffs[outside]
    ends = (np.ascontiguousarray(known[:, part]) for part in
            (slice(game.players), slice(-game.players, None)))  # fmt: skip
    equations = Equations(edges.first, *lotteries, edges.actors, *ends)
    for tolerance_ in TOLERANCES:
        try:
            gap = tolerance_ * max(abs(low), abs(high))
            bounds = solve_equations(equations, (low, high), gap, describe, tolerance)
            break
        except GapError:
            if tolerance_ == TOLERANCES[-1]:
                raise
    values = np.concatenate([bounds.lower, bounds.upper], axis=1)
    if payoffs.shape[1] == game.players:
        values = (bounds.lower + bounds.upper) / 2
    if choice:
        whole = np.concatenate([values, known])
        scratch = scratch_of(int(np.diff(edges.first).max()), payoffs.shape[1])
        _choose(lotteries, edges.first, edges.actors, whole, tolerance, scratch, best, margins)
    return Solved(values, best, margins, actors, bounds.gap)


def _linear(
    first: Ints, edges: Lotteries, inside: NDArray[np.bool_], known: Floats
) -> Floats | None:
    """The payoffs (m, columns) of members who have nothing to choose, `known` (edges, columns)
    being those of the children that are not `inside`; None where play may never leave."""
    from luckbase.solver.matrix_game.simplex import eliminate

    m, columns = len(first) - 1, known.shape[1]
    t = np.zeros((m, m + columns))
    _write_linear(first, edges, inside, known, t)
    return t[:, m:] if eliminate(t, m, columns, 1e-14, False) else None


@njit(types.void(_i1, LOTTERIES, types.boolean[::1], _f2, _f2))
def _write_linear(first, edges, inside, known, t):
    """Write the equations of `_linear` to t (m, m + columns), zeros, in the order of the edges."""
    m, players = first.size - 1, edges.rewards.shape[1]
    for x in range(m):
        t[x, x] = 1.0
        for k in range(first[x], first[x + 1]):
            weight = edges.weights[k]
            if inside[k]:
                t[x, edges.children[k]] -= weight
            for c in range(known.shape[1]):
                t[x, m + c] += weight * edges.rewards[k, c % players]
                if not inside[k]:
                    t[x, m + c] += weight * known[k, c]


@njit(types.void(LOTTERIES, _i1, _i1, _f2, _f, SCRATCH_TYPE, _i1, _f1))
def _choose(edges, first, actors, values, tolerance, scratch, best, margins):
    """Write the best actions and their margins where there is a choice, from the values of the
    members and, behind them, of what they lead to."""
    for i in range(best.size):
        groups = action_values(edges, first[i], first[i + 1], values, 0, scratch)
        if groups < 2:
            continue
        taken, margin = decide(groups, actors[i], edges.rewards.shape[1], tolerance, scratch)
        best[i] = edges.actions[scratch.starts[taken]] if taken >= 0 else UNDECIDED
        margins[i] = margin
