"""What the tasks of a search took, played out on other numbers of cores."""

import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luckbase import cluster, solver
from tests.bench.replay import Costs
from tests.bench.search_replay import FindTime, TaskTimes, recording, replay_search
from tests.cluster.search.searches import cut_small
from tests.places import BOARDS

FREE = Costs(
    task=0, reference=0, flush=0, receipt=0, commit=0, bytes_a_second=float("inf"),
    copy=float("inf"), patience=0.0,
)  # fmt: skip


def test_the_times_of_a_searchs_tasks_are_recorded(tmp_path, monkeypatch):
    cut_small(monkeypatch, 300)
    game = solver.load_game(solver.load_board(BOARDS / "press-your-luck/tiny.toml"))
    root = game.parse({"scores": "0,0,0", "earned": "2,1,1"}).reshape(1, -1)
    began = time.perf_counter()
    with recording() as found:
        made = cluster.solve_below(game.board, root, results=tmp_path, one_piece=0, workers=1)
    wall = time.perf_counter() - began
    (times,) = found
    assert times.states == sum(times.states_of) > made.states  # those that are over as well
    assert sum(map(len, times.finds)) == made.shards and len(times.finds) == made.levels
    assert times.work > 0 and len(times.sweeps) == len(times.reads) > 4
    assert len(times.looks) == made.levels and min(times.looks) > 0 and sum(times.looks) < wall
    free = replace(times, looks=[0.0] * made.levels, keep=0.0, commit=(0.0, 0.0))
    alone = replay_search(free, 1, FREE)
    assert alone.seconds == pytest.approx(times.work)
    many = replay_search(free, 10_000, FREE)
    assert many.seconds == pytest.approx(many.path) and many.path < times.work
    assert replay_search(times, 2).seconds > replay_search(free, 2, FREE).seconds
    assert all(0 < seconds < wall for seconds in (times.keep, *times.commit))
    slow = replay_search(replace(free, keep=1.0, commit=(0.0, 2.0)), 10_000, FREE)
    assert slow.driver == pytest.approx(made.shards + 2.0 * len(times.sweeps))
    long = replace(
        free, keep=1.0, commit=(2.0, 0.0), sweeps=[(4.0, 0.0) for _ in times.sweeps],
        finds=[[one._replace(seconds=4.0, asks=4.0) for one in level] for level in times.finds],
    )  # fmt: skip
    one_by_one = made.shards + 2.0 * len(times.sweeps)
    assert replay_search(long, 1, FREE).driver == pytest.approx(one_by_one)
    together = replay_search(long, 10_000, FREE)  # tasks that end at the same time
    assert len(times.finds) <= together.driver < one_by_one - 9


@st.composite
def levels(draw):
    """Levels of tasks, each of which waits for some before it."""
    found = []
    for _ in range(draw(st.integers(0, 4))):
        seconds = draw(st.lists(st.sampled_from([0.5, 1.0, 4.0]), min_size=1, max_size=6))
        found.append([
            FindTime(taken, draw(st.integers(1, 9)), [k for k in range(i) if draw(st.booleans())],
                     draw(st.sampled_from([0.25, taken])))
            for i, taken in enumerate(seconds)
        ])  # fmt: skip
    return found


def longest(finds, i):
    """Until a task is over, each begun when what those before it ask for is known."""
    before = finds[i].after
    waits = (longest(finds, k) - finds[k].seconds + finds[k].asks for k in before)
    return finds[i].seconds + max(waits, default=0.0)


@given(levels(),
       st.lists(st.tuples(st.sampled_from([0.0, 1.0, 3.0]), st.sampled_from([0.0, 0.5])),
                min_size=1, max_size=8), st.integers(1, 5), st.data())  # fmt: skip
def test_each_level_waits_for_what_the_one_above_asks_for_and_each_task_for_those_before_it(
    finds, sweeps, workers, data
):
    reads = [data.draw(st.lists(st.integers(0, i - 1), unique=True)) if i else []
             for i in range(len(sweeps))]  # fmt: skip
    times = TaskTimes(9, [0.0] * len(finds), finds, sweeps, reads, [1] * len(sweeps), 32)
    up = replay_search(replace(times, looks=[], finds=[]), workers, FREE)
    found = replay_search(times, workers, FREE)
    chains = [[longest(level, i) for i in range(len(level))] for level in finds]
    known = [max(chain - one.seconds + one.asks for chain, one in zip(ends, level, strict=True))
             for ends, level in zip(chains, finds, strict=True)]  # fmt: skip
    over = [sum(known[:n]) + max(ends) for n, ends in enumerate(chains)]
    assert found.path == pytest.approx(max([sum(known), *over]) + up.path)
    work, down = sum(one.seconds for level in finds for one in level), found.seconds - up.seconds
    assert max(found.path - up.path, work / workers) - 1e-9 <= down
    assert down <= work / workers + sum(map(max, chains)) + 1e-9
    if workers == 1:
        assert found.seconds == pytest.approx(times.work)
    assert found.seconds >= max(found.path, times.work / workers) - 1e-9
    looked = replay_search(replace(times, looks=[2.0] * len(finds)), workers, FREE)
    assert looked.seconds <= found.seconds + 2.0 * len(finds) + 1e-9
    assert looked.path >= found.path and looked.driver == 2.0 * len(finds)
    slow = replay_search(times, workers, Costs(bytes_a_second=1.0, cores=1))
    assert slow.seconds >= max(slow.path, times.work / workers) - 1e-9  # another order may be luck
    assert slow.path >= found.path


@pytest.mark.parametrize(
    ("asks", "workers", "seconds"), [(4.0, 2, 9.0), (1.0, 2, 6.0), (3.0, 2, 8.0), (1.0, 1, 9.0)]
)
def test_a_level_begins_while_the_files_of_the_one_above_are_written(asks, workers, seconds):
    finds = [[FindTime(4.0, 1, (), asks)], [FindTime(5.0, 1, (), 5.0)]]
    times = TaskTimes(9, [0.0, 0.0], finds, [(0.0, 0.0)], [[]], [1], 32)
    found = replay_search(times, workers, FREE)
    assert found.seconds == pytest.approx(seconds)
    assert found.path == pytest.approx(asks + 5.0)
    looked = replay_search(replace(times, looks=[0.0, 2.0]), workers, FREE)
    assert looked.seconds == pytest.approx(max(seconds, asks + 7.0))
