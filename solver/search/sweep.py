"""Solve a stage (`solver.search.stages`), children first, when the payoffs it needs are known."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.compiled import borrowed, njit, types
from luckbase.solver.errors import Stopped
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.game import Game
from luckbase.solver.search import cycles
from luckbase.solver.search.bellman import (
    MATRIX_GAME,
    OVER,
    RESULTS_TYPE,
    SCRATCH_TYPE,
    UNEVEN,
    Lotteries,
    Results,
    back_up,
    matrix_game_solver,
    refuse_uneven,
    rounded_up,
    scratch_of,
)
from luckbase.solver.search.cycles import COMPONENT, SOLVE_COMPONENT, Component
from luckbase.solver.search.elimination import SOLVED
from luckbase.solver.search.expand import refuse_beyond
from luckbase.solver.search.keys import Keys, order_of, unpack_all
from luckbase.solver.search.stage_kernels import LEAF, ORDER_TYPE, PATTERNS_TYPE, Order, Patterns
from luckbase.solver.search.stages import BUDGET, Stage

_i, _f, _i1, _f1 = types.int64, types.float64, types.int64[::1], types.float64[::1]
_n1, _u1, _f2 = types.int32[::1], types.uint64[::1], types.float64[:, ::1]
_i2 = types.int64[:, ::1]
PLACE, LOOP, STATUS = range(3)
"""Positions in a sweep's progress: the place in the order, the next cycle, why it stopped."""
MEMBER = -1000
"""In place of a best action: a member of the component being solved is MEMBER minus its number."""


def room_for_sweep(states: int, numbers: int, players: int) -> Results:
    """Return arrays for the results of states, the first of some numbers whose payoffs and errors
    the arrays have too; errors are 0."""
    return Results(
        np.zeros((numbers, 1 + players)), np.empty(states, np.int64), np.empty(states),
        np.empty(states, np.int8), np.zeros(numbers, np.float32),
    )  # fmt: skip


@njit(COMPONENT(PATTERNS_TYPE, ORDER_TYPE, RESULTS_TYPE, _n1))
def gather(patterns, states, out, members):
    """Return the component of members, int32 (n,) ascending."""
    n, m, pays = members.size, 0, patterns.rewards.shape[0] > 0
    for i in range(n):
        p = states.patterns[members[i]]
        m += patterns.first[p + 1] - patterns.first[p]
        out.best[members[i]] = MEMBER - i
    action_first, first = np.empty(n + 1, np.int64), np.empty(m + 1, np.int64)
    names, actors = np.empty(m, np.int64), np.empty(n, np.int64)
    weights, children = np.empty(m), np.empty(m, np.int64)
    rewards = np.empty((m if pays else 0, patterns.payoffs.shape[1]))
    k, e, off = 0, 0, np.float32(0.0)
    for i in range(n):
        p, child = states.patterns[members[i]], states.first[members[i]]
        action_first[i], actors[i] = k, patterns.actors[p]
        for j in range(patterns.first[p], patterns.first[p + 1]):
            if j == patterns.first[p] or patterns.actions[j] != patterns.actions[j - 1]:
                names[k], first[k] = patterns.actions[j], e
                k += 1
            y = states.children[child]
            if y < out.best.size and out.best[y] <= MEMBER:
                children[e] = MEMBER - out.best[y]
            else:
                children[e], off = -1 - y, max(off, out.errors[y])
            weights[e] = patterns.weights[j]
            if pays:
                for q in range(rewards.shape[1]):
                    rewards[e, q] = patterns.rewards[j, q]
            e, child = e + 1, child + 1
    action_first[n], first[k] = k, e
    return Component(
        action_first, first[: k + 1], weights, children, rewards, names[:k], actors,
        np.float64(off),
    )  # fmt: skip


@njit(_n1(_n1))
def ascending(members):
    """Return members in ascending order: then the result's bits do not depend on who came first."""
    return members[order_of(members.astype(np.uint64))]


@njit(
    types.void(
        MATRIX_GAME, SOLVE_COMPONENT, PATTERNS_TYPE, ORDER_TYPE, _i2, RESULTS_TYPE, SCRATCH_TYPE,
        _n1, _i1, _i,
    ),
)  # fmt: skip
def sweep_on(  # noqa: PLR0913  # arrays; one piece, for speed
    solve_game, solve_component, patterns, states, loops, out, scratch, local, at, budget
):
    """Solve about `budget` states in their order, from at[PLACE] on.

    It stops early at a state or component that it cannot solve; at[STATUS] is the reason.

    loops: int64 (k, 2), the place and the size of each component.
    local: int32 (edges of patterns, at least 1), scratch.
    """
    values, best, margins, actors, errors = borrowed(out)
    order, begin, pattern_of, children = borrowed(states)
    _, _, first_edge, acting, weights, actions, rewards, given = borrowed(patterns)
    child_rows, step = borrowed(local), borrowed(scratch)
    lotteries, payoffs = Lotteries(child_rows, weights, actions, rewards), step.out
    players, end, s = values.shape[1] - 1, order.size, at[PLACE]
    stop, loop = min(end, s + budget), at[LOOP]
    at[STATUS] = SOLVED
    while s < stop:
        if loop < loops.shape[0] and s == loops[loop, 0]:
            members = ascending(states.order[s : s + loops[loop, 1]])
            component = gather(patterns, states, out, members)
            at[STATUS] = cycles.solve_members(
                solve_component, component, scratch.limits, members, out
            )
            if at[STATUS] != SOLVED:
                break
            s, loop = s + loops[loop, 1], loop + 1
            continue
        x = order[s]
        p = pattern_of[x]
        s += 1
        first, last = first_edge[p], first_edge[p + 1]
        actor = acting[p]
        if actor == LEAF:
            for i in range(players):
                values[x, 1 + i] = given[p, i]
            best[x], margins[x], actors[x] = OVER, np.nan, 0
            continue
        k = begin[x] - first
        for j in range(first, last):
            child_rows[j] = children[k + j]
        span = first, last
        best[x], margins[x], error = back_up(
            solve_game, lotteries, span, actor, values, errors, step
        )
        if best[x] == UNEVEN:
            at[STATUS], s = UNEVEN, s - 1
            break
        actors[x], errors[x] = max(actor, -1) + 1, rounded_up(error)
        for i in range(players):
            values[x, 1 + i] = payoffs[i]
    at[PLACE], at[LOOP] = s, loop


