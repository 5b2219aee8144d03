"""Goofspiel boards: the model of the file.

Each player holds the cards 1 .. n, and the deck has the prizes 1 .. n, turned up one at a time in
random order. Both bid a card at once; the higher bid takes the prize's points from the other, equal
bids take nothing; the three cards go. All of it stands in the rule options. Where states do not
keep the cards of both hands, they keep only who beats whom, which has the same values.
"""

from typing import Literal

from pydantic import StrictStr

from luckbase.solver.board.model import Board, Section, option


class Rules(Section):
    """The rule options."""

    cards: int = option(13, 1, 16, "How many cards each player has, and how many prizes there are.")
    objective: Literal["points", "win"] = option(
        "points",
        help="The payoff: expected points ahead, or the chance to finish ahead, half of it for a "
        "draw.",
    )
    keep_cards: bool = option(
        False,
        help="States keep the cards of both hands, for agents who look at them; the values are the "
        "same, and such a board has no table.",
    )

    @property
    def points(self) -> int:
        """The points of a full deck."""
        return self.cards * (self.cards + 1) // 2


class GoofspielBoard(Board):
    """A board of Goofspiel: [rules] and nothing else."""

    game: Literal["goofspiel"]
    title: StrictStr = ""
    rules: Rules = Rules()
