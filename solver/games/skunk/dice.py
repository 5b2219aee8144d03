"""What a roll brings, in words: ``a 1: the turn is lost``, ``7 points: 5 and 2, or 4 and 3``.

The states before and after say how many points came, or that the turn went; the board says which
rolls do that.
"""

from __future__ import annotations

from functools import lru_cache

from luckbase.solver.game.arrays import Ints
from luckbase.solver.games.skunk import rules
from luckbase.solver.games.skunk.board import Rules, every_roll

MOST_LISTED = 3
"""Rolls that a name lists."""
NUMBERS = ("", "a", "two", "three", "four")
Roll = tuple[int, ...]
"""The faces, the highest first."""


class RollNames:
    """The names of what rolls bring, under rule options."""

    def __init__(self, options: Rules) -> None:
        self.options = options
        found = []
        for first in (True, False):
            every = {
                (tuple(sorted(faces, reverse=True)), penalty, points)
                for faces, penalty, points in every_roll(options, first)
            }
            found.append(sorted(every, reverse=True))
        self.rolls = {True: found[0], False: found[1]}

    def in_race(self, state: Ints, action: int, children: Ints) -> list[str | None]:
        """What each state (n, fields) of a race is called that an action leads to."""
        if action != rules.ROLL:
            return [None] * len(children)
        return [self._in_race(state.tolist(), child) for child in children.tolist()]

    def _in_race(self, state: list[int], child: list[int]) -> str:
        mine, turn = state[rules.MINE], state[rules.TURN]
        first, goal = turn == 0, self.options.goal
        if child[rules.PLAYER] != state[rules.PLAYER]:
            both = mine == 0  # then the loss of the score takes nothing
            return self.lost(first, child[rules.YOURS] != mine, both)
        if child[rules.MINE] == goal:
            return self.at_least(first, goal - mine - turn) + ": the game is won"
        return self.points(first, child[rules.TURN] - turn)

    def lost(self, first: bool, score: bool, both: bool = False) -> str:
        """What a roll is called that loses the turn, or the score too; both: either."""
        wanted = ("turn", "score") if both else ("score",) if score else ("turn",)
        dice = self.options.dice
        fewest = min(faces.count(1) for faces, penalty, _ in self.rolls[first] if penalty in wanted)
        ones = "a 1" if fewest == 1 else f"{NUMBERS[dice]} 1s"
        return f"{ones}: the {'score' if score else 'turn'} is lost"

    def points(self, first: bool, points: int) -> str:
        """What the rolls are called that are worth so many points."""
        return _points(self, first, points)

    def at_least(self, first: bool, points: int) -> str:
        """What the rolls are called that are worth so many points or more."""
        worth = {p for _, penalty, p in self.rolls[first] if penalty == "points" and p >= points}
        return self._short(min(worth)) + " or more" * (len(worth) > 1)

    def _short(self, points: int) -> str:
        if self.options.dice == 1 and self.options.count == "faces":
            return f"a {points}"
        return f"{points} point{'s' * (points != 1)}"


@lru_cache(maxsize=4096)
def _points(names: RollNames, first: bool, points: int) -> str:
    short = names._short(points)
    listed = [
        " and ".join(map(str, faces))
        for faces, penalty, worth in names.rolls[first]
        if penalty == "points" and worth == points
    ]
    if names.options.dice == 1 or len(listed) > MOST_LISTED:
        return short
    return f"{short}: {', or '.join(listed)}"
