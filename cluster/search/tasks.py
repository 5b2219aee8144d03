"""What a worker does for a search by stages: find the states of a shard; later, solve them.

A shard is some small stages of one level, which have nothing to do with one another, or a box of a
large one, which `CutStage` cuts before. `Find` is handed what others ask it for, and leaves a stage
file on the disk of its machine; `Sweep` is handed the payoff tables of the shards that it asks, and
gives its own: rows of keys, ascending, and payoffs, the row in front beginning with the bounds on
their error, where all decisions are resolved and of all. What it writes is the table's file of that
shard.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from luckbase.cluster.run.worker import (
    NotSeenError,
    Out,
    PayoffsLostError,
    Receipt,
    Sent,
    Steps,
    Stop,
    TableLocation,
    writable,
)
from luckbase.cluster.search import boundary, files
from luckbase.cluster.search.boundary import UsedTable, used_ends
from luckbase.cluster.search.files import Ask, RequestedKeys
from luckbase.cluster.table.folder import ends_of
from luckbase.cluster.table.keyed import GIVEN, SOLVED, PayoffTable, write_states
from luckbase.cluster.table.ledger import SHARDS, FileEntry, ShardEntry, ask_place
from luckbase.cluster.table.storage import Storage, storage_at
from luckbase.solver.board.model import Board
from luckbase.solver.errors import CorruptTableError
from luckbase.solver.game.arrays import Floats
from luckbase.solver.game.capabilities import level_from
from luckbase.solver.game.game import load_game
from luckbase.solver.search import stage_kernels
from luckbase.solver.search.bellman import KNOWN, OVER, final_payoffs
from luckbase.solver.search.expand import some_state
from luckbase.solver.search.find_stages import BoxSearch, find_stage
from luckbase.solver.search.keys import Keys, pack_all, unpack_all
from luckbase.solver.search.stages import Box, KeyedPayoffs, Stage, StageEstimator, Stages
from luckbase.solver.search.sweep import Sweeping

if TYPE_CHECKING:
    from luckbase.cluster.search.shards import Cut, LevelShard, StageSample


def warm_up_stages(stages: Stages) -> None:
    """Compile the two passes of a search by stages, or load them."""
    game = stages.game
    keys = pack_all(game.strides, some_state(game))
    known = keys, np.zeros((1, game.players))
    stage = find_stage(stages, int(stages.of(keys)[0]) >> 32, [keys], known=known)
    Sweeping(game, stage).solve(0.0)


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
        warm_up_stages(stages_of(self.board, self.level))


@dataclass(frozen=True)
class CutStage(_StageJob):
    """To estimate and cut a stage. number: the task's. roots: a few of the search's, which give the
    same estimates."""

    number: int
    sample: StageSample
    roots: Keys

    def run(self, payoffs: Sequence[Any], sent: Sent, out: Out, stop: Stop) -> Steps:
        """Cut it."""
        from luckbase.cluster.search.shards import cut_stage

        started = time.perf_counter()
        estimator = StageEstimator(stages_of(self.board, self.level), self.roots)
        yield None
        cut = cut_stage(estimator, self.sample)
        seconds = time.perf_counter() - started
        yield StageCut(shard=self.number, solve_seconds=seconds, cut=cut), None


@dataclass(frozen=True, kw_only=True)
class StageCut(Receipt):
    """What came of a `CutStage`."""

    cut: Cut


@dataclass(frozen=True)
class Find(_StageJob):
    """To search a shard. number: the task's. name, search, given: its line's in the ledger
    (`ShardEntry`, where the search is `ask`). roots: the search's in it. asks: the requests of
    others to these stages. known: states that are not expanded; stored: files of the table whose
    states are not expanded either. max_states: of a box, 0 for no limit: one with more is cut, and
    its parts are left to others. sparse: bits, of the sample of what it requests. used: the table
    at which the search ends.
    """

    number: int
    name: str
    search: str
    given: str
    shard: LevelShard
    roots: Keys
    asks: tuple[RequestedKeys, ...]
    known: KeyedPayoffs
    max_states: int
    sparse: int
    stored: tuple[FileEntry, ...]
    used: UsedTable | None

    def run(self, payoffs: Sequence[Any], sent: Sent, out: Out, stop: Stop) -> Steps:
        """Find the states and write the stage file."""
        started = time.perf_counter()
        stages, numbers, box = stages_of(self.board, self.level), self.shard.stages, self.shard.box
        names = {entry.place: None for entry in self.stored}
        names |= {ask.file: None for ask in self.asks if ask.file}
        source = self.location.source(list(names), sent)
        ends = None if self.used is None else used_ends(self.used)
        if self.used is not None and ends is None:
            raise NotSeenError
        rows = boundary.read_rows(source, self.location.table, self.stored, stages.game)
        requested, of_ask = files.requested_runs(source, self.asks, stages)
        roots, members = stages.runs_of(self.roots), stages.within(requested, box)
        lists = [roots.only(stages.within(roots, box)), requested.only(members)]
        search = BoxSearch(
            stages, numbers[0] >> 32, lists, box,
            known=ends or boundary.joined([self.known, rows]), expected=self.shard.likely,
        )  # fmt: skip
        parts = search.run(stop, self.max_states)
        states, edges, asks = 0, 0, list[Ask]()
        if not parts:
            search.number()
            states, edges = search.count, search.edges
            asks = [
                files.ask_of(stages, number, runs, None if number in numbers else self.sparse)
                for number, runs, _ in search.requests
            ]
        found, content = self._found_asks(asks, states, parts, started)
        yield found  # others go on while it is ordered and written
        if content:
            storage_at(self.location.table).put_if_absent(found.place, content)
        with self.location.stage_file(f"{SHARDS}{self.name}") as path:
            files.write_stage(path, None if parts else search.stage())
            with path.open("rb") as file:
                sha256, size = hashlib.file_digest(file, "sha256").hexdigest(), file.tell()
            seconds = time.perf_counter() - started
            entry = ShardEntry(
                name=self.name, ask=self.search, rows=states, bytes=size, sha256=sha256,
                seconds=round(seconds, 3), given=self.given, level=numbers[0] >> 32,
                stages=list(numbers), edges=edges, ask_sha256=found.sha256, box=ends_of(box),
                rest=[[part.low, part.high] for part in parts], mark=self.location.mark,
            )  # fmt: skip
            self.location.keep(entry.place, path)
        receipt = FindReceipt(
            shard=self.number, solve_seconds=seconds, stage_file=entry.place, entry=entry,
            used_asks=[] if parts else np.unique(of_ask[members != 0]).tolist(),
        )  # fmt: skip
        yield receipt, None

    def _found_asks(
        self, asks: list[Ask], states: int, parts: Sequence[Box], started: float
    ) -> tuple[FoundAsks, bytes]:
        """What it asks of others; and the bytes of its file that are yet to be put in their place,
        for nobody reads them: to wait for the disk would hold up all that wait for this."""
        content, left = files.write_asks(asks), b""
        sha256 = hashlib.sha256(content).hexdigest()
        place = ask_place(self.name, self.location.mark, sha256)
        if self.location.shared:
            asks, content, left = files.in_file(asks, place), b"", content
            if any(ask.keys.file for ask in asks):
                storage_at(self.location.table).put_if_absent(place, left)
                left = b""
        seconds = time.perf_counter() - started
        found = FoundAsks(self.number, states, asks, tuple(parts), place, sha256, content, seconds)
        return found, left


@dataclass(frozen=True)
class FoundAsks:
    """What a `Find` asks for, said before its stage file is written. states: that it found.
    parts: boxes that it leaves to others, all of what it was to find. place, sha256: of the file of
    asks; content: its bytes, for a machine that sees the table to put there. seconds: until this
    was known."""

    shard: int
    states: int
    asks: list[Ask]
    parts: tuple[Box, ...]
    place: str
    sha256: str
    content: bytes
    seconds: float


@dataclass(frozen=True, kw_only=True)
class FindReceipt(Receipt):
    """What came of a `Find`: its line, but for who asks it; used_asks: those of its asks that
    concerned it."""

    entry: ShardEntry
    used_asks: list[int]


@dataclass(frozen=True)
class Sweep(_StageJob):
    """To solve a shard, number `number` of all. below: of the shards that it reads, their stages
    and the box that each has of them. file: the table's, that it writes. error, precision: of all
    and where all decisions are resolved, beside the gaps of cycles. stored: its committed file,
    where payoffs are read back only.
    """

    number: int
    entry: ShardEntry
    below: tuple[tuple[Sequence[int], Box], ...]
    file: str
    error: float
    precision: float
    tolerance: float
    keep: bool
    commit: bool
    stored: FileEntry | None = None

    def run(self, payoffs: Sequence[Any], sent: Sent, out: Out, stop: Stop) -> Steps:
        """Solve the states and write their file."""
        started = time.perf_counter()
        name = self.entry.place
        stored = [] if self.stored is None else [self.stored.place]
        source = self.location.source(stored, sent)
        content = sent[name] if name in sent else self.location.read(name)
        if content is None:
            raise PayoffsLostError(f"{name} is on no disk any more; what was solved stays")
        if hashlib.sha256(content).hexdigest() != self.entry.sha256:
            raise CorruptTableError(f"{name}: is not as luckbase wrote it")
        shape = self.entry.rows + 1, 1 + load_game(self.board).players
        rows, table = np.empty(shape) if out is None else out, None
        stage = files.read_stage(content)
        del content
        if self.stored is not None:
            self._read_back(stage, source, self.stored, rows)
        else:
            tables = [writable(read).reshape(-1, rows.shape[1]) for read in payoffs]
            table = self._solve(stage, tables, rows, stop)
        del stage
        seconds = time.perf_counter() - started
        yield rows if self.keep else None
        if not self.commit or table is None or not len(table):
            yield SweepReceipt(shard=self.number, solve_seconds=seconds), None
            return
        solved, box = int((table.status == SOLVED).sum()), self.entry.box
        precision, error = rows[0, :2].tolist()
        with self.location.storage() as storage:
            written = write_states(
                storage, self.file, load_game(self.board), table, error, precision,
                stages=self.entry.stages, boxes=[box] if box else [],
            )  # fmt: skip
            receipt = SweepReceipt(shard=self.number, solve_seconds=seconds, solved=solved)
            done = receipt.with_files(storage, self.location.mark, [written])
        yield done

    def _solve(
        self, stage: Stage, tables: Sequence[Floats], rows: Floats, stop: Stop
    ) -> PayoffTable:
        """Fill `rows`; returns what of them the table is to hold."""
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
        done = sweeping.solve(self.tolerance, stop)
        best, margins, on_boundary = done.best, done.margins, done.on_boundary
        rows[1:] = done.values
        below = np.array([t[0, :2].tolist() for t in tables] or [[self.precision, self.error]])
        precision, error = (below.max(axis=0) + done.gap.sum() / 2).tolist()
        solves = (best != OVER) & (best != KNOWN) & ~on_boundary
        written = solves | on_boundary
        kept = slice(None) if written.all() else np.flatnonzero(written)
        chosen, rows[0] = margins[solves], 0.0
        rows[0, :2] = precision, boundary.error_with_undecided(game, chosen, self.tolerance, error)
        status = np.where(on_boundary[kept], np.uint8(GIVEN), np.uint8(SOLVED))
        return PayoffTable(  # others may write to `rows` before the file is written
            stage.keys[kept], done.values[:, 1:][kept], best[kept], status, done.gap[kept],
            margins[kept], done.actors[kept],
        )  # fmt: skip

    def _read_back(self, stage: Stage, source: Storage, stored: FileEntry, rows: Floats) -> None:
        """Fill `rows` from the committed file; what that has not, from the rules or what was given.

        Raises CorruptTableError."""
        game, keys = load_game(self.board), stage.keys
        known = stage.states.patterns == stage_kernels.BOUNDARY
        parts = [(keys[known], stage.boundary.payoffs)]
        parts.append(boundary.read_rows(source, self.location.table, [stored], game))
        keys_known, payoffs = boundary.joined(parts)
        rows[1:, 0], where = keys.view(np.float64), np.searchsorted(keys, keys_known)
        rows[1 + where, 1:] = payoffs
        left = np.delete(np.arange(len(keys)), where)
        if len(left):
            rows[1 + left, 1:] = final_payoffs(game, unpack_all(game.strides, keys[left]))
        rows[0] = 0.0
        rows[0, :2] = stored.resolved_error, stored.error


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
