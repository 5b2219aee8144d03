"""The compiled part of `solver.search.find_stages`: a stage's states are found and ordered.

Each is one pass over arrays that are borrowed (`solver.search.expand.borrowed`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.compiled import borrowed, fetch, njit, tuple_type, types
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.rules import NUMBERS_TYPE, SIMULTANEOUS, TERMINAL, TRANSITION
from luckbase.solver.search.bellman import JOINTLY
from luckbase.solver.search.expand import ROOM_TYPE, borrowed_room, expand_one, inlined
from luckbase.solver.search.keys import find_from, hash_of, may_be, pack, rises, unpack, word_of

FINISHED, GROW, PAUSE, REFUSED, RISES = range(5)
"""Why a pass stops."""
NEXT, COUNT, STATES, EDGES, PATTERNS, PATTERN_EDGES, WRONG, OWN, UNTIL = range(9)
"""Where expanding keeps its place: the number of the next state to expand, states reached,
states expanded, edges, patterns and their edges; the state whose edge rises; how many
of those reached are of the stage; the number before which states may be expanded."""
BATCH = 16
"""States that are expanded before their children are looked up, all of them together."""
LEAF = -3
"""Instead of who acts: nobody, the game is over."""
BOUNDARY = -1
"""Instead of a pattern: the state's payoffs are known."""
AHEAD = 8
"""So many states before it is processed, a state's rows are fetched: memory takes that long."""
_i, _u, _i1, _f1 = types.int64, types.uint64, types.int64[::1], types.float64[::1]
_n1, _u1 = types.int32[::1], types.uint64[::1]
_u2, _f2, _i2 = types.uint64[:, ::1], types.float64[:, ::1], types.int64[:, ::1]


class Place(NamedTuple):
    """Which states are searched: those of one level, and of a box of it.

    table: of the words of the level and of `apart`; the first from bit `shift` on, to be divided by
    width. strict: whether every edge lowers the level, 0 or 1. inside, guards: of the words that
    lie lane by lane between low and high in the box; cut: whether there is one, 0 or 1.
    """

    table: NDArray[np.uint64]
    inside: NDArray[np.uint64]
    shift: np.uint64
    width: np.uint64
    level: np.uint64
    guards: np.uint64
    low: np.uint64
    high: np.uint64
    strict: int
    cut: int


class Nodes(NamedTuple):
    """The states reached, by number: slots, keys as `solver.search.keys`; outside: uint8 (room,),
    whether each is of another stage."""

    slots: NDArray[np.int32]
    keys: NDArray[np.uint64]
    outside: NDArray[np.uint8]


class Records(NamedTuple):
    """The states expanded, in the order in which they were reached: patterns: int32 (states,);
    children: int32 (edges,), the numbers of their children."""

    patterns: NDArray[np.int32]
    children: NDArray[np.int32]


class Patterns(NamedTuple):
    """What states have in common: who acts, and the weights, actions and rewards of the edges.

    slots: int32 (a power of two,), a hash table of them; hashes: uint64 (room,). first: int64
    (room + 1,). actors: int64 (room,), from 0, -1 for nobody, JOINTLY, LEAF. weights: float64,
    actions: int64 (edges,), rewards: float64 (edges, players), or (0, players) where nothing is
    paid. payoffs: float64 (room, players), of states that are over.
    """

    slots: NDArray[np.int32]
    hashes: NDArray[np.uint64]
    first: Ints
    actors: Ints
    weights: Floats
    actions: Ints
    rewards: Floats
    payoffs: Floats


_place = tuple_type(Place, _u2, _u2, _u, _u, _u, _u, _u, _u, _i, _i)
_nodes = tuple_type(Nodes, _n1, _u2, types.uint8[::1])
_records = tuple_type(Records, _n1, _n1)
PATTERNS_TYPE = tuple_type(Patterns, _n1, _u1, _i1, _i1, _f1, _i1, _f2, _f2)


