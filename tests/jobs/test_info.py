"""``luckbase info``: what it prints is true, fits, and can be typed."""

import io
import json
import shlex
from datetime import datetime
from pathlib import Path

import pytest

import luckbase
from luckbase.game import Board, Field, Rules, Section, option, register, set_field
from luckbase.jobs.app import run
from luckbase.solver.board.file import packaged
from luckbase.solver.board.model import canonical
from luckbase.solver.errors import OptionError
from tests.games.climb import climb
from tests.solving import load_board

TINY = [name for name in packaged() if name.endswith("tiny")]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """A folder without boards."""
    monkeypatch.chdir(tmp_path)


def commands(capsys, *words):
    """The commands that ``luckbase info`` ends with."""
    assert run(["info", *words]) == 0
    text = capsys.readouterr().out.split("\nTry\n")[1]
    return [shlex.split(line) for line in text.replace(" \\\n", " ").splitlines()]


@pytest.mark.parametrize("name", [*TINY, "pig/rounds"])
def test_its_commands_work_as_they_are_printed(name, capsys, monkeypatch):
    few = ["--set", "rounds=2", "--set", "cut=20"] if name == "pig/rounds" else []
    result = commands(capsys, name, *few)
    assert [words[1] for words in result if words[1] != "chart"] == [
        "solve", "query", "play", "evaluate",
    ]  # fmt: skip
    for program, *words in result:
        monkeypatch.setattr("sys.stdin", io.StringIO("q\n"))
        assert (program, run(words)) == ("luckbase", 0), capsys.readouterr().err


