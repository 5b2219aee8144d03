"""The rules of Goofspiel, once: the transition.

A state is my hand, their hand, the deck with the upcard in it, the upcard (0 before it is turned)
and, where the objective is winning, the lead. Bids are only compared, so hands are canonical on the
lowest ranks that keep who beats whom (a pattern): a hand is a bit mask, bit i the i-th rank from
below. A board with `keep_cards` leaves them as they are, bit i the card i + 1. The deck is a bit
mask, bit k - 1 the card k. The lead is my points minus theirs, stored with the points of a full
deck added, so that no number is negative.

* No cards: over. For points nothing is left to be paid; for winning the payoff is 1, 1/2 or 0.
* No upcard: each card of the deck is turned up with the same chance.
* Else both bid: row and column of the joint action are the ranks of the two cards, from 0. The
  higher one takes the upcard's points, as a reward (points) or into the lead (winning).

For winning, a lead of more than the deck's points decides the game, and then nothing else matters:
such a state is the empty one with a lead of 1 or -1.

Source: docs/sources.md#rhoads-and-bartholdi-2012, sections 2 and 3.

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
"""

from __future__ import annotations

from functools import cache
from itertools import product

import numba as nb
import numpy as np

from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.rules import CHANCE, JOINT, SIMULTANEOUS, TERMINAL, TRANSITION_TYPE
from luckbase.solver.games.goofspiel.board import Rules
from luckbase.solver.njit import njit

MINE, THEIRS, DECK, UPCARD, LEAD = 0, 1, 2, 3, 4
"""Where the fields stand in a state; for points there is no LEAD."""
CARDS, WIN, ALL_POINTS, KEEP_CARDS = 0, 1, 2, 3
"""Where the board's whole numbers stand; ALL_POINTS is what stored leads are above the lead."""


@njit(nb.int64(nb.int64), cache=True)
def points_of(deck):
    """The points of all cards in a deck."""
    total, k = 0, 1
    while deck:
        total += k * (deck & 1)
        deck >>= 1
        k += 1
    return total


@njit(nb.void(nb.int64[::1], nb.int64[::1]), cache=True)
def make_canonical(ints, state):
    """Hands on their lowest ranks, unless cards are kept; for winning, a decided game is the empty
    one. In place."""
    if not ints[KEEP_CARDS]:
        state[MINE], state[THEIRS] = lowest_ranks(state[MINE], state[THEIRS])
    if ints[WIN]:
        lead = state[LEAD] - ints[ALL_POINTS]
        if abs(lead) > points_of(state[DECK]):
            state[:LEAD] = 0
            state[LEAD] = ints[ALL_POINTS] + (1 if lead > 0 else -1)


@njit(TRANSITION_TYPE, cache=True)
def transition(board, state, edges):  # noqa: C901  # the rules, in the order in which they are told
    """The edges of a state, by the contract in `solver.game.rules`."""
    ints = board.ints
    children, weights, actions, rewards, about = edges
    mine, theirs, deck, upcard = state[MINE], state[THEIRS], state[DECK], state[UPCARD]
    if mine == 0:
        about[0], about[1] = TERMINAL, -1
        if ints[WIN]:
            lead = state[LEAD] - ints[ALL_POINTS]
            rewards[0, 0] = 0.5 + 0.5 * ((lead > 0) - (lead < 0))
            rewards[0, 1] = 1.0 - rewards[0, 0]
        else:
            rewards[0, 0] = rewards[0, 1] = 0.0
        return 0
    n = 0
    if upcard == 0:
        about[0], about[1] = CHANCE, -1
        size = size_of(deck)
        for k in range(1, ints[CARDS] + 1):
            if deck >> (k - 1) & 1:
                children[n] = state
                children[n, UPCARD] = k
                weights[n], actions[n] = 1.0 / size, 0
                rewards[n, 0] = rewards[n, 1] = 0.0
                n += 1
        return n
    about[0], about[1] = SIMULTANEOUS, -1
    for x in range(ints[CARDS]):
        if not mine >> x & 1:
            continue
        for y in range(ints[CARDS]):
            if not theirs >> y & 1:
                continue
            won = upcard * ((x > y) - (x < y))
            children[n] = state
            children[n, MINE], children[n, THEIRS] = mine ^ (1 << x), theirs ^ (1 << y)
            children[n, DECK], children[n, UPCARD] = deck ^ (1 << (upcard - 1)), 0
            rewards[n, 0] = rewards[n, 1] = 0.0
            if ints[WIN]:
                children[n, LEAD] += won
            else:
                rewards[n, 0], rewards[n, 1] = won, -won
            make_canonical(ints, children[n])
            weights[n], actions[n] = 1.0, x * JOINT + y
            n += 1
    return n


@njit(nb.void(nb.int64[::1], nb.int64[:, ::1]), cache=True)
def make_all_canonical(ints, states):
    """`make_canonical` of states (n, fields). In place."""
    for i in range(states.shape[0]):
        make_canonical(ints, states[i])


def as_seen_by(options: Rules, player: int, states: Ints) -> Ints:
    """States (…, fields) in the words of a player, from 0; the way back as well."""
    seen = np.array(states, np.int64)
    if player == 1:
        seen[..., [MINE, THEIRS]] = seen[..., [THEIRS, MINE]]
        if options.objective == "win":
            seen[..., LEAD] = 2 * options.points - seen[..., LEAD]
    return seen


MAX_CARDS = 16
"""The most cards a side."""

_counts = nb.int64[:, :, ::1]
_pair = nb.types.UniTuple(nb.int64, 2)


@cache
def path_counts() -> Ints:
    """D, int64 (a, b, r), a and b 0 to 17, r 0 to 16 (module docstring): the last a and the last b
    are a border of zeros, for an index of -1."""
    d = np.zeros((MAX_CARDS + 2, MAX_CARDS + 2, MAX_CARDS + 1), np.int64)
    d[0, 0] = 1
    for a, b in product(range(MAX_CARDS + 1), repeat=2):
        if a or b:
            d[a, b, 1:] = d[a - 1, b - 1, :-1] + d[a - 1, b, :-1] + d[a, b - 1, :-1]
    return d


@njit(nb.int64(nb.int64), cache=True)
def size_of(mask):
    """How many bits are set."""
    count = 0
    while mask:
        mask &= mask - 1
        count += 1
    return count


def pattern_count(cards: int, size: int) -> int:
    """How many canonical patterns two hands of `size` cards out of `cards` have."""
    d = path_counts()
    return 1 + sum(
        int(d[size - m - 1, size - m, cards - m - 1]) for m in range(min(size, cards - 1))
    )


@njit(nb.int64(_counts, nb.int64, nb.int64, nb.int64, nb.int64), cache=True, nogil=True)
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
        ties, alone = d[a - 1, b - 1, left], d[a - 1, b, left]
        if tied:
            is_mine, is_theirs = True, rest >= alone
            tied = is_theirs
            rest -= alone if is_theirs else 0
        elif rest < ties:
            is_mine = is_theirs = True
        else:
            is_mine, is_theirs = rest < ties + alone, rest >= ties + alone
            rest -= ties if is_mine else ties + alone
        if is_mine:
            mine, a = mine | bit, a - 1
        if is_theirs:
            theirs, b = theirs | bit, b - 1
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
    my_bits, their_bits = np.empty(MAX_CARDS, np.int64), np.empty(MAX_CARDS, np.int64)
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


def sizes_of(masks: Ints) -> Ints:
    """How many cards each mask has, in the shape of `masks`."""
    return sum((masks >> k & 1 for k in range(MAX_CARDS)), np.zeros_like(masks))
