"""Where states stand among the groups that people care about, many at a time, for any game.

One pass of compiled code over states: whether anybody decides (the transition says so, unless the
game's group function does), the group, the cell of the picture, and the turning with its line
(`solver.game.groups`). It releases the interpreter, so threads go side by side.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import types
from numpy.typing import NDArray

from luckbase.solver.game.arrays import Ints
from luckbase.solver.game.faults import fault_at
from luckbase.solver.game.game import Game
from luckbase.solver.game.groups import GROUP, Groups, groups_of
from luckbase.solver.game.transition import (
    DECISION,
    NUMBERS_TYPE,
    SIMULTANEOUS,
    TRANSITION,
)
from luckbase.solver.njit import njit
from luckbase.solver.search.expansion import (
    BROKEN,
    ROOM_TYPE,
    expand_one,
    expanding,
    room_of,
)
from luckbase.solver.search.keys import pack

_i1, _i2 = types.int64[::1], types.int64[:, ::1]


@njit(
    types.int64(
        TRANSITION, NUMBERS_TYPE, ROOM_TYPE, GROUP, NUMBERS_TYPE, types.boolean, _i1, _i2, _i2,
        types.uint64[::1],
    ),
    cache=True,
    nogil=True,
)  # fmt: skip
def _stand(transition, board, room, group, numbers, decides, bits, states, found, lines):  # type: ignore[no-untyped-def]  # noqa: PLR0913  # a kernel: in tuples its arrays count references
    """Write (group, turning, where on it, x, y) of states (n, fields) to `found` (n, 5); returns
    0, or BROKEN, the state then in room.at."""
    into = room.edges
    out, rest = np.empty(4, np.int64), np.empty(states.shape[1], np.int64)
    for k in range(states.shape[0]):
        state, actor = states[k], np.int64(-1)
        found[k, 0] = found[k, 1] = found[k, 3] = found[k, 4] = -1
        if not decides:
            if expand_one(transition, board, state, into, room) < 0:
                return BROKEN
            kind, actor = into.about[0], into.about[1]
            if kind == SIMULTANEOUS:
                actor = np.int64(-1)
            elif kind != DECISION:
                continue
        for i in range(rest.size):
            rest[i] = state[i]
        out[0] = out[2] = out[3] = -1
        code = group(numbers, state, actor, out, rest)
        if code < 0:
            continue
        found[k, 0] = code
        for i in range(4):
            found[k, 1 + i] = out[i]
        if out[0] >= 0:
            lines[k] = pack(bits, rest)
    return 0


@dataclass(frozen=True)
class Standing:
    """Where n states stand. groups: int64 (n,), -1 where nobody decides. turnings: int64 (n,), -1
    for none; at: int64 (n,), where on it; lines: uint64 (n,), the same for all states of a turning
    that differ in that alone. x, y: int64 (n,), the cell of the picture, -1 for none."""

    groups: Ints
    turnings: Ints
    at: Ints
    lines: NDArray[np.uint64]
    x: Ints
    y: Ints


def standing(game: Game, states: Ints, groups: Groups | None = None) -> Standing:
    """Where canonical states (n, fields) stand among the game's groups."""
    said = groups_of(game) if groups is None else groups
    room = room_of(game)
    found = np.empty((len(states), 5), np.int64)
    lines = np.zeros(len(states), np.uint64)
    with expanding(game, room):
        wrong = _stand(
            game.transition, game.numbers, room, said.group, said.numbers, said.decides,
            np.ascontiguousarray(game.bits, np.int64), np.ascontiguousarray(states, np.int64),
            found, lines,
        )  # fmt: skip
    if wrong:
        raise fault_at(game, room.at)
    return Standing(found[:, 0], found[:, 1], found[:, 2], lines, found[:, 3], found[:, 4])
