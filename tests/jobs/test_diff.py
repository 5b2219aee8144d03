"""`luckbase diff` on the command line: plain words first, files and pictures, the same as JSON;
which table is the first and which the second, whichever has more states."""

import errno
import json
import re

import pytest

from luckbase.cluster.answers import charts
from luckbase.jobs.app import run
from tests import solving
from tests.places import BOARDS
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
    assert any(" one holds " in line and " from " in line for line in lines[:empty])
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
