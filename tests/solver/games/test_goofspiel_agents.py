"""Goofspiel's agents, and the boards that keep the cards for them."""

import numpy as np
import pytest

from luckbase.solver.board.file import read_board
from luckbase.solver.board.model import board_hash
from luckbase.solver.game.capabilities import agents_of
from luckbase.solver.game.game import load_game
from luckbase.solver.games.goofspiel.rules import options_of
from luckbase.solver.policies.evaluate import evaluate_profile
from luckbase.solver.search.expand import expand
from luckbase.solver.search.game_graph import Graph
from luckbase.solver.search.keys import pack_all, unpack_all
from tests.solver.games.goofspiel import POINTS, published


def board(cards, objective="points", keep=False):
    settings = {"cards": str(cards), "objective": objective}
    return load_game(read_board(POINTS, settings | ({"keep_cards": "true"} if keep else {})))


def first_states(game):
    """The first move, an upcard each."""
    start, cards = game.start(), options_of(game).cards
    states = np.repeat(start[None], cards, axis=0)
    states[:, 3] = np.arange(1, cards + 1)
    return states


def asked(game, agent, player, words):
    """What a named agent answers where both bid."""
    state = game.parse(words)
    hand = int(state[player])
    return agents_of(game)[agent](game, player, state, [x for x in range(16) if hand >> x & 1])


def decided(game, agent, player, states):
    policy = agents_of(game)[agent]
    hands = [[x for x in range(16) if int(state[player]) >> x & 1] for state in states]
    return policy.decide(game, player, states, [np.array(hand) for hand in hands])


def values_below(game):
    """Player 0's payoff of every state below the start, as a search finds it."""
    graph = Graph(game)
    graph.solve(game.start()[None])
    states = graph.states(np.arange(graph.count))
    values = graph.values[: graph.count, 0].tolist()
    return {state.tobytes(): value for state, value in zip(states, values, strict=True)}


# --- boards that keep the cards ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cards", "objective"), [(2, "points"), (3, "points"), (4, "points"), (3, "win"), (4, "win")]
)
def test_kept_cards_have_the_values_of_canonical_hands(cards, objective):
    kept, plain = board(cards, objective, True), board(cards, objective)
    values, canonical = values_below(kept), values_below(plain)
    assert len(values) > len(canonical) or cards == 2
    states = np.array([np.frombuffer(key, np.int64) for key in values])
    relabelled = states.copy()
    if objective == "win":
        relabelled[:, 4] -= options_of(plain).points
    relabelled = plain.canonical_states(relabelled)
    expected = [canonical[state.tobytes()] for state in relabelled]
    np.testing.assert_allclose(list(values.values()), expected, rtol=0, atol=1e-12)


def test_kept_cards_are_read_said_and_packed_as_they_are():
    game = board(6, "win", True)
    words = {"mine": "1,5,6", "theirs": "2,3,4", "deck": "1,4,6", "upcard": "4", "lead": "-3"}
    state = game.parse(words)
    text = {"mine": [1, 5, 6], "theirs": [2, 3, 4], "deck": [1, 4, 6], "upcard": 4, "lead": -3}
    assert game.describe(state) == text
    packed = pack_all(game.strides, state[None])
    np.testing.assert_array_equal(unpack_all(game.strides, packed)[0], state)
    assert expand(game, state[None]).children[0].tolist() == [0b110000, 0b1100, 0b100001, 0, 14]


def test_keep_cards_false_is_the_board_that_leaves_it_out():
    same = read_board(POINTS, {"keep_cards": "false"})
    assert board_hash(same) == board_hash(read_board(POINTS))
    assert board_hash(same) != board_hash(read_board(POINTS, {"keep_cards": "true"}))


# --- agents that follow a rule -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("upcard", "mine", "bid"),
    [(4, "1,4,6", 4), (3, "1,4,6", 4), (5, "1,4,6", 6), (6, "1,2,5", 1), (1, "2,3,4", 2)],
)
def test_match_bids_the_upcard_or_the_lowest_above_or_the_lowest(upcard, mine, bid):
    game, other = board(6, keep=True), "2,3,5"
    deck = ",".join(map(str, {upcard, upcard % 6 + 1, (upcard + 1) % 6 + 1}))
    cards = [int(card) for card in mine.split(",")]
    words = {"deck": deck, "upcard": str(upcard)}
    assert cards[asked(game, "match", 0, words | {"mine": mine, "theirs": other})] == bid
    assert cards[asked(game, "match", 1, words | {"mine": other, "theirs": mine})] == bid


