"""Jackpot and Shut the Box: published numbers, the reference solver, the rules in words."""

from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from luckbase.solver.game.rules import DECISION
from luckbase.solver.games.jackpot.rules import AGENTS, choices, options_of, positions
from luckbase.solver.policies.evaluate import evaluate_profile
from luckbase.solver.search.bellman import chosen, evaluate
from luckbase.solver.search.expand import expand
from luckbase.solver.search.game_graph import Graph
from tests import solving
from tests.reference import jackpot as reference

BOARDS = Path(__file__).parents[3] / "boards" / "jackpot"
SEED = BOARDS / "seed.toml"
SHUT_THE_BOX = BOARDS / "shut-the-box.toml"
LEAST_SUM = BOARDS / "shut-the-box-sum.toml"
TINY = BOARDS / "tiny.toml"

OPTIMUM = Fraction(14103327415, 176319369216)
State = tuple[int, ...]

VARIANTS = [
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


@cache
def jackpot(path, settings=()):
    return solving.load_game(solving.load_board(path, **dict(settings)))


@cache
def states_of(path, settings=()):
    """Every state, whether a game can come to it or not: before and after each roll."""
    game = jackpot(path, settings)
    before = positions(game)
    after = expand(game, before).children
    later = expand(game, after).children  # of games that offer one die: after the choice
    return np.unique(np.concatenate([before, after, later]), axis=0)


@cache
def solved(path, settings=()):
    """The payoff of every state under the best play, as a search finds it."""
    states = states_of(path, settings)
    graph = Graph(jackpot(path, settings))
    at = graph.solve(states)
    values = graph.values[at, 0]
    return dict(zip(map(tuple, states.tolist()), values.tolist(), strict=True))


def value_of(agent, path=SEED, settings=()):
    """What an agent gets on average."""
    game = jackpot(path, settings)
    return float(evaluate_profile(game, game.start(), [agent]).value[0])


def regrets_of(name):
    """What an agent's flip loses on the board of nine tiles, if the best play follows it: the
    states in which it loses something."""
    game, values, lost = jackpot(SEED), solved(SEED), dict[State, float]()
    states = states_of(SEED)
    edges = expand(game, states)
    children = list(map(tuple, edges.children.tolist()))
    for x in np.flatnonzero(edges.kinds == DECISION):
        own = range(edges.first[x], edges.first[x + 1])
        listed = choices(game, states[x])
        flip = listed[AGENTS[name](game, 0, states[x], listed)]
        q = {int(edges.actions[k]): values[children[k]] for k in own}
        if max(q.values()) - q[flip] > game.tie_tolerance:
            lost[tuple(states[x].tolist())] = max(q.values()) - q[flip]
    return lost


@cache
def slow(path, settings=()):
    rules = options_of(jackpot(path, settings))
    return reference.Reference(
        rules.tiles, rules.dice, rules.sides, rules.allowed, rules.one_die, rules.objective
    )


def tiles(open_tiles):
    """Bits -> the set that the reference uses."""
    return frozenset(t + 1 for t in range(open_tiles.bit_length()) if open_tiles >> t & 1)


def before_rolls(path, settings=()):
    """(state, open tiles) of the states before the roll."""
    for state in positions(jackpot(path, settings)).tolist():
        yield tuple(state), tiles(state[0])


def said(game, **words):
    """The names of the choices, as an agent sees them."""
    return [game.action_name(action) for action in choices(game, game.parse(words))]


# Published numbers


def test_the_best_play_wins_its_known_fraction():
    start = tuple(jackpot(SEED).start().tolist())
    assert slow(SEED).value[tiles(start[0])] == OPTIMUM
    assert solved(SEED)[start] == pytest.approx(float(OPTIMUM), abs=1e-15)


@pytest.mark.parametrize(
    ("path", "value"), [(SHUT_THE_BOX, 0.071431622306), (LEAST_SUM, -11.157508444203)]
)
def test_shut_the_box(path, value):
    """docs/numbers.md#numbers-of-this-project."""
    start = tuple(jackpot(path).start().tolist())
    assert solved(path)[start] == pytest.approx(value, abs=1e-12)


def test_hilo_errs_in_67_positions():
    """A position is a set of open tiles, 512 in all; hilo errs in it if
    for at least one roll his tile loses against the best. In rolls: 218 of 36 each, 120 where the
    order of the dice does not matter."""
    regrets = regrets_of("hilo")
    assert len({state[0] for state in regrets}) == 67
    assert len(regrets) == 218
    assert len({(open_tiles, *sorted(dice)) for open_tiles, *dice in regrets}) == 120


def test_hilo_and_hilo2_flip_the_same_tile_everywhere():
    game, query = jackpot(SEED), 0
    for state in states_of(SEED):
        listed = choices(game, state)
        if len(listed) > 1:
            first, second = (AGENTS[name](game, 0, state, listed) for name in ("hilo", "hilo2"))
            assert listed[first] == listed[second]
            query += 1
    assert query > 8000


def test_the_tiny_board_by_hand():
    """All four tiles down, a die of 4, as sets of open tiles (V of one tile is 1/4, of none 1):

    V(12) = V(2)/4 + V(1)/4 + 1/4 = 3/8; V(13) = (V(3) + V(1) + 1)/4 = 3/8, the 1 for a 4;
    V(23) = (V(3) + V(2))/4 = 1/8; V(14) = V(24) = V(34) = 1/8;
    V(123): 1 → 23, 2 → 13, 3 → 12 or 3, 4 → 2: (1/8 + 3/8 + 3/8 + 1/4)/4 = 9/32;
    V(124): 1 → 24, 2 → 14, 3 → 4, 4 → 12: (1/8 + 1/8 + 1/4 + 3/8)/4 = 7/32;
    V(134): 1 → 34, 3 → 14, 4 → 13 or 4: (1/8 + 1/8 + 3/8)/4 = 5/32;
    V(234): 2 → 34, 3 → 24, 4 → 23: 3/32;
    V(1234): 1 → 234, 2 → 134, 3 → 124 or 34, 4 → 123 or 24: (3 + 5 + 7 + 9)/32/4 = 3/16.
    """
    start = tuple(jackpot(TINY).start().tolist())
    assert slow(TINY).value[tiles(start[0])] == Fraction(3, 16)
    assert solved(TINY)[start] == pytest.approx(3 / 16, abs=1e-15)


# Against the reference


@pytest.mark.parametrize(("path", "settings"), VARIANTS, ids=NAMES)
def test_every_position_has_the_reference_value(path, settings):
    value, result = slow(path, settings).value, solved(path, settings)
    here = list(before_rolls(path, settings))
    assert len(here) == len(value)
    for state, open_tiles in here:
        assert result[state] == pytest.approx(float(value[open_tiles]), abs=1e-12), open_tiles


@pytest.mark.parametrize("name", AGENTS)
def test_an_agent_wins_as_often_as_in_the_reference(name):
    """The reference gives agents the same list, doubles twice."""
    expected = slow(SEED).reach(reference.AGENTS[name])[frozenset()]
    assert value_of(name) == pytest.approx(float(expected), abs=1e-15)


def test_with_three_dice_an_agent_still_sees_the_whole_list():
    """1,2,1 with tile 4 flipped: last is 1, the third die, and not 2."""
    three = (("tiles", 7), ("dice", 3), ("sides", 4))
    game, rules = jackpot(SEED, three), slow(SEED, three)
    assert said(game, open="1,2,3", dice="1,2,1") == ["flip 1", "flip 2", "flip 1"]
    for name in AGENTS.keys() - {"hilo", "hilo2"}:
        reached = rules.reach(reference.AGENTS[name])
        expected = float(reached[frozenset()])
        assert value_of(name, SEED, three) == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize(
    ("name", "one_die"), [*((name, "may") for name in AGENTS), ("hilo", "never"), ("hilo", "must")]
)
def test_the_agents_play_shut_the_box_too_and_none_beats_the_best(name, one_die):
    settings = (("one_die", one_die),)
    best = solved(SHUT_THE_BOX, settings)[tuple(jackpot(SHUT_THE_BOX, settings).start().tolist())]
    assert 0 < value_of(name, SHUT_THE_BOX, settings) < best


# The rules as the engines see them


@pytest.mark.parametrize("path", [SEED, LEAST_SUM], ids=lambda path: path.stem)
def test_the_tie_tolerance_calls_ties_as_exact_fractions_do(path):
    """Noise is below it and every real gap above: each state's best action is the exact one."""
    game, result, right = jackpot(path), solved(path), slow(path).value
    edges = expand(game, states_of(path))
    q = evaluate(edges, np.array([[result[tuple(c)]] for c in edges.children.tolist()]))
    taken = chosen(q, edges.actors, game.tie_tolerance) - q.first[:-1]
    for x in np.flatnonzero(edges.kinds == DECISION).tolist():
        children = edges.children[edges.first[x] : edges.first[x + 1]]
        exact = [right[tiles(child[0])] for child in children.tolist()]
        assert taken[x] == exact.index(max(exact))


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
def test_the_list_of_a_roll_is_first_die_second_die_sum(words, names):
    """Ordered, filtered to the tiles still down, doubles twice."""
    assert said(jackpot(SEED), **words) == names


def test_the_actions_are_the_list_with_each_tile_once():
    game = jackpot(SEED)
    state = game.parse({"open": "1,2,3,4,5,6,7,8,9", "dice": "2,2"})
    edges = expand(game, state.reshape(1, -1))
    assert [game.action_name(a) for a in edges.actions.tolist()] == ["flip 2", "flip 4"]
    assert [game.describe(child)["open"] for child in edges.children] == [
        [1, 3, 4, 5, 6, 7, 8, 9],
        [1, 2, 3, 5, 6, 7, 8, 9],
    ]


def test_shut_the_box_lists_sets_of_tiles_the_highest_tile_first():
    game = jackpot(SHUT_THE_BOX)
    assert said(game, open="1,2,3,4,5,6,7,8,9", dice="3,4") == [
        "flip 7", "flip 1+6", "flip 2+5", "flip 3+4", "flip 1+2+4",
    ]  # fmt: skip


# States in words


@st.composite
def written(draw):
    """A variant and a state of it as a person may write it."""
    game = jackpot(*draw(st.sampled_from(VARIANTS)))
    rules = options_of(game)
    numbers = st.integers(1, rules.tiles)
    open_tiles = draw(st.lists(numbers, unique=True, max_size=rules.tiles))
    words = {"open": ",".join(map(str, open_tiles))}
    first = rules.one_die != "never" and all(tile <= rules.sides for tile in open_tiles)
    counts = [1] * first + [rules.dice] * (rules.one_die != "must" or not first)
    before = draw(st.booleans())
    if open_tiles and not before:
        count = draw(st.sampled_from(counts))
        faces = draw(st.lists(st.integers(1, rules.sides), min_size=count, max_size=count))
        words["dice"] = ",".join(map(str, faces))
    return game, words


@given(written())
def test_parse_and_describe_are_inverse_up_to_merging(case):
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
def test_shut_the_box_shows_one_roll_for_all_of_the_same_sum(one_die, dice, shown):
    game = jackpot(SHUT_THE_BOX, (("one_die", one_die),))
    assert game.describe(game.parse({"open": "1,2,3", "dice": dice}))["dice"] == shown
