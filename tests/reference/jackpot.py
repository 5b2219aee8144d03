"""Jackpot and Shut the Box.

A position is the frozenset of the tiles still open (not yet flipped), a roll the tuple of the faces
in the order of the dice. With all rolls equally likely, in exact fractions:

    value(open)       = 1, or minus nothing                    if open is empty,
                      = the mean of after(open, roll)          over the rolls, otherwise;
    after(open, roll) = 0, or minus the sum of open            if the roll offers no choice,
                      = the best of value(open - flipped)      over the choices, otherwise.

The first of each pair is for the chance to shut all, the second for the least sum left, which is
counted negative so that more is better. With ``one_die`` and no tile above the faces of one die
left open, one die is rolled ("must") or the better of one die and all of them ("may").

Readings where the rules leave room
-----------------------------------
* Jackpot's list of choices: the first die, the second die, their sum, those that are open tiles;
  doubles stand in it twice. Shut the Box's: every set of open tiles with the roll's sum.
* An agent is asked with that list even where it has one entry: no agent can choose anything else.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations, product

Open = frozenset[int]

PRIORITY = (9, 8, 7, 1, 2, 3, 4, 5, 6)

AGENTS = {
    "min": min,
    "max": max,
    "first": lambda tiles: tiles[0],
    "last": lambda tiles: tiles[-1],
    "hilo": lambda tiles: min(tiles, key=PRIORITY.index),
    "hilo2": lambda tiles: max(tiles) if max(tiles) >= 7 else min(tiles),
}


@dataclass(frozen=True)
class Reference:
    """The game with these rules."""

    tiles: int = 9
    dice: int = 2
    sides: int = 6
    allowed: str = "jackpot"
    one_die: str = "never"
    objective: str = "shut"

    def positions(self):
        """Every set of tiles, the smaller sets first."""
        for count in range(self.tiles + 1):
            yield from map(frozenset, combinations(range(1, self.tiles + 1), count))

    def dice_rolled(self, open):
        """How many dice may be rolled here."""
        if self.one_die == "never" or any(tile > self.sides for tile in open):
            return (self.dice,)
        return (self.dice, 1) if self.one_die == "may" else (1,)

    def rolls(self, dice):
        return list(product(range(1, self.sides + 1), repeat=dice))

    def choices(self, open, roll):
        """What may be flipped: first die, second die, sum."""
        if self.allowed == "jackpot":
            numbers = [*roll, sum(roll)] if len(roll) > 1 else [*roll]
            return [frozenset({n}) for n in numbers if n in open]
        sets = (s for k in range(1, len(open) + 1) for s in combinations(open, k))
        return [frozenset(s) for s in sets if sum(s) == sum(roll)]

    def left(self, open):
        """The payoff of a game that is over with these tiles open."""
        if self.objective == "sum":
            return Fraction(-sum(open))
        return Fraction(int(not open))

    def mean(self, values):
        return sum(values, Fraction(0)) / len(values)

    @cached_property
    def value(self):
        """The value of every position before the roll, under the best play."""
        result = {}
        for open in self.positions():
            if not open:
                result[open] = self.left(open)
                continue
            result[open] = max(
                self.mean([self.after(result, open, roll) for roll in self.rolls(dice)])
                for dice in self.dice_rolled(open)
            )
        return result

    def after(self, value, open, roll):
        """The value after the roll, from the values of the positions with fewer open tiles."""
        choices = self.choices(open, roll)
        return max(value[open - flipped] for flipped in choices) if choices else self.left(open)

    def flip(self, agent, open, roll):
        """The tile that an agent flips (allowed = "jackpot"); None where nothing is allowed."""
        tiles = [min(flipped) for flipped in self.choices(open, roll)]
        return agent(tiles) if tiles else None

    def reach(self, agent):
        """The chance that a game of this agent comes to each position: forward, by layers."""
        chance = dict.fromkeys(self.positions(), Fraction(0))
        chance[frozenset(range(1, self.tiles + 1))] = Fraction(1)
        rolls = self.rolls(self.dice)
        for open in sorted(chance, key=len, reverse=True):
            for roll in rolls if open else []:
                tile = self.flip(agent, open, roll)
                if tile is not None:
                    chance[open - {tile}] += chance[open] / len(rolls)
        return chance
