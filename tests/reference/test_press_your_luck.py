"""The reference solver of Press Your Luck against published values and games solved by hand."""

from fractions import Fraction as F

import pytest

from tests.reference.press_your_luck import FEBRUARY_1985, Reference, Rules, State

NONE = (0, 0, 0)


def whammy_or_money(chance, units=3, cap=20, **options):
    """A board with two outcomes, so that games on it can be solved by hand."""
    return Reference(Rules(chance, ((units, 1 - chance),), (), cap, tie_tolerance=0, **options))


# ---- published values ----------------------------------------------------------------------


def test_with_one_spin_left_player_two_passes_far_behind_or_ahead():
    """Rules page: player three on 6,000; pass when 2,750 to 5,000 behind, play from 2,500 behind
    to 2,500 ahead, pass from 2,750 ahead. Here to 5,000 ahead, player one on 0."""
    whammy, money, spin = FEBRUARY_1985.values()
    floats = [tuple((units, float(chance)) for units, chance in kind) for kind in (money, spin)]
    february = Reference(Rules(float(whammy), *floats, cap=80, tied_pass="next"))
    capped = february.value((80, 80, 80), (1, 0, 0), NONE, NONE)
    assert capped == pytest.approx((0.36528138, 0.28711239, 0.34760623), abs=5e-9)
    published = [v[1] for _, v in february.actions((0, 40, 28), (0, 1, 0), NONE, NONE)]
    assert published == pytest.approx([0.8051, 0.8390], abs=5e-5)
    plays = []
    for lead in range(-20, 21):
        play, passing = february.actions((0, 24 + lead, 24), (0, 1, 0), NONE, NONE)
        if play[1][1] > passing[1][1]:
            plays.append(lead)
    assert plays == list(range(-10, 11))


# ---- rules, on games solved by hand --------------------------------------------------------


def test_two_at_the_cap_passing_for_ever_match_the_geometric_series():
    """Two in, both at the cap, one earned spin each way: player 1 passes, player 2 spins: whammy
    (1/5) and 1 wins, money (2/5) and they tie, plus a spin (2/5) and 2 passes to 1 likewise."""
    money, spin = ((1, 0.3), (2, 0.1)), ((1, 0.25), (3, 0.15))
    reference = Reference(Rules(0.2, money, spin, cap=4))
    x = reference.value((4, 4, 0), (1, 0, 0), NONE, (0, 0, 4))[0]  # 1/5 + 1/5 + 2/5 (1 - x)
    assert x == pytest.approx(4 / 7, abs=1e-14)
    assert F(1, 5) + F(2, 5) * F(1, 2) + F(2, 5) * (1 - F(4, 7)) == F(4, 7)


@pytest.mark.parametrize(
    ("whammy", "play", "passes", "chosen"),
    [
        # symmetric passes tie exactly and the next player is chosen
        (F(2, 3), (F(1, 3), F(1, 3), F(1, 3)), [(F(2, 3), F(1, 3), 0), (F(2, 3), 0, F(1, 3))], 1),
        # playing and passing are worth the same, and play is chosen
        (F(1, 2), (F(1, 2), F(1, 4), F(1, 4)), [(F(1, 2), F(1, 2), 0), (F(1, 2), 0, F(1, 2))], 0),
    ],
)
def test_of_ties_the_first_is_chosen(whammy, play, passes, chosen):
    """5, 3, 3, and money is 3 units."""
    reference, state = whammy_or_money(whammy), ((5, 3, 3), (1, 0, 0), NONE, NONE)
    each = [("play", play), ("pass to 2", passes[0]), ("pass to 3", passes[1])]
    assert reference.actions(*state) == each
    assert reference.value(*state) == each[chosen][1]


def test_a_later_action_must_be_better_by_more_than_the_tolerance():
    rules = Rules(whammy=0.5 + 1e-4, money=((3, 0.5 - 1e-4),), spin=(), cap=20, tie_tolerance=1e-3)
    state = ((5, 3, 3), (1, 0, 0), NONE, NONE)
    assert Reference(rules).value(*state)[0] == pytest.approx(0.5 - 1e-4, abs=1e-12)


@pytest.mark.parametrize(
    ("up", "scores", "expected"),
    [
        (0, (5, 3, 3), ["pass to 2", "pass to 3"]),
        (1, (3, 5, 3), ["pass to 3", "pass to 1"]),
        (2, (3, 3, 5), ["pass to 1", "pass to 2"]),
    ],
)
def test_tied_passes_are_listed_in_cyclic_turn_order(up, scores, expected):
    earned = tuple(int(i == up) for i in range(3))
    for tied_pass, passes in (("passer", expected), ("next", expected[:1])):
        reference = whammy_or_money(F(2, 3), tied_pass=tied_pass)
        actions = reference.actions(scores, earned, NONE, NONE)
        assert [name for name, _ in actions] == ["play", *passes]


