"""Three players in a ring: who is up goes on, or takes a chance to end it; nobody has to."""

from __future__ import annotations

import numba as nb

from luckbase.solver.board.model import Board
from luckbase.solver.game.fields import Field
from luckbase.solver.game.game import Game
from luckbase.solver.game.rules import DECISION, SUCCESSORS_TYPE, TERMINAL, Rules


@nb.njit(SUCCESSORS_TYPE)
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


def ring() -> Game:
    """The game."""
    rules = Rules(
        fields=[Field("up", high=3)],
        players=3,
        transition=_ring,
        numbers=[0],
        max_edges=4,
        actions=str,
    )
    return Game(Board(game="ring", name="ring"), rules)
