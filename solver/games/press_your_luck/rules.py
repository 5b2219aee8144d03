"""The rules of Press Your Luck, round 2, once: the transition.

A state is twelve numbers: scores (in units of the board's `score_unit`), earned spins, passed
spins, whammies, each for the three players in turn order. `max_whammies` whammies: out, with
nothing. The player **up** is the first in turn order who has a spin.

* Up with passed spins, they must spin one. Otherwise they may play an earned one or pass **all** of
  those to the highest-scoring opponent still in; these become that opponent's passed spins. Two
  opponents level: the passer picks (``tied_pass = "passer"``), or the next in turn order gets them.
* A spin pays money (the spin is used), or money plus a spin (one spin is earned in its place), or
  it is a whammy: the spin is used, the score is 0, the passed spins left become earned. The last
  whammy (`max_whammies`) puts the player out.
* `third_place_spins`: strictly behind both others, with all three in, a player must play.
* At the cap a player passes whenever they may, to the next in turn order if the others are level;
  scores saturate there.
* Over when nobody has a spin or one player is left in. The highest score among the players in wins,
  ties share. The payoff is each player's chance to win.

Ties between actions: playing comes before passing, passing to the next in turn order before passing
to the other; a later one must be better by more than the tolerance.

Merging: with T spins left in all, a player with w whammies and w + T < max_whammies can not be put
out any more; w is written as 0.

Sources: docs/sources.md#pressorpass, docs/sources.md#fan-pages-of-press-your-luck.
"""

from __future__ import annotations

import numba as nb

from luckbase.solver.game.rules import CHANCE, DECISION, TERMINAL, TRANSITION_TYPE
from luckbase.solver.njit import njit

PLAYERS = 3
SCORE, EARNED, PASSED, WHAMMIES = 0, 3, 6, 9
"""Where the fields start in a state."""
FIELDS = 12

PLAY = 0
"""The action of spinning; passing to player i (from 0) is the action i + 1."""

TIE_TOLERANCE = 1e-12
"""Two actions closer than this are tied: far above float64 noise (1e-15), far below a real gap."""

CAP, MAX_WHAMMIES, THIRD_PLACE_SPINS, PASSER_PICKS, MONEY, OUTCOMES, UNITS = 0, 1, 2, 3, 4, 5, 6
"""Where the board's whole numbers stand: money how many outcomes are money, OUTCOMES how many there
are; their units come last, money first."""


@njit(nb.int64(nb.int64[::1]), cache=True)
def player_up(state):
    """The first in turn order who has a spin; -1 if nobody has."""
    for i in range(PLAYERS):
        if state[EARNED + i] + state[PASSED + i] > 0:
            return i
    return -1


@njit(nb.void(nb.int64[::1], nb.int64), cache=True)
def merge(state, max_whammies):
    """Make a state canonical: forget whammies that no longer matter. In place."""
    spins = 0
    for i in range(PLAYERS):
        spins += state[EARNED + i] + state[PASSED + i]
    for i in range(PLAYERS):
        if state[WHAMMIES + i] + spins < max_whammies:
            state[WHAMMIES + i] = 0


@njit(nb.int64(nb.int64[::1], nb.int64), cache=True)
def players_in(state, max_whammies):
    """How many players are still in."""
    count = 0
    for i in range(PLAYERS):
        if state[WHAMMIES + i] < max_whammies:
            count += 1
    return count


@njit(nb.void(nb.int64[::1], nb.int64, nb.float64[::1]), cache=True)
def share_the_win(state, max_whammies, payoff):
    """The payoff of a game that is over: the highest score among the players in, ties share."""
    best, winners = -1, 0
    for i in range(PLAYERS):
        if state[WHAMMIES + i] < max_whammies:
            if state[SCORE + i] > best:
                best, winners = state[SCORE + i], 0
            if state[SCORE + i] == best:
                winners += 1
    for i in range(PLAYERS):
        wins = state[WHAMMIES + i] < max_whammies and state[SCORE + i] == best
        payoff[i] = 1.0 / winners if wins else 0.0


