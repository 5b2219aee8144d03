"""Stages: what is found from above and solved from below has the bits of a search in one piece; how
a large stage is sampled, and the grid of boxes that it is cut into."""

from dataclasses import replace
from itertools import chain

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from luckbase.solver.errors import OptionError, StateError, Stopped
from luckbase.solver.game.fields import Field, Fields, set_field
from luckbase.solver.game.rules import DECISION, TERMINAL, Level
from luckbase.solver.search import stage_kernels as kernels
from luckbase.solver.search import stages as solver_stages
from luckbase.solver.search import sweep as sweeping_module
from luckbase.solver.search.game_graph import Graph
from luckbase.solver.search.keys import pack_all
from luckbase.solver.search.runs import merged_runs
from luckbase.solver.search.stages import WHOLE, Box, Stages, cut, sample_below
from luckbase.solver.search.sweep import join, solve_stage
from tests.solver.search.laid_out import NAMES, Laid, Shape, shapes
from tests.solver.search.stages_below import find_boxes, find_stage, tiny

TINIEST = st.sampled_from([1, 2, 5, solver_stages.CACHED])
"""States of a box, at most."""


def keys_of(game, states):
    return pack_all(game.strides, np.ascontiguousarray(states))


def found_from(stages, roots, *, alone=True, most=solver_stages.CACHED):
    """All boxes of all that lies below roots, highest first, a list for each call; alone: every
    stage by itself, else all of a level together."""
    wanted = {}
    numbers = stages.of(roots)
    for number in np.unique(numbers).tolist():
        wanted[number] = [roots[numbers == number]]
    found = []
    while wanted:
        level = max(wanted) >> 32
        here = sorted(number for number in wanted if number >> 32 == level)
        for together in [[number] for number in here] if alone else [here]:
            lists = [keys for number in together for keys in wanted.pop(number)]
            boxes = find_boxes(stages, level, lists, most=most)
            found.append(boxes)
            for box in boxes:
                for number, runs in box.requests:
                    if number >> 32 != level:
                        wanted.setdefault(number, []).append(runs.all_keys())
    return found


def solved_from(stages, found):
    """The boxes, solved: lowest first, each given what it asks for of those before it only, each
    of them with its own box."""
    solved, below = [], []
    for stage in [box for boxes in found for box in boxes][::-1]:
        tables = [
            [(box, rows) for numbers, box, rows in below if number in numbers]
            for number, _ in stage.requests
        ]
        solved.append(solve_stage(stages, stage, tables, stages.game.tie_tolerance))
        if len(stage.keys):
            numbers, box = stages.of(stage.keys).tolist(), stages.around(stage.keys)
            below.append(({*numbers}, box, solved[-1].values))
    return solved


def keys_in(solved):
    return np.ascontiguousarray(solved.values[:, 0]).view(np.uint64)


def same_as(graph, solved):
    """All states of the graph, each once, and all that is said of them, to the bit."""
    every = np.concatenate([keys_in(one) for one in solved])
    assert len(np.unique(every)) == len(every) == graph.count
    for one in solved:
        assert (np.diff(keys_in(one).astype(np.int64)) > 0).all()
        at = graph.look_up(keys_in(one))
        assert (at >= 0).all()
        assert one.values[:, 1:].tobytes() == graph.values[at].tobytes()
        assert one.best.tolist() == graph.best[at].tolist()
        np.testing.assert_array_equal(one.margins, graph.margins[at])
        assert one.actors.tolist() == graph.actors[at].tolist()
        assert one.errors.max(initial=0.0) <= graph.errors[at].max(initial=0.0)
    assert graph.error <= sum(one.errors.max(initial=0.0) for one in solved) * (1 + 1e-5)


# --- the same bits --------------------------------------------------------------------------------


@settings(max_examples=80)
@given(shapes(), TINIEST, st.booleans(), st.integers(1, 12))
def test_any_true_level_and_any_boxes_give_the_states_and_bits_of_the_search(
    shape, most, alone, roots
):
    laid = Laid(shape)
    game, stages = laid.game, Stages(laid.game, shape.true_level)
    graph = Graph(game)
    graph.solve(laid.roots(roots))
    keys = np.unique(keys_of(game, laid.roots(roots)))
    found = found_from(stages, keys, alone=alone, most=most)
    same_as(graph, solved_from(stages, found))
    assert edges_of(found) == graph.edges


def edges_of(found):
    return sum(box.edges for boxes in found for box in boxes)


