"""Rules and numerics: boards, games, backward induction. Knows nothing of Ray, Parquet, terminals.

>>> from luckbase import solver
>>> board = solver.load_board("boards/press-your-luck/1985-02.toml", score_unit=500)
>>> game = solver.load_game(board)
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from luckbase.solver.board.model import Board
    from luckbase.solver.game.capabilities import Layout
    from luckbase.solver.game.game import Game

__all__ = ["load_board", "load_game", "load_layout"]


def load_board(path: str | os.PathLike[str], **settings: object) -> Board:
    """Read and check a board file; `settings` change its options as ``--set name=value`` does.

    Raises BoardError or OptionError, each one sentence.
    """
    from luckbase.solver.board.file import as_words, path_of, read_board

    return read_board(path_of(path), as_words(settings))


def load_game(board: Board) -> Game:
    """The rules of the board's game, bound to the board.

    Raises BoardError or OptionError for a board that the file format holds and the solver does
    not take.
    """
    from luckbase.solver.game import game

    return game.load_game(board)


def load_layout(board: Board) -> Layout[Any]:
    """The tiers and the kernel of the board's game, for a full table of it.

    Raises OptionError where it has none; else as `load_game`.
    """
    from luckbase.solver.game.capabilities import Layout

    return load_game(board).need(Layout)
