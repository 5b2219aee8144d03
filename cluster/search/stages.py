"""A search by stages: every state once, on as many workers as there are, larger than memory.

1. **Down**, highest level first. A level is cut into shards (`cluster.search.shards`), its large
   stages by workers (`tasks.CutStage`) as far as they know what is known; each is found by a
   worker (`tasks.Find`), which says what it asks of others to whoever waits for it, leaves it in
   the table, and then a stage file on its own disk. The next level begins once it is known what
   all of this one ask for; their last files may yet be written.
2. **Up**, children first, by the schedule of the dense tiers: a shard is solved once the shards
   that it asks are (`tasks.Sweep`), writes its file of the table, and hands on its payoffs to those
   that asked. Its stage file is deleted when nobody will need it again.

Every finished shard of either pass is in the ledger, so the same call goes on from there. A stage
file that is on no disk any more, for its machine is gone, is found again from what others asked of
it. Shards, their names and their rows depend on the game, the roots and what was known, not on the
workers.
"""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count
from typing import NamedTuple

import numpy as np

from luckbase.cluster.run.driver import IDLE_SECONDS, Run, memory_budget
from luckbase.cluster.run.options import Options
from luckbase.cluster.run.progress import Progress, SolvedSearch
from luckbase.cluster.run.schedule import Schedule, Shard, Solve
from luckbase.cluster.run.worker import PayoffPlace, Task
from luckbase.cluster.search import files
from luckbase.cluster.search import shards as level_shards
from luckbase.cluster.search.boundary import UsedTable, let_go, used_ends
from luckbase.cluster.search.files import Ask, in_file, read_asks
from luckbase.cluster.search.shards import (
    Asker,
    Cut,
    Demand,
    Growth,
    LevelShard,
    Order,
    Request,
    StageSample,
    number_of,
)
from luckbase.cluster.search.tasks import (
    CutStage,
    Find,
    FindReceipt,
    FoundAsks,
    Sweep,
    SweepReceipt,
)
from luckbase.cluster.table import folder
from luckbase.cluster.table.entries import Commits, commit, compact
from luckbase.cluster.table.folder import ends_of
from luckbase.cluster.table.keyed import KeyPart
from luckbase.cluster.table.ledger import FileEntry, Goal, LevelEntry, ShardEntry
from luckbase.solver.errors import LuckbaseError, SearchLimitError
from luckbase.solver.game.capabilities import Level
from luckbase.solver.game.game import Game
from luckbase.solver.search.explore import estimate
from luckbase.solver.search.find_stages import CACHED, RisingError
from luckbase.solver.search.keys import NO_KEYS, Keys, unpack_all
from luckbase.solver.search.stages import Box, IsKnown, KeyedPayoffs, Stages
from luckbase.solver.sentences import many

ASK_BYTES, STORED_BYTES = 24, 100
"""Bytes a state of the whole shard that is being found, for what is asked of it; a row of the files
that it reads."""
ABOUT_AFTER = 20.0
"""Seconds after which it is estimated, beside the rest, how many states there are."""
PATIENCE = 0.1
"""Seconds that what is done waits to be committed: of hundreds of workers somebody is done all the
time, and a commit waits for the disk."""
STORE_BYTES = 4 << 30
"""Of Ray's object store on this machine; what is beyond spills to the disk."""


@dataclass(frozen=True)
class SearchContext:
    """What is searched, what is known, and what comes with it."""

    goal: Goal
    roots: Keys
    known: KeyedPayoffs
    """From searches of this part in one piece."""
    stored: KeyPart | None
    """The part where searches by stages of the same level have stored what they found."""
    used: UsedTable | None
    """The table at which it ends."""
    is_known: IsKnown
    """Whether any of these has a state."""
    known_sha: str
    error: float
    """The bound on that of all payoffs; `precision`: of those where all decisions are told."""
    precision: float
    tolerance: float
    """Of ties."""


@dataclass
class _Level:
    """A level that is being found. states: of each shard of which it is known what it asks for.
    unknown: tasks of which this is not known yet."""

    number: int
    order: Order
    states: dict[int, int] = field(default_factory=dict)
    unknown: int = 0


class _Finding(NamedTuple):
    """A task on the way down, its place among those of its level; of a `Find`, the level, and the
    requests that it is handed."""

    task: Task
    place: int
    level: _Level | None = None
    requests: Sequence[Request] = ()


