"""Before a search: its roots, the table that it ends at, what has to be compiled."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from luckbase.cluster.search.tasks import some_state
from luckbase.cluster.table.ledger import Using
from luckbase.cluster.table.table import open_table
from luckbase.solver.board.identity import rules_identity
from luckbase.solver.errors import OptionError
from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.game import Game
from luckbase.solver.search.explore import Explorer
from luckbase.solver.search.game_graph import Graph
from luckbase.solver.search.keys import Keys, pack_all
from luckbase.solver.sentences import option


def warm_up(game: Game) -> None:
    """Compile the search, or load it, before it is timed and before every worker does."""
    graph, state = Graph(game), some_state(game)
    graph.know(pack_all(game.bits, state), np.zeros((1, game.players)))
    graph.solve(state)


def root_keys(game: Game, roots: Ints | None) -> Keys:
    """The keys of the roots, ascending, each once."""
    if roots is None:
        roots = game.needed_start().reshape(1, -1)
    Explorer(game, roots)  # refuses roots that have no key
    return np.unique(pack_all(game.bits, np.ascontiguousarray(roots)))


def using_table(game: Game, table: Path) -> Using:
    """The table that a search is to end at. Raises OptionError where it has other rules."""
    with open_table(table) as opened:
        head = opened.ledger.head
    if head.identity != rules_identity(game):
        raise OptionError(f"{option('using')}: {table} is a table of another board or other rules")
    return Using(str(table.absolute()), head.identity)
