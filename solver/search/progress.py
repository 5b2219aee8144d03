"""The data of a search in one piece: its subject, the states that it has met, and its progress."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.compiled import inlined, tuple_type, types
from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.rules import NUMBERS_TYPE, Numbers
from luckbase.solver.search.bellman import RESULTS_TYPE, SCRATCH_TYPE, Results, Scratch
from luckbase.solver.search.expand import ROOM_TYPE, Room

_i1, _i2, _n1 = types.int64[::1], types.int64[:, ::1], types.int32[::1]
_u2 = types.uint64[:, ::1]

FINISHED, GROW, COMPONENT, PAUSE, REFUSED, BEYOND, SUMS = range(7)
"""Why a search stops (`search`)."""
DEPTH, COUNT, CLOCK, HEIGHT, ROOT, EDGES, TOP, STATUS, READY = range(9)
"""Positions in `Path.at`, the progress of a search: frames on the path minus one, states met,
states visited, states on the stack, the next root, edges expanded, frames in use, why a component
is not solved, whether the engine for components is compiled."""
REACHED, EXPANDED, OPEN = (np.uint64((0xFFF8 << 48) + i) for i in range(3))
"""In place of the first payoff of an unsolved state, NaNs that show its progress: only reached;
expanded but not visited, plus twice its frame; on the path, plus twice its place in the order of
visits."""


class Task(NamedTuple):
    """The subject of a search.

    board: the board as numbers.
    room: for the edges of a state.
    strides: `Game.strides`.
    scratch: for a step.
    state: int64 (fields,), scratch.
    turn: `Game.turn`; empty if states inside turns are kept.
    """

    board: Numbers
    room: Room
    strides: Ints
    scratch: Scratch
    state: Ints
    turn: Ints


class Store(NamedTuple):
    """All data of the states met, by number.

    slots: the hash table (`solver.search.keys`).
    keys: uint64 (room, 1 + players): the key, then the payoffs as float64, or until the state is
        solved REACHED, EXPANDED or OPEN.
    results: `Results`, whose values are `keys` as float64; margins, actors and errors are NaN, 0
        and 0 until the state is solved.
    """

    slots: NDArray[np.int32]
    keys: NDArray[np.uint64]
    results: Results


TASK_TYPE = tuple_type(Task, NUMBERS_TYPE, ROOM_TYPE, _i2, SCRATCH_TYPE, _i1, _i2)
STORE_TYPE = tuple_type(Store, _n1, _u2, RESULTS_TYPE)


@inlined
def is_between_turns(turn, state):
    """Return whether a turn's fields have their numbers between turns; False without fields."""
    between = turn.shape[1] > 0
    for i in range(turn.shape[1]):
        between &= state[turn[0, i]] == turn[1, i]
    return between
