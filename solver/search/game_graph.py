"""Expand, merge and solve the states below given roots, for any game, from its rules alone.

For roots R and a set K of states with known payoffs (from a table or another shard), the graph G is
the least set that contains R and, for each of its states that is neither terminal nor in K, all
children. One depth-first search finds and solves it (`search`):

1. Visit a state: unpack its key, call the game's transition into a frame of the path, and look up
   the children in a hash table (`solver.search.keys`); a new one gets the next number. The look-ups
   of all children begin before any is finished, so their cache misses overlap.
2. Descend into the first unvisited child.
3. If there is no such child, the state is the root of a strongly connected component or part of a
   larger one (Tarjan's low-link). A part is solved later, with its root.
4. Solve the component of a root. The Bellman equation (`solver.search.bellman`) solves one state
   without an edge to itself, `solver.search.cycles` a larger component. The edges are still in the
   frames, which are then dropped.

Sums are taken in the order of the edges, and the members of a component in the order of their keys.
So the bits of a state's payoffs depend on the game alone, not on the roots or on states solved
before. The search reads 32 bytes a state for three players, half a cache line: the key, the
payoffs, and until these are known the progress of the state.

`search` is one function for speed: split into ten functions it took 1.45 times as long, because
each slice, and each array taken out of a tuple, costs two atomic reference counts. Looking up a
state's children in three short loops is 1.45 times as fast as in one loop. Expanding a state's new
children together before the first is visited is 1.1 times as fast, because they share most of their
own children.

If a game names the fields of a turn (`Rules.within_turn`), states inside a turn need not be kept.
When a state between turns is solved, all states met since its visit are solved too, and
`forget_turn` drops those inside turns. States between turns are not expanded ahead, so that few
states of other turns are met before.

Source: Tarjan, Depth-first search and linear graph algorithms (1972).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.compiled import borrowed, inlined, njit, tuple_type, types
from luckbase.solver.errors import SearchLimitError, Stopped
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.faults import fault_at
from luckbase.solver.game.game import Game
from luckbase.solver.game.rules import NUMBERS_TYPE, SIMULTANEOUS, TERMINAL, TRANSITION, Numbers
from luckbase.solver.search import cycles
from luckbase.solver.search.bellman import (
    JOINTLY,
    KNOWN,
    MATRIX_GAME,
    MIXED,
    NEW,
    OVER,
    RESULTS_TYPE,
    SCRATCH_TYPE,
    UNEVEN,
    Lotteries,
    Results,
    Scratch,
    back_up,
    matrix_game_solver,
    refuse_uneven,
    rounded_up,
    scratch_of,
)
from luckbase.solver.search.cycles import COMPONENT as COMPONENT_TYPE
from luckbase.solver.search.cycles import SOLVE_COMPONENT, later
from luckbase.solver.search.elimination import SOLVED
from luckbase.solver.search.expand import (
    ROOM_TYPE,
    Room,
    expand,
    expand_one,
    expanding,
    keys_of_roots,
    refuse_beyond,
    room_of,
)
from luckbase.solver.search.keys import (
    Keys,
    Numbering,
    find_from,
    grown,
    hash_of,
    may_be,
    order_of,
    pack_all,
    pack_row,
    unpack,
    unpack_all,
)
from luckbase.solver.sentences import option

BUDGET = 200_000
"""States visited between two calls of `stop`: a fifth of a second."""

_i, _f, _i1, _f1 = types.int64, types.float64, types.int64[::1], types.float64[::1]
_n1, _n2, _i2 = types.int32[::1], types.int32[:, ::1], types.int64[:, ::1]
_f2, _u2 = types.float64[:, ::1], types.uint64[:, ::1]

FINISHED, GROW, COMPONENT, PAUSE, REFUSED, BEYOND, SUMS = range(7)
"""Why a search stops (`search`)."""
DEPTH, COUNT, CLOCK, HEIGHT, ROOT, EDGES, TOP = range(7)
"""Positions in `Path.at`, the progress of a search: frames on the path minus one, states met,
states visited, frames on the stack, the next root, edges expanded, frames in use."""
REACHED, EXPANDED, OPEN = (np.uint64((0xFFF8 << 48) + i) for i in range(3))
"""In place of the first payoff of an unsolved state, NaNs that show its progress: only reached;
expanded but not visited, plus twice its frame; on the path, plus twice its place in the order of
visits."""

NODE, POSITION, SIZE, LOW, ACTOR, LOOP, START, TURN = 0, 1, 2, 3, 4, 5, 6, 7
"""The columns of a frame's numbers: its state, the next edge, the number of edges, Tarjan's
low-link, who acts, whether the state leads to itself, the frames in use after it is solved, and the
number of states met before its children if it is between turns, else -1."""


class Task(NamedTuple):
    """The subject of a search."""

    board: Numbers
    room: Room  # for the edges of a state
    strides: Ints  # `Game.strides`
    scratch: Scratch
    state: Ints  # (fields,), scratch
    turn: Ints  # `Game.turn`; empty if states inside turns are kept


class Store(NamedTuple):
    """All data of the states met, by number."""

    slots: NDArray[np.int32]  # the hash table (`solver.search.keys`)
    keys: NDArray[np.uint64]
    """(room, 1 + players): the key, then the payoffs as float64, or until the state is solved
    REACHED, EXPANDED or OPEN."""
    results: Results
    """Its values are `keys` as float64; margins, actors, errors: NaN, 0, 0 until it is solved."""


TASK_TYPE = tuple_type(Task, NUMBERS_TYPE, ROOM_TYPE, _i2, SCRATCH_TYPE, _i1, _i2)
STORE_TYPE = tuple_type(Store, _n1, _u2, RESULTS_TYPE)


@inlined
def is_between_turns(turn, state):
    """Return whether a turn's fields have their numbers between turns; False without fields."""
    between = turn.shape[1] > 0
    for i in range(turn.shape[1]):
        between &= state[turn[0, i]] == turn[1, i]
    return between


