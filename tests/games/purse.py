"""Coins, a game for one: stop and keep the purse, or toss, which doubles it or loses it. The first
number of the board says in which way the rules are broken; 0 is right."""

from dataclasses import replace

import numpy as np

from luckbase.game import (
    Agents,
    Board,
    Field,
    Game,
    Rules,
    chance,
    decision,
    lead,
    over,
    pay,
    transition,
)

START = {"purse": 4, "tosses": 4}


class Purse(Board):
    pass


@transition
def coins(board, state, edges):  # noqa: C901
    """The first states of a play are right, so that engines meet the fault on their way."""
    purse, tosses = state
    broken = board.ints[0] if tosses <= 2 else 0
    if tosses == 0:
        if broken == 1:
            return over(edges, 1e400)
        if broken == 2:
            return over(edges, np.nan)
        if broken == 3:
            return over(edges, -0.29)
        return over(edges, purse / 64)
    if broken == 4:
        edges.about[0] = 7
        edges.weights[0], edges.about[2] = 1.0, 0
        return 1
    if broken == 5:
        return decision(edges, 0)
    if broken == 7:
        state[0] //= broken - 7
    if broken == 16:
        lead(edges, state, -1, 1.0)[1] = 0
        return chance(edges)
    lead(edges, state, 0, -1.0 if broken == 6 else 1.0)[1] = 0
    for doubled in (0, 2 * purse):
        child = lead(edges, state, 9 if broken == 8 else 1, 0.475 if broken == 9 else 0.5)
        child[0], child[1] = doubled, tosses - 1
        if broken == 10:
            child[0] = 70
        if broken == 11:
            pay(edges, 0.5)
    if broken == 12 or broken == 17:
        lead(edges, state, 2 if broken == 12 else 0, 1.0)
    if broken == 13:
        state[0] = 0
    if broken == 14:
        return chance(edges)
    if broken == 18:
        edges.weights[1] = np.random.random()
        edges.weights[2] = 1 - edges.weights[1]
    return decision(edges, 3 if broken == 15 else -1 if broken == 19 else 0)


def rules(broken=0, **changed):
    """The rules, in one way broken and with other values."""
    tosses = {"toss": lambda game, player, state, actions: len(actions) - 1}
    right = Rules(
        fields=[Field("purse", high=64), Field("tosses", high=5)], players=1, transition=coins,
        numbers=(broken,), max_edges=4 if broken == 17 else 3, actions=("stop", "toss", "again"),
        start=START, level={"tosses": 1}, capabilities={Agents: Agents(tosses)},
    )  # fmt: skip
    return replace(right, **changed)


def game(broken=0, **changed):
    """The game of these rules."""
    return Game(Purse(game="purse", name="purse"), rules(broken, **changed))
