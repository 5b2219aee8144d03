"""Stages of a search: the states of one level of a game, expanded first and solved later.

A **stage** is closed under every cycle (`Level`). It is found from above: `BoxSearch` takes the
keys that higher stages need, expands them and everything below them in the stage, and returns the
keys that it needs from lower stages. It is solved from below: `sweep.solve_stage` takes the payoffs
of those keys and solves the states, children first. The search keeps all that this needs, so no
state is expanded again: each state's pattern (who acts, and the weights, actions and rewards of its
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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.errors import MemoryLimitError, OptionError, StateError, Stopped
from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.faults import fault_at
from luckbase.solver.game.game import Game
from luckbase.solver.game.rules import Level
from luckbase.solver.search import stage_kernels as kernels
from luckbase.solver.search.expand import expand, expanding, room_of
from luckbase.solver.search.keys import (
    CLASSES,
    NO_KEYS,
    Keys,
    LevelCode,
    grown,
    merged,
    order_of,
    pack_all,
    rehash,
    scatter,
    unpack_all,
    words,
    words_of,
)
from luckbase.solver.search.runs import (
    RUN,
    Nodes,
    Runs,
    count_runs,
    merged_runs,
    number_runs,
    ranks_of,
)
from luckbase.solver.search.stage_kernels import Order, Patterns, Place, Records
from luckbase.solver.sentences import option

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
        self.run, self.run_low, self.run_bits = self._run(used)

    def _run(self, inside: set[str]) -> tuple[int, int, int]:
        """Return the bits of keys that form a run, the lowest bit and their number: of the widest
        column that determines the position in a stage but not the stage."""
        level, room = self.level, self.game.strides[1].tolist()
        apart = {name for function in (level.falls, *level.apart) for name in function}
        columns = [
            (min(bits, 6), i) for i, (name, bits) in enumerate(zip(
                self.game.fields.columns, room, strict=True
            )) if name in inside - apart
        ]  # fmt: skip
        if level.strict or min(room) < 0 or not columns:
            return 0, 0, 0
        bits, column = max(columns)
        low = sum(room[column + 1 :])
        return ((1 << bits) - 1) << low, low, bits

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
        members: Keys = kernels.members_within(self.place(0, box), runs)
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
    """

    own: Runs  # its keys
    states: Order
    patterns: Patterns
    loops: Ints  # (k, 2), the position in the order and the size of each component that is a cycle
    requests: list[tuple[int, Runs]]  # the keys needed from other stages
    edges: int  # the number of edges expanded

    @cached_property
    def keys(self) -> Keys:
        """uint64 (n,), ascending."""
        return self.own.all_keys()


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


# --- find the states of a box --------------------------------------------------------------------

CACHED = 400_000
"""The most states of a box, roughly: with more, tables leave the processor's cache."""
PARTS, SAMPLE = 8, 1 << 13
"""Boxes into which a box with too many states is cut, and states sampled for the cut."""


