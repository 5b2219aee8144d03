"""Jackpot and Shut the Box boards: the model of the file, and the counts derived from it.

Tiles 1 .. n start open; a roll allows some of them to be flipped; a roll that allows none ends the
game, and so does the last tile. All of it stands in the rule options. With objective = "sum" the
payoff is *minus* the expected sum of the tiles left, because every payoff here is better when it is
more: a least expected sum of 11.16 is -11.16.
"""

from typing import Literal, Self

from pydantic import model_validator

from luckbase.solver.board.model import Board, Section, mistake, option
from luckbase.solver.sentences import show

MAX_ROLLS = 1296
"""Ordered rolls: four dice of six sides."""
MAX_STATES = 1 << 24
"""Sets of tiles times ordered rolls: 16 tiles with two dice of 16 sides."""


class Rules(Section):
    """The rule options."""

    tiles: int = option(9, 1, 16, "How many tiles there are, numbered from 1, all open at first.")
    dice: int = option(2, 1, 4, "How many dice are rolled.")
    sides: int = option(6, 2, 20, "Faces of each die, all equally likely.")
    allowed: Literal["jackpot", "sum"] = option(
        "jackpot",
        help="What may be flipped: the tile of one die or of the sum of all (Jackpot), or any "
        "tiles that add up to the roll (Shut the Box).",
    )
    one_die: Literal["never", "may", "must"] = option(
        "never",
        help="Whether one die may or must be rolled, once every tile above its faces is flipped; "
        "only with two dice and allowed = 'sum'.",
    )
    objective: Literal["shut", "sum"] = option(
        "shut", help="The payoff: the chance to flip all tiles, or minus the sum of those left."
    )

    @property
    def rolls(self) -> int:
        """How many ordered rolls there are: all equally likely."""
        return int(self.sides**self.dice)

    @model_validator(mode="after")
    def _can_be_solved(self) -> Self:
        if self.rolls > MAX_ROLLS:
            said = f"{self.dice} dice of {self.sides} sides roll in {self.rolls} ways"
            raise mistake(f"{said}; expected at most {MAX_ROLLS}", "rules", "dice")
        if self.rolls << self.tiles > MAX_STATES:
            said = f"{self.tiles} tiles and {self.rolls} rolls make {self.rolls << self.tiles}"
            raise mistake(f"{said} positions; expected at most {MAX_STATES}", "rules", "tiles")
        if self.one_die != "never" and (self.dice, self.allowed) != (2, "sum"):
            said = f"{show(self.one_die)} is for boards with dice = 2 and allowed = 'sum'"
            raise mistake(f"{said}; write 'never'", "rules", "one_die")
        stuck = self._never_flipped()
        if stuck:
            raise mistake(f"no roll can flip tile {stuck}, so no game can be won", "rules", "tiles")
        return self

    def _never_flipped(self) -> int | None:
        """The lowest tile that no roll allows, even with all tiles down; None if there is none."""
        tiles, most = range(1, self.tiles + 1), self.dice * self.sides
        if self.allowed == "jackpot":
            flipped = {*range(1, self.sides + 1), *range(self.dice, most + 1)}
        else:  # alone, or a lower one with others that lift it to the least roll
            flipped = {*range(1, most + 1)} if sum(tiles) >= self.dice else set()
        return min({*tiles} - flipped, default=None)


class JackpotBoard(Board):
    """A board of Jackpot or Shut the Box: [rules] and nothing else."""

    game: Literal["jackpot"]
    rules: Rules = Rules()
