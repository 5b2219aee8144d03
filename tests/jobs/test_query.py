"""A batch that is refused says in which row it is wrong, counted from 1, whatever the game."""

import json
import re
from pathlib import Path

import numpy as np
import pandas
import pytest

import luckbase
from luckbase.jobs import terminal
from luckbase.jobs.app import run
from luckbase.solver.errors import StateError
from luckbase.solver.search.expand import expand
from tests import solving
from tests.places import BOARDS

TINY = str(BOARDS / "press-your-luck/tiny.toml")


STATES = {
    "press-your-luck/tiny": ([0, 500, 0] + [0] * 9, [[0, 7, 0] + [0] * 9, [0] * 9 + [0, 5, 0],
                             [0] * 3 + [-1] + [0] * 8, [0] * 9 + [4] * 3]),
    "goofspiel/points": ([3, 3, 3, 0], [[-1, 3, 3, 0], [1, 3, 3, 0], [3, 3, 3, 99], [3, 3, 3, 5]]),
    "goofspiel/win": ([3, 3, 3, 0, 0], [[-1, 3, 3, 0, 0], [3, 3, 3, 0, 999]]),
    "jackpot/seed": ([511, 0, 0], [[-1, 0, 0], [511, 7, 7], [511, 0, 3], [511, 3, 0]]),
    "pig/race": ([0, 0, 0, 1], [[-1, 0, 0, 1], [0, 0, 0, 3], [100, 100, 0, 1]]),
    "pig/rounds": ([0, 0, 0, 1, 1], [[-1, 0, 0, 1, 1], [0, 0, 0, 1, 3], [0, 0, 0, 99, 1]]),
    "skunk/seed": ([0, 0, 0, 1], [[-1, 0, 0, 1], [0, 0, 0, 3], [100, 100, 0, 1]]),
}  # fmt: skip
"""Of each game a state, and what is none, in the numbers of its columns."""


@pytest.mark.parametrize(
    ("board", "wrong"), [(board, wrong) for board, (_, many) in STATES.items() for wrong in many]
)
def test_the_first_row_that_is_no_state_is_named(board, wrong):
    game = solving.load_game(solving.load_board(BOARDS / f"{board}.toml"))
    right = STATES[board][0]
    assert len(game.canonical_states(np.array([right] * 3))) == 3
    with pytest.raises(StateError, match=r"^row 3: "):
        game.canonical_states(np.array([right, right, wrong, right, wrong]))


@pytest.fixture(scope="module")
def results(table_of):
    return table_of(Path(TINY), frontier=1).parents[2]


def test_a_row_outside_the_table_is_named_in_a_large_batch(command, results, tmp_path):
    path, before = tmp_path / "in.csv", 10_500
    path.write_text("scores,earned\n" + '"0,500,0","0,1,0"\n' * before + '"0,500,0","0,7,0"\n' * 2)
    code, out, err = command("query", TINY, "--batch", path, "--results", results)
    assert (code, out) == (2, "")
    assert f"row {before + 1}: is beyond this table's frontier" in err


def asked(table, rows, capsys):
    """What `query` answers to each row."""
    answers = []
    for row in rows:
        words = [f"{name}={value}" for name, value in row.items() if value]
        assert run(["query", str(table), *words, "--json", "--max-states", "1"]) == 0
        answers.append(json.loads(capsys.readouterr().out))
    return answers


