"""A whole round of the show: decisions and chances far from the end.

The last three tests need the tables of a round, which take half an hour or more::

    luckbase solve press-your-luck/1985-02 --results DIR
    ROUND=DIR python -m pytest -n0 -m slow -s tests/e2e/test_round.py
"""

import json
import os
import time

import numpy as np
import pytest

import luckbase
from luckbase.cluster.answers.grids import draw_at, levels_of, with_choice
from luckbase.solver.errors import SearchLimitError
from luckbase.solver.search.game_graph import Graph
from tests.shared import python

BOARD = "press-your-luck/1985-02"
SMALL = {"score_unit": 1000, "score_cap": 5000, "max_whammies": 3, "frontier": 3, "decisions": 20}
"""The board with six scores, so that 20 spins need few states."""
NEAR = 1e-6
"""Actions this close may be told apart otherwise: payoffs are stored as float32."""
SEARCHED = 20_000_000
ROUND = os.environ.get("ROUND")
needs_tables = pytest.mark.skipif(not ROUND, reason="ROUND names the results of a round")


def drawn(table, count, rng, most=20):
    """States (n, fields) with a choice: `count` with each number of spins left."""
    for level, files in sorted(levels_of(table).items()):
        if level <= most:
            states = with_choice(table, draw_at(files, rng))
            yield level, states[rng.permutation(len(states))[:count]]


def same_decisions(table, states, graph):
    """Compare stored decisions with those of a search of the rules; returns how many."""
    at = graph.solve(states)
    found = [table.game.action_name(best) for best in graph.best[at].tolist()]
    stored = table.stored_best(states)
    assert all(stored)
    close = graph.margins[at] < NEAR
    differ = [one != two for one, two in zip(found, stored, strict=True)]
    assert not (np.array(differ) & ~close).any()
    return len(states)


@pytest.mark.slow
def test_decisions_at_every_depth_are_those_of_a_search(tmp_path):
    """200 and more states with 1 to 20 spins, of a board with fewer scores."""
    board, rng, count = luckbase.load_board(BOARD, **SMALL), np.random.default_rng(1), 0
    luckbase.solve(board, results=tmp_path)
    with luckbase.open(board, results=tmp_path) as table:
        for level, states in drawn(table, 12, rng):
            count += same_decisions(table, states, graph := Graph(table.game))
            print(
                f"{level} spins: {len(states)} decisions as in a search of {graph.count:,} states"
            )
    assert count >= 200


@pytest.mark.slow
@needs_tables
@pytest.mark.parametrize("unit", [250, 500, 1000])
def test_decisions_of_the_round_are_those_of_a_search(unit):
    with luckbase.open(BOARD, results=ROUND, score_unit=unit) as table:
        for level, states in drawn(table, 5, np.random.default_rng(2), most=6):
            count = 0
            for state in states:
                graph = Graph(table.game, max_states=SEARCHED)
                try:
                    count += same_decisions(table, state.reshape(1, -1), graph)
                except SearchLimitError:
                    break
            print(f"${unit}, {level} spins: {count} of {len(states)} decisions as in a search")
            assert count or level > 3


def positions(rng, unit):
    """Yield sentences in which somebody has one or two spins and a score between two of the grid's,
    and the unit on which they are exact."""
    names = "Ed", "Peter", "Michael"
    while True:
        scores, whammies = rng.integers(0, 150, 3) * unit, rng.integers(0, 4, 3)
        spins = rng.multinomial(rng.integers(1, 3), [1 / 3] * 3)
        if any(scores % 250):
            parts = zip(names, scores, spins, whammies, strict=True)
            yield "; ".join(f"{who} {score}, {n} spins, {w} whammies" for who, score, n, w in parts)


@pytest.mark.slow
@needs_tables
def test_positions_off_the_grid_are_answered_as_a_finer_grid_answers_them(command):
    """30 of them. A wrong action must cost less than the grid moves payoffs at most."""
    apart, wrong, lines, asked = [], [], [], positions(np.random.default_rng(3), 100)
    coarse, fine = ("--set", "score_unit=250"), ("--set", "score_unit=100")
    code, _, err = command("solve", BOARD, *fine, "--set", "frontier=1", "--set", "decisions=2",
                           "--results", ROUND)  # fmt: skip
    assert code == 0, err
    while len(apart) < 30:
        answers, text = [], next(asked)
        for which in coarse, fine:
            code, out, err = command("query", BOARD, text, *which, "--json", "--results", ROUND)
            assert code == 0, err
            answers.append(json.loads(out))
        found, right = answers
        if len(right["actions"]) < 2:
            continue
        apart.append(np.abs(np.subtract(found["value"], right["value"])).max())
        if found["best"] != right["best"]:
            paid = {each["action"]: each["value"][right["to_act"] - 1] for each in right["actions"]}
            wrong.append(paid[right["best"]] - paid[found["best"]])
        lines.append(
            f"{text}: {found['best']} {found['value']}, on $100 {right['best']} {right['value']}"
        )
    print(*lines, sep="\n")
    print(
        f"chances apart {np.mean(apart):.4f} on average, {max(apart):.4f} at most; "
        f"another action {len(wrong)} times, at a cost of at most {max(wrong, default=0):.4f}"
    )
    assert np.mean(apart) < 0.01 and max(apart) < 0.06 and max(wrong, default=0) < 0.03


@pytest.mark.slow
@needs_tables
def test_chances_with_16_spins_left_come_within_a_point_in_ten_seconds():
    states = [
        "Ed 1500, 5 spins; Peter 2500, 5 spins; Michael 3500, 6 spins",
        "Ed 6000, 1 spin; Peter 0, 7 spins; Michael 9000, 8 spins",
    ]
    for text in states:
        started = time.perf_counter()
        done = python("-m", "luckbase", "query", BOARD, text, "--json", "--results", ROUND)
        seconds, answer = time.perf_counter() - started, json.loads(done.stdout)
        print(
            f"{text}: {seconds:.1f} s, {answer['best']} {answer['value']} ± {answer['error']:.4f}"
        )
        assert answer["error"] <= 0.01 and seconds < 10