@inlined
def _level_of(place, word):
    level = word >> place.shift
    return level if place.width == np.uint64(1) else level // place.width


@inlined
def _is_of(place, above, key):
    """1 where the state is of the level and the box, 0 where it is not, -1 where no edge may lead
    there from a state whose word is `above`."""
    word = word_of(place.table, key)
    level = _level_of(place, word)
    if level != place.level:
        return -1 if level > place.level else 0
    if place.strict != 0 or (word ^ above) & ((np.uint64(1) << place.shift) - np.uint64(1)):
        return -1
    if place.cut == 0:
        return 1
    within = word_of(place.inside, key)
    if rises(place.high, within, place.guards):
        return -1
    return 0 if rises(within, place.low, place.guards) else 1


@inlined
def _mix(hashed, number):
    return (hashed ^ number) * np.uint64(0x9E3779B97F4A7C15)


@inlined
def _same(patterns, p, actor, edges, pattern_bits):
    """Whether pattern p is that of the edges: (how many, weights, actions, rewards), all as bits,
    as are the patterns' weights, rewards and payoffs, `pattern_bits`: 0.0 and -0.0 differ. All are
    compared, without a branch: that is faster."""
    n, weights, actions, rewards = edges
    shared, paid, final = pattern_bits
    first = patterns.first[p]
    if patterns.first[p + 1] - first != n or patterns.actors[p] != actor:
        return False
    differs = np.uint64(0)
    for k in range(n):
        differs |= shared[first + k] ^ weights[k]
        differs |= np.uint64(patterns.actions[first + k] ^ actions[k])
    if differs:
        return False
    same = True
    if patterns.rewards.shape[0] > 0:
        for k in range(n):
            for i in range(rewards.shape[1]):
                same = same and paid[first + k, i] == rewards[k, i]
    if n == 0:
        for i in range(rewards.shape[1]):
            same = same and final[p, i] == rewards[0, i]
    return same


