"""Random input from strangers: manifests, files, batches of states, boards. Seconds by default;
half an hour with FUZZ_SECONDS=1800 (CONTRIBUTING.md). Only our own errors may come of it, in a
line."""

import io
import json
import os
import shutil
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

import luckbase
from luckbase.cluster.answers.files import rows_in
from luckbase.cluster.store.manifest import NAME
from luckbase.solver.errors import LuckbaseError
from tests import solving
from tests.cluster.store import hostile
from tests.places import BOARDS

SECONDS = float(os.environ.get("FUZZ_SECONDS", "6"))
"""For all six together."""
TINY = BOARDS / "press-your-luck" / "tiny.toml"
NUMBERS = st.sampled_from([0, 1, -1, 7, 1 << 31, 1 << 40, 1 << 62, (1 << 63) - 1, 1 << 64, 0.5])
TEXTS = st.sampled_from(["", "x", "../x", "/dev/zero", "tiers/a.parquet", "\0", "é", "0" * 64])
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.integers() | st.floats() | TEXTS | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=6,
)


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """A full table with decisions, a search in one piece, and a search by stages."""
    folder = tmp_path_factory.mktemp("fuzz")
    board = luckbase.load_board(TINY, frontier=1, decisions=2, max_whammies=1)
    jackpot = luckbase.load_board(BOARDS / "jackpot/tiny.toml")
    return [
        luckbase.solve(board, results=folder / "full").table,
        solving.solve_below(jackpot, results=folder / "piece", one_piece=1000).table,
        solving.solve_below(jackpot, results=folder / "stages", one_piece=0).table,
    ]


