"""The n-round Pig in exact fractions. (The Pig that is a race is `tests.reference.skunk` with one
die.)

A position is (round, player, lead of player 1 over player 2, points of the turn). Payoffs are
player 1's: the chance to win and half the chance of a draw. Scores have no bound; a lead that
reaches `cut`, the points of the turn included, is won. `cut` as large as the product's default
would take a day here, and both sides of a comparison use the same small one.

Agents: `turn_points` follows one who sticks by (turn, rolls), roll by roll.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from fractions import Fraction


@dataclass
class Reference:
    """The game with these rules."""

    rounds: int = 2
    sides: int = 6
    first_roll_safe: bool = True
    first_roll_forced: bool = False
    cut: int = 30
    known: dict[tuple[int, int, int, int], Fraction] = field(default_factory=dict)

    def start(self, round, player, lead):
        """Player 1's payoff at the start of a turn."""
        if round > self.rounds:
            return Fraction(1 if lead > 0 else 0) if lead else Fraction(1, 2)
        return self.value(round, player, lead, 0)

    def value(self, round, player, lead, turn):
        """Player 1's payoff in the middle of a turn."""
        mine = lead if player == 1 else -lead
        if mine + turn >= self.cut or mine <= -self.cut:
            return Fraction(1 if (mine + turn >= self.cut) == (player == 1) else 0)
        at = round, player, lead, turn
        if at not in self.known:
            roll = self.roll(round, player, lead, turn)
            stick = self.stick(round, player, lead, turn)
            if turn == 0 and self.first_roll_forced:
                self.known[at] = roll
            else:
                self.known[at] = max(roll, stick) if player == 1 else min(roll, stick)
        return self.known[at]

    def stick(self, round, player, lead, turn):
        if player == 1:
            return self.start(round, 2, lead + turn)
        return self.start(round + 1, 1, lead - turn)

    def roll(self, round, player, lead, turn):
        total = Fraction(0)
        for face in range(1, self.sides + 1):
            if face == 1 and not (turn == 0 and self.first_roll_safe):
                total += self.stick(round, player, lead, 0)
            else:
                total += self.value(round, player, lead, turn + face)
        return total / self.sides


def turn_points(sticks, first_roll_safe, most):
    """The chance of each number of points that a turn brings, sticks(turn, rolls) being the chance
    to stick; turns above `most` points are left out."""
    result = defaultdict(float)
    here = {(0, 0): 1.0}
    while here:
        after = defaultdict(float)
        for (turn, rolls), chance in here.items():
            stick = sticks(turn, rolls) if rolls else 0.0
            result[turn] += chance * stick
            for face in range(1, 7):
                if face == 1 and not (first_roll_safe and rolls == 0):
                    result[0] += chance * (1 - stick) / 6
                elif stick < 1 and turn + face <= most:
                    after[turn + face, rolls + 1] += chance * (1 - stick) / 6
        here = after
    return result
