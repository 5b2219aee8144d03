"""Why, in words: every number of a claim is what the rules and the table say, and its sentence has
those numbers."""

import re
from contextlib import ExitStack
from itertools import groupby

import numpy as np
import pytest

import luckbase
from luckbase.cluster.answers.moves import moves
from luckbase.cluster.answers.why import (
    Luck,
    Payoffs,
    Sure,
    Turn,
    often,
    why,
)
from luckbase.game import load_game_file
from luckbase.solver.errors import StateError
from luckbase.solver.game.fields import typed
from luckbase.solver.game.groups import Groups
from luckbase.solver.game.rules import SIMULTANEOUS
from luckbase.solver.search.expand import expand
from tests.places import BOARDS, ROOT

TABLES = {
    "press-your-luck/tiny": {"frontier": 2},
    "pig/tiny": {},
    "skunk/tiny": {},
    "jackpot/tiny": {},
    "goofspiel/tiny": {},
    "goofspiel/win": {"cards": 4},
}


@pytest.fixture(scope="module")
def made():
    """Tables in memory, each solved once."""
    tables = {}
    with ExitStack() as stack:

        def of(board):
            if board not in tables:
                file = BOARDS / f"{board}.toml"
                opened = luckbase.open(file, in_memory=True, **TABLES[board])
                tables[board] = stack.enter_context(opened)
            return tables[board]

        yield of


def drawn(table, count=16):
    """States of a table, and of each one that chance leads to."""
    rng = np.random.default_rng(7)
    for state in np.concatenate(list(table.draw(count, 7))):
        yield typed(table.game.describe(state))
        edges = expand(table.game, state.reshape(1, -1))
        if edges.kinds[0] != SIMULTANEOUS and len(edges.children):
            yield typed(table.game.describe(edges.children[rng.integers(len(edges.children))]))


def changes(table, state):
    """(chance, change) of every edge by its action, from the rules and what the table says of each
    child by itself."""
    answer, game = table.ask(state), table.game
    edges = expand(game, game.parse(state).reshape(1, -1))
    player = (answer.to_act or 1) - 1
    found = {}
    for k, child in enumerate(edges.children):
        said = table.ask(typed(game.describe(child))).value[player] + edges.rewards[k][player]
        name = game.action_name(int(edges.actions[k]))
        found.setdefault(name, []).append((float(edges.weights[k]), said - answer.value[player]))
    return found


def check_luck(table, state, claim):
    every = changes(table, state)
    own = next(iter(every.values())) if claim.action is None else every[claim.action]
    parts = [*claim.losses, *([claim.rest] if claim.rest else [])]
    assert sum(part.chance for part in parts) == pytest.approx(1)
    below = sum(chance for chance, change in own if change < -table.tolerance)
    assert sum(part.chance for part in claim.losses) == pytest.approx(below)
    assert min(change for _, change in own) == pytest.approx(min(p.low for p in parts), abs=1e-7)
    assert max(change for _, change in own) == pytest.approx(max(p.high for p in parts), abs=1e-7)
    mean = sum(chance * change for chance, change in own)
    assert -claim.cost == pytest.approx(mean, abs=1e-7)
    for part in claim.losses:
        inside = [c for c, x in own if part.low - 1e-9 <= x <= part.high + 1e-9]
        assert part.chance <= sum(inside) + 1e-9
        assert part.low <= part.high < 0
    if claim.rest is not None:
        assert claim.rest.low >= 0
    if claim.losses and claim.losses[0].name is not None:
        there = moves(table, state)
        outcomes = there.outcomes or next(
            move.outcomes for move in there.moves if move.action.name == claim.action
        )
        (named,) = [each for each in outcomes if each.name == claim.losses[0].name]
        assert named.chance == pytest.approx(claim.losses[0].chance)
        player = (there.answer.to_act or 1) - 1
        assert named.value is not None
        change = named.value[player] + named.reward[player] - there.answer.value[player]
        assert change == pytest.approx(claim.losses[0].low, abs=1e-9)
        lost = [
            each.chance * (each.value[player] + each.reward[player] - there.answer.value[player])
            for each in outcomes
            if each.value
        ]
        assert named.chance * change == pytest.approx(min(lost), abs=1e-9)


def check_sure(table, state, claim):
    answer = table.ask(state)
    assert claim.player == answer.to_act
    values = {action.name: action.value for action in answer.actions}
    assert claim.own == values[claim.action][claim.player - 1]
    best = max(value[claim.player - 1] for value in values.values())
    assert claim.cost == pytest.approx(best - claim.own, abs=table.tolerance)
    assert claim.than == (None if claim.action == answer.best else answer.best)
    if claim.up is not None:
        game = table.game
        edges = expand(game, game.parse(state).reshape(1, -1))
        names = [game.action_name(int(action)) for action in edges.actions]
        child = edges.children[names.index(claim.action)]
        then = table.ask(typed(game.describe(child)))
        assert (then.to_act or 0, then.value[(then.to_act or 1) - 1]) == claim.up


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


