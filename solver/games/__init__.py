"""The games, one folder each, and where to find a game's board model and its rules by name.

A new game is two classes (a `solver.board.model.Board`, a `solver.game.rules.Game`) and one line
here, or, for a game outside this package, one call of `register` in its module.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from luckbase.solver.board.model import Board
    from luckbase.solver.game.rules import Game


@dataclass(frozen=True)
class Place:
    """Where a game's classes are: each ``module:class``, imported when asked for."""

    board: str
    rules: str


def _here(board: str, rules: str) -> Place:
    """Classes in this package, each ``folder.module:class``."""
    return Place(f"{__name__}.{board}", f"{__name__}.{rules}")


GAMES: dict[str, Place] = {
    "press-your-luck": _here(
        "press_your_luck.board:PressYourLuckBoard", "press_your_luck.game:PressYourLuck"
    ),
    "goofspiel": _here("goofspiel.board:GoofspielBoard", "goofspiel.game:Goofspiel"),
    "jackpot": _here("jackpot.board:JackpotBoard", "jackpot.game:Jackpot"),
    "pig": _here("pig.board:PigBoard", "pig.race:Pig"),
    "pig-rounds": _here("pig.board:PigRoundsBoard", "pig.rounds:PigRounds"),
    "skunk": _here("skunk.board:SkunkBoard", "skunk.game:Skunk"),
}
"""Game name, as a board file says it -> its place."""


def register(name: str, board: type[Board], rules: type[Game]) -> None:
    """Enter a game that lives elsewhere; a worker process does so by importing its module."""
    GAMES[name] = Place(*(f"{found.__module__}:{found.__qualname__}" for found in (board, rules)))


def board_class(name: str) -> type[Board]:
    """The model of the board files of a game; KeyError for a name that is none."""
    found: type[Board] = _load(GAMES[name].board)
    return found


def game_class(name: str) -> type[Game]:
    """The class of a game that a board may name."""
    found: type[Game] = _load(GAMES[name].rules)  # brings numba
    return found


def _load(where: str) -> type:
    module, attribute = where.split(":")
    found: type = getattr(importlib.import_module(module), attribute)
    return found
