"""What people group the decisions of Goofspiel by: cards left, and the upcard."""

from __future__ import annotations

import numpy as np

from luckbase.solver.game.game import Game
from luckbase.solver.game.groups import GROUP_TYPE, Axis, Grouped, Groups
from luckbase.solver.game.transition import Numbers
from luckbase.solver.games.goofspiel.board import GoofspielBoard
from luckbase.solver.games.goofspiel.patterns import size_of
from luckbase.solver.games.goofspiel.rules import DECK, MINE, UPCARD, points_of
from luckbase.solver.njit import njit


@njit(GROUP_TYPE, cache=True, nogil=True)
def group(board, state, actor, out, rest):  # type: ignore[no-untyped-def]
    """The group of a state, by the contract in `solver.game.groups`."""
    cards = size_of(state[MINE])
    out[2], out[3] = cards, points_of(state[DECK])
    return cards * board.ints[0] + state[UPCARD]


def groups(game: Game) -> Groups:
    """The groups of a board."""
    assert isinstance(game.board, GoofspielBoard)
    options = game.board.rules
    cards = options.cards + 1
    return Groups(
        columns=(
            Grouped("cards left", [str(k) for k in range(cards)]),
            Grouped("upcard", ["none", *(str(k) for k in range(1, cards))]),
        ),
        group=group,
        numbers=Numbers(np.array([cards], np.int64), np.zeros(1)),
        axes=(
            Axis("cards_left", "cards left", 0, 1, cards),
            Axis("deck", "points of the deck", 0, 1, options.points + 1),
        ),
    )
