"""What a search need not solve: the states at which it ends, with their payoffs."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from luckbase.cluster.search.merge import PayoffTable
from luckbase.cluster.table.above import Holder, known_below
from luckbase.cluster.table.keyed import KeyPart
from luckbase.cluster.table.sparse import GIVEN
from luckbase.cluster.table.stored import StoredTable, open_table
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.game import Game
from luckbase.solver.game.transition import DECISION
from luckbase.solver.graph.bellman import expand
from luckbase.solver.graph.codes import KNOWN
from luckbase.solver.graph.keys import Keys, unpack_all

PIECE, PIECE_BYTES = 1 << 16, 400 << 20
"""States that are looked up at once, and what that takes: for their margins, 6 kB each."""


def known_payoffs(
    game: Game, roots: Ints, using: Path | None, held: KeyPart | None, max_states: int
) -> tuple[PayoffTable, float]:
    """What is known of the states at which a search from `roots` (m, fields) ends: from the table
    `using`, else from the part `held`, else nothing; and the bound on its payoffs' error.

    Raises SearchLimitError, TableError.
    """
    if using is not None:
        with open_table(using) as table:
            keys, _ = _by_key(table, roots, max_states)
            return given_rows(table, keys), table.error
    if held is None:
        return nothing_known(game), 0.0
    return known_rows(*_by_key(held, roots, max_states)), held.error


def given_rows(table: StoredTable, keys: Keys) -> PayoffTable:
    """The rows of states (n,) that a table holds, by key, as a search that ends there has them."""
    if not len(keys):
        return nothing_known(table.game)
    pieces = [_given_piece(table, keys[at : at + PIECE]) for at in range(0, len(keys), PIECE)]
    columns = [[getattr(one, each.name) for one in pieces] for each in fields(PayoffTable)]
    return PayoffTable(*map(np.concatenate, columns))


def _given_piece(table: StoredTable, keys: Keys) -> PayoffTable:
    game, status = table.game, np.full(len(keys), GIVEN, np.uint8)
    states = unpack_all(game.bits, keys)
    names, margin, _ = table.best_of(states)
    best, actor = _acting(game, states, names)
    return PayoffTable(
        keys, table.look(states)[0], best, status, np.zeros(len(keys)), margin, actor
    )


def nothing_known(game: Game) -> PayoffTable:
    """No state."""
    return known_rows(np.empty(0, np.uint64), np.empty((0, game.players)))


def known_rows(keys: Keys, values: Floats) -> PayoffTable:
    """States that are known, by ascending key, and nothing but their payoffs."""
    status = np.full(len(keys), GIVEN, np.uint8)
    return PayoffTable(keys, values, np.full(len(keys), KNOWN), status)


def _by_key(holder: Holder, roots: Ints, max_states: int) -> tuple[Keys, Floats]:
    """`known_below`, by ascending key."""
    keys, values = known_below(holder, roots, max_states)
    order = np.argsort(keys)
    return keys[order], values[order]


def _acting(game: Game, states: Ints, names: list[str | None]) -> tuple[Ints, NDArray[np.int8]]:
    """The numbers of the named actions of states (n, fields), KNOWN without one; who acts."""
    edges = expand(game, states)
    numbers = {game.action_name(int(a)): int(a) for a in np.unique(edges.actions)}
    found = [KNOWN if name is None else numbers[name] for name in names]
    acts = np.where(edges.kinds == DECISION, edges.actors + 1, 0)
    return np.array(found, np.int64), acts.astype(np.int8)
