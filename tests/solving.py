"""Read boards, solve tables and open them, one step each; `luckbase` itself takes files too."""

from luckbase import load_board
from luckbase.cluster.answers.find import open_table
from luckbase.cluster.search.solve import solve_below
from luckbase.cluster.solve.full_table import solve as solve_board
from luckbase.solver.game.capabilities import FullTable
from luckbase.solver.game.game import load_game

__all__ = ["load_board", "load_game", "load_layout", "open_table", "solve_below", "solve_board"]


def load_layout(board):
    """Return the tiers and the kernel of the board's game."""
    return load_game(board).need(FullTable)