@njit(
    _i(
        TRANSITION, NUMBERS_TYPE, ROOM_TYPE, _i2, _place, _nodes, _records, PATTERNS_TYPE, _u1, _i1,
        _i, _i,
    ),
)  # fmt: skip
def expand_on(  # noqa: C901, PLR0913, PLR0915  # one piece, for speed, as `game_graph.search`
    transition, board, room, strides, place, nodes, records, patterns, known, at, budget, limit
):
    """Expand the states reached that are of the stage, and enter their children, until none is left
    before number at[UNTIL] or there is something to do first:

    GROW: something may not have room; PAUSE: `budget` states were expanded, or more than `limit` of
    the stage reached; REFUSED: the edges of the state room.at break the rules; RISES: an edge of
    the state at[WRONG] leads where the level says that none does. Those whose keys are in `known`,
    ascending, are not expanded.
    """
    room, strides = borrowed_room(room), borrowed(strides)
    place = Place(
        borrowed(place.table), borrowed(place.inside), place.shift, place.width, place.level,
        place.guards, place.low, place.high, place.strict, place.cut,
    )  # fmt: skip
    out = room.edges
    below, chances, chosen, paid, about = out
    slots, keys, outside = borrowed(nodes.slots), borrowed(nodes.keys), borrowed(nodes.outside)
    pattern_of, children = borrowed(records.patterns), borrowed(records.children)
    heads, hashes = borrowed(patterns.slots), borrowed(patterns.hashes)
    shared = Patterns(
        heads, hashes, borrowed(patterns.first), borrowed(patterns.actors),
        borrowed(patterns.weights), borrowed(patterns.actions), borrowed(patterns.rewards),
        borrowed(patterns.payoffs),
    )  # fmt: skip
    shared_bits = (
        borrowed(patterns.weights).view(np.uint64), borrowed(patterns.rewards).view(np.uint64),
        borrowed(patterns.payoffs).view(np.uint64),
    )  # fmt: skip
    weight_bits, reward_bits = borrowed(chances.view(np.uint64)), borrowed(paid.view(np.uint64))
    paid_bits = borrowed(paid.reshape(-1)).view(np.uint64)
    upcoming, count, states, edges = at[NEXT], at[COUNT], at[STATES], at[EDGES]
    kinds, kept, own_count, until = at[PATTERNS], at[PATTERN_EDGES], at[OWN], at[UNTIL]
    max_edges, mask, players = below.shape[0], slots.size - 1, paid.shape[1]
    pays, kind_mask = shared.rewards.shape[0] > 0, heads.size - 1
    state = np.empty(strides.shape[1], np.int64)
    batch_edges = BATCH * max_edges
    child_keys, row_keys = np.empty(batch_edges, np.uint64), np.empty(batch_edges, np.uint64)
    spot, number = np.empty(batch_edges, np.int64), np.empty(batch_edges, np.int64)
    hashed, number_bits = np.empty(batch_edges, np.int64), mask >> 1
    whose, above = np.empty(BATCH, np.int64), np.empty(BATCH, np.uint64)
    last, recent = np.empty(BATCH, np.int64), np.full(64, -1, np.int64)
    code = FINISHED
    while code == FINISHED and upcoming < min(count, until):
        full = count + batch_edges > keys.shape[0] or edges + batch_edges > children.size
        full = full or states + BATCH > pattern_of.size or kinds + BATCH >= shared.actors.size
        if full or 2 * (kinds + BATCH) >= heads.size or kept + batch_edges > shared.weights.size:
            code = GROW
            break
        if budget <= 0 or own_count > limit:
            code = PAUSE
            break
        members, m = 0, 0
        while members < BATCH and upcoming < min(count, until):
            if outside[upcoming]:
                upcoming += 1
                continue
            key = keys[upcoming, 0]
            whose[members], above[members] = upcoming, word_of(place.table, key)
            if known.size:
                x = np.searchsorted(known, key)
                if x < known.size and known[x] == key:
                    pattern_of[states + members] = BOUNDARY
                    last[members] = m
                    members, upcoming = members + 1, upcoming + 1
                    continue
            unpack(strides, key, state)
            n = expand_one(transition, board, state, out, room)
            if n < 0:
                code = REFUSED
                break
            actor = about[1]
            if about[0] == TERMINAL:
                actor, n = LEAF, 0
            elif about[0] == SIMULTANEOUS:
                actor = JOINTLY
            for k in range(n):
                child_keys[m + k] = pack(strides, below[k])
                hashed[m + k] = hash_of(child_keys[m + k])
                fetch(slots, hashed[m + k] & mask)
            these = n, weight_bits, chosen, reward_bits
            guess = recent[(4 * n + actor) & 63]
            if guess < 0 or not _same(shared, guess, actor, these, shared_bits):
                mixed = _mix(np.uint64(n), np.uint64(actor + 8))
                for k in range(n):
                    mixed = _mix(mixed, weight_bits[k] ^ (np.uint64(chosen[k]) << np.uint64(1)))
                    mixed ^= mixed >> np.uint64(29)
                if pays or n == 0:
                    for k in range(max(n, 1) * players):
                        mixed = _mix(mixed, paid_bits[k])
                        mixed ^= mixed >> np.uint64(29)
                slot = np.int64(mixed & np.uint64(kind_mask))
                while heads[slot] >= 0:
                    p = heads[slot]
                    if hashes[p] == mixed and _same(shared, p, actor, these, shared_bits):
                        break
                    slot = (slot + 1) & kind_mask
                guess = heads[slot]
                if guess < 0:
                    guess = kinds
                    heads[slot], hashes[kinds], shared.actors[kinds] = kinds, mixed, actor
                    for k in range(n):
                        shared.weights[kept + k], shared.actions[kept + k] = chances[k], chosen[k]
                        if pays:
                            for i in range(players):
                                shared.rewards[kept + k, i] = paid[k, i]
                    if n == 0:
                        for i in range(players):
                            shared.payoffs[kinds, i] = paid[0, i]
                    kept, kinds = kept + n, kinds + 1
                    shared.first[kinds] = kept
                recent[(4 * n + actor) & 63] = guess
            pattern_of[states + members] = guess
            if n == 0:
                for i in range(players):
                    paid[0, i] = 0.0
            m += n
            last[members] = m
            members, upcoming = members + 1, upcoming + 1
        # Short loops over all their children, so that many cache misses are under way at once.
        for k in range(m):
            spot[k] = may_be(slots, hashed[k], hashed[k] & mask)
            entry = slots[spot[k]]
            number[k] = entry & number_bits if entry >= 0 else -1
            fetch(keys, max(number[k], 0))
        for k in range(m):
            row_keys[k] = keys[max(number[k], 0), 0]
        k = 0
        for j in range(members):
            while k < last[j]:
                z = number[k]
                if z < 0 or row_keys[k] != child_keys[k]:
                    slot = find_from(slots, keys, child_keys[k], hashed[k], spot[k])
                    if slots[slot] < 0:
                        inside = _is_of(place, above[j], child_keys[k])
                        if inside < 0:
                            code, at[WRONG] = RISES, whose[j]
                            break
                        slots[slot] = hashed[k] & ~number_bits | count
                        keys[count, 0] = child_keys[k]
                        outside[count] = 1 - inside
                        count, own_count = count + 1, own_count + inside
                    z = slots[slot] & number_bits
                children[edges + k] = z
                k += 1
            if code == RISES:
                break
        states, edges, budget = states + members, edges + m, budget - members
    at[NEXT], at[COUNT], at[STATES], at[EDGES] = upcoming, count, states, edges
    at[PATTERNS], at[PATTERN_EDGES], at[OWN] = kinds, kept, own_count
    return code


