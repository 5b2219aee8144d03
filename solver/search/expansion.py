"""One state expanded, and held to the rules: what every engine calls, and not the transition.

The games here are held by tests. Of a game of somebody else each state that an engine expands is
held to what `solver.game.transition` says, before anything is worked out from its edges: how many,
chances, who acts, what is paid, children within the bounds of their fields. What is wrong is looked
for again and said by `solver.game.faults`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
from numba import types

from luckbase.solver.errors import LuckbaseError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.faults import WEIGHT, fault_at, span_of, worth_at
from luckbase.solver.game.game import Game, Stopped
from luckbase.solver.game.transition import (
    CHANCE,
    DECISION,
    EDGES_TYPE,
    JOINT,
    NUMBERS_TYPE,
    SIMULTANEOUS,
    TERMINAL,
    TRANSITION,
    Edges,
    room_for,
)
from luckbase.solver.njit import njit
from luckbase.solver.search.bellman_step import inlined
from luckbase.solver.search.borrowed import borrowed
from luckbase.solver.search.keys import Keys, unpack_all

BROKEN = -1
"""Instead of how many edges: they break the rules."""


class Room(NamedTuple):
    """Room for a state's edges, and what they are held to where `checked`.

    bounds: int64 (2, fields), the least and the greatest of each number. span: float64 (2,), of
    payoffs. kinds: int64 (3,): actions that have a name; whether edges may pay; whether players may
    choose at once. at: int64 (fields,), written: the state whose edges break the rules; where
    `checked`, the one expanded last.
    """

    edges: Edges
    checked: bool
    bounds: Ints
    span: Floats
    kinds: Ints
    at: Ints


ROOM_TYPE = types.NamedTuple(  # type: ignore[no-untyped-call]
    (
        EDGES_TYPE, types.boolean, types.int64[:, ::1], types.float64[::1], types.int64[::1],
        types.int64[::1],
    ),
    Room,
)  # fmt: skip


def room_of(game: Game, states: int = 1) -> Room:
    """Room for the edges of so many states of a game."""
    names = game.rules.actions
    return Room(
        room_for(states * game.max_edges, game.field_count, game.players), game.is_checked,
        game.fields.bounds, span_of(game),
        np.array([JOINT**2 if callable(names) else len(names), game.pays, game.simultaneous]),
        np.zeros(game.field_count, np.int64),
    )  # fmt: skip


@contextmanager
def expanding(game: Game, room: Room) -> Iterator[None]:
    """While an engine runs: what the game's own code raises there is a GameError, with the state
    and the line."""
    try:
        yield
    except (LuckbaseError, Stopped, MemoryError):
        raise
    except Exception as error:
        if not room.checked:
            raise
        raise fault_at(game, room.at, error) from None


def refuse_beyond(game: Game, states: Ints | Keys, values: Floats) -> None:
    """Raise GameError where one of n states, or keys, is worth what no payoff can be: values
    (n, players), or lower and upper ones. Where edges pay nothing that follows from the ends."""
    if not (game.is_checked and game.pays):
        return
    low, high = span_of(game)
    least, most = values[:, : game.players], values[:, -game.players :]
    wrong = ~((least <= high) & (most >= low)).all(axis=1)
    if wrong.any():
        at = states[wrong][:1]
        state = unpack_all(game.bits, at) if at.ndim == 1 else at
        raise worth_at(game, state[0], values[wrong][0][: game.players])


@inlined
def lent(room):  # type: ignore[no-untyped-def]
    """The room, its arrays borrowed (`solver.search.borrowed`) from the argument that it is."""
    edges = Edges(
        borrowed(room.edges.children), borrowed(room.edges.weights), borrowed(room.edges.actions),
        borrowed(room.edges.rewards), borrowed(room.edges.about),
    )  # fmt: skip
    return Room(
        edges, room.checked, borrowed(room.bounds), borrowed(room.span), borrowed(room.kinds),
        borrowed(room.at),
    )  # fmt: skip


@inlined
def expand_one(transition, board, state, edges, room):  # type: ignore[no-untyped-def]
    """Write a state's edges to `edges`, room.edges or a part of it; returns how many, or BROKEN,
    the state then in room.at.

    Beyond the children nothing is kept from one state to the next, but the payoff of a state that
    is over, in row 0 of the rewards.
    """
    if room.checked:
        return _held(transition, board, state, edges, room)
    n = transition(board, state, edges)
    if n > edges.weights.size:
        for i in range(state.size):
            room.at[i] = state[i]
        return BROKEN
    return n


@njit(
    types.int64(TRANSITION, NUMBERS_TYPE, types.int64[::1], EDGES_TYPE, ROOM_TYPE), cache=True,
    nogil=True,
)  # fmt: skip
def _held(transition, board, state, edges, room):  # type: ignore[no-untyped-def]
    """`expand_one` of a state that is held to the rules."""
    rewards, about = borrowed(edges.rewards), borrowed(edges.about)
    at, span, kinds = borrowed(room.at), borrowed(room.span), borrowed(room.kinds)
    given, players = borrowed(state), rewards.shape[1]
    for i in range(given.size):
        at[i] = given[i]
    about[0] = -1
    n = transition(board, state, edges)
    right = True
    for i in range(given.size):
        right &= at[i] == given[i]
    if about[0] == TERMINAL:
        for p in range(players):
            right &= span[0] <= rewards[0, p] <= span[1]
        return n if right and n == 0 else BROKEN
    weights, actions = borrowed(edges.weights), borrowed(edges.actions)
    if not right or not 1 <= n <= weights.size:
        return BROKEN
    right = _chances_are(n, weights, actions, kinds[0] if about[0] == DECISION else JOINT**2)
    right = right and _kind_is(n, about, actions, players, kinds[2])
    right = right and _lies_within(n, borrowed(edges.children), borrowed(room.bounds))
    paid = rewards.reshape(-1)
    for k in range(n * players):  # what is no number less itself is not 0
        right &= (paid[k] - paid[k] if kinds[1] else paid[k]) == 0.0
    return n if right else BROKEN


@inlined
def _lies_within(n, children, bounds):  # type: ignore[no-untyped-def]
    """Whether the numbers of n children are within their bounds; all are looked at, without a
    branch: that is faster."""
    beyond = np.int64(0)
    for k in range(n):
        for i in range(children.shape[1]):
            beyond |= (children[k, i] - bounds[0, i]) | (bounds[1, i] - children[k, i])
    return beyond >= 0  # below 0 where one of them is


@inlined
def _chances_are(n, weights, actions, names):  # type: ignore[no-untyped-def]
    """Whether the weights of each action sum to 1 and none is 0 or less, of actions with names."""
    right, total, slack = True, 1.0, WEIGHT + n * 2.0**-53
    action = np.int64(-1)
    for k in range(n):
        if actions[k] != action:
            right &= abs(total - 1.0) <= slack
            total, action = 0.0, actions[k]
            right &= 0 <= action < names
        right &= weights[k] > 0.0
        total += weights[k]
    return right and abs(total - 1.0) <= slack


@inlined
def _kind_is(n, about, actions, players, at_once):  # type: ignore[no-untyped-def]
    """Whether who acts fits the kind of a state that is not over, and its actions do."""
    kind, actor = about[0], about[1]
    if kind == SIMULTANEOUS:
        return at_once and players == 2 and _is_full(n, actions)
    if kind == CHANCE:
        return -1 <= actor < players and actions[0] == actions[n - 1]
    return kind == DECISION and 0 <= actor < players


@inlined
def _is_full(n, actions):  # type: ignore[no-untyped-def]
    """Whether the joint actions ascend, with as many columns in each row as in the first."""
    row, columns, count, last = actions[0] // JOINT, 0, 1, actions[0]
    for k in range(1, n):
        if actions[k] == last:
            continue
        if actions[k] < last:
            return False
        last = actions[k]
        if last // JOINT == row:
            count += 1
            continue
        if columns and count != columns:
            return False
        row, columns, count = last // JOINT, count, 1
    return columns == 0 or count == columns
