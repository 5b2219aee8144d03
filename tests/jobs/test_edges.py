"""Numbers that a person reads: what a best response gains, how the dice fall, how long, how large
and how many. What a command does with names that are none, tables of games it does not know, and
questions that a table answers in other words."""

import json
import os
import shutil
import stat
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import luckbase
from luckbase.cluster import machine
from luckbase.cluster.answers.answer import Answer
from luckbase.cluster.batch.requests import requests_for
from luckbase.cluster.machine import check_disk
from luckbase.cluster.play.agents import gain_of
from luckbase.cluster.play.game import seeded as _draw
from luckbase.cluster.store.provenance import Origin
from luckbase.jobs import terminal
from luckbase.jobs.solve import say_solved
from luckbase.solver import sentences
from luckbase.solver.board import registry
from luckbase.solver.board.registry import register
from luckbase.solver.errors import DiskLimitError
from luckbase.solver.sentences import (
    Payoffs,
    count,
    counted,
    duration,
    figures,
    many,
    nearest,
    option,
    setting,
    size,
)
from tests import solving
from tests.games import climb
from tests.places import BOARDS, ROOT
from tests.shared import python
from tests.solver.search.written_out import board_of, chance, over
from tests.solving import load_board, load_game

JACKPOT, PIG = str(BOARDS / "jackpot/seed.toml"), str(BOARDS / "pig/tiny.toml")


# What a best response gains


@pytest.mark.parametrize(("board", "agents", "gain"), [
    ("coin", "random", [5 / 32, 3 / 32]),
    (JACKPOT, "hilo", [14103327415 / 176319369216 - 660001525 / 8264970432]),  # README
    (JACKPOT, "optimal", [0.0]), (PIG, "optimal", [0.0, 0.0]),
])  # fmt: skip
def test_a_gain_is_what_the_best_response_gets_more(board, agents, gain, tmp_path):
    """Climb to step 2 by a coin, once each, both at random. Player 2 at 0 to 0 gets 1/2 by resting,
    3/4 by rolling. So player 1 gets 3/8 by resting, 1/2 + 3/16 by rolling: 17/32, and might have
    22/32; player 2 gets 15/32, and with rolling always 18/32."""
    file = tmp_path / "coin.toml" if board == "coin" else board
    if board == "coin":
        file.write_text('game = "climb"\nrules = { summit = 2, rounds = 1, sides = 2 }\n')
    assert luckbase.evaluate(file, agents, gain=True).gain == pytest.approx(gain, abs=1e-12)


def test_a_loss_by_a_best_response_is_said_beyond_what_the_numbers_can_be_off():
    assert gain_of(0.25, 0.5, 1e-12) == -0.25
    assert gain_of(0.5 - 2e-12, 0.5, 1e-12) < 0
    assert gain_of(0.5 - 1e-13, 0.5, 1e-12) == 0.0
    assert gain_of(0.5 + 1e-13, 0.5, 1e-12) > 0


# How the dice of a play fall


@pytest.mark.parametrize(
    ("number", "taken"),
    [(0.0, 1), (0.249, 1), (0.25, 3), (0.749, 3), (0.75, 4), (1 - 2**-53, 4), (1.0, 4)],
)
def test_a_number_falls_into_the_edge_that_holds_it(number, taken, monkeypatch):
    """Edges without a chance hold none: the first, one in the middle, the last."""
    monkeypatch.setattr(
        np.random, "default_rng", lambda seed: SimpleNamespace(random=lambda: number)
    )
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
    say_solved(solved, [])
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


TINY = PIG
SHUT, ABOVE = BOARDS / "jackpot/shut-the-box.toml", BOARDS / "press-your-luck/tiny.toml"


@pytest.fixture(scope="module")
def pig(table_of):
    return table_of(Path(TINY))


def test_a_pipe_in_a_folder_is_no_board_of_it(command, tmp_path):
    os.mkfifo(tmp_path / "x.toml")
    shutil.copy(TINY, tmp_path)
    assert [Path(each.file).name for each in requests_for([tmp_path])] == ["tiny.toml"]
    code, _, err = command("solve", str(tmp_path / "y.toml"))
    assert code == 2 and "no such file" in err  # whatever else is there


PIPE, DEVICE, SOCKET = (
    os.mkfifo,
    lambda path: path.symlink_to("/dev/zero"),
    lambda path: os.mknod(path, stat.S_IFSOCK | 0o600),
)


