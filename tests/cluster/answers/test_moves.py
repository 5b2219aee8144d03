"""All that can happen at a state, and what chance brings in the words of each game."""

import re
from itertools import permutations
from types import SimpleNamespace

import numpy as np
import pytest

import luckbase
from luckbase.cluster.answers.moves import changed, equal_cases
from luckbase.solver.errors import MissingTableError, StateError
from luckbase.solver.game.capabilities import Drawing
from luckbase.solver.game.fields import Field, typed
from luckbase.solver.game.game import load_game
from luckbase.solver.search.expand import expand
from luckbase.solver.sentences import fields
from tests.places import BOARDS

PIG, PRESS, JACKPOT, GOOFSPIEL, SKUNK = GAMES = [
    f"{game}/tiny" for game in ("pig", "press-your-luck", "jackpot", "goofspiel", "skunk")
]


def flat(there):
    """(what happens, its chance, where it leads) of everything that can."""
    every = [each for move in there.moves for each in move.outcomes] + list(there.outcomes)
    return [(each.name, each.chance, fields(each.state)) for each in every]


@pytest.mark.parametrize("board", GAMES)
def test_every_edge_of_the_rules_is_there_and_no_other(board, in_memory):
    """Edges that come to the same count as one, with the sum of their chances."""
    table = in_memory(board)
    for state in np.concatenate(list(table.draw(40, 3))):
        there = table.moves(typed(table.game.describe(state)), 0)
        edges = expand(table.game, state.reshape(1, -1))
        known = {}
        for action, child, weight in zip(
            edges.actions.tolist(), edges.children, edges.weights.tolist(), strict=True
        ):
            key = action, fields(table.game.describe(child))
            known[key] = known.get(key, 0.0) + weight
        text = flat(there)
        assert sorted(said_at for _, _, said_at in text) == sorted(at for _, at in known)
        assert sorted(chance for _, chance, _ in text) == pytest.approx(sorted(known.values()))
        assert len({name for name, _, _ in text}) == len(text)  # each is told apart from the others


def test_the_answer_is_the_tables_own(in_memory):
    table = in_memory(PIG)
    for mine in range(0, 20, 3):
        state = {"mine": mine, "yours": 9, "turn": 3}
        there = table.moves(state)
        assert there.answer == table.ask(state)
        assert [move.action for move in there.moves] == list(there.answer.actions)


def test_what_happens_is_said_as_the_one_who_moves_sees_it(in_memory):
    roll, hold = in_memory(PIG).moves({"mine": 3, "yours": 10, "turn": 4}).moves
    assert [each.name for each in roll.outcomes] == [
        "a 1: the turn is lost", "a 2", "a 3", "a 4", "a 5", "a 6",
    ]  # fmt: skip
    assert [each.name for each in hold.outcomes] == ["mine 3 -> 7, turn 4 -> 0; player 2 is up"]
    assert hold.outcomes[0].state == {"mine": 10, "yours": 7, "turn": 0, "player": 2}
    flip = in_memory(JACKPOT).moves({"open": [1, 2, 3], "dice": [3]})
    names = {each.name for move in flip.moves for each in move.outcomes}
    assert names == {"open without 3", "open without 1,2"}


def test_a_list_that_gets_shorter_is_said_whole():
    """A field with blanks leaves them out at its end, also where it is as long as players are."""
    dice = [Field("dice", length=2, low=1, high=6, default=0, blank=0)]
    game = SimpleNamespace(players=2, fields=dice)
    assert changed(game, {"dice": [3, 5]}, {"dice": [3]}) == "dice 3,5 -> 3"
    assert changed(game, {"dice": [3, 5]}, {"dice": [3, 4]}) == "player 2: dice 5 -> 4"


def test_a_state_above_is_searched_where_that_is_allowed(in_memory):
    table = in_memory(PRESS)
    state = {"scores": (0, 1000, 500), "earned": (0, 2, 1)}
    with pytest.raises(MissingTableError, match="earned"):
        table.moves(state, 0)
    there = table.moves(state)
    assert (there.in_table, there.answer.source) == (False, "search")
    for move in there.moves:
        mean = sum(each.chance * np.array(each.value) for each in move.outcomes)
        assert mean == pytest.approx(move.action.value, abs=1e-12)


