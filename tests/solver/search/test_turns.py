"""The states inside a turn are forgotten, and those between turns keep their payoffs to the bit."""

from dataclasses import replace

import numpy as np
import pytest

from luckbase.game import (
    Board,
    Field,
    Game,
    Rules,
    chance,
    decision,
    lead,
    over,
    pay,
    set_field,
    transition,
)
from luckbase.solver.errors import GameError, StateError
from luckbase.solver.search.game_graph import Graph
from tests.games import yahtzee
from tests.places import BOARDS
from tests.solving import load_board, load_game

TURN = ("rolls", "dice")


@transition
def piglets(board, state, edges):
    """Pig for three: the banked scores, whose turn it is, the points of the turn."""
    goal, up, turn = board.ints[0], state[3], state[4]
    for player in range(3):
        if state[player] >= goal:
            return over(edges, 1.0 * (player == 0), 1.0 * (player == 1), 1.0 * (player == 2))
    if turn > 0:
        child = lead(edges, state, 0, 1.0)
        child[up], child[3], child[4] = min(state[up] + turn, goal), (up + 1) % 3, 0
    for face in range(1, 7):
        child = lead(edges, state, 1, 1 / 6)
        if face == 1:
            child[3], child[4] = (up + 1) % 3, 0
        elif state[up] + turn + face >= goal:
            child[up], child[4] = goal, 0
        else:
            child[4] = turn + face
    return decision(edges, up)


def yahtzee_game():
    board = yahtzee.YahtzeeBoard(game="turns", name="turns")
    return Game(board, replace(yahtzee.rules(board), within_turn=TURN))


def pig_for_three(goal=8):
    return Game(Board(game="turns", name="turns"), Rules(
        fields=[
            Field("scores", length=3, high=goal, default=0), Field("up", high=2, default=0),
            Field("turn", high=goal, default=0),
        ],
        players=3, transition=piglets, numbers=(goal,), max_edges=7, actions=("hold", "roll"),
        start={}, within_turn=("turn",),
    ))  # fmt: skip


def race(name, goal):
    """A race of two players of luckbase's own, whose rules say nothing of turns."""
    board = load_board(BOARDS / f"{name}.toml", goal=goal)
    return Game(board, replace(load_game(board).rules, within_turn=("turn",)))


@transition
def endless(board, state, edges):
    """Roll a die and keep it."""
    if state[0] == 0:
        for face in range(1, 4):
            lead(edges, state, 0, 1 / 3)[0] = face
        return chance(edges)
    lead(edges, state, 0, 1.0)
    return decision(edges, 0)


def test_a_turn_that_does_not_end_is_refused():
    game = Game(Board(game="endless", name="endless"), Rules(
        fields=[Field("die", high=3)], players=1, transition=endless, numbers=(), max_edges=3,
        actions=("keep",), start={}, within_turn=("die",),
    ))  # fmt: skip
    with pytest.raises(StateError, match=r"die=1 lies on a cycle that play never leaves"):
        Graph(game, keeps_turns=False).solve(game.needed_starts())


@transition
def there_and_back(board, state, edges):
    """Each turn costs 5 and pays 5, in two steps."""
    if state[0] == 0:
        return over(edges, 0.0)
    child = lead(edges, state, 0, 1.0)
    child[0], child[1] = state[0] - state[1], 1 - state[1]
    pay(edges, 5.0 if state[1] else -5.0)
    return chance(edges)


@pytest.mark.parametrize("keeps", [False, True])
def test_payoffs_inside_a_turn_are_held_to_the_range_even_if_they_are_forgotten(keeps):
    game = Game(Board(game="turns", name="turns"), Rules(
        fields=[Field("turns", high=2, default=2), Field("step", high=1, default=0)], players=1,
        transition=there_and_back, numbers=(), max_edges=1, actions=("go",), start={}, pays=True,
        payoff_range=(0, 1), within_turn=("step",),
    ))  # fmt: skip
    with pytest.raises(GameError, match=r"turns=1 step=1: has payoff \[5\.0\]; expected 0 to 1"):
        Graph(game, keeps_turns=keeps).solve(game.needed_starts())


