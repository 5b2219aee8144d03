"""Yahtzee, for one, under three rules for jokers. Optimal play from the start is worth 254.5896
points with free jokers, 254.5877 with forced ones (J. Glenn, 2006; T. Verhoeff, 1999), 245.87
without jokers and bonuses."""

from typing import Literal

import numba
import numpy as np

from luckbase.game import (
    Board,
    Field,
    Rules,
    Section,
    chance,
    decision,
    lead,
    option,
    over,
    pay,
    register,
    rolls,
    set_field,
    transition,
)

DICE = 5
BY_COUNT = [rolls(count) for count in range(DICE + 1)]
FIRST = np.cumsum([0, *(len(each.chances) for each in BY_COUNT)])
"""Where the rolls of 0, 1, … dice begin among all."""
ROLLS = np.concatenate([each.counts for each in BY_COUNT])
CHANCES = np.concatenate([each.chances for each in BY_COUNT])

UPPER, THREE, FOUR, HOUSE, SMALL, LARGE, YAHTZEE, ANY = 6, 6, 7, 8, 9, 10, 11, 12
NAMES = (
    "ones",
    "twos",
    "threes",
    "fours",
    "fives",
    "sixes",
    "three of a kind",
    "four of a kind",
    "full house",
    "small straight",
    "large straight",
    "yahtzee",
    "chance",
)
KEEP, ROLL = 13, 13 + 6**6
"""The actions from `KEEP` on are the dice that are kept, counted in digits of base 6."""


class Options(Section):
    jokers: Literal["free", "forced", "none"] = option("free")


class YahtzeeBoard(Board):
    rules: Options = Options()


@numba.njit(boundscheck=True)
def score(dice, box, joker):  # a case for each box
    total, most, two, run, longest = 0, 0, False, 0, 0
    for f in range(6):
        total += (f + 1) * dice[f]
        most = max(most, dice[f])
        two = two or dice[f] == 2
        run = run + 1 if dice[f] > 0 else 0
        longest = max(longest, run)
    if box < UPPER:
        return (box + 1) * dice[box]
    if box == THREE:
        return total if most >= 3 else 0
    if box == FOUR:
        return total if most >= 4 else 0
    if box == HOUSE:
        return 25 if joker or (most == 3 and two) else 0
    if box == SMALL:
        return 30 if joker or longest >= 4 else 0
    if box == LARGE:
        return 40 if joker or longest >= 5 else 0
    if box == YAHTZEE:
        return 50 if most == 5 else 0
    return total


@transition
def yahtzee(board, state, edges):  # noqa: C901  # one function, as rules are
    """The state: the boxes filled as bits, the upper total, whether the next Yahtzees earn 100, the
    rolls left, and how many dice show each face."""
    filled, upper, bonus, left = state[0], state[1], state[2], state[3]
    dice = state[4:]
    jokers = board.ints[0]
    if filled == (1 << 13) - 1:
        return over(edges, 35.0 if upper == 63 else 0.0)
    count = 0
    for f in range(6):
        count += dice[f]
    if count < 5:
        for k in range(FIRST[5 - count], FIRST[6 - count]):
            child = lead(edges, state, ROLL, CHANCES[k])
            child[3] = left - 1
            for f in range(6):
                child[4 + f] += ROLLS[k, f]
        return chance(edges)
    if left > 0:
        for a in range(dice[0], -1, -1):
            for b in range(dice[1], -1, -1):
                for c in range(dice[2], -1, -1):
                    for d in range(dice[3], -1, -1):
                        for e in range(dice[4], -1, -1):
                            for g in range(dice[5], -1, -1):
                                code = ((((a * 6 + b) * 6 + c) * 6 + d) * 6 + e) * 6 + g
                                child = lead(edges, state, KEEP + code, 1.0)
                                child[4], child[5], child[6] = a, b, c
                                child[7], child[8], child[9] = d, e, g
                                if a + b + c + d + e + g == 5:
                                    child[3] = 0
        return decision(edges, 0)
    five = -1
    for f in range(6):
        if dice[f] == 5:
            five = f
    extra = five >= 0 and filled >> YAHTZEE & 1 == 1 and jokers > 0
    joker = extra and filled >> five & 1 == 1
    lower_open = filled >> UPPER != (1 << 7) - 1
    for box in range(13):
        if filled >> box & 1:
            continue
        if extra and jokers == 2:
            if filled >> five & 1 == 0:
                if box != five:
                    continue
            elif lower_open and box < UPPER:
                continue
        points = score(dice, box, joker)
        child = lead(edges, state, box, 1.0)
        child[0] = filled | 1 << box
        if box < UPPER:
            child[1] = min(63, upper + points)
        if box == YAHTZEE and points > 0 and jokers > 0:
            child[2] = 1
        child[3] = 3
        for f in range(6):
            child[4 + f] = 0
        pay(edges, points + 100 * (extra and bonus == 1))
    return decision(edges, 0)


def named(action):
    if action < KEEP:
        return NAMES[action]
    code, faces = action - KEEP, []
    for f in range(5, -1, -1):
        faces += [f + 1] * (code % 6)
        code //= 6
    return "keep " + ("".join(map(str, reversed(faces))) or "none")


def rules(board):
    return Rules(
        fields=[
            set_field("filled", 13, default=0),
            Field("upper", high=63),
            Field("bonus", high=1),
            Field("rolls", high=3, default=3),
            Field("dice", length=6, high=5),
        ],
        players=1, transition=yahtzee,
        numbers=(["none", "free", "forced"].index(board.rules.jokers),),
        max_edges=252, actions=named, start={}, pays=True, payoff_range=(0, 1575),
        payoff_name="points", within_turn=("rolls", "dice"),
    )  # fmt: skip


register("yahtzee", YahtzeeBoard, rules, title="Yahtzee")