def assert_as_a_query(table, rows, path, capsys):
    """Write the rows to a file, and hold the batch's answers to those of a query, row by row."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    frame = pandas.DataFrame([{name: row.get(name) or None for name in names} for row in rows])
    out = path.with_name("out.parquet")
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    elif path.suffix == ".jsonl":
        frame.to_json(path, orient="records", lines=True)
    else:
        frame.to_parquet(path, index=False)
    assert run(["query", str(table), "--batch", str(path), "--best", "--out", str(out)]) == 0
    capsys.readouterr()
    result = pandas.read_parquet(out)
    for i, answer in enumerate(asked(table, rows, capsys)):
        value = [result[f"payoff_{player + 1}"][i] for player in range(len(answer["value"]))]
        assert value == pytest.approx(answer["value"], abs=1e-12)
        best = result["best"][i] if result["best"].notna()[i] else None
        assert (best, result["toss_up"][i]) == (answer["best"], answer["toss_up"])
    return result


GOOFSPIEL = [  # a row; between rows: a bid, the last one, one that is sure, the first
    {"mine": "1,2", "theirs": "1,3", "deck": "2,4", "upcard": ""},
    {"mine": "1,2", "theirs": "1,3", "deck": "2,4", "upcard": "4"},
    {"mine": "2", "theirs": "3", "deck": "2", "upcard": "2"},
    {"mine": "1,4", "theirs": "1,2", "deck": "2,4", "upcard": "2"},
    {"mine": "1,2,3,4", "theirs": "1,2,3,4", "deck": "1,2,3,4", "upcard": "1"},
]
LEADS = ["1", "-2", "", "3", ""]


WITH_LEADS = [row | {"lead": lead} for row, lead in zip(GOOFSPIEL, LEADS, strict=True)]


@pytest.mark.parametrize(
    ("board", "rows", "ending"),
    [("points", GOOFSPIEL, "csv"), ("points", GOOFSPIEL, "parquet"), ("win", WITH_LEADS, "jsonl")],
)
def test_a_batch_answers_what_a_query_answers_between_rows_too(
    board, rows, ending, table_of, tmp_path, capsys
):
    """A card is turned: the table holds only what comes next."""
    table = table_of(BOARDS / f"goofspiel/{board}.toml", cards=4)
    assert_as_a_query(table, rows, tmp_path / f"in.{ending}", capsys)


def test_a_batch_says_the_best_action_one_step_above_a_search(tmp_path, capsys):
    board = solving.load_board(TINY)
    game = solving.load_game(board)
    row = {"scores": "0,500,500", "earned": "0,2,0"}
    roots = expand(game, game.parse(row)[None]).children
    table = solving.solve_below(board, roots, results=tmp_path, workers=1).table
    below = {"scores": "0,0,500", "earned": "0,1,0"}
    result = assert_as_a_query(table, [below, row, below], tmp_path / "in.csv", capsys)
    assert result["best"][1] in ("play", "pass to 3")


def test_what_was_left_out_is_said_with_the_details(results, tmp_path, capsys):
    where = ["--results", str(results), "--set", "frontier=1"]
    assert run(["query", TINY, "scores=0,1000,500", *where]) == 2
    err = capsys.readouterr().err
    assert "with earned=0,0,0, which was left out; write, for example, earned=1,0,0" in err
    zeros = ["earned=0,0,0", "passed=0,0,0"]
    assert run(["query", TINY, "scores=0,1000,500", *zeros, *where]) == 0
    verdict, *_, left_out, _, _, _ = capsys.readouterr().out.splitlines()
    assert verdict == "The game is over" and left_out == "left out, so taken as: whammies=0,0,0"
    assert run(["query", TINY, "scores=0,1000,500", "earned=0,1,0", *where]) == 0
    assert "left out, so taken as: passed=0,0,0 whammies=0,0,0\n" in capsys.readouterr().out
    (tmp_path / "in.csv").write_text('scores,note,passed_1,passed_2,passed_3\n"0,0,0",,0,0,0\n')
    assert run(["query", TINY, "--batch", str(tmp_path / "in.csv"), *where]) == 0
    assert "left out, so taken as: earned=0,0,0 whammies=0,0,0\n" in capsys.readouterr().err
    for name, rows in (
        ("some.csv", 'scores,earned\n"0,0,0",\n"0,0,0","0,1,0"\n'),
        ("some.jsonl", '{"scores": "0,0,0"}\n{"scores": "0,0,0", "earned": "0,1,0"}\n'),
    ):
        (tmp_path / name).write_text(rows)
        assert run(["query", TINY, "--batch", str(tmp_path / name), *where]) == 0
        text = "left out, so taken as: earned=0,0,0 passed=0,0,0 whammies=0,0,0\n"
        assert text in capsys.readouterr().err, "in one row"
    full = ["scores=0,1000,500", "earned=0,1,0", "passed=0,0,0", "whammies=0,0,0"]
    assert run(["query", TINY, *full, *where]) == 0
    assert "left out" not in capsys.readouterr().out


def test_the_verdict_comes_first_in_bold_and_the_details_last_and_dim(results, capsys, monkeypatch):
    words = ["query", TINY, "scores=0,1000,500", "earned=0,1,0", "--set", "frontier=1"]
    words += ["--results", str(results)]
    assert run([*words, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    best, *_ = answer["actions"]
    assert run(words) == 0
    plain = capsys.readouterr().out.splitlines()
    share = f"{100 * best['value'][1]:.1f}%"
    assert plain[0].startswith(f"{best['action'].capitalize()}: {share}, ")
    assert plain[1].startswith("Player 2 is up; better by ") and "points" in plain[1]
    assert plain[-4].startswith("left out") and plain[-2].startswith("answered by tiny ")
    assert plain[-1] == "of the board as rounded, score_unit=500; grid error not measured"
    assert run([*words, "--digits", "7"]) == 0
    assert f"{best['value'][1]:.7f}" in capsys.readouterr().out
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    terminal.print_to_fit("the verdict", "bold")
    terminal.print_to_fit("details", "dim")
    terminal.print_to_fit("a reason")
    out = capsys.readouterr().out
    assert out == "\x1b[1mthe verdict\x1b[0m\n\x1b[2mdetails\x1b[0m\na reason\n"


def test_decisions_are_searched_from_above_and_followed_from_one_state(tmp_path, capsys):
    where = ["--set", "frontier=1", "--set", "decisions=3", "--results", str(tmp_path)]
    assert run(["solve", TINY, *where]) == 0
    capsys.readouterr()
    assert run(["query", TINY, "scores=0,500,1000", "earned=0,2,2", *where]) == 0
    assert "from the search" in capsys.readouterr().out
    state = ["scores=0,500,1000", "earned=0,2,1"]
    assert run(["query", TINY, *state, *where]) == 0
    out, err = capsys.readouterr()
    assert "from the stored decisions" in out and "(±" not in out
    assert "its chances take a little longer" in err
    for more, games in ((["--max-states", "5"], 2_500), (["--games", "2e2"], 200)):
        assert run(["query", TINY, *state, *more, *where]) == 0
        out = capsys.readouterr().out
        assert "from games by the stored decisions" in out
        (play,) = re.findall(r"Play: about ([\d.]+)% \(± ([\d.]+)\); pass", out)
        assert 0 < float(play[1]) < 60 / games**0.5


def test_a_sentence_is_answered_with_its_names_and_between_grid_states(table_of, command):
    """Payoffs between grid states are the weighted ones of these; the action is the nearest's."""
    where = table_of(BOARDS / "press-your-luck/tiny.toml", frontier=2)
    with luckbase.open(where) as table:
        low, high = (table.ask(f"scores={n},1000,500 earned=2,0,0") for n in (500, 1000))
        shown = table.ask("Ed $625, 2 spins; Peter 1000; Michael 500")
        assert table.ask("Ed 500, 2 spins; Peter 1k; Michael 500").value == low.value
    assert (shown.source, shown.best, shown.state) == ("interpolation", low.best, low.state)
    for now, first, second in zip(shown.value, low.value, high.value, strict=True):
        assert now == pytest.approx(0.75 * first + 0.25 * second, abs=1e-12)
    for action in shown.actions:
        expected = 0.75 * np.array(low[action.name]) + 0.25 * np.array(high[action.name])
        assert action.value == pytest.approx(expected, abs=1e-12)
    code, out, _ = command("query", where, "Ed $625, 2 spins;", "Peter 1000; Michael 500")
    assert code == 0 and "Ed between $500 and $1,000" in out and "Ed is up; better by " in out
    assert "player 1" not in out and "pass to 2" not in out


@pytest.mark.parametrize(
    ("board", "state", "best"),
    [
        ("pig/tiny", ["mine=10", "yours=19", "turn=3"], "roll"),
        ("shut-the-box-sum", ["open=1,2", "dice=1,2"], "flip 1+2"),
        ("press-your-luck/tiny", ["Ed 0, 1 spin; Peter 500, 1 spin; Michael 1000"], "play"),
    ],
)
def test_a_small_state_without_a_table_is_answered_by_search(
    board, state, best, command, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    code, out, err = command("query", board, *state, "--json")
    assert code == 0, err
    assert json.loads(out)["best"] == best
    assert f"{board}: no table of this board; searched " in err
    assert list(tmp_path.iterdir()) == []
