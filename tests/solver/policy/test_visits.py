"""How often a play comes to each state: exactly, however long it lasts; a trap is refused."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from luckbase.solver.errors import StateError
from luckbase.solver.policy import chain as counting
from luckbase.solver.policy.agents import asking, random_player
from luckbase.solver.policy.chain import Chain, NeverEnds, explore_profile, visits
from tests.reference import linear
from tests.solver.board.board_files import assert_one_sentence
from tests.solver.search.written_out import State, chance, decides, over, written

Edges = list[list[tuple[float, int]]]


def counted(states: Edges) -> np.ndarray:
    """`visits` of a chain: of each state its edges (chance, child)."""
    flat = [edge for state in states for edge in state]
    return visits(
        np.concatenate([[0], np.cumsum([len(state) for state in states])]).astype(np.int64),
        np.array([child for _, child in flat], np.int32),
        np.array([c for c, _ in flat], np.float64),
    )


def exactly(states: Edges, flow: tuple[int, ...] = (1,)) -> list[Fraction]:
    """The same in fractions by elimination; a chance of staying is what the others leave. flow: how
    many plays begin in each state."""
    n = len(states)
    rows = [[Fraction(0)] * (n + 1) for _ in range(n)]
    for x, plays in enumerate(flow):
        rows[x][n] = Fraction(plays)
    for x, edges in enumerate(states):
        rows[x][x] += 1 if not edges else sum(Fraction(c) for c, y in edges if y != x)
        for c, y in edges:
            if y != x:
                rows[y][x] -= Fraction(c)
    return linear.solve(rows)


@st.composite
def chains(draw: st.DrawFn) -> Edges:
    """Chains in which every state leads on, if seldom; some are left once in 2 ** 40 times."""
    n = draw(st.integers(1, 9))
    states: Edges = []
    for x in range(n):
        out = 2.0 ** -draw(st.sampled_from([1, 3, 20, 40]))
        back = draw(st.integers(0, n - 1))
        states.append(
            [(0.5 - out / 2, back), (0.5 - out / 2, draw(st.integers(0, x))), (out, x + 1)]
        )
    return [*states, []]


@given(chains())
def test_visits_are_the_fractions_to_nearly_all_digits(states: Edges) -> None:
    found = counted(states)
    for x, right in enumerate(exactly(states)):
        assert found[x] == pytest.approx(float(right), rel=1e-13)


@given(chains())
def test_a_large_components_sweeps_give_the_same(states: Edges) -> None:
    """Chains in which a play may stay 2 ** 20 steps and more are beyond them, also where it seldom
    comes there, and then they say so."""
    right = np.array([float(x) for x in exactly(states)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "MAX_DENSE", 1)
        patch.setattr(counting, "MAX_SWEEPS", 2000)
        try:
            found = counted(states)
        except StateError as error:
            assert min(edges[-1][0] for edges in states[:-1]) <= 2.0**-20
            assert_one_sentence(error)
            return
    assert np.abs(found - right).max() <= 2 * counting.CLOSE * right.max()


def test_plays_of_ten_million_steps_are_counted_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two states that pass to each other, left once in 10^7 steps, then a third: not by sweeps."""
    monkeypatch.setattr(counting, "MAX_SWEEPS", 0)
    out = 1e-7
    states = [[(1.0 - out, 1), (out, 2)], [(1.0 - out, 0), (out, 2)], [(1.0, 3)], []]
    found = counted(states)
    assert found[0] + found[1] == pytest.approx(1e7, rel=1e-13)
    assert found[0] == pytest.approx(1 / (out * (2 - out)), rel=1e-13)
    assert found[2:].tolist() == pytest.approx([1.0, 1.0], rel=1e-13)


@pytest.mark.parametrize("n", [300, 3000])
def test_long_plays_round_a_large_ring_are_counted(n: int) -> None:
    """n states in a ring, each skipping one half of the time, left once in 10^7 steps."""
    out = 1e-7
    half = (1 - out) / 2
    found = counted([*([(half, (x + 1) % n), (half, (x + 2) % n), (out, n)] for x in range(n)), []])
    assert found[:n].sum() == pytest.approx(1e7, rel=1e-5)
    assert found[:n] == pytest.approx(1e7 / n, rel=0.01)
    assert found[n] == pytest.approx(1, rel=1e-6)


