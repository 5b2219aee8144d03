"""The table that was asked for, or none: rules identities on the command line."""

import io
import json
import re
from pathlib import Path

import pytest

import luckbase
from luckbase.solver.board.model import rules_identity
from tests import solving
from tests.places import BOARDS

TINY = str(BOARDS / "press-your-luck/tiny.toml")
RACE = str(BOARDS / "pig/race.toml")
STATE = ["scores=0,1000,500", "earned=0,1,0"]
WHAT_IF = ["--set", "score_unit=1000", "--set", "third_place_spins=false"]


@pytest.fixture(scope="module")
def both(results_of):
    """Results of the tiny board as it stands, and then of a what-if."""
    what_if = {"score_unit": 1000, "third_place_spins": False}
    return results_of((TINY, {"frontier": 1}), (TINY, {"frontier": 1, **what_if}))


@pytest.fixture
def asked(both, command):
    """What a question about the tiny board says: exit code, stdout, stderr."""
    return lambda *words: command("query", TINY, *words, "--results", both)


def test_a_what_if_does_not_change_what_the_board_answers(asked):
    """Options of reach do not matter."""
    state = ["scores=0,1000,1000", "earned=0,1,0", "--json"]
    plain, far, other = (
        json.loads(asked(*state, *options)[1]) for options in ([], ["--set", "frontier=7"], WHAT_IF)
    )
    assert plain == far and plain["value"] != other["value"]
    rules = {"score_cap": 3000, "score_unit": 500}
    assert plain["options"] == rules
    assert other["options"] == rules | {"score_unit": 1000, "third_place_spins": False}
    assert plain["solve_id"] != other["solve_id"]


def test_rules_that_were_not_solved_are_refused_naming_those_that_were(asked):
    code, out, err = asked(*STATE, "--set", "tied_pass=next")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "no table of this board with tied_pass=next" in err
    assert " (--set tied_pass=passer)" in err
    assert "--set score_unit=1000" in err and "--set third_place_spins=false" in err
    assert f"luckbase solve {TINY} --set tied_pass=next" in err


@pytest.mark.parametrize(
    ("words", "start"),
    [
        (["press-your-luck/tiny", "--set", "objective=money"], True),
        (["press-your-luck/tiny"], False),
        (["jackpot/tiny"], False),
    ],
)
def test_the_command_that_would_solve_a_board_is_one_that_does(words, start, tmp_path, command):
    """Where a search must be told where to begin, it says so."""
    results = ["--results", str(tmp_path)]
    code, _, err = command("verify", *words, *results)
    assert code == 1 and err.endswith(" --from FIELD=VALUE\n") == start
    assert command("solve", *words, "--dry-run", *results)[0] == (2 if start else 0)


def test_an_option_that_a_board_leaves_out_is_named_by_its_default(asked):
    options = ["--set", "or_lose_whammy=cash", "--set", "spin_cap=9"]
    code, _, err = asked(*STATE, *options)
    assert code == 1
    assert "(--set or_lose_whammy=best, spin_cap: missing instead of 9)" in err


def test_a_board_of_equal_content_under_another_name_may_answer(both, tmp_path):
    (tmp_path / "twin.toml").write_text("# the same\n" + Path(TINY).read_text())
    with luckbase.open(tmp_path / "twin.toml", results=both) as table:
        assert table.game.board.name == "tiny"


def test_every_command_says_what_answered(both, asked, tmp_path, command, monkeypatch):
    identity = json.loads(asked(*STATE, "--json")[1])["solve_id"]
    text = f"tiny score_cap=3000 score_unit=500, solve {identity}"
    where = ["--results", both]
    assert f"answered by {text}\n" in asked(*STATE)[1]
    (tmp_path / "in.csv").write_text("scores_1,scores_2,scores_3\n0,500,0\n")
    _, out, err = asked("--batch", tmp_path / "in.csv")
    assert out.splitlines()[1].endswith(f'"{identity}"') and f"answered by {text}\n" in err
    assert text in command("verify", TINY, *where)[1]
    other = [word.replace("--set", "--set-second") for word in WHAT_IF]
    _, out, _ = command("diff", TINY, TINY, *other, *where)
    assert f"\nfirst   {text}\nsecond  tiny score_cap=3000 score_unit=1000 third" in out
    assert f"from {text}\n" in command("chart", TINY, *where)[2]
    monkeypatch.setattr("sys.stdin", io.StringIO("q\n"))
    _, out, _ = command("play", TINY, *STATE, "--as", "2", *where)
    assert f"payoffs are from the table of {text}" in out


