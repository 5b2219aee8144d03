"""The depth-first search that finds the states of a graph and solves each once all below it is.

The compiled part of `solver.search.game_graph`, which says what is searched and why; the Bellman
step is `solver.search.bellman`'s. `search` is one piece, on arrays that are borrowed
(`solver.search.expand`): split into ten functions that hand on what they were given, it took 1.45
times as long. Nothing is sliced in it: a slice costs two atomic counts.

Measured on Press Your Luck at $250, 16 edges a state, 1.4 million states, one core: about 1.0 us a
state, of which 0.2 are the rules, 0.1 packing the keys, and most of the rest cache misses of the
hash table and of the children's rows. What helped: the look-ups of a state in three short loops, so
that sixteen misses are under way at once (1.45 times as fast as one loop); the payoffs beside the
key; expanding a state's new children together before the first is visited, as they have most of
their own children in common (1.1).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.rules import (
    DECISION,
    EDGES_TYPE,
    NUMBERS_TYPE,
    SIMULTANEOUS,
    TERMINAL,
    TRANSITION,
    Numbers,
)
from luckbase.solver.njit import njit, tuple_type
from luckbase.solver.search.bellman import (
    EXPANDED,
    JOINTLY,
    MATRIX_GAME,
    NEW,
    OPEN,
    OVER,
    SCRATCH_TYPE,
    Lotteries,
    Scratch,
    back_up,
)
from luckbase.solver.search.expand import ROOM_TYPE, Room, borrowed, expand_one, inlined, lent
from luckbase.solver.search.keys import find_from, home, pack, unpack

_i, _f, _i1, _f1 = types.int64, types.float64, types.int64[::1], types.float64[::1]
_n1, _n2, _u1 = types.int32[::1], types.int32[:, ::1], types.uint64[::1]
_f2, _u2, _c1 = types.float64[:, ::1], types.uint64[:, ::1], types.int8[::1]

FINISHED, GROW, COMPONENT, PAUSE, REFUSED, BEYOND = 0, 1, 2, 3, 4, 5
"""Why a search stops (`search`)."""
DEPTH, COUNT, CLOCK, HEIGHT, ROOT, EDGES, TOP = 0, 1, 2, 3, 4, 5, 6
"""Where a search keeps its place in `Path.at`: frames on the path less one, states met, states
visited, states on the stack, the next root, edges expanded, frames in use."""
NODE, POSITION, SIZE, LOW, ACTOR, LOOP, START = 0, 1, 2, 3, 4, 5, 6
"""The columns of a frame's numbers: its state, the next edge to look at, how many edges, Tarjan's
low-link, who acts, whether the state leads to itself, the frames in use once it is done."""


class Fixed(NamedTuple):
    """Choices that are fixed at m states, all different.

    keys: uint64 (m,). first: int64 (m + 1,). chances, acts: float64, int64: of the actions of state
    i, first[i]:first[i + 1] (none where nothing is fixed), the chances, and the action that each
    belongs to then: MIXED for all, or where one player's answer to the other's part of a
    simultaneous state is left to choose, theirs. takers: int64 (m,), that player, or -1.
    """

    keys: NDArray[np.uint64]
    first: Ints
    chances: Floats
    acts: Ints
    takers: Ints


class Task(NamedTuple):
    """What is searched: the board, room for the edges of a state, the widths of a key's numbers
    int64 (fields,), the choices that are fixed, the tie tolerance, scratch for a step."""

    board: Numbers
    room: Room
    bits: Ints
    fixed: Fixed
    tolerance: float
    scratch: Scratch


class Store(NamedTuple):
    """What is known of every state met, by its number.

    slots: the hash table (`solver.search.keys`). keys, rows: one memory as uint64 and as float64
    (room, 1 + columns): the key, then the payoffs, NaN until the state is solved. best: int64
    (room,), the best action, or why there is none, or of a state expanded and not visited EXPANDED
    minus twice its frame, or of one on the path OPEN minus twice its place in the order of visits.
    margins, actors: float64, int8 (room,): `back_up`'s margin, and who acts, from 1; NaN and 0
    until the state is solved.
    """

    slots: NDArray[np.int32]
    keys: NDArray[np.uint64]
    rows: Floats
    best: Ints
    margins: Floats
    actors: NDArray[np.int8]


class Frames(NamedTuple):
    """Expanded states: frame f has its edges from f * (most edges) on.

    numbers: int32 (frames, 7). children: int32, weights: float64, actions: int64 (frames * most,);
    rewards: float64 (frames * most, players), or (0, players) where the game pays nothing.
    """

    numbers: NDArray[np.int32]
    children: NDArray[np.int32]
    weights: Floats
    actions: Ints
    rewards: Floats


class Path(NamedTuple):
    """Where a search is. stack: int32 (room,), the states visited whose component is not known.
    frames: int32 (any,), the frames of the path. at: int64 (7,)."""

    stack: NDArray[np.int32]
    frames: NDArray[np.int32]
    at: Ints


_fixed = tuple_type(Fixed, _u1, _i1, _f1, _i1, _i1)
_task = tuple_type(Task, NUMBERS_TYPE, ROOM_TYPE, _i1, _fixed, _f, SCRATCH_TYPE)
_store = tuple_type(Store, _n1, _u2, _f2, _i1, _f1, _c1)
_frames = tuple_type(Frames, _n2, _n1, _f1, _i1, _f2)
_path = tuple_type(Path, _n1, _n1, _i1)


@inlined
def _least_above(acts, first, stop, last):
    """(The least of acts[first] .. acts[stop] above `last`, whether there is one.)"""
    following, found = np.int64(0), False
    for g in range(first, stop + 1):
        if acts[g] > last and (not found or acts[g] < following):
            following, found = acts[g], True
    return following, found


@njit(_i(_i, _i, _f1, _i1, EDGES_TYPE), cache=True, nogil=True)
def fold(n, first, policy, acts, room):
    """Make lotteries of a state's n edges by the chances of its actions, policy[first] on, in
    place; returns how many edges are left, those of actions that are never taken being gone.

    acts[first] on: the action that each belongs to then, MIXED for all where nothing is left to
    choose; the other player's, where they answer one side of a simultaneous state.
    """
    below, chances, chosen, paid, _ = room
    fields, players = below.shape[1], paid.shape[1]
    states, weights = below[:n].copy(), chances[:n].copy()
    given, rewards = chosen[:n].copy(), paid[:n].copy()
    groups = np.empty(n, np.int64)
    group = first
    for k in range(n):
        if k > 0 and given[k] != given[k - 1]:
            group += 1
        groups[k] = group
    kept, last = 0, np.int64(-(1 << 62))
    while True:
        following, found = _least_above(acts, first, group, last)
        if not found:
            return kept
        last = following
        for k in range(n):
            if acts[groups[k]] == last and policy[groups[k]] > 0.0:
                chances[kept], chosen[kept] = weights[k] * policy[groups[k]], last
                for i in range(fields):
                    below[kept, i] = states[k, i]
                for p in range(players):
                    paid[kept, p] = rewards[k, p]
                kept += 1


@njit(_i(TRANSITION, MATRIX_GAME, _task, _n1, _store, _frames, _path, _i), cache=True, nogil=True)
def search(  # noqa: C901, PLR0915  # one piece, for speed: see above
    transition, solve_game, task, roots, store, frames, path, budget
):
    """Search on from `path` until all roots are solved, or there is something to do first:

    GROW: states or frames may not have room; COMPONENT: the states on the stack from the last
    frame's state up are one; PAUSE: `budget` states were expanded; REFUSED: the edges
    of the state room.at break the rules; BEYOND: scratch.out, what the last frame's state is worth,
    is out of the range of payoffs.
    """
    board, room, bits, fixed, tolerance = (
        task.board, lent(task.room), task.bits, task.fixed, task.tolerance,
    )  # fmt: skip
    into = room.edges
    below, chances, chosen, paid, about = into
    limits = room.span
    policy_first, policy, acts, takers = fixed.first, fixed.chances, fixed.acts, fixed.takers
    slots, keys, rows = borrowed(store.slots), borrowed(store.keys), borrowed(store.rows)
    best, margins, actors = borrowed(store.best), borrowed(store.margins), borrowed(store.actors)
    numbers, children = borrowed(frames.numbers), borrowed(frames.children)
    weights, actions = borrowed(frames.weights), borrowed(frames.actions)
    rewards = borrowed(frames.rewards)
    stack, frame_of, at = borrowed(path.stack), borrowed(path.frames), borrowed(path.at)
    depth, count, clock, height = at[DEPTH], at[COUNT], at[CLOCK], at[HEIGHT]
    root, edges, top = at[ROOT], at[EDGES], at[TOP]
    most, mask, columns = below.shape[0], slots.size - 1, rows.shape[1] - 1
    players, pays = paid.shape[1], rewards.shape[0] > 0
    state = np.empty(bits.size, np.int64)
    wanted, there = np.empty(most, np.uint64), np.empty(most, np.uint64)
    place, number = np.empty(most, np.int64), np.empty(most, np.int64)
    lotteries = Lotteries(children, weights, actions, rewards)
    out = borrowed(task.scratch.out)
    scratch = Scratch(borrowed(task.scratch.q), borrowed(task.scratch.starts), out)
    code = FINISHED
    while True:
        visit, f, base = -1, 0, 0
        if depth < 0:
            while root < roots.size and rows[roots[root], 1] == rows[roots[root], 1]:
                root += 1
            if root == roots.size:
                break
            visit = roots[root]
        else:
            f = frame_of[depth]
            base = f * most
            position, stop = base + numbers[f, POSITION], base + numbers[f, SIZE]
            while position < stop:
                y = children[position]
                if rows[y, 1] != rows[y, 1]:
                    if best[y] > OPEN or (best[y] - OPEN) & 1:  # not on the path
                        visit = y
                        break
                    numbers[f, LOW] = min(numbers[f, LOW], (OPEN - best[y]) >> 1)
                    if y == numbers[f, NODE]:
                        numbers[f, LOOP] = 1
                position += 1
            numbers[f, POSITION] = position - base
        if visit >= 0:
            full = count + most * (most + 1) > keys.shape[0] or top + most >= numbers.shape[0]
            if full or depth + 1 == frame_of.size:
                code = GROW
                break
            if budget <= 0:
                code = PAUSE
                break
            f, position, stop, start = -1, 0, 0, top
            if best[visit] <= EXPANDED:
                f = (EXPANDED - best[visit]) >> 1
                position, stop = f * most, f * most + numbers[f, SIZE]
            while True:  # expand the state itself and then those children that are new
                y = visit
                if f >= 0:
                    while position < stop and best[children[position]] != NEW:
                        position += 1
                    if position == stop:
                        break
                    y = children[position]
                elif best[y] != NEW:
                    break
                budget -= 1
                unpack(bits, keys[y, 0], state)
                n = expand_one(transition, board, state, into, room)
                if n < 0:
                    code = REFUSED
                    break
                if about[0] == TERMINAL:
                    for c in range(columns):
                        rows[y, 1 + c] = paid[0, c % players]
                    for p in range(players):
                        paid[0, p] = 0.0
                    best[y] = OVER
                    continue
                if y < policy_first.size - 1 and policy_first[y] < policy_first[y + 1]:
                    n = fold(n, policy_first[y], policy, acts, into)
                    about[0], about[1] = DECISION, takers[y]
                for k in range(n):
                    wanted[k] = pack(bits, below[k])
                    place[k] = home(wanted[k], mask)
                # Three short loops, so that many cache misses are under way at once.
                for k in range(n):
                    number[k] = slots[place[k]]
                for k in range(n):
                    there[k] = keys[max(number[k], 0), 0]
                base = top * most
                for k in range(n):
                    z = number[k]
                    if z < 0 or there[k] != wanted[k]:
                        slot = find_from(slots, keys, wanted[k], place[k])
                        if slots[slot] < 0:
                            slots[slot] = count
                            keys[count, 0] = wanted[k]
                            rows[count, 1] = np.nan
                            best[count] = NEW
                            count += 1
                        z = slots[slot]
                    children[base + k] = z
                    weights[base + k], actions[base + k] = chances[k], chosen[k]
                    if pays:
                        for p in range(players):
                            rewards[base + k, p] = paid[k, p]
                edges += n
                numbers[top, NODE], numbers[top, SIZE] = y, n
                numbers[top, ACTOR] = JOINTLY if about[0] == SIMULTANEOUS else about[1]
                best[y] = EXPANDED - 2 * top
                if f < 0:
                    f, position, stop, start = top, base, base + n, top + 1
                top += 1
            if code == REFUSED:
                break
            if f < 0:
                continue  # it is over
            depth += 1
            frame_of[depth] = f
            numbers[f, POSITION], numbers[f, LOW], numbers[f, LOOP] = 0, clock, 0
            numbers[f, START] = start
            best[visit] = OPEN - 2 * clock
            stack[height] = visit
            clock, height = clock + 1, height + 1
            continue
        x, actor = numbers[f, NODE], numbers[f, ACTOR]
        if numbers[f, LOW] == (OPEN - best[x]) >> 1:
            if stack[height - 1] != x or numbers[f, LOOP]:
                code = COMPONENT
                break
            span = base, base + numbers[f, SIZE]
            best[x], margin = back_up(solve_game, lotteries, span, actor, rows, tolerance, scratch)
            if pays and room.checked:  # else it follows from what is paid at the end
                for p in range(players):
                    if not (out[p] <= limits[1] and out[columns - players + p] >= limits[0]):
                        code = BEYOND
                if code == BEYOND:
                    break
            if margin == margin:
                margins[x] = margin
            actors[x] = max(actor, -1) + 1
            for c in range(columns):
                rows[x, 1 + c] = out[c]
            height -= 1
        elif depth > 0:
            above = frame_of[depth - 1]
            numbers[above, LOW] = min(numbers[above, LOW], numbers[f, LOW])
        top = numbers[f, START]
        depth -= 1
        if depth < 0:
            top = 0
    at[DEPTH], at[COUNT], at[CLOCK], at[HEIGHT] = depth, count, clock, height
    at[ROOT], at[EDGES], at[TOP] = root, edges, top
    return code
