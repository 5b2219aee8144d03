"""Questions above a table's frontier: search down to it, probe there, back up.

From the question's state every successor is expanded and merged by key until it is over or the
table holds it (`solver.explore`); the table's payoffs of those are looked up at once, and the rest
is backward induction by the rules (`solver.graph`). So an answer above the frontier is as exact as
the table below it: its payoffs are means of the table's, within the same bound. Two actions that
the table's precision can not tell apart count as tied, and the earlier is taken.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cluster.answer import Action, Answer, Table
from solver.backup import choose, evaluate, expand
from solver.explore import HELD, explore
from solver.game import Floats, Game, Ints
from solver.graph import Graph
from solver.keys import Keys, unpack_all


def known_below(table: Table, roots: Ints, max_states: int) -> tuple[Keys, Floats]:
    """The states that the table holds among those met from `roots` without going through another
    such: keys (k,) and payoffs (k, players)."""
    found = explore(table.game, roots, held=table.holds, max_states=max_states)
    keys = np.ascontiguousarray(found.keys[found.kinds == HELD])
    return keys, table.probe(unpack_all(table.game.bits, keys))


def answer_by_search(table: Table, state: Ints, max_states: int) -> Answer:
    """The answer to one canonical state (fields,) above the table's frontier.

    max_states: how many the search may meet; a million take about 80 MB and 2 s.

    Raises SearchLimitError, saying how far it got; StateError for a cycle that is not covered.
    """
    game: Game = table.game
    tolerance = game.tie_tolerance + 2 * table.error
    keys, payoffs = known_below(table, state.reshape(1, -1), max_states)
    graph = Graph(game, tolerance=tolerance, max_states=max_states)
    graph.know(keys, payoffs)
    edges = expand(game, state.reshape(1, -1))
    children = graph.solve(edges.children)
    q = evaluate(edges, graph.values[children])
    actor = int(edges.actors[0])
    best = choose(q.values, actor, tolerance)
    order = sorted(range(len(q.actions)), key=lambda k: (k != best, -q.values[k, actor], k))
    actions = tuple(
        Action(game.action_name(int(q.actions[k])), tuple(map(float, q.values[k]))) for k in order
    )
    own: Any = q.values[:, actor]
    return Answer(
        board=table.manifest.board,
        state=game.describe(state),
        to_act=actor + 1,
        value=actions[0].value,
        actions=actions,
        best=actions[0].name,
        toss_up=bool((own >= own.max() - tolerance).sum() > 1),
        error=table.error,
        source="search",
    )
