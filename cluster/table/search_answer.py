"""Questions above a table's frontier: search down to it, probe there, back up.

From the question's state every child is expanded and merged by key until it is over or the table
holds it (`solver.search.explore`); the table's payoffs of those are looked up at once, and the rest
is backward induction by the rules (`solver.search.game_graph`). So an answer above the frontier is
as exact as the table below it: its payoffs are means of the table's, within the same bound; but for
decisions that are closer than the table's precision tells. They count as tied, and the earlier
action is taken; what the others get there is another action's. Where a search met such decisions, a
second one, between bounds, says how far off its payoffs may be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from luckbase.cluster.table.actions import stepped
from luckbase.cluster.table.answer import Answer, Origin, Source
from luckbase.solver.errors import StateError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.game import Game
from luckbase.solver.search.bellman import Expanded, evaluate, expand
from luckbase.solver.search.explore import HELD, explore
from luckbase.solver.search.game_graph import Graph
from luckbase.solver.search.keys import Keys, unpack_all


class Holder(Protocol):
    """What holds states: a table, or a part of one."""

    @property
    def game(self) -> Game:
        """The rules."""

    @property
    def precision(self) -> float:
        """The bound on the error of a payoff, but for what hangs on decisions not told."""

    @property
    def tolerance(self) -> float:
        """Actions closer than this can not be told apart from what is stored."""

    def holds(self, states: Ints) -> NDArray[np.bool_]:
        """(n,) whether it holds each canonical state (n, fields)."""

    def lookup(self, states: Ints) -> tuple[Floats, NDArray[np.bool_]]:
        """The payoffs (n, players) of canonical states, and of which it has them."""


class Answering(Holder, Protocol):
    """A holder whose answers say where they come from."""

    @property
    def origin(self) -> Origin:
        """Which table."""

    @property
    def rounded(self) -> bool:
        """Whether decisions that are no ties can be too close for what is stored to tell."""

    def errors(self, states: Ints) -> Floats:
        """(n,) bounds on the errors of the payoffs of canonical states that it has."""


OnLevel = Callable[[int, int], None]
"""on_level(states, levels): how many a search has met so far."""


def known_below(
    table: Holder, roots: Ints, max_states: int, on_level: OnLevel | None = None
) -> tuple[Keys, Floats]:
    """The states that the table holds among those met from `roots` without going through another
    such: keys (k,) and payoffs (k, players)."""
    found = explore(table.game, roots, held=table.holds, max_states=max_states, on_level=on_level)
    keys = np.ascontiguousarray(found.keys[found.kinds == HELD])
    return keys, table.lookup(unpack_all(table.game.bits, keys))[0]


def answer_by_search(
    table: Answering, state: Ints, max_states: int, words: Mapping[str, object] | None = None,
    on_level: OnLevel | None = None,
) -> Answer:  # fmt: skip
    """The answer to one canonical state (fields,) above the table's frontier.

    max_states: how many the search may meet; a million take about 90 MB and 2 s. on_level: told how
    far it is.

    Raises SearchLimitError, saying how far it got; StateError for a cycle that is not covered.
    """
    edges = expand(table.game, state.reshape(1, -1))
    payoffs, errors = searched(table, state, edges, max_states, on_level)
    return answer_step(table, state, edges, payoffs, errors, words, "search")


def searched(
    table: Answering,
    state: Ints,
    edges: Expanded,
    max_states: int,
    on_level: OnLevel | None = None,
) -> tuple[Floats, Floats]:
    """The payoffs (m, players) of the children of one expanded state (fields,) above the table's
    frontier, by a search down to it; and bounds (m,) on their errors. Raises as
    `answer_by_search`."""
    keys, payoffs = known_below(table, state.reshape(1, -1), max_states, on_level)
    graph = Graph(table.game, tolerance=table.tolerance, max_states=max_states)
    graph.know(keys, payoffs)
    children = graph.solve(edges.children)
    found: Floats = graph.values[children]
    errors = table.errors(unpack_all(table.game.bits, keys))
    close = graph.margins[: graph.count] <= table.tolerance
    if not (table.rounded and close.any()):
        return found, np.full(len(found), errors.max(initial=table.precision))
    known = keys, payoffs, errors[:, None]
    return found, _off(table.game, known, edges.children, found, max_states)


def _off(
    game: Game, known: tuple[Keys, Floats, Floats], states: Ints, found: Floats, max_states: int
) -> Floats:
    """How far the payoffs `found` (m, players) of states (m, fields) may be off: all decisions that
    the payoffs known (k, players) do not tell, for their errors (k, 1), may fall as they like."""
    keys, payoffs, errors = known
    graph = Graph(game, bounds=True, max_states=max_states)
    graph.know(keys, np.concatenate([payoffs - errors, payoffs + errors], axis=1))
    try:
        at = graph.solve(states)
    except StateError:  # a cycle with such a decision
        return np.full(len(found), np.ptp(game.payoff_range))
    bounds = graph.values[at]
    low, high = bounds[:, : game.players], bounds[:, game.players :]
    most: Floats = np.maximum(found - low, high - found).max(axis=1)
    return most


def answer_step(
    table: Answering, state: Ints, edges: Expanded, payoffs: Floats, errors: Floats,
    words: Mapping[str, object] | None = None, source: Source = "table",
) -> Answer:  # fmt: skip
    """The answer to an expanded state (fields,) that is not stored, from the payoffs (m, players)
    of its children, with bounds (m,) on their errors; `words`: as a person gave it, for the names
    of his bids; source: where they come from."""
    game = table.game
    given = game.fields.values(state) if words is None else game.fields.read(words)
    q = evaluate(edges, payoffs)
    near = table.tolerance, table.precision
    found = stepped(game, edges, q, near, errors, given.reshape(1, -1))
    return found.answer(table.origin, game.describe(state), 0, source)
