"""A replay is the schedule with a clock: what must hold of it, and what it must not claim."""

from dataclasses import replace
from functools import cache
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from luckbase import solver
from luckbase.cluster.run.schedule import Shard
from luckbase.cluster.run.tiers import make_plan
from tests.bench.replay import (
    FILE_BYTES,
    Costs,
    bound_by_rows,
    longest_chain,
    planned_seconds,
    replay,
    speed_up,
)
from tests.places import ROOT

FREE = Costs(
    task=0, reference=0, flush=0, receipt=0, commit=0, bytes_a_second=float("inf"),
    copy=float("inf"),
)  # fmt: skip


@cache
def case(name, **settings):
    layout = solver.load_layout(solver.load_board(ROOT / f"boards/{name}.toml", **settings))
    return layout, make_plan(layout)


BOARDS = {
    "press-your-luck/tiny": {"frontier": 2},
    "goofspiel/points": {"cards": 9},
}


@pytest.mark.parametrize("name", BOARDS)
@settings(max_examples=20)
@given(data=st.data())
def test_no_schedule_beats_the_work_or_the_longest_chain(name, data):
    layout, plan = case(name, **BOARDS[name])
    some = st.sampled_from([0.0, 0.25, 1.0, 7.5])
    seconds = [(data.draw(some), data.draw(some)) for _ in plan.shards]
    workers = data.draw(st.integers(1, 40))
    free = replay(layout, plan, seconds, workers, FREE)
    solves, writes = zip(*seconds, strict=True)
    chain, work = longest_chain(plan.shards, solves, writes), sum(solves) + sum(writes)
    assert (free.path, free.work) == (chain, pytest.approx(work))
    # Graham 1966, with every file counted as if the next shard waited for it; of one machine, for
    # on several a shard may wait for its own
    most = work / workers + longest_chain(plan.shards, [a + b for a, b in seconds])
    assert max(work / workers, chain) - 1e-9 <= free.seconds
    assert workers > FREE.cores or free.seconds <= most + 1e-9
    dear = replay(layout, plan, seconds, workers, Costs(bytes_a_second=1e6))
    assert dear.seconds >= free.seconds / 2 and dear.driver > 0  # an anomaly may halve it, no more
    assert 0 < dear.driver <= dear.seconds + 1e-9


def test_one_core_does_all_the_work_and_no_more():
    layout, plan = case("press-your-luck/tiny", frontier=2)
    seconds = planned_seconds(layout, plan)
    alone = replay(layout, plan, seconds, 1, FREE)
    assert alone.seconds == pytest.approx(
        sum(map(sum, seconds))
    ) and alone.efficiency == pytest.approx(1)
    assert alone.limit == "the work itself"
    many = replay(layout, plan, seconds, 10_000, FREE)
    solves, writes = zip(*seconds, strict=True)
    assert many.seconds == pytest.approx(longest_chain(plan.shards, solves, writes))
    assert many.seconds < longest_chain(plan.shards, [a + b for a, b in seconds])
    assert many.limit == "the longest chain of shards"


def test_each_cost_counts():
    layout, plan = case("goofspiel/points", cards=9)
    seconds = [(0.7, 0.3)] * len(plan.shards)
    took = [
        replay(layout, plan, seconds, 4, costs).seconds
        for costs in (
            FREE, Costs(0, 0, 0, 0, 0, 1e6, 1), Costs(0.5, 0, 0, 0, 0, 1e6, 1),
            Costs(0.5, 0.2, 0, 0, 0, 1e6, 1), Costs(0.5, 0.2, 0.1, 0, 0, 1e6, 1),
            Costs(0.5, 0.2, 0.1, 0.1, 0, 1e6, 1), Costs(0.5, 0.2, 0.1, 0.1, 0.1, 1e6, 1),
        )
    ]  # fmt: skip
    assert all(one < other for one, other in pairwise(took))


def test_the_longest_chain_is_of_shards_that_read_each_other():
    children = ((), (), (0,), (0, 1), (2, 3))
    shards = tuple(Shard(i, str(i), below, 1, 1) for i, below in enumerate(children))
    assert longest_chain(shards, [1, 9, 4, 2, 5]) == 9 + 2 + 5
    assert longest_chain(shards, [1, 9, 4, 2, 5], [0, 50, 0, 6, 1]) == 9 + 50


@pytest.mark.parametrize(
    "name, settings, times",
    [
        ("goofspiel/points", {"cards": 15}, 150),
        ("press-your-luck/1985-02", {"score_unit": 250, "frontier": 8}, 500),
    ],
)
def test_the_largest_tables_can_be_solved_many_times_as_fast_as_on_one_core(name, settings, times):
    assert bound_by_rows(*case(name, **settings)) > times


def test_what_threads_gain_is_between_one_and_their_number():
    layout = solver.load_layout(
        solver.load_board(ROOT / "boards/press-your-luck/1985-02.toml", score_unit=250, frontier=8)
    )
    gains = {tier: speed_up(layout, tier, 16) for tier in layout.tiers()}
    assert min(gains.values()) == 1.0 and 12 < max(gains.values()) <= 16
    assert all(speed_up(layout, tier, 1) == 1.0 for tier in gains)
    assert all(gain == 1.0 for tier, gain in gains.items() if layout.rows(tier) < 1 << 24)


def test_files_that_come_by_way_of_the_driver_take_as_long_as_its_link_at_least():
    layout, plan = case("press-your-luck/tiny", frontier=2)
    seconds = [(0.0, 0.0)] * len(plan.shards)
    free = replay(layout, plan, seconds, 4, FREE).seconds
    slow = replay(layout, plan, seconds, 4, replace(FREE, file_rate=1e3)).seconds
    assert free == 0 and slow == pytest.approx(FILE_BYTES * plan.rows / 1e3)


def test_on_a_thousand_cores_the_largest_table_is_solved_five_hundred_times_as_fast():
    layout, _ = case("press-your-luck/1985-02", score_unit=250, frontier=8)
    plan = make_plan(layout, faces=True)
    seconds = planned_seconds(layout, plan)
    run = replay(layout, plan, seconds, 1024)
    assert run.work / run.seconds > 500
    whole = replay(layout, plan, seconds, 1024, Costs(bytes_a_second=1e8))  # a link of 800 Mbit/s
    assert whole.seconds > run.seconds


def test_a_plan_with_faces_has_the_same_files_and_rows():
    layout, plan = case("press-your-luck/tiny", frontier=3)
    faced = make_plan(layout, faces=True)
    assert faced.names == plan.names and faced.rows == plan.rows
    assert faced.kept_bytes < plan.kept_bytes
    layout, plan = case("goofspiel/points", cards=9)  # which has none
    assert make_plan(layout, faces=True) == plan
