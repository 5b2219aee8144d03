"""Tables' directories as agents."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from luckbase.cluster.play.agents import Opener, Tabled
from luckbase.cluster.table.stored import open_table


def tables_by_name(open_tables: ExitStack) -> Opener:
    """Opens the table in a directory whose name has a slash; `open_tables` closes it."""

    def opener(name: str) -> Tabled | None:
        if "/" in name and Path(name).is_dir():
            return open_tables.enter_context(open_table(name))
        return None

    return opener
