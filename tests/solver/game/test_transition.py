"""Transitions: what is compiled is kept until it changes. What their helpers write, games at random
(`tests/e2e/test_wild_games.py`) hold to value iteration."""

import importlib.util
import os
import sys
import time

import numpy as np
import pytest

from luckbase.solver.game.game import load_game
from luckbase.solver.game.rules import Numbers, room_for
from luckbase.solver.search.expand import expand, who_acts
from tests.places import BOARDS, ROOT
from tests.shared import python
from tests.solving import load_board


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
