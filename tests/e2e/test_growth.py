"""A table grows: what was committed stays, in any order of growth the same bytes and rows."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from luckbase.cluster.answers.verify import check_files
from luckbase.cluster.solve import tiers, worker
from luckbase.cluster.solve.plan import make_plan
from luckbase.cluster.store.storage import Folder
from luckbase.cluster.store.writer import read_manifest
from luckbase.jobs.app import run
from luckbase.solver.errors import RequestError
from tests import solving
from tests.e2e.stopped import solve_until
from tests.shared import files_of as files

ROOT = Path(__file__).parents[2]
TINY = ROOT / "boards/press-your-luck/tiny.toml"
POINTS = ROOT / "boards/goofspiel/points.toml"


def board(frontier, **settings):
    return solving.load_board(TINY, frontier=frontier, **settings)


def read(table):
    return read_manifest(Folder(table), table)


@pytest.fixture(scope="module")
def at_once(tmp_path_factory):
    created = solving.solve_board(board(3, score_cap=1500), results=tmp_path_factory.mktemp("once"))
    return created.table


def test_a_raised_frontier_extends_the_table_and_writes_nothing_again(at_once, tmp_path):
    before = {}
    rows = 0
    for frontier in (1, 2, 3):
        solved = solving.solve_board(board(frontier, score_cap=1500), results=tmp_path)
        assert (solved.kept, solved.kept + solved.states) == (rows, solved.manifest.rows)
        assert all(p.stat().st_mtime_ns == then for p, then in before.items())
        if frontier > 1:
            assert solved.again == rows  # float32 on disk: all of it is read, and solved again
        rows = solved.manifest.rows
        before = {p: p.stat().st_mtime_ns for p in solved.table.rglob("*.parquet")}
    assert [p.name for p in tmp_path.glob("*/*/*")] == [at_once.name]
    assert files(solved.table) == files(at_once)
    again = solving.solve_board(board(1, score_cap=1500), results=tmp_path)
    assert (again.states, again.again, again.shards) == (0, 0, 0)
    with solving.open_table(solved.table) as table:
        assert check_files(table) == []
        assert table.ask({"scores": "0,1000,500", "earned": "1,1,1"}).source == "table"


def test_the_summary_counts_what_was_kept_solved_again_and_is_new(tmp_path, capsys):
    for frontier in (1, 2):
        capsys.readouterr()
        words = ["--set", f"frontier={frontier}", "--results", str(tmp_path)]
        assert run(["solve", str(TINY), *words]) == 0
    assert "kept 18,816, solved again 18,816 (" in capsys.readouterr().err


def test_stored_float64_is_read_back_and_not_solved_again(tmp_path):
    points = solving.load_board(POINTS, cards=6)
    solve_until(points, tmp_path, 4)
    solved = solving.solve_board(points, results=tmp_path, workers=1)
    assert solved.kept > 0
    assert solved.again == 0
    assert 0 < solved.read < solved.kept  # the last layer that is there, and no other
    full = solving.solve_board(points, results=tmp_path / "fresh", workers=1)
    assert files(solved.table) == files(full.table)


ROOTS = (
    {"scores": "0,1000,500", "earned": "0,2,1"},
    {"scores": "500,1000,500", "earned": "1,1,0"},
    {"scores": "0,0,0", "earned": "1,1,1"},
)


def below(results, *which, **how):
    game = solving.load_game(board(1))
    roots = np.stack([game.parse(ROOTS[i]) for i in which])
    return solving.solve_below(board(1), roots, results=results, workers=1, **how)


def test_one_folder_holds_tiers_and_searches_and_tiers_answer_first(tmp_path):
    result = below(tmp_path, 0)
    with solving.open_table(result.table) as table:
        assert table.full is None
        words = {"scores": "0,1000,500", "earned": "0,1,0"}
        exact = table.ask(words)
        assert exact.error < 1e-11
    solved = solving.solve_board(board(1), results=tmp_path)
    assert solved.table == result.table
    with solving.open_table(solved.table) as table:
        assert table.ask(words).error == pytest.approx(3e-8, rel=0.1)  # float32: the full table
        assert table.ask(ROOTS[0]).error < 1e-11  # three spins: the search has it
        with pytest.raises(RequestError, match="the table covers 1"):
            table.ask({"scores": "0,0,500", "earned": "0,2,2"})
        searched = table.ask({"scores": "0,0,500", "earned": "0,2,2"}, 100_000)
        assert searched.source == "search"
        assert check_files(table) == []


def test_two_attempts_at_one_shard_leave_the_same_bytes(at_once, tmp_path):
    """They write at the same time, and whichever is in its place first stays."""
    layout = solving.load_layout(board(1, score_cap=1500))
    plan = make_plan(layout)
    for which in range(3):
        table = tmp_path / str(which)
        tier, part = plan.shards[3].work
        location = worker.TableLocation(table, "0123abcd")
        (table / "tiers").mkdir(parents=True)
        (table / ".writer-0123abcd").touch()
        job = tiers.SolveTier(
            board=layout.game.board, location=location, shard=3, tier=tier, part=part, reads=(),
            names=plan.shards[3].files, keep=True,
        )  # fmt: skip
        with ThreadPoolExecutor(2) as pool:
            runs = [pool.submit(list, job.run((), None, lambda: False)) for _ in range(2)]
            results = [run.result()[1] for run in runs]
        assert [content for _, content in results] == [None, None]
        receipts = [receipt for receipt, _ in results]
        (name,) = plan.shards[3].files
        assert len({each.files[name].place for each in receipts}) == 1
        assert not list(table.rglob("*.part"))
        assert files(table)[name] == files(at_once)[name]


def test_a_damaged_table_is_said_so_and_exactly_that_is_solved_again(tmp_path, capsys):
    words = [str(TINY), "--set", "frontier=1", "--results", str(tmp_path)]
    assert run(["solve", *words]) == 0
    table = next(tmp_path.glob("*/*/*"))
    sound = files(table)
    missing, empty, short = sorted(table.rglob("*.parquet"))[:3]
    rows = sum(pq.ParquetFile(file).metadata.num_rows for file in (missing, empty, short))
    missing.unlink()
    empty.write_bytes(b"")
    short.write_bytes(short.read_bytes()[:-7])
    capsys.readouterr()
    assert run(["status", "--results", str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert out.startswith("damaged")
    for file, text in ((missing, "is missing"), (empty, "is empty"), (short, "bytes, not")):
        assert f"{file}: " in out and text in out
    assert f"luckbase solve {TINY}" in out
    assert run(["solve", *words, "--json"]) == 0
    out = capsys.readouterr().out
    text = json.loads(out)
    assert len(text["damaged"]) == 3
    assert text["solved_now"] == rows
    assert files(table) == sound
    assert run(["status", "--results", str(tmp_path)]) == 0
