"""Pig, the race and the rounds: published numbers, reference solvers, agents, words."""

from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import luckbase
from luckbase.solver.check import check_game
from luckbase.solver.dense import InMemory
from luckbase.solver.errors import OptionError
from luckbase.solver.game.arrays import NO_BEST
from luckbase.solver.game.capabilities import FullTable, agents_of
from luckbase.solver.games.pig import kernel
from luckbase.solver.games.pig.rules import chance_to_gain
from luckbase.solver.games.skunk.rules import Computer, HoldAt, check_rolls
from luckbase.solver.policies.evaluate import evaluate_profile
from luckbase.solver.search.expand import expand
from luckbase.solver.search.game_graph import Graph
from tests import solving
from tests.reference.pig import Reference
from tests.reference.pig import turn_points as reference_turn
from tests.reference.skunk import Reference as RaceReference
from tests.solver.board.board_files import assert_one_sentence

BOARDS = Path(__file__).parents[3] / "boards" / "pig"
RACE, TINY, PIGLET, ROUNDS = (
    BOARDS / f"{name}.toml" for name in ("race", "tiny", "piglet", "rounds")
)

SMALL = (("cut", 30), ("rounds", 2))


@cache
def pig(path, options=()):
    return solving.load_game(solving.load_board(path, **dict(options)))


@cache
def laid_out(path, options=()):
    return pig(path, options).need(FullTable)


@cache
def solved(path, options=()):
    """The full table in memory."""
    return InMemory(laid_out(path, options))


def look_up(path, options, states):
    """Both players' payoffs (n, 2) of canonical states."""
    return solved(path, options).lookup(states)[0]


def start(path, options=()):
    return float(look_up(path, options, pig(path, options).start().reshape(1, -1))[0, 0])


def start_bounds(layout):
    """(lower, upper) of player 1's payoff at the start in the game without a cut: a win by the cut
    is taken at its worst, and then at its best, for player 1."""
    found, error, none = [], layout.game.cut_error, NO_BEST
    for less, more in ((error, 0.0), (0.0, error)):
        starts, out = layout.turn_starts(None), np.empty(layout.rows((1, 1)))
        for tier in layout.tiers():
            reals = layout.game.numbers.reals
            won = reals[0] - less if tier[1] == 1 else reals[2] + more
            kernel.solve(layout.ints, starts, tier[1], won, out, 0.0, none)
            starts = layout.turn_starts(out)
        found.append(float(starts[layout.cut - 1]))
    return found[0] - layout.rounding, found[1] + layout.rounding


# Published numbers


def test_the_race_is_worth_what_neller_and_presser_print():
    """.5306 in Optimal play of the dice game Pig (2004); all digits:
    docs/numbers.md#numbers-of-this-project."""
    assert start(RACE) == pytest.approx(0.530592725274, abs=1e-12)
    assert 2 * solved(RACE).error < 2e-12


def test_hold_at_20_against_itself_has_its_known_value():
    value = luckbase.evaluate(RACE, "hold-at-20").value[0]
    assert value == pytest.approx(0.534698326165, abs=1e-12)


def test_a_race_to_20_is_its_exact_fraction():
    exact = Fraction(15116544, 24557443)
    assert RaceReference(20, dice=1, all_ones="turn").value[0, 0, 0] == exact
    assert abs(Fraction(start(TINY)) - exact) <= solved(TINY).error


def test_piglet_to_2_is_as_solved_by_hand():
    """Neller and Presser (2004), section 3: the six values of Piglet with goal 2."""
    options = (("goal", 2),)
    states = np.array(
        [[0, 0, 0, 1], [0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 1], [1, 0, 0, 1], [1, 1, 0, 1]]
    )
    right = [4 / 7, 5 / 7, 2 / 5, 3 / 5, 4 / 5, 2 / 3]
    assert look_up(PIGLET, options, states)[:, 0] == pytest.approx(right, abs=1e-14)


@pytest.mark.parametrize(("rounds", "value"), [(10, 0.423189985509), (1, 0.281521160783)])
def test_the_rounds_are_worth_their_known_numbers(rounds, value):
    options = (("rounds", rounds),)
    assert start(ROUNDS, options) == pytest.approx(value, abs=1e-12)
    low, high = start_bounds(laid_out(ROUNDS, options))
    assert low <= start(ROUNDS, options) <= high and high - low < 1e-12


