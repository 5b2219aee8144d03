"""Searches by stages of every game: the rows of one piece; levels that are declared, found, wrong
or none; and what is asked of a table of many files."""

import itertools
import os
import tempfile
from collections import Counter
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from luckbase.cluster.answers.diff import compare
from luckbase.cluster.answers.verify import check_files, check_residuals
from luckbase.cluster.search import shards as level_shards
from luckbase.cluster.search import tasks
from luckbase.cluster.search.stages import StageSearch
from luckbase.cluster.search.tasks import Find, FindReceipt
from luckbase.cluster.solve import driver
from luckbase.cluster.solve.worker import TableLocation, Threads
from luckbase.cluster.store.parquet import RowGroups
from luckbase.cluster.store.storage import Folder
from luckbase.cluster.store.writer import read_manifest
from luckbase.solver import check
from luckbase.solver.errors import (
    CorruptTableError,
    MemoryLimitError,
    SearchLimitError,
    StateError,
    Stopped,
)
from luckbase.solver.game.game import Game
from luckbase.solver.game.rules import Level
from luckbase.solver.search import stages as solver_stages
from tests import solving
from tests.cluster.search.searches import WIDE, by, cut_small, files_of, rows_of, search, tiny
from tests.e2e.stopped import stopped_after
from tests.games import climb  # noqa: F401  (registers the game)
from tests.places import ROOT
from tests.shared import answers_of

BOARDS = ROOT / "boards"
pytestmark = pytest.mark.usefixtures("small")


def hill(tmp_path, **rules):
    """A board of a game that declares no level."""
    path = tmp_path / "hill.toml"
    text = "".join(f"{name} = {value}\n" for name, value in rules.items())
    path.write_text(f'game = "climb"\n\n[rules]\n{text}')
    return solving.load_board(path)


def both(board, results, **how):
    """A search in one piece and by stages."""
    first = solving.solve_below(board, results=results / "one", workers=2)
    other = solving.solve_below(board, results=results / "other", workers=2, one_piece=0, **how)
    return first, other


# --- every game -----------------------------------------------------------------------------------

GAMES = {
    "goofspiel/tiny": {}, "goofspiel/points": {"cards": 5}, "goofspiel/win": {"cards": 4},
    "jackpot/tiny": {}, "jackpot/seed": {"tiles": 6}, "jackpot/shut-the-box": {"tiles": 7},
    "jackpot/shut-the-box-sum": {"tiles": 7}, "pig/rounds": {"rounds": 2, "cut": 10},
    "pig/piglet": {}, "pig/tiny": {"goal": 12}, "skunk/tiny": {},
}  # fmt: skip
WITHOUT_LEVEL = "pig/piglet", "pig/tiny", "skunk/tiny"


@pytest.mark.parametrize("path", GAMES)
def test_every_game_by_stages_has_the_rows_of_one_piece(path, tmp_path):
    board = solving.load_board(BOARDS / f"{path}.toml", **GAMES[path])
    each, other = both(board, tmp_path)
    assert rows_of(other.table) == rows_of(each.table)
    assert (other.states, other.edges) == (each.states, each.edges)
    levels = path not in WITHOUT_LEVEL
    assert (other.levels > 1) == (other.stages > 1) == bool(other.manifest.levels) == levels
    with solving.open_table(other.table) as table:
        assert table.error >= each.manifest.error() * (1 - 1e-12)
        assert check_files(table) == []
        assert check_residuals(table, None).faults == 0


@pytest.mark.parametrize("tied_pass", ["passer", "next"])
def test_press_your_luck_has_loops_in_its_stages(tied_pass, tmp_path):
    """At the score cap a player up may spin for ever."""
    game = tiny(tied_pass=tied_pass)
    roots = np.array([game.parse(words) for words in (
        {"scores": "3000,2500,3000", "earned": "0,1,1", "whammies": "3,3,3"},
        {"scores": "0,3000,3000", "passed": "2,0,0", "whammies": "3,0,0"},
    )])  # fmt: skip
    created = [
        solving.solve_below(game.board, roots, results=tmp_path / str(i), one_piece=i)
        for i in (0, 10**6)
    ]
    assert rows_of(created[0].table) == rows_of(created[1].table)
    assert created[0].levels > 1 and created[1].levels == 0


# --- levels ---------------------------------------------------------------------------------------


def test_a_level_of_ones_own_game_is_kept(tmp_path):
    first, other = both(hill(tmp_path, summit=6, rounds=3), tmp_path)
    assert rows_of(other.table) == rows_of(first.table)
    assert other.levels == 7
    (line,) = read_manifest(Folder(other.table), other.table).levels.values()
    assert line.part == other.goal.part and line.level == Level({"turns": 1}).as_json()
    assert not first.manifest.levels


