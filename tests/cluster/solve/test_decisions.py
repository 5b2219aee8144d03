"""Best actions beyond the frontier: those of a table of payoffs, and what is not known there."""

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
from luckbase.cluster.answers.parts import named
from luckbase.cluster.answers.table import Table, tiers_in_memory
from luckbase.cluster.answers.verify import _check_entry
from luckbase.cluster.machine import PROCESS_BYTES
from luckbase.cluster.play.advise import in_words
from luckbase.cluster.solve import full_table
from luckbase.cluster.solve.ray import RayWorkers
from luckbase.cluster.store.format import write_decisions
from luckbase.cluster.store.manifest import DECISIONS, TIERS
from luckbase.cluster.store.storage import Folder
from luckbase.solver import errors
from luckbase.solver.charts import Curves, Heatmap
from luckbase.solver.errors import Stopped
from luckbase.solver.game.arrays import no_decisions
from tests.places import BOARDS
from tests.solving import load_layout

FEBRUARY = BOARDS / "press-your-luck" / "1985-02.toml"
TAKES_AWAY = BOARDS / "press-your-luck" / "1985-02-double.toml"


def coarse(frontier=1, decisions=2, **options):
    """A board of which a solve takes a second."""
    options |= {} if decisions is None else {"decisions": decisions}
    return luckbase.load_board(
        FEBRUARY, score_unit=1000, score_cap=3000, frontier=frontier, **options
    )


@pytest.fixture(scope="module")
def solved(tmp_path_factory):
    """The coarse board's payoffs of one spin and best actions of two; open."""
    done = luckbase.solve(coarse(), results=tmp_path_factory.mktemp("decisions"))
    with luckbase.open(done.table) as table:
        yield table


@pytest.fixture(scope="module")
def full():
    """The table of payoffs of as many spins."""
    with tiers_in_memory(load_layout(coarse(2))) as table:
        yield table


@pytest.fixture(scope="module")
def every_state(full):
    """All states of it."""
    return np.concatenate([states for part in full.parts for states in part.draw(part.rows, 0)])


def spins_of(states):
    """(n,) the spins left in all."""
    return states[:, 3:9].sum(axis=1)


def test_every_decision_is_that_of_the_table_of_payoffs(solved, full, every_state):
    beyond = every_state[spins_of(every_state) == 2]
    assert solved.stored_best(every_state) == full.stored_best(every_state)
    best = solved.decided.stored(beyond).best
    assert named(best, solved.decided.action_names) == full.stored_best(beyond)
    assert solved.rows == solved.manifest.rows == len(every_state) == full.rows
    assert solved.rows == sum(1 for _ in solved)
    assert solved.decided.rows == len(beyond) and solved.decided.holds(beyond).all()
    assert len(np.unique(best)) == 4


def test_payoffs_to_the_frontier_have_the_bytes_of_a_table_without_decisions(solved, tmp_path):
    alone = luckbase.solve(coarse(decisions=None), results=tmp_path)
    assert alone.table.name == solved.where.name  # neither option is in the rules identity
    tiers = {entry.name: entry.sha256 for entry in solved.manifest.of_part(TIERS)}
    assert {name: entry.sha256 for name, entry in alone.manifest.files.items()} == tiers
    assert luckbase.solve(coarse(decisions=1), results=tmp_path).shards == 0  # no more than those


def test_each_option_may_be_overridden_and_the_table_grows_by_both(solved, tmp_path):
    """In one folder: two spins of payoffs, then three of decisions; then each where it is."""
    first = luckbase.solve(coarse(2, None), results=tmp_path)
    then = luckbase.solve(coarse(1, 3), results=tmp_path)
    assert then.table == first.table
    files = then.manifest.files.values()
    spins = {(e.part, e.name.split("spins-")[1][0]) for e in files}
    assert spins == {(TIERS, "1"), (TIERS, "2"), (DECISIONS, "2"), (DECISIONS, "3")}
    with luckbase.open(then.table) as table:
        assert table.rows == then.manifest.rows
        drawn = np.concatenate([*table.draw(400, 1)])
        assert {*spins_of(drawn).tolist()} == {1, 2, 3}
        assert table.verify(None).ok
    (status,) = luckbase.status(str(then.table))
    assert (status.state, status.stores) == ("complete", "payoffs and decisions")
    assert status.tiers == status.tiers_in_all
    assert luckbase.solve(coarse(2, 3), results=tmp_path).shards == 0
    lost = next(e for e in files if "spins-3" in e.name)
    (then.table / lost.place).unlink()
    (status,) = luckbase.status(str(then.table))
    assert status.state == "damaged" and any("decisions=3" in each for each in status.why)
    luckbase.solve(coarse(1, 2), results=tmp_path)
    (status,) = luckbase.status(str(then.table))
    assert status.state == "partial"


