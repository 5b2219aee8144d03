"""What is asked of a level, and the shards that it is found in.

Small stages are put together, neighbours, to shards of about `SHARD_STATES`; a larger one is cut
along a grid into boxes of about as many (`solver.search.stages`), by a look at how it lies below a
sample of what is asked of it. A box can be found once those are that may lead to it: the other way
none does. Which shards there are hangs on what is asked alone, not on the workers.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from luckbase.cluster.search import files
from luckbase.cluster.search.files import Ask, AskedKeys
from luckbase.cluster.table import folder
from luckbase.cluster.table.entries import digest
from luckbase.solver.game.arrays import Ints
from luckbase.solver.search import find_stages, stages
from luckbase.solver.search.keys import NO_KEYS, Keys
from luckbase.solver.search.stages import NONE_KNOWN, WHOLE, Box, IsKnown, StageEstimator, Stages

SHARD_STATES = 100_000
"""States of a shard, about: a fifth of a second. Half as many take a quarter more of it a state."""
FIND_BYTES = 160
"""Bytes a state of the box that is being found."""
MAX_BOXES = 4096
"""Boxes of a stage, about: who waits for whom are pairs of them."""
LEFT_AFTER = 2
"""A box that has so many times as many leaves what is left of it to others."""
BURST = 2
"""Stages are put together as long as they have at most so many times as many, should they burst."""
MAX_GROWTH = 4.0
DEEPEST = 8
"""So many times a box that was left to others may leave boxes to others; then all of it is found by
one task, for names must end somewhere."""
CUTTING = 6
"""Counts the ways of cutting, and of writing a stage file, that there have been."""
Path = tuple[int, ...]
"""The number of a shard in its level; of a box that it left to others, and their number, and so on.
"""
Asker = tuple[int, Path]
"""The level of a shard that asks, and its path in it."""


class Asked(NamedTuple):
    """What a shard asks; order: of all that is asked of a stage, from the highest level on."""

    order: tuple[int, Path, int]
    asker: Asker
    ask: Ask
    keys: AskedKeys


def cutting() -> str:
    """What decides how a search is cut, and so what is in which file."""
    said = [
        CUTTING, SHARD_STATES, MAX_BOXES, LEFT_AFTER, BURST, MAX_GROWTH, DEEPEST,
        files.SPARSE_BITS, stages.RANGES, stages.MAX_CELLS, stages.MAX_ROOTS,
        find_stages.CACHED, find_stages.PIECES, find_stages.SAMPLE, find_stages.FEW,
        find_stages.EARLY, folder.PIECE_STATES,
    ]  # fmt: skip
    return digest(json.dumps(said))


def number_of(path: Path) -> str:
    """A path as names have it."""
    return ".".join(map(str, path))


@dataclass(frozen=True)
class LevelShard:
    """A shard of a level: some of its stages, or a box of them. expected: its states, about. after:
    the places, in a list of shards, of those that must be found before. burst: how many states
    there are should it burst as one of the level above did."""

    path: Path
    stages: tuple[int, ...]
    box: Box
    expected: int
    after: tuple[int, ...] = ()
    burst: int = 0

    @property
    def likely(self) -> int:
        """Its states, rather too many than too few."""
        return max(self.expected, self.burst)


@dataclass(frozen=True)
class Above:
    """What the shards of a level told for the next one. growth: states for each that was asked for,
    at most `MAX_GROWTH`: below a single root there are millions. burst: how many times as many as
    expected a shard had at most, and largest: how many that were."""

    growth: float = 1.0
    burst: float = 1.0
    largest: int = 0


def growth_of(shards: Sequence[LevelShard], states: Sequence[int], demand: int) -> Above:
    """What the shards of a level tell, in order, which have so many states; demand: what was asked
    of it. What one left to others counts as its own."""
    first: dict[int, int] = {}
    for one, n in zip(shards, states, strict=True):
        first[one.path[0]] = first.get(one.path[0], 0) + n
    least = max(1, SHARD_STATES // 8)  # where none was expected a few are no burst
    bursts = [first[one.path[0]] / max(least, one.expected) for one in shards if len(one.path) == 1]
    return Above(min(MAX_GROWTH, sum(states) / demand), max(bursts), max(first.values()))


@dataclass(frozen=True)
class Look:
    """A stage to be estimated, for it may be large: as `StageEstimator.estimate` has it. keys: how
    many states are requested; states: of a shard, about."""

    stage: int
    sample: Keys
    each: int
    widths: Ints
    keys: int
    states: int


Cut = tuple[int, list[tuple[Box, int]]]
"""About how many states a stage has, and the boxes that it is cut into, with theirs."""
Cutting = Callable[[Sequence[Look]], Sequence[Cut]]


def cut_stage(looks: StageEstimator, look: Look) -> Cut:
    """Look at a stage, and cut it."""
    lies = looks.estimate(look.stage, look.sample, look.each, look.widths)
    size = max(lies.total, look.keys)
    return size, stages.grid(looks.stages, lies, min(MAX_BOXES, -(-size // look.states)))


class Demand:
    """What is asked of the stages that are not found yet."""

    def __init__(self, stages: Stages, roots: Keys, known: IsKnown = NONE_KNOWN) -> None:
        """roots: the keys with which the search begins; known: as of `StageEstimator`."""
        self.stages = stages
        of_roots = stages.of(roots)
        numbers, counts = np.unique(of_roots, return_counts=True)
        self._total = dict(zip(numbers.tolist(), counts.tolist(), strict=True))
        self._most = dict(self._total)
        some = files.sampled(roots, files.SPARSE_BITS)
        sample, of_sample = roots[some], of_roots[some]
        self._roots = {stage: sample[of_sample == stage] for stage in np.unique(of_sample).tolist()}
        self.looks = StageEstimator(stages, roots, known)
        self._asks: dict[int, list[Asked]] = {}
        self._boxes: dict[int, tuple[Keys, Keys]] = {}
        """Where the asks of a stage lie, as far as somebody looked."""
        self._samples: dict[int, Keys] = {}

    def add(self, asker: Asker, asks: Iterable[Ask]) -> None:
        """What a shard that is found asks."""
        for one in asks:
            order = -asker[0], asker[1], one.stage
            self._asks.setdefault(one.stage, []).append(Asked(order, asker, one, one.keys))
            if one.stage >> 32 != asker[0]:
                self._total[one.stage] = self._total.get(one.stage, 0) + one.count
                self._most[one.stage] = max(self._most.get(one.stage, 0), one.count)

    def highest(self) -> int | None:
        """The highest level that something is asked of; None at the end."""
        return max((stage >> 32 for stage in self._total), default=None)

    def keys(self, level: int) -> int:
        """About how many states of a level higher ones ask for."""
        return sum(self._keys(stage) for stage in self._stages(level))

    def _stages(self, level: int) -> list[int]:
        return sorted(stage for stage in self._total if stage >> 32 == level)

    def _keys(self, stage: int) -> int:
        """The same of a stage: one that several ask for counts once, by the sample."""
        sample = len(self._sample(stage)) << files.SPARSE_BITS
        return int(min(self._total[stage], max(self._most[stage], sample)))

    def _sample(self, stage: int) -> Keys:
        """The sample of what roots and higher levels, all of which are found, ask of a stage."""
        if stage not in self._samples:
            samples = [
                files.unpacked(one.ask.sample, one.ask.sampled)
                for one in self._asks.get(stage, ()) if one.asker[0] != stage >> 32
            ]  # fmt: skip
            samples.append(self._roots.get(stage, NO_KEYS))
            self._samples[stage] = np.unique(np.concatenate(samples))
        return self._samples[stage]

    def done(self, level: int) -> None:
        """A level is found: nobody asks for it any more."""
        for counts in (self._total, self._most, self._asks, self._boxes, self._samples):
            for stage in [stage for stage in counts if stage >> 32 == level]:
                del counts[stage]

    def shards(self, level: int, above: Above, cut: Cutting | None = None) -> list[LevelShard]:
        """The shards of a level, if it grows as the one above did. cut: who looks at its stages and
        cuts them, if not this process, one after the other."""
        found: list[LevelShard] = []
        together: list[int] = []
        states = burst = 0
        looks = self._to_look_at(level)
        cuts = dict(zip([one.stage for one in looks], (cut or self.cut)(looks), strict=True))
        for stage in self._stages(level):
            size, boxes = cuts.get(stage, (round(self._keys(stage) * above.growth), []))
            at_most = min(above.largest, round(size * above.burst))
            if together and max(states + size, (burst + at_most) // BURST) > SHARD_STATES:
                found.append(_together(len(found), together, states, burst))
                together, states, burst = [], 0, 0
            if len(boxes) > 1:
                found += boxes_in_order(self.stages, (stage,), boxes, len(found))
            else:
                together, states, burst = [*together, stage], states + size, burst + at_most
        if together:
            found.append(_together(len(found), together, states, burst))
        return found

    def cut(self, some: Sequence[Look]) -> list[Cut]:
        """Look at stages, and cut them."""
        return [cut_stage(self.looks, one) for one in some]

    def _to_look_at(self, level: int) -> list[Look]:
        """Those stages of a level that may be large."""
        sampled = [stage for stage in self._stages(level) if len(self._sample(stage))]
        if not sampled or not self.stages.level.inside:
            return []
        widths = self.looks.widths(np.concatenate([self._sample(stage) for stage in sampled]))
        each = 1 << files.SPARSE_BITS
        return [
            Look(stage, self._sample(stage), each, widths, self._keys(stage), SHARD_STATES)
            for stage in sampled if self._keys(stage) * MAX_GROWTH > SHARD_STATES
        ]  # fmt: skip

    def of(self, shard: LevelShard) -> list[Asked]:
        """The asks that may be met by a shard, from the highest level on."""
        asks = list[Asked]()
        for stage in shard.stages:
            some = self._asks.get(stage, [])
            if not shard.box.whole:
                meets = self.stages.meeting(shard.box, *self._boxes_of(stage))
                some = [some[i] for i in np.flatnonzero(meets).tolist()]
            asks += some
        return sorted(asks)

    def _boxes_of(self, stage: int) -> tuple[Keys, Keys]:
        """The ends of the boxes of a stage's asks; those of new ones are added."""
        low, high = self._boxes.get(stage, (NO_KEYS, NO_KEYS))
        asks = self._asks.get(stage, [])
        if len(asks) > len(low):
            ends = stages.box_ends([one.ask.box for one in asks[len(low) :]])
            low, high = np.append(low, ends[0]), np.append(high, ends[1])
            self._boxes[stage] = low, high
        return low, high


