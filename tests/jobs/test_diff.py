"""`luckbase diff` on the command line: plain words first, files and pictures, the same as JSON;
which table is the first and which the second, whichever has more states."""

import errno
import json
import re
from pathlib import Path

import pytest

from luckbase.cluster.answers import charts
from luckbase.cluster.store.storage import Folder
from luckbase.cluster.store.writer import read_manifest
from luckbase.jobs.app import run
from tests import solving
from tests.e2e.stopped import solve_until
from tests.places import BOARDS, ROOT
from tests.shared import rewrite
from tests.solver.search.written_out import board_of, chance, decides, over
from tests.solving import load_game

BOARD = str(BOARDS / "skunk/tiny.toml")


@pytest.fixture(scope="module")
def words(results_of):
    """Two boards whose tables are there, and where."""
    results = results_of((BOARD, {"goal": 10}), (BOARD, {"goal": 10, "sides": 2}))
    return ["diff", BOARD, BOARD, "--set", "goal=10", "--set-second", "sides=2",
            "--results", str(results)]  # fmt: skip


def test_the_first_lines_say_it_plainly(words, capsys):
    assert run(words) == 1
    lines = capsys.readouterr().out.splitlines()
    (empty,) = [i for i, line in enumerate(lines) if line.startswith("first ")]
    (head,) = [line for line in lines[:empty] if line.split()[:3] == ["case", "before", "now"]]
    assert head.split()[-2:] == ["moved", "cost"]
    assert any(", the player holds " in line and " from " in line for line in lines[:empty])
    assert any(line.split()[:2] == ["all", "decisions"] for line in lines[:empty])
    assert any(line.split()[:2] == ["state", "cost"] for line in lines[empty:])


def test_a_picture_names_the_boards_or_of_one_board_the_tables(
    words, tables, tmp_path, monkeypatch
):
    titles = []
    monkeypatch.setattr(
        charts, "draw", lambda picture, _: titles.append(f"{picture.title} {picture.about}") or b""
    )
    picture = str(tmp_path / "x.png")
    assert run([*words, "--picture", picture]) == 1
    assert run(["diff", tables["large a"], tables["large c"], "--picture", picture]) == 1
    assert re.search(r"tiny \(\w+\) in place of tiny \(\w+\)", titles[0])
    assert "c in place of a" in titles[1]


def test_a_picture_and_a_file(words, tmp_path):
    picture, out = tmp_path / "moved.pdf", tmp_path / "moved.csv"
    assert run([*words, "--picture", str(picture), "--out", str(out)]) == 1
    assert picture.stat().st_size > 2000
    rows = out.read_text().splitlines()
    assert rows[0].startswith('"mine","yours","turn","player","to_act","best_first"')
    assert len(rows) > 10


def test_a_picture_that_fails_leaves_the_answer(words, tmp_path, capsys, monkeypatch):
    def fails(*_):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(charts, "draw", fails)
    assert run([*words, "--picture", str(tmp_path / "x.png")]) == 2
    text = capsys.readouterr()
    assert "all decisions" in text.out and text.err.endswith("Input/output error\n")


# --- whichever has more states -------------------------------------------------------------------


