"""`luckbase chart`: the lines of 1998, what the published files are, and a table of one tier; games
that `graph` draws, and plain arguments."""

import csv
import hashlib
import io
import math
import re
import shlex
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import luckbase
from luckbase.cluster.answers.charts import for_page, specification
from luckbase.cluster.play import draw
from luckbase.cluster.store.storage import Folder
from luckbase.cluster.store.writer import read_manifest
from luckbase.solver.charts import ChartRequest, Heatmap
from luckbase.solver.game.capabilities import Charts
from luckbase.solver.games.skunk.charts import all_or_nothing_from
from tests.places import BOARDS, ROOT
from tests.reference import jackpot as reference
from tests.shared import rewrite
from tests.solving import load_board, load_game, open_table

PUBLISHED = ROOT / "results" / "published"
SEED, TINY = str(BOARDS / "skunk/seed.toml"), str(BOARDS / "skunk/tiny.toml")


@pytest.fixture(scope="module")
def results(results_of):
    return results_of((SEED, {}), (TINY, {}))


@pytest.fixture
def solved(results, monkeypatch):
    """Commands find these tables; solved(board) -> the folder of its table."""
    monkeypatch.setenv("LUCKBASE_RESULTS", str(results))
    return lambda board: next(results.glob(f"*/{Path(board).stem}/*"))


@pytest.fixture
def empty(tmp_path, monkeypatch):
    """Commands find no table yet."""
    monkeypatch.setenv("LUCKBASE_RESULTS", str(tmp_path / "results"))


# --- the list ------------------------------------------------------------------------------------


def test_the_seeds_lines_come_from_the_stored_table(command, solved):
    """skunk-gottahack.txt; its chances are good to 4e-6. docs/how-to/charts.md has more lines."""
    code, out, err = command("chart", SEED)
    assert code == 0 and "every choice is certain" in err and out.count("\n") == 10_000
    lines = {line.split()[0]: line.split()[1:] for line in out.splitlines()}
    assert lines["(0,0)"][2:] == ["21"]
    seed = {"(0,0)": 0.5195594, "(0,5)": 0.4973309, "(67,0)": 0.858472}
    assert {at: float(lines[at][0]) for at in seed} == pytest.approx(seed, abs=4e-6)


