"""Boards that the package brings are taken by name, wherever a board file is."""

from pathlib import Path

import pytest

from luckbase.cluster.answers.find import find_table
from luckbase.cluster.batch.requests import requests_for
from luckbase.jobs.app import run
from luckbase.solver.board.file import packaged
from luckbase.solver.board.model import canonical
from tests import solving
from tests.places import BOARDS


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """A folder without boards."""
    monkeypatch.chdir(tmp_path)


def test_every_board_has_a_name():
    files = {f"{path.parent.name}/{path.stem}" for path in BOARDS.glob("*/*.toml")}
    assert {*packaged()} == files and len(files) > 15


@pytest.mark.parametrize("name", packaged())
def test_a_name_is_the_board(name):
    board, file = solving.load_board(name), solving.load_board(BOARDS / f"{name}.toml")
    assert (board.name, board.title, canonical(board)) == (file.name, file.title, canonical(file))


def test_options_are_taken_with_a_name():
    assert solving.load_board("pig/race", goal=50).name == "race"


def test_a_file_of_that_path_goes_before_it():
    Path("pig").mkdir()
    Path("pig/race").write_text('game = "pig"\nrules.goal = 7\n')
    assert canonical(solving.load_board("pig/race"))["rules"]["goal"] == 7


def test_a_folder_of_that_path_is_the_table_that_was_meant():
    Path("pig/race").mkdir(parents=True)
    assert find_table("pig/race", Path("results"), {}) == Path("pig/race")


def test_a_job_may_list_names():
    Path("night.toml").write_text('[[board]]\nfile = ["pig/race", "skunk/tiny"]\n')
    assert [each.file for each in requests_for(["night.toml"])] == ["pig/race", "skunk/tiny"]


def test_commands_to_copy_have_the_name(capsys):
    assert run(["verify", "pig/race"]) == 1
    assert capsys.readouterr().err.endswith("under results; run: luckbase solve pig/race\n")
    assert run(["solve", "pig/tiny"]) == run(["status", "pig/tiny"]) == 0
    assert run(["solve", "pig/tiny", "--dry-run"]) == run(["clean", "pig/tiny"]) == 0
    assert "pig/tiny is complete" in capsys.readouterr().out