@pytest.mark.parametrize("name", [*packaged(), "goofspiel/tiny --set keep_cards=true"])
def test_it_fits_80_columns(name, capsys):
    assert run(["info", *name.split()]) == run(["info"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if len(line) > 80] == []


def test_options_say_their_value_and_who_says_it():
    Path("mine.toml").write_text('game = "pig"\n[rules]\ngoal = 50\nsides = 6\n')
    result = {each.name: each for each in luckbase.info("mine.toml", dice=2).options}
    text = {name: (each.value, each.set_by, each.default) for name, each in result.items()}
    assert text["goal"] == ("50", "board", "100")
    assert text["sides"] == ("6", "default", "6")
    assert text["dice"] == ("2", "command", "1")
    assert text["first_roll_safe"] == ("false", "default", "false")
    assert result["goal"].values == ("1 to 200",)
    assert result["some_ones"].values == ("turn", "score", "points")


class Odds(Section):
    chance: float = option(0.75, 0.1, 0.9)
    label: str = option("x", help="A text.")


class OddsBoard(Board):
    rules: Odds = Odds()


@pytest.fixture
def odds(own_games):
    fields = [Field("steps", length=2, high=10), set_field("turns", 3, default=0b101)]
    register("odds", OddsBoard, lambda board: Rules(
        fields=fields, players=2, transition=climb, numbers=(10, 6), max_edges=7, start={},
        actions=("rest", "roll"),
    ))  # fmt: skip
    Path("odds.toml").write_text('game = "odds"\n')


def test_fractions_texts_and_sets_of_a_game_of_ones_own(odds, capsys):
    result = luckbase.info("odds.toml", chance=0.5, label="7")
    assert [each.value for each in result.options] == ["0.5", "7"]
    assert result.options[0].values == ("0.1 to 0.9",) and result.fields[1].default == "1,3"
    assert run(["info", "odds.toml", "--set", "chance=.25", "--set", "label=true"]) == 0
    printed = capsys.readouterr().out
    assert "chance=0.25  Values: 0.1 to 0.9. Set by --set; otherwise 0.75." in printed
    assert "label=true   A text." in printed and "If left out: 1,3." in printed
    with pytest.raises(OptionError, match=r"chance: 1.0 is too large; expected at most 0.9"):
        luckbase.info("odds.toml", chance="1.0")


def test_a_question_without_a_state_names_the_file_of_the_game(capsys, own_games):
    """Of a game that has no start."""
    text = Path(climb.__code__.co_filename).read_text()
    Path("climb.py").write_text(text.replace("        start={},\n", ""))
    Path("hill.toml").write_text('game = "climb"\n')
    assert run(["solve", "hill.toml", "--game", "climb.py", "--from", "turns=1"]) == 0
    assert run(["query", "hill.toml", "--game", "climb.py"]) == 2
    *_, program = capsys.readouterr().err.strip().partition("examples: ")
    assert program == "luckbase info hill.toml --game climb.py"


def test_a_table_says_its_size_age_and_origin(capsys):
    assert luckbase.info("pig/tiny").table is None
    began = datetime.now().replace(second=0, microsecond=0)
    solved = luckbase.solve("pig/tiny")
    (status,) = luckbase.status()
    for name in ("pig/tiny", str(solved.table)):
        table = luckbase.info(name).table
        assert (table.status.states, table.status.bytes) == (status.states, status.bytes)
        assert table.status.state == "complete" and table.commands == ("luckbase solve pig/tiny",)
        assert began <= datetime.fromisoformat(table.solved) <= datetime.now()
        assert luckbase.info(name).title == "Pig, one die, first to 20"
    assert luckbase.info("pig/tiny", goal=10).table is None
    result = commands(capsys, str(solved.table))
    assert result == commands(capsys, "pig/tiny")


def test_a_table_that_is_not_whole_says_what_is_missing():
    solved = luckbase.solve(load_board("press-your-luck/tiny", frontier=1))
    table = luckbase.info("press-your-luck/tiny").table  # three spins
    assert table is not None and table.status.state == "partial" and table.status.why
    next(Path(solved.table).rglob("*.parquet")).unlink()
    table = luckbase.info(solved.table).table
    assert table is not None and table.status.state == "damaged" and table.status.why


def test_a_search_is_explained_by_where_it_began(capsys):
    solved = luckbase.solve("goofspiel/tiny", {"mine": (1, 2), "theirs": (1, 2), "deck": (1, 2)})
    (solve, query, *_) = commands(capsys, str(solved.table))
    assert solve[-4] == "--from" and sorted(solve[-3:]) == ["deck=1,2", "mine=1,2", "theirs=1,2"]
    assert run(query[1:]) == run(solve[1:]) == 0


def test_a_board_without_a_full_table_is_solved_below_a_state(capsys):
    outcomes = 'whammy = "1/3"\n1000 = "1/3"\n"500 + 2 spins" = "1/3"\n'
    solve = "score_unit = 500\nscore_cap = 3000\n"
    Path("spins.toml").write_text(
        f'game = "press-your-luck"\n[outcomes]\n{outcomes}[rules]\nspin_cap = 3\n[solve]\n{solve}'
    )
    before = commands(capsys, "spins.toml")
    assert [words[1] for words in before] == ["solve", "query", "play", "evaluate"]
    assert run(before[0][1:]) == run(before[1][1:]) == 0
    assert commands(capsys, "spins.toml") == before
    table = luckbase.info("spins.toml").table
    assert table is not None and table.status.state == "complete"


def test_json_has_all_of_it(capsys):
    text = luckbase.info("skunk/tiny").as_json()
    assert text["game_title"] == "Skunk" and "table" not in text
    assert text["fields"][0]["help"] == "Points banked by the player up."
    assert text["charts"][0]["reading"].startswith("(0,67) .1635")
    assert run(["info", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert len(listed["boards"]) == len(packaged())


# --- boards --------------------------------------------------------------------------------------


def test_a_copy_is_the_board_and_nothing_is_overwritten(capsys):
    assert run(["info", "pig/tiny", "--copy"]) == 0
    text = capsys.readouterr()
    assert text.out == "tiny.toml\n" and "luckbase solve tiny.toml" in text.err
    assert canonical(load_board("tiny.toml")) == canonical(load_board("pig/tiny"))
    Path("tiny.toml").write_text("mine")
    assert run(["info", "pig/tiny", "--copy"]) == 2
    assert "--out: tiny.toml is there already; name another" in capsys.readouterr().err
    assert Path("tiny.toml").read_text() == "mine"
    (board,) = (each for each in luckbase.boards() if each.name == "pig/tiny")
    with pytest.raises(OptionError, match=r"^out: tiny.toml is there already"):
        board.copy("tiny.toml")
    assert run(["info", "pig/tiny", "--copy", "--out", "other.toml", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["file"] == "other.toml"
    assert run(["info", "pig/tiny", "--copy", "--out", "my own.toml"]) == 0
    assert "then: luckbase solve 'my own.toml'\n" in capsys.readouterr().err
