"""A table of decisions: what it says is what the table of payoffs says, and what it lacks."""

import math
import os
import shutil
import signal
from collections import Counter
from dataclasses import replace
from itertools import product

import numpy as np
import pandas
import pyarrow.parquet as pq
import pytest

import luckbase
from luckbase import cluster
from luckbase.cluster.inputs import search_below
from luckbase.cluster.play.advise import in_words
from luckbase.cluster.run import decisions
from luckbase.cluster.run.decisions import make_plan
from luckbase.cluster.run.progress import SolvedTiers
from luckbase.cluster.run.ray import RayWorkers
from luckbase.cluster.run.worker import TableLocation
from luckbase.cluster.table.decisions import write_decisions
from luckbase.cluster.table.find import opening_answers
from luckbase.cluster.table.manifest import DECISIONS, TIERS
from luckbase.cluster.table.storage import Folder
from luckbase.cluster.table.table import StoredTable, tiers_in_memory
from luckbase.cluster.table.verify import _check_entry
from luckbase.solver import load_layout
from luckbase.solver.charts import Curves, Heatmap
from luckbase.solver.dense import decisions_in_order
from luckbase.solver.errors import (
    CorruptTableError,
    MemoryLimitError,
    MissingTableError,
    OptionError,
    SearchLimitError,
    StateError,
)
from luckbase.solver.game.arrays import Decisions
from luckbase.solver.game.capabilities import DecisionLayout, Layout
from luckbase.solver.game.game import Stopped
from luckbase.solver.search.expand import expand
from tests.places import BOARDS
from tests.shared import files_of
from tests.solver.game.test_decisions import TwoBelow
from tests.solver.test_check import Table
from tests.solver.test_check import game as coins

FEBRUARY = BOARDS / "press-your-luck" / "1985-02.toml"


HOW = {"store": "decisions", "payoffs_of": "spins=1"}


def coarse(frontier=2):
    """A board of which a solve takes a second."""
    return luckbase.load_board(FEBRUARY, score_unit=1000, score_cap=3000, frontier=frontier)


@pytest.fixture(scope="module")
def solved(tmp_path_factory):
    """The coarse board's decisions, and payoffs of one spin; open. Three spins are
    `test_every_decision_of_february_…`'s."""
    folder = tmp_path_factory.mktemp("decisions")
    done = luckbase.solve(coarse(), results=folder, **HOW)
    with luckbase.open(done.table) as table:
        yield table


@pytest.fixture(scope="module")
def full():
    """Its table of payoffs."""
    with tiers_in_memory(load_layout(coarse())) as table:
        yield table


@pytest.fixture(scope="module")
def every_state(full):
    """All states of it."""
    return np.concatenate([states for part in full.parts for states in part.all_states()])


def test_every_decision_is_that_of_the_table_of_payoffs(solved, full, every_state):
    decided, right = solved.decided, full.stored_best(every_state)
    assert decided is not None
    assert solved.stored_best(every_state) == decided.stored_best(every_state) == right
    assert solved.rows == solved.manifest.rows == len(every_state) == full.rows
    assert solved.rows > decided.rows  # the others have payoffs too
    codes = decided.stored(every_state).best
    assert decided.holds(every_state).all()
    assert len(np.unique(codes)) == 4


@pytest.mark.slow
@pytest.mark.parametrize("frontier", [2, 3, 4])
def test_every_decision_of_february_is_that_of_the_payoffs(frontier, tmp_path):
    """In every row, $500: as they are in a table of payoffs."""
    board = luckbase.load_board(FEBRUARY, score_unit=500, frontier=frontier)
    done = luckbase.solve(board, store="decisions", results=tmp_path)
    dense, rows = load_layout(board), 0
    with luckbase.open(done.table) as table:
        decided = table.decided
        assert decided is not None
        number_of = {entry.tier: i for i, entry in enumerate(decided.entries)}
        left = Counter(child for tier in dense.tiers() for child in dense.children(tier))
        kept = {}
        for tier in dense.tiers():
            out, noted = np.empty(dense.shape(tier)), Decisions.blank(dense.rows(tier))
            dense.solve_tier(tier, out, kept.__getitem__, lambda: False, 0, noted)
            codes = decided.best_of_file(number_of[dense.tier_number(tier)])
            assert (codes == noted.best).all()
            rows += len(codes)
            kept[tier] = out
            for child in dense.children(tier):
                left[child] -= 1
                if not left[child]:
                    del kept[child]
    assert rows == done.states


