"""Rules and numerics: boards, games, backward induction. Knows nothing of Ray, Parquet, terminals.

    >>> from luckbase import solver
    >>> board = solver.load_board("boards/press-your-luck/1985-02.toml", score_unit=500)
    >>> game = solver.load_game(board)

numba keeps compiled functions on disk and does not notice when a function in *another* file
changes, so its cache goes to a folder named by the hash of this package's sources: new sources,
new folder, before anything is compiled.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from luckbase.solver.board.model import Board
    from luckbase.solver.game.capabilities import Layout
    from luckbase.solver.game.game import Game

__all__ = ["load_board", "load_game", "load_layout", "source_hash"]


def source_hash() -> str:
    """SHA-256 of this package's sources, in hexadecimal: names and contents, sorted by name."""
    root = Path(__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def load_board(path: str | os.PathLike[str], **settings: object) -> Board:
    """Read and check a board file; `settings` change its options as ``--set name=value`` does.

    Raises BoardError or OptionError, each one sentence.
    """
    from luckbase.solver.board.file import read_board

    words = {k: str(v).lower() if isinstance(v, bool) else str(v) for k, v in settings.items()}
    return read_board(Path(path), words)


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


def _point_numba_at_our_cache() -> None:
    if "LUCKBASE_NUMBA" not in os.environ:  # once; worker processes inherit both
        name = f"numba-{source_hash()[:16]}"
        homes = [os.environ.get("NUMBA_CACHE_DIR"), os.path.expanduser("~/.cache/luckbase")]
        for home in [*filter(None, homes), tempfile.gettempdir()]:
            folder = Path(home) / name
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError:
                continue
            if os.access(folder, os.W_OK):
                os.environ["NUMBA_CACHE_DIR"] = os.environ["LUCKBASE_NUMBA"] = str(folder)
                break
        else:
            return
    if "numba" in sys.modules:
        sys.modules["numba"].config.CACHE_DIR = os.environ["LUCKBASE_NUMBA"]


_point_numba_at_our_cache()
