"""A column of any Arrow type comes in: the answer is the one to the state that it means, or one
sentence."""

from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pandas
import polars
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import luckbase
from luckbase.jobs.app import run

OTHER = object()
"""What a cell holds that says no number: a date, a struct, …"""
REST = {"pig": {"yours": 3}, "goofspiel": {"theirs": [1, 2], "deck": [1, 3]}}
"""The fields beside `mine`, which is a number of pig, and a set of goofspiel."""


# --- what a cell says, read slowly --------------------------------------------------------------


def numbers(value):
    """The numbers that a cell says; None where it says none that a state can have."""
    if value is OTHER or isinstance(value, bool):
        return None
    if value is None or value != value:
        return []
    if isinstance(value, bytes):
        try:
            value = value.decode("utf-8")
        except UnicodeDecodeError:
            return None
    if isinstance(value, str):
        words = value.replace("$", "").replace(",", " ").split()
        if not all(word.lstrip("+-").isdigit() and word.isascii() for word in words):
            return None
        return [int(word) for word in words]
    if isinstance(value, list):
        each = [numbers(item) for item in value]
        good = all(item and len(item) == 1 for item in each)
        return [item[0] for item in each] if good else None
    value = float(value) if isinstance(value, np.float16) else value
    return [int(value)] if abs(value) < 10**30 and int(value) == value else None


def right_answer(table, game, value):
    """The answer to the state that a cell of `mine` says, by a single question; None for none."""
    text = numbers(value)
    if text is None or (game == "pig" and len(text) != 1):
        return None
    try:
        return table[REST[game] | {"mine": text[0] if game == "pig" else text}]
    except luckbase.LuckbaseError:
        return None


# --- columns ------------------------------------------------------------------------------------


class Column(NamedTuple):
    """An Arrow array, and what its cells hold. plain: numbers and text must be taken."""

    array: Any
    cells: list
    plain: bool = True


WHOLE = st.integers(0, 4)
TEXTS = st.one_of(
    WHOLE.map(str), st.sampled_from(["1 3", "2,3", "1,2", "", " 2 ", "$3", "+1", "1.0", "٣", "x"]),
    st.text(max_size=4),
)  # fmt: skip
BYTES = TEXTS.map(str.encode) | st.binary(max_size=3)
FLOATS = st.sampled_from([0.0, -0.0, 1.0, 2.0, 3.0, 1.5, float("nan"), float("inf"), -1.0, 6e4])
INTS = [getattr(pa, f"{sign}int{bits}")() for sign in ("", "u") for bits in (8, 16, 32, 64)]
DECIMALS = [pa.decimal32(6, 2), pa.decimal64(6, 2), pa.decimal128(6, 0), pa.decimal256(40, 2)]
TIMES = [
    (pa.int32(), pa.date32()), (pa.int64(), pa.date64()), (pa.int32(), pa.time32("s")),
    (pa.int64(), pa.time64("ns")), (pa.int64(), pa.timestamp("ns", "Mars/Hill")),
    (pa.int64(), pa.timestamp("s", "UTC")),
    *[(pa.int64(), kind(unit)) for kind in (pa.timestamp, pa.duration)
      for unit in ("s", "ms", "us", "ns")],
]  # fmt: skip


def extremes(type_):
    """Small whole numbers, and all that a type holds."""
    wide = np.iinfo(type_.to_pandas_dtype())
    return WHOLE | st.sampled_from([int(wide.min), int(wide.max)]) | st.integers(wide.min, wide.max)


def many(cells):
    return st.lists(st.none() | cells, max_size=4) | st.lists(cells, max_size=4)


def of(type_, cells):
    return many(cells).map(lambda stored: Column(pa.array(stored, type_), stored))


def strange(array, cells):
    """Columns that say nothing, whatever it looks like."""
    return many(cells).map(lambda stored: Column(
        array(stored), [None if cell is None else OTHER for cell in stored], plain=False
    ))  # fmt: skip


@st.composite
def lists(draw):
    """Lists of a plain column's cells, in every kind of list."""
    column, size = draw(PLAIN), draw(st.integers(0, 2))
    cell = st.sampled_from(column.cells or [None])
    stored = draw(many(st.lists(cell, min_size=size, max_size=size)))
    kinds = [pa.list_, pa.large_list, pa.list_view, pa.large_list_view,
             lambda value: pa.list_(value, size)]  # fmt: skip
    kind = draw(st.sampled_from(kinds))(column.array.type)
    return Column(pa.array(stored, kind), stored, plain=False)


