"""The conformance suite of games: every one here keeps the contract, and whoever breaks a point of
it is told which, with the state."""

import numpy as np
import pytest

from luckbase.cluster.solve.plan import make_plan
from luckbase.game import Field, FullTable, check_game
from luckbase.solver.errors import GameError
from tests import solving
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
        ("press-your-luck/tiny", {"frontier": 1}, STATE),
    ],
)
def test_every_game_here_keeps_the_contract(board, options, states):
    """But for pig by rounds, whose own tests check more boards."""
    created = solving.load_board(BOARDS / f"{board}.toml", **options)
    assert check_game(created, states, most=400, rows=30_000) > 20


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

    def solve_tier(self, tier, out, fetch, *more):
        purses = np.arange(self.rows(tier))
        below = np.arange(65) / 64 if tier == 1 else fetch(tier - 1)
        out[:] = np.maximum(purses / 64, (below[0] + below[2 * purses]) / 2)
        out[-1] += self.off
        return self.bound

    def payoff_rows(self, tier, payoffs, start, stop):
        return [payoffs[start:stop]]

    def acting_rows(self, tier, start, stop):
        return np.ones(stop - start, np.int8)

    def locate(self, states):
        over = states[:, 1] == 0
        rows = states[:, 0] + (self.wrong == "row") * (states[:, 0] == 1)
        return np.where(over, -1, states[:, 1]), np.where(over, -1, rows)

    def states_at(self, tier, rows):
        return np.column_stack([rows, np.full(len(rows), tier)])


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ("", ""),
        ("row", "is row 1 of 1 tosses, and `locate` says row 2 of tier 1"),
        ("order", "tier 5 tosses reads 4 tosses, which does not come before it"),
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


def test_the_chance_that_can_not_be_is_the_one_that_is_named():
    edges = written_out.chance((0.7, 1), (0.5, 2), (-0.2, 3))
    board = written_out.board_of(edges, *[written_out.over(0.5, 0.5)] * 3)
    with pytest.raises(GameError, match=r"an edge has chance -0\.2; expected above 0"):
        check_game(board)


def test_a_kernel_whose_bound_is_larger_than_it_says_is_refused():
    created = game(capabilities={FullTable: type("Wide", (Table,), {"bound": 1e-3})})
    with pytest.raises(GameError, match=r"returns the bound 0\.001, and most_error says 1e-06"):
        check_game(created)
