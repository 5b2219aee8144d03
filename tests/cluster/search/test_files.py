"""Stage files and asks: what is read back is what was written, and works as that does."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from luckbase.cluster.search.shards import ask_of, requested_runs, sample_of, unpacked
from luckbase.cluster.search.tasks import packed_stage, read_stage
from luckbase.solver.search.stages import Stages
from luckbase.solver.search.sweep import Sweeping
from tests.solver.search.laid_out import Laid, Shape, shapes
from tests.solver.search.stages_below import find_boxes


def boxes_of(laid, most):
    """The boxes of the highest level."""
    stages, keys = Stages(laid.game, laid.shape.true_level), laid.keys(laid.spots[-6:])
    numbers = stages.of(keys)
    level = int(numbers.max()) >> 32
    mine = keys[numbers >> np.uint64(32) == level]
    return find_boxes(stages, level, [mine], most=most)


def same(first, other):
    """Arrays to the bit, of one kind; whatever holds them part by part."""
    if isinstance(first, np.ndarray):
        assert isinstance(other, np.ndarray)
        assert (first.dtype, first.shape) == (other.dtype, other.shape)
        assert first.tobytes() == other.tobytes() and other.flags.writeable
    elif isinstance(first, list | tuple):
        assert isinstance(other, list | tuple) and len(first) == len(other)
        for each, its in zip(first, other, strict=True):
            same(each, its)
    else:
        assert first == other


def solved(laid, stage):
    """What comes of a stage that is given made-up payoffs."""
    sweeping = Sweeping(laid.game, stage)
    for i, keys in enumerate(sweeping.requested):
        rows = np.empty((len(keys), 1 + laid.game.players))
        rows[:, 0] = keys.view(np.float64)
        rows[:, 1:] = np.sin(keys.astype(float))[:, None] * [1.0, -1.0, 0.5][: laid.game.players]
        assert sweeping.fill(i, rows) == len(keys)
    result = sweeping.solve(1e-12)
    return b"".join(np.ascontiguousarray(part).tobytes() for part in result)


@settings(max_examples=60)
@given(shapes(), st.sampled_from([1, 2, 5, 100]))
@example(Shape(), 100)
def test_what_is_read_back_is_what_was_written(shape, most):
    laid = Laid(shape)
    result = boxes_of(laid, most)
    back = [read_stage(packed_stage(each)) for each in result]
    for each, its in zip(result, back, strict=True):
        same(list(vars(each).values()), list(vars(its).values()))
        same(its.keys, each.keys)
    assert [solved(laid, each) for each in back] == [solved(laid, each) for each in result]


@given(shapes(), st.data())
def test_asks_give_back_their_keys_and_the_box_that_they_lie_in(shape, data):
    laid = Laid(shape)
    stages, keys = Stages(laid.game, shape.true_level), np.unique(laid.keys(laid.spots))
    chosen = data.draw(st.lists(st.sets(st.sampled_from(keys.tolist()), min_size=1), max_size=5))
    wanted = [np.array(sorted(some), np.uint64) for some in chosen]
    asks = [ask_of(stages, i << 32, stages.runs_of(some), 2) for i, some in enumerate(wanted)]
    for ask, some in zip(asks, wanted, strict=True):
        runs, of_ask = requested_runs([ask], stages)
        same(runs.all_keys(), some)
        assert not of_ask.any() and len(of_ask) == len(runs.keys)
        assert unpacked(ask.sample, ask.sampled).tolist() == sample_of(some, 2).tolist()
        assert (stages.boxes_of(some, [ask.box]) == 0).all()
        least = stages.inside.values(stages.inside.of(some)).min(axis=0)
        assert not shape.true_level.inside or ask.box.low == stages.inside.word(least)
    back, of_ask = requested_runs(asks, stages)
    for i, some in enumerate(wanted):
        same(back.only(np.where(of_ask == i, back.members, 0)).all_keys(), some)
    assert of_ask.tolist() == sorted(of_ask)


def test_whoever_asks_for_a_key_has_it_in_the_sample_or_nobody_has():
    keys = np.random.default_rng(1).integers(0, 1 << 63, 100_000).astype(np.uint64)
    drawn = sample_of(keys, 8)
    assert 300 < len(drawn) < 500
    same(sample_of(keys[::3], 8), keys[::3][np.isin(keys[::3], drawn)])


def test_who_asks_for_few_keys_has_eight_in_the_sample_or_all():
    keys = np.unique(np.random.default_rng(2).integers(0, 1 << 63, 300).astype(np.uint64))
    eight = sample_of(keys, 30)
    assert len(eight) == 8
    rest = keys[~np.isin(keys, eight[:3])]
    assert np.isin(eight[3:], sample_of(rest, 30)).all()  # the same ones whoever has them
    same(sample_of(keys[:8], 30), keys[:8])
    same(sample_of(keys[:3], 30), keys[:3])
    assert len(sample_of(keys[:0], 30)) == 0


def test_a_file_that_was_cut_short_is_none():
    content = packed_stage(boxes_of(Laid(Shape()), 100)[0])
    with pytest.raises(OSError, match="decompress"):
        read_stage(content[:-20])
