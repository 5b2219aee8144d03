"""Races with dice that a search solves as components: Hog, Pig for two and three, two-dice Pig."""

import numpy as np

from luckbase.game import Field, Numbers, Rules, decision, lead, over, register, transition
from tests.games import board

Hog = board("Hog", goal=(100, 2, 200), dice=(10, 1, 10))


@transition
def hog(board, state, edges):
    """Roll as many dice as you like: you score their sum, or nothing with a 1 among them."""
    goal, most, width = board.ints
    up = state[2]
    for player in range(2):
        if state[player] >= goal:
            return over(edges, 1.0 - player, 0.0 + player)
    for dice in range(1, most + 1):
        for points in range(width):
            chance = board.reals[(dice - 1) * width + points]
            if chance > 0:
                child = lead(edges, state, dice, chance)
                child[up], child[2] = min(state[up] + points, goal), 1 - up
    return decision(edges, up)


def hog_rules(board):
    goal, dice = board.rules.goal, board.rules.dice
    width, chances = 6 * dice + 1, []
    sums = np.array([1.0])
    for k in range(1, dice + 1):
        sums = np.convolve(sums, [0, 0, 1 / 6, 1 / 6, 1 / 6, 1 / 6, 1 / 6])
        row = np.zeros(width)
        row[: len(sums)] = sums
        row[0] = 1 - (5 / 6) ** k
        chances += (row / row.sum()).tolist()
    return Rules(
        fields=[
            Field("scores", length=2, high=goal, default=0), Field("up", high=1, default=0),
        ],
        players=2, transition=hog, numbers=Numbers([goal, dice, width], chances),
        max_edges=dice * width, actions=lambda a: f"roll {a}", start={},
    )  # fmt: skip


Piglets = board("Piglets", goal=(100, 2, 200), players=(2, 2, 3))


@transition
def piglets(board, state, edges):
    """Pig: the state is the banked scores, whose turn it is and the points of the turn."""
    goal, players = board.ints
    up, turn = state[players], state[players + 1]
    for player in range(players):
        if state[player] >= goal:
            first, second = 1.0 * (player == 0), 1.0 * (player == 1)
            if players == 2:
                return over(edges, first, second)
            return over(edges, first, second, 1.0 - first - second)
    if turn > 0:
        child = lead(edges, state, 0, 1.0)
        child[up] = min(state[up] + turn, goal)
        child[players], child[players + 1] = (up + 1) % players, 0
    for face in range(1, 7):
        child = lead(edges, state, 1, 1 / 6)
        if face == 1:
            child[players], child[players + 1] = (up + 1) % players, 0
        elif state[up] + turn + face >= goal:
            child[up], child[players + 1] = goal, 0
        else:
            child[players + 1] = turn + face
    return decision(edges, up)


def piglets_rules(board):
    goal, players = board.rules.goal, board.rules.players
    return Rules(
        fields=[
            Field("scores", length=players, high=goal, default=0),
            Field("up", high=players - 1, default=0), Field("turn", high=goal, default=0),
        ],
        players=players, transition=piglets, numbers=(goal, players), max_edges=7,
        actions=("hold", "roll"), start={},
    )  # fmt: skip


TwoDice = board("TwoDice", goal=(100, 2, 200))


@transition
def twodice(board, state, edges):
    """Two-dice Pig: a 1 ends the turn, two of them take the score too, so all states come back."""
    goal = board.ints[0]
    up, turn = state[2], state[3]
    for player in range(2):
        if state[player] >= goal:
            return over(edges, 1.0 - player, 0.0 + player)
    if turn > 0:
        child = lead(edges, state, 0, 1.0)
        child[up], child[2], child[3] = state[up] + turn, 1 - up, 0
    child = lead(edges, state, 1, 1 / 36)
    child[up], child[2], child[3] = 0, 1 - up, 0
    child = lead(edges, state, 1, 10 / 36)
    child[2], child[3] = 1 - up, 0
    for points in range(4, 13):
        child = lead(edges, state, 1, (min(points - 3, 13 - points)) / 36)
        if state[up] + turn + points >= goal:
            child[up], child[3] = goal, 0
        else:
            child[3] = turn + points
    return decision(edges, up)


def twodice_rules(board):
    goal = board.rules.goal
    return Rules(
        fields=[
            Field("scores", length=2, high=goal, default=0), Field("up", high=1, default=0),
            Field("turn", high=goal, default=0),
        ],
        players=2, transition=twodice, numbers=(goal,), max_edges=12, actions=("hold", "roll"),
        start={},
    )  # fmt: skip


for _name, _board, _rules in (
    ("hog", Hog, hog_rules), ("piglets", Piglets, piglets_rules),
    ("twodice", TwoDice, twodice_rules),
):  # fmt: skip
    register(_name, _board, _rules)
