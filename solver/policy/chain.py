"""A profile of policies turns a game into a Markov chain: the states it comes to, and the chances.

Only what the profile can come to from some roots is expanded: an action that a policy never takes
leads nowhere. Where both players choose at once the chances of their choices are multiplied.

**How often** a chain comes to each state before it ends, however long that takes (`visits`). With P
the chances of going from one state to another and e the state in which it begins::

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

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from luckbase.solver.errors import SearchLimitError, StateError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.game import Game
from luckbase.solver.game.rules import CHANCE, DECISION, JOINT, SIMULTANEOUS
from luckbase.solver.njit import njit
from luckbase.solver.search.bellman import JOINTLY, MIXED, action_starts
from luckbase.solver.search.depth_first import Fixed
from luckbase.solver.search.expand import expand
from luckbase.solver.search.keys import Keys, Numbering, pack_all, unpack_all
from luckbase.solver.search.stage_kernels import Walk, order_states

Decider = Callable[[Game, int, Ints, list[Ints]], list[Floats]]
"""decide(game, player, states (k, fields), actions of each) -> chances of each."""

PIECE = 20_000
"""States expanded at a time."""
MAX_STATES = 20_000_000


@dataclass(frozen=True)
class Chain:
    """What a profile can come to from a root: n states, the root first, m edges.

    keys: uint64 (n,). first: int64 (n + 1,), state x has edges first[x] .. first[x + 1], none where
    the game is over. children: int32 (m,). chances: float64 (m,), positive, summing to 1 a state
    (where a player has no policy, to 1 an action). actions: int64 (m,). rewards: float64
    (m, players). payoffs: float64 (n, players), of states that are over, else 0. actors: int64
    (n,), who decides, -1 where nobody does, JOINTLY where both do.
    fixed: the chances of the states' actions where they are fixed.
    """

    game: Game
    keys: Keys
    first: Ints
    children: NDArray[np.int32]
    chances: Floats
    actions: Ints
    rewards: Floats
    payoffs: Floats
    actors: Ints
    fixed: Fixed

    @property
    def over(self) -> NDArray[np.bool_]:
        """bool (n,): the states that are over."""
        return np.equal(np.diff(self.first), 0)

    @cached_property
    def owners(self) -> Ints:
        """int64 (m,): the state of each edge."""
        return np.repeat(np.arange(len(self.keys)), np.diff(self.first))

    def states(self, numbers: Ints) -> Ints:
        """The states (k, fields) of numbers (k,)."""
        found: Ints = unpack_all(self.game.bits, np.ascontiguousarray(self.keys[numbers]))
        return found

    def reach(self) -> Floats:
        """float64 (n,): how often a play from state 0 comes to each state; a chance where there are
        no cycles.

        Raises StateError where plays do not end.
        """
        try:
            return visits(self.first, self.children, self.chances)
        except NeverEnds as error:
            state = self.game.describe(self.states(np.array([error.number]))[0])
            raise StateError(
                f"with these agents a play may never end: once at {state} it goes round for ever"
            ) from None


Piece = tuple[Any, ...]
"""Of some states: their counts of edges; children (numbers), chances, actions, rewards, by edge;
payoffs, actors, counts of fixed actions by state; their chances and acts; takers by state."""


def expand_profile(
    game: Game, keys: Keys, deciders: Sequence[Decider | None], numbering: Numbering
) -> Piece:
    """Where a profile goes from the states with these keys; children get their numbers."""
    states = unpack_all(game.bits, keys)
    edges = expand(game, states)
    owner, at = action_starts(edges)
    group = np.searchsorted(at, np.arange(len(owner)), side="right") - 1
    chosen = np.ones(len(at))
    fixed = np.zeros(len(states), bool)
    bounds = np.searchsorted(owner[at], np.arange(len(states) + 1))
    several = np.diff(bounds) > 1
    actors = np.where(edges.kinds == DECISION, edges.actors, -1)
    for player, decide in enumerate(deciders):
        mine = np.flatnonzero(several & (actors == player))
        if decide is None or not len(mine):
            continue
        listed = [edges.actions[at[bounds[x] : bounds[x + 1]]] for x in mine]
        for x, taken in zip(mine, decide(game, player, states[mine], listed), strict=True):
            chosen[bounds[x] : bounds[x + 1]] = taken
        fixed[mine] = True
    acts, takers = np.full(len(at), MIXED), np.full(len(states), -1)
    both = np.flatnonzero(edges.kinds == SIMULTANEOUS)
    if len(both):
        places = [(int(x), slice(bounds[x], bounds[x + 1])) for x in both]
        _fix_jointly(game, deciders, states, places, edges.actions[at], chosen, acts, takers)
        fixed[both] = [d is not None for d in deciders[:2]].count(True) > 0
    over = edges.terminal
    nobody = (edges.kinds == CHANCE) & (edges.actors < 0)
    actions = np.where(nobody[owner], -1, edges.actions)  # chance takes none that a player has
    weights: Floats = edges.weights * chosen[group]
    kept = (weights > 0) & ~over[owner]
    payoffs = np.zeros((len(states), game.players))
    payoffs[over] = edges.rewards[edges.first[:-1][over]]
    children = numbering.enter(pack_all(game.bits, np.ascontiguousarray(edges.children[kept])))
    counts = np.bincount(owner[kept], minlength=len(states))
    part_of = fixed[owner[at]]
    deciding = np.where(edges.kinds == SIMULTANEOUS, JOINTLY, actors)
    return (
        counts, children, weights[kept], actions[kept], edges.rewards[kept], payoffs,
        np.where(several, deciding, -1), np.where(fixed, np.diff(bounds), 0),
        chosen[part_of], acts[part_of], takers,
    )  # fmt: skip


def walk_profile(
    game: Game, roots: Ints, deciders: Sequence[Decider | None], max_states: int = MAX_STATES
) -> Iterator[tuple[Keys, Piece]]:
    """`explore_profile` a piece at a time: the keys of some new states, and where they lead."""
    numbering, done = Numbering(), 0
    roots = np.ascontiguousarray(roots).reshape(-1, game.field_count)
    numbering.enter(pack_all(game.bits, roots))
    while done < numbering.count:
        if numbering.count > max_states:
            raise SearchLimitError(
                f"these agents can come to more than {max_states} states; give fewer, or a state "
                "nearer the end"
            )
        keys = numbering.keys_at(np.arange(done, min(done + PIECE, numbering.count)))
        done += len(keys)
        yield keys, expand_profile(game, keys, deciders, numbering)


def explore_profile(
    game: Game, roots: Ints, deciders: Sequence[Decider | None], max_states: int = MAX_STATES
) -> Chain:
    """What a profile can come to from one root (fields,) or several (k, fields), which are the
    first states of the chain; None for a player who maximises.

    Raises SearchLimitError, OptionError as `asking`.
    """
    walked, parts = zip(*walk_profile(game, roots, deciders, max_states), strict=True)
    keys = np.concatenate(walked)
    counts, children, chances, actions, rewards, payoffs, actors, sizes, policy, acts, takers = (
        np.concatenate(column) for column in zip(*parts, strict=True)
    )
    first, policy_first = (np.concatenate([[0], np.cumsum(c)]) for c in (counts, sizes))
    return Chain(
        game, keys, first, children, chances, actions, rewards, payoffs, actors,
        Fixed(keys, policy_first, policy, acts, takers),
    )  # fmt: skip


def _fix_jointly(
    game: Game, deciders: Sequence[Decider | None], states: Ints,
    places: list[tuple[int, slice]], actions: Ints, chosen: Floats, acts: Ints, takers: Ints,
) -> None:  # fmt: skip
    """Write the chances of the joint actions at simultaneous states, `places` being their numbers
    and where their actions stand: products of the two players', or one's where the other maximises;
    and then to which of their actions each belongs."""
    row, column = np.divmod(actions, JOINT)
    both = [x for x, _ in places]
    sides = []
    for _, g in places:  # every pair is there, rows slowest
        across = int((row[g] == row[g.start]).sum())
        sides.append((row[g][::across], column[g.start : g.start + across]))
    fixed = [
        None if decide is None else decide(game, player, states[both], [s[player] for s in sides])
        for player, decide in enumerate(deciders[:2])
    ]
    for i, (x, g) in enumerate(places):
        rows, columns = (np.ones(len(side)) for side in sides[i])
        if fixed[0] is not None:
            rows = fixed[0][i]
        if fixed[1] is not None:
            columns = fixed[1][i]
        chosen[g] = np.outer(rows, columns).ravel()
        if (fixed[0] is None) != (fixed[1] is None):
            taker = 0 if fixed[0] is None else 1
            takers[x] = taker
            acts[g] = row[g] if taker == 0 else column[g]


# --- how often it comes to each state -------------------------------------------------------

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


@njit(types.void(_i1, _i4, _f1, _i4, _f1), cache=True, nogil=True)
def _flow(first, children, chances, order, x):
    """Of states in order, children first, none of which comes back, add what flows on to `x`, which
    holds what flows in."""
    for place in range(order.size - 1, -1, -1):
        y = order[place]
        if x[y] > 0.0:
            for k in range(first[y], first[y + 1]):
                x[children[k]] += x[y] * chances[k]


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
    order, starts, local = np.empty(n, np.int32), np.empty(2 * n, np.int32), np.full(n, -1)
    walk = Walk(*(np.empty(n, np.int32) for _ in range(5)))
    loops = order_states(first, children, np.arange(n, dtype=np.int32), order, starts, walk)
    end = n
    for start, size in starts[: 2 * loops].reshape(-1, 2)[::-1].tolist():
        _flow(first, children, chances, order[start + size : end], x)
        members, end = np.sort(order[start : start + size]).astype(np.int64), start
        if x[members].any():
            _pass_on(first, children, chances, members, local, x)
    _flow(first, children, chances, order[:end], x)
    return x


def _pass_on(
    first: Ints, children: NDArray[np.int32], chances: Floats, members: Ints, local: Ints, x: Floats
) -> None:
    """Write the visits of a component's members to x, which holds what flows in, and add what flows
    out of it. local: (n,), -1 everywhere."""
    m = len(members)
    local[members] = np.arange(m)
    counts = first[members + 1] - first[members]
    at = np.repeat(first[members] - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
    owner, child, weight = np.repeat(np.arange(m), counts), children[at], chances[at]
    place = local[child]
    local[members] = -1
    inside = place >= 0
    if inside.all():
        raise NeverEnds(int(members[0]))
    leaves: Floats = np.bincount(owner[~inside], weight[~inside], m).astype(np.float64)
    moves = inside & (place != owner)
    source, target, along = owner[moves], place[moves], weight[moves]
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
