"""What people group the decisions of Skunk and of Pig by: how the scores stand, and the points of
the turn; and from how many points of a turn one holds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from luckbase.solver.game.game import Game
from luckbase.solver.game.groups import GROUP_TYPE, Axis, Grouped, Groups, Turning
from luckbase.solver.game.transition import Numbers
from luckbase.solver.games.skunk.rules import MINE, TURN, YOURS
from luckbase.solver.njit import njit

STEPS, TURNS = 3, 6
"""Steps of a lead, and as many of a deficit, the last one open; spans of a turn, the last open."""
STEP, SPAN = 0, 1
"""Where the numbers stand: the points of a step of the lead, and of a span of the turn."""


@njit(GROUP_TYPE, cache=True, nogil=True)
def group(board, state, actor, out, rest):  # type: ignore[no-untyped-def]
    """The group of a state, by the contract in `solver.game.groups`."""
    ints = board.ints
    lead, turn = state[MINE] - state[YOURS], state[TURN]
    step = min((abs(lead) + ints[STEP] - 1) // ints[STEP], STEPS)
    side = STEPS + (step if lead > 0 else -step)
    span = min((turn + ints[SPAN] - 1) // ints[SPAN], TURNS)
    out[2], out[3] = state[MINE], state[YOURS]
    if turn > 0:
        out[0], out[1] = side, turn
        rest[TURN] = 0
    return side * (TURNS + 1) + span


def groups_of_scores(goal: int, high: int, hold: str, name: str) -> Groups:
    """Groups of a game to about `goal` points, with scores up to `high` and the action `hold`,
    which a sentence calls `name`."""
    step, span = max(1, goal // 10), max(1, goal // 10)
    ahead = spans(step, STEPS)
    leads = [f"behind by {x}" for x in reversed(ahead)] + ["level"] + [
        f"ahead by {x}" for x in ahead
    ]  # fmt: skip
    turns = ["before the first roll", *spans(span, TURNS)]
    score = {"low": 0, "step": 1, "cells": high + 1}
    return Groups(
        columns=(Grouped("scores", leads), Grouped("points of the turn", turns)),
        group=group,
        numbers=Numbers(np.array([step, span], np.int64), np.zeros(1)),
        axes=(
            Axis("mine", "points of the player up", **score),
            Axis("yours", "points of the other", **score),
        ),
        turnings=[
            Turning(f"{lead} one", name, lambda action: action == hold, "{:,}", "points")
            for lead in leads
        ],
    )


def spans(step: int, count: int) -> Sequence[str]:
    """``1 to 10``, …, and an open one."""
    ends = [((k - 1) * step + 1, k * step) for k in range(1, count)]
    return [*(f"{a} to {b}" if a < b else f"{a}" for a, b in ends), f"above {(count - 1) * step}"]


def groups(game: Game, goal: int) -> Groups:
    """The groups of a race to a goal."""
    return groups_of_scores(goal, goal, "hold", "holds")
