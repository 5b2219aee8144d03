"""The bench suite ``kernel``: the largest tier of some boards, by the kernel and by the rules.

Children are random: the kernel's time does not depend on payoffs.
"""

import sys
from functools import partial

import numpy as np

from luckbase.jobs import terminal
from luckbase.solver import sentences
from luckbase.solver.search.bellman import evaluate
from luckbase.solver.search.expand import expand
from tests import solving
from tests.bench.timing import best_of

KERNELS = (500, 3), (500, 5), (250, 3), (250, 4)
"""The score unit and the frontier of the boards."""


def largest_tier(board, **settings):
    """The layout of a board, compiled, and its tier of most rows."""
    layout = solving.load_layout(solving.load_board(board, **settings))
    layout.compile()
    return layout, max(layout.tiers(), key=lambda at: (layout.rows(at), layout.tier_number(at)))


def kernel_suite(board, results):
    """Print the table."""
    rows = []
    for unit, frontier in KERNELS:
        layout, tier = largest_tier(board, score_unit=unit, frontier=frontier)
        rng, out = np.random.default_rng(0), np.zeros(layout.shape(tier))
        shapes = {child: layout.shape(child) for child in layout.children(tier)}
        random = {shape: rng.random(shape, np.float64) / 2 for shape in set(shapes.values())}
        payoffs = {child: random[shape] for child, shape in shapes.items()}
        work = partial(layout.solve_tier, tier, out, payoffs.get, lambda: False)
        count = layout.rows(tier)
        kernel, rules = best_of(3, work) / count, _rules_seconds(layout, tier)
        rows.append((
            f"${unit}, {frontier} spins", sentences.count(count), f"{kernel * 1e9:.1f}",
            f"{1e-6 / kernel:.0f}", f"{1e-6 / rules:.2f}", f"{rules / kernel:.0f}",
        ))  # fmt: skip
    heads = ("largest tier", "states", "ns a state", "kernel M states/s", "rules M states/s", "x")
    terminal.print_table("Compute only, one core", heads, rows, sys.stdout)


def _rules_seconds(layout, tier):
    """Seconds a state of one step of the rules over random children (compiled, any game)."""
    rows = np.random.default_rng(0).integers(0, layout.rows(tier), 100_000)
    states = layout.states_at(tier, rows)
    payoffs = np.zeros((len(expand(layout.game, states).children), layout.game.players))
    return best_of(2, lambda: evaluate(expand(layout.game, states), payoffs)) / len(states)
