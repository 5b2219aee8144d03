"""Decisions to train with: those that come up in play, by the cost of the cheapest mistake.

Games are simulated from the table's beginnings, mostly with best actions. A decision's margin is
the cost of its cheapest mistake.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from luckbase.cluster.answers.actions import every_action
from luckbase.cluster.answers.examples import margin_unit
from luckbase.cluster.answers.table import Table
from luckbase.solver.errors import MissingTableError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.game import Game
from luckbase.solver.game.rules import DECISION, SIMULTANEOUS
from luckbase.solver.search.expand import Expanded, expand
from luckbase.solver.sentences import many

DIFFICULTIES = {"any": (0.0, np.inf), "easy": (5.0, np.inf), "medium": (1.0, 5.0),
                "hard": (0.0, 1.0)}  # fmt: skip
"""Range of margins (exclusive, inclusive) of each difficulty, in units of `margin_unit`."""
PLAYS, STEPS, ROUNDS = 24, 120, 12
"""Games simulated at once, their maximum number of moves, and the maximum of repetitions."""
CARELESS = 0.2
"""Probability of a random move, to reach states that optimal players never reach."""


def difficulty_of(game: Game, margin: float) -> str:
    """Return the difficulty of a decision with this margin."""
    units = margin / margin_unit(game)
    return next(name for name in ("hard", "medium", "easy") if units <= DIFFICULTIES[name][1])


def decisions(
    table: Table, beginnings: Sequence[Ints], difficulty: str, seed: int
) -> Iterator[tuple[Ints, float]]:
    """Yield states (fields,) of this difficulty from simulated games, with their margins, in an
    order determined by `seed`; at the end raise MissingTableError.

    beginnings: states (k, fields) in which games begin; each group is used in turn.
    """
    low, high = (bound * margin_unit(table.game) for bound in DIFFICULTIES[difficulty])
    seen = 0
    for states in _simulated(table, beginnings, seed):
        seen += len(states)
        priced = margins(table, states)
        for x in np.flatnonzero((priced > max(low, table.tolerance)) & (priced <= high)).tolist():
            yield states[x], float(priced[x])
    kind = "is a decision" if difficulty == "any" else f"is a {difficulty} decision"
    raise MissingTableError(
        f"difficulty: none of {many(seen, 'state')} that came up in play {kind}; take another "
        "one, or another seed"
    )


def margins(table: Table, states: Ints) -> Floats:
    """Return the margins (n,) of states (n, fields); NaN if unknown or without a choice."""
    actions, priced = every_action(table, states)
    result = np.where(priced, actions.margins, np.nan)
    owners, own = np.repeat(np.arange(len(states)), np.diff(actions.first)), actions.choosers == 0
    for x in np.unique(owners[own]).tolist():
        costs = actions.values[x, 0] - actions.q[own & (owners == x), 0]
        result[x] = min(costs[costs > table.tolerance], default=np.nan)
    return result


def _simulated(table: Table, beginnings: Sequence[Ints], seed: int) -> Iterator[Ints]:
    """Yield the states (n, fields) with a decision of some games at a time."""
    game, rng = table.game, np.random.default_rng(seed)
    for k in range(ROUNDS if beginnings else 0):
        roots, states_met = beginnings[k % len(beginnings)], list[Ints]()
        states = roots[rng.integers(len(roots), size=PLAYS)]
        for _ in range(STEPS):
            edges = expand(game, states)
            states_met.append(states[(edges.kinds == DECISION) | (edges.kinds == SIMULTANEOUS)])
            best = table.stored_best(states)
            taken = [
                _edge(game, edges, x, best[x], rng)
                for x in np.flatnonzero(~edges.terminal).tolist()
            ]
            if not taken:
                break
            states = edges.children[taken]
        met = np.unique(np.concatenate(states_met), axis=0)
        yield np.ascontiguousarray(rng.permutation(met))


def _edge(game: Game, edges: Expanded, x: int, best: str | None, rng: np.random.Generator) -> int:
    """Return the edge taken at state x: usually of the best action, otherwise of a random one."""
    first, last = int(edges.first[x]), int(edges.first[x + 1])
    actions, weights = edges.actions[first:last], edges.weights[first:last]
    chosen = rng.choice(np.unique(actions))
    if edges.kinds[x] == DECISION and best is not None and rng.random() >= CARELESS:
        chosen = next((a for a in np.unique(actions) if game.action_name(int(a)) == best), chosen)
    index = np.flatnonzero(actions == chosen)
    return first + int(index[rng.choice(len(index), p=weights[index] / weights[index].sum())])
