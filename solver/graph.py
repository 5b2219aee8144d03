"""The graph of states below some roots: expanded, merged by key, solved backwards. Any game.

For roots R and a set K of states whose payoffs are known (a table's), the graph G is the least set
with R in G and, for each state of G that is neither over nor in K, all its successors in G.

1. **Explore**, breadth first: unpack a key, call the game's successor function, pack the children,
   look each up in an open-addressing hash table (linear probing, multiplicative hashing, at most
   half full); a new one gets the next number. Kept a state: its key; an edge: the child's number.
2. **Order**: Tarjan's algorithm, iterative; it gives the strongly connected components, children
   first.
3. **Back up** in that order by the Bellman equation (`solver.backup`). In a component of several
   states (or with an edge to itself) nothing may be chosen: there the equations are linear and
   solved exactly. A component with a choice in it is refused, naming a state.

About 24 bytes a state, 8 for its place in the hash table, 8 a player and 4 an edge.

Source: Tarjan, Depth-first search and linear graph algorithms (1972); Knuth, TAOCP 3, 6.4.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numba as nb
import numpy as np
from numba import types
from numpy.typing import NDArray

from solver.errors import SearchLimitError, StateError
from solver.game import SUCCESSORS_TYPE, TERMINAL, Floats, Game, Ints
from solver.keys import fits, pack, unpack, unpack_all

Keys = NDArray[np.uint64]

_game = types.FunctionType(SUCCESSORS_TYPE)
_i1, _f1, _f2, _u1 = types.int64[::1], types.float64[::1], types.float64[:, ::1], types.uint64[::1]
_counts = types.UniTuple(types.int64, 3)  # type: ignore[no-untyped-call]
_n1, _b1 = types.int32[::1], types.uint8[::1]

INNER, KNOWN, OVER = 0, 1, 2


@nb.njit(types.int64(_n1, _u1, types.uint64), cache=True, nogil=True)
def _find(slots, keys, key):  # type: ignore[no-untyped-def]
    """The slot of `key`, or the empty one where it belongs."""
    mask = slots.size - 1
    mixed = (key ^ (key >> np.uint64(32))) * np.uint64(0x9E3779B97F4A7C15)  # scores are on top
    slot = np.int64((mixed ^ (mixed >> np.uint64(32))) & np.uint64(mask))
    while slots[slot] >= 0 and keys[slots[slot]] != key:
        slot = (slot + 1) & mask
    return slot


@nb.njit(types.void(_n1, _u1, types.int64), cache=True, nogil=True)
def _rehash(slots, keys, count):  # type: ignore[no-untyped-def]
    for i in range(count):
        slots[_find(slots, keys, keys[i])] = i


@nb.njit(
    _counts(
        _game, _i1, _f1, _i1, types.int64, types.int64, types.int64, types.int64,
        types.int64, types.int64, _u1, _n1, _b1, _i1, _n1,
    ),
    cache=True,
    nogil=True,
)  # fmt: skip
def _explore(  # type: ignore[no-untyped-def]
    successors, ints, reals, bits, players, max_edges, start, stop,
    count, edge, keys, slots, kinds, first, children,
):  # fmt: skip
    """Expand states start .. stop - 1; returns (next to expand, states, edges).

    Stops early where the arrays may not have room for one more state's successors.
    """
    fields = bits.size
    state = np.empty(fields, np.int64)
    below = np.empty((max_edges, fields), np.int64)
    weights, actions = np.empty(max_edges), np.empty(max_edges, np.int64)
    rewards, about = np.empty((max_edges, players)), np.zeros(2, np.int64)
    i = start
    while i < stop:
        if count + max_edges > keys.size or edge + max_edges > children.size:
            break
        first[i] = edge
        if kinds[i] == INNER:
            unpack(bits, keys[i], state)
            n = successors(ints, reals, state, below, weights, actions, rewards, about)
            if about[0] == TERMINAL:
                kinds[i] = OVER
            for k in range(n):
                key = pack(bits, below[k])
                slot = _find(slots, keys, key)
                if slots[slot] < 0:
                    slots[slot] = count
                    keys[count] = key
                    kinds[count] = INNER
                    count += 1
                children[edge] = slots[slot]
                edge += 1
        i += 1
        first[i] = edge
    return i, count, edge


@nb.njit(types.int64(types.int64, _i1, _n1, _n1, _i1), cache=True, nogil=True)
def _components(count, first, children, order, starts):  # type: ignore[no-untyped-def]
    """Tarjan: states by component, children first, into `order`; component c is
    order[starts[c]] .. order[starts[c + 1] - 1]. Returns the number of components."""
    index = np.full(count, -1, np.int32)
    low = np.empty(count, np.int32)
    on_stack = np.zeros(count, np.uint8)
    stack = np.empty(count, np.int32)
    path = np.empty(count, np.int32)
    edge = first[:count].copy()
    clock, height, placed, found = 0, 0, 0, 0
    for root in range(count):
        if index[root] >= 0:
            continue
        depth = 0
        path[0] = root
        index[root] = low[root] = clock
        clock += 1
        stack[height] = root
        height += 1
        on_stack[root] = 1
        while depth >= 0:
            x = path[depth]
            if edge[x] < first[x + 1]:
                y = children[edge[x]]
                edge[x] += 1
                if index[y] < 0:
                    index[y] = low[y] = clock
                    clock += 1
                    stack[height] = y
                    height += 1
                    on_stack[y] = 1
                    depth += 1
                    path[depth] = y
                elif on_stack[y] and index[y] < low[x]:
                    low[x] = index[y]
                continue
            depth -= 1
            if depth >= 0 and low[x] < low[path[depth]]:
                low[path[depth]] = low[x]
            if low[x] == index[x]:
                starts[found] = placed
                found += 1
                while True:
                    height -= 1
                    y = stack[height]
                    on_stack[y] = 0
                    order[placed] = y
                    placed += 1
                    if y == x:
                        break
    starts[found] = placed
    return found


@nb.njit(
    types.int64(
        _game, _i1, _f1, _i1, types.int64, types.float64, types.int64, types.int64,
        _u1, _b1, _i1, _n1, _n1, _i1, _f2,
    ),
    cache=True,
    nogil=True,
)  # fmt: skip
def _back_up(  # type: ignore[no-untyped-def]
    successors, ints, reals, bits, max_edges, tolerance, component, components,
    keys, kinds, first, children, order, starts, values,
):  # fmt: skip
    """Solve single-state components from `component` on; returns the first that is a loop."""
    fields, players = bits.size, values.shape[1]
    state = np.empty(fields, np.int64)
    below = np.empty((max_edges, fields), np.int64)
    weights, actions = np.empty(max_edges), np.empty(max_edges, np.int64)
    rewards, about = np.empty((max_edges, players)), np.zeros(2, np.int64)
    q, best = np.empty(players), np.empty(players)
    while component < components:
        if starts[component + 1] - starts[component] > 1:
            return component
        x = order[starts[component]]
        if kinds[x] != KNOWN:
            unpack(bits, keys[x], state)
            n = successors(ints, reals, state, below, weights, actions, rewards, about)
            if kinds[x] == OVER:
                values[x] = rewards[0]
            k, seen = 0, False
            while k < n:
                action = actions[k]
                q[:] = 0.0
                while k < n and actions[k] == action:
                    y = children[first[x] + k]
                    if y == x:
                        return component
                    for p in range(players):
                        q[p] += weights[k] * (rewards[k, p] + values[y, p])
                    k += 1
                if not seen or q[about[1]] > best[about[1]] + tolerance:
                    best[:] = q
                    seen = True
            if seen:
                values[x] = best
        component += 1
    return component


@dataclass(frozen=True)
class Solved:
    """A solved graph: n states, m edges.

    keys: uint64 (n,), the roots first. values: float64 (n, players). edges: m. known: how many
    payoffs were given. loops: components of several states, solved as linear systems.
    bytes_a_state: of all arrays together.
    """

    keys: Keys
    values: Floats
    edges: int
    known: int
    loops: int
    bytes_a_state: float


def solve_graph(
    game: Game,
    roots: Ints,
    *,
    known: Callable[[Ints], NDArray[np.bool_]] | None = None,
    payoffs: Callable[[Ints], Floats] | None = None,
    tolerance: float | None = None,
    max_states: int = 100_000_000,
) -> Solved:
    """The payoffs of roots (n, fields, canonical, all different) and of all below them.

    known: of states (k, fields), which need not be expanded, because `payoffs` gives theirs
    (k, players). tolerance: of ties, the game's if not given.

    Raises SearchLimitError beyond `max_states`, StateError for a root that has no key and for a
    loop with a choice in it.
    """
    bits = game.bits
    wrong = ~fits(bits, roots)
    if wrong.any():
        raise StateError(f"{game.describe(roots[wrong][0])} has numbers too large to search")
    room = 1 << 16
    keys, kinds = np.empty(room, np.uint64), np.zeros(room, np.uint8)
    first, children = np.zeros(room + 1, np.int64), np.empty(16 * room, np.int32)
    slots = np.full(2 * room, -1, np.int32)
    count = len(roots)
    keys[:count] = [pack(bits, root) for root in roots]
    _rehash(slots, keys, count)
    done = edge = seen = 0
    while done < count:
        if known is not None and seen < count:
            for part in range(seen, count, 1 << 16):
                stop = min(count, part + (1 << 16))
                held = known(unpack_all(bits, keys[part:stop]))
                kinds[part:stop][held] = KNOWN
        seen = count
        done, count, edge = _explore(
            game.successors, game.numbers.ints, game.numbers.reals, bits, game.players,
            game.max_edges, done, seen, count, edge, keys, slots, kinds, first, children,
        )  # fmt: skip
        if count > max_states:
            raise SearchLimitError(
                f"the search has met {count} states and {count - done} of them are still to "
                f"expand; the limit is {max_states}"
            )
        if count + game.max_edges > len(keys):
            room = 2 * len(keys)
            keys, kinds = _grown(keys, room), _grown(kinds, room)
            first = _grown(first, room + 1)
            slots = np.full(2 * room, -1, np.int32)
            _rehash(slots, keys, count)
        if edge + game.max_edges > len(children):
            children = _grown(children, 2 * len(children))
        if done < seen and known is not None:
            seen = max(done, seen)
    values = np.zeros((count, game.players))
    at = np.flatnonzero(kinds[:count] == KNOWN)
    if payoffs is not None:
        for part in range(0, len(at), 1 << 18):
            these = at[part : part + (1 << 18)]
            values[these] = payoffs(unpack_all(bits, keys[these]))
    order, starts = np.empty(count, np.int32), np.empty(count + 1, np.int64)
    del slots
    components = _components(count, first, children, order, starts)
    component = loops = 0
    while True:
        component = _back_up(
            game.successors, game.numbers.ints, game.numbers.reals, bits, game.max_edges,
            game.tie_tolerance if tolerance is None else tolerance, component, components,
            keys, kinds, first, children, order, starts, values,
        )  # fmt: skip
        if component == components:
            break
        members = order[starts[component] : starts[component + 1]]
        _solve_loop(game, members, keys, first, children, values)
        loops += 1
        component += 1
    arrays = (keys, kinds, first, children, values, order, starts)
    held_bytes = sum(array.nbytes for array in arrays) + 8 * len(keys)  # and the hash table
    return Solved(keys[:count], values, edge, len(at), loops, held_bytes / max(count, 1))


def _grown(array: NDArray, room: int) -> NDArray:  # type: ignore[type-arg]
    bigger = np.zeros(room, array.dtype)
    bigger[: len(array)] = array
    return bigger


def _solve_loop(
    game: Game, members: NDArray[np.int32], keys: Keys, first: Ints, children: NDArray[np.int32],
    values: Floats,
) -> None:  # fmt: skip
    """A component in which nothing is chosen: (I - P) v = r, solved densely; fills `values`."""
    from solver.backup import expand

    states = unpack_all(game.bits, keys[members])
    edges = expand(game, states)
    place = {int(x): i for i, x in enumerate(members)}
    matrix = np.eye(len(members))
    constant = np.zeros((len(members), game.players))
    for i, x in enumerate(members):
        here = slice(int(edges.first[i]), int(edges.first[i + 1]))
        if len(np.unique(edges.actions[here])) > 1:
            raise StateError(
                f"{game.describe(states[i])} lies on a cycle with a choice in it; the search "
                "solves cycles without choices only"
            )
        below = children[first[x] : first[x + 1]]
        for k, y in enumerate(below):
            weight = edges.weights[here][k]
            constant[i] += weight * edges.rewards[here][k]
            if int(y) in place:
                matrix[i, place[int(y)]] -= weight
            else:
                constant[i] += weight * values[y]
    values[members] = np.linalg.solve(matrix, constant)
