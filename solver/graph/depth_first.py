"""One walk, depth first, that finds the states of a graph and solves each once all below it is.

The compiled part of `solver.graph.graph`, which says what is walked and why; the Bellman equation
of a state is `back_up`.

Measured on Press Your Luck at $250, 16 edges a state, 1.4 million states, one core: about 1.0 us a
state, of which 0.2 are the rules, 0.1 packing the keys, and most of the rest cache misses of the
hash table and of the children's rows. What helped: the look-ups of a state in three short loops, so
that sixteen misses are under way at once (1.45 times as fast as one loop); the payoffs beside the
key; expanding a state's new children together before the first is visited, as they have most of
their own children in common (1.1).
"""

from __future__ import annotations

import numba as nb
import numpy as np
from numba import types

from luckbase.solver.game.transition import (
    DECISION,
    EDGES_TYPE,
    JOINT,
    NUMBERS_TYPE,
    SIMULTANEOUS,
    TERMINAL,
    TRANSITION,
)
from luckbase.solver.graph.keys import find_from, home, pack, unpack
from luckbase.solver.matrix_game.types import SOLVE_GAME, WORK

_matrix = types.FunctionType(SOLVE_GAME)
_i1, _f1, _f2, _u1 = types.int64[::1], types.float64[::1], types.float64[:, ::1], types.uint64[::1]
_i2, _f3, _n1, _n2 = (
    types.int64[:, ::1],
    types.float64[:, :, ::1],
    types.int32[::1],
    types.int32[:, ::1],
)
_u2, _c1 = types.uint64[:, ::1], types.int8[::1]

OVER, UNDECIDED, MIXED, KNOWN, NEW, OPEN, EXPANDED = -1, -2, -3, -4, -5, -6, -7
"""Instead of a best action: the game is over; the bounds do not separate; a mixed strategy; given
without one; met and not expanded; below, even numbers: on the path, odd ones: expanded only."""

FINISHED, GROW, COMPONENT, PAUSE = 0, 1, 2, 3
DEPTH, COUNT, CLOCK, HEIGHT, ROOT, EDGES, TOP = 0, 1, 2, 3, 4, 5, 6
"""Where `_walk` keeps its place in `at`."""
JOINTLY = -2
"""Who acts where both players choose at once."""
NODE, POSITION, SIZE, LOW, ACTOR, LOOP, START = 0, 1, 2, 3, 4, 5, 6
"""The columns of a frame's numbers."""


@nb.njit(
    types.int64(types.int64, types.int64, types.int64, types.float64, _f2, _f1),
    cache=True, nogil=True,
)  # fmt: skip
def choose_by_bounds(groups, sure, actor, tolerance, q, out):
    """The bounds of a state from those of its actions, q (groups, 2 players), into `out`; `sure` is
    the action of the greatest lower bound. Returns the only action left, or -1."""
    players = out.size // 2
    floor, left, last = q[sure, actor], 0, 0
    for p in range(players):
        out[p], out[players + p] = np.inf, -np.inf
    highest = -np.inf
    for g in range(groups):
        highest = max(highest, q[g, actor])
        # An earlier action is taken if level, a later one only if better by more.
        need = floor + (tolerance if g > sure else -tolerance)
        if g == sure or q[g, players + actor] > need:
            left, last = left + 1, g
            for p in range(players):
                out[p] = min(out[p], q[g, p])
                out[players + p] = max(out[players + p], q[g, players + p])
    if left == 1:
        return last
    out[actor] = highest
    return -1


@nb.njit(
    types.float64(types.int64, types.int64, types.int64, types.int64, _f2), cache=True, nogil=True
)
def margin_of(groups, best, lower, upper, q):
    """What the second best action would cost the one who acts, at least 0: q (groups, columns) of
    the best in column `lower`, less the greatest of the others in column `upper`."""
    second = -np.inf
    for g in range(groups):
        if g != best and q[g, upper] > second:
            second = q[g, upper]
    return max(q[best, lower] - second, 0.0)


@nb.njit(SOLVE_GAME, cache=True, nogil=True)
def no_matrix_games(a, rows, columns, dominance, x, y, work):
    """In the place of `simplex.solve_game` for games whose players never choose at once."""
    return np.nan, np.nan, 0, 0


