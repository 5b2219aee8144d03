"""The requests to the stages of a level, and the shards in which the level is searched.

Neighbouring small stages are combined into shards of about `SHARD_STATES` states. The size of a
large stage is estimated from a sample of its requested keys, and the stage is cut along a grid into
boxes of about that size (`solver.search.stages`). A box can be searched once the requests of all
boxes that may lead to it are known; boxes are ordered so that none leads to an earlier one. The
shards depend on the requests alone, not on the workers.

A request (`Ask`) has the requested keys and the box that contains them. The driver keeps requests
compressed until their stage is found.
"""

from __future__ import annotations

import heapq
import math
from array import array
from bisect import bisect
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from luckbase.cluster.machine import cores
from luckbase.cluster.store.storage import in_threads
from luckbase.solver.game.arrays import Ints
from luckbase.solver.search import stages
from luckbase.solver.search.keys import NO_KEYS, Keys, merged
from luckbase.solver.search.runs import Runs
from luckbase.solver.search.stages import WHOLE, Box, Stages

SHARD_STATES = 100_000
"""Target number of states of a shard: less than a tenth of a second of work. Shards of four fifths
this size take 7% more time a state, and as long on 128 cores. Searches that were cut otherwise
could not be resumed, so another number is another `FORMAT`."""
FIND_BYTES, SWEEP_BYTES, LEAST_BYTES = 160, 150, 64 << 20
"""Bytes for each state of the box that is being found; for each state of a shard that is being
solved; minimum bytes of a task."""
MAX_BOXES = 4096
"""Approximate maximum number of boxes of a stage: dependencies are computed for all pairs."""
FEW, EARLY = 2000, 4
"""A box expected to have fewer than FEW states may have millions, as below a root. It is cut EARLY
times earlier."""
BURST = 2
"""Stages are combined only if they would have at most this many times `SHARD_STATES` states should
they burst."""
MAX_GROWTH = 4.0
DEEPEST = 8
"""Boxes can be cut again this many times; after that, one task finds all of the rest, because the
length of names must be bounded."""
CODEC = pa.Codec("zstd", 1)
SPARSE_BITS = 8
"""One key in 256 is in the sample by which stages are cut. The choice depends on the key alone, so
all requesters sample the same keys."""
LEAST_SAMPLE = 8
"""Minimum number of sampled keys: a stage with few requests needs its sample most."""
Path = tuple[int, ...]
"""A shard's number in its level, followed by the part's number for each time it was cut again."""
Asker = tuple[int, Path]
"""The level of a shard that requests keys, and its path in the level."""


# --- requests ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ask:
    """A shard's request to a stage."""

    stage: int  # number of the stage
    box: Box  # contains all requested keys
    sampled: int  # number of keys in the sample
    sample: bytes  # the sampled keys, ascending and compressed
    count: int
    runs: int
    """Number of requested keys, and of their runs."""
    packed: bytes  # the runs' keys and members, compressed


def ask_of(stages: Stages, stage: int, runs: Runs, bits: int | None) -> Ask:
    """Return a request for some states of a stage. bits: as in `sample_of`; None for no sample."""
    keys = runs.all_keys()
    in_sample = NO_KEYS if bits is None else sample_of(keys, bits)
    sample, packed = packed_keys(in_sample), packed_keys(runs.keys, runs.members)
    return Ask(
        stage, stages.around(keys), len(in_sample), sample, len(keys), len(runs.keys), packed
    )


def packed_keys(*lists: Keys) -> bytes:
    """Return lists of keys as one compressed string."""
    keys = np.concatenate(lists)
    if not len(keys):
        return b""
    packed: bytes = CODEC.compress(np.diff(keys, prepend=np.uint64(0)), asbytes=True)
    return packed


def sample_of(keys: Keys, bits: int) -> Keys:
    """Return a sample of about one in 2**bits of the keys (n,), chosen by a hash of the key; at
    least `LEAST_SAMPLE` keys if there are as many."""
    sample = keys[_sampled(keys, bits)]
    if len(sample) < LEAST_SAMPLE:
        sample = keys[np.sort(np.argsort(_mixed(keys))[:LEAST_SAMPLE])]
    return sample


def count_by(sample: Keys, bits: int) -> int:
    """Estimate a number of keys from their sample."""
    return int(_sampled(sample, bits).sum()) << bits


