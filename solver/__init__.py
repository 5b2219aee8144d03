"""Rules and numerics: boards, games, backward induction. Independent of Ray, Parquet and terminals.

>>> from luckbase import solver
>>> board = solver.load_board("boards/press-your-luck/1985-02.toml", score_unit=500)
>>> game = solver.load_game(board)
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from luckbase.solver.board.model import Board
    from luckbase.solver.game.capabilities import FullTable
    from luckbase.solver.game.game import Game

__all__ = ["load_board", "load_game", "load_layout"]


def load_board(path: str | os.PathLike[str], **settings: object) -> Board:
    """Read and check a board file; `settings` change its options as ``--set name=value`` does.

    Raises BoardError or OptionError, each with one sentence.
    """
    from luckbase.solver.board.file import as_words, path_of, read_board

    return read_board(path_of(path), as_words(settings))


def load_game(board: Board) -> Game:
    """Return the rules of the board's game, bound to the board.

    Raises BoardError or OptionError for a board that is valid as a file but that the solver does
    not support.
    """
    from luckbase.solver.game import game

    return game.load_game(board)


def load_layout(board: Board) -> FullTable[Any]:
    """Return the tiers and the kernel of the board's game, for a full table.

    Raises OptionError if the game has none, and the errors of `load_game`.
    """
    from luckbase.solver.game.capabilities import FullTable

    return load_game(board).need(FullTable)
