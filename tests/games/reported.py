"""Games of public reports and textbooks, on which luckbase once gave a wrong value or none."""

from luckbase.game import (
    Field,
    Numbers,
    Rules,
    chance,
    decision,
    joint,
    lead,
    over,
    pay,
    register,
    simultaneous,
    transition,
)
from tests.games import board

PAIRS = (([3, 0, 5, 1], [3, 5, 0, 1]), ([2, 0, 0, 1], [1, 0, 0, 2]), ([4, 1, 3, 0], [4, 3, 1, 0]))
"""Two-by-two games whose payoffs have no one sum: the prisoner's dilemma, the battle of the sexes,
and one with a single equilibrium, which pays (4, 4)."""


Bimatrix = board("Bimatrix", which=(0, 0, 2))


@transition
def bimatrix(board, state, edges):
    if state[0] > 0:
        return over(edges, board.reals[state[0] - 1], board.reals[state[0] + 3])
    for i in range(2):
        for j in range(2):
            lead(edges, state, joint(i, j), 1.0)[0] = 1 + 2 * i + j
    return simultaneous(edges)


def bimatrix_rules(board):
    first, second = PAIRS[board.rules.which]
    return Rules(
        fields=[Field("cell", high=4, default=0)], players=2, transition=bimatrix, max_edges=4,
        numbers=Numbers([0], [float(x) for x in first + second]), actions=("first", "second"),
        start={}, simultaneous=True, payoff_range=(0, 5),
    )  # fmt: skip


Dimes = board("Dimes", rounds=(20_000, 1, 5_000_000), sides=(49, 1, 1000))


@transition
def dimes(board, state, edges):
    """Every round a die is rolled for nothing, and pays ten cents."""
    if state[0] == 0:
        return over(edges, 0.0)
    for _ in range(board.ints[0]):
        lead(edges, state, 0, 1 / board.ints[0])[0] = state[0] - 1
        pay(edges, 0.1)
    return chance(edges)


def dimes_rules(board):
    rounds, sides = board.rules.rounds, board.rules.sides
    return Rules(
        fields=[Field("rounds", high=rounds, default=rounds)], players=1, transition=dimes,
        numbers=(sides,), max_edges=sides, actions=("roll",), start={}, pays=True,
        payoff_range=(0, rounds * 0.1 + 1),
    )  # fmt: skip


Die = board("Die", sides=(100, 2, 1000), fee=(1.0, 0.0, 100.0))


@transition
def die(board, state, edges):
    """Take the face of a die in dollars, or pay the fee and roll again, as often as you like."""
    sides, face = board.ints[0], state[0]
    if face == 0:
        for k in range(1, sides + 1):
            lead(edges, state, 2, 1 / sides)[0] = k
        return chance(edges)
    if face > sides:
        return over(edges, face - sides)
    lead(edges, state, 0, 1.0)[0] = face + sides
    lead(edges, state, 1, 1.0)[0] = 0
    pay(edges, -board.reals[0])
    return decision(edges, 0)


def die_rules(board):
    sides = board.rules.sides
    return Rules(
        fields=[Field("face", high=2 * sides, default=0)], players=1, transition=die,
        numbers=Numbers([sides], [board.rules.fee]), max_edges=sides, actions=("take", "again"),
        start={}, payoff_range=(-sides, sides), pays=True,
    )  # fmt: skip


Grid = board("Grid", step=(-0.04, -2.0, 0.0))


@transition
def grid(board, state, edges):  # one function, as rules are
    """The 4 x 3 world of the textbook: 8 in 10 the way you want, 1 in 10 to each side."""
    x, y = state
    if x == 3 and y > 0:
        return over(edges, 1.0 if y == 2 else -1.0)
    for way in range(4):
        for turn in range(3):
            w = (way + (0, 1, 3)[turn]) % 4
            a, b = x + (w == 1) - (w == 3), y + (w == 0) - (w == 2)
            if a < 0 or a > 3 or b < 0 or b > 2 or (a == 1 and b == 1):
                a, b = x, y
            child = lead(edges, state, way, (0.8, 0.1, 0.1)[turn])
            child[0], child[1] = a, b
            pay(edges, board.reals[0])
    return decision(edges, 0)


def grid_rules(board):
    return Rules(
        fields=[Field("x", high=3, default=0), Field("y", high=2, default=0)], players=1,
        transition=grid, numbers=Numbers([], [board.rules.step]), max_edges=12,
        actions=("up", "right", "down", "left"), start={}, pays=True, payoff_range=(-100, 1),
    )  # fmt: skip


Gambler = board(
    "Gambler", goal=(100, 2, 50_000), heads=(0.5, 0.01, 0.99), most=(1, 1, 5000), zero=(False,)
)


