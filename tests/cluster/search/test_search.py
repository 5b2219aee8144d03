"""The search: the same rows in one piece and by stages, whatever the workers and the stops on the
way; and nothing that was done is done again."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from luckbase.cluster.answers.verify import check_files, check_residuals
from luckbase.cluster.inputs import roots_of
from luckbase.cluster.search import plan
from luckbase.cluster.search.plan import count_below
from luckbase.solver.errors import OptionError, SearchLimitError
from luckbase.solver.search.game_graph import Graph
from tests import solving
from tests.cluster.search.searches import START, TINY, WIDE, by, files_of, rows_of, search, tiny
from tests.places import BOARDS
from tests.shared import answer_by_search, answers_of
from tests.solver.games.press_your_luck import reference_of

FEBRUARY = BOARDS / "press-your-luck/1985-02.toml"


@pytest.fixture(scope="module")
def once(tmp_path_factory):
    return search(tmp_path_factory.mktemp("once"), workers=1)


# --- the same bits ------------------------------------------------------------------------------


def test_one_piece_has_the_same_bytes_for_any_workers(once, tmp_path):
    solved = search(tmp_path, workers=3)
    assert files_of(solved.table) == files_of(once.table)
    assert (solved.table.name, solved.stages, solved.levels) == (once.table.name, 0, 0)
    assert solved.shards == 1


@pytest.mark.parametrize("workers", [2, 5])
def test_stages_have_the_rows_of_one_piece_and_the_same_bytes_for_any_workers(
    whole, staged, small, tmp_path, workers
):
    solved = by(tmp_path, workers=workers)
    assert rows_of(solved.table) == rows_of(whole.table)
    assert files_of(solved.table) == files_of(staged.table)
    assert (solved.states, solved.edges) == (whole.states, whole.edges)
    assert (solved.levels, solved.ray) == (5, False)
    assert solved.shards > 20
    assert len(solved.manifest.files) <= solved.shards
    assert sum(entry.rows for entry in solved.manifest.files.values()) == solved.states
    left = {path.name for path in solved.table.iterdir()}
    own = {"manifest.json", "manifest.json.lock", "log", "shards"}
    assert left <= {solved.goal.part, *own}
    assert not list(solved.table.glob("shards/*"))


def test_shards_are_put_together_and_change_no_row(whole, staged, tmp_path):
    solved = by(tmp_path, workers=2)
    assert rows_of(solved.table) == rows_of(whole.table)
    assert solved.levels == solved.shards < staged.shards
    assert [e.stages for e in solved.manifest.files.values()] != [[]] * len(solved.manifest.files)


def test_several_roots_are_one_table_and_their_order_and_repeats_do_not_matter(small, tmp_path):
    game = tiny()
    words = [
        START,
        {"scores": "500,0,0", "earned": "0,2,0"},
        {"scores": "0,0,0", "passed": "1,0,0"},
    ]
    roots = np.array([game.parse(w) for w in words])
    whole = search(tmp_path / "whole", roots)
    one = by(tmp_path / "a", roots)
    other = by(tmp_path / "b", roots[[2, 0, 1, 1]])
    assert files_of(one.table) == files_of(other.table)
    assert rows_of(one.table) == rows_of(whole.table)
    assert one.goal.roots is not None and len(one.goal.roots.start) == 3
    reference = reference_of(game)
    with solving.open_table(one.table) as table:
        for root in roots:
            scores, earned, passed, whammies = (tuple(map(int, p)) for p in root.reshape(4, 3))
            wanted = reference.value(scores, earned, passed, whammies)
            assert table.probe(root[None])[0] == pytest.approx(wanted, abs=1e-12)


# --- growth ---------------------------------------------------------------------------------------

GROWN = (
    WIDE,
    {"scores": "0,1000,500", "earned": "1,1,1", "whammies": "3,3,3"},
    {"scores": "0,500,500", "earned": "0,1,1", "passed": "1,0,0", "whammies": "3,3,2"},
)


@pytest.mark.parametrize(
    ("order", "pieces"),
    [((0, 1, 2), (0, 0, 0)), ((1, 0, 2), (0, 10**6, 0)), ((2, 0, 1), (10**6, 0, 10**6))],
)
def test_searches_from_other_roots_add_files_of_their_own_in_any_order_and_way(
    order, pieces, small, tmp_path
):
    game, before = tiny(), dict[str, bytes]()
    roots = np.array([game.parse(words) for words in GROWN])
    for i, one_piece in zip(order, pieces, strict=True):
        solved = search(tmp_path / "grown", roots[i : i + 1], one_piece=one_piece)
        now = files_of(solved.table)
        assert all(now[name] == content for name, content in before.items())
        assert solved.kept == 0
        alone = search(tmp_path / f"alone-{i}", roots[i : i + 1], one_piece=one_piece)
        assert files_of(alone.table).items() == now.items() - before.items()
        before = now
    with solving.open_table(solved.table) as table:
        assert table.holds(roots).all() and check_files(table) == []
        assert check_residuals(table, None).faults == 0
    again = by(tmp_path / "grown", roots[order[0]][None])
    assert (again.states, again.shards) == (0, 0)


def test_a_search_that_is_there_is_left_alone_and_force_makes_it_anew(staged, small, tmp_path):
    first = by(tmp_path)
    stamps = {path: path.stat().st_mtime_ns for path in first.table.rglob("*.parquet")}
    for one_piece in (0, 10**6):
        again = by(tmp_path, one_piece=one_piece)
        assert (again.states, again.shards) == (0, 0)
        assert {path: path.stat().st_mtime_ns for path in stamps} == stamps
    forced = by(tmp_path, force=True)
    assert forced.states == first.states
    assert files_of(forced.table) == files_of(staged.table)


# --- against the full table -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def full(table_of):
    return table_of(TINY, frontier=2)


@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_search_and_kernel_agree_from_random_roots(full, data):
    with solving.open_table(full) as table:
        states = np.concatenate(list(table.draw(5, data.draw(st.integers(0, 10**6)))))
        graph = Graph(tiny())
        at = graph.solve(states)
        assert np.abs(graph.values[at] - table.probe(states)).max() < 3.1e-8


def test_a_question_above_the_frontier_equals_a_table_solved_one_higher(full, tmp_path):
    game = tiny(frontier=3)
    higher = solving.solve_board(game.board, results=tmp_path).table
    with solving.open_table(full) as low, solving.open_table(higher) as high:
        for words in (
            START,
            {"scores": "0,0,500", "earned": "0,3,0"},
            {"scores": "500,0,0", "passed": "0,1,2"},
        ):
            state = game.parse(words)
            answer = answer_by_search(low, state, 10**6)
            other = answers_of(high, state[None])[0]
            assert answer.value == pytest.approx(other.value, abs=6e-8)
            assert answer.best == other.best and answer.source == "search"
        with pytest.raises(SearchLimitError, match="the limit is 10"):
            answer_by_search(low, game.parse(START), 10)


# --- counting, as a plan does --------------------------------------------------------------------


def searched(start):
    game = tiny()
    return game, roots_of(game, start)


def test_a_small_search_is_counted_without_the_states_that_are_over():
    game, roots = searched(START)
    count, graph = count_below(game, roots), Graph(game)
    graph.solve(roots)
    assert count.is_exact and (np.sort(count.keys) == np.sort(graph.keys)).all()
    assert count.states == len(graph.rows()) < graph.count


def test_several_roots_are_one_search():
    game, roots = searched([START, {"scores": "0,500,500", "earned": "1,1,1"}])
    both, first = count_below(game, roots), count_below(game, roots[:1])
    apart = first.states + count_below(game, roots[1:]).states
    assert first.states < both.states < apart


def test_a_count_ends_at_its_limit_of_states(monkeypatch):
    game, roots = searched(START)
    monkeypatch.setattr(plan, "COUNTED_STATES", 1000)  # no option
    count = count_below(game, roots)
    assert (count.states, count.is_exact) == (1000, False) and 100 < len(count.keys) <= 1000


def test_a_count_ends_when_its_time_is_over(monkeypatch):
    game, roots = searched(START)
    monkeypatch.setattr(plan, "COUNTED_SECONDS", -1.0)  # no option
    count = count_below(game, roots)
    assert not count.is_exact and count.states == len(count.keys) < 100


# --- refusals -------------------------------------------------------------------------------------


def test_a_game_without_a_start_asks_for_one(tmp_path):
    with pytest.raises(OptionError, match="say where to start, as start="):
        solving.solve_below(tiny(players=2).board, results=tmp_path)  # [start] is of three


@pytest.mark.slow
def test_hundreds_of_random_roots_at_500_agree_with_the_full_table(tmp_path):
    board = solving.load_board(FEBRUARY, score_unit=500, frontier=3)
    full = solving.solve_board(board, results=tmp_path).table
    with solving.open_table(full) as table:
        states = np.concatenate(list(table.draw(300, 1)))
        graph = Graph(table.game)
        at = graph.solve(states)
        assert np.abs(graph.values[at] - table.probe(states)).max() < 3.1e-8
