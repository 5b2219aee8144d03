"""Which states can come up from a start under a table's best play, breadth first, merged by key."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from luckbase.cluster.table.lookup import Lookup
from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.transition import DECISION, SIMULTANEOUS
from luckbase.solver.graph import keys as hashing
from luckbase.solver.graph.bellman import Expanded, evaluate, expand, strategies_of

PIECE = 20_000
"""States that are expanded at a time."""
LEAST_CHANCE = 1e-9
"""With which a strategy takes an action, or it does not."""


def reached(table: Lookup, starts: Ints) -> Ints:
    """The canonical states (n, fields) that can come up, those that are over left out, by key; 8
    bytes of memory for each field of each. Of tied actions the stored one is taken.

    Raises MissingTableError for a start, or a state below it, that the table neither holds nor
    reaches by one step.
    """
    game = table.game
    new = np.unique(hashing.pack_all(game.bits, np.ascontiguousarray(starts, np.int64)))
    seen = new
    while len(new):
        found = []
        for at in range(0, len(new), PIECE):
            states = hashing.unpack_all(game.bits, new[at : at + PIECE])
            found.append(np.unique(_children(table, states)))
        below = np.unique(np.concatenate(found))
        place = np.minimum(np.searchsorted(seen, below), len(seen) - 1)
        new = below[seen[place] != below]
        seen = np.sort(np.concatenate([seen, new]), kind="stable")
    every: Ints = hashing.unpack_all(game.bits, seen)
    return every[~_over(table, every)]


def _over(table: Lookup, states: Ints) -> NDArray[np.bool_]:
    pieces = [states[at : at + PIECE] for at in range(0, len(states), PIECE)]
    return np.concatenate([expand(table.game, piece).terminal for piece in pieces])


def _children(table: Lookup, states: Ints) -> NDArray[np.uint64]:
    """The keys of all that may come next under best play."""
    game, edges = table.game, expand(table.game, states)
    owner = np.repeat(np.arange(len(states)), np.diff(edges.first))
    follow = ~edges.terminal[owner]
    choose = np.flatnonzero(edges.kinds == DECISION)
    if len(choose):
        held = table.holds(states[choose])
        best: list[str | None] = [None] * len(choose)
        for some, ask in ((held, table.stored_best), (~held, lambda x: table.best_of(x)[0])):
            at = np.flatnonzero(some)
            for x, name in zip(
                at.tolist(), ask(states[choose[at]]) if len(at) else (), strict=True
            ):
                best[x] = name
        follow &= _taken(table, edges, owner, dict(zip(choose.tolist(), best, strict=True)))
    both = np.flatnonzero(edges.kinds == SIMULTANEOUS)
    if len(both):
        follow &= _both_take(table, edges, owner)
    keys: NDArray[np.uint64] = hashing.pack_all(
        game.bits, np.ascontiguousarray(edges.children[follow])
    )
    return keys


def _taken(
    table: Lookup, edges: Expanded, owner: Ints, best: dict[int, str | None]
) -> NDArray[np.bool_]:
    """Which edges best play may follow where one player decides; all others."""
    names = {int(a): table.game.action_name(int(a)) for a in np.unique(edges.actions) if a >= 0}
    numbers = {name: action for action, name in names.items()}
    wanted = np.full(len(edges.kinds), -1, np.int64)
    for x, name in best.items():
        wanted[x] = -2 if name is None else numbers.get(name, -2)
    found: NDArray[np.bool_] = (wanted[owner] == -1) | (edges.actions == wanted[owner])
    return found


def _both_take(table: Lookup, edges: Expanded, owner: Ints) -> NDArray[np.bool_]:
    """The same where both choose at once."""
    keep = np.ones(len(owner), bool)
    for x in np.flatnonzero(edges.kinds == SIMULTANEOUS).tolist():
        here = slice(int(edges.first[x]), int(edges.first[x + 1]))
        alone = Expanded(
            edges.kinds[x : x + 1], edges.actors[x : x + 1],
            np.array([0, here.stop - here.start]), edges.children[here], edges.weights[here],
            edges.actions[here], edges.rewards[here],
        )  # fmt: skip
        q = evaluate(alone, table.worth(alone.children))
        rows, columns = (strategies_of(q, player)[0] for player in (0, 1))
        cells = np.outer(rows > LEAST_CHANCE, columns > LEAST_CHANCE).reshape(-1)
        which = np.searchsorted(q.actions, alone.actions)
        keep[here] = cells[which]
    return keep
