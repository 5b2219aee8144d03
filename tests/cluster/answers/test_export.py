"""An export: its rows say what questions do, WHERE chooses what a plain filter chooses, files are
whole or not there, memory does not grow with the table."""

import csv
import errno
import gc
import io
import json
import os
import stat
import subprocess
import sys
import traceback
import tracemalloc
from pathlib import Path
from threading import Thread

import numpy as np
import pandas
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import luckbase
from luckbase.cluster.answers.files import encode
from luckbase.cluster.store.parquet import CACHED_BYTES
from luckbase.jobs.app import run
from luckbase.solver.errors import OptionError
from tests.cluster.answers.many_tables import KINDS, TINY, kept
from tests.cluster.answers.test_answer import assert_row_says, is_of_an_action
from tests.places import BOARDS, ROOT


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("tables")


def state_of(table, row):
    """The state of a row of an export, in words."""
    return {name: value for name, value in row.items()
            if name in table.game.columns and value is not None}  # fmt: skip


# --- rows --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_rows_say_what_a_question_does(kind, folder):
    table = kept(kind, folder)
    every = table.to_arrow(actions=True).read_all()
    assert every.num_rows == table.rows
    first = table.parts[0].name
    for x in np.random.default_rng(0).integers(0, every.num_rows, 60).tolist():
        (row,) = every.slice(x, 1).to_pylist()
        answer = table.ask(state_of(table, row))
        if row["part"] != first and table.parts[0].holds(table.game.parse(answer.state)[None])[0]:
            continue  # a question is answered by the first part that holds the state
        if answer.strategies is not None:  # stored, and worked out again
            assert [row["payoff_1"], row["payoff_2"]] == pytest.approx(answer.value, abs=1e-12)
            row |= {"payoff_1": answer.value[0], "payoff_2": answer.value[1]}
        assert_row_says(row, answer)


@pytest.mark.parametrize("kind", KINDS)
def test_without_actions_the_rows_are_those_of_the_files(kind, folder):
    table = kept(kind, folder)
    stored, every = table.to_arrow().read_all(), table.to_arrow(actions=True).read_all()
    assert not any(is_of_an_action(name) for name in stored.column_names)
    changed = {"margin"} if table.full is not None else {"margin", "best", "to_act"}
    same = [name for name in stored.column_names if name not in changed]
    assert stored.select(same).equals(every.select(same))


def test_only_the_columns_asked_for_are_worked_out(folder, monkeypatch):
    table = kept("press-your-luck", folder)
    asked = ["scores_2", "play_payoff_2", "best"]
    found = table.to_arrow("spins=1 scores_1=0", columns=asked, actions=True).read_all()
    whole = table.to_arrow("spins=1 scores_1=0", actions=True).read_all()
    assert found.column_names == asked and found.equals(whole.select(asked))
    monkeypatch.setattr(
        "luckbase.cluster.answers.export.actions_of", lambda *_: pytest.fail("worked")
    )
    stored = table.to_arrow("spins=1", columns=["scores_2", "best"], actions=True).read_all()
    assert stored.num_rows > 100
    with pytest.raises(OptionError, match=r"unknown column 'play_payof_2'; did you mean 'play_pay"):
        table.to_arrow(columns=["play_payof_2"], actions=True)
    with pytest.raises(OptionError, match="unknown column 'toss_up'"):
        table.to_arrow(columns=["toss_up"])


def test_a_margin_needs_no_names_of_actions(folder):
    table, asked = kept("goofspiel win", folder), ["mine", "best", "margin", "toss_up"]
    found = table.to_arrow(columns=asked, actions=True).read_all()
    assert found.equals(table.to_arrow(actions=True).read_all().select(asked))


# --- where -------------------------------------------------------------------------------------

WHERE_KINDS = ("press-your-luck in files", "goofspiel win", "jackpot", "skunk", "search",
               "full table and search")  # fmt: skip
_FRAMES = {}