def searches_agree(table, wanted, most):
    """So many random states whose search has at most `most` states have the same best action."""
    decided, rng = table.decided, np.random.default_rng(2)
    assert decided is not None
    rows = np.array([entry.rows for entry in decided.entries], float)
    agreed = 0
    for _ in range(100 * wanted):
        entry = decided.entries[rng.choice(len(rows), p=rows / rows.sum())]
        tier, row = decided.tier_of_number[entry.tier], rng.integers(entry.rows)
        state = decided.layout.states_at(tier, np.array([row]))[0]
        if len({*expand(table.game, state[None]).actions.tolist()}) < 2:
            continue  # there is no choice
        words = table.game.describe(state)
        try:
            with search_below(table.game, state, most) as found:
                assert found.ask(words).best == table.ask(words).best, words
        except SearchLimitError:
            continue
        agreed += 1
        if agreed == wanted:
            return
    raise AssertionError(f"{agreed} of {wanted} states could be searched; expected more room")


def test_searches_from_random_states_agree(solved):
    searches_agree(solved, 3, 100_000)


@pytest.mark.slow
def test_searches_from_random_states_of_a_large_table_agree(tmp_path):
    """Of the table in the folder DECISIONS_TABLE, which may be of any frontier, where it is set."""
    where = os.environ.get("DECISIONS_TABLE")
    if where is None:
        board = luckbase.load_board(FEBRUARY, score_unit=1000, frontier=4)
        where = str(luckbase.solve(board, store="decisions", results=tmp_path).table)
    with luckbase.open(where) as table:
        searches_agree(table, 30, 4_000_000)


def test_it_says_what_kind_of_table_it_is_and_grows_into_one_of_payoffs(tmp_path):
    board = coarse(2)
    first = luckbase.solve(board, store="decisions", payoffs_of="spins=1", results=tmp_path)
    assert {e.part for e in first.manifest.files.values()} == {DECISIONS, TIERS}
    assert {e.tier for e in first.manifest.of_part(TIERS)} < {
        e.tier for e in first.manifest.of_part(DECISIONS)
    }
    (status,) = luckbase.status(str(first.table))
    assert (status.state, status.stores) == ("complete", "decisions")
    assert status.tiers == status.tiers_in_all == len(first.manifest.of_part(DECISIONS))
    assert (
        luckbase.solve(board, store="decisions", payoffs_of="spins=1", results=tmp_path).shards == 0
    )
    states = first.manifest.rows
    then = luckbase.solve(board, results=tmp_path)
    assert then.manifest.rows == states
    (status,) = luckbase.status(str(first.table))
    assert (status.state, status.stores) == ("complete", "payoffs and decisions")


def test_a_question_is_answered_at_once_and_its_payoffs_by_following(solved, full, every_state):
    rng = np.random.default_rng(1)
    for k, state in enumerate(rng.choice(every_state, 40)):
        words = solved.game.describe(state)
        answer, right = solved.ask(words), full.ask(words)
        assert (answer.best, answer.to_act) == (right.best, right.to_act)
        if len(answer.actions) < len(right.actions):
            assert answer.decision_only
        if answer.value:
            assert answer.value == pytest.approx(right.value, abs=1e-7)
        if k % 8:
            continue
        followed = solved.follow(words)
        assert followed.best == right.best
        assert followed.value == pytest.approx(right.value, abs=1e-7)
        for action in right.actions:
            assert followed[action.name] == pytest.approx(action.value, abs=1e-7)


