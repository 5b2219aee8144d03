"""``luckbase publish TABLE FILE.html``: one file that loads nothing, with its table's numbers."""

import base64
import hashlib
import os
import re
import shutil
import tomllib
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pytest

import luckbase
from luckbase.cluster.answers.charts import for_page
from luckbase.cluster.store.provenance import board_file
from luckbase.game import load_game_file
from luckbase.jobs.web.pages import environment
from luckbase.solver import sentences
from luckbase.solver.board.model import canonical, rules_identity
from luckbase.solver.charts import Band, Curve, Curves, Heatmap, Line, Listing, Words
from tests.e2e.stopped import solve_until
from tests.games import climb
from tests.places import BOARDS, ROOT
from tests.solving import load_board, load_game

SKUNK, LUCK = BOARDS / "skunk/tiny.toml", BOARDS / "press-your-luck/tiny.toml"
GOOFSPIEL = BOARDS / "goofspiel/tiny.toml"
VOID = {"meta", "br", "link", "input", "hr", "img"}


class Page(HTMLParser):
    """A page read: its elements by name, its text; what is opened is closed."""

    def __init__(self, html):
        super().__init__()
        self.open, self.found, self.words = [], {}, []
        self.feed(html)
        self.close()
        assert self.open == []
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag, attrs):
        self.found.setdefault(tag, []).append(dict(attrs))
        self.open += [tag] * (tag not in VOID)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_startendtag(self, tag, attrs):
        self.found.setdefault(tag, []).append(dict(attrs))

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("style", "script"):
            self.words.append(data)


@pytest.fixture(scope="module")
def results(results_of):
    return results_of((SKUNK, {}), (LUCK, {"frontier": 1}), (GOOFSPIEL, {}))


@pytest.fixture(scope="module")
def made(results):
    return luckbase.report(SKUNK, results=results)


# --- the page ----------------------------------------------------------------------------------


