"""Certified fixed points: the values of states that can come back, between two bounds that meet.

A **component** is a set S of states 0 .. n - 1 whose other successors have known payoffs. With
actions a, each a lottery over edges of chance p, reward r and child y, and 1 player or 2 players
whose payoffs have a constant sum (player 0 maximises, player 1 minimises player 0's)::

    (T v)(x) = best over a of q(x, a),    q(x, a) = sum over the edges of a  p (r + v(y))

**Covered**: components where no state has a choice, any number of players; one player; two
players of constant sum. Every other component with a choice is refused. So is one in which some
policy (of all players together) never ends, for then T has more than one fixed point and the rules
do not say what a play without an end pays.

1. **Every policy ends?** From S take away, again and again, each state of which every action has an
   edge that leaves what is left. If nothing is left, then from each state under any policy there is
   a chance of at least min(p) ** n to be out of S within n steps: every policy ends, T has one
   fixed point V, and T^k z -> V from every z. What is left otherwise is a trap: there a policy
   stays for ever (an end component).
2. **Iterate** two tables, L from the least payoff and U from the largest, by Gauss-Seidel sweeps
   in alternating directions. T is monotone, so L <= V <= U whatever the order of the updates.
3. **Certify**, whatever led to L and U. Let pi be player 0's best actions at L, and w a table with
   w >= 1 + max over the other player's actions of sum p w  (w bounds the steps to the end). If
   T L >= L - eps at every state, then z = L - eps w has T_pi z >= z, hence V >= V_pi >= z. U goes
   the same way with player 1's actions fixed. eps is the residual as computed plus a bound on the
   rounding of its d terms, (d + 4) u times the sum of their sizes, u = 2 ** -53 (weights rounded
   once included). w comes from value iteration and is itself checked: if the slack
   w - max sum p w is at least s > 0, then w / s will do.

**Guarantee**: lower <= V <= upper at each state, wherever the iteration stopped; upper - lower is
at most the tolerance and what the known payoffs differ by themselves, or StateError is raised.

Sources: Haddad and Monmege, Interval iteration algorithm for MDPs (2018); Bertsekas and Tsitsiklis,
An analysis of stochastic shortest path problems (1991); Condon, The complexity of stochastic games
(1992); Higham, Accuracy and stability of numerical algorithms, 3.1 (rounding of sums).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numba as nb
import numpy as np
from numba import types

from luckbase.solver.errors import StateError
from luckbase.solver.game.arrays import Floats, Ints

MOST_SWEEPS = 1_000_000
_U = 2.0**-53
_ROUND_UP = 1 + 1e-6  # covers the rounding of products of bounds

_i1, _f1 = types.int64[::1], types.float64[::1]
_backed_up = types.Tuple((types.float64, types.int64, types.float64))  # type: ignore[no-untyped-call]


class GapError(StateError):
    """Bounds that do not meet as closely as was asked; a wider tolerance may do."""


@dataclass(frozen=True)
class Component:
    """One player's view: n states, m edges, k known payoffs.

    first: int64 (n + 1,), state x has edges first[x] .. first[x + 1] - 1; edges of one action stand
    together. actions: int64 (m,). weights: float64 (m,), above 0. rewards: float64 (m,), player
    0's. children: int64 (m,), a state below n, or n + j for known payoff j. actors: int64 (n,), 0
    maximises and 1 minimises. known_lower, known_upper: float64 (k,), bounds on player 0's payoffs.
    """

    first: Ints
    actions: Ints
    weights: Floats
    rewards: Floats
    children: Ints
    actors: Ints
    known_lower: Floats
    known_upper: Floats

    @property
    def size(self) -> int:
        return len(self.actors)


@dataclass(frozen=True)
class FixedPoint:
    """lower, upper: float64 (n, players), bounds on each payoff; sweeps: how many were made."""

    lower: Floats
    upper: Floats
    sweeps: int

    @property
    def gap(self) -> float:
        """The largest difference of the bounds."""
        return float((self.upper - self.lower).max(initial=0.0))


@nb.njit(types.int64(_i1, _i1, _i1, _i1), cache=True, nogil=True)
def _peel(first, actions, children, held):  # type: ignore[no-untyped-def]
    """Take away from `held` (n,) what leaves it whatever is chosen; returns how many stay."""
    n = held.size
    left, taken = n, True
    while taken and left:
        taken = False
        for x in range(n - 1, -1, -1):
            if not held[x]:
                continue
            k, can_stay = first[x], False
            while k < first[x + 1] and not can_stay:
                action, inside = actions[k], True
                while k < first[x + 1] and actions[k] == action:
                    inside = inside and children[k] < n and held[min(children[k], n - 1)] == 1
                    k += 1
                can_stay = inside
            if not can_stay:
                held[x] = 0
                left -= 1
                taken = True
    return left


@nb.njit(
    _backed_up(
        _i1, _i1, _f1, _f1, _i1, types.int64, types.int64, _f1
    ),
    cache=True,
    nogil=True,
)  # fmt: skip
def _back_up(first, actions, weights, rewards, children, actor, x, values):  # type: ignore[no-untyped-def]
    """(T v)(x), where the chosen action begins, and a bound on the rounding of any action's q."""
    best, chosen, margin = 0.0, -1, 0.0
    k = first[x]
    while k < first[x + 1]:
        start, q, size = k, 0.0, 0.0
        while k < first[x + 1] and actions[k] == actions[start]:
            v = values[children[k]]
            q += weights[k] * (rewards[k] + v)
            size += weights[k] * (abs(rewards[k]) + abs(v))
            k += 1
        margin = max(margin, (k - start + 4) * _U * size)
        if chosen < 0 or (q < best if actor == 1 else q > best):
            best, chosen = q, start
    return best, chosen, margin


