"""Pig boards: the models of the files. Two games, two kinds of board.

``game = "pig"`` is the race: the first to `goal` wins at once. Options as Skunk's
(`solver.games.skunk.board`), with Pig's defaults: one die, and a 1 takes the turn. Two-dice Pig has
``dice = 2`` and ``all_ones = "score"`` and is Skunk; Piglet is a coin, ``sides = 2``, ``goal = 10``
and ``count = "rolls"``: tails takes the turn, heads is a point.

``game = "pig-rounds"``: so many rounds, in each player 1 takes a turn and then player 2; the higher
total wins. Options:

    rounds              1 to 50
    dice, sides         a roll in which some die shows a 1 takes the turn, else its sum counts
    first_roll_safe     on the first roll of a turn the sum counts whatever it is
    first_roll_forced   nobody may stick before rolling (no player who may is better off, if the
                        first roll is safe)
    draw                equal totals: "half", half a win for each; "first", "second": that player's
    objective           "win", payoffs are the chances to win; "difference", win minus loss
    count_rolls         states hold the rolls of the turn, for agents who look at them; such a board
                        can be simulated and played, and has no table (the values are the same)
    cut                 a lead that counts as a game won. Totals have no bound, so something has to
                        be cut: `solver.games.pig.kernel` bounds what it changes
"""

from __future__ import annotations

from typing import Literal, Self

from pydantic import model_validator

from luckbase.solver.board.model import Board, Section, mistake, option
from luckbase.solver.games.skunk.board import Penalty
from luckbase.solver.games.skunk.board import Rules as Race


class PigRules(Section):
    """The rule options of the race."""

    goal: int = option(100, 1, 200)
    dice: int = option(1, 1, 4)
    sides: int = option(6, 2, 20)
    some_ones: Penalty = "turn"
    all_ones: Penalty = "turn"
    first_roll_safe: bool = option(False)
    first_roll_forced: bool = option(True)
    count: Literal["faces", "rolls"] = "faces"
    count_rolls: bool = option(False)

    def race(self) -> Race:
        """The same in Skunk's words."""
        options = self.model_dump()
        return Race(must_roll=options.pop("first_roll_forced"), **options)

    @model_validator(mode="after")
    def _can_be_played(self) -> Self:
        self.race()
        return self


class PigBoard(Board):
    """A board of the race: [rules] and nothing else."""

    game: Literal["pig"]
    rules: PigRules = PigRules()


class RoundsRules(Section):
    """The rule options of the n-round game."""

    rounds: int = option(10, 1, 50)
    dice: int = option(1, 1, 4)
    sides: int = option(6, 2, 20)
    first_roll_safe: bool = option(True)
    first_roll_forced: bool = option(False)
    draw: Literal["half", "first", "second"] = "half"
    objective: Literal["win", "difference"] = "win"
    count_rolls: bool = option(False)

    def race(self) -> Race:
        """What the dice do, in Skunk's words."""
        return Race(
            dice=self.dice, sides=self.sides, some_ones="turn", all_ones="turn",
            first_roll_safe=self.first_roll_safe,
        )  # fmt: skip

    def payoffs(self) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
        """What each player gets where player 1 has won, nobody, player 2."""
        drawn = {"half": 0.5, "first": 1.0, "second": 0.0}[self.draw]
        one = (1.0, drawn, 0.0)
        if self.objective == "difference":
            one = (1.0, 2 * drawn - 1, -1.0)
            return one, (-one[0], -one[1], -one[2])
        return one, (0.0, 1 - drawn, 1.0)

    @model_validator(mode="after")
    def _can_be_played(self) -> Self:
        self.race()
        return self


class RoundsSolve(Section):
    """The solve options of the n-round game."""

    cut: int = option(600, 10, 2000)


class PigRoundsBoard(Board):
    """A board of the n-round game: [rules] and [solve]."""

    game: Literal["pig-rounds"]
    rules: RoundsRules = RoundsRules()
    solve: RoundsSolve = RoundsSolve()

    @model_validator(mode="after")
    def _cut_is_above_a_roll(self) -> Self:
        most = self.rules.dice * self.rules.sides
        if self.solve.cut <= most:
            said = f"{self.solve.cut} can be made in a roll of {most}; take a larger one"
            raise mistake(said, "solve", "cut")
        return self
