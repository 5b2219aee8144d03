"""A table grows: what was committed stays, in any order of growth the same bytes and rows."""

import json
import shutil
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow.parquet as pq
import pytest

from luckbase.cluster.answers.find import table_of
from luckbase.cluster.answers.verify import check_files
from luckbase.cluster.solve import full_table, worker
from luckbase.cluster.solve.plan import make_plan
from luckbase.cluster.store.storage import Folder
from luckbase.cluster.store.writer import read_manifest
from luckbase.jobs.app import run
from luckbase.solver.errors import CorruptTableError, RequestError
from tests import solving
from tests.e2e.stopped import solve_until
from tests.places import BOARDS, TINY
from tests.shared import commit_at_once
from tests.shared import files_of as files

POINTS = BOARDS / "goofspiel/points.toml"


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
        job = full_table.SolveTier(
            board=layout.game.board, location=location, tier=tier, part=part,
            names=plan.shards[3].files,
        )  # fmt: skip
        task = worker.Task(3, job, 1)
        with ThreadPoolExecutor(2) as pool:
            runs = [pool.submit(list, job.run(task, (), None, lambda: False)) for _ in range(2)]
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


# --- what befalls it: lost files, stops, force, foreign folders -----------------------------

A = {"scores": "0,1000,500", "earned": "0,1,1"}


def searched(results, *words, **how):
    board = solving.load_board(TINY)
    game = solving.load_game(board)
    roots = np.stack([game.parse(each) for each in words])
    return solving.solve_below(board, roots, results=results, workers=1, **how)


def test_force_of_a_nearer_frontier_keeps_what_lies_beyond(tmp_path):
    far = solving.solve_board(solving.load_board(TINY, frontier=2), results=tmp_path)
    before = files(far.table)
    near = solving.solve_board(solving.load_board(TINY, frontier=1), results=tmp_path, force=True)
    assert (near.states, near.manifest.rows) == (18_816, far.manifest.rows)
    assert before == files(far.table)
    assert read(far.table).complete


def test_a_table_answers_until_force_is_done_and_the_same_command_resumes(tmp_path, monkeypatch):
    """`kill -9` and a full disk in between; the old files go last."""
    board = solving.load_board(TINY, frontier=1)
    first = solving.solve_board(board, results=tmp_path, workers=1)
    before, sound = read(first.table), files(first.table)
    old = {path: path.read_bytes() for path in first.table.rglob("*.parquet")}
    commit_at_once(monkeypatch)

    def stops(after, error):
        def stop(now):
            now_stored = read(first.table)
            assert now_stored.files == before.files
            with solving.open_table(first.table) as table:
                assert table.ask({"scores": "0,1000,500", "earned": "0,1,0"}).source == "table"
            if now.shards >= after:
                raise error

        return stop

    for after, error in ((3, KeyboardInterrupt()), (4, OSError(28, "No space left on device"))):
        with pytest.raises(type(error)):
            solving.solve_board(
                board, results=tmp_path, workers=1, force=True, on_progress=stops(after, error)
            )
        assert all(path.read_bytes() == content for path, content in old.items())
    halfway = read(first.table)
    assert halfway.complete and len(halfway.next.files) >= 7
    assert solving.solve_board(board, results=tmp_path).states == 0  # it is complete
    again = solving.solve_board(board, results=tmp_path, workers=1, force=True)
    assert again.kept == sum(entry.rows for entry in halfway.next.files) > 0
    assert files(first.table) == sound and not {*first.table.rglob("*.parquet")} & {*old}
    assert read(first.table).next is None


def test_a_lost_file_of_a_search_is_not_said_to_be_solved_by_another_solve(tmp_path, capsys):
    result = searched(tmp_path, A)
    (result.table / next(iter(result.manifest.files.values())).place).unlink()
    words = [str(TINY), "--set", "frontier=1", "--results", str(tmp_path)]
    assert run(["solve", *words]) == 0
    assert "solved again: " not in capsys.readouterr().err
    assert run(["status", "--results", str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert out.startswith("damaged") and "--from scores=0,1000,500 earned=0,1,1" in out
    searched(tmp_path, A)
    assert run(["status", "--results", str(tmp_path)]) == 0


# --- other mishaps -------------------------------------------------------------------------------


def test_a_folder_that_holds_other_rules_than_its_name_says_neither_answers_nor_is_solved(
    tmp_path, capsys
):
    plain, other = (solving.load_board(TINY, frontier=1, max_whammies=m) for m in (4, 3))
    there = solving.solve_board(other, results=tmp_path).table
    right = solving.solve_board(plain, results=tmp_path).table
    shutil.rmtree(right)
    shutil.copytree(there, right)
    before = {path: path.read_bytes() for path in right.rglob("*.parquet")}
    with pytest.raises(CorruptTableError, match="holds a table of other rules"):
        table_of(plain, tmp_path)
    state = ["scores=0,1000,500", "earned=0,1,0"]
    for words in (["query", str(TINY), *state], ["solve", str(TINY), "--set", "frontier=1"]):
        assert run([*words, "--results", str(tmp_path)]) == 1
        out, err = capsys.readouterr()
        assert out == "" and err.count("\n") == 1 and "holds a table of other rules" in err
    assert before == {path: path.read_bytes() for path in right.rglob("*.parquet")}


def test_a_reader_sees_no_fault_in_what_a_running_solve_has_just_added(tmp_path, monkeypatch):
    commit_at_once(monkeypatch)
    seen = []

    def look(now):
        if now.shards and now.shards % 5 == 0:
            (table,) = tmp_path.glob("*/*/*")
            if opened:
                seen.append(check_files(opened[0]))
            opened.append(solving.open_table(table))

    opened = []
    solving.solve_board(
        solving.load_board(TINY, frontier=2, score_cap=1500),
        results=tmp_path,
        workers=1,
        on_progress=look,
    )
    assert len(seen) > 5 and not any(seen)
