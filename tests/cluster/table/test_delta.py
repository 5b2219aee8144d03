"""A table as a Delta table: read by name by programs that know nothing of luckbase."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import duckdb
import polars
import pytest

import luckbase
from luckbase.jobs.app import run
from luckbase.solver.errors import OptionError
from tests.places import BOARDS

deltalake = pytest.importorskip("deltalake", reason="needs deltalake, of the extra `test`")
COMMIT = "_delta_log/00000000000000000000.json"


@pytest.fixture
def folder(table_of: Callable[..., Path], tmp_path: Path) -> Path:
    """A full table in many files, the first of which has no more than others."""
    made = table_of(BOARDS / "press-your-luck/tiny.toml", frontier=1)
    return Path(shutil.copytree(made, tmp_path / made.name))


def test_others_read_it_by_name_with_all_its_rows(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["export", str(folder), "--format", "delta", "--json"]) == 0
    done = json.loads(capsys.readouterr().out)
    with luckbase.open(folder) as table:
        rows = table.to_arrow(columns=done["columns"]).read_all()
        ours = polars.from_arrow(rows).sort(done["columns"])
        bound = table.error
    assert done["rows"] == len(ours) and done["out"] == str(folder / COMMIT)
    found = polars.scan_delta(str(folder)).collect()
    assert found.cast(ours.schema).sort(done["columns"]).equals(ours)
    delta = deltalake.DeltaTable(folder)
    assert delta.version() == 0 and delta.metadata().configuration["luckbase.error"] == repr(bound)
    data = duckdb.from_arrow(delta.to_pyarrow_dataset()).filter("spins = 1")
    [(count, total)] = data.aggregate("count(*), sum(payoff_1::double)").fetchall()
    assert count == len(ours) and total == pytest.approx(
        ours["payoff_1"].cast(polars.Float64).sum(), rel=1e-12
    )


def test_statistics_are_those_of_the_files_so_that_readers_pass_over_the_right_ones(
    folder: Path,
) -> None:
    luckbase.open(folder).export("-", format="delta")
    lines = [json.loads(line) for line in (folder / COMMIT).read_text().splitlines()]
    added = [line["add"] for line in lines if "add" in line]
    assert {add["path"] for add in added} == {
        str(path.relative_to(folder)) for path in folder.rglob("*.parquet")
    }
    for add in added:
        stats, rows = json.loads(add["stats"]), polars.read_parquet(folder / add["path"])
        assert add["size"] == (folder / add["path"]).stat().st_size
        assert stats["numRecords"] == len(rows)
        assert {"spins", "whammies_1", "scores_1"} <= stats["minValues"].keys()
        for name in stats["minValues"]:
            span = (rows[name].min(), rows[name].max())
            assert (stats["minValues"][name], stats["maxValues"][name]) == span
    [engine] = [line["commitInfo"]["engineInfo"] for line in lines if "commitInfo" in line]
    assert engine.startswith("luckbase ")


def test_a_search_has_no_unsigned_columns_and_the_bytes_are_the_same_again(tmp_path: Path) -> None:
    made = luckbase.solve("jackpot/tiny", results=tmp_path).table
    with luckbase.open(made) as table:
        table.export("-", format="delta")
        first = (made / COMMIT).read_bytes()
        assert table.export("-", format="delta").rows == table.rows
        assert (made / COMMIT).read_bytes() == first
        found = polars.scan_delta(str(made)).select("open", "dice", "payoff_1").collect()
        assert dict(zip(*found.filter(dice=0)["open", "payoff_1"], strict=True))["1"] == 0.25
        assert not table.verify().faults and len(found) == table.rows
    assert luckbase.status(str(made))[0].state == "complete"


def test_a_table_that_was_published_is_one_in_its_store(tmp_path: Path, bucket: str) -> None:
    made = luckbase.solve("jackpot/tiny", results=tmp_path).table
    with luckbase.open(made) as table:
        table.publish(f"{bucket}/jackpot")
    with luckbase.open(f"{bucket}/jackpot") as table:
        assert table.export("-", format="delta").out == f"{bucket}/jackpot/{COMMIT}"
        rows = table.rows
    options = {"aws_allow_http": "true", "aws_region": "us-east-1"}
    found = polars.scan_delta(f"{bucket}/jackpot", storage_options=options)
    assert found.select(polars.len()).collect().item() == rows


def test_what_is_not_a_whole_table_is_one_sentence(
    tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in (["--out", "x"], ["spins=1"], ["--columns", "best"]):
        assert run(["export", str(folder), "--format", "delta", *words]) == 2
        said = capsys.readouterr().err
        assert said.startswith("luckbase: --format: delta: has all rows and columns; leave")
    table = luckbase.open("jackpot/tiny", in_memory=True)
    with pytest.raises(OptionError, match=r"delta: memory: .*expected a whole table"):
        table.export("-", format="delta")
