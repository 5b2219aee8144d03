"""Rules and numerics: boards, games, backward induction. Knows nothing of Ray, Parquet, terminals.

    >>> from luckbase import solver
    >>> board = solver.load_board("boards/press-your-luck/1985-02.toml", score_unit=500)
    >>> game = solver.load_game(board)

Compiled functions are kept on disk, each module's in a folder of its own: `solver.compiled`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from luckbase.solver.compiled import keep_compiled_code_here

if TYPE_CHECKING:
    from luckbase.solver.board.model import Board
    from luckbase.solver.game.rules import Game
    from luckbase.solver.game.tiered import TieredGame

__all__ = ["load_board", "load_game", "load_tiered_game"]


def load_board(path: str | os.PathLike[str], **settings: object) -> Board:
    """Read and check a board file; `settings` change its options as ``--set name=value`` does.

    Raises BoardError or OptionError, each one sentence.
    """
    from luckbase.solver.board.model import read_board  # pydantic takes a while to import

    words = {k: str(v).lower() if isinstance(v, bool) else str(v) for k, v in settings.items()}
    return read_board(Path(path), words)


def load_game(board: Board) -> Game:
    """The rules of the board's game, bound to the board.

    Raises BoardError or OptionError for a board that the file format holds and the solver does
    not take.
    """
    from luckbase.solver.games import game_class

    return game_class(board.game)(board)


def load_tiered_game(board: Board) -> TieredGame[Any]:
    """The same for a game that a full table can be solved of. Raises BoardError where it is not."""
    from luckbase.solver.errors import BoardError
    from luckbase.solver.game.tiered import TieredGame

    game = load_game(board)
    if not isinstance(game, TieredGame):
        raise BoardError(
            f"board {board.name}: {board.game} has no tiers, so there is no full table to plan; "
            "luckbase solve searches what lies below its start, or below --from"
        )
    return game


keep_compiled_code_here()