@pytest.mark.slow
@pytest.mark.parametrize("frontier", [2, 3, 4])
def test_every_decision_of_february_is_that_of_the_payoffs(frontier, tmp_path):
    """In every row, $500: as they are in a table of payoffs."""
    how = {"score_unit": 500, "frontier": 1, "decisions": frontier}
    done = luckbase.solve(luckbase.load_board(FEBRUARY, **how), results=tmp_path)
    dense, rows = load_layout(luckbase.load_board(FEBRUARY, **how | {"frontier": frontier})), 0
    with luckbase.open(done.table) as table:
        decided = table.decided
        assert decided is not None
        number_of = {entry.tier: i for i, entry in enumerate(decided.entries)}
        left = Counter(child for tier in dense.tiers() for child in dense.children(tier))
        kept = {}
        for tier in dense.tiers():
            out, noted = np.empty(dense.shape(tier)), no_decisions(dense.rows(tier))
            dense.solve_tier(tier, out, kept.__getitem__, lambda: False, 0, noted)
            if tier.spins > 1:
                codes = decided.best_of_file(number_of[dense.tier_number(tier)])
                assert (codes == noted).all()
            rows += dense.rows(tier)
            kept[tier] = out
            for child in dense.children(tier):
                left[child] -= 1
                if not left[child]:
                    del kept[child]
    assert rows == done.states


def test_a_question_is_answered_at_once_and_its_payoffs_by_following(solved, full, every_state):
    rng = np.random.default_rng(1)
    for k, state in enumerate(rng.choice(every_state, 40)):
        words = solved.game.describe(state)
        answer, right = solved.ask(words), full.ask(words)
        assert (answer.best, answer.to_act) == (right.best, right.to_act)
        assert solved.stores_best_alone(words) == (not answer.value)
        assert not (answer.decision_only and answer.value)  # nor where there is no choice
        assert ("must" in answer.standing) == (len(right.actions) == 1)
        if answer.value:
            assert answer.value == pytest.approx(right.value, abs=1e-7)
            assert len(answer.actions) == len(right.actions)
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
    with pytest.raises(errors.SearchLimitError, match="more than 5 states; write games"):
        solved.follow(words, 5)

    def over(states):
        payoffs, found = Table.get_many(solved, states)
        return payoffs, found & (spins_of(states) == 0)

    monkeypatch.setattr(solved, "get_many", over)
    whole = solved.follow(words, on_states=met.append)
    assert met[0] < met[1]
    assert answer.value == pytest.approx(whole.value, abs=2e-7)
    assert answer.source == "decisions"


def test_following_and_games_read_each_row_group_once_a_step(solved, monkeypatch):
    words, steps = {"scores": (1000, 2000, 0), "earned": (0, 1, 1)}, [[]]
    get_many = Table.get_many

    def step(table, states):
        steps.append([])
        return get_many(table, states)

    monkeypatch.setattr(Table, "get_many", step)
    with luckbase.open(solved.where) as table:
        for part in table.parts:

            def note(groups, columns, use, name=part.name, each=part.groups.each):
                steps[-1] += [(name, *group, column) for group in groups for column in columns]
                each(groups, columns, use)

            part.groups.each = note
        for payoffs in table.simulate(words, 400), table.follow(words):
            assert len(payoffs.actions) == 2
    assert sum(map(len, steps)) > 10
    assert all(len(step) == len({*step}) for step in steps)


