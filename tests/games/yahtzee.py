"""Yahtzee, for one, under three rules for jokers. Optimal play from the start is worth 254.5896
points with free jokers, 254.5877 with forced ones (T. Verhoeff, 1999; J. Glenn, 2006), and 245.87
without jokers and bonuses."""

from itertools import accumulate
from typing import Literal

import numpy as np

from luckbase.game import (
    Board,
    Field,
    Names,
    Rules,
    Section,
    chance,
    decision,
    keeps,
    lead,
    option,
    over,
    pay,
    register,
    rolls,
    set_field,
    transition,
)

UPPER, THREE, FOUR, HOUSE, SMALL, LARGE, YAHTZEE, ANY = 6, 6, 7, 8, 9, 10, 11, 12
BOXES = (
    "ones", "twos", "threes", "fours", "fives", "sixes", "three of a kind", "four of a kind",
    "full house", "small straight", "large straight", "yahtzee", "chance",
)  # fmt: skip
KEEP, ROLL = 13, 1000
"""From `KEEP` to `ROLL` an action is the dice that are kept."""

DICE = [tuple(row) for count in range(6) for row in rolls(count).counts.tolist()]
"""0 to 5 dice: how many show each face. A state has their place in this list."""
PLACE = {counts: place for place, counts in enumerate(DICE)}
NAMES = ["".join(str(f + 1) * c for f, c in enumerate(counts)) or "none" for counts in DICE]


def table(rows):
    """Rows of any length, one behind the other, and where each begins."""
    return np.array([x for row in rows for x in row]), np.array(
        [*accumulate(map(len, rows), initial=0)]
    )


def rolled(counts):
    """(the dice after a roll of those that are not kept, its chance) of each roll."""
    more = rolls(5 - sum(counts))
    after = [PLACE[tuple(row)] for row in (more.counts + counts).tolist()]
    return after, more.chances.tolist()


def points(counts, box, joker):
    total, most, in_a_row = sum((f + 1) * c for f, c in enumerate(counts)), max(counts), 0
    for f in range(6):
        for length in range(1, 7 - f):
            in_a_row = max(in_a_row, length if all(counts[f : f + length]) else 0)
    if box < UPPER:
        return (box + 1) * counts[box]
    right = {
        THREE: (most >= 3, total), FOUR: (most >= 4, total),
        HOUSE: (joker or sorted(counts)[-2:] == [2, 3], 25), SMALL: (joker or in_a_row >= 4, 30),
        LARGE: (joker or in_a_row >= 5, 40), YAHTZEE: (most == 5, 50), ANY: (True, total),
    }  # fmt: skip
    return right[box][0] * right[box][1]


AFTER, FIRST_ROLL = table([rolled(counts)[0] for counts in DICE])
CHANCES, _ = table([rolled(counts)[1] for counts in DICE])
KEPT, FIRST_KEEP = table([[PLACE[tuple(row)] for row in keeps(c).tolist()] for c in DICE])
COUNT = np.array([sum(counts) for counts in DICE])
FIVE = np.array([counts.index(5) if 5 in counts else -1 for counts in DICE])
"""The face that all five dice show, from 0, else -1."""
POINTS = np.array([[[points(c, b, j) for b in range(13)] for c in DICE] for j in (False, True)])


class Options(Section):
    jokers: Literal["free", "forced", "none"] = option("free")


class YahtzeeBoard(Board):
    rules: Options = Options()


@transition
def yahtzee(board, state, edges):  # noqa: C901  # one function, as rules are
    """The state: the boxes filled as bits, the upper total, whether the next Yahtzees earn 100, the
    rolls left, the dice on the table."""
    filled, upper, bonus, remaining, dice = state
    if filled == (1 << 13) - 1:
        return over(edges, 35.0 if upper == 63 else 0.0)
    if COUNT[dice] < 5:
        for k in range(FIRST_ROLL[dice], FIRST_ROLL[dice + 1]):
            child = lead(edges, state, ROLL, CHANCES[k])
            child[3], child[4] = remaining - 1, AFTER[k]
        return chance(edges)
    if remaining > 0:
        for k in range(FIRST_KEEP[dice], FIRST_KEEP[dice + 1]):
            child = lead(edges, state, KEEP + KEPT[k], 1.0)
            child[4] = KEPT[k]
            if KEPT[k] == dice:
                child[3] = 0
        return decision(edges, 0)
    five, jokers = FIVE[dice], board.ints[0]
    extra = five >= 0 and filled >> YAHTZEE & 1 == 1 and jokers > 0
    joker = extra and filled >> five & 1 == 1
    lower_open = filled >> UPPER != (1 << 7) - 1
    for box in range(13):
        if filled >> box & 1:
            continue
        if extra and jokers == 2:  # the upper box of these dice, else a lower one
            if not joker and box != five:
                continue
            if joker and lower_open and box < UPPER:
                continue
        worth = POINTS[1 if joker else 0, dice, box]
        child = lead(edges, state, box, 1.0)
        child[0], child[3], child[4] = filled | 1 << box, 3, 0
        if box < UPPER:
            child[1] = min(63, upper + worth)
        if box == YAHTZEE and worth > 0 and jokers > 0:
            child[2] = 1
        pay(edges, worth + 100 * (extra and bonus == 1))
    return decision(edges, 0)


def named(action):
    if action == ROLL:
        return "roll"
    return BOXES[action] if action < KEEP else f"keep {NAMES[action - KEEP]}"


def rules(board):
    return Rules(
        fields=[
            set_field("filled", 13, default=0, help="The boxes that are filled, 1 to 13."),
            Field("upper", high=63, help="The points in the upper boxes; 63 stands for more."),
            Field("bonus", high=1, help="1: each further Yahtzee earns 100 points."),
            Field("rolls", high=3, default=3, help="Rolls that are left."),
            Field("dice", high=len(DICE) - 1, names=Names(NAMES), help="The dice on the table."),
        ],
        players=1, transition=yahtzee, max_edges=252, actions=named, start={}, pays=True,
        numbers=(["none", "free", "forced"].index(board.rules.jokers),), payoff_name="points",
        within_turn=("rolls", "dice"),
    )  # fmt: skip


register("yahtzee", YahtzeeBoard, rules, title="Yahtzee")
