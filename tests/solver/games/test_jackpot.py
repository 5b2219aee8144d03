"""Jackpot and Shut the Box: published numbers, the reference solver, the rules in words."""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from luckbase import solver
from luckbase.solver.errors import BoardError, OptionError, StateError
from luckbase.solver.game.game import Game
from luckbase.solver.game.rules import CHANCE, DECISION, TERMINAL
from luckbase.solver.games.jackpot.agents import AGENTS, Exact, Play, State
from luckbase.solver.games.jackpot.game import choices, options_of
from luckbase.solver.search.bellman import choose, evaluate
from luckbase.solver.search.expand import expand
from luckbase.solver.search.keys import fits
from tests.reference import jackpot as reference
from tests.solver.board.board_files import assert_one_sentence
from tests.solver.search.solved import solve_graph

BOARDS = Path(__file__).parents[3] / "boards" / "jackpot"
SEED = BOARDS / "seed.toml"
SHUT_THE_BOX = BOARDS / "shut-the-box.toml"
LEAST_SUM = BOARDS / "shut-the-box-sum.toml"
TINY = BOARDS / "tiny.toml"

OPTIMUM = Fraction(14103327415, 176319369216)
UNIT = 36**9

Settings = tuple[tuple[str, object], ...]

VARIANTS: list[tuple[Path, Settings]] = [
    (SEED, ()),
    (SEED, (("objective", "sum"),)),
    (SEED, (("tiles", 6), ("dice", 1))),
    (SEED, (("tiles", 7), ("dice", 3), ("sides", 4))),
    (SEED, (("tiles", 1), ("dice", 1), ("sides", 2))),
    (SHUT_THE_BOX, ()),
    (SHUT_THE_BOX, (("one_die", "may"),)),
    (SHUT_THE_BOX, (("one_die", "must"),)),
    (SHUT_THE_BOX, (("tiles", 5), ("one_die", "may"))),
    (SHUT_THE_BOX, (("tiles", 8), ("dice", 4), ("sides", 3))),
    (LEAST_SUM, ()),
    (LEAST_SUM, (("sides", 4), ("tiles", 8), ("one_die", "may"))),
    (TINY, ()),
    (TINY, (("objective", "sum"),)),
]
NAMES = [
    " ".join([path.stem, *(f"{name}={value}" for name, value in settings)])
    for path, settings in VARIANTS
]
every_variant = pytest.mark.parametrize(("path", "settings"), VARIANTS, ids=NAMES)


@cache
def reach(name: str) -> list[int]:
    """The chance that a game which an agent plays on the board of nine tiles comes to each state,
    in units of 1 / `UNIT`; in the order of `Exact.states`."""
    actions, lotteries = played(name).actions, exact(SEED).lotteries
    reached = [0] * len(actions)
    reached[-1] = UNIT
    for x in range(len(actions) - 1, -1, -1):
        if reached[x] and actions[x] >= 0:
            for ways, child in lotteries[x][actions[x]]:
                share, left = divmod(reached[x] * ways, 36)
                reached[child] += share
                assert not left
    return reached


def regrets_of(exact: Exact, play: Play) -> dict[State, int]:
    """What one action of a play loses, the best play before and after it; only where it does."""
    best = exact.best.values
    lost = {
        x: best[x] - exact.expected(choices[play.actions[x]], best)
        for x, choices in enumerate(exact.lotteries) if len(choices) > 1
    }  # fmt: skip
    return {exact.states[x]: each for x, each in lost.items() if each}


@cache
def jackpot(path: Path, settings: Settings = ()) -> Game:
    return solver.load_game(solver.load_board(path, **dict(settings)))


@cache
def exact(path: Path, settings: Settings = ()) -> Exact:
    return Exact(jackpot(path, settings))


@cache
def played(name: str) -> Play:
    """An agent's play of the board of nine tiles."""
    return exact(SEED).play(AGENTS[name])


@cache
def slow(path: Path, settings: Settings = ()) -> reference.Reference:
    rules = options_of(jackpot(path, settings))
    return reference.Reference(
        rules.tiles, rules.dice, rules.sides, rules.allowed, rules.one_die, rules.objective
    )


def tiles(open_tiles: int) -> frozenset[int]:
    """Bits -> the set that the reference uses."""
    return frozenset(t + 1 for t in range(open_tiles.bit_length()) if open_tiles >> t & 1)


