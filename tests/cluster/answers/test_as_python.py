"""A table as Python has things: its length, its states, a state in any form, frames, pictures; and
what it says once it is closed. Of a full table and of one that a search made."""

import sys
import tracemalloc
from itertools import islice

import numpy as np
import pandas
import pytest

import luckbase
from luckbase.cluster.answers import export
from luckbase.solver.errors import ClosedTableError, MemoryLimitError, OptionError, StateError
from tests.places import BOARDS, TINY

SOME = {"scores": (0, 1000, 500), "earned": (0, 1, 0)}


@pytest.fixture(scope="module", params=["full", "search"])
def table(request, table_of):
    """In files, frontier 1; or what lies below a state, in memory. Both hold `SOME`."""
    if request.param == "full":
        opened = luckbase.open(table_of(TINY, frontier=1))
    else:
        opened = luckbase.open(TINY, in_memory=True, start={**SOME, "earned": (0, 2, 0)})
    with opened as found:
        yield found


# --- its states --------------------------------------------------------------------------------


def test_its_length_is_that_of_what_it_iterates_over_and_every_state_is_in_it(table):
    every = list(table)
    assert len(table) == len(every) == table.rows > 0
    assert len({str(state) for state in every}) == len(every)
    assert all(state in table for state in every[:: len(every) // 50])
    assert table[every[7]].state == every[7]


def test_its_states_come_in_the_order_of_their_keys(table):
    (part,) = table.parts
    states = np.array([table.game.parse(state) for state in islice(table, 3000)])
    keys = part.keys(states)
    assert (keys[1:] > keys[:-1]).all()


def test_the_first_states_of_a_table_take_the_memory_of_one_row_group(table_of, monkeypatch):
    from luckbase.cluster.store.parquet import TableFile

    read, true = [], TableFile.read
    monkeypatch.setattr(
        TableFile, "read", lambda self, *given: read.append(self.entry.rows) or true(self, *given)
    )
    with luckbase.open(table_of(TINY, frontier=1)) as full:
        tracemalloc.start()
        found = list(islice(full, 10))
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert len(found) == 10 and len(read) == 1 and most < 60_000_000


def test_what_is_not_in_it(table):
    assert {**SOME, "earned": (0, 9, 9)} not in table
    assert {"scores": (0, 1000, 500), "earned": (0, 0, 0)} not in table  # it is over
    for wrong in ({"score": 3}, 7, {"scores": (0, 7, 0)}):
        with pytest.raises(StateError):
            assert wrong in table


def test_a_table_without_a_row_is_still_a_table(table, monkeypatch):
    monkeypatch.setattr(type(table), "rows", 0)
    assert len(table) == 0 and bool(table)


# --- a state in any form -----------------------------------------------------------------------


def test_a_state_is_a_mapping_text_keywords_or_a_row_of_a_frame(table):
    right = table.ask(SOME)
    text = "scores=0,1000,500 earned=0,1,0"
    assert table.ask(text) == table[text] == table.ask(**SOME) == right
    assert table.ask(scores="0,1000,500", earned=[0, 1, 0]) == right
    frame = table.to_pandas("scores=0,1000,500 earned=0,1,0 passed=0,0,0 payoff_1>=0")
    row = frame[(frame.filter(like="whammies") == 0).all(axis=1)].iloc[0]
    assert table[row] == table.ask(row) == right and row in table and text in table
    assert [row[f"payoff_{i}"] for i in (1, 2, 3)] == pytest.approx(list(right.value), abs=1e-6)


def test_every_place_that_takes_a_state_takes_text(table):
    text = "scores=0,1000,500 earned=0,1,0"
    assert table.moves(text).answer == table.ask(SOME)
    assert str(table.scene(text)) == str(table.scene(SOME))
    assert table.play(text, seat=2).shown == table.play(SOME, seat=2).shown
    pig = BOARDS / "pig/tiny.toml"
    near = luckbase.evaluate(pig, start="mine=0 yours=15").value
    assert near == luckbase.evaluate(pig, start={"mine": 0, "yours": 15}).value
    with luckbase.open(pig, in_memory=True, start="mine=15 yours=15") as below:
        assert "mine=15 yours=15" in below and len(below) < 8400


@pytest.mark.parametrize(
    ("state", "wrong"),
    [("scores", "'scores' is not FIELD=VALUE"), ("scores=0,0,0 scores=0,0,0", "given twice"),
     ("score=0,0,0", "unknown field 'score'; did you mean 'scores'?"), ("", "scores is missing"),
     ([0, 1], "is not a state"), (pandas.DataFrame({"scores": ["0,0,0"]}), "is not a state"),
     (pandas.Series({"money": 1}), "scores is missing")],
)  # fmt: skip
def test_what_is_no_state_is_one_sentence(table, state, wrong):
    with pytest.raises(StateError, match=wrong.replace("?", r"\?")) as error:
        table.ask(state)
    assert "\n" not in str(error.value)


def test_a_state_and_fields_are_too_much(table):
    with pytest.raises(StateError, match="earned: give a state or its fields as keywords"):
        table.ask({"scores": (0, 1000, 500)}, earned=(0, 1, 0))


def test_an_answer_gives_the_payoffs_of_an_action(table):
    answer = table.ask(SOME)
    assert [answer[action.name] for action in answer.actions] == [a.value for a in answer.actions]
    assert answer[str(answer.best)] == pytest.approx(answer.value, abs=1e-6)
    with pytest.raises(OptionError, match="unknown action 'plya'; did you mean 'play'"):
        answer["plya"]


def test_of_those_who_choose_at_once_an_action_is_player_1s():
    with luckbase.open(BOARDS / "goofspiel/points.toml", in_memory=True, cards=3) as table:
        answer = table["mine=1,2,3 theirs=1,2,3 deck=1,2,3 upcard=3"]
        assert [answer[bid.name] for bid in answer.actions] == [bid.value for bid in answer.actions]


# --- its fields, charts, frames ----------------------------------------------------------------


def test_its_fields_and_the_charts_that_can_be_made_of_it(table):
    assert table.fields.names == ("scores", "earned", "passed", "whammies")
    lines = repr(table.fields).splitlines()
    assert len(lines) == 4 and all(
        field.help in line for field, line in zip(table.fields, lines, strict=True)
    )
    names = [chart.name for chart in table.charts]
    full = table.full is not None
    assert names == (["leads", "decide"] if full else [])
    assert all(table.chart(name) is not None for name in names)


def test_its_rows_in_pandas_are_those_of_arrow(table):
    where = "scores_2>=1000 best!=play"
    found = table.to_pandas(where)
    arrow = table.to_arrow(where).read_all().drop_columns(["part"])
    pandas.testing.assert_frame_equal(found, arrow.to_pandas())
    assert 0 < len(found) < len(table) == len(table.to_pandas(columns=["best"]))
    every = table.to_pandas(where, columns=["best", "play_payoff_2", "margin"], actions=True)
    assert list(every) == ["best", "play_payoff_2", "margin"] and len(every) == len(found)
    assert every.margin.notna().any()
    with pytest.raises(OptionError, match="unknown column 'scores_9'"):
        table.to_pandas("scores_9>=1")


def test_more_rows_than_the_memory_holds_are_refused(table, monkeypatch):
    monkeypatch.setattr(export, "memory_to_use", lambda: 1000)
    with pytest.raises(MemoryLimitError, match="choose some with where or columns, or use to_arr"):
        table.to_pandas()


@pytest.fixture
def skunk(in_memory):
    return in_memory("skunk/tiny")


def test_a_chart_in_pandas_has_its_columns_and_rows(skunk):
    assert {chart.picture for chart in skunk.charts} == {True, False}
    for kind in skunk.charts:
        chart = skunk.chart(kind.name)
        frame = chart.to_pandas()
        assert list(frame.columns) == list(chart.columns) and len(frame) == len(chart.rows) > 0
        assert list(frame.iloc[0]) == list(chart.rows[0])


def test_a_chart_is_saved_by_the_ending_of_its_file(skunk, tmp_path):
    """A list and a picture; how pictures look is tests/jobs/test_chart.py's."""
    listing = next(skunk.chart(kind.name) for kind in skunk.charts if not kind.picture)
    with pytest.raises(OptionError, match="a list is saved in a file that ends"):
        listing.save(tmp_path / "list.png")
    for chart, name, first in (
        (listing, "list.csv", b""), (skunk.chart("hold"), "x.png", b"\x89PNG"),
        (skunk.chart("hold"), "x.svg", b"<svg"), (skunk.chart("hold"), "x.pdf", b"%PDF"),
        (skunk.chart("hold"), "x.html", b"<!DOCTYPE html>"), (skunk.chart("hold"), "x.csv", b""),
    ):  # fmt: skip
        path = tmp_path / name
        assert chart.save(path) == path.stat().st_size > 0
        assert path.read_bytes().startswith(first)
        if path.suffix == ".csv":
            assert path.read_text().splitlines()[0] == ",".join(chart.columns)
    with pytest.raises(OptionError, match="a picture is saved in a file that ends"):
        skunk.chart("hold").save("x.gif")
    with pytest.raises(OptionError, match="No such file"):
        skunk.chart("hold").save(tmp_path / "none/x.png")


@pytest.mark.parametrize(
    ("package", "use", "said"),
    [("pandas", lambda t: t.to_pandas(), "to_pandas needs pandas; run: pip install pandas"),
     ("pandas", lambda t: t.chart().to_pandas(), "to_pandas needs pandas; run: pip install pandas"),
     ("vl_convert", lambda t: t.chart("hold").save("x.png"),
      r"a picture needs vl_convert; run: pip install '.\[report\]'")],
)  # fmt: skip
def test_what_is_not_installed_is_named_with_what_installs_it(
    skunk, package, use, said, monkeypatch, tmp_path
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(OptionError, match=said):
        use(skunk)
    assert not list(tmp_path.iterdir())


def test_without_vl_convert_a_notebook_shows_a_picture_as_text(skunk, monkeypatch):
    chart = skunk.chart("hold")
    assert chart._repr_png_().startswith(b"\x89PNG")
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    assert chart._repr_png_() is None


# --- closed ------------------------------------------------------------------------------------

USES = {
    "t[state]": lambda t: t[SOME], "ask": lambda t: t.ask(SOME), "in": lambda t: SOME in t,
    "iter": lambda t: next(iter(t)), "len": len, "with": lambda t: t.__enter__(),
    "ask_all": lambda t: next(t.ask_all([SOME])), "values": lambda t: t.values([SOME]),
    "moves": lambda t: t.moves(SOME), "why": lambda t: t.why(SOME),
    "scene": lambda t: t.scene(SOME),
    "to_arrow": lambda t: t.to_arrow(), "to_pandas": lambda t: t.to_pandas(),
    "export": lambda t: t.export("x.csv"), "verify": lambda t: t.verify(),
    "diff": lambda t: t.diff(t), "chart": lambda t: t.chart(), "charts": lambda t: t.charts,
    "agent": lambda t: t.agent(), "play": lambda t: t.play(SOME), "rows": lambda t: t.rows,
    "probe": lambda t: t.probe(t.game.parse(SOME)[None]), "error": lambda t: t.error,
    "get": lambda t: t.get(t.game.parse(SOME), 0), "unfinished": lambda t: t.unfinished(),
    "report": lambda t: luckbase.report(t), "simulate": lambda t: t.simulate(SOME, 10),
}  # fmt: skip


@pytest.fixture(scope="module", params=["full", "search"])
def closed(request, table_of):
    full = request.param == "full"
    found = (
        luckbase.open(table_of(TINY, frontier=1))
        if full else luckbase.open(TINY, in_memory=True, start=SOME)
    )  # fmt: skip
    found.ask(SOME)
    found.close()
    return found


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_a_closed_table_says_so(closed, use, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ClosedTableError, match="this table is closed; open it again") as error:
        use(closed)
    assert error.value.exit_code == 2 and not list(tmp_path.iterdir())


def test_what_needs_no_file_is_still_said_by_a_closed_table(closed):
    assert "closed" in repr(closed) and "closed" in closed._repr_html_()
    assert closed.fields.names[0] == "scores" and closed.origin.board == "tiny"
    closed.close()  # once more is no fault