def frame_of(kind, folder):
    if kind not in _FRAMES:
        _FRAMES[kind] = kept(kind, folder).to_arrow(actions=True).read_all().to_pandas()
    return _FRAMES[kind]


PLAIN = {
    "=": lambda a, b: a == b, "==": lambda a, b: a == b, "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b, "<=": lambda a, b: a <= b, ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}  # fmt: skip


@pytest.mark.parametrize("kind", WHERE_KINDS)
@given(data=st.data())
@settings(max_examples=8)
def test_where_chooses_what_a_plain_filter_of_all_rows_does(kind, folder, data):
    table, every = kept(kind, folder), frame_of(kind, folder)
    words, right = [], np.ones(len(every), bool)
    for _ in range(data.draw(st.integers(1, 3))):
        name = data.draw(st.sampled_from([c for c in every.columns if every[c].notna().any()]))
        known = every[name].dropna()
        value = known.iloc[data.draw(st.integers(0, len(known) - 1))]
        text = isinstance(value, str | bool | np.bool_)
        op = data.draw(st.sampled_from(["=", "!="] if text else sorted(PLAIN)))
        there = every[name].notna().to_numpy()
        others = [] if text else [c for c in every.columns if _is_number(every[c]) and c != name]
        if data.draw(st.booleans()) and others:
            other = data.draw(st.sampled_from(others))
            there = there & every[other].notna().to_numpy()
            value = every[other][there].to_numpy()
            words.append(f"{name}{op}{other}")
        else:
            words.append(f"{name}{op}{_typed(value)}")
        holds = np.zeros(len(every), bool)
        holds[there] = PLAIN[op](every[name][there].to_numpy(), value)
        right &= holds
    chosen = data.draw(st.sampled_from([" ".join(words), words]))
    found = table.to_arrow(chosen, actions=True).read_all().to_pandas()
    there = [name for name in every.columns if name in found.columns]
    lost = set(every.columns) - set(there)
    assert all(is_of_an_action(name) for name in lost) and every.loc[right, list(lost)].isna().all(
        axis=None
    )
    pandas.testing.assert_frame_equal(
        found[there], every.loc[right, there].reset_index(drop=True), check_dtype=False
    )


def _is_number(column):
    return pandas.api.types.is_numeric_dtype(column) and column.dtype != bool


def _typed(value):
    """A value as a person types it."""
    if isinstance(value, str):
        return f"'{value}'"
    return str(value).lower() if isinstance(value, bool | np.bool_) else repr(value.item())


def test_payoffs_are_compared_with_whole_numbers_that_float32_has_not(folder):
    table = kept("press-your-luck in files", folder)
    assert table.to_arrow(f"payoff_1>{2**24 + 1}").read_all().num_rows == 0
    assert table.to_arrow(f"payoff_1<{2**24 + 1}").read_all().num_rows == len(table)


@given(st.sampled_from(sorted({*PLAIN} - {"="})), st.one_of(
    st.integers(-5, 5), st.integers(-(2**62), 2**63 - 1), st.floats(-4, 4), st.just(255.5),
    st.sampled_from([-128, 127, 128, 255, 256, -129, 1e18])))  # fmt: skip
def test_whole_numbers_are_compared_with_any_number(op, value):
    from luckbase.cluster.answers.columns import _integer_condition

    for kind, numbers in (
        (pa.int8(), [-128, -1, 0, 1, 2, 127]), (pa.uint8(), [0, 1, 2, 255]),
        (pa.int32(), [-(2**31), 0, 2, 3, 2**31 - 1]), (pa.uint64(), [0, 2, 2**53 + 1, 2**64 - 1]),
    ):  # fmt: skip
        table = pa.table({"x": pa.array(numbers, kind)})
        found = table.filter(_integer_condition("x", op, value, kind).expression())["x"].to_pylist()
        assert found == [x for x in numbers if PLAIN[op](x, value)]


def test_a_best_action_that_is_none_is_refused_also_where_the_game_lists_none():
    table = luckbase.open(BOARDS / "jackpot/tiny.toml", in_memory=True)
    for where in ("best=flop", "payoff_1>2 best=flop", "best!=flop"):  # of no row wanted, too
        with pytest.raises(OptionError, match=r"best: 'flop' is not an action of this table; exp"):
            table.to_arrow(where, actions=True)
    every = table.to_arrow(actions=True).read_all()["best"].to_pylist()
    for name in sorted({each for each in every if each}):
        found = table.to_arrow(f"best={name}", actions=True).read_all()
        assert len(found) == every.count(name)
        assert len(table.to_arrow(f"payoff_1>2 best={name}", actions=True).read_all()) == 0
    bids = luckbase.open(BOARDS / "goofspiel/tiny.toml", in_memory=True)
    with pytest.raises(OptionError, match=r"best: 'bid 99' is not an action of this table"):
        bids.to_arrow("best=bid 99", actions=True)


def test_states_with_an_offer_are_asked_about_as_no_row_is_one():
    board = ROOT / "boards/press-your-luck/1985-02.toml"
    small = {"choices": "best", "score_unit": 1000, "score_cap": 3000, "frontier": 1}
    with luckbase.open(board, in_memory=True, **small) as table:
        for where in ("offer=2", "offer>0", "spins=1 offer!=0"):
            said = "offer: states with an offer are not rows of a full table; luckbase query answe"
            with pytest.raises(OptionError, match=said):
                table.to_arrow(where)
        for where in ("offer=0", "offer<3", "offer!=1", "offer=spins"):
            table.to_arrow(where)


def test_a_value_of_several_words_needs_no_quotes_within(folder):
    table = kept("press-your-luck", folder)
    one = table.to_arrow("best='pass to 2' spins=1").read_all()
    assert 0 < one.num_rows < table.rows
    for words in (
        "best=pass to 2 spins=1",
        ["best=pass to 2", "spins=1"],
        ["spins=1 best=pass to 2"],
    ):
        assert table.to_arrow(words).read_all().sort_by("payoff_1").num_rows == one.num_rows
    with pytest.raises(OptionError, match="toss_up is true or false; write toss_up=true"):
        table.to_arrow("toss_up=1", actions=True)
    with pytest.raises(OptionError, match="best is a text; compare it with = or !="):
        table.to_arrow("best<spin")


# --- files -------------------------------------------------------------------------------------


def as_pandas(path):
    """A file as others read it."""
    read = {
        ".csv": pandas.read_csv, ".parquet": pandas.read_parquet,
        ".jsonl": lambda p: pandas.read_json(p, lines=True, precise_float=True),
    }  # fmt: skip
    return read[path.suffix](path)


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".jsonl"])
@pytest.mark.parametrize("kind", ["press-your-luck", "search of goofspiel", "search"])
def test_a_file_holds_the_rows_whoever_reads_it(kind, ending, folder, tmp_path):
    table = kept(kind, folder)
    where = "spins=1 scores_1=500 scores_2>=500" if kind == "press-your-luck" else None
    right = table.to_arrow(where, actions=True).read_all().to_pandas().drop(columns="part")
    path = tmp_path / f"rows{ending}"
    done = table.export(path, where)
    found = as_pandas(path)
    assert (done.rows, done.columns, done.bytes) == (
        len(right), list(right.columns), path.stat().st_size
    )  # fmt: skip
    assert list(found.columns) == list(right.columns) and len(found) == len(right) > 5
    for name in right.columns:
        one, other = found[name], right[name]
        if name == "key":
            assert [int(x) for x in one] == other.tolist()
        elif other.dtype.kind in "fiub" or other.dtype == bool:
            close = {"rtol": 1e-6 if other.dtype == np.float32 else 1e-14, "atol": 0}
            np.testing.assert_allclose(one.astype(float), other.astype(float), **close)
        else:
            assert [None if pandas.isna(x) or x == "" else str(x) for x in one] == [
                None if pandas.isna(x) or x == "" else x for x in other
            ]
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_a_parquet_file_says_which_table_it_is_of(folder, tmp_path):
    table = kept("press-your-luck", folder)
    table.export(tmp_path / "all.parquet", "spins=1 scores_1=0")
    about = pa.parquet.read_schema(tmp_path / "all.parquet").metadata
    assert json.loads(about[b"luckbase.solve_id"]) == table.origin.solve_id


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_pipe_gets_the_same_rows(form, folder, capfdbinary):
    """One of another process, and what stands in the place of this one's output."""
    table = kept("press-your-luck in files", folder)
    words = ["export", str(table.where), "spins=1", "scores_1=500", "--out", "-", "--format", form]
    if form == "parquet":
        command = [sys.executable, "-m", "luckbase", *words]
        done = subprocess.run(command, capture_output=True, check=True, cwd=ROOT)
        out, err = done.stdout, done.stderr
    else:
        assert run(words) == 0
        out, err = capfdbinary.readouterr()
    right = table.to_arrow("spins=1 scores_1=500", actions=True).read_all()
    right = right.drop_columns(["part"])
    if form == "parquet":
        found = pa.parquet.ParquetFile(pa.BufferReader(out)).read()
        assert found.equals(right)
    else:
        assert out.count(b"\n") == right.num_rows + 1
    assert b"rows, 32 columns" in err


