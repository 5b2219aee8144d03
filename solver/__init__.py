"""Rules and numerics: boards, games, backward induction. Knows nothing of Ray, Parquet, terminals.

    >>> from luckbase import solver
    >>> board = solver.load_board("boards/press-your-luck/1985-02.toml", score_unit=500)
    >>> game = solver.load_game(board)

* `board`: board files, read and checked; which rules a board asks for.
* `game`: what a game gives, and what follows from it for every game alike.
* `games`: the games, one folder each, which reads as `board`, `rules`, `game`, `layout`, `kernel`,
  `agents`, `charts`, `scene`, as far as it has them.
* `search`: the states below some roots: found, ordered, solved. `dense`: a full table in memory.
  `check`: a game held to its contract.
* `matrix_game`: zero-sum matrix games, for states in which both choose at once.
* `policy`: what agents get: exact values, best responses, Monte Carlo.
* `charts`: charts as data; `scene`: a state as it looks. `result`: results as JSON, and its schema.
* `linear`: linear equations. `errors`: every exception, one tree. `sentences`: words for them.
* `compiled`: compiled code is kept on disk, in a folder for this version of the room. `njit`:
  numba's, for functions that are compiled when they are first called.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from luckbase.solver.compiled import keep_compiled_code_here

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
    from luckbase.solver.game import game  # brings numba

    return game.load_game(board)


def load_layout(board: Board) -> Layout[Any]:
    """The tiers and the kernel of the board's game, for a full table of it.

    Raises OptionError where it has none; else as `load_game`.
    """
    from luckbase.solver.game.capabilities import layout_of

    return layout_of(load_game(board))


keep_compiled_code_here()
