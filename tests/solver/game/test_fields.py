"""Fields: every way to write a state gives the same state, in every game; what is wrong is said."""

import pickle
import re
from contextlib import nullcontext
from decimal import Decimal
from functools import cache

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from luckbase.solver.errors import StateError
from luckbase.solver.game.arrays import Coded
from luckbase.solver.game.capabilities import FullTable
from luckbase.solver.game.fields import Field, Fields, Names, members, set_field
from luckbase.solver.search.expand import expand
from luckbase.solver.search.keys import fits
from tests import solving
from tests.places import BOARDS

GAMES = {
    "press-your-luck/tiny": {"frontier": 3},
    "press-your-luck/1985-02": {"score_unit": 250, "score_cap": 3000, "frontier": 2},
    "skunk/tiny": {},
    "skunk/seed": {"goal": 30, "count_rolls": True},
    "pig/tiny": {},
    "pig/piglet": {},
    "pig/race": {"goal": 30, "count_rolls": True},
    "pig/rounds": {"rounds": 3, "cut": 30},
    "pig/rounds count": {"rounds": 3, "cut": 30, "count_rolls": True, "objective": "difference"},
    "goofspiel/points": {"cards": 5},
    "goofspiel/win": {"cards": 6},
    "goofspiel/win kept": {"cards": 6, "keep_cards": True},
    "jackpot/seed": {},
    "jackpot/tiny": {},
    "jackpot/shut-the-box": {"one_die": "may"},
    "jackpot/shut-the-box-sum": {},
}
"""Boards at small sizes; a name after the board's tells two of one board apart."""


@cache
def load(name):
    return solving.load_game(solving.load_board(BOARDS / f"{name.split()[0]}.toml", **GAMES[name]))


@st.composite
def states(draw, names=tuple(GAMES)):
    """A game, and some of its states, in the order of a play: from the start, or from any row of a
    full table where there is no start, by random steps of the transition."""
    game = load(draw(st.sampled_from(names)))
    state = game.start()
    if state is None or (game.has(FullTable) and draw(st.booleans())):
        layout = game.need(FullTable)
        tier = draw(st.sampled_from(list(layout.tiers())))
        row = draw(st.integers(0, layout.rows(tier) - 1))
        state = layout.states_at(tier, np.array([row]))[0]
    found = [state]
    for _ in range(draw(st.integers(0, 12))):
        edges = expand(game, found[-1][None])
        if edges.terminal[0]:
            break
        found.append(edges.children[draw(st.integers(0, len(edges.children) - 1))])
    return game, np.array(found)


@pytest.mark.parametrize("name", GAMES)
def test_a_game_can_be_sent_to_another_process(name):
    game = pickle.loads(pickle.dumps(load(name)))
    assert list(game.fields) == list(load(name).fields)
    assert np.array_equal(game.start(), load(name).start())


def as_text(value):
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def assert_read(game, words, state):
    assert game.parse(words).tolist() == state.tolist()


# --- every way to write a state -----------------------------------------------------------------


def test_every_game_is_asked():
    games = {name.partition("/")[0] for name in GAMES}
    assert games == {path.parent.name for path in BOARDS.glob("*/*.toml")}


@settings(max_examples=60, deadline=None)
@given(states())
def test_what_is_said_of_a_state_is_read_as_the_state_however_it_is_written(case):
    game, found = case
    assert fits(game.strides, found).all()
    for state in found:
        said = game.describe(state)
        assert set(said) <= set(game.fields.names)
        assert_read(game, said, state)
        assert_read(game, {name: as_text(value) for name, value in said.items()}, state)
        for kind in (tuple, np.array):
            made = {n: kind(v) if isinstance(v, list) else v for n, v in said.items()}
            assert_read(game, made, state)
        assert_read(game, {n: np.int32(v) if isinstance(v, int) else v for n, v in said.items()},
                    state)  # fmt: skip
        values = game.fields.values(state[None])[0].tolist()
        held = {each.name for each in game.fields if each.is_set}
        columns = {
            name: members(value) if name in held else value
            for name, value in zip(game.columns, values, strict=True)
        }
        assert_read(game, columns, state)
        assert_read(game, {name: as_text(value) for name, value in columns.items()}, state)


@settings(max_examples=150, deadline=None)
@given(states())
def test_what_is_left_out_is_what_is_said_of_it_by_default(case):
    """Fields that hold their defaults change nothing when they are not said, or said as nothing."""
    game, found = case
    for state in found:
        said = game.describe(state)
        usual = {
            field.name: [field.default] * field.length if field.length > 1 else field.default
            for field in game.fields
            if field.default is not None
        }
        short = {n: v for n, v in said.items() if n not in usual or v != usual[n]}
        assert_read(game, short, state)
        assert_read(game, short | {n: None for n in usual if n not in short}, state)
        for name in usual.keys() - said.keys():
            assert load_field(game, name).blank is not None  # else it would be said


