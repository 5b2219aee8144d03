"""Expand states and check them against the rules. All solvers call this, never the transition.

`expand_one` expands one state in compiled code, `expand` many into flat arrays. `Explorer` expands
all states below some roots, level by level. `classify` assigns states to groups: the cells and
thresholds of a picture (`solver.game.groups`).

The games of this package are checked by tests. For a user's game, each expanded state is checked
against `solver.game.rules` before its edges are used; `solver.game.faults` describes a fault.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from luckbase.solver.compiled import inlined, njit, tuple_type, types
from luckbase.solver.errors import LuckbaseError, SearchLimitError, StateError, Stopped
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.faults import fault_at, worth_at
from luckbase.solver.game.groups import GROUP, Groups, groups_of
from luckbase.solver.game.rules import (
    CHANCE,
    DECISION,
    EDGES_TYPE,
    JOINT,
    NUMBERS_TYPE,
    SIMULTANEOUS,
    TERMINAL,
    TRANSITION,
    WEIGHT,
    Edges,
    room_for,
)
from luckbase.solver.search.keys import Keys, Numbering, fits, grown, pack, pack_all, unpack_all
from luckbase.solver.sentences import many, option

if TYPE_CHECKING:
    from luckbase.solver.game.game import Game

_i, _b, _i1, _i2 = types.int64, types.boolean, types.int64[::1], types.int64[:, ::1]
_u1, _f1 = types.uint64[::1], types.float64[::1]

EXPECTED_EDGES = 16
"""Edges for each state for which `expand` has room at first; it makes more if needed."""
BROKEN = -1
"""Returned in place of a number of edges that break the rules."""


class Room(NamedTuple):
    """Room for a state's edges, and the limits that they are checked against if `checked`."""

    edges: Edges
    checked: bool
    bounds: Ints  # (2, fields), the least and the greatest value of each number
    span: Floats  # (2,), the least and the greatest payoff
    kinds: Ints
    """(3,): the number of named actions; whether edges may pay; whether both may choose at once."""
    at: Ints
    """(fields,): the state whose edges break the rules, or, if `checked`, the last one expanded."""


ROOM_TYPE = tuple_type(Room, EDGES_TYPE, _b, _i2, _f1, _i1, _i1)


def room_of(game: Game, edges: int = 0) -> Room:
    """Return room for this many edges, and at least for one state's."""
    names = game.rules.actions
    return Room(
        room_for(max(edges, game.max_edges), game.field_count, game.players), game.is_checked,
        game.fields.bounds, game.payoff_span,
        np.array([JOINT**2 if callable(names) else len(names), game.pays, game.simultaneous]),
        np.zeros(game.field_count, np.int64),
    )  # fmt: skip


def some_state(game: Game) -> Ints:
    """Return a state (1, fields) of the right shape; it need not be valid and is not expanded."""
    start = game.start()
    fields = np.zeros(game.field_count, np.int64) if start is None else start
    return np.ascontiguousarray(fields).reshape(1, -1)


def root_keys(game: Game, roots: Ints | None) -> Keys:
    """Return the keys of roots (m, fields), or of all starts of the game, ascending, each once.

    Raises OptionError if there is no start, StateError as `keys_of_roots` does.
    """
    if roots is None:
        roots = game.needed_starts()
    return np.unique(keys_of_roots(game, roots))


def keys_of_roots(game: Game, roots: Ints) -> Keys:
    """Return the keys (m,) of canonical roots (m, fields). Raises StateError if one has none."""
    wrong = ~fits(game.strides, roots)
    if wrong.any():
        raise StateError(f"{game.say(roots[wrong][0])} has numbers too large to search")
    keys: Keys = pack_all(game.strides, np.ascontiguousarray(roots))
    return keys


@contextmanager
def expanding(game: Game, room: Room) -> Iterator[None]:
    """Convert exceptions of the game's own code to GameError with the state and the line."""
    try:
        yield
    except (LuckbaseError, Stopped, MemoryError):
        raise
    except Exception as error:
        if not room.checked:
            raise
        raise fault_at(game, room.at, error) from None


def refuse_beyond(game: Game, states: Ints | Keys, values: Floats) -> None:
    """Raise GameError if one of n states, or keys, has a payoff (n, players) out of range. If edges
    pay nothing, payoffs follow from the terminal ones."""
    if not (game.is_checked and game.pays):
        return
    low, high = game.payoff_span
    wrong = ~((values >= low) & (values <= high)).all(axis=1)
    if wrong.any():
        at = states[wrong][:1]
        state = unpack_all(game.strides, at) if at.ndim == 1 else at
        raise worth_at(game, state[0], values[wrong][0])


