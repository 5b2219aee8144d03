"""A column of any Arrow type comes in: the answer is the one to the state that it means, or one
sentence. tests/test_fuzz.py has batches of random cells."""

from decimal import Decimal

import numpy as np
import pandas
import polars
import pyarrow as pa
import pytest

import luckbase

PIG = {"yours": 3}
"""The fields beside `mine`, which is a number of pig …"""
GOOFSPIEL = {"theirs": [1, 2], "deck": [1, 3]}
"""… and a set of goofspiel."""
INTS = [getattr(pa, f"{sign}int{bits}")() for sign in ("", "u") for bits in (8, 16, 32, 64)]
FLOATS = [pa.float16(), pa.float32(), pa.float64()]
DECIMALS = [pa.decimal32(6, 2), pa.decimal64(6, 2), pa.decimal128(6, 0), pa.decimal256(40, 2)]
TEXTS = [pa.string(), pa.large_string(), pa.string_view()]
BYTES = [pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(1)]
LISTS = [
    pa.list_,
    pa.large_list,
    pa.list_view,
    pa.large_list_view,
    lambda type_: pa.list_(type_, 2),
]
NONE = object()
"""No number: it is refused."""


def plain():
    """(column, the numbers that its cells mean) that must be answered: numbers and text."""
    for type_ in INTS:
        yield pa.array([0, 4, 3], type_), [0, 4, 3]
        yield pa.array([2, 2, 1], type_).dictionary_encode(), [2, 2, 1]
    for type_ in FLOATS:
        values = [0.0, -0.0, 3.0]
        yield pa.array(np.array(values, type_.to_pandas_dtype()), type_), [0, 0, 3]
    for type_ in DECIMALS:
        yield pa.array([Decimal(0), Decimal(2)], type_), [0, 2]
    for type_ in TEXTS:
        yield pa.array(["0", "4"], type_), [0, 4]
    yield pa.array(["4", "4"], pa.string()).dictionary_encode(), [4, 4]
    for type_ in BYTES:
        yield pa.array([b"0", b"4"], type_), [0, 4]
    yield pa.chunked_array([pa.array([9, 1], pa.int8())[1:], pa.array([], pa.int8()),
                            pa.array([2, 3], pa.int8())]), [1, 2, 3]  # fmt: skip


def strange():
    """(column, what its cells mean) that is answered so or refused; `NONE` is refused."""
    for type_ in INTS:
        wide = np.iinfo(type_.to_pandas_dtype())
        yield pa.array([int(wide.max)], type_), [NONE]
        yield pa.array([int(wide.min)], type_), [NONE if wide.min else 0]
    for value in (1.5, float("inf"), -1.0, 6e4):
        yield pa.array([value], pa.float64()), [NONE]
    for value in ("", "1.0", "٣", "x", "-1", "1 3", "2,3"):
        yield pa.array([value], pa.string()), [NONE]
        yield pa.array([value.encode()], pa.binary()), [NONE]
    for value, number in ((" 2 ", 2), ("$3", 3), ("+1", 1)):
        yield pa.array([value], pa.string()), [number]
    for value in (b"\0", b"\xff", b"\xc3\xa9"):
        yield pa.array([value], pa.binary()), [NONE]
        yield pa.array([value], pa.binary()).view(pa.string()), [NONE]  # perhaps not UTF-8
    yield pa.array([Decimal("1.50")], pa.decimal128(6, 2)), [NONE]
    yield pa.array([True], pa.bool_()), [NONE]
    for type_ in (pa.null(), pa.int8(), pa.float64(), pa.string(), pa.date32()):
        yield pa.array([None], type_), [NONE]  # `mine` may not be left out
    for kind in LISTS:
        yield pa.array([[1, 3]], kind(pa.int8())), [NONE]


