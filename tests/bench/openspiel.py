"""The bench suite ``openspiel``: all games of OpenSpiel, small where parameters allow, each in
a process of its own: what we take, with how many states, and player 1's value; OpenSpiel's own
value iteration (its Python, and cvxpy where both choose at once) beside it; or why it is refused.
"""

from __future__ import annotations

import multiprocessing
import sys
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from luckbase.jobs import terminal
from luckbase.solver import load_board, load_game
from luckbase.solver.errors import LuckbaseError, need
from luckbase.solver.game.game import Game
from luckbase.solver.games.openspiel import game as spiel_game
from tests.solver.search.solved import solve_graph

with suppress(ImportError):  # the suite says so
    import pyspiel

LIMIT, MOST, THEIRS = 120.0, 100_000, 20_000
"""Seconds and states that a game may take; states up to which their value iteration, plain Python,
is run."""
FORK = multiprocessing.get_context("fork")
"""What is compiled and imported stays."""
SMALL = {
    "2048": "2048(max_tile=8)", "amazons": "amazons(board_size=6)",
    "blotto": "blotto(coins=4,fields=3)", "breakthrough": "breakthrough(rows=4,columns=3)",
    "capture_the_flag": "capture_the_flag(horizon=2)", "catch": "catch(rows=5,columns=4)",
    "cliff_walking": "cliff_walking(horizon=20)",
    "clobber": "clobber(rows=3,columns=3)",
    "connect_four": "connect_four(rows=4,columns=3,x_in_row=3)",
    "cursor_go": "cursor_go(board_size=2,max_cursor_moves=4)",
    "dots_and_boxes": "dots_and_boxes(num_rows=1,num_cols=2)",
    "go": "go(board_size=2,max_game_length=5)",
    "gomoku": "gomoku(size=3,connect=3)", "goofspiel": "goofspiel(num_cards=4)",
    "havannah": "havannah(board_size=2)", "hex": "hex(board_size=3)",
    "laser_tag": "laser_tag(grid=S.S,horizon=3,zero_sum=true)",
    "lines_of_action": "lines_of_action(max_game_length=4)",
    "markov_soccer": "markov_soccer(horizon=6)", "mnk": "mnk(m=3,n=3,k=3)",
    "nim": "nim(pile_sizes=1;3;5;7)", "oshi_zumo": "oshi_zumo(coins=6,size=2)",
    "oware": "oware(num_houses_per_player=2,num_seeds_per_house=2)",
    "pathfinding": "pathfinding(horizon=8)", "pig": "pig(players=2,winscore=20)",
    "quoridor": "quoridor(board_size=3,wall_count=1)", "snake": "snake(rows=3,columns=3,horizon=4)",
    "y": "y(board_size=3)", "yacht": "yacht(players=1,num_dice=1,dice_sides=2)",
    "twixt": "twixt(board_size=5)",
    "normal_form_extensive_game": "normal_form_extensive_game(game=kuhn_poker())",
    "repeated_game": "repeated_game(stage_game=matrix_rps(),num_repetitions=3)",
    "turn_based_simultaneous_game": "turn_based_simultaneous_game(game=matrix_rps())",
    "misere": "misere(game=tic_tac_toe())", "zerosum": "zerosum(game=tic_tac_toe())",
    "start_at": "start_at(game=tic_tac_toe(),history=0)",
    "cached_tree": "cached_tree(game=tic_tac_toe())",
}  # fmt: skip
"""A game where it is not taken as it is."""
STATES = {
    "capture_the_flag": "moves", "cliff_walking": "moves", "go": "histories",
    "laser_tag": "histories", "lines_of_action": "moves", "markov_soccer": "moves",
    "pathfinding": "moves", "snake": "moves",
}  # fmt: skip
"""What makes two positions one state, of games whose strings leave something out."""
HEADS = ("game", "states", "player 1", "s", "OpenSpiel", "s", "or why not")