@inlined
def expand_one(transition, board, state, edges, room):
    """Write a state's edges to `edges`, which is room.edges or a part of it.

    Returns their number, or BROKEN with the state in room.at. Only a terminal state's payoff (row 0
    of the rewards) must be set back to 0.
    """
    if room.checked:
        return _expand_checked(transition, board, state, edges, room)
    n = transition(board, state, edges)
    return n if n <= edges.weights.size else _refuse_at(room, state)


@njit(_i(ROOM_TYPE, _i1))
def _refuse_at(room, state):
    """Record a state that has more edges than the game declares; return BROKEN."""
    for i in range(state.size):
        room.at[i] = state[i]
    return BROKEN


@njit(_i(TRANSITION, NUMBERS_TYPE, _i1, EDGES_TYPE, ROOM_TYPE))
def _expand_checked(transition, board, state, edges, room):
    rewards, about = edges.rewards, edges.about
    at, span, kinds = room.at, room.span, room.kinds
    players = rewards.shape[1]
    for i in range(state.size):
        at[i] = state[i]
    about[0] = -1
    n = transition(board, state, edges)
    right = True
    for i in range(state.size):
        right &= at[i] == state[i]
    if about[0] == TERMINAL:
        for p in range(players):
            right &= span[0] <= rewards[0, p] <= span[1]
        return n if right and n == 0 else BROKEN
    weights, actions = edges.weights, edges.actions
    if not right or not 1 <= n <= weights.size:
        return BROKEN
    right = _chances_are(n, weights, actions, kinds[0] if about[0] == DECISION else JOINT**2)
    right = right and _kind_is(n, about, actions, players, kinds[2])
    right = right and _lies_within(n, edges.children, room.bounds)
    paid = rewards.reshape(-1)
    for k in range(n * players):  # NaN and infinity minus themselves are not 0
        right &= (paid[k] - paid[k] if kinds[1] else paid[k]) == 0.0
    return n if right else BROKEN


@inlined
def _lies_within(n, children, bounds):
    """Return whether n children are within bounds. Checks all: faster without branches."""
    beyond = np.int64(0)
    for k in range(n):
        for i in range(children.shape[1]):
            beyond |= (children[k, i] - bounds[0, i]) | (bounds[1, i] - children[k, i])
    return beyond >= 0  # negative if any difference is


@inlined
def _chances_are(n, weights, actions, names):
    """Return whether each action has a name and positive weights that add up to 1."""
    right, total, slack = True, 1.0, WEIGHT + n * 2.0**-53
    action = np.int64(-1)
    for k in range(n):
        if actions[k] != action:
            right &= abs(total - 1.0) <= slack
            total, action = 0.0, actions[k]
            right &= 0 <= action < names
        right &= weights[k] > 0.0
        total += weights[k]
    return right and abs(total - 1.0) <= slack


@inlined
def _kind_is(n, about, actions, players, at_once):
    """Return whether actor and actions fit the kind of a state that is not terminal."""
    kind, actor = about[0], about[1]
    if kind == SIMULTANEOUS:
        return at_once and players == 2 and _is_full(n, actions)
    if kind == CHANCE:
        return -1 <= actor < players and actions[0] == actions[n - 1]
    return kind == DECISION and 0 <= actor < players


@inlined
def _is_full(n, actions):
    """Return whether joint actions ascend, with the same number of columns in each row."""
    row, columns, count, last = actions[0] // JOINT, 0, 1, actions[0]
    for k in range(1, n):
        if actions[k] == last:
            continue
        if actions[k] < last:
            return False
        last = actions[k]
        if last // JOINT == row:
            count += 1
            continue
        if columns and count != columns:
            return False
        row, columns, count = last // JOINT, count, 1
    return columns == 0 or count == columns


