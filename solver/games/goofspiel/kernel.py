"""The kernels of Goofspiel: they fill patterns of a layer from the layer below.

With f the value of a state for player 1, j cards, upcard k, and r, c the distinct bids (`bids`),
for points and, with the lead d, for winning::

    A[r, c] = k wins[r, c] + f(children[r, c], P - k)           f of the swapped: -f
    A[r, c] = f(children[r, c], P - k, d + k wins[r, c])        f of the swapped: 1 - f(.., -d)
    f(pattern, P) = 1/j sum over k in P of the value of A

A lead beyond the deck's points counts 1, or 0 on the other side.

**Patterns.** Bids are compared and never added, so two hands V (mine) and Y (theirs) of j cards
each matter only through their pattern: the ranks that occur, from low to high, each "mine only"
(A), "theirs only" (B) or "both" (C). It is a Delannoy path from (0, 0) to (j, j). With t ties it
has 2j - t steps and needs as many ranks: it occurs if 2j - t <= N. A pattern is a pair of bit
masks, with bit i for the i-th rank from below. Gaps, ranks that neither player holds, are skipped
everywhere.

Swapping the players exchanges A and B. The **canonical** one of the two has A as its first step
that is not a tie; only the pattern of j ties is its own swap. Canonical patterns of a layer are
numbered from 0: the j ties first, then by the number m = 0, 1, … of leading ties, then by the steps
after the first A in lexicographic order, C before A before B. With::

    D(a, b, r) = number of paths of a my cards and b their cards in at most r steps
               = D(a-1, b-1, r-1) + D(a-1, b, r-1) + D(a, b-1, r-1),    D(0, 0, r >= 0) = 1

the number of a pattern sums the D of all branches that come before its own. A number with its sign
bit encodes either: ``x >= 0`` is the canonical pattern x, ``x < 0`` the swap of pattern ``~x``.

A **deck** is a set of cards, with bit k - 1 for card k. Decks of one size are numbered in the
ascending order of their masks.

Two of my cards with no tie and none of their cards between them are equivalent: they beat the same
cards and leave the same pattern. So rows of a game are **classes**, runs of A or a single C, and
columns are runs of B or a single C.

**Sixteens.** For points a lane is a deck: each of sixteen neighbouring decks Q = P - k turns up the
i-th card from above that it lacks. For winning a lane is a lead, of one Q and one k. The values of
Q's children are copied once, with enough ones and zeros on both sides, and a card shifts them.

**Remembered supports.** Most neighbours of a game, with the same pattern and nearly the same deck,
have the same optimal support. The last supports are remembered and tried on all sixteen games, best
first (`sixteen_games.try_support`). A game that none of them solves is solved alone by
`simplex.solve_game`; its support is remembered and tried on the remaining games. For points the
i-th card of all decks comes before the next one, and a pattern has one memory of supports. For
winning each **place**, an upcard and sixteen leads, has one.

Every value comes with its gap, computed on the game itself. The supports that are tried depend only
on the pattern, so the bits of a pattern do not depend on the worker.
"""

from __future__ import annotations

import numpy as np

from luckbase.solver.compiled import njit, types
from luckbase.solver.games.goofspiel.rules import MAX_CARDS, MINE, THEIRS
from luckbase.solver.matrix_games import MAX_SIDE, SOLVE_GAME, TRY_SUPPORT, WORK
from luckbase.solver.matrix_games.sixteen_games import (
    LANES,
    LARGEST_SUPPORT,
    NUMBERS,
    ROW,
    SUPPORT,
    VALUE,
    WORST,
    W,
    read_support,
    typed,
)
from luckbase.solver.search.keys import bits_in

MEMORY = 9  # supports remembered for each place

_0, _1 = np.uint64(0), np.uint64(1)
_GAP, _SUMS = NUMBERS, NUMBERS + W
"""Positions in the workspace f, after those of `sixteen_games`: the largest gap, the sums."""
_KEY, _SCORE, _SUPPORT, _RECORD = _0, _1, _1 + _1, _1 + _1 + SUPPORT
"""A remembered support: the bits of its rows and columns; the number of games that it solved,
recent ones weighted more; the support."""
_PLACE = _1 + np.uint64(MEMORY) * _RECORD
"""In the workspace z, for each place: the number of remembered supports, and the supports."""

_n, _f, _u = types.int64, types.float64, types.uint64
_i1, _i2, _i3 = types.int64[::1], types.int64[:, ::1], types.int64[:, :, ::1]
_f1, _f2, _pair = types.float64[::1], types.float64[:, ::1], types.UniTuple(types.int64, 2)
ALONE_TYPE, TRY_TYPE = types.FunctionType(SOLVE_GAME), types.FunctionType(TRY_SUPPORT)
"""The types of `alone`, `simplex.solve_game`, and of `sixteen_games.try_support`."""