def load_field(game, name):
    return next(field for field in game.fields if field.name == name)


@settings(max_examples=100, deadline=None)
@given(states(), st.data())
def test_known_states_are_those_that_are_refused_one_by_one_left_out(case, data):
    game, found = case
    values = np.concatenate([game.fields.values(found)] * 3)
    for _ in range(data.draw(st.integers(0, 8))):
        row, column = (data.draw(st.integers(0, size - 1)) for size in values.shape)
        values[row, column] += data.draw(st.sampled_from([-1, 1, 7, 1000, -5000]))
    wanted = []
    held = np.ones(len(values), bool)
    for x in range(len(values)):
        try:
            wanted.append(game.canonical_states(values[x])[0].tolist())
        except StateError:
            held[x] = False
    read, known = game.known_states(values)
    assert known.tolist() == held.tolist()
    assert read.tolist() == wanted


@settings(max_examples=100, deadline=None)
@given(states())
def test_a_frame_is_read_as_its_states(case):
    """Whole numbers, texts and lists as cells; a column a number, or a column a field."""
    game, found = case
    fields, values = game.fields, game.fields.values(found)
    n = len(found)

    def check(cells):
        read = fields.read_columns(cells, n)
        assert read.tolist() == values.tolist()
        assert game.canonical_states(read).tolist() == found.tolist()

    columns = game.state_columns(found)
    assert list(columns) == list(game.columns)
    held = {each.name for each in fields if each.is_set}
    sets = {name: [members(bits) for bits in columns[name]] for name in held}
    check({**columns, **sets})
    check({**columns, **sets, "note": None})  # not a state's
    check({name: [str(x) for x in column] for name, column in columns.items()}
          | {name: [" ".join(map(str, each)) for each in sets[name]] for name in held})  # fmt: skip
    said = [game.describe(state) for state in found]
    check({name: [each.get(name) for each in said] for name in fields.names})
    check({
        name: [as_text(each[name]) if name in each else "" for each in said]
        for name in fields.names
    })  # fmt: skip
    tables = {name: [column.labels[code] for code in column.codes] if isinstance(column, Coded)
              else column for name, column in game.table_columns(found).items()}  # fmt: skip
    check(tables)


@settings(max_examples=60, deadline=None)
@given(states(), st.data())
def test_in_a_frame_a_default_is_what_it_is_in_words(case, data):
    game, found = case
    said = game.describe(found[-1])
    free = [field.name for field in game.fields if field.default is not None]
    out = data.draw(st.sets(st.sampled_from(free))) if free else set()
    words = {name: value for name, value in said.items() if name not in out}
    try:
        wanted = game.parse(words)
    except StateError:
        return  # turn=3 without its rolls
    read = game.fields.read_columns({name: [value] * 2 for name, value in words.items()}, 2)
    assert game.canonical_states(read).tolist() == [wanted.tolist()] * 2


@pytest.mark.parametrize(
    ("slip", "meant"),
    [("upcards", "did you mean 'upcard'?"), ("Upcard", "did you mean 'upcard'? Capitals and"),
     ("up", ""), ("note", "")],
)  # fmt: skip
def test_a_slip_in_a_columns_name_is_not_taken_for_the_default(slip, meant):
    """Other columns are ignored, and so is one that is nearly a field which is there."""
    fields = load("goofspiel/points").fields
    cells = {"mine": ["1 2"], "theirs": ["1 3"], "deck": ["1 2"], slip: ["2"]}
    refused = pytest.raises(StateError, match=re.escape(f"'{slip}'; {meant}"))
    with refused if meant else nullcontext():
        assert fields.read_columns(cells, 1).tolist() == [[3, 5, 3, 0]]
    assert fields.read_columns({**cells, "upcard": ["2"]}, 1).tolist() == [[3, 5, 3, 2]]


def test_a_set_of_one_is_a_number_in_a_frame():
    """CSV reads a column of cells like 5 as whole numbers."""
    game = load("goofspiel/points")
    cells = {"mine": np.array([5, 2]), "theirs": np.array([1, 1]), "deck": ["3", [4]]}
    assert game.fields.read_columns(cells, 2).tolist() == [[16, 1, 4, 0], [2, 1, 8, 0]]
    assert_read(game, {"mine": 5, "theirs": 1, "deck": 3}, game.parse(
        {"mine": "5", "theirs": "1", "deck": "3"}))  # fmt: skip


