"""docs/reference/table-format.md says enough: a reader made from it answers as `query` does."""

import random
import re
import shutil
from collections import deque

import pytest

import luckbase
from luckbase.jobs.app import run
from luckbase.solver.games.goofspiel import full_table as layout
from tests import solving
from tests.docs.reader import Reader, RefusedError, key_fields
from tests.places import ROOT

PAGE = ROOT / "docs/reference/table-format.md"
TINY = "press-your-luck/tiny"
SOLVES = {
    TINY: (
        ["--set", "frontier=1"],
        ["--from", "scores=0,1000,500", "earned=0,1,2"],
        ["--from", "scores=500,0,1000", "earned=1,0,2"],
    ),
    "goofspiel/points": (["--set", "cards=6"],),
    "goofspiel/win": (["--set", "cards=4"],),
    "skunk/tiny": ([],),
    "pig/tiny": (["--set", "goal=12"],),
    "pig/rounds": (["--set", "rounds=2", "--set", "cut=20"],),
    "jackpot/tiny": ([],),
    "jackpot/shut-the-box": (["--set", "tiles=5"],),
}
"""The solves of each table, over a board; a search of Goofspiel stands alone (`a_search`)."""


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """A table of every kind, each under a results folder of its own; Goofspiel's in parts."""
    hands = ["--from", "mine=1,4,5", "theirs=2,3,4", "deck=1,2,5", "lead=2", "--set", "cards=5"]
    every = {**{name: (name, solves) for name, solves in SOLVES.items()},
             "a_search": ("goofspiel/win", (hands,))}  # fmt: skip
    result = {}
    with pytest.MonkeyPatch.context() as patched:
        layout.layer_of.cache_clear()
        patched.setattr("luckbase.solver.game.game._loaded", deque())
        patched.setattr(layout, "GAMES_A_PART", 1000)
        for name, (board, solves) in every.items():
            if name == "a_search":
                layout.layer_of.cache_clear()
            results = tmp_path_factory.mktemp("results")
            for words in solves:
                assert run(["solve", board, *words, "--results", str(results)]) == 0
            (manifest,) = results.glob("*/*/*/manifest.json")
            result[name] = manifest.parent
    layout.layer_of.cache_clear()
    return result


EACH_TABLE = pytest.mark.parametrize("name", [*SOLVES, "a_search"])


def words_of(head, row):
    """A row's state as a person asks about it."""
    message = {}
    names = [name for name, _ in key_fields(head)]
    for name, value in row.items():
        field = name.rpartition("_")[0] if name[-1].isdigit() else name
        if name not in names or (field in ("upcard", "dice") and not value):
            continue
        text = str(value).replace(" ", ",")
        message[field] = f"{message[field]},{text}" if field in message else text
    return message


def drawn(reader, part, count):
    """Rows of a part, some of each of several files."""
    result = []
    entries = [entry for entry in reader.entries(part) if entry["rows"]]
    for entry in random.sample(entries, min(4, len(entries))):
        read = reader.group(entry, random.randrange(reader.groups(entry)))
        for index in random.sample(range(len(read)), min(count, len(read))):
            result += read.slice(index, 1).to_pylist()
    return result


@EACH_TABLE
def test_the_reader_finds_every_row_by_its_key(tables, name):
    random.seed(name)
    reader = Reader(tables[name])
    assert reader.complete
    assert reader.read_all() == sum(entry["rows"] for entry in reader.files.values())
    for part in reader.parts():
        for row in drawn(reader, part, 12):
            state = {k: row[k] for k, _ in key_fields(reader.head)} if "key" in row else row
            by_key = reader.in_tiers(row) if part == "tiers" else reader.in_search(part, state)
            assert by_key is not None and by_key.columns == row and not by_key.swapped


