"""Why, in words: every number of a claim is what the rules and the table say, and its sentence has
those numbers."""

import re
from itertools import groupby

import numpy as np
import pytest

import luckbase
from luckbase.cluster.answers.answer import often
from luckbase.cluster.answers.moves import moves
from luckbase.cluster.answers.why import _turning_text, gerund, why
from luckbase.game import load_game_file
from luckbase.solver.errors import StateError
from luckbase.solver.game.fields import typed
from luckbase.solver.game.groups import Groups
from luckbase.solver.game.rules import SIMULTANEOUS
from luckbase.solver.search.expand import expand
from luckbase.solver.sentences import Payoffs, capital, noun
from tests.places import ROOT


def drawn(table, count=16):
    """States of a table, and of each one that chance leads to."""
    rng = np.random.default_rng(7)
    for state in np.concatenate(list(table.draw(count, 7))):
        yield typed(table.game.describe(state))
        edges = expand(table.game, state.reshape(1, -1))
        if edges.kinds[0] != SIMULTANEOUS and len(edges.children):
            yield typed(table.game.describe(edges.children[rng.integers(len(edges.children))]))


def changes(table, there, outcomes):
    """(change, chance, name) of every outcome, from what the table says of its state by itself."""
    player = (there.answer.to_act or 1) - 1
    found = []
    for each in outcomes:
        value = table.ask(typed(each.state)).value[player] + each.reward[player]
        change = value - there.answer.value[player]
        found.append((change * (abs(change) > table.tolerance), each.chance, each.name))
    return found


def clause(payoffs, every, subject, several=False):
    low, high = sorted([abs(min(every)[0]), abs(max(every)[0])])
    verb = "change" if not high else "gain" if max(every)[0] > 0 else "cost"
    span = payoffs.span(low, high) if high else "nothing"
    return f"{subject} {verb}{'' if several else 's'} {span}"


def luck(table, there, outcomes):
    """The clauses for outcomes: the worst loss by itself if it is a third of all, the others."""
    every, payoffs, parts = changes(table, there, outcomes), table.game.payoffs, []
    losses = sorted(each for each in every if each[0] < 0)
    losses.sort(key=lambda each: each[0] * each[1])
    if losses:
        total, (worst, chance, name) = sum(c * x for x, c, _ in losses), losses[0]
        named = worst * chance <= total / 3 or len(losses) == 1
        if named:
            parts.append(clause(payoffs, losses[:1], f"{noun(name)}, {often(chance)},"))
        if rest := losses[named:]:
            share, other = often(sum(c for _, c, _ in rest)), "other " * named
            who = noun(rest[0][2]) if len(rest) == 1 else f"{len(rest)} {other}outcomes"
            parts.append(clause(payoffs, rest, f"{who}, {share},", len(rest) > 1))
    others = [each for each in every if each[0] >= 0]
    if others:
        parts.append(clause(payoffs, others, "everything else" if losses else "every outcome"))
    return parts if any(change for change, *_ in every) else []


def sure(table, there, move):
    """The payoffs of an action that leads to one state, from what the table says of that state."""
    (then,), payoffs, player = move.outcomes, table.game.payoffs, there.answer.to_act
    after = table.ask(typed(then.state))
    text = payoffs.of(f"player {player}", move.action.value[player - 1])
    if table.game.players > 2 and after.to_act not in (None, player):
        wins = payoffs.of(f"player {after.to_act}", after.value[after.to_act - 1])
        yield wins.partition(" ")[2].partition(" ")[2]  # what they win, after their name
    best = max(each.value[player - 1] for each in there.answer.actions)
    cost = best - move.action.value[player - 1]
    if not move.best:
        less = "as much as" if cost <= table.tolerance else f"{payoffs.change(cost)} less than"
        text += f", {less} by {gerund(there.answer.best)}"
    yield text


