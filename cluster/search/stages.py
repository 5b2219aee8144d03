"""A search by stages: every state once, on as many workers as there are, larger than memory.

1. **Down**, highest level first. What is asked of a level is known once all above it is found; it
   is cut into shards (`level_shards`), each found by a worker (`stage_tasks.Find`), which leaves a
   stage file and says what it asks of others.
2. **Up**, children first, by the schedule of the dense tiers: a shard is solved once the shards
   that it asks are (`stage_tasks.Sweep`), writes its file of the table, and hands on its payoffs to
   those that asked. Its stage file is deleted when nobody will need it again.

Every finished shard of either pass is in the ledger, so the same call goes on from there. Shards,
their names and their rows depend on the game, the roots and what was known, not on the workers.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from luckbase.cluster.machine import MemoryUsed, memory_used, total
from luckbase.cluster.run.driver import (
    Hooks,
    memory_budget,
    open_workers,
    run_shards,
    through_losses,
)
from luckbase.cluster.run.lock import marked
from luckbase.cluster.run.options import Options
from luckbase.cluster.run.progress import Progress, SolvedSearch, Watch
from luckbase.cluster.run.schedule import Schedule, Shard, Solve
from luckbase.cluster.run.worker import Home, Workers, process_name
from luckbase.cluster.search import files
from luckbase.cluster.search import shards as level_shards
from luckbase.cluster.search.boundary import HeldStages, UsedTable, let_go, used_ends
from luckbase.cluster.search.files import Ask, read_asks
from luckbase.cluster.search.shards import (
    Above,
    Asked,
    Asker,
    LevelShard,
    Order,
    Path,
    boxes_in_order,
    cutting,
    number_of,
    told_by,
)
from luckbase.cluster.search.tasks import Find, Found, Sweep, Swept
from luckbase.cluster.table.folder import (
    LEAST_BYTES,
    Commits,
    Piece,
    ask_name,
    askers_of,
    commit,
    compact,
    ends_of,
    pieces_of,
    shard_name,
    stage_file_name,
)
from luckbase.cluster.table.format import PayoffTable, file_entry
from luckbase.cluster.table.ledger import FileEntry, Goal, Ledger, LevelEntry, ShardEntry
from luckbase.cluster.table.storage import Folder
from luckbase.cluster.words import many
from luckbase.solver.errors import LuckbaseError, SearchLimitError, WorkerError
from luckbase.solver.game.capabilities import Level
from luckbase.solver.game.game import Game
from luckbase.solver.search.explore import estimate
from luckbase.solver.search.find_stages import CACHED
from luckbase.solver.search.keys import Keys, unpack_all
from luckbase.solver.search.stages import NO_KEYS, WHOLE, Box, Knows, Stages, among

FIND_BYTES, ASK_BYTES, HELD_BYTES = 160, 24, 100
"""Bytes a state of the box that is being found, and of the whole shard, for what is asked of it; a
row of the files that it reads, if all were wanted."""
ABOUT_AFTER = 20.0
"""Seconds after which it is estimated, beside the rest, how many states there are."""
STORE_BYTES = 4 << 30
"""Of Ray's object store on this machine; what is beyond spills to the disk."""


@dataclass(frozen=True)
class Aim:
    """What is searched: the goal, the keys of its roots, what is known (by ascending key; in the
    table's files; in the table that was asked for), and what comes with it: the bounds on the
    error, of all and where all decisions are told, and the tolerance of ties."""

    goal: Goal
    roots: Keys
    known: PayoffTable
    held: HeldStages | None
    used: UsedTable | None
    known_sha: str
    error: float
    precision: float
    tolerance: float


