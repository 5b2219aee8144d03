"""Suites of `bench` run to their end, on the smallest board."""

import subprocess

from tests import bench
from tests.places import ROOT

TINY = ROOT / "boards/press-your-luck/tiny.toml"


def test_the_kernel_is_compared_with_the_rules(monkeypatch, capsys):
    monkeypatch.setattr(bench, "KERNELS", [(500, 2)])
    bench.main(["kernel", str(TINY)])
    assert "$500, 2 spins" in capsys.readouterr().out


def test_a_whole_solve_may_say_how_far_it_is(monkeypatch, capsys, tmp_path):
    solve = subprocess.run

    def slow(*words, **how):
        done = solve(*words, **how)
        done.stdout = b'{"event": "progress"}\n' + done.stdout
        return done

    monkeypatch.setattr(subprocess, "run", slow)
    monkeypatch.setattr(bench, "TABLES", [(500, 1)])
    bench.main(["solve", str(TINY), "--results", str(tmp_path)])
    assert "$500, frontier 1" in capsys.readouterr().out


def test_both_kinds_of_table_and_other_encodings_of_decisions(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(bench.decisions, "FRONTIERS", (2,))
    monkeypatch.setattr(bench.decisions, "ENCODED", 2)
    bench.main(["decisions", str(TINY), "--results", str(tmp_path)])
    out = capsys.readouterr().out
    assert "Parquet, a row a state *" in out
    assert not [*tmp_path.iterdir()]
