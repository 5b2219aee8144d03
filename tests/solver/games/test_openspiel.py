"""Games of OpenSpiel: every value against sweeps through pyspiel, names of states, what is refused
by name, and the commands."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest

import luckbase
from luckbase.jobs.app import run
from luckbase.solver import load_board, load_game
from luckbase.solver.errors import OptionError, StateError
from luckbase.solver.game.fields import word
from luckbase.solver.game.game import Game
from luckbase.solver.games.openspiel import game as spiel
from luckbase.solver.search.game_graph import Graph
from luckbase.solver.search.keys import unpack_all
from tests.reference import openspiel as reference
from tests.solver.board.board_files import assert_one_sentence
from tests.solver.search.solved import solve_graph

pyspiel = pytest.importorskip("pyspiel", reason="OpenSpiel is not installed (extra openspiel)")

TAKEN = (
    "nim(pile_sizes=1;2;3)", "connect_four(rows=3,columns=3,x_in_row=3)",  # two, no chance
    "pig(players=2,winscore=6)",  # cycles, and both may pass for ever
    "catch(rows=4,columns=3)",  # for one
    "matrix_rpsw", "oshi_zumo(coins=3,size=1,min_bid=1)", "goofspiel(num_cards=3)",  # both at once
)  # fmt: skip


def game_of(name: str, **settings: object) -> Game:
    return load_game(load_board(f"openspiel:{name}", **settings))


def solved(game: Game) -> tuple[Graph, dict[str, float]]:
    """The graph from the start, and player 1's value by name of the state."""
    start = game.start()
    assert start is not None
    graph = solve_graph(game, start[None])
    keys, rows = graph.keys, graph.values
    names = [game.describe(state)["state"] for state in unpack_all(game.strides, keys)]
    return graph, dict(zip(names, rows[:, 0].tolist(), strict=True))


@pytest.mark.parametrize("name", TAKEN)
def test_values_are_those_of_sweeps_through_pyspiel(name: str) -> None:
    theirs = reference.values(pyspiel.load_game(name))
    _, ours = solved(game_of(name))
    assert len(theirs) > 1
    for text, value in theirs.items():
        assert ours[word(text)] == pytest.approx(value, abs=1e-9), text


def test_what_is_paid_on_the_way_and_how_many_moves_are_left_count() -> None:
    """A walk of at most four steps that cost one each: with moves as part of the state, by hand."""
    name = "cliff_walking(height=2,width=3,horizon=6)"
    _, ours = solved(game_of(name, states="moves"))
    game = pyspiel.load_game(name)

    def best(state: pyspiel.State) -> float:
        if state.is_terminal():
            return float(state.returns()[0])
        return max(best(state.child(action)) for action in state.legal_actions())

    root = game.new_initial_state()
    assert ours[f"{word(str(root))}@0"] == best(root)
    _, histories = solved(game_of(name, states="histories"))
    assert histories[f"{word(str(root))}@"] == best(root)
    assert len(histories) > len(ours)


REFUSED = {
    "kuhn_poker": "openspiel:kuhn_poker: hides something from its players",
    "matrix_pd": "both players choose at once, and their payoffs do not always have the same sum",
    "matching_pennies_3p": "players who choose at once: 3; expected at most two",
    "mfg_garnet": "is a game of mean fields",
    "stones_and_gems": "does not say how likely it is",
    "tictactoe": "has no such game; did you mean 'tic_tac_toe'",
    "pig(sides=6)": "OpenSpiel says: ",
    "pig(": "OpenSpiel says: ",
    "cliff_walking(height=2,width=3,horizon=6)": "write states=moves or states=histories",
    "connect_four": "has more than 5,000 states",
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_taken_is_refused_by_name(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spiel, "MAX_STATES", 5_000)
    with pytest.raises(OptionError, match=r"^openspiel:") as caught:
        game_of(name)
    assert_one_sentence(caught.value)
    assert REFUSED[name] in str(caught.value)


def test_a_cycle_in_which_both_choose_at_once_is_refused_by_its_state() -> None:
    with pytest.raises(StateError, match="both players choose there at once"):
        solved(game_of("markov_soccer"))


def test_without_the_plays_a_game_that_its_strings_do_not_tell_would_be_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(spiel, "PLAYS", 0)
    game_of("cliff_walking(height=2,width=3,horizon=7)")
    monkeypatch.undo()
    with pytest.raises(OptionError, match="leave out what matters"):
        game_of("cliff_walking(height=2,width=3,horizon=8)")


def test_moves_that_are_chosen_and_not_carried_out_tell_states_apart() -> None:
    """Where chance says who of two moves first, all strings are those from before the moves."""
    board = "markov_soccer(horizon=3)"
    game = game_of(board, states="moves")
    names = game.fields[0].names
    assert names is not None and any("Chance_Node@1~2" in each for each in names.names)
    theirs = pyspiel.load_game(board).new_initial_state()
    assert game.describe(game.needed_start())["state"] == f"{word(str(theirs))}@0"


def test_a_board_without_a_file_is_itself_again_wherever_it_goes(tmp_path: Path) -> None:
    name = "openspiel:nim(pile_sizes=1;2)"
    board = load_board(name)
    again = pickle.loads(pickle.dumps(load_game(board)))
    assert again.board == board and again.rules_version == load_game(board).rules_version
    assert board.name == "nim-pile_sizes=1;2" and board.source and board.source.file == name
    file = tmp_path / "nim.toml"
    file.write_text('game = "openspiel"\n[rules]\nload = "nim(pile_sizes=1;2)"\n')
    assert load_board(file).rules == board.rules
    assert (
        load_game(load_board("openspiel:nim(pile_sizes=1;3)")).rules_version != again.rules_version
    )


def test_the_commands_speak_of_states_by_their_strings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name, at = "openspiel:nim(pile_sizes=1;2,is_misere=false)", f"--results={tmp_path}"
    start = word(str(pyspiel.load_game(name.partition(":")[2]).new_initial_state()))

    def said(*words: str) -> str:
        assert run([*words]) == 0
        return capsys.readouterr().out

    said("solve", name, at)
    found = json.loads(said("query", name, f"state={start}", at, "--json"))
    assert found["state"] == {"state": start} and found["value"] == [1.0, -1.0]
    assert found["source"] == "table" and found["actions"][0]["action"] == found["best"]
    exported = said("export", name, f"state={start}", at, "--columns=state,payoff_1")
    assert exported.splitlines()[1].startswith(f'"{start}"')
    said("verify", name, at, "--all")
    assert "complete" in said("status", name, at)
    assert run(["query", name, "state=(0)_1_3", at]) == 2
    assert "state: there is no '(0)_1_3'; did you mean" in capsys.readouterr().err
    assert run(["clean", at, "--yes"]) == 0  # its board needs it
    assert "complete" in said("status", name, at)


def test_in_python_a_state_may_be_as_openspiel_writes_it() -> None:
    root = pyspiel.load_game("tic_tac_toe").new_initial_state()
    won = root.child(0).child(3).child(1).child(4)
    with luckbase.open("openspiel:tic_tac_toe", in_memory=True) as table:
        answer = table[{"state": str(won)}]
    assert answer.best == "x(0,2)" and answer.value == (1.0, -1.0)