def positions(path: Path, settings: Settings = ()) -> Iterator[tuple[int, frozenset[int]]]:
    """(place, open tiles) of the states before the roll."""
    for x, state in enumerate(exact(path, settings).states):
        if not any(state[1:]):
            yield x, tiles(state[0])


def said(game: Game, **words: str) -> list[str]:
    """The names of the choices, as an agent sees them."""
    return [game.action_name(action) for action in choices(game, game.parse(words))]


# Published numbers


def test_the_best_play_wins_its_known_fraction() -> None:
    assert exact(SEED).best.value == OPTIMUM


@pytest.mark.parametrize(
    ("name", "percent"),
    [
        ("min", 1.3306),
        ("max", 4.7706),
        ("first", 1.3105),
        ("last", 5.2248),
        ("hilo", 7.9855),
        ("hilo2", 7.9855),
    ],
)
def test_an_agent_wins_what_the_seed_calculated(name: str, percent: float) -> None:
    """The list CALCULATED of docs/sources.md#french-2022, to its four decimals."""
    assert round(float(100 * played(name).value), 4) == percent


def test_hilo_errs_in_67_positions() -> None:
    """A position is a set of open tiles, 512 in all; hilo errs in it if
    for at least one roll his tile loses against the best. In rolls: 218 of 36 each, 120 where the
    order of the dice does not matter."""
    regrets = regrets_of(exact(SEED), played("hilo"))
    assert len({state[0] for state in regrets}) == 67
    assert len(regrets) == 218
    assert len({(open_tiles, *sorted(dice)) for open_tiles, *dice in regrets}) == 120
    assert all(lost > 0 for lost in regrets.values())


def test_hilo_and_hilo2_flip_the_same_tile_everywhere() -> None:
    assert played("hilo").actions == played("hilo2").actions


def test_shut_the_box_has_its_known_chance() -> None:
    assert float(exact(SHUT_THE_BOX).best.value) == pytest.approx(0.071431622306, abs=1e-12)


def test_shut_the_box_has_its_least_sum_as_a_negative_payoff() -> None:
    assert float(exact(LEAST_SUM).best.value) == pytest.approx(-11.157508444203, abs=1e-12)


def test_the_tiny_board_by_hand() -> None:
    """All four tiles down, a die of 4, as sets of open tiles (V of one tile is 1/4, of none 1):

    V(12) = V(2)/4 + V(1)/4 + 1/4 = 3/8; V(13) = (V(3) + V(1) + 1)/4 = 3/8, the 1 for a 4;
    V(23) = (V(3) + V(2))/4 = 1/8; V(14) = V(24) = V(34) = 1/8;
    V(123): 1 → 23, 2 → 13, 3 → 12 or 3, 4 → 2: (1/8 + 3/8 + 3/8 + 1/4)/4 = 9/32;
    V(124): 1 → 24, 2 → 14, 3 → 4, 4 → 12: (1/8 + 1/8 + 1/4 + 3/8)/4 = 7/32;
    V(134): 1 → 34, 3 → 14, 4 → 13 or 4: (1/8 + 1/8 + 3/8)/4 = 5/32;
    V(234): 2 → 34, 3 → 24, 4 → 23: 3/32;
    V(1234): 1 → 234, 2 → 134, 3 → 124 or 34, 4 → 123 or 24: (3 + 5 + 7 + 9)/32/4 = 3/16.
    """
    assert exact(TINY).best.value == Fraction(3, 16)


# Against the reference


@every_variant
def test_every_position_has_the_reference_value(path: Path, settings: Settings) -> None:
    value = slow(path, settings).value
    found, unit = exact(path, settings).best.values, exact(path, settings).unit
    here = list(positions(path, settings))
    assert len(here) == len(value)
    for x, open_tiles in here:
        assert found[x] == value[open_tiles] * unit, open_tiles


@pytest.mark.parametrize("path", [SEED, SHUT_THE_BOX], ids=lambda path: path.stem)
def test_every_position_after_every_roll_has_the_reference_value(path: Path) -> None:
    """Shut the Box's merged rolls too: each roll goes through `canonical_states`."""
    game, solved, slowly = jackpot(path), exact(path), slow(path)
    rolls = slowly.rolls(2)
    for _, open_tiles in list(positions(path))[1::7]:
        bits = sum(1 << (tile - 1) for tile in open_tiles)
        states = game.canonical_states(np.array([(bits, *roll) for roll in rolls]))
        for roll, state in zip(rolls, states.tolist(), strict=True):
            after = slowly.after(slowly.value, open_tiles, roll)
            assert solved.best.values[solved.at[tuple(state)]] == after * UNIT


