"""Keys in runs: up to 64 keys that differ only in some low bits. There are a tenth as many runs.

`stage_kernels` meets, requests, numbers and writes states in runs. Runs are looked up and sorted
instead of keys, and stay in the processor's cache because neighbours are met together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.compiled import inlined, njit, tuple_type, types
from luckbase.solver.search.keys import NO_KEYS, Keys, bits_in, find_from, hash_of, order_of

RUN = 64
"""The most states of a run."""
_i, _n1, _u1, _u2 = types.int64, types.int32[::1], types.uint64[::1], types.uint64[:, ::1]


class Runs(NamedTuple):
    """Keys in n runs."""

    keys: Keys  # (n,), ascending, with 0 in the bits of the run
    members: Keys  # (n,), bit i is set if the key with i in the bits of the run is a member
    low: int  # the lowest bit of the run

    def only(self, members: Keys) -> Runs:
        """Return the runs with only these members (n,), without empty runs."""
        kept = members != 0
        return Runs(self.keys[kept], members[kept], self.low)

    def all_keys(self) -> Keys:
        keys: Keys = keys_in(self)
        return keys


def merged_runs(lists: Sequence[Runs]) -> Runs:
    """Return the union of at least one list of runs."""
    keys, members = (np.concatenate([runs[i] for runs in lists]) for i in (0, 1))
    order = order_of(keys)
    keys = keys[order]
    first = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])[: len(keys)])
    members = np.bitwise_or.reduceat(members[order], first) if len(first) else NO_KEYS
    return Runs(keys[first], members, lists[0].low)


class Nodes(NamedTuple):
    """The states reached, in runs. A state's number is run << run_bits | the bits of its key."""

    slots: NDArray[np.int32]  # a hash table of runs, as in `solver.search.keys`
    runs: NDArray[np.uint64]
    """(room, 4): the key with 0 in the bits of the run; which states were reached; which of these
    belong to the stage; which were expanded, later the states in earlier runs (`count_runs`)."""
    own: NDArray[np.int32]  # (room,), the numbers of the stage's states, as they were reached


RUNS_TYPE = tuple_type(Runs, _u1, _u1, _i)
NODES_TYPE = tuple_type(Nodes, _n1, _u2, _n1)


@inlined
def lowest_bit(bits):
    """Return the position of the lowest set bit of a number that is not 0; one instruction."""
    return bits_in((bits - np.uint64(1)) & ~bits)


@inlined
def bit_of(run_bits, number):
    """Return the bit of a state, by its number, in its run."""
    return np.uint64(1) << np.uint64(number & ((np.int64(1) << run_bits) - 1))


@inlined
def run_at(nodes, run, count):
    """Return the run of a key; a new one is entered as `count`, for which there must be room."""
    slots, runs, hashed = nodes.slots, nodes.runs, hash_of(run)
    slot = find_from(slots, runs, run, hashed, hashed & (slots.size - 1))
    if slots[slot] < 0:
        slots[slot] = hashed & ~((slots.size - 1) >> 1) | count
        runs[count, 0] = run
        runs[count, 1] = runs[count, 2] = runs[count, 3] = 0
    return slots[slot] & ((slots.size - 1) >> 1)


@njit(_i(_u2))
def count_runs(runs):
    """Write the number of states before each run; return the number of all."""
    count = 0
    for z in range(runs.shape[0]):
        runs[z, 3] = count
        count += bits_in(runs[z, 1])
    return count


@inlined
def rank_in(runs, z, bit):
    """Return `rank_of` the state with a bit of run z."""
    return np.int64(runs[z, 3]) + bits_in(runs[z, 1] & (bit - np.uint64(1)))


@inlined
def rank_of(runs, run_bits, number):
    """Return the rank of a state among all reached states, run by run."""
    if run_bits == 0:
        return number
    return rank_in(runs, number >> run_bits, bit_of(run_bits, number))


@njit(_n1(_u2, _i, _n1))
def ranks_of(runs, run_bits, numbers):
    """Return the ranks of states among all reached states, run by run: int32 (n,)."""
    ranks = np.empty(numbers.size, np.int32)
    for i in range(numbers.size):
        ranks[i] = rank_of(runs, run_bits, np.int64(numbers[i]))
    return ranks


@njit(_i(RUNS_TYPE, _u1, _u2, _n1, _n1, _i))
def number_runs(some, keys, runs, order, numbers, begin):
    """Write the keys of runs, ascending, and number them from `begin` on; return the next number.

    Runs with the same higher bits interleave their members.

    keys: uint64 (members,), written; or empty.
    order: int32, the row of each run in `runs` (of `Nodes`); or empty.
    numbers: int32 (reached,), by rank, written if `order` is given.
    """
    i, at, low = 0, begin, np.uint64(some.low)
    while i < some.keys.size:
        stop, any_of = i, np.uint64(0)
        above = some.keys[i] >> low
        while stop < some.keys.size and some.keys[stop] >> low == above:
            any_of |= some.members[stop]
            stop += 1
        while any_of:
            offset = np.uint64(lowest_bit(any_of))
            bit = np.uint64(1) << offset
            any_of ^= bit
            for x in range(i, stop):
                if some.members[x] & bit:
                    if keys.size:
                        keys[at - begin] = some.keys[x] | offset << low
                    if order.size:
                        numbers[rank_in(runs, order[x], bit)] = at
                    at += 1
        i = stop
    return at


@njit(_u1(RUNS_TYPE))
def keys_in(runs):
    count = 0
    for x in range(runs.members.size):
        count += bits_in(runs.members[x])
    keys, none = np.empty(count, np.uint64), np.empty(0, np.int32)
    number_runs(runs, keys, np.empty((0, 4), np.uint64), none, none, 0)
    return keys
