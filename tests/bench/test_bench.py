"""Suites of `bench` run to their end, on the smallest board; most peers are not installed here."""

import numpy as np
import pytest

from tests import bench
from tests.bench import peers
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
