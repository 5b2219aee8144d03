"""What to do next: events in, instructions out. No Ray, no disk, no clock.

A **shard** is what one worker is handed: a tier or a part of one. A shard can be solved once its
children's payoffs are *kept*, and it is solved at most once a run; its own payoffs are kept while
some shard still has to read them, from when they are there: their file takes longer to write.

    waiting ──► running ──► payoffs ready ──► solved
                             kept while needed, then dropped

Of the shards that are ready the earliest in the plan's order goes first; that order is depth-first,
so few shards are kept at any time. Shards in flight never need more memory together than allowed,
and never more workers than there are. A shard that several cores of a machine solve faster gets its
share of the workers where fewer shards are ready than those could do.

A shard that an earlier run committed is not solved again, unless a shard still to do reads it: then
it is solved for that one alone, without a commit, or, where its payoffs are *stored* as they were
solved, read back, for which it needs no children.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Shard:
    """A piece of work. `children`: indices in the plan. `memory`: bytes while it is solved.
    `cores`: how many of one machine can solve it at once; 0 if that takes no time. `seconds`: of
    one core, about. `bytes`: of its files, about."""

    index: int
    name: str
    children: tuple[int, ...]
    rows: int
    memory: int
    cores: int = 1
    seconds: float = 0.0
    bytes: int = 0


@dataclass(frozen=True)
class Solve:
    """Hand the shard to so many workers of a machine; `commit`: its table is wanted, `keep`: its
    payoffs are."""

    shard: int
    commit: bool
    keep: bool
    cores: int = 1


@dataclass(frozen=True)
class Commit:
    """Put the shard's files in their place and note it in the manifest."""

    shard: int
    commit: bool
    keep: bool


@dataclass(frozen=True)
class Drop:
    """Nobody reads the shard's kept payoffs any more: delete them."""

    shard: int


Instruction = Solve | Commit | Drop


class Schedule:
    """The state machine. `start`, then `solved(shard)` for every shard that a worker finished."""

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
        """ahead: for how many times the workers shards are handed out; more than once where some
        wait for the machine that has what they read."""
        self.shards = tuple(shards)
        self.workers, self.memory, self.ahead = workers, memory, ahead
        self.committed, self.kept = set(committed), set[int]()
        self.stored = set(stored) & self.committed
        self.children = {s.index: () if s.index in self.stored else s.children for s in shards}
        self.to_commit = {s.index for s in shards} - self.committed
        todo = set(self.to_commit)
        stack = list(todo)
        seen: set[tuple[int, ...]] = set()
        while stack:  # committed, but read by a shard to do: solved again
            children = self.children[stack.pop()]
            for child in () if children in seen else children:
                if child not in todo:
                    todo.add(child)
                    stack.append(child)
            seen.add(children)
        self.waiting = todo
        self.running: dict[int, int] = {}
        """How many workers each has."""
        self.busy = self.in_use = 0
        """Workers, and bytes, of all that run."""
        # Parts of a tier read the same children, and are one group: thousands of parts that read
        # thousands are counted through once.
        groups: dict[tuple[int, ...], int] = {}
        self.group = {i: groups.setdefault(self.children[i], len(groups)) for i in todo}
        self.to_do: list[set[int]] = [set() for _ in groups]
        for index, group in self.group.items():
            self.to_do[group].add(index)
        self.readers: dict[int, set[int]] = {s.index: set() for s in shards}
        for children, group in groups.items():
            for child in children:
                self.readers[child].add(group)
        # How many children of a group are not kept yet; at none its shards are ready.
        self.unmet = [len(set(children)) for children in groups]
        self.ready = sorted(i for i in todo if not self.unmet[self.group[i]])

    @property
    def finished(self) -> bool:
        """Nothing waits and nothing runs."""
        return not self.waiting and not self.running

    def start(self) -> list[Instruction]:
        """The first instructions."""
        return self._solve_ready()

    def resize(self, workers: int) -> list[Instruction]:
        """There are so many workers now."""
        self.workers = workers
        return self._solve_ready()

    def payoffs_ready(self, shard: int) -> list[Instruction]:
        """The payoffs of a running shard are there; its file is still being written."""
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
        """A worker has finished `shard`; its files are written, not yet in place."""
        self.busy -= self.running.pop(shard)
        self.in_use -= self.shards[shard].memory
        ready = shard in self.kept
        keep = bool(self.readers[shard]) or ready
        commit = shard in self.to_commit
        out: list[Instruction] = [Commit(shard, commit, keep)]
        if commit:
            self.to_commit.remove(shard)
            self.committed.add(shard)
        if keep and not ready:
            self._keep(shard)
        group = self.group[shard]
        self.to_do[group].remove(shard)
        done = () if self.to_do[group] else self.children[shard]
        for child in done:
            self.readers[child].discard(group)
        for child in (*done, shard):  # a file is still written from what runs
            if child in self.kept and not self.readers[child] and child not in self.running:
                self.kept.remove(child)
                out.append(Drop(child))
        return out + self._solve_ready()

    def _share(self) -> int:
        """The workers that each shard gets which can have several: a power of two, for such shards
        fill a machine; twice as many as if all ran at once, for some wait for their machine."""
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
