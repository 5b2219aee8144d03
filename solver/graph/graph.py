"""The states below some roots: expanded, merged by key, solved. Any game, from its rules alone.

For roots R and a set K of states whose payoffs are known (a table's, another shard's), the graph G
is the least set with R in G and, for each state of G that is neither over nor in K, all its
successors in G. One walk, depth first, finds and solves it (`solver.graph.depth_first`):

1. Visit a state: unpack its key, call the game's transition into a frame of the path, look
   the children up in a hash table (`solver.graph.keys`); a new one gets the next number. The
   look-ups of all children are begun before any is finished, so that their cache misses overlap.
2. Descend into the first child that was not visited.
3. When no such child is left, the state is the root of a strongly connected component or part of a
   larger one (Tarjan's low-link). Alone and without an edge to itself it is solved at once by the
   Bellman equation: its edges are still in the frame, so no edge is ever kept, and none is expanded
   twice. A component of several states goes to `solver.graph.components`.

A state takes 8 bytes for its key, 8 a payoff, 8 for its best action, 8 for its margin, 1 for who
acts, 4 for its place on the stack and 16 for its place in the hash table: 69 for three players.
Margins and who acts are written once and never read here, so they stand apart: key and payoffs keep
their 32 bytes. The sums are taken in the order of the edges and the members of a component in the
order of their keys, so a state's bits depend on the game alone: not on the roots, nor on who else
was solved before.

**Bounds.** A graph may hold two columns a player, a lower and an upper payoff. The acting player's
value lies between the greatest lower and the greatest upper payoff of his actions; what the others
get lies between the least and the most over the actions that he may still take: those whose upper
payoff reaches his greatest lower one. The best action is called when one such is left, else
`UNDECIDED`.

**Policies.** A state may be given chances for its actions; then its payoff is their mean and
nothing is chosen.

Source: Tarjan, Depth-first search and linear graph algorithms (1972).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.errors import SearchLimitError, StateError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.game import Game, Stopped
from luckbase.solver.game.transition import room_for
from luckbase.solver.graph import keys as hashing
from luckbase.solver.graph.depth_first import (
    COMPONENT,
    COUNT,
    DEPTH,
    EDGES,
    FINISHED,
    GROW,
    HEIGHT,
    KNOWN,
    NEW,
    NODE,
    ROOT,
    START,
    TOP,
    no_matrix_games,
    walk,
)  # fmt: skip
from luckbase.solver.graph.keys import Keys, fits, unpack_all

BUDGET = 200_000
"""States visited between two looks at `stop`: a fifth of a second."""

EMPTY = {"_margins": np.nan, "_actors": 0}
"""What the walk need not write of a state: filled in where room is made."""


@dataclass(frozen=True)
class Fixed:
    """Choices that are fixed at m states, all different.

    keys: uint64 (m,). first: int64 (m + 1,). chances, acts: float64, int64: of the actions of state
    i, first[i]:first[i + 1] (none where nothing is fixed), the chances, and the action that each
    belongs to then: MIXED for all, or where one player's answer to the other's part of a
    simultaneous state is left to choose, his. takers: int64 (m,), that player, or -1.
    """

    keys: Keys
    first: Ints
    chances: Floats
    acts: Ints
    takers: Ints


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
        room = 1 << 14
        self._keys = np.empty((room, 1 + self.columns), np.uint64)
        self._best, self._stack = np.empty(room, np.int64), np.empty(room, np.int32)
        self._margins, self._actors = np.full(room, np.nan), np.zeros(room, np.int8)
        self._slots = np.full(4 * room, -1, np.int32)
        self._make_frames(max(256, 2 * game.max_edges))
        self._path = np.empty(64, np.int32)
        self._scratch = room_for(game.max_edges, game.field_count, game.players)
        self._at = np.array([-1, 0, 0, 0, 0, 0, 0])
        self._solve_game = no_matrix_games
        if game.simultaneous:
            from luckbase.solver.matrix_game.simplex import solve_game  # long to compile

            self._solve_game = solve_game
        none = np.empty(0, np.int64)
        self._policy = np.zeros(1, np.int64), np.empty(0), none, none
        if policy is not None:
            self._policy = policy.first, policy.chances, policy.acts, policy.takers
            self._enter(policy.keys)

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
    def _rows(self) -> Floats:
        """float64 (room, 1 + columns): the same memory as `_keys`, for the payoffs."""
        return self._keys.view(np.float64)

    @property
    def keys(self) -> Keys:
        """uint64 (count,), in the order in which the states were met; a copy."""
        return np.ascontiguousarray(self._keys[: self.count, 0])

    @property
    def values(self) -> Floats:
        """float64 (count, columns): NaN in the first where a state is not solved."""
        return self._rows[: self.count, 1:]

    @property
    def best(self) -> Ints:
        """int64 (count,): the best action, or why there is none (OVER, …, NEW)."""
        return self._best[: self.count]

    @property
    def margins(self) -> Floats:
        """float64 (count,): what the second best action would cost the one who decides, at least 0.

        Between bounds, the lower payoff to him of the action that is called, less the greatest
        upper one of the others. NaN where there is no choice or none is called, where both players
        choose at once, where a state is not solved or was given without.
        """
        return self._margins[: self.count]

    @property
    def actors(self) -> NDArray[np.int8]:
        """int8 (count,): the player who acts, from 1; 0 where nobody does or both choose at once,
        where a state is not solved or was given without."""
        return self._actors[: self.count]

    @property
    def error(self) -> float:
        """A bound on what the components' gaps change of any payoff: half of each, added up, as a
        state may lie above all of them."""
        return sum(self.gaps.values()) / 2

    @property
    def bytes_a_state(self) -> float:
        """Bytes of the arrays as far as they are used, by states that are not given."""
        arrays = (self._keys, self._best, self._margins, self._actors, self._stack)
        used = sum(array.nbytes for array in arrays) / len(self._keys) * self.count
        per_state = used + self._slots.nbytes * self.count / len(self._keys)
        return per_state / max(1, self.count)

    def look_up(self, keys: Keys) -> NDArray[np.int32]:
        """The number of each key (m,), int32; -1 for a state that was not met."""
        numbers = np.empty(len(keys), np.int32)
        hashing.look_up(self._slots, self._keys, np.ascontiguousarray(keys), numbers)
        return numbers

    def keys_at(self, numbers: NDArray[np.integer[Any]]) -> Keys:
        """The keys (m,) of numbers (m,)."""
        return np.ascontiguousarray(self._keys[numbers, 0])

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
        fresh = self._best[numbers] == NEW
        at = numbers[fresh]
        self._rows[at, 1:] = values[fresh]
        self._best[at] = KNOWN if best is None else best[fresh]
        if margins is not None:
            self._margins[at] = margins[fresh]
        if actors is not None:
            self._actors[at] = actors[fresh]

    def solve(self, roots: Ints) -> NDArray[np.int32]:
        """Solve canonical roots (m, fields) and all below them; returns the roots' numbers.

        Raises SearchLimitError beyond `max_states`, StateError for a root that has no key and for
        a cycle that `solver.graph.components` refuses, Stopped soon after `stop()` turns true.
        """
        wrong = ~fits(self.game.bits, roots)
        if wrong.any():
            said = self.game.describe(roots[wrong][0])
            raise StateError(f"{said} has numbers too large to search")
        numbers = self._enter(hashing.pack_all(self.game.bits, np.ascontiguousarray(roots)))
        self._at[ROOT] = 0
        game = self.game
        while True:
            code = walk(  # type: ignore[call-arg]
                game.transition, self._solve_game, game.numbers, game.bits,
                game.pays, self.tolerance, BUDGET, self._at, numbers, self._slots, self._keys,
                self._rows, self._best, self._margins, self._actors, self._stack, self._path,
                *self._frames, self._scratch, *self._policy,
            )  # fmt: skip
            if code != FINISHED and self.stop():
                raise Stopped
            if self.count > self.max_states:
                left = int(np.isnan(self.values[:, 0]).sum())
                raise SearchLimitError(
                    f"the search has met {self.count} states and {left} of them are not solved "
                    f"yet; the limit is {self.max_states}"
                )
            if code == FINISHED:
                return numbers
            if code == GROW:
                self._grow()
            elif code == COMPONENT:
                self._solve_component()

    def _solve_component(self) -> None:
        from luckbase.solver.graph.components import solve_component

        frame = self._frames[0][self._path[self._at[DEPTH]]]
        height = int(self._at[HEIGHT])
        below = height - 1
        while self._stack[below] != frame[NODE]:
            below -= 1
        members = self._stack[below:height]
        members = members[np.argsort(self._keys[members, 0])]  # the same bits whoever comes first
        found = solve_component(self, members)
        if found.gap:
            self.gaps[int(members[0])] = found.gap
        self._rows[members, 1:], self._best[members] = found.values, found.best
        self._margins[members], self._actors[members] = found.margins, found.actors
        self.loops += 1
        self.largest_loop = max(self.largest_loop, len(members))
        self._at[HEIGHT] = below
        self._at[DEPTH] -= 1
        self._at[TOP] = frame[START] if self._at[DEPTH] >= 0 else 0

    def policy_of(self, number: int) -> Floats:
        """The chances of a state's actions as the policy fixes them; empty where it does not."""
        first, chances = self._policy[:2]
        if number >= len(first) - 1:
            return np.empty(0)
        return chances[first[number] : first[number + 1]]

    # --- room ----------------------------------------------------------------------------------

    def _enter(self, keys: Keys) -> NDArray[np.int32]:
        while self.count + len(keys) > len(self._keys):
            self._grow_states()
        numbers, before = np.empty(len(keys), np.int32), self.count
        self._at[COUNT] = hashing.enter(
            self._slots, self._keys, before, np.ascontiguousarray(keys), numbers
        )
        self._best[before : self.count] = NEW
        self._rows[before : self.count, 1] = np.nan
        return numbers

    def _grow(self) -> None:
        most = self.game.max_edges
        while self.count + most * (most + 1) > len(self._keys):
            self._grow_states()
        while self._at[TOP] + most >= len(self._frames[0]):
            old = self._frames
            self._make_frames(2 * len(old[0]))
            for i in range(len(old)):
                self._frames[i][: len(old[i])] = old[i]
        if self._at[DEPTH] + 1 == len(self._path):
            self._path = np.concatenate([self._path, self._path])

    def _grow_states(self) -> None:
        room = 2 * len(self._keys)
        for name in ("_keys", "_best", "_margins", "_actors", "_stack"):
            old = getattr(self, name)
            bigger = np.empty((room, *old.shape[1:]), old.dtype)
            bigger[: len(old)] = old
            if name in EMPTY:
                bigger[len(old) :] = EMPTY[name]
            setattr(self, name, bigger)
        self._slots = np.full(4 * room, -1, np.int32)
        hashing.rehash(self._slots, self._keys, self.count)

    def _make_frames(self, room: int) -> None:
        edges, players = self.game.max_edges, self.game.players
        self._frames: tuple[NDArray[Any], ...] = (
            np.empty((room, 7), np.int32),
            np.empty(room * edges, np.int32),
            np.empty(room * edges),
            np.empty(room * edges, np.int64),
            np.empty((room * edges if self.game.pays else 0, players)),
        )


def solve_graph(
    game: Game,
    roots: Ints,
    *,
    known: tuple[Keys, Floats] | None = None,
    tolerance: float | None = None,
    max_states: int = 1 << 30,
) -> Graph:
    """The graph of canonical roots (m, fields), all different and so its first m states, solved.

    known: keys and payoffs (k, players) of states that need not be expanded. Raises as
    `Graph.solve` does.
    """
    graph = Graph(game, tolerance=tolerance, max_states=max_states)
    graph._enter(hashing.pack_all(game.bits, np.ascontiguousarray(roots)))
    if known is not None:
        graph.know(*known)
    graph.solve(roots)
    return graph
