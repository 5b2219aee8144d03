"""What people group the decisions of Press Your Luck by: spins left, place and lead; and at what
lead the leader passes, and how far behind the second."""

from __future__ import annotations

import numpy as np

from luckbase.solver.game.game import Game
from luckbase.solver.game.groups import GROUP_TYPE, Axis, Grouped, Groups, Turning
from luckbase.solver.game.transition import Numbers
from luckbase.solver.games.press_your_luck.board import PressYourLuckBoard
from luckbase.solver.games.press_your_luck.rules import EARNED, PASSED, SCORE, WHAMMIES, player_up
from luckbase.solver.njit import njit

SPINS = 20
"""Spins left that are told apart; beyond, they are one group."""
STEPS = 4
"""Steps of a lead, and as many of a deficit; the last is open."""
PLACES = ("leader", "second", "third")
MOST, THIRD, CAP, UNIT, STEP = 0, 1, 2, 3, 4
"""Where the numbers stand; the cap in units, the step of a lead in dollars."""
WORDS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


@njit(GROUP_TYPE, cache=True, nogil=True)
def group(board, state, actor, out, rest):  # type: ignore[no-untyped-def]
    """The group of a state, by the contract in `solver.game.groups`; who decides follows from the
    rules: who is up with earned spins, below the cap, not bound to play in third place."""
    ints = board.ints
    up = player_up(state)
    if up < 0 or state[PASSED + up] > 0 or state[SCORE + up] == ints[CAP]:
        return -1
    own, highest, above, others, spins = state[SCORE + up], -1, 0, 0, 0
    for i in range(3):
        spins += state[EARNED + i] + state[PASSED + i]
        if i != up and state[WHAMMIES + i] < ints[MOST]:
            others += 1
            highest = max(highest, state[SCORE + i])
            above += own < state[SCORE + i]
    if others == 0 or (ints[THIRD] != 0 and above == 2):
        return -1
    lead = (own - highest) * ints[UNIT]
    step = min((abs(lead) + ints[STEP] - 1) // ints[STEP], STEPS)
    out[2], out[3] = own, highest
    if state[EARNED + up] == spins and (lead > 0 or (lead < 0 and above == 1)):
        out[0], out[1] = min(spins, SPINS) - 1 + (SPINS if lead < 0 else 0), lead
        rest[SCORE + up] = 0
    place = min(above, 2)
    if lead < 0:
        step = -step
    return ((min(spins, SPINS) - 1) * 3 + place) * (2 * STEPS + 1) + STEPS + step


def groups(game: Game) -> Groups:
    """The groups of a board."""
    board = game.board
    assert isinstance(board, PressYourLuckBoard)
    unit, cap = board.solve.score_unit, board.solve.score_cap
    step = -(-cap // 8 // unit) * unit or unit
    ints = [board.rules.max_whammies, board.rules.third_place_spins, board.cap_units, unit, step]
    ends = [((k - 1) * step + unit, k * step) for k in range(1, STEPS)]
    ahead = [f"${a:,} to ${b:,}" if a < b else f"${a:,}" for a, b in ends]
    ahead.append(f"above ${(STEPS - 1) * step:,}")
    leads = [f"behind {x}" for x in reversed(ahead)] + ["level"] + [f"ahead {x}" for x in ahead]
    score = {"low": 0, "step": unit, "cells": board.cap_units + 1}
    return Groups(
        columns=(
            Grouped("spins left", [str(k + 1) for k in range(SPINS)]),
            Grouped("who is up", PLACES),
            Grouped("lead", leads),
        ),
        group=group,
        numbers=Numbers(np.array(ints, np.int64), np.zeros(1)),
        axes=(
            Axis("score", "score of the player up, $", **score),
            Axis("highest_other", "highest score of the others in, $", **score),
        ),
        turnings=[
            Turning(f"{spins_said(k + 1)} {who}", "passes", _is_pass, "${:,}", of, at)
            for who, of, at in (("the leader", "ahead", "from"), ("the second", "behind", "up to"))
            for k in range(SPINS)
        ],
        decides=True,
    )


def spins_said(count: int) -> str:
    """How a sentence begins; from the second spin on, all are his who is up."""
    word = WORDS[count - 1] if count <= len(WORDS) else str(count)
    return f"with {word} {'spin left' if count == 1 else 'spins left, all theirs,'}"


def _is_pass(action: str) -> bool:
    return action.startswith("pass")
