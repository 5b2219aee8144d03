"""What a finished solve proposes to ask: each title says what its state is."""

import pytest

from luckbase.solver.game.capabilities import FullTable
from tests import solving
from tests.places import ROOT

RACES = {
    "the start": lambda mine, yours, turn: mine == yours == turn == 0,
    "level, at the usual hold": lambda mine, yours, turn: mine == yours == 0 < turn,
    "far ahead": lambda mine, yours, turn: yours == turn == 0 and mine > 60,
    "the other is nearly there": lambda mine, yours, turn: (
        mine == 0 and 20 < turn < 40 < 80 < yours
    ),
    "a great turn, the other nearly there": lambda mine, yours, turn: (
        mine == 0 and 40 < turn < 80 < yours
    ),
}


def test_skunk():
    layout = solving.load_game(solving.load_board(ROOT / "boards/skunk/seed.toml")).need(FullTable)
    query = dict(layout.opening_questions())
    assert set(query) == set(RACES)
    for title, state in query.items():
        assert RACES[title](*(state[name] for name in ("mine", "yours", "turn"))), title


SHOWS = {
    "ahead, one spin left": lambda has, spins: has[1] == max(has) and spins == [0, 1, 0],
    "far ahead, one spin left": lambda has, spins: (
        has[1] > 2 * max(has[0], has[2]) and spins == [0, 1, 0]
    ),
    "the same with two spins": lambda has, spins: spins == [0, 2, 0],
    "the first to go, well behind": lambda has, spins: has[0] < min(has[1:]) and spins == [2, 0, 0],
    "both have a spin, second ahead": lambda has, spins: (
        has[1] > has[2] > has[0] and spins == [1, 1, 0]
    ),
    "three spins, far ahead": lambda has, spins: (
        has[1] > 2 * max(has[0], has[2]) and spins == [0, 3, 0]
    ),
}


@pytest.mark.parametrize("frontier", [1, 3])
def test_press_your_luck(frontier):
    """Only those that the table reaches; "the same" has the scores of the one before."""
    board = ROOT / "boards/press-your-luck/1985-02.toml"
    game = solving.load_game(solving.load_board(board, score_unit=250, frontier=frontier))
    query = dict(game.need(FullTable).opening_questions())
    assert len(query) == {1: 2, 3: len(SHOWS)}[frontier]
    for title, state in query.items():
        has = state["scores"]
        spins = list(state["earned"])
        assert SHOWS[title](has, spins), title
    scores = [query[title]["scores"] for title in query if title.startswith(("far", "the same"))]
    assert all(each == scores[0] for each in scores)


def test_where_scores_are_few_no_state_is_proposed_twice():
    board = ROOT / "boards/press-your-luck/1985-02.toml"
    few = {"score_unit": 1000, "score_cap": 4000, "frontier": 1}
    game = solving.load_game(solving.load_board(board, **few))
    (query,) = game.need(FullTable).opening_questions()
    assert query == ("ahead, one spin left", {"scores": [0, 2000, 1000], "earned": (0, 1, 0)})