@settings(max_examples=30)
@given(shapes())
def test_a_search_that_pauses_after_each_state_finds_the_same(shape):
    """All states are roots, the last first, so that runs are met from their ends."""
    laid = Laid(shape)
    stages, keys = Stages(laid.game, shape.true_level), laid.keys(laid.spots)[::-1].copy()
    without = found_from(stages, keys)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(solver_stages, "BUDGET", 1)  # no option
        pausing = found_from(stages, keys)
    for one, other in zip(chain(*without), chain(*pausing), strict=True):
        assert one.keys.tobytes() == other.keys.tobytes() and one.edges == other.edges
        assert one.states.children.tobytes() == other.states.children.tobytes()
    solved = [solved_from(stages, found) for found in (without, pausing)]
    for one, other in zip(*solved, strict=True):
        assert one.values.tobytes() == other.values.tobytes()


def test_boxes_are_small():
    shape = Shape(sizes=(2, 1, 8, 4), seed=3)
    laid = Laid(shape)
    stages = Stages(laid.game, shape.true_level)
    roots = np.unique(keys_of(laid.game, laid.roots(32)))
    plain = found_from(stages, roots)
    cut = found_from(stages, roots, most=5)
    assert [len(boxes) for boxes in plain] == [1, 1]
    assert len(cut[0]) > 4 and all(len(box.keys) <= 8 for box in cut[0])


# --- levels that are none -------------------------------------------------------------------------


def found_wrong(laid, level, spots=1):
    """What is said of a level that does not hold."""
    with pytest.raises(StateError) as caught:
        found_from(Stages(laid.game, level), np.unique(keys_of(laid.game, laid.roots(spots))))
    return str(caught.value)


def said(laid, spot):
    words = laid.game.describe(laid.states([spot])[0])
    return " ".join(f"{name}={value}" for name, value in words.items())


def planted(shape, *edges):
    """A game in which the highest state leads to the first of each edge, the first to the second,
    the second to nothing else."""
    laid = Laid(shape)
    top = laid.spots[-1]
    nothing = (0.0,) * shape.players
    for one, other in edges:
        laid.kinds[top] = laid.kinds[one] = DECISION, 0
        laid.edges[top] = [(0, 1.0, one, nothing)]
        laid.edges[one] = [(0, 1.0, other, nothing)]
    return laid


PLAIN = Shape(sizes=(6, 2, 3, 2), seed=1, players=1)


@pytest.mark.parametrize(
    ("one", "first", "wrong", "changes"),
    [
        # the level rises
        ((1, 0, 0, 0), (0, 0, 0, 1), (2, 0, 0, 0), {}),
        # the level is the same, and parts are not apart
        ((2, 0, 0, 0), (1, 0, 0, 1), (2, 1, 0, 0), {}),
        # an edge inside
        ((2, 0, 0, 0), (1, 1, 0, 0), (2, 0, 0, 1), {"strict": True}),
        # two values are one level
        ((3, 0, 0, 0), (1, 1, 0, 0), (2, 1, 0, 0), {"width": 2}),
        # a rise within a level is none
        ((2, 0, 0, 0), (3, 0, 0, 0), (2, 1, 0, 0), {"width": 2}),
    ],
)
def test_an_edge_that_leads_where_the_level_says_none_does_names_both_states(
    one, first, wrong, changes
):
    """The one that is wrong, not the one that happens to stand first."""
    laid = planted(PLAIN, (one, wrong))
    laid.kinds[first] = TERMINAL, -1
    laid.edges[first] = [(0, 1.0, first, (0.0,))]
    laid.edges[one] = [(0, 0.5, first, (0.0,)), (0, 0.5, wrong, (0.0,))]
    level = replace(PLAIN.true_level, inside=(), **changes)
    assert found_wrong(laid, level) == (
        f"level {level}: is not one of laid-out: an edge leads from {said(laid, one)} "
        f"to {said(laid, wrong)}"
    )


def levels():
    """Functions that seldom hold."""
    factor = st.integers(-2, 2)
    function = st.dictionaries(st.sampled_from(NAMES), factor, min_size=1, max_size=2)
    some = st.lists(function, max_size=2).map(tuple)
    return st.builds(Level, function, some, some, st.booleans(), st.integers(1, 3))


