"""The schedule of a solve: events in, instructions out. It uses no Ray, no disk and no clock.

A **shard** is a tier, or part of a tier, solved by one worker. It can be solved once its children's
payoffs are *kept*, and it is solved at most once a run. Its own payoffs are kept as soon as they
are ready, which is before its file is written, and as long as another shard still has to read them.

    waiting ──► running ──► payoffs ready ──► solved
                             kept while needed, then dropped

Of the ready shards, the earliest in the plan's order is solved first. That order is depth-first, so
few shards are kept at any time. The running shards together never exceed the memory or the number
of workers. If fewer shards are ready than there are workers, a shard that several cores of a
machine solve faster gets several.

A shard that an earlier run committed is not solved again, unless a shard still to be solved reads
it. Then its payoffs are read back from its file if they are *stored* exactly, which needs no
children. Otherwise it is solved again without a commit.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Shard:
    """A piece of work."""

    index: int
    name: str
    children: tuple[int, ...]  # indices in the plan
    rows: int
    memory: int  # bytes needed while it is solved
    cores: int = 1  # number of cores of a machine that can solve it at once; 0 if it takes no time
    seconds: float = 0.0  # estimated core seconds
    bytes: int = 0  # estimated bytes of its files
    files: tuple[str, ...] = ()  # their names
    work: Any = None  # what its worker needs to know; unused here


@dataclass(frozen=True)
class Solve:
    """Solve a shard."""

    shard: int
    commit: bool  # write its files
    keep: bool  # keep its payoffs
    cores: int = 1  # number of workers to use, all on the same machine


@dataclass(frozen=True)
class Drop:
    """Delete the shard's kept payoffs: no shard reads them any more."""

    shard: int


Instruction = Solve | Drop


class Schedule:
    """The state machine. Call `start`, then `solved(shard)` for every finished shard."""

    def __init__(
        self,
        shards: Sequence[Shard],
        *,
        workers: int,
        memory: int,
        committed: Collection[int] = (),
        stored: Collection[int] = (),
        ahead: int = 1,
    ) -> None:
        """
        memory: bytes that the running shards may need together.
        committed: shards that an earlier run committed.
        stored: shards whose payoffs can be read back from their files.
        ahead: how many times the number of workers to hand out. More than 1 if some shards wait for
            the machine that has the payoffs they read.
        """
        self.shards = tuple(shards)
        self.workers, self.memory, self.ahead = workers, memory, ahead
        self.committed, self.kept = set(committed), set[int]()
        self.stored = set(stored) & self.committed
        self.children = {s.index: () if s.index in self.stored else s.children for s in shards}
        self.to_commit = {s.index for s in shards} - self.committed
        todo = set(self.to_commit)
        stack = list(todo)
        seen: set[tuple[int, ...]] = set()
        while stack:  # committed, but read by a shard that is still to be solved: solve it again
            children = self.children[stack.pop()]
            for child in () if children in seen else children:
                if child not in todo:
                    todo.add(child)
                    stack.append(child)
            seen.add(children)
        self.waiting = todo
        self.running: dict[int, int] = {}
        """Number of workers of each shard."""
        self.busy = self.in_use = 0
        """Workers and bytes of all running shards."""
        # Parts of a tier read the same children and form one group, so that thousands of parts that
        # read thousands of children are counted once.
        groups: dict[tuple[int, ...], int] = {}
        self.group = {i: groups.setdefault(self.children[i], len(groups)) for i in todo}
        self.to_do: list[set[int]] = [set() for _ in groups]
        for index, group in self.group.items():
            self.to_do[group].add(index)
        self.readers: dict[int, set[int]] = {s.index: set() for s in shards}
        for children, group in groups.items():
            for child in children:
                self.readers[child].add(group)
        # Number of children of each group that are not kept yet. At 0, the group's shards are
        # ready.
        self.unmet = [len(set(children)) for children in groups]
        self.ready = sorted(i for i in todo if not self.unmet[self.group[i]])

    @property
    def finished(self) -> bool:
        return not self.waiting and not self.running

    def start(self) -> list[Instruction]:
        return self._solve_ready()

    def resize(self, workers: int) -> list[Instruction]:
        self.workers = workers
        return self._solve_ready()

    def payoffs_ready(self, shard: int) -> list[Instruction]:
        """The payoffs of a running shard are ready; its file is still being written."""
        if shard in self.kept or not self.readers[shard]:
            return []
        self._keep(shard)
        return self._solve_ready()

    def _keep(self, shard: int) -> None:
        self.kept.add(shard)
        for group in self.readers[shard]:
            self.unmet[group] -= 1
            for reader in () if self.unmet[group] else self.to_do[group]:
                heapq.heappush(self.ready, reader)

    def solved(self, shard: int) -> list[Instruction]:
        """A worker has finished a shard. Its files were `to_commit`, or it has none."""
        self.busy -= self.running.pop(shard)
        self.in_use -= self.shards[shard].memory
        ready = shard in self.kept
        keep = bool(self.readers[shard]) or ready
        out: list[Instruction] = []
        if shard in self.to_commit:
            self.to_commit.remove(shard)
            self.committed.add(shard)
        if keep and not ready:
            self._keep(shard)
        group = self.group[shard]
        self.to_do[group].remove(shard)
        done = () if self.to_do[group] else self.children[shard]
        for child in done:
            self.readers[child].discard(group)
        for child in (*done, shard):  # a running shard's file is still being written
            if child in self.kept and not self.readers[child] and child not in self.running:
                self.kept.remove(child)
                out.append(Drop(child))
        return out + self._solve_ready()

    def _share(self) -> int:
        """Return the number of workers for each shard that can use several.

        This is a power of two, because such shards fill a machine. It is twice the number that
        would fit if all ran at once, because some wait for their machine.
        """
        many = sum(self.shards[i].cores > 1 for each in (self.ready, self.running) for i in each)
        return 1 << max(1, 2 * self.workers // (many + 1)).bit_length() - 1

    def _solve_ready(self) -> list[Instruction]:
        out: list[Instruction] = []
        too_large, share = [], 0
        most = self.ahead * self.workers
        while self.ready and self.busy < most:
            index = heapq.heappop(self.ready)
            shard = self.shards[index]
            if self.in_use + shard.memory > self.memory and self.running:
                too_large.append(index)
                continue
            share = share or (self._share() if shard.cores > 1 else 0)
            cores = min(shard.cores, max(1, share))
            if self.busy and self.busy + cores > most:
                too_large.append(index)
                break
            self.waiting.remove(index)
            self.running[index] = cores
            self.busy += cores
            self.in_use += shard.memory
            out.append(Solve(index, index in self.to_commit, bool(self.readers[index]), cores))
        for index in too_large:
            heapq.heappush(self.ready, index)
        return out
