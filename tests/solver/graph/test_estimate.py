"""The estimate of a search against exact counts: within a factor of two, on small boards with the
counting switched off, and on known large ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from luckbase import solver
from luckbase.cluster.given import roots_of
from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.game import Game
from luckbase.solver.graph import estimate as module
from luckbase.solver.graph.estimate import estimate
from luckbase.solver.graph.explore import Explorer, explore

BOARDS = Path(__file__).parents[3] / "boards"
PRESS, TINY = "press-your-luck/1985-02", "press-your-luck/tiny"
BIG, SMALL = {"score_unit": 1000}, {"scores": "1000,6000,2000"}
GAMES: list[tuple[str, dict[str, object], dict[str, object] | None]] = [
    (PRESS, BIG, {**SMALL, "earned": "1,2,1"}),
    (PRESS, BIG, {**SMALL, "earned": "0,1,2", "passed": "0,2,0"}),
    (PRESS, BIG, {**SMALL, "earned": "1,1,1", "whammies": "3,2,0"}),
    (PRESS, BIG, {"scores": "0,0,0", "earned": "1,1,1"}),
    (PRESS, {"score_unit": 500}, {**SMALL, "earned": "0,3,0"}),
    (PRESS, {}, {"scores": "0,2000,3500", "earned": "3,0,0"}),
    (TINY, {}, {"scores": "0,1000,500", "earned": "2,2,2"}),
    ("goofspiel/points", {"cards": 7}, None),
    ("goofspiel/win", {"cards": 6}, None),
    ("goofspiel/tiny", {}, None),
    ("jackpot/seed", {}, None),
    ("jackpot/shut-the-box", {}, None),
    ("skunk/seed", {"goal": 60}, None),
    ("skunk/seed", {}, {"mine": 60, "yours": 50, "turn": 10}),
    ("pig/race", {"goal": 60}, None),
    ("pig/race", {}, {"mine": 20, "yours": 50, "turn": 10}),
    ("pig/rounds", {"rounds": 3, "cut": 100}, None),
]  # fmt: skip


def load(path: str, options: dict[str, object], start: object) -> tuple[Game, Ints]:
    game = solver.load_game(solver.load_board(BOARDS / f"{path}.toml", **options))
    roots = roots_of(game, start)
    return game, game.needed_start().reshape(1, -1) if roots is None else roots


@pytest.mark.parametrize(("path", "options", "start"), GAMES)
def test_within_a_factor_of_two_of_the_exact_count(
    path: str,
    options: dict[str, object],
    start: dict[str, object] | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    game, roots = load(path, options, start)
    exact = len(explore(game, roots, max_states=1_000_000).keys)
    monkeypatch.setattr(module, "EXACT_STATES", 5_000)
    found = estimate(game, roots)
    assert found.exact == (exact <= 5_000) and not found.at_least
    assert exact / 2 <= found.states <= 2 * exact
    assert not found.exact or found.states == exact


@pytest.mark.parametrize(("earned", "exact"), [("0,3,2", 1_799_108), ("1,1,1", 5_948_561)])
def test_known_large_searches(earned: str, exact: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What `explore` counted in 3 s and in 13 s."""
    monkeypatch.setattr(module, "EXACT_STATES", 300_000)
    game, roots = load(PRESS, {}, {"scores": "0,2000,3500", "earned": earned})
    found = estimate(game, roots)
    assert found.how == "estimated" and exact / 2 <= found.states <= 2 * exact


def test_what_is_known_to_be_too_many_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EXACT_STATES", 300_000)
    counted: list[int] = []

    def explorer(game: Game, roots: Ints, max_states: int) -> Explorer:
        counted.append(max_states)
        return Explorer(game, roots, max_states=max_states)

    monkeypatch.setattr(module, "Explorer", explorer)
    game, roots = load(PRESS, {}, {"scores": "0,2000,3500", "earned": "0,3,2"})
    one, other = (estimate(game, roots, at_least=known) for known in (300_000, 300_001))
    assert counted == [300_000, module.SAMPLE_STATES] and module.SAMPLE_STATES < 300_000
    assert one.how == other.how == "estimated"
    assert 1_799_108 / 2 <= other.states <= 2 * 1_799_108


