"""The rules of Jackpot and Shut the Box, once: the transition.

A state is the set of open tiles (not yet flipped) as bits, tile t being bit t - 1, and one face a
die in the order of the dice; all faces are 0 before the roll.

* Before the roll nothing is chosen: every roll is equally likely. Only with ``one_die`` and all
  tiles above the faces of one die flipped is one die rolled ("must"), or the player says how many
  ("may"): two actions, each a lottery over its rolls.
* After the roll the player flips one of the `choices`: for Jackpot one open tile, listed as first
  die, second die, …, their sum; for Shut the Box a set of open tiles that adds up to the roll, the
  set with the highest tile first, then with the next highest. Where a single thing can be flipped
  nothing is chosen.
* Over when all tiles are flipped, or a roll allows none. The payoff is 1 if all are flipped and 0
  otherwise, or minus the sum of the open tiles.

Ties between actions: the order of the choices, and two dice before one; a later one must be better
by more than the tolerance.

Merging: Jackpot's dice keep their order, for `first` and `last` are agents. Shut the Box asks for
the sum of a roll only, so all rolls of one sum are one state: shown as one die where one may be
rolled and can show the sum, else as the most even dice, low ones first (7 is 3,4 and 12 is 6,6).

Sources: docs/sources.md#french-2022, docs/sources.md#shut-the-box.
"""

from __future__ import annotations

from itertools import product

import numba as nb
import numpy as np

from luckbase.solver.game.rules import CHANCE, DECISION, TERMINAL, TRANSITION_TYPE
from luckbase.solver.games.jackpot.board import Rules
from luckbase.solver.njit import njit

OPEN, FACES = 0, 1
"""Where the fields start in a state."""

ROLL = 1 << 16
"""Rolling k dice is the action k * ROLL; an action below is the set of tiles flipped, as bits."""

TILES, DICE, SIDES, ADD_UP, ONE_DIE, MIN_SUM, FIRST = 0, 1, 2, 3, 4, 5, 6
"""Where the board's whole numbers stand. From FIRST on, for Shut the Box: where the sets of tiles
that add up to 0, 1, …, dice * sides begin, and where the last ones end; then the sets."""
NEVER, MAY, MUST = 0, 1, 2
"""The values of ONE_DIE."""


@njit(nb.int64(nb.int64[::1]), cache=True)
def roll_sum(state):
    """The sum of the roll; 0 before it."""
    total = 0
    for i in range(FACES, state.size):
        total += state[i]
    return total


@njit(nb.boolean(nb.int64[::1], nb.int64), cache=True)
def one_die_here(ints, open_tiles):
    """Whether one die may or must be rolled with these tiles open."""
    return ints[ONE_DIE] != NEVER and open_tiles >> ints[SIDES] == 0


@njit(nb.void(nb.int64[::1], nb.int64, nb.int64[::1]), cache=True)
def show_sum(ints, total, state):
    """Write the faces that stand for all rolls of this sum (module docstring) into `state`."""
    dice = ints[DICE]
    if one_die_here(ints, state[OPEN]) and total <= ints[SIDES]:
        state[FACES] = total
        state[FACES + 1] = 0
        return
    for i in range(dice):
        state[FACES + i] = (total + i) // dice


@njit(nb.int64(nb.int64[::1], nb.int64[::1], nb.int64[::1]), cache=True)
def choices(ints, state, listed):
    """Write what may be flipped after the roll, as sets of tiles, first die, second, sum; a tile
    that two dice show stands there twice. Returns how many."""
    open_tiles, total, n = state[OPEN], roll_sum(state), 0
    if ints[ADD_UP]:
        for at in range(ints[FIRST + total], ints[FIRST + total + 1]):
            if ints[at] & ~open_tiles == 0:
                listed[n] = ints[at]
                n += 1
        return n
    for i in range(FACES, state.size + (state.size > FACES + 1)):
        number = state[i] if i < state.size else total
        if number <= ints[TILES] and open_tiles >> (number - 1) & 1:
            listed[n] = 1 << (number - 1)
            n += 1
    return n


