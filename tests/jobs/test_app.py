"""The command line: exit codes, sentences, JSON, pipes, interruption."""

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import luckbase
from tests.places import ROOT
from tests.shared import python

TINY = str(ROOT / "boards/press-your-luck/tiny.toml")


@pytest.fixture(scope="module")
def results(table_of):
    """A results folder with the tiny board's table."""
    return table_of(Path(TINY), frontier=1).parents[2]


def test_the_answer_to_a_state_does_not_load_what_only_others_need(results):
    """Half of what it took: numba, and with it the compiled rules, which run as Python."""
    code = (
        "import sys; from luckbase.jobs.app import run; run(sys.argv[1:]);"
        "print([m for m in ('ray', 'numba', 'pandas', 'vl_convert', 'obstore', 'pyarrow.csv',"
        " 'pyarrow.json', 'pyarrow.dataset', 'scipy') if m in sys.modules])"
    )
    words = ["query", TINY, "scores=0,1000,500", "earned=0,1,0", "--results", results]
    done = python("-c", code, *words)
    assert "passing to 3" in done.stdout.lower() and done.stdout.strip().endswith("[]")


def test_query_answers_with_the_contracts_fields_in_their_order(command, results):
    code, out, _ = command(
        "query", TINY, "scores=0,1000,500", "earned=0,1,0", "--json", "--results", str(results)
    )
    assert code == 0
    answer = json.loads(out)
    assert list(answer) == [
        "board", "options", "solve_id", "stale", "state", "to_act", "value", "actions", "best",
        "margin", "toss_up", "error", "source", "why", "grid",
    ]  # fmt: skip
    assert (answer["board"], answer["stale"]) == ("tiny", [])
    assert answer["options"] == {"score_cap": 3000, "score_unit": 500}
    assert [path.name for path in results.glob("*/*/*")] == [answer["solve_id"]]
    assert answer["state"] == {
        "scores": [0, 1000, 500], "earned": [0, 1, 0], "passed": [0, 0, 0], "whammies": [0, 0, 0],
    }  # fmt: skip
    assert answer["to_act"] == 2
    assert [a["action"] for a in answer["actions"]] == ["play", "pass to 3"]
    assert answer["best"] == "play"
    assert answer["source"] == "table"
    assert sum(answer["value"]) == pytest.approx(1, abs=1e-6)
    assert answer["actions"][0]["value"][1] > answer["actions"][1]["value"][1]


STATES = "scores_1,scores_2,scores_3,earned_1,earned_2,earned_3\n0,1000,500,0,1,0\n500,0,0,1,0,0\n"


def test_a_batch_answers_csv_json_lines_and_parquet_alike(command, results, tmp_path):
    (tmp_path / "in.csv").write_text(STATES)
    lines = [{"scores": [0, 1000, 500], "earned": [0, 1, 0]},
             {"scores": [500, 0, 0], "earned": [1, 0, 0]}]  # fmt: skip
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    pq.write_table(pa.Table.from_pylist(lines), tmp_path / "in.parquet")
    (tmp_path / "tabs.csv").write_text(STATES.replace(",", "\t"))
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
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(STATES.encode())))
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
