"""The rules and the kernel of the n-round Pig.

A state is (mine, yours, turn, round, player): the totals of the player to act and of the other, the
turn's points, the round from 1, who acts, 1 or 2; with `count_rolls` the rolls of this turn behind
them. Only the difference of the totals matters, so the lower one is always 0.

* Stick (not before the first roll, with `first_roll_forced`): the turn is banked, the other acts;
  after player 2's turn the next round begins, after the last the game is over.
* Roll: the sum is added to the turn, or a 1 ends the turn with nothing (`first_roll_safe`: not on
  its first roll, which is the one at turn = 0).
* Over after the last round, or as soon as somebody's lead, the points of the turn included, reaches
  the **cut**. All such states that end alike are one: (1, 0), (0, 0) or (0, 1), round n + 1,
  player 1.

Ties between actions: sticking comes first; rolling must be better by more than the tolerance.

**Values.** Every tier (round, player) is solved once the next one is: with d = mine - yours, V' the
payoff of player 1 at the next turn start, v(t) = best of V'(-(d + t)) and
(B V'(-d) + sum of c(s) v(t + s)) / N; player 1 maximises, player 2 minimises. A loop over t
downwards for each d. No cycles.

**The cut.** Let q_k(x) be the largest chance, over all policies, to make x points in k turns, or
more (`chance_to_gain`; the same kind of loop). A player with a lead of the cut D, the turn's points
included, can bank it, and is caught only if the other makes D points or more in the turns they have
left, at most n: so their payoff is within q_n(D) times the range of payoffs of a win. Backing up
stretches no error, so every state of the cut game is that close to the game without a cut. With
n = 10 and D = 600 it is 2e-9, and at the start of the game, from where hardly anybody comes near
the cut, the values are certain to far more (`PigRounds.start_bounds`).

Rows of a tier: (d, t) ascending, -D < d < D, 0 <= t < D - d.

Source: docs/sources.md#pig-blog.
"""

from __future__ import annotations

import numpy as np
from numba import types

from luckbase.solver.game.rules import CHANCE, DECISION, TERMINAL, TRANSITION_TYPE
from luckbase.solver.games.pig.board import PigRoundsBoard
from luckbase.solver.njit import njit

MINE, YOURS, TURN, ROUND, PLAYER, ROLLED = 0, 1, 2, 3, 4, 5
"""Where the fields stand in a state."""

HOLD, ROLL = 0, 1
"""The actions; HOLD is to stick."""

ROUNDS, CUT, FORCED, TOTAL, MAX_POINTS, TABLES = 0, 1, 2, 3, 4, 5
"""Where the board's whole numbers stand. From TABLES on, first for the first roll of a turn, then
for the others: how many of the TOTAL rolls take the turn, and are worth 0 to MAX_POINTS."""

_i, _f, _i1, _f1 = types.int64, types.float64, types.int64[::1], types.float64[::1]


@njit(types.void(_i1, _i, _i1), cache=True)
def _over(ints, lead, child):
    """Write the state that is over, with this lead of player 1."""
    child[:] = 0
    child[MINE], child[YOURS] = 1 if lead > 0 else 0, 1 if lead < 0 else 0
    child[ROUND], child[PLAYER] = ints[ROUNDS] + 1, 1


@njit(types.void(_i1, _i, _i, _i, _i1), cache=True)
def _pass_on(ints, lead, round_, player, child):
    """Write the state after a turn that leaves `player` this lead."""
    last = player == 2 and round_ == ints[ROUNDS]
    if last or abs(lead) >= ints[CUT]:
        _over(ints, lead if player == 1 else -lead, child)
        return
    child[:] = 0
    child[MINE], child[YOURS] = max(-lead, 0), max(lead, 0)
    child[ROUND], child[PLAYER] = round_ + (player == 2), 3 - player


@njit(TRANSITION_TYPE, cache=True)
def transition(board, state, edges):
    """The edges of a state, by the contract in `solver.game.rules`. `reals` holds the payoffs
    of player 1 and then of player 2 where player 1 has won, nobody, player 2."""
    ints, reals = board
    children, weights, actions, rewards, about = edges
    lead, turn, round_, player = (
        state[MINE] - state[YOURS],
        state[TURN],
        state[ROUND],
        state[PLAYER],
    )
    if round_ > ints[ROUNDS]:
        about[0], about[1] = TERMINAL, -1
        result = 0 if lead > 0 else (1 if lead == 0 else 2)
        rewards[0, 0], rewards[0, 1] = reals[result], reals[3 + result]
        return 0
    about[0], about[1] = CHANCE, player - 1
    n = 0
    if turn > 0 or not ints[FORCED]:
        about[0] = DECISION
        _pass_on(ints, lead + turn, round_, player, children[0])
        weights[0], actions[0] = 1.0, HOLD
        n = 1
    most = ints[MAX_POINTS]
    table = TABLES + (most + 2 if turn > 0 else 0)
    for k in range(most + 2):
        ways = ints[table + k]
        if ways == 0:
            continue
        after = turn + k - 1
        if k == 0:
            _pass_on(ints, lead, round_, player, children[n])
        elif lead + after >= ints[CUT]:
            _over(ints, 1 if player == 1 else -1, children[n])
        else:
            children[n] = state
            children[n, TURN] = after
            if state.size > ROLLED:
                children[n, ROLLED] += 1
        weights[n], actions[n] = ways / ints[TOTAL], ROLL
        n += 1
    for edge in range(n):
        rewards[edge, 0] = rewards[edge, 1] = 0.0
    return n