def test_following_ends_where_payoffs_are_stored_and_says_how_far_it_goes(solved, monkeypatch):
    words, met = {"scores": (1000, 2000, 0), "earned": (0, 2, 0)}, list[int]()
    answer = solved.follow(words, on_states=met.append)
    with pytest.raises(SearchLimitError, match="more than 5 states; write games"):
        solved.follow(words, 5)

    def over(states):
        payoffs, found = StoredTable.lookup(solved, states)
        return payoffs, found & (states[:, 3:9].sum(axis=1) == 0)

    monkeypatch.setattr(solved, "lookup", over)
    whole = solved.follow(words, on_states=met.append)
    assert met[0] < met[1]
    assert answer.value == pytest.approx(whole.value, abs=2e-7)
    assert answer.source == "decisions"


def test_payoffs_come_from_games_too_with_their_error(solved):
    words = {"scores": (1000, 2000, 0), "earned": (0, 2, 0)}
    right, answer = solved.follow(words), solved.simulate(words, 4000)
    assert (answer.best, answer.to_act, answer.source) == (right.best, right.to_act, "games")
    assert [each.name for each in answer.actions] == [each.name for each in right.actions]
    assert 0.001 < answer.error < 0.5 / 4000**0.5 + 1e-4
    for each in right.actions:
        assert answer[each.name] == pytest.approx(each.value, abs=5 * answer.error)
    assert answer[str(answer.best)] == answer.value
    assert f"the largest standard error {answer.error:.2g}, from" in str(answer)
    again = solved.simulate(words, 4000)
    assert again == answer
    assert solved.simulate(words, 4000, seed=1).value != answer.value


def test_rounds_are_played_from_the_starts_that_it_reaches(solved):
    board = coarse()
    found = luckbase.evaluate(board, solved, games=2000)
    chances = {n: p for n, p in zip(*_starts(board), strict=True) if n <= 2}
    assert found.starts == pytest.approx(sum(chances.values()))
    assert sum(found.value) == pytest.approx(1)
    start = {"scores": (1000, 2000, 0), "earned": (0, 2, 0)}
    assert luckbase.evaluate(board, solved, start, games=100).starts is None
    exact = luckbase.evaluate(board, solved, start)
    assert exact.value == pytest.approx(solved.follow(start).value, abs=2e-7)
    with pytest.raises(MissingTableError, match="beyond this table's frontier"):
        luckbase.evaluate(board, solved, {"scores": (0, 0, 0), "earned": (4, 4, 4)}, games=100)


def _starts(board):
    """Spins in all, and how likely."""
    found = {}
    for spins, chance in board.start.earned().items():
        found[sum(spins)] = found.get(sum(spins), 0.0) + float(chance)
    return list(found), list(found.values())


def test_advice_comes_from_decisions_and_says_what_it_lacks(tmp_path):
    board = coarse(2)
    luckbase.solve(board, store="decisions", payoffs_of="none", results=tmp_path)
    with luckbase.advise(board, results=tmp_path) as game:
        said = game.say("Ed 0; Peter 2000, 1 spin; Michael 1000, 1 spin")
        assert said.advice is not None
        assert (said.advice.best, said.advice.value) == ("play", ())
        assert said.advice.decision_only
        assert "Passing is best" in said.advice.why
        lines = "\n".join(in_words(said, game.game))
        assert "play: Passing is best" in lines
        assert "wins" not in lines


def test_what_needs_payoffs_says_what_it_lacks(solved, tmp_path):
    with pytest.raises(OptionError, match=r"stores decisions, and .* needs the payoffs") as found:
        luckbase.report(solved, 0)
    assert "--store" not in str(found.value)
    assert str(found.value).endswith(f"--results {solved.where.parents[2]}")
    solved.export(tmp_path / "all.csv")
    exported = pandas.read_csv(tmp_path / "all.csv")
    assert len(exported) == len(exported["best"].dropna()) == solved.manifest.rows
    assert exported["payoff_1"].isna().any()
    state = {"scores": (0, 1000, 2000), "earned": (0, 1, 1)}
    with pytest.raises(MissingTableError, match="held without its payoffs"):
        solved.probe(solved.game.parse(state).reshape(1, -1))


