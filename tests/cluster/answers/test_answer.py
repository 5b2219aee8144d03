"""Every action of many states: what single questions and the rules say, in any order."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import luckbase
import tests.games.wild  # noqa: F401  (registers the game)
from luckbase.cluster.answers.actions import answer_at, every_action
from luckbase.cluster.answers.columns import ActionNames, in_order, word_of
from luckbase.cluster.store.format import payoff_columns
from luckbase.solver.board.file import board_from_canonical
from luckbase.solver.errors import OptionError, StateError
from luckbase.solver.game.rules import SIMULTANEOUS
from luckbase.solver.search.expand import expand
from tests import solving
from tests.cluster.answers.many_tables import KINDS, TINY, kept
from tests.shared import answers_of


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("tables")


def drawn(table, count, seed=0):
    """Rows of all parts, about so many, in any order."""
    rng = np.random.default_rng(seed)
    rows = np.concatenate([states for part in table.parts for states in part.draw(count, seed)])
    return np.ascontiguousarray(rows[rng.permutation(len(rows))[:count]])


def by_hand(table, state):
    """What each action is worth at a state: sums over its edges of what the table holds."""
    game = table.game
    edges = expand(game, state[None])
    below, found = table.get_many(edges.children)
    assert found.all()
    worth = {}
    for k, action in enumerate(edges.actions.tolist()):
        paid = edges.weights[k] * (edges.rewards[k] + below[k])
        name = game.action_name(action)
        worth[name] = worth.get(name, 0) + paid
    return {name: list(value) for name, value in worth.items()}


@pytest.mark.parametrize("kind", KINDS[:10])
def test_every_actions_payoff_is_the_mean_over_what_the_table_holds_below(kind, folder):
    table = kept(kind, folder)
    states = drawn(table, 40)
    told, there = every_action(table, states)
    assert there.all()
    for x, state in enumerate(states):
        answer = answer_at(told, x, table.origin, {})
        if answer.to_act is None:
            continue
        right = by_hand(table, state)
        assert {action.name for action in answer.actions} == set(right)
        for action in answer.actions:
            assert list(action.value) == pytest.approx(right[action.name], abs=1e-12)
        own = [action.value[answer.to_act - 1] for action in answer.actions]
        assert own[0] >= max(own) - table.tolerance
        assert (answer.margin is None) == (len(own) == 1)
        if answer.margin is not None:
            assert answer.margin == pytest.approx(max(0.0, own[0] - max(own[1:])), abs=1e-7)


@pytest.mark.parametrize("kind", KINDS)
def test_answers_do_not_depend_on_the_company_that_they_are_asked_in(kind, folder, monkeypatch):
    """Alone, with others, in pieces, by `ask`: the same to the last bit."""
    table = kept(kind, folder)
    states = drawn(table, 60, seed=1)
    together = answers_of(table, states)
    assert together == [answers_of(table, state[None])[0] for state in states]
    monkeypatch.setattr("luckbase.cluster.answers.actions.MAX_EDGES", 3 * table.game.max_edges)
    monkeypatch.setattr("luckbase.cluster.answers.parts.FEW", 0)
    assert together == answers_of(table, states)
    assert together == [table.ask(table.game.describe(state)) for state in states]


@pytest.mark.parametrize("kind", KINDS)
def test_a_batchs_columns_say_what_single_questions_do(kind, folder):
    table = kept(kind, folder)
    states = drawn(table, 50, seed=2)
    words = [table.game.describe(state) for state in states]
    rows = table.values(words, actions=True)
    fewer = table.values(words, best=True, margin=True, toss_up=True)
    assert list(table.ask_all(words)) == [table.ask(one) for one in words]
    for row, less, one in zip(rows, fewer, words, strict=True):
        assert_row_says(row, table.ask(one))
        assert less.items() <= row.items() and less.keys() - one.keys() == {
            *payoff_columns(table.game), "best", "margin", "toss_up"
        }  # fmt: skip


def assert_row_says(row, answer):
    """A row of an export or a batch says what an answer does, and nothing more of actions."""
    assert [row[f"payoff_{i + 1}"] for i in range(len(answer.value))] == list(answer.value)
    assert (row["best"], row["toss_up"]) == (answer.best, answer.toss_up)
    assert row["margin"] == answer.margin and row["to_act"] == (answer.to_act or 0)
    wanted = {}
    for action in answer.actions if answer.strategies is None else ():
        wanted |= {f"{word_of(action.name)}_payoff_{i + 1}": value
                   for i, value in enumerate(action.value)}  # fmt: skip
    for i, side in enumerate(answer.strategies or ()):
        wanted |= {f"{word_of(bid.name)}_chance_{i + 1}": bid.chance for bid in side}
    if answer.strategies is not None:
        wanted |= {f"{word_of(a.name)}_payoff_1": a.value[0] for a in answer.actions}
    said = {
        name: value for name, value in row.items() if value is not None and is_of_an_action(name)
    }
    if answer.strategies is not None:  # an answer has player 1's payoffs alone
        said = {name: value for name, value in said.items() if not name.endswith("_payoff_2")}
    assert said == wanted


def is_of_an_action(name):
    return any(f"_{kind}_" in name for kind in ("payoff", "chance"))


# --- both at once ------------------------------------------------------------------------------


def turned(game, count, seed):
    """States in which a card is turned, in cards of a person's own."""
    rng, found = np.random.default_rng(seed), []
    for _ in range(count):
        size = int(rng.integers(1, 5))
        hands = [sorted(rng.choice(np.arange(1, 5), size, replace=False).tolist()) for _ in "abc"]
        state = dict(zip(("mine", "theirs", "deck"), hands, strict=True))
        found.append(state | {"upcard": int(rng.choice(hands[2]))})
    return found


