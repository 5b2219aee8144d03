"""How many spins the questions of Press Your Luck give, slowly and obviously: every course of them.

A course of one question is who buzzes in first (or nobody) and who of all is right. All courses of
all questions are listed, one after another, with their chances.
"""

from fractions import Fraction
from itertools import product


def courses(questions, buzzes, buzz_right, choice_right, buzz_spins, choice_spins):
    """The chance of every tuple of spins; buzzes: how likely each player is to be first, and the
    rest is nobody."""
    players = range(len(buzzes))
    no_player = len(buzzes)
    likely = [*buzzes, 1 - sum(buzzes)]
    result = {}
    single = list(product([*players, no_player], product([True, False], repeat=len(buzzes))))
    for course in product(single, repeat=questions):
        chance, spins = Fraction(1), [0 for _ in players]
        for first, right in course:
            chance *= likely[first]
            for player in players:
                knows = buzz_right if player == first else choice_right
                if right[player]:
                    chance *= knows
                    spins[player] += buzz_spins if player == first else choice_spins
                else:
                    chance *= 1 - knows
        if chance:
            result[tuple(spins)] = result.get(tuple(spins), Fraction(0)) + chance
    return result
