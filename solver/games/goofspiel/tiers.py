"""The layers of Goofspiel: which states a table holds, in which order, and in which parts.

A tier is a layer: all states with hands and deck of j cards and no upcard, j = 1 .. n. It reads the
layer j - 1 only. Its rows are::

    row = canonical pattern * width + column,    column = first column of the deck + lead + reach

with a column for each deck (points), or for each deck P and each lead d, |d| <= reach(P)
(winning). Leads are undecided up to the points of P and can be reached up to the points gone, so
reach(P) = min(points of P, points of all cards - points of P).

Only canonical patterns have rows: swapping the players turns the payoffs (f, g) of a state into
(g, f) and its lead into its negative. The pattern of j ties, its own swap, is number 0; its rows
are all there (for points their value is 0), which costs next to nothing.

Decks stand innermost, because eight neighbouring decks of one pattern are solved at once and lie in
one cache line; patterns outermost, because ranges of patterns are the parts: whatever the parts, a
row is summed in the same order and has the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from math import comb

import numba as nb
import numpy as np

from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.games.goofspiel import patterns
from luckbase.solver.games.goofspiel.rules import points_of
from luckbase.solver.njit import njit

GAMES_A_PART = 40_000_000
"""Matrix games that a part has at most: some seconds of work."""
ROWS_A_PART = 32 << 20
"""Rows that a part has at most: 256 MB of payoffs."""


@dataclass(frozen=True)
class Layer:
    """The layer of `size` cards: see the module docstring.

    decks: int64 (decks,), masks ascending. reach: int64 (decks,), 0 for points. first: int64
    (decks + 1,), the first column of each deck; its last entry is the width.
    """

    cards: int
    size: int
    patterns: int
    decks: Ints
    reach: Ints
    first: Ints

    @property
    def columns(self) -> Ints:
        """int64 (decks, 2): first column and reach of each deck."""
        return np.stack([self.first[:-1], self.reach], axis=1)

    @property
    def width(self) -> int:
        """Columns: rows a pattern."""
        return int(self.first[-1])

    @property
    def rows(self) -> int:
        """States."""
        return self.patterns * self.width

    @property
    def games(self) -> int:
        """Matrix games to be solved, those of swapped patterns left out."""
        return self.rows * self.size

    @cached_property
    def parts(self) -> tuple[tuple[int, int], ...]:
        """Rows [start, stop) of each part: whole patterns, as equal as they can be."""
        least = max(-(-self.games // GAMES_A_PART), -(-self.rows // ROWS_A_PART))
        count = min(self.patterns, least)
        width = self.width
        bounds = [self.patterns * i // count * width for i in range(count + 1)]
        return tuple(pairwise(bounds))


@lru_cache(maxsize=64)
def layer(cards: int, win: bool, size: int) -> Layer:
    """The layer of hands and decks of `size` out of `cards` cards, 0 included."""
    decks = patterns.decks(cards, size)
    reach = np.zeros(len(decks), np.int64)
    if win:
        points = np.array([points_of(deck) for deck in decks], np.int64)
        reach = np.minimum(points, cards * (cards + 1) // 2 - points)
    first = np.concatenate([[0], np.cumsum(2 * reach + 1)]).astype(np.int64)
    count = patterns.pattern_count(patterns.path_counts(), cards, size) if size else 1
    return Layer(cards, size, count, decks, reach, first)


def states_below(cards: int, win: bool, left: int) -> float:
    """About how many states can follow one with hands of `left` cards, mostly some times too many.

    With s cards left: the decks times the pairs of hands, which merge into patterns, times the
    leads (winning), each without an upcard and with each of s.
    """
    total = 0.0
    for size in range(left + 1):
        chosen = comb(left, size)
        hands = min(chosen**2, 2 * layer(cards, False, size).patterns)
        leads = 1.0
        if win:  # three ways a round but for the first, which the hands tell, and no more than the
            # mean deck or what is gone can be worth
            reach = min(size, left - size) * (cards + 1) / 2
            leads = min(3.0 ** max(0, left - size - 1), 2 * reach + 1)
        total += chosen * hands * leads * (1 + size)
    return total


@lru_cache(maxsize=4)
def deck_ranks(cards: int) -> Ints:
    """int64 (2 ** cards,): the number of each deck among those of its size."""
    ranks: Ints = patterns.deck_ranks(cards)
    return ranks


@njit(nb.int64[::1](nb.int64[:, :, ::1], nb.int64, nb.int64[::1], nb.int64[::1]), cache=True)
def pattern_numbers(d, cards, mine, theirs):
    """int64 (n,): the pattern of each pair of hands (n,), with its sign bit."""
    found = np.empty(mine.size, np.int64)
    for i in range(mine.size):
        found[i] = patterns.rank_pattern(d, cards, patterns.size_of(mine[i]), mine[i], theirs[i])
    return found


@njit(nb.int64[:, ::1](nb.int64[:, :, ::1], nb.int64, nb.int64, nb.int64[::1]), cache=True)
def hands_of(d, cards, size, numbers):
    """int64 (n, 2): my hand and theirs of canonical patterns (n,)."""
    found = np.empty((numbers.size, 2), np.int64)
    for i in range(numbers.size):
        found[i] = patterns.unrank_pattern(d, cards, size, numbers[i])
    return found


@njit(nb.int64[:, ::1](nb.int64[:, ::1]), cache=True)
def sizes_of(masks):
    """How many cards each mask has, in the shape of `masks` (n, m)."""
    found = np.empty(masks.shape, np.int64)
    for i in range(masks.shape[0]):
        for j in range(masks.shape[1]):
            found[i, j] = patterns.size_of(masks[i, j])
    return found


@lru_cache(maxsize=32)
def upcards(cards: int, size: int) -> tuple[Floats, Ints]:
    """What may be turned up above each deck of `size` - 1 cards: the cards that it does not have.

    The cards, float64 (cards - size + 1, decks padded to eights), from the highest down, so that
    neighbouring decks mostly have the same one; and the deck with that card, int64, -1 in padding.
    """
    under = layer(cards, False, size - 1)
    count = len(under.decks)
    found = np.zeros((cards - size + 1, -(-count // 8) * 8))
    targets = np.full(found.shape, -1, np.int64)
    ranks = deck_ranks(cards)
    for q, deck in enumerate(under.decks.tolist()):
        free = [k for k in range(cards, 0, -1) if not deck >> (k - 1) & 1]
        found[:, q] = free
        targets[:, q] = [ranks[deck | 1 << (k - 1)] for k in free]
    return found, targets