def test_a_batch_says_what_is_best_and_the_payoffs_that_are_stored(solved, every_state):
    states = np.random.default_rng(3).choice(every_state, 200)
    rows = [solved.game.describe(state) for state in states]
    found = solved.values(rows, best=True)
    assert [row["best"] for row in found] == solved.stored_best(states)
    assert "margin" not in found[0]
    paid = solved.pays(states)
    assert 0 < paid.sum() < len(states)
    assert [row["payoff_1"] is not None for row in found] == paid.tolist()
    right = solved.probe(states[paid])[:, 1].tolist()
    assert [row["payoff_2"] for row in found if row["payoff_2"] is not None] == right
    actions = solved.values(rows, actions=True)
    assert [row["best"] for row in actions] == solved.stored_best(states)
    answers = [answer.best for answer in solved.ask_all(rows)]
    assert answers == [solved.ask(words).best for words in rows]
    with pytest.raises(StateError, match="row 1: is beyond this table's frontier"):
        solved.values([{"scores": (0, 0, 0), "earned": (4, 4, 4)}])


def test_moved_decisions_are_counted_and_priced_where_there_are_payoffs(tmp_path):
    board = luckbase.load_board(FEBRUARY, score_unit=1000, score_cap=8000, frontier=1)
    other = luckbase.load_board(
        FEBRUARY, score_unit=1000, score_cap=8000, frontier=1, prize_value=6000
    )
    with tiers_in_memory(load_layout(board)) as first, tiers_in_memory(load_layout(other)) as then:
        right = first.diff(then)
        states = np.concatenate([s for part in first.parts for s in part.all_states()])
        best = first.stored_best(states), then.stored_best(states)
    moved = sum(a != b for a, b in zip(*best, strict=True))
    tables = [
        luckbase.open(luckbase.solve(
            each, store="decisions", payoffs_of=which, results=tmp_path / which
        ).table)
        for each, which in ((board, "none"), (other, "spins=1"))
    ]  # fmt: skip
    with tables[0] as old, tables[1] as new:
        found, back = old.diff(new), new.diff(old)
        assert (found.actions, found.unpriced, found.states) == (moved, 0, right.states)
        assert found.actions == right.actions + right.toss_ups > 100
        assert found.worst[0].cost == pytest.approx(right.worst[0].cost, abs=1e-6)
        assert (back.actions, back.unpriced) == (moved, moved)
        assert "have no cost" in " ".join(back.notes)
        assert back.as_json()["mean"] is back.as_json()["worst_cost"] is None
        assert found.as_json()["worst_cost"] == pytest.approx(found.worst[0].cost)
        assert back.worst[0].as_json()["cost"] is None
        assert {row[-1] for row in back.case_rows()[1] if row[0].endswith("decisions")} == {"–"}
        assert "costs" not in back.sentences[-2]
        assert old.diff(old).actions == 0
        assert old.diff(new, sample=500).states == 500


@pytest.mark.parametrize(
    ("name", "fields"),
    [("leads", {"third": "1000", "whammies": "0,0,2"}), ("leads", {}), ("decide", {})],
)  # fmt: skip
def test_charts_of_decisions_say_what_those_of_payoffs_do(tmp_path, name, fields):
    board = luckbase.load_board(FEBRUARY, score_unit=1000, score_cap=8000, frontier=1)
    done = luckbase.solve(board, store="decisions", payoffs_of="none", results=tmp_path)
    with luckbase.open(done.table) as table, tiers_in_memory(load_layout(board)) as full:
        made, right = table.chart(name, fields), full.chart(name, fields)
    if isinstance(made, Curves) and isinstance(right, Curves):
        assert (made.title, made.rows) == (right.title, right.rows)
    else:
        assert isinstance(made, Heatmap) and isinstance(right, Heatmap)
        assert made.title == right.title
        assert str(made.lines) == str(right.lines)
        assert made.lines
        assert set(made.values.ravel().tolist()) == {0.0, 1.0}


def test_it_is_exported_row_by_row(solved, every_state, tmp_path):
    rows = solved.to_arrow("spins=2").read_all()
    decided = solved.decided
    assert decided is not None
    names = decided.stored_best(every_state)
    spins = every_state[:, 3:9].sum(axis=1)
    wanted = [name for name, n in zip(names, spins, strict=True) if n == 2]
    got = [row["best"] for row in rows.to_pylist() if row["part"] == DECISIONS]
    assert got == wanted


