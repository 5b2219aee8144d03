"""How a large stage is sampled, and the grid of boxes that it is cut into."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from luckbase.solver.game.rules import Level
from luckbase.solver.search.stages import Stages, cut, sample_below
from tests.solver.search.laid_out import Laid, Shape, shapes
from tests.solver.search.stages_below import find_stage, tiny


@given(shapes(strict=False), st.integers(1, 20), st.integers(0, 1 << 20))
def test_every_state_lies_in_one_box_and_no_box_leads_to_one_before_it(shape, count, seed):
    laid = Laid(shape)
    stages, keys = Stages(laid.game, laid.shape.true_level), np.unique(laid.keys(laid.spots))
    numbers = stages.of(keys)
    (mine,) = np.nonzero(numbers == numbers[seed % len(keys)])
    some = np.ascontiguousarray(keys[mine[: 1 + seed % len(mine)]])
    boxes = cut(stages, some, count, 1000)
    assert sum(states for _, states in boxes) <= 1000
    only = [box for box, _ in boxes]
    assert not np.tril(stages.leads(only, only), -1).any()
    top = int(stages.inside.most[0])
    every = [stages.inside.word(np.array([i])) for i in range(top + 1)]
    assert all(sum(box.low <= word <= box.high for box in only) == 1 for word in every)


def two_functions():
    laid = Laid(Shape(sizes=(2, 1, 8, 8), bits=6))
    falls = laid.shape.true_level.falls
    return Stages(laid.game, Level(falls, inside=({"spread": 1}, {"spot": 1})))


def test_boxes_along_a_grid_are_even_and_wait_for_those_beside_them_only():
    stages = two_functions()
    columns = list(stages.game.columns)
    states = np.zeros((40 * 60, len(columns)), np.int64)
    for name, values in zip(("spread", "spot"), np.mgrid[:40, :60].reshape(2, -1), strict=True):
        states[:, columns.index(name)] = values
    from luckbase.solver.search.keys import pack_all

    boxes = cut(stages, pack_all(stages.game.strides, states), 9, 2400)
    assert len(boxes) == 9
    assert all(states == pytest.approx(2400 / 9, rel=0.1) for _, states in boxes)
    only = [box for box, _ in boxes]
    leads = stages.leads(only, only)
    longest = np.zeros(9, int)
    for i in range(9):
        longest[i] = 1 + max((longest[k] for k in range(i) if leads[k, i]), default=0)
    assert longest.max() == 5  # three in one function, three in the other, and one is both's


def test_a_function_that_no_state_differs_in_is_not_cut():
    stages = two_functions()
    ((box, states),) = cut(stages, np.zeros(1, np.uint64), 6, 100)
    assert states == 100 and (box.low, box.high) == (0, stages.inside.word(stages.inside.most))


def test_states_below_the_requested_ones_are_sampled_and_no_others():
    """Of players who lost all, one score is requested; the others come in the stage itself."""
    stages, root = tiny({"scores": "0,1000,500", "earned": "2,1,2"})
    stage = int(stages.of(root)[0])
    found = find_stage(stages, stage >> 32, [root]).keys
    sample = sample_below(stages, stage, root)
    assert np.isin(sample, found).all() and np.isin(root, sample).all()
    values = [stages.inside.values(stages.inside.of(keys)) for keys in (sample, found)]
    assert len(sample) > len(found) / 20
    spread = [np.ptp(each, axis=0).sum() for each in values]
    assert spread[0] > spread[1] / 3
