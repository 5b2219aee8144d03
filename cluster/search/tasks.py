"""The tasks that workers run for a search by stages: find the states of a shard, and later solve
them.

A shard is either some small stages of the same level, which are independent of each other, or a box
of a large stage. `Find` takes the requests of other shards and leaves a
stage file on its machine's disk. `Sweep` takes the payoff tables of the shards that it reads,
returns its own, and writes the shard's file of the table. A payoff table has rows of a key and
payoffs, ascending by key; an additional first row begins with the bound on their error.
"""

from __future__ import annotations

import hashlib
import io
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from luckbase.cluster.search.shards import (
    CODEC,
    Ask,
    Asker,
    LevelShard,
    ask_of,
    requested_runs,
)
from luckbase.cluster.solve.worker import (
    Out,
    PayoffsLostError,
    Receipt,
    Steps,
    Stop,
    TableLocation,
    Task,
    writable,
)
from luckbase.cluster.store.format import (
    PayoffTable,
    numbers_of,
    payoff_columns,
    stored_payoffs,
    write_states,
)
from luckbase.cluster.store.manifest import SHARDS, FileEntry, placed
from luckbase.cluster.store.parquet import row_groups
from luckbase.cluster.store.storage import Storage
from luckbase.solver.board.model import Board
from luckbase.solver.compiled import LazyFunction, compile_all
from luckbase.solver.errors import CorruptTableError
from luckbase.solver.game.arrays import Floats
from luckbase.solver.game.game import load_game
from luckbase.solver.game.rules import level_from
from luckbase.solver.search import runs, sweep
from luckbase.solver.search import stage_kernels as kernels
from luckbase.solver.search.bellman import OVER, final_payoffs, matrix_game_solver
from luckbase.solver.search.keys import NO_KEYS, Keys, unpack_all
from luckbase.solver.search.runs import Runs
from luckbase.solver.search.stage_kernels import Order, Patterns
from luckbase.solver.search.stages import Box, BoxSearch, Stage, Stages, first_edges


@lru_cache(maxsize=2)
def stages_of(board: Board, level: str) -> Stages:
    """Return the stages of a board's game by a level, given as JSON. Cached between shards."""
    return Stages(load_game(board), level_from(json.loads(level)))


@dataclass(frozen=True)
class _StageJob:
    """Fields that all tasks have: the board, the table's location, and the level as JSON."""

    board: Board
    location: TableLocation
    level: str

    def compile(self) -> None:
        game = load_game(self.board)
        transition = [each for each in (game.transition,) if isinstance(each, LazyFunction)]
        compile_all(
            *transition, matrix_game_solver(game), runs.number_runs, runs.count_runs,
            runs.ranks_of, runs.keys_in, kernels.enter, kernels.expand_on, kernels.ordered,
            kernels.renumber, kernels.shift_children, sweep.sweep_on, sweep.join,
        )  # fmt: skip


@dataclass(frozen=True)
class FoundShard:
    """A shard whose states were found."""

    shard: LevelShard
    rows: int  # number of states
    edges: int  # number of expanded edges
    seconds: float  # core seconds
    place: str = ""
    sha256: str = ""
    """Place and hash of its stage file; empty for a shard without states."""
    askers: tuple[Asker, ...] = ()  # the shards that request states of it


@dataclass(frozen=True)
class Find(_StageJob):
    """Find the states of a shard."""

    name: str  # of the shard
    shard: LevelShard
    roots: Keys  # roots of the search in these stages
    asks: tuple[Ask, ...]  # the requests of other shards to these stages
    max_states: int
    """A box with more states is cut again and its parts left to other tasks; 0 for no limit."""
    most: int  # number of states that fit into memory
    sparse: int  # bits of the sample of its requests, as in `shards.sample_of`

    def run(self, task: Task, payoffs: Sequence[Any], out: Out, stop: Stop) -> Steps:
        started = time.perf_counter()
        stages, numbers, box = stages_of(self.board, self.level), self.shard.stages, self.shard.box
        requested, of_ask = requested_runs(self.asks, stages)
        roots, members = stages.runs_of(self.roots), stages.within(requested, box)
        lists = [roots.only(stages.within(roots, box)), requested.only(members)]
        search = BoxSearch(
            stages, numbers[0] >> 32, lists, box, expected=self.shard.likely, most=self.most
        )
        parts = search.run(stop, self.max_states)
        shard, asks = FoundShard(self.shard, 0, 0, 0.0), list[Ask]()
        if not parts and (rows := len((stage := search.stage()).states.order)):
            asks = [
                ask_of(stages, number, runs, None if number in numbers else self.sparse)
                for number, runs in stage.requests
            ]
            place = placed(f"{SHARDS}{self.name}.arrow", self.location.writer)
            content = packed_stage(stage)
            self.location.keep(place, content)
            digest = hashlib.sha256(content).hexdigest()
            shard = FoundShard(self.shard, rows, stage.edges, 0.0, place, digest)
        seconds = time.perf_counter() - started
        receipt = FindReceipt(
            shard=task.shard, solve_seconds=seconds, stage_file=shard.place,
            found=replace(shard, seconds=seconds),
            used_asks=[] if parts else np.unique(of_ask[members != 0]).tolist(), asks=asks,
            parts=tuple(parts),
        )  # fmt: skip
        yield None
        yield receipt, None


