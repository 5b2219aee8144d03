"""Components of states that come back to each other: values against exact fractions, and no bound
on an error exceeded; what is refused, in a sentence."""

import itertools
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest

from luckbase.solver.game.rules import JOINT
from luckbase.solver.search.bellman import JOINTLY
from luckbase.solver.search.cycles import (
    AT_ONCE,
    NO_SUM,
    UNSETTLED,
    Component,
    found_for,
    solve_component,
    solve_jointly,
    view_of,
)
from luckbase.solver.search.elimination import SOLVED, arrange, factors_for, work_for
from luckbase.solver.search.policies import FREE, NO_EXIT, PAYS, _iterate, certify, first_policy
from tests.reference import linear


class Edge(NamedTuple):
    """An outcome: `child` is a state, or None for an end that is worth `worth` to player 0."""

    weight: float
    child: int | None
    worth: float = 0.0
    reward: float = 0.0


def component(states, players=2, names=None):
    """The component of these states, for one player or two of sum 0."""
    actions = [action for _, state in states for action in state]
    edges = [edge for action in actions for edge in action]
    rewards = np.array([[edge.reward, -edge.reward][:players] for edge in edges])
    counts = np.cumsum([0, *map(len, actions)])
    return Component(
        np.cumsum([0, *(len(state) for _, state in states)]), counts,
        np.array([edge.weight for edge in edges]),
        np.array([-1 - i if e.child is None else e.child for i, e in enumerate(edges)]),
        rewards, np.arange(len(actions)) if names is None else np.array(names),
        np.array([actor for actor, _ in states]), 0.0,
    )  # fmt: skip


def rows_of(states, players=2):
    worths = [edge.worth for _, state in states for action in state for edge in action]
    return np.array([[0.0, worth, -worth][: 1 + players] for worth in worths])


LIMITS = np.array([1e-12, -1e3, 1e3, 1e-9])


def solved(states, players=2, names=None):
    c, rows = component(states, players, names), rows_of(states, players)
    result = found_for(len(states), players)
    status = solve_component(c, rows, LIMITS, result)
    if status == AT_ONCE:
        status = solve_jointly(c, rows, LIMITS, result)
    assert status == SOLVED
    return result


def status_of(states, players=2):
    result = found_for(len(states), players)
    c, rows = component(states, players), rows_of(states, players)
    return solve_component(c, rows, LIMITS, result), result


def policy_values(states, policy):
    """What a policy is worth, in fractions; None if it never ends. Weights count by their share."""
    rows = []
    for x, (_, state) in enumerate(states):
        row = [Fraction(0)] * (len(states) + 1)
        row[x] += 1
        action = state[policy[x]]
        total = sum(Fraction(edge.weight) for edge in action)
        for edge in action:
            p = Fraction(edge.weight) / total
            row[-1] += p * (Fraction(edge.reward) + Fraction(edge.worth))
            if edge.child is not None:
                row[edge.child] -= p
        rows.append(row)
    try:
        return [value for (value,) in linear.solve(rows)]
    except ZeroDivisionError:
        return None


def exact(states):
    """The values by trying all pairs of strategies; one that never ends is no strategy of player
    0's."""
    best = None
    own = [range(len(state)) if actor != 1 else range(1) for actor, state in states]
    other = [range(len(state)) if actor == 1 else range(1) for actor, state in states]
    for mine in itertools.product(*own):
        replies = [
            policy_values(states, tuple(m + t for m, t in zip(mine, theirs, strict=True)))
            for theirs in itertools.product(*other)
        ]
        values = [each for each in replies if each is not None]
        if len(values) == len(replies):
            least = [min(column) for column in zip(*values, strict=True)]
            best = least if best is None else list(map(max, best, least))
    return best


def assert_within(result, right, relative, least=1e-3):
    """No bound is exceeded, and values above `least` have a small relative error."""
    for x, value in enumerate(right):
        off = abs(Fraction(float(result.values[x, 0])) - value)
        assert off <= Fraction(float(result.errors[x])), (x, float(off), result.errors[x])
        assert float(off) <= relative * max(float(abs(value)), least)


