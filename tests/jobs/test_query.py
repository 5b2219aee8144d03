"""Questions on the command line: what is printed, batches, exports, streams; and the table that was
asked for, or none, by its rules identity."""

import contextlib
import csv
import io
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import luckbase
from luckbase.jobs import terminal
from luckbase.solver.board.model import rules_identity
from luckbase.solver.errors import StateError
from tests import solving
from tests.places import BOARDS, ROOT
from tests.shared import python

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


def test_what_was_left_out_is_said_with_the_details(results, tmp_path, command):
    scores, where = "scores=0,1000,500", ["--results", results, "--set", "frontier=1"]
    code, _, err = command("query", TINY, scores, *where)
    assert code == 2
    assert "with earned=0,0,0, which was left out; write, for example, earned=1,0,0" in err
    zeros = ["earned=0,0,0", "passed=0,0,0"]
    verdict, *_, left_out, _, _, _ = command("query", TINY, scores, *zeros, *where)[1].splitlines()
    assert verdict == "The game is over" and left_out == "left out, so taken as: whammies=0,0,0"
    _, out, _ = command("query", TINY, scores, *zeros, "whammies=0,0,0", *where)
    assert "left out" not in out
    every = "earned=0,0,0 passed=0,0,0 whammies=0,0,0"
    for name, rows, said in (
        ("all.csv", 'scores,note,passed_1,passed_2,passed_3\n"0,0,0",,0,0,0\n',
         "earned=0,0,0 whammies=0,0,0"),
        ("some.csv", 'scores,earned\n"0,0,0",\n"0,0,0","0,1,0"\n', every),
        ("some.jsonl", '{"scores": "0,0,0"}\n{"scores": "0,0,0", "earned": "0,1,0"}\n', every),
    ):  # fmt: skip
        (tmp_path / name).write_text(rows)
        code, _, err = command("query", TINY, "--batch", tmp_path / name, *where)
        assert code == 0 and f"left out, so taken as: {said}\n" in err


def test_the_verdict_comes_first_in_bold_and_the_details_last_and_dim(
    results, command, monkeypatch
):
    words = ["query", TINY, "scores=0,1000,500", "earned=0,1,0", "--results", results]
    lines = command(*words)[1].splitlines()
    assert lines[0].startswith("Play: 77.7%, ") and lines[-4].startswith("left out")
    assert lines[1] == "Player 2 is up; better by 28 points"
    assert lines[-2].startswith("answered by tiny ")
    assert lines[-1] == "of the board as rounded, score_unit=500; grid error not measured"
    assert "0.7774063" in command(*words, "--digits", "7")[1]
    monkeypatch.setenv("TERM", "xterm-256color")
    with contextlib.redirect_stdout(io.StringIO()) as out:
        out.isatty = lambda: True
        terminal.print_to_fit("the verdict", "bold")
        terminal.print_to_fit("details", "dim")
        terminal.print_to_fit("a reason")
    assert out.getvalue() == "\x1b[1mthe verdict\x1b[0m\n\x1b[2mdetails\x1b[0m\na reason\n"


def test_how_an_answer_from_decisions_was_found_is_said(table_of, command):
    table = table_of(Path(TINY), frontier=1, decisions=3)
    state = ["scores=0,500,1000", "earned=0,2,1"]
    assert "from the search" in command("query", table, state[0], "earned=0,2,2")[1]
    _, out, err = command("query", table, *state)
    assert "from the stored decisions" in out and "(±" not in out
    assert "its chances take a little longer" in err
    for more, games in ((["--max-states", "5"], 2_500), (["--games", "2e2"], 200)):
        _, out, _ = command("query", table, *state, *more)
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


# --- rows, and every action -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def table(results):
    return str(next(results.glob("*/*/*")))


def test_an_export_says_what_it_wrote(table, tmp_path, command):
    out = tmp_path / "x.csv"
    _, text, err = command("export", table, "scores=0,1000,500", "earned=0,1,0", "--out", out)
    result = pandas.read_csv(out)
    assert text == "" and f"{out}: {len(result)} rows, 32 columns, " in err
    assert (result["best"] == "play").any() and "part" not in result.columns
    words = ["--columns", "margin, scores_2", "--json", "--out", out]
    done = json.loads(command("export", table, "best=play scores_1=0", *words)[1])
    assert (done["columns"], done["out"]) == (["margin", "scores_2"], str(out))
    assert (done["rows"], done["bytes"]) == (len(pandas.read_csv(out)), out.stat().st_size)


