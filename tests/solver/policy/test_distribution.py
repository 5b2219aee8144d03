"""How what is counted of a play is spread, held to all plays gone through one by one."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import luckbase
from luckbase.cluster.play.evaluate import Count
from luckbase.solver.board.file import board_from_canonical
from luckbase.solver.board.model import Board
from luckbase.solver.errors import OptionError, StateError
from luckbase.solver.games.press_your_luck.game import always_pass, never_pass
from tests.reference.press_your_luck import State
from tests.reference.press_your_luck_money import Money, plays
from tests.solver.board.board_files import BOARDS


def half(house: bool, **rules: Any) -> tuple[Board, Money]:
    """A board on which no spin comes back: a whammy, $1,000 or $2,000; and the reference's."""
    objective = {"objective": "money", "house": True} if house else {}
    board = board_from_canonical("half", {
        "game": "press-your-luck", "outcomes": {"whammy": "1/2", "1000": "1/4", "2000": "1/4"},
        "rules": {**rules, **objective}, "solve": {"score_unit": 1000, "score_cap": 3000},
    })  # fmt: skip
    slides = (("whammy",), ("whammy",), ("money", 1, 0), ("money", 2, 0))
    return board, Money((slides,), 3, "random", house=house, **rules)


def of(counts: Any, what: str, player: int | None = None) -> Count:
    (found,) = (each for each in counts if (each.what, each.player) == (what, player))
    return found


@settings(max_examples=15, suppress_health_check=list(HealthCheck), deadline=None)
@given(
    st.booleans(), st.sampled_from([1, 2]), st.sampled_from([never_pass, always_pass]),
    st.lists(st.integers(0, 3), min_size=3, max_size=3),
    st.lists(st.integers(0, 1), min_size=6, max_size=6).filter(any),
)  # fmt: skip
def test_distributions_are_those_of_all_plays(
    house: bool, most: int, agent: Any, scores: list[int], spins: list[int]
) -> None:
    board, reference = half(house, max_whammies=most)
    earned, passed = tuple(spins[:3]), tuple(spins[3:])

    def decide(state: State, names: list[str]) -> str:
        passes = [name for name in names if name.startswith("pass")]
        return passes[0] if agent is always_pass and passes else names[0]

    def choose(game: Any, player: int, state: Any, actions: list[int]) -> int:
        if len(actions) == 2 and game.action_name(actions[1]) == "stop":
            return 0
        return int(agent(game, player, state, actions))

    state = State(tuple(scores), earned, passed, (0, 0, 0))  # type: ignore[arg-type]
    every = plays(reference, state, decide, 20)
    assert sum(every.values()) == pytest.approx(1, abs=1e-12)
    start = {"scores": [1000 * x for x in scores], "earned": earned, "passed": passed}
    found = luckbase.evaluate(board, choose, start, distribution=True).distribution

    def holds(what: str, player: int | None, number: Any) -> None:
        expected: dict[float, float] = defaultdict(float)
        for (end, count), chance in every.items():
            expected[number(end, count)] += chance
        one = of(found, what, player)
        assert dict(zip(one.values, one.chances, strict=True)) == pytest.approx(
            {number: chance for number, chance in sorted(expected.items())}, abs=1e-9
        )

    def won(end: State) -> list[int]:
        inside = [i for i in range(3) if end.whammies[i] < most]
        best = max((end.scores[i] for i in inside), default=-1)
        return [i for i in inside if end.scores[i] == best]

    holds("spins", None, lambda end, count: count)
    holds("winner's dollars", None,
          lambda end, count: max((1000 * end.scores[i] for i in won(end)), default=0))  # fmt: skip
    for i in range(3):
        holds("put out", i + 1, lambda end, count, i=i: float(end.whammies[i] == most))
        holds("dollars", i + 1, lambda end, count, i=i: 1000 * end.scores[i] * (i in won(end)))
        holds("wins", i + 1, lambda end, count, i=i: (i in won(end)) / max(len(won(end)), 1))


START = {"scores": (1000, 500, 1500), "earned": (1, 1, 0)}
TINY, PIG = BOARDS / "tiny.toml", BOARDS.parent / "pig" / "tiny.toml"


