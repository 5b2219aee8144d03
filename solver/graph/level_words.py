"""A game's level as compiled code asks for it: the words of keys.

The values of several functions (`solver.game.level`) stand beside one another in one uint64, each
in a lane of as many bits as it needs and a guard above them; as they are linear in the bits of a
key, a word is the sum of eight looked-up numbers, one for each byte of the key. Parent minus child
with the parent's guards set keeps every guard exactly where nothing rose (`rises`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numba import types
from numpy.typing import NDArray

from luckbase.solver.errors import OptionError
from luckbase.solver.game.fields import Fields
from luckbase.solver.game.level import Function
from luckbase.solver.graph.keys import Keys
from luckbase.solver.njit import njit

Table = NDArray[np.uint64]

_t, _u, _u1 = types.uint64[:, ::1], types.uint64, types.uint64[::1]


@dataclass(frozen=True)
class Words:
    """Functions as words (module docstring): table uint64 (8, 256), what each byte of a key adds;
    guards: the bits above the lanes; lanes: (the lowest bit, bits) of each, the last function
    lowest."""

    table: Table
    guards: int
    lanes: tuple[tuple[int, int], ...]

    def values(self, words: NDArray[np.uint64]) -> NDArray[np.int64]:
        """The functions' values (n, functions) less their least, from words (n,)."""
        columns = [(words >> np.uint64(low)) & np.uint64((1 << bits) - 1)
                   for low, bits in self.lanes]  # fmt: skip
        shape = (len(words), len(self.lanes))
        return np.array(columns, np.int64).reshape(shape[::-1]).T

    def of(self, keys: Keys) -> NDArray[np.uint64]:
        """The words (n,) of keys (n,)."""
        found: NDArray[np.uint64] = words_of(self.table, np.ascontiguousarray(keys))
        return found


def words(fields: Fields, functions: Sequence[Function]) -> Words:
    """Functions of the fields as words. Raises OptionError where they do not fit in 64 bits, or
    name no column."""
    columns, bits = fields.columns, fields.bits
    sets = np.concatenate([[one.is_set] * one.length for one in fields]).astype(bool)
    ends = np.cumsum(bits[::-1])[::-1] - bits  # the lowest bit of each column in a key
    table, low, guards = np.zeros((8, 256), np.uint64), 0, 0
    lanes = []
    for function in reversed(functions):
        adds = np.zeros(64, np.int64)
        for name, factor in function.items():
            if name not in columns:
                raise OptionError(f"level: '{name}' is none of the columns {', '.join(columns)}")
            i = columns.index(name)
            for bit in range(bits[i]):
                adds[ends[i] + bit] = factor if sets[i] else factor << bit
        least, most = int(adds[adds < 0].sum()), int(adds[adds > 0].sum())
        size = max(1, (most - least).bit_length())
        if low + size + 1 > 64:
            raise OptionError("level: its functions have too many values for one word of 64 bits")
        for byte in range(8):
            eight = adds[8 * byte : 8 * byte + 8]
            sums = ((np.arange(256)[:, None] >> np.arange(8)) & 1) @ eight
            table[byte] += (sums - eight[eight < 0].sum()).astype(np.uint64) << np.uint64(low)
        lanes.append((low, size))
        guards |= 1 << (low + size)
        low += size + 1
    return Words(table, guards, tuple(reversed(lanes)))


@njit(_u(_t, _u), cache=True, nogil=True, inline="always")
def word_of(table, key):
    """The word of a key: see the module docstring."""
    eight = np.uint64(8)
    low = np.uint64(255)
    found = table[0, key & low]
    for byte in range(1, 8):
        key >>= eight
        found += table[byte, key & low]
    return found


@njit(_u1(_t, _u1), cache=True, nogil=True)
def words_of(table, keys):
    """The words (n,) of keys (n,)."""
    found = np.empty(keys.size, np.uint64)
    for i in range(keys.size):
        found[i] = word_of(table, keys[i])
    return found


@njit(types.boolean(_u, _u, _u), cache=True, nogil=True, inline="always")
def rises(parent, child, guards):
    """Whether any function is greater at the child than at the parent."""
    return ((parent | guards) - child) & guards != guards
