"""All that can happen at a state."""

from types import SimpleNamespace

import numpy as np
import pytest

from luckbase.cluster.answers.moves import changed, equal_cases
from luckbase.solver.errors import MissingTableError, StateError
from luckbase.solver.game.fields import Field, typed
from luckbase.solver.search.expand import expand
from luckbase.solver.sentences import fields

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