def test_a_game_that_is_over_has_no_moves(in_memory):
    there = in_memory(PIG).moves({"mine": 20, "yours": 3})
    assert (there.over, there.moves, there.outcomes) == (True, (), ())
    assert there.answer.value == (1.0, 0.0)
    with pytest.raises(StateError, match="mine: 21"):
        in_memory(PIG).moves({"mine": 21, "yours": 3})


@pytest.mark.parametrize(
    "weights, cases",
    [((0.5, 0.5), 2), ((1.0,), 1), ((1 / 36, 35 / 36), 36), ((0.3, 0.7), 10),
     ((1 / 54 / 3, 1 - 1 / 162), 162), ((2**-0.5, 1 - 2**-0.5), None)],
)  # fmt: skip
def test_weights_are_said_in_the_fewest_equal_cases(weights, cases):
    assert equal_cases(weights) == cases


# --- what chance brings: every name says what its state says -------------------------------------


def game_of(board, **settings):
    return load_game(luckbase.load_board(BOARDS / f"{board}.toml", **settings))


def named(game, **state):
    """The states that chance leads to by name, after any action that has names."""
    query = game.parse({name: str(value) for name, value in state.items()})
    edges = expand(game, query.reshape(1, -1))
    result = {}
    for action in dict.fromkeys(edges.actions.tolist()):
        children = edges.children[edges.actions == action]
        names = game.own(Drawing).outcome_names(query, action, children)
        assert all(name is None for name in names) or all(names)
        result |= {
            name: game.describe(child) for name, child in zip(names, children, strict=True) if name
        }
    return result


@pytest.mark.parametrize(
    ("state", "after"),
    [
        ({"scores": "500,1000,500", "earned": "0,2,0"},
         {"whammy": ([500, 0, 500], [0, 1, 0]), "$500": ([500, 1500, 500], [0, 1, 0]),
          "$500 and a spin": ([500, 1500, 500], [0, 2, 0])}),
        ({"scores": "0,0,500", "passed": "2,0,0", "whammies": "2,0,0"},
         {"whammy": ([0, 0, 500], [1, 0, 0]), "$500": ([500, 0, 500], [0, 0, 0]),
          "$500 and a spin": ([500, 0, 500], [1, 0, 0])}),
        ({"scores": "1000,0,500", "earned": "1,0,0", "whammies": "3,0,0"},
         {"whammy, and out": ([0, 0, 500], [0, 0, 0]), "$500": ([1500, 0, 500], [0, 0, 0]),
          "$500 and a spin": ([1500, 0, 500], [1, 0, 0])}),
    ],
)  # fmt: skip
def test_a_spin_in_the_words_of_the_show(state, after):
    result = named(game_of("press-your-luck/tiny"), **state)
    passed = [name for name in result if name.startswith("player")]
    for name in passed:
        spins = result.pop(name)["passed"]
        assert name.startswith(f"player {1 + spins.index(max(spins))} gets {max(spins)} spin")
    assert {name: (s["scores"], s["earned"]) for name, s in result.items()} == after


def test_every_spin_of_a_real_board_is_told_by_its_dollars():
    game = game_of("press-your-luck/1985-02", score_unit=500)
    result = named(game, scores="5000,7000,0", earned="0,2,0")
    assert result.pop("player 1 gets 2 spins")["passed"] == [2, 0, 0]
    assert len(result) == 12
    for name, state in result.items():
        money = re.fullmatch(r"\$([\d,]+)( and a spin)?", name)
        gain = int(money[1].replace(",", "")) if money else -7000
        assert (state["scores"][1], name == "whammy") == (7000 + gain, money is None)
        assert state["earned"][1] == 1 + bool(money and money[2])
    capped = named(game, scores="0,18500,0", passed="0,1,0")
    assert capped["$1,500 or more"]["scores"][1] == 20_000
    assert capped["$1,500 or more and a spin"]["earned"][1] == 1
    assert len(capped) == 7


