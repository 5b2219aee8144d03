"""Three players in a ring: who is up goes on, or takes a chance to end it; nobody has to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from luckbase.solver.board.model import Board
from luckbase.solver.game.rules import DECISION, SUCCESSORS_TYPE, TERMINAL, Game, Ints, Numbers
from luckbase.solver.njit import njit


@njit(SUCCESSORS_TYPE)
def _ring(ints, reals, state, children, weights, actions, rewards, about):  # type: ignore
    if state[0] == 3:
        about[0], about[1] = TERMINAL, -1
        rewards[0, 0], rewards[0, 1], rewards[0, 2] = 1.0, 0.0, 0.0
        return 0
    about[0], about[1] = DECISION, state[0]
    after = (state[0] + 1) % 3
    for k, (child, weight, action) in enumerate(((3, 0.5, 0), (after, 0.5, 0), (3, 0.25, 1))):
        children[k, 0], weights[k], actions[k] = child, weight, action
    children[3, 0], weights[3], actions[3] = after, 0.75, 1
    return 4


class Ring(Game):
    rules_version: ClassVar[int] = 1
    players: ClassVar[int] = 3
    fields: ClassVar[tuple[tuple[str, int], ...]] = (("up", 1),)
    tie_tolerance: ClassVar[float] = 1e-12

    def __init__(self) -> None:
        super().__init__(Board(game="ring", name="ring"))
        self.max_edges, self.bits = 4, np.array([2])

    @property
    def successors(self) -> Callable[..., int]:
        found: Callable[..., int] = _ring
        return found

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