def _sampled(keys: Keys, bits: int) -> NDArray[np.bool_]:
    """Mask of the keys (n,) that are in every sample."""
    sampled: NDArray[np.bool_] = _mixed(keys) >> np.uint64(64 - bits) == 0
    return sampled


def _mixed(keys: Keys) -> Keys:
    return (keys ^ (keys >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)


def unpacked(packed: Any, *counts: int) -> Keys:
    """Decompress the keys of concatenated requests. counts: number of keys of each request."""
    if not any(counts):
        return NO_KEYS
    plain = CODEC.decompress(packed, decompressed_size=8 * sum(counts))
    keys = np.cumsum(np.frombuffer(plain, np.uint64), dtype=np.uint64)
    if len(counts) > 1:  # the differences of each request begin at 0
        before = np.append(np.uint64(0), keys)[np.cumsum((0, *counts[:-1]))]
        keys -= np.repeat(before, counts)
    return keys


def requested_runs(asks: Sequence[Ask], stages: Stages) -> tuple[Runs, Ints]:
    """Return the runs (n,) of all requests, in order, and the index of each run's request (n,)."""
    counts = np.array([ask.runs for ask in asks], np.int64)
    rows = unpacked(b"".join(ask.packed for ask in asks), *(2 * counts).tolist())
    is_key = np.repeat(np.tile([True, False], len(asks)), np.repeat(counts, 2))
    runs = Runs(rows[is_key], rows[~is_key], stages.run_low)
    return runs, np.repeat(np.arange(len(asks)), counts)


class Request(NamedTuple):
    """A shard's request. order: among all requests to a stage, from the highest level down."""

    order: tuple[int, Path, int]
    asker: Asker
    ask: Ask


@lru_cache(1 << 16)
def number_of(path: Path) -> str:
    """Return a path as it appears in file names."""
    return ".".join(map(str, path))


class LevelShard(NamedTuple):
    """A shard of a level: some of its stages, or a box of them."""

    path: Path
    stages: tuple[int, ...]
    box: Box
    expected: int  # estimated number of states
    after: tuple[int, ...] = ()
    """Indices, in a list of shards, of the shards that must be found before."""
    burst: int = 0
    """Number of states if it grows as fast as the fastest-growing stage of the level above."""

    @property
    def cut(self) -> tuple[list[int], list[list[int]]]:
        return list(self.stages), [] if self.box.whole else [[self.box.low, self.box.high]]

    @property
    def likely(self) -> int:
        return max(self.expected, self.burst)


@dataclass(frozen=True)
class Growth:
    """How much a level grew; used to estimate the next one."""

    growth: float = 1.0  # states for each requested state, at most `MAX_GROWTH`
    most: float = math.inf
    """The same for the stage that grew most; infinite below roots, where there may be millions."""
    largest: int = 0  # the largest number of states of a stage


def growth_of(
    shards: Sequence[LevelShard], states: Sequence[int], requested_of: Callable[[int], int]
) -> Growth:
    """Return a level's growth from the states of its shards. requested_of: as in `Demand`."""
    counts: dict[tuple[int, ...], int] = {}
    for shard, n in zip(shards, states, strict=True):
        counts[shard.stages] = counts.get(shard.stages, 0) + n
    requested = {stages: sum(map(requested_of, stages)) for stages in counts}
    fewest = max(1, SHARD_STATES // 128)  # a few more are not a burst
    most = max(n / max(fewest, requested[stages]) for stages, n in counts.items())
    growth = sum(states) / sum(requested.values())
    return Growth(min(MAX_GROWTH, growth), most, max(counts.values()))


Cut = list[tuple[Box, int]]
"""The boxes into which a stage is cut, each with its estimated number of states."""


class Demand:
    """The requests to stages that are not searched yet."""

    def __init__(self, stages: Stages, roots: Keys) -> None:
        """roots: keys of the search's roots."""
        self.stages = stages
        of_roots = stages.of(roots)
        numbers, counts = np.unique(of_roots, return_counts=True)
        self._total = dict(zip(numbers.tolist(), counts.tolist(), strict=True))
        self._max_count = dict(self._total)
        self._roots = {
            stage: sample_of(roots[of_roots == stage], SPARSE_BITS) for stage in self._total
        }
        self._asks: defaultdict[int, list[Request]] = defaultdict(list)
        """The requests to each stage, in order."""
        self._ends: defaultdict[int, array[int]] = defaultdict(lambda: array("Q"))
        """The low and high ends of the requests' boxes, for each stage."""
        self._samples: dict[int, Keys] = {}

    def add(self, asker: Asker, asks: Iterable[Ask]) -> None:
        """Add the requests of a shard that was searched."""
        for ask in asks:
            order = -asker[0], asker[1], ask.stage
            request, others = Request(order, asker, ask), self._asks[ask.stage]
            position, ends = bisect(others, request), array("Q", (ask.box.low, ask.box.high))
            others.insert(position, request)
            self._ends[ask.stage][2 * position : 2 * position] = ends
            if ask.stage >> 32 != asker[0]:
                self._total[ask.stage] = self._total.get(ask.stage, 0) + ask.count
                most = max(self._max_count.get(ask.stage, 0), ask.count)
                self._max_count[ask.stage] = most

    def highest(self) -> int | None:
        """Return the highest level with requests; None at the end."""
        return max((stage >> 32 for stage in self._total), default=None)

    def _stages(self, level: int) -> list[int]:
        return sorted(stage for stage in self._total if stage >> 32 == level)

    def requested_of(self, stage: int) -> int:
        """Estimate how many states of a stage higher levels request; duplicates count once."""
        count = count_by(self._sample(stage), SPARSE_BITS)
        return int(min(self._total[stage], max(self._max_count[stage], count)))

    def _sample(self, stage: int) -> Keys:
        """Return the sample of the keys of a stage that roots and higher levels request. All of
        these must have been searched."""
        if stage not in self._samples:
            asks = [each.ask for each in self._asks[stage] if each.asker[0] != stage >> 32]
            packed = b"".join(ask.sample for ask in asks)
            sample = unpacked(packed, *(ask.sampled for ask in asks))
            self._samples[stage] = merged([sample, self._roots.get(stage, NO_KEYS)])
        return self._samples[stage]

    def done(self, level: int) -> None:
        """Forget the requests to a level that was searched."""
        for counts in (self._total, self._max_count, self._asks, self._ends, self._samples):
            for stage in [stage for stage in counts if stage >> 32 == level]:
                del counts[stage]

    def shards(self, level: int, above: Growth) -> list[LevelShard]:
        """Return the shards of a level, assuming that it grows as the level above did. Cut its
        large stages in threads."""
        shards: list[LevelShard] = []
        together: list[int] = []
        states = burst = 0
        requested = {stage: self.requested_of(stage) for stage in self._stages(level)}
        sizes = {stage: round(keys * above.growth) for stage, keys in requested.items()}
        large = self._large_stages(sizes)
        cut = in_threads(lambda stage: self._cut(stage, sizes[stage]), large, cores())
        cuts = dict(zip(large, cut, strict=True))
        for stage, size in sizes.items():
            boxes = cuts.get(stage, [])
            at_most = round(min(above.largest, requested[stage] * above.most))
            if together and max(states + size, (burst + at_most) // BURST) > SHARD_STATES:
                shards.append(_together(len(shards), together, states, burst))
                together, states, burst = [], 0, 0
            if len(boxes) > 1:
                shards += boxes_in_order(self.stages, (stage,), boxes, len(shards))
            else:
                together, states, burst = [*together, stage], states + size, burst + at_most
        if together:
            shards.append(_together(len(shards), together, states, burst))
        return shards

    def _cut(self, stage: int, states: int) -> Cut:
        """Cut a large stage. states: its estimated number of states."""
        boxes = min(MAX_BOXES, -(-states // SHARD_STATES))
        keys = stages.sample_below(self.stages, stage, self._sample(stage))
        return stages.cut(self.stages, keys, boxes, states)

    def _large_stages(self, sizes: Mapping[int, int]) -> list[int]:
        """Return the stages to cut. sizes: estimated number of states of each stage."""
        is_cut = bool(self.stages.level.inside)
        return [stage for stage, size in sizes.items() if is_cut and size > SHARD_STATES]

    def requests_for(self, shard: LevelShard) -> list[Request]:
        """Return the requests that may concern a shard, from the highest level down."""
        asks = list[Request]()
        for stage in shard.stages:
            requests = self._asks[stage]
            if not shard.box.whole:
                ends = np.array(self._ends[stage], np.uint64).reshape(-1, 2)
                meets = self.stages.meeting(shard.box, *ends.T)
                requests = [requests[i] for i in np.flatnonzero(meets).tolist()]
            asks += requests
        return sorted(asks) if len(shard.stages) > 1 else asks


def max_states(shard: LevelShard) -> int:
    """Return the number of states above which a shard is cut again; 0 for no limit."""
    if len(shard.path) >= DEEPEST:
        return 0
    return stages.CACHED // (EARLY if shard.expected < FEW else 1)


def _together(place: int, stages: Sequence[int], states: int, burst: int) -> LevelShard:
    return LevelShard((place,), tuple(stages), WHOLE, states, burst=burst)


def boxes_in_order(
    stages: Stages,
    numbers: tuple[int, ...],
    boxes: Sequence[tuple[Box, int]],
    first: int,
    above: Path = (),
) -> list[LevelShard]:
    """Return shards for boxes of some stages.

    boxes: boxes with their estimated states.
    first: index of the first shard in the list.
    above: path of the shard that was cut. Its parts are numbered from 0; other boxes by their index
        in the level.
    """
    after = _neighbours(stages, [box for box, _ in boxes])
    return [
        LevelShard(
            (*above, i if above else first + i), numbers, box, states,
            tuple(first + k for k in after[i]),
        )
        for i, (box, states) in enumerate(boxes)
    ]  # fmt: skip


def _neighbours(stages: Stages, boxes: Sequence[Box]) -> list[list[int]]:
    """For each box, return the earlier boxes that lead to it directly; waiting for these includes
    waiting for all others."""
    if not boxes:
        return []
    leads = np.packbits(np.triu(stages.leads(boxes, boxes), 1), axis=0, bitorder="little")
    neighbours: list[list[int]] = []
    before: list[int] = []  # for each box, all boxes that lead to it, one bit each
    for column in leads.T:
        remaining = all_before = int.from_bytes(column.tobytes(), "little")
        neighbours.append([])
        while remaining:
            last = remaining.bit_length() - 1
            neighbours[-1].append(last)
            remaining &= ~(before[last] | 1 << last)
        before.append(all_before)
    return [row[::-1] for row in neighbours]


class Order:
    """The order in which the shards of a level are searched.

    The next shard is the one with the longest chain of shards waiting for it, counted in states.

    shards: all shards, including those added later.
    """

    def __init__(self, shards: Sequence[LevelShard]) -> None:
        self.shards = list(shards)
        self._missing = [len(shard.after) for shard in shards]
        self._next: list[list[int]] = [[] for _ in shards]
        for i, shard in enumerate(shards):
            for before in shard.after:
                self._next[before].append(i)
        self._chain = [0] * len(shards)
        for i in range(len(shards) - 1, -1, -1):
            behind = max((self._chain[k] for k in self._next[i]), default=0)
            self._chain[i] = shards[i].likely + behind
        self._ready = [(-self._chain[i], i) for i, n in enumerate(self._missing) if not n]
        heapq.heapify(self._ready)

    def pop(self) -> int | None:
        """Return the index of the next shard; None if all others still wait."""
        return heapq.heappop(self._ready)[1] if self._ready else None

    def done(self, shard: int, remaining: Sequence[LevelShard] = ()) -> None:
        """Note that a shard is found, or was cut into `remaining`. `remaining` is appended to the
        list. Shards that waited for the cut one wait for its parts."""
        waiting, first = self._next[shard], len(self.shards)
        if not remaining:
            for i in waiting:
                self._missing[i] -= 1
                if not self._missing[i]:
                    heapq.heappush(self._ready, (-self._chain[i], i))
            return
        behind = max((self._chain[i] for i in waiting), default=0)
        for count in remaining:
            self.shards.append(count)
            self._missing.append(len(count.after))
            self._next.append(list(waiting))
            self._chain.append(count.likely + behind)
        for i in waiting:
            self._missing[i] += len(remaining) - 1
        for i in range(first, len(self.shards)):
            for before in self.shards[i].after:
                self._next[before].append(i)
            if not self._missing[i]:
                heapq.heappush(self._ready, (-self._chain[i], i))