def with_open(*boxes):
    """The state of Yahtzee in which a turn begins and only these boxes, from 1, are open."""
    filled = [box for box in range(1, 14) if box not in boxes]
    return yahtzee_game().parse({"filled": filled, "upper": 50})[None]


@pytest.mark.parametrize(
    ("game", "root"),
    [(yahtzee_game(), with_open(6, 12, 13)), (race("pig/race", 15), None),
     (pig_for_three(), None), (race("skunk/tiny", 12), None)],
    ids=["yahtzee", "pig", "pig for three", "skunk"],
)  # fmt: skip
def test_states_between_turns_have_the_same_payoffs(game, root):
    """Also where turns lead back to the states in which they began."""
    root = game.needed_starts() if root is None else root
    full, lean = Graph(game), Graph(game, keeps_turns=False)
    at = full.solve(root), lean.solve(root)
    assert (full.values[at[0]] == lean.values[at[1]]).all()
    keys = full.keys[~game.within_turn(full.states(np.arange(full.count)))]
    assert sorted(keys.tolist()) == sorted(lean.keys.tolist())
    first, second = full.look_up(keys), lean.look_up(keys)
    for name in ("values", "best", "margins", "actors", "errors"):
        mine, yours = getattr(full, name)[first], getattr(lean, name)[second]
        assert np.array_equal(mine, yours, equal_nan=name != "best")


def test_the_last_box_is_worth_what_a_person_can_check():
    """Yahtzee in three rolls: 4.6029 % (Verhoeff), 50 points."""
    game, graph = yahtzee_game(), Graph(yahtzee_game(), keeps_turns=False)
    at = graph.solve(with_open(12))
    assert graph.values[at[0], 0] == pytest.approx(50 * 347897 / 7558272, abs=1e-12)
    assert graph.count == 2 + 1  # the end with a Yahtzee and without
    assert not game.within_turn(graph.states(np.arange(graph.count))).any()


def test_a_root_inside_a_turn_is_solved_too():
    game = yahtzee_game()
    inside = game.parse({"filled": [*range(1, 12), 13], "upper": 50, "rolls": 1, "dice": "46666"})[
        None
    ]
    full, lean = Graph(game), Graph(game, keeps_turns=False)
    at = full.solve(inside), lean.solve(inside)
    assert full.values[at[0]] == lean.values[at[1]] == pytest.approx(50 / 6)


def test_a_turn_is_named_where_most_states_are_inside_turns():
    game = yahtzee_game()
    graph = Graph(game, keeps_turns=False, max_states=300)
    root = with_open(1, 13)
    with pytest.raises(Exception, match="the limit is 300"):
        graph.solve(root)
    assert (graph.largest_turn == root[0]).all()


@pytest.mark.parametrize("names", [("roll",), ("rolls", "boxes")])
def test_fields_of_a_turn_are_fields_with_a_default(names):
    rules = yahtzee.rules(yahtzee.YahtzeeBoard(game="turns", name="turns"))
    with pytest.raises(ValueError, match=r"within_turn: .*; expected names of fields that have a"):
        replace(rules, within_turn=names)
    fields = [*rules.fields[:-1], Field("dice", high=461, default=None)]
    with pytest.raises(ValueError, match="which they have between turns"):
        replace(rules, fields=fields)


def test_a_set_and_a_field_with_a_unit_can_be_of_a_turn():
    rules = yahtzee.rules(yahtzee.YahtzeeBoard(game="turns", name="turns"))
    fields = [
        set_field("kept", 5, default=0), Field("cold", low=-20, high=20, unit=5, default=10),
        Field("paid", length=2, high=9, default=3),
    ]  # fmt: skip
    board = yahtzee.YahtzeeBoard(game="turns", name="turns")
    game = Game(
        board, replace(rules, fields=fields, within_turn=("kept", "cold", "paid"), start=None)
    )
    assert game.turn.tolist() == [[0, 1, 2, 3], [0, 6, 3, 3]]
    between = {"cold": 10, "paid": (3, 3)}
    states = np.array([game.parse(between), game.parse(between | {"kept": "2"})])
    assert game.within_turn(states).tolist() == [False, True]
