"""Counting the states below some roots, as a plan does."""

import numpy as np

from luckbase.cluster.inputs import roots_of
from luckbase.solver.search import explore as module
from luckbase.solver.search.explore import count_below, explore
from tests import solving
from tests.places import BOARDS

TINY = {"scores": "0,1000,500", "earned": "1,1,1"}


def load(start):
    game = solving.load_game(solving.load_board(BOARDS / "press-your-luck/tiny.toml"))
    roots = roots_of(game, start)
    return game, roots


def test_a_small_search_is_counted_without_the_states_that_are_over():
    game, roots = load(TINY)
    count, every = count_below(game, roots), explore(game, roots)
    assert count.is_exact and (np.sort(count.keys) == np.sort(every.keys)).all()
    assert count.states == (every.kinds != module.OVER).sum() < len(every.keys)


def test_several_roots_are_one_search():
    game, roots = load([TINY, {"scores": "0,500,500", "earned": "1,1,1"}])
    both, first = count_below(game, roots), count_below(game, roots[:1])
    apart = first.states + count_below(game, roots[1:]).states
    assert first.states < both.states < apart


def test_a_count_ends_at_its_limit_of_states(monkeypatch):
    game, roots = load(TINY)
    monkeypatch.setattr(module, "COUNTED_STATES", 1000)  # no option
    count = count_below(game, roots)
    assert (count.states, count.is_exact) == (1000, False) and 100 < len(count.keys) <= 1000


def test_a_count_ends_when_its_time_is_over(monkeypatch):
    game, roots = load(TINY)
    monkeypatch.setattr(module, "COUNTED_SECONDS", -1.0)  # no option
    count = count_below(game, roots)
    assert not count.is_exact and count.states == len(count.keys) < 100
