"""Stages of a search: the states of one level of a game, expanded first and solved later.

A **stage** is closed under every cycle (`Level`). It is found from above: `find_stages`
takes the keys that higher stages ask for, expands them and all that they lead to inside, and says
which keys of lower stages it asks for in turn. It is solved from below: `sweep.Sweeping` takes the
payoffs of those keys and goes through the states in an order in which children come first. What it
needs for that was kept when the states were found, so nothing is expanded again: each state's
pattern (who acts, and the weights, actions and rewards of its edges: states of a game have few of
them, or else many that the next state has too) and the rows of its children.

The steps and their order are those of `solver.search.game_graph`, and components are solved by
`solver.search.cycles`: a state's payoffs have the same bits, whichever finds them.

**A stage is estimated** before it is searched (`StageEstimator`): about how many states, and where
it can be cut. The keys requested of a stage say little of it: of those who have just lost all they
have one value of a score, and below these lie all values. So a stage is sampled in **cells**:
what the columns say that its functions `inside` do not look at (the skeleton), and a range of each
function's values. Of each cell a few states are expanded, of the first that were met; their
children meet others. A value at which a function stood at the roots, or stands where all is 0, is a
cell of its own: nobody has touched it yet, and it is one value, not a range of them.

A cell that is requested has as many states as are requested of it. Of others, which are met in more
ways, a share of the places that their ranges leave room for are states: the fourth root of that of
all requested cells, `BESIDE` of those one edge from these, or `SHARE` of all where the requested
cells have less than a 64th of the places.
Measured on 140 larger stages of Press Your Luck below two roots (32 million states, and the first
six levels of a billion): .4 to 2.0 times what was found, nine in ten of them .65 to 1.83 times.

The cells are cut along a grid, the same bounds all over: then boxes wait for those beside them
only. Boxes cut one by one, as evenly as it goes, wait for nearly all that come before
(`python -m tests.bench replay`).

Source: one state for each novel combination is the search of Lipovetzky and Geffner, Width and
Serialization of Classical Planning Problems, ECAI 2012.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.errors import OptionError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.capabilities import Level
from luckbase.solver.game.game import Game
from luckbase.solver.search import stage_kernels as kernels
from luckbase.solver.search.expand import expand
from luckbase.solver.search.keys import (
    CLASSES,
    NO_KEYS,
    Keys,
    Words,
    pack_all,
    scatter,
    unpack_all,
    words,
    words_of,
)
from luckbase.solver.search.runs import Runs, merged_runs
from luckbase.solver.search.stage_kernels import Order, Patterns, Place

BUDGET = 100_000
"""States between two looks at `stop`: a tenth of a second."""
EVERY = (1 << 64) - 1


@dataclass(frozen=True)
class Box:
    """A part of a level: lane by lane, the least and the greatest of the words of its functions
    `inside`; all of it unless they are said."""

    low: int = 0
    high: int = EVERY

    @property
    def whole(self) -> bool:
        """Whether it is all of the level."""
        return (self.low, self.high) == (0, EVERY)


WHOLE = Box()


class Stages:
    """A game's level by key: which stage a key is of. A stage's number is its level's, then, in
    the lower 32 bits, what keeps it apart from others of that level."""

    def __init__(self, game: Game, level: Level) -> None:
        """Raises OptionError where the level names no column, or has too many values."""
        self.game, self.level = game, level
        self.words: Words = words(game.fields, (level.falls, *level.apart))
        self.shift, bits = self.words.lanes[0]
        if self.shift > 32 or (1 << bits) // level.width >> 31:
            raise OptionError("level: its functions have too many values for a stage's number")
        self.inside, self._scatter = words(game.fields, level.inside), scatter()
        used = {name for function in level.inside for name, factor in function.items() if factor}
        self.others = np.array([name not in used for name in game.fields.columns])
        room = game.strides[1]
        ones = np.where(self.others, (1 << np.clip(room, 0, 62)) - 1, 0)
        shifts = used and (room >= 0).all() and room.max(initial=0) < 63
        self.run, self.run_low, self.run_bits, self.run_column = self._run(used)
        self.run_is_set = self.run_column >= 0 and bool(game.fields.sets[self.run_column])
        self.alike = int(pack_all(game.strides, ones.reshape(1, -1))[0]) if shifts else 0

    def _run(self, inside: set[str]) -> tuple[int, int, int, int]:
        """The bits of keys that only tell apart the states of a run (`runs.Nodes`), the
        lowest of them, how many, and their column: the longest that says where in its stage a
        state is, and not in which; none, and -1, where a key is not made of bits."""
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
        """The numbers (n,) of the stages of keys (n,)."""
        words = self.words.of(keys)
        level = (words >> np.uint64(self.shift)) // np.uint64(self.level.width)
        apart = words & np.uint64((1 << self.shift) - 1)
        if self.level.strict:  # any cut will do
            apart = words_of(self._scatter, np.ascontiguousarray(keys)) >> np.uint64(64 - CLASSES)
        stages: NDArray[np.uint64] = level << np.uint64(32) | apart
        return stages

    def forbidden(self, above: Keys, below: Keys) -> NDArray[np.bool_]:
        """(n,) whether the level says that no edge leads from one key to the other."""
        first, second = self.of(above), self.of(below)
        levels = first >> np.uint64(32), second >> np.uint64(32)
        same, guards = levels[0] == levels[1], np.uint64(self.inside.guards)
        gone = ((self.inside.of(above) | guards) - self.inside.of(below)) & guards != guards
        inside = (first != second) | gone | self.level.strict
        forbidden: NDArray[np.bool_] = (levels[1] > levels[0]) | (same & inside)
        return forbidden

    def place(self, level: int, box: Box) -> Place:
        """A level and a box of it, for the kernel."""
        return Place(
            np.uint64(self.run), np.uint64(self.run_low), self.run_bits, self.words.table,
            self.inside.table, np.uint64(self.shift),
            np.uint64(self.level.width), np.uint64(level), np.uint64(self.inside.guards),
            np.uint64(box.low), np.uint64(box.high), int(self.level.strict), int(not box.whole),
            self.run_column,
        )  # fmt: skip

    def runs_of(self, keys: Keys) -> Runs:
        """Keys (n,) in runs."""
        at = (keys & np.uint64(self.run)) >> np.uint64(self.run_low)
        members = np.uint64(1) << at
        return merged_runs([Runs(keys & ~np.uint64(self.run), members, self.run_low)])

    def within(self, runs: Runs, box: Box) -> Keys:
        """uint64 (n,): which members of runs (n,) lie in a box."""
        if box.whole:
            return runs.members
        in_line = int(not self.run_is_set)
        members: Keys = kernels.members_within(self.place(0, box), runs, in_line)
        return members

    def boxes_of(self, keys: Keys, boxes: Sequence[Box]) -> NDArray[np.int32]:
        """Which of the boxes each key (n,) lies in; -1 for none."""
        places = np.zeros(len(keys), np.int32)
        if len(boxes) == 1 and boxes[0].whole:
            return places
        low, high = box_ends(boxes)
        guards = np.uint64(self.inside.guards)
        kernels.boxes_of(self.inside.of(keys), low, high, guards, places)
        return places

    def around(self, keys: Keys) -> Box:
        """The smallest box that holds all keys (n,), n > 0."""
        if not self.level.inside:
            return Box()
        values = self.inside.values(self.inside.of(keys))
        return Box(self.inside.word(values.min(axis=0)), self.inside.word(values.max(axis=0)))

    def leads(self, above: Sequence[Box], below: Sequence[Box]) -> NDArray[np.bool_]:
        """(above, below) whether an edge inside a stage may lead from the one box to the other."""
        high, low = box_ends(above)[1], box_ends(below)[0]
        guards = np.uint64(self.inside.guards)
        possible: NDArray[np.bool_] = ((high[:, None] | guards) - low[None]) & guards == guards
        return possible

    def meeting(self, box: Box, low: Keys, high: Keys) -> NDArray[np.bool_]:
        """(n,) whether a box has a place in common with those of these ends (n,)."""
        guards = np.uint64(self.inside.guards)
        leads = ((np.uint64(box.high) | guards) - low) & ((high | guards) - np.uint64(box.low))
        overlap: NDArray[np.bool_] = leads & guards == guards
        return overlap


def box_ends(boxes: Sequence[Box]) -> tuple[Keys, Keys]:
    """The ends of boxes, (n,) each."""
    low, high = ([getattr(box, end) for box in boxes] for end in ("low", "high"))
    return np.array(low, np.uint64), np.array(high, np.uint64)


@dataclass(frozen=True)
class Stage:
    """A box of a level, as far as it was asked for: n of its states, numbered by ascending key, and
    others that they lead to, numbered on from n by stage and key.

    own: its keys, in runs. states: in the sweep's order. patterns: what they share. loops:
    int64 (k, 2), the place in the order and the members of each component that is a cycle.
    requests: what it needs of other stages, (stage, runs, numbers), which go by ascending key.
    edges: expanded. alike: the bits of keys that the level's functions `inside` do not read, 0 if
    there are none.
    """

    own: Runs
    states: Order
    patterns: Patterns
    loops: Ints
    requests: list[tuple[int, Runs, NDArray[np.int32]]]
    edges: int
    alike: int

    @cached_property
    def keys(self) -> Keys:
        """uint64 (n,), ascending."""
        return self.own.all_keys()

    @property
    def outside(self) -> int:
        """How many keys of other stages it asks for."""
        return sum(len(numbers) for _, _, numbers in self.requests)


def first_edges(of_patterns: Ints, pattern_of: NDArray[np.int32]) -> Ints:
    """int64 (n + 1,): where the edges of each of n states begin, from where those of the patterns
    do (patterns + 1,)."""
    first = np.empty(len(pattern_of) + 1, np.int64)
    kernels.first_edges(np.diff(of_patterns), pattern_of, first)
    return first


RANGES, FIRST_RANGES = 6, 32
"""Ranges into which the requested values are put; into which all values are, at first."""
MAX_CELLS, MIN_CELLS = 1 << 13, 1 << 9
"""Cells of a stage that are sampled, about: where there are more their ranges become wider; where
there are fewer, narrower, as far as the requested values have it."""
SHARE, BESIDE = 0.45, 0.1
"""How many of a cell's places are states where none is requested, if the requested cells are few of
a stage's; if they are not, of those one edge from these."""
FEW_OF_CELL = 4
"""States of a cell from which others are met: what one leads to is not all."""
MAX_ROOTS = 3
"""Where the roots have more values of a function, none of these is a cell of its own."""
MAX_ROOM = float(1 << 40)
"""Places of a cell, at most: whole numbers can hold the sum of all."""
_MIXERS = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)


