"""The Pig that is a race, bound to a board: Skunk's rules with other dice (`solver.games.skunk`).

A turn lost leaves both scores as they are, so cycles go only through {(m, y), (y, m)}: the pair of
banked scores and who has the dice. The kernel solves each such pair after those of a higher sum,
and one sweep is enough.
"""

from __future__ import annotations

from luckbase.solver.game.rules import Rules
from luckbase.solver.games.pig.board import PigBoard
from luckbase.solver.games.skunk.game import race
from luckbase.solver.games.skunk.tiers import Question

QUESTIONS: tuple[Question, ...] = (
    ("the start", (0.0, 0.0, 0.0)),
    ("level, at the usual hold", (0.0, 0.0, 0.2)),
    ("far behind", (0.2, 0.8, 0.2)),
    ("both nearly there", (0.9, 0.9, 0.05)),
)


def pig(board: PigBoard) -> Rules:
    """The rules of the race on a board."""
    return race(board, board.rules.race(), QUESTIONS)
