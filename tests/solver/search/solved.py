"""A whole graph solved below some roots, which are its first states."""

import numpy as np

from luckbase.solver.search.game_graph import Graph
from luckbase.solver.search.keys import pack_all


def solve_graph(game, roots, *, known=None, max_states=1 << 30):
    """The graph of canonical roots (m, fields), all different, solved. known: keys and payoffs
    (k, players) of states that need not be expanded."""
    graph = Graph(game, max_states=max_states)
    graph._enter(pack_all(game.strides, np.ascontiguousarray(roots)))
    if known is not None:
        graph.know(*known)
    graph.solve(roots)
    return graph
