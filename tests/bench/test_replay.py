"""A replay obeys the bounds of every schedule (Graham 1966)."""

from random import Random

import pytest

from luckbase.cluster.solve.plan import make_plan
from tests import solving
from tests.bench.replay import Costs, longest_chain, planned_seconds, replay, speed_up

FREE = Costs(task=0, reference=0, receipt=0)
CASES = (("press-your-luck/tiny", {"frontier": 2}), ("goofspiel/points", {"cards": 9}))


def planned(name, boundaries=False, **settings):
    layout = solving.load_layout(solving.load_board(name, **settings))
    return layout, make_plan(layout, boundaries=boundaries)


@pytest.mark.parametrize(("name", "settings"), CASES)
def test_no_schedule_beats_the_work_or_the_longest_chain(name, settings):
    layout, plan = planned(name, **settings)
    for workers in (1, 2, 7, 40, 10**9):
        some = Random(workers).choices([0.0, 0.25, 1.0, 7.5], k=2 * len(plan.shards))
        seconds = [*zip(some[::2], some[1::2], strict=True)]
        run, work = replay(layout, plan, seconds, workers, FREE), sum(some)
        assert run.work == pytest.approx(work) and run.driver == 0
        assert run.seconds >= max(work / workers, run.path) - 1e-9
        assert (
            run.seconds <= work / workers + longest_chain(plan.shards, [*map(sum, seconds)]) + 1e-9
        )
    seconds = planned_seconds(layout, plan)
    for workers, limit in ((1, "the work itself"), (10**9, "the longest chain of shards")):
        assert replay(layout, plan, seconds, workers, FREE).limit == limit


def test_on_a_thousand_cores_the_largest_table_is_solved_five_hundred_times_as_fast():
    layout, plan = planned("press-your-luck/1985-02", True, score_unit=250, frontier=8)
    gains = [speed_up(layout, plan, shard, 16) for shard in range(len(plan.shards))]
    assert min(gains) == 1.0 and 12 < max(gains) <= 16
    run = replay(layout, plan, planned_seconds(layout, plan), 1024)
    assert run.work / run.seconds > 500


@pytest.mark.parametrize(("name", "settings"), CASES)
def test_a_plan_with_boundaries_has_the_same_files_and_rows(name, settings):
    plan, faced = planned(name, **settings)[1], planned(name, boundaries=True, **settings)[1]
    assert (faced.files, faced.rows) == (plan.files, plan.rows)
    assert faced.kept_bytes <= plan.kept_bytes