@pytest.mark.parametrize("name", AGENTS)
def test_an_agent_reaches_every_position_as_often_as_in_the_reference(name: str) -> None:
    """The reference gives agents the same list, doubles twice."""
    reached, expected = reach(name), slow(SEED).reach(reference.AGENTS[name])
    assert all(reached[x] == expected[open_tiles] * UNIT for x, open_tiles in positions(SEED))
    assert expected[frozenset()] == played(name).value


def test_with_three_dice_an_agent_still_sees_the_whole_list() -> None:
    """1,2,1 with tile 4 flipped: last is 1, the third die, and not 2."""
    three: Settings = (("tiles", 7), ("dice", 3), ("sides", 4))
    game, rules = jackpot(SEED, three), slow(SEED, three)
    assert said(game, open="1,2,3", dice="1,2,1") == ["flip 1", "flip 2", "flip 1"]
    for name in AGENTS.keys() - {"hilo", "hilo2"}:
        reached = rules.reach(reference.AGENTS[name])
        assert exact(SEED, three).play(AGENTS[name]).value == reached[frozenset()]


def test_a_new_agent_is_one_short_function() -> None:
    always_first = exact(SEED).play(lambda game, player, state, actions: 0)
    assert always_first.value == played("first").value


# Reach and regret


@pytest.mark.parametrize("name", AGENTS)
def test_reach_sums_to_1_with_the_games_lost_before_the_layer(name: str) -> None:
    """Layer k holds the positions with k tiles flipped; who is not in it lost on the way."""
    reached, game = reach(name), exact(SEED)
    lost, layer = [0] * 10, [0] * 10
    for x, (open_tiles, *dice) in enumerate(game.states):
        flipped = 9 - open_tiles.bit_count()
        if not any(dice):
            layer[flipped] += reached[x]
        elif x in game.payoffs:
            lost[flipped] += reached[x]
    assert layer[0] == UNIT
    assert all(layer[k] + sum(lost[:k]) == UNIT for k in range(10))


@pytest.mark.parametrize("name", AGENTS)
def test_regret_times_reach_is_what_an_agent_loses_in_the_game(name: str) -> None:
    solved, reached = exact(SEED), reach(name)
    lost = sum(
        reached[solved.at[state]] * lost for state, lost in regrets_of(solved, played(name)).items()
    )
    assert Fraction(lost, UNIT**2) == OPTIMUM - played(name).value


def test_the_best_play_has_no_regret() -> None:
    assert regrets_of(exact(SEED), exact(SEED).best) == {}


@pytest.mark.parametrize("one_die", ["never", "may", "must"])
@pytest.mark.parametrize("name", AGENTS)
def test_the_agents_play_shut_the_box_too_and_none_beats_the_best(name: str, one_die: str) -> None:
    settings: Settings = (("one_die", one_die),)
    solved = exact(SHUT_THE_BOX, settings)
    assert 0 < solved.play(AGENTS[name]).value < solved.best.value


def test_the_option_to_roll_one_die_is_worth_something_and_the_duty_less() -> None:
    values = {
        rule: exact(SHUT_THE_BOX, (("one_die", rule),)).best.value
        for rule in ("never", "may", "must")
    }
    assert values["never"] < values["must"] < values["may"]


# The rules as the engines see them


@every_variant
def test_a_search_in_floats_finds_the_exact_values(path: Path, settings: Settings) -> None:
    game, solved = jackpot(path, settings), exact(path, settings)
    found = solve_graph(game, game.start().reshape(1, -1))
    assert found.values[0, 0] == pytest.approx(float(solved.best.value), abs=1e-12)


@pytest.mark.parametrize("path", [SEED, LEAST_SUM], ids=lambda path: path.stem)
def test_the_tie_tolerance_calls_ties_as_exact_fractions_do(path: Path) -> None:
    """Noise is below it and every real gap above: each state's best action is the exact one."""
    game, solved = jackpot(path), exact(path)
    deciding = [x for x, choices in enumerate(solved.lotteries) if len(choices) > 1]
    states = np.array([solved.states[x] for x in deciding])
    values = np.array([[value / solved.unit] for value in solved.best.values])
    edges = expand(game, states)
    below = np.array([solved.at[tuple(child)] for child in edges.children.tolist()])
    q = evaluate(edges, values[below])
    for k, x in enumerate(deciding):
        here = slice(int(q.first[k]), int(q.first[k + 1]))
        best = choose(q.values[here], 0, game.tie_tolerance)
        assert q.actions[here][best] == solved.best.actions[x], game.describe(states[k])