# --- patterns ------------------------------------------------------------------------------------


@njit(_n(_i3, _n, _n, _n, _n))
def rank_pattern(d, cards, size, mine, theirs):
    """Return the number of the pattern of two hands of `size` cards; ``~number`` for the swap."""
    a = b = size
    ranks_left, index, swapped, tied = cards, 1, False, True
    both = mine | theirs
    while both:
        bit = both & -both
        both ^= bit
        ranks_left -= 1
        if tied:
            if mine & theirs & bit:
                index += d[a - 1, b, ranks_left]
            else:
                tied = False
                if theirs & bit:
                    swapped = True
                    mine, theirs = theirs, mine
        elif not mine & theirs & bit:
            index += d[a - 1, b - 1, ranks_left]
            if theirs & bit:
                index += d[a - 1, b, ranks_left]
        a -= mine & bit != 0
        b -= theirs & bit != 0
    if tied:
        return 0
    return ~index if swapped else index


@njit(_pair(_i3, _n, _n, _n))
def unrank_pattern(d, cards, size, index):
    """Return (mine, theirs) on the lowest ranks with the canonical pattern `index`."""
    full = (1 << size) - 1
    if index == 0:
        return full, full
    mine = theirs = 0
    a = b = size
    ranks_left, remainder, bit, tied = cards, index - 1, 1, True
    while a or b:
        ranks_left -= 1
        ties, alone = d[a - 1, b - 1, ranks_left], d[a - 1, b, ranks_left]
        if tied:
            is_mine, is_theirs = True, remainder >= alone
            tied = is_theirs
            remainder -= alone if is_theirs else 0
        elif remainder < ties:
            is_mine = is_theirs = True
        else:
            is_mine, is_theirs = remainder < ties + alone, remainder >= ties + alone
            remainder -= ties if is_mine else ties + alone
        if is_mine:
            mine, a = mine | bit, a - 1
        if is_theirs:
            theirs, b = theirs | bit, b - 1
        bit <<= 1
    return mine, theirs


@njit(_n(_n, _n, _i1))
def classes(hand, rival, bits):
    """Write the lowest bit of each class of cards in `hand` into `bits`; return their number."""
    count, joins = 0, False
    both = hand | rival
    while both:
        bit = both & -both
        both ^= bit
        if hand & bit:
            tie = rival & bit != 0
            if tie or not joins:
                bits[count] = bit
                count += 1
            joins = not tie
        else:
            joins = False
    return count


