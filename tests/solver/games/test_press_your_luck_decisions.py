"""Solved for its decisions alone: the same bits as the full table, and what is laid out of them."""

import numpy as np
import pytest

from luckbase import load_board
from luckbase.solver.dense import InMemory
from luckbase.solver.errors import OptionError
from luckbase.solver.game.arrays import no_decisions
from luckbase.solver.game.capabilities import DecisionLayout
from tests.places import BOARDS
from tests.solving import load_game, load_layout

TINY = BOARDS / "press-your-luck" / "tiny.toml"
FEBRUARY = BOARDS / "press-your-luck" / "1985-02.toml"
COARSE = {"score_unit": 1000, "score_cap": 5000, "frontier": 4}


def decisions_of(path, **options):
    """A board's layout of decisions."""
    return load_game(load_board(path, **options)).need(DecisionLayout)


def one_by_one(of):
    """(payoffs, decisions) of all tiers in the order of the whammies. What a tier reads is filled
    with NaN once nobody is to read it any more: the one below when its boundaries were taken and
    all of a spin more are solved."""
    order = of.tiers()
    solved = {}
    boundaries = {}
    for tier in order:
        out = np.full(of.layout.shape(tier), np.nan)
        decided = no_decisions(of.layout.rows(tier))
        below = of.below(tier)
        of.solve_tier(
            tier, out, None if below is None else solved[below][0],
            {child: boundaries[child] for child in of.boundaries_read(tier)}, lambda: False,
            decided,
        )  # fmt: skip
        solved[tier] = out, decided
        boundaries[tier] = np.full(of.boundary_size(tier), np.nan)
        of.take_boundary(tier, out, boundaries[tier])
    return solved


@pytest.mark.parametrize(
    ("path", "options"),
    [(TINY, {}), (FEBRUARY, COARSE),
     pytest.param(FEBRUARY, {**COARSE, "choices": "best"}, marks=pytest.mark.slow)],
)  # fmt: skip
def test_every_payoff_and_decision_has_the_same_bits_as_in_the_full_table(path, options):
    of = decisions_of(path, **options)
    full = InMemory(load_layout(load_board(path, **options)), best=True)
    found = one_by_one(of)
    assert found.keys() == full.payoffs.keys()
    for tier, (payoffs, decided) in found.items():
        assert payoffs.tobytes() == full.payoffs[tier].tobytes()
        assert decided.tobytes() == full.best[tier].tobytes()


def test_decisions_beyond_the_frontier_begin_where_payoffs_end():
    of = decisions_of(FEBRUARY, **COARSE | {"frontier": 2, "decisions": 4})
    assert of.tiers() == decisions_of(FEBRUARY, **COARSE).tiers()
    assert {tier.spins for tier in of.tiers() if of.is_decided(tier)} == {3, 4}
    none = decisions_of(FEBRUARY, **COARSE | {"decisions": 3})  # fewer than the frontier
    assert not any(map(none.is_decided, none.tiers()))


def test_a_board_whose_slides_take_whammies_away_is_refused():
    board = BOARDS / "press-your-luck" / "1985-02-double.toml"
    with pytest.raises(OptionError, match="slides that take whammies away"):
        decisions_of(board)