@njit(
    nb.int64(
        nb.int64[::1], nb.float64[::1], nb.int64[::1], nb.int64,
        nb.int64[:, ::1], nb.float64[::1], nb.int64[::1], nb.int64,
    ),
    cache=True,
)  # fmt: skip
def roll(ints, reals, state, dice, children, weights, actions, edge):
    """Write the edges of rolling so many dice; returns the next free edge."""
    sides = ints[SIDES]
    if ints[ADD_UP]:
        chances = 0 if dice == ints[DICE] else ints[DICE] * sides + 1
        for total in range(dice, dice * sides + 1):
            children[edge, OPEN] = state[OPEN]
            show_sum(ints, total, children[edge])
            weights[edge], actions[edge] = reals[chances + total], dice * ROLL
            edge += 1
        return edge
    for number in range(sides**dice):  # the rolls in order, the first die slowest
        children[edge, OPEN] = state[OPEN]
        rest = number
        for i in range(dice - 1, -1, -1):
            children[edge, FACES + i] = rest % sides + 1
            rest //= sides
        weights[edge], actions[edge] = 1.0 / sides**dice, dice * ROLL
        edge += 1
    return edge


@njit(TRANSITION_TYPE, cache=True)
def transition(board, state, edges):  # noqa: C901  # the rules, in the order in which they are told
    """The edges of a state, by the contract in `solver.game.rules`.

    `reals` holds, for Shut the Box, the chance of each sum from 0 on of all dice, then of one.
    """
    ints, reals = board
    children, weights, actions, rewards, about = edges
    open_tiles = state[OPEN]
    about[0], about[1] = CHANCE, 0
    n = 0
    if open_tiles and roll_sum(state) == 0:
        one = one_die_here(ints, open_tiles)
        if not one or ints[ONE_DIE] == MAY:
            n = roll(ints, reals, state, ints[DICE], children, weights, actions, n)
        if one:
            n = roll(ints, reals, state, 1, children, weights, actions, n)
            if ints[ONE_DIE] == MAY:
                about[0] = DECISION
    elif open_tiles:
        listed = choices(ints, state, actions)
        for k in range(listed):  # each set of tiles once, at its first place
            tiles, seen = actions[k], False
            for edge in range(n):
                seen = seen or actions[edge] == tiles
            if not seen:
                children[n] = 0
                children[n, OPEN] = open_tiles & ~tiles
                weights[n], actions[n] = 1.0, tiles
                n += 1
        if n > 1:
            about[0] = DECISION
    if n == 0:
        about[0], about[1] = TERMINAL, -1
        rewards[0, 0] = 0.0 if open_tiles else 1.0
        if ints[MIN_SUM]:
            rewards[0, 0] = 0.0
            for tile in range(1, ints[TILES] + 1):
                rewards[0, 0] -= tile * (open_tiles >> (tile - 1) & 1)
    return n


@njit(nb.void(nb.int64[::1], nb.int64[:, ::1]), cache=True)
def merge_sums(ints, states):
    """Make states canonical: for Shut the Box, faces that stand for the sum. In place."""
    for x in range(states.shape[0]):
        total = roll_sum(states[x])
        if ints[ADD_UP] and total:
            show_sum(ints, total, states[x])


def numbers(rules: Rules) -> tuple[np.ndarray, np.ndarray]:
    """The board as `transition` reads it: (ints, reals)."""
    add_up, most = rules.allowed == "sum", rules.dice * rules.sides
    one_die = ("never", "may", "must").index(rules.one_die)
    ints = [rules.tiles, rules.dice, rules.sides, add_up, one_die, rules.objective == "sum"]
    if not add_up:
        return np.array(ints, np.int64), np.zeros(1)
    sets: list[list[int]] = [[] for _ in range(most + 1)]
    for tiles in range((1 << rules.tiles) - 1, 0, -1):  # the highest tile first
        total = sum(t + 1 for t in range(rules.tiles) if tiles >> t & 1)
        if total <= most:
            sets[total].append(tiles)
    at = FIRST + most + 2
    for same_sum in sets:
        ints.append(at)
        at += len(same_sum)
    ints.append(at)
    ints += [tiles for same_sum in sets for tiles in same_sum]
    chances = np.zeros(most + 1 + rules.sides + 1)
    for faces in product(range(1, rules.sides + 1), repeat=rules.dice):
        chances[sum(faces)] += 1
    chances[: most + 1] /= rules.rolls
    chances[most + 2 :] = 1 / rules.sides
    return np.array(ints, np.int64), chances


def most_edges(rules: Rules, ints: np.ndarray) -> int:
    """The most edges that a state has on this board, or choices listed for one."""
    if rules.allowed == "jackpot":
        return max(rules.rolls, rules.dice + 1)
    most = rules.dice * rules.sides
    sums = most - rules.dice + 1 + (rules.sides if rules.one_die == "may" else 0)
    sets = np.diff(ints[FIRST : FIRST + most + 2])
    return max(sums, int(sets.max()))
