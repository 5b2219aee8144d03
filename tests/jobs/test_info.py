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


def test_a_question_without_a_state_names_the_file_of_the_game(command, own_games):
    """Of a game that has no start."""
    text = Path(climb.__code__.co_filename).read_text()
    Path("climb.py").write_text(text.replace("        start={},\n", ""))
    Path("hill.toml").write_text('game = "climb"\n')
    words = ["hill.toml", "--game", "climb.py"]
    assert command("solve", *words, "--from", "turns=1")[0] == 0
    code, _, err = command("query", *words)
    assert code == 2 and err.endswith("examples: luckbase info hill.toml --game climb.py\n")


def test_a_table_says_its_size_age_and_origin(capsys):
    assert luckbase.info("pig/tiny").table is None
    began = datetime.now().replace(second=0, microsecond=0)
    solved = luckbase.solve("pig/tiny")
    (status,) = luckbase.status()
    for name in ("pig/tiny", str(solved.table)):
        info = luckbase.info(name)
        assert info.title == "Pig, one die, first to 20"
        there = info.table.status
        assert (there.states, there.bytes, there.state) == (status.states, status.bytes, "complete")
        assert info.table.commands == ("luckbase solve pig/tiny",)
        assert began <= datetime.fromisoformat(info.table.solved) <= datetime.now()
    assert luckbase.info("pig/tiny", goal=10).table is None
    assert commands(capsys, str(solved.table)) == commands(capsys, "pig/tiny")


def test_a_table_that_is_not_whole_says_what_is_missing():
    solved = luckbase.solve(load_board("press-your-luck/tiny", frontier=1))
    status = luckbase.info("press-your-luck/tiny").table.status  # three spins
    assert status.state == "partial" and status.why
    next(Path(solved.table).rglob("*.parquet")).unlink()
    status = luckbase.info(solved.table).table.status
    assert status.state == "damaged" and status.why


def test_a_search_is_explained_by_where_it_began(capsys):
    solved = luckbase.solve("goofspiel/tiny", {"mine": (1, 2), "theirs": (1, 2), "deck": (1, 2)})
    (solve, query, *_) = commands(capsys, str(solved.table))
    assert solve[-4] == "--from" and sorted(solve[-3:]) == ["deck=1,2", "mine=1,2", "theirs=1,2"]
    assert run(query[1:]) == run(solve[1:]) == 0


def test_a_board_without_a_full_table_is_solved_below_a_state(capsys):
    Path("spins.toml").write_text("""
        game = "press-your-luck"
        outcomes = { whammy = "1/3", 1000 = "1/3", "500 + 2 spins" = "1/3" }
        rules = { spin_cap = 3 }
        solve = { score_unit = 500, score_cap = 3000 }
    """)
    before = commands(capsys, "spins.toml")
    assert [words[1] for words in before] == ["solve", "query", "play", "evaluate"]
    assert run(before[0][1:]) == run(before[1][1:]) == 0
    assert commands(capsys, "spins.toml") == before
    assert luckbase.info("spins.toml").table.status.state == "complete"


def test_json_has_all_of_it(command):
    text = luckbase.info("skunk/tiny").as_json()
    assert text["game_title"] == "Skunk" and "table" not in text
    assert text["fields"][0]["help"] == "Points banked by the player up."
    assert text["charts"][0]["reading"].startswith("(0,67) .1635")
    listed = json.loads(command("info", "--json")[1])
    assert len(listed["boards"]) == len(packaged())


# --- boards --------------------------------------------------------------------------------------


def test_a_copy_is_the_board_and_nothing_is_overwritten(command):
    _, out, err = command("info", "pig/tiny", "--copy")
    assert out == "tiny.toml\n" and "luckbase solve tiny.toml" in err
    assert canonical(load_board("tiny.toml")) == canonical(load_board("pig/tiny"))
    Path("tiny.toml").write_text("mine")
    code, _, err = command("info", "pig/tiny", "--copy")
    assert code == 2 and "--out: tiny.toml is there already; name another" in err
    (board,) = (each for each in luckbase.boards() if each.name == "pig/tiny")
    with pytest.raises(OptionError, match=r"^out: tiny.toml is there already"):
        board.copy("tiny.toml")
    assert Path("tiny.toml").read_text() == "mine"
    _, out, _ = command("info", "pig/tiny", "--copy", "--out", "other.toml", "--json")
    assert json.loads(out)["file"] == "other.toml"
    _, _, err = command("info", "pig/tiny", "--copy", "--out", "my own.toml")
    assert "then: luckbase solve 'my own.toml'\n" in err