@pytest.mark.parametrize(
    ("cap", "state", "expected"),
    [
        # at the cap a player only passes, and to the next of tied opponents
        (5, ((3, 5, 3), (0, 1, 0), NONE, NONE), [("pass to 3", (0, F(5, 6), F(1, 6)))]),
        # a passed spin is spun at the cap
        (5, ((5, 4, 0), NONE, (1, 0, 0), NONE), [("play", (F(1, 3), F(2, 3), 0))]),
        # player 2 is out: the pass goes to 3 although 2 would be next
        (20, ((5, 0, 3), (1, 0, 0), NONE, (0, 4, 0)),
         [("play", (F(1, 3), 0, F(2, 3))), ("pass to 3", (F(2, 3), 0, F(1, 3)))]),
        # over: no spins, or one player in
        (20, ((5, 5, 1), NONE, NONE, NONE), []),
        (20, ((0, 0, 1), (0, 0, 1), NONE, (4, 4, 0)), []),
    ],
)  # fmt: skip
def test_at_the_cap_beside_who_is_out_and_at_the_end_there_are_these_actions(cap, state, expected):
    assert whammy_or_money(F(2, 3), cap=cap).actions(*state) == expected


@pytest.mark.parametrize(
    ("scores", "whammies", "third_place_spins", "expected"),
    [
        ((1, 4, 3), NONE, True, ["play"]),
        ((1, 4, 3), NONE, False, ["play", "pass to 2"]),
        ((3, 4, 3), NONE, True, ["play", "pass to 2"]),  # tied for second: not behind both
        ((1, 4, 0), (0, 0, 4), True, ["play", "pass to 2"]),  # two in: the rule never applies
    ],
)
def test_only_strict_third_of_three_must_play(scores, whammies, third_place_spins, expected):
    reference = whammy_or_money(F(1, 2), third_place_spins=third_place_spins)
    actions = reference.actions(scores, (1, 0, 0), NONE, whammies)
    assert [name for name, _ in actions] == expected


def test_after_a_whammy_the_remaining_passed_spins_may_be_passed_on():
    """1, 4, 0 with player 3 out, two passed spins, whammy always: player 1 hits one and passes the
    other, which now is earned, to player 2, who hits it too: both on 0."""
    reference = whammy_or_money(F(1))
    assert reference.value((1, 4, 0), NONE, (2, 0, 0), (0, 0, 4)) == (F(1, 2), F(1, 2), 0)


def test_the_last_whammy_puts_a_player_out_with_all_his_spins():
    """Players 2 and 3 are left with no spins; with one of them out too, the other wins on 0."""
    reference, state = whammy_or_money(F(1)), ((9, 2, 1), (2, 0, 0), (1, 0, 0), (3, 0, 0))
    assert reference.spin_outcomes(State(*state))[0] == (1, State((0, 2, 1), NONE, NONE, (4, 0, 0)))
    assert reference.value(*state) == (0, 1, 0)
    assert reference.value((9, 0, 0), (2, 0, 0), (1, 0, 0), (3, 4, 0)) == (0, 0, 1)


def test_passed_spins_join_those_already_passed_and_the_lowest_in_turn_order_is_up():
    reference, state = whammy_or_money(F(1, 2)), State((5, 4, 0), (2, 0, 1), (0, 1, 0), NONE)
    assert reference.player_up(state) == 0
    after = reference.after_pass(state, 1)
    assert (after.earned, after.passed) == ((0, 0, 1), (0, 3, 0))
    assert reference.player_up(after) == 1


@pytest.mark.parametrize(
    ("scores", "earned", "whammies", "payoffs"),
    [
        ((5, 5, 1), NONE, NONE, (F(1, 2), F(1, 2), 0)),
        ((2, 2, 2), NONE, (3, 0, 1), (F(1, 3), F(1, 3), F(1, 3))),
        ((0, 0, 0), NONE, (4, 0, 0), (0, F(1, 2), F(1, 2))),
        ((0, 0, 1), (0, 0, 1), (4, 4, 0), (0, 0, 1)),
    ],
)
def test_of_a_game_that_is_over_ties_share(scores, earned, whammies, payoffs):
    assert whammy_or_money(F(1, 2)).value(scores, earned, NONE, whammies) == payoffs
