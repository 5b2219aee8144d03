"""The files that a search keeps on disk between its two passes: found going down, solved going up.

A **stage file** holds a shard's states (`solver.search.stages.Stage`) as an Arrow record batch with
one row, whose columns are lists. Integers are stored as differences between neighbours, and child
numbers as `stage_kernels.steps_of` returns them, because both compress well. The whole batch is
compressed at once (zstd level 1), because starting a compression takes longer than compressing a
column. The uncompressed length comes first.

An `Ask` is a shard's request to a stage, either of a lower level or of another box of its own
stage: the requested keys, stored in the same way, and the box that contains them. The driver keeps
requests compressed until their stage is found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from luckbase.cluster.store.format import lists_of, numbers_of
from luckbase.solver.game.arrays import Ints
from luckbase.solver.search import stage_kernels
from luckbase.solver.search.keys import NO_KEYS, Keys
from luckbase.solver.search.runs import Runs
from luckbase.solver.search.stage_kernels import Order, Patterns
from luckbase.solver.search.stages import Box, Stage, Stages, first_edges

NO_NUMBERS = np.empty(0, np.int32)
_CODEC = pa.Codec("zstd", 1)
_I, _N, _U, _F = pa.int64(), pa.int32(), pa.uint64(), pa.float64()
_KINDS: Mapping[str, Any] = {
    "runs": _U, "order": _N, "patterns": _N,
    "loops": _I,
    "wanted_stages": _U, "wanted_sizes": _I, "wanted_runs": _U,
    "first": _I, "actors": _I, "weights": _F, "actions": _I, "rewards": _F,
    "payoffs": _F, "counts": _I, "bits": _U, "steps": pa.int8(), "far": _N,
}  # fmt: skip
SCHEMA = pa.schema([(name, pa.large_list(kind)) for name, kind in _KINDS.items()])
_STEPS = "steps", "far"
SPARSE_BITS = 8
"""One key in 256 is in the sample by which stages are cut. The choice depends on the key alone, so
all requesters sample the same keys."""
LEAST_SAMPLE = 8
"""Minimum number of sampled keys: a stage with few requests needs its sample most."""


def _one_row(array: NDArray[Any], kind: Any) -> pa.Array:
    flat = np.ascontiguousarray(array).reshape(-1)
    if flat.dtype.kind in "iu":
        flat = np.diff(flat, prepend=flat.dtype.type(0))
    return lists_of([flat], np.dtype(str(kind)))  # `to_pandas_dtype` may import pandas


def _array(batch: pa.RecordBatch, name: str) -> NDArray[Any]:
    values: NDArray[Any] = numbers_of(batch.column(name).flatten())
    if values.dtype.kind in "iu":
        values = np.cumsum(values, dtype=values.dtype)
    return np.array(values) if not values.flags.writeable else values


def write_stage(path: Path, stage: Stage) -> None:
    plain = _batch(stage).serialize()
    path.write_bytes(plain.size.to_bytes(8, "little") + _CODEC.compress(plain, asbytes=True))


def _batch(stage: Stage) -> pa.RecordBatch:
    states, shared, own_runs = stage.states, stage.patterns, stage.own
    requests = stage.requests
    sizes = [(len(runs.keys), len(numbers)) for _, runs, numbers in requests]
    wanted = [runs[:2] for _, runs, _ in requests]
    columns: dict[str, NDArray[Any]] = {
        "runs": np.array(own_runs[:2]), "order": states.order, "patterns": states.patterns,
        "loops": stage.loops,
        "wanted_stages": np.array([number for number, _, _ in requests], np.uint64),
        "wanted_sizes": np.array(sizes, np.int64),
        "wanted_runs": np.concatenate([(NO_KEYS, NO_KEYS), *wanted], axis=1),
        "first": shared.first, "actors": shared.actors, "weights": shared.weights,
        "actions": shared.actions, "rewards": shared.rewards, "payoffs": shared.payoffs,
        "counts": np.array([stage.edges, shared.payoffs.shape[1]], np.int64),
        "bits": np.array([stage.alike, own_runs.low], np.uint64),
    }  # fmt: skip
    edges = len(states.children)
    steps, far = np.empty(edges, np.int8), np.empty(edges, np.int32)
    far_count = stage_kernels.steps_of(
        stage.keys, np.uint64(stage.alike), states.first, states.children, steps, far
    )
    arrays = [_one_row(array, _KINDS[name]) for name, array in columns.items()]
    arrays += [lists_of([steps], np.int8), lists_of([far[:far_count]], np.int32)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def read_stage(content: bytes) -> Stage:
    size = int.from_bytes(content[:8], "little")
    plain = _CODEC.decompress(memoryview(content)[8:], decompressed_size=size)
    batch = pa.ipc.read_record_batch(plain, SCHEMA)
    read = {name: _array(batch, name) for name in _KINDS if name not in _STEPS}
    edges, players = read["counts"].tolist()
    patterns = Patterns(
        NO_NUMBERS, NO_KEYS, read["first"], read["actors"], read["weights"], read["actions"],
        read["rewards"].reshape(-1, players), read["payoffs"].reshape(-1, players),
    )  # fmt: skip
    first = first_edges(patterns.first, read["patterns"])
    steps, far = (numbers_of(batch.column(name).flatten()) for name in _STEPS)
    alike, run_low = read["bits"].tolist()
    states = Order(read["order"], first, read["patterns"], np.empty(len(steps), np.int32))
    n, sizes = len(states.order), read["wanted_sizes"].reshape(-1, 2)
    ends = sizes.cumsum(axis=0)[:-1].T
    outside = np.arange(n, n + sizes[:, 1].sum(), dtype=np.int32)
    wanted = np.split(read["wanted_runs"].reshape(2, -1), ends[0], axis=1)
    runs, numbers = [_runs(rows, run_low) for rows in wanted], np.split(outside, ends[1])
    stage = Stage(
        _runs(read["runs"], run_low), states, patterns, read["loops"].reshape(-1, 2),
        list(zip(read["wanted_stages"].tolist(), runs, numbers, strict=False)), edges,
        alike,
    )  # fmt: skip
    kernel = stage_kernels.from_steps
    kernel(stage.keys, np.uint64(alike), first, steps, far, states.children)
    return stage


@dataclass(frozen=True)
class RequestedKeys:
    """The keys of an `Ask`.

    count: number of keys.
    runs: number of runs.
    packed: the runs' keys and members, compressed.
    """

    count: int
    runs: int
    packed: bytes


@dataclass(frozen=True)
class Ask:
    """A shard's request to a stage.

    stage: number of the stage.
    box: contains all requested keys.
    sampled: number of keys in the sample.
    sample: the sampled keys, ascending and compressed.
    keys: all requested keys.
    """

    stage: int
    box: Box
    sampled: int
    sample: bytes
    keys: RequestedKeys


def ask_of(stages: Stages, stage: int, runs: Runs, bits: int | None) -> Ask:
    """Return a request for some states of a stage. bits: as in `sample_of`; None for no sample."""
    keys = runs.all_keys()
    in_sample = NO_KEYS if bits is None else sample_of(keys, bits)
    sample, packed = packed_keys(in_sample), packed_keys(runs.keys, runs.members)
    requested = RequestedKeys(len(keys), len(runs.keys), packed)
    box = stages.around(keys if stages.run_is_set else runs.ends())
    return Ask(stage, box, len(in_sample), sample, requested)


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


def requested_runs(asks: Sequence[RequestedKeys], stages: Stages) -> tuple[Runs, Ints]:
    """Return the runs (n,) of all requests, in order, and the index of each run's request (n,)."""
    counts = np.array([ask.runs for ask in asks], np.int64)
    rows = unpacked(b"".join(ask.packed for ask in asks), *(2 * counts).tolist())
    is_key = np.repeat(np.tile([True, False], len(asks)), np.repeat(counts, 2))
    runs = Runs(rows[is_key], rows[~is_key], stages.run_low)
    return runs, np.repeat(np.arange(len(asks)), counts)


def _runs(rows: Keys, low: int) -> Runs:
    keys, members = rows.reshape(2, -1)
    return Runs(keys, members, low)