@every_variant
def test_every_state_keeps_the_contract(path: Path, settings: Settings) -> None:
    """Chances of an action sum to 1, its edges stand together, children are canonical and fit in
    their bits, an action has a name, at most `max_edges` edges."""
    game = jackpot(path, settings)
    states = np.array(exact(path, settings).states)
    edges = expand(game, states)
    assert np.array_equal(game.canonical_states(edges.children), edges.children)
    assert fits(game.strides, edges.children).all() and game.strides[1].sum() <= 64
    assert np.diff(edges.first).max() <= game.max_edges
    q = evaluate(edges, np.ones((len(edges.children), 1)))
    assert q.values[~edges.terminal[q.states]] == pytest.approx(1.0, abs=1e-12)
    pairs = list(zip(q.states.tolist(), q.actions.tolist(), strict=True))
    assert len(set(pairs)) == len(pairs)
    assert (edges.kinds == DECISION).sum() == (np.bincount(q.states) > 1).sum()
    assert set(edges.kinds) <= {TERMINAL, CHANCE, DECISION}
    for action in {action for _, action in pairs if action >= 0}:
        assert game.action_name(action).split()[0] in ("flip", "roll")


def test_the_seed_has_512_positions_in_ten_layers_and_36_edges_to_roll() -> None:
    game = jackpot(SEED)
    layers = [len(open_tiles) for _, open_tiles in positions(SEED)]
    assert np.bincount(layers).tolist() == [1, 9, 36, 84, 126, 126, 84, 36, 9, 1]
    edges = expand(game, game.start().reshape(1, -1))
    assert len(edges.children) == 36 == game.max_edges
    assert len(np.unique(edges.children, axis=0)) == 36  # ordered: none merged


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ({"open": "1,2,3,4,5,6,7,8,9", "dice": "3,4"}, ["flip 3", "flip 4", "flip 7"]),
        ({"open": "1,2,3,4,5,6,7,8,9", "dice": "4,3"}, ["flip 4", "flip 3", "flip 7"]),
        ({"open": "1,2,4,7", "dice": "3,4"}, ["flip 4", "flip 7"]),
        ({"open": "1,2,3,4,5,6,7,8,9", "dice": "2,2"}, ["flip 2", "flip 2", "flip 4"]),
        ({"open": "6", "dice": "6,6"}, ["flip 6", "flip 6"]),
        ({"open": "1,2,3", "dice": "5,6"}, []),
        ({"open": "1,2,3"}, ["roll 2 dice"]),
        ({"open": ""}, []),
    ],
)
def test_the_list_of_a_roll_is_first_die_second_die_sum(
    words: dict[str, str], names: list[str]
) -> None:
    """Ordered, filtered to the tiles still down, doubles twice."""
    assert said(jackpot(SEED), **words) == names


def test_the_actions_are_the_list_with_each_tile_once() -> None:
    game = jackpot(SEED)
    state = game.parse({"open": "1,2,3,4,5,6,7,8,9", "dice": "2,2"})
    edges = expand(game, state.reshape(1, -1))
    assert [game.action_name(a) for a in edges.actions.tolist()] == ["flip 2", "flip 4"]
    assert [game.describe(child)["open"] for child in edges.children] == [
        [1, 3, 4, 5, 6, 7, 8, 9],
        [1, 2, 3, 5, 6, 7, 8, 9],
    ]


def test_shut_the_box_lists_sets_of_tiles_the_highest_tile_first() -> None:
    game = jackpot(SHUT_THE_BOX)
    assert said(game, open="1,2,3,4,5,6,7,8,9", dice="3,4") == [
        "flip 7", "flip 1+6", "flip 2+5", "flip 3+4", "flip 1+2+4",
    ]  # fmt: skip


def test_one_die_is_a_choice_a_duty_or_neither() -> None:
    low, high = "1,2,6", "1,2,7"
    both = ["roll 2 dice", "roll 1 die"]
    for rule, here in (("never", both[:1]), ("may", both), ("must", both[1:])):
        game = jackpot(SHUT_THE_BOX, (("one_die", rule),))
        assert said(game, open=low) == here
        assert said(game, open=high) == both[:1]