class Frames(NamedTuple):
    """Expanded states, as a stack: the edges of frame f begin at first[f]."""

    numbers: NDArray[np.int32]  # (frames, 8)
    first: Ints  # (frames,)
    children: NDArray[np.int32]  # (edges,), as the next two
    weights: Floats
    actions: Ints
    rewards: Floats  # (edges, players), or (0, players) if the game pays nothing


class Path(NamedTuple):
    """The progress of a search."""

    stack: NDArray[np.int32]
    """(room,), the frames of the visited states whose component is not known yet."""
    frames: NDArray[np.int32]  # the frames of the path
    at: Ints  # (7,), DEPTH to TOP


_frames = tuple_type(Frames, _n2, _i1, _n1, _f1, _i1, _f2)
_path = tuple_type(Path, _n1, _n1, _i1)


@njit(types.Tuple((_n1, COMPONENT_TYPE))(STORE_TYPE, _frames, _n1))
def component_of(store, frames, part):
    """Return the members of a component, int32 (n,) by ascending key, and the component: then the
    result's bits do not depend on who came first. part: int32 (n,), their frames."""
    n, numbers, own = part.size, frames.numbers, np.empty(part.size, np.uint64)
    for i in range(n):
        own[i] = store.keys[numbers[part[i], NODE], 0]
    members, part = np.empty(n, np.int32), part[order_of(own)]
    first, last, actors = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    for i in range(n):
        f = part[i]
        members[i], first[i], actors[i] = numbers[f, NODE], frames.first[f], numbers[f, ACTOR]
        last[i] = first[i] + numbers[f, SIZE]
    edges = Lotteries(frames.children, frames.weights, frames.actions, frames.rewards)
    return members, cycles.gather(edges, first, last, first, actors, store.results, members)


