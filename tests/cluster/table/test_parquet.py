"""Row groups whose repeated columns are coded once: what every reader sees is what pyarrow would
have written."""

import duckdb
import numpy as np
import polars as pl
import pyarrow.parquet as pq
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from luckbase.cluster.table import parquet
from luckbase.cluster.table.format import as_table, group_starts, names_column
from luckbase.cluster.table.parquet import Writer
from luckbase.solver.game.arrays import Runs

PLACES = {"data_page_offset", "dictionary_page_offset", "file_offset"}
TYPES = (np.int8, np.uint8, np.int32, np.int64)


def fixed(values, kind):
    """A read-only array."""
    column = np.array(values, kind)
    column.setflags(write=False)
    return column


@st.composite
def groups_of_columns(draw):
    """(columns with statistics, row groups): runs and read-only arrays that come again or not."""
    names = [f"c{i}" for i in range(draw(st.integers(0, 20)))]
    kinds = {name: draw(st.sampled_from(TYPES)) for name in names}
    ways = {name: draw(st.sampled_from(["runs", "fixed", "plain"])) for name in names}
    rows = draw(st.integers(0, 40))
    known = {name: [] for name in names}
    groups = []
    for _ in range(draw(st.integers(1, 18))):
        columns = {}
        for name in names:
            if known[name] and draw(st.booleans()):
                columns[name] = known[name][0]
                continue
            values = draw(st.lists(st.integers(0, 100), min_size=rows, max_size=rows))
            column = np.array(values, kinds[name])
            if ways[name] == "fixed":
                column = fixed(values, kinds[name])
            elif ways[name] == "runs" and rows % 2 == 0:
                column = Runs(column[: rows // 2], 2)
            columns[name] = column
            known[name].append(column)
        columns["payoff"] = np.arange(rows) / 7
        columns["best"] = names_column(np.arange(rows) % 3 - 1, ["play", "pass to 2"])
        groups.append(columns)
    return draw(st.lists(st.sampled_from(names), unique=True)) if names else [], groups


def write(path, pruned, groups):
    writer = Writer(
        path, {"luckbase": "é"}, ["payoff"], pruned, lambda c: as_table({"c": c})[0].chunk(0)
    )
    for columns in groups:
        writer.write(columns)
    writer.close()
    return writer


def of_metadata(path):
    """All that a footer says but places."""
    found = pq.read_metadata(path).to_dict()
    found.pop("serialized_size")
    for group in found["row_groups"]:
        for column in group["columns"]:
            for name in PLACES:
                column.pop(name, None)
    return found


@settings(deadline=None, max_examples=30, suppress_health_check=list(HealthCheck))
@given(drawn=groups_of_columns())
def test_the_file_is_the_one_that_pyarrow_writes(tmp_path, drawn):
    pruned, groups = drawn
    mine, plain = tmp_path / "mine.parquet", tmp_path / "plain.parquet"
    writer = write(mine, pruned, groups)
    write(plain, pruned, [
        {name: as_table({"c": column})[0].chunk(0) for name, column in columns.items()}
        for columns in groups
    ])  # fmt: skip
    assert pq.read_schema(mine).equals(pq.read_schema(plain), check_metadata=True)
    assert pq.read_table(mine).equals(pq.read_table(plain))
    assert of_metadata(mine) == of_metadata(plain)
    about = pq.read_metadata(mine)
    assert writer.starts == group_starts(about)
    for number, columns in enumerate(groups):  # also alone, as a look-up reads them
        expected = as_table(columns)
        found = pq.ParquetFile(mine, read_dictionary=["best"]).read_row_group(number)
        assert found.to_pydict() == expected.to_pydict()


def test_other_readers_read_it(tmp_path):
    path = tmp_path / "a.parquet"
    column = fixed([3, 1, 2, 9], np.int32)
    groups = [
        {"spins": Runs(np.array([2], np.int32), 4), "score": column, "n": np.arange(4) + i,
         "payoff": np.array([.5, .25, 0, 1]), "best": names_column(np.zeros(4, np.int8), ["play"])}
        for i in range(20)
    ]  # fmt: skip
    write(path, ["spins"], groups)
    expected = {name: column for name, column in pq.read_table(path).to_pydict().items()}
    assert pl.read_parquet(path).to_dict(as_series=False) == expected
    found = duckdb.sql(f"select * from '{path}'").fetchnumpy()
    assert {name: column.tolist() for name, column in found.items()} == expected
    assert duckdb.sql(f"select count(*) from '{path}' where spins = 3").fetchall() == [(0,)]


def test_what_comes_again_is_coded_once(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "_chunks", type(parquet._chunks)())
    coded = []
    original = Writer._coded

    def count(self, schema, arrays=()):
        if arrays:
            coded.append(schema.names)
        return original(self, schema, arrays)

    monkeypatch.setattr(Writer, "_coded", count)
    column, payoff = fixed([1, 2], np.int32), np.zeros(2)
    groups = [
        {"a": column, "b": column, "c": Runs(np.array([i // 2], np.int32), 2), "payoff": payoff}
        for i in range(4)
    ]
    first = tmp_path / "a.parquet"
    write(first, [], groups)
    assert coded == [["a"], ["c"], ["c"]]
    write(tmp_path / "b.parquet", [], groups)
    assert len(coded) == 3
    write(tmp_path / "c.parquet", ["a"], groups)  # with statistics it is another one
    assert coded[3:] == [["a"]]
    assert first.read_bytes() == (tmp_path / "b.parquet").read_bytes()


def test_an_array_that_may_change_is_not_taken_to_repeat(tmp_path):
    base = np.zeros(3, np.int32)
    view = base[:]
    view.setflags(write=False)  # the one below may still change
    groups = []
    path = tmp_path / "a.parquet"
    writer = Writer(path, {}, [], [], lambda column: as_table({"c": column})[0].chunk(0))
    for i in range(3):
        base[:] = i
        writer.write({"a": view, "b": base})
        groups += [i] * 3
    writer.close()
    assert pq.read_table(path).to_pydict() == {"a": groups, "b": groups}


def test_keys_are_stored_as_differences(tmp_path):
    """Less than a byte each; plain they take four."""
    keys = np.cumsum(np.random.default_rng(1).integers(1, 9, 20_000)).astype(np.uint64)
    write(tmp_path / "keys", [], [{"key": keys}])
    column = pq.read_metadata(tmp_path / "keys").row_group(0).column(0)
    assert "DELTA_BINARY_PACKED" in column.encodings
    assert column.total_compressed_size < len(keys)
    assert np.array_equal(pq.read_table(tmp_path / "keys")["key"], keys)
