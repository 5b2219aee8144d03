"""``luckbase export`` and batches with every action, as they are typed."""

import json

import pandas
import pytest

from luckbase.jobs.app import run
from tests.places import ROOT

TINY = ROOT / "boards/press-your-luck/tiny.toml"


@pytest.fixture(scope="module")
def table(table_of):
    return str(table_of(TINY, frontier=1))


def test_an_export_says_what_it_wrote(table, tmp_path, capsys):
    out = tmp_path / "x.csv"
    assert run(["export", table, "scores=0,1000,500", "earned=0,1,0", "--out", str(out)]) == 0
    text = capsys.readouterr()
    result = pandas.read_csv(out)
    assert text.out == "" and f"{out}: {len(result)} rows, 32 columns, " in text.err
    assert (result["best"] == "play").any() and "part" not in result.columns
    words = ["--columns", "margin, scores_2", "--json", "--out", str(out)]
    assert run(["export", table, "best=play scores_1=0", *words]) == 0
    done = json.loads(capsys.readouterr().out)
    assert (done["columns"], done["out"]) == (["margin", "scores_2"], str(out))
    assert (done["rows"], done["bytes"]) == (len(pandas.read_csv(out)), out.stat().st_size)


ROWS = [("0,1000,500", "0,1,0"), ("500,0,0", "1,0,0"), ("0,0,0", "0,0,0"), ("0,1000,500", "0,1,0")]


@pytest.fixture
def batch(tmp_path):
    path = tmp_path / "in.csv"
    lines = "".join(f'"{scores}","{earned}",{i}\n' for i, (scores, earned) in enumerate(ROWS))
    path.write_text(f"scores,earned,number\n{lines}")
    return str(path)


def test_a_batch_as_json_is_what_single_questions_print(table, batch, tmp_path, capsys):
    assert run(["query", table, "--batch", batch, "--json"]) == 0
    lines = capsys.readouterr().out.splitlines()
    single = []
    for scores, earned in ROWS:
        assert run(["query", table, f"scores={scores}", f"earned={earned}", "--json"]) == 0
        answer = json.loads(capsys.readouterr().out)
        assert all(isinstance(sentence, str) for sentence in answer.pop("why"))  # of one state only
        assert answer["grid"].startswith("of the board as rounded")
        single.append(json.dumps(answer))
    assert lines == single
    out = tmp_path / "out.jsonl"
    assert run(["query", table, "--batch", batch, "--json", "--out", str(out)]) == 0
    assert out.read_text().splitlines() == single
    out = tmp_path / "out.parquet"
    assert run(["query", table, "--batch", batch, "--actions", "--out", str(out)]) == 0
    rows = pandas.read_parquet(out)
    assert rows["play_payoff_2"][0] == json.loads(single[0])["actions"][0]["value"][1]
