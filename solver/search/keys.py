"""Keys of states by bits, and a hash table of them: a state <-> one uint64 <-> its number.

The search, which knows no tiers, names a state by its numbers in fields of `Game.bits` bits, the
first number highest. Bits and not mixed radices: a shift is one cycle, a division twenty, and a
search packs a key an edge.

The hash table (open addressing, linear probing, multiplicative hashing, at most half full) gives
each key a number, counted from 0 in the order of entry: `slots` int32 (a power of two), -1 where
empty, else the number; `rows` uint64 (numbers, 1 + more), the key first in its row. What is kept of
a key beside it in its row is there when the key was compared: one cache miss, not two.

Source: Knuth, The Art of Computer Programming 3, 6.4.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np
from numba import types
from numpy.typing import NDArray

from luckbase.solver.game.arrays import Ints
from luckbase.solver.njit import njit

Keys = NDArray[np.uint64]

n1, u1, u2 = types.int32[::1], types.uint64[::1], types.uint64[:, ::1]


@njit(nb.uint64(nb.int64[::1], nb.int64[::1]), cache=True, nogil=True)
def pack(bits, state):
    """The key of a state (fields,); number i must be below 2 ** bits[i]."""
    key = np.uint64(0)
    for i in range(state.size):
        key = (key << np.uint64(bits[i])) | np.uint64(state[i])
    return key


@njit(nb.void(nb.int64[::1], nb.uint64, nb.int64[::1]), cache=True, nogil=True)
def unpack(bits, key, state):
    """Write the numbers of a key into `state` (fields,)."""
    for i in range(state.size - 1, -1, -1):
        width = np.uint64(bits[i])
        state[i] = np.int64(key & ((np.uint64(1) << width) - np.uint64(1)))
        key = key >> width


@njit(nb.int64[:, ::1](nb.int64[::1], nb.uint64[::1]), cache=True, nogil=True)
def unpack_all(bits, keys):
    """The states (n, fields) of keys (n,)."""
    states = np.empty((keys.size, bits.size), np.int64)
    for i in range(keys.size):
        unpack(bits, keys[i], states[i])
    return states


@njit(nb.uint64[::1](nb.int64[::1], nb.int64[:, ::1]), cache=True, nogil=True)
def pack_all(bits, states):
    """The keys (n,) of states (n, fields)."""
    keys = np.empty(states.shape[0], np.uint64)
    for i in range(keys.size):
        keys[i] = pack(bits, states[i])
    return keys


_READ = nb.types.Array(nb.int64, 2, "C", readonly=True)  # as pyarrow gives them


@njit(nb.void(nb.int64[::1], _READ, nb.boolean[::1]), cache=True, nogil=True)
def _fits(bits, states, inside):
    """Write whether every number of each state (n, fields) has room."""
    for i in range(inside.size):
        inside[i] = True
        for k in range(bits.size):
            inside[i] &= states[i, k] >= 0 and states[i, k] >> bits[k] == 0


def fits(bits: Ints, states: Ints) -> NDArray[np.bool_]:
    """(n,) whether every number of each state (n, fields) has room."""
    inside = np.empty(len(states), bool)
    _fits(bits, np.ascontiguousarray(states, np.int64), inside)
    return inside


@njit(types.int64(types.uint64, types.int64), cache=True, nogil=True, inline="always")
def home(key, mask):
    """The slot where the search for a key begins."""
    mixed = (key ^ (key >> np.uint64(32))) * np.uint64(0x9E3779B97F4A7C15)  # scores are on top
    return np.int64((mixed ^ (mixed >> np.uint64(32))) & np.uint64(mask))


@njit(types.int64(n1, u2, types.uint64, types.int64), cache=True, nogil=True)
def find_from(slots, rows, key, slot):
    """The slot of `key` at or after `slot`, or the empty one where it belongs."""
    mask = slots.size - 1
    while slots[slot] >= 0 and rows[slots[slot], 0] != key:
        slot = (slot + 1) & mask
    return slot


@njit(types.void(n1, u2, types.int64), cache=True, nogil=True)
def rehash(slots, rows, count):
    """Enter the keys of rows 0 .. count - 1 into empty `slots`."""
    mask = slots.size - 1
    for i in range(count):
        slots[find_from(slots, rows, rows[i, 0], home(rows[i, 0], mask))] = i


@njit(types.int64(n1, u2, types.int64, u1, n1), cache=True, nogil=True)
def enter(slots, rows, count, wanted, numbers):
    """Give every wanted key (m,) its number, new ones the next; returns how many there are then.

    There must be room for all. `numbers` int32 (m,) is written.
    """
    mask = slots.size - 1
    for i in range(wanted.size):
        slot = find_from(slots, rows, wanted[i], home(wanted[i], mask))
        if slots[slot] < 0:
            slots[slot] = count
            rows[count, 0] = wanted[i]
            count += 1
        numbers[i] = slots[slot]
    return count


@njit(types.void(n1, u2, u1, n1), cache=True, nogil=True)
def look_up(slots, rows, wanted, numbers):
    """Write the number of every wanted key (m,) into `numbers` int32 (m,); -1 if not entered."""
    mask = slots.size - 1
    for i in range(wanted.size):
        numbers[i] = slots[find_from(slots, rows, wanted[i], home(wanted[i], mask))]


class Numbering:
    """Keys numbered from 0 in the order in which they come."""

    def __init__(self) -> None:
        self.count = 0
        self._rows = np.empty((1 << 12, 1), np.uint64)
        self._slots = np.full(1 << 13, -1, np.int32)

    @property
    def keys(self) -> Keys:
        """uint64 (count,), a copy."""
        return self._rows[: self.count, 0].copy()

    def keys_at(self, numbers: NDArray[np.integer[Any]]) -> Keys:
        """The keys (m,) of numbers (m,)."""
        return np.ascontiguousarray(self._rows[numbers, 0])

    def enter(self, keys: Keys) -> NDArray[np.int32]:
        """The number of each key (m,), new ones the next."""
        if self.count + len(keys) > len(self._rows):
            room = len(self._rows)
            while room < self.count + len(keys):
                room *= 2
            rows = np.empty((room, 1), np.uint64)
            rows[: self.count] = self._rows[: self.count]
            self._rows, self._slots = rows, np.full(2 * room, -1, np.int32)
            rehash(self._slots, self._rows, self.count)
        numbers = np.empty(len(keys), np.int32)
        wanted = np.ascontiguousarray(keys)
        self.count = int(enter(self._slots, self._rows, self.count, wanted, numbers))
        return numbers
