"""What befalls tables that grow: lost files, stops, force, foreign folders. Afterwards nothing is
missing below any root that is done, no committed file has other bytes, and no bound is a value."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from luckbase.cluster.answers.find import table_of
from luckbase.cluster.answers.verify import check_files
from luckbase.cluster.store.storage import Folder
from luckbase.cluster.store.writer import read_manifest
from luckbase.jobs.app import run
from luckbase.solver.errors import CorruptTableError
from tests import solving
from tests.shared import commit_at_once, files_of

ROOT = Path(__file__).parents[2]
TINY = ROOT / "boards/press-your-luck/tiny.toml"
A = {"scores": "0,1000,500", "earned": "0,1,1"}


def below(results, *words, **how):
    board = solving.load_board(TINY)
    game = solving.load_game(board)
    roots = np.stack([game.parse(each) for each in words])
    return solving.solve_below(board, roots, results=results, workers=1, **how)


def test_force_of_a_nearer_frontier_keeps_what_lies_beyond(tmp_path):
    far = solving.solve_board(solving.load_board(TINY, frontier=2), results=tmp_path)
    before = files_of(far.table)
    near = solving.solve_board(solving.load_board(TINY, frontier=1), results=tmp_path, force=True)
    assert (near.states, near.manifest.rows) == (18_816, far.manifest.rows)
    assert before == files_of(far.table)
    assert read_manifest(Folder(far.table), far.table).complete


def test_a_table_answers_until_force_is_done_and_the_same_command_resumes(tmp_path, monkeypatch):
    """`kill -9` and a full disk in between; the old files go last."""
    board = solving.load_board(TINY, frontier=1)
    first = solving.solve_board(board, results=tmp_path, workers=1)
    before, sound = read_manifest(Folder(first.table), first.table), files_of(first.table)
    old = {path: path.read_bytes() for path in first.table.rglob("*.parquet")}
    commit_at_once(monkeypatch)

    def stops(after, error):
        def stop(now):
            now_stored = read_manifest(Folder(first.table), first.table)
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
    halfway = read_manifest(Folder(first.table), first.table)
    assert halfway.complete and len(halfway.next.files) >= 7
    assert solving.solve_board(board, results=tmp_path).states == 0  # it is complete
    again = solving.solve_board(board, results=tmp_path, workers=1, force=True)
    assert again.kept == sum(entry.rows for entry in halfway.next.files) > 0
    assert files_of(first.table) == sound and not {*first.table.rglob("*.parquet")} & {*old}
    assert read_manifest(Folder(first.table), first.table).next is None


def test_a_lost_file_of_a_search_is_not_said_to_be_solved_by_another_solve(tmp_path, capsys):
    result = below(tmp_path, A)
    (result.table / next(iter(result.manifest.files.values())).place).unlink()
    words = [str(TINY), "--set", "frontier=1", "--results", str(tmp_path)]
    assert run(["solve", *words]) == 0
    assert "solved again: " not in capsys.readouterr().err
    assert run(["status", "--results", str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert out.startswith("damaged") and "--from scores=0,1000,500 earned=0,1,1" in out
    below(tmp_path, A)
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
