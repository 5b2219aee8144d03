"""DuckDB, pandas and polars read a table as it is: the lines of the page on stores, after solves of
two boards and a search in the same results folder."""

import duckdb
import numpy as np
import pandas
import polars
import pytest

from tests import solving
from tests.places import BOARDS

FEBRUARY = BOARDS / "press-your-luck/1985-02.toml"
WIN = BOARDS / "goofspiel/win.toml"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with results/ as the page's first command makes it, of one spin, and more."""
    folder = tmp_path_factory.mktemp("engines")
    results = folder / "results"
    board = solving.load_board(FEBRUARY, score_unit=500, frontier=1)
    solving.solve_board(board, results=results)
    solving.solve_board(solving.load_board(FEBRUARY, score_unit=1000, frontier=1), results=results)
    root = solving.load_game(board).parse({"scores": "0,19000,19500", "earned": "0,1,1"})
    solving.solve_below(board, root[None], results=results, workers=1)
    return folder


def test_every_column_has_one_type_in_every_engine(folder):
    """The constant ones as well, which folders' names would give as texts or categories."""
    tiers = next((folder / "results").glob("*/*/ab2edb73e281")) / "tiers"
    full = pandas.read_parquet(tiers)
    assert str(full["spins"].dtype) == str(full["whammies_2"].dtype) == "int32"
    assert str(full["to_act"].dtype) == "int8"
    lazy = polars.scan_parquet(tiers).collect_schema()
    assert lazy["spins"] == lazy["whammies_2"] == polars.Int32
    assert lazy["best"] == polars.String
    sql = f"select typeof(spins), typeof(best), count(*) from '{tiers}/*.parquet' group by all"
    assert duckdb.sql(sql).fetchall() == [("INTEGER", "VARCHAR", len(full))]


def test_a_search_is_read_alike(folder):
    (search,) = next((folder / "results").glob("*/*/ab2edb73e281")).glob("search-*")
    read = polars.read_parquet(search)
    assert read["key"].dtype == polars.UInt64 and read["key"].is_unique().all()
    decided = read.filter(polars.col("margin").is_not_null())
    assert (decided["margin"] >= 0).all() and decided["best"].null_count() == 0
    assert len(decided) > 10


def test_the_lead_in_a_search_is_in_points_as_in_a_query(tmp_path):
    """Of the start it is 0; and a row's columns, read as a query's fields, are its state."""
    board = solving.load_board(WIN, cards=3)
    game = solving.load_game(board)
    start = game.needed_start()
    solved = solving.solve_below(board, start[None], results=tmp_path, workers=1)
    (search,) = solved.table.glob("search-*")
    rows = pandas.read_parquet(search)
    first = rows[(rows["mine"] == "1 2 3") & (rows["upcard"] == 0)]
    assert first["lead"].tolist() == [0]
    assert rows["lead"].min() == -rows["lead"].max() < 0
    query = {name: rows[name].to_numpy() for name in game.columns}
    states = game.canonical_states(game.fields.read_columns(query, len(rows)))
    assert len(np.unique(states, axis=0)) == len(rows) == solved.states
    with solving.open_table(solved.table) as table:
        result = np.concatenate(list(table.draw(table.rows, 0)))
        assert {tuple(state) for state in result.tolist()} == {tuple(s) for s in states.tolist()}
        assert np.array_equal(table.probe(states)[:, 0], rows["payoff_1"])
        for row in rows.sample(10, random_state=1).to_dict("records"):
            words = {name: row[name] for name in game.columns}
            assert table.ask(words).value[0] == pytest.approx(row["payoff_1"], abs=1e-12)
