"""Games with cycles by the search, through its own components: the published fractions on
small goals, with a gap that is stored, and the same bits whatever is asked."""

import hashlib
from fractions import Fraction

import numpy as np
import pytest

from luckbase.cluster.answers.part_kinds import KeyPart
from luckbase.cluster.answers.verify import check_files, check_residuals
from luckbase.solver.game.capabilities import plain, simplify
from luckbase.solver.policies.evaluate import evaluate_profile
from luckbase.solver.search.game_graph import Graph
from tests import solving
from tests.cluster.search.searches import files_of
from tests.games import climb  # noqa: F401  (registers the game)
from tests.places import BOARDS
from tests.solver.search.written_out import decides, over, written


@pytest.mark.parametrize(
    ("board", "goal", "exact"),
    [
        ("skunk/seed", 10, Fraction(46656, 68491)),
        ("skunk/seed", 20, Fraction(20155392, 33433085)),
        ("pig/race", 20, Fraction(15116544, 24557443)),
    ],
)
def test_search_gives_the_fractions_of_small_goals(board, goal, exact, tmp_path):
    """docs/numbers.md#numbers-of-this-project."""
    read = solving.load_board(BOARDS / f"{board}.toml", goal=goal)
    digests = set()
    for workers, one_piece in ((1, 10**6), (2, 0), (3, 10)):
        results = tmp_path / f"{workers}"
        solved = solving.solve_below(read, results=results, workers=workers, one_piece=one_piece)
        (file,) = solved.table.rglob("*.parquet")
        digests.add(hashlib.sha256(file.read_bytes()).hexdigest())
    assert len(digests) == 1
    with solving.open_table(solved.table) as table:
        assert [type(part) for part in table.parts] == [KeyPart]
        start = table.game.start()
        assert start is not None
        value = table.probe(start[None])[0]
        assert abs(value[0] - float(exact)) <= table.error < 1e-10
        assert check_files(table) == []
        assert check_residuals(table, None).worst < 1e-11


def test_bounds_of_a_cycle_enclose_the_kernels_values_at_every_state(tmp_path):
    layout = solving.load_layout(solving.load_board(BOARDS / "skunk/seed.toml", goal=15))
    payoffs = np.empty(layout.shape(0))
    bound = layout.solve_tier(0, payoffs, lambda tier: np.empty(0), lambda: False)
    graph = Graph(layout.game)
    start = layout.game.start()
    assert start is not None
    graph.solve(start[None])
    states = graph.states(np.arange(graph.count))
    numbers, rows = layout.locate(states)
    inner = numbers >= 0
    assert inner.sum() > 1000
    off = np.abs(payoffs[rows[inner]] - graph.values[inner, 0])
    assert (off <= bound + graph.errors[inner]).all()
    assert graph.error < 1e-12


def test_cycles_under_fixed_agents_are_solved_too():
    game = solving.load_game(solving.load_board(BOARDS / "pig/race.toml", goal=20))
    start = game.start()
    assert start is not None
    both = evaluate_profile(game, start, ["hold-at-8", "hold-at-8"]).value
    best = evaluate_profile(game, start, ["best-response", "hold-at-8"]).value
    optimal = evaluate_profile(game, start, ["optimal", "optimal"]).value
    assert both[0] < best[0] and optimal[0] == pytest.approx(15116544 / 24557443, abs=1e-10)
    assert both.sum() == pytest.approx(1, abs=1e-10)


def test_two_who_may_pass_for_ever_and_should_not_are_solved():
    """To roll is better than to pass at once, so the payoff is the one where they must."""
    result = []
    for must in (True, False):
        board = solving.load_board(BOARDS / "skunk/seed.toml", goal=10, must_roll=must)
        graph, start = Graph(solving.load_game(board)), solving.load_game(board).start()
        assert start is not None
        graph.solve(start[None])
        [index] = np.flatnonzero((graph.states(np.arange(graph.count)) == start).all(axis=1))
        result.append(graph.values[index])
    assert result[0] == pytest.approx(result[1], abs=1e-10)


def test_choices_on_a_cycle_of_three_players_are_solved_where_they_settle():
    """Whatever they choose, the play ends, and player 1 has won; of tied actions the earliest."""
    ring = [
        decides(up, [(0.5, 3), (0.5, (up + 1) % 3)], [(0.25, 3), (0.75, (up + 1) % 3)])
        for up in range(3)
    ]
    graph = Graph(written(*ring, over(1.0, 0.0, 0.0), players=3))
    graph.solve(np.array([[0]]))
    assert graph.values[: len(graph.keys)] == pytest.approx(np.tile([1.0, 0.0, 0.0], (4, 1)))
    assert sorted(graph.best[: len(graph.keys)]) == [-1, 0, 0, 0]


def test_a_game_whose_states_all_come_back_is_one_piece_whatever_is_asked_for(tmp_path):
    """It has no level, and nothing of it could be solved before the rest."""
    board = solving.load_board(BOARDS / "skunk/seed.toml", goal=12, count_rolls=True)
    alone = solving.solve_below(board, results=tmp_path / "a", workers=2)
    query = solving.solve_below(board, results=tmp_path / "b", workers=2, one_piece=0)
    for solved in (alone, query):
        assert (solved.shards, solved.levels) == (1, 0)
    assert files_of(alone.table) == files_of(query.table)
    uncounted = solving.load_board(BOARDS / "skunk/seed.toml", goal=12)
    kernel = solving.solve_board(uncounted, results=tmp_path / "c")
    with solving.open_table(alone.table) as first, solving.open_table(kernel.table) as second:
        start = first.game.start()
        assert start is not None
        exact = second.probe(simplify(plain(first.game), start[None]))
        assert first.probe(start[None])[0] == pytest.approx(exact[0], abs=1e-10)
