"""Questions above a table's frontier: search down to it, probe there, back up.

From the question's state every child is expanded and merged by key until it is over or the
table holds it (`solver.graph.explore`); the table's payoffs of those are looked up at once, and the
rest is backward induction by the rules (`solver.graph.game_graph`). So an answer above the frontier
is as exact as the table below it: its payoffs are means of the table's, within the same bound. Two
actions that the table's precision can not tell apart count as tied, and the earlier is taken.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from luckbase.cluster.table.answer import (
    Action,
    Answer,
    Bid,
    Origin,
    answer_ahead,
    look_ahead,
    words_of,
)
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.capabilities import choice_names
from luckbase.solver.game.game import Game
from luckbase.solver.game.transition import SIMULTANEOUS
from luckbase.solver.graph.bellman import (
    ActionValues,
    Expanded,
    choose,
    evaluate,
    expand,
    joint,
    payoffs_of,
)
from luckbase.solver.graph.explore import HELD, explore
from luckbase.solver.graph.game_graph import Graph
from luckbase.solver.graph.keys import Keys, unpack_all


class Holder(Protocol):
    """What holds states: a table, or a part of one."""

    @property
    def game(self) -> Game:
        """The rules."""

    @property
    def error(self) -> float:
        """The bound on the error of every payoff."""

    @property
    def tolerance(self) -> float:
        """Actions closer than this can not be told apart from what is stored."""

    def holds(self, states: Ints) -> NDArray[np.bool_]:
        """(n,) whether it holds each canonical state (n, fields)."""

    def look(self, states: Ints) -> tuple[Floats, NDArray[np.bool_]]:
        """The payoffs (n, players) of canonical states, and of which it has them."""


class Answering(Holder, Protocol):
    """A holder whose answers say where they come from."""

    @property
    def origin(self) -> Origin:
        """Which table."""


def known_below(table: Holder, roots: Ints, max_states: int) -> tuple[Keys, Floats]:
    """The states that the table holds among those met from `roots` without going through another
    such: keys (k,) and payoffs (k, players)."""
    found = explore(table.game, roots, held=table.holds, max_states=max_states)
    keys = np.ascontiguousarray(found.keys[found.kinds == HELD])
    return keys, table.look(unpack_all(table.game.bits, keys))[0]


def answer_by_search(
    table: Answering, state: Ints, max_states: int, words: Mapping[str, object] | None = None
) -> Answer:
    """The answer to one canonical state (fields,) above the table's frontier.

    max_states: how many the search may meet; a million take about 90 MB and 2 s.

    Raises SearchLimitError, saying how far it got; StateError for a cycle that is not covered.
    """
    edges = expand(table.game, state.reshape(1, -1))
    payoffs = searched(table, state, edges, max_states)
    return answer_step(table, state, edges, payoffs, words, source="search")


def searched(table: Holder, state: Ints, edges: Expanded, max_states: int) -> Floats:
    """The payoffs (m, players) of the children of one expanded state (fields,) above the table's
    frontier, by a search down to it. Raises as `answer_by_search`."""
    keys, payoffs = known_below(table, state.reshape(1, -1), max_states)
    graph = Graph(table.game, tolerance=table.tolerance, max_states=max_states)
    graph.know(keys, payoffs)
    children = graph.solve(edges.children)
    found: Floats = graph.values[children]
    return found


def answer_step(
    table: Answering, state: Ints, edges: Expanded, payoffs: Floats,
    words: Mapping[str, object] | None = None, source: str = "table",
) -> Answer:  # fmt: skip
    """The answer to an expanded state (fields,) that is not stored, from the payoffs (m, players)
    of its children; `words`: as a person gave it, for the names of his bids."""
    game, error, tolerance = table.game, table.error, table.tolerance
    q = evaluate(edges, payoffs)
    if edges.kinds[0] == SIMULTANEOUS:
        return _bids(table, state, q, words, source)
    actor = int(edges.actors[0])
    if actor < 0:
        value = tuple(map(float, payoffs_of(edges.kinds, edges.actors, q, tolerance)[0]))
        return Answer(
            table.origin, game.describe(state), None, value, error=error, source=source
        )  # fmt: skip
    best = q.actions[[choose(q.values, actor, tolerance)]]
    look = look_ahead(q, edges.actors, tolerance, best)
    return answer_ahead(table.origin, game, state, 0, look, None, error, source)


def _bids(
    table: Answering, state: Ints, q: ActionValues, words: Mapping[str, object] | None, source: str
) -> Answer:
    """The answer to a state in which both players choose at once."""
    from luckbase.solver.matrix_game import certified as matrix_game  # long to compile

    game = joint(q.actions, q.values)
    solved = matrix_game.solve(game.games[None])
    row, column = solved.row_strategies[0], solved.column_strategies[0]
    value = float(solved.values[0])
    given = words if words is not None else words_of(table.game, state)
    named = [choice_names(table.game, given, player, len(s)) for player, s in
             enumerate((row, column))]  # fmt: skip
    sides = []
    for names, chances, own in (
        (named[0], row, game.games), (named[1], column, -game.games.T)
    ):  # fmt: skip
        least, most = matrix_game.ranges(np.ascontiguousarray(own)).T
        numbers = zip(names, chances, least, most, strict=True)
        sides.append(tuple(Bid(n, float(c), float(a), float(b)) for n, c, a, b in numbers))
    against = game.games @ column
    order = sorted(range(len(row)), key=lambda k: (-row[k], -against[k], k))
    actions = tuple(
        Action(named[0][k], (float(against[k]), game.total - float(against[k]))) for k in order
    )
    return Answer(
        table.origin, table.game.describe(state), None, (value, game.total - value), actions,
        actions[0].name if row.max() > 1 - 1e-9 else None, None,
        any(not bid.sure for side in sides for bid in side),
        table.error + float(solved.gaps[0]), source, strategies=tuple(sides),
    )  # fmt: skip
