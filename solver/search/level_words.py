"""A game's level as compiled code asks for it: the words of keys.

The values of several functions (`capabilities.Level`) stand beside one another in one uint64, each
in a lane of as many bits as it needs and a guard above them; as they are linear in the bits of a
key, a word is the sum of eight looked-up numbers, one for each byte of the key. One minus another
with the guards of the first set keeps every guard exactly where the other is not greater (`rises`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numba import types
from numpy.typing import NDArray

from luckbase.solver.errors import OptionError
from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.capabilities import Function
from luckbase.solver.game.fields import Fields
from luckbase.solver.njit import njit
from luckbase.solver.search.keys import Keys

Table = NDArray[np.uint64]

CLASSES = 6
"""Bits of `scatter`: 64 classes."""
_t, _u, _u1 = types.uint64[:, ::1], types.uint64, types.uint64[::1]


@dataclass(frozen=True)
class Words:
    """Functions as words (module docstring): table uint64 (8, 256), what each byte of a key adds;
    guards: the bits above the lanes; lanes: (the lowest bit, bits) of each, the first one highest.
    """

    table: Table
    guards: int
    lanes: tuple[tuple[int, int], ...]

    @property
    def most(self) -> Ints:
        """The greatest values (functions,) that the lanes hold."""
        return np.array([(1 << bits) - 1 for _, bits in self.lanes], np.int64)

    def word(self, values: Ints) -> int:
        """The word of values (functions,), as `values` gives them."""
        lanes = zip(values.tolist(), self.lanes, strict=True)
        return sum(value << low for value, (low, _) in lanes)

    def values(self, words: NDArray[np.uint64]) -> Ints:
        """The functions' values (n, functions) less their least, from words (n,)."""
        columns = [(words >> np.uint64(low)) & np.uint64((1 << bits) - 1)
                   for low, bits in self.lanes]  # fmt: skip
        shape = len(self.lanes), len(words)
        return np.array(columns, np.int64).reshape(shape).T

    def of(self, keys: Keys) -> NDArray[np.uint64]:
        """The words (n,) of keys (n,)."""
        found: NDArray[np.uint64] = words_of(self.table, np.ascontiguousarray(keys))
        return found


def words(fields: Fields, functions: Sequence[Function]) -> Words:
    """Functions of the fields as words. Raises OptionError where they do not fit in 64 bits, or
    name no column."""
    columns, bits = fields.columns, fields.bits
    sets = np.concatenate([[one.is_set] * one.length for one in fields]).astype(bool)
    ends = _lowest_bits(fields)
    table, low, guards = np.zeros((8, 256), np.uint64), 0, 0
    lanes = []
    for function in reversed(functions):
        each = [0] * 64  # whole numbers of any size, to see which are too large
        for name, factor in function.items():
            if name not in columns:
                raise OptionError(f"level: '{name}' is none of the columns {', '.join(columns)}")
            i = columns.index(name)
            for bit in range(bits[i]):
                each[ends[i] + bit] = factor if sets[i] else factor << bit
        size = max(1, sum(map(abs, each)).bit_length())
        if low + size + 1 > 64:
            raise OptionError("level: its functions have too many values for one word of 64 bits")
        table += _sums(np.array(each, np.int64)) << np.uint64(low)
        lanes.append((low, size))
        guards |= 1 << (low + size)
        low += size + 1
    return Words(table, guards, tuple(reversed(lanes)))


def columns_of(fields: Fields, functions: Sequence[Function]) -> int:
    """The bits of a key that hold the columns which functions look at."""
    names = {name for one in functions for name, factor in one.items() if factor}
    each = zip(fields.columns, fields.bits.tolist(), _lowest_bits(fields).tolist(), strict=True)
    return sum(((1 << bits) - 1) << end for name, bits, end in each if name in names)


def _lowest_bits(fields: Fields) -> Ints:
    """The lowest bit of each column in a key (columns,)."""
    found: Ints = np.cumsum(fields.bits[::-1])[::-1] - fields.bits
    return found


def _sums(adds: Ints) -> Table:
    """What each byte of a key adds (8, 256), from what each bit does (64,), never less than 0."""
    bits = (np.arange(256)[:, None] >> np.arange(8)) & 1
    eights = adds.reshape(8, 8)
    sums = bits @ eights.T - np.minimum(eights, 0).sum(axis=1)
    return np.ascontiguousarray(sums.T.astype(np.uint64))


def scatter() -> Table:
    """Classes of keys with no meaning: the top `CLASSES` bits of a sum of numbers drawn for the
    bits of a key, always the same ones."""
    drawn = np.random.default_rng(1).integers(0, 1 << 62, 64).astype(np.uint64)
    bits = ((np.arange(256)[:, None] >> np.arange(8)) & 1).astype(np.uint64)
    found: Table = np.ascontiguousarray((bits @ drawn.reshape(8, 8).T).T)
    return found


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
def rises(one, other, guards):
    """Whether any function is greater at the other than at the one."""
    return ((one | guards) - other) & guards != guards
