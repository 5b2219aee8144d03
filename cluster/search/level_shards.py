"""What is asked of a level, and the shards that it is found in.

Small stages are put together, neighbours, to shards of about `SHARD_STATES`; a larger one is cut
into boxes of about as many (`solver.graph.stage.Box`), by a sample of what is asked of it. A box
can be found once those are that may lead to it: the other way none does. Which shards there are
hangs on what is asked alone, not on the workers.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from luckbase.cluster.search import stage_file
from luckbase.cluster.search.stage_file import Ask
from luckbase.solver.graph.keys import Keys
from luckbase.solver.graph.stage import NO_KEYS, WHOLE, Box, Stages

SHARD_STATES = 500_000
"""States of a shard, about: a second."""
BURST = 2
"""Stages are put together as long as they have at most so many times as many, should they burst."""
MOST_GROWTH = 4.0
Asker = tuple[int, int]
"""The level of a shard that asks, and its number in it."""


@dataclass(frozen=True)
class LevelShard:
    """A shard of a level: some of its stages, or a box of one. expected: its states, about. after:
    the numbers of those shards of its level that must be found before."""

    stages: tuple[int, ...]
    box: Box
    expected: int
    after: tuple[int, ...] = ()


@dataclass(frozen=True)
class Above:
    """What the shards of a level told for the next one. growth: states for each that was asked for,
    at most `MOST_GROWTH`: below a single root there are millions. burst: how many times as many as
    expected a shard had at most, and largest: how many that were."""

    growth: float = 1.0
    burst: float = 1.0
    largest: int = 0


def told_by(shards: Sequence[LevelShard], states: Sequence[int], asked: int) -> Above:
    """What the shards of a level tell, which have so many states; asked: what was asked of it."""
    bursts = [n / max(1, one.expected) for one, n in zip(shards, states, strict=True)]
    return Above(min(MOST_GROWTH, sum(states) / asked), max(bursts), max(states))


class Asked:
    """What is asked of the stages that are not found yet."""

    def __init__(self, stages: Stages, roots: dict[int, int]) -> None:
        """roots: how many of them each stage has."""
        self.stages = stages
        self._total = dict(roots)
        self._most = dict(roots)
        self._asks: dict[int, list[tuple[Asker, Ask]]] = {}

    def add(self, asker: Asker, asks: Iterable[Ask]) -> None:
        """What a shard that is found asks."""
        for one in asks:
            self._asks.setdefault(one.stage, []).append((asker, one))
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
        sample = len(np.unique(self._sample(stage))) << stage_file.SPARSE_BITS
        return min(self._total[stage], max(self._most[stage], sample))

    def _sample(self, stage: int) -> Keys:
        """The sample of what higher levels ask of a stage, some of it several times."""
        asks = self._asks.get(stage, ())
        samples = [one.sample for asker, one in asks if asker[0] != stage >> 32]
        return np.concatenate(samples) if samples else NO_KEYS

    def done(self, level: int) -> None:
        """A level is found: nobody asks for it any more."""
        for told in (self._total, self._most, self._asks):
            for stage in [stage for stage in told if stage >> 32 == level]:
                del told[stage]

    def shards(self, level: int, above: Above) -> list[LevelShard]:
        """The shards of a level, if it grows as the one above did."""
        found: list[LevelShard] = []
        together: list[int] = []
        states = burst = 0
        for stage in self._stages(level):
            size = round(self._keys(stage) * above.growth)
            at_most = min(above.largest, round(size * above.burst))
            if together and max(states + size, (burst + at_most) // BURST) > SHARD_STATES:
                found.append(LevelShard(tuple(together), WHOLE, states))
                together, states, burst = [], 0, 0
            boxes = self._boxes(stage, size) if size > SHARD_STATES else []
            if len(boxes) > 1:
                found += boxes_in_order(self.stages, stage, boxes, len(found))
            else:
                together, states, burst = [*together, stage], states + size, burst + at_most
        if together:
            found.append(LevelShard(tuple(together), WHOLE, states))
        return found

    def _boxes(self, stage: int, size: int) -> list[tuple[Box, int]]:
        """Boxes of a stage of about so many states, and how many each has; none leads to one before
        it."""
        sample = np.unique(self._sample(stage))
        if not len(sample) or not self.stages.level.inside:
            return []
        boxes = self.stages.split(WHOLE, sample, 1 + len(sample) * SHARD_STATES // size)
        which = self.stages.boxes_of(sample, boxes)
        share = np.bincount(which, minlength=len(boxes)) / len(sample)
        return [(box, round(size * part)) for box, part in zip(boxes, share, strict=True)]

    def of(self, shard: LevelShard) -> list[tuple[Asker, Ask]]:
        """The asks that may be met by a shard, from the highest level on."""
        asks = [one for stage in shard.stages for one in self._asks.get(stage, ())]
        if asks and not shard.box.whole:
            meets = self.stages.meet([shard.box], [ask.box for _, ask in asks])[0]
            asks = [one for one, there in zip(asks, meets.tolist(), strict=True) if there]
        return sorted(asks, key=lambda one: (-one[0][0], one[0][1], one[1].stage))


def boxes_in_order(
    stages: Stages, stage: int, boxes: Sequence[tuple[Box, int]], first: int
) -> list[LevelShard]:
    """Shards of the boxes of a stage and their states, numbered from `first` on."""
    places = [box for box, _ in boxes]
    leads = np.triu(stages.leads(places, places), 1)
    return [
        LevelShard((stage,), box, states, tuple((first + np.flatnonzero(leads[:, i])).tolist()))
        for i, (box, states) in enumerate(boxes)
    ]


class Order:
    """Which shard of a level comes next: of those that can be found, the one with the most states
    on the longest chain that waits for it."""

    def __init__(self, shards: Sequence[LevelShard]) -> None:
        self._missing = [len(one.after) for one in shards]
        self._next: list[list[int]] = [[] for _ in shards]
        for i, one in enumerate(shards):
            for before in one.after:
                self._next[before].append(i)
        self._chain = [0] * len(shards)
        for i in range(len(shards) - 1, -1, -1):
            behind = max((self._chain[k] for k in self._next[i]), default=0)
            self._chain[i] = shards[i].expected + behind
        self._ready = [(-self._chain[i], i) for i, n in enumerate(self._missing) if not n]
        heapq.heapify(self._ready)

    def pop(self) -> int | None:
        """The number of the next one; None where others must be done before."""
        return heapq.heappop(self._ready)[1] if self._ready else None

    def done(self, shard: int) -> None:
        """A shard is found."""
        for i in self._next[shard]:
            self._missing[i] -= 1
            if not self._missing[i]:
                heapq.heappush(self._ready, (-self._chain[i], i))
