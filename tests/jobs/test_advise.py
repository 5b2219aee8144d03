"""``luckbase advise``: follows a game line by line; its payoffs equal the slow reference's."""

import csv
import io
import json
import re
from pathlib import Path

import pytest

import luckbase
from luckbase.solver.errors import StateError
from tests.places import BOARDS
from tests.reference.press_your_luck import Reference, Rules

TINY = str(BOARDS / "press-your-luck/tiny.toml")
START = "Ed 1000, 1 spin; Peter 500, 1 spin; Michael 1500, 1 spin"

LARSON = ["39000", "5000", "4000", "4", "0", "0", "1", "0", "0"]


@pytest.fixture
def advised(command, monkeypatch, tmp_path):
    """Runs `advise` on the tiny board with lines on stdin: exit code, stdout, stderr."""

    def call(*lines, more=()):
        monkeypatch.setattr("sys.stdin", io.StringIO("".join(line + "\n" for line in lines)))
        return command("advise", TINY, *more, "--results", tmp_path)

    return call


def test_advice_is_the_reference_s(advised):
    """The reference has the tiny board in units of $500."""
    reference = Reference(Rules(1 / 6, ((1, 1 / 2),), ((1, 1 / 3),), 6))
    code, out, _ = advised(START, "Ed 500 + spin", more=("--json",))
    assert code == 0
    for answer, score in zip(map(json.loads, out.splitlines()), (2, 3), strict=True):
        values = dict(reference.actions((score, 1, 3), (1, 1, 1), (0, 0, 0), (0, 0, 0)))
        play, passed = values["play"][0], values["pass to 3"][0]
        advice = answer["advice"]
        assert [*answer] == ["text", "up", "state", "players", "advice"]
        assert [*advice] == [
            "best", "margin", "toss_up", "value", "choices", "why", "error", "source",
        ]  # fmt: skip
        assert [*advice["choices"][0]] == ["action", "value", "cost"]
        assert (answer["up"], advice["best"]) == ("Ed", "play")
        choices = {each["action"]: each for each in advice["choices"]}
        assert choices["play"]["value"][0] == pytest.approx(play, abs=1e-9)
        assert choices["pass to Michael"]["value"][0] == pytest.approx(passed, abs=1e-9)
        costs = [choices[name]["cost"] for name in ("play", "pass to Michael")]
        assert [*costs, advice["margin"]] == pytest.approx([0, play - passed, play - passed])


def test_what_it_says_and_takes_back(advised):
    _, out, _ = advised("# a comment", START, "ed 500 + spin", "undo", "state", "help", "quit", "x")
    assert "Ed is up: $1,000, 1 spin" in out
    assert "play, better by 8.0 points: a whammy, one in six, costs 24 points; passing to" in out
    assert "Ed wins 25.1%; Peter wins 9.6%; Michael wins 65.3%" in out
    assert "without: Ed 500 + spin" in out
    assert out.count("$1,000, 1 spin; Peter $500, 1 spin; Michael $1,500, 1 spin") == 2
    assert "take the last line back" in out


def test_a_decision_with_too_many_states_below_gets_no_advice(advised):
    _, out, _ = advised(START, "Ed 500 + spin", more=("--max-states", "5"))
    text = r"  no advice: the search has found (\d+) states and (\d+) of them are not solved yet; "
    limit = r"the limit is 5 \(--max-states\); in about [\d.]+ s this makes a table with it: luck"
    first, second = re.findall(text + limit, out)
    assert all(
        int(states) > max(5, int(left)) and int(left) > 0 for states, left in (first, second)
    )


def test_a_table_answers_if_there_is_one(tmp_path):
    luckbase.solve(TINY, results=tmp_path)
    advice = []
    for results, max_states in (tmp_path, 1), (tmp_path / "none", 5_000_000):
        with luckbase.advise(TINY, results=results, max_states=max_states) as game:
            advice.append(game.say(START).advice)
    stored, searched = advice
    assert stored.value == pytest.approx(searched.value, abs=1e-6)
    costs = [[each.cost for each in item.choices] for item in advice]
    assert costs[0] == pytest.approx(costs[1], abs=1e-6)