def test_nobody_draws_under_the_best_play_of_ten_rounds():
    """docs/numbers.md#numbers-of-this-project: player two, level in his last turn,
    wins for sure."""
    chances = kernel.chances(pig(ROUNDS), "optimal", "optimal")
    assert chances[0] == pytest.approx(start(ROUNDS), abs=1e-13)
    assert chances[1] == 0.0


def test_the_blogs_computer_makes_its_known_points():
    points = kernel.points_of_turns(pig(ROUNDS), "computer")
    assert points @ np.arange(len(points)) == pytest.approx(8.464091932, abs=1e-9)
    assert points[0] == pytest.approx(0.369449561, abs=1e-9)
    assert points.sum() == pytest.approx(1.0, abs=1e-12)
    assert [Computer(6).sticks(face, 1) for face in range(1, 7)] == [0.02] * 6
    found = luckbase.evaluate(solving.load_board(ROUNDS, rounds=1), "optimal,computer", gain=True)
    facts = {what: number for agent, what, number in found.facts or () if agent == "computer"}
    assert facts["points a turn"] == pytest.approx(8.464091932, abs=1e-9)
    assert facts["chance of a turn worth nothing"] == pytest.approx(0.369449561, abs=1e-9)
    assert found.value == kernel.payoffs(pig(ROUNDS, (("rounds", 1),)), "optimal", "computer")
    assert found.states is None and found.gain and min(found.gain) >= 0  # by the game's own way


def test_20_and_21_are_the_best_numbers_to_hold_at_by_points_a_turn():
    """docs/numbers.md#numbers-of-this-project: they tie exactly at 9.561337."""
    game = pig(ROUNDS)
    points = [kernel.points_of_turns(game, f"hold-at-{k}") for k in range(1, 41)]
    means = [each @ np.arange(len(each)) for each in points]
    best = np.flatnonzero(np.array(means) > max(means) - 1e-12) + 1
    assert best.tolist() == [20, 21]
    assert means[19] == pytest.approx(9.561337, abs=5e-7)


# Kernels, rules, references


ROUNDS_VARIANTS = [
    SMALL,
    (*SMALL, ("first_roll_safe", False)),
    (*SMALL, ("first_roll_forced", True), ("draw", "first")),
    (*SMALL, ("first_roll_safe", False), ("first_roll_forced", True), ("draw", "second")),
    (*SMALL, ("objective", "difference"), ("sides", 4)),
    (("rounds", 1), ("cut", 40), ("dice", 2)),
]


@pytest.mark.parametrize("options", ROUNDS_VARIANTS, ids=str)
def test_every_row_of_the_rounds_keeps_the_contract_and_is_one_step_of_the_rules(options):
    assert check_game(pig(ROUNDS, options), most=100)


@pytest.mark.parametrize(
    ("safe", "forced"), [(True, False), (True, True), (False, False), (False, True)]
)
def test_the_rounds_are_the_references_fractions(safe, forced):
    options = (*SMALL, ("first_roll_safe", safe), ("first_roll_forced", forced))
    reference = Reference(2, 6, safe, forced, 30)
    for round_, player, lead, turn in ((1, 1, 0, 0), (1, 2, 7, 3), (2, 1, -9, 12), (2, 2, 4, 5)):
        mine = lead if player == 1 else -lead
        state = np.array([[max(mine, 0), max(-mine, 0), turn, round_, player]])
        exact = float(reference.value(round_, player, lead, turn))
        assert look_up(ROUNDS, options, state)[0, 0] == pytest.approx(exact, abs=1e-14)


def test_a_search_of_the_rounds_finds_the_tables_values():
    for options in ROUNDS_VARIANTS[:5]:
        game = pig(ROUNDS, options)
        graph = Graph(game)
        (at,) = graph.solve(game.start().reshape(1, -1))
        found = graph.values[at]
        assert found[0] == pytest.approx(start(ROUNDS, options), abs=1e-13)


