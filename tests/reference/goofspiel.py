"""Goofspiel by its definition, in exact fractions: sets of cards, no patterns, no symmetry.

With hands V and Y and the deck P of as many cards, and the lead d (0 where points are played for)::

    f(V, Y, P, d) = mean over k in P of the value of the matrix game
                    A[v, y] = f(V - v, Y - y, P - k, d + won) + won      (points: d stays 0)
                    A[v, y] = f(V - v, Y - y, P - k, d + won)            (winning)

where won is k, 0 or -k. With no cards f is 0 (points), or 1, 1/2, 0 by the sign of d (winning).
Source: Ross 1971; Rhoads and Bartholdi 2012, 3.
"""

from fractions import Fraction
from functools import cache

from tests.reference import matrix_game


@cache
def value(mine, theirs, deck, win=False, lead=0):
    """f: what player one expects before a card is turned up."""
    if not deck:
        return Fraction((lead > 0) - (lead < 0) + 1, 2) if win else Fraction(0)
    games = [matrix_game.solve(game(mine, theirs, deck, k, win, lead)) for k in sorted(deck)]
    return sum((solved[0] for solved in games), Fraction(0)) / len(games)


def game(mine, theirs, deck, upcard, win=False, lead=0):
    """A: my cards ascending are the rows, theirs the columns."""
    rows = []
    for v in sorted(mine):
        row = []
        for y in sorted(theirs):
            won = upcard * ((v > y) - (v < y))
            rest = (mine - {v}, theirs - {y}, deck - {upcard})
            row.append(value(*rest, True, lead + won) if win else value(*rest) + won)
        rows.append(row)
    return rows
