"""A game that is written out, state by state, for tests that know every number of it.

    game = written(decides(0, [(1.0, 1)], [(0.5, 1), (0.5, 2)]), over(1, 0), over(0, 1))

A state is `over`, or somebody `decides` between actions, or `chance` does; an action is a list of
edges (weight, child) or (weight, child, rewards). The first state is the start.
"""

import json
from typing import Literal

import numpy as np

from luckbase.solver.board.model import Board, Section
from luckbase.solver.board.registry import register
from luckbase.solver.game.capabilities import Agents
from luckbase.solver.game.fields import Field
from luckbase.solver.game.game import load_game
from luckbase.solver.game.rules import CHANCE, DECISION, TERMINAL, Numbers, transition
from luckbase.solver.game.rules import Rules as GameRules


class Rules(Section):
    text: str
    players: int = 2
    low: float = 0.0
    high: float = 1.0
    tolerance: float = 1e-12


class WrittenBoard(Board):
    game: Literal["written"]
    rules: Rules


def over(*pays):
    """The game is over and pays this."""
    return {"kind": TERMINAL, "who": -1, "actions": [[(1.0, 0, list(pays))]]}


def decides(who, *actions):
    """Player `who` (from 0) takes one of these actions: `a`, `b`, …"""
    return {"kind": DECISION, "who": who, "actions": [list(action) for action in actions]}


def chance(*edges):
    """Nobody decides."""
    return {"kind": CHANCE, "who": -1, "actions": [list(edges)]}


def board_of(*states, name="written", **rules):
    """The board of these states."""
    return WrittenBoard(game="written", name=name, rules=Rules(text=json.dumps(states), **rules))


def written(*states, **rules):
    """The game of these states."""
    return load_game(board_of(*states, **rules))


@transition
def _written(board, state, edges):
    """Board: states, players; of each state its kind, who acts, its first edge, how many; of each
    edge the child and the action, and in `reals` the weight and the rewards."""
    ints, reals = board
    children, weights, actions, rewards, about = edges
    n, players, x = ints[0], ints[1], state[0]
    about[0], about[1], first, count = ints[2 + 4 * x : 6 + 4 * x]
    for k in range(count):
        children[k, 0], actions[k] = ints[2 + 4 * n + 2 * (first + k) :][:2]
        weights[k] = reals[(first + k) * (1 + players)]
        for i in range(players):
            rewards[k, i] = reals[(first + k) * (1 + players) + 1 + i]
    return 0 if about[0] == 0 else count


def written_out(board):
    """The rules of a board of this game."""
    options = board.rules
    states, about, edges, reals = json.loads(options.text), [], [], []
    for state in states:
        flat = [(a, *edge) for a, action in enumerate(state["actions"]) for edge in action]
        about += [state["kind"], state["who"], len(edges) // 2, len(flat)]
        for action, weight, child, *paid in flat:
            edges += [child, action]
            reals += [weight, *(paid[0] if paid else [0.0] * options.players)]
    return GameRules(
        fields=[Field("at")],
        players=options.players,
        transition=_written,
        numbers=Numbers(
            np.array([len(states), options.players, *about, *edges]), np.array(reals, np.float64)
        ),
        max_edges=max(about[3::4]),
        actions=lambda action: chr(ord("a") + action),
        start={"at": 0},
        tie_tolerance=options.tolerance,
        payoff_range=(options.low, options.high),
        pays=True,
        capabilities={
            Agents: Agents({
                "the-first": lambda game, player, state, actions: 0,
                "the-last": lambda game, player, state, actions: len(actions) - 1,
            })
        },
    )  # fmt: skip


register("written", WrittenBoard, written_out)
