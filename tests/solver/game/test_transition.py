"""Transitions: the helpers write the contract; what is compiled is kept until it changes."""

import importlib.util
import os
import pickle
import sys
import time

import numpy as np
import pytest

from luckbase.solver.game.game import load_game
from luckbase.solver.game.rules import (
    CHANCE,
    DECISION,
    SIMULTANEOUS,
    TERMINAL,
    Numbers,
    chance,
    decision,
    lead,
    over,
    pay,
    room_for,
    simultaneous,
    transition,
)
from luckbase.solver.search.expand import expand, who_acts
from tests.places import BOARDS, ROOT
from tests.shared import python
from tests.solving import load_board

BOARD = Numbers(np.array([7]), np.array([0.25]))


@transition
def every_kind(board, state, edges):
    """The kind is the first number; the second is how many players there are."""
    if state[0] == TERMINAL:
        if state[1] == 1:
            return over(edges, 2)
        if state[1] == 2:
            return over(edges, 0.25, 0.75)
        return over(edges, 1.0, 2.0, 3.0)
    for k in range(3):
        child = lead(edges, state, k // 2, board.reals[0] * (k + 1))
        child[1] += board.ints[0] + k
        if k == 1:
            pay(edges, 1.0, -1.0)
    if state[0] == CHANCE:
        return chance(edges)
    if state[0] == SIMULTANEOUS:
        return simultaneous(edges)
    return decision(edges, state[1])


def filled(*numbers, players=2):
    """What it writes of a state, over what another state left behind."""
    edges = room_for(3, 2, players)
    edges.rewards[1:] = 9.0
    edges.children[:], edges.weights[:], edges.actions[:] = -5, -5.0, -5
    edges.about[:2] = 9
    return every_kind(BOARD, np.array(numbers), edges), edges


@pytest.mark.parametrize(
    ("state", "who"), [((CHANCE, 1), -1), ((DECISION, 1), 1), ((SIMULTANEOUS, 1), -1)]
)
def test_edges_are_written_by_the_contract(state, who):
    n, edges = filled(*state)
    assert n == 3
    assert edges.about.tolist() == [state[0], who, 0]
    assert edges.children.tolist() == [[state[0], 8 + k] for k in range(3)]
    assert edges.weights.tolist() == [0.25, 0.5, 0.75]
    assert edges.actions.tolist() == [0, 0, 1]
    assert edges.rewards.tolist() == [[0.0, 0.0], [1.0, -1.0], [0.0, 0.0]]


@pytest.mark.parametrize("payoff", [[2.0], [0.25, 0.75], [1.0, 2.0, 3.0]])
def test_a_game_that_is_over_pays_each_player(payoff):
    n, edges = filled(TERMINAL, len(payoff), players=len(payoff))
    assert n == 0
    assert edges.about.tolist() == [TERMINAL, -1, 0]
    assert edges.rewards[0].tolist() == payoff


def test_one_state_leaves_nothing_behind_for_the_next():
    edges = room_for(3, 2, 2)
    counts = [every_kind(BOARD, np.array([kind, 2]), edges) for kind in (2, 1, 0, 3, 2)]
    assert counts == [3, 3, 0, 3, 3]


def test_a_transition_survives_pickling():
    again = pickle.loads(pickle.dumps(every_kind))
    assert again(BOARD, np.array([DECISION, 0]), room_for(3, 2, 2)) == 3
    assert pickle.loads(pickle.dumps(BOARD)) == BOARD


def test_who_acts_is_what_expanding_says():
    game = load_game(load_board(BOARDS / "press-your-luck/tiny.toml"))
    result = game.canonical_states(np.array([game.fields.read(text) for text in (
        "scores=0,1500,500 earned=1,0,1", "scores=500,0,500 earned=0,0,2 passed=0,1,0",
        "scores=1500,500,0 earned=0,0,0",
    )]))  # fmt: skip
    edges, (kinds, actors) = expand(game, result), who_acts(game, result)
    assert kinds.tolist() == edges.kinds.tolist() and actors.tolist() == edges.actors.tolist()
    assert len({*kinds.tolist()}) > 1


GAME = """
from luckbase.solver.game.rules import decision, lead, over, transition

STEP = 1

@transition
def count(board, state, edges):
    if state[0] >= board.ints[0]:
        return over(edges, 1.0)
    lead(edges, state, 0, 1.0)[0] = state[0] + STEP
    return decision(edges, 0)
"""


def loaded(path, name="counting"):
    """The module of a file, anew."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def after_one(count):
    edges = room_for(1, 1, 1)
    assert count(Numbers(np.array([9]), np.zeros(1)), np.array([0]), edges) == 1
    return int(edges.children[0, 0])


def test_what_was_compiled_is_met_again_until_the_file_changes(tmp_path):
    path = tmp_path / "counting.py"
    path.write_text(f"{GAME}\nRUN = {tmp_path.name!r}, {time.time_ns()}\n")  # of this run alone
    first, second = loaded(path).count, loaded(path).count
    assert [sum(f.stats.cache_hits.values()) for f in (first, second)] == [0, 1]
    assert after_one(first) == after_one(second) == 1
    path.write_text(path.read_text().replace("STEP = 1", "STEP = 2"))
    os.utime(path, ns=(0, path.stat().st_mtime_ns + 1_000_000_000))
    changed = loaded(path).count
    assert sum(changed.stats.cache_hits.values()) == 0
    assert after_one(changed) == 2


@pytest.mark.parametrize(("name", "hits"), [("counting", "1"), ("known_here_only", "0")])
def test_another_process_meets_it_too(tmp_path, name, hits):
    """What was kept under a name that the process does not know is compiled once more."""
    path = tmp_path / name / "counting.py"  # no file of before: one that changed is kept apart
    path.parent.mkdir()
    path.write_text(f"{GAME}\nRUN = {tmp_path.name!r}, {time.time_ns()}\n")  # of this run alone
    loaded(path, name)
    program = (
        "import sys\n"
        f"sys.path[:0] = [{str(path.parent)!r}, {str(ROOT)!r}]\n"
        "from counting import count\n"
        "print(sum(count.stats.cache_hits.values()), len(count.signatures))\n"
    )
    text = python("-c", program, check=False)
    assert text.stdout.split() == [hits, "1"], text.stderr


def test_a_function_that_stands_in_no_file_is_compiled_too():
    space = {"__name__": "notebook"}
    exec(compile(GAME, "<a cell>", "exec"), space)
    assert after_one(space["count"]) == 1
