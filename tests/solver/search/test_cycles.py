"""Certified fixed points: the bounds hold whatever led to them, and meet; what is refused."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from luckbase import solver
from luckbase.solver.errors import StateError
from luckbase.solver.game.arrays import Floats
from luckbase.solver.game.game import Game
from luckbase.solver.search.bellman import Lotteries, final_payoffs
from luckbase.solver.search.cycles import (
    Equations,
    FixedPoint,
    _linear,
    certify,
    solve_equations,
    trap,
)
from luckbase.solver.search.expand import expand
from tests.solver.board.board_files import assert_one_sentence

BOARDS = Path(__file__).parents[3] / "boards"


def arrays(
    states: list[list[list[tuple[float, float, int]]]], actors: list[int], known: list[float]
) -> dict[str, Any]:
    """The arguments of `solve_equations` from states of actions of edges (weight, reward, child);
    known payoffs are children from -1 down, player 0's; two players of sum 0."""
    edges = [(a, e) for state in states for a, action in enumerate(state) for e in action]
    counts = [sum(map(len, state)) for state in states]
    outside = np.array(known).reshape(-1, 1)
    reward = np.array([e[1] for _, e in edges])
    both = np.hstack([outside, -outside])
    return {
        "first": np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        "actions": np.array([a for a, _ in edges], np.int64),
        "weights": np.array([e[0] for _, e in edges]),
        "rewards": np.column_stack([reward, -reward]),
        "children": np.array([e[2] if e[2] >= 0 else len(states) - 1 - e[2] for _, e in edges]),
        "actors": np.array(actors),
        "known_lower": both,
        "known_upper": both,
        "tolerance": 1e-10,
    }


def component(given: dict[str, Any]) -> Equations:
    """The component of these arrays."""
    return Equations(**{name: array for name, array in given.items() if name != "tolerance"})


def solved(given: dict[str, Any], **more: Any) -> FixedPoint:
    """The payoffs of it, between -100 and 100."""
    return solve_equations(component(given), (-100.0, 100.0), given["tolerance"], **more)


def exact(c: Equations) -> Floats:
    """The values by plain value iteration, until nothing moves."""
    v = [0.0] * c.size + c.known_lower[:, 0].tolist()
    weights, rewards, children = c.weights.tolist(), c.rewards[:, 0].tolist(), c.children.tolist()
    actions, first, actors = c.actions.tolist(), c.first.tolist(), c.actors.tolist()
    for _ in range(20_000):
        before = v[:]
        for x in range(c.size):
            q: dict[int, float] = {}
            for k in range(first[x], first[x + 1]):
                worth = weights[k] * (rewards[k] + before[children[k]])
                q[actions[k]] = q.get(actions[k], 0.0) + worth
            v[x] = min(q.values()) if actors[x] == 1 else max(q.values())
        if v == before:
            break
    return np.array(v[: c.size])


@st.composite
def games(draw: st.DrawFn) -> dict[str, Any]:
    """Random games in which every policy ends: each action leaves with a chance of at least 1/8."""
    n = draw(st.integers(1, 5))
    known = draw(st.lists(st.integers(-3, 3).map(float), min_size=1, max_size=3))
    states = []
    for _ in range(n):
        state = []
        for _ in range(draw(st.integers(1, 3))):
            cuts = draw(st.lists(st.integers(1, 7), min_size=1, max_size=3, unique=True))
            bounds = [0, *sorted(cuts), 8]
            action = []
            for k, (low, high) in enumerate(pairwise(bounds)):
                child = draw(st.integers(-len(known), -1 if k == 0 else n - 1))
                action.append(((high - low) / 8, float(draw(st.integers(-2, 2))), child))
            state.append(action)
        states.append(state)
    actors = draw(st.lists(st.integers(0, 1), min_size=n, max_size=n))
    return arrays(states, actors, known)


@given(games())
@settings(max_examples=50, deadline=None)
def test_the_bounds_meet_around_the_values(given_: dict[str, Any]) -> None:
    right = exact(component(given_))
    found = solved(given_)
    assert found.gap <= 1e-10
    for player, sign in ((0, 1), (1, -1)):
        assert (found.lower[:, player] <= sign * right + 1e-13).all()
        assert (sign * right <= found.upper[:, player] + 1e-13).all()


@given(games(), st.integers(0, 2**32))
@settings(max_examples=50, deadline=None)
def test_the_certificate_holds_whatever_the_tables_are(given_: dict[str, Any], seed: int) -> None:
    """Nonsense for lower and upper gives bounds that are wide and true."""
    c = component(given_)
    rng = np.random.default_rng(seed)
    right = exact(c)
    lower, upper = certify(c, rng.normal(size=c.size), rng.normal(size=c.size))
    assert (lower <= right + 1e-13).all() and (right <= upper + 1e-13).all()