@settings(max_examples=80)
@given(shapes(), levels(), TINIEST, st.booleans())
def test_a_level_that_does_not_hold_is_found_out_or_changes_no_answer(shape, level, most, alone):
    laid = Laid(shape)
    game = laid.game
    keys, stages = np.unique(keys_of(game, laid.roots(4))), Stages(game, level)
    try:
        found = found_from(stages, keys, alone=alone, most=most)
    except StateError:
        return
    graph = Graph(game)
    graph.solve(laid.roots(4))
    same_as(graph, solved_from(stages, found))


@pytest.mark.parametrize(("how", "root"), [({"most": 5}, 24), ({"most": 10}, 24), ({"most": 2}, 1)])
def test_a_function_of_boxes_that_an_edge_raises_is_found_out_where_boxes_are_cut(how, root):
    """Before or when that is found to be needed, also after the edge was expanded; where they are
    not it changes nothing."""
    shape = replace(PLAIN, sizes=(2, 1, 6, 4), loops=True, players=2)
    laid = planted(shape, ((1, 0, 0, 0), (1, 0, 5, 0)))
    zeros = (0.0,) * shape.players
    spots = [(0, 0, 0, 0), (1, 0, 5, 0), (1, 0, 0, 1), (1, 0, 0, 2)]
    laid.edges[1, 0, 0, 0] = [(0, 0.25, spot, zeros) for spot in spots]
    level = shape.true_level
    keys = np.unique(keys_of(laid.game, laid.states(laid.spots[24 : 24 + root])))
    with pytest.raises(StateError) as caught:
        found_from(Stages(laid.game, level), keys, **how)
    ends = said(laid, (1, 0, 0, 0)), said(laid, (1, 0, 5, 0))
    assert str(caught.value).endswith(f"an edge leads from {ends[0]} to {ends[1]}")
    assert len(found_from(Stages(laid.game, level), keys)) == 2


@pytest.mark.parametrize(
    ("level", "text"),
    [
        (Level({"levle": 1}), "unknown column 'levle'; expected level, part, spread, spot"),
        (Level({"level": 1}, inside=({"spraed": 1},)), "unknown column 'spraed'"),
        (Level({"level": 1 << 61}), "too many values"),
        (Level({"level": 1 << 31}), "too many values for a stage's number"),
        (Level({"level": 1}, ({"part": 1 << 40},)), "too many values for a stage's number"),
    ],
)
def test_a_level_that_can_not_be_asked_for_is_a_sentence(level, text):
    with pytest.raises(OptionError, match=text):
        Stages(Laid(PLAIN).game, level)


def test_stop_ends_both_passes(monkeypatch):
    for module in (solver_stages, sweeping_module):
        monkeypatch.setattr(module, "BUDGET", 1)  # batches of `1` states each
    laid = Laid(Shape(sizes=(2, 1, 12, 8), bits=4))
    stages = Stages(laid.game, laid.shape.true_level)
    keys = [laid.keys(laid.spots[-96:])]
    calls = []

    def third():
        calls.append(None)
        return len(calls) == 3

    with pytest.raises(Stopped):
        find_stage(stages, int(stages.of(keys[0])[0]) >> 32, keys, stop=third)
    assert len(calls) == 3
    found = found_from(stages, keys[0])
    solved = solved_from(stages, found)
    rows = np.concatenate([one.values for one in solved[:-1]])
    tables = [[(WHOLE, rows)]] * len(found[0][0].requests)
    calls.clear()
    with pytest.raises(Stopped):
        solve_stage(stages, found[0][0], tables, 1e-12, third)


def test_a_stage_is_not_solved_without_what_it_needs():
    laid = Laid(Shape(sizes=(2, 1, 8, 4), seed=3))
    stages = Stages(laid.game, laid.shape.true_level)
    (stage,) = found_from(stages, np.unique(laid.keys(laid.spots)))[0]
    assert stage.requests
    assert solve_stage(stages, stage, [[]] * len(stage.requests), 1e-12) is None


# --- stages and boxes -----------------------------------------------------------------------------


def test_a_strict_level_is_cut_into_many_stages_whatever_the_states():
    laid = Laid(Shape(sizes=(1, 1, 8, 8)))
    keys = laid.keys(laid.spots)
    strict = Stages(laid.game, Level({"level": 1}, strict=True)).of(keys)
    assert len(np.unique(strict)) > 16 and (strict >> np.uint64(32) == 0).all()
    assert (Stages(laid.game, Level({"level": 1})).of(keys) == 0).all()


