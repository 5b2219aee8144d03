"""A whole graph solved below canonical roots (m, fields), all different, its first states."""

import numpy as np

from luckbase.solver.search.game_graph import Graph
from luckbase.solver.search.keys import pack_all


def solve_graph(game, roots):
    graph = Graph(game)
    graph._enter(pack_all(game.strides, np.ascontiguousarray(roots)))
    graph.solve(roots)
    return graph