def test_verify_finds_an_entry_that_is_not_that_of_its_tier(solved):
    part = solved.decided
    assert part is not None
    entry = part.entries[1]
    assert _check_entry(part, entry) == []
    changes = [
        {"rows": entry.rows + 1}, {"row_group_rows": entry.row_group_rows + 1},
        {"first_key": entry.first_key + 1}, {"last_key": entry.last_key - 1},
        {"name": part.entries[0].name, "at": entry.place},
    ]  # fmt: skip
    for change in changes:
        (why,) = _check_entry(part, replace(entry, **change))
        assert why.endswith("its rows, keys or row groups are not those of its tier"), change
    (why,) = _check_entry(part, replace(entry, tier=1 << 20))
    assert why.endswith("is of a tier that this board does not have")


def test_verify_solves_tiers_again_and_finds_a_changed_decision(solved):
    verdict = solved.verify(None)
    assert verdict.ok
    assert verdict.residuals is not None
    assert verdict.residuals.rows == solved.rows
    assert solved.verify(1).ok  # a sample of whammy vectors
    with luckbase.open(solved.where) as table:
        decided = table.decided
        assert decided is not None
        right = decided.decode

        def wrong(file, number, kind):
            codes = right(file, number, kind).copy()
            codes[5] ^= 1
            return codes

        decided.decode = wrong
        assert "have another decision" in table.verify(None).faults[0]


def test_a_byte_that_changed_is_refused_and_a_lost_file_made_again(solved, tmp_path):
    where = shutil.copytree(solved.where.parents[2], tmp_path / "r") / solved.where.relative_to(
        solved.where.parents[2]
    )
    entry = solved.manifest.of_part(DECISIONS)[3]
    path, before = where / entry.place, (where / entry.place).read_bytes()
    path.write_bytes(before[:4] + bytes([before[4] ^ 1]) + before[5:])
    with luckbase.open(where) as table:
        part = table.decided
        assert part is not None
        with pytest.raises(CorruptTableError, match="is not as luckbase wrote it"):
            part.best_of_file(3)
    path.unlink()
    other = solved.manifest.of_part(DECISIONS)[7]
    kept = (where / other.place).read_bytes()
    (where / other.place).unlink()
    again = luckbase.solve(coarse(), results=tmp_path / "r", **HOW)
    assert len(again.damaged) == 2
    new = [again.manifest.files[name].place for name in (entry.name, other.name)]
    assert [(where / place).read_bytes() for place in new] == [before, kept]


def test_it_goes_on_after_a_stop_with_the_same_bytes(solved, tmp_path):
    board = coarse()

    class StopHere(Exception):
        pass

    def stop(progress):
        if progress.shards > 20:
            raise StopHere

    with pytest.raises(StopHere):
        luckbase.solve(board, results=tmp_path, on_progress=stop, workers=1, **HOW)
    half = luckbase.solve(board, results=tmp_path, workers=1, **HOW)
    assert 0 < half.kept < half.rows
    assert files_of(solved.where, "*.parquet") == files_of(half.table, "*.parquet")


def test_ray_workers_give_the_same_bytes_also_where_one_is_killed(
    tmp_path, ray_cluster, monkeypatch
):
    """The worker of the first receipt. Faces travel, and tiers that several others read."""
    board = luckbase.load_board(
        FEBRUARY, score_unit=1000, score_cap=3000, frontier=2, tied_pass="next"
    )
    alone = luckbase.solve(board, store="decisions", results=tmp_path / "alone")
    killed, commit = list[str](), decisions._Run.commit
    kept, submit = list[int](), RayWorkers._submit

    def commit_and_kill(self, receipt):
        commit(self, receipt)
        if not killed:
            killed.append(receipt.process)
            os.kill(int(receipt.process.split()[1]), signal.SIGKILL)

    def note(self, running):
        kept.extend([running.task.keep.shape[0]] if running.task.keep else [])
        submit(self, running)

    monkeypatch.setattr(decisions._Run, "commit", commit_and_kill)
    monkeypatch.setattr(RayWorkers, "_submit", note)
    by_ray = luckbase.solve(
        board, store="decisions", results=tmp_path / "ray", workers=2, address=ray_cluster
    )
    layout = load_layout(board)
    assert killed and by_ray.ray and by_ray.states == alone.states
    assert 0 < max(kept) < max(math.prod(layout.shape(tier)) for tier in layout.tiers())
    for name, entry in alone.manifest.files.items():
        other = by_ray.table / by_ray.manifest.files[name].place
        assert (alone.table / entry.place).read_bytes() == other.read_bytes()