@given(games())
@settings(max_examples=30, deadline=None)
def test_known_payoffs_may_be_bounds_themselves(given_: dict[str, Any]) -> None:
    right = exact(component(given_))
    given_["known_lower"] = given_["known_lower"] - 0.125
    given_["known_upper"] = given_["known_upper"] + 0.125
    found = solved(given_)
    assert (found.lower[:, 0] <= right).all() and (right <= found.upper[:, 0]).all()
    assert found.gap <= 0.25 + 1e-9


@given(games())
@settings(max_examples=30, deadline=None)
def test_one_player_is_covered(given_: dict[str, Any]) -> None:
    given_["actors"][:] = 0
    right = exact(component(given_))
    for name in ("rewards", "known_lower", "known_upper"):
        given_[name] = given_[name][:, :1].copy()
    found = solved(given_)
    assert found.lower[:, 0] == pytest.approx(right, abs=1e-9) and found.lower.shape[1] == 1


def test_three_players_without_a_choice_are_solved_each() -> None:
    """Out with chance 1/2 each time, a unit paid each time to player 0: 2 on average."""
    loop = arrays([[[(0.5, 1.0, 0), (0.5, 1.0, -1)]]], [0], [0.0])
    loop["rewards"] = np.array([[1.0, 2.0, -3.0]] * 2)
    loop["known_lower"] = loop["known_upper"] = np.array([[0.0, 1.0, 2.0]])
    found = solved(loop)
    assert found.lower[0] == pytest.approx([2.0, 5.0, -4.0], abs=1e-9)


CHOICE = [[[(0.5, 0.0, 0), (0.5, 0.0, -1)], [(1.0, 0.0, -2)]]]


def refused(given_: dict[str, Any], **more: Any) -> str:
    with pytest.raises(StateError) as caught:
        solved(given_, **more)
    assert_one_sentence(caught.value)
    return str(caught.value)


def test_a_cycle_that_can_be_kept_up_for_ever_is_refused_with_its_state() -> None:
    """State 2 and state 1 can pass to each other; state 0 can not be stayed in."""
    states = [
        [[(0.5, 0.0, 1), (0.5, 0.0, -1)]],
        [[(1.0, 0.0, 2)], [(1.0, 0.0, -1)]],
        [[(1.0, 0.0, 0)], [(0.25, 0.0, 1), (0.75, 0.0, 1)]],
    ]
    given_ = arrays(states, [0, 0, 1], [1.0])
    assert trap(component(given_)).tolist() == [1, 2]
    assert refused(given_, describe="state {}!".format).startswith("state 1! lies on a cycle that")


PASS_OR_GO = [
    [[(1.0, 0.0, 1)], [(0.75, 0.0, -1), (0.25, 0.0, 1)]],  # player 0 passes, or wins at once by 3/4
    [[(1.0, 0.0, 0)], [(0.75, 0.0, -2), (0.25, 0.0, 0)]],
]


def test_what_neither_should_keep_up_for_ever_is_proved() -> None:
    """Both may pass; going is better. v = 3/4 + 1/4 w and w = -3/4 + 1/4 v, whatever passing for
    ever pays: .6 and -.6."""
    given_ = arrays(PASS_OR_GO, [0, 1], [1.0, -1.0])
    assert trap(component(given_)).tolist() == [0, 1]
    found = solved(given_)
    assert found.gap <= 1e-10 and found.lower[:, 0] == pytest.approx([0.6, -0.6], abs=1e-10)


@pytest.mark.parametrize("actors", ([0, 1], [0, 0]))
def test_what_one_of_them_would_keep_up_for_ever_is_refused(actors: list[int]) -> None:
    """Who goes loses, or wins by the other's state: all is between -1 and 1, or above 1."""
    assert "keep up for ever" in refused(arrays(PASS_OR_GO, actors, [-1.0, 1.0]))


def test_the_certificate_is_none_where_the_other_can_keep_the_play_up() -> None:
    """With player 0's action at nonsense for a lower bound, passing, nothing is proved."""
    c = component(arrays(PASS_OR_GO, [0, 1], [1.0, -1.0]))
    lower, _ = certify(c, np.array([5.0, 5.0]), np.array([1.0, 1.0]))
    assert (lower == -np.inf).all()


def three_players(states: Any, actors: list[int], payoffs: list[list[float]]) -> dict[str, Any]:
    """As `arrays`, of three players who are paid nothing on the way."""
    many = arrays(states, actors, [0.0] * len(payoffs))
    many["rewards"] = np.zeros((len(many["weights"]), 3))
    many["known_lower"] = many["known_upper"] = np.array(payoffs)
    return many


def test_several_players_have_what_their_best_replies_settle_on() -> None:
    """Player 0 leaves at once for .5, or goes to player 1, who goes back half the time or leaves
    with what is good for themselves, .9, and gives player 0 .2: so player 0 leaves at once."""
    states = [
        [[(1.0, 0.0, -1)], [(0.5, 0.0, 1), (0.5, 0.0, -2)]],
        [[(0.5, 0.0, 0), (0.5, 0.0, -3)], [(1.0, 0.0, -2)]],
    ]
    known = [[0.5, 0.1, 0.4], [0.2, 0.3, 0.5], [0.1, 0.9, 0.0]]
    found = solved(three_players(states, [0, 1], known))
    np.testing.assert_allclose(found.lower, [[0.5, 0.1, 0.4], [0.3, 0.5, 0.2]], atol=1e-12)
    assert (found.lower <= found.upper).all() and found.gap < 1e-9


