"""What commands print on a terminal of 80 columns: no line is wider, but for commands to copy."""

import pytest

from luckbase.jobs import terminal
from luckbase.solver.game.capabilities import Charts
from tests.solving import load_board, load_game

WIDTH = 80
STATES = {
    "press-your-luck/tiny": ["scores=0,1000,500", "earned=0,1,0"],
    "pig/tiny": ["mine=0", "yours=3", "turn=2"],
    "skunk/tiny": ["mine=0", "yours=3", "turn=4"],
    "goofspiel/tiny": ["mine=1,2,3,4", "theirs=1,2,3,4", "deck=1,2,3,4", "upcard=2"],
    "jackpot/tiny": ["open=1,2,3,4", "dice=3"],
}
DIFFERENT = {
    "press-your-luck/tiny": "max_whammies=2", "pig/tiny": "sides=4", "skunk/tiny": "sides=4",
    "goofspiel/tiny": "cards=3", "jackpot/tiny": "sides=4",
}  # fmt: skip


@pytest.mark.parametrize("board", STATES)
def test_no_command_prints_a_line_that_is_wider(board, command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(terminal, "width", lambda out: WIDTH)  # no terminal is here
    charts = [kind.name for kind in load_game(load_board(board)).need(Charts).kinds]
    state, change = STATES[board], DIFFERENT[board]
    wide = {}
    for words in (
        ["solve", board, "--dry-run"], ["solve", board], ["query", board, *state],
        ["verify", board], ["info", board], ["status"], ["chart", "--list", board],
        *(["chart", board, "--what", name] for name in charts),
        ["evaluate", board, "--agents", "optimal", "--from", *state],
        ["evaluate", board, "--agents", "random", "--games", "20", "--from", *state],
        ["solve", board, "--set", change, "--results", "other"],
        ["diff", board, str(tmp_path / "other")], ["info"], ["clean", "--results", "other"],
    ):  # fmt: skip
        if words[0] == "diff":
            words[-1] = str(next((tmp_path / "other").glob("*/*/*")).relative_to(tmp_path))
        code, out, err = command(*words)
        assert code in (0, 1), (words, err)
        lines = [line.rstrip() for line in (out + err).splitlines()]
        lines = [line for line in lines if len(line) > WIDTH and "luckbase " not in line]
        if lines:
            wide[" ".join(words)] = lines[:3]
    assert not wide