@njit(_i(_i, _i, _i), cache=True)
def row_of(cut, lead, turn):
    """The row of a state in its tier."""
    i = lead + cut - 1
    return i * (2 * cut - 1) - i * (i - 1) // 2 + turn


@njit(
    types.void(_i1, _f1, _i, _f, _f, _f1, _f, types.int8[::1], _f1), cache=True, nogil=True
)  # fmt: skip
def solve(ints, starts, player, won, lost, out, tolerance, best, margin):  # noqa: PLR0913  # the arrays of a tier, once a tier
    """Fill a tier, the payoffs of player 1.

    starts: float64 (2 cut - 1,), their payoffs at the next turn start by the lead of the player who
    then acts, from 1 - cut on. player: who acts here. won, lost: player 1's payoffs where the
    player who acts here has won or lost for good. best, margin: as `Decisions` has them, or of size
    0 where not wanted; sticking is best unless rolling is better by more than the tolerance.
    """
    noted, priced = best.size > 0, margin.size > 0
    sign = 1.0 if player == 1 else -1.0
    cut, most, total = ints[CUT], ints[MAX_POINTS], ints[TOTAL]
    v = np.empty(2 * cut + most)
    for lead in range(1 - cut, cut):
        left, at = cut - lead, row_of(cut, lead, 0)
        v[left : left + most + 1] = won
        nothing = starts[-lead + cut - 1]
        table = TABLES + most + 2
        for t in range(left - 1, -1, -1):
            if t == 0:
                table = TABLES
            q = ints[table] * nothing
            for s in range(1, most + 1):
                q += ints[table + 1 + s] * v[t + s]
            q /= total
            if t > 0 or not ints[FORCED]:
                stick = starts[-(lead + t) + cut - 1]
                if noted:
                    more = sign * (q - stick)  # what rolling gains the player who acts
                    best[at + t] = ROLL if more > tolerance else HOLD
                    if priced:
                        margin[at + t] = more if more > tolerance else max(-more, 0.0)
                q = max(q, stick) if player == 1 else min(q, stick)
            elif noted:
                best[at] = ROLL
            v[t] = q
            out[at + t] = q


@njit(types.void(_i1, types.float64[:, ::1], _f, _f, types.float64[:, ::1]), cache=True, nogil=True)
def follow(ints, starts, won, tolerance, out):
    """A turn of one who plays by a guide's values, and what comes of it, for all leads at once.

    starts: float64 (3, 2 cut - 1), at the next turn start by the lead of who then acts: the guide's
    payoff for the player of this turn, the chance that they win, and that nobody does. won: the
    guide's payoff of a win (nobody loses by a roll at once). tolerance: rolling must be better by
    more. out: the same at this turn's start, by their lead.
    """
    cut, most, total = ints[CUT], ints[MAX_POINTS], ints[TOTAL]
    v = np.empty((3, 2 * cut + most))
    q = np.empty(3)
    for lead in range(1 - cut, cut):
        left = cut - lead
        for c in range(3):
            v[c, left : left + most + 1] = won if c == 0 else (1.0 if c == 1 else 0.0)
        table = TABLES + most + 2
        for t in range(left - 1, -1, -1):
            if t == 0:
                table = TABLES
            for c in range(3):
                q[c] = ints[table] * starts[c, -lead + cut - 1]
                for s in range(1, most + 1):
                    q[c] += ints[table + 1 + s] * v[c, t + s]
                q[c] /= total
            sticks = -(lead + t) + cut - 1
            if (t > 0 or not ints[FORCED]) and starts[0, sticks] >= q[0] - tolerance:
                q[:] = starts[:, sticks]
            v[:, t] = q
        out[:, lead + cut - 1] = v[:, 0]


@njit(_f1(_i1, _i, _i), cache=True, nogil=True)
def chance_to_gain(ints, turns, most_points):
    """q_turns(x) for x = 0 .. most_points: the largest chance to make x points in so many turns."""
    most, total = ints[MAX_POINTS], ints[TOTAL]
    q = np.zeros(most_points + 1)
    q[0] = 1.0
    v = np.empty(most_points + most + 2)
    for _ in range(turns):
        before = q.copy()
        for x in range(1, most_points + 1):
            v[x : x + most + 1] = 1.0
            for t in range(x - 1, -1, -1):
                table = TABLES + (most + 2 if t > 0 else 0)
                roll = ints[table] * before[x]
                for s in range(1, most + 1):
                    roll += ints[table + 1 + s] * v[t + s]
                v[t] = max(before[x - t], roll / total)
            q[x] = v[0]
    return q


def cut_error(ints: np.ndarray) -> float:
    """q_n(cut): what the cut can change of any chance to win."""
    return float(chance_to_gain(ints, int(ints[ROUNDS]), int(ints[CUT]))[-1]) * (1 + 1e-9)


def numbers(board: PigRoundsBoard) -> tuple[np.ndarray, np.ndarray]:
    """The board as `transition` reads it: (ints, reals)."""
    rules = board.rules
    first, later = rules.race().rolls(True), rules.race().rolls(False)
    ints = [rules.rounds, board.solve.cut, rules.first_roll_forced, first.total]
    ints.append(len(first.points) - 1)
    for table in (first, later):
        ints += [table.turn, *table.points]
    return np.array(ints, np.int64), np.array(sum(rules.payoffs(), ()))