@njit(_pair(_i3, _n, _n, _n, _n, _i2, _i2))
def bids(d, cards, size, mine, theirs, children, wins):
    """Write the game of distinct bids; return (rows, columns).

    children: int64 (15, 15) or more, written: the pattern left in the layer below, with its sign
        bit.
    wins: int64 (15, 15) or more, written: 1 if my bid is higher, 0 for a tie, -1 if theirs is.
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
    """Return the sizes of the hands of states (n, fields), and their patterns with the sign bit.

    int64 (n,) each.
    """
    sizes, numbers = np.empty(len(states), np.int64), np.empty(len(states), np.int64)
    for i in range(len(states)):
        mine, theirs = states[i, MINE], states[i, THEIRS]
        sizes[i] = bits_in(mine)
        numbers[i] = rank_pattern(d, cards, sizes[i], mine, theirs)
    return sizes, numbers


@njit(_i2(_i3, _n, _n, _i1))
def hands_of(d, cards, size, numbers):
    """Return my hand and theirs of canonical patterns (n,): int64 (n, 2)."""
    hands = np.empty((numbers.size, 2), np.int64)
    for i in range(numbers.size):
        hands[i, 0], hands[i, 1] = unrank_pattern(d, cards, size, numbers[i])
    return hands


# --- sixteen games -------------------------------------------------------------------------------


@typed
def new_workspace(places, sums):
    """Return the workspace (a, f, z): games; numbers and sums; supports of this many places."""
    sizes = _SUMS + np.uint64(sums), np.uint64(places) * _PLACE
    return np.zeros(MAX_SIDE * ROW), np.zeros(sizes[0]), np.zeros(sizes[1], np.uint64)


@typed
def forget(f, z):
    """Begin another pattern: forget all supports and set all sums to 0."""
    for place in range(_0, np.uint64(z.size), _PLACE):
        z[place] = _0
    for k in range(_SUMS, np.uint64(f.size)):
        f[k] = 0.0


@typed
def repeat_bids(children, wins, rows, columns):
    """Repeat the last row and column until the game has at least four of each (`try_support`).

    Returns the new numbers of rows and columns.
    """
    m, n = max(rows, 4), max(columns, 4)
    for r in range(m):
        for c in range(n):
            from_r, from_c = min(r, rows - 1), min(c, columns - 1)
            children[r, c], wins[r, c] = children[from_r, from_c], wins[from_r, from_c]
    return np.uint64(m), np.uint64(n)


@typed
def remember(z, place, game, m, n, labels, x, y):
    """Record the support of a game as the last one of its place; return the record.

    Returns 0 if the support is too large or already known.
    """
    key = _0
    for c in range(n):
        if labels[1, c] >= n:
            key |= _1 << np.uint64(labels[1, c] - n)
    for r in range(m):
        if labels[0, r] < n:
            key |= _1 << np.uint64(labels[0, r] + MAX_SIDE)
    for guess in range(z[place]):
        if z[place + _1 + guess * _RECORD + _KEY] == key:
            return _0
    number = min(z[place], np.uint64(MEMORY - 1))
    known = place + _1 + number * _RECORD
    read_support(game, m, n, labels, x, y, z, known + _SUPPORT)
    z[known + _KEY], z[known + _SCORE] = key, _0
    if z[known + _SUPPORT] > np.uint64(LARGEST_SUPPORT):
        z[place] = number
        return _0
    z[place] = number + _1
    return known


@typed
def add_solved(try_support, a, m, n, f, z, known, missing, slot, tolerance, w):  # noqa: PLR0913  # as `solve_sixteen`
    """Try a remembered support on the games `missing`; return the bits of the unsolved games.

    The values of solved games are added to f[slot + lane].
    """
    solved, hits = try_support(a, m, n, f, z, known + _SUPPORT, missing, tolerance, w), _0
    if solved:
        for lane in range(w & W):
            is_solved = solved >> lane & _1
            f[slot + lane] += f[VALUE + lane] if is_solved else 0.0
            hits += is_solved
    z[known + _SCORE] = (z[known + _SCORE] >> _1) + hits
    return missing ^ solved


@typed
def solve_sixteen(alone, try_support, a, f, z, m, n, place, games, slot, tolerance, w):  # noqa: PLR0913  # a workspace and sixteen games
    """Solve the first `games` of the sixteen games in `a`; add values to f[slot + lane]."""
    missing, place = (_1 << min(W, np.uint64(games))) - _1, np.uint64(place) * _PLACE
    known = place + _1
    for guess in range(z[place]):
        missing = add_solved(try_support, a, m, n, f, z, known, missing, slot, tolerance, w)
        if guess and z[known + _SCORE] > z[known - _RECORD + _SCORE]:
            for i in range(known, known + _RECORD):
                z[i], z[i - _RECORD] = z[i - _RECORD], z[i]
        if not missing:
            return
        known += _RECORD
    rows, columns = np.int64(m), np.int64(n)
    game, work, x, y = np.empty((m, n)), np.empty(WORK), np.empty(m), np.empty(n)
    for lane in range(W):
        if missing >> lane & _1:
            for r in range(m):
                for c in range(n):
                    game[r, c] = a[r * ROW + c * W + lane]
            value, gap = alone(game, rows, columns, False, x, y, work)
            f[slot + lane] += value
            f[_GAP] = max(f[_GAP], gap)
            missing ^= _1 << lane
            known = remember(z, place, game, rows, columns, work[1], x, y)
            if known and missing:
                missing = add_solved(try_support, a, m, n, f, z, known, missing, slot, tolerance, w)


@typed
def worst_gap(f):
    """Return the largest gap of the games that were solved in a workspace."""
    worst = f[_GAP]
    for lane in range(W):
        worst = max(worst, f[WORST + lane])
    return worst


@njit(
    _f(ALONE_TYPE, TRY_TYPE, _i3, _n, _n, _n, _f1, _i1, _n, _f2, _i2, _f2, _f, _u),
    error_model="numpy", boundscheck=False,
)  # fmt: skip
def solve_for_points(  # noqa: C901, PLR0913  # a kernel: in tuples its arrays count references
    alone, try_support, d, cards, size, first, below, starts, width, upcards, slots, out, tolerance,
    w,
):  # fmt: skip
    """Add to `out` the part of the values of a tier's patterns that comes from the tier below.

    The patterns are first, first + 1, … of a tier of `size` cards. Returns the largest gap.

    below: the tier below, with `width` decks of each pattern from starts[pattern] on.
    upcards: as in `layout.upcards_of`.
    slots: int64 (decks, cards), the positions in `upcards` of the cards of each deck.
    out: (patterns, decks), added to.
    w: 16 (see `sixteen_games`).
    """
    children = np.empty((MAX_SIDE, MAX_SIDE), np.int64)
    wins = np.empty((MAX_SIDE, MAX_SIDE), np.int64)
    places, padded = upcards.shape
    flat_upcards, width = upcards.reshape(-1), np.uint64(width)
    last = width - _1
    a, f, z = new_workspace(1, places * padded)
    for p in range(out.shape[0]):
        if first + p == 0:
            continue
        mine, theirs = unrank_pattern(d, cards, size, first + p)
        rows, columns = bids(d, cards, size, mine, theirs, children, wins)
        m, n = repeat_bids(children, wins, rows, columns)
        forget(f, z)
        for i in range(places):
            for q in range(_0, width, W):
                k = np.uint64(i * padded) + q
                for r in range(m):
                    for c in range(n):
                        child, won, to = children[r, c], float(wins[r, c]), r * ROW + c * W
                        start, side = np.uint64(starts[max(child, ~child)]), 1.0
                        if child < 0:
                            side = -1.0
                        if q + W <= width:
                            for lane in range(w & W):
                                v = below[start + q + lane] * side
                                a[to + lane] = v + flat_upcards[k + lane] * won
                        else:  # the last decks; unused lanes repeat the last one
                            for lane in range(W):
                                v = below[start + min(q + lane, last)] * side
                                a[to + lane] = v + flat_upcards[k + lane] * won
                solve_sixteen(
                    alone, try_support, a, f, z, m, n, 0, width - q, _SUMS + k, tolerance, w
                )
        for deck in range(out.shape[1]):
            total = 0.0
            for i in range(slots.shape[1]):
                total += f[_SUMS + np.uint64(slots[deck, i])]
            out[p, deck] += total / size
    return worst_gap(f)


@njit(
    _f(ALONE_TYPE, TRY_TYPE, _i3, _n, _n, _n, _f1, _i1, _f2, _i2, _i2, _i2, _f2, _f, _u),
    error_model="numpy", boundscheck=False,
)  # fmt: skip
def solve_for_winning(  # noqa: C901, PLR0913  # a kernel: in tuples its arrays count references
    alone, try_support, d, cards, size, first, below, starts, upcards, targets, under, layer, out,
    tolerance, w,
):  # fmt: skip
    """As `solve_for_points`, for winning: below and out have a column for each deck and lead.

    under, layer: int64 (decks, 2) of the tier below and this one, first column and reach, as in
        `layout`.
    """
    children = np.empty((MAX_SIDE, MAX_SIDE), np.int64)
    wins = np.empty((MAX_SIDE, MAX_SIDE), np.int64)
    places = upcards.shape[0]
    half = np.max(under[:, 1]) + 2 * cards + LANES
    length = 2 * half + 1
    leads = np.zeros(MAX_SIDE * MAX_SIDE * length)
    a, f, z = new_workspace(places * 16, out.shape[1] + LANES)
    for p in range(out.shape[0]):
        mine, theirs = unrank_pattern(d, cards, size, first + p)
        rows, columns = bids(d, cards, size, mine, theirs, children, wins)
        m, n = repeat_bids(children, wins, rows, columns)
        forget(f, z)
        for q in range(under.shape[0]):
            reach, middle = under[q, 1], under[q, 0] + under[q, 1]
            for r in range(m):
                for c in range(n):
                    child, middle_lead = children[r, c], np.int64(r * n + c) * length + half
                    for lead in range(-half, half + 1):
                        if lead > reach:
                            v = 1.0
                        elif lead < -reach:
                            v = 0.0
                        elif child >= 0:
                            v = below[starts[child] + middle + lead]
                        else:
                            v = 1.0 - below[starts[~child] + middle - lead]
                        leads[middle_lead + lead] = v
            for i in range(places):
                k, deck = int(upcards[i, q]), targets[i, q]
                max_lead, column = layer[deck, 1], layer[deck, 0] + layer[deck, 1]
                for lead in range(-max_lead, max_lead + 1, LANES):
                    for r in range(m):
                        for c in range(n):
                            middle_lead = (
                                np.int64(r * n + c) * length + half + lead + k * wins[r, c]
                            )
                            start, to = np.uint64(middle_lead), r * ROW + c * W
                            for lane in range(w & W):
                                a[to + lane] = leads[start + lane]
                    solve_sixteen(
                        alone, try_support, a, f, z, m, n, i * 16 + ((lead + 128) >> 4),
                        max_lead - lead + 1, _SUMS + np.uint64(column + lead), tolerance, w,
                    )  # fmt: skip
        for middle_lead in range(out.shape[1]):
            out[p, middle_lead] += f[_SUMS + np.uint64(middle_lead)] / size
    return worst_gap(f)
