"""What to do stands in every row of a full table: best action, who acts, margin."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from luckbase.solver.game.arrays import no_decisions
from luckbase.solver.games.press_your_luck.tiers import Tier
from tests import solving
from tests.places import BOARDS
from tests.solver.game.deciding import Decided, what_the_rules_say
from tests.solver.games.test_press_your_luck import OPTIONS, boards, planes_of


def load(path, **options):
    return solving.load_layout(solving.load_board(BOARDS / f"{path}.toml", **options))


def all_rows(layout, tier, most=1 << 30):
    """The rows of a tier, or about `most` of them, evenly."""
    return np.arange(0, layout.rows(tier), max(1, layout.rows(tier) // most))


# Press Your Luck


@pytest.mark.parametrize("third_place_spins", [True, False])
@pytest.mark.parametrize("tied_pass", ["passer", "next"])
def test_every_row_of_the_tiny_board_says_what_the_rules_say(third_place_spins, tied_pass):
    options = {"third_place_spins": third_place_spins, "tied_pass": tied_pass}
    layout = load("press-your-luck/tiny", frontier=2, **options)
    table, ties = Decided(layout), 0
    for tier in layout.tiers():
        whole = tier.whammies in ((0, 0, 0), (4, 2, 3), (2, 4, 3), (3, 2, 4), (2, 3, 2))
        ties += int(table.check(tier, all_rows(layout, tier, 1 << 30 if whole else 150)).sum())
    assert tied_pass == "next" or ties > 0


@pytest.mark.parametrize("tied_pass", ["passer", "next"])
def test_ties_go_to_the_earlier_action_and_not_with_the_last_bits(tied_pass):
    """A whammy is as likely as money here, so that spinning oneself and letting an opponent spin
    are often worth the same; rounding alone would have 30 of them pass."""
    layout = planes_of(
        {"whammy": "1/2", "1": "1/6", "2": "1/6", "3": "1/6"}, 4, 2, (True, tied_pass, 4)
    )  # fmt: skip
    table = Decided(layout)
    ties = by_rounding = 0
    for tier in layout.tiers():
        whole = tier.whammies in ((0, 0, 0), (4, 3, 3), (3, 4, 3))
        rows = all_rows(layout, tier, 1 << 30 if whole else 40)
        ties += int(table.check(tier, rows).sum())
        states = layout.states_at(tier, rows)
        exact, _, _ = what_the_rules_say(layout.game, states, table.look_up, tolerance=0.0)
        by_rounding += int((exact != table.decisions[tier][rows]).sum())
    assert ties > 100 and by_rounding > 20


@pytest.mark.parametrize("options", OPTIONS)
def test_at_the_cap_too_where_loops_are_cut(options):
    """Two thirds of these rows have somebody at the cap, and all scores are level often."""
    chances = {"whammy": "1/5", "1": "1/4", "2 + spin": "3/10", "1 + spin": "1/4"}
    layout = planes_of(chances, 2, 2, options)
    table = Decided(layout)
    for tier in layout.tiers():
        table.check(tier, all_rows(layout, tier, 200))


@settings(max_examples=15)
@given(boards())
def test_rows_of_random_boards_say_what_the_rules_say(layout):
    table = Decided(layout)
    for tier in layout.tiers():
        table.check(tier, all_rows(layout, tier, 40))


def test_a_player_who_must_spin_or_pass_has_an_action():
    layout = load("press-your-luck/tiny", frontier=2)
    table = Decided(layout)

    def said(**words):
        state = layout.game.parse(words)[None]
        number, row = (int(x[0]) for x in layout.locate(state))
        tier = layout.tier_of_number()[number]
        decisions = table.decisions[tier]
        acting = layout.acting_rows(tier, 0, layout.rows(tier))[row]
        return layout.best_names[decisions[row]], int(acting)

    assert said(scores="0,3000,500", passed="0,2,0") == ("play", 2)
    assert said(scores="500,0,3000", earned="0,0,2") == ("pass to 1", 3)
    assert said(scores="500,1000,1500", earned="1,0,0") == ("play", 1)
    assert said(scores="3000,2500,2500", earned="1,0,0") == ("pass to 2", 1)
    assert said(scores="0,500,2500", earned="0,1,0", whammies="4,0,0") == ("pass to 3", 2)


def test_a_dirty_buffer_of_payoffs_changes_no_decision():
    layout = planes_of({"whammy": "1/3", "1": "1/3", "1 + spin": "1/3"}, 3, 2, (True, "passer", 4))
    table = Decided(layout)
    tier = Tier(2, (0, 0, 0))
    noted = no_decisions(layout.rows(tier))
    dirty = np.full(layout.shape(tier), 7.0)
    layout.solve_tier(tier, dirty, table.payoffs.__getitem__, lambda: False, best=noted)
    assert noted.tobytes() == table.decisions[tier].tobytes()


# Skunk and Pig


ROLLS = {"goal": 12, "dice": 2, "sides": 3, "all_ones": "turn", "count": "rolls"}


@pytest.mark.parametrize(
    ("path", "options", "ties"),
    [
        ("skunk/tiny", {}, 0),
        ("skunk/tiny", {"goal": 27, "first_roll_safe": True}, 0),
        ("skunk/tiny", {"goal": 23, "dice": 1, "all_ones": "turn"}, 0),
        ("skunk/tiny", ROLLS, 8),  # of which rounding would decide six
        ("pig/tiny", {}, 0),
        ("pig/race", {"goal": 24}, 0),
        ("pig/piglet", {"goal": 7}, 0),
        ("pig/rounds", {"rounds": 2, "cut": 20}, 190),
        ("pig/rounds", {"rounds": 3, "cut": 20, "objective": "difference"}, 190),
        ("pig/rounds", {"rounds": 2, "cut": 25, "first_roll_forced": True, "draw": "second"}, 1),
    ],
)
def test_every_row_of_a_small_dice_game_says_what_the_rules_say(path, options, ties):
    """`ties`: rows at the least in which both actions are worth the same."""
    layout = load(path, **options)
    table = Decided(layout)
    assert sum(table.check(tier, all_rows(layout, tier)).sum() for tier in layout.tiers()) >= ties


# Goofspiel


@pytest.mark.parametrize("objective", ["points", "win"])
def test_nobody_decides_before_the_upcard(objective):
    layout = load("goofspiel/points", cards=4, objective=objective)
    table = Decided(layout)
    for tier in layout.tiers():
        assert (table.decisions[tier] == -1).all()
        assert (layout.acting_rows(tier, 0, layout.rows(tier)) == 0).all()
    assert layout.best_names == ()


# The contract


@pytest.mark.parametrize("path", ["press-your-luck/tiny", "skunk/tiny", "pig/tiny", "pig/rounds"])
def test_best_names_are_the_names_of_the_actions(path):
    layout = load(path)
    assert list(layout.best_names) == [
        layout.game.action_name(i) for i in range(len(layout.best_names))
    ]


@settings(max_examples=20)
@given(st.sampled_from(["press-your-luck/tiny", "skunk/tiny", "pig/rounds"]), st.data())
def test_who_acts_in_some_rows_is_who_acts_in_all(path, data):
    layout = load(path)
    tier = data.draw(st.sampled_from(list(layout.tiers())))
    block = layout.block_rows(tier)
    bounds = st.integers(0, layout.rows(tier) // block)
    start, stop = sorted((data.draw(bounds) * block, data.draw(bounds) * block))
    part = layout.acting_rows(tier, start, stop)
    assert part.dtype == np.int8 and len(part) == stop - start
    assert (part == layout.acting_rows(tier, 0, layout.rows(tier))[start:stop]).all()
