"""The files that a search keeps on disk between its two passes: found going down, solved going up.

A **stage file** holds a shard's states (`solver.search.stages.Stage`): its arrays, as numpy saves
them. Integers are stored as differences between neighbours, and child numbers as differences
between neighbouring states (`stage_kernels.shift_children`), because both compress well. All arrays
are compressed at once (zstd level 1), because starting a compression takes longer than compressing
an array. The uncompressed length comes first.

An `Ask` is a shard's request to a stage, either of a lower level or of another box of its own
stage: the requested keys, stored in the same way, and the box that contains them. The driver keeps
requests compressed until their stage is found.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from luckbase.solver.game.arrays import Ints
from luckbase.solver.search import stage_kernels
from luckbase.solver.search.keys import NO_KEYS, Keys
from luckbase.solver.search.runs import Runs
from luckbase.solver.search.stage_kernels import Order, Patterns
from luckbase.solver.search.stages import Box, Stage, Stages, first_edges

NO_NUMBERS = np.empty(0, np.int32)
_CODEC = pa.Codec("zstd", 1)
SPARSE_BITS = 8
"""One key in 256 is in the sample by which stages are cut. The choice depends on the key alone, so
all requesters sample the same keys."""
LEAST_SAMPLE = 8
"""Minimum number of sampled keys: a stage with few requests needs its sample most."""


def _differences(array: NDArray[Any]) -> NDArray[Any]:
    return np.diff(array.ravel(), prepend=array.dtype.type(0)).reshape(array.shape)


def _sums(differences: NDArray[Any]) -> NDArray[Any]:
    sums: NDArray[Any] = np.cumsum(differences, dtype=differences.dtype)
    return sums.reshape(differences.shape)


def packed_stage(stage: Stage) -> bytes:
    """Return the content of a stage file."""
    states, shared, requests = stage.states, stage.patterns, stage.requests
    wanted = [runs[:2] for _, runs, _ in requests]
    sizes = [(len(runs.keys), len(numbers)) for _, runs, numbers in requests]
    integers = (
        np.array(stage.own[:2]), states.order, states.patterns, stage.loops,
        np.array([number for number, _, _ in requests], np.uint64),
        np.array(sizes, np.int64).reshape(-1, 2),
        np.concatenate([(NO_KEYS, NO_KEYS), *wanted], axis=1),
        shared.first, shared.actors, shared.actions,
    )  # fmt: skip
    shifted = np.empty_like(states.children)
    stage_kernels.shift_children(states.first, states.children, states.children, -1, shifted)
    others = shared.weights, shared.rewards, shared.payoffs, shifted
    numbers = np.array([stage.edges, stage.own.low], np.uint64)
    np.savez(file := io.BytesIO(), numbers, *others, *map(_differences, integers))
    plain = file.getvalue()
    packed: bytes = _CODEC.compress(plain, asbytes=True)
    return len(plain).to_bytes(8, "little") + packed


def read_stage(content: bytes) -> Stage:
    """Return the stage in a file."""
    size = int.from_bytes(content[:8], "little")
    plain = _CODEC.decompress(memoryview(content)[8:], decompressed_size=size)
    with np.load(io.BytesIO(plain)) as file:
        numbers, weights, rewards, payoffs, children, *integers = (file[k] for k in file.files)
    edges, low = numbers.tolist()
    own, order, shared, loops, stages, sizes, wanted, first_of, actors, actions = map(
        _sums, integers
    )
    patterns = Patterns(
        NO_NUMBERS, NO_KEYS, first_of, actors, weights, actions, rewards, payoffs
    )  # fmt: skip
    first = first_edges(first_of, shared)
    stage_kernels.shift_children(first, children, children, 1, children)
    states, n = Order(order, first, shared, children), len(order)
    ends = sizes.cumsum(axis=0)[:-1].T
    outside = np.arange(n, n + sizes[:, 1].sum(), dtype=np.int32)
    runs = [Runs(keys, members, low) for keys, members in np.split(wanted, ends[0], axis=1)]
    requests = list(zip(stages.tolist(), runs, np.split(outside, ends[1]), strict=False))
    return Stage(Runs(own[0], own[1], low), states, patterns, loops, requests, edges)


@dataclass(frozen=True)
class Ask:
    """A shard's request to a stage.

    stage: number of the stage.
    box: contains all requested keys.
    sampled: number of keys in the sample.
    sample: the sampled keys, ascending and compressed.
    count, runs: number of requested keys, and of their runs.
    packed: the runs' keys and members, compressed.
    """

    stage: int
    box: Box
    sampled: int
    sample: bytes
    count: int
    runs: int
    packed: bytes


def ask_of(stages: Stages, stage: int, runs: Runs, bits: int | None) -> Ask:
    """Return a request for some states of a stage. bits: as in `sample_of`; None for no sample."""
    keys = runs.all_keys()
    in_sample = NO_KEYS if bits is None else sample_of(keys, bits)
    sample, packed = packed_keys(in_sample), packed_keys(runs.keys, runs.members)
    box = stages.around(keys if stages.run_is_set else runs.ends())
    return Ask(stage, box, len(in_sample), sample, len(keys), len(runs.keys), packed)


def packed_keys(*lists: Keys) -> bytes:
    """Return lists of keys as one compressed string."""
    keys = np.concatenate(lists)
    if not len(keys):
        return b""
    packed: bytes = _CODEC.compress(np.diff(keys, prepend=np.uint64(0)), asbytes=True)
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
    plain = _CODEC.decompress(packed, decompressed_size=8 * sum(counts))
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
