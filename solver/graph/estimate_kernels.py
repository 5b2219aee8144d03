"""The compiled part of `solver.graph.estimate`: the search that keeps only what is new."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.transition import NUMBERS_TYPE, TRANSITION
from luckbase.solver.graph.expansion import ROOM_TYPE, expand_one
from luckbase.solver.graph.keys import find_from, home, pack, unpack
from luckbase.solver.njit import njit

DONE, MET, GROUPS, MARKS, EDGES = 0, 1, 2, 3, 4
"""What `counts` counts: states expanded, states kept, groups, marks, edges."""
FAR = 1 << 62

_i1, _i2, _i3 = types.int64[::1], types.int64[:, ::1], types.int64[:, :, ::1]
_n1, _n2, _u2 = types.int32[::1], types.int32[:, ::1], types.uint64[:, ::1]


class Wide(NamedTuple):
    """The wide columns. columns: int64 (w, 2 + k): the column, whether it is a set, the cuts,
    ascending. sides: int64 (s, 3): columns a, b and a sign: a's number plus the sign times b's.
    lots: how many states may be kept for one value. thin: of so many values one is kept. bits: of a
    key."""

    columns: Ints
    sides: Ints
    lots: int
    thin: int
    bits: Ints


class Tables(NamedTuple):
    """What was met. group_slots, group_rows, mark_slots, mark_rows: hash tables as in
    `solver.graph.keys`. values: int32 (groups, w), how many values of each wide column. ends: int64
    (groups, s, 2), the least and greatest of each side. kept: uint64 (room, 1), keys."""

    group_slots: NDArray[np.int32]
    group_rows: NDArray[np.uint64]
    mark_slots: NDArray[np.int32]
    mark_rows: NDArray[np.uint64]
    values: NDArray[np.int32]
    ends: Ints
    kept: NDArray[np.uint64]


WIDE: Any = types.NamedTuple((_i2, _i2, types.int64, types.int64, _i1), Wide)
TABLES: Any = types.NamedTuple((_n1, _u2, _n1, _u2, _n2, _i3, _u2), Tables)


@njit(types.uint64(types.uint64, types.uint64), cache=True, nogil=True, inline="always")
def _mixed(code, more):
    """A code of one code and another."""
    code = (code ^ more) * np.uint64(0x9E3779B97F4A7C15)
    code = (code ^ (code >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    return code ^ (code >> np.uint64(32))


@njit(types.int64(_i2, types.int64, types.int64), cache=True, nogil=True)
def _kind(columns, j, value):
    """The kind of a value of wide column j: how many a set holds; a number's place
    among the cuts."""
    found = 0
    if columns[j, 1]:
        while value:
            value &= value - 1
            found += 1
        return found
    for i in range(2, columns.shape[1]):
        found += 2 * (value > columns[j, i]) + (value == columns[j, i])
    return found


@njit(types.uint64(WIDE, _i1), cache=True, nogil=True)
def _group_code(wide, state):
    """The code of a state's group: its narrow columns, and the kinds of its wide ones."""
    code, j = np.uint64(1), 0
    for f in range(state.size):
        value = state[f]
        if j < wide.columns.shape[0] and wide.columns[j, 0] == f:
            value = _kind(wide.columns, j, value)
            j += 1
        code = _mixed(code, np.uint64(value))
    return code


@njit(types.boolean(TABLES, _i1, types.uint64), cache=True, nogil=True)
def _mark(tables, counts, code):
    """Enter a mark; whether it was not there."""
    slots, rows = tables.mark_slots, tables.mark_rows
    slot = find_from(slots, rows, code, home(code, slots.size - 1))
    if slots[slot] >= 0:
        return False
    slots[slot] = counts[MARKS]
    rows[counts[MARKS], 0] = code
    counts[MARKS] += 1
    return True


@njit(
    types.boolean(TABLES, types.int64, types.int64, types.int64, types.int64),
    cache=True,
    nogil=True,
)
def _stretch(tables, thin, group, side, value):
    """Let the ends of a group's side hold a value; whether that takes another `thin` values."""
    ends = tables.ends
    found = False
    if value < ends[group, side, 0]:
        found = value // thin < ends[group, side, 0] // thin
        ends[group, side, 0] = value
    if value > ends[group, side, 1]:
        found |= value // thin > ends[group, side, 1] // thin
        ends[group, side, 1] = value
    return found


@njit(types.void(WIDE, TABLES, _i1, _i1), cache=True, nogil=True)
def meet(wide, tables, counts, state):
    """Note a state (fields,), and keep it if something of it is new."""
    code = _group_code(wide, state)
    slots, rows = tables.group_slots, tables.group_rows
    slot = find_from(slots, rows, code, home(code, slots.size - 1))
    new = slots[slot] < 0
    if new:
        group = counts[GROUPS]
        slots[slot] = group
        rows[group, 0] = code
        for j in range(wide.columns.shape[0]):
            tables.values[group, j] = 0
        for j in range(wide.sides.shape[0]):
            tables.ends[group, j, 0], tables.ends[group, j, 1] = FAR, -FAR
        counts[GROUPS] += 1
    group = np.int64(slots[slot])
    key = pack(wide.bits, state)
    own = _mixed(np.uint64(2), key)
    for j in range(wide.columns.shape[0]):
        value = np.uint64(state[wide.columns[j, 0]])
        of_value = _mixed(_mixed(np.uint64(3), np.uint64(j)), value)
        taken = of_value % np.uint64(wide.thin) == 0
        one = _mixed(code, of_value)
        if _mark(tables, counts, one):
            tables.values[group, j] += 1
            new |= taken
        lot = (own >> np.uint64(8 * (j % 8))) % np.uint64(wide.lots)
        if lot and taken and _mark(tables, counts, one + lot):
            new = True
    for j in range(wide.sides.shape[0]):
        at = state[wide.sides[j, 0]] + wide.sides[j, 2] * state[wide.sides[j, 1]]
        new |= _stretch(tables, wide.thin, group, j, at)
    if new:
        tables.kept[counts[MET], 0] = key
        counts[MET] += 1


@njit(types.void(WIDE, TABLES, _i1, _i2), cache=True, nogil=True)
def meet_all(wide, tables, counts, states):
    """Note states (n, fields), for which there must be room."""
    for x in range(states.shape[0]):
        meet(wide, tables, counts, states[x])


@njit(
    types.int64(TRANSITION, NUMBERS_TYPE, ROOM_TYPE, WIDE, TABLES, _i1, types.int64),
    cache=True, nogil=True,
)  # fmt: skip
def expand_kept(transition, board, room, wide, tables, counts, states):
    """Expand up to so many states that were kept, while there is room for one more's children;
    BROKEN where the edges of the state room.at break the rules, else 0."""
    into = room.edges
    below, rewards = into.children, into.rewards
    most, w = below.shape[0], wide.columns.shape[0]
    state = np.empty(wide.bits.size, np.int64)
    stop = counts[DONE] + states
    while (
        counts[DONE] < min(stop, counts[MET])
        and counts[MET] + most <= tables.kept.shape[0]
        and counts[GROUPS] + most <= tables.group_rows.shape[0]
        and counts[MARKS] + 2 * w * most <= tables.mark_rows.shape[0]
    ):
        unpack(wide.bits, tables.kept[counts[DONE], 0], state)
        n = expand_one(transition, board, state, into, room)
        if n < 0:
            return n
        rewards[0] = 0.0  # a state that is over writes its payoff, others add to it
        counts[DONE] += 1
        counts[EDGES] += n
        for k in range(n):
            meet(wide, tables, counts, below[k])
    return 0