def test_a_solve_further_solves_again_what_it_reads_and_writes_what_is_new(tmp_path):
    first = luckbase.solve(coarse(1), store="decisions", payoffs_of="none", results=tmp_path)
    times = {
        e.place: (first.table / e.place).stat().st_mtime_ns for e in first.manifest.files.values()
    }
    second = luckbase.solve(coarse(2), store="decisions", payoffs_of="none", results=tmp_path)
    assert isinstance(second, SolvedTiers)
    assert (second.kept, second.again) == (first.states, first.states)
    assert second.kept + second.states == second.rows
    assert all((second.table / place).stat().st_mtime_ns == at for place, at in times.items())


def test_a_store_holds_it_as_any_table(tmp_path, bucket):
    board, words = coarse(1), {"scores": (1000, 2000, 0), "earned": (0, 1, 0)}
    done = luckbase.solve(board, store="decisions", payoffs_of="none", results=tmp_path)
    with luckbase.open(done.table) as table:
        right = table.ask(words)
        assert table.publish(f"{bucket}/there").files == len(done.manifest.files)
    with luckbase.open(f"{bucket}/there") as far:
        assert far.ask(words) == right
        assert far.verify(None).ok
    there = luckbase.solve(board, store="decisions", payoffs_of="none", results=bucket)
    with luckbase.open(there.table) as far:
        assert far.ask(words).best == right.best
    assert {name: entry.sha256 for name, entry in there.manifest.files.items()} == {
        name: entry.sha256 for name, entry in done.manifest.files.items()
    }


def test_writing_a_tier_stops_between_row_groups(solved, tmp_path):
    decided = solved.decided
    assert decided is not None
    tier, codes = (
        decided.tier_of_number[decided.entries[-1].tier],
        decided.best_of_file(-1).astype(np.uint8),
    )
    with pytest.raises(Stopped):
        write_decisions(Folder(tmp_path), decided.plan, tier, codes, lambda: True)


def test_its_plan_says_rows_and_memory_and_refuses_what_does_not_fit():
    board = luckbase.load_board(FEBRUARY, score_unit=500, frontier=12)
    plan = luckbase.plan(board, store="decisions", memory=20_000_000_000)
    assert isinstance(plan, luckbase.Planned)
    assert 8.1e10 < plan.states < 8.3e10
    assert plan.peak_memory < 20e9
    small = luckbase.plan(board, store="decisions", memory=2_000_000_000)
    with pytest.raises(MemoryLimitError):
        small.check()


def test_words_that_are_wrong_are_refused():
    with pytest.raises(OptionError, match="store: unknown 'decision'; did you mean 'decisions'"):
        luckbase.solve(coarse(), store="decision")
    with pytest.raises(OptionError, match="payoffs_of: all payoffs are stored"):
        luckbase.solve(coarse(), payoffs_of="spins=1")
    with pytest.raises(OptionError, match="payoffs_of: no tier of this table has spins=7"):
        luckbase.plan(coarse(), store="decisions", payoffs_of="spins=7")
    with pytest.raises(OptionError, match=r"payoffs_of: .*spin"):
        luckbase.solve(coarse(), store="decisions", payoffs_of="spin=1")
    jackpot = luckbase.load_board(BOARDS / "jackpot" / "tiny.toml")
    for ask in luckbase.solve, luckbase.plan:
        with pytest.raises(OptionError, match="store: a search stores payoffs; leave it out"):
            ask(jackpot, store="decisions")
    skunk = luckbase.load_board(BOARDS / "skunk" / "tiny.toml")
    with pytest.raises(OptionError, match="payoffs_of: skunk is one tier; leave it out"):
        luckbase.solve(skunk, store="decisions", payoffs_of="turn=1")
    rolls = luckbase.load_board(BOARDS / "skunk" / "tiny.toml", count_rolls=True)
    with pytest.raises(OptionError, match="store: a search stores payoffs; leave it out"):
        luckbase.solve(rolls, store="decisions")
    goofspiel = luckbase.load_board(BOARDS / "goofspiel" / "tiny.toml")
    with pytest.raises(OptionError, match="a mixture of bids and no one action"):
        luckbase.solve(goofspiel, store="decisions")
    with pytest.raises(OptionError, match=r"store: here payoffs are stored; luckbase\.solve"):
        cluster.solve(coarse(), store="decisions")


