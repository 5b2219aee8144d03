"""A small board solved two ways: by the kernel, in memory, and by the reference."""

import numpy as np

from luckbase.solver import dense
from luckbase.solver.game.capabilities import FullTable
from luckbase.solver.search.bellman import final_payoffs
from tests.reference.press_your_luck import Reference, Rules


class InMemory:
    """The payoffs of all tiers of a Press Your Luck board, looked up by state, as the kernel left
    them (a table rounds them)."""

    def __init__(self, planes, payoffs=None):
        self.planes, self.game = planes, planes.game
        self.payoffs = dense.InMemory(planes).payoffs if payoffs is None else payoffs

    def look_up(self, states):
        """The payoffs (n, players) of canonical states (n, fields)."""
        numbers, rows = self.planes.locate(states)
        result = np.zeros((len(states), self.game.players))
        if (numbers < 0).any():
            result[numbers < 0] = final_payoffs(self.game, states[numbers < 0])
        for tier, payoffs in self.payoffs.items():
            index = np.flatnonzero(numbers == self.planes.tier_number(tier))
            a, b = payoffs.reshape(2, -1)[:, rows[index]]
            slots = tier.slots(self.planes.most)
            for player, value in zip(slots, (a, b, 1 - a - b), strict=True):
                if player >= 0:
                    result[index, player] = value
        return result


def reference_of(game):
    """The independent solver of the same board."""
    planes = game.need(FullTable)
    out, rules = planes.outcomes, planes.board.rules
    money, spin = ([(m, float(p)) for m, p in kind] for kind in (out.money, out.spin))
    return Reference(
        Rules(
            float(out.whammy), tuple(money), tuple(spin), planes.cap, rules.max_whammies,
            rules.third_place_spins, rules.tied_pass,
        )
    )  # fmt: skip