def random_states(seed, rewards):
    """Two to four states with ends as rare as 1e-14; every action ends the play now and then."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 5))
    states = []
    for x in range(n):
        actions = []
        for _ in range(int(rng.integers(1, 4))):
            rare = float(10.0 ** -rng.integers(0, 15) * rng.uniform(0.1, 1.0))
            children = [(x + 1) % n, *map(int, rng.choice(n, int(rng.integers(0, n))))]
            share = rng.dirichlet(np.ones(len(children))) * (1 - rare)
            paid = [float(rng.normal()) if rewards else 0.0 for _ in children]
            worth = float(rng.normal()) if rewards else float(rng.random())
            action = [
                Edge(float(p), y, 0.0, r) for p, y, r in zip(share, children, paid, strict=True)
                if p > 0
            ]  # fmt: skip
            actions.append([*action, Edge(rare, None, worth)])
        states.append((int(rng.integers(0, 2)), actions))
    return states


@pytest.mark.parametrize("seed", range(40))
def test_values_are_the_fractions_and_no_bound_is_exceeded(seed):
    """With rewards on the way the sums of a play of 1e14 rounds are as large as that."""
    states = random_states(seed, rewards=seed % 4 == 3)
    assert_within(solved(states), exact(states), 1e-12)


def certified(c, rows, spoil, out):
    """Solve a component, spoil its values, and write values and bounds to out (3, n); a status. In
    Python, as to compile it takes longer than all tests of cycles."""
    g = view_of(c, rows, 0, np.empty(0, np.int64))
    n, k, f = g.actors.size, work_for(g.actors.size), factors_for(64 * g.actors.size + 64)
    actions = g.first.size - 1
    gains, margins, allowed = np.empty(actions), np.empty(actions), np.empty(actions, np.bool_)
    arrange(g, k)
    first_policy(g, k, False)
    got = _iterate(g, k, f)
    if got == SOLVED:
        for x in range(n):
            k.hi[x] += spoil[x]
        got = certify(g, k, f, 0.0, gains, margins, allowed, False)
    for x in range(n):
        out[0, x], out[1, x], out[2, x] = k.hi[x] + k.lo[x], k.below[x], k.above[x]
    return got


@pytest.mark.parametrize("seed", range(20))
def test_the_certificate_covers_values_that_were_spoiled(seed):
    """It is a proof about any values, not only about those that the iteration found."""
    states = random_states(seed, rewards=seed % 2 == 1)
    right = exact(states)
    full, rows = component(states), rows_of(states)
    rng, n = np.random.default_rng(seed), len(states)
    for size in (1e-14, 1e-9, 1e-4, 0.1):
        out = np.empty((3, n))
        spoil = rng.normal(size=n) * size
        assert certified(full, rows, spoil, out) == SOLVED
        for x, value in enumerate(right):
            off = Fraction(float(out[0, x])) - value
            slack = Fraction(2.0**-52) * max(1, abs(value))  # hi + lo was rounded once more
            assert -Fraction(float(out[2, x])) - slack <= off <= Fraction(float(out[1, x])) + slack


@pytest.mark.parametrize("seed", range(12))
def test_cycles_that_cost_something_are_solved(seed):
    """Player 0 may go round for ever, and pays for every step; player 1 always ends the play now
    and then. A play without an end is worth minus infinity."""
    rng, n = np.random.default_rng(100 + seed), 3
    states = []
    for x in range(n):
        if x == 2 and seed % 2:
            rounds = [
                [Edge(0.9, int(rng.integers(0, 2))), Edge(0.1, None, float(rng.normal()))]
                for _ in range(2)
            ]
            states.append((1, rounds))
            continue
        costs = -rng.integers(1, 9, 2) / 8
        leave = [Edge(1.0, None, float(rng.normal()))]
        go_on = [[Edge(1.0, (x + k) % n, 0.0, float(costs[k - 1]))] for k in (1, 2)]
        states.append((0, [leave, *go_on]))
    assert_within(solved(states), exact(states), 1e-14)


def value_of_two_by_two(m):
    (a, b), (c, d) = m
    low, high = max(min(a, b), min(c, d)), min(max(a, c), max(b, d))
    return low if low == high else (a * d - b * c) / (a + d - b - c)


@pytest.mark.parametrize("seed", range(20))
def test_both_choose_at_once_on_a_cycle(seed):
    """Shapley's games of two states and a third one where player 0 or 1 decides alone, against
    value iteration with 60 digits."""
    rng, n = np.random.default_rng(200 + seed), 3
    states = []
    names = []
    for x in range(n):
        pairs = range(4 if x < 2 else 2)
        names += [i // 2 * JOINT + i % 2 if x < 2 else i for i in pairs]
        actions = []
        for _ in pairs:
            end = float(rng.choice([0.0625, 0.25, 0.5]))
            reward = float(rng.integers(-8, 9)) / 4
            actions.append(
                [Edge(1 - end, int(rng.integers(0, n)), 0.0, reward), Edge(end, None, 0.0, reward)]
            )
        states.append((JOINTLY if x < 2 else seed % 2, actions))
    result = solved(states, 2, names)
    with localcontext() as context:
        context.prec = 60
        v = [Decimal(0)] * n
        for _ in range(2200):
            q = [
                [
                    sum(
                        Decimal(e.weight)
                        * (Decimal(e.reward) + (Decimal(0) if e.child is None else v[e.child]))
                        for e in action
                    )
                    for action in state
                ]
                for _, state in states
            ]
            v = [
                value_of_two_by_two([q[0][:2], q[0][2:]]),
                value_of_two_by_two([q[1][:2], q[1][2:]]),
                max(q[2]) if seed % 2 == 0 else min(q[2]),
            ]
        assert_within(result, [Fraction(each) for each in v], 1e-12, 1.0)
        assert result.errors.max() < 1e-12


# --- several players ------------------------------------------------------------------------------


def three_players(states, payoffs):
    """As `component`; an end is the number `worth` of the payoffs."""
    c = component(states)
    outside = c.children < 0
    ends = rows_of(states)[:, 1].astype(int)
    children = np.where(outside, -1 - ends, c.children)
    rows = np.column_stack([np.zeros(len(payoffs)), np.array(payoffs)])
    return c._replace(rewards=np.empty((0, 3)), children=children), rows, found_for(len(states), 3)


def test_three_players_whose_best_replies_settle_on_two_equilibria_are_refused():
    """Either may leave, or hand on at a chance of a tenth that all is lost. If player 1 hands on,
    player 0 leaves; if they leave, player 0 hands on: both are equilibria."""
    lost = Edge(0.1, None, 2)
    states = [
        (0, [[Edge(1.0, None, 0)], [Edge(0.9, 1), lost]]),
        (1, [[Edge(1.0, None, 1)], [Edge(0.9, 0), lost]]),
    ]
    payoffs = [[0.5, 0.5, 0.0], [0.6, 0.4, 0.0], [0.0, 0.0, 1.0]]
    c, rows, result = three_players(states, payoffs)
    limits = np.array([1e-12, 0.0, 1.0, 1e-9])
    assert solve_component(c, rows, limits, result) == UNSETTLED
    payoffs[1] = [0.1, 0.4, 0.5]
    c, rows, result = three_players(states, payoffs)
    assert solve_component(c, rows, limits, result) == SOLVED
    np.testing.assert_allclose(result.values, [[0.5, 0.5, 0.0], [0.45, 0.45, 0.1]], atol=1e-15)


# --- what is refused ------------------------------------------------------------------------------

WHOEVER_THROWS_LOSES = [
    (0, [[Edge(1.0, 1)], [Edge(0.75, None, -1.0), Edge(0.25, 1)]]),
    (1, [[Edge(1.0, 0)], [Edge(0.75, None, 1.0), Edge(0.25, 0)]]),
]


def paid_round(pays, costs):
    """One player goes round between two states, or leaves."""
    return [
        (0, [[Edge(1.0, 1, 0.0, pays)], [Edge(1.0, None, 1.0)]]),
        (0, [[Edge(1.0, 0, 0.0, -costs)], [Edge(1.0, None, 1.0)]]),
    ]


@pytest.mark.parametrize(
    ("states", "players", "status"),
    [(WHOEVER_THROWS_LOSES, 2, FREE), (paid_round(0.5, 0.25), 1, PAYS),
     (paid_round(0.25, 0.25), 1, FREE)],
)  # fmt: skip
def test_a_cycle_that_costs_nothing_or_pays_is_refused_with_its_actions(states, players, status):
    text, result = status_of(states, players)
    assert (text, result.cycle.tolist()) == (status, [0, 2])


def test_a_cycle_without_a_way_out_is_refused():
    assert status_of([(0, [[Edge(1.0, 1)]]), (1, [[Edge(1.0, 0)]])])[0] == NO_EXIT


STAY_OR_LEAVE = [(0, [[Edge(0.5, 0), Edge(0.5, None, 1.0)], [Edge(1.0, None, 0.5)]])]


def test_choices_of_no_constant_sum_are_refused():
    c, rows, result = component(STAY_OR_LEAVE), rows_of(STAY_OR_LEAVE), found_for(1, 2)
    assert solve_component(c, rows, LIMITS, result) == SOLVED
    rows[1, 2] += 1e-6
    assert solve_component(c, rows, LIMITS, result) == NO_SUM
    c.rewards[0] = [1e-12, 0.0]
    assert solve_component(c, rows_of(STAY_OR_LEAVE), LIMITS, result) == NO_SUM


def test_children_that_are_off_are_in_the_error():
    c, result = component(STAY_OR_LEAVE)._replace(off=0.125), found_for(1, 2)
    assert solve_component(c, rows_of(STAY_OR_LEAVE), LIMITS, result) == SOLVED
    assert 0.125 <= result.errors[0] < 0.125 + 1e-12
