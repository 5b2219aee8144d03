"""A table on disk: what it answers, what it stores, and whether damage is found."""

import gc
import time
import weakref
from itertools import pairwise

import numpy as np
import pyarrow.parquet as pq
import pytest

from luckbase.cluster.answers.actions import every_action
from luckbase.cluster.answers.find import why_stale
from luckbase.cluster.solve.plan import make_plan
from luckbase.cluster.store import manifest as manifests
from luckbase.cluster.store.format import tier_files
from luckbase.cluster.store.manifest import Manifest
from luckbase.cluster.store.parquet import TableFile
from luckbase.cluster.store.storage import Folder
from luckbase.cluster.store.writer import check_bytes, read_manifest
from luckbase.solver.board.model import rules_identity
from luckbase.solver.errors import MissingTableError, StateError
from luckbase.solver.game.arrays import FLOAT64_ERROR
from luckbase.solver.game.capabilities import FullTable
from luckbase.solver.search.bellman import choose, evaluate
from luckbase.solver.search.expand import expand
from tests import solving
from tests.places import BOARDS, TINY
from tests.solver.games.press_your_luck import InMemory

FEBRUARY = BOARDS / "press-your-luck/1985-02.toml"


@pytest.fixture(scope="module")
def path(table_of):
    return table_of(TINY, frontier=2)


def all_states(table):
    layout = table.game.need(FullTable)
    return np.concatenate([layout.states_at(t, np.arange(layout.rows(t))) for t in layout.tiers()])


def test_every_stored_payoff_and_every_best_action_is_that_of_the_float64_solve(path):
    with solving.open_table(path) as table:
        exact = InMemory(table.game.need(FullTable))
        states = all_states(table)
        stored, wanted = table.probe(states), exact.look_up(states)
        assert np.abs(stored - wanted).max() <= table.error
        assert np.abs(stored.sum(axis=1) - 1).max() < 2e-7
        edges = expand(table.game, states)
        best = table.stored_best(states)
        q = evaluate(edges, exact.look_up(edges.children))
        for x in range(len(states)):
            first, last = q.first[x], q.first[x + 1]
            taken = choose(q.values[first:last], int(edges.actors[x]), table.game.tie_tolerance)
            assert best[x] == table.game.action_name(int(q.actions[first + taken]))


def test_many_states_read_through_threads_give_the_same(path, monkeypatch):
    with solving.open_table(path) as table:
        states = all_states(table)
        few = table.probe(states)
    monkeypatch.setattr("luckbase.cluster.store.parquet.CACHED_BYTES", 0)
    monkeypatch.setattr("luckbase.cluster.store.parquet.FEW", 3)
    with solving.open_table(path) as table:
        mixed = np.random.default_rng(1).permutation(len(states))
        assert (table.probe(states[mixed]) == few[mixed]).all()


def test_probe_and_get_of_what_is_not_there(path):
    with solving.open_table(path) as table:
        above = table.game.parse({"scores": "0,0,0", "earned": "3,0,0"})
        with pytest.raises(MissingTableError, match="frontier"):
            table.probe(above[None])
        assert table.get(above, None) is None
        with pytest.raises(StateError, match="3 spins in all and the table covers 2"):
            table.ask({"scores": "0,0,0", "earned": "3,0,0"})


def test_a_closed_table_lets_go_of_its_files(path, monkeypatch):
    opened, made = weakref.WeakSet[TableFile](), TableFile.__init__

    def init(file, *how, **more):
        opened.add(file)
        made(file, *how, **more)

    monkeypatch.setattr(TableFile, "__init__", init)
    with solving.open_table(path) as table:
        table.probe(all_states(table)[::500])
        assert opened
    if opened:  # in a circle; to look for these takes seconds in a process that has run many tests
        gc.collect()
    assert not opened


def test_a_toss_up_is_said_where_and_only_where_float64_finds_no_difference(path):
    with solving.open_table(path) as table:
        exact = InMemory(table.game.need(FullTable))
        states = all_states(table)[::3]
        edges = expand(table.game, states)
        q = evaluate(edges, exact.look_up(edges.children))
        ties = every_action(table, states)[0].ties
        choices = 0
        for x in range(len(states)):
            own = np.sort(q.values[q.first[x] : q.first[x + 1], edges.actors[x]])
            gap = own[-1] - own[-2] if len(own) > 1 else np.inf
            choices += np.isfinite(gap)
            assert ties[x] == (gap < 1e-7) or 5e-8 < gap < 2e-7
        assert 0 < ties.sum() < choices


def test_a_game_that_is_over_needs_no_table(path):
    with solving.open_table(path) as table:
        over = table.ask({"scores": "500,500,0"})
        assert (over.to_act, over.actions, over.value) == (None, (), (0.5, 0.5, 0.0))