def check(table, state, sentences):
    """Every sentence, again; return which kinds there are."""
    there, left = moves(table, state), [*sentences]
    kinds, answer = set(), there.answer
    moved = [(move.action.name, move.outcomes, move) for move in there.moves[:2]]
    if answer.to_act is None and answer.strategies is None:
        moved = [(None, there.outcomes, None)]
    for name, outcomes, move in moved:
        head = "For player 1" if name is None else capital(gerund(name))
        if len(outcomes) > 1 and (parts := luck(table, there, outcomes)):
            if move is not None and move.cost:
                mean = sum(chance * x for x, chance, _ in changes(table, there, outcomes))
                assert -move.cost == pytest.approx(mean, abs=1e-7)
                parts.append(f"on average {table.game.payoffs.change(move.cost)} less")
            assert left.pop(0) == f"{head}: {'; '.join(parts)}."
            kinds.add("luck")
        elif len(outcomes) == 1 and len(there.moves) > 1:
            text = left.pop(0)
            assert text.startswith(f"{head}: ") and text.endswith(".")
            assert all(part in text for part in sure(table, there, move))
            kinds.add("sure")
    if left:
        check_turn(table, state, *left)
        kinds.add("turn")
    return kinds


def line(table, state, column):
    """The best action by the value of one column, wherever the same player has a choice."""
    game, up = table.game, table.ask(state).to_act
    columns = dict(zip(game.columns, game.fields.values(game.parse(state)).tolist(), strict=True))
    (field,) = [each for each in game.fields if column in each.columns]
    found = {}
    for value in range(field.low, field.high + 1, field.unit):
        try:
            asked = {**columns, column: value}
            answer = table.ask(asked)
        except StateError:
            continue
        if answer.to_act == up and len(answer.actions) > 1 and answer.best:
            found[value] = answer.best
    return found


def check_turn(table, state, text):
    """Again, from every answer along the line."""
    answer, turning = table.ask(state), table.game.get(Groups).turning
    scores = answer.state.get("scores")
    if scores is None:
        column, less, kind = "turn", 0, "hold"
        here, step = int(state["turn"]), 1
    else:
        up = (answer.to_act or 0) - 1
        column, kind = f"scores_{up + 1}", "pass"
        less = max(score for i, score in enumerate(scores) if i != up)
        here, step = scores[up], 500
    best = line(table, state, column)
    low = high = here
    while low - step in best:
        low -= step
    while high + step in best:
        high += step
    inside = [
        (value, name.startswith(kind)) for value, name in best.items() if low <= value <= high
    ]
    spans = [[value for value, _ in run] for takes, run in groupby(inside, lambda e: e[1]) if takes]
    nearest = min((max(s[0] - here, here - s[-1], 0) for s in spans), default=None)
    expected = set()
    for span in spans or [None]:
        if span is None or max(span[0] - here, here - span[-1], 0) == nearest:
            expected.add(threshold(turning, span, (low, high), less, here))
    assert text in expected


def threshold(turning, span, ends, less, here):
    """The sentence for a threshold, from absolute numbers."""
    low, high = (turning.say(end - less) for end in ends)
    does = turning.doing.capitalize()
    if span is None:
        return f"{does} is best nowhere from {low} to {high}{turning.at}."
    first, last = turning.say(span[0] - less), turning.say(span[-1] - less)
    where = {
        (True, True): f"everywhere from {low} to {high}{turning.at}.",
        (True, False): f"up to {last}", (False, True): f"from {first}",
        (False, False): f"only at {first}" if first == last else f"from {first} to {last}",
    }[span[0] == ends[0], span[-1] == ends[1]]  # fmt: skip
    if where.startswith("everywhere"):
        return f"{does} is best {where}"
    return f"{does} is best {where}{turning.at}; here it is {turning.say(here - less)}."