def of_dice(name):
    """(points, the rolls) that a name says."""
    points, _, rolls = name.partition(":")
    listed = [tuple(map(int, each.split(" and "))) for each in rolls.split(", or ") if rolls]
    return int(re.sub(r"\D", "", points)), listed


@pytest.mark.parametrize("board", ["skunk/tiny", "pig/tiny"])
def test_a_roll_is_told_by_its_dice(board, in_memory):
    """The dice that a name lists add up to its points, and are so many of all rolls."""
    there = in_memory(board).moves({"mine": 3, "yours": 9, "turn": 4})
    roll = next(move for move in there.moves if move.action.name == "roll")
    lost = [each for each in roll.outcomes if "lost" in each.name]
    for each in [each for each in roll.outcomes if each not in lost]:
        points, rolls = of_dice(each.name)
        assert each.state["turn"] == 4 + points
        if board == "pig/tiny":
            assert (each.name, each.weight) == (f"a {points}", 1)
        else:
            assert {sum(faces) for faces in rolls} == {points}
            assert each.weight == len({way for faces in rolls for way in permutations(faces)})
    for each in lost:
        mine = each.state["yours"]  # the other is up
        assert each.name == ("two 1s: the score is lost" if mine == 0 else lost[0].name)
    assert lost[0].name == "a 1: the turn is lost"
    assert [each.weight for each in lost] == {"pig/tiny": [1], "skunk/tiny": [10, 1]}.get(
        board, [each.weight for each in lost]
    )


def rolled(there):
    """The weights of what a roll brings, by name."""
    (roll,) = [move for move in there.moves if move.action.name == "roll"]
    return {each.name: each.weight for each in roll.outcomes}


def test_rolls_that_win_and_rolls_that_lose_the_same_are_one(in_memory):
    table = in_memory("skunk/tiny")
    won = rolled(table.moves({"mine": 3, "yours": 10, "turn": 12}))
    assert won["5 points or more: the game is won"] == 24
    won = rolled(table.moves({"mine": 3, "yours": 10, "turn": 5}))
    assert won["12 points: the game is won"] == 1
    lost = rolled(table.moves({"mine": 0, "yours": 10, "turn": 3}))
    assert lost["a 1: the turn is lost"] == 11


def test_a_safe_first_roll_counts_its_ones():
    game = game_of("pig/rounds")
    assert "a 1" in named(game, mine=0, yours=3, round=10)
    result = named(game, mine=0, yours=3, turn=4, round=10, player=2)
    assert list(result) == ["a 1: the turn is lost", *(f"a {face}" for face in range(2, 7))]
    assert result["a 6"]["turn"] == 10


def test_the_dice_of_tiles():
    result = named(game_of("jackpot/seed"), open="1,2,3,7")
    assert len(result) == 36
    assert result["6 and 1"]["dice"] == [6, 1]
    assert named(game_of("jackpot/seed"), open="1,2,3,7", dice="1,6") == {}
    totals = named(game_of("jackpot/shut-the-box"), open="1,2,3,9")
    assert list(totals) == [f"a total of {total}" for total in range(2, 13)]
    assert all(f"a total of {sum(each['dice'])}" == name for name, each in totals.items())
    first = named(game_of("jackpot/shut-the-box", one_die="must"), open="1,2,3")
    assert {name: each["dice"] for name, each in first.items()} == {
        f"a {face}": [face] for face in range(1, 7)
    }


def test_slides_to_choose_from_are_named_by_what_the_player_can_take():
    """Only a player with a whammy may take one less instead of $2,000."""
    game = game_of("press-your-luck/1985-02-double", score_unit=500)
    choice = "a choice of $2,000 or a whammy less"
    for whammies, offered in (("0,0,0", False), ("0,1,0", True)):
        result = named(game, scores="0,3500,0", passed="0,1,0", whammies=whammies)
        assert (choice in result) == offered and "$2,000" in result
        assert not offered or result[choice]["offer"] > 0
        assert result["the score again and a spin"]["scores"] == [0, 7000, 0]
