"""What payoffs are called, everywhere they are printed: by what they are, not by habit."""

import io
from dataclasses import replace
from typing import Literal

import pytest

from luckbase.solver.board.registry import register
from tests.games import climb
from tests.places import BOARDS
from tests.solving import load_board, load_game


class PrizeBoard(climb.Hill):
    game: Literal["prize"]


def prize(board):
    """A user's own game whose payoff is money; it says nothing of what that is called."""
    return replace(climb.rules(board), payoff_range=(0.0, 1000.0))


class PaidBoard(climb.Hill):
    game: Literal["paid"]


def paid(board):
    """Its moves can pay, so a payoff from 0 to 1 is no chance."""
    return replace(climb.rules(board), pays=True)


register("prize", PrizeBoard, prize)
register("paid", PaidBoard, paid)


@pytest.mark.parametrize(
    ("name", "settings", "called"),
    [
        ("press-your-luck/tiny", {}, "chance to win"),
        ("skunk/tiny", {}, "chance to win"),
        ("pig/rounds", {}, "chance to win"),
        ("pig/rounds", {"objective": "difference"}, "win minus loss"),
        ("goofspiel/points", {}, "expected points ahead"),
        ("goofspiel/win", {}, "chance to finish ahead"),
        ("jackpot/seed", {}, "chance to shut all"),
        ("jackpot/shut-the-box-sum", {}, "minus the tiles left"),
    ],
)
def test_each_game_calls_its_payoff_what_it_is(name, settings, called):
    game = load_game(load_board(BOARDS / f"{name}.toml", **settings))
    assert game.payoff_name == called
    assert called.startswith("chance") == (game.payoff_range == (0.0, 1.0) and not game.pays)


@pytest.mark.parametrize("kind", ["paid", "climb", "prize"])
def test_a_users_own_game_is_headed_by_its_range(kind, tmp_path, command, monkeypatch):
    board = tmp_path / f"{kind}.toml"
    board.write_text(f'game = "{kind}"\nrules = {{summit = 4, rounds = 1, sides = 4}}\n')
    called = "chance to win" if kind == "climb" else "payoff"
    assert load_game(load_board(board)).payoff_name == called
    if kind != "prize":
        return
    monkeypatch.setattr("sys.stdin", io.StringIO("?\nroll\n"))
    text = ""
    for words in (
        ["solve"], ["query", "steps=0,0", "turns=2"], ["evaluate", "--agents", "roll,optimal"],
        ["evaluate", "--agents", "roll,optimal", "--matrix"],
        ["evaluate", "--agents", "roll", "--games", "100"], ["play", "--seed", "1"],
    ):  # fmt: skip
        code, out, err = command(words[0], board, *words[1:], "--results", tmp_path / "results")
        assert code == 0
        text += out + err
    assert text.count("payoff") >= 5 and "chance to win" not in text