@pytest.mark.parametrize("level", [Level({"turns": 2}, width=3), None], ids=str)
def test_a_search_whose_game_has_another_level_by_now_starts_over(level, tmp_path, monkeypatch):
    board = hill(tmp_path, summit=6, rounds=3)
    with pytest.raises(Stopped), stopped_after(1, Stopped):
        solving.solve_below(board, results=tmp_path / "half", one_piece=0, workers=1)
    monkeypatch.setattr(Game, "level", level)
    full = solving.solve_below(board, results=tmp_path / "whole", one_piece=0)
    solved = solving.solve_below(board, results=tmp_path / "half", one_piece=0)
    assert files_of(solved.table) == files_of(full.table) and solved.levels == full.levels


def test_a_declared_level_that_does_not_hold_is_an_error_that_names_the_states(
    tmp_path, monkeypatch
):
    board = hill(tmp_path, summit=6, rounds=3)
    monkeypatch.setattr(Game, "level", Level({"steps_1": -1}))
    monkeypatch.setattr(check, "check_sample", lambda game, roots: None)  # it would find it first
    with pytest.raises(StateError) as caught:
        solving.solve_below(board, results=tmp_path, one_piece=0)
    text = str(caught.value)
    assert text.startswith("level -steps_1: is not one of climb: an edge leads from steps=")
    assert text.count("turns=") == 2
    assert not list(tmp_path.rglob("*.parquet"))


def test_a_game_without_levels_is_one_piece_up_to_its_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(Game, "level", None)
    board = hill(tmp_path, summit=6, rounds=3)
    notes = []
    first, other = both(board, tmp_path, on_note=notes.append)
    assert files_of(other.table) == files_of(first.table)
    assert (other.shards, other.levels) == (1, 0)
    assert all("workers and address have no effect" in note for note in notes)
    again = solving.solve_below(board, results=tmp_path / "third", one_piece=10)
    assert files_of(again.table) == files_of(first.table)
    with pytest.raises(SearchLimitError, match="the limit is 50"):
        solving.solve_below(board, results=tmp_path / "fourth", one_piece=10, max_states=50)
    text = r"memory: the search has found .* hold no more of a game without a level; allow more"
    with pytest.raises(MemoryLimitError, match=text):
        solving.solve_below(board, results=tmp_path / "fifth", memory=7_500)


def test_a_search_larger_than_one_piece_goes_by_stages(tmp_path):
    game = tiny()
    root = game.parse(WIDE)[None]
    first = search(tmp_path / "a", root, one_piece=5000)
    other = search(tmp_path / "b", root, one_piece=1000)
    assert first.levels == 0 and other.levels == 5
    assert rows_of(first.table) == rows_of(other.table)


# --- limits ---------------------------------------------------------------------------------------


def test_the_limit_of_a_search_by_stages_is_a_sentence_and_it_goes_on_with_a_higher_one(tmp_path):
    text = r"has found [\d,]+ states in [1-4] levels and is not finished; the limit is 2,000"
    with pytest.raises(SearchLimitError, match=text) as caught:
        by(tmp_path, max_states=2000)
    assert caught.value.exit_code == 2
    assert not list(tmp_path.rglob("*.parquet"))
    solved = by(tmp_path, max_states=100_000)
    assert solved.manifest.complete and solved.levels == 5


# --- a table of many files ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """One piece, and by stages in many files."""
    with pytest.MonkeyPatch.context() as patch:
        cut_small(patch)
        folder = tmp_path_factory.mktemp("tables")
        first = search(folder / "one", tiny().parse(WIDE)[None])
        return first.table, by(folder / "other").table


def test_every_state_is_answered_as_by_a_table_of_one_file(tables):
    with solving.open_table(tables[0]) as first, solving.open_table(tables[1]) as other:
        assert len(other.manifest.files) > 15
        count = 0
        for states in first.draw(first.rows, 0):
            count += len(states)
            assert first.probe(states).tobytes() == other.probe(states).tobytes()
            assert other.holds(states).all()
            for left, right in zip(answers_of(first, states[::97]), answers_of(other, states[::97]),
                                   strict=True):  # fmt: skip
                assert replace(left, error=right.error) == right
                assert left.error <= right.error <= other.error < 1.2 * first.error  # by file
        assert count == other.manifest.rows
        result = compare(first, other)
        assert result.states == count and not result.differs and result.largest == 0.0
        drawn = np.concatenate(list(other.draw(50, 7)))
        assert first.probe(drawn).tobytes() == other.probe(drawn).tobytes()


def counted(monkeypatch):
    """Which files of a part were looked at."""
    opened = set()
    file = RowGroups.file

    def counts(groups, i):
        opened.add(i)
        return file(groups, i)

    monkeypatch.setattr(RowGroups, "file", counts)
    return opened


def test_a_probe_opens_one_file_only(tables, monkeypatch):
    with solving.open_table(tables[0]) as first:
        states = np.concatenate([states[::311] for states in first.draw(first.rows, 0)])
    seen = set()
    for state in states:
        with monkeypatch.context() as patch, solving.open_table(tables[1]) as table:
            opened = counted(patch)
            table.probe(state[None])
            assert len(opened) == 1
            seen |= opened
    assert len(seen) > 8


