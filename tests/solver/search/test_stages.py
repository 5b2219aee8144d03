"""How a stage lies, by cells, before it is found; and the grid that it is cut along."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from luckbase.solver.game.arrays import Ints
from luckbase.solver.search import stages as module
from luckbase.solver.search.find_stages import find_stage
from luckbase.solver.search.keys import NO_KEYS, Keys
from luckbase.solver.search.stages import StageCells, StageEstimator, Stages, grid
from tests.solver.search.laid_out import Laid, Shape, shapes
from tests.solver.search.stages_below import found_of, tiny


@pytest.mark.parametrize("down", [1, 2, 3])
def test_it_says_about_how_many_states_there_are(down: int) -> None:
    """Of those who lost all one score is asked for; the others come in the stage itself."""
    stages, root = tiny({"scores": "0,1000,500", "earned": "2,1,2"})
    looks = StageEstimator(stages, root)
    asked, found = found_of(stages, root, down)
    widths = looks.widths(np.concatenate(list(asked.values())))
    grown = 0
    for stage, keys in asked.items():
        states = len(found.get(stage, NO_KEYS))
        if states > 200:
            total = _estimate(looks, stage, keys, 1, widths).total
            assert states / 2 < total < 2.5 * states
            grown += states > 2 * len(keys)
    assert grown  # else it would do to count what is asked for


@given(
    shapes(strict=False), st.integers(1, 20), st.integers(1, 5), st.integers(0, 1 << 20),
    st.integers(1, 4),
)  # fmt: skip
def test_every_state_lies_in_a_cell_and_in_one_box(
    shape: Shape, count: int, width: int, seed: int, each: int
) -> None:
    """Ranges that end beyond the greatest value as well."""
    laid = Laid(shape)
    stages = Stages(laid.game, laid.shape.true_level)
    keys = np.unique(laid.keys(laid.spots))
    numbers = stages.of(keys)
    stage = int(numbers[seed % len(keys)])
    (mine,) = np.nonzero(numbers == stage)
    some = np.ascontiguousarray(keys[mine[: 1 + seed % len(mine)]])
    looks = StageEstimator(stages, keys[-1:])
    lies = _estimate(looks, stage, some, each, np.array([width]))
    met = np.unique(np.concatenate([some, *_below(stages, stage, some)]))
    if width == 1:
        values = stages.inside.values(stages.inside.of(met))
        for value in values:
            assert ((lies.low <= value) & (value < lies.high)).all(axis=1).any()
    assert (lies.high <= stages.inside.most + 1).all()
    assert lies.total >= each * len(some) * 0.99 and (lies.states > 0).all()
    boxes = grid(stages, lies, count)
    assert sum(states for _, states in boxes) == pytest.approx(lies.total, abs=len(boxes))
    top = int(stages.inside.most[0])
    every = np.array([stages.inside.word(np.array([i])) for i in range(top + 1)], np.uint64)
    ends = [(box.low, box.high) for box, _ in boxes]
    assert all(low <= high for low, high in ends)
    assert all(sum(low <= word <= high for low, high in ends) == 1 for word in every.tolist())
    only = [box for box, _ in boxes]
    assert not np.tril(stages.leads(only, only), -1).any()


def _estimate(
    looks: StageEstimator, stage: int, keys: Keys, weight: int, widths: Ints
) -> StageCells:  # fmt: skip
    """An estimate where each key stands for as many states."""
    return looks.estimate(stage, keys, np.full(len(keys), float(weight)), widths)


def _below(stages: Stages, stage: int, some: Keys) -> list[Keys]:
    return [find_stage(stages, stage >> 32, [some]).keys]


def _even(values: tuple[int, int], parts: int = 1) -> StageCells:
    """So many cells side by side in each of two functions, with one state for each place."""
    edges = [np.linspace(0, top, parts + 1).astype(np.int64) for top in values]
    low = np.stack(np.meshgrid(*(one[:-1] for one in edges)), axis=-1).reshape(-1, 2)
    high = np.stack(np.meshgrid(*(one[1:] for one in edges)), axis=-1).reshape(-1, 2)
    return StageCells(low, high, (high - low).prod(axis=1).astype(float))


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


@cache
def looked_at(down: int = 1) -> tuple[Stages, Keys, int, Keys]:
    """The tiny board's stages, a root, the stage below it of which most is asked, and what."""
    stages, root = tiny({"scores": "0,1000,500", "earned": "2,1,2"})
    asked, _ = found_of(stages, root, down)
    stage = max(asked, key=lambda one: len(asked[one]))
    return stages, root, stage, asked[stage]


def test_where_there_are_many_cells_they_are_wider(monkeypatch: pytest.MonkeyPatch) -> None:
    stages, root, stage, asked = looked_at()
    looks, narrow = StageEstimator(stages, root), np.ones(3, np.int64)
    sizes = [len(_estimate(looks, stage, asked, 1, narrow << i).states) for i in range(3)]
    assert sizes[0] > sizes[1] > sizes[2]
    for cells, doubled in ((sizes[0] + 1, 0), (sizes[0], 1), (sizes[1], 2)):
        monkeypatch.setattr(module, "MAX_CELLS", cells)
        assert len(_estimate(looks, stage, asked, 1, narrow).states) == sizes[doubled]
    monkeypatch.setattr(module, "MAX_CELLS", 0)  # the requested alone, in the widest there are
    most = int(stages.inside.most.max())
    fewest = _estimate(looks, stage, asked, 1, narrow)
    assert len(fewest.states) < sizes[2] and (fewest.high - fewest.low).max() > most // 2


