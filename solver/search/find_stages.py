"""The states of a stage: a box of a level, expanded from the keys that are requested of it.

A box that turns out to have too many states is cut, and each of its parts goes on from what was
expanded of it so far. Only what was expanded of boxes that are left to other searches is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.errors import StateError
from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.game import Stopped
from luckbase.solver.search import keys as hashing
from luckbase.solver.search import stage_kernels as kernels
from luckbase.solver.search.expand import expand, expanding, refused, room_of
from luckbase.solver.search.keys import NO_KEYS, Keys, unpack_all
from luckbase.solver.search.stage_kernels import Nodes, Order, Patterns, Records, Walk
from luckbase.solver.search.stages import (
    BUDGET,
    EVERY,
    WHOLE,
    Box,
    EndTable,
    KeyedPayoffs,
    KnownPayoffs,
    Stage,
    Stages,
    first_edges,
    only_payoffs,
)

CACHED = 400_000
"""States of a box, at most: with more the tables leave the processor's cache."""
PIECES, SAMPLE = 4, 1 << 13
"""Boxes that a box with too many states is cut into; states that are sampled for that."""

FEW, EARLY = 2000, 4
"""Below fewer states than these, as below a root, there may be millions: where others may find them
boxes are so many times smaller, and left to them so much earlier."""


class RisingError(StateError):
    """An edge raises the level."""


def expand_level(
    stages: Stages,
    level: int,
    requested: Sequence[Keys],
    *,
    known: KeyedPayoffs | EndTable | None = None,
    expected: int = 0,
    max_states: int = CACHED,
    stop: Callable[[], bool] = lambda: False,
) -> Iterator[Stage]:
    """All boxes of a `LevelSearch`."""
    search = LevelSearch(
        stages, level, requested, known=known, expected=expected, max_states=max_states
    )
    return search.boxes(stop)


