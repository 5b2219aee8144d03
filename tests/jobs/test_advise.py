"""``luckbase advise``: what it says line by line, and prices of a game that was written down, held
to the slow reference."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

import luckbase
from luckbase.cluster.play.episode import read_script
from luckbase.jobs.app import run
from luckbase.solver.errors import StateError
from tests.places import BOARDS
from tests.reference.press_your_luck import Reference, Rules
from tests.solver.board.board_files import assert_one_sentence

TINY = str(BOARDS / "press-your-luck/tiny.toml")
EPISODE = BOARDS / "press-your-luck/episodes/tiny.txt"
START = "Ed 1000, 1 spin; Peter 500, 1 spin; Michael 1500, 1 spin"

LARSON = ["39000", "5000", "4000", "4", "0", "0", "1", "0", "0"]
FROM = ("--from", "scores=0,0,0", "--from", "earned=2,0,0")
Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def advised(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Command:
    """Runs `advise` on the tiny board with lines on stdin: exit code, stdout, stderr."""

    def call(*lines: str, more: tuple[str, ...] = ()) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.stdin", io.StringIO("".join(line + "\n" for line in lines)))
        code = run(["advise", TINY, *more, "--results", str(tmp_path)])
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


def reference() -> Reference:
    """The tiny board, in units of $500."""
    return Reference(Rules(1 / 6, ((1, 1 / 2),), ((1, 1 / 3),), 6))


def priced(state: tuple[tuple[int, ...], ...], player: int) -> dict[str, float]:
    """What each action at a state is worth to a player, by the reference."""
    return {name: value[player] for name, value in reference().actions(*state)}


def test_advice_is_the_reference_s(advised: Command) -> None:
    code, out, _ = advised(START, more=("--json",))
    (said,) = map(json.loads, out.splitlines())
    own = priced(((2, 1, 3), (1, 1, 1), (0, 0, 0), (0, 0, 0)), 0)
    assert (code, said["up"], said["advice"]["best"]) == (0, "Ed", "play")
    found = {each["action"]: each["value"][0] for each in said["advice"]["choices"]}
    assert found["play"] == pytest.approx(own["play"], abs=1e-9)
    assert found["pass to Michael"] == pytest.approx(own["pass to 3"], abs=1e-9)
    assert said["advice"]["margin"] == pytest.approx(own["play"] - own["pass to 3"], abs=1e-9)


def test_prices_and_accuracy_are_the_reference_s() -> None:
    episode = luckbase.episode(EPISODE)
    first = priced(((2, 1, 3), (1, 1, 1), (0, 0, 0), (0, 0, 0)), 0)
    second = priced(((3, 1, 3), (1, 1, 1), (0, 0, 0), (0, 0, 0)), 0)
    costs = [each.cost for each in episode.decisions]
    assert costs == pytest.approx([0.0, second["play"] - second["pass to 3"]], abs=1e-9)
    worst = sum(max(own.values()) - min(own.values()) for own in (first, second))
    ed, peter, michael = episode.accuracy
    assert ed.accuracy == pytest.approx(1 - costs[1] / worst, abs=1e-9)
    assert (peter.decisions, michael.decisions) == (0, 0), "one had to play, one had passed spins"
    assert (ed.decisions, ed.priced, ed.best) == (2, 2, 1)
    assert episode.over and episode.end == (0.5, 0.5, 0.0)


def test_what_it_says_and_takes_back(advised: Command) -> None:
    _, out, _ = advised("# a comment", START, "ed 500 + spin", "undo", "state", "help", "quit", "x")
    assert "Ed is up: $1,000, 1 spin" in out
    assert "play, better by 8.0 pp: a whammy, one in six, costs 24 pp; passing to Michael" in out
    assert "Ed wins 25.1%; Peter wins 9.6%; Michael wins 65.3%" in out
    assert "without: Ed 500 + spin" in out
    assert out.count("$1,000, 1 spin; Peter $500, 1 spin; Michael $1,500, 1 spin") == 2
    assert "take the last line back" in out


def test_from_a_state_the_players_have_numbers(advised: Command) -> None:
    code, out, _ = advised("player 1 whammy", more=(*FROM, "--json"))
    assert code == 0
    assert [json.loads(line)["up"] for line in out.splitlines()] == ["player 1", "player 1"]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["Ed 500"], "line 1: 'Ed 500': expected first who has what, in turn order, as in Ed 0"),
        ([START, "", "Mike 500"], "line 3: 'Mike 500': unknown player 'Mike'; expected Ed, Peter"),
        ([START, "undo"], "line 2: 'undo': there is no line to take back"),
    ],
)
def test_a_bad_line_is_named_with_its_number(advised: Command, lines: list[str], said: str) -> None:
    code, _, err = advised(*lines)
    assert code == 2
    sentence = err.splitlines()[-1]
    assert sentence.startswith(f"luckbase: {said}")
    assert_one_sentence(sentence.removeprefix("luckbase: "))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("bord: pig/race", "line 1: unknown head 'bord'; did you mean 'board'?"),
        ("set: score_unit", "line 1: 'score_unit' is not NAME=VALUE"),
        ("Ed 0; Peter 0; Michael 0", "names no board; write a line board: NAME"),
        (f"board: {TINY}\n\n{START}\nEd 600", "line 4: 'Ed 600': no slide of this board is 600"),
        (f"board: {TINY}", "expected first who has what"),
        (f"board: {BOARDS / 'pig/tiny.toml'}\nx", "pig cannot be followed in words"),
    ],
)
def test_a_bad_file_is_named_with_its_line(
    command: Command, tmp_path: Path, text: str, said: str
) -> None:
    file = tmp_path / "episode.txt"
    file.write_text(text, encoding="utf-8")
    code, out, err = command("advise", "--file", str(file))
    assert (code, out) == (2, "")
    assert said in err
    assert_one_sentence(err.removeprefix("luckbase: ").strip())


def test_what_does_not_go_together_is_refused(command: Command) -> None:
    assert "add --file" in command("advise", TINY, "--out", "x.html")[2]
    assert "expected a board file or its name, or --file" in command("advise")[2]
    said = "it is a game that is written down; run: luckbase advise --file press-your-luck/epis"
    assert said in command("advise", "press-your-luck/episodes/tiny")[2]
    assert "--skip: expected at least 0" in command("advise", "--file", "x", "--skip", "-1")[2]
    assert "--skip: decisions of a game that is" in command("advise", TINY, "--skip", "1")[2]
    assert "--from: where a game that" in command("advise", TINY, "--file", "x", *FROM)[2]
    assert ".html" in command("advise", "--file", str(EPISODE), "--out", "x.pdf")[2]
    err = command("advise", "--file", "press-your-luck/larson")[2]
    assert "press-your-luck/larson: no such file of a game that is written down; did you m" in err
    assert "'press-your-luck/episodes/larson'" in err
    assert "cannot be read" in command("advise", "--file", str(EPISODE.parent))[2]


def test_a_decision_with_too_many_states_is_named_with_how_many(command: Command) -> None:
    code, out, _ = command("advise", "--file", str(EPISODE), "--max-states", "5")
    assert code == 0
    assert out.count("no price") == 4, "twice in the table, twice in full"
    assert "line 5: 'Ed 500 + spin' has no price: about " in out
    assert "states lie below, and a search may find 5 (--max-states); solve a table first" in out
    assert "0 of 0" in out


def test_the_first_decisions_may_be_skipped() -> None:
    episode = luckbase.episode(EPISODE, skip=1)
    assert [each.cost is None for each in episode.decisions] == [True, False]
    assert episode.accuracy[0].priced == 1
    assert "it is skipped" in episode.unpriced()[0]


def test_a_table_answers_where_there_is_one(tmp_path: Path) -> None:
    luckbase.solve(TINY, results=tmp_path)
    episode = luckbase.episode(EPISODE, results=tmp_path, max_states=1)
    assert [each.unpriced for each in episode.decisions] == [None, None]
    searched = luckbase.episode(EPISODE, results=tmp_path / "none")
    own, other = ([each.cost for each in one.decisions] for one in (episode, searched))
    assert own == pytest.approx(other, abs=1e-6)


@pytest.mark.parametrize("file", sorted(EPISODE.parent.glob("*.txt")), ids=lambda file: file.stem)
def test_the_episodes_are_games_that_can_be(file: Path) -> None:
    script = read_script(file)
    assert script.title and script.board
    with luckbase.advise(script.board, **script.settings) as game:
        for number, line in script.lines:
            assert game.take(line), number
        assert game.here.up < 0, "to the end"


def test_what_larson_s_pass_is_said_to_be_worth_is_searched_again() -> None:
    file = BOARDS.parent / "results/published/larson-pass.csv"
    with file.open(encoding="utf-8") as rows:
        own = next(row for row in csv.DictReader(rows) if [*row.values()][:9] == LARSON)
    with luckbase.advise("press-your-luck/larson", score_cap=40000) as game:
        said = game.say("Larson 39000, 4, 1 whammy; Long 5000; Litras 4000")
    assert said.advice is not None and said.advice.best == "pass to Long"
    value = {each.action: each.value for each in said.advice.choices}
    assert value["pass to Long"][0] == pytest.approx(float(own["pass_to_2_payoff_1"]), abs=1e-7)
    assert value["play"][0] == pytest.approx(float(own["play_payoff_1"]), abs=1e-7)


def test_the_page_has_what_the_text_has(command: Command, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    code, said, err = command("advise", "--file", str(EPISODE), "--out", str(out))
    html = out.read_text(encoding="utf-8")
    assert (code, f"{out}: {len(html.encode()):,} bytes" in err) == (0, True)
    for part in ("Three outcomes, a short game", "Ed passes 1 to Michael", "13 pp", "38.3%"):
        assert part in html and part in said
    assert "Chance to win, line by line" in html
    assert "http" not in html.replace("http-equiv", "").replace("http://www.w3.org/", "")


@pytest.mark.parametrize(("players", "example"), [
    (2, "Ed 0, 4 spins; Michael 1000, 1 spin, 1 whammy"),
    (4, "Ed 0, 4 spins; Jo 500; Peter 2500, 3 spins; Michael 1000, 1 spin, 1 whammy"),
])  # fmt: skip
def test_the_example_of_a_first_line_is_one_of_the_board(players: int, example: str) -> None:
    with luckbase.advise(TINY, players=players) as game:
        with pytest.raises(StateError, match=f"in turn order, as in {example}$"):
            game.take("Ed 500")
        assert game.take(example)


def test_it_begins_as_the_board_says_until_a_line_says_who_has_what(
    command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    board = tmp_path / "begins.toml"
    text = Path(TINY).read_text(encoding="utf-8")
    before, _, after = text.partition("questions =")
    board.write_text(f"{before}spins = [0, 1, 1]\n[rules]{after.partition('[rules]')[2]}", "utf-8")
    monkeypatch.setattr("sys.stdin", io.StringIO("player 2 whammy\n"))
    code, out, err = command("advise", str(board))
    assert code == 0 and "player 2 whammy" in out and "player 3 is up" in out
    assert "it begins as the board says: player 1 $0; player 2 $500, 1 spin; player 3" in err
    with luckbase.advise(board) as game:
        assert game.say("Ed 0; Peter 500; Michael 1000, 1").up == "Michael"


def test_fields_may_stand_behind_one_from_and_dollars_have_their_sign(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    code, out, _ = command(
        "advise",
        TINY,
        "--set",
        "objective=money",
        "--set",
        "house=true",
        "--from",
        "scores=500,0,0",
        "earned=1,0,0",
        "whammies=0,4,4",
    )
    assert code == 0
    assert "stopping gives away $" in out
    assert "player 1 expects $" in out and "; player 2 expects $0; " in out
    monkeypatch.setattr("sys.stdin", io.StringIO("player 1 stops\n"))
    out = command("advise", TINY, "--set", "objective=money", "--set", "house=true",
                  "--from", "scores=500,0,0", "earned=1,0,0", "whammies=0,4,4")[1]  # fmt: skip
    assert out.endswith("player 1 stops\n  the game is over\n")


def test_advice_as_json_has_these_fields(advised: Command) -> None:
    _, out, _ = advised(START, more=("--json",))
    (said,) = map(json.loads, out.splitlines())
    assert [*said] == ["text", "up", "state", "players", "advice"]
    assert [*said["advice"]] == [
        "best", "margin", "toss_up", "value", "choices", "why", "error", "source",
    ]  # fmt: skip
    assert [*said["advice"]["choices"][0]] == ["action", "value", "cost"]
