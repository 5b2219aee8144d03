"""Somebody else's game that breaks the rules is refused in a sentence, by every engine."""

from itertools import count
from pathlib import Path

import numpy as np
import pytest

import luckbase
from luckbase.cluster.answers.verify import verify
from luckbase.cluster.search.plan import count_below
from luckbase.game import (
    Field,
    chance,
    check_game,
    lead,
    load_game,
    over,
    pay,
    register,
    transition,
)
from luckbase.solver import check
from luckbase.solver.check import check_sample
from luckbase.solver.errors import GameError
from luckbase.solver.game.game import fault_in
from luckbase.solver.search.game_graph import Graph
from tests import solving
from tests.games.purse import START, Purse, rules

VARIANTS = {
    1: r"at purse=\d+ tosses=0: pays \[inf\]; expected 0 to 1; say what it can be as Rules.payoff",
    2: r"at purse=\d+ tosses=0: pays \[nan\]; expected 0 to 1",
    3: r"at purse=\d+ tosses=0: pays \[-0.29\]; expected 0 to 1",
    4: r"at purse=\d+ tosses=\d: is of kind 7; expected 0 to 3",
    5: r"at purse=\d+ tosses=\d: has 0 edges; expected 1 to 3 \(max_edges\)",
    6: r"tosses=\d, action 'stop': an edge has chance -1.0; expected above 0",
    7: r"game purse, line \d+: at purse=\d+ tosses=\d: ZeroDivisionError: integer division by zero",
    8: r"tosses=\d: action 9 has no name in Rules.actions=….; expected 0 to 2",
    9: r"at purse=\d+ tosses=\d, action 'toss': chances add up to 0.95; expected 1",
    10: r"leads to purse=70 tosses=\d, which its own fields refuse: purse: 70 is too large",
    11: r"an edge pays; expected Rules\(pays=True\)",
    12: r"at purse=\d+ tosses=\d: has 4 edges; expected 1 to 3 \(max_edges\)",
    13: "the transition changes the state that it is given",
    14: "is chance, and has 2 actions",
    15: r"at purse=\d+ tosses=\d: player 3 acts; expected 0 to 0",
    16: r"at purse=\d+ tosses=\d: an edge has action -1; expected 0 or more",
}
broken_now, numbers = [0], count()


def made(**changed):
    """The rules of a board, broken as `broken_now` says."""
    return lambda board: rules(broken_now[0], **changed)


def break_rules(variant):
    """The same board's rules change, which are registered again: those that a process has stay."""
    broken_now[0] = variant
    register("purse", Purse, made())


@pytest.fixture
def board(own_games, monkeypatch, tmp_path):
    """The game as it must be; the engines alone look, no sample is taken before a solve."""
    monkeypatch.setattr(check, "check_sample", lambda *_: None)
    register("purse", Purse, made())
    path = tmp_path / f"purse{next(numbers)}.toml"  # workers keep the rules of a board
    path.write_text('game = "purse"\n')
    yield luckbase.load_board(path)
    broken_now[0] = 0


def _table_of_the_right_game(board, folder):
    variant = broken_now[0]
    break_rules(0)
    table = solving.solve_below(board, results=folder).table
    break_rules(variant)
    return luckbase.open(table)


def _verify(board, folder):
    with _table_of_the_right_game(board, folder) as table:
        verify(table, None)


def _query(board, folder):
    with luckbase.open(board, in_memory=True) as table:
        table[START]


def _game(board):
    game = load_game(board)
    return game, game.needed_start().reshape(1, -1)


def _graph(board, folder):
    game, start = _game(board)
    Graph(game).solve(start)


ENGINES = {
    "solve in one piece": lambda board, at: solving.solve_below(board, results=at),
    "solve by stages": lambda board, at: solving.solve_below(board, results=at, one_piece=0),
    "verify": _verify,
    "query": _query,
    "graph": _graph,
    "check": lambda board, _: check_game(board),
    "count": lambda board, _: count_below(*_game(board)),
    "evaluate": lambda board, _: luckbase.evaluate(board, "toss"),
    "simulate": lambda board, _: luckbase.evaluate(board, "toss", games=20),
}


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_refuses_what_breaks_the_rules(engine, variant, board, tmp_path):
    broken_now[0] = variant
    with pytest.raises(GameError, match=VARIANTS[variant]) as text:
        ENGINES[engine](board, tmp_path / "results")
    assert str(text.value).startswith("game purse") and text.value.exit_code == 2
    assert not list(tmp_path.glob("results/**/*.parquet")) or engine == "verify"