def test_several_players_whose_best_replies_settle_on_two_things_are_refused() -> None:
    """Either may leave, or hand on at a chance of a tenth that all is lost. Where player 1 hands
    on, player 0 leaves, and where they leave, player 0 hands on: both are equilibria."""
    lost = (0.1, 0.0, -3)
    states = [[[(1.0, 0.0, -1)], [(0.9, 0.0, 1), lost]], [[(1.0, 0.0, -2)], [(0.9, 0.0, 0), lost]]]
    known = [[0.5, 0.5, 0.0], [0.6, 0.4, 0.0], [0.0, 0.0, 1.0]]
    said = refused(three_players(states, [0, 1], known))
    assert "state 0 lies on a cycle with a choice in it, where the players' best" in said
    given_ = three_players(states, [0, 1], known)
    given_["known_upper"] = given_["known_upper"] + 1e-9  # bounds that best replies know nothing of
    known[1] = [0.1, 0.4, 0.5]
    assert solved(three_players(states, [0, 1], known)).lower[0, 0] == pytest.approx(0.5)
    assert "do not settle on one payoff" in refused(given_)


def test_choices_of_no_constant_sum_are_refused() -> None:
    general = arrays(CHOICE, [0], [1.0, 0.0])
    general["known_lower"] = general["known_upper"] = np.array([[1.0, 0.0], [0.0, 0.5]])
    assert "have no constant sum" in refused(general)
    paying = arrays(CHOICE, [0], [1.0, 0.0])
    for paid in ([1.0, 1.0], [1e-12, 0.0], [0.5, -0.25]):  # every time round, as often as one likes
        paying["rewards"] = np.tile(paid, (3, 1))
        assert "have no constant sum" in refused(paying)


def test_bounds_that_do_not_meet_are_refused_with_their_state(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A stopping rule that comes too early is in the certificate."""
    slow = arrays([[[(0.999, 0.0, 0), (0.001, 0.0, -1)], [(1.0, 0.0, -2)]]], [0], [1.0, 0.0])
    with monkeypatch.context() as patch:
        patch.setattr("luckbase.solver.search.cycles.MAX_SWEEPS", 10)
        said = refused(slow)
    assert "state 0 lies on a cycle whose bounds are" in said and "after 10 sweeps" in said
    assert solved(slow).lower[0, 0] == pytest.approx(1.0, abs=1e-9)
    assert "the tolerance is 1e-20" in refused({**slow, "tolerance": 1e-20})


def test_a_wrong_transition_moves_the_bounds_away() -> None:
    """Bounds are of the game that was given: with one child changed they exclude the value."""
    right = arrays([[[(0.5, 0.0, 0), (0.5, 0.0, -1)]]], [0], [1.0, 0.0])
    wrong = {**right, "children": np.array([0, 2])}
    assert solved(wrong).upper[0, 0] < solved(right).lower[0, 0]


# A whole game


def whole_tier(path: Path, **options: object) -> tuple[Game, FixedPoint, Floats]:
    """A game of one tier solved as one component, and the payoffs of its kernel."""
    layout = solver.load_layout(solver.load_board(path, **options))
    states = layout.states_at(0, np.arange(layout.rows(0)))
    edges = expand(layout.game, states)
    tier, rows = layout.locate(edges.children)
    over = np.flatnonzero(tier < 0)
    children = rows.copy()
    children[over] = len(states) + np.arange(len(over))
    known = final_payoffs(layout.game, edges.children[over])
    found = solve_equations(
        Equations(
            edges.first, children, edges.weights, edges.actions, edges.rewards, edges.actors,
            known, known,
        ),
        (0.0, 1.0), 1e-11,
    )  # fmt: skip
    out = np.empty(layout.shape(0))
    layout.solve_tier(0, out, lambda child: out, lambda: False)
    return layout.game, found, out


def test_skunk_as_one_component_has_its_kernels_payoffs() -> None:
    _, found, out = whole_tier(BOARDS / "skunk" / "tiny.toml", goal=12)
    assert found.gap <= 1e-11
    assert (found.lower[:, 0] <= out + 1e-14).all() and (out <= found.upper[:, 0] + 1e-14).all()


def test_a_cycle_without_a_choice_counts_what_its_edges_pay() -> None:
    """V = (2 + W) / 2 + 3 / 2 and W = 1 + V: 6 and 7."""
    children, weights = np.array([1, 0, 0]), np.array([0.5, 0.5, 1.0])
    edges = Lotteries(children, weights, np.zeros(3, np.int64), np.array([[2.0], [0.0], [1.0]]))
    inside, known = np.array([True, False, True]), np.array([[np.nan], [3.0], [np.nan]])
    values = _linear(np.array([0, 2, 3]), edges, inside, known)
    assert values is not None and values.tolist() == [[6.0], [7.0]]