@njit(_i(_i2, _i2, _i1, STORE_TYPE, _i, _i))
def forget_turn(strides, turn, state, store, first, count):
    """Forget the states `first` .. count - 1 inside turns, renumber the others, and return their
    number. Slots are emptied in the reverse order of filling, so that no probe sequence gets a gap.
    """
    slots, keys, (_, best, margins, actors, errors) = borrowed(store)
    mask = slots.size - 1
    for z in range(count - 1, first - 1, -1):
        hashed = hash_of(keys[z, 0])
        slots[find_from(slots, keys, keys[z, 0], hashed, hashed & mask)] = -1
    left = first
    for z in range(first, count):
        unpack(strides, keys[z, 0], state)
        if not is_between_turns(turn, state):
            continue
        for c in range(keys.shape[1]):
            keys[left, c] = keys[z, c]
        best[left], margins[left] = best[z], margins[z]
        actors[left], errors[left] = actors[z], errors[z]
        hashed = hash_of(keys[left, 0])
        slot = find_from(slots, keys, keys[left, 0], hashed, hashed & mask)
        slots[slot] = hashed & ~(mask >> 1) | left
        left += 1
    return left


@njit(
    _i(
        TRANSITION, MATRIX_GAME, SOLVE_COMPONENT, TASK_TYPE, _n1, STORE_TYPE, _frames, _path, _i
    ),
    no_cfunc_wrapper=True,
)  # fmt: skip
def search(  # noqa: C901, PLR0913, PLR0915  # one piece, for speed: module docstring
    transition, solve_game, solve_component, task, roots, store, frames, path, budget
):
    """Continue a search from `path` until all roots are solved, or until:

    GROW: states or frames may not have room. COMPONENT: the states on the stack from the last
    frame up are a component that could not be solved. PAUSE: `budget` states were expanded.
    REFUSED: the edges of the state room.at break the rules. BEYOND: payoffs of the component of the
    last frame are out of range. SUMS: both choose at once in the last frame's state, and the
    payoffs do not have a constant sum.
    """
    board, room = task.board, borrowed(task.room)
    strides, turn = borrowed(task.strides), borrowed(task.turn)
    state, scratch, limits = borrowed(task.state), borrowed(task.scratch), room.span
    below, chances, names, paid, about = room.edges
    slots, keys, (rows, best, margins, actors, errors) = borrowed(store)
    numbers, first, children, weights, actions, rewards = borrowed(frames)
    stack, frame_of, at = borrowed(path)
    depth, count, clock, height = at[DEPTH], at[COUNT], at[CLOCK], at[HEIGHT]
    root, edges, top = at[ROOT], at[EDGES], at[TOP]
    max_edges, mask, columns = below.shape[0], slots.size - 1, rows.shape[1] - 1
    players, pays = paid.shape[1], rewards.shape[0] > 0
    child_keys, row_keys = np.empty(max_edges, np.uint64), np.empty(max_edges, np.uint64)
    place, number = np.empty(max_edges, np.int64), np.empty(max_edges, np.int64)
    hashed, number_bits = np.empty(max_edges, np.int64), mask >> 1
    lotteries, out, code = Lotteries(children, weights, actions, rewards), scratch.out, FINISHED
    while True:
        visit, f, base = -1, 0, 0
        if depth < 0:
            while root < roots.size and keys[roots[root], 1] < REACHED:
                root += 1
            if root == roots.size:
                break
            visit = roots[root]
        else:
            f = frame_of[depth]
            base = first[f]
            position, stop = base + numbers[f, POSITION], base + numbers[f, SIZE]
            while position < stop:
                y = children[position]
                if keys[y, 1] >= REACHED:
                    when = np.int64(keys[y, 1] - OPEN)
                    if when < 0 or when & 1:  # not on the path
                        visit = y
                        break
                    numbers[f, LOW] = min(numbers[f, LOW], when >> 1)
                    if y == numbers[f, NODE]:
                        numbers[f, LOOP] = 1
                position += 1
            numbers[f, POSITION] = position - base
        if visit >= 0:
            if depth + 1 == frame_of.size:
                code = GROW
                break
            if budget <= 0:
                code = PAUSE
                break
            f, position, stop, start = -1, 0, 0, top
            if keys[visit, 1] >= EXPANDED:
                f = np.int64(keys[visit, 1] - EXPANDED) >> 1  # type: ignore[assignment]
                position, stop = first[f], first[f] + numbers[f, SIZE]
            while True:  # expand the state itself, then its new children
                y = visit
                if f >= 0:
                    while position < stop and keys[children[position], 1] != REACHED:
                        position += 1
                    if position == stop:
                        break
                    y = children[position]
                elif keys[y, 1] != REACHED:
                    break
                full = count + max_edges > keys.shape[0] or top + 1 >= numbers.shape[0]
                if full or first[top] + max_edges > children.size:
                    code = GROW if f < 0 else code  # a child is expanded when it is visited
                    break
                budget -= 1
                unpack(strides, keys[y, 0], state)
                begins = is_between_turns(turn, state)
                if begins and f >= 0:  # it will be expanded when it is visited
                    position += 1
                    continue
                base = first[top]
                numbers[top, TURN] = count if begins else -1
                n = expand_one(transition, board, state, room.edges, room)
                if n < 0:
                    code = REFUSED
                    break
                if about[0] == TERMINAL:
                    for c in range(columns):
                        rows[y, 1 + c] = paid[0, c]
                    for p in range(players):
                        paid[0, p] = 0.0
                    best[y] = OVER
                    continue
                for k in range(n):
                    child_keys[k] = pack_row(strides, below, k)
                    hashed[k] = hash_of(child_keys[k])
                # Short loops, so that many cache misses overlap. The first has no branch that
                # depends on a slot.
                for k in range(n):
                    place[k] = hashed[k] & mask
                    number[k] = slots[place[k]]
                for k in range(n):
                    place[k] = may_be(slots, hashed[k], place[k])
                    entry = slots[place[k]]
                    number[k] = entry & number_bits if entry >= 0 else -1
                for k in range(n):
                    row_keys[k] = keys[max(number[k], 0), 0]
                for k in range(n):
                    z = number[k]
                    if z < 0 or row_keys[k] != child_keys[k]:
                        slot = find_from(slots, keys, child_keys[k], hashed[k], place[k])
                        if slots[slot] < 0:
                            slots[slot] = hashed[k] & ~number_bits | count
                            keys[count, 0] = child_keys[k]
                            keys[count, 1] = REACHED
                            best[count], margins[count], actors[count] = NEW, np.nan, 0
                            errors[count] = 0.0
                            count += 1
                        z = slots[slot] & number_bits
                    children[base + k] = z
                    weights[base + k], actions[base + k] = chances[k], names[k]
                    if pays:
                        for p in range(players):
                            rewards[base + k, p] = paid[k, p]
                edges += n
                numbers[top, NODE], numbers[top, SIZE] = y, n
                numbers[top, ACTOR] = JOINTLY if about[0] == SIMULTANEOUS else about[1]
                keys[y, 1] = EXPANDED + np.uint64(2 * top)
                if f < 0:
                    f, position, stop, start = top, base, base + n, top + 1
                top += 1
                first[top] = base + n
            if code != FINISHED:
                break
            if f < 0:
                continue  # it is terminal
            depth += 1
            frame_of[depth] = f
            numbers[f, POSITION], numbers[f, LOW], numbers[f, LOOP] = 0, clock, 0
            numbers[f, START] = start
            keys[visit, 1] = OPEN + np.uint64(2 * clock)
            stack[height] = f
            clock, height = clock + 1, height + 1
            continue
        x, actor = numbers[f, NODE], numbers[f, ACTOR]
        if numbers[f, LOW] == np.int64(keys[x, 1] - OPEN) >> 1:
            start = height - 1
            if stack[start] != f or numbers[f, LOOP]:
                while stack[start] != f:
                    start -= 1
                members, component = component_of(store, frames, stack[start:height])
                status = cycles.solve_members(
                    solve_component, component, scratch.limits, members, store.results
                )
                if status != SOLVED:
                    code = COMPONENT
                    break
            else:
                span = base, base + numbers[f, SIZE]
                best[x], margin, error = back_up(
                    solve_game, lotteries, span, actor, rows, errors, scratch
                )
                if best[x] == UNEVEN:
                    code = SUMS
                    break
                if margin == margin:
                    margins[x] = margin
                actors[x], errors[x] = max(actor, -1) + 1, rounded_up(error)
                for c in range(columns):
                    rows[x, 1 + c] = out[c]
            if pays and room.checked:  # otherwise the range follows from the final payoffs
                for i in range(start, height):
                    for c in range(columns):
                        if not limits[0] <= rows[numbers[stack[i], NODE], 1 + c] <= limits[1]:
                            code = BEYOND
                if code == BEYOND:
                    break
            height, top = start, numbers[f, START]
            if numbers[f, TURN] >= 0:
                count = forget_turn(strides, turn, state, store, numbers[f, TURN], count)
        elif depth > 0:  # its frame is kept until its component is solved
            above = frame_of[depth - 1]
            numbers[above, LOW] = min(numbers[above, LOW], numbers[f, LOW])
        depth -= 1
        if depth < 0:
            top = 0
    at[DEPTH], at[COUNT], at[CLOCK], at[HEIGHT] = depth, count, clock, height
    at[ROOT], at[EDGES], at[TOP] = root, edges, top
    return code