@pytest.mark.parametrize("board", [SKUNK, LUCK, GOOFSPIEL], ids=lambda path: path.parent.name)
def test_a_report_is_one_file_that_loads_nothing_and_runs_nothing(board, results):
    html = luckbase.report(board, 100, results=results).html
    read = Page(html)
    assert len(html.encode()) < 2_000_000
    for tag, attributes in [(t, a) for t, every in read.found.items() for a in every]:
        for name, value in attributes.items():
            assert not name.startswith("on") and name != "style", (tag, name)
            if name in ("src", "href", "action", "data", "srcset"):
                assert re.match("#chart-", value or ""), (tag, value)
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", html) and "@import" not in html
    assert not {"link", "iframe", "object", "form", "base", "script"} & set(read.found)
    (policy,) = [m["content"] for m in read.found["meta"] if m.get("http-equiv")]
    assert policy is not None and policy.startswith("default-src 'none'; img-src data:; ")
    assert "unsafe" not in policy
    (text,) = re.findall(r"<style>(.*?)</style>", html, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    assert f"style-src 'sha256-{digest}'" in policy
    ids = [a["id"] for every in read.found.values() for a in every if "id" in a]
    assert len(set(ids)) == len(ids)


def test_the_page_says_what_the_table_says(made, results):
    text = Page(made.html).text
    with luckbase.open(SKUNK, results=results) as table:
        start = table[{"mine": 0, "yours": 0}]
        assert all(f"{100 * x:.1f}%" in text for x in start.value)
        assert table.identity in text and f"{table.rows:,}" in text
        assert table.rows < 10_000 and f"{table.rows:,} rows, all, computed again" in text
    assert round(start.value[0], 7) == round(20155392 / 33433085, 7)  # the board's own comment
    assert "Skunk, two dice, first to 20" in text and "No fault was found" in text
    for words in ("luckbase solve boards/skunk/tiny.toml", "luckbase verify", "version "):
        assert words in text


def test_the_opening_questions_of_a_solve_are_answered_in_percent(tmp_path, command):
    printed = command("solve", SKUNK, "--results", tmp_path)[2]
    text = Page(luckbase.report(SKUNK, 0, results=tmp_path).html).text
    rows = printed.partition("A few questions")[2].splitlines()[4:9]
    assert len(rows) == 5
    for row in rows:
        title, state, *values, best = re.split(r" {2,}", row.strip())
        percents = sorted((float(v.rstrip("%")) for v in values if v != "–"), reverse=True)
        (message,) = re.findall(rf"{re.escape(title.capitalize())} (.*?) {re.escape(state)}", text)
        shown = [float(number) for number in re.findall(r"([\d.]+)%", message)]
        assert shown == percents
        assert best == "toss-up" or message.lower().startswith(best)


def test_the_board_in_the_page_is_a_board_file_with_the_same_identity(results, tmp_path):
    html = luckbase.report(LUCK, 0, results=results, frontier=1).html
    (text,) = re.findall(r"The board as a file.*?<pre tabindex=\"0\">(.*?)</pre>", html, re.DOTALL)
    assert tomllib.loads(unescape(text))["outcomes"]["whammy"] == "1/6"
    squares = load_board("press-your-luck/1985-02", score_unit=500)
    for board, content in (
        (load_board(LUCK), unescape(text)), (squares, board_file(canonical(squares))),
    ):  # fmt: skip
        (tmp_path / "x.toml").write_text(content)
        again = load_game(load_board(tmp_path / "x.toml"))
        assert rules_identity(again) == rules_identity(load_game(board))


def test_the_same_table_gives_the_same_report(results):
    first, again = (luckbase.report(SKUNK, 50, results=results).html for _ in range(2))
    assert first == again


def test_a_table_in_memory_and_a_game_of_ones_own_have_reports_too(tmp_path):
    load_game_file(ROOT / "tests/games/climb.py")
    (tmp_path / "hill.toml").write_text('game = "climb"\ntitle = "A <hill>"\n')
    board = luckbase.load_board(tmp_path / "hill.toml")
    with luckbase.open(board, in_memory=True) as table:
        html = luckbase.report(table, None).html
    text = Page(html).text
    assert "A <hill>" in text and "steps: 0, 0; turns: 6." in text
    assert "climb has no charts" in text and "rows, all, computed again" in text
    luckbase.solve(board, results=tmp_path / "results")
    made = luckbase.report(board, results=tmp_path / "results")
    assert made.ok and "The start" in Page(made.html).text


def test_each_of_several_starts_is_reported_with_its_payoffs(tmp_path, own_games):
    starts = [(0.25, {"steps": (0, 1)}), (0.75, {"steps": (1, 0)})]
    luckbase.register("climb", climb.Hill, lambda b: replace(climb.rules(b), start=starts))
    (tmp_path / "hill.toml").write_text('game = "climb"\n')
    with luckbase.open(tmp_path / "hill.toml", in_memory=True) as table:
        text = Page(luckbase.report(table, None).html).text
        for odds, (_, state) in zip(("one in four", "three in four"), starts, strict=True):
            message = sentences.fields(table.game.describe(table.game.parse(state)))
            payoffs = f"player 1 {100 * table[state].value[0]:.1f}%"
            assert re.search(rf"A start, {odds}: .*?{message}: {payoffs}", text)


def test_what_lies_below_a_state_is_reported_with_its_roots(tmp_path):
    root = {"scores": (0, 1000, 500), "earned": (0, 2, 0)}
    luckbase.solve(LUCK, root, results=tmp_path)
    text = Page(luckbase.report(LUCK, 100, results=tmp_path).html).text
    assert "--from scores=0,1000,500 earned=0,2,0" in text and "Below this all is solved" in text


def test_a_table_that_is_not_complete_says_so(tmp_path):
    board = luckbase.load_board(LUCK, frontier=2)
    solve_until(board, tmp_path, 20)
    made = luckbase.report(board, 100, results=tmp_path)
    text = Page(made.html).text
    assert made.ok and "This table is not complete: 1 of the 1 solve are left" in text


# --- the command -------------------------------------------------------------------------------


def test_the_command_writes_it_says_so_and_finds_faults(results, tmp_path, command):
    """A file that no manifest names leaves the table readable; what is damaged has no pictures."""
    (folder,) = results.glob("skunk/tiny/*")
    own, page = shutil.copytree(folder, tmp_path / "skunk/tiny" / folder.name), tmp_path / "r.html"
    words = ["publish", own, page, "--sample", "200"]
    code, out, err = command(*words)
    assert (code, out) == (0, f"{page}\n") and "2 charts, 200 rows agree with the rules" in err
    (own / "tiers/more.parquet").write_bytes(b"no part of it")
    code, _, err = command(*words)
    assert code == 1 and "faults were found" in err
    text = Page(page.read_text()).text
    assert "Faults were found" in text and "more.parquet: is not in the manifest" in text
    (own / "tiers/more.parquet").unlink()
    (file,) = own.glob("tiers/*.parquet")
    content = bytearray(file.read_bytes())
    content[-9] ^= 1  # of the footer's length: no picture of it can be drawn
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    code, _, err = command(*words)
    assert code == 1 and err.startswith("luckbase: ")


def test_a_report_is_there_whole_or_not_at_all(made, tmp_path, monkeypatch):
    out = tmp_path / "r.html"
    out.write_text("the old one")

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space"):
            made.save(out)
    assert out.read_text() == "the old one" and os.listdir(tmp_path) == ["r.html"]
    assert made.save(out) == len(made.html.encode()) == out.stat().st_size


# --- charts ------------------------------------------------------------------------------------


def macro(name, *given):
    """A macro of the numbers of a chart."""
    return str(getattr(environment.get_template("numbers.html").module, name)(*given))


def test_what_stands_in_a_chart_can_not_end_an_element():
    evil = "</script><script>alert(1)</script>"
    made = Heatmap(evil, evil, (evil, evil, evil), np.arange(2), np.arange(2), np.eye(2), evil,
                   evil, evil, lines=(Line(evil, np.arange(2.0), np.arange(2.0)),),
                   words=(Words(evil, 1, 1),))  # fmt: skip
    listed = Listing((evil,), (evil,), ((evil,),), evil)
    parts = for_page(made), macro("sample", made, 10, evil), macro("listing", listed, 9, 9, evil)
    for html in parts:
        assert "<script" not in html and "script" not in Page(html).found


def test_a_long_list_says_how_many_lines_are_left_and_which_command_prints_them():
    lines = tuple(f"line {k}" for k in range(1000))
    listed = Listing(lines, ("k",), tuple((k,) for k in range(1000)))
    text = Page(macro("listing", listed, 10, 30, "luckbase x")).text
    assert "line 9" in text and "line 10" not in text and "990 more lines: luckbase x" in text
    assert "970 more rows" in text


def test_the_table_of_a_picture_is_thinned_and_right():
    xs, ys = np.arange(50), np.arange(40)
    values = np.add.outer(xs * 1.0, ys * 10.0)
    names = ("x", "y", "z"), xs * 5, ys, values, "the x", "the y", "the z"
    html = macro("sample", Heatmap("a <title>", "about", *names), 100, "c")
    rows = re.findall(r'<th scope="row">(\d+)</th>(.*?)</tr>', html)
    assert len(rows) <= 10 and "One in 5 rows and columns; all: " in html
    for y, cells in rows:
        result = [float(x) for x in re.findall(r"<td>([\d.]+)</td>", cells)]
        every = -(-50 // len(result))
        assert result == [i * every + 10 * int(y) for i in range(len(result))]


def test_curves_have_their_numbers_with_gaps():
    xs = np.array([0, 500, 1000])
    numbers = {"play": np.array([0.1, 0.2, 0.3]), "pass": np.array([np.nan, 0.4, 0.2])}
    two = tuple(Curve(name, name, each) for name, each in numbers.items())
    made = Curves("t", "a", "lead", xs, two, "lead", "win", (Band(500, 2000, "b"),))
    dollars = replace(made, curves=(Curve("lead", "lead", np.array([12_000.0, np.nan, 4000.0])),))
    for chart, text in ((made, "500 0.2 0.4 1,000 0.3 0.2"), (dollars, "0 12,000 500 1,000 4,000")):
        assert text in Page(macro("sample", chart, 441, "luckbase chart x")).text