@transition
def fees(board, state, edges):
    """Chance takes three steps, each of which pays board.ints[0] tenths."""
    if state[0] == 0:
        return over(edges, 0.0)
    lead(edges, state, 5, 1.0)[0] = state[0] - 1
    pay(edges, board.ints[0] / 10)
    return chance(edges)


@pytest.mark.parametrize("engine", ["solve in one piece", "solve by stages", "query", "graph"])
def test_what_edges_pay_in_all_is_held_to_the_range(engine, board, tmp_path, monkeypatch):
    changed = {
        "fields": [Field("left", high=3, default=3)], "transition": fees, "pays": True,
        "payoff_range": (0, 1), "actions": (), "start": {}, "level": {"left": 1},
    }  # fmt: skip
    monkeypatch.setitem(globals(), "START", {})
    register("purse", Purse, made(**changed))
    broken_now[0] = 3
    with luckbase.open(board, in_memory=True) as table:
        assert table[{}].value == pytest.approx((0.9,))
    broken_now[0] = 4
    register("purse", Purse, made(**changed))
    with pytest.raises(GameError, match=r"at left=3: has payoff \[1.2\d*\]; expected 0 to 1; say"):
        ENGINES[engine](board, tmp_path / "results")
    del changed["payoff_range"]  # then it is found
    register("purse", Purse, made(**changed))
    with luckbase.open(board, in_memory=True) as table:
        assert table[{}].value == pytest.approx((1.2,))
        assert table.error < 2e-12


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (("actions", ("stop", "stop", "stop")), "two actions are called the same: stop, stop"),
        (("canonical", lambda states, refuse: np.minimum(states, 9)), "which is not canonical"),
    ],
)
def test_a_sample_is_looked_at_before_a_solve(wrong, sentence, board, tmp_path, monkeypatch):
    monkeypatch.setattr(check, "check_sample", check_sample)
    register("purse", Purse, made(**dict([wrong])))
    with pytest.raises(GameError, match=sentence):
        solving.solve_below(board, results=tmp_path / "results")
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        *((("start", start), r"start: .*expected a state in words")
          for start in ("left=3", [3, 0], (1.0, {}), 5)),
        *((("start", start), "game purse: start: unknown field 'left'")
          for start in ({"left": 3}, [(1.0, {"left": 3})])),
        (("canonical", lambda states, refuse: None), "canonical gives NoneType, not states"),
    ],
)  # fmt: skip
def test_a_start_or_canonical_states_of_another_kind_are_one_sentence(wrong, sentence, board):
    register("purse", Purse, made(**dict([wrong])))
    with pytest.raises(GameError, match=sentence):
        solving.load_game(board).start()


@transition
def two(board, state, edges):
    stake, fee = board.ints
    return over(edges, stake - fee)


def test_a_board_of_fewer_numbers_than_the_transition_reads_is_one_sentence(board, tmp_path):
    register("purse", Purse, made(transition=two))
    text = (
        r"game purse, line \d+: at purse=4 tosses=4: ValueError: the line reads more or fewer "
        r"numbers than there are: `numbers` has 1 whole number \(board.ints\), and a state 2 n"
    )
    with pytest.raises(GameError, match=text):
        solving.solve_below(board, results=tmp_path)


def test_what_python_suggests_of_itself_is_not_said_twice():
    plain = "Rules() got an unexpected keyword argument 'max_edge'"
    message = [
        fault_in(Path("climb.py"), TypeError(text))
        for text in (plain, f"{plain}. Did you mean 'max_edges'?")  # as of 3.11, and of 3.13
    ]
    assert message[0] == message[1] and message[0].endswith("; did you mean 'max_edges'?")


def test_chance_is_not_called_by_an_action_of_a_player(board, monkeypatch):
    changed = {
        "fields": [Field("left", high=3, default=3)],
        "transition": fees,
        "pays": True,
        "actions": ("stop",) * 6,
        "start": {},
    }
    register("purse", Purse, made(**changed))
    drawn = str(luckbase.graph(board, "random"))
    assert "chance" in drawn and "stop" not in drawn
