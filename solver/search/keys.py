"""Keys of states: the conversion of a state to one uint64, a hash table of keys, and levels.

**Keys.** The search names a state by one number: the sum of its numbers times their strides
(`Game.strides`), with the first number in the highest place. If 64 bits are enough, each number has
room for a power of two, so a key is unpacked by shifts of one cycle each. Otherwise each number has
exactly as much room as it has values (mixed radices), and a division takes twenty cycles.

**The hash table** (open addressing, linear probing, multiplicative hashing, at most half full)
numbers the keys from 0 in the order of entry. `slots` is int32 (a power of two): -1 if empty, else
the number, in as many bits as half the slots need, and above it bits of the key's hash. Most slots
of other keys are skipped by that hash, without reading the key. `rows` is uint64 (numbers, 1 +
more) with the key first in its row. Data stored beside the key is in the cache once the key was
compared: one cache miss, not two.

**Levels** are computed from keys. The values of a level's functions (`rules.Level`) are packed into
one uint64, the **word** of a key, each in a lane of as many bits as it needs with a guard bit
above. The functions are linear in the bits of a key, so a word is the sum of eight looked-up
numbers, one for each byte of the key; with mixed radices it is summed number by number. One word
with its guards set, minus another, keeps a guard exactly if the other word is not greater in that
lane (`rises`).

Source: Knuth, The Art of Computer Programming 3, 6.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.compiled import inlined, njit, types
from luckbase.solver.errors import OptionError
from luckbase.solver.game.arrays import Ints

if TYPE_CHECKING:
    from luckbase.solver.game.fields import Fields
    from luckbase.solver.game.rules import Factors

Keys = NDArray[np.uint64]
NO_KEYS = np.empty(0, np.uint64)
_i, _u = types.int64, types.uint64
_i1, _i2, n1, u1, u2 = _i[::1], _i[:, ::1], types.int32[::1], _u[::1], _u[:, ::1]


@njit(_u(_i2, _i1))
def pack(strides, state):
    """Return the key of a state (fields,) whose numbers all have room."""
    key = np.uint64(0)
    for i in range(state.size):
        key += np.uint64(strides[0, i]) * np.uint64(state[i])
    return key


@inlined
def bits_in(bits: Any) -> Any:
    """Return the number of set bits of a 64-bit number; LLVM compiles it to one instruction."""
    all_bits, low_two = np.uint64(bits), np.uint64(0x3333333333333333)
    twos = all_bits - ((all_bits >> np.uint64(1)) & np.uint64(0x5555555555555555))
    fours = (twos & low_two) + ((twos >> np.uint64(2)) & low_two)
    eights = (fours + (fours >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((eights * np.uint64(0x0101010101010101)) >> np.uint64(56))


@inlined
def pack_row(strides, states, row):
    """Return the key of a row of states (n, fields); a view would count references."""
    key = np.uint64(0)
    for i in range(states.shape[1]):
        key += np.uint64(strides[0, i]) * np.uint64(states[row, i])
    return key


@njit(types.void(_i2, _u, _i1))
def unpack(strides, key, state):
    """Write the numbers of a key into `state` (fields,)."""
    for i in range(state.size - 1, -1, -1):
        room = strides[1, i]
        if room >= 0:
            width = np.uint64(room)
            state[i] = np.int64(key & ((np.uint64(1) << width) - np.uint64(1)))
            key = key >> width
        else:
            quotient = key // np.uint64(-room)
            state[i] = np.int64(key - quotient * np.uint64(-room))
            key = quotient


@njit(_i2(_i2, u1))
def unpack_all(strides, keys):
    """Return the states (n, fields) of keys (n,)."""
    states = np.empty((keys.size, strides.shape[1]), np.int64)
    for i in range(keys.size):
        unpack(strides, keys[i], states[i])
    return states


@njit(types.void(_i2, u1, _i2))
def unpack_columns(strides, keys, columns):
    """Write the numbers of keys (n,) to int64 (fields, n), column by column; shifts vectorise."""
    low, width, state = np.uint64(0), np.uint64(0), np.empty(strides.shape[1], np.int64)
    if strides[1].min() < 0:
        for i in range(keys.size):
            unpack(strides, keys[i], state)
            for c in range(state.size):
                columns[c, i] = state[c]
        return
    for c in range(state.size - 1, -1, -1):
        width = np.uint64(strides[1, c])
        most = (np.uint64(1) << width) - np.uint64(1)
        for i in range(keys.size):
            columns[c, i] = np.int64(keys[i] >> low & most) if most else 0
        low += width


@njit(u1(_i2, _i2))
def pack_all(strides, states):
    """Return the keys (n,) of states (n, fields)."""
    keys = np.empty(states.shape[0], np.uint64)
    for i in range(keys.size):
        keys[i] = pack_row(strides, states, i)
    return keys


def fits(strides: Ints, states: Ints) -> NDArray[np.bool_]:
    """Return whether every number of each state (n, fields) has room: (n,)."""
    room = strides[1]
    most = np.where(room < 0, -room - 1, (1 << np.clip(room, 0, 63)) - 1)
    inside: NDArray[np.bool_] = ((states >= 0) & (states <= most)).all(axis=1)
    return inside


@inlined
def hash_of(key):
    """Return the hash of a key, 31 bits; its lowest bits are the slot where probing begins."""
    mixed = (key ^ (key >> np.uint64(32))) * np.uint64(0x9E3779B97F4A7C15)  # scores are high
    return np.int64((mixed ^ (mixed >> np.uint64(32))) & np.uint64(0x7FFFFFFF))


@inlined
def may_be(slots, hashed, slot):
    """Return the first slot from `slot` on that is empty or may have a key with this hash."""
    mask = slots.size - 1
    while slots[slot] >= 0 and (slots[slot] ^ hashed) & ~(mask >> 1):
        slot = (slot + 1) & mask
    return slot


@njit(_i(n1, u2, _u, _i, _i))
def find_from(slots, rows, key, hashed, slot):
    """Return the slot of `key`, from `slot` on, or the empty slot where it belongs."""
    mask = slots.size - 1
    slot = may_be(slots, hashed, slot)
    while slots[slot] >= 0 and rows[slots[slot] & (mask >> 1), 0] != key:
        slot = may_be(slots, hashed, (slot + 1) & mask)
    return slot


@njit(types.void(n1, u2, _i))
def rehash(slots, rows, count):
    """Enter the keys of rows 0 .. count - 1 into empty `slots`."""
    mask = slots.size - 1
    for i in range(count):
        hashed = hash_of(rows[i, 0])
        slot = find_from(slots, rows, rows[i, 0], hashed, hashed & mask)
        slots[slot] = hashed & ~(mask >> 1) | i


DIGIT = 11
"""Bits that `order_of` sorts by at a time."""


@njit(n1(u1))
def order_of(keys):
    """Return the order that sorts keys (n,), int32 (n,); stable.

    A radix sort of the bits that differ (Knuth, 5.2.5), in an eighth of a comparison sort's time.
    """
    n, differ, shift = keys.size, np.uint64(0), np.uint64(0)
    order, scratch = np.arange(n).astype(np.int32), np.empty(n, np.int32)
    counts, last = np.empty(1 << DIGIT, np.int64), np.uint64((1 << DIGIT) - 1)
    for i in range(n):
        differ |= keys[i] ^ keys[0]
    while differ >> shift:
        while not (differ >> shift) & np.uint64(1):
            shift += np.uint64(1)
        counts[:] = 0
        for i in range(n):
            counts[(keys[i] >> shift) & last] += 1
        total = 0
        for k in range(counts.size):
            total, counts[k] = total + counts[k], total
        for i in range(n):
            digit = (keys[order[i]] >> shift) & last
            scratch[counts[digit]] = order[i]
            counts[digit] += 1
        order, scratch = scratch, order
        shift += np.uint64(DIGIT)
        if shift >= np.uint64(64):
            break
    return order


@njit(_i(n1, u2, _i, u1, n1))
def enter(slots, rows, count, keys, numbers):
    """Write the number of every key (m,) to `numbers`, int32 (m,); new keys get the next numbers.

    There must be room for all. Returns the new count.
    """
    mask = slots.size - 1
    for i in range(keys.size):
        hashed = hash_of(keys[i])
        slot = find_from(slots, rows, keys[i], hashed, hashed & mask)
        if slots[slot] < 0:
            slots[slot] = hashed & ~(mask >> 1) | count
            rows[count, 0] = keys[i]
            count += 1
        numbers[i] = slots[slot] & (mask >> 1)
    return count


@njit(types.void(n1, u2, u1, n1))
def look_up(slots, rows, keys, numbers):
    """Write the number of every key (m,) into `numbers` int32 (m,); -1 if not entered."""
    mask = slots.size - 1
    for i in range(keys.size):
        hashed = hash_of(keys[i])
        entry = slots[find_from(slots, rows, keys[i], hashed, hashed & mask)]
        numbers[i] = entry & (mask >> 1) if entry >= 0 else -1


def merged(lists: Sequence[Keys]) -> Keys:
    """Return the keys of some lists, ascending, each once; faster than `np.unique`."""
    keys = np.sort(np.concatenate([NO_KEYS, *lists]))
    return keys[np.append(True, keys[1:] != keys[:-1])] if len(keys) else keys


AHEAD = 1 << 22
"""Rows up to which `grown` reserves address space; memory is used when they are written."""


def grown(array: NDArray[Any], length: int, fill: float | None = None) -> NDArray[Any]:
    """Return the array with room for `length` rows, at least doubled if it has to grow.

    fill: written to the new rows, if given. The array is the beginning of a longer one, into which
        it grows without a copy: old and new arrays share memory.
    """
    if length <= len(array):
        return array
    length, shape, whole = max(length, 2 * len(array), 1 << 12), array.shape[1:], array.base
    if not (isinstance(whole, np.ndarray) and whole.dtype == array.dtype and len(whole) >= length
            and whole.shape[1:] == shape and whole.ctypes.data == array.ctypes.data):  # fmt: skip
        whole = np.empty((max(length, min(16 * length, AHEAD)), *shape), array.dtype)
        whole[: len(array)] = array
    longer: NDArray[Any] = whole[:length]
    if fill is not None:
        longer[len(array) :] = fill
    return longer


class Numbering:
    """Keys numbered from 0 in the order in which they are entered.

    slots, rows: the hash table (module docstring), with room for `more` numbers beside each key.
    count: the number of keys; compiled code that enters keys raises it, after `reserve`.
    """

    def __init__(self, more: int = 0, room: int = 1 << 12) -> None:
        self.count, self.rows = 0, np.empty((0, 1 + more), np.uint64)
        self.reserve(room)

    def reserve(self, room: int) -> None:
        """Make room for this many keys."""
        if room > len(self.rows):
            self.rows = grown(self.rows, room)
            self.slots = np.full(1 << (2 * len(self.rows) - 1).bit_length(), -1, np.int32)
            rehash(self.slots, self.rows, self.count)

    def keys_at(self, numbers: NDArray[np.integer[Any]]) -> Keys:
        return np.ascontiguousarray(self.rows[numbers, 0])

    def enter(self, keys: Keys) -> NDArray[np.int32]:
        """Return the number of each key (m,), entering new ones."""
        self.reserve(self.count + len(keys))
        numbers, contiguous = np.empty(len(keys), np.int32), np.ascontiguousarray(keys)
        self.count = int(enter(self.slots, self.rows, self.count, contiguous, numbers))
        return numbers

    def look_up(self, keys: Keys) -> NDArray[np.int32]:
        """Return the number of each key (m,); -1 if it was not entered."""
        numbers = np.empty(len(keys), np.int32)
        look_up(self.slots, self.rows, np.ascontiguousarray(keys), numbers)
        return numbers


CLASSES = 6
"""Bits of `scatter`: 64 classes."""


@dataclass(frozen=True)
class LevelCode:
    """Functions of keys as words (module docstring)."""

    table: NDArray[np.uint64]
    """(8, 256), the summand of each byte of a key; or, for mixed radices, (columns + 1, 3): of each
    column from the last on its room, its factor, and whether it is a set; then a constant."""
    guards: int  # the bits above the lanes
    lanes: tuple[tuple[int, int], ...]  # (lowest bit, bits) of each, the first one highest

    @property
    def most(self) -> Ints:
        """The greatest values (functions,) that the lanes can hold."""
        return np.array([(1 << bits) - 1 for _, bits in self.lanes], np.int64)

    def word(self, values: Ints) -> int:
        """Return the word of values (functions,), as `values` returns them."""
        lanes = zip(values.tolist(), self.lanes, strict=True)
        return sum(value << low for value, (low, _) in lanes)

    def values(self, words: NDArray[np.uint64]) -> Ints:
        """Return the functions' values minus their minima, (n, functions), from words (n,)."""
        columns = [(words >> np.uint64(low)) & np.uint64((1 << bits) - 1)
                   for low, bits in self.lanes]  # fmt: skip
        shape = len(self.lanes), len(words)
        return np.array(columns, np.int64).reshape(shape).T

    def of(self, keys: Keys) -> NDArray[np.uint64]:
        """Return the words (n,) of keys (n,)."""
        words: NDArray[np.uint64] = words_of(self.table, np.ascontiguousarray(keys))
        return words