class Full:
    """A disk that fills up after some bytes."""

    def __init__(self, file, room, error):
        self._file, self._room, self._error = file, room, error

    def write(self, content):
        self._room -= len(memoryview(content).cast("B"))
        if self._room < 0:
            raise self._error
        return int(self._file.write(content))

    def __getattr__(self, name):
        return getattr(self._file, name)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._file.close()


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
@pytest.mark.parametrize(
    ("error", "raised"),
    [(OSError(errno.ENOSPC, "No space left on device"), OSError),
     (OSError(errno.EIO, "Input/output error"), OptionError),
     (KeyboardInterrupt(), KeyboardInterrupt)],
)  # fmt: skip
def test_what_is_cut_off_leaves_what_was_there(
    ending, error, raised, folder, tmp_path, monkeypatch
):
    path, true = tmp_path / f"x.{ending}", Path.open
    path.write_text("before")
    monkeypatch.setattr(
        Path, "open", lambda self, *how, **named: Full(true(self, *how, **named), 3_000, error)
        if self.name.endswith(".part") else true(self, *how, **named),
    )  # fmt: skip
    ignored = []
    monkeypatch.setattr(sys, "unraisablehook", ignored.append)  # "Exception ignored in …"
    with pytest.raises(raised) as caught:
        kept("skunk", folder).export(path, "turn=4")  # 31 kB at least
    traceback.clear_frames(caught.tb)
    gc.collect()
    assert not ignored
    if raised is OSError:
        assert caught.value.filename == str(path)
    monkeypatch.undo()
    assert path.read_text() == "before" and list(tmp_path.iterdir()) == [path]


