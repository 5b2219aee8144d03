"""Searches that are cut at a depth: the first levels below some roots, with bounds.

The graph is that of the states whose shortest way from a root has fewer edges than the depth; those
at it are leaves, unless they are over, and may be worth anything that the game allows. Backward
induction of lower and upper payoffs (`solver.graph.game_graph`) then bounds every state above: the
graph of a greater depth has more states solved and fewer leaves, so bounds only narrow. Deeper
level by level, the search ends when the actions of every root that has a choice are told apart.

How deep a state is depends on the roots, not on the state, so such a search is one piece and is not
sharded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from luckbase.cluster.search.merge import PayoffTable, merge, solved_rows
from luckbase.cluster.table.write import STATUS
from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.game import Game
from luckbase.solver.graph.bellman import expand
from luckbase.solver.graph.codes import KNOWN
from luckbase.solver.graph.explore import INNER, Explorer
from luckbase.solver.graph.game_graph import Graph


@dataclass(frozen=True)
class Cut:
    """What a cut search found: its table, the depth that was needed, states solved, edges."""

    table: PayoffTable
    depth: int
    states: int
    edges: int
    bytes_a_state: float


def solve_cut(
    game: Game,
    roots: Ints,
    max_depth: int,
    max_states: int,
    on_level: Callable[[int, int], None] = lambda depth, states: None,
) -> Cut:
    """Bounds of what lies at most `max_depth` (from 1) levels below canonical roots (m, fields).

    Raises SearchLimitError beyond `max_states`, StateError as `Graph.solve`.
    """
    unknown = np.repeat(game.payoff_range, game.players)
    several = np.array([has_choice(game, root) for root in roots])
    explorer = Explorer(game, roots, max_states=max_states)
    depth, more = 0, True
    while depth < max_depth and more:
        more = explorer.deeper()
        depth += more
        explorer.mark_over()
        levels = explorer.levels
        last = levels.level(levels.depth)
        leaves = levels.keys[last][levels.kinds[last] == INNER] if more else levels.keys[:0]
        graph = Graph(game, bounds=True, max_states=max_states)
        graph.know(leaves, np.tile(unknown, (len(leaves), 1)))
        at = graph.solve(roots)
        on_level(depth, graph.count)
        if several.any() and (graph.best[at][several] >= 0).all():
            break
    rows = solved_rows(graph)
    cut = PayoffTable(
        leaves, np.tile(unknown, (len(leaves), 1)), np.full(len(leaves), KNOWN),
        np.full(len(leaves), STATUS.index("cut"), np.uint8),
    )  # fmt: skip
    table, _ = merge(game, [rows, cut])
    return Cut(table, depth, len(rows), graph.edges, graph.bytes_a_state)


def has_choice(game: Game, state: Ints) -> bool:
    """Whether a state (fields,) has more than one action."""
    return len(np.unique(expand(game, state.reshape(1, -1)).actions)) > 1
