"""Stages of a search: the states that a game's level puts together, found first and solved later.

A **stage** is closed under every cycle (`solver.game.level`). It is found from above: `find_stage`
takes the keys that higher stages ask for, expands them and all that they lead to inside, and says
which keys of lower stages it asks for in turn. It is solved from below: `solve_stage` takes the
payoffs of those keys and goes through the states in an order in which children come first. What it
needs for that was kept when the states were found, so nothing is expanded twice: each state's
pattern (who acts, and the weights, actions and rewards of its edges: states of a game have few of
them, or else many that the next state has too) and the rows of its children.

The steps and their order are those of `solver.graph.game_graph`, and components are solved by
`solver.graph.components`: a state's payoffs have the same bits, whichever finds them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.errors import OptionError, StateError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.game import Game, Stopped
from luckbase.solver.game.level import Level
from luckbase.solver.game.transition import room_for
from luckbase.solver.graph import keys as hashing
from luckbase.solver.graph import stage_kernels as kernels
from luckbase.solver.graph.bellman import expand, too_many_edges
from luckbase.solver.graph.bellman_step import Scratch, no_matrix_games
from luckbase.solver.graph.keys import Keys, unpack_all
from luckbase.solver.graph.level_words import CLASSES, Words, scatter, words, words_of
from luckbase.solver.graph.stage_kernels import Nodes, Order, Patterns, Place, Records, Sweep, Walk

BUDGET = 100_000
"""States between two looks at `stop`: a tenth of a second."""
CACHED = 400_000
"""States of a box, at most: with more the tables leave the processor's cache."""
PIECES, SAMPLE = 4, 1 << 13
"""Boxes that a box with too many states is cut into; states that are looked at for that."""
EVERY = (1 << 64) - 1


@dataclass(frozen=True)
class Box:
    """A part of a level: lane by lane, the least and the greatest of the words of its functions
    `inside`; all of it unless they are said."""

    low: int = 0
    high: int = EVERY

    @property
    def whole(self) -> bool:
        """Whether it is all of the level."""
        return (self.low, self.high) == (0, EVERY)


class Stages:
    """A game's level, ready to be asked: which stage a key is of. A stage's number is its level's,
    then, in the lower 32 bits, what keeps it apart from others of that level."""

    def __init__(self, game: Game, level: Level) -> None:
        """Raises OptionError where the level names no column, or has too many values."""
        self.game, self.level = game, level
        self.words: Words = words(game.fields, (level.falls, *level.apart))
        self.shift, bits = self.words.lanes[0]
        if self.shift > 32 or (1 << bits) // level.width >> 31:
            raise OptionError("level: its functions have too many values for a stage's number")
        self.inside, self._scatter = words(game.fields, level.inside), scatter()

    def of(self, keys: Keys) -> NDArray[np.uint64]:
        """The numbers (n,) of the stages of keys (n,)."""
        found = self.words.of(keys)
        level = (found >> np.uint64(self.shift)) // np.uint64(self.level.width)
        apart = found & np.uint64((1 << self.shift) - 1)
        if self.level.strict:  # any cut will do
            apart = words_of(self._scatter, np.ascontiguousarray(keys)) >> np.uint64(64 - CLASSES)
        stages: NDArray[np.uint64] = level << np.uint64(32) | apart
        return stages

    def forbidden(self, above: Keys, below: Keys) -> NDArray[np.bool_]:
        """(n,) whether the level says that no edge leads from one key to the other."""
        first, second = self.of(above), self.of(below)
        levels = first >> np.uint64(32), second >> np.uint64(32)
        same, guards = levels[0] == levels[1], np.uint64(self.inside.guards)
        gone = ((self.inside.of(above) | guards) - self.inside.of(below)) & guards != guards
        inside = (first != second) | gone | self.level.strict
        found: NDArray[np.bool_] = (levels[1] > levels[0]) | (same & inside)
        return found

    def place(self, level: int, box: Box) -> Place:
        """What the kernel is told to look for."""
        return Place(
            self.words.table, self.inside.table, np.uint64(self.shift),
            np.uint64(self.level.width), np.uint64(level), np.uint64(self.inside.guards),
            np.uint64(box.low), np.uint64(box.high), int(self.level.strict), int(not box.whole),
        )  # fmt: skip

    def split(self, box: Box, keys: Keys, most: int) -> list[Box]:
        """Boxes of a box, none of which leads to one before it: such that of some of its keys (n,)
        at most `most` are in each, as far as the level's functions tell them apart."""
        values = self.inside.values(self.inside.of(keys))
        low, high = np.zeros(values.shape[1], np.int64), self.inside.most
        if not box.whole:
            ends = self.inside.values(np.array([box.low, box.high], np.uint64))
            low, high = ends[0], ends[1]
        found, todo = [], [(low, high, values)]
        while todo:
            low, high, values = todo.pop()
            cut = _cut(values) if len(values) > most else None
            if cut is None:
                found.append(Box(self.inside.word(low), self.inside.word(high)))
                continue
            lane, bound = cut
            below = values[:, lane] < bound
            highest, lowest = high.copy(), low.copy()
            highest[lane], lowest[lane] = bound - 1, bound
            todo += [(low, highest, values[below]), (lowest, high, values[~below])]
        return found if len(found) > 1 else [box]

    def boxes_of(self, keys: Keys, boxes: Sequence[Box]) -> NDArray[np.int32]:
        """Which of the boxes each key (n,) lies in; -1 for none."""
        found = np.zeros(len(keys), np.int32)
        if len(boxes) == 1 and boxes[0].whole:
            return found
        low, high = (np.array([getattr(box, end) for box in boxes], np.uint64)
                     for end in ("low", "high"))  # fmt: skip
        guards = np.uint64(self.inside.guards)
        kernels.boxes_of(self.inside.of(keys), low, high, guards, found)
        return found


