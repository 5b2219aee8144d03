"""The games, one folder each, and where to find a game's board model and its rules by name.

A new game is two classes (a `solver.board.Board`, a `solver.game.Game`) and one line here, or, for
a game outside this package, one call of `register` in its module.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from solver.board import Board
    from solver.game import Game


@dataclass(frozen=True)
class Place:
    """Where a game's classes are: each ``module:class``, imported when asked for."""

    board: str
    rules: str


GAMES: dict[str, Place] = {
    "press-your-luck": Place(
        "solver.games.press_your_luck.board:PressYourLuckBoard",
        "solver.games.press_your_luck.game:PressYourLuck",
    ),
    "goofspiel": Place(
        "solver.games.goofspiel.board:GoofspielBoard",
        "solver.games.goofspiel.game:Goofspiel",
    ),
    "jackpot": Place(
        "solver.games.jackpot.board:JackpotBoard", "solver.games.jackpot.game:Jackpot"
    ),
    "pig": Place("solver.games.pig.board:PigBoard", "solver.games.pig.race:Pig"),
    "pig-rounds": Place(
        "solver.games.pig.board:PigRoundsBoard", "solver.games.pig.rounds:PigRounds"
    ),
    "skunk": Place("solver.games.skunk.board:SkunkBoard", "solver.games.skunk.game:Skunk"),
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