def through(pipe, write):
    """What comes out of a named pipe while something is written to it."""
    found = []
    os.mkfifo(pipe)
    reader = Thread(target=lambda: found.append(pipe.read_bytes()), daemon=True)
    reader.start()
    write()
    reader.join(30)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    return found[0]


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
def test_a_link_stays_and_a_pipe_is_written_as_it_is(ending, folder, tmp_path):
    table = kept("skunk", folder)
    kept_as, link, pipe = (tmp_path / f"{name}.{ending}" for name in ("kept", "link", "pipe"))
    (tmp_path / "elsewhere").mkdir()
    link.symlink_to(Path("elsewhere") / "file")  # that is not there yet
    for _ in range(2):
        table.export(link, "yours=3")
        assert link.is_symlink() and not (tmp_path / "elsewhere/file").is_symlink()
    table.export(kept_as, "yours=3")
    assert (tmp_path / "elsewhere/file").read_bytes() == kept_as.read_bytes()
    content = through(pipe, lambda: table.export(pipe, "yours=3"))
    assert content == kept_as.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        ["elsewhere", kept_as.name, link.name, pipe.name]
    )
    assert table.export("/dev/null", "yours=3", format="csv").rows
    assert not Path("/dev/null").is_file()
    with pytest.raises(OptionError, match=r"out: .*elsewhere: Is a directory"):
        table.export(tmp_path / "elsewhere", format=ending)


