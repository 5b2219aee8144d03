"""Blackjack, Undercut, Can't Stop and Farkle as authors would write them, but not registered."""

import numba
import numpy as np

from luckbase.game import (
    Field,
    Rules,
    chance,
    decision,
    joint,
    keeps,
    lead,
    over,
    pay,
    rolls,
    rolls_in_order,
    simultaneous,
    transition,
)
from tests.games import board

STAND, HIT, DOUBLE = 0, 1, 2
CARD = np.array([0] + 9 * [1 / 13] + [4 / 13])


Blackjack = board("Blackjack")


@numba.njit(boundscheck=True)
def with_card(total, soft, card):
    """A hand and whether it counts an ace as 11, after one more card; 22 stands for bust."""
    if card == 1 and total + 11 <= 21:
        return total + 11, 1
    if soft and total + card > 21:
        return total + card - 10, 0
    return min(total + card, 22), soft


@numba.njit(boundscheck=True)
def hole(up, card):
    """The chance of the dealer's second card: he has looked, and has no blackjack."""
    if (up == 11 and card == 10) or (up == 10 and card == 1):
        return 0.0
    return CARD[card] / (1 - (CARD[10] if up == 11 else CARD[1] if up == 10 else 0.0))


@transition
def blackjack(board, state, edges):  # noqa: C901  # one function, as rules are
    """Stages: 0 the first two cards, 1 more cards, 2 the dealer draws, 3 at a double stake."""
    hand, soft, dealer, dealer_soft, stage = state
    stake = 2.0 if stage == 3 else 1.0
    if hand > 21:
        return over(edges, -stake)
    if stage > 1 and dealer > 16:
        return over(edges, stake * (1 if dealer > 21 else np.sign(hand - dealer)))
    if stage > 1:
        for card in range(1, 11):
            child = lead(edges, state, STAND, CARD[card])
            child[2], child[3] = with_card(dealer, dealer_soft, card)
        return chance(edges)
    for card in range(1, 11):
        if hole(dealer, card) > 0:
            child = lead(edges, state, STAND, hole(dealer, card))
            child[2], child[3] = with_card(dealer, dealer_soft, card)
            child[4] = 2
    for card in range(1, 11):
        child = lead(edges, state, HIT, CARD[card])
        child[0], child[1] = with_card(hand, soft, card)
        child[4] = 1
    for card in range(1, 11 if stage == 0 else 1):
        for second in range(1, 11):
            if hole(dealer, second) > 0:
                child = lead(edges, state, DOUBLE, CARD[card] * hole(dealer, second))
                child[0], child[1] = with_card(hand, soft, card)
                child[2], child[3] = with_card(dealer, dealer_soft, second)
                child[4] = 3
    return decision(edges, 0)


def blackjack_rules(board):
    return Rules(
        fields=[
            Field("hand", high=22), Field("soft", high=1, default=0), Field("dealer", high=22),
            Field("dealer_soft", high=1, default=0), Field("stage", high=3, default=0),
        ],
        players=1, transition=blackjack, numbers=(), max_edges=120, payoff_range=(-2, 2),
        actions=("stand", "hit", "double"),
    )  # fmt: skip


Undercut = board("Undercut", goal=(40, 1, 200), points=(False,))


@transition
def undercut(board, state, edges):
    """Both choose 1 to 5 points. Who is lower by one takes both numbers."""
    goal, points = board.ints
    if max(state[0], state[1]) >= goal:
        margin = state[0] - state[1]
        margin = margin if points else np.sign(margin)
        return over(edges, margin, -margin)
    for first in range(1, 6):
        for second in range(1, 6):
            child = lead(edges, state, joint(first, second), 1.0)
            child[0] += (
                first + second if first == second - 1 else 0 if second == first - 1 else first
            )
            child[1] += (
                first + second if second == first - 1 else 0 if first == second - 1 else second
            )
    return simultaneous(edges)


def undercut_rules(board):
    goal = board.rules.goal
    return Rules(
        fields=[Field("scores", length=2, high=goal + 8, default=0)], players=2, max_edges=25,
        transition=undercut, numbers=(goal, board.rules.points), actions=str, start={},
        simultaneous=True, payoff_range=(-9, 9),
    )  # fmt: skip


CantStop = board("CantStop", sides=(2, 2, 3), length=(1, 1, 3))


PAIRS = np.array([[0, 1, 2, 3], [0, 2, 1, 3], [0, 3, 1, 2]])
TWO, THREE = rolls_in_order(4, 2), rolls_in_order(4, 3)


@numba.njit(boundscheck=True)
def advance(columns, lengths, child, column):
    """Move a marker in a column up by one, if that is possible."""
    used = 0
    for c in range(columns):
        used += child[columns + c] > 0
    is_free = child[columns + column] > 0 or used < 3
    if is_free and child[column] + child[columns + column] < lengths[column]:
        child[columns + column] += 1
        return True
    return False


