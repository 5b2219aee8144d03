"""--results that is not a folder is refused in a sentence, by every command that takes it."""

import pytest

from luckbase.jobs.app import run
from tests.docs.generated import commands
from tests.places import BOARDS

BOARD = str(BOARDS / "jackpot/tiny.toml")
TAKING = [name for name, c in commands().items() if any("--results" in p.opts for p in c.params)]


def words(name):
    """The least that a command can be called with."""
    more = {"query": ["open=1,2"], "diff": [BOARD]}
    return [name, BOARD, *more.get(name, [])]


@pytest.mark.parametrize("name", TAKING)
def test_a_file_and_nothing_are_no_folder(name, tmp_path, capsys):
    file = tmp_path / "file"
    file.write_text("x")
    for results, text in (
        ("", "'' is not a folder"), (" ", "'' is not a folder"), (str(file), f"{file} is a file"),
        (str(file / "below"), f"{file} is a file"),
        ("ftp://bucket/x", "'ftp://bucket/x' cannot hold tables"),
    ):  # fmt: skip
        assert run([*words(name), "--results", results]) == 2
        out, err = capsys.readouterr()
        assert out == "" and err.startswith(f"luckbase: --results: {text}; ")
        assert err.count("\n") == 1
    assert file.read_text() == "x"


def test_every_command_with_tables_takes_it():
    assert {"solve", "info", "query", "status", "verify", "diff", "play", "chart"} <= {*TAKING}


def test_a_folder_that_is_not_there_yet_is_made(tmp_path, capsys):
    assert run(["solve", BOARD, "--results", str(tmp_path / "new/one")]) == 0
    assert run(["status", "--results", str(tmp_path / "new/one")]) == 0
    assert "complete" in capsys.readouterr().out
