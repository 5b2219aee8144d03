"""`luckbase diff` on the command line: plain words first, files and pictures; which table is the
first and which the second, whichever has more states; tables that are not whole."""

import errno
import json
import re
from pathlib import Path

import pytest

import luckbase
from luckbase.cluster.answers import charts
from luckbase.cluster.store.storage import Folder
from luckbase.cluster.store.writer import read_manifest
from tests import solving
from tests.e2e.stopped import solve_until
from tests.places import BOARDS
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


def test_the_first_lines_say_it_plainly_and_a_picture_and_a_file_are_made(words, command, tmp_path):
    picture, file = tmp_path / "moved.pdf", tmp_path / "moved.csv"
    code, out, _ = command(*words, "--picture", picture, "--out", file)
    before, _, after = out.partition("\nfirst ")
    assert code == 1 and re.search(r"^ *case +before +now +moved +cost *$", before, re.MULTILINE)
    assert re.search(r", the player holds .* from ", before) and "all decisions " in before
    assert re.search(r"^ *state +cost", after, re.MULTILINE)
    assert picture.stat().st_size > 2000
    rows = file.read_text().splitlines()
    assert rows[0].startswith('"mine","yours","turn","player","to_act","best_first"')
    assert len(rows) > 10


def test_a_picture_names_the_boards_or_of_one_board_the_tables(
    words, tables, command, tmp_path, monkeypatch
):
    titles = []
    monkeypatch.setattr(
        charts, "draw", lambda picture, _: titles.append(f"{picture.title} {picture.about}") or b""
    )
    picture = tmp_path / "x.png"
    assert command(*words, "--picture", picture)[0] == 1
    assert command("diff", tables["large a"], tables["large c"], "--picture", picture)[0] == 1
    assert re.search(r"tiny \(\w+\) in place of tiny \(\w+\)", titles[0])
    assert "c in place of a" in titles[1]


def test_a_picture_that_fails_leaves_the_answer(words, command, tmp_path, monkeypatch):
    def fails(*_):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(charts, "draw", fails)
    code, out, err = command(*words, "--picture", tmp_path / "x.png")
    assert code == 2 and "all decisions" in out and err.endswith("Input/output error\n")


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


@pytest.mark.parametrize(
    ("first", "second", "only"),
    [
        ("large a", "large c", (0, 0)),
        ("large a", "small c", (3, 0)),
        ("small c", "large a", (0, 3)),
    ],
)
def test_best_actions_and_states_of_one_table_only_stand_in_the_order_of_the_tables(
    tables, command, first, second, only
):
    """0, 6 and 7 are not below 1."""
    with luckbase.open(tables[first]) as one, luckbase.open(tables[second]) as two:
        result = one.diff(two)
        query = [each.ask(at=1).best for each in (one, two)]
    (worst,) = [item for item in result.worst if item.state == {"at": 1}]
    assert list(worst.best) == query == [first[-1], second[-1]]
    assert tuple(result.only) == only
    lines = command("diff", tables[first], tables[second])[1].splitlines()
    head = next(line for line in lines if line.split()[:2] == ["state", "cost"])
    assert head.index("before") < head.index("now")
    assert next(line for line in lines if "at=1" in line).split()[-2:] == query


# --- half solved tables: export and diff work, and say so -----------------------------------------

TINY = BOARDS / "press-your-luck/tiny.toml"


@pytest.fixture(scope="module")
def halves(tmp_path_factory):
    """The table of a board with a frontier of 2 whole, and stopped; and one of a frontier of 1."""
    result = {}
    for name, frontier in (("whole", 2), ("partial", 2), ("near", 1)):
        board = solving.load_board(TINY, frontier=frontier, score_cap=1500, max_whammies=1)
        results = tmp_path_factory.mktemp(name)
        if name == "partial":
            solve_until(board, results, 3)
        else:
            solving.solve_board(board, results=results, workers=1)
        (head,) = results.rglob("manifest.json")
        result[name] = luckbase.open(head.parent)
    yield result
    for table in result.values():
        table.close()


def test_an_export_says_that_its_table_is_not_whole(halves, tmp_path, command):
    out, partial = tmp_path / "x.csv", halves["partial"]
    (why,) = partial.unfinished()
    assert re.fullmatch(r"3 of its \d+ tiers are solved", why)
    code, _, err = command("export", partial.where, "--out", out)
    assert code == 0 and f"{partial.where}: this table is not whole: {why}\n" in err
    assert len(out.read_text().splitlines()) == partial.rows + 1
    _, text, _ = command("export", partial.where, "--out", out, "--json")
    assert json.loads(text)["unfinished"] == [why]
    assert "not whole" not in command("export", halves["whole"].where, "--out", out)[2]


@pytest.mark.parametrize("name", ["first", "second"])
def test_what_a_stopped_solve_left_out_is_a_difference(name, halves, command):
    partial, whole = halves["partial"], halves["whole"]
    (why,), lacks = partial.unfinished(), whole.rows - partial.rows
    order, other = (1, "second") if name == "first" else (-1, "first")
    pair = [partial, whole][::order]
    result = pair[0].diff(pair[1])
    assert result.differs and list(result.only) == [0, lacks][::order] and lacks > 0
    assert list(result.unfinished) == [[why], []][::order] and result.missing_of == name
    said = f"the {name} table is not whole ({why}) and lacks {lacks:,} states of the {other}"
    assert result.sentences[0] == said and result.actions == 0
    code, out, err = command("diff", *(table.where for table in pair))
    assert code == 1 and f"{partial.where}: this table is not whole: {why}" in err
    assert f"{lacks:,} of the {other} are not in the {name}" in out
    assert f"0 of the {name} are not in the {other}" in out
    result = pair[0].diff(pair[1], sample=50)
    assert result.differs and list(result.only) == [0, None][::order]
    assert f"the {name} table is not whole ({why}) and may lack states" in result.sentences[0]


def test_another_frontier_alone_is_no_difference(halves):
    near, whole, partial = halves["near"], halves["whole"], halves["partial"]
    result = near.diff(whole)
    assert not result.differs and list(result.only) == [0, whole.rows - near.rows]
    assert list(result.unfinished) == [[], []]
    result = partial.diff(partial)
    assert not result.differs and list(result.only) == [0, 0] and result.unfinished[0]


def test_a_first_solve_that_was_stopped_at_once_did_not_end(halves, tmp_path, command):
    partial = Path(halves["partial"].where)
    manifest = read_manifest(Folder(partial), tmp_path)
    manifest.files.clear()
    rewrite(tmp_path, manifest)
    for table in (tmp_path, partial):
        code, out, _ = command("verify", table)
        assert code == 0 and "the table is partial: its solve did not end" in out
