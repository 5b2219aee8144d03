"""What a worker does for a search by stages: find the states of a shard; later, solve them.

A shard is some small stages of one level, which have nothing to do with one another, or a box of a
large one, which `CutStage` cuts before. `Find` is handed what others ask it for, and leaves a stage
file on the disk of its machine; `Sweep` is handed the payoff tables of the shards that it asks, and
gives its own: rows of keys, ascending, and payoffs, the row in front beginning with the bound on
their error. It writes the table's file of that shard.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from luckbase.cluster.run.worker import (
    Out,
    PayoffsLostError,
    Receipt,
    Sent,
    Steps,
    Stop,
    TableLocation,
    writable,
)
from luckbase.cluster.search import files
from luckbase.cluster.search.files import Ask, RequestedKeys
from luckbase.cluster.search.shards import Asker, Cut, LevelShard, StageSample, cut_stage, ends_of
from luckbase.cluster.table.format import number_rows, numbers_of, payoff_columns
from luckbase.cluster.table.keyed import PayoffTable, write_states
from luckbase.cluster.table.manifest import SHARDS, FileEntry, placed
from luckbase.cluster.table.parquet import row_groups
from luckbase.cluster.table.storage import Storage
from luckbase.solver.board.model import Board
from luckbase.solver.compiled import Function, compile_all
from luckbase.solver.errors import CorruptTableError
from luckbase.solver.game.arrays import Floats
from luckbase.solver.game.game import Game, load_game
from luckbase.solver.game.rules import level_from
from luckbase.solver.search import runs, sweep
from luckbase.solver.search import stage_kernels as kernels
from luckbase.solver.search.bellman import OVER, final_payoffs, matrix_game_solver
from luckbase.solver.search.find_stages import BoxSearch
from luckbase.solver.search.keys import Keys, unpack_all
from luckbase.solver.search.stages import Box, Stage, Stages
from luckbase.solver.search.sweep import Sweeping


def warm_up_stages(game: Game) -> None:
    """Compile the two passes of a search by stages, or load them."""
    transition = [each for each in (game.transition,) if isinstance(each, Function)]
    compile_all(
        *transition, matrix_game_solver(game), runs.number_runs, runs.count_runs, runs.ranks_of,
        runs.keys_in, kernels.enter, kernels.expand_on, kernels.order_states, kernels.renumber,
        kernels.first_edges, kernels.steps_of, kernels.from_steps, sweep.sweep_on, sweep.join,
    )  # fmt: skip


@lru_cache(maxsize=2)
def stages_of(board: Board, level: str) -> Stages:
    """The stages of a board's game by a level, given as JSON; kept from one shard to the next."""
    return Stages(load_game(board), level_from(json.loads(level)))


@dataclass(frozen=True)
class _StageJob:
    """What both jobs have: the board, where its table lies, the level as JSON."""

    board: Board
    location: TableLocation
    level: str

    def compile(self) -> None:
        """Compile, or load, what it needs."""
        warm_up_stages(load_game(self.board))


@dataclass(frozen=True)
class CutStage(_StageJob):
    """To cut a stage. number: the task's."""

    number: int
    sample: StageSample

    def run(self, payoffs: Sequence[Any], sent: Sent, out: Out, stop: Stop) -> Steps:
        """Cut it."""
        started = time.perf_counter()
        yield None
        cut = cut_stage(stages_of(self.board, self.level), self.sample)
        seconds = time.perf_counter() - started
        yield StageCut(shard=self.number, solve_seconds=seconds, cut=cut), None


@dataclass(frozen=True, kw_only=True)
class StageCut(Receipt):
    """What came of a `CutStage`."""

    cut: Cut


@dataclass(frozen=True)
class FoundShard:
    """A shard whose states were found.

    rows: its states; edges: expanded; seconds: of one core. place, sha256: of its stage file, which
    a shard without states has not. askers: the shards that ask it.
    """

    shard: LevelShard
    rows: int
    edges: int
    seconds: float
    place: str = ""
    sha256: str = ""
    askers: tuple[Asker, ...] = ()