LARSON_END = """Larson 102851, 4 spins, 1 whammy; Long 4608; Litras 4080
Larson passes 4 to Long
Long whammy
Larson 102851, 0 spins, 1 whammy; Long 0, 0 spins, 1 whammy; Litras 4080, 3 passed
Litras whammy
Litras passes 2 to Larson
Larson prize 2636
Larson 110237, 0 spins, 1 whammy; Long 0, 0 spins, 1 whammy; Litras 0, 0 spins, 1 whammy"""
"""The end of Michael Larson's game, with the facts of docs/numbers.md; the rest is assumed."""
WHOLE_ROUND = """Lou 1500, 3 spins; Kim 3000, 2 spins; Sam 4250, 2 spins
Lou 1400
Lou 500 + spin
Lou whammy
Lou 2250
Kim 4000 + spin
Kim passes 2 to Sam
Sam 750
Sam 1000 + spin
Sam whammy
Sam 600
Sam prize"""
LAST_WHAMMY = """Rosa 4500, 1 spin, 3 whammies; Tom 7000, 1 spin; Ann 1250, 1 spin
Rosa 3000 + spin
Rosa passes 1 to Tom
Tom whammy
Tom 1000 + spin
Tom 2500
Ann 4000 + spin
Ann passes 1 to Rosa
Rosa whammy"""


@pytest.mark.parametrize(
    ("board", "options", "lines"),
    [
        ("larson", {}, LARSON_END), ("1985-02", {"score_unit": 1000}, WHOLE_ROUND),
        ("1984-06", {"score_unit": 500}, LAST_WHAMMY),
    ],
)  # fmt: skip
def test_a_game_is_followed_to_its_end(board, options, lines):
    with luckbase.advise(f"press-your-luck/{board}", **options) as game:
        for line in lines.splitlines():
            assert game.take(line), line
        assert game.here.up < 0


def test_what_larson_s_pass_is_said_to_be_worth_is_searched_again():
    file = BOARDS.parent / "results/published/larson-pass.csv"
    with file.open(encoding="utf-8") as rows:
        values = next(row for row in csv.DictReader(rows) if [*row.values()][:9] == LARSON)
    with luckbase.advise("press-your-luck/larson", score_cap=40000) as game:
        text = game.say("Larson 39000, 4, 1 whammy; Long 5000; Litras 4000")
    assert text.advice is not None and text.advice.best == "pass to Long"
    value = {each.action: each.value for each in text.advice.choices}
    assert value["pass to Long"][0] == pytest.approx(float(values["pass_to_2_payoff_1"]), abs=1e-7)
    assert value["play"][0] == pytest.approx(float(values["play_payoff_1"]), abs=1e-7)


@pytest.mark.parametrize(("players", "example"), [
    (2, "Ed 0, 4 spins; Michael 1000, 1 spin, 1 whammy"),
    (3, "Ed 0, 4 spins; Peter 2500, 3 spins; Michael 1000, 1 spin, 1 whammy"),
])  # fmt: skip
def test_the_example_of_a_first_line_is_one_of_the_board(players, example):
    with luckbase.advise(TINY, players=players) as game:
        with pytest.raises(StateError, match=f"in turn order, as in {example}$"):
            game.take("Ed 500")
        assert game.take(example)


def test_it_begins_as_the_board_says_until_a_line_says_who_has_what(command, monkeypatch, tmp_path):
    board = tmp_path / "begins.toml"
    text = Path(TINY).read_text(encoding="utf-8")
    before, _, after = text.partition("questions =")
    board.write_text(f"{before}spins = [0, 1, 1]\n[rules]{after.partition('[rules]')[2]}", "utf-8")
    monkeypatch.setattr("sys.stdin", io.StringIO("player 2 whammy\n"))
    code, out, err = command("advise", str(board))
    assert code == 0 and "player 2 whammy" in out and "player 3 is up" in out
    assert "the board starts at: player 1 $0; player 2 $500, 1 spin; player 3" in err
    with luckbase.advise(board) as game:
        assert game.say("Ed 0; Peter 500; Michael 1000, 1").up == "Michael"


def test_fields_may_stand_behind_one_from_and_dollars_have_their_sign(command, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("player 1 stops\n"))
    money = ["--set", "objective=money", "--set", "house=true"]
    state = ["scores=500,0,0", "earned=1,0,0", "whammies=0,4,4"]
    code, out, _ = command("advise", TINY, *money, "--from", *state)
    assert code == 0
    assert "stopping gives away $" in out
    assert "player 1 expects $" in out and "; player 2 expects $0; " in out
    assert out.endswith("player 1 stops\n  the game is over\n")


def test_the_first_line_may_be_in_the_command(command, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("Ed whammy\n"))
    line = "Ed: $1,000, 1 spin; Peter: 500, 1 spin; Michael: 0, out"
    code, out, _ = command("advise", str(TINY), *line.split())
    assert code == 0
    assert out.startswith("Ed $1,000, 1 spin; Peter $500, 1 spin; Michael $0, 4 whammies")
    assert "Ed whammy" in out and "Peter is up" in out
