"""A stage is solved (`solver.search.stages`), children first, once its requests are answered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.compiled import borrowed, fetch, njit, tuple_type, types
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.game import Game, Stopped
from luckbase.solver.search import cycles
from luckbase.solver.search.bellman import (
    MATRIX_GAME,
    OVER,
    SCRATCH_TYPE,
    Lotteries,
    Scratch,
    back_up,
    matrix_game_solver,
    scratch_of,
)
from luckbase.solver.search.expand import expand, refuse_beyond
from luckbase.solver.search.keys import unpack_all
from luckbase.solver.search.stage_kernels import (
    AHEAD,
    LEAF,
    ORDER_TYPE,
    PATTERNS_TYPE,
    Patterns,
)
from luckbase.solver.search.stages import BUDGET, Stage

_i, _f, _i1, _f1 = types.int64, types.float64, types.int64[::1], types.float64[::1]
_n1, _u1, _f2 = types.int32[::1], types.uint64[::1], types.float64[:, ::1]


class Sweep(NamedTuple):
    """Where payoffs are written: values: float64 (numbers, 1 + players), keys of the n states in
    the first column; best: int64, margins: float64, actors: int8 (n,)."""

    values: Floats
    best: Ints
    margins: Floats
    actors: NDArray[np.int8]


_sweep = tuple_type(Sweep, _f2, _i1, _f1, types.int8[::1])


@njit(
    types.void(MATRIX_GAME, PATTERNS_TYPE, ORDER_TYPE, _sweep, _f, SCRATCH_TYPE, _n1, _i, _i),
)  # fmt: skip
def sweep_on(  # noqa: PLR0913  # arrays
    solve_game, patterns, states, out, tolerance, scratch, local, start, end
):
    """Solve the states at places start .. end - 1 of the order. local: int32 (edges of patterns, at
    least 1), scratch."""
    shared = Patterns(
        borrowed(patterns.slots), borrowed(patterns.hashes), borrowed(patterns.first),
        borrowed(patterns.actors), borrowed(patterns.weights), borrowed(patterns.actions),
        borrowed(patterns.rewards), borrowed(patterns.payoffs),
    )  # fmt: skip
    values, best, margins = borrowed(out.values), borrowed(out.best), borrowed(out.margins)
    actors, children = borrowed(out.actors), borrowed(states.children)
    order, begin = borrowed(states.order), borrowed(states.first)
    pattern_of = borrowed(states.patterns)
    child_rows = borrowed(local)
    lotteries = Lotteries(child_rows, shared.weights, shared.actions, shared.rewards)
    payoffs = borrowed(scratch.out)
    step = Scratch(borrowed(scratch.q), borrowed(scratch.starts), payoffs)
    players = values.shape[1] - 1
    for s in range(start, end):
        x = order[s]
        p = pattern_of[x]
        if s + AHEAD < end:
            coming = order[s + AHEAD]
            for j in range(begin[coming], begin[coming + 1]):
                fetch(values, children[j])
        first, last = shared.first[p], shared.first[p + 1]
        actor = shared.actors[p]
        if actor == LEAF:
            for i in range(players):
                values[x, 1 + i] = shared.payoffs[p, i]
            best[x], margins[x], actors[x] = OVER, np.nan, 0
            continue
        k = begin[x] - first
        for j in range(first, last):
            child_rows[j] = children[k + j]
        span = first, last
        best[x], margins[x] = back_up(solve_game, lotteries, span, actor, values, tolerance, step)
        actors[x] = max(actor, -1) + 1
        for i in range(players):
            values[x, 1 + i] = payoffs[i]


@njit(_i(_u1, _f2, _n1, _f2))
def join(requested, rows, numbers, out):
    """Copy the payoffs of the keys `requested` (k,), ascending, from rows (m, 1 + players), by
    ascending key, the first column, to those of their numbers in `out`; returns how many there are.
    """
    keys, rows, out = borrowed(rows.view(np.uint64)), borrowed(rows), borrowed(out)
    requested, numbers = borrowed(requested), borrowed(numbers)
    j, copied, count = 0, 0, rows.shape[0]
    for i in range(requested.size):
        step = 1
        while j + step < count and keys[j + step, 0] <= requested[i]:
            j, step = j + step, 2 * step  # ever longer steps, then ever shorter ones
        while step > 0:
            if j + step < count and keys[j + step, 0] <= requested[i]:
                j += step
            step //= 2
        if j < count and keys[j, 0] == requested[i]:
            for c in range(1, rows.shape[1]):
                out[numbers[i], c] = rows[j, c]
            copied += 1
    return copied


@dataclass(frozen=True)
class SolvedStage:
    """The n states of a stage, solved, by key.

    values: float64 (n, 1 + players), the first column the keys. best, margins, actors: (n,), as
    `Graph` has them. gap: float64 (n,), of a cycle that was solved between bounds, at its first.
    """

    values: Floats
    best: Ints
    margins: Floats
    actors: NDArray[np.int8]
    gap: Floats


class Sweeping:
    """A stage that is being solved: `fill` in the payoffs that it requests, then `solve`."""

    def __init__(self, game: Game, stage: Stage) -> None:
        self.game, self.stage = game, stage
        self.requested = [runs.all_keys() for _, runs, _ in stage.requests]
        """The keys of each of its requests."""
        n = len(stage.keys)
        self._values = np.empty((n + stage.outside, 1 + game.players))
        self._values[:n, 0] = stage.keys.view(np.float64)
        self._out = Sweep(self._values, np.empty(n, np.int64), np.empty(n), np.empty(n, np.int8))
        self._gap = np.zeros(n)

    def fill(self, request: int, rows: Floats, subset: NDArray[np.bool_] | None = None) -> int:
        """Copy the payoffs of the keys of the stage's request of this number, or of a subset (k,)
        of them, from rows (m, 1 + players) by key; returns how many of them are there."""
        keys, (_, _, numbers) = self.requested[request], self.stage.requests[request]
        if subset is not None:
            keys, numbers = keys[subset], numbers[subset]
        copied: int = join(keys, rows, numbers, self._values)
        return copied

    def solve(self, tolerance: float, stop: Callable[[], bool] = lambda: False) -> SolvedStage:
        """Solve the states.

        Raises StateError for a cycle that `solver.search.cycles` refuses, Stopped.
        """
        game, stage, n = self.game, self.stage, len(self.stage.keys)
        solve_game, players = matrix_game_solver(game), game.players
        scratch = scratch_of(max(game.max_edges, 1), players)
        local = np.empty(max(1, len(stage.patterns.weights)), np.int32)
        place = 0
        for start, members in (*stage.loops.tolist(), (n, 0)):
            while place < start:
                if stop():
                    raise Stopped
                end = min(start, place + BUDGET)
                sweep_on(
                    solve_game, stage.patterns, stage.states, self._out, tolerance, scratch, local,
                    place, end,
                )  # fmt: skip
                place = end
            if members:
                self._solve_component(place, members, tolerance)
                place += members
        rows = self._values[:n]
        refuse_beyond(game, stage.keys, rows[:, 1:])
        out = self._out
        return SolvedStage(rows, out.best, out.margins, out.actors, self._gap)

    def _solve_component(self, start: int, members: int, tolerance: float) -> None:
        """Solve the component of so many members that begins at a place of the order."""
        states, out = self.stage.states, self._out
        # By key: the same bits in whatever order they were reached.
        at = np.sort(states.order[start : start + members])
        member_states = unpack_all(self.game.strides, self.stage.keys[at])
        children = np.concatenate(
            [states.children[states.first[x] : states.first[x + 1]] for x in at]
        )
        edges = replace(expand(self.game, member_states), children=children)
        values = self._values[:, 1:]
        solved = cycles.solve(self.game, at, member_states, edges, values, tolerance)
        self._values[at, 1:], out.best[at] = solved.values, solved.best
        out.margins[at], out.actors[at] = solved.margins, solved.actors
        self._gap[at[0]] = solved.gap