@njit(_i(TRANSITION, NUMBERS_TYPE, _i2, ROOM_TYPE, _i, _i, _i1, _i1, _i1))
def _expand(transition, board, states, room, x, max_edges, first, kinds, actors):  # noqa: PLR0913  # a kernel: in tuples its arrays count references
    """Expand states (n, fields) from number x on while there is room for `max_edges` edges.

    State x has its edges from first[x] on. Returns the number of the first state without room, n at
    the end, or BROKEN with the state in room.at.
    """
    children, weights, actions, rewards, about = room.edges
    edge = first[x]
    while x < states.shape[0] and edge + max_edges <= weights.size:
        stop = edge + max_edges
        part = Edges(
            children[edge:stop], weights[edge:stop], actions[edge:stop], rewards[edge:stop], about
        )
        count = expand_one(transition, board, states[x], part, room)
        if count < 0:
            return count
        kinds[x], actors[x] = about[0], about[1]
        if about[0] == TERMINAL:  # one edge to itself that pays the payoff
            for f in range(states.shape[1]):  # a row assignment would compile errors
                children[edge, f] = states[x, f]
            weights[edge], actions[edge], count = 1.0, -1, 1
        x, edge = x + 1, edge + count
        first[x] = edge
    return x


@dataclass(frozen=True)
class Expanded:
    """Expanded states: n states, m edges, p players. A terminal state has one edge, with action -1,
    that leads to itself and pays its payoff."""

    kinds: Ints  # (n,)
    actors: Ints  # (n,)
    first: Ints  # (n + 1,), state x has edges first[x] .. first[x + 1] - 1
    children: Ints  # (m, fields)
    weights: Floats  # (m,)
    actions: Ints  # (m,)
    rewards: Floats  # (m, p)

    @property
    def terminal(self) -> NDArray[np.bool_]:
        """(n,) whether each state is terminal."""
        return np.equal(self.kinds, TERMINAL)

    @property
    def below(self) -> Ints:
        """int64 (k, fields): the children of the states that are not terminal, in order."""
        goes_on = np.repeat(~self.terminal, np.diff(self.first))
        return np.ascontiguousarray(self.children[goes_on])


def expand(game: Game, states: Ints) -> Expanded:
    """Return the edges of canonical states (n, fields). Raises GameError for a broken rule."""
    n, most, first = len(states), game.max_edges, np.zeros(len(states) + 1, np.int64)
    room = room_of(game, min(n * most, most + EXPECTED_EDGES * n))
    kinds, actors, x = np.empty(n, np.int64), np.empty(n, np.int64), 0
    states = np.ascontiguousarray(states)
    while True:
        with expanding(game, room):
            x = _expand(
                game.transition, game.numbers, states, room, x, most, first, kinds, actors
            )  # fmt: skip
        if x < 0:
            raise fault_at(game, room.at)
        edges, m = room.edges, int(first[x])
        if x == n:
            return Expanded(
                kinds, actors, first, edges.children[:m], edges.weights[:m], edges.actions[:m],
                edges.rewards[:m],
            )  # fmt: skip
        more = m + most
        room = room._replace(edges=Edges(
            grown(edges.children, more, 0), grown(edges.weights, more, 0),
            grown(edges.actions, more, 0), grown(edges.rewards, more, 0), edges.about,
        ))  # fmt: skip


def who_acts(game: Game, states: Ints) -> tuple[Ints, Ints]:
    """Return `Expanded.kinds` and `actors` of canonical states."""
    edges = expand(game, states)
    return edges.kinds, edges.actors


@njit(_i(TRANSITION, NUMBERS_TYPE, ROOM_TYPE, GROUP, NUMBERS_TYPE, _b, _i2, _i2, _i2, _u1))
def _classify(transition, board, room, group, numbers, decides, strides, states, places, lines):  # noqa: PLR0913  # a kernel: in tuples its arrays count references
    """Write (group, threshold, number on it, x, y) of states (n, fields) to `places` (n, 5).

    Returns 0, or BROKEN with the state in room.at.
    """
    edges = room.edges
    out, line_state = np.empty(4, np.int64), np.empty(states.shape[1], np.int64)
    for k in range(states.shape[0]):
        state, actor = states[k], np.int64(-1)
        places[k, 0] = places[k, 1] = places[k, 3] = places[k, 4] = -1
        if not decides:
            if expand_one(transition, board, state, edges, room) < 0:
                return BROKEN
            kind, actor = edges.about[0], edges.about[1]
            if kind == SIMULTANEOUS:
                actor = np.int64(-1)
            elif kind != DECISION:
                continue
        for i in range(line_state.size):
            line_state[i] = state[i]
        out[0] = out[2] = out[3] = -1
        code = group(numbers, state, actor, out, line_state)
        if code < 0:
            continue
        places[k, 0] = code
        for i in range(4):
            places[k, 1 + i] = out[i]
        if out[0] >= 0:
            lines[k] = pack(strides, line_state)
    return 0