@given(st.integers(40, 120), st.integers(1, 3))
@settings(max_examples=8, deadline=None)
def test_the_cut_changes_no_more_than_its_bound(cut, rounds):
    """Against a cut so far out that it changes nothing here."""
    options = (("rounds", rounds), ("cut", cut))
    far = (("rounds", rounds), ("cut", 500))
    states = np.array([[0, 0, 0, 1, 1], [0, 30, 8, rounds, 2], [20, 0, 0, 1, 2], [0, 39, 0, 1, 1]])
    difference = np.abs(look_up(ROUNDS, options, states) - look_up(ROUNDS, far, states)).max()
    assert difference <= solved(ROUNDS, options).error + 1e-9


def test_the_chance_to_gain_is_the_best_over_policies():
    """One turn, 7 points wanted, by hand: roll until there, a 1 after the first roll ends it."""
    q = chance_to_gain(pig(ROUNDS).numbers.ints, 1, 7)

    def to_go(turn):
        if turn >= 7:
            return Fraction(1)
        faces = range(1 if turn == 0 else 2, 7)
        return sum((to_go(turn + face) for face in faces), Fraction(0)) / 6

    assert q[7] == pytest.approx(float(to_go(0)), abs=1e-15) and q[0] == 1.0


# Agents


def by_the_rules(game, one, two):
    """Player 1's payoff at the start: every state that the rules lead to, with what the agents say
    there, and payoffs iterated until they settle."""
    agents = [agents_of(game)[name] for name in (one, two)]
    number, rows = {tuple(game.start().tolist()): 0}, []
    todo, paid = list(number), []
    for state in todo:
        edges = expand(game, np.array([state]))
        paid.append(edges.rewards[0, 0] if edges.terminal[0] else 0.0)
        if edges.terminal[0]:
            continue
        actions, player = list(dict.fromkeys(edges.actions.tolist())), int(edges.actors[0])
        picks = [1.0]
        if len(actions) > 1:
            picks = agents[player](game, player, np.array(state), actions)
            if isinstance(picks, int | np.integer):
                picks = np.eye(len(actions))[picks]
        for action, weight, child in zip(
            edges.actions.tolist(), edges.weights, map(tuple, edges.children.tolist()), strict=True
        ):
            if (chance := picks[actions.index(action)] * weight) > 0:
                if child not in number:
                    number[child] = len(number)
                    todo.append(child)
                rows.append((number[state], number[child], chance))
    owners, children, chances = np.array(rows).T
    owners, children, values = owners.astype(int), children.astype(int), np.array(paid)
    while True:
        before, values = values, paid + np.bincount(owners, chances * values[children], len(values))
        if np.abs(values - before).max() <= 1e-14:
            return float(values[0])


@pytest.mark.parametrize(
    ("one", "two"),
    [("hold-at-3", "hold-at-7"), ("computer", "hold-at-5"), ("computer", "computer")],
)
def test_profiles_are_what_the_rules_and_the_agents_say(one, two):
    game = pig(TINY, (("goal", 9), ("count_rolls", True)))
    value = luckbase.evaluate(game.board, [one, two]).value[0]
    assert value == pytest.approx(by_the_rules(game, one, two), abs=1e-10)


@pytest.mark.parametrize("safe", [True, False])
@pytest.mark.parametrize(("one", "two"), [("hold-at-3", "hold-at-7"), ("computer", "computer")])
def test_profiles_of_the_rounds_are_what_their_chain_says(one, two, safe):
    """The game's own way against the chain of all states, where rolls are counted."""
    options = (("rounds", 1), ("cut", 10), ("first_roll_forced", True), ("first_roll_safe", safe))
    game = pig(ROUNDS, (*options, ("count_rolls", True)))
    found = kernel.payoffs(pig(ROUNDS, options), one, two)
    assert found == pytest.approx(evaluate_profile(game, game.start(), [one, two]).value, abs=1e-10)


