"""Explore the states below some roots level by level, to answer above a table and to count."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.compiled import compiling_seconds
from luckbase.solver.errors import SearchLimitError
from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.game import Game
from luckbase.solver.search.expand import expand, keys_of_roots
from luckbase.solver.search.keys import Keys, Numbering, pack_all, unpack_all
from luckbase.solver.sentences import many, option

INNER, OVER, KNOWN = 0, 1, 2  # kinds of a state: to expand, terminal, known (not expanded)
PIECE_EDGES = 1 << 20
"""The most edges that are expanded at once."""
KnownStates = Callable[[Ints], NDArray[np.bool_]]  # states (n, fields) -> which of them are known


class Explorer:
    """The levels below canonical roots (m, fields); each call of `deeper` adds one.

    States first[d] .. first[d + 1] - 1 are d edges from the roots; `known` ones are not expanded.
    """

    def __init__(
        self, game: Game, roots: Ints, known: KnownStates | None = None, max_states: int = 1 << 30
    ) -> None:
        self.game, self.known, self.max_states = game, known, max_states
        self._numbering = Numbering()
        self._numbering.enter(keys_of_roots(game, roots))
        self.first, self._kinds = [0, self._numbering.count], list[NDArray[np.uint8]]()

    @property
    def keys(self) -> Keys:
        """uint64 (n,): the states met so far, by level; a copy."""
        return self._numbering.keys_at(np.arange(self.first[-1]))

    @property
    def kinds(self) -> NDArray[np.uint8]:
        """uint8: INNER, OVER or KNOWN, for each state of the expanded levels."""
        return np.concatenate(self._kinds)

    def deeper(self) -> bool:
        """Expand the last level; return False if it has no new children. Raises SearchLimitError,
        and GameError for a state whose edges break the rules."""
        game, numbering, (start, stop) = self.game, self._numbering, self.first[-2:]
        kinds, piece = np.zeros(stop - start, np.uint8), max(1, PIECE_EDGES // game.max_edges)
        for at in range(start, stop, piece):
            states = unpack_all(game.strides, numbering.rows[at : min(stop, at + piece), 0].copy())
            known = np.zeros(len(states), bool) if self.known is None else self.known(states)
            edges, inner = expand(game, states[~known]), np.flatnonzero(~known) + at - start
            kinds[at - start :][: len(states)][known] = KNOWN
            kinds[inner[edges.terminal]] = OVER
            numbering.enter(pack_all(game.strides, edges.below))
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
    """Return an `Explorer` of all levels below canonical roots (m, fields). on_level: called with
    the number of states met and of levels."""
    explorer = Explorer(game, roots, known, max_states)
    while explorer.deeper():
        if on_level is not None:
            on_level(explorer.first[-1], len(explorer.first) - 1)
    return explorer


COUNTED_STATES, COUNTED_SECONDS = 3_000_000, 10.0
"""The most states, and the most seconds without compiling, that a plan spends on counting."""


@dataclass(frozen=True)
class Count:
    states: int  # that a table stores; if not `is_exact`, those met so far
    is_exact: bool
    keys: Keys  # (k,), the states that were met


def count_below(game: Game, roots: Ints) -> Count:
    """Count the states at and below canonical roots (m, fields), up to the limits of a plan.

    Raises the errors of `Explorer` except SearchLimitError.
    """
    started = time.perf_counter() - compiling_seconds()
    explorer = Explorer(game, roots, max_states=COUNTED_STATES)
    try:
        while explorer.deeper():
            if time.perf_counter() - compiling_seconds() - started > COUNTED_SECONDS:
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
