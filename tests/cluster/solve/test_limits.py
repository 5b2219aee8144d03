"""Limits to the byte and the state: refused just over, allowed just under. What does not fit in the
memory or on the disk is refused beforehand, or said when it comes up; and plans of searches."""

import errno
import json
import os
import re
import shutil
from collections import namedtuple
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import luckbase
from luckbase.cluster import machine
from luckbase.cluster.machine import DISK_RESERVE, PROCESS_BYTES, disk_of
from luckbase.cluster.search import plan as planning
from luckbase.cluster.search.plan import Count, count_below, goes_in_circles, planned_search
from luckbase.cluster.search.stages import StageSearch
from luckbase.cluster.solve import full_table, worker
from luckbase.cluster.solve.plan import Plan, check_room, make_plan
from luckbase.cluster.solve.ray import RayWorkers
from luckbase.cluster.solve.schedule import Schedule, Shard
from luckbase.cluster.store import RUNNING, storage
from luckbase.cluster.store.writer import read_manifest
from luckbase.jobs.app import read_memory
from luckbase.solver.errors import DiskLimitError, MemoryLimitError, SearchLimitError, Stopped
from luckbase.solver.policies.evaluate import evaluate_profile
from luckbase.solver.search.expand import known_below, root_keys
from luckbase.solver.search.game_graph import Graph
from tests import solving
from tests.cluster.answers.test_errors import Held
from tests.places import BOARDS
from tests.shared import answer_by_search, commit_at_once
from tests.solver.search.written_out import board_of, decides, over, written

GB = 10**9
Usage = namedtuple("Usage", "total used free")


def plan_of(memory=(1,), table=0, kept=0):
    n = len(memory)
    shards = tuple(
        Shard(i, f"shard {i}", (), 1, size, bytes=table // n) for i, size in enumerate(memory)
    )
    return Plan(shards, kept)


@pytest.fixture
def disk(monkeypatch):
    """Says how many bytes of the disk are free."""

    def say(free):
        monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(1 << 50, 0, free))

    say(100 * GB)
    return say


# Memory


def test_a_shard_that_needs_all_the_memory_is_allowed_and_a_byte_more_is_refused(disk, tmp_path):
    check_room(plan_of(memory=(GB, 2 * GB)), 2 * GB, tmp_path, "less")
    with pytest.raises(MemoryLimitError, match=r"the largest tier needs 2 GB and 2 GB may"):
        check_room(plan_of(memory=(GB, 2 * GB + 1)), 2 * GB, tmp_path, "less")


def test_threads_need_the_largest_shards_at_once_and_one_process():
    plan = plan_of(memory=(1 * GB, 7 * GB, 2 * GB, 5 * GB))
    assert plan.peak_memory(1) == 7 * GB + PROCESS_BYTES
    assert plan.peak_memory(2) == 12 * GB + PROCESS_BYTES
    assert plan.peak_memory(3) == 14 * GB + PROCESS_BYTES


def test_kept_payoffs_are_in_memory_too():
    plan = plan_of(memory=(1 * GB, 7 * GB), kept=3 * GB)
    assert plan.peak_memory(1) == 10 * GB + PROCESS_BYTES


# Disk


def test_table_and_spilled_payoffs_may_fill_the_disk_but_for_its_reserve_and_no_byte_more(
    disk, tmp_path
):
    disk(5 * GB + DISK_RESERVE)
    check_room(plan_of(table=3 * GB, kept=2 * GB), 1, tmp_path, "less")
    check_room(plan_of(table=3 * GB, kept=4 * GB), 2 * GB + 3, tmp_path, "less", workers=3)
    for more, memory in (
        (plan_of(table=3 * GB + 1, kept=2 * GB), 1),
        (plan_of(table=3 * GB, kept=2 * GB + 1), 1),
        (plan_of(table=3 * GB, kept=4 * GB), 2 * GB + 2),
    ):
        with pytest.raises(DiskLimitError, match=r"disk: the solve needs about 5 GB"):
            check_room(more, memory, tmp_path, "less", workers=3)


