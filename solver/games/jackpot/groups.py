"""What people group the decisions of Jackpot by: how many tiles are open, and what is chosen."""

from __future__ import annotations

import numpy as np

from luckbase.solver.game.game import Game
from luckbase.solver.game.groups import GROUP_TYPE, Axis, Grouped, Groups
from luckbase.solver.game.transition import Numbers
from luckbase.solver.games.jackpot.board import JackpotBoard
from luckbase.solver.games.jackpot.rules import FACES, OPEN, roll_sum
from luckbase.solver.njit import njit


@njit(GROUP_TYPE, cache=True, nogil=True)
def group(board, state, actor, out, rest):  # type: ignore[no-untyped-def]
    """The group of a state, by the contract in `solver.game.groups`."""
    tiles, count = state[OPEN], 0
    while tiles > 0:
        count += tiles & 1
        tiles >>= 1
    out[2], out[3] = count, roll_sum(state)
    return count * 2 + (1 if state[FACES] > 0 else 0)


def groups(game: Game) -> Groups:
    """The groups of a board."""
    assert isinstance(game.board, JackpotBoard)
    options = game.board.rules
    return Groups(
        columns=(
            Grouped("tiles open", [str(k) for k in range(options.tiles + 1)]),
            Grouped("to choose", ["how many dice", "which tiles"]),
        ),
        group=group,
        numbers=Numbers(np.zeros(1, np.int64), np.zeros(1)),
        axes=(
            Axis("tiles_open", "tiles open", 0, 1, options.tiles + 1),
            Axis("roll", "sum of the roll, 0 before it", 0, 1, options.dice * options.sides + 1),
        ),
    )