@transition
def cant_stop(board, state, edges):  # noqa: C901  # one function, as rules are
    """The steps in each column, those of this turn, and the roll from 1, or 0 before it."""
    sides, lengths = board.ints[0], board.ints[1:]
    columns, dice = 2 * sides - 1, TWO if sides == 2 else THREE
    won, moved, roll = 0, 0, state[2 * columns]
    for c in range(columns):
        won += state[c] == lengths[c]
        moved += state[columns + c]
    if won >= 3:
        return over(edges, 0.0)
    if roll == 0:
        if moved:
            child = lead(edges, state, 0, 1.0)
            for c in range(columns):
                child[c], child[columns + c] = child[c] + child[columns + c], 0
        for k in range(len(dice)):
            lead(edges, state, 1, 1 / len(dice))[2 * columns] = k + 1
            if not moved:
                pay(edges, -1)
        return decision(edges, 0) if moved else chance(edges)
    moves = 0
    for way in range(6):  # three pairings, either pair first
        first, second = PAIRS[way // 2, :2], PAIRS[way // 2, 2:]
        if way % 2:
            first, second = second, first
        one = dice[roll - 1, first[0]] + dice[roll - 1, first[1]] - 2
        two = dice[roll - 1, second[0]] + dice[roll - 1, second[1]] - 2
        after = state.copy()
        if advance(columns, lengths, after, one):
            advance(columns, lengths, after, two)
            after[2 * columns] = 0
            lead(edges, state, 2 + way, 1.0)[:] = after
            moves += 1
    if moves == 0:  # the steps of this turn are lost
        lead(edges, state, 8, 1.0)[columns:] = 0
    return decision(edges, 0)


def cant_stop_rules(board):
    sides, length = board.rules.sides, board.rules.length
    columns = 2 * sides - 1
    lengths = [length + 2 * min(c, columns - 1 - c) for c in range(columns)]
    return Rules(
        fields=[
            Field("steps", length=columns, high=max(lengths), default=0),
            Field("turn", length=columns, high=max(lengths), default=0),
            Field("roll", high=sides**4, default=0),
        ],
        players=1, transition=cant_stop, numbers=(sides, *lengths), max_edges=1 + sides**4,
        actions=("stop", "roll", *(f"way {way}" for way in range(1, 7)), "lose"), start={},
        pays=True, within_turn=("turn", "roll"),
    )  # fmt: skip


Farkle = board("Farkle", goal=(10, 1, 200), dice=(3, 1, 6))  # the goal: in 50 points


def worth(dice):
    """The points, in fifties, of dice that all score; else 0."""
    total = 0
    for face, count in enumerate(dice, 1):
        if count >= 3:
            total += (20 if face == 1 else 2 * face) << (count - 3)
        elif count:
            total += {1: 2, 5: 1}.get(face, -1000) * count
    return max(total, 0)


ROLLS = np.concatenate([rolls(n).counts for n in range(7)])
CHANCE = np.concatenate([rolls(n).chances for n in range(7)])
FIRST_ROLL = np.array([0, *np.cumsum([len(rolls(n).chances) for n in range(7)])])
"""The rolls of n dice begin at FIRST_ROLL[n]."""
SCORED = [sorted({(worth(k), sum(k)) for k in keeps(row).tolist() if worth(k)}) for row in ROLLS]
FIRST_SCORED = np.array([0, *np.cumsum([len(each) for each in SCORED])])
POINTS, USED = np.array([pair for each in SCORED for pair in each]).T.copy()


@transition
def farkle(board, state, edges):
    """The scores, who is up, the turn's points, the dice to roll, and the roll or 0."""
    goal, dice = board.ints
    up, turn, remaining, roll = state[2:]
    if max(state[0], state[1]) >= goal:
        return over(edges, 1.0 * (state[0] >= goal), 1.0 * (state[1] >= goal))
    if roll == 0:
        if turn > 0:
            child = lead(edges, state, 0, 1.0)
            child[up], child[2] = min(state[up] + turn, goal), 1 - up
            child[3], child[4] = 0, dice
        for k in range(FIRST_ROLL[remaining], FIRST_ROLL[remaining + 1]):
            child = lead(edges, state, 1, CHANCE[k])
            if FIRST_SCORED[k] == FIRST_SCORED[k + 1]:
                child[2], child[3], child[4] = 1 - up, 0, dice
            else:
                child[5] = k
        return decision(edges, up)
    for k in range(FIRST_SCORED[roll], FIRST_SCORED[roll + 1]):
        child = lead(edges, state, 2 + k - FIRST_SCORED[roll], 1.0)
        child[3] = min(turn + POINTS[k], goal)
        child[4] = remaining - USED[k] if remaining > USED[k] else dice
        child[5] = 0
    return decision(edges, up)


def farkle_rules(board):
    goal, dice = board.rules.goal, board.rules.dice
    return Rules(
        fields=[
            Field("scores", length=2, high=goal, default=0), Field("up", high=1, default=0),
            Field("turn", high=goal, default=0), Field("left", high=dice, default=dice),
            Field("roll", high=len(ROLLS), default=0),
        ],
        players=2, transition=farkle, numbers=(goal, dice), max_edges=64 + len(ROLLS),
        actions=lambda a: ("bank", "roll")[a] if a < 2 else f"keep {a - 1}", start={},
        within_turn=("turn", "left", "roll"),
    )  # fmt: skip
