"""The rules of Goofspiel, once: the transition.

A state is my hand, their hand, the deck with the upcard in it, the upcard (0 before it is turned)
and, where the objective is winning, the lead. Bids are only compared, so hands are canonical on the
lowest ranks that keep who beats whom (`patterns`): a hand is a bit mask, bit i the i-th rank from
below. A board with `keep_cards` leaves them as they are, bit i the card i + 1. The deck is a bit
mask, bit k - 1 the card k. The lead is my points minus theirs, stored with the points of a full
deck added, so that no number is negative.

* No cards: over. For points nothing is left to be paid; for winning the payoff is 1, 1/2 or 0.
* No upcard: each card of the deck is turned up with the same chance.
* Else both bid: row and column of the joint action are the ranks of the two cards, from 0. The
  higher one takes the upcard's points, as a reward (points) or into the lead (winning).

For winning, a lead of more than the deck's points decides the game, and then nothing else matters:
such a state is the empty one with a lead of 1 or -1.

Source: docs/sources.md#rhoads-and-bartholdi-2012, sections 2 and 3.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.transition import CHANCE, JOINT, SIMULTANEOUS, TERMINAL, TRANSITION_TYPE
from luckbase.solver.games.goofspiel.board import Rules
from luckbase.solver.games.goofspiel.patterns import lowest_ranks, size_of
from luckbase.solver.njit import njit

MINE, THEIRS, DECK, UPCARD, LEAD = 0, 1, 2, 3, 4
"""Where the fields stand in a state; for points there is no LEAD."""
CARDS, WIN, ALL_POINTS, KEEP_CARDS = 0, 1, 2, 3
"""Where the board's whole numbers stand; ALL_POINTS is what stored leads are above the lead."""


@njit(nb.int64(nb.int64), cache=True)
def points_of(deck):
    """The points of all cards in a deck."""
    total, k = 0, 1
    while deck:
        total += k * (deck & 1)
        deck >>= 1
        k += 1
    return total


@njit(nb.void(nb.int64[::1], nb.int64[::1]), cache=True)
def make_canonical(ints, state):
    """Hands on their lowest ranks, unless cards are kept; for winning, a decided game is the empty
    one. In place."""
    if not ints[KEEP_CARDS]:
        state[MINE], state[THEIRS] = lowest_ranks(state[MINE], state[THEIRS])
    if ints[WIN]:
        lead = state[LEAD] - ints[ALL_POINTS]
        if abs(lead) > points_of(state[DECK]):
            state[:LEAD] = 0
            state[LEAD] = ints[ALL_POINTS] + (1 if lead > 0 else -1)


@njit(TRANSITION_TYPE, cache=True)
def transition(board, state, edges):  # noqa: C901  # the rules, in the order in which they are told
    """The edges of a state, by the contract in `solver.game.transition`."""
    ints = board.ints
    children, weights, actions, rewards, about = edges
    mine, theirs, deck, upcard = state[MINE], state[THEIRS], state[DECK], state[UPCARD]
    if mine == 0:
        about[0], about[1] = TERMINAL, -1
        if ints[WIN]:
            lead = state[LEAD] - ints[ALL_POINTS]
            rewards[0, 0] = 0.5 + 0.5 * ((lead > 0) - (lead < 0))
            rewards[0, 1] = 1.0 - rewards[0, 0]
        else:
            rewards[0, 0] = rewards[0, 1] = 0.0
        return 0
    n = 0
    if upcard == 0:
        about[0], about[1] = CHANCE, -1
        size = size_of(deck)
        for k in range(1, ints[CARDS] + 1):
            if deck >> (k - 1) & 1:
                children[n] = state
                children[n, UPCARD] = k
                weights[n], actions[n] = 1.0 / size, 0
                rewards[n, 0] = rewards[n, 1] = 0.0
                n += 1
        return n
    about[0], about[1] = SIMULTANEOUS, -1
    for x in range(ints[CARDS]):
        if not mine >> x & 1:
            continue
        for y in range(ints[CARDS]):
            if not theirs >> y & 1:
                continue
            won = upcard * ((x > y) - (x < y))
            children[n] = state
            children[n, MINE], children[n, THEIRS] = mine ^ (1 << x), theirs ^ (1 << y)
            children[n, DECK], children[n, UPCARD] = deck ^ (1 << (upcard - 1)), 0
            rewards[n, 0] = rewards[n, 1] = 0.0
            if ints[WIN]:
                children[n, LEAD] += won
            else:
                rewards[n, 0], rewards[n, 1] = won, -won
            make_canonical(ints, children[n])
            weights[n], actions[n] = 1.0, x * JOINT + y
            n += 1
    return n


@njit(nb.void(nb.int64[::1], nb.int64[:, ::1]), cache=True)
def make_all_canonical(ints, states):
    """`make_canonical` of states (n, fields). In place."""
    for i in range(states.shape[0]):
        make_canonical(ints, states[i])


def numbers(rules: Rules) -> tuple[np.ndarray, np.ndarray]:
    """The board as `transition` reads it: (ints, reals)."""
    win = rules.objective == "win"
    points = rules.cards * (rules.cards + 1) // 2
    return np.array([rules.cards, win, points, rules.keep_cards], np.int64), np.zeros(1)


def as_seen_by(options: Rules, player: int, states: Ints) -> Ints:
    """States (…, fields) in the words of a player, from 0; the way back as well."""
    seen = np.array(states, np.int64)
    if player == 1:
        seen[..., [MINE, THEIRS]] = seen[..., [THEIRS, MINE]]
        if options.objective == "win":
            seen[..., LEAD] = 2 * options.points - seen[..., LEAD]
    return seen
