"""What somebody writes wrong in their first game is refused in a sentence."""

from fractions import Fraction

import pytest

from luckbase.game import (
    Agents,
    Board,
    Field,
    Names,
    Numbers,
    Rules,
    Section,
    option,
    over,
    pay,
)  # fmt: skip
from luckbase.solver.board.registry import register
from luckbase.solver.errors import OptionError
from luckbase.solver.game.rules import room_for
from tests.games.climb import climb

RIGHT = {
    "fields": [Field("turns", high=3)], "players": 2, "transition": climb, "numbers": (10, 6),
    "max_edges": 7, "actions": ("rest", "roll"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("end", "says"),
    [
        (lambda edges: over(edges, 1.0), "a payoff for each player"),
        (lambda edges: over(edges, 1.0, 2.0, 3.0), "a payoff for each player"),
        (lambda edges: pay(edges, 1.0), "write it after `lead`"),
    ],
)
def test_payoffs_are_of_each_player_and_of_an_edge(end, says):
    with pytest.raises(ValueError, match=says):
        end(room_for(3, 1, 2))


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"numbers": (10, 0.5)}, "for fractions write Numbers"),
        ({"numbers": 10}, "a tuple of whole numbers"),
        ({"numbers": Numbers([0.5], [])}, "a tuple of whole numbers"),
        ({"numbers": Numbers([1], ["0.5"])}, "a tuple of whole numbers"),
        ({"actions": "rest"}, "expected names"),
        ({"actions": (1, 2)}, "expected names"),
        ({"actions": ("rest", " ")}, "expected names"),
        ({"fields": []}, "fields: expected one or more"),
        ({"fields": [Field("turns"), Field("turns")]}, "two columns are called 'turns'"),
        ({"fields": {"turns": 3}}, "fields: expected one or more"),
        ({"capabilities": {"Agents": None}}, "by their classes"),
        ({"capabilities": [Agents]}, "by their classes"),
        ({"max_edges": 6.5}, "whole numbers"),
        ({"max_edges": 0}, "max_edges: 0; expected at least 1"),
        ({"players": 0}, "players: 0; expected at least 1"),
        ({"players": 1, "simultaneous": True}, "simultaneous: expected two players"),
        ({"fields": [Field("purse", length=3), Field("turns")]}, "expected at most 64"),
        ({"payoff_range": (1.0, 0.0)}, "expected the least, then the greatest payoff"),
        ({"payoff_range": (0.0, float("inf"))}, "expected the least, then the greatest payoff"),
        ({"transition": lambda board, state, edges: 0}, "@transition"),
        ({"tie_tolerance": float("nan")}, "0 or more"),
        ({"payoff_range": 5}, "payoff_range: 5; expected the least, then the greatest payoff"),
        ({"payoff_range": (1, 2, 3)}, r"payoff_range: \(1, 2, 3\); expected the least"),
        ({"payoff_range": ("a", 2)}, r"payoff_range: \('a', 2\); expected the least"),
        ({"payoff_name": 5}, "payoff_name: expected text"),
        ({"tie_tolerance": "a"}, "tie_tolerance: 'a'; expected a number"),
        ({"actions": 5}, "actions: expected names"),
        ({"canonical": 5}, r"canonical: expected a function \(states, refuse\)"),
        ({"canonical": lambda states: states}, r"canonical: expected a function \(states, refuse"),
        ({"cut_error": 0.5}, "cut_error: a function of them is called without arguments"),
        ({"start": lambda board: {}}, "start, cut_error: a function of them is called without"),
    ],
)
def test_rules_of_no_game_are_refused(wrong, says):
    with pytest.raises((TypeError, ValueError), match=says):
        Rules(**{**RIGHT, **wrong})


class TooFew(Section):
    sides: int = option(5, 10, 20)


def test_an_option_has_a_default_that_a_board_file_can_say():
    for wrong in ((1, 2), Fraction(1, 2)):
        with pytest.raises(TypeError, match="expected a number, text, true or false"):
            option(wrong)
    with pytest.raises(ValueError, match="greater than or equal to 10"):
        TooFew()


@pytest.mark.parametrize("name", ["my die", "a=b", "", "--x", "best", "payoff_1", "key", 3])
def test_a_field_has_a_name_that_can_be_typed_and_is_no_column_of_tables(name):
    with pytest.raises(ValueError, match="expected a name of letters"):
        Field(name)


@pytest.mark.parametrize("wrong", [{"high": 6.5}, {"unit": 0}, {"low": 7, "high": 3}, {"length": 0},
                                   {"names": ["a"]}, {"names": Names(["a"])}, {"high": 10**9},
                                   {"low": -(10**9), "high": 0}, {"is_set": True, "length": 2},
                                   {"low": 1, "blank": 2}, {"blank": -1}, {"help": 5},
                                   {"sample": 5}])  # fmt: skip
def test_a_field_has_bounds(wrong):
    with pytest.raises(ValueError, match=r"field die: .*expected"):
        Field("die", **wrong)


def test_names_are_words_that_differ():
    assert Names(["light rain", "sun"]).names == ("light_rain", "sun")
    assert Names(["A\u030alesund"]).value("\xc5lesund") == 0  # one character, or two
    for wrong in (["a", "a"], ["a b", "a_b"], ["a", ""]):
        with pytest.raises(ValueError, match="expected words, no two the same"):
            Names(wrong)


@pytest.mark.parametrize("name", ["", "..", "a/b", "my game"])
def test_a_game_has_the_name_of_a_folder(name, tmp_path):
    with pytest.raises(OptionError, match="expected a name of letters"):
        register(name, Board, lambda board: None)


@pytest.mark.parametrize(
    "wrong", [{"title": 5}, {"about": 5}, {"rules": 5}, {"board": dict}, {"board": Section}]
)
def test_a_game_is_registered_with_its_board_its_rules_and_texts(wrong):
    with pytest.raises(TypeError, match=r"register: expected .name, a class of Board"):
        register(**{"name": "hill", "board": Board, "rules": lambda board: None, **wrong})
