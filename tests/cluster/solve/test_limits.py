"""Limits to the byte and the state: refused just over, allowed just under; and what a plan counts
as needed."""

import shutil
from collections import namedtuple
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from luckbase.cluster.machine import DISK_RESERVE, PROCESS_BYTES, disk_of
from luckbase.cluster.solve.plan import Plan, check_room
from luckbase.cluster.solve.ray import RayWorkers
from luckbase.cluster.solve.schedule import Schedule, Shard
from luckbase.jobs.app import read_memory
from luckbase.solver.errors import DiskLimitError, MemoryLimitError, SearchLimitError
from luckbase.solver.policies.evaluate import evaluate_profile
from luckbase.solver.search.expand import known_below
from luckbase.solver.search.game_graph import Graph
from tests import solving
from tests.cluster.answers.test_tie_slack import Held
from tests.places import BOARDS
from tests.shared import answer_by_search
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
