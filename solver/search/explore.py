"""Which states lie below some roots, level by level, and about how many: nothing is solved.

Level d holds the states whose shortest way from a root has d edges; each state is met once, merged
by key.

**Estimate.** Up to `EXACT_STATES` states are counted. A game may know a formula
(`SearchHints.states_below`). Else the levels counted are gone on with. How many states a level has,
as a function of its depth, has the shape of a bell: from one to the next its logarithm rises by
less and less, then falls. What a rise is less than the one before it (the bend), over the last
`RISES` levels, says how the bell goes on. Two levels beside one another are looked at as one: in
many games rolls and choices take turns.

The bend itself grows less on the way, so as it is it gives too few states, and `BEND` of it is
taken. Measured on searches of Press Your Luck (8 to 13 % of 3 to 34 million states counted, in
units of 250, 500 and 1000): 0.4 to 2.1 times as many; Pig, Skunk and Pig by rounds: 0.3 to 2.7.
There are never more than the bounds of the fields leave room for.

Where less than `FAR` of the states was counted no more is said than what there are **more than**:
with `STEEP` times the bend, and no more levels than nine plays at random in ten still take. On all
of these, cut at any level with `TELLING` states before it: 0.02 to 1.3 times as many as there are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numba import types
from numpy.typing import NDArray

from luckbase.solver.errors import SearchLimitError
from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.capabilities import hints
from luckbase.solver.game.faults import fault_at
from luckbase.solver.game.game import Game
from luckbase.solver.game.rules import NUMBERS_TYPE, TERMINAL, TRANSITION
from luckbase.solver.njit import njit
from luckbase.solver.search import keys as hashing
from luckbase.solver.search.expand import (
    BROKEN,
    ROOM_TYPE,
    expand,
    expand_one,
    expanding,
    keys_of_roots,
    room_of,
)
from luckbase.solver.search.keys import (
    Keys,
    find_from,
    fits,
    home,
    pack,
    pack_all,
    unpack,
    unpack_all,
)

_i1, _n1, _u2 = types.int64[::1], types.int32[::1], types.uint64[:, ::1]
_pair, _span = types.UniTuple(types.int64, 2), types.UniTuple(types.int64, 3)
INNER, OVER, KNOWN = 0, 1, 2
"""Kinds of a state met: not over, over, known elsewhere and so not expanded."""
PIECE = 1 << 16
"""States that `known` is asked of at once."""


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


class Explorer:
    """The levels below canonical roots (m, fields), one more with each `deeper`: states of level d
    stand from first[d] to first[d + 1]. known: of states (k, fields), which another table holds:
    they are not expanded.

    Raises StateError for a root that has no key.
    """

    def __init__(
        self,
        game: Game,
        roots: Ints,
        *,
        known: Callable[[Ints], NDArray[np.bool_]] | None = None,
        max_states: int = 1 << 30,
    ) -> None:
        packed = keys_of_roots(game, roots)
        self.game, self.known, self.max_states = game, known, max_states
        room = 1 << 12
        while room < 2 * len(roots) + game.max_edges:
            room *= 2
        self._keys, self._kinds = np.empty((room, 1), np.uint64), np.zeros(room, np.uint8)
        self._slots = np.full(2 * room, -1, np.int32)
        count = hashing.enter(self._slots, self._keys, 0, packed, np.empty(len(packed), np.int32))
        self._room = room_of(game)
        self.first = [0, int(count)]
        self._mark_known(0, self.first[1])

    @property
    def keys(self) -> Keys:
        """uint64 (n,): the states met so far, by level; a copy."""
        return self._keys[: self.first[-1], 0].copy()

    @property
    def kinds(self) -> NDArray[np.uint8]:
        """uint8 (n,): INNER, OVER or KNOWN; which of the last level are over is not known yet."""
        return self._kinds[: self.first[-1]]

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
        self._mark_known(stop, count)
        return True

    def _mark_known(self, start: int, stop: int) -> None:
        if self.known is None:
            return
        for part in range(start, stop, PIECE):
            at = slice(part, min(stop, part + PIECE))
            keys = np.ascontiguousarray(self._keys[at, 0])
            self._kinds[at][self.known(unpack_all(self.game.bits, keys))] = KNOWN

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
    known: Callable[[Ints], NDArray[np.bool_]] | None = None,
    max_states: int = 1 << 30,
    on_level: Callable[[int, int], None] | None = None,
) -> Explorer:
    """All levels below canonical roots (m, fields), as an `Explorer` at its end.

    on_level: told how many states were met, in how many levels. Raises SearchLimitError
    beyond `max_states`, StateError for a root that has no key.
    """
    explorer = Explorer(game, roots, known=known, max_states=max_states)
    while explorer.deeper():
        if on_level is not None:
            on_level(explorer.first[-1], len(explorer.first) - 1)
    return explorer


EXACT_STATES = 3_000_000
"""States up to which they are counted: two seconds."""
EXACT_EDGES = 60_000_000
"""Edges that they may have by `Game.max_edges`: no clock decides what is found."""
RISES = 4
"""Levels over which the bend is taken."""
BEND, STEEP, LEAST_BEND = 0.5, 2.0, 1e-3
"""Of the bend, so much is taken for the estimate, and for what there are more than; the least."""
TELLING, MARGIN = 50_000, 2
"""States that a search has met before they tell that there are far too many: so many times."""
FAR = 1 / 25
"""Where less of the states than this was counted, it is only said what there are more than."""
PLAYS, LONGEST, PLAY_EDGES = 512, 400, 1 << 16
"""Plays at random, the steps of each, and the edges that are looked at by a step, at most."""


@dataclass(frozen=True)
class Estimate:
    """About how many states lie below some roots, those that are over and the roots included.

    states: how many. how: "counted", "formula" or "estimated". at_least: there are more than so
    many, maybe many times as many. keys: uint64 (k,), some of them, of all levels.
    """

    states: int
    how: str
    at_least: bool
    keys: Keys

    @property
    def exact(self) -> bool:
        """Whether they were counted."""
        return self.how == "counted"


def estimate(game: Game, roots: Ints) -> Estimate:
    """About how many states lie below canonical roots (m, fields); the same for the same roots.

    Raises StateError for a root that has no key, GameError for a state whose edges break the rules.
    """
    roots = np.unique(np.asarray(roots, np.int64).reshape(-1, game.field_count), axis=0)
    limit = max(1, min(EXACT_STATES, EXACT_EDGES // game.max_edges))
    explorer = Explorer(game, roots, max_states=limit)
    try:
        while explorer.deeper():
            pass
    except SearchLimitError:
        keys, steps = plays(game, roots)
    else:
        keys = explorer.keys
        return Estimate(len(keys), "counted", False, keys)
    keys = np.union1d(keys, explorer.keys)
    formula = hints(game).states_below
    if formula is not None:
        below = max(formula(root) for root in roots)
        return Estimate(max(len(keys), round(below)), "formula", False, keys)
    sizes = np.diff(explorer.first).tolist()
    least, most = game.fields.bounds
    room = float(np.prod(most - least + 1.0))
    about = min(_bell(sizes, BEND, LONGEST), room)
    is_far = FAR * about > explorer.first[-1]
    states = _more_than(sizes, _nearest(steps)) if is_far else round(about)
    return Estimate(max(len(keys), limit, states), "estimated", is_far, keys)


@dataclass(frozen=True)
class FarTooMany:
    """Tells, level by level, a search from a root (fields,) that can meet `most` states that there
    are far more. known: of states (n, fields), which it does not expand."""

    game: Game
    root: Ints
    most: int
    known: Callable[[Ints], NDArray[np.bool_]]

    def __call__(self, sizes: Sequence[int]) -> int:
        """How many states it meets at the least, having met so many of each level, if that is more
        than `MARGIN` times `most`; else, or where it can not be told, 0."""
        if sum(sizes) < TELLING or _more_than(sizes, LONGEST) <= MARGIN * self.most:
            return 0
        below = _more_than(sizes, self._levels)
        return below if below > MARGIN * self.most else 0

    @cached_property
    def _levels(self) -> int:  # once: the plays are the same at every level
        return _nearest(plays(self.game, self.root.reshape(1, -1), self.known)[1])


def _nearest(steps: Ints) -> int:
    """How many steps nine plays in ten take."""
    return int(np.quantile(steps, 0.1))


def _more_than(sizes: Sequence[int], levels: int) -> int:
    """How many states there are at the least in so many levels, if these are the first ones."""
    return int(min(_bell(sizes, STEEP, levels - len(sizes) + 1), 1e18))


def _bell(sizes: Sequence[int], share: float, further: int) -> float:
    """How many states there are if so many levels follow on these at most, and a share of the bend
    goes on."""
    pairs = np.convolve(sizes, [0.5, 0.5], "valid")
    rises = np.diff(np.log(pairs))
    if len(rises) <= RISES:
        return float("inf") if share < 1.0 else float(sum(sizes))
    bend = share * max((rises[-1 - RISES] - rises[-1]) / RISES, LEAST_BEND)
    after = np.arange(1, max(further, 0) + 1)
    with np.errstate(over="ignore"):
        found = pairs[-1] * np.exp(rises[-1] * after - bend * after * (after + 1) / 2)
    return float(sum(sizes) + found.sum())


def plays(
    game: Game, roots: Ints, known: Callable[[Ints], NDArray[np.bool_]] | None = None
) -> tuple[Keys, Ints]:
    """Plays at random from canonical roots (m, fields), any edge as likely as another: the keys
    (k,) of the states on the way, and how many steps each play takes until it is over, or comes to
    a state (of n, fields) that is `known`."""
    rng = np.random.default_rng(1)
    count = min(PLAYS, max(16, PLAY_EDGES // game.max_edges))
    states, met, ends = roots[rng.integers(0, len(roots), count)], [], [0] * (LONGEST + 1)
    for step in range(LONGEST):
        met.append(pack_all(game.bits, np.ascontiguousarray(states)))
        edges = expand(game, states)
        taken = edges.first[:-1] + np.floor(rng.random(len(states)) * np.diff(edges.first))
        children = edges.children[taken.astype(np.int64)]
        ended = edges.terminal | ~fits(game.bits, children)
        if known is not None:
            ended |= known(states)
        ends[step] = int(ended.sum())
        states = children[~ended]
        if not len(states):
            break
    ends[LONGEST] = len(states)
    return np.unique(np.concatenate(met)), np.repeat(np.arange(LONGEST + 1), ends)