def test_a_state_that_is_nowhere_opens_one_file_at_most(tables, monkeypatch):
    with solving.open_table(tables[1]) as table:
        opened = counted(monkeypatch)
        assert table.get(tiny().parse({"scores": "0,0,0", "earned": "3,3,3"}), None) is None
        assert len(opened) <= 1


# --- shards ---


def test_a_stage_in_many_boxes_has_a_file_of_each(tmp_path, monkeypatch):
    """They ask one another, and are read back one by one after a stop."""
    root = tiny().parse({"scores": "0,1000,500", "earned": "0,1,1"})[None]
    full = rows_of(search(tmp_path / "whole", root).table)
    monkeypatch.setattr(solver_stages, "CACHED", 48)
    with monkeypatch.context() as patch:  # a second between two looks at the clock
        patch.setattr(tasks, "time", SimpleNamespace(perf_counter=itertools.count().__next__))
        solved = by(tmp_path / "pieces", root, workers=1)
    assert rows_of(solved.table) == full
    entries = read_manifest(Folder(solved.table), solved.table).files.values()
    assert sum(len(entry.boxes) == 1 for entry in entries) > 20
    assert all({*entry.seconds} == {"solve", "write"} for entry in entries)
    assert {entry.seconds["solve"] for entry in entries} == {2.0}, "one to find it, one to solve it"
    with solving.open_table(solved.table) as table:
        assert check_files(table) == [] and check_residuals(table, None).faults == 0
    with pytest.raises(Stopped), stopped_after(len(entries), Stopped):
        by(tmp_path / "stopped", root, workers=2)
    again = by(tmp_path / "stopped", root, workers=1)
    assert files_of(again.table) == files_of(solved.table)
    assert 0 < again.states < solved.states


def test_a_shard_that_is_not_handed_all_that_it_needs_is_not_solved(tmp_path, monkeypatch):
    """As one whose need nobody has noted."""
    keep = StageSearch._keep

    def forgetful(run, receipt, askers):
        keep(run, receipt, set(sorted(askers)[1:]))

    monkeypatch.setattr(StageSearch, "_keep", forgetful)
    with pytest.raises(CorruptTableError, match="payoffs that it needs are missing"):
        by(tmp_path, workers=1)


@pytest.mark.parametrize(("workers", "least"), [(3, 2), (2, 9)])
def test_so_many_shards_are_found_at_once_as_there_are_workers_and_memory_for(
    tmp_path, monkeypatch, workers, least
):
    """And the memory of one that is found is the next one's."""
    running, at_once, submit, wait = set[int](), list[int](), Threads.submit, Threads.wait_one

    def submitted(workers, task):
        if isinstance(task.job, Find):
            running.add(task.shard)
            at_once.append(len(running))
        submit(workers, task)

    def waited(workers, seconds):
        receipt = wait(workers, seconds)
        if isinstance(receipt, FindReceipt):
            running.remove(receipt.shard)
        return receipt

    monkeypatch.setattr(Threads, "submit", submitted)
    monkeypatch.setattr(Threads, "wait_one", waited)
    solved = by(tmp_path, workers=workers, memory=least * level_shards.LEAST_BYTES)
    assert max(at_once) == 2 and at_once.count(2) > solved.levels


def test_machines_that_do_not_share_the_folder_send_their_files_and_are_sent_what_they_need(
    tmp_path, ray_cluster, monkeypatch
):
    near = by(tmp_path / "near", workers=1)

    @contextmanager
    def nowhere(table, joins, writer):
        assert joins
        yield TableLocation(table, "0123abcd", apart)  # of a writer that it does not see

    monkeypatch.setattr(driver, "table_location", nowhere)
    apart = f"luckbase-test-{os.urandom(4).hex()}"
    far = by(tmp_path / "far", workers=2, address=ray_cluster)
    assert far.ray and far.shards > 20
    assert files_of(far.table) == files_of(near.table)
    assert not list((tmp_path / "far").rglob("*.arrow")) and not far.damaged
    assert not (Path(tempfile.gettempdir()) / apart).exists()


def test_a_shard_that_begins_with_few_states_leaves_others_early(tmp_path, whole, monkeypatch):
    cut_small(monkeypatch, 400)
    monkeypatch.setattr(solver_stages, "CACHED", 1600)
    result, done = Counter(), level_shards.Order.done
    for name, number in (("late", 0), ("early", 2000)):

        def counted(*given, name=name):
            result[name] += 1
            return done(*given)

        monkeypatch.setattr(level_shards, "FEW", number)
        monkeypatch.setattr(level_shards.Order, "done", counted)
        solved = by(tmp_path / name, workers=2)
        assert rows_of(solved.table) == rows_of(whole.table)
    assert files_of(by(tmp_path / "alone", workers=1).table) == files_of(solved.table)
    assert result["early"] > result["late"] > 0