def enough(shard: LevelShard) -> int:
    """States after which a shard leaves what is left of it to others; 0 for never."""
    return LEFT_AFTER * SHARD_STATES * (len(shard.path) < DEEPEST)


def _together(place: int, stages: Sequence[int], states: int, burst: int) -> LevelShard:
    return LevelShard((place,), tuple(stages), WHOLE, states, burst=burst)


def boxes_in_order(
    stages: Stages,
    numbers: tuple[int, ...],
    boxes: Sequence[tuple[Box, int]],
    first: int,
    above: Path = (),
) -> list[LevelShard]:
    """Shards of boxes, and their states, of some stages; the first one comes to place `first`.
    above: whose part they are; by themselves they are numbered by their places."""
    after = _neighbours(stages, [box for box, _ in boxes])
    return [
        LevelShard(
            (*above, i if above else first + i), numbers, box, states,
            tuple(first + k for k in after[i]),
        )
        for i, (box, states) in enumerate(boxes)
    ]  # fmt: skip


def _neighbours(stages: Stages, boxes: Sequence[Box]) -> list[list[int]]:
    """Of each box those before it that lead to it, but not by way of another: who waits for these
    waits for all."""
    if not boxes:
        return []
    leads = np.packbits(np.triu(stages.leads(boxes, boxes), 1), axis=0, bitorder="little")
    found: list[list[int]] = []
    before: list[int] = []  # of each box all that lead to it, a bit each
    for column in leads.T:
        left = every = int.from_bytes(column.tobytes(), "little")
        found.append([])
        while left:
            last = left.bit_length() - 1
            found[-1].append(last)
            left &= ~(before[last] | 1 << last)
        before.append(every)
    return [some[::-1] for some in found]


