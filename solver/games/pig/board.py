"""Pig boards: the models of the files. Two games, two kinds of board.

``game = "pig"`` is the race: the first to `goal` wins at once. Options as Skunk's
(`solver.games.skunk.board`), with Pig's defaults: one die, and a 1 takes the turn. Two-dice Pig has
``dice = 2`` and ``all_ones = "score"`` and is Skunk; Piglet is a coin, ``sides = 2``, ``goal = 10``
and ``count = "rolls"``: tails takes the turn, heads is a point.

``game = "pig-rounds"``: so many rounds, in each player 1 takes a turn and then player 2; the higher
total wins. Totals have no bound, so something has to be cut (`cut`): `solver.games.pig.kernel`
bounds what it changes. If the first roll is safe, no player who may stick before it is better off.
"""

from __future__ import annotations

from typing import Literal, Self

from pydantic import model_validator

from luckbase.solver.board.model import Board, Section, mistake, option
from luckbase.solver.games.skunk import board as text
from luckbase.solver.games.skunk.board import Penalty
from luckbase.solver.games.skunk.board import Rules as Race


class PigRules(Section):
    """The rule options of the race."""

    goal: int = option(100, 1, 200, text.GOAL)
    dice: int = option(1, 1, 4, text.DICE)
    sides: int = option(6, 2, 20, text.SIDES)
    some_ones: Penalty = option("turn", help=text.SOME_ONES)
    all_ones: Penalty = option("turn", help=text.ALL_ONES)
    first_roll_safe: bool = option(False, help=text.FIRST_ROLL_SAFE)
    first_roll_forced: bool = option(True, help="A turn begins with a roll (Skunk's must_roll).")
    count: Literal["faces", "rolls"] = option("faces", help=text.COUNT)
    count_rolls: bool = option(False, help=text.COUNT_ROLLS)

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

    rounds: int = option(10, 1, 50, "Rounds; in each, player 1 takes a turn and then player 2.")
    dice: int = option(
        1, 1, 4, "How many dice are rolled at once; a roll with any 1 takes the turn's points."
    )
    sides: int = option(6, 2, 20, text.SIDES)
    first_roll_safe: bool = option(True, help=text.FIRST_ROLL_SAFE)
    first_roll_forced: bool = option(False, help="A turn begins with a roll.")
    draw: Literal["half", "first", "second"] = option(
        "half",
        help="Equal totals: half a win for each player, or a win of the first or the second.",
    )
    objective: Literal["win", "difference"] = option(
        "win", help="The payoff: the chance to win, or that minus the chance to lose."
    )
    count_rolls: bool = option(False, help=text.COUNT_ROLLS)

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

    cut: int = option(
        600, 10, 2000,
        "A lead, in points, that counts as a game won; the table's error says what that can "
        "change.",
    )  # fmt: skip


class PigRoundsBoard(Board):
    """A board of the n-round game: [rules] and [solve]."""

    game: Literal["pig-rounds"]
    rules: RoundsRules = RoundsRules()
    solve: RoundsSolve = RoundsSolve()

    @model_validator(mode="after")
    def _cut_is_above_a_roll(self) -> Self:
        most = self.rules.dice * self.rules.sides
        if self.solve.cut <= most:
            said = f"{self.solve.cut} is too small; expected more than {most}, the most of a roll"
            raise mistake(said, "solve", "cut")
        return self
