"""Patterns of two hands and decks as numbers: ranking, unranking, who leads to what.

Bids are compared and never added, so two hands V (mine) and Y (theirs) of j cards each matter only
through their **pattern**: the ranks that occur, from low to high, each "mine only" (A), "theirs
only" (B) or "both" (C). It is a Delannoy path from (0, 0) to (j, j). With t ties it has 2j - t
steps, and needs as many ranks: it occurs if 2j - t <= N. A pattern is a pair of bit masks, bit i
for the i-th rank from below; gaps, ranks that nobody holds, are skipped everywhere.

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
"""

from __future__ import annotations

import numba as nb
import numpy as np

from luckbase.solver.njit import njit

MOST = 16
"""The most cards a side."""

_counts = nb.int64[:, :, ::1]
_pair = nb.types.UniTuple(nb.int64, 2)


@njit(_counts(), cache=True)
def path_counts():
    """D, int64 (a, b, r), each index 0 to 16 (module docstring)."""
    d = np.zeros((MOST + 1, MOST + 1, MOST + 1), np.int64)
    for r in range(MOST + 1):
        d[0, 0, r] = 1
        for a in range(MOST + 1):
            for b in range(MOST + 1):
                if r and a + b:
                    d[a, b, r] = (
                        (d[a - 1, b - 1, r - 1] if a and b else 0)
                        + (d[a - 1, b, r - 1] if a else 0)
                        + (d[a, b - 1, r - 1] if b else 0)
                    )
    return d


@njit(nb.int64(nb.int64), cache=True)
def size_of(mask):
    """How many bits are set."""
    count = 0
    while mask:
        mask &= mask - 1
        count += 1
    return count


@njit(nb.int64(_counts, nb.int64, nb.int64), cache=True)
def pattern_count(d, cards, size):
    """How many canonical patterns two hands of `size` cards out of `cards` have."""
    count = 1
    for m in range(min(size, cards - 1)):
        count += d[size - m - 1, size - m, cards - m - 1]
    return count


@njit(nb.int64(_counts, nb.int64, nb.int64, nb.int64, nb.int64), cache=True, nogil=True)
def rank_pattern(d, cards, size, mine, theirs):  # noqa: C901  # two sums in one loop
    """The number of the pattern of two hands of `size` cards; ``~number`` if it is the swap."""
    a = b = size
    left, index, swapped, tied = cards, 1, False, True
    both = mine | theirs
    while both:
        bit = both & -both
        both ^= bit
        left -= 1
        is_mine, is_theirs = mine & bit, theirs & bit
        if tied:
            if is_mine and is_theirs:
                if a > 1 or b > 1:
                    index += d[a - 1, b, left]
                a, b = a - 1, b - 1
                continue
            tied = False
            if is_theirs:
                swapped = True
                mine, theirs = theirs, mine
            a -= 1
            continue
        if is_mine and is_theirs:
            a, b = a - 1, b - 1
            continue
        if a and b:
            index += d[a - 1, b - 1, left]
        if is_mine:
            a -= 1
        else:
            if a:
                index += d[a - 1, b, left]
            b -= 1
    if tied:
        return 0
    return ~index if swapped else index


@njit(_pair(_counts, nb.int64, nb.int64, nb.int64), cache=True, nogil=True)
def unrank_pattern(d, cards, size, index):
    """(mine, theirs): the lowest ranks that have the canonical pattern `index`."""
    every = (1 << size) - 1
    if index == 0:
        return every, every
    mine = theirs = 0
    a = b = size
    left, rest, bit, tied = cards, index - 1, 1, True
    while a or b:
        left -= 1
        if tied:
            count = d[a - 1, b, left]
            if rest < count:
                tied = False
                mine |= bit
                a -= 1
            else:
                rest -= count
                mine |= bit
                theirs |= bit
                a, b = a - 1, b - 1
        else:
            ties = d[a - 1, b - 1, left] if a and b else 0
            alone = d[a - 1, b, left] if a else 0
            if rest < ties:
                mine |= bit
                theirs |= bit
                a, b = a - 1, b - 1
            elif rest < ties + alone:
                rest -= ties
                mine |= bit
                a -= 1
            else:
                rest -= ties + alone
                theirs |= bit
                b -= 1
        bit <<= 1
    return mine, theirs


@njit(nb.int64(nb.int64, nb.int64, nb.int64[::1]), cache=True, nogil=True)
def classes(own, other, bits):
    """Write the lowest bit of each class of `own` cards into `bits`; returns how many."""
    count, joins = 0, False
    both = own | other
    while both:
        bit = both & -both
        both ^= bit
        if own & bit:
            tie = other & bit != 0
            if tie or not joins:
                bits[count] = bit
                count += 1
            joins = not tie
        else:
            joins = False
    return count


@njit(
    _pair(_counts, nb.int64, nb.int64, nb.int64, nb.int64, nb.int64[:, ::1], nb.int64[:, ::1]),
    cache=True,
    nogil=True,
)
def bids(d, cards, size, mine, theirs, children, wins):
    """The game of distinct bids: (rows, columns).

    children[r, c] is the pattern left in the layer below, with its sign bit; wins[r, c] is 1 where
    my bid is higher, 0 at a tie, -1 where theirs is. Both int64, (16, 16) at least; written.
    """
    my_bits, their_bits = np.empty(MOST, np.int64), np.empty(MOST, np.int64)
    rows, columns = classes(mine, theirs, my_bits), classes(theirs, mine, their_bits)
    for r in range(rows):
        for c in range(columns):
            x, y = my_bits[r], their_bits[c]
            children[r, c] = rank_pattern(d, cards, size - 1, mine ^ x, theirs ^ y)
            wins[r, c] = (x > y) - (x < y)
    return rows, columns


@njit(_pair(nb.int64, nb.int64), cache=True, nogil=True)
def lowest_ranks(mine, theirs):
    """The same pattern on the lowest ranks: without the ranks that nobody holds."""
    low_mine = low_theirs = 0
    bit, both = 1, mine | theirs
    while both:
        rank = both & -both
        both ^= rank
        if mine & rank:
            low_mine |= bit
        if theirs & rank:
            low_theirs |= bit
        bit <<= 1
    return low_mine, low_theirs


@njit(nb.int64[::1](nb.int64, nb.int64), cache=True)
def decks(cards, size):
    """The masks of all decks of `size` cards, int64 (C(cards, size),), ascending."""
    count = 0
    for mask in range(1 << cards):
        count += size_of(mask) == size
    found = np.empty(count, np.int64)
    count = 0
    for mask in range(1 << cards):
        if size_of(mask) == size:
            found[count] = mask
            count += 1
    return found


@njit(nb.int64[::1](nb.int64), cache=True)
def deck_ranks(cards):
    """int64 (2 ** cards,): the number of each mask among the decks of its size."""
    ranks = np.empty(1 << cards, np.int64)
    seen = np.zeros(cards + 1, np.int64)
    for mask in range(1 << cards):
        size = size_of(mask)
        ranks[mask] = seen[size]
        seen[size] += 1
    return ranks
