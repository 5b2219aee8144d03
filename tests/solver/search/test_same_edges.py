"""States of a run whose edges the game says to be the same: the bits of the search in one piece."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from luckbase.game import (
    SAME_EDGES_TYPE,
    Board,
    Field,
    Game,
    Level,
    Rules,
    SearchHints,
    chance,
    check_game,
    decision,
    lead,
    over,
    transition,
)
from luckbase.solver.compiled import njit
from luckbase.solver.errors import GameError
from luckbase.solver.search import find_stages
from luckbase.solver.search.find_stages import BoxSearch, RisingError
from luckbase.solver.search.game_graph import Graph
from luckbase.solver.search.stage_kernels import Records
from luckbase.solver.search.stages import Stages
from tests.solver.search.test_find_stages import (
    found_from,
    keys_of,
    same_as,
    solved_from,
)

HIGH, LANES, LEFT = 200, 40, 2
CUTS, FROM = 2, 4
"""Where the numbers of a board have where the edges change, twice, and from where on the edges:
three of each of the three parts, (whether x moves along, by or to what, whether a turn ends)."""


@transition
def slope(board, state, edges):  # type: ignore
    ints, (left, x) = board.ints, (state[0], state[2])
    ints[-1] += 1  # counted
    if left == 0:
        return over(edges, (x * 37 + state[1]) % 101 / 128)
    part = FROM + 9 * ((x >= ints[CUTS]) + (x >= ints[CUTS + 1]))
    for k in range(3):
        along, number, ends = ints[part + 3 * k], ints[part + 3 * k + 1], ints[part + 3 * k + 2]
        after = x + number if along else number
        child = lead(edges, state, k if ints[1] else 0, 1.0 if ints[1] else (k + 1) / 6)
        child[2] = min(max(after, 0), HIGH)
        if ends or child[2] == x:
            child[0] -= 1
    return decision(edges, 0) if ints[1] else chance(edges)


@njit(SAME_EDGES_TYPE)
def same_edges(board, state, i):  # type: ignore
    ints, x = board.ints, state[2]
    if i != 2:
        return 0
    room = HIGH - x
    for cut in (ints[CUTS], ints[CUTS + 1]):
        if x < cut:
            room = min(room, cut - 1 - x)
    part = FROM + 9 * ((x >= ints[CUTS]) + (x >= ints[CUTS + 1]))
    for k in range(3):
        along, number = ints[part + 3 * k], ints[part + 3 * k + 1]
        if along == 0 and number >= x:  # at which x a turn ends besides
            return 0
        if along and (number == 0 or x + number < 0):
            return 0
        if along:
            room = min(room, HIGH - number - x)
    return max(room, 0)


@dataclass(frozen=True)
class Slope:
    """A game of this sort: x goes up, or down, in a turn."""

    up: bool
    numbers: tuple[int, ...]

    def game(self, says: Any = same_edges) -> Game:
        rules = Rules(
            fields=[Field("left", high=LEFT), Field("lane", high=LANES - 1), Field("x", high=HIGH)],
            players=1,
            transition=slope,
            numbers=(int(self.up), *self.numbers, 0),
            max_edges=3,
            actions=("a", "b", "c"),
            start={"left": LEFT, "lane": 0, "x": 0 if self.up else HIGH},
            capabilities={SearchHints: SearchHints(self.level, same_edges=says)},
        )
        return Game(Board(game="slope", name="slope"), rules)

    @property
    def level(self) -> Level:
        return Level({"left": 1}, inside=({"x": -1 if self.up else 1},))


@st.composite
def slopes(draw: st.DrawFn) -> Slope:
    up = draw(st.booleans())
    cuts = sorted(draw(st.lists(st.integers(1, HIGH), min_size=2, max_size=2)))
    edges = list[int]()
    for _ in range(9):
        along = draw(st.sampled_from([1, 1, 1, 0]))
        ends = draw(st.booleans()) if along else True
        number = (
            draw(st.integers(1, 70)) * (1 if up else -1) if along else draw(st.integers(0, HIGH))
        )
        if along and ends:
            number = draw(st.integers(-70, 70))
        edges += [along, number, int(ends)]
    return Slope(up, (int(draw(st.booleans())), *cuts, *edges))


def roots(game: Game) -> Any:
    states = [(LEFT, lane, x) for lane in range(LANES) for x in (0, 1, 63, 64, 65, 130, 199, HIGH)]
    return np.array(states)


@settings(max_examples=60, deadline=None)
@given(slopes(), st.sampled_from([300, 2000, find_stages.CACHED]), st.sampled_from([7, 1 << 20]))
def test_the_search_finds_the_same_whether_the_game_says_so_or_not(
    one: Slope, most: int, budget: int
) -> None:
    game = one.game()
    graph = Graph(game)
    graph.solve(roots(game))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(find_stages, "BUDGET", budget)
        found = found_from(
            Stages(game, one.level), np.unique(keys_of(game, roots(game))), most=most
        )
    same_as(graph, solved_from(game, found))
    assert sum(box.edges for boxes in found for box in boxes) == graph.edges


PLAIN = Slope(True, (0, 80, 150, *(1, 5, 0, 1, 33, 1, 0, 3, 1) * 3))


@pytest.mark.parametrize("tight", ["runs", "own", "states", "edges"])
def test_where_there_is_no_room_for_all_of_them_it_grows_first(tight: str) -> None:
    """Behind the array that has little room nothing is written, whatever of it is left."""
    game = PLAIN.game()
    stages, keys = Stages(game, PLAIN.level), np.unique(keys_of(game, roots(game)))
    behind = list[Any]()

    def beside(array: Any, rows: int) -> Any:
        room = np.full((rows + 5000, *array.shape[1:]), 77, array.dtype)
        behind.append(room[rows:])
        return room[:rows]

    def found(room: int) -> BoxSearch:
        search = BoxSearch(stages, LEFT, [stages.runs_of(keys)])
        nodes, records = search._nodes(1 << 12, 1 << 14), search._records(1 << 14, 1 << 16)
        if room and tight == "runs":
            nodes = nodes._replace(slots=nodes.slots[:1024], runs=beside(nodes.runs, room))
        elif room and tight == "own":
            nodes = nodes._replace(own=beside(nodes.own, room))
        elif room and tight == "states":
            rows = beside(records.numbers, room), beside(records.patterns, room)
            records = Records(*rows, records.children)
        elif room:
            records = records._replace(children=beside(records.children, room))
        search.nodes, search.records = nodes, records
        assert search.run() == []
        search.number()
        return search

    whole = found(0)
    assert len(whole.own.all_keys()) > 5000
    for room in range(170, 230) if tight == "runs" else (400, 500, 600):
        small = found(room)
        assert all((rows == 77).all() for rows in behind)
        assert small.own.all_keys().tolist() == whole.own.all_keys().tolist()
        for mine, other in zip(small.requests, whole.requests, strict=True):
            assert mine[0] == other[0]
            assert mine[1].all_keys().tolist() == other[1].all_keys().tolist()
    assert small.stage().states.children.tolist() == whole.stage().states.children.tolist()
    assert behind


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 30), st.integers(1, 30), st.integers(64, 180))
def test_an_edge_that_rises_names_the_state_from_which_it_leads(
    one: int, other: int, middle: int
) -> None:
    """In a box up to `middle`, where x rises and the level says that it does not."""
    climbs = Slope(True, (0, 0, 0, *(1, one, 0, 1, other, 0, 0, 3, 1) * 3))
    game, level = climbs.game(), Level({"left": 1}, inside=({"x": 1},))
    stages = Stages(game, level)
    keys = keys_of(game, np.array([(LEFT, 0, x) for x in range(middle + 1)]))
    search = BoxSearch(stages, LEFT, [stages.runs_of(keys)], stages.around(keys))
    with pytest.raises(RisingError, match="an edge leads from") as said:
        search.run()
    above, below = (int(x) for x in re.findall(r"x=(\d+)", str(said.value)))
    assert above <= middle < above + max(one, other) and below - above in (one, other)


def test_most_states_are_not_expanded_one_by_one() -> None:
    expanded, every = [], np.array([(LEFT, lane, x) for lane in range(LANES) for x in range(201)])
    for says in (same_edges, None):
        game = PLAIN.game(says)
        found = found_from(Stages(game, PLAIN.level), np.unique(keys_of(game, every)))
        expanded.append(int(game.numbers.ints[-1]))
    states = sum(len(box.keys) for boxes in found for box in boxes)
    assert expanded[1] == states > 13_000 and expanded[0] < states / 2


@njit(SAME_EDGES_TYPE)
def _one_more(board, state, i):  # type: ignore
    return same_edges(board, state, i) + 1 if i == 2 else 0


def plain(board, state, i):  # type: ignore
    return 0


@njit(SAME_EDGES_TYPE)
def _beyond(board, state, i):  # type: ignore
    return 1 if i == 0 else 0


def test_a_game_that_says_too_much_is_named_with_the_state() -> None:
    assert check_game(PLAIN.game()) > 100
    with pytest.raises(GameError, match=r"same_edges says \d+ for x, and \d+ more is different"):
        check_game(PLAIN.game(_one_more))
    with pytest.raises(GameError, match=r"left=2 .*: same_edges says 1 for left, .* at most 2"):
        check_game(PLAIN.game(_beyond))
    with pytest.raises(GameError, match=r"write @numba.njit\(SAME_EDGES_TYPE\) above 'def plain'$"):
        check_game(PLAIN.game(plain))


@transition
def _doubled(board, state, edges):  # type: ignore
    if state[0] == 0:
        return over(edges, state[2] / 256)
    for after in (2 * state[2] % 199, 3):
        child = lead(edges, state, 0, 0.5)
        child[0], child[2] = state[0] - 1, after
    return chance(edges)


@njit(SAME_EDGES_TYPE)
def _all(board, state, i):  # type: ignore
    return HIGH - state[2] if i == 2 else 0


@transition
def _uneven(board, state, edges):  # type: ignore
    if state[0] == 0:
        return over(edges, state[2] / 256)
    for after, weight in ((3, 0.25), (4, 0.75)):
        child = lead(edges, state, 0, 1 - weight if state[2] % 2 == 0 else weight)
        child[0], child[2] = state[0] - 1, after
    return chance(edges)


@pytest.mark.parametrize("rules", [_doubled, _uneven])
def test_what_two_states_in_turn_do_not_bear_out_is_not_believed(rules: Any) -> None:
    game = Game(PLAIN.game().board, replace(PLAIN.game(_all).rules, transition=rules))
    graph = Graph(game)
    every = np.array([(LEFT, lane, x) for lane in range(LANES) for x in range(1 + lane % 3, 201)])
    graph.solve(every)
    found = found_from(Stages(game, PLAIN.level), np.unique(keys_of(game, every)))
    same_as(graph, solved_from(game, found))