def test_blank_fields_are_left_out_and_may_be_said_as_what_stands_there():
    cards, tiles = load("goofspiel/points"), load("jackpot/seed")
    start = cards.needed_start()
    assert "upcard" not in cards.describe(start) and "dice" not in tiles.describe(tiles.start())
    for blank in (None, "", 0, "0"):
        assert_read(cards, cards.describe(start) | {"upcard": blank}, start)
    for none in (None, "", [], (), "0,0", [0, 0]):
        assert_read(tiles, {"open": "1,2", "dice": none}, tiles.parse({"open": "1,2"}))
    cells = {"open": ["1,2", "1,2"], "dice": [None, "2,1"]}
    assert tiles.fields.read_columns(cells, 2).tolist() == [[3, 0, 0], [3, 2, 1]]
    columns = {"open": ["1,2", "1,2"], "dice_1": ["", 2], "dice_2": [None, 1]}
    assert tiles.fields.read_columns(columns, 2).tolist() == [[3, 0, 0], [3, 2, 1]]


# --- one field ----------------------------------------------------------------------------------


SCORES = Field("scores", length=3, high=1000, unit=250, default=None)
LEAD = Field("lead", low=-7, high=7)
DICE = Field("dice", length=2, low=1, high=6, default=0, blank=0)
MINE = set_field("mine", most=5)
STAGE = Field("stage", high=2, names=Names(["2", "3", "4"]))


def test_bounds_and_units_shift_numbers_to_start_at_0():
    fields = Fields([SCORES, LEAD, MINE])
    values = np.array([[0, 250, 1000, -7, 0b10011], [750, 0, 0, 7, 0]])
    numbers = fields.numbers(values)
    assert numbers.tolist() == [[0, 1, 4, 0, 0b10011], [3, 0, 0, 14, 0]]
    assert (numbers >= 0).all() and (numbers <= fields.most).all()
    assert fields.values(numbers).tolist() == values.tolist()
    assert fields.describe(numbers[0]) == {"scores": [0, 250, 1000], "lead": -7, "mine": [1, 2, 5]}


def test_columns_are_named_by_player_from_1():
    fields = Fields([SCORES, LEAD])
    assert fields.columns == ("scores_1", "scores_2", "scores_3", "lead")
    assert fields.names == ("scores", "lead") and len(fields) == 2 and fields[1] is LEAD


@pytest.mark.parametrize(
    ("field", "said", "values"),
    [
        (SCORES, "0,250,500", [0, 250, 500]),
        (SCORES, " $0 , $250,500 ", [0, 250, 500]),
        (SCORES, [0, "250", np.int16(500)], [0, 250, 500]),
        (LEAD, "-3", [-3]),
        (LEAD, "+3", [3]),
        (LEAD, None, [0]),
        (LEAD, "", [0]),
        (DICE, "4", [4, 0]),
        (DICE, (4, 5), [4, 5]),
        (DICE, None, [0, 0]),
        (MINE, "1 2 5", [0b10011]),
        (MINE, "5, 1,2", [0b10011]),
        (MINE, "", [0]),
        (MINE, [3], [0b100]),
        (MINE, 3, [0b100]),
        (MINE, {1, 3}, [0b101]),
        (MINE, b"1 3", [0b101]),
        (SCORES, (0.0, Decimal("250.0"), np.float16(500)), [0, 250, 500]),
        (SCORES, memoryview(b"0,250,500"), [0, 250, 500]),
        (LEAD, float("nan"), [0]),
        *((STAGE, said, [1]) for said in ("3", 3, 3.0, np.int8(3))),
    ],
)
def test_a_field_is_read(field, said, values):
    assert field.read(said) == values


def test_a_column_of_numbers_says_names_where_these_are_numbers():
    stages = Fields([STAGE])
    assert stages.read_columns({"stage": np.array([4, 2])}, 2).tolist() == [[2], [0]]
    with pytest.raises(StateError, match="row 2: stage: there is no '1'"):
        stages.read_columns({"stage": np.array([3, 1])}, 2)