@transition
def gambler(board, state, edges):
    """Stake some of the capital on a coin until the goal or nothing is left."""
    goal, most, zero = board.ints
    s = state[0]
    if s in (0, goal):
        return over(edges, 1.0 if s == goal else 0.0)
    if zero == 1:
        lead(edges, state, 0, 1.0)
    for stake in range(1, min(most, s, goal - s) + 1):
        lead(edges, state, stake, board.reals[0])[0] = s + stake
        lead(edges, state, stake, 1 - board.reals[0])[0] = s - stake
    return decision(edges, 0)


def gambler_rules(board):
    options = board.rules
    most = min(options.most, options.goal)
    return Rules(
        fields=[Field("capital", high=options.goal, default=options.goal // 2)], players=1,
        transition=gambler, numbers=Numbers([options.goal, most, options.zero], [options.heads]),
        max_edges=2 * most + 1, actions=lambda a: f"stake {a}", start={},
    )  # fmt: skip


Streak = board("Streak", heads=(18, 1, 60), second=(0.45, 0.01, 0.99))


@transition
def streak(board, state, edges):
    """Toss one of two coins until it shows so many heads in a row; every toss costs one."""
    if state[0] == board.ints[0]:
        return over(edges, 0.0)
    for coin in range(2):
        p = 0.5 if coin == 0 else board.reals[0]
        lead(edges, state, coin, p)[0] = state[0] + 1
        pay(edges, -1.0)
        lead(edges, state, coin, 1 - p)[0] = 0
        pay(edges, -1.0)
    return decision(edges, 0)


def streak_rules(board):
    heads = board.rules.heads
    return Rules(
        fields=[Field("row", high=heads, default=0)], players=1, transition=streak,
        numbers=Numbers([heads], [board.rules.second]), max_edges=4, actions=("fair", "other"),
        start={}, pays=True, payoff_range=(-(3.0 ** (heads + 1)), 0),
    )  # fmt: skip


Throwers = board(
    "Throwers",
    one=(0.1, 1e-20, 1.0),
    two=(0.2, 1e-20, 1.0),
    pass_on=(False,),
    pairs=(1, 1, 100_000),
)


@transition
def throwers(board, state, edges):
    """Two throw in turn until one hits; with several pairs one hit of player 1 leads to the next
    pair. If they may, they pass instead of throwing."""
    up, pair = state
    if up == 2 or pair == board.ints[1]:
        return over(edges, 1.0 if up == 2 else 0.0, 0.0 if up == 2 else 1.0)
    p = board.reals[up]
    child = lead(edges, state, 0, p)
    child[0], child[1] = (2, pair) if up == 0 else (0, pair + 1)
    lead(edges, state, 0, 1 - p)[0] = 1 - up
    if board.ints[0] == 1:
        lead(edges, state, 1, 1.0)[0] = 1 - up
    return decision(edges, up)


def throwers_rules(board):
    options = board.rules
    return Rules(
        fields=[Field("up", high=2, default=0), Field("pair", high=options.pairs, default=0)],
        players=2, transition=throwers,
        numbers=Numbers([options.pass_on, options.pairs], [options.one, options.two]), max_edges=3,
        actions=("throw", "pass"), start={},
    )  # fmt: skip


Siege = board("Siege", end=(0.1, 0.0, 1.0))


@transition
def siege(board, state, edges):
    """Both choose one of two gates. If they meet, player 2 wins the round, else player 1 gets 2 at
    gate 1 or 1 at gate 0; then the siege ends with a fixed chance, or goes on."""
    if state[0] == 1:
        return over(edges, 0.0, 0.0)
    for i in range(2):
        for j in range(2):
            won = -1.0 if i == j else 1.0 + i
            if board.reals[0] > 0:
                lead(edges, state, joint(i, j), board.reals[0])[0] = 1
                pay(edges, won, -won)
            lead(edges, state, joint(i, j), 1 - board.reals[0])
            pay(edges, won, -won)
    return simultaneous(edges)


def siege_rules(board):
    end = board.rules.end
    most = 2 / end if end else 1e6
    return Rules(
        fields=[Field("over", high=1, default=0)], players=2, transition=siege,
        numbers=Numbers([], [end]), max_edges=8, actions=("gate 0", "gate 1"), start={},
        simultaneous=True, pays=True, payoff_range=(-most, most),
    )  # fmt: skip


for _name, _board, _rules in (
    ("bimatrix", Bimatrix, bimatrix_rules), ("dimes", Dimes, dimes_rules), ("die", Die, die_rules),
    ("grid", Grid, grid_rules), ("gambler", Gambler, gambler_rules),
    ("streak", Streak, streak_rules), ("throwers", Throwers, throwers_rules),
    ("siege", Siege, siege_rules),
):  # fmt: skip
    register(_name, _board, _rules)