class Order:
    """Which shard of a level comes next: of those that can be found, the one with the most states
    on the longest chain that waits for it. shards: all, those that were added last."""

    def __init__(self, shards: Sequence[LevelShard]) -> None:
        self.shards = list(shards)
        self._missing = [len(one.after) for one in shards]
        self._next: list[list[int]] = [[] for _ in shards]
        for i, one in enumerate(shards):
            for before in one.after:
                self._next[before].append(i)
        self._chain = [0] * len(shards)
        for i in range(len(shards) - 1, -1, -1):
            behind = max((self._chain[k] for k in self._next[i]), default=0)
            self._chain[i] = shards[i].likely + behind
        self._ready = [(-self._chain[i], i) for i, n in enumerate(self._missing) if not n]
        heapq.heapify(self._ready)

    def pop(self) -> int | None:
        """The place of the next one; None where others must be done before."""
        return heapq.heappop(self._ready)[1] if self._ready else None

    def done(self, shard: int, rest: Sequence[LevelShard] = ()) -> None:
        """A shard is found, and leaves others, which come to the end of the list; what waited for
        it waits for them."""
        waiting, first = self._next[shard], len(self.shards)
        if not rest:
            for i in waiting:
                self._missing[i] -= 1
                if not self._missing[i]:
                    heapq.heappush(self._ready, (-self._chain[i], i))
            return
        behind = max((self._chain[i] for i in waiting), default=0)
        for one in rest:
            self.shards.append(one)
            self._missing.append(len(one.after))
            self._next.append(list(waiting))
            self._chain.append(one.likely + behind)
        for i in waiting:
            after = (*self.shards[i].after, *range(first, len(self.shards)))
            self.shards[i] = replace(self.shards[i], after=after)
            self._missing[i] += len(rest) - 1
        for i in range(first, len(self.shards)):
            for before in self.shards[i].after:
                self._next[before].append(i)
            if not self._missing[i]:
                heapq.heappush(self._ready, (-self._chain[i], i))

    def in_order(self) -> list[LevelShard]:
        """All shards, each after those that it waited for: what was left to it, for who left it."""
        at = sorted(range(len(self.shards)), key=lambda i: self.shards[i].path)
        place = {i: k for k, i in enumerate(at)}
        of = {self.shards[i].path: place[i] for i in at}
        found = []
        for i in at:
            one = self.shards[i]
            after = {place[k] for k in one.after}
            if len(one.path) > 1:
                after.add(of[one.path[:-1]])
            found.append(replace(one, after=tuple(sorted(after))))
        return found