@dataclass(frozen=True)
class StageCells:
    """The cells of a stage. low, high: int64 (cells, functions), the values of each, from the low
    to before the high one. states: float64 (cells,), how many each has, about."""

    low: Ints
    high: Ints
    states: Floats

    @property
    def total(self) -> int:
        """The estimated number of states."""
        return round(_sum(self.states))


class StageEstimator:
    """Estimates the sizes of one search's stages. roots: its keys."""

    def __init__(self, stages: Stages, roots: Keys) -> None:
        self.stages = stages
        nothing = self._values(np.zeros(1, np.uint64))
        at_roots = [np.unique(column, return_index=True) for column in self._values(roots).T]
        self._single = [
            np.union1d(zero, at_root if len(at_root) <= MAX_ROOTS else zero)
            for zero, (at_root, _) in zip(nothing.T, at_roots, strict=True)
        ]
        few = [at[: MAX_ROOTS + 1] for _, at in at_roots]
        self.roots = roots[np.unique(np.concatenate([np.empty(0, np.int64), *few]))]
        """A few of the roots that give the same estimates."""

    def _values(self, keys: Keys) -> Ints:
        """The values (n, functions) of keys (n,)."""
        return self.stages.inside.values(self.stages.inside.of(keys))

    def widths(self, keys: Keys) -> Ints:
        """The widths of the ranges (functions,) for a sample of requested keys (n,), n > 0."""
        widths: Ints = np.maximum(1, -(-np.ptp(self._values(keys), axis=0) // RANGES))
        return widths

    def estimate(self, stage: int, sample: Keys, weights: Floats, widths: Ints) -> StageCells:
        """The cells of a stage. sample: requested keys of it (n,), n > 0; weights (n,): the states
        that each stands for; widths: of the ranges, at least."""
        widths, reached = self._fitting(stage, sample, widths)
        low, high = self._ranges(np.concatenate(reached), widths)
        room = np.minimum((high - low).astype(np.float64).prod(axis=1), MAX_ROOM)
        requested, beside = np.cumsum([*map(len, reached), 0])[:2].tolist()
        of_requested = float(room[:requested].sum())
        if of_requested < float(room.sum()) / 64:
            states = SHARE * room
        else:
            states = math.sqrt(math.sqrt(min(1, float(weights.sum()) / of_requested))) * room
            states[requested:beside] = BESIDE * room[requested:beside]
        _, cells = np.unique(self._cells(sample, widths), return_inverse=True)
        states[:requested] = np.bincount(cells, weights)
        return StageCells(low, high, states)

    def _fitting(self, stage: int, sample: Keys, least: Ints) -> tuple[Ints, list[Keys]]:
        """Widths of ranges of which neither too many cells are reached nor too few, and these."""
        most = self.stages.inside.most
        widths: Ints = np.maximum(least, most // FIRST_RANGES + 1)
        reached = self._reached(stage, sample, widths)
        while sum(map(len, reached)) >= MAX_CELLS and (widths <= most).any():
            widths = 2 * widths
            reached = self._reached(stage, sample, widths)
        while sum(map(len, reached)) < MIN_CELLS and (widths > least).any():
            narrower = np.maximum(least, widths // 2)
            more = self._reached(stage, sample, narrower)
            if sum(map(len, more)) >= MAX_CELLS:
                break
            widths, reached = narrower, more
        return widths, reached

    def _reached(self, stage: int, sample: Keys, widths: Ints) -> list[Keys]:
        """A state of each cell, those of the sample first, by the numbers of their cells, then
        those met one edge further on, from a few states of each; from `MAX_CELLS` on no further."""
        first, front, cells = self._by_cell(sample, widths, NO_KEYS)
        reached = [first]
        while len(front) and len(cells) < MAX_CELLS:
            first, front, cells = self._by_cell(self._children(stage, front), widths, cells)
            reached.append(first)
        return reached

    def _by_cell(self, keys: Keys, widths: Ints, known: Keys) -> tuple[Keys, Keys, Keys]:
        """Of the cells of keys (n,) that are not known ones: a key of each, up to `FEW_OF_CELL`
        of each, evenly; and the numbers of all cells, ascending."""
        numbers = self._cells(keys, widths)
        fresh = np.flatnonzero(~np.isin(numbers, known))
        order = fresh[np.lexsort((keys[fresh], numbers[fresh]))]
        new, first, counts = np.unique(numbers[order], return_index=True, return_counts=True)
        steps = np.arange(FEW_OF_CELL) * (counts - 1)[:, None] // (FEW_OF_CELL - 1)
        few = (first[:, None] + steps).ravel()
        few = few[np.append(True, few[1:] != few[:-1])[: len(few)]]
        return keys[order[first]], keys[order[few]], np.sort(np.concatenate([known, new]))

    def _children(self, stage: int, keys: Keys) -> Keys:
        """The children (m,) of states that are of their stage."""
        game = self.stages.game
        edges = expand(game, unpack_all(game.strides, np.ascontiguousarray(keys)))
        goes_on = np.repeat(~edges.terminal, np.diff(edges.first))
        children = pack_all(game.strides, edges.children)[goes_on]  # rows of keys are shorter
        inside: Keys = children[self.stages.of(children) == np.uint64(stage)]
        return inside

    def _ranges(self, keys: Keys, widths: Ints) -> tuple[Ints, Ints]:
        """The ranges (n, functions) that keys (n,) lie in: from, and to before."""
        values, wide = self._values(keys).T, widths[:, None]
        lines = zip(values, self._single, strict=True)
        single = np.stack([(v == roots[:, None]).any(axis=0) for v, roots in lines])
        low = np.where(single, values, values // wide * wide)
        high = np.minimum(low + np.where(single, 1, wide), self.stages.inside.most[:, None] + 1)
        return low.T, high.T

    def _cells(self, keys: Keys, widths: Ints) -> NDArray[np.uint64]:
        """A number (n,) for the cell of each key."""
        low, high = self._ranges(keys, widths)
        strides, skeletons = self.stages.game.fields.strides, keys & np.uint64(self.stages.alike)
        if not self.stages.alike:
            states = unpack_all(strides, np.ascontiguousarray(keys))
            skeletons = pack_all(strides, states * self.stages.others)
        mixed: NDArray[np.uint64] = skeletons * _MIXERS[0]
        for column in (2 * low + (high - low == 1)).T:
            mixed = (mixed ^ (mixed >> np.uint64(29)) ^ column.astype(np.uint64)) * _MIXERS[1]
        return mixed


def grid(stages: Stages, spread: StageCells, count: int, box: Box = WHOLE) -> list[tuple[Box, int]]:
    """A box of a stage cut into about so many boxes, none of which leads to one before it, and how
    many states each has, about."""
    bounds: list[list[int]] = [[] for _ in range(spread.low.shape[1])]
    below, whole = [_below(spread, lane) for lane in range(len(bounds))], set[int]()
    while np.prod([1 + len(cuts) for cuts in bounds]) < count and len(whole) < len(bounds):
        left = [lane for lane in range(len(bounds)) if lane not in whole]
        lane = min(left, key=lambda lane: len(bounds[lane]))
        finer = _bounds(*below[lane], 2 + len(bounds[lane]))
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
    parts: list[tuple[tuple[tuple[int, int], ...], StageCells]] = [((), spread)]
    for lane, spans_of in enumerate(spans):
        parts = [
            ((*span, ends), _inside(part, lane, *ends)) for span, part in parts for ends in spans_of
        ]
    boxes = []
    for span, part in parts:
        low, high = np.array(span, np.int64).reshape(-1, 2).T
        box = Box(stages.inside.word(low), stages.inside.word(high - 1))
        boxes.append((box, part.total))
    return boxes


def cut(stages: Stages, keys: Keys, count: int, box: Box = WHOLE) -> list[Box]:
    """The `grid` of a box by some of its keys (n,), n > 0."""
    values = stages.inside.values(stages.inside.of(keys))
    cells = StageCells(values, values + 1, np.ones(len(values)))
    return [part for part, _ in grid(stages, cells, count, box)]


def _below(spread: StageCells, lane: int) -> tuple[list[int], list[float]]:
    """The values of a function at which cells end, and how many states lie below each."""
    ends = np.unique(np.stack([spread.low[:, lane], spread.high[:, lane]])).tolist()
    return ends, [_sum(_inside(spread, lane, ends[0], end).states) for end in ends]


def _bounds(ends: list[int], before: list[float], parts: int) -> list[int]:
    """Values of a function that cut the states into so many parts, as evenly as it goes; fewer
    where it has not so many. ends, before: as `_below` has them."""
    targets = [before[-1] * i / parts for i in range(1, parts)]
    cuts = {round(float(at)) for at in np.interp(targets, before, ends)}
    return sorted(at for at in cuts if ends[0] < at < ends[-1])


def _inside(spread: StageCells, lane: int, start: int, stop: int) -> StageCells:
    """The cells that have a function's values from start to before stop, and how many of their
    states do, if they lie evenly in their cells."""
    low, high = spread.low[:, lane], spread.high[:, lane]
    rows = np.flatnonzero((low < stop) & (high > start))
    low, high = low[rows], high[rows]
    share = (np.minimum(high, stop) - np.maximum(low, start)) / (high - low)
    return StageCells(spread.low[rows], spread.high[rows], spread.states[rows] * share)


def _sum(states: Floats) -> float:
    """Their sum to a sixteenth, which is the same on every machine: a search may go on elsewhere,
    and is to be cut the same way."""
    return int(np.rint(16 * states).astype(np.int64).sum()) / 16
