"""`luckbase diff A B`: what is said of the first is the first's and of the second the second's,
whichever has more states."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from luckbase import cluster
from luckbase.jobs.app import run
from luckbase.solver import load_game
from tests.solver.graph.written_out import State, board_of, chance, decides, over

Ask = Callable[..., Any]


def board(best: int) -> tuple[State, ...]:
    """The player at 1 has three actions, of which `best` is best; 7 lies below 0 only."""
    paid = [over(0.25, 0.0), over(0.25, 0.0), over(0.25, 0.0)]
    paid[best] = over(0.75, 0.0)
    start = chance((0.5, 1), (0.5, 6))
    choice = decides(0, [(1.0, 2)], [(1.0, 3)], [(1.0, 4)])
    return (start, choice, *paid, over(0.0, 0.0), chance((1.0, 7)), chance((1.0, 5)))


@pytest.fixture
def tables(tmp_path: Path) -> dict[str, str]:
    """Of two boards a table of everything, and one of what lies below 1 only."""
    found = {}
    for name, best in (("a", 0), ("c", 2)):
        made = board_of(*board(best), name=name)
        for size, root in (("large", 0), ("small", 1)):
            roots = load_game(made).parse({"at": str(root)}).reshape(1, -1)
            solved = cluster.solve_below(made, roots, results=tmp_path / size, workers=1)
            found[f"{size} {name}"] = str(solved.table)
    return found


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Ask:
    def call(*words: str) -> Any:
        capsys.readouterr()
        run([*words, "--json"])
        return json.loads(capsys.readouterr().out)

    return call


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("large a", "large c"), ("large c", "large a"), ("large a", "small c"),
        ("large c", "small a"), ("small a", "large c"), ("small c", "large a"),
    ],
)  # fmt: skip
def test_best_actions_stand_in_the_order_of_the_tables(
    tables: dict[str, str], ask: Ask, first: str, second: str
) -> None:
    said = ask("diff", tables[first], tables[second])
    (worst,) = [item for item in said["worst"] if item["state"] == {"at": 1}]
    asked = [ask("query", tables[name], "at=1")["best"] for name in (first, second)]
    assert worst["best"] == asked == [first[-1], second[-1]]


def test_the_best_actions_are_printed_under_their_tables(
    tables: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["diff", tables["large a"], tables["small c"]]) == 1
    lines = capsys.readouterr().out.splitlines()
    head = next(line for line in lines if "best in the first" in line)
    row = next(line for line in lines if "at=1" in line)
    assert head.index("best in the first") < head.index("in the second")
    assert row.split()[-2:] == ["a", "c"]
