"""How often a Markov chain comes to each state before it ends, however long that takes.

With P the chances of going from one state to another and e the state in which it begins::

    x = e + P' x,    x(y) = [y is the first] + sum over z of x(z) P(z, y)

Strongly connected components are solved one after the other, in the order in which a play comes
through them; what flows into one is known then.

* **A state by itself** without an edge to itself has what flows in.
* **Up to `MAX_DENSE` states** by the elimination of Grassmann, Taksar and Heyman: a state is taken
  out and what went through it goes around it. 1 - P(z, z) is the sum of the chances of going
  elsewhere, so nothing is ever subtracted, and every number is right to nearly all its digits,
  whether a play stays for ten steps or for 10^15.
* **Larger ones** by Gauss-Seidel sweeps, each followed by one factor that makes as much flow out
  as flows in, which takes away what a long stay would cost in sweeps. It ends when it is proved
  to be `CLOSE`: with z > 0 and c > 0 such that z - P' z >= c everywhere, |x - right| is at most
  max |e + P' x - x| / c times z. The same sweeps give z, with a play that begins in each state.

A component that nothing leaves and that is not over keeps a play for ever.

Sources: Grassmann, Taksar and Heyman, Regenerative analysis and steady state distributions (1985);
Tarjan (1972) for the components; Haddad and Monmege (2018) for proofs by a table of steps.
"""

from __future__ import annotations

import numpy as np
from numba import types
from numpy.typing import NDArray

from luckbase.solver.errors import StateError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.njit import njit

MAX_DENSE = 400
"""Members of a component that is eliminated: 20 ms."""
CLOSE = 1e-6
"""How far off the visits of a larger component may be, as a share of the most visited state's."""
MAX_SWEEPS = 100_000
_U = 2.0**-53
_ROUND_UP = 1 + 1e-6  # covers the rounding of a product of bounds

_i1, _i4, _f1 = types.int64[::1], types.int32[::1], types.float64[::1]


class NeverEnds(Exception):
    """A state, `number`, from which a chain never ends."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@njit(types.Tuple((_i1, _i1))(_i1, _i4), cache=True, nogil=True)
def components(first, children):  # noqa: C901  # Tarjan in one loop: no recursion
    """Strongly connected components: (the states (n,), those of one together and every one behind
    all that it leads to; where each component begins, and the end)."""
    n = first.size - 1
    order, starts = np.empty(n, np.int64), np.empty(n + 1, np.int64)
    index, low = np.full(n, -1, np.int64), np.empty(n, np.int64)
    stack, path, at = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    met = done = parts = height = 0
    for root in range(n):
        if index[root] >= 0:
            continue
        depth = 0
        path[0] = root
        while depth >= 0:
            x = path[depth]
            if index[x] < 0:
                index[x] = low[x] = met
                met += 1
                stack[height] = x
                height += 1
                at[x] = first[x]
            went = False
            while at[x] < first[x + 1]:
                y = children[at[x]]
                if index[y] < 0:
                    depth += 1
                    path[depth] = y
                    went = True
                    break
                low[x] = min(low[x], low[y])  # of what is finished it is n
                at[x] += 1
            if went:
                continue
            if low[x] == index[x]:
                starts[parts] = done
                parts += 1
                while True:
                    height -= 1
                    y = stack[height]
                    order[done] = y
                    low[y] = n
                    done += 1
                    if y == x:
                        break
            depth -= 1
    starts[parts] = n
    return order, starts[: parts + 1]


@njit(types.int64(_i1, _i4, _f1, _i1, _i1, types.int64, _f1), cache=True, nogil=True)
def _flow(first, children, chances, order, starts, part, x):
    """From component `part` down to the last that is reached, add what flows on to `x`, which holds
    what flows in, and solve single states; stops at a component of several, or a state that leads
    to itself only, and returns its number; -1 at the end."""
    while part >= 0:
        if starts[part + 1] - starts[part] > 1:
            return part
        y = order[starts[part]]
        if x[y] > 0.0 and first[y + 1] > first[y]:
            leaves, loops = 0.0, False
            for k in range(first[y], first[y + 1]):
                if children[k] == y:
                    loops = True
                else:
                    leaves += chances[k]
            if leaves == 0.0:
                return part
            if loops:
                x[y] /= leaves
            for k in range(first[y], first[y + 1]):
                if children[k] != y:
                    x[children[k]] += x[y] * chances[k]
        part -= 1
    return part


@njit(types.void(types.float64[:, ::1], _f1, _f1), cache=True, nogil=True)
def _eliminate(weights, leaves, x):
    """Solve a component: weights (n, n) between its states, what leaves each, and in `x` (n,) what
    flows in, where the visits are left; all are modified. Its diagonal is not looked at."""
    n = x.size
    out = np.empty(n)
    for k in range(n - 1, -1, -1):
        total = leaves[k]
        for j in range(k):
            total += weights[k, j]
        out[k] = total
        for j in range(k):
            x[j] += x[k] * weights[k, j] / total
        for i in range(k):
            share = weights[i, k] / total
            if share > 0.0:
                leaves[i] += share * leaves[k]
                for j in range(k):
                    weights[i, j] += share * weights[k, j]
    for k in range(n):
        for i in range(k):
            x[k] += x[i] * weights[i, k]
        x[k] /= out[k]


@njit(types.void(_i1, _i1, _f1, _f1, _f1, _f1, _f1, types.int64), cache=True, nogil=True)
def _sweeps(first, sources, weights, out, leaves, flow, x, count):
    """`count` sweeps over x (n,), in alternating directions; by state its sources, and the weights
    from there. What flows out of it all is made what flows in after each."""
    n, entering = x.size, flow.sum()
    for sweep in range(count):
        leaving = 0.0
        for i in range(n):
            y = i if sweep % 2 == 0 else n - 1 - i
            total = flow[y]
            for k in range(first[y], first[y + 1]):
                total += weights[k] * x[sources[k]]
            x[y] = total / out[y]
        for y in range(n):
            leaving += x[y] * leaves[y]
        if leaving > 0.0:
            x *= entering / leaving


@njit(types.float64(_i1, _i1, _f1, _f1, _f1, _f1, types.boolean), cache=True, nogil=True)
def _residual(first, sources, weights, out, flow, x, lost):
    """The largest |flow + P' x - x| of the states with its rounding (`lost`), or the least of
    x - P' x less its rounding."""
    worst, least = 0.0, np.inf
    for y in range(x.size):
        total = 0.0
        for k in range(first[y], first[y + 1]):
            total += weights[k] * x[sources[k]]
        had = out[y] * x[y]
        rounding = (first[y + 1] - first[y] + 6) * _U * (flow[y] + total + had)
        worst = max(worst, abs(flow[y] + total - had) + rounding)
        least = min(least, had - total - rounding)
    return worst if lost else least


