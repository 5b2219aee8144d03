"""The table that was asked for, or none: rules identities on the command line."""

import io
import json
import re
from pathlib import Path

import pytest

from luckbase.solver.board.model import rules_identity
from tests import solving
from tests.places import ROOT

TINY = str(ROOT / "boards/press-your-luck/tiny.toml")
SKUNK = str(ROOT / "boards/skunk/seed.toml")
RACE = str(ROOT / "boards/pig/race.toml")
STATE = ["scores=0,1000,500", "earned=0,1,0"]
WHAT_IF = ["--set", "score_unit=1000", "--set", "third_place_spins=false"]


@pytest.fixture(scope="module")
def both(results_of):
    """Results of the tiny board as it stands, and then of a what-if."""
    what_if = {"score_unit": 1000, "third_place_spins": False}
    return results_of((TINY, {"frontier": 1}), (TINY, {"frontier": 1, **what_if}))


def test_a_what_if_does_not_change_what_the_board_answers(both, command):
    code, out, _ = command("query", TINY, *STATE, "--json", "--results", str(both))
    plain = json.loads(out)
    assert (code, plain["options"]) == (0, {"score_cap": 3000, "score_unit": 500})
    state = ["scores=0,1000,1000", "earned=0,1,0"]
    answers = []
    for options in ([], WHAT_IF):
        code, out, _ = command("query", TINY, *state, *options, "--json", "--results", str(both)
        )  # fmt: skip
        assert code == 0
        answers.append(json.loads(out))
    assert answers[0]["value"] != answers[1]["value"]
    assert answers[1]["options"] == {
        "score_cap": 3000, "score_unit": 1000, "third_place_spins": False,
    }  # fmt: skip
    assert answers[0]["solve_id"] == plain["solve_id"] != answers[1]["solve_id"]


def test_options_of_reach_do_not_matter_to_a_question(both, command):
    words = ["query", TINY, *STATE, "--json", "--results", str(both)]
    plain, far = (command(*words, *o) for o in ([], ["--set", "frontier=7"]))
    assert plain == far


def test_rules_that_were_not_solved_are_refused_naming_those_that_were(both, command):
    options = ["--set", "tied_pass=next"]
    code, out, err = command("query", TINY, *STATE, *options, "--results", str(both))
    assert (code, out) == (1, "")
    assert err.count("\n") == 1
    assert "no table of this board with tied_pass=next" in err
    assert "(tied_pass: 'passer' instead of 'next')" in err
    assert "score_unit: 1000 instead of 500" in err
    assert "; to ask the nearest, add --set tied_pass=passer; run: " in err
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


def test_an_option_that_a_board_leaves_out_is_named_by_its_default(both, command):
    options = ["--set", "or_lose_whammy=cash", "--set", "spin_cap=9"]
    code, _, err = command("query", TINY, *STATE, *options, "--results", str(both))
    assert code == 1
    assert "or_lose_whammy: 'best' instead of 'cash'" in err
    assert "to ask the nearest" not in err, "no option takes spin_cap away"
    _, _, err = command("query", TINY, *STATE, *options[:2], "--results", str(both))
    assert "; to ask the nearest, add --set or_lose_whammy=best; run: " in err


def test_a_board_of_equal_content_under_another_name_may_answer(both, tmp_path, command):
    other = tmp_path / "twin.toml"
    other.write_text("# the same\n" + Path(TINY).read_text())
    code, out, _ = command("query", str(other), *STATE, "--json", "--results", str(both))
    assert (code, json.loads(out)["board"]) == (0, "tiny")


def test_every_command_says_what_answered(both, tmp_path, command, monkeypatch):
    identity = solving.solve_board(
        solving.load_board(TINY, frontier=1), results=both
    ).manifest.head.identity  # fmt: skip
    text = f"tiny score_cap=3000 score_unit=500, solve {identity}"
    _, out, _ = command("query", TINY, *STATE, "--results", str(both))
    assert f"answered by {text}\n" in out
    (tmp_path / "in.csv").write_text("scores_1,scores_2,scores_3\n0,500,0\n")
    _, out, err = command(
        "query", TINY, "--batch", str(tmp_path / "in.csv"), "--results", str(both)
    )
    assert out.splitlines()[1].endswith(f'"{identity}"')
    assert f"answered by {text}\n" in err
    _, out, _ = command("verify", TINY, "--results", str(both))
    assert text in out
    _, out, _ = command("diff", TINY, TINY, "--set-second", "score_unit=1000",
                    "--set-second", "third_place_spins=false", "--results", str(both))  # fmt: skip
    assert f"\nfirst   {text}\nsecond  tiny score_cap=3000 score_unit=1000 third" in out
    assert f"from {text}\n" in command("chart", TINY, "--results", str(both))[2]
    monkeypatch.setattr("sys.stdin", io.StringIO("q\n"))
    _, out, _ = command("play", TINY, *STATE, "--as", "2", "--results", str(both))
    assert f"payoffs are from the table of {text}" in out


