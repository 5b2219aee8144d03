"""`Table.diff`: against a slow one in plain Python, over the small boards of every game."""

import atexit
import json
import math
import shutil
import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import luckbase
from luckbase.cluster.answers import actions
from luckbase.cluster.answers.table import search_in_memory
from luckbase.cluster.store import format as table_format
from luckbase.solver.errors import OptionError, StateError
from tests import solving
from tests.places import BOARDS
from tests.shared import answers_of
from tests.solver.search.written_out import chance, decides, over, written

PYL, CHANGED = "press-your-luck/tiny", "the same with other money"
SMALL = {"frontier": 2, "score_cap": 1500, "max_whammies": 1}


@cache
def changed_board():
    """Press Your Luck with other money."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder)
    text = (BOARDS / f"{PYL}.toml").read_text()
    assert '"500" = "1/2"' in text
    (folder / "tiny.toml").write_text(text.replace('"500" = "1/2"', '"1000" = "1/2"'))
    return folder / "tiny.toml"


def board_file(name):
    return changed_board() if name == CHANGED else BOARDS / f"{name}.toml"


def table_in_memory(name, **options):
    found = luckbase.open(board_file(name), in_memory=True, **options)
    return found


# --- the slow one --------------------------------------------------------------------------------


def answers(table):
    for states in table.draw(table.rows, 0):
        yield from answers_of(table, states)


def key(state):
    return json.dumps(state, sort_keys=True)


def slow(first, second):
    """What the tables say, state by state: kind and cost where the best actions differ."""
    found = {"decisions": 0, "moved": [], "toss_ups": [], "one_sided": []}
    found["states"] = found["payoffs"] = found["quiet"] = 0
    swapped = second.rows < first.rows
    small, large = (second, first) if swapped else (first, second)
    known = {key(answer.state): answer for answer in answers(large)}
    for mine in answers(small):
        try:
            theirs = known.get(key(mine.state)) or large.ask(mine.state)
        except StateError:
            continue
        found["states"] += 1
        old, new = (theirs, mine) if swapped else (mine, theirs)
        name = key(new.state)
        gap = max(abs(x - y) for x, y in zip(old.value, new.value, strict=True))
        found["payoffs"] += gap > first.error + second.error + 1e-9
        found["decisions"] += len(new.actions) > 1
        if old.best == new.best:
            found["quiet"] += gap > first.error + second.error + 1e-9
            continue
        own = {a.name: a.value[new.to_act - 1] for a in new.actions} if new.to_act else {}
        if old.best not in own or new.best is None:
            found["one_sided"].append(name)
        elif good(old, first.tolerance) & good(new, second.tolerance):
            found["toss_ups"].append(name)
        else:
            found["moved"].append((name, own[new.best] - own[old.best]))
    return found


def good(answer, tolerance):
    """The actions that are best as far as a table can tell."""
    own = {a.name: a.value[answer.to_act - 1] for a in answer.actions}
    return {name for name, value in own.items() if value >= max(own.values()) - tolerance}


def agree(found, by_hand):
    moved = by_hand["moved"]
    assert (found.states, found.payoffs) == (by_hand["states"], by_hand["payoffs"])
    assert (found.decisions, found.quiet.states) == (by_hand["decisions"], by_hand["quiet"])
    assert (found.actions, found.toss_ups) == (len(moved), len(by_hand["toss_ups"]))
    assert (found.one_sided, found.unpriced) == (len(by_hand["one_sided"]), 0)
    worst = sorted((key(one.state), one.cost) for one in found.worst)
    assert [name for name, _ in worst] == [name for name, _ in sorted(moved)]
    assert [cost for _, cost in worst] == pytest.approx(
        [cost for _, cost in sorted(moved)], abs=1e-12
    )
    costs = [one.cost for one in found.worst]
    assert costs == sorted(costs, reverse=True) and all(cost > 0 for cost in costs)
    if moved:
        assert found.mean == pytest.approx(math.fsum(cost for _, cost in moved) / len(moved))
        assert found.worst_cost == max(costs)
    assert sum(move.decisions for move in found.moves) == len(moved)
    assert found.picture.changed.sum() == len(moved)
    assert found.picture.decisions.sum() == found.decisions
    drawn, axes = found.picture.heatmap("about"), found.picture.axes
    assert (drawn.x_label, drawn.y_label) == (axes[0].label, axes[1].label)


LARGER = {**SMALL, "frontier": 1, "max_whammies": 2}
PAIRS = {
    "other money": (PYL, SMALL, SMALL),
    "a rule of passing": (PYL, {**LARGER, "third_place_spins": False}, LARGER),
    "its other way round": (PYL, LARGER, {**LARGER, "third_place_spins": False}),
    "fewer whammies": (PYL, SMALL, {**SMALL, "max_whammies": 2}),
    "another frontier": (PYL, SMALL, {**SMALL, "frontier": 1, "tied_pass": "next"}),
    "another unit": (PYL, {**SMALL, "score_cap": 2000}, {**SMALL, "score_cap": 2000,
                                                        "score_unit": 1000, "frontier": 1}),
    "a smaller die": ("pig/tiny", {"goal": 8}, {"goal": 8, "sides": 2}),
    "other dice": ("skunk/tiny", {"goal": 10}, {"goal": 10, "sides": 2}),
    "rounds": ("pig/rounds", {"rounds": 2, "cut": 12}, {"rounds": 2, "cut": 12, "sides": 4}),
    "what is paid": ("jackpot/tiny", {}, {"objective": "sum"}),
    "a die of five": ("jackpot/seed", {"tiles": 5}, {"tiles": 5, "sides": 5}),
    "several tiles": ("jackpot/seed", {"tiles": 5, "dice": 1, "sides": 5},
                      {"tiles": 5, "dice": 1, "sides": 5, "allowed": "sum"}),
    "cards": ("goofspiel/tiny", {"cards": 3}, {"cards": 4}),
}  # fmt: skip


@pytest.mark.parametrize("which", PAIRS)
def test_it_is_what_a_slow_one_in_plain_python_finds(which):
    first, second = tables(which)
    by_hand = slow(first, second)
    agree(first.diff(second, worst=10**6), by_hand)


def tables(which):
    name, one, two = PAIRS[which]
    second = CHANGED if which == "other money" else name
    return table_in_memory(name, **one), table_in_memory(second, **two)


# --- what counts as a toss-up --------------------------------------------------------------------


def three(*paid):
    """One player, three actions that pay so much, tolerance .01."""
    ends = [over(each) for each in paid]
    game = written(
        chance((1.0, 1)), decides(0, [(1.0, 2)], [(1.0, 3)], [(1.0, 4)]), *ends,
        players=1, tolerance=0.01,
    )  # fmt: skip
    return search_in_memory(game, game.needed_start()[None])


@pytest.mark.parametrize(
    ("one", "two", "kind"),
    [
        ((0.5, 0.2, 0.1), (0.5, 0.6, 0.1), "moved"),
        ((0.5, 0.505, 0.1), (0.5, 0.6, 0.1), "toss-up"),  # both were best before
        ((0.5, 0.2, 0.1), (0.505, 0.5, 0.1), "same"),
        ((0.1, 0.5, 0.1), (0.5, 0.505, 0.1), "toss-up"),  # both are best now
        ((0.5, 0.2, 0.1), (0.1, 0.5, 0.505), "moved"),  # which is best now is open; not the old one
        ((0.5, 0.505, 0.1), (0.1, 0.2, 0.6), "moved"),  # neither of the old ones
        ((0.5, 0.505, 0.1), (0.1, 0.6, 0.605), "toss-up"),
    ],
)
def test_a_toss_up_is_where_some_action_is_best_in_both(one, two, kind):
    found = three(*one).diff(three(*two))
    counts = {"moved": found.actions, "toss-up": found.toss_ups}
    assert counts == {name: int(name == kind) for name in counts}
    assert len(found.worst) == (kind == "moved")


# --- thresholds ------------------------------------------------------------------------------


def leaders(table):
    """Of the player up who leads and holds all spins: by all else, lead -> whether he passes."""
    found = {}
    for answer in answers(table):
        if len(answer.actions) < 2:
            continue
        state, up = answer.state, answer.to_act - 1
        out = [w == table.game.board.rules.max_whammies for w in state["whammies"]]
        others = [s for i, s in enumerate(state["scores"]) if i != up and not out[i]]
        lead = state["scores"][up] - max(others)
        spins = sum(state["earned"]) + sum(state["passed"])
        if lead > 0 and state["earned"][up] == spins:
            rest = [s for i, s in enumerate(state["scores"]) if i != up]
            line = spins, up, tuple(rest), tuple(state["whammies"])
            found.setdefault(line, {})[lead] = answer.best.startswith("pass")
    return found


def turns_at(line):
    sure = [x for x in line if all(takes for y, takes in line.items() if y >= x)]
    return min(sure, default=math.inf)


def test_thresholds_are_those_of_every_line_looked_at_alone():
    options = {"frontier": 2, "score_cap": 3000, "max_whammies": 1}
    first = table_in_memory(PYL, **options)
    second = table_in_memory(CHANGED, **options)
    turns = {turn.who: turn for turn in first.diff(second).thresholds}
    one, two = leaders(first), leaders(second)
    assert one.keys() == two.keys()
    moved = 0
    for spins, who in ((1, "with one spin left the leader"),
                       (2, "with two spins left, all theirs, the leader")):  # fmt: skip
        both = [(turns_at(one[at]), turns_at(two[at])) for at in one if at[0] == spins]
        turn = turns[who]
        assert turn.lines == len(both)
        assert turn.sooner == sum(b < a for a, b in both)
        assert turn.later == sum(b > a for a, b in both)
        moved += turn.sooner + turn.later
        for i, span in enumerate((turn.first, turn.second)):
            there = sorted(pair[i] for pair in both if pair[i] < math.inf)
            if there:
                middle = sorted(pair[i] for pair in both)[(len(both) - 1) // 2]
                assert span == (there[0], None if middle == math.inf else middle, there[-1])
            assert (span is None) == (not there)
            assert turn.never[i] == len(both) - len(there)
    assert moved


def test_a_sample_does_not_say_where_decisions_turn():
    first, second = (table_in_memory(name, **SMALL) for name in (PYL, CHANGED))
    every, found = first.diff(second), first.diff(second, sample=4000)
    assert every.thresholds and not every.thresholds_left_out
    assert not found.thresholds and found.thresholds_left_out and found.decisions
    assert not any(" passes:" in sentence for sentence in found.sentences)
    assert found.sentences[-1] == "where decisions turn is known only when all states are compared"
    assert not any("is known only" in sentence for sentence in every.sentences)


# --- files, pieces, searches ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Two tables in files of many row groups."""
    folder = tmp_path_factory.mktemp("stored")
    before, table_format.ROW_GROUP = table_format.ROW_GROUP, 300
    try:
        found = {}
        for name, file in (("one", PYL), ("two", CHANGED)):
            board = solving.load_board(board_file(file), **SMALL)
            found[name] = solving.solve_board(board, results=folder).table
        return found
    finally:
        table_format.ROW_GROUP = before