class Expanded(NamedTuple):
    """States that were reached, divided among boxes: keys (reached, 1); box: int32 (reached,), that
    of each, -1 for none. numbers, patterns: int32 (n,), of those that were expanded; first:
    int64 (n + 1,), children: int32 (edges,), as of an `Order`."""

    keys: NDArray[np.uint64]
    box: NDArray[np.int32]
    numbers: NDArray[np.int32]
    patterns: NDArray[np.int32]
    first: Ints
    children: NDArray[np.int32]


_expanded = tuple_type(Expanded, _u2, _n1, _n1, _n1, _i1, _n1)


@njit(_i(_expanded, _i, _i1, _i1, _n1, _u2, _records))
def divide(before, number, own, rows, numbers, keys, records):
    """Write the states of a box, by its number, as they are numbered by themselves; returns how
    many there are, or -1 less the number among those reached of a state that leads to a box before
    it.

    own: int64, its states among those that were reached, ascending; rows: int64, its states among
    those that were expanded. numbers: int32 (reached,), -1 everywhere; keys: (reached, 1), written:
    first its states, then the others that they lead to. records: written, with room.
    """
    count = own.size
    for i in range(count):
        numbers[own[i]] = i
        keys[i, 0] = before.keys[own[i], 0]
    at = 0
    for i in range(rows.size):
        x = rows[i]
        records.patterns[i] = before.patterns[x]
        for k in range(before.first[x], before.first[x + 1]):
            child = before.children[k]
            if numbers[child] < 0:
                if 0 <= before.box[child] < number:
                    return -1 - before.numbers[x]
                numbers[child] = count
                keys[count, 0] = before.keys[child, 0]
                count += 1
            records.children[at] = numbers[child]
            at += 1
    return count


@njit(types.void(_n1, _u1))
def enter_patterns(slots, hashes):
    """Enter patterns by their hashes into empty slots."""
    mask = slots.size - 1
    for p in range(hashes.size):
        slot = np.int64(hashes[p] & np.uint64(mask))
        while slots[slot] >= 0:
            slot = (slot + 1) & mask
        slots[slot] = p


