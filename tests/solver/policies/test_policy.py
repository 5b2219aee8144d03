"""Agents: exact payoffs, best responses; the same by Monte Carlo; what is counted in such games."""

import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import luckbase
from luckbase.solver.board.file import board_from_canonical
from luckbase.solver.errors import OptionError
from luckbase.solver.game.capabilities import agents_of
from luckbase.solver.games.press_your_luck.rules import always_pass, never_pass
from luckbase.solver.policies import evaluate as module
from luckbase.solver.policies.evaluate import evaluate_profile, fixed_deciders, simulate
from luckbase.solver.search.expand import expand
from luckbase.solver.search.game_graph import Graph
from tests import solving
from tests.places import BOARDS
from tests.reference.press_your_luck import State
from tests.reference.press_your_luck_money import Money, plays
from tests.solver.search.written_out import board_of, both, over

PERCENT = {  # jackpot-mike-french.txt, "CALCULATED" and "MONTE CARLO (100000)"
    "min": (1.3306, 1.355), "max": (4.7706, 4.704), "first": (1.3105, 1.317),
    "last": (5.2248, 5.232), "hilo": (7.9855, 7.965), "hilo2": (7.9855, 8.031),
}  # fmt: skip


@cache
def jackpot(name="seed"):
    return solving.load_game(solving.load_board(BOARDS / "jackpot" / f"{name}.toml"))


@cache
def tiny():
    return solving.load_game(solving.load_board(BOARDS / "press-your-luck/tiny.toml"))


@cache
def played(name):
    """An agent's play of Jackpot with nine tiles."""
    return evaluate_profile(jackpot(), jackpot().start(), [name])


def simulated(game, agent, games, seed):
    deciders = fixed_deciders(game, [agent], game.start()[None])
    return simulate(game, [game.start()], deciders, games, seed)[0]


def start(**words):
    return tiny().parse({"scores": "0,1000,500", "earned": "0,2,0"} | words)


@pytest.mark.parametrize("name", PERCENT)
def test_the_seeds_agents_to_four_decimals(name):
    assert round(100 * played(name).value[0], 4) == PERCENT[name][0]


@pytest.mark.parametrize("name", PERCENT)
def test_the_seeds_monte_carlo_is_within_three_standard_errors(name):
    result = simulated(jackpot(), name, 100_000, seed=1)
    (mean,), (error,) = result.mean, result.error
    assert abs(mean - played(name).value[0]) < 3 * error
    assert abs(100 * mean - PERCENT[name][1]) < 3 * 100 * np.sqrt(2) * error


@pytest.mark.parametrize("name", ["optimal", "best-response"])
def test_the_best_play_is_the_seeds_optimum(name):
    value = evaluate_profile(jackpot(), jackpot().start(), [name]).value[0]
    assert value == pytest.approx(float(Fraction(14103327415, 176319369216)), abs=1e-15)


# --- three players --------------------------------------------------------------------------


def test_all_optimal_is_the_solved_game():
    graph = Graph(tiny())
    at = graph.solve(start()[None])
    result = evaluate_profile(tiny(), start(), ["optimal"] * 3)
    assert result.value == pytest.approx(graph.values[at[0]], abs=1e-13)


@pytest.mark.parametrize("name", ["always-pass-ahead", "never-pass", "play-until-ahead", "random"])
def test_no_agent_beats_the_best_response_to_the_others(name):
    for player in range(3):
        agents = ["never-pass"] * 3
        agents[player] = name
        mine = evaluate_profile(tiny(), start(), agents).value[player]
        agents[player] = "best-response"
        best = evaluate_profile(tiny(), start(), agents)
        assert best.value[player] >= mine - 1e-13
        assert best.value.sum() == pytest.approx(1, abs=1e-12)


def test_the_best_response_to_optimal_players_gains_nothing_in_two_player_states():
    state = tiny().parse({"scores": "0,1000,500", "earned": "0,2,1", "whammies": "4,0,0"})
    optimal = evaluate_profile(tiny(), state, ["optimal"] * 3).value
    for player in (1, 2):
        agents = ["optimal"] * 3
        agents[player] = "best-response"
        assert evaluate_profile(tiny(), state, agents).value == pytest.approx(optimal, abs=1e-12)


