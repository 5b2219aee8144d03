"""A table's states as a decision process, read by a reader of its own and solved by value
iteration: the payoffs of the table come out, and not those of other actions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import luckbase
from luckbase.jobs.app import run

Process = tuple[list[list[dict[int, float]]], dict[str, set[int]], dict[int, float]]


def read(name: Path) -> Process:
    """(choices of each state, each {next state: chance}; states by label; rewards), of the three
    files alone."""
    header, *lines = Path(f"{name}.tra").read_text().splitlines()
    assert header == "mdp"
    states: list[list[dict[int, float]]] = []
    before = (-1, -1, -1)
    for line in lines:
        x, choice, y = map(int, line.split()[:3])
        assert before < (x, choice, y), "in order, each once"
        before = (x, choice, y)
        if x == len(states):
            states.append([])
        if choice == len(states[x]):
            states[x].append({})
        assert x == len(states) - 1 and choice == len(states[x]) - 1
        states[x][choice][y] = float(line.split()[3])
    assert all(abs(sum(c.values()) - 1) < 1e-12 and c.keys() <= {*range(len(states))}
               for choices in states for c in choices)  # fmt: skip
    start, declared, end, *labels = Path(f"{name}.lab").read_text().splitlines()
    assert (start, end) == ("#DECLARATION", "#END")
    named: dict[str, set[int]] = {label: set() for label in declared.split()}
    for line in labels:
        for label in line.split()[1:]:
            named[label].add(int(line.split()[0]))
    rewards = (line.split() for line in Path(f"{name}.rew").read_text().splitlines())
    return states, named, {int(x): float(r) for x, r in rewards}


def most(process: Process, label: str, pick: Callable[..., float] = max) -> np.ndarray[Any, Any]:
    """The greatest chance to come to a label, by value iteration from below."""
    states, named, _ = process
    goal = [x in named[label] for x in range(len(states))]
    found = np.array(goal, float)
    for _ in range(3000):
        new = [1.0 if goal[x] else pick(sum(p * found[y] for y, p in c.items()) for c in choices)
               for x, choices in enumerate(states)]  # fmt: skip
        if np.abs(new - found).max() < 1e-13:
            break
        found = np.array(new)
    return found


@pytest.mark.parametrize(
    ("board", "options"),
    [("jackpot/tiny", {}), ("jackpot/shut-the-box", {"tiles": 5, "sides": 3}),
     ("pig/tiny", {"goal": 5}), ("skunk/tiny", {"goal": 6}), ("pig/piglet", {"goal": 6})],
)  # fmt: skip
def test_the_process_has_the_payoffs_of_the_table(
    board: str, options: dict[str, int], tmp_path: Path
) -> None:
    made = luckbase.solve(luckbase.load_board(board, **options), results=tmp_path / "results")
    with luckbase.open(made.table) as table:
        done = table.export(tmp_path / "x", format="storm")
        rows = table.to_arrow(columns=["payoff_1", "to_act"]).read_all()
        payoffs, acts = np.array(rows["payoff_1"]), np.array(rows["to_act"])
        start = table.game.start()
        begins = None if start is None else table.ask(table.game.describe(start)).value[0]
    process = states, named, rewards = read(tmp_path / "x")
    assert len(states) == done.rows and done.rows == len(payoffs) + 3
    found = most(process, "won")
    assert np.abs(found[: len(payoffs)] - payoffs).max() < 1e-9
    assert [found[x] for x in named["init"]] == pytest.approx([begins], abs=1e-9)
    assert rewards == dict.fromkeys(named["won"], 1.0) and named["over"] == {len(states) - 1}
    worse = most(process, "won", min)[: len(payoffs)]
    assert (worse < payoffs - 1e-3).any()
    for choices, act in zip(states, acts.tolist(), strict=False):
        assert act <= 1 or len(choices) == 1


def test_it_is_the_tables_other_player_and_not_a_friend(tmp_path: Path) -> None:
    """Where player 2's best actions are turned round, player 1 gets more."""
    made = luckbase.solve(luckbase.load_board("pig/tiny", goal=5), results=tmp_path / "results")
    with luckbase.open(made.table) as table:
        part = table.parts[0]
        before = part.rows_of
        part.rows_of = lambda batch: before(batch).__class__(  # type: ignore[method-assign]
            **{**before(batch).__dict__, "labels": before(batch).labels[::-1]}
        )
        table.export(tmp_path / "x", format="storm")
        payoffs = np.array(table.to_arrow(columns=["payoff_1"]).read_all()["payoff_1"])
    found = most(read(tmp_path / "x"), "won")[: len(payoffs)]
    assert (found > payoffs + 1e-3).any()


def test_what_is_no_such_process_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for board, said in (
        (
            "goofspiel/tiny",
            "storm: goofspiel: both players choose at once; expected a game of turns",
        ),
        ("pig/tiny", "storm: has all rows and columns; give --out NAME, and leave"),
    ):
        made = luckbase.solve(luckbase.load_board(board), results=tmp_path)
        more = ["--out", "x"] if "goof" in board else []
        assert run(["export", str(made.table), "--format", "storm", *more]) == 2
        assert capsys.readouterr().err.startswith(f"luckbase: --format: {said}")
    assert not Path("x.tra").exists()
