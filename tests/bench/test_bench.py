"""Suites of `bench` run to their end, on the smallest board; most peers are not installed here."""

from random import Random

import numpy as np
import pytest

from luckbase.cluster.solve.plan import make_plan
from tests import bench, solving
from tests.bench import peers
from tests.bench.replay import Costs, longest_chain, planned_seconds, replay, speed_up
from tests.places import BOARDS

TINY = BOARDS / "press-your-luck/tiny.toml"


@pytest.mark.parametrize(
    ("suite", "constant", "few", "printed"),
    [
        ("kernel", "KERNELS", [(500, 2)], "$500, 2 spins"),
        ("solve", "DECIDED", [{"frontier": 1, "decisions": 2}], "frontier=1 decisions=2"),
        ("search", "QUESTIONS", [("two", "0,1000,500", "0,1,1", [(1, 0)])], "by stages, 1"),
    ],
)
def test_a_suite_prints_a_line(suite, constant, few, printed, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(f"tests.bench.{suite}.{constant}", few)
    name = "decisions" if constant == "DECIDED" else suite
    bench.main([name, str(TINY), "--results", str(tmp_path)])
    assert printed in capsys.readouterr().out
    assert suite == "search" or not [*tmp_path.iterdir()]


def test_the_gap_is_that_of_the_pair_of_strategies():
    game = np.array([[[0.0, -1, 1], [1, 0, -1], [-1, 1, 0]]])
    third = np.full(3, 1 / 3)
    assert peers.worst_gap(game, np.array([[third, third]])) == pytest.approx(0, abs=1e-15)
    assert peers.worst_gap(game, np.array([[[1, 0, 0], third]])) == pytest.approx(1)
    assert peers.worst_gap(game, np.array([[third, [0, 1, 0]]])) == pytest.approx(1)


def test_our_tables_give_the_same_as_other_readers(monkeypatch, tmp_path):
    for name, few in (("TURNS", 1), ("SINGLE", 2), ("BATCH", 100)):
        monkeypatch.setattr(peers, name, few)
    rows = list(peers._queries(TINY, tmp_path))
    assert [(row[1], row[-1]) for row in rows] == [("DuckDB", "0e+00 apart")] * 2
    assert all(row[3].endswith(" s") for row in rows)


def test_our_matrix_games_are_solved_to_their_gap(tmp_path):
    np.save(tmp_path / "games.npy", np.random.default_rng(0).standard_normal((5, 3, 3)))
    seconds, ours = peers.OURS["matrix"](tmp_path / "games.npy")
    assert ours["gap"] < 1e-12 and seconds > 0


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
