"""The frontier search: the same table whatever the shards, the workers, the stops on the way."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from luckbase import cluster, solver
from luckbase.cluster.run.options import Solved
from luckbase.cluster.search import cut as cutting
from luckbase.cluster.search.merge import (
    PayoffTable,
    merge,
    read_shard,
    solved_rows,
    write_shard,
)
from luckbase.cluster.table.above import answer_by_search
from luckbase.cluster.table.compare import compare
from luckbase.cluster.table.find import why_stale
from luckbase.cluster.table.keyed import KeyPart
from luckbase.cluster.table.ledger import read_ledger
from luckbase.cluster.table.sparse import CUT, GIVEN
from luckbase.cluster.table.storage import Folder
from luckbase.cluster.table.verify import check_files, check_residuals
from luckbase.solver.errors import (
    CorruptTableError,
    DisagreementError,
    MissingTableError,
    OptionError,
    SearchLimitError,
    StateError,
)
from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.game import Game
from luckbase.solver.graph.game_graph import Graph
from luckbase.solver.graph.keys import unpack_all
from tests.solver.games.press_your_luck import reference_of

ROOT = Path(__file__).parents[3]
TINY = ROOT / "boards/press-your-luck/tiny.toml"
FEBRUARY = ROOT / "boards/press-your-luck/1985-02.toml"
START = {"scores": "0,1000,500", "earned": "1,1,1"}


def tiny(**options: object) -> Game:
    return solver.load_game(solver.load_board(TINY, **options))


def search(results: Path, roots: Ints | None = None, **how: object) -> Solved:
    game = tiny()
    start = game.parse(START)[None] if roots is None else roots
    return cluster.solve_below(game.board, start, results=results, **how)  # type: ignore[arg-type]


def file_of(solved: Solved) -> Path:
    (found,) = solved.table.rglob("*.parquet")
    return found


def digest(solved: Solved) -> str:
    return hashlib.sha256(file_of(solved).read_bytes()).hexdigest()


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Solved:
    return search(tmp_path_factory.mktemp("once"), workers=1, depth=0)


# --- the same bits ------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("depth", [None, 0, 1, 3, 40])
def test_the_same_bytes_for_any_workers_and_depth(
    once: Solved, tmp_path: Path, workers: int, depth: int | None
) -> None:
    solved = search(tmp_path, workers=workers, depth=depth)
    assert digest(solved) == digest(once)
    assert solved.table.name == once.table.name
    assert not (solved.table / "spill").exists()
    assert workers > 1 or solved.overlap == 1.0


def test_ray_workers_write_the_same_bytes(once: Solved, tmp_path: Path, ray_cluster: str) -> None:
    how = {"depth": 3, "in_process_seconds": -1.0}
    solved = search(tmp_path, workers=2, address=ray_cluster, **how)
    assert solved.ray
    assert digest(solved) == digest(once)
    import ray

    assert not ray.is_initialized()


def test_several_roots_are_one_table_and_their_order_and_repeats_do_not_matter(
    tmp_path: Path,
) -> None:
    game = tiny()
    words = [
        START,
        {"scores": "500,0,0", "earned": "0,2,0"},
        {"scores": "0,0,0", "passed": "1,0,0"},
    ]
    roots = np.array([game.parse(w) for w in words])
    one = search(tmp_path / "a", roots)
    other = search(tmp_path / "b", roots[[2, 0, 1, 1]])
    assert digest(one) == digest(other)
    assert one.goal.roots is not None and len(one.goal.roots.start) == 3
    reference = reference_of(game)
    with cluster.open_table(one.table) as table:
        for root in roots:
            scores, earned, passed, whammies = (tuple(map(int, p)) for p in root.reshape(4, 3))
            wanted = reference.value(scores, earned, passed, whammies)
            assert table.probe(root[None])[0] == pytest.approx(wanted, abs=1e-12)


# --- nothing lost ---------------------------------------------------------------------------------


def test_a_killed_search_goes_on_from_its_shards(once: Solved, tmp_path: Path) -> None:
    """kill -9 after the first shards; the next run, with other shards, takes them as known."""
    script = (
        "import sys, time; sys.path.insert(0, sys.argv[1])\n"
        "from tests.cluster.search import test_search as t; from pathlib import Path\n"
        "from luckbase.cluster.search.solve import _Search\n"
        "keep = _Search._keep\n"
        "def slowly(self, *a):\n    keep(self, *a); print('kept', flush=True); time.sleep(.3)\n"
        "_Search._keep = slowly\n"
        "t.search(Path(sys.argv[2]), workers=1, depth=3)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(ROOT), str(tmp_path)], stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert process.stdout is not None
    for _ in range(2):
        assert process.stdout.readline() == "kept\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    table = next(tmp_path.glob("*/*/*"))
    left = read_ledger(Folder(table), table)
    assert not left.complete and len(left.shards) >= 2
    with pytest.raises(MissingTableError, match="solve again to go on"):
        cluster.open_table(table).probe(tiny().parse(START)[None])
    solved = search(tmp_path, workers=2, depth=4)
    assert digest(solved) == digest(once)
    assert solved.ledger.complete and not solved.ledger.shards
    assert not list(table.glob("shards/*"))


def test_a_search_that_is_there_is_left_alone_and_force_makes_it_anew(
    once: Solved, tmp_path: Path
) -> None:
    first = search(tmp_path)
    stamp = file_of(first).stat().st_mtime_ns
    again = search(tmp_path)
    assert again.states == 0 and file_of(again).stat().st_mtime_ns == stamp
    forced = search(tmp_path, force=True)
    assert forced.states == first.states and digest(forced) == digest(once)


def test_a_worker_that_dies_costs_a_retry(once: Solved, tmp_path: Path) -> None:
    """A Ray worker kills itself in its first shard, once."""
    script = (
        "import sys, os; sys.path.insert(0, sys.argv[1])\n"
        "from tests.cluster.search import test_search as t; from pathlib import Path\n"
        "from luckbase.cluster.run import ray_workers, remote\n"
        "def deadly(*given):\n"
        "    mark = Path(os.environ['MARK'])\n"
        "    if not mark.exists():\n        mark.touch(); os._exit(1)\n"
        "    yield from remote.run(*given)\n"
        "ray_workers.run = deadly\n"
        "s = t.search(Path(sys.argv[2]), workers=2, depth=3, in_process_seconds=-1.0)\n"
        "print(t.digest(s), s.ray)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(ROOT), str(tmp_path)], capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "MARK": str(tmp_path / "died")}, check=True,
    )  # fmt: skip
    assert done.stdout.split()[-2:] == [digest(once), "True"]
    assert (tmp_path / "died").exists()


# --- merging --------------------------------------------------------------------------------------


def test_two_shards_that_disagree_stop_the_solve_with_both_values() -> None:
    game = tiny()
    graph = Graph(game)
    graph.solve(game.parse(START)[None])
    keys = np.sort(graph.keys[:3])
    one = PayoffTable(keys, np.full((3, 3), 0.25), np.zeros(3, np.int64), np.zeros(3, np.uint8))
    wrong = np.full((3, 3), 0.25)
    wrong[1, 2] = np.nextafter(0.25, 1)  # one bit
    two = PayoffTable(keys, wrong, np.zeros(3, np.int64), np.zeros(3, np.uint8))
    with pytest.raises(DisagreementError, match=r"two shards disagree on .*0\.25, 0\.25000000"):
        merge(game, [one, two])
    other_action = PayoffTable(keys, one.values, np.array([0, 0, 1]), one.status)
    with pytest.raises(DisagreementError, match="actions 0 and 1"):
        merge(game, [one, other_action])


@given(st.lists(st.lists(st.integers(0, 40), unique=True, max_size=20), min_size=1, max_size=6))
def test_any_partition_merges_to_the_same_union(parts: list[list[int]]) -> None:
    """Meaningless, reproducible payoffs: the plumbing apart from the arithmetic."""
    tables = []
    for part in parts:
        keys = np.array(part, np.uint64)
        values = np.stack([np.sin(keys + i) for i in range(3)], axis=1).reshape(-1, 3)
        tables.append(
            PayoffTable(keys, values, keys.astype(np.int64), np.zeros(len(keys), np.uint8))
        )
    union, again = merge(tiny(), tables)
    assert union.keys.tolist() == sorted({key for part in parts for key in part})
    assert again == sum(map(len, parts)) - len(union)
    assert (union.values[:, 0] == np.sin(union.keys)).all()


def test_margins_and_who_acts_go_with_their_states_and_start_no_quarrel() -> None:
    keys, best, status = np.array([7, 2, 4], np.uint64), np.array([1, 0, 2]), np.zeros(3, np.uint8)
    margin, actor = np.array([0.5, np.nan, 0.25]), np.array([2, 0, 3], np.int8)
    one = PayoffTable(keys, np.ones((3, 3)), best, status, None, margin, actor)
    two = PayoffTable(keys[1:], np.ones((2, 3)), best[1:], status[1:])
    assert np.isnan(two.margin).all() and two.actor.tolist() == [0, 0]
    union, again = merge(tiny(), [one, two])
    assert again == 2 and union.keys.tolist() == [2, 4, 7]
    assert union.actor.tolist() == [0, 3, 2]
    np.testing.assert_array_equal(union.margin, [np.nan, 0.25, 0.5])


def test_the_rows_of_a_search_have_margins_and_who_acts() -> None:
    game = tiny()
    graph = Graph(game)
    graph.solve(game.parse(START)[None])
    rows = solved_rows(graph)
    at = graph.look_up(rows.keys)
    assert (rows.actor == graph.actors[at]).all() and (rows.actor > 0).all()
    np.testing.assert_array_equal(rows.margin, graph.margins[at])
    assert (rows.margin > 0).any() and np.isnan(rows.margin).any()


def test_a_shard_on_disk_reads_back_and_damage_is_a_sentence(tmp_path: Path) -> None:
    table = PayoffTable(
        np.array([3, 5], np.uint64), np.array([[0.1, 0.2], [0.3, 0.4]]), np.array([1, -2]),
        np.array([0, 2], np.uint8), np.array([0.0, 1e-9]), np.array([0.25, np.nan]),
        np.array([2, 0], np.int8),
    )  # fmt: skip
    storage = Folder(tmp_path)
    path, size, sha256 = write_shard(storage, "one", table)
    assert path.stat().st_size == size
    storage.put("shards/one.arrow", path)
    back = read_shard(storage, "one", sha256)
    for name in ("keys", "values", "best", "status", "gap", "actor"):
        assert (getattr(back, name) == getattr(table, name)).all()
        assert getattr(back, name).dtype == getattr(table, name).dtype
    np.testing.assert_array_equal(back.margin, [0.25, np.nan])
    whole = (tmp_path / "shards" / "one.arrow").read_bytes()
    for wrong in (whole[:100], whole[:300] + bytes([whole[300] ^ 1]) + whole[301:]):
        storage.put("shards/one.arrow", wrong)
        with pytest.raises(CorruptTableError):
            read_shard(storage, "one", sha256)


# --- against the full table -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def full(table_of: Callable[..., Path]) -> Path:
    return table_of(TINY, frontier=2)


def test_search_and_table_agree_on_every_state_they_share(once: Solved, full: Path) -> None:
    with cluster.open_table(once.table) as searched, cluster.open_table(full) as table:
        found = compare(searched, table)
        assert found.states > 1500 and not found.differs
        assert found.largest < 3e-8


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_search_and_kernel_agree_from_random_roots(full: Path, data: st.DataObject) -> None:
    with cluster.open_table(full) as table:
        states = np.concatenate(list(table.draw(5, data.draw(st.integers(0, 10**6)))))
        graph = Graph(tiny())
        at = graph.solve(states)
        assert np.abs(graph.values[at] - table.probe(states)).max() < 3.1e-8


def test_a_search_may_end_at_a_tables_frontier(once: Solved, full: Path, tmp_path: Path) -> None:
    game = tiny(frontier=2)
    roots = game.parse(START)[None]
    solved = cluster.solve_below(game.board, roots, using=full, results=tmp_path)
    assert 0 < solved.states < once.states / 2
    with cluster.open_table(solved.table) as short, cluster.open_table(once.table) as whole:
        (part,) = short.parts
        assert isinstance(part, KeyPart)
        assert np.abs(short.probe(roots) - whole.probe(roots)).max() < 3.1e-8
        assert short.error > 2.9e-8
        assert check_files(short) == []
        assert check_residuals(short, None).worst < 1e-12
        read = pq.read_table(file_of(solved), partitioning=None)
        status = read["status"].to_numpy()
        assert (status == GIVEN).sum() > 0 and (status == CUT).sum() == 0
        given = next(iter(np.flatnonzero(status == GIVEN)))
        key = read["key"].to_numpy()[given : given + 1]
        answer = short.answers(unpack_all(game.bits, np.array(key)))[0]
        assert answer.best is not None and len(answer.actions) == 1


def test_a_table_of_another_board_can_not_be_used(full: Path, tmp_path: Path) -> None:
    game = tiny(third_place_spins=False)
    with pytest.raises(OptionError, match=r"--using: .* is a table of another board"):
        cluster.solve_below(game.board, game.parse(START)[None], using=full, results=tmp_path)


def test_a_question_above_the_frontier_equals_a_table_solved_one_higher(
    full: Path, tmp_path: Path
) -> None:
    game = tiny(frontier=3)
    higher = cluster.solve(game.board, results=tmp_path).table
    with cluster.open_table(full) as low, cluster.open_table(higher) as high:
        for words in (
            START,
            {"scores": "0,0,500", "earned": "0,3,0"},
            {"scores": "500,0,0", "passed": "0,1,2"},
        ):
            state = game.parse(words)
            answer = answer_by_search(low, state, 10**6)
            other = high.answers(state[None])[0]
            assert answer.value == pytest.approx(other.value, abs=6e-8)
            assert answer.best == other.best and answer.source == "search"
        with pytest.raises(SearchLimitError, match="the limit is 10"):
            answer_by_search(low, game.parse(START), 10)


# --- depth-limited --------------------------------------------------------------------------------


def bounds(results: Path, depth: int) -> np.ndarray:
    game = tiny()
    solved = search(results / str(depth), max_depth=depth)
    with cluster.open_table(solved.table) as table:
        assert isinstance(table.parts[0], KeyPart) and table.parts[0].bounds
        assert check_files(table) == []
        assert check_residuals(table, None).worst < 1e-12
        return table.parts[0].look_bounds(game.parse(START)[None])[0][0].reshape(2, 3)


def test_deeper_only_narrows_and_the_exact_payoff_lies_between(
    once: Solved, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with cluster.open_table(once.table) as table:
        exact = table.probe(tiny().parse(START)[None])[0]
    # Never stop early: the roots count as having no choice.
    monkeypatch.setattr(cutting, "has_choice", lambda game, state: False)
    before = np.array([[0.0] * 3, [1.0] * 3])
    for depth in (1, 2, 4, 6, 9):
        low, high = bounds(tmp_path, depth)
        assert (low <= exact + 1e-12).all() and (exact <= high + 1e-12).all()
        assert (before[0] <= low + 1e-12).all() and (high <= before[1] + 1e-12).all()
        before = np.array([low, high])
    assert (before[1] - before[0]).max() < 0.5


def test_a_decision_is_called_only_when_the_intervals_separate(
    once: Solved, tmp_path: Path
) -> None:
    """Every action that a cut search calls best is the best one of the whole search."""
    cut = search(tmp_path, max_depth=7)
    called = undecided = 0
    with cluster.open_table(cut.table) as table, cluster.open_table(once.table) as whole:
        assert isinstance(table.parts[0], KeyPart) and table.parts[0].bounds
        for states in table.all_states():
            for short, full_answer in zip(
                table.answers(states), whole.answers(states), strict=True
            ):
                assert short.upper is not None
                for low, high, value in zip(
                    short.value, short.upper, full_answer.value, strict=True
                ):
                    assert low - 1e-12 <= value <= high + 1e-12
                if short.best is None:
                    undecided += 1
                elif len(full_answer.actions) > 1 and not full_answer.toss_up:
                    called += short.best == full_answer.best
                    assert short.best == full_answer.best
    assert called > 10 and undecided > 10


def test_a_cut_search_stops_when_the_roots_decisions_are_called(tmp_path: Path) -> None:
    game = tiny()
    far_ahead = game.parse({"scores": "0,3000,0", "earned": "0,1,0"})[None]
    solved = search(tmp_path, far_ahead, max_depth=30)
    assert solved.depth < 30
    with cluster.open_table(solved.table) as table:
        answer = table.answers(far_ahead)[0]
        assert answer.best is not None and answer.upper is not None


# --- refusals -------------------------------------------------------------------------------------


def test_what_is_not_below_the_roots_is_said_so(once: Solved) -> None:
    with cluster.open_table(once.table) as table:
        state = tiny().parse({"scores": "0,0,0", "earned": "3,3,3"})
        assert table.get(state, None) is None
        with pytest.raises(StateError, match="is not below this table's roots"):
            table.answers(state[None])


def test_a_game_without_a_start_asks_for_one(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="say where to start, as --from"):
        cluster.solve_below(tiny().board, results=tmp_path)


def test_the_limit_on_states_holds_for_a_worker_and_nothing_is_committed(tmp_path: Path) -> None:
    with pytest.raises(SearchLimitError, match="the limit is 2000"):
        search(tmp_path, max_states=2000, workers=1)
    assert not list(tmp_path.glob("**/*.parquet"))


def test_damage_to_a_search_table_is_found(once: Solved, tmp_path: Path) -> None:
    import shutil

    path = Path(shutil.copytree(once.table, tmp_path / "copy"))
    (file,) = path.rglob("*.parquet")
    raw = bytearray(file.read_bytes())
    raw[len(raw) // 2] ^= 1
    file.write_bytes(raw)
    with cluster.open_table(path) as table:
        assert any("is not as luckbase wrote it" in fault for fault in check_files(table))


def test_a_changed_board_makes_a_search_table_stale(tmp_path: Path) -> None:
    board = tmp_path / "tiny.toml"
    board.write_text(TINY.read_text())
    game = tiny()
    solved = cluster.solve_below(
        solver.load_board(board), game.parse(START)[None], results=tmp_path
    )
    assert why_stale(solved.ledger) == []
    board.write_text(
        TINY.read_text().replace("third_place_spins = true", "third_place_spins = false")
    )
    assert why_stale(solved.ledger) == ["third_place_spins: was true, now false"]


@pytest.mark.slow
def test_hundreds_of_random_roots_at_500_agree_with_the_full_table(tmp_path: Path) -> None:
    board = solver.load_board(FEBRUARY, score_unit=500, frontier=3)
    full = cluster.solve(board, results=tmp_path).table
    with cluster.open_table(full) as table:
        states = np.concatenate(list(table.draw(300, 1)))
        graph = Graph(table.game)
        started = time.perf_counter()
        at = graph.solve(states)
        print(graph.count / (time.perf_counter() - started) / 1e6, "M states/s")
        assert np.abs(graph.values[at] - table.probe(states)).max() < 3.1e-8
