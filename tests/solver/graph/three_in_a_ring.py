"""Three players in a ring: who is up goes on, or takes a chance to end it; nobody has to."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from luckbase.solver.board.model import Board
from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.game import Game
from luckbase.solver.game.transition import (
    Numbers,
    Transition,
    decision,
    lead,
    over,
    transition,
)


@transition
def _ring(board, state, edges):  # type: ignore
    if state[0] == 3:
        return over(edges, 1.0, 0.0, 0.0)
    after = (state[0] + 1) % 3
    for child, weight, action in ((3, 0.5, 0), (after, 0.5, 0), (3, 0.25, 1), (after, 0.75, 1)):
        lead(edges, state, action, weight)[0] = child
    return decision(edges, state[0])


class Ring(Game):
    rules_version: ClassVar[int] = 1
    players: ClassVar[int] = 3
    fields: ClassVar[tuple[tuple[str, int], ...]] = (("up", 1),)
    tie_tolerance: ClassVar[float] = 1e-12

    def __init__(self) -> None:
        super().__init__(Board(game="ring", name="ring"))
        self.max_edges, self.bits = 4, np.array([2])

    @property
    def transition(self) -> Transition:
        return _ring

    @property
    def numbers(self) -> Numbers:
        return Numbers(np.zeros(1, np.int64), np.zeros(1))

    def parse(self, words: Any) -> Ints:
        raise NotImplementedError

    def canonical_states(self, values: Ints) -> Ints:
        return values

    def describe(self, state: Ints) -> dict[str, Any]:
        return {"up": int(state[0])}

    def action_name(self, action: int) -> str:
        return str(action)
