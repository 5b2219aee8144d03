"""What a command does with names that are none, tables of games it does not know, and questions
that a table answers in other words."""

import json
import os
import shutil
import stat
import sys
import tempfile
from pathlib import Path

import pytest

import luckbase
from luckbase.cluster import machine
from luckbase.cluster.answers.answer import Answer
from luckbase.cluster.batch.requests import requests_for
from luckbase.cluster.machine import check_disk
from luckbase.cluster.store.provenance import Origin
from luckbase.jobs import terminal
from luckbase.jobs.app import run
from luckbase.solver import sentences
from luckbase.solver.board import registry
from luckbase.solver.errors import DiskLimitError
from luckbase.solver.sentences import Payoffs, counted, many, nearest, option, setting
from tests.places import ROOT
from tests.shared import python

TINY = str(ROOT / "boards/pig/tiny.toml")
SHUT = str(ROOT / "boards/jackpot/shut-the-box.toml")
ABOVE = str(ROOT / "boards/press-your-luck/tiny.toml")


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


@pytest.fixture
def climb(tmp_path, own_games):
    """A results folder with a table of a game that is unknown here, and one of Pig."""
    board, file = tmp_path / "hill.toml", str(ROOT / "tests/games/climb.py")
    board.write_text('game = "climb"\n[rules]\nsummit = 10\nrounds = 3\n')
    results = tmp_path / "results"
    assert run(["solve", str(board), "--game", file, "--results", str(results)]) == 0
    assert run(["solve", TINY, "--results", str(results)]) == 0
    registry.entries.clear()
    return results


def test_status_of_a_table_of_an_unknown_game_says_that_its_file_is_missing(command, climb):
    code, out, _ = command("status", "--results", str(climb))
    assert code == 1 and out.startswith("refused") and "\ncomplete " in out
    assert "its game 'climb' is unknown; name the file that registers it: --game" in out
    _, out, _ = command("status", "--results", str(climb), "--json")
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


def test_a_results_folder_whose_name_is_not_utf_8_is_refused(command, tmp_path):
    code, out, err = command("solve", TINY, "--results", str(tmp_path / os.fsdecode(b"r\xff")))
    assert (code, out) == (2, "") and err.count("\n") == 1
    assert "r\\xff/pig/tiny" in err and "expected a folder whose name is UTF-8" in err


def test_a_current_folder_that_was_deleted_is_named(command, tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert command("status") == (
        2, "", "luckbase: the current folder no longer exists; change to another folder\n"
    )  # fmt: skip


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


@pytest.mark.parametrize(
    ("word", "clause"),
    [
        ("goal", "expected one of: turns"),
        ("yours", "expected one of: goal, turns"),
        ("gaol", "did you mean 'goal'?"),
        ("Goal", "did you mean 'goal'? Capitals and small letters differ"),
    ],
)
def test_what_was_meant_is_near_and_never_the_word_itself(word, clause):
    assert nearest(word, ["goal", "turns"]) == clause


def test_an_answer_says_that_what_was_asked_is_said_otherwise(command):
    with luckbase.open(SHUT, in_memory=True) as table:
        other = table[{"open": (7, 8, 9), "dice": (3, 6)}]
        same = table[{"open": (9, 8, 7), "dice": (5, 4)}]
    assert other.note == "dice=3,6 is the same as dice=4,5: both are one state"
    assert other.note in str(other)
    assert same.note == "" and other.as_json() == same.as_json()


def test_a_table_by_its_board_file_plays_from_another_folder_of_results(command, pig):
    results = str(pig.parents[2])
    values = []
    for agent in (TINY, str(pig), "optimal"):
        words = ["evaluate", TINY, "--agents", f"{agent},hold-at-5", "--results", results]
        code, out, _ = command(*words, "--json")
        assert code == 0
        values.append(json.loads(out)["value"][0])
    assert values[0] == values[1] == pytest.approx(values[2], abs=1e-9)
    for words in (["evaluate", TINY, "--games", "10"], ["graph", TINY]):
        assert command(*words, "--agents", TINY, "--results", results)[0] == 0


def test_a_long_search_above_a_table_says_how_far_it_is(command, table_of, monkeypatch):
    table = table_of(Path(ABOVE), frontier=1)
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
