"""The states of a stage are found: a box of a level, from what is asked of it.

A box that turns out to have too many states is cut, and each of its parts goes on from what was
expanded of it so far. Only what was expanded of boxes that are left to other searches is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
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
    Ends,
    Given,
    Known,
    Stage,
    Stages,
    first_edges,
    only_payoffs,
)

CACHED = 400_000
"""States of a box, at most: with more the tables leave the processor's cache."""
PIECES, SAMPLE = 4, 1 << 13
"""Boxes that a box with too many states is cut into; states that are looked at for that."""

FEW, EARLY = 2000, 4
"""Below fewer states than these, as below a root, there may be millions: where others may find them
boxes are so many times smaller, and left to them so much earlier."""


class RisingError(StateError):
    """An edge raises the level."""


def expand_level(
    stages: Stages,
    level: int,
    wanted: Sequence[Keys],
    *,
    known: Known | Ends | None = None,
    expected: int = 0,
    most: int = CACHED,
    stop: Callable[[], bool] = lambda: False,
) -> Iterator[Stage]:
    """All boxes of a `LevelSearch`."""
    search = LevelSearch(stages, level, wanted, known=known, expected=expected, most=most)
    return search.boxes(stop)


class LevelSearch:
    """The states of a level and of a box of it that lie at or below the `wanted` ones, all of which
    are of these and have nothing to do with others; in several lists, which may have some in
    common.

    They come in boxes of at most about `most` states, as far as the level has functions that cut
    it; none leads to one before it. expected: how many states there are, about: cuts are better
    made before than found to be needed. known: states that are not expanded: their keys, ascending,
    and payoffs (m, players); or what is asked for such as states are met. enough: after so many
    states no other box is begun; 0 for all. rest: the boxes that were left then.
    """

    def __init__(
        self,
        stages: Stages,
        level: int,
        wanted: Sequence[Keys],
        *,
        box: Box = WHOLE,
        known: Known | Ends | None = None,
        expected: int = 0,
        most: int = CACHED,
        enough: int = 0,
    ) -> None:
        early = EARLY if enough and expected < FEW else 1
        most, enough = most // early, enough // early
        self.stages, self.level, self.enough = stages, level, enough
        known = known or (NO_KEYS, np.empty((0, stages.game.players)))
        self.limit = most if stages.level.inside else 0
        self.rest: list[Box] = []
        self._todo = [_Search(stages, level, box, known, expected)]
        if self.limit and expected > most and wanted:
            sample = np.concatenate([_some(keys, SAMPLE // len(wanted) + 1) for keys in wanted])
            boxes = stages.split(box, sample, 1 + 2 * len(sample) * most // (3 * expected))
            each = expected // len(boxes)
            self._todo = [_Search(stages, level, one, known, each) for one in boxes]
        for keys in wanted:
            _hand_out(stages, keys, self._todo)

    def boxes(self, stop: Callable[[], bool] = lambda: False) -> Iterator[Stage]:
        """The boxes, one after the other; stop: asked now and then.

        Raises RisingError for an edge that leads where the level says that none does, GameError
        for a state whose edges break the rules; Stopped soon after `stop()` turns true.
        """
        states = 0
        while self._todo and not (self.enough and states >= self.enough):
            search = self._todo.pop(0)
            if not search.run(self.limit, stop):
                sample = search.sample()
                boxes = self.stages.split(search.box, sample, len(sample) // PIECES)
                if len(boxes) > 1:
                    self._todo = [*search.divide(boxes), *self._todo]
                    continue
                search.run(0, stop)
            stage = search.stage()
            for number, keys, _ in stage.wanted:
                if number >> 32 == self.level:
                    _hand_out(self.stages, keys, self._todo)
            states += len(stage.keys)
            yield stage
            del stage  # the next one has its memory
        self.rest = [search.box for search in self._todo]


def _some(keys: Keys, count: int) -> Keys:
    """About so many of some keys."""
    return np.ascontiguousarray(keys[:: max(1, len(keys) // count)])


def _hand_out(stages: Stages, keys: Keys, searches: Sequence[_Search]) -> None:
    """Ask keys of the searches in whose boxes they lie, if any."""
    which = stages.boxes_of(keys, [one.box for one in searches])
    for i in np.unique(which[which >= 0]).tolist():
        searches[i].wanted.append(np.ascontiguousarray(keys[which == i]))


class _Search:
    """The arrays of `stage_kernels.expand_on`, which grow, and what else is wanted.

    known_keys: of known states, ascending. Where another table says which, they join as they
    are met: no state is expanded before.
    """

    def __init__(
        self, stages: Stages, level: int, box: Box, known: Known | Ends, expected: int = 0
    ) -> None:
        self.stages, self.game, self.level, self.box = stages, stages.game, level, box
        self.known = known
        self.known_keys = known[0] if isinstance(known, tuple) else NO_KEYS
        self.place = stages.place(level, box)
        self.wanted: list[Keys] = []
        game, room = self.game, _power(max(1 << 12, min(expected, CACHED)))
        self.nodes = self._nodes(room)
        self.records = self._records(room >> 1, room << 2)  # twice as long where they have to be
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
        """Enter what is wanted."""
        at = self.at
        for keys in self.wanted:
            self._grow_nodes(len(keys))
            before = at[kernels.COUNT]
            at[kernels.COUNT] = hashing.enter(
                self.nodes.slots, self.nodes.keys, before, keys, np.empty(len(keys), np.int32)
            )
            at[kernels.MINE] += at[kernels.COUNT] - before
        self.wanted = []

    def run(self, most: int, stop: Callable[[], bool]) -> bool:
        """Expand until nothing is left, or until more states than `most` were met, if that is not
        0; whether nothing is left."""
        game, limit = self.game, most or EVERY >> 1
        self._enter()
        self._ask()
        while True:
            with expanding(game, self.room):
                code = kernels.expand_on(
                    game.transition, game.numbers, self.room, game.strides, self.place, self.nodes,
                    self.records, self.patterns, self.known_keys, self.at, BUDGET, limit,
                )  # fmt: skip
            if code == kernels.FINISHED and not self._ask():
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
            if self.at[kernels.MINE] > limit:
                return False

    def _ask(self) -> bool:
        """Ask which of the states that were met since are known; whether there were such."""
        at = self.at
        start, count = int(at[kernels.UNTIL]), int(at[kernels.COUNT])
        if isinstance(self.known, tuple) or start == count:
            return False
        at[kernels.UNTIL] = count
        keys = self.nodes.keys[start:count, 0][self.nodes.outside[start:count] == 0]
        self.known_keys = np.union1d(self.known_keys, keys[self.known.holds(keys)])
        return True

    def sample(self) -> Keys:
        """Some of the keys of the states that were met."""
        count = int(self.at[kernels.COUNT])
        keys = self.nodes.keys[:count, 0][self.nodes.outside[:count] == 0]
        return _some(keys, SAMPLE)

    def _rose(self, state: Ints) -> StateError:
        """The error of a state (fields,) one of whose edges leads where none should."""
        children = expand(self.game, state.reshape(1, -1)).children
        keys = hashing.pack_all(self.game.strides, children)
        own = hashing.pack_all(self.game.strides, state.reshape(1, -1))
        at = int(np.argmax(self.stages.forbidden(np.repeat(own, len(keys)), keys)))
        return RisingError(
            f"level {self.stages.level}: is not one of {self.game.board.game}: an edge leads from "
            f"{self.game.say(state)} to {self.game.say(children[at])}"
        )

    def divide(self, boxes: Sequence[Box]) -> list[_Search]:
        """Searches of boxes that make up its own, each with what was expanded of it. Raises
        RisingError for an edge that leads to a box before its own."""
        at = self.at
        count, states = int(at[kernels.COUNT]), int(at[kernels.STATES])
        keys, outside = self.nodes.keys[:count], self.nodes.outside[:count]
        which = np.full(count, -1, np.int32)
        mine = np.flatnonzero(outside == 0)
        which[mine] = self.stages.boxes_of(keys[mine, 0], boxes)
        expanded = mine[:states].astype(np.int32)
        patterns = self.records.patterns[:states]
        first = first_edges(self.patterns.first[: at[kernels.PATTERNS] + 1], patterns)
        before = kernels.Expanded(keys, which, expanded, patterns, first, self.records.children)
        return [self._part(box, i, before) for i, box in enumerate(boxes)]

    def _part(self, box: Box, number: int, before: kernels.Expanded) -> _Search:
        """The search of box `number`."""
        part, at = _Search(self.stages, self.level, box, self.known), self.at
        part.known_keys = self.known_keys
        numbers, keys = np.full(len(before.keys), -1, np.int32), np.empty_like(before.keys)
        mine = np.flatnonzero(before.box == number)
        rows = np.flatnonzero(before.box[before.numbers] == number)
        edges = int((before.first[rows + 1] - before.first[rows]).sum())
        part.records = self._records(
            2 * len(rows) + kernels.BATCH, 2 * edges + kernels.BATCH * self.game.max_edges
        )
        count = kernels.divide(before, number, mine, rows, numbers, keys, part.records)
        if count < 0:
            raise self._rose(unpack_all(self.game.strides, before.keys[-1 - count])[0])
        part.nodes, part.patterns = self._nodes(_power(2 * count)), deepcopy(self.patterns)
        part.nodes.keys[:count] = keys[:count]
        part.nodes.outside[len(mine) : count] = 1
        hashing.rehash(part.nodes.slots, part.nodes.keys, count)
        part.at[:] = at
        part.at[[kernels.NEXT, kernels.COUNT, kernels.STATES, kernels.EDGES, kernels.MINE]] = (
            len(rows), count, len(rows), edges, len(mine),
        )  # fmt: skip
        if not isinstance(self.known, tuple):
            part.at[kernels.UNTIL] = len(rows)
        return part

    def _grow_nodes(self, more: int) -> None:
        count = int(self.at[kernels.COUNT])
        if count + more > len(self.nodes.keys):
            nodes = self._nodes(_power(2 * (count + more)))
            nodes.keys[:count] = self.nodes.keys[:count]
            nodes.outside[:count] = self.nodes.outside[:count]
            hashing.rehash(nodes.slots, nodes.keys, count)
            self.nodes = nodes

    def _grow(self) -> None:
        at, most = self.at, kernels.BATCH * self.game.max_edges
        self._grow_nodes(most)
        while at[kernels.STATES] + kernels.BATCH > len(self.records.patterns):
            self.records = self.records._replace(patterns=_longer(self.records.patterns))
        while at[kernels.EDGES] + most > len(self.records.children):
            self.records = self.records._replace(children=_longer(self.records.children))
        kinds, kept = int(at[kernels.PATTERNS]), int(at[kernels.PATTERN_EDGES])
        while kinds + kernels.BATCH >= len(self.patterns.actors) or (
            kept + most > len(self.patterns.weights)
        ):
            patterns = self.patterns
            bigger = self._patterns(2 * len(patterns.actors), 2 * len(patterns.weights))
            for before, after in zip(patterns[1:], bigger[1:], strict=True):
                after[: len(before)] = before
            kernels.enter_patterns(bigger.slots, bigger.hashes[:kinds])
            self.patterns = bigger

    def stage(self) -> Stage:
        """What was found."""
        count, edges = int(self.at[kernels.COUNT]), int(self.at[kernels.EDGES])
        keys, outside = self.nodes.keys[:count, 0], self.nodes.outside[:count]
        mine = np.flatnonzero(outside == 0)
        n = len(mine)
        own = keys[mine]
        places = hashing.order_of(own)
        numbers = np.empty(count, np.int32)
        numbers[mine[places]] = np.arange(n, dtype=np.int32)
        wanted = self._wanted(keys, np.flatnonzero(outside), numbers)
        patterns = self._trimmed(
            int(self.at[kernels.PATTERNS]), int(self.at[kernels.PATTERN_EDGES])
        )
        met = first_edges(patterns.first, self.records.patterns[:n])
        found = self._records(n, edges)
        kernels.renumber(places, met, self.records, numbers, found)
        first, starts = first_edges(patterns.first, found.patterns), np.empty(2 * n, np.int32)
        states = Order(np.empty(n, np.int32), first, found.patterns, found.children)
        loops = kernels.order_states(
            first, states.children, states.order, starts,
            Walk(*(np.empty(n, np.int32) for _ in range(5))),
        )  # fmt: skip
        cycles = starts[: 2 * loops].reshape(-1, 2).astype(np.int64)
        own = own[places]
        given = self._given(own[found.patterns == kernels.GIVEN])
        alike = self.stages.alike
        return Stage(own, states, patterns, cycles, wanted, edges, given, self.box, alike)

    def _given(self, keys: Keys) -> Given:
        """What is known of states that are."""
        if isinstance(self.known, tuple):
            return only_payoffs(self.known[1][np.searchsorted(self.known[0], keys)])
        return self.known.given(keys)

    def _wanted(
        self, keys: Keys, others: Ints, numbers: NDArray[np.int32]
    ) -> list[tuple[int, Keys, NDArray[np.int32]]]:
        """The keys of the others, by stage; their numbers, which are written to those of all that
        were met, go on from those of the states."""
        theirs = keys[others]
        stage = self.stages.of(theirs)
        found = []
        at = len(keys) - len(others)
        for number in np.unique(stage):
            mine = np.flatnonzero(stage == number)
            mine = mine[hashing.order_of(theirs[mine])]
            these = np.arange(at, at + len(mine), dtype=np.int32)
            numbers[others[mine]] = these
            at += len(mine)
            found.append((int(number), theirs[mine], these))
        return found

    def _trimmed(self, kinds: int, edges: int) -> Patterns:
        full = self.patterns
        return Patterns(
            np.empty(0, np.int32), np.empty(0, np.uint64), full.first[: kinds + 1].copy(),
            full.actors[:kinds].copy(), full.weights[:edges].copy(),
            full.actions[:edges].copy(),
            full.rewards[: edges if self.game.pays else 0].copy(), full.payoffs[:kinds].copy(),
        )  # fmt: skip


def _power(least: int) -> int:
    """The least power of two that is not below."""
    return 1 << max(0, least - 1).bit_length()


def _longer(array: NDArray[Any]) -> NDArray[Any]:
    """The array (n,) with as much room again."""
    bigger = np.empty(2 * len(array), array.dtype)
    bigger[: len(array)] = array
    return bigger