def test_a_profiles_payoff_is_its_bellman_equation_at_every_state():
    """Recomputed without the walk: V = P V + r over the chain."""
    result = evaluate_profile(tiny(), start(), ["random", "never-pass", "always-pass-ahead"])
    chain = result.chain
    values = chain.solve().values
    summed = np.zeros_like(values)
    np.add.at(summed, chain.owners, chain.chances[:, None] * values[chain.children])
    summed[chain.over] = chain.payoffs[chain.over]
    assert np.abs(summed - values).max() < 1e-12


def test_play_by_hand_gives_the_same_mean():
    """A slow, obvious simulation by the rules alone, against the exact value."""
    game, rng = tiny(), np.random.default_rng(3)
    agent = agents_of(game)["always-pass-ahead"]
    exact = evaluate_profile(game, start(), ["always-pass-ahead"] * 3).value
    total, games = np.zeros(3), 1500
    below = cache(lambda state: expand(game, np.array([state])))
    for _ in range(games):
        state = start()
        while True:
            edges = below(tuple(state.tolist()))
            if edges.terminal[0]:
                total += edges.rewards[0]
                break
            actions = list(dict.fromkeys(edges.actions.tolist()))
            pick = 0
            if len(actions) > 1:
                pick = agent(game, int(edges.actors[0]), state, actions)
            mine = np.flatnonzero(edges.actions == actions[pick])
            state = edges.children[rng.choice(mine, p=edges.weights[mine])]
    assert np.abs(total / games - exact).max() < 4 * 0.5 / np.sqrt(games)


# --- simulation -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["MAX_EDGES", "BATCH"])
def test_a_seed_gives_the_same_games_however_they_are_batched(name, monkeypatch):
    """Also if expanded states are forgotten again and again."""
    game = jackpot("tiny")
    full = simulated(game, "random", 3000, seed=4)
    monkeypatch.setattr(module, name, {"MAX_EDGES": 20, "BATCH": 700}[name])  # no option
    again = simulated(game, "random", 3000, seed=4)
    assert again.mean == pytest.approx(full.mean, abs=1e-12)
    assert again.error == pytest.approx(full.error, abs=1e-12)
    assert simulated(game, "random", 3000, seed=5).mean[0] != full.mean[0]


def test_a_simulated_best_response_is_worth_what_it_is_exactly():
    agents = ["never-pass", "best-response", "random"]
    right = evaluate_profile(tiny(), start(), agents).value
    deciders = fixed_deciders(tiny(), agents, start()[None])
    (played,) = simulate(tiny(), [start()], deciders, 20_000)
    assert (np.abs(played.mean - right) < 4 * played.error).all()


def test_the_variance_is_that_of_a_sample():
    """Games are won or lost: of 5 the squares of what is off the mean are summed over 4."""
    some = (simulated(jackpot("tiny"), "optimal", 5, seed) for seed in range(9))
    played = next(each for each in some if 0 < each.mean[0] < 1)
    mean = played.mean[0]
    assert played.error[0] == pytest.approx((mean * (1 - mean) / 4) ** 0.5)


def test_plays_that_all_pay_a_third_have_no_error():
    level = {"scores": [1000, 1000, 1000]}
    played = luckbase.evaluate(TINY, "never-pass", level, games=1000)
    assert played.stderr == (0, 0, 0) and played.value == pytest.approx([1 / 3] * 3, abs=1e-14)


def test_standard_errors_are_calibrated():
    """Of 60 seeds about two thirds lie within one standard error, nearly all within two."""
    game = jackpot("tiny")
    result = evaluate_profile(game, game.start(), ["optimal"])
    played = [simulated(game, "optimal", 20_000, seed) for seed in range(60)]
    off = np.array([abs(p.mean[0] - result.value[0]) / p.error[0] for p in played])
    assert 0.5 < (off < 1).mean() < 0.85 and (off < 2).mean() > 0.88 and off.max() < 4.5


