"""Goofspiel boards: the model of the file.

Each player holds the cards 1 .. n, and the deck has the prizes 1 .. n, turned up one at a time in
random order. Both bid a card at once; the higher bid takes the prize's points from the other, equal
bids take nothing; the three cards go. All of it stands in the rule options:

    cards       n, 1 to 16
    objective   "points": the payoff is the expected points of a player minus the other's;
                "win": the chance to finish ahead, a draw counting one half
    keep_cards  states keep the cards of both hands, for agents who look at them, where else they
                keep only who beats whom, which has the same values; such a board has no table
"""

from typing import Annotated, Literal

from pydantic import Field, StrictBool, StrictInt, StrictStr

from luckbase.solver.board.model import Board, Section


class Rules(Section):
    """The rule options (module docstring)."""

    cards: Annotated[StrictInt, Field(ge=1, le=16)] = 13
    objective: Literal["points", "win"] = "points"
    keep_cards: StrictBool = False

    @property
    def points(self) -> int:
        """The points of a full deck."""
        return self.cards * (self.cards + 1) // 2


class GoofspielBoard(Board):
    """A board of Goofspiel: [rules] and nothing else."""

    game: Literal["goofspiel"]
    title: StrictStr = ""
    rules: Rules = Rules()
