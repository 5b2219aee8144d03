"""A move in numbers: the tables of the paper, and the parity that it found in them.

`first_bids` solves the games of the first move, or of any other position before a card is turned
up, an upcard each, from the payoffs of the states below, which `look` gives. `table_lines` writes
them as the paper prints them, bids as rows and upcards as columns; `parity_lines` says for each
upcard what it saw:

* one should in general bid a card of the upcard's parity: `FirstBids.same_parity` is the chance of
  it;
* on the highest card N never N - 1 nor N - 2, and with even N never the 1: `FirstBids.supports` are
  the bids with a chance above `SEEN`, and `never` says of which cards no optimal lottery has more,
  whatever lottery was found.

At the start both hands are equal, so the value of every upcard is that of a draw.

Source: docs/sources.md#rhoads-and-bartholdi-2012, section 4.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.game import Game
from luckbase.solver.games.goofspiel import strategies

Look = Callable[[Ints], Floats]
"""Canonical states, int64 (n, fields) -> payoffs, float64 (n, 2)."""

SEEN = 1e-6
"""The chance above which a card is bid."""
NEVER = 1e-5
"""`matrix_game.ranges` is good to 1e-6: a card that can have no more than this is never bid."""


@dataclass(frozen=True, eq=False)
class FirstBids:
    """The first move with N cards, or a later one with N cards left; arrays by upcard, or (bids,
    upcards), both ascending.

    hand, deck: the cards (N,) that can be bid and turned up. chances: float64 (N, N), an optimal
    lottery over the bids (rows) on each upcard (columns). least, most: float64 (N, N), how small
    and how large each of them can be in an optimal lottery. values: float64 (N,), player one's
    payoff. gaps: float64 (N,), how far the bounds lie apart that the two players' lotteries prove.
    unique: bool (N,), whether no other lottery is optimal.
    """

    hand: tuple[int, ...]
    deck: tuple[int, ...]
    chances: Floats
    least: Floats
    most: Floats
    values: Floats
    gaps: Floats
    unique: NDArray[np.bool_]

    @property
    def cards(self) -> int:
        """N."""
        return len(self.values)

    @property
    def gap(self) -> float:
        """The worst of the gaps."""
        return float(self.gaps.max())

    @property
    def supports(self) -> tuple[tuple[int, ...], ...]:
        """By upcard: the cards that are bid with a chance above `SEEN`, ascending."""
        return self._cards(self.chances > SEEN)

    @property
    def never(self) -> tuple[tuple[int, ...], ...]:
        """By upcard: the cards that no optimal lottery bids, ascending."""
        return self._cards(self.most <= NEVER)

    def _cards(self, chosen: NDArray[np.bool_]) -> tuple[tuple[int, ...], ...]:
        """The cards of each column of (bids, upcards)."""
        hand = np.array(self.hand)
        return tuple(tuple(hand[column].tolist()) for column in chosen.T)

    @property
    def same_parity(self) -> Floats:
        """float64 (N,), by upcard: the chance to bid an odd card on an odd one, an even one on an
        even one."""
        same = np.subtract.outer(np.array(self.hand), np.array(self.deck)) % 2 == 0
        chances: Floats = np.where(same, self.chances, 0.0).sum(axis=0)
        return chances


def first_bids(game: Game, look: Look, words: Mapping[str, object] | None = None) -> FirstBids:
    """The first move of a game, or that of the position in words (``mine``, ``theirs``, ``deck``,
    ``lead``), from the payoffs of the states that it leads to. Raises StateError."""
    questions = strategies.first_bids(game, words)
    payoffs = look(np.concatenate([question.children for question in questions]))
    below = payoffs.reshape(len(questions), -1, game.players)
    answers = [strategies.bids(*pair) for pair in zip(questions, below, strict=True)]
    sides = [answer.mine for answer in answers]
    return FirstBids(
        hand=questions[0].mine,
        deck=questions[0].deck,
        chances=np.stack([side.chances for side in sides], axis=1),
        least=np.stack([side.least for side in sides], axis=1),
        most=np.stack([side.most for side in sides], axis=1),
        values=np.array([answer.value for answer in answers]),
        gaps=np.array([answer.gap for answer in answers]),
        unique=np.array([side.unique for side in sides]),
    )


def table_lines(found: FirstBids, decimals: int = 4) -> list[str]:
    """The table as the paper prints it: a line of upcards, then one a bid; 0 is a bid not made. A
    star behind an upcard says that another lottery is optimal too."""
    unique = zip(found.deck, found.unique.tolist(), strict=True)
    heads = [f"{upcard}" + ("" if one else "*") for upcard, one in unique]
    lines = [["", *heads]]
    for bid, row in zip(found.hand, found.chances.tolist(), strict=True):
        cells = [f"{chance:.{decimals}f}" if chance > SEEN else "0" for chance in row]
        lines.append([f"{bid}", *cells])
    return _aligned(lines)


def parity_lines(found: FirstBids) -> list[str]:
    """For each upcard the cards that are bid, the chance that the bid has the upcard's parity, and
    the cards that no optimal lottery bids."""
    lines = [["upcard", "same parity", "bids", "never"]]
    seen = zip(found.deck, found.same_parity.tolist(), found.supports, found.never, strict=True)
    for upcard, same, support, never in seen:
        lines.append([f"{upcard}", f"{same:.4f}", _words(support), _words(never)])
    return _aligned(lines, words=2)


def _words(cards: tuple[int, ...]) -> str:
    return " ".join(map(str, cards)) or "-"


def _aligned(lines: list[list[str]], words: int | None = None) -> list[str]:
    """Cells in columns two spaces apart, numbers to the right; from column `words` on, which hold
    words, to the left."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if words is None or i < words else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]