def board(best):
    """The player at 1 has three actions, of which `best` is best; 7 lies below 0 only."""
    paid = [over(0.25, 0.0), over(0.25, 0.0), over(0.25, 0.0)]
    paid[best] = over(0.75, 0.0)
    start = chance((0.5, 1), (0.5, 6))
    choice = decides(0, [(1.0, 2)], [(1.0, 3)], [(1.0, 4)])
    return (start, choice, *paid, over(0.0, 0.0), chance((1.0, 7)), chance((1.0, 5)))


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Of two boards a table of everything, and one of what lies below 1 only."""
    result = {}
    for name, best in (("a", 0), ("c", 2)):
        created = board_of(*board(best), name=name)
        for size, root in (("large", 0), ("small", 1)):
            roots = load_game(created).parse({"at": str(root)}).reshape(1, -1)
            results = tmp_path_factory.mktemp(size)
            solved = solving.solve_below(created, roots, results=results, workers=1)
            result[f"{size} {name}"] = str(solved.table)
    return result


@pytest.fixture
def ask(capsys):
    def call(*words):
        capsys.readouterr()
        run([*words, "--json"])
        return json.loads(capsys.readouterr().out)

    return call


@pytest.mark.parametrize(
    ("first", "second", "only"),
    [
        ("large a", "large c", [0, 0]),
        ("large a", "small c", [3, 0]),
        ("small c", "large a", [0, 3]),
    ],
)
def test_best_actions_and_states_of_one_table_only_stand_in_the_order_of_the_tables(
    tables, ask, first, second, only
):
    """0, 6 and 7 are not below 1."""
    text = ask("diff", tables[first], tables[second])
    (worst,) = [item for item in text["worst"] if item["state"] == {"at": 1}]
    query = [ask("query", tables[name], "at=1")["best"] for name in (first, second)]
    assert worst["best"] == query == [first[-1], second[-1]]
    assert text["only"] == only


def test_the_best_actions_are_printed_under_their_tables(tables, capsys):
    assert run(["diff", tables["large a"], tables["small c"]]) == 1
    lines = capsys.readouterr().out.splitlines()
    head = next(line for line in lines if line.split()[:2] == ["state", "cost"])
    row = next(line for line in lines if "at=1" in line)
    assert head.index("before") < head.index("now")
    assert row.split()[-2:] == ["a", "c"]


# --- half solved tables: export and diff work, and say so -----------------------------------------

TINY = ROOT / "boards/press-your-luck/tiny.toml"
SIZE = {"score_cap": 1500, "max_whammies": 1}


@pytest.fixture(scope="module")
def halves(tmp_path_factory):
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


def test_an_export_says_that_its_table_is_not_whole(halves, tmp_path, capsys):
    out = tmp_path / "x.csv"
    rows, why = rows_and_words(halves["partial"])
    assert why.startswith("3 of its ") and why.endswith(" tiers are solved")
    assert run(["export", halves["partial"], "--out", str(out), "--json"]) == 0
    text = capsys.readouterr()
    assert f"{halves['partial']}: this table is not whole: {why}\n" in text.err
    assert json.loads(text.out)["unfinished"] == [why]
    assert len(out.read_text().splitlines()) == rows + 1
    assert run(["export", halves["whole"], "--out", str(out), "--json"]) == 0
    text = capsys.readouterr()
    assert "not whole" not in text.err and json.loads(text.out)["unfinished"] == []


@pytest.mark.parametrize("name", ["first", "second"])
def test_what_a_stopped_solve_left_out_is_a_difference(name, halves, capsys):
    few, why = rows_and_words(halves["partial"])
    lacks = rows_and_words(halves["whole"])[0] - few
    order, other = (1, "second") if name == "first" else (-1, "first")
    pair = [halves["partial"], halves["whole"]][::order]
    code, text, err = diff(capsys, *pair)
    assert code == 1 and f"{halves['partial']}: this table is not whole: {why}" in err
    assert text["only"] == [0, lacks][::order] and lacks > 0
    assert text["unfinished"] == [[why], []][::order] and text["missing_of"] == name
    said = f"the {name} table is not whole ({why}) and lacks {lacks:,} states of the {other}"
    assert text["says"][0] == said and text["payoffs"] == text["actions"] == 0
    assert run(["diff", *pair]) == 1
    printed = capsys.readouterr().out
    assert f"{lacks:,} of the {other} are not in the {name}" in printed
    assert f"0 of the {name} are not in the {other}" in printed
    code, text, _ = diff(capsys, *pair, "--sample", "50")
    assert code == 1 and text["only"] == [0, None][::order]
    assert f"the {name} table is not whole ({why}) and may lack states" in text["says"][0]


def test_another_frontier_alone_is_no_difference(halves, capsys):
    (near, _), (far, _) = rows_and_words(halves["near"]), rows_and_words(halves["whole"])
    code, text, err = diff(capsys, halves["near"], halves["whole"])
    assert code == 0 and text["only"] == [0, far - near] and "not whole" not in err
    code, text, _ = diff(capsys, halves["partial"], halves["partial"])
    assert code == 0 and text["only"] == [0, 0] and text["unfinished"][0]


def test_a_first_solve_that_was_stopped_at_once_did_not_end(halves, tmp_path, capsys):
    manifest = read_manifest(Folder(Path(halves["partial"])), tmp_path)
    manifest.files.clear()
    rewrite(tmp_path, manifest)
    assert run(["verify", str(tmp_path)]) == 0
    assert "the table is partial: its solve did not end" in capsys.readouterr().out
    assert run(["verify", halves["partial"]]) == 0
    assert "the table is partial: its solve did not end" in capsys.readouterr().out
