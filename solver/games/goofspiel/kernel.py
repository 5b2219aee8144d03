"""The kernels of Goofspiel: they fill patterns of a layer from the layer below.

With f the value of a state for player one, j cards, upcard k, and the bids r, c that differ
(`bids`), for points and, with the lead d, for winning::

    A[r, c] = k wins[r, c] + f(children[r, c], P - k)           f of the swapped: -f
    A[r, c] = f(children[r, c], P - k, d + k wins[r, c])        f of the swapped: 1 - f(.., -d)
    f(pattern, P) = 1/j sum over k in P of the value of A

A lead beyond the deck's points counts 1, or 0 on the other side.

**Patterns.** Bids are compared and never added, so two hands V (mine) and Y (theirs) of j cards
each matter only through their pattern: the ranks that occur, from low to high, each "mine only"
(A), "theirs only" (B) or "both" (C). It is a Delannoy path from (0, 0) to (j, j). With t ties it
has 2j - t steps, and needs as many ranks: it occurs if 2j - t <= N. A pattern is a pair of bit
masks, bit i for the i-th rank from below; gaps, ranks that nobody holds, are skipped everywhere.

Swapping the players turns A into B and back. The **canonical** one of the two has A as its first
step that is no tie; only the pattern of j ties is its own swap. Canonical patterns of a layer are
numbered from 0: the j ties first, then by the number m = 0, 1, … of leading ties, then what follows
the first A in lexicographic order, C before A before B. With::

    D(a, b, r) = number of paths of a my cards and b their cards in at most r steps
               = D(a-1, b-1, r-1) + D(a-1, b, r-1) + D(a, b-1, r-1),    D(0, 0, r >= 0) = 1

the number of a pattern is the sum of the D of the branches passed by. A number with its sign bit
says both: ``x >= 0`` the canonical pattern x, ``x < 0`` the swap of the pattern ``~x``.

A **deck** is a set of cards, bit k - 1 for the card k. Decks of one size are numbered in the
ascending order of their masks.

Two of my cards with neither a tie nor one of theirs between them win, lose and leave the same: rows
of a game are **classes**, runs of A or single C, and columns runs of B or single C.

**Eights.** For points a lane is a deck: of eight neighbouring decks Q = P - k the values of the
children stand side by side; they are gathered once and serve every card that Q does not have, the
i-th of each Q from above at a time. For winning a lane is a lead, of one Q and one k; the values of
Q's children are copied once with enough ones and zeros on both sides, and a card shifts them.

**Remembered supports.** Of the neighbours of a game, the same pattern and nearly the same deck,
most have the same optimal support. For each **place**, the rank of the upcard among the cards that
may be turned up, the last supports are remembered and tried on all eight games, best first
(`eight_games.try_support`). Games that none of them solves wait until there are eight, and go
through the simplex together; the supports found there are remembered. A game that this does not
solve either (its gap is not closed) is solved alone by `simplex.solve_game`, which tries harder,
and counted. Four supports are tried an eight, five at 9 cards.

Every value comes with its gap, worked out on the game itself. Which games wait for which depends
on nothing but the pattern, so the bits of a pattern do not depend on who solves it.
"""

from __future__ import annotations

import numpy as np

from luckbase.solver.compiled import bits_in, njit, types
from luckbase.solver.games.goofspiel.game import MAX_CARDS, MINE, THEIRS
from luckbase.solver.matrix_game import SOLVE_GAME, WORK
from luckbase.solver.matrix_game.eight_games import (
    GAMES,
    INDICES,
    LABELS,
    LARGEST_SUPPORT,
    NUMBERS,
    SUPPORT,
    VALUE,
    WAITING,
    WORST,
    read_support,
    simplex_eight,
    try_support,
)  # fmt: skip
from luckbase.solver.matrix_game.lanes import load, splat, store, store_where
from luckbase.solver.matrix_game.simplex import typed

MEMORY = 9
"""Supports remembered a place. With 13 cards and hands of 8, four leave 15 games in 100 to the
simplex, six 9, nine 5; but each costs time where it fails."""
_GAP, SUMS = NUMBERS, NUMBERS + 1
"""In the numbers f of the workspace, after those of `eight_games`: the largest gap of a game that
was solved alone, then the sums."""
# In its indices z, after those of `eight_games`: of the games that wait, where their values go,
# their places, how many they are; then the places: supports held, the supports.
_TARGETS, _PLACES, _COUNT, _FIRST = INDICES, INDICES + 8, INDICES + 16, INDICES + 17
_KEY, _HITS, _SUPPORT, _RECORD = 0, 1, 2, 2 + SUPPORT
"""A remembered support: the bits of its rows and columns, how many games it last solved, itself."""
_PLACE = 1 + MEMORY * _RECORD