@dataclass(frozen=True, kw_only=True)
class FindReceipt(Receipt):
    """The result of a `Find`."""

    found: FoundShard
    used_asks: list[int]  # indices of the asks that concerned it
    asks: list[Ask]  # its own
    parts: tuple[Box, ...]  # boxes left to other tasks; together they are the whole shard


@dataclass(frozen=True)
class Sweep(_StageJob):
    """Solve a shard."""

    found: FoundShard
    below: tuple[tuple[Sequence[int], Box], ...]  # stages and box of each shard that it reads
    file: str  # name of the table's file that it writes
    error: float  # error bound of payoffs, without the gaps of cycles
    commit: bool  # write the file
    stored: FileEntry | None = None  # the committed file, if payoffs are only to be read back

    def run(self, task: Task, payoffs: Sequence[Any], out: Out, stop: Stop) -> Steps:
        started = time.perf_counter()
        game, name = load_game(self.board), self.found.place
        stored = [] if self.stored is None else [self.stored.place]
        source = self.location.source(stored)
        content = self.location.read(name)
        if content is None:
            raise PayoffsLostError(f"{name} is on no disk any more; the solved parts are kept")
        if hashlib.sha256(content).hexdigest() != self.found.sha256:
            raise CorruptTableError(f"{name}: is not as luckbase wrote it; run the command again")
        shape = self.found.rows + 1, 1 + game.players
        rows, table = np.empty(shape) if out is None else out, None
        stage = read_stage(content)
        del content
        if self.stored is not None:
            self._read_back(stage, source, self.stored, rows)
        else:
            tables = [writable(read).reshape(-1, rows.shape[1]) for read in payoffs]
            table = self._solve(stage, tables, rows, stop)
        del stage
        error, seconds = float(rows[0, 0]), time.perf_counter() - started
        yield rows if task.keep is not None else None
        receipt = Receipt(shard=task.shard, solve_seconds=seconds)
        if not self.commit or table is None or not len(table):
            yield receipt, None
            return
        stages, boxes = self.found.shard.cut
        with self.location.storage() as storage:
            file = write_states(storage, self.file, game, table, error, stages=stages, boxes=boxes)
            done = receipt.with_files(storage, self.location.writer, [file])
        yield done

    def _solve(
        self, stage: Stage, tables: Sequence[Floats], rows: Floats, stop: Stop
    ) -> PayoffTable:
        """Fill `rows`. Return the rows for the table, without terminal states."""
        stages = stages_of(self.board, self.level)
        game = stages.game
        read = [(frozenset(numbers), box, table[1:])
                for (numbers, box), table in zip(self.below, tables, strict=True)]  # fmt: skip
        below = [
            [(box, table) for numbers, box, table in read if number in numbers]
            for number, _ in stage.requests
        ]
        done = sweep.solve_stage(stages, stage, below, game.tie_tolerance, stop)
        if done is None:
            raise CorruptTableError(f"{self.file}: payoffs that it needs are missing")
        rows[1:], rows[0] = done.values, 0.0
        error = max([self.error, *(float(table[0, 0]) for table in tables)])
        error += float(done.errors.max(initial=0.0))
        rows[0, 0] = min(error, np.ptp(game.payoff_range))
        solves = done.best != OVER
        kept = slice(None) if solves.all() else np.flatnonzero(solves)
        return PayoffTable(  # not `rows`, which may be overwritten before the file is written
            stage.keys[kept], done.values[:, 1:][kept], done.best[kept],
            done.margins[kept], done.actors[kept],
        )  # fmt: skip

    def _read_back(self, stage: Stage, source: Storage, stored: FileEntry, rows: Floats) -> None:
        """Fill `rows` from the committed file; compute terminal states from the rules. Raises
        CorruptTableError."""
        game, keys, names = load_game(self.board), stage.keys, payoff_columns(load_game(self.board))
        rows[1:, 0], is_over = keys.view(np.float64), np.ones(len(keys), bool)
        for read in row_groups(source, self.location.table, [stored], ["key", *names]):
            stored_keys = numbers_of(read.column("key"))
            at = np.searchsorted(keys, stored_keys)
            if not np.array_equal(keys[np.minimum(at, len(keys) - 1)], stored_keys):
                raise CorruptTableError(f"{stored.place}: has other states than its search found")
            rows[1 + at, 1:] = stored_payoffs(read, game, self.location.table / stored.place)
            is_over[at] = False
        over = np.flatnonzero(is_over)
        rows[1 + over, 1:] = final_payoffs(game, unpack_all(game.strides, keys[over]))
        rows[0] = 0.0
        rows[0, 0] = stored.error