TEXT_OR_WHOLE = [*[of(type_, extremes(type_)) for type_ in INTS], of(pa.string(), TEXTS)]
PLAIN = st.one_of(
    *TEXT_OR_WHOLE,
    *[of(type_, FLOATS) for type_ in (pa.float32(), pa.float64())],
    of(pa.float16(), FLOATS.map(np.float16)),
    *[of(type_, WHOLE.map(Decimal)) for type_ in DECIMALS],
    of(pa.decimal128(6, 2), st.sampled_from([Decimal("1.50"), Decimal("2.00"), Decimal("-1")])),
    of(pa.bool_(), st.booleans()),
    *[of(type_, TEXTS) for type_ in (pa.large_string(), pa.string_view())],
    *[of(type_, BYTES) for type_ in (pa.binary(), pa.large_binary(), pa.binary_view())],
    of(pa.binary(1), st.sampled_from([b"0", b"1", b"2", b"3", b"\0", b"\xff"])),
    of(pa.null(), st.none()),
)  # fmt: skip
ENCODED = st.one_of(*TEXT_OR_WHOLE).map(
    lambda column: Column(column.array.dictionary_encode(), column.cells)
)
BROKEN = many(BYTES).map(lambda held: Column(pa.array(held, pa.binary()).view(pa.string()), held))
INTERVALS = st.tuples(*[st.integers(1, 3)] * 3).map(pa.MonthDayNano)
PAIRS = st.lists(st.tuples(WHOLE, WHOLE), min_size=1, max_size=1)
STRANGE = st.one_of(
    *[strange(lambda held, a=a, b=b: pa.array(held, a).view(b), WHOLE | extremes(a))
      for a, b in TIMES],
    *[strange(lambda held, kind=kind: pa.array(held, kind), cells) for kind, cells in [
        (pa.month_day_nano_interval(), INTERVALS), (pa.map_(pa.int8(), pa.int8()), PAIRS),
        (pa.struct({"mine": pa.int8()}), st.fixed_dictionaries({"mine": WHOLE})),
        (pa.list_(pa.list_(pa.int8())), st.just([[1], [3]])),
    ]],
    *[strange(lambda held, kind=kind: pa.ExtensionArray.from_storage(
        kind, pa.array(held, kind.storage_type)), cells)
      for kind, cells in [(pa.uuid(), st.just(b"1" * 16)), (pa.bool8(), WHOLE)]],
)  # fmt: skip


@st.composite
def columns(draw):
    """A column in chunks, one of them perhaps empty, that are slices of something longer."""
    column = draw(st.one_of(PLAIN, ENCODED, lists(), STRANGE, BROKEN))
    array, n = column.array, len(column.cells)
    cut, skipped = draw(st.integers(0, n)), draw(st.integers(0, n))
    chunks = [array[:cut], array[cut:]] if draw(st.booleans()) else [array]
    if skipped <= len(chunks[0]):
        chunks[0] = chunks[0][skipped:]
    cells = column.cells[n - sum(map(len, chunks)) :]
    return Column(pa.chunked_array(chunks, array.type), cells, column.plain)


def is_plain(cell):
    """Whether nothing but an answer will do."""
    text = isinstance(cell, str | bytes) and cell.strip() == cell and cell.isdigit()
    return text or type(cell) in (int, float, Decimal, np.float16)


@pytest.fixture(scope="module")
def tables(web_results):
    result = {game: luckbase.open(next((web_results / game / "tiny").iterdir())) for game in REST}
    yield result
    for table in result.values():
        table.close()


def in_polars(table):
    frame = polars.from_arrow(table)
    frame.to_arrow()  # it takes some types, and panics later
    return frame


def frames(table):
    """The same in every kind of frame that holds it."""
    yield table
    if isinstance(table["mine"].type, pa.BaseExtensionType):
        return  # others take what is stored
    for make in (table.to_pandas, lambda: table.to_pandas(types_mapper=pandas.ArrowDtype),
                 table.to_pylist, lambda: in_polars(table)):  # fmt: skip
        try:
            frame = make()
        except BaseException as error:
            assert isinstance(error, Exception) or type(error).__name__ == "PanicException"
            continue  # of polars
        yield frame


def payoffs(rows):
    if isinstance(rows, list):
        return [row["payoff_1"] for row in rows]
    return list(rows["payoff_1"].to_numpy())


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    deadline=None, derandomize=True, max_examples=100,
)  # fmt: skip
@given(game=st.sampled_from(sorted(REST)), column=columns())
def test_python_answers_what_a_frame_says_or_refuses_it(tables, game, column):
    table = tables[game]
    answers = [right_answer(table, game, cell) for cell in column.cells]
    right = None if None in answers else answers
    must = right is not None and column.plain and all(map(is_plain, column.cells))
    rest = {name: pa.array([value] * len(answers)) for name, value in REST[game].items()}
    frame = pa.table({"mine": column.array, **rest, "note": column.array})

    def check(ask, value):
        """Ask; `value`: of an answer here, what `ask` gives of each row."""
        try:
            result = list(ask())
        except luckbase.LuckbaseError as error:
            assert not must, error
            assert str(error) and "\n" not in str(error) and len(str(error)) < 600
            return
        assert right is not None, f"{frame} was answered: {result}"
        assert result == [value(answer) for answer in right]

    check(lambda: [answer.state for answer in table.ask_all(frame)], lambda a: a.state)
    for each in frames(frame):
        check(lambda each=each: payoffs(table.values(each)), lambda a: a.value[0])


def test_whole_floats_of_a_csv_are_numbers_and_a_gap_is_not_said(tables, tmp_path):
    path, out = tmp_path / "in.csv", tmp_path / "out.csv"
    path.write_bytes(b"mine,yours,turn\n0.0,3.0,4.0\n0.0,3.0,\n0.0,3.0,nan\n")
    words = ["query", str(tables["pig"].where), "--batch", str(path), "--out", str(out)]
    assert run(words) == 0
    result = pandas.read_csv(out)["payoff_1"].tolist()
    query = [tables["pig"][{"mine": 0, "yours": 3, "turn": turn}].value[0] for turn in (4, 0, 0)]
    assert result == query
