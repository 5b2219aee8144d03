"""Workers and storage: solve a table, store it, query it and check it; play with it.

Users call the functions of `luckbase` itself. `solve_board`, `solve_below` and `open_table` of this
module take boards, canonical states and folders that are already read.

>>> from luckbase import cluster, solver
>>> solved = cluster.solve_board(solver.load_board("boards/press-your-luck/tiny.toml"))
>>> with cluster.open_table(solved.table) as table:
...     table.ask({"scores": "0,1000,500", "earned": "0,1,0"}).best
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from luckbase.cluster.answers.find import open_table
    from luckbase.cluster.search.solve import solve_below
    from luckbase.cluster.solve.full_table import solve as solve_board

__all__ = ["open_table", "solve_below", "solve_board"]
_WHERE = {
    "open_table": ("answers.find", "open_table"),
    "solve_below": ("search.solve", "solve_below"),
    "solve_board": ("solve.full_table", "solve"),
}


def __getattr__(name: str) -> Any:
    # Importing numba and pyarrow takes a second: do so only when needed.
    if name in _WHERE:
        module, function = _WHERE[name]
        return getattr(import_module(f"luckbase.cluster.{module}"), function)
    raise AttributeError(f"module 'cluster' has no attribute {name!r}")
