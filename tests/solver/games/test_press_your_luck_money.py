"""Press Your Luck for dollars, and against the house, held to the reference that plays it so; and
boards of too many scores for powers of two."""

import re
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import luckbase
from luckbase.cluster.answers.table import search_in_memory
from luckbase.solver.board.file import board_from_canonical
from luckbase.solver.board.model import canonical
from luckbase.solver.errors import LuckbaseError, OptionError, StateError
from luckbase.solver.game.capabilities import Charts, Drawing, FullTable, scene_of
from luckbase.solver.scene import Box
from tests.solver.games.test_press_your_luck_slides import (
    as_the_reference,
    boards,
    probed,
    searched,
)
from tests.solving import load_game

NOBODY = {"scores": (0, 0, 0), "whammies": (1, 1, 1)}


@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(st.one_of(*(boards(money=True, players=players) for players in (3, 2))))
def test_random_boards_for_money_are_as_the_reference_has_them(made):
    refused = ["best replies do not settle"]
    refused += ["payoffs have no constant sum"] * (made.game.players == 2)
    as_the_reference(made, lambda: probed(made) / made.game.payoff_range[1], refused)


def half_a_whammy(**rules):
    """One spin in two pays $1,000, the other is a whammy, which puts out."""
    return board_from_canonical("half", {
        "game": "press-your-luck", "outcomes": {"whammy": "1/2", "1000": "1/2"},
        "rules": {"max_whammies": 1, **rules}, "solve": {"score_unit": 1000, "score_cap": 3000},
    })  # fmt: skip


def values(board, *state):
    table, start = searched(load_game(board), state)
    return table.probe(start)[0].tolist()


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        # Level at $1,000, players 1 and 2 share the win, and each keeps all of it.
        ({"objective": "money"}, [1000, 1000, 0]),
        ({"objective": "win+money", "win_value": 100}, [1050, 1050, 0]),
        ({}, [0.5, 0.5, 0]),
    ],
)
def test_players_who_are_level_each_keep_their_dollars(rules, expected):
    assert values(half_a_whammy(**rules), (1, 1, 0), (0, 0, 0), (0, 0, 0), (0, 0, 0)) == expected


def test_the_last_one_in_must_spin_what_was_passed_to_them_and_may_stop_then():
    """$1,000 and a passed spin: $2,000 or nothing. $1,000 and an earned one: spinning and stopping
    are level, and spinning comes first. $2,000: they stop, for $2,000 above $1,500."""
    board = half_a_whammy(objective="money", house=True)
    out, none = (0, 1, 1), (0, 0, 0)
    assert values(board, (1, 0, 0), none, (1, 0, 0), out) == [1000, 0, 0]
    table, start = searched(load_game(board), ((1, 0, 0), (1, 0, 0), none, out))
    answer = table[table.game.describe(start[0])]
    assert [move.name for move in answer.actions] == ["play", "stop"]
    assert answer.toss_up and answer.best == "play"
    assert values(board, (2, 0, 0), (1, 0, 0), none, out) == [2000, 0, 0]
    assert values(half_a_whammy(objective="money"), (1, 0, 0), none, (1, 0, 0), out)[0] == 1000


def test_who_passes_when_ahead_stops_where_nobody_else_is_in():
    board = half_a_whammy(objective="money", house=True)
    last_one_in = {"scores": (0, 2000, 0), "earned": (0, 1, 0), "whammies": (1, 0, 1)}
    value = luckbase.evaluate(board, ["always-pass-ahead"] * 3, last_one_in).value
    assert value == (0, 2000, 0)


def test_against_the_house_a_last_whammy_leaves_nobody_in():
    board = half_a_whammy(objective="win+money", win_value=5000, house=True)
    assert values(board, (0, 0, 0), (0, 0, 0), (0, 0, 0), (1, 1, 1)) == [0, 0, 0]
    assert scene_of(load_game(board), NOBODY).title == "the game is over: nobody has won"
    assert values(board, (1, 0, 0), (0, 0, 0), (1, 0, 0), (0, 1, 1)) == [3500, 0, 0]
    up = {"scores": (1000, 0, 0), "earned": (1, 0, 0), "whammies": (0, 1, 1)}
    assert scene_of(load_game(board), up).title == "player 1 is up"
    with pytest.raises(StateError, match="somebody must be in"):
        load_game(half_a_whammy(objective="money")).parse(NOBODY)