def edge_memory(game: Game) -> int:
    """Return the bytes of the buffers that a search needs for the edges of one state: edges,
    look-ups and payoffs, two frames, and as many new states."""
    numbers = game.field_count + 4 * game.players + 13
    new_states = 2 * (8 * (1 + game.players) + 33)
    return game.max_edges * (8 * numbers + new_states)


class Graph:
    """States met so far and their payoffs; `solve` adds the states below more roots."""

    def __init__(
        self,
        game: Game,
        *,
        tolerance: float | None = None,
        max_states: int = 1 << 30,
        stop: Callable[[], bool] = lambda: False,
        keeps_turns: bool = True,
    ) -> None:
        """keeps_turns: keep all states inside turns, not only those below roots inside a turn."""
        self.game, self.max_states, self.stop = game, max_states, stop
        self.tolerance = game.tie_tolerance if tolerance is None else tolerance
        room = 1 << 14
        numbering = self._numbering = Numbering(game.players, room)
        self._store = Store(numbering.slots, numbering.rows, Results(
            numbering.rows.view(np.float64), np.empty(room, np.int64), np.empty(room),
            np.empty(room, np.int8), np.empty(room, np.float32),
        ))  # fmt: skip
        edges = max(4096, 2 * game.max_edges)
        self._frames = Frames(
            np.empty((256, 8), np.int32), np.zeros(256, np.int64), np.empty(edges, np.int32),
            np.empty(edges), np.empty(edges, np.int64),
            np.empty((edges if game.pays else 0, game.players)),
        )  # fmt: skip
        self._at = np.array([-1, 0, 0, 0, 0, 0, 0])
        self._path = Path(np.empty(room, np.int32), np.empty(64, np.int32), self._at)
        self._solve_game, self._engine = matrix_game_solver(game), later
        self._task = Task(
            game.numbers, room_of(game), game.strides,
            scratch_of(game, game.max_edges, self.tolerance), np.empty(game.field_count, np.int64),
            np.empty((2, 0), np.int64) if keeps_turns else game.turn,
        )  # fmt: skip

    # --- results -------------------------------------------------------------------------------

    @property
    def count(self) -> int:
        """The number of states met, including known and terminal ones."""
        return int(self._at[COUNT])

    @property
    def edges(self) -> int:
        """The number of edges expanded."""
        return int(self._at[EDGES])

    @property
    def keys(self) -> Keys:
        """uint64 (count,), in the order in which the states were met; a copy."""
        return self.keys_at(np.arange(self.count))

    @property
    def values(self) -> Floats:
        """float64 (count, players); NaN in the first column if a state is not solved."""
        return self._store.results.values[: self.count, 1:]

    @property
    def best(self) -> Ints:
        """int64 (count,): the best action, or why there is none (OVER, …, NEW)."""
        return self._store.results.best[: self.count]

    @property
    def margins(self) -> Floats:
        """float64 (count,): the loss by the actor's second best action; NaN if no player chooses
        alone, and for unsolved and given states."""
        return self._store.results.margins[: self.count]

    @property
    def actors(self) -> NDArray[np.int8]:
        """int8 (count,): the player who acts, from 1; 0 if no player acts or both choose at once,
        and for unsolved and given states."""
        return self._store.results.actors[: self.count]

    @property
    def errors(self) -> NDArray[np.float32]:
        """float32 (count,): a bound on the error of each payoff, of given payoffs too."""
        return self._store.results.errors[: self.count]

    @property
    def error(self) -> float:
        return float(self.errors.max(initial=0.0))

    @property
    def bytes_a_state(self) -> float:
        """Bytes of the used parts of the arrays, for each state."""
        slots, keys, results = self._store
        arrays = slots, *results, self._path.stack
        return sum(array.nbytes for array in arrays) / len(keys) if self.count else 0.0

    @property
    def largest_turn(self) -> Ints | None:
        """The state (fields,) in which the current turn began, if most states in memory are inside
        turns."""
        turn, depth = self._task.turn, int(self._at[DEPTH])
        states = self.states(np.arange(0, self.count, max(1, self.count // 1000)))
        if not turn.size or 2 * self.game.within_turn(states).sum() < len(states):
            return None
        frames = self._frames.numbers[self._path.frames[: depth + 1]]
        begins = frames[frames[:, TURN] >= 0, NODE]
        return self.states(begins[-1:])[0] if len(begins) else None

    def rows(self) -> Ints:
        """Return the numbers of the states that a table stores, by ascending key: those solved here
        and not terminal; if the game names the fields of a turn, only states between turns."""
        at = np.flatnonzero((self.best >= 0) | (self.best == MIXED))
        if self.game.turn.size:
            at = at[~self.game.within_turn(self.states(at))]
        return at[np.argsort(self.keys_at(at))]

    def look_up(self, keys: Keys) -> NDArray[np.int32]:
        """Return the number of each key (m,), int32; -1 for a state that was not met."""
        return self._numbering.look_up(keys)

    def keys_at(self, numbers: NDArray[np.integer[Any]]) -> Keys:
        """Return the keys (m,) of numbers (m,)."""
        return self._numbering.keys_at(numbers)

    def states(self, numbers: NDArray[np.integer[Any]]) -> Ints:
        """Return the states (m, fields) of numbers (m,)."""
        return np.asarray(unpack_all(self.game.strides, self.keys_at(numbers)))

    # --- the search ----------------------------------------------------------------------------

    def know(self, keys: Keys, values: Floats, errors: Floats | float = 0.0) -> None:
        """Take the payoffs (m, players) of states that need no expansion, and error bounds (m,);
        solved states keep their payoffs."""
        numbers = self._enter(keys)
        results = self._store.results
        fresh = results.best[numbers] == NEW
        at = numbers[fresh]
        results.values[at, 1:] = values[fresh]
        results.best[at] = KNOWN
        results.errors[at] = np.broadcast_to(errors, len(keys))[fresh] * (1 + 2.0**-23)

    def solve(self, roots: Ints) -> NDArray[np.int32]:
        """Solve canonical roots (m, fields) and all states below them; return the roots' numbers.
        After an exception the graph is not usable.

        Raises SearchLimitError beyond `max_states`; StateError for a root that has no key or a
        cycle that `solver.search.cycles` refuses; GameError for a state whose edges break the rules
        or whose payoff is out of range; Stopped soon after `stop()` becomes true.
        """
        numbers = self._enter(keys_of_roots(self.game, roots))
        self._at[ROOT] = 0
        while True:
            code = self._search(numbers)
            self._check_limits(code)
            if code == FINISHED:
                return numbers
            if code == GROW:
                self._grow()
            elif code == COMPONENT:
                self._solve_component()

    def _check_limits(self, code: int) -> None:
        if code != FINISHED and self.stop():
            raise Stopped
        if self.count > self.max_states:
            left = int(np.isnan(self.values[:, 0]).sum())
            raise SearchLimitError(
                f"the search has found {self.count:,} states and {left:,} of them are not "
                f"solved yet; the limit is {self.max_states:,} ({option('max_states')})"
            )

    def _search(self, roots: NDArray[np.int32]) -> int:
        game, task = self.game, self._task
        with expanding(game, task.room):
            code = search(
                game.transition, self._solve_game, self._engine, task, roots,
                self._store, self._frames, self._path, BUDGET,
            )  # fmt: skip
        if code == REFUSED:
            raise fault_at(game, task.room.at)
        if code == BEYOND:
            solved = np.flatnonzero((self.best != KNOWN) & (self.best != NEW))
            refuse_beyond(game, self.keys_at(solved), self.values[solved])
        if code == SUMS:
            at = self._frames.numbers[self._path.frames[self._at[DEPTH]], [NODE]]
            children = pack_all(game.strides, expand(game, self.states(at)).children)
            refuse_uneven(game, self.states(at)[0], self.values[self.look_up(children)])
        return int(code)

    def _solve_component(self) -> None:
        """Solve the component on the stack that `search` could not solve, or raise."""
        store, task, at, path = self._store, self._task, self._at, self._path
        frame, height = path.frames[at[DEPTH]], int(at[HEIGHT])
        below = height - 1 - int(np.argmax(path.stack[:height][::-1] == frame))
        members, component = component_of(store, self._frames, path.stack[below:height])
        cycles.solve_alone(
            self.game, component, task.scratch.limits, members, store.results, self.states(members)
        )
        refuse_beyond(self.game, store.keys[members, 0], self.values[members])
        self._engine = cycles.solve_component  # it is compiled by now
        turn = self._frames.numbers[frame, TURN]
        if turn >= 0:
            at[COUNT] = forget_turn(
                task.strides, task.turn, task.state, store, int(turn), int(at[COUNT])
            )
        at[HEIGHT], at[TOP], at[DEPTH] = below, self._frames.numbers[frame, START], at[DEPTH] - 1

    # --- room ----------------------------------------------------------------------------------

    def _enter(self, keys: Keys) -> NDArray[np.int32]:
        self._make_room(len(keys))
        before = self.count
        numbers = self._numbering.enter(keys)
        self._at[COUNT] = self._numbering.count
        results, new = self._store.results, slice(before, self.count)
        results.best[new], results.margins[new], results.actors[new] = NEW, np.nan, 0
        results.errors[new] = 0.0
        self._store.keys[new, 1] = REACHED
        return numbers

    def _grow(self) -> None:
        self._make_room(self.game.max_edges)
        frames, top = self._frames, int(self._at[TOP])
        edges, count = int(frames.first[top]) + self.game.max_edges, top + 2
        self._frames = Frames(
            grown(frames.numbers, count), grown(frames.first, count),
            grown(frames.children, edges), grown(frames.weights, edges),
            grown(frames.actions, edges),
            grown(frames.rewards, edges) if self.game.pays else frames.rewards,
        )  # fmt: skip
        if self._at[DEPTH] + 1 == len(self._path.frames):
            self._path = self._path._replace(frames=np.tile(self._path.frames, 2))

    def _make_room(self, more: int) -> None:
        """Make room for more states."""
        numbering, old = self._numbering, self._store.results
        numbering.count = self.count
        numbering.reserve(numbering.count + more)
        room = len(numbering.rows)
        if room > len(old.best):
            results = Results(
                numbering.rows.view(np.float64), *(grown(array, room) for array in old[1:])
            )
            self._store = Store(numbering.slots, numbering.rows, results)
            self._path = self._path._replace(stack=grown(self._path.stack, room))