@dataclass(frozen=True)
class Standing:
    """The groups of n states; each array has shape (n,)."""

    groups: Ints  # -1 if no player decides
    thresholds: Ints  # -1 for none
    at: Ints  # the number on the threshold
    lines: Keys  # equal for all states of a threshold that differ only in that number
    x: Ints  # the cell of the picture, -1 for none
    y: Ints


def classify(game: Game, states: Ints, groups: Groups | None = None) -> Standing:
    """Return the groups of canonical states (n, fields), by default the game's."""
    said = groups_of(game) if groups is None else groups
    room = room_of(game)
    places = np.empty((len(states), 5), np.int64)
    lines: Keys = np.zeros(len(states), np.uint64)
    with expanding(game, room):
        wrong = _classify(
            game.transition, game.numbers, room, said.group, said.numbers, said.decides,
            game.strides, np.ascontiguousarray(states, np.int64),
            places, lines,
        )  # fmt: skip
    if wrong:
        raise fault_at(game, room.at)
    return Standing(places[:, 0], places[:, 1], places[:, 2], lines, places[:, 3], places[:, 4])


# --- level by level ------------------------------------------------------------------------------

INNER, OVER, KNOWN = 0, 1, 2  # kinds of a state: to expand, terminal, known (not expanded)
PIECE_EDGES = 1 << 20
"""The most edges that are expanded at once."""
KnownStates = Callable[[Ints], NDArray[np.bool_]]  # states (n, fields) -> which of them are known


class Explorer:
    """The levels below canonical roots (m, fields); each call of `deeper` adds one.

    States first[d] .. first[d + 1] - 1 are d edges from the roots; `known` ones are not expanded.
    """

    def __init__(
        self, game: Game, roots: Ints, known: KnownStates | None = None, max_states: int = 1 << 30
    ) -> None:
        self.game, self.known, self.max_states = game, known, max_states
        self._numbering = Numbering()
        self._numbering.enter(keys_of_roots(game, roots))
        self.first, self._kinds = [0, self._numbering.count], list[NDArray[np.uint8]]()

    @property
    def keys(self) -> Keys:
        """uint64 (n,): the states met so far, by level; a copy."""
        return self._numbering.keys_at(np.arange(self.first[-1]))

    @property
    def kinds(self) -> NDArray[np.uint8]:
        """uint8: INNER, OVER or KNOWN, for each state of the expanded levels."""
        return np.concatenate(self._kinds)

    def deeper(self) -> bool:
        """Expand the last level; return False if it has no new children. Raises SearchLimitError,
        and GameError for a state whose edges break the rules."""
        game, numbering, (start, stop) = self.game, self._numbering, self.first[-2:]
        kinds, piece = np.zeros(stop - start, np.uint8), max(1, PIECE_EDGES // game.max_edges)
        for at in range(start, stop, piece):
            states = unpack_all(game.strides, numbering.rows[at : min(stop, at + piece), 0].copy())
            known = np.zeros(len(states), bool) if self.known is None else self.known(states)
            edges, inner = expand(game, states[~known]), np.flatnonzero(~known) + at - start
            kinds[at - start :][: len(states)][known] = KNOWN
            kinds[inner[edges.terminal]] = OVER
            numbering.enter(pack_all(game.strides, edges.below))
            if numbering.count > self.max_states:
                raise SearchLimitError(
                    f"the search has found {many(numbering.count, 'state')} in "
                    f"{many(len(self.first) - 1, 'level')} "
                    f"and is not finished; the limit is {self.max_states:,} "
                    f"({option('max_states')})"
                )
        self._kinds.append(kinds)
        if numbering.count > stop:
            self.first.append(numbering.count)
        return numbering.count > stop


def known_below(
    game: Game, roots: Ints, known: KnownStates, max_states: int = 1 << 30,
    on_level: Callable[[int, int], None] | None = None,
) -> Keys:  # fmt: skip
    """Return the keys of the known states below canonical roots (m, fields) at which a search can
    stop. on_level: called with the number of states met and of levels."""
    explorer = Explorer(game, roots, known, max_states)
    while explorer.deeper():
        if on_level is not None:
            on_level(explorer.first[-1], len(explorer.first) - 1)
    return np.ascontiguousarray(explorer.keys[explorer.kinds == KNOWN])