@pytest.mark.parametrize(
    ("make", "ending", "words"),
    [
        (PIPE, ".toml", ["info"]), (DEVICE, ".toml", ["solve", "--dry-run"]),
        (SOCKET, ".toml", ["query"]), (PIPE, ".py", ["info", TINY, "--game"]),
        (DEVICE, ".csv", ["query", "TABLE", "--batch"]),
        (PIPE, ".jsonl", ["query", "TABLE", "--batch"]),
        (SOCKET, ".parquet", ["query", "TABLE", "--batch"]),
    ],
)  # fmt: skip
def test_what_is_no_file_is_refused_in_a_sentence(command, tmp_path, pig, make, ending, words):
    make(tmp_path / f"x{ending}")
    words = [str(pig) if word == "TABLE" else word for word in words]
    code, out, err = command(*words, str(tmp_path / f"x{ending}"))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert f"x{ending}" in err and "it is a pipe or a device; expected a file" in err


def test_help_works_without_docstrings():
    code = "from luckbase.jobs.app import run; run(['--help']); run(['solve', '--help'])"
    shown = python("-OO", "-c", code)
    assert (shown.stderr, shown.stdout.count("Usage: luckbase")) == ("", 2)


def test_status_of_a_table_of_an_unknown_game_says_that_its_file_is_missing(
    command, tmp_path, own_games
):
    board, results = tmp_path / "hill.toml", tmp_path / "results"
    board.write_text('game = "climb"\n[rules]\nsummit = 10\nrounds = 3\n')
    where = ["--results", results]
    assert command("solve", board, "--game", ROOT / "tests/games/climb.py", *where)[0] == 0
    assert command("solve", TINY, *where)[0] == 0
    registry.entries.clear()
    code, out, _ = command("status", *where)
    assert code == 1 and out.startswith("refused") and "\ncomplete " in out
    assert "its game 'climb' is unknown; name the file that registers it: --game" in out
    _, out, _ = command("status", *where, "--json")
    assert json.loads(out.splitlines()[0])["states"] == 259


@pytest.mark.parametrize("inner", ["", "pig", "pig/tiny"])
def test_status_of_a_folder_of_tables_is_that_of_its_tables(command, pig, inner):
    code, out, _ = command("status", str(pig.parents[2] / inner))
    assert code == 0
    assert out.startswith(f"complete  {pig}")


def test_a_small_disk_is_said_in_units_that_show_it(tmp_path, monkeypatch):
    usage = type(shutil.disk_usage("."))
    monkeypatch.setattr(machine.shutil, "disk_usage", lambda path: usage(4_000_000, 0, 3_600_000))
    room = r"about 5\.6 MB under .* and 3\.6 MB is free, of which 200 kB stays free; less takes"
    with pytest.raises(DiskLimitError, match=room):
        check_disk("solve", 5_600_000, tmp_path, "less")


def test_a_folder_whose_name_is_not_utf_8_or_that_was_deleted_is_named(
    command, tmp_path, monkeypatch
):
    code, out, err = command("solve", TINY, "--results", tmp_path / os.fsdecode(b"r\xff"))
    assert (code, out) == (2, "") and err.count("\n") == 1
    assert "r\\xff/pig/tiny" in err and "expected a folder whose name is UTF-8" in err
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    said = "luckbase: the current folder no longer exists; change to another folder\n"
    assert command("status") == (2, "", said)


@pytest.mark.parametrize("closed", ["pig", "pig/tiny", "pig/tiny/*"])
def test_a_table_that_may_not_be_read_is_named_by_status_and_clean(command, pig, closed):
    """Root may read everything, so that the test becomes somebody else."""
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results"
        shutil.copytree(pig, results / "pig/tiny" / pig.name)
        Path(folder).chmod(0o755)
        assert command("status", "--results", str(results))[0] == 0
        assert command("clean", "--results", str(results))[0] == 0
        (path,) = results.glob(closed)
        path.chmod(0)
        user = os.geteuid()
        try:
            os.seteuid(user or 65534)
            for name in ("status", "clean"):
                code, out, _ = command(name, "--results", str(results))
                assert code == 1 and f"{path}" in out and "permission denied" in out
        finally:
            os.seteuid(user)
            path.chmod(0o755)


