"""Tables as agents, by name: a directory, or a board file with its table."""

from __future__ import annotations

from contextlib import ExitStack
from functools import cache
from pathlib import Path

from luckbase.cluster.play.agents import Opener, Tabled
from luckbase.cluster.table.find import table_used
from luckbase.cluster.table.table import open_table
from luckbase.solver.board.model import Board


def tables_by_name(open_tables: ExitStack, board: Board, results: Path) -> Opener:
    """Opens the table that an agent's name means on a board, once: a directory whose name has a
    slash, or a board file, whose table under `results` it is; `open_tables` closes it."""

    @cache
    def opener(name: str) -> Tabled | None:
        path = Path(name)
        if ("/" in name and path.is_dir()) or (path.suffix == ".toml" and path.is_file()):
            return open_tables.enter_context(open_table(table_used(name, board, results)))
        return None

    return opener