def test_a_best_response_is_no_worse_than_anybody():
    names = ["best-response", "optimal", "computer", "hold-at-15", "hold-at-20"]
    race, rounds = pig(TINY, (("goal", 12), ("count_rolls", True))), pig(ROUNDS, SMALL)
    for game, agents in ((race, names[:3] + ["hold-at-5", "hold-at-8"]), (rounds, names)):
        table = luckbase.matrix(game.board, agents).array
        assert (table[0] >= table - 1e-12).all()  # as player 1, against each
        assert (table[:, 0] <= table.T + 1e-12).all()  # as player 2
        assert (table[1] >= table[1, 1] - 1e-9).all()  # optimal is safe against all
        assert (table[:, 1] <= table[1, 1] + 1e-9).all()
    assert luckbase.evaluate(TINY, "optimal").value[0] == pytest.approx(start(TINY), abs=1e-12)


@pytest.mark.parametrize("safe", [True, False])
@pytest.mark.parametrize("agent", ["hold-at-8", "hold-at-25", "computer"])
def test_what_a_turn_brings_is_the_references(agent, safe):
    game = pig(ROUNDS, (("first_roll_safe", safe),))
    found = kernel.points_of_turns(game, agent)
    slow = reference_turn(agents_of(game)[agent].sticks, safe, 60)
    assert found[1:61] == pytest.approx([slow.get(p, 0.0) for p in range(1, 61)], abs=1e-12)


def test_the_agents_by_name():
    agents = agents_of(pig(RACE))
    assert agents["hold-at-20"] == HoldAt(20) and "hold-at-12345" in agents
    assert "hold-at-0" not in agents and "hold" not in agents and "optimal" not in agents
    assert "hold-at-25" in list(agents) and len(list(agents)) == len(agents)
    state = pig(RACE).parse({"mine": "3", "yours": "9", "turn": "20"})
    assert agents["hold-at-20"](pig(RACE), 0, state, [0, 1]) == 0
    assert agents["hold-at-21"](pig(RACE), 0, state, [0, 1]) == 1
    with pytest.raises(OptionError) as caught:
        check_rolls(pig(RACE), "computer")
    assert_one_sentence(caught.value)


# Words


def test_states_in_words():
    game = pig(ROUNDS)
    words = {"mine": "40", "yours": "55", "turn": "12", "round": "9", "player": "2"}
    assert game.parse(words).tolist() == [0, 15, 12, 9, 2]
    assert game.parse({"mine": "3", "yours": "1", "round": "11"}).tolist() == [1, 0, 0, 11, 1]
    assert game.parse({"mine": "0", "yours": "700", "player": "2"}).tolist() == [1, 0, 0, 11, 1]
    assert game.parse({"mine": "590", "yours": "0", "turn": "10"}).tolist() == [1, 0, 0, 11, 1]
    assert game.action_name(0) == "stick"
    for path in (RACE, TINY, ROUNDS):
        for _, said in laid_out(path).opening_questions():
            assert laid_out(path).locate(pig(path).parse(said))[0][0] >= 0


def test_two_dice_pig_is_skunk():
    options = (("goal", 20), ("dice", 2), ("all_ones", "score"))
    skunk = solving.load_layout(solving.load_board(BOARDS.parent / "skunk" / "tiny.toml"))
    out = np.empty(skunk.shape(0))
    skunk.solve_tier(0, out, lambda child: out, lambda: False)
    assert np.array_equal(solved(RACE, options).payoffs[0], out)


def test_what_the_cut_leaves_out_counts_in_a_search_as_in_the_full_table(tmp_path):
    """A cut of 30 can change a chance by .3: neither kind of table may say 1e-12."""
    board = solving.load_board(ROUNDS, **dict(SMALL))
    full = luckbase.solve(board, results=tmp_path / "full").table
    state = {"mine": 0, "yours": 0}
    searches = [
        luckbase.solve(board, state, results=tmp_path / "one", one_piece=1 << 20).table,
        luckbase.solve(board, state, results=tmp_path / "stages", one_piece=0).table,
    ]
    with luckbase.open(full) as table:
        error = table[state].error
    assert error > 0.01
    for path in searches:
        with luckbase.open(path) as table:
            assert table[state].error == pytest.approx(error, abs=1e-11)
    with luckbase.open(board, in_memory=True, start=state) as table:
        assert table[state].error == pytest.approx(error, abs=1e-11)
