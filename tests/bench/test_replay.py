"""A replay obeys the bounds of every schedule (Graham 1966)."""

from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from luckbase.cluster.solve.plan import make_plan
from tests import solving
from tests.bench.replay import Costs, longest_chain, planned_seconds, replay, speed_up
from tests.places import ROOT

FREE = Costs(task=0, reference=0, receipt=0)
BOARDS = {"press-your-luck/tiny": {"frontier": 2}, "goofspiel/points": {"cards": 9}}


@cache
def case(name, boundaries=False, **settings):
    layout = solving.load_layout(solving.load_board(ROOT / f"boards/{name}.toml", **settings))
    return layout, make_plan(layout, boundaries=boundaries)


@pytest.mark.parametrize("name", BOARDS)
@settings(max_examples=20)
@given(data=st.data())
def test_no_schedule_beats_the_work_or_the_longest_chain(name, data):
    layout, plan = case(name, **BOARDS[name])
    some = st.sampled_from([0.0, 0.25, 1.0, 7.5])
    seconds = [(data.draw(some), data.draw(some)) for _ in plan.shards]
    workers = data.draw(st.integers(1, 40))
    run, work = replay(layout, plan, seconds, workers, FREE), sum(map(sum, seconds))
    assert run.work == pytest.approx(work) and run.driver == 0
    assert run.seconds >= max(work / workers, run.path) - 1e-9
    assert run.seconds <= work / workers + longest_chain(plan.shards, [*map(sum, seconds)]) + 1e-9


def test_one_core_does_all_the_work_and_no_more():
    layout, plan = case("press-your-luck/tiny", frontier=2)
    seconds = planned_seconds(layout, plan)
    alone = replay(layout, plan, seconds, 1, FREE)
    assert alone.seconds == pytest.approx(sum(map(sum, seconds)))
    assert alone.limit == "the work itself"
    assert replay(layout, plan, seconds, 10**9, FREE).limit == "the longest chain of shards"


def test_on_a_thousand_cores_the_largest_table_is_solved_five_hundred_times_as_fast():
    layout, plan = case("press-your-luck/1985-02", boundaries=True, score_unit=250, frontier=8)
    gains = [speed_up(layout, plan, shard, 16) for shard in range(len(plan.shards))]
    assert min(gains) == 1.0 and 12 < max(gains) <= 16
    run = replay(layout, plan, planned_seconds(layout, plan), 1024)
    assert run.work / run.seconds > 500


def test_a_plan_with_boundaries_has_the_same_files_and_rows():
    for name, options in BOARDS.items():
        plan, faced = case(name, **options)[1], case(name, boundaries=True, **options)[1]
        assert faced.files == plan.files and faced.rows == plan.rows
        assert faced.kept_bytes <= plan.kept_bytes
