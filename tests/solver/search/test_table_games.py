"""Games that an author wrote from docs/how-to/own-game.md, against published values
and a plain program."""

import numba
import numpy as np
import pytest

import luckbase
from luckbase.game import (
    Field,
    Game,
    Rules,
    chance,
    decision,
    joint,
    keeps,
    lead,
    over,
    rolls,
    simultaneous,
    transition,
)
from luckbase.solver.search.game_graph import Graph
from tests.games import board
from tests.reference import farkle as reference

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


@pytest.mark.usefixtures("own_games")
def test_one_round_of_undercut():
    """Hofstadter, Metamagical Themas: 10, 26, 13, 16 and 1 of 66."""
    one = Undercut(game="undercut", name="one", rules={"goal": 1, "points": True})
    luckbase.game.register("undercut", Undercut, undercut_rules)
    with luckbase.open(one, in_memory=True) as table:
        answer = table.ask()
    chances = {bid.name: bid.chance for bid in answer.strategies[0]}
    assert chances == pytest.approx(
        {name: part / 66 for name, part in zip("12345", (10, 26, 13, 16, 1), strict=True)}
    )


WIZARD = {
    5: "-.1282 -.0953 -.0615 -.0240 -.0012 -.1194 -.1881 -.2666 -.3134 -.2786",
    9: ".0744 .1208 .1819 .2431 .3171 .1719 .0984 -.0522 -.1530 -.0657",
    11: ".4706 .5178 .5660 .6147 .6674 .4629 .3507 .2278 .1797 .1430",
    12: "-.2534 -.2337 -.2111 -.1672 -.1537 -.2128 -.2716 -.3400 -.3810 -.3505",
    16: "-.2928 -.2523 -.2111 -.1672 -.1537 -.4148 -.4584 -.5093 -.5398 -.5171",
    17: "-.1530 -.1172 -.0806 -.0449 .0117 -.1068 -.3820 -.4232 -.4197 -.4780",
}
"""What a hand earns against the dealer's 2 to 10 and ace, from an infinite deck
(wizardofodds.com/games/blackjack/appendix/5)."""


def test_blackjack_from_an_infinite_deck():
    states = [
        {"hand": hand, "dealer": up, "dealer_soft": int(up == 11)}
        for hand in WIZARD
        for up in range(2, 12)
    ]
    shoe = Blackjack(game="blackjack", name="blackjack")
    game = Game(shoe, blackjack_rules(shoe))
    graph = Graph(game)
    at = graph.solve(np.array([game.parse(state) for state in states]))
    published = [float(value) for row in WIZARD.values() for value in row.split()]
    assert graph.values[at, 0] == pytest.approx(published, abs=5.1e-5)


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


@pytest.mark.parametrize(("goal", "dice"), [(4, 1), (8, 2), (6, 3)])
def test_farkle_for_two(goal, dice):
    """Dice are kept, and turns that bring nothing come back to where they began."""
    table = Farkle(game="farkle", name="farkle", rules={"goal": goal, "dice": dice})
    game = Game(table, farkle_rules(table))
    graph = Graph(game, keeps_turns=False)
    at = graph.solve(game.parse({})[None])
    assert graph.values[at[0], 0] == pytest.approx(reference.farkle(goal, dice), abs=1e-10)