def test_the_csv_is_the_list(command, solved, tmp_path):
    _, text, _ = command("chart", TINY)
    code, out, _ = command("chart", TINY, "--csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert code == 0 and list(rows[0]) == ["mine", "yours", "value", "toggles", "uncertain"]
    shape = "({mine},{yours}) {number} - {toggles}"
    again = [shape.format(number=f"{float(r['value']):.7f}".lstrip("0"), **r) for r in rows]
    assert again == text.splitlines()
    alone = command("chart", TINY, "yours=3")[1].splitlines()
    assert alone == [line for line in text.splitlines() if line.split()[0].endswith(",3)")]
    for suffix, wanted in ((".csv", out), (".txt", text)):
        path = tmp_path / f"chart{suffix}"
        assert command("chart", TINY, "--out", str(path))[:2] == (0, "")
        assert path.read_text() == wanted


def test_choices_closer_than_the_tables_error_are_marked_not_called(results):
    """The closest call on the board to 100 is 5e-8, at (10,29) with a turn of 21."""
    charts = load_game(load_board(SEED)).need(Charts)
    with open_table(next(results.glob("*/seed/*"))) as table:
        first = ChartRequest({"mine": "10", "yours": "29"}, error=5e-8)
        (line,) = (result := charts.make("chart", table.probe, first)).lines
        assert line.endswith(" - 21 ? 21") and "1 turn after a ?" in result.note
        picture = charts.make("hold", table.probe, ChartRequest(error=5e-8))
        assert isinstance(picture, Heatmap) and np.isnan(picture.values[10, 29])
        assert "too close to call" in picture.about


# --- pictures ------------------------------------------------------------------------------------


def test_the_line_of_the_picture_is_where_the_seed_sees_the_catastrophe(results):
    """At (0,87) one still holds at 33, at (0,88) it is all or nothing."""
    with open_table(next(results.glob("*/seed/*"))) as table:
        picture = table.chart("hold")
    assert isinstance(picture, Heatmap) and picture.blank is not None
    jump = all_or_nothing_from(picture.values)
    assert jump[0] == 88 and jump[88] == 0
    assert list(picture.blank[0, 86:89]) == [False, False, True]
    (line,) = picture.lines
    times = Counter(zip(line.xs.tolist(), line.ys.tolist(), strict=True))
    ends = {point for point, count in times.items() if count % 2 and not math.isnan(point[0])}
    assert ends == {(-0.5, 87.5), (87.5, -0.5)}  # all other points join two pieces
    assert picture.values[0, 87] == 33 and picture.values[0, 88] == 100


def test_pictures_are_written_the_same_to_the_byte_and_a_page_loads_nothing(solved, tmp_path):
    with luckbase.open(solved(TINY)) as table:
        picture = table.chart("hold")
    for suffix in (".png", ".svg", ".html"):
        first, second = tmp_path / f"one{suffix}", tmp_path / f"two{suffix.upper()}"
        assert picture.save(first) == picture.save(second) > 5_000
        assert first.read_bytes() == second.read_bytes()
    page = first.read_text()
    assert "vega" in page and not re.search(r"<(script|link)[^>]*(src|href)=", page)


def test_a_page_may_hold_a_picture_under_a_strict_policy(results):
    with open_table(next(results.glob("*/tiny/*"))) as table:
        svg = for_page(table.chart("hold"), "hold")
    assert "style=" not in svg and "<script" not in svg and "var(--ink)" in svg
    assert set(re.findall(r"url\(#([^)]*)\)", svg)) <= set(re.findall(r'id="(hold-[^"]*)"', svg))


def test_a_heat_map_draws_at_most_10000_cells():
    xs = np.arange(250)
    large = Heatmap("t", "a", ("x", "y", "v"), xs, xs, np.add.outer(xs, xs) / 1.0, "x", "y", "v")
    cells = specification(large)["layer"][0]["data"]["values"]
    assert 5_000 < len(cells) <= 10_000
    assert all(cell["value"] == cell["x"] + cell["y"] for cell in cells)


def test_the_terminal_shows_a_sample_of_a_pictures_numbers(command, solved):
    code, out, err = command("chart", SEED, "--what", "hold")
    assert code == 0 and out.startswith("Hold at 7 to 36 points; past the line")
    assert "one number in 6 along each axis" in err
    rows = [line.split() for line in out.splitlines() if re.match(r" *\d+ ", line)]
    numbers = command("chart", SEED, "--what", "hold", "--csv")[1].splitlines()[1:]
    assert len(rows) == 17 and {f"{6 * i},{row[0]},{cell}" for row in rows
                                for i, cell in enumerate(row[1:])} <= set(numbers)  # fmt: skip


# --- what is published ---------------------------------------------------------------------------

COMMANDS = re.findall(
    r"^luckbase (chart skunk/seed.* --out .*)$", (PUBLISHED / "README.md").read_text(), re.MULTILINE
)
BIDS = re.compile(r"goofspiel-(points|win)-([0-9]+)\.csv")


def test_every_published_file_has_its_command():
    created = {Path(call.split()[-1]).name for call in COMMANDS} | {"README.md"}
    there = {path.name for path in PUBLISHED.iterdir() if path.is_file()}
    bids = {name: BIDS.fullmatch(name) for name in there if BIDS.fullmatch(name)}
    findings = {name for name in there if name.startswith(("press-your-luck-", "larson-"))}
    text = (PUBLISHED / "README.md").read_text(encoding="utf-8")
    assert there == {*created, *bids, *findings, "findings.py", "goofspiel-upcard.png"}
    assert all(name in text for name in findings - {"press-your-luck-seats.csv"})
    for kind, most in (("points", 14), ("win", 11)):
        cards = sorted(int(each[2]) for each in bids.values() if each[1] == kind)
        assert cards == [*range(5, most + 1)]


def test_published_bids_of_five_cards_are_the_seeds_table_1():
    """Rhoads and Bartholdi 2012, Table 1, within one unit of the last printed digit."""
    with (PUBLISHED / "goofspiel-points-5.csv").open() as file:
        rows = {(int(r["upcard"]), int(r["bid"])): r for r in csv.DictReader(file)}
    with (ROOT / "tests/published/goofspiel-table-1.csv").open() as file:
        printed = [line for line in csv.reader(file) if line[0].strip().isdigit()]
    chances = {(upcard, int(bid)): float(chance) for bid, *line in printed
               for upcard, chance in enumerate(line, 1)}  # fmt: skip
    assert len(rows) == 25 and rows.keys() == chances.keys()
    for at, row in rows.items():
        assert float(row["chance"]) == pytest.approx(chances[at], abs=1.5e-4), at


@pytest.mark.parametrize("objective", ["points", "win"])
@pytest.mark.parametrize("cards", [5, 7])
def test_published_bids_are_what_their_commands_give(table_of, tmp_path, objective, cards):
    with luckbase.open(table_of(BOARDS / f"goofspiel/{objective}.toml", cards=cards)) as table:
        table.chart().save(tmp_path / "bids.csv")
    there = PUBLISHED / f"goofspiel-{objective}-{cards}.csv"
    assert (tmp_path / "bids.csv").read_bytes() == there.read_bytes()


@pytest.mark.parametrize("call", COMMANDS)
def test_a_published_file_is_what_its_command_gives(command, solved, tmp_path, call):
    *words, place = shlex.split(call)
    there, here = ROOT / place, tmp_path / Path(place).name
    assert command(*words, str(here))[0] == 0
    size = 24 if there.suffix == ".png" else None  # its head; letters are those of the machine
    assert here.read_bytes()[:size] == there.read_bytes()[:size]
    assert there.stat().st_size < 400_000


# luckbase chart skunk/seed --what hold --csv | sha256sum; outside of its letters the published
# picture is, pixel by pixel, the one of these values
HOLD_VALUES = "900c092f427d6d94382485d749c993a592448d7085393f824e5083733c67604d"


def test_the_values_of_the_published_picture_stay(command, solved):
    """Its bytes are compared by their head alone: its letters are those of the machine."""
    values = command("chart", SEED, "--what", "hold", "--csv")[1]
    assert hashlib.sha256(values.encode()).hexdigest() == HOLD_VALUES


# --- what is refused -----------------------------------------------------------------------------


def test_a_search_table_has_no_chart_and_is_not_taken_for_the_boards(command, empty):
    below = command("solve", TINY, "--from", "mine=3", "yours=1")[1].strip()
    assert "holds what lies below some states" in command("chart", below)[2]
    assert f"luckbase solve {TINY}" in command("chart", TINY)[2]
    assert command("solve", TINY)[1].strip() == below
    assert command("chart", TINY)[0] == command("chart", below)[0] == 0


def test_what_lies_below_the_start_is_all_that_the_charts_of_tiles_need(command, empty):
    tiles = str(BOARDS / "jackpot/tiny.toml")
    code, _, err = command("chart", tiles)
    assert code == 1 and f"luckbase solve {tiles}" in err
    below = command("solve", tiles, "--from", "open=1,2")[1].strip()
    code, out, err = command("chart", below)
    assert (code, out) in ((1, ""), (2, "")) and "not below this table's roots" in err
    assert command("solve", tiles)[0] == 0
    code, out, _ = command("chart", tiles)
    assert code == 0 and out.split()[:3] == ["roll", "chance", "flip"]


def test_a_partial_table_and_a_missing_one_get_one_sentence(command, solved, results, tmp_path):
    table = shutil.copytree(solved(TINY), tmp_path / "table")
    manifest = read_manifest(Folder(table), table)
    manifest.files, manifest.done = {}, {}
    rewrite(table, manifest)
    code, out, err = command("chart", str(table))
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "0 of its 1 tier is solved, and a chart needs them all: luckbase solve" in err


# --- games that are drawn, and evaluated ---------------------------------------------------------

JACKPOT, SMALL = str(BOARDS / "jackpot/seed.toml"), str(BOARDS / "jackpot/tiny.toml")
LUCK = str(BOARDS / "press-your-luck/tiny.toml")


@pytest.mark.parametrize(
    "words",
    [
        ["evaluate", LUCK, "--agents", "always-pass-ahead", "--games", "1000", "--json"],
        ["graph", LUCK, "--agents", "always-pass-ahead"],
    ],
)
def test_fields_given_as_plain_arguments_are_the_start(command, words):
    start = ["scores=0,1000,500", "earned=0,2,0"]
    plain = command(words[0], words[1], *start, *words[2:])
    assert plain[0] == 0
    assert plain == command(*words, "--from", *start)
    assert plain == command(words[0], words[1], start[1], *words[2:], "--from", start[0])
    assert plain != command(words[0], words[1], start[0], "earned=0,1,0", *words[2:])


def test_graph_draws_the_seeds_two_variants(command, tmp_path):
    """jackpot-mike-french.txt: layer boxes; edges with moves and counts; layers 1, 9, 36, …"""
    path = tmp_path / "hilo.dot"
    words = ["graph", JACKPOT, "--agents", "hilo", "--layers", "--labels", "counts"]
    code, out, err = command(*words, "--all", "--out", str(path))
    assert code == 0 and out == "" and "512 positions" in err
    text = path.read_text()
    boxes = re.findall(r"subgraph cluster_\d+ \{(.*?)\n\t\}", text, re.DOTALL)
    sizes = [len(re.findall(r"^\t\t\d+ \[label", box, re.MULTILINE)) for box in boxes]
    assert sizes == [1, 9, 36, 84, 126, 126, 84, 36, 9, 1]
    code, out, _ = command(*words)
    assert code == 0 and out.count(" -> ") == text.count(" -> ")  # hilo comes everywhere
    start = re.search(r"^\t\t(\d+) \[label=\"open 1,2,3,4,5,6,7,8,9\\n", out, re.MULTILINE)
    assert start
    edges = re.findall(rf"^\t{start[1]} -> \d+ \[label=\"flip (\d)\\n(\d+)\"\]", out, re.MULTILINE)
    assert sum(int(count) for _, count in edges) == 36
    assert dict(edges)["9"] == "4"  # {3,6} {6,3} {4,5} {5,4}
    words[3] = "max"
    assert command(*words)[1].count(" -> ") < command(*words, "--all")[1].count(" -> ")


def test_a_position_that_comes_back_is_reached_more_than_once(command):
    """A coin in turns until heads: the first tosses 1 + 1/4 + … = 4/3 times, the other 2/3."""
    code, out, _ = command("graph", str(BOARDS / "pig/piglet.toml"), "--set", "goal=1")
    assert code == 0 and re.findall(r"reached ([\d.]+), worth", out) == ["1.333", "0.6667"]
    assert "its average number of visits in a game" in " ".join(command("graph", "-h")[1].split())


@pytest.mark.parametrize("name", reference.AGENTS)
def test_a_drawing_says_how_often_each_position_is_reached(name):
    """jackpot-mike-french.txt: every node stores the probability of reaching it."""
    right = reference.Reference().reach(reference.AGENTS[name])
    nodes = luckbase.graph(JACKPOT, name, every=True).diagram.nodes
    positions = {frozenset(node.fields["open"]): node.reach for node in nodes if node.fields}
    assert len(positions) == 511
    for tiles, reach in positions.items():
        assert reach == pytest.approx(float(right[tiles]), abs=1e-15)
    (won,) = (node.reach for node in nodes if node.end)
    assert won == pytest.approx(float(right[frozenset()]), abs=1e-15)


def test_a_picture_takes_graphviz(command, tmp_path):
    path = tmp_path / "x.svg"
    code, _, err = command("graph", SMALL, "--out", str(path))
    if shutil.which("dot"):
        assert code == 0 and "<svg" in path.read_text()
        return
    assert code == 2 and "GraphViz (its command dot) is not installed" in err
    assert not path.exists()


def test_a_drawing_that_nobody_can_read_is_refused(command, monkeypatch):
    monkeypatch.setattr(draw, "MAX_NODES", 10)  # no option; 20,000 nodes take seconds
    code, out, err = command("graph", JACKPOT)
    assert (code, out) == (2, "") and "cannot be read; expected at most 10; start nearer" in err