def test_a_stored_action_that_its_state_does_not_have_is_refused(solved, monkeypatch):
    words = {"scores": (1000, 2000, 0), "earned": (0, 1, 1)}
    best_codes = Table.best_codes

    def wrong(table, states):
        codes, names = best_codes(table, states)
        return np.where(codes >= 0, len(names), codes), [*names, "pass to 9"]

    monkeypatch.setattr(Table, "best_codes", wrong)
    with pytest.raises(
        errors.CorruptTableError, match=r"the stored best action at scores=.* not allowed"
    ):
        solved.follow(words)


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
    with pytest.raises(errors.MissingTableError, match="beyond this table's frontier"):
        luckbase.evaluate(board, solved, {"scores": (0, 0, 0), "earned": (4, 4, 4)}, games=100)


def _starts(board):
    """Spins in all, and how likely."""
    found = {}
    for spins, chance in board.start.earned().items():
        found[sum(spins)] = found.get(sum(spins), 0.0) + float(chance)
    return list(found), list(found.values())


def test_advice_comes_from_decisions_and_says_what_it_lacks(tmp_path):
    board = coarse(decisions=3)
    luckbase.solve(board, results=tmp_path)
    with luckbase.advise(board, results=tmp_path) as game:
        said = game.say("Ed 0; Peter 2000, 2 spins; Michael 1000, 1 spin")
        assert said.advice is not None
        assert (said.advice.best, said.advice.value) == ("play", ())
        assert said.advice.decision_only
        assert "Passing is best" in said.advice.why
        lines = "\n".join(in_words(said, game.game))
        assert "play: Passing is best" in lines
        assert "wins" not in lines


def test_rows_beyond_the_frontier_are_exported_without_payoffs(solved, tmp_path):
    solved.export(tmp_path / "all.csv")
    exported = pandas.read_csv(tmp_path / "all.csv")
    assert len(exported) == len(exported["best"].dropna()) == solved.manifest.rows
    beyond = exported["part"] == DECISIONS
    assert (exported["payoff_1"].isna() == beyond).all()
    assert exported["margin"][beyond].isna().all() and exported["margin"].notna().any()
    assert (solved.to_arrow("margin>0", actions=True).read_all()["part"].to_pandas() == TIERS).all()
    state = {"scores": (0, 1000, 2000), "earned": (0, 1, 1)}
    with pytest.raises(errors.MissingTableError, match="held without its payoffs"):
        solved.probe(solved.game.parse(state).reshape(1, -1))


def test_a_report_and_the_page_show_the_table_to_its_frontier(solved):
    assert "Charts" in luckbase.report(solved, 0).html


def test_a_batch_says_what_is_best_and_the_payoffs_that_are_stored(solved, every_state):
    states = np.random.default_rng(3).choice(every_state, 200)
    rows = [solved.game.describe(state) for state in states]
    found = solved.values(rows, best=True)
    assert [row["best"] for row in found] == solved.stored_best(states)
    assert "margin" not in found[0]
    paid = solved.pays(states)
    assert 0 < paid.sum() < len(states)
    known = [row["payoff_1"] is not None for row in found]
    assert all(k or not p for k, p in zip(known, paid.tolist(), strict=True))
    assert not all(known)
    right = solved.probe(states[paid])[:, 1].tolist()
    assert [row["payoff_2"] for row, p in zip(found, paid, strict=True) if p] == right
    actions = solved.values(rows, actions=True)
    assert [row["best"] for row in actions] == solved.stored_best(states)
    answers = [answer.best for answer in solved.ask_all(rows)]
    assert answers == [solved.ask(words).best for words in rows]
    with pytest.raises(errors.StateError, match="row 1: is beyond this table's frontier"):
        solved.values([{"scores": (0, 0, 0), "earned": (4, 4, 4)}])