@EACH_TABLE
def test_the_reader_answers_as_query_does(tables, name):
    random.seed(name)
    reader, query = Reader(tables[name]), 0
    with luckbase.open(tables[name]) as table:
        for part in reader.parts():
            for row in drawn(reader, part, 2 if part == "tiers" and len(reader.files) > 2 else 8):
                found = reader.find(row)[1]
                answer = table.ask(words_of(reader.head, row))
                query += 1
                if row["to_act"] == 0 and row.get("upcard"):  # both bid at once: it solves it again
                    assert list(answer.value) == pytest.approx(found.list("payoff"), abs=1e-12)
                    continue
                assert list(answer.value) == found.list("payoff"), row
                assert answer.to_act == (found.columns["to_act"] or None)
                assert (answer.best, answer.error) == (found.columns["best"], found.error)
                if found.columns.get("margin") is not None:
                    assert answer.margin == pytest.approx(found.columns["margin"], abs=1e-6)
    assert query >= 3


def test_the_swap_of_a_goofspiel_state_has_the_payoffs_exchanged(tables):
    reader = Reader(tables["goofspiel/points"])
    state = {"mine": "2 3 6", "theirs": "1 4 5", "deck": "1 2 6"}
    swap = {**state, "mine": state["theirs"], "theirs": state["mine"]}
    (first, second) = (reader.find(each) for each in (state, swap))
    assert first is not None and second is not None
    assert first[1].swapped and not second[1].swapped
    assert first[1].list("payoff") == second[1].list("payoff")[::-1] != [0, 0]


def test_what_is_not_there_is_not_answered(tables):
    reader = Reader(tables[TINY])
    state = {f"{name}_{i}": 0 for name in ("scores", "passed", "whammies") for i in (1, 2, 3)}
    beyond = state | {"earned_1": 3, "earned_2": 0, "earned_3": 0, "scores_1": 500}
    over = state | {"earned_1": 0, "earned_2": 0, "earned_3": 0}
    assert reader.find(beyond) is None
    assert reader.find(over) is None


@pytest.mark.parametrize("name", ["skunk/tiny", TINY])
def test_a_changed_byte_is_refused(tables, name, tmp_path):
    copy = shutil.copytree(tables[name], tmp_path / tables[name].name)
    random.seed(3)
    files = sorted(copy.rglob("*.parquet"))
    for path in [*random.sample(files, min(len(files), 6)), copy / "manifest.json"]:
        full = path.read_bytes()
        changed = [full[:at] + bytes([full[at] ^ 32]) + full[at + 1 :]
                   for at in random.sample(range(len(full)), 4)]  # fmt: skip
        for content in (*changed, full[:-1]):
            path.write_bytes(content)
            with pytest.raises((RefusedError, ValueError)):
                Reader(copy).read_all()
        path.write_bytes(full)
    Reader(copy).read_all()


def test_a_folder_of_another_name_is_refused(tables, tmp_path):
    copy = tmp_path / "0123456789ab"
    shutil.copytree(tables["skunk/tiny"], copy)
    with pytest.raises(RefusedError, match="identity"):
        Reader(copy)


@EACH_TABLE
def test_the_pages_table_of_games_is_the_games_own(tables, name):
    """The reader's rooms are the page's; here they are held to the solver's."""
    reader = Reader(tables[name])
    board = name if name != "a_search" else "goofspiel/win"
    settings = {k: v for k, v in reader.head["rules"].get("rules", {}).items()}
    settings |= reader.head["rules"].get("solve", {})
    game = solving.load_game(solving.load_board(ROOT / "boards" / f"{board}.toml", **settings))
    assert [room - 1 for _, room in key_fields(reader.head)] == game.fields.most.tolist()
    table = PAGE.read_text(encoding="utf-8").split("## The games of this repository")[1]
    line = next(line for line in table.splitlines() if f"`{board.split('/')[0]}`" in line)
    tolerance = float(line.rstrip(" |").rpartition("|")[2])
    assert tolerance == game.tie_tolerance
    assert re.search(rf"(\| |`players`, ){game.players}\b", line)