class StageSearch:
    """One run: both passes, the ledger, the counts."""

    def __init__(
        self,
        game: Game,
        level: Level,
        ledger: Ledger,
        aim: Aim,
        asked: Options,
        report: SolvedSearch,
    ) -> None:
        self.game, self.aim, self.ledger, self.asked = game, aim, ledger, asked
        self.stages, self.level = Stages(game, level), json.dumps(level.as_json())
        self.storage, self.report = Folder(report.table), report
        self.started = time.perf_counter()
        self.processes: dict[str, MemoryUsed] = {}
        self.seconds_down = self.seconds_up = self.seconds_finding = 0.0
        self.at_level = self.done_before = 0
        mine = [one.rows for one in ledger.shards.values() if one.ask == aim.goal.ask]
        self.found_before = self.met = sum(mine)
        self.shards_met = len(mine)
        self.found: list[ShardEntry] = []
        self.levels: list[list[LevelShard]] = []
        self.solved = self.committed = self.cores = 0
        self.about: int | None = None
        self.keeping = Commits(self.storage, ledger)
        self.committing = Commits(self.storage, ledger)

    def run(self) -> SolvedSearch:
        """Both passes. Raises as `find_stages.expand_level` and `stage.Sweeping.solve` do."""
        table, goal = self.report.table, self.aim.goal
        entry = LevelEntry(goal.ask, json.loads(self.level), self.aim.known_sha, cutting())
        if goal.ask not in self.ledger.levels:
            commit(self.storage, self.ledger, entry)
        with (
            Watch(table, self.asked.on_progress, self.asked.on_note) as watch,
            marked(table) as home,
            self._workers(home, watch) as workers,
        ):
            self.home, self.watch, self.workers = home, watch, workers
            self._down()
            self.seconds_finding = time.perf_counter() - self.started
            self._up()
        peak = total(self.processes | {process_name(): memory_used()})
        return replace(
            self.report, states=self.solved, solved=self.solved, shards=len(self.found),
            edges=self._edges(), stages=self._stage_count(),
            levels=len(self.levels), peak_memory=peak,
            solve_seconds=self.seconds_down + self.seconds_up,
            seconds=time.perf_counter() - self.started, workers=self.cores or self.asked.slots,
        )  # fmt: skip

    def _name(self, shard: LevelShard) -> str:
        """The name of a shard."""
        return f"{self.aim.goal.ask[:12]}-{shard.stages[0] >> 32}-{number_of(shard.path)}"

    def _edges(self) -> int:
        """Edges of the states that this run has solved; about, of a search that went on."""
        states = sum(one.rows for one in self.found)
        return sum(one.edges for one in self.found) * self.committed // max(1, states)

    def _stage_count(self) -> int:
        return len({stage for one in self.found for stage in one.stages})

    def _file(self, piece: Piece) -> str:
        """The table's file of a piece."""
        return stage_file_name(self.aim.goal.part, piece.entry.name, piece.number)

    def _workers(self, home: Home, watch: Watch) -> AbstractContextManager[Workers]:
        asked = self.asked
        self.memory = memory_budget(asked)
        self.report = replace(self.report, ray=asked.address is not None)
        self.cores = 0 if asked.joins else asked.slots
        store = min(self.memory // 4, STORE_BYTES)
        return open_workers(asked, home, watch, self.memory // 2, store)

    # --- down --------------------------------------------------------------------------------

    def _down(self) -> None:
        """Find all stages, level by level."""
        stages = self.stages.of(self.aim.roots)
        self.wanted = {
            stage: np.ascontiguousarray(self.aim.roots[stages == stage])
            for stage in np.unique(stages).tolist()
        }
        self.ends = None if self.aim.used is None else used_ends(self.aim.used)
        self.asks, above = Asked(self.stages, self.aim.roots, self._knows), Above()
        while (level := self.asks.highest()) is not None:
            self.at_level = level
            shards = self._find(level, Order(self.asks.shards(level, above)))
            entries = [self.ledger.shards[self._name(one)] for one in shards]
            above = told_by(shards, [entry.rows for entry in entries], self.asks.keys(level))
            self.asks.done(level)
            self.found += entries
            self.levels.append(shards)
            self._check_limit()
        if self.aim.used is not None:
            let_go(self.aim.used)

    def _check_limit(self) -> None:
        met, most = sum(one.rows for one in self.found), self.asked.max_states
        if most is not None and met > most:
            raise SearchLimitError(
                f"the search has met {many(met, 'state')} in {many(len(self.levels), 'level')} "
                f"and is not at its end; the limit is {most:,}"
            )

    def _find(self, level: int, order: Order) -> list[LevelShard]:
        """Find the shards of a level, those that the ledger does not have; returns all."""
        running: dict[int, tuple[int, list[Asker]]] = {}  # bytes, and whose asks it was handed

        def done(i: int, asks: Sequence[Ask], rest: Iterable[Box]) -> None:
            shard, first = order.shards[i], len(order.shards)
            self.asks.add((level, shard.path), asks)
            left = [(box, level_shards.SHARD_STATES) for box in rest]
            order.done(i, boxes_in_order(self.stages, shard.stages, left, first, shard.path))

        def next_one() -> tuple[Find, list[Asker]] | None:
            """The next one to find, past those that are there, and whose asks it is handed."""
            while (i := order.pop()) is not None:
                entry = self._there(order.shards[i])
                if entry is None:
                    given = self.asks.of(order.shards[i])
                    task = self._task_to_find(i, order.shards[i], given)
                    return task, [asker for asker, _ in given]
                asks = read_asks(self.storage.read(ask_name(entry.name)))
                done(i, asks, [Box(*ends) for ends in entry.rest])
            return None

        with self.keeping:
            waits = next_one()
            while waits is not None or running:
                while waits is not None and len(running) < self.workers.slots:
                    task, askers = waits
                    in_use = sum(memory for memory, _ in running.values())
                    if running and in_use + task.memory > self.memory:
                        break
                    self.workers.submit(task)
                    running[task.shard] = task.memory, askers
                    waits = next_one()
                receipt = self._next_found()
                if receipt is not None:
                    i = receipt.shard
                    _, askers = running.pop(i)
                    with self.keeping.taking_in():
                        done(i, read_asks(receipt.asks), receipt.rest)
                        mine = [askers[k] for k in receipt.met]
                        self._keep(order.shards[i], receipt, mine)
                    waits = next_one() if waits is None else waits
                if receipt is None or self.keeping.full:
                    self.keeping.flush()
                    self._show_found()
        self._show_found()
        return order.in_order()

    def _next_found(self) -> Found | None:
        """What a task has found; None where none came for a moment."""
        receipt = self.workers.wait_one(0.0 if self.keeping else 0.5)
        if receipt is None or isinstance(receipt, Found):
            return receipt
        raise WorkerError("files of the table that the search reads are not to be seen any more")

    def _task_to_find(
        self, place: int, shard: LevelShard, asks: Sequence[tuple[Asker, Ask]]
    ) -> Find:
        keys = [self.wanted[stage] for stage in shard.stages if stage in self.wanted]
        reach, held = shard.box, tuple[FileEntry, ...]()
        if self.aim.held is not None:
            roots = [self.stages.around(some) for some in keys]
            reach = self._reach(shard, [ask.box for _, ask in asks] + roots)
            held = self.aim.held.files(shard.stages, reach)
        return Find(
            board=self.game.board, home=self.home, level=self.level, shard=place,
            name=self._name(shard), stages=shard.stages, box=shard.box,
            wanted=np.concatenate(keys) if keys else NO_KEYS,
            asks=tuple((ask.packed, ask.count) for _, ask in asks), known=self._known(shard),
            expected=shard.likely, enough=level_shards.enough(shard), sparse=files.SPARSE_BITS,
            reach=reach, held=held, used=self.aim.used,
            memory=self._find_bytes(shard.likely) + HELD_BYTES * sum(one.rows for one in held),
        )  # fmt: skip

    def _reach(self, shard: LevelShard, boxes: Sequence[Box]) -> Box:
        """The part of a shard's box that lies below what is asked of it, in these boxes, for no
        function rises; others can not be met."""
        if not boxes or any(box.whole for box in boxes):
            return shard.box
        inside = self.stages.inside
        high = inside.values(np.array([box.high for box in boxes], np.uint64)).max(axis=0)
        low = 0
        if not shard.box.whole:
            low = shard.box.low
            high = np.minimum(high, inside.values(np.array([shard.box.high], np.uint64))[0])
        return Box(low, inside.word(high))

    def _find_bytes(self, expected: int) -> int:
        """Bytes that it takes to find a shard of so many states."""
        box = min(expected, CACHED) if self.stages.level.inside else expected
        used = 0 if self.ends is None else self.ends.memory(expected)
        return max(LEAST_BYTES, FIND_BYTES * box + ASK_BYTES * expected) + used

    def _there(self, shard: LevelShard) -> ShardEntry | None:
        """What the ledger has of a shard, if it was found as it is to be now."""
        entry = self.ledger.shards.get(self._name(shard))
        if entry is None:
            return None
        same = entry.stages == list(shard.stages) and entry.box == ends_of(shard.box)
        if same and entry.given == self.aim.known_sha:
            return entry
        del self.ledger.shards[entry.name]
        compact(self.storage, self.ledger)  # else what it says may count at the next reading
        self.met, self.shards_met = self.met - entry.rows, self.shards_met - 1
        return None

    def _knows(self, stage: int) -> Knows:
        """What tells which states of a stage are known."""
        if self.ends is not None:
            return self.ends.holds
        known = self._known(LevelShard((0,), (stage,), WHOLE, 0))[0]
        held = NO_KEYS if self.aim.held is None else self.aim.held.keys(stage)
        keys = np.sort(np.concatenate([known, held]), kind="stable")  # it merges what is in order
        return among(keys)

    def _known(self, shard: LevelShard) -> tuple[Keys, np.ndarray]:
        known = self.aim.known
        if not len(known):
            return NO_KEYS, np.empty((0, self.game.players))
        order, stages = self._known_stages
        ends = np.array([(one, one + 1) for one in shard.stages], np.uint64)  # no float holds them
        spans = np.searchsorted(stages, ends).tolist()
        at = np.sort(np.concatenate([order[start:stop] for start, stop in spans]))
        if not shard.box.whole:
            at = at[self.stages.boxes_of(known.keys[at], [shard.box]) == 0]
        return known.keys[at], np.ascontiguousarray(known.values[at])

    @cached_property
    def _known_stages(self) -> tuple[np.ndarray, np.ndarray]:
        """What is known by stage: its rows, and the stage of each of these."""
        stages = self.stages.of(self.aim.known.keys)
        order = np.argsort(stages, kind="stable")
        return order, stages[order]

    def _keep(self, shard: LevelShard, receipt: Found, askers: Sequence[Asker]) -> None:
        """Note what was found, and what it asks."""
        name = self._name(shard)
        asks = self.storage.temporary(ask_name(name))
        asks.write_bytes(receipt.asks)  # not flushed: what a power cut takes is found again
        paths: dict[str, set[Path]] = {}
        for level, path in askers:
            paths.setdefault(str(level), set()).add(path)
        entry = ShardEntry(
            name=name, ask=self.aim.goal.ask, rows=sum(receipt.boxes), bytes=receipt.bytes,
            sha256=receipt.sha256, seconds=round(receipt.solve_seconds, 3),
            given=self.aim.known_sha, level=self.at_level, stages=list(shard.stages),
            boxes=receipt.boxes, ask_sha256=receipt.asks_sha256, edges=receipt.edges,
            box=ends_of(shard.box), spans=[[one.low, one.high] for one in receipt.spans],
            rest=[[one.low, one.high] for one in receipt.rest],
            askers={at: [number_of(one) for one in sorted(mine)] for at, mine in paths.items()},
        )  # fmt: skip
        files = {ask_name(name): asks, shard_name(name): receipt.path}
        self.keeping.add(entry, files)
        self.met, self.shards_met = self.met + entry.rows, self.shards_met + 1
        self.seconds_down += receipt.solve_seconds
        self.processes[receipt.process] = receipt.peak

    def _show_found(self) -> None:
        """How far it is on its way down."""
        seconds, finding = time.perf_counter() - self.started, f"level {self.at_level}"
        if seconds > ABOUT_AFTER and self.about is None and not self.aim.known_sha:
            self.about = 0
            threading.Thread(target=self._estimate, daemon=True, name="luckbase estimate").start()
        about = max(self.met, self.about) if self.about else 0
        now = Progress(self.shards_met, 0, self.met, 0, seconds, finding=finding, about=about)
        self._show(replace(now, before=self.found_before))

    def _estimate(self) -> None:
        """About how many states there are. What is wrong with one the search itself will say."""
        with suppress(LuckbaseError):
            roots = unpack_all(self.game.bits, self.aim.roots)
            self.about = estimate(self.game, roots).states

    def _show_solved(self) -> None:
        """How far it is on its way up."""
        seconds = time.perf_counter() - self.started - self.seconds_finding
        now = Progress(self.swept, len(self.pieces), self.done, self.met, seconds, of="shards")
        self._show(replace(now, before=self.done_before))

    def _show(self, now: Progress) -> None:
        doing = self.workers.doing()
        if self.report.ray:
            slots = sum(one["slots"] for one in doing if "left_out" not in one)
            self.cores = max(self.cores, slots)
        self.watch.show(now, doing)

    # --- up ----------------------------------------------------------------------------------

    def _up(self) -> None:
        """Solve all shards, children first."""
        self.pieces = [piece for one in self.found[::-1] for piece in pieces_of(one)]
        self.empty: set[int] = set()
        self.of_shard: dict[str, list[int]] = {}
        of_shard = self.of_shard
        for i, piece in enumerate(self.pieces):
            of_shard.setdefault(piece.entry.name, []).append(i)
        of_asker: dict[str, list[int]] = {name: [] for name in of_shard}
        for one in self.found:
            for asker in askers_of(one):
                of_asker[asker] += of_shard[one.name]
        self.reads: list[list[int]] = []
        for i, piece in enumerate(self.pieces):
            own = [k for k in of_shard[piece.entry.name] if k < i]
            self.reads.append(sorted(own + of_asker[piece.entry.name]))
        through_losses(self._solve_shards, self.workers, self.watch.note)

    def _solve_shards(self) -> None:
        pieces, files = self.pieces, self.ledger.files
        shards = tuple(
            Shard(i, one.entry.name, tuple(self.reads[i]), one.states, one.memory)
            for i, one in enumerate(pieces)
        )
        stored = {i for i, one in enumerate(pieces) if self._file(one) in files}
        self.schedule = Schedule(
            shards, workers=self.workers.slots, memory=self.memory,
            committed=stored | self.empty, stored=stored,
        )  # fmt: skip
        self.swept, self.done = 0, sum(pieces[i].states for i in stored)
        self.done_before = self.done
        hooks = Hooks(
            self._task, self.committing, self._commit, self._count, self._drop, self._show_solved
        )
        run_shards(self.schedule, self.workers, hooks)

    def _count(self, receipt: Swept) -> None:
        self.swept += 1
        new = receipt.shard not in self.schedule.stored
        self.done += self.pieces[receipt.shard].states * new
        self.seconds_up += receipt.solve_seconds
        self.processes[receipt.process] = receipt.peak

    def _drop(self, shards: list[int]) -> None:
        for shard in shards:
            self.workers.drop(shard)
            self._let_go(self.pieces[shard].entry)

    def _let_go(self, entry: ShardEntry) -> None:
        """Delete a shard's stage file once nobody will need it, also after a stop."""
        mine = self.of_shard[entry.name]
        still = self.schedule.kept, self.schedule.running, self.schedule.waiting
        there = all(self._file(self.pieces[i]) in self.ledger.files for i in mine)
        if there and not any(i in some for i in mine for some in still):
            self.storage.delete(shard_name(entry.name))

    def _task(self, step: Solve) -> Sweep:
        i, piece = step.shard, self.pieces[step.shard]
        entry, stored = piece.entry, None
        if i in self.schedule.stored:
            stored = self.ledger.files[self._file(piece)]
        reads = () if stored else tuple(self.reads[i])
        of: dict[int, list[int]] = {}
        for place, k in enumerate(reads):
            for stage in self.pieces[k].entry.stages:
                of.setdefault(stage, []).append(place)
        return Sweep(
            board=self.game.board, home=self.home, level=self.level, shard=i, name=entry.name,
            stages=tuple(entry.stages), sha256=entry.sha256, boxes=piece.boxes, states=piece.states,
            reads=reads, of={stage: tuple(places) for stage, places in of.items()},
            within=tuple(self.pieces[k].spans for k in reads), file=self._file(piece),
            error=self.aim.error, precision=self.aim.precision, tolerance=self.aim.tolerance,
            keep=step.keep, commit=step.commit, memory=piece.memory, stored=stored,
        )  # fmt: skip

    def _commit(self, receipt: Swept) -> None:
        piece, file = self.pieces[receipt.shard], receipt.file
        self.solved += receipt.solved
        self.committed += piece.states
        if file is None:
            self.empty.add(receipt.shard)
            return
        share = piece.states / max(1, piece.entry.rows)
        name, seconds = self._file(piece), piece.entry.seconds * share + receipt.solve_seconds
        told = receipt.precision
        line = file_entry(name, self.aim.goal.part, 0, receipt.keys, file, seconds, told)
        boxes = [] if piece.spans == (WHOLE,) else receipt.boxes
        line = replace(line, stages=list(piece.entry.stages), boxes=boxes)
        self.committing.add(line, {name: file.path})
