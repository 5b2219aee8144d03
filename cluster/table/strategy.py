"""What the best actions of a table are worth where it does not store payoffs.

Everybody does what is stored, from a state on: that is followed to where payoffs are stored or the
game is over, exactly (`followed`), or played many times (`played`). No action is searched for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np

from luckbase.cluster import words
from luckbase.cluster.machine import free_memory
from luckbase.cluster.table.answer import Action, Answer, answer_at, stepped
from luckbase.cluster.table.lookup import Lookup
from luckbase.solver.errors import SearchLimitError, StateError
from luckbase.solver.game.fields import State
from luckbase.solver.policy.evaluate import Starts, simulate_on_the_way
from luckbase.solver.search.bellman import action_starts, evaluate
from luckbase.solver.search.expand import expand
from luckbase.solver.sentences import option

BYTES_AN_EDGE = 130
"""Of memory, while decisions are followed: 71 a state's edge that is kept, as much on the way."""


def followed(
    table: Lookup, state: State, max_states: int, on_states: Callable[[int], None]
) -> Answer:
    """The payoffs of every action at a state that the table holds, if what is stored is done from
    there on; exact. on_states: told how many states that is, before they are solved.

    Raises StateError, SearchLimitError for more than `max_states` or than there is memory for.
    """
    from luckbase.solver.policy.chain import explore_profile

    game, known = table.game, table.ask(state)
    canonical = game.parse(state).reshape(1, -1)
    edges = expand(game, canonical)
    if edges.terminal[0]:
        return known
    roots, at = np.unique(edges.children, axis=0, return_inverse=True)
    room = free_memory() // (BYTES_AN_EDGE * game.max_edges)
    try:
        chain = explore_profile(
            game, roots, [table.agent().decide] * game.players, min(max_states, room), table.lookup
        )
    except SearchLimitError:
        most = words.many(min(max_states, room), "state")
        raise SearchLimitError(
            f"the stored decisions lead to more than {most}; write {option('games')} with "
            "how many games to play instead"
        ) from None
    on_states(len(chain.keys))
    solved = chain.solve()
    q = evaluate(edges, solved.values[at.reshape(-1)])
    off = solved.error + max(table.error, game.float64_error + game.cut_error)
    inputs = game.fields.read(state).reshape(1, -1)
    near = game.tie_tolerance, 0.0
    found = stepped(game, edges, q, near, np.full(len(edges.children), off), inputs)
    answer = answer_at(found, 0, table.origin, game.describe(canonical[0]), "decisions")
    return replace(answer, given=known.given)


def played(table: Lookup, state: State, games: int, seed: int) -> Answer:
    """The mean payoffs of every action over so many games each, everybody doing what is stored from
    there on; `error` is the largest of their standard errors. What is best is as stored."""
    game, known = table.game, table.ask(state)
    edges = expand(game, game.parse(state).reshape(1, -1))
    if edges.terminal[0]:
        return known
    deciders, found, error = [table.agent().decide] * game.players, dict[str, Action](), 0.0
    starts = [*action_starts(edges)[1].tolist(), len(edges.actions)]
    for a, b in pairwise(starts):
        below, at = np.unique(edges.children[a:b], axis=0, return_inverse=True)
        weights = edges.weights[a:b]
        chances = np.bincount(at.reshape(-1), weights).astype(np.float64)
        each = simulate_on_the_way(
            game, Starts(below, chances), deciders, games, seed, None, table.lookup
        )
        name = game.action_name(int(edges.actions[a]))
        value = each.mean + weights @ edges.rewards[a:b]
        found[name], error = Action(name, tuple(value.tolist())), max(error, each.error.max())
    best = found.pop(str(known.best), None)
    if best is None:
        raise StateError(table.missing(game.parse(state)))
    actor = (known.to_act or 1) - 1
    others = sorted(found.values(), key=lambda action: -action.value[actor])
    return replace(
        known, value=best.value, actions=(best, *others), error=float(error), source="games"
    )
