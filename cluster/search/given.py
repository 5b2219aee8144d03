"""What a search need not solve: the states at which it ends, with their payoffs."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

from luckbase.cluster.table.format import PayoffTable
from luckbase.cluster.table.keyed import GIVEN, KeyPart
from luckbase.cluster.table.search_answer import known_below
from luckbase.cluster.table.table import StoredTable
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.game import Game
from luckbase.solver.graph.bellman import action_starts, expand
from luckbase.solver.graph.codes import KNOWN
from luckbase.solver.graph.keys import Keys, unpack_all

AT_ONCE, BYTES_AN_EDGE = 2, 400
"""So many times as many states are looked up at once as a table says; for their margins each edge
takes so many bytes, or less."""


def known_payoffs(
    game: Game, roots: Ints, held: StoredTable | KeyPart | None, max_states: int
) -> PayoffTable:
    """What a table, or a part of one, has of the states at which a search from `roots` (m, fields)
    ends; nothing but their payoffs if it is a part.

    Raises SearchLimitError, TableError.
    """
    if held is None:
        return nothing_known(game)
    keys, values = known_below(held, roots, max_states)
    order = np.argsort(keys)
    if isinstance(held, StoredTable):
        return given_rows(held, keys[order])
    return known_rows(keys[order], values[order])


def given_rows(table: StoredTable, keys: Keys) -> PayoffTable:
    """The rows of states (n,) that a table holds, by key, as a search that ends there has them."""
    if not len(keys):
        return nothing_known(table.game)
    size = given_at_once(table)
    pieces = [_given_piece(table, keys[at : at + size]) for at in range(0, len(keys), size)]
    columns = [[getattr(one, each.name) for one in pieces] for each in fields(PayoffTable)]
    return PayoffTable(*map(np.concatenate, columns))


def given_at_once(table: StoredTable) -> int:
    """How many states are looked up at once."""
    return AT_ONCE * table.states_at_once


def _given_piece(table: StoredTable, keys: Keys) -> PayoffTable:
    game, status = table.game, np.full(len(keys), GIVEN, np.uint8)
    states = unpack_all(game.bits, keys)
    names, margin, _ = table.best_of(states)
    best, actor = _acting(game, states, names)
    return PayoffTable(
        keys, table.lookup(states)[0], best, status, np.zeros(len(keys)), margin, actor
    )


def nothing_known(game: Game) -> PayoffTable:
    """No state."""
    return known_rows(np.empty(0, np.uint64), np.empty((0, game.players)))


def known_rows(keys: Keys, values: Floats) -> PayoffTable:
    """States that are known, by ascending key, and nothing but their payoffs."""
    status = np.full(len(keys), GIVEN, np.uint8)
    return PayoffTable(keys, values, np.full(len(keys), KNOWN), status)


def _acting(game: Game, states: Ints, names: list[str | None]) -> tuple[Ints, NDArray[np.int8]]:
    """The numbers of the named actions of states (n, fields), KNOWN without one; who acts."""
    edges = expand(game, states)
    actions = edges.actions[action_starts(edges)[1]]  # much fewer than edges
    numbers = {game.action_name(int(a)): int(a) for a in np.unique(actions)}
    found = [KNOWN if name is None else numbers[name] for name in names]
    acts = np.where(edges.terminal, 0, edges.actors + 1)
    return np.array(found, np.int64), acts.astype(np.int8)