@pytest.mark.parametrize("kind", ["goofspiel points", "goofspiel win", "search of goofspiel"])
def test_bids_of_turned_cards_are_those_of_single_questions_and_prove_the_value(kind, folder):
    table = kept(kind, folder)
    states = turned(table.game, 40, 3)
    if kind == "search of goofspiel":
        rows = drawn(table, 200)
        both = expand(table.game, rows).kinds == SIMULTANEOUS
        assert both.sum() > 20
        states = [table.game.describe(row) for row in rows[both]]
    rows = table.values(states, actions=True)
    for row, state in zip(rows, states, strict=True):
        answer = table.ask(state)
        assert answer.strategies is not None
        assert_row_says(row, answer)
        for i, hand in enumerate((state["mine"], state["theirs"])):
            chances = [row[f"bid_{card}_chance_{i + 1}"] for card in hand]
            paid = [row[f"bid_{card}_payoff_{i + 1}"] for card in hand]
            assert sum(chances) == pytest.approx(1)
            assert all(bid.least <= bid.chance <= bid.most for bid in answer.strategies[i])
            assert max(paid) == pytest.approx(answer.value[i], abs=1e-9)
            played = [p for p, chance in zip(paid, chances, strict=True) if chance > 1e-6]
            assert played == pytest.approx([answer.value[i]] * len(played), abs=1e-6)


def test_an_action_and_a_choice_of_one_name_have_one_column():
    """One player decides here and both at once there, in words that are the same."""
    board = board_from_canonical("wild", {"game": "wild", "rules": {"at_once": True}})
    with luckbase.open(board, in_memory=True) as table:
        states = [table.game.describe(row) for row in drawn(table, 200)]
        answers = [table.ask(state) for state in states]
        for row, answer in zip(table.values(states, actions=True), answers, strict=True):
            assert_row_says(row, answer)
    assert {answer.strategies is None for answer in answers if answer.actions} == {True, False}


# --- what has no actions -----------------------------------------------------------------------


def test_a_state_that_can_not_be_answered_is_named_by_its_row(folder):
    table = kept("press-your-luck", folder)
    inside = {"scores": "0,1000,500", "earned": "0,1,0"}
    outside = {"scores": "0,1000,500", "earned": "0,9,0"}
    rows = [inside, inside, outside, outside]
    for ask in (lambda: table.values(rows, actions=True), lambda: list(table.ask_all(rows))):
        with pytest.raises(StateError, match=r"row 3: is beyond this table's frontier"):
            ask()


# --- names of columns --------------------------------------------------------------------------


def test_an_actions_name_becomes_a_word_that_needs_no_quotes():
    names = {"play": "play", "pass to 3": "pass_to_3", "flip 1+6": "flip_1_6", "3": "action_3",
             "?": "action", "Würfle!": "würfle", "BID 5": "bid_5"}  # fmt: skip
    assert {name: word_of(name) for name in names} == names
    assert all(word.isidentifier() for word in names.values())


@given(st.lists(st.text(min_size=1, max_size=6), unique=True, max_size=12))
def test_no_two_actions_share_a_column(names):
    made_of = ActionNames(solving.load_game(solving.load_board(TINY)), tuple(names))
    assert len(set(made_of.columns)) == len(made_of.columns) == 3 * len(names)


def test_columns_stand_in_the_order_of_the_rules_else_by_number(folder):
    game = kept("press-your-luck", folder).game
    assert in_order(game, ["pass to 3", "pass to 1", "play"]) == ("play", "pass to 1", "pass to 3")
    box = kept("shut the box", folder).game
    assert in_order(box, ["flip 10", "roll 1 die", "flip 2"]) == ("flip 2", "flip 10", "roll 1 die")


def test_more_columns_than_anybody_reads_are_refused(folder):
    game = kept("press-your-luck", folder).game
    with pytest.raises(OptionError, match="700 of them make 2,100 columns; expected at most 2,000"):
        _ = ActionNames(game, tuple(f"take {k}" for k in range(700))).columns