def test_a_run_of_requested_states_is_entered_whole_and_never_beyond_the_room():
    laid = Laid(Shape(sizes=(1, 1, 2, 2)))
    search = solver_stages.BoxSearch(Stages(laid.game, laid.shape.true_level), 0, [])
    room, low = len(search.nodes.own), search.place.run_low
    whole = np.arange(room // 4, dtype=np.uint64)[:, None] << np.uint64(6)
    keys = (whole | np.arange(8, dtype=np.uint64) << low).ravel()
    keys = np.append(keys[0], keys[8:])  # one, then eight by eight: the last that fit are seven
    search.requested = [search.stages.runs_of(keys)]
    search._enter()
    assert room < len(keys) == search.at[kernels.OWN] <= len(search.nodes.own)
    own = search.nodes.own[: search.at[kernels.OWN]]
    entered = kernels.keys_of(search.place, search.nodes.runs, own)
    assert np.sort(entered).tolist() == np.sort(keys).tolist()


FIELDS = [Field("a", bits=4), Field("b", 2, bits=3), Field("c", bits=2)]


class Bare:
    """As much of a game as `Stages` asks for."""

    fields = Fields(FIELDS)
    strides = fields.strides
    players = 1


def bare(*inside):
    return Stages(Bare(), Level({"c": 1}, inside=inside))


def test_the_states_of_a_run_are_of_one_stage_and_differ_in_the_longest_column():
    """Of columns as long the last; never one that says which stage a state is of."""
    a, b = {"a": 1, "b_1": 0}, {"b_1": -1, "b_2": 1}
    assert [
        (stages.run, stages.run_low, stages.run_bits)
        for stages in (bare(a, b), bare(b), bare({"c": 1}), bare())
    ] == [(0b1111 << 8, 8, 4), (0b111 << 2, 2, 3), (0, 0, 0), (0, 0, 0)]
    levels = Level({"c": 1}, ({"a": 1},), (a, b)), Level({"c": 1}, (), (a,), strict=True)
    assert [Stages(Bare(), one).run_bits for one in levels] == [3, 0]
    long = Bare()
    long.fields = Fields([Field("a", 25, high=4), Field("c", high=2)])  # more than 64 bits
    long.strides = long.fields.strides
    assert Stages(long, Level({"c": 1}, (), ({"a_1": 1},))).run_bits == 0


@given(
    st.lists(st.dictionaries(st.sampled_from(["a", "b_1", "b_2"]), st.integers(-3, 3), min_size=1),
             max_size=3),
    st.lists(st.integers(0, (1 << 12) - 1), unique=True, min_size=1, max_size=60),
    st.lists(st.integers(1, 20), min_size=1, max_size=3),
    st.integers(0, (1 << 12) - 1),
)  # fmt: skip
def test_boxes_are_disjoint_cover_everything_and_stand_in_order(inside, keys, counts, other):
    """Boxes of boxes as well; `other` is any key, sampled or not."""
    stages, sample = bare(*inside), np.array(sorted(keys), np.uint64)
    boxes = [Box()]
    assert sum(states for _, states in cut(stages, sample, counts[0], 1000)) <= 1000
    for count in counts:
        of = stages.boxes_of(sample, boxes)
        boxes = [
            part for i, box in enumerate(boxes)
            for part, _ in (
                cut(stages, sample[of == i], count, box=box) if (of == i).any() else [(box, 0)]
            )
        ]  # fmt: skip
    assert not np.tril(stages.leads(boxes, boxes), -1).any()
    every = np.append(sample, np.uint64(other))
    which = stages.boxes_of(every, boxes)
    values = stages.inside.values(stages.inside.of(every))
    ends = [
        stages.inside.values(np.array([b.low, b.high], np.uint64)) for b in boxes if not b.whole
    ]
    if ends:
        inside_of = np.array(
            [((low <= values) & (values <= high)).all(axis=1) for low, high in ends]
        )
        assert (inside_of.sum(axis=0) == 1).all()
        assert (inside_of.argmax(axis=0) == which).all()
    else:
        assert len(boxes) == 1 and (which == 0).all()
    for i in range(len(every)):  # none that is greater in no function lies in a box before
        lower = (values <= values[i]).all(axis=1)
        assert (which[lower] >= which[i]).all()


class BareWithSet(Bare):
    """The longest column is a set, whose functions count members: not evenly along a run."""

    fields = Fields([Field("c", bits=2), set_field("a", 6), Field("b", 2, bits=2)])
    strides = fields.strides


@given(
    st.sampled_from([Bare(), BareWithSet()]),
    st.lists(st.dictionaries(st.sampled_from(["a", "b_1", "b_2"]), st.integers(-3, 3), min_size=1),
             max_size=3),
    st.lists(st.lists(st.integers(0, (1 << 12) - 1), max_size=150), min_size=1, max_size=3),
    st.lists(st.integers(0, (1 << 12) - 1), min_size=2, max_size=2),
)  # fmt: skip
def test_runs_have_the_keys_that_they_were_made_of_and_those_in_a_box(game, inside, lists, corners):
    stages = Stages(game, Level({"c": 1}, inside=tuple(inside)))
    every = [stages.runs_of(np.array(keys, np.uint64)) for keys in lists]
    for runs, some in zip(every, lists, strict=True):
        assert runs.all_keys().tolist() == sorted(set(some))
        assert (np.diff(runs.keys.astype(np.int64)) > 0).all() and (runs.members > 0).all()
    runs, keys = merged_runs(every), sorted({key for some in lists for key in some})
    assert runs.all_keys().tolist() == keys
    box = stages.around(np.array(corners, np.uint64))
    values = stages.inside.values(stages.inside.of(np.array([*keys, *corners], np.uint64)))
    low, high = values[-2:].min(axis=0), values[-2:].max(axis=0)
    here = ((low <= values) & (values <= high)).all(axis=1)[:-2]
    part = runs.only(stages.within(runs, box))
    assert part.all_keys().tolist() == np.array(keys, int)[here].tolist()
    assert (part.members > 0).all() and (stages.within(part, box) == part.members).all()
    in_box = kernels.members_within(stages.place(0, box), runs)
    rest = runs.only(runs.members & ~in_box)
    assert rest.all_keys().tolist() == np.array(keys, int)[~here].tolist()


def test_a_key_in_no_box_is_said_so():
    stages = bare({"a": 1})
    keys = np.arange(0, 1 << 12, 1 << 8, dtype=np.uint64)  # a from 0 to 15
    low, high = (box for box, _ in cut(stages, keys, 2)[::-1])
    middle, _ = cut(stages, keys[8:], 2, box=high)[1]
    assert stages.boxes_of(keys, [low, middle]).tolist() == [0] * 8 + [1] * 4 + [-1] * 4


# --- kernels --------------------------------------------------------------------------------------


@given(
    st.sets(st.integers(0, 60), max_size=40), st.sets(st.integers(0, 60), max_size=40),
    st.integers(0, 3),
)  # fmt: skip
def test_join_copies_what_is_there_and_counts_it(wanted, there, high):
    """Keys beyond 2**63 too: they are no signed numbers."""
    shift = np.uint64(high << 62)
    keys = np.array(sorted(wanted), np.uint64) + shift
    rows = np.empty((len(there), 3))
    rows[:, 0] = (np.array(sorted(there), np.uint64) + shift).view(np.float64)
    rows[:, 1] = np.array(sorted(there)) + 0.5
    rows[:, 2] = -rows[:, 1]
    out, numbers = np.full((len(wanted), 3), 99.0), np.arange(len(wanted))[::-1]
    assert join(keys, rows, numbers.copy(), out) == len(wanted & there)
    for key, copied in zip(sorted(wanted), out[::-1].tolist(), strict=True):
        right = [key + 0.5, -key - 0.5] if key in there else [99.0, 99.0]
        assert copied == [99.0, *right]


@st.composite
def edges(draw):
    """Children of each state; -1 for those of other stages."""
    n = draw(st.integers(0, 12))
    some = st.lists(st.integers(-1, n - 1), max_size=4)
    return [draw(some) for _ in range(n)]


@given(edges(), st.sampled_from([1, 1 << 27]))
def test_children_are_back_from_their_differences(children, apart):
    first = np.cumsum([0, *map(len, children)])
    rows = [[y * apart for y in below] for below in children]
    flat = np.array([y for below in rows for y in below], np.int32)
    coded, back = np.full(len(flat), 99, np.int32), np.full(len(flat), 99, np.int32)
    kernels.shift_children(first, flat, flat, -1, coded)
    kernels.shift_children(first, coded, back, 1, back)
    assert back.tolist() == flat.tolist()
    for x in range(1, len(rows)):  # neighbours that lead equally far have equal differences
        if rows[x] == rows[x - 1]:
            assert not coded[first[x] : first[x + 1]].any()


# --- samples and grids ----------------------------------------------------------------------------


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
