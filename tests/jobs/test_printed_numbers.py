"""Numbers that a person reads: what a best response gains, how
the dice fall, how long, how large and how many."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import luckbase
from luckbase.cluster.play.agents import gain_of
from luckbase.cluster.play.game import seeded as _draw
from luckbase.jobs.solve import say_solved
from luckbase.solver.board.registry import register
from luckbase.solver.sentences import count, duration, figures, size
from tests import solving
from tests.games import climb
from tests.places import BOARDS
from tests.solver.search.written_out import board_of, chance, over
from tests.solving import load_board, load_game

JACKPOT, PIG = str(BOARDS / "jackpot/seed.toml"), str(BOARDS / "pig/tiny.toml")


# What a best response gains

COIN = 'game = "climb"\n[rules]\nsummit = 2\nrounds = 1\nsides = 2\n'


@pytest.mark.parametrize(("board", "agents", "gain"), [
    ("coin", "random", [5 / 32, 3 / 32]),
    (JACKPOT, "hilo", [14103327415 / 176319369216 - 660001525 / 8264970432]),  # README
    (JACKPOT, "optimal", [0.0]), (PIG, "optimal", [0.0, 0.0]),
])  # fmt: skip
def test_a_gain_is_what_the_best_response_gets_more(board, agents, gain, tmp_path):
    """Climb to step 2 by a coin, once each, both at random. Player 2 at 0 to 0 gets 1/2 by resting,
    3/4 by rolling. So player 1 gets 3/8 by resting, 1/2 + 3/16 by rolling: 17/32, and might have
    22/32; player 2 gets 15/32, and with rolling always 18/32."""
    (tmp_path / "coin.toml").write_text(COIN)
    file = tmp_path / "coin.toml" if board == "coin" else board
    assert luckbase.evaluate(file, agents, gain=True).gain == pytest.approx(gain, abs=1e-12)


def test_a_loss_by_a_best_response_is_said_beyond_what_the_numbers_can_be_off():
    assert gain_of(0.25, 0.5, 1e-12) == -0.25
    assert gain_of(0.5 - 2e-12, 0.5, 1e-12) < 0
    assert gain_of(0.5 - 1e-13, 0.5, 1e-12) == 0.0
    assert gain_of(0.5 + 1e-13, 0.5, 1e-12) > 0


# How the dice of a play fall


class Dice:
    """A generator that gives this number."""

    def __init__(self, number):
        self.number = number

    def random(self):
        return self.number


@pytest.mark.parametrize(
    ("number", "taken"),
    [(0.0, 1), (0.249, 1), (0.25, 3), (0.749, 3), (0.75, 4), (1 - 2**-53, 4), (1.0, 4)],
)
def test_a_number_falls_into_the_edge_that_holds_it(number, taken, monkeypatch):
    """Edges without a chance hold none: the first, one in the middle, the last."""
    monkeypatch.setattr(np.random, "default_rng", lambda seed: Dice(number))
    assert _draw(0)(np.array([0.0, 0.25, 0.0, 0.5, 0.25, 0.0])) == taken


# How long, how large, how many


SAID = {
    duration: {
        0.0: "0.0 s", 2.44: "2.4 s", 59.94: "59.9 s", 59.96: "1 min 00 s", 60.0: "1 min 00 s",
        119.4: "1 min 59 s", 119.6: "2 min 00 s", 3599.4: "59 min 59 s", 3599.6: "1 h 00 min",
        3629.0: "1 h 00 min", 3631.0: "1 h 01 min", 7199.0: "2 h 00 min", 90_000.0: "25 h 00 min",
    },
    size: {
        0: "0 bytes", 999: "999 bytes", 1000: "1 kB", 1234: "1.23 kB", 999_400: "999 kB",
        999_600: "1 MB", 999_600_000: "1 GB", 1.5e9: "1.5 GB", 999.4e9: "999 GB",
        1.5e12: "1,500 GB",
    },
    count: {
        0: "0", 512: "512", 999_999: "999,999", 1_000_000: "1 million", 42_900_000: "42.9 million",
        999_400_000: "999 million", 999_600_000: "1 billion", 1.3e9: "1.3 billion",
        4.2e12: "4,200 billion",
    },
    figures: {
        9999.4: "9,999", 12_000: "12,000", 1_003_000: "1,003,000", -0.0: "0", 0.25: "0.25",
    },
}  # fmt: skip


@pytest.mark.parametrize("say", SAID, ids=lambda say: say.__name__)
def test_a_number_is_said_in_the_unit_that_it_rounds_to_and_never_cut_before_the_point(say):
    for number, text in SAID[say].items():
        assert (say(number, 4) if say is figures else say(number)) == text


@given(st.floats(0, 1e7))
def test_a_duration_is_right_to_half_of_its_last_unit(seconds):
    units = {"s": 1.0, "min": 60.0, "h": 3600.0}
    numbers = duration(seconds).split()[::2], duration(seconds).split()[1::2]
    parts = [(float(number), unit) for number, unit in zip(*numbers, strict=True)]
    last = 0.1 if len(parts) == 1 else units[parts[-1][1]]
    assert abs(sum(n * units[unit] for n, unit in parts) - seconds) <= 0.5001 * last
    assert all(number < 60 for number, unit in parts if unit != "h")


@given(st.integers(0, 10**14))
def test_sizes_and_counts_are_right_to_three_digits_and_without_an_exponent(number):
    for text, units in (
        (size(number), {"byte": 1, "bytes": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9}),
        (count(number), {"": 1, "million": 1e6, "billion": 1e9}),
    ):
        assert "e" not in text.replace("byte", "")
        digits, _, unit = text.partition(" ")
        assert float(digits.replace(",", "")) * units[unit] == pytest.approx(number, rel=0.005)


def test_a_search_of_one_state_says_how_many_edges_it_has(capsys, tmp_path):
    board = board_of(chance((0.5, 1), (0.5, 2)), over(0.25, 0.75), over(0.75, 0.25))
    roots = load_game(board).parse({"at": "0"}).reshape(1, -1)
    solved = solving.solve_below(board, roots, results=tmp_path, workers=1)
    say_solved(solved, Path("written.toml"), [])
    assert "2.0 edges a state" in capsys.readouterr().err


# What payoffs are called: by what they are, not by habit


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


@pytest.mark.parametrize(
    ("change", "called"),
    [
        ({}, "chance to win"),
        ({"payoff_range": (0.0, 1000.0)}, "payoff"),
        ({"pays": True}, "payoff"),
    ],
)
def test_a_users_own_game_is_headed_by_its_range(change, called, tmp_path, command, own_games):
    """A payoff from 0 to 1 is no chance where moves can pay. The game says nothing of the name."""
    register("climb", climb.Hill, lambda board: replace(climb.rules(board), **change))
    (tmp_path / "own.toml").write_text('game = "climb"\nrules = {summit = 4, rounds = 1}\n')
    for words in (["query", "steps=0,0"], ["evaluate", "--agents", "roll"]):
        code, out, err = command(words[0], tmp_path / "own.toml", *words[1:], "--results", tmp_path)
        assert code == 0 and called in out + err
        assert called == "chance to win" or "chance to win" not in out + err
