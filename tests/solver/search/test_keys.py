"""Levels as words of keys: what compiled code reads there, and what people read of a level."""

import json

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from luckbase.solver.errors import OptionError
from luckbase.solver.game.fields import Field, Fields, set_field
from luckbase.solver.game.rules import Level, level_from
from luckbase.solver.search.keys import (
    Numbering,
    fits,
    grown,
    merged,
    order_of,
    pack_all,
    rises,
    unpack_all,
    unpack_columns,
    words,
)


def fields_of(*widths):
    """Numbers of so many bits; a set where the bits are below 0."""
    return Fields(
        [
            set_field(f"f{i}", -width) if width < 0 else Field(f"f{i}", bits=width)
            for i, width in enumerate(widths)
        ]
    )


@st.composite
def cases(draw):
    """Fields, a list among them, functions of some of their columns, and two states at random; keys
    by bits, or by mixed radices where those would take too many."""
    width = st.integers(-12, 9).filter(bool)
    fields = [*fields_of(*draw(st.lists(width, min_size=1, max_size=3))), Field("all", 3, bits=7)]
    if draw(st.booleans()):
        fields += [Field("more", 2, high=draw(st.integers(0, 4)), bits=30)]
    known = Fields(fields)
    factor = st.one_of(st.integers(-3, 3), st.integers(-90, 90))
    function = st.dictionaries(st.sampled_from(known.columns), factor, max_size=6)
    functions = draw(st.lists(function, min_size=1, max_size=3))
    states = [[draw(st.integers(0, most)) for most in known.most.tolist()] for _ in range(2)]
    return known, functions, np.array(states)


def keys_of(fields, states):
    return pack_all(fields.strides, np.ascontiguousarray(states))


def worth(fields, function, state):
    """A function of a state, from its columns."""
    sets = {field.name for field in fields if field.is_set}
    stored = dict(zip(fields.columns, state.tolist(), strict=True))
    return sum(
        factor * (stored[name].bit_count() if name in sets else stored[name])
        for name, factor in function.items()
    )


def least(fields, function):
    """The least that a function can be of states that have keys."""
    sets = {field.name for field in fields if field.is_set}
    most = dict(zip(fields.columns, fields.most.tolist(), strict=True))
    return sum(
        min(factor, 0) * (most[name].bit_length() if name in sets else most[name])
        for name, factor in function.items()
    )


@given(cases())
def test_words_hold_the_functions_of_the_columns(case):
    fields, functions, states = case
    result = words(fields, functions)
    text = result.values(result.of(keys_of(fields, states)))
    for x, state in enumerate(states):
        right = [worth(fields, each, state) - least(fields, each) for each in functions]
        assert text[x].tolist() == right


@given(cases())
def test_a_key_is_the_sum_of_numbers_times_strides(case):
    """By whole numbers of any size; each state has its own, in the order of the states."""
    fields, _, states = case
    rooms = [most + 1 for most in fields.most.tolist()]
    right = []
    for state in states.tolist():
        key = 0
        for number, room in zip(state, rooms, strict=True):
            key = key * room + number
        right.append(key)
    keys = keys_of(fields, states)
    assert keys.tolist() == right
    assert unpack_all(fields.strides, keys).tolist() == states.tolist()
    columns = np.empty(states.T.shape, np.int64)
    unpack_columns(fields.strides, keys, columns)
    assert columns.T.tolist() == states.tolist()
    assert fits(fields.strides, states).all()
    assert not fits(fields.strides, states + fields.most + 1).any()
    assert not fits(fields.strides, states - fields.most - 1).any()


def test_keys_are_by_bits_as_far_as_64_go_and_by_numbers_beyond():
    some = [Field("a", 8, high=4), Field("b", 8, high=20, bits=5)]
    by_bits, by_numbers = Fields(some), Fields([*some, Field("c", high=1)])
    assert by_bits.strides[1].tolist() == [3] * 8 + [5] * 8
    assert by_numbers.strides[1].tolist() == [-5] * 8 + [-21] * 8 + [-2]
    assert by_numbers.most.tolist() == [4] * 8 + [20] * 8 + [1]
    last = np.array([by_numbers.most])
    assert keys_of(by_numbers, last).tolist() == [5**8 * 21**8 * 2 - 1]


def test_a_key_that_takes_all_of_64_bits_comes_back():
    long = (1 << 29) - 1
    fields = Fields([Field("a", high=63, bits=30), Field("b", 2, high=long)])
    states = np.array([[63, long, long], [32, 0, 0], [0, 0, 5]])
    assert keys_of(fields, states).tolist() == [(1 << 64) - 1, 1 << 63, 5]
    assert unpack_all(fields.strides, keys_of(fields, states)).tolist() == states.tolist()


def risen(result, parent, child):
    return bool(rises(parent, child, np.uint64(result.guards)))