@dataclass(frozen=True)
class Find(_StageJob):
    """To search a shard. number: the task's. name: the shard's. roots: the search's in it. asks:
    the requests of others to these stages. max_states: of a box, 0 for no limit: one with more is
    cut, and its parts are left to others. most: states that the memory holds. sparse: bits, of the
    sample of what it requests.
    """

    number: int
    name: str
    shard: LevelShard
    roots: Keys
    asks: tuple[RequestedKeys, ...]
    max_states: int
    most: int
    sparse: int

    def run(self, payoffs: Sequence[Any], sent: Sent, out: Out, stop: Stop) -> Steps:
        """Find the states and write the stage file."""
        started = time.perf_counter()
        stages, numbers, box = stages_of(self.board, self.level), self.shard.stages, self.shard.box
        requested, of_ask = files.requested_runs(self.asks, stages)
        roots, members = stages.runs_of(self.roots), stages.within(requested, box)
        lists = [roots.only(stages.within(roots, box)), requested.only(members)]
        search = BoxSearch(
            stages, numbers[0] >> 32, lists, box, expected=self.shard.likely, most=self.most
        )
        parts = search.run(stop, self.max_states)
        found, asks = FoundShard(self.shard, 0, 0, 0.0), list[Ask]()
        if not parts:
            search.number()
            found = replace(found, rows=search.count, edges=search.edges)
            asks = [
                files.ask_of(stages, number, runs, None if number in numbers else self.sparse)
                for number, runs, _ in search.requests
            ]
        yield FoundAsks(self.number, found.rows, asks, tuple(parts))  # others go on meanwhile
        if found.rows:
            place = placed(f"{SHARDS}{self.name}.arrow", self.location.writer)
            with self.location.stage_file(place) as path:
                files.write_stage(path, search.stage())
                with path.open("rb") as file:
                    sha256 = hashlib.file_digest(file, "sha256").hexdigest()
                self.location.keep(place, path)
            found = replace(found, place=place, sha256=sha256)
        seconds = time.perf_counter() - started
        receipt = FindReceipt(
            shard=self.number, solve_seconds=seconds, stage_file=found.place,
            found=replace(found, seconds=seconds),
            used_asks=[] if parts else np.unique(of_ask[members != 0]).tolist(),
        )  # fmt: skip
        yield receipt, None


@dataclass(frozen=True)
class FoundAsks:
    """What a `Find` asks for, said before its stage file is written. states: that it found.
    parts: boxes that it leaves to others, all of what it was to find."""

    shard: int
    states: int
    asks: list[Ask]
    parts: tuple[Box, ...]


@dataclass(frozen=True, kw_only=True)
class FindReceipt(Receipt):
    """The result of a `Find`. used_asks: those of its asks that concerned it."""

    found: FoundShard
    used_asks: list[int]