class LevelSearch:
    """The states of a level, and of a box of it, that lie at or below the `requested` keys: lists
    of keys of these, which may overlap.

    They come in boxes of at most about `max_states` states, as far as the level has functions that
    cut it; none leads to one before it. expected: how many states there are, about: a cut is
    cheaper before a search than during it. known: states that are not expanded: their keys,
    ascending, and payoffs (m, players), or a table to look them up in. stop_after: after so many
    states no other box is begun; 0 for no limit. remaining: the boxes that were left then.
    """

    def __init__(
        self,
        stages: Stages,
        level: int,
        requested: Sequence[Keys],
        *,
        box: Box = WHOLE,
        known: KeyedPayoffs | EndTable | None = None,
        expected: int = 0,
        max_states: int = CACHED,
        stop_after: int = 0,
    ) -> None:
        early = EARLY if stop_after and expected < FEW else 1
        max_states, stop_after = max_states // early, stop_after // early
        self.stages, self.level, self.stop_after = stages, level, stop_after
        known = known or (NO_KEYS, np.empty((0, stages.game.players)))
        self.limit = max_states if stages.level.inside else 0
        self.remaining: list[Box] = []
        self._todo = [BoxSearch(stages, level, box, known, expected)]
        if self.limit and expected > max_states and requested:
            count = SAMPLE // len(requested) + 1
            sample = np.concatenate([_thinned(keys, count) for keys in requested])
            boxes = stages.split(box, sample, 1 + 2 * len(sample) * max_states // (3 * expected))
            share = expected // len(boxes)
            self._todo = [BoxSearch(stages, level, part, known, share) for part in boxes]
        if len(self._todo) == 1:
            self._todo[0].requested += requested
        else:
            for keys in requested:
                _distribute(stages, keys, self._todo)

    def boxes(self, stop: Callable[[], bool] = lambda: False) -> Iterator[Stage]:
        """The boxes, one after the other; stop: polled now and then.

        Raises RisingError for an edge that leads where the level says that none does, GameError
        for a state whose edges break the rules; Stopped soon after `stop()` turns true.
        """
        states = 0
        while self._todo and not (self.stop_after and states >= self.stop_after):
            search = self._todo.pop(0)
            if not search.run(self.limit, stop):
                sample = search.sample()
                boxes = self.stages.split(search.box, sample, len(sample) // PIECES)
                if len(boxes) > 1:
                    self._todo = [*search.divide(boxes), *self._todo]
                    continue
                search.run(0, stop)
            stage = search.stage()
            for number, keys, _ in stage.requests:
                if number >> 32 == self.level:
                    _distribute(self.stages, keys, self._todo)
            states += len(stage.keys)
            yield stage
            del stage  # the next one has its memory
        self.remaining = [search.box for search in self._todo]


def _thinned(keys: Keys, count: int) -> Keys:
    """About `count` of the keys, evenly."""
    return np.ascontiguousarray(keys[:: max(1, len(keys) // count)])


def _distribute(stages: Stages, keys: Keys, searches: Sequence[BoxSearch]) -> None:
    """Add keys to the searches in whose boxes they lie, if any."""
    which = stages.boxes_of(keys, [search.box for search in searches])
    for i in np.unique(which[which >= 0]).tolist():
        searches[i].requested.append(np.ascontiguousarray(keys[which == i]))


class BoxSearch:
    """The search of one box: the arrays of `stage_kernels.expand_on`, which grow, and its requests.

    known_keys: of known states, ascending. Where another table has them, they are looked up as
    states are reached, before any of these is expanded.
    """

    def __init__(
        self, stages: Stages, level: int, box: Box, known: KeyedPayoffs | EndTable, size: int = 0
    ) -> None:
        self.stages, self.game, self.level, self.box = stages, stages.game, level, box
        self.known = known
        self.known_keys = known[0] if isinstance(known, tuple) else NO_KEYS
        self.place = stages.place(level, box)
        self.requested: list[Keys] = []
        # Of its own and about as many that they lead to; a longer table is further from the core.
        game, room = self.game, _power(max(1 << 12, 2 * min(size, CACHED)))
        self.nodes = self._nodes(room)
        self.records = self._records(room >> 1, room << 3)  # as far as written to
        self.patterns = self._patterns(1 << 8, max(1 << 12, 2 * game.max_edges))
        self.at = np.zeros(9, np.int64)
        self.at[kernels.UNTIL] = EVERY >> 1 if isinstance(known, tuple) else 0
        self.room = room_of(game)

    @staticmethod
    def _nodes(room: int) -> Nodes:
        slots = np.full(2 * room, -1, np.int32)
        return Nodes(slots, np.empty((room, 1), np.uint64), np.zeros(room, np.uint8))

    @staticmethod
    def _records(states: int, edges: int) -> Records:
        return Records(np.empty(states, np.int32), np.empty(edges, np.int32))

    def _patterns(self, room: int, edges: int) -> Patterns:
        players = self.game.players
        return Patterns(
            np.full(4 * room, -1, np.int32), np.empty(room, np.uint64),
            np.zeros(room + 1, np.int64), np.empty(room, np.int64), np.empty(edges),
            np.empty(edges, np.int64), np.empty((edges if self.game.pays else 0, players)),
            np.zeros((room, players)),
        )  # fmt: skip

    def _enter(self) -> None:
        """Enter the requested keys."""
        at = self.at
        for keys in self.requested:
            self._grow_nodes(len(keys))
            before = at[kernels.COUNT]
            at[kernels.COUNT] = hashing.enter(
                self.nodes.slots, self.nodes.keys, before, keys, np.empty(len(keys), np.int32)
            )
            at[kernels.OWN] += at[kernels.COUNT] - before
        self.requested = []

    def run(self, max_states: int, stop: Callable[[], bool]) -> bool:
        """Expand until nothing is left, or until more than `max_states` states were reached, if
        that is not 0; whether nothing is left."""
        game, limit = self.game, max_states or EVERY >> 1
        self._enter()
        self._look_up_known()
        while True:
            with expanding(game, self.room):
                code = kernels.expand_on(
                    game.transition, game.numbers, self.room, game.strides, self.place, self.nodes,
                    self.records, self.patterns, self.known_keys, self.at, BUDGET, limit,
                )  # fmt: skip
            if code == kernels.FINISHED and not self._look_up_known():
                return True
            if stop():
                raise Stopped
            if code == kernels.GROW:
                self._grow()
            elif code == kernels.REFUSED:
                raise refused(game, self.room)
            elif code == kernels.RISES:
                wrong = self.nodes.keys[self.at[kernels.WRONG]]
                raise self._rose(unpack_all(game.strides, wrong)[0])
            if self.at[kernels.OWN] > limit:
                return False

    def _look_up_known(self) -> bool:
        """Look up which of the states reached since are known; whether any state was."""
        at = self.at
        start, count = int(at[kernels.UNTIL]), int(at[kernels.COUNT])
        if isinstance(self.known, tuple) or start == count:
            return False
        at[kernels.UNTIL] = count
        keys = self.nodes.keys[start:count, 0][self.nodes.outside[start:count] == 0]
        self.known_keys = hashing.merged([self.known_keys, keys[self.known.holds(keys)]])
        return True

    def sample(self) -> Keys:
        """Some of the keys of the states reached."""
        count = int(self.at[kernels.COUNT])
        keys = self.nodes.keys[:count, 0][self.nodes.outside[:count] == 0]
        return _thinned(keys, SAMPLE)

    def _rose(self, state: Ints) -> StateError:
        """The error of a state (fields,) one of whose edges leads where none should."""
        children = expand(self.game, state.reshape(1, -1)).children
        keys = hashing.pack_all(self.game.strides, children)
        parent = hashing.pack_all(self.game.strides, state.reshape(1, -1))
        at = int(np.argmax(self.stages.forbidden(np.repeat(parent, len(keys)), keys)))
        return RisingError(
            f"level {self.stages.level}: is not one of {self.game.board.game}: an edge leads from "
            f"{self.game.say(state)} to {self.game.say(children[at])}"
        )

    def divide(self, boxes: Sequence[Box]) -> list[BoxSearch]:
        """Searches of boxes that make up its own, each with what was expanded of it. Raises
        RisingError for an edge that leads to a box before its own."""
        at = self.at
        count, states = int(at[kernels.COUNT]), int(at[kernels.STATES])
        keys, outside = self.nodes.keys[:count], self.nodes.outside[:count]
        which = np.full(count, -1, np.int32)
        inside = np.flatnonzero(outside == 0)
        which[inside] = self.stages.boxes_of(keys[inside, 0], boxes)
        expanded = inside[:states].astype(np.int32)
        patterns = self.records.patterns[:states]
        first = first_edges(self.patterns.first[: at[kernels.PATTERNS] + 1], patterns)
        before = kernels.Expanded(keys, which, expanded, patterns, first, self.records.children)
        return [self._part(box, i, before) for i, box in enumerate(boxes)]

    def _part(self, box: Box, number: int, before: kernels.Expanded) -> BoxSearch:
        """The search of box `number`."""
        part, at = BoxSearch(self.stages, self.level, box, self.known), self.at
        part.known_keys = self.known_keys
        numbers, keys = np.full(len(before.keys), -1, np.int32), np.empty_like(before.keys)
        inside = np.flatnonzero(before.box == number)
        rows = np.flatnonzero(before.box[before.numbers] == number)
        edges = int((before.first[rows + 1] - before.first[rows]).sum())
        part.records = self._records(
            2 * len(rows) + kernels.BATCH, 2 * edges + kernels.BATCH * self.game.max_edges
        )
        count = kernels.divide(before, number, inside, rows, numbers, keys, part.records)
        if count < 0:
            raise self._rose(unpack_all(self.game.strides, before.keys[-1 - count])[0])
        part.nodes, part.patterns = self._nodes(_power(2 * count)), deepcopy(self.patterns)
        part.nodes.keys[:count] = keys[:count]
        part.nodes.outside[len(inside) : count] = 1
        hashing.rehash(part.nodes.slots, part.nodes.keys, count)
        part.at[:] = at
        part.at[[kernels.NEXT, kernels.COUNT, kernels.STATES, kernels.EDGES, kernels.OWN]] = (
            len(rows), count, len(rows), edges, len(inside),
        )  # fmt: skip
        if not isinstance(self.known, tuple):
            part.at[kernels.UNTIL] = len(rows)
        return part

    def _grow_nodes(self, more: int) -> None:
        count = int(self.at[kernels.COUNT])
        if count + more > len(self.nodes.keys):
            nodes = self._nodes(_power(count + more))
            nodes.keys[:count] = self.nodes.keys[:count]
            nodes.outside[:count] = self.nodes.outside[:count]
            hashing.rehash(nodes.slots, nodes.keys, count)
            self.nodes = nodes

    def _grow(self) -> None:
        at, batch_edges = self.at, kernels.BATCH * self.game.max_edges
        self._grow_nodes(batch_edges)
        while at[kernels.STATES] + kernels.BATCH > len(self.records.patterns):
            self.records = self.records._replace(patterns=_longer(self.records.patterns))
        while at[kernels.EDGES] + batch_edges > len(self.records.children):
            self.records = self.records._replace(children=_longer(self.records.children))
        kinds, kept = int(at[kernels.PATTERNS]), int(at[kernels.PATTERN_EDGES])
        while kinds + kernels.BATCH >= len(self.patterns.actors) or (
            kept + batch_edges > len(self.patterns.weights)
        ):
            patterns = self.patterns
            bigger = self._patterns(2 * len(patterns.actors), 2 * len(patterns.weights))
            for before, after in zip(patterns[1:], bigger[1:], strict=True):
                after[: len(before)] = before
            kernels.enter_patterns(bigger.slots, bigger.hashes[:kinds])
            self.patterns = bigger

    def stage(self) -> Stage:
        """The states of the box, in the order of their keys, ready to be solved."""
        count, edges = int(self.at[kernels.COUNT]), int(self.at[kernels.EDGES])
        keys, outside = self.nodes.keys[:count, 0], self.nodes.outside[:count]
        inside = np.flatnonzero(outside == 0)
        n = len(inside)
        own_keys = keys[inside]
        places = hashing.order_of(own_keys)
        numbers = np.empty(count, np.int32)
        numbers[inside[places]] = np.arange(n, dtype=np.int32)
        requests = self._requests(keys, np.flatnonzero(outside), numbers)
        patterns = self._trimmed(
            int(self.at[kernels.PATTERNS]), int(self.at[kernels.PATTERN_EDGES])
        )
        first_of_rows = first_edges(patterns.first, self.records.patterns[:n])
        renumbered = self._records(n, edges)
        kernels.renumber(places, first_of_rows, self.records, numbers, renumbered)
        first, starts = first_edges(patterns.first, renumbered.patterns), np.empty(2 * n, np.int32)
        states = Order(np.empty(n, np.int32), first, renumbered.patterns, renumbered.children)
        loops = kernels.order_states(
            first, states.children, states.order, starts,
            Walk(*(np.empty(n, np.int32) for _ in range(5))),
        )  # fmt: skip
        cycles = starts[: 2 * loops].reshape(-1, 2).astype(np.int64)
        own_keys = own_keys[places]
        boundary = self._known_payoffs(own_keys[renumbered.patterns == kernels.BOUNDARY])
        alike = self.stages.alike
        return Stage(own_keys, states, patterns, cycles, requests, edges, boundary, self.box, alike)

    def _known_payoffs(self, keys: Keys) -> KnownPayoffs:
        """The payoffs of known states, by key."""
        if isinstance(self.known, tuple):
            return only_payoffs(self.known[1][np.searchsorted(self.known[0], keys)])
        return self.known.known_payoffs(keys)

    def _requests(
        self, keys: Keys, others: Ints, numbers: NDArray[np.int32]
    ) -> list[tuple[int, Keys, NDArray[np.int32]]]:
        """The keys of states of other stages, by stage, and their numbers, which go on from those
        of its own states and are written to `numbers`."""
        outside_keys = keys[others]
        at = hashing.order_of(outside_keys)
        stage = self.stages.of(outside_keys[at])
        by_stage = hashing.order_of(stage)
        at, stage = at[by_stage], stage[by_stage]
        outside_keys = outside_keys[at]
        row_numbers = np.arange(len(keys) - len(others), len(keys), dtype=np.int32)
        numbers[others[at]] = row_numbers
        ends = [*(np.flatnonzero(np.diff(stage)) + 1).tolist(), len(stage)]
        return [
            (int(stage[start]), outside_keys[start:end], row_numbers[start:end])
            for start, end in pairwise([0, *ends]) if start < end
        ]  # fmt: skip

    def _trimmed(self, kinds: int, edges: int) -> Patterns:
        full = self.patterns
        return Patterns(
            np.empty(0, np.int32), np.empty(0, np.uint64), full.first[: kinds + 1].copy(),
            full.actors[:kinds].copy(), full.weights[:edges].copy(),
            full.actions[:edges].copy(),
            full.rewards[: edges if self.game.pays else 0].copy(), full.payoffs[:kinds].copy(),
        )  # fmt: skip


def _power(length: int) -> int:
    """The least power of two that is at least `length`."""
    return 1 << max(0, length - 1).bit_length()


def _longer(array: NDArray[Any]) -> NDArray[Any]:
    """The array (n,) with as much room again."""
    bigger = np.empty(2 * len(array), array.dtype)
    bigger[: len(array)] = array
    return bigger