def test_a_batch_as_json_is_what_single_questions_print(table, tmp_path, command):
    rows = [("0,1000,500", "0,1,0"), ("500,0,0", "1,0,0"), ("0,0,0", "0,0,0")] * 2
    batch, out = tmp_path / "in.csv", tmp_path / "out"
    lines = "".join(f'"{scores}","{earned}",{i}\n' for i, (scores, earned) in enumerate(rows))
    batch.write_text(f"scores,earned,number\n{lines}")
    single = []
    for scores, earned in rows:
        _, text, _ = command("query", table, f"scores={scores}", f"earned={earned}", "--json")
        answer = json.loads(text)
        assert all(isinstance(sentence, str) for sentence in answer.pop("why"))  # of one state only
        single.append(json.dumps(answer))
    assert command("query", table, "--batch", batch, "--json")[1].splitlines() == single
    assert command("query", table, "--batch", batch, "--json", "--out", f"{out}.jsonl")[0] == 0
    assert Path(f"{out}.jsonl").read_text().splitlines() == single
    assert command("query", table, "--batch", batch, "--actions", "--out", f"{out}.parquet")[0] == 0
    columns = pandas.read_parquet(f"{out}.parquet")
    assert columns["play_payoff_2"][0] == json.loads(single[0])["actions"][0]["value"][1]


def test_the_answer_to_a_state_does_not_load_what_only_others_need(results):
    """Half of what it took: numba, and with it the compiled rules, which run as Python."""
    code = (
        "import sys; from luckbase.jobs.app import run; run(sys.argv[1:]);"
        "print([m for m in ('ray', 'numba', 'pandas', 'vl_convert', 'obstore', 'pyarrow.csv',"
        " 'pyarrow.json', 'pyarrow.dataset', 'scipy') if m in sys.modules])"
    )
    words = ["query", TINY, "scores=0,1000,500", "earned=0,1,0", "--results", results]
    done = python("-c", code, *words)
    assert "passing to player 3" in done.stdout.lower() and done.stdout.strip().endswith("[]")


def test_query_answers_with_the_contracts_fields_in_their_order(command, table):
    answer = json.loads(command("query", table, "scores=0,1000,500", "earned=0,1,0", "--json")[1])
    assert list(answer) == [
        "board", "options", "solve_id", "stale", "state", "to_act", "value", "actions", "best",
        "margin", "toss_up", "error", "source", "why", "grid",
    ]  # fmt: skip
    assert (answer["board"], answer["stale"], answer["source"]) == ("tiny", [], "table")
    assert answer["options"] == {"score_cap": 3000, "score_unit": 500}
    assert answer["solve_id"] == Path(table).name
    assert answer["state"] == {
        "scores": [0, 1000, 500], "earned": [0, 1, 0], "passed": [0, 0, 0], "whammies": [0, 0, 0],
    }  # fmt: skip
    assert (answer["to_act"], answer["best"]) == (2, "play")
    assert [a["action"] for a in answer["actions"]] == ["play", "pass to 3"]


ROWS = "scores_1,scores_2,scores_3,earned_1,earned_2,earned_3\n0,1000,500,0,1,0\n500,0,0,1,0,0\n"


def test_a_batch_answers_csv_json_lines_and_parquet_alike(command, results, tmp_path):
    (tmp_path / "in.csv").write_text(ROWS)
    lines = [{"scores": [0, 1000, 500], "earned": [0, 1, 0]},
             {"scores": [500, 0, 0], "earned": [1, 0, 0]}]  # fmt: skip
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    pq.write_table(pa.Table.from_pylist(lines), tmp_path / "in.parquet")
    (tmp_path / "tabs.csv").write_text(ROWS.replace(",", "\t"))
    lists = [";".join(",".join(map(str, line[name])) for name in line) for line in lines]
    (tmp_path / "lists.csv").write_text("\n".join(["scores;earned", *lists]))
    answers = []
    for name in ("in.csv", "in.jsonl", "in.parquet", "tabs.csv", "lists.csv"):
        out = tmp_path / f"out-{name}.jsonl"
        words = ["--batch", tmp_path / name, "--out", out, "--best", "--results", results]
        assert command("query", TINY, *words)[0] == 0
        rows = [json.loads(line) for line in out.read_text().splitlines()]
        answers.append([[row["best"], *(row[f"payoff_{i}"] for i in (1, 2, 3))] for row in rows])
    assert all(each == answers[0] for each in answers)
    with luckbase.open(TINY, results=results) as table:
        single = [table.ask(line) for line in lines]
    assert answers[0] == [[answer.best, *answer.value] for answer in single]


def test_a_batch_goes_through_a_pipe(command, results, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(ROWS.encode())))
    code, out, _ = command("query", TINY, "--batch", "-", "--results", results)
    rows = list(csv.DictReader(io.StringIO(out)))
    assert (code, len(rows)) == (0, 2)
    assert float(rows[0]["payoff_2"]) == pytest.approx(0.7774063, abs=1e-6)


@pytest.mark.parametrize(
    ("closed", "fields", "code"),
    [(">&-", "scores=0,0,0 earned=1,0,0", 0), ("<&- >&-", "--batch -", 2),
     ("2>&-", "scores=0,0,0 earned=1,0,0", 0)],
)  # fmt: skip
def test_a_stream_that_is_closed_is_quiet(results, closed, fields, code):
    done = subprocess.run(
        f"{sys.executable} -m luckbase query {TINY} {fields} --results {results} {closed}",
        shell=True, cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == code
    assert "Traceback" not in done.stderr and "luckbase: " not in done.stdout


# --- the table that was asked for -----------------------------------------------------------------


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
