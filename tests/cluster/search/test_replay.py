"""What the tasks of a search took, played out on other numbers of cores."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luckbase import cluster, solver
from luckbase.cluster.run.replay import Costs
from luckbase.cluster.search import by_stages
from luckbase.cluster.search.replay import TaskTimes, replay_search, times_of
from tests.places import BOARDS

FREE = Costs(task=0, reference=0, commit=0, bytes_a_second=float("inf"))


def test_a_search_leaves_the_times_of_its_tasks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(by_stages, "SHARD_STATES", 300)
    game = solver.load_game(solver.load_board(BOARDS / "press-your-luck/tiny.toml"))
    root = game.parse({"scores": "0,0,0", "earned": "2,1,1"}).reshape(1, -1)
    made = cluster.solve_below(game.board, root, results=tmp_path, one_piece=0, workers=1)
    (times,) = times_of(made.table)
    assert times.states == sum(times.states_of) > made.states  # those that are over as well
    assert sum(map(len, times.finds)) == made.shards and len(times.finds) == made.levels
    assert times.work > 0 and len(times.sweeps) == len(times.reads) > 4
    alone = replay_search(times, 1, FREE)
    assert alone.seconds == pytest.approx(times.work)
    many = replay_search(times, 10_000, FREE)
    assert many.seconds == pytest.approx(many.path) and many.path < times.work
    assert replay_search(times, 2).seconds > replay_search(times, 2, FREE).seconds


@given(st.lists(st.lists(st.sampled_from([0.5, 1.0, 4.0]), min_size=1, max_size=6), max_size=4),
       st.lists(st.tuples(st.sampled_from([0.0, 1.0, 3.0]), st.sampled_from([0.0, 0.5])),
                min_size=1, max_size=8), st.integers(1, 5), st.data())  # fmt: skip
def test_each_level_waits_for_the_one_above(
    finds: list[list[float]], sweeps: list[tuple[float, float]], workers: int, data: st.DataObject
) -> None:
    reads = [data.draw(st.lists(st.integers(0, i - 1), unique=True)) if i else []
             for i in range(len(sweeps))]  # fmt: skip
    times = TaskTimes(9, finds, sweeps, reads, [1] * len(sweeps), 32)
    down = [replay_search(replace(times, finds=[level]), workers, FREE).seconds for level in finds]
    up = replay_search(replace(times, finds=[]), workers, FREE)
    found = replay_search(times, workers, FREE)
    levels = [seconds - up.seconds for seconds in down]
    assert found.seconds == pytest.approx(sum(levels) + up.seconds)
    for level, seconds in zip(finds, levels, strict=True):
        least = max(max(level), sum(level) / workers)
        assert least - 1e-9 <= seconds <= sum(level) / workers + max(level) + 1e-9
    assert found.seconds >= max(found.path, times.work / workers) - 1e-9
    slow = replay_search(times, workers, Costs(bytes_a_second=1.0))
    assert slow.seconds >= found.seconds + (16 if any(reads) else 0)