# --- agents ---------------------------------------------------------------------------------


def test_a_new_agent_is_one_short_function_and_may_be_mixed():
    game = jackpot()
    first = evaluate_profile(game, game.start(), [lambda game, player, state, actions: 0]).value
    assert first[0] == pytest.approx(0.0131053359, abs=1e-10)
    mixed = evaluate_profile(
        game, game.start(), [lambda game, player, state, actions: [1 / len(actions)] * len(actions)]
    )
    assert mixed.value == played("random").value


@pytest.mark.parametrize("answer", [7, -1, [0.5, 0.6], [1.0], [1.5, -0.5], "a",
                                    None, [math.nan, 1.0], [1.0, math.nan]])  # fmt: skip
def test_an_answer_that_is_no_choice_is_a_sentence(answer):
    game = jackpot("tiny")
    with pytest.raises(OptionError, match=r"an agent answered .* expected an index below"):
        evaluate_profile(game, game.start(), [lambda *_: answer])


# --- numbers counted in simulated games, held to all games gone through one by one ----------------


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


@pytest.mark.parametrize("players", [2, 3])
def test_a_profile_pays_what_the_reference_says(players):
    """Everybody passes whenever they may; by the evaluation, and by dice."""
    board = board_from_canonical("made", {
        "game": "press-your-luck", "rules": {"players": players, "max_whammies": 1},
        "outcomes": {"whammy": "1/2", "1000": "1/2"},
        "solve": {"score_unit": 1000, "score_cap": 3000},
    })  # fmt: skip
    none, spins, scores = (0,) * players, (1, 2, 1)[:players], (1, 1, 0)[:players]
    reference = Money(((("money", 1, 0), ("whammy",)),), cap=3, max_whammies=1)
    ends = plays(reference, State(scores, spins, none, none), lambda at, names: names[-1], 20)
    expected = np.zeros(players)
    for (end, _), chance in ends.items():
        inside = [score if end.whammies[i] == 0 else -1 for i, score in enumerate(end.scores)]
        won = np.array(inside) == max(inside)
        expected += chance * won / won.sum()
    start = {"scores": [1000 * score for score in scores], "earned": spins}
    found = luckbase.evaluate(board, "always-pass", start)
    assert [*found.value] == pytest.approx(expected, abs=1e-12)
    dice = luckbase.evaluate(board, "always-pass", start, games=20_000)
    assert [*dice.value] == pytest.approx(expected, abs=0.02)


START = {"scores": (1000, 500, 1500), "earned": (1, 1, 0)}
TINY, PIG = BOARDS / "press-your-luck/tiny.toml", BOARDS / "pig/tiny.toml"


def test_wins_are_the_payoffs_with_their_errors():
    """In the games themselves, and so are the dollars if money is the payoff."""
    for objective, what in (("win", "wins"), ("money", "dollars")):
        board = luckbase.load_board(TINY, objective=objective)
        result = luckbase.evaluate(board, "never-pass", START, games=5000, seed=1)
        for i in range(3):
            counted = of(result.counts, what, i + 1)
            assert counted.mean == pytest.approx(result.value[i], rel=1e-12)
            assert counted.stderr == pytest.approx(result.stderr[i], rel=1e-9)


def test_spins_are_counted_as_often_as_they_should():
    """Two spins, each comes back one time in three."""
    spins = of(luckbase.evaluate(TINY, "never-pass", START, games=20_000).counts, "spins")
    assert 0 < spins.stderr < 0.02 and spins.mean == pytest.approx(3, abs=5 * spins.stderr)


def test_a_turn_of_pig_is_counted_with_its_rolls():
    result = luckbase.evaluate(PIG, "hold-at-1", games=2000).counts
    rolls, turns = of(result, "rolls"), of(result, "turns")
    assert rolls.mean == turns.mean > 1 and rolls.stderr == turns.stderr  # one roll a turn