def strange_types():
    """Columns that say no number, whatever is stored."""
    for stored, type_ in (
        (pa.int32(), pa.date32()), (pa.int64(), pa.date64()), (pa.int32(), pa.time32("s")),
        (pa.int64(), pa.time64("ns")), (pa.int64(), pa.timestamp("ns", "Mars/Hill")),
        (pa.int64(), pa.timestamp("s", "UTC")),
        *[(pa.int64(), kind(unit)) for kind in (pa.timestamp, pa.duration)
          for unit in ("s", "ms", "us", "ns")],
    ):  # fmt: skip
        for value in (2, np.iinfo(stored.to_pandas_dtype()).max):
            yield pa.array([value], stored).view(type_), [NONE]
    yield pa.array([pa.MonthDayNano([1, 2, 3])], pa.month_day_nano_interval()), [NONE]
    yield pa.array([[(1, 2)]], pa.map_(pa.int8(), pa.int8())), [NONE]
    yield pa.array([{"mine": 2}], pa.struct({"mine": pa.int8()})), [NONE]
    for type_, value in ((pa.uuid(), b"1" * 16), (pa.bool8(), 1)):
        stored = pa.array([value], type_.storage_type)
        yield pa.ExtensionArray.from_storage(type_, stored), [NONE]


def sets():
    """(column of sets, what its cells mean); a set of nothing or of twice the same is refused."""
    for kind in LISTS:
        for type_ in (*INTS, pa.float32(), pa.string()):
            values = [["1", "3"], ["2", "4"]] if type_ == pa.string() else [[1, 3], [2, 4]]
            yield pa.array(values, kind(type_)), [[1, 3], [2, 4]]
    for text in ("1 3", "1,3", "1, 3"):
        yield pa.array([text], pa.string()), [[1, 3]]
        yield pa.array([text.encode()], pa.binary()), [[1, 3]]
    for value in ([], [1, 1], [1, None], [99, 1]):
        yield pa.array([value], pa.list_(pa.int64())), [NONE]
    yield pa.array([[[1], [3]]], pa.list_(pa.list_(pa.int8()))), [NONE]


COLUMNS = [
    *[("pig", PIG, True, *each) for each in plain()],
    *[("pig", PIG, False, *each) for each in (*strange(), *strange_types())],
    *[("goofspiel", GOOFSPIEL, False, *each) for each in sets()],
]


@pytest.fixture(scope="module")
def tables(web_results):
    games = ("pig", "goofspiel")
    result = {game: luckbase.open(next((web_results / game / "tiny").iterdir())) for game in games}
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


def answers_to(table, frame):
    return list(table.ask_all(frame))


def payoffs(table, frame):
    result = table.values(frame)
    if isinstance(result, list):
        return [row["payoff_1"] for row in result]
    return result["payoff_1"].to_numpy().tolist()


def test_a_frame_is_answered_as_single_questions_or_refused(tables):
    assert len(COLUMNS) > 150
    for game, rest, must, column, meant in COLUMNS:
        fields = {name: pa.array([value] * len(meant)) for name, value in rest.items()}
        frame = pa.table({"mine": column, **fields, "note": column})
        table = tables[game]
        answers = None if NONE in meant else [table[{**rest, "mine": value}] for value in meant]
        right = answers and [answer.value[0] for answer in answers]
        asked = [(answers_to, frame, answers), *((payoffs, each, right) for each in frames(frame))]
        for how, each, wanted in asked:
            try:
                result = how(table, each)
            except luckbase.LuckbaseError as error:
                assert not must, (column, error)
                assert str(error) and "\n" not in str(error) and len(str(error)) < 600
                continue
            assert result == wanted, column


def test_whole_floats_of_a_csv_are_numbers_and_a_gap_is_not_said(tables, tmp_path, command):
    path, out = tmp_path / "in.csv", tmp_path / "out.csv"
    path.write_bytes(b"mine,yours,turn\n0.0,3.0,4.0\n0.0,3.0,\n0.0,3.0,nan\n")
    assert command("query", tables["pig"].where, "--batch", path, "--out", out)[0] == 0
    result = pandas.read_csv(out)["payoff_1"].tolist()
    query = [tables["pig"][{"mine": 0, "yours": 3, "turn": turn}].value[0] for turn in (4, 0, 0)]
    assert result == query