def test_an_option_and_a_setting_are_said_as_they_are_written():
    assert (option("max_states"), setting("goal", 3)) == ("max_states", "goal=3")
    with sentences.command_line():
        assert (option("max_states"), setting("goal", 3)) == ("--max-states", "--set goal=3")
        assert option("start") == "--from"


def test_what_was_meant_is_near_and_never_the_word_itself():
    for word, clause in (
        ("goal", "expected one of: turns"), ("yours", "expected one of: goal, turns"),
        ("gaol", "did you mean 'goal'?"),
        ("Goal", "did you mean 'goal'? Capitals and small letters differ"),
    ):  # fmt: skip
        assert nearest(word, ["goal", "turns"]) == clause


def test_an_answer_says_that_what_was_asked_is_said_otherwise(command):
    with luckbase.open(SHUT, in_memory=True) as table:
        other = table[{"open": (7, 8, 9), "dice": (3, 6)}]
        same = table[{"open": (9, 8, 7), "dice": (5, 4)}]
    assert other.note == "dice=3,6 is the same as dice=4,5: both are one state"
    assert other.note in str(other)
    assert same.note == "" and other.as_json() == same.as_json()


def test_a_table_by_its_board_file_plays_from_another_folder_of_results(command, pig):
    words, values = ["evaluate", TINY, "--results", pig.parents[2], "--agents"], []
    for agent in (TINY, pig, "optimal"):
        values.append(json.loads(command(*words, f"{agent},hold-at-5", "--json")[1])["value"][0])
    assert values[0] == values[1] == pytest.approx(values[2], abs=1e-9)
    assert command(*words, TINY, "--games", "10")[0] == command("graph", *words[1:], TINY)[0] == 0


def test_a_long_search_above_a_table_says_how_far_it_is(command, table_of, monkeypatch):
    table = table_of(ABOVE, frontier=1)
    monkeypatch.setattr(terminal, "A_MOMENT", 0.0)  # no option; a search of seconds would do
    code, _, err = command("query", str(table), "scores=0,500,0", "earned=1,1,1")
    assert code == 0
    assert "above the table, searching down to it: " in err and "of at most 3 million" in err


def test_one_of_anything_is_not_many_and_no_zero_is_negative():
    assert (many(1, "file"), many(2, "file")) == ("1 file", "2 files")
    assert (counted(1, "state"), counted(2e6, "state")) == ("1 state", "2 million states")
    for payoffs, texts in (
        (Payoffs("chance to win", True), ["0.0%", "50.0%"]), (Payoffs("coins"), ["0", "0.5"]),
        (Payoffs("dollars"), ["under $0.001", "$0.5"]),
        (Payoffs(digits=7), ["0.0000000", "0.5000000"]),
    ):  # fmt: skip
        answer = Answer(Origin("", payoffs=payoffs), {}, 1, (-1e-12, 0.5), ())
        assert answer.table()[1] == [["this state", *texts]]
    hundreds = [99.94, 99.97, -254.5896, 1003.2]
    assert list(map(Payoffs("points").text, hundreds)) == ["99.9", "100", "-254.6", "1,003"]


@pytest.mark.parametrize(
    ("words", "package", "needs", "extra"),
    [(["chart", "--what", "hold", "--out", "x.png"], "vl_convert", "chart --out", "report"),
     (["publish", "x.html"], "vl_convert", "a page", "report"),
     (["graph", "--out", "x.dot"], "graphviz", "graph", "report"),
     (["serve"], "uvicorn", "serve", "web")],
)  # fmt: skip
def test_a_command_whose_extra_is_not_installed_says_what_to_run(
    words, package, needs, extra, pig, tmp_path, monkeypatch, command
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, package, None)
    code, _, err = command(words[0], TINY if words[0] == "graph" else pig, *words[1:])
    assert code == 2 and f"{needs} needs {package}; run: pip install '.[{extra}]'\n" in err
    assert not list(tmp_path.iterdir())


def test_a_list_needs_no_extra(pig, monkeypatch, command):
    for package in ("vl_convert", "graphviz", "starlette"):
        monkeypatch.setitem(sys.modules, package, None)
    assert "(0,0)" in command("chart", pig)[1]
    assert command("chart", pig, "--what", "hold")[0] == command("status", pig)[0] == 0