@nb.njit(types.float64(_i1, _i1, _f1, _f1, _i1, _i1, _f1, types.boolean), cache=True, nogil=True)
def _sweep(first, actions, weights, rewards, children, actors, values, backwards):  # type: ignore[no-untyped-def]
    """One Gauss-Seidel sweep over the first n of `values`, in place; returns the largest change."""
    n, change = actors.size, 0.0
    for i in range(n):
        x = n - 1 - i if backwards else i
        v, _, _ = _back_up(first, actions, weights, rewards, children, actors[x], x, values)
        change = max(change, abs(v - values[x]))
        values[x] = v
    return change


@nb.njit(types.float64(_i1, _i1, _f1, _f1, _i1, _i1, _f1, types.float64, _i1), cache=True)
def _residual(first, actions, weights, rewards, children, actors, values, sign, chosen):  # type: ignore[no-untyped-def]
    """The largest sign (v - T v), rounding included, at least 0; writes the chosen actions."""
    worst = 0.0
    for x in range(actors.size):
        v, chosen[x], margin = _back_up(
            first, actions, weights, rewards, children, actors[x], x, values
        )
        worst = max(worst, sign * (values[x] - v) + margin)
    return worst


@nb.njit(
    types.float64(_i1, _i1, _f1, _i1, _i1, types.int64, _i1, _f1, types.boolean),
    cache=True,
    nogil=True,
)
def _steps(first, actions, weights, children, actors, bound, chosen, w, update):  # type: ignore[no-untyped-def]
    """The least slack w - max sum p w where player `bound` keeps to `chosen`; w is updated to
    1 + max sum p w on the way if asked."""
    n, slack = actors.size, np.inf
    for i in range(n):
        x, most = n - 1 - i, 0.0
        k = first[x]
        while k < first[x + 1]:
            start, total = k, 0.0
            while k < first[x + 1] and actions[k] == actions[start]:
                if children[k] < n:
                    total += weights[k] * w[children[k]]
                k += 1
            if actors[x] != bound or start == chosen[x]:
                most = max(most, total * (1 + (k - start + 4) * _U))
        if update:
            w[x] = 1 + most
        slack = min(slack, w[x] - most)
    return slack


def trap(component: Component) -> Ints:
    """The states, ascending, among which some policy stays for ever; none where every policy ends.

    Players work together in it: what one of them alone could prevent is found too.
    """
    held = np.ones(component.size, np.int64)
    _peel(component.first, component.actions, component.children, held)
    return np.flatnonzero(held)


