"""Goofspiel solved in memory, once a process, for agents who play for an objective that need not be
the board's."""

from __future__ import annotations

from functools import lru_cache

from luckbase.solver.errors import OptionError
from luckbase.solver.game.game import load_game
from luckbase.solver.game.in_memory import InMemory
from luckbase.solver.games.goofspiel.board import GoofspielBoard
from luckbase.solver.games.goofspiel.layout import Layers

MOST_GAMES = 400_000_000
"""Matrix games that are solved without a word: half a minute of work and half a gigabyte."""


@lru_cache(maxsize=4)
def solved(cards: int, objective: str) -> InMemory[int]:
    """The whole game of so many cards for "points" or "win", solved once a process.

    Raises OptionError where it is too large for that.
    """
    rules = {"cards": cards, "objective": objective}
    board = GoofspielBoard.model_validate({"game": "goofspiel", "name": objective, "rules": rules})
    layers = Layers(load_game(board))
    games = sum(layers.layer(tier).games for tier in layers.tiers())
    if games > MOST_GAMES:
        raise OptionError(
            f"cards: {cards} is too many for a player who solves the game for {objective} in "
            f"memory, with {games:.1e} matrix games; write a number for which they are at most "
            f"{MOST_GAMES:.0e}, 12 for points and 10 for win"
        )
    return InMemory(layers)
