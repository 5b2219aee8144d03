"""The estimate of a search against exact counts where some of its levels are counted, and what says
that a search is hopeless."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from luckbase import solver
from luckbase.cluster.inputs import roots_of
from luckbase.solver.errors import SearchLimitError
from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.game import Game
from luckbase.solver.search import explore as module
from luckbase.solver.search.explore import Explorer, KnownStates, estimate, explore, plays
from luckbase.solver.search.keys import unpack_all
from tests.solver.search.moves import moves_of

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


COUNTED: dict[str, Explorer] = {}


def every_state(name: str, game: Game, roots: Ints) -> Explorer:
    """What lies below the roots of one of `GAMES`, met once."""
    if name not in COUNTED:
        COUNTED[name] = explore(game, roots, max_states=1_000_000)
    return COUNTED[name]


@pytest.mark.parametrize(("path", "options", "start"), GAMES)
def test_within_a_factor_of_three_of_the_exact_count(
    path: str,
    options: dict[str, object],
    start: dict[str, object] | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A third is counted, the rest is not; where there is no level to go by it says "more than"."""
    game, roots = load(path, options, start)
    found_all = every_state(repr((path, options, start)), game, roots)
    exact, rows = len(found_all.keys), int((found_all.kinds != module.OVER).sum())
    monkeypatch.setattr(module, "EXACT_STATES", exact // 3)
    found = estimate(game, roots)
    assert found.how in ("estimated", "formula")
    above = 1 if found.at_least else 3
    assert exact // 3 <= found.states <= above * exact
    monkeypatch.setattr(module, "EXACT_STATES", exact)
    counted = estimate(game, roots)
    assert (counted.how, counted.states) == ("counted", rows)


@pytest.mark.parametrize(
    ("earned", "exact", "share"),
    [("0,3,2", 1_799_108, 4), ("0,3,2", 1_799_108, 7), ("1,1,1", 5_948_561, 7)],
)
def test_known_large_searches(
    earned: str, exact: int, share: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "EXACT_STATES", exact // share)
    game, roots = load(PRESS, {}, {"scores": "0,2000,3500", "earned": earned})
    found = estimate(game, roots)
    assert found.how == "estimated" and not found.at_least
    assert exact / 3 <= found.states <= 3 * exact


@pytest.mark.parametrize("share", [3, 5, 10])
@pytest.mark.parametrize("goal", [40, 60])
def test_never_more_than_the_fields_leave_room_for(
    goal: int, share: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of Skunk a third counted says up to 27 times as many as there are."""
    game, roots = load("skunk/seed", {"goal": goal}, None)
    exact = len(explore(game, roots).keys)
    monkeypatch.setattr(module, "EXACT_STATES", exact // share)
    assert estimate(game, roots).states <= 2 * (goal + 1) ** 3


def test_small_searches_are_counted() -> None:
    game, roots = load(TINY, {}, {"scores": "0,1000,500", "earned": "1,1,1"})
    found = estimate(game, roots)
    assert found.how == "counted"
    every = explore(game, roots)
    assert found.states == (every.kinds != module.OVER).sum() < len(every.keys) == len(found.keys)


def test_the_same_whenever_it_is_asked_and_in_whichever_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Several roots are one search: less than the sum of both, which have much in common."""
    monkeypatch.setattr(module, "EXACT_STATES", 40_000)
    starts = [{**SMALL, "earned": earned} for earned in ("1,2,1", "2,1,1")]
    game, roots = load(PRESS, BIG, starts)
    exact = len(explore(game, roots).keys)
    found, again = estimate(game, roots), estimate(game, np.concatenate([roots, roots])[::-1])
    assert found.states == again.states and np.array_equal(found.keys, again.keys)
    assert exact / 3 <= found.states <= 3 * exact


def test_the_states_met_are_of_all_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plays at random go on where the count stops."""
    game, roots = load(PRESS, BIG, {**SMALL, "earned": "1,2,1"})
    every = explore(game, roots).keys
    monkeypatch.setattr(module, "EXACT_STATES", 1_000)
    keys = estimate(game, roots).keys
    assert np.isin(keys, every).all()
    spins = [i for i, name in enumerate(game.columns) if name.startswith(("earned", "passed"))]
    met = unpack_all(game.strides, keys)[:, spins].sum(axis=1)
    assert set(met.tolist()) == {0, 1, 2, 3, 4}


def test_half_of_the_bend_is_what_makes_it_right(monkeypatch: pytest.MonkeyPatch) -> None:
    game, roots = load(PRESS, {}, {"scores": "0,2000,3500", "earned": "0,3,2"})
    monkeypatch.setattr(module, "EXACT_STATES", 250_000)
    monkeypatch.setattr(module, "BEND", 2.0)
    assert estimate(game, roots).states < 1_799_108 / 3
    monkeypatch.setattr(module, "BEND", 0.1)
    assert estimate(game, roots).at_least  # far too many


def test_what_is_too_large_is_said_to_be_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EXACT_STATES", 500)
    game, roots = load(PRESS, BIG, {**SMALL, "earned": "3,3,3"})
    found = estimate(game, roots)
    assert found.at_least and found.how != "counted" and found.states >= 500


# --- far too many ---------------------------------------------------------------------------------


def met(game: Game, roots: Ints, sizes: list[int]) -> Explorer:
    """One that has met so many states of each level."""
    explorer = Explorer(game, roots)
    explorer.first = np.cumsum([0, *sizes]).tolist()
    return explorer


@pytest.mark.parametrize(("path", "options", "start"), GAMES)
def test_what_can_be_searched_is_never_refused(
    path: str,
    options: dict[str, object],
    start: dict[str, object] | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """At no level of any search, with a hundredth of the states to tell by, and a limit that just
    does."""
    game, roots = load(path, options, start)
    sizes = np.diff(every_state(repr((path, options, start)), game, roots).first).tolist()
    monkeypatch.setattr(module, "TELLING", max(sum(sizes) // 4, 500))
    for levels in range(1, len(sizes)):
        assert not met(game, roots, sizes[:levels]).far_more_than(sum(sizes))


def test_a_hopeless_search_is_told_by_its_first_states() -> None:
    game, roots = load(PRESS, {"score_unit": 500}, {"scores": "3000,5000,4000", "earned": "8,8,5"})
    sizes = [1, 12, 52, 228, 964, 3049, 7757, 17344, 35790, 70423, 130722, 246424, 450961, 768511]
    assert met(game, roots, sizes).far_more_than(10_000_000) > 20_000_000
    assert met(game, roots, sizes[:9]).far_more_than(1) > 2  # 65,197 states
    assert not met(game, roots, sizes[:8]).far_more_than(1)
    assert not met(game, roots, sizes).far_more_than(1 << 40)


@pytest.mark.parametrize("known", [None, lambda states: states[:, 0] > 1 << 40])
def test_it_is_refused_where_it_is_told(known: KnownStates | None) -> None:
    game, roots = load(PRESS, {"score_unit": 500}, {"scores": "3000,5000,4000", "earned": "8,8,5"})
    where = "below" if known is None else "above the table"
    said = rf"more than [0-9.]+ million states lie {where}; the search may find 1 million \("
    seen: list[int] = []
    with pytest.raises(SearchLimitError, match=said):
        explore(
            game, roots, known=known, max_states=1_000_000, on_level=lambda n, _: seen.append(n)
        )
    assert max(seen) < 500_000


def test_a_tree_that_ends_all_at_once_is_not_refused() -> None:
    """Plays at random say how many levels there may still be."""
    game = moves_of(*([(-1,)] * 3), high=12)
    sizes = [4**level for level in range(9)]
    assert sum(sizes) > module.TELLING
    assert not met(game, np.array([[9]]), sizes).far_more_than(2 * 4**9)
    assert met(game, np.array([[12]]), sizes).far_more_than(4**9)


def test_plays_end_at_what_is_held() -> None:
    game, root = moves_of((-1,), high=12), np.array([[9]])
    keys, steps = plays(game, root)
    assert sorted(unpack_all(game.strides, keys)[:, 0].tolist()) == list(range(10))
    assert set(steps.tolist()) == {9}
    keys, steps = plays(game, root, lambda states: states[:, 0] <= 4)
    assert sorted(unpack_all(game.strides, keys)[:, 0].tolist()) == [4, 5, 6, 7, 8, 9]
    assert set(steps.tolist()) == {5} and len(steps) == module.PLAYS
