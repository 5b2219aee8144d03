"""The compiled part of `solver.search.stages`: find and order the states of a stage."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.compiled import borrowed, inlined, njit, tuple_type, types
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.rules import NUMBERS_TYPE, SIMULTANEOUS, TERMINAL, TRANSITION
from luckbase.solver.search.bellman import JOINTLY
from luckbase.solver.search.expand import ROOM_TYPE, expand_one
from luckbase.solver.search.keys import hash_of, may_be, pack_row, rises, unpack, word_of
from luckbase.solver.search.runs import NODES_TYPE, RUN, RUNS_TYPE, lowest_bit, rank_of, run_at

FINISHED, GROW, PAUSE, REFUSED, RISES = range(5)
"""Why a pass stops."""
NEXT, RUNS, OWN, STATES, EDGES, PATTERNS, PATTERN_EDGES, WRONG = range(8)
"""Positions in `at`, the progress of an expansion: the first own state that may be unexpanded; the
numbers of runs, own states reached, own states expanded, edges, patterns and their edges; the state
with an edge that rises."""
LEAF = -3
"""In place of an actor: the state is terminal."""
_i, _u, _i1, _f1 = types.int64, types.uint64, types.int64[::1], types.float64[::1]
_n1, _u1 = types.int32[::1], types.uint64[::1]
_u2, _f2, _i2 = types.uint64[:, ::1], types.float64[:, ::1], types.int64[:, ::1]


class Place(NamedTuple):
    """The states that are searched: a level, or a box of it."""

    run: np.uint64  # the bits of a key that differ within a run
    run_low: np.uint64  # the lowest of them
    run_bits: int  # their number
    table: NDArray[np.uint64]  # of the words of the level and of `apart`
    inside: NDArray[np.uint64]  # of the words that the box is cut by
    shift: np.uint64  # the level is in the bits of a word from here on,
    width: np.uint64  # to be divided by this
    level: np.uint64
    guards: np.uint64  # of `inside`
    low: np.uint64  # the least word of the box in each lane
    high: np.uint64  # the greatest
    strict: int  # whether every edge lowers the level, 0 or 1
    cut: int  # whether there is a box, 0 or 1


class Records(NamedTuple):
    """The expanded states, in order of expansion."""

    numbers: NDArray[np.int32]  # (states,)
    patterns: NDArray[np.int32]  # (states,)
    children: NDArray[np.int32]  # (edges,), the numbers of their children


class Patterns(NamedTuple):
    """Patterns shared by states: who acts, and the weights, actions and rewards of the edges."""

    slots: NDArray[np.int32]  # (a power of two,), a hash table of them
    hashes: NDArray[np.uint64]  # (room,)
    first: Ints  # (room + 1,), where the edges of each begin
    actors: Ints  # (room,), from 0; -1 for chance, JOINTLY or LEAF
    weights: Floats  # (edges,)
    actions: Ints  # (edges,)
    rewards: Floats  # (edges, players), or (0, players) if edges pay nothing
    payoffs: Floats  # (room, players), of terminal states


_place = tuple_type(Place, _u, _u, _i, _u2, _u2, _u, _u, _u, _u, _u, _u, _i, _i)
_records = tuple_type(Records, _n1, _n1, _n1)
PATTERNS_TYPE = tuple_type(Patterns, _n1, _u1, _i1, _i1, _f1, _i1, _f2, _f2)


@inlined
def _level_of(place, word):
    level = word >> place.shift
    return level if place.width == np.uint64(1) else level // place.width


@inlined
def _is_of(place, above, key):
    """Return 1 if a state is in the level and the box, 0 if not, -1 if the level forbids the edge.

    above: the key of the state from which the edge leads.
    """
    word = word_of(place.table, key)
    level = _level_of(place, word)
    if level != place.level:
        return -1 if level > place.level else 0
    apart = (np.uint64(1) << place.shift) - np.uint64(1)
    if place.strict != 0 or (word ^ word_of(place.table, above)) & apart:
        return -1
    if place.cut == 0:
        return 1
    within = word_of(place.inside, key)
    if rises(place.high, within, place.guards):
        return -1
    return 0 if rises(within, place.low, place.guards) else 1


@njit(_i(_place, NODES_TYPE, _i1, RUNS_TYPE, _i))
def enter(place, nodes, at, requested, start):
    """Enter requested runs from number `start` on while there is room; return the next number."""
    runs, count, own = nodes.runs, at[RUNS], at[OWN]
    i = start
    while i < requested.keys.size and count < runs.shape[0] and own + RUN <= nodes.own.size:
        z = run_at(nodes, requested.keys[i], count)
        count = max(count, z + 1)
        new = requested.members[i] & ~runs[z, 1]
        runs[z, 1] |= new
        runs[z, 2] |= new
        while new:
            nodes.own[own] = z << place.run_bits | lowest_bit(new)
            new &= new - np.uint64(1)
            own += 1
        i += 1
    at[RUNS], at[OWN] = count, own
    return i


@njit(_u1(_place, RUNS_TYPE))
def members_within(place, runs):
    """Return which members of runs are in the box, uint64 (n,)."""
    members, one = runs.members.copy(), np.uint64(1)
    for x in range(members.size):
        left = members[x]
        while left:
            offset = np.uint64(lowest_bit(left))
            left &= left - one
            word = word_of(place.inside, runs.keys[x] | offset << np.uint64(runs.low))
            if rises(place.high, word, place.guards) or rises(word, place.low, place.guards):
                members[x] ^= one << offset
    return members


@inlined
def _key_of(place, runs, number):
    offset = number & ((np.int64(1) << place.run_bits) - 1)
    return runs[number >> place.run_bits, 0] | np.uint64(offset) << place.run_low


@njit(_u1(_place, _u2, _n1))
def keys_of(place, runs, numbers):
    keys = np.empty(numbers.size, np.uint64)
    for i in range(numbers.size):
        keys[i] = _key_of(place, runs, np.int64(numbers[i]))
    return keys


@inlined
def _mix(hashed, number):
    return (hashed ^ number) * np.uint64(0x9E3779B97F4A7C15)


@inlined
def _same(patterns, p, actor, edges, pattern_bits):
    """Return whether pattern p equals the edges (n, weights, actions, rewards).

    All numbers are given as bits, `pattern_bits` for the patterns' weights, rewards and payoffs:
    0.0 and -0.0 differ. Most are compared without a branch, which is faster.
    """
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
        TRANSITION, NUMBERS_TYPE, ROOM_TYPE, _i2, _place, NODES_TYPE, _records, PATTERNS_TYPE,
        _i1, _i, _i,
    ),
)  # fmt: skip
def expand_on(  # noqa: C901, PLR0913, PLR0915  # one piece, for speed, as `game_graph.search`
    transition, board, room, strides, place, nodes, records, patterns, at, budget, limit
):  # fmt: skip
    """Expand the stage's reached states and enter their children until none is left, or until:

    GROW: an array may be too small. PAUSE: `budget` states were expanded, or more than `limit` of
    the stage were reached. REFUSED: the edges of the state room.at break the rules. RISES: the
    level forbids an edge of the state at[WRONG].

    When a state's turn comes, all unexpanded states of its run are expanded in a row: edge k of one
    usually leads to the same run as edge k of the one before, so the run need not be looked up
    again. Each turn expands at least one state, so none is left after the last turn.
    """
    strides, room, place = borrowed(strides), borrowed(room), borrowed(place)
    nodes, patterns = borrowed(nodes), borrowed(patterns)
    below, chances, chosen, paid, about = room.edges
    slots, runs, own = nodes
    numbers, pattern_of, children = borrowed(records)
    heads, hashes, first, actors, weights, names, rewards, payoffs = patterns
    shared_bits = weights.view(np.uint64), rewards.view(np.uint64), payoffs.view(np.uint64)
    weight_bits, reward_bits = chances.view(np.uint64), paid.view(np.uint64)
    paid_bits = paid.reshape(-1).view(np.uint64)
    count, own_count, states, edges = at[RUNS], at[OWN], at[STATES], at[EDGES]
    kinds, kept, upcoming = at[PATTERNS], at[PATTERN_EDGES], at[NEXT]
    max_edges, mask, players = below.shape[0], slots.size - 1, paid.shape[1]
    number_bits, run_bits = mask >> 1, place.run_bits
    pays, kind_mask = rewards.shape[0] > 0, heads.size - 1
    state = np.empty(strides.shape[1], np.int64)
    child_keys, recent = np.empty(max_edges, np.uint64), np.full(64, -1, np.int64)
    sought, hashed = np.empty(max_edges, np.int64), np.empty(max_edges, np.int64)
    # For each edge of the previous state the run to which it led: its key, its number or -1.
    near_keys, near = np.empty(max_edges, np.uint64), np.full(max_edges, -1, np.int64)
    z, left = np.int64(0), np.uint64(0)
    code = FINISHED
    while code == FINISHED and (left or upcoming < own_count):
        full = count + max_edges > runs.shape[0] or edges + max_edges > children.size
        full = full or own_count + max_edges > own.size
        full = full or states == pattern_of.size or kinds + 1 >= actors.size
        if full or 2 * (kinds + 1) >= heads.size or kept + max_edges > weights.size:
            code = GROW
            break
        if budget <= 0 or own_count > limit:
            code = PAUSE
            break
        while not left and upcoming < own_count:
            z = np.int64(own[upcoming]) >> run_bits
            left = runs[z, 2] & ~runs[z, 3]
            upcoming += 1
        if not left:
            break
        numbers[states] = z << run_bits | lowest_bit(left)
        runs[z, 3] |= left & (~left + np.uint64(1))
        left &= left - np.uint64(1)
        above = _key_of(place, runs, np.int64(numbers[states]))
        unpack(strides, above, state)
        n = expand_one(transition, board, state, room.edges, room)
        if n < 0:
            code = REFUSED
            break
        actor = about[1]
        if about[0] == TERMINAL:
            actor, n = LEAF, 0
        elif about[0] == SIMULTANEOUS:
            actor = JOINTLY
        asked = 0
        for k in range(n):
            child_keys[k] = pack_row(strides, below, k)
            run = child_keys[k] & ~place.run
            if run != near_keys[k]:
                near_keys[k], near[k] = run, -1
            if near[k] < 0:
                sought[asked], hashed[asked] = k, hash_of(run)
                asked += 1
        for i in range(asked):  # independent look-ups, so that cache misses overlap
            entry = slots[may_be(slots, hashed[i], hashed[i] & mask)]
            hashed[i] = entry & number_bits if entry >= 0 else -1
        for i in range(asked):
            k, z_of = sought[i], hashed[i]
            if z_of < 0 or runs[z_of, 0] != near_keys[k]:
                z_of = run_at(nodes, near_keys[k], count)
                count = max(count, z_of + 1)
            near[k] = z_of
        for k in range(n):
            offset, z_of = np.int64((child_keys[k] & place.run) >> place.run_low), near[k]
            bit, child = np.uint64(1) << np.uint64(offset), z_of << run_bits | offset
            if not runs[z_of, 1] & bit:
                inside = _is_of(place, above, child_keys[k])
                if inside < 0:
                    code, at[WRONG] = RISES, numbers[states]
                    break
                runs[z_of, 1] |= bit
                if inside:
                    runs[z_of, 2] |= bit
                    own[own_count] = child
                    own_count += 1
            children[edges + k] = child
        these = n, weight_bits, chosen, reward_bits
        guess = recent[(4 * n + actor) & 63]
        if guess < 0 or not _same(patterns, guess, actor, these, shared_bits):
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
                if hashes[p] == mixed and _same(patterns, p, actor, these, shared_bits):
                    break
                slot = (slot + 1) & kind_mask
            guess = heads[slot]
            if guess < 0:
                guess = kinds
                heads[slot], hashes[kinds], actors[kinds] = kinds, mixed, actor
                for k in range(n):
                    weights[kept + k], names[kept + k] = chances[k], chosen[k]
                    if pays:
                        for i in range(players):
                            rewards[kept + k, i] = paid[k, i]
                if n == 0:
                    for i in range(players):
                        payoffs[kinds, i] = paid[0, i]
                kept, kinds = kept + n, kinds + 1
                first[kinds] = kept
            recent[(4 * n + actor) & 63] = guess
        pattern_of[states] = guess
        if n == 0:
            for i in range(players):
                paid[0, i] = 0.0
        states, edges, budget = states + 1, edges + n, budget - 1
    at[RUNS], at[OWN], at[STATES], at[EDGES] = count, own_count, states, edges
    at[PATTERNS], at[PATTERN_EDGES], at[NEXT] = kinds, kept, upcoming
    return code


@njit(types.void(_n1, _u1))
def enter_patterns(slots, hashes):
    """Enter patterns by their hashes into empty slots."""
    mask = slots.size - 1
    for p in range(hashes.size):
        slot = np.int64(hashes[p] & np.uint64(mask))
        while slots[slot] >= 0:
            slot = (slot + 1) & mask
        slots[slot] = p


@njit(types.Tuple((_n1, _i2))(_i1, _n1))
def ordered(first, children):  # noqa: C901, PLR0915  # Tarjan's
    """Order n states so that each comes after its children below n, except in its own component.

    Returns the order, int32 (n,), and the position in it and the size of each component that has
    several members or an edge to itself, int64 (k, 2).

    first: int64 (n + 1,), where the edges of each begin.

    The search begins with the greatest keys: in games whose scores grow, most children of a state
    are then done when it is visited, so it is finished at once. Source: Tarjan (1972).
    """
    n, loops, done, clock, tall = first.size - 1, 0, 0, 1, 0
    order, starts = np.empty(n, np.int32), np.empty((n, 2), np.int64)
    # 0 if a state was not visited, its low-link while its component is open, then -1.
    low = np.zeros(n, np.int32)
    seen, cursor = np.empty(n, np.int32), np.empty(n, np.int32)  # the time of the visit; next edge
    path, stack = np.empty(n, np.int32), np.empty(n, np.int32)
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
                    starts[loops, 0], starts[loops, 1] = begin, done - begin
                    loops += 1
    return order, starts[:loops].copy()


class Order(NamedTuple):
    """The n states of a stage, numbered by ascending key."""

    order: NDArray[np.int32]  # (n,), in which they are solved
    first: Ints  # (n + 1,), where the edges of each begin
    patterns: NDArray[np.int32]  # (n,)
    children: NDArray[np.int32]  # (edges,), their numbers


ORDER_TYPE = tuple_type(Order, _n1, _i1, _n1, _n1)


@njit(types.void(_n1, _n1, _u2, _i, _n1, _i1, _n1))
def renumber(rows, children, runs, run_bits, numbers, first, renumbered):
    """Write the children of states as new numbers.

    rows: int32 (n,), the new numbers of the states, in order of expansion.
    numbers: new numbers (reached,), by rank.
    first: where the edges of each state begin in `renumbered`.

    States of a run are consecutive, and their children are mostly in the same runs.
    """
    k = 0
    for i in range(rows.size):
        for j in range(first[rows[i]], first[rows[i] + 1]):
            renumbered[j] = numbers[rank_of(runs, run_bits, np.int64(children[k]))]
            k += 1


@njit(types.void(_i1, _n1, _n1, _i, _n1))
def shift_children(first, given, known, sign, shifted):
    """Turn children into differences to the same edge's child of the state before, or, if that has
    no such edge, to the edge before; or back. Most differences repeat.

    given, shifted: int32 (edges,), what is read and written; may be the same to turn them back.
    known: the children.
    sign: -1 to turn children into differences, 1 to turn them back.
    """
    before = 0
    for x in range(first.size - 1):
        start, stop = first[x], first[x + 1]
        for k in range(start, stop):
            edge = before + k - start
            child = known[edge if edge < start else k - 1] if k > 0 else 0
            shifted[k] = given[k] + sign * child
        before = start


@njit(types.void(_u1, _u1, _u1, _u, _n1))
def boxes_of(words, low, high, guards, boxes):
    """Write the index of the first box that contains each word (n,), lane by lane; -1 for none."""
    for i in range(words.size):
        boxes[i] = -1
        for j in range(low.size):
            if not rises(high[j], words[i], guards) and not rises(words[i], low[j], guards):
                boxes[i] = j
                break