_n, _f, _i1, _f1 = types.int64, types.float64, types.int64[::1], types.float64[::1]
_pair = types.UniTuple(types.int64, 2)
_f2, _i2, _i3 = types.float64[:, ::1], types.int64[:, ::1], types.int64[:, :, ::1]
ALONE_TYPE = types.FunctionType(SOLVE_GAME)
"""`simplex.solve_game`, which is passed down as `alone`."""


# --- patterns ------------------------------------------------------------------------------------


@njit(_n(_i3, _n, _n, _n, _n))
def rank_pattern(d, cards, size, mine, theirs):
    """The number of the pattern of two hands of `size` cards; ``~number`` if it is the swap."""
    a = b = size
    left, index, swapped, tied = cards, 1, False, True
    both = mine | theirs
    while both:
        bit = both & -both
        both ^= bit
        left -= 1
        if tied:
            if mine & theirs & bit:
                index += d[a - 1, b, left]
            else:
                tied = False
                if theirs & bit:
                    swapped = True
                    mine, theirs = theirs, mine
        elif not mine & theirs & bit:
            index += d[a - 1, b - 1, left]
            if theirs & bit:
                index += d[a - 1, b, left]
        a -= mine & bit != 0
        b -= theirs & bit != 0
    if tied:
        return 0
    return ~index if swapped else index


@njit(_pair(_i3, _n, _n, _n))
def unrank_pattern(d, cards, size, index):
    """(mine, theirs): the lowest ranks that have the canonical pattern `index`."""
    full = (1 << size) - 1
    if index == 0:
        return full, full
    mine = theirs = 0
    a = b = size
    left, left_over, bit, tied = cards, index - 1, 1, True
    while a or b:
        left -= 1
        ties, alone = d[a - 1, b - 1, left], d[a - 1, b, left]
        if tied:
            is_mine, is_theirs = True, left_over >= alone
            tied = is_theirs
            left_over -= alone if is_theirs else 0
        elif left_over < ties:
            is_mine = is_theirs = True
        else:
            is_mine, is_theirs = left_over < ties + alone, left_over >= ties + alone
            left_over -= ties if is_mine else ties + alone
        if is_mine:
            mine, a = mine | bit, a - 1
        if is_theirs:
            theirs, b = theirs | bit, b - 1
        bit <<= 1
    return mine, theirs


@njit(_n(_n, _n, _i1))
def classes(own, rival, bits):
    """Write the lowest bit of each class of `own` cards into `bits`; returns how many."""
    count, joins = 0, False
    both = own | rival
    while both:
        bit = both & -both
        both ^= bit
        if own & bit:
            tie = rival & bit != 0
            if tie or not joins:
                bits[count] = bit
                count += 1
            joins = not tie
        else:
            joins = False
    return count


@njit(
    _pair(_i3, _n, _n, _n, _n, _i2, _i2),
)
def bids(d, cards, size, mine, theirs, children, wins):
    """The game of distinct bids: (rows, columns).

    children[r, c] is the pattern left in the layer below, with its sign bit; wins[r, c] is 1 where
    my bid is higher, 0 at a tie, -1 where theirs is. Both int64, (15, 15) at least; written.
    """
    my_bits, their_bits = np.empty(MAX_CARDS, np.int64), np.empty(MAX_CARDS, np.int64)
    rows, columns = classes(mine, theirs, my_bits), classes(theirs, mine, their_bits)
    for r in range(rows):
        for c in range(columns):
            x, y = my_bits[r], their_bits[c]
            children[r, c] = rank_pattern(d, cards, size - 1, mine ^ x, theirs ^ y)
            wins[r, c] = (x > y) - (x < y)
    return rows, columns


@njit(types.UniTuple(_i1, 2)(_i3, _n, _i2))
def pattern_numbers(d, cards, states):
    """int64 (n,), (n,): how many cards the hands of states (n, fields) have, and their pattern,
    with its sign bit."""
    sizes, numbers = np.empty(len(states), np.int64), np.empty(len(states), np.int64)
    for i in range(len(states)):
        mine, theirs = states[i, MINE], states[i, THEIRS]
        sizes[i] = bits_in(mine)
        numbers[i] = rank_pattern(d, cards, sizes[i], mine, theirs)
    return sizes, numbers


@njit(_i2(_i3, _n, _n, _i1))
def hands_of(d, cards, size, numbers):
    """int64 (n, 2): my hand and theirs of canonical patterns (n,)."""
    hands = np.empty((numbers.size, 2), np.int64)
    for i in range(numbers.size):
        hands[i, 0], hands[i, 1] = unrank_pattern(d, cards, size, numbers[i])
    return hands


# --- the games that wait -------------------------------------------------------------------------


