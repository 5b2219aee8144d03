"""Stages of a search: the states of one level of a game, expanded first and solved later.

A **stage** is closed under every cycle (`Level`). It is found from above: `find_stages` takes the
keys that higher stages need, expands them and everything below them in the stage, and returns the
keys that it needs from lower stages. It is solved from below: `sweep.Sweeping` takes the payoffs of
those keys and solves the states, children first. The search keeps all that this needs, so no state
is expanded again: each state's pattern (who acts, and the weights, actions and rewards of its
edges; most games have few patterns, or ones shared by neighbouring states) and the rows of its
children.

The steps and their order are the same as in `solver.search.game_graph`, and components are solved
by `solver.search.cycles`, so both give a state's payoffs the same bits.

**A large stage is cut** into boxes before it is searched, along a grid with the same bounds
everywhere: quantiles of the functions `inside` at the requested keys and at a sample of states
below them. On a grid, a box waits only for its neighbours. Boxes cut one by one into equal sizes
would wait for nearly all earlier boxes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.errors import OptionError
from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.game import Game
from luckbase.solver.game.rules import Level
from luckbase.solver.search import stage_kernels as kernels
from luckbase.solver.search.expand import expand
from luckbase.solver.search.keys import (
    CLASSES,
    Keys,
    LevelCode,
    merged,
    pack_all,
    scatter,
    unpack_all,
    words,
    words_of,
)
from luckbase.solver.search.runs import Runs, merged_runs
from luckbase.solver.search.stage_kernels import Order, Patterns, Place

BUDGET = 100_000
"""States between two calls of `stop`: a tenth of a second."""
EVERY = (1 << 64) - 1


@dataclass(frozen=True)
class Box:
    """A part of a level: the least and the greatest word of its functions `inside`, lane by lane;
    by default the whole level."""

    low: int = 0
    high: int = EVERY

    @property
    def whole(self) -> bool:
        return (self.low, self.high) == (0, EVERY)


WHOLE = Box()


class Stages:
    """A game's level by key: the stage of each key.

    A stage's number is its level and, in the lower 32 bits, the value of `apart`, which separates
    stages of that level.
    """

    def __init__(self, game: Game, level: Level) -> None:
        """Raises OptionError if the level names an unknown column or has too many values."""
        self.game, self.level = game, level
        self.words: LevelCode = words(game.fields, (level.falls, *level.apart))
        self.shift, bits = self.words.lanes[0]
        if self.shift > 32 or (1 << bits) // level.width >> 31:
            raise OptionError("level: its functions have too many values for a stage's number")
        self.inside, self._scatter = words(game.fields, level.inside), scatter()
        used = {name for function in level.inside for name, factor in function.items() if factor}
        self.run, self.run_low, self.run_bits, self.run_column = self._run(used)
        self.run_is_set = self.run_column >= 0 and bool(game.fields.sets[self.run_column])

    def _run(self, inside: set[str]) -> tuple[int, int, int, int]:
        """Return the bits of keys that form a run, the lowest bit, their number and their column:
        the widest that determines the position in a stage but not the stage, or -1."""
        level, room = self.level, self.game.strides[1].tolist()
        apart = {name for function in (level.falls, *level.apart) for name in function}
        columns = [
            (min(bits, 6), i) for i, (name, bits) in enumerate(zip(
                self.game.fields.columns, room, strict=True
            )) if name in inside - apart
        ]  # fmt: skip
        if level.strict or min(room) < 0 or not columns:
            return 0, 0, 0, -1
        bits, column = max(columns)
        low = sum(room[column + 1 :])
        return ((1 << bits) - 1) << low, low, bits, column

    def of(self, keys: Keys) -> NDArray[np.uint64]:
        """Return the numbers (n,) of the stages of keys (n,)."""
        words = self.words.of(keys)
        level = (words >> np.uint64(self.shift)) // np.uint64(self.level.width)
        apart = words & np.uint64((1 << self.shift) - 1)
        if self.level.strict:  # with a strict level any cut is allowed
            apart = words_of(self._scatter, np.ascontiguousarray(keys)) >> np.uint64(64 - CLASSES)
        stages: NDArray[np.uint64] = level << np.uint64(32) | apart
        return stages

    def forbidden(self, above: Keys, below: Keys) -> NDArray[np.bool_]:
        """Return whether the level forbids an edge from each key `above` to `below`: (n,)."""
        first, second = self.of(above), self.of(below)
        levels = first >> np.uint64(32), second >> np.uint64(32)
        same, guards = levels[0] == levels[1], np.uint64(self.inside.guards)
        gone = ((self.inside.of(above) | guards) - self.inside.of(below)) & guards != guards
        inside = (first != second) | gone | self.level.strict
        forbidden: NDArray[np.bool_] = (levels[1] > levels[0]) | (same & inside)
        return forbidden

    def place(self, level: int, box: Box) -> Place:
        """Return a level and a box of it, for the kernel."""
        return Place(
            np.uint64(self.run), np.uint64(self.run_low), self.run_bits, self.words.table,
            self.inside.table, np.uint64(self.shift),
            np.uint64(self.level.width), np.uint64(level), np.uint64(self.inside.guards),
            np.uint64(box.low), np.uint64(box.high), int(self.level.strict), int(not box.whole),
        )  # fmt: skip

    def runs_of(self, keys: Keys) -> Runs:
        """Return keys (n,) as runs."""
        at = (keys & np.uint64(self.run)) >> np.uint64(self.run_low)
        members = np.uint64(1) << at
        return merged_runs([Runs(keys & ~np.uint64(self.run), members, self.run_low)])

    def within(self, runs: Runs, box: Box) -> Keys:
        """Return which members of runs (n,) are in a box: uint64 (n,)."""
        if box.whole:
            return runs.members
        in_line = int(not self.run_is_set)
        members: Keys = kernels.members_within(self.place(0, box), runs, in_line)
        return members

    def boxes_of(self, keys: Keys, boxes: Sequence[Box]) -> NDArray[np.int32]:
        """Return the index of the box of each key (n,); -1 for none."""
        places = np.zeros(len(keys), np.int32)
        if len(boxes) == 1 and boxes[0].whole:
            return places
        low, high = box_ends(boxes)
        guards = np.uint64(self.inside.guards)
        kernels.boxes_of(self.inside.of(keys), low, high, guards, places)
        return places

    def around(self, keys: Keys) -> Box:
        """Return the smallest box that contains all keys (n,), n > 0."""
        if not self.level.inside:
            return Box()
        values = self.inside.values(self.inside.of(keys))
        return Box(self.inside.word(values.min(axis=0)), self.inside.word(values.max(axis=0)))

    def leads(self, above: Sequence[Box], below: Sequence[Box]) -> NDArray[np.bool_]:
        """Return whether edges inside a stage can lead from one box to another: (above, below)."""
        high, low = box_ends(above)[1], box_ends(below)[0]
        guards = np.uint64(self.inside.guards)
        possible: NDArray[np.bool_] = ((high[:, None] | guards) - low[None]) & guards == guards
        return possible

    def meeting(self, box: Box, low: Keys, high: Keys) -> NDArray[np.bool_]:
        """Return whether a box overlaps each of the boxes with these ends (n,)."""
        guards = np.uint64(self.inside.guards)
        leads = ((np.uint64(box.high) | guards) - low) & ((high | guards) - np.uint64(box.low))
        overlap: NDArray[np.bool_] = leads & guards == guards
        return overlap


def box_ends(boxes: Sequence[Box]) -> tuple[Keys, Keys]:
    """Return the low and the high ends of boxes, (n,) each."""
    low, high = ([getattr(box, end) for box in boxes] for end in ("low", "high"))
    return np.array(low, np.uint64), np.array(high, np.uint64)


@dataclass(frozen=True)
class Stage:
    """A box of a level, as far as it is needed.

    Its n states are numbered by ascending key; children in other stages follow from n on, by stage
    and key.

    own: its keys, in runs.
    states: in the sweep's order.
    patterns: shared by states.
    loops: int64 (k, 2), the position in the order and the size of each component that is a cycle.
    requests: the keys needed from other stages, (stage, runs, numbers), numbers by ascending key.
    edges: the number of edges expanded.
    """

    own: Runs
    states: Order
    patterns: Patterns
    loops: Ints
    requests: list[tuple[int, Runs, NDArray[np.int32]]]
    edges: int

    @cached_property
    def keys(self) -> Keys:
        """uint64 (n,), ascending."""
        return self.own.all_keys()

    @property
    def outside(self) -> int:
        """The number of keys that it needs from other stages."""
        return sum(len(numbers) for _, _, numbers in self.requests)


def first_edges(of_patterns: Ints, pattern_of: NDArray[np.int32]) -> Ints:
    """Return where the edges of each of n states begin, (n + 1,); of_patterns: of each pattern."""
    first = np.zeros(len(pattern_of) + 1, np.int64)
    np.cumsum(np.diff(of_patterns)[pattern_of], out=first[1:])
    return first


SAMPLED, STEPS = 1 << 11, 4
"""Sampling below a stage: states that are expanded in each step, and steps."""


def sample_below(stages: Stages, stage: int, keys: Keys) -> Keys:
    """Return keys (n,) of a stage, n > 0, and a sample of the states of the stage below them."""
    game, sample, front = stages.game, [keys], keys
    for _ in range(STEPS):
        front = np.ascontiguousarray(front[:: max(1, len(front) // SAMPLED)])
        children = pack_all(game.strides, expand(game, unpack_all(game.strides, front)).below)
        front = np.unique(children[stages.of(children) == np.uint64(stage)])
        sample.append(front)
        if not len(front):
            break
    return merged(sample)


def cut(
    stages: Stages, keys: Keys, count: int, states: int = 0, box: Box = WHOLE
) -> list[tuple[Box, int]]:
    """Cut a box of a stage into about `count` boxes, guided by some of its keys (n,), n > 0.

    Returns the boxes with their shares of its estimated `states`; none leads to an earlier one.
    """
    values = stages.inside.values(stages.inside.of(keys))
    in_order = np.sort(values, axis=0)
    bounds: list[list[int]] = [[] for _ in range(values.shape[1])]
    whole = set[int]()
    while np.prod([1 + len(cuts) for cuts in bounds]) < count and len(whole) < len(bounds):
        left = [lane for lane in range(len(bounds)) if lane not in whole]
        lane = min(left, key=lambda lane: len(bounds[lane]))
        finer = _quantiles(in_order[:, lane], 2 + len(bounds[lane]))
        if len(finer) > len(bounds[lane]):
            bounds[lane] = finer
        else:
            whole.add(lane)
    ends = [np.zeros_like(stages.inside.most), stages.inside.most]
    if not box.whole:
        ends = [*stages.inside.values(np.array([box.low, box.high], np.uint64))]
    spans = [
        list(zip([low, *cuts], [*cuts, high + 1], strict=True))[::-1]
        for cuts, low, high in zip(bounds, *(end.tolist() for end in ends), strict=True)
    ]
    places = np.zeros(len(values), np.int64)
    for lane, cuts in enumerate(bounds):
        at = len(cuts) - np.searchsorted(np.array(cuts, np.int64), values[:, lane], side="right")
        places = places * (1 + len(cuts)) + at
    counts = np.bincount(places, minlength=math.prod(map(len, spans))).tolist()
    boxes = []
    for span, here in zip(product(*spans), counts, strict=True):
        low, high = np.array(span, np.int64).reshape(-1, 2).T
        part = Box(stages.inside.word(low), stages.inside.word(high - 1))
        boxes.append((part, here * states // len(keys)))
    return boxes


def _quantiles(in_order: Ints, parts: int) -> list[int]:
    """Return bounds that cut ascending values (n,) into `parts` parts, or fewer."""
    later = np.searchsorted(in_order, in_order[0], side="right")
    if later == len(in_order):
        return []
    return sorted({int(in_order[max(later, len(in_order) * i // parts)]) for i in range(1, parts)})
