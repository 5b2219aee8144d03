"""What results show of themselves in a notebook is what they say in other ways."""

import re
import sys
from types import SimpleNamespace
from xml.etree import ElementTree

import duckdb
import numpy as np
import polars
import pytest

import luckbase
from luckbase.cluster import notebook
from luckbase.solver.charts import Curve, Curves, Heatmap, Listing
from luckbase.solver.sentences import fields, html_facts, html_table, percent
from tests.places import BOARDS

PIG, LUCK = BOARDS / "pig/tiny.toml", BOARDS / "press-your-luck/tiny.toml"
EVIL = "<script>&"


def text_of(html):
    """The text of well-formed HTML."""
    root = ElementTree.fromstring(f"<p>{html.replace('<br>', '<br/>')}</p>")
    return " ".join(" ".join(root.itertext()).split())


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return tmp_path_factory.mktemp("results")


@pytest.fixture(scope="module")
def table(results):
    luckbase.solve(PIG, results=results)
    with luckbase.open(PIG, results=results) as opened:
        yield opened


def test_a_solve_shows_its_table_its_time_and_where(tmp_path):
    again = luckbase.solve(PIG, results=tmp_path, force=True)
    text = text_of(again._repr_html_())
    assert "tiny is solved" in text and "8,400 solved now, 0 were there" in text
    assert str(again.table) in text and re.search(r"time \d+\.\d s with", text)
    nothing = text_of(luckbase.solve(PIG, results=tmp_path)._repr_html_())
    assert "0 solved now, 8,400 were there" in nothing and "time" not in nothing


def test_a_table_its_status_and_its_verdict(table, results):
    text = text_of(table._repr_html_())
    assert "a table of pig" in text and "8,400" in text and table.identity in text
    assert "chance to win" in text and "mine, yours, turn, player" in text and "stale" not in text
    (only,) = luckbase.status(results=results)
    assert text_of(only._repr_html_()).startswith(f"complete: {only.table}")
    verdict = table.verify(sample=20)
    assert "no fault was found" in text_of(verdict._repr_html_()) and verdict.residuals
    assert f"{verdict.residuals.worst:.2e}" in text_of(verdict._repr_html_())


def test_a_comparison_lists_the_worst(table):
    with luckbase.open(PIG, in_memory=True) as same:
        alike = table.diff(same)
    assert "no decision moved, of 7,600" in text_of(alike._repr_html_())
    with luckbase.open(PIG, in_memory=True, count="rolls") as other:
        result = table.diff(other, worst=2)
    text = text_of(result._repr_html_())
    heads, cases = result.case_rows()
    assert result.actions and cases and all(head in text for head in heads)
    assert all(str(cell) in text for case in cases for cell in case)
    assert len(result.worst) == 2
    assert all(f"{fields(each.state)} {result.amount(each.cost)}" in text for each in result.worst)


def test_what_a_cell_prints_is_short(table, results):
    """Of lists and tuples a notebook prints the text of each part."""
    picture, lines = table.chart("hold"), table.chart()
    (status,) = luckbase.status(results=results)
    info = luckbase.info(PIG, results=results)
    for shown in (picture, lines, status, info, *table.charts):
        assert len(repr(shown)) < 160 and "array" not in repr(shown), shown
    assert repr(status) == f"<complete: {status.table}, 8,400 states>"
    text = text_of(info._repr_html_())
    assert all(each.name in text and each.help in text for each in info.fields)
    printed = str(picture).splitlines()
    assert printed[:2] == [picture.title, picture.about] and len(printed) < 20
    assert repr(table.charts[0]).startswith(f"<{table.charts[0].name}: ")
    long = Listing(tuple(map(str, range(100))), ("k",), ())
    assert str(long).splitlines()[-2:] == ["29", "and 70 more"]


