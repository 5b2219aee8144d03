"""Skunk boards: the model of the file, and what the dice do as whole numbers of rolls.

Two players race to `goal`. In a turn the player rolls as often as they like; holding banks the
turn's points. What a roll does stands in the rule options. Without `must_roll` the solver refuses
the board; no player who may pass is better off.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Literal, Self

from pydantic import model_validator

from luckbase.solver.board.model import Board, Section, mistake, option

MAX_ROLLS = 10_000
"""Ordered rolls: four dice of ten sides."""

Penalty = Literal["turn", "score", "points"]

GOAL = "Points that win at once, banked and the turn's together."
DICE = "How many dice are rolled at once."
SIDES = "Faces of each die, all equally likely; 2 is a coin."
SOME_ONES = (
    "What a roll costs in which some dice show a 1: the turn's points, the banked points (score) "
    "too, or nothing, and the faces count (points)."
)
ALL_ONES = "What a roll costs in which every die shows a 1: the same choices."
FIRST_ROLL_SAFE = "The first roll of a turn costs nothing, and its faces count."
COUNT = "What a roll that costs nothing is worth: the sum of its faces, or one point (rolls)."
COUNT_ROLLS = (
    "States keep how many rolls the turn has had, for agents who look at it; the values are the "
    "same, and such a board has no table."
)


class Rules(Section):
    """The rule options."""

    goal: int = option(100, 1, 200, GOAL)
    dice: int = option(2, 1, 4, DICE)
    sides: int = option(6, 2, 20, SIDES)
    some_ones: Penalty = option("turn", help=SOME_ONES)
    all_ones: Penalty = option("score", help=ALL_ONES)
    first_roll_safe: bool = option(False, help=FIRST_ROLL_SAFE)
    count: Literal["faces", "rolls"] = option("faces", help=COUNT)
    must_roll: bool = option(
        True,
        help="A turn begins with a roll; without it two players could pass for ever: there is no "
        "full table, and the board is searched.",
    )
    count_rolls: bool = option(False, help=COUNT_ROLLS)

    @model_validator(mode="after")
    def _can_be_played(self) -> Self:
        if self.sides**self.dice > MAX_ROLLS:
            said = f"{self.dice} dice of {self.sides} sides roll in {self.sides**self.dice} ways"
            raise mistake(f"{said}; expected at most {MAX_ROLLS}", "rules", "dice")
        return self

    def race(self) -> Rules:
        """The options of a race in Skunk's words, which are these."""
        return self

    def every_roll(self, first: bool) -> Iterator[tuple[tuple[int, ...], Penalty, int]]:
        """(faces, what the roll does, its points) of every ordered roll, of a turn's first or a
        later one."""
        for faces in product(range(1, self.sides + 1), repeat=self.dice):
            ones = faces.count(1)
            penalty: Penalty = "points"
            if ones and not (first and self.first_roll_safe):
                penalty = self.all_ones if ones == self.dice else self.some_ones
            points = sum(faces) if self.count == "faces" else 1
            yield faces, penalty, points if penalty == "points" else 0

    def rolls(self, first: bool) -> Rolls:
        """The ordered rolls by what they do, the first of a turn or a later one."""
        counts = Counter((penalty, points) for _, penalty, points in self.every_roll(first))
        points = [counts["points", k] for k in range(self.dice * self.sides + 1)]
        return Rolls(counts["turn", 0], counts["score", 0], points, counts.total())


@dataclass(frozen=True)
class Rolls:
    """How many rolls lose the turn, lose the score, are worth each number of points; all."""

    turn: int
    score: int
    points: list[int]
    total: int


class SkunkBoard(Board):
    """A board of Skunk: [rules] and nothing else."""

    game: Literal["skunk"]
    rules: Rules = Rules()