def test_a_gigabyte_of_the_disk_stays_free_and_of_a_small_disk_a_twentieth(monkeypatch, tmp_path):
    assert DISK_RESERVE == 1 << 30
    for total, reserve in ((100 * GB, DISK_RESERVE), (2 * GB, GB // 10)):
        usage = Usage(total, 0, GB)
        monkeypatch.setattr(shutil, "disk_usage", lambda path, usage=usage: usage)
        assert disk_of(tmp_path) == (tmp_path, GB, reserve)


def test_what_is_already_there_is_not_needed_again(disk, tmp_path):
    plan = plan_of(memory=(1, 1, 1, 1), table=4000)
    disk(1000 + DISK_RESERVE)
    check_room(plan, GB, tmp_path, "less", plan.shards[2:3])
    for todo in (plan.shards[2:], None):
        with pytest.raises(DiskLimitError, match="less takes less"):
            check_room(plan, GB, tmp_path, "less", todo)


def test_the_disk_is_that_of_the_nearest_folder_that_is_there(monkeypatch, tmp_path):
    asked = []

    def usage(path):
        asked.append(Path(path))
        return Usage(1 << 50, 0, 100 * GB)

    monkeypatch.setattr(shutil, "disk_usage", usage)
    check_room(plan_of(), GB, tmp_path / "results" / "game" / "board", "less")
    assert asked == [tmp_path]


# States of a search

LINE = [decides(0, [(1.0, x + 1)]) for x in range(99)] + [over(1.0)]
"""A hundred states."""


@pytest.mark.parametrize(
    "meets",
    [
        lambda game, most: Graph(game, max_states=most).solve(np.array([[0]])),
        lambda game, most: known_below(
            game, np.array([[0]]), lambda states: states[:, 0] < 0, most
        ),
        lambda game, most: evaluate_profile(game, np.array([0]), ["random"], max_states=most),
    ],
    ids=["a graph", "an exploration", "agents"],
)
def test_as_many_states_as_are_allowed_may_be_met_and_not_one_more(meets):
    game = written(*LINE, players=1)
    meets(game, 100)
    with pytest.raises(SearchLimitError, match=r"the limit is 99|more than 99 states"):
        meets(game, 99)


def test_a_search_may_meet_as_many_states_as_it_is_allowed_and_not_one_more(tmp_path):
    board = board_of(*LINE, players=1)
    with pytest.raises(SearchLimitError, match="the limit is 94"):
        solving.solve_below(board, results=tmp_path, workers=1, max_states=94)
    assert not list(tmp_path.rglob("*.parquet"))
    solving.solve_below(board, results=tmp_path, workers=1, max_states=100)


def test_a_question_above_the_frontier_may_meet_as_many_states_as_it_is_allowed():
    """Five: the question's, two on the way, and the two that the table holds."""
    answer_by_search(Held(0.1), np.array([0]), 5)
    with pytest.raises(SearchLimitError, match="the limit is 4"):
        answer_by_search(Held(0.1), np.array([0]), 4)


def test_a_search_by_stages_may_meet_as_many_states_as_it_is_allowed(tmp_path):
    board = solving.load_board(BOARDS / "jackpot/tiny.toml")
    game = solving.load_game(board)
    graph = Graph(game)
    graph.solve(game.needed_start()[None])
    how = {"results": tmp_path, "workers": 1, "one_piece": 0}
    with pytest.raises(SearchLimitError, match=f"the limit is {graph.count - 1}"):
        solving.solve_below(board, max_states=graph.count - 1, **how)
    solving.solve_below(board, max_states=graph.count, **how)


@pytest.mark.parametrize(("memory", "begun"), [(2 * GB, 2), (2 * GB - 1, 1)])
def test_shards_that_need_all_the_memory_together_run_together(memory, begun):
    shards = [Shard(i, "", (), 1, GB) for i in range(2)]
    assert len(Schedule(shards, workers=2, memory=memory).start()) == begun


def test_a_shard_may_need_all_the_memory_of_a_node():
    node = SimpleNamespace(memory=GB, name="one")
    workers = SimpleNamespace(nodes=SimpleNamespace(by_id={"a": node}))
    RayWorkers.check_memory(workers, GB, "less")
    with pytest.raises(MemoryLimitError):
        RayWorkers.check_memory(workers, GB + 1, "less")


@pytest.mark.parametrize(("said", "size"), [("4", 4_000_000_000), ("0.5", 500_000_000)])
def test_memory_is_said_in_units_of_a_thousand_million_bytes(said, size):
    assert read_memory(said) == size


# --- what does not fit ----------------------------------------------------------------------------


TINY = str(BOARDS / "press-your-luck/tiny.toml")
SMALLER = {
    "press-your-luck/tiny": "a smaller frontier or a larger score_unit takes less",
    "goofspiel/points": "fewer cards, such as cards=7, takes less",
    "skunk/seed": "a lower goal takes less",
    "pig/race": "a lower goal takes less",
    "pig/rounds": "a lower cut or fewer rounds takes less",
}


def load(name):
    return solving.load_layout(solving.load_board(BOARDS / f"{name}.toml"))


@pytest.mark.parametrize("name", list(SMALLER))
def test_the_game_says_what_makes_its_boards_smaller(name, tmp_path, monkeypatch):
    layout = load(name)
    with pytest.raises(MemoryLimitError, match=f"may be used; {SMALLER[name]}"):
        check_room(make_plan(layout), 1000, tmp_path, layout.smaller)
    usage = type(machine.shutil.disk_usage(tmp_path))
    monkeypatch.setattr(machine.shutil, "disk_usage", lambda path: usage(0, 0, 0))
    with pytest.raises(DiskLimitError, match=f"0 bytes is free; {SMALLER[name]}"):
        check_room(make_plan(layout), 1 << 50, tmp_path, layout.smaller)


def full(*given, **named):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize(("where", "times"), [("write_tier", 6), ("put", 12), ("written", 6)])
def test_a_disk_that_fills_up_is_one_sentence_and_the_same_command_goes_on(
    where, times, tmp_path, monkeypatch, command
):
    """In a worker and in the driver; what was committed stays."""
    commit_at_once(monkeypatch)
    home = full_table if where == "write_tier" else storage.Folder
    true, calls = getattr(home, where), [0]

    def until_full(*given, **named):
        calls[0] += 1
        return full() if calls[0] > times else true(*given, **named)

    words = ["solve", TINY, "--set", "frontier=2", "--results", str(tmp_path), "--workers", "1"]
    with monkeypatch.context() as patched:
        patched.setattr(home, where, until_full)
        code, out, err = command(*words)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert err.startswith(f"luckbase: {tmp_path}: the disk is full; the solved parts are kept; ")
    assert err.endswith(f"free some space and resume with: luckbase {' '.join(words)}\n")
    (table,) = tmp_path.glob("*/*/*")
    assert not (table / RUNNING).exists()
    committed = read_manifest(storage.Folder(table), table).files.values()
    before = {table / each.place: (table / each.place).stat().st_mtime_ns for each in committed}
    assert before and command(*words)[0] == 0
    assert all(path.stat().st_mtime_ns == then for path, then in before.items())


def sent_by_ray(*given, **named):
    class Sent(OSError):
        cause = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/there/file.part")

    raise Sent("(pid=1) ...")


@pytest.mark.parametrize(
    ("solve", "said"),
    [
        (sent_by_ray, "/there/file.part: the disk is full; the"),
        (lambda *given, **named: np.empty(1 << 59),
         r"not enough memory: .* 4\.00 EiB .*; the solved parts are kept"),
    ],
)  # fmt: skip
def test_what_has_no_room_in_a_worker_is_known_by_its_cause(solve, said, monkeypatch, command):
    monkeypatch.setattr("luckbase.cluster.solve.full_table.solve", solve)
    code, _, err = command("solve", TINY)
    assert code == 1 and re.match(f"luckbase: {said}", err)


def test_payoffs_that_go_to_a_full_disk_say_that_it_is_full(tmp_path, monkeypatch):
    """When they are made room for: a page of a mapped file that finds none ends the process."""
    monkeypatch.setattr(os, "posix_fallocate", full)
    pool = worker.Pool(8, tmp_path / "spill")
    assert pool.take((1,)).shape == (1,)
    with pytest.raises(OSError) as error:
        pool.take((1,))
    assert error.value.errno == errno.ENOSPC


PRESS = str(BOARDS / "press-your-luck/1985-02.toml")
START = {"scores": "0,2000,3500", "earned": "0,3,2"}
FROM = ["--from", *(f"{name}={value}" for name, value in START.items())]


def test_a_search_by_stages(command, tmp_path, monkeypatch):
    monkeypatch.setattr(planning, "COUNTED_STATES", 30_000)  # no option
    words = ["solve", PRESS, *FROM, "--dry-run", "--results", str(tmp_path), "--workers", "2"]
    out = command(*words)[1]
    assert "states          more than 30,000 by levels" in out and "2 workers" in out
    assert [line[:16].rstrip() for line in out.splitlines()[2:]] == [
        "states", "table on disk", "until it ends", "peak memory", "time",
    ]  # fmt: skip
    text = json.loads(command(*words, "--json")[1])["plan"]
    assert text == luckbase.plan(PRESS, START, workers=2, results=tmp_path).as_json()
    assert not text["exact"] and text["states"] == 30_000
    assert text["table_bytes"] == 22 * text["states"]
    assert text["kept_bytes"] == 6 * text["states"]
    assert text["seconds"] == pytest.approx(text["states"] * 1e-6 / 1.7, abs=0.1)
    assert not list(tmp_path.iterdir())


def test_a_small_one_is_counted_and_is_what_the_solve_does(tmp_path):
    board = BOARDS / "press-your-luck/tiny.toml"
    start = {"scores": "0,1000,500", "earned": "1,2,1"}
    result = luckbase.plan(board, start, results=tmp_path)
    solved = luckbase.solve(board, start, results=tmp_path, workers=1)
    assert result.as_json()["exact"] and result.as_json()["levels"] == 0
    assert solved.states == result.states  # those that are over have no row, and are none of them
    rows = sum(entry.bytes for entry in solved.manifest.files.values())
    assert rows / 2 <= result.table_bytes <= 2 * rows


def test_a_board_without_a_full_table_is_planned_from_its_start(command):
    _, out, _ = command("solve", "--dry-run", BOARDS / "jackpot/seed.toml")
    assert "states          15,743 in one piece" in out


def test_a_full_disk_refuses_the_plan(command, tmp_path, monkeypatch):
    usage = type(machine.shutil.disk_usage(tmp_path))
    monkeypatch.setattr(machine.shutil, "disk_usage", lambda path: usage(0, 0, 0))
    monkeypatch.setattr(planning, "COUNTED_STATES", 30_000)  # no option
    code, _, err = command("solve", "--dry-run", PRESS, *FROM, "--results", tmp_path)
    assert code == 2
    assert "disk: the search needs about " in err and " under " in err
    assert "states nearer the end takes less" in err and err.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "settings", "circles", "microseconds"),
    [
        ("pig/race", {}, True, 35.0),
        ("pig/rounds", {"rounds": 2, "cut": 450}, False, 1.0),  # just too many for one piece
        ("skunk/tiny", {}, True, 35.0),
        ("jackpot/tiny", {}, False, 1.6),
        ("goofspiel/points", {"cards": 6}, False, 8.0),
        ("press-your-luck/tiny", {}, False, 1.6),
    ],
)
def test_games_that_go_in_circles_or_in_which_both_choose_at_once_take_longer(
    name, settings, circles, microseconds, tmp_path, monkeypatch
):
    result = list[Count]()

    def noted(*given):
        result.append(count_below(*given))
        return result[-1]

    monkeypatch.setattr(planning, "count_below", noted)
    board = solving.load_board(BOARDS / f"{name}.toml", **settings)
    game = solving.load_game(board)
    words = {"scores": "0,1000,500", "earned": "1,1,1"}
    roots = game.parse(words)[None] if game.board.game == "press-your-luck" else None
    plan = planned_search(game, root_keys(game, roots), tmp_path, 1)
    assert plan.seconds == pytest.approx(plan.states * microseconds * 1e-6)
    assert goes_in_circles(game, result[0].keys) == circles


def test_stage_files_are_as_large_as_planned_where_states_are_not_found_in_runs(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(planning, "ONE_PIECE", 10)  # a plan has no option for it
    board = solving.load_board(BOARDS / "goofspiel/points.toml", cards=7)
    game = solving.load_game(board)
    planned = planned_search(game, root_keys(game, None), tmp_path, 1)
    sizes = list[int]()

    def noted(search):
        folder = search.report.table
        sizes.append(sum((folder / each.place).stat().st_size for each in search.shards.values()))
        raise Stopped

    monkeypatch.setattr(StageSearch, "_up", noted)
    with pytest.raises(Stopped):
        solving.solve_below(board, results=tmp_path, one_piece=0, workers=1)
    assert 0.7 < planned.kept_bytes / sizes[0] < 1.5
