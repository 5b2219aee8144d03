"""Keys of states by bits: the numbers of a state <-> one uint64. Round trips only.

The search, which knows no tiers, names a state by its numbers in fields of `Game.bits` bits, the
first number highest. Bits and not mixed radices: a shift is one cycle, a division twenty, and a
search packs a key an edge.
"""

from __future__ import annotations

import numba as nb
import numpy as np
from numpy.typing import NDArray

from solver.game import Ints


@nb.njit(nb.uint64(nb.int64[::1], nb.int64[::1]), cache=True, nogil=True)
def pack(bits, state):  # type: ignore[no-untyped-def]
    """The key of a state (fields,); number i must be below 2 ** bits[i]."""
    key = np.uint64(0)
    for i in range(state.size):
        key = (key << np.uint64(bits[i])) | np.uint64(state[i])
    return key


@nb.njit(nb.void(nb.int64[::1], nb.uint64, nb.int64[::1]), cache=True, nogil=True)
def unpack(bits, key, state):  # type: ignore[no-untyped-def]
    """Write the numbers of a key into `state` (fields,)."""
    for i in range(state.size - 1, -1, -1):
        width = np.uint64(bits[i])
        state[i] = np.int64(key & ((np.uint64(1) << width) - np.uint64(1)))
        key = key >> width


@nb.njit(nb.int64[:, ::1](nb.int64[::1], nb.uint64[::1]), cache=True, nogil=True)
def unpack_all(bits, keys):  # type: ignore[no-untyped-def]
    """The states (n, fields) of keys (n,)."""
    states = np.empty((keys.size, bits.size), np.int64)
    for i in range(keys.size):
        unpack(bits, keys[i], states[i])
    return states


def fits(bits: Ints, states: Ints) -> NDArray[np.bool_]:
    """(n,) whether every number of each state (n, fields) has room."""
    inside: NDArray[np.bool_] = ((states >= 0) & (states >> bits == 0)).all(axis=1)
    return inside