def by_the_page(path, spins, n):
    """The actions of a tier of three players by (passed A, earned A, …, earned C, scores of A, B,
    C in units), read as docs/reference/table-format.md says; nothing of ours in it."""
    rows = pq.read_table(path, page_checksum_verification=True)
    assert rows.column_names == ["best"] and not rows.schema.field("best").nullable
    best = rows["best"].to_pylist()
    every = sorted(
        (c for c in product(range(spins + 1), repeat=6) if sum(c) == spins), reverse=True
    )
    assert len(best) == len(every) * n**3
    return {
        (*c, a, b, s): best[((b * n + a) * len(every) + i) * n + s]
        for i, c in enumerate(every)
        for b, a, s in product(range(n), repeat=3)
    }


def test_decisions_are_what_the_page_on_the_format_says(solved):
    decided = solved.decided
    assert decided is not None
    for entry in decided.entries[-1], decided.entries[10]:
        tier = decided.tier_of_number[entry.tier]
        if 4 in tier.whammies:
            continue
        said = by_the_page(solved.where / entry.place, tier.spins, 4)
        states = decided.layout.states_at(tier, np.arange(entry.rows))
        scores, earned, passed = (states[:, 3 * k : 3 * k + 3].T for k in range(3))
        columns = [passed[0], earned[0], passed[1], earned[1], passed[2], earned[2], *scores]
        keys = zip(*(column.tolist() for column in columns), strict=True)
        assert [said[key] for key in keys] == decided.stored_best(states)


def test_payoffs_of_float32_take_half_the_memory_and_the_table_says_how_close(tmp_path):
    board = luckbase.load_board(FEBRUARY, score_unit=250, frontier=8, tied_pass="next")
    wide = luckbase.load_board(FEBRUARY, score_unit=250, frontier=8)
    plan = luckbase.plan(board, store="decisions", memory=19_000_000_000)
    assert plan.peak_memory < 13e9
    assert luckbase.plan(wide, store="decisions", memory=19_000_000_000).peak_memory > 23e9
    small = luckbase.load_board(
        FEBRUARY, score_unit=1000, score_cap=3000, frontier=2, tied_pass="next"
    )
    with pytest.raises(OptionError, match="payoffs_of: decisions of this board are solved in f"):
        luckbase.plan(small, store="decisions", payoffs_of="spins=1")
    done = luckbase.solve(small, store="decisions", results=tmp_path)
    with luckbase.open(done.table) as table:
        decided = table.decided
        assert decided is not None
        assert not table.manifest.of_part(TIERS)
        assert 1e-6 < decided.error < 3e-6
        assert table.verify(None).ok


DICE = [
    ("skunk/tiny", {"goal": 12}, None),
    ("pig/race", {"goal": 10}, None),
    ("pig/rounds", {"rounds": 3, "cut": 10}, {1, 3}),
]