def test_dollars_have_their_own_range_name_and_ties():
    game = load_game(half_a_whammy(objective="win+money", win_value=5000))
    assert game.payoff_range == (0.0, 8000.0)
    assert (game.payoff_name, game.pays_chances) == ("expected dollars", False)
    assert game.tie_tolerance == pytest.approx(8e-9)
    assert game.float64_error == pytest.approx(8e-11)
    assert load_game(half_a_whammy()).float64_error == 1e-12
    with pytest.raises(OptionError, match=r"has an objective \('win\+money'\) that no full table"):
        game.need(FullTable)


def test_boards_that_want_to_win_keep_their_form():
    form = canonical(half_a_whammy(objective="win", house=False))
    assert form == canonical(half_a_whammy())
    assert not {"objective", "win_value", "house"} & {*form["rules"]}


def test_why_is_said_in_dollars():
    """The last one in has $2,000 and a spin against the house."""
    board = half_a_whammy(objective="money", house=True)
    table, start = searched(load_game(board), ((2, 0, 0), (1, 0, 0), (0, 0, 0), (0, 1, 1)))
    text = table.why(table.game.describe(start[0]))
    assert text == [
        "Stopping: player 1 expects $2,000.",
        "Playing: a whammy and out, one in two, costs $2,000; everything else gains $1,000; "
        "on average $500 less.",
    ]


# --- boards whose keys use mixed radices, and drawings of two and three players -------------------


def game_of(players, cap=3000, unit=500):
    form = {
        "game": "press-your-luck", "rules": {"players": players},
        "outcomes": {"whammy": "1/6", "500": "1/2", "500 + spin": "1/3"},
        "solve": {"score_cap": cap, "score_unit": unit},
    }  # fmt: skip
    return load_game(board_from_canonical("made", form))


def test_larsons_cap_is_searched_and_keys_tell_its_states_apart():
    """442 units of $250 for three players: 64 bits are too few for powers of two. Player 3 passes;
    with a spin that comes back player 2 does too, so x = 1/3 (1/6 + x/3) that player 3 goes out."""
    game = game_of(3, 110_500, 250)
    assert (game.strides[1] < 0).all() and game.fields.most.tolist() == [442] * 3 + [31] * 6 + [
        4
    ] * 3
    start = game.parse("scores=0,1000,109000 earned=0,0,1 whammies=0,0,3")[None]
    table = search_in_memory(game, start, 100_000)
    assert table.probe(start)[0].tolist() == pytest.approx([0, 1 / 16, 15 / 16])


@pytest.mark.parametrize(("cap", "unit", "said"), [
    (110_500, 250, "has 442 units of score_unit, above 255, that no full table takes yet; run: "
     "luckbase solve with --from and a state, to search what lies below, as in --from "
     "scores=0,0,0 earned=1,1,1"),
    (1_000_000, 1, "1,000,000 units of score_unit 1 for 3 players do not fit in a key of 64 bits; "
     "write a larger score_unit"),
])  # fmt: skip
def test_a_board_of_too_many_scores_is_refused(cap, unit, said):
    with pytest.raises(LuckbaseError, match=re.escape(said)) as found:
        game_of(3, cap, unit).need(FullTable)
    assert found.value.exit_code == 2


@pytest.mark.parametrize("players", [2, 3])
def test_every_player_has_a_desk_beside_the_others(players):
    game = game_of(players)
    draw = game.need(Drawing).scene
    scores, rest = [3000, 500, 0][:players], [1] * players
    scene = draw(np.array([*scores, *rest, *[5] * players, *rest]))
    desks = [shape for shape in scene.shapes if isinstance(shape, Box) and shape.kind == "desk"]
    assert len(desks) == players and desks[0].x > 110
    assert all(a.x + a.wide < b.x for a, b in pairwise(desks))
    assert desks[-1].x + desks[-1].wide < scene.wide - 110


def test_a_chart_of_a_game_without_a_full_table_is_refused_with_the_reason():
    game = game_of(3, 110_500, 250)
    start = game.parse("scores=0,1000,109000 earned=0,0,1 whammies=0,0,3")[None]
    table = search_in_memory(game, start, 100_000)
    with pytest.raises(OptionError, match="has 442 units of score_unit, above 255, that no full"):
        table.check_chart(game.need(Charts).kinds[0])