@typed(types.Tuple((_f1, _i1))(_n, _n))
def new_workspace(places, sums):
    """The workspace (f, z) of `eight_games`, with room to remember supports of so many places and
    for so many sums."""
    return np.zeros(SUMS + sums), np.zeros(_FIRST + places * _PLACE, np.int64)


@typed(types.void(_f1, _i1))
def forget(f, z):
    """Begin another pattern: no supports are known, and all sums are 0."""
    for place in range(_FIRST, z.size, _PLACE):
        z[place] = 0
    for at in range(SUMS, f.size):
        f[at] = 0.0


@typed(types.void(_f1, _i1, _n, _n, _n))
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
    known = place + 1 + at * _RECORD
    z[known + _KEY], z[known + _HITS] = key, 0
    read_support(f, z, WAITING, rows, columns, lane, known + _SUPPORT)
    z[place] = at + (z[known + _SUPPORT] <= LARGEST_SUPPORT)


@typed(types.void(ALONE_TYPE, _f1, _i1, _n, _n, _n, _f))
def solve_waiting(alone, f, z, rows, columns, count, tolerance):
    """Solve the first `count` games that wait, by the simplex, and remember their supports."""
    z[_COUNT] = 0
    for lane in range(count, 8):  # some game in the lanes left over
        for cell in range(rows * columns):
            f[WAITING + cell * 8 + lane] = f[WAITING + cell * 8]
    solved = simplex_eight(f, z, WAITING, rows, columns, tolerance)
    for lane in range(count):
        if solved >> lane & 1:
            f[z[_TARGETS + lane]] += f[VALUE + lane]
            remember(f, z, rows, columns, lane)
            continue
        game, work = np.empty((rows, columns)), np.empty(WORK)
        for r in range(rows):
            for c in range(columns):
                game[r, c] = f[WAITING + (r * columns + c) * 8 + lane]
        x, y = np.empty(rows), np.empty(columns)
        value, gap = alone(game, rows, columns, False, x, y, work)
        f[z[_TARGETS + lane]] += value
        f[_GAP] = max(f[_GAP], gap)


@typed(types.void(ALONE_TYPE, _f1, _i1, _n, _n, _n, _n, _n, _f))
def solve_eight(alone, f, z, rows, columns, place, missing, slot, tolerance):  # noqa: PLR0913  # a workspace and eight games: once an eight, tuples count references
    """Solve those of the eight games at GAMES that have a bit in `missing`, now or later.

    The value of the game in lane l is added to f[slot + l]; that of a game that waits when it is
    solved, at the latest by `finish`.
    """
    known = _FIRST + place * _PLACE + 1
    for guess in range(z[known - 1]):
        solved = try_support(f, z, GAMES, rows, columns, known + _SUPPORT, missing, tolerance)
        missing ^= solved
        store_where(f, slot, load(f, slot) + load(f, VALUE), solved)
        hits = bits_in(solved)
        z[known + _HITS] = hits
        if guess and hits > z[known - _RECORD + _HITS]:
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
            z[_TARGETS + last], z[_PLACES + last] = slot + lane, place
            z[_COUNT] = last + 1
            if last == 7:
                solve_waiting(alone, f, z, rows, columns, 8, tolerance)


@typed(types.void(ALONE_TYPE, _f1, _i1, _n, _n, _f))
def finish(alone, f, z, rows, columns, tolerance):
    """Solve the games that still wait."""
    if z[_COUNT]:
        solve_waiting(alone, f, z, rows, columns, z[_COUNT], tolerance)


@typed(types.void(_f1, _f1))
def raise_gap(f, gap):
    """Raise gap[0] to the largest gap of a workspace."""
    gap[0] = max(gap[0], f[_GAP])
    for lane in range(8):
        gap[0] = max(gap[0], f[WORST + lane])


