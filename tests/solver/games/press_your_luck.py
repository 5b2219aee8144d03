"""A board solved two ways: by the kernel, in memory, and by the reference of Press Your Luck."""

import numpy as np

from luckbase.solver import dense
from luckbase.solver.game.capabilities import FullTable
from tests.reference.press_your_luck import Reference, Rules


class InMemory(dense.InMemory):
    """A full table as the kernel left it; a table on disk may round it."""

    def __init__(self, layout, payoffs=None):
        exact = object.__new__(type(layout))  # a copy is the same layout, which others use
        vars(exact).update(vars(layout), payoff_type=np.float64)
        super().__init__(exact, None if payoffs is None else ())
        self.payoffs = payoffs or self.payoffs

    def look_up(self, states):
        """The payoffs (n, players) of canonical states (n, fields)."""
        return self.lookup(states)[0]


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