class BoxSearch:
    """The states of a box of a level at or below the `requested` ones.

    It owns the growing arrays of `stage_kernels.expand_on`.

    requested: lists of runs, which may overlap.
    expected: roughly the number of states.
    most: the number of states that fit in memory.
    """

    def __init__(
        self, stages: Stages, level: int, requested: Sequence[Runs], box: Box = WHOLE, *,
        expected: int = 0, most: int = EVERY >> 1,
    ) -> None:  # fmt: skip
        self.stages, self.game, self.level, self.box = stages, stages.game, level, box
        self.most = most
        self.place = stages.place(level, box)
        self.requested = requested
        # Room for its states and about as many children elsewhere. Longer tables leave the cache.
        game, room = self.game, _power(max(1 << 12, 2 * min(expected, CACHED)))
        self.nodes = self._nodes(max(1 << 12, room >> self.place.run_bits // 2), room >> 1)
        lengths = room >> 1, room >> 1, room << 3  # only the used part takes memory
        self.records = Records(*(np.empty(length, np.int32) for length in lengths))
        kinds, edges, players = 1 << 8, max(1 << 12, 2 * game.max_edges), game.players
        self.patterns = Patterns(
            np.full(4 * kinds, -1, np.int32), np.empty(kinds, np.uint64),
            np.zeros(kinds + 1, np.int64), np.empty(kinds, np.int64), np.empty(edges),
            np.empty(edges, np.int64), np.empty((edges if game.pays else 0, players)),
            np.zeros((kinds, players)),
        )  # fmt: skip
        self.at = np.zeros(8, np.int64)
        self.room = room_of(game)

    def _nodes(self, runs: int, own: int) -> Nodes:
        if runs << self.place.run_bits > 1 << 31:
            why = "its functions `inside` leave too many states in one box"
            raise StateError(f"level {self.stages.level}: {why}")
        slots = np.full(2 * runs, -1, np.int32)
        return Nodes(slots, np.empty((runs, 4), np.uint64), np.empty(own, np.int32))

    def _enter(self) -> None:
        for runs in self.requested:
            entered = 0
            while entered < len(runs.keys):
                self._grow_nodes(1, RUN)
                entered = kernels.enter(self.place, self.nodes, self.at, runs, entered)
        self.requested = ()

    def run(self, stop: Callable[[], bool] = lambda: False, max_states: int = 0) -> list[Box]:
        """Expand until no state is left; return [].

        With `max_states`, stop once more states were reached, if the level's functions can separate
        them, and return boxes to cut this one into, ordered so that none leads to an earlier one.
        stop: called now and then.

        Raises StateError for an edge that the level forbids, GameError for a state whose edges
        break the rules, MemoryLimitError for more than `most` states, Stopped soon after `stop()`
        becomes true.
        """
        game, limit = self.game, min(self.most, max_states or self.most)
        self._enter()
        while True:
            with expanding(game, self.room):
                code = kernels.expand_on(
                    game.transition, game.numbers, self.room, game.strides, self.place, self.nodes,
                    self.records, self.patterns, self.at, BUDGET, limit,
                )  # fmt: skip
            if code == kernels.FINISHED:
                return []
            if stop():
                raise Stopped
            if code == kernels.GROW:
                self._grow()
            elif code == kernels.REFUSED:
                raise fault_at(game, self.room.at)
            elif code == kernels.RISES:
                raise self._rose(int(self.at[kernels.WRONG]))
            if self.at[kernels.OWN] > limit:
                if limit < self.most and len(parts := self._parts()) > 1:
                    return parts
                if self.at[kernels.OWN] > self.most:
                    raise self._too_large()
                limit = self.most

    def _too_large(self) -> MemoryLimitError:
        return MemoryLimitError(
            f"memory: a stage of level {self.stages.level} has more than "
            f"{self.at[kernels.OWN]:,} states; "
            f"allow more with {option('memory')}, or give the level functions `inside`, by which "
            "a stage is cut"
        )

    def _parts(self) -> list[Box]:
        """Return its box cut by a sample of the states reached; one box if it cannot be cut."""
        own = self.nodes.own[: self.at[kernels.OWN]]
        keys: Keys = kernels.keys_of(self.place, self.nodes.runs, own)
        sample = np.ascontiguousarray(keys[:: max(1, len(keys) // SAMPLE)])
        return [box for box, _ in cut(self.stages, sample, PARTS, box=self.box)]

    def _rose(self, number: int) -> StateError:
        parent = kernels.keys_of(self.place, self.nodes.runs, np.array([number], np.int32))
        state = unpack_all(self.game.strides, parent)
        children = expand(self.game, state).children
        keys = pack_all(self.game.strides, children)
        at = int(np.argmax(self.stages.forbidden(np.repeat(parent, len(keys)), keys)))
        return StateError(
            f"level {self.stages.level}: is not one of {self.game.board.game}: an edge leads from "
            f"{self.game.say(state[0])} to {self.game.say(children[at])}"
        )

    def _grow_nodes(self, runs: int, states: int) -> None:
        count, own = int(self.at[kernels.RUNS]), int(self.at[kernels.OWN])
        if count + runs > len(self.nodes.runs):
            nodes = self._nodes(_power(count + runs), 0)
            nodes.runs[:count] = self.nodes.runs[:count]
            rehash(nodes.slots, nodes.runs, count)
            self.nodes = nodes._replace(own=self.nodes.own)
        self.nodes = self.nodes._replace(own=grown(self.nodes.own, own + states))

    def _grow(self) -> None:
        max_edges, (states, edges, kinds, kept) = self.game.max_edges, self.at[3:7].tolist()
        self._grow_nodes(max_edges, max_edges)
        lengths = states + 1, states + 1, edges + max_edges
        self.records = Records(*map(grown, self.records, lengths))
        old, slots = self.patterns, self.patterns.slots
        hashes, weights = grown(old.hashes, kinds + 2), grown(old.weights, kept + max_edges)
        room, kept = len(hashes), len(weights)
        if room > len(old.hashes):
            slots = np.full(4 * room, -1, np.int32)
            kernels.enter_patterns(slots, hashes[:kinds])
        self.patterns = Patterns(
            slots, hashes, grown(old.first, room + 1), grown(old.actors, room), weights,
            grown(old.actions, kept), grown(old.rewards, kept) if self.game.pays else old.rewards,
            grown(old.payoffs, room, 0.0),
        )  # fmt: skip

    def stage(self) -> Stage:
        """Return the states of the box, ready to be solved."""
        n, edges = int(self.at[kernels.OWN]), int(self.at[kernels.EDGES])
        runs, run_bits = self.nodes.runs[: self.at[kernels.RUNS]], self.place.run_bits
        at = np.flatnonzero(runs[:, 2])
        at = at[order_of(runs[at, 0])].astype(np.int32)
        own = Runs(runs[at, 0], runs[at, 2], self.stages.run_low)
        numbers = np.empty(count_runs(runs), np.int32)
        number_runs(own, NO_KEYS, runs, at, numbers, 0)
        requests = self._requests(runs, numbers, n)
        full, (kinds, kept) = self.patterns, self.at[kernels.PATTERNS :][:2].tolist()
        patterns = Patterns(
            np.empty(0, np.int32), np.empty(0, np.uint64), full.first[: kinds + 1].copy(),
            full.actors[:kinds].copy(), full.weights[:kept].copy(), full.actions[:kept].copy(),
            full.rewards[: kept if self.game.pays else 0].copy(), full.payoffs[:kinds].copy(),
        )  # fmt: skip
        rows = numbers[ranks_of(runs, run_bits, self.records.numbers[:n])]
        pattern_of, children = np.empty(n, np.int32), np.empty(edges, np.int32)
        pattern_of[rows] = self.records.patterns[:n]
        first = first_edges(patterns.first, pattern_of)
        kernels.renumber(rows, self.records.children, runs, run_bits, numbers, first, children)
        order, loops = kernels.ordered(first, children)
        states = Order(order, first, pattern_of, children)
        return Stage(own, states, patterns, loops, requests, edges)

    def _requests(
        self, runs: Keys, numbers: NDArray[np.int32], begin: int
    ) -> list[tuple[int, Runs]]:
        """Return the states needed from other stages, by stage. Their numbers, from `begin` on, are
        written to `numbers`."""
        at = np.flatnonzero(runs[:, 1] != runs[:, 2])
        at = at[order_of(runs[at, 0])].astype(np.int32)
        stage = self.stages.of(runs[at, 0])
        by_stage = order_of(stage)
        at, stage = at[by_stage], stage[by_stage]
        ends = [*(np.flatnonzero(np.diff(stage)) + 1).tolist(), len(stage)]
        requests, here = [], begin
        for start, end in pairwise([0, *ends] if len(at) else []):
            part = at[start:end]
            keys, reached, inside, _ = runs[part].T.copy()
            other = Runs(keys, reached & ~inside, self.stages.run_low)
            here = number_runs(other, NO_KEYS, runs, part, numbers, here)
            requests.append((int(stage[start]), other))
        return requests


def _power(length: int) -> int:
    return 1 << max(0, length - 1).bit_length()