@dataclass(frozen=True)
class Sweep(_StageJob):
    """To solve a shard, number `number` of all. below: of the shards that it reads, their stages
    and the box that each has of them. file: the table's, that it writes. error: the bound on that
    of payoffs, beside the gaps of cycles. stored: its committed file, where payoffs are read back
    only.
    """

    number: int
    found: FoundShard
    below: tuple[tuple[Sequence[int], Box], ...]
    file: str
    error: float
    keep: bool
    commit: bool
    stored: FileEntry | None = None

    def run(self, payoffs: Sequence[Any], sent: Sent, out: Out, stop: Stop) -> Steps:
        """Solve the states and write their file."""
        started = time.perf_counter()
        game, name = load_game(self.board), self.found.place
        stored = [] if self.stored is None else [self.stored.place]
        source = self.location.source(stored, sent)
        content = sent[name] if name in sent else self.location.read(name)
        if content is None:
            raise PayoffsLostError(f"{name} is on no disk any more; what was solved stays")
        if hashlib.sha256(content).hexdigest() != self.found.sha256:
            raise CorruptTableError(f"{name}: is not as luckbase wrote it; run the command again")
        shape = self.found.rows + 1, 1 + game.players
        rows, table = np.empty(shape) if out is None else out, None
        stage = files.read_stage(content)
        del content
        if self.stored is not None:
            self._read_back(stage, source, self.stored, rows)
        else:
            tables = [writable(read).reshape(-1, rows.shape[1]) for read in payoffs]
            table = self._solve(stage, tables, rows, stop)
        del stage
        error, seconds = float(rows[0, 0]), time.perf_counter() - started
        yield rows if self.keep else None
        receipt = SweepReceipt(shard=self.number, solve_seconds=seconds)
        if not self.commit or table is None or not len(table):
            yield receipt, None
            return
        shard = self.found.shard
        with self.location.storage() as storage:
            written = write_states(
                storage, self.file, game, table, error, stages=list(shard.stages),
                boxes=ends_of(shard.box),
            )  # fmt: skip
            receipt = replace(receipt, solved=len(table))
            done = receipt.with_files(storage, self.location.writer, [written])
        yield done

    def _solve(
        self, stage: Stage, tables: Sequence[Floats], rows: Floats, stop: Stop
    ) -> PayoffTable:
        """Fill `rows`; return those that the table is to hold, of states that are not over."""
        stages = stages_of(self.board, self.level)
        game = stages.game
        of: dict[int, list[tuple[Box, Floats]]] = {}
        for (numbers, box), rows_below in zip(self.below, tables, strict=True):
            for number in numbers:
                of.setdefault(number, []).append((box, rows_below[1:]))
        sweeping = Sweeping(game, stage)
        for request, (number, _, numbered) in enumerate(stage.requests):
            if _fill(stages, sweeping, request, of.get(number, ())) != len(numbered):
                raise CorruptTableError(f"{self.file}: payoffs that it needs are missing")
        done = sweeping.solve(game.tie_tolerance, stop)
        rows[1:], rows[0] = done.values, 0.0
        error = max([self.error, *(float(table[0, 0]) for table in tables)])
        rows[0, 0] = min(error + done.error, np.ptp(game.payoff_range))
        solves = done.best != OVER
        kept = slice(None) if solves.all() else np.flatnonzero(solves)
        return PayoffTable(  # others may write to `rows` before the file is written
            stage.keys[kept], done.values[:, 1:][kept], done.best[kept],
            done.margins[kept], done.actors[kept],
        )  # fmt: skip

    def _read_back(self, stage: Stage, source: Storage, stored: FileEntry, rows: Floats) -> None:
        """Fill `rows` from the committed file; those of states that are over from the rules.

        Raises CorruptTableError."""
        game, keys, names = load_game(self.board), stage.keys, payoff_columns(load_game(self.board))
        rows[1:, 0], is_over = keys.view(np.float64), np.ones(len(keys), bool)
        for read in row_groups(source, self.location.table, [stored], ["key", *names]):
            stored_keys = numbers_of(read.column("key"))
            at = np.searchsorted(keys, stored_keys)
            if not np.array_equal(keys[np.minimum(at, len(keys) - 1)], stored_keys):
                raise CorruptTableError(f"{stored.place}: has other states than its search found")
            rows[1 + at, 1:], is_over[at] = number_rows(read, names), False
        over = np.flatnonzero(is_over)
        if len(over):
            rows[1 + over, 1:] = final_payoffs(game, unpack_all(game.strides, keys[over]))
        rows[0] = 0.0
        rows[0, 0] = stored.error


def _fill(
    stages: Stages, sweeping: Sweeping, request: int, tables: Sequence[tuple[Box, Floats]]
) -> int:
    """Copy to a stage those of the keys of a request that tables have, each in its box, which is
    apart from those of others or the same; returns how many."""
    boxes = list(dict.fromkeys(box for box, _ in tables))
    if len(boxes) <= 1:
        return sum(sweeping.fill(request, rows) for _, rows in tables)
    which = stages.boxes_of(sweeping.requested[request], boxes)
    number = {box: i for i, box in enumerate(boxes)}
    return sum(sweeping.fill(request, rows, which == number[box]) for box, rows in tables)


@dataclass(frozen=True, kw_only=True)
class SweepReceipt(Receipt):
    """What came of a `Sweep`; solved: how many of the rows of its file it solved."""

    solved: int = 0
