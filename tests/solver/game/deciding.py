"""What to do, worked out a second time from the rules over values that are known in float64."""

import numpy as np

from luckbase.solver import dense
from luckbase.solver.game.rules import SIMULTANEOUS, TERMINAL
from luckbase.solver.games.press_your_luck.full_table import Planes
from luckbase.solver.search.bellman import choose, evaluate
from luckbase.solver.search.expand import expand
from tests.solver.games.press_your_luck import InMemory


def what_the_rules_say(game, states, look, tolerance=None):
    """By one step of the rules, every state on its own, and `solver.search.bellman.choose`;
    tolerance: the game's if not said."""
    tolerance = game.tie_tolerance if tolerance is None else tolerance
    edges = expand(game, states)
    q = evaluate(edges, look(edges.children))
    best, margin = np.full(len(states), -1), np.full(len(states), np.nan)
    acts = (edges.actors >= 0) & (edges.kinds != TERMINAL) & (edges.kinds != SIMULTANEOUS)
    for x in np.flatnonzero(acts):
        actions = q.values[q.first[x] : q.first[x + 1]]
        actor = int(edges.actors[x])
        taken = choose(actions, actor, tolerance)
        best[x] = q.actions[q.first[x] + taken]
        if len(actions) > 1:
            others = np.delete(actions[:, actor], taken)
            margin[x] = max(actions[taken, actor] - others.max(), 0.0)
    return best, np.where(acts, edges.actors + 1, 0).astype(np.int8), margin


class Decided:
    """The full table of a game in memory, and what to do in every row of it."""

    def __init__(self, layout):
        plain, noted = dense.InMemory(layout), dense.InMemory(layout, best=True)
        self.layout, self.game, self.payoffs = layout, layout.game, noted.payoffs
        self.decisions = noted.best
        for tier, out in plain.payoffs.items():
            assert out.tobytes() == self.payoffs[tier].tobytes()
        exact = isinstance(layout, Planes)  # whose tables round
        self._found = InMemory(layout, self.payoffs) if exact else noted

    def look_up(self, states):
        """The exact payoffs (n, players) of canonical states."""
        if isinstance(self._found, InMemory):
            return self._found.look_up(states)
        return self._found.lookup(states)[0]

    def check(self, tier, rows):
        """Hold rows of a tier to the rules; returns where there is a choice and its best two
        actions are tied."""
        layout, game, decisions = self.layout, self.game, self.decisions[tier]
        best, actors, margin = what_the_rules_say(game, layout.states_at(tier, rows), self.look_up)
        assert_same(best, decisions[rows])
        assert_same(actors, layout.acting_rows(tier, 0, layout.rows(tier))[rows])
        return margin <= game.tie_tolerance


def assert_same(one, other):
    """Equal whole numbers (n,)."""
    assert one.tolist() == other.tolist()
