"""Explore the states below some roots level by level, to answer above a table and to count."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.compiled import njit, types
from luckbase.solver.errors import SearchLimitError
from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.game import Game
from luckbase.solver.game.rules import NUMBERS_TYPE, TERMINAL, TRANSITION
from luckbase.solver.search import expand as expansion
from luckbase.solver.search import keys as hashing
from luckbase.solver.search.keys import Keys, unpack_all
from luckbase.solver.sentences import many, option

INNER, OVER, KNOWN = 0, 1, 2  # kinds of a state: to expand, terminal, known (not expanded)
PIECE = 1 << 16  # states passed to `known` at once
KnownStates = Callable[[Ints], NDArray[np.bool_]]  # states (n, fields) -> which of them are known
_i, _span = types.int64, types.UniTuple(types.int64, 3)
_TYPES = TRANSITION, NUMBERS_TYPE, expansion.ROOM_TYPE, _i[:, ::1], _span, hashing.n1, hashing.u2


@njit(types.UniTuple(_i, 2)(*_TYPES, types.uint8[::1]))
def _expand_level(transition, board, room, strides, span, slots, keys, kinds):
    """Expand a level on, and enter the children.

    span: (i, stop, states met); states i .. stop - 1 are still to be expanded.
    kinds: of the states of the level, which ends at `stop`.

    Returns (next to expand, states met). It stops early if there may be no room for one more
    state's children. If edges break the rules, the first is BROKEN and the state is in room.at.
    """
    edges = room.edges
    below, rewards, about = edges.children, edges.rewards, edges.about
    max_edges, mask = below.shape[0], slots.size - 1
    state = np.empty(strides.shape[1], np.int64)
    i, stop, count = span
    first = stop - kinds.size
    while i < stop and count + max_edges <= keys.shape[0]:
        if kinds[i - first] == INNER:
            hashing.unpack(strides, keys[i, 0], state)
            n = expansion.expand_one(transition, board, state, edges, room)
            if n < 0:
                return expansion.BROKEN, count
            if about[0] == TERMINAL:
                kinds[i - first] = OVER
                rewards[0] = 0.0
            for k in range(n):
                key = hashing.pack_row(strides, below, k)
                hashed = hashing.hash_of(key)
                slot = hashing.find_from(slots, keys, key, hashed, hashed & mask)
                if slots[slot] < 0:
                    slots[slot] = hashed & ~(mask >> 1) | count
                    keys[count, 0] = key
                    count += 1
        i += 1
    return i, count


class Explorer:
    """The levels below canonical roots (m, fields); each call of `deeper` adds one.

    States first[d] .. first[d + 1] - 1 are those whose shortest path from a root has d edges.
    States that are `known` are not expanded. Raises StateError for a root that has no key.
    """

    def __init__(
        self, game: Game, roots: Ints, known: KnownStates | None = None, max_states: int = 1 << 30
    ) -> None:
        self.game, self.known, self.max_states = game, known, max_states
        self._numbering, self._room = hashing.Numbering(), expansion.room_of(game)
        self._numbering.enter(expansion.keys_of_roots(game, roots))
        self.first, self._kinds = [0, self._numbering.count], list[NDArray[np.uint8]]()

    @property
    def keys(self) -> Keys:
        """uint64 (n,): the states met so far, by level; a copy."""
        return self._numbering.keys[: self.first[-1]]

    @property
    def kinds(self) -> NDArray[np.uint8]:
        """uint8: INNER, OVER or KNOWN, for each state of the expanded levels."""
        return np.concatenate(self._kinds)

    def deeper(self) -> bool:
        """Expand the last level; return False if it has no new children.

        Raises SearchLimitError beyond `max_states`, GameError for a state whose edges break the
        rules.
        """
        game, numbering, (start, stop) = self.game, self._numbering, self.first[-2:]
        kinds = np.zeros(stop - start, np.uint8)
        for at in range(start, stop, PIECE):
            if self.known is not None:
                keys = np.ascontiguousarray(numbering.rows[at : min(stop, at + PIECE), 0])
                kinds[at - start :][: len(keys)][self.known(unpack_all(game.strides, keys))] = KNOWN
        while start < stop:
            numbering.reserve(numbering.count + game.max_edges)
            with expansion.expanding(game, self._room):
                start, numbering.count = _expand_level(
                    game.transition, game.numbers, self._room, game.strides,
                    (start, stop, numbering.count), numbering.slots, numbering.rows, kinds,
                )  # fmt: skip
            if start < 0:
                raise expansion.refused(game, self._room)
            if numbering.count > self.max_states:
                raise SearchLimitError(
                    f"the search has found {many(numbering.count, 'state')} in "
                    f"{many(len(self.first) - 1, 'level')} "
                    f"and is not finished; the limit is {self.max_states:,} "
                    f"({option('max_states')})"
                )
        self._kinds.append(kinds)
        if numbering.count > stop:
            self.first.append(numbering.count)
        return numbering.count > stop


def explore(
    game: Game, roots: Ints, *, known: KnownStates | None = None, max_states: int = 1 << 30,
    on_level: Callable[[int, int], None] | None = None,
) -> Explorer:  # fmt: skip
    """Return an `Explorer` of all levels below canonical roots (m, fields).

    on_level: called with the number of states met and of levels. Raises the errors of `Explorer`.
    """
    explorer = Explorer(game, roots, known, max_states)
    while explorer.deeper():
        if on_level is not None:
            on_level(explorer.first[-1], len(explorer.first) - 1)
    return explorer


COUNTED_STATES, COUNTED_SECONDS = 3_000_000, 10.0
"""The most states, and the most seconds, that a plan spends on counting."""


@dataclass(frozen=True)
class Count:
    states: int
    """States that a table stores; if not `is_exact`, those met so far."""
    is_exact: bool
    """Whether all states were counted."""
    keys: Keys
    """uint64 (k,): the states that were met."""


def count_below(game: Game, roots: Ints) -> Count:
    """Count the states at and below canonical roots (m, fields), up to the limits of a plan.

    Raises the errors of `Explorer` except SearchLimitError.
    """
    started = time.perf_counter()
    explorer = Explorer(game, roots, max_states=COUNTED_STATES)
    try:
        while explorer.deeper():
            if time.perf_counter() - started > COUNTED_SECONDS:
                return Count(_stored(game, explorer.keys), False, explorer.keys)
    except SearchLimitError:
        met = _stored(game, explorer.keys) if game.turn.size else COUNTED_STATES
        return Count(met, False, explorer.keys)
    return Count(_stored(game, explorer.keys[explorer.kinds != OVER]), True, explorer.keys)


def _stored(game: Game, keys: Keys) -> int:
    """Return how many of these states a table stores: those between turns if the game has turns."""
    if not game.turn.size:
        return len(keys)
    return int(np.count_nonzero(~game.within_turn(unpack_all(game.strides, keys))))