def openspiel_suite(board: Path, results: Path) -> None:
    """Print the table of all registered games."""
    need("the suite openspiel", "pyspiel", extra="openspiel")
    receive, send = FORK.Pipe(duplex=False)
    for text in ("tic_tac_toe", "pig(winscore=3)", "matrix_rps"):  # compiles
        _find(text, "strings", send)
    receive.close()
    rows, taken = [], 0
    for name in pyspiel.registered_names():
        text, states = SMALL.get(name, name), STATES.get(name, "strings")
        found = _apart(text, states)
        row = text + f" --set states={states}" * (states != "strings"), *_cells(found)
        print(*row, file=sys.stderr, flush=True)
        rows.append(row)
        taken += "value" in found
    terminal.print_table(f"{taken} of {len(rows)} games", HEADS, rows, sys.stdout)


def _apart(text: str, states: str) -> dict[str, Any]:
    """What a process of its own finds of a game; OpenSpiel may end it at once."""
    receive, send = FORK.Pipe(duplex=False)
    process = FORK.Process(target=_find, args=(text, states, send))
    process.start()
    send.close()
    found: dict[str, Any] = {"why": "ends the process"}
    until = time.monotonic() + LIMIT
    try:
        while receive.poll(max(0.0, until - time.monotonic())):
            found = receive.recv()
        if "value" not in found:
            found = {"why": f"takes more than {LIMIT:.0f} s"}
    except EOFError:
        pass
    process.kill()
    process.join()
    return found


def _cells(found: dict[str, Any]) -> tuple[str, ...]:
    if "value" not in found:
        return "", "", "", "", "", found["why"]
    theirs = found.get("theirs")
    other = "" if theirs is None else f"{theirs:.7f}"
    spent = "" if theirs is None else f"{found['their_seconds']:.2f}"
    ours = f"{found['states']:,}", f"{found['value']:.7f}", f"{found['seconds']:.2f}"
    return *ours, other, spent, "" if other else found["their_why"]


def _find(text: str, states: str, send: Any) -> None:
    """Send what we find of a game, then what OpenSpiel does."""
    begun, spiel_game.MAX_STATES = time.perf_counter(), MOST
    try:
        game = load_game(load_board(f"openspiel:{text}", states=states))
        graph = solve_graph(game, game.needed_start()[None])
    except LuckbaseError as error:
        return send.send({"why": str(error).removeprefix(f"openspiel:{text}: ")})
    found: dict[str, Any] = {
        "states": graph.count, "value": float(graph.values[0, 0]),
        "seconds": time.perf_counter() - begun, "their_why": _why_not(game, graph.count),
    }  # fmt: skip
    if found["their_why"]:
        return send.send(found)
    send.send(found | {"their_why": f"theirs takes more than {LIMIT:.0f} s"})
    from open_spiel.python.algorithms.value_iteration import value_iteration

    spiel = pyspiel.load_game(text)
    begun, start = time.perf_counter(), spiel.new_initial_state()
    values = value_iteration(spiel, -1, 1e-10, cyclic_game=True)
    found |= {"theirs": _at(values, start), "their_seconds": time.perf_counter() - begun}
    send.send(found)


def _why_not(game: Game, states: int) -> str:
    """Why their value iteration is not run; "" where it is."""
    rules = game.board.rules  # type: ignore[attr-defined]
    kind = pyspiel.load_game(rules.load).get_type()
    for no, why in (
        (game.pays, "theirs leaves out what is paid on the way"),
        (rules.states != "strings", "theirs knows strings only"),
        (game.players > 2, "theirs: one player, or two"),
        (game.players == 2 and kind.utility.name != "ZERO_SUM", "theirs: two of sum 0"),
        (states > THEIRS, f"theirs not run: more than {THEIRS:,} states"),
        (find_spec("cvxpy") is None, "theirs needs cvxpy"),
    ):  # fmt: skip
        if no:
            return why
    return ""


def _at(values: dict[str, float], state: Any) -> float:
    """Their value of a position; where chance is up it is no state of theirs."""
    if not state.is_chance_node():
        return float(values[str(state)])
    return sum(chance * _at(values, state.child(a)) for a, chance in state.chance_outcomes())
