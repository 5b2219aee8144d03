"""The search: the same payoffs as kernel and reference, from the rules alone."""

import numpy as np
import pytest

import luckbase
from luckbase.solver.errors import StateError
from luckbase.solver.search import keys
from luckbase.solver.search.bellman import OVER, evaluate, payoffs_of
from luckbase.solver.search.expand import expand
from luckbase.solver.search.game_graph import Graph
from tests import solving
from tests.places import BOARDS
from tests.solver.games.press_your_luck import reference_of

TINY, FEBRUARY = BOARDS / "press-your-luck/tiny.toml", BOARDS / "press-your-luck/1985-02.toml"


def tiny(**settings):
    return solving.load_game(solving.load_board(TINY, **settings))


def by_reference(reference, state):
    scores, earned, passed, whammies = (tuple(map(int, part)) for part in state.reshape(4, 3))
    return np.array(reference.value(scores, earned, passed, whammies))


@pytest.mark.parametrize("tied_pass", ["passer", "next"])
def test_search_and_reference_agree_from_roots_with_loops_at_the_cap_below(tied_pass):
    game = tiny(tied_pass=tied_pass)
    reference = reference_of(game)
    words = [
        {"scores": "0,1000,500", "earned": "1,2,0"},
        {"scores": "3000,3000,3000", "earned": "2,0,0"},
        {"scores": "3000,2500,3000", "earned": "0,1,1", "whammies": "3,3,3"},
        {"scores": "0,3000,3000", "passed": "2,0,0", "whammies": "3,0,0"},
        {"scores": "0,500,500", "earned": "0,2,0", "whammies": "4,3,3"},
    ]
    roots = np.array([game.parse(w) for w in words])
    graph = Graph(game)
    at = graph.solve(roots)
    for value, root in zip(graph.values[at], roots, strict=True):
        assert value == pytest.approx(by_reference(reference, root), abs=1e-12)


@pytest.mark.parametrize(
    ("scores", "spins", "play", "passing"),
    [((0, 10_000, 7000), 1, 0.8051, 0.8390), ((0, 8000, 3000), 1, 0.8125, 0.9032),
     ((0, 8000, 3000), 2, 0.7723, 0.7355)],
)  # fmt: skip
def test_player_two_of_february_has_the_published_values(scores, spins, play, passing):
    """Rules page, "Values to reproduce"."""
    state = {"scores": scores, "earned": (0, spins, 0)}
    with luckbase.open(FEBRUARY, in_memory=True, start=state) as table:
        found = {action.name: action.value[1] for action in table[state].actions}
    assert found == pytest.approx({"play": play, "pass to 3": passing}, abs=5e-5)


def test_a_root_too_large_for_a_key_is_refused():
    game = tiny()
    with pytest.raises(StateError, match="too large to search"):
        Graph(game).solve(np.array([[0, 0, 0, 40, 0, 0, 0, 0, 0, 0, 0, 0]]))


def test_what_every_action_is_worth_has_the_bits_of_the_search():
    """One Bellman step: from the children's payoffs it gives the payoffs that are stored, though a
    roll has so many edges that numpy would add them in another order."""
    game = solving.load_game(solving.load_board(BOARDS / "jackpot/seed.toml"))
    graph = Graph(game)
    graph.solve(game.needed_start()[None])
    inner = np.flatnonzero(graph.best != OVER)
    edges = expand(game, graph.states(inner))
    below = graph.values[graph.look_up(keys.pack_all(game.strides, edges.children))]
    q = evaluate(edges, below)
    result = payoffs_of(edges.kinds, edges.actors, q, graph.tolerance)
    assert np.diff(edges.first).max() == 36
    assert (result == graph.values[inner]).all()
    assert (np.add.reduceat(edges.weights[:, None] * below, edges.first[:-1]) != result).any()
