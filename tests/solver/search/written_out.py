"""A game that is written out, state by state, for tests that know every number of it.

    game = written(decides(0, [(1.0, 1)], [(0.5, 1), (0.5, 2)]), over(1, 0), over(0, 1))

A state is `over`, or somebody `decides` between actions, or `chance` does, or `both` choose at once
between two; an action is a list of edges (weight, child) or (weight, child, rewards). The first
state is the start.
"""

import json
from typing import Literal

import numpy as np

from luckbase.solver.board.model import Board, Section
from luckbase.solver.board.registry import register
from luckbase.solver.game.fields import Field
from luckbase.solver.game.game import load_game
from luckbase.solver.game.rules import (
    CHANCE,
    DECISION,
    JOINT,
    SIMULTANEOUS,
    TERMINAL,
    Numbers,
    transition,
)
from luckbase.solver.game.rules import Rules as GameRules

PAIRS = (0, 1, JOINT, JOINT + 1)


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


def both(*pairs):
    """Two players choose at once between two: four actions, those of player 0's first choice before
    the others."""
    return {"kind": SIMULTANEOUS, "who": -1, "actions": [list(edges) for edges in pairs]}


def board_of(*states, name="written", **rules):
    """The board of these states."""
    return WrittenBoard(game="written", name=name, rules=Rules(text=json.dumps(states), **rules))


def written(*states, **rules):
    """The game of these states."""
    return load_game(board_of(*states, **rules))


@transition
def listed(board, state, edges):
    """Board: how many values each field has; of each state its kind, who acts, its first edge, how
    many; of each edge the action and the child; in `reals` the weight and the rewards."""
    ints, reals = board
    children, weights, actions, rewards, about = edges
    fields, players, x, n = state.size, rewards.shape[1], 0, 1
    for i in range(fields):
        x, n = x * ints[i] + state[i], n * ints[i]
    about[0], about[1], first, count = ints[fields + 4 * x : fields + 4 * x + 4]
    for k in range(count):
        at, paid = fields + 4 * n + (1 + fields) * (first + k), (first + k) * (1 + players)
        actions[k], weights[k] = ints[at], reals[paid]
        for i in range(fields):
            children[k, i] = ints[at + 1 + i]
        for i in range(players):
            rewards[k, i] = reals[paid + 1 + i]
    return 0 if about[0] == TERMINAL else count


def numbers_of(sizes, states):
    """The numbers of `listed`. states: of each state, in the order of its fields, its kind, who
    acts, and its edges (action, weight, child's fields, rewards)."""
    about, ints, reals, count = [], [], [], 0
    for kind, who, edges in states:
        about += [kind, who, count, len(edges)]
        for action, weight, child, paid in edges:
            ints += [action, *child]
            reals += [weight, *paid]
        count += len(edges)
    return Numbers(np.array([*sizes, *about, *ints]), np.array(reals, np.float64))


def written_out(board):
    """The rules of a board of this game."""
    options = board.rules
    states, nothing = [], [0.0] * options.players
    for state in json.loads(options.text):
        numbers = PAIRS if state["kind"] == SIMULTANEOUS else range(len(state["actions"]))
        states.append((state["kind"], state["who"], [
            (number, weight, [child], paid[0] if paid else nothing)
            for number, action in zip(numbers, state["actions"], strict=True)
            for weight, child, *paid in action
        ]))  # fmt: skip
    return GameRules(
        fields=[Field("at")], players=options.players, transition=listed,
        numbers=numbers_of([len(states)], states),
        max_edges=max(len(edges) for _, _, edges in states),
        actions=lambda action: chr(ord("a") + action), start={"at": 0},
        tie_tolerance=options.tolerance, payoff_range=(options.low, options.high), pays=True,
        simultaneous=any(kind == SIMULTANEOUS for kind, _, _ in states),
    )  # fmt: skip


register("written", WrittenBoard, written_out)
