"""A search by stages: it solves every state once, on any number of workers, and may exceed memory.

A *level* is a number of each state that no move raises; a *stage* is a part of a level that no
cycle leaves; a *shard* is the work of one worker: some stages, or a part of one.

1. **Down**, highest level first. A level is cut into shards (`cluster.search.shards`). A worker
   finds each shard (`tasks.Find`): it writes a stage file on its own disk, and returns the shard's
   requests to other shards. The next level begins once all shards of this level are found.
2. **Up**, children first, with the schedule of full tables. A shard is solved once the shards that
   it reads are solved (`tasks.Sweep`). The worker writes its file of the table and passes its
   payoffs to the shards that read them. A stage file is deleted when no task needs it any more.

Every solved shard is in the manifest. After an interruption, or if a machine is lost with its stage
files, the same call finds all states again and solves the shards that have no file yet. Shards,
their names and their rows depend on the game, the roots and this version, not on the workers.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import NamedTuple

import numpy as np

from luckbase.cluster.search import shards as level_shards
from luckbase.cluster.search.shards import (
    LEAST_BYTES,
    Asker,
    Demand,
    Growth,
    LevelShard,
    Order,
    Request,
    number_of,
)
from luckbase.cluster.search.tasks import Find, FindReceipt, FoundShard, Sweep
from luckbase.cluster.solve.driver import IDLE_SECONDS, Run, Work, memory_budget
from luckbase.cluster.solve.progress import Progress, Solved
from luckbase.cluster.solve.schedule import Schedule, Shard, Solve
from luckbase.cluster.solve.worker import PayoffPlace, Receipt, Task
from luckbase.solver.errors import SearchLimitError
from luckbase.solver.game.rules import Level
from luckbase.solver.search.keys import NO_KEYS, Keys
from luckbase.solver.search.stages import CACHED, Stages
from luckbase.solver.sentences import many, option

ASK_BYTES = 24
"""Bytes for each state of the whole shard that is being found, for the requests to it."""
STORE_BYTES = 4 << 30
"""Size of Ray's object store on this machine; the rest spills to disk."""


class _Finding(NamedTuple):
    """A running task on the way down."""

    task: Task
    place: int  # index of the shard in its level
    requests: Sequence[Request]  # the requests passed to the task