@pytest.mark.parametrize(
    ("field", "said", "sentence"),
    [
        (SCORES, 250, "scores: '250' has 1 value; expected 3, as in scores=0,0,0"),
        (SCORES, None, "scores: is empty; expected 3 values, as in scores=0,0,0"),
        (SCORES, [0, 1.5, 0], "scores: '1.5' is not a whole number of at most 9 digits"),
        (SCORES, [0, None, 0], "scores: 'None' is not a whole number of at most 9 digits"),
        (SCORES, {0, 250, 500},
         "scores: '{0, 250, 500}' is not a whole number of at most 9 digits"),
        (LEAD, b"\xff", "lead: 'b'\\xff'' is not text in UTF-8"),
        (LEAD, float("inf"), "lead: 'inf' is not a whole number of at most 9 digits"),
        (LEAD, 10**30, f"lead: '1{'0' * 28}…' is not a whole number of at most 9 digits"),
        (LEAD, [10**5000, 1][:1], "lead: '…' is not a whole number of at most 9 digits"),
        (LEAD, {"a": 1}, "lead: '{'a': 1}' is not a whole number of at most 9 digits"),
        (LEAD, np.timedelta64(5, "ns"),
         "lead: '5 nanoseconds' is not a whole number of at most 9 digits"),
        (MINE, pa.MonthDayNano([1, 2, 3]),
         "mine: 'MonthDayNano(months=1, days=2…' is not a whole number of at most 9 digits"),
        (LEAD, True, "lead: 'True' is not a whole number of at most 9 digits"),
        (LEAD, "9" * 10, "lead: '9999999999' is not a whole number of at most 9 digits"),
        (STAGE, 1, "stage: there is no '1'; expected one of: 2, 3, 4"),
        (STAGE, True, "stage: there is no 'True'; expected one of: 2, 3, 4"),
    ],
)  # fmt: skip
def test_what_is_no_value_is_said_with_field_and_value(field, said, sentence):
    """What people write as words and cells, `tests/refusals.toml` has."""
    with pytest.raises(StateError) as caught:
        field.read(said)
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        (LEAD, -8, "lead: -8 is too small; expected at least -7"),
        (MINE, 32, "mine: 32 is not a set of numbers from 1 to 5"),
        (MINE, -1, "mine: -1 is not a set of numbers from 1 to 5"),
    ],
)
def test_a_value_out_of_its_bounds_is_said_with_what_would_be_right(field, value, sentence):
    fields = Fields([field])
    right = [field.low] * field.length
    with pytest.raises(StateError) as caught:
        fields.numbers(np.array([value, *right[1:]]))
    assert str(caught.value) == sentence
    with pytest.raises(StateError) as caught:
        fields.numbers(np.array([right, [value, *right[1:]]]))
    assert str(caught.value) == f"row 2: {sentence}"


def test_the_blank_is_no_value_out_of_bounds():
    assert DICE.wrong(np.array([0, 1, 6, 7, -1])).tolist() == [False, False, False, True, True]
    assert DICE.say([0, 0]) is None and DICE.say([4, 0]) == [4]


# --- all of them --------------------------------------------------------------------------------


FIELDS = Fields([SCORES, set_field("open", 5), LEAD])


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ({"scores": None}, "scores is missing; write scores=0,0,0 open=1,2"),
        ({"scores": "0,0,0"}, "open is missing; write scores=0,0,0 open=1,2"),
        ({"scores_1": 0, "scores_3": 0}, "scores_2 is missing; write scores=0,0,0"),
        ({"scores": "0,0,0", "scores_2": 250, "open": "1"},
         "scores is said twice, by scores_2 too; write one of them"),
    ],
)  # fmt: skip
def test_a_field_that_must_be_said_or_that_is_none_is_named(words, sentence):
    with pytest.raises(StateError) as caught:
        FIELDS.read(words)
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("cells", "sentence"),
    [
        ({"scores": ["0,0,0"] * 2, "open": ["1", "6"]}, "row 2: open: 6 is not a number from"),
        ({"scores": ["0,x,0"] * 2, "open": [1, 1]}, "row 1: scores: 'x' is not a whole number"),
        ({"scores": ["0,0,0"] * 2, "open": [1, 1], "lead": [1, True]}, "row 2: lead: 'True' is"),
        ({"scores": ["0,0,0"] * 2, "open": [1, 1], "lead": np.array([0, 2**64 - 1], np.uint64)},
         "row 2: lead: '18446744073709551615' is not a whole number"),
        ({"scores": ["0,0,0"] * 2}, "column open is missing"),
        ({"scores": ["0,0,0", None], "scores_2": [None, 0], "open": [1, 1]}, "scores is said tw"),
    ],
)  # fmt: skip
def test_a_frame_that_is_wrong_is_refused_with_row_and_field(cells, sentence):
    with pytest.raises(StateError) as caught:
        FIELDS.read_columns(cells, 2)
    assert str(caught.value).startswith(sentence)


def test_what_is_left_out_is_what_it_is_read_as():
    fields = Fields([SCORES, Field("earned", 2, high=9), Field("player", low=1, high=2, default=1),
                     Field("upcard", high=5, default=0, blank=0)])  # fmt: skip
    assert fields.left_out({"scores": "0,0,0"}) == {"earned": [0, 0], "player": 1}
    assert fields.left_out({"scores": "0,0,0", "earned": ""}) == {"earned": [0, 0], "player": 1}
    assert Fields([set_field("boxes", 5, 3)]).left_out({"boxes": ""}) == {}  # the set of none
    assert fields.left_out({"earned_1": 0, "earned_2": 3, "player": None}) == {"player": 1}
    assert fields.left_out({"earned": "1,0", "player": 2}) == {}
    said = {"scores": (0, 0, 0)}
    assert (fields.read(said) == fields.read(said | fields.left_out(said))).all()
