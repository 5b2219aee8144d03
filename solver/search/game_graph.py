"""The states below some roots: expanded, merged by key, solved. Any game, from its rules alone.

For roots R and a set K of states whose payoffs are known (a table's, another shard's), the graph G
is the least set with R in G and, for each state of G that is neither over nor in K, all its
children in G. One depth-first search finds and solves it (`solver.search.depth_first`):

1. Visit a state: unpack its key, call the game's transition into a frame of the path, look
   the children up in a hash table (`solver.search.keys`); a new one gets the next number. The
   look-ups of all children are begun before any is finished, so that their cache misses overlap.
2. Descend into the first child that was not visited.
3. When no such child is left, the state is the root of a strongly connected component or part of a
   larger one (Tarjan's low-link). Alone and without an edge to itself it is solved at once by the
   Bellman equation: its edges are still in the frame, so no edge is ever kept, and none is expanded
   twice. A component of several states goes to `solver.search.cycles`.

A state takes 8 bytes for its key, 8 a payoff, 8 for its best action, 8 for its margin, 1 for who
acts, 4 for its place on the stack and 16 for its place in the hash table: 69 for three players.
Margins and who acts are written once and never read here, so they stand apart: key and payoffs keep
their 32 bytes. The sums are taken in the order of the edges and the members of a component in the
order of their keys, so a state's bits depend on the game alone: not on the roots, nor on who else
was solved before.

**Bounds.** A graph may hold two columns a player, a lower and an upper payoff. The acting player's
value lies between the greatest lower and the greatest upper payoff of their actions; what others
get lies between the least and the most over the actions that they may still take: those whose upper
payoff reaches their greatest lower one. The best action is called when one such is left, else
`UNDECIDED`.

**Policies.** A state may be given chances for its actions; then its payoff is their mean and
nothing is chosen.

Source: Tarjan, Depth-first search and linear graph algorithms (1972).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.errors import GameError, SearchLimitError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.faults import fault_at, worth_at
from luckbase.solver.game.game import Game, Stopped
from luckbase.solver.search import keys as hashing
from luckbase.solver.search.bellman import KNOWN, NEW, Scratch, no_matrix_games
from luckbase.solver.search.depth_first import (
    BEYOND,
    COMPONENT,
    COUNT,
    DEPTH,
    EDGES,
    FINISHED,
    GROW,
    HEIGHT,
    NODE,
    REFUSED,
    ROOT,
    START,
    TOP,
    Fixed,
    Frames,
    Path,
    Store,
    Task,
    search,
)
from luckbase.solver.search.expand import expand, expanding, keys_of_roots, refuse_beyond, room_of
from luckbase.solver.search.keys import Keys, unpack_all

BUDGET = 200_000
"""States visited between two looks at `stop`: a fifth of a second."""

NOTHING_FIXED = Fixed(
    np.empty(0, np.uint64), np.zeros(1, np.int64), np.empty(0), np.empty(0, np.int64),
    np.empty(0, np.int64),
)  # fmt: skip


class Graph:
    """States met so far and their payoffs; `solve` adds what lies below more roots.

    columns: numbers a state, one a player, or two for bounds. count: states met. edges: edges
    expanded. loops: components of several states; largest_loop: the states of the largest. gaps:
    of the components that were solved between bounds, by the number of their first member.

    policy: what is fixed of the players' choices.
    """

    def __init__(
        self,
        game: Game,
        *,
        bounds: bool = False,
        tolerance: float | None = None,
        max_states: int = 1 << 30,
        policy: Fixed | None = None,
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self.game, self.bounds, self.max_states, self.stop = game, bounds, max_states, stop
        self.tolerance = game.tie_tolerance if tolerance is None else tolerance
        self.columns = game.players * (2 if bounds else 1)
        self.loops = self.largest_loop = 0
        self.gaps: dict[int, float] = {}
        self._fault: GameError | None = None
        room = 1 << 14
        keys = np.empty((room, 1 + self.columns), np.uint64)
        self._store = Store(
            np.full(4 * room, -1, np.int32), keys, keys.view(np.float64), np.empty(room, np.int64),
            np.full(room, np.nan), np.zeros(room, np.int8),
        )  # fmt: skip
        self._frames = self._new_frames(max(256, 2 * game.max_edges))
        self._at = np.array([-1, 0, 0, 0, 0, 0, 0])
        self._path = Path(np.empty(room, np.int32), np.empty(64, np.int32), self._at)
        self._solve_game = no_matrix_games
        if game.simultaneous:
            from luckbase.solver.matrix_game.simplex import solve_game  # long to compile

            self._solve_game = solve_game
        self._fixed = NOTHING_FIXED if policy is None else policy
        step = Scratch(
            np.empty((game.max_edges, self.columns)), np.empty(game.max_edges, np.int64),
            np.empty(self.columns),
        )  # fmt: skip
        self._task = Task(
            game.numbers, room_of(game), game.bits, self._fixed, float(self.tolerance), step,
        )  # fmt: skip
        self._enter(self._fixed.keys)

    # --- what it holds -------------------------------------------------------------------------

    @property
    def count(self) -> int:
        """States met, known ones and those that are over included."""
        return int(self._at[COUNT])

    @property
    def edges(self) -> int:
        """Edges expanded."""
        return int(self._at[EDGES])

    @property
    def keys(self) -> Keys:
        """uint64 (count,), in the order in which the states were met; a copy."""
        return np.ascontiguousarray(self._store.keys[: self.count, 0])

    @property
    def values(self) -> Floats:
        """float64 (count, columns): NaN in the first where a state is not solved."""
        return self._store.rows[: self.count, 1:]

    @property
    def best(self) -> Ints:
        """int64 (count,): the best action, or why there is none (OVER, …, NEW)."""
        return self._store.best[: self.count]

    @property
    def margins(self) -> Floats:
        """float64 (count,): what the second best action would cost the one who decides, at least 0.

        Between bounds, the lower payoff to them of the action that is called, less the greatest
        upper one of the others. NaN where there is no choice or none is called, where both players
        choose at once, where a state is not solved or was given without.
        """
        return self._store.margins[: self.count]

    @property
    def actors(self) -> NDArray[np.int8]:
        """int8 (count,): the player who acts, from 1; 0 where nobody does or both choose at once,
        where a state is not solved or was given without."""
        return self._store.actors[: self.count]

    @property
    def error(self) -> float:
        """A bound on what the components' gaps change of any payoff: half of each, added up, as a
        state may lie above all of them."""
        return sum(self.gaps.values()) / 2

    @property
    def bytes_a_state(self) -> float:
        """Bytes of the arrays as far as they are used, by states that are not given."""
        store = self._store
        arrays = (store.keys, store.best, store.margins, store.actors, self._path.stack)
        used = sum(array.nbytes for array in arrays) / len(store.keys) * self.count
        per_state = used + store.slots.nbytes * self.count / len(store.keys)
        return per_state / max(1, self.count)

    def look_up(self, keys: Keys) -> NDArray[np.int32]:
        """The number of each key (m,), int32; -1 for a state that was not met."""
        numbers = np.empty(len(keys), np.int32)
        hashing.look_up(self._store.slots, self._store.keys, np.ascontiguousarray(keys), numbers)
        return numbers

    def keys_at(self, numbers: NDArray[np.integer[Any]]) -> Keys:
        """The keys (m,) of numbers (m,)."""
        return np.ascontiguousarray(self._store.keys[numbers, 0])

    def states(self, numbers: NDArray[np.integer[Any]]) -> Ints:
        """The states (m, fields) of numbers (m,)."""
        return np.asarray(unpack_all(self.game.bits, self.keys_at(numbers)))

    # --- what it does --------------------------------------------------------------------------

    def know(
        self,
        keys: Keys,
        values: Floats,
        best: Ints | None = None,
        margins: Floats | None = None,
        actors: NDArray[np.int8] | None = None,
    ) -> None:
        """Payoffs (m, columns) of states that need not be expanded; those solved already stay."""
        numbers = self._enter(keys)
        fresh = self._store.best[numbers] == NEW
        at = numbers[fresh]
        self._store.rows[at, 1:] = values[fresh]
        self._store.best[at] = KNOWN if best is None else best[fresh]
        if margins is not None:
            self._store.margins[at] = margins[fresh]
        if actors is not None:
            self._store.actors[at] = actors[fresh]

    def solve(self, roots: Ints) -> NDArray[np.int32]:
        """Solve canonical roots (m, fields) and all below them; returns the roots' numbers.

        Raises SearchLimitError beyond `max_states`; StateError for a root that has no key, for a
        cycle that `solver.search.cycles` refuses; GameError for a state whose edges break the
        rules, or whose payoff is out of their range; Stopped soon after `stop()` turns true.
        """
        numbers = self._enter(keys_of_roots(self.game, roots))
        self._at[ROOT] = 0
        while True:
            code = self._search(numbers)
            if code != FINISHED and self.stop():
                raise Stopped
            if self.count > self.max_states:
                left = int(np.isnan(self.values[:, 0]).sum())
                raise SearchLimitError(
                    f"the search has met {self.count:,} states and {left:,} of them are not solved "
                    f"yet; the limit is {self.max_states:,}"
                )
            if code == FINISHED:
                return numbers
            if code == GROW:
                self._grow()
            elif code == COMPONENT:
                self._solve_component()

    def _search(self, roots: NDArray[np.int32]) -> int:
        """Search on; why it stops."""
        if self._fault is not None:
            raise self._fault
        game, room = self.game, self._task.room
        try:
            with expanding(game, room):
                code = search(
                    game.transition, self._solve_game, self._task, roots, self._store,
                    self._frames, self._path, BUDGET,
                )  # fmt: skip
        except GameError as error:  # it broke off: there is no going on from what it met
            self._fault = error
            raise
        if code == REFUSED:
            self._fault = fault_at(game, room.at)
        if code == BEYOND:
            at = self._frames.numbers[self._path.frames[self._at[DEPTH]], [NODE]]
            values = self._task.scratch.out[: game.players]
            self._fault = worth_at(game, self.states(at)[0], values)
        if self._fault is not None:
            raise self._fault
        return int(code)

    def _solve_component(self) -> None:
        from luckbase.solver.search.cycles import Component, solve  # long to compile

        frame = self._frames.numbers[self._path.frames[self._at[DEPTH]]]
        stack, height = self._path.stack, int(self._at[HEIGHT])
        below = height - 1
        while stack[below] != frame[NODE]:
            below -= 1
        members = stack[below:height]
        members = members[np.argsort(self.keys_at(members))]  # the same bits whoever comes first
        states = self.states(members)
        edges = expand(self.game, states)
        children = self.look_up(hashing.pack_all(self.game.bits, edges.children))
        found = solve(
            Component(
                self.game, members, states, edges, children, [self._chances(x) for x in members],
                self.values, self.tolerance,
            )
        )  # fmt: skip
        if found.gap:
            self.gaps[int(members[0])] = found.gap
        refuse_beyond(self.game, states, found.values)
        store = self._store
        store.rows[members, 1:], store.best[members] = found.values, found.best
        store.margins[members], store.actors[members] = found.margins, found.actors
        self.loops += 1
        self.largest_loop = max(self.largest_loop, len(members))
        self._at[HEIGHT] = below
        self._at[DEPTH] -= 1
        self._at[TOP] = frame[START] if self._at[DEPTH] >= 0 else 0

    def _chances(self, number: int) -> Floats:
        """The chances of a state's actions as the policy fixes them; empty where it does not."""
        first, chances = self._fixed.first, self._fixed.chances
        if number >= len(first) - 1:
            return np.empty(0)
        return chances[first[number] : first[number + 1]]

    # --- room ----------------------------------------------------------------------------------

    def _enter(self, keys: Keys) -> NDArray[np.int32]:
        while self.count + len(keys) > len(self._store.keys):
            self._grow_states()
        numbers, before = np.empty(len(keys), np.int32), self.count
        self._at[COUNT] = hashing.enter(
            self._store.slots, self._store.keys, before, np.ascontiguousarray(keys), numbers
        )
        self._store.best[before : self.count] = NEW
        self._store.rows[before : self.count, 1] = np.nan
        return numbers

    def _grow(self) -> None:
        most = self.game.max_edges
        while self.count + most * (most + 1) > len(self._store.keys):
            self._grow_states()
        while self._at[TOP] + most >= len(self._frames.numbers):
            old: list[NDArray[Any]] = list(self._frames)
            self._frames = self._new_frames(2 * len(old[0]))
            arrays: list[NDArray[Any]] = list(self._frames)
            for before, after in zip(old, arrays, strict=True):
                after[: len(before)] = before
        if self._at[DEPTH] + 1 == len(self._path.frames):
            self._path = self._path._replace(frames=np.tile(self._path.frames, 2))

    def _grow_states(self) -> None:
        old = self._store
        keys, room = _longer(old.keys), 2 * len(old.keys)
        slots = np.full(4 * room, -1, np.int32)
        hashing.rehash(slots, keys, self.count)
        self._store = Store(
            slots, keys, keys.view(np.float64), _longer(old.best), _longer(old.margins, np.nan),
            _longer(old.actors, 0),
        )  # fmt: skip
        self._path = self._path._replace(stack=_longer(self._path.stack))

    def _new_frames(self, room: int) -> Frames:
        edges, players = room * self.game.max_edges, self.game.players
        return Frames(
            np.empty((room, 7), np.int32), np.empty(edges, np.int32), np.empty(edges),
            np.empty(edges, np.int64), np.empty((edges if self.game.pays else 0, players)),
        )  # fmt: skip


def _longer(array: NDArray[Any], fill: float | None = None) -> NDArray[Any]:
    """The array with as much room again: `fill`, where the search need not write."""
    bigger = np.empty((2 * len(array), *array.shape[1:]), array.dtype)
    bigger[: len(array)] = array
    if fill is not None:
        bigger[len(array) :] = fill
    return bigger
