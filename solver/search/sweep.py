"""Solve a stage (`solver.search.stages`), children first, when the payoffs it needs are known."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

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
from luckbase.solver.search.cycles import COMPONENT, SOLVE_COMPONENT
from luckbase.solver.search.elimination import SOLVED
from luckbase.solver.search.expand import refuse_beyond
from luckbase.solver.search.keys import Keys, order_of, unpack_all
from luckbase.solver.search.stage_kernels import LEAF, ORDER_TYPE, PATTERNS_TYPE, Order, Patterns
from luckbase.solver.search.stages import BUDGET, Box, Stage, Stages

_i, _f, _i1, _f1 = types.int64, types.float64, types.int64[::1], types.float64[::1]
_n1, _u1, _f2 = types.int32[::1], types.uint64[::1], types.float64[:, ::1]
_i2 = types.int64[:, ::1]
PLACE, LOOP, STATUS = range(3)
"""Positions in a sweep's progress: the place in the order, the next cycle, why it stopped."""


def room_for_sweep(states: int, numbers: int, players: int) -> Results:
    """Return arrays for the results of states, the first of some numbers whose payoffs and errors
    the arrays have too; errors are 0."""
    return Results(
        np.zeros((numbers, 1 + players)), np.empty(states, np.int64), np.empty(states),
        np.empty(states, np.int8), np.zeros(numbers, np.float32),
    )  # fmt: skip


@njit(types.Tuple((_n1, COMPONENT))(PATTERNS_TYPE, ORDER_TYPE, RESULTS_TYPE, _n1))
def component_of(patterns, states, out, members):
    """Return the members of a component, int32 (n,), ascending, and the component."""
    members = members[order_of(members.astype(np.uint64))]
    p, edges = (
        states.patterns[members],
        Lotteries(states.children, patterns.weights, patterns.actions, patterns.rewards),
    )
    return members, cycles.gather(
        edges, patterns.first[p], patterns.first[p + 1], states.first[members], patterns.actors[p],
        out, members,
    )  # fmt: skip


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
            members, component = component_of(
                patterns, states, out, states.order[s : s + loops[loop, 1]]
            )
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
            members, component = component_of(
                patterns, states, out, states.order[at[PLACE] : at[PLACE] + size]
            )
            there = unpack_all(game.strides, keys[members])
            cycles.solve_alone(game, component, scratch.limits, members, out, there)
            at[PLACE], at[LOOP] = at[PLACE] + size, at[LOOP] + 1
    refuse_beyond(game, keys, out.values[: len(keys), 1:])


@njit(_i(_u1, _f2, _i1, _f2))
def join(requested, rows, numbers, out):
    """Copy payoffs to `out` and return how many were found.

    requested: uint64 (k,), ascending keys.
    rows: (m, 1 + players), by ascending key, which is the first column.
    numbers: (k,), the rows of `out` to write.
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


def solve_stage(
    stages: Stages, stage: Stage, tables: Iterable[Sequence[tuple[Box, Floats]]], tolerance: float,
    stop: Callable[[], bool] = lambda: False,
) -> Results | None:  # fmt: skip
    """Solve and return the n states of a stage, by key; None if payoffs that it needs are missing.

    tables: for each of its requests, boxes that do not overlap, with payoffs (m, 1 + players), by
        ascending key, the first column.

    The error bounds leave out the errors of other stages. Raises the errors of `solve_in_order`.
    """
    game, requested = stages.game, [runs.all_keys() for _, runs in stage.requests]
    n, row = len(stage.keys), len(stage.keys)
    out = room_for_sweep(n, n + sum(map(len, requested)), game.players)
    out.values[:n, 0] = stage.keys.view(np.float64)
    for keys, parts in zip(requested, tables, strict=True):
        which, copied = stages.boxes_of(keys, [box for box, _ in parts]), 0
        for i, (_, rows) in enumerate(parts):
            at = np.flatnonzero(which == i)
            copied += join(keys[at], rows, row + at, out.values)
        if copied != len(keys):
            return None
        row += len(keys)
    solve_in_order(
        game, stage.keys, stage.patterns, stage.states, stage.loops, out, tolerance, stop
    )  # fmt: skip
    return out._replace(values=out.values[:n], errors=out.errors[:n])
