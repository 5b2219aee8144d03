"""What a roll of the n-round Pig brings, in words, as `solver.games.skunk.dice` has them."""

from __future__ import annotations

from luckbase.solver.game.arrays import Ints
from luckbase.solver.games.pig import rounds_kernel as kernel
from luckbase.solver.games.pig.board import PigRoundsBoard
from luckbase.solver.games.skunk.dice import RollNames


class RoundsNames:
    """The names of what rolls bring on a board."""

    def __init__(self, board: PigRoundsBoard) -> None:
        race = board.rules.race()
        self.said, self.cut, self.most = RollNames(race), board.solve.cut, race.dice * race.sides

    def names(self, state: Ints, action: int, children: Ints) -> list[str | None]:
        """What each state (n, fields) is called that an action leads to; None near the cut, where
        a state that is over does not say whether the turn was lost."""
        lead = state[kernel.MINE] - state[kernel.YOURS] + state[kernel.TURN]
        if action != kernel.ROLL or lead + self.most >= self.cut:
            return [None] * len(children)
        return [self._name(state.tolist(), child) for child in children.tolist()]

    def _name(self, state: list[int], child: list[int]) -> str:
        first = state[kernel.TURN] == 0
        whose = kernel.ROUND, kernel.PLAYER
        if any(child[at] != state[at] for at in whose):
            return self.said.lost(first, score=False)
        return self.said.points(first, child[kernel.TURN] - state[kernel.TURN])