@njit(
    nb.int64(nb.int64[::1], nb.int64[::1], nb.int64, nb.int64, nb.int64[:, ::1], nb.int64),
    cache=True,
)
def spin(ints, state, up, outcome, children, edge):
    """Write the state after `up` spins: outcome -1 is a whammy, else the board's (money first)."""
    child = children[edge]
    for i in range(state.size):  # to assign a slice would compile what it may raise
        child[i] = state[i]
    if state[PASSED + up] > 0:
        child[PASSED + up] -= 1
    else:
        child[EARNED + up] -= 1
    if outcome < 0:
        child[SCORE + up] = 0
        child[EARNED + up] += child[PASSED + up]
        child[PASSED + up] = 0
        child[WHAMMIES + up] += 1
        if child[WHAMMIES + up] == ints[MAX_WHAMMIES]:
            child[EARNED + up] = 0
    else:
        child[SCORE + up] = min(state[SCORE + up] + ints[UNITS + outcome], ints[CAP])
        if outcome >= ints[MONEY]:
            child[EARNED + up] += 1
    merge(child, ints[MAX_WHAMMIES])
    return edge + 1


@njit(
    nb.int64(nb.int64[::1], nb.int64, nb.int64, nb.int64[:, ::1], nb.int64[::1], nb.int64),
    cache=True,
)
def pass_spins(state, up, to, children, actions, edge):
    """Write the state after `up` passes all their earned spins to `to`."""
    child = children[edge]
    for i in range(state.size):
        child[i] = state[i]
    child[PASSED + to] += child[EARNED + up]
    child[EARNED + up] = 0
    actions[edge] = to + 1
    return edge + 1


@njit(TRANSITION_TYPE, cache=True)
def transition(board, state, edges):  # noqa: C901  # the rules, in the order in which they are told
    """The edges of a state, by the contract in `solver.game.rules`.

    `reals` holds the chance of a whammy, then the outcomes' in the order of their units.
    """
    ints, reals = board
    children, weights, actions, rewards, about = edges
    most = ints[MAX_WHAMMIES]
    up = player_up(state)
    inside = players_in(state, most)
    if up < 0 or inside < 2:
        about[0], about[1] = TERMINAL, -1
        share_the_win(state, most, rewards[0])
        return 0

    must_spin = state[PASSED + up] > 0
    own = state[SCORE + up]
    at_cap = own == ints[CAP]
    highest, behind = -1, 0
    for i in range(PLAYERS):
        if i != up and state[WHAMMIES + i] < most:
            highest = max(highest, state[SCORE + i])
            behind += own < state[SCORE + i]
    third = ints[THIRD_PLACE_SPINS] != 0 and inside == 3 and behind == 2

    n = 0
    if must_spin or not at_cap:
        n = spin(ints, state, up, -1, children, n)
        weights[0] = reals[0]
        for outcome in range(ints[OUTCOMES]):
            weights[n] = reals[1 + outcome]
            if outcome in (0, ints[MONEY]):
                n = spin(ints, state, up, outcome, children, n)
            else:  # like the outcome before it but for the score
                for i in range(FIELDS):
                    children[n, i] = children[n - 1, i]
                children[n, SCORE + up] = min(own + ints[UNITS + outcome], ints[CAP])
                n += 1
        for edge in range(n):
            actions[edge] = PLAY
    choices = 1 if n else 0
    if not must_spin and not third:
        for step in range(1, PLAYERS):
            to = (up + step) % PLAYERS
            if state[WHAMMIES + to] == most or state[SCORE + to] < highest:
                continue
            weights[n] = 1.0
            n = pass_spins(state, up, to, children, actions, n)
            choices += 1
            if at_cap or ints[PASSER_PICKS] == 0:
                break
    about[0], about[1] = (DECISION if choices > 1 else CHANCE), up
    return n
