"""The suite ``peers``: what it makes of turns; the programs themselves are not installed here."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.bench import peer_programs, peers
from tests.places import BOARDS

PYTHON = Path("python")


def played(monkeypatch, theirs):
    """A line of turns in which we take a second each, and they so many; None: too long."""
    times = iter(theirs)

    def run(python, task, said):
        seconds = next(times) if python else 1.0
        answer = {"value": 0.5 if python else 0.25, "states": 7}
        return None if seconds is None else {"seconds": seconds, "memory": 10, "answer": answer}

    monkeypatch.setattr(peers, "_run", run)
    return peers._in_turns("work", "who", PYTHON, "game", {}, "open_spiel", {})


def test_the_least_and_the_median_of_the_turns_are_said(monkeypatch):
    line = played(monkeypatch, [5.0, 2.0, 4.0])
    assert line.cells()[2:6] == ("1 s", "2 s", "2", "4")
    assert line.said == "2e-01 apart, states 7, ours 7" and line.ratios == [5, 2, 4]


def test_who_takes_too_long_stands_there_without_a_time(monkeypatch):
    line = played(monkeypatch, [None, 1.0])
    assert line.cells()[2:] == ("1 s", "", "", "", "", "not within 300 s")
    assert len(played(monkeypatch, [200.0, 1.0]).theirs) == 1, "one long turn says it"


def test_who_is_faster_stands_first(monkeypatch, capsys, tmp_path):
    lines = [peers.Line("a", "slow one", [1.0], [3.0]), peers.Line("b", "fast one", [2.0], [1.0]),
             peers.Line("c", "absent one", said="not run"),
             peers.Line("d", "quick at best", [2.0, 2.0, 2.0], [1.0, 5.0, 5.0])]  # fmt: skip
    monkeypatch.setattr(peers, "_lines", lambda *_: iter(lines))
    peers.peers_suite(BOARDS, tmp_path)
    first, rest = capsys.readouterr().out.split("All, in turns")
    assert (
        "fast one" in first
        and "quick at best" in first
        and "slow one" not in first
        and "absent one" not in first
    )
    assert all(line.who in rest for line in lines) and "* Storm: " in rest


def test_the_gap_is_that_of_the_pair_of_strategies():
    game = np.array([[[0.0, -1, 1], [1, 0, -1], [-1, 1, 0]]])
    third = np.full(3, 1 / 3)
    assert peers.worst_gap(game, np.array([[third, third]])) == pytest.approx(0, abs=1e-15)
    assert peers.worst_gap(game, np.array([[[1, 0, 0], third]])) == pytest.approx(1)
    assert peers.worst_gap(game, np.array([[third, [0, 1, 0]]])) == pytest.approx(1)


def test_our_tables_are_asked_the_same_as_by_others(monkeypatch, tmp_path):
    monkeypatch.setattr(peers, "TURNS", 1)
    monkeypatch.setattr(peers, "ASKED", 2)
    monkeypatch.setattr(peers, "BATCH", 100)
    lines = list(peers._asking(BOARDS / "press-your-luck/tiny.toml", tmp_path))
    assert [line.who for line in lines] == ["DuckDB", "polars", "pyarrow"] * 2
    assert all(line.said == "0e+00 apart" and line.ratios for line in lines)


def test_scipy_solves_matrix_games_as_the_other_programs_are_called(tmp_path, capsys):
    """scipy is here, in the tests' own environment."""
    batch = np.random.default_rng(0).standard_normal((5, 3, 3))
    np.save(tmp_path / "games.npy", batch)
    said = {"program": "scipy linprog", "games": str(tmp_path / "games.npy"),
            "out": str(tmp_path / "out.npy"), "most": 60}  # fmt: skip
    peer_programs.main("matrix_games", json.dumps(said))
    done = json.loads(capsys.readouterr().out)
    assert done["answer"] == {"games": 5} and done["memory"] > 1e6
    assert peers.worst_gap(batch, np.load(tmp_path / "out.npy")) < 1e-12
    seconds, ours = peers.OURS["matrix"](said["games"])
    assert ours["gap"] < 1e-12 and seconds > 0


def test_a_program_that_is_not_there_is_said_and_stops_no_other(monkeypatch, tmp_path):
    pair = np.full((1, 2, 2), 0.5)

    def run(python, task, said):
        if said.get("program") == "absent":
            raise RuntimeError("ModuleNotFoundError: No module named 'absent'")
        np.save(tmp_path / "strategies.npy", pair)
        return {"seconds": 1.0, "answer": {"games": 1, "gap": 0.0}}

    monkeypatch.setattr(peers, "_run", run)
    for name, few in (("SIDES", (2,)), ("GAMES", 10), ("MATRIX", ("absent", "there"))):
        monkeypatch.setattr(peers, name, few)
    absent, found = peers._matrix_games(PYTHON, tmp_path)
    assert not absent.theirs and absent.said.endswith("No module named 'absent'")
    assert found.ratios == [1] and found.said.startswith("worst gap ")
    assert found.said.endswith(", of 1 game")


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_pressorpass_is_built_in_a_copy_or_says_why_not(monkeypatch, tmp_path):
    monkeypatch.setattr(peers, "_run", lambda *_: {"seconds": 0.5})
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    (checkout / "Makefile").write_text("test1:\n\techo '#!/bin/sh' > test1; chmod +x test1\n")
    line = peers._pressorpass(checkout, tmp_path)
    assert len(line.theirs) == peers.TURNS and "bounds" in line.said
    assert not (checkout / "test1").exists()
    (checkout / "Makefile").write_text("test1:\n\tfalse\n")
    assert "not built" in peers._pressorpass(checkout, tmp_path).said
