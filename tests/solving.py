"""Read boards, solve tables and open them, one step each; `luckbase` itself takes files too."""

from luckbase import load_board
from luckbase.cluster.answers.find import open_table
from luckbase.cluster.search.solve import solve_below
from luckbase.cluster.solve.full_table import solve as solve_board
from luckbase.solver.game.capabilities import FullTable
from luckbase.solver.game.game import load_game
from luckbase.solver.search.bellman import evaluate, payoffs_of
from luckbase.solver.search.expand import expand

__all__ = [
    "load_board", "load_game", "load_layout", "one_step", "open_table", "solve_below",
    "solve_board",
]  # fmt: skip


def load_layout(board):
    """Return the tiers and the kernel of the board's game."""
    return load_game(board).need(FullTable)


def one_step(solved, states):
    """Return the payoffs of states from their children's in a table in memory, by the rules, with
    another step for children without a row."""
    edges = expand(solved.game, states)
    below, in_table = solved.lookup(edges.children)
    if not in_table.all():
        below[~in_table] = one_step(solved, edges.children[~in_table])
    q = evaluate(edges, below)
    return payoffs_of(edges.kinds, edges.actors, q, solved.game.tie_tolerance)