def test_what_a_pair_of_choices_pays_is_the_mean_of_what_chance_brings_after_it(tmp_path):
    load_game_file(ROOT / "tests/games/wild.py")
    (tmp_path / "wild.toml").write_text('game = "wild"')
    options = {"seed": 23, "at_once": True, "pays": True}
    with luckbase.open(tmp_path / "wild.toml", in_memory=True, **options) as table:
        met = 0
        for state in table:
            at = moves(table, state)
            if at.answer.strategies is None:
                continue
            mean = sum(each.chance * (each.value[0] + each.reward[0]) for each in at.outcomes)
            assert sum(each.chance for each in at.outcomes) == pytest.approx(1)
            assert mean == pytest.approx(at.answer.value[0], abs=1e-8)
            several = {each.name for each in at.outcomes if each.weight < 1}
            assert all("; " in name for name in several)
            met += bool(several)
        assert met


def test_an_expected_loss_of_dollars_has_its_sign():
    dollars = Payoffs("dollars", chance=False)
    assert dollars.of("player 2", -1132.4) == "player 2 expects -$1,132"
    assert dollars.of("player 2", -1e-9) == "player 2 expects under $0.001"


KINDS = {
    "press-your-luck/tiny": {"luck", "sure", "turn"}, "pig/tiny": {"luck", "sure", "turn"},
    "skunk/tiny": {"luck", "sure", "turn"}, "jackpot/tiny": {"luck", "sure"},
    "goofspiel/tiny": {"luck"}, "goofspiel/win": {"luck"},
}  # fmt: skip


@pytest.mark.parametrize("board", KINDS)
def test_every_sentence_is_what_the_rules_and_the_table_say(board, in_memory):
    table, met = in_memory(board), set()
    for state in drawn(table):
        met |= check(table, state, why(table, moves(table, state)))
    assert met == KINDS[board]


def test_a_spin_in_words(in_memory):
    found = in_memory("press-your-luck/tiny").why({"scores": (0, 1500, 500), "earned": (0, 2, 0)})
    said = "".join(found)
    playing = r"Playing: a whammy, one in six, costs \d+ points; everything else gains"
    assert re.match(playing, found[0])
    assert "player 3 gets 2 spins and wins " in found[1]
    assert re.match(r"Passing is best from \$[\d,]+ ahead; here it is \$1,000 ahead\.", found[2])
    answer = in_memory("press-your-luck/tiny").ask({"scores": (0, 1500, 500), "earned": (0, 2, 0)})
    for action in answer.actions:
        if action.name == "pass to 3":
            assert f"player 2 wins {100 * action.value[1]:.1f}%" in said


def test_a_threshold_at_one_number_names_it_once(in_memory):
    turning = in_memory("press-your-luck/tiny").game.get(Groups).turning
    assert _turning_text(turning, -500, [(-500, -500)], -1000, 1000) == (
        "Passing is best only at $500 behind; here it is $500 behind."
    )


def test_nothing_is_said_of_a_game_that_is_over(in_memory):
    assert in_memory("pig/tiny").why({"mine": 20, "yours": 3}) == []


def test_a_state_above_the_table_is_explained_by_its_search(in_memory):
    table = in_memory("press-your-luck/tiny")
    state = {"scores": "0,1000,500", "earned": "0,2,1"}
    luck, sure = why(table, moves(table, state, 10_000))
    assert luck.startswith("Playing: a whammy, one in six, costs") and "player 2 wins" in sure


@pytest.mark.parametrize(
    "chance, said",
    [(1 / 6, "one in six"), (5 / 18, "5 in 18"), (0.245, "24.5%"), (2 / 3, "two in three")],
)
def test_chances_in_words(chance, said):
    assert often(chance) == said


@pytest.mark.parametrize(
    "low, high, said",
    [(0.008, 0.169, "0.8 to 17 points"), (0.0, 0.17, "up to 17 points"),
     (0.171, 0.172, "17 points"), (0.0004, 0.0099, "0.04 to 1.0 points"),
     (1e-9, 1e-8, "under 0.001 points")],
)  # fmt: skip
def test_spans_are_short(low, high, said):
    assert Payoffs("chance to win", True).span(low, high) == said


def test_a_difference_has_its_unit():
    assert Payoffs("expected points ahead", False).change(0.19) == "0.2 points"