@pytest.mark.parametrize("cards", [2, 3, 4])
def test_match_is_the_best_answer_to_a_random_player(cards):
    """Ross 1971: against bids at random no one earns more than who matches the upcards."""
    game = board(cards, keep=True)
    best = evaluate_profile(game, game.start(), ["best-response", "random"]).value[0]
    value = evaluate_profile(game, game.start(), ["match", "random"]).value[0]
    assert value == pytest.approx(best, abs=1e-12) and best > 0


def test_high_and_low_bid_the_ends_of_the_hand():
    game = board(5)
    state = first_states(game)[2]
    assert agents_of(game)["high"](game, 0, state, [0, 2, 4]) == 2
    assert agents_of(game)["low"](game, 1, state, [0, 2, 4]) == 0


# --- agents that are optimal for an objective ----------------------------------------------------


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("player", [0, 1])
def test_points_optimal_bids_table_1_of_the_paper_and_win_optimal_less_on_the_five(player, keep):
    """Rhoads and Bartholdi 2012, Table 1, whatever the board pays and keeps; to win 1 .1444,
    2 .0154, 5 .8402 (docs/numbers.md#numbers-of-this-project) where points ask for .8636."""
    for objective in ("points", "win"):
        game = board(5, objective, keep)
        chances = np.stack(decided(game, "points-optimal", player, first_states(game)), axis=1)
        np.testing.assert_allclose(chances, published(1), rtol=0, atol=1.01e-4)
    chances = decided(game, "win-optimal", player, first_states(game))[-1]
    np.testing.assert_allclose(chances, [0.1444, 0.0154, 0, 0, 0.8402], rtol=0, atol=5e-5)


@pytest.mark.parametrize("objective", ["points", "win"])
def test_optimal_strategies_guarantee_the_value_at_every_state(objective):
    """Each side's lottery alone holds the matrix game's value, on boards that keep cards too."""
    game, agent = board(4, objective, True), f"{objective}-optimal"
    values = values_below(game)
    states = np.array([np.frombuffer(key, np.int64) for key in values])
    states = states[states[:, 3] > 0]
    rows, columns = (decided(game, agent, player, states) for player in (0, 1))
    edges = expand(game, states)
    worth = edges.rewards[:, 0] + [values[child.tobytes()] for child in edges.children]
    for x, state in enumerate(states):
        size = len(rows[x])
        matrix = worth[edges.first[x] : edges.first[x + 1]].reshape(size, size)
        value = values[state.tobytes()]
        assert (rows[x] @ matrix).min() == pytest.approx(value, abs=1e-11)
        assert (matrix @ columns[x]).max() == pytest.approx(value, abs=1e-11)


@pytest.mark.parametrize("objective", ["points", "win"])
@pytest.mark.parametrize("keep", [False, True])
def test_nobody_gains_against_the_player_optimal_for_the_objective(objective, keep):
    game, agent = board(4, objective, keep), f"{objective}-optimal"
    even = 0.5 if objective == "win" else 0.0
    for agents in ([agent, agent], [agent, "best-response"], ["best-response", agent]):
        result = evaluate_profile(game, game.start(), agents)
        np.testing.assert_allclose(result.value, even, rtol=0, atol=1e-11)


def test_the_seat_does_not_matter():
    """Though optimal strategies are not unique, and the points-optimal player meets another one."""
    game = board(5, "win")
    value = evaluate_profile(game, game.start(), ["win-optimal", "points-optimal"]).value
    turned = evaluate_profile(game, game.start(), ["points-optimal", "win-optimal"]).value
    np.testing.assert_allclose(turned, value[::-1], rtol=0, atol=1e-12)
    assert 0.5 < value[0] < 0.55


def test_bidding_1_on_the_highest_card_pays_against_the_points_player_who_goes_on_to_win():
    """The paper's last section, with 5 cards: the chance to finish ahead from the first 5 on."""
    game = load_game(read_board(POINTS, {"cards": "5", "objective": "win"}))
    every = dict.fromkeys(("mine", "theirs", "deck"), "1,2,3,4,5")
    root = game.parse(every | {"upcard": "5"})

    def value(agent):
        return float(evaluate_profile(game, root, [agent, "points-optimal"]).value[0])

    best = value("best-response")
    assert value("one-then-points") < 0.5 < value("win-optimal") < value("one-then-win") < best
