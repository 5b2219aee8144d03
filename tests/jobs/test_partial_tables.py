"""`luckbase export` and `diff` of a table that is half solved: they work, and say so."""

import json
from pathlib import Path

import pytest

from luckbase.cluster.store.storage import Folder
from luckbase.cluster.store.writer import read_manifest
from luckbase.jobs.app import run
from tests import solving
from tests.e2e.stopped import solve_until
from tests.places import ROOT
from tests.shared import rewrite

TINY = ROOT / "boards/press-your-luck/tiny.toml"
SIZE = {"score_cap": 1500, "max_whammies": 1}


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """The table of a board with a frontier of 2 whole, and stopped; and one of a frontier of 1."""
    result = {}
    for name, frontier in (("whole", 2), ("partial", 2), ("near", 1)):
        board = solving.load_board(TINY, frontier=frontier, **SIZE)
        results = tmp_path_factory.mktemp(name)
        if name == "partial":
            solve_until(board, results, 3)
        else:
            solving.solve_board(board, results=results, workers=1)
        (head,) = results.rglob("manifest.json")
        result[name] = str(head.parent)
    return result


def rows_and_words(table):
    with solving.open_table(table) as opened:
        return opened.rows, "".join(opened.unfinished())


def diff(capsys, *words):
    capsys.readouterr()
    code = run(["diff", *words, "--json"])
    text = capsys.readouterr()
    return code, json.loads(text.out), text.err


def test_an_export_says_that_its_table_is_not_whole(tables, tmp_path, capsys):
    out = tmp_path / "x.csv"
    rows, why = rows_and_words(tables["partial"])
    assert why.startswith("3 of its ") and why.endswith(" tiers are solved")
    assert run(["export", tables["partial"], "--out", str(out), "--json"]) == 0
    text = capsys.readouterr()
    assert f"{tables['partial']}: this table is not whole: {why}\n" in text.err
    assert json.loads(text.out)["unfinished"] == [why]
    assert len(out.read_text().splitlines()) == rows + 1
    assert run(["export", tables["whole"], "--out", str(out), "--json"]) == 0
    text = capsys.readouterr()
    assert "not whole" not in text.err and json.loads(text.out)["unfinished"] == []


@pytest.mark.parametrize("turned", [False, True])
def test_what_a_stopped_solve_left_out_is_a_difference(turned, tables, capsys):
    few, why = rows_and_words(tables["partial"])
    every, _ = rows_and_words(tables["whole"])
    pair = [tables["partial"], tables["whole"]][:: -1 if turned else 1]
    code, text, err = diff(capsys, *pair)
    assert code == 1 and f"{tables['partial']}: this table is not whole: {why}" in err
    assert text["only"] == [0, every - few][:: -1 if turned else 1] and few < every
    assert text["unfinished"] == [[why], []][:: -1 if turned else 1]
    assert text["missing_of"] == ("second" if turned else "first")
    name, other = ("second", "first") if turned else ("first", "second")
    assert text["says"][0] == (
        f"the {name} table is not whole ({why}) and lacks {every - few:,} states of the {other}"
    )
    assert text["payoffs"] == text["actions"] == 0
    assert run(["diff", *pair]) == 1
    printed = capsys.readouterr().out
    assert f"{every - few:,} of the {other} are not in the {name}" in printed
    assert f"0 of the {name} are not in the {other}" in printed
    code, text, _ = diff(capsys, *pair, "--sample", "50")
    assert code == 1 and text["only"] == [0, None][:: -1 if turned else 1]
    assert f"the {name} table is not whole ({why}) and may lack states" in text["says"][0]


def test_another_frontier_alone_is_no_difference(tables, capsys):
    (near, _), (far, _) = rows_and_words(tables["near"]), rows_and_words(tables["whole"])
    code, text, err = diff(capsys, tables["near"], tables["whole"])
    assert code == 0 and text["only"] == [0, far - near] and "not whole" not in err
    code, text, _ = diff(capsys, tables["partial"], tables["partial"])
    assert code == 0 and text["only"] == [0, 0] and text["unfinished"][0]


def test_a_first_solve_that_was_stopped_at_once_did_not_end(tables, tmp_path, capsys):
    manifest = read_manifest(Folder(Path(tables["partial"])), tmp_path)
    manifest.files.clear()
    rewrite(tmp_path, manifest)
    assert run(["verify", str(tmp_path)]) == 0
    assert "the table is partial: its solve did not end" in capsys.readouterr().out
    assert run(["verify", tables["partial"]]) == 0
    assert "the table is partial: its solve did not end" in capsys.readouterr().out
