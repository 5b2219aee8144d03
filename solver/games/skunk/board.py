"""Skunk boards: the model of the file, and what the dice do as whole numbers of rolls.

Two players race to `goal`. In a turn the player rolls as often as they like; holding banks the
turn's points. What a roll does stands in the rule options:

    goal              points that win, at once: banked and turn's points together
    dice, sides       how many are rolled, all faces equally likely
    some_ones         what a roll does in which some dice show 1 and some do not (not for one die):
                      "turn": the turn's points go and the turn is over; "score": the banked points
                      go too; "points": nothing, the faces count
    all_ones          the same for a roll of which every die shows 1
    first_roll_safe   on the first roll of a turn every roll counts its points
    count             what a roll that costs nothing is worth: "faces", their sum; "rolls", 1 point
    must_roll         a turn begins with a roll. Without it two players could pass for ever, and the
                      solver refuses the board; no player who may pass is better off
    count_rolls       states hold the rolls of the turn, for agents who look at them; such a board
                      can be simulated and played, and has no table (the values are the same)
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


class Rules(Section):
    """The rule options (module docstring)."""

    goal: int = option(100, 1, 200)
    dice: int = option(2, 1, 4)
    sides: int = option(6, 2, 20)
    some_ones: Penalty = "turn"
    all_ones: Penalty = "score"
    first_roll_safe: bool = option(False)
    count: Literal["faces", "rolls"] = "faces"
    must_roll: bool = option(True)
    count_rolls: bool = option(False)

    @model_validator(mode="after")
    def _can_be_played(self) -> Self:
        if self.sides**self.dice > MAX_ROLLS:
            said = f"{self.dice} dice of {self.sides} sides roll in {self.sides**self.dice} ways"
            raise mistake(f"{said}; the most is {MAX_ROLLS}", "rules", "dice")
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