def test_moved_decisions_are_counted_and_priced_where_there_are_payoffs(tmp_path):
    def board(frontier, **options):
        return luckbase.load_board(
            FEBRUARY, score_unit=1000, score_cap=4000, frontier=frontier, decisions=2, **options
        )

    with (
        tiers_in_memory(load_layout(board(2))) as first,
        tiers_in_memory(load_layout(board(2, prize_value=6000))) as then,
    ):
        right = first.diff(then)
        states = np.concatenate([s for part in first.parts for s in part.draw(part.rows, 0)])
        best = first.stored_best(states), then.stored_best(states)
    moved = sum(a != b for a, b in zip(*best, strict=True))
    tables = [
        luckbase.open(luckbase.solve(each, results=tmp_path).table)
        for each in (board(1), board(2, prize_value=6000))
    ]
    with tables[0] as old, tables[1] as new:
        found, back = old.diff(new), new.diff(old)
        assert (found.actions, found.unpriced, found.states) == (moved, 0, right.states)
        assert found.actions == right.actions + right.toss_ups > 100
        assert found.worst[0].cost == pytest.approx(right.worst[0].cost, abs=1e-6)
        assert back.actions == moved and 0 < back.unpriced < moved
        assert "have no cost" in " ".join(back.notes)
        assert found.as_json()["worst_cost"] == pytest.approx(found.worst[0].cost)
        assert old.diff(old).actions == 0
        assert old.diff(new, sample=500).states == 500


@pytest.fixture(scope="module")
def far(tmp_path_factory):
    """A table of payoffs of one spin and best actions of two, and one of the payoffs of two."""
    how = {"score_unit": 1000, "score_cap": 8000, "decisions": 2}
    board, wide = (luckbase.load_board(FEBRUARY, frontier=n, **how) for n in (1, 2))
    done = luckbase.solve(board, results=tmp_path_factory.mktemp("far"))
    with luckbase.open(done.table) as table, tiers_in_memory(load_layout(wide)) as full:
        yield table, full


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("leads", {"third": "1000", "whammies": "0,0,2"}),
        ("leads", {}),
        ("decide", {"spins": "2"}),
    ],
)  # fmt: skip
def test_charts_of_decisions_say_what_those_of_payoffs_do(far, name, fields):
    made, right = (table.chart(name, fields) for table in far)
    if isinstance(made, Curves) and isinstance(right, Curves):
        assert (made.title, made.rows) == (right.title, right.rows)
    else:
        assert isinstance(made, Heatmap) and isinstance(right, Heatmap)
        assert made.title == right.title
        assert str(made.lines) == str(right.lines)
        assert made.lines
        assert set(made.values.ravel().tolist()) == {0.0, 1.0}


def test_verify_finds_an_entry_that_is_not_that_of_its_tier(solved):
    part = solved.decided
    assert part is not None
    entry = part.entries[1]
    assert _check_entry(part, entry) == []
    changes = [
        {"first_key": entry.first_key + 1}, {"last_key": entry.last_key - 1},
        {"name": part.entries[0].name, "at": entry.place},
    ]  # fmt: skip
    for change in changes:
        why = _check_entry(part, replace(entry, **change))[-1]
        assert why.endswith("its rows, keys or row groups are not those of its tier"), change
    for change in ({"rows": entry.rows + 1}, {"row_group_rows": entry.row_group_rows + 1}):
        try:
            why = _check_entry(part, replace(entry, **change))[-1]
        except errors.CorruptTableError as error:
            why = str(error)
        assert "rows" in why, change
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
        right = decided.best_of_file

        def wrong(file):
            codes = right(file).copy()
            codes[5] ^= 1
            return codes

        decided.best_of_file = wrong
        assert "another best action than its tier solved again" in table.verify(None).faults[0]


def test_lost_files_of_best_actions_are_made_again(solved, tmp_path):
    results = solved.where.parents[2]
    where = shutil.copytree(results, tmp_path / "r") / solved.where.relative_to(results)
    lost = [solved.manifest.of_part(DECISIONS)[number] for number in (3, 7)]
    before = [(where / entry.place).read_bytes() for entry in lost]
    for entry in lost:
        (where / entry.place).unlink()
    again = luckbase.solve(coarse(), results=tmp_path / "r")
    assert len(again.damaged) == 2
    new = [again.manifest.files[entry.name].place for entry in lost]
    assert [(where / place).read_bytes() for place in new] == before