def test_gaps_of_a_chart_are_nan_in_columns_of_numbers(table):
    frame = table.chart("hold").to_pandas()
    assert all(kind.kind in "if" for kind in frame.dtypes)
    gaps = Curves(
        "", "", "x", np.arange(2), (Curve("c", "c", np.array([np.nan, 0.5])),), "x", "y"
    ).to_pandas()  # fmt: skip
    assert gaps["c"].dtype == np.float64 and gaps["c"].isna().tolist() == [True, False]


def test_a_table_names_its_files_and_what_is_public(table):
    rows = duckdb.read_parquet(table.parquet).count("*").fetchone()
    assert rows == (table.rows,) == (polars.scan_parquet(table.parquet).collect().height,)
    assert {"ask", "chart", "parquet", "rows", "verify", "game"} <= set(dir(table))
    assert not any(name.startswith("_") for name in dir(table))
    assert all(hasattr(table, name) for name in dir(table))
    with luckbase.open(PIG, in_memory=True) as memory:
        assert "parquet" not in dir(memory) and "ask" in dir(memory)


def test_long_work_shows_a_bar_in_a_notebook(table, tmp_path, monkeypatch):
    """By IPython's documented `display`: one output for each piece of work, drawn again."""
    shown = []

    def display(picture, display_id):
        shown.append([picture])
        return SimpleNamespace(update=shown[-1].append)

    shell = SimpleNamespace(kernel=object())
    interface = SimpleNamespace(HTML=str, display=display)
    python = SimpleNamespace(get_ipython=lambda: shell, display=interface)
    monkeypatch.setitem(sys.modules, "IPython", python)
    monkeypatch.setitem(sys.modules, "IPython.display", interface)
    monkeypatch.setattr(notebook, "MOMENT", 0.0)
    monkeypatch.setattr(notebook, "EVERY", 0.0)
    luckbase.solve(PIG, results=tmp_path)
    (bar,) = shown
    assert all(re.match(r'<progress value="\d+" max="\d+"></progress> ', each) for each in bar)
    assert bar[-1].startswith('<progress value="8400" max="8400"></progress> 100% ')
    assert "states/s" in bar[-1]
    shown.clear()
    table.verify(sample=20)
    assert shown and "rows" in shown[0][0]
    shell.kernel = None
    shown.clear()
    table.verify(sample=20)
    assert shown == []


def test_an_answer_marks_the_best(table):
    answer = table[{"mine": 0, "yours": 10, "turn": 4}]
    html = answer._repr_html_()
    assert percent(answer.value[0]) in text_of(html) and answer.verdict in text_of(html)
    rows = re.findall(r"<tr>(.*?)</tr>", html)
    (bold,) = (row for row in rows[1:] if "<b>" in row)
    assert bold.startswith(f'<th scope="row">{answer.best}</th><td><b>')


def test_a_chart_shows_a_picture_or_its_rows_and_a_scene_is_drawn(table):
    """By what `luckbase.open` has entered: `solver` draws nothing."""
    picture = table.chart("hold")
    assert isinstance(picture, Heatmap)
    png = picture._repr_png_()
    assert png is not None and png.startswith(b"\x89PNG")
    lines = table.chart(fields={"mine": 0})
    assert isinstance(lines, Listing) and str(lines) == "\n".join(lines.lines)
    text = text_of(lines._repr_html_())
    assert lines.note in text and "20 rows" not in text
    scene = table.scene({"mine": 3, "yours": "4"})
    html = scene._repr_html_()
    assert html is not None and "<svg" in html and scene.about in text_of(html)


def test_a_long_chart_says_how_many_rows_are_left():
    rows = tuple((k, EVIL) for k in range(100))
    html = Listing((), ("k", EVIL), rows, EVIL)._repr_html_()
    assert "70 more rows" in text_of(html) and html.count("<tr>") == 31 and "<script" not in html


def test_what_a_person_named_can_not_end_an_element():
    facts = html_facts(EVIL, [(EVIL, EVIL), ("nothing", "")])
    assert "<script" not in facts + html_table([EVIL], [[EVIL, EVIL]], [EVIL], marked=0)
    assert "nothing" not in facts
