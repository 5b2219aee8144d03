"""Parquet files that pyarrow writes and that are read only as they were written."""

from types import SimpleNamespace

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from luckbase.cluster.store.format import arrow_columns, names_column, new_entry, write_file
from luckbase.cluster.store.parquet import RowGroups, TableFile, size_of
from luckbase.cluster.store.storage import Folder, Memory
from luckbase.solver.errors import CorruptTableError
from luckbase.solver.game.arrays import Runs

ROWS, GROUP = 2000, 100
GAME = SimpleNamespace(board=SimpleNamespace(game="é"))


def columns(start, stop):
    index = np.arange(start, stop)
    return {
        "key": np.cumsum(np.random.default_rng(1).integers(1, 9, ROWS))[index].astype(np.uint64),
        "spins": Runs(np.array([2], np.int32), len(index)),
        "payoff_1": np.random.default_rng(2).random(ROWS)[index],
        "payoff_2": np.random.default_rng(3).random(ROWS)[index].astype(np.float32),
        "best": names_column(index % 3 - 1, ["play", "pass to 2"]),
    }


def write(folder, rows=ROWS):
    """The entry of a file of `columns`, in its place."""
    entry = new_entry("tiers/a.parquet", 0, (rows, GROUP), (0, rows - 1), 0.0)
    entry, path = write_file(
        Folder(folder), GAME, entry, columns, ["payoff_1", "payoff_2"], ["spins"]
    )
    path.replace(folder / "tiers/a.parquet")
    return entry


def read(folder, entry):
    file = TableFile(Folder(folder), folder, entry)
    return [file.read(group, file.schema.names).to_pydict() for group in range(file.groups)]


def expected(start, stop):
    return {name: array.to_pylist() for name, array in arrow_columns(columns(start, stop)).items()}


def test_what_was_written_is_read_in_any_order_of_row_groups(tmp_path):
    entry = write(tmp_path)
    file = TableFile(Folder(tmp_path), tmp_path, entry)
    assert file.groups == ROWS // GROUP
    for group in np.random.default_rng(0).permutation(file.groups).tolist():
        result = file.read(group, file.schema.names).to_pydict()
        assert result == expected(group * GROUP, (group + 1) * GROUP)


@pytest.mark.parametrize("rows", [0, 1, GROUP, GROUP + 1])
def test_a_file_of_few_rows_or_none(tmp_path, rows):
    entry = write(tmp_path, rows)
    assert sum(len(group["key"]) for group in read(tmp_path, entry)) == rows
    assert pq.read_metadata(tmp_path / entry.name).num_rows == rows


def test_other_readers_read_it(tmp_path):
    path = tmp_path / write(tmp_path).name
    every = pq.ParquetFile(path, page_checksum_verification=True).read().to_pydict()
    assert every == expected(0, ROWS)
    assert pl.read_parquet(path).to_dict(as_series=False) == every
    result = duckdb.sql(f"select * exclude best from '{path}'").fetchnumpy()
    assert {name: column.tolist() for name, column in result.items()} == {
        name: column for name, column in every.items() if name != "best"
    }
    assert duckdb.sql(f"select count(*) from '{path}' where spins = 3").fetchall() == [(0,)]
    assert pq.read_metadata(path).metadata[b"luckbase.game"].decode() == "é"


def test_keys_are_stored_as_differences(tmp_path):
    """Less than two bytes each; plain they take eight."""
    column = pq.read_metadata(tmp_path / write(tmp_path).name).row_group(0).column(0)
    assert "DELTA_BINARY_PACKED" in column.encodings
    assert column.total_compressed_size < 2 * GROUP


def test_the_same_columns_make_the_same_bytes(tmp_path):
    (tmp_path / "1").mkdir(), (tmp_path / "2").mkdir()
    assert write(tmp_path / "1").sha256 == write(tmp_path / "2").sha256