@njit(types.void(_i1, _n1, _i1))
def first_edges(sizes, patterns, first):
    """Write where the edges of each state begin: first int64 (n + 1,), from the sizes of patterns,
    the last of which, 0, is that of BOUNDARY."""
    k = 0
    for x in range(patterns.size):
        first[x] = k
        k += sizes[patterns[x]]
    first[patterns.size] = k


class Walk(NamedTuple):
    """Scratch of `order_states`, int32 (n,) each: low: 0 where a state was not visited, its
    low-link while its component is open, -1 once that is done; seen: when it was visited; cursor:
    the next of its edges; path, stack: of the depth-first search."""

    low: NDArray[np.int32]
    seen: NDArray[np.int32]
    cursor: NDArray[np.int32]
    path: NDArray[np.int32]
    stack: NDArray[np.int32]


_walk = tuple_type(Walk, _n1, _n1, _n1, _n1, _n1)


@njit(_i(_i1, _n1, _n1, _n1, _walk))
def order_states(first, children, order, starts, walk):  # noqa: C901, PLR0915  # Tarjan's
    """Order n states such that each comes after all its children among them, which are below n,
    but those of its own component; returns how many components have several members or an edge to
    themselves.

    first: int64 (n + 1,), the edges of each. order: int32 (n,), written. starts: int32 (2 n,),
    written: of each such component its place in `order` and its members. Those of the greatest keys
    come first: where what is counted rises, most of the children of a state are done when it is
    visited, and it is done at once. Source: Tarjan (1972).
    """
    low, seen, cursor = borrowed(walk.low), borrowed(walk.seen), borrowed(walk.cursor)
    path, stack = borrowed(walk.path), borrowed(walk.stack)
    children, order = borrowed(children), borrowed(order)
    n, loops, done, clock, tall = first.size - 1, 0, 0, 1, 0
    for x in range(n):
        low[x] = 0
    for root in range(n - 1, -1, -1):
        if low[root] != 0:
            continue
        path[0], height = root, 1
        low[root] = seen[root] = clock
        cursor[root] = 0
        stack[tall] = root
        clock, tall = clock + 1, tall + 1
        while height > 0:
            x = path[height - 1]
            k, stop, itself = first[x] + cursor[x], first[x + 1], False
            below = -1
            while k < stop:
                y = children[k]
                if y < n and low[y] >= 0:
                    if low[y] == 0:
                        below = y
                        break
                    low[x] = min(low[x], seen[y])
                    itself = itself or x == y
                k += 1
            cursor[x] = k - first[x]
            if below >= 0:
                path[height] = stack[tall] = below
                low[below] = seen[below] = clock
                cursor[below] = 0
                clock, tall, height = clock + 1, tall + 1, height + 1
                continue
            height -= 1
            if height > 0:
                above = path[height - 1]
                low[above] = min(low[above], low[x])
            if low[x] == seen[x]:
                begin = done
                while True:
                    tall -= 1
                    y = stack[tall]
                    low[y] = -1
                    order[done] = y
                    done += 1
                    if y == x:
                        break
                if done - begin == 1:
                    for k in range(first[x], stop):
                        itself = itself or children[k] == x
                if done - begin > 1 or itself:
                    starts[2 * loops], starts[2 * loops + 1] = begin, done - begin
                    loops += 1
    return loops


class Order(NamedTuple):
    """The n states of a stage, x from 0, by ascending key. order: int32 (n,), in which they are
    solved. first: int64 (n + 1,), the edges of each. patterns: int32 (n,). children: int32
    (edges,), their numbers."""

    order: NDArray[np.int32]
    first: Ints
    patterns: NDArray[np.int32]
    children: NDArray[np.int32]


ORDER_TYPE = tuple_type(Order, _n1, _i1, _n1, _n1)


