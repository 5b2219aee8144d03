"""An own game in which both choose at once: its choices have the names that its rules list, by
number, wherever they are shown and typed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import luckbase
from luckbase.cluster.play.game import play_on
from luckbase.game import Board, Field, Rules, lead, over, register, simultaneous, transition
from luckbase.solver.board import registry
from luckbase.solver.game.rules import JOINT

NAMES = ("left", "middle", "right")


@transition
def kick(board, state, edges):  # type: ignore[no-untyped-def]
    """One kicks to the left or to the right; the other guards the left or the middle."""
    goals = state[0]
    if goals:
        return over(edges, goals - 1, 2 - goals)
    for mine in (0, 2):
        for yours in (0, 1):
            child = lead(edges, state, mine * JOINT + yours, 1.0)
            child[0] = 1 if mine == yours else 2
    return simultaneous(edges)


class Kick(Board):
    pass


@pytest.fixture
def board(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    monkeypatch.setattr(registry, "entries", dict(registry.entries))
    register("kick", Kick, lambda board: Rules(
        fields=[Field("goals", high=2)], players=2, transition=kick, numbers=(), max_edges=4,
        actions=NAMES, start={}, simultaneous=True,
    ))  # fmt: skip
    path = tmp_path / "kick.toml"
    path.write_text('game = "kick"\n')
    yield luckbase.load_board(path)


def test_choices_are_called_what_the_rules_call_them(board: Any, tmp_path: Path) -> None:
    luckbase.solve(board, results=tmp_path)
    with luckbase.open(board, results=tmp_path) as table:
        answer = table.ask({"goals": 0})
        assert answer.strategies is not None
        names = [[choice.name for choice in each] for each in answer.strategies]
        assert names == [["left", "right"], ["left", "middle"]]
        (row,) = table.to_arrow("goals=0", actions=True).read_all().to_pylist()
        for player, each in enumerate(answer.strategies, 1):
            assert [row[f"{choice.name}_chance_{player}"] for choice in each] == [
                choice.chance for choice in each
            ]
        assert row["middle_chance_1"] is None is row["right_chance_2"]
        for seat, theirs in enumerate(names, 1):
            play = play_on(table, None, seat=seat, seed=1)
            lines = play.through(lambda at: at.names[1])
            assert any(f"you: {theirs[1]}, player" in line for line in lines)