# A lane that borrows from its neighbour would hide the rise by one.
@example(
    (fields_of(8, 8, 8), [{"f0": 1}, {"f1": 1}, {"f2": 1}], np.array([[255, 0, 255], [0, 1, 0]]))
)
@given(cases())
def test_a_rise_of_any_function_shows_whatever_the_others_do(case):
    fields, functions, states = case
    result = words(fields, functions)
    first, other = result.of(keys_of(fields, states))
    worths = [[worth(fields, each, state) for each in functions] for state in states]
    up = [b > a for a, b in zip(*worths, strict=True)]
    down = [b < a for a, b in zip(*worths, strict=True)]
    assert risen(result, first, other) == any(up)
    assert risen(result, other, first) == any(down)
    assert not risen(result, first, first)


@pytest.mark.parametrize(
    ("widths", "functions"),
    [
        ((31, 31), [{"f0": 1}, {"f1": 1}, {"f0": 1}]),
        ((31, 31), [{"f0": 1 << 33, "f1": 1}]),
        ((62,), [{"f0": 3}]),
        ((40,), [{"f0": 1 << 40}]),
        ((3,), [{"f0": 1 << 70}]),
        ((20, 20), [{"f0": -(1 << 60), "f1": 1}]),
    ],
)
def test_more_values_than_a_word_has_room_for_are_refused(widths, functions):
    with pytest.raises(OptionError) as result:
        words(fields_of(*widths), functions)
    assert str(result.value) == "level: its functions have too many values for one word of 64 bits"


def test_a_word_has_room_for_63_bits_and_a_guard():
    fields = fields_of(32, 31)
    result = words(fields, [{"f0": -(1 << 31), "f1": 1}])
    ends = np.array([[(1 << 32) - 1, 0], [0, (1 << 31) - 1]])
    assert result.values(result.of(keys_of(fields, ends))).tolist() == [[0], [(1 << 63) - 1]]


@pytest.mark.parametrize(
    ("level", "text"),
    [
        (Level({"spins": 81, "scores": -1}), "81 spins - scores"),
        (Level({"turn": -1, "round": -4096}), "-turn - 4096 round"),
        (Level({"deck": -2, "lead": 1}, ({"cards": 1},)), "-2 deck + lead"),
        (Level({"cards": 5, "up": -1}, width=3), "5 cards - up, 3 values a level"),
        (Level({"mine": 1}, inside=({"dice": 1},), strict=True), "mine"),
    ],
)
def test_a_level_is_written_as_people_write_it(level, text):
    assert str(level) == text


ONE = st.dictionaries(st.sampled_from(["mine", "yours_1", "deck"]), st.integers(-9, 9), min_size=1)
SEVERAL = st.lists(ONE, max_size=3).map(tuple)


@given(st.builds(Level, ONE, SEVERAL, SEVERAL, st.booleans(), st.integers(1, 99)))
def test_a_level_comes_back_from_json(level):
    assert level_from(json.loads(json.dumps(level.as_json()))) == level


@given(st.lists(st.integers(0, 64), max_size=3), st.data())
def test_keys_are_ordered_by_whatever_bits_differ(bits, data):
    some = st.sampled_from([0, *((1 << each) >> 1 for each in bits)])
    drawn = data.draw(st.lists(st.one_of(some, st.integers(0, (1 << 64) - 1)), max_size=20))
    keys = np.array(drawn, np.uint64)
    assert order_of(keys).tolist() == np.argsort(keys, kind="stable").tolist()


@given(st.lists(st.integers(0, 1 << 14).map(lambda key: key << 40), max_size=40))
def test_keys_are_numbered_as_by_a_dictionary(drawn):
    met, numbers = Numbering(room=4), dict[int, int]()
    for key in drawn:
        numbers.setdefault(key, len(numbers))
    keys, others = np.array(drawn, np.uint64), np.arange(50, dtype=np.uint64) << np.uint64(40)
    for some in np.array_split(keys, 3):  # it grows on the way
        assert met.enter(some).tolist() == [numbers[key] for key in some.tolist()]
    assert met.look_up(others).tolist() == [numbers.get(key, -1) for key in others.tolist()]


def test_an_array_grows_into_what_it_has_ahead_and_takes_no_other_for_it():
    first = grown(np.arange(6, dtype=np.int64).reshape(3, 2), 5)
    assert first[:3].ravel().tolist() == list(range(6))
    longer = grown(first, len(first) + 1)
    assert len(longer) == 2 * len(first)
    assert longer.ctypes.data == first.ctypes.data  # nothing was copied

    inside = np.arange(100_000)[7:9]  # of a longer one, and not its beginning
    assert grown(inside, 5)[:2].tolist() == [7, 8]
    other = np.zeros(100_000, np.int64).view(np.float64)[:2]
    other[:] = 0.5, 1.5
    more = grown(other, 5, np.nan)
    assert more[:2].tolist() == [0.5, 1.5]
    assert np.isnan(more[2:]).all()
    end = grown(longer, 1 << 23)
    assert end[:3].ravel().tolist() == list(range(6))


@given(st.lists(st.lists(st.integers(0, (1 << 64) - 1), max_size=8), max_size=4))
def test_merged_keys_ascend_each_once(lists):
    lists += [each[:3] for each in lists]
    result = merged([np.array(each, np.uint64) for each in lists])
    assert result.dtype == np.uint64
    assert result.tolist() == sorted({key for each in lists for key in each})
