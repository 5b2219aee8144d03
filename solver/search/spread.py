"""How the states of a stage lie before they are found: about how many, and where they can be cut.

What is asked of a stage says little of it: of those who have just lost all it asks for one value of
a score, and below these lie all values. So the stage is gone through in **cells**: what the columns
say that its functions `inside` do not look at (the skeleton), and a range of each function's
values. Of each cell one state is expanded, the first that was met; its children meet others. A
value at which a function stood at the roots, or stands where all is 0, is a cell of its own: nobody
has touched it yet, and it is one value, not a range of them.

A cell has a share of the places that its ranges leave room for: of cells that are asked for, as
many as are asked for; of others, which are met in more ways, the fourth root of that share.
Measured on the 420 larger stages of Press Your Luck below two roots (81 million and 10^9 states):
.5 to 1.8 times what was found; the growth of the level above says .2 to 3.7 times.

The cells are cut along a grid, the same bounds all over: then boxes wait for those beside them
only. Boxes cut one by one, as evenly as it goes, wait for nearly all that come before
(`python -m tests.bench replay`).

Source: one state for each novel combination is the search of Lipovetzky and Geffner, Width and
Serialization of Classical Planning Problems, ECAI 2012; see also `solver.search.estimate`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.search.bellman import expand
from luckbase.solver.search.keys import Keys, pack_all, unpack_all
from luckbase.solver.search.level_words import columns_of
from luckbase.solver.search.stage import NO_KEYS, Box, Stages

Knows = Callable[[Keys], NDArray[np.bool_]]
"""Of keys (n,): which of them are known."""
RANGES = 6
"""Ranges that the values asked for are put into."""
MOST_CELLS = 1 << 13
"""Cells of a stage that are looked at, about."""
MOST_ROOTS = 3
"""Where the roots have more values of a function, none of these is a cell of its own."""
MOST_ROOM = float(1 << 40)
"""Places of a cell, at most: whole numbers can hold the sum of all."""
_MIXERS = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)


@dataclass(frozen=True)
class Spread:
    """The cells of a stage. low, high: int64 (cells, functions), the values of each, from the low
    to before the high one. states: float64 (cells,), how many each has, about."""

    low: Ints
    high: Ints
    states: Floats

    @property
    def total(self) -> int:
        """About how many states there are."""
        return round(_sum(self.states))


def among(known: Keys) -> Knows:
    """What tells which of some keys are among these, which ascend."""

    def found(keys: Keys) -> NDArray[np.bool_]:
        if not len(known):
            return np.zeros(len(keys), bool)
        place = np.minimum(np.searchsorted(known, keys), len(known) - 1)
        same: NDArray[np.bool_] = known[place] == keys
        return same

    return found


def nothing(stage: int) -> Knows:
    """Of a stage of which nothing is known."""
    return among(NO_KEYS)


class Looks:
    """Looks at stages of one search. roots: the keys that it began with. known: of a stage, what
    tells which of some states, by key, it does not expand."""

    def __init__(
        self, stages: Stages, roots: Keys, known: Callable[[int], Knows] = nothing
    ) -> None:
        self.stages, self._known = stages, known
        functions, fields = stages.level.inside, stages.game.fields
        self._skeleton = ~np.uint64(columns_of(fields, functions))
        nothing = self._values(np.zeros(1, np.uint64))
        at_roots = [np.unique(column) for column in self._values(roots).T]
        self._single = [
            np.union1d(zero, some if len(some) <= MOST_ROOTS else zero)
            for zero, some in zip(nothing.T, at_roots, strict=True)
        ]

    def _values(self, keys: Keys) -> Ints:
        """The values (n, functions) of keys (n,)."""
        return self.stages.inside.values(self.stages.inside.of(keys))

    def widths(self, keys: Keys) -> Ints:
        """How wide the ranges (functions,) are where such keys (n,), n > 0, are asked for."""
        wide: Ints = np.maximum(1, -(-np.ptp(self._values(keys), axis=0) // RANGES))
        return wide

    def at(self, stage: int, sample: Keys, each: int, widths: Ints) -> Spread:
        """How a stage lies. sample: keys (n,), n > 0, of it that are asked for, each of which
        stands for so many; widths: of the ranges."""
        cells, first = np.unique(self._cells(sample, widths), return_index=True)
        front, count = sample[first], len(cells)
        met, known = [front], self._known(stage)
        while len(front) and count < MOST_CELLS:
            children = self._children(stage, front, known)
            found, at = np.unique(self._cells(children, widths), return_index=True)
            new = ~np.isin(found, cells, assume_unique=True)
            front = children[at[new]]
            cells = np.sort(np.concatenate([cells, found[new]]))
            met.append(front)
            count += len(front)
        low, high = self._ranges(np.concatenate(met), widths)
        room = np.minimum((high - low).astype(np.float64).prod(axis=1), MOST_ROOM)
        asked = len(met[0])
        full = each * len(sample) / float(room[:asked].sum())
        share = np.full(len(room), full if full > 1 else math.sqrt(math.sqrt(full)))
        share[:asked] = full
        return Spread(low, high, room * share)

    def _children(self, stage: int, keys: Keys, known: Knows) -> Keys:
        """The children (m,) of states that are of their stage."""
        game = self.stages.game
        keys = keys[~known(keys)]
        found = expand(game, unpack_all(game.bits, np.ascontiguousarray(keys)))
        goes_on = np.repeat(~found.terminal, np.diff(found.first))
        children = pack_all(game.bits, found.children[goes_on])
        mine: Keys = children[self.stages.of(children) == np.uint64(stage)]
        return mine

    def _ranges(self, keys: Keys, widths: Ints) -> tuple[Ints, Ints]:
        """The ranges (n, functions) that keys (n,) lie in: from, and to before."""
        values = self._values(keys)
        single = np.stack(
            [np.isin(values[:, i], some) for i, some in enumerate(self._single)], axis=1
        )
        low = np.where(single, values, values // widths * widths)
        high = np.minimum(low + np.where(single, 1, widths), self.stages.inside.most + 1)
        return low, high

    def _cells(self, keys: Keys, widths: Ints) -> NDArray[np.uint64]:
        """A number (n,) for the cell of each key."""
        low, high = self._ranges(keys, widths)
        mixed: NDArray[np.uint64] = (keys & self._skeleton) * _MIXERS[0]
        for column in (2 * low + (high - low == 1)).T:
            mixed = (mixed ^ (mixed >> np.uint64(29)) ^ column.astype(np.uint64)) * _MIXERS[1]
        return mixed


def grid(stages: Stages, spread: Spread, count: int) -> list[tuple[Box, int]]:
    """A stage cut into about so many boxes, none of which leads to one before it, and how many
    states each has, about."""
    bounds: list[list[int]] = [[] for _ in range(spread.low.shape[1])]
    whole: set[int] = set()
    while np.prod([1 + len(some) for some in bounds]) < count and len(whole) < len(bounds):
        left = [lane for lane in range(len(bounds)) if lane not in whole]
        lane = min(left, key=lambda lane: len(bounds[lane]))
        finer = _bounds(spread, lane, 2 + len(bounds[lane]))
        if len(finer) > len(bounds[lane]):
            bounds[lane] = finer
        else:
            whole.add(lane)
    most = stages.inside.most.tolist()
    spans = [
        list(zip([0, *some], [*some, top + 1], strict=True))[::-1]
        for some, top in zip(bounds, most, strict=True)
    ]
    found = []
    for span in product(*spans):
        states = spread.states
        for lane, (start, stop) in enumerate(span):
            states = _inside(spread, states, lane, start, stop)
        ends = np.array(span, np.int64)
        box = Box(stages.inside.word(ends[:, 0]), stages.inside.word(ends[:, 1] - 1))
        found.append((box, round(_sum(states))))
    return found


def _bounds(spread: Spread, lane: int, parts: int) -> list[int]:
    """Values of a function that cut the states into so many parts, as evenly as it goes; fewer
    where it has not so many."""
    ends = np.unique(np.stack([spread.low[:, lane], spread.high[:, lane]])).tolist()
    before = [_sum(_inside(spread, spread.states, lane, ends[0], end)) for end in ends]
    wanted = [before[-1] * i / parts for i in range(1, parts)]
    found = {round(float(at)) for at in np.interp(wanted, before, ends)}
    return sorted(at for at in found if ends[0] < at < ends[-1])


def _inside(spread: Spread, states: Floats, lane: int, start: int, stop: int) -> Floats:
    """How many of the states (cells,) have a function's values from start to before stop, if they
    lie evenly in their cells."""
    low, high = spread.low[:, lane], spread.high[:, lane]
    common = np.maximum(0, np.minimum(high, stop) - np.maximum(low, start))
    found: Floats = states * (common / (high - low))
    return found


def _sum(states: Floats) -> float:
    """Their sum to a sixteenth, which is the same on every machine: a search may go on elsewhere,
    and is to be cut the same way."""
    return int(np.rint(16 * states).astype(np.int64).sum()) / 16
