"""Which states lie below some roots, level by level: nothing is solved.

Level d holds the states whose shortest way from a root has d edges; each state is met once, merged
by key.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numba import types
from numpy.typing import NDArray

from luckbase.solver.errors import SearchLimitError, StateError
from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.faults import fault_at
from luckbase.solver.game.game import Game
from luckbase.solver.game.transition import NUMBERS_TYPE, TERMINAL, TRANSITION
from luckbase.solver.njit import njit
from luckbase.solver.search import keys as hashing
from luckbase.solver.search.expansion import (
    BROKEN,
    ROOM_TYPE,
    expand_one,
    expanding,
    room_of,
)
from luckbase.solver.search.keys import Keys, find_from, fits, home, pack, unpack, unpack_all

_i1, _n1, _u2 = types.int64[::1], types.int32[::1], types.uint64[:, ::1]
_pair, _span = types.UniTuple(types.int64, 2), types.UniTuple(types.int64, 3)

INNER, OVER, HELD = 0, 1, 2
"""Kinds of a state met: not over, over, held elsewhere and so not expanded."""
PIECE = 1 << 16
"""States that `held` is asked of at once."""


@njit(
    _pair(TRANSITION, NUMBERS_TYPE, ROOM_TYPE, _i1, _span, _n1, _u2, types.uint8[::1]),
    cache=True, nogil=True,
)  # fmt: skip
def _expand_level(transition, board, room, bits, span, slots, keys, kinds):
    """Enter the children of states start .. stop - 1, `span` being (start, stop, states met);
    returns (next to expand, states met).

    Stops early where there may not be room for one more state's children. Where edges
    break the rules the first is BROKEN, the state in room.at.
    """
    into = room.edges
    below, rewards, about = into.children, into.rewards, into.about
    most, mask = below.shape[0], slots.size - 1
    state = np.empty(bits.size, np.int64)
    i, stop, count = span
    while i < stop and count + most <= keys.shape[0]:
        if kinds[i] == INNER:
            unpack(bits, keys[i, 0], state)
            n = expand_one(transition, board, state, into, room)
            if n < 0:
                return BROKEN, count
            if about[0] == TERMINAL:
                kinds[i] = OVER
                rewards[0] = 0.0
            for k in range(n):
                key = pack(bits, below[k])
                slot = find_from(slots, keys, key, home(key, mask))
                if slots[slot] < 0:
                    slots[slot] = count
                    keys[count, 0] = key
                    kinds[count] = INNER
                    count += 1
        i += 1
    return i, count


@dataclass(frozen=True)
class Levels:
    """The states met: keys uint64 (n,) by level, level d from first[d] to first[d + 1].

    kinds: uint8 (n,), INNER, OVER or HELD. A level that is not expanded
    yet does not know which of its states are over.
    """

    keys: Keys
    first: tuple[int, ...]
    kinds: NDArray[np.uint8]

    @property
    def depth(self) -> int:
        """The number of the last level."""
        return len(self.first) - 2

    def level(self, d: int) -> slice:
        """Where level d stands in `keys`."""
        return slice(self.first[d], self.first[d + 1])


class Explorer:
    """The levels below some roots, one more with each `deeper`.

    held: of states (k, fields), which another table holds: they are not expanded.

    Raises StateError for a root that has no key.
    """

    def __init__(
        self,
        game: Game,
        roots: Ints,
        *,
        held: Callable[[Ints], NDArray[np.bool_]] | None = None,
        max_states: int = 1 << 30,
    ) -> None:
        wrong = ~fits(game.bits, roots)
        if wrong.any():
            raise StateError(f"{game.describe(roots[wrong][0])} has numbers too large to search")
        self.game, self.held, self.max_states = game, held, max_states
        room = 1 << 12
        while room < 2 * len(roots) + game.max_edges:
            room *= 2
        self._keys, self._kinds = np.empty((room, 1), np.uint64), np.zeros(room, np.uint8)
        self._slots = np.full(2 * room, -1, np.int32)
        packed = hashing.pack_all(game.bits, np.ascontiguousarray(roots))
        count = hashing.enter(self._slots, self._keys, 0, packed, np.empty(len(packed), np.int32))
        self._room = room_of(game)
        self.first = [0, int(count)]
        self._ask(0, self.first[1])

    @property
    def levels(self) -> Levels:
        """What was met so far."""
        n = self.first[-1]
        return Levels(self._keys[:n, 0].copy(), tuple(self.first), self._kinds[:n].copy())

    def deeper(self) -> bool:
        """Expand the last level; False where nothing new lies below it.

        Raises SearchLimitError beyond `max_states`, GameError for a state whose edges break the
        rules.
        """
        game, (start, stop) = self.game, self.first[-2:]
        count = stop
        while start < stop:
            with expanding(game, self._room):
                start, count = _expand_level(
                    game.transition, game.numbers, self._room, game.bits, (start, stop, count),
                    self._slots, self._keys, self._kinds,
                )  # fmt: skip
            if start < 0:
                raise fault_at(game, self._room.at)
            if count > self.max_states:
                raise SearchLimitError(
                    f"the search has met {count:,} states in {len(self.first) - 1} levels and is "
                    f"not at its end; the limit is {self.max_states:,}"
                )
            if count + game.max_edges > len(self._keys):
                self._grow(count)
        if count == stop:
            return False
        self.first.append(count)
        self._ask(stop, count)
        return True

    def _ask(self, start: int, stop: int) -> None:
        if self.held is None:
            return
        for part in range(start, stop, PIECE):
            at = slice(part, min(stop, part + PIECE))
            keys = np.ascontiguousarray(self._keys[at, 0])
            self._kinds[at][self.held(unpack_all(self.game.bits, keys))] = HELD

    def _grow(self, count: int) -> None:
        room = 2 * len(self._keys)
        keys, kinds = np.empty((room, 1), np.uint64), np.zeros(room, np.uint8)
        keys[:count], kinds[:count] = self._keys[:count], self._kinds[:count]
        self._keys, self._kinds = keys, kinds
        self._slots = np.full(2 * room, -1, np.int32)
        hashing.rehash(self._slots, self._keys, count)


def explore(
    game: Game,
    roots: Ints,
    *,
    held: Callable[[Ints], NDArray[np.bool_]] | None = None,
    max_states: int = 1 << 30,
    on_level: Callable[[int, int], None] | None = None,
) -> Levels:
    """The levels below canonical roots (m, fields), to the end.

    on_level: told how many states were met, in how many levels. Raises SearchLimitError
    beyond `max_states`, StateError for a root that has no key.
    """
    explorer = Explorer(game, roots, held=held, max_states=max_states)
    while explorer.deeper():
        if on_level is not None:
            on_level(explorer.first[-1], len(explorer.first) - 1)
    return explorer.levels
