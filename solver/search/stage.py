"""Stages of a search: the states that a game's level puts together, found first and solved later.

A **stage** is closed under every cycle (`Level`). It is found from above: `find_stages`
takes the keys that higher stages ask for, expands them and all that they lead to inside, and says
which keys of lower stages it asks for in turn. It is solved from below: `Sweeping` takes the
payoffs of those keys and goes through the states in an order in which children come first. What it
needs for that was kept when the states were found, so nothing is expanded again: each state's
pattern (who acts, and the weights, actions and rewards of its edges: states of a game have few of
them, or else many that the next state has too) and the rows of its children.

The steps and their order are those of `solver.search.game_graph`, and components are solved by
`solver.search.components`: a state's payoffs have the same bits, whichever finds them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.errors import OptionError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.capabilities import Level
from luckbase.solver.game.game import Game, Stopped
from luckbase.solver.search import stage_kernels as kernels
from luckbase.solver.search.bellman import expand
from luckbase.solver.search.bellman_step import Scratch, no_matrix_games
from luckbase.solver.search.expansion import refuse_beyond
from luckbase.solver.search.keys import Keys, unpack_all
from luckbase.solver.search.level_words import CLASSES, Words, scatter, words, words_of
from luckbase.solver.search.stage_kernels import Order, Patterns, Place, Sweep

BUDGET = 100_000
"""States between two looks at `stop`: a tenth of a second."""
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


WHOLE = Box()


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
        found, todo = [], [(low, high, values, np.zeros(len(low), np.int64))]
        while todo:
            low, high, values, cuts = todo.pop()
            cut = _cut(values, cuts) if len(values) > most else None
            if cut is None:
                found.append(Box(self.inside.word(low), self.inside.word(high)))
                continue
            lane, bound = cut
            below = values[:, lane] < bound
            highest, lowest = high.copy(), low.copy()
            highest[lane], lowest[lane] = bound - 1, bound
            cuts = cuts + (np.arange(len(cuts)) == lane)
            todo += [(low, highest, values[below], cuts), (lowest, high, values[~below], cuts)]
        return found if len(found) > 1 else [box]

    def boxes_of(self, keys: Keys, boxes: Sequence[Box]) -> NDArray[np.int32]:
        """Which of the boxes each key (n,) lies in; -1 for none."""
        found = np.zeros(len(keys), np.int32)
        if len(boxes) == 1 and boxes[0].whole:
            return found
        low, high = _ends(boxes)
        guards = np.uint64(self.inside.guards)
        kernels.boxes_of(self.inside.of(keys), low, high, guards, found)
        return found

    def around(self, keys: Keys) -> Box:
        """The smallest box that all of some keys (n,), n > 0, lie in."""
        if not self.level.inside:
            return Box()
        values = self.inside.values(self.inside.of(keys))
        return Box(self.inside.word(values.min(axis=0)), self.inside.word(values.max(axis=0)))

    def leads(self, above: Sequence[Box], below: Sequence[Box]) -> NDArray[np.bool_]:
        """(above, below) whether an edge inside a stage may lead from the one box to the other."""
        high, low = _ends(above)[1], _ends(below)[0]
        guards = np.uint64(self.inside.guards)
        found: NDArray[np.bool_] = ((high[:, None] | guards) - low[None]) & guards == guards
        return found

    def meet(self, some: Sequence[Box], others: Sequence[Box]) -> NDArray[np.bool_]:
        """(some, others) whether two boxes have a place in common."""
        return self.leads(some, others) & self.leads(others, some).T


def _ends(boxes: Sequence[Box]) -> tuple[Keys, Keys]:
    """The ends of boxes, (n,) each."""
    low, high = ([getattr(box, end) for box in boxes] for end in ("low", "high"))
    return np.array(low, np.uint64), np.array(high, np.uint64)


def _cut(values: Ints, cuts: Ints) -> tuple[int, int] | None:
    """(the function, the least value of the upper side) that cuts values (n, functions) best: of
    those whose smaller side has a quarter the one that was cut least, so that the longest chain of
    boxes is short; else that of the largest; None if all are equal. cuts: how often each was."""
    found, share = None, 0.0
    for lane in np.argsort(cuts, kind="stable").tolist():
        column = np.sort(values[:, lane])
        middle = int(column[len(column) // 2])
        for bound in (middle, middle + 1):
            below = int(np.searchsorted(column, bound)) / len(column)
            if min(below, 1 - below) > share:
                found, share = (lane, bound), min(below, 1 - below)
        if share >= 0.25:
            break
    return found


class Given(NamedTuple):
    """What is known of m states: payoffs float64 (m, players); best, margins, actors (m,), as a
    `SolvedStage` has them, or (0,) where no more is known."""

    payoffs: Floats
    best: Ints
    margins: Floats
    actors: NDArray[np.int8]


class Ends(Protocol):
    """What knows of states whether a search ends there: another table."""

    def holds(self, keys: Keys) -> NDArray[np.bool_]:
        """(n,) whether each of some keys (n,) is of a state that it knows."""

    def given(self, keys: Keys) -> Given:
        """What it knows of these."""


def only_payoffs(payoffs: Floats) -> Given:
    """Of states of which no more is known than their payoffs."""
    return Given(payoffs, np.empty(0, np.int64), np.empty(0), np.empty(0, np.int8))


@dataclass(frozen=True)
class Stage:
    """A box of a level, as far as it was asked for: n of its states, and others that they lead to,
    all numbered as they were met.

    keys: uint64 (n,), its own, ascending; places: int32 (n,), which of the n each is. states: as
    the sweep wants them. patterns: what they share. loops: int64 (k, 2), the place in the order and
    the members of each component that is a cycle. wanted: the keys that it asks others for,
    ascending within each stage, (stage, keys, numbers). edges: expanded. given: what is known of
    those of its states that were, as they were met. box: where they lie.
    """

    keys: Keys
    places: NDArray[np.int32]
    states: Order
    patterns: Patterns
    loops: Ints
    wanted: list[tuple[int, Keys, NDArray[np.int32]]]
    edges: int
    given: Given
    box: Box

    @property
    def outside(self) -> int:
        """How many keys of other stages it asks for."""
        return sum(len(keys) for _, keys, _ in self.wanted)


NO_KEYS = np.empty(0, np.uint64)
Known = tuple[Keys, Floats]


def first_edges(of_patterns: Ints, pattern_of: NDArray[np.int32]) -> Ints:
    """int64 (n + 1,): where the edges of each of n states begin, from where those of the patterns
    do (patterns + 1,)."""
    first = np.empty(len(pattern_of) + 1, np.int64)
    kernels.first_edges(np.append(np.diff(of_patterns), 0), pattern_of, first)
    return first


@dataclass(frozen=True)
class SolvedStage:
    """The n states of a stage, solved, by key.

    values: float64 (n, 1 + players), the first column the keys. best, margins, actors: (n,), as
    `Graph` has them. gap: float64 (n,), of a cycle that was solved between bounds, at its first.
    given: (n,) whether all of this was given.
    """

    values: Floats
    best: Ints
    margins: Floats
    actors: NDArray[np.int8]
    gap: Floats
    given: NDArray[np.bool_]


class Sweeping:
    """A stage that is being solved: `give` it the payoffs that it asks for, then `solve`."""

    def __init__(self, game: Game, stage: Stage) -> None:
        self.game, self.stage = game, stage
        n, numbers = len(stage.keys), stage.states.numbers
        self._values = np.empty((n + stage.outside, 1 + game.players))
        self._out = Sweep(self._values, np.empty(n, np.int64), np.empty(n), np.empty(n, np.int8))
        self._gap = np.zeros(n)
        self._given = stage.states.patterns == kernels.GIVEN
        self._values[numbers[self._given], 1:] = stage.given.payoffs

    def give(self, wanted: int, rows: Floats, some: NDArray[np.bool_] | None = None) -> int:
        """Take the payoffs of the keys number `wanted` of the stage's list, or of some of them,
        from rows (m, 1 + players) by key; returns how many of them are there."""
        _, keys, numbers = self.stage.wanted[wanted]
        if some is not None:
            keys, numbers = keys[some], numbers[some]
        found: int = kernels.join(keys, rows, numbers, self._values)
        return found

    def solve(self, tolerance: float, stop: Callable[[], bool] = lambda: False) -> SolvedStage:
        """Solve the states.

        Raises StateError for a cycle that `solver.search.components` refuses, Stopped.
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
        refuse_beyond(game, stage.keys, rows[:, 1:])
        held, at, given = self._out, stage.places, np.zeros(n, bool)
        if len(stage.given.best):
            given = self._given
            held.best[given], held.margins[given] = stage.given.best, stage.given.margins
            held.actors[given] = stage.given.actors
        return SolvedStage(
            rows, held.best[at], held.margins[at], held.actors[at], self._gap[at], given[at]
        )

    def _solve_component(self, start: int, members: int, tolerance: float) -> None:
        """Solve the component of so many members that begins at a place of the order."""
        from luckbase.solver.search.components import Component, solve  # long to compile

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
