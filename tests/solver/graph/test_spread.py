"""How a stage lies, by cells, before it is found; and the grid that it is cut along."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from luckbase import solver
from luckbase.solver.game.capabilities import hints
from luckbase.solver.graph import spread
from luckbase.solver.graph.find_stages import expand_level
from luckbase.solver.graph.keys import Keys, pack_all
from luckbase.solver.graph.spread import Looks, Spread, grid
from luckbase.solver.graph.stage import NO_KEYS, Stages
from tests.places import BOARDS
from tests.solver.graph.laid_out import Laid, Shape, shapes


def tiny(start: dict[str, str]) -> tuple[Stages, Keys]:
    """The stages of the tiny board, and the key of a state."""
    game = solver.load_game(solver.load_board(BOARDS / "press-your-luck/tiny.toml"))
    level = hints(game).level
    assert level is not None
    return Stages(game, level), pack_all(game.bits, game.parse(start).reshape(1, -1))


def found_of(stages: Stages, root: Keys, down: int) -> tuple[dict[int, Keys], dict[int, Keys]]:
    """What is asked of each stage of the level so far below a root, and what is found there."""
    wanted, found = {int(stages.of(root)[0]): [root]}, {}
    for _ in range(down + 1):
        level = max(stage >> 32 for stage in wanted)
        asked = {
            stage: np.unique(np.concatenate(wanted.pop(stage)))
            for stage in list(wanted)
            if stage >> 32 == level
        }
        found = {}
        for box in expand_level(stages, level, list(asked.values())):
            numbers = stages.of(box.keys)
            for stage in np.unique(numbers).tolist():
                found[stage] = np.union1d(found.get(stage, NO_KEYS), box.keys[numbers == stage])
            for stage, keys, _ in box.wanted:
                wanted.setdefault(stage, []).append(keys)
    return asked, found


@pytest.mark.parametrize("down", [1, 2, 3])
def test_it_says_about_how_many_states_there_are(down: int) -> None:
    """Of those who lost all one score is asked for; the others come in the stage itself."""
    stages, root = tiny({"scores": "0,1000,500", "earned": "2,1,2"})
    looks = Looks(stages, root)
    asked, found = found_of(stages, root, down)
    width = looks.width(np.concatenate(list(asked.values())))
    grown = 0
    for stage, keys in asked.items():
        states = len(found.get(stage, NO_KEYS))
        if states > 200:
            total = looks.at(stage, keys, 1, width).total
            assert states / 2 < total < 2.5 * states
            grown += states > 2 * len(keys)
    assert grown  # else it would do to count what is asked for


@given(shapes(strict=False), st.integers(1, 4), st.integers(0, 1 << 20))
def test_every_state_lies_in_a_cell_and_in_one_box(shape: Shape, count: int, seed: int) -> None:
    laid = Laid(shape)
    stages = Stages(laid.game, laid.shape.true_level)
    keys = np.unique(laid.keys(laid.spots))
    numbers = stages.of(keys)
    stage = int(numbers[seed % len(keys)])
    (mine,) = np.nonzero(numbers == stage)
    some = np.ascontiguousarray(keys[mine[: 1 + seed % len(mine)]])
    looks = Looks(stages, keys[-1:])
    lies = looks.at(stage, some, 1, looks.width(some))
    met = np.unique(np.concatenate([some, *_below(stages, stage, some)]))
    values = stages.inside.values(stages.inside.of(met))
    for value in values:
        assert ((lies.low <= value) & (value < lies.high)).all(axis=1).any()
    assert lies.total >= 1 and (lies.states > 0).all()
    boxes = grid(stages, lies, count)
    assert sum(states for _, states in boxes) == pytest.approx(lies.total, abs=len(boxes))
    every = np.ascontiguousarray(keys[mine])
    inside = np.array([stages.boxes_of(every, [box]) >= 0 for box, _ in boxes])
    assert (inside.sum(axis=0) == 1).all()
    only = [box for box, _ in boxes]
    assert not np.tril(stages.leads(only, only), -1).any()


def _below(stages: Stages, stage: int, some: Keys) -> list[Keys]:
    return [box.keys for box in expand_level(stages, stage >> 32, [some])]


def _even(values: tuple[int, int], parts: int = 1) -> Spread:
    """So many cells side by side in each of two functions, with one state for each place."""
    edges = [np.linspace(0, top, parts + 1).astype(np.int64) for top in values]
    low = np.stack(np.meshgrid(*(one[:-1] for one in edges)), axis=-1).reshape(-1, 2)
    high = np.stack(np.meshgrid(*(one[1:] for one in edges)), axis=-1).reshape(-1, 2)
    return Spread(low, high, (high - low).prod(axis=1).astype(float))


@pytest.mark.parametrize("parts", [1, 4])
def test_boxes_along_a_grid_are_even_and_wait_for_those_beside_them_only(parts: int) -> None:
    laid = Laid(Shape(sizes=(2, 1, 8, 8), bits=6))
    level = laid.shape.true_level
    stages = Stages(laid.game, type(level)(level.falls, inside=({"spread": 1}, {"spot": 1})))
    boxes = grid(stages, _even((40, 60), parts), 9)
    assert len(boxes) == 9
    assert all(states == pytest.approx(2400 / 9, rel=0.1) for _, states in boxes)
    only = [box for box, _ in boxes]
    leads = stages.leads(only, only)
    longest = np.zeros(9, int)
    for i in range(9):
        longest[i] = 1 + max((longest[k] for k in range(i) if leads[k, i]), default=0)
    assert longest.max() == 5  # three in one function, three in the other, and one is both's


def test_a_function_that_no_state_differs_in_is_not_cut() -> None:
    laid = Laid(Shape(sizes=(2, 1, 8, 8), bits=6))
    level = laid.shape.true_level
    stages = Stages(laid.game, type(level)(level.falls, inside=({"spread": 1}, {"spot": 1})))
    boxes = grid(stages, _even((1, 60)), 6)
    assert len(boxes) == 6
    assert [states for _, states in grid(stages, _even((1, 1)), 6)] == [1]


def test_looking_ends_where_there_are_many_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    stages, root = tiny({"scores": "0,1000,500", "earned": "2,1,2"})
    asked, _ = found_of(stages, root, 1)
    stage = max(asked, key=lambda one: len(asked[one]))
    looks = Looks(stages, root)
    whole = looks.at(stage, asked[stage], 1, 1)
    monkeypatch.setattr(spread, "MOST_CELLS", len(whole.states) // 4)
    some = looks.at(stage, asked[stage], 1, 1)
    assert len(some.states) < len(whole.states)