def test_status_prints_the_options_that_tell_tables_apart(both, command):
    code, out, _ = command("status", "--results", str(both))
    assert code == 0
    lines = out.splitlines()
    named = [line for line in lines if line.startswith("complete  ")]
    first, second = sorted(named, key=lambda line: "third_place" in line)
    assert first.endswith(" score_cap=3000 score_unit=500")
    assert second.endswith(" score_unit=1000 third_place_spins=false")
    below = lines[lines.index(first) + 1]
    shape = r" {10}[\d,]+ states, [\d.]+ .B, \d{4}-\d\d-\d\d \d\d:\d\d, 20 tiers"
    assert re.fullmatch(shape, below)
    assert re.fullmatch(r" {10}2 tables: [\d,]+ states, [\d.]+ .B", lines[-1])


def test_status_is_sorted_by_what_is_asked_for(both, command):
    sorts = {"name": "table", "size": "bytes", "states": "states", "date": "date"}
    for key, field in sorts.items():
        code, out, _ = command("status", "--results", str(both), "--sort", key, "--json")
        first, second = (json.loads(line)[field] for line in out.splitlines())
        assert code == 0 and (first < second if key == "name" else first >= second), key


def test_a_table_named_by_its_path_says_that_its_board_has_changed(tmp_path, command):
    board = tmp_path / "mine.toml"
    board.write_text(Path(TINY).read_text())
    results = tmp_path / "results"
    table = str(solving.solve_board(solving.load_board(board, frontier=1), results=results).table)
    code, out, err = command("query", table, *STATE, "--json", "--strict")
    assert (code, err, json.loads(out)["stale"]) == (0, "", [])
    board.write_text(board.read_text().replace("score_cap = 3000", "score_cap = 2500"))
    code, out, err = command("query", table, *STATE, "--json")
    assert code == 0
    assert json.loads(out)["stale"] == ["score_cap: was 3000, now 2500"]
    assert "this table is stale: score_cap: was 3000, now 2500" in err
    code, out, err = command("query", table, *STATE, "--json", "--strict")
    assert (code, out) == (1, "")
    assert "score_cap: was 3000, now 2500" in err
    with solving.open_table(table) as opened:
        words = dict(word.split("=") for word in STATE)
        assert opened.ask(words).origin.stale == ("score_cap: was 3000, now 2500",)


def test_evaluate_says_under_which_rules(command):
    small = [RACE, "--set", "goal=20", "--agents", "hold-at-5"]
    identity = rules_identity(solving.load_game(solving.load_board(RACE, goal=20)))
    for more in ([], ["--matrix"], ["--games", "100"]):
        words = ["evaluate", *small, *more]
        code, out, _ = command(*words, "--json")
        text = json.loads(out)
        assert (code, text["board"], text["options"]) == (0, "race", {"goal": 20})
        assert text["solve_id"] == identity
        _, out, _ = command(*words)
        numbers, end, _ = out.partition(f"under the rules of race goal=20, solve {identity}\n")
        assert end and "hold-at-5" in numbers


def test_status_of_a_board_with_options_is_of_that_table_alone(both, command):
    code, out, _ = command("status", TINY, "--results", str(both))
    assert (code, out.count("complete")) == (0, 2)
    code, out, _ = command("status", TINY, *WHAT_IF, "--results", str(both))
    assert (code, out.count("complete")) == (0, 1)
    code, _, err = command("status", TINY, "--set", "max_whammies=2", "--results", str(both))
    assert code == 1 and "no table of this board with max_whammies=2" in err


def test_a_board_made_in_memory_claims_no_file(tmp_path, command):
    """What stands in the file is another board."""
    read = solving.load_board(TINY, frontier=1)
    rules = read.rules.model_copy(update={"max_whammies": 2})
    solving.solve_board(read.model_copy(update={"rules": rules}), results=tmp_path)
    code, out, _ = command("status", "--results", str(tmp_path))
    assert (code, "max_whammies=2" in out) == (0, True)
