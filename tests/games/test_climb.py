"""A game added from outside: solved, asked, verified, evaluated, simulated, compared, drawn and
played by the public contract only; the answers against a solver of a few lines."""

import io
import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from luckbase.jobs.app import run

HERE = Path(__file__).parent
CLIMB = HERE / "climb.py"
BOARD = 'game = "climb"\n[rules]\nsummit = 10\nrounds = 3\n'


pytestmark = pytest.mark.usefixtures("own_games")


@pytest.fixture
def board(tmp_path):
    path = tmp_path / "hill.toml"
    path.write_text(BOARD)
    return str(path)


@cache
def win(first, second, turns, always_rolls=False):
    """The first player's chance, written once more without the library."""
    if turns == 0 or max(first, second) == 10:
        return 0.5 * (1 + (first > second) - (first < second))
    mine = [(0, second) if k == 1 else (min(first + k, 10), second) for k in range(1, 7)]
    theirs = [(first, 0) if k == 1 else (first, min(second + k, 10)) for k in range(1, 7)]
    nexts = mine if turns % 2 == 0 else theirs
    roll = sum(win(*n, turns - 1, always_rolls) for n in nexts) / 6
    if always_rolls:
        return roll
    rest = win(first, second, turns - 1)
    return max(roll, rest) if turns % 2 == 0 else min(roll, rest)


def test_it_takes_sixty_lines_of_plain_python():
    text = CLIMB.read_text()
    assert text.count("\n") <= 60
    assert "numba" not in text and "numpy" not in text


def test_a_made_up_game_goes_through_every_command(board, tmp_path, capsys, monkeypatch):
    results = ["--results", str(tmp_path / "results")]

    monkeypatch.setattr("sys.stdin", io.StringIO())

    def said(*words):
        assert run([*words, "--game", str(CLIMB)]) == 0
        return capsys.readouterr().out

    table = said("solve", board, *results).strip()
    answer = json.loads(said("query", table, "steps=0,4", "turns=5", "--json"))
    assert answer["to_act"] == 2
    assert answer["value"] == pytest.approx([win(0, 4, 5), 1 - win(0, 4, 5)], abs=1e-14)
    assert {action["action"] for action in answer["actions"]} == {"rest", "roll"}
    assert "rows agree with the rules" in said("verify", table, "--all")
    assert "complete" in said("status", table)
    value = json.loads(said("evaluate", board, "--agents", "roll", "--json"))["value"]
    assert value == pytest.approx([win(0, 0, 6, True), 1 - win(0, 0, 6, True)], abs=1e-14)
    played = json.loads(said("evaluate", board, "--agents", "roll", "--games", "50000", "--json"))
    off = np.abs(np.array(played["value"]) - value)
    assert (off < 4 * np.array(played["stderr"])).all()
    assert said("graph", board, "--labels", "actions").startswith("// hill, optimal\ndigraph")
    remaining = said("play", board, *results, "--as", "2", "--against", "roll", "--seed", "1")
    assert "player 1 (roll) is up: steps=0,0 turns=6" in remaining and "you left" in remaining
    longer = tmp_path / "hill2.toml"
    longer.write_text(BOARD.replace("rounds = 3", "rounds = 4"))
    other = said("solve", str(longer), *results).strip()
    assert run(["diff", table, other]) == 0  # the same turns left are the same states
    assert "0 of the first are not in the second" in capsys.readouterr().out
