"""The states inside a turn are forgotten, and those between turns keep their payoffs to the bit."""

from dataclasses import replace
from itertools import count

import numpy as np
import pytest

from luckbase.game import (
    Board,
    Field,
    Game,
    GameError,
    Rules,
    chance,
    decision,
    lead,
    over,
    pay,
    set_field,
    transition,
)
from luckbase.solver.errors import SearchLimitError, StateError
from luckbase.solver.search import game_graph, turns
from luckbase.solver.search.game_graph import Graph
from tests.games import dice_races, yahtzee

ALL = (1 << 13) - 1
TURN = ("rolls", "dice")


def game_of(kind, rules, within_turn, options, alike=False):
    board = kind(game="turns", name="turns", rules=options)
    return Game(board, replace(rules(board), within_turn=within_turn, turns_alike=alike))


def yahtzee_game(alike=True):
    return game_of(yahtzee.YahtzeeBoard, yahtzee.rules, TURN, yahtzee.Options(), alike)


def pig(**options):
    kind = dice_races.Piglets
    return game_of(kind, dice_races.piglets_rules, ("turn",), kind.Options(**options))


def two_dice_pig(goal):
    kind = dice_races.TwoDice
    return game_of(kind, dice_races.twodice_rules, ("turn",), kind.Options(goal=goal))


@transition
def rounds(board, state, edges):
    """Roll a die of three faces and take its face; three rounds. The fault is a number."""
    fault, (remaining, die) = board.ints[0], state
    if remaining == 0 or (fault == 4 and die == 3):
        return over(edges, 0.0)
    if die == 0:
        faces = 4 if fault == 1 and remaining == 1 else 3
        for face in range(1, faces + 1):
            lead(edges, state, 0, 1 / faces)[1] = face
        return chance(edges)
    if fault == 2 and die == 3:
        lead(edges, state, 1, 1.0)[1] = 2
    child = lead(edges, state, 0, 1.0)
    if fault != 3 and fault != 6:
        child[0] = remaining - 1
    if fault < 5:
        child[1] = 0
    pay(edges, die)
    return decision(edges, 0)


def game_of_rounds(fault, alike=True):
    return Game(Board(game="rounds", name="rounds"), Rules(
        fields=[Field("left", high=3, default=3), Field("die", high=4, default=0)], players=1,
        transition=rounds, numbers=(fault,), max_edges=4, actions=("take", "turn"), start={},
        pays=True, within_turn=("die",), turns_alike=alike,
    ))  # fmt: skip


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        (1, "game rounds: at left=1 die=0: the edges are not as in the turn that begins at left=3"),
        (2, "game rounds: at left=3 die=3: some edges end the turn and others do not"),
        (3, "game rounds: at left=3 die=0: a turn that begins here can lead back to this state"),
        (4, "game rounds: at left=3 die=3: the game ends inside a turn"),
        (5, "game rounds: at left=0 die=1: the game ends inside a turn"),
        (6, "game rounds: at left=3 die=1: a turn can come back to this state"),
    ],
    ids=["other edges", "mixed", "leads back", "ends inside", "not reset", "does not end"],
)
def test_turns_that_are_not_alike_are_refused(fault, sentence):
    game = game_of_rounds(fault)
    with pytest.raises(GameError) as caught:
        Graph(game, keeps_turns=False).solve(game.needed_starts())
    assert str(caught.value).startswith(sentence)


def test_a_turn_that_does_not_end_is_refused():
    game = game_of_rounds(6, alike=False)
    with pytest.raises(StateError, match=r"left=3 die=1 lies on a cycle that play never leaves"):
        Graph(game, keeps_turns=False).solve(game.needed_starts())


def test_a_root_inside_turns_that_are_alike():
    game = game_of_rounds(0)
    graph = Graph(game, keeps_turns=False)
    at = graph.solve(game.parse({"left": 2, "die": 3})[None])
    assert graph.values[at[0]] == pytest.approx(3 + 2)
    assert graph.look_up(graph.keys).size == 3  # it, left=1 and left=0


def with_open(*boxes):
    """The state of Yahtzee in which a turn begins and only these boxes, from 1, are open."""
    filled = [box for box in range(1, 14) if box not in boxes]
    return yahtzee_game().parse({"filled": filled, "upper": 50})[None]


@pytest.mark.parametrize(
    ("game", "root"),
    [
        (yahtzee_game(), with_open(6, 12, 13)),
        (yahtzee_game(alike=False), with_open(6, 12, 13)),
        (pig(goal=15), None),
        (pig(goal=8, players=3), None),
        (two_dice_pig(12), None),
    ],
    ids=["yahtzee", "yahtzee, each turn", "pig for two", "pig for three", "two-dice pig"],
)
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


def test_a_turn_may_have_more_states_than_are_solved_without_a_pause(monkeypatch):
    root, pauses = with_open(6, 12), count()
    graph = Graph(yahtzee_game(), keeps_turns=False)
    at = graph.solve(root)
    monkeypatch.setattr(game_graph, "BUDGET", 1)
    slow = Graph(yahtzee_game(), keeps_turns=False, stop=lambda: next(pauses) > 999)
    again = slow.solve(root)
    assert slow.values[again[0]] == graph.values[at[0]]


def test_room_for_more_states_is_no_room_for_more_edges(monkeypatch):
    rooms, room_for_turn = [], turns.room_for_turn
    monkeypatch.setattr(
        turns,
        "room_for_turn",
        lambda turn, edges: rooms.append(edges) or room_for_turn(turn, edges),
    )
    graph = Graph(yahtzee_game(), keeps_turns=False)
    graph.solve(with_open(*range(4, 14)))
    needed = 252 * 10 + 252  # each roll in each open box, and the most edges of a state
    assert needed <= rooms[-1] < 2 * needed


def test_a_search_for_the_ends_of_a_turn_has_the_limit_of_the_whole_search():
    game = game_of_rounds(0)
    with pytest.raises(SearchLimitError, match="is not finished; the limit is 1 "):
        Graph(game, keeps_turns=False, max_states=1).solve(game.parse({"left": 2, "die": 3})[None])


@pytest.mark.parametrize("alike", [True, False])
def test_a_turn_is_named_where_most_states_are_inside_turns(alike):
    game = yahtzee_game(alike)
    graph = Graph(game, keeps_turns=False, max_states=300)
    root = with_open(1, 13)
    with pytest.raises(Exception, match="the limit is 300"):
        graph.solve(root)
    assert (graph.largest_turn == root[0]).all()


def test_turns_that_are_alike_have_fields_of_their_own():
    with pytest.raises(ValueError, match="turns_alike: expected within_turn"):
        replace(game_of_rounds(0).rules, within_turn=())


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