def test_they_are_wide_at_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """A root says nothing of how far its stage goes."""
    stages, root, stage, asked = looked_at()
    for wide in (asked[:1], asked):
        looks = StageEstimator(stages, root)
        monkeypatch.setattr(module, "MIN_CELLS", 0)
        least = np.ones(3, np.int64)
        first = _estimate(looks, stage, wide, 1, least)
        width = stages.inside.most // module.FIRST_RANGES + 1
        assert ((first.high - first.low).max(axis=0) == width).all() and width.min() > 1
        monkeypatch.setattr(module, "MIN_CELLS", len(first.states) + 1)
        assert len(_estimate(looks, stage, wide, 1, least).states) > len(first.states)


def test_where_few_are_requested_half_of_the_places_are_states() -> None:
    """Where many are, few of those beside them are, and others are met in more ways."""
    stages, root, stage, asked = looked_at(2)
    looks, widths = StageEstimator(stages, root), np.full(3, 2)
    for keys, weight in ((asked[:1], 1), (asked[:1], 9), (asked, 1), (asked[::2], 9)):
        lies = _estimate(looks, stage, keys, weight, widths)
        places = (lies.high - lies.low).prod(axis=1)
        n, beside, *_ = map(len, looks._reached(stage, keys, widths))
        if len(keys) == 1:
            assert len(places) > 64 + n
            assert lies.states[n:] == pytest.approx(module.SHARE * places[n:])
            continue
        full = weight * len(keys) / places[:n].sum()
        beside += n
        assert lies.states[n:beside] == pytest.approx(module.BESIDE * places[n:beside])
        assert beside < len(places)
        assert lies.states[beside:] == pytest.approx(min(1, full) ** 0.25 * places[beside:])
    assert 0.3 < module.SHARE < 0.6 and module.BESIDE < 0.2  # as was measured


def test_a_requested_cell_has_as_many_states_as_its_keys_stand_for() -> None:
    stages, root, stage, asked = looked_at(2)
    looks, widths = StageEstimator(stages, root), np.full(3, 4)
    weights = np.random.default_rng(1).uniform(1, 9, len(asked))
    lies = looks.estimate(stage, asked, weights, widths)
    first = looks._reached(stage, asked, widths)[0]
    assert 5 < len(first) < len(asked)
    numbers = looks._cells(asked, widths)
    for number, states in zip(looks._cells(first, widths), lies.states, strict=False):
        assert states == pytest.approx(weights[numbers == number].sum())


def test_what_lies_further_on_is_met_from_a_few_states_of_each_new_cell() -> None:
    """What one of them leads to is not all."""
    stages, root, _, asked = looked_at(2)
    looks, widths = StageEstimator(stages, root), np.full(3, 64)
    numbers = looks._cells(asked, widths)
    every, counts = np.unique(numbers, return_counts=True)
    known = np.sort(every[::3])
    first, few, cells = looks._by_cell(np.concatenate([asked[::-1], asked]), widths, known)
    new = np.setdiff1d(every, known)
    assert (looks._cells(first, widths) == new).all() and (cells == every).all()
    for number in new:
        mine = np.sort(asked[numbers == number])
        drawn = few[looks._cells(few, widths) == number]
        assert mine[0] in first and mine[[0, -1]].tolist() == drawn[[0, -1]].tolist()
        assert len(np.unique(drawn)) == min(len(mine), module.FEW_OF_CELL)
        assert 2 < module.FEW_OF_CELL < 8 and counts.max() > 20
        if len(mine) > 20:
            at = np.searchsorted(mine, drawn) / (len(mine) - 1)
            assert at == pytest.approx(np.linspace(0, 1, module.FEW_OF_CELL), abs=0.1)


def test_a_value_of_the_roots_is_a_cell_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of few; of many roots none is."""
    stages, root, stage, asked = looked_at(3)
    wide = np.full(3, 64)
    single = [_estimate(StageEstimator(stages, root), stage, asked, 1, wide)]
    monkeypatch.setattr(module, "MAX_ROOTS", 0)
    single.append(_estimate(StageEstimator(stages, root), stage, asked, 1, wide))
    narrow = [int((one.high - one.low == 1).any(axis=1).sum()) for one in single]
    assert narrow[0] > narrow[1] > 0  # where nothing was won yet it is one value still


@given(st.integers(1, 60), st.integers(0, 1 << 20))
def test_few_of_the_roots_tell_as_much_as_all(count: int, seed: int) -> None:
    stages, _, _, asked = looked_at(2)
    roots = np.random.default_rng(seed).choice(asked, count)
    looks = StageEstimator(stages, roots)
    few = StageEstimator(stages, looks.roots)
    assert np.isin(looks.roots, roots).all() and len(looks.roots) <= 3 * (module.MAX_ROOTS + 1)
    for one, other in zip(looks._single, few._single, strict=True):
        assert (one == other).all()


def test_more_states_than_places_are_believed() -> None:
    """Of sets many states have the same number of elements."""
    stages, root, stage, asked = looked_at()
    lies = _estimate(StageEstimator(stages, root), stage, asked, 1000, np.ones(3, np.int64))
    assert lies.total >= 999 * len(asked)