def words(fields: Fields, functions: Sequence[Factors]) -> LevelCode:
    """Return functions of the fields as words.

    Raises OptionError if they do not fit in 64 bits or name an unknown column.
    """
    columns, greatest, sets = fields.columns, fields.most.tolist(), fields.sets
    table, low, guards = _table(fields, sets), 0, 0
    lanes = []
    for function in reversed(functions):
        factors = [0] * len(columns)  # Python's integers, to detect overflow
        for name, factor in function.items():
            if name not in columns:
                raise OptionError(f"level: unknown column '{name}'; expected {', '.join(columns)}")
            factors[columns.index(name)] = factor if greatest[columns.index(name)] else 0
        counts = [bound.bit_length() if is_set else bound
                  for bound, is_set in zip(greatest, sets, strict=True)]  # fmt: skip
        size = max(1, sum(abs(f) * n for f, n in zip(factors, counts, strict=True)).bit_length())
        if low + size + 1 > 64:
            raise OptionError("level: its functions have too many values for one word of 64 bits")
        _add(table, fields, sets, np.array(factors, np.int64), low)
        lanes.append((low, size))
        guards |= 1 << (low + size)
        low += size + 1
    return LevelCode(table, guards, tuple(reversed(lanes)))


def _table(fields: Fields, sets: NDArray[np.bool_]) -> NDArray[np.uint64]:
    if (fields.strides[1] >= 0).all():
        return np.zeros((8, 256), np.uint64)
    table = np.zeros((len(sets) + 1, 3), np.uint64)
    table[:-1, 0], table[:-1, 2] = -fields.strides[1, ::-1], sets[::-1]
    return table


