"""The Pig that is a race, bound to a board. It is Skunk with other dice: one rules function, one
kernel, one layout of rows (`solver.games.skunk`).

A turn lost leaves both scores as they are, so cycles go only through {(m, y), (y, m)}: the pair of
banked scores and who has the dice. The kernel solves each such pair after those of a higher sum,
and one sweep is enough.
"""

from __future__ import annotations

from collections.abc import Iterator

from luckbase.solver.board.model import Board
from luckbase.solver.games.pig.board import PigBoard
from luckbase.solver.games.skunk.board import Rules
from luckbase.solver.games.skunk.game import Skunk


class Pig(Skunk):
    """Two players, first to the goal; fields, payoffs and rows as Skunk's."""

    def _rules(self, board: Board) -> Rules:
        assert isinstance(board, PigBoard)
        return board.rules.race()

    def opening_questions(self) -> Iterator[tuple[str, dict[str, str]]]:
        shares = (
            ("the start", (0.0, 0.0, 0.0)),
            ("level, at the usual hold", (0.0, 0.0, 0.2)),
            ("far behind", (0.2, 0.8, 0.2)),
            ("both nearly there", (0.9, 0.9, 0.05)),
        )
        for title, parts in shares:
            yield (
                title,
                {
                    name: str(int(part * self.goal))
                    for name, part in zip(("mine", "yours", "turn"), parts, strict=True)
                },
            )
