"""The reference solver of Press Your Luck against published values and games solved by hand."""

from fractions import Fraction as F

import pytest

from tests.reference.press_your_luck import Reference, Rules, State

NONE = (0, 0, 0)

# February 1985 at $250, choices at random: (units, chance), exactly.
FEBRUARY_1985 = {
    "whammy": F(1, 6),
    "money": (
        (2, F(2, 27)),
        (3, F(1, 18)),
        (5, F(1, 54)),
        (6, F(65, 972)),
        (7, F(5, 243)),
        (8, F(59, 972)),
        (9, F(5, 243)),
        (10, F(109, 486)),
    ),
    "spin": (
        (2, F(7, 324)),
        (3, F(31, 324)),
        (4, F(31, 486)),
        (6, F(1, 54)),
        (12, F(5, 162)),
        (16, F(5, 162)),
        (20, F(5, 162)),
    ),
    "cap": 80,
}

# A board small enough to solve everything on it, with a loop at the cap.
TINY = {
    "whammy": F(1, 5),
    "money": ((1, F(3, 10)), (2, F(1, 10))),
    "spin": ((1, F(1, 4)), (3, F(3, 20))),
    "cap": 4,
}


def as_floats(board):
    return board | {
        "whammy": float(board["whammy"]),
        "money": tuple((units, float(chance)) for units, chance in board["money"]),
        "spin": tuple((units, float(chance)) for units, chance in board["spin"]),
    }


def february(**options):
    return Reference(Rules(**as_floats(FEBRUARY_1985), **options))


def exact(board, **options):
    return Reference(Rules(**board, tie_tolerance=0, **options))


def whammy_or_money(chance, units, cap=20, **options):
    """A board with two outcomes, so that games on it can be solved by hand."""
    return exact(
        {"whammy": chance, "money": ((units, 1 - chance),), "spin": (), "cap": cap}, **options
    )


# ---- published values ----------------------------------------------------------------------


def test_the_february_1985_chances_sum_to_one_and_spins_to_71_of_243():
    board = FEBRUARY_1985
    spin = sum(chance for _, chance in board["spin"])
    assert spin == F(71, 243)
    assert board["whammy"] + sum(chance for _, chance in board["money"]) + spin == 1


@pytest.mark.parametrize("tied_pass", ["passer", "next"])
def test_three_players_at_the_cap_with_one_spin_have_the_published_payoffs(tied_pass):
    """Rules page, "What decides whether a solver is right"."""
    reference = february(tied_pass=tied_pass)
    payoffs = reference.value((80, 80, 80), (1, 0, 0), NONE, NONE)
    assert payoffs == pytest.approx((0.36528138, 0.28711239, 0.34760623), abs=5e-9)


@pytest.fixture(scope="module")
def february_next():
    """One solver for all published values, so that they share their states."""
    return february(tied_pass="next")


@pytest.mark.parametrize(
    "scores, spins, play, passing",
    [
        ((0, 40, 28), 1, 0.8051, 0.8390),  # 0, 10000, 7000
        ((0, 32, 12), 1, 0.8125, 0.9032),  # 0, 8000, 3000
        ((0, 32, 12), 2, 0.7723, 0.7355),
    ],
)
def test_player_two_has_the_published_values(february_next, scores, spins, play, passing):
    """Rules page, "Values to reproduce"."""
    actions = february_next.actions(scores, (0, spins, 0), NONE, NONE)
    assert [name for name, _ in actions] == ["play", "pass to 3"]
    assert [triple[1] for _, triple in actions] == pytest.approx([play, passing], abs=5e-5)


def test_with_one_spin_left_player_two_passes_far_behind_or_ahead(february_next):
    """Rules page: player three on 6,000; pass when 2,750 to 5,000 behind, play from 2,500 behind
    to 2,500 ahead, pass from 2,750 ahead. Here to 5,000 ahead, player one on 0."""
    plays = []
    for lead in range(-20, 21):
        play, passing = february_next.actions((0, 24 + lead, 24), (0, 1, 0), NONE, NONE)
        if play[1][1] > passing[1][1]:
            plays.append(lead)
    assert plays == list(range(-10, 11))


# ---- rules, on games solved by hand --------------------------------------------------------


def test_two_at_the_cap_passing_for_ever_match_the_geometric_series():
    """Two in, both at the cap, one earned spin each way: player 1 passes, player 2 spins: whammy
    (1/5) and 1 wins, money (2/5) and they tie, plus a spin (2/5) and 2 passes to 1 likewise."""
    x = exact(TINY).value((4, 4, 0), (1, 0, 0), NONE, (0, 0, 4))[0]
    assert x == F(1, 5) + F(2, 5) * F(1, 2) + F(2, 5) * (1 - x)
    assert x == F(4, 7)


def test_symmetric_passes_tie_exactly_and_the_next_player_is_chosen():
    """5, 3, 3, whammy 2/3, else 3 units: passing wins 2/3 whoever spins, playing 1/3."""
    reference = whammy_or_money(F(2, 3), 3)
    state = ((5, 3, 3), (1, 0, 0), NONE, NONE)
    assert reference.actions(*state) == [
        ("play", (F(1, 3), F(1, 3), F(1, 3))),
        ("pass to 2", (F(2, 3), F(1, 3), 0)),
        ("pass to 3", (F(2, 3), 0, F(1, 3))),
    ]
    assert reference.value(*state) == (F(2, 3), F(1, 3), 0)


def test_play_is_chosen_when_passing_is_no_better():
    """5, 3, 3, whammy 1/2, else 3 units: playing and passing both win 1/2."""
    reference = whammy_or_money(F(1, 2), 3)
    state = ((5, 3, 3), (1, 0, 0), NONE, NONE)
    assert [triple[0] for _, triple in reference.actions(*state)] == [F(1, 2)] * 3
    assert reference.value(*state) == (F(1, 2), F(1, 4), F(1, 4))