class StageSearch(Run[SolvedSearch]):
    """One run: both passes, the ledger, the counts."""

    def __init__(
        self,
        game: Game,
        level: Level,
        context: SearchContext,
        report: SolvedSearch,
        options: Options,
    ) -> None:
        super().__init__(game, report, options, memory_budget(options))
        self.context, self.stages = context, Stages(game, level)
        self.level = json.dumps(level.as_json())
        self.seconds_finding = 0.0
        self.at_level = self.done_before = 0
        rows = [line.rows for line in self.ledger.shards.values() if line.ask == context.goal.ask]
        self.found_before = self.met = sum(rows)
        self.shards_met = len(rows)
        self.there: set[str] = set()
        """Stage files that were found, or seen to be whole, in this run."""
        self.lost: list[str] = []
        """Sentences of those that were not."""
        self.tasks = count()
        """The numbers of tasks on the way down."""
        self.solved = self.committed = 0
        self.about: int | None = None
        self.commits = Commits(self.ledger, PATIENCE)
        self.keeping = Commits(self.ledger, PATIENCE)

    def run(self) -> SolvedSearch:
        """Both passes. Raises as `find_stages.BoxSearch` and `sweep.Sweeping` do."""
        ask, sha = self.context.goal.ask, self.context.known_sha
        if ask not in self.ledger.levels:
            entry = LevelEntry(ask, self.stages.level.as_json(), sha, level_shards.cutting())
            commit(self.ledger, entry)
        with self.open(self.memory // 2, min(self.memory // 4, STORE_BYTES)):
            try:
                self.solve_shards()
            except RisingError:  # it can not go on by stages
                self.workers.delete()
                raise
            self.workers.delete()
        stages = {stage for one in self.found for stage in one.stages}
        return self.done(
            states=self.solved, shards=len(self.found), edges=self._edges(),
            stages=len(stages), levels=len(self.levels),
            damaged=(*self.before.damaged, *self.lost),
        )  # fmt: skip

    def _name(self, shard: LevelShard) -> str:
        return f"{self.context.goal.ask[:12]}-{shard.stages[0] >> 32}-{number_of(shard.path)}"

    def _edges(self) -> int:
        """Edges of the states that this run has solved; about, of a search that went on."""
        states = sum(entry.rows for entry in self.found)
        return sum(entry.edges for entry in self.found) * self.committed // max(1, states)

    def _file(self, entry: ShardEntry) -> str:
        return folder.shard_file_name(self.context.goal.part, entry.name)

    # --- down --------------------------------------------------------------------------------

    def _down(self) -> None:
        self.found: list[ShardEntry] = []
        self.levels: list[list[LevelShard]] = []
        self.finding: dict[int, _Finding] = {}
        """The tasks that run, by number; none of a way down that ended with a lost machine."""
        self.finding_bytes = 0
        stages = self.stages.of(self.context.roots)
        self.roots_of = {
            stage: np.ascontiguousarray(self.context.roots[stages == stage])
            for stage in np.unique(stages).tolist()
        }
        self.asks, above = Demand(self.stages, self.context.roots, self.context.is_known), Growth()
        states, limit = 0, self.options.max_states or math.inf
        with self.keeping:
            while (number := self.asks.highest()) is not None and states <= limit:
                self.at_level = number
                level = _Level(number, Order(self.asks.shards(number, above, self._cut)))
                self._find(level)
                shards = level.order.shards
                sizes = [level.states[i] for i in range(len(shards))]
                above = level_shards.growth_of(shards, sizes, self.asks.requested_of)
                self.asks.done(number)
                self.levels.append(shards)
                states += sum(sizes)
                self._show_found()
            while self.finding:
                self._wait()
        self._show_found()
        if states > limit:
            raise SearchLimitError(
                f"the search has found {many(states, 'state')} in "
                f"{many(len(self.levels), 'level')} and is not finished; the limit is {limit:,}"
            )
        for shards in self.levels:
            in_order = sorted(shards, key=lambda shard: shard.path)
            self.found += [self.ledger.shards[self._name(shard)] for shard in in_order]

    def _forget_lost(self) -> bool:
        """Forget the shards whose stage files are needed and on no machine's disk, or changed;
        whether there are any."""
        needed = folder.needed_shards(self.ledger, self.context.goal.ask)
        whole = self.workers.whole(
            {entry.place: "" if entry.place in self.there else entry.sha256 for entry in needed}
        )
        lost = [entry for entry in needed if entry.place not in whole]
        self.there = whole
        self._forget(*lost)
        if lost and self.location.apart:
            self.watch.note(
                f"of {many(len(lost), 'shard')} the stage file is on no machine that works here: "
                "found again"
            )
        elif lost:
            said = "is missing or is not as luckbase wrote it"
            self.lost += [f"{self.before.table / entry.place}: {said}" for entry in lost]
        return bool(lost)

    def _forget(self, *entries: ShardEntry) -> None:
        """They are to be found again."""
        for entry in entries:
            del self.ledger.shards[entry.name]
            self.met, self.shards_met = self.met - entry.rows, self.shards_met - 1
        if entries:  # else what it says may count at the next reading
            compact(self.ledger, [entry.ask_place for entry in entries])  # another name may come

    def _cut(self, samples: Sequence[StageSample]) -> list[Cut]:
        """Estimate and cut stages: workers do, unless only this process can see which states are
        known."""
        if self.context.known_sha:
            return self.asks.cut(samples)
        todo, cuts = list(enumerate(samples)), dict[int, Cut]()
        while len(cuts) < len(samples):
            while todo and self._room(folder.LEAST_BYTES):
                i, sample = todo.pop()
                job = CutStage(
                    board=self.game.board, location=self.location, level=self.level,
                    number=next(self.tasks), sample=sample, roots=self.asks.estimator.roots,
                )  # fmt: skip
                self._hand_out(_Finding(Task(job.number, job, folder.LEAST_BYTES), i))
            cut = self._wait()
            if cut is not None:
                cuts[cut[0]] = cut[1]
        return [cuts[i] for i in range(len(samples))]

    def _find(self, level: _Level) -> None:
        """Find the shards of a level, those that the ledger does not have, until it is known what
        each asks for: their stage files may yet be written."""
        waits = self._next_task(level)
        while waits is not None or level.unknown:
            while waits is not None and self._room(waits.task.memory):
                self._hand_out(waits)
                level.unknown += 1
                waits = self._next_task(level)
            self._wait()
            waits = self._next_task(level) if waits is None else waits

    def _room(self, memory: int) -> bool:
        """Whether there are a worker and so many bytes for a task more on the way down."""
        fits = not self.finding or self.finding_bytes + memory <= self.memory
        return fits and len(self.finding) < self.workers.slots

    def _hand_out(self, finding: _Finding) -> None:
        self.workers.submit(finding.task)
        self.finding[finding.task.shard] = finding
        self.finding_bytes += finding.task.memory

    def _wait(self) -> tuple[int, Cut] | None:
        """Wait for a task of the way down, for a moment, and take in what came of it: of a stage
        that was cut its place among the samples, and the boxes."""
        cut = None
        event = self.workers.wait_one(self.keeping.seconds if self.keeping else IDLE_SECONDS)
        if isinstance(event, FoundAsks):
            self._take(event)
        elif event is not None:
            done = self.finding.pop(event.shard)
            self.finding_bytes -= done.task.memory
            if isinstance(event, FindReceipt):
                self._keep(event, sorted({done.requests[k].asker for k in event.used_asks}))
            else:
                cut = done.place, event.cut
                self.solve_seconds += event.solve_seconds
        if event is None or self.keeping.full:
            self.keeping.flush()
            self._show_found()
        return cut

    def _next_task(self, level: _Level) -> _Finding | None:
        """To find the next shard, past those that are there."""
        while (i := level.order.pop()) is not None:
            shard = level.order.shards[i]
            entry = self._there(shard)
            if entry is None:
                requests = self.asks.of(shard)
                task = self._task_to_find(next(self.tasks), shard, requests)
                return _Finding(task, i, level, requests)
            name = entry.ask_place
            asks = in_file(read_asks(name, self.storage.read(name)), name)
            self._asked(level, i, entry.rows, asks, [Box(*ends) for ends in entry.rest])
        return None

    def _take(self, event: FoundAsks) -> None:
        """Take in what a shard asks for."""
        _, place, level, _ = self.finding[event.shard]
        if level is not None and place not in level.states:  # else its machine was lost since
            level.unknown -= 1
            if event.content:
                self.storage.put_if_absent(event.place, event.content)
            self._asked(level, place, event.states, event.asks, event.parts)

    def _asked(
        self, level: _Level, i: int, states: int, asks: Sequence[Ask], parts: Sequence[Box]
    ) -> None:
        """It is known how many states a shard has, and what it asks for, which others wait for."""
        shard, first = level.order.shards[i], len(level.order.shards)
        level.states[i] = states
        self.asks.add((level.number, shard.path), asks)
        left = [(box, level_shards.SHARD_STATES) for box in parts]
        boxes = level_shards.boxes_in_order
        level.order.done(i, boxes(self.stages, shard.stages, left, first, shard.path))

    def _task_to_find(self, number: int, shard: LevelShard, asks: Sequence[Request]) -> Task:
        keys = [self.roots_of[stage] for stage in shard.stages if stage in self.roots_of]
        stored = tuple[FileEntry, ...]()
        if self.context.stored is not None:
            boxes = [request.ask.box for request in asks] + [*map(self.stages.around, keys)]
            stored = self.context.stored.files_in(shard.stages, self._reach(shard, boxes))
        job = Find(
            board=self.game.board, location=self.location, level=self.level, number=number,
            name=self._name(shard), search=self.context.goal.ask, given=self.context.known_sha,
            shard=shard, roots=np.concatenate(keys) if keys else NO_KEYS,
            asks=tuple([request.ask.keys for request in asks]), known=self._known(shard),
            stored=stored, max_states=level_shards.max_states(shard), sparse=files.SPARSE_BITS,
            used=self.context.used,
        )  # fmt: skip
        memory = self._find_bytes(shard.likely) + STORED_BYTES * sum(file.rows for file in stored)
        return Task(number, job, memory, early=True)

    def _reach(self, shard: LevelShard, boxes: Sequence[Box]) -> Box:
        """The part of a shard's box that lies below what is asked of it, in these boxes, for no
        function rises; others can not be met."""
        if not boxes or any(box.whole for box in boxes):
            return shard.box
        inside = self.stages.inside
        upper = inside.values(np.array([box.high for box in boxes], np.uint64)).max(axis=0)
        lower = 0
        if not shard.box.whole:
            lower = shard.box.low
            upper = np.minimum(upper, inside.values(np.array([shard.box.high], np.uint64))[0])
        return Box(lower, inside.word(upper))

    def _find_bytes(self, expected: int) -> int:
        box = min(expected, CACHED) if self.stages.level.inside else expected
        ends = None if self.context.used is None else used_ends(self.context.used)
        used = 0 if ends is None else ends.memory(expected)
        return max(folder.LEAST_BYTES, level_shards.FIND_BYTES * box + ASK_BYTES * expected) + used

    def _there(self, shard: LevelShard) -> ShardEntry | None:
        """What the ledger has of a shard, if it was found as it is to be now."""
        entry = self.ledger.shards.get(self._name(shard))
        if entry is None:
            return None
        same = entry.stages == list(shard.stages) and entry.box == ends_of(shard.box)
        if same and entry.given == self.context.known_sha:
            return entry
        self._forget(entry)
        return None

    def _known(self, shard: LevelShard) -> KeyedPayoffs:
        """What is known of a shard beside files."""
        keys, values = self.context.known
        if not len(keys):
            return self.context.known
        order, stages = self._known_stages
        ends = np.array([(n, n + 1) for n in shard.stages], np.uint64)  # no float holds them
        spans = np.searchsorted(stages, ends).tolist()
        at = np.sort(np.concatenate([order[start:stop] for start, stop in spans]))
        at = at[self.stages.boxes_of(keys[at], [shard.box]) == 0]
        return keys[at], np.ascontiguousarray(values[at])

    @cached_property
    def _known_stages(self) -> tuple[np.ndarray, np.ndarray]:
        """What is known by stage: its rows, and the stage of each of these."""
        stages = self.stages.of(self.context.known[0])
        order = np.argsort(stages, kind="stable")
        return order, stages[order]

    def _keep(self, receipt: FindReceipt, askers: Sequence[Asker]) -> None:
        """Note what was found."""
        numbers: dict[str, list[str]] = {}
        for level, path in askers:
            numbers.setdefault(str(level), []).append(number_of(path))
        entry = replace(receipt.entry, askers=numbers)
        self.keeping.add(entry)
        self.there.add(entry.place)
        self.met, self.shards_met = self.met + entry.rows, self.shards_met + 1
        self.solve_seconds += receipt.solve_seconds
        self.note_memory(receipt)

    def _show_found(self) -> None:
        if self.seconds > ABOUT_AFTER and self.about is None and not self.context.known_sha:
            self.about = 0
            threading.Thread(target=self._estimate, daemon=True, name="luckbase estimate").start()
        self.show(Progress(
            self.shards_met, 0, self.met, 0, self.seconds, finding=f"level {self.at_level}",
            about=max(self.met, self.about) if self.about else 0, before=self.found_before,
        ))  # fmt: skip

    def _estimate(self) -> None:
        """About how many states there are. What is wrong with one the search itself will say."""
        with suppress(LuckbaseError):
            roots = unpack_all(self.game.strides, self.context.roots)
            self.about = estimate(self.game, roots).states

    def progress(self) -> Progress:
        """How far it is on its way up."""
        return Progress(
            self.swept, len(self.solves), self.done_rows, self.met,
            self.seconds - self.seconds_finding, of="shards", before=self.done_before,
        )  # fmt: skip

    # --- up ----------------------------------------------------------------------------------

    def _up(self) -> None:
        """Lay out which shards are solved, children first, and which of them each reads."""
        self.solves = [entry for entry in self.found[::-1] if entry.rows]
        self.boxes = [(tuple(entry.stages), Box(*entry.box)) for entry in self.solves]
        self.empty: set[int] = set()
        self.reads: list[list[int]] = [[] for _ in self.solves]
        place = {entry.name: i for i, entry in enumerate(self.solves)}
        for i, entry in enumerate(self.solves):
            for asker in folder.askers_of(entry):
                self.reads[place[asker]].append(i)

    def make_schedule(self) -> Schedule:
        """What is still to do on the way up, once all is found, and lies on some disk."""
        self._down()
        while self._forget_lost():
            self._down()
        if self.context.used is not None:
            let_go(self.context.used)
        self.seconds_finding = self.seconds
        self._up()
        solves, files = self.solves, self.ledger.files
        shards = tuple(
            Shard(i, entry.name, tuple(self.reads[i]), entry.rows, _sweep_bytes(entry))
            for i, entry in enumerate(solves)
        )
        stored = {i for i, entry in enumerate(solves) if self._file(entry) in files}
        self.swept, self.done_rows = 0, sum(solves[i].rows for i in stored)
        self.done_before = self.done_rows
        return Schedule(
            shards, workers=self.workers.slots, memory=self.memory,
            committed=stored | self.empty, stored=stored,
        )  # fmt: skip

    def count(self, receipt: SweepReceipt) -> None:
        self.swept += 1
        new = receipt.shard not in self.schedule.stored
        self.done_rows += self.solves[receipt.shard].rows * new
        self.solve_seconds += receipt.solve_seconds

    def drop(self, shards: list[int]) -> None:
        for shard in shards:
            self.workers.drop(shard)
        gone = [self.solves[shard].place for shard in shards if not self._needed(shard)]
        if gone:
            self.workers.delete(gone)

    def _needed(self, shard: int) -> bool:
        """Whether somebody will yet need a shard's stage file, also after a stop."""
        unfinished = self.schedule.kept, self.schedule.running, self.schedule.waiting
        is_written = self._file(self.solves[shard]) in self.ledger.files
        return not is_written or any(shard in shards for shards in unfinished)

    def task(self, step: Solve) -> Task:
        i, entry = step.shard, self.solves[step.shard]
        stored = self.ledger.files[self._file(entry)] if i in self.schedule.stored else None
        reads = () if stored else tuple(self.reads[i])
        job = Sweep(
            board=self.game.board, location=self.location, level=self.level, number=i, entry=entry,
            below=tuple(self.boxes[k] for k in reads), file=self._file(entry),
            error=self.context.error, precision=self.context.precision,
            tolerance=self.context.tolerance, keep=step.keep, commit=step.commit, stored=stored,
        )  # fmt: skip
        shape = entry.rows + 1, 1 + self.game.players
        keep = PayoffPlace(i, shape, (0, shape[0])) if step.keep else None
        return Task(i, job, _sweep_bytes(entry), reads, keep, stage_file=entry.place)

    def commit(self, receipt: SweepReceipt) -> None:
        shard, file = self.solves[receipt.shard], next(iter(receipt.files.values()), None)
        self.solved += receipt.solved
        self.committed += shard.rows
        if file is None:
            self.empty.add(receipt.shard)
            return
        self.commits.add(file.solved_in(shard.seconds + receipt.solve_seconds))


def _sweep_bytes(entry: ShardEntry) -> int:
    """Bytes that it takes to solve a shard, about."""
    return max(folder.LEAST_BYTES, folder.SWEEP_BYTES * entry.rows)
