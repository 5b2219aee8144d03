"""The suite ``peers``: turns and answers; most of the programs are not installed here."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.bench import peer_programs, peers
from tests.places import BOARDS

PYTHON = Path("python")


def in_turns(monkeypatch, theirs):
    """Return a line of turns in which we take a second each. theirs: their seconds, or errors."""
    times = iter(theirs)

    def run(python, task, words):
        seconds = next(times) if python else 1.0
        if isinstance(seconds, Exception):
            raise seconds
        return {"seconds": seconds, "answer": {"value": 0.5 if python else 0.25, "states": 7}}

    monkeypatch.setattr(peers, "_run", run)
    line = peers.Line("work", "who")
    return peers._in_turns(line, PYTHON, ("game", {}), ("open_spiel", {}), peers._values)


def test_the_least_and_the_median_of_the_turns_are_printed(monkeypatch):
    line = in_turns(monkeypatch, [5.0, 2.0, 4.0])
    assert line.cells()[2:6] == ("1 s", "2 s", "2", "4")
    assert line.note == "2e-01 apart, states 7, ours 7"
    assert len(in_turns(monkeypatch, [200.0, 1.0]).theirs) == 1, "one long turn is enough"


def test_a_program_that_fails_has_no_time_but_a_reason(monkeypatch):
    line = in_turns(monkeypatch, [RuntimeError("No module named 'absent'"), 1.0])
    assert line.cells()[2:] == ("", "", "", "", "No module named 'absent'")


def test_the_gap_is_that_of_the_pair_of_strategies():
    game = np.array([[[0.0, -1, 1], [1, 0, -1], [-1, 1, 0]]])
    third = np.full(3, 1 / 3)
    assert peers.worst_gap(game, np.array([[third, third]])) == pytest.approx(0, abs=1e-15)
    assert peers.worst_gap(game, np.array([[[1, 0, 0], third]])) == pytest.approx(1)
    assert peers.worst_gap(game, np.array([[third, [0, 1, 0]]])) == pytest.approx(1)


def test_our_tables_give_the_same_as_other_readers(monkeypatch, tmp_path):
    for name, few in (("TURNS", 1), ("SINGLE", 2), ("BATCH", 100)):
        monkeypatch.setattr(peers, name, few)
    lines = list(peers._queries(BOARDS / "press-your-luck/tiny.toml", tmp_path))
    assert [line.who for line in lines] == ["DuckDB", "polars"] * 2
    assert all(line.note == "0e+00 apart" and line.theirs for line in lines)


def test_scipy_solves_matrix_games_as_the_other_programs_are_called(tmp_path, capsys):
    """scipy is here, in the tests' own environment."""
    batch = np.random.default_rng(0).standard_normal((5, 3, 3))
    np.save(tmp_path / "games.npy", batch)
    said = {"program": "scipy linprog", "games": str(tmp_path / "games.npy"),
            "out": str(tmp_path / "out.npy"), "most": 60}  # fmt: skip
    peer_programs.main("matrix_games", json.dumps(said))
    done = json.loads(capsys.readouterr().out)
    assert done["answer"] == {"games": 5}
    assert peers.worst_gap(batch, np.load(tmp_path / "out.npy")) < 1e-12
    seconds, ours = peers.OURS["matrix"](said["games"])
    assert ours["gap"] < 1e-12 and seconds > 0