def test_means_are_the_payoffs_and_the_chances_of_counts_sum_to_one() -> None:
    """Where spins come back for ever; quantiles are of the same chances."""
    found = luckbase.evaluate(TINY, "never-pass", START, distribution=True)
    paid = luckbase.evaluate(
        luckbase.load_board(TINY, objective="money"), "never-pass", START, distribution=True
    )
    for i in range(3):
        wins = of(found.distribution, "wins", i + 1)
        dollars = of(found.distribution, "dollars", i + 1)
        assert wins.mean == pytest.approx(found.value[i], abs=1e-12)
        assert dollars.mean == pytest.approx(paid.value[i], abs=1e-8)
    spins = of(found.distribution, "spins")
    assert sum(spins.chances) == pytest.approx(1, abs=2e-12)
    assert spins.mean == pytest.approx(3, abs=1e-9)  # two spins, each comes back one time in three
    under = np.cumsum(spins.chances)
    for share, number in spins.quantiles.items():
        at = spins.values.index(number)
        assert under[at] >= float(share) - 1e-9 and (at == 0 or under[at - 1] < float(share))
    assert set(of(found.distribution, "put out", 1).quantiles) == set()


@pytest.mark.parametrize("most", [10, 100_000])
def test_plays_count_what_is_exact_within_their_errors(most: int) -> None:
    """With all states expanded beforehand, and with them expanded on the way."""
    for board, agents, start in ((TINY, "never-pass", START), (PIG, "hold-at-5", None)):
        exact = luckbase.evaluate(board, agents, start, distribution=True).distribution
        played = luckbase.simulate(
            board, agents, 20_000, start, seed=1, max_states=most, distribution=True
        )
        assert exact is not None and played.distribution is not None
        for one, other in zip(exact, played.distribution, strict=True):
            assert (one.what, one.player) == (other.what, other.player)
            assert other.mean == pytest.approx(one.mean, abs=5 * (other.stderr or 0) + 1e-12)
        again = luckbase.simulate(
            board, agents, 20_000, start, seed=1, max_states=100_000, distribution=True
        )
        assert again.distribution == played.distribution


def test_a_turn_of_pig_is_counted_with_its_rolls() -> None:
    found = luckbase.evaluate(PIG, "hold-at-1", distribution=True).distribution
    rolls, turns = of(found, "rolls"), of(found, "turns")
    assert rolls.values == turns.values  # one roll a turn
    assert rolls.chances == pytest.approx(turns.chances, abs=1e-12)


def test_plays_that_go_round_are_counted_turn_by_turn() -> None:
    """A coin in turns until heads: k turns with 1/2^k."""
    piglet = luckbase.load_board(BOARDS.parent / "pig" / "piglet.toml", goal=1)
    turns = of(luckbase.evaluate(piglet, "random", distribution=True).distribution, "turns")
    assert turns.chances == tuple(0.5**k for k in range(1, len(turns.values) + 1))
    assert turns.values[0] == 1 and 2 - turns.mean < 1e-10
    assert turns.quantiles == {"0.05": 1, "0.25": 1, "0.5": 1, "0.75": 2, "0.95": 5}


def test_counts_beyond_all_that_are_kept_are_refused() -> None:
    """18 heads in a row, some 2^18 turns a player: most of the chances would be missing."""
    piglet = luckbase.load_board(BOARDS.parent / "pig" / "piglet.toml", goal=18)
    with pytest.raises(StateError, match=r"a play may have 100,000 or more of what"):
        luckbase.evaluate(piglet, "hold-at-18", distribution=True)
    with pytest.raises(StateError, match=r"a play goes on for 1,000,000 steps or more"):
        luckbase.simulate(piglet, "hold-at-18", 20)


def test_games_that_count_nothing_say_so() -> None:
    with pytest.raises(OptionError, match="jackpot does not say what is to be counted of a play"):
        luckbase.evaluate(BOARDS.parent / "jackpot" / "tiny.toml", "hilo", distribution=True)
    with pytest.raises(OptionError, match="jackpot does not say what is to be counted of a play"):
        luckbase.simulate(BOARDS.parent / "jackpot" / "tiny.toml", "hilo", 10, distribution=True)