def test_a_lost_game_pays_minus_the_tiles_left_and_a_won_one_nothing() -> None:
    game = jackpot(LEAST_SUM)
    states = np.array([game.parse({"open": "1,2,9", "dice": "6,5"}), game.parse({"open": ""})])
    edges = expand(game, states[:1])
    assert not edges.terminal[0]  # 9 and 2 make 11
    lost = game.parse({"open": "1,2,9", "dice": "4,4"})
    assert expand(game, np.array([lost, states[1]])).rewards[:, 0].tolist() == [-12.0, 0.0]


# States in words


@st.composite
def written(draw: st.DrawFn) -> tuple[Game, dict[str, str]]:
    """A variant and a state of it as a person may write it."""
    game = jackpot(*draw(st.sampled_from(VARIANTS)))
    rules = options_of(game)
    numbers = st.integers(1, rules.tiles)
    open_tiles = draw(st.lists(numbers, unique=True, max_size=rules.tiles))
    words = {"open": ",".join(map(str, open_tiles))}
    one = rules.one_die != "never" and all(tile <= rules.sides for tile in open_tiles)
    counts = [1] * one + [rules.dice] * (rules.one_die != "must" or not one)
    before = draw(st.booleans())
    if open_tiles and not before:
        count = draw(st.sampled_from(counts))
        faces = draw(st.lists(st.integers(1, rules.sides), min_size=count, max_size=count))
        words["dice"] = ",".join(map(str, faces))
    return game, words


@given(written())
def test_parse_and_describe_are_inverse_up_to_merging(case: tuple[Game, dict[str, str]]) -> None:
    game, words = case
    state = game.parse(words)
    described = game.describe(state)
    assert np.array_equal(game.parse(described), state)
    shown = described.get("dice", [])
    assert described["open"] == sorted(map(int, filter(None, words["open"].split(","))))
    faces = [int(face) for face in words.get("dice", "").split(",") if face]
    assert sum(shown) == sum(faces)
    if options_of(game).allowed == "jackpot":
        assert shown == faces


@pytest.mark.parametrize(
    ("one_die", "dice", "shown"),
    [
        ("never", "2,5", [3, 4]),
        ("never", "1,1", [1, 1]),
        ("never", "6,4", [5, 5]),
        ("may", "1,3", [4]),
        ("may", "4", [4]),
        ("may", "6,1", [3, 4]),
        ("must", "3", [3]),
    ],
)
def test_shut_the_box_shows_one_roll_for_all_of_the_same_sum(
    one_die: str, dice: str, shown: list[int]
) -> None:
    game = jackpot(SHUT_THE_BOX, (("one_die", one_die),))
    assert game.describe(game.parse({"open": "1,2,3", "dice": dice}))["dice"] == shown


def test_a_state_before_the_roll_has_no_dice() -> None:
    game = jackpot(SEED)
    assert game.describe(game.start()) == {"open": [1, 2, 3, 4, 5, 6, 7, 8, 9]}
    assert game.columns == ("open", "dice_1", "dice_2")
    assert game.start().tolist() == [511, 0, 0]


def test_the_fields_have_as_many_dice_as_the_board() -> None:
    assert jackpot(TINY).columns == ("open", "dice")
    assert jackpot(SEED, (("dice", 3), ("sides", 4))).columns[1:] == ("dice_1", "dice_2", "dice_3")


def test_a_game_can_be_sent_to_another_process() -> None:
    for path in (SEED, TINY):
        game = pickle.loads(pickle.dumps(jackpot(path)))
        assert list(game.fields) == list(jackpot(path).fields)
        assert np.array_equal(game.start(), jackpot(path).start())