def data(found):
    return found.as_json()


def test_the_same_from_files_as_from_memory(stored):
    with luckbase.open(stored["one"]) as one, luckbase.open(stored["two"]) as two:
        assert max(-(-e.rows // e.row_group_rows) for e in one.full.entries) > 3
        memory = [table_in_memory(name, **SMALL) for name in (PYL, CHANGED)]
        assert data(one.diff(two)) == data(memory[0].diff(memory[1]))
        assert data(one.diff(memory[1])) == data(memory[0].diff(two))


def test_the_same_whatever_the_pieces(stored, monkeypatch, tmp_path):
    with luckbase.open(stored["one"]) as one, luckbase.open(stored["two"]) as two:
        found = [data(one.diff(two, worst=100, out=tmp_path / "0.parquet"))]
        for k, edges in enumerate((100, 10**8), 1):
            monkeypatch.setattr(actions, "MAX_EDGES", edges)
            found.append(data(one.diff(two, worst=100, out=tmp_path / f"{k}.parquet")))
        rows = [pq.read_table(tmp_path / f"{k}.parquet") for k in range(3)]
    assert found[0] == found[1] == found[2] and found[0]["actions"] > 50
    assert rows[0].equals(rows[1]) and rows[0].equals(rows[2])


def test_searches_are_compared(tmp_path):
    found, by_hand = [], []
    for k, name in enumerate((PYL, CHANGED)):
        board = solving.load_board(board_file(name), **SMALL)
        game = solving.load_game(board)
        root = game.parse({"scores": (0, 1000, 500), "earned": (1, 1, 0)})[None]
        solved = solving.solve_below(board, root, results=tmp_path / str(k), workers=1)
        found.append(luckbase.open(solved.table))
        by_hand.append(search_in_memory(game, root))
    with found[0] as one, found[1] as two:
        agree(one.diff(two, worst=10**6), slow(*by_hand))
        full = table_in_memory(CHANGED, **SMALL)
        assert one.diff(full).states == one.rows


def test_the_file_has_every_decision_that_moved(tmp_path):
    first, second = (
        table_in_memory(PYL, **SMALL),
        table_in_memory(PYL, **SMALL | {"max_whammies": 2}),
    )
    by_hand = slow(first, second)
    found = first.diff(second, out=tmp_path / "moved.csv")
    first.diff(second, out=tmp_path / "moved.parquet")
    rows = pq.read_table(tmp_path / "moved.parquet")
    assert rows.equals(pa_like(rows, pyarrow.csv.read_csv(tmp_path / "moved.csv")))
    states = second.game.canonical_states(
        np.stack([rows[name].to_numpy() for name in second.game.columns], axis=1)
    )
    cost = dict(zip([key(second.game.describe(s)) for s in states],
                    zip(rows["cost"].to_pylist(), rows["toss_up"].to_pylist(), strict=True),
                    strict=True))  # fmt: skip
    assert len(cost) == len(rows) == found.actions + found.toss_ups + found.one_sided
    moved = {name: c for name, (c, tie) in cost.items() if c is not None and not tie}
    assert moved == pytest.approx(dict(by_hand["moved"]), abs=1e-12)
    assert {name for name, (_, tie) in cost.items() if tie} == set(by_hand["toss_ups"])
    assert {name for name, (c, _) in cost.items() if c is None} == set(by_hand["one_sided"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["moved.csv", "moved.parquet"]


def pa_like(rows, read):
    return read.cast(rows.schema)


def test_a_file_is_refused_before_anything_is_compared(tmp_path):
    table = table_in_memory("jackpot/tiny")
    with pytest.raises(OptionError, match=r"out: .*x.txt: end it in .csv or .parquet"):
        table.diff(table, out=tmp_path / "x.txt")
    with pytest.raises(OptionError, match=r"out: .*No such file"):
        table.diff(table, out=tmp_path / "nowhere/x.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(OptionError, match=r"out: .*folder.*: Is a directory"):
        table.diff(table, out=tmp_path / "folder.csv", on_rows=lambda *_: pytest.fail("compared"))


def test_tables_of_other_fields_are_refused():
    with pytest.raises(OptionError, match="upcard, lead cannot be compared"):
        table_in_memory("goofspiel/tiny").diff(table_in_memory("goofspiel/tiny", objective="win"))


def test_the_plain_words_come_from_the_numbers():
    first, second = table_in_memory("skunk/tiny"), table_in_memory("skunk/tiny", sides=4)
    found = first.diff(second)
    assert found.sentences[0].startswith(
        "ahead by 1 to 2, the player holds: now from 8 points, before never; moved in "
    )
    (moved,) = [s for s in found.sentences if "decisions moved" in s]
    assert f"{found.actions:,} of {found.decisions:,}" in moved and " points at most" in moved
    same = first.diff(first)
    assert same.sentences == [f"no decision moved, of {found.decisions:,}"] and not same.differs
    assert json.loads(json.dumps(found.as_json())) == found.as_json()


def test_the_small_table_is_counted_from_the_decisions():
    first, second = table_in_memory("skunk/tiny"), table_in_memory("skunk/tiny", sides=4)
    found = first.diff(second)
    heads, cells = found.case_rows()
    assert heads == ("case", "before", "now", "moved", "cost")
    share = f"{float(f'{100 * found.actions / found.decisions:.2g}'):g} %"
    assert cells[-1] == ("all decisions", "", "", share, found.amount(found.mean))
    moved = [row for row in cells if row[0] == "any decision"]
    assert [row[1:3] for row in moved] == [(m.first, m.second) for m in found.moves[:3]]
    assert [row[4] for row in moved] == [found.amount(m.mean) for m in found.moves[:3]]
    assert sum(move.decisions for move in found.moves) == found.actions
    assert sum(move.decisions * move.mean for move in found.moves) == pytest.approx(
        found.mean * found.actions
    )
    thresholds = [each for each in found.thresholds if each.changed]
    assert thresholds and all(each.changed <= each.decisions for each in thresholds)
    assert sum(each.changed for each in found.thresholds) <= found.actions
    assert all(cell[-1].endswith(" points") for cell in cells)
    for share, said in ((1, "100 %"), (0.996, "100 %"), (0.9949, "99 %"), (0.00081, "0.081 %")):
        every = replace(found, actions=round(share * 100_000), decisions=100_000)
        assert every.case_rows()[1][-1][3] == said and f"decisions moved ({said})" in str(
            every.sentences
        )