def fuzz(what, attempt, most=100):
    """attempt(an example) for a sixth of the time, with other examples each round of so many."""
    until, over = time.monotonic() + SECONDS / 6, False
    while not over:

        @seed(0 if SECONDS < 60 else time.time_ns())
        @settings(
            max_examples=most, deadline=None, database=None,
            phases=(Phase.generate, Phase.shrink), suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        @given(what)
        def examples(example):
            try:
                attempt(example)
            except LuckbaseError as error:
                assert str(error) and "\n" not in str(error)

        examples()
        over = time.monotonic() > until


def paths_in(value, path=()):
    """The path of every value in a JSON value."""
    yield path
    if isinstance(value, dict | list):
        inner = value.items() if isinstance(value, dict) else enumerate(value)
        for key, each in inner:
            yield from paths_in(each, (*path, key))


@pytest.mark.parametrize("which", range(3))
def test_manifests(tables, tmp_path, which):
    copy = hostile.copy_of(tables[which], tmp_path)
    state = {"open": (1, 2)} if which else {"scores": (0, 500, 1000), "earned": (0, 1, 0)}
    form = hostile.form_of(copy)
    places = [path for path in paths_in(form) if path]
    changes = st.lists(st.tuples(st.sampled_from(places), VALUES), min_size=1, max_size=3)

    def attempt(example):
        changed = json.loads(json.dumps(form))
        for path, value in example:
            inner = changed
            try:
                for key in path[:-1]:
                    inner = inner[key]
                if isinstance(inner, dict) == isinstance(path[-1], str):
                    inner[path[-1]] = value
            except (TypeError, LookupError):
                continue
        hostile.sealed(copy, changed)
        luckbase.status(str(copy))
        with luckbase.open(copy) as opened:
            opened.ask(state)
            assert opened.verify(5) is not None

    fuzz(changes, attempt)
    assert (copy / NAME).exists()


def test_files(tables, tmp_path):
    """Rows are changed, with all hashes right; then the table is read, and solved again."""
    column = st.lists(VALUES, min_size=1, max_size=3) | st.lists(NUMBERS, min_size=1, max_size=3)
    changes = st.tuples(
        st.integers(0, 2), st.integers(0, 3), st.integers(0, 12), st.integers(0, 30), column,
        st.booleans(),
    )  # fmt: skip

    def attempt(example):
        which, file, column, row, cells, keeps_type = example
        results = tmp_path / "t"
        shutil.rmtree(results, ignore_errors=True)
        copy = hostile.copy_of(tables[which], results)

        def change(rows):
            name = rows.column_names[column % rows.num_columns]
            old = rows[name].to_pylist()
            at = row % max(1, len(old))
            new = [*old[:at], *cells, *old[at + len(cells) :]][: len(old)]
            try:
                array = pa.array(new, rows[name].type if keeps_type else None)
                return rows.set_column(rows.column_names.index(name), name, array)
            except (pa.ArrowException, OverflowError, UnicodeEncodeError, TypeError):
                return rows

        number = file % len(hostile.form_of(copy)["files"])
        try:
            hostile.rows_changed(copy, change, number)
        except (pa.ArrowException, OSError):  # pyarrow does not write that
            return
        errors = [LuckbaseError("none")]
        for step in (_read, _verify, _half):
            try:
                step(copy)
            except LuckbaseError as error:
                errors.append(error)
        raise errors[-1]

    fuzz(changes, attempt, 40)


def _read(copy):
    with luckbase.open(copy) as opened:
        assert sum(1 for _ in opened) >= 0
        opened.export(str(copy.parents[2] / "out.csv"))


def _verify(copy):
    with luckbase.open(copy) as opened:
        assert opened.verify(None) is not None


def _half(copy):
    """Solve what is missing of a half of the table."""
    hostile.half(copy)
    board = luckbase.open(copy).game.board
    if board.game == "jackpot":
        solving.solve_below(board, results=copy.parents[2], one_piece=0)
    else:
        luckbase.solve(board, results=copy.parents[2])


def test_batches(tables):
    lines = st.lists(
        st.dictionaries(st.sampled_from(["scores", "scores_1", "earned", "note", ""]), VALUES),
        min_size=1, max_size=3,
    )  # fmt: skip
    as_lines = lines.map(lambda rows: "\n".join(map(json.dumps, rows)).encode())
    good = b'scores,earned\n"0,500,1000","0,1,0"\n'
    mutated = st.tuples(st.integers(0, len(good)), st.binary(max_size=9)).map(
        lambda change: good[: change[0]] + change[1] + good[change[0] :]
    )
    columns = st.dictionaries(
        st.sampled_from(["scores_1", "scores_2", "earned", "x"]), st.lists(VALUES, min_size=1)
    )
    contents = (
        st.tuples(st.just("jsonl"), as_lines | st.binary() | mutated)
        | st.tuples(st.just("csv"), mutated | st.binary())
        | st.tuples(st.just("parquet"), columns.map(in_parquet) | st.binary())
    )
    with luckbase.open(tables[0]) as opened:
        fuzz(contents, lambda it: opened.values(rows_in(it[1], it[0], "batch"), best=True))


def in_parquet(columns):
    """A Parquet file of columns; of those that Arrow takes."""
    file, arrays = io.BytesIO(), {}
    length = min(map(len, columns.values()), default=0)
    for name, cells in columns.items():
        try:
            arrays[name] = pa.array(cells[:length])
        except (pa.ArrowException, OverflowError, UnicodeEncodeError):
            arrays[name] = pa.array([0] * length)
    try:
        pq.write_table(pa.table(arrays), file)
    except pa.ArrowException:
        return b"PAR1"
    return file.getvalue()


def test_boards(tmp_path):
    text = TINY.read_text(encoding="utf-8")
    words = sorted({word for word in text.split() if word})
    values = VALUES.map(lambda value: json.dumps(value, default=str))
    changes = st.lists(st.tuples(st.sampled_from(words), values | st.text(max_size=9)), max_size=3)
    file = tmp_path / "board.toml"

    def attempt(example):
        changed = text
        for word, new in example:
            changed = changed.replace(word, new, 1)
        file.write_text(changed, encoding="utf-8", errors="replace")
        luckbase.load_board(file)

    fuzz(changes, attempt)
