"""Find the states of a stage: a box of a level, expanded from the keys that are requested."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.errors import MemoryLimitError, StateError
from luckbase.solver.game.faults import fault_at
from luckbase.solver.game.game import Stopped
from luckbase.solver.search import keys as hashing
from luckbase.solver.search import stage_kernels as kernels
from luckbase.solver.search.expand import expand, expanding, room_of
from luckbase.solver.search.keys import NO_KEYS, Keys, grown, unpack_all
from luckbase.solver.search.runs import RUN, Nodes, Runs, count_runs, number_runs, ranks_of
from luckbase.solver.search.stage_kernels import Order, Patterns, Records
from luckbase.solver.search.stages import BUDGET, EVERY, WHOLE, Box, Stage, Stages, cut, first_edges
from luckbase.solver.sentences import option

CACHED = 400_000
"""The most states of a box, roughly: with more, tables leave the processor's cache."""
PARTS, SAMPLE = 8, 1 << 13
"""Boxes into which a box with too many states is cut, and states sampled for the cut."""


class BoxSearch:
    """The states of a box of a level at or below the `requested` ones.

    It owns the growing arrays of `stage_kernels.expand_on`.

    requested: lists of runs, which may overlap.
    expected: roughly the number of states.
    most: the number of states that fit in memory.
    own, requests: as in `Stage`; known after `number`, before the states are ordered, so that other
        boxes need not wait.
    """

    own: Runs
    requests: list[tuple[int, Runs, NDArray[np.int32]]]

    def __init__(
        self, stages: Stages, level: int, requested: Sequence[Runs], box: Box = WHOLE, *,
        expected: int = 0, most: int = EVERY >> 1,
    ) -> None:  # fmt: skip
        self.stages, self.game, self.level, self.box = stages, stages.game, level, box
        self.most = most
        self.place = stages.place(level, box)
        self.requested = requested
        # Room for its states and about as many children elsewhere. Longer tables leave the cache.
        game, room = self.game, _power(max(1 << 12, 2 * min(expected, CACHED)))
        self.nodes = self._nodes(max(1 << 12, room >> self.place.run_bits // 2), room >> 1)
        lengths = room >> 1, room >> 1, room << 3  # only the used part takes memory
        self.records = Records(*(np.empty(length, np.int32) for length in lengths))
        kinds, edges, players = 1 << 8, max(1 << 12, 2 * game.max_edges), game.players
        self.patterns = Patterns(
            np.full(4 * kinds, -1, np.int32), np.empty(kinds, np.uint64),
            np.zeros(kinds + 1, np.int64), np.empty(kinds, np.int64), np.empty(edges),
            np.empty(edges, np.int64), np.empty((edges if game.pays else 0, players)),
            np.zeros((kinds, players)),
        )  # fmt: skip
        self.at = np.zeros(8, np.int64)
        self.room = room_of(game)

    def _nodes(self, runs: int, own: int) -> Nodes:
        if runs << self.place.run_bits > 1 << 31:
            why = "its functions `inside` leave too many states in one box"
            raise StateError(f"level {self.stages.level}: {why}")
        slots = np.full(2 * runs, -1, np.int32)
        return Nodes(slots, np.empty((runs, 4), np.uint64), np.empty(own, np.int32))

    def _enter(self) -> None:
        for runs in self.requested:
            entered = 0
            while entered < len(runs.keys):
                self._grow_nodes(1, RUN)
                entered = kernels.enter(self.place, self.nodes, self.at, runs, entered)
        self.requested = ()

    def run(self, stop: Callable[[], bool] = lambda: False, max_states: int = 0) -> list[Box]:
        """Expand until no state is left; return [].

        With `max_states`, stop once more states were reached, if the level's functions can separate
        them, and return boxes to cut this one into, ordered so that none leads to an earlier one.
        stop: called now and then.

        Raises StateError for an edge that the level forbids, GameError for a state whose edges
        break the rules, MemoryLimitError for more than `most` states, Stopped soon after `stop()`
        becomes true.
        """
        game, limit = self.game, min(self.most, max_states or self.most)
        self._enter()
        while True:
            with expanding(game, self.room):
                code = kernels.expand_on(
                    game.transition, game.numbers, self.room, game.strides, self.place, self.nodes,
                    self.records, self.patterns, self.at, BUDGET, limit,
                )  # fmt: skip
            if code == kernels.FINISHED:
                return []
            if stop():
                raise Stopped
            if code == kernels.GROW:
                self._grow()
            elif code == kernels.REFUSED:
                raise fault_at(game, self.room.at)
            elif code == kernels.RISES:
                raise self._rose(int(self.at[kernels.WRONG]))
            if self.at[kernels.OWN] > limit:
                if limit < self.most and len(parts := self._parts()) > 1:
                    return parts
                if self.at[kernels.OWN] > self.most:
                    raise self._too_large()
                limit = self.most

    def _too_large(self) -> MemoryLimitError:
        return MemoryLimitError(
            f"memory: a stage of level {self.stages.level} has more than {self.count:,} states; "
            f"allow more with {option('memory')}, or give the level functions `inside`, by which "
            "a stage is cut"
        )

    def _parts(self) -> list[Box]:
        """Return its box cut by a sample of the states reached; one box if it cannot be cut."""
        own = self.nodes.own[: self.at[kernels.OWN]]
        keys: Keys = kernels.keys_of(self.place, self.nodes.runs, own)
        sample = np.ascontiguousarray(keys[:: max(1, len(keys) // SAMPLE)])
        return [box for box, _ in cut(self.stages, sample, PARTS, box=self.box)]

    def _rose(self, number: int) -> StateError:
        parent = kernels.keys_of(self.place, self.nodes.runs, np.array([number], np.int32))
        state = unpack_all(self.game.strides, parent)
        children = expand(self.game, state).children
        keys = hashing.pack_all(self.game.strides, children)
        at = int(np.argmax(self.stages.forbidden(np.repeat(parent, len(keys)), keys)))
        return StateError(
            f"level {self.stages.level}: is not one of {self.game.board.game}: an edge leads from "
            f"{self.game.say(state[0])} to {self.game.say(children[at])}"
        )

    def _grow_nodes(self, runs: int, states: int) -> None:
        count, own = int(self.at[kernels.RUNS]), int(self.at[kernels.OWN])
        if count + runs > len(self.nodes.runs):
            nodes = self._nodes(_power(count + runs), 0)
            nodes.runs[:count] = self.nodes.runs[:count]
            hashing.rehash(nodes.slots, nodes.runs, count)
            self.nodes = nodes._replace(own=self.nodes.own)
        self.nodes = self.nodes._replace(own=grown(self.nodes.own, own + states))

    def _grow(self) -> None:
        max_edges, (states, edges, kinds, kept) = self.game.max_edges, self.at[3:7].tolist()
        self._grow_nodes(max_edges, max_edges)
        lengths = states + 1, states + 1, edges + max_edges
        self.records = Records(*map(grown, self.records, lengths))
        old, slots = self.patterns, self.patterns.slots
        hashes, weights = grown(old.hashes, kinds + 2), grown(old.weights, kept + max_edges)
        room, kept = len(hashes), len(weights)
        if room > len(old.hashes):
            slots = np.full(4 * room, -1, np.int32)
            kernels.enter_patterns(slots, hashes[:kinds])
        self.patterns = Patterns(
            slots, hashes, grown(old.first, room + 1), grown(old.actors, room), weights,
            grown(old.actions, kept), grown(old.rewards, kept) if self.game.pays else old.rewards,
            grown(old.payoffs, room, 0.0),
        )  # fmt: skip

    @property
    def count(self) -> int:
        """The number of its states."""
        return int(self.at[kernels.OWN])

    @property
    def edges(self) -> int:
        """The number of edges expanded."""
        return int(self.at[kernels.EDGES])

    def number(self) -> None:
        """Number the states of the box by key, then the children needed from other stages."""
        runs = self.nodes.runs[: self.at[kernels.RUNS]]
        at = np.flatnonzero(runs[:, 2])
        at = at[hashing.order_of(runs[at, 0])].astype(np.int32)
        self.own = Runs(runs[at, 0], runs[at, 2], self.stages.run_low)
        self._numbers = np.empty(count_runs(runs), np.int32)
        number_runs(self.own, NO_KEYS, runs, at, self._numbers, 0)
        self.requests = self._requests(runs, self._numbers, self.count)

    def stage(self) -> Stage:
        """Return the states of the numbered box, ready to be solved."""
        n, edges, own, numbers = self.count, self.edges, self.own, self._numbers
        runs, run_bits = self.nodes.runs[: self.at[kernels.RUNS]], self.place.run_bits
        full, (kinds, kept) = self.patterns, self.at[kernels.PATTERNS :][:2].tolist()
        patterns = Patterns(
            np.empty(0, np.int32), np.empty(0, np.uint64), full.first[: kinds + 1].copy(),
            full.actors[:kinds].copy(), full.weights[:kept].copy(), full.actions[:kept].copy(),
            full.rewards[: kept if self.game.pays else 0].copy(), full.payoffs[:kinds].copy(),
        )  # fmt: skip
        rows = numbers[ranks_of(runs, run_bits, self.records.numbers[:n])]
        pattern_of, children = np.empty(n, np.int32), np.empty(edges, np.int32)
        pattern_of[rows] = self.records.patterns[:n]
        first = first_edges(patterns.first, pattern_of)
        kernels.renumber(rows, self.records.children, runs, run_bits, numbers, first, children)
        order, loops = kernels.ordered(first, children)
        states = Order(order, first, pattern_of, children)
        return Stage(own, states, patterns, loops, self.requests, edges)

    def _requests(
        self, runs: Keys, numbers: NDArray[np.int32], begin: int
    ) -> list[tuple[int, Runs, NDArray[np.int32]]]:
        """Return the states needed from other stages, by stage, with their numbers.

        The numbers continue from `begin` and are also written to `numbers`.
        """
        at = np.flatnonzero(runs[:, 1] != runs[:, 2])
        at = at[hashing.order_of(runs[at, 0])].astype(np.int32)
        stage = self.stages.of(runs[at, 0])
        by_stage = hashing.order_of(stage)
        at, stage = at[by_stage], stage[by_stage]
        ends = [*(np.flatnonzero(np.diff(stage)) + 1).tolist(), len(stage)]
        requests, here = [], begin
        for start, end in pairwise([0, *ends] if len(at) else []):
            part = at[start:end]
            keys, reached, inside, _ = runs[part].T.copy()
            other = Runs(keys, reached & ~inside, self.stages.run_low)
            stop = number_runs(other, NO_KEYS, runs, part, numbers, here)
            requests.append((int(stage[start]), other, np.arange(here, stop, dtype=np.int32)))
            here = stop
        return requests


def _power(length: int) -> int:
    return 1 << max(0, length - 1).bit_length()