@njit(types.void(_n1, _i1, _records, _n1, _records))
def renumber(places, first, records, numbers, renumbered):
    """Write the patterns and children of states, in the order in which they were reached, in that
    of `places` (n,), the children by their new numbers (reached,)."""
    patterns, children = borrowed(records.patterns), borrowed(records.children)
    new_patterns, new_children = borrowed(renumbered.patterns), borrowed(renumbered.children)
    k, n = 0, places.size
    for x in range(n):
        at = places[x]
        if x + AHEAD < n:  # its row, sixteen children, may cross from one cache line to the next
            coming = first[places[x + AHEAD]]
            fetch(children, coming)
            fetch(children, coming + 15)
        if x + 2 * AHEAD < n:
            fetch(first, places[x + 2 * AHEAD])
            fetch(patterns, places[x + 2 * AHEAD])
        new_patterns[x] = patterns[at]
        for j in range(first[at], first[at + 1]):
            new_children[k] = numbers[children[j]]
            k += 1


NEIGHBOURS = 8
"""Bits of the number under which the last state that is alike is remembered (`steps_of`)."""
FAR = -128
"""Instead of a step that a byte does not hold."""
_s1 = types.int8[::1]


@inlined
def _last_alike(rows, key, alike, start, stop):
    """Where the edges begin of the last state that is alike, and up to which of [start, stop) it
    has the same ones; from here on this one is the last."""
    row = np.int64(((key & alike) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(64 - NEIGHBOURS))
    before, same = rows[row, 0], start + min(rows[row, 1], stop - start)
    rows[row, 0], rows[row, 1] = start, stop - start
    return before, same


@inlined
def _child_before(children, start, before, same, k):
    """The child that edge k is a difference to."""
    edge = before + k - start if k < same else k - 1
    return children[edge] if edge >= 0 else 0


@njit(_i(_u1, _u, _i1, _n1, _s1, _n1))
def steps_of(keys, alike, first, children, steps, far):
    """Write the children (edges,) of states, keys (n,), as differences to the same edge of the last
    state of the same bits `alike`, or, of an edge that it has not, to the edge before; returns how
    many do not fit in a byte.

    Those are FAR in steps int8 (edges,) and stand in far int32 (edges,), one behind the other. Of
    states that are alike but for what the boxes are cut by neighbours lead to neighbours, all about
    as far on: in Press Your Luck 15.99 of 16.2 fit, and most repeat those of the row before.
    """
    rows, far_count = np.zeros((1 << NEIGHBOURS, 2), np.int64), 0
    for x in range(keys.size):
        start, stop = first[x], first[x + 1]
        before, same = _last_alike(rows, keys[x], alike, start, stop)
        for k in range(start, stop):
            step = children[k] - _child_before(children, start, before, same, k)
            steps[k] = step
            if step <= FAR or step > 127:
                steps[k], far[far_count] = FAR, step
                far_count += 1
    return far_count


_READ = [types.Array(of, 1, "C", readonly=True) for of in (types.int8, types.int32)]
"""As Arrow has them."""


@njit(types.void(_u1, _u, _i1, *_READ, _n1))
def from_steps(keys, alike, first, steps, far, children):
    """Write the children of states (edges,) from their `steps_of`."""
    rows, far_count = np.zeros((1 << NEIGHBOURS, 2), np.int64), 0
    for x in range(keys.size):
        start, stop = first[x], first[x + 1]
        before, same = _last_alike(rows, keys[x], alike, start, stop)
        for k in range(start, stop):
            step = np.int64(steps[k])
            if step == FAR:
                step = np.int64(far[far_count])
                far_count += 1
            children[k] = step + _child_before(children, start, before, same, k)


@njit(types.void(_u1, _u1, _u1, _u, _n1))
def boxes_of(words, low, high, guards, boxes):
    """Write the first box that each word (n,) lies in: lane by lane between its low and high."""
    for i in range(words.size):
        boxes[i] = -1
        for j in range(low.size):
            if not rises(high[j], words[i], guards) and not rises(words[i], low[j], guards):
                boxes[i] = j
                break