def off_by(
    first: Ints, sources: Ints, weights: Floats, out: Floats, flow: Floats, x: Floats, z: Floats
) -> Floats:
    """How far each of x (n,) may be off, whatever x is, as any z > 0 (n,) proves it; infinity where
    it proves nothing. By state its sources, the weights from there, what goes out and in."""
    slack = _residual(first, sources, weights, out, np.zeros_like(out), z, False)
    if slack <= 0:
        return np.full(len(out), np.inf)
    found: Floats = _residual(first, sources, weights, out, flow, x, True) / slack * z * _ROUND_UP
    return found


def _iterate(
    first: Ints, sources: Ints, weights: Floats, out: Floats, leaves: Floats, flow: Floats
) -> Floats:
    """The visits of a large component, from each state's sources and the weights from there."""
    place = first, sources, weights
    x: Floats = flow + flow.max()
    z, ones = np.ones(len(out)), np.ones(len(out))
    sweeps, more = 0, 50
    while sweeps < MAX_SWEEPS:
        _sweeps(*place, out, leaves, flow, x, more)
        _sweeps(*place, out, leaves, ones, z, more)
        sweeps += more
        more = min(2 * more, 5000)
        if off_by(*place, out, flow, x, z).max() <= CLOSE * x.max():
            return x
    raise StateError(
        f"a play goes round among {len(out)} states for so long that how often it comes to each "
        "can not be found"
    )


def visits(first: Ints, children: NDArray[np.int32], chances: Floats) -> Floats:
    """float64 (n,): how often a chain that begins in state 0 comes to each of its states. Edges as
    in `solver.policy.chain.Chain`: a state without any is over.

    Raises NeverEnds, and StateError where a large component can not be solved closely.
    """
    n = len(first) - 1
    x = np.zeros(n)
    x[0] = 1.0
    order, starts = components(first, children)
    of = np.empty(n, np.int64)
    of[order] = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    part = int(of[0])
    local = np.empty(n, np.int64)
    while True:
        part = _flow(first, children, chances, order, starts, part, x)
        if part < 0:
            return x
        members = order[starts[part] : starts[part + 1]]
        if x[members].any():
            _solve(first, children, chances, members, of, part, local, x)
        part -= 1


def _solve(
    first: Ints, children: NDArray[np.int32], chances: Floats, members: Ints, of: Ints, part: int,
    local: Ints, x: Floats,
) -> None:  # fmt: skip
    """Write the visits of a component's members to x, which holds what flows in, and add what flows
    out of it."""
    members = np.sort(members)
    m = len(members)
    local[members] = np.arange(m)
    counts = first[members + 1] - first[members]
    at = np.repeat(first[members] - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
    owner, child, weight = np.repeat(np.arange(m), counts), children[at], chances[at]
    inside = of[child] == part
    if inside.all():
        raise NeverEnds(int(members[0]))
    leaves: Floats = np.bincount(owner[~inside], weight[~inside], m).astype(np.float64)
    moves = inside & (child != members[owner])
    source, target, along = owner[moves], local[child[moves]], weight[moves]
    flow = x[members]
    if m <= MAX_DENSE:
        weights = np.zeros((m, m))
        np.add.at(weights, (source, target), along)
        _eliminate(weights, leaves.copy(), flow)
    else:
        order = np.argsort(target, kind="stable")
        begins = np.searchsorted(target[order], np.arange(m + 1))
        out: Floats = leaves + np.bincount(source, along, m).astype(np.float64)
        flow = _iterate(begins, source[order], along[order], out, leaves, flow)
    x[members] = flow
    np.add.at(x, child[~inside], flow[owner[~inside]] * weight[~inside])
