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

from collections import namedtuple

import numba as nb
import numpy as np

from solver.eight_games import (
    SCRATCH,
    SUPPORT,
    VALUE,
    WORST,
    read_support,
    simplex_eight,
    try_support,
)  # fmt: skip
from solver.simplex import MOST, WORK, solve_game

MEMORY = 3
"""Supports remembered a place."""
GAP, GAMES, TRIES, MISSES, ALONE, FALLBACKS = 0, 1, 2, 3, 4, 5
"""Where the counts stand: the largest gap; games; supports tried on eight; games that went through
the simplex, that were solved alone, that needed Bland's rule."""

Batches = namedtuple(
    "Batches",
    "known keys held hits games waiting targets places answer tableau scratch labels single work "
    "strategies stats",
)
"""What is in hand while a pattern is solved.

known, keys, held, hits: the supports of each place, their bits, how many, and how many games each
solved last. games: the eight to be solved (flat, `eight_games`). waiting, targets, places: those
put off; places[8] says how many. The rest is scratch, and stats the counts.
"""


@nb.njit(cache=True, nogil=True, error_model="numpy")
def new_batches(place_count, stats):
    """Empty batches for so many places."""
    return Batches(
        np.zeros((place_count, MEMORY, SUPPORT), np.int64),
        np.zeros((place_count, MEMORY), np.int64),
        np.zeros(place_count, np.int64),
        np.zeros((place_count, MEMORY), np.int64),
        np.zeros(MOST * MOST * 8),
        np.zeros(MOST * MOST * 8),
        np.zeros(8, np.int64),
        np.zeros(9, np.int64),
        np.zeros(24),
        np.zeros((MOST + 1) * (MOST + 1) * 8),
        np.zeros(SCRATCH * 8),
        np.zeros(33 * 8, np.int64),
        np.zeros((MOST, MOST)),
        np.zeros(WORK),
        np.zeros((2, MOST)),
        stats,
    )


@nb.njit(cache=True, nogil=True, error_model="numpy")
def solve_eight(batches, rows, columns, place, missing, targets, tolerance, out):
    """Solve those of the eight `batches.games` that have a bit in `missing`, now or later.

    The value of game lane is added to out[targets[lane]]; of all after `solve_waiting`.
    """
    b = batches
    known, hits = b.known[place], b.hits[place]
    b.stats[GAMES] += 8
    for guess in range(b.held[place]):
        found = missing & try_support(
            b.games, rows, columns, known[guess], b.scratch, b.answer, tolerance
        )
        b.stats[TRIES] += 1
        missing ^= found
        count = 0
        for lane in range(8):
            if found >> lane & 1:
                out[targets[lane]] += b.answer[VALUE + lane]
                count += 1
        hits[guess] = count
        if guess and count > hits[guess - 1]:
            for z in range(SUPPORT):
                known[guess, z], known[guess - 1, z] = known[guess - 1, z], known[guess, z]
            keys = b.keys[place]
            keys[guess], keys[guess - 1] = keys[guess - 1], keys[guess]
            hits[guess], hits[guess - 1] = hits[guess - 1], count
        if not missing:
            return
    for lane in range(8):
        if missing >> lane & 1:
            at = b.places[8]
            for cell in range(rows * columns):
                b.waiting[cell * 8 + at] = b.games[cell * 8 + lane]
            b.targets[at], b.places[at] = targets[lane], place
            b.places[8] += 1
            if at == 7:
                solve_waiting(b, rows, columns, tolerance, out)


@nb.njit(cache=True, nogil=True, error_model="numpy")
def solve_waiting(batches, rows, columns, tolerance, out):
    """Solve the games that wait, by the simplex, and remember their supports."""
    b = batches
    count = b.places[8]
    b.places[8] = 0
    if count == 0:
        return
    for lane in range(count, 8):  # some game in the lanes left over
        for cell in range(rows * columns):
            b.waiting[cell * 8 + lane] = b.waiting[cell * 8]
    b.stats[MISSES] += count
    solved = simplex_eight(
        b.waiting, rows, columns, b.tableau, b.scratch, b.labels, b.answer, tolerance
    )
    for lane in range(count):
        if solved >> lane & 1:
            out[b.targets[lane]] += b.answer[VALUE + lane]
            remember(b, rows, columns, lane)
            continue
        for r in range(rows):
            for c in range(columns):
                b.single[r, c] = b.waiting[(r * columns + c) * 8 + lane]
        x, y = b.strategies[0], b.strategies[1]
        value, gap, _, fallbacks = solve_game(b.single, rows, columns, False, x, y, b.work)
        out[b.targets[lane]] += value
        b.stats[ALONE] += 1
        b.stats[FALLBACKS] += fallbacks
        b.stats[GAP] = max(b.stats[GAP], gap)


@nb.njit(cache=True, nogil=True, error_model="numpy")
def remember(batches, rows, columns, lane):
    """Keep the support of a lane of the games that waited, unless its place knows it."""
    b = batches
    place = b.places[lane]
    key = 0
    for c in range(columns):
        r = b.labels[128 + c * 8 + lane] - columns
        if r >= 0:
            key |= 1 << r
    for r in range(rows):
        c = b.labels[r * 8 + lane]
        if c < columns:
            key |= 1 << (16 + c)
    for guess in range(b.held[place]):
        if b.keys[place, guess] == key:
            return
    at = min(b.held[place], MEMORY - 1)
    b.held[place] = at + 1
    b.keys[place, at], b.hits[place, at] = key, 0
    read_support(b.waiting, rows, columns, lane, b.scratch, b.labels, b.single, b.known[place, at])


@nb.njit(cache=True, nogil=True, error_model="numpy")
def note_worst(batches):
    """Bring the largest gap of the eights into the counts."""
    for lane in range(8):
        batches.stats[GAP] = max(batches.stats[GAP], batches.answer[WORST + lane])