def certify(component: Component, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
    """Bounds (n,), (n,) on player 0's payoffs that hold whatever `lower` and `upper` (n,) are.

    They are close where those are nearly fixed points. Every policy of the component must end
    (`trap`). Step 3 of the module's docstring.
    """
    c, found = component, []
    for guess, known, sign, bound in (
        (lower, c.known_lower, 1.0, 0),
        (upper, c.known_upper, -1.0, 1),
    ):
        chosen = np.empty(c.size, np.int64)
        values = np.concatenate([guess, known])
        eps = _residual(
            c.first, c.actions, c.weights, c.rewards, c.children, c.actors, values, sign, chosen
        )
        w = np.ones(c.size)
        slack = -1.0
        for _ in range(MOST_SWEEPS):
            _steps(c.first, c.actions, c.weights, c.children, c.actors, bound, chosen, w, True)
            slack = _steps(
                c.first, c.actions, c.weights, c.children, c.actors, bound, chosen, w, False
            )
            if slack >= 0.5:
                break
        if slack > 0:
            bounds = guess - sign * (eps * _ROUND_UP) * (w / slack)
            found.append(np.nextafter(bounds, -sign * np.inf))
        else:
            found.append(np.full(c.size, -sign * np.inf))
    return found[0], found[1]


def solve_component(
    first: Ints,
    actions: Ints,
    weights: Floats,
    rewards: Floats,
    children: Ints,
    actors: Ints,
    outside_lower: Floats,
    outside_upper: Floats,
    low: float,
    high: float,
    tolerance: float,
    *,
    describe: Callable[[int], str] = lambda x: f"state {x}",
    most_sweeps: int = MOST_SWEEPS,
) -> FixedPoint:
    """Solve n states that can come back, m edges, k known payoffs of p players.

    first, actions, weights, children: as in `Component`. rewards: float64 (m, p). actors: int64
    (n,), the player from 0 (anything where nothing is chosen). outside_lower, outside_upper:
    float64 (k, p), bounds on the payoffs of children n .. n + k - 1. low, high: the least and the
    most that a payoff can be; where the iteration starts, no more. tolerance: the gap that is asked
    for beyond the gap of the known payoffs. describe: names a state in a sentence.

    Raises StateError, in one sentence that names a state: a component that is not covered, one in
    which some policy never ends, and one whose bounds do not meet within `most_sweeps` or float64.
    """
    players = rewards.shape[1]
    component = Component(
        first, actions, weights, rewards[:, 0].copy(), children, np.asarray(actors, np.int64),
        outside_lower[:, 0].copy(), outside_upper[:, 0].copy(),
    )  # fmt: skip
    stuck = trap(component)
    if len(stuck):
        raise StateError(
            f"{describe(int(stuck[0]))} lies on a cycle that the players can keep up for ever, and "
            "the rules do not say what such a play pays"
        )
    choice = _first_choice(component)
    if choice is None:  # linear: each player's payoffs by themselves
        solved = []
        for i in range(players):
            one = replace(
                component, rewards=rewards[:, i].copy(), actors=np.zeros_like(component.actors),
                known_lower=outside_lower[:, i].copy(), known_upper=outside_upper[:, i].copy(),
            )  # fmt: skip
            solved.append(_iterate(one, low, high, tolerance, describe, most_sweeps))
        lower, upper = (np.column_stack([s[side] for s in solved]) for side in (0, 1))
        return FixedPoint(lower, upper, max(s[2] for s in solved))
    if players == 1:
        lower, upper, sweeps = _iterate(component, low, high, tolerance, describe, most_sweeps)
        return FixedPoint(lower[:, None], upper[:, None], sweeps)
    if players > 2:
        raise StateError(
            f"{describe(choice)} lies on a cycle with a choice in it, in a game of {players} "
            "players; such cycles are solved for one player or two of constant sum"
        )
    sums = np.concatenate([outside_lower[:, 0] + outside_upper[:, 1],
                           outside_upper[:, 0] + outside_lower[:, 1]])  # fmt: skip
    total = float(sums.mean())
    size = 1e-9 * max(1.0, abs(low), abs(high))
    if np.ptp(sums) > size or np.abs(rewards.sum(axis=1)).max(initial=0.0) > size:
        raise StateError(
            f"{describe(choice)} lies on a cycle with a choice in it, and the two players' payoffs "
            "have no constant sum; such cycles are solved for games of constant sum"
        )
    lower, upper, sweeps = _iterate(component, low, high, tolerance, describe, most_sweeps)
    spread = float(np.abs(sums - total).max())
    return FixedPoint(
        np.column_stack([lower, total - spread - upper]),
        np.column_stack([upper, total + spread - lower]),
        sweeps,
    )


def _first_choice(component: Component) -> int | None:
    """A state with more than one action, or None."""
    owner = np.repeat(np.arange(component.size), np.diff(component.first))
    inner = owner[1:] == owner[:-1]
    at = np.flatnonzero(inner & (component.actions[1:] != component.actions[:-1]))
    return int(owner[at[0]]) if len(at) else None


def _iterate(
    component: Component, low: float, high: float, tolerance: float,
    describe: Callable[[int], str], most_sweeps: int,
) -> tuple[Floats, Floats, int]:  # fmt: skip
    """Steps 2 and 3: (lower, upper, sweeps), certified."""
    c, n = component, component.size
    known_gap = float((c.known_upper - c.known_lower).max(initial=0.0))
    below = np.concatenate([np.full(n, low), c.known_lower])
    above = np.concatenate([np.full(n, high), c.known_upper])
    sweeps, wanted = 0, tolerance / 2 + known_gap
    while True:
        change = 0.0
        for values in (below, above):
            moved = _sweep(
                c.first, c.actions, c.weights, c.rewards, c.children, c.actors, values,
                sweeps % 2 == 0,
            )  # fmt: skip
            change = max(change, moved)
        sweeps += 1
        stalled = change <= 4 * _U * max(abs(low), abs(high)) or sweeps >= most_sweeps
        if not stalled and float(np.abs(above[:n] - below[:n]).max()) > wanted:
            continue
        lower, upper = certify(c, below[:n], above[:n])
        x = int(np.argmax(upper - lower))
        gap = float(upper[x] - lower[x])
        if gap <= tolerance + known_gap:
            return lower, upper, sweeps
        if stalled:
            raise GapError(
                f"{describe(x)} lies on a cycle whose bounds are {gap:.2g} apart after {sweeps} "
                f"sweeps; the tolerance is {tolerance:.2g}"
            )
        wanted /= 4