def test_games_that_go_round_are_counted_turn_by_turn():
    """A coin in turns until heads: k turns with 1/2^k, 2 on average, with variance 2."""
    piglet = luckbase.load_board(BOARDS / "pig/piglet.toml", goal=1)
    turns = of(luckbase.evaluate(piglet, "random", games=50_000).counts, "turns")
    assert turns.stderr == pytest.approx((2 / 50_000) ** 0.5, rel=0.05)
    assert turns.mean == pytest.approx(2, abs=5 * turns.stderr)


def test_a_game_that_counts_nothing_has_payoffs_alone():
    result = luckbase.evaluate(BOARDS / "jackpot/tiny.toml", "hilo", games=10)
    assert result.counts is None and result.games == 10 and "counts" not in result.as_json()


# --- a cycle of states in which both choose at once -----------------------------------------------


BOTH, FIRST, SECOND = 0.3, 1.0, 0.9
"""What player 1 gets where both draw, they alone, player 2 alone."""


@pytest.fixture
def board():
    """Both wait or draw; while both wait, the clock goes round its three states."""
    clock = [both([(1.0, (hour + 1) % 3)], [(1.0, 5)], [(1.0, 4)], [(1.0, 3)]) for hour in range(3)]
    return board_of(*clock, *(over(first, 1 - first) for first in (BOTH, FIRST, SECOND)))


def draws(chance):
    """An agent that draws with this chance, whatever the clock says."""
    return lambda game, player, state, actions: [1 - chance, chance]


@pytest.mark.parametrize("theirs", [0.05, 0.2, 0.5, 1.0])
def test_a_best_response_to_a_fixed_policy_is_exact(board, theirs):
    """To wait for ever pays what player 2 leaves when they draw; to draw at once, the rest."""
    at_once = (1 - theirs) * FIRST + theirs * BOTH
    value = luckbase.evaluate(board, ["best-response", draws(theirs)]).value
    assert value[0] == pytest.approx(max(SECOND, at_once), abs=1e-12)
    assert sum(value) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("mine", [0.1, 0.6])
def test_the_second_player_responds_as_well(board, mine):
    """Who waits for ever gets what player 1 leaves when they draw."""
    wait, draw = 1 - FIRST, mine * (1 - BOTH) + (1 - mine) * (1 - SECOND)
    value = luckbase.evaluate(board, [draws(mine), "best-response"]).value
    assert value[1] == pytest.approx(max(wait, draw), abs=1e-12)


@pytest.mark.parametrize(("mine", "theirs"), [(0.3, 0.2), (0.01, 0.02), (1.0, 0.5)])
def test_two_fixed_policies_have_the_payoff_of_their_chain(board, mine, theirs):
    ends = {BOTH: mine * theirs, FIRST: mine * (1 - theirs), SECOND: (1 - mine) * theirs}
    right = sum(pay * chance for pay, chance in ends.items()) / sum(ends.values())
    agents = [draws(mine), draws(theirs)]
    assert luckbase.evaluate(board, agents).value[0] == pytest.approx(right, abs=1e-12)
    played = luckbase.evaluate(board, agents, games=20_000, seed=1)
    assert played.stderr and abs(played.value[0] - right) < 4 * played.stderr[0]


def test_where_both_are_free_or_nobody_ever_draws_it_is_refused_in_a_sentence(board):
    both = "at=0 lies on a cycle that the players can keep up for ever for free"
    with pytest.raises(luckbase.errors.StateError, match=both):
        luckbase.evaluate(board, "best-response")
    with pytest.raises(luckbase.errors.StateError, match="at=0 lies"):
        luckbase.evaluate(board, draws(0.0))


def test_a_drawing_says_what_each_of_two_chooses(board):
    edges = luckbase.graph(board, draws(0.5)).diagram.edges
    assert {edge.action for edge in edges} == {
        "a against a", "a against b", "b against a", "b against b",
    }  # fmt: skip


def test_a_solve_that_is_refused_leaves_no_table(board, tmp_path):
    with pytest.raises(luckbase.errors.StateError, match="at=0 lies"):
        luckbase.solve(board, results=tmp_path / "results")
    assert luckbase.status(results=tmp_path / "results") == []