class StageSearch(Run):
    """One run of a search: both passes, the manifest and the counts."""

    def __init__(self, work: Work, level: Level, roots: Keys, report: Solved) -> None:
        super().__init__(work, report, memory_budget(work.options))
        self.roots, self.stages, self.part = roots, Stages(work.game, level), work.part
        self.level = json.dumps(level.as_json())
        self.seconds_finding = 0.0
        self.at_level = self.done_before = 0
        self.tasks = count()
        """The numbers of tasks on the way down."""
        self.committed = 0

    def run(self) -> Solved:
        """Run both passes. Raises as `solver.search.stages.BoxSearch` and `sweep.solve_stage`."""
        with self.open(self.memory // 2, min(self.memory // 4, STORE_BYTES)):
            self.solve_shards()
        stages = {stage for shard in self.found_shards for stage in shard.shard.stages}
        return self.done(
            shards=len(self.found_shards), edges=self._edges(),
            stages=len(stages), levels=len(self.levels),
        )  # fmt: skip

    def _edges(self) -> int:
        """Return the edges of the states solved in this run; an estimate for a resumed search."""
        states = sum(shard.rows for shard in self.found_shards)
        return sum(shard.edges for shard in self.found_shards) * self.committed // max(1, states)

    def _file(self, shard: FoundShard) -> str:
        level, path = _name(shard.shard)
        return f"{self.part}/{level}.{number_of(path)}.parquet"

    # --- down --------------------------------------------------------------------------------

    def _down(self) -> None:
        self.workers.delete()  # left by an interrupted run or a lost machine
        self.shards: dict[Asker, FoundShard] = {}
        self.levels: list[list[LevelShard]] = []
        self.met = 0
        stages = self.stages.of(self.roots)
        self.roots_of = {
            stage: np.ascontiguousarray(self.roots[stages == stage])
            for stage in np.unique(stages).tolist()
        }
        self.asks, above = Demand(self.stages, self.roots), Growth()
        states, limit = 0, self.options.max_states or math.inf
        while (number := self.asks.highest()) is not None and states <= limit:
            self.at_level = number
            order = Order(self.asks.shards(number, above))
            sizes, shards = self._find(order), order.shards
            above = level_shards.growth_of(shards, sizes, self.asks.requested_of)
            self.asks.done(number)
            self.levels.append(shards)
            states += sum(sizes)
            self._show_way_down()
        if states > limit:
            raise SearchLimitError(
                f"the search has found {many(states, 'state')} in "
                f"{many(len(self.levels), 'level')} and is not finished; the limit is {limit:,} "
                f"({option('max_states')})"
            )

    def _find(self, order: Order) -> list[int]:
        """Find the shards of a level. Return the number of states of each."""
        sizes, finding = dict[int, int](), dict[int, _Finding]()
        waits = self._next_task(order)
        while waits is not None or finding:
            while waits is not None and self._has_room(finding, waits.task):
                self.workers.submit(waits.task)
                finding[waits.task.shard] = waits
                waits = self._next_task(order)
            receipt = self.workers.wait_one(IDLE_SECONDS)
            if receipt is None:
                self._show_way_down()
                continue
            _, i, requests = finding.pop(receipt.shard)
            sizes[i] = receipt.found.rows
            self._keep(receipt, {requests[k].asker for k in receipt.used_asks})
            shard, first = order.shards[i], len(order.shards)
            self.asks.add(_name(shard), receipt.asks)
            waiting = [(box, level_shards.SHARD_STATES) for box in receipt.parts]
            boxes = level_shards.boxes_in_order
            order.done(i, boxes(self.stages, shard.stages, waiting, first, shard.path))
            waits = self._next_task(order) if waits is None else waits
        return [sizes[i] for i in range(len(order.shards))]

    def _has_room(self, finding: Mapping[int, _Finding], task: Task) -> bool:
        """True if there is a free worker, and memory, for another task on the way down."""
        used = sum(each.task.memory for each in finding.values())
        fits = not finding or used + task.memory <= self.memory
        return fits and len(finding) < self.workers.slots

    def _next_task(self, order: Order) -> _Finding | None:
        i = order.pop()
        if i is None:
            return None
        shard = order.shards[i]
        requests, number, likely = self.asks.requests_for(shard), next(self.tasks), shard.likely
        keys = [self.roots_of[stage] for stage in shard.stages if stage in self.roots_of]
        job = Find(
            board=self.game.board, location=self.location, level=self.level,
            name=f"{self.at_level}-{number_of(shard.path)}", shard=shard,
            roots=np.concatenate(keys) if keys else NO_KEYS,
            asks=tuple([request.ask for request in requests]),
            max_states=level_shards.max_states(shard), sparse=level_shards.SPARSE_BITS,
            most=max(1, self.memory // level_shards.FIND_BYTES),
        )  # fmt: skip
        box = min(likely, CACHED) if self.stages.level.inside else likely
        memory = max(LEAST_BYTES, level_shards.FIND_BYTES * box + ASK_BYTES * likely)
        return _Finding(Task(number, job, memory), i, requests)

    def _keep(self, receipt: FindReceipt, askers: set[Asker]) -> None:
        shard = replace(receipt.found, askers=tuple(sorted(askers)))
        self.shards[_name(shard.shard)] = shard
        self.met += shard.rows
        self.add(solve_seconds=receipt.solve_seconds)
        self.note_memory(receipt)

    def _show_way_down(self) -> None:
        self.show(Progress(
            len(self.shards), 0, self.met, 0, self.seconds, finding=f"level {self.at_level}",
        ))  # fmt: skip

    def progress(self) -> Progress:
        return Progress(
            self.swept, len(self.solves), self.done_rows, self.met,
            self.seconds - self.seconds_finding, unit="shards", before=self.done_before,
        )  # fmt: skip

    # --- up ----------------------------------------------------------------------------------

    def _up(self) -> None:
        """List the shards to solve, children first, and the shards that each reads."""
        in_order = [sorted(shards, key=lambda shard: shard.path) for shards in self.levels]
        self.found_shards = [self.shards[_name(shard)] for shards in in_order for shard in shards]
        self.solves = [shard_found for shard_found in self.found_shards[::-1] if shard_found.rows]
        self.reads: list[list[int]] = [[] for _ in self.solves]
        place = {_name(shard_found.shard): i for i, shard_found in enumerate(self.solves)}
        for i, shard_found in enumerate(self.solves):
            for asker in shard_found.askers:
                self.reads[place[asker]].append(i)

    def make_schedule(self) -> Schedule:
        """Run the pass down and return the schedule of the pass up."""
        self._down()
        self.seconds_finding = self.seconds
        self._up()
        solves = self.solves
        cuts = {self._file(shard): shard.shard.cut for shard in solves}
        if others := [
            entry.name
            for entry in self.manifest.of_part(self.part)
            if cuts.get(entry.name) != (entry.stages, entry.boxes)
        ]:  # of a version that cut levels into other shards
            self.writer.drop(others)
        stored = {i for i, f in enumerate(solves) if self._file(f) in self.manifest.files}
        shards = tuple(
            Shard(i, self._file(shard), tuple(self.reads[i]), shard.rows, _sweep_bytes(shard))
            for i, shard in enumerate(solves)
        )
        self.swept, self.done_rows = 0, sum(solves[i].rows for i in stored)
        self.done_before = self.done_rows
        return Schedule(
            shards, workers=self.workers.slots, memory=self.memory,
            committed=stored, stored=stored,
        )  # fmt: skip

    def count(self, receipt: Receipt) -> None:
        self.swept += 1
        new = receipt.shard not in self.schedule.stored
        self.done_rows += self.solves[receipt.shard].rows * new
        self.add(solve_seconds=receipt.solve_seconds)

    def drop(self, shards: list[int]) -> None:
        for shard in shards:
            self.workers.drop(shard)
        unfinished = self.schedule.kept, self.schedule.running, self.schedule.waiting
        done = [shard for shard in shards if not any(shard in each for each in unfinished)]
        if done:
            self.workers.delete(self.solves[shard].place for shard in done)

    def task(self, step: Solve) -> Task:
        i, shard = step.shard, self.solves[step.shard]
        stored = self.manifest.files[self._file(shard)] if i in self.schedule.stored else None
        reads = () if stored else tuple(self.reads[i])
        below = (self.solves[k].shard for k in reads)
        job = Sweep(
            board=self.game.board, location=self.location, level=self.level, found=shard,
            below=tuple((each.stages, each.box) for each in below), file=self._file(shard),
            error=self.game.float64_error + self.game.cut_error,
            commit=step.commit, stored=stored,
        )  # fmt: skip
        shape = shard.rows + 1, 1 + self.game.players
        keep = PayoffPlace(i, shape, (0, shape[0])) if step.keep else None
        return Task(i, job, _sweep_bytes(shard), reads, keep, stage_file=shard.place)

    def commit(self, receipt: Receipt) -> None:
        shard = self.solves[receipt.shard]
        self.committed += shard.rows
        for file in receipt.files.values():
            self.add(states=file.rows)
            self.writer.add(file.solved_in(shard.seconds + receipt.solve_seconds))


def _name(shard: LevelShard) -> Asker:
    """Return a shard's level and its path in the level."""
    return shard.stages[0] >> 32, shard.path


def _sweep_bytes(shard: FoundShard) -> int:
    return max(LEAST_BYTES, level_shards.SWEEP_BYTES * shard.rows)
