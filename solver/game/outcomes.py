"""Outcomes of dice and card decks with their chances, as arrays for a game's transition.

If the order of dice or cards does not matter, a row of `counts` holds the number of dice that show
each face, or of cards drawn of each kind. Chances are computed from whole numbers and rounded once.

    >>> rolls(2, 6).counts.shape, sums(2, 6).chances[5]        # 21 rolls; 7 is the likeliest sum
    ((21, 6), 0.16666666666666666)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import product
from math import comb, factorial, prod
from typing import NamedTuple

import numpy as np

from luckbase.solver.game.arrays import Floats, Ints


class Outcomes(NamedTuple):
    """counts: int64 (n, kinds), the number of each kind. chances: float64 (n,)."""

    counts: Ints
    chances: Floats


class Sums(NamedTuple):
    """totals: int64 (n,), ascending. chances: float64 (n,)."""

    totals: Ints
    chances: Floats


@cache
def rolls(dice: int, sides: int = 6) -> Outcomes:
    """Return the unordered rolls of some dice; column k counts the dice that show k + 1.

    There is one roll of no dice.
    """
    counts = list(_parts(dice, [dice] * sides))
    ways = [factorial(dice) // prod(map(factorial, row)) for row in counts]
    return Outcomes(*_frozen(counts, [way / sides**dice for way in ways], sides))


def rolls_in_order(dice: int, sides: int = 6) -> Ints:
    """Return the equally likely ordered rolls (sides ** dice, dice), the first die slowest."""
    faces = list(product(range(1, sides + 1), repeat=dice))
    return np.array(faces, np.int64).reshape(-1, dice)


@cache
def sums(dice: int, sides: int = 6) -> Sums:
    """Return the possible sums of some dice."""
    ways = {0: 1}
    for _ in range(dice):
        before, ways = ways, {}
        for total, count in before.items():
            for face in range(1, sides + 1):
                ways[total + face] = ways.get(total + face, 0) + count
    return Sums(*_frozen([*ways], [count / sides**dice for count in ways.values()], 0))


def draws(deck: Sequence[int], cards: int) -> Outcomes:
    """Return the possible draws of `cards` cards.

    deck: the number of cards of each kind. Raises ValueError for more cards than the deck has.
    """
    deck = [int(count) for count in deck]
    if not 0 <= cards <= sum(deck):
        raise ValueError(f"cards: {cards}; expected 0 to {sum(deck)}, as many as the deck has")
    counts, all_ways = list(_parts(cards, deck)), comb(sum(deck), cards)
    chances = [prod(map(comb, deck, row)) / all_ways for row in counts]
    return Outcomes(*_frozen(counts, chances, len(deck)))


def keeps(counts: Sequence[int]) -> Ints:
    """Return each way (n, kinds) to keep some of these dice or cards, from all of them to none."""
    ways = list(product(*(range(int(count), -1, -1) for count in counts)))
    return np.array(ways, np.int64).reshape(len(ways), -1)


def _parts(total: int, most: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield the ways to write a total as a sum of numbers from 0 to `most` each."""
    if not most:
        if total == 0:
            yield ()
        return
    for first in range(min(total, most[0]), -1, -1):
        for rest in _parts(total - first, most[1:]):
            yield first, *rest


def _frozen(numbers: Sequence[object], chances: Sequence[float], kinds: int) -> tuple[Ints, Floats]:
    """Return read-only arrays, because they are cached between calls."""
    counts, weights = np.array(numbers, np.int64), np.array(chances, np.float64)
    counts = counts.reshape(-1, kinds) if kinds else counts
    for array in (counts, weights):
        array.flags.writeable = False
    return counts, weights