def test_small_searches_are_counted() -> None:
    game, roots = load(TINY, {}, {"scores": "0,1000,500", "earned": "1,1,1"})
    found = estimate(game, roots)
    assert found.exact and found.states == len(explore(game, roots).keys) == len(found.keys)


def test_the_same_whenever_it_is_asked_and_in_whichever_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Several roots are one search: less than the sum of both, which have much in common."""
    monkeypatch.setattr(module, "EXACT_STATES", 5_000)
    starts = [{**SMALL, "earned": earned} for earned in ("1,2,1", "2,1,1")]
    game, roots = load(PRESS, BIG, starts)
    exact = len(explore(game, roots).keys)
    found, again = estimate(game, roots), estimate(game, np.concatenate([roots, roots])[::-1])
    assert found.states == again.states and np.array_equal(found.keys, again.keys)
    assert exact / 2 <= found.states <= 2 * exact
    alone = [estimate(game, root.reshape(1, -1)).states for root in roots]
    assert max(alone) * 0.8 < found.states < sum(alone)


def test_groups_and_the_ends_of_sums_are_what_makes_it_right(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without the cuts a score that nobody touched is any score; without the ends of sums and
    differences the points of a turn go as high as if nothing was banked; without either the
    product of the columns is far too much."""
    monkeypatch.setattr(module, "EXACT_STATES", 5_000)
    press = load(PRESS, {}, {"scores": "0,2000,3500", "earned": "3,0,0"})
    right = estimate(*press).states
    pig = load("pig/race", {"goal": 60}, None)
    below = estimate(*pig).states
    with monkeypatch.context() as patched:
        patched.setattr(module, "_spread", lambda values, most: values[:0])
        assert estimate(*press).states > 4 * right
    with monkeypatch.context() as patched:
        patched.setattr(module, "MOST_SIDED", 0)
        assert estimate(*pig).states > 1.6 * below


def test_larger_ones_are_looked_at_less_closely(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each coarser look, made to follow by smaller limits, is still within a factor of two."""
    for name, most in (("EXACT_STATES", 5_000), ("FIRST_KEPT", 500), ("OWN_KEPT", 1_000)):
        monkeypatch.setattr(module, name, most)
    game, roots = load(PRESS, {}, {"scores": "0,2000,3500", "earned": "1,1,2"})
    for most in (400_000, 1_000):
        monkeypatch.setattr(module, "NONE_KEPT", most)
        found = estimate(game, roots)
        assert not found.at_least and 13.4e6 / 2 <= found.states <= 2 * 13.4e6


@pytest.mark.parametrize(("unit", "spins", "exact"), [(500, 5, 410_138), (1000, 8, 734_674)])
def test_a_search_in_which_one_player_only_has_spins(
    unit: int, spins: int, exact: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Too many to be looked at closely, and without the cuts it seems any score of the others could
    come up; thinned out they stay apart."""
    for name, most in (("EXACT_STATES", 5_000), ("OWN_KEPT", 50_000)):
        monkeypatch.setattr(module, name, most)
    start = {"scores": "0,8000,3000", "earned": f"0,{spins},0"}
    game, roots = load(PRESS, {"score_unit": unit}, start)
    found = estimate(game, roots)
    assert exact / 2 <= found.states <= 2 * exact and not found.at_least
    monkeypatch.setattr(module, "CUT_KEPT", 1_000)
    assert estimate(game, roots).states > 4 * exact


def test_what_is_too_large_is_said_to_be_at_least(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = ("EXACT_STATES", "FIRST_KEPT", "OWN_KEPT", "NONE_KEPT", "MOST_KEPT")
    for name in limits:
        monkeypatch.setattr(module, name, 500)
    game, roots = load(PRESS, BIG, {**SMALL, "earned": "3,3,3"})
    found = estimate(game, roots)
    assert found.at_least and not found.exact and found.states >= 500
