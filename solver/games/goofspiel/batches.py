"""Many matrix games of one pattern, eight at a time: remembered supports first, then the simplex.

Of the neighbours of a game, the same pattern and nearly the same deck, most have the same optimal
support. For each **place**, the rank of the upcard among the cards that may be turned up, the last
supports are remembered and tried on all eight games, best first (`eight_games.try_support`). Games
that none of them solves wait until there are eight, and go through the simplex together; the
supports found there are remembered. A game that this does not solve either (its gap is not closed)
is solved alone by `simplex.solve_game`, which tries harder, and counted.

Every value comes with its gap, worked out on the game itself. Which games wait for which depends
on nothing but the pattern, so the bits of a pattern do not depend on who solves it.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from luckbase.solver.matrix_game.eight_games import (
    GAMES,
    INDICES,
    LABELS,
    NUMBERS,
    SUPPORT,
    VALUE,
    WAITING,
    WORST,
    read_support,
    simplex_eight,
    try_support,
)  # fmt: skip
from luckbase.solver.matrix_game.simplex import typed
from luckbase.solver.matrix_game.types import SOLVE_GAME, WORK

MEMORY = 6
"""Supports remembered a place. At 11 cards one leaves 50 games in a hundred to the simplex, two 30,
three 20, five 11, eight 8; but each costs time where it fails."""
GAP, SOLVED, TRIES, MISSES, ALONE, FALLBACKS = 0, 1, 2, 3, 4, 5
"""Where the counts stand: the largest gap; games; supports tried on eight; games that went through
the simplex, that were solved alone, that needed Bland's rule."""
COUNTS = 6


def tally_of(counts: np.ndarray) -> dict[str, float]:
    """The counts (COUNTS,) by name; those that begin with "worst" are maxima, the others sums."""
    names = ("worst gap", "games", "tries", "by simplex", "alone", "fallbacks")
    return dict(zip(names, counts.tolist(), strict=True))


# In the indices z of the workspace, after those of `eight_games`: of the games that wait, where
# their values go, their places, how many they are; then the places: supports held, the supports.
_TARGETS, _PLACES, _COUNT, _FIRST = INDICES, INDICES + 8, INDICES + 16, INDICES + 17
_KEY, _HITS, _SUPPORT, _RECORD = 0, 1, 2, 2 + SUPPORT
"""A remembered support: the bits of its rows and columns, how many games it last solved, itself."""
_PLACE = 1 + MEMORY * _RECORD

_n, _f, _i1, _f1 = nb.int64, nb.float64, nb.int64[::1], nb.float64[::1]
ALONE_TYPE = nb.types.FunctionType(SOLVE_GAME)
"""`simplex.solve_game`, which is passed down as `alone`."""


@typed(nb.types.Tuple((_f1, _i1))(_n))
def new_workspace(places):
    """The workspace (f, z) of `eight_games`, with room to remember supports of so many places."""
    return np.zeros(NUMBERS), np.zeros(_FIRST + places * _PLACE, np.int64)


@typed(nb.void(_i1))
def forget(z):
    """Begin another pattern: no supports are known."""
    for place in range(_FIRST, z.size, _PLACE):
        z[place] = 0


@typed(nb.void(_f1, _i1, _n, _n, _n))
def remember(f, z, rows, columns, lane):
    """Keep the support of a lane of the games that waited, unless its place knows it."""
    place, key = _FIRST + z[_PLACES + lane] * _PLACE, 0
    for c in range(columns):
        r = z[LABELS + 128 + c * 8 + lane] - columns
        if r >= 0:
            key |= 1 << r
    for r in range(rows):
        c = z[LABELS + r * 8 + lane]
        if c < columns:
            key |= 1 << (16 + c)
    for guess in range(z[place]):
        if z[place + 1 + guess * _RECORD + _KEY] == key:
            return
    at = min(z[place], MEMORY - 1)
    z[place] = at + 1
    known = place + 1 + at * _RECORD
    z[known + _KEY], z[known + _HITS] = key, 0
    read_support(f, z, WAITING, rows, columns, lane, known + _SUPPORT)


@typed(nb.void(ALONE_TYPE, _f1, _i1, _n, _n, _n, _f, _f1, _f1))
def solve_waiting(alone, f, z, rows, columns, count, tolerance, out, stats):  # noqa: PLR0913  # a workspace and eight games: once an eight, tuples count references
    """Solve the first `count` games that wait, by the simplex, and remember their supports."""
    z[_COUNT] = 0
    for lane in range(count, 8):  # some game in the lanes left over
        for cell in range(rows * columns):
            f[WAITING + cell * 8 + lane] = f[WAITING + cell * 8]
    stats[MISSES] += count
    solved = simplex_eight(f, z, WAITING, rows, columns, tolerance)
    for lane in range(count):
        if solved >> lane & 1:
            out[z[_TARGETS + lane]] += f[VALUE + lane]
            remember(f, z, rows, columns, lane)
            continue
        game, work = np.empty((rows, columns)), np.empty(WORK)
        for r in range(rows):
            for c in range(columns):
                game[r, c] = f[WAITING + (r * columns + c) * 8 + lane]
        x, y = np.empty(rows), np.empty(columns)
        value, gap, _, fallbacks = alone(game, rows, columns, False, x, y, work)
        out[z[_TARGETS + lane]] += value
        stats[ALONE] += 1
        stats[FALLBACKS] += fallbacks
        stats[GAP] = max(stats[GAP], gap)


@typed(nb.void(ALONE_TYPE, _f1, _i1, _n, _n, _n, _n, _i1, _n, _n, _f, _f1, _f1))
def solve_eight(  # noqa: C901, PLR0913  # a workspace and eight games: once an eight, tuples count references
    alone, f, z, rows, columns, place, missing, targets, at, start, tolerance, out, stats
):  # fmt: skip
    """Solve those of the eight games at GAMES that have a bit in `missing`, now or later.

    The value of the game in lane l is added to out[start + targets[at + l]]; that of a game that
    waits when it is solved, at the latest by `finish`.
    """
    stats[SOLVED] += 8
    known = _FIRST + place * _PLACE + 1
    for guess in range(z[known - 1]):
        stats[TRIES] += 1
        found = try_support(f, z, GAMES, rows, columns, known + _SUPPORT, missing, tolerance)
        missing ^= found
        count = 0
        for lane in range(8):
            if found >> lane & 1:
                out[start + targets[at + lane]] += f[VALUE + lane]
                count += 1
        z[known + _HITS] = count
        if guess and count > z[known - _RECORD + _HITS]:
            for i in range(known, known + _RECORD):
                z[i], z[i - _RECORD] = z[i - _RECORD], z[i]
        if not missing:
            return
        known += _RECORD
    for lane in range(8):
        if missing >> lane & 1:
            last = z[_COUNT]
            for cell in range(rows * columns):
                f[WAITING + cell * 8 + last] = f[GAMES + cell * 8 + lane]
            z[_TARGETS + last], z[_PLACES + last] = start + targets[at + lane], place
            z[_COUNT] = last + 1
            if last == 7:
                solve_waiting(alone, f, z, rows, columns, 8, tolerance, out, stats)


@typed(nb.void(ALONE_TYPE, _f1, _i1, _n, _n, _f, _f1, _f1))
def finish(alone, f, z, rows, columns, tolerance, out, stats):
    """Solve the games that still wait."""
    if z[_COUNT]:
        solve_waiting(alone, f, z, rows, columns, z[_COUNT], tolerance, out, stats)
    for lane in range(8):
        stats[GAP] = max(stats[GAP], f[WORST + lane])
