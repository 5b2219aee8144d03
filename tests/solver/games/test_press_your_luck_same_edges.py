"""Scores that the rules say to be all the same are: by the rules, every one of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from luckbase import solver
from luckbase.solver.game.capabilities import SearchHints
from luckbase.solver.search.expand import expand
from tests.places import BOARDS

PLACES = BOARDS / "press-your-luck"


@pytest.mark.parametrize(
    ("board", "options", "least"),
    [
        ("1985-02", {}, 0.5),
        ("1985-02", {"tied_pass": "passer", "third_place_spins": False}, 0.5),
        ("1985-02", {"players": 2, "objective": "money"}, 0.5),
        ("1985-02-double", {"outcomes": "all"}, 0.3),
        ("larson", {"players": 3}, 0.5),
    ],
)
def test_edges_are_the_same_as_far_as_the_rules_say(
    board: str, options: dict[str, Any], least: float
) -> None:
    """Of states whose scores stand close together, or close to the cap; how many moves a child."""
    game = solver.load_game(solver.load_board(PLACES / f"{board}.toml", **options))
    rng, says, players = np.random.default_rng(1), game.own(SearchHints).same_edges, game.players
    assert says is not None
    cap, last, told = int(game.numbers.ints[0]), game.field_count, 0
    for _ in range(400):
        state = np.zeros(last, np.int64)
        near = rng.integers(0, cap) if rng.random() < 0.7 else cap - rng.integers(0, 24)
        scores = np.clip(near + rng.integers(-6, 7, players), 0, cap)
        state[:players] = np.where(rng.random(players) < 0.8, scores, rng.integers(0, cap, players))
        state[players : 2 * players] = rng.integers(0, 3, players)
        state[2 * players : 3 * players] = rng.integers(0, 2, players)
        state[3 * players : 4 * players] = rng.integers(0, 4, players)
        if last > 4 * players:
            state[-1] = rng.integers(0, game.numbers.ints[8] + 1) * (rng.random() < 0.3)
        one = expand(game, state[None])
        if one.terminal[0]:
            continue
        for i in range(last):
            more = int(says(game.numbers, state, i))
            told += more > 0
            others = np.repeat(state[None], more + 1, axis=0)
            others[:, i] += np.arange(more + 1)
            edges = expand(game, others)
            assert (edges.kinds == one.kinds[0]).all() and (edges.actors == one.actors[0]).all()
            assert (np.diff(edges.first) == one.first[1]).all()
            for mine, every in zip(
                (one.weights, one.actions, one.rewards),
                (edges.weights, edges.actions, edges.rewards), strict=True,
            ):  # fmt: skip
                rows = every.reshape(more + 1, *mine.shape)
                assert (rows == mine).all()
            moved = edges.children.reshape(more + 1, *one.children.shape) - one.children
            along = moved[-1, :, i] != 0
            assert (moved[:, :, i] == along * np.arange(more + 1)[:, None]).all()
            assert (np.delete(moved, i, axis=2) == 0).all()
    assert told > least * 400
