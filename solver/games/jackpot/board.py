"""Jackpot and Shut the Box boards: the model of the file, and the counts derived from it.

Tiles 1 .. n start down; a roll allows some of them to be flipped up; a roll that allows none ends
the game, and so does the last tile. All of it stands in the rule options:

    tiles       n, 1 to 16
    dice        how many are rolled, 1 to 4
    sides       of each die, 2 to 20, all faces equally likely
    allowed     "jackpot": exactly one tile, with the number of a single die or of the sum of all;
                "sum": any set of tiles still down that adds up to the roll (Shut the Box)
    one_die     "never"; "may" or "must": one die is rolled, by choice or by rule, once every tile
                above the faces of one die is flipped (with 6 sides: 7, 8 and 9). House rules
                differ, and so do the numbers. Only with two dice and allowed = "sum"
    objective   "shut": the payoff is the chance to flip all tiles;
                "sum": it is *minus* the expected sum of the tiles left, because every payoff in
                this house is better when it is more. A least expected sum of 11.16 is -11.16
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
    """The rule options (module docstring)."""

    tiles: int = option(9, 1, 16)
    dice: int = option(2, 1, 4)
    sides: int = option(6, 2, 20)
    allowed: Literal["jackpot", "sum"] = "jackpot"
    one_die: Literal["never", "may", "must"] = "never"
    objective: Literal["shut", "sum"] = "shut"

    @property
    def rolls(self) -> int:
        """How many ordered rolls there are: all equally likely."""
        return int(self.sides**self.dice)

    @model_validator(mode="after")
    def _can_be_solved(self) -> Self:
        if self.rolls > MAX_ROLLS:
            said = f"{self.dice} dice of {self.sides} sides roll in {self.rolls} ways"
            raise mistake(f"{said}; the most is {MAX_ROLLS}", "rules", "dice")
        if self.rolls << self.tiles > MAX_STATES:
            said = f"{self.tiles} tiles and {self.rolls} rolls make {self.rolls << self.tiles}"
            raise mistake(f"{said} positions; the most is {MAX_STATES}", "rules", "tiles")
        if self.one_die != "never" and (self.dice, self.allowed) != (2, "sum"):
            said = f"{show(self.one_die)} is for boards with dice = 2 and allowed = 'sum'"
            raise mistake(f"{said}; write 'never'", "rules", "one_die")
        stuck = self._never_flipped()
        if stuck:
            raise mistake(f"no roll can flip tile {stuck}, and no game is won", "rules", "tiles")
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
