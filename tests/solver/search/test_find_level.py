"""Levels that are looked for: no edge raises them, and where there is none, none is said."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from luckbase import solver
from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.capabilities import Level
from luckbase.solver.game.game import Game
from luckbase.solver.search import explore as module
from luckbase.solver.search.expand import expand
from luckbase.solver.search.explore import BANDS, INNER, descents, explore, features, find_level
from luckbase.solver.search.keys import Words, pack_all, unpack_all, words
from tests.games import climb
from tests.solver.search.moves import moves_of
from tests.solver.search.three_in_a_ring import ring
from tests.solver.search.written_out import decides, over, written

BOARDS = Path(__file__).parents[3] / "boards"


def load(path: str, **options: object) -> Game:
    return solver.load_game(solver.load_board(BOARDS / f"{path}.toml", **options))


def root_of(game: Game, words: dict[str, str]) -> Ints:
    return (game.parse(words) if words else game.needed_start())[None]


def found(game: Game, roots: Ints, seed: int = 0) -> Level:
    level = find_level(game, roots, seed=seed)
    assert level is not None and level.found and level.falls
    return level


def values_of(held: Words, game: Game, states: Ints) -> Ints:
    keys = pack_all(game.strides, np.ascontiguousarray(states))
    return np.asarray(held.values(held.of(keys))[:, 0])


Edges = tuple[Ints, Ints, NDArray[np.bool_]]


def edges_below(game: Game, roots: Ints) -> Edges:
    """Of all edges below the roots the parent, the child, and whether the child is not over."""
    levels = explore(game, roots)
    inner = levels.keys[levels.kinds == INNER]
    states, parents, children = unpack_all(game.strides, inner), [], []
    for at in range(0, len(states), 4096):
        edges = expand(game, states[at : at + 4096])
        parents.append(np.repeat(states[at : at + 4096], np.diff(edges.first), axis=0))
        children.append(edges.children)
    ends = np.concatenate(children)
    leads_on = np.isin(pack_all(game.strides, np.ascontiguousarray(ends)), inner)
    return np.concatenate(parents), ends, leads_on


def drops(game: Game, edges: Edges, level: Level) -> tuple[Ints, NDArray[np.bool_]]:
    """How far every edge lowers the function, and which lead to states that are not over."""
    held, (parents, children, leads_on) = words(game.fields, [level.falls]), edges
    return values_of(held, game, parents) - values_of(held, game, children), leads_on


LATE = {"scores": "0,3000,0", "earned": "1,1,0", "whammies": "3,3,3"}
TWO_SPINS = {"scores": "0,2000,4000", "earned": "0,2,0"}
GAMES: list[tuple[str, dict[str, object], dict[str, str], float]] = [
    ("press-your-luck/tiny", {}, {"scores": "0,1000,500", "earned": "1,2,1"}, 0.8),
    ("press-your-luck/tiny", {}, LATE, 0.6),
    ("press-your-luck/1985-02", {"score_unit": 1000}, TWO_SPINS, 0.9),
    ("jackpot/tiny", {}, {}, 1.0),
    ("jackpot/shut-the-box-sum", {"one_die": "may"}, {}, 1.0),
    ("goofspiel/tiny", {"keep_cards": True}, {}, 1.0),
    ("goofspiel/win", {"cards": 4}, {}, 1.0),
    ("pig/rounds", {"rounds": 2, "cut": 20, "count_rolls": True}, {}, 1.0),
]  # fmt: skip


@pytest.mark.parametrize(("path", "options", "words", "share"), GAMES)
def test_no_edge_below_a_small_root_raises_it_and_most_lower_it(
    path: str, options: dict[str, object], words: dict[str, str], share: float
) -> None:
    game = load(path, **options)
    root = root_of(game, words)
    falls, leads_on = drops(game, edges_below(game, root), found(game, root))
    assert (falls >= 0).all()
    assert (falls > 0).mean() >= share and (falls[leads_on] > 0).any()


def test_it_does_not_hang_on_the_seed() -> None:
    """Any other test has 0. A spin is worth more than the 6 units of money that it can lose."""
    game = load("press-your-luck/tiny")
    root = root_of(game, {"scores": "0,1000,500", "earned": "1,2,1"})
    scores = {f"scores_{i}": -1 for i in (1, 2, 3)}
    spins = {f"{kind}_{i}": 7 for kind in ("earned", "passed") for i in (1, 2, 3)}
    assert found(game, root, seed=1).falls == {**scores, **spins}


def test_it_stands_a_loss_that_no_sample_of_a_great_game_meets() -> None:
    """A turn of Pig takes as many rolls as one dares: a key has room for 2047 points."""
    game = load("pig/rounds")
    falls = found(game, root_of(game, {})).falls
    assert falls == {"turn": -1, "round": -4096, "player": -2048}


def test_a_game_from_outside_counts_its_turns() -> None:
    game = solver.load_game(climb.Hill(game="climb", name="hill"))
    root = game.needed_start()[None]
    level = found(game, root)
    assert level.falls == {"turns": 1}
    falls, _ = drops(game, edges_below(game, root), level)
    assert (falls == 1).all()


@pytest.mark.parametrize("path", ["skunk/tiny", "skunk/seed", "pig/tiny", "pig/race", "pig/piglet"])
def test_a_race_in_which_all_comes_back_has_none(path: str) -> None:
    game = load(path)
    assert find_level(game, game.needed_start()[None]) is None


def test_three_in_a_ring_have_none() -> None:
    assert find_level(ring(), np.array([[0]])) is None


@settings(max_examples=12)
@given(st.data())
def test_where_every_state_can_come_back_there_is_none(data: st.DataObject) -> None:
    """One circle through all states, in any order, and any edges more."""
    n = data.draw(st.integers(2, 9))
    circle = data.draw(st.permutations(range(n)))
    after = dict(zip(circle, [*circle[1:], circle[0]], strict=True))
    more = st.lists(st.integers(0, n - 1), max_size=2)
    states = [decides(0, *([(1.0, x)] for x in (after[y], *data.draw(more)))) for y in range(n)]
    assert find_level(written(*states), np.array([[0]])) is None


# --- heaps ------------------------------------------------------------------------------------


@st.composite
def falling_moves(draw: st.DrawFn) -> list[list[int]]:
    """Moves of two or three heaps that all lower one linear function."""
    heaps = draw(st.integers(2, 3))
    hidden = draw(st.lists(st.integers(-4, 4), min_size=heaps, max_size=heaps).filter(any))
    move = st.lists(st.integers(-3, 3), min_size=heaps, max_size=heaps)
    falls = move.map(lambda one: [x if _by(hidden, one) < 0 else -x for x in one])
    return draw(st.lists(falls.filter(lambda one: _by(hidden, one) < 0), min_size=1, max_size=5))


def _by(function: list[int], move: list[int]) -> int:
    return sum(x * y for x, y in zip(function, move, strict=True))


@settings(max_examples=6)
@given(falling_moves(), st.integers(0, 3))
def test_a_game_made_of_a_linear_drop_has_one(moves: list[list[int]], seed: int) -> None:
    game, root = moves_of(*moves), np.full((1, len(moves[0])), 8)
    falls, leads_on = drops(game, edges_below(game, root), found(game, root, seed))
    assert (falls >= 0).all() and (falls[leads_on] > 0).any()
    assert (falls > 0).mean() >= 0.5


@settings(max_examples=8)
@given(st.lists(st.tuples(st.integers(-2, 2), st.integers(-2, 2)), min_size=1, max_size=4))
def test_it_is_right_on_any_moves_and_none_only_where_there_is_none(
    moves: list[tuple[int, int]],
) -> None:
    """Held to all functions of small factors, one by one."""
    game, root = moves_of(*moves, high=7), np.array([[3, 4]])
    level, edges = find_level(game, root), edges_below(game, root)
    small = [{"heap_1": a, "heap_2": b} for a in range(-5, 6) for b in range(-5, 6)]
    some = False
    for function in small:
        falls, leads_on = drops(game, edges, Level(function))
        some |= bool((falls >= 0).all() and (falls[leads_on] > 0).any())
    assert some == (level is not None)
    if level is not None:
        falls, leads_on = drops(game, edges, level)
        assert (falls >= 0).all() and (falls[leads_on] > 0).any()


def test_a_move_that_raises_the_function_changes_it_and_two_leave_none() -> None:
    root = np.array([[8, 8]])
    bare = [(-1, 0), (0, -1)]
    assert found(moves_of(*bare), root).falls == {"heap_1": 1, "heap_2": 1}
    assert found(moves_of(*bare, (2, -1)), root).falls == {"heap_1": 1, "heap_2": 3}
    assert found(moves_of(*bare, (-1, 2)), root).falls == {"heap_1": 3, "heap_2": 1}
    assert find_level(moves_of(*bare, (2, -1), (-1, 2)), root) is None


def test_one_edge_in_a_far_corner_is_found() -> None:
    """Of 29,000 edges the only one that raises a function: the last way of 240 steps leads back."""
    steps, root = [(1, 0), (0, 1)], np.array([[0, 0]])
    bare = moves_of(*steps, high=120)
    assert found(bare, root).falls == {"heap_1": -1, "heap_2": -1}
    one_side = moves_of(*steps, high=120, planted=((120, 0), (0, 0)))
    assert found(one_side, root).falls == {"heap_2": -1}
    whole = moves_of(*steps, high=120, planted=((120, 120), (0, 0)))
    assert find_level(whole, root) is None


def test_a_drop_behind_a_great_cycle_is_found() -> None:
    """The first states met say that nothing ever falls: the corner is 120 steps away."""
    around = [(1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0)]
    root = np.array([[0, 0, 3]])
    game = moves_of(*around, high=60, planted=((60, 60, 3), (60, 60, 2)))
    assert found(game, root).falls == {"heap_3": 1}
    assert find_level(moves_of(*around, high=60), root) is None


def test_what_only_tells_finished_states_apart_is_none() -> None:
    """It would leave one stage."""
    game = written(decides(0, [(1.0, 1)], [(1.0, 2)]), over(1, 0), over(0, 1))
    assert find_level(game, np.array([[0]])) is None
    assert find_level(game, np.array([[1]])) is None


@pytest.mark.parametrize("bits", [(34, 30), (40, 24)])
def test_a_function_too_large_for_a_word_gives_way_to_one_that_fits(bits: tuple[int, int]) -> None:
    """Heap 2 might fall by all that its field holds where heap 1 falls by 1, and so heap 1 would
    have to weigh as much."""
    game = moves_of((0, 1), high=12, bits=bits, planted=((9, 4), (8, 0)))
    level = found(game, np.array([[9, 0]]))
    assert level.falls == {"heap_1": 5, "heap_2": -1}
    words(game.fields, [level.falls])


def test_a_function_that_fits_stands_all_that_a_field_holds() -> None:
    game = moves_of((0, 1), high=12, bits=(20, 24), planted=((9, 4), (8, 0)))
    level = found(game, np.array([[9, 0]]))
    assert level.falls == {"heap_1": 1 << 24, "heap_2": -1}


def test_a_field_as_wide_as_a_key_is_no_trouble() -> None:
    for bits in (60, 64):
        level = found(moves_of((-1,), high=12, bits=(bits,), planted=((9,), (0,))), np.array([[9]]))
        assert level.falls == {"heap_1": 1}


def test_edges_that_change_nothing_are_no_matter() -> None:
    level = found(moves_of((0, 0), (-1, 0)), np.array([[8, 8]]))
    assert level == Level({"heap_1": 1}, found=True)


def test_the_same_seed_meets_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    met = list[bytes]()

    def noted(*given: Any) -> Iterator[tuple[Ints, Ints]]:
        for states, changes in descents(*given):
            met.append(states.tobytes())
            yield states, changes

    def of(seed: int) -> tuple[Level | None, list[bytes]]:
        met.clear()
        level = find_level(moves_of((1, 0), (0, 1), high=120), np.array([[0, 0]]), seed=seed)
        return level, [*met]

    monkeypatch.setattr(module, "ROUNDS", 1)
    monkeypatch.setattr(module, "descents", noted)
    once = of(5)
    assert once == of(5) and once[1] != of(6)[1]


def test_many_roots_are_looked_below() -> None:
    game, roots = moves_of((-1, 0), (0, -1)), np.array([[3, 0], [0, 9], [2, 2]])
    falls, _ = drops(game, edges_below(game, roots), found(game, roots))
    assert (falls == 1).all()


@pytest.mark.parametrize("high", [51, 52, 500])
def test_the_values_make_so_many_bands_at_most(high: int) -> None:
    """A quarter of the range is kept for what the sample did not meet."""
    game, root = moves_of((-1,), (-2,), high=high), np.array([[high]])
    level = found(game, root)
    assert level.falls == {"heap": 1}
    bands = -(-(high + 1) // level.width)
    assert bands <= BANDS and (level.width == 1 or bands >= BANDS // 4)
    assert (level.width == 1) == (high < 52)


# --- the sample -------------------------------------------------------------------------------


def sampled(game: Game, roots: Ints, function: Ints, steps: int) -> tuple[Ints, Ints]:
    """The states and the changes of so many steps, each once."""
    found = descents(game, roots, function, steps, np.random.default_rng(0))
    states, changes = (np.concatenate(part) for part in zip(*found, strict=True))
    return np.unique(states, axis=0), np.unique(changes, axis=0)


def test_features_are_numbers_and_how_many_a_set_holds() -> None:
    game = load("goofspiel/tiny", keep_cards=True)
    numbers = {name: 0b10101 if one.is_set else i for i, (name, one) in enumerate(
        (name, one) for one in game.fields for name in one.columns
    )}  # fmt: skip
    states = np.array([list(numbers.values())])
    wanted = [3 if one.is_set else i for i, one in enumerate(
        one for one in game.fields for _ in one.columns
    )]  # fmt: skip
    assert features(game, states).tolist() == [wanted] and 3 in wanted
    assert states.tolist() == [list(numbers.values())]


@pytest.mark.parametrize("path", ["jackpot/tiny", "goofspiel/tiny"])
def test_a_small_game_is_known_whole(path: str) -> None:
    game = load(path)
    root = game.needed_start()[None]
    states, changes = sampled(game, root, np.zeros(game.field_count), 200)
    parents, children, _ = edges_below(game, root)
    every = np.unique(features(game, children) - features(game, parents), axis=0)
    assert (np.unique(changes[:, : game.field_count], axis=0) == every).all()
    assert (states == np.unique(parents, axis=0)).all()


def test_what_a_fall_to_nothing_would_have_been_from_the_most() -> None:
    """One edge empties heap 1, one heap 2, and the planted one both of them."""
    game = moves_of((-2, 0, 1), (0, -3, 1), high=9, planted=((2, 3, 5), (0, 0, 5)))
    _, changes = sampled(game, np.array([[2, 3, 5]]), np.zeros(3), 10)
    rows = [[-2, -3, 0, -9, -9, 0], [-2, 0, 1, -9, 0, 1], [0, -3, 1, 0, -9, 1]]
    assert changes.tolist() == rows


def test_descents_push_each_column_and_the_function_where_no_lot_comes() -> None:
    """Of all ways of 200 steps one in 2 ** 200 ends there."""
    game = moves_of((1, 0, 0), (0, 1, 0), (1, 1, -1), high=200)
    states, _ = sampled(game, np.array([[0, 0, 200]]), np.array([1, 1, 0]), 250)
    met = {tuple(state) for state in states.tolist()}
    assert {(199, 0, 200), (0, 199, 200), (199, 199, 1)} <= met
