"""The games, one folder each, and where to find their rules by name."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from solver.game import Game

GAMES = {
    "press-your-luck": ("solver.games.press_your_luck.game", "PressYourLuck"),
    "jackpot": ("solver.games.jackpot.game", "Jackpot"),
}
"""Game name -> (module, class); imported when asked for, because rules bring numba."""


def game_class(name: str) -> type[Game]:
    """The class of a game that a board may name."""
    module, attribute = GAMES[name]
    found: type[Game] = getattr(importlib.import_module(module), attribute)
    return found