def test_a_large_component_is_not_done_before_it_is_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    """A walk on a line, back at its one end and out at the other: 2 (n - x) visits. It needs tens
    of thousands of sweeps."""
    monkeypatch.setattr(counting, "MAX_DENSE", 1)
    n = 400
    line = [[(1.0, 1)], *([(0.5, x - 1), (0.5, x + 1)] for x in range(1, n)), []]
    right = np.array([n, *(2.0 * (n - x) for x in range(1, n)), 1.0])
    found = counted(line)
    assert np.abs(found - right).max() <= 2 * counting.CLOSE * right.max()


@given(chains(), st.sampled_from([1.0, 0.125]), st.floats(-1e-3, 1e-3))
def test_what_a_large_components_visits_may_be_off_by_is_proved(
    states: Edges, scale: float, wrong: float
) -> None:
    """Of any x by any z: of the right ones rounded to float64, too, where the residual as computed
    may be 0, and of a z that is an eighth of them."""
    n = len(states) - 1
    moves = [(y, x, c) for x, state in enumerate(states) for c, y in state if n > y != x]
    moves.sort()
    first = np.searchsorted([y for y, _, _ in moves], np.arange(n + 1))
    sources, weights = (
        np.array([x for _, x, _ in moves], np.int64),
        np.array([c for *_, c in moves]),
    )
    out = np.array([sum(c for c, y in state if y != x) for x, state in enumerate(states[:n])])
    right, steps = exactly(states)[:n], exactly(states, (1,) * n)[:n]
    x = np.array([float(v) for v in right]) * (1 + wrong)
    z = np.array([float(v) for v in steps]) * scale
    found = counting.off_by(first, sources, weights.astype(float), out, np.eye(n)[0], x, z)
    for value, exact, most in zip(x.tolist(), right, found.tolist(), strict=True):
        assert most == np.inf or abs(Fraction(value) - exact) <= Fraction(most)


def chain_of(*states: State) -> Chain:
    """The chain of a written game whose players choose at random."""
    game = written(*states, players=1)
    return explore_profile(game, game.start(), [asking(random_player)])


def test_a_trap_is_refused_with_a_state_of_it() -> None:
    chain = chain_of(
        decides(0, [(1.0, 1)], [(1.0, 2)]),
        chance((0.5, 0), (0.5, 4)),
        chance((1.0, 3)),
        chance((0.5, 2), (0.5, 3)),
        over(1.0),
    )
    with pytest.raises(StateError, match=r"a play may never end: once at at=[23]") as found:
        chain.reach()
    assert_one_sentence(found.value)


def test_a_state_that_leads_to_itself_only_is_a_trap() -> None:
    with pytest.raises(NeverEnds) as found:
        counted([[(0.5, 1), (0.5, 2)], [(1.0, 1)], []])
    assert found.value.number == 1


def test_a_trap_that_no_play_comes_to_is_none() -> None:
    """State 2 is another root of the chain."""
    assert counted([[(1.0, 1)], [], [(1.0, 2)], [(0.5, 0), (0.5, 2)]]).tolist() == [1, 1, 0, 0]


def test_a_game_without_cycles_is_counted_in_chances() -> None:
    chain = chain_of(
        decides(0, [(1.0, 1)], [(0.5, 1), (0.5, 2)]),
        chance((0.25, 2), (0.75, 3)),
        over(0.0),
        over(1.0),
    )
    at = chain.states(np.arange(4))[:, 0]
    assert chain.reach()[np.argsort(at)].tolist() == [1.0, 0.75, 0.25 + 0.75 / 4, 0.75 * 0.75]


def test_many_states_behind_one_another_are_no_deep_recursion() -> None:
    n = 200_000
    assert counted([*([(1.0, x + 1)] for x in range(n)), []]).sum() == n + 1
