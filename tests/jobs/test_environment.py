"""LUCKBASE_RESULTS, LUCKBASE_GAME and LUCKBASE_ADDRESS stand for options that every command
repeats."""

from pathlib import Path

import pytest

from luckbase.jobs.app import VARIABLES
from tests.docs.generated import commands
from tests.games.climb import climb


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The folder where commands run."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_option_of_these_names_has_its_variable():
    for name, command in commands().items():
        for each in command.params:
            assert each.envvar == VARIABLES.get(each.name), (name, each.name)


def test_results_that_are_no_folder_are_refused_by_every_command_that_takes_them(command):
    Path("file").write_text("x")
    more = {"query": ["open=1,2"], "diff": ["jackpot/tiny"], "publish": ["to"]}
    said = "luckbase: --results: file is a file; write a folder, such as results\n"
    for name, each in commands().items():
        if any("--results" in param.opts for param in each.params):
            words = [name, "jackpot/tiny", *more.get(name, []), "--results", "file"]
            assert command(*words) == (2, "", said)


def test_tables_are_where_the_variable_says(command, folder, monkeypatch):
    monkeypatch.setenv("LUCKBASE_RESULTS", str(folder / "mine"))
    code, out, _ = command("solve", "jackpot/tiny")
    assert code == 0 and out.startswith("mine/jackpot/tiny/")
    assert command("query", "jackpot/tiny", "open=1,2")[0] == 0
    assert command("status")[1].startswith("complete")
    assert not Path("results").exists()
    assert command("solve", "jackpot/tiny", "--results", "other")[1].startswith("other/")
    monkeypatch.setenv("LUCKBASE_RESULTS", "")  # an empty variable is none
    assert "no tables under results" in command("status")[1]


def test_games_of_several_files_are_known(command, own_games, monkeypatch):
    text = Path(climb.__code__.co_filename).read_text()
    Path("a b.py").write_text(text)
    Path("again.py").write_text(text.replace('"climb"', '"stairs"'))
    Path("hill.toml").write_text('game = "climb"\n')
    Path("stairs.toml").write_text('game = "stairs"\n')
    monkeypatch.setenv("LUCKBASE_GAME", "a b.py:again.py")
    assert command("info", "hill.toml")[0] == command("info", "stairs.toml")[0] == 0
