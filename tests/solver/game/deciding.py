"""What to do, worked out a second time from the rules over values that are known in float64."""

import numpy as np

from luckbase.solver.game.arrays import Decisions
from luckbase.solver.game.rules import SIMULTANEOUS, TERMINAL
from luckbase.solver.games.press_your_luck.layout import Planes
from luckbase.solver.search.bellman import choose, evaluate, final_payoffs
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
        self.layout, self.game = layout, layout.game
        self.payoffs = {}
        self.decisions = {}
        for tier in layout.tiers():
            plain, out = (np.full(layout.shape(tier), np.nan) for _ in range(2))
            noted = Decisions.blank(layout.rows(tier))
            fetch, never = self.payoffs.__getitem__, lambda: False
            layout.solve_tier(tier, plain, fetch, never)
            layout.solve_tier(tier, out, fetch, never, 0, noted)
            assert plain.tobytes() == out.tobytes()
            self.payoffs[tier], self.decisions[tier] = plain, noted

    def look_up(self, states):
        """The exact payoffs (n, players) of canonical states."""
        if isinstance(self.layout, Planes):
            return InMemory(self.layout, self.payoffs).look_up(states)
        numbers, rows = self.layout.locate(states)
        found = np.empty((len(states), self.game.players))
        if (numbers < 0).any():
            found[numbers < 0] = final_payoffs(self.game, states[numbers < 0])
        for tier, out in self.payoffs.items():
            at = np.flatnonzero(numbers == self.layout.tier_number(tier))
            columns = self.layout.payoff_rows(tier, out, 0, len(out)) if len(at) else []
            for player, column in enumerate(columns):
                found[at, player] = column[rows[at]]
        return found

    def check(self, tier, rows):
        """Hold rows of a tier to the rules; returns where there is a choice and its best two
        actions are tied."""
        layout, game, decisions = self.layout, self.game, self.decisions[tier]
        best, actors, margin = what_the_rules_say(game, layout.states_at(tier, rows), self.look_up)
        assert_same(best, decisions.best[rows])
        assert_same(actors, layout.acting_rows(tier, 0, layout.rows(tier))[rows])
        tied = margin <= game.tie_tolerance
        return tied


def assert_same(one, other):
    """Equal whole numbers (n,)."""
    assert one.tolist() == other.tolist()