def _cut(values: Ints) -> tuple[int, int] | None:
    """(the function, the least value of the upper side) that cuts values (n, functions) best: the
    first whose smaller side has a quarter, else that of the largest; None if all are equal."""
    found, share = None, 0.0
    for lane in range(values.shape[1]):
        column = np.sort(values[:, lane])
        middle = int(column[len(column) // 2])
        for bound in (middle, middle + 1):
            below = int(np.searchsorted(column, bound)) / len(column)
            if min(below, 1 - below) > share:
                found, share = (lane, bound), min(below, 1 - below)
        if share >= 0.25:
            break
    return found


@dataclass(frozen=True)
class Stage:
    """A box of a level, as far as it was asked for: n of its states, and others that they lead to,
    all numbered as they were met.

    keys: uint64 (n,), its own, ascending; places: int32 (n,), which of the n each is. states: as
    the sweep wants them. patterns: what they share. loops: int64 (k, 2), the place in the order and
    the members of each component that is a cycle. wanted: the keys that it asks others for,
    ascending within each stage, (stage, keys, numbers). edges: expanded. given: payoffs (m,
    players) of those of its states that were known, as they were met. box: where they lie.
    """

    keys: Keys
    places: NDArray[np.int32]
    states: Order
    patterns: Patterns
    loops: Ints
    wanted: list[tuple[int, Keys, NDArray[np.int32]]]
    edges: int
    given: Floats
    box: Box

    @property
    def outside(self) -> int:
        """How many keys of other stages it asks for."""
        return sum(len(keys) for _, keys, _ in self.wanted)


NO_KEYS = np.empty(0, np.uint64)
Known = tuple[Keys, Floats]


def expand_level(
    stages: Stages,
    level: int,
    wanted: Sequence[Keys],
    *,
    known: Known | None = None,
    expected: int = 0,
    most: int = CACHED,
    stop: Callable[[], bool] = lambda: False,
) -> Iterator[Stage]:
    """The states of a level that lie at or below the `wanted` ones, all of which are of it and have
    nothing to do with others of it; in several lists, which may have some in common.

    They come in boxes of at most about `most` states, as far as the level has functions that cut
    it; none leads to one before it. expected: how many states there are, about: cuts are better
    made before than found to be needed. known: keys, ascending, and payoffs (m, players) of states
    that are not expanded. Raises RisingError for an edge that leads where the level says that none
    does, StateError for a state with more edges than `Game.max_edges`; Stopped soon after `stop()`
    turns true.
    """
    known = known or (NO_KEYS, np.empty((0, stages.game.players)))
    todo: list[tuple[Box, list[Keys]]] = [(Box(), list(wanted))]
    if stages.level.inside and expected > most:
        sample = np.concatenate([_some(keys, SAMPLE // len(wanted) + 1) for keys in wanted])
        boxes = stages.split(Box(), sample, 1 + 2 * len(sample) * most // (3 * expected))
        todo = [(one, []) for one in boxes]
        for keys in wanted:
            _hand_out(stages, keys, todo)
    while todo:
        box, lists = todo.pop(0)
        search = _Search(stages, level, box, lists)
        if not search.run(known[0], most if stages.level.inside else 0, stop):
            sample = search.sample()
            boxes = stages.split(box, sample, len(sample) // PIECES)
            if len(boxes) > 1:
                apart: list[tuple[Box, list[Keys]]] = [(one, []) for one in boxes]
                for keys in lists:
                    _hand_out(stages, keys, apart)
                todo = apart + todo
                continue
            search.run(known[0], 0, stop)
        stage = search.stage(known)
        for number, keys, _ in stage.wanted:
            if number >> 32 == level:
                _hand_out(stages, keys, todo)
        yield stage


def _some(keys: Keys, count: int) -> Keys:
    """About so many of some keys."""
    return np.ascontiguousarray(keys[:: max(1, len(keys) // count)])


def _hand_out(stages: Stages, keys: Keys, boxes: Sequence[tuple[Box, list[Keys]]]) -> None:
    """Add keys to the lists of the boxes that they lie in."""
    which = stages.boxes_of(keys, [box for box, _ in boxes])
    for i in np.unique(which).tolist():
        boxes[i][1].append(np.ascontiguousarray(keys[which == i]))


class _Search:
    """The arrays of `stage_kernels.expand_on`, which grow."""

    def __init__(self, stages: Stages, level: int, box: Box, wanted: Sequence[Keys]) -> None:
        self.stages, self.game, self.box = stages, stages.game, box
        self.place = stages.place(level, box)
        game, room = self.game, 1 << 12
        while room < 2 * sum(map(len, wanted)) + game.max_edges:
            room *= 2
        self.nodes = Nodes(
            np.full(2 * room, -1, np.int32), np.empty((room, 1), np.uint64),
            np.zeros(room, np.uint8),
        )  # fmt: skip
        self.records = Records(
            np.empty(room // 2, np.int32), np.empty(max(4 * room, game.max_edges), np.int32)
        )
        self.patterns = self._patterns(1 << 8, max(1 << 12, 2 * game.max_edges))
        self.at = np.zeros(7, np.int64)
        for keys in wanted:
            numbers = np.empty(len(keys), np.int32)
            self.at[kernels.COUNT] = hashing.enter(
                self.nodes.slots, self.nodes.keys, self.at[kernels.COUNT], keys, numbers
            )
        self.edges = room_for(game.max_edges, game.field_count, game.players)

    def _patterns(self, room: int, edges: int) -> Patterns:
        players = self.game.players
        return Patterns(
            np.full(4 * room, -1, np.int32), np.empty(room, np.uint64),
            np.zeros(room + 1, np.int64), np.empty(room, np.int64), np.empty(edges),
            np.empty(edges, np.int64), np.empty((edges if self.game.pays else 0, players)),
            np.zeros((room, players)),
        )  # fmt: skip

    def run(self, known: Keys, most: int, stop: Callable[[], bool]) -> bool:
        """Expand until nothing is left, or until there are more states than `most`, if that is not
        0; whether nothing is left."""
        game = self.game
        while True:
            budget = BUDGET if not most else min(BUDGET, most + 1 - int(self.at[kernels.STATES]))
            code = kernels.expand_on(
                game.transition, game.numbers, self.edges, game.bits, self.place, self.nodes,
                self.records, self.patterns, known, self.at, max(1, budget),
            )  # fmt: skip
            if code == kernels.FINISHED:
                return True
            if stop():
                raise Stopped
            if code == kernels.GROW:
                self._grow()
            elif code != kernels.PAUSE:
                state = unpack_all(game.bits, self.nodes.keys[self.at[kernels.WRONG]])[0]
                raise too_many_edges(game, state) if code == kernels.CROWDED else self._rose(state)
            if most and self.at[kernels.STATES] > most:
                return False

    def sample(self) -> Keys:
        """Some of the keys of the states that were met."""
        count = int(self.at[kernels.COUNT])
        keys = self.nodes.keys[:count, 0][self.nodes.outside[:count] == 0]
        return _some(keys, SAMPLE)

    def _rose(self, state: Ints) -> StateError:
        """The error of a state (fields,) one of whose edges leads where none should."""
        children = expand(self.game, state.reshape(1, -1)).children
        keys = hashing.pack_all(self.game.bits, children)
        own = hashing.pack_all(self.game.bits, state.reshape(1, -1))
        at = int(np.argmax(self.stages.forbidden(np.repeat(own, len(keys)), keys)))
        return RisingError(
            f"level {self.stages.level}: is not one of {self.game.board.game}: an edge leads from "
            f"{self.game.describe(state)} to {self.game.describe(children[at])}"
        )

    def _grow(self) -> None:
        at, most = self.at, kernels.BATCH * self.game.max_edges
        while at[kernels.COUNT] + most > len(self.nodes.keys):
            nodes = self.nodes
            keys = _longer(nodes.keys)
            slots = np.full(2 * len(keys), -1, np.int32)
            hashing.rehash(slots, keys, int(at[kernels.COUNT]))
            self.nodes = Nodes(slots, keys, _longer(nodes.outside))
        while at[kernels.STATES] + kernels.BATCH > len(self.records.patterns):
            self.records = self.records._replace(patterns=_longer(self.records.patterns))
        while at[kernels.EDGES] + most > len(self.records.children):
            self.records = self.records._replace(children=_longer(self.records.children))
        kinds, kept = int(at[kernels.PATTERNS]), int(at[kernels.PATTERN_EDGES])
        while kinds + kernels.BATCH >= len(self.patterns.actors) or (
            kept + most > len(self.patterns.weights)
        ):
            patterns = self.patterns
            bigger = self._patterns(2 * len(patterns.actors), 2 * len(patterns.weights))
            for before, after in zip(patterns[1:], bigger[1:], strict=True):
                after[: len(before)] = before
            kernels.enter_patterns(bigger.slots, bigger.hashes[:kinds])
            self.patterns = bigger

    def stage(self, known: tuple[Keys, Floats]) -> Stage:
        """What was found."""
        count, edges = int(self.at[kernels.COUNT]), int(self.at[kernels.EDGES])
        keys, outside = self.nodes.keys[:count, 0], self.nodes.outside[:count]
        mine = np.flatnonzero(outside == 0).astype(np.int32)
        n = len(mine)
        own = keys[mine]
        places = np.argsort(own).astype(np.int32)
        pattern_of = self.records.patterns[:n].copy()
        kinds = int(self.at[kernels.PATTERNS])
        patterns = self._trimmed(kinds, int(self.at[kernels.PATTERN_EDGES]))
        states = Order(
            np.empty(n, np.int32), first_edges(patterns, pattern_of), mine, pattern_of,
            self.records.children[:edges].copy(),
        )  # fmt: skip
        local, starts = np.full(count, -1, np.int32), np.empty(2 * n, np.int32)
        local[mine] = np.arange(n, dtype=np.int32)
        loops = kernels.order_states(
            states.first, states.children, local, states.order, starts,
            Walk(*(np.empty(n, np.int32) for _ in range(5))),
        )  # fmt: skip
        cycles = starts[: 2 * loops].reshape(-1, 2).astype(np.int64)
        given = own[pattern_of == kernels.GIVEN]
        payoffs = known[1][np.searchsorted(known[0], given)]
        wanted = self._wanted(keys, np.flatnonzero(outside).astype(np.int32))
        return Stage(
            own[places], places, states, patterns, cycles, wanted, edges, payoffs, self.box
        )

    def _wanted(
        self, keys: Keys, others: NDArray[np.int32]
    ) -> list[tuple[int, Keys, NDArray[np.int32]]]:
        """The keys of the others, by stage."""
        asked = keys[others]
        stage = self.stages.of(asked)
        found = []
        for one in np.unique(stage):
            mine = np.flatnonzero(stage == one)
            mine = mine[np.argsort(asked[mine])]
            found.append((int(one), asked[mine], others[mine]))
        return found

    def _trimmed(self, kinds: int, edges: int) -> Patterns:
        given = self.patterns
        return Patterns(
            np.empty(0, np.int32), np.empty(0, np.uint64), given.first[: kinds + 1].copy(),
            given.actors[:kinds].copy(), given.weights[:edges].copy(),
            given.actions[:edges].copy(),
            given.rewards[: edges if self.game.pays else 0].copy(), given.payoffs[:kinds].copy(),
        )  # fmt: skip


class RisingError(StateError):
    """An edge raises the level."""


def _longer(array: NDArray[Any]) -> NDArray[Any]:
    """The array with as much room again, zeros."""
    bigger = np.zeros((2 * len(array), *array.shape[1:]), array.dtype)
    bigger[: len(array)] = array
    return bigger


def first_edges(patterns: Patterns, pattern_of: NDArray[np.int32]) -> Ints:
    """int64 (n + 1,): where the edges of each of n states begin."""
    first = np.empty(len(pattern_of) + 1, np.int64)
    kernels.first_edges(np.append(np.diff(patterns.first), 0), pattern_of, first)
    return first


@dataclass(frozen=True)
class SolvedStage:
    """The n states of a stage, solved, by key.

    values: float64 (n, 1 + players), the first column the keys. best, margins, actors: (n,), as
    `Graph` has them. gap: float64 (n,), of a cycle that was solved between bounds, at its first.
    """

    values: Floats
    best: Ints
    margins: Floats
    actors: NDArray[np.int8]
    gap: Floats


class Sweeping:
    """A stage that is being solved: `give` it the payoffs that it asks for, then `solve`."""

    def __init__(self, game: Game, stage: Stage) -> None:
        self.game, self.stage = game, stage
        n, numbers = len(stage.keys), stage.states.numbers
        self._values = np.empty((n + stage.outside, 1 + game.players))
        self._out = Sweep(self._values, np.empty(n, np.int64), np.empty(n), np.empty(n, np.int8))
        self._gap = np.zeros(n)
        self._values[numbers[stage.states.patterns == kernels.GIVEN], 1:] = stage.given

    def give(self, wanted: int, rows: Floats) -> int:
        """Take the payoffs of the keys number `wanted` of the stage's list from rows (m, 1 +
        players) by key; returns how many of them are there."""
        _, keys, numbers = self.stage.wanted[wanted]
        found: int = kernels.join(keys, rows, numbers, self._values)
        return found

    def solve(self, tolerance: float, stop: Callable[[], bool] = lambda: False) -> SolvedStage:
        """Solve the states.

        Raises StateError for a cycle that `solver.graph.components` refuses, Stopped.
        """
        game, stage, n = self.game, self.stage, len(self.stage.keys)
        solve_game = no_matrix_games
        if game.simultaneous:
            from luckbase.solver.matrix_game.simplex import solve_game  # long to compile
        most, players = max(game.max_edges, 1), game.players
        scratch = Scratch(np.empty((most, players)), np.empty(most, np.int64), np.empty(players))
        local = np.empty(max(1, len(stage.patterns.weights)), np.int32)
        place = 0
        for start, members in (*stage.loops.tolist(), (n, 0)):
            while place < start:
                if stop():
                    raise Stopped
                end = min(start, place + BUDGET)
                kernels.sweep_on(
                    solve_game, stage.patterns, stage.states, self._out, tolerance, scratch, local,
                    place, end,
                )  # fmt: skip
                place = end
            if members:
                self._solve_component(place, members, tolerance)
                place += members
        rows = np.empty((n, 1 + players))
        kernels.by_key(stage.states.numbers[stage.places], self._values, stage.keys, rows)
        held, at = self._out, stage.places
        return SolvedStage(rows, held.best[at], held.margins[at], held.actors[at], self._gap[at])

    def _solve_component(self, start: int, members: int, tolerance: float) -> None:
        """Solve the component of so many members that begins at a place of the order."""
        from luckbase.solver.graph.components import Component, solve  # long to compile

        states, out = self.stage.states, self._out
        at = states.order[start : start + members]
        keys = self._by_place[at]
        by_key = np.argsort(keys)  # the same bits whoever comes first
        at, numbers = at[by_key], states.numbers[at[by_key]]
        found_states = unpack_all(self.game.bits, keys[by_key])
        children = np.concatenate(
            [states.children[states.first[x] : states.first[x + 1]] for x in at]
        )
        found = solve(
            Component(
                self.game, numbers, found_states, expand(self.game, found_states), children,
                [np.empty(0)] * members, self._values[:, 1:], tolerance,
            )
        )  # fmt: skip
        self._values[numbers, 1:], out.best[at] = found.values, found.best
        out.margins[at], out.actors[at] = found.margins, found.actors
        self._gap[at[0]] = found.gap

    @cached_property
    def _by_place(self) -> Keys:
        """The keys of the states as they were met."""
        keys = np.empty_like(self.stage.keys)
        keys[self.stage.places] = self.stage.keys
        return keys
