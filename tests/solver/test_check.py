"""The conformance suite of games: every one here keeps the contract, and whoever breaks a point of
it is told which, with the state; what somebody writes wrong in their first game is refused."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from luckbase.cluster.solve.plan import make_plan
from luckbase.game import (
    Agents,
    Board,
    Field,
    FullTable,
    Names,
    Numbers,
    Rules,
    Section,
    check_game,
    option,
    over,
    pay,
)  # fmt: skip
from luckbase.solver.board.registry import register
from luckbase.solver.check import _levels
from luckbase.solver.errors import GameError, OptionError
from luckbase.solver.game.fields import set_field
from luckbase.solver.game.game import Game
from luckbase.solver.game.rules import room_for
from luckbase.solver.games.skunk.kernel import Race
from tests import solving
from tests.games.climb import climb
from tests.games.purse import game
from tests.places import BOARDS
from tests.solver.search import written_out

STATE = ({"scores": (500, 1000, 1500), "earned": (0, 2, 1)},)


@pytest.mark.parametrize(
    ("board", "options", "states"),
    [
        ("skunk/tiny", {"some_ones": "points", "all_ones": "points"}, ()),
        ("skunk/tiny", {"count_rolls": True}, ()),
        ("pig/race", {"goal": 12}, ()),
        ("jackpot/seed", {}, ()),
        ("jackpot/shut-the-box", {"one_die": "may"}, ()),
        ("jackpot/shut-the-box-sum", {"sides": 4, "tiles": 8}, ()),
        ("goofspiel/points", {"cards": 3}, ()),
        ("goofspiel/win", {"cards": 3}, ()),
        ("goofspiel/win", {"cards": 3, "keep_cards": True}, ()),
        ("press-your-luck/tiny", {"frontier": 1, "max_whammies": 2}, STATE),
    ],
)
def test_every_game_here_keeps_the_contract(board, options, states):
    """But for pig by rounds, whose own tests check more boards."""
    created = solving.load_board(BOARDS / f"{board}.toml", **options)
    assert check_game(created, states, most=200, rows=30_000) > 20


def test_a_game_without_a_start_wants_states():
    with pytest.raises(GameError, match="has no start; name states"):
        check_game(game(start=None))
    chances = [(0.25, {"purse": 4, "tosses": 4}), (0.75, {"purse": 2, "tosses": 4})]
    states = [words for _, words in chances]
    assert check_game(game(start=chances)) == check_game(game(start=None), states) > 10


# --- whoever breaks it ---------------------------------------------------------------------------


def test_the_game_of_coins_is_right_as_it_is():
    assert check_game(game()) == 13


@pytest.mark.parametrize(("broken", "sentence"), [
    (17, "edges of one action do not stand together"), (19, "player -1 acts; expected 0 to 0"),
    (18, "its edges change from one call to the next; expected"),
])  # fmt: skip
def test_what_only_a_check_sees_is_told_with_its_state(broken, sentence):
    """What every engine sees, `tests/solver/game/test_broken_games.py` has."""
    with pytest.raises(GameError, match=sentence) as text:
        check_game(game(broken))
    assert str(text.value).startswith("game purse: at ")


def _empty_at_the_end(states, refuse):
    states[states[:, 1] == 0, 0] = 0
    return states


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"canonical": _empty_at_the_end},
         "leads to purse=4 tosses=0, which is not canonical; that"),
        ({"actions": ("stop",)}, r"action 1 has no name in Rules.actions=….; expected 0 to 0"),
        ({"fields": [Field("purse", bits=2), Field("tosses", high=5)]},
         "does not fit into the bits"),
    ],
)  # fmt: skip
def test_rules_that_break_the_contract_are_told_which_point(changed, sentence):
    with pytest.raises(GameError, match=sentence):
        check_game(game(**changed))


@pytest.mark.parametrize(("wrong", "sentence"), [
    (5, "; expected one"), ("level", "; expected one"), (lambda: None, "; expected one"),
    (lambda game: None, "; expected one"), ("nowhere.at:all", "No module named 'nowhere'"),
    ("luckbase.game:Nothing", "has no attribute 'Nothing'"), ("a:b:c", "No module named 'a'"),
])  # fmt: skip
def test_a_capability_that_is_none_is_one_sentence(wrong, sentence):
    with pytest.raises(GameError, match=f"game purse: capabilities: FullTable: .*{sentence}"):
        check_game(game(capabilities={FullTable: wrong}))


class Table(FullTable[int]):
    """A tier for each number of tosses left, purses as rows; what is wrong is `wrong`."""

    payoff_type = np.float64
    best_names = ("stop", "toss")
    wrong, off, bound = "", 0.0, 0.0

    def tiers(self):
        return [5, 4, 3, 2, 1] if self.wrong == "order" else [1, 2, 3, 4, 5]

    def children(self, tier):
        return [tier - 1] if tier > 1 else []

    def tier_number(self, tier):
        return tier

    def tier_fields(self, tier):
        return {"tosses": tier}

    def tier_name(self, tier):
        return f"{tier} tosses"

    def rows(self, tier):
        return (64 >> tier) + 1

    def solve_tier(self, tier, out, fetch, stop, part=0, best=None):
        purses = np.arange(self.rows(tier))
        below = np.arange(65) / 64 if tier == 1 else fetch(tier - 1)
        out[:] = np.maximum(purses / 64, (below[0] + below[2 * purses]) / 2)
        out[-1] += self.off
        if best is not None:
            best[:] = self.wrong == "best"  # stopping and tossing are always tied
        return self.bound

    def acting_rows(self, tier, start, stop):
        return np.full(stop - start, self.wrong != "actor", np.int8)

    def state_rows(self, tier, start, stop):
        return {"purse": np.arange(start, stop) + (self.wrong == "column")}

    def locate(self, states):
        over = states[:, 1] == 0
        rows = states[:, 0] + (self.wrong == "row") * (states[:, 0] == 1)
        return np.where(over, -1, states[:, 1]), np.where(over, -1, rows)

    def states_at(self, tier, rows):
        purses = rows + 65 * ((self.wrong == "canonical") & (rows == 1))
        return np.column_stack([purses, np.full(len(rows), tier)])


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ("", ""),
        ("row", "is row 1 of 1 tosses, and `locate` says row 2 of tier 1"),
        ("order", "tier 5 tosses reads 4 tosses, which does not come before it"),
        ("canonical", "at purse=66 tosses=1: is row 1 of 1 tosses, and not canonical"),
        ("best", "at purse=0 tosses=1: the full table has best toss; expected stop"),
        ("actor", "at purse=0 tosses=1: the full table has acting_rows 0; expected 1"),
        ("column", "at purse=0 tosses=1: the full table has purse 1; expected 0"),
    ],
)
def test_a_kernel_is_held_to_the_rules(wrong, sentence):
    kind = type("Wrong", (Table,), {"wrong": wrong})
    created = game(capabilities={FullTable: kind})
    if not wrong:
        assert check_game(created) == 13
        return
    with pytest.raises(GameError, match=sentence):
        check_game(created)


class Narrow(Race):
    """A table of float32, as is the default, whose `payoff_rows` rounds by itself."""

    payoff_type = np.float32

    def payoff_rows(self, *rows):
        return [column.astype(np.float32) for column in super().payoff_rows(*rows)]


def test_a_table_of_float32_is_held_to_what_rounding_allows():
    right = solving.load_game(solving.load_board(BOARDS / "skunk/tiny.toml"))
    created = Game(right.board, replace(right.rules, capabilities={FullTable: Narrow}))
    assert check_game(created, most=100)
    first, second = FullTable.payoff_rows(created.need(FullTable), 0, np.full(3, 1 / 3), 0, 3)
    assert first.dtype == second.dtype == np.float32


@pytest.mark.parametrize(
    ("member", "value", "sentence"),
    [
        ("tier_fields", {},
         r"tier 2 tosses and tier 1 tosses have one tier_fields, \{\}; expected"),
        ("tier_number", 7, "tier 2 tosses and tier 1 tosses have one tier_number, 7; expected one"),
        ("tier_number", 1 << 24, "tier 1 tosses has number 16777216; expected 0 to 16777215"),
        ("parts", [(0, 5)], r"tier 1 tosses has 33 rows, and parts \[\(0, 5\)\]; expected parts"),
        ("parts", [(0, 5), (6, 33)], "from row 0 to the last, each from where the one before"),
        ("parts", [], r"has 33 rows, and parts \[\]; expected"),
    ],
)  # fmt: skip
def test_tiers_that_would_replace_each_other_or_lose_rows_are_refused(member, value, sentence):
    """A table whose tiers had one name was written over and over, and was then complete."""
    kind = type("Wrong", (Table,), {member: lambda self, tier: value})
    created = game(capabilities={FullTable: kind})
    for check in (check_game, lambda created: make_plan(created.need(FullTable))):
        with pytest.raises(GameError, match=sentence):
            check(created)


@pytest.mark.parametrize(
    ("off", "bound", "fine"),
    [(1e-16, 0.0, True), (1e-14, 0.0, False), (1e-10, 1e-9, True), (1e-8, 1e-9, False)],
)
def test_a_kernel_is_held_to_its_own_bound(off, bound, fine):
    """One that says 0 to what the sums of a step may lose in float64."""
    created = game(capabilities={FullTable: type("Off", (Table,), {"off": off, "bound": bound})})
    if fine:
        assert check_game(created) == 13
        return
    text = "purse=32 tosses=1: the kernel says .0.5000000.*, one step of the rules says .0.5."
    with pytest.raises(GameError, match=text):
        check_game(created)


def test_a_part_of_a_wide_level_has_no_state_twice():
    game = solving.load_game(solving.load_board(BOARDS / "jackpot/seed.toml"))
    root = game.needed_start().reshape(1, -1)
    levels = list(_levels(game, root, 10_000, 40, np.random.default_rng(1)))
    assert max(map(len, levels)) == 40
    assert all(len(np.unique(level, axis=0)) == len(level) for level in levels)


def test_the_chance_that_can_not_be_is_the_one_that_is_named():
    edges = written_out.chance((0.7, 1), (0.5, 2), (-0.2, 3))
    board = written_out.board_of(edges, *[written_out.over(0.5, 0.5)] * 3)
    with pytest.raises(GameError, match=r"an edge has chance -0\.2; expected above 0"):
        check_game(board)


def test_a_kernel_whose_bound_is_larger_than_it_says_is_refused():
    created = game(capabilities={FullTable: type("Wide", (Table,), {"bound": 1e-3})})
    with pytest.raises(GameError, match=r"returns the bound 0\.001, and most_error says 1e-06"):
        check_game(created)


# --- what somebody writes wrong in their first game -----------------------------------------------


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


def test_a_set_of_more_than_31_numbers_is_whole_in_a_table():
    rules = Rules(**{**RIGHT, "fields": [set_field("hand", most=62), Field("turns", high=3)]})
    columns = Game(Board(game="climb", name="deck"), rules).table_columns(
        np.array([[1 << 61 | 1 << 31 | 1, 2]])
    )
    assert columns["hand"].labels == ["1 32 62"] and columns["turns"].dtype == np.int32


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