def solve_in_order(
    game: Game, keys: Keys, patterns: Patterns, states: Order, loops: Ints, out: Results,
    tolerance: float, stop: Callable[[], bool] = lambda: False,
) -> None:  # fmt: skip
    """Solve n states, keys (n,), in their order, children first.

    loops: as in `Stage`.
    out: written; the payoffs of other states must be filled in, and all errors 0.

    Raises StateError for a cycle that `solver.search.cycles` refuses, GameError if both choose at
    once and payoffs do not have a constant sum, and Stopped.
    """
    solve_game, solve_component = matrix_game_solver(game), cycles.solve_component
    if not len(loops):  # it is slow to compile
        solve_component = cycles.later
    scratch = scratch_of(game, int(np.diff(patterns.first).max(initial=1)), tolerance)
    local, at = np.empty(max(1, len(patterns.weights)), np.int32), np.zeros(3, np.int64)
    while at[PLACE] < len(keys):
        if stop():
            raise Stopped
        sweep_on(
            solve_game, solve_component, patterns, states, loops, out, scratch, local, at, BUDGET
        )  # fmt: skip
        status = int(at[STATUS])
        if status == UNEVEN:
            state = unpack_all(game.strides, keys[states.order[at[PLACE]]][None])
            x = states.order[at[PLACE]]
            children = states.children[states.first[x] : states.first[x + 1]]
            refuse_uneven(game, state[0], out.values[children, 1:])
        elif status != SOLVED:
            size = loops[at[LOOP], 1]
            members = ascending(states.order[at[PLACE] : at[PLACE] + size])
            component = gather(patterns, states, out, members)
            cycles.solve_alone(
                game, component, scratch.limits, status, members, out,
                unpack_all(game.strides, keys[members]),
            )  # fmt: skip
            at[PLACE], at[LOOP] = at[PLACE] + size, at[LOOP] + 1
    refuse_beyond(game, keys, out.values[: len(keys), 1:])


@njit(_i(_u1, _f2, _n1, _f2))
def join(requested, rows, numbers, out):
    """Copy payoffs to `out` and return how many were found.

    requested: uint64 (k,), ascending keys. rows: (m, 1 + players), by ascending key, which is the
        first column. numbers: the rows of `out` to write.
    """
    keys = borrowed(rows.view(np.uint64))
    j, copied, count = 0, 0, rows.shape[0]
    for i in range(requested.size):
        step = 1
        while j + step < count and keys[j + step, 0] <= requested[i]:
            j, step = j + step, 2 * step  # gallop: double the steps, then halve them
        while step > 0:
            if j + step < count and keys[j + step, 0] <= requested[i]:
                j += step
            step //= 2
        if j < count and keys[j, 0] == requested[i]:
            for c in range(1, rows.shape[1]):
                out[numbers[i], c] = rows[j, c]
            copied += 1
    return copied


class Sweeping:
    """A stage that is being solved: `fill` in the payoffs that it requests, then `solve`."""

    def __init__(self, game: Game, stage: Stage) -> None:
        self.game, self.stage = game, stage
        self.requested = [runs.all_keys() for _, runs, _ in stage.requests]
        """The keys of each of its requests."""
        n, outside = len(stage.keys), sum(len(numbers) for _, _, numbers in stage.requests)
        self._out = room_for_sweep(n, n + outside, game.players)
        self._out.values[:n, 0] = stage.keys.view(np.float64)

    def fill(self, request: int, rows: Floats, subset: NDArray[np.bool_] | None = None) -> int:
        """Copy the payoffs for a request, or for a subset (k,) of its keys; return how many exist.

        rows: (m, 1 + players), by ascending key, the first column.
        """
        keys, (_, _, numbers) = self.requested[request], self.stage.requests[request]
        if subset is not None:
            keys, numbers = keys[subset], numbers[subset]
        copied: int = join(keys, rows, numbers, self._out.values)
        return copied

    def solve(self, tolerance: float, stop: Callable[[], bool] = lambda: False) -> Results:
        """Solve and return the n states, by key. Raises the errors of `solve_in_order`.

        Their error bounds leave out the errors of other stages.
        """
        game, stage, out, n = self.game, self.stage, self._out, len(self.stage.keys)
        solve_in_order(
            game, stage.keys, stage.patterns, stage.states, stage.loops, out, tolerance, stop
        )  # fmt: skip
        return out._replace(values=out.values[:n], errors=out.errors[:n])