def test_a_file_is_plain_parquet_with_the_documented_columns(path):
    with solving.open_table(path) as table:
        layout = table.game.need(FullTable)
        tier = layout.tiers()[-1]
        name = tier_files(layout, tier)[0].name
        entry = table.manifest.files[name]
        file = pq.ParquetFile(path / entry.place)
        names = file.schema_arrow.names
        constant = ["spins", "whammies_1", "whammies_2", "whammies_3"]
        assert names == [*constant, *layout.game.columns[:9], "payoff_1", "payoff_2", "payoff_3",
                         "best", "to_act"]  # fmt: skip
        assert [f.name for f in file.schema_arrow if f.nullable] == ["best"]
        sizes = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
        assert set(sizes[:-1]) <= {entry.row_group_rows}
        assert entry.row_group_rows % layout.block_rows(tier) == 0
        assert float(file.metadata.metadata[b"luckbase.payoff_error"]) == entry.error
        pq.ParquetFile(path / entry.place, page_checksum_verification=True).read()


@pytest.mark.parametrize(
    ("unit", "counts"),
    [
        (250, {1: 2.58e7, 2: 3.03e8, 3: 1.91e9, 4: 4.30e9, 5: 8.59e9}),
        (500, {1: 3.39e6, 2: 3.95e7, 3: 2.49e8, 4: 5.59e8, 5: 1.12e9}),
    ],
)
def test_the_plan_has_the_known_numbers_of_states(unit, counts):
    """docs/numbers.md#numbers-of-this-project: states of the full
    table (three in, plus two in), February 1985."""
    layout = solving.load_layout(solving.load_board(FEBRUARY, score_unit=unit, frontier=5))
    plan = make_plan(layout)
    for spins, wanted in counts.items():
        tiers = zip(plan.shards, layout.tiers(), strict=True)
        rows = [shard.rows for shard, tier in tiers if tier.spins == spins]
        assert sum(rows) == pytest.approx(wanted, rel=5e-3)  # three digits printed


def test_verify_says_how_far_it_is_with_bytes_then_with_rows(path):
    told = []
    with solving.open_table(path) as table:
        files = len(table.manifest.files)
        table.verify(500, on_rows=lambda done, total: told.append((done, total)))
        read, computed = told[: files + 1], told[files + 1 :]
        assert read[0] == (0, table.rows) and read[-1] == (table.rows, table.rows)
        assert all(one[0] < two[0] for one, two in pairwise(read))
    assert computed[0][0] == 0 and computed[-1][0] == computed[-1][1] == pytest.approx(500, rel=0.1)


def test_files_that_wait_are_not_read_after_an_interrupt(path, monkeypatch):
    begun, read = set(), Folder.read

    def slowly(folder, name, *span):
        begun.add(name)
        time.sleep(0.02)
        return read(folder, name, *span)

    def interrupt(done, total):
        if done:
            raise KeyboardInterrupt

    monkeypatch.setattr(Folder, "read", slowly)
    monkeypatch.setattr("luckbase.cluster.machine.cores", lambda: 4)
    with solving.open_table(path) as table:
        with pytest.raises(KeyboardInterrupt):
            check_bytes(Folder(path), path, table.manifest, interrupt)
        assert 1 <= len(begun) <= 9 < len(table.manifest.files)


def read(table):
    return read_manifest(Folder(table), table)


def test_why_a_table_is_stale_is_said_in_sentences(path, tmp_path):
    said = read(path)
    assert why_stale(said) == []
    board = tmp_path / "tiny.toml"
    board.write_text(TINY.read_text().replace("score_cap = 3000", "score_cap = 2500"))

    def moved(file):
        goal = manifests.Goal(**{**vars(said.goals[0]), "board_file": str(file)})
        return Manifest(said.head, [goal])

    assert why_stale(moved(board)) == ["score_cap: was 3000, now 2500"]
    older = manifests.Head(**{**vars(said.head), "rules_version": 0})
    assert why_stale(Manifest(older, said.goals)) == ["version 0 of the rules has become 1"]
    assert "cannot be read any more" in why_stale(moved(tmp_path / "gone.toml"))[0]
    assert why_stale(moved(tmp_path / "gone.toml"), absent_is_stale=False) == []
    assert why_stale(Manifest(said.head)) == []


# --- payoffs in float64 --------------------------------------------------------------------------


def test_a_board_that_says_float32_is_the_one_that_says_nothing():
    text, left_out = solving.load_board(TINY, payoffs="float32"), solving.load_board(TINY)
    wide = solving.load_board(TINY, payoffs="float64")
    names = [rules_identity(solving.load_game(board)) for board in (text, left_out, wide)]
    assert names[0] == names[1] != names[2]


def test_it_holds_what_a_table_in_float32_rounds(tmp_path):
    narrow, wide = (
        solving.solve_board(solving.load_board(TINY, payoffs=kind, frontier=2), results=tmp_path)
        for kind in ("float32", "float64")
    )
    assert narrow.manifest.files.keys() == wide.manifest.files.keys()
    for name in narrow.manifest.files:
        places = [each.table / each.manifest.files[name].place for each in (narrow, wide)]
        first, second = (pq.ParquetFile(place).read() for place in places)
        payoffs = [f"payoff_{i}" for i in (1, 2, 3)]
        for column in payoffs:
            assert first[column].type == "float" and second[column].type == "double"
            rounded = second[column].to_numpy().astype(np.float32)
            assert np.array_equal(first[column].to_numpy(), rounded)
        assert first.drop(payoffs) == second.drop(payoffs)
    assert wide.manifest.error() == FLOAT64_ERROR
    with solving.open_table(wide.table) as table:
        assert table.verify(None).residuals.worst < 1e-14
