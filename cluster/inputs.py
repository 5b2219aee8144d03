"""What a person gives, in Python or typed: boards, states, roots, tables, and what it asks for."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from luckbase.cluster.table.find import find_table, table_of, table_used
from luckbase.cluster.words import many
from luckbase.solver import load_board, load_game
from luckbase.solver.board.file import as_words
from luckbase.solver.board.model import Board
from luckbase.solver.errors import MemoryLimitError, MissingTableError, OptionError
from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.capabilities import Layout, hints, layout_of, plain
from luckbase.solver.game.game import Game
from luckbase.solver.sentences import option

if TYPE_CHECKING:
    from luckbase.cluster.run.options import SolveOptions
    from luckbase.cluster.run.progress import Solved
    from luckbase.cluster.table.table import StoredTable, Table

MAX_IN_MEMORY = 100_000_000
"""States of a full table that is kept in memory."""
MAX_SEARCHED = 1e9
"""States that a search without a word is begun for, by the game's own rough guess."""


def roots_of(game: Game, start: Any) -> Ints | None:
    """The canonical states (m, fields) where searches begin (`cluster.table.frames.roots_of`)."""
    from luckbase.cluster.table import frames

    return frames.roots_of(game, start)


def game_of(board: Board | str | os.PathLike[str], /, **options: object) -> Game:
    """The rules of a board, or of a board file. Raises BoardError, OptionError."""
    return load_game(board_of(board, **options))


def board_of(board: Board | str | os.PathLike[str], /, **options: object) -> Board:
    """A board as it is, or a board file read with its options."""
    if not isinstance(board, Board):
        return load_board(board, **options)
    if options:
        name = next(iter(options))
        raise OptionError(f"{name}: the board is there already; give options to load_board")
    return board


def start_of(game: Game, start: Any) -> Ints:
    """The one canonical state (fields,) where plays begin: the one given, or the game's own.

    Raises OptionError where there is none, or more than one.
    """
    roots = roots_of(game, start)
    if roots is None:
        return game.needed_start()
    if len(roots) != 1:
        raise OptionError(
            f"{option('start')}: {many(len(roots), 'state')} given; a play starts from one"
        )
    found: Ints = roots[0]
    return found


def has_full_table(game: Game, on_note: Callable[[str], None] = lambda text: None) -> bool:
    """Whether the board has a full table; one that has none, but not too many states, is searched.

    Raises OptionError, the game's, where there are too many.
    """
    if Layout not in game.rules.capabilities:
        return False
    try:
        game.need(Layout)
    except OptionError as why:
        root, below = game.start(), hints(game).states_below
        if root is None or (below is not None and below(root) > MAX_SEARCHED):
            raise
        on_note(f"{why}; searching all that its rules lead to")
        return False
    return True


def solved(board: Board, start: Any, options: SolveOptions) -> Solved:
    """Solve what is missing: of the board's full table, or, where the board has none or `start` or
    `options` ask for a search, of what lies below some states. Raises as `luckbase.solve`."""
    from luckbase import cluster
    from luckbase.cluster.run.options import Options

    read, game = Options(**options), load_game(board)
    if start is None and not read.searches and has_full_table(game, read.on_note):
        return cluster.solve(board, **options)
    if read.using is not None:
        options = options.copy()
        options["using"] = table_used(read.using, board, read.folder)
    return cluster.solve_below(board, roots_of(game, start), **options)


def opened(board_or_path: Any, results: Path, options: Mapping[str, object]) -> StoredTable:
    """The table in a directory, or that of a board; open.

    Raises MissingTableError, which says what would be right, and as `find_table`.
    """
    from luckbase.cluster.table.table import open_table

    if isinstance(board_or_path, Board):
        board = board_of(board_or_path, **options)
        path = table_of(board, results)
        if path is None:
            raise MissingTableError(
                f"board {board.name}: no table of it under {results}; solve it first, or give "
                "in_memory=True"
            )
        return open_table(path, named_by_board=True)
    found = find_table(os.fspath(board_or_path), results, as_words(options))
    return open_table(found.path, named_by_board=found.by_board)


def in_memory(board_or_path: Any, start: Any, options: Mapping[str, object]) -> Table:
    """The table of a board, solved here and kept in memory: its full table, or what lies below
    `start`. Raises MemoryLimitError, SearchLimitError where that is too much."""
    from luckbase.cluster.table.table import search_in_memory, tiers_in_memory

    game = plain(game_of(board_or_path, **options))
    if start is None and has_full_table(game):
        layout = layout_of(game)
        rows = sum(map(layout.rows, layout.tiers()))
        if rows > MAX_IN_MEMORY:
            raise MemoryLimitError(
                f"board {game.board.name}: {many(rows, 'state')} are too many to keep in memory; "
                f"solve its table, or take {layout.smaller}"
            )
        return tiers_in_memory(layout)
    roots = roots_of(game, start)
    return search_in_memory(game, game.needed_start() if roots is None else roots)
