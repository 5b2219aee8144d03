"""A table's best actions as an agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from luckbase.solver.errors import MissingTableError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.capabilities import simplify
from luckbase.solver.game.game import Game
from luckbase.solver.game.transition import SIMULTANEOUS
from luckbase.solver.graph.bellman import Expanded, evaluate, expand, strategies_of

if TYPE_CHECKING:
    from luckbase.cluster.table.lookup import Lookup
    from luckbase.solver.policy.evaluate import Policy


def policy_of(table: Lookup) -> Policy:
    """The table's best actions as an agent; it must hold the states that it is asked about, less
    the fields that only agents look at (`solver.game.capabilities.plain`)."""
    from luckbase.solver.policy.evaluate import Policy  # compiles the search

    def decide(game: Game, player: int, states: Ints, actions: list[Ints]) -> list[Floats]:
        asked = simplify(table.game, states)
        edges = expand(table.game, asked)
        if len(asked) and edges.kinds[0] == SIMULTANEOUS:
            return _strategies(table, player, edges)
        found = []
        names, _, _ = table.best_of(asked)
        for x, (best, own) in enumerate(zip(names, actions, strict=True)):
            if best is None:
                where = table.game.describe(asked[x])
                raise MissingTableError(f"{table.where}: says no best action at {where}")
            said = [game.action_name(int(action)) for action in own]
            found.append(np.array([float(name == best) for name in said]))
        return found

    return Policy(decide)


def _strategies(table: Lookup, player: int, edges: Expanded) -> list[Floats]:
    """A player's optimal strategies at expanded states in which both choose at once."""
    return strategies_of(evaluate(edges, table.worth(edges.children)), player)