# Refusals


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ({"open": "0,1"}, "open: 0 is not a number from 1 to 9"),
        ({"open": "1,10"}, "open: 10 is not a number from 1 to 9"),
        ({"open": "-1"}, "open: -1 is not a number from 1 to 9"),
        ({"open": "1,2,1"}, "open: 1 is there twice"),
        ({"open": "1,x"}, "open: 'x' is not a whole number"),
        ({"open": "1,,2"}, "open: '' is not a whole number"),
        ({"dice": "1,2"}, "open is missing; write open=1,2"),
        ({"open": "1", "die": "1,2"}, "unknown field 'die'; did you mean 'dice'?"),
        ({"open": "1", "dice": "3"}, "dice: 1 die given; expected 2 dice"),
        ({"open": "1", "dice": "1,2,3"}, "dice: '1,2,3' has 3 values, not 2; write dice=1,1"),
        ({"open": "1", "dice": "3,7"}, "dice: 7 is too large; expected at most 6"),
        ({"open": "1", "dice": "-1,3"}, "dice: -1 is too small; expected at least 1"),
        ({"open": "1", "dice": "0,3"}, "dice: a 0 stands before a face; write the faces first"),
        ({"open": "", "dice": "1,2"}, "dice: no tile is open and the game is over; leave dice out"),
    ],
)
def test_a_state_that_is_none_is_refused_in_a_sentence(
    words: dict[str, str], sentence: str
) -> None:
    with pytest.raises(StateError) as caught:
        jackpot(SEED).parse(words)
    assert_one_sentence(caught.value)
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("rule", "open_tiles", "dice", "sentence"),
    [
        ("never", "1,2", "3", "dice: 1 die given; expected 2 dice"),
        ("may", "1,2,8", "3", "no tile above 6 is open, and 8 is; write 2 faces"),
        ("must", "1,7,8", "3", "no tile above 6 is open, and 8 is; write 2 faces"),
        ("must", "1,2", "3,4", "no tile above 6 is open, so one die is rolled; write one face"),
    ],
)
def test_one_die_where_it_is_not_rolled_is_refused_in_a_sentence(
    rule: str, open_tiles: str, dice: str, sentence: str
) -> None:
    with pytest.raises(StateError) as caught:
        jackpot(SHUT_THE_BOX, (("one_die", rule),)).parse({"open": open_tiles, "dice": dice})
    assert_one_sentence(caught.value)
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ([[511, 0, 0], [512, 0, 0]], "row 2: open: 512 is not a set of numbers from 1 to 9"),
        ([[-1, 0, 0]], "open: -1 is not a set of numbers from 1 to 9"),
        ([[511, 1, 2], [511, 0, 3]], "row 2: dice: a 0 stands before a face"),
        ([[511, 1, 2], [511, 3, 0]], "row 2: dice: 1 die given"),
        ([[511, 1, -2], [511, 3, 0]], "row 1: dice: -2 is too small; expected at least 1"),
        ([[0, 1, 2]], "dice: no tile is open and the game is over"),
    ],
)
def test_columns_that_are_no_state_are_refused_with_their_row(
    columns: list[list[int]], sentence: str
) -> None:
    with pytest.raises(StateError) as caught:
        jackpot(SEED).canonical_states(np.array(columns))
    assert_one_sentence(caught.value)
    assert str(caught.value).startswith(sentence)


@pytest.mark.parametrize(
    ("rules", "sentence"),
    [
        ("tiles = 17", "tiles: 17 is too large; expected at most 16"),
        ("tiles = 0", "tiles: 0 is too small; expected at least 1"),
        ("tiles = 13", "tiles: no roll can flip tile 13, so no game can be won"),
        ("tiles = 3\ndice = 4\nsides = 2", "tiles: no roll can flip tile 3"),
        ("tiles = 7\ndice = 1", "tiles: no roll can flip tile 7"),
        ('tiles = 1\nallowed = "sum"', "tiles: no roll can flip tile 1"),
        ("dice = 5", "dice: 5 is too large; expected at most 4"),
        ("dice = 4\nsides = 7", "dice: 4 dice of 7 sides roll in 2401 ways; expected at most 1296"),
        ("tiles = 16\nsides = 20", "tiles: 16 tiles and 400 rolls make 26214400 positions"),
        ('one_die = "may"', "one_die: 'may' is for boards with dice = 2 and allowed = 'sum'"),
        ('allowed = "sum"\ndice = 1\none_die = "must"', "one_die: 'must' is for boards with"),
        ('allowed = "any"', "allowed: 'any' is not allowed; expected 'jackpot' or 'sum'"),
        ("die = 2", "rules: unknown key 'die'; did you mean 'dice'"),
    ],
)
def test_a_board_that_can_not_be_played_is_refused_in_a_sentence(rules: str, sentence: str) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "x.toml"
        path.write_text(f'game = "jackpot"\n[rules]\n{rules}\n', encoding="utf-8")
        with pytest.raises(BoardError) as caught:
            solver.load_board(path)
    assert_one_sentence(caught.value)
    assert sentence in str(caught.value)


def test_exact_fractions_are_refused_where_they_would_take_all_day() -> None:
    with pytest.raises(OptionError) as caught:
        Exact(jackpot(SEED, (("tiles", 12), ("sides", 10))))
    assert_one_sentence(caught.value)
    assert "at most 200000 positions and this board has 409600" in str(caught.value)
