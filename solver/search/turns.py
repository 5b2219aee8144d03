"""Solve states between turns if all turns have the same inner edges (`Rules.turns_alike`).

A turn of Yahtzee has 1,177 states and 19,000 edges, and only the 252 states after the last roll
differ from turn to turn. So the first turn is expanded once (`Turn`), and every other turn only at
its last steps: a depth-first search over states between turns expands the last steps of a turn,
visits the unsolved states that they lead to, and then applies the Bellman equation to the turn's
states, children first. Sums are taken in the order of the edges, as in `solver.search.game_graph`,
so payoffs have the same bits.

The declaration is checked in each turn at its first state and at one other, in rotation.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from luckbase.solver.compiled import borrowed, njit, tuple_type, types
from luckbase.solver.errors import GameError
from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.faults import broken
from luckbase.solver.game.game import Game
from luckbase.solver.game.rules import EDGES_TYPE, TERMINAL, TRANSITION
from luckbase.solver.search.bellman import (
    LOTTERIES,
    MATRIX_GAME,
    NEW,
    OVER,
    SCRATCH_TYPE,
    Lotteries,
    back_up,
    errors_type,
    rounded_up,
)
from luckbase.solver.search.expand import expand, expand_one
from luckbase.solver.search.explore import KNOWN as BETWEEN
from luckbase.solver.search.explore import explore
from luckbase.solver.search.keys import (
    Keys,
    find_from,
    hash_of,
    pack_all,
    pack_row,
    unpack,
    unpack_all,
)
from luckbase.solver.search.progress import (
    COUNT,
    EDGES,
    EXPANDED,
    FINISHED,
    GROW,
    HEIGHT,
    PAUSE,
    REACHED,
    REFUSED,
    STORE_TYPE,
    TASK_TYPE,
    is_between_turns,
)

CIRCULAR, UNLIKE = 30, 31
"""More reasons why a search stops: a turn leads back to its beginning, or is not like the first."""
_i, _b, _u, _f = types.int64, types.boolean, types.uint64, types.float64
_i1, _i2, _n1, _u1, _f2 = _i[::1], _i[:, ::1], types.int32[::1], _u[::1], _f[:, ::1]
_span = types.UniTuple(_i, 2)


class Turn(NamedTuple):
    """The states of a turn, children first; the last one is its beginning.

    offsets: uint64 (n,), each state's key minus the key of the beginning.
    first: int64 (n + 1,), state i has the edges first[i] .. first[i + 1] - 1; a last step has none.
    actors: int64 (n,).
    edges: `Lotteries`, whose children are states of the turn.
    """

    offsets: Any
    first: Any
    actors: Any
    edges: Any


TURN_TYPE = tuple_type(Turn, _u1, _i1, _i1, LOTTERIES)


def room_for_turn(turn: Turn, edges: int) -> Turn:
    """Return room for the last steps of one turn, whose edges lead to states of the graph."""
    steps = int(np.count_nonzero(turn.first == 0)) - 1
    rewards = turn.edges.rewards
    lotteries = Lotteries(
        np.empty(edges, np.int64), np.empty(edges), np.empty(edges, np.int64),
        np.empty((edges if len(rewards) else 0, rewards.shape[1])),
    )  # fmt: skip
    return Turn(turn.offsets, np.zeros(steps + 1, np.int64), np.empty(steps, np.int64), lotteries)


def ends_of(game: Game, states: Ints, max_states: int) -> Keys:
    """Return the keys (n,) of the states in which turns end, from states (m, fields) inside. Raises
    SearchLimitError beyond `max_states`."""
    met = explore(game, states, known=lambda each: ~game.within_turn(each), max_states=max_states)
    return np.ascontiguousarray(met.keys[met.kinds == BETWEEN])


def turn_at(game: Game, begin: Ints, max_states: int) -> Turn:
    """Return the turn that begins at a state (fields,).

    Raises GameError if the turn cannot be like others, SearchLimitError beyond `max_states`.
    """
    met = explore(
        game, expand(game, begin[None]).children, known=lambda each: ~game.within_turn(each),
        max_states=max_states,
    )  # fmt: skip
    keys = np.append(met.keys[met.kinds != BETWEEN], pack_all(game.strides, begin[None]))
    states = np.asarray(unpack_all(game.strides, keys))
    found, order = expand(game, states), np.argsort(keys)
    first, counts = found.first, np.diff(found.first)
    place = np.searchsorted(keys, pack_all(game.strides, found.children), sorter=order)
    child, leaves = order[place % len(keys)], ~game.within_turn(found.children)
    leaving = np.add.reduceat(leaves, first[:-1])
    is_last = leaving == counts
    for wrong, why in (
        (found.terminal, "the game ends inside a turn; expected a state between turns"),
        ((leaving > 0) & ~is_last, "some edges end the turn and others do not; expected a last "
         "step, whose edges all end the turn"),
        (is_last & (keys == keys[-1]), "the turn has no states inside it"),
    ):  # fmt: skip
        if wrong.any():
            raise broken(game, states[wrong][0], f"{why}; change this or leave out turns_alike")
    done, layers = is_last, [np.flatnonzero(is_last)]
    while not done.all():
        ready = ~done & np.logical_and.reduceat(done[child], first[:-1])
        if not ready.any():
            why = "a turn can come back to this state; leave out turns_alike"
            raise broken(game, states[~done][0], why)
        done, layers = done | ready, [*layers, np.flatnonzero(ready)]
    at = np.concatenate(layers)
    inner = at[len(layers[0]) :]
    edges = np.concatenate([np.arange(first[i], first[i + 1]) for i in inner])
    ends = np.append(np.zeros(len(layers[0]), np.int64), counts[inner])
    lotteries = Lotteries(
        np.argsort(at)[child[edges]], found.weights[edges], found.actions[edges],
        found.rewards[edges if game.pays else edges[:0]],
    )  # fmt: skip
    return Turn(keys[at] - keys[-1], np.append(0, np.cumsum(ends)), found.actors[at], lotteries)


@njit(
    types.Tuple((_i, _f))(
        MATRIX_GAME, TURN_TYPE, _span, _f2, errors_type, SCRATCH_TYPE, _f2, errors_type
    )
)
def _back_up_all(
    solve_game, turn, span, values, errors, scratch, out, out_errors
):  # a kernel: in tuples its arrays count references
    """Take the step for the states span[0] .. span[1] - 1 of a turn; write to their rows of out.

    values, errors: of the states that the edges lead to; may be `out` and `out_errors`.
    Returns the best action and the margin of the last state.
    """
    first, actors, scratch = borrowed(turn.first), borrowed(turn.actors), borrowed(scratch)
    edges = borrowed(turn.edges)
    values, errors, out = borrowed(values), borrowed(errors), borrowed(out)
    best, margin = np.int64(NEW), np.nan
    for i in range(span[0], span[1]):
        best, margin, error = back_up(
            solve_game, edges, (first[i], first[i + 1]), actors[i], values, errors, scratch
        )
        out_errors[i] = rounded_up(error)
        for c in range(scratch.out.size):
            out[i, 1 + c] = scratch.out[c]
    return best, margin


@njit(_b(TURN_TYPE, _u, _i, _i, EDGES_TYPE, _i2))
def _is_alike(turn, begin, same, n, found, strides):
    """Return whether the n edges found at a state are those of the same state in `turn`.

    begin: the key of the state in which its turn begins.
    same: the number of the state in `turn`.
    """
    start = turn.first[same]
    alike = n == turn.first[same + 1] - start and found.about[1] == turn.actors[same]
    for k in range(n if alike else 0):
        key = begin + turn.offsets[turn.edges.children[start + k]]
        alike &= pack_row(strides, found.children, k) == key
        alike &= found.weights[k] == turn.edges.weights[start + k]
        alike &= found.actions[k] == turn.edges.actions[start + k]
        for p in range(turn.edges.rewards.shape[1] if turn.edges.rewards.shape[0] else 0):
            alike &= found.rewards[k, p] == turn.edges.rewards[start + k, p]
    return alike


@njit(_i(TRANSITION, MATRIX_GAME, TASK_TYPE, STORE_TYPE, TURN_TYPE, TURN_TYPE, _n1, _i1, _i))
def search_turns(  # noqa: C901, PLR0913, PLR0915  # one piece, as `game_graph.search`
    transition, solve_game, task, store, turn, ends, stack, at, budget
):
    """Continue a search until no state is on the stack. Return why it stopped: FINISHED, GROW,
    PAUSE or REFUSED as `game_graph.search`; CIRCULAR or UNLIKE with the state in room.at.

    A state is on the stack until it is solved. It is expanded when it is on top, and again when the
    states that it pushed are solved.

    ends: `room_for_turn`, for the edges of the last steps.
    stack: int32 (any,), states between turns; one may be there twice.
    """
    board, room, strides = task.board, borrowed(task.room), borrowed(task.strides)
    fields, state, offsets = borrowed(task.turn), borrowed(task.state), borrowed(turn.offsets)
    below, chances, names, paid, about = room.edges
    slots, keys, results = borrowed(store)
    rows, bests, margins, actors, errors = results
    children, weights, actions, rewards = borrowed(ends.edges)
    steps, size, columns = ends.actors.size, offsets.size, rows.shape[1] - 1
    players, pays, mask = paid.shape[1], rewards.shape[0] > 0, slots.size - 1
    values, value_errors = np.empty((size, 1 + columns)), np.empty(size, np.float32)
    count, height, edges, code = at[COUNT], at[HEIGHT], at[EDGES], FINISHED
    while height > 0:
        x = stack[height - 1]
        if keys[x, 1] < REACHED:
            height -= 1
            continue
        if budget < 0:  # never before the first state: a turn may be larger than the budget
            code = PAUSE
            break
        budget -= size
        begin, m, over = keys[x, 0], 0, False
        for i in range(-2, steps):  # two states that are compared, then the last steps
            same = i if i >= 0 else size - 1 if i == -2 else steps + x % (size - steps)
            if m + chances.size > weights.size or count + chances.size > keys.shape[0]:
                code = GROW
                break
            unpack(strides, begin + offsets[same], state)
            n = expand_one(transition, board, state, room.edges, room)
            if n < 0:
                code = REFUSED
                break
            over = about[0] == TERMINAL
            if over and i == -2:
                break
            alike = not over and (i >= 0 or _is_alike(turn, begin, same, n, room.edges, strides))
            for k in range(n if i >= 0 else 0):
                alike &= is_between_turns(fields, below[k])
                key = pack_row(strides, below, k)
                hashed = hash_of(key)
                slot = find_from(slots, keys, key, hashed, hashed & mask)
                if slots[slot] < 0:
                    slots[slot] = hashed & ~(mask >> 1) | count
                    keys[count, 0], keys[count, 1] = key, REACHED
                    bests[count], margins[count], actors[count] = NEW, np.nan, 0
                    errors[count] = 0.0
                    count += 1
                children[m] = slots[slot] & (mask >> 1)
                weights[m], actions[m] = chances[k], names[k]
                for p in range(players if pays else 0):
                    rewards[m, p] = paid[k, p]
                m += 1
            if not alike:
                code = UNLIKE
                for c in range(state.size):
                    room.at[c] = state[c]
                break
            if i >= 0:
                ends.actors[i], ends.first[i + 1] = about[1], m
        if code != FINISHED:
            break
        if over:
            for c in range(columns):
                rows[x, 1 + c] = paid[0, c]
            for p in range(players):
                paid[0, p] = 0.0
            bests[x] = OVER
            continue
        edges += m
        if height + m > stack.size:
            code = GROW
            break
        before = height
        for e in range(m):
            if keys[children[e], 1] >= REACHED:
                stack[height] = children[e]
                height += 1
        if height > before:
            if keys[x, 1] == EXPANDED:
                code = CIRCULAR
                unpack(strides, begin, room.at)
                break
            keys[x, 1] = EXPANDED
            continue
        _back_up_all(solve_game, ends, (0, steps), rows, errors, task.scratch, values, value_errors)
        bests[x], margin = _back_up_all(
            solve_game, turn, (steps, size), values, value_errors, task.scratch, values,
            value_errors,
        )  # fmt: skip
        if margin == margin:
            margins[x] = margin
        actors[x], errors[x] = max(turn.actors[size - 1], -1) + 1, value_errors[size - 1]
        for c in range(columns):
            rows[x, 1 + c] = values[size - 1, 1 + c]
    at[COUNT], at[HEIGHT], at[EDGES] = count, height, edges
    return code


def refusal(game: Game, begin: Ints, state: Ints, code: int) -> GameError:
    """Return the error of a search that stopped as CIRCULAR or UNLIKE at a state (fields,).

    begin: the first turn's beginning, (fields,).
    """
    names = " and ".join(game.rules.within_turn)
    if code == CIRCULAR:
        why = "a turn that begins here can lead back to this state; leave out turns_alike"
    else:
        why = (f"the edges are not as in the turn that begins at {game.say(begin)}; with "
               f"turns_alike they depend on {names} only, up to a last step, whose edges all end "
               "the turn")  # fmt: skip
    return broken(game, state, why)
