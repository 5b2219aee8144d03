"""What is asked of a level is cut into shards; which of them comes next."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from luckbase.cluster.search import shards as level_shards
from luckbase.cluster.search.shards import Ask, Demand, Growth, ask_of, requested_runs, sample_of
from luckbase.solver.game.rules import Level
from luckbase.solver.search.keys import NO_KEYS
from luckbase.solver.search.stages import WHOLE, Stages
from tests.solver.search.laid_out import Laid, Shape, shapes
from tests.solver.search.stages_below import found_of, tiny


def asked_of(laid, lists):
    """What lists of states ask, each of a shard of its own far above; all of it by stage."""
    stages = Stages(laid.game, laid.shape.true_level)
    keys = np.unique(laid.keys(laid.spots))
    query, every = Demand(stages, NO_KEYS), {}
    for number, chosen in reversed([*enumerate(lists)]):
        mine = keys[sorted({i % len(keys) for i in chosen})]
        numbers = stages.of(mine)
        asks = [(int(each), mine[numbers == each]) for each in np.unique(numbers)]
        requests = [ask_of(stages, each, stages.runs_of(some), 1) for each, some in asks]
        query.add((1 << 20, (number,)), requests)
        for each, some in asks:
            every.setdefault(each, []).append(some)
    return query, every


@given(shapes(), st.lists(st.lists(st.integers(0, 500), min_size=1), min_size=1, max_size=4),
       st.sampled_from([1, 3, 10, 1000]), st.sampled_from([1.0, 3.0]))  # fmt: skip
def test_every_key_that_is_asked_for_is_of_one_shard_which_is_told_of_it(
    shape, lists, size, growth
):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(level_shards, "SHARD_STATES", size)
        patch.setattr(level_shards, "SPARSE_BITS", 1)
        query, every = asked_of(Laid(shape), lists)
        stages = query.stages
        while (level := query.highest()) is not None:
            shards = query.shards(level, Growth(growth))
            mine = [each for each in every if each >> 32 == level]
            assert sorted({s for each in shards for s in each.stages}) == sorted(mine)
            for stage in mine:
                wanted = np.unique(np.concatenate(every[stage]))
                of = [each for each in shards if stage in each.stages]
                inside = np.array([stages.boxes_of(wanted, [each.box]) >= 0 for each in of])
                assert (inside.sum(axis=0) == 1).all()
                for each, here in zip(of, inside, strict=True):
                    orders = [request.order for request in query.requests_for(each)]
                    assert orders == sorted(orders)
                    shown = [
                        each.ask for each in query.requests_for(each) if each.ask.stage == stage
                    ]
                    runs, _ = requested_runs(shown, stages)
                    assert np.isin(wanted[here], runs.all_keys()).all()
            before = []
            for i, each in enumerate(shards):
                assert all(k < i for k in each.after)
                leads = {
                    k
                    for k in range(i)
                    if shards[k].stages == each.stages
                    and not each.box.whole
                    and stages.leads([shards[k].box], [each.box])[0, 0]
                }
                assert leads.issuperset(each.after)
                by_way = set().union(*(before[k] for k in each.after))
                assert by_way.isdisjoint(each.after)  # those are waited for as it is
                before.append(by_way.union(each.after))
                assert before[-1] >= leads
                for k in range(i + 1, len(shards)):  # and none leads back
                    if shards[k].stages == each.stages:
                        assert not stages.leads([shards[k].box], [each.box])[0, 0]
            query.done(level)


def test_what_several_ask_for_counts_once(monkeypatch):
    monkeypatch.setattr(level_shards, "SPARSE_BITS", 1)
    laid = Laid(Shape(sizes=(2, 1, 12, 8), bits=4))
    everything = list(range(len(laid.spots)))
    once, every = asked_of(laid, [everything])
    level = once.highest()
    assert level is not None
    thrice, _ = asked_of(laid, [everything] * 3)

    def keys(query, level):
        return sum(query.requested_of(stage) for stage in query._stages(level))

    assert keys(once, level) <= keys(thrice, level) < 2 * keys(once, level)
    # Nor what a level's own shards ask of it, as after a stop: it is cut as it was.
    half, own = (asked_of(laid, [everything[::2]] * 2)[0] for _ in range(2))
    of_level = [(stage, keys) for stage, (keys,) in every.items() if stage >> 32 == level]
    runs_of = own.stages.runs_of
    asks = [ask_of(own.stages, stage, runs_of(keys), 1) for stage, keys in of_level]
    own.add((level, (0,)), asks)
    assert keys(own, level) == keys(half, level) < keys(once, level)
    # A few that many ask for, which all have in their samples.
    monkeypatch.setattr(level_shards, "SPARSE_BITS", 8)
    few = asked_of(laid, [everything[-3:]] * 9)[0]
    assert sum(map(few.requested_of, few._total)) == 3
    # At least what one asks for, whoever comes last, where the sample has too few of them.
    monkeypatch.setattr(level_shards, "SPARSE_BITS", 0)
    lists = everything, everything[::2]
    counts = {keys(asked_of(laid, order)[0], level) for order in (lists, lists[::-1])}
    assert counts == {sum(len(keys) for _, keys in of_level)}


def test_stages_that_may_burst_are_not_put_together(monkeypatch):
    monkeypatch.setattr(level_shards, "SHARD_STATES", 100)
    laid = Laid(Shape())
    level = laid.shape.true_level
    query = Demand(Stages(laid.game, Level(level.falls)), NO_KEYS)  # nothing to cut them along
    query.add((8, (0,)), [Ask((7 << 32) + i, WHOLE, 0, b"", 10, 10, b"") for i in range(12)])
    assert [len(each.stages) for each in query.shards(7, Growth())] == [10, 2]
    assert [len(each.stages) for each in query.shards(7, Growth(2.0))] == [5, 5, 2]
    assert [len(each.stages) for each in query.shards(7, Growth(1.0, 5.0, 80))] == [4, 4, 4]
    assert [len(each.stages) for each in query.shards(7, Growth(1.0, 50.0, 20))] == [10, 2]
    likely = [each.likely for each in query.shards(7, Growth(1.0, 5.0, 80))]
    assert likely == [4 * 50] * 3  # ten states each, or five times as many
    assert [each.likely for each in query.shards(7, Growth(1.0, 50.0, 20))] == [10 * 20, 2 * 20]


def grown_one():
    """The stage with three times as many states as are asked for of which most is asked: its
    number, what is asked, what it has."""
    stages, root = tiny({"scores": "0,1000,500", "earned": "2,1,2"})
    wanted, result = found_of(stages, root, 3)
    grown = [each for each in wanted if len(result[each]) > 3 * len(wanted[each])]
    stage = max(grown, key=lambda each: len(wanted[each]))
    return stages, stage, wanted[stage], result[stage]


def asked_below(stage, keys, stages):
    """A level above that asks keys of one stage."""
    query = Demand(stages, NO_KEYS)
    query.add(((stage >> 32) + 1, (0,)), [ask_of(stages, stage, stages.runs_of(keys), 1)])
    return query


def test_a_stage_of_which_little_is_asked_is_cut_by_how_it_lies(monkeypatch):
    """Those who lost all are asked for with one score; the others come below."""
    monkeypatch.setattr(level_shards, "SPARSE_BITS", 1)
    stages, stage, keys, result = grown_one()
    states = len(result)
    monkeypatch.setattr(level_shards, "SHARD_STATES", states // 6)
    query = asked_below(stage, keys, stages)
    grown = Growth(states / len(keys), 10.0, states)
    shards = query.shards(stage >> 32, grown)
    assert len(shards) > 3 and all(each.stages == (stage,) for each in shards)
    stored = [int((stages.boxes_of(result, [each.box]) >= 0).sum()) for each in shards]
    assert sum(stored) == states and max(stored) < states / 2
    monkeypatch.setattr(level_shards, "MAX_BOXES", 2)
    assert len(query.shards(stage >> 32, grown)) == 2
    assert len(query.shards(stage >> 32, Growth(0.1))) == 1  # it is not large


def test_whoever_asks_for_a_key_has_it_in_the_sample_or_nobody_has():
    keys = np.random.default_rng(1).integers(0, 1 << 63, 100_000).astype(np.uint64)
    drawn = sample_of(keys, 8)
    assert 300 < len(drawn) < 500
    assert np.array_equal(sample_of(keys[::3], 8), keys[::3][np.isin(keys[::3], drawn)])


def test_who_asks_for_few_keys_has_eight_in_the_sample_or_all():
    keys = np.unique(np.random.default_rng(2).integers(0, 1 << 63, 300).astype(np.uint64))
    eight = sample_of(keys, 30)
    assert len(eight) == 8
    rest = keys[~np.isin(keys, eight[:3])]
    assert np.isin(eight[3:], sample_of(rest, 30)).all()  # the same ones whoever has them
    assert all(np.array_equal(sample_of(keys[:n], 30), keys[:n]) for n in (0, 3, 8))
