"""What strangers send, at random: manifests, batches of states, boards. Seconds by default; with
FUZZ_SECONDS=1800 half an hour (CONTRIBUTING.md). Only our own errors may come of it, in a line."""

import io
import json
import os
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

import luckbase
from luckbase.cluster.table.frames import rows_in
from luckbase.cluster.table.manifest import NAME
from luckbase.solver.errors import LuckbaseError
from tests.cluster.table import hostile
from tests.places import BOARDS

SECONDS = float(os.environ.get("FUZZ_SECONDS", "6"))
"""For all three together."""
TINY = BOARDS / "press-your-luck" / "tiny.toml"
NUMBERS = st.sampled_from([0, 1, -1, 7, 1 << 31, 1 << 40, 1 << 62, (1 << 63) - 1, 1 << 64, 0.5])
TEXTS = st.sampled_from(["", "x", "../x", "/dev/zero", "tiers/a.parquet", "\0", "é", "0" * 64])
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.integers() | st.floats() | TEXTS | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=6,
)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    board = luckbase.load_board(TINY, frontier=1, decisions=2)
    return luckbase.solve(board, results=tmp_path_factory.mktemp("fuzz")).table


def fuzz(what, attempt):
    """attempt(an example) for a third of the time, with other examples each round."""
    until, over = time.monotonic() + SECONDS / 3, False
    while not over:

        @seed(0 if SECONDS < 60 else time.time_ns())
        @settings(
            max_examples=100, deadline=None, database=None, phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
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
    inner = (
        value
        if isinstance(value, dict)
        else dict(enumerate(value if isinstance(value, list) else ()))
    )
    for key, each in inner.items():
        yield from paths_in(each, (*path, key))


def test_manifests(table, tmp_path):
    copy = hostile.copy_of(table, tmp_path)
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
                inner[path[-1]] = value
            except (TypeError, LookupError):
                continue
        hostile.sealed(copy, changed)
        luckbase.status(str(copy))
        with luckbase.open(copy) as opened:
            opened.ask(scores=(0, 500, 1000), earned=(0, 1, 0))
            assert opened.verify(5) is not None

    fuzz(changes, attempt)
    assert (copy / NAME).exists()


def test_batches(table):
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
    with luckbase.open(table) as opened:
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