@nb.njit(types.void(_matrix, types.int64, types.int64, _i1, _f2, _f1), cache=True, nogil=True)
def meet(solve_game, groups, base, actions, q, out):
    """The payoffs of a state in which both choose at once: the value of the matrix game of its
    joint actions, q (groups, 2), rows slowest; or both bounds of it, q (groups, 4)."""
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
    for side in range(out.size // 2):
        for r in range(rows):
            for c in range(columns):
                game[r, c] = q[r * columns + c, 2 * side]
        out[2 * side] = solve_game(game, rows, columns, True, x, y, work)[0]
    total = q[0, 0] + q[0, out.size - 1]
    for side in range(out.size // 2):  # the lower of one is the upper of the other
        out[out.size - 1 - 2 * side] = total - out[2 * side]


@nb.njit(
    types.int64(
        _matrix, types.int64, types.int64, types.int64, types.int64, types.boolean, types.float64,
        _n1, _f1, _i1, _f2, _f2, _f2, _f1, types.int64, _f1,
    ),
    cache=True, nogil=True,
)  # fmt: skip
def back_up(
    solve_game, base, n, actor, columns, pays, tolerance,
    children, weights, actions, rewards, rows, q, out, x, margins,
):  # fmt: skip
    """One step of the Bellman equation for state x, whose n edges stand from `base` on; returns its
    best action.

    rows float64 (states, 1 + columns): the key, then one column a player, or two (module
    docstring). The payoff is written to `out` (columns,). q: scratch, float64 (edges, columns).
    Where one player chooses, `margins[x]` becomes what the second best action would cost him; with
    bounds, the best one's lower payoff less the greatest upper one of the others, if it is called.
    """
    players = rewards.shape[1]
    groups, k, stop = 0, base, base + n
    action = best_action = actions[base]
    best = 0
    while k < stop:
        action = actions[k]
        if columns == 3 and not pays:  # the general case, unrolled
            q0 = q1 = q2 = 0.0
            while k < stop and actions[k] == action:
                y, weight = children[k], weights[k]
                q0 += weight * rows[y, 1]
                q1 += weight * rows[y, 2]
                q2 += weight * rows[y, 3]
                k += 1
            q[groups, 0], q[groups, 1], q[groups, 2] = q0, q1, q2
        else:
            for c in range(columns):
                q[groups, c] = 0.0
            while k < stop and actions[k] == action:
                y, weight = children[k], weights[k]
                for c in range(columns):
                    paid = rewards[k, c if c < players else c - players] if pays else 0.0
                    q[groups, c] += weight * (paid + rows[y, 1 + c])
                k += 1
        if groups > 0 and actor >= 0 and q[groups, actor] > q[best, actor] + tolerance:
            best, best_action = groups, action
        groups += 1
    if actor == JOINTLY:
        meet(solve_game, groups, base, actions, q, out)
        return MIXED
    if groups == 1 or columns == players:
        for c in range(columns):
            out[c] = q[best, c]
    if groups == 1:
        return best_action
    if columns == players:
        if actor >= 0:
            margins[x] = margin_of(groups, best, actor, actor, q)
        return best_action
    decided = choose_by_bounds(groups, best, actor, tolerance, q, out)
    if decided < 0:
        return UNDECIDED
    margins[x] = margin_of(groups, decided, actor, players + actor, q)
    k = base
    for _ in range(decided):
        action = actions[k]
        while actions[k] == action:
            k += 1
    return actions[k]


@nb.njit(
    types.int64(types.int64, types.int64, _f1, _i1, _i2, _f1, _i1, _f2), cache=True, nogil=True
)
def fold(n, first, policy, acts, below, chances, chosen, paid):
    """Make lotteries of a state's n edges by the chances of its actions, policy[first] on, in
    place; returns how many edges are left, those of actions that are never taken being gone.

    acts[first] on: the action that each belongs to then, MIXED for all where nothing is left to
    choose; the other player's, where he answers one side of a simultaneous state.
    """
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
        following, found = np.int64(0), False  # the least action above the last
        for g in range(first, group + 1):
            if acts[g] > last and (not found or acts[g] < following):
                following, found = acts[g], True
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


@nb.njit(
    types.int64(
        TRANSITION, _matrix, NUMBERS_TYPE, _i1, types.boolean, types.float64, types.int64, _i1, _n1,
        _n1, _u2, _f2, _i1, _f1, _c1, _n1, _n1, _n2, _n1, _f1, _i1, _f2, EDGES_TYPE, _i1,
        _f1, _i1, _i1,
    ),
    cache=True, nogil=True,
)  # fmt: skip
def walk(
    transition, solve_game, board, bits, pays, tolerance, budget, at, roots, slots, keys,
    rows, best, margins, actors, stack, path, frames, children, weights, actions, rewards,
    met, policy_first, policy, acts, takers,
):  # fmt: skip
    """Walk on from `at` until all roots are solved, or there is something to do first:

    GROW: states or frames may not have room; COMPONENT: the states on the stack from the frame's
    node up are one; PAUSE: `budget` states were visited.

    `keys` and `rows` are one memory as uint64 and as float64: the key, then the payoffs, NaN until
    the state is solved. `best`: the best action, or why there is none, or of a state expanded and
    not visited EXPANDED minus twice its frame, or of one on the path OPEN minus twice its place in
    the order of visits. `margins`, `actors`: `back_up`'s, and who acts, from 1; NaN and 0 until the
    state is solved. `path`: the frames of the path. Frame f has its edges from f * (most edges)
    on. Nothing is sliced here: a slice costs two atomic counts.
    """
    depth, count, clock, height = at[DEPTH], at[COUNT], at[CLOCK], at[HEIGHT]
    root, edges, top = at[ROOT], at[EDGES], at[TOP]
    below, chances, chosen, paid, about = met
    most, mask, columns = below.shape[0], slots.size - 1, rows.shape[1] - 1
    players = paid.shape[1]
    state = np.empty(bits.size, np.int64)
    wanted, there = np.empty(most, np.uint64), np.empty(most, np.uint64)
    place, number = np.empty(most, np.int64), np.empty(most, np.int64)
    q, out = np.empty((most, columns)), np.empty(columns)
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
            f = path[depth]
            base = f * most
            position, stop = base + frames[f, POSITION], base + frames[f, SIZE]
            while position < stop:
                y = children[position]
                if rows[y, 1] != rows[y, 1]:
                    if best[y] > OPEN or (best[y] - OPEN) & 1:  # not on the path
                        visit = y
                        break
                    frames[f, LOW] = min(frames[f, LOW], (OPEN - best[y]) >> 1)
                    if y == frames[f, NODE]:
                        frames[f, LOOP] = 1
                position += 1
            frames[f, POSITION] = position - base
        if visit >= 0:
            full = count + most * (most + 1) > keys.shape[0] or top + most >= frames.shape[0]
            if full or depth + 1 == path.size:
                code = GROW
                break
            if budget <= 0:
                code = PAUSE
                break
            f, position, stop, start = -1, 0, 0, top
            if best[visit] <= EXPANDED:
                f = (EXPANDED - best[visit]) >> 1
                position, stop = f * most, f * most + frames[f, SIZE]
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
                n = transition(board, state, met)
                if about[0] == TERMINAL:
                    for c in range(columns):
                        rows[y, 1 + c] = paid[0, c % players]
                    for p in range(players):
                        paid[0, p] = 0.0
                    best[y] = OVER
                    continue
                if y < policy_first.size - 1 and policy_first[y] < policy_first[y + 1]:
                    n = fold(n, policy_first[y], policy, acts, below, chances, chosen, paid)
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
                frames[top, NODE], frames[top, SIZE] = y, n
                frames[top, ACTOR] = JOINTLY if about[0] == SIMULTANEOUS else about[1]
                best[y] = EXPANDED - 2 * top
                if f < 0:
                    f, position, stop, start = top, base, base + n, top + 1
                top += 1
            if f < 0:
                continue  # it is over
            depth += 1
            path[depth] = f
            frames[f, POSITION], frames[f, LOW], frames[f, LOOP] = 0, clock, 0
            frames[f, START] = start
            best[visit] = OPEN - 2 * clock
            stack[height] = visit
            clock, height = clock + 1, height + 1
            continue
        x = frames[f, NODE]
        if frames[f, LOW] == (OPEN - best[x]) >> 1:
            if stack[height - 1] != x or frames[f, LOOP]:
                code = COMPONENT
                break
            best[x] = back_up(
                solve_game, base, frames[f, SIZE], frames[f, ACTOR], columns, pays, tolerance,
                children, weights, actions, rewards, rows, q, out, x, margins,
            )  # fmt: skip
            actors[x] = max(frames[f, ACTOR], -1) + 1
            for c in range(columns):
                rows[x, 1 + c] = out[c]
            height -= 1
        elif depth > 0:
            above = path[depth - 1]
            frames[above, LOW] = min(frames[above, LOW], frames[f, LOW])
        top = frames[f, START]
        depth -= 1
        if depth < 0:
            top = 0
    at[DEPTH], at[COUNT], at[CLOCK], at[HEIGHT] = depth, count, clock, height
    at[ROOT], at[EDGES], at[TOP] = root, edges, top
    return code