def check_turn(table, state, claim):
    """Again, from every answer along the line."""
    answer = table.ask(state)
    scores = answer.state.get("scores")
    if scores is None:
        column, less, kind = "turn", 0, "hold"
        here, step = int(state["turn"]), 1
    else:
        up = (answer.to_act or 0) - 1
        column, kind = f"scores_{up + 1}", "pass"
        less = max(score for i, score in enumerate(scores) if i != up)
        here, step = scores[up], 500
    assert claim.here == here - less
    best = line(table, state, column)
    low = high = here
    while low - step in best:
        low -= step
    while high + step in best:
        high += step
    assert (claim.low, claim.high) == (low - less, high - less)
    inside = [
        (value, name.startswith(kind)) for value, name in best.items() if low <= value <= high
    ]
    spans = [[v - less for v, _ in run] for takes, run in groupby(inside, lambda e: e[1]) if takes]
    if not spans:
        assert claim.first is claim.last is None
        return
    assert (claim.first, claim.last) in [(span[0], span[-1]) for span in spans]

    def far(first, last):
        return max(first - claim.here, claim.here - last, 0)

    assert claim.first is not None and claim.last is not None
    assert far(claim.first, claim.last) == min(far(span[0], span[-1]) for span in spans)
    say, text = claim.turning.say, str(claim)
    inner = claim.first > claim.low, claim.last < claim.high
    at_one = all(inner) and claim.first == claim.last
    assert (f"only at {say(claim.first)};" in text) == at_one
    if at_one:
        return
    assert f"from {say(claim.first)}" in text if inner[0] or not any(inner) else "from" not in text
    assert ("up to" in text) == (inner == (False, True))
    assert say(claim.last) in text or not inner[1]


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


CHECKS = {
    Luck: check_luck, Sure: check_sure, Turn: check_turn,
}  # fmt: skip
KINDS = {
    "press-your-luck/tiny": {Luck, Sure, Turn}, "pig/tiny": {Luck, Sure, Turn},
    "skunk/tiny": {Luck, Sure, Turn}, "jackpot/tiny": {Luck, Sure},
    "goofspiel/tiny": {Luck}, "goofspiel/win": {Luck},
}  # fmt: skip


@pytest.mark.parametrize("board", TABLES)
def test_every_claim_is_what_the_rules_and_the_table_say(board, made):
    table, met = made(board), set()
    for state in drawn(table):
        for claim in why(table, moves(table, state)):
            CHECKS[type(claim)](table, state, claim)
            assert str(claim)[0].isupper() and str(claim).endswith(".")
            met.add(type(claim))
    assert met == KINDS[board]


def test_a_spin_in_words(made):
    found = made("press-your-luck/tiny").why({"scores": (0, 1500, 500), "earned": (0, 2, 0)})
    said = "".join(found)
    playing = r"Playing: a whammy, one in six, costs \d+ points; everything else gains"
    assert re.match(playing, found[0])
    assert "player 3 gets 2 spins and wins " in found[1]
    assert re.match(r"Passing is best from \$[\d,]+ ahead; here it is \$1,000 ahead\.", found[2])
    answer = made("press-your-luck/tiny").ask({"scores": (0, 1500, 500), "earned": (0, 2, 0)})
    for action in answer.actions:
        if action.name == "pass to 3":
            assert f"player 2 wins {100 * action.value[1]:.1f}%" in said


def test_a_threshold_at_one_number_names_it_once(made):
    turning = made("press-your-luck/tiny").game.get(Groups).turning
    assert str(Turn(-500, -500, -500, -1000, 1000, turning)) == (
        "Passing is best only at $500 behind; here it is $500 behind."
    )


def test_nothing_is_said_of_a_game_that_is_over(made):
    assert made("pig/tiny").why({"mine": 20, "yours": 3}) == []


def test_a_state_above_the_table_is_explained_by_its_search(made):
    table = made("press-your-luck/tiny")
    state = {"scores": "0,1000,500", "earned": "0,2,1"}
    claims = why(table, moves(table, state, 10_000))
    assert [type(claim) for claim in claims] == [Luck, Sure]


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


def test_what_is_said_to_cost_so_much_or_more_does():
    points = Payoffs("expected points ahead", False)
    assert points.change(0.19, down=True) == "0.1 points"
    down = [points.size(size, down=True) for size in (9.97, 0.0999, 0.00999, 0.0009)]
    assert down == ["9.9", "0.09", "0.009", "0"]
    assert points.change(0.19) == "0.2 points"