@pytest.mark.parametrize(("path", "options", "paid"), DICE)
def test_dice_games_store_decisions_that_are_those_of_their_payoffs(path, options, paid, tmp_path):
    """Every row; what is followed, verified, played, written. paid: the rounds whose payoffs are
    stored."""
    board = luckbase.load_board(BOARDS / f"{path}.toml", **options)
    done = luckbase.solve(board, store="decisions", results=tmp_path)
    assert luckbase.plan(board, store="decisions", results=tmp_path).states == done.rows
    layout, rng = load_layout(board), np.random.default_rng(1)
    with luckbase.open(done.table) as table, tiers_in_memory(layout) as full:
        states = np.concatenate([piece for part in full.parts for piece in part.all_states()])
        assert table.rows == len(states) == full.rows
        assert table.stored_best(states) == full.stored_best(states)
        stored = {table.game.describe(s).get("round") for s in states[table.pays(states)]}
        assert stored == (paid or set())
        assert table.error == (full.error if paid else 0.0)
        for state in rng.choice(states, 5):
            words = table.game.describe(state)
            right_answer, followed = full.ask(words), table.follow(words)
            assert table.ask(words).best == followed.best == right_answer.best
            assert followed.value == pytest.approx(right_answer.value, abs=1e-9)
            assert followed.error >= table.game.cut_error
        for verdict in table.verify(None), table.verify(1):
            assert verdict.ok and verdict.residuals is not None and verdict.residuals.rows > 0
        assert table.diff(full).actions == 0
        assert "None" not in [question.best for question in opening_answers(table)]
        best = full.ask({"mine": 0, "yours": 0}).value
        assert luckbase.evaluate(board, table).value == pytest.approx(best, abs=1e-9)
        rolls = table.to_arrow("best=roll").read_all()
        assert len(rolls) == table.stored_best(states).count("roll")
    assert luckbase.solve(board, store="decisions", results=tmp_path).shards == 0
    (status,) = luckbase.status(str(done.table))
    assert (status.state, status.stores) == ("complete", "decisions")
    luckbase.solve(board, results=tmp_path)
    with luckbase.open(done.table) as table:
        assert table.pays(states).all()


class NearFirst(TwoBelow):
    """Each reads the one before it whole, and the face of one more: a single chain."""

    def children(self, tier):
        return super().children(tier)[::-1]


@pytest.mark.parametrize("kind", [TwoBelow, NearFirst])
def test_what_chains_leave_for_others_and_themselves_are_the_payoffs(kind, tmp_path):
    of = DecisionLayout[int](coins(capabilities={Layout: kind}))
    plan, solved = make_plan(of), [payoffs for _, payoffs, _ in decisions_in_order(of)]
    assert (len(plan.chains) == 1) == (kind is NearFirst)
    given = []
    for shard, chain, gives in zip(plan.shards, plan.chains, plan.gives, strict=True):
        job = decisions.SolveChain(
            board=of.layout.game.board, location=TableLocation(tmp_path, ""), shard=shard.index,
            tiers=chain, keep=True, gives=gives, reads=tuple(plan.gives[i] for i in shard.children),
            names=((),) * len(chain), threads=1, reuse=False,
        )  # fmt: skip
        job.__dict__["layout"] = of
        given.append(next(job.run([given[i] for i in shard.children], {}, None, lambda: False)))
        right = [solved[max(i, ~i)] for i in gives]
        assert given[-1].tolist() == (np.concatenate(right).tolist() if right else [])
    assert sum(map(len, given)) > 0


@pytest.mark.parametrize("names", [(), [f"to {k}" for k in range(16)]])
def test_actions_that_have_no_code_are_refused(names):
    kind = type("Named", (Table,), {"best_names": names})
    of = DecisionLayout[int](coins(capabilities={Layout: kind}))
    with pytest.raises(OptionError, match=f"one who decides alone has {len(names)} actions"):
        make_plan(of)
    kind.best_names = names[:15] or ("stop",)
    assert make_plan(of).rows == 67


def test_payoffs_of_the_lowest_and_the_highest_level_are_stored_unless_others_are_said():
    layout = luckbase.solver.load_game(coarse(3)).need(DecisionLayout)
    for said, spins in ((None, {1, 3}), ("none", set()), ("spins=1", {1})):
        stored = zip(layout.tiers(), make_plan(layout, said).of_tier, strict=True)
        assert {tier.spins for tier, names in stored if any("tiers/" in n for n in names)} == spins