def test_status_prints_the_options_that_tell_tables_apart(both, command):
    code, out, _ = command("status", "--results", both)
    lines = out.splitlines()
    named = [line for line in lines if line.startswith("complete  ")]
    first, second = sorted(named, key=lambda line: "third_place" in line)
    assert code == 0 and first.endswith(" score_cap=3000 score_unit=500")
    assert second.endswith(" score_unit=1000 third_place_spins=false")
    shape = r" {10}[\d,]+ states, [\d.]+ .B, \d{4}-\d\d-\d\d \d\d:\d\d, 20 tiers"
    assert re.fullmatch(shape, lines[lines.index(first) + 1])
    assert re.fullmatch(r" {10}2 tables: [\d,]+ states, [\d.]+ .B", lines[-1])


def test_status_is_sorted_by_what_is_asked_for(both, command):
    for key, field in (
        ("name", "table"),
        ("size", "bytes"),
        ("states", "states"),
        ("date", "date"),
    ):
        code, out, _ = command("status", "--results", both, "--sort", key, "--json")
        first, second = (json.loads(line)[field] for line in out.splitlines())
        assert code == 0 and (first < second if key == "name" else first >= second), key


def test_status_of_a_board_with_options_is_of_that_table_alone(both, command):
    for options, count in (([], 2), (WHAT_IF, 1)):
        code, out, _ = command("status", TINY, *options, "--results", both)
        assert (code, out.count("complete")) == (0, count)
    code, _, err = command("status", TINY, "--set", "max_whammies=2", "--results", both)
    assert code == 1 and "no table of this board with max_whammies=2" in err


def test_a_table_named_by_its_path_says_that_its_board_has_changed(tmp_path, command):
    board = tmp_path / "mine.toml"
    board.write_text(Path(TINY).read_text())
    results = tmp_path / "results"
    table = solving.solve_board(solving.load_board(board, frontier=1), results=results).table
    code, out, err = command("query", table, *STATE, "--json", "--strict")
    assert (code, err, json.loads(out)["stale"]) == (0, "", [])
    board.write_text(board.read_text().replace("score_cap = 3000", "score_cap = 2500"))
    code, out, err = command("query", table, *STATE, "--json")
    why = "score_cap: was 3000, now 2500"
    assert (code, json.loads(out)["stale"]) == (0, [why]) and f"this table is stale: {why}" in err
    code, out, err = command("query", table, *STATE, "--json", "--strict")
    assert (code, out) == (1, "") and why in err


def test_evaluate_says_under_which_rules(command):
    small = [RACE, "--set", "goal=20", "--agents", "hold-at-5"]
    identity = rules_identity(solving.load_game(solving.load_board(RACE, goal=20)))
    for more in ([], ["--matrix"], ["--games", "100"]):
        text = json.loads(command("evaluate", *small, *more, "--json")[1])
        assert (text["board"], text["options"]) == ("race", {"goal": 20})
        assert text["solve_id"] == identity
        numbers, end, _ = command("evaluate", *small, *more)[1].partition(
            f"under the rules of race goal=20, solve {identity}\n"
        )
        assert end and "hold-at-5" in numbers


def test_a_board_made_in_memory_claims_no_file(tmp_path, command):
    """What stands in the file is another board."""
    read = solving.load_board(TINY, frontier=1)
    rules = read.rules.model_copy(update={"max_whammies": 2})
    solving.solve_board(read.model_copy(update={"rules": rules}), results=tmp_path)
    code, out, _ = command("status", "--results", tmp_path)
    assert (code, "max_whammies=2" in out) == (0, True)
