"""Goofspiel solved in memory, once a process, for agents who play for an objective that need not be
the board's."""

from __future__ import annotations

import threading
from functools import lru_cache

from luckbase.solver.errors import OptionError
from luckbase.solver.game.game import load_game
from luckbase.solver.game.in_memory import InMemory
from luckbase.solver.games.goofspiel.board import GoofspielBoard
from luckbase.solver.games.goofspiel.layout import Layers

MOST_GAMES = 400_000_000
"""Matrix games that are solved without a word: half a minute of work and half a gigabyte."""


SECONDS_A_GAME = 7.5e-8
_LOCK = threading.Lock()


def solved(cards: int, objective: str) -> InMemory[int]:
    """The whole game of so many cards for "points" or "win", solved once a process, whichever of
    its threads asks.

    Raises OptionError where it is too large for that.
    """
    with _LOCK:
        return _solved(cards, objective)


@lru_cache(maxsize=4)
def _solved(cards: int, objective: str) -> InMemory[int]:
    return InMemory(_layers(cards, objective))


def check_size(cards: int, objective: str) -> None:
    """Raises OptionError for a game that is too large to be solved in memory."""
    _layers(cards, objective)


def seconds(cards: int, objective: str) -> float:
    """About how long it takes to solve one that is not too large."""
    return SECONDS_A_GAME * _games(_layers(cards, objective))


def _games(layers: Layers) -> int:
    """The matrix games that are solved."""
    return sum(layers.layer(tier).games for tier in layers.tiers())


def _layers(cards: int, objective: str) -> Layers:
    rules = {"cards": cards, "objective": objective}
    board = GoofspielBoard.model_validate({"game": "goofspiel", "name": objective, "rules": rules})
    layers = Layers(load_game(board))
    games = _games(layers)
    if games > MOST_GAMES:
        raise OptionError(
            f"cards: {cards} is too many for a player who solves the game for {objective} in "
            f"memory, with {games:.1e} matrix games; write a number for which they are at most "
            f"{MOST_GAMES:.0e}, 12 for points and 10 for win"
        )
    return layers
