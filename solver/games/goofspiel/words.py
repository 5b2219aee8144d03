"""Cards as a person writes them, as bit masks and back, and what is wrong with them."""

from __future__ import annotations

import re
from collections.abc import Callable

from luckbase.solver.errors import StateError
from luckbase.solver.game.rules import Ints


def mask_of(name: str, text: str, cards: int) -> int:
    """The mask of the cards, 1 to `cards`, that a person writes with commas in a field.

    Raises StateError.
    """
    mask = 0
    for part in text.split(",") if text.strip() else ():
        card = whole(name, part)
        if not 1 <= card <= cards:
            raise StateError(f"{name}: {no_card(card, cards)}")
        if mask >> (card - 1) & 1:
            raise StateError(f"{name}: card {card} stands there twice")
        mask |= 1 << (card - 1)
    return mask


def no_card(card: int, cards: int) -> str:
    """The sentence for a card that the board does not have."""
    return f"{card} is not a card of this board; they are 1 to {cards}"


def cards_of(mask: int) -> list[int]:
    """The cards of a mask, ascending."""
    return [k + 1 for k in range(int(mask).bit_length()) if mask >> k & 1]


def no_set(name: str, masks: Ints, every: int) -> Callable[[int], str]:
    """Of row x: its number is no set of cards."""
    return lambda x: (
        f"{name}: {masks[x]} is no set of cards; card k counts 2 ** (k - 1), all {every}"
    )


def unequal(name: str, sizes: Ints, mine: Ints) -> Callable[[int], str]:
    """Of row x: it has another number of cards than mine."""
    return lambda x: (
        f"{name}: {sizes[x]} cards, and mine has {mine[x]}; both hands and the deck have as many"
    )


def whole(name: str, text: str) -> int:
    """A whole number as a person writes it. Raises StateError."""
    if not re.fullmatch(r"\s*[+-]?[0-9]{1,9}\s*", text):
        raise StateError(f"{name}: '{text.strip()[:30]}' is not a whole number")
    return int(text)