def test_ray_workers_give_the_same_bytes_also_where_one_is_killed(
    tmp_path, ray_cluster, monkeypatch
):
    """The worker of the first receipt. Faces travel, and tiers that several others read."""
    board = coarse(tied_pass="next")
    alone = luckbase.solve(board, results=tmp_path / "alone")
    killed, commit = list[str](), full_table.ChainRun.commit
    kept, submit = list[int](), RayWorkers._submit

    def commit_and_kill(self, receipt):
        commit(self, receipt)
        if not killed:
            killed.append(receipt.process)
            os.kill(int(receipt.process.split()[1]), signal.SIGKILL)

    def note(self, running):
        kept.extend([running.task.keep.shape[0]] if running.task.keep else [])
        submit(self, running)

    monkeypatch.setattr(full_table.ChainRun, "commit", commit_and_kill)
    monkeypatch.setattr(RayWorkers, "_submit", note)
    by_ray = luckbase.solve(board, results=tmp_path / "ray", workers=2, address=ray_cluster)
    layout = load_layout(coarse(2, tied_pass="next"))
    assert killed and by_ray.ray and by_ray.states == alone.states
    assert 0 < max(kept) < max(math.prod(layout.shape(tier)) for tier in layout.tiers())
    for name, entry in alone.manifest.files.items():
        other = by_ray.table / by_ray.manifest.files[name].place
        assert (alone.table / entry.place).read_bytes() == other.read_bytes()


def test_a_solve_further_solves_again_what_it_reads_and_writes_what_is_new(tmp_path):
    first = luckbase.solve(coarse(), results=tmp_path)
    times = {
        e.place: (first.table / e.place).stat().st_mtime_ns for e in first.manifest.files.values()
    }
    second = luckbase.solve(coarse(decisions=3), results=tmp_path)
    decided = sum(entry.rows for entry in first.manifest.of_part(DECISIONS))
    assert (second.kept, second.again) == (first.states, decided)
    assert second.kept + second.states == second.rows
    assert all((second.table / place).stat().st_mtime_ns == at for place, at in times.items())


def test_writing_a_tier_stops_between_row_groups(solved, tmp_path):
    decided = solved.decided
    assert decided is not None
    tier, codes = (
        decided.tier_of_number[decided.entries[-1].tier],
        decided.best_of_file(-1).astype(np.int8),
    )
    with pytest.raises(Stopped):
        write_decisions(Folder(tmp_path), decided.plan, tier, codes, lambda: True)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_its_plan_says_rows_and_memory_and_refuses_what_does_not_fit():
    board = luckbase.load_board(FEBRUARY, score_unit=500, decisions=12)  # of the frontier 2
    plan = luckbase.plan(board, memory=20_000_000_000)
    assert isinstance(plan, luckbase.Planned)
    assert 8.1e10 < plan.states < 8.3e10
    assert sum(level.states for level in plan.groups) == plan.states
    assert plan.peak_memory < 20e9 and plan.table_bytes < 5e9
    small = luckbase.plan(board, memory=2_000_000_000)
    with pytest.raises(errors.MemoryLimitError):
        small.check()


def test_options_that_are_wrong_are_refused_and_other_games_have_none():
    with pytest.raises(errors.OptionError, match="decisions: 21 is too large; expected at most 20"):
        coarse(decisions=21)
    with pytest.raises(errors.OptionError, match="unknown option 'decisions'"):
        luckbase.load_board(BOARDS / "skunk" / "tiny.toml", decisions=3)
    with pytest.raises(
        errors.OptionError, match=r"decisions: 3 is beyond frontier 2, and with '.*' \(sq"
    ):
        luckbase.load_board(TAKES_AWAY, score_unit=1000, frontier=2, decisions=3)
    assert luckbase.load_board(TAKES_AWAY, score_unit=1000, frontier=2, decisions=2).depth == 2


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
        best = named(decided.stored(states).best, decided.action_names)
        assert [said[key] for key in keys] == best


def test_payoffs_that_do_not_fit_spill_to_disk():
    wide = luckbase.load_board(FEBRUARY, score_unit=250, decisions=8)
    assert luckbase.plan(wide, memory=40_000_000_000).peak_memory > 23e9
    little = luckbase.plan(wide, memory=19_000_000_000)
    assert 19e9 < little.peak_memory == 19e9 + PROCESS_BYTES