@typed(types.void(ALONE_TYPE, _i3, _n, _n, _n, _f1, _i1, _n, _f2, _i2, _f2, _f, _f1))
def solve_for_points(  # noqa: C901, PLR0913  # a kernel: in tuples its arrays count references
    alone, d, cards, size, first, below, starts, width, upcards, slots, out, tolerance, gap
):  # fmt: skip
    """Add to `out`, of patterns first, first + 1, … of a tier of `size` cards, what a tier below
    gives to their values.

    below: of the tier below, `width` decks of each pattern from starts[pattern] on. upcards:
    `layout.upcards_of`; slots: int64 (decks, cards), where in them the cards of each deck stand
    that lead to the tier below. out: (patterns, decks), raised. gap: (1,),
    the largest gap of a game, raised.
    """
    children = np.empty((MAX_CARDS, MAX_CARDS), np.int64)
    wins = np.empty((MAX_CARDS, MAX_CARDS), np.int64)
    base = np.zeros(MAX_CARDS * MAX_CARDS * 8)
    side, won = np.empty(MAX_CARDS * MAX_CARDS), np.empty(MAX_CARDS * MAX_CARDS)
    start = np.empty(MAX_CARDS * MAX_CARDS, np.int64)
    places, padded = upcards.shape
    flat_upcards = upcards.reshape(-1)
    f, z = new_workspace(places, places * padded)
    for p in range(out.shape[0]):
        if first + p == 0:
            continue
        mine, theirs = unrank_pattern(d, cards, size, first + p)
        rows, columns = bids(d, cards, size, mine, theirs, children, wins)
        cells = rows * columns
        for r in range(rows):
            for c in range(columns):
                child, cell = children[r, c], r * columns + c
                start[cell], side[cell] = starts[max(child, ~child)], 1.0 if child >= 0 else -1.0
                won[cell] = wins[r, c]
        forget(f, z)
        for q in range(0, width, 8):
            for cell in range(cells):
                if q + 8 <= width:
                    v = load(below, start[cell] + q)
                    store(base, cell * 8, v * splat(side[cell]))
                else:
                    for lane in range(8):
                        v = below[start[cell] + min(q + lane, width - 1)]
                        base[cell * 8 + lane] = v * side[cell]
            for i in range(places):
                k = load(flat_upcards, i * padded + q)
                for cell in range(cells):
                    store(f, GAMES + cell * 8, load(base, cell * 8) + k * splat(won[cell]))
                solve_eight(
                    alone, f, z, rows, columns, i, (1 << min(8, width - q)) - 1,
                    SUMS + i * padded + q, tolerance,
                )  # fmt: skip
        finish(alone, f, z, rows, columns, tolerance)
        for deck in range(out.shape[1]):
            total = 0.0
            for i in range(slots.shape[1]):
                total += f[SUMS + slots[deck, i]]
            out[p, deck] += total / size
    raise_gap(f, gap)


@typed(types.void(ALONE_TYPE, _i3, _n, _n, _n, _f1, _i1, _f2, _i2, _i2, _i2, _f2, _f, _f1))
def solve_for_winning(  # noqa: C901, PLR0913  # a kernel: in tuples its arrays count references
    alone, d, cards, size, first, below, starts, upcards, targets, under, layer, out, tolerance,
    gap,
):  # fmt: skip
    """The same for winning: below and out have a column for each deck and lead.

    under, layer: int64 (decks, 2) of the tier below and this one, first column and reach, as in
    `layout`.
    """
    children = np.empty((MAX_CARDS, MAX_CARDS), np.int64)
    wins = np.empty((MAX_CARDS, MAX_CARDS), np.int64)
    places = upcards.shape[0]
    half = np.max(under[:, 1]) + 2 * cards + 8
    length = 2 * half + 1
    leads = np.zeros((MAX_CARDS * MAX_CARDS, length))
    flat_leads = leads.reshape(-1)
    shift = np.zeros(MAX_CARDS * MAX_CARDS, np.int64)
    f, z = new_workspace(places * 32, out.shape[1] + 8)
    for p in range(out.shape[0]):
        mine, theirs = unrank_pattern(d, cards, size, first + p)
        rows, columns = bids(d, cards, size, mine, theirs, children, wins)
        cells = rows * columns
        for r in range(rows):
            for c in range(columns):
                shift[r * columns + c] = wins[r, c]
        forget(f, z)
        for q in range(under.shape[0]):
            reach = under[q, 1]
            for cell in range(cells):
                child, middle = children[cell // columns, cell % columns], under[q, 0] + reach
                for lead in range(-half, half + 1):
                    if lead > reach:
                        v = 1.0
                    elif lead < -reach:
                        v = 0.0
                    elif child >= 0:
                        v = below[starts[child] + middle + lead]
                    else:
                        v = 1.0 - below[starts[~child] + middle - lead]
                    leads[cell, half + lead] = v
            for i in range(places):
                k, deck = int(upcards[i, q]), targets[i, q]
                max_lead, column = layer[deck, 1], layer[deck, 0] + layer[deck, 1]
                for lead in range(-max_lead, max_lead + 1, 8):
                    for cell in range(cells):
                        at = cell * length + half + lead + k * shift[cell]
                        store(f, GAMES + cell * 8, load(flat_leads, at))
                    solve_eight(
                        alone, f, z, rows, columns, i * 32 + ((lead + 128) >> 3),
                        (1 << min(8, max_lead - lead + 1)) - 1, SUMS + column + lead, tolerance,
                    )  # fmt: skip
        finish(alone, f, z, rows, columns, tolerance)
        for at in range(out.shape[1]):
            out[p, at] += f[SUMS + at] / size
    raise_gap(f, gap)