def _add(
    table: NDArray[np.uint64], fields: Fields, sets: NDArray[np.bool_], factors: Ints, low: int
) -> None:
    """Add a function, with a factor for each column, to a table; its lane begins at bit `low`."""
    if table.shape[1] != 256:
        counts = np.where(sets, [m.bit_length() for m in fields.most.tolist()], fields.most)
        table[:-1, 1] += factors[::-1].astype(np.uint64) << np.uint64(low)
        table[-1, 1] += np.uint64(-(np.minimum(factors, 0) * counts).sum()) << np.uint64(low)
        return
    bit_sums, end = np.zeros(64, np.int64), int(fields.strides[1].sum())
    for factor, width, is_set in zip(factors, fields.strides[1], sets, strict=True):
        end -= int(width)
        for bit in range(width):
            bit_sums[end + bit] = factor if is_set else factor << bit
    table += _sums(bit_sums) << np.uint64(low)


def _sums(adds: Ints) -> NDArray[np.uint64]:
    """Return each byte's summand (8, 256), from each bit's (64,), shifted to be at least 0."""
    bits = (np.arange(256)[:, None] >> np.arange(8)) & 1
    eights = adds.reshape(8, 8)
    sums = bits @ eights.T - np.minimum(eights, 0).sum(axis=1)
    return np.ascontiguousarray(sums.T.astype(np.uint64))


def scatter() -> NDArray[np.uint64]:
    """Return the table of a hash, sums of fixed random numbers for a key's bits; the top `CLASSES`
    bits of a word are a key's class."""
    return _sums(np.random.default_rng(1).integers(0, 1 << 62, 64))


@njit(_u(u2, _u))
def _word_by_number(table, key):
    last = table.shape[0] - 1
    word = table[last, 1]
    for i in range(last):
        quotient = key // table[i, 0]
        number = key - quotient * table[i, 0]
        key = quotient
        if table[i, 2]:
            number = np.uint64(bits_in(number))
        word += number * table[i, 1]
    return word


@inlined
def word_of(table, key):
    if table.shape[1] != 256:
        return _word_by_number(table, key)
    eight = np.uint64(8)
    low = np.uint64(255)
    word = table[0, key & low]
    for byte in range(1, 8):
        key >>= eight
        word += table[byte, key & low]
    return word


@njit(u1(u2, u1))
def words_of(table, keys):
    words = np.empty(keys.size, np.uint64)
    for i in range(keys.size):
        words[i] = word_of(table, keys[i])
    return words


@inlined
def rises(parent, child, guards):
    """Return whether any function is greater in the child's word than in the parent's."""
    return ((parent | guards) - child) & guards != guards