def changes(path, entry, where):
    """Each byte of a span of the file changed in turn, a bit and all of it, and restored."""
    full = path.read_bytes()
    for at in where:
        for change in (1, 0x12, 0x80):
            path.write_bytes(full[:at] + bytes([full[at] ^ change]) + full[at + 1 :])
            yield at
    path.write_bytes(full)


def test_no_changed_byte_of_a_page_header_is_read(tmp_path):
    """Page checksums do not cover these: 0x12 turns byte-stream-split into plain numbers."""
    entry = write(tmp_path)
    path = tmp_path / entry.name
    about = pq.read_metadata(path).row_group(3)
    pages = [about.column(i).data_page_offset for i in range(about.num_columns)]
    payoffs = [pages[about.to_dict()["columns"].index(c)] for c in about.to_dict()["columns"]
               if c["path_in_schema"].startswith("payoff")]  # fmt: skip
    blind = 0
    for index in changes(path, entry, [start + i for start in pages for i in range(26)]):
        with pytest.raises(CorruptTableError, match="row group 4 of 20"):
            TableFile(Folder(tmp_path), tmp_path, entry).read(3, ["payoff_1", "payoff_2"])
        if any(0 <= index - start < 26 for start in payoffs):
            try:
                file = pq.ParquetFile(path, page_checksum_verification=True)
                result = file.read_row_group(3, ["payoff_1", "payoff_2"]).to_pydict()
                blind += result != {n: expected(300, 400)[n] for n in result}
            except (OSError, pa.ArrowException):
                pass
    assert blind, "pyarrow checks page headers by now: its page checksums are enough"


def test_no_changed_byte_of_a_footer_is_read(tmp_path):
    entry = write(tmp_path, 300)
    path = tmp_path / entry.name
    for _ in changes(path, entry, range(entry.bytes - entry.footer, entry.bytes, 7)):
        with pytest.raises(CorruptTableError, match="its footer"):
            TableFile(Folder(tmp_path), tmp_path, entry)


# --- row groups that are kept --------------------------------------------------------------------


def groups_of(decode, max_bytes, monkeypatch):
    entry = new_entry("tiers/a.parquet", 0, (400, 10), (0, 399), 0.0)
    groups = RowGroups(Memory(), "", [entry], decode)
    monkeypatch.setattr(groups, "file", lambda i: None)
    groups.max_bytes = max_bytes
    return groups


def test_the_row_groups_used_last_are_kept_with_the_columns_read_so_far(monkeypatch):
    decoded = []

    def decode(file, number, names):
        decoded.append((number, *names))
        return {name: np.full(10, number, float) for name in names}

    groups, rng = groups_of(decode, 20 * 160, monkeypatch), np.random.default_rng(0)
    used = {}  # the columns read of each row group, the last used last
    for number in rng.integers(0, 40, 2000).tolist():
        name, before = str(rng.choice(["best", "values"])), len(decoded)
        kept = used.pop(number, set())
        used[number] = kept | {name}
        while sum(map(len, used.values())) > 40:  # columns of 80 bytes
            del used[next(iter(used))]
        assert (groups.get(0, number, {name})[name] == number).all()
        assert decoded[before:] == [(number, name)] * (name not in kept)
        assert [*groups._groups] == [(0, each) for each in used]
        assert groups.bytes == sum(map(size_of, groups._groups.values())) <= groups.max_bytes
    assert 20 <= len(used) <= 40


def test_a_batch_larger_than_the_cache_is_answered_and_the_cache_stays_bounded(monkeypatch):
    groups = groups_of(lambda file, number, names: {"x": np.full(10, number, float)}, 800,
                       monkeypatch)  # fmt: skip
    query, result = [(0, number) for number in range(40)] * 2, {}
    groups.each(query, {"x"}, lambda k, group: result.update({k: group["x"][0]}))
    assert result == {k: number for k, (_, number) in enumerate(query)}
    assert groups.bytes == sum(map(size_of, groups._groups.values())) <= 800