# --- stage files ---------------------------------------------------------------------------------

# A stage file holds a shard's states (`solver.search.stages.Stage`): its arrays, as numpy saves
# them, one after the other. Integers are stored as differences between neighbours, and child
# numbers as differences between neighbouring states (`stage_kernels.shift_children`), because both
# compress well. All arrays are compressed at once (zstd level 1), because starting a compression
# takes longer than compressing an array. The uncompressed length comes first. An archive would
# compute a checksum of each array, although the driver knows the file's hash.


def _differences(array: NDArray[Any]) -> NDArray[Any]:
    return np.diff(array.ravel(), prepend=array.dtype.type(0)).reshape(array.shape)


def _sums(differences: NDArray[Any]) -> NDArray[Any]:
    sums: NDArray[Any] = np.cumsum(differences, dtype=differences.dtype)
    return sums.reshape(differences.shape)


def packed_stage(stage: Stage) -> bytes:
    """Return the content of a stage file."""
    states, shared, requests = stage.states, stage.patterns, stage.requests
    wanted = [runs[:2] for _, runs in requests]
    integers = (
        np.array(stage.own[:2]), states.order, states.patterns, stage.loops,
        np.array([number for number, _ in requests], np.uint64),
        np.array([len(runs.keys) for _, runs in requests], np.int64),
        np.concatenate([(NO_KEYS, NO_KEYS), *wanted], axis=1),
        shared.first, shared.actors, shared.actions,
    )  # fmt: skip
    shifted = np.empty_like(states.children)
    kernels.shift_children(states.first, states.children, states.children, -1, shifted)
    others = shared.weights, shared.rewards, shared.payoffs, shifted
    numbers = np.array([stage.edges, stage.own.low], np.uint64)
    arrays: list[NDArray[Any]] = [numbers, *others, *map(_differences, integers)]
    file = io.BytesIO()
    for array in arrays:
        np.save(file, array)
    plain = file.getvalue()
    packed: bytes = CODEC.compress(plain, asbytes=True)
    return len(plain).to_bytes(8, "little") + packed


def read_stage(content: bytes) -> Stage:
    """Return the stage in a file."""
    size = int.from_bytes(content[:8], "little")
    plain = CODEC.decompress(memoryview(content)[8:], decompressed_size=size)
    file = io.BytesIO(plain)
    numbers, weights, rewards, payoffs, children, *integers = (np.load(file) for _ in range(15))
    edges, low = numbers.tolist()
    own, order, shared, loops, stages, sizes, wanted, first_of, actors, actions = map(
        _sums, integers
    )
    patterns = Patterns(
        np.empty(0, np.int32), NO_KEYS, first_of, actors, weights, actions, rewards, payoffs
    )  # fmt: skip
    first = first_edges(first_of, shared)
    kernels.shift_children(first, children, children, 1, children)
    parts = np.split(wanted, sizes.cumsum()[:-1], axis=1)
    runs = [Runs(keys, members, low) for keys, members in parts]
    requests = list(zip(stages.tolist(), runs, strict=False))
    states = Order(order, first, shared, children)
    return Stage(Runs(own[0], own[1], low), states, patterns, loops, requests, edges)
