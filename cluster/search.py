"""Questions above a table's frontier: search down to it, probe there, back up.

From the question's state every successor is expanded and merged by key until it is over or the
table holds it (`solver.graph`); the table's payoffs come in there, and the rest is backward
induction by the rules. So an answer above the frontier is as exact as the table below it: its
payoffs are means of the table's, within the same bound. Two actions that the table's precision can
not tell apart count as tied, and the earlier is taken.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster.probe import Action, Answer, Table
from solver.backup import choose, evaluate, expand
from solver.game import Floats, Game, Ints
from solver.graph import solve_graph


def answer_by_search(table: Table, state: Ints, max_states: int) -> Answer:
    """The answer to one canonical state (fields,) above the table's frontier.

    max_states: how many the search may meet; a million take about 200 MB and 2 s.

    Raises SearchLimitError, saying how far it got; StateError for a cycle with a choice in it.
    """
    game: Game = table.game
    edges = expand(game, state.reshape(1, -1))
    children, which = np.unique(edges.children, axis=0, return_inverse=True)
    tolerance = game.tie_tolerance + 2 * table.error

    def known(states: Ints) -> NDArray[np.bool_]:
        return table.holds(states)

    solved = solve_graph(
        game, children, known=known, payoffs=table.probe, tolerance=tolerance, max_states=max_states
    )
    below: Floats = solved.values[: len(children)][which.reshape(-1)]
    q = evaluate(edges, below)
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
