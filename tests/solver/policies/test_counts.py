"""Numbers counted in simulated games, held to all games gone through one by one."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import luckbase
from luckbase.solver.board.file import board_from_canonical
from luckbase.solver.games.press_your_luck.rules import always_pass, never_pass
from tests.reference.press_your_luck import State
from tests.reference.press_your_luck_money import Money, plays
from tests.solver.board.board_files import BOARDS

GAMES = 5000


def half(house, **rules):
    """A board on which no spin comes back: a whammy, $1,000 or $2,000; and the reference's."""
    objective = {"objective": "money", "house": True} if house else {}
    board = board_from_canonical("half", {
        "game": "press-your-luck", "outcomes": {"whammy": "1/2", "1000": "1/4", "2000": "1/4"},
        "rules": {**rules, **objective}, "solve": {"score_unit": 1000, "score_cap": 3000},
    })  # fmt: skip
    slides = (("whammy",), ("whammy",), ("money", 1, 0), ("money", 2, 0))
    return board, Money((slides,), 3, "random", house=house, **rules)


def of(counts, what, player=None):
    (result,) = (each for each in counts if (each.what, each.player) == (what, player))
    return result


@settings(max_examples=15, suppress_health_check=list(HealthCheck), deadline=None)
@given(
    st.booleans(), st.sampled_from([1, 2]), st.sampled_from([never_pass, always_pass]),
    st.lists(st.integers(0, 3), min_size=3, max_size=3),
    st.lists(st.integers(0, 1), min_size=6, max_size=6).filter(any),
)  # fmt: skip
def test_counts_are_those_of_all_plays(house, most, agent, scores, spins):
    board, reference = half(house, max_whammies=most)
    earned, passed = tuple(spins[:3]), tuple(spins[3:])

    def decide(state, names):
        passes = [name for name in names if name.startswith("pass")]
        return passes[0] if agent is always_pass and passes else names[0]

    def choose(game, player, state, actions):
        if len(actions) == 2 and game.action_name(actions[1]) == "stop":
            return 0
        return int(agent(game, player, state, actions))

    state = State(tuple(scores), earned, passed, (0, 0, 0))
    every = plays(reference, state, decide, 20)
    assert sum(every.values()) == pytest.approx(1, abs=1e-12)
    start = {"scores": [1000 * x for x in scores], "earned": earned, "passed": passed}
    result = luckbase.evaluate(board, choose, start, games=GAMES, seed=3).counts

    def holds(what, player, number):
        numbers = np.array([number(end, count) for end, count in every])
        chances = np.array([*every.values()])
        mean = numbers @ chances
        error = np.sqrt(chances @ (numbers - mean) ** 2 / GAMES)
        first = of(result, what, player)
        assert first.mean == pytest.approx(mean, abs=5.5 * error + 1e-9)

    def won(end):
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


def test_wins_are_the_payoffs_with_their_errors():
    """In the games themselves, and so are the dollars if money is the payoff."""
    for objective, what in (("win", "wins"), ("money", "dollars")):
        board = luckbase.load_board(TINY, objective=objective)
        result = luckbase.evaluate(board, "never-pass", START, games=5000, seed=1)
        for i in range(3):
            counted = of(result.counts, what, i + 1)
            assert counted.mean == pytest.approx(result.value[i], rel=1e-12)
            assert counted.stderr == pytest.approx(result.stderr[i], rel=1e-9)


def test_a_turn_of_pig_is_counted_with_its_rolls():
    result = luckbase.evaluate(PIG, "hold-at-1", games=2000).counts
    rolls, turns = of(result, "rolls"), of(result, "turns")
    assert rolls.mean == turns.mean > 1 and rolls.stderr == turns.stderr  # one roll a turn


def test_games_that_go_round_are_counted_turn_by_turn():
    """A coin in turns until heads: k turns with 1/2^k, 2 on average, with variance 2."""
    piglet = luckbase.load_board(BOARDS.parent / "pig" / "piglet.toml", goal=1)
    turns = of(luckbase.evaluate(piglet, "random", games=50_000).counts, "turns")
    assert turns.stderr == pytest.approx((2 / 50_000) ** 0.5, rel=0.05)
    assert turns.mean == pytest.approx(2, abs=5 * turns.stderr)


def test_a_game_that_counts_nothing_has_payoffs_alone():
    result = luckbase.evaluate(BOARDS.parent / "jackpot" / "tiny.toml", "hilo", games=10)
    assert result.counts is None and result.games == 10 and "counts" not in result.as_json()