def test_a_later_action_must_be_better_by_more_than_the_tolerance():
    rules = Rules(whammy=0.5 + 1e-4, money=((3, 0.5 - 1e-4),), spin=(), cap=20, tie_tolerance=1e-3)
    state = ((5, 3, 3), (1, 0, 0), NONE, NONE)
    assert Reference(rules).value(*state)[0] == pytest.approx(0.5 - 1e-4, abs=1e-12)


@pytest.mark.parametrize(
    "up, scores, expected",
    [
        (0, (5, 3, 3), ["pass to 2", "pass to 3"]),
        (1, (3, 5, 3), ["pass to 3", "pass to 1"]),
        (2, (3, 3, 5), ["pass to 1", "pass to 2"]),
    ],
)
def test_tied_passes_are_listed_in_cyclic_turn_order(up, scores, expected):
    earned = tuple(int(i == up) for i in range(3))
    names = {
        tied_pass: [
            name
            for name, _ in whammy_or_money(F(2, 3), 3, tied_pass=tied_pass).actions(
                scores, earned, NONE, NONE
            )
        ]
        for tied_pass in ("passer", "next")
    }
    assert names == {"passer": ["play"] + expected, "next": ["play"] + expected[:1]}


def test_a_player_at_the_cap_only_passes_and_to_the_next_of_tied_opponents():
    reference = whammy_or_money(F(2, 3), 3, cap=5, tied_pass="passer")
    actions = reference.actions((3, 5, 3), (0, 1, 0), NONE, NONE)
    assert actions == [("pass to 3", (0, F(2, 3) + F(1, 6), F(1, 6)))]


def test_a_forced_spin_is_spun_at_the_cap():
    actions = whammy_or_money(F(2, 3), 3, cap=5).actions((5, 4, 0), NONE, (1, 0, 0), NONE)
    assert actions == [("play", (F(1, 3), F(2, 3), 0))]


@pytest.mark.parametrize(
    "scores, whammies, third_place_spins, expected",
    [
        ((1, 4, 3), NONE, True, ["play"]),
        ((1, 4, 3), NONE, False, ["play", "pass to 2"]),
        ((3, 4, 3), NONE, True, ["play", "pass to 2"]),  # tied for second: not behind both
        ((1, 4, 0), (0, 0, 4), True, ["play", "pass to 2"]),  # two in: the rule never applies
    ],
)
def test_only_strict_third_of_three_must_play(scores, whammies, third_place_spins, expected):
    reference = whammy_or_money(F(1, 2), 3, third_place_spins=third_place_spins)
    actions = reference.actions(scores, (1, 0, 0), NONE, whammies)
    assert [name for name, _ in actions] == expected


def test_after_a_whammy_the_remaining_passed_spins_may_be_passed_on():
    """1, 4, 0 with player 3 out, two passed spins, whammy always: player 1 hits one and passes the
    other, which now is earned, to player 2, who hits it too: both on 0."""
    reference = whammy_or_money(F(1), 3)
    assert reference.value((1, 4, 0), NONE, (2, 0, 0), (0, 0, 4)) == (F(1, 2), F(1, 2), 0)


def test_the_last_whammy_puts_a_player_out_with_all_his_spins():
    """Players 2 and 3 are left with no spins; with one of them out too, the other wins on 0."""
    reference = whammy_or_money(F(1), 3)
    state = ((9, 2, 1), (2, 0, 0), (1, 0, 0), (3, 0, 0))
    assert reference.spin_outcomes(State(*state))[0] == (1, State((0, 2, 1), NONE, NONE, (4, 0, 0)))
    assert reference.value(*state) == (0, 1, 0)
    assert reference.value((9, 0, 0), (2, 0, 0), (1, 0, 0), (3, 4, 0)) == (0, 0, 1)


def test_spins_go_to_no_player_who_is_out():
    """Player 2 is out; from 5 against 3 the pass goes to 3 although 2 would be next."""
    actions = whammy_or_money(F(2, 3), 3).actions((5, 0, 3), (1, 0, 0), NONE, (0, 4, 0))
    assert actions == [("play", (F(1, 3), 0, F(2, 3))), ("pass to 3", (F(2, 3), 0, F(1, 3)))]


def test_passed_spins_join_those_already_passed_and_the_lowest_in_turn_order_is_up():
    reference = whammy_or_money(F(1, 2), 3)
    state = State((5, 4, 0), (2, 0, 1), (0, 1, 0), NONE)
    assert reference.player_up(state) == 0
    after = reference.after_pass(state, 1)
    assert (after.earned, after.passed) == ((0, 0, 1), (0, 3, 0))
    assert reference.player_up(after) == 1


def test_a_game_that_is_over_has_no_actions_and_ties_share():
    reference = whammy_or_money(F(1, 2), 3)
    assert reference.actions((5, 5, 1), NONE, NONE, NONE) == []
    assert reference.value((5, 5, 1), NONE, NONE, NONE) == (F(1, 2), F(1, 2), 0)
    assert reference.value((2, 2, 2), NONE, NONE, (3, 0, 1)) == (F(1, 3), F(1, 3), F(1, 3))
    assert reference.value((0, 0, 0), NONE, NONE, (4, 0, 0)) == (0, F(1, 2), F(1, 2))
    assert reference.actions((0, 0, 1), (0, 0, 1), NONE, (4, 4, 0)) == []
    assert reference.value((0, 0, 1), (0, 0, 1), NONE, (4, 4, 0)) == (0, 0, 1)