# --- memory ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_the_parts_of_a_table_share_the_room_of_its_rows(kind, folder):
    assert sum(part.groups.max_bytes for part in kept(kind, folder).parts) <= CACHED_BYTES


def test_memory_does_not_grow_with_the_rows_of_an_export(tmp_path, monkeypatch):
    """Python's and Arrow's, at their peak: of all rows against a tenth of them."""
    monkeypatch.setattr("luckbase.cluster.store.format.ROW_GROUP", 512)
    monkeypatch.setattr("luckbase.cluster.answers.actions.MAX_EDGES", 8_000)
    monkeypatch.setattr("luckbase.cluster.store.parquet.CACHED_BYTES", 100_000)
    monkeypatch.setattr("luckbase.cluster.answers.files.ROW_GROUP", 1_024)
    solved = luckbase.solve(luckbase.load_board(TINY, frontier=1), results=tmp_path, workers=1)
    rows, peaks = {}, {}
    luckbase.open(solved.table).export(tmp_path / "warm.parquet")
    for name, where in (("few", "whammies_1=3 whammies_2<=2"), ("all", None)):
        with luckbase.open(solved.table) as table:
            tracemalloc.start()
            arrow = Peak()
            rows[name] = table.export(tmp_path / "x.parquet", where, on_rows=arrow).rows
            peaks[name] = tracemalloc.get_traced_memory()[1] + arrow.highest
            tracemalloc.stop()
    assert rows["all"] > 4 * rows["few"] > 4_000
    assert 100_000 < peaks["all"] < 1.3 * peaks["few"]


class Peak:
    """The most that Arrow holds, looked at whenever rows are behind us."""

    def __init__(self):
        self.before, self.highest = pa.total_allocated_bytes(), 0

    def __call__(self, done, total):
        self.highest = max(self.highest, pa.total_allocated_bytes() - self.before)


# --- a game that lists no actions --------------------------------------------------------------


def test_actions_that_no_game_lists_are_those_of_the_rows_wanted(folder):
    table = kept("shut the box", folder)
    some = table.to_arrow("open=1,2,3", actions=True).read_all()
    names = {name for name in some.column_names if is_of_an_action(name)}
    assert names == {"flip_1_payoff_1", "flip_2_payoff_1", "flip_3_payoff_1", "flip_1_2_payoff_1",
                     "flip_1_3_payoff_1", "flip_2_3_payoff_1", "flip_1_2_3_payoff_1",
                     "roll_1_die_payoff_1", "roll_2_dice_payoff_1"} & names  # fmt: skip
    assert len(names) >= 5 and all(some[name].null_count < len(some) for name in names)
    (row,) = (
        table.to_arrow("open=1,2,3 best='flip 3' flip_3_payoff_1>0", actions=True)
        .read_all()
        .to_pylist()
    )
    assert row["flip_3_payoff_1"] >= (row.get("flip_1_2_payoff_1") or -np.inf)


def test_a_spreadsheet_computes_no_cell_of_a_file(tmp_path):
    cells = ["=1+1", "+x", "-y", "@z", "-5", "+1.5e3", "-1,2", "pass to 1", None]
    file = io.BytesIO()
    encode(pa.table({"note": cells, "n": range(9)}), file, "csv")
    read = [row[0] for row in csv.reader(io.StringIO(file.getvalue().decode()))][1:]
    assert read == ["'=1+1", "'+x", "'-y", "'@z", "-5", "+1.5e3", "-1,2", "pass to 1", ""]
